// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Those members that a context has exchanged something with: of them it knows more than who they
 * are. They come one by one and stay until the context goes, in a table that grows; so does another
 * one, of what they wait to be told, while one of them does, and one of one-sided writes.
 */
#include "write.h"

enum { STEP_FIRST = 2 };

/* Room for so many: an eighth more at most, or one. */
static uint32_t room_for(uint32_t nr)
{
	uint32_t step = STEP_FIRST;

	while (8 * step < nr)
		step *= 2;
	return (nr + step - 1) / step * step;
}

static size_t asking_bytes(uint32_t nr_peers)
{
	return room_for(nr_peers) * sizeof(struct asking);
}

static struct asking *asking_new(struct context *ctx, uint32_t nr_peers)
{
	struct asking *asking = muster_pool_take(ctx->engine, asking_bytes(nr_peers));

	return asking ? memset(asking, 0, asking_bytes(nr_peers)) : NULL;
}

static size_t writes_bytes(uint32_t nr_peers)
{
	return sizeof(struct writes) + room_for(nr_peers) * sizeof(struct writing);
}

static struct writes *writes_new(struct context *ctx, uint32_t nr_peers)
{
	struct writes *writes = muster_pool_take(ctx->engine, writes_bytes(nr_peers));

	return writes ? memset(writes, 0, writes_bytes(nr_peers)) : NULL;
}

static void writes_give(struct context *ctx)
{
	muster_pool_give(ctx->engine, ctx->writes, writes_bytes(ctx->nr_peers));
	ctx->writes = NULL;
}

/* What else is kept of each moves with them. Where there is no memory all is as it was. */
static bool others_grow(struct context *ctx)
{
	const uint32_t nr = ctx->nr_peers;
	struct asking *asking = ctx->asking ? asking_new(ctx, nr + 1) : NULL;
	struct writes *writes = ctx->writes ? writes_new(ctx, nr + 1) : NULL;

	if ((ctx->asking && !asking) || (ctx->writes && !writes)) {
		muster_pool_give(ctx->engine, asking, asking_bytes(nr + 1));
		muster_pool_give(ctx->engine, writes, writes_bytes(nr + 1));
		return false;
	}
	if (asking)
		memcpy(asking, ctx->asking, nr * sizeof(*asking));
	if (writes)
		memcpy(writes, ctx->writes, sizeof(*writes) + nr * sizeof(writes->of[0]));
	muster_asking_give(ctx);
	writes_give(ctx);
	ctx->asking = asking;
	ctx->writes = writes;
	return true;
}

/* For one more. Where there is no memory all is as it was. */
static bool peers_grow(struct context *ctx)
{
	const size_t bytes = room_for(ctx->nr_peers + 1) * sizeof(*ctx->peers);
	struct muster_engine *engine = ctx->engine;
	struct peer *peers = engine->world.alloc(engine->opaque, bytes);

	if (!peers)
		return false;
	if (!others_grow(ctx)) {
		engine->world.free(engine->opaque, peers, bytes);
		return false;
	}
	if (ctx->peers) {
		memcpy(peers, ctx->peers, ctx->nr_peers * sizeof(*peers));
		engine->world.free(engine->opaque, ctx->peers,
				   room_for(ctx->nr_peers) * sizeof(*peers));
	}
	ctx->peers = peers;
	return true;
}

void muster_peers_give(struct context *ctx)
{
	struct muster_engine *engine = ctx->engine;

	muster_asking_give(ctx);
	writes_give(ctx);
	if (ctx->peers)
		engine->world.free(engine->opaque, ctx->peers,
				   room_for(ctx->nr_peers) * sizeof(*ctx->peers));
	ctx->peers = NULL;
}

bool muster_asking_take(struct context *ctx)
{
	if (!ctx->asking)
		ctx->asking = asking_new(ctx, ctx->nr_peers);
	if (!ctx->asking)
		muster_context_starve(ctx);
	return ctx->asking;
}

void muster_asking_give(struct context *ctx)
{
	muster_pool_give(ctx->engine, ctx->asking, asking_bytes(ctx->nr_peers));
	ctx->asking = NULL;
}

bool muster_writes_take(struct context *ctx)
{
	if (!ctx->writes)
		ctx->writes = writes_new(ctx, ctx->nr_peers);
	if (!ctx->writes)
		muster_context_starve(ctx);
	return ctx->writes;
}

struct peer *muster_member_first_met(struct context *ctx, uint32_t index)
{
	struct peer *peer;

	if (ctx->nr_peers == room_for(ctx->nr_peers) && !peers_grow(ctx)) {
		muster_context_starve(ctx);
		return NULL;
	}
	peer = &ctx->peers[ctx->nr_peers++];
	*peer = (struct peer){ .member = index, .base = ctx->base_unheard };
	ctx->peer_of[index] = ctx->nr_peers;
	return peer;
}
