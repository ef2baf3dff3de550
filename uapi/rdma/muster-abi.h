/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Between provider and driver: what travels beside the verbs' own structures.
 * Layouts only.
 *
 * Aligned to 8 bytes, reserved fields zero and checked. MUSTER_ABI_VERSION is
 * the driver's uverbs_abi_ver; a provider that knows another range refuses the
 * device and says both numbers.
 */
#ifndef MUSTER_ABI_H
#define MUSTER_ABI_H

#include <linux/types.h>

#define MUSTER_ABI_VERSION	7
#define MUSTER_DRIVER_ID	0x4d53	/* not allocated upstream; only equal on both sides */

struct muster_alloc_ucontext_resp {
	__u32 device_version;	/* MUSTER_DEVICE_VERSION */
	__u32 node;
	__u32 incarnation;
	__u32 contexts_max;
	__u32 dq_entries_max;
	__u32 rq_entries_max;
	__u32 capabilities;	/* MUSTER_CAP_* */
	__u32 reserved;
	__u64 bells_offset;	/* to mmap: one page, MUSTER_BELL_*, write only */
};

struct muster_alloc_pd_resp {
	__u32 pd;
	__u32 reserved;
};

#define MUSTER_REG_MR_WATCH	0x1	/* its place in a page says whether its pages are still there */

struct muster_reg_mr_cmd {
	__u32 flags;		/* MUSTER_REG_MR_* */
	__u32 reserved;
};

#define MUSTER_CHANGES_BYTES	4096

/* Of what is watched; else it is not written. Behind 12 bytes of the verb's own, so of words only. */
struct muster_reg_mr_resp {
	__u32 changes;		/* to mmap, times MUSTER_CHANGES_BYTES: so many __u8, read only, the file's */
	__u32 place;		/* there: 0; not any more when other pages may lie there */
	__u32 reserved;
};

#define MUSTER_CQ_FOR_QPS	0x1	/* else for virtual ports */

struct muster_create_cq_cmd {
	__u32 flags;		/* MUSTER_CQ_* */
	__u32 reserved;
};

struct muster_create_cq_resp {
	__u32 cq;
	__u32 entries;
	__u64 ring_offset;	/* to mmap: struct muster_cqe[entries]; FOR_QPS: muster_wc */
	__u64 ring_bytes;
	__u64 record_offset;	/* struct muster_cq_record, one page */
};

#define MUSTER_RESIZE_PREPARE	0x1	/* only make the ring, to be mapped; the next call changes to it */

struct muster_resize_cq_cmd {
	__u32 flags;		/* MUSTER_RESIZE_* */
	__u32 reserved;
};

struct muster_resize_cq_resp {
	__u64 ring_offset;	/* to mmap: the new ring, struct muster_wc[entries] */
	__u64 ring_bytes;
	__u32 entries;
	__u32 origin;		/* count of its first completion; those before are in the old ring */
};

/* IB_QPT_DRIVER: a virtual port. */
struct muster_create_vp_cmd {
	__u32 dq_entries;	/* powers of two */
	__u32 rq_entries;
	__u64 reserved;
};

#define MUSTER_RQ_PARTS_MAX	17

struct muster_create_vp_resp {
	__u32 vp;
	__u32 nr_rq_parts;
	__u64 doorbell_offset;	/* to mmap: one page, write only */
	__u64 dq_offset;	/* struct muster_desc[dq_entries] */
	__u64 dq_bytes;
	__u64 rq_bytes;		/* struct muster_recv_slot[rq_entries], read only, in parts that follow each other: */
	__u64 rq_part_bytes;	/* each has as many, but the last what is left */
	__u64 status_offset;	/* struct muster_vp_status, read only, one page */
	__u64 rq_offsets[MUSTER_RQ_PARTS_MAX];
};

/* IB_QPT_UD and IB_QPT_RC; sizes as verbs have them, powers of two or 0. */
struct muster_create_qp_resp {
	__u64 queues_offset;	/* to mmap: struct muster_qp_record, */
	__u64 queues_bytes;
	__u32 sq_offset;	/* and in it struct muster_work rings, of max_send_wr */
	__u32 rq_offset;	/* and of max_recv_wr */
};

struct muster_create_srq_resp {
	__u64 queue_offset;	/* to mmap: struct muster_srq_record, */
	__u64 queue_bytes;
	__u32 ring_offset;	/* and in it struct muster_receive[max_wr] */
	__u32 reserved;
};

/* ---- objects of our own (ioctl), in the driver's name space ---- */
/*
 * A job: JobID and its key. The kernel mints the key for the first member; the
 * others present it. Knowing the key is what makes a process a member.
 * A context: one communicator at one virtual port.
 */
#define MUSTER_UVERBS_ID_SHIFT	12	/* UVERBS_ID_NS_SHIFT */

enum muster_uverbs_object {
	MUSTER_OBJECT_JOB = 1U << MUSTER_UVERBS_ID_SHIFT,
	MUSTER_OBJECT_CONTEXT,
};

