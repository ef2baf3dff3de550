// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The wire on a datagram socket, UNIX or UDP: one socket a port, one link
 * (reliable.c) for each node that is there or sought, in a heap by when it is due: the
 * others cost nothing. Of who is lost only the life is kept, and of whom the owner does not
 * need any more, how the link goes on (nodes.h). A node's number
 * says its address, as the wire's text or table has it, and a frame counts only if it comes
 * from the address of the node that it names. Whatever the kernel refuses is either no room
 * now or a lost frame.
 *
 * There is no secret on this wire. UNIX: whoever has this process's user id is
 * trusted, and could claim any node that does not run; frames of other users are
 * refused, but one of them may take a node's free name and hear what is sent to it
 * (in a directory that only its owner may write to, it cannot). UDP: use it only
 * between hosts that trust the network between them.
 */
#include "wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "port.h"

enum {
	LINKS_AT_ONCE = 64,		/* that do what is due in one poll; the others in the next */
	SOCKET_BYTES = 4 << 20,		/* asked for; the kernel may give less */
	SWITCH_SILENCE_US = 10000000,	/* a switch always answers, */
	SWITCH_PROBE_US = 1000000,	/* and all count on it, who may wait for others only */
};

/* ---- links --------------------------------------------------------------- */

static void peer_refused(struct peer *peer)
{
	if (!peer->gone && peer->link.peer_incarnation)
		peer->port->nr_gone++;
	peer->gone = peer->link.peer_incarnation;
	peer->gone_read = peer->port->reads;
}

static struct muster_link_slot *peer_take(void *owner)
{
	return muster_slots_take(&((struct peer *)owner)->port->slots);
}

static void peer_give(void *owner, struct muster_link_slot *slot)
{
	muster_slots_give(&((struct peer *)owner)->port->slots, slot);
}

