// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The engine's trace records (trace.h), apart from the way of who is not recorded. */
#include "trace.h"

void muster_trace_sent(const struct muster_engine *engine, uint32_t member,
		       const struct muster_packet *packet)
{
	struct muster_trace *trace = engine->trace;
	const uint64_t written = trace->written;
	struct muster_trace_record *record = muster_trace_begin(trace, written, MUSTER_TRACE_SEND);

	muster_trace_packet(record, packet);
	record->member = member;
	muster_trace_end(trace, written);
}

void muster_trace_taken(const struct context *ctx, const struct instance *inst,
			const struct entry *entry)
{
	struct muster_trace *trace = ctx->engine->trace;
	const uint64_t written = trace->written;
	struct muster_trace_record *record = muster_trace_begin(trace, written, MUSTER_TRACE_TAKE);

	record->context = ctx->id;
	record->life = ctx->life;
	record->member = entry->member;
	record->number = ctx->base;
	record->pulse = inst->pulse;
	record->slot = inst->slot - 1;
	muster_trace_end(trace, written);
}
