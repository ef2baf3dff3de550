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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "look.h"
#include "stats.h"
#include "tree.h"

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

static inline int request_new(struct muster_comm *comm, const struct muster_call *call,
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
		.coll = muster_call_coll(call),
	};
	return 0;
}

static void request_free(struct muster_request *request)
{
	request->state = MUSTER_REQUEST_FREE;
	request->next = request->job->free_requests;
	request->job->free_requests = request;
}

void muster_request_blocks_free(struct muster *job)
{
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
	    (request->path == MUSTER_PATH_HOST || request->entry->program->is_inline))
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
	bool is_inline = muster_path_is_posted(request->path) && entry->program->is_inline;

	request->in = (void *)((uintptr_t)in - entry->has.first);
	request->out = (void *)((uintptr_t)out - entry->needs.first);
	request->copy_out = is_inline && entry->gets_result ? out : NULL;
	request->scratch = !is_inline && request->path != MUSTER_PATH_BUMP && entry->passes;
}

/* What a communicator remembers, from its first operation on. */
struct memory {
	struct muster_past history[MUSTER_HISTORY];
	struct muster_entry *cache[MUSTER_CACHE_MAX];
	struct muster_kept *kept[MUSTER_KEPT_SLOTS];
};

int muster_comm_remember(struct muster_comm *comm)
{
	struct memory *memory;

	memory = calloc(1, sizeof(*memory));
	if (!memory)
		return muster_fail(comm->job, -ENOMEM, "no memory for the communicator's operations");
	comm->history = memory->history;
	comm->cache = memory->cache;
	comm->kept = memory->kept;
	return 0;
}

void muster_comm_forget(struct muster_comm *comm)
{
	free(comm->history);	/* which memory begins with */
}

