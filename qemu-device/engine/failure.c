// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A context that cannot go on (Documentation/sequence.md, section 6) stops landing,
 * loading and storing, at once. What is still to be told then is drain.c's.
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
	static const struct muster_signature none;

	if (ctx->failure.status)
		return;
	ctx->failure.status = status;
	ctx->failure.culprit = culprit;
	ctx->failure.by = (uint16_t)ctx->self;
	ctx->failure.number = ctx->base;
	muster_ended_forget(ctx);
	ctx->difference = (struct difference){
		.ours = ctx->queued ? muster_sequence_current(ctx)->signature : none,
		.other = other ? *other : none,
	};
	muster_entries_remove(ctx);
	muster_copies_fail(ctx);
	ctx->running = false;
	ctx->awaited = NULL;
	ctx->calm = false;
	ctx->engine->counters->contexts_failed++;
	muster_context_ready(ctx);
}

void muster_context_starve(struct context *ctx)
{
	muster_context_fail(ctx, MUSTER_STATUS_STARVED, ctx->self, NULL);
}
