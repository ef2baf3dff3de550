// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a context waits for, for those who ask why it does not go on. Nothing is
 * remembered for that: it is read off the oldest live instance, its cursor and its open
 * sends.
 */
#include "credit.h"
#include "predict.h"

#include <errno.h>

static void add(struct muster_look_waits *list, const struct sequence *seq, uint8_t cause,
		uint32_t member, uint8_t slot)
{
	if (list->nr < MUSTER_LOOK_WAITS_MAX)
		list->waits[list->nr] = (struct muster_look_wait){
			.rank = member, .cause = cause, .slot = slot, .stage = seq->stage,
		};
	list->nr++;
}

static void add_slot(struct muster_look_waits *list, const struct context *ctx, const struct instance *inst)
{
	const struct sequence *seq = muster_sequence_current(ctx);
	const struct entry *entry;

	if (inst->slot >= seq->nr_slots || seq->slot_step[inst->slot] != inst->next)
		return;		/* its step has all that it awaits */
	entry = muster_entry_find(ctx, ctx->base, inst->pulse, inst->slot);
	if (!entry)
		add(list, seq, MUSTER_LOOK_SLOT, MUSTER_LOOK_NOBODY, inst->slot);
	else if (entry->state == ENTRY_GRANTED || entry->state == ENTRY_STREAMED)
		add(list, seq, MUSTER_LOOK_DATA, entry->member, inst->slot);
	else if (entry->owes_taken ||
		 (entry->state == ENTRY_ASKED &&
		  !muster_combine_waits(seq, inst, &seq->steps[inst->next])))
		add(list, seq, MUSTER_LOOK_WIRE, entry->member, inst->slot);
}

static uint8_t cause_of(const struct context *ctx, const struct send *send)
{
	if (send->phase == SEND_ASKED)
		return MUSTER_LOOK_GRANT;
	if (!send->to_tree && !send->writes && send->phase != SEND_GRANTED &&
	    !muster_credit_allows(ctx, send->member))
		return MUSTER_LOOK_WINDOW;
	return MUSTER_LOOK_WIRE;
}

static void add_sends(struct muster_look_waits *list, const struct context *ctx, const struct instance *inst)
{
	uint64_t open;

	for (open = inst->open; open; open &= open - 1) {
		const struct send *send = &inst->sends[__builtin_ctzll(open)];

		if (send->phase == SEND_GRANTED && !(inst->todo & open & -open))
			continue;	/* it sends on what the slot above waits for */
		add(list, muster_sequence_current(ctx), cause_of(ctx, send),
		    send->to_tree ? MUSTER_LOOK_NOBODY : send->member, send->slot);
	}
}

int muster_engine_waits(const struct muster_engine *engine, uint16_t vp, uint8_t job,
			uint32_t context, struct muster_look_waits *waits)
{
	const struct context *ctx = muster_context_find(engine, vp, job, context);

	if (!ctx || !ctx->running)
		return -ENOENT;
	*waits = (struct muster_look_waits){ .number = ctx->base, .pulse = ctx->pulse_first };
	if (ctx->pulse_first == ctx->pulse_next) {
		/* All pulses have ended, and the completion is not written. */
		add(waits, muster_sequence_current(ctx), MUSTER_LOOK_QUEUE, ctx->self, 0);
		return 0;
	}
	add_slot(waits, ctx, muster_instance(ctx, ctx->pulse_first));
	add_sends(waits, ctx, muster_instance(ctx, ctx->pulse_first));
	return 0;
}

uint32_t muster_engine_awaits_next(const struct muster_engine *engine)
{
	const struct context *ctx = engine->waited_last;

	return ctx && ctx->awaited && ctx->calm ? ctx->awaited->packet.src_node : MUSTER_NODES_MAX;
}

uint32_t muster_engine_awaits(const struct muster_engine *engine, uint32_t nodes[MUSTER_SLOTS_MAX])
{
	const struct context *ctx = engine->waited_last;
	const struct predicted *predicted = NULL;
	const struct instance *inst;
	uint32_t slot, end, nr = 0;

	if (ctx && ctx->running)
		predicted = muster_sequence_current(ctx)->predicted;
	inst = predicted ? ctx->instances : NULL;
	if (!inst || !inst->begun)
		return 0;
	end = predicted->actions[inst->next].slots_end;
	for (slot = inst->slot; slot < end; slot++)
		if (predicted->known >> slot & 1 && !muster_entry_find(ctx, ctx->base, 0, slot))
			nodes[nr++] = predicted->last[slot].packet.src_node;
	return nr;
}
