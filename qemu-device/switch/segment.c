// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One segment of an operation at one aggregation node: the contributions of the children,
 * combined (ring.c); then up, or, at the root, down.
 */
#include "internal.h"

#include <string.h>

enum { STALE = 1 << 16 };		/* numbers so far back are late, not ahead */

/* Members may pass a tree by for as many numbers as they like, so a difference has no sign. */
static bool is_older(uint32_t number, uint32_t than)
{
	return than - number - 1 < STALE;
}

/* ---- what has its place ---- */

/* A child is at most MUSTER_TREE_PULSES_LIVE pulses ahead of its oldest one, and of no other number. */
static bool in_window(struct muster_switch *sw, const struct progress *progress,
		      const struct muster_packet *packet)
{
	bool same = progress->begun && packet->number == progress->number;
	uint32_t first = same ? progress->first : 0, ahead = packet->pulse - first;

	if (progress->begun && is_older(packet->number, progress->number)) {
		sw->counters.drop_window++;
		return false;
	}
	if (packet->pulse < first || (same && ahead < SEGMENTS && progress->seen >> ahead & 1)) {
		sw->counters.drop_duplicate++;
		return false;
	}
	if (ahead < MUSTER_TREE_PULSES_LIVE)
		return true;
	sw->counters.drop_window++;
	return false;
}

static void advance(struct progress *progress, const struct muster_packet *packet)
{
	bool same = progress->begun && packet->number == progress->number;
	uint32_t first = same ? progress->first : 0;
	uint32_t seen = (same ? progress->seen : 0) | 1u << (packet->pulse - first);

	for (; seen & 1; seen >>= 1)
		first++;
	progress->begun = true;
	progress->number = packet->number;
	progress->first = first;
	progress->seen = seen;
}

static bool is_of(const struct segment *segment, const struct muster_packet *packet)
{
	return segment->phase != SEGMENT_FREE && segment->number == packet->number &&
	       segment->pulse == packet->pulse;
}

/* Where its pulse was begun last, or elsewhere if a child is ahead that may not be. */
static struct segment *find(struct group *group, const struct muster_packet *packet)
{
	struct segment *segment = group->places[packet->pulse % SEGMENTS];

	if (is_of(segment, packet))
		return segment;
	for (uint32_t left = group->used; left; left &= left - 1) {
		segment = &group->segments[__builtin_ctz(left)];
		if (is_of(segment, packet))
			return segment;
	}
	return NULL;
}

/* Of its pulse, if there is room for it: members begin the next operation when they have all of one. */
static bool index_of(struct group *group, const struct muster_packet *packet, uint32_t *index)
{
	if (packet->number != group->number) {
		group->number = packet->number;
		group->number_first = group->end;
	}
	*index = group->number_first + packet->pulse;
	if (*index - group->oldest >= group->config.segments)
		return false;
	if ((int32_t)(*index - group->end) >= 0)
		group->end = *index + 1;
	return true;
}

/* The first that is free, and not all in turn: what was used a moment ago is in the cache. */
static struct segment *begin(struct group *group, const struct muster_packet *packet)
{
	struct segment *segment;
	uint32_t index;

	if (!index_of(group, packet, &index))
		return NULL;
	segment = &group->segments[__builtin_ctz(~group->used)];
	group->used |= group->used + 1;
	group->places[packet->pulse % SEGMENTS] = segment;
	segment->phase = SEGMENT_COLLECTING;
	segment->slot = packet->seq_id;
	segment->last = packet->flags & MUSTER_PACKET_LAST;
	segment->stage = packet->stage;
	segment->number = packet->number;
	segment->pulse = packet->pulse;
	segment->index = index;
	segment->total = packet->total;
	segment->signature = packet->signature;
	segment->first = *packet;
	segment->plain = packet_is_plain(packet);
	ring_begin(group, segment);
	memset(&segment->owed, 0, sizeof(segment->owed));
	memset(&segment->bare, 0, sizeof(segment->bare));
	segment->wanting = 0;
	return segment;
}

/* Without an operation one child brings the message, and the others nothing. */
static bool totals_agree(const struct segment *segment, const struct muster_packet *packet)
{
	bool brought = segment->signature.op == MUSTER_REDOP_NONE;

	return segment->total == packet->total ? !brought || !packet->total :
						 brought && (!segment->total || !packet->total);
}

