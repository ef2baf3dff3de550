/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What MPI programs that check themselves share: who this is, and an end of all ranks with the
 * line that was not so.
 */
#include <mpi.h>
#include <stdio.h>

static int rank, size;

#define MUST(condition) do {						\
	if (!(condition)) {						\
		printf("rank %d: line %d: not so: %s\n", rank, __LINE__, #condition);	\
		fflush(stdout);						\
		MPI_Abort(MPI_COMM_WORLD, 1);				\
	}								\
} while (0)
