// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The host path: runs the schedule on the CPU with messages between members. It
 * combines in the same order and with the same arithmetic as the engine, so the
 * bits are the same. One operation of a communicator runs at a time; it is a
 * state machine that goes on whenever the library is called.
 *
 * Data is combined straight from the packet where that is allowed. What comes
 * while it must wait (an earlier transfer into the same chunk, or a send of that
 * chunk that has not left) is put aside, so that a member that sends never waits
 * for one that has come to the step: all members that exchange whole vectors
 * could wait for each other otherwise.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arith.h"
#include "host.h"
#include "look.h"
#include "message.h"

/* One transfer of the current step that comes in; offsets in bytes. */
struct receive {
	uint64_t first;
	uint64_t bytes;
	uint64_t arrived;
	uint64_t combined;
	bool begun;		/* something came, even if of 0 bytes */
	uint8_t *aside;		/* what arrived and is not combined, at its own offset */
};

struct muster_host {
	struct muster_request *request;	/* NULL: nothing runs */
	bool in_step;			/* of its plan; else all are done */
	uint32_t send;			/* the next to be posted */
	uint64_t send_at;		/* bytes of it that are posted */
	bool reads_memory;		/* the device still reads what this step sends */
	struct receive *receives;
	uint32_t max_receives;
};

/* ---- where things lie ------------------------------------------------------------ */

static const struct muster_plan_step *current(const struct muster_host *host)
{
	return &host->request->entry->plan->step;
}

/* blocks: how the message is cut, if not evenly. */
static void range_bytes(const struct muster_entry *entry, const struct muster_block *blocks,
			uint32_t chunk, uint32_t nr, uint64_t *first, uint64_t *bytes)
{
	muster_range_bytes(entry->schedule, entry->call.count, (uint8_t)entry->call.type, blocks,
			   chunk, nr, first, bytes);
}

/* Where the result is, and what comes. */
static void chunk_bytes(const struct muster_entry *entry, uint32_t chunk, uint32_t nr,
			uint64_t *first, uint64_t *bytes)
{
	const struct muster_cut *cut = entry->call.cut;

	range_bytes(entry, cut ? cut->out : NULL, chunk, nr, first, bytes);
}

static uint8_t *result_of(const struct muster_request *request)
{
	return request->scratch ? request->comm->warm->scratch : request->out;
}

/* Whether the contribution is in the caller's in; else it is where the result comes. */
static bool is_apart(const struct muster_request *request)
{
	return !request->entry->call.in_place && !request->entry->plan->mixes;
}

/* Until something has come into chunks, they are the caller's contribution. */
static const uint8_t *operand_of(const struct muster_request *request,
				 const struct muster_move *move)
{
	return move->fresh && is_apart(request) ? request->in : result_of(request);
}

static uint32_t operand_key(const struct muster_request *request, const struct muster_move *move)
{
	if (move->fresh && is_apart(request))
		return request->in_pin.key;
	return request->scratch ? request->comm->warm->scratch_key : request->out_pin.key;
}

/* What a move sends: of the caller's in, as that is cut. */
static void sent_bytes(const struct muster_request *request, const struct muster_move *move,
		       uint64_t *first, uint64_t *bytes)
{
	const struct muster_cut *cut = request->entry->call.cut;
	bool is_in = move->fresh && is_apart(request);

	range_bytes(request->entry, cut ? is_in ? cut->in : cut->out : NULL, move->first, move->nr,
		    first, bytes);
}

/* ---- receiving --------------------------------------------------------------------- */

static bool has_arrived(const struct receive *receive)
{
	return receive->begun && receive->arrived == receive->bytes;
}

static bool sends_have_left(const struct muster_host *host, const struct muster_comm *comm)
{
	return host->send == current(host)->nr_sends &&
	       (!host->reads_memory || muster_channel_idle(comm));
}

/* May bytes up to `end` of the transfer be combined now? */
static bool may_combine(const struct muster_host *host, uint32_t index, uint64_t end)
{
	const struct muster_plan_step *step = current(host);
	const struct muster_move *move = &step->receives[index];
	bool clashes = move->clashes_out ||
		       (move->clashes_in && !is_apart(host->request));

	if (clashes && !sends_have_left(host, host->request->comm))
		return false;
	for (uint32_t i = 0; i < index; i++)
		if (muster_moves_meet(&step->receives[i], move) &&
		    host->receives[i].combined < end)
			return false;
	return true;
}

