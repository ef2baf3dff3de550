// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The ordinary verbs: device, port, protection domain, memory, completion queue.
 * Queue pairs, and what stands in a completion queue, belong to the direct verbs.
 */
#include "muster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static int query_device_ex(struct ibv_context *ibvctx,
			   const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ib_uverbs_ex_query_device_resp resp;
	size_t resp_size = sizeof(resp);
	int err;

	err = ibv_cmd_query_device_any(ibvctx, input, attr, attr_size, &resp, &resp_size);
	if (err)
		return err;
	snprintf(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver), "%u",
		 to_mctx(ibvctx)->info.device_version);
	return 0;
}

static int query_port(struct ibv_context *ibvctx, uint8_t port, struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd;

	return ibv_cmd_query_port(ibvctx, port, attr, &cmd, sizeof(cmd));
}

static void free_context(struct ibv_context *ibvctx)
{
	struct muster_context *ctx = to_mctx(ibvctx);

	verbs_uninit_context(&ctx->ibvctx);
	free(ctx);
}

/* ---- protection domains and memory -------------------------------------------- */

static struct ibv_pd *alloc_pd(struct ibv_context *ibvctx)
{
	struct {
		struct ib_uverbs_alloc_pd_resp ibv;
		struct muster_alloc_pd_resp own;
	} resp = {};
	struct ibv_alloc_pd cmd;
	struct ibv_pd *pd = calloc(1, sizeof(*pd));
	int err;

	if (!pd)
		return NULL;
	err = ibv_cmd_alloc_pd(ibvctx, pd, &cmd, sizeof(cmd), &resp.ibv, sizeof(resp));
	if (!err)
		return pd;
	free(pd);
	errno = err;
	return NULL;
}

static int dealloc_pd(struct ibv_pd *pd)
{
	int err = destroyed(ibv_cmd_dealloc_pd(pd));

	if (!err)
		free(pd);
	return err;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			     int access)
{
	struct ib_uverbs_reg_mr_resp resp;
	struct ibv_reg_mr cmd;
	struct verbs_mr *vmr = calloc(1, sizeof(*vmr));
	int err;

	if (!vmr)
		return NULL;
	err = ibv_cmd_reg_mr(pd, addr, length, iova, access, vmr, &cmd, sizeof(cmd), &resp,
			     sizeof(resp));
	if (!err)
		return &vmr->ibv_mr;
	free(vmr);
	errno = err;
	return NULL;
}

static int dereg_mr(struct verbs_mr *vmr)
{
	int err = destroyed(ibv_cmd_dereg_mr(vmr));

	if (!err)
		free(vmr);
	return err;
}

/* ---- completion queues --------------------------------------------------------- */

static uint32_t power_of_two(uint32_t n)
{
	uint32_t power = 1;

	while (power < n)
		power <<= 1;
	return power;
}

static int cq_open(struct ibv_context *ibvctx, int cqe, struct ibv_comp_channel *channel,
		   int comp_vector, struct muster_cq *cq)
{
	struct {
		struct ib_uverbs_create_cq_resp ibv;
		struct muster_create_cq_resp own;
	} resp = {};
	struct ibv_create_cq cmd;
	int err;

	err = ibv_cmd_create_cq(ibvctx, cqe, channel, comp_vector, &cq->ibvcq, &cmd, sizeof(cmd),
				&resp.ibv, sizeof(resp));
	if (err)
		return err;
	cq->entries = resp.own.entries;
	cq->ring_bytes = resp.own.ring_bytes;
	cq->ring = muster_map(ibvctx, resp.own.ring_offset, cq->ring_bytes, PROT_READ);
	if (cq->ring)
		return 0;
	err = errno;
	ibv_cmd_destroy_cq(&cq->ibvcq);
	return err;
}

static struct ibv_cq *create_cq(struct ibv_context *ibvctx, int cqe,
				struct ibv_comp_channel *channel, int comp_vector)
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
	err = cq_open(ibvctx, power_of_two(cqe), channel, comp_vector, cq);
	if (!err)
		return &cq->ibvcq;
	free(cq);
	errno = err;
	return NULL;
}

static int destroy_cq(struct ibv_cq *ibvcq)
{
	struct muster_cq *cq = to_mcq(ibvcq);
	int err = destroyed(ibv_cmd_destroy_cq(ibvcq));

	if (err)
		return err;
	munmap(cq->ring, cq->ring_bytes);
	free(cq);
	return 0;
}

/* Its entries are not work completions: they are read through struct musterdv_vp. */
static int poll_cq(struct ibv_cq *ibvcq, int nr, struct ibv_wc *wc)
{
	(void)ibvcq;
	(void)nr;
	(void)wc;
	return -EOPNOTSUPP;
}

static int req_notify_cq(struct ibv_cq *ibvcq, int solicited_only)
{
	return ibv_cmd_req_notify_cq(ibvcq, solicited_only);
}

const struct verbs_context_ops muster_context_ops = {
	.alloc_pd = alloc_pd,
	.create_cq = create_cq,
	.dealloc_pd = dealloc_pd,
	.dereg_mr = dereg_mr,
	.destroy_cq = destroy_cq,
	.free_context = free_context,
	.poll_cq = poll_cq,
	.query_device_ex = query_device_ex,
	.query_port = query_port,
	.reg_mr = reg_mr,
	.req_notify_cq = req_notify_cq,
};
