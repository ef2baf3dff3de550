/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One attempt of a solver at an instance, in a process of its own.
 */
#ifndef MUSTER_SYNTH_ATTEMPT_H
#define MUSTER_SYNTH_ATTEMPT_H

#include <sys/types.h>

#include "quotient.h"
#include "solve.h"

struct muster_attempt {
	const struct muster_instance *instance;
	const struct muster_quotient *quotient;	/* NULL: the full formula */
	uint32_t window;			/* 0, or as the encoding says */
	bool plain;
	unsigned int seed;
	double cpu_seconds;			/* may use; afterwards: has used */
	pid_t pid;				/* 0: none runs */
	int pipe;
};

/** muster_attempt_start() - 0; -errno. */
int muster_attempt_start(struct muster_attempt *attempt);

/**
 * muster_attempt_end() - take what it says, when its pipe can be read or it shall end.
 * @kill_it: it has lost; its answer does not count.
 * Return: what it found out; *solution if FOUND (as the solver says).
 */
enum muster_proof muster_attempt_end(struct muster_attempt *attempt, bool kill_it,
				     struct muster_solution **solution);

#endif /* MUSTER_SYNTH_ATTEMPT_H */
