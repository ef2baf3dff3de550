// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * K-nomial trees over one chunk; binomial ones are those of radix 2. Ranks are counted
 * from the root, so that any root will do: "place" v is rank (root + v) mod ranks. Written
 * with the radix k as base, place v hangs below the place that has 0 for the lowest digit
 * of v that is not 0. In round j of the way up, which has a step for each digit d from 1 to
 * k - 1, those whose lowest digit is d, at j, give to their parent; the way down is the
 * same backwards. As a place's children do not wait for each other, it has ceil(log_k n)
 * messages one after the other where a binomial tree has ceil(log_2 n).
 */
#include "branch.h"

static uint32_t min(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Steps of one way: those in which some place has that digit. */
static uint32_t way(const struct muster_schedule *schedule)
{
	return muster_links((uint32_t)__builtin_ctz(schedule->generator->radix), schedule->ranks - 1);
}

/* Upwards a parent hears its smallest subtree first; downwards the largest one is served first. */
static uint32_t steps(const struct muster_schedule *schedule)
{
	bool up = schedule->coll != MUSTER_COLL_BROADCAST;
	bool down = schedule->coll != MUSTER_COLL_REDUCE;

	return (up + down) * way(schedule);
}

/* Steps upwards. */
static uint32_t gathers(const struct muster_schedule *schedule)
{
	if (schedule->coll == MUSTER_COLL_REDUCE)
		return schedule->steps;
	return schedule->coll == MUSTER_COLL_BROADCAST ? 0 : schedule->steps / 2;
}

static struct muster_branch branch_of(const struct muster_schedule *schedule, uint32_t place)
{
	switch (schedule->generator->radix) {
	case 2:
		return muster_branch_of(schedule, 1, place);
	case 4:
		return muster_branch_of(schedule, 2, place);
	default:
		return muster_branch_of(schedule, 3, place);
	}
}

static struct muster_step_kind step_kind(const struct muster_schedule *schedule, uint32_t step)
{
	return (struct muster_step_kind){ .nr = 1, .reduce = step < gathers(schedule) };
}

static struct muster_link link_of(uint32_t radix, uint32_t link)
{
	switch (radix) {
	case 2:
		return muster_link_of(1, link);
	case 4:
		return muster_link_of(2, link);
	default:
		return muster_link_of(3, link);
	}
}

/* Its parent is the last that a place sends to, or its smallest child; and a leaf has heard all. */
static bool is_last(const struct muster_schedule *schedule, bool up, bool is_child, uint32_t step)
{
	uint32_t back = schedule->steps - 1 - step;

	if (up)
		return is_child && schedule->coll == MUSTER_COLL_REDUCE;
	return is_child ? back < schedule->generator->radix - 1 : !back;
}

static void exchange(const struct muster_schedule *schedule, uint32_t rank, uint32_t step,
		     struct muster_exchange *exchange)
{
	uint32_t v = muster_place_of(schedule, rank), other;
	bool up = step < gathers(schedule), is_child;
	struct muster_link link = link_of(schedule->generator->radix,
					  up ? step : schedule->steps - 1 - step);

	is_child = muster_link_is_above(link, v);
	if (!is_child && !muster_link_is_below(link, v, schedule->ranks))
		return;
	if (is_last(schedule, up, is_child, step))
		exchange->next = schedule->steps;
	other = muster_rank_at(schedule, is_child ? v - link.distance : v + link.distance);
	if (is_child == up)
		exchange->to = other;
	else
		exchange->from = other;
}

static uint32_t next(const struct muster_schedule *schedule, uint32_t rank, uint32_t step)
{
	struct muster_branch branch = branch_of(schedule, muster_place_of(schedule, rank));
	uint32_t link = step < gathers(schedule) ? muster_branch_up(&branch, step) : MUSTER_NOBODY;

	if (link < gathers(schedule))
		return link;
	if (step < gathers(schedule))
		step = gathers(schedule);
	if (step == schedule->steps)
		return step;
	link = muster_branch_down(&branch, schedule->steps - 1 - step);
	return link == MUSTER_NOBODY ? schedule->steps : schedule->steps - 1 - link;
}

/* From its children on the way up, from its parent on the way down. */
static uint32_t received(const struct muster_part *part, uint32_t rank, uint32_t step)
{
	const struct muster_schedule *schedule = part->schedule;
	struct muster_branch branch = branch_of(schedule, muster_place_of(schedule, rank));
	uint32_t up = min(min(step, gathers(schedule)), branch.children);
	bool down = branch.above != MUSTER_NOBODY && schedule->coll != MUSTER_COLL_REDUCE &&
		    step > schedule->steps - 1 - branch.above;

	return up + down;
}

#define TREE(variable, word, base)							\
	const struct muster_generator variable = {					\
		.name = word,								\
		.colls = 1u << MUSTER_COLL_BARRIER | 1u << MUSTER_COLL_BROADCAST |	\
			 1u << MUSTER_COLL_REDUCE | 1u << MUSTER_COLL_ALLREDUCE,	\
		.version = 1,								\
		.radix = base,								\
		.chunks = muster_chunks_one,						\
		.steps = steps,								\
		.step = step_kind,							\
		.exchange = exchange,							\
		.next = next,								\
		.received = received,							\
	}

TREE(muster_generate_binomial, "binomial", 2);
TREE(muster_generate_4nomial, "4-nomial", 4);
TREE(muster_generate_8nomial, "8-nomial", 8);
