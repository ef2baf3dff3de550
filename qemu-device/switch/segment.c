// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One segment of an operation at one aggregation node: the contributions of the children,
 * combined in the children's order whatever the order of their arrival; then up, or, at the
 * root, down. A contribution whose turn has not come waits in a place of its own.
 */
#include "internal.h"

#include <string.h>

#include "arith.h"

enum { STALE = 1 << 16 };		/* numbers so far back are late, not ahead */

/* Members may pass a tree by for as many numbers as they like, so a difference has no sign. */
static bool is_older(uint32_t number, uint32_t than)
{
	return than - number - 1 < STALE;
}

/* ---- what has its place ---- */

/* A child is at most MUSTER_PULSES_LIVE pulses ahead of its oldest one, and of no other number. */
static bool in_window(struct muster_switch *sw, const struct progress *progress,
		      const struct muster_packet *packet)
{
	bool same = progress->begun && packet->number == progress->number;
	uint32_t first = same ? progress->first : 0, ahead = packet->pulse - first;

	if (progress->begun && is_older(packet->number, progress->number)) {
		sw->counters.drop_window++;
		return false;
	}
	if (packet->pulse < first || (same && ahead < 8 && progress->seen >> ahead & 1)) {
		sw->counters.drop_duplicate++;
		return false;
	}
	if (ahead < MUSTER_PULSES_LIVE)
		return true;
	sw->counters.drop_window++;
	return false;
}

static void advance(struct progress *progress, const struct muster_packet *packet)
{
	if (!progress->begun || packet->number != progress->number)
		*progress = (struct progress){ .begun = true, .number = packet->number };
	progress->seen |= 1u << (packet->pulse - progress->first);
	for (; progress->seen & 1; progress->seen >>= 1)
		progress->first++;
}

static struct segment *find(struct group *group, const struct muster_packet *packet)
{
	for (uint32_t i = 0; i < SEGMENTS; i++) {
		struct segment *segment = &group->segments[i];

		if (segment->phase != SEGMENT_FREE && segment->number == packet->number &&
		    segment->pulse == packet->pulse)
			return segment;
	}
	return NULL;
}

static struct segment *begin(struct group *group, const struct muster_packet *packet)
{
	struct segment *segment = group->segments;

	while (segment < group->segments + SEGMENTS && segment->phase != SEGMENT_FREE)
		segment++;
	if (segment == group->segments + SEGMENTS)
		return NULL;
	segment->phase = SEGMENT_COLLECTING;
	segment->slot = packet->seq_id;
	segment->stage = packet->stage;
	segment->number = packet->number;
	segment->pulse = packet->pulse;
	segment->total = packet->total;
	segment->signature = packet->signature;
	segment->next = 0;
	memset(&segment->came, 0, sizeof(segment->came));
	memset(&segment->owed, 0, sizeof(segment->owed));
	return segment;
}

static bool agrees(const struct segment *segment, const struct muster_packet *packet)
{
	return segment->slot == packet->seq_id && segment->stage == packet->stage &&
	       segment->total == packet->total &&
	       !memcmp(&segment->signature, &packet->signature, sizeof(packet->signature));
}

/*
 * Who contributes to a later use of a segment's place has the result of that one, whichever
 * copy it was: the copy that is still owed is spared.
 */
static void spare(struct muster_switch *sw, struct group *group, uint32_t child,
		  const struct muster_packet *packet)
{
	for (uint32_t i = 0; i < SEGMENTS; i++) {
		struct segment *segment = &group->segments[i];

		if (segment->phase != SEGMENT_DOWN || !child_set_has(&segment->owed, child) ||
		    (segment->number == packet->number &&
		     packet->pulse < segment->pulse + MUSTER_PULSES_LIVE) ||
		    is_older(packet->number, segment->number))
			continue;
		child_set_remove(&segment->owed, child);
		sw->counters.copies_spared++;
		if (child_set_empty(&segment->owed))
			segment->phase = SEGMENT_FREE;
	}
}

