/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Descriptors, completions and limits: the layouts that the library, the
 * provider, the driver and the engine agree on. Layouts only, no logic.
 *
 * Everything is little endian and naturally aligned. Reserved fields must be
 * zero and are checked. What a sequence of descriptors means is told in
 * Documentation/sequence.md; the fields are those of the Tianhe paper (section
 * 1.2, figure 2) and the ones that Documentation/sequence.md adds to them.
 */
#ifndef MUSTER_DESC_H
#define MUSTER_DESC_H

#include <linux/types.h>

#ifdef __cplusplus
#define MUSTER_STATIC_ASSERT static_assert
#else
#define MUSTER_STATIC_ASSERT _Static_assert
#endif

/* Every limit of the hardware, by name. A refusal names the one that was met. */
enum muster_limit {
	MUSTER_JOBS_MAX = 256,		/* JobID, 8 bits */
	MUSTER_NODES_MAX = 1 << 24,	/* NodeID, 24 bits */
	MUSTER_NODE_AGGREGATION = 0xff0000, /* from here on: aggregation nodes, never members */
	MUSTER_VPS_MAX = 2048,		/* virtual ports, 11 bits */
	MUSTER_SLOTS_MAX = 32,		/* SeqID, 5 bits: slots of one sequence */
	MUSTER_SOURCES_MAX = 16,	/* CPCount: slots that one descriptor waits for */
	MUSTER_SEQ_DESCS_MAX = 64,	/* descriptors in one sequence, CH to CT */
	MUSTER_SEQ_QUEUE_MAX = 16,	/* sequences posted and not yet ended, per context */
	MUSTER_KEPT_MAX = 64,		/* programs kept, per context */
	MUSTER_KEPT_DESCS_MAX = 8192,	/* descriptors of all programs that a VP has kept */
	MUSTER_PROGRAM_DESCS_MAX = 16384, /* descriptors of a program that lies in memory */
	MUSTER_MP_MAX = 256,		/* bytes of an MP message, */
	MUSTER_INLINE_MAX = 64,		/* and those of them that its descriptor can bring */
	MUSTER_WINDOW = 8,		/* sequences a sender may be ahead of a receiver (W) */
	MUSTER_PULSE_MAX = 256 << 10,	/* bytes of one pulse of one transfer */
	MUSTER_WRITE_MAX = 1 << 30,	/* bytes of one one-sided write */
	MUSTER_WRITES_OPEN = 32,	/* packets of writes to one member that it has not answered */
	MUSTER_PULSES_LIVE = 4,		/* pulses of one sequence in flight at once (k) */
	MUSTER_TREE_PULSES_LIVE = 16,	/* the same of one that only a tree hears of, if it asks for it */
	MUSTER_PULSE_COUNT_MAX = 1 << 30,
	MUSTER_NUMBERS_MAX = 16384,	/* idle numbers that one descriptor ends */
	MUSTER_MTU = 4096,		/* payload bytes of one packet */
	MUSTER_UNITS = 8,		/* offload units of one engine, if not asked otherwise: */
	MUSTER_UNITS_MAX = 64,
	MUSTER_BUFFER_BYTES = 512 << 10, /* packet buffer of one unit */
	MUSTER_CONTEXTS_MAX = 4096,	/* contexts of one engine */
	MUSTER_MEMBERS_MAX = 65536,	/* ranks of one context */
};

enum muster_desc_kind {
	MUSTER_DESC_MP = 1,		/* carries its payload inline */
	MUSTER_DESC_RDMA = 2,		/* carries addresses, length and keys */
	MUSTER_DESC_START = 3,		/* runs the program that was kept under its cookie */
	MUSTER_DESC_PROGRAM = 4,	/* runs the sequences that lie in its load range */
	MUSTER_DESC_FORGET = 5,		/* the program that was kept under its cookie is no longer */
};

