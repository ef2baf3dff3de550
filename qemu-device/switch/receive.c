// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What comes to the switch. Of a tree most say of their sender what it has said before, and of the work what the
 * first one of their segment or their sender's last one has said, which have passed the gates of aggregation.c: they
 * pass at once, by a comparison of words. All others go to whoever they are for.
 */
#include "internal.h"

#include <errno.h>
#include <string.h>

/* ---- what is like others ---- */

#define INLINE static inline __attribute__((always_inline))

INLINE uint64_t differ(const void *a, const void *b, uint32_t bytes)
{
	uint64_t left, right, all = 0;

#pragma GCC unroll 4
	for (uint32_t at = 0; at < bytes; at += 8) {
		memcpy(&left, (const uint8_t *)a + at, 8);
		memcpy(&right, (const uint8_t *)b + at, 8);
		all |= left ^ right;
	}
	return all;
}

#define DIFFER(a, b, from, to)                                                                   \
	differ(&(a)->from, &(b)->from,                                                           \
	       offsetof(struct muster_packet, to) - offsetof(struct muster_packet, from))

/* What a sender says of itself, and that it is for here. */
INLINE uint64_t differ_in_sender(const struct muster_packet *a, const struct muster_packet *b)
{
	return DIFFER(a, b, src_node, number) | (a->incarnation ^ b->incarnation);
}

/* What is to be done with it, but for number and pulse. */
INLINE uint64_t differ_in_work(const struct muster_packet *a, const struct muster_packet *b)
{
	return DIFFER(a, b, version, src_node) | DIFFER(a, b, offset, incarnation) | DIFFER(a, b, arg, job_key) |
	       (a->job_key ^ b->job_key);
}

/* As it is almost always: in order, and its segment has been begun by another child. */
static inline bool goes_on(const struct segment *segment, const struct progress *progress,
			   const struct muster_packet *packet)
{
	return segment->phase == SEGMENT_COLLECTING && segment->plain &&
	       packet->number == progress->number && packet->pulse == progress->first && !progress->seen &&
	       !(DIFFER(&segment->first, packet, number, offset) | differ_in_work(&segment->first, packet));
}

/* Out of order, or the first of its segment. */
static __attribute__((noinline)) bool take_known(struct muster_switch *sw, struct group *group, uint32_t child,
						 const struct muster_packet *packet, struct payload payload)
{
	if (!packet_is_plain(packet) || differ_in_work(&group->progress[child].last, packet))
		return false;
	sw->counters.packets_in++;
	segment_contribute(sw, group, child, packet, payload);
	return true;
}

/* Of whom the gates have let in before. Return: false: it has to pass them. */
INLINE bool take(struct muster_switch *sw, uint32_t port, const struct muster_packet *packet, struct payload payload)
{
	struct group *group = group_find(sw, packet->tree, packet->group);
	uint32_t child = group ? group->child_at[port] : 0;
	struct progress *progress;
	struct segment *segment;

	if (!group || child == group->config.nr_children || group->failed)
		return false;
	progress = &group->progress[child];
	if (!progress->begun || differ_in_sender(&progress->last, packet))
		return false;
	segment = group->places[packet->pulse % SEGMENTS];
	if (!goes_on(segment, progress, packet) || group->owing || !lock_admits(group))
		return take_known(sw, group, child, packet, payload);
	sw->counters.packets_in++;
	progress->first++;
	segment_add(sw, group, segment, child, packet, payload);
	return true;
}

/* ---- all others ---- */

static void aggregate(struct muster_switch *sw, uint32_t port, const struct muster_packet *packet,
		      struct payload payload)
{
	sw->counters.packets_in++;
	aggregation_receive(sw, port, packet, payload);
}

/* From a switch, which is told that it has room again. */
static int aggregate_credited(struct muster_switch *sw, uint32_t port, const struct muster_packet *packet,
			      struct payload payload)
{
	struct flow *flow = credit_flow(sw, port, packet);

	if (!flow)
		return -EAGAIN;
	if (!take(sw, port, packet, payload))
		aggregate(sw, port, packet, payload);
	credit_passed(sw, flow);
	return 0;
}

static __attribute__((noinline)) int look(struct muster_switch *sw, uint32_t port, const struct muster_packet *packet,
					  struct payload payload, uint32_t len)
{
	if (port >= sw->radix || packet->version != MUSTER_PACKET_VERSION ||
	    packet->length != len || len > MUSTER_MTU) {
		sw->counters.packets_in++;
		sw->counters.drop_malformed++;
		return 0;
	}
	if (packet->type == MUSTER_PACKET_ROOM) {
		credit_room(sw, port, packet);
		return 0;
	}
	if (packet->type == MUSTER_PACKET_GONE) {
		reach_receive(sw, port, packet);
		return 0;
	}
	if (!sw->node || packet->dst_node != sw->node)
		return forward(sw, port, packet, payload.at);
	if (credit_is_trunk(sw, port) && !packet_is_once(packet))
		return aggregate_credited(sw, port, packet, payload);
	aggregate(sw, port, packet, payload);
	return 0;
}

INLINE int receive(struct muster_switch *sw, uint32_t port, const struct muster_packet *packet, struct payload payload,
		   uint32_t len)
{
	if (port < sw->radix && !credit_is_trunk(sw, port) && packet->length == len &&
	    take(sw, port, packet, payload))
		return 0;
	return look(sw, port, packet, payload, len);
}

int muster_switch_receive(struct muster_switch *sw, uint32_t port,
			  const struct muster_packet *packet, const void *payload, uint32_t len)
{
	return receive(sw, port, packet, (struct payload){ payload, false }, len);
}

int muster_switch_lend(struct muster_switch *sw, uint32_t port, const struct muster_packet *packet,
		       const void *payload, uint32_t len)
{
	return receive(sw, port, packet, (struct payload){ payload, true }, len);
}

void muster_switch_give_back(struct muster_switch *sw)
{
	while (sw->borrowing) {
		struct group *group = sw->borrowing;

		sw->borrowing = group->next_borrowing;
		segment_give_back(group);
	}
}
