// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Scans by Hillis and Steele: in step s each rank gives what it has to the one 2^s
 * behind it, so that what is combined are neighbouring ranges of ranks, in order. An
 * exclusive scan first hands every contribution on to the next rank, where it takes
 * the place of that rank's own; from rank 1 on the rest is an inclusive one.
 */
#include "part.h"

/* Ranks at the front that take no part in doubling, and steps before it. */
static uint32_t shift_of(const struct muster_schedule *schedule)
{
	return schedule->coll == MUSTER_COLL_EXSCAN;
}

static uint32_t steps(const struct muster_schedule *schedule)
{
	uint32_t shift = shift_of(schedule), ranks = schedule->ranks;

	if (ranks < 2)
		return 0;
	ranks -= shift;
	return shift + muster_doublings(ranks);
}

static struct muster_step_kind step_kind(const struct muster_schedule *schedule, uint32_t step)
{
	return (struct muster_step_kind){ .nr = 1, .reduce = step >= shift_of(schedule) };
}

static void exchange(const struct muster_schedule *schedule, uint32_t rank, uint32_t step,
		     struct muster_exchange *exchange)
{
	uint32_t shift = shift_of(schedule), first = step < shift ? 0 : shift;
	uint32_t distance = step < shift ? 1 : 1u << (step - shift);

	if (rank < first)
		return;
	if (rank + distance < schedule->ranks)
		exchange->to = rank + distance;
	if (rank >= first + distance)
		exchange->from = rank - distance;
}

/* At the front there is nothing to double. */
static uint32_t next(const struct muster_schedule *schedule, uint32_t rank, uint32_t step)
{
	return step && rank < shift_of(schedule) ? schedule->steps : step;
}

/* Each step brings something, until there is nobody so far in front. */
static uint32_t received(const struct muster_part *part, uint32_t rank, uint32_t step)
{
	uint32_t shift = shift_of(part->schedule), most = 0;

	if (rank < shift || !rank)
		return 0;
	if (rank > shift)
		most = 32 - (uint32_t)__builtin_clz(rank - shift);
	most += shift;
	return step < most ? step : most;
}

const struct muster_generator muster_generate_scan = {
	.name = "hillis-steele",
	.colls = 1u << MUSTER_COLL_SCAN | 1u << MUSTER_COLL_EXSCAN,
	.version = 1,
	.chunks = muster_chunks_one,
	.steps = steps,
	.step = step_kind,
	.exchange = exchange,
	.next = next,
	.received = received,
};
