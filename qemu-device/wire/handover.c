// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A socket port that another program goes on with, in the same process: its socket stays, with all that
 * is in it, and its links are written down as they stand in memory, with the packets that nobody has
 * acknowledged. So nobody at the other end sees that anything has changed.
 */
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "port.h"

/* What must be the same where it is read, then what the port has beside its links. */
struct heading {
	uint32_t version;	/* MUSTER_FRAME_VERSION */
	uint32_t node;
	uint32_t link_bytes, slot_bytes, packet_bytes;
	uint32_t incarnation;
	int32_t fd;
	uint32_t nr_peers, nr_rests, nr_gone;
	uint64_t deadline_us, reads;
	struct muster_link_pool pool;
	struct muster_wire_counters counters;
};

/* Of a node without a link. */
struct rest {
	uint32_t node;
	struct muster_link_rest rest;
};

struct peer_heading {
	uint32_t node;
	uint32_t gone;
	uint64_t gone_read;
};

static struct heading heading_of(const struct port *port)
{
	return (struct heading){
		.version = MUSTER_FRAME_VERSION, .node = port->wire.node,
		.link_bytes = sizeof(struct muster_link), .slot_bytes = sizeof(struct muster_link_slot),
		.packet_bytes = sizeof(struct muster_packet), .incarnation = port->incarnation,
		.fd = port->fd, .nr_peers = port->nr_peers, .nr_gone = port->nr_gone,
		.deadline_us = port->deadline_us, .reads = port->reads, .pool = port->pool,
		.counters = port->counters,
	};
}

static size_t slot_bytes(const struct muster_link_slot *slot)
{
	bool carries = slot->type == MUSTER_FRAME_DATA;

	return offsetof(struct muster_link_slot, payload) + (carries ? slot->packet.length : 0);
}

/* ---- writing ------------------------------------------------------------- */

static void put(FILE *to, const void *bytes, size_t len)
{
	fwrite(bytes, len, 1, to);	/* what fails is seen at the end */
}

static void link_save(const struct muster_link *link, FILE *to)
{
	put(to, link, sizeof(*link));
	for (int i = 0; i < MUSTER_LINK_WINDOW; i++)
		if (link->slots[i])
			put(to, link->slots[i], slot_bytes(link->slots[i]));
}

static void peers_save(const struct port *port, FILE *to)
{
	for (uint32_t i = 0; i < port->nr_peers; i++) {
		const struct peer *peer = port->peers[i];
		const struct peer_heading heading = {
			.node = peer->link.config.peer, .gone = peer->gone, .gone_read = peer->gone_read,
		};

		put(to, &heading, sizeof(heading));
		link_save(&peer->link, to);
	}
}

/* to NULL: only counted. */
static uint32_t rests_save(const struct port *port, FILE *to)
{
	uint32_t nr = 0;

	for (uint32_t id = 0; id < port->nodes.nr_leaves * MUSTER_NODES_LEAF; id++) {
		const struct muster_node *node = muster_nodes_find(&port->nodes, id);
		struct rest rest = { .node = id };

		if (!node || node->peer || !(node->rest.peer_incarnation | node->rest.former_incarnation))
			continue;
		rest.rest = node->rest;
		if (to)
			put(to, &rest, sizeof(rest));
		nr++;
	}
	return nr;
}

int muster_wire_socket_save(struct muster_wire *wire, FILE *to)
{
	const struct port *port = port_of(wire);
	struct heading heading = heading_of(port);

	heading.nr_rests = rests_save(port, NULL);
	put(to, &heading, sizeof(heading));
	rests_save(port, to);
	peers_save(port, to);
	return ferror(to) || fcntl(port->fd, F_SETFD, 0) ? -EIO : 0;
}

/* ---- reading ------------------------------------------------------------- */

static int get(FILE *from, void *bytes, size_t len)
{
	return fread(bytes, len, 1, from) == 1 ? 0 : -EIO;
}

