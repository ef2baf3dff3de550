// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Output queues: a frame for several ports is copied into the queue of each; a
 * queue that is full drops it. And the way of other traffic: as a bridge learns
 * it, over the ports that are open to it.
 */
#include "internal.h"

void queues_send(struct muster_bump *bump, uint32_t ports, const struct muster_bump_frame *frame)
{
	for (uint32_t port = 0; port < bump->config.nr_ports; port++)
		if (ports & 1u << port && !bump->world.send(bump->opaque, port, frame))
			bump->counters.dropped_full++;
}

static struct learned *learned_place(struct muster_bump *bump, const uint8_t *mac)
{
	uint32_t hash = (uint32_t)mac[5] | (uint32_t)mac[4] << 8 | (uint32_t)mac[3] << 16;

	return &bump->learned[(hash * 2654435761u) >> 16 & (LEARNED_MAX - 1)];
}

static void learn(struct muster_bump *bump, uint32_t port, const uint8_t *mac)
{
	struct learned *place = learned_place(bump, mac);

	if (mac[0] & 1)
		return;
	memcpy(place->mac, mac, sizeof(place->mac));
	place->port = (uint8_t)port;
	place->known = true;
}

void queues_pass(struct muster_bump *bump, uint32_t port, const struct muster_bump_frame *frame)
{
	uint32_t ports = bump->config.open_ports & ~(1u << port);
	const struct learned *place;

	if (frame->len < 14 || !(bump->config.open_ports & 1u << port))
		return;
	learn(bump, port, frame->data + 6);
	place = learned_place(bump, frame->data);
	if (place->known && !memcmp(place->mac, frame->data, sizeof(place->mac)))
		ports &= 1u << place->port;
	bump->counters.passed++;
	bump->counters.passed_bytes += frame->len;
	queues_send(bump, ports, frame);
}
