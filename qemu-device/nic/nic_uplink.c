// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A NIC at a network of switches (Documentation/switch.md): all that it sends to others goes by one
 * switch, its uplink, and all that comes does so by that. The switch says which nodes cannot be reached
 * any more (GONE); when it is lost itself, they all are. That holds for this life of the NIC.
 */
#include "nic_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int nic_uplink_open(struct muster_nic *nic, char *why, size_t why_len)
{
	const struct muster_nic_config *config = &nic->config;

	if (!config->uplink)
		return 0;
	if (config->uplink < MUSTER_NODE_AGGREGATION || config->uplink >= MUSTER_NODES_MAX ||
	    !config->uplink_life) {
		snprintf(why, why_len, "uplink=%u, uplink-life=%u: switches are nodes %u to %u, and have a life",
			 config->uplink, config->uplink_life, MUSTER_NODE_AGGREGATION, MUSTER_NODES_MAX - 1);
		return -EINVAL;
	}
	nic->gone = calloc(MUSTER_NODES_MAX / 64, sizeof(*nic->gone));
	return nic->gone ? 0 : -ENOMEM;
}

void nic_uplink_close(struct muster_nic *nic)
{
	free(nic->gone);
	nic->gone = NULL;
	nic->cut = false;
}

void nic_uplink_greet(struct muster_nic *nic)
{
	if (nic->config.uplink && nic->wire &&
	    nic->wire->ops->watch(nic->wire, nic->config.uplink, nic->config.uplink_life))
		nic_uplink_lost(nic);
}

void nic_uplink_lost(struct muster_nic *nic)
{
	nic->cut = true;
	nic_engines_network_lost(nic);
}

static void node_gone(struct muster_nic *nic, uint32_t node)
{
	if (node >= MUSTER_NODES_MAX)
		return;
	nic->gone[node / 64] |= 1ull << node % 64;
	nic_engines_present(nic, node, 0);
	nic_qps_lost(nic, node, 0);
	nic_event_lost(nic, node);
}

bool nic_uplink_take(void *owner, uint32_t neighbour, const struct muster_packet *packet,
		     const void *payload, uint32_t len)
{
	struct muster_nic *nic = owner;
	uint32_t node = le32toh(packet->arg);

	if (neighbour != nic->config.uplink)
		nic->counts.dropped++;
	else if (packet->type != MUSTER_PACKET_GONE)
		nic_packet_take(nic, packet, payload, len);
	else if (node == nic->config.node)
		nic_uplink_lost(nic);	/* not all reach it, and who cannot will not hear it from us */
	else
		node_gone(nic, node);
	return true;
}

bool nic_watch(struct muster_nic *nic, uint32_t node, uint32_t incarnation)
{
	if (node == nic->config.node)
		return true;
	if (nic->config.uplink)
		return node < MUSTER_NODES_MAX && nic->gone && !nic->cut &&
		       !(nic->gone[node / 64] >> node % 64 & 1);
	return nic->wire && !nic->wire->ops->watch(nic->wire, node, incarnation);
}

bool nic_needs(void *owner, uint32_t node)
{
	const struct muster_nic *nic = owner;

	return (node == nic->config.uplink && node) || nic_engines_need(nic, node) || nic_qps_need(nic, node);
}