static bool agrees(const struct segment *segment, const struct muster_packet *packet)
{
	return segment->slot == packet->seq_id && segment->stage == packet->stage &&
	       !memcmp(&segment->signature, &packet->signature, sizeof(packet->signature));
}

/* With the others that have come. */
static bool fits(const struct segment *segment, const struct muster_packet *packet)
{
	return agrees(segment, packet) && segment->last == !!(packet->flags & MUSTER_PACKET_LAST) &&
	       totals_agree(segment, packet);
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
		     packet->pulse < segment->pulse + MUSTER_TREE_PULSES_LIVE) ||
		    is_older(packet->number, segment->number))
			continue;
		child_set_remove(&segment->owed, child);
		sw->counters.copies_spared++;
		if (child_set_empty(&segment->owed))
			segment_free(group, segment);
	}
}

/* ---- down and up ---- */

static void distribute(struct muster_switch *sw, struct group *group, struct segment *segment,
		       bool once)
{
	sw->counters.results++;
	if (lock_is_asked(group, segment))
		lock_answer(sw, group, segment);
	else
		lock_count(sw, group, segment);
	if (once)
		generator_once(sw, group, segment);
	segment->phase = SEGMENT_DOWN;
	child_set_fill(&segment->owed, group->config.nr_children);
}

/* Without a credit one packet may go: when all before it have been answered. */
static bool has_credit(struct group *group, const struct segment *segment, bool *limited)
{
	*limited = (int32_t)(segment->index - group->credits) >= 0;
	if (!*limited || segment->index == group->answered)
		return true;
	group->waits_for_credit = true;
	return false;
}

/* Return: whether the link is to be tried again. */
static bool go_up(struct muster_switch *sw, struct group *group, struct segment *segment)
{
	bool limited;

	if (!has_credit(group, segment, &limited))
		return false;
	if (generator_up(sw, group, segment))
		return true;
	segment->phase = SEGMENT_AWAITING;
	sw->counters.limited += limited;
	return false;
}

/* In one go as far as links take it. */
bool segment_settle(struct muster_switch *sw, struct group *group, struct segment *segment)
{
	if (segment->phase == SEGMENT_UP)
		return go_up(sw, group, segment);
	if (segment->phase == SEGMENT_DOWN && !generator_down(sw, group, segment))
		segment_free(group, segment);
	if (segment->phase == SEGMENT_TAKING)
		return generator_down(sw, group, segment);
	return segment->phase == SEGMENT_DOWN;
}

static void settle(struct muster_switch *sw, struct group *group, struct segment *segment)
{
	if (segment_settle(sw, group, segment))
		group_owes(sw, group);
}

/* ---- a lock's second round: down to all nodes, and up again ---- */

static void taken(struct muster_switch *sw, struct group *group, struct segment *segment)
{
	if (!child_set_empty(&segment->asked))
		return;
	if (!group_is_root(group)) {
		segment->phase = SEGMENT_UP;
		return;
	}
	lock_took(segment);
	distribute(sw, group, segment, true);
}

/* What cannot be had here is not asked for below: it would only be given back. */
static void take(struct muster_switch *sw, struct group *group, struct segment *segment)
{
	memset(&segment->asked, 0, sizeof(segment->asked));
	if (lock_take(sw, group, segment))
		for (uint32_t i = 0; i < group->config.nr_children; i++)
			if (group->children[i].node >= MUSTER_NODE_AGGREGATION)
				child_set_add(&segment->asked, i);
	segment->owed = segment->asked;
	segment->phase = SEGMENT_TAKING;
	taken(sw, group, segment);
}

static void take_answer(struct muster_switch *sw, struct group *group, uint32_t child,
			const struct muster_packet *packet, const void *payload)
{
	struct segment *segment = find(group, packet);

	if (!segment || segment->phase != SEGMENT_TAKING || !agrees(segment, packet) ||
	    !child_set_has(&segment->asked, child) || child_set_has(&segment->owed, child)) {
		sw->counters.drop_duplicate++;
		return;
	}
	child_set_remove(&segment->asked, child);
	lock_taken(segment, payload);
	taken(sw, group, segment);
	settle(sw, group, segment);
}

/* ---- what comes ---- */

