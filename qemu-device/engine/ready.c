// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The list of contexts that may be able to go on, each on it once. It lies at the
 * bottom: whatever changes something for a context puts it here, and nothing else
 * costs a step anything.
 */
#include "internal.h"

void muster_context_ready_last(struct context *ctx)
{
	struct muster_engine *engine = ctx->engine;

	ctx->listed = true;
	ctx->next_ready = NULL;
	ctx->prev_ready = engine->ready_last;
	engine->ready_last->next_ready = ctx;
	engine->ready_last = ctx;
}

void muster_context_unready_between(struct context *ctx)
{
	struct muster_engine *engine = ctx->engine;

	if (ctx->prev_ready)
		ctx->prev_ready->next_ready = ctx->next_ready;
	else
		engine->ready_first = ctx->next_ready;
	if (ctx->next_ready)
		ctx->next_ready->prev_ready = ctx->prev_ready;
	else
		engine->ready_last = ctx->prev_ready;
}
