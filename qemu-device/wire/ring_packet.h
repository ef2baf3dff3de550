/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packets into a memory ring (ring.h) and out of it. They are here to become part of their
 * callers: what is sent mostly is a header and eight bytes, and calls would cost as much.
 */
#ifndef MUSTER_RING_PACKET_H
#define MUSTER_RING_PACKET_H

#include <errno.h>
#include <string.h>

#include "ring.h"

static inline struct muster_ring_record *muster_ring_record(uint8_t *lines, uint64_t nr_lines,
							    uint64_t pos)
{
	return (struct muster_ring_record *)(lines + (pos & (nr_lines - 1)) * MUSTER_RING_LINE);
}

/* Where the record after one of this length starts: at the next lap if it has spilled. */
static inline uint64_t muster_ring_next(uint64_t pos, uint64_t nr_lines, uint32_t length)
{
	uint64_t lap_end = (pos | (nr_lines - 1)) + 1;
	uint64_t next = pos + (sizeof(struct muster_ring_record) + length + MUSTER_RING_LINE - 1) /
			      MUSTER_RING_LINE;

	return next < lap_end ? next : lap_end;
}

/* Whether what reaches up to `next` fits, and the cleared lines behind it, as far as we know. */
static inline bool muster_ring_has_room(const struct muster_ring_producer *producer, uint64_t next)
{
	return __builtin_expect(next + MUSTER_RING_CLEAR - producer->consumed <= producer->nr_lines, 1);
}

/* No record is there. */
static inline void muster_ring_clear(struct muster_ring_producer *producer, uint64_t pos)
{
	__atomic_store_n(&muster_ring_record(producer->lines, producer->nr_lines, pos)->word, 0,
			 __ATOMIC_RELAXED);
}

/*
 * There is room. The line with the word is written last, and all at once: who polls takes it away,
 * and if another line had to be waited for when half of it is written, it would have to come back.
 */
static inline void muster_ring_put(struct muster_ring_producer *producer, uint64_t next,
				   const struct muster_packet *packet, const void *payload,
				   uint32_t length)
{
	enum { FIRST = MUSTER_RING_LINE - sizeof(uint64_t) };	/* of the header, in that line */
	struct muster_ring_record *record = muster_ring_record(producer->lines, producer->nr_lines,
							       producer->pos);
	uint64_t word;

	if (next >= producer->cleared)
		muster_ring_clear(producer, next);
	if (length == sizeof(uint64_t))		/* the most frequent one */
		memcpy(record->payload, payload, sizeof(uint64_t));
	else if (length)
		memcpy(record->payload, payload, length);
	memcpy((uint8_t *)&record->packet + FIRST, (const uint8_t *)packet + FIRST,
	       sizeof(*packet) - FIRST);
	__atomic_signal_fence(__ATOMIC_ACQ_REL);
	memcpy(&record->packet, packet, FIRST);
	word = (uint64_t)producer->count++ << 32 | MUSTER_RING_WORD_VALID | length;
	__atomic_store_n(&record->word, word, __ATOMIC_RELEASE);
	if (__builtin_expect(!producer->pos, 0))
		__atomic_fetch_or(producer->used, producer->used_bit, __ATOMIC_RELEASE);
	producer->pos = next;
}

/**
 * muster_ring_send() - append a packet and its payload (packet->length bytes).
 *
 * Return: 0; -EAGAIN when the ring is full; -EMSGSIZE above MUSTER_MTU; -EPROTO
 * when the consumer's index is nonsense: the peer is broken, give it up.
 */
static inline int muster_ring_send(struct muster_ring_producer *producer,
				   const struct muster_packet *packet, const void *payload)
{
	const uint32_t length = packet->length;
	const uint64_t next = muster_ring_next(producer->pos, producer->nr_lines, length);
	int err;

	if (length > MUSTER_MTU)
		return -EMSGSIZE;
	if (!muster_ring_has_room(producer, next)) {
		err = muster_ring_make_room(producer, next);
		if (err)
			return err;
	}
	muster_ring_put(producer, next, packet, payload, length);
	return 0;
}

/**
 * muster_ring_peek() - look at the oldest record where it lies.
 * @length: gets that of its payload, which is checked; what the header says of it is not.
 *
 * Return: the record, until muster_ring_release(): a hostile producer may change it at any time;
 * NULL: there is none, or none that could have been sent.
 */
