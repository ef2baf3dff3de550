// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What comes to the aggregation node is checked in two gates, each with a counter of its
 * own: is it well formed, and is it from a neighbour in a group that is here. The third,
 * whether it has its place in an operation, is segment.c's. Only then it changes anything.
 */
#include "internal.h"

#include <string.h>

#include "arith.h"

static bool operation_valid(const struct muster_packet *packet)
{
	const struct muster_signature *signature = &packet->signature;

	if (!packet->total || signature->op == MUSTER_REDOP_NONE)
		return true;
	return muster_arith_supported(signature->type, signature->op) &&
	       packet->total % muster_dtype_size(signature->type) == 0;
}

/* What somebody brings to all, and a lock, is of use to all. */
static bool bare_valid(const struct muster_packet *packet)
{
	return !(packet->flags & MUSTER_PACKET_BARE) ||
	       (packet->signature.op != MUSTER_REDOP_NONE && packet->signature.coll != MUSTER_COLL_LOCK);
}

/* What goes through all words of a lock alike. */
static bool lock_valid(const struct muster_packet *packet)
{
	return packet->signature.coll != MUSTER_COLL_LOCK ||
	       (packet->total == sizeof(struct muster_lock) && !packet->pulse &&
		packet->signature.type == MUSTER_DTYPE_U64 &&
		packet->signature.op == MUSTER_REDOP_MIN);
}

/* In the order of those that wait, which is of all jobs, a host has no say, nor in what is locked. */
static bool words_are_own(const struct group *group, uint32_t by,
			  const struct muster_packet *packet, const void *payload)
{
	struct muster_lock lock;

	if (packet->signature.coll != MUSTER_COLL_LOCK || packet->type != MUSTER_PACKET_TREE_UP ||
	    group->children[by].node >= MUSTER_NODE_AGGREGATION)
		return true;
	memcpy(&lock, payload, sizeof(lock));
	return lock.how <= MUSTER_LOCK_WAIT && lock.free == 1 && lock.asked == UINT64_MAX &&
	       lock.place == UINT64_MAX && lock.again == UINT64_MAX;
}

static uint16_t flags_allowed(uint8_t type)
{
	return type == MUSTER_PACKET_TREE_UP   ? MUSTER_PACKET_LAST | MUSTER_PACKET_BARE :
	       type == MUSTER_PACKET_TREE_DOWN ? MUSTER_PACKET_ONCE : 0;
}

/* A result has credits. */
static bool credits_valid(const struct muster_packet *packet)
{
	return packet->arg <= (packet->type == MUSTER_PACKET_TREE_DOWN ? MUSTER_TREE_PULSES_LIVE : 0);
}

static bool valid(const struct muster_packet *packet)
{
	bool data = packet->type == MUSTER_PACKET_TREE_UP || packet->type == MUSTER_PACKET_TREE_DOWN;

	if (packet->flags & ~flags_allowed(packet->type) || packet->reserved || packet->signature.reserved ||
	    packet->seq_id >= MUSTER_SLOTS_MAX || packet->offset)
		return false;
	if (data)
		return packet->length == packet->total && credits_valid(packet) && operation_valid(packet) &&
		       lock_valid(packet) && bare_valid(packet);
	return packet->type == MUSTER_PACKET_ABORT && !packet->length && packet->number &&
	       packet->number <= MUSTER_STATUS_STARVED;
}

static bool from_parent(const struct group *group, uint32_t port,
			const struct muster_packet *packet)
{
	return !group_is_root(group) && port == group->config.parent_port &&
	       packet->src_node == group->config.parent_node &&
	       packet->incarnation == group->config.parent_incarnation;
}

/* A member may have joined after it was told, and contributes: nothing would ever come of that. */
static void receive_late(struct muster_switch *sw, struct group *group, bool above, uint32_t by,
			 const struct muster_packet *packet)
{
	sw->counters.drop_failed++;
	if (!above && packet->type == MUSTER_PACKET_TREE_UP)
		group_tell_again(sw, group, by);
}

/* From below or from above. Whoever says it has told all on its side. */
static void receive_abort(struct muster_switch *sw, struct group *group, uint32_t by,
			  const struct muster_packet *packet)
{
	group_fail(sw, group, packet->number, packet->arg, &packet->signature, by);
}

static void contribute(struct muster_switch *sw, struct group *group, uint32_t by,
		       const struct muster_packet *packet, struct payload payload)
{
	group->progress[by].last = *packet;	/* what it says need not be looked at again */
	segment_contribute(sw, group, by, packet, payload);
}

void aggregation_receive(struct muster_switch *sw, uint32_t port,
			 const struct muster_packet *packet, struct payload payload)
{
	struct group *group = group_find(sw, packet->tree, packet->group);
	uint32_t by;
	bool above;

	if (!valid(packet)) {
		sw->counters.drop_malformed++;
		return;
	}
	above = group && from_parent(group, port, packet);
	by = group && !above ? group_child(group, port, packet) : 0;
	if (!group || packet->job != group->config.job || packet->job_key != group->config.key ||
	    (!above && (by == group->config.nr_children ||
			packet->type == MUSTER_PACKET_TREE_DOWN)) ||
	    (above && packet->type == MUSTER_PACKET_TREE_UP)) {
		sw->counters.drop_stranger++;
		return;
	}
	if (group->failed)
		receive_late(sw, group, above, by, packet);
	else if (packet->type == MUSTER_PACKET_ABORT)
		receive_abort(sw, group, above ? group->config.nr_children : by, packet);
	else if (above)
		segment_result(sw, group, packet, payload.at);
	else if (!words_are_own(group, by, packet, payload.at))
		sw->counters.drop_malformed++;
	else
		contribute(sw, group, by, packet, payload);
}
