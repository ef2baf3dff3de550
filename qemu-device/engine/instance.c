// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One run of a sequence for one pulse: load, combine in slot order, store, send
 * (Documentation/sequence.md, section 2). It goes as far as it can and is called
 * again when something has come. Inline data is kept here; what lies in memory
 * is combined there, in the store range (combine.c).
 */
#include "internal.h"
#include "trace.h"

#include <string.h>

#include "arith.h"

bool muster_instance_awaits(const struct context *ctx, uint32_t pulse, uint32_t slot)
{
	const struct sequence *seq = muster_sequence_current(ctx);
	const struct instance *inst = muster_instance(ctx, pulse);

	return pulse - ctx->pulse_first < ctx->pulse_next - ctx->pulse_first && inst->begun &&
	       slot == inst->slot && slot < seq->nr_slots && seq->slot_step[slot] == inst->next &&
	       !muster_combine_waits(seq, inst, &seq->steps[inst->next]);
}

/* Of a message that had come before. */
static void slot_done_later(struct context *ctx, struct instance *inst, const struct entry *entry)
{
	muster_instance_combined(ctx, inst, entry->member, entry->flags);
	ctx->engine->counters->triggers_waited++;
	if (muster_is_traced(ctx->engine))
		muster_trace_taken(ctx, inst, entry);
}

static bool slots_left(const struct instance *inst, const struct step *step)
{
	return inst->slot < step->slot_first + step->cp_count;
}

/* ---- inline ---- */

/* one: combines what is a single element; or NULL */
static inline bool combine_data(struct context *ctx, struct instance *inst, const struct step *step,
			 muster_arith_element *one, const struct entry *entry, const void *from)
{
	if (muster_combine_replaces(step, entry))
		memcpy(inst->data, from, step->length);
	else if (!inst->has_operand)
		return muster_combine_operand_missing(ctx, entry);
	else if (one)
		one(inst->data, inst->data, from);
	else
		muster_arith_checked(step->type, step->op, inst->data, inst->data, from,
				     step->length);
	return true;
}

static bool combine_inline(struct context *ctx, struct instance *inst, const struct step *step,
			   muster_arith_element *one)
{
	struct entry *entry = muster_entry_find(ctx, ctx->base, inst->pulse, inst->slot);

	if (!entry || !combine_data(ctx, inst, step, one, entry, entry->data))
		return false;
	slot_done_later(ctx, inst, entry);
	muster_entry_remove(entry);
	return true;
}

static bool load_inline(struct context *ctx, struct instance *inst, const struct step *step)
{
	const void *from = step->brings_data ? step->data : NULL;

	if (step->load_key)
		from = muster_memory_source(ctx, step->load_key, step->load_addr, step->length);
	if (ctx->failure.status)
		return false;
	if (from && step->is_own)
		muster_arith_checked(step->type, step->op, inst->data, inst->data, from,
				     step->length);
	else if (from)
		memcpy(inst->data, from, step->length);
	inst->has_operand = from || step->flags & MUSTER_DESC_SWAP_LOCAL_DATA;
	inst->begun = true;
	return true;
}

/* What has come for its slots. */
static bool combine_slots(struct context *ctx, struct instance *inst, const struct step *step)
{
	muster_arith_element *one = muster_arith_one(step->type, step->op, step->length);

	while (slots_left(inst, step))
		if (!combine_inline(ctx, inst, step, one))
			return false;
	return true;
}

static bool run_inline(struct context *ctx, struct instance *inst, const struct step *step)
{
	if (!inst->begun && !load_inline(ctx, inst, step))
		return false;
	if (slots_left(inst, step) && !combine_slots(ctx, inst, step))
		return false;
	if (!step->store_key)
		return true;
	return !muster_combine_waits(muster_sequence_current(ctx), inst, step) &&
	       muster_memory_write(ctx, step->store_key, step->store_addr, inst->data,
				   step->length);
}

/* ---- writes ---- */

static void own_address(struct instance *inst, const struct step *step)
{
	inst->sends[inst->next].out.to = (struct remote){
		.addr = step->remote_addr, .key = step->remote_key, .bytes = step->length,
	};
}

/* In place of its own, if the packet brings one. */
static bool swap_address(struct context *ctx, struct instance *inst, const struct step *step,
			 const struct entry *entry, const void *from)
{
	struct remote *to = &inst->sends[inst->next].out.to;
	struct muster_reference reference;

	if (!(entry->flags & MUSTER_PACKET_SWAP_ADDR))
		return true;
	memcpy(&reference, from, sizeof(reference));
	if (reference.length != step->length || reference.reserved || !reference.key ||
	    reference.addr + reference.length < reference.addr) {
		muster_context_fail(ctx, MUSTER_STATUS_PROTOCOL, entry->member, &entry->signature);
		return false;
	}
	to->addr = reference.addr;
	to->key = reference.key;
	return true;
}

