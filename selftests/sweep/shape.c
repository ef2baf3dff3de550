// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Which blocks a rank has and gets in each collective, and where they lie in its two buffers:
 * muster.h's words for it, a rank at a time. A block's number is its place among those of
 * whom it comes from, so that sender and receiver mean the same elements.
 */
#include "sweep.h"

enum { GAP = 3 };

uint32_t sweep_edge(uint32_t rank, uint32_t ranks, uint32_t k, bool source)
{
	/* The next, itself, the one after, and the next again; of few ranks some are the same. */
	static const uint32_t steps[SWEEP_EDGES] = { 1, 0, 2, 1 };

	return (rank + (source ? ranks - steps[k] % ranks : steps[k])) % ranks;
}

/* Elements that go from one rank to another, where blocks have several lengths. */
static uint64_t length(const struct sweep_case *c, uint32_t from, uint32_t to)
{
	return c->count * ((from * 3 + to * 5 + 1) % 4) / 2;
}

/* Of edge k of who sends: all that it sends along is as long, or each edge has its own. */
static uint64_t edge_length(const struct sweep_case *c, uint32_t from, uint32_t k)
{
	switch (c->coll) {
	case SWEEP_NEIGHBOUR_ALLGATHERV:
		return length(c, from, 0);
	case SWEEP_NEIGHBOUR_ALLTOALLV:
	case SWEEP_NEIGHBOUR_ALLTOALLW:
		return length(c, from, k);
	default:
		return c->count;
	}
}

static void add(struct sweep_side *side, uint64_t count, uint32_t id, uint32_t first, uint32_t last)
{
	side->blocks[side->nr++] = (struct sweep_block){
		.count = count, .id = id, .first = first, .last = last,
	};
}

/* ---- along edges ------------------------------------------------------------------------ */

/* A source's edge by which its block comes here: of several to the same the k-th for the k-th. */
static uint32_t edge_from(const struct sweep_case *c, uint32_t rank, const uint32_t *sources,
			  uint32_t at)
{
	uint32_t before = 0, k = 0;

	for (uint32_t i = 0; i < at; i++)
		before += sources[i] == sources[at];
	while (sweep_edge(sources[at], c->ranks, k, false) != rank || before--)
		k++;
	return k;
}

static void shape_edges(const struct sweep_case *c, uint32_t rank, struct sweep_shape *shape)
{
	bool same = c->coll == SWEEP_NEIGHBOUR_ALLGATHER || c->coll == SWEEP_NEIGHBOUR_ALLGATHERV;

	for (uint32_t k = 0; k < SWEEP_EDGES; k++) {
		shape->sources[k] = sweep_edge(rank, c->ranks, k, true);
		shape->destinations[k] = sweep_edge(rank, c->ranks, k, false);
		if (!same || !k)
			add(&shape->in, edge_length(c, rank, k), k, rank, rank);
	}
	for (uint32_t k = 0; k < SWEEP_EDGES; k++) {
		uint32_t source = shape->sources[k], edge = edge_from(c, rank, shape->sources, k);

		add(&shape->out, edge_length(c, source, same ? 0 : edge), same ? 0 : edge, source,
		    source);
	}
}

/* ---- among all ---------------------------------------------------------------------------- */

/* One block to or from each rank. */
static void shape_exchange(const struct sweep_case *c, uint32_t rank, struct sweep_shape *shape)
{
	bool equal = c->coll == SWEEP_ALLTOALL;

	for (uint32_t r = 0; r < c->ranks; r++) {
		add(&shape->in, equal ? c->count : length(c, rank, r), r, rank, rank);
		add(&shape->out, equal ? c->count : length(c, r, rank), rank, r, r);
	}
}

/* Each rank's block to all, or to the root. */
static void shape_gather(const struct sweep_case *c, uint32_t rank, struct sweep_shape *shape)
{
	bool equal = c->coll == SWEEP_ALLGATHER || c->coll == SWEEP_GATHER;
	bool gets = !sweep_colls[c->coll].rooted || rank == shape->root;

	add(&shape->in, equal ? c->count : length(c, rank, 0), 0, rank, rank);
	for (uint32_t r = 0; r < c->ranks && gets; r++)
		add(&shape->out, equal ? c->count : length(c, r, 0), 0, r, r);
}

static void shape_scatter(const struct sweep_case *c, uint32_t rank, struct sweep_shape *shape)
{
	bool equal = c->coll == SWEEP_SCATTER;
	uint32_t root = shape->root;

	for (uint32_t r = 0; r < c->ranks && rank == root; r++)
		add(&shape->in, equal ? c->count : length(c, r, 0), r, root, root);
	add(&shape->out, equal ? c->count : length(c, rank, 0), rank, root, root);
}

