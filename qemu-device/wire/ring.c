// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory rings between two processes (ring.h). Positions count lines from the
 * beginning and never wrap in practice (64 bits). A record starts at any line
 * and is contiguous: behind the last line lies room for the rest of a record
 * that starts near the end, and the next one then starts at line 0. So there is
 * no filler, and a payload can be used in place.
 */
#include "ring.h"

#include <errno.h>
#include <string.h>

enum {
	PAGE = 4096,
	HEADER_BYTES = sizeof(struct muster_ring_record),
	RECORD_LINES_MAX = (HEADER_BYTES + MUSTER_MTU + MUSTER_RING_LINE - 1) / MUSTER_RING_LINE,
	SPILL_BYTES = RECORD_LINES_MAX * MUSTER_RING_LINE,
};

MUSTER_STATIC_ASSERT(MUSTER_RING_BYTES_MIN >= 2 * SPILL_BYTES, "an empty ring takes any record");

/* ---- regions ------------------------------------------------------------- */

static bool numbers_fit(uint32_t sources, uint32_t ring_bytes)
{
	return sources >= 1 && sources <= MUSTER_RING_SOURCES_MAX &&
	       ring_bytes >= MUSTER_RING_BYTES_MIN && ring_bytes <= MUSTER_RING_BYTES_MAX &&
	       !(ring_bytes & (ring_bytes - 1));
}

