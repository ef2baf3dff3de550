// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The program of a simulated rank: it posts its calls in order, takes completions
 * and judges each, and closes its contexts when all have come. It runs in turns,
 * as often or as seldom as the plan says.
 */
#include "dst.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum {
	BACKOFF_MAX_US = 50000,
	LINGER_US = 1000,
	NOTICE_US = 5000000,	/* as long as a packet that tells of a mismatch may take */
	TURN_POSTS = 8,
};

static struct dst_comm *comm_at(const struct dst_rank *rank, uint32_t c)
{
	return &rank->world->comms[c];
}

/* ---- judging completions ----------------------------------------------------------- */

/* A part of the network: named is who is behind it, or nobody. */
static bool broken(const struct dst_world *w, uint32_t c, uint8_t status, uint32_t culprit)
{
	const struct dst_comm *comm = &w->comms[c];

	return status == MUSTER_STATUS_PEER_LOST && dst_trees_broken(w, c) &&
	       (culprit == MUSTER_CULPRIT_NONE ||
		(culprit < comm->nr && dst_network_gone(w, comm->addresses[culprit].node)));
}

/* Whether the plan's cause can be to blame for what a member of this communicator got. */
static bool blamed(const struct dst_world *w, uint32_t c, uint8_t status, uint32_t culprit)
{
	const struct dst_comm *comm = &w->comms[c];
	const struct dst_plan *plan = &w->plan;
	const struct dst_rank *rank;

	if (!dst_plan_touches(plan, c))
		return false;
	if (plan->cause == DST_SWITCH || plan->cause == DST_CUT)
		return broken(w, c, status, culprit);
	/* Who awaits another length than the root of a tree's broadcast brings: a result comes from nobody. */
	if (plan->cause == DST_MISMATCH && culprit == MUSTER_CULPRIT_NONE)
		return status == MUSTER_STATUS_MISMATCH && comm->ops[plan->cause_op].tree;
	if (culprit >= comm->nr)
		return false;
	rank = &w->ranks[comm->members[culprit]];
	/* Who was told of the cause and left at once may be missed before the cause is known. */
	if (status == MUSTER_STATUS_PEER_LOST && rank->parts[c].told && rank->parts[c].closed)
		return true;
	switch (plan->cause) {
	case DST_DEATH:
		return rank->node->dead && (status == MUSTER_STATUS_PEER_LOST ||
					    status == MUSTER_STATUS_ABORTED);
	case DST_MISMATCH:
		return status == MUSTER_STATUS_MISMATCH || status == MUSTER_STATUS_PROTOCOL ||
		       (status == MUSTER_STATUS_ABORTED && w->now_us >= DST_BOUND_US / 2);
	case DST_ABORT:
		return rank->index == plan->cause_rank && status == MUSTER_STATUS_ABORTED;
	case DST_MEMORY:
		return rank->index == plan->cause_rank && status == MUSTER_STATUS_MEMORY;
	default:
		return rank->index == plan->cause_rank && status == MUSTER_STATUS_PEER_LOST;
	}
}

static void judge_failure(struct dst_rank *rank, uint32_t c, const struct muster_cqe *cqe)
{
	struct dst_part *part = &rank->parts[c];

	if (cqe->status == MUSTER_STATUS_FLUSHED) {
		if (!part->status && !part->told)
			dst_fail(rank->world, "rank %u, communicator %u: a call was flushed before any failed",
				 rank->index, c);
		return;
	}
	if (part->status && cqe->kind == MUSTER_CQE_SEQUENCE)
		dst_fail(rank->world, "rank %u, communicator %u: two calls carry the cause",
			 rank->index, c);
	if (!part->status)
		part->status = cqe->status;
	if (!blamed(rank->world, c, cqe->status, cqe->culprit))
		dst_fail(rank->world, "rank %u, communicator %u, number %u: status %u and culprit %u, for which there is no cause",
			 rank->index, c, cqe->number, cqe->status, cqe->culprit);
}

static bool mismatches(const struct dst_world *w, uint32_t c)
{
	return w->plan.cause == DST_MISMATCH && c == w->plan.cause_comm;
}

