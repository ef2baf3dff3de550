// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The algorithms: ring, binomial tree, recursive doubling, torus of two dimensions.
 *
 * Barrier and reduce are allreduce. Scan has programs of its own, which find what
 * the members before this one have; its order is that of the members, so trees and
 * pairs cover ranges. In all of them a member that is through has heard, directly
 * or not, of every other: Documentation/bump.md needs that where it says how long
 * what was sent is kept.
 */
#include "program.h"

#include <stdbool.h>

/* Of all programs the longest is that of a tree's root: it hears, goes down, and says to each bit. */
MUSTER_STATIC_ASSERT(MUSTER_BUMP_HOSTS_MAX == 1 << 10, "bits");
MUSTER_STATIC_ASSERT(PROGRAM_STATES_MAX >= 3 * 10 + 1, "states");

/* Steps: packets between the same two members differ in them. */
enum { STEP_UP = 0, STEP_DOWN = 1, STEP_COLUMN_UP = 2, STEP_COLUMN_DOWN = 3, STEP_ROUND = 4 };

static void add(struct program *program, enum state_kind kind, int does, uint32_t step,
		uint32_t peer, uint32_t arg)
{
	program->states[program->nr++] = (struct state){
		.kind = (uint8_t)kind, .does = (uint8_t)does, .step = (uint8_t)step,
		.peer = (uint16_t)peer, .arg = (uint8_t)arg,
	};
}

static void hear(struct program *program, uint32_t from, uint32_t step, enum state_action does)
{
	add(program, STATE_HEAR, does, step, from, 0);
}

static void say(struct program *program, uint32_t to, uint32_t step, enum state_what what)
{
	add(program, STATE_SAY, what, step, to, 0);
}

static void act(struct program *program, enum state_action does, uint32_t arg)
{
	add(program, STATE_DO, does, 0, 0, arg);
}

/* ---- ring ---- */

/*
 * Place `self` of nr on a ring that is embedded in the members: place p is member
 * base + p * pitch. Once around the elements are combined, then the last place
 * sends what is to be known by all once around.
 */
struct ring {
	uint32_t nr, self, base, pitch, step;
	enum state_action heard_up, heard_down;
	enum state_what up, down;
	bool close;		/* the last place combines before it sends down */
};

static uint32_t place(const struct ring *ring, uint32_t p)
{
	return ring->base + p * ring->pitch;
}

static void add_ring(struct program *program, const struct ring *ring)
{
	uint32_t self = ring->self, last = ring->nr - 1;

	if (ring->nr == 1)
		return;
	if (self > 0)
		hear(program, place(ring, self - 1), ring->step, ring->heard_up);
	if (self == last) {
		if (ring->close)
			act(program, DO_CLOSE, 0);
		say(program, place(ring, 0), ring->step + 1, ring->down);
		return;
	}
	say(program, place(ring, self + 1), ring->step, ring->up);
	hear(program, place(ring, self ? self - 1 : last), ring->step + 1, ring->heard_down);
	if (self + 1 < last)
		say(program, place(ring, self + 1), ring->step + 1, ring->down);
}

static const struct ring reduce_ring = {
	.step = STEP_UP, .heard_up = DO_FOLD, .heard_down = DO_REPLACE,
	.up = SAY_TOTAL, .down = SAY_TOTAL,
};

static void make_ring(struct program *program, uint32_t hosts, uint32_t self)
{
	struct ring ring = reduce_ring;

	ring.nr = hosts;
	ring.self = self;
	ring.pitch = 1;
	add_ring(program, &ring);
}

static void scan_ring(struct program *program, uint32_t hosts, uint32_t self)
{
	struct ring ring = {
		.nr = hosts, .self = self, .pitch = 1, .step = STEP_UP,
		.heard_up = DO_BEFORE, .heard_down = DO_NOTHING,
		.up = SAY_BEFORE_TOTAL, .down = SAY_NOTHING,
	};

	add_ring(program, &ring);
}

/* ---- binomial tree ---- */

/*
 * Member v has in its subtree the members v to v + 2^k - 1, where 2^k is the lowest
 * bit set in v; it hears its smallest subtree first.
 */
static uint32_t tree_reach(uint32_t hosts, uint32_t self)
{
	uint32_t bit = 1;

	while (bit < hosts && !(self & bit))
		bit <<= 1;
	return bit;
}

static void make_tree(struct program *program, uint32_t hosts, uint32_t self)
{
	uint32_t reach = tree_reach(hosts, self), bit;

	for (bit = 1; bit < reach && self + bit < hosts; bit <<= 1)
		hear(program, self + bit, STEP_UP, DO_FOLD);
	if (self) {
		say(program, self - reach, STEP_UP, SAY_TOTAL);
		hear(program, self - reach, STEP_DOWN, DO_REPLACE);
	}
	for (bit >>= 1; bit; bit >>= 1)
		say(program, self + bit, STEP_DOWN, SAY_TOTAL);
}

