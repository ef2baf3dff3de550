/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Solving one instance. Each attempt is a process of its own, bounded in CPU time,
 * so that a solver that does not end, or takes all memory, costs nothing but that
 * attempt. What comes back is trimmed, and verified by solution.c before it counts.
 */
#ifndef MUSTER_SYNTH_SOLVE_H
#define MUSTER_SYNTH_SOLVE_H

#include "instance.h"

enum muster_proof {
	MUSTER_PROOF_UNKNOWN,		/* neither found nor refuted in the time given */
	MUSTER_PROOF_FOUND,		/* and verified */
	MUSTER_PROOF_REFUTED,		/* by a bound, or by the full formula */
};

struct muster_solve_options {
	bool plain;			/* C1 to C6 and nothing else */
	bool full_only;			/* the quick encoding without quotients and bounds */
	unsigned int seed;
	unsigned int cpu_seconds;	/* of all attempts together; 0: 120 */
	unsigned int jobs;		/* attempts at a time; 0: one */
};

struct muster_solved {
	enum muster_proof proof;
	struct muster_solution *solution;	/* if found */
	double cpu_seconds;			/* our own, and of all attempts, ended or not */
	bool kept;				/* it was solved before (store.h) */
	char why[256];				/* if refuted: by what; else how found */
};

/** muster_solve() - 0, whatever the proof; -ENOMEM; -errno of fork. */
int muster_solve(const struct muster_instance *instance,
		 const struct muster_solve_options *options, struct muster_solved *solved);

const char *muster_proof_name(enum muster_proof proof);

#endif /* MUSTER_SYNTH_SOLVE_H */
