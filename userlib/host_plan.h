/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One rank's part of a schedule, as the host path runs it: steps, each with what
 * the rank sends and what it receives, in the order of the schedule.
 */
#ifndef MUSTER_HOST_PLAN_H
#define MUSTER_HOST_PLAN_H

#include "schedule.h"

struct muster_move {
	uint32_t peer;
	uint32_t first;		/* chunks [first, first + nr) */
	uint32_t nr;
	bool reduce;
	bool fresh;		/* nothing came into the chunks before: they are the input still */
	bool clashes_in;	/* receive: the step also sends some of them, from the input */
	bool clashes_out;	/* or from the result */
};

struct muster_plan_step {
	uint32_t nr_sends;
	uint32_t nr_receives;
	struct muster_move *sends;
	struct muster_move *receives;
};

struct muster_plan {
	uint32_t nr_steps;
	uint32_t receives_max;		/* of one step */
	struct muster_plan_step *steps;
	struct muster_move *moves;	/* of all steps */
	bool *touched;			/* by chunk: something came into it */
};

/** muster_moves_meet() - whether they have chunks in common. */
bool muster_moves_meet(const struct muster_move *a, const struct muster_move *b);

/** muster_plan_create() - 0 or -ENOMEM. */
int muster_plan_create(const struct muster_schedule *schedule, uint32_t rank,
		       struct muster_plan **plan);
void muster_plan_free(struct muster_plan *plan);

#endif /* MUSTER_HOST_PLAN_H */
