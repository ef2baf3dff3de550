// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Header prediction (Van Jacobson's, for TCP), for programs that are kept and whose messages are
 * all inline. What such a program sends is the same packet in each run, but for number and base:
 * it lies here, filled in. So is what it awaits: of each slot the header is remembered that was
 * taken for it the last time. A packet that is the same but for number and base passes by that
 * one comparison all gates that the last one has passed, and is combined at once.
 *
 * There is no state here that others do not see: context and instance are left as sequence.c
 * and instance.c would have left them, after each descriptor and each packet. So what is not as
 * predicted, or not simple any more (a send held back, messages that came early, members who left
 * or ask), is left to them at any point, and they go on from there.
 *
 * Who may be called by its world's functions has it done at once, where a packet comes or a START
 * is posted. That needs a context that is calm (internal.h): a step has found nothing that
 * concerns it but its program, and since then nothing else has come to it.
 */
#include "credit.h"
#include "predict.h"
#include "sequence.h"
#include "trace.h"
#include "write.h"

#include <errno.h>
#include <stddef.h>

#include "arith.h"

/* A call costs as much as a tenth of what a run does. */
#define INLINE inline __attribute__((always_inline))

enum { PACKETS_MAX = 32 };	/* of a program: what it sends, and what it awaits */

/* ---- preparing --------------------------------------------------------------------- */

static bool is_small(const struct sequence *seq)
{
	const struct step *step = seq->steps, *end = step + seq->nr_steps;

	while (step < end && step->kind == MUSTER_DESC_MP && !step->to_tree &&
	       !(step->flags & MUSTER_DESC_SWAP_LOCAL_VP))
		step++;
	return step == end && seq->nr_steps + seq->nr_slots <= PACKETS_MAX;
}

/* False: a range is not mapped. */
static bool map(struct context *ctx, const struct step *step, struct action *action)
{
	if (step->load_key)
		action->load = muster_memory_map(ctx, step->load_key, step->load_addr, step->length,
						 false);
	if (step->store_key)
		action->store = muster_memory_map(ctx, step->store_key, step->store_addr,
						  step->length, true);
	return (action->load || !step->load_key) && (action->store || !step->store_key);
}

static void prepare_send(struct context *ctx, const struct sequence *seq, const struct step *step,
			 struct action *action)
{
	action->sends = true;
	action->member = step->member_dest;
	action->incarnation = muster_member(ctx, action->member)->incarnation;
	muster_send_prepare(ctx, seq, step, &action->packet);
	action->flags = action->packet.flags & ~MUSTER_PACKET_CREDIT_WANTED;
	muster_trace_packet(&action->sent, &action->packet);
	action->sent.kind = MUSTER_TRACE_SEND;
	action->sent.member = action->member;
}

/* False: it cannot run here. */
static bool prepare(struct context *ctx, const struct sequence *seq, uint32_t index,
		    struct action *action)
{
	const struct step *step = &seq->steps[index];

	*action = (struct action){
		.index = index,
		.length = step->length,
		.slots_end = step->slot_first + step->cp_count,
		.reduces = step->flags & MUSTER_DESC_REDUCE,
		.has_operand = step->load_key || step->brings_data ||
			       step->flags & MUSTER_DESC_SWAP_LOCAL_DATA,
		.is_last = index == seq->nr_steps - 1u,
		.is_own = step->is_own,
	};
	if (action->reduces)
		action->one = muster_arith_one(step->type, step->op, step->length);
	if (step->flags & MUSTER_DESC_CP)
		prepare_send(ctx, seq, step, action);
	return map(ctx, step, action);
}

