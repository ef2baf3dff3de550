// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Neighbourhood collectives: an MPI communicator's topology as the library's graph, which is told to
 * it when the communicator joins; and their calls. Where a rank has one neighbour several times,
 * the k-th block that it sends there is the k-th that comes; on a grid, what goes to the
 * one side comes from the other, also where both sides are the same rank.
 */
#include "shim.h"

#include <errno.h>
#include <stdlib.h>

enum { EDGES_MAX = 65536 };	/* of a rank, each way: the library's limit */

/* ---- the graph ---------------------------------------------------------------------------------- */

static int edges_new(struct muster_mpi_edges *edges, int nr)
{
	edges->ranks = calloc((size_t)nr + 1, sizeof(*edges->ranks));
	edges->order = calloc((size_t)nr + 1, sizeof(*edges->order));
	edges->straight = true;
	return edges->ranks && edges->order && nr <= EDGES_MAX ? 0 : -ENOMEM;
}

/* The caller's block of that number; nobody at the rim of a grid has one. */
static void edges_add(struct muster_mpi_edges *edges, int rank, int block)
{
	edges->straight &= rank != MPI_PROC_NULL && block == (int)edges->nr;
	if (rank == MPI_PROC_NULL)
		return;
	edges->ranks[edges->nr] = (uint32_t)rank;
	edges->order[edges->nr++] = (uint32_t)block;
}

static void edges_add_all(struct muster_mpi_edges *edges, int nr, const int *ranks)
{
	for (int i = 0; i < nr; i++)
		edges_add(edges, ranks[i], i);
}

static int grid(MPI_Comm handle, struct muster_mpi_graph *graph)
{
	int dims, before, after, err;

	if (PMPI_Cartdim_get(handle, &dims))
		return -EINVAL;
	err = edges_new(&graph->to, 2 * dims) ?: edges_new(&graph->from, 2 * dims);
	for (int d = 0; d < dims && !err; d++) {
		int swapped;

		if (PMPI_Cart_shift(handle, d, 1, &before, &after))
			return -EINVAL;
		swapped = before == after && before != MPI_PROC_NULL;
		edges_add(&graph->to, before, 2 * d);
		edges_add(&graph->to, after, 2 * d + 1);
		edges_add(&graph->from, before, 2 * d + swapped);
		edges_add(&graph->from, after, 2 * d + !swapped);
	}
	return err;
}

static int same_both_ways(MPI_Comm handle, int rank, struct muster_mpi_graph *graph)
{
	int nr, err, *ranks;

	if (PMPI_Graph_neighbors_count(handle, rank, &nr))
		return -EINVAL;
	ranks = calloc((size_t)nr + 1, sizeof(*ranks));
	err = ranks ? edges_new(&graph->to, nr) ?: edges_new(&graph->from, nr) : -ENOMEM;
	if (!err && PMPI_Graph_neighbors(handle, rank, nr, ranks))
		err = -EINVAL;
	if (!err) {
		edges_add_all(&graph->to, nr, ranks);
		edges_add_all(&graph->from, nr, ranks);
	}
	free(ranks);
	return err;
}

static int each_way(MPI_Comm handle, struct muster_mpi_graph *graph)
{
	int nr_from, nr_to, weighted, err, *ranks, *weights;
	size_t nr;

	if (PMPI_Dist_graph_neighbors_count(handle, &nr_from, &nr_to, &weighted))
		return -EINVAL;
	nr = (size_t)nr_from + (size_t)nr_to + 1;
	ranks = calloc(2 * nr, sizeof(*ranks));
	weights = ranks + nr;
	err = ranks ? edges_new(&graph->to, nr_to) ?: edges_new(&graph->from, nr_from) : -ENOMEM;
	if (!err && PMPI_Dist_graph_neighbors(handle, nr_from, ranks, weights, nr_to, ranks + nr_from,
					      weights + nr_from))
		err = -EINVAL;
	if (!err) {
		edges_add_all(&graph->from, nr_from, ranks);
		edges_add_all(&graph->to, nr_to, ranks + nr_from);
	}
	free(ranks);
	return err;
}

void muster_mpi_graph_free(struct muster_mpi_graph *graph)
{
	if (!graph)
		return;
	free(graph->to.ranks);
	free(graph->to.order);
	free(graph->from.ranks);
	free(graph->from.order);
	free(graph);
}

static int look(MPI_Comm handle, int rank, struct muster_mpi_graph *graph)
{
	int kind;

	if (!graph || PMPI_Topo_test(handle, &kind))
		return -ENOMEM;
	return kind == MPI_CART ? grid(handle, graph) :
	       kind == MPI_GRAPH ? same_both_ways(handle, rank, graph) : each_way(handle, graph);
}

bool muster_mpi_has_topology(MPI_Comm handle)
{
	int kind;

	return !PMPI_Topo_test(handle, &kind) && kind != MPI_UNDEFINED;
}

int muster_mpi_graph_get(MPI_Comm handle, int rank, struct muster_mpi_graph **graph)
{
	enum { KNOWN, NEIGHBOURS, WORDS };
	int mine[WORDS] = { 0 }, least[WORDS] = { 0 };

	*graph = NULL;
	if (!muster_mpi_has_topology(handle))
		return 0;
	*graph = calloc(1, sizeof(**graph));
	mine[KNOWN] = !look(handle, rank, *graph);
	mine[NEIGHBOURS] = mine[KNOWN] && (*graph)->to.nr + (*graph)->from.nr > 0;
	if (!muster_mpi_beneath.Allreduce(mine, least, WORDS, MPI_INT, MPI_MIN, handle) && least[KNOWN]) {
		(*graph)->some_alone = !least[NEIGHBOURS];
		return 0;
	}
	muster_mpi_graph_free(*graph);
	*graph = NULL;
	return -ENOMEM;
}

