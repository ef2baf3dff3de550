// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The order in which children are combined, whatever the order of their arrival. One whose turn has
 * not come waits: where it has come, if that was lent, else in a place of its own. Of what was lent
 * several wait for each other even in their turn, so that one pass reads them side by side: memory is
 * slowest for who reads one packet at a time.
 *
 * A low-latency tree goes through its children
 * one by one. In a streaming tree each two ports have a reduction unit; the units are two
 * half rings, in which a unit combines what comes from the one before with its lower port,
 * then with its upper one, and the top unit combines the left half with the right one
 * (paper, figure 1b).
 */
#include "internal.h"

#include <string.h>

#include "arith.h"

enum {
	FEW = 8,			/* of what was lent: combined, though others are missing */
	FIRST = 16 * CACHE_LINE,	/* bytes of it that are asked for when it comes */
};

/* Units 0 to n / 2 - 1, rounded up, are the left half ring. */
uint32_t ring_split(const struct muster_switch_group *config, uint32_t radix)
{
	uint32_t units = (radix + 1) / 2, split = 0;

	if (config->type == MUSTER_SWITCH_LLT)
		return config->nr_children;
	while (split < config->nr_children && config->children[split].port / 2 < (units + 1) / 2)
		split++;
	return split;
}

void ring_begin(const struct group *group, struct segment *segment)
{
	segment->next[0] = 0;
	segment->next[1] = group->split;
	segment->ready[0] = segment->ready[1] = 0;
	segment->missing = group->config.nr_children;
	segment->waiting = 0;
}

static uint8_t *place_of(const struct group *group, const struct segment *segment, uint32_t child)
{
	return segment->sum + (size_t)group->config.payload_max * (NR_HALVES + child);
}

/* Where a half ring begins, ends, and has what it has come to. */
static uint32_t first_of(const struct group *group, bool right)
{
	return right ? group->split : 0;
}

static uint32_t end_of(const struct group *group, bool right)
{
	return right ? group->config.nr_children : group->split;
}

static uint8_t *sum_of(const struct group *group, const struct segment *segment, bool right)
{
	return segment->sum + (right ? group->config.payload_max : 0);
}

/* Of 0 bytes there need be no place. */
static void copy(void *to, const void *from, uint32_t bytes)
{
	if (bytes)
		memcpy(to, from, bytes);
}

/* What a half has come to, and all that is ready: they are combined now. Return: how many that is. */
static uint32_t list(const struct group *group, struct segment *segment, bool right,
		     const uint8_t **from)
{
	uint32_t nr = 0, child = segment->next[right], end = child + segment->ready[right];

	if (child > first_of(group, right))
		from[nr++] = sum_of(group, segment, right);
	for (; child < end; child++) {
		bool lent = child_set_has(&segment->lent, child);

		from[nr++] = lent ? segment->from[child] : place_of(group, segment, child);
		segment->waiting -= lent;
	}
	segment->next[right] = end;
	segment->ready[right] = 0;
	return nr;
}

static void combine(const struct segment *segment, uint8_t *sum, const uint8_t *const *from,
		    uint32_t left, uint32_t nr)
{
	if (segment->total)
		muster_arith_rows(segment->signature.type, segment->signature.op, sum, from, left,
				  nr, segment->total);
}

static void combine_ready(const struct group *group, struct segment *segment, bool right)
{
	const uint8_t *from[1 + MUSTER_SWITCH_RADIX_MAX];
	uint32_t nr = list(group, segment, right, from);

	combine(segment, sum_of(group, segment, right), from, nr, nr);
}

/* Both halves and the top unit. */
static void combine_all(const struct group *group, struct segment *segment)
{
	const uint8_t *from[NR_HALVES + MUSTER_SWITCH_RADIX_MAX];
	uint32_t left, nr;

	for (int right = 0; right < NR_HALVES; right++)
		segment->ready[right] = end_of(group, right) - segment->next[right];
	left = list(group, segment, false, from);
	nr = left + list(group, segment, true, from + left);
	combine(segment, segment->sum, from, left ? left : nr, nr);
	memset(&segment->lent, 0, sizeof(segment->lent));
}

