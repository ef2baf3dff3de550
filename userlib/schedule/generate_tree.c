// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Binomial trees over one chunk. Ranks are counted from the root, so that any
 * root will do: "place" v is rank (root + v) mod ranks. Place v has its subtree
 * in places v to v + 2^k - 1, where 2^k is the lowest bit set in v.
 */
#include "build.h"

static void add(struct muster_builder *builder, uint32_t from, uint32_t to, bool reduce)
{
	const struct muster_schedule *schedule = &builder->schedule;

	muster_builder_add(builder, 0, (schedule->root + from) % schedule->ranks,
			   (schedule->root + to) % schedule->ranks, reduce);
}

/* Upwards: a parent hears its smallest subtree first. */
static void gather(struct muster_builder *builder)
{
	uint32_t ranks = builder->schedule.ranks;

	for (uint32_t bit = 1; bit < ranks; bit <<= 1, muster_builder_step(builder))
		for (uint32_t v = bit; v < ranks; v += 2 * bit)
			add(builder, v, v - bit, true);
}

/* Downwards: the largest subtree is served first. */
static void spread(struct muster_builder *builder)
{
	uint32_t ranks = builder->schedule.ranks, top = 1;

	while (top < ranks)
		top <<= 1;
	for (uint32_t bit = top >> 1; bit; bit >>= 1, muster_builder_step(builder))
		for (uint32_t v = bit; v < ranks; v += 2 * bit)
			add(builder, v - bit, v, false);
}

void muster_generate_binomial(struct muster_builder *builder, enum muster_coll coll,
			      uint32_t ranks, uint32_t root)
{
	muster_builder_init(builder, "binomial", coll, ranks, 1, root);
	if (coll != MUSTER_COLL_BROADCAST)
		gather(builder);
	if (coll != MUSTER_COLL_REDUCE)
		spread(builder);
}