/* ---- calls -------------------------------------------------------------------------------------- */

/* Blocks of one length. Where there are none, how long one would be is all that is looked at. */
static int even(struct muster_mpi_side *side, const void *buffer, int count, MPI_Datatype type,
		const struct muster_mpi_edges *edges, bool is_one)
{
	struct muster_mpi_type info;
	int err;

	if (!edges->nr) {
		*side = (struct muster_mpi_side){ 0 };
		if (count > 0 && muster_mpi_type_get(type, &info))
			side->bytes = (uint64_t)count * info.bytes;
		return 0;
	}
	err = muster_mpi_side_even(side, buffer, count, type, is_one ? 1 : edges->nr);
	return err || is_one || edges->straight ? err : muster_mpi_side_order(side, edges->order);
}

static int sides(struct muster_mpi_op *op, const struct muster_mpi_call *call)
{
	const struct muster_mpi_graph *graph = op->comm->graph;
	const struct muster_mpi_blocks ins = muster_mpi_blocks_in(call, graph->to.order);
	const struct muster_mpi_blocks outs = muster_mpi_blocks_out(call, graph->from.order);
	bool gathers = call->coll == COLL_Neighbor_allgather || call->coll == COLL_Neighbor_allgatherv;
	int err;

	if (gathers || call->coll == COLL_Neighbor_alltoall)
		err = even(&op->in, call->in, call->in_count, call->in_type, &graph->to, gathers);
	else
		err = muster_mpi_side_uneven(&op->in, call->in, &ins, graph->to.nr);
	if (err)
		return err;
	if (call->coll == COLL_Neighbor_allgather || call->coll == COLL_Neighbor_alltoall)
		return even(&op->out, call->out, call->out_count, call->out_type, &graph->from, false);
	return muster_mpi_side_uneven(&op->out, call->out, &outs, graph->from.nr);
}

/* A rank that nobody tells anything knows by what it sends how long blocks are. */
static uint64_t block_bytes(const struct muster_mpi_op *op)
{
	return op->comm->graph->from.nr ? op->out.bytes : op->in.bytes;
}

static int give(struct muster_mpi_op *op, enum muster_mpi_coll coll)
{
	struct muster_comm *comm = op->comm->muster;
	const struct muster_mpi_side *in = &op->in, *out = &op->out;

	switch (coll) {
	case COLL_Neighbor_allgather:
		return MUSTER_MPI_LOCKED(muster_neighbour_allgather_start(
			comm, in->at, out->at, block_bytes(op), MUSTER_U8, &op->request));
	case COLL_Neighbor_alltoall:
		return MUSTER_MPI_LOCKED(muster_neighbour_alltoall_start(
			comm, in->at, out->at, block_bytes(op), MUSTER_U8, &op->request));
	case COLL_Neighbor_allgatherv:
		return MUSTER_MPI_LOCKED(muster_neighbour_allgatherv_start(
			comm, in->at, in->bytes, out->at, out->counts, out->displs, MUSTER_U8,
			&op->request));
	default:
		return MUSTER_MPI_LOCKED(muster_neighbour_alltoallv_start(
			comm, in->at, in->counts, in->displs, out->at, out->counts, out->displs,
			MUSTER_U8, &op->request));
	}
}

static int start(struct muster_mpi_op *op, const struct muster_mpi_call *call)
{
	int err = sides(op, call);

	if (!err)
		err = muster_mpi_sides_part(&op->in, op->in.low, &op->out, op->out.low);
	if (!err)
		err = muster_mpi_side_pack(&op->in);
	op->unpack = true;
	return err ? err : give(op, call->coll);
}

/* So many of that length, one behind the other. */
static int blocks_fill(uint32_t nr, int count, MPI_Datatype type, int *counts, MPI_Aint *ats)
{
	struct muster_mpi_type info;

	if (nr && !muster_mpi_type_get(type, &info))
		return -EINVAL;
	for (uint32_t i = 0; i < nr; i++) {
		counts[i] = count;
		ats[i] = (MPI_Aint)i * count * info.extent;
	}
	return 0;
}

/* An even one as if lengths were the ranks' own. */
static int start_as_uneven(struct muster_mpi_op *op, const struct muster_mpi_call *call)
{
	uint32_t nr_in = muster_mpi_blocks_nr(call, op->comm, true);
	uint32_t nr_out = muster_mpi_blocks_nr(call, op->comm, false);
	int *counts = calloc((size_t)nr_in + nr_out + 1, sizeof(*counts)), err = -ENOMEM;
	MPI_Aint *ats = calloc((size_t)nr_in + nr_out + 1, sizeof(*ats));
	struct muster_mpi_call uneven = *call;

	if (!counts || !ats)
		goto out;
	uneven.coll = call->coll == COLL_Neighbor_allgather ? COLL_Neighbor_allgatherv : COLL_Neighbor_alltoallv;
	uneven.in_counts = counts;
	uneven.in_ats = ats;
	uneven.out_counts = counts + nr_in;
	uneven.out_ats = ats + nr_in;
	err = blocks_fill(nr_in, call->in_count, call->in_type, counts, ats) ?:
	      blocks_fill(nr_out, call->out_count, call->out_type, counts + nr_in, ats + nr_in);
	if (!err)
		err = start(op, &uneven);
out:
	free(counts);
	free(ats);
	return err;
}

/* Who has no neighbours need not know how long the others' blocks are. */
int muster_mpi_neighbours_start(struct muster_mpi_op *op, const struct muster_mpi_call *call)
{
	bool is_even = call->coll == COLL_Neighbor_allgather || call->coll == COLL_Neighbor_alltoall;

	return (is_even && op->comm->graph->some_alone ? start_as_uneven : start)(op, call);
}
