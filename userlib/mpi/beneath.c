// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The MPI library beneath: its own functions, found behind ours, and whether it is the one that
 * we were built for. Handles of another MPI mean something else, so nothing may be called then.
 */
#include "shim.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef OPEN_MPI
#define OURS	"libmpi.so.40"
#define WORDS	"Open MPI 4.1"
#else
#define OURS	"libmpich.so.12"
#define WORDS	"MPICH 4.0"
#endif

enum { EXIT_WRONG_MPI = 126 };

struct muster_mpi_beneath muster_mpi_beneath;

/* MPICH's library has a second name, of its ABI. */
static bool is_foreign(const char *name)
{
	if (!strncmp(name, OURS, strlen(OURS)))
		return false;
#ifndef OPEN_MPI
	if (!strncmp(name, "libmpi.so.12", strlen("libmpi.so.12")))
		return false;
#endif
	return !strncmp(name, "libmpi.so.", strlen("libmpi.so.")) ||
	       !strncmp(name, "libmpich.so.", strlen("libmpich.so.")) ||
	       !strncmp(name, "libmpi_abi.so.", strlen("libmpi_abi.so."));
}

static int look(struct dl_phdr_info *object, size_t size, void *foreign)
{
	const char *name = strrchr(object->dlpi_name, '/');

	(void)size;
	name = name ? name + 1 : object->dlpi_name;
	if (is_foreign(name))
		*(const char **)foreign = name;
	return 0;
}

void muster_mpi_guard(void)
{
	const char *foreign = NULL;

	dl_iterate_phdr(look, &foreign);
	if (!foreign)
		return;
	fprintf(stderr, "libmuster-mpi: this is the one for " WORDS " (" OURS "), but the program uses %s: start it by muster-mpi, which picks the right one\n",
		foreign);
	_exit(EXIT_WRONG_MPI);
}

/* The MPI library is one that we need, so it is behind us in the order of search. */
__attribute__((constructor)) static void find(void)
{
	muster_mpi_guard();
#define FIND(name) *(void **)&muster_mpi_beneath.name = dlsym(RTLD_NEXT, "PMPI_" #name);
	MUSTER_MPI_WRAPPED(FIND)
#undef FIND
#ifdef OPEN_MPI
#define PREFIX "PMPIX_"
#else
#define PREFIX "PMPI_"
#endif
#define FIND(name) *(void **)&muster_mpi_beneath.name##_init = dlsym(RTLD_NEXT, PREFIX #name "_init");
	MUSTER_MPI_COLLECTIVES(FIND)
#undef FIND
	*(void **)&muster_mpi_beneath.progress = dlsym(RTLD_DEFAULT, "opal_progress");
	*(void **)&muster_mpi_beneath.progress_register =
		dlsym(RTLD_DEFAULT, "opal_progress_register");
	*(void **)&muster_mpi_beneath.progress_unregister =
		dlsym(RTLD_DEFAULT, "opal_progress_unregister");
}
