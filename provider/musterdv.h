/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Muster's direct verbs: what the verbs of libibverbs have no words for. Opening
 * the device, protection domains, memory and asynchronous events are ordinary
 * verbs: ibv_open_device(), ibv_alloc_pd(), ibv_reg_mr(), ibv_get_async_event().
 * Virtual ports, jobs, contexts, and memory that is watched are here.
 *
 * The library hands out the rings themselves. It knows neither what a descriptor
 * says nor when a ring is full: its caller fills and drains them, as
 * muster_regs.h and Documentation/sequence.md tell, and rings the doorbells.
 *
 * Functions return 0 or -errno. Each object may be used by one thread at a time;
 * different objects by different threads. Link with -lmusterdv -libverbs, which
 * also makes the device known to ibv_get_device_list() where no driver file is
 * installed.
 *
 * A key of memory, as descriptors use it, is the lkey of its ibv_mr: with
 * IBV_ACCESS_LOCAL_WRITE the device may store there as well as load. With
 * IBV_ACCESS_REMOTE_WRITE any member of the contexts of the PD's ports may write
 * there, by its rkey; keys are small numbers and no secret.
 *
 * When the device is reset or goes away, every open ibv_context becomes dead: it
 * gets IBV_EVENT_DEVICE_FATAL; what the device has written (completions, packets,
 * status) reads as zero from before that event on, and is mapped read only; doorbells
 * go nowhere, and calls return -EIO. What it holds must still be destroyed, which then works.
 */
#ifndef MUSTERDV_H
#define MUSTERDV_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "muster_regs.h"

#ifdef __cplusplus
extern "C" {
#endif

/** musterdv_is_supported() - whether @device is a Muster NIC. */
bool musterdv_is_supported(struct ibv_device *device);

/** struct musterdv_info - what the device says of itself. Constant while it is open. */
struct musterdv_info {
	uint32_t node;			/* NodeID */
	uint32_t incarnation;		/* of the device's present life; part of an address */
	uint32_t device_version;	/* MUSTER_DEVICE_VERSION */
	uint32_t contexts_max;		/* of the whole device */
	uint32_t dq_entries_max;
	uint32_t rq_entries_max;
	uint32_t cq_entries_max;
	uint32_t capabilities;		/* MUSTER_CAP_* */
};

/**
 * musterdv_query() - who and how large the device is. Does not enter the kernel.
 *
 * Return: 0; -EOPNOTSUPP if @ctx is not of a Muster NIC.
 */
int musterdv_query(struct ibv_context *ctx, struct musterdv_info *info);

/* ---- memory ------------------------------------------------------------------ */

/**
 * musterdv_mr_register() - register memory as ibv_reg_mr() does, and know whether it is still there.
 * @changed: gets where musterdv_mr_changed() looks, until the region is deregistered.
 *
 * For who keeps memory registered, to use it again: between two uses it may have been unmapped,
 * and other memory may lie at its address, while the device has the pages that there were.
 * Return: 0; -EOPNOTSUPP if the device is another, or for an access flag that it does not know;
 * -ENOSPC when 4,096 regions of this open device are watched, or the device has no key
 * left; -EINTR when a signal came; and what ibv_reg_mr() says: -ENOMEM, -EFAULT, -EIO.
 */
int musterdv_mr_register(struct ibv_pd *pd, void *addr, size_t bytes, int access,
			 struct ibv_mr **mr, const uint8_t **changed);

/**
 * musterdv_mr_changed() - whether other pages may lie there than were registered.
 *
 * Does not enter the kernel. Set before munmap(), mremap(), madvise() or an mmap() over it returns,
 * or when its access changes. It may be set without need, as when the kernel moves pages, or
 * copies them while they are registered; then register once more. Once set it stays so.
 */
static inline bool musterdv_mr_changed(const uint8_t *changed)
{
	return __atomic_load_n(changed, __ATOMIC_ACQUIRE);
}

/* ---- virtual ports ----------------------------------------------------------- */

struct musterdv_vp_attr {
	uint32_t dq_entries;		/* powers of two, at most what musterdv_query() says */
	uint32_t rq_entries;
	uint32_t cq_entries;
	uint32_t reserved;		/* zero */
	struct ibv_comp_channel *channel; /* gets an event after musterdv_vp_arm(); may be NULL */
};

/**
 * struct musterdv_vp - a virtual port: its rings, as mapped into this process.
 *
 * All are zero at first, so that nothing in a ring of the device's is valid in the
 * first lap until it is 1. Indices count up modulo 2^32; entry i is at
 * i & (entries - 1), and valid there when its last word is !(i & entries).
 */
struct musterdv_vp {
	struct ibv_qp *qp;		/* its verbs object: qp_num is the VP's number */
	struct ibv_cq *ibcq;		/* likewise, for ibv_ack_cq_events() */
	uint16_t vp;			/* virtual port number, below MUSTER_VPS_MAX */
	uint32_t dq_entries;
	uint32_t rq_entries;
	uint32_t cq_entries;
	struct muster_desc *dq;		/* written by the caller */
	const struct muster_recv_slot *rq;	/* written by the device: p2p packets */
	const struct muster_cqe *cq;	/* written by the device: completions */
	const struct muster_vp_status *status;	/* written by the device; mapped read only */
	volatile uint32_t *doorbells;	/* MUSTER_DOORBELL_*, little endian; write only */
};

/**
 * musterdv_vp_create() - a virtual port with rings of its own, and map them.
 * @pd: memory registered with it is the memory that the VP's descriptors may use.
 *
 * Return: 0; -EINVAL for a size that is no power of two or beyond the limit;
 * -ENOSPC when the device has no VP or CQ left for this user; -EAGAIN at a limit of
 * the rdma cgroup; -ENOMEM, also for rings (parts of 1 MiB of receive rings) that the kernel
 * finds no adjoining pages for, or that exceed RLIMIT_MEMLOCK; -EIO for a dead device.
 */
int musterdv_vp_create(struct ibv_pd *pd, const struct musterdv_vp_attr *attr,
		       struct musterdv_vp **vp);

/**
 * musterdv_vp_destroy() - stop the device's work for it, then free the rings.
 *
 * Close its contexts first. Blocks until the events that ibv_get_cq_event() has
 * given out are acknowledged.
 * Return: 0; -EBUSY if contexts are open; then nothing is destroyed. After any error call it
 * again; the port cannot be used any more.
 */
int musterdv_vp_destroy(struct musterdv_vp *vp);

/**
 * musterdv_doorbell() - ring one, after everything written to the rings before.
 * @reg: MUSTER_DOORBELL_*
 * @value: an index, counted up modulo 2^32
 */
static inline void musterdv_doorbell(const struct musterdv_vp *vp, uint32_t reg, uint32_t value)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	value = __builtin_bswap32(value);
#endif
	vp->doorbells[reg / sizeof(uint32_t)] = value;
}

