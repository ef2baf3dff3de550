/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queue pairs of ordinary verbs: the rings that the provider fills and the device
 * reads, and the completions that it writes. Layouts only. What they mean is told in
 * Documentation/verbs.md; opcodes, flags, states and statuses have libibverbs' numbers.
 *
 * Little endian, naturally aligned; reserved fields zero and checked.
 */
#ifndef MUSTER_QP_H
#define MUSTER_QP_H

#include "muster_desc.h"

enum muster_qp_limit {
	MUSTER_QPS_MAX = 2048,		/* a number is a count of uses times this, plus an index */
	MUSTER_SRQS_MAX = 1024,		/* queues of receives that queue pairs share */
	MUSTER_QP_ENTRIES_MAX = 4096,	/* work requests of one queue */
	MUSTER_QP_SGES_MAX = 16,	/* ranges of memory of one work request */
	MUSTER_QP_RECEIVE_SGES_MAX = 4,	/* of one receive */
	MUSTER_QP_INLINE_MAX = 256,	/* bytes in place of ranges */
	MUSTER_QP_FLIGHT_MAX = 64,	/* work requests of RC under way */
	MUSTER_QP_READS_MAX = 16,	/* of them reads and atomics */
	MUSTER_QP_MESSAGE_MAX = 1 << 30,	/* bytes of one message of RC; of UD: MUSTER_MTU */
	MUSTER_QP_GRH_BYTES = 40,	/* before what UD receives */
};

#define MUSTER_QPN_MASK			0x00ffffffu
#define MUSTER_QP_PKEY			0xffff	/* the only one, at index 0 */
#define MUSTER_QKEY_OWN			0x80000000u	/* in a request: the queue pair's own instead */

enum muster_qp_type {
	MUSTER_QP_RC = 2,
	MUSTER_QP_UD = 4,
};

enum muster_qp_state {
	MUSTER_QP_RESET = 0,
	MUSTER_QP_INIT = 1,
	MUSTER_QP_RTR = 2,
	MUSTER_QP_RTS = 3,
	MUSTER_QP_ERR = 6,
};

enum muster_work_opcode {
	MUSTER_WORK_WRITE = 0,
	MUSTER_WORK_WRITE_IMM = 1,
	MUSTER_WORK_SEND = 2,
	MUSTER_WORK_SEND_IMM = 3,
	MUSTER_WORK_READ = 4,
	MUSTER_WORK_CMP_SWAP = 5,
	MUSTER_WORK_FETCH_ADD = 6,
};

/* struct muster_work.flags */
#define MUSTER_WORK_FENCE		0x1	/* after the reads and atomics before it */
#define MUSTER_WORK_SIGNALED		0x2
#define MUSTER_WORK_SOLICITED		0x4
#define MUSTER_WORK_INLINE		0x8
#define MUSTER_WORK_FLAGS		0xf

struct muster_sge {
	__le64 addr;
	__le32 length;
	__le32 key;
};

/* A work request of a send queue. */
struct muster_work {
	__le64 wr_id;
	__u8 opcode;		/* enum muster_work_opcode */
	__u8 nr_sges;		/* 0 with INLINE */
	__le16 flags;		/* MUSTER_WORK_* */
	__le32 inline_len;
	__u32 imm;		/* as it is */
	__le32 dest_node;	/* UD: the next three */
	__le32 dest_qp;
	__le32 qkey;
	__le64 remote_addr;	/* READ, WRITE, atomics: the next two */
	__le32 remote_key;
	__le32 reserved;
	__le64 compare_add;	/* atomics: the next two */
	__le64 swap;
	union {
		struct muster_sge sges[MUSTER_QP_SGES_MAX];
		__u8 data[MUSTER_QP_INLINE_MAX];
	};
};

/* And of a receive queue, also of one that queue pairs share. */
struct muster_receive {
	__le64 wr_id;
	__u8 nr_sges;
	__u8 reserved[7];
	struct muster_sge sges[MUSTER_QP_RECEIVE_SGES_MAX];
};

/*
 * Written by the process, read by the device when it is rung, and when it finds nothing
 * more in a queue. Counts are modulo 2^32. Receives are rung for only when the queue pair has
 * failed, which the device says in the word that is its own, and looks for them once more.
 */
