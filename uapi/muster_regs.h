/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The device as the driver sees it: BARs, admin queue, event queue, and the
 * rings of a virtual port. Layouts only. Used by the driver, by the QEMU adapter
 * and, for doorbells and rings, by the provider.
 *
 * Little endian, naturally aligned; reserved fields zero and checked. All
 * addresses are DMA addresses. The device reaches memory only while bus mastering
 * is on.
 *
 * BAR 0: registers below, and a page of doorbells for all processes. BAR 2: MUSTER_VPS_MAX
 * doorbell pages, one a virtual port. BAR 4: MSI-X.
 */
#ifndef MUSTER_REGS_H
#define MUSTER_REGS_H

#include "muster_desc.h"
#include "muster_qp.h"
#include "muster_wire.h"

#define MUSTER_PCI_VENDOR		0x1af4
#define MUSTER_PCI_DEVICE		0x10f0
#define MUSTER_BAR_REGS			0
#define MUSTER_BAR_DOORBELLS		2
#define MUSTER_BAR_MSIX			4
#define MUSTER_REGS_BYTES		0x2000
#define MUSTER_MSIX_VECTORS		8	/* 0: admin and events; others: completion queues */

/* ---- registers of BAR 0: 32 bits each, aligned; other accesses read 0 and do nothing ---- */

#define MUSTER_REG_MAGIC		0x00	/* ro, MUSTER_REG_MAGIC_VALUE */
#define MUSTER_REG_VERSION		0x04	/* ro, MUSTER_DEVICE_VERSION */
#define MUSTER_REG_NODE			0x08	/* ro, this NIC's NodeID */
#define MUSTER_REG_INCARNATION		0x0c	/* ro, differs after every reset */
#define MUSTER_REG_CONTROL		0x10	/* rw, MUSTER_CONTROL_* */
#define MUSTER_REG_STATUS		0x14	/* ro, MUSTER_STATE_* */
#define MUSTER_REG_CAPABILITIES		0x18	/* ro, MUSTER_CAP_* */
#define MUSTER_REG_ADMIN_BASE_LO	0x20	/* rw while not enabled: the next eight */
#define MUSTER_REG_ADMIN_BASE_HI	0x24
#define MUSTER_REG_ADMIN_REPLY_LO	0x28
#define MUSTER_REG_ADMIN_REPLY_HI	0x2c
#define MUSTER_REG_ADMIN_ENTRIES	0x30	/* power of two, at most MUSTER_ADMIN_ENTRIES_MAX */
#define MUSTER_REG_EVENT_BASE_LO	0x34
#define MUSTER_REG_EVENT_BASE_HI	0x38
#define MUSTER_REG_EVENT_ENTRIES	0x3c	/* power of two, at most MUSTER_EVENT_ENTRIES_MAX */
#define MUSTER_REG_ADMIN_TAIL		0x40	/* wo, doorbell: commands written so far */
#define MUSTER_REG_EVENT_HEAD		0x44	/* wo, events consumed so far */

#define MUSTER_REG_MAGIC_VALUE		0x5254534d	/* "MSTR" */
#define MUSTER_DEVICE_VERSION		15

/* What Documentation/sequence.md, section 10, lays down; a bit that is not set is refused. */
#define MUSTER_CAP_WRITE		0x001	/* one-sided writes, SWAP_REMOTE_ADDR */
#define MUSTER_CAP_PULSES		0x002	/* pulses_live */
#define MUSTER_CAP_NUMBERS		0x004	/* idle numbers */
#define MUSTER_CAP_FORWARD		0x008	/* FORWARD */
#define MUSTER_CAP_KEEP			0x010	/* KEEP and START */
#define MUSTER_CAP_TREE			0x020	/* reduction trees; TREE_JOIN and TREE_MOVE */
#define MUSTER_CAP_RAILS		0x040
#define MUSTER_CAP_WHY			0x080
#define MUSTER_CAP_TRACE		0x100
#define MUSTER_CAP_QP			0x200
#define MUSTER_CAP_VECTOR_NAMES		0x400	/* interrupts that name their queue */
#define MUSTER_CAP_PROGRAM		0x800	/* PROGRAM: sequences that lie in memory */

#define MUSTER_CONTROL_ENABLE		0x1	/* 0 -> 1: take the queues; 1 -> 0: quiesce */
#define MUSTER_CONTROL_RESET		0x2	/* function reset; reads back 0 when it is done */

