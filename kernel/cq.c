// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues: a ring that the device writes and a process reads. The
 * driver never looks into it. An interrupt does not say which queue it is for: a record does,
 * where a queue has one; others of its vector are told each time. An armed queue is told
 * once; to be told again a process arms it again, here and at the device. So nobody piles up
 * events for others.
 */
#include "muster.h"

#include <linux/log2.h>
#include <rdma/uverbs_ioctl.h>

static const struct muster_ring_layout no_layout;
static const struct muster_ring_layout cqe_layout = {
	.stride = sizeof(struct muster_cqe),
	.mark = offsetof(struct muster_cqe, kind),
};

static void vector_add(struct muster_cq *cq, struct muster_vector *vector)
{
	unsigned long flags;

	cq->vector = vector;
	spin_lock_irqsave(&vector->lock, flags);
	list_add_tail(&cq->vector_entry, &vector->cqs);
	spin_unlock_irqrestore(&vector->lock, flags);
}

/* Its handler does not run any more afterwards. */
static void vector_remove(struct muster_cq *cq)
{
	unsigned long flags;

	spin_lock_irqsave(&cq->vector->lock, flags);
	list_del(&cq->vector_entry);
	spin_unlock_irqrestore(&cq->vector->lock, flags);
}

static int admin_create(struct muster_dev *dev, const struct muster_cq *cq, u32 vector)
{
	struct muster_admin_command cmd = {
		.opcode = MUSTER_ADMIN_CQ_CREATE,
		.cq.base = cpu_to_le64(cq->ring->dma),
		.cq.record = cpu_to_le64(cq->record ? cq->record->dma : 0),
		.cq.id = cpu_to_le32(cq->id),
		.cq.entries = cpu_to_le32(cq->ibcq.cqe),
		.cq.vector = cpu_to_le32(vector),
	};

	return muster_admin_run(dev, &cmd);
}

static bool entries_valid(u32 entries)
{
	return entries && entries <= MUSTER_CQ_ENTRIES_MAX && is_power_of_2(entries);
}

static int check(const struct ib_cq_init_attr *attr, const struct ib_udata *udata)
{
	if (attr->flags)
		return -EOPNOTSUPP;
	if (!entries_valid(attr->cqe))
		return -EINVAL;
	if (udata->outlen < sizeof(struct muster_create_cq_resp))
		return -EINVAL;
	return 0;
}

static int decode(struct ib_udata *udata, struct muster_create_cq_cmd *cmd)
{
	int err = ib_copy_from_udata(cmd, udata, min(sizeof(*cmd), udata->inlen));

	if (err)
		return err;
	if (udata->inlen > sizeof(*cmd) &&
	    !ib_is_udata_cleared(udata, sizeof(*cmd), udata->inlen - sizeof(*cmd)))
		return -EINVAL;
	return cmd->reserved || cmd->flags & ~MUSTER_CQ_FOR_QPS ? -EINVAL : 0;
}

static int respond(const struct muster_cq *cq, struct ib_udata *udata)
{
	struct muster_create_cq_resp resp = {
		.cq = cq->id,
		.entries = cq->ibcq.cqe,
		.ring_offset = muster_mapping_offset(cq->ring),
		.ring_bytes = cq->ring->bytes,
		.record_offset = cq->record ? muster_mapping_offset(cq->record) : 0,
	};

	return ib_copy_to_udata(udata, &resp, sizeof(resp));
}

static void mappings_remove(struct muster_cq *cq)
{
	if (cq->next)
		muster_mapping_remove(cq->next);
	if (cq->record)
		muster_mapping_remove(cq->record);
	muster_mapping_remove(cq->ring);
}

static size_t ring_bytes(u32 entries)
{
	return entries * sizeof(struct muster_cqe);
}

static struct muster_mapping *ring_create(struct ib_ucontext *ibucontext, u32 entries)
{
	return muster_mapping_create(ibucontext, MUSTER_MAP_FROM_DEVICE, ring_bytes(entries),
				     cqe_layout);
}

static int mappings_create(struct muster_cq *cq, struct ib_ucontext *ibucontext, u32 flags)
{
	cq->ring = ring_create(ibucontext, cq->ibcq.cqe);
	if (IS_ERR(cq->ring))
		return PTR_ERR(cq->ring);
	if (!(flags & MUSTER_CQ_FOR_QPS))
		return 0;
	cq->record = muster_mapping_create(ibucontext, MUSTER_MAP_FROM_PROCESS,
					   sizeof(struct muster_cq_record), no_layout);
	if (IS_ERR(cq->record)) {
		muster_mapping_remove(cq->ring);
		return PTR_ERR(cq->record);
	}
	return 0;
}