static int combine(struct muster_host *host, uint32_t index, const void *data, uint64_t len)
{
	const struct muster_request *request = host->request;
	const struct muster_call *call = &request->entry->call;
	const struct muster_move *move = &current(host)->receives[index];
	struct receive *receive = &host->receives[index];
	uint64_t at = receive->first + receive->combined;
	int err = 0;

	if (len && move->reduce)
		err = muster_arith((uint8_t)call->type, (uint8_t)call->op,
				   result_of(request) + at, operand_of(request, move) + at, data,
				   len);
	else if (len)
		memcpy(result_of(request) + at, data, len);
	receive->combined += len;
	return err;
}

static int no_memory(struct muster_comm *comm)
{
	return muster_comm_give_up(comm, muster_fail(comm->job, -ENOMEM, "no memory for the host path"));
}

static int put_aside(struct muster_comm *comm, struct receive *receive, const void *data,
		     uint64_t len)
{
	if (!receive->aside)
		receive->aside = malloc(receive->bytes);
	if (!receive->aside)
		return no_memory(comm);
	memcpy(receive->aside + receive->arrived, data, len);
	return 0;
}

/* The first transfer of the step that still awaits something of this member. */
static uint32_t awaited_from(const struct muster_host *host, uint32_t member)
{
	const struct muster_plan_step *step = current(host);
	uint32_t i = 0;

	while (i < step->nr_receives &&
	       (step->receives[i].peer != member || has_arrived(&host->receives[i])))
		i++;
	return i;
}

int muster_host_take(struct muster_comm *comm, uint32_t member, uint32_t number,
		     const void *payload, uint32_t len, bool last)
{
	struct muster_host *host = comm->host;
	struct receive *receive;
	uint64_t left;
	uint32_t index;
	int err = 0;

	if (!host || !host->request || host->request->number != number)
		return 0;
	index = awaited_from(host, member);
	if (index == current(host)->nr_receives)
		return 0;
	receive = &host->receives[index];
	left = receive->bytes - receive->arrived;
	if (len != (left < MUSTER_MTU ? left : MUSTER_MTU) || last != (len == left))
		return -EPROTO;
	if (receive->arrived == receive->combined &&
	    may_combine(host, index, receive->arrived + len))
		err = combine(host, index, payload, len);
	else if (len)
		err = put_aside(comm, receive, payload, len);
	if (err)
		return err;
	receive->arrived += len;
	receive->begun = true;
	return 1;
}

/* What was put aside and may be combined by now. */
static int aside_combine(struct muster_host *host)
{
	int err = 0;

	for (uint32_t i = 0; i < current(host)->nr_receives && !err; i++) {
		struct receive *receive = &host->receives[i];
		uint64_t at = receive->combined;

		if (receive->arrived > at && may_combine(host, i, receive->arrived))
			err = combine(host, i, receive->aside + at, receive->arrived - at);
	}
	return err;
}

/* ---- sending ------------------------------------------------------------------------- */

/* What a rank tells itself is there at once, and combined when its turn comes. */
static int own_send(struct muster_host *host)
{
	const struct muster_request *request = host->request;
	const struct muster_move *move = &current(host)->sends[host->send++];
	struct receive *receive = &host->receives[awaited_from(host, move->peer)];
	uint64_t first, bytes;
	int err = 0;

	sent_bytes(request, move, &first, &bytes);
	if (bytes)
		err = put_aside(request->comm, receive, operand_of(request, move) + first, bytes);
	receive->arrived = bytes;
	receive->begun = true;
	return err;
}

static bool is_own(const struct muster_host *host, const struct muster_move *move)
{
	return move->peer == host->request->comm->rank;
}

