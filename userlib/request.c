// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Operations under way. Those of a communicator stand in one list in the order
 * in which they were started; they are given to the device in that order and
 * finish in that order. The host path runs one operation at a time, alone; the
 * NIC takes as many as it has room for, the rest wait here.
 *
 * Nothing is allocated or looked up in the environment once an operation has run
 * before: requests come from a free list, programs from the cache.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "again.h"
#include "calls.h"
#include "rails.h"
#include "restart.h"
#include "stats.h"
#include "tree.h"
#include "turn.h"

struct muster_request_block {
	struct muster_request_block *next;
	struct muster_request requests[MUSTER_REQUEST_BLOCK];
};

/* ---- requests ------------------------------------------------------------------ */

static int block_add(struct muster *job)
{
	struct muster_request_block *block = calloc(1, sizeof(*block));

	if (!block)
		return muster_fail(job, -ENOMEM, "no memory for a request");
	block->next = job->blocks;
	job->blocks = block;
	for (int i = 0; i < MUSTER_REQUEST_BLOCK; i++) {
		block->requests[i].next = job->free_requests;
		job->free_requests = &block->requests[i];
	}
	return 0;
}

int muster_request_new(struct muster_comm *comm, const struct muster_call *call,
		       struct muster_request **request)
{
	struct muster *job = comm->job;
	int err = job->free_requests ? 0 : block_add(job);

	if (err)
		return err;
	*request = job->free_requests;
	job->free_requests = (*request)->next;
	**request = (struct muster_request){
		.job = job, .comm = comm, .context = comm->context,
		.coll = muster_call_coll(call), .own = call->own, .anew = call->anew,
	};
	return 0;
}

void muster_request_put(struct muster_request *request)
{
	request->state = MUSTER_REQUEST_FREE;
	request->next = request->job->free_requests;
	request->job->free_requests = request;
}

/* Nobody waits for it any more. */
static void result_drop(struct muster_request *request)
{
	muster_aside_end(request->aside, -ECANCELED);
	free(request->input);
	free(request->sentence);
	if (request->failed)
		muster_comm_put(request->failed);
}

static void results_drop(struct muster_request_block *block)
{
	for (int i = 0; i < MUSTER_REQUEST_BLOCK; i++)
		if (block->requests[i].state == MUSTER_REQUEST_DONE)
			result_drop(&block->requests[i]);
}

void muster_request_blocks_free(struct muster *job)
{
	for (struct muster_request_block *block = job->blocks; block; block = block->next)
		results_drop(block);
	while (job->blocks) {
		struct muster_request_block *block = job->blocks;

		job->blocks = block->next;
		free(block);
	}
}

/* ---- starting -------------------------------------------------------------------- */

static void *place_of(const void *message, const struct muster_span *span)
{
	return (void *)((uintptr_t)message + span->first);
}

static int in_pin(struct muster_request *request, int access)
{
	const struct muster_entry *entry = request->entry;

	if (entry->call.in_place || !entry->has.bytes)
		return 0;
	return muster_pin(request->job, place_of(request->in, &entry->has), entry->has.bytes,
			  access, &request->in_pin);
}

static int out_pin(struct muster_request *request, int access)
{
	const struct muster_entry *entry = request->entry;

	if (!entry->needs.bytes)
		return 0;
	if (entry->gets_result)
		access |= MUSTER_ACCESS_WRITE;
	return muster_pin(request->job, place_of(request->out, &entry->needs), entry->needs.bytes,
			  access, &request->out_pin);
}

/* Small data travels inside of descriptors; the rest must be known to the device. */
static inline int buffers_pin(struct muster_request *request)
{
	int access = MUSTER_ACCESS_READ;
	int err;

	if (request->path == MUSTER_PATH_BUMP)
		return 0;
	if (request->entry->call.bytes <= MUSTER_INLINE_MAX &&
	    (request->path == MUSTER_PATH_HOST || request->entry->program->is_small))
		return 0;
	if (request->entry->schedule->variant.push)
		access |= MUSTER_ACCESS_APART;
	err = in_pin(request, access);
	if (err)
		return err;
	err = out_pin(request, access);
	if (err)
		muster_unpin(request->job, &request->in_pin);
	return err;
}