static void take_sequence(struct dst_rank *rank, uint32_t c, const struct muster_cqe *cqe)
{
	struct dst_world *w = rank->world;
	struct dst_part *part = &rank->parts[c];
	struct dst_call *call = &part->calls[part->completed];

	part->unfetched |= call->in_memory && cqe->status != MUSTER_STATUS_OK;
	if (part->completed >= part->posting || cqe->cookie != part->completed ||
	    (cqe->number != call->number && !part->unfetched)) {
		dst_fail(w, "rank %u, communicator %u: a completion of call %" PRIu64 ", number %u; call %u, number %u was next",
			 rank->index, c, (uint64_t)cqe->cookie, cqe->number, part->completed,
			 call->number);
		return;
	}
	if (cqe->status != MUSTER_STATUS_OK) {
		judge_failure(rank, c, cqe);
	} else if (part->status) {
		dst_fail(w, "rank %u, communicator %u: call %u succeeds after a failure",
			 rank->index, c, part->completed);
	} else if (call->op->lock && dst_lock_again(rank, c, call)) {
		call->stage = 0;
		part->posting--;
		return;
	} else if (!call->op->lock) {
		/* After another operation was called, data means nothing any more. */
		if (!mismatches(w, c) || part->completed < w->plan.cause_op)
			dst_call_right(w, comm_at(rank, c), part->self, call);
		part->good++;
	}
	dst_call_seal(call);
	part->completed++;
}

static void take(struct dst_rank *rank, const struct muster_cqe *cqe)
{
	struct dst_world *w = rank->world;
	uint32_t c = 0;

	dst_mix(w, cqe->cookie << 32 | cqe->number << 8 | cqe->status << 4 | cqe->kind);
	dst_say(w, "rank %u: completion kind %u of context %u, number %u, call %u: status %u, culprit %u",
		rank->index, cqe->kind, cqe->context, cqe->number, (unsigned)cqe->cookie,
		cqe->status, cqe->culprit);
	while (c < w->plan.comms && w->comms[c].id != cqe->context)
		c++;
	if (c == w->plan.comms || !rank->parts[c].member || rank->parts[c].closed) {
		dst_fail(w, "rank %u: a completion for context %u, which is not open", rank->index,
			 cqe->context);
	} else if (cqe->kind == MUSTER_CQE_SEQUENCE) {
		take_sequence(rank, c, cqe);
	} else if (cqe->kind == MUSTER_CQE_SEND) {
		dst_message_complete(rank, c, cqe);
	} else if (cqe->kind != MUSTER_CQE_CONTEXT || rank->parts[c].told) {
		dst_fail(w, "rank %u: a completion of kind %u that nobody wanted", rank->index,
			 cqe->kind);
	} else {
		judge_failure(rank, c, cqe);
		rank->parts[c].told = true;
	}
}

/* ---- posting ----------------------------------------------------------------------------- */

static void bind(const struct dst_call *call, uint32_t key_in, struct muster_desc *desc,
		 uint32_t cookie)
{
	uint32_t keys[] = { 0, call->in == call->out ? key_in + 1 : key_in, key_in + 1,
			    key_in + 2 };

	desc->cookie = cookie;
	if (desc->kind == MUSTER_DESC_MP && desc->inline_len) {
		const uint8_t *from = call->in + desc->range.load_addr;

		memset(desc->data, 0, sizeof(desc->data));
		memcpy(desc->data, from, desc->inline_len);
	} else if (desc->range.load_key) {
		desc->range.load_key = keys[desc->range.load_key];
		desc->range.load_addr += (uint64_t)desc->range.load_key << 32;
	}
	if (desc->store_key) {
		desc->store_key = keys[desc->store_key];
		desc->store_addr += (uint64_t)desc->store_key << 32;
	}
}

/* Of the input of the call that is being posted; its other regions' are the next ones. */
static uint32_t key_of(const struct dst_rank *rank, uint32_t c)
{
	return 1 + (c * DST_OPS_MAX + rank->parts[c].posting) * DST_CALL_REGIONS;
}

static int post_stage(struct dst_rank *rank, uint32_t c)
{
	struct dst_part *part = &rank->parts[c];
	struct dst_call *call = &part->calls[part->posting];
	uint32_t first = call->program->stage_first[call->stage];
	uint32_t nr = call->program->stage_first[call->stage + 1] - first;
	uint32_t key_in = key_of(rank, c), bad = 0;
	struct muster_desc descs[MUSTER_SEQ_DESCS_MAX];
	int err;

	call->live = true;
	memcpy(descs, &call->program->descs[first], nr * sizeof(descs[0]));
	for (uint32_t i = 0; i < nr; i++)
		bind(call, key_in, &descs[i], part->posting);
	if (!nr)
		return 0;	/* the descriptor of an earlier one ends it, too */
	if (descs[0].kind == MUSTER_DESC_RDMA && !call->op->tree)
		descs[0].range.pulses_live = rank->world->plan.pulses_live;
	err = muster_engine_post(rank->node->engine, rank->vp, descs, nr, &bad);
	if (err && err != -EAGAIN)
		dst_fail(rank->world, "rank %u, communicator %u, call %u: stage %u is refused: %d at descriptor %u",
			 rank->index, c, part->posting, call->stage, err, bad);
	return err;
}