static int slot_restore(struct port *port, struct muster_link_slot **place, FILE *from)
{
	struct muster_link_slot *slot = muster_slots_take(&port->slots);
	int err;

	*place = slot;
	if (!slot)
		return -ENOMEM;
	err = get(from, slot, offsetof(struct muster_link_slot, payload));
	if (err || slot->type != MUSTER_FRAME_DATA || !slot->packet.length)
		return err;
	return slot->packet.length <= MUSTER_MTU ? get(from, slot->payload, slot->packet.length) : -EINVAL;
}

/* What was open before is so again; a slot that is not read yet is none. */
static int link_restore(struct port *port, struct muster_link *link, FILE *from)
{
	struct muster_link was;
	int err = get(from, &was, sizeof(was));

	if (err)
		return err;
	was.config = link->config;
	*link = was;
	memset(link->slots, 0, sizeof(link->slots));
	for (int i = 0; i < MUSTER_LINK_WINDOW && !err; i++)
		if (was.slots[i])
			err = slot_restore(port, &link->slots[i], from);
	return err;
}

static int peer_restore(struct port *port, FILE *from)
{
	struct peer_heading heading;
	struct muster_address address;
	struct peer *peer;
	int err = get(from, &heading, sizeof(heading));

	if (err || heading.node >= MUSTER_NODES_MAX ||
	    muster_addresses_find(&port->addresses, heading.node, &address))
		return err ? err : -EINVAL;
	peer = muster_port_meet(port, heading.node, &address);
	if (!peer)
		return -ENOMEM;
	peer->gone = heading.gone;
	peer->gone_read = heading.gone_read;
	err = link_restore(port, &peer->link, from);
	muster_port_place(port, peer);
	return err;
}

static int rest_restore(struct port *port, FILE *from)
{
	struct muster_node *node;
	struct rest rest;
	int err = get(from, &rest, sizeof(rest));

	if (err || rest.node >= MUSTER_NODES_MAX)
		return err ? err : -EINVAL;
	node = muster_nodes_make(&port->nodes, rest.node);
	if (!node)
		return -ENOMEM;
	node->rest = rest.rest;
	return 0;
}

/* It is there, and listens where this node does. */
static int socket_restore(struct port *port, int fd)
{
	struct muster_address bound = { .len = sizeof(bound) - sizeof(bound.len) };

	if (getsockname(fd, &bound.any, &bound.len) || !muster_address_same(&bound, &port->own) ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC))
		return -EBADF;
	port->fd = fd;
	port->bound = true;
	return 0;
}

static int restore(struct port *port, const struct heading *heading, FILE *from)
{
	int err = 0;

	for (uint32_t i = 0; i < heading->nr_rests && !err; i++)
		err = rest_restore(port, from);
	for (uint32_t i = 0; i < heading->nr_peers && !err; i++)
		err = peer_restore(port, from);
	port->nr_gone = heading->nr_gone;
	port->reads = heading->reads;
	port->pool = heading->pool;
	port->counters = heading->counters;
	return err ? err : socket_restore(port, heading->fd);
}

static bool fits(const struct heading *heading, uint32_t node)
{
	return heading->version == MUSTER_FRAME_VERSION && heading->node == node &&
	       heading->link_bytes == sizeof(struct muster_link) &&
	       heading->slot_bytes == sizeof(struct muster_link_slot) &&
	       heading->packet_bytes == sizeof(struct muster_packet);
}

int muster_wire_socket_resume(const char *spec, uint32_t node, FILE *from,
			      const struct muster_wire_events *events, void *owner,
			      struct muster_wire **wire, char *why, size_t why_len)
{
	struct heading heading;
	struct port *port;
	int err = get(from, &heading, sizeof(heading));

	if (!err && !fits(&heading, node))
		err = -EINVAL;
	if (err) {
		muster_wire_refuse(why, why_len, "what was written of node %u's links is another program's", node);
		return err;
	}
	err = muster_port_new(spec, node, heading.incarnation, heading.deadline_us, events, owner, &port, why,
			      why_len);
	if (err)
		return err;
	err = restore(port, &heading, from);
	if (err) {
		muster_wire_refuse(why, why_len, "wire \"%s\": node %u does not go on: %s", spec, node,
				   strerror(-err));
		port->wire.ops->close(&port->wire);
		return err;
	}
	*wire = &port->wire;
	return 0;
}
