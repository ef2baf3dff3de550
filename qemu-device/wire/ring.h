/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory rings: packets between two processes of one machine, over memory that
 * both have mapped. One producer, one consumer, no system call, no lock.
 *
 * A process owns one inbound region: a header page and one ring for every
 * source. Peers map it and write into their own ring. Nothing in a region is
 * trusted: indices live in the handles below, which are private, and whatever is
 * read from shared memory is read once and checked. A producer that starts anew
 * needs a new ring; waking a sleeper is the caller's business.
 */
#ifndef MUSTER_RING_H
#define MUSTER_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "muster_wire.h"

enum muster_ring_limit {
	MUSTER_RING_LINE = 64,			/* records start on lines */
	MUSTER_RING_BYTES_MIN = 16 << 10,	/* of one ring; a power of two */
	MUSTER_RING_BYTES_MAX = 1 << 30,
	MUSTER_RING_SOURCES_MAX = 4096,
};

#define MUSTER_RING_MAGIC	0x7265747375316d67ull

/* First page of a region. */
struct muster_ring_head {
	uint64_t magic;		/* written last: the region is ready */
	uint32_t sources;
	uint32_t ring_bytes;
	uint8_t pad0[112];
	uint32_t sleeping;	/* the owner sleeps, or is about to: wake it */
	uint8_t pad1[3964];
};

MUSTER_STATIC_ASSERT(sizeof(struct muster_ring_head) == 4096, "size");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_ring_head, sleeping) == 128, "own line");

/* In front of each ring's lines; written by the consumer alone. */
struct muster_ring_control {
	uint64_t consumed;	/* position of the consumer, in lines */
	uint8_t pad[120];
};

MUSTER_STATIC_ASSERT(sizeof(struct muster_ring_control) == 128, "size");

/*
 * What starts a record. Stored last, with release: the record is there. The
 * record after it is not, because its word was zeroed first.
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
	struct muster_ring_control *control;
	uint8_t *lines;
	uint64_t nr_lines;
	uint64_t pos;		/* of the next record, in lines since the beginning */
	uint64_t consumed;	/* newest position of the consumer that we know */
	uint32_t count;		/* records so far */
};

struct muster_ring_consumer {
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
 * muster_ring_region_init() - make a region in memory that is all zero (a new memfd).
 * @mem: page aligned, muster_ring_region_size() bytes; stays the caller's.
 * @ring_bytes: of each ring; a power of two within the limits.
 *
 * Return: 0; -EINVAL for numbers outside the limits or too little memory.
 */
int muster_ring_region_init(struct muster_ring_region *region, void *mem, size_t bytes,
			    uint32_t sources, uint32_t ring_bytes);

/**
 * muster_ring_region_attach() - use a region that a peer has made.
 * @bytes: how much of it is mapped.
 *
 * Return: 0; -EAGAIN when it is not ready yet; -EPROTO when what it says about
 * itself is outside the limits or more than is mapped.
 */
int muster_ring_region_attach(struct muster_ring_region *region, void *mem, size_t bytes);

/** muster_ring_producer_init() - the end that writes; once for each ring. 0; -EINVAL: no such. */
int muster_ring_producer_init(struct muster_ring_producer *producer,
			      const struct muster_ring_region *region, uint32_t source);

/** muster_ring_consumer_init() - the end that reads: the owner of the region. */
int muster_ring_consumer_init(struct muster_ring_consumer *consumer,
			      const struct muster_ring_region *region, uint32_t source);

/**
 * muster_ring_send() - append a packet and its payload (packet->length bytes).
 *
 * Return: 0; -EAGAIN when the ring is full; -EMSGSIZE above MUSTER_MTU; -EPROTO
 * when the consumer's index is nonsense: the peer is broken, give it up.
 */
int muster_ring_send(struct muster_ring_producer *producer, const struct muster_packet *packet,
		     const void *payload);

/**
 * muster_ring_poll() - look at the oldest record.
 * @packet: gets a copy of its header, whose length has been checked.
 * @payload: gets the place of its payload inside the ring, valid until
 *	muster_ring_release(). A hostile producer may change it at any time.
 *
 * Return: 1; 0 when the ring is empty; -EPROTO when the ring holds no record
 * that could have been sent: the producer is broken, and so is the ring.
 */
int muster_ring_poll(struct muster_ring_consumer *consumer, struct muster_packet *packet,
		     const void **payload);

/** muster_ring_release() - done with the record that poll() gave. */
void muster_ring_release(struct muster_ring_consumer *consumer);

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
 * muster_ring_wants_wake() - after sending: whether to wake the region's owner.
 *
 * Once for a batch of sends is enough. Only one of several senders is told so.
 */
bool muster_ring_wants_wake(const struct muster_ring_region *region);

#endif /* MUSTER_RING_H */
