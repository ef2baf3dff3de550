// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues: a ring that the device writes and a process reads. The driver never looks
 * into it. Before it interrupts, the device says whom that is for, in a byte for each queue of the
 * vector. A process arms its queue by itself, and counts that in the queue's record; it is told
 * as often as it has counted. So neither the device nor a neighbour piles up events.
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
	cq->vector = vector;
	WRITE_ONCE(vector->notices[cq->id], 0);	/* who had this id may have left one */
}

/*
 * No handler looks at it any more afterwards: nor those of other vectors, for whom a device that
 * goes astray may have set its byte.
 */
static void handlers_pass(struct muster_dev *dev)
{
	struct muster_vector *vector = &dev->vectors[1], *end = &dev->vectors[dev->fn->nr_vectors];
	unsigned long flags;

	for (; vector < end; vector++) {
		spin_lock_irqsave(&vector->lock, flags);
		spin_unlock_irqrestore(&vector->lock, flags);
	}
}

static int admin_create(struct muster_dev *dev, const struct muster_cq *cq)
{
	struct muster_admin_command cmd = {
		.opcode = MUSTER_ADMIN_CQ_CREATE,
		.cq.base = cpu_to_le64(cq->ring->dma),
		.cq.record = cpu_to_le64(cq->for_qps ? cq->record->dma : 0),
		.cq.id = cpu_to_le32(cq->id),
		.cq.entries = cpu_to_le32(cq->ibcq.cqe),
		.cq.vector = cpu_to_le32(cq->vector - dev->vectors),
		.cq.notice = cpu_to_le64(cq->vector->notices_dma + cq->id),
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
	int err = muster_udata_read(udata, cmd, sizeof(*cmd));

	if (err)
		return err;
	return cmd->reserved || cmd->flags & ~MUSTER_CQ_FOR_QPS ? -EINVAL : 0;
}

static int respond(const struct muster_cq *cq, struct ib_udata *udata)
{
	struct muster_create_cq_resp resp = {
		.cq = cq->id,
		.entries = cq->ibcq.cqe,
		.ring_offset = muster_mapping_offset(cq->ring),
		.ring_bytes = cq->ring->bytes,
		.record_offset = muster_mapping_offset(cq->record),
	};

	return ib_copy_to_udata(udata, &resp, sizeof(resp));
}

static void mappings_remove(struct muster_cq *cq)
{
	if (cq->next)
		muster_mapping_remove(cq->next);
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

static int mappings_create(struct muster_cq *cq, struct ib_ucontext *ibucontext)
{
	cq->ring = ring_create(ibucontext, cq->ibcq.cqe);
	if (IS_ERR(cq->ring))
		return PTR_ERR(cq->ring);
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
	int err;

	err = check(attr, udata);
	if (err)
		return err;
	err = decode(udata, &cmd);
	if (err)
		return err;
	cq->for_qps = cmd.flags & MUSTER_CQ_FOR_QPS;
	if (cq->for_qps && !(dev->capabilities & MUSTER_CAP_QP))
		return -EOPNOTSUPP;
	err = muster_share_take(dev, &dev->cqs_share, &cq->user);
	if (err)
		return err;
	mutex_init(&cq->lock);
	ibcq->cqe = attr->cqe;
	err = mappings_create(cq, &ucontext->ibucontext);
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
	vector_add(cq, &dev->vectors[attr->comp_vector + 1]);
	err = admin_create(dev, cq);
	if (err)
		goto err_id;
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
	handlers_pass(dev);
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

	if (!cq->for_qps)
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
	err = muster_udata_read(udata, cmd, sizeof(*cmd));
	if (err)
		return err;
	return cmd->reserved || cmd->flags & ~MUSTER_RESIZE_PREPARE ? -EINVAL : 0;
}

int muster_resize_cq(struct ib_cq *ibcq, int entries, struct ib_udata *udata)
{
	struct muster_ucontext *ucontext = rdma_udata_to_drv_context(udata, struct muster_ucontext,
								     ibucontext);
	struct muster_cq *cq = to_mcq(ibcq);
	struct muster_resize_cq_cmd cmd;
	int err;

	if (!cq->for_qps)
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

/* How often its process has armed it, by 2; what it writes there concerns this queue alone. */
static u32 arms(const struct muster_cq *cq)
{
	const struct muster_cq_record *record = cq->record->cpu;

	return le32_to_cpu(READ_ONCE(record->arm)) & ~1u;
}

/* Of one that is being destroyed, no. */
bool muster_cq_armed(struct muster_cq *cq)
{
	struct muster_dev *dev = to_mdev(cq->ibcq.device);
	unsigned long flags;
	bool armed;

	xa_lock_irqsave(&dev->cqs, flags);
	armed = xa_load(&dev->cqs, cq->id) == cq && arms(cq) != READ_ONCE(cq->told);
	xa_unlock_irqrestore(&dev->cqs, flags);
	return armed;
}

/*
 * Whether its process is still to be told of an arming. Of those before the newest few the
 * device has nothing to tell any more: it takes several that come at once for one.
 */
static bool take_arm(struct muster_cq *cq)
{
	u32 now = arms(cq);

	if (now == cq->told)
		return false;
	if (now - cq->told > 2 * MUSTER_CQ_ARMS_MAX)
		cq->told = now - 2 * MUSTER_CQ_ARMS_MAX;
	WRITE_ONCE(cq->told, cq->told + 2);
	return true;
}

static void tell(struct muster_vector *vector, u32 id)
{
	struct muster_cq *cq = xa_load(&vector->dev->cqs, id);

	if (cq && cq->vector == vector && take_arm(cq) && cq->ibcq.comp_handler)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

/* Each is taken back before its process is told: what comes meanwhile is noticed again. */
static void notices_take(struct muster_vector *vector, u32 from, u32 nr)
{
	u32 id;

	for (id = from; id < from + nr; id++) {
		if (!READ_ONCE(vector->notices[id]))
			continue;
		WRITE_ONCE(vector->notices[id], 0);
		smp_mb();	/* taken back before the arming is read, see above */
		tell(vector, id);
	}
}

void muster_cqs_interrupted(struct muster_vector *vector)
{
	unsigned long flags;
	u32 id;

	BUILD_BUG_ON(MUSTER_CQS_MAX % sizeof(u64));
	spin_lock_irqsave(&vector->lock, flags);
	for (id = 0; id < MUSTER_CQS_MAX; id += sizeof(u64))
		if (READ_ONCE(vector->notice_words[id / sizeof(u64)]))
			notices_take(vector, id, sizeof(u64));
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