/* struct muster_desc.flags */
#define MUSTER_DESC_C			0x0001	/* collective; without it: point to point */
#define MUSTER_DESC_CH			0x0002	/* first of its sequence */
#define MUSTER_DESC_CT			0x0004	/* last of its sequence */
#define MUSTER_DESC_CP			0x0008	/* send on after executing */
#define MUSTER_DESC_SWAP_LOCAL_DATA	0x0010	/* operand: what the previous descriptor left */
#define MUSTER_DESC_SWAP_LOCAL_VP	0x0020	/* send to where the last packet came from */
#define MUSTER_DESC_SWAP_REMOTE_DATA	0x0040	/* packet: replaces the receiver's operand */
#define MUSTER_DESC_SWAP_REMOTE_ADDR	0x0080	/* packet: brings address, length and key */
#define MUSTER_DESC_REDUCE		0x0100	/* combine what is awaited into the operand, or that into what is there */
#define MUSTER_DESC_COLL_END		0x0200	/* the operation ends here: write the completion */
#define MUSTER_DESC_FORWARD		0x0400	/* send each fragment on as it comes */
#define MUSTER_DESC_KEEP		0x0800	/* CH: keep the program; run it again by START */
#define MUSTER_DESC_FLAGS		0x0fff	/* all that are defined; the others are refused */

/* What elements are; an operation is defined for some of these kinds. */
enum muster_kind {
	MUSTER_KIND_INT = 1,		/* two's complement */
	MUSTER_KIND_UINT = 2,
	MUSTER_KIND_FLOAT = 4,		/* 32 and 64 bits: IEEE 754 */
	MUSTER_KIND_HALF = 8,		/* 16 bits: IEEE 754's, or the upper half of an f32 */
	MUSTER_KIND_COMPLEX = 16,	/* real part, imaginary part */
	MUSTER_KIND_PAIR = 32,		/* a value, and an index of 32 bits; as structures of C */
	MUSTER_KINDS_INTEGER = MUSTER_KIND_INT | MUSTER_KIND_UINT,
	MUSTER_KINDS_ORDERED = MUSTER_KINDS_INTEGER | MUSTER_KIND_FLOAT | MUSTER_KIND_HALF,
	MUSTER_KINDS_NUMBER = MUSTER_KINDS_ORDERED | MUSTER_KIND_COMPLEX,
	MUSTER_KINDS_ALL = MUSTER_KINDS_NUMBER | MUSTER_KIND_PAIR,
};

/*
 * Element types, a line each: MUSTER_DTYPE_*, its number, its name, the bytes of an
 * element (a power of two), and its kind, MUSTER_KIND_*. Whoever needs a list of them
 * makes it from this one. Arithmetic rules: Documentation/arithmetic.md
 */
#define MUSTER_DTYPES(type)			\
	type(F32, 1, "f32", 4, FLOAT)		\
	type(F64, 2, "f64", 8, FLOAT)		\
	type(I32, 3, "i32", 4, INT)		\
	type(I64, 4, "i64", 8, INT)		\
	type(U64, 5, "u64", 8, UINT)		\
	type(I8, 6, "i8", 1, INT)		\
	type(U32, 7, "u32", 4, UINT)		\
	type(U8, 8, "u8", 1, UINT)		\
	type(I16, 9, "i16", 2, INT)		\
	type(U16, 10, "u16", 2, UINT)		\
	type(F16, 11, "f16", 2, HALF)		\
	type(BF16, 12, "bf16", 2, HALF)		\
	type(C32, 13, "c32", 8, COMPLEX)	\
	type(C64, 14, "c64", 16, COMPLEX)	\
	type(F32_I32, 15, "f32_i32", 8, PAIR)	\
	type(F64_I32, 16, "f64_i32", 16, PAIR)	\
	type(I16_I32, 17, "i16_i32", 8, PAIR)	\
	type(I32_I32, 18, "i32_i32", 8, PAIR)	\
	type(I64_I32, 19, "i64_i32", 16, PAIR)

