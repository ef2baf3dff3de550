/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A port of the socket transport and its links, for socket.c, which owns them, and handover.c, which
 * writes them down and makes them anew. Nobody else includes this.
 */
#ifndef MUSTER_WIRE_PORT_PARTS_H
#define MUSTER_WIRE_PORT_PARTS_H

#include "address.h"
#include "datagrams.h"
#include "nodes.h"
#include "reliable.h"
#include "slots.h"

struct peer {
	struct port *port;
	struct muster_node *node;
	uint32_t at;			/* its place in the heap */
	struct muster_address address;
	uint32_t gone;			/* the life at whose address nobody listens; 0: none */
	uint64_t gone_read;		/* port.reads when that was seen */
	struct muster_link link;
};

struct port {
	struct muster_wire wire;
	int fd;
	bool bound;
	bool cut;			/* the cable is out */
	struct muster_addresses addresses;
	struct muster_address own;
	uint32_t incarnation;
	uint64_t deadline_us;
	struct muster_wire_counters counters;
	uint64_t reads;			/* of the socket, so far */
	struct muster_nodes nodes;
	struct muster_link_pool pool;
	struct muster_slots slots;
	uint32_t nr_peers, peers_room;
	struct peer **peers;		/* all that have a link: a heap, the next due first */
	uint32_t nr_gone;		/* of them, with `gone` set */
	struct muster_datagrams *datagrams;
};

static inline struct port *port_of(const struct muster_wire *wire)
{
	return (struct port *)wire;	/* its first member */
}

/** muster_port_new() - one that does not listen yet: as muster_wire_socket_open(). */
int muster_port_new(const char *spec, uint32_t node, uint32_t incarnation, uint64_t deadline_us,
		    const struct muster_wire_events *events, void *owner, struct port **port,
		    char *why, size_t why_len);

/** muster_port_meet() - a link to a node that has none. NULL: there can be no more, or no memory. */
struct peer *muster_port_meet(struct port *port, uint32_t node, const struct muster_address *address);

/** muster_port_place() - a link's time has changed: its place in the heap is another one. */
void muster_port_place(struct port *port, struct peer *peer);

#endif /* MUSTER_WIRE_PORT_PARTS_H */
