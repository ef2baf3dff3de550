// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Forwarding by NodeID. Nothing is stored: a packet leaves its link when the next one
 * takes it, and until then it is its sender's. So a job whose receivers are slow fills no
 * memory here, and its packets are overtaken by those of others.
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

void forward_destroy(struct muster_switch *sw)
{
	if (sw->routes)
		sw->world.free(sw->opaque, sw->routes, sw->nr_routes * sizeof(*sw->routes));
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

int forward(struct muster_switch *sw, uint32_t port, const struct muster_packet *packet,
	    const void *payload)
{
	const struct muster_switch_route *route = find(sw, packet->dst_node);
	int ret = 0;

	if (!route || route->port == port)
		ret = -EHOSTUNREACH;
	else if (packet->type == MUSTER_PACKET_TREE_DOWN && packet->flags & MUSTER_PACKET_ONCE)
		sw->world.send_once(sw->opaque, route->port, packet, payload);
	else
		ret = sw->world.send(sw->opaque, route->port, packet, payload);
	if (ret == -EAGAIN) {
		sw->counters.held_back++;
		return ret;
	}
	sw->counters.packets_in++;
	sw->counters.forwarded += !ret;
	sw->counters.drop_route += !!ret;
	return 0;
}