static inline void buffers_set(struct muster_request *request, const void *in, void *out)
{
	const struct muster_entry *entry = request->entry;
	bool is_small = muster_path_is_posted(request->path) && entry->program->is_small;

	request->in = (void *)((uintptr_t)in - entry->has.first);
	request->out = (void *)((uintptr_t)out - entry->needs.first);
	request->copy_out = is_small && entry->gets_result ? out : NULL;
	request->scratch = !is_small && request->path != MUSTER_PATH_BUMP && entry->passes;
}

int muster_request_pin(struct muster_request *request, const void *in, void *out)
{
	buffers_set(request, in, out);
	return buffers_pin(request);
}

void muster_request_unpin(struct muster_request *request)
{
	if (request->fetched)
		muster_long_forget(request);
	if (request->in_pin.key)
		muster_unpin(request->job, &request->in_pin);
	if (request->out_pin.key)
		muster_unpin(request->job, &request->out_pin);
}

static inline void enqueue(struct muster_comm *comm, struct muster_request *request)
{
	struct muster *job = comm->job;

	request->number = comm->number++;
	job->under_way++;
	comm->warm->history[request->number % MUSTER_HISTORY] = (struct muster_past){
		.signature = request->entry->signature,
		.host = request->path < MUSTER_PATH_NIC,	/* or it is not known yet */
	};
	request->state = MUSTER_REQUEST_QUEUED;
	if (comm->first) {
		comm->end->next = request;
	} else {
		comm->first = request;
		muster_look_first(comm);
	}
	comm->look->started = comm->number;
	muster_look_called(job, request);
	comm->end = request;
	if (!comm->unposted)
		comm->unposted = request;
}

/* One rank, or no elements: there is nobody to talk to and nothing to say. */
static bool is_nothing(const struct muster_comm *comm, const struct muster_call *call)
{
	bool empty = !call->bytes && !(call->cut && call->cut->longest);

	return comm->size == 1 || (empty && call->coll != MUSTER_COLL_BARRIER);
}

static void nothing_set(struct muster_request *request, const struct muster_call *call,
			const void *in, void *out)
{
	request->in = in;
	request->out = muster_coll_wants(call->coll, 0, 0) ? out : NULL;
	request->nothing_bytes = call->bytes;
}

static void finish_nothing(struct muster_request *request)
{
	if (request->nothing_bytes && request->out && request->in != request->out)
		memcpy(request->out, request->in, request->nothing_bytes);
	request->state = MUSTER_REQUEST_DONE;
	if (!request->own) {
		muster_again_drop(request->comm);
		muster_last_set_nothing(request);
		if (request->job->stats)
			muster_stats_count(request);
	}
}

static int prepare(struct muster_request *request, const struct muster_call *call, const void *in,
		   void *out)
{
	struct muster_comm *comm = request->comm;
	int err = muster_entry_get(comm, call, &request->entry);

	if (err)
		return err;
	err = muster_path_choose(request);
	if (err)
		goto err_put_entry;
	err = muster_request_pin(request, in, out);
	if (err)
		goto err_put_entry;
	return 0;

err_put_entry:
	muster_entry_put(request->entry);
	return err;
}

static void give_back(struct muster_request *request)
{
	muster_request_unpin(request);
	if (request->entry)
		muster_entry_put(request->entry);
}

static void done(struct muster_request *request, int result, bool holds_entry)
{
	struct muster_comm *comm = request->comm;

	if (!request->persistent && !holds_entry)
		give_back(request);
	if (request->input)
		muster_restart_input_put(request);
	request->result = result;
	if (result && comm->failed && !request->sentence) {
		request->failed = comm;
		comm->refs++;
	}
	request->state = MUSTER_REQUEST_DONE;
	if (__builtin_expect(request->awaited, 0)) {
		request->awaited = false;
		muster_turn_news(request->job);
	}
}

void muster_request_done(struct muster_request *request, int result)
{
	done(request, result, false);
}

/* Behind it, before the next: all have its result. */
static void agreement_start(struct muster_request *of)
{
	static const struct muster_call call = { .coll = MUSTER_COLL_BARRIER, .in_place = true, .own = true };
	struct muster_comm *comm = of->comm;
	struct muster_request *request;
	int err = muster_request_new(comm, &call, &request);

	if (!err)
		err = prepare(request, &call, NULL, NULL);
	if (err) {
		muster_comm_give_up(comm, err);
		return;
	}
	request->agrees = true;
	request->agreement = of;
	of->agreement = request;
	enqueue(comm, request);
}

/* It has ended, or is to be begun anew. */
static void settle(struct muster_request *request, int result, bool holds_entry)
{
	request->result = result;
	if (result == -ECONNRESET && muster_restart_awaits(request))
		muster_restart_add(request);
	else
		done(request, result, holds_entry);
}