/* Operations, a line each: MUSTER_REDOP_*, its number, its name, kinds that it is defined for. */
#define MUSTER_REDOPS(op)					\
	op(SUM, 1, "sum", MUSTER_KINDS_NUMBER)			\
	op(MIN, 2, "min", MUSTER_KINDS_ORDERED)			\
	op(MAX, 3, "max", MUSTER_KINDS_ORDERED)			\
	op(BAND, 4, "band", MUSTER_KINDS_INTEGER)		\
	op(BOR, 5, "bor", MUSTER_KINDS_INTEGER)			\
	op(BXOR, 6, "bxor", MUSTER_KINDS_INTEGER)		\
	op(LAND, 7, "land", MUSTER_KINDS_INTEGER)		\
	op(LOR, 8, "lor", MUSTER_KINDS_INTEGER)			\
	op(LXOR, 9, "lxor", MUSTER_KINDS_INTEGER)		\
	op(PROD, 10, "prod", MUSTER_KINDS_NUMBER)		\
	op(MINLOC, 11, "minloc", MUSTER_KIND_PAIR)		\
	op(MAXLOC, 12, "maxloc", MUSTER_KIND_PAIR)		\
	op(REPLACE, 13, "replace", MUSTER_KINDS_ALL)

#define MUSTER_DTYPE_ENUM(name, number, ...) MUSTER_DTYPE_##name = number,
#define MUSTER_REDOP_ENUM(name, number, ...) MUSTER_REDOP_##name = number,

enum muster_dtype {
	MUSTER_DTYPE_NONE = 0,
	MUSTER_DTYPES(MUSTER_DTYPE_ENUM)
	MUSTER_DTYPE_END,
	MUSTER_DTYPE_LAST = MUSTER_DTYPE_END - 1,
};

enum muster_redop {
	MUSTER_REDOP_NONE = 0,
	MUSTER_REDOPS(MUSTER_REDOP_ENUM)
	MUSTER_REDOP_END,
	MUSTER_REDOP_LAST = MUSTER_REDOP_END - 1,
};

/* struct muster_desc.dest */
#define MUSTER_DEST_NODE		0x00ffffffu	/* DestID */
#define MUSTER_DEST_SEQ			0x1f000000u	/* SeqID: the slot it fills there */
#define MUSTER_DEST_RESERVED		0xe0000000u

/*
 * What the ranks of one operation must share. The engine compares all of it and
 * reads type and op; the library knows the collectives by number.
 */
struct muster_signature {
	__u8 coll;		/* the library's collective */
	__u8 type;		/* enum muster_dtype; of every element of the sequence */
	__u8 op;		/* enum muster_redop; of every REDUCE */
	__u8 reserved;
	__le32 root;		/* 0 where there is none */
	__le64 digest;		/* of all else that must agree: counts, schedule */
};

MUSTER_STATIC_ASSERT(sizeof(struct muster_signature) == 16, "size");

#define MUSTER_FIELD_SHIFT(mask)	__builtin_ctz(mask)
#define MUSTER_FIELD_GET(mask, v)	(((v) & (mask)) >> MUSTER_FIELD_SHIFT(mask))
#define MUSTER_FIELD_PREP(mask, v)	(((__u32)(v) << MUSTER_FIELD_SHIFT(mask)) & (mask))

/* Where data lies, and how it is sliced: a descriptor without inline data. MP: the load range only. */
struct muster_desc_range {
	__le64 load_addr;	/* operand is read here */
	__le64 remote_addr;	/* one-sided write; with C a packet with SWAP_ADDR may bring another */
	__le32 load_key;	/* 0: no load range */
	__le32 remote_key;	/* 0: it writes nothing there */
	__le32 pulse_len;	/* bytes; in CH, the same for the whole sequence */
	__le32 pulse_count;	/* in CH; 1 for a sequence that is not sliced */
	__le32 pulses_live;	/* in CH; how many at once; 0: MUSTER_PULSES_LIVE, mostly the most */
	__le32 numbers;		/* in CH|CT that does nothing else: it ends so many; 0: one */
	__u8 reserved[24];
};

MUSTER_STATIC_ASSERT(sizeof(struct muster_desc_range) == 64, "size");

