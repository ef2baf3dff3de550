// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Those members that a context has exchanged something with: of them it knows more than who they
 * are. They come one by one and stay until the context goes, in a table that grows; so does another
 * one, of what they wait to be told, while one of them does.
 */
#include "internal.h"

enum { PEERS_FIRST = 4 };	/* the least that the pool gives */

/* In place of a table of all peers one that has more; NULL: there is no memory. */
static void *grown(struct context *ctx, const void *old, uint32_t max, size_t each)
{
	uint8_t *table = muster_pool_take(ctx->engine, max * each);

	if (!table)
		return NULL;
	memset(table, 0, max * each);
	if (old)
		memcpy(table, old, ctx->peers_max * each);
	return table;
}

static bool peers_grow(struct context *ctx)
{
	const uint32_t max = ctx->peers_max ? 2 * ctx->peers_max : PEERS_FIRST;
	struct peer *peers = grown(ctx, ctx->peers, max, sizeof(*peers));
	struct asking *asking = NULL;

	if (peers && ctx->asking)
		asking = grown(ctx, ctx->asking, max, sizeof(*asking));
	if (!peers || (ctx->asking && !asking)) {
		muster_pool_give(ctx->engine, peers, max * sizeof(*peers));
		return false;
	}
	muster_pool_give(ctx->engine, ctx->peers, ctx->peers_max * sizeof(*peers));
	muster_asking_give(ctx);
	ctx->peers = peers;
	ctx->asking = asking;
	ctx->peers_max = max;
	return true;
}

bool muster_asking_take(struct context *ctx)
{
	if (!ctx->asking)
		ctx->asking = grown(ctx, NULL, ctx->peers_max, sizeof(*ctx->asking));
	if (!ctx->asking)
		muster_context_starve(ctx);
	return ctx->asking;
}

void muster_asking_give(struct context *ctx)
{
	muster_pool_give(ctx->engine, ctx->asking, ctx->peers_max * sizeof(*ctx->asking));
	ctx->asking = NULL;
}

struct peer *muster_member_first_met(struct context *ctx, uint32_t index)
{
	struct peer *peer;

	if (ctx->nr_peers == ctx->peers_max && !peers_grow(ctx)) {
		muster_context_starve(ctx);
		return NULL;
	}
	peer = &ctx->peers[ctx->nr_peers++];
	*peer = (struct peer){ .member = index, .base = ctx->base_unheard };
	ctx->peer_of[index] = ctx->nr_peers;
	return peer;
}
