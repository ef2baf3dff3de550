/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Links: exactly-once delivery, in any order, between two nodes over datagrams
 * that may be lost, repeated, reordered, delayed and corrupted. The pure part of
 * the socket transport: no clock, socket or allocation. The caller gives the
 * time and the storage, hands in what has come, and gets frames to send.
 *
 * One link for each pair of nodes, at each end. All links of a port share a pool of
 * slots; a link that has nothing unacknowledged has none, and may rest: 16 bytes are kept
 * of it, with which it goes on when it is needed again. Not thread safe. Callbacks may
 * call muster_link_send(), nothing else.
 */
#ifndef MUSTER_RELIABLE_H
#define MUSTER_RELIABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame.h"
#include "pace.h"
#include "wire.h"

enum muster_link_limit {
	MUSTER_LINK_WINDOW = 64,		/* packets kept until acknowledged, at most; */
	MUSTER_LINK_FLOOR = 1,			/* so many whatever other links keep */
	MUSTER_LINK_REORDER = 3,		/* overtaken so often: taken for lost */
	MUSTER_LINK_ACK_EVERY = 8,		/* packets until an ACK goes at once */
	MUSTER_LINK_RETRY_US = 30,		/* after the transport had no room */
	MUSTER_LINK_TRIES_SILENT = 4,		/* of a packet, before it is said to others */
	MUSTER_LINK_TRIES_MIN = 5,		/* before a peer is lost, however late it is */
};

/*
 * Streams begin shortly before their numbers wrap, so that wrapping is an
 * everyday matter.
 */
#define MUSTER_LINK_SEQ_FIRST	0xffffffc0u

struct muster_link_slot;

struct muster_link_ops {
	/* Storage for a slot, within what floor and pool allow. NULL: no memory. */
	struct muster_link_slot *(*take)(void *owner);
	void (*give)(void *owner, struct muster_link_slot *slot);
	/*
	 * Send a finished frame: header, then packet and packet->length bytes of
	 * payload, unless packet is NULL. 0: sent or lost, who knows; -EAGAIN: no
	 * room now.
	 */
	int (*emit)(void *owner, const struct muster_frame *frame,
		    const struct muster_packet *packet, const void *payload);
	/*
	 * A packet from the peer, once; valid during the call. False: it is not taken; the peer
	 * sends it again, as if it had not come. Nothing may have been sent on this link then.
	 */
	bool (*deliver)(void *owner, const struct muster_packet *packet, const void *payload,
			uint32_t len);
	/*
	 * A life of the peer that was there, or awaited, is over. Once for each. Another one
	 * is there now, `present`; or 0: nobody answers.
	 */
	void (*lost)(void *owner, uint32_t peer, uint32_t present);
	/* This life of the peer is there, and no other: who means another does so in vain. */
	void (*met)(void *owner, uint32_t peer, uint32_t present);
};

/*
 * Slots that links keep beyond their floors. Each may keep as many as are left for all
 * others, so whoever comes finds some: of k links that want all, each has 1 / (k + 1).
 */
struct muster_link_pool {
	uint32_t size;
	uint32_t used;
	uint32_t waiting;	/* packets, with those in floors, that have not been sent once */
};

struct muster_link_config {
	uint32_t node;
	uint32_t peer;
	uint32_t incarnation;	/* of this node; not 0, differs in every life */
	uint64_t deadline_us;	/* silence towards an unacknowledged packet until lost; about */
	uint64_t probe_us;	/* silence of one that was heard until it is asked; 0: half of that */
	const struct muster_link_ops *ops;
	void *owner;
	struct muster_link_pool *pool;		/* of all links of this port */
	struct muster_wire_counters *counters;	/* counted into; may be shared */
};

/* A packet, or a probe, until it is acknowledged. */
struct muster_link_slot {
	uint8_t type;		/* MUSTER_FRAME_DATA or _PROBE */
	uint32_t tries;		/* times sent; 0: waits for its turn */
	uint32_t order;		/* of its last sending among all of the link */
	uint64_t sent_us;
	uint64_t due_us;	/* sent again then */
	struct muster_packet packet;
	uint8_t payload[MUSTER_MTU];
};

struct muster_link {
	struct muster_link_config config;
	uint32_t peer_incarnation;	/* 0: not heard yet */
	uint32_t former_incarnation;	/* the life before that */
	uint32_t awaited_incarnation;	/* the first that was meant, until one is heard; or 0 */
	bool lost;			/* until the peer begins a new life */
	bool unsure;			/* it has rested, and the peer was not heard since */
	uint64_t next_us;		/* nothing to do before; UINT64_MAX: at all */

	/* sending: frames [oldest, next) are open or were acknowledged early */
	uint32_t oldest, next;
	uint32_t kept;			/* of them open: they have slots */
	uint32_t order;
	uint32_t in_flight;
	struct muster_pace pace;
	uint32_t tries;			/* of the oldest, since progress_us */
	uint64_t progress_us;		/* something was acknowledged, or first became open */
	uint64_t heard_us;		/* last frame from the peer's present life */

