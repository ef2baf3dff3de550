// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs of ordinary verbs: one piece of memory with a record and two rings, which a process
 * fills by itself and the device reads. What a queue pair is to do is told to the device as a
 * whole at each change; its state is the device's, since it fails by itself.
 *
 * A number is an index and how often indices were used, so it does not come round soon.
 */
#include "muster.h"

#include <linux/log2.h>
#include <rdma/uverbs_ioctl.h>

enum { RECORD_BYTES = sizeof(struct muster_qp_record) };

static const struct muster_ring_layout no_layout;

static int check_attr(const struct ib_qp_init_attr *attr)
{
	const struct ib_qp_cap *cap = &attr->cap;

	if ((attr->qp_type != IB_QPT_UD && attr->qp_type != IB_QPT_RC) || attr->create_flags ||
	    attr->rwq_ind_tbl)
		return -EOPNOTSUPP;
	if (!attr->send_cq || !attr->recv_cq || !to_mcq(attr->send_cq)->for_qps ||
	    !to_mcq(attr->recv_cq)->for_qps)
		return -EINVAL;
	if (cap->max_send_wr > MUSTER_QP_ENTRIES_MAX || cap->max_recv_wr > MUSTER_QP_ENTRIES_MAX ||
	    cap->max_send_sge > MUSTER_QP_SGES_MAX || cap->max_recv_sge > MUSTER_QP_RECEIVE_SGES_MAX ||
	    cap->max_inline_data > MUSTER_QP_INLINE_MAX)
		return -EINVAL;
	if ((cap->max_send_wr && !is_power_of_2(cap->max_send_wr)) ||
	    (cap->max_recv_wr && (attr->srq || !is_power_of_2(cap->max_recv_wr))))
		return -EINVAL;
	return 0;
}

static u32 rq_offset(const struct ib_qp_cap *cap)
{
	return RECORD_BYTES + cap->max_send_wr * sizeof(struct muster_work);
}

static u32 queues_bytes(const struct ib_qp_cap *cap)
{
	return rq_offset(cap) + cap->max_recv_wr * sizeof(struct muster_receive);
}

static int respond(const struct muster_qp *qp, struct ib_udata *udata)
{
	struct muster_create_qp_resp resp = {
		.queues_offset = muster_mapping_offset(qp->queues),
		.queues_bytes = qp->queues->bytes,
		.sq_offset = RECORD_BYTES,
		.rq_offset = rq_offset(&qp->cap),
	};

	return ib_copy_to_udata(udata, &resp, sizeof(resp));
}

static int admin_create(struct muster_dev *dev, const struct muster_qp *qp,
			const struct ib_qp_init_attr *attr)
{
	struct muster_admin_command cmd = {
		.opcode = MUSTER_ADMIN_QP_CREATE,
		.qp.record = cpu_to_le64(qp->queues->dma),
		.qp.sq_base = cpu_to_le64(qp->queues->dma + RECORD_BYTES),
		.qp.rq_base = cpu_to_le64(qp->queues->dma + rq_offset(&qp->cap)),
		.qp.id = qp->attr.id,
		.qp.pd = cpu_to_le32(to_mpd(qp->ibqp.pd)->id),
		.qp.send_cq = cpu_to_le32(to_mcq(attr->send_cq)->id),
		.qp.recv_cq = cpu_to_le32(to_mcq(attr->recv_cq)->id),
		.qp.sq_entries = cpu_to_le16(qp->cap.max_send_wr),
		.qp.rq_entries = cpu_to_le16(qp->cap.max_recv_wr),
		.qp.type = attr->qp_type,
		.qp.signals_all = qp->signals_all,
		.qp.srq = cpu_to_le16(attr->srq ? to_msrq(attr->srq)->id + 1 : 0),
	};

	return muster_admin_run(dev, &cmd);
}

/* An index, and the number that it is part of. */
static int number_take(struct muster_dev *dev, struct muster_qp *qp)
{
	u32 uses = (u32)atomic_inc_return(&dev->qp_uses) % (MUSTER_QPN_MASK / MUSTER_QPS_MAX);
	int err = xa_alloc_cyclic_irq(&dev->qps, &qp->index, NULL, XA_LIMIT(0, MUSTER_QPS_MAX - 1),
				      &dev->next_qp, GFP_KERNEL);

	if (err < 0)
		return err == -EBUSY ? -ENOSPC : err;
	qp->ibqp.qp_num = (uses + 1) * MUSTER_QPS_MAX + qp->index;
	qp->attr.id = cpu_to_le32(qp->ibqp.qp_num);
	return 0;
}

