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
 */
#include "credit.h"
#include "packet.h"
#include "sequence.h"
#include "trace.h"

#include <stddef.h>

#include "arith.h"

/* A call costs as much as a tenth of what a run does. */
#define INLINE inline __attribute__((always_inline))

enum { PACKETS_MAX = 32 };	/* of a program: what it sends, and what it awaits */

/* A descriptor of such a program. */
struct action {
	struct muster_packet packet;	/* that it sends, but for number and base */
	const void *load;		/* its ranges, where they are mapped; or NULL */
	void *store;
	struct muster_trace_record sent; /* that records it, but for time and number */
	muster_arith_element *one;	/* combines what it awaits; or NULL: not a single element */
	uint32_t member;		/* that it sends to */
	uint16_t length;
	uint8_t slots_end;		/* behind the last slot that it awaits */
	bool loads;
	bool stores;
	bool sends;
	bool reduces;
	bool goes_on;			/* with what the one before it has left; or nothing, of no bytes */
};

struct predicted {
	size_t bytes;
	struct muster_cqe end;		/* but for the number */
	uint64_t known;			/* bit per slot: last[slot] has come */
	struct muster_packet *last;	/* by slot */
	struct action actions[];
};

/* Mostly one element. */
static inline void copy(void *to, const void *from, uint32_t bytes)
{
	if (bytes == sizeof(uint64_t))
		memcpy(to, from, sizeof(uint64_t));
	else if (bytes)
		memcpy(to, from, bytes);
}

/* ---- preparing --------------------------------------------------------------------- */

static bool is_small(const struct sequence *seq)
{
	const struct step *step = seq->steps, *end = step + seq->nr_steps;

	while (step < end && step->kind == MUSTER_DESC_MP && !step->to_tree &&
	       !(step->flags & MUSTER_DESC_SWAP_LOCAL_VP))
		step++;
	return step == end && seq->nr_steps + seq->nr_slots <= PACKETS_MAX;
}

static void prepare(struct context *ctx, const struct sequence *seq, const struct step *step,
		    struct action *action)
{
	*action = (struct action){
		.member = step->member_dest,
		.length = step->length,
		.slots_end = step->slot_first + step->cp_count,
		.loads = step->load_key,
		.stores = step->store_key,
		.sends = step->flags & MUSTER_DESC_CP,
		.reduces = step->flags & MUSTER_DESC_REDUCE,
		.goes_on = step->flags & MUSTER_DESC_SWAP_LOCAL_DATA || step->brings_data,
	};
	if (action->reduces)
		action->one = muster_arith_one(step->type, step->op, step->length);
	if (action->loads)
		action->load = muster_memory_map(ctx, step->load_key, step->load_addr, step->length,
						 false);
	if (action->stores)
		action->store = muster_memory_map(ctx, step->store_key, step->store_addr,
						  step->length, true);
	if (!action->sends)
		return;
	muster_send_prepare(ctx, seq, step, &action->packet);
	muster_trace_packet(&action->sent, &action->packet);
	action->sent.kind = MUSTER_TRACE_SEND;
	action->sent.member = action->member;
}