/* One fragment of the current send. */
static int fragment_send(struct muster_host *host)
{
	const struct muster_request *request = host->request;
	const struct muster_move *move = &current(host)->sends[host->send];
	struct muster_fragment fragment = {
		.member = move->peer,
		.number = request->number,
		.signature = request->entry->signature,
		.key = operand_key(request, move),
	};
	uint64_t first, bytes, left;
	int err;

	sent_bytes(request, move, &first, &bytes);
	left = bytes - host->send_at;
	fragment.len = left < MUSTER_MTU ? (uint32_t)left : MUSTER_MTU;
	fragment.last = fragment.len == left;
	if (bytes)
		fragment.data = operand_of(request, move) + first + host->send_at;
	err = muster_channel_send(request->comm, &fragment);
	if (err)
		return err;
	host->reads_memory |= fragment.len > MUSTER_INLINE_MAX;
	host->send_at += fragment.len;
	if (host->send_at == bytes) {
		host->send++;
		host->send_at = 0;
	}
	return 0;
}

static int sends_post(struct muster_host *host)
{
	int err = 0;

	while (!err && host->send < current(host)->nr_sends)
		err = is_own(host, &current(host)->sends[host->send]) ? own_send(host) : fragment_send(host);
	return err == -EAGAIN ? 0 : err;
}

/* ---- steps ------------------------------------------------------------------------------ */

static void asides_free(struct muster_host *host, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		free(host->receives[i].aside);
		host->receives[i].aside = NULL;
	}
}

/* A message of 0 bytes is sent, too. */
static uint32_t fragments_of(uint64_t bytes)
{
	uint64_t nr = bytes / MUSTER_MTU + (bytes % MUSTER_MTU > 0);

	if (nr > INT32_MAX)
		return INT32_MAX;
	return nr ? (uint32_t)nr : 1;
}

static void step_begin(struct muster_host *host)
{
	const struct muster_plan_step *step = current(host);

	host->send = 0;
	host->send_at = 0;
	host->reads_memory = false;
	for (uint32_t i = 0; i < step->nr_receives; i++) {
		struct receive *receive = &host->receives[i];

		*receive = (struct receive){ 0 };
		chunk_bytes(host->request->entry, step->receives[i].first, step->receives[i].nr,
			    &receive->first, &receive->bytes);
		if (!is_own(host, &step->receives[i]))
			muster_channel_await(host->request->comm, step->receives[i].peer,
					     fragments_of(receive->bytes));
	}
}

/* The last word has left before the operation ends: the caller may not come back for long. */
static bool is_last_step_open(const struct muster_host *host)
{
	struct muster_comm *comm = host->request->comm;
	bool open;

	if (host->request->entry->plan->has_message)
		return false;
	if (!muster_channel_idle(comm))
		return true;
	open = muster_comm_holds(comm);
	comm->again |= open;
	return open;
}

static bool step_is_done(const struct muster_host *host)
{
	const struct muster_plan_step *step = current(host);

	if (!sends_have_left(host, host->request->comm) || is_last_step_open(host))
		return false;
	for (uint32_t i = 0; i < step->nr_receives; i++)
		if (!has_arrived(&host->receives[i]) ||
		    host->receives[i].combined < host->receives[i].bytes)
			return false;
	return true;
}

static void step_next(struct muster_host *host)
{
	host->in_step = muster_plan_next(host->request->entry->plan);
	if (host->in_step)
		step_begin(host);
}

/* Ranges of which a part is the caller's contribution still lie in one place. */
static void contribution_put(const struct muster_request *request)
{
	const struct muster_entry *entry = request->entry;
	uint64_t first = entry->has.first;

	if (entry->plan->mixes && !entry->call.in_place)
		memcpy(result_of(request) + first, request->in + first, entry->has.bytes);
}

static int host_begin(struct muster_comm *comm, struct muster_request *request)
{
	struct muster_host *host = comm->host;
	struct muster_plan *plan = request->entry->plan;
	struct receive *receives;
	int err = 0;

	if (!host)
		host = comm->host = calloc(1, sizeof(*host));
	if (!host)
		return no_memory(comm);
	if (request->scratch)
		err = muster_comm_scratch(comm, request->entry->call.bytes);
	if (err)
		return muster_comm_give_up(comm, err);
	if (muster_channel_open(comm))
		return -ENOMEM;
	if (host->max_receives < plan->moves_max) {
		receives = realloc(host->receives, plan->moves_max * sizeof(*receives));
		if (!receives)
			return no_memory(comm);
		host->receives = receives;
		host->max_receives = plan->moves_max;
	}
	host->request = request;
	request->state = MUSTER_REQUEST_RUNNING;
	muster_plan_rewind(plan);
	contribution_put(request);
	step_next(host);
	return 0;
}

