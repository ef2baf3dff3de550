// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Where messages land: from a DATA or RTS packet to an entry of the packet
 * buffer. What lies outside of the window, comes twice or was not asked for is
 * counted and dropped. What is from a member and contradicts the running
 * sequence ends the context. Nothing is judged by a sequence before that runs.
 */
#include "internal.h"

#include <string.h>

/* ---- does it agree? ---- */

static uint8_t judge(const struct sequence *seq, const struct entry *entry)
{
	const struct step *step;

	if (!muster_signatures_equal(&entry->signature, &seq->signature) ||
	    entry->stage != seq->stage)
		return MUSTER_STATUS_MISMATCH;
	if (entry->slot >= seq->nr_slots || entry->pulse >= seq->pulse_count)
		return MUSTER_STATUS_PROTOCOL;
	step = &seq->steps[seq->slot_step[entry->slot]];
	if (entry->total != muster_step_bytes(seq, step, entry->pulse))
		return MUSTER_STATUS_MISMATCH;
	return entry->is_inline == (step->kind == MUSTER_DESC_MP) ? MUSTER_STATUS_OK :
								    MUSTER_STATUS_PROTOCOL;
}

bool muster_landing_check(struct context *ctx, const struct entry *entry)
{
	uint8_t status = judge(muster_sequence_current(ctx), entry);

	if (status)
		muster_context_fail(ctx, status, entry->member, &entry->signature);
	return !status;
}

/* Its sender is behind, or what it sent was never awaited: the latter is a mismatch. */
static void stale(struct context *ctx, uint32_t member, const struct muster_packet *packet)
{
	const struct ended *ended = &ctx->ended[packet->number % MUSTER_WINDOW];
	uint32_t age = ctx->base - packet->number;

	ctx->engine->counters.drop_window++;
	if (age > ctx->nr_ended ||
	    (muster_signatures_equal(&ended->signature, &packet->signature) &&
	     ended->stage == packet->stage))
		return;
	muster_context_fail(ctx, MUSTER_STATUS_MISMATCH, member, &packet->signature);
	ctx->failure.number = packet->number;
	ctx->failure.ours = ended->signature;
}

/* What fills a slot for the second time is a repetition, unless it is of another operation. */
static void repeated(struct context *ctx, uint32_t member, const struct muster_packet *packet,
		     const struct muster_signature *signature)
{
	ctx->engine->counters.drop_duplicate++;
	if (!muster_signatures_equal(&packet->signature, signature))
		muster_context_fail(ctx, MUSTER_STATUS_MISMATCH, member, &packet->signature);
}

/* ---- is it within the window? ---- */

static bool is_running(const struct context *ctx, uint32_t number)
{
	return ctx->running && number == ctx->base;
}

static bool within_window(struct context *ctx, uint32_t member, const struct muster_packet *packet)
{
	struct muster_engine_counters *counters = &ctx->engine->counters;
	uint32_t first = is_running(ctx, packet->number) ? ctx->pulse_first : 0;
	uint32_t pulses = is_running(ctx, packet->number) ? 2 * MUSTER_PULSES_LIVE :
							    MUSTER_PULSES_LIVE;

	if ((int32_t)(packet->number - ctx->base) < 0) {
		stale(ctx, member, packet);
		return false;
	}
	if (packet->number - ctx->base >= MUSTER_WINDOW || packet->pulse >= first + pulses) {
		counters->drop_window++;
		return false;
	}
	if (packet->pulse < first ||
	    (is_running(ctx, packet->number) && packet->pulse < ctx->pulse_next &&
	     packet->seq_id < muster_instance(ctx, packet->pulse)->slot)) {
		repeated(ctx, member, packet, &muster_sequence_current(ctx)->signature);
		return false;
	}
	return true;
}

/* ---- landing ---- */

static struct entry *land(struct context *ctx, uint32_t member, const struct muster_packet *packet)
{
	struct entry *entry = muster_entry_add(ctx, packet->number, packet->pulse, packet->seq_id);

	if (!entry)
		return NULL;
	entry->member = member;
	entry->signature = packet->signature;
	entry->stage = packet->stage;
	entry->total = packet->total;
	entry->flags = packet->flags;
	entry->is_inline = packet->type == MUSTER_PACKET_DATA;
	if (is_running(ctx, packet->number) && !muster_landing_check(ctx, entry))
		return NULL;

