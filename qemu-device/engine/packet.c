// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Packets on their way out: to a member of a context, as far as wire and budget
 * allow (packet.h). On their way in they are inbound.c's.
 */
#include "packet.h"
#include "trace.h"

int muster_packet_emit(struct context *ctx, uint32_t incarnation,
		       const struct muster_packet *packet, const void *payload)
{
	return muster_packet_pass(ctx, incarnation, packet, payload);
}

/* peer: the member's, if there is one. */
static void went(struct context *ctx, uint32_t member, struct peer *peer,
		 const struct muster_packet *packet)
{
	if (peer)
		peer->sent++;
	if (muster_is_traced(ctx->engine))
		muster_trace_sent(ctx->engine, member, packet);
}

int muster_packet_try(struct context *ctx, uint32_t member, const struct muster_packet *packet,
		      const void *payload)
{
	int ret = muster_packet_pass(ctx, muster_member(ctx, member)->incarnation, packet, payload);

	if (!ret)
		went(ctx, member, muster_member_peer(ctx, member), packet);
	return ret;
}

bool muster_packet_send(struct context *ctx, uint32_t member, const struct muster_packet *packet,
			const void *payload)
{
	struct peer *peer = muster_member_meet(ctx, member);

	if (!peer || !muster_packet_go(ctx, member, packet, payload))
		return false;
	went(ctx, member, peer, packet);
	return true;
}
