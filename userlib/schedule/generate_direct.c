// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Everybody tells everybody, all at once: a single step, however many ranks there are. That is
 * many messages, but none waits for another; where ranks share processors each needs to run once,
 * and not once a step. What is combined has the order of ranks: those from the third on begin with
 * what rank 0 sends, and combine their own in its place, as if they had sent it to themselves.
 * By rank it is walked as n exchanges, of which all send before any awaits.
 */
#include "part.h"

static uint32_t steps(const struct muster_schedule *schedule)
{
	return schedule->ranks > 1 ? schedule->ranks : 0;
}

static struct muster_step_kind step_kind(const struct muster_schedule *schedule, uint32_t step)
{
	(void)schedule;
	(void)step;
	return (struct muster_step_kind){ .nr = 1, .reduce = true };
}

/* Whose own is not among the first two, whose order does not matter; a barrier has no order. */
static bool begins_with_first(const struct muster_schedule *schedule, uint32_t rank)
{
	return schedule->coll == MUSTER_COLL_ALLREDUCE && rank > 1;
}

static void exchange(const struct muster_schedule *schedule, uint32_t rank, uint32_t step,
		     struct muster_exchange *exchange)
{
	bool has_place = begins_with_first(schedule, rank);
	uint32_t to = (rank + 1 + step) % schedule->ranks;

	if (to != rank || has_place)
		exchange->to = to;
	if (step != rank || has_place)
		exchange->from = step;
	exchange->copies_to = !rank && begins_with_first(schedule, to);
	exchange->copies_from = !step && has_place;
}

/* Asked by who sends: the receiver has one slot for each rank below that, but for itself. */
static uint32_t received(const struct muster_part *part, uint32_t rank, uint32_t step)
{
	(void)step;
	return part->rank < rank ? part->rank : part->rank - 1;
}

const struct muster_generator muster_generate_direct = {
	.name = "direct",
	.colls = 1u << MUSTER_COLL_BARRIER | 1u << MUSTER_COLL_ALLREDUCE,
	.version = 2,
	.at_once = true,
	.ranks_max = MUSTER_SLOTS_MAX,
	.chunks = muster_chunks_one,
	.steps = steps,
	.step = step_kind,
	.exchange = exchange,
	.received = received,
};
