// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An MPI program whose output is the same with Muster and without: what MPI refuses, and what it leaves as it is.
 *
 * usage: alike    Rank 0 says what came of it; where something must be so and is not, a rank says what, exit 1.
 */
#include <string.h>
#include <sys/mman.h>

#include "must.h"

enum { COUNT = 1000, RANKS_MAX = 8 };

static void say(const char *what, int err)
{
	int class = MPI_SUCCESS;

	if (err)
		MPI_Error_class(err, &class);
	if (!rank)
		printf("%s: %s\n", what, !class ? "no error" : class == MPI_ERR_TYPE ? "MPI_ERR_TYPE" : "an error");
}

static void reduces(MPI_Comm comm)
{
	int sum = 0;

	MUST(!MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
	MUST(sum == size * (size - 1) / 2);
}

/* ---- refused ---------------------------------------------------------------------------------- */

static void types_that_are_not_committed(void)
{
	int buffer[2 * 4 * RANKS_MAX] = { 0 }, own[8] = { 0 };
	MPI_Request request;
	MPI_Datatype types[2];

	MPI_Type_vector(4, 1, 2, MPI_INT, &types[0]);
	MPI_Type_contiguous(4, MPI_INT, &types[1]);
	for (int i = 0; i < 2; i++) {
		say("broadcast of a type that is not committed", MPI_Bcast(own, 1, types[i], 0, MPI_COMM_WORLD));
		say("started", MPI_Ibcast(own, 1, types[i], 0, MPI_COMM_WORLD, &request));
		say("allgather", MPI_Allgather(own, 1, types[i], buffer, 1, types[i], MPI_COMM_WORLD));
		MPI_Type_commit(&types[i]);
		say("committed", MPI_Allgather(own, 1, types[i], buffer, 1, types[i], MPI_COMM_WORLD));
		MPI_Type_free(&types[i]);
	}
}

static int refuses(MPI_Comm comm, int keyval, void *value, void *refuse)
{
	(void)comm;
	(void)keyval;
	(void)value;
	return *(const int *)refuse ? MPI_ERR_OTHER : MPI_SUCCESS;
}

/* Its attribute is older than the first collective, or younger. */
static void communicator_that_is_not_freed(int is_older)
{
	int keyval, refuse = 1;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuses, &keyval, &refuse);
	if (!is_older)
		reduces(comm);
	MPI_Comm_set_attr(comm, keyval, NULL);
	if (is_older)
		reduces(comm);
	say("free, where a callback refuses", MPI_Comm_free(&comm));
	MUST(comm != MPI_COMM_NULL);
	reduces(comm);
	refuse = 0;
	say("free, where it does not", MPI_Comm_free(&comm));
	MPI_Comm_free_keyval(&keyval);
}

/* ---- as it is --------------------------------------------------------------------------------- */

static void last_used_code(void)
{
	int *last, found;

	reduces(MPI_COMM_WORLD);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &found);
	if (!rank)
		printf("last used code: %d\n", found ? *last : -1);
}

/* What is the root's own stays where it is, in memory that cannot be written. */
static void scatter_from_constants(void)
{
	const size_t bytes = sizeof(int) * COUNT * RANKS_MAX;
	int *all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int own[COUNT], counts[RANKS_MAX], displs[RANKS_MAX];
	void *to = rank == 1 ? MPI_IN_PLACE : own;

	MUST(all != MAP_FAILED);
	for (int i = 0; i < COUNT * size; i++)
		all[i] = i;
	for (int r = 0; r < size; r++) {
		counts[r] = COUNT;
		displs[r] = COUNT * r;
	}
	MUST(!mprotect(all, bytes, PROT_READ));
	memset(own, -1, sizeof(own));
	MUST(!MPI_Scatter(all, COUNT, MPI_INT, to, COUNT, MPI_INT, 1, MPI_COMM_WORLD));
	MUST(rank == 1 || !memcmp(own, all + rank * COUNT, sizeof(own)));
	memset(own, -1, sizeof(own));
	MUST(!MPI_Scatterv(all, counts, displs, MPI_INT, to, COUNT, MPI_INT, 1, MPI_COMM_WORLD));
	MUST(rank == 1 || !memcmp(own, all + rank * COUNT, sizeof(own)));
	munmap(all, bytes);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MUST(size <= RANKS_MAX);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	last_used_code();
	types_that_are_not_committed();
	communicator_that_is_not_freed(0);
	communicator_that_is_not_freed(1);
	scatter_from_constants();
	if (!rank)
		puts("ends");
	MPI_Finalize();
	return 0;
}
