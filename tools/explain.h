/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Why a job does not go on: who waits for whom, walked over the looking pages of its ranks
 * to those that wait for nobody. Two readings some time apart tell who stands from who is
 * only seen in the middle of something.
 */
#ifndef MUSTER_TOOLS_EXPLAIN_H
#define MUSTER_TOOLS_EXPLAIN_H

#include "look.h"

enum explain_limit {
	EXPLAIN_CULPRITS_MAX = 8,	/* of one finding that are named */
	EXPLAIN_WORDS_MAX = 2048,
};

/* What is at the end of a chain of waits. */
enum explain_cause {
	EXPLAIN_STOPPED,	/* a process is stopped */
	EXPLAIN_GONE,		/* there is no such process */
	EXPLAIN_NOT_CALLED,	/* a rank has not called the operation: it is elsewhere */
	EXPLAIN_OTHERS,		/* it has not, and calls others */
	EXPLAIN_UNATTENDED,	/* it has, but does not come to the library to go on with it */
	EXPLAIN_LEAVING,	/* it is in muster_finalize(), or has closed the communicator */
	EXPLAIN_QUEUE,		/* its completion queue is full, and it does not read it */
	EXPLAIN_LINK,		/* what was sent does not arrive */
	EXPLAIN_CIRCLE,		/* ranks wait for each other */
	EXPLAIN_BUMP,		/* the bump in the wire does not answer */
	EXPLAIN_CAUSES,
};

struct finding {
	enum explain_cause cause;
	uint32_t culprits[EXPLAIN_CULPRITS_MAX];
	uint32_t nr_culprits;
	uint32_t nr_waiting;		/* ranks that wait for it in the end */
	char words[EXPLAIN_WORDS_MAX];	/* the chain that was walked */
};

struct findings {
	struct finding *all;
	uint32_t nr;
	uint32_t nr_waiting;	/* ranks that wait, whether it was found out why or not */
};

/** explain_cause_name() - in one word, for programs. */
const char *explain_cause_name(enum explain_cause cause);

/**
 * explain_job() - of a job that was read twice.
 * @before: the same job in an earlier reading; NULL: it was not there.
 * Return: 0; -ENOMEM.
 */
int explain_job(const struct look_job *now, const struct look_job *before,
		struct findings *findings);
void explain_free(struct findings *findings);

#endif /* MUSTER_TOOLS_EXPLAIN_H */
