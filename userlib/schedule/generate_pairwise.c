// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Everybody meets everybody, a rank in each step, and nothing is passed on.
 *
 * Alltoall: in step s ranks whose sum is s, modulo their number, exchange what
 * they have for each other; so each meets each other one once, and itself in one step.
 * By rank a chunk is named by the rank that it is for where it is sent, and by the rank
 * that it is of where it is received: n chunks instead of n * n, and both of a pair come
 * and go in one step.
 *
 * Reduce-scatter: in step s each rank gives the one s further on its chunk. Allgather: it gives
 * that one its own. Allreduce: first the one, then the other. No step of a half needs what
 * came in another one, so that all of it goes at once.
 */
#include "part.h"

static uint32_t chunks(uint32_t ranks)
{
	return ranks;
}

static uint32_t steps(const struct muster_schedule *schedule)
{
	return schedule->ranks > 1 ? schedule->ranks : 0;
}

static struct muster_step_kind step_kind(const struct muster_schedule *schedule, uint32_t step)
{
	(void)schedule;
	(void)step;
	return (struct muster_step_kind){ .nr = 1 };
}

static void exchange(const struct muster_schedule *schedule, uint32_t rank, uint32_t step,
		     struct muster_exchange *exchange)
{
	uint32_t partner = (step + schedule->ranks - rank) % schedule->ranks;

	if (partner == rank)
		return;
	exchange->to = exchange->from = partner;
	exchange->sent = exchange->received = partner;
}

static uint32_t received(const struct muster_part *part, uint32_t rank, uint32_t step)
{
	return step - (2 * (uint64_t)rank % part->schedule->ranks < step);
}

/* How many steps of it are a reduce-scatter's. */
static uint32_t scatters(const struct muster_schedule *schedule)
{
	return schedule->coll == MUSTER_COLL_ALLGATHER ? 0 : schedule->ranks - 1;
}

static uint32_t steps_apart(const struct muster_schedule *schedule)
{
	return schedule->coll == MUSTER_COLL_REDUCE_SCATTER ? scatters(schedule) :
							      scatters(schedule) + schedule->ranks - 1;
}

static struct muster_step_kind step_kind_apart(const struct muster_schedule *schedule, uint32_t step)
{
	return (struct muster_step_kind){ .nr = 1, .reduce = step < scatters(schedule) };
}

static void exchange_apart(const struct muster_schedule *schedule, uint32_t rank, uint32_t step,
			   struct muster_exchange *exchange)
{
	uint32_t ranks = schedule->ranks, distance = 1 + step % (ranks - 1);
	bool scattering = step < scatters(schedule);

	exchange->to = (rank + distance) % ranks;
	exchange->from = (rank + ranks - distance) % ranks;
	exchange->sent = scattering ? exchange->to : rank;
	exchange->received = scattering ? rank : exchange->from;
}

const struct muster_generator muster_generate_pairwise_apart = {
	.name = "pairwise",
	.colls = 1u << MUSTER_COLL_ALLREDUCE | 1u << MUSTER_COLL_REDUCE_SCATTER |
		 1u << MUSTER_COLL_ALLGATHER,
	.version = 1,
	.chunks = muster_chunks_each,
	.steps = steps_apart,
	.step = step_kind_apart,
	.exchange = exchange_apart,
	.received = muster_received_each,
};

const struct muster_generator muster_generate_pairwise = {
	.name = "pairwise",
	.colls = 1u << MUSTER_COLL_ALLTOALL,
	.version = 1,
	.chunks = chunks,
	.steps = steps,
	.step = step_kind,
	.exchange = exchange,
	.received = received,
};