/* Without memory for it the program runs all the same. */
void muster_predict_bind(struct context *ctx, struct sequence *seq)
{
	size_t bytes = sizeof(struct predicted) + seq->nr_steps * sizeof(struct action) +
		       seq->nr_slots * sizeof(struct expected);
	struct predicted *predicted = is_small(seq) ? muster_pool_take(ctx->engine, bytes) : NULL;
	uint32_t i;

	if (!predicted)
		return;
	predicted->bytes = bytes;
	predicted->end = muster_sequence_cqe(ctx, seq);
	predicted->known = 0;
	predicted->last = (struct expected *)&predicted->actions[seq->nr_steps];
	predicted->is_mapped = true;
	for (i = 0; i < seq->nr_steps; i++)
		predicted->is_mapped &= prepare(ctx, seq, i, &predicted->actions[i]);
	seq->predicted = predicted;
}

void muster_predict_drop(struct context *ctx, struct sequence *seq)
{
	if (seq->predicted)
		muster_pool_give(ctx->engine, seq->predicted, seq->predicted->bytes);
}

/* ---- what comes -------------------------------------------------------------------- */

void muster_predict_learn(struct context *ctx, const struct muster_packet *packet)
{
	struct predicted *predicted = muster_sequence_current(ctx)->predicted;
	struct expected *last;

	if (!predicted || packet->flags & MUSTER_PACKET_CREDIT_WANTED)
		return;
	last = &predicted->last[packet->seq_id];
	last->packet = *packet;
	muster_trace_packet(&last->taken, packet);
	last->taken.kind = MUSTER_TRACE_RECEIVE + true;
	predicted->known |= 1ull << packet->seq_id;
}

/* A packet as vectors, and those of them that hold number and base. */
typedef uint32_t vector __attribute__((vector_size(16), aligned(4), may_alias));

enum { OF_NUMBER = 2, OF_BASE = 4 };

MUSTER_STATIC_ASSERT(sizeof(struct muster_packet) == 6 * sizeof(vector), "whole vectors");
MUSTER_STATIC_ASSERT(offsetof(struct muster_packet, number) == OF_NUMBER * sizeof(vector), "the first of four");
MUSTER_STATIC_ASSERT(offsetof(struct muster_packet, base) == OF_BASE * sizeof(vector) + 4, "the second");

/* All but number and base, which are read once each. */
static inline bool is_alike(const struct muster_packet *packet, const struct muster_packet *last)
{
	static const vector all_but_first = { 0, UINT32_MAX, UINT32_MAX, UINT32_MAX };
	static const vector all_but_second = { UINT32_MAX, 0, UINT32_MAX, UINT32_MAX };
	const vector *a = (const vector *)packet, *b = (const vector *)last;
	const vector differ = (a[0] ^ b[0]) | (a[1] ^ b[1]) |
			      ((a[OF_NUMBER] ^ b[OF_NUMBER]) & all_but_first) | (a[3] ^ b[3]) |
			      ((a[OF_BASE] ^ b[OF_BASE]) & all_but_second) | (a[5] ^ b[5]);
	uint64_t halves[2];

	memcpy(halves, &differ, sizeof(halves));
	return !(halves[0] | halves[1]);
}

/* Of memory that its sender may write to still: one look. */
static inline uint32_t look_once(const __le32 *field)
{
	return __atomic_load_n(field, __ATOMIC_RELAXED);
}

/* False: the program should have brought an operand. */
static inline bool fold(const struct sequence *seq, struct instance *inst,
			const struct action *action, uint16_t flags, const void *payload)
{
	const struct step *step;

	if (flags & MUSTER_PACKET_SWAP_DATA || !action->reduces) {
		muster_copy_small(inst->data, payload, action->length);
	} else if (!inst->has_operand) {
		return false;
	} else if (action->one) {
		action->one(inst->data, inst->data, payload);
	} else {
		step = &seq->steps[action->index];
		muster_arith_checked(step->type, step->op, inst->data, inst->data, payload,
				     step->length);
	}
	return true;
}

