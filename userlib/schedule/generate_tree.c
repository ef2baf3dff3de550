// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Binomial trees over one chunk. Ranks are counted from the root, so that any
 * root will do: "place" v is rank (root + v) mod ranks. Place v has its subtree
 * in places v to v + 2^k - 1, where 2^k is the lowest bit set in v.
 */
#include "part.h"

/* Steps upwards, in which a parent hears its smallest subtree first. */
static uint32_t gathers(const struct muster_schedule *schedule)
{
	return schedule->coll == MUSTER_COLL_BROADCAST ? 0 : muster_doublings(schedule->ranks);
}

/* Then downwards: the largest subtree is served first. */
static uint32_t steps(const struct muster_schedule *schedule)
{
	return gathers(schedule) +
	       (schedule->coll == MUSTER_COLL_REDUCE ? 0 : muster_doublings(schedule->ranks));
}

static struct muster_step_kind step_kind(const struct muster_schedule *schedule, uint32_t step)
{
	return (struct muster_step_kind){ .nr = 1, .reduce = step < gathers(schedule) };
}

static void exchange(const struct muster_schedule *schedule, uint32_t rank, uint32_t step,
		     struct muster_exchange *exchange)
{
	uint32_t ranks = schedule->ranks, v = (rank + ranks - schedule->root) % ranks;
	bool up = step < gathers(schedule);
	uint32_t bit = 1u << (up ? step : steps(schedule) - 1 - step);
	bool is_child = (v & (2 * bit - 1)) == bit;
	bool is_parent = !(v & (2 * bit - 1)) && v + bit < ranks;
	uint32_t other = (rank + (is_child ? ranks - bit : bit)) % ranks;

	if (is_child ? up : is_parent && !up)
		exchange->to = other;
	else if (is_child || is_parent)
		exchange->from = other;
}

static uint32_t min(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t received(const struct muster_part *part, uint32_t rank, uint32_t step)
{
	const struct muster_schedule *schedule = part->schedule;
	uint32_t ranks = schedule->ranks, v = (rank + ranks - schedule->root) % ranks;
	uint32_t height = v ? (uint32_t)__builtin_ctz(v) : muster_doublings(ranks);
	uint32_t up = min(min(step, gathers(schedule)), min(height, muster_doublings(ranks - v)));
	bool down = v && schedule->coll != MUSTER_COLL_REDUCE &&
		    step > steps(schedule) - 1 - height;

	return up + down;
}

const struct muster_generator muster_generate_binomial = {
	.name = "binomial",
	.colls = 1u << MUSTER_COLL_BARRIER | 1u << MUSTER_COLL_BROADCAST |
		 1u << MUSTER_COLL_REDUCE | 1u << MUSTER_COLL_ALLREDUCE,
	.version = 1,
	.chunks = muster_chunks_one,
	.steps = steps,
	.step = step_kind,
	.exchange = exchange,
	.received = received,
};