/* Those of a half whose turn it is when somebody has come. */
static void half_look(const struct group *group, struct segment *segment, bool right)
{
	uint32_t *ready = &segment->ready[right], next = segment->next[right];

	while (next + *ready < end_of(group, right) && child_set_has(&segment->came, next + *ready))
		++*ready;
}

/* What comes is seldom in a cache, and each packet is too short for the machine to see it coming. */
static void expect(const uint8_t *payload, uint32_t bytes)
{
	for (uint32_t at = 0; at < bytes; at += CACHE_LINE)
		__builtin_prefetch(payload + at);
}

/*
 * Of what is read later, side by side with others: what memory brings until the next one has been looked at. With less
 * it waits then, with more that one waits; the machine sees the rest coming when reading begins.
 */
static void expect_first(const uint8_t *payload, uint32_t bytes)
{
	if (bytes < FIRST)
		return;
#pragma GCC unroll 16
	for (uint32_t at = 0; at < FIRST; at += CACHE_LINE)
		__builtin_prefetch(payload + at);
}

static void lie(struct segment *segment, uint32_t child, const uint8_t *payload)
{
	segment->from[child] = payload;
	child_set_add(&segment->lent, child);
	segment->waiting++;
}

/* What is at hand for this call alone. Return: whether it is its turn. */
static bool put(const struct group *group, struct segment *segment, uint32_t child, bool right,
		const uint8_t *payload, uint32_t bytes)
{
	expect(payload, bytes);
	half_look(group, segment, right);
	if (child != segment->next[right] + segment->ready[right]) {
		copy(place_of(group, segment, child), payload, bytes);
		return false;
	}
	lie(segment, child, payload);
	return true;
}

/* When one has come: as many as are worth it, or it alone, if that goes. */
static void half_combine(const struct group *group, struct segment *segment, bool right, bool at_once)
{
	if (!at_once && segment->waiting < FEW)
		return;
	half_look(group, segment, right);
	if (at_once || segment->ready[right] >= FEW)
		combine_ready(group, segment, right);
}

static void arrive(struct segment *segment, uint32_t child)
{
	child_set_add(&segment->came, child);
	segment->missing--;
}

/* Return: whether all are in. */
static __attribute__((noinline)) bool combine_some(const struct group *group, struct segment *segment,
						   bool right, bool at_once)
{
	if (segment->missing)
		half_combine(group, segment, right, at_once);
	else
		combine_all(group, segment);
	return !segment->missing;
}

static __attribute__((noinline)) bool take_at_once(const struct group *group, struct segment *segment,
						   uint32_t child, const uint8_t *payload, uint32_t bytes)
{
	bool right = child >= group->split;
	bool at_once = put(group, segment, child, right, payload, bytes);

	arrive(segment, child);
	return combine_some(group, segment, right, at_once);
}

bool ring_take(const struct group *group, struct segment *segment, uint32_t child,
	       const struct payload *payload, uint32_t bytes)
{
	if (segment->signature.op == MUSTER_REDOP_NONE) {
		copy(segment->sum, payload->at, bytes);	/* whoever brings it has brought the result */
		arrive(segment, child);
		return !segment->missing;
	}
	if (!payload->lent)
		return take_at_once(group, segment, child, payload->at, bytes);
	expect_first(payload->at, bytes);
	lie(segment, child, payload->at);
	arrive(segment, child);
	if (segment->missing && segment->waiting < FEW)
		return false;
	return combine_some(group, segment, child >= group->split, false);
}

/* What waits is combined, or goes to a place of its own. */
static void take_over(const struct group *group, struct segment *segment)
{
	for (int right = 0; right < NR_HALVES; right++) {
		half_look(group, segment, right);
		if (segment->ready[right])
			combine_ready(group, segment, right);
	}
	for (uint32_t child = 0; child < group->config.nr_children; child++)
		if (child_set_has(&segment->lent, child) &&
		    child >= segment->next[child >= group->split])
			copy(place_of(group, segment, child), segment->from[child], segment->total);
	segment->waiting = 0;
}

void ring_give_back(const struct group *group, struct segment *segment)
{
	if (segment->waiting)
		take_over(group, segment);
	memset(&segment->lent, 0, sizeof(segment->lent));
}
