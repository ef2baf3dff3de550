// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Credits. What comes of one job and source by one port, on one of two ways, is a flow, and at most
 * MUSTER_SWITCH_CREDITS of its packets wait here (forward.c). A neighbour that is a switch
 * sends no more than these before it is told, by ROOM, that some have gone on: so nothing is
 * ever refused on a link between switches, and whoever takes nothing holds up the flows that
 * lead to it, and no link. A host keeps what is refused.
 *
 * A flow is there as long as some of it waits or somebody is to be told.
 */
#include "internal.h"

#include <errno.h>

/* So many are told at once; fewer when nothing of the flow has moved for a step. */
enum { TOLD_AT = MUSTER_SWITCH_CREDITS / 2 };

/* ---- flows ---- */

static struct flow **bucket(struct muster_switch *sw, uint32_t port, uint32_t way, uint8_t job, uint32_t source)
{
	uint64_t hash = ((uint64_t)way << 40 | (uint64_t)port << 32 | (uint64_t)job << 24 | source) *
			0x9e3779b97f4a7c15ull;

	return &sw->flows[(hash >> 32) % FLOW_BUCKETS];
}

static struct flow *find(struct muster_switch *sw, uint32_t port, const struct muster_packet *packet)
{
	uint32_t way = way_of(packet);
	struct flow *flow = *bucket(sw, port, way, packet->job, packet->src_node);

	while (flow && (flow->port != port || flow->way != way || flow->job != packet->job ||
			flow->source != packet->src_node))
		flow = flow->next_hashed;
	return flow;
}

/* Behind all others, so that whoever walks along them does not meet it. */
static void ring_in(struct muster_switch *sw, struct flow *flow)
{
	struct flow *first = sw->ring;

	flow->next = first ? first : flow;
	flow->prev = first ? first->prev : flow;
	flow->prev->next = flow;
	flow->next->prev = flow;
	if (!first)
		sw->ring = flow;
	sw->nr_flows++;
}

static void ring_out(struct muster_switch *sw, struct flow *flow)
{
	flow->prev->next = flow->next;
	flow->next->prev = flow->prev;
	if (sw->ring == flow)
		sw->ring = flow->next == flow ? NULL : flow->next;
	sw->nr_flows--;
}

struct flow *credit_flow(struct muster_switch *sw, uint32_t port, const struct muster_packet *packet)
{
	struct flow **first = bucket(sw, port, way_of(packet), packet->job, packet->src_node);
	struct flow *flow = find(sw, port, packet);

	if (flow)
		return flow;
	flow = sw->world.alloc(sw->opaque, sizeof(*flow));
	if (!flow)
		return NULL;
	flow->port = port;
	flow->way = (uint8_t)way_of(packet);
	flow->job = packet->job;
	flow->source = packet->src_node;
	flow->next_hashed = *first;
	*first = flow;
	ring_in(sw, flow);
	return flow;
}

static void flow_free(struct muster_switch *sw, struct flow *flow)
{
	struct flow **link = bucket(sw, flow->port, flow->way, flow->job, flow->source);

	while (*link != flow)
		link = &(*link)->next_hashed;
	*link = flow->next_hashed;
	ring_out(sw, flow);
	sw->world.free(sw->opaque, flow, sizeof(*flow));
}

void credit_rest(struct muster_switch *sw, struct flow *flow)
{
	if (!flow->held && !flow->owed && !flow->out)
		flow_free(sw, flow);
}

/* ---- as who is told ---- */

int credit_send_on(struct muster_switch *sw, uint32_t port, const struct muster_packet *packet,
		   const void *payload)
{
	struct flow *flow = credit_flow(sw, port, packet);
	int ret;

	if (!flow || flow->out == MUSTER_SWITCH_CREDITS)
		return -EAGAIN;
	ret = sw->world.send(sw->opaque, port, packet, payload);
	flow->out += !ret;
	credit_rest(sw, flow);
	return ret;
}

/* More than there are: of those that were sent before its port was lost, which count no more. */
void credit_room(struct muster_switch *sw, uint32_t port, const struct muster_packet *packet)
{
	struct flow *flow = find(sw, port, packet);

	sw->counters.packets_in++;
	if (!credit_is_trunk(sw, port)) {
		sw->counters.drop_malformed++;
		return;
	}
	if (!flow)
		return;
	flow->out -= packet->arg < flow->out ? packet->arg : flow->out;
	credit_rest(sw, flow);
}

/* ---- as who tells ---- */

static void tell(struct muster_switch *sw, struct flow *flow)
{
	const struct muster_packet packet = {
		.version = MUSTER_PACKET_VERSION,
		.type = MUSTER_PACKET_ROOM,
		.flags = flow->way ? MUSTER_PACKET_WAY : 0,
		.job = flow->job,
		.src_node = flow->source,
		.arg = flow->owed,
	};

	if (sw->world.send(sw->opaque, flow->port, &packet, NULL) != -EAGAIN)
		flow->owed = 0;
}

void credit_passed(struct muster_switch *sw, struct flow *flow)
{
	if (!credit_is_trunk(sw, flow->port))
		return;
	flow->moved = true;
	if (++flow->owed >= TOLD_AT)
		tell(sw, flow);
}

bool credit_settle(struct muster_switch *sw, struct flow *flow)
{
	bool moved = flow->moved, left;

	flow->moved = false;
	if (flow->owed >= TOLD_AT || (flow->owed && !moved))
		tell(sw, flow);
	left = flow->held || flow->owed;
	credit_rest(sw, flow);
	return left;
}

void credit_port_lost(struct muster_switch *sw, uint32_t port)
{
	struct flow *flow = sw->ring;

	for (uint32_t i = sw->nr_flows; i--; flow = flow->next)
		if (flow->port == port)
			flow->out = flow->owed = 0;	/* the next step looks at it */
}

void credit_destroy(struct muster_switch *sw)
{
	while (sw->ring)
		flow_free(sw, sw->ring);
}