static int peer_emit(void *owner, const struct muster_frame *frame,
		     const struct muster_packet *packet, const void *payload)
{
	struct peer *peer = owner;
	struct iovec parts[3] = {
		{ (void *)frame, sizeof(*frame) },
		{ (void *)packet, sizeof(*packet) },
		{ (void *)payload, packet ? packet->length : 0 },
	};
	struct msghdr message = {
		.msg_name = &peer->address.any,
		.msg_namelen = peer->address.len,
		.msg_iov = parts,
		.msg_iovlen = packet ? 3 : 1,
	};

	if (peer->port->cut || sendmsg(peer->port->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 0;
	if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)
		return -EAGAIN;
	/* On this host the kernel knows; over UDP such news may be forged or of a router's making. */
	if ((errno == ECONNREFUSED || errno == ENOENT) && peer->address.any.sa_family == AF_UNIX)
		peer_refused(peer);
	return 0;	/* nobody there, interrupted: as good as lost on the way */
}

static bool peer_deliver(void *owner, const struct muster_packet *packet, const void *payload,
			 uint32_t len)
{
	struct peer *peer = owner;
	struct muster_wire *wire = &peer->port->wire;

	if (wire->events->take)
		return wire->events->take(wire->owner, peer->link.config.peer, packet, payload, len);
	wire->events->receive(wire->owner, packet, payload, len);
	return true;
}

static void peer_lost(void *owner, uint32_t node, uint32_t present)
{
	struct muster_wire *wire = &((struct peer *)owner)->port->wire;

	wire->events->lost(wire->owner, node, present);
}

static void peer_met(void *owner, uint32_t node, uint32_t present)
{
	struct muster_wire *wire = &((struct peer *)owner)->port->wire;

	wire->events->met(wire->owner, node, present);
}

/* ---- the heap ------------------------------------------------------------ */

static void heap_put(struct port *port, uint32_t at, struct peer *peer)
{
	port->peers[at] = peer;
	peer->at = at;
}

/* A peer's time has changed, or it has come to another one's place. */
void muster_port_place(struct port *port, struct peer *peer)
{
	uint64_t next_us = peer->link.next_us;
	uint32_t at = peer->at, child;

	while (at && port->peers[(at - 1) / 2]->link.next_us > next_us) {
		heap_put(port, at, port->peers[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	while ((child = 2 * at + 1) < port->nr_peers) {
		if (child + 1 < port->nr_peers &&
		    port->peers[child + 1]->link.next_us < port->peers[child]->link.next_us)
			child++;
		if (port->peers[child]->link.next_us >= next_us)
			break;
		heap_put(port, at, port->peers[child]);
		at = child;
	}
	heap_put(port, at, peer);
}

/* ---- peers --------------------------------------------------------------- */

/* What is kept of it is which life was lost, or how it goes on. */
static void peer_forget(struct port *port, struct peer *peer)
{
	struct peer *last = port->peers[--port->nr_peers];

	muster_link_rest(&peer->link, &peer->node->rest);
	peer->node->peer = NULL;
	port->nr_gone -= peer->gone != 0;
	if (last != peer) {
		heap_put(port, peer->at, last);
		muster_port_place(port, last);
	}
	free(peer);
}

/* After anything was done with a link. Who is lost, or was never there, needs none. */
static void peer_settle(struct port *port, struct peer *peer)
{
	if (peer->link.lost || muster_link_unused(&peer->link))
		peer_forget(port, peer);
	else
		muster_port_place(port, peer);
}

static int heap_grow(struct port *port)
{
	uint32_t room = port->peers_room ? 2 * port->peers_room : 16;
	struct peer **peers = realloc(port->peers, room * sizeof(*peers));

	if (!peers)
		return -ENOMEM;
	port->peers = peers;
	port->peers_room = room;
	return 0;
}

/* The link to a node, if there is one. */
static struct peer *peer_find(const struct port *port, uint32_t node)
{
	const struct muster_node *known = muster_nodes_find(&port->nodes, node);

	return known ? known->peer : NULL;
}

struct peer *muster_port_meet(struct port *port, uint32_t node,
			      const struct muster_address *address)
{
	static const struct muster_link_ops ops = { peer_take, peer_give, peer_emit,
						    peer_deliver, peer_lost, peer_met };
	bool is_switch = node >= MUSTER_NODE_AGGREGATION;
	struct muster_link_config config = {
		.node = port->wire.node,
		.peer = node,
		.incarnation = port->incarnation,
		.deadline_us = is_switch ? SWITCH_SILENCE_US : port->deadline_us,
		.probe_us = is_switch ? SWITCH_PROBE_US : 0,
		.ops = &ops,
		.pool = &port->pool,
		.counters = &port->counters,
	};
	struct muster_node *known;
	struct peer *peer;

	if (port->nr_peers == MUSTER_WIRE_LINKS_MAX ||
	    (port->nr_peers == port->peers_room && heap_grow(port)))
		return NULL;
	known = muster_nodes_make(&port->nodes, node);
	peer = known ? malloc(sizeof(*peer)) : NULL;
	if (!peer)
		return NULL;
	peer->port = port;
	peer->node = known;
	peer->gone = 0;
	peer->address = *address;
	config.owner = peer;
	muster_link_init(&peer->link, &config);
	muster_link_resume(&peer->link, muster_clock_us(), &known->rest);
	peer->link.question = muster_clock_us();	/* not those of an earlier link to this node */
	known->peer = peer;
	heap_put(port, port->nr_peers++, peer);
	muster_port_place(port, peer);
	return peer;
}

/* The peer that is a node, met now if need be; NULL: there can be none, or no memory. */
static struct peer *peer_of(struct port *port, uint32_t node)
{
	struct muster_address address;
	struct peer *peer = peer_find(port, node);

	if (peer)
		return peer;
	if (node >= MUSTER_NODES_MAX || node == port->wire.node ||
	    muster_addresses_find(&port->addresses, node, &address))
		return NULL;
	return muster_port_meet(port, node, &address);
}

/* The peer that a frame names, if it comes from that peer's address. */
static struct peer *peer_at(struct port *port, uint32_t node,
			    const struct muster_address *from)
{
	struct muster_address address;
	struct peer *peer = peer_find(port, node);

	if (peer)
		return muster_address_same(&peer->address, from) ? peer : NULL;
	if (node >= MUSTER_NODES_MAX || node == port->wire.node ||
	    muster_addresses_find(&port->addresses, node, &address) ||
	    !muster_address_same(&address, from))
		return NULL;
	return muster_port_meet(port, node, &address);
}

/* ---- operations ---------------------------------------------------------- */

static int port_send_by(struct muster_wire *wire, uint32_t neighbour, uint32_t incarnation,
			const struct muster_packet *packet, const void *payload)
{
	struct peer *peer = peer_of(port_of(wire), neighbour);
	int err;

	if (!peer)
		return -EHOSTUNREACH;
	err = muster_link_send(&peer->link, muster_clock_us(), incarnation, packet, payload);
	peer_settle(port_of(wire), peer);
	return err;
}

static int port_send(struct muster_wire *wire, uint32_t incarnation,
		     const struct muster_packet *packet, const void *payload)
{
	return port_send_by(wire, packet->dst_node, incarnation, packet, payload);
}

static void port_send_once(struct muster_wire *wire, uint32_t neighbour, uint32_t incarnation,
			   const struct muster_packet *packet, const void *payload)
{
	struct peer *peer = peer_find(port_of(wire), neighbour);

	if (peer)
		muster_link_send_once(&peer->link, incarnation, packet, payload);
}

static int port_watch(struct muster_wire *wire, uint32_t node, uint32_t incarnation)
{
	struct peer *peer = peer_of(port_of(wire), node);
	int err;

	if (!peer)
		return -EHOSTUNREACH;
	err = muster_link_watch(&peer->link, muster_clock_us(), incarnation);
	peer_settle(port_of(wire), peer);
	return err;
}

static void port_gone(struct muster_wire *wire, uint32_t node)
{
	struct peer *peer = peer_find(port_of(wire), node);

	if (!peer)
		return;
	muster_link_gone(&peer->link);
	peer_settle(port_of(wire), peer);
}

MUSTER_STATIC_ASSERT((int)MUSTER_DATAGRAMS_BATCH <= (int)MUSTER_WIRE_EXPECT_MAX, "all of a batch");

static void take_datagram(struct port *port, uint64_t now_us, int i)
{
	struct muster_datagram datagram = muster_datagrams_get(port->datagrams, i);
	struct muster_frame frame;
	struct peer *peer;

	if (port->cut)
		return;
	if (!datagram.from) {
		port->counters.refused++;
		return;
	}
	if (muster_frame_check(datagram.bytes, datagram.len, &frame)) {
		port->counters.corrupt++;
		return;
	}
	peer = peer_at(port, frame.src_node, datagram.from);
	if (!peer) {
		port->counters.refused++;
		return;
	}
	muster_link_receive(&peer->link, now_us, &frame, datagram.bytes + sizeof(frame));
	peer_settle(port, peer);
}

/* One alone would be asked for and looked at in the same breath. */
static void expect_packets(struct port *port, int nr)
{
	const struct muster_packet *packets[MUSTER_DATAGRAMS_BATCH];
	struct muster_wire *wire = &port->wire;
	uint32_t whole = 0;

	if (nr < 2 || !wire->events->expect)
		return;
	for (int i = 0; i < nr; i++) {
		const struct muster_frame *frame = muster_datagrams_peek(port->datagrams, i,
									 sizeof(*frame) + sizeof(**packets));

		if (frame && (frame->type == MUSTER_FRAME_DATA || frame->type == MUSTER_FRAME_ONCE))
			packets[whole++] = (const struct muster_packet *)(frame + 1);
	}
	wire->events->expect(wire->owner, packets, whole);
}

/*
 * A peer that is gone has left all that it sent in our socket, its last
 * acknowledgement as well. So its end counts only once the socket was found empty
 * after we had heard of it. Whom the heap moves past us has its turn in the next poll, as have
 * those who are left of many.
 */
static void peers_end(struct port *port)
{
	uint32_t left = LINKS_AT_ONCE;

	for (uint32_t at = 0; at < port->nr_peers && port->nr_gone && left; at++) {
		struct peer *peer = port->peers[at];

		if (!peer->gone || peer->gone_read == port->reads)
			continue;
		if (peer->gone == peer->link.peer_incarnation)
			muster_link_gone(&peer->link);
		peer->gone = 0;
		port->nr_gone--;
		left--;
		peer_settle(port, peer);
	}
}

/* Nobody has spoken for a while, and nobody wants to know whether it is there. */
static bool peer_rests(const struct port *port, const struct peer *peer, uint64_t now_us)
{
	const struct muster_wire *wire = &port->wire;

	return wire->events->needs && !peer->gone && muster_link_quiet(&peer->link, now_us) &&
	       !wire->events->needs(wire->owner, peer->link.config.peer);
}

/* A few, as our caller has others to serve; what is left is due at once. */
static void peers_run(struct port *port, uint64_t now_us)
{
	for (uint32_t left = LINKS_AT_ONCE; left && port->nr_peers; left--) {
		struct peer *peer = port->peers[0];

		if (peer->link.next_us > now_us)
			break;
		if (peer_rests(port, peer, now_us)) {
			peer_forget(port, peer);
			continue;
		}
		muster_link_run(&peer->link, now_us);
		peer_settle(port, peer);
	}
}

static int port_poll(struct muster_wire *wire, uint64_t now_us, int budget)
{
	struct port *port = port_of(wire);
	bool empty = false;
	int came = 0;

	while (came < budget && !empty) {
		int left = budget - came;
		int most = left < MUSTER_DATAGRAMS_BATCH ? left : MUSTER_DATAGRAMS_BATCH;
		int nr = muster_datagrams_receive(port->datagrams, port->fd, most);

		port->reads++;
		expect_packets(port, nr);
		for (int i = 0; i < nr; i++)
			take_datagram(port, now_us, i);
		if (nr > 0 && wire->events->over)
			wire->events->over(wire->owner);
		came += nr > 0 ? nr : 0;
		empty = nr < most;
	}
	if (empty)
		peers_end(port);
	peers_run(port, now_us);
	return came;
}

static uint32_t port_silent(struct muster_wire *wire, struct muster_look_silence *list, uint32_t max)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < port_of(wire)->nr_peers && nr < max; i++)
		nr += muster_link_silent(&port_of(wire)->peers[i]->link, &list[nr]);
	return nr;
}

static uint64_t port_deadline_us(struct muster_wire *wire)
{
	struct port *port = port_of(wire);

	if (port->nr_gone)
		return 0;
	return port->nr_peers ? port->peers[0]->link.next_us : UINT64_MAX;
}

static uint32_t port_waiting(struct muster_wire *wire, uint32_t node)
{
	struct port *port = port_of(wire);
	const struct peer *peer;

	if (node == MUSTER_WIRE_ALL || !port->pool.waiting)
		return port->pool.waiting;
	peer = peer_find(port, node);
	return peer ? muster_link_waiting(&peer->link) : 0;
}

static int port_fd(struct muster_wire *wire)
{
	return port_of(wire)->fd;
}

static void port_close(struct muster_wire *wire)
{
	struct port *port = port_of(wire);

	if (port->fd >= 0)
		close(port->fd);
	if (port->bound && port->own.any.sa_family == AF_UNIX)
		unlink(port->own.un.sun_path);
	for (uint32_t i = 0; i < port->nr_peers; i++) {
		muster_link_drop(&port->peers[i]->link);
		free(port->peers[i]);
	}
	free(port->peers);
	free(port->datagrams);
	muster_slots_free(&port->slots);
	muster_nodes_free(&port->nodes);
	muster_addresses_free(&port->addresses);
	free(port);
}

void muster_wire_socket_cable(struct muster_wire *wire, bool in)
{
	port_of(wire)->cut = !in;
}

void muster_wire_socket_counters(const struct muster_wire *wire,
				 struct muster_wire_counters *counters)
{
	*counters = ((const struct port *)wire)->counters;
	counters->links = ((const struct port *)wire)->nr_peers;
	counters->slots = ((const struct port *)wire)->slots.nr_used;
}

/* ---- opening ------------------------------------------------------------- */

static int port_bind(struct port *port, const char *spec, char *why, size_t why_len)
{
	int bytes = SOCKET_BYTES, on = 1, err = 0;

	port->fd = socket(port->own.any.sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (port->fd < 0 || (port->own.any.sa_family == AF_UNIX &&
			     setsockopt(port->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)))) {
		err = errno;
	} else if (bind(port->fd, &port->own.any, port->own.len)) {
		err = errno;
		if (err == EADDRINUSE && muster_address_stale(&port->own)) {
			unlink(port->own.un.sun_path);
			err = bind(port->fd, &port->own.any, port->own.len) ? errno : 0;
		}
	}
	if (err) {
		muster_wire_refuse(why, why_len, "wire \"%s\": node %u cannot listen: %s%s", spec,
		       port->wire.node, strerror(err),
		       err == EADDRINUSE ? "; does this node run already?" : "");
		return -err;
	}
	port->bound = true;
	setsockopt(port->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	setsockopt(port->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	return 0;
}

int muster_port_new(const char *spec, uint32_t node, uint32_t incarnation, uint64_t deadline_us,
		    const struct muster_wire_events *events, void *owner, struct port **result,
		    char *why, size_t why_len)
{
	static const struct muster_wire_ops ops = {
		.send = port_send,
		.send_by = port_send_by,
		.send_once = port_send_once,
		.watch = port_watch,
		.gone = port_gone,
		.poll = port_poll,
		.silent = port_silent,
		.deadline_us = port_deadline_us,
		.waiting = port_waiting,
		.fd = port_fd,
		.close = port_close,
	};
	struct port *port;
	int err;

	if (!incarnation || node >= MUSTER_NODES_MAX)
		return muster_wire_refuse(why, why_len,
			      "wire \"%s\": node %u must be below %u, and its incarnation not 0",
			      spec, node, MUSTER_NODES_MAX);
	port = calloc(1, sizeof(*port));
	if (!port)
		return -ENOMEM;
	port->wire = (struct muster_wire){ &ops, events, owner, node };
	port->fd = -1;
	port->incarnation = incarnation;
	port->deadline_us = deadline_us;
	port->pool.size = MUSTER_SLOTS_SHARED;
	err = muster_addresses_read(&port->addresses, spec, why, why_len);
	if (err)
		goto err_close;
	err = muster_addresses_find(&port->addresses, node, &port->own);
	if (err) {
		muster_wire_refuse(why, why_len, "wire \"%s\": node %u %s", spec, node,
				   err == -ENOENT ? "is not in the table" : "has a port above 65535");
		goto err_close;
	}
	err = -ENOMEM;
	port->datagrams = muster_datagrams_new(port->own.any.sa_family == AF_UNIX);
	if (!port->datagrams)
		goto err_close;
	*result = port;
	return 0;

err_close:
	port_close(&port->wire);
	return err;
}

int muster_wire_socket_open(const char *spec, uint32_t node, uint32_t incarnation,
			    uint64_t deadline_us, const struct muster_wire_events *events,
			    void *owner, struct muster_wire **wire, char *why, size_t why_len)
{
	struct port *port = NULL;
	int err = muster_port_new(spec, node, incarnation, deadline_us, events, owner, &port, why, why_len);

	if (err)
		return err;
	err = port_bind(port, spec, why, why_len);
	if (err)
		port_close(&port->wire);
	else
		*wire = &port->wire;
	return err;
}
