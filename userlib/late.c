// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What is prepared only when its turn has come, as ranks must agree upon something first: the
 * longest of blocks whose lengths not all know, or what an exact sum spans. That is an operation
 * of its own, before. And what cannot have its tree takes another path then.
 */
#include <errno.h>

#include "calls.h"
#include "restart.h"

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

/* Blocks' lengths are known. Return: whether there is something to do, or -errno. */
static int lengths_take(struct muster_request *request)
{
	struct muster_comm *comm = request->comm;
	const struct muster_cut *cut = request->entry->call.cut;

	muster_entry_longest(request->entry, request->aside->longest);
	if (muster_cut_longest(cut) <= cut->longest)
		return cut->longest > 0;
	muster_comm_abort(comm, MUSTER_STATUS_MISMATCH, comm->rank, NULL, NULL);
	return -EPROTO;
}

static int no_path(struct muster_request *request, int err, const char *why)
{
	return err == -EOPNOTSUPP ? finish_early(request, err, why) :
				    muster_comm_give_up(request->comm, err);
}

static int path_run(struct muster_request *request, const void *in, void *out)
{
	struct muster_comm *comm = request->comm;
	int err = muster_request_pin(request, in, out);

	if (err)
		return muster_comm_give_up(comm, err);
	comm->warm->history[request->number % MUSTER_HISTORY].host = request->path == MUSTER_PATH_HOST;
	return request->run(request);
}

/* Now all is known that prepare() knows of others. */
static int prepare_late(struct muster_request *request)
{
	int err = request->aside->exact.type ? muster_exact_prepare(request) :
					       lengths_take(request);

	if (err < 0)
		return err;
	if (!err)
		return finish_early(request, 0, "nothing to do: no elements");
	err = muster_path_choose(request);
	if (err)
		return no_path(request, err, request->entry->why);
	return path_run(request, request->in, request->out);
}

/* One that is persistent stays there. Where there is no other path it stays what it was. */
int muster_request_elsewhere(struct muster_request *request)
{
	struct muster_entry *entry = request->entry;
	const uint8_t *in = request->in + entry->has.first;
	uint8_t *out = request->out + entry->needs.first;
	struct muster_call call = entry->call;
	struct muster_entry *other;
	int err;

	call.off_tree = true;
	err = muster_entry_get(request->comm, &call, &other);
	if (err)
		return muster_comm_give_up(request->comm, err);
	request->entry = other;
	err = muster_path_choose(request);
	if (err) {
		request->entry = entry;
		err = no_path(request, err, other->why);
		muster_entry_put(other);
		return err;
	}
	muster_request_unpin(request);
	muster_entry_put(entry);
	return path_run(request, in, out);
}

/* -errno: the communicator has ended. */
static int lengths_begin(struct muster_request *request, struct muster_aside *aside)
{
	struct muster_comm *comm = request->comm;
	int err = aside->exact.type ? muster_exact_look(comm, &aside->exact, &aside->lengths) :
				      lengths_start(comm, &request->entry->call, aside);

	if (err || !comm->failed)
		return err;
	err = muster_request_end(aside->lengths);
	aside->lengths = NULL;
	return muster_restart_awaits(request) ? 0 : err;
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
	int err = muster_request_new(comm, call, &request);

	if (err)
		return muster_comm_give_up(comm, err);
	err = muster_entry_get(comm, call, &request->entry);
	if (err) {
		muster_request_put(request);
		return muster_comm_give_up(comm, err);
	}
	request->in = in;
	request->out = out;
	request->aside = aside;
	request->run = lengths_run;
	if (comm->persists) {
		muster_request_persist(request);
	} else {
		err = muster_restart_stops(comm) ? 0 : lengths_begin(request, aside);
		if (!err)
			muster_request_go(request);
	}
	if (err) {
		muster_entry_put(request->entry);
		muster_request_put(request);
		return err;
	}
	*result = request;
	return 0;
}

bool muster_request_is_late(const struct muster_request *request)
{
	return request->entry && request->aside &&
	       (request->aside->exact.type || muster_call_hides(&request->entry->call));
}

int muster_request_lengths_anew(struct muster_request *request)
{
	struct muster_aside *aside = request->aside;

	if (aside->exact.type)	/* other numbers, which may span something else */
		request->path = MUSTER_PATH_NONE;
	else
		aside->longest = muster_cut_longest(request->entry->call.cut);
	request->run = lengths_run;
	return muster_restart_stops(request->comm) ? 0 : lengths_begin(request, aside);
}

/* Lengths stay what they are, once they are known. */
int muster_request_lengths_again(struct muster_request *request)
{
	muster_aside_fill(request->aside);
	return request->aside->exact.type || request->run == lengths_run ? muster_request_lengths_anew(request) : 0;
}

/* ---- on another communicator --------------------------------------------------------- */

/* Its buffers, as they were given. */
static void buffers_of(const struct muster_request *request, const uint8_t **in, uint8_t **out)
{
	const struct muster_entry *entry = request->entry;

	*in = request->in;
	*out = request->out;
	if (request->run == lengths_run)
		return;
	*in += entry->has.first;
	*out += entry->needs.first;
}

/* As it would be there: its root, and what of it depends on how many they are. */
static void call_refit(struct muster_request *request, const struct muster_comm *to, struct muster_call *call)
{
	const struct muster_comm *from = request->comm;

	if (muster_coll_rooted(call->coll))
		call->root = muster_comm_member(to, from->ranks[call->root]);
	if (request->aside && request->aside->fold.bytes && to->size != from->size)
		muster_user_refit(from, to, call, &request->aside->fold);
	if (call->bytes && !muster_call_needs(to, call).bytes)	/* the first, of an exscan */
		call->in_place = false;
}

static void comm_set(struct muster_request *request, struct muster_comm *comm)
{
	if (request->persistent) {
		muster_request_unlist(request);
		request->next_persistent = comm->persistent;
		comm->persistent = request;
	}
	request->comm = comm;
	request->context = comm->context;
}

/* Ranks agree there again. */
static int late_move(struct muster_request *request, const uint8_t *in, uint8_t *out)
{
	struct muster_aside *aside = request->aside;

	if (aside->lengths)
		muster_request_end(aside->lengths);
	aside->lengths = NULL;
	muster_exact_forget(&aside->exact);
	request->in = in;
	request->out = out;
	request->run = lengths_run;
	return 0;
}

int muster_request_move(struct muster_request *request, struct muster_comm *comm)
{
	bool is_late = muster_request_is_late(request);
	struct muster_entry *old = request->entry, *entry;
	struct muster_call call;
	const uint8_t *in;
	uint8_t *out;
	int err;

	if (!old) {
		comm_set(request, comm);
		return 0;
	}
	call = old->call;
	buffers_of(request, &in, &out);
	call_refit(request, comm, &call);
	muster_request_unpin(request);
	err = muster_entry_get(comm, &call, &entry);
	if (err)
		return err;
	comm_set(request, comm);
	request->entry = entry;
	muster_entry_put(old);
	if (is_late)
		return late_move(request, in, out);
	err = muster_path_choose(request);
	if (!err)
		err = muster_request_pin(request, in, out);
	entry->posted |= request->persistent && request->path == MUSTER_PATH_NIC;
	return err;
}
