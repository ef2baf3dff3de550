// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The collectives that muster_perf knows: a row each, and how each is called. Where
 * blocks have lengths, displacements and types of their own, these are all alike, so that
 * a line says what the form costs beside the plain one. Neighbours are those on a ring.
 */
#include "perf.h"

#include <stdlib.h>

static int allreduce(const struct perf *perf, uint64_t count, void *out)
{
	const struct perf_options *o = perf->options;

	return muster_allreduce(perf->world, perf->in, out, count, o->type, o->op);
}

static int reduce(const struct perf *perf, uint64_t count, void *out)
{
	const struct perf_options *o = perf->options;

	return muster_reduce(perf->world, perf->in, out, count, o->type, o->op, o->root);
}

static int broadcast(const struct perf *perf, uint64_t count, void *out)
{
	const struct perf_options *o = perf->options;

	return muster_broadcast(perf->world, perf->rank == o->root ? perf->in : out, count,
				o->type, o->root);
}

static int barrier(const struct perf *perf, uint64_t count, void *out)
{
	(void)count;
	(void)out;
	return muster_barrier(perf->world);
}

static int allgather(const struct perf *perf, uint64_t count, void *out)
{
	return muster_allgather(perf->world, perf->in, out, count, perf->options->type);
}

static int reduce_scatter_block(const struct perf *perf, uint64_t count, void *out)
{
	const struct perf_options *o = perf->options;

	return muster_reduce_scatter_block(perf->world, perf->in, out, count, o->type, o->op);
}

static int alltoall(const struct perf *perf, uint64_t count, void *out)
{
	return muster_alltoall(perf->world, perf->in, out, count, perf->options->type);
}

static int gather(const struct perf *perf, uint64_t count, void *out)
{
	const struct perf_options *o = perf->options;

	return muster_gather(perf->world, perf->in, out, count, o->type, o->root);
}

static int scatter(const struct perf *perf, uint64_t count, void *out)
{
	const struct perf_options *o = perf->options;

	return muster_scatter(perf->world, perf->in, out, count, o->type, o->root);
}

static int scan(const struct perf *perf, uint64_t count, void *out)
{
	const struct perf_options *o = perf->options;

	return muster_scan(perf->world, perf->in, out, count, o->type, o->op);
}

static int exscan(const struct perf *perf, uint64_t count, void *out)
{
	const struct perf_options *o = perf->options;

	return muster_exscan(perf->world, perf->in, out, count, o->type, o->op);
}

/* ---- by counts ------------------------------------------------------------------- */

static const uint64_t *equal_counts(const struct perf *perf, uint64_t count)
{
	for (uint32_t i = 0; i < perf->nr_counts; i++)
		perf->counts[i] = count;
	return perf->counts;
}

static int allgatherv(const struct perf *perf, uint64_t count, void *out)
{
	return muster_allgatherv(perf->world, perf->in, out, equal_counts(perf, count), NULL,
				 perf->options->type);
}

static int reduce_scatter(const struct perf *perf, uint64_t count, void *out)
{
	const struct perf_options *o = perf->options;

	return muster_reduce_scatter(perf->world, perf->in, out, equal_counts(perf, count),
				     o->type, o->op);
}

static int gatherv(const struct perf *perf, uint64_t count, void *out)
{
	const struct perf_options *o = perf->options;

	return muster_gatherv(perf->world, perf->in, count, out, equal_counts(perf, count), NULL,
			      o->type, o->root);
}

static int scatterv(const struct perf *perf, uint64_t count, void *out)
{
	const struct perf_options *o = perf->options;

	return muster_scatterv(perf->world, perf->in, equal_counts(perf, count), NULL, out, count,
			       o->type, o->root);
}

static int alltoallv(const struct perf *perf, uint64_t count, void *out)
{
	const uint64_t *counts = equal_counts(perf, count);

	return muster_alltoallv(perf->world, perf->in, counts, NULL, out, counts, NULL,
				perf->options->type);
}

/* One behind the other, in bytes. */
static const uint64_t *displacements(const struct perf *perf, uint64_t count)
{
	for (uint32_t i = 0; i < perf->nr_counts; i++)
		perf->displs[i] = i * count * perf_type_bytes(perf->options->type);
	return perf->displs;
}

static int alltoallw(const struct perf *perf, uint64_t count, void *out)
{
	const uint64_t *counts = equal_counts(perf, count), *displs = displacements(perf, count);

	return muster_alltoallw(perf->world, perf->in, counts, displs, perf->types, out, counts,
				displs, perf->types);
}

/* ---- of neighbours ----------------------------------------------------------------- */

static int neighbour_allgather(const struct perf *perf, uint64_t count, void *out)
{
	return muster_neighbour_allgather(perf->world, perf->in, out, count, perf->options->type);
}

static int neighbour_alltoall(const struct perf *perf, uint64_t count, void *out)
{
	return muster_neighbour_alltoall(perf->world, perf->in, out, count, perf->options->type);
}

static int neighbour_allgatherv(const struct perf *perf, uint64_t count, void *out)
{
	return muster_neighbour_allgatherv(perf->world, perf->in, count, out,
					   equal_counts(perf, count), NULL, perf->options->type);
}

static int neighbour_alltoallv(const struct perf *perf, uint64_t count, void *out)
{
	const uint64_t *counts = equal_counts(perf, count);

	return muster_neighbour_alltoallv(perf->world, perf->in, counts, NULL, out, counts, NULL,
					  perf->options->type);
}

