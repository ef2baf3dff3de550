// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Point to point (Documentation/sequence.md, section 7): a descriptor without C
 * is one packet to a member's receive ring. One that waits for the wire holds up no
 * other; the list of those that wait, for it or for room in the completion queue, is
 * the only thing kept. A context that has failed still carries what is inline: its
 * members' libraries may have to speak of other contexts. One-sided writes (write.c) are on
 * the same list, until they have been answered.
 */
#include "write.h"

#include <errno.h>

static void forget(struct context *ctx, struct message **place)
{
	struct message *message = *place;

	*place = message->next;
	muster_pool_give(ctx->engine, message, sizeof(*message));
}

void muster_message_forget(struct context *ctx)
{
	forget(ctx, &ctx->messages);
}

int muster_message_post(struct context *ctx, const struct muster_desc *desc)
{
	struct message **last = &ctx->messages, *message;
	uint32_t nr = 0;
	int ret;

	for (; *last; last = &(*last)->next)
		nr++;
	if (nr == MUSTER_SEQ_QUEUE_MAX)
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
	*last = message;
	muster_context_ready(ctx);
	return 0;
}

/* Return: 0; -EAGAIN: the wire has no room; or it never will leave. */
static int send(struct context *ctx, const struct message *message)
{
	struct muster_packet packet;
	const void *data = message->data;

	if (message->load_key) {
		if (ctx->failure.status)
			return -ECANCELED;
		data = muster_memory_source(ctx, message->load_key, message->load_addr,
					    message->length);
	}
	if (!data || !muster_member_meet(ctx, message->member_dest))
		return -ECANCELED;
	muster_packet_prepare(ctx, MUSTER_PACKET_P2P, message->member_dest, &packet);
	packet.seq_id = message->slot;
	packet.stage = message->stage;
	packet.signature = message->signature;
	packet.number = message->cookie;
	packet.pulse = message->cookie >> 32;
	packet.total = message->length;
	packet.length = message->length;
	return muster_packet_try(ctx, message->member_dest, &packet, data);
}

static bool has_left(const struct context *ctx, uint32_t member)
{
	const struct peer *peer = muster_member_peer(ctx, member);

	return peer && peer->left;
}

/* Return: 0; -EAGAIN: packets are to go or to be answered yet; or they never will. */
static int send_write(struct context *ctx, struct outgoing *out)
{
	int ret = ctx->failure.status ? -ECANCELED : muster_write_go_on(ctx, out);

	if (ret)
		return ret;
	if (muster_write_is_over(out))
		return 0;
	return muster_write_is_hopeless(ctx, out) ? -ECANCELED : -EAGAIN;
}

/* Whether it waits no longer. Who has left in good order wants nothing more, and is not lost. */
static bool leave(struct context *ctx, struct message *message)
{
	int ret = message->writes ? send_write(ctx, &message->out) : send(ctx, message);

	if (ret == -EAGAIN)
		return false;
	if (ret == -EHOSTUNREACH && !has_left(ctx, message->member_dest))
		muster_context_fail(ctx, MUSTER_STATUS_PEER_LOST, message->member_dest, NULL);
	message->status = ret ? MUSTER_STATUS_FLUSHED : message->writes && message->out.refused ?
			  MUSTER_STATUS_MEMORY : MUSTER_STATUS_OK;
	return true;
}

/* Who refused it; of what was flushed, whoever the context failed by. */
static uint32_t culprit_of(const struct context *ctx, const struct message *message)
{
	if (!message->status)
		return MUSTER_CULPRIT_NONE;
	return message->status == MUSTER_STATUS_FLUSHED && ctx->failure.status ?
	       ctx->failure.culprit : message->member_dest;
}

static bool complete(struct context *ctx, const struct message *message)
{
	struct muster_cqe cqe = {
		.kind = MUSTER_CQE_SEND,
		.status = message->status,
		.cookie = message->cookie,
		.number = message->member_dest,
		.culprit = culprit_of(ctx, message),
		.signature = message->signature,
	};

	/* That it was refused its poster hears in any case. */
	return (!message->completes && message->status != MUSTER_STATUS_MEMORY) ||
	       muster_context_complete(ctx, &cqe);
}

void muster_messages_run(struct context *ctx)
{
	struct message **place = &ctx->messages, *message;

	while ((message = *place)) {
		if (!message->left)
			message->left = leave(ctx, message);
		if (message->left && complete(ctx, message)) {
			forget(ctx, place);
			continue;
		}
		place = &message->next;
	}
}

void muster_message_receive(struct context *ctx, const struct muster_packet *packet,
			    const void *payload)
{
	struct muster_engine *engine = ctx->engine;

	if (engine->world.deliver(engine->opaque, ctx->vp, packet, payload))
		engine->counters->drop_ring_full++;
}
