// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A frame's checksum, and whether a datagram is a frame at all. Pure, as reliable.c.
 */
#include "frame.h"

#include <errno.h>
#include <string.h>

#include "crc32c.h"

uint32_t muster_frame_checksum(const struct muster_frame *frame, const struct muster_packet *packet,
			       const void *payload, size_t payload_len)
{
	struct muster_frame copy = *frame;
	uint32_t crc;

	copy.crc = 0;
	crc = muster_crc32c(0, &copy, sizeof(copy));
	if (packet)
		crc = muster_crc32c(crc, packet, sizeof(*packet));
	return muster_crc32c(crc, payload, payload_len);
}

int muster_frame_check(const void *datagram, size_t len, struct muster_frame *frame)
{
	const uint8_t *body = (const uint8_t *)datagram + sizeof(*frame);
	struct muster_packet packet;

	if (len < sizeof(*frame) || len > MUSTER_FRAME_MAX)
		return -EBADMSG;
	memcpy(frame, datagram, sizeof(*frame));
	if (frame->version != MUSTER_FRAME_VERSION || frame->length != len - sizeof(*frame) ||
	    muster_frame_checksum(frame, NULL, body, frame->length) != frame->crc)
		return -EBADMSG;
	switch (frame->type) {
	case MUSTER_FRAME_HELLO:
	case MUSTER_FRAME_ACK:
	case MUSTER_FRAME_PROBE:
		return frame->length ? -EBADMSG : 0;
	case MUSTER_FRAME_DATA:
	case MUSTER_FRAME_ONCE:
		if (frame->length < sizeof(packet))
			return -EBADMSG;
		memcpy(&packet, body, sizeof(packet));
		return packet.length == frame->length - sizeof(packet) ? 0 : -EBADMSG;
	default:
		return -EBADMSG;
	}
}
