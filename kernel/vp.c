// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Virtual ports, as queue pairs of the driver's own kind: rings that a process
 * fills and drains by itself, and a page of doorbells.
 */
#include "muster.h"

#include <linux/dma-mapping.h>
#include <linux/log2.h>
#include <rdma/uverbs_ioctl.h>

static const struct muster_ring_layout no_layout;

/* A slot's packet is never in two parts, though its payload may be. */
static_assert(sizeof(struct muster_recv_slot) % offsetof(struct muster_recv_slot, payload) == 0 &&
	      MUSTER_RQ_PART_BYTES % offsetof(struct muster_recv_slot, payload) == 0);
static_assert(MUSTER_RQ_ENTRIES_MAX * sizeof(struct muster_recv_slot) <=
	      MUSTER_RQ_PARTS_MAX * (size_t)MUSTER_RQ_PART_BYTES);

static int check_attr(const struct ib_qp_init_attr *attr)
{
	const struct ib_qp_cap *cap = &attr->cap;

	if (attr->qp_type != IB_QPT_DRIVER || attr->create_flags || attr->srq ||
	    attr->rwq_ind_tbl)
		return -EOPNOTSUPP;
	if (!attr->send_cq || attr->send_cq != attr->recv_cq || to_mcq(attr->send_cq)->for_qps)
		return -EINVAL;
	/* The rings' sizes are told in struct muster_create_vp_cmd. */
	if (cap->max_send_wr || cap->max_recv_wr || cap->max_send_sge || cap->max_recv_sge ||
	    cap->max_inline_data)
		return -EINVAL;
	return 0;
}

static int decode(struct ib_udata *udata, struct muster_create_vp_cmd *cmd)
{
	int err;

	if (udata->inlen < sizeof(*cmd) || udata->outlen < sizeof(struct muster_create_vp_resp))
		return -EINVAL;
	err = muster_udata_read(udata, cmd, sizeof(*cmd));
	if (err)
		return err;
	if (cmd->reserved || !is_power_of_2(cmd->dq_entries) || !is_power_of_2(cmd->rq_entries) ||
	    cmd->dq_entries > MUSTER_DQ_ENTRIES_MAX ||
	    cmd->rq_entries > MUSTER_RQ_ENTRIES_MAX)
		return -EINVAL;
	return 0;
}

static void remove_mapping(struct muster_mapping *mapping)
{
	if (!IS_ERR_OR_NULL(mapping))
		muster_mapping_remove(mapping);
}

static void rq_remove(struct muster_vp *vp)
{
	while (vp->nr_rq)
		muster_mapping_remove(vp->rq[--vp->nr_rq]);
}

/* In parts, so that a long ring needs no more memory that adjoins than a short one. */
static int rq_create(struct muster_vp *vp, struct ib_ucontext *ibucontext, u32 entries)
{
	struct muster_ring_layout layout = {
		.stride = sizeof(struct muster_recv_slot),
		.mark = offsetof(struct muster_recv_slot, packet.version),
	};
	size_t bytes = entries * sizeof(struct muster_recv_slot);

	for (; layout.before < bytes; layout.before += MUSTER_RQ_PART_BYTES) {
		size_t part = min_t(size_t, bytes - layout.before, MUSTER_RQ_PART_BYTES);
		struct muster_mapping *mapping =
			muster_mapping_create(ibucontext, MUSTER_MAP_FROM_DEVICE, part, layout);

		if (IS_ERR(mapping)) {
			rq_remove(vp);
			return PTR_ERR(mapping);
		}
		vp->rq[vp->nr_rq++] = mapping;
	}
	return 0;
}

/* The doorbell last: with it the number may be another's. */
static void mappings_remove(struct muster_vp *vp)
{
	remove_mapping(vp->status);
	rq_remove(vp);
	remove_mapping(vp->dq);
	remove_mapping(vp->doorbell);
}

static int mappings_create(struct muster_vp *vp, struct ib_ucontext *ibucontext,
			   const struct muster_create_vp_cmd *cmd)
{
	struct muster_mapping **made[] = { &vp->doorbell, &vp->dq, &vp->status };
	size_t i;
	int err;

	vp->doorbell = muster_doorbell_create(ibucontext);
	vp->dq = muster_mapping_create(ibucontext, MUSTER_MAP_FROM_PROCESS,
				       cmd->dq_entries * sizeof(struct muster_desc), no_layout);
	vp->status = muster_mapping_create(ibucontext, MUSTER_MAP_FROM_DEVICE, PAGE_SIZE,
					   no_layout);
	for (i = 0; i < ARRAY_SIZE(made); i++) {
		if (IS_ERR(*made[i])) {
			err = PTR_ERR(*made[i]);
			goto err_remove;
		}
	}
	err = rq_create(vp, ibucontext, cmd->rq_entries);
	if (err)
		goto err_remove;
	return 0;

err_remove:
	mappings_remove(vp);
	return err;
}

