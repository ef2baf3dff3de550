/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Whose turn it is in a job that several threads use: those of its caller (MUSTER_INIT_THREADS),
 * or one of the library's own that makes progress while callers are elsewhere
 * (MUSTER_PROGRESS=thread). All that a job has belongs to the thread that has the turn. Turns
 * are taken in the order in which they were asked for; who waits or sleeps gives its own away.
 * Of those who sleep one leads: it sleeps on the device, which knows of no more than one, and
 * the others follow: they sleep until somebody has what one of them awaits, or nobody leads.
 * A job that one thread uses has none of this, and costs a look at a pointer.
 */
#ifndef MUSTER_TURN_H
#define MUSTER_TURN_H

#include "internal.h"

/** muster_turn_open() - from now on threads take turns. helper: one of the library's own, too. */
int muster_turn_open(struct muster *job, bool helper);
/** muster_turn_close() - the caller is the only thread again. */
void muster_turn_close(struct muster *job);

void muster_turn_take(struct muster_turn *turn);
void muster_turn_give(struct muster *job);
void muster_turn_let_others(struct muster *job);
/** muster_turn_follow() - true: this thread has slept, while another led; false: it leads. */
bool muster_turn_follow(struct muster *job, uint64_t us);
/** muster_turn_lead_end() - who led is awake, or there is one thread. */
void muster_turn_lead_end(struct muster *job);
/** muster_turn_tell() - what some thread may sleep for has come: wake them. */
void muster_turn_tell(struct muster *job);
/** muster_turn_sleep_us() - how long to sleep at most: it may be another thread that is woken. */
uint64_t muster_turn_sleep_us(const struct muster *job, uint64_t us);

/** muster_turn_pass() - one who waits by polling: let others have their turns, if there are any. */
static inline void muster_turn_pass(struct muster *job)
{
	if (__builtin_expect(job->turn != NULL, 0))
		muster_turn_let_others(job);
}

static inline void muster_turn_news(struct muster *job)
{
	if (__builtin_expect(job->turn != NULL, 0))
		muster_turn_tell(job);
}

static inline struct muster *muster_turn_begin(struct muster *job)
{
	if (__builtin_expect(job && job->turn, 0))
		muster_turn_take(job->turn);
	return job;
}

static inline void muster_turn_end(struct muster **job)
{
	if (__builtin_expect(*job && (*job)->turn, 0))
		muster_turn_give(*job);
}

/* First of all in whatever a caller may call: until it returns it has the turn; job may be NULL. */
#define MUSTER_TURN(job)							\
	struct muster *muster_turn_ __attribute__((cleanup(muster_turn_end), unused)) = \
		muster_turn_begin(job)
#define MUSTER_TURN_OF(comm)	MUSTER_TURN((comm) ? (comm)->job : NULL)

#endif /* MUSTER_TURN_H */
