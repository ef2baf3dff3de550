// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Dissemination: in step s each rank tells the one 2^s behind it, around the end, what it
 * has heard of. After ceil(log_2 n) steps all have heard of all, whatever n is. Nothing can
 * be summed up so, unless n is a power of two: contributions would count twice.
 */
#include "part.h"

static uint32_t steps(const struct muster_schedule *schedule)
{
	return muster_doublings(schedule->ranks);
}

static struct muster_step_kind step_kind(const struct muster_schedule *schedule, uint32_t step)
{
	(void)schedule;
	(void)step;
	return (struct muster_step_kind){ .nr = 1, .reduce = true };
}

static void exchange(const struct muster_schedule *schedule, uint32_t rank, uint32_t step,
		     struct muster_exchange *exchange)
{
	uint32_t ranks = schedule->ranks, distance = 1u << step;

	exchange->to = (rank + distance) % ranks;
	exchange->from = (rank + ranks - distance) % ranks;
}

const struct muster_generator muster_generate_dissemination = {
	.name = "dissemination",
	.colls = 1u << MUSTER_COLL_BARRIER,
	.version = 1,
	.chunks = muster_chunks_one,
	.steps = steps,
	.step = step_kind,
	.exchange = exchange,
	.received = muster_received_each,
};
