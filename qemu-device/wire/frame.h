/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Frames: what travels in one datagram between two nodes. A frame header, and
 * behind it, in a DATA frame, one packet with its payload. Layout only; little
 * endian, reserved fields zero. What the fields do is told in reliable.c.
 */
#ifndef MUSTER_FRAME_H
#define MUSTER_FRAME_H

#include "muster_wire.h"

#define MUSTER_FRAME_VERSION	1

enum muster_frame_type {
	MUSTER_FRAME_HELLO = 1,	/* who are you? (dst_incarnation 0), or the answer to it */
	MUSTER_FRAME_DATA = 2,	/* one packet; also acknowledges */
	MUSTER_FRAME_ACK = 3,	/* acknowledges, nothing else */
	MUSTER_FRAME_PROBE = 4,	/* numbered and acknowledged like DATA: are you there? */
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

#endif /* MUSTER_FRAME_H */
