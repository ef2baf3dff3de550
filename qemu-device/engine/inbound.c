// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Packets on their way in, to whom they are for. What comes is checked in three
 * gates, each with a counter of its own: is it well formed (decode.c), is it from a
 * member of one of our contexts, and is it within the window (landing.c). Only then
 * does it change anything.
 */
#include "credit.h"
#include "trace.h"
#include "write.h"

/* A context that is closed has nothing else to wait for. */
static bool concerns_copies(const struct muster_packet *packet)
{
	return packet->type == MUSTER_PACKET_GRANT || packet->type == MUSTER_PACKET_CREDIT ||
	       packet->type == MUSTER_PACKET_ABORT;
}

static void receive_abort(struct context *ctx, const struct muster_packet *packet)
{
	uint32_t status = packet->number;

	if (ctx->closed) {
		muster_copies_abandon(ctx);
		muster_context_ready(ctx);
		return;
	}
	if (status == MUSTER_STATUS_OK || status > MUSTER_STATUS_STARVED ||
	    (packet->arg >= ctx->nr_members && packet->arg != MUSTER_CULPRIT_NONE)) {
		ctx->engine->counters->drop_malformed++;
		return;
	}
	muster_context_fail(ctx, status, packet->arg, &packet->signature);
	ctx->failure.by = packet->group ? MUSTER_BY_NONE : (uint16_t)packet->src_member;
	ctx->told_next = ctx->nr_members;	/* who told us tells all */
}

static inline void dispatch(struct context *ctx, uint32_t member, const struct muster_packet *packet,
		     const void *payload)
{
	if (packet->type == MUSTER_PACKET_DATA) {
		muster_landing_data(ctx, member, packet, payload);
		return;
	}
	switch (packet->type) {
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
	case MUSTER_PACKET_WRITE:
		muster_write_receive(ctx, member, packet, payload);
		break;
	case MUSTER_PACKET_WRITTEN:
		muster_write_answered(ctx, member, packet);
		break;
	case MUSTER_PACKET_ABORT:
		receive_abort(ctx, packet);
		break;
	}
}

/* What it says of its sender must be so of the member that it names. */
static inline bool from_member(const struct context *ctx, const struct muster_packet *packet)
{
	const struct member *member;

	if (packet->src_member >= ctx->nr_members || packet->src_member == ctx->self)
		return false;
	member = muster_member(ctx, packet->src_member);
	return packet->job_key == ctx->job_key && packet->src_node == member->node && packet->src_vp == member->vp &&
	       packet->incarnation == member->incarnation;
}

/* An ABORT goes to all members of the group, who are those of the context. */
static void from_tree(struct context *ctx, const struct muster_packet *packet,
		      const void *payload)
{
	if (packet->type == MUSTER_PACKET_ABORT)
		receive_abort(ctx, packet);
	else
		muster_landing_result(ctx, packet, payload);
}

static inline __attribute__((always_inline)) void from_peer(struct context *ctx,
							     const struct muster_packet *packet,
							     const void *payload)
{
	struct peer *peer = muster_member_meet(ctx, packet->src_member);

	if (!peer)
		return;
	muster_credit_hear(ctx, peer, packet->base);
	peer->received++;
	if (peer->left)
		muster_context_ready(ctx);	/* it may be the last, and a write never answered */
	dispatch(ctx, packet->src_member, packet, payload);
}

/* ctx: whose it seems to be, or NULL. packet: our own copy, in which nobody else writes. */
static inline __attribute__((always_inline)) void receive(struct muster_engine *engine,
							   struct context *ctx,
							   struct muster_packet *packet,
							   const void *payload, uint32_t len,
							   bool recorded)
{
	engine->counters->packets_in++;
	engine->counters->bytes_in += len;
	if (!muster_decode_packet(packet, len)) {
		engine->counters->drop_malformed++;
		return;
	}
	if (!ctx || packet->dst_node != engine->node ||
	    !(packet->group ? muster_tree_says(ctx, packet) : from_member(ctx, packet)) ||
	    (ctx->failure.status && packet->type != MUSTER_PACKET_P2P) ||
	    (ctx->closed && !concerns_copies(packet))) {
		engine->counters->drop_stranger++;
		return;
	}
	ctx->calm = false;
	if (recorded)
		engine->taken_at_once = false;
	if (packet->group)
		from_tree(ctx, packet, payload);
	else
		from_peer(ctx, packet, payload);
	if (!recorded)
		return;
	if (packet->group)
		packet->src_member = MUSTER_CULPRIT_NONE;	/* it is of all */
	muster_trace_received(engine, packet);
}

/* Whose it is, if the first of its bucket is the one. */
static const struct context *expect_context(const struct muster_engine *engine,
					    const struct muster_packet *packet)
{
	const struct context *ctx = muster_context_probable(engine, packet->dst_vp, packet->job,
							    packet->context);

	if (!ctx)
		return NULL;
	__builtin_prefetch(ctx);
	__builtin_prefetch(&ctx->pulse_next);
	__builtin_prefetch(ctx->peer_of);
	return ctx;
}

static void expect_entry(const struct context *ctx, const struct muster_packet *packet)
{
	__builtin_prefetch(ctx->peers);
	muster_entry_expect(ctx, packet->number, packet->pulse, packet->seq_id);
}

/* Of all together first what leads to the rest: each alone would be waited for. */
void muster_engine_expect(const struct muster_engine *engine,
			  const struct muster_packet *const *packets, uint32_t nr)
{
	const struct context *contexts[MUSTER_ENGINE_EXPECT_MAX];
	uint32_t i;

	if (nr > MUSTER_ENGINE_EXPECT_MAX)
		nr = MUSTER_ENGINE_EXPECT_MAX;
	for (i = 0; i < nr; i++)
		contexts[i] = expect_context(engine, packets[i]);
	for (i = 0; i < nr; i++)
		if (contexts[i])
			expect_entry(contexts[i], packets[i]);
}

/* The copy is what is looked at from then on: where the packet lies its sender may write still. */
static inline void copy_once(struct muster_packet *packet, const struct muster_packet *from)
{
	*packet = *from;
	__asm__ volatile("" : "+m"(*packet) : : "memory");
}

void muster_engine_receive(struct muster_engine *engine, const struct muster_packet *from,
			   const void *payload, uint32_t len)
{
	struct muster_packet packet;
	struct context *ctx;

	copy_once(&packet, from);
	ctx = muster_context_of(engine, &packet);
	if (!ctx || !ctx->awaited || !muster_predict_take(ctx, &packet, payload, len))
		receive(engine, ctx, &packet, payload, len, false);
}

void muster_engine_receive_recorded(struct muster_engine *engine, const struct muster_packet *from,
				    const void *payload, uint32_t len)
{
	struct muster_packet packet;
	struct context *ctx;

	copy_once(&packet, from);
	ctx = muster_context_of(engine, &packet);
	if (!ctx || !ctx->awaited || !muster_predict_take(ctx, &packet, payload, len)) {
		receive(engine, ctx, &packet, payload, len, true);
		return;
	}
	engine->taken_at_once = true;
	muster_trace_received(engine, &packet);
}