/*
 * One step of one rank's program. length counts the bytes of the whole
 * transfer; pulse p covers [p * pulse_len, (p + 1) * pulse_len) of it, cut at
 * length, and that offset is added to both addresses. A key of 0 says that
 * there is no such range.
 */
struct muster_desc {
	__u8 kind;		/* enum muster_desc_kind */
	__u8 cp_count;		/* slots awaited, from the sequence's cursor on */
	__le16 flags;		/* MUSTER_DESC_* */
	__le32 dest;		/* MUSTER_DEST_*: node and slot to send to */
	__le16 src_vp;
	__le16 dst_vp;
	__u8 job;
	__u8 inline_len;	/* MP: bytes of data[]; 0: the load range, if there is one */
	__le16 stage;		/* of a schedule that is cut into several sequences */
	__le32 context;
	__le32 store_key;	/* 0: no store range */
	struct muster_signature signature;
	__le64 cookie;		/* returned in the completion; taken from CT */
	__le64 store_addr;	/* result is written here */
	__le64 length;		/* bytes */
	union {
		__u8 data[MUSTER_INLINE_MAX];
		struct muster_desc_range range;
	};
};

MUSTER_STATIC_ASSERT(sizeof(struct muster_desc) == 128, "size");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_desc, dest) == 4, "offset");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_desc, job) == 12, "offset");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_desc, context) == 16, "offset");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_desc, signature) == 24, "offset");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_desc, store_addr) == 48, "offset");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_desc, length) == 56, "offset");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_desc, data) == 64, "offset");

enum muster_cqe_kind {
	MUSTER_CQE_SEQUENCE = 1,	/* a collective sequence with COLL_END has ended */
	MUSTER_CQE_SEND = 2,		/* a point-to-point descriptor has left */
	MUSTER_CQE_CONTEXT = 3,		/* the context failed; no further operation can succeed */
	MUSTER_CQE_WORK = 4,		/* a struct muster_wc of a queue pair */
};

enum muster_status {
	MUSTER_STATUS_OK = 0,
	MUSTER_STATUS_MISMATCH = 1,	/* ranks called different operations */
	MUSTER_STATUS_PEER_LOST = 2,	/* a member died or its link is gone */
	MUSTER_STATUS_ABORTED = 3,	/* a member gave up and said so */
	MUSTER_STATUS_MEMORY = 4,	/* a load or store range was refused */
	MUSTER_STATUS_DESCRIPTOR = 5,	/* a descriptor was refused; nothing was done */
	MUSTER_STATUS_PROTOCOL = 6,	/* a packet contradicts the running sequence */
	MUSTER_STATUS_FLUSHED = 7,	/* the context failed or closed before it ran */
	MUSTER_STATUS_STARVED = 8,	/* the engine of a member had no memory for it */
};

#define MUSTER_CULPRIT_NONE		0xffffffffu
#define MUSTER_BY_NONE			0xffffu

/*
 * A completion. valid is written last and flips with every lap of the ring, so
 * that a consumer needs no index from the producer.
 */
struct muster_cqe {
	__le64 cookie;
	struct muster_signature signature;	/* this rank's */
	struct muster_signature other;		/* MISMATCH: the culprit's, as `by` sees it */
	__le32 number;		/* sequence number in its context */
	__le32 context;
	__le32 culprit;		/* member index, or MUSTER_CULPRIT_NONE */
	__le16 vp;
	__u8 kind;		/* enum muster_cqe_kind */
	__u8 status;		/* enum muster_status */
	__u8 job;
	__u8 bad;		/* DESCRIPTOR: which of the sequence */
	__le16 by;		/* failed: the member that noticed, maybe this one; or MUSTER_BY_NONE */
	__le32 valid;
};

MUSTER_STATIC_ASSERT(sizeof(struct muster_cqe) == 64, "size");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_cqe, number) == 40, "offset");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_cqe, vp) == 52, "offset");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_cqe, valid) == 60, "offset");

#endif /* MUSTER_DESC_H */
