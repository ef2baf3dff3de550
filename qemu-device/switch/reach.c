// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Who cannot be reached any more. Ways are laid once, so what led over a switch or link that is
 * lost leads nowhere: the switch before it says GONE of all that it had behind there, and each
 * that hears it says it on, once, to every neighbour. So whoever is joined to that switch by any
 * way knows, the node itself as well: it may still send where it gets no answer from.
 */
#include "internal.h"

#include <errno.h>

static void lose(struct muster_switch *sw, struct route *route, uint32_t by)
{
	if (route->gone)
		return;
	route->gone = true;
	sw->nr_gone++;
	route->untold = sw->ports;
	child_set_remove(&route->untold, by);
}

void reach_receive(struct muster_switch *sw, uint32_t port, const struct muster_packet *packet)
{
	struct route *route = forward_route(sw, packet->arg);

	sw->counters.packets_in++;
	if (!credit_is_trunk(sw, port) || packet->length)
		sw->counters.drop_malformed++;
	else if (route)
		lose(sw, route, port);
}

/* Who comes to a host's place next has heard nothing. */
void reach_port_lost(struct muster_switch *sw, uint32_t port)
{
	bool trunk = credit_is_trunk(sw, port);

	for (uint32_t i = 0; i < sw->nr_routes; i++) {
		struct route *route = &sw->routes[i];

		if (trunk && route->ports[sw->way] == port)
			lose(sw, route, port);
		else if (!trunk && route->gone)
			child_set_add(&route->untold, port);
	}
}

/* A host that has no room, or is yet to come, is told when something has come by its link. */
static bool tell(struct muster_switch *sw, struct route *route)
{
	const struct muster_packet packet = {
		.version = MUSTER_PACKET_VERSION,
		.type = MUSTER_PACKET_GONE,
		.src_node = sw->node,
		.arg = route->node,
	};
	bool left = false;

	for (uint32_t port = 0; port < sw->radix; port++) {
		bool trunk = credit_is_trunk(sw, port);
		int ret;

		if (!child_set_has(&route->untold, port))
			continue;
		ret = sw->world.send(sw->opaque, port, &packet, NULL);
		if (!ret || (trunk && ret != -EAGAIN))
			child_set_remove(&route->untold, port);
		else
			left |= trunk;
	}
	return left;
}

bool reach_settle(struct muster_switch *sw)
{
	bool left = false;

	for (uint32_t i = 0; i < sw->nr_routes && sw->nr_gone; i++)
		if (!child_set_empty(&sw->routes[i].untold))
			left |= tell(sw, &sw->routes[i]);
	return left;
}