static void go_on(struct muster_switch *sw, struct group *group, struct segment *segment)
{
	if (!group_is_root(group))
		segment->phase = SEGMENT_UP;
	else if (lock_is_asked(group, segment) && lock_is_wanted(segment))
		take(sw, group, segment);
	else
		distribute(sw, group, segment, group->config.type == MUSTER_SWITCH_LLT);
	settle(sw, group, segment);
}

void segment_complete(struct muster_switch *sw, struct group *group, struct segment *segment)
{
	sw->counters.combined++;
	if (!lock_is_asked(group, segment) || lock_ask(sw, group, segment)) {
		go_on(sw, group, segment);
		return;
	}
	segment->phase = SEGMENT_WAITING;
	sw->nr_waiting++;
}

void segment_contribute(struct muster_switch *sw, struct group *group, uint32_t child,
			const struct muster_packet *packet, struct payload payload)
{
	struct segment *segment;

	if (packet->total > group->config.payload_max) {
		sw->counters.drop_malformed++;
		return;
	}
	if (!lock_admits(group)) {
		sw->counters.drop_unlocked++;
		return;
	}
	if (lock_is_taking(group, packet, payload.at)) {
		take_answer(sw, group, child, packet, payload.at);
		return;
	}
	if (!in_window(sw, &group->progress[child], packet))
		return;
	if (group->owing)
		spare(sw, group, child, packet);
	segment = find(group, packet);
	if (segment && segment->phase == SEGMENT_COLLECTING && !fits(segment, packet)) {
		group_fail(sw, group, MUSTER_STATUS_MISMATCH, packet->src_member,
			   &packet->signature, BY_NOBODY);
		return;
	}
	if (!segment)
		segment = begin(group, packet);
	if (!segment || segment->phase != SEGMENT_COLLECTING) {
		sw->counters.drop_window++;
		return;
	}
	advance(&group->progress[child], packet);
	if (packet->total)
		segment->total = packet->total;
	payload.lent &= packet->signature.op != MUSTER_REDOP_NONE;
	segment_add(sw, group, segment, child, packet, payload);
}

void segment_give_back(struct group *group)
{
	for (; group->borrowing; group->borrowing &= group->borrowing - 1) {
		struct segment *segment = &group->segments[__builtin_ctz(group->borrowing)];

		segment->lent = false;
		ring_give_back(group, segment);
	}
}

void segment_waiting(struct muster_switch *sw, struct group *group, bool hurry)
{
	for (uint32_t i = 0; i < SEGMENTS && !group->failed; i++) {
		struct segment *segment = &group->segments[i];

		if (segment->phase != SEGMENT_WAITING || !lock_is_over(sw, group, segment, hurry))
			continue;
		sw->nr_waiting--;
		go_on(sw, group, segment);
	}
}

/* Where nobody below has brought anything, it is as long as it is; of 0 bytes where nobody wants its data. */
static bool result_fits(const struct group *group, const struct segment *segment,
			const struct muster_packet *packet)
{
	if (group->config.type == MUSTER_SWITCH_SAT && packet->flags & MUSTER_PACKET_ONCE)
		return false;
	if (packet->signature.op == MUSTER_REDOP_NONE && !segment->total)
		return packet->total <= group->config.payload_max;
	if (!segment->wanting)
		return !packet->total;
	return segment->total == packet->total;
}

static void hear(struct group *group, const struct segment *segment, uint32_t credits)
{
	uint32_t end = segment->index + 1 + credits;

	group->answered++;
	if ((int32_t)(end - group->credits) > 0)
		group->credits = end;
}

/* What has waited for the answer. */
static void others_go_up(struct muster_switch *sw, struct group *group)
{
	group->waits_for_credit = false;
	if (group_settle(sw, group))
		group_owes(sw, group);
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
	if (!agrees(segment, packet) || !result_fits(group, segment, packet)) {
		sw->counters.drop_malformed++;
		return;
	}
	segment->total = packet->total;
	if (segment->total)
		memcpy(segment->sum, payload, segment->total);
	if (lock_is_taking(group, packet, payload)) {
		take(sw, group, segment);
	} else {
		hear(group, segment, packet->arg);
		distribute(sw, group, segment, packet->flags & MUSTER_PACKET_ONCE);
	}
	settle(sw, group, segment);
	if (group->waits_for_credit)
		others_go_up(sw, group);
}
