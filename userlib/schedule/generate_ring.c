// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Rings: every rank sends to the next one only, a chunk for each rank, so that
 * all links are busy at once. The allreduce is a reduce-scatter followed by an
 * allgather, which there are alone, too; the broadcast is a chain down which the chunks
 * follow each other. A double ring is two, in opposite directions, with every second chunk
 * each, so that links are busy in both; their steps alternate and do not wait for each other.
 */
#include "part.h"

/* A reduce-scatter or an allgather: half of an allreduce. */
static bool is_half(const struct muster_schedule *schedule)
{
	return schedule->coll == MUSTER_COLL_REDUCE_SCATTER ||
	       schedule->coll == MUSTER_COLL_ALLGATHER;
}

/* How many rings: odd chunks and odd steps are the other one's. */
static uint32_t rings(const struct muster_schedule *schedule)
{
	return schedule->generator == &muster_generate_double_ring ? 2 : 1;
}

static uint32_t steps(const struct muster_schedule *schedule)
{
	/* the broadcast's last rank hears from the middle on */
	return rings(schedule) * (is_half(schedule) ? 1 : 2) * (schedule->ranks - 1);
}

static bool is_broadcast(const struct muster_schedule *schedule)
{
	return schedule->coll == MUSTER_COLL_BROADCAST;
}

static struct muster_step_kind step_kind(const struct muster_schedule *schedule, uint32_t step)
{
	return (struct muster_step_kind){
		.nr = 1, .reduce = muster_coll_row(schedule->coll)->combines &&
				   step / rings(schedule) < schedule->ranks - 1,
	};
}

/* In step s place v sends chunk s - v, if there is one, to the next place, if there is one. */
static void broadcast(const struct muster_schedule *schedule, uint32_t rank, uint32_t step,
		      struct muster_exchange *exchange)
{
	uint32_t ranks = schedule->ranks, v = muster_place_of(schedule, rank);

	exchange->sent = step - v;
	exchange->received = step + 1 - v;
	if (v < ranks - 1 && step >= v && step - v < ranks)
		exchange->to = (rank + 1) % ranks;
	if (v && step + 1 >= v && step + 1 - v < ranks)
		exchange->from = (rank + ranks - 1) % ranks;
}

/* A broadcast passes a place while chunks do. */
static uint32_t next(const struct muster_schedule *schedule, uint32_t rank, uint32_t step)
{
	uint32_t v = muster_place_of(schedule, rank);

	if (!is_broadcast(schedule))
		return step;
	if (step + 1 < v)
		return v - 1;
	return step < v + schedule->ranks ? step : schedule->steps;
}

/* A rank or its chunk on the ring of that step, or back: the other one has them backwards. */
static uint32_t turn(const struct muster_schedule *schedule, uint32_t step, uint32_t which)
{
	if (step % rings(schedule) == 0)
		return which;
	return which ? schedule->ranks - which : 0;
}

/*
 * In step s rank r passes on the chunk that it got in step s - 1. An allreduce begins
 * with chunk r, so that rank r ends the first half with chunk r + 1; a reduce-scatter,
 * which is to end with chunk r, with the chunk before.
 */
static void exchange(const struct muster_schedule *schedule, uint32_t rank, uint32_t step,
		     struct muster_exchange *exchange)
{
	uint32_t ranks = schedule->ranks, nr = rings(schedule), ring = step % nr;
	uint32_t place = turn(schedule, ring, rank);

	step = step / nr + (schedule->coll == MUSTER_COLL_REDUCE_SCATTER);
	if (is_broadcast(schedule)) {
		broadcast(schedule, rank, step, exchange);
		return;
	}
	exchange->to = turn(schedule, ring, (place + 1) % ranks);
	exchange->from = turn(schedule, ring, (place + ranks - 1) % ranks);
	exchange->sent = nr * turn(schedule, ring, (place + 2 * ranks - step) % ranks) + ring;
	exchange->received = nr * turn(schedule, ring, (place + 2 * ranks - step - 1) % ranks) +
			     ring;
}

static uint32_t received(const struct muster_part *part, uint32_t rank, uint32_t step)
{
	uint32_t ranks = part->schedule->ranks, v;

	if (!is_broadcast(part->schedule))
		return step;
	v = muster_place_of(part->schedule, rank);
	if (!v || step + 1 < v)
		return 0;
	return step + 1 - v < ranks ? step + 1 - v : ranks;
}

const struct muster_generator muster_generate_ring = {
	.name = "ring",
	.colls = 1u << MUSTER_COLL_BROADCAST | 1u << MUSTER_COLL_ALLREDUCE |
		 1u << MUSTER_COLL_REDUCE_SCATTER | 1u << MUSTER_COLL_ALLGATHER,
	.version = 1,
	.chunks = muster_chunks_each,
	.steps = steps,
	.step = step_kind,
	.exchange = exchange,
	.next = next,
	.received = received,
};

static uint32_t two_chunks_each(uint32_t ranks)
{
	return 2 * ranks;
}

const struct muster_generator muster_generate_double_ring = {
	.name = "double-ring",
	.colls = 1u << MUSTER_COLL_ALLREDUCE | 1u << MUSTER_COLL_REDUCE_SCATTER |
		 1u << MUSTER_COLL_ALLGATHER,
	.version = 1,
	.chunks = two_chunks_each,
	.steps = steps,
	.step = step_kind,
	.exchange = exchange,
	.received = received,
};