/* Some calls, by seed; where memory is refused it is that of the data. */
static bool is_for_memory(const struct dst_rank *rank, uint32_t c)
{
	const struct dst_part *part = &rank->parts[c];

	return (rank->world->plan.seed + rank->index + 3 * c + 5 * part->posting) % 4 == 0 &&
	       !part->calls[part->posting].refused && !part->calls[part->posting].op->lock;
}

/* All stages lie in memory, and one descriptor names them. */
static int post_program(struct dst_rank *rank, uint32_t c)
{
	struct dst_part *part = &rank->parts[c];
	struct dst_call *call = &part->calls[part->posting];
	uint32_t key_in = key_of(rank, c), key = key_in + 3, nr = call->program->nr_descs;
	const struct muster_desc desc = {
		.kind = MUSTER_DESC_PROGRAM, .src_vp = rank->vp, .job = rank->world->job,
		.flags = MUSTER_DESC_C | MUSTER_DESC_CH | MUSTER_DESC_CT,
		.context = comm_at(rank, c)->id, .cookie = part->posting,
		.length = nr * sizeof(desc),
		.range = { .load_key = key, .load_addr = (uint64_t)key << 32 },
	};
	int err;

	if (!call->in_memory) {
		call->in_memory = (void *)dst_memory(rank->world, nr * sizeof(desc));
		if (!call->in_memory)
			return -EAGAIN;
		memcpy(call->in_memory, call->program->descs, nr * sizeof(desc));
		for (uint32_t i = 0; i < nr; i++)
			bind(call, key_in, &call->in_memory[i], part->posting);
	}
	call->live = true;
	err = muster_engine_post(rank->node->engine, rank->vp, &desc, 1, NULL);
	if (err && err != -EAGAIN)
		dst_fail(rank->world, "rank %u, communicator %u, call %u: its program in memory is refused: %d",
			 rank->index, c, part->posting, err);
	if (err)
		return err;
	part->number += call->program->nr_stages;
	call->number = part->number - 1;
	part->posting++;
	return 0;
}

/* Numbers before some calls in which nobody has anything to do. */
static uint32_t idles_before(const struct dst_rank *rank, uint32_t c)
{
	uint32_t some = (rank->world->plan.seed + 7 * rank->parts[c].posting + c) % 40;

	return rank->world->plan.idles && some < 10 ? some : 0;
}

/* Half of the ranks end all of them by one descriptor, the others one by one. */
static int post_idles(struct dst_rank *rank, uint32_t c)
{
	struct dst_part *part = &rank->parts[c];
	uint32_t *idled = &part->calls[part->posting].idled, nr = idles_before(rank, c);
	struct muster_desc desc = {
		.kind = MUSTER_DESC_RDMA, .src_vp = rank->vp, .job = rank->world->job,
		.flags = MUSTER_DESC_C | MUSTER_DESC_CH | MUSTER_DESC_CT,
		.context = comm_at(rank, c)->id, .range = { .pulse_len = 64, .pulse_count = 1 },
	};

	while (*idled < nr) {
		uint32_t numbers = rank->index % 2 ? nr : 1;
		int err;

		desc.range.numbers = numbers;
		desc.stage = *idled;
		err = muster_engine_post(rank->node->engine, rank->vp, &desc, 1, NULL);
		if (err && err != -EAGAIN)
			dst_fail(rank->world, "rank %u, communicator %u: %u idle numbers are refused: %d",
				 rank->index, c, numbers, err);
		if (err)
			return err;
		*idled += numbers;
		part->number += numbers;
	}
	return 0;
}

/* The next call. 0; -EAGAIN; -ENOENT: there is none. */
static int post_call(struct dst_rank *rank, uint32_t c)
{
	struct dst_part *part = &rank->parts[c];
	struct dst_call *call = &part->calls[part->posting];

	if (!part->member || part->closed || part->posting == comm_at(rank, c)->nr_ops)
		return -ENOENT;
	if (part->posting && part->completed < part->posting && call[-1].op->lock)
		return -EAGAIN;		/* what it will answer is not known */
	if (post_idles(rank, c))
		return -EAGAIN;
	if (call->op->lock)
		dst_lock_ask(call);
	if (is_for_memory(rank, c))
		return post_program(rank, c);
	while (call->stage < call->program->nr_stages) {
		int err = post_stage(rank, c);

		if (err)
			return err;
		call->stage++;
		call->number = part->number++;
	}
	part->posting++;
	return 0;
}

static bool has_more(const struct dst_rank *rank)
{
	for (uint32_t c = 0; c < rank->world->plan.comms; c++) {
		const struct dst_part *part = &rank->parts[c];

		if (part->member && !part->closed &&
		    (part->posting < comm_at(rank, c)->nr_ops ||
		     part->messages_posted < comm_at(rank, c)->nr_messages))
			return true;
	}
	return false;
}

