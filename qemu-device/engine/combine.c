// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * From a message to the store range (Documentation/sequence.md, section 2): from the
 * packet buffer, from the sender's memory, or each fragment as it comes. Elements
 * are independent, so it does not matter which piece is first; the operand is the
 * load range for the first message of a descriptor, the store range afterwards, and
 * where a descriptor has nothing but an operand to combine. Messages that are all there
 * are combined in one pass, with the bits of one after the other.
 */
#include "internal.h"

#include <string.h>

#include "arith.h"

bool muster_combine_operand_missing(struct context *ctx, const struct entry *entry)
{
	muster_context_fail(ctx, MUSTER_STATUS_PROTOCOL, entry->member, &entry->signature);
	return false;
}

bool muster_combine_overlaps(const struct sequence *seq, const struct instance *inst,
			     const struct step *step)
{
	uint64_t addr = step->store_addr + (uint64_t)inst->pulse * seq->pulse_len;

	return muster_sends_overlap(inst, addr, muster_step_bytes(seq, step, inst->pulse));
}

/* What a step works on in its pulse, mapped where that is possible. */
struct span {
	uint64_t load_addr;
	uint64_t store_addr;
	uint32_t bytes;
	uint32_t operand_key;		/* of load or store, whichever holds the operand */
	uint64_t operand_addr;
	const uint8_t *operand;
	uint8_t *store;
};

static void span_of(struct context *ctx, const struct instance *inst, const struct step *step,
		    struct span *span)
{
	const struct sequence *seq = muster_sequence_current(ctx);
	uint64_t offset = (uint64_t)inst->pulse * seq->pulse_len;

	span->bytes = muster_step_bytes(seq, step, inst->pulse);
	span->load_addr = step->load_addr + offset;
	span->store_addr = step->store_addr + offset;
	span->operand_key = inst->stored ? step->store_key : step->load_key;
	span->operand_addr = inst->stored ? span->store_addr : span->load_addr;
	if (!span->bytes)
		return;
	span->store = muster_memory_map(ctx, step->store_key, span->store_addr, span->bytes, true);
	if (span->operand_key)
		span->operand = muster_memory_map(ctx, span->operand_key, span->operand_addr,
						  span->bytes, false);
}

/* store[at..] = operand[at..] op from, or = from */
static bool piece(struct context *ctx, const struct step *step, const struct span *span,
		  uint32_t at, const void *from, uint32_t len, bool replace)
{
	struct muster_engine_counters *counters = ctx->engine->counters;
	const void *operand;
	void *to;

	if (replace)
		return muster_memory_write(ctx, step->store_key, span->store_addr + at, from, len);
	if (span->operand && span->store) {
		counters->dma_read_bytes += len;
		counters->dma_write_bytes += len;
		muster_arith_checked(step->type, step->op, span->store + at, span->operand + at,
				     from, len);
		return true;
	}
	operand = muster_memory_source(ctx, span->operand_key, span->operand_addr + at, len);
	if (!operand)
		return false;
	to = muster_unit(ctx)->scratch;
	muster_arith_checked(step->type, step->op, to, operand, from, len);
	return muster_memory_write(ctx, step->store_key, span->store_addr + at, to, len);
}

static bool message(struct context *ctx, const struct step *step, const struct span *span,
		    const struct source *source)
{
	bool replace = muster_combine_replaces(step, source->entry);
	const uint8_t *peer = source->peer;
	uint32_t at, len;

	for (at = 0; at < span->bytes; at += len) {
		const void *from = peer ? peer + at : muster_room_block(source->entry, at);

		len = span->bytes - at;
		if (len > MUSTER_MTU && !(peer && span->store && (span->operand || replace)))
			len = MUSTER_MTU;
		if (!piece(ctx, step, span, at, from, len, replace))
			return false;
	}
	return true;
}

/* Where that piece of each source is. */
static void row_at(const struct source *sources, uint32_t nr, uint32_t at, const uint8_t **from)
{
	for (uint32_t i = 0; i < nr; i++)
		from[i] = sources[i].peer ? sources[i].peer + at :
					    muster_room_block(sources[i].entry, at);
}

/* Of mapped memory: the operand, if the first does not replace it, and each source are read once. */
static void row(struct context *ctx, const struct step *step, const struct span *span,
		const struct source *sources, uint32_t nr)
{
	struct muster_engine_counters *counters = ctx->engine->counters;
	bool operand = !muster_combine_replaces(step, sources[0].entry);
	const uint8_t *from[1 + MUSTER_SOURCES_MAX];
	uint32_t at, len;

	for (at = 0; at < span->bytes; at += len) {
		len = span->bytes - at < MUSTER_MTU ? span->bytes - at : MUSTER_MTU;
		if (operand)
			from[0] = span->operand + at;
		row_at(sources, nr, at, from + operand);
		muster_arith_rows(step->type, step->op, span->store + at, from, operand + nr,
				  operand + nr, len);
	}
	counters->dma_read_bytes += operand ? span->bytes : 0;
	counters->dma_write_bytes += span->bytes;
}

bool muster_combine_messages(struct context *ctx, const struct instance *inst,
			     const struct step *step, const struct source *sources, uint32_t nr)
{
	struct span span = { 0 };
	uint32_t i;

	span_of(ctx, inst, step, &span);
	if (nr > 1 && span.store &&
	    (span.operand || muster_combine_replaces(step, sources[0].entry))) {
		row(ctx, step, &span, sources, nr);
		return true;
	}
	for (i = 0; i < nr; i++) {
		if (!message(ctx, step, &span, &sources[i]))
			return false;
		span.operand_key = step->store_key;
		span.operand_addr = span.store_addr;
		span.operand = span.store;
	}
	return true;
}

/* Of one packet's length: where neither range is mapped, both are read through the scratch block. */
static bool own_piece(struct context *ctx, const struct step *step, const struct span *span,
		      uint32_t at, uint32_t len)
{
	const void *own = muster_memory_source(ctx, step->load_key, span->load_addr + at, len);
	uint8_t copy[MUSTER_MTU];

	if (own == muster_unit(ctx)->scratch)
		own = memcpy(copy, own, len);
	return own && piece(ctx, step, span, at, own, len, false);
}

bool muster_combine_own(struct context *ctx, const struct instance *inst, const struct step *step)
{
	struct span span = { 0 };
	uint32_t at, len;

	span_of(ctx, inst, step, &span);
	for (at = 0; at < span.bytes; at += len) {
		len = span.bytes - at < MUSTER_MTU ? span.bytes - at : MUSTER_MTU;
		if (!own_piece(ctx, step, &span, at, len))
			return false;
	}
	return true;
}

bool muster_combine_fragment(struct context *ctx, const struct entry *entry, uint32_t at,
			     const void *from, uint32_t len)
{
	const struct instance *inst = muster_instance(ctx, entry->pulse);
	const struct step *step = &muster_sequence_current(ctx)->steps[inst->next];
	struct span span = { 0 };

	span_of(ctx, inst, step, &span);
	return piece(ctx, step, &span, at, from, len, muster_combine_replaces(step, entry));
}