/* Whether it was as predicted, and is combined now. */
static INLINE bool take(struct muster_engine *engine, struct context *ctx, struct instance *inst,
			const struct action *action, const struct muster_packet *packet,
			const void *payload, uint32_t len)
{
	const struct expected *last = ctx->awaited;
	struct muster_engine_counters *counters = engine->counters;
	const uint32_t member = last->packet.src_member;
	struct peer *peer;

	if (look_once(&packet->number) != ctx->base || len != last->packet.length ||
	    !is_alike(packet, &last->packet) ||
	    !fold(muster_sequence_current(ctx), inst, action, last->packet.flags, payload))
		return false;
	counters->packets_in++;
	counters->bytes_in += len;
	counters->unasked++;
	peer = muster_member_peer(ctx, member);
	peer->received++;
	muster_credit_heard(ctx, peer, look_once(&packet->base));
	muster_instance_combined(ctx, inst, member, last->packet.flags);
	return true;
}

bool muster_predict_take(struct context *ctx, const struct muster_packet *packet,
			 const void *payload, uint32_t len)
{
	struct instance *inst = ctx->instances;
	const struct action *actions = muster_sequence_current(ctx)->predicted->actions;

	if (!take(ctx->engine, ctx, inst, &actions[inst->next], packet, payload, len))
		return false;
	muster_context_ready(ctx);
	return true;
}

/* ---- running ----------------------------------------------------------------------- */

/* In its place, into what is there. */
static __attribute__((noinline)) void combine_own(const struct context *ctx, struct instance *inst,
						  const struct action *action)
{
	const struct step *step = &muster_sequence_current(ctx)->steps[action->index];

	muster_arith_checked(step->type, step->op, inst->data, inst->data, action->load, step->length);
}

static inline void begin(struct context *ctx, struct muster_engine_counters *counters,
			 struct instance *inst, const struct action *action)
{
	if (action->load) {
		counters->dma_read_bytes += action->length;
		if (__builtin_expect(action->is_own, 0))
			combine_own(ctx, inst, action);
		else
			muster_copy_small(inst->data, action->load, action->length);
	}
	inst->has_operand = action->has_operand;
}

static inline void store(struct muster_engine_counters *counters, const struct instance *inst,
			 const struct action *action)
{
	if (action->store) {
		counters->dma_write_bytes += action->length;
		muster_copy_small(action->store, inst->data, action->length);
	}
}

/*
 * It has not gone as it mostly does: it is the first to that member, or the window is closed
 * (ret is 0), or the wire has refused it. False: the context has failed.
 */
static __attribute__((noinline)) bool send_slowly(struct context *ctx, struct instance *inst,
						  const struct action *action, int ret)
{
	ctx->calm = false;
	if (!ret) {
		muster_send_open(ctx, inst, action->index);
		return !ctx->failure.status;
	}
	if (ret == -EAGAIN) {
		ctx->stalled = true;
		ctx->engine->counters->retries++;
	} else {
		muster_context_fail(ctx, MUSTER_STATUS_PEER_LOST, action->member, NULL);
	}
	muster_send_hold(ctx, inst, action->index);
	return !ctx->failure.status;
}

static INLINE bool send(struct muster_engine *engine, struct context *ctx, struct instance *inst,
			struct action *action)
{
	struct muster_engine_counters *counters = engine->counters;
	struct peer *peer = muster_member_peer(ctx, action->member);
	const uint32_t number = ctx->base;
	int32_t ahead;
	int ret;

	if (!peer)
		return send_slowly(ctx, inst, action, 0);
	ahead = number - peer->base;
	if (ahead >= engine->window)
		return send_slowly(ctx, inst, action, 0);
	action->packet.flags = action->flags;
	if (ahead >= engine->asks_from)
		action->packet.flags |= MUSTER_PACKET_CREDIT_WANTED;
	action->packet.number = number;
	action->packet.base = number;
	engine->budget--;
	ret = engine->world.send(engine->opaque, action->incarnation, &action->packet, inst->data);
	if (__builtin_expect(ret, 0))
		return send_slowly(ctx, inst, action, ret);
	counters->packets_out++;
	counters->bytes_out += action->length;
	peer->sent++;
	if (muster_is_traced(engine))
		muster_trace_again(engine->trace, &action->sent, number);
	return true;
}

