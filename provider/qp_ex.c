// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests that are put together call by call (ibv_wr_start() and on): each is written in its
 * place in the ring, and the device learns of all of them at ibv_wr_complete(). The send queue's
 * lock is held from the first to that, or to ibv_wr_abort(). What fails in between fails there.
 */
#include "muster.h"

#include <errno.h>
#include <string.h>

static struct muster_qp *to_mqp_ex(struct ibv_qp_ex *ex)
{
	return to_mqp(&ex->qp_base);
}

static void fail(struct muster_qp *qp, int err)
{
	if (!qp->batch.err)
		qp->batch.err = err;
	qp->batch.work = NULL;
}

/* ---- a request begins ---------------------------------------------------------------- */

/* NULL: one of them has failed, and all will. */
static struct muster_work *begin(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
	struct muster_qp *qp = to_mqp_ex(ex);
	struct muster_work *work;

	if (muster_qp_in_reset(qp))
		fail(qp, EINVAL);
	if (muster_queue_full(&qp->sq))
		fail(qp, ENOMEM);
	if (qp->batch.err)
		return NULL;
	work = &qp->requests[muster_queue_place(&qp->sq)];
	memset(work, 0, offsetof(struct muster_work, sges));
	work->wr_id = htole64(ex->wr_id);
	work->opcode = opcode;
	work->flags = htole16(ex->wr_flags & MUSTER_WORK_FLAGS & ~MUSTER_WORK_INLINE);
	muster_queue_put(&qp->sq, ex->wr_id);
	qp->batch.work = work;
	return work;
}

static void wr_send(struct ibv_qp_ex *ex)
{
	begin(ex, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	struct muster_work *work = begin(ex, IBV_WR_SEND_WITH_IMM);

	if (work)
		work->imm = imm;
}

static struct muster_work *rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey,
				uint64_t addr)
{
	struct muster_work *work = begin(ex, opcode);

	if (work) {
		work->remote_addr = htole64(addr);
		work->remote_key = htole32(rkey);
	}
	return work;
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	rdma(ex, IBV_WR_RDMA_WRITE, rkey, addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 imm)
{
	struct muster_work *work = rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr);

	if (work)
		work->imm = imm;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	rdma(ex, IBV_WR_RDMA_READ, rkey, addr);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr,
			      uint64_t compare, uint64_t swap)
{
	struct muster_work *work = rdma(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, addr);

	if (work) {
		work->compare_add = htole64(compare);
		work->swap = htole64(swap);
	}
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t add)
{
	struct muster_work *work = rdma(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, addr);

	if (work)
		work->compare_add = htole64(add);
}

/* ---- what it is of, and where it goes -------------------------------------------------- */

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct muster_work *work = to_mqp_ex(ex)->batch.work;

	if (!work)
		return;
	work->dest_node = htole32(to_mah(ah)->node);
	work->dest_qp = htole32(qpn);
	work->qkey = htole32(qkey);
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t nr, const struct ibv_sge *sges)
{
	struct muster_qp *qp = to_mqp_ex(ex);

	if (nr > qp->sq.sges)
		fail(qp, EINVAL);
	if (!qp->batch.work)
		return;
	qp->batch.work->nr_sges = nr;
	muster_sges_put(qp->batch.work->sges, sges, nr);
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	const struct ibv_sge sge = { addr, length, lkey };

	wr_set_sge_list(ex, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t nr, const struct ibv_data_buf *bufs)
{
	struct muster_qp *qp = to_mqp_ex(ex);
	struct muster_work *work = qp->batch.work;
	uint32_t length = 0;

	for (size_t i = 0; i < nr && work; i++) {
		if (bufs[i].length > MUSTER_QP_INLINE_MAX - length) {
			fail(qp, EINVAL);
			return;
		}
		memcpy(work->data + length, bufs[i].addr, bufs[i].length);
		length += bufs[i].length;
	}
	if (!work)
		return;
	work->flags |= htole16(MUSTER_WORK_INLINE);
	work->inline_len = htole32(length);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	const struct ibv_data_buf buf = { addr, length };

	wr_set_inline_data_list(ex, 1, &buf);
}

/* ---- all of them ----------------------------------------------------------------------- */

static void wr_start(struct ibv_qp_ex *ex)
{
	struct muster_qp *qp = to_mqp_ex(ex);

	pthread_mutex_lock(&qp->sq.lock);
	qp->batch.tail = qp->sq.tail;
	qp->batch.err = 0;
	qp->batch.work = NULL;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	struct muster_qp *qp = to_mqp_ex(ex);

	qp->sq.tail = qp->batch.tail;
	pthread_mutex_unlock(&qp->sq.lock);
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct muster_qp *qp = to_mqp_ex(ex);
	int err = qp->batch.err;

	if (err) {
		wr_abort(ex);
		return err;
	}
	if (qp->sq.tail != qp->batch.tail)
		muster_sends_publish(qp);
	pthread_mutex_unlock(&qp->sq.lock);
	return 0;
}

/* ---- life ------------------------------------------------------------------------------ */

static void ops_set(struct ibv_qp_ex *ex)
{
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
}

/*
 * Where libibverbs finds out that there are these. That of 44 looks where later ones have an
 * operation that was added, and that is not offered here.
 */
static void ex_mark(struct verbs_qp *vqp)
{
	const uint32_t mask = VERBS_QP_EX;

	vqp->comp_mask |= mask;
	memcpy(&vqp->qp_ex.wr_flush, &mask, sizeof(mask));
}

/* Each is asked for by itself, so that who needs what there is not learns it here. */
static int check(const struct ibv_qp_init_attr_ex *attr)
{
	const uint64_t sends = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
	const uint64_t ops = attr->qp_type == IBV_QPT_UD ? sends : sends |
		IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
		IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
		IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD))
		return EINVAL;
	if (attr->comp_mask & ~(uint32_t)(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS && attr->send_ops_flags & ~ops)
		return EOPNOTSUPP;
	return 0;
}

struct ibv_qp *muster_create_qp_ex(struct ibv_context *ibvctx, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_init_attr plain = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
	};
	struct ibv_qp *ibvqp;

	(void)ibvctx;
	errno = check(attr);
	if (errno)
		return NULL;
	ibvqp = muster_create_qp(attr->pd, &plain);
	if (!ibvqp)
		return NULL;
	attr->cap = plain.cap;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		ops_set(&to_mqp(ibvqp)->vqp.qp_ex);
		ex_mark(&to_mqp(ibvqp)->vqp);
	}
	return ibvqp;
}
