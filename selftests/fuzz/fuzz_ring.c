// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A memory ring whose other end writes what it likes, anywhere in what it may write: records and
 * positions, before and between readings. Its reader reads all of every packet that it is given.
 */
#include <stdlib.h>

#include "fuzz.h"
#include "ring_packet.h"

enum { BYTES = MUSTER_RING_BYTES_MIN, ACTS_MAX = 256 };

struct ends {
	struct muster_ring_region region;
	struct muster_ring_producer producer;
	struct muster_ring_consumer consumer;
	uint8_t *lines;
	size_t bytes;
	bool broken;		/* as the reader has said */
};

static void scribble(struct fuzz *fuzz, struct ends *ends)
{
	uint64_t word = fuzz_word(fuzz);
	size_t at = fuzz_word(fuzz) % (ends->bytes / 8) * 8;

	if (fuzz_byte(fuzz) % 2)	/* of a record, and of the count that comes next */
		word = MUSTER_RING_WORD_VALID | (word & 0x1fff) | (uint64_t)(word >> 28) << 32;
	if (fuzz_byte(fuzz) % 4)	/* the line that is read next */
		at = ends->consumer.pos % ends->consumer.nr_lines * MUSTER_RING_LINE;
	memcpy(ends->lines + at, &word, sizeof(word));
}

static void send(struct fuzz *fuzz, struct ends *ends)
{
	static const uint8_t payload[MUSTER_MTU];
	struct muster_packet packet = { .version = MUSTER_PACKET_VERSION };

	packet.length = fuzz_byte(fuzz) * 17;
	muster_ring_send(&ends->producer, &packet, payload);
}

static void poll(struct ends *ends)
{
	struct muster_packet packet;
	const void *payload;
	int ret = ends->broken ? 0 : muster_ring_poll(&ends->consumer, &packet, &payload);

	ends->broken |= ret < 0;
	if (ret <= 0)
		return;
	if (packet.length > MUSTER_MTU)
		abort();
	for (uint32_t i = 0; i < packet.length; i++)
		(void)((const volatile uint8_t *)payload)[i];
	muster_ring_release(&ends->consumer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	size_t bytes = muster_ring_region_size(1, BYTES);
	struct fuzz fuzz = { data, len };
	static struct ends ends;
	static void *memory;

	if (!memory)
		memory = aligned_alloc(4096, bytes);
	memset(memory, 0, bytes);
	ends.broken = false;
	if (muster_ring_region_init(&ends.region, memory, bytes, 1, BYTES) ||
	    muster_ring_producer_init(&ends.producer, &ends.region, 0) ||
	    muster_ring_consumer_init(&ends.consumer, &ends.region, 0))
		abort();
	ends.lines = muster_ring_lines(&ends.region, 0, &ends.bytes);
	for (int act = 0; fuzz.left && act < ACTS_MAX; act++) {
		switch (fuzz_byte(&fuzz) % 4) {
		case 0:
			send(&fuzz, &ends);
			break;
		case 1:
			ends.producer.control->consumed = fuzz_word(&fuzz);
			break;
		case 2:
			scribble(&fuzz, &ends);
			break;
		default:
			poll(&ends);
		}
	}
	return 0;
}
