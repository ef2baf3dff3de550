// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The packet generator: from a group's handle to the ports of its members, one packet made
 * for each (paper, figure 2). A packet in, a new one out to every port: addresses, context
 * and life are those of whoever is at its other end.
 */
#include "internal.h"

#include <errno.h>

static void prepare(const struct group *group, uint8_t type, struct muster_packet *packet)
{
	*packet = group->own;
	packet->type = type;
}

static void set_total(struct muster_packet *packet, uint32_t total)
{
	packet->total = total;
	packet->length = (uint16_t)total;
}

static void carry(const struct segment *segment, struct muster_packet *packet)
{
	packet->seq_id = segment->slot;
	packet->stage = segment->stage;
	packet->signature = segment->signature;
	packet->number = segment->number;
	packet->pulse = segment->pulse;
	set_total(packet, segment->total);
}

/*
 * For so many contributions beyond it: for all segments that neither it nor older ones have. While older
 * ones wait for links one is kept: children that have all results have their limited packet there.
 */
static uint32_t credits(const struct group *group, const struct segment *segment)
{
	uint32_t older = segment->index - group->oldest;
	uint32_t used = 1 + older + !!older, all = group->config.segments;

	if (used >= all)
		return 0;
	return all - used < MUSTER_TREE_PULSES_LIVE ? all - used : MUSTER_TREE_PULSES_LIVE;
}

static void carry_down(const struct group *group, const struct segment *segment, struct muster_packet *packet)
{
	prepare(group, MUSTER_PACKET_TREE_DOWN, packet);
	carry(segment, packet);
	packet->arg = credits(group, segment);
}

static void address(const struct muster_switch_child *child, struct muster_packet *packet)
{
	packet->dst_node = child->node;
	packet->dst_vp = child->vp;
	packet->context = child->context;
	packet->life = child->life;
}

/* What a link says that leads nowhere ends the group. */
static inline int send(struct muster_switch *sw, struct group *group, uint32_t by, uint32_t port,
		       const struct muster_packet *packet, const void *payload)
{
	int ret = credit_send(sw, port, packet, payload);

	if (ret && ret != -EAGAIN)
		group_fail(sw, group, MUSTER_STATUS_PEER_LOST, group_culprit(sw, group, by), NULL, by);
	return ret;
}

int generator_up(struct muster_switch *sw, struct group *group, const struct segment *segment)
{
	struct muster_packet packet;

	prepare(group, MUSTER_PACKET_TREE_UP, &packet);
	carry(segment, &packet);
	packet.dst_node = group->config.parent_node;
	packet.src_member = segment->speaker;
	packet.flags = (segment->last ? MUSTER_PACKET_LAST : 0) | (segment->wanting ? 0 : MUSTER_PACKET_BARE);
	return send(sw, group, group->config.nr_children, group->config.parent_port, &packet,
		    segment->sum);
}

void generator_once(struct muster_switch *sw, struct group *group, const struct segment *segment)
{
	struct muster_packet packet;

	carry_down(group, segment, &packet);
	packet.flags = MUSTER_PACKET_ONCE;
	for (uint32_t i = 0; i < group->config.nr_children; i++) {
		address(&group->children[i], &packet);
		set_total(&packet, child_set_has(&segment->bare, i) ? 0 : segment->total);
		sw->world.send_once(sw->opaque, group->children[i].port, &packet, segment->sum);
		sw->counters.copies_once++;
	}
}

/* To those of 64 that it is owed to; who has left needs none. */
static void copy_to(struct muster_switch *sw, struct group *group, struct segment *segment, uint32_t word,
		    struct muster_packet *packet)
{
	uint64_t *owed = &segment->owed.bits[word], bare = segment->bare.bits[word], left;

	*owed &= ~group->left.bits[word];
	for (left = *owed; left && !group->failed; left &= left - 1) {
		uint32_t bit = (uint32_t)__builtin_ctzll(left), i = 64 * word + bit;

		address(&group->children[i], packet);
		set_total(packet, bare >> bit & 1 ? 0 : segment->total);
		if (send(sw, group, i, group->children[i].port, packet, segment->sum))
			continue;
		*owed ^= left & -left;
		sw->counters.copies++;
	}
}

bool generator_down(struct muster_switch *sw, struct group *group, struct segment *segment)
{
	struct muster_packet packet;

	carry_down(group, segment, &packet);
	for (uint32_t word = 0; word < (group->config.nr_children + 63) / 64; word++)
		copy_to(sw, group, segment, word, &packet);
	return !child_set_empty(&segment->owed);
}

bool generator_abort(struct muster_switch *sw, struct group *group)
{
	struct muster_packet packet;

	prepare(group, MUSTER_PACKET_ABORT, &packet);
	packet.number = group->why.number;
	packet.arg = group->why.arg;
	packet.signature = group->why.signature;
	for (uint32_t i = 0; i < group->config.nr_children; i++) {
		if (!child_set_has(&group->untold, i))
			continue;
		address(&group->children[i], &packet);
		if (credit_send(sw, group->children[i].port, &packet, NULL) != -EAGAIN)
			child_set_remove(&group->untold, i);
	}
	if (group->parent_untold) {
		address(&(struct muster_switch_child){ .node = group->config.parent_node },
			&packet);
		group->parent_untold = credit_send(sw, group->config.parent_port, &packet,
						   NULL) == -EAGAIN;
	}
	return group->parent_untold || !child_set_empty(&group->untold);
}
