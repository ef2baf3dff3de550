/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory rings: packets between two processes of one machine, over memory that
 * both have mapped. One producer, one consumer, no system call, no lock.
 *
 * A process owns one inbound region: a head, what it alone writes, and one ring
 * for every source, which that source alone writes. Peers map it; a ring that was
 * never used is never touched, so it needs no memory. Nothing in a region is
 * trusted: indices live in the handles below, which are private, and whatever is
 * read from shared memory is read once and checked. A producer that starts anew
 * needs a new ring; waking a sleeper is the caller's business. Packets go in and out by
 * ring_packet.h.
 */
#ifndef MUSTER_RING_H
#define MUSTER_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "muster_wire.h"

enum muster_ring_limit {
	MUSTER_RING_LINE = 64,			/* records start on lines */
	MUSTER_RING_CLEAR = 4,			/* lines behind the newest record that have been zeroed */
	MUSTER_RING_BYTES_MIN = 16 << 10,	/* of one ring; a power of two */
	MUSTER_RING_BYTES_MAX = 1 << 30,
	MUSTER_RING_SOURCES_MAX = 4096,
	MUSTER_RING_SIGNS = 65536,		/* bits that the owner sets for its peers */
};

/* The head of a region. On its first page all write, on the others the owner. */
struct muster_ring_head {
	uint32_t sleeping;	/* the owner sleeps, or is about to: wake it */
	uint8_t pad0[60];
	uint32_t processor;	/* where the owner ran last, plus 1; 0: it has not said */
	uint8_t pad1[60];
	uint64_t used[MUSTER_RING_SOURCES_MAX / 64];	/* a bit a source: its ring has been */
	uint8_t pad2[3456];
	uint64_t signs[MUSTER_RING_SIGNS / 64];	/* what they mean is owner's and peers' affair */
};

MUSTER_STATIC_ASSERT(sizeof(struct muster_ring_head) == 3 * 4096, "size");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_ring_head, signs) == 4096, "own page");

/* Of each ring, behind the head; written by the consumer alone. */
struct muster_ring_control {
	uint64_t consumed;	/* position of the consumer, in lines */
	uint8_t pad[120];
};

MUSTER_STATIC_ASSERT(sizeof(struct muster_ring_control) == 128, "size");

/*
 * What starts a record. Stored last, with release: the record is there. The
 * record after it is not, because its word was zeroed before.
 */
#define MUSTER_RING_WORD_VALID		0x0000000080000000ull
#define MUSTER_RING_WORD_LENGTH		0x000000007fffffffull	/* of the payload, bytes */
#define MUSTER_RING_WORD_COUNT		0xffffffff00000000ull	/* of the record, from 0, wraps */

struct muster_ring_record {
	uint64_t word;
	struct muster_packet packet;
	uint8_t payload[];
};

MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_ring_record, payload) == 104, "offset");

/* A region as this process has mapped it. */
struct muster_ring_region {
	struct muster_ring_head *head;
	uint32_t sources;
	uint32_t ring_bytes;
};

struct muster_ring_producer {
	uint64_t *used;		/* where to say that the ring is */
	uint64_t used_bit;
	struct muster_ring_control *control;
	uint8_t *lines;
	uint64_t nr_lines;
	uint64_t pos;		/* of the next record, in lines since the beginning */
	uint64_t cleared;	/* up to here no line looks as if a record were there */
	uint64_t consumed;	/* newest position of the consumer that we know */
	uint32_t count;		/* records so far */
};

struct muster_ring_consumer {
	const uint64_t *used;
	uint64_t used_bit;	/* 0: it is, and we know */
	struct muster_ring_control *control;
	uint8_t *lines;
	uint64_t nr_lines;
	uint64_t pos;
	uint64_t next;		/* position after the record that poll() gave; pos: none */
	uint32_t count;
};

/** muster_ring_region_size() - bytes to map for a region, or 0 for numbers outside the limits. */
size_t muster_ring_region_size(uint32_t sources, uint32_t ring_bytes);

/**
 * muster_ring_region_init() - a region in memory that was all zero (a new memfd), at
 * its owner or at a peer.
 * @mem: page aligned, muster_ring_region_size() bytes; stays the caller's.
 * @ring_bytes: of each ring; a power of two within the limits.
 *
 * Return: 0; -EINVAL for numbers outside the limits or too little memory.
 */
int muster_ring_region_init(struct muster_ring_region *region, void *mem, size_t bytes,
			    uint32_t sources, uint32_t ring_bytes);

/**
 * muster_ring_lines() - where the ring of a source lies: whole pages that it alone writes.
 * What is before the first ring, the owner alone writes, but for the first page.
 */
void *muster_ring_lines(const struct muster_ring_region *region, uint32_t source, size_t *bytes);

/** muster_ring_producer_init() - the end that writes; once for each ring. 0; -EINVAL: no such. */
int muster_ring_producer_init(struct muster_ring_producer *producer,
			      const struct muster_ring_region *region, uint32_t source);

/** muster_ring_consumer_init() - the end that reads: the owner of the region. */
int muster_ring_consumer_init(struct muster_ring_consumer *consumer,
			      const struct muster_ring_region *region, uint32_t source);

/* The slow parts of sending and polling (ring_packet.h): 0, -EAGAIN or -EPROTO; whether it is so. */
int muster_ring_make_room(struct muster_ring_producer *producer, uint64_t next);
bool muster_ring_never_used(struct muster_ring_consumer *consumer);

/**
 * muster_ring_sleep_begin() - the owner is about to sleep.
 *
 * Poll every ring once more afterwards, and sleep only if all were empty: either
 * that poll sees a packet, or its sender sees that we sleep. The word
 * head->sleeping is 1 until muster_ring_sleep_end() or until a sender takes it.
 */
void muster_ring_sleep_begin(const struct muster_ring_region *region);
void muster_ring_sleep_end(const struct muster_ring_region *region);

/**
 * muster_ring_sign() - the owner sets or clears a bit. Whoever sees what the owner does
 * afterwards sees the bit, too, even where that is a plain store.
 */
void muster_ring_sign(const struct muster_ring_region *region, uint16_t sign, bool on);
/** muster_ring_signed() - a peer looks at it, after all that it has read before. */
bool muster_ring_signed(const struct muster_ring_region *region, uint16_t sign);

#endif /* MUSTER_RING_H */
