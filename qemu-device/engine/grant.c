// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Answers to those who ask (Documentation/sequence.md, section 4). A slot whose turn
 * has come needs no room: what comes for it goes straight to the store range. Blocks
 * let others come before their turn, while there are some.
 */
#include "internal.h"

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

bool muster_grant_tell_taken(struct context *ctx, struct entry *entry)
{
	if (!send_grant(ctx, entry, true))
		return false;
	entry->owes_taken = false;
	return true;
}

static void stream(struct context *ctx, struct entry *entry)
{
	const struct instance *inst = muster_instance(ctx, entry->pulse);
	const struct step *step = &muster_sequence_current(ctx)->steps[inst->next];

	if (!inst->has_operand && !muster_combine_replaces(step, entry)) {
		muster_combine_operand_missing(ctx, entry);
		return;
	}
	if (!send_grant(ctx, entry, false))
		return;
	ctx->engine->counters->grants++;
	ctx->engine->counters->grants_streamed++;
	entry->state = ENTRY_STREAMED;
}

static void keep(struct context *ctx, struct entry *entry)
{
	if (!muster_room_take(entry))
		return;
	if (!send_grant(ctx, entry, false)) {
		if (!ctx->failure.status)
			muster_room_give(entry);
		return;
	}
	ctx->engine->counters->grants++;
	entry->state = ENTRY_GRANTED;
}

/* Messages of 0 bytes are here once they have asked. */
static void take_empty(struct context *ctx, struct entry *entry)
{
	if (!send_grant(ctx, entry, true))
		return;
	ctx->engine->counters->grants++;
	entry->state = ENTRY_FULL;
	ctx->moved = true;
}

void muster_grant_run(struct context *ctx)
{
	struct entry *entry = muster_arrivals_first(ctx, ctx->base), *next;

	for (; entry && !ctx->failure.status; entry = next) {
		next = entry->next;
		if (entry->state != ENTRY_ASKED || entry->pulse >= ctx->pulse_next)
			continue;
		if (!entry->total)
			take_empty(ctx, entry);
		else if (muster_instance_awaits(ctx, entry->pulse, entry->slot))
			stream(ctx, entry);
		else
			keep(ctx, entry);
	}
}