/* From this one on, as far as what has come allows. False: the context has failed. */
static INLINE bool run_actions(struct muster_engine *engine, struct context *ctx,
			       struct predicted *predicted, struct instance *inst,
			       struct action *action, bool begun)
{
	struct muster_engine_counters *counters = engine->counters;

	for (;; action++, begun = false) {
		if (!begun)
			begin(ctx, counters, inst, action);
		if (inst->slot < action->slots_end) {
			inst->begun = true;
			inst->next = action->index;
			predicted->at = action;
			return true;
		}
		store(counters, inst, action);
		engine->budget--;
		counters->descriptors_executed++;
		if ((action->sends && !send(engine, ctx, inst, action)) || action->is_last) {
			inst->begun = false;
			inst->next = action->index + 1;
			return !ctx->failure.status;
		}
	}
}

/* False: the completion queue is full. */
static INLINE bool end(struct muster_engine *engine, struct context *ctx, struct sequence *seq)
{
	struct muster_cqe *cqe = &seq->predicted->end;

	if (ctx->coll_end) {
		cqe->number = ctx->base;
		if (engine->world.complete(engine->opaque, ctx->vp, cqe) == -EAGAIN) {
			ctx->stalled = true;
			return false;
		}
	}
	muster_sequence_end(ctx, seq);
	return true;
}

/* It waits for a slot, or for a send: of the former the header may be known. */
static inline void await(struct muster_engine *engine, struct context *ctx,
			 const struct predicted *predicted, const struct instance *inst)
{
	ctx->awaited = inst->begun && predicted->known >> inst->slot & 1 ?
		       &predicted->last[inst->slot] : NULL;
	engine->waited_last = ctx;
}

/* The running sequence, as far as it goes now. False: all else is to be looked at. */
static INLINE bool go_on(struct muster_engine *engine, struct context *ctx, struct sequence *seq,
			 struct instance *inst, struct action *action, bool begun)
{
	if (!run_actions(engine, ctx, seq->predicted, inst, action, begun))
		return false;
	if (!muster_instance_ended(seq, inst)) {
		await(engine, ctx, seq->predicted, inst);
		return true;
	}
	ctx->pulse_first++;
	return end(engine, ctx, seq);
}

/* The instance of a sequence that runs as it has run before. */
static INLINE struct instance *start(struct context *ctx, const struct sequence *seq)
{
	ctx->instances = seq->instances;
	ctx->instances_kept = true;
	ctx->running = true;
	ctx->coll_end = seq->coll_end;
	ctx->pulse_first = 0;
	ctx->pulse_next = 1;
	muster_instance_start(ctx->instances, 0);
	ctx->engine->counters->pulses++;
	return ctx->instances;
}

/* ---- in a step --------------------------------------------------------------------- */

/* Nothing but its program concerns the context. */
static inline bool is_quiet(const struct context *ctx)
{
	return !ctx->failure.status && !ctx->wants_room && !ctx->copies && !ctx->asking_first &&
	       !ctx->messages && !ctx->stalled && !muster_writes_owe(ctx);
}

/* What came before it ran is left to others; so is memory that is not what it was. */
static inline bool can_run(const struct context *ctx, struct sequence *seq)
{
	return !muster_arrivals_first(ctx, ctx->base) && muster_kept_holds(ctx, seq);
}

static inline bool can_start(const struct context *ctx, const struct sequence *seq)
{
	return seq->predicted && seq->predicted->is_mapped && seq->instances && !ctx->has_left;
}

static bool run_first(struct context *ctx)
{
	struct sequence *seq = muster_sequence_current(ctx);
	struct instance *inst = ctx->instances;

	if (!can_start(ctx, seq) || !can_run(ctx, seq) || ctx->engine->budget <= 2u * seq->nr_steps)
		return false;
	if (ctx->running && (ctx->pulse_first || inst->todo || inst->next == seq->nr_steps))
		return false;
	if (!ctx->running)
		inst = start(ctx, seq);
	return go_on(ctx->engine, ctx, seq, inst, &seq->predicted->actions[inst->next], inst->begun);
}

