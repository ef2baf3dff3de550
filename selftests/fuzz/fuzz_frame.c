// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Frames from the network, to a link that sends, too: their headers are almost right, and
 * so are their checksums, or nothing would come further than that.
 */
#include <errno.h>
#include <stdlib.h>

#include "fuzz.h"
#include "reliable.h"

enum { NODE = 1, PEER = 2, LIFE = 7, PEER_LIFE = 9, POOL = 8, DEADLINE_US = 10000 };

static uint32_t slots;

static struct muster_link_slot *take(void *owner)
{
	(void)owner;
	slots++;
	return malloc(sizeof(struct muster_link_slot));
}

static void give(void *owner, struct muster_link_slot *slot)
{
	(void)owner;
	slots--;
	free(slot);
}

static int emit(void *owner, const struct muster_frame *frame, const struct muster_packet *packet,
		const void *payload)
{
	struct fuzz *fuzz = owner;

	/* What goes must be right, whatever has come. */
	if (frame->crc != muster_frame_checksum(frame, packet, payload, packet ? packet->length : 0))
		abort();
	return fuzz->left % 8 == 1 ? -EAGAIN : 0;
}

static bool deliver(void *owner, const struct muster_packet *packet, const void *payload, uint32_t len)
{
	struct fuzz *fuzz = owner;
	uint8_t sum = packet->type;

	for (uint32_t i = 0; i < len; i++)
		sum += ((const uint8_t *)payload)[i];
	return fuzz->left % 16 != 2 || !sum;
}

static void heard(void *owner, uint32_t peer, uint32_t present)
{
	(void)owner;
	(void)present;
	if (peer != PEER)
		abort();
}

static const struct muster_link_ops ops = {
	.take = take, .give = give, .emit = emit, .deliver = deliver, .lost = heard, .met = heard,
};

static void receive(struct fuzz *fuzz, struct muster_link *link, uint64_t now_us)
{
	static uint64_t datagram[(MUSTER_FRAME_MAX + 7) / 8];
	uint8_t *body = (uint8_t *)datagram + sizeof(struct muster_frame);
	uint8_t type = fuzz_byte(fuzz) % 6;
	struct muster_frame frame = {
		.version = MUSTER_FRAME_VERSION, .type = type, .src_node = PEER, .dst_node = NODE,
		.src_incarnation = PEER_LIFE, .dst_incarnation = LIFE,
		.seq = MUSTER_LINK_SEQ_FIRST + fuzz_byte(fuzz),
		.ack = MUSTER_LINK_SEQ_FIRST + fuzz_byte(fuzz), .ack_bits = fuzz_byte(fuzz),
	};
	struct muster_packet packet = { .version = MUSTER_PACKET_VERSION, .length = fuzz_byte(fuzz) };
	size_t len = sizeof(frame);

	fuzz_change(fuzz, &packet, sizeof(packet));
	if (type == MUSTER_FRAME_DATA || type == MUSTER_FRAME_ONCE) {
		frame.length = sizeof(packet) + (packet.length <= MUSTER_MTU ? packet.length : 0);
		memcpy(body, &packet, sizeof(packet));
		len += frame.length;
	}
	fuzz_change(fuzz, &frame, sizeof(frame));
	frame.crc = 0;
	frame.crc = muster_frame_checksum(&frame, len > sizeof(frame) ? &packet : NULL,
					  body + sizeof(packet),
					  len > sizeof(frame) ? len - sizeof(frame) - sizeof(packet) : 0);
	memcpy(datagram, &frame, sizeof(frame));
	if (!muster_frame_check(datagram, len, &frame))
		muster_link_receive(link, now_us, &frame, body);
}

static void act(struct fuzz *fuzz, struct muster_link *link, uint64_t *now_us)
{
	static const uint8_t payload[256];
	struct muster_packet packet = { .version = MUSTER_PACKET_VERSION };

	switch (fuzz_byte(fuzz) % 8) {
	case 0:
		packet.length = fuzz_byte(fuzz);
		muster_link_send(link, *now_us, PEER_LIFE + fuzz_byte(fuzz) % 2, &packet, payload);
		break;
	case 1:
		*now_us += (uint64_t)fuzz_byte(fuzz) * 64;
		muster_link_run(link, *now_us);
		break;
	case 2:
		muster_link_watch(link, *now_us, PEER_LIFE + fuzz_byte(fuzz) % 2);
		break;
	case 3:
		muster_link_send_once(link, PEER_LIFE, &packet, payload);
		break;
	default:
		receive(fuzz, link, *now_us);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz fuzz = { data, len };
	struct muster_link_pool pool = { .size = POOL };
	struct muster_wire_counters counters = { 0 };
	const struct muster_link_config config = {
		.node = NODE, .peer = PEER, .incarnation = LIFE, .deadline_us = DEADLINE_US,
		.ops = &ops, .owner = &fuzz, .pool = &pool, .counters = &counters,
	};
	static struct muster_link link;
	struct muster_frame raw;
	uint64_t now_us = 1000;

	muster_frame_check(data, len, &raw);
	memset(&link, 0, sizeof(link));
	muster_link_init(&link, &config);
	while (fuzz.left)
		act(&fuzz, &link, &now_us);
	muster_link_drop(&link);
	if (slots || pool.used)
		abort();
	return 0;
}
