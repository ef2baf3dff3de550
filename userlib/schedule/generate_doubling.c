// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Exchanges at distances that are powers of two: recursive doubling of whole
 * messages, and Rabenseifner's recursive halving (reduce-scatter) followed by
 * recursive doubling (allgather) or a binomial gather of chunks.
 *
 * "Place" v is rank (root + v) mod ranks. The first 2^k places, the largest power
 * of two that there is, form the core. A place beyond it folds: it gives what it
 * has to its partner in the core first, and gets the result from it last.
 */
#include "build.h"

static uint32_t core_size(uint32_t ranks)
{
	uint32_t core = 1;

	while (core <= ranks / 2)
		core <<= 1;
	return core;
}

/*
 * nr chunks from `first`, less those that belong to another part. A step in which
 * a rank receives more than it has slots could not be lowered, so steps of many
 * chunks are split into parts; chunks are independent, so any part may be first.
 */
static void add_part(struct muster_builder *builder, uint32_t first, uint32_t nr, uint32_t part,
		     uint32_t from, uint32_t to, bool reduce)
{
	const struct muster_schedule *schedule = &builder->schedule;
	uint32_t begin = part * MUSTER_SLOTS_MAX, end = begin + MUSTER_SLOTS_MAX;

	for (uint32_t i = begin; i < end && i < nr; i++)
		muster_builder_add(builder, first + i, (schedule->root + from) % schedule->ranks,
				   (schedule->root + to) % schedule->ranks, reduce);
}

static uint32_t nr_parts(uint32_t nr)
{
	return (nr + MUSTER_SLOTS_MAX - 1) / MUSTER_SLOTS_MAX;
}

static void fold(struct muster_builder *builder, uint32_t core, bool in)
{
	uint32_t ranks = builder->schedule.ranks, chunks = builder->schedule.chunks;

	for (uint32_t part = 0; part < nr_parts(chunks); part++, muster_builder_step(builder))
		for (uint32_t v = core; v < ranks; v++)
			add_part(builder, 0, chunks, part, in ? v : v - core, in ? v - core : v,
				 in);
}

/* Who sends which block of `distance` chunks to its partner at that distance. */
enum exchange {
	HALVE,		/* all: the partner's block, which the partner reduces */
	DOUBLE,		/* all: their own, which is complete */
	GATHER,		/* the upper ones: their own */
};

static void exchange(struct muster_builder *builder, uint32_t core, uint32_t distance,
		     enum exchange what)
{
	for (uint32_t part = 0; part < nr_parts(distance); part++, muster_builder_step(builder)) {
		for (uint32_t v = 0; v < core; v++) {
			uint32_t partner = v ^ distance, owner = what == HALVE ? partner : v;

			if (what == GATHER && (v & (2 * distance - 1)) != distance)
				continue;
			add_part(builder, owner & ~(distance - 1), distance, part, v, partner,
				 what == HALVE);
		}
	}
}

void muster_generate_rabenseifner(struct muster_builder *builder, enum muster_coll coll,
				  uint32_t ranks, uint32_t root)
{
	enum exchange last = coll == MUSTER_COLL_REDUCE ? GATHER : DOUBLE;
	uint32_t core = core_size(ranks);

	muster_builder_init(builder, "rabenseifner", coll, ranks, core, root);
	fold(builder, core, true);
	for (uint32_t distance = core / 2; distance; distance /= 2)
		exchange(builder, core, distance, HALVE);
	for (uint32_t distance = 1; distance < core; distance *= 2)
		exchange(builder, core, distance, last);
	if (coll == MUSTER_COLL_ALLREDUCE)
		fold(builder, core, false);
}

void muster_generate_doubling(struct muster_builder *builder, enum muster_coll coll,
			      uint32_t ranks, uint32_t root)
{
	uint32_t core = core_size(ranks);

	muster_builder_init(builder, "recursive-doubling", coll, ranks, 1, root);
	fold(builder, core, true);
	for (uint32_t distance = 1; distance < core; distance *= 2, muster_builder_step(builder))
		for (uint32_t v = 0; v < core; v++)
			muster_builder_add(builder, 0, v, v ^ distance, true);
	fold(builder, core, false);
}
