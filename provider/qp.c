// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs of ordinary verbs: the process writes requests into rings and rings the device.
 * Sends are rung for; receives are looked for by the device when it needs one, but for those
 * of a queue pair that has failed, which it has to flush. When the device has died, polling
 * flushes what is left (cq.c).
 */
#include "muster.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- address handles: the node, and nothing in the kernel ---------------------------- */

static const uint8_t gid_start[] = { 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 'M', 'S', 'T', 0 };

/* Its GID; or the LID that is short for it. False: it is nobody's. */
static bool node_of(const struct ibv_ah_attr *attr, uint32_t *node)
{
	const uint8_t *gid = attr->grh.dgid.raw;

	if (!attr->is_global) {
		*node = attr->dlid - 1;
		return attr->dlid;
	}
	*node = gid[13] << 16 | gid[14] << 8 | gid[15];
	return !memcmp(gid, gid_start, sizeof(gid_start));
}

struct ibv_ah *muster_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct muster_ah *ah;
	uint32_t node;

	(void)pd;
	errno = EINVAL;
	if (attr->port_num != 1 || !node_of(attr, &node))
		return NULL;
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	ah->node = node;
	return &ah->ibvah;
}

int muster_destroy_ah(struct ibv_ah *ibvah)
{
	free(to_mah(ibvah));
	return 0;
}

/* ---- life -------------------------------------------------------------------------- */

static uint32_t entries_of(uint32_t n)
{
	return n ? muster_power_of_two(n) : 0;
}

static bool cap_check(const struct ibv_qp_cap *cap)
{
	return cap->max_send_wr <= MUSTER_QP_ENTRIES_MAX && cap->max_recv_wr <= MUSTER_QP_ENTRIES_MAX &&
	       cap->max_send_sge <= MUSTER_QP_SGES_MAX && cap->max_recv_sge <= MUSTER_QP_RECEIVE_SGES_MAX &&
	       cap->max_inline_data <= MUSTER_QP_INLINE_MAX;
}

static int queues_map(struct muster_qp *qp, const struct muster_create_qp_resp *resp)
{
	uint8_t *queues = muster_map(qp->ibvqp.context, resp->queues_offset, resp->queues_bytes,
				     PROT_READ | PROT_WRITE);

	if (!queues)
		return errno;
	qp->queues = queues;
	qp->queues_bytes = resp->queues_bytes;
	qp->record = (struct muster_qp_record *)queues;
	qp->requests = (struct muster_work *)(queues + resp->sq_offset);
	qp->receives = (struct muster_receive *)(queues + resp->rq_offset);
	return 0;
}

static int qp_open(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct muster_qp *qp)
{
	struct {
		struct ib_uverbs_create_qp_resp ibv;
		struct muster_create_qp_resp own;
	} resp = {};
	struct ibv_create_qp cmd;
	int err;

	err = ibv_cmd_create_qp(pd, &qp->ibvqp, attr, &cmd, sizeof(cmd), &resp.ibv, sizeof(resp));
	if (err)
		return err;
	err = queues_map(qp, &resp.own);
	if (err)
		ibv_cmd_destroy_qp(&qp->ibvqp);
	return err;
}

/* Where completions find it by its number. */
static void qp_known(struct muster_context *ctx, uint32_t number, struct muster_qp *qp)
{
	pthread_mutex_lock(&ctx->qps_lock);
	ctx->qps[number % MUSTER_QPS_MAX] = qp;
	pthread_mutex_unlock(&ctx->qps_lock);
}

static int queue_init(struct muster_queue *queue, uint32_t entries, uint32_t sges)
{
	pthread_mutex_init(&queue->lock, NULL);
	queue->entries = entries;
	queue->sges = sges;
	queue->wr_ids = calloc(entries + 1, sizeof(*queue->wr_ids));
	return queue->wr_ids ? 0 : ENOMEM;
}

static int queues_init(struct muster_qp *qp, const struct ibv_qp_cap *cap)
{
	return queue_init(&qp->sq, cap->max_send_wr, cap->max_send_sge) |
	       queue_init(&qp->rq, cap->max_recv_wr, cap->max_recv_sge);
}

static void queue_free(struct muster_queue *queue)
{
	pthread_mutex_destroy(&queue->lock);
	free(queue->wr_ids);
}

static void qp_free(struct muster_qp *qp)
{
	queue_free(&qp->sq);
	queue_free(&qp->rq);
	free(qp);
}