static inline void enqueue(struct muster_comm *comm, struct muster_request *request)
{
	request->number = comm->number++;
	comm->job->under_way++;
	comm->history[request->number % MUSTER_HISTORY] = (struct muster_past){
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
	muster_look_called(request);
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
	request->comm->last = (struct muster_op_info){
		.path = MUSTER_PATH_NONE,
		.why = request->comm->size == 1 ? "nothing to do: one rank" :
						  "nothing to do: no elements",
		.bytes = request->nothing_bytes,
	};
	if (request->job->stats)
		muster_stats_count(request);
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
	buffers_set(request, in, out);
	err = buffers_pin(request);
	if (err)
		goto err_put_entry;
	return 0;

err_put_entry:
	muster_entry_put(request->entry);
	return err;
}

/* Now it runs, in its turn. */
static inline void set_going(struct muster_request *request)
{
	if (request->job->stats)
		request->began_us = muster_now_us(request->job);
	if (!request->entry) {
		finish_nothing(request);
		return;
	}
	enqueue(request->comm, request);
	muster_advance(request->comm);
}

/* It waits to be started, as often as its caller likes; so its program is worth keeping. */
static void persist(struct muster_request *request)
{
	struct muster_comm *comm = request->comm;

	request->persistent = true;
	request->state = MUSTER_REQUEST_IDLE;
	request->next_persistent = comm->persistent;
	comm->persistent = request;
	if (request->path == MUSTER_PATH_NIC && request->entry->program->is_inline)
		request->entry->posted = true;
}

/* What muster.h calls an argument error: the others wait for this rank to call again. */
static bool is_argument_error(int err)
{
	return err == -EINVAL || err == -EOVERFLOW || err == -EFAULT || err == -EOPNOTSUPP;
}

int muster_request_start(struct muster_comm *comm, const struct muster_call *call, const void *in,
			 void *out, struct muster_request **result)
{
	struct muster_request *request;
	int err = request_new(comm, call, &request);

	if (err)
		return muster_comm_give_up(comm, err);
	if (is_nothing(comm, call))
		nothing_set(request, call, in, out);
	else
		err = prepare(request, call, in, out);
	if (err) {
		request_free(request);
		return is_argument_error(err) ? err : muster_comm_give_up(comm, err);
	}
	if (__builtin_expect(comm->persists, 0))
		persist(request);
	else
		set_going(request);
	*result = request;
	return 0;
}

/* ---- blocks whose lengths not all know ------------------------------------------------ */

/* How long may a block be? From the root, who knows, or the longest of all. */
static int lengths_start(struct muster_comm *comm, const struct muster_call *call,
			 struct muster_aside *aside)
{
	struct muster_call lengths = {
		.coll = muster_coll_rooted(call->coll) ? MUSTER_COLL_BROADCAST :
							 MUSTER_COLL_ALLREDUCE,
		.as = call->as, .type = MUSTER_U64, .op = MUSTER_MAX, .root = call->root,
		.count = 1, .bytes = sizeof(aside->longest), .in_place = true,
	};

	return muster_request_start(comm, &lengths, &aside->longest, &aside->longest,
				    &aside->lengths);
}

/* The same on every rank, so it is no end of the communicator. */
static int finish_early(struct muster_request *request, int result, const char *why)
{
	request->why = why;
	muster_request_finish(request, result);
	return MUSTER_RUN_AGAIN;
}

/* Now all is known that prepare() knows of others. */
static int prepare_late(struct muster_request *request)
{
	struct muster_comm *comm = request->comm;
	struct muster_entry *entry = request->entry;
	struct muster_cut *cut = (struct muster_cut *)(uintptr_t)entry->call.cut;
	int err;

	cut->longest = request->aside->longest;
	if (muster_cut_longest(cut) > cut->longest) {
		muster_comm_abort(comm, MUSTER_STATUS_MISMATCH, comm->rank, NULL, NULL);
		return -EPROTO;
	}
	if (!cut->longest)
		return finish_early(request, 0, "nothing to do: no elements");
	err = muster_path_choose(request);
	if (err == -EOPNOTSUPP)
		return finish_early(request, err, entry->why);
	if (!err) {
		buffers_set(request, request->in, request->out);
		err = buffers_pin(request);
	}
	if (err)
		return muster_comm_give_up(comm, err);
	comm->history[request->number % MUSTER_HISTORY].host = request->path == MUSTER_PATH_HOST;
	return request->run(request);
}

/* -errno: the communicator has ended. */
static int lengths_begin(struct muster_request *request, struct muster_aside *aside)
{
	struct muster_comm *comm = request->comm;
	int err = lengths_start(comm, &request->entry->call, aside);

	if (err || !comm->failed)
		return err;
	err = muster_request_end(aside->lengths);
	aside->lengths = NULL;
	return err;
}

static int lengths_run(struct muster_request *request)
{
	struct muster_aside *aside = request->aside;

	if (aside->lengths->state != MUSTER_REQUEST_DONE)
		return MUSTER_RUN_AGAIN;
	muster_request_end(aside->lengths);
	aside->lengths = NULL;
	return prepare_late(request);
}

int muster_request_start_lengths(struct muster_comm *comm, const struct muster_call *call,
				 const void *in, void *out, struct muster_aside *aside,
				 struct muster_request **result)
{
	struct muster_request *request;
	int err = request_new(comm, call, &request);

	if (err)
		return muster_comm_give_up(comm, err);
	err = muster_entry_get(comm, call, &request->entry);
	if (err) {
		request_free(request);
		return muster_comm_give_up(comm, err);
	}
	request->in = in;
	request->out = out;
	request->aside = aside;
	request->run = lengths_run;
	if (comm->persists) {
		persist(request);
	} else {
		err = lengths_begin(request, aside);
		if (!err)
			set_going(request);
	}
	if (err) {
		muster_entry_put(request->entry);
		request_free(request);
		return err;
	}
	*result = request;
	return 0;
}

/* ---- finishing ----------------------------------------------------------------------- */

static bool is_network(enum muster_path path)
{
	return path == MUSTER_PATH_SWITCH || path == MUSTER_PATH_BUMP;
}

/* What was not the switches' or the bump's says so beside its own reason. */
static void why_set(struct muster_comm *comm, const struct muster_request *request)
{
	const struct muster_entry *entry = request->entry;
	bool no_bump = !is_network(request->path) && entry->no_bump && *entry->no_bump;
	bool no_tree = !is_network(request->path) && entry->no_tree && *entry->no_tree;

	comm->last.why = request->why;
	if (!no_bump && !no_tree && request->why != entry->why)
		return;
	snprintf(comm->last_why, sizeof(comm->last_why), "%s%s%s%s%s", request->why,
		 no_tree ? "; not the switches: " : "", no_tree ? entry->no_tree : "",
		 no_bump ? "; not the bump: " : "", no_bump ? entry->no_bump : "");
	comm->last.why = comm->last_why;	/* the entry may go */
}

static const char *schedule_of(const struct muster_request *request)
{
	switch (request->path) {
	case MUSTER_PATH_BUMP:
		return muster_bump_schedule(request->entry);
	case MUSTER_PATH_SWITCH:
		return muster_trees_schedule(request->comm, request->entry);
	default:
		return request->entry->schedule->name;
	}
}

static void info_fill(const struct muster_request *request, struct muster_op_info *info)
{
	const struct muster_entry *entry = request->entry;

	*info = (struct muster_op_info){
		.path = request->path,
		.bytes = entry->call.bytes,
		.steps = request->path == MUSTER_PATH_SWITCH ? 1 : entry->schedule->steps,
	};
	strcpy(info->schedule, schedule_of(request));
	if (muster_path_is_posted(request->path)) {
		info->sequences = entry->program->nr_stages;
		info->descriptors = entry->program->nr_descs;
	}
}

/* The same as the last time, unless it is the first, or another path was chosen since. */
static void last_set(struct muster_comm *comm, const struct muster_request *request)
{
	struct muster_op_info *info = &request->entry->info;

	if (!*info->schedule || info->path != request->path)
		info_fill(request, info);
	comm->last = *info;
	why_set(comm, request);
}

static void give_back(struct muster_request *request, int result)
{
	if (request->in_pin.key)
		muster_unpin(request->job, &request->in_pin);
	if (request->out_pin.key)
		muster_unpin(request->job, &request->out_pin);
	if (request->aside)
		muster_aside_end(request->aside, result);
	if (request->entry)
		muster_entry_put(request->entry);
}

void muster_request_finish(struct muster_request *request, int result)
{
	struct muster_comm *comm = request->comm;

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
			memcpy(request->copy_out, request->result_at, request->entry->call.bytes);
		last_set(comm, request);
		if (request->job->stats)
			muster_stats_count(request);
	}
	if (muster_path_is_posted(request->path))
		muster_nic_ended(request);
	if (!request->persistent)
		give_back(request, result);
	else if (request->aside)
		muster_aside_take(request->aside, result);
	request->result = result;
	request->state = MUSTER_REQUEST_DONE;
	if (comm->unposted || comm->freed)
		muster_comm_activate(comm);
}

