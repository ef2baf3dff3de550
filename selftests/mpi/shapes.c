// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An MPI program: data of every shape that MPI has, and communicators of every kind. All of it is
 * to be offloaded.
 *
 * usage: shapes    Rank 0 prints "right"; else a rank says what was wrong, exit 1.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"

enum { RANKS_MAX = 8 };

/* ---- data ------------------------------------------------------------------------------------ */

/* Two variables anywhere in memory, as one element at MPI_BOTTOM. */
static void absolute_addresses(void)
{
	int number = rank ? -1 : 17, lengths[2] = { 1, 2 };
	double *values = calloc(2, sizeof(*values));
	MPI_Datatype types[2] = { MPI_INT, MPI_DOUBLE }, both;
	MPI_Aint at[2];

	values[1] = rank ? -1 : 2.5;
	MPI_Get_address(&number, &at[0]);
	MPI_Get_address(values, &at[1]);
	MPI_Type_create_struct(2, lengths, at, types, &both);
	MPI_Type_commit(&both);
	MPI_Bcast(MPI_BOTTOM, 1, both, 0, MPI_COMM_WORLD);
	MUST(number == 17 && values[1] == 2.5);
	MPI_Type_free(&both);
	free(values);
}

/* Rows are gathered as columns: elements that lie between each other. */
static void columns(void)
{
	int row[4], matrix[4][RANKS_MAX];
	MPI_Datatype strided, column;

	MPI_Type_vector(4, 1, RANKS_MAX, MPI_INT, &strided);
	MPI_Type_create_resized(strided, 0, sizeof(int), &column);
	MPI_Type_commit(&column);
	memset(matrix, -1, sizeof(matrix));
	for (int i = 0; i < 4; i++)
		row[i] = 10 * rank + i;
	MPI_Allgather(row, 4, MPI_INT, matrix, 1, column, MPI_COMM_WORLD);
	for (int i = 0; i < 4; i++)
		for (int r = 0; r < RANKS_MAX; r++)
			MUST(matrix[i][r] == (r < size ? 10 * r + i : -1));
	MPI_Type_free(&strided);
	MPI_Type_free(&column);
}

/* Elements that go downwards, the first of them below its address. */
static void downwards(void)
{
	int buffer[8], one = 1, at = -1;
	MPI_Datatype below, down;

	MPI_Type_create_indexed_block(1, one, &at, MPI_INT, &below);
	MPI_Type_create_resized(below, 0, -2 * (MPI_Aint)sizeof(int), &down);
	MPI_Type_commit(&down);
	for (int i = 0; i < 8; i++)
		buffer[i] = rank ? -1 : i;
	if (rank % 2)
		MPI_Bcast(buffer, 4, MPI_INT, 0, MPI_COMM_WORLD);
	else
		MPI_Bcast(buffer + 8, 4, down, 0, MPI_COMM_WORLD);
	for (int i = 0; i < 8; i++)
		MUST(buffer[i] == (rank == 0 ? i : rank % 2 ? (i < 4 ? 7 - 2 * i : -1) :
							      (i % 2 ? i : -1)));
	MPI_Type_free(&below);
	MPI_Type_free(&down);
}

static void nothing(void)
{
	int counts[RANKS_MAX] = { 0 }, zeros[RANKS_MAX] = { 0 }, word = rank, all[RANKS_MAX];
	MPI_Datatype types[RANKS_MAX], none;

	MPI_Type_contiguous(0, MPI_INT, &none);
	MPI_Type_commit(&none);
	MPI_Bcast(&word, 3, none, 0, MPI_COMM_WORLD);
	MPI_Allgather(&word, 2, none, all, 0, MPI_INT, MPI_COMM_WORLD);
	MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Alltoallv(&word, counts, counts, MPI_INT, all, counts, counts, MPI_INT, MPI_COMM_WORLD);
	for (int r = 0; r < size; r++)
		types[r] = r == rank ? MPI_INT : none;
	counts[rank] = 1;
	memset(all, -1, sizeof(all));
	MPI_Alltoallw(&word, counts, zeros, types, all, counts, zeros, types, MPI_COMM_WORLD);
	MUST(word == rank && all[0] == rank);
	MPI_Type_free(&none);
}