struct ibv_qp *muster_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct muster_qp *qp;
	int err;

	errno = EINVAL;
	if (!cap_check(&attr->cap))
		return NULL;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	attr->cap.max_send_wr = entries_of(attr->cap.max_send_wr);
	attr->cap.max_recv_wr = attr->srq ? 0 : entries_of(attr->cap.max_recv_wr);
	attr->cap.max_inline_data = MUSTER_QP_INLINE_MAX;
	err = queues_init(qp, &attr->cap);
	if (!err)
		err = qp_open(pd, attr, qp);
	if (err) {
		qp_free(qp);
		errno = err;
		return NULL;
	}
	qp_known(to_mctx(pd->context), qp->ibvqp.qp_num, qp);
	return &qp->ibvqp;
}

/* A virtual port is no struct muster_qp: it belongs to the direct verbs. */
static bool is_port(const struct ibv_qp *ibvqp)
{
	return ibvqp->qp_type == IBV_QPT_DRIVER;
}

int muster_destroy_qp(struct ibv_qp *ibvqp)
{
	struct muster_qp *qp = to_mqp(ibvqp);
	int err = is_port(ibvqp) ? EOPNOTSUPP : destroyed(ibv_cmd_destroy_qp(ibvqp));

	if (err)
		return err;
	/* What is left of it in completion queues is passed over from now on. */
	qp_known(to_mctx(ibvqp->context), ibvqp->qp_num, NULL);
	muster_unmap(qp->queues, qp->queues_bytes);
	qp_free(qp);
	return 0;
}

int muster_query_qp(struct ibv_qp *ibvqp, struct ibv_qp_attr *attr, int mask,
		    struct ibv_qp_init_attr *init_attr)
{
	struct ibv_query_qp cmd;

	return ibv_cmd_query_qp(ibvqp, attr, mask, init_attr, &cmd, sizeof(cmd));
}

/* Its completions of before are nobody's. */
static void qp_reset(struct muster_qp *qp)
{
	qp->sq.stale_until = muster_cq_tail(qp->ibvqp.send_cq);
	qp->rq.stale_until = muster_cq_tail(qp->ibvqp.recv_cq);
	qp->sq.head = qp->sq.tail = qp->rq.head = qp->rq.tail = 0;
	memset(qp->record, 0, sizeof(*qp->record));
}

/* The kernel knows a node by its GID alone. False: it is nobody's. */
static bool path_complete(struct ibv_ah_attr *path)
{
	uint8_t *gid = path->grh.dgid.raw;
	uint32_t node;

	if (!node_of(path, &node))
		return false;
	path->is_global = 1;
	path->grh.sgid_index = 0;
	memset(gid, 0, sizeof(path->grh.dgid.raw));
	memcpy(gid, gid_start, sizeof(gid_start));
	gid[13] = node >> 16;
	gid[14] = node >> 8;
	gid[15] = node;
	return true;
}

static int modify(struct ibv_qp *ibvqp, const struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp_attr complete = *attr;
	struct ibv_modify_qp cmd;

	if (is_port(ibvqp))
		return EOPNOTSUPP;
	if (mask & IBV_QP_AV && !path_complete(&complete.ah_attr))
		return EINVAL;
	return ibv_cmd_modify_qp(ibvqp, &complete, mask, &cmd, sizeof(cmd));
}

int muster_modify_qp(struct ibv_qp *ibvqp, struct ibv_qp_attr *attr, int mask)
{
	int err = modify(ibvqp, attr, mask);

	if (!err && (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET)
		qp_reset(to_mqp(ibvqp));
	return err;
}

/* ---- requests ---------------------------------------------------------------------- */

void muster_sges_put(struct muster_sge *to, const struct ibv_sge *from, int nr)
{
	for (int i = 0; i < nr; i++) {
		to[i].addr = htole64(from[i].addr);
		to[i].length = htole32(from[i].length);
		to[i].key = htole32(from[i].lkey);
	}
}

/* 0; -EINVAL: more than fits. */
static int inline_put(struct muster_work *work, const struct ibv_sge *sges, int nr)
{
	uint32_t length = 0;

	for (int i = 0; i < nr; i++) {
		if (sges[i].length > MUSTER_QP_INLINE_MAX - length)
			return EINVAL;
		memcpy(work->data + length, (void *)(uintptr_t)sges[i].addr, sges[i].length);
		length += sges[i].length;
	}
	work->inline_len = htole32(length);
	return 0;
}

/* What datagrams say beside. */
static void datagram_put(struct muster_work *work, const struct ibv_send_wr *wr)
{
	work->dest_node = htole32(to_mah(wr->wr.ud.ah)->node);
	work->dest_qp = htole32(wr->wr.ud.remote_qpn);
	work->qkey = htole32(wr->wr.ud.remote_qkey);
}

static void rdma_put(struct muster_work *work, const struct ibv_send_wr *wr)
{
	work->remote_addr = htole64(wr->wr.rdma.remote_addr);
	work->remote_key = htole32(wr->wr.rdma.rkey);
}

static void atomic_put(struct muster_work *work, const struct ibv_send_wr *wr)
{
	work->remote_addr = htole64(wr->wr.atomic.remote_addr);
	work->remote_key = htole32(wr->wr.atomic.rkey);
	work->compare_add = htole64(wr->wr.atomic.compare_add);
	work->swap = htole64(wr->wr.atomic.swap);
}

/* What its operation needs: 0; EINVAL: this type has no such operation. */
static int operation_put(const struct muster_qp *qp, const struct ibv_send_wr *wr,
			 struct muster_work *work)
{
	bool datagram = qp->ibvqp.qp_type == IBV_QPT_UD;

	switch (wr->opcode) {
	case IBV_WR_SEND_WITH_IMM:
		work->imm = wr->imm_data;
		/* fall through */
	case IBV_WR_SEND:
		if (datagram)
			datagram_put(work, wr);
		return 0;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		work->imm = wr->imm_data;
		/* fall through */
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
		rdma_put(work, wr);
		return datagram ? EINVAL : 0;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		atomic_put(work, wr);
		return datagram ? EINVAL : 0;
	default:
		return EINVAL;
	}
}

static int send_put(const struct muster_qp *qp, const struct ibv_send_wr *wr,
		    struct muster_work *work)
{
	int err;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->sq.sges)
		return EINVAL;
	memset(work, 0, offsetof(struct muster_work, sges));
	work->wr_id = htole64(wr->wr_id);
	work->opcode = wr->opcode;
	work->flags = htole16(wr->send_flags & MUSTER_WORK_FLAGS);
	err = operation_put(qp, wr, work);
	if (err)
		return err;
	if (wr->send_flags & IBV_SEND_INLINE)
		return inline_put(work, wr->sg_list, wr->num_sge);
	work->nr_sges = wr->num_sge;
	muster_sges_put(work->sges, wr->sg_list, wr->num_sge);
	return 0;
}

