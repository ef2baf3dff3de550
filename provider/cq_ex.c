// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues that are looked at in place (ibv_start_poll() and on): one completion at a
 * time, of which each field is asked for by itself. The queue's lock is held from the first to
 * ibv_end_poll(). Times, VLANs and tags there are not.
 */
#include "muster.h"

#include <errno.h>

static struct muster_cq *to_mcq_ex(struct ibv_cq_ex *ex)
{
	return container_of(ex, struct muster_cq, ibvcq_ex);
}

/* ---- one completion after the other -------------------------------------------------- */

static int next_poll(struct ibv_cq_ex *ex)
{
	struct muster_cq *cq = to_mcq_ex(ex);

	if (!muster_cq_take(cq, 1, &cq->now))
		return ENOENT;
	ex->wr_id = cq->now.wr_id;
	ex->status = cq->now.status;
	return 0;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	int err;

	if (attr->comp_mask)
		return EINVAL;
	pthread_mutex_lock(&to_mcq_ex(ex)->lock);
	err = next_poll(ex);
	if (err)
		pthread_mutex_unlock(&to_mcq_ex(ex)->lock);
	return err;
}

static void end_poll(struct ibv_cq_ex *ex)
{
	pthread_mutex_unlock(&to_mcq_ex(ex)->lock);
}

/* ---- what it says -------------------------------------------------------------------- */

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return to_mcq_ex(ex)->now.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return to_mcq_ex(ex)->now.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return to_mcq_ex(ex)->now.byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	return to_mcq_ex(ex)->now.imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return to_mcq_ex(ex)->now.qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return to_mcq_ex(ex)->now.src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
	return to_mcq_ex(ex)->now.wc_flags;
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
	return to_mcq_ex(ex)->now.slid;
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
	return to_mcq_ex(ex)->now.sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
	return to_mcq_ex(ex)->now.dlid_path_bits;
}

/* ---- life ---------------------------------------------------------------------------- */

/* A lock that nobody else wants costs little: who says that there is one thread gets it, too. */
static int check(const struct ibv_cq_init_attr_ex *attr)
{
	bool has_flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS;

	if (attr->wc_flags & ~(uint64_t)IBV_WC_STANDARD_FLAGS ||
	    attr->comp_mask & ~(uint32_t)IBV_CQ_INIT_ATTR_MASK_FLAGS ||
	    (has_flags && attr->flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED))
		return EOPNOTSUPP;
	return 0;
}

struct ibv_cq_ex *muster_create_cq_ex(struct ibv_context *ibvctx, struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq_ex *ex;
	struct ibv_cq *ibvcq;

	errno = check(attr);
	if (errno)
		return NULL;
	ibvcq = muster_cq_create(ibvctx, attr->cqe, attr->channel, attr->comp_vector,
				 MUSTER_CQ_FOR_QPS);
	if (!ibvcq)
		return NULL;
	ex = &to_mcq(ibvcq)->ibvcq_ex;
	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_byte_len = read_byte_len;
	ex->read_imm_data = read_imm_data;
	ex->read_qp_num = read_qp_num;
	ex->read_src_qp = read_src_qp;
	ex->read_wc_flags = read_wc_flags;
	ex->read_slid = read_slid;
	ex->read_sl = read_sl;
	ex->read_dlid_path_bits = read_dlid_path_bits;
	return ex;
}
