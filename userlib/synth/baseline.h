/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Schedules by hand, as NCCL has them (SCCL, table 3): a ring for each unit of
 * bandwidth, both ways round; on DGX-1 six of them.
 */
#ifndef MUSTER_SYNTH_BASELINE_H
#define MUSTER_SYNTH_BASELINE_H

#include "schedule.h"

/**
 * muster_baseline() - of "dgx1" or "z52", with L rings (6 or 2) of 8 nodes: allgather
 * (L, 7, 7), reduce-scatter and allreduce (8 L, 7, 7) and (8 L, 14, 14), broadcast and
 * reduce (L m, 6 + m, 6 + m).
 * @pipelined: m.
 * Return: 0; -EINVAL with why; -ENOMEM.
 */
int muster_baseline(const char *topology, enum muster_coll coll, uint32_t root, uint32_t pipelined,
		    struct muster_schedule **schedule, char *why, size_t why_len);

#endif /* MUSTER_SYNTH_BASELINE_H */