static int create(struct muster_qp *qp, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct muster_ucontext *ucontext = rdma_udata_to_drv_context(udata, struct muster_ucontext,
								     ibucontext);
	struct muster_dev *dev = to_mdev(qp->ibqp.device);
	int err;

	err = muster_share_take(dev, &dev->qps_share, &qp->user);
	if (err)
		return err;
	qp->queues = muster_mapping_create(&ucontext->ibucontext, MUSTER_MAP_FROM_PROCESS,
					   queues_bytes(&qp->cap), no_layout);
	if (IS_ERR(qp->queues)) {
		err = PTR_ERR(qp->queues);
		goto err_share;
	}
	err = number_take(dev, qp);
	if (err)
		goto err_queues;
	err = respond(qp, udata);
	if (err)
		goto err_number;
	err = admin_create(dev, qp, attr);
	if (err)
		goto err_number;
	xa_store_irq(&dev->qps, qp->index, qp, GFP_KERNEL);
	return 0;

err_number:
	xa_erase_irq(&dev->qps, qp->index);
err_queues:
	muster_mapping_remove(qp->queues);
err_share:
	muster_share_give(&dev->qps_share, qp->user);
	return err;
}

int muster_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct muster_qp *qp = to_mqp(ibqp);
	int err;

	if (attr->qp_type == IB_QPT_DRIVER)
		return muster_create_vp(ibqp, attr, udata);
	err = check_attr(attr);
	if (err)
		return err;
	if (!muster_udata_unused(udata) || udata->outlen < sizeof(struct muster_create_qp_resp))
		return -EINVAL;
	mutex_init(&qp->lock);
	qp->cap = attr->cap;
	qp->signals_all = attr->sq_sig_type == IB_SIGNAL_ALL_WR;
	return create(qp, attr, udata);
}

int muster_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct muster_dev *dev = to_mdev(ibqp->device);
	struct muster_qp *qp = to_mqp(ibqp);

	if (ibqp->qp_type == IB_QPT_DRIVER)
		return muster_destroy_vp(ibqp, udata);
	muster_admin_destroy(dev, MUSTER_ADMIN_QP_DESTROY, ibqp->qp_num);
	xa_erase_irq(&dev->qps, qp->index);
	muster_mapping_remove(qp->queues);
	muster_share_give(&dev->qps_share, qp->user);
	return 0;
}

/* ---- states -------------------------------------------------------------------- */

/* Where it is destroyed meanwhile (see muster_query_vp()), it has failed. */
static int state_read(struct muster_qp *qp, enum ib_qp_state *state)
{
	struct muster_admin_command cmd = {
		.opcode = MUSTER_ADMIN_QP_QUERY,
		.id.id = cpu_to_le32(qp->ibqp.qp_num),
	};
	u32 told = IB_QPS_ERR;
	int err = muster_admin_ask(to_mdev(qp->ibqp.device), &cmd, &told);

	/* The core has tables by it. */
	if (told > IB_QPS_ERR) {
		muster_dev_fence(to_mdev(qp->ibqp.device), "device tells a state that there is not");
		return -EIO;
	}
	*state = told;
	return err == -ENOENT ? 0 : err;
}

/* The GID says where to; the provider has made one of what was only a LID. */
static int decode_path(struct muster_admin_qp_modify *to, const struct rdma_ah_attr *path)
{
	const union ib_gid *gid = &rdma_ah_read_grh(path)->dgid;
	u64 guid = be64_to_cpu(gid->global.interface_id);

	if (!(rdma_ah_get_ah_flags(path) & IB_AH_GRH) ||
	    be64_to_cpu(gid->global.subnet_prefix) != MUSTER_GID_PREFIX ||
	    guid - MUSTER_GUID >= MUSTER_NODES_MAX)
		return -EINVAL;
	to->dest_node = cpu_to_le32(guid - MUSTER_GUID);
	return 0;
}

