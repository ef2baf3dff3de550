// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Exchanges at distances that are powers of two: recursive doubling of whole
 * messages, and Rabenseifner's recursive halving (reduce-scatter) followed by
 * recursive doubling (allgather) or a binomial gather of chunks.
 *
 * "Place" v is rank (root + v) mod ranks. The first 2^k places, the largest power
 * of two that there is, form the core. A place beyond it folds: it gives what it
 * has to its partner in the core first, and gets the result from it last.
 *
 * Halving may begin with the farthest partner (rabenseifner) or, as in the Tianhe paper, with
 * the nearest (halving-doubling): the same among places whose digits are turned round.
 */
#include "part.h"

/* What follows from the head of a schedule. */
struct shape {
	uint32_t k, core;
	uint32_t folds;		/* 1: a step in which places beyond the core give */
	uint32_t halves;	/* steps of recursive halving */
	bool ends_at_root;	/* the rest are a gather */
};

static struct shape shape_of(const struct muster_schedule *schedule)
{
	uint32_t k = 31 - (uint32_t)__builtin_clz(schedule->ranks), core = 1u << k;

	return (struct shape){
		.k = k, .core = core, .folds = schedule->ranks != core,
		.halves = schedule->generator->ranged ? k : 0,
		.ends_at_root = schedule->coll == MUSTER_COLL_REDUCE,
	};
}

static uint32_t core_chunks(uint32_t ranks)
{
	return 1u << (31 - (uint32_t)__builtin_clz(ranks));
}

static uint32_t steps(const struct muster_schedule *schedule)
{
	struct shape shape = shape_of(schedule);

	return shape.folds + shape.halves + shape.k + (shape.folds && !shape.ends_at_root);
}

static bool folds_in(const struct shape *shape, uint32_t step)
{
	return step < shape->folds;
}

static bool folds_out(const struct shape *shape, uint32_t step)
{
	return step == shape->folds + shape->halves + shape->k;
}

static uint32_t distance_at(const struct shape *shape, uint32_t step)
{
	uint32_t i = step - shape->folds;

	return i < shape->halves ? shape->core >> (i + 1) : 1u << (i - shape->halves);
}

static struct muster_step_kind step_kind(const struct muster_schedule *schedule, uint32_t step)
{
	struct shape shape = shape_of(schedule);
	struct muster_step_kind kind = { .nr = schedule->chunks, .reduce = true };

	if (folds_in(&shape, step))
		return kind;
	kind.reduce = !folds_out(&shape, step) &&
		      (!shape.halves || step < shape.folds + shape.halves);
	if (!folds_out(&shape, step) && shape.halves)
		kind.nr = distance_at(&shape, step);
	return kind;
}

static void fold(const struct shape *shape, uint32_t places, uint32_t v, bool in,
		 struct muster_exchange *exchange)
{
	uint32_t partner = v < shape->core ? v + shape->core : v - shape->core;

	if (partner >= places)
		return;
	if ((v < shape->core) == in)
		exchange->from = partner;
	else
		exchange->to = partner;
}

/* Halving: the partner's block, which it reduces; doubling: one's own, which is complete. */
static void meet(const struct shape *shape, uint32_t v, uint32_t step,
		 struct muster_exchange *exchange)
{
	uint32_t distance = distance_at(shape, step), partner = v ^ distance;
	bool halves = step < shape->folds + shape->halves;
	bool gathers = shape->ends_at_root && !halves;

	if (shape->halves) {
		exchange->sent = (halves ? partner : v) & ~(distance - 1);
		exchange->received = (halves ? v : partner) & ~(distance - 1);
	}
	if (!gathers || (v & (2 * distance - 1)) == distance)
		exchange->to = partner;
	if (!gathers || !(v & (2 * distance - 1)))
		exchange->from = partner;
}

