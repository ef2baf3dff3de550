// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The ordinary verbs: device, port, protection domain, memory. Completion queues, queue
 * pairs and what these share have files of their own.
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

	if (ctx->changes)
		muster_unmap((void *)ctx->changes, MUSTER_CHANGES_BYTES);
	muster_unmap((void *)ctx->bells, MUSTER_DOORBELL_STRIDE);
	pthread_mutex_destroy(&ctx->qps_lock);
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

/* With flags it answers in *own. */
static struct ibv_mr *mr_create(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				int access, uint32_t flags, struct muster_reg_mr_resp *own)
{
	struct {
		struct ib_uverbs_reg_mr_resp ibv;
		struct muster_reg_mr_resp own;
	} resp = {};
	struct {
		struct ibv_reg_mr ibv;
		struct muster_reg_mr_cmd own;
	} cmd = { .own.flags = flags };
	struct verbs_mr *vmr = calloc(1, sizeof(*vmr));
	int err;

	if (!vmr)
		return NULL;
	err = ibv_cmd_reg_mr(pd, addr, length, iova, access, vmr, &cmd.ibv, sizeof(cmd),
			     &resp.ibv, sizeof(resp));
	*own = resp.own;
	if (!err)
		return &vmr->ibv_mr;
	free(vmr);
	errno = err;
	return NULL;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			     int access)
{
	struct muster_reg_mr_resp none;

	return mr_create(pd, addr, length, iova, access, 0, &none);
}

/* The page is one for all that is open; of two threads that map it one is too late. */
static const uint8_t *changes_map(struct muster_context *ctx, uint64_t offset)
{
	const uint8_t *page = __atomic_load_n(&ctx->changes, __ATOMIC_ACQUIRE), *theirs = NULL;

	if (page)
		return page;
	page = muster_map(&ctx->ibvctx.context, offset, MUSTER_CHANGES_BYTES, PROT_READ);
	if (!page || __atomic_compare_exchange_n(&ctx->changes, &theirs, page, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return page;
	muster_unmap((void *)page, MUSTER_CHANGES_BYTES);
	return theirs;
}

int musterdv_mr_register(struct ibv_pd *pd, void *addr, size_t bytes, int access,
			 struct ibv_mr **mr, const uint8_t **changed)
{
	struct muster_reg_mr_resp resp;
	const uint8_t *page;
	int err;

	if (!musterdv_is_supported(pd->context->device))
		return -EOPNOTSUPP;
	*mr = mr_create(pd, addr, bytes, (uintptr_t)addr, access, MUSTER_REG_MR_WATCH, &resp);
	if (!*mr)
		return errno ? -errno : -EIO;
	/* As ibv_reg_mr() does for what is registered through it. */
	(*mr)->pd = pd;
	(*mr)->addr = addr;
	(*mr)->length = bytes;
	page = changes_map(to_mctx(pd->context), (uint64_t)resp.changes * MUSTER_CHANGES_BYTES);
	if (!page) {
		err = -errno;
		ibv_dereg_mr(*mr);
		return err;
	}
	*changed = page + resp.place;
	return 0;
}

/* libibverbs 44 knows no last argument, and does not look at it. */
static struct ibv_mr *reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
				    uint64_t iova, int fd, int access)
{
	struct verbs_mr *vmr = calloc(1, sizeof(*vmr));
	int err;

	if (!vmr)
		return NULL;
	err = ibv_cmd_reg_dmabuf_mr(pd, offset, length, iova, fd, access, vmr, NULL);
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

const struct verbs_context_ops muster_context_ops = {
	.alloc_pd = alloc_pd,
	.create_ah = muster_create_ah,
	.create_cq = muster_create_cq,
	.create_cq_ex = muster_create_cq_ex,
	.create_qp = muster_create_qp,
	.create_qp_ex = muster_create_qp_ex,
	.create_srq = muster_create_srq,
	.dealloc_pd = dealloc_pd,
	.dereg_mr = dereg_mr,
	.destroy_ah = muster_destroy_ah,
	.destroy_cq = muster_destroy_cq,
	.destroy_qp = muster_destroy_qp,
	.destroy_srq = muster_destroy_srq,
	.free_context = free_context,
	.modify_cq = muster_modify_cq,
	.modify_qp = muster_modify_qp,
	.modify_srq = muster_modify_srq,
	.poll_cq = muster_poll_cq,
	.post_recv = muster_post_recv,
	.post_send = muster_post_send,
	.post_srq_recv = muster_post_srq_recv,
	.query_device_ex = query_device_ex,
	.query_port = query_port,
	.query_qp = muster_query_qp,
	.query_srq = muster_query_srq,
	.reg_dmabuf_mr = reg_dmabuf_mr,
	.reg_mr = reg_mr,
	.req_notify_cq = muster_req_notify_cq,
	.resize_cq = muster_resize_cq,
};