#define MUSTER_STATE_ENABLED		0x1
#define MUSTER_STATE_FATAL		0x2	/* admin or event queue unusable; reset to recover */
#define MUSTER_STATE_LINK_DOWN		0x4	/* nothing goes to other nodes, or comes; not of a life */

enum muster_regs_limit {
	MUSTER_ADMIN_ENTRIES_MAX = 256,
	MUSTER_EVENT_ENTRIES_MAX = 4096,
	MUSTER_CQS_MAX = 2048,
	MUSTER_CQ_ENTRIES_MAX = 65536,
	MUSTER_DQ_ENTRIES_MAX = 4096,
	MUSTER_RQ_ENTRIES_MAX = 4096,
	MUSTER_MRS_MAX = 65535,
	MUSTER_MR_PAGES_MAX = 1 << 22,
	MUSTER_MR_PART_PAGES = 512,	/* of a list in parts, but the last */
};

/* ---- a virtual port's doorbell page in BAR 2: 32 bits each ---- */

#define MUSTER_DOORBELL_STRIDE		0x1000
#define MUSTER_DOORBELL_DQ_TAIL		0x00	/* descriptors written so far, modulo 2^32 */
#define MUSTER_DOORBELL_RQ_HEAD		0x04	/* receive slots given back so far */
#define MUSTER_DOORBELL_CQ_HEAD		0x08	/* completions consumed so far */
#define MUSTER_DOORBELL_CQ_ARM		0x0c	/* the same, and interrupt on the next one, or message */
#define MUSTER_DOORBELL_CLOCK		0x10	/* CLOCK_MONOTONIC as it is rung, in us modulo 2^32 */
#define MUSTER_DOORBELL_LOOK		0x14	/* key of the region with the owner's looking page */

/*
 * ---- the page of BAR 0 that all processes may ring: 32 bits each ----
 *
 * A ring says "look at the record of this object"; what it says of another's is only that.
 */

#define MUSTER_REG_BELLS		0x1000
#define MUSTER_BELL_QP			0x00	/* number of a queue pair */
#define MUSTER_BELL_CQ			0x04	/* id of a completion queue */

/* ---- admin queue: commands of 64 bytes, replies of 32, same index ---- */

enum muster_admin_opcode {
	MUSTER_ADMIN_NOP = 0,
	MUSTER_ADMIN_CQ_CREATE = 1,
	MUSTER_ADMIN_CQ_DESTROY = 2,
	MUSTER_ADMIN_VP_CREATE = 3,
	MUSTER_ADMIN_VP_DESTROY = 4,	/* no DMA for it after the reply */
	MUSTER_ADMIN_MR_REGISTER = 5,
	MUSTER_ADMIN_MR_DEREGISTER = 6,	/* no DMA to it after the reply */
	MUSTER_ADMIN_CONTEXT_OPEN = 7,
	MUSTER_ADMIN_CONTEXT_CLOSE = 8,
	MUSTER_ADMIN_CONTEXT_ABORT = 9,
	MUSTER_ADMIN_COUNTERS = 10,
	MUSTER_ADMIN_QP_CREATE = 11,
	MUSTER_ADMIN_QP_MODIFY = 12,
	MUSTER_ADMIN_QP_QUERY = 13,	/* its state, in the reply's detail */
	MUSTER_ADMIN_QP_DESTROY = 14,	/* no DMA for it after the reply */
	MUSTER_ADMIN_SRQ_CREATE = 15,
	MUSTER_ADMIN_SRQ_LIMIT = 16,	/* an event, once, when fewer receives than that are left */
	MUSTER_ADMIN_SRQ_QUERY = 17,	/* that limit, in the reply's detail; 0: told, or none */
	MUSTER_ADMIN_SRQ_DESTROY = 18,	/* no DMA for it after the reply */
	MUSTER_ADMIN_CQ_MODERATE = 19,	/* of a CQ for queue pairs: when an interrupt is worth it */
	MUSTER_ADMIN_CQ_RESIZE = 20,	/* of one, too: another ring; the first's count in the reply's detail */
	MUSTER_ADMIN_QP_COUNT = 21,	/* from now on what a QP counts is counted there */
	MUSTER_ADMIN_TREE_JOIN = 22,	/* a context's sequences may use that tree */
	MUSTER_ADMIN_TREE_MOVE = 23,	/* it is now in that other group of its tree */
};

