/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The steps in which a process uses the device, each on what those before it have made, from
 * opening it to closing a file that has everything open; and what takes each back.
 */
#ifndef GUEST_FAULT_STEPS_H
#define GUEST_FAULT_STEPS_H

#include "musterdv.h"

struct world {
	struct ibv_context *ctx;
	struct musterdv_info info;
	uint16_t lid;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_mr *mr, *first_watched, *watched;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *ud, *rc;
	struct musterdv_vp *vp, *long_vp;
	struct musterdv_job *job, *joined;
	uint64_t key;
	struct musterdv_context *context;
	uint32_t index, counter;
	void *map;
	size_t map_bytes;
	uint64_t map_offset;
};

/* Each returns 0 or -errno, and has then done nothing. */
struct fault_step {
	const char *name;		/* NULL: the end */
	int (*run)(struct world *world);
	const char *undo_name;		/* NULL: it is none of the driver's */
	int (*undo)(struct world *world);	/* NULL: nothing to take back */
	int (*undone)(struct world *world);	/* 0 if what undo leaves can be used; may be NULL */
	int (*before)(struct world *world);	/* what is no part of it; may be NULL */
	int also_says[2];		/* -errno that others make of ENOMEM */
	bool maps;			/* the core says EAGAIN when page tables have no memory */
	bool once;			/* what was done cannot be done again */
	bool unheard;			/* ENOBUFS and EFAULT may be of its answer alone */
	bool ends;			/* nothing comes after it */
	bool alone;			/* nothing comes before it */
};

extern const struct fault_step fault_steps[];

#endif /* GUEST_FAULT_STEPS_H */