static size_t page_round(size_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

static size_t ring_stride(uint32_t ring_bytes)
{
	return page_round((size_t)ring_bytes + SPILL_BYTES);
}

static size_t rings_offset(uint32_t sources)
{
	return page_round(sizeof(struct muster_ring_head) +
			  sources * sizeof(struct muster_ring_control));
}

size_t muster_ring_region_size(uint32_t sources, uint32_t ring_bytes)
{
	if (!numbers_fit(sources, ring_bytes))
		return 0;
	return rings_offset(sources) + sources * ring_stride(ring_bytes);
}

int muster_ring_region_init(struct muster_ring_region *region, void *mem, size_t bytes,
			    uint32_t sources, uint32_t ring_bytes)
{
	size_t size = muster_ring_region_size(sources, ring_bytes);

	if (!size || bytes < size)
		return -EINVAL;
	*region = (struct muster_ring_region){ mem, sources, ring_bytes };
	return 0;
}

void *muster_ring_lines(const struct muster_ring_region *region, uint32_t source, size_t *bytes)
{
	*bytes = ring_stride(region->ring_bytes);
	return (uint8_t *)region->head + rings_offset(region->sources) + source * *bytes;
}

static struct muster_ring_control *control_of(const struct muster_ring_region *region,
					      uint32_t source)
{
	return (struct muster_ring_control *)(region->head + 1) + source;
}

/* ---- producer ------------------------------------------------------------ */

int muster_ring_producer_init(struct muster_ring_producer *producer,
			      const struct muster_ring_region *region, uint32_t source)
{
	size_t bytes;

	if (source >= region->sources)
		return -EINVAL;
	*producer = (struct muster_ring_producer){
		.used = &region->head->used[source / 64],
		.used_bit = 1ull << source % 64,
		.control = control_of(region, source),
		.lines = muster_ring_lines(region, source, &bytes),
		.nr_lines = region->ring_bytes / MUSTER_RING_LINE,
	};
	return 0;
}

static struct muster_ring_record *record_at(uint8_t *lines, uint64_t nr_lines, uint64_t pos)
{
	return (void *)(lines + (pos & (nr_lines - 1)) * MUSTER_RING_LINE);
}

/* Where the record after one of this length starts: at the next lap if it has spilled. */
static uint64_t next_position(uint64_t pos, uint64_t nr_lines, uint32_t length)
{
	uint64_t lap_end = (pos | (nr_lines - 1)) + 1;
	uint64_t next = pos + (HEADER_BYTES + length + MUSTER_RING_LINE - 1) / MUSTER_RING_LINE;

	return next < lap_end ? next : lap_end;
}

/* Room up to `next`, and for the word at `next`. */
static int make_room(struct muster_ring_producer *producer, uint64_t next)
{
	uint64_t consumed;

	if (next + 1 - producer->consumed <= producer->nr_lines)
		return 0;
	consumed = __atomic_load_n(&producer->control->consumed, __ATOMIC_ACQUIRE);
	if (consumed < producer->consumed || consumed > producer->pos)
		return -EPROTO;
	producer->consumed = consumed;
	return next + 1 - consumed <= producer->nr_lines ? 0 : -EAGAIN;
}

int muster_ring_send(struct muster_ring_producer *producer, const struct muster_packet *packet,
		     const void *payload)
{
	uint32_t length = packet->length;
	uint64_t next = next_position(producer->pos, producer->nr_lines, length);
	struct muster_ring_record *record, *after;
	uint64_t word;
	int err;

	if (length > MUSTER_MTU)
		return -EMSGSIZE;
	err = make_room(producer, next);
	if (err)
		return err;
	record = record_at(producer->lines, producer->nr_lines, producer->pos);
	after = record_at(producer->lines, producer->nr_lines, next);
	__atomic_store_n(&after->word, 0, __ATOMIC_RELAXED);
	memcpy(&record->packet, packet, sizeof(*packet));
	if (length == sizeof(uint64_t))		/* the most frequent one */
		memcpy(record->payload, payload, sizeof(uint64_t));
	else if (length)
		memcpy(record->payload, payload, length);
	word = (uint64_t)producer->count++ << 32 | MUSTER_RING_WORD_VALID | length;
	__atomic_store_n(&record->word, word, __ATOMIC_RELEASE);
	if (!producer->pos)
		__atomic_fetch_or(producer->used, producer->used_bit, __ATOMIC_RELEASE);
	producer->pos = next;
	return 0;
}

/* ---- consumer ------------------------------------------------------------ */

int muster_ring_consumer_init(struct muster_ring_consumer *consumer,
			      const struct muster_ring_region *region, uint32_t source)
{
	size_t bytes;

	if (source >= region->sources)
		return -EINVAL;
	*consumer = (struct muster_ring_consumer){
		.used = &region->head->used[source / 64],
		.used_bit = 1ull << source % 64,
		.control = control_of(region, source),
		.lines = muster_ring_lines(region, source, &bytes),
		.nr_lines = region->ring_bytes / MUSTER_RING_LINE,
	};
	return 0;
}

/* Without looking into its lines: that would give it a page. */
static bool never_used(struct muster_ring_consumer *consumer)
{
	if (!(__atomic_load_n(consumer->used, __ATOMIC_ACQUIRE) & consumer->used_bit))
		return true;
	consumer->used_bit = 0;
	return false;
}

int muster_ring_poll(struct muster_ring_consumer *consumer, struct muster_packet *packet,
		     const void **payload)
{
	struct muster_ring_record *record;
	uint64_t word;
	uint32_t length;

	if (consumer->used_bit && never_used(consumer))
		return 0;
	record = record_at(consumer->lines, consumer->nr_lines, consumer->pos);
	/* Its second line comes from the producer's cache beside the first, not after it. */
	__builtin_prefetch((uint8_t *)record + MUSTER_RING_LINE);
	word = __atomic_load_n(&record->word, __ATOMIC_ACQUIRE);
	if (!word)
		return 0;
	length = word & MUSTER_RING_WORD_LENGTH;
	if (!(word & MUSTER_RING_WORD_VALID) || word >> 32 != consumer->count ||
	    length > MUSTER_MTU)
		return -EPROTO;
	memcpy(packet, &record->packet, sizeof(*packet));
	/* The copy must be what is checked and used: no second look at the ring. */
	__asm__ volatile("" : : "r"(packet) : "memory");
	if (packet->length != length)
		return -EPROTO;
	*payload = record->payload;
	consumer->next = next_position(consumer->pos, consumer->nr_lines, length);
	/* Where the next poll looks; on its way while this record is handled. */
	__builtin_prefetch(record_at(consumer->lines, consumer->nr_lines, consumer->next));
	return 1;
}

void muster_ring_release(struct muster_ring_consumer *consumer)
{
	if (consumer->next == consumer->pos)
		return;
	consumer->pos = consumer->next;
	consumer->count++;
	__atomic_store_n(&consumer->control->consumed, consumer->pos, __ATOMIC_RELEASE);
}

/* ---- sleeping ------------------------------------------------------------ */

void muster_ring_sleep_begin(const struct muster_ring_region *region)
{
	__atomic_store_n(&region->head->sleeping, 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void muster_ring_sleep_end(const struct muster_ring_region *region)
{
	__atomic_store_n(&region->head->sleeping, 0, __ATOMIC_RELAXED);
}

bool muster_ring_wants_wake(const struct muster_ring_region *region)
{
	uint32_t *sleeping = &region->head->sleeping;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(sleeping, __ATOMIC_RELAXED))
		return false;
	return __atomic_exchange_n(sleeping, 0, __ATOMIC_SEQ_CST) != 0;
}

/* ---- signs --------------------------------------------------------------- */

void muster_ring_sign(const struct muster_ring_region *region, uint16_t sign, bool on)
{
	uint64_t *word = &region->head->signs[sign / 64], bit = 1ull << sign % 64;

	if (on)
		__atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(word, ~bit, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

bool muster_ring_signed(const struct muster_ring_region *region, uint16_t sign)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&region->head->signs[sign / 64], __ATOMIC_RELAXED) >> sign % 64 & 1;
}