/* The numbers of what the other side may do are libibverbs' in the device, too. */
static int decode_access(struct muster_admin_qp_modify *to, int access)
{
	if (access & ~(MUSTER_QP_REMOTE | IB_ACCESS_LOCAL_WRITE | IB_ACCESS_OPTIONAL))
		return -EINVAL;
	to->access = access & MUSTER_QP_REMOTE;
	return 0;
}

static int decode_mtu(struct muster_admin_qp_modify *to, enum ib_mtu mtu)
{
	if (mtu < IB_MTU_256 || mtu > IB_MTU_4096)
		return -EINVAL;
	to->mtu = cpu_to_le16(ib_mtu_enum_to_int(mtu));
	return 0;
}

static int decode(struct muster_admin_qp_modify *to, const struct ib_qp_attr *attr, int mask)
{
	int err = (mask & IB_QP_PKEY_INDEX) && attr->pkey_index ? -EINVAL : 0;

	if (!err && mask & IB_QP_AV)
		err = decode_path(to, &attr->ah_attr);
	if (!err && mask & IB_QP_ACCESS_FLAGS)
		err = decode_access(to, attr->qp_access_flags);
	if (!err && mask & IB_QP_PATH_MTU)
		err = decode_mtu(to, attr->path_mtu);
	if (err)
		return err;
	if (mask & IB_QP_QKEY)
		to->qkey = cpu_to_le32(attr->qkey);
	if (mask & IB_QP_DEST_QPN)
		to->dest_qp = cpu_to_le32(attr->dest_qp_num);
	if (mask & IB_QP_RQ_PSN)
		to->rq_psn = cpu_to_le32(attr->rq_psn & MUSTER_QPN_MASK);
	if (mask & IB_QP_SQ_PSN)
		to->sq_psn = cpu_to_le32(attr->sq_psn & MUSTER_QPN_MASK);
	if (mask & IB_QP_TIMEOUT)
		to->timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT)
		to->retry_count = attr->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		to->rnr_retry = attr->rnr_retry;
	if (mask & IB_QP_MIN_RNR_TIMER)
		to->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		to->reads = attr->max_rd_atomic;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		to->reads_served = attr->max_dest_rd_atomic;
	return 0;
}

/* It works again: when it fails the next time its process hears of it. */
static void mended(struct muster_qp *qp)
{
	struct muster_dev *dev = to_mdev(qp->ibqp.device);
	unsigned long flags;

	xa_lock_irqsave(&dev->qps, flags);
	qp->failed = false;
	xa_unlock_irqrestore(&dev->qps, flags);
}

static int modify(struct muster_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	struct muster_admin_command cmd = { .opcode = MUSTER_ADMIN_QP_MODIFY };
	enum ib_qp_state state, next;
	int err;

	err = state_read(qp, &state);
	if (err)
		return err;
	next = mask & IB_QP_STATE ? attr->qp_state : state;
	if (((mask & IB_QP_CUR_STATE) && attr->cur_qp_state != state) ||
	    !ib_modify_qp_is_ok(state, next, qp->ibqp.qp_type, mask))
		return -EINVAL;
	cmd.qp_modify = qp->attr;
	if (next == IB_QPS_RESET)
		cmd.qp_modify = (struct muster_admin_qp_modify){ .id = qp->attr.id };
	cmd.qp_modify.state = next;
	/* Verbs want a PSN of datagrams, too, and back; the device has none for them. */
	err = decode(&cmd.qp_modify, attr,
		     qp->ibqp.qp_type == IB_QPT_UD ? mask & ~IB_QP_SQ_PSN : mask);
	if (err)
		return err;
	err = muster_admin_run(to_mdev(qp->ibqp.device), &cmd);
	if (err)
		return err;
	qp->attr = cmd.qp_modify;
	if (mask & IB_QP_SQ_PSN)
		qp->datagram_psn = attr->sq_psn & MUSTER_QPN_MASK;
	if (next == IB_QPS_RESET)
		mended(qp);
	return 0;
}

