/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The wire: how a packet gets from one node to another, exactly once and in any
 * order. Transports: memory rings between processes (ring.c), and datagram
 * sockets, UNIX or UDP (socket.c), on which the pure part (reliable.c) repairs
 * loss, repetition and reordering. The wire never looks into a payload.
 *
 * A port belongs to one thread. Nothing here blocks.
 */
#ifndef MUSTER_WIRE_PORT_H
#define MUSTER_WIRE_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "muster_look.h"
#include "muster_wire.h"

/* What a port tells its owner. The packet is valid during the call only, but see over(). */
struct muster_wire_events {
	void (*receive)(void *owner, const struct muster_packet *packet, const void *payload,
			uint32_t len);
	/*
	 * A node was silent for the deadline, its link ended (present: 0), or it has begun
	 * a new life (present: that one). Once for each life; packets to a new one may be
	 * sent afterwards. Whoever means another life than `present` has lost it.
	 */
	void (*lost)(void *owner, uint32_t node, uint32_t present);
	/* No life has ended, but this one is there, and whoever means another does so in vain. */
	void (*met)(void *owner, uint32_t node, uint32_t present);
	/*
	 * Of who forwards, in place of receive(): with the neighbour whose link it came by.
	 * False: there is no place for it now. It stays the neighbour's, who sends it again;
	 * nothing may have been sent to that neighbour in this call. Else NULL.
	 */
	bool (*take)(void *owner, uint32_t neighbour, const struct muster_packet *packet,
		     const void *payload, uint32_t len);
	/*
	 * Of who is told by take(): what it was given since the last time has stayed where it was until now,
	 * and goes. Else NULL.
	 */
	void (*over)(void *owner);
	/*
	 * Whether the owner still wants to hear when this node is gone: asked when nothing was
	 * said on a link for a while. If not, the link is given back, and nothing is reported
	 * of the node until it is watched or spoken to again. NULL: it always does.
	 */
	bool (*needs)(void *owner, uint32_t node);
	/*
	 * These have come together, and each may be received next: a hint, of datagrams that nobody
	 * has checked yet. At most MUSTER_WIRE_EXPECT_MAX. Else NULL.
	 */
	void (*expect)(void *owner, const struct muster_packet *const *packets, uint32_t nr);
};

enum { MUSTER_WIRE_EXPECT_MAX = 16 };

struct muster_wire;

struct muster_wire_ops {
	/*
	 * Send to that life of packet->dst_node (0: to whichever is there); the packet and its
	 * payload (packet->length bytes) are copied. 0; -EAGAIN: no room now, or nobody has
	 * answered yet: poll() may change it; -EHOSTUNREACH: unknown or lost.
	 */
	int (*send)(struct muster_wire *wire, uint32_t incarnation,
		    const struct muster_packet *packet, const void *payload);
	/* The same to a neighbour that forwards: packet->dst_node is another one. */
	int (*send_by)(struct muster_wire *wire, uint32_t neighbour, uint32_t incarnation,
		       const struct muster_packet *packet, const void *payload);
	/* And without a promise: it may be lost, and nobody hears of it. */
	void (*send_once)(struct muster_wire *wire, uint32_t neighbour, uint32_t incarnation,
			  const struct muster_packet *packet, const void *payload);
	/*
	 * From now on report when this life of a node is gone, even if nothing is sent
	 * to it: who only waits for a packet would not learn it otherwise. If another life
	 * is known, the node is asked which it is: only its own frames end a life.
	 * 0; -EHOSTUNREACH: unknown, or gone already.
	 */
	int (*watch)(struct muster_wire *wire, uint32_t node, uint32_t incarnation);
	/*
	 * The owner has heard elsewhere that a node is not there any more: nothing needs
	 * to reach it, and what comes from it is refused. Reports it lost.
	 */
	void (*gone)(struct muster_wire *wire, uint32_t node);
	/*
	 * Receive what has come, at most `budget` frames, and run timers; now_us is
	 * CLOCK_MONOTONIC. Return: how many came, acknowledgements as well; 0: no more
	 * is there.
	 */
	int (*poll)(struct muster_wire *wire, uint64_t now_us, int budget);
	/* Nodes that acknowledge nothing, at most max. Return: how many are in the list. */
	uint32_t (*silent)(struct muster_wire *wire, struct muster_look_silence *list,
			   uint32_t max);
	/* When poll() is next due although nothing comes (us, absolute); UINT64_MAX: never. */
	uint64_t (*deadline_us)(struct muster_wire *wire);
	/*
	 * Packets that were taken, and not sent once since there was no room: they leave by
	 * poll(). To a node, or, MUSTER_WIRE_ALL, to any.
	 */
	uint32_t (*waiting)(struct muster_wire *wire, uint32_t node);
	/* A descriptor that becomes readable when something comes; -1: none. */
	int (*fd)(struct muster_wire *wire);
	void (*close)(struct muster_wire *wire);
};

