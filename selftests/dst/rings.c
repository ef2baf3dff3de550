// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Nodes that are joined by real memory rings (ring.c): all of them in one process, so whoever
 * is sent something is told of it as an event.
 */
#include "dst.h"

#include <errno.h>
#include <string.h>

enum { RING_BUDGET = 32 };

_Static_assert(DST_NODES_MAX <= 64, "bits of rings_due");

static void drain(struct dst_node *node, struct dst_port *port, uint32_t budget)
{
	struct muster_packet packet;
	const void *payload;
	int got = 0;

	while (budget-- && (got = muster_ring_poll(&port->in, &packet, &payload)) == 1) {
		dst_net_receive(node, &packet, payload, packet.length);
		muster_ring_release(&port->in);
	}
	if (got < 0)
		dst_fail(node->world, "node %u: the ring from node %u is broken", node->index,
			 port->peer);
	if (!got)
		node->rings_due &= ~(1ull << port->peer);
	else if (got > 0)
		dst_step_at(node, node->world->now_us + 1);
}

int dst_ring_send(struct dst_node *node, const struct muster_packet *packet, const void *payload)
{
	struct dst_world *w = node->world;
	struct dst_port *port = &node->ports[packet->dst_node];
	int err;

	if (port->gone)
		return -EHOSTUNREACH;
	err = muster_ring_send(&port->out, packet, payload);
	if (err && err != -EAGAIN)
		dst_fail(w, "node %u: the ring to node %u is broken", node->index, port->peer);
	if (err)
		return err;
	w->nodes[port->peer].rings_due |= 1ull << node->index;
	dst_step_at(&w->nodes[port->peer], w->now_us + 1 + dst_below(&w->net, w->plan.jitter_us));
	return 0;
}

void dst_rings_begin(struct dst_world *w)
{
	size_t bytes = muster_ring_region_size(w->plan.nodes, DST_RING_BYTES);

	memset(w->regions, 0, bytes * w->plan.nodes);
	for (uint32_t i = 0; i < w->plan.nodes; i++)
		muster_ring_region_init(&w->nodes[i].region, w->regions + i * bytes, bytes,
					w->plan.nodes, DST_RING_BYTES);
	for (uint32_t i = 0; i < w->plan.nodes; i++) {
		for (uint32_t j = 0; j < w->plan.nodes; j++) {
			muster_ring_consumer_init(&w->nodes[i].ports[j].in, &w->nodes[i].region, j);
			muster_ring_producer_init(&w->nodes[i].ports[j].out, &w->nodes[j].region, i);
		}
	}
}

void dst_ring_drain(struct dst_node *node, uint32_t from)
{
	drain(node, &node->ports[from], UINT32_MAX);
}

void dst_rings_run(struct dst_node *node)
{
	for (uint64_t due = node->rings_due; due; due &= due - 1)
		drain(node, &node->ports[__builtin_ctzll(due)], RING_BUDGET);
}
