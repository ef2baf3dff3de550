/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Trace records (muster_look.h): what a context sent, received and combined, into a ring of
 * the engine's owner, who has put the time into `now`. Whoever reads it is not waited for. Who
 * is not recorded pays a test where a packet has gone, and one where a message is combined that
 * had come before: what is done then is apart from its way. What comes in has an entry of its
 * own, muster_engine_receive_recorded().
 */
#ifndef MUSTER_ENGINE_TRACE_H
#define MUSTER_ENGINE_TRACE_H

#include "internal.h"

#include <string.h>

enum { TRACE_KEY_BYTES = 5 * sizeof(uint32_t) };	/* context, life, member, number, pulse */

MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_trace_record, kind) -
		     __builtin_offsetof(struct muster_trace_record, context) == TRACE_KEY_BYTES,
		     "in a row");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_packet, offset) -
		     __builtin_offsetof(struct muster_packet, context) == TRACE_KEY_BYTES, "as here");
MUSTER_STATIC_ASSERT(MUSTER_PULSE_MAX <= 256 * MUSTER_MTU, "a part is a fragment");

static inline bool muster_is_traced(const struct muster_engine *engine)
{
	return __builtin_expect(engine->trace != NULL, 0);
}

/* The next record, of now. It is not there before muster_trace_end(). */
static inline struct muster_trace_record *muster_trace_begin(struct muster_trace *trace,
							     uint64_t written, uint8_t kind)
{
	const uint64_t at = written * sizeof(struct muster_trace_record) % sizeof(trace->records);
	struct muster_trace_record *record = (void *)((uint8_t *)trace->records + at);

	record->time = trace->now;
	record->kind = kind;
	return record;
}

static inline void muster_trace_end(struct muster_trace *trace, uint64_t written)
{
	__atomic_store_n(&trace->written, written + 1, __ATOMIC_RELEASE);
}

static inline void muster_trace_packet(struct muster_trace_record *record,
				       const struct muster_packet *packet)
{
	memcpy(&record->context, &packet->context, TRACE_KEY_BYTES);
	record->slot = packet->seq_id;
	record->type = packet->type;
	record->part = packet->offset / MUSTER_MTU;
}

/* What was recorded before, of another number. */
static inline void muster_trace_again(struct muster_trace *trace,
				      const struct muster_trace_record *before, uint32_t number)
{
	const uint64_t written = trace->written;
	struct muster_trace_record *record = muster_trace_begin(trace, written, before->kind);

	*record = *before;
	record->time = trace->now;
	record->number = number;
	muster_trace_end(trace, written);
}

/* A packet has come, and all is done that it led to at once. */
static inline void muster_trace_received(struct muster_engine *engine,
					 const struct muster_packet *packet)
{
	struct muster_trace *trace = engine->trace;
	const uint64_t written = trace->written;

	muster_trace_packet(muster_trace_begin(trace, written,
					       MUSTER_TRACE_RECEIVE + engine->taken_at_once), packet);
	muster_trace_end(trace, written);
}

/* A packet has gone to a member. */
void muster_trace_sent(const struct muster_engine *engine, uint32_t member,
		       const struct muster_packet *packet);
/* The instance's slot has just been taken, of a message that had come before. */
void muster_trace_taken(const struct context *ctx, const struct instance *inst,
			const struct entry *entry);

#endif /* MUSTER_ENGINE_TRACE_H */