enum muster_admin_status {
	MUSTER_ADMIN_OK = 0,
	MUSTER_ADMIN_BAD_OPCODE = 1,
	MUSTER_ADMIN_BAD_PARAMETER = 2,	/* a field out of range, or a reserved one not zero */
	MUSTER_ADMIN_NO_OBJECT = 3,	/* no such vp, cq, mr or context */
	MUSTER_ADMIN_BUSY = 4,		/* id in use, or object still used */
	MUSTER_ADMIN_NO_ROOM = 5,	/* a limit of the device is met */
	MUSTER_ADMIN_DMA = 6,		/* could not read or write the command's memory */
};

struct muster_admin_cq {
	__le64 base;		/* struct muster_cqe ring */
	__le64 record;		/* struct muster_cq_record: for queue pairs; 0: for virtual ports */
	__le32 id;		/* chosen by the driver, below MUSTER_CQS_MAX */
	__le32 entries;		/* power of two */
	__le32 vector;		/* MSI-X, below MUSTER_MSIX_VECTORS */
	__le32 reserved;
	__le64 notice;		/* a byte: 1 is written there before each interrupt for this queue; 0: nowhere */
};

/* The next one comes with that many completions, or that long after the first of them. */
struct muster_admin_cq_moderate {
	__le32 id;
	__le16 count;		/* 0: however many */
	__le16 period_us;	/* 0: at once, however few */
};

/*
 * What is there stays where it is; what comes goes into this ring, from its first place on and with
 * 1 in valid in its first lap, whatever its count is. No more may be there than it has entries.
 */
struct muster_admin_cq_resize {
	__le64 base;		/* struct muster_cqe ring */
	__le32 id;
	__le32 entries;		/* power of two */
};

struct muster_admin_vp {
	__le64 dq_base;		/* struct muster_desc ring */
	__le64 rq_base;		/* struct muster_recv_slot ring; or array of __le64: where its parts lie, in pages */
	__le64 status_base;	/* struct muster_vp_status */
	__le32 dq_entries;	/* powers of two */
	__le32 rq_entries;
	__le32 id;		/* chosen by the driver, below MUSTER_VPS_MAX */
	__le32 cq;
	__le32 pd;		/* MRs of the same pd only */
	__u8 rq_part_shift;	/* 12 to 30: what each part but the last has; 0: it is in one piece */
	__u8 reserved[3];
};

#define MUSTER_MR_READ			0x1	/* device may load */
#define MUSTER_MR_WRITE			0x2	/* device may store */
#define MUSTER_MR_REMOTE_READ		0x4	/* for other nodes: these three */
#define MUSTER_MR_REMOTE_WRITE		0x8
#define MUSTER_MR_REMOTE_ATOMIC		0x10
#define MUSTER_MR_ACCESS		0x1f

struct muster_admin_mr {
	__le64 iova;		/* address that descriptors use for its first byte */
	__le64 length;		/* bytes */
	__le64 pages;		/* array of __le64: DMA addresses of its pages; in_parts: of arrays of these */
	__le32 nr_pages;
	__le32 first_offset;	/* of iova in the first page */
	__le32 id;		/* the key: chosen by the driver, 1 to MUSTER_MRS_MAX */
	__le32 pd;
	__u8 page_shift;	/* 12 to 30 */
	__u8 access;		/* MUSTER_MR_* */
	__u8 in_parts;		/* 1: each array has MUSTER_MR_PART_PAGES, so none is long */
	__u8 reserved[5];
};

struct muster_admin_member {
	__le32 node;
	__le16 vp;
	__le16 reserved;
	__le32 incarnation;
	__le32 reserved2;
};

struct muster_admin_context {
	__le64 job_key;
	__le64 members;		/* array of struct muster_admin_member */
	__le32 nr_members;
	__le32 self;
	__le32 context;
	__le32 life;		/* OPEN: of this use of the id, the same at all members */
	__le16 vp;
	__u8 job;
	__u8 status;		/* ABORT: enum muster_status */
	__le32 culprit;		/* ABORT: member index */
};

/* A group on a reduction tree (Documentation/switch.md), for an open context. */
struct muster_admin_tree {
	__le64 key;		/* the group's */
	__le32 context;
	__le32 node;		/* of the aggregation node that it sends to, */
	__le32 incarnation;	/* and which life of it */
	__le32 group;
	__le16 tree;
	__le16 payload_max;	/* bytes of one packet */
	__le16 vp;
	__u8 job;
	__u8 reserved;
};

