// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Operations are begun anew, once, when a member or a part of the network is lost while they run, whether their
 * callers wait for them or not, and persistent ones too. What had not ended then is kept with its call and its
 * input. In its next wait or test each that is left makes a communicator with all others, the heir, which has
 * trees of its own where there are some, and says there with which operation it is: these are counted by all
 * members alike. From the last of these on they are begun anew on the heir, in their order. What some have ended
 * cannot be: they have gone on, perhaps with another input in its place. By agreement nobody ends an operation
 * before all have its result, so then it has ended everywhere; without, it is an error at those that have
 * not. More than half must be left, so two halves of a network that is cut never both go on.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "arith.h"
#include "calls.h"
#include "graph.h"
#include "pair.h"
#include "restart.h"
#include "turn.h"

enum {
	AGAIN_MAX = 8,		/* heirs that are tried, beside one for each member that may be lost meanwhile */
};

/* ---- the input of what is in place ------------------------------------------------------------- */

/* Results that come beside the buffers first take their place only when they are there. */
static size_t overwritten(const struct muster_request *request, uint8_t **from)
{
	const struct muster_entry *entry = request->entry;
	const uint8_t *in = request->in + entry->has.first, *in_end = in + entry->has.bytes;
	uint8_t *out = request->out + entry->needs.first, *out_end = out + entry->needs.bytes;
	bool beside = request->copy_out && entry->program->is_small &&
		      request->comm->restarts->how != MUSTER_RESTART_AGREED;

	if (!muster_coll_row(entry->call.coll)->combines || muster_request_is_late(request) || beside)
		return 0;
	*from = in > out ? out + (in - out) : out;
	if (in_end <= *from || out_end <= *from)
		return 0;
	return (size_t)((in_end < out_end ? in_end : out_end) - *from);
}

static struct muster_input *input_room(struct muster_restarts *restarts, size_t bytes)
{
	struct muster_input *input = restarts->spare;

	if (input && input->room >= bytes) {
		restarts->spare = NULL;
		return input;
	}
	input = malloc(sizeof(*input) + bytes);
	if (input)
		input->room = bytes;
	return input;
}

static int input_keep(struct muster_request *request)
{
	uint8_t *from = NULL;
	size_t bytes = overwritten(request, &from);
	struct muster_input *input;

	if (!bytes)
		return 0;
	input = input_room(request->comm->restarts, bytes);
	if (!input)
		return muster_fail(request->job, -ENOMEM, "no memory to keep what an operation in place begins with");
	input->bytes = bytes;
	input->from = from;
	muster_copy(input->data, from, bytes);
	request->input = input;
	return 0;
}

static void input_restore(const struct muster_request *request)
{
	const struct muster_input *input = request->input;

	if (input)
		muster_copy(input->from, input->data, input->bytes);
}

/* The largest is kept for the next one. */
void muster_restart_input_put(struct muster_request *request)
{
	struct muster_restarts *restarts = request->comm->restarts;
	struct muster_input *input = request->input;

	request->input = NULL;
	if (restarts && (!restarts->spare || restarts->spare->room < input->room)) {
		free(restarts->spare);
		restarts->spare = input;
	} else {
		free(input);
	}
}

int muster_restart_enter(struct muster_request *request)
{
	struct muster_restarts *restarts = request->comm->restarts;

	if (!restarts)
		return 0;
	request->place = restarts->places++;
	return request->entry ? input_keep(request) : 0;
}

/* ---- who is needed for a call -------------------------------------------------------------------- */

/* What others have, or are to have, depends on how many they are. */
static bool has_blocks(const struct muster_call *call)
{
	switch (call->exact ? call->coll : muster_call_coll(call)) {
	case MUSTER_COLL_BARRIER:
	case MUSTER_COLL_BROADCAST:
	case MUSTER_COLL_REDUCE:
	case MUSTER_COLL_ALLREDUCE:
	case MUSTER_COLL_SCAN:
	case MUSTER_COLL_EXSCAN:
		return false;
	default:
		return true;
	}
}

static bool is_in(const struct muster_comm *comm, uint32_t rank)
{
	return muster_comm_member(comm, rank) < comm->size;
}