static int respond(const struct muster_vp *vp, struct ib_udata *udata)
{
	struct muster_create_vp_resp resp = {
		.vp = vp->doorbell->number.vp,
		.doorbell_offset = muster_mapping_offset(vp->doorbell),
		.dq_offset = muster_mapping_offset(vp->dq),
		.dq_bytes = vp->dq->bytes,
		.rq_part_bytes = MUSTER_RQ_PART_BYTES,
		.nr_rq_parts = vp->nr_rq,
		.status_offset = muster_mapping_offset(vp->status),
	};
	u32 i;

	for (i = 0; i < vp->nr_rq; i++) {
		resp.rq_offsets[i] = muster_mapping_offset(vp->rq[i]);
		resp.rq_bytes += vp->rq[i]->bytes;
	}
	return ib_copy_to_udata(udata, &resp, sizeof(resp));
}

/* The device copies the list; it is freed again at once. */
static __le64 *rq_list_create(struct muster_dev *dev, const struct muster_vp *vp, dma_addr_t *dma)
{
	__le64 *list = dma_alloc_coherent(&dev->fn->pdev->dev, vp->nr_rq * sizeof(*list), dma,
					  GFP_KERNEL);
	u32 i;

	for (i = 0; list && i < vp->nr_rq; i++)
		list[i] = cpu_to_le64(vp->rq[i]->dma);
	return list;
}

static int admin_create(struct muster_dev *dev, const struct muster_vp *vp)
{
	struct muster_admin_command cmd = {
		.opcode = MUSTER_ADMIN_VP_CREATE,
		.vp.dq_base = cpu_to_le64(vp->dq->dma),
		.vp.rq_part_shift = MUSTER_RQ_PART_SHIFT,
		.vp.status_base = cpu_to_le64(vp->status->dma),
		.vp.dq_entries = cpu_to_le32(vp->dq_entries),
		.vp.rq_entries = cpu_to_le32(vp->rq_entries),
		.vp.id = cpu_to_le32(vp->doorbell->number.vp),
		.vp.cq = cpu_to_le32(vp->cq_id),
		.vp.pd = cpu_to_le32(vp->pd_id),
	};
	dma_addr_t dma;
	__le64 *list = rq_list_create(dev, vp, &dma);
	int err;

	if (!list)
		return -ENOMEM;
	cmd.vp.rq_base = cpu_to_le64(dma);
	err = muster_admin_run(dev, &cmd);
	dma_free_coherent(&dev->fn->pdev->dev, vp->nr_rq * sizeof(*list), list, dma);
	return err;
}

int muster_create_vp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct muster_ucontext *ucontext = rdma_udata_to_drv_context(udata, struct muster_ucontext,
								     ibucontext);
	struct muster_dev *dev = to_mdev(ibqp->device);
	struct muster_vp *vp = to_mvp(ibqp);
	struct muster_create_vp_cmd cmd;
	int err;

	err = check_attr(attr);
	if (err)
		return err;
	err = decode(udata, &cmd);
	if (err)
		return err;
	err = mappings_create(vp, &ucontext->ibucontext, &cmd);
	if (err)
		return err;
	err = respond(vp, udata);
	if (err)
		goto err_mappings;
	vp->pd_id = to_mpd(ibqp->pd)->id;
	vp->cq_id = to_mcq(attr->send_cq)->id;
	vp->dq_entries = cmd.dq_entries;
	vp->rq_entries = cmd.rq_entries;
	err = admin_create(dev, vp);
	if (err)
		goto err_mappings;
	ibqp->qp_num = vp->doorbell->number.vp;
	xa_store_irq(&dev->vps, ibqp->qp_num, vp, GFP_KERNEL);
	return 0;

err_mappings:
	mappings_remove(vp);
	return err;
}

/* The number stays taken until its doorbell page is unmapped everywhere. */
int muster_destroy_vp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct muster_dev *dev = to_mdev(ibqp->device);

	muster_admin_destroy(dev, MUSTER_ADMIN_VP_DESTROY, ibqp->qp_num);
	xa_store_irq(&dev->vps, ibqp->qp_num, NULL, GFP_KERNEL);
	mappings_remove(to_mvp(ibqp));
	return 0;
}

/*
 * Of its memory nothing: where the core forgets a queue pair only after it was destroyed (all
 * kernels without rdma_restrack_begin_del(); the guests' has it), `rdma res` asks while it goes.
 */
int muster_query_vp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_qp_init_attr *init_attr)
{
	memset(attr, 0, sizeof(*attr));
	memset(init_attr, 0, sizeof(*init_attr));
	attr->qp_state = READ_ONCE(to_mvp(ibqp)->failed) ? IB_QPS_ERR : IB_QPS_RTS;
	attr->cur_qp_state = attr->qp_state;
	init_attr->qp_type = IB_QPT_DRIVER;
	init_attr->send_cq = ibqp->send_cq;
	init_attr->recv_cq = ibqp->recv_cq;
	return 0;
}

void muster_vp_failed(struct muster_dev *dev, u32 id)
{
	struct ib_event event = { .device = &dev->ibdev, .event = IB_EVENT_QP_FATAL };
	struct muster_vp *vp;
	unsigned long flags;

	/* Under the lock, so that the port cannot go meanwhile. */
	xa_lock_irqsave(&dev->vps, flags);
	vp = xa_load(&dev->vps, id);
	if (vp && !vp->failed && vp->ibqp.event_handler) {
		WRITE_ONCE(vp->failed, true);
		event.element.qp = &vp->ibqp;
		vp->ibqp.event_handler(&event, vp->ibqp.qp_context);
	}
	xa_unlock_irqrestore(&dev->vps, flags);
}
