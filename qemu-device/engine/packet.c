// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Packets on their way out: to a member of a context, as far as wire and budget
 * allow. On their way in they are inbound.c's.
 */
#include "internal.h"
#include "trace.h"

#include <errno.h>

static inline int emit(struct context *ctx, uint32_t incarnation, const struct muster_packet *packet,
		const void *payload)
{
	struct muster_engine *engine = ctx->engine;
	int ret = -EAGAIN;

	if (engine->budget) {
		engine->budget--;
		ret = engine->world.send(engine->opaque, incarnation, packet, payload);
	}
	if (!ret) {
		engine->counters->packets_out++;
		engine->counters->bytes_out += packet->length;
	} else if (ret == -EAGAIN) {
		ctx->stalled = true;
	}
	return ret;
}

int muster_packet_emit(struct context *ctx, uint32_t incarnation,
		       const struct muster_packet *packet, const void *payload)
{
	return emit(ctx, incarnation, packet, payload);
}

/* peer: the member's, if there is one. */
static inline int emit_to(struct context *ctx, uint32_t member, struct peer *peer,
			  const struct muster_packet *packet, const void *payload)
{
	const struct muster_engine *engine = ctx->engine;
	int ret = emit(ctx, ctx->members[member].incarnation, packet, payload);

	if (ret)
		return ret;
	if (peer)
		peer->sent++;
	if (muster_is_traced(engine))
		muster_trace_sent(engine, member, packet);
	return 0;
}

int muster_packet_try(struct context *ctx, uint32_t member, const struct muster_packet *packet,
		      const void *payload)
{
	return emit_to(ctx, member, muster_member_peer(ctx, member), packet, payload);
}

bool muster_packet_send(struct context *ctx, uint32_t member, const struct muster_packet *packet,
			const void *payload)
{
	struct peer *peer = muster_member_meet(ctx, member);
	int ret;

	if (!peer)
		return false;
	ret = emit_to(ctx, member, peer, packet, payload);
	if (ret && ret != -EAGAIN)
		muster_context_fail(ctx, MUSTER_STATUS_PEER_LOST, member, NULL);
	return !ret;
}
