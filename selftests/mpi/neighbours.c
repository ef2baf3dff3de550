// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An MPI program: each neighbourhood collective on topologies of every kind: grids with rims, and
 * with sides of one and two ranks, neighbours that are named several times, oneself, nobody at all.
 * Each block says who has sent it and which it was.
 *
 * usage: neighbours    Rank 0 prints "right"; else a rank says what was wrong, exit 1.
 */
#include <stdlib.h>
#include <string.h>

#include "must.h"

enum { EDGES = 16, LONGEST = 700, ROOM = EDGES * 2 * LONGEST };

/* A communicator, and whom this rank tells and hears (MPI_PROC_NULL: nobody). */
struct graph {
	const char *name;
	MPI_Comm comm;
	int nr_to, nr_from;
	int to[EDGES], from[EDGES];
	int sent_as[EDGES];	/* which of the sender's blocks comes */
};

static int in[ROOM], out[ROOM];
static int *volatile unweighted;	/* no array, which gcc would like to see */

/* ---- topologies ---------------------------------------------------------------------------------- */

static void grid(struct graph *graph, const char *name, int dims, const int *sides, const int *periods)
{
	*graph = (struct graph){ .name = name, .nr_to = 2 * dims, .nr_from = 2 * dims };
	MPI_Cart_create(MPI_COMM_WORLD, dims, sides, periods, 0, &graph->comm);
	for (int d = 0; d < dims; d++) {
		MPI_Cart_shift(graph->comm, d, 1, &graph->to[2 * d], &graph->to[2 * d + 1]);
		graph->sent_as[2 * d] = 2 * d + 1;
		graph->sent_as[2 * d + 1] = 2 * d;
	}
	memcpy(graph->from, graph->to, sizeof(graph->to));
}

static int occurs(const int *ranks, int nr, int which)
{
	int times = 0;

	for (int i = 0; i < nr; i++)
		times += ranks[i] == which;
	return times;
}

/* The k-th block from a rank is the k-th that it sends here. */
static void pair_up(struct graph *graph)
{
	int mine[EDGES + 1], all[size][EDGES + 1];

	memcpy(mine, graph->to, sizeof(graph->to));
	mine[EDGES] = graph->nr_to;
	MPI_Allgather(mine, EDGES + 1, MPI_INT, all, EDGES + 1, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < graph->nr_from; i++) {
		const int *theirs = all[graph->from[i]];
		int before = occurs(graph->from, i, graph->from[i]), block = 0;

		while (theirs[block] != rank || occurs(theirs, block, rank) < before)
			block++;
		graph->sent_as[i] = block;
	}
}

/* Rank 0 and all others, both ways; and it has itself as a neighbour. */
static void star(struct graph *graph)
{
	int index[size], edges[2 * size];

	*graph = (struct graph){ .name = "a star" };
	for (int r = 0; r < size; r++) {
		edges[r] = r;
		edges[size + r] = 0;
		index[r] = size + r;
	}
	MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &graph->comm);
	MPI_Graph_neighbors_count(graph->comm, rank, &graph->nr_to);
	MPI_Graph_neighbors(graph->comm, rank, graph->nr_to, graph->to);
	graph->nr_from = graph->nr_to;
	memcpy(graph->from, graph->to, sizeof(graph->to));
	pair_up(graph);
}

/* The next one twice, oneself, and the one behind; what comes is asked for in another order. */
static void several(struct graph *graph)
{
	int next = (rank + 1) % size, after = (rank + 2) % size;
	int before = (rank + size - 1) % size, first = (rank + size - 2) % size;
	int weights[] = { 3, 1, 4, 2 };

	*graph = (struct graph){
		.name = "several edges", .nr_to = 4, .nr_from = 4,
		.to = { next, after, rank, next }, .from = { rank, before, first, before },
	};
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 4, graph->from, weights, 4, graph->to, weights,
				       MPI_INFO_NULL, 0, &graph->comm);
	pair_up(graph);
}

