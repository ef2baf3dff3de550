// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The end of a context that has failed (Documentation/sequence.md, section 6):
 * every member is told and every posted sequence completes, as wire and completion
 * queue allow.
 */
#include "sequence.h"

/* The first completion carries the cause, the others were flushed. */
static bool flush(struct context *ctx, uint64_t cookie, struct muster_signature signature)
{
	struct muster_cqe cqe = {
		.kind = MUSTER_CQE_SEQUENCE,
		.status = ctx->cause_told ? MUSTER_STATUS_FLUSHED : ctx->failure.status,
		.cookie = cookie,
		.number = ctx->base,
		.culprit = ctx->failure.culprit,
		.by = ctx->failure.by,
		.other = ctx->difference.other,
		.signature = signature,
	};

	if (!muster_context_complete(ctx, &cqe))
		return false;
	ctx->cause_told = true;
	return true;
}

static bool flush_sequence(struct context *ctx)
{
	struct sequence *seq = muster_sequence_current(ctx);

	ctx->base += seq->numbers - 1;	/* its completion has the last of them */
	seq->numbers = 1;
	if (seq->coll_end && !flush(ctx, seq->cookie, seq->signature))
		return false;
	muster_sequence_forget(ctx);
	return true;
}

/* What was not fetched of a program in memory: one completion for all of it. */
static bool flush_program(struct context *ctx)
{
	const struct muster_signature unknown = { 0 };

	if (ctx->fetching && !flush(ctx, ctx->fetching->cookie, unknown))
		return false;
	muster_fetch_forget(ctx);
	return true;
}

static bool tell_owner(struct context *ctx)
{
	struct muster_cqe cqe = {
		.kind = MUSTER_CQE_CONTEXT,
		.status = ctx->failure.status,
		.number = ctx->failure.number,
		.culprit = ctx->failure.culprit,
		.by = ctx->failure.by,
		.other = ctx->difference.other,
		.signature = ctx->difference.ours,
	};

	return muster_context_complete(ctx, &cqe);
}

void muster_context_drain(struct context *ctx)
{
	muster_sequence_stop(ctx);
	muster_farewell_say(ctx);
	muster_messages_run(ctx);
	while (ctx->queued)
		if (!flush_sequence(ctx))
			return;
	if (!flush_program(ctx))
		return;
	if (ctx->context_told)
		return;
	ctx->context_told = tell_owner(ctx);
	ctx->cause_told |= ctx->context_told;
}
