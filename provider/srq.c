// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receives that queue pairs share: the process writes them into a ring, and the device takes the
 * oldest when one of its queue pairs needs it. A place is free when the device says that it has
 * taken what was there, although that has not completed yet.
 */
#include "muster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- life -------------------------------------------------------------------------- */

static int queue_map(struct muster_srq *srq, const struct muster_create_srq_resp *resp)
{
	uint8_t *queue = muster_map(srq->ibvsrq.context, resp->queue_offset, resp->queue_bytes,
				    PROT_READ | PROT_WRITE);

	if (!queue)
		return errno;
	srq->queue_bytes = resp->queue_bytes;
	srq->record = (struct muster_srq_record *)queue;
	srq->receives = (struct muster_receive *)(queue + resp->ring_offset);
	return 0;
}

static int srq_open(struct ibv_pd *pd, struct ibv_srq_init_attr *init, struct muster_srq *srq)
{
	struct {
		struct ib_uverbs_create_srq_resp ibv;
		struct muster_create_srq_resp own;
	} resp = {};
	struct ibv_create_srq cmd;
	int err;

	err = ibv_cmd_create_srq(pd, &srq->ibvsrq, init, &cmd, sizeof(cmd), &resp.ibv, sizeof(resp));
	if (err)
		return err;
	srq->ibvsrq.context = pd->context;
	err = queue_map(srq, &resp.own);
	if (err)
		ibv_cmd_destroy_srq(&srq->ibvsrq);
	return err;
}

static bool fits(const struct ibv_srq_attr *attr)
{
	return attr->max_wr && attr->max_wr <= MUSTER_QP_ENTRIES_MAX &&
	       attr->max_sge <= MUSTER_QP_RECEIVE_SGES_MAX;
}

struct ibv_srq *muster_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	struct muster_srq *srq;
	int err;

	errno = EINVAL;
	if (!fits(&init->attr))
		return NULL;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	pthread_mutex_init(&srq->lock, NULL);
	init->attr.max_wr = muster_power_of_two(init->attr.max_wr);
	srq->entries = init->attr.max_wr;
	srq->sges = init->attr.max_sge;
	err = srq_open(pd, init, srq);
	if (!err)
		return &srq->ibvsrq;
	pthread_mutex_destroy(&srq->lock);
	free(srq);
	errno = err;
	return NULL;
}

int muster_destroy_srq(struct ibv_srq *ibvsrq)
{
	struct muster_srq *srq = to_msrq(ibvsrq);
	int err = destroyed(ibv_cmd_destroy_srq(ibvsrq));

	if (err)
		return err;
	muster_unmap(srq->record, srq->queue_bytes);
	pthread_mutex_destroy(&srq->lock);
	free(srq);
	return 0;
}

int muster_modify_srq(struct ibv_srq *ibvsrq, struct ibv_srq_attr *attr, int mask)
{
	struct ibv_modify_srq cmd;

	return ibv_cmd_modify_srq(ibvsrq, attr, mask, &cmd, sizeof(cmd));
}

int muster_query_srq(struct ibv_srq *ibvsrq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd;

	return ibv_cmd_query_srq(ibvsrq, attr, &cmd, sizeof(cmd));
}

/* ---- receives ---------------------------------------------------------------------- */

static bool full(const struct muster_srq *srq)
{
	return srq->tail - le32toh(__atomic_load_n(&srq->record->head, __ATOMIC_ACQUIRE)) >=
	       srq->entries;
}

static int post(struct muster_srq *srq, const struct ibv_recv_wr *wr)
{
	if (full(srq))
		return ENOMEM;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > srq->sges)
		return EINVAL;
	muster_receive_put(&srq->receives[srq->tail & (srq->entries - 1)], wr);
	srq->tail++;
	return 0;
}

int muster_post_srq_recv(struct ibv_srq *ibvsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct muster_srq *srq = to_msrq(ibvsrq);
	int err = 0;

	pthread_mutex_lock(&srq->lock);
	for (; wr && !err; wr = err ? wr : wr->next)
		err = post(srq, wr);
	__atomic_store_n(&srq->record->tail, htole32(srq->tail), __ATOMIC_RELEASE);
	pthread_mutex_unlock(&srq->lock);
	if (err)
		*bad = wr;
	return err;
}
