// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Once more: operations that the device keeps are mostly called again and again, and then all is
 * as it was the last time but the buffers. So a communicator keeps the request that ran last
 * (comm->ready), with a reference of its entry, as long as all of this is so:
 *
 *   it ran by a kept program, has no more to it than collective, type, operation and count
 *   say, and is what muster_comm_last() and the looking page tell; the communicator has no trees and
 *   lives, nobody counts operations, and no fragment has come that one could clash with.
 *
 * Whoever changes any of this calls muster_again_drop(). What is started while nothing else of the
 * communicator is under way then only differs in number and data. If the device does not take it, it
 * goes on from there as any other (request.c).
 */
#include "again.h"
#include "channel.h"
#include "restart.h"

/* ---- what can run so --------------------------------------------------------------- */

static bool may_run_again(const struct muster_request *request)
{
	const struct muster_comm *comm = request->comm;
	const struct muster_entry *entry = request->entry;

	return request->kept && !request->persistent && !request->aside && !request->locked &&
	       entry->plain && entry->cached && entry->chosen == request->path &&
	       entry->offload == comm->offload && comm->warm->last_of == entry && !comm->trees &&
	       !request->agreement &&
	       !comm->failed && !comm->freed && !comm->job->stats && muster_channel_is_calm(comm);
}

void muster_again_review(struct muster_request *request)
{
	struct muster_comm *comm = request->comm;
	bool may;

	request->ended = false;
	if (request->ready)
		return;
	may = may_run_again(request);
	if (may || (comm->ready && comm->ready->entry != request->entry))
		muster_again_drop(comm);
	if (!may)
		return;
	request->ready = true;
	request->entry->refs++;
	comm->ready = request;
}

/* One that runs goes on without, and puts its entry when it is done. */
void muster_again_drop(struct muster_comm *comm)
{
	struct muster_request *request = comm->ready;
	struct muster *job = comm->job;

	if (!request)
		return;
	comm->ready = NULL;
	request->ready = false;
	request->entry->used = ++comm->warm->clock;
	if (job->again == request)
		job->again = NULL;
	if (request->state == MUSTER_REQUEST_FREE || request->state == MUSTER_REQUEST_DONE)
		muster_entry_put(request->entry);
	if (request->state == MUSTER_REQUEST_FREE)
		muster_request_put(request);
}

/* ---- starting ---------------------------------------------------------------------- */

/* Others hear of it as always. */
static inline void enter(struct muster_comm *comm, struct muster_request *request)
{
	struct muster_past *past = &comm->warm->history[comm->number % MUSTER_HISTORY];

	past->signature = request->entry->signature;
	past->host = past->unknown = false;
	request->next = NULL;
	request->number = comm->number++;
	comm->first = comm->end = request;
	comm->job->under_way++;
	comm->look->started = comm->number;
	muster_look_called(comm->job, request);
}

/* The device has no room for it now. */
static __attribute__((noinline)) int start_slowly(struct muster_request *request, const void *in,
						  void *out)
{
	struct muster_comm *comm = request->comm;
	int err;

	request->state = MUSTER_REQUEST_QUEUED;
	muster_again_drop(comm);
	request->kept = NULL;
	comm->unposted = request;
	err = muster_request_pin(request, in, out);
	if (err)
		muster_comm_give_up(comm, err);
	else
		muster_advance(comm);
	return 0;
}

int muster_again_start(struct muster_request *request, const void *in, void *out,
		       struct muster_request **result)
{
	struct muster_comm *comm = request->comm;
	struct muster *job = request->job;
	struct muster_kept *kept = request->kept;

	*result = request;
	request->copy_out = request->entry->gets_result ? out : NULL;
	if (__builtin_expect(request->anew, 0))
		muster_restart_note(request, in, out);
	enter(comm, request);
	muster_copy(kept->operand, in, kept->operand_bytes);
	if (__builtin_expect(muster_kept_run(job->dev, kept), 0))
		return start_slowly(request, in, out);
	kept->busy = true;
	request->sequence = comm->sequences++;
	request->state = MUSTER_REQUEST_RUNNING;
	job->again = request;
	return 0;
}