void muster_request_enqueue(struct muster_request *request)
{
	struct muster_comm *comm = request->comm;

	if (__builtin_expect(muster_restart_stops(comm), 0)) {
		settle(request, comm->failed ? comm->failed : -ECONNRESET, false);
		return;
	}
	enqueue(comm, request);
	if (request->anew && comm->restarts->how == MUSTER_RESTART_AGREED)
		agreement_start(request);
	muster_advance(comm);
}

/* Now it runs, in its turn. */
void muster_request_go(struct muster_request *request)
{
	int err = request->anew ? muster_restart_enter(request) : 0;

	if (request->job->stats)
		request->began_us = muster_now_us(request->job);
	if (err)
		muster_comm_give_up(request->comm, err);
	if (request->entry)
		muster_request_enqueue(request);
	else
		finish_nothing(request);
}

/* It waits to be started, as often as its caller likes; so its program is worth keeping. */
void muster_request_persist(struct muster_request *request)
{
	struct muster_comm *comm = request->comm;

	request->persistent = true;
	request->state = MUSTER_REQUEST_IDLE;
	request->next_persistent = comm->persistent;
	comm->persistent = request;
	if (request->path == MUSTER_PATH_NIC)
		request->entry->posted = true;
}

int muster_request_make(struct muster_comm *comm, const struct muster_call *call, const void *in,
			void *out, struct muster_request **result)
{
	struct muster_request *request;
	int err = muster_request_new(comm, call, &request);

	if (err)
		return err;
	if (is_nothing(comm, call))
		nothing_set(request, call, in, out);
	else
		err = prepare(request, call, in, out);
	if (err)
		muster_request_put(request);
	else
		*result = request;
	return err;
}

/* What muster.h calls an argument error: the others wait for this rank to call again. */
static bool is_argument_error(int err)
{
	return err == -EINVAL || err == -EOVERFLOW || err == -EFAULT || err == -EOPNOTSUPP;
}

int muster_request_start(struct muster_comm *comm, const struct muster_call *call, const void *in,
			 void *out, struct muster_request **result)
{
	int err = muster_rails_take(comm, call) ? muster_rails_make(comm, call, in, out, result) :
						  muster_request_make(comm, call, in, out, result);

	if (err)
		return is_argument_error(err) ? err : muster_comm_give_up(comm, err);
	for (struct muster_request *part = *result; part; part = part->next_rail)
		if (__builtin_expect(comm->persists, 0))
			muster_request_persist(part);
		else
			muster_request_go(part);
	return 0;
}

/* ---- finishing ----------------------------------------------------------------------- */

static void agreement_end(struct muster_request *request, int result)
{
	struct muster_request *of = request->agreement;

	of->agreement = NULL;
	give_back(request);
	muster_request_put(request);
	if (result == -ECONNRESET && muster_restart_awaits(of))
		muster_restart_add(of);
	else
		done(of, of->result ? of->result : result, false);
}

void muster_request_unmake(struct muster_request *request)
{
	if (!request)
		return;
	muster_request_unmake(request->next_rail);
	give_back(request);
	muster_request_put(request);
}

void muster_request_finish(struct muster_request *request, int result)
{
	struct muster_comm *comm = request->comm;
	const bool was_ready = request->ready;	/* its entry is put when that ends */

	if (comm->job->again == request)
		comm->job->again = NULL;
	comm->first = request->next;
	comm->job->under_way--;
	comm->look->ended = request->number + 1;
	muster_look_done(request);
	if (comm->first)
		muster_look_first(comm);
	if (comm->unposted == request)
		comm->unposted = request->next;
	if (!result) {
		if (request->copy_out)
			muster_copy(request->copy_out, request->result_at, request->entry->needs.bytes);
		if (!request->own && (comm->warm->last_of != request->entry ||
				      comm->warm->last_era != comm->job->era ||
				      comm->last.path != request->path))
			muster_last_set(comm, request);
		muster_again_review(request);
		if (request->job->stats)
			muster_stats_count(request);
	}
	if (muster_path_is_posted(request->path))
		muster_nic_ended(request);
	if (request->locked)
		muster_lock_used(request);
	if (request->persistent && request->aside && request->aside->exact.type)
		muster_request_unpin(request);	/* the next has limbs of its own */
	if (__builtin_expect(request->agrees, 0))
		agreement_end(request, result);
	else if (request->agreement)
		request->result = result;	/* it ends with that */
	else
		settle(request, result, was_ready);
	if (comm->unposted || comm->freed || (comm->trees && comm->trees->move.begun))
		muster_comm_activate(comm);
}

