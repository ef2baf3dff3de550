// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Those members that a context has exchanged something with: of them it knows more than who they
 * are. They come one by one and stay until the context goes, in an array that grows.
 */
#include "internal.h"

static bool peers_grow(struct context *ctx)
{
	uint32_t max = ctx->peers_max ? 2 * ctx->peers_max : 2;
	struct peer *peers = muster_pool_take(ctx->engine, max * sizeof(*peers));

	if (!peers)
		return false;
	if (ctx->nr_peers)
		memcpy(peers, ctx->peers, ctx->nr_peers * sizeof(*peers));
	muster_pool_give(ctx->engine, ctx->peers, ctx->peers_max * sizeof(*peers));
	ctx->peers = peers;
	ctx->peers_max = max;
	return true;
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
