/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packets: what engines and switches say to each other. Layouts only.
 *
 * Little endian, naturally aligned, reserved fields zero. The wire below
 * delivers each packet exactly once and in any order; what makes a packet safe
 * to take late or twice all the same is its key (Documentation/sequence.md).
 */
#ifndef MUSTER_WIRE_H
#define MUSTER_WIRE_H

#include "muster_desc.h"

#define MUSTER_PACKET_VERSION		7

enum muster_packet_type {
	MUSTER_PACKET_DATA = 1,		/* fills a slot, whole or a fragment of it */
	MUSTER_PACKET_RTS = 2,		/* asks for room for a slot: large data asks first */
	MUSTER_PACKET_GRANT = 3,	/* gives it, or says that the data was taken */
	MUSTER_PACKET_CREDIT = 4,	/* the sender's window has moved; COLL_END: for good */
	MUSTER_PACKET_P2P = 5,		/* point to point: lands in the VP's receive ring */
	MUSTER_PACKET_ABORT = 6,	/* the context has failed; arg: culprit, number: status */
	MUSTER_PACKET_WHY = 7,		/* diagnosis: walks the chain of waits */
	MUSTER_PACKET_TREE_UP = 8,	/* to an aggregation node: a contribution */
	MUSTER_PACKET_TREE_DOWN = 9,	/* from an aggregation node: the result; may come twice */
	MUSTER_PACKET_WRITE = 10,	/* one-sided: goes to address and key, takes no slot (below) */
	MUSTER_PACKET_QP = 11,		/* a queue pair's: not the engine's */
	MUSTER_PACKET_ROOM = 12,	/* between switches: arg packets of job and src_node have gone on */
	MUSTER_PACKET_GONE = 13,	/* from a switch, to whoever is joined to it: not all reach node arg any more */
	MUSTER_PACKET_WRITTEN = 14,	/* answers writes: arg those, pulse which of them were refused */
};

/* struct muster_packet.flags; the swap and end flags are the descriptor's */
#define MUSTER_PACKET_SWAP_DATA		0x0001	/* the data replaces the operand */
#define MUSTER_PACKET_SWAP_ADDR		0x0002	/* the data is address, length and key */
#define MUSTER_PACKET_COLL_END		0x0004	/* the receiver's operation ends with this */
#define MUSTER_PACKET_CREDIT_WANTED	0x0008	/* say when your window has moved */
#define MUSTER_PACKET_REFERENCE		0x0010	/* RTS: the payload says where the data lies */
#define MUSTER_PACKET_TAKEN		0x0020	/* GRANT: the data was read from there */
#define MUSTER_PACKET_ONCE		0x0040	/* TREE_DOWN: may be lost; the same comes again */
#define MUSTER_PACKET_LAST		0x0080	/* TREE_UP: the last pulse of its number */
#define MUSTER_PACKET_BARE		0x0100	/* TREE_UP: of the result it wants to hear only that it is there */
#define MUSTER_PACKET_FLAGS		0x01ff	/* all that hosts and aggregation nodes know */
#define MUSTER_PACKET_WAY		0x8000	/* between switches: of two ways it goes by the second */

/*
 * The key of a slot is (job, dst_node, dst_vp, context, life, number, pulse,
 * seq_id). Exactly one member writes a slot; src_member says which it was, and its
 * node, VP and incarnation must be those of that member. To and from aggregation nodes
 * (Documentation/switch.md) job_key is the group's, and ABORT names tree and group as well. The credits of
 * a TREE_DOWN are for so many contributions beyond the one that it answers, at most MUSTER_TREE_PULSES_LIVE.
 * A WRITE has the address where its message begins in signature.digest, and the key in arg. It is
 * of no sequence: number counts the writes of its sender to its receiver, and seq_id is that % 32.
 * WRITTEN has a bit for each, by seq_id.
 */
struct muster_packet {
	__u8 version;		/* MUSTER_PACKET_VERSION */
	__u8 type;		/* enum muster_packet_type */
	__le16 flags;		/* MUSTER_PACKET_* */
	__u8 job;
	__u8 seq_id;		/* below MUSTER_SLOTS_MAX */
	__le16 stage;
	__le32 src_node;
	__le32 dst_node;
	__le16 src_vp;
	__le16 dst_vp;
	__le32 context;
	__le32 life;		/* of the context: ids come round, lives do not */
	__le32 src_member;	/* the sender's place among the members */
	__le32 number;		/* of the sequence, counted by the engines; WRITE: of the write */
	__le32 pulse;
	__le32 offset;		/* of the payload in the slot's message */
	__le32 total;		/* bytes of the slot's message */
	struct muster_signature signature;
	__le32 incarnation;	/* of the sending member; a restarted one differs */
	__le32 base;		/* oldest number that the sender has not ended */
	__le32 arg;		/* ABORT: culprit's member index; TREE_DOWN: credits; WRITE, WRITTEN: above */
	__le16 length;		/* bytes of payload that follow */
	__le16 tree;		/* TREE: which of the network's; else 0 */
	__le32 group;		/* TREE: which aggregation group on it, from 1; else 0 */
	__le32 reserved;
	__le64 job_key;		/* the job's secret; a packet without it is dropped */
};

