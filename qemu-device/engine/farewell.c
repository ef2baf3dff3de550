// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Leaving, in good order and otherwise (Documentation/sequence.md, section 6). A
 * context that has failed tells every member why. One that closes says its final
 * base: sequences below it do not need that member any more, once all that it
 * had sent has come; one that does can never end, and fails. A closed context
 * stays, invisible to its owner, until the wire has taken what it has to say.
 */
#include "internal.h"

#include <errno.h>

static void prepare(const struct context *ctx, uint32_t member, struct muster_packet *packet)
{
	const struct peer *peer = muster_member_peer(ctx, member);

	if (!ctx->failure.status) {
		muster_packet_prepare(ctx, MUSTER_PACKET_CREDIT, member, packet);
		packet->flags = MUSTER_PACKET_COLL_END;
		packet->number = peer ? peer->sent : 0;
		return;
	}
	muster_packet_prepare(ctx, MUSTER_PACKET_ABORT, member, packet);
	packet->number = ctx->failure.status;
	packet->arg = ctx->failure.culprit;
	packet->signature = ctx->difference.other;
}

static bool leaves_silently(const struct context *ctx)
{
	const struct muster_engine *engine = ctx->engine;

	return engine->leaving && !ctx->failure.status && !ctx->told_next &&
	       engine->world.base_leave &&
	       engine->world.base_leave(engine->opaque, ctx->id, ctx->life, ctx->base);
}

/* A member that cannot be reached needs not be told. */
bool muster_farewell_say(struct context *ctx)
{
	struct muster_packet packet;
	const struct peer *peer;

	if (leaves_silently(ctx))
		return true;
	for (; ctx->told_next < ctx->nr_members; ctx->told_next++) {
		peer = muster_member_peer(ctx, ctx->told_next);
		if (ctx->told_next == ctx->self || (peer && peer->left))
			continue;
		prepare(ctx, ctx->told_next, &packet);
		if (muster_packet_try(ctx, ctx->told_next, &packet, NULL) == -EAGAIN)
			return false;
	}
	return true;
}

/* So many numbers have ended where the fewest have, of members that have left. */
static uint32_t left_base(const struct context *ctx)
{
	return muster_member_peer(ctx, ctx->left_first)->base;
}

bool muster_farewell_check(struct context *ctx)
{
	if (!ctx->has_left || (int32_t)(ctx->base - left_base(ctx)) < 0)
		return true;
	muster_context_fail(ctx, MUSTER_STATUS_PEER_LOST, ctx->left_first, NULL);
	return false;
}

static void left(struct context *ctx, struct peer *peer)
{
	if (peer->left)
		return;
	peer->left = true;
	if (!ctx->has_left || (int32_t)(peer->base - left_base(ctx)) < 0) {
		ctx->has_left = true;
		ctx->left_first = peer->member;
	}
	muster_copies_release(ctx, peer);
	muster_context_ready(ctx);
	if (ctx->running)
		muster_farewell_check(ctx);
}

void muster_farewell_receive(struct context *ctx, uint32_t index,
			     const struct muster_packet *packet)
{
	struct peer *peer = muster_member_peer(ctx, index);

	peer->received--;		/* was counted like any other */
	if (!peer->left)
		peer->received -= packet->number;
	left(ctx, peer);
}

/* Its farewell may have overtaken what went before, and that may be lost with its node. */
bool muster_farewell_complete(const struct peer *peer)
{
	return peer && peer->left &&
	       (peer->all_came || (int32_t)peer->received >= 0);
}

static bool base_noted(const struct context *ctx, uint32_t node, uint32_t *base)
{
	const struct muster_engine *engine = ctx->engine;

	return engine->world.base_left &&
	       engine->world.base_left(engine->opaque, node, ctx->id, ctx->life, base);
}

bool muster_farewell_is_noted(const struct context *ctx, uint32_t member)
{
	uint32_t base;

	return base_noted(ctx, muster_member(ctx, member)->node, &base);
}

/* What it has told by packets may be older. */
static void base_left(struct context *ctx, struct peer *peer, uint32_t node)
{
	uint32_t base;

	if (!peer->left && base_noted(ctx, node, &base) && (int32_t)(base - peer->base) > 0)
		peer->base = base;
}

static void leave(struct context *ctx, uint32_t node)
{
	struct peer *peer;
	uint32_t i;

	if (!ctx->failure.status && !ctx->closed && muster_tree_was_at(ctx, node, 0))
		muster_context_fail(ctx, MUSTER_STATUS_PEER_LOST, MUSTER_CULPRIT_NONE, NULL);
	if (!muster_member_may_be_at(ctx, node))
		return;
	for (i = 0; i < ctx->nr_members && !ctx->failure.status; i++)
		if (i != ctx->self && muster_member(ctx, i)->node == node) {
			peer = muster_member_meet(ctx, i);
			if (!peer)
				return;
			peer->all_came = true;
			base_left(ctx, peer, node);
			left(ctx, peer);
			muster_context_ready(ctx);	/* a write may have waited for just that */
		}
}

/* Those that are closed may have asked who has left so, and answers no more. */
void muster_engine_leave(struct muster_engine *engine)
{
	struct context *ctx = NULL;
	uint32_t bucket = 0;

	engine->leaving = true;
	while ((ctx = muster_context_next(engine, &bucket, ctx)))
		if (ctx->closed)
			muster_context_ready(ctx);
}

void muster_engine_peer_left(struct muster_engine *engine, uint32_t node)
{
	struct context *ctx = NULL;
	uint32_t bucket = 0;

	while ((ctx = muster_context_next(engine, &bucket, ctx)))
		leave(ctx, node);
}
