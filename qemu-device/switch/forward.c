// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Forwarding by NodeID. What the next link has no room for waits with its flow (credit.c),
 * and others overtake it; what is beyond the credits of its flow stays with its sender. So a
 * job whose receivers are slow fills its own places and no others.
 */
#include "internal.h"

#include <errno.h>
#include <string.h>

int forward_create(struct muster_switch *sw, const struct muster_switch_config *config)
{
	size_t bytes = config->nr_routes * sizeof(*sw->routes);

	if (!bytes)
		return 0;
	sw->routes = sw->world.alloc(sw->opaque, bytes);
	if (!sw->routes)
		return -ENOMEM;
	sw->nr_routes = config->nr_routes;
	memcpy(sw->routes, config->routes, bytes);
	return 0;
}

static const struct muster_switch_route *find(const struct muster_switch *sw, uint32_t node)
{
	uint32_t first = 0, end = sw->nr_routes;

	while (first < end) {
		uint32_t middle = first + (end - first) / 2;

		if (sw->routes[middle].node == node)
			return &sw->routes[middle];
		if (sw->routes[middle].node < node)
			first = middle + 1;
		else
			end = middle;
	}
	return NULL;
}

/* To its next link: 0 when it has gone, or was dropped; -EAGAIN: there is no room. */
static int depart(struct muster_switch *sw, uint32_t port, const struct muster_packet *packet,
		  const void *payload)
{
	const struct muster_switch_route *route = find(sw, packet->dst_node);
	int ret = 0;

	if (!route || route->port == port)
		ret = -EHOSTUNREACH;
	else if (packet_is_once(packet))
		sw->world.send_once(sw->opaque, route->port, packet, payload);
	else
		ret = credit_send(sw, route->port, packet, payload);
	if (ret == -EAGAIN)
		return ret;
	sw->counters.packets_in++;
	sw->counters.forwarded += !ret;
	sw->counters.drop_route += !!ret;
	return 0;
}

/* ---- what waits ---- */

static int hold(struct muster_switch *sw, struct flow *flow, const struct muster_packet *packet,
		const void *payload)
{
	struct held **place = &flow->held, *held = NULL;

	if (flow->nr_held < MUSTER_SWITCH_CREDITS)
		held = sw->world.alloc(sw->opaque, sizeof(*held) + packet->length);
	if (!held) {
		sw->counters.held_back++;
		credit_rest(sw, flow);
		return -EAGAIN;
	}
	held->packet = *packet;
	if (packet->length)
		memcpy(held->payload, payload, packet->length);
	while (*place)
		place = &(*place)->next;
	*place = held;
	flow->nr_held++;
	sw->counters.held++;
	return 0;
}

static void drop_first(struct muster_switch *sw, struct flow *flow, struct held **place)
{
	struct held *held = *place;

	*place = held->next;
	flow->nr_held--;
	sw->counters.held--;
	sw->world.free(sw->opaque, held, sizeof(*held) + held->packet.length);
}

void forward_held(struct muster_switch *sw, struct flow *flow)
{
	struct held **place = &flow->held;

	while (*place) {
		if (depart(sw, flow->port, &(*place)->packet, (*place)->payload)) {
			place = &(*place)->next;
			continue;
		}
		drop_first(sw, flow, place);
		credit_passed(sw, flow);
	}
}

void forward_destroy(struct muster_switch *sw)
{
	struct flow *flow = sw->ring;

	for (uint32_t i = sw->nr_flows; i--; flow = flow->next)
		while (flow->held)
			drop_first(sw, flow, &flow->held);
	if (sw->routes)
		sw->world.free(sw->opaque, sw->routes, sw->nr_routes * sizeof(*sw->routes));
}

/* ---- what comes ---- */

/* So the flows of a host are as many as its jobs. */
static bool speaks_for_itself(const struct muster_switch *sw, uint32_t port,
			      const struct muster_packet *packet)
{
	const struct muster_switch_route *route = find(sw, packet->src_node);

	return route && route->port == port;
}

int forward(struct muster_switch *sw, uint32_t port, const struct muster_packet *packet,
	    const void *payload)
{
	bool trunk = credit_is_trunk(sw, port);
	struct flow *flow = NULL;

	if (!trunk && !speaks_for_itself(sw, port, packet)) {
		sw->counters.packets_in++;
		sw->counters.drop_stranger++;
		return 0;
	}
	if (trunk && !packet_is_once(packet)) {
		flow = credit_flow(sw, port, packet);
		if (!flow)
			return -EAGAIN;
	}
	if (!depart(sw, port, packet, payload)) {
		if (flow)
			credit_passed(sw, flow);
		return 0;
	}
	if (!flow)
		flow = credit_flow(sw, port, packet);
	return flow ? hold(sw, flow, packet, payload) : -EAGAIN;
}
