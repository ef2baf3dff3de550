// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The end of a context that cannot go on (Documentation/sequence.md, section 6):
 * first it stops landing, loading and storing, at once; then every member is
 * told and every posted sequence completes, as wire and completion queue allow.
 */
#include "internal.h"

#include <errno.h>

bool muster_context_complete(struct context *ctx, struct muster_cqe *cqe)
{
	struct muster_engine *engine = ctx->engine;

	cqe->context = ctx->id;
	cqe->vp = ctx->vp;
	cqe->job = ctx->job;
	if (engine->world.complete(engine->opaque, ctx->vp, cqe) != -EAGAIN)
		return true;
	ctx->stalled = true;
	return false;
}

void muster_context_fail(struct context *ctx, uint8_t status, uint32_t culprit,
			 const struct muster_signature *other)
{
	uint32_t i;

	if (ctx->failure.status)
		return;
	ctx->failure.status = status;
	ctx->failure.culprit = culprit;
	ctx->failure.number = ctx->base;
	if (other)
		ctx->failure.other = *other;
	if (ctx->queued)
		ctx->failure.ours = muster_sequence_current(ctx)->signature;
	for (i = 0; i < MUSTER_WINDOW; i++)
		while (ctx->arrivals[i].first)
			muster_entry_remove(ctx, &ctx->unit->entries[ctx->arrivals[i].first]);
	ctx->running = false;
	ctx->engine->counters.contexts_failed++;
	muster_context_ready(ctx);
}

/* The first completion carries the cause, the others were flushed. */
static bool flush_sequence(struct context *ctx)
{
	const struct sequence *seq = muster_sequence_current(ctx);
	struct muster_cqe cqe = {
		.kind = MUSTER_CQE_SEQUENCE,
		.status = ctx->cause_told ? MUSTER_STATUS_FLUSHED : ctx->failure.status,
		.cookie = seq->cookie,
		.number = ctx->base,
		.culprit = ctx->failure.culprit,
		.other = ctx->failure.other,
		.signature = seq->signature,
	};

	if (seq->coll_end) {
		if (!muster_context_complete(ctx, &cqe))
			return false;
		ctx->cause_told = true;
	}
	ctx->base++;
	ctx->queued--;
	return true;
}

static bool tell_owner(struct context *ctx)
{
	struct muster_cqe cqe = {
		.kind = MUSTER_CQE_CONTEXT,
		.status = ctx->failure.status,
		.number = ctx->failure.number,
		.culprit = ctx->failure.culprit,
		.other = ctx->failure.other,
		.signature = ctx->failure.ours,
	};

	return muster_context_complete(ctx, &cqe);
}

void muster_context_drain(struct context *ctx)
{
	muster_farewell_say(ctx);
	muster_messages_flush(ctx);
	while (ctx->queued)
		if (!flush_sequence(ctx))
			return;
	if (ctx->context_told)
		return;
	ctx->context_told = tell_owner(ctx);
	ctx->cause_told |= ctx->context_told;
}