static int neighbour_alltoallw(const struct perf *perf, uint64_t count, void *out)
{
	const uint64_t *counts = equal_counts(perf, count), *displs = displacements(perf, count);

	return muster_neighbour_alltoallw(perf->world, perf->in, counts, displs, perf->types, out,
					  counts, displs, perf->types);
}

uint32_t perf_neighbour(const struct perf *perf, uint32_t which)
{
	return (perf->rank + (which ? 1 : perf->size - 1)) % perf->size;
}

void perf_collectives_open(struct perf *perf)
{
	const uint32_t ring[PERF_NEIGHBOURS] = { perf_neighbour(perf, 0), perf_neighbour(perf, 1) };

	perf->nr_counts = perf->size > PERF_NEIGHBOURS ? perf->size : PERF_NEIGHBOURS;
	perf->counts = calloc(perf->nr_counts, sizeof(*perf->counts));
	perf->displs = calloc(perf->nr_counts, sizeof(*perf->displs));
	perf->types = calloc(perf->nr_counts, sizeof(*perf->types));
	if (!perf->counts || !perf->displs || !perf->types)
		perf_die("no memory for the counts");
	for (uint32_t i = 0; i < perf->nr_counts; i++)
		perf->types[i] = perf->options->type;
	perf_check(perf, muster_comm_neighbours(perf->world, PERF_NEIGHBOURS, ring,
						PERF_NEIGHBOURS, ring), "neighbours");
}

void perf_collectives_close(struct perf *perf)
{
	free(perf->counts);
	free(perf->displs);
	free(perf->types);
}

uint64_t perf_blocks(const struct perf *perf, enum perf_blocks blocks)
{
	if (blocks == PERF_BLOCKS_RANKS)
		return perf->size;
	return blocks == PERF_BLOCKS_NEIGHBOURS ? PERF_NEIGHBOURS : 1;
}

uint64_t perf_blocks_max(const struct perf *perf, enum perf_collective collective)
{
	uint64_t in = perf_blocks(perf, perf_kinds[collective].in_blocks);
	uint64_t out = perf_blocks(perf, perf_kinds[collective].out_blocks);

	return in > out ? in : out;
}

#define ONE	PERF_BLOCKS_ONE
#define RANKS	PERF_BLOCKS_RANKS
#define NEAR	PERF_BLOCKS_NEIGHBOURS

/* name, in, out, one_way, at_root, rooted, combines, by_counts */
const struct perf_kind perf_kinds[PERF_COLLECTIVES] = {
	[PERF_ALLREDUCE] = { "allreduce", ONE, ONE, 0, 0, 0, 1, 0, allreduce },
	[PERF_REDUCE] = { "reduce", ONE, ONE, 1, 1, 1, 1, 0, reduce },
	[PERF_BROADCAST] = { "broadcast", ONE, ONE, 1, 0, 1, 0, 0, broadcast },
	[PERF_BARRIER] = { "barrier", ONE, ONE, 0, 0, 0, 0, 0, barrier },
	[PERF_ALLGATHER] = { "allgather", ONE, RANKS, 0, 0, 0, 0, 0, allgather },
	[PERF_REDUCE_SCATTER_BLOCK] = { "reduce_scatter_block", RANKS, ONE, 0, 0, 0, 1, 0,
					reduce_scatter_block },
	[PERF_ALLTOALL] = { "alltoall", RANKS, RANKS, 0, 0, 0, 0, 0, alltoall },
	[PERF_GATHER] = { "gather", ONE, RANKS, 1, 1, 1, 0, 0, gather },
	[PERF_SCATTER] = { "scatter", RANKS, ONE, 1, 0, 1, 0, 0, scatter },
	[PERF_SCAN] = { "scan", ONE, ONE, 1, 0, 0, 1, 0, scan },
	[PERF_EXSCAN] = { "exscan", ONE, ONE, 1, 0, 0, 1, 0, exscan },
	[PERF_ALLGATHERV] = { "allgatherv", ONE, RANKS, 0, 0, 0, 0, 1, allgatherv },
	[PERF_REDUCE_SCATTER] = { "reduce_scatter", RANKS, ONE, 0, 0, 0, 1, 1, reduce_scatter },
	[PERF_GATHERV] = { "gatherv", ONE, RANKS, 1, 1, 1, 0, 1, gatherv },
	[PERF_SCATTERV] = { "scatterv", RANKS, ONE, 1, 0, 1, 0, 1, scatterv },
	[PERF_ALLTOALLV] = { "alltoallv", RANKS, RANKS, 0, 0, 0, 0, 1, alltoallv },
	[PERF_ALLTOALLW] = { "alltoallw", RANKS, RANKS, 0, 0, 0, 0, 1, alltoallw },
	[PERF_NEIGHBOUR_ALLGATHER] = { "neighbour_allgather", ONE, NEAR, 0, 0, 0, 0, 0,
				       neighbour_allgather },
	[PERF_NEIGHBOUR_ALLTOALL] = { "neighbour_alltoall", NEAR, NEAR, 0, 0, 0, 0, 0,
				      neighbour_alltoall },
	[PERF_NEIGHBOUR_ALLGATHERV] = { "neighbour_allgatherv", ONE, NEAR, 0, 0, 0, 0, 1,
					neighbour_allgatherv },
	[PERF_NEIGHBOUR_ALLTOALLV] = { "neighbour_alltoallv", NEAR, NEAR, 0, 0, 0, 0, 1,
				       neighbour_alltoallv },
	[PERF_NEIGHBOUR_ALLTOALLW] = { "neighbour_alltoallw", NEAR, NEAR, 0, 0, 0, 0, 1,
				       neighbour_alltoallw },
};