static void post_some(struct dst_rank *rank)
{
	struct dst_world *w = rank->world;
	uint32_t posts = 1 + dst_below(&w->host, TURN_POSTS);
	bool posted = false;

	while (posts--) {
		uint32_t c = dst_below(&w->host, w->plan.comms);

		posted |= !(dst_below(&w->host, 2) ? post_call(rank, c) : dst_message_post(rank, c));
	}
	rank->backoff_us = posted ? 1 : rank->backoff_us < BACKOFF_MAX_US ? rank->backoff_us * 2 :
									     BACKOFF_MAX_US;
	if (has_more(rank))
		dst_turn_at(rank, w->now_us + rank->backoff_us +
				  dst_below(&w->host, w->plan.host_us));
	dst_step_at(rank->node, w->now_us + 1 + dst_below(&w->host, w->plan.engine_us));
}

/* ---- closing -------------------------------------------------------------------------------- */

/* What was written before the context closed and not read yet does not count. */
static void forget_completions(struct dst_rank *rank, uint16_t context)
{
	uint32_t kept = rank->cq_tail;

	for (uint32_t i = rank->cq_tail; i != rank->cq_head; i++)
		if (rank->cq[i % DST_CQ_MAX].context != context)
			rank->cq[kept++ % DST_CQ_MAX] = rank->cq[i % DST_CQ_MAX];
	rank->cq_head = kept;
}

void dst_host_close(struct dst_rank *rank, uint32_t c)
{
	struct dst_world *w = rank->world;
	struct dst_part *part = &rank->parts[c];

	if (part->closed)
		return;
	dst_say(w, "rank %u: closes communicator %u", rank->index, c);
	muster_engine_context_close(rank->node->engine, rank->vp, w->job, w->comms[c].id);
	dst_lent_drop(rank->node, w->comms[c].id);
	part->closed = true;
	dst_trees_leave(rank, c);
	forget_completions(rank, w->comms[c].id);
	for (uint32_t i = 0; i < w->comms[c].nr_ops; i++)
		if (!part->calls[i].settled)
			dst_call_seal(&part->calls[i]);
	dst_step_at(rank->node, w->now_us + 1);
}

void dst_host_abort(struct dst_rank *rank, uint32_t c)
{
	struct dst_world *w = rank->world;
	struct dst_part *part = &rank->parts[c];

	if (part->closed)
		return;
	dst_say(w, "rank %u: aborts communicator %u", rank->index, c);
	muster_engine_abort(rank->node->engine, rank->vp, w->job, w->comms[c].id,
			    MUSTER_STATUS_ABORTED, part->self);
	dst_lent_sign(rank->node, w->comms[c].id, true);
	dst_step_at(rank->node, w->now_us + 1);
}

/* All calls have completed; after a failure, the context has said so as well. */
static bool may_close(const struct dst_rank *rank, uint32_t c)
{
	const struct dst_part *part = &rank->parts[c];

	return part->member && !part->closed && part->completed == rank->world->comms[c].nr_ops &&
	       dst_messages_done(rank, c) &&
	       (!part->status || part->told);
}

static void close_some(struct dst_rank *rank)
{
	struct dst_world *w = rank->world;

	for (uint32_t c = 0; c < w->plan.comms; c++) {
		struct dst_part *part = &rank->parts[c];

		if (!may_close(rank, c))
			continue;
		if (!part->close_us)
			part->close_us = w->now_us + 1 + dst_below(&w->host, LINGER_US) +
					 (mismatches(w, c) ? NOTICE_US : 0);
		if (w->now_us >= part->close_us)
			dst_host_close(rank, c);
		else
			dst_turn_at(rank, part->close_us);
	}
}

bool dst_host_finished(const struct dst_rank *rank)
{
	for (uint32_t c = 0; c < rank->world->plan.comms; c++)
		if (rank->parts[c].member && !rank->parts[c].closed)
			return false;
	return true;
}

void dst_host_turn(struct dst_rank *rank)
{
	struct dst_world *w = rank->world;
	uint32_t some = 1 + dst_below(&w->host, DST_CQ_MAX);

	if (rank->node->dead || w->now_us < rank->begin_us || dst_host_finished(rank))
		return;
	for (; rank->cq_tail != rank->cq_head && some; some--)
		take(rank, &rank->cq[rank->cq_tail++ % DST_CQ_MAX]);
	if (rank->cq_tail != rank->cq_head)
		dst_turn_at(rank, w->now_us + 1 + dst_below(&w->host, w->plan.host_us));
	post_some(rank);
	close_some(rank);
}
