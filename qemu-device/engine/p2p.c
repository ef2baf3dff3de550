// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Point to point (Documentation/sequence.md, section 7): a descriptor without C
 * is one packet to a member's receive ring. Messages leave in the order in which
 * they were posted; the ring of those that wait for the wire or for room in the
 * completion queue is the only thing kept.
 */
#include "internal.h"

#include <errno.h>

static struct message *oldest(struct context *ctx)
{
	return &ctx->messages[ctx->messages_first % MUSTER_SEQ_QUEUE_MAX];
}

int muster_message_post(struct context *ctx, const struct muster_desc *desc)
{
	uint32_t at = ctx->messages_first + ctx->nr_messages;
	int ret;

	if (ctx->nr_messages == MUSTER_SEQ_QUEUE_MAX)
		return -EAGAIN;
	ret = muster_decode_message(ctx, desc, &ctx->messages[at % MUSTER_SEQ_QUEUE_MAX]);
	if (ret)
		return ret;
	ctx->nr_messages++;
	muster_context_ready(ctx);
	return 0;
}

static bool leave(struct context *ctx, const struct message *message)
{
	struct muster_packet packet;
	const void *data = message->data;

	if (message->load_key)
		data = muster_memory_source(ctx, message->load_key, message->load_addr,
					    message->length);
	if (!data)
		return false;
	muster_packet_prepare(ctx, MUSTER_PACKET_P2P, message->member_dest, &packet);
	packet.seq_id = message->slot;
	packet.stage = message->stage;
	packet.signature = message->signature;
	packet.number = message->cookie;
	packet.pulse = message->cookie >> 32;
	packet.total = message->length;
	packet.length = message->length;
	return muster_packet_send(ctx, message->member_dest, &packet, data);
}

static bool complete(struct context *ctx, const struct message *message, uint8_t status)
{
	struct muster_cqe cqe = {
		.kind = MUSTER_CQE_SEND,
		.status = status,
		.cookie = message->cookie,
		.culprit = status ? ctx->failure.culprit : MUSTER_CULPRIT_NONE,
		.signature = message->signature,
	};

	return !message->completes || muster_context_complete(ctx, &cqe);
}

static void forget(struct context *ctx)
{
	ctx->messages_first++;
	ctx->nr_messages--;
}

void muster_messages_run(struct context *ctx)
{
	for (; ctx->nr_messages; forget(ctx)) {
		struct message *message = oldest(ctx);

		if (!message->left)
			message->left = leave(ctx, message);
		if (!message->left || !complete(ctx, message, MUSTER_STATUS_OK))
			return;
	}
}

/* The context has failed: what has not left never will. */
void muster_messages_flush(struct context *ctx)
{
	for (; ctx->nr_messages; forget(ctx)) {
		const struct message *message = oldest(ctx);

		if (!complete(ctx, message, message->left ? MUSTER_STATUS_OK :
							    MUSTER_STATUS_FLUSHED))
			return;
	}
}

void muster_message_receive(struct context *ctx, const struct muster_packet *packet,
			    const void *payload)
{
	struct muster_engine *engine = ctx->engine;

	if (engine->world.deliver(engine->opaque, ctx->vp, packet, payload))
		engine->counters.drop_ring_full++;
}
