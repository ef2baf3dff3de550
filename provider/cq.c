// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues. Those of queue pairs are polled here: each entry is copied, and believed
 * only if its mark is still there (the device may die meanwhile, and then all is zero).
 */
#include "muster.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

uint32_t muster_power_of_two(uint32_t n)
{
	uint32_t power = 1;

	while (power < n)
		power <<= 1;
	return power;
}

/* ---- life -------------------------------------------------------------------------- */

static int maps_open(struct ibv_context *ibvctx, struct muster_cq *cq,
		     const struct muster_create_cq_resp *resp)
{
	int err;

	cq->number = resp->cq;
	cq->entries = resp->entries;
	cq->ring_bytes = resp->ring_bytes;
	cq->ring = muster_map(ibvctx, resp->ring_offset, cq->ring_bytes, PROT_READ);
	if (!cq->ring)
		return errno;
	cq->record = muster_map(ibvctx, resp->record_offset, MUSTER_DOORBELL_STRIDE,
				PROT_READ | PROT_WRITE);
	if (!cq->record) {
		err = errno;
		muster_unmap(cq->ring, cq->ring_bytes);
		return err;
	}
	cq->alive = (struct muster_cq **)(cq->record + 1);
	*cq->alive = cq;
	return 0;
}

static int cq_open(struct ibv_context *ibvctx, int cqe, struct ibv_comp_channel *channel,
		   int comp_vector, uint32_t flags, struct muster_cq *cq)
{
	struct {
		struct ibv_create_cq ibv;
		struct muster_create_cq_cmd own;
	} cmd = { .own.flags = flags };
	struct {
		struct ib_uverbs_create_cq_resp ibv;
		struct muster_create_cq_resp own;
	} resp = {};
	int err;

	cq->for_qps = flags & MUSTER_CQ_FOR_QPS;
	err = ibv_cmd_create_cq(ibvctx, cqe, channel, comp_vector, &cq->ibvcq, &cmd.ibv,
				sizeof(cmd), &resp.ibv, sizeof(resp));
	if (err)
		return err;
	err = maps_open(ibvctx, cq, &resp.own);
	if (err)
		ibv_cmd_destroy_cq(&cq->ibvcq);
	return err;
}

struct ibv_cq *muster_cq_create(struct ibv_context *ibvctx, int cqe,
				struct ibv_comp_channel *channel, int comp_vector, uint32_t flags)
{
	struct muster_cq *cq;
	int err;