	if (packet->flags & MUSTER_PACKET_CREDIT_WANTED)
		muster_credit_note(ctx, member, packet->number);
	return entry;
}

static void land_fragment(struct context *ctx, uint32_t member, struct entry *entry,
			  const struct muster_packet *packet, const void *payload)
{
	uint8_t bit = 1u << packet->offset / MUSTER_MTU;

	if (entry->state != ENTRY_GRANTED || entry->member != member || entry->fragments & bit) {
		repeated(ctx, member, packet, &entry->signature);
		return;
	}
	if (entry->total != packet->total || !packet->length) {
		ctx->engine->counters.drop_malformed++;
		return;
	}
	memcpy(muster_room_block(entry, packet->offset), payload, packet->length);
	entry->fragments |= bit;
	if (entry->fragments == (1u << entry->nr_blocks) - 1) {
		entry->state = ENTRY_FULL;
		muster_context_ready(ctx);
	}
}

void muster_landing_data(struct context *ctx, uint32_t member, const struct muster_packet *packet,
			 const void *payload)
{
	struct entry *entry = muster_entry_find(ctx, packet->number, packet->pulse,
						packet->seq_id);

	if (entry) {
		land_fragment(ctx, member, entry, packet, payload);
		return;
	}
	if (!within_window(ctx, member, packet))
		return;
	if (packet->total > MUSTER_INLINE_MAX || packet->pulse) {
		ctx->engine->counters.drop_malformed++;	/* large data that did not ask */
		return;
	}
	entry = land(ctx, member, packet);
	if (!entry)
		return;
	memcpy(entry->data, payload, packet->length);
	entry->state = ENTRY_FULL;
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
			engine->counters.drop_malformed++;
			return;
		}
	}
	entry = muster_entry_find(ctx, packet->number, packet->pulse, packet->seq_id);
	if (entry) {
		repeated(ctx, member, packet, &entry->signature);
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

/* ---- answering ---- */

static bool send_grant(struct context *ctx, const struct entry *entry, bool taken)
{
	struct muster_packet packet;

	muster_packet_prepare(ctx, MUSTER_PACKET_GRANT, entry->member, &packet);
	packet.flags = taken ? MUSTER_PACKET_TAKEN : 0;
	packet.seq_id = entry->slot;
	packet.stage = entry->stage;
	packet.signature = entry->signature;
	packet.number = entry->number;
	packet.pulse = entry->pulse;
	packet.total = entry->total;
	return muster_packet_send(ctx, entry->member, &packet, NULL);
}

bool muster_landing_tell_taken(struct context *ctx, struct entry *entry)
{
	if (!send_grant(ctx, entry, true))
		return false;
	entry->owes_taken = false;
	return true;
}

/* Messages of 0 bytes need no room, and are here once they have asked. */
static void grant(struct context *ctx, struct entry *entry, bool is_needed_next)
{
	struct muster_engine_counters *counters = &ctx->engine->counters;

	if (entry->total && !muster_room_take(entry, is_needed_next))
		return;
	if (!send_grant(ctx, entry, !entry->total)) {
		if (!ctx->failure.status)
			muster_room_give(entry);
		return;
	}
	counters->grants++;
	counters->grants_reserve += entry->in_reserve;
	entry->state = entry->total ? ENTRY_GRANTED : ENTRY_FULL;
	if (!entry->total)
		ctx->moved = true;
}

/* The entry of the slot needed next, if it has come. */
static struct entry *needed_next(const struct context *ctx)
{
	const struct instance *oldest = muster_instance(ctx, ctx->pulse_first);

	return muster_entry_find(ctx, ctx->base, oldest->pulse, oldest->slot);
}

/* Look again at those of the running sequence that wait for room. */
void muster_landing_grant_room(struct context *ctx)
{
	const struct arrivals *arrivals = &ctx->arrivals[ctx->base % MUSTER_WINDOW];
	struct entry *needed, *entry, *next;

	if (!arrivals->first)
		return;
	needed = needed_next(ctx);
	if (needed && needed->state == ENTRY_ASKED)
		grant(ctx, needed, true);
	if (ctx->failure.status)
		return;
	for (entry = arrivals->first; entry && !ctx->failure.status; entry = next) {
		next = entry->next;
		if (entry->state == ENTRY_ASKED && entry->pulse < ctx->pulse_next &&
		    entry != needed)
			grant(ctx, entry, false);
	}
}
