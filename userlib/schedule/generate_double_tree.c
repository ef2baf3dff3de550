// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Broadcast along two binary trees at once (Sanders, Speck, Träff): each carries half of the
 * message, and whoever passes on one half only receives the other, so all send at full rate.
 *
 * Ranks are counted from the root: place v is rank (root + v) mod ranks. Places 1 to m are the
 * nodes of both trees, place 0 hands the halves to their roots. In the first tree a node's label
 * is its place, and its height the number of times that its label can be halved: those with odd
 * labels are leaves. In the second one labels are mirrored or, as m is odd, shifted by one, so
 * that parity changes.
 * A node that has its half in round r sends it on in rounds r + 1 and r + 2; rounds of the two
 * trees alternate as steps.
 */
#include "part.h"

enum { TREES = 2 };

static uint32_t highest(uint32_t nr)
{
	return 1u << (31 - (uint32_t)__builtin_clz(nr));
}

/* Its own inverse, or, where it shifts, one of two. */
static uint32_t label_of(uint32_t m, uint32_t tree, uint32_t place)
{
	if (!tree || !place)
		return place;
	if (m % 2)
		return place == m ? 1 : place + 1;
	return m + 1 - place;
}

static uint32_t place_of(uint32_t m, uint32_t tree, uint32_t label)
{
	if (!tree || !label)
		return label;
	if (m % 2)
		return label == 1 ? m : label - 1;
	return m + 1 - label;
}

/* 0: it is the root's child. */
static uint32_t parent_of(uint32_t m, uint32_t label)
{
	uint32_t bit = label & -label, up = (label ^ bit) | bit << 1;

	if (label == highest(m))
		return 0;
	return up <= m ? up : label ^ bit;
}

/* left: those with smaller labels. 0: there is none. */
static uint32_t child_of(uint32_t m, uint32_t label, bool left)
{
	uint32_t bit = label & -label, most;

	if (bit == 1)
		return 0;
	if (left)
		return label - bit / 2;
	if (label == m)
		return 0;
	most = highest(m - label);
	return label + (most < bit / 2 ? most : bit / 2);
}

/* Not __builtin_popcountll(), which is a call where the processor may have no instruction for it. */
static uint32_t ones(uint64_t bits)
{
	bits -= bits >> 1 & 0x5555555555555555;
	bits = (bits & 0x3333333333333333) + (bits >> 2 & 0x3333333333333333);
	bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0f;
	return (uint32_t)((bits * 0x0101010101010101) >> 56);
}

/*
 * In which a node gets its half: one more for each turn to the left on the way down to it, two for
 * each to the right. The way turns right at the height of each bit of the label but its lowest, left
 * at the other heights above that; but where it turns left at a node beyond m, that is not there:
 * at every bit that is 0 above the highest in which label and m differ.
 */
static uint32_t round_of(uint32_t m, uint32_t label)
{
	uint32_t lowest = (uint32_t)__builtin_ctz(label);
	uint32_t above = label == m ? 0 : 32 - (uint32_t)__builtin_clz(label ^ m);

	above = above > lowest + 1 ? above : lowest + 1;
	/* twice the ones above the lowest, and once the zeros from there to `above`, as one sum */
	return above - lowest - 2 + ones((uint64_t)label << 32 | label >> above);
}

/* The last one: the left subtree is full, the right one a tree of what is left. */
static uint32_t rounds(uint32_t m)
{
	uint32_t most = 0, base = 0;

	for (; m; base += 2, m -= highest(m)) {
		uint32_t height = 31 - (uint32_t)__builtin_clz(m);
		uint32_t last = base + (height ? 2 * height - 1 : 0);

		most = last > most ? last : most;
	}
	return most;
}

static uint32_t chunks(uint32_t ranks)
{
	(void)ranks;
	return TREES;
}

