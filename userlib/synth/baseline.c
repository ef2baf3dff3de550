// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Chunk by chunk round its ring. What combines goes the other way in time.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "baseline.h"
#include "build.h"

enum { NODES = 8, HOPS = NODES - 1 };

static const struct rings {
	const char *topology;
	uint32_t nr;
	uint8_t order[6][NODES];
} known[] = {
	{ "dgx1", 6, {
		{ 0, 1, 4, 5, 6, 7, 2, 3 }, { 0, 1, 4, 5, 6, 7, 2, 3 }, { 0, 2, 1, 3, 6, 4, 7, 5 },
		{ 3, 2, 7, 6, 5, 4, 1, 0 }, { 3, 2, 7, 6, 5, 4, 1, 0 }, { 5, 7, 4, 6, 3, 1, 2, 0 },
	} },
	{ "z52", 2, { { 0, 3, 5, 4, 7, 6, 1, 2 }, { 2, 1, 6, 7, 4, 5, 3, 0 } } },
};

static uint32_t place_of(const uint8_t *order, uint32_t node)
{
	uint32_t place = 0;

	while (order[place] != node)
		place++;
	return place;
}

/* Hop number `hop` from a node round a ring; backwards in time, the last one first. */
static void add_hop(struct muster_builder *builder, const uint8_t *order, uint32_t node,
		    uint32_t hop, uint32_t chunk, bool backwards)
{
	uint32_t at = place_of(order, node) + (backwards ? HOPS - 1 - hop : hop);
	uint32_t from = order[at % NODES], to = order[(at + 1) % NODES];

	if (backwards)
		muster_builder_add(builder, chunk, to, from, true);
	else
		muster_builder_add(builder, chunk, from, to, false);
}

static void add_allgather(struct muster_builder *builder, const struct rings *rings, bool backwards)
{
	for (uint32_t step = 0; step < HOPS; step++) {
		muster_builder_step(builder);
		for (uint32_t node = 0; node < NODES; node++)
			for (uint32_t ring = 0; ring < rings->nr; ring++)
				add_hop(builder, rings->order[ring], node, step,
					node * rings->nr + ring, backwards);
	}
}

static void add_broadcast(struct muster_builder *builder, const struct rings *rings, uint32_t root,
			  uint32_t pipelined, bool backwards)
{
	for (uint32_t step = 0; step < HOPS - 1 + pipelined; step++) {
		muster_builder_step(builder);
		for (uint32_t share = 0; share < pipelined; share++)
			for (uint32_t ring = 0; ring < rings->nr; ring++)
				if (step >= share && step - share < HOPS)
					add_hop(builder, rings->order[ring], root, step - share,
						share * rings->nr + ring, backwards);
	}
}

int muster_baseline(const char *topology, enum muster_coll coll, uint32_t root, uint32_t pipelined,
		    struct muster_schedule **schedule, char *why, size_t why_len)
{
	bool rooted = coll == MUSTER_COLL_BROADCAST || coll == MUSTER_COLL_REDUCE;
	const struct rings *rings = NULL;
	struct muster_builder builder;
	char name[MUSTER_SCHEDULE_NAME_MAX + 1];

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i].topology, topology))
			rings = &known[i];
	if (!rings || root >= NODES || (rooted && !pipelined) ||
	    (!rooted && coll != MUSTER_COLL_ALLGATHER && coll != MUSTER_COLL_REDUCE_SCATTER &&
	     coll != MUSTER_COLL_ALLREDUCE)) {
		snprintf(why, why_len, "there are rings for dgx1 and z52, and for allgather, "
			 "reduce-scatter, allreduce, broadcast and reduce");
		return -EINVAL;
	}
	snprintf(name, sizeof(name), "%s-rings-%.14s", topology, muster_coll_name(coll));
	muster_builder_init(&builder, name, coll, NODES, rooted ? rings->nr * pipelined :
			    rings->nr * NODES, rooted ? root : 0);
	if (rooted)
		add_broadcast(&builder, rings, root, pipelined, coll == MUSTER_COLL_REDUCE);
	if (!rooted && coll != MUSTER_COLL_ALLGATHER)
		add_allgather(&builder, rings, true);
	if (!rooted && coll != MUSTER_COLL_REDUCE_SCATTER)
		add_allgather(&builder, rings, false);
	return muster_builder_end(&builder, schedule);
}
