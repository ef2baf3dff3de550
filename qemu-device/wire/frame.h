/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Frames: what travels in one datagram between two nodes. A frame header, and
 * behind it, in a DATA frame, one packet with its payload. Layout and checksum; little
 * endian, reserved fields zero. What the fields do is told in reliable.c.
 */
#ifndef MUSTER_FRAME_H
#define MUSTER_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "muster_wire.h"

#define MUSTER_FRAME_VERSION	1

enum muster_frame_type {
	MUSTER_FRAME_HELLO = 1,	/* who are you? (dst_incarnation 0), or the answer to it */
	MUSTER_FRAME_DATA = 2,	/* one packet; also acknowledges */
	MUSTER_FRAME_ACK = 3,	/* acknowledges, nothing else */
	MUSTER_FRAME_PROBE = 4,	/* numbered and acknowledged like DATA: are you there? */
	MUSTER_FRAME_ONCE = 5,	/* one packet, without a number: nobody sends it again */
};

struct muster_frame {
	__u8 version;		/* MUSTER_FRAME_VERSION */
	__u8 type;		/* enum muster_frame_type */
	__le16 length;		/* bytes behind this header */
	__le32 crc;		/* CRC32C of the whole frame with this field zero */
	__le32 src_node;
	__le32 dst_node;
	__le32 src_incarnation;
	__le32 dst_incarnation;	/* the life of dst_node that is meant; 0: not known yet */
	__le32 seq;		/* DATA, PROBE: its place in the stream; HELLO: question's number */
	__le32 ack;		/* every frame before this one has come */
	__le64 ack_bits;	/* bit i: frame ack + 1 + i has come */
};

MUSTER_STATIC_ASSERT(sizeof(struct muster_frame) == 40, "size");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_frame, crc) == 4, "offset");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_frame, src_incarnation) == 16, "offset");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_frame, seq) == 24, "offset");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_frame, ack_bits) == 32, "offset");

enum muster_frame_limit {
	MUSTER_FRAME_BODY_MAX = sizeof(struct muster_packet) + MUSTER_MTU,
	MUSTER_FRAME_MAX = sizeof(struct muster_frame) + MUSTER_FRAME_BODY_MAX,
};

/** muster_frame_checksum() - what `crc` must be; packet and payload may be NULL. */
uint32_t muster_frame_checksum(const struct muster_frame *frame, const struct muster_packet *packet,
			       const void *payload, size_t payload_len);

/**
 * muster_frame_check() - whether a datagram is a frame: version, lengths, checksum.
 * @frame: gets a copy of its header.
 *
 * Return: 0; -EBADMSG.
 */
int muster_frame_check(const void *datagram, size_t len, struct muster_frame *frame);

#endif /* MUSTER_FRAME_H */
