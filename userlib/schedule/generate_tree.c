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
#include "part.h"

/* A step on the way up, or the same on the way down. */
struct round {
	uint32_t unit;		/* k^j */
	uint32_t digit;
};

static uint32_t min(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t place_of(const struct muster_schedule *schedule, uint32_t rank)
{
	return (rank + schedule->ranks - schedule->root) % schedule->ranks;
}

/* Steps of one way: those in which some place has that digit. */
static uint32_t way(const struct muster_schedule *schedule)
{
	uint32_t radix = schedule->generator->radix, nr = 0;
	uint64_t unit = 1;

	for (; unit * radix < schedule->ranks; unit *= radix)
		nr += radix - 1;
	return nr + (uint32_t)((schedule->ranks - 1) / unit);
}

/* Steps upwards, in which a parent hears its smallest subtree first. */
static uint32_t gathers(const struct muster_schedule *schedule)
{
	return schedule->coll == MUSTER_COLL_BROADCAST ? 0 : way(schedule);
}

/* Then downwards: the largest subtree is served first. */
static uint32_t steps(const struct muster_schedule *schedule)
{
	return gathers(schedule) + (schedule->coll == MUSTER_COLL_REDUCE ? 0 : way(schedule));
}

static struct muster_step_kind step_kind(const struct muster_schedule *schedule, uint32_t step)
{
	return (struct muster_step_kind){ .nr = 1, .reduce = step < gathers(schedule) };
}

static struct round round_of(uint32_t radix, uint32_t index)
{
	struct round round = { .unit = 1, .digit = index % (radix - 1) + 1 };

	for (; index >= radix - 1; index -= radix - 1)
		round.unit *= radix;
	return round;
}

static void exchange(const struct muster_schedule *schedule, uint32_t rank, uint32_t step,
		     struct muster_exchange *exchange)
{
	uint32_t ranks = schedule->ranks, radix = schedule->generator->radix;
	uint32_t v = place_of(schedule, rank);
	bool up = step < gathers(schedule);
	struct round round = round_of(radix, up ? step : steps(schedule) - 1 - step);
	uint64_t distance = (uint64_t)round.digit * round.unit;
	uint64_t digits = v % ((uint64_t)radix * round.unit);
	bool is_child = digits == distance, is_parent = !digits && v + distance < ranks;
	uint32_t other = (uint32_t)((rank + (is_child ? ranks - distance : distance)) % ranks);

	if (is_child ? up : is_parent && !up)
		exchange->to = other;
	else if (is_child || is_parent)
		exchange->from = other;
}

/* From its children, before a step of the way up; *above: the step in which it gives itself. */
static uint32_t from_children(const struct muster_schedule *schedule, uint32_t v, uint32_t step,
			      uint32_t *above)
{
	uint32_t radix = schedule->generator->radix, left = schedule->ranks - 1 - v;
	uint32_t first = 0, nr = 0;
	uint64_t unit = 1;

	for (; unit < schedule->ranks && v / unit % radix == 0; unit *= radix) {
		uint32_t passed = step > first ? step - first : 0;

		nr += min(passed, min((uint32_t)(left / unit), radix - 1));
		first += radix - 1;
	}
	*above = first + (uint32_t)(v / unit % radix) - 1;
	return nr;
}

static uint32_t received(const struct muster_part *part, uint32_t rank, uint32_t step)
{
	const struct muster_schedule *schedule = part->schedule;
	uint32_t v = place_of(schedule, rank), above;
	uint32_t up = from_children(schedule, v, min(step, gathers(schedule)), &above);
	bool down = v && schedule->coll != MUSTER_COLL_REDUCE &&
		    step > steps(schedule) - 1 - above;

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
		.received = received,							\
	}

TREE(muster_generate_binomial, "binomial", 2);
TREE(muster_generate_4nomial, "4-nomial", 4);
TREE(muster_generate_8nomial, "8-nomial", 8);
