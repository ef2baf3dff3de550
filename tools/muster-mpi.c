// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * muster-mpi PROGRAM [ARGUMENT]...: runs an MPI program, as it is, with its collectives on
 * Muster: that libmuster-mpi is preloaded which was built for its MPI. Which one that is says
 * what it needs; for a script, or what loads MPI later, whose mpirun has started it.
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "folder.h"
#include "mpi_program.h"
#include "version.h"

enum { EXIT_USAGE = 2, EXIT_OWN = 125, EXIT_CANNOT = 126, EXIT_MISSING = 127 };

static void help(void)
{
	puts("Usage: muster-mpi [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
	     "Run an MPI program that nobody changed with its collectives on Muster:\n"
	     "mpirun -n 4 muster-mpi PROGRAM.\n\n"
	     "  -c, --check     say which MPI it needs and what of it would be offloaded; do not run it\n"
	     "  -m, --mpi=MPI   openmpi or mpich: do not look\n"
	     "  -h, --help      show this\n"
	     "  -V, --version   show the version\n\n"
	     "Exit status: that of PROGRAM; 2 wrong usage; 125 muster-mpi itself failed;\n"
	     "126 PROGRAM cannot be run on Muster; 127 there is no such program.");
}

/* ---- the library ------------------------------------------------------------------------------ */

/* In the build folder or installed, seen from where this program is. */
static void library_find(const struct mpi_kind *kind, char *path)
{
	static const char *const places[] = { "..", "../lib" };
	char self[PATH_MAX], beside[PATH_MAX + 128];

	if (muster_folder(self, sizeof(self)))
		err(EXIT_OWN, "where this program is cannot be found out");
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		snprintf(beside, sizeof(beside), "%s/%s/libmuster-mpi-%s.so.0", self, places[i],
			 kind->name);
		if (realpath(beside, path))
			return;
	}
	errx(EXIT_OWN, "there is no libmuster-mpi-%s.so.0 beside %s: it is built where %s is installed (make mpi)",
	     kind->name, self, kind->words);
}

/* What was asked for, what the program needs, or who has started us. */
static const struct mpi_kind *choose(const struct mpi_program *program, const char *asked)
{
	const struct mpi_kind *kind = asked ? mpi_kind_named(asked) : program->kind;

	if (asked && !kind)
		errx(EXIT_USAGE, "--mpi=%s: there are openmpi and mpich", asked);
	if (!kind && *program->other)
		errx(EXIT_CANNOT, "%s needs %s: there are libraries for Open MPI 4.1 (libmpi.so.40) and MPICH 4.0 (libmpich.so.12)",
		     program->path, program->other);
	if (program->is_static)
		errx(EXIT_CANNOT, "%s is linked statically: nothing can be preloaded", program->path);
	return kind ? kind : mpi_kind_of_launcher();
}

/* ---- check --------------------------------------------------------------------------------------- */

static void say_mpi(const struct mpi_program *program, const struct mpi_kind *kind)
{
	if (program->kind)
		printf("%s needs %s (%s)\n", program->path, program->kind->words, program->soname);
	else
		printf("%s does not say which MPI it needs%s\n", program->path,
		       program->is_script ? ": it is a script" : "");
	if (kind != program->kind)
		printf("taken for %s, %s\n", kind->words,
		       mpi_kind_of_launcher() == kind ? "as its mpirun has started this" :
							"as --mpi says");
}

static void say_calls(const struct mpi_calls *calls, const struct mpi_calls *offloaded, bool are)
{
	int nr = 0;

	for (int i = 0; i < calls->nr; i++)
		if (mpi_calls_have(offloaded, calls->names[i]) == are)
			printf("%s%s", nr++ ? ", " : are ? "offloaded: " : "by MPI itself: ",
			       calls->names[i]);
	if (nr)
		puts("");
}

static int check(const struct mpi_program *program, const struct mpi_kind *kind,
		 const char *library)
{
	struct mpi_calls offloaded = { 0 };

	say_mpi(program, kind);
	printf("library: %s\n", library);
	mpi_calls_read(library, true, &offloaded);
	say_calls(&program->calls, &offloaded, true);
	say_calls(&program->calls, &offloaded, false);
	if (!program->calls.nr)
		puts("what it calls cannot be seen without running it");
	return 0;
}

/* ---- run ------------------------------------------------------------------------------------------ */

static int run(const struct mpi_program *program, const char *library, char **argv)
{
	const char *before = getenv("LD_PRELOAD");
	char preload[2 * PATH_MAX];

	/* Behind others: a tool that profiles sees what the program calls. */
	if ((size_t)snprintf(preload, sizeof(preload), "%s%s%s", before ? before : "",
			     before && *before ? ":" : "", library) >= sizeof(preload))
		errx(EXIT_OWN, "LD_PRELOAD is too long");
	setenv("LD_PRELOAD", preload, 1);
	execv(program->path, argv);
	err(errno == ENOENT ? EXIT_MISSING : EXIT_CANNOT, "%s", program->path);
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "check", no_argument, NULL, 'c' }, { "mpi", required_argument, NULL, 'm' },
		{ "help", no_argument, NULL, 'h' }, { "version", no_argument, NULL, 'V' }, { 0 },
	};
	const struct mpi_kind *kind;
	struct mpi_program program;
	char library[PATH_MAX];
	const char *asked = NULL;
	int option, checks = 0, error;

	while ((option = getopt_long(argc, argv, "+cm:hV", longs, NULL)) != -1) {
		switch (option) {
		case 'c': checks = 1; break;
		case 'm': asked = optarg; break;
		case 'h': help(); return 0;
		case 'V': puts("muster-mpi " MUSTER_VERSION); return 0;
		default: return EXIT_USAGE;
		}
	}
	if (optind == argc) {
		warnx("which program? Try --help");
		return EXIT_USAGE;
	}
	error = mpi_program_find(argv[optind], &program);
	if (!error)
		error = mpi_program_look(&program);
	if (error)
		errx(error == ENOENT ? EXIT_MISSING : EXIT_CANNOT, "%s: %s", argv[optind],
		     strerror(error));
	kind = choose(&program, asked);
	if (!kind)
		errx(EXIT_CANNOT, "%s does not say which MPI it needs: start this by mpirun, or say --mpi=openmpi or --mpi=mpich",
		     program.path);
	library_find(kind, library);
	return checks ? check(&program, kind, library) : run(&program, library, argv + optind);
}