int muster_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	const int known = IB_QP_STATE | IB_QP_CUR_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			  IB_QP_QKEY | IB_QP_SQ_PSN | IB_QP_ACCESS_FLAGS | IB_QP_AV |
			  IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN | IB_QP_TIMEOUT |
			  IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MIN_RNR_TIMER |
			  IB_QP_MAX_QP_RD_ATOMIC | IB_QP_MAX_DEST_RD_ATOMIC;
	struct muster_qp *qp = to_mqp(ibqp);
	int err;

	if (ibqp->qp_type == IB_QPT_DRIVER || mask & ~known)
		return -EOPNOTSUPP;
	if (!muster_udata_unused(udata))
		return -EINVAL;
	mutex_lock(&qp->lock);
	err = modify(qp, attr, mask);
	mutex_unlock(&qp->lock);
	return err;
}

/* What it was told. */
static void encode(const struct muster_admin_qp_modify *from, struct ib_qp_attr *attr)
{
	struct ib_global_route *path = rdma_ah_retrieve_grh(&attr->ah_attr);

	attr->qkey = le32_to_cpu(from->qkey);
	if (!from->mtu)
		return;
	rdma_ah_set_ah_flags(&attr->ah_attr, IB_AH_GRH);
	rdma_ah_set_port_num(&attr->ah_attr, 1);
	path->dgid.global.subnet_prefix = cpu_to_be64(MUSTER_GID_PREFIX);
	path->dgid.global.interface_id = cpu_to_be64(MUSTER_GUID + le32_to_cpu(from->dest_node));
	attr->path_mtu = ib_mtu_int_to_enum(le16_to_cpu(from->mtu));
	attr->dest_qp_num = le32_to_cpu(from->dest_qp);
	attr->rq_psn = le32_to_cpu(from->rq_psn);
	attr->sq_psn = le32_to_cpu(from->sq_psn);
	attr->qp_access_flags = from->access;
	attr->timeout = from->timeout;
	attr->retry_cnt = from->retry_count;
	attr->rnr_retry = from->rnr_retry;
	attr->min_rnr_timer = from->min_rnr_timer;
	attr->max_rd_atomic = from->reads;
	attr->max_dest_rd_atomic = from->reads_served;
}

int muster_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_qp_init_attr *init_attr)
{
	struct muster_qp *qp = to_mqp(ibqp);
	int err;

	if (ibqp->qp_type == IB_QPT_DRIVER)
		return muster_query_vp(ibqp, attr, mask, init_attr);
	memset(attr, 0, sizeof(*attr));
	memset(init_attr, 0, sizeof(*init_attr));
	mutex_lock(&qp->lock);
	err = state_read(qp, &attr->qp_state);
	encode(&qp->attr, attr);
	if (ibqp->qp_type == IB_QPT_UD)
		attr->sq_psn = qp->datagram_psn;
	mutex_unlock(&qp->lock);
	attr->cur_qp_state = attr->qp_state;
	attr->port_num = 1;
	attr->cap = qp->cap;
	init_attr->cap = qp->cap;
	init_attr->qp_type = ibqp->qp_type;
	init_attr->send_cq = ibqp->send_cq;
	init_attr->recv_cq = ibqp->recv_cq;
	init_attr->srq = ibqp->srq;
	init_attr->sq_sig_type = qp->signals_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	return err;
}

void muster_qp_event(struct muster_dev *dev, u32 number, enum ib_event_type what)
{
	struct ib_event event = { .device = &dev->ibdev, .event = what };
	const bool drained = what == IB_EVENT_QP_LAST_WQE_REACHED;
	struct muster_qp *qp;
	unsigned long flags;

	/*
	 * Under the lock, so that it cannot go meanwhile. Once until it is reset, and not for
	 * ever: until its process reads it, each costs memory of the kernel's. That it is drained
	 * the device says once, but maybe of before a reset: that must not silence the next.
	 */
	xa_lock_irqsave(&dev->qps, flags);
	qp = xa_load(&dev->qps, number % MUSTER_QPS_MAX);
	if (qp && qp->ibqp.qp_num == number && (drained || !qp->failed) &&
	    qp->ibqp.event_handler && qp->told < MUSTER_QP_TOLD_MAX) {
		qp->failed |= !drained;
		qp->told++;
		event.element.qp = &qp->ibqp;
		qp->ibqp.event_handler(&event, qp->ibqp.qp_context);
	}
	xa_unlock_irqrestore(&dev->qps, flags);
}