	/* asking who is there, because another life was meant or heard */
	bool asking;
	bool again;			/* another was meant after the question went */
	uint32_t question;		/* its number, of all that were asked */
	uint32_t sought_incarnation;	/* who was meant when it went; or 0 */
	uint32_t absent_incarnation;	/* who was last found not to be there; or 0 */
	uint32_t asked_times;
	uint64_t asked_us;		/* at first, */
	uint64_t ask_us;		/* and again then */

	/* receiving: all before `expected` came; bit i: expected + 1 + i as well */
	uint32_t expected;
	uint64_t early;
	uint32_t unacked;		/* packets since the last acknowledgement went */
	uint64_t ack_us;		/* when it must go; UINT64_MAX: nothing to say */

	struct muster_link_slot *slots[MUSTER_LINK_WINDOW];	/* NULL: not open */
};

/* What is kept of a link that was given back while nothing was open on it. */
struct muster_link_rest {
	uint32_t peer_incarnation;	/* 0: none is to go on */
	uint32_t former_incarnation;	/* the life that was lost last; or 0 */
	uint32_t next, expected;	/* numbers of the two streams */
};

/** muster_link_init() - begin; what was there before must have been dropped. */
void muster_link_init(struct muster_link *link, const struct muster_link_config *config);

/** muster_link_drop() - give all slots back; nothing else may be done with it afterwards. */
void muster_link_drop(struct muster_link *link);

/**
 * muster_link_send() - take a packet (copied), and send it as soon as the link allows.
 * @incarnation: the peer's life that is meant; 0: whichever is there, of whom none need be known.
 *
 * Return: 0; -EAGAIN when MUSTER_LINK_WINDOW packets are open, or as many as the pool has
 * left for this link, or while it is found out whether that life is there, as another one
 * was known, or who is there at all (again, after a rest); -EMSGSIZE above MUSTER_MTU;
 * -EHOSTUNREACH when it is over or not there, or the peer lost.
 */
int muster_link_send(struct muster_link *link, uint64_t now_us, uint32_t incarnation,
		     const struct muster_packet *packet, const void *payload);

/**
 * muster_link_send_once() - send a packet to a life of the peer that is there, and forget it.
 * Nobody repeats it: what becomes of it is the network's affair.
 */
void muster_link_send_once(struct muster_link *link, uint32_t incarnation,
			   const struct muster_packet *packet, const void *payload);

/**
 * muster_link_watch() - find out whether the peer is there, and go on doing so.
 *
 * @incarnation: the life that is meant. Where another one is known, the peer is asked:
 *	lost() or met() tell what came of it. The mere word of the caller ends nothing.
 *
 * A link that has heard its peer probes it whenever that was silent for
 * config.probe_us. This starts it for a peer to which nothing has been sent, so that
 * who only waits for a node learns all the same that it is gone.
 *
 * Return: 0; -EHOSTUNREACH when that life is over.
 */
int muster_link_watch(struct muster_link *link, uint64_t now_us, uint32_t incarnation);

/**
 * muster_link_receive() - a frame has come that muster_frame_check() found good.
 * @body: frame->length bytes behind the header, 8-byte aligned.
 */
void muster_link_receive(struct muster_link *link, uint64_t now_us,
			 const struct muster_frame *frame, const void *body);

/** muster_link_run() - do what is due: send again, acknowledge, give up. Cheap when nothing is. */
void muster_link_run(struct muster_link *link, uint64_t now_us);

/** muster_link_meant() - the peer's life that is known, or else the one sought; or 0. */
uint32_t muster_link_meant(const struct muster_link *link);

/** muster_link_waiting() - packets that have not been sent once: there was no room, or too many fly. */
uint32_t muster_link_waiting(const struct muster_link *link);

/** muster_link_unused() - the peer was not heard, and nothing is to be said to it. */
bool muster_link_unused(const struct muster_link *link);

/** muster_link_idle() - the peer was heard, and nothing is open or to be said on either side. */
bool muster_link_idle(const struct muster_link *link);

/** muster_link_quiet() - the same for so long that the peer is about to be asked whether it is there. */
bool muster_link_quiet(const struct muster_link *link, uint64_t now_us);

/** muster_link_rest() - what to keep of a link that is idle, unused or lost, and then dropped. */
void muster_link_rest(const struct muster_link *link, struct muster_link_rest *rest);

/** muster_link_resume() - go on with what was kept, on a link that was just begun. */
void muster_link_resume(struct muster_link *link, uint64_t now_us,
			const struct muster_link_rest *rest);

/** muster_link_silent() - nothing is acknowledged, though it was sent again and again: since when. */
bool muster_link_silent(const struct muster_link *link, struct muster_look_silence *silence);

/** muster_link_gone() - the peer is known not to be there any more; calls lost(). */
void muster_link_gone(struct muster_link *link);

#endif /* MUSTER_RELIABLE_H */