/* ---- combining ---- */

static uint8_t *place_of(const struct group *group, const struct segment *segment, uint32_t child)
{
	return segment->sum + (size_t)group->config.payload_max * (1 + child);
}

/* Of 0 bytes there need be no place. */
static void copy(void *to, const void *from, uint32_t bytes)
{
	if (bytes)
		memcpy(to, from, bytes);
}

/* Of the child whose turn it is. */
static void combine(struct segment *segment, const void *from)
{
	if (!segment->next)
		copy(segment->sum, from, segment->total);
	else if (segment->total)
		muster_arith_checked(segment->signature.type, segment->signature.op, segment->sum,
				     segment->sum, from, segment->total);
	segment->next++;
}

static void take(const struct group *group, struct segment *segment, uint32_t child,
		 const void *payload)
{
	child_set_add(&segment->came, child);
	if (child != segment->next) {
		copy(place_of(group, segment, child), payload, segment->total);
		return;
	}
	combine(segment, payload);
	while (segment->next < group->config.nr_children &&
	       child_set_has(&segment->came, segment->next))
		combine(segment, place_of(group, segment, segment->next));
}

/* ---- down and up ---- */

static void distribute(struct muster_switch *sw, struct group *group, struct segment *segment,
		       bool once)
{
	sw->counters.results++;
	if (once)
		generator_once(sw, group, segment);
	segment->phase = SEGMENT_DOWN;
	child_set_fill(&segment->owed, group->config.nr_children);
}

/* In one go as far as links take it. */
bool segment_settle(struct muster_switch *sw, struct group *group, struct segment *segment)
{
	if (segment->phase == SEGMENT_UP && !generator_up(sw, group, segment))
		segment->phase = SEGMENT_AWAITING;
	if (segment->phase == SEGMENT_DOWN && !generator_down(sw, group, segment))
		segment->phase = SEGMENT_FREE;
	return segment->phase == SEGMENT_UP || segment->phase == SEGMENT_DOWN;
}

static void settle(struct muster_switch *sw, struct group *group, struct segment *segment)
{
	if (segment_settle(sw, group, segment))
		group_owes(sw, group);
}

void segment_contribute(struct muster_switch *sw, struct group *group, uint32_t child,
			const struct muster_packet *packet, const void *payload)
{
	struct segment *segment;

	if (packet->total > group->config.payload_max) {
		sw->counters.drop_malformed++;
		return;
	}
	if (!in_window(sw, &group->progress[child], packet))
		return;
	spare(sw, group, child, packet);
	segment = find(group, packet);
	if (!segment)
		segment = begin(group, packet);
	if (!segment || segment->phase != SEGMENT_COLLECTING) {
		sw->counters.drop_window++;
		return;
	}
	if (!agrees(segment, packet)) {
		group_fail(sw, group, MUSTER_STATUS_MISMATCH, packet->src_member,
			   &packet->signature, BY_NOBODY);
		return;
	}
	advance(&group->progress[child], packet);
	sw->counters.contributions++;
	if (!child)
		segment->speaker = packet->src_member;
	take(group, segment, child, payload);
	if (segment->next < group->config.nr_children)
		return;
	sw->counters.combined++;
	if (group_is_root(group))
		distribute(sw, group, segment, true);
	else
		segment->phase = SEGMENT_UP;
	settle(sw, group, segment);
}

/* The first of the two copies that gets here is the result. */
void segment_result(struct muster_switch *sw, struct group *group,
		    const struct muster_packet *packet, const void *payload)
{
	struct segment *segment = find(group, packet);

	if (!segment || segment->phase != SEGMENT_AWAITING) {
		sw->counters.drop_duplicate++;
		return;
	}
	if (!agrees(segment, packet)) {
		sw->counters.drop_malformed++;
		return;
	}
	copy(segment->sum, payload, segment->total);
	distribute(sw, group, segment, packet->flags & MUSTER_PACKET_ONCE);
	settle(sw, group, segment);
}
