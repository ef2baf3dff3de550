// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Packets: the way out, and the way in to whom they are for. What comes in is
 * checked in three gates, each with a counter of its own: is it well formed
 * (decode.c), is it from a member of one of our contexts, and is it within the
 * window (landing.c). Only then does it change anything.
 */
#include "internal.h"

#include <errno.h>

void muster_packet_prepare(const struct context *ctx, uint8_t type, uint32_t member,
			   struct muster_packet *packet)
{
	*packet = ctx->header;
	packet->type = type;
	packet->dst_node = ctx->members[member].node;
	packet->dst_vp = ctx->members[member].vp;
	packet->base = ctx->base;
}

int muster_packet_try(struct context *ctx, uint32_t member, const struct muster_packet *packet,
		      const void *payload)
{
	struct muster_engine *engine = ctx->engine;
	int ret = -EAGAIN;

	if (engine->budget) {
		engine->budget--;
		ret = engine->world.send(engine->opaque, ctx->members[member].incarnation, packet,
					 payload);
	}
	if (!ret) {
		ctx->members[member].sent++;
		engine->counters.packets_out++;
		engine->counters.bytes_out += packet->length;
	} else if (ret == -EAGAIN) {
		ctx->stalled = true;
	}
	return ret;
}

bool muster_packet_send(struct context *ctx, uint32_t member, const struct muster_packet *packet,
			const void *payload)
{
	int ret = muster_packet_try(ctx, member, packet, payload);

	if (ret && ret != -EAGAIN)
		muster_context_fail(ctx, MUSTER_STATUS_PEER_LOST, member, NULL);
	return !ret;
}

/* A base that is newer than what we know may let a held send go. */
static void note_base(struct context *ctx, uint32_t member, uint32_t base)
{
	if ((int32_t)(base - ctx->members[member].base) <= 0)
		return;
	ctx->members[member].base = base;
	muster_context_ready(ctx);
}

static void receive_abort(struct context *ctx, const struct muster_packet *packet)
{
	uint32_t status = packet->number;

	if (status == MUSTER_STATUS_OK || status > MUSTER_STATUS_FLUSHED ||
	    (packet->arg >= ctx->nr_members && packet->arg != MUSTER_CULPRIT_NONE)) {
		ctx->engine->counters.drop_malformed++;
		return;
	}
	muster_context_fail(ctx, status, packet->arg, &packet->signature);
	ctx->told_next = ctx->nr_members;	/* who told us tells all */
}

static void dispatch(struct context *ctx, uint32_t member, const struct muster_packet *packet,
		     const void *payload)
{
	switch (packet->type) {
	case MUSTER_PACKET_DATA:
		muster_landing_data(ctx, member, packet, payload);
		break;
	case MUSTER_PACKET_RTS:
		muster_landing_rts(ctx, member, packet, payload);
		break;
	case MUSTER_PACKET_GRANT:
		muster_send_granted(ctx, member, packet);
		break;
	case MUSTER_PACKET_CREDIT:
		muster_credit_receive(ctx, member, packet);
		break;
	case MUSTER_PACKET_P2P:
		muster_message_receive(ctx, packet, payload);
		break;
	case MUSTER_PACKET_ABORT:
		receive_abort(ctx, packet);
		break;
	}
}

/* What it says of its sender must be so of the member that it names. */
static bool from_member(const struct context *ctx, const struct muster_packet *packet)
{
	const struct member *member;

	if (packet->src_member >= ctx->nr_members || packet->src_member == ctx->self)
		return false;
	member = &ctx->members[packet->src_member];
	return packet->src_node == member->node && packet->src_vp == member->vp &&
	       packet->incarnation == member->incarnation;
}

void muster_engine_receive(struct muster_engine *engine, const struct muster_packet *from,
			   const void *payload, uint32_t len)
{
	struct muster_packet packet = *from;
	struct context *ctx;
	uint32_t member;

	engine->counters.packets_in++;
	engine->counters.bytes_in += len;
	if (!muster_decode_packet(&packet, len)) {
		engine->counters.drop_malformed++;
		return;
	}
	ctx = muster_context_find(engine, packet.dst_vp, packet.job, packet.context);
	if (!ctx || packet.dst_node != engine->node || packet.job_key != ctx->job_key ||
	    packet.life != ctx->life || ctx->failure.status) {
		engine->counters.drop_stranger++;
		return;
	}
	member = packet.src_member;
	if (!from_member(ctx, &packet)) {
		engine->counters.drop_stranger++;
		return;
	}
	note_base(ctx, member, packet.base);
	ctx->members[member].received++;
	dispatch(ctx, member, &packet, payload);
}