int muster_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		     MUSTER_CREATE_CQ_ARG *arg)
{
	struct ib_udata *udata = MUSTER_CREATE_CQ_UDATA(arg);
	struct muster_ucontext *ucontext = rdma_udata_to_drv_context(udata, struct muster_ucontext,
								     ibucontext);
	struct muster_dev *dev = to_mdev(ibcq->device);
	struct muster_cq *cq = to_mcq(ibcq);
	struct muster_create_cq_cmd cmd = { };
	u32 vector = attr->comp_vector + 1;
	int err;

	err = check(attr, udata);
	if (err)
		return err;
	err = decode(udata, &cmd);
	if (err)
		return err;
	if (cmd.flags & MUSTER_CQ_FOR_QPS && !(dev->capabilities & MUSTER_CAP_QP))
		return -EOPNOTSUPP;	/* so a queue with a record is one that the device can do */
	err = muster_share_take(dev, &dev->cqs_share, &cq->user);
	if (err)
		return err;
	mutex_init(&cq->lock);
	ibcq->cqe = attr->cqe;
	err = mappings_create(cq, &ucontext->ibucontext, cmd.flags);
	if (err)
		goto err_share;
	err = xa_alloc_cyclic_irq(&dev->cqs, &cq->id, NULL, XA_LIMIT(0, MUSTER_CQS_MAX - 1),
				  &dev->next_cq, GFP_KERNEL);
	if (err < 0) {
		err = err == -EBUSY ? -ENOSPC : err;
		goto err_mappings;
	}
	err = respond(cq, udata);
	if (err)
		goto err_id;
	err = admin_create(dev, cq, vector);
	if (err)
		goto err_id;
	vector_add(cq, &dev->vectors[vector]);
	xa_store_irq(&dev->cqs, cq->id, cq, GFP_KERNEL);
	return 0;

err_id:
	xa_erase_irq(&dev->cqs, cq->id);
err_mappings:
	mappings_remove(cq);
err_share:
	muster_share_give(&dev->cqs_share, cq->user);
	return err;
}

int muster_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct muster_dev *dev = to_mdev(ibcq->device);
	struct muster_cq *cq = to_mcq(ibcq);

	muster_admin_destroy(dev, MUSTER_ADMIN_CQ_DESTROY, cq->id);
	xa_erase_irq(&dev->cqs, cq->id);
	vector_remove(cq);
	mappings_remove(cq);
	muster_share_give(&dev->cqs_share, cq->user);
	return 0;
}

/* A virtual port's queue interrupts at once: its process sleeps for one operation. */
int muster_modify_cq(struct ib_cq *ibcq, u16 count, u16 period_us)
{
	struct muster_dev *dev = to_mdev(ibcq->device);
	struct muster_cq *cq = to_mcq(ibcq);
	struct muster_admin_command cmd = {
		.opcode = MUSTER_ADMIN_CQ_MODERATE,
		.cq_moderate.id = cpu_to_le32(cq->id),
		.cq_moderate.count = cpu_to_le16(count),
		.cq_moderate.period_us = cpu_to_le16(period_us),
	};

	if (!cq->record)
		return -EOPNOTSUPP;
	return muster_admin_run(dev, &cmd);
}

static int resize_respond(const struct muster_mapping *ring, u32 entries, u32 origin,
			  struct ib_udata *udata)
{
	struct muster_resize_cq_resp resp = {
		.ring_offset = muster_mapping_offset(ring),
		.ring_bytes = ring->bytes,
		.entries = entries,
		.origin = origin,
	};

	return ib_copy_to_udata(udata, &resp, sizeof(resp));
}

/* What was prepared before and never changed to goes; its process may have it mapped still. */
static int resize_prepare(struct muster_cq *cq, struct ib_ucontext *ibucontext, u32 entries,
			  struct ib_udata *udata)
{
	struct muster_mapping *ring = ring_create(ibucontext, entries);
	int err;

	if (IS_ERR(ring))
		return PTR_ERR(ring);
	err = resize_respond(ring, entries, 0, udata);
	if (err) {
		muster_mapping_remove(ring);
		return err;
	}
	if (cq->next)
		muster_mapping_remove(cq->next);
	cq->next = ring;
	return 0;
}

/*
 * Twice to the process: once more when the device has changed over, since it cannot change back.
 * The old ring is the process's until it unmaps it.
 */
