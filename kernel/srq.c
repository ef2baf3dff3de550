// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receives that queue pairs share: one piece of memory with a record and a ring, which a process
 * fills by itself and the device reads. That few are left is told once for each time that its
 * process asks for it.
 */
#include "muster.h"

#include <linux/log2.h>
#include <rdma/uverbs_ioctl.h>

enum { RECORD_BYTES = sizeof(struct muster_srq_record) };

static const struct muster_ring_layout no_layout;

static int check(const struct ib_srq_init_attr *init, struct ib_udata *udata)
{
	const struct ib_srq_attr *attr = &init->attr;

	if (init->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (!attr->max_wr || attr->max_wr > MUSTER_QP_ENTRIES_MAX || !is_power_of_2(attr->max_wr) ||
	    attr->max_sge > MUSTER_QP_RECEIVE_SGES_MAX)
		return -EINVAL;
	if (!muster_udata_unused(udata) || udata->outlen < sizeof(struct muster_create_srq_resp))
		return -EINVAL;
	return 0;
}

static int respond(const struct muster_srq *srq, struct ib_udata *udata)
{
	struct muster_create_srq_resp resp = {
		.queue_offset = muster_mapping_offset(srq->queue),
		.queue_bytes = srq->queue->bytes,
		.ring_offset = RECORD_BYTES,
	};

	return ib_copy_to_udata(udata, &resp, sizeof(resp));
}

static int admin_create(struct muster_dev *dev, const struct muster_srq *srq)
{
	struct muster_admin_command cmd = {
		.opcode = MUSTER_ADMIN_SRQ_CREATE,
		.srq.record = cpu_to_le64(srq->queue->dma),
		.srq.base = cpu_to_le64(srq->queue->dma + RECORD_BYTES),
		.srq.id = cpu_to_le32(srq->id),
		.srq.pd = cpu_to_le32(to_mpd(srq->ibsrq.pd)->id),
		.srq.entries = cpu_to_le16(srq->max_wr),
	};

	return muster_admin_run(dev, &cmd);
}

static int admin_limit(struct muster_dev *dev, const struct muster_srq *srq, u32 limit)
{
	struct muster_admin_command cmd = {
		.opcode = MUSTER_ADMIN_SRQ_LIMIT,
		.srq_limit.id = cpu_to_le32(srq->id),
		.srq_limit.limit = cpu_to_le32(limit),
	};

	return muster_admin_run(dev, &cmd);
}

static int create(struct muster_srq *srq, struct ib_ucontext *ibucontext, struct ib_udata *udata)
{
	struct muster_dev *dev = to_mdev(srq->ibsrq.device);
	int err;

	srq->queue = muster_mapping_create(ibucontext, MUSTER_MAP_FROM_PROCESS, RECORD_BYTES +
					   srq->max_wr * sizeof(struct muster_receive), no_layout);
	if (IS_ERR(srq->queue))
		return PTR_ERR(srq->queue);
	err = xa_alloc_cyclic_irq(&dev->srqs, &srq->id, NULL, XA_LIMIT(0, MUSTER_SRQS_MAX - 1),
				  &dev->next_srq, GFP_KERNEL);
	if (err < 0) {
		err = err == -EBUSY ? -ENOSPC : err;
		goto err_queue;
	}
	err = respond(srq, udata);
	if (err)
		goto err_id;
	err = admin_create(dev, srq);
	if (err)
		goto err_id;
	xa_store_irq(&dev->srqs, srq->id, srq, GFP_KERNEL);
	return 0;

err_id:
	xa_erase_irq(&dev->srqs, srq->id);
err_queue:
	muster_mapping_remove(srq->queue);
	return err;
}

/* As verbs say, a limit is asked for later. */
int muster_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init, struct ib_udata *udata)
{
	struct muster_ucontext *ucontext = rdma_udata_to_drv_context(udata, struct muster_ucontext,
								     ibucontext);
	struct muster_dev *dev = to_mdev(ibsrq->device);
	struct muster_srq *srq = to_msrq(ibsrq);
	int err;

	if (!(dev->capabilities & MUSTER_CAP_QP))
		return -EOPNOTSUPP;
	err = check(init, udata);
	if (err)
		return err;
	srq->max_wr = init->attr.max_wr;
	srq->max_sge = init->attr.max_sge;
	err = muster_share_take(dev, &dev->srqs_share, &srq->user);
	if (err)
		return err;
	err = create(srq, &ucontext->ibucontext, udata);
	if (err)
		muster_share_give(&dev->srqs_share, srq->user);
	return err;
}

int muster_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct muster_dev *dev = to_mdev(ibsrq->device);
	struct muster_srq *srq = to_msrq(ibsrq);

	muster_admin_destroy(dev, MUSTER_ADMIN_SRQ_DESTROY, srq->id);
	xa_erase_irq(&dev->srqs, srq->id);
	muster_mapping_remove(srq->queue);
	muster_share_give(&dev->srqs_share, srq->user);
	return 0;
}

int muster_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		      struct ib_udata *udata)
{
	struct muster_srq *srq = to_msrq(ibsrq);

	if (mask & ~IB_SRQ_LIMIT)
		return -EOPNOTSUPP;
	if (!muster_udata_unused(udata) || attr->srq_limit > srq->max_wr)
		return -EINVAL;
	/* What is told and not read costs the kernel memory. */
	if (attr->srq_limit && READ_ONCE(srq->told) == MUSTER_SRQ_TOLD_MAX)
		return -ENOSPC;
	return mask ? admin_limit(to_mdev(ibsrq->device), srq, attr->srq_limit) : 0;
}

int muster_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	const struct muster_srq *srq = to_msrq(ibsrq);
	struct muster_admin_command cmd = {
		.opcode = MUSTER_ADMIN_SRQ_QUERY,
		.id.id = cpu_to_le32(srq->id),
	};

	attr->max_wr = srq->max_wr;
	attr->max_sge = srq->max_sge;
	return muster_admin_ask(to_mdev(ibsrq->device), &cmd, &attr->srq_limit);
}

void muster_srq_event(struct muster_dev *dev, u32 id, enum ib_event_type what)
{
	struct ib_event event = { .device = &dev->ibdev, .event = what };
	struct muster_srq *srq;
	unsigned long flags;

	/* Under the lock, so that it cannot go meanwhile. */
	xa_lock_irqsave(&dev->srqs, flags);
	srq = xa_load(&dev->srqs, id);
	if (srq && srq->ibsrq.event_handler && srq->told < MUSTER_SRQ_TOLD_MAX) {
		srq->told++;
		event.element.srq = &srq->ibsrq;
		srq->ibsrq.event_handler(&event, srq->ibsrq.srq_context);
	}
	xa_unlock_irqrestore(&dev->srqs, flags);
}
