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
#include "internal.h"

#include <stddef.h>

#include "arith.h"

enum { PACKETS_MAX = 32 };	/* of a program: what it sends, and what it awaits */

/* A descriptor of such a program. */
struct action {
	struct muster_packet packet;	/* that it sends, but for number and base */
	const void *load;		/* its ranges, where they are mapped; or NULL */
	void *store;
	uint32_t member;		/* that it sends to */
	uint16_t length;
	uint8_t slots_end;		/* behind the last slot that it awaits */
	bool loads;
	bool stores;
	bool sends;
	bool goes_on;			/* with what the one before it has left; or nothing, of no bytes */
};

struct predicted {
	size_t bytes;
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
		.goes_on = step->flags & MUSTER_DESC_SWAP_LOCAL_DATA || step->brings_data,
	};
	if (action->loads)
		action->load = muster_memory_map(ctx, step->load_key, step->load_addr, step->length,
						 false);
	if (action->stores)
		action->store = muster_memory_map(ctx, step->store_key, step->store_addr,
						  step->length, true);
	if (action->sends)
		muster_send_prepare(ctx, seq, step, &action->packet);
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

/* All but number and base, which are read once each. */
static inline bool is_alike(const struct muster_packet *packet, const struct muster_packet *last)
{
	const uint8_t *a = (const uint8_t *)packet, *b = (const uint8_t *)last;
	const size_t number = offsetof(struct muster_packet, number);
	const size_t base = offsetof(struct muster_packet, base);
	const size_t pulse = number + sizeof(packet->number), arg = base + sizeof(packet->base);

	return !memcmp(a, b, number) && !memcmp(a + pulse, b + pulse, base - pulse) &&
	       !memcmp(a + arg, b + arg, sizeof(*packet) - arg);
}

/* Whose it would be, if it is predicted. The last that waited is found at once. */
static inline struct context *context_of(const struct muster_engine *engine,
					 const struct muster_packet *packet)
{
	struct context *ctx = engine->waited_last;

	return ctx && ctx->awaited && ctx->id == packet->context ?
	       ctx : muster_context_of(engine, packet);
}

/* False: the program should have brought an operand. */
static inline bool fold(struct instance *inst, const struct step *step, uint16_t flags,
			const void *payload)
{
	if (flags & MUSTER_PACKET_SWAP_DATA || !(step->flags & MUSTER_DESC_REDUCE))
		copy(inst->data, payload, step->length);
	else if (inst->has_operand)
		muster_arith_checked(step->type, step->op, inst->data, inst->data, payload,
				     step->length);
	else
		return false;
	return true;
}

bool muster_predict_take(struct muster_engine *engine, const struct muster_packet *packet,
			 const void *payload, uint32_t len)
{
	struct context *ctx = context_of(engine, packet);
	const struct muster_packet *last = ctx ? ctx->awaited : NULL;
	struct instance *inst;
	struct peer *peer;

	if (!last || !ctx->running || packet->number != ctx->base || len != last->length ||
	    !is_alike(packet, last))
		return false;
	inst = ctx->instances;
	if (!fold(inst, &muster_sequence_current(ctx)->steps[inst->next], last->flags, payload))
		return false;
	engine->counters->packets_in++;
	engine->counters->bytes_in += len;
	engine->counters->unasked++;
	peer = muster_member_peer(ctx, last->src_member);
	peer->received++;
	muster_credit_hear(ctx, peer, packet->base);
	muster_instance_combined(ctx, inst, last->src_member, last->flags);
	muster_context_ready(ctx);
	return true;
}

/* ---- running ----------------------------------------------------------------------- */

/* Nothing but its program concerns the context. */
static inline bool is_quiet(const struct context *ctx)
{
	return ctx->queued && !ctx->failure.status && !ctx->wants_room && !ctx->copies &&
	       !ctx->asking_first && !ctx->nr_messages;
}

static inline bool can_run(const struct context *ctx, struct sequence *seq)
{
	return seq->predicted && !ctx->arrivals[ctx->base % MUSTER_WINDOW].first &&
	       ctx->engine->budget > 2u * seq->nr_steps && muster_kept_holds(ctx, seq);
}

/* Whether it runs now, as it has run before. */
static inline bool start(struct context *ctx, const struct sequence *seq)
{
	if (ctx->nr_left || !seq->instances)
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

static inline bool load(struct context *ctx, struct instance *inst, const struct action *action)
{
	if (action->loads) {
		if (!action->load)
			return false;
		ctx->engine->counters->dma_read_bytes += action->length;
		copy(inst->data, action->load, action->length);
	}
	inst->has_operand = action->loads || action->goes_on;
	inst->begun = true;
	return true;
}

static inline bool store(struct context *ctx, const struct instance *inst,
			 const struct action *action)
{
	if (!action->stores)
		return true;
	if (!action->store)
		return false;
	ctx->engine->counters->dma_write_bytes += action->length;
	copy(action->store, inst->data, action->length);
	return true;
}

static inline void send(struct context *ctx, struct instance *inst, const struct action *action)
{
	struct muster_packet packet;

	if (!muster_credit_allows(ctx, action->member)) {
		muster_send_open(ctx, inst, inst->next);
		return;
	}
	packet = action->packet;
	if (muster_credit_wanted(ctx, action->member))
		packet.flags |= MUSTER_PACKET_CREDIT_WANTED;
	packet.number = ctx->base;
	packet.base = ctx->base;
	if (!muster_packet_send(ctx, action->member, &packet, inst->data))
		muster_send_hold(ctx, inst, inst->next);
}

/* As far as what has come allows. False: something is not as usual. */
static inline bool run_actions(struct context *ctx, const struct sequence *seq,
			       struct instance *inst)
{
	const struct action *action = &seq->predicted->actions[inst->next];
	struct muster_engine *engine = ctx->engine;

	for (; inst->next < seq->nr_steps; inst->next++, action++) {
		if (!inst->begun && !load(ctx, inst, action))
			return false;
		if (inst->slot < action->slots_end)
			return true;
		if (!store(ctx, inst, action))
			return false;
		engine->budget--;
		engine->counters->descriptors_executed++;
		inst->begun = false;
		if (!action->sends)
			continue;
		send(ctx, inst, action);
		if (ctx->failure.status)
			return false;
	}
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

bool muster_predict_run(struct context *ctx)
{
	struct sequence *seq;
	struct instance *inst;

	if (!is_quiet(ctx))
		return false;
	do {
		seq = muster_sequence_current(ctx);
		if (!can_run(ctx, seq) || (!ctx->running && !start(ctx, seq)))
			return false;
		inst = ctx->instances;
		if (ctx->pulse_first || inst->todo || !run_actions(ctx, seq, inst))
			return false;
		if (!muster_instance_ended(seq, inst)) {
			await(ctx, seq, inst);
			return true;
		}
		ctx->pulse_first++;
		muster_sequence_end(ctx);
	} while (!ctx->running && ctx->queued && !ctx->asking_first);
	return !ctx->running && !ctx->asking_first;	/* else the completion queue is full */
}
