// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The order in which children are combined, whatever the order of their arrival: one whose
 * turn has not come waits in a place of its own. A low-latency tree goes through its children
 * one by one. In a streaming tree each two ports have a reduction unit; the units are two
 * half rings, in which a unit combines what comes from the one before with its lower port,
 * then with its upper one, and the top unit combines the left half with the right one
 * (paper, figure 1b).
 */
#include "internal.h"

#include <string.h>

#include "arith.h"

enum { CACHE_LINE = 64 };

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
}

static uint8_t *place_of(const struct group *group, const struct segment *segment, uint32_t child)
{
	return segment->sum + (size_t)group->config.payload_max * (NR_HALVES + child);
}

/* Of 0 bytes there need be no place. */
static void copy(void *to, const void *from, uint32_t bytes)
{
	if (bytes)
		memcpy(to, from, bytes);
}

static void combine(const struct segment *segment, uint8_t *sum, const void *from)
{
	if (segment->total)
		muster_arith_checked(segment->signature.type, segment->signature.op, sum, sum, from,
				     segment->total);
}

/* What comes is seldom in a cache, and each packet is too short for the machine to see it coming. */
static void expect(const uint8_t *payload, uint32_t bytes)
{
	for (uint32_t at = 0; at < bytes; at += CACHE_LINE)
		__builtin_prefetch(payload + at);
}

/* Without an operation there is nothing to wait for: whoever brings it has brought the result. */
static void bring(struct segment *segment, uint32_t *next, uint32_t end, const void *payload,
		  uint32_t bytes)
{
	copy(segment->sum, payload, bytes);
	while (*next < end && child_set_has(&segment->came, *next))
		++*next;
}

void ring_take(const struct group *group, struct segment *segment, uint32_t child,
	       const void *payload, uint32_t bytes)
{
	bool right = child >= group->split;
	uint32_t first = right ? group->split : 0, *next = &segment->next[right];
	uint32_t end = right ? group->config.nr_children : group->split;
	uint8_t *sum = segment->sum + (right ? group->config.payload_max : 0);

	expect(payload, bytes);
	child_set_add(&segment->came, child);
	if (segment->signature.op == MUSTER_REDOP_NONE) {
		bring(segment, next, end, payload, bytes);
		return;
	}
	if (child != *next) {
		copy(place_of(group, segment, child), payload, bytes);
		return;
	}
	if (child == first)
		copy(sum, payload, bytes);
	else
		combine(segment, sum, payload);
	while (++*next < end && child_set_has(&segment->came, *next))
		combine(segment, sum, place_of(group, segment, *next));
}

bool ring_done(const struct group *group, struct segment *segment)
{
	const uint8_t *right = segment->sum + group->config.payload_max;

	if (segment->next[0] < group->split || segment->next[1] < group->config.nr_children)
		return false;
	if (segment->signature.op == MUSTER_REDOP_NONE)
		return true;
	if (!group->split)
		copy(segment->sum, right, segment->total);
	else if (group->split < group->config.nr_children)
		combine(segment, segment->sum, right);
	return true;
}
