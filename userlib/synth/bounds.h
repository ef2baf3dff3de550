/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What no schedule can beat: steps below the distances, rounds below what must
 * cross a cut. A cut is a set of nodes: chunks that are needed in it and are not in
 * it at the start must enter, over the links that do, and these have limits. All
 * cuts count: that around one node is its ingress, which the paper's "inverse
 * bisection bandwidth" (Algorithm 1, line 3) leaves out. Of what is combined (an
 * instance with a shape) the distance is that of each contribution, and one message at
 * least brings those from outside into a cut.
 */
#ifndef MUSTER_SYNTH_BOUNDS_H
#define MUSTER_SYNTH_BOUNDS_H

#include "instance.h"

enum { MUSTER_CUT_NODES_MAX = 16 };	/* above, only some cuts are looked at */

struct muster_bounds {
	uint32_t steps;			/* MUSTER_FAR: some chunk cannot get where it must */
	uint32_t far_from, far_to;	/* nodes that are so far apart */
	uint64_t enter;			/* rounds >= enter / capacity, for the instance's chunks */
	uint64_t capacity;		/* 0: nothing can enter */
	uint64_t cut;			/* its nodes as bits; 0: nothing must move */
};

/** muster_bounds() - of an instance, whatever its steps and rounds. 0; -ENOMEM. */
int muster_bounds(const struct muster_instance *instance, struct muster_bounds *bounds);

/** muster_bounds_refute() - whether they forbid the instance; why names the bound. */
bool muster_bounds_refute(const struct muster_instance *instance,
			  const struct muster_bounds *bounds, char *why, size_t why_len);

#endif /* MUSTER_SYNTH_BOUNDS_H */