/* Rank 0 tells all but the last, which is alone, as nobody tells rank 0 anything. */
static void one_way(struct graph *graph)
{
	*graph = (struct graph){ .name = "one way" };
	for (int r = 1; r < size - 1 && !rank; r++)
		graph->to[graph->nr_to++] = r;
	graph->nr_from = rank && rank < size - 1;
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, graph->nr_from, graph->from, unweighted,
				       graph->nr_to, graph->to, unweighted, MPI_INFO_NULL, 0,
				       &graph->comm);
	pair_up(graph);
}

/* One rank names all edges; MPI says in what order each has its own. */
static void distributed(struct graph *graph)
{
	int sources[size], degrees[size], to[2 * size], weighted, weights[2 * EDGES];

	*graph = (struct graph){ .name = "named by one" };
	for (int r = 0; r < size; r++) {
		sources[r] = r;
		degrees[r] = 2;
		to[2 * r] = (r + 1) % size;
		to[2 * r + 1] = 0;
	}
	MPI_Dist_graph_create(MPI_COMM_WORLD, rank ? 0 : size, sources, degrees, to, unweighted,
			      MPI_INFO_NULL, 0, &graph->comm);
	MPI_Dist_graph_neighbors_count(graph->comm, &graph->nr_from, &graph->nr_to, &weighted);
	MUST(graph->nr_from <= EDGES && graph->nr_to <= EDGES);
	MPI_Dist_graph_neighbors(graph->comm, graph->nr_from, graph->from, weights, graph->nr_to,
				 graph->to, weights + EDGES);
	pair_up(graph);
}

/* ---- calls --------------------------------------------------------------------------------------- */

enum coll { ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW, COLLS };

/* What one rank gives and gets: lengths and places of blocks, in elements. */
struct test {
	const struct graph *graph;
	enum coll coll;
	int count, stride;	/* of an element: ints */
	MPI_Datatype type;
	int in_counts[EDGES], in_displs[EDGES], out_counts[EDGES], out_displs[EDGES];
};

/* An int that its sender, block and place tell. */
static int value(int sender, int block, int i)
{
	return 1000000 * (sender + 1) + 10000 * block + i;
}

static int is_uneven(enum coll coll)
{
	return coll == ALLGATHERV || coll == ALLTOALLV || coll == ALLTOALLW;
}

static int gathers(enum coll coll)
{
	return coll == ALLGATHER || coll == ALLGATHERV;
}

static int length(const struct test *t, int sender, int block)
{
	return is_uneven(t->coll) ? t->count * ((sender + 2 * block) % 4) / 3 : t->count;
}

/* Uneven blocks lie from the last to the first. */
static void lay_out(struct test *t)
{
	const struct graph *graph = t->graph;

	for (int i = 0; i < graph->nr_to; i++) {
		t->in_counts[i] = length(t, rank, i);
		t->in_displs[i] = (is_uneven(t->coll) ? graph->nr_to - 1 - i : i) * t->count;
	}
	for (int i = 0; i < graph->nr_from; i++) {
		t->out_counts[i] = graph->from[i] == MPI_PROC_NULL ? t->count :
				   length(t, graph->from[i], gathers(t->coll) ? 0 : graph->sent_as[i]);
		t->out_displs[i] = (is_uneven(t->coll) ? graph->nr_from - 1 - i : i) * t->count;
	}
	memset(in, -1, sizeof(in));
	memset(out, -1, sizeof(out));
	for (int i = 0; i < (gathers(t->coll) ? 1 : graph->nr_to); i++)
		for (int j = 0; j < t->in_counts[i] || (gathers(t->coll) && j < length(t, rank, 0)); j++)
			in[((gathers(t->coll) ? 0 : t->in_displs[i]) + j) * t->stride] = value(rank, i, j);
}