static int missing(struct muster_comm *named, const struct muster_comm *heir, const struct muster_call *call)
{
	enum muster_coll coll = call->exact ? call->coll : muster_call_coll(call);
	uint32_t who = 0;

	while (is_in(heir, named->ranks[who]))
		who++;
	return muster_fail(named->job, -ECONNRESET, "rank %u has died or left the job, and what %s does depends on all ranks; muster_comm_heir() has who is left",
			   who, muster_coll_name(coll));
}

/* Of a call on comm: whether it can be of the heir. named: by whose numbers ranks are named. */
static int fits(struct muster_comm *named, const struct muster_comm *comm, const struct muster_comm *heir,
		const struct muster_call *call)
{
	if (heir->size == comm->size)
		return 0;
	if (has_blocks(call))
		return missing(named, heir, call);
	if (!muster_coll_rooted(call->coll) || call->root >= comm->size || is_in(heir, comm->ranks[call->root]))
		return 0;
	return muster_fail(named->job, -ECONNRESET, "rank %u, the root, has died or left the job",
			   muster_comm_member(named, comm->ranks[call->root]));
}

static int ended_elsewhere(struct muster *job)
{
	return muster_fail(job, -ECONNRESET, "a member was lost, and others had ended this operation already: it cannot be begun anew (MUSTER_RESTART_AGREED can)");
}

/* A call on comm, of those that all count. */
static int call_check(struct muster_restarts *restarts, struct muster_comm *named, struct muster_comm *comm,
		      const struct muster_call *call)
{
	struct muster_comm *now = muster_restart_now(comm);
	int err = restarts->places < restarts->from ? ended_elsewhere(comm->job) : 0;

	if (!err && call)
		err = fits(named, comm, now, call);
	restarts->places += err != 0;
	if (err || !now->failed || (now->failed == -ECONNRESET && restarts->how != MUSTER_RESTART_OFF))
		return err;
	return muster_fail(now->job, now->failed, "%s", muster_comm_why(now));
}

int muster_restart_call(struct muster_comm **comm, struct muster_call *call)
{
	struct muster_restarts *restarts = (*comm)->restarts;
	struct muster_comm *now = muster_restart_now(*comm);
	int err = call_check(restarts, *comm, *comm, call);

	if (err)
		return err;
	call->anew = restarts->how != MUSTER_RESTART_OFF;
	if (now != *comm && muster_coll_rooted(call->coll) && call->root < (*comm)->size)
		call->root = muster_comm_member(now, (*comm)->ranks[call->root]);
	*comm = now;
	return 0;
}

static int move(struct muster_request *request, struct muster_comm *comm)
{
	int err = muster_request_move(request, comm);

	return err && err != -EOPNOTSUPP ? muster_comm_give_up(comm, err) : err;
}

int muster_restart_call_again(struct muster_request *request)
{
	struct muster_restarts *restarts = request->comm->restarts;
	struct muster_comm *now = muster_restart_now(request->comm);
	int err = call_check(restarts, restarts->comm, request->comm, request->entry ? &request->entry->call : NULL);

	return err || now == request->comm ? err : move(request, now);
}

/* ---- after a loss ---------------------------------------------------------------------------------- */

void muster_restart_add(struct muster_request *request)
{
	struct muster_restarts *restarts = request->comm->restarts;

	muster_request_unpin(request);
	restarts->gave_up = false;
	request->job->has_lost = true;
	request->state = MUSTER_REQUEST_LOST;
	request->next = NULL;
	if (!restarts->lost)
		restarts->lost_end = &restarts->lost;
	*restarts->lost_end = request;
	restarts->lost_end = &request->next;
}

static bool is_lost(struct muster_comm *comm, uint32_t member)
{
	struct muster_comm *heir = comm->restarts->heir;

	return muster_comm_has_lost(comm, member) ||
	       (heir && muster_comm_has_lost(heir, muster_comm_member(heir, comm->ranks[member])));
}

static void heir_set(struct muster_restarts *restarts, struct muster_comm *heir)
{
	muster_restart_forget(heir);
	heir->restarts = restarts;
	restarts->heir = heir;
}

