// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The list of contexts that may be able to go on, each on it once. It lies at the
 * bottom: whatever changes something for a context puts it here, and nothing else
 * costs a step anything.
 */
#include "internal.h"

void muster_context_ready(struct context *ctx)
{
	struct muster_engine *engine = ctx->engine;

	if (ctx->listed)
		return;
	ctx->listed = true;
	ctx->next_ready = NULL;
	ctx->prev_ready = engine->ready_last;
	if (engine->ready_last)
		engine->ready_last->next_ready = ctx;
	else
		engine->ready_first = ctx;
	engine->ready_last = ctx;
}

static inline void unlist(struct context *ctx)
{
	struct muster_engine *engine = ctx->engine;

	ctx->listed = false;
	if (engine->ready_first == engine->ready_last) {	/* mostly */
		engine->ready_first = engine->ready_last = NULL;
		return;
	}
	if (ctx->prev_ready)
		ctx->prev_ready->next_ready = ctx->next_ready;
	else
		engine->ready_first = ctx->next_ready;
	if (ctx->next_ready)
		ctx->next_ready->prev_ready = ctx->prev_ready;
	else
		engine->ready_last = ctx->prev_ready;
}

void muster_context_unready(struct context *ctx)
{
	if (ctx->listed)
		unlist(ctx);
}

struct context *muster_ready_take(struct muster_engine *engine)
{
	struct context *ctx = engine->ready_first;

	if (ctx)
		unlist(ctx);
	return ctx;
}