	if (cqe < 1 || cqe > MUSTER_CQ_ENTRIES_MAX) {
		errno = EINVAL;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	pthread_mutex_init(&cq->lock, NULL);
	err = cq_open(ibvctx, muster_power_of_two(cqe), channel, comp_vector, flags, cq);
	if (!err)
		return &cq->ibvcq;
	pthread_mutex_destroy(&cq->lock);
	free(cq);
	errno = err;
	return NULL;
}

struct ibv_cq *muster_create_cq(struct ibv_context *ibvctx, int cqe,
				struct ibv_comp_channel *channel, int comp_vector)
{
	return muster_cq_create(ibvctx, cqe, channel, comp_vector, MUSTER_CQ_FOR_QPS);
}

int muster_destroy_cq(struct ibv_cq *ibvcq)
{
	struct muster_cq *cq = to_mcq(ibvcq);
	int err = destroyed(ibv_cmd_destroy_cq(ibvcq));

	if (err)
		return err;
	muster_unmap(cq->record, MUSTER_DOORBELL_STRIDE);
	muster_unmap(cq->ring, cq->ring_bytes);
	pthread_mutex_destroy(&cq->lock);
	free(cq->kept);
	free(cq);
	return 0;
}

int muster_modify_cq(struct ibv_cq *ibvcq, struct ibv_modify_cq_attr *attr)
{
	struct ibv_modify_cq cmd;

	return ibv_cmd_modify_cq(ibvcq, attr, &cmd, sizeof(cmd));
}

/* ---- polling ----------------------------------------------------------------------- */

/* Whether the entry is there; a copy of it, if it is whole. */
static bool ring_read(const struct muster_cq *cq, uint32_t at, struct muster_wc *wc)
{
	const struct muster_wc *entry = (const struct muster_wc *)cq->ring + (at & (cq->entries - 1));
	const volatile uint8_t *mark = &entry->kind;

	if (le32toh(__atomic_load_n(&entry->valid, __ATOMIC_ACQUIRE)) != !(at & cq->entries) || !*mark)
		return false;
	memcpy(wc, entry, sizeof(*wc));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return *mark == MUSTER_CQE_WORK;
}

/* By its count. */
static bool entry_read(const struct muster_cq *cq, uint32_t at, struct muster_wc *wc)
{
	if (at - cq->kept_from >= cq->nr_kept)
		return ring_read(cq, at - cq->origin, wc);
	*wc = cq->kept[at - cq->kept_from];
	return wc->kind == MUSTER_CQE_WORK;
}

static void wc_fill(const struct muster_wc *from, struct ibv_wc *to)
{
	*to = (struct ibv_wc){
		.wr_id = le64toh(from->wr_id),
		.status = from->status,
		.opcode = from->opcode,
		.byte_len = le32toh(from->length),
		.imm_data = from->imm,
		.qp_num = le32toh(from->qp),
		.src_qp = le32toh(from->src_qp),
		.wc_flags = (from->flags & MUSTER_WC_GRH ? IBV_WC_GRH : 0) |
			    (from->flags & MUSTER_WC_WITH_IMM ? IBV_WC_WITH_IMM : 0),
		.slid = le32toh(from->src_node) + 1,
	};
}

static struct muster_queue *queue_of(struct muster_qp *qp, const struct muster_wc *wc)
{
	return wc->opcode & MUSTER_WC_RECV ? &qp->rq : &qp->sq;
}

/* A place in a queue that is shared is free before what was there completes. */
static void place_free(struct muster_qp *qp, const struct muster_wc *wc)
{
	if (!qp->ibvqp.srq || !(wc->opcode & MUSTER_WC_RECV))
		__atomic_store_n(&queue_of(qp, wc)->head, le32toh(wc->index) + 1, __ATOMIC_RELEASE);
}

/* Whether it is of a queue pair that there is, and was not reset since; others are passed over. */
static bool deliver(struct muster_cq *cq, const struct muster_wc *wc, struct ibv_wc *to)
{
	struct muster_context *ctx = to_mctx(cq->ibvcq.context);
	uint32_t number = le32toh(wc->qp);
	struct muster_qp *qp;

	pthread_mutex_lock(&ctx->qps_lock);
	qp = ctx->qps[number % MUSTER_QPS_MAX];
	if (qp && (qp->ibvqp.qp_num != number ||
		   (int32_t)(queue_of(qp, wc)->stale_until - cq->head) > 0))
		qp = NULL;
	if (qp) {
		place_free(qp, wc);
		wc_fill(wc, to);
	}
	pthread_mutex_unlock(&ctx->qps_lock);
	return qp;
}

static int completions_take(struct muster_cq *cq, int nr, struct ibv_wc *to)
{
	uint32_t before = cq->head;
	struct muster_wc wc;
	int done = 0;

	while (done < nr && entry_read(cq, cq->head, &wc)) {
		done += deliver(cq, &wc, &to[done]);
		cq->head++;
	}
	if (cq->head - cq->kept_from >= cq->nr_kept)
		cq->nr_kept = 0;
	if (cq->head != before)
		__atomic_store_n(&cq->record->head, htole32(cq->head), __ATOMIC_RELEASE);
	return done;
}

/* ---- a dead device: what is outstanding is flushed here -------------------------------- */

static bool dead(struct muster_cq *cq)
{
	cq->dead |= __atomic_load_n(cq->alive, __ATOMIC_RELAXED) != cq;
	return cq->dead;
}

static int queue_flush(const struct muster_qp *qp, struct muster_queue *queue,
		       enum ibv_wc_opcode opcode, int nr, struct ibv_wc *to)
{
	int done = 0;

	pthread_mutex_lock(&queue->lock);
	for (; done < nr && queue->head != queue->tail; done++) {
		to[done] = (struct ibv_wc){
			.wr_id = queue->wr_ids[queue->head & (queue->entries - 1)],
			.status = IBV_WC_WR_FLUSH_ERR,
			.opcode = opcode,
			.qp_num = qp->ibvqp.qp_num,
		};
		__atomic_store_n(&queue->head, queue->head + 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&queue->lock);
	return done;
}

static int flush(struct muster_cq *cq, int nr, struct ibv_wc *to)
{
	struct muster_context *ctx = to_mctx(cq->ibvcq.context);
	int done = 0;

	pthread_mutex_lock(&ctx->qps_lock);
	for (uint32_t i = 0; i < MUSTER_QPS_MAX && done < nr; i++) {
		struct muster_qp *qp = ctx->qps[i];

		if (qp && qp->ibvqp.send_cq == &cq->ibvcq)
			done += queue_flush(qp, &qp->sq, IBV_WC_SEND, nr - done, &to[done]);
		if (qp && qp->ibvqp.recv_cq == &cq->ibvcq)
			done += queue_flush(qp, &qp->rq, IBV_WC_RECV, nr - done, &to[done]);
	}
	pthread_mutex_unlock(&ctx->qps_lock);
	return done;
}

int muster_cq_take(struct muster_cq *cq, int nr, struct ibv_wc *to)
{
	int done = 0;

	if (!cq->dead)
		done = completions_take(cq, nr, to);
	if (!done && dead(cq))
		done = flush(cq, nr, to);
	return done;
}

int muster_poll_cq(struct ibv_cq *ibvcq, int nr, struct ibv_wc *to)
{
	struct muster_cq *cq = to_mcq(ibvcq);
	int done;

	if (!cq->for_qps)
		return -EOPNOTSUPP;
	pthread_mutex_lock(&cq->lock);
	done = muster_cq_take(cq, nr, to);
	pthread_mutex_unlock(&cq->lock);
	return done;
}

/* ---- another ring ------------------------------------------------------------------- */

/* What is there, up to where the new ring begins; of a device that has died, nothing. */
static void entries_keep(struct muster_cq *cq, struct muster_wc *kept, uint32_t until)
{
	for (uint32_t at = cq->head; at != until; at++)
		if (!entry_read(cq, at, &kept[at - cq->head]))
			kept[at - cq->head].kind = 0;
	free(cq->kept);
	cq->kept = kept;
	cq->kept_from = cq->head;
	cq->nr_kept = until - cq->head;
}

static int resize_call(struct muster_cq *cq, uint32_t entries, uint32_t flags,
		       struct muster_resize_cq_resp *own)
{
	struct {
		struct ibv_resize_cq ibv;
		struct muster_resize_cq_cmd own;
	} cmd = { .own.flags = flags };
	struct {
		struct ib_uverbs_resize_cq_resp ibv;
		struct muster_resize_cq_resp own;
	} resp = {};
	int err;

