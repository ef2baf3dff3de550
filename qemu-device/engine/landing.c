// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Where messages land: from a DATA or RTS packet to an entry of the packet
 * buffer. What lies outside of the window, comes twice or was not asked for is
 * counted and dropped. What is from a member and contradicts the running
 * sequence ends the context. Nothing is judged by a sequence before that runs.
 */
#include "credit.h"

#include <string.h>

/* ---- does it agree? ---- */

/* Of a write: an address, or nothing. */
static uint8_t judge_trigger(const struct entry *entry)
{
	uint32_t bytes = entry->flags & MUSTER_PACKET_SWAP_ADDR ? sizeof(struct muster_reference) : 0;

	if (entry->total != bytes)
		return MUSTER_STATUS_MISMATCH;
	return entry->unasked ? MUSTER_STATUS_OK : MUSTER_STATUS_PROTOCOL;
}

static inline uint8_t judge(const struct sequence *seq, const struct entry *entry)
{
	const struct step *step;

	if (!muster_signatures_equal(&entry->signature, &seq->signature) ||
	    entry->stage != seq->stage)
		return MUSTER_STATUS_MISMATCH;
	if (entry->slot >= seq->nr_slots || entry->pulse >= seq->pulse_count)
		return MUSTER_STATUS_PROTOCOL;
	step = &seq->steps[seq->slot_step[entry->slot]];
	if (step->writes)
		return judge_trigger(entry);
	if (entry->flags & MUSTER_PACKET_SWAP_ADDR)
		return MUSTER_STATUS_PROTOCOL;
	if (entry->total != muster_step_bytes(seq, step, entry->pulse))
		return MUSTER_STATUS_MISMATCH;
	if (step->kind == MUSTER_DESC_MP)
		return entry->unasked ? MUSTER_STATUS_OK : MUSTER_STATUS_PROTOCOL;
	return !entry->unasked || seq->pulse_count == 1 || entry->member == MUSTER_CULPRIT_NONE ?
	       MUSTER_STATUS_OK : MUSTER_STATUS_PROTOCOL;
}

bool muster_landing_check(struct context *ctx, const struct entry *entry)
{
	uint8_t status = judge(muster_sequence_current(ctx), entry);

	if (status)
		muster_context_fail(ctx, status, entry->member, &entry->signature);
	return !status;
}

bool muster_landing_check_all(struct context *ctx, const struct entry *entry)
{
	const struct sequence *seq = muster_sequence_current(ctx);

	while (entry && judge(seq, entry) == MUSTER_STATUS_OK)
		entry = entry->next;
	return !entry || muster_landing_check(ctx, entry);
}

/* Its sender is behind, or what it sent was never awaited: the latter is a mismatch. */
static void stale(struct context *ctx, uint32_t member, const struct muster_packet *packet)
{
	const struct muster_signature *ended = muster_sequence_ended(ctx, packet->number);
	struct muster_signature ours;

	ctx->engine->counters->drop_window++;
	if (!ended || (muster_signatures_equal(ended, &packet->signature) &&
		       ctx->ended.stages[packet->number % MUSTER_WINDOW] == packet->stage))
		return;
	ours = *ended;
	muster_context_fail(ctx, MUSTER_STATUS_MISMATCH, member, &packet->signature);
	ctx->failure.number = packet->number;
	ctx->difference.ours = ours;
}

static bool is_running(const struct context *ctx, uint32_t number)
{
	return ctx->running && number == ctx->base;
}

/* But for its place, which is that of its packet. */
static void describe(struct entry *entry, uint32_t member, const struct muster_packet *packet)
{
	entry->member = member;
	entry->signature = packet->signature;
	entry->stage = packet->stage;
	entry->total = packet->total;
	entry->flags = packet->flags;
	entry->unasked = packet->type != MUSTER_PACKET_RTS;
}

/* Two members wrote the same slot: which of them is right is known when the sequence runs. */
static void dispute(struct context *ctx, uint32_t member, const struct muster_packet *packet,
		    struct entry *entry)
{
	struct entry *other;

	if (entry->disputed)
		return;
	entry->disputed = true;
	other = muster_entry_add(ctx, packet->number, packet->pulse, packet->seq_id);
	if (other)
		describe(other, member, packet);
}

/*
 * What fills a slot for the second time is a repetition, unless it is of another operation.
 * entry: what fills it; NULL: it was combined.
 */
