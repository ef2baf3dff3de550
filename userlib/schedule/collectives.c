// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What each collective means: a row says who contributes to a chunk at the start
 * and who must have the combination of all contributions at the end (SCCL, tables
 * 1 and 2). Text form, checker and messages follow from the row alone.
 */
#include "schedule.h"

#define WHO(has, needs) MUSTER_WHO_##has, MUSTER_WHO_##needs

/* name, has, needs, combines, has_data, prefix */
static const struct muster_coll_row rows[] = {
	[MUSTER_COLL_BARRIER] = { "barrier", WHO(ALL, ALL), true, false, false },
	[MUSTER_COLL_BROADCAST] = { "broadcast", WHO(ROOT, ALL), false, true, false },
	[MUSTER_COLL_REDUCE] = { "reduce", WHO(ALL, ROOT), true, true, false },
	[MUSTER_COLL_ALLREDUCE] = { "allreduce", WHO(ALL, ALL), true, true, false },
	[MUSTER_COLL_REDUCE_SCATTER] = { "reduce-scatter", WHO(ALL, OWNER), true, true, false },
	[MUSTER_COLL_ALLGATHER] = { "allgather", WHO(OWNER, ALL), false, true, false },
	[MUSTER_COLL_GATHER] = { "gather", WHO(OWNER, ROOT), false, true, false },
	[MUSTER_COLL_SCATTER] = { "scatter", WHO(ROOT, OWNER), false, true, false },
	[MUSTER_COLL_ALLTOALL] = { "alltoall", WHO(OWNER, PARTNER), false, true, false },
	[MUSTER_COLL_SCAN] = { "scan", WHO(ALL, ALL), true, true, true },
	[MUSTER_COLL_CUSTOM] = { "custom", WHO(PLACES, PLACES), true, true, false },
	[MUSTER_COLL_EXSCAN] = { "exscan", WHO(ALL, LATER), true, true, true },
	[MUSTER_COLL_ALLGATHERV] = { "allgatherv", WHO(OWNER, ALL), false, true, false },
	[MUSTER_COLL_REDUCE_SCATTERV] = {
		"reduce-scatter by counts", WHO(ALL, OWNER), true, true, false,
	},
	[MUSTER_COLL_GATHERV] = { "gatherv", WHO(OWNER, ROOT), false, true, false },
	[MUSTER_COLL_SCATTERV] = { "scatterv", WHO(ROOT, OWNER), false, true, false },
	[MUSTER_COLL_ALLTOALLV] = { "alltoallv", WHO(OWNER, PARTNER), false, true, false },
	[MUSTER_COLL_ALLTOALLW] = { "alltoallw", WHO(OWNER, PARTNER), false, true, false },
	[MUSTER_COLL_NEIGHBOURS] = { "neighbours", WHO(ALL, ALL), false, true, false },
	[MUSTER_COLL_NEIGHBOUR_ALLGATHER] = {
		"neighbour-allgather", WHO(ALL, ALL), false, true, false,
	},
	[MUSTER_COLL_NEIGHBOUR_ALLGATHERV] = {
		"neighbour-allgatherv", WHO(ALL, ALL), false, true, false,
	},
	[MUSTER_COLL_NEIGHBOUR_ALLTOALL] = {
		"neighbour-alltoall", WHO(ALL, ALL), false, true, false,
	},
	[MUSTER_COLL_NEIGHBOUR_ALLTOALLV] = {
		"neighbour-alltoallv", WHO(ALL, ALL), false, true, false,
	},
	[MUSTER_COLL_NEIGHBOUR_ALLTOALLW] = {
		"neighbour-alltoallw", WHO(ALL, ALL), false, true, false,
	},
	[MUSTER_COLL_EXACT_SUM] = { "exact sum", WHO(ALL, ALL), false, true, false },
};