/* Where a chunk lies in the caller's in. */
static const uint8_t *own_place(const struct muster_request *request, uint32_t chunk)
{
	const struct muster_cut *cut = request->entry->call.cut;
	uint64_t first, bytes;

	range_bytes(request->entry, cut ? cut->in : NULL, chunk, 1, &first, &bytes);
	return request->in + first;
}

/*
 * What the caller needs and is elsewhere: in the scratch, or, where nothing came into a
 * chunk, the contribution as it was given.
 */
static void result_take(const struct muster_request *request)
{
	const struct muster_entry *entry = request->entry;
	const struct muster_span *needs = &entry->needs;
	bool apart = is_apart(request);
	uint64_t first, bytes;

	for (uint32_t chunk = 0; chunk < entry->schedule->chunks; chunk++) {
		const uint8_t *from;

		chunk_bytes(entry, chunk, 1, &first, &bytes);
		if (first < needs->first || first + bytes > needs->first + needs->bytes || !bytes)
			continue;
		from = result_of(request) + first;
		if (apart && !entry->plan->touched[chunk])
			from = own_place(request, chunk);
		if (from != request->out + first)
			memcpy(request->out + first, from, bytes);
	}
}

/* Once through the current step: post, take what was kept, combine. 1: it is done. */
static int step_run(struct muster_comm *comm, struct muster_host *host)
{
	uint32_t nr_receives = current(host)->nr_receives;
	int err = sends_post(host);

	if (err)
		return err;
	for (uint32_t i = 0; i < nr_receives && !comm->failed; i++)
		if (!has_arrived(&host->receives[i]) && !is_own(host, &current(host)->receives[i]))
			muster_channel_deliver(comm, current(host)->receives[i].peer);
	if (comm->failed)
		return -ECANCELED;
	err = aside_combine(host);
	return err ? err : step_is_done(host);
}

/* Return: 1: the operation is done; 0: it waits; -errno. */
static int steps_run(struct muster_comm *comm, struct muster_host *host)
{
	while (host->in_step) {
		int done = step_run(comm, host);

		if (done <= 0)
			return done;
		asides_free(host, current(host)->nr_receives);
		step_next(host);
	}
	return 1;
}

int muster_host_advance(struct muster_request *request)
{
	struct muster_comm *comm = request->comm;
	int done = 0;

	if (request->state == MUSTER_REQUEST_QUEUED) {
		if (muster_channel_left(comm, request->number))
			return MUSTER_RUN_AGAIN;
		done = host_begin(comm, request);
	}
	if (!done)
		done = steps_run(comm, comm->host);
	if (done <= 0)
		return done ? done : MUSTER_RUN_AGAIN;
	result_take(request);
	comm->host->request = NULL;
	return MUSTER_RUN_DONE;
}

bool muster_host_sends_to(const struct muster_comm *comm, uint32_t member)
{
	const struct muster_host *host = comm->host;

	if (!host || !host->request || !host->in_step)
		return false;
	for (uint32_t i = host->send; i < current(host)->nr_sends; i++)
		if (current(host)->sends[i].peer == member)
			return true;
	return false;
}

void muster_host_waits(const struct muster_comm *comm, struct muster_look_waits *waits)
{
	const struct muster_host *host = comm->host;

	*waits = (struct muster_look_waits){ 0 };
	if (!host || !host->request || !host->in_step)
		return;
	for (uint32_t i = 0; i < current(host)->nr_receives; i++)
		if (!has_arrived(&host->receives[i]) && !is_own(host, &current(host)->receives[i]))
			muster_look_add(waits, MUSTER_LOOK_STREAM, current(host)->receives[i].peer);
	if (host->send < current(host)->nr_sends)
		muster_look_add(waits, MUSTER_LOOK_CREDIT, current(host)->sends[host->send].peer);
	else if (!waits->nr)
		muster_look_held(comm, waits);
}

void muster_host_cancel(struct muster_comm *comm)
{
	struct muster_host *host = comm->host;

	if (!host || !host->request)
		return;
	if (host->in_step)
		asides_free(host, current(host)->nr_receives);
	host->request = NULL;
}

void muster_host_close(struct muster_comm *comm)
{
	if (!comm->host)
		return;
	free(comm->host->receives);
	free(comm->host);
	comm->host = NULL;
}
