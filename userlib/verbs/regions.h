/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory that the NIC knows. Registering takes two calls of the kernel and the NIC an operation,
 * so what was the caller's for one operation is kept for the next, as long as the same pages lie
 * there: the kernel says so, in a byte of its own for each region (musterdv_mr_changed()).
 */
#ifndef MUSTER_VERBS_REGIONS_H
#define MUSTER_VERBS_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ibv_pd;
struct muster_verbs_region;

struct muster_verbs_regions {
	struct ibv_pd *pd;
	struct muster_verbs_region *first;	/* the newest */
	bool keeps;		/* else a region goes when it is given back */
};

/* Memory with that access (enum muster_access). 0 and its key; or -errno. */
int muster_verbs_register(struct muster_verbs_regions *regions, void *addr, size_t bytes, int access,
			  uint32_t *key);

/* Given back, as often as it was registered. */
void muster_verbs_release(struct muster_verbs_regions *regions, uint32_t key);

/* What the caller himself unmaps next. */
void muster_verbs_deregister(struct muster_verbs_regions *regions, uint32_t key);

/* All of it, whoever uses it. */
void muster_verbs_deregister_all(struct muster_verbs_regions *regions);

#endif /* MUSTER_VERBS_REGIONS_H */
