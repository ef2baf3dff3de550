/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Gather and scatter without a solver: where all chunks go to one node, or come
 * from one, and every limit is of one link, which chunk takes which way does not
 * matter. What can move is then a flow in the graph of nodes and steps, for each
 * way to distribute the rounds over the steps: found, or refuted, at once.
 */
#ifndef MUSTER_SYNTH_FLOW_H
#define MUSTER_SYNTH_FLOW_H

#include "solve.h"

/** muster_flow_suits() - whether the instance is one of these. */
bool muster_flow_suits(const struct muster_instance *instance);

/** muster_flow_solve() - 0; -ENOMEM. UNKNOWN: too many ways to distribute the rounds. */
int muster_flow_solve(const struct muster_instance *instance, enum muster_proof *proof,
		      struct muster_solution **solution);

#endif /* MUSTER_SYNTH_FLOW_H */