static int resize(struct muster_cq *cq, u32 entries, struct ib_udata *udata)
{
	struct muster_mapping *ring = cq->next, *old = cq->ring;
	struct muster_admin_command cmd = {
		.opcode = MUSTER_ADMIN_CQ_RESIZE,
		.cq_resize.id = cpu_to_le32(cq->id),
		.cq_resize.entries = cpu_to_le32(entries),
	};
	u32 origin;
	int err;

	if (!ring || ring->bytes < ring_bytes(entries))
		return -EINVAL;
	cmd.cq_resize.base = cpu_to_le64(ring->dma);
	err = resize_respond(ring, entries, 0, udata);
	if (err)
		return err;
	err = muster_admin_ask(to_mdev(cq->ibcq.device), &cmd, &origin);
	if (err)
		return err;
	cq->ring = ring;
	cq->next = NULL;
	cq->ibcq.cqe = entries;
	muster_mapping_remove(old);
	return resize_respond(ring, entries, origin, udata);
}

static int resize_decode(struct ib_udata *udata, struct muster_resize_cq_cmd *cmd)
{
	int err;

	if (udata->inlen < sizeof(*cmd) || udata->outlen < sizeof(struct muster_resize_cq_resp))
		return -EINVAL;
	err = ib_copy_from_udata(cmd, udata, sizeof(*cmd));
	if (err)
		return err;
	if (udata->inlen > sizeof(*cmd) &&
	    !ib_is_udata_cleared(udata, sizeof(*cmd), udata->inlen - sizeof(*cmd)))
		return -EINVAL;
	return cmd->reserved || cmd->flags & ~MUSTER_RESIZE_PREPARE ? -EINVAL : 0;
}

int muster_resize_cq(struct ib_cq *ibcq, int entries, struct ib_udata *udata)
{
	struct muster_ucontext *ucontext = rdma_udata_to_drv_context(udata, struct muster_ucontext,
								     ibucontext);
	struct muster_cq *cq = to_mcq(ibcq);
	struct muster_resize_cq_cmd cmd;
	int err;

	if (!cq->record)
		return -EOPNOTSUPP;
	if (!entries_valid(entries))
		return -EINVAL;
	err = resize_decode(udata, &cmd);
	if (err)
		return err;
	mutex_lock(&cq->lock);
	if (cmd.flags & MUSTER_RESIZE_PREPARE)
		err = resize_prepare(cq, &ucontext->ibucontext, entries, udata);
	else
		err = resize(cq, entries, udata);
	mutex_unlock(&cq->lock);
	return err;
}

int muster_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct muster_cq *cq = to_mcq(ibcq);
	unsigned long irqflags;

	if (!cq->record && (flags & IB_CQ_SOLICITED_MASK) != IB_CQ_NEXT_COMP)
		return -EOPNOTSUPP;
	spin_lock_irqsave(&cq->vector->lock, irqflags);
	cq->armed = true;
	spin_unlock_irqrestore(&cq->vector->lock, irqflags);
	return 0;
}

/* Whether it may be meant. What a process writes into its record concerns that queue alone. */
static bool meant(struct muster_cq *cq)
{
	const struct muster_cq_record *record;
	u32 notified;

	if (!cq->record)
		return true;
	record = cq->record->cpu;
	notified = le32_to_cpu(READ_ONCE(record->notified));
	if (notified == cq->notified)
		return false;
	cq->notified = notified;
	return true;
}

void muster_cqs_interrupted(struct muster_vector *vector)
{
	struct muster_cq *cq;
	unsigned long flags;

	spin_lock_irqsave(&vector->lock, flags);
	list_for_each_entry(cq, &vector->cqs, vector_entry) {
		if (!meant(cq) || !cq->armed)
			continue;
		cq->armed = false;
		if (cq->ibcq.comp_handler)
			cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
	}
	spin_unlock_irqrestore(&vector->lock, flags);
}

void muster_cq_overrun(struct muster_dev *dev, u32 id)
{
	struct ib_event event = { .device = &dev->ibdev, .event = IB_EVENT_CQ_ERR };
	struct muster_cq *cq;
	unsigned long flags;

	/* Under the lock, so that the queue cannot go meanwhile. */
	xa_lock_irqsave(&dev->cqs, flags);
	cq = xa_load(&dev->cqs, id);
	/* Once in its life: until its process reads it, each costs memory of the kernel's. */
	if (cq && !cq->overrun && cq->ibcq.event_handler) {
		cq->overrun = true;
		event.element.cq = &cq->ibcq;
		cq->ibcq.event_handler(&event, cq->ibcq.cq_context);
	}
	xa_unlock_irqrestore(&dev->cqs, flags);
}

#if IS_BUILTIN(CONFIG_KUNIT)
#include "cq_test.c"
#endif
