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
	memset(&segment->came, 0, sizeof(segment->came));
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

/* What a half has come to lies where the last that it has combined did, and all others are behind it. */
static const uint8_t **begin_of(const struct group *group, struct segment *segment, bool right)
{
	uint32_t next = segment->next[right];

	return &segment->from[next > first_of(group, right) ? next - 1 : next];
}

static void combine(const struct segment *segment, uint8_t *sum, const uint8_t *const *from,
		    uint32_t left, uint32_t nr)
{
	if (segment->total)
		muster_arith_rows(segment->signature.type, segment->signature.op, sum, from, left,
				  nr, segment->total);
}

/* What a half has come to, and all that is ready. */
static void combine_ready(const struct group *group, struct segment *segment, bool right)
{
	const uint8_t **from = begin_of(group, segment, right);
	uint8_t *sum = sum_of(group, segment, right);
	uint32_t nr;

	segment->next[right] += segment->ready[right];
	segment->waiting -= segment->ready[right];
	segment->ready[right] = 0;
	nr = (uint32_t)(&segment->from[segment->next[right]] - from);
	combine(segment, sum, from, nr, nr);
	from[nr - 1] = sum;
}

/* Both halves and the top unit. */
static void combine_all(const struct group *group, struct segment *segment)
{
	const uint8_t **middle = &segment->from[group->split], **end = &segment->from[group->config.nr_children];
	const uint8_t **from = begin_of(group, segment, false), **right = begin_of(group, segment, true);
	uint32_t nr_left = (uint32_t)(middle - from), nr_right = (uint32_t)(end - right);

	if (right != middle)
		memmove(middle, right, nr_right * sizeof(*right));
	combine(segment, segment->sum, from, nr_left ? nr_left : nr_right, nr_left + nr_right);
	segment->waiting = 0;
}

/* Those of a half whose turn it is when somebody has come. */
static void half_look(const struct group *group, struct segment *segment, bool right)
{
	uint32_t *ready = &segment->ready[right], next = segment->next[right];

	while (next + *ready < end_of(group, right) && child_set_has(&segment->came, next + *ready))
		++*ready;
}

/* What is at hand for this call alone. Return: whether it is its turn. */
static bool put(const struct group *group, struct segment *segment, uint32_t child, bool right,
		const uint8_t *payload, uint32_t bytes)
{
	half_look(group, segment, right);
	if (child == segment->next[right] + segment->ready[right]) {
		segment->from[child] = payload;
		return true;
	}
	copy(place_of(group, segment, child), payload, bytes);
	segment->from[child] = place_of(group, segment, child);
	return false;
}

static bool take_at_once(const struct group *group, struct segment *segment, uint32_t child,
			 const uint8_t *payload, uint32_t bytes)
{
	bool right = child >= group->split;
	bool its_turn = put(group, segment, child, right, payload, bytes);

	ring_arrive(segment, child);
	segment->waiting++;
	if (!segment->missing) {
		combine_all(group, segment);
	} else if (its_turn) {
		half_look(group, segment, right);
		combine_ready(group, segment, right);
	}
	return !segment->missing;
}

bool ring_take(const struct group *group, struct segment *segment, uint32_t child,
	       const void *payload, uint32_t bytes)
{
	if (segment->signature.op != MUSTER_REDOP_NONE)
		return take_at_once(group, segment, child, payload, bytes);
	copy(segment->sum, payload, bytes);	/* whoever brings it has brought the result */
	ring_arrive(segment, child);
	return !segment->missing;
}

bool ring_combine(const struct group *group, struct segment *segment, uint32_t child)
{
	bool right = child >= group->split;

	if (!segment->missing) {
		combine_all(group, segment);
		return true;
	}
	half_look(group, segment, right);
	if (segment->ready[right] >= RING_FEW)
		combine_ready(group, segment, right);
	return false;
}

/* What waits is combined, or goes to a place of its own. */
void ring_give_back(const struct group *group, struct segment *segment)
{
	if (!segment->waiting)
		return;
	for (int right = 0; right < NR_HALVES; right++) {
		half_look(group, segment, right);
		if (segment->ready[right])
			combine_ready(group, segment, right);
	}
	for (uint32_t child = 0; child < group->config.nr_children; child++) {
		uint8_t *place = place_of(group, segment, child);

		if (child < segment->next[child >= group->split] || !child_set_has(&segment->came, child) ||
		    segment->from[child] == place)
			continue;
		copy(place, segment->from[child], segment->total);
		segment->from[child] = place;
	}
}

/* Where all lies when nothing is lent. */
void ring_at_home(const struct group *group, struct segment *segment)
{
	for (uint32_t child = 0; child < group->config.nr_children; child++)
		segment->from[child] = place_of(group, segment, child);
	for (int right = 0; right < NR_HALVES; right++)
		if (segment->next[right] > first_of(group, right))
			segment->from[segment->next[right] - 1] = sum_of(group, segment, right);
}