/* Without memory for it the program runs all the same. */
void muster_predict_bind(struct context *ctx, struct sequence *seq)
{
	size_t bytes = sizeof(struct predicted) + seq->nr_steps * sizeof(struct action) +
		       seq->nr_slots * sizeof(struct muster_packet);
	struct predicted *predicted = is_small(seq) ? muster_pool_take(ctx->engine, bytes) : NULL;
	uint32_t i;

	if (!predicted)
		return;
	predicted->bytes = bytes;
	predicted->end = muster_sequence_cqe(ctx, seq);
	predicted->known = 0;
	predicted->last = (struct muster_packet *)&predicted->actions[seq->nr_steps];
	for (i = 0; i < seq->nr_steps; i++)
		prepare(ctx, seq, &seq->steps[i], &predicted->actions[i]);
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

	if (!predicted || packet->flags & MUSTER_PACKET_CREDIT_WANTED)
		return;
	predicted->last[packet->seq_id] = *packet;
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

/* Whose it would be, if it is predicted. The last that waited is found at once. */
static inline struct context *context_of(const struct muster_engine *engine,
					 const struct muster_packet *packet)
{
	struct context *ctx = engine->waited_last;

	return ctx && ctx->awaited && ctx->id == packet->context ?
	       ctx : muster_context_of(engine, packet);
}

static void combine(const struct sequence *seq, struct instance *inst, const void *payload)
{
	const struct step *step = &seq->steps[inst->next];

	muster_arith_checked(step->type, step->op, inst->data, inst->data, payload, step->length);
}

/* False: the program should have brought an operand. */
static inline bool fold(const struct sequence *seq, struct instance *inst, uint16_t flags,
			const void *payload)
{
	const struct action *action = &seq->predicted->actions[inst->next];

	if (flags & MUSTER_PACKET_SWAP_DATA || !action->reduces)
		copy(inst->data, payload, action->length);
	else if (!inst->has_operand)
		return false;
	else if (action->one)
		action->one(inst->data, inst->data, payload);
	else
		combine(seq, inst, payload);
	return true;
}

/* Whose packet it was, and is combined now; NULL: it was not as predicted. */
static INLINE struct context *take(struct muster_engine *engine, const struct muster_packet *packet,
				   const void *payload, uint32_t len)
{
	struct context *ctx = context_of(engine, packet);
	const struct muster_packet *last = ctx ? ctx->awaited : NULL;
	struct muster_engine_counters *counters = engine->counters;
	struct instance *inst;
	struct peer *peer;

	if (!last || !ctx->running || packet->number != ctx->base || len != last->length ||
	    !is_alike(packet, last))
		return NULL;
	inst = ctx->instances;
	if (!fold(muster_sequence_current(ctx), inst, last->flags, payload))
		return NULL;
	counters->packets_in++;
	counters->bytes_in += len;
	counters->unasked++;
	peer = muster_member_peer(ctx, last->src_member);
	peer->received++;
	muster_credit_heard(ctx, peer, packet->base);
	muster_instance_combined(ctx, inst, last->src_member, last->flags);
	return ctx;
}

bool muster_predict_take(struct muster_engine *engine, const struct muster_packet *packet,
			 const void *payload, uint32_t len)
{
	struct context *ctx = take(engine, packet, payload, len);

	if (ctx)
		muster_context_ready(ctx);
	return ctx;
}

/* ---- running ----------------------------------------------------------------------- */

/* Nothing but its program concerns the context. */
static inline bool is_quiet(const struct context *ctx)
{
	return !ctx->failure.status && !ctx->wants_room && !ctx->copies && !ctx->asking_first &&
	       !ctx->nr_messages;
}

/* What came before it ran is left to others; so is memory that is not what it was. */
static inline bool can_run(const struct context *ctx, struct sequence *seq)
{
	return !ctx->arrivals[ctx->base % MUSTER_WINDOW].first && muster_kept_holds(ctx, seq);
}

/* Whether it runs now, as it has run before. */
static INLINE bool start(struct context *ctx, const struct sequence *seq)
{
	if (!seq->predicted || !seq->instances || ctx->nr_left)
		return false;
	ctx->instances = seq->instances;
	ctx->instances_bytes = ctx->instance_bytes = seq->instances_bytes;	/* of one pulse */
	ctx->instances_kept = true;
	ctx->running = true;
	ctx->coll_end = seq->coll_end;
	ctx->pulse_first = 0;
	ctx->pulse_next = 1;
	muster_instance_start(ctx->instances, 0);
	return true;
}

static inline bool load(struct muster_engine_counters *counters, struct instance *inst,
			const struct action *action)
{
	if (action->loads) {
		if (!action->load)
			return false;
		counters->dma_read_bytes += action->length;
		copy(inst->data, action->load, action->length);
	}
	inst->has_operand = action->loads || action->goes_on;
	inst->begun = true;
	return true;
}

static inline bool store(struct muster_engine_counters *counters, const struct instance *inst,
			 const struct action *action)
{
	if (!action->stores)
		return true;
	if (!action->store)
		return false;
	counters->dma_write_bytes += action->length;
	copy(action->store, inst->data, action->length);
	return true;
}

static INLINE void send(struct context *ctx, struct instance *inst, struct action *action)
{
	struct muster_packet *packet = &action->packet;
	struct peer *peer = muster_member_peer(ctx, action->member);
	const int32_t ahead = peer ? (int32_t)(ctx->base - peer->base) : MUSTER_WINDOW;

	if (ahead >= MUSTER_WINDOW) {	/* or it is the first message to it */
		muster_send_open(ctx, inst, inst->next);
		return;
	}
	packet->flags &= ~MUSTER_PACKET_CREDIT_WANTED;
	if (ahead >= MUSTER_WINDOW / 2)
		packet->flags |= MUSTER_PACKET_CREDIT_WANTED;
	packet->number = ctx->base;
	packet->base = ctx->base;
	if (!muster_packet_go(ctx, action->member, packet, inst->data)) {
		muster_send_hold(ctx, inst, inst->next);
		return;
	}
	peer->sent++;
	if (muster_is_traced(ctx->engine))
		muster_trace_again(ctx->engine->trace, &action->sent, ctx->base);
}

/* As far as what has come allows. False: something is not as usual. */
static INLINE bool run_actions(struct context *ctx, const struct sequence *seq,
			       struct instance *inst)
{
	struct action *action = &seq->predicted->actions[inst->next];
	struct action *const end = &seq->predicted->actions[seq->nr_steps];
	struct muster_engine_counters *counters = ctx->engine->counters;

	for (; action < end; action++) {
		if (!inst->begun && !load(counters, inst, action))
			return false;
		if (inst->slot < action->slots_end)
			return true;
		if (!store(counters, inst, action))
			return false;
		ctx->engine->budget--;
		counters->descriptors_executed++;
		inst->begun = false;
		if (action->sends) {
			send(ctx, inst, action);
			if (ctx->failure.status)
				return false;
		}
		inst->next++;
	}
	return true;
}

/* False: the completion queue is full. */
static INLINE bool end(struct context *ctx, struct sequence *seq)
{
	struct muster_engine *engine = ctx->engine;
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
static inline void await(struct context *ctx, const struct sequence *seq,
			 const struct instance *inst)
{
	const struct predicted *predicted = seq->predicted;

	ctx->awaited = inst->begun && predicted->known >> inst->slot & 1 ?
		       &predicted->last[inst->slot] : NULL;
	ctx->engine->waited_last = ctx;
}

/* The running sequence, as far as it goes now. False: all else is to be looked at. */
static INLINE bool go_on(struct context *ctx, struct sequence *seq)
{
	struct instance *inst = ctx->instances;

	if (!run_actions(ctx, seq, inst))
		return false;
	if (!muster_instance_ended(seq, inst)) {
		await(ctx, seq, inst);
		return true;
	}
	ctx->pulse_first++;
	return end(ctx, seq) && !ctx->asking_first;
}

static bool run_first(struct context *ctx)
{
	struct sequence *seq = muster_sequence_current(ctx);
	const struct instance *inst = ctx->instances;

	if (!seq->predicted || !can_run(ctx, seq) || ctx->engine->budget <= 2u * seq->nr_steps)
		return false;
	if (ctx->running ? ctx->pulse_first || inst->todo : !start(ctx, seq))
		return false;
	return go_on(ctx, seq);
}

bool muster_predict_run(struct context *ctx)
{
	if (!ctx->queued || !is_quiet(ctx))
		return false;
	do {
		if (!run_first(ctx))
			return false;
	} while (!ctx->running && ctx->queued);
	return true;
}

/* ---- both at once ------------------------------------------------------------------ */

/* What the next step would do; what is left then is left to it. */
static INLINE void go_on_now(struct muster_engine *engine, struct context *ctx, struct sequence *seq)
{
	engine->budget = 2 * PACKETS_MAX;
	ctx->stalled = false;
	if (!go_on(ctx, seq) || ctx->stalled || (!ctx->running && ctx->queued))
		muster_context_ready(ctx);
}

bool muster_engine_receive_run(struct muster_engine *engine, const struct muster_packet *packet,
			       const void *payload, uint32_t len)
{
	struct context *ctx = take(engine, packet, payload, len);
	struct sequence *seq;
	const struct instance *inst;

	if (!ctx) {
		(muster_is_traced(engine) ? muster_engine_receive_recorded : muster_engine_receive)
			(engine, packet, payload, len);
		return engine->ready_first;
	}
	if (muster_is_traced(engine)) {
		engine->taken_at_once = true;
		muster_trace_received(engine, packet);
	}
	seq = muster_sequence_current(ctx);
	inst = ctx->instances;
	if (engine->ready_first || !is_quiet(ctx) || !can_run(ctx, seq) || inst->todo)
		muster_context_ready(ctx);
	else
		go_on_now(engine, ctx, seq);
	return engine->ready_first;
}

/* Whether START starts what it has started last, and nothing else is to be done. */
static inline bool is_idle(const struct muster_engine *engine, const struct context *ctx,
			   uint16_t vp, const struct muster_desc *start)
{
	return ctx && ctx->id == start->context && ctx->job == start->job && ctx->vp == vp &&
	       ctx->kept && ctx->kept->cookie == start->cookie && !ctx->queued &&
	       !engine->ready_first && is_quiet(ctx);
}

int muster_engine_start_run(struct muster_engine *engine, uint16_t vp,
			    const struct muster_desc *desc, bool *left)
{
	struct context *ctx = engine->waited_last;
	struct sequence *seq;
	int ret = 0;

	if (is_idle(engine, ctx, vp, desc) && can_run(ctx, ctx->kept) && start(ctx, ctx->kept)) {
		seq = ctx->kept;
		muster_sequence_enqueue(ctx, seq);
		go_on_now(engine, ctx, seq);
	} else {
		ret = muster_engine_post(engine, vp, desc, 1, NULL);
	}
	*left = engine->ready_first;
	return ret;
}