struct muster_wire {
	const struct muster_wire_ops *ops;
	const struct muster_wire_events *events;
	void *owner;
	uint32_t node;
};

enum muster_wire_limit {
	MUSTER_WIRE_LINKS_MAX = 4096,	/* of a socket port at once; who comes later finds nobody */
};

#define MUSTER_WIRE_ALL	0xffffffffu	/* nodes */

struct muster_wire_counters {
	uint64_t frames_out;
	uint64_t frames_in;
	uint64_t retransmitted;
	uint64_t duplicates;
	uint64_t corrupt;	/* wrong checksum, length or version */
	uint64_t refused;	/* other incarnation, outside of the window */
	uint64_t links;		/* now, of a port: to nodes that are needed, or have just spoken */
	uint64_t slots;		/* now, of a port: packets and probes kept until acknowledged */
};

/**
 * muster_wire_socket_open() - a port on a datagram socket.
 * @spec: "unix:DIR" (node N is DIR/node-N.sock; a DIR that starts with @ is an
 *	abstract name, not a directory; all nodes are of one user), "udp:HOST:PORT"
 *	(node N is HOST at PORT + N) or "udp:@FILE" (a table: lines of NODE HOST:PORT or
 *	FIRST-LAST HOST:PORT, counted up by port; # begins a comment). Only numeric
 *	addresses; IPv6 in brackets. The file is read now, not again later.
 * @node: this port's node, below MUSTER_NODES_MAX.
 * @incarnation: differs in every life of a node; not 0.
 * @deadline_us: silence towards an unacknowledged packet after which a node is lost. A switch
 *	(MUSTER_NODE_AGGREGATION and on) always answers: it is lost after 10 s, whatever this says,
 *	and asked each second.
 * @why: gets what was wrong, where and what to do, when the call fails.
 *
 * Return: 0; -EINVAL for a spec that cannot be read; or what the socket said.
 */
int muster_wire_socket_open(const char *spec, uint32_t node, uint32_t incarnation,
			    uint64_t deadline_us, const struct muster_wire_events *events,
			    void *owner, struct muster_wire **wire, char *why, size_t why_len);

/**
 * muster_wire_socket_cable() - whether the cable is in: while it is not, all that is sent is lost on
 * the way, and so is all that comes; links time out as if the others were silent.
 */
void muster_wire_socket_cable(struct muster_wire *wire, bool in);

/**
 * muster_wire_socket_save() - write a port down, for another program that this process becomes: its socket
 * is left open by exec. Nothing may be done with the port between, unless nothing comes of it. 0; -EIO.
 */
int muster_wire_socket_save(struct muster_wire *wire, FILE *to);
/**
 * muster_wire_socket_resume() - go on with it: nobody at the other end of a link sees a difference.
 * Return: 0; -EINVAL: it was written by another program or for another node; -EBADF: its socket is not
 * there; -EIO; -ENOMEM; and why.
 */
int muster_wire_socket_resume(const char *spec, uint32_t node, FILE *from,
			      const struct muster_wire_events *events, void *owner,
			      struct muster_wire **wire, char *why, size_t why_len);

void muster_wire_socket_counters(const struct muster_wire *wire,
				 struct muster_wire_counters *counters);

#endif /* MUSTER_WIRE_PORT_H */