/* Collective over those that are left. */
static int heir_make(struct muster_comm *comm)
{
	uint32_t *left = calloc(comm->size, sizeof(*left)), nr = 0;
	struct muster_comm *heir = NULL;
	int err;

	if (!left)
		return muster_fail(comm->job, -ENOMEM, "no memory for %u members", comm->size);
	for (uint32_t i = 0; i < comm->size; i++)
		if (!is_lost(comm, i))
			left[nr++] = i;
	if (is_lost(comm, comm->rank) || nr <= comm->size / 2)
		err = muster_fail(comm->job, -ENOTCONN, "of %u ranks %u can be reached from here; more than half are needed to go on",
				  comm->size, nr);
	else
		err = muster_comm_create_group(comm, nr, left, MUSTER_RESTART_TAG, &heir);
	free(left);
	if (!err)
		heir_set(comm->restarts, heir);
	return err;
}

/*
 * Whoever is lost meanwhile is so for all that have not an heir yet, and breaks that of those that have.
 * last: the heir on which they ran, which lasts until all have left it.
 */
static int heir_agree(struct muster_restarts *restarts, const struct muster_comm *last, struct muster_agreement *words)
{
	const uint64_t place = restarts->lost ? restarts->lost->place : restarts->places, anew_to = restarts->anew_to;
	struct muster_comm *comm = restarts->comm;
	int err = -ECONNRESET;

	for (uint32_t i = 0; i < comm->size + AGAIN_MAX && err == -ECONNRESET; i++) {
		struct muster_comm *before = restarts->heir;
		struct muster_group group;

		err = heir_make(comm);
		if (err)
			continue;
		if (before != last)
			muster_comm_free(before);
		*words = (struct muster_agreement){ .most = { place, anew_to } };
		group = muster_group_of_all(restarts->heir);
		err = muster_agree(&group, words);
	}
	return err;
}

/* ---- what becomes of each ---------------------------------------------------------------------------- */

static void end_with_error(struct muster_request *request, int err)
{
	request->sentence = strdup(muster_error(request->job));
	muster_request_done(request, err);
}

static void end_well(struct muster_restarts *restarts, struct muster_request *request)
{
	struct muster_op_info info = request->comm->last;

	info.why = "it had ended everywhere when a member was lost";
	restarts->heir->last = info;
	muster_request_done(request, 0);
}

static int begin_anew(struct muster_restarts *restarts, struct muster_request *request)
{
	int err = fits(restarts->comm, request->comm, restarts->heir, &request->entry->call);

	if (err)
		return err;
	restarts->anew_to = request->place + 1;
	muster_request_reset(request);
	err = move(request, restarts->heir);
	if (!err && muster_request_is_late(request))
		err = muster_request_lengths_anew(request);
	if (!err)
		muster_request_enqueue(request);
	return err;
}

/* most: the first operation that nobody has ended; anew_to: the first that nobody has begun anew. */
static void go_on(struct muster_restarts *restarts, struct muster_request *request, uint64_t most, uint64_t anew_to)
{
	int err;

	if (request->place < most && !request->result) {
		end_well(restarts, request);
		return;
	}
	input_restore(request);
	if (request->place < most)
		err = ended_elsewhere(request->job);
	else if (request->place < anew_to)
		err = muster_fail(request->job, -ECONNRESET, "a member was lost, and another while the operation was begun anew");
	else
		err = begin_anew(restarts, request);
	if (err)
		end_with_error(request, err);
}

/* What is not under way, and can be of the heir: so the one before need not last. Others move when they are started. */
static void persistent_move(struct muster_restarts *restarts, struct muster_comm *from)
{
	for (struct muster_request *request = from->persistent, *next; request; request = next) {
		next = request->next_persistent;
		if (request->state == MUSTER_REQUEST_IDLE && request->anew &&
		    (!request->entry || !fits(restarts->comm, from, restarts->heir, &request->entry->call)))
			move(request, restarts->heir);
	}
}

/* from: on which they ran. A graph of all its members is the heir's, if that has all. */
static void all_go_on(struct muster_restarts *restarts, struct muster_comm *from, struct muster_request *request,
		      const struct muster_agreement *words)
{
	const uint64_t most = words->most[0], anew_to = words->most[1];

	restarts->from = most > anew_to ? most : anew_to;
	if (restarts->heir->size == from->size) {
		restarts->heir->graph = from->graph;
		from->graph = NULL;
	}
	for (struct muster_request *next; request; request = next) {
		next = request->next;
		go_on(restarts, request, most, anew_to);
	}
	persistent_move(restarts, from);
}