	err = ibv_cmd_resize_cq(&cq->ibvcq, entries, &cmd.ibv, sizeof(cmd), &resp.ibv, sizeof(resp));
	*own = resp.own;
	return err;
}

/* The device changes to a ring that is mapped already: so whatever fails, the queue has one. */
static int ring_change(struct muster_cq *cq, void *ring, uint32_t entries, struct muster_wc *kept)
{
	struct muster_resize_cq_resp resp;
	int err = resize_call(cq, entries, 0, &resp);

	/* No device can have so many. */
	if (!err && resp.origin - cq->head > cq->entries)
		err = EIO;
	if (err)
		return err;
	entries_keep(cq, kept, resp.origin);
	muster_unmap(cq->ring, cq->ring_bytes);
	cq->ring = ring;
	cq->ring_bytes = resp.ring_bytes;
	cq->entries = resp.entries;
	cq->origin = resp.origin;
	return 0;
}

static int resize(struct muster_cq *cq, uint32_t entries)
{
	struct muster_wc *kept = calloc(cq->entries, sizeof(*kept));
	struct muster_resize_cq_resp resp;
	void *ring;
	int err;

	if (!kept)
		return ENOMEM;
	err = resize_call(cq, entries, MUSTER_RESIZE_PREPARE, &resp);
	if (err)
		goto err_free;
	ring = muster_map(cq->ibvcq.context, resp.ring_offset, resp.ring_bytes, PROT_READ);
	if (!ring) {
		err = errno;
		goto err_free;
	}
	err = ring_change(cq, ring, entries, kept);
	if (!err)
		return 0;
	muster_unmap(ring, resp.ring_bytes);
err_free:
	free(kept);
	return err;
}

int muster_resize_cq(struct ibv_cq *ibvcq, int cqe)
{
	struct muster_cq *cq = to_mcq(ibvcq);
	int err;

	if (!cq->for_qps)
		return EOPNOTSUPP;
	if (cqe < 1 || cqe > MUSTER_CQ_ENTRIES_MAX)
		return EINVAL;
	pthread_mutex_lock(&cq->lock);
	err = resize(cq, muster_power_of_two(cqe));
	pthread_mutex_unlock(&cq->lock);
	return err;
}

/* ---- sleeping ----------------------------------------------------------------------- */

/* How many there are. */
static uint32_t tail(struct muster_cq *cq)
{
	struct muster_wc wc;

	if ((int32_t)(cq->seen - cq->head) < 0)
		cq->seen = cq->head;
	while (cq->seen - cq->head < cq->entries && entry_read(cq, cq->seen, &wc))
		cq->seen++;
	return cq->seen;
}

uint32_t muster_cq_tail(struct ibv_cq *ibvcq)
{
	struct muster_cq *cq = to_mcq(ibvcq);
	uint32_t at;

	pthread_mutex_lock(&cq->lock);
	at = tail(cq);
	pthread_mutex_unlock(&cq->lock);
	return at;
}

/* The driver tells a queue as often as this has counted, and no more. */
static void want(struct muster_cq *cq, bool solicited_only)
{
	cq->arms = (cq->arms & ~1u) + 2 + solicited_only;
	__atomic_store_n(&cq->record->arm, htole32(cq->arms), __ATOMIC_RELEASE);
}

int muster_cq_want(struct muster_cq *cq)
{
	want(cq, false);
	return dead(cq) ? EIO : 0;
}

/*
 * Does not enter the kernel. The device looks whether it is armed after it has written an entry,
 * so it is rung only where one came meanwhile.
 */
int muster_req_notify_cq(struct ibv_cq *ibvcq, int solicited_only)
{
	struct muster_cq *cq = to_mcq(ibvcq);
	uint32_t before;
	bool gone;

	if (!cq->for_qps)
		return EOPNOTSUPP;
	pthread_mutex_lock(&cq->lock);
	before = tail(cq);
	__atomic_store_n(&cq->record->armed_at, htole32(before), __ATOMIC_RELAXED);
	want(cq, solicited_only);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (tail(cq) != before)
		muster_ring(ibvcq->context, MUSTER_BELL_CQ, cq->number);
	gone = dead(cq);
	pthread_mutex_unlock(&cq->lock);
	return gone ? EIO : 0;
}