static inline const struct muster_ring_record *
muster_ring_peek(struct muster_ring_consumer *consumer, uint32_t *length)
{
	const uint64_t pos = consumer->pos, nr_lines = consumer->nr_lines;
	struct muster_ring_record *record = muster_ring_record(consumer->lines, nr_lines, pos);
	const uint64_t word = __atomic_load_n(&record->word, __ATOMIC_ACQUIRE);

	/* Its second line comes from the producer's cache beside the first, not after it. */
	__builtin_prefetch((const uint8_t *)record + MUSTER_RING_LINE);
	*length = word & MUSTER_RING_WORD_LENGTH;
	if (!(word & MUSTER_RING_WORD_VALID) || word >> 32 != consumer->count ||
	    *length > MUSTER_MTU)
		return NULL;
	consumer->next = muster_ring_next(pos, nr_lines, *length);
	return record;
}

/**
 * muster_ring_poll() - look at the oldest record.
 * @packet: gets a copy of its header, whose length has been checked.
 * @payload: gets the place of its payload inside the ring, valid until
 *	muster_ring_release(). A hostile producer may change it at any time.
 *
 * Return: 1; 0 when the ring is empty; -EPROTO when the ring holds no record
 * that could have been sent: the producer is broken, and so is the ring.
 */
static inline int muster_ring_poll(struct muster_ring_consumer *consumer,
				   struct muster_packet *packet, const void **payload)
{
	const struct muster_ring_record *record = muster_ring_record(consumer->lines, consumer->nr_lines,
								     consumer->pos);
	uint32_t length;

	if (__builtin_expect(consumer->used_bit, 0) && muster_ring_never_used(consumer))
		return 0;
	if (!__atomic_load_n(&record->word, __ATOMIC_RELAXED))
		return 0;
	record = muster_ring_peek(consumer, &length);
	if (!record)
		return -EPROTO;
	memcpy(packet, &record->packet, sizeof(*packet));
	/* The copy must be what is checked and used: no second look at the ring. */
	__asm__ volatile("" : : "r"(packet) : "memory");
	if (packet->length != length)
		return -EPROTO;
	*payload = record->payload;
	/* Where the next poll looks; on its way while this record is handled. */
	__builtin_prefetch(muster_ring_record(consumer->lines, consumer->nr_lines, consumer->next));
	return 1;
}

/** muster_ring_release() - done with the record that poll() gave. */
static inline void muster_ring_release(struct muster_ring_consumer *consumer)
{
	if (consumer->next == consumer->pos)
		return;
	consumer->pos = consumer->next;
	consumer->count++;
	__atomic_store_n(&consumer->control->consumed, consumer->pos, __ATOMIC_RELEASE);
}

/**
 * muster_ring_clear_ahead() - after sending, when nobody waits for it any more: the lines that are written to
 * next come from the other processor's cache now, and not between a packet and its receiver.
 */
static inline void muster_ring_clear_ahead(struct muster_ring_producer *producer)
{
	if (producer->cleared < producer->pos)
		producer->cleared = producer->pos;
	while (producer->cleared < producer->pos + MUSTER_RING_CLEAR)
		muster_ring_clear(producer, producer->cleared++);
}

/** muster_ring_waits() - a look without taking: false: poll() would most likely give nothing. */
static inline bool muster_ring_waits(const struct muster_ring_consumer *consumer)
{
	const struct muster_ring_record *record = muster_ring_record(consumer->lines, consumer->nr_lines,
								     consumer->pos);

	return !consumer->used_bit && __atomic_load_n(&record->word, __ATOMIC_RELAXED);
}

/**
 * muster_ring_wants_wake() - after sending: whether to wake the region's owner.
 *
 * Once for a batch of sends is enough. Only one of several senders is told so.
 */
static inline bool muster_ring_wants_wake(const struct muster_ring_region *region)
{
	uint32_t *sleeping = &region->head->sleeping;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __builtin_expect(__atomic_load_n(sleeping, __ATOMIC_RELAXED), 0) &&
	       __atomic_exchange_n(sleeping, 0, __ATOMIC_SEQ_CST);
}

#endif /* MUSTER_RING_PACKET_H */
