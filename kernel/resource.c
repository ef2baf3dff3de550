// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What `rdma -dd resource show` tells of an object beside what the core knows. The core
 * may ask for queue pairs and completion queues while they are destroyed (see
 * muster_query_vp()), so this reads numbers of the object's own alone; but for the
 * status page, under the lock under which the port is forgotten before that page goes.
 */
#include "muster.h"

#include <net/netlink.h>
#include <rdma/ib_umem.h>
#include <rdma/rdma_netlink.h>

/* The nest is taken back if something in it did not fit. */
static int details_end(struct sk_buff *msg, struct nlattr *details, bool full)
{
	if (full) {
		nla_nest_cancel(msg, details);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, details);
	return 0;
}

int muster_fill_res_mr(struct sk_buff *msg, struct ib_mr *ibmr)
{
	const struct muster_mr *mr = to_mmr(ibmr);
	struct nlattr *details = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	bool full;

	if (!details)
		return -EMSGSIZE;
	full = rdma_nl_put_driver_u32(msg, "page_size", mr->page_size) ||
	       rdma_nl_put_driver_u32(msg, "pages", mr->nr_pages) ||
	       rdma_nl_put_driver_string(msg, "access", mr->umem->writable ? "rw" : "r");
	return details_end(msg, details, full);
}

int muster_fill_res_cq(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct muster_cq *cq = to_mcq(ibcq);
	struct nlattr *details = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	bool full;

	if (!details)
		return -EMSGSIZE;
	full = rdma_nl_put_driver_u32(msg, "cq_id", cq->id) ||
	       rdma_nl_put_driver_u32(msg, "vector", cq->vector - to_mdev(ibcq->device)->vectors) ||
	       rdma_nl_put_driver_u32(msg, "armed", muster_cq_armed(cq)) ||
	       rdma_nl_put_driver_u32(msg, "overrun", READ_ONCE(cq->overrun));
	return details_end(msg, details, full);
}

/* What the device says of a port; of one that is being destroyed nothing. */
static struct muster_vp_status status_read(struct ib_qp *ibqp)
{
	struct muster_dev *dev = to_mdev(ibqp->device);
	struct muster_vp *vp = to_mvp(ibqp);
	struct muster_vp_status status = { };
	unsigned long flags;

	xa_lock_irqsave(&dev->vps, flags);
	if (xa_load(&dev->vps, ibqp->qp_num) == vp)
		memcpy(&status, vp->status->cpu, sizeof(status));
	xa_unlock_irqrestore(&dev->vps, flags);
	return status;
}

static int fill_vp(struct sk_buff *msg, struct ib_qp *ibqp)
{
	const struct muster_vp_status status = status_read(ibqp);
	const struct muster_vp *vp = to_mvp(ibqp);
	struct nlattr *details = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	bool full;

	if (!details)
		return -EMSGSIZE;
	full = rdma_nl_put_driver_u32(msg, "pd_id", vp->pd_id) ||
	       rdma_nl_put_driver_u32(msg, "cq_id", vp->cq_id) ||
	       rdma_nl_put_driver_u32(msg, "dq_entries", vp->dq_entries) ||
	       rdma_nl_put_driver_u32(msg, "rq_entries", vp->rq_entries) ||
	       rdma_nl_put_driver_u32(msg, "contexts", atomic_read(&ibqp->usecnt)) ||
	       rdma_nl_put_driver_u32(msg, "dq_head", le32_to_cpu(status.dq_head)) ||
	       rdma_nl_put_driver_u32(msg, "error", le32_to_cpu(status.error));
	return details_end(msg, details, full);
}

static int fill_qp(struct sk_buff *msg, struct ib_qp *ibqp)
{
	const struct muster_qp *qp = to_mqp(ibqp);
	struct nlattr *details = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	bool full;

	if (!details)
		return -EMSGSIZE;
	full = rdma_nl_put_driver_u32(msg, "sq_entries", qp->cap.max_send_wr) ||
	       rdma_nl_put_driver_u32(msg, "rq_entries", qp->cap.max_recv_wr) ||
	       rdma_nl_put_driver_u32(msg, "failed", READ_ONCE(qp->failed));
	return details_end(msg, details, full);
}

int muster_fill_res_qp(struct sk_buff *msg, struct ib_qp *ibqp)
{
	return ibqp->qp_type == IB_QPT_DRIVER ? fill_vp(msg, ibqp) : fill_qp(msg, ibqp);
}
