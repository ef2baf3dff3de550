/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Trace records (muster_look.h): what a context sent, received and combined, into a ring of
 * the engine's owner. Whoever reads it is not waited for. In line, as a call costs about half
 * as much as a record.
 */
#ifndef MUSTER_ENGINE_TRACE_H
#define MUSTER_ENGINE_TRACE_H

#include <string.h>

#include "internal.h"

static inline bool muster_is_traced(const struct muster_engine *engine)
{
	return __builtin_expect(*engine->traced, 0);
}

/* The next record, of now. It is not there before muster_trace_end(). */
static inline struct muster_trace_record *
muster_trace_begin(const struct context *ctx, struct muster_trace *trace, uint8_t kind)
{
	struct muster_trace_record *record =
		&trace->records[trace->written % MUSTER_TRACE_RECORDS];

	record->time = trace->now;
	record->context = ctx->id;
	record->kind = kind;
	return record;
}

static inline void muster_trace_end(struct muster_trace *trace)
{
	__atomic_store_n(&trace->written, trace->written + 1, __ATOMIC_RELEASE);
}

MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_trace_record, pulse) -
		     __builtin_offsetof(struct muster_trace_record, number) == 4, "side by side");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_packet, pulse) -
		     __builtin_offsetof(struct muster_packet, number) == 4, "side by side");

static inline void muster_trace_packet(const struct context *ctx, uint8_t kind, uint32_t member,
				       const struct muster_packet *packet)
{
	struct muster_trace *trace = ctx->engine->trace;
	struct muster_trace_record *record = muster_trace_begin(ctx, trace, kind);

	memcpy(&record->number, &packet->number, sizeof(uint64_t));	/* and the pulse */
	record->member = member;
	record->bytes = packet->length;
	record->slot = packet->seq_id;
	record->type = packet->type;
	muster_trace_end(trace);
}

static inline void muster_trace_take(const struct context *ctx, uint32_t pulse, uint8_t slot,
				     const struct entry *entry)
{
	struct muster_trace *trace = ctx->engine->trace;
	struct muster_trace_record *record = muster_trace_begin(ctx, trace, MUSTER_TRACE_TAKE);

	record->number = ctx->base;
	record->pulse = pulse;
	record->member = entry->member;
	record->bytes = entry->total;
	record->slot = slot;
	muster_trace_end(trace);
}

#endif /* MUSTER_ENGINE_TRACE_H */
