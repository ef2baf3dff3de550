// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Trace records (muster_look.h): what a context sent, received and combined, into a ring of
 * the engine's owner. Whoever reads it is not waited for.
 */
#include "internal.h"

void muster_engine_trace_put(struct muster_engine *engine, struct muster_trace *trace)
{
	engine->trace = trace;
}

/* The next record, of now. It is not there before record_end(). */
static inline struct muster_trace_record *record_begin(const struct context *ctx, uint8_t kind)
{
	struct muster_trace *trace = ctx->engine->trace;
	struct muster_trace_record *record =
		&trace->records[trace->written % MUSTER_TRACE_RECORDS];

	record->time = trace->now;
	record->context = ctx->id;
	record->kind = kind;
	return record;
}

static inline void record_end(const struct context *ctx)
{
	struct muster_trace *trace = ctx->engine->trace;

	__atomic_store_n(&trace->written, trace->written + 1, __ATOMIC_RELEASE);
}

void muster_trace_packet(const struct context *ctx, uint8_t kind, uint32_t member,
			 const struct muster_packet *packet)
{
	struct muster_trace_record *record = record_begin(ctx, kind);

	record->number = packet->number;
	record->pulse = packet->pulse;
	record->member = member;
	record->bytes = packet->length;
	record->slot = packet->seq_id;
	record->type = packet->type;
	record_end(ctx);
}

void muster_trace_take(const struct context *ctx, uint32_t pulse, uint8_t slot,
		       const struct entry *entry)
{
	struct muster_trace_record *record = record_begin(ctx, MUSTER_TRACE_TAKE);

	record->number = ctx->base;
	record->pulse = pulse;
	record->member = entry->member;
	record->bytes = entry->total;
	record->slot = slot;
	record_end(ctx);
}
