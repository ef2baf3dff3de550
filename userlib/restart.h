/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Operations that are begun anew when a member or a part of the network is lost while they run (restart.c).
 */
#ifndef MUSTER_RESTART_H
#define MUSTER_RESTART_H

#include "internal.h"

#include <errno.h>

enum { MUSTER_RESTART_TAG = 0x68656972 };	/* of the groups that make heirs */

/* What an operation began with, of which its result takes the place. */
struct muster_input {
	size_t room;
	size_t bytes;
	void *from;
	uint8_t data[];
};

/* Of a communicator whose operations are, and of its heirs. */
struct muster_restarts {
	struct muster_comm *comm;	/* whose it is */
	enum muster_restart how;
	uint64_t places;		/* of operations started so far; the same count at all members */
	uint64_t from;			/* those before had their end elsewhere, and cannot be run here any more */
	uint64_t anew_to;		/* those before that ran here when somebody was lost were begun anew */
	struct muster_comm *heir;	/* on which they run since the last loss; NULL: there was none */
	bool recovers;			/* a thread is about to know the heir */
	bool gave_up;			/* there can be none, as far as is known */
	struct muster_request *lost;	/* to be begun anew, in the order in which they were started */
	struct muster_request **lost_end;
	struct muster_input *spare;	/* for the next one; or NULL */
};

/** muster_restart_set() - 0; -ENOMEM. */
int muster_restart_set(struct muster_comm *comm, enum muster_restart how);
/** muster_restart_forget() - the communicator is closed, or freed: nothing is begun anew. Return: its heir, or NULL. */
struct muster_comm *muster_restart_forget(struct muster_comm *comm);

/** muster_restart_call() - of a caller's call: on which communicator it runs, with its root there. 0 or -errno. */
int muster_restart_call(struct muster_comm **comm, struct muster_call *call);
/** muster_restart_call_again() - the same of a persistent one that is started; it is moved there. */
int muster_restart_call_again(struct muster_request *request);
/** muster_restart_enter() - one is started: count it, and keep what its result takes the place of. 0; -ENOMEM. */
int muster_restart_enter(struct muster_request *request);
/** muster_restart_input_put() - it is not begun anew any more. */
void muster_restart_input_put(struct muster_request *request);
/** muster_restart_add() - it is to be begun anew. */
void muster_restart_add(struct muster_request *request);
/**
 * muster_restarts_join() - who waits for others: of each communicator that has lost somebody meet who is left, whether
 * this rank has something under way there or not, and begin anew what can be.
 */
void muster_restarts_join(struct muster *job);

/** muster_restart_note() - as enter(), of one whose result comes beside its buffers. */
static inline void muster_restart_note(struct muster_request *request, const void *in, void *out)
{
	request->place = request->comm->restarts->places++;
	request->in = (const uint8_t *)in - request->entry->has.first;
	request->out = (uint8_t *)out - request->entry->needs.first;
}

/** muster_restart_now() - on which it runs. */
static inline struct muster_comm *muster_restart_now(struct muster_comm *comm)
{
	return comm->restarts && comm->restarts->heir ? comm->restarts->heir : comm;
}

/** muster_restart_stops() - whether nothing can be started there now. */
static inline bool muster_restart_stops(const struct muster_comm *comm)
{
	return comm->failed || (comm->restarts && comm->restarts->recovers);
}

/** muster_restart_awaits() - whether it is begun anew, if it has failed. */
static inline bool muster_restart_awaits(const struct muster_request *request)
{
	const struct muster_comm *comm = request->comm;

	return request->anew && comm->restarts && (comm->failed == -ECONNRESET || comm->restarts->recovers);
}

#endif /* MUSTER_RESTART_H */
