/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What all ranks must decide alike before each lowers its own part: where the
 * schedule is cut into stages, and where behind the last step copies have room.
 * It follows from the schedule alone, and whether data is in memory.
 */
#ifndef MUSTER_STAGES_H
#define MUSTER_STAGES_H

#include "schedule.h"

enum { MUSTER_STAGES_MAX = 256 };	/* struct muster_desc.stage has 16 bits */

struct muster_stages {
	uint32_t nr;
	uint32_t begin[MUSTER_STAGES_MAX + 1];	/* listed: first transfer of each; then the end */
	uint32_t first_copy;			/* the first that has room for copies */
};

/** muster_step_end() - the first transfer of the next step. */
uint32_t muster_step_end(const struct muster_schedule *schedule, uint32_t begin);

/**
 * muster_stages_cut() - cut where a rank's slots or descriptors would be exceeded.
 * Return: 0; -E2BIG (limit and step); -ENOMEM.
 */
int muster_stages_cut(const struct muster_schedule *schedule, uint32_t grain,
		      struct muster_stages *stages, char *why, size_t why_len);

/**
 * muster_stages_copy() - see that there is room for what ranks copy behind the last step.
 * Needed only where messages are in memory. Return: 0; -E2BIG (too many stages); -ENOMEM.
 */
int muster_stages_copy(const struct muster_schedule *schedule, struct muster_stages *stages,
		       char *why, size_t why_len);

#endif /* MUSTER_STAGES_H */
