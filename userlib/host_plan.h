/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One rank's part of a schedule, as the host path runs it: step by step, each with
 * what the rank sends and what it receives, in the order of the schedule. Only the
 * current step is there.
 */
#ifndef MUSTER_HOST_PLAN_H
#define MUSTER_HOST_PLAN_H

#include "part.h"

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
	const struct muster_schedule *schedule;
	uint32_t rank;
	struct muster_part part;
	struct muster_message message;	/* the first one behind the step */
	bool has_message;		/* else the step is the last */
	struct muster_plan_step step;
	struct muster_move *moves;	/* of the step */
	uint32_t moves_max;		/* of any step */
	bool mixes;			/* of some moves a part is fresh, and a part is not */
	bool *touched;			/* by chunk: something came into it */
};

/** muster_moves_meet() - whether they have chunks in common. */
bool muster_moves_meet(const struct muster_move *a, const struct muster_move *b);

/** muster_plan_create() - with all memory that its steps need. Return: 0; -ENOMEM. */
int muster_plan_create(const struct muster_schedule *schedule, uint32_t rank,
		       struct muster_plan **plan);

/** muster_plan_rewind() - before the first step again. */
void muster_plan_rewind(struct muster_plan *plan);

/** muster_plan_next() - go on to the next step; false: there is none. */
bool muster_plan_next(struct muster_plan *plan);
void muster_plan_free(struct muster_plan *plan);

#endif /* MUSTER_HOST_PLAN_H */
