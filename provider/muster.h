/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of the provider share: muster.c (the device and opening it),
 * verbs.c (ordinary verbs), dv.c (virtual ports), dv_job.c (jobs and contexts).
 * Built with rdma-core's private headers of interface 34.
 */
#ifndef MUSTER_PROVIDER_H
#define MUSTER_PROVIDER_H

#include <infiniband/driver.h>

#include "musterdv.h"
#include "rdma/muster-abi.h"

struct muster_context {
	struct verbs_context ibvctx;
	struct muster_alloc_ucontext_resp info;
};

struct muster_cq {
	struct ibv_cq ibvcq;
	void *ring;
	size_t ring_bytes;
	uint32_t entries;
};

static inline struct muster_context *to_mctx(struct ibv_context *ibvctx)
{
	return container_of(ibvctx, struct muster_context, ibvctx.context);
}

static inline struct muster_cq *to_mcq(struct ibv_cq *ibvcq)
{
	return container_of(ibvcq, struct muster_cq, ibvcq);
}

/*
 * What destroying has come to: of a dead device everything is gone already, and
 * the kernel says EIO.
 */
static inline int destroyed(int err)
{
	return err == EIO ? 0 : err;
}

/* muster.c */
void *muster_map(struct ibv_context *ibvctx, uint64_t offset, uint64_t bytes, int prot);

/* verbs.c */
extern const struct verbs_context_ops muster_context_ops;

#endif /* MUSTER_PROVIDER_H */
