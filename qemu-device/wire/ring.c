// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory rings between two processes (ring.h). Positions count lines from the
 * beginning and never wrap in practice (64 bits). A record starts at any line
 * and is contiguous: behind the last line lies room for the rest of a record
 * that starts near the end, and the next one then starts at line 0. So there is
 * no filler, and a payload can be used in place.
 */
#include "ring_packet.h"

#include <errno.h>

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
		.cleared = MUSTER_RING_CLEAR,
	};
	return 0;
}

/* As far as the consumer has come by now. */
int muster_ring_make_room(struct muster_ring_producer *producer, uint64_t next)
{
	uint64_t consumed = __atomic_load_n(&producer->control->consumed, __ATOMIC_ACQUIRE);

	if (consumed < producer->consumed || consumed > producer->pos)
		return -EPROTO;
	producer->consumed = consumed;
	return muster_ring_has_room(producer, next) ? 0 : -EAGAIN;
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
bool muster_ring_never_used(struct muster_ring_consumer *consumer)
{
	if (!(__atomic_load_n(consumer->used, __ATOMIC_ACQUIRE) & consumer->used_bit))
		return true;
	consumer->used_bit = 0;
	return false;
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
