/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An operation once more, as it ran the last time (again.c): what a program that calls the same
 * again and again goes through each time, and nothing else does.
 */
#ifndef MUSTER_AGAIN_H
#define MUSTER_AGAIN_H

#include "look.h"
#include "turn.h"

enum {
	MUSTER_AGAIN_POLLS = 8,		/* for its end alone, before others get their turn */
	MUSTER_AGAIN_ROW = 64,		/* sequences of which one lets others have it, however soon it ends */
};

/** muster_again_lets_others() - who only calls operations that end at once makes progress with others, too. */
static inline bool muster_again_lets_others(uint32_t sequence)
{
	return sequence % MUSTER_AGAIN_ROW == 0;
}

/** muster_again_review() - it has succeeded: may its communicator run it once more so? */
void muster_again_review(struct muster_request *request);

/** muster_again_ready() - what a communicator ran last, and can run once more; or NULL. */
static inline struct muster_request *muster_again_ready(const struct muster_comm *comm)
{
	struct muster_request *ready = comm->ready;

	return ready && ready->state == MUSTER_REQUEST_FREE && !comm->first ? ready : NULL;
}

/** muster_again_start() - run it with these buffers, which are right. */
int muster_again_start(struct muster_request *ready, const void *in, void *out,
		       struct muster_request **request);

static inline bool muster_again_is_end(const struct muster *job, const struct muster_cqe *cqe)
{
	const struct muster_request *request = job->again;

	return request && cqe->cookie == request->cookie && cqe->number == request->sequence &&
	       cqe->context == request->context && cqe->kind == MUSTER_CQE_SEQUENCE &&
	       !cqe->status && !request->next && !job->dev->holding;
}

/** muster_again_end() - whether a completion is the end of one that was started so: now it is done. */
static inline bool muster_again_end(struct muster *job, const struct muster_cqe *cqe)
{
	struct muster_request *request = job->again;
	struct muster_comm *comm;

	if (!muster_again_is_end(job, cqe))
		return false;
	comm = request->comm;
	job->again = NULL;
	job->under_way--;
	comm->first = NULL;
	comm->sequences_ended = request->sequence + 1;
	comm->look->ended = request->number + 1;
	muster_look_done(request);
	if (request->copy_out)
		muster_copy(request->copy_out, request->result_at, request->entry->needs.bytes);
	request->kept->busy = false;
	request->state = MUSTER_REQUEST_DONE;
	if (__builtin_expect(request->awaited, 0)) {
		request->awaited = false;
		muster_turn_news(job);
	}
	return true;
}

#endif /* MUSTER_AGAIN_H */
