/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What muster-mpi finds out of a program without running it: which MPI it needs, by itself or
 * through a library, and which collectives it and its libraries call.
 */
#ifndef MUSTER_MPI_PROGRAM_H
#define MUSTER_MPI_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

enum {
	MPI_PROGRAM_CALLS = 128,
	MPI_PROGRAM_NAME = 48,
	MPI_PROGRAM_LINE = 1024,
};

struct mpi_kind {
	const char *name;	/* in our library's name */
	const char *words;
	const char *needs[3];	/* sonames */
	const char *launcher;	/* a variable that its mpirun sets */
};

struct mpi_calls {
	char names[MPI_PROGRAM_CALLS][MPI_PROGRAM_NAME];
	int nr;
};

struct mpi_program {
	char path[PATH_MAX];
	const struct mpi_kind *kind;		/* NULL: what it needs does not say */
	char soname[MPI_PROGRAM_LINE];		/* by which it is known */
	char other[MPI_PROGRAM_LINE];		/* an MPI that there is no library for; or empty */
	bool is_script;
	bool is_static;				/* nothing can be preloaded */
	struct mpi_calls calls;
};

/** mpi_program_find() - as a shell would. Return: 0; ENOENT; EACCES. */
int mpi_program_find(const char *name, struct mpi_program *program);
/** mpi_program_look() - at a program that was found. Return: 0; ENOEXEC: it is none; or errno. */
int mpi_program_look(struct mpi_program *program);
/** mpi_kind_of_launcher() - whose mpirun has started this process; NULL: nobody's. */
const struct mpi_kind *mpi_kind_of_launcher(void);
/** mpi_kind_named() - NULL: there is none. */
const struct mpi_kind *mpi_kind_named(const char *name);

/**
 * mpi_calls_read() - the collectives that an ELF file calls, or defines.
 * Return: 0; or errno.
 */
int mpi_calls_read(const char *path, bool defined, struct mpi_calls *calls);
bool mpi_calls_have(const struct mpi_calls *calls, const char *name);

#endif /* MUSTER_MPI_PROGRAM_H */
