// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The device as libibverbs finds it, and opening it. A kernel driver of another
 * ABI version is refused by libibverbs, which says both numbers; a device of
 * another version is refused here.
 */
#include "muster.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { UNMAP_TRIES = 8 };

static const struct verbs_match_ent match_table[] = {
	VERBS_DRIVER_ID(MUSTER_DRIVER_ID),
	VERBS_PCI_MATCH(MUSTER_PCI_VENDOR, MUSTER_PCI_DEVICE, NULL),
	{}
};

/* NULL and errno. */
void *muster_map(struct ibv_context *ibvctx, uint64_t offset, uint64_t bytes, int prot)
{
	void *addr = mmap(NULL, bytes, prot, MAP_SHARED, ibvctx->cmd_fd, offset);

	return addr == MAP_FAILED ? NULL : addr;
}

/*
 * Unmapping takes memory, too. What stays mapped would be kept until the process ends, as would a
 * port's number: so it is tried again where there was none.
 */
void muster_unmap(void *addr, size_t bytes)
{
	for (int i = 0; i < UNMAP_TRIES && munmap(addr, bytes) && errno == ENOMEM; i++)
		;
}

static int bells_map(struct muster_context *ctx)
{
	ctx->bells = muster_map(&ctx->ibvctx.context, ctx->info.bells_offset,
				MUSTER_DOORBELL_STRIDE, PROT_WRITE);
	pthread_mutex_init(&ctx->qps_lock, NULL);
	return ctx->bells ? 0 : errno;
}

static int open_context(struct muster_context *ctx)
{
	struct {
		struct ib_uverbs_get_context_resp ibv;
		struct muster_alloc_ucontext_resp own;
	} resp = {};
	struct ibv_get_context cmd = {};
	int err;

	err = ibv_cmd_get_context(&ctx->ibvctx, &cmd, sizeof(cmd), &resp.ibv, sizeof(resp));
	if (err) {
		verbs_err(&ctx->ibvctx, "the kernel does not open the device: %s\n", strerror(err));
		return err;
	}
	ctx->info = resp.own;
	if (ctx->info.device_version == MUSTER_DEVICE_VERSION)
		return bells_map(ctx);
	verbs_err(&ctx->ibvctx, "the device is of version %" PRIu32 ", this provider of version "
		  "%d: install the two from one release\n", ctx->info.device_version,
		  MUSTER_DEVICE_VERSION);
	return EPROTONOSUPPORT;
}

static struct verbs_context *alloc_context(struct ibv_device *device, int cmd_fd, void *data)
{
	struct muster_context *ctx;
	int err;

	(void)data;
	ctx = verbs_init_and_alloc_context(device, cmd_fd, ctx, ibvctx, MUSTER_DRIVER_ID);
	if (!ctx)
		return NULL;
	err = open_context(ctx);
	if (err) {
		verbs_uninit_context(&ctx->ibvctx);
		free(ctx);
		errno = err;
		return NULL;
	}
	verbs_set_ops(&ctx->ibvctx, &muster_context_ops);
	return &ctx->ibvctx;
}

static struct verbs_device *alloc_device(struct verbs_sysfs_dev *sysfs_dev)
{
	(void)sysfs_dev;
	return calloc(1, sizeof(struct verbs_device));
}

static void uninit_device(struct verbs_device *device)
{
	free(device);
}

static const struct verbs_device_ops device_ops = {
	.name = "muster",
	.match_min_abi_version = MUSTER_ABI_VERSION,
	.match_max_abi_version = MUSTER_ABI_VERSION,
	.match_table = match_table,
	.alloc_device = alloc_device,
	.uninit_device = uninit_device,
	.alloc_context = alloc_context,
};

PROVIDER_DRIVER(muster, device_ops);

bool musterdv_is_supported(struct ibv_device *device)
{
	return verbs_get_device(device)->ops == &device_ops;
}

int musterdv_query(struct ibv_context *ibvctx, struct musterdv_info *info)
{
	const struct muster_alloc_ucontext_resp *from;

	if (!musterdv_is_supported(ibvctx->device))
		return -EOPNOTSUPP;
	from = &to_mctx(ibvctx)->info;
	*info = (struct musterdv_info) {
		.node = from->node,
		.incarnation = from->incarnation,
		.device_version = from->device_version,
		.contexts_max = from->contexts_max,
		.dq_entries_max = from->dq_entries_max,
		.rq_entries_max = from->rq_entries_max,
		.cq_entries_max = MUSTER_CQ_ENTRIES_MAX,
		.capabilities = from->capabilities,
	};
	return 0;
}