MUSTER_STATIC_ASSERT(sizeof(struct muster_packet) == 96, "size");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_packet, src_node) == 8, "offset");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_packet, context) == 20, "offset");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_packet, number) == 32, "offset");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_packet, signature) == 48, "offset");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_packet, length) == 76, "offset");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_packet, job_key) == 88, "offset");

/*
 * Locks of a streaming tree (Documentation/switch.md, section 10): members say this on the
 * low-latency tree of the same layout, in an operation whose signature has this collective, U64 and MIN.
 * So each word is the least that any of them has said, or any aggregation node on the way.
 */
#define MUSTER_COLL_LOCK		64

struct muster_lock {
	__le64 operations;	/* for so many; 0: it is given back, or not waited for any more */
	__le64 free;		/* 1; 0: an aggregation node has given it to another */
	__le64 how;		/* enum muster_lock_how; the same of all */
	__le64 asked;		/* all ones; of the nodes the complement of their count of locks, */
	__le64 place;		/* the oldest place that a group of the job has there, if any waits; */
	__le64 again;		/* where it is the job's turn, of those that asked since, or NO_PLACE; members: all ones */
};

#define MUSTER_LOCK_NO_PLACE		0xfffffffffffffffeull

enum muster_lock_how {
	MUSTER_LOCK_TRY = 0,	/* who does not get it asks no more */
	MUSTER_LOCK_KEEP = 1,	/* who does not get it keeps its place among those that wait */
	MUSTER_LOCK_WAIT = 2,	/* nothing is locked: answered when it could be, or should ask again */
	MUSTER_LOCK_TAKE = 4,	/* with these, between nodes: all have asked; down: lock it, up: free or not */
};

MUSTER_STATIC_ASSERT(sizeof(struct muster_lock) == 48, "size");

/* What a queue pair's packet is. Requests count up `psn`, but for UD; replies name one. */
enum muster_qp_opcode {
	MUSTER_QP_SEND = 1,
	MUSTER_QP_WRITE = 2,
	MUSTER_QP_READ = 3,		/* asks for total bytes, which take as many PSNs as packets */
	MUSTER_QP_CMP_SWAP = 4,
	MUSTER_QP_FETCH_ADD = 5,
	MUSTER_QP_DATAGRAM = 8,		/* UD */
	MUSTER_QP_ACK = 16,		/* all before psn were taken */
	MUSTER_QP_NAK = 17,		/* and psn was not; why: enum muster_qp_nak */
	MUSTER_QP_READ_DATA = 18,	/* of the request that had psn, from offset on */
	MUSTER_QP_ATOMIC_DATA = 19,	/* what was there before, in compare_add */
};

enum muster_qp_nak {
	MUSTER_NAK_RNR = 1,		/* nothing was posted for it; timer: min_rnr_timer */
	MUSTER_NAK_ABSENT = 2,		/* there is no such queue pair, or it is not ready */
	MUSTER_NAK_INVALID = 3,
	MUSTER_NAK_ACCESS = 4,
	MUSTER_NAK_OPERATION = 5,
};

/* struct muster_qp_packet.flags */
#define MUSTER_QP_FIRST			0x0001	/* packet of its message */
#define MUSTER_QP_LAST			0x0002
#define MUSTER_QP_IMM			0x0004
#define MUSTER_QP_SOLICITED		0x0008
#define MUSTER_QP_ACK_WANTED		0x0010
#define MUSTER_QP_PACKET_FLAGS		0x001f

/* A packet of type QP: what the wire reads lies where it lies in struct muster_packet. */
struct muster_qp_packet {
	__u8 version;
	__u8 type;		/* MUSTER_PACKET_QP */
	__le16 flags;		/* MUSTER_QP_* */
	__u8 opcode;		/* enum muster_qp_opcode */
	__u8 nak;		/* enum muster_qp_nak */
	__le16 pkey;
	__le32 src_node;
	__le32 dst_node;
	__le32 src_qp;
	__le32 dst_qp;
	__le32 psn;		/* 24 bits */
	__u32 imm;
	__le64 remote_addr;
	__le32 remote_key;
	__le32 total;		/* bytes of the message */
	__le64 compare_add;
	__le64 swap;
	__le32 incarnation;	/* of the sender */
	__le32 qkey;
	__le32 offset;		/* of the payload in its message */
	__le16 length;		/* bytes of payload that follow */
	__u8 timer;
	__u8 reserved;
	__le32 acked;		/* requests of RC: all before it, of the other side's, were taken */
	__u8 reserved2[12];
};

MUSTER_STATIC_ASSERT(sizeof(struct muster_qp_packet) == sizeof(struct muster_packet), "size");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_qp_packet, dst_node) ==
		     __builtin_offsetof(struct muster_packet, dst_node), "offset");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_qp_packet, incarnation) ==
		     __builtin_offsetof(struct muster_packet, incarnation), "offset");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_qp_packet, length) ==
		     __builtin_offsetof(struct muster_packet, length), "offset");

/* Payload of an RTS with MUSTER_PACKET_REFERENCE, and of SWAP_REMOTE_ADDR data. */
struct muster_reference {
	__le64 addr;
	__le64 length;		/* bytes */
	__le32 key;
	__le32 reserved;
};

MUSTER_STATIC_ASSERT(sizeof(struct muster_reference) == 24, "size");

#endif /* MUSTER_WIRE_H */