enum muster_uverbs_method_job {
	MUSTER_METHOD_JOB_CREATE = 1U << MUSTER_UVERBS_ID_SHIFT,
	MUSTER_METHOD_JOB_DESTROY,
};

enum muster_uverbs_attr_job_create {
	MUSTER_ATTR_JOB_CREATE_HANDLE = 1U << MUSTER_UVERBS_ID_SHIFT,
	MUSTER_ATTR_JOB_CREATE_ID,	/* in, __u32: JobID */
	MUSTER_ATTR_JOB_CREATE_KEY,	/* in, __u64: the job's key; left out: mint one */
	MUSTER_ATTR_JOB_CREATE_RESP_KEY,	/* out, __u64 */
};

enum muster_uverbs_attr_job_destroy {
	MUSTER_ATTR_JOB_DESTROY_HANDLE = 1U << MUSTER_UVERBS_ID_SHIFT,
};

enum muster_uverbs_method_context {
	MUSTER_METHOD_CONTEXT_OPEN = 1U << MUSTER_UVERBS_ID_SHIFT,
	MUSTER_METHOD_CONTEXT_CLOSE,
	MUSTER_METHOD_CONTEXT_ABORT,
	MUSTER_METHOD_CONTEXT_TREE,	/* a device with MUSTER_CAP_TREE */
};

struct muster_abi_member {
	__u32 node;
	__u16 vp;
	__u16 reserved;
	__u32 incarnation;
	__u32 reserved2;
};

/* An attribute holds less than 64 KiB, so the members are pointed to. */
struct muster_abi_members {
	__aligned_u64 addr;	/* struct muster_abi_member[nr] */
	__u32 nr;
	__u32 reserved;
};

#define MUSTER_TREE_MOVE	0x1	/* to that other group of a tree that it has joined */

struct muster_abi_tree {
	__aligned_u64 key;	/* the group's */
	__u32 node;		/* of the aggregation node that it sends to, */
	__u32 incarnation;	/* and which life of it */
	__u32 group;
	__u16 tree;
	__u16 payload_max;	/* bytes of one packet */
	__u32 flags;		/* MUSTER_TREE_* */
	__u32 reserved;
};

enum muster_uverbs_attr_context_open {
	MUSTER_ATTR_CONTEXT_OPEN_HANDLE = 1U << MUSTER_UVERBS_ID_SHIFT,
	MUSTER_ATTR_CONTEXT_OPEN_JOB,	/* in, job handle */
	MUSTER_ATTR_CONTEXT_OPEN_VP,	/* in, QP handle */
	MUSTER_ATTR_CONTEXT_OPEN_ID,	/* in, __u32 */
	MUSTER_ATTR_CONTEXT_OPEN_LIFE,	/* in, __u32: of this use of the id */
	MUSTER_ATTR_CONTEXT_OPEN_SELF,	/* in, __u32 */
	MUSTER_ATTR_CONTEXT_OPEN_MEMBERS,	/* in, struct muster_abi_members */
};

enum muster_uverbs_attr_context_close {
	MUSTER_ATTR_CONTEXT_CLOSE_HANDLE = 1U << MUSTER_UVERBS_ID_SHIFT,
};

enum muster_uverbs_attr_context_abort {
	MUSTER_ATTR_CONTEXT_ABORT_HANDLE = 1U << MUSTER_UVERBS_ID_SHIFT,
	MUSTER_ATTR_CONTEXT_ABORT_STATUS,	/* in, __u32: enum muster_status */
	MUSTER_ATTR_CONTEXT_ABORT_CULPRIT,	/* in, __u32: member index */
};

enum muster_uverbs_attr_context_tree {
	MUSTER_ATTR_CONTEXT_TREE_HANDLE = 1U << MUSTER_UVERBS_ID_SHIFT,
	MUSTER_ATTR_CONTEXT_TREE_GROUP,	/* in, struct muster_abi_tree */
};

_Static_assert(sizeof(struct muster_alloc_ucontext_resp) == 40, "size");
_Static_assert(sizeof(struct muster_alloc_pd_resp) == 8, "size");
_Static_assert(sizeof(struct muster_reg_mr_cmd) == 8, "size");
_Static_assert(sizeof(struct muster_reg_mr_resp) == 12, "size");
_Static_assert(sizeof(struct muster_create_cq_resp) == 32, "size");
_Static_assert(sizeof(struct muster_create_cq_cmd) == 8, "size");
_Static_assert(sizeof(struct muster_resize_cq_cmd) == 8, "size");
_Static_assert(sizeof(struct muster_resize_cq_resp) == 24, "size");
_Static_assert(sizeof(struct muster_create_qp_resp) == 24, "size");
_Static_assert(sizeof(struct muster_create_srq_resp) == 24, "size");
_Static_assert(sizeof(struct muster_create_vp_cmd) == 16, "size");
_Static_assert(sizeof(struct muster_create_vp_resp) == 192, "size");
_Static_assert(sizeof(struct muster_abi_member) == 16, "size");
_Static_assert(sizeof(struct muster_abi_members) == 16, "size");
_Static_assert(sizeof(struct muster_abi_tree) == 32, "size");

#endif /* MUSTER_ABI_H */
