// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Forwarding by NodeID. There are two tables of ways, and a packet goes by one of them from the first switch
 * to the last: so ways change without that a packet meets two that do not fit. The old ones and the
 * new ones have flows of their own, as each alone does not go round.
 * What the next link has no room for waits with its flow (credit.c),
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
	for (uint32_t i = 0; i < config->nr_routes; i++) {
		sw->routes[i].node = config->routes[i].node;
		for (uint32_t way = 0; way < NR_WAYS; way++)
			sw->routes[i].ports[way] = config->routes[i].port;
		child_set_add(&sw->ports, config->routes[i].port);
	}
	return 0;
}

struct route *forward_route(const struct muster_switch *sw, uint32_t node)
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

/* ---- two ways ---- */

uint32_t way_of(const struct muster_packet *packet)
{
	return !!(packet->flags & MUSTER_PACKET_WAY);
}

/* Who is on none of them is not to be reached, and nobody is told when what led there is lost. */
int muster_switch_ways_lay(struct muster_switch *sw, uint32_t way, const struct muster_switch_route *routes,
			   uint32_t nr)
{
	if (way >= NR_WAYS || way == sw->way)
		return -EINVAL;
	for (uint32_t i = 0; i < nr; i++)
		if (routes[i].port >= sw->radix || !forward_route(sw, routes[i].node))
			return -EINVAL;
	for (uint32_t i = 0; i < sw->nr_routes; i++)
		sw->routes[i].ports[way] = MUSTER_SWITCH_NO_PORT;
	for (uint32_t i = 0; i < nr; i++) {
		forward_route(sw, routes[i].node)->ports[way] = routes[i].port;
		child_set_add(&sw->ports, routes[i].port);
	}
	return 0;
}

int muster_switch_ways_take(struct muster_switch *sw, uint32_t way)
{
	if (way >= NR_WAYS)
		return -EINVAL;
	sw->way = way;
	return 0;
}

uint32_t muster_switch_ways(const struct muster_switch *sw)
{
	return sw->way;
}

uint32_t muster_switch_ways_left(const struct muster_switch *sw, uint32_t way, uint64_t *passed)
{
	uint32_t nr = 0;
	const struct flow *flow = sw->ring;

	for (uint32_t i = sw->nr_flows; i--; flow = flow->next)
		nr += flow->way == way;
	*passed = sw->passed[way % NR_WAYS];
	return nr;
}

/* A host knows nothing of ways. */
static int send(struct muster_switch *sw, uint32_t port, const struct muster_packet *packet,
		const void *payload)
{
	struct muster_packet plain;

	if (!way_of(packet) || credit_is_trunk(sw, port))
		return credit_send(sw, port, packet, payload);
	plain = *packet;
	plain.flags &= ~MUSTER_PACKET_WAY;
	return credit_send(sw, port, &plain, payload);
}

/* To its next link: 0 when it has gone, or was dropped; -EAGAIN: there is no room. */
static int depart(struct muster_switch *sw, uint32_t port, const struct muster_packet *packet,
		  const void *payload)
{
	const struct route *route = forward_route(sw, packet->dst_node);
	uint32_t to = route ? route->ports[way_of(packet)] : port;
	int ret = 0;

	if (to == port || to == MUSTER_SWITCH_NO_PORT)
		ret = -EHOSTUNREACH;
	else if (packet_is_once(packet))
		sw->world.send_once(sw->opaque, to, packet, payload);
	else
		ret = send(sw, to, packet, payload);
	if (ret == -EAGAIN)
		return ret;
	sw->passed[way_of(packet)]++;
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
	const struct route *route = forward_route(sw, packet->src_node);

	return route && route->ports[sw->way] == port;
}

int forward(struct muster_switch *sw, uint32_t port, const struct muster_packet *from, const void *payload)
{
	bool trunk = credit_is_trunk(sw, port);
	struct muster_packet packet = *from;
	struct flow *flow = NULL;

	if (!trunk)		/* it stays on the way that it is given here */
		packet.flags = (packet.flags & ~MUSTER_PACKET_WAY) | (sw->way ? MUSTER_PACKET_WAY : 0);
	if (!trunk && !speaks_for_itself(sw, port, &packet)) {
		sw->counters.packets_in++;
		sw->counters.drop_stranger++;
		return 0;
	}
	if (trunk && !packet_is_once(&packet)) {
		flow = credit_flow(sw, port, &packet);
		if (!flow)
			return -EAGAIN;
	}
	if (!depart(sw, port, &packet, payload)) {
		if (flow)
			credit_passed(sw, flow);
		return 0;
	}
	if (!flow)
		flow = credit_flow(sw, port, &packet);
	return flow ? hold(sw, flow, &packet, payload) : -EAGAIN;
}