/* Blocks before the buffer's address, in another order than ranks have, with room between. */
static void places(void)
{
	int counts[RANKS_MAX], displs[RANKS_MAX], all[2 * RANKS_MAX + 1], word = rank;

	memset(all, -1, sizeof(all));
	for (int r = 0; r < size; r++) {
		counts[r] = 1;
		displs[r] = (r % 2 ? -2 : 2) * (r / 2 + 1);
	}
	MPI_Allgatherv(&word, 1, MPI_INT, all + RANKS_MAX, counts, displs, MPI_INT, MPI_COMM_WORLD);
	for (int r = 0; r < size; r++)
		MUST(all[RANKS_MAX + displs[r]] == r);
	for (int i = 1; i < 2 * RANKS_MAX; i += 2)
		MUST(all[i] == -1);
}

/* The least value, and where two have it the lower index. */
#define PAIRS(VALUE, TYPE) do {							\
	struct { VALUE value; int index; } in[3], out[3];			\
										\
	memset(in, 0, sizeof(in));						\
	for (int i = 0; i < 3; i++) {						\
		in[i].value = (VALUE)(i == 2 ? 5 : (rank + i) % size);		\
		in[i].index = 100 + rank;					\
	}									\
	MPI_Allreduce(in, out, 3, TYPE, MPI_MINLOC, MPI_COMM_WORLD);		\
	MUST(out[0].value == 0 && out[0].index == 100);				\
	MUST(out[1].value == 0 && out[1].index == 100 + size - 1);		\
	MUST(out[2].value == 5 && out[2].index == 100);				\
	MPI_Allreduce(MPI_IN_PLACE, in, 3, TYPE, MPI_MAXLOC, MPI_COMM_WORLD);	\
	MUST(in[0].value == (VALUE)(size - 1) && in[0].index == 100 + size - 1);	\
	MUST(in[2].value == 5 && in[2].index == 100);				\
} while (0)

static void pairs(void)
{
	PAIRS(float, MPI_FLOAT_INT);
	PAIRS(double, MPI_DOUBLE_INT);
	PAIRS(long, MPI_LONG_INT);
	PAIRS(short, MPI_SHORT_INT);
	PAIRS(int, MPI_2INT);
	PAIRS(long double, MPI_LONG_DOUBLE_INT);
}

/* ---- communicators ------------------------------------------------------------------------------ */

static void sums(MPI_Comm comm, int expected_size)
{
	int own, nr, sum = -1;

	MPI_Comm_rank(comm, &own);
	MPI_Comm_size(comm, &nr);
	MUST(nr == expected_size);
	MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comm);
	MUST(sum == nr * (nr - 1) / 2);
}

static void idup(void)
{
	MPI_Request request;
	MPI_Comm comm;

	MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	sums(comm, size);
	MPI_Comm_free(&comm);
}

static void topologies(void)
{
	int dims[2] = { size, 1 }, periods[2] = { 1, 0 }, keep[2] = { 1, 0 };
	int weight = 1, next = (rank + 1) % size, before = (rank + size - 1) % size;
	MPI_Comm grid, line, graph;

	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &grid);
	sums(grid, size);
	MPI_Cart_sub(grid, keep, &line);
	sums(line, size);
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, &weight, 1, &next, &weight,
				       MPI_INFO_NULL, 0, &graph);
	sums(graph, size);
	MPI_Comm_free(&graph);
	MPI_Comm_free(&line);
	MPI_Comm_free(&grid);
}

/* Of a group, of what shares memory, and of two that were apart. */
static void groups(void)
{
	MPI_Comm half, some, inter, merged;
	MPI_Group all, without_first;
	int first = 0, other_leader = size % 2 == rank % 2 ? size - 1 : size - 2;

	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_excl(all, 1, &first, &without_first);
	MPI_Comm_create(MPI_COMM_WORLD, without_first, &some);
	MUST((some == MPI_COMM_NULL) == !rank);
	if (rank) {
		sums(some, size - 1);
		MPI_Comm_free(&some);
	}
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &some);
	sums(some, size);
	MPI_Comm_free(&some);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, other_leader, 3, &inter);
	MPI_Intercomm_merge(inter, rank % 2, &merged);
	sums(merged, size);
	MPI_Comm_free(&merged);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&half);
	MPI_Group_free(&without_first);
	MPI_Group_free(&all);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MUST(size <= RANKS_MAX);
	absolute_addresses();
	columns();
	downwards();
	nothing();
	places();
	pairs();
	idup();
	topologies();
	groups();
	if (!rank)
		puts("right");
	MPI_Finalize();
	return 0;
}
