// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Bruck's allgather and, run backwards, a reduce-scatter: any number of ranks in as
 * few steps as can be, without folding. A chunk for each rank; before step s of an
 * allgather rank r has the chunks r to r + 2^s - 1, round the end, which all go to
 * rank r - 2^s. In the last step only those go that are missing. Backwards each
 * partial result takes the way of a chunk, and each rank ends with its own.
 */
#include "part.h"

static uint32_t steps(const struct muster_schedule *schedule)
{
	return muster_doublings(schedule->ranks);
}

static bool is_backwards(const struct muster_schedule *schedule)
{
	return schedule->coll == MUSTER_COLL_REDUCE_SCATTER;
}

static uint32_t distance_at(const struct muster_schedule *schedule, uint32_t step)
{
	return 1u << (is_backwards(schedule) ? schedule->steps - 1 - step : step);
}

static struct muster_step_kind step_kind(const struct muster_schedule *schedule, uint32_t step)
{
	uint32_t distance = distance_at(schedule, step), left = schedule->ranks - distance;

	return (struct muster_step_kind){
		.nr = distance < left ? distance : left, .reduce = is_backwards(schedule),
	};
}

static void exchange(const struct muster_schedule *schedule, uint32_t rank, uint32_t step,
		     struct muster_exchange *exchange)
{
	uint32_t ranks = schedule->ranks, distance = distance_at(schedule, step);
	uint32_t above = (rank + distance) % ranks, below = (rank + ranks - distance) % ranks;
	bool backwards = is_backwards(schedule);

	exchange->to = backwards ? above : below;
	exchange->from = backwards ? below : above;
	exchange->sent = backwards ? above : rank;
	exchange->received = backwards ? rank : above;
}

const struct muster_generator muster_generate_bruck = {
	.name = "bruck",
	.colls = 1u << MUSTER_COLL_ALLGATHER | 1u << MUSTER_COLL_REDUCE_SCATTER,
	.version = 1,
	.ranged = true,
	.goes_round = true,
	.chunks = muster_chunks_each,
	.steps = steps,
	.step = step_kind,
	.exchange = exchange,
};
