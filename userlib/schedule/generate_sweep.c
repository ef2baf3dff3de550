// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Scans by Blelloch: a sweep up a binary tree, in which the last rank of every second range
 * of 2^d gets the sum of the range before it, and one down, in which those ranks give what
 * all up to them have to the middle of the range behind. Fewer than two messages a rank in
 * all, where Hillis and Steele have log n, in twice the steps. This is the inclusive form,
 * which needs one value a rank; an exclusive scan first hands every contribution on to the
 * next rank, as there. "Place" p is that of a rank in the scan, counted from 1.
 */
#include "part.h"

struct sweep {
	uint32_t shift;		/* steps before it, and ranks at the front without a place */
	uint32_t places;
	uint32_t up;		/* steps */
	uint32_t down;
};

static uint32_t log_of(uint32_t nr)
{
	return nr ? 31 - (uint32_t)__builtin_clz(nr) : 0;
}

static struct sweep sweep_of(const struct muster_schedule *schedule)
{
	struct sweep sweep = { .shift = schedule->coll == MUSTER_COLL_EXSCAN };

	if (schedule->ranks < 2)
		return (struct sweep){ 0 };
	sweep.places = schedule->ranks - sweep.shift;
	sweep.up = log_of(sweep.places);
	sweep.down = sweep.places / 3 ? log_of(sweep.places / 3) + 1 : 0;
	return sweep;
}

static uint32_t steps(const struct muster_schedule *schedule)
{
	struct sweep sweep = sweep_of(schedule);

	return sweep.shift + sweep.up + sweep.down;
}

static struct muster_step_kind step_kind(const struct muster_schedule *schedule, uint32_t step)
{
	return (struct muster_step_kind){ .nr = 1, .reduce = step >= sweep_of(schedule).shift };
}

/* Whether a place gets something from the one `distance`, a power of two, before it. */
static bool gets(uint32_t place, uint32_t distance, bool up)
{
	uint32_t rest = place & (2 * distance - 1);

	return up ? !rest : rest == distance && place > distance;
}

static void exchange(const struct muster_schedule *schedule, uint32_t rank, uint32_t step,
		     struct muster_exchange *exchange)
{
	struct sweep sweep = sweep_of(schedule);
	uint32_t place = rank + 1 - sweep.shift, distance;
	bool up = step < sweep.shift + sweep.up;

	if (step < sweep.shift) {
		exchange->to = rank + 1 < schedule->ranks ? rank + 1 : MUSTER_NOBODY;
		exchange->from = rank ? rank - 1 : MUSTER_NOBODY;
		return;
	}
	if (!place)
		return;
	distance = 1u << (up ? step - sweep.shift : schedule->steps - 1 - step);
	if (gets(place, distance, up))
		exchange->from = rank - distance;
	if (place + distance <= sweep.places && gets(place + distance, distance, up))
		exchange->to = rank + distance;
}

/* Up the tree the first steps; down it a place gets at its lowest bit, and gives below. */
static uint32_t next(const struct muster_schedule *schedule, uint32_t rank, uint32_t step)
{
	struct sweep sweep = sweep_of(schedule);
	uint32_t place = rank + 1 - sweep.shift, down = sweep.shift + sweep.up, lowest, bit;

	if (step < sweep.shift)
		return step;
	if (!place)
		return schedule->steps;
	lowest = (uint32_t)__builtin_ctz(place);
	if (step < down && step <= sweep.shift + lowest)
		return step;
	step = step < down ? down : step;
	if (step == schedule->steps)
		return step;
	bit = schedule->steps - 1 - step;
	if (bit >= lowest) {
		if (place & (place - 1))
			return schedule->steps - 1 - lowest;
		if (!lowest)	/* it has all */
			return schedule->steps;
		bit = lowest - 1;
	}
	if (place + (1u << bit) <= sweep.places)
		return schedule->steps - 1 - bit;
	return place == sweep.places ? schedule->steps :
				       schedule->steps - 1 - log_of(sweep.places - place);
}

/* Upwards from each range that ends in its own, downwards once, unless it has all by then. */
static uint32_t received(const struct muster_part *part, uint32_t rank, uint32_t step)
{
	struct sweep sweep = sweep_of(part->schedule);
	uint32_t place = rank + 1 - sweep.shift, ranges, nr;

	if (step <= sweep.shift)
		return step && rank;
	nr = sweep.shift && rank;
	step -= sweep.shift;
	if (!place)
		return nr;
	ranges = (uint32_t)__builtin_ctz(place);
	nr += step < ranges ? step : ranges;
	return nr + (place & (place - 1) && step > sweep.up + sweep.down - 1 - ranges);
}

const struct muster_generator muster_generate_sweep = {
	.name = "blelloch",
	.colls = 1u << MUSTER_COLL_SCAN | 1u << MUSTER_COLL_EXSCAN,
	.version = 1,
	.chunks = muster_chunks_one,
	.steps = steps,
	.step = step_kind,
	.exchange = exchange,
	.next = next,
	.received = received,
};