static void all_end(struct muster_request *request, int err)
{
	for (struct muster_request *next; request; request = next) {
		next = request->next;
		input_restore(request);
		end_with_error(request, err);
	}
}

static void recover(struct muster_restarts *restarts)
{
	struct muster_comm *last = restarts->heir;
	struct muster_request *request;
	struct muster_agreement words;
	int err;

	restarts->recovers = true;
	err = heir_agree(restarts, last, &words);
	restarts->recovers = false;
	restarts->gave_up = err != 0;
	request = restarts->lost;
	restarts->lost = NULL;
	if (err)
		all_end(request, err);
	else
		all_go_on(restarts, last ? last : restarts->comm, request, &words);
	if (last != restarts->heir)
		muster_comm_free(last);
}

/* Its members are to meet, or this one is about to. */
static bool is_due(struct muster_comm *comm)
{
	const struct muster_restarts *restarts = comm->restarts;

	if (!restarts || restarts->comm != comm || restarts->how == MUSTER_RESTART_OFF)
		return false;
	return restarts->recovers || (!restarts->gave_up && muster_restart_now(comm)->failed == -ECONNRESET);
}

/* The one with the lowest context: so all ranks take those of several in the same order, one within another. */
static struct muster_comm *first_due(struct muster *job)
{
	struct muster_comm *first = NULL;

	for (int i = 0; i < MUSTER_COMM_BUCKETS; i++)
		for (struct muster_comm *comm = job->comms[i]; comm; comm = comm->next)
			if (is_due(comm) && (!first || comm->context < first->context))
				first = comm;
	return first;
}

void muster_restarts_join(struct muster *job)
{
	struct muster_comm *comm;

	while ((comm = first_due(job)) && !comm->restarts->recovers)
		recover(comm->restarts);
	job->has_lost = comm != NULL;
}

/* ---- who wants it ------------------------------------------------------------------------------------ */

int muster_restart_set(struct muster_comm *comm, enum muster_restart how)
{
	if (!comm->restarts && how != MUSTER_RESTART_OFF) {
		comm->restarts = calloc(1, sizeof(*comm->restarts));
		if (!comm->restarts)
			return muster_fail(comm->job, -ENOMEM, "no memory for a communicator's restarts");
		comm->restarts->comm = comm;
	}
	if (comm->restarts)
		comm->restarts->how = how;
	muster_again_drop(comm);
	return 0;
}

/* Heirs that were freed last as long as persistent operations of theirs are not started again. */
static void heirs_forget(const struct muster_restarts *restarts)
{
	struct muster *job = restarts->comm->job;

	for (int i = 0; i < MUSTER_COMM_BUCKETS && restarts->heir; i++)
		for (struct muster_comm *comm = job->comms[i]; comm; comm = comm->next)
			if (comm->restarts == restarts)
				comm->restarts = NULL;
}

struct muster_comm *muster_restart_forget(struct muster_comm *comm)
{
	struct muster_restarts *restarts = comm->restarts;
	struct muster_comm *heir;

	comm->restarts = NULL;
	if (!restarts || restarts->comm != comm) {
		if (restarts && restarts->heir == comm)
			restarts->heir = NULL;
		return NULL;
	}
	heir = restarts->heir;
	heirs_forget(restarts);
	if (restarts->lost)
		muster_fail(comm->job, -ECONNRESET, "a member was lost, and the communicator was freed");
	all_end(restarts->lost, -ECONNRESET);
	free(restarts->spare);
	free(restarts);
	return heir;
}

int muster_comm_restart(struct muster_comm *comm, enum muster_restart how)
{
	MUSTER_TURN_OF(comm);
	if (!comm)
		return -EINVAL;
	if (how > MUSTER_RESTART_AGREED)
		return muster_fail(comm->job, -EINVAL, "muster_comm_restart: %d; allowed are off (0), try (1) and agreed (2)",
				   (int)how);
	if (comm->restarts && comm->restarts->heir)
		return muster_fail(comm->job, -EINVAL, "muster_comm_restart: the communicator has lost a member; it stays as it is");
	return muster_restart_set(comm, how);
}

struct muster_comm *muster_comm_heir(struct muster_comm *comm)
{
	MUSTER_TURN_OF(comm);
	return comm ? muster_restart_now(comm) : NULL;
}