/**
 * musterdv_vp_arm() - have one event on the VP's channel at the next completion or packet.
 * @cq_head: completions consumed so far. If there is one more already, or a packet
 *	in the receive ring that was not given back, the event comes at once.
 *
 * Does not enter the kernel. An event without anything new may come; none is lost. Then sleep
 * on channel->fd, take the event with ibv_get_cq_event() and acknowledge it.
 * Return: 0; -EINVAL if the VP has no channel; -EIO for a dead device.
 */
int musterdv_vp_arm(struct musterdv_vp *vp, uint32_t cq_head);

/* ---- jobs -------------------------------------------------------------------- */

struct musterdv_job;

/**
 * musterdv_job_create() - become a member of a job.
 * @id: JobID, below MUSTER_JOBS_MAX
 * @join_key: the job's key; NULL: this is the first member, the kernel mints one
 * @key: gets the job's key, to be told to the other members only; may be NULL
 *
 * Return: 0; -EINVAL for an id out of range or a key of 0; -ENOMEM; -EIO.
 */
int musterdv_job_create(struct ibv_context *ctx, uint32_t id, const uint64_t *join_key,
			struct musterdv_job **job, uint64_t *key);

/** musterdv_job_destroy() - leave it. Return: 0; -EBUSY while contexts of it are open. */
int musterdv_job_destroy(struct musterdv_job *job);

/* ---- contexts ---------------------------------------------------------------- */

struct musterdv_context;

struct musterdv_member {
	uint32_t node;
	uint16_t vp;
	uint16_t reserved;		/* zero */
	uint32_t incarnation;
};

struct musterdv_context_attr {
	uint32_t id;			/* unique in the VP and job */
	uint32_t life;			/* of this use of the id, the same at all members */
	uint32_t self;			/* this process's place among the members */
	uint32_t nr_members;		/* at most MUSTER_MEMBERS_MAX */
	const struct musterdv_member *members;	/* copied */
};

/**
 * musterdv_context_open() - a communicator at a virtual port.
 *
 * Return: 0; -EINVAL for members or self that make no sense (self must be this VP
 * of this node); -EBUSY if the id is in use; -ENOSPC when the device has no room
 * for more contexts of this user; -EAGAIN at a limit of the rdma cgroup; -ENOMEM; -EIO for a dead device.
 */
int musterdv_context_open(struct musterdv_job *job, struct musterdv_vp *vp,
			  const struct musterdv_context_attr *attr,
			  struct musterdv_context **context);

/** musterdv_context_close() - no completion of it is written afterwards. */
int musterdv_context_close(struct musterdv_context *context);

/**
 * musterdv_context_abort() - fail it at all its members.
 * @status: enum muster_status, what they are told
 * @culprit: member index, or MUSTER_CULPRIT_NONE
 *
 * It stays open, until it is closed.
 * Return: 0; -EINVAL for a status of OK or an unknown one; -EIO for a dead device.
 */
int musterdv_context_abort(struct musterdv_context *context, uint8_t status, uint32_t culprit);

/** struct musterdv_tree - a group on a reduction tree, as a member sees it. */
struct musterdv_tree {
	uint64_t key;			/* the group's */
	uint32_t node;			/* of the aggregation node that it sends to, */
	uint32_t incarnation;		/* and which life of it */
	uint32_t group;
	uint16_t tree;
	uint16_t payload_max;		/* bytes of one packet */
};

/**
 * musterdv_context_tree_join() - let the sequences of a context use a reduction tree.
 *
 * Descriptors then name it: the aggregation node as destination, the tree as its VP. An
 * aggregation node that is gone fails the context, at once or later.
 * Return: 0; -EOPNOTSUPP if the device has no MUSTER_CAP_TREE, or the driver is older; -EINVAL
 * for a tree that makes no sense; -EBUSY if it has joined this one, or as many as it may (2);
 * -ENOSPC; -EIO for a dead device.
 */
int musterdv_context_tree_join(struct musterdv_context *context, const struct musterdv_tree *tree);

/**
 * musterdv_context_tree_move() - have it in another group of a tree that it has joined.
 *
 * No sequence of it that uses the tree may be under way: that would end nowhere.
 * Return: as above; -ENOENT if it has not joined; -EINVAL also for another payload_max or
 * incarnation.
 */
int musterdv_context_tree_move(struct musterdv_context *context, const struct musterdv_tree *tree);

#ifdef __cplusplus
}
#endif

#endif /* MUSTERDV_H */