static __attribute__((noinline)) void repeated(struct context *ctx, uint32_t member,
					       const struct muster_packet *packet,
					       struct entry *entry)
{
	ctx->engine->counters->drop_duplicate++;
	if (muster_signatures_equal(&packet->signature, entry ? &entry->signature :
				    &muster_sequence_current(ctx)->signature))
		return;
	if (!entry || entry->member == member || is_running(ctx, packet->number))
		muster_context_fail(ctx, MUSTER_STATUS_MISMATCH, member, &packet->signature);
	else
		dispute(ctx, member, packet, entry);
}

/* ---- is it within the window? ---- */

static inline bool within_window(struct context *ctx, uint32_t member,
				 const struct muster_packet *packet)
{
	bool running = is_running(ctx, packet->number);
	uint32_t first = running ? ctx->pulse_first : 0;
	uint32_t pulses = running ? 2 * MUSTER_PULSES_LIVE : MUSTER_PULSES_LIVE;

	if ((int32_t)(packet->number - ctx->base) < 0) {
		stale(ctx, member, packet);
		return false;
	}
	if (packet->number - ctx->base >= MUSTER_WINDOW || packet->pulse >= first + pulses) {
		ctx->engine->counters->drop_window++;
		return false;
	}
	if (packet->pulse < first ||
	    (running && packet->pulse < ctx->pulse_next &&
	     packet->seq_id < muster_instance(ctx, packet->pulse)->slot)) {
		repeated(ctx, member, packet, NULL);
		return false;
	}
	return true;
}

/* ---- landing ---- */

/* NULL: the context has failed, and has no entry any more. */
static inline struct entry *land(struct context *ctx, uint32_t member,
				 const struct muster_packet *packet)
{
	struct entry *entry = muster_entry_add(ctx, packet->number, packet->pulse, packet->seq_id);

	if (!entry)
		return NULL;
	describe(entry, member, packet);
	if (is_running(ctx, packet->number) && !muster_landing_check(ctx, entry))
		return NULL;

	if (packet->flags & MUSTER_PACKET_CREDIT_WANTED)
		muster_credit_note(ctx, member, packet->number);
	return ctx->failure.status ? NULL : entry;
}

static bool is_whole(const struct entry *entry)
{
	return entry->fragments == ~0ull >> (PULSE_BLOCKS - (entry->total + MUSTER_MTU - 1) / MUSTER_MTU);
}

/* And send it on. */
static bool combine(struct context *ctx, const struct entry *entry,
		    const struct muster_packet *packet, const void *payload)
{
	struct instance *inst = muster_instance(ctx, entry->pulse);

	if (!muster_combine_fragment(ctx, entry, packet->offset, payload, packet->length))
		return false;
	if (inst->early >> inst->next & 1)
		muster_sends_forward_more(ctx, inst, 1ull << packet->offset / MUSTER_MTU);
	return true;
}

/* To where it belongs at once, if its turn had come when it was granted; else to its block. */
static bool take_fragment(struct context *ctx, struct entry *entry,
			  const struct muster_packet *packet, const void *payload)
{
	if (entry->state == ENTRY_STREAMED)
		return combine(ctx, entry, packet, payload);
	memcpy(muster_room_block(entry, packet->offset), payload, packet->length);
	return true;
}

static __attribute__((noinline)) void land_fragment(struct context *ctx, uint32_t member,
						    struct entry *entry,
						    const struct muster_packet *packet,
						    const void *payload)
{
	uint64_t bit = 1ull << packet->offset / MUSTER_MTU;

	if ((entry->state != ENTRY_GRANTED && entry->state != ENTRY_STREAMED) || entry->member != member || entry->fragments & bit) {
		repeated(ctx, member, packet, entry);
		return;
	}
	if (entry->total != packet->total || !packet->length) {
		ctx->engine->counters->drop_malformed++;
		return;
	}
	if (!take_fragment(ctx, entry, packet, payload))
		return;
	entry->fragments |= bit;
	if (!is_whole(entry))
		return;
	if (entry->state == ENTRY_STREAMED) {
		entry->combined = true;
		muster_instance(ctx, entry->pulse)->stored = true;
	}
	entry->state = ENTRY_FULL;
	muster_context_ready(ctx);
}

