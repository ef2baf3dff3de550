// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The memory of the process that owns a VP, in place where the world can map it
 * and through the unit's scratch block where it cannot. A range that the world
 * refuses ends the context: whoever posted it is the culprit.
 */
#include "internal.h"

#include <string.h>

#include "arith.h"

static void refuse(struct context *ctx)
{
	muster_context_fail(ctx, MUSTER_STATUS_MEMORY, ctx->self, NULL);
}

/* At most MUSTER_MTU bytes; valid until the next call. NULL: the context has failed. */
const void *muster_memory_source(struct context *ctx, uint32_t key, uint64_t addr, uint32_t len)
{
	struct muster_engine *engine = ctx->engine;
	const void *in_place = muster_memory_map(ctx, key, addr, len, false);
	void *scratch = muster_unit(ctx)->scratch;

	engine->counters->dma_read_bytes += len;
	if (in_place)
		return in_place;
	if (!len || !engine->world.dma_read(engine->opaque, ctx->vp, key, addr, scratch, len))
		return scratch;
	refuse(ctx);
	return NULL;
}

uint64_t muster_memory_life(const struct context *ctx, uint32_t key)
{
	const struct muster_engine *engine = ctx->engine;

	return engine->world.key_life(engine->opaque, ctx->vp, key);
}

bool muster_memory_write(struct context *ctx, uint32_t key, uint64_t addr, const void *from,
			 uint32_t len)
{
	struct muster_engine *engine = ctx->engine;
	void *in_place = muster_memory_map(ctx, key, addr, len, true);

	engine->counters->dma_write_bytes += len;
	if (in_place)
		muster_arith_move(in_place, from, len);
	else if (len && engine->world.dma_write(engine->opaque, ctx->vp, key, addr, from, len))
		refuse(ctx);
	return !ctx->failure.status;
}