static void shape_reduce_scatter(const struct sweep_case *c, uint32_t rank,
				 struct sweep_shape *shape)
{
	bool equal = c->coll == SWEEP_REDUCE_SCATTER_BLOCK;

	for (uint32_t r = 0; r < c->ranks; r++)
		add(&shape->in, equal ? c->count : length(c, r, 0), r, rank, rank);
	add(&shape->out, equal ? c->count : length(c, rank, 0), rank, 0, c->ranks - 1);
}

/* One vector each. */
static void shape_vector(const struct sweep_case *c, uint32_t rank, struct sweep_shape *shape)
{
	uint32_t first = 0, last = c->ranks - 1;

	if (c->coll == SWEEP_BROADCAST)
		first = last = shape->root;
	else if (c->coll == SWEEP_SCAN)
		last = rank;
	else if (c->coll == SWEEP_EXSCAN && rank)
		last = rank - 1;
	add(&shape->in, c->count, 0, rank, rank);
	if ((c->coll == SWEEP_EXSCAN && !rank) ||
	    (c->coll == SWEEP_REDUCE && rank != shape->root))
		add(&shape->out, c->count, 0, 1, 0);
	else
		add(&shape->out, c->count, 0, first, last);
}

/* ---- where they lie -------------------------------------------------------------------------- */

static void lay(struct sweep_side *side, bool spread)
{
	uint64_t at = spread ? GAP : 0;

	for (uint32_t k = 0; k < side->nr; k++) {
		struct sweep_block *block = &side->blocks[spread ? side->nr - 1 - k : k];

		block->displ = at;
		at += block->count + (spread ? GAP : 0);
	}
	side->span = at;
}

/* Which side has places for its blocks that the caller chooses. */
static bool has_places(enum sweep_coll coll, bool in)
{
	switch (coll) {
	case SWEEP_ALLTOALLV:
	case SWEEP_ALLTOALLW:
	case SWEEP_NEIGHBOUR_ALLTOALLV:
	case SWEEP_NEIGHBOUR_ALLTOALLW:
		return true;
	case SWEEP_SCATTERV:
		return in;
	case SWEEP_ALLGATHERV:
	case SWEEP_GATHERV:
	case SWEEP_NEIGHBOUR_ALLGATHERV:
		return !in;
	default:
		return false;
	}
}

static bool can_be_in_place(const struct sweep_case *c, uint32_t rank, uint32_t root)
{
	switch (c->coll) {
	case SWEEP_ALLREDUCE:
	case SWEEP_SCAN:
	case SWEEP_ALLTOALL:
		return true;
	case SWEEP_EXSCAN:	/* rank 0's is not touched: nothing tells whether it was */
		return rank;
	case SWEEP_REDUCE:
		return rank == root;
	default:
		return c->coll == SWEEP_BROADCAST;
	}
}

void sweep_shape(const struct sweep_case *c, uint32_t rank, struct sweep_shape *shape)
{
	uint64_t data = sweep_data(c);

	shape->root = sweep_colls[c->coll].rooted ? (uint32_t)(data >> 8) % c->ranks : 0;
	shape->spread = data >> 40 & 1;
	shape->in_place = c->coll == SWEEP_BROADCAST ||
			  (sweep_hash(c) / 8 % 4 == 0 && can_be_in_place(c, rank, shape->root));
	sweep_shape_blocks(c, rank, shape);
}

void sweep_shape_blocks(const struct sweep_case *c, uint32_t rank, struct sweep_shape *shape)
{
	shape->in.nr = shape->out.nr = 0;
	switch (c->coll) {
	case SWEEP_BARRIER:
		break;
	case SWEEP_ALLTOALL:
	case SWEEP_ALLTOALLV:
	case SWEEP_ALLTOALLW:
		shape_exchange(c, rank, shape);
		break;
	case SWEEP_ALLGATHER:
	case SWEEP_ALLGATHERV:
	case SWEEP_GATHER:
	case SWEEP_GATHERV:
		shape_gather(c, rank, shape);
		break;
	case SWEEP_SCATTER:
	case SWEEP_SCATTERV:
		shape_scatter(c, rank, shape);
		break;
	case SWEEP_REDUCE_SCATTER_BLOCK:
	case SWEEP_REDUCE_SCATTER:
		shape_reduce_scatter(c, rank, shape);
		break;
	case SWEEP_BROADCAST:
	case SWEEP_REDUCE:
	case SWEEP_ALLREDUCE:
	case SWEEP_SCAN:
	case SWEEP_EXSCAN:
		shape_vector(c, rank, shape);
		break;
	default:
		shape_edges(c, rank, shape);
	}
	lay(&shape->in, shape->spread && has_places(c->coll, true));
	lay(&shape->out, shape->spread && has_places(c->coll, false));
}
