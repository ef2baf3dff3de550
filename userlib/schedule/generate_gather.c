// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Gather and scatter, a chunk for each rank. Ranks are counted from the root: "place"
 * v is rank (root + v) mod ranks. Along a binomial tree place v passes on what its
 * subtree has or needs, places v to v + 2^k - 1 as far as there are any, where 2^k is
 * the lowest bit set in v. Or linear: the root meets one rank after the other, and
 * nothing is passed on.
 */
#include "branch.h"

static bool is_gather(const struct muster_schedule *schedule)
{
	return schedule->coll == MUSTER_COLL_GATHER;
}

/* What goes up in a gather goes down in a scatter. */
static void pass(const struct muster_schedule *schedule, bool is_child, uint32_t other,
		 uint32_t first, uint32_t nr, struct muster_exchange *exchange)
{
	if (is_child == is_gather(schedule))
		exchange->to = other;
	else
		exchange->from = other;
	exchange->sent = exchange->received = first;
	exchange->nr_sent = exchange->nr_received = nr;
}

/* ---- binomial ----------------------------------------------------------------------- */

static uint32_t tree_steps(const struct muster_schedule *schedule)
{
	return muster_doublings(schedule->ranks);
}

/* A gather begins with the smallest subtrees, a scatter with the largest. */
static uint32_t bit_at(const struct muster_schedule *schedule, uint32_t step)
{
	return 1u << (is_gather(schedule) ? step : schedule->steps - 1 - step);
}

static uint32_t tree_next(const struct muster_schedule *schedule, uint32_t rank, uint32_t step)
{
	struct muster_branch branch = muster_branch_of(schedule, 1, muster_place_of(schedule, rank));
	uint32_t link;

	if (is_gather(schedule)) {
		link = muster_branch_up(&branch, step);
		return link == MUSTER_NOBODY ? schedule->steps : link;
	}
	link = muster_branch_down(&branch, schedule->steps - 1 - step);
	return link == MUSTER_NOBODY ? schedule->steps : schedule->steps - 1 - link;
}

static struct muster_step_kind tree_step(const struct muster_schedule *schedule, uint32_t step)
{
	return (struct muster_step_kind){ .nr = bit_at(schedule, step) };
}

static void tree_exchange(const struct muster_schedule *schedule, uint32_t rank, uint32_t step,
			  struct muster_exchange *exchange)
{
	uint32_t ranks = schedule->ranks, v = muster_place_of(schedule, rank);
	uint32_t bit = bit_at(schedule, step), below = v & (2 * bit - 1);
	uint32_t child = below == bit ? v : v + bit;
	bool is_child = below == bit;
	uint32_t nr, at;

	if (!is_child && (below || child >= ranks))
		return;
	at = muster_rank_at(schedule, child);
	nr = ranks - child < bit ? ranks - child : bit;
	pass(schedule, is_child, is_child ? muster_rank_at(schedule, v - bit) : at, at, nr, exchange);
	if (is_gather(schedule) ? is_child : bit == 1)
		exchange->next = schedule->steps;
}

const struct muster_generator muster_generate_subtrees = {
	.name = "binomial",
	.colls = 1u << MUSTER_COLL_GATHER | 1u << MUSTER_COLL_SCATTER,
	.version = 1,
	.ranged = true,
	.goes_round = true,
	.chunks = muster_chunks_each,
	.steps = tree_steps,
	.step = tree_step,
	.exchange = tree_exchange,
	.next = tree_next,
};

/* ---- linear ------------------------------------------------------------------------- */

static uint32_t linear_steps(const struct muster_schedule *schedule)
{
	return schedule->ranks - 1;
}

static struct muster_step_kind linear_step(const struct muster_schedule *schedule, uint32_t step)
{
	(void)schedule;
	(void)step;
	return (struct muster_step_kind){ .nr = 1 };
}

/* In step s the root meets place s + 1. */
static void linear_exchange(const struct muster_schedule *schedule, uint32_t rank, uint32_t step,
			    struct muster_exchange *exchange)
{
	uint32_t v = muster_place_of(schedule, rank), at = muster_rank_at(schedule, step + 1);

	if (!v || v == step + 1)
		pass(schedule, v, v ? schedule->root : at, at, 1, exchange);
	if (v == step + 1)
		exchange->next = schedule->steps;
}

static uint32_t linear_next(const struct muster_schedule *schedule, uint32_t rank, uint32_t step)
{
	uint32_t v = muster_place_of(schedule, rank);

	if (!v || step == v - 1)
		return step;
	return step < v ? v - 1 : schedule->steps;
}

static uint32_t linear_received(const struct muster_part *part, uint32_t rank, uint32_t step)
{
	const struct muster_schedule *schedule = part->schedule;
	uint32_t v = muster_place_of(schedule, rank);

	if (is_gather(schedule))
		return v ? 0 : step;
	return v && v <= step;
}

const struct muster_generator muster_generate_linear = {
	.name = "linear",
	.colls = 1u << MUSTER_COLL_GATHER | 1u << MUSTER_COLL_SCATTER,
	.version = 1,
	.chunks = muster_chunks_each,
	.steps = linear_steps,
	.step = linear_step,
	.exchange = linear_exchange,
	.next = linear_next,
	.received = linear_received,
};
