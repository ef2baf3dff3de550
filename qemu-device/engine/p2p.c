// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Point to point (Documentation/sequence.md, section 7): a descriptor without C
 * is one packet to a member's receive ring. Messages leave in the order in which
 * they were posted; the list of those that wait for the wire or for room in the
 * completion queue is the only thing kept.
 */
#include "internal.h"

#include <errno.h>

void muster_message_forget(struct context *ctx)
{
	struct message *message = ctx->messages_first;

	ctx->messages_first = message->next;
	if (!message->next)
		ctx->messages_last = NULL;
	ctx->nr_messages--;
	muster_pool_give(ctx->engine, message, sizeof(*message));
}

int muster_message_post(struct context *ctx, const struct muster_desc *desc)
{
	struct message *message;
	int ret;

	if (ctx->nr_messages == MUSTER_SEQ_QUEUE_MAX)
		return -EAGAIN;
	message = muster_pool_take(ctx->engine, sizeof(*message));
	if (!message)
		return -ENOMEM;
	ret = muster_decode_message(ctx, desc, message);
	if (ret) {
		muster_pool_give(ctx->engine, message, sizeof(*message));
		return ret;
	}
	message->next = NULL;
	if (ctx->messages_last)
		ctx->messages_last->next = message;
	else
		ctx->messages_first = message;
	ctx->messages_last = message;
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

void muster_messages_run(struct context *ctx)
{
	for (; ctx->nr_messages; muster_message_forget(ctx)) {
		struct message *message = ctx->messages_first;

		if (!message->left)
			message->left = leave(ctx, message);
		if (!message->left || !complete(ctx, message, MUSTER_STATUS_OK))
			return;
	}
}

/* The context has failed: what has not left never will. */
void muster_messages_flush(struct context *ctx)
{
	for (; ctx->nr_messages; muster_message_forget(ctx)) {
		const struct message *message = ctx->messages_first;

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
