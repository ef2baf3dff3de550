/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A packet on its way to a member, as far as wire and budget allow: what packet.c does for
 * all, to become part of its callers.
 */
#ifndef MUSTER_ENGINE_PACKET_H
#define MUSTER_ENGINE_PACKET_H

#include "internal.h"

#include <errno.h>

static inline int muster_packet_pass(struct context *ctx, uint32_t incarnation,
				     const struct muster_packet *packet, const void *payload)
{
	struct muster_engine *engine = ctx->engine;
	int ret;

	if (!engine->budget) {
		ctx->stalled = true;
		return -EAGAIN;
	}
	engine->budget--;
	ret = engine->world.send(engine->opaque, incarnation, packet, payload);
	if (!ret) {
		engine->counters->packets_out++;
		engine->counters->bytes_out += packet->length;
	} else if (ret == -EAGAIN) {
		ctx->stalled = true;
		engine->counters->retries++;
	}
	return ret;
}

/* Whether it has gone; else the context is stalled, or has failed. It is neither counted nor recorded. */
static inline bool muster_packet_go(struct context *ctx, uint32_t member,
				    const struct muster_packet *packet, const void *payload)
{
	int ret = muster_packet_pass(ctx, muster_member(ctx, member)->incarnation, packet, payload);

	if (__builtin_expect(ret && ret != -EAGAIN, 0))
		muster_context_fail(ctx, MUSTER_STATUS_PEER_LOST, member, NULL);
	return !ret;
}

#endif /* MUSTER_ENGINE_PACKET_H */
