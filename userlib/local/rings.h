/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * All memory rings of one rank (wire/ring.h): its inbound region, in which every
 * other rank has a ring, and its own ring in theirs. The regions of all lie in one
 * memory, which rank 0 makes; it is vast and sparse: a ring that is not used takes
 * none, nor is it set up. Who sends to a sleeper wakes it: muster_rings_flush() says whom.
 */
#ifndef MUSTER_RINGS_H
#define MUSTER_RINGS_H

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring_packet.h"
#include "wire.h"

struct muster_rings_peer {
	struct muster_ring_region region;	/* its inbound one */
	struct muster_ring_producer to;	/* without lines: not used yet */
	struct muster_ring_consumer from;
	bool ringing;		/* sent to since the last look whether it sleeps */
	bool broken;		/* what is in `from` was never sent by a sane peer */
};

struct muster_rings {
	uint32_t rank;
	uint32_t size;
	uint32_t ring_bytes;
	size_t region_bytes;
	void *memory;		/* of all ranks' regions, by rank; NULL: not mapped */
	struct muster_ring_region inbound;
	uint32_t nr_words;
	uint64_t others[MUSTER_RING_SOURCES_MAX / 64];	/* a bit for each other rank */
	uint32_t nr_ringing;
	uint32_t *ringing;	/* who are */
	struct muster_rings_peer *peers;
};

/** muster_rings_open() - rank 0 makes the memory; its *fd is for all, and the caller's. */
int muster_rings_open(struct muster_rings *rings, uint32_t rank, uint32_t size, int *fd);
void muster_rings_close(struct muster_rings *rings);

/** muster_rings_attach() - map the memory that rank 0 has made; fd stays the caller's. */
int muster_rings_attach(struct muster_rings *rings, int fd);

/** muster_rings_reach() - set our ring at a peer up, to send to it first. 0 or -EAGAIN: no memory. */
int muster_rings_reach(struct muster_rings *rings, struct muster_rings_peer *peer);

/**
 * muster_rings_send() - 0; -EAGAIN: full, or no memory to map it now; -EHOSTUNREACH: no such
 * peer; -EPROTO: it is broken.
 */
static inline int muster_rings_send(struct muster_rings *rings, const struct muster_packet *packet,
				    const void *payload)
{
	const uint32_t rank = le32toh(packet->dst_node);
	struct muster_rings_peer *peer;
	int err = 0;

	if (rank >= rings->size || rank == rings->rank)
		return -EHOSTUNREACH;
	peer = &rings->peers[rank];
	if (__builtin_expect(!peer->to.lines, 0))
		err = muster_rings_reach(rings, peer);
	if (!err)
		err = muster_ring_send(&peer->to, packet, payload);
	if (!err && !peer->ringing) {
		peer->ringing = true;
		rings->ringing[rings->nr_ringing++] = rank;
	}
	return err;
}

/**
 * muster_rings_send_small() - the same for what is sent mostly: whether it has gone. Then all is
 * as after muster_rings_send(), else nothing has been done.
 */
static inline bool muster_rings_send_small(struct muster_rings *rings, uint32_t rank,
					   const struct muster_packet *packet, const void *payload)
{
	const uint32_t length = packet->length;
	struct muster_rings_peer *peer = &rings->peers[rank];
	uint64_t next;

	if ((length && length != sizeof(uint64_t)) || !peer->to.lines)
		return false;
	next = muster_ring_next(peer->to.pos, peer->to.nr_lines, length);
	if (!muster_ring_has_room(&peer->to, next))
		return false;
	muster_ring_put(&peer->to, next, packet, payload, length);
	if (!peer->ringing) {
		peer->ringing = true;
		rings->ringing[rings->nr_ringing++] = rank;
	}
	return true;
}

/**
 * muster_rings_receive() - hand what has come from a rank to events->receive().
 * Return: how many packets, at most budget; -EPROTO: its ring is broken.
 */
int muster_rings_receive(struct muster_rings *rings, uint32_t rank, int budget,
			 const struct muster_wire_events *events, void *owner);

/**
 * muster_rings_used() - a bit for each of 64 other ranks, from 64 * word on: something has
 * come from it, or somebody says so. There are nr_words of them.
 */
static inline uint64_t muster_rings_used(const struct muster_rings *rings, uint32_t word)
{
	return __atomic_load_n(&rings->inbound.head->used[word], __ATOMIC_RELAXED) &
	       rings->others[word];
}

/** muster_rings_waits() - a look at the ring of one: something has come from it, most likely. */
static inline bool muster_rings_waits(const struct muster_rings *rings, uint32_t rank)
{
	return muster_ring_waits(&rings->peers[rank].from);
}

/**
 * muster_rings_run_at() - tell the others on which processor we run; they may be mistaken soon.
 * muster_rings_runs_at() - whether another one has said that it runs there.
 */
static inline void muster_rings_run_at(const struct muster_rings *rings, uint32_t processor)
{
	uint32_t *place = &rings->inbound.head->processor;

	if (__atomic_load_n(place, __ATOMIC_RELAXED) != processor + 1)
		__atomic_store_n(place, processor + 1, __ATOMIC_RELAXED);
}

static inline bool muster_rings_runs_at(const struct muster_rings *rings, uint32_t rank, uint32_t processor)
{
	return __atomic_load_n(&rings->peers[rank].region.head->processor, __ATOMIC_RELAXED) == processor + 1;
}

/** muster_rings_empty() - whether nothing has come from anyone. */
bool muster_rings_empty(const struct muster_rings *rings);

/** muster_rings_flush() - after sending: call wake() for every rank that slept. */
static inline void muster_rings_flush(struct muster_rings *rings,
				      void (*wake)(void *owner, uint32_t rank), void *owner)
{
	while (rings->nr_ringing) {
		uint32_t rank = rings->ringing[--rings->nr_ringing];
		struct muster_rings_peer *peer = &rings->peers[rank];

		peer->ringing = false;
		if (muster_ring_wants_wake(&peer->region))
			wake(owner, rank);
		muster_ring_clear_ahead(&peer->to);
	}
}

#endif /* MUSTER_RINGS_H */