struct muster_admin_qp {
	__le64 record;		/* struct muster_qp_record */
	__le64 sq_base;		/* struct muster_work rings */
	__le64 rq_base;
	__le32 id;		/* its number; no other with the same index */
	__le32 pd;		/* MRs of the same pd only */
	__le32 send_cq;		/* that have a record */
	__le32 recv_cq;
	__le16 sq_entries;	/* powers of two, or 0 */
	__le16 rq_entries;
	__u8 type;		/* enum muster_qp_type */
	__u8 signals_all;	/* 1: as if each request had SIGNALED */
	__le16 srq;		/* its id plus 1, of the same pd, and rq_entries 0; 0: none */
};

/* Receives that queue pairs share. */
struct muster_admin_srq {
	__le64 record;		/* struct muster_srq_record */
	__le64 base;		/* struct muster_receive ring */
	__le32 id;		/* chosen by the driver, below MUSTER_SRQS_MAX */
	__le32 pd;
	__le16 entries;		/* power of two */
	__u8 reserved[6];
};

struct muster_admin_srq_limit {
	__le32 id;
	__le32 limit;		/* 0: no event any more */
};

#define MUSTER_QP_REMOTE_WRITE		0x2
#define MUSTER_QP_REMOTE_READ		0x4
#define MUSTER_QP_REMOTE_ATOMIC		0x8
#define MUSTER_QP_REMOTE		0xe

/* All that it is to be, each time; PSNs count in the step to RTR (rq) and to RTS (sq). */
struct muster_admin_qp_modify {
	__le32 id;
	__le32 qkey;		/* UD */
	__le32 dest_node;	/* RC: all below but state */
	__le32 dest_qp;
	__le32 rq_psn;
	__le32 sq_psn;
	__le16 mtu;		/* bytes, power of two: 256 to MUSTER_MTU */
	__u8 state;		/* enum muster_qp_state */
	__u8 access;		/* MUSTER_QP_REMOTE_* */
	__u8 timeout;		/* 4.096 us << timeout; 0: none */
	__u8 retry_count;
	__u8 rnr_retry;		/* 7: for ever */
	__u8 min_rnr_timer;	/* as verbs encode it */
	__u8 reads;		/* at once, at most MUSTER_QP_READS_MAX: to the other, */
	__u8 reads_served;	/* from the other */
	__u8 reserved[6];
};

struct muster_admin_counters {
	__le64 base;		/* receives struct muster_device_counters; of a set muster_qp_counters */
	__le32 bytes;
	__le32 set;		/* 1 to MUSTER_QPS_MAX, or 0: of the device */
};

/* A set that no queue pair was counted in begins with zeros. */
struct muster_admin_qp_count {
	__le32 id;
	__le32 set;		/* 0: where those are that are counted in no set */
};

struct muster_admin_id {
	__le32 id;
	__le32 reserved;
};

struct muster_admin_command {
	__u8 opcode;		/* enum muster_admin_opcode */
	__u8 reserved;
	__le16 tag;		/* returned in the reply */
	__le32 reserved2;
	union {
		struct muster_admin_cq cq;
		struct muster_admin_cq_moderate cq_moderate;
		struct muster_admin_cq_resize cq_resize;
		struct muster_admin_vp vp;
		struct muster_admin_mr mr;
		struct muster_admin_context context;
		struct muster_admin_tree tree;
		struct muster_admin_qp qp;
		struct muster_admin_qp_modify qp_modify;
		struct muster_admin_srq srq;
		struct muster_admin_srq_limit srq_limit;
		struct muster_admin_counters counters;
		struct muster_admin_qp_count qp_count;
		struct muster_admin_id id;	/* of what is to be destroyed */
		__u8 raw[56];
	};
};

/* valid is written last: 1 in the ring's first lap, then 0, then 1 ... */
struct muster_admin_reply {
	__le16 tag;
	__u8 opcode;
	__u8 status;		/* enum muster_admin_status */
	__le32 detail;		/* BAD_PARAMETER: byte offset in the command; QUERY, RESIZE: what was asked */
	__u8 reserved[20];
	__le32 valid;
};

/* ---- event queue ---- */

enum muster_event_kind {
	MUSTER_EVENT_VP_ERROR = 1,	/* a ring of the VP could not be read or written */
	MUSTER_EVENT_CQ_OVERRUN = 2,	/* more completions than room; id: cq */
	MUSTER_EVENT_PEER_LOST = 3,	/* id: node */
	MUSTER_EVENT_FATAL = 4,		/* the device stopped; reset it */
	MUSTER_EVENT_QP_ERROR = 5,	/* a ring of the QP could not be read, or made no sense; id: its number */
	MUSTER_EVENT_QP_ACCESS = 6,	/* what the other side asked of it was not allowed */
	MUSTER_EVENT_QP_DRAINED = 7,	/* it has failed, and completed all that it took of its SRQ */
	MUSTER_EVENT_SRQ_LIMIT = 8,	/* fewer receives are left than SRQ_LIMIT said; id: srq */
	MUSTER_EVENT_SRQ_ERROR = 9,	/* it could not be read, or made no sense */
	MUSTER_EVENT_LINK = 10,		/* STATUS says how the link is now */
};