void muster_ended_finish(struct muster_comm *comm)
{
	while (comm->first && comm->first->ended && muster_rails_ended(comm->first) &&
	       !muster_comm_holds(comm))
		muster_request_finish(comm->first, 0);
	comm->again |= comm->first && comm->first->ended;
	if (comm->again)
		muster_comm_activate(comm);
}

/* Who made progress may have been another thread, and the communicator is closed since. */
static void failure_say(struct muster_request *request)
{
	const struct muster_comm *comm = request->failed;

	muster_fail(request->job, comm->failed, "%s", muster_comm_why(comm));
	muster_comm_put(request->failed);
	request->failed = NULL;
}

static void sentence_say(struct muster_request *request)
{
	muster_fail(request->job, request->result, "%s", request->sentence);
	free(request->sentence);
	request->sentence = NULL;
}

int muster_request_end(struct muster_request *request)
{
	struct muster *job = request->job;
	int result = request->result;

	if (request->next_rail)
		muster_request_end(request->next_rail);
	if (request->failed)
		failure_say(request);
	if (__builtin_expect(request->sentence != NULL, 0))
		sentence_say(request);
	if (!request->persistent) {
		if (request->aside)
			muster_aside_end(request->aside, result);
		if (request->ready)
			request->state = MUSTER_REQUEST_FREE;
		else
			muster_request_put(request);
		muster_warm_limit(job);
		return result;
	}
	if (request->aside)
		muster_aside_take(request->aside, result);
	request->state = MUSTER_REQUEST_IDLE;
	return result;
}

/* ---- persistent ------------------------------------------------------------------------ */

/* As if it had not run. */
void muster_request_reset(struct muster_request *request)
{
	request->next = NULL;
	request->kept = NULL;
	request->stage = 0;
	request->ended = false;
	request->awaited = request->locked = false;
	request->result = 0;
}

int muster_request_restart(struct muster_request *request)
{
	struct muster_comm *comm = request->comm;
	int err = 0;

	if (request->anew && comm->restarts)
		err = muster_restart_call_again(request);
	else if (comm->failed)
		err = muster_fail(comm->job, comm->failed, "%s", muster_comm_why(comm));
	if (err)
		return err;
	muster_request_reset(request);
	if (request->aside)
		err = muster_request_lengths_again(request);
	if (err)
		return err;
	muster_request_go(request);
	return request->next_rail ? muster_request_restart(request->next_rail) : 0;
}

void muster_request_unlist(struct muster_request *request)
{
	struct muster_comm *comm = request->comm;
	struct muster_request **place = &comm->persistent;

	if (request->next_rail)
		muster_request_release(request->next_rail);
	while (*place != request)
		place = &(*place)->next_persistent;
	*place = request->next_persistent;
	if (comm->freed)
		muster_comm_activate(comm);
}

void muster_request_release(struct muster_request *request)
{
	muster_request_unlist(request);
	give_back(request);
	result_drop(request);		/* who wanted it has had it */
	muster_request_put(request);
}

/* ---- running ------------------------------------------------------------------------- */

/* Without the device; the rest of it may run on other rails. */
static void ran(struct muster_request *request)
{
	struct muster_comm *comm = request->comm;

	if (muster_rails_ended(request)) {
		muster_request_finish(request, 0);
		return;
	}
	request->ended = true;
	comm->unposted = request->next;
	comm->again = true;
}

void muster_advance(struct muster_comm *comm)
{
	struct muster_request *request;
	int ret;

	while ((request = comm->unposted)) {
		if (__builtin_expect(request->agrees, 0) && comm->first != request)
			break;
		ret = request->run(request);
		if (ret == MUSTER_RUN_POSTED)
			comm->unposted = request->next;
		else if (ret == MUSTER_RUN_DONE)
			ran(request);
		else if (ret < 0)	/* unless it has failed already */
			muster_comm_abort(comm, MUSTER_STATUS_DESCRIPTOR, comm->rank, NULL, NULL);
		/* Who runs on the CPU is woken by what comes; who waits for room asks again. */
		comm->again |= ret == MUSTER_RUN_AGAIN && muster_path_is_posted(request->path);
		if (comm->unposted == request)
			break;
	}
	if (comm->again)
		muster_comm_activate(comm);
}
