// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Everybody tells everybody, all at once: a single step, however many ranks there are. That is
 * many messages, but none waits for another; where ranks share processors each needs to run once,
 * and not once a step. Of what is combined the order would be each rank's own: barriers alone.
 * By rank it is walked as n - 1 exchanges, of which all send before any awaits.
 */
#include "part.h"

static uint32_t steps(const struct muster_schedule *schedule)
{
	return schedule->ranks - 1;
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
	uint32_t ranks = schedule->ranks, distance = step + 1;

	exchange->to = (rank + distance) % ranks;
	exchange->from = (rank + ranks - distance) % ranks;
}

/* One message in each exchange. */
static uint32_t received(const struct muster_part *part, uint32_t rank, uint32_t step)
{
	(void)part;
	(void)rank;
	return step;
}

const struct muster_generator muster_generate_direct = {
	.name = "direct",
	.colls = 1u << MUSTER_COLL_BARRIER,
	.version = 1,
	.at_once = true,
	.ranks_max = MUSTER_SLOTS_MAX,
	.chunks = muster_chunks_one,
	.steps = steps,
	.step = step_kind,
	.exchange = exchange,
	.received = received,
};