/* Whether that is so until somebody else has to do with it, who says so. */
static bool is_calm(const struct context *ctx)
{
	const struct instance *inst = ctx->instances;

	return is_quiet(ctx) && ctx->kept && can_start(ctx, ctx->kept) &&
	       (!ctx->running || (ctx->awaited && !inst->open)) && !ctx->arrivals;
}

bool muster_predict_run(struct context *ctx)
{
	if (!ctx->queued || !is_quiet(ctx))
		return false;
	do {
		if (!run_first(ctx) || ctx->asking_first)
			return false;
	} while (!ctx->running && ctx->queued);
	ctx->calm = is_calm(ctx);
	return true;
}

/* ---- at once ----------------------------------------------------------------------- */

static __attribute__((noinline)) void leave_to_step(struct context *ctx)
{
	ctx->calm = false;
	muster_context_ready(ctx);
}

/* What the next step would do, of a context that is calm; what is left then is left to it. */
static INLINE void go_on_now(struct muster_engine *engine, struct context *ctx,
			     struct sequence *seq, struct instance *inst, struct action *action,
			     bool begun)
{
	engine->budget = 2 * PACKETS_MAX;
	if (!go_on(engine, ctx, seq, inst, action, begun) || !ctx->calm ||
	    (!ctx->running && ctx->queued))
		leave_to_step(ctx);
}

static __attribute__((noinline)) bool receive_slowly(struct muster_engine *engine,
						     const struct muster_packet *packet,
						     const void *payload, uint32_t len)
{
	(muster_is_traced(engine) ? muster_engine_receive_recorded : muster_engine_receive)
		(engine, packet, payload, len);
	return engine->ready_first;
}

bool muster_engine_take_run(struct muster_engine *engine, uint32_t node,
			    const struct muster_packet *packet, const void *payload, uint32_t len,
			    bool *left)
{
	struct context *ctx = engine->waited_last;
	const struct expected *last = ctx ? ctx->awaited : NULL;
	struct sequence *seq;
	struct instance *inst;
	struct action *action;

	if (!last || !ctx->calm || last->packet.src_node != node)
		return false;
	seq = muster_sequence_current(ctx);
	inst = ctx->instances;
	action = seq->predicted->at;
	if (!take(engine, ctx, inst, action, packet, payload, len))
		return false;
	if (muster_is_traced(engine)) {
		engine->taken_at_once = true;
		muster_trace_again(engine->trace, &last->taken, ctx->base);
	}
	if (engine->ready_first || !muster_kept_holds(ctx, seq))
		leave_to_step(ctx);
	else
		go_on_now(engine, ctx, seq, inst, action, true);
	*left = engine->ready_first;
	return true;
}

bool muster_engine_receive_run(struct muster_engine *engine, const struct muster_packet *packet,
			       const void *payload, uint32_t len)
{
	bool left;

	return muster_engine_take_run(engine, packet->src_node, packet, payload, len, &left) ?
	       left : receive_slowly(engine, packet, payload, len);
}

/* Whether START starts what it has started last, and nothing else is to be done. */
static inline bool is_idle(const struct muster_engine *engine, const struct context *ctx,
			   uint16_t vp, const struct muster_desc *start)
{
	return ctx && ctx->calm && ctx->id == start->context && ctx->job == start->job &&
	       ctx->vp == vp && ctx->kept->cookie == start->cookie && !engine->ready_first &&
	       muster_kept_holds(ctx, ctx->kept) && !ctx->queued;
}

int muster_engine_start_run(struct muster_engine *engine, uint16_t vp,
			    const struct muster_desc *desc, bool *left)
{
	struct context *ctx = engine->waited_last;
	struct sequence *seq;
	int ret = 0;

	if (is_idle(engine, ctx, vp, desc)) {
		seq = ctx->kept;
		muster_sequence_enqueue(ctx, seq);
		go_on_now(engine, ctx, seq, start(ctx, seq), seq->predicted->actions, false);
	} else {
		ret = muster_engine_post(engine, vp, desc, 1, NULL);
	}
	*left = engine->ready_first;
	return ret;
}
