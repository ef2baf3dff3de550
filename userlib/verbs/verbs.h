/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The verbs device: a real NIC, through libibverbs and the direct verbs. It is
 * a library of its own, libmuster-verbs.so, that libmuster loads when
 * MUSTER_DEVICE=verbs asks for it, so that programs without a NIC need none of
 * this.
 */
#ifndef MUSTER_VERBS_H
#define MUSTER_VERBS_H

#include <stddef.h>
#include <stdint.h>

#include "muster_regs.h"

struct muster_dev;

/* What a job's virtual port is made with, and what of a process's locked memory its rings take. */
enum muster_verbs_rings {
	MUSTER_VERBS_DQ_ENTRIES = 1024,
	MUSTER_VERBS_RQ_ENTRIES = 256,
	MUSTER_VERBS_CQ_ENTRIES = 1024,
	MUSTER_VERBS_RING_BYTES = MUSTER_VERBS_DQ_ENTRIES * sizeof(struct muster_desc) +
		MUSTER_VERBS_RQ_ENTRIES * sizeof(struct muster_recv_slot) +
		MUSTER_VERBS_CQ_ENTRIES * sizeof(struct muster_cqe) + 4096,
};

/**
 * muster_verbs_open() - open a NIC and a virtual port on it.
 *
 * MUSTER_NIC names the ibverbs device; without it the first Muster NIC is taken.
 * @why: on failure gets what was wrong and what to do.
 * Return: 0; -ENODEV: no NIC, no driver or no provider; or what the verbs said.
 */
int muster_verbs_open(struct muster_dev **dev, char *why, size_t why_len);

/* What a NIC says of itself; constant while it is open. */
struct muster_verbs_info {
	uint32_t node;
	uint32_t incarnation;
	uint32_t device_version;
	uint32_t capabilities;		/* MUSTER_CAP_* */
	uint32_t vps_max;
	uint32_t cqs_max;
	uint32_t mrs_max;
	uint32_t contexts_max;
	uint32_t dq_entries_max;
	uint32_t rq_entries_max;
	uint32_t cq_entries_max;
	uint32_t vendor_id;
	uint32_t vendor_part_id;
	uint32_t hw_ver;
	uint64_t mr_bytes_max;
};

/**
 * muster_verbs_query() - open a NIC, by the name of its ibverbs device, only to ask it.
 *
 * Return: 0, or -errno and @why.
 */
int muster_verbs_query(const char *name, struct muster_verbs_info *info, char *why,
		       size_t why_len);

/* query.c, below both: the NIC of that name, or any (NULL), opened; NULL: *err and why. */
struct ibv_context;
struct ibv_context *muster_verbs_context(const char *name, int *err, char *why, size_t why_len);

/**
 * muster_verbs_symbol() - a function of this library, which is loaded for it (device.c).
 *
 * Return: 0, or -ENOENT and @why.
 */
int muster_verbs_symbol(const char *name, void **symbol, char *why, size_t why_len);

/* none.c: why no NIC opens (of that name; NULL: of any), and what to do. Returns -ENODEV. */
int muster_verbs_say_none(const char *name, char *why, size_t why_len);

#endif /* MUSTER_VERBS_H */