static bool run_write(struct context *ctx, struct instance *inst, const struct step *step)
{
	struct entry *entry;

	if (!inst->begun)
		own_address(inst, step);
	inst->begun = true;
	if (!slots_left(inst, step))
		return true;
	entry = muster_entry_find(ctx, ctx->base, inst->pulse, inst->slot);
	if (!entry || !swap_address(ctx, inst, step, entry, entry->data))
		return false;
	slot_done_later(ctx, inst, entry);
	muster_entry_remove(entry);
	return true;
}

/* ---- in memory ---- */

static const void *peer_memory(struct context *ctx, const struct entry *entry)
{
	const struct muster_engine *engine = ctx->engine;
	const struct member *member = muster_member(ctx, entry->member);

	return engine->world.peer_map(engine->opaque, member->node, member->vp,
				      entry->reference.key, entry->reference.addr, entry->total);
}

/* What was read there counts for nothing if the sender did not wait for it. */
static bool given_back(const struct context *ctx, struct entry *entry)
{
	const struct muster_engine *engine = ctx->engine;
	uint32_t node = muster_member(ctx, entry->member)->node;

	if (!engine->world.peer_ended ||
	    !engine->world.peer_ended(engine->opaque, node, ctx->job, ctx->id))
		return false;
	entry->state = ENTRY_VOID;
	return true;
}

/* Whether a slot's message is there, and where. */
static bool source_of(struct context *ctx, struct entry *entry, struct source *source)
{
	source->entry = entry;
	source->peer = NULL;
	if (!entry || entry->combined || entry->state != ENTRY_REFERENCE)
		return entry && !entry->combined && entry->state == ENTRY_FULL;
	source->peer = peer_memory(ctx, entry);
	if (!source->peer) {
		entry->state = ENTRY_ASKED;	/* cannot be read from here: have it sent */
		ctx->moved = true;
	}
	return source->peer;
}

/* Those of the next slots that are there, from `entry` on; with FORWARD the last one goes by itself. */
static uint32_t sources_find(struct context *ctx, const struct instance *inst,
			     const struct step *step, struct entry *entry, struct source *sources)
{
	uint32_t end = step->slot_first + step->cp_count, nr = 0, slot = inst->slot;

	if (step->flags & MUSTER_DESC_FORWARD && slot + 1 < end)
		end--;
	while (source_of(ctx, entry, &sources[nr]) &&
	       !(nr && muster_combine_replaces(step, entry))) {
		nr++;
		if (++slot == end)
			break;
		entry = muster_entry_find(ctx, ctx->base, inst->pulse, slot);
	}
	return nr;
}

/* What a sender has not waited for has not been combined. */
static bool sources_done(struct context *ctx, const struct source *sources, uint32_t nr)
{
	bool held = true;

	for (; nr; nr--, sources++) {
		struct entry *entry = sources->entry;

		entry->combined = !sources->peer || !given_back(ctx, entry);
		entry->owes_taken = sources->peer && entry->combined;
		if (entry->owes_taken)
			ctx->engine->counters->bytes_referenced += entry->total;
		held &= entry->combined;
	}
	return held;
}

static bool combine_sources(struct context *ctx, struct instance *inst, const struct step *step,
			    struct entry *entry)
{
	struct source sources[MUSTER_SOURCES_MAX];
	uint32_t nr = sources_find(ctx, inst, step, entry, sources);

	if (!nr)
		return false;
	if (!inst->has_operand && !muster_combine_replaces(step, sources[0].entry))
		return muster_combine_operand_missing(ctx, sources[0].entry);
	if (muster_combine_waits(muster_sequence_current(ctx), inst, step) ||
	    !muster_combine_messages(ctx, inst, step, sources, nr))
		return false;
	inst->stored = true;
	return sources_done(ctx, sources, nr);
}

static bool combine_slot(struct context *ctx, struct instance *inst, const struct step *step)
{
	struct entry *entry = muster_entry_find(ctx, ctx->base, inst->pulse, inst->slot);

	if (!entry || (!entry->combined && !combine_sources(ctx, inst, step, entry)))
		return false;
	if (entry->owes_taken && !muster_grant_tell_taken(ctx, entry))
		return false;
	slot_done_later(ctx, inst, entry);
	muster_entry_remove(entry);
	return true;
}