/* What a place of the core is called in meet(), and back: its k digits from the other end. */
static uint32_t turned(const struct muster_schedule *schedule, const struct shape *shape, uint32_t v)
{
	if (schedule->generator != &muster_generate_halving_doubling || v == MUSTER_NOBODY)
		return v;
	v = (v & 0x55555555) << 1 | (v >> 1 & 0x55555555);
	v = (v & 0x33333333) << 2 | (v >> 2 & 0x33333333);
	v = (v & 0x0f0f0f0f) << 4 | (v >> 4 & 0x0f0f0f0f);
	return shape->k ? __builtin_bswap32(v) >> (32 - shape->k) : 0;
}

static uint32_t rank_of(const struct muster_schedule *schedule, uint32_t v)
{
	return v == MUSTER_NOBODY ? v : muster_rank_at(schedule, v);
}

static void exchange(const struct muster_schedule *schedule, uint32_t rank, uint32_t step,
		     struct muster_exchange *exchange)
{
	uint32_t v = muster_place_of(schedule, rank);
	struct shape shape = shape_of(schedule);

	if (folds_in(&shape, step) || folds_out(&shape, step)) {
		fold(&shape, schedule->ranks, v, folds_in(&shape, step), exchange);
	} else if (v < shape.core) {
		meet(&shape, turned(schedule, &shape, v), step, exchange);
		exchange->to = turned(schedule, &shape, exchange->to);
		exchange->from = turned(schedule, &shape, exchange->from);
	}
	exchange->to = rank_of(schedule, exchange->to);
	exchange->from = rank_of(schedule, exchange->from);
}

/* A place beyond the core is in folds alone, a gather's in no step behind the one in which it gives. */
static uint32_t next(const struct muster_schedule *schedule, uint32_t rank, uint32_t step)
{
	uint32_t v = muster_place_of(schedule, rank);
	struct shape shape = shape_of(schedule);
	uint32_t last = shape.folds + shape.halves + shape.k;

	if (v >= shape.core && step)
		return last;
	if (shape.ends_at_root && v && v < shape.core)
		last = shape.folds + shape.halves +
		       (uint32_t)__builtin_ctz(turned(schedule, &shape, v)) + 1;
	return step < last || !shape.ends_at_root ? step : schedule->steps;
}

/* A place of the core receives in every step before the last fold, but for a gather's. */
static uint32_t received(const struct muster_part *part, uint32_t rank, uint32_t step)
{
	const struct muster_schedule *schedule = part->schedule;
	uint32_t v = muster_place_of(schedule, rank);
	struct shape shape = shape_of(schedule);
	uint32_t end = shape.folds + shape.halves + shape.k, unmet = 0;

	if (v >= shape.core)
		return 0;
	if (shape.ends_at_root && v)
		end = shape.folds + shape.halves +
		      (uint32_t)__builtin_ctz(turned(schedule, &shape, v));
	if (step && shape.folds && v + shape.core >= schedule->ranks)
		unmet = muster_part_messages(part, 1);
	return muster_part_messages(part, step < end ? step : end) - unmet;
}

const struct muster_generator muster_generate_doubling = {
	.name = "recursive-doubling",
	.colls = 1u << MUSTER_COLL_BARRIER | 1u << MUSTER_COLL_ALLREDUCE,
	.version = 1,
	.chunks = muster_chunks_one,
	.steps = steps,
	.step = step_kind,
	.exchange = exchange,
	.next = next,
	.received = received,
};

#define HALVING(variable, word)								\
	const struct muster_generator variable = {					\
		.name = word,								\
		.colls = 1u << MUSTER_COLL_REDUCE | 1u << MUSTER_COLL_ALLREDUCE,	\
		.version = 1,								\
		.ranged = true,								\
		.chunks = core_chunks,							\
		.steps = steps,								\
		.step = step_kind,							\
		.exchange = exchange,							\
		.next = next,								\
		.received = received,							\
	}

HALVING(muster_generate_rabenseifner, "rabenseifner");
HALVING(muster_generate_halving_doubling, "halving-doubling");