/* Downwards goes what the members before the child have. */
static void scan_tree(struct program *program, uint32_t hosts, uint32_t self)
{
	uint32_t reach = tree_reach(hosts, self), bit, child = 0;

	for (bit = 1; bit < reach && self + bit < hosts; bit <<= 1)
		hear(program, self + bit, STEP_UP, DO_FOLD);
	if (self) {
		say(program, self - reach, STEP_UP, SAY_TOTAL);
		hear(program, self - reach, STEP_DOWN, DO_BEFORE);
	}
	act(program, DO_DESCEND, 0);
	for (bit = 1; bit < reach && self + bit < hosts; bit <<= 1) {
		if (child)
			act(program, DO_CHILD, child - 1);
		say(program, self + bit, STEP_DOWN, SAY_RUNNING);
		child++;
	}
}

/* ---- recursive doubling ---- */

static uint32_t core_size(uint32_t hosts)
{
	uint32_t core = 1;

	while (core <= hosts / 2)
		core <<= 1;
	return core;
}

/* Members beyond the largest power of two give what they have to one below it first. */
static void make_doubling(struct program *program, uint32_t hosts, uint32_t self)
{
	uint32_t core = core_size(hosts), round = STEP_ROUND;

	if (self >= core) {
		say(program, self - core, STEP_UP, SAY_TOTAL);
		hear(program, self - core, STEP_DOWN, DO_REPLACE);
		return;
	}
	if (self + core < hosts)
		hear(program, self + core, STEP_UP, DO_FOLD);
	for (uint32_t bit = 1; bit < core; bit <<= 1, round++) {
		say(program, self ^ bit, round, SAY_TOTAL);
		hear(program, self ^ bit, round, DO_FOLD);
	}
	if (self + core < hosts)
		say(program, self + core, STEP_DOWN, SAY_TOTAL);
}

/*
 * The first 2 * extra members are pairs of neighbours, so that the core's members
 * stand for ranges in order: the even one of a pair is in the core.
 */
static uint32_t core_member(uint32_t extra, uint32_t core_index)
{
	return core_index < extra ? 2 * core_index : core_index + extra;
}

static void scan_doubling(struct program *program, uint32_t hosts, uint32_t self)
{
	uint32_t core = core_size(hosts), extra = hosts - core, round = STEP_ROUND;
	bool paired = self < 2 * extra;
	uint32_t index = paired ? self / 2 : self - extra;

	if (paired && self % 2) {
		say(program, self - 1, STEP_UP, SAY_TOTAL);
		hear(program, self - 1, STEP_DOWN, DO_BEFORE);
		return;
	}
	if (paired)
		hear(program, self + 1, STEP_UP, DO_FOLD);
	for (uint32_t bit = 1; bit < core; bit <<= 1, round++) {
		uint32_t peer = core_member(extra, index ^ bit);

		say(program, peer, round, SAY_TOTAL);
		hear(program, peer, round, peer < self ? DO_FOLD_BEFORE : DO_FOLD);
	}
	if (paired)
		say(program, self + 1, STEP_DOWN, SAY_BEFORE_OWN);
}

/* ---- torus ---- */

uint32_t program_rows(uint32_t hosts)
{
	uint32_t rows = 1;

	for (uint32_t n = 1; n * n <= hosts; n++)
		if (hosts % n == 0)
			rows = n;
	return rows;
}

static void torus_rings(uint32_t hosts, uint32_t self, struct ring *row, struct ring *column)
{
	uint32_t rows = program_rows(hosts), columns = hosts / rows;

	row->nr = columns;
	row->self = self % columns;
	row->base = self - self % columns;
	row->pitch = 1;
	column->nr = rows;
	column->self = self / columns;
	column->base = self % columns;
	column->pitch = columns;
	column->step = STEP_COLUMN_UP;
}

static void make_torus(struct program *program, uint32_t hosts, uint32_t self)
{
	struct ring row = reduce_ring, column = reduce_ring;

	torus_rings(hosts, self, &row, &column);
	add_ring(program, &row);
	add_ring(program, &column);
}

static void scan_torus(struct program *program, uint32_t hosts, uint32_t self)
{
	struct ring row = {
		.step = STEP_UP, .heard_up = DO_BEFORE, .heard_down = DO_REPLACE,
		.up = SAY_BEFORE_TOTAL, .down = SAY_TOTAL, .close = true,
	};
	struct ring column = {
		.heard_up = DO_RUNNING, .heard_down = DO_NOTHING,
		.up = SAY_RUNNING_TOTAL, .down = SAY_NOTHING,
	};

	torus_rings(hosts, self, &row, &column);
	add_ring(program, &row);
	add_ring(program, &column);
	act(program, DO_MERGE, 0);
}

void program_make(struct program *program, enum muster_bump_operation operation,
		  enum muster_bump_algorithm algorithm, uint32_t hosts, uint32_t self)
{
	bool scan = operation == MUSTER_BUMP_SCAN;

	program->nr = 0;
	switch (algorithm) {
	case MUSTER_BUMP_RING:
		(scan ? scan_ring : make_ring)(program, hosts, self);
		break;
	case MUSTER_BUMP_TREE:
		(scan ? scan_tree : make_tree)(program, hosts, self);
		break;
	case MUSTER_BUMP_DOUBLING:
		(scan ? scan_doubling : make_doubling)(program, hosts, self);
		break;
	case MUSTER_BUMP_TORUS:
		(scan ? scan_torus : make_torus)(program, hosts, self);
		break;
	}
}