void muster_ended_finish(struct muster_comm *comm)
{
	while (comm->first && comm->first->ended && !muster_comm_holds(comm))
		muster_request_finish(comm->first, 0);
	comm->again |= comm->first && comm->first->ended;
	if (comm->again)
		muster_comm_activate(comm);
}

/* The sentence of the communicator's end, if it is still there. */
static void result_say(const struct muster_request *request)
{
	const struct muster_comm *comm =
		muster_comm_find(request->job, request->job->id, request->context);

	if (comm && comm == request->comm && comm->failed)
		muster_fail(request->job, comm->failed, "%s", comm->why);
}

int muster_request_end(struct muster_request *request)
{
	int result = request->result;

	if (result)
		result_say(request);
	if (request->persistent)
		request->state = MUSTER_REQUEST_IDLE;
	else
		request_free(request);
	return result;
}

/* ---- persistent ------------------------------------------------------------------------ */

int muster_request_again(struct muster_request *request)
{
	struct muster_comm *comm = request->comm;
	struct muster_aside *aside = request->aside;
	int err = 0;

	if (comm->failed)
		return muster_fail(comm->job, comm->failed, "%s", comm->why);
	request->next = NULL;
	request->kept = NULL;
	request->stage = 0;
	request->ended = false;
	request->result = 0;
	if (aside)
		muster_aside_fill(aside);
	if (request->run == lengths_run) {	/* they stay what they are, once they are known */
		aside->longest = muster_cut_longest(request->entry->call.cut);
		err = lengths_begin(request, aside);
	}
	if (err)
		return err;
	set_going(request);
	if (!request->entry && aside)
		muster_aside_take(aside, 0);
	return 0;
}

void muster_request_release(struct muster_request *request)
{
	struct muster_comm *comm = request->comm;
	struct muster_request **place = &comm->persistent;

	while (*place != request)
		place = &(*place)->next_persistent;
	*place = request->next_persistent;
	give_back(request, -ECANCELED);		/* what was to be copied at the end has been */
	request_free(request);
	if (comm->freed)
		muster_comm_activate(comm);
}

/* ---- running ------------------------------------------------------------------------- */

void muster_advance(struct muster_comm *comm)
{
	struct muster_request *request;
	int ret;

	while ((request = comm->unposted)) {
		ret = request->run(request);
		if (ret == MUSTER_RUN_POSTED)
			comm->unposted = request->next;
		else if (ret == MUSTER_RUN_DONE)
			muster_request_finish(request, 0);
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