const struct muster_coll_row *muster_coll_row(enum muster_coll coll)
{
	if ((size_t)coll >= sizeof(rows) / sizeof(rows[0]) || !rows[coll].name)
		return NULL;
	return &rows[coll];
}

const char *muster_coll_name(enum muster_coll coll)
{
	const struct muster_coll_row *row = muster_coll_row(coll);

	return row ? row->name : "unknown";
}

bool muster_coll_rooted(enum muster_coll coll)
{
	const struct muster_coll_row *row = muster_coll_row(coll);

	return row && (row->has == MUSTER_WHO_ROOT || row->needs == MUSTER_WHO_ROOT);
}

uint64_t muster_coll_chunks_unit(enum muster_coll coll, uint32_t ranks)
{
	const struct muster_coll_row *row = muster_coll_row(coll);
	bool owned = row && (row->has == MUSTER_WHO_OWNER || row->needs == MUSTER_WHO_OWNER);

	if (row && row->needs == MUSTER_WHO_PARTNER)
		return (uint64_t)ranks * ranks;
	return owned ? ranks : 1;
}

static bool concerns(enum muster_who who, const struct muster_schedule *schedule, uint32_t chunk,
		     uint32_t rank)
{
	uint32_t each = schedule->chunks / schedule->ranks;

	switch (who) {
	case MUSTER_WHO_ROOT:
		return rank == schedule->root;
	case MUSTER_WHO_LATER:
		return rank;
	case MUSTER_WHO_OWNER:
		return rank == chunk / each;
	case MUSTER_WHO_PARTNER:
		return rank == chunk % each / (each / schedule->ranks);
	case MUSTER_WHO_ALL:
	case MUSTER_WHO_PLACES:
		break;
	}
	return true;
}

static uint8_t place_of(const struct muster_schedule *schedule, uint32_t chunk, uint32_t rank)
{
	return schedule->places[(size_t)chunk * schedule->ranks + rank];
}

/* Of an alltoall by rank the chunks are those that it has, and those that it needs. */
static bool is_by_peer(const struct muster_schedule *schedule)
{
	return schedule->generator && schedule->coll == MUSTER_COLL_ALLTOALL;
}

bool muster_coll_has(const struct muster_schedule *schedule, uint32_t chunk, uint32_t rank)
{
	if (is_by_peer(schedule))
		return true;
	if (schedule->coll == MUSTER_COLL_CUSTOM)
		return place_of(schedule, chunk, rank) & MUSTER_PLACE_HAS;
	return concerns(muster_coll_row(schedule->coll)->has, schedule, chunk, rank);
}

uint32_t muster_coll_origin(const struct muster_schedule *schedule, uint32_t chunk, uint32_t rank)
{
	uint32_t first = 0;

	if (schedule->coll != MUSTER_COLL_CUSTOM ||
	    place_of(schedule, chunk, rank) & MUSTER_PLACE_OWN)
		return rank;
	while (first < rank && !(place_of(schedule, chunk, first) & MUSTER_PLACE_HAS))
		first++;
	return first;
}

bool muster_coll_needs(const struct muster_schedule *schedule, uint32_t chunk, uint32_t rank)
{
	if (schedule->own)
		return chunk < schedule->own->needed;
	if (is_by_peer(schedule))
		return true;
	if (schedule->coll == MUSTER_COLL_CUSTOM)
		return place_of(schedule, chunk, rank) & MUSTER_PLACE_NEEDS;
	return concerns(muster_coll_row(schedule->coll)->needs, schedule, chunk, rank);
}

bool muster_coll_wants(enum muster_coll coll, uint32_t rank, uint32_t root)
{
	enum muster_who needs = muster_coll_row(coll)->needs;

	if (needs == MUSTER_WHO_ROOT)
		return rank == root;
	return needs != MUSTER_WHO_LATER || rank;
}

bool muster_coll_in_place(enum muster_coll coll)
{
	return coll == MUSTER_COLL_CUSTOM;
}