static void call(const struct test *t, int nonblocking)
{
	MPI_Aint in_ats[EDGES], out_ats[EDGES];
	MPI_Datatype types[EDGES];
	MPI_Comm comm = t->graph->comm;
	MPI_Datatype d = t->type;
	MPI_Request request;
	int n = t->count;

	for (int i = 0; i < EDGES; i++) {
		types[i] = d;
		in_ats[i] = t->in_displs[i] * t->stride * (int)sizeof(int);
		out_ats[i] = t->out_displs[i] * t->stride * (int)sizeof(int);
	}
#define DO(name, ...)							\
	if (nonblocking) {						\
		MUST(!MPI_Ineighbor_##name(__VA_ARGS__, comm, &request));	\
		MUST(!MPI_Wait(&request, MPI_STATUS_IGNORE));		\
	} else {							\
		MUST(!MPI_Neighbor_##name(__VA_ARGS__, comm));		\
	}								\
	return;

	switch (t->coll) {
	case ALLGATHER: DO(allgather, in, n, d, out, n, d)
	case ALLGATHERV: DO(allgatherv, in, length(t, rank, 0), d, out, t->out_counts, t->out_displs, d)
	case ALLTOALL: DO(alltoall, in, n, d, out, n, d)
	case ALLTOALLV: DO(alltoallv, in, t->in_counts, t->in_displs, d, out, t->out_counts, t->out_displs, d)
	default: DO(alltoallw, in, t->in_counts, in_ats, types, out, t->out_counts, out_ats, types)
	}
}

static void check(const struct test *t)
{
	const struct graph *graph = t->graph;

	for (int i = 0; i < graph->nr_from; i++)
		for (int j = 0; j < t->count * t->stride; j++) {
			int got = out[t->out_displs[i] * t->stride + j], want = -1;

			if (graph->from[i] != MPI_PROC_NULL && j % t->stride == 0 &&
			    j / t->stride < t->out_counts[i])
				want = value(graph->from[i], gathers(t->coll) ? 0 : graph->sent_as[i],
					     j / t->stride);
			if (got == want)
				continue;
			printf("%s, collective %d of %d: block %d of rank %d, int %d is %d, not %d\n",
			       graph->name, t->coll, t->count, i, rank, j, got, want);
			fflush(stdout);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	for (int i = graph->nr_from * t->count * t->stride; i < ROOM; i++)
		MUST(out[i] == -1);
}

static void run(const struct graph *graph)
{
	static const int counts[] = { 3, 0, LONGEST };
	MPI_Datatype every_other;

	MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &every_other);
	MPI_Type_commit(&every_other);
	for (int nonblocking = 0; nonblocking < 2; nonblocking++)
		for (int coll = 0; coll < COLLS; coll++)
			for (int i = 0; i < 6; i++) {
				struct test t = { .graph = graph, .coll = (enum coll)coll,
						  .count = counts[i / 2], .stride = 1 + i % 2 };

				t.type = t.stride == 1 ? MPI_INT : every_other;
				lay_out(&t);
				call(&t, nonblocking);
				check(&t);
			}
	MPI_Type_free(&every_other);
}

/* ---- what is wrong -------------------------------------------------------------------------------- */

/* A rank names one who does not name it: all else works; and with offload forced it is an error. */
static void one_sided(void)
{
	int index[size], next = 1, sum = 0, err;
	const char *offload = getenv("MUSTER_OFFLOAD");
	MPI_Comm comm;

	for (int r = 0; r < size; r++)
		index[r] = 1;
	MPI_Graph_create(MPI_COMM_WORLD, size, index, &next, 0, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MUST(!MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm) && sum == size * (size - 1) / 2);
	if (offload && !strcmp(offload, "force")) {
		err = MPI_Neighbor_allgather(in, 1, MPI_INT, out, 1, MPI_INT, comm);
		MUST(err);
	}
	MPI_Comm_free(&comm);
}

/* One rank's addresses count from MPI_BOTTOM, the others' from their buffers. */
static void from_bottom(void)
{
	const int ring[] = { 1 }, ones[] = { 1, 1 };
	const MPI_Datatype types[] = { MPI_INT, MPI_INT };
	const MPI_Aint apart[] = { 0, sizeof(int) };
	MPI_Aint at[2], to[2];
	MPI_Comm comm;

	MPI_Cart_create(MPI_COMM_WORLD, 1, &size, ring, 0, &comm);
	for (int i = 0; i < 2; i++) {
		in[i] = 10 * rank + i;
		out[i] = -1;
		MPI_Get_address(&in[i], &at[i]);
		MPI_Get_address(&out[i], &to[i]);
	}
	if (rank)
		MPI_Neighbor_alltoallw(in, ones, apart, types, out, ones, apart, types, comm);
	else
		MPI_Neighbor_alltoallw(MPI_BOTTOM, ones, at, types, MPI_BOTTOM, ones, to, types, comm);
	MUST(out[0] == 10 * ((rank + size - 1) % size) + 1 && out[1] == 10 * ((rank + 1) % size));
	MPI_Comm_free(&comm);
}

/* The last rank has no neighbours and gives nothing, and all go on together. */
static void alone(void)
{
	int others = size - 1, degree = rank < others ? 1 : 0;
	int left = (rank + others - 1) % others, right = (rank + 1) % others, count = degree ? 3 : 0;
	MPI_Request request;
	MPI_Comm comm;

	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degree, &left, unweighted, degree, &right,
				       unweighted, MPI_INFO_NULL, 0, &comm);
	for (int i = 0; i < 3; i++)
		in[i] = 10 * rank + i;
	for (int turn = 0; turn < 3; turn++) {
		memset(out, -1, sizeof(out));
		if (turn == 0)
			MPI_Neighbor_allgather(in, count, MPI_INT, out, count, MPI_INT, comm);
		else if (turn == 1)
			MPI_Neighbor_alltoall(in, count, MPI_INT, out, count, MPI_INT, comm);
		else
			MPI_Ineighbor_alltoall(in, count, MPI_INT, out, count, MPI_INT, comm, &request);
		if (turn == 2)
			MPI_Wait(&request, MPI_STATUS_IGNORE);
		MPI_Barrier(comm);
		for (int i = 0; i < 3; i++)
			MUST(out[i] == (degree ? 10 * left + i : -1));
		MUST(out[3] == -1);
	}
	MPI_Comm_free(&comm);
}

static void no_topology(void)
{
	int err;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	err = MPI_Neighbor_allgather(in, 1, MPI_INT, out, 1, MPI_INT, MPI_COMM_WORLD);
	MUST(err);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void run_grids(void)
{
	const int line[] = { size }, flat[] = { size, 1 }, wide[] = { size / 2, 2 };
	const int open[] = { 0, 0 }, ring[] = { 1, 1 };
	struct graph graph;

	grid(&graph, "a ring", 1, line, ring);
	run(&graph);
	MPI_Comm_free(&graph.comm);
	grid(&graph, "a line", 2, flat, open);
	run(&graph);
	MPI_Comm_free(&graph.comm);
	grid(&graph, "a ring of rings of one", 2, flat, ring);
	run(&graph);
	MPI_Comm_free(&graph.comm);
	if (size % 2)
		return;
	grid(&graph, "a torus with sides of two", 2, wide, ring);
	run(&graph);
	MPI_Comm_free(&graph.comm);
}

int main(int argc, char **argv)
{
	void (*const makes[])(struct graph *graph) = { star, several, one_way, distributed };

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MUST(size >= 3 && size <= EDGES / 2);
	unweighted = MPI_UNWEIGHTED;
	no_topology();
	run_grids();
	for (int i = 0; i < 4; i++) {
		struct graph graph;

		makes[i](&graph);
		run(&graph);
		MPI_Comm_free(&graph.comm);
	}
	one_sided();
	from_bottom();
	alone();
	if (!rank)
		puts("right");
	MPI_Finalize();
	return 0;
}
