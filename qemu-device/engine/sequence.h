/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How a sequence begins and ends: in a header, as predict.c has no time for calls. */
#ifndef MUSTER_ENGINE_SEQUENCE_H
#define MUSTER_ENGINE_SEQUENCE_H

#include "credit.h"

/* There must be room. The context is not ready by that. */
static inline void muster_sequence_enqueue(struct context *ctx, struct sequence *seq)
{
	seq->refs++;
	ctx->queue[(ctx->base + ctx->queued) % MUSTER_SEQ_QUEUE_MAX] = seq;
	if (!ctx->queued++)
		ctx->current = seq;
	ctx->engine->counters->sequences_posted++;
}

/* The running one stops. */
static inline void muster_sequence_stop(struct context *ctx)
{
	ctx->running = false;
	ctx->awaited = NULL;
	if (!ctx->instances_kept)
		muster_pool_give(ctx->engine, ctx->instances, ctx->instances_bytes);
	ctx->instances = NULL;
	ctx->instances_kept = false;
}

/* The first of those posted goes, and base is the next. */
static inline void muster_sequence_forget(struct context *ctx)
{
	muster_sequence_put(ctx, ctx->current);
	ctx->queued--;
	ctx->base++;
	ctx->current = ctx->queue[ctx->base % MUSTER_SEQ_QUEUE_MAX];
}

/* Every slot has been combined, and nothing else was let in: no entry is left. */
static inline void muster_sequence_end(struct context *ctx, const struct sequence *seq)
{
	ctx->ended[ctx->base % MUSTER_WINDOW] = seq->signature;
	ctx->ended_stages[ctx->base % MUSTER_WINDOW] = seq->stage;
	if (ctx->nr_ended < MUSTER_WINDOW)
		ctx->nr_ended++;
	muster_sequence_stop(ctx);
	muster_sequence_forget(ctx);
	ctx->moved = ctx->queued;
	ctx->engine->counters->sequences_ended++;
	if (ctx->asking_first || ctx->base % BASE_AGE_EACH == 0)
		muster_credit_ended(ctx, ctx->base - 1);
}

#endif /* MUSTER_ENGINE_SEQUENCE_H */