static uint32_t steps(const struct muster_schedule *schedule)
{
	return schedule->ranks > 1 ? TREES * (rounds(schedule->ranks - 1) + 1) : 0;
}

static struct muster_step_kind step_kind(const struct muster_schedule *schedule, uint32_t step)
{
	(void)schedule;
	(void)step;
	return (struct muster_step_kind){ .nr = 1 };
}

static uint32_t rank_of(const struct muster_schedule *schedule, uint32_t tree, uint32_t label)
{
	return muster_rank_at(schedule, place_of(schedule->ranks - 1, tree, label));
}

/* The round after which a node has nothing more to do in a tree; leaves send nothing. */
static uint32_t last_of(uint32_t label, uint32_t own)
{
	return own + (label % 2 ? 0 : 2);
}

/* Of one tree: the root hands its half over in round 0; others get it and, unless leaves, send it twice. */
static uint32_t next_of(uint32_t m, uint32_t tree, uint32_t place, uint32_t step)
{
	uint32_t label = label_of(m, tree, place), first = 0, last = 0;
	uint32_t round = (step + (step % TREES != tree)) / TREES;

	if (place) {
		first = round_of(m, label);
		last = last_of(label, first);
	}
	round = round > first ? round : first;
	return round <= last ? round * TREES + tree : MUSTER_NOBODY;
}

/* Behind a step in which a node has something to do, of rounds up to `last` in that step's tree. */
static uint32_t next_behind(const struct muster_schedule *schedule, uint32_t place, uint32_t step, uint32_t last)
{
	uint32_t next = next_of(schedule->ranks - 1, !(step % TREES), place, step + 1);

	if (step / TREES < last && step + TREES < next)
		next = step + TREES;
	return next < schedule->steps ? next : schedule->steps;
}

static void exchange(const struct muster_schedule *schedule, uint32_t rank, uint32_t step,
		     struct muster_exchange *exchange)
{
	uint32_t m = schedule->ranks - 1, tree = step % TREES, round = step / TREES;
	uint32_t place = muster_place_of(schedule, rank);
	uint32_t label = label_of(m, tree, place), own, last, child = 0;

	exchange->sent = exchange->received = tree;
	if (!label) {
		if (!round)
			exchange->to = rank_of(schedule, tree, highest(m));
		return;
	}
	own = round_of(m, label);
	last = last_of(label, own);
	if (round == own)
		exchange->from = rank_of(schedule, tree, parent_of(m, label));
	else if (round == own + 1 || round == own + 2)
		child = child_of(m, label, round == own + 1);
	if (child)
		exchange->to = rank_of(schedule, tree, child);
	if (round >= own && round <= last)
		exchange->next = next_behind(schedule, place, step, last);
}

static uint32_t next(const struct muster_schedule *schedule, uint32_t rank, uint32_t step)
{
	uint32_t m = schedule->ranks - 1, place = muster_place_of(schedule, rank);
	uint32_t next = schedule->steps, tree = step % TREES;

	if (!m)
		return next;
	for (uint32_t i = 0; i < TREES && next != step; i++, tree = (tree + 1) % TREES) {
		uint32_t found = next_of(m, tree, place, step);

		next = found < next ? found : next;
	}
	return next;
}

/* What it gets along the tree of the part's step it gets in that step. */
static uint32_t received(const struct muster_part *part, uint32_t rank, uint32_t step)
{
	const struct muster_schedule *schedule = part->schedule;
	uint32_t m = schedule->ranks - 1, place = muster_place_of(schedule, rank);
	uint32_t other = (part->step + 1) % TREES;

	return place && round_of(m, label_of(m, other, place)) * TREES + other < step;
}

const struct muster_generator muster_generate_double_tree = {
	.name = "double-tree",
	.colls = 1u << MUSTER_COLL_BROADCAST,
	.version = 1,
	.chunks = chunks,
	.steps = steps,
	.step = step_kind,
	.exchange = exchange,
	.next = next,
	.received = received,
};