/* It is awaited now: from the packet to where it belongs. */
static __attribute__((noinline)) void pass_through(struct context *ctx, uint32_t member,
						   const struct muster_packet *packet,
						   const void *payload)
{
	struct entry here;

	here.pulse = packet->pulse;
	here.slot = packet->seq_id;
	describe(&here, member, packet);
	if (!muster_landing_check(ctx, &here))
		return;
	if (packet->flags & MUSTER_PACKET_CREDIT_WANTED)
		muster_credit_note(ctx, member, packet->number);
	if (ctx->failure.status)
		return;
	ctx->engine->counters->unasked++;
	if (!muster_instance_take(ctx, &here, payload))
		return;
	muster_predict_learn(ctx, packet);
	muster_context_ready(ctx);
}

/* What did not ask: in the entry, in a block; or nowhere, then it is asked for later. */
static void store(struct entry *entry, const void *payload)
{
	bool is_short = entry->total <= MUSTER_MP_MAX;

	entry->state = ENTRY_ASKED;
	if (!is_short && !muster_room_take_unasked(entry)) {
		entry->owner->engine->counters->unasked_refused++;
		return;
	}
	entry->owner->engine->counters->unasked++;
	muster_copy_small(is_short ? entry->data : muster_room_block(entry, 0), payload, entry->total);
	entry->state = ENTRY_FULL;
}

void muster_landing_data(struct context *ctx, uint32_t member, const struct muster_packet *packet,
			 const void *payload)
{
	struct entry *entry = muster_arrivals_any(ctx, packet->number, packet->seq_id) ?
		muster_entry_find(ctx, packet->number, packet->pulse, packet->seq_id) : NULL;

	if (entry) {
		land_fragment(ctx, member, entry, packet, payload);
		return;
	}
	if (!within_window(ctx, member, packet))
		return;
	if (packet->total > MUSTER_MTU || packet->pulse) {
		ctx->engine->counters->drop_malformed++;	/* large data that did not ask */
		return;
	}
	if (is_running(ctx, packet->number) &&
	    muster_instance_awaits(ctx, packet->pulse, packet->seq_id)) {
		pass_through(ctx, member, packet, payload);
		return;
	}
	entry = land(ctx, member, packet);
	if (!entry)
		return;
	store(entry, payload);
	if (is_running(ctx, packet->number))
		muster_context_ready(ctx);
}

void muster_landing_rts(struct context *ctx, uint32_t member, const struct muster_packet *packet,
			const void *payload)
{
	struct muster_engine *engine = ctx->engine;
	struct muster_reference reference = { 0 };
	struct entry *entry;

	if (packet->flags & MUSTER_PACKET_REFERENCE) {
		memcpy(&reference, payload, sizeof(reference));
		if (reference.length != packet->total || !packet->total || reference.reserved) {
			engine->counters->drop_malformed++;
			return;
		}
	}
	entry = muster_entry_find(ctx, packet->number, packet->pulse, packet->seq_id);
	if (entry) {
		repeated(ctx, member, packet, entry);
		return;
	}
	if (!within_window(ctx, member, packet))
		return;
	entry = land(ctx, member, packet);
	if (!entry)
		return;
	entry->state = ENTRY_ASKED;
	if (engine->world.peer_map && packet->flags & MUSTER_PACKET_REFERENCE) {
		entry->state = ENTRY_REFERENCE;
		entry->reference = reference;
	}
	muster_context_ready(ctx);
}

/* It lies in the entry, or in memory of its own: whoever sends it does not wait for a grant. */
static bool hold(struct entry *entry, const void *payload)
{
	bool is_short = entry->total <= MUSTER_MP_MAX;

	if (!is_short && !muster_room_hold(entry))
		return false;
	memcpy(is_short ? entry->data : entry->held, payload, entry->total);
	entry->state = ENTRY_FULL;
	return true;
}

void muster_landing_result(struct context *ctx, const struct muster_packet *packet,
			   const void *payload)
{
	struct entry *entry;

	if (!muster_tree_awaits(ctx, packet))
		return;
	ctx->engine->counters->tree_down++;
	muster_tree_hear(ctx, packet);
	if (muster_instance_awaits(ctx, packet->pulse, packet->seq_id)) {
		pass_through(ctx, MUSTER_CULPRIT_NONE, packet, payload);
		return;
	}
	entry = land(ctx, MUSTER_CULPRIT_NONE, packet);
	if (entry && hold(entry, payload))
		muster_context_ready(ctx);
}
