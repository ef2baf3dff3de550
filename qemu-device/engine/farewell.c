// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Leaving in good order (Documentation/sequence.md, section 6). A member that
 * closes its context says its final base. Sequences below it do not need that
 * member any more; one that does can never end, and fails. Nothing is repeated:
 * who could not be told, because the wire was full, finds out from the wire.
 */
#include "internal.h"

void muster_farewell_say(struct context *ctx)
{
	struct muster_engine *engine = ctx->engine;
	struct muster_packet packet;
	uint32_t i;

	for (i = 0; i < ctx->nr_members && !ctx->failure.status; i++) {
		if (i == ctx->self || ctx->members[i].left)
			continue;
		muster_packet_prepare(ctx, MUSTER_PACKET_CREDIT, i, &packet);
		packet.flags = MUSTER_PACKET_COLL_END;
		engine->counters.packets_out += !engine->world.send(engine->opaque, &packet, NULL);
	}
}

bool muster_farewell_check(struct context *ctx)
{
	uint32_t i;

	for (i = 0; ctx->nr_left && i < ctx->nr_members; i++) {
		const struct member *member = &ctx->members[i];

		if (member->left && (int32_t)(ctx->base - member->base) >= 0) {
			muster_context_fail(ctx, MUSTER_STATUS_PEER_LOST, i, 0);
			return false;
		}
	}
	return true;
}

void muster_farewell_receive(struct context *ctx, uint32_t index)
{
	struct member *member = &ctx->members[index];

	if (member->left)
		return;
	member->left = true;
	ctx->nr_left++;
	if (ctx->running)
		muster_farewell_check(ctx);
}

static void leave(struct context *ctx, uint32_t node)
{
	uint32_t i;

	for (i = 0; i < ctx->nr_members && !ctx->failure.status; i++)
		if (i != ctx->self && ctx->members[i].node == node)
			muster_farewell_receive(ctx, i);
}

void muster_engine_peer_left(struct muster_engine *engine, uint32_t node)
{
	uint32_t i, c;

	for (i = 0; i < engine->nr_units; i++)
		for (c = 0; c < MUSTER_UNIT_CONTEXTS_MAX; c++)
			if (engine->units[i].contexts[c])
				leave(engine->units[i].contexts[c], node);
}