struct muster_qp_record {
	__le32 sq_tail;		/* requests written so far */
	__le32 rq_tail;
	__u8 reserved[24];
	__le32 failed;		/* the device's: it has failed; the process's at a reset */
	__u8 reserved2[28];
};

/* Of a queue of receives that queue pairs share; nobody ever rings for these. */
struct muster_srq_record {
	__le32 tail;		/* receives written so far */
	__u8 reserved[28];
	__le32 head;		/* the device's: taken so far, in order, whenever they complete */
	__u8 reserved2[28];
};

/* Written by the process. That of a virtual port's queue has arm alone, and the driver alone reads it. */
struct muster_cq_record {
	__le32 head;		/* completions consumed so far */
	__le32 arm;		/* counts up by 2: interrupt once; bit 0: only for SOLICITED and errors */
	__le32 armed_at;	/* completions that were there then: interrupt for the next */
	__u8 reserved[52];
};

enum muster_wc_status {
	MUSTER_WC_SUCCESS = 0,
	MUSTER_WC_LOC_LEN_ERR = 1,
	MUSTER_WC_LOC_QP_OP_ERR = 2,
	MUSTER_WC_LOC_PROT_ERR = 4,
	MUSTER_WC_WR_FLUSH_ERR = 5,
	MUSTER_WC_REM_INV_REQ_ERR = 9,
	MUSTER_WC_REM_ACCESS_ERR = 10,
	MUSTER_WC_REM_OP_ERR = 11,
	MUSTER_WC_RETRY_EXC_ERR = 12,
	MUSTER_WC_RNR_RETRY_EXC_ERR = 13,
};

enum muster_wc_opcode {
	MUSTER_WC_SEND = 0,
	MUSTER_WC_WRITE = 1,
	MUSTER_WC_READ = 2,
	MUSTER_WC_CMP_SWAP = 3,
	MUSTER_WC_FETCH_ADD = 4,
	MUSTER_WC_RECV = 128,
	MUSTER_WC_RECV_WRITE_IMM = 129,
};

/* struct muster_wc.flags */
#define MUSTER_WC_GRH			0x1
#define MUSTER_WC_WITH_IMM		0x2

/* In the place of a struct muster_cqe; kind and valid lie where they lie there. */
struct muster_wc {
	__le64 wr_id;
	__le32 qp;
	__le32 src_qp;		/* UD: the next two */
	__le32 src_node;
	__le32 length;		/* bytes; with the GRH */
	__u32 imm;
	__le32 index;		/* of the request in its queue, as that counts; 0: that is shared */
	__u8 opcode;		/* enum muster_wc_opcode */
	__u8 flags;		/* MUSTER_WC_* */
	__u8 reserved[20];
	__u8 kind;		/* MUSTER_CQE_WORK */
	__u8 status;		/* enum muster_wc_status */
	__u8 reserved2[4];
	__le32 valid;
};

MUSTER_STATIC_ASSERT(sizeof(struct muster_sge) == 16, "size");
MUSTER_STATIC_ASSERT(sizeof(struct muster_work) == 320, "size");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_work, remote_addr) == 32, "offset");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_work, sges) == 64, "offset");
MUSTER_STATIC_ASSERT(sizeof(struct muster_receive) == 80, "size");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_receive, sges) == 16, "offset");
MUSTER_STATIC_ASSERT(sizeof(struct muster_qp_record) == 64, "size");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_qp_record, failed) == 32, "offset");
MUSTER_STATIC_ASSERT(sizeof(struct muster_srq_record) == 64, "size");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_srq_record, head) == 32, "offset");
MUSTER_STATIC_ASSERT(sizeof(struct muster_cq_record) == 64, "size");
MUSTER_STATIC_ASSERT(sizeof(struct muster_wc) == sizeof(struct muster_cqe), "size");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_wc, kind) ==
		     __builtin_offsetof(struct muster_cqe, kind), "offset");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_wc, valid) ==
		     __builtin_offsetof(struct muster_cqe, valid), "offset");

#endif /* MUSTER_QP_H */