static int send_one(struct muster_qp *qp, const struct ibv_send_wr *wr)
{
	int err;

	if (muster_qp_in_reset(qp))
		return EINVAL;
	if (muster_queue_full(&qp->sq))
		return ENOMEM;
	err = send_put(qp, wr, &qp->requests[muster_queue_place(&qp->sq)]);
	if (!err)
		muster_queue_put(&qp->sq, wr->wr_id);
	return err;
}

void muster_sends_publish(struct muster_qp *qp)
{
	__atomic_store_n(&qp->record->sq_tail, htole32(qp->sq.tail), __ATOMIC_RELEASE);
	muster_ring(qp->ibvqp.context, MUSTER_BELL_QP, qp->ibvqp.qp_num);
}

int muster_post_send(struct ibv_qp *ibvqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct muster_qp *qp = to_mqp(ibvqp);
	uint32_t before;
	int err = 0;

	if (is_port(ibvqp)) {
		*bad = wr;
		return EOPNOTSUPP;
	}
	pthread_mutex_lock(&qp->sq.lock);
	before = qp->sq.tail;
	for (; wr && !err; wr = err ? wr : wr->next)
		err = send_one(qp, wr);
	if (qp->sq.tail != before)
		muster_sends_publish(qp);
	pthread_mutex_unlock(&qp->sq.lock);
	if (err)
		*bad = wr;
	return err;
}

void muster_receive_put(struct muster_receive *receive, const struct ibv_recv_wr *wr)
{
	receive->wr_id = htole64(wr->wr_id);
	receive->nr_sges = wr->num_sge;
	muster_sges_put(receive->sges, wr->sg_list, wr->num_sge);
}

static int receive_one(struct muster_qp *qp, const struct ibv_recv_wr *wr)
{
	if (muster_qp_in_reset(qp))
		return EINVAL;
	if (muster_queue_full(&qp->rq))
		return ENOMEM;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->rq.sges)
		return EINVAL;
	muster_receive_put(&qp->receives[muster_queue_place(&qp->rq)], wr);
	muster_queue_put(&qp->rq, wr->wr_id);
	return 0;
}

int muster_post_recv(struct ibv_qp *ibvqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct muster_qp *qp = to_mqp(ibvqp);
	int err = 0;

	if (is_port(ibvqp)) {
		*bad = wr;
		return EOPNOTSUPP;
	}
	pthread_mutex_lock(&qp->rq.lock);
	for (; wr && !err; wr = err ? wr : wr->next)
		err = receive_one(qp, wr);
	/* In this order: the device finds the tail when it fails, or this sees that it has. */
	__atomic_store_n(&qp->record->rq_tail, htole32(qp->rq.tail), __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&qp->record->failed, __ATOMIC_SEQ_CST))
		muster_ring(ibvqp->context, MUSTER_BELL_QP, ibvqp->qp_num);
	pthread_mutex_unlock(&qp->rq.lock);
	if (err)
		*bad = wr;
	return err;
}