/* A step without packets that has both ranges: a copy in local memory. */
static bool copy_local(struct context *ctx, const struct instance *inst, const struct step *step)
{
	const struct sequence *seq = muster_sequence_current(ctx);
	uint64_t offset = (uint64_t)inst->pulse * seq->pulse_len;
	uint32_t at, len, bytes = muster_step_bytes(seq, step, inst->pulse);
	const void *from;

	if (step->load_key == step->store_key && step->load_addr == step->store_addr)
		return true;
	if (muster_combine_waits(seq, inst, step))
		return false;
	for (at = 0; at < bytes; at += len) {
		len = bytes - at < MUSTER_MTU ? bytes - at : MUSTER_MTU;
		from = muster_memory_source(ctx, step->load_key, step->load_addr + offset + at, len);
		if (!from || !muster_memory_write(ctx, step->store_key,
						  step->store_addr + offset + at, from, len))
			return false;
	}
	return true;
}

/* It sends on what comes with the last of its messages; one packet, which needs not ask, as a whole. */
static bool forwards_now(const struct sequence *seq, const struct instance *inst,
			 const struct step *step)
{
	return step->flags & MUSTER_DESC_FORWARD && !(inst->early >> inst->next & 1) &&
	       inst->slot + 1 == step->slot_first + step->cp_count &&
	       (seq->pulse_count > 1 || step->length > MUSTER_MTU);
}

static bool run_rdma(struct context *ctx, struct instance *inst, const struct step *step)
{
	if (!inst->begun) {
		inst->has_operand = step->load_key;
		inst->stored = step->is_own;
		inst->begun = true;
	}
	while (slots_left(inst, step)) {
		if (forwards_now(muster_sequence_current(ctx), inst, step))
			muster_sends_forward(ctx, inst);
		if (!combine_slot(ctx, inst, step))
			return false;
	}
	if (step->is_own)
		return !muster_combine_waits(muster_sequence_current(ctx), inst, step) &&
		       muster_combine_own(ctx, inst, step);
	return step->cp_count || !step->store_key || !step->load_key ||
	       copy_local(ctx, inst, step);
}

/* ---- at once ---- */

static bool combine_payload(struct context *ctx, struct instance *inst, const struct step *step,
			    const struct entry *entry, const void *payload)
{
	if (step->kind == MUSTER_DESC_MP)
		return combine_data(ctx, inst, step, NULL, entry, payload);
	if (step->writes)
		return swap_address(ctx, inst, step, entry, payload);
	if (!inst->has_operand && !muster_combine_replaces(step, entry))
		return muster_combine_operand_missing(ctx, entry);
	if (entry->total && !muster_combine_fragment(ctx, entry, 0, payload, entry->total))
		return false;
	inst->stored = true;
	return true;
}

bool muster_instance_take(struct context *ctx, const struct entry *entry, const void *payload)
{
	struct instance *inst = muster_instance(ctx, entry->pulse);
	const struct step *step = &muster_sequence_current(ctx)->steps[inst->next];

	if (!combine_payload(ctx, inst, step, entry, payload))
		return false;
	muster_instance_combined(ctx, inst, entry->member, entry->flags);
	ctx->engine->taken_at_once = true;
	return true;
}

/* ---- the program ---- */

static bool budget_spent(struct context *ctx)
{
	if (ctx->engine->budget)
		return false;
	ctx->stalled = true;
	return true;
}

/* As far as what has come allows. */
static bool run_step(struct context *ctx, struct instance *inst, const struct step *step)
{
	if (step->kind == MUSTER_DESC_MP)
		return run_inline(ctx, inst, step);
	return step->writes ? run_write(ctx, inst, step) : run_rdma(ctx, inst, step);
}

/* The step has been executed. With FORWARD its send was opened before, maybe. */
static void send(struct context *ctx, struct instance *inst)
{
	if (!(inst->early >> inst->next & 1)) {
		muster_send_open(ctx, inst, inst->next);
		return;
	}
	muster_sends_forward_more(ctx, inst, UINT64_MAX);
	muster_sends_run(ctx, inst);
}

void muster_instance_run(struct context *ctx, struct instance *inst)
{
	const struct sequence *seq = muster_sequence_current(ctx);
	struct muster_engine *engine = ctx->engine;
	const struct step *step;

	if (inst->todo)
		muster_sends_run(ctx, inst);
	for (step = &seq->steps[inst->next]; inst->next < seq->nr_steps && !ctx->failure.status;
	     inst->next++, step++) {
		if (budget_spent(ctx))
			return;
		if (!run_step(ctx, inst, step))
			return;
		if (budget_spent(ctx))	/* on the answer to its last packet */
			return;
		engine->budget--;
		engine->counters->descriptors_executed++;
		inst->begun = false;
		if (step->flags & MUSTER_DESC_CP)
			send(ctx, inst);
	}
}