struct muster_event {
	__u8 kind;		/* enum muster_event_kind */
	__u8 reserved[3];
	__le32 id;
	__u8 reserved2[20];
	__le32 valid;		/* as in muster_admin_reply */
};

/* ---- a virtual port's memory ---- */

/* Written by the device. */
struct muster_vp_status {
	__le32 dq_head;		/* descriptors consumed so far, modulo 2^32 */
	__le32 error;		/* not 0: the VP has stopped; enum muster_status */
	__u8 reserved[56];
};

/* A point-to-point packet. valid is written last: 1 in the first lap, then 0 ... */
struct muster_recv_slot {
	struct muster_packet packet;
	__u8 reserved[28];
	__le32 valid;
	__u8 payload[MUSTER_MTU];
};

/* What is counted of a queue pair, in its set. */
struct muster_qp_counters {
	__le64 requests;	/* that have ended well */
	__le64 receives;	/* likewise */
	__le64 packets_out;
	__le64 packets_in;
	__le64 bytes_out;	/* in these, without their heads */
	__le64 bytes_in;
	__le64 retries;		/* asked again, since nobody was there */
	__le64 rnr_out;		/* had no receive, and has said so */
	__le64 rnr_in;		/* was told so */
	__le64 dropped;		/* packets that it did not take */
	__le64 errors;		/* requests and receives that have failed; what is flushed then is not counted */
};

/* Monotonic since reset. Engine counts as in struct muster_engine_counters. */
struct muster_device_counters {
	struct muster_qp_counters qps;	/* that are counted in no set */
	__le64 doorbells;
	__le64 interrupts;
	__le64 admin_commands;
	__le64 dma_read_bytes;
	__le64 dma_write_bytes;
	__le64 sequences_posted;
	__le64 sequences_ended;
	__le64 descriptors_executed;
	__le64 packets_in;
	__le64 packets_out;
	__le64 bytes_in;
	__le64 bytes_out;
	__le64 grants;
	__le64 credits;
	__le64 dropped;		/* for whatever reason */
	__le64 contexts_failed;
};

MUSTER_STATIC_ASSERT(sizeof(struct muster_admin_cq) == 40, "size");
MUSTER_STATIC_ASSERT(sizeof(struct muster_admin_cq_moderate) == 8, "size");
MUSTER_STATIC_ASSERT(sizeof(struct muster_admin_cq_resize) == 16, "size");
MUSTER_STATIC_ASSERT(sizeof(struct muster_admin_vp) == 48, "size");
MUSTER_STATIC_ASSERT(sizeof(struct muster_admin_mr) == 48, "size");
MUSTER_STATIC_ASSERT(sizeof(struct muster_admin_member) == 16, "size");
MUSTER_STATIC_ASSERT(sizeof(struct muster_admin_context) == 40, "size");
MUSTER_STATIC_ASSERT(sizeof(struct muster_admin_tree) == 32, "size");
MUSTER_STATIC_ASSERT(sizeof(struct muster_admin_qp) == 48, "size");
MUSTER_STATIC_ASSERT(sizeof(struct muster_admin_qp_modify) == 40, "size");
MUSTER_STATIC_ASSERT(sizeof(struct muster_admin_srq) == 32, "size");
MUSTER_STATIC_ASSERT(sizeof(struct muster_admin_command) == 64, "size");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_admin_command, raw) == 8, "offset");
MUSTER_STATIC_ASSERT(sizeof(struct muster_admin_reply) == 32, "size");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_admin_reply, valid) == 28, "offset");
MUSTER_STATIC_ASSERT(sizeof(struct muster_event) == 32, "size");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_event, valid) == 28, "offset");
MUSTER_STATIC_ASSERT(sizeof(struct muster_vp_status) == 64, "size");
MUSTER_STATIC_ASSERT(sizeof(struct muster_recv_slot) == 128 + MUSTER_MTU, "size");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_recv_slot, valid) == 124, "offset");
MUSTER_STATIC_ASSERT(sizeof(struct muster_qp_counters) == 88, "size");
MUSTER_STATIC_ASSERT(sizeof(struct muster_device_counters) == 216, "size");

#endif /* MUSTER_REGS_H */
