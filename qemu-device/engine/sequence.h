/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How a sequence begins and ends: in a header, as predict.c has no time for calls. */
#ifndef MUSTER_ENGINE_SEQUENCE_H
#define MUSTER_ENGINE_SEQUENCE_H

#include "credit.h"

/* There must be room (muster_sequence_has_place()). The context is not ready by that. */
static inline void muster_sequence_enqueue(struct context *ctx, struct sequence *seq)
{
	seq->refs++;
	if (ctx->queued)
		ctx->queue[(ctx->queue_first + ctx->queued) % MUSTER_SEQ_QUEUE_MAX] = seq;
	else
		ctx->current = seq;
	ctx->queued++;
	ctx->engine->counters->sequences_posted++;
}

/* The running one stops. */
static inline void muster_sequence_stop(struct context *ctx)
{
	ctx->running = false;
	ctx->awaited = NULL;
	if (!ctx->instances_kept && ctx->instances)
		muster_instances_give(ctx, ctx->current, ctx->instances);
	ctx->instances = NULL;
	ctx->instances_kept = false;
}

/* The first of those posted goes, and base is the next: another one can begin, if it is posted. */
static inline void muster_sequence_forget(struct context *ctx)
{
	muster_sequence_put(ctx, ctx->current);
	ctx->base++;
	ctx->queue_first++;
	ctx->moved = --ctx->queued;
	if (ctx->moved)
		ctx->current = ctx->queue[ctx->queue_first % MUSTER_SEQ_QUEUE_MAX];
	else if (ctx->queue)
		muster_queue_give(ctx);
}

/* Number base ends. Every slot has been combined, and nothing else was let in: no entry is left. */
static inline void muster_sequence_close(struct context *ctx, const struct sequence *seq)
{
	ctx->ended.stages[ctx->base % MUSTER_WINDOW] = seq->stage;
	if (ctx->nr_alike < MUSTER_WINDOW ||
	    !muster_signatures_equal(&ctx->ended.last, &seq->signature))
		muster_sequence_remember(ctx, &seq->signature);
	muster_sequence_stop(ctx);
}

/* Those who asked when the number before base ends. */
static inline void muster_sequence_tell(struct context *ctx)
{
	if (ctx->asking_first || ctx->base % BASE_AGE_EACH == 0)
		muster_credit_ended(ctx, ctx->base - 1);
}

static inline void muster_sequence_end(struct context *ctx, const struct sequence *seq)
{
	muster_sequence_close(ctx, seq);
	muster_sequence_forget(ctx);
	ctx->engine->counters->sequences_ended++;
	muster_sequence_tell(ctx);
}

#endif /* MUSTER_ENGINE_SEQUENCE_H */
