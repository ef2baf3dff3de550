// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The window between members, both ends of it (Documentation/sequence.md,
 * section 3): how far a send may run ahead, asking for news of a member's base,
 * and answering those who asked ours. Who is owed an answer is on a list through
 * the peers, so nothing here grows.
 */
#include "credit.h"

#include <errno.h>

/* A send is held back: have the member say when it has ended the number in the way. */
bool muster_credit_ask(struct context *ctx, uint32_t member)
{
	struct muster_packet packet;

	muster_packet_prepare(ctx, MUSTER_PACKET_CREDIT, member, &packet);
	packet.flags = MUSTER_PACKET_CREDIT_WANTED;
	packet.number = ctx->base - (uint32_t)ctx->engine->window;
	return muster_packet_send(ctx, member, &packet, NULL);
}

static void list(struct context *ctx, uint32_t index)
{
	struct asking *asking = &ctx->asking[index];

	if (asking->listed)
		return;
	asking->listed = true;
	asking->next = ctx->asking_first;
	ctx->asking_first = index + 1;
}

/* A message of a number that has not ended asks. */
void muster_credit_note(struct context *ctx, uint32_t member, uint32_t number)
{
	uint32_t index = muster_member_peer(ctx, member) - ctx->peers;

	if (!muster_asking_take(ctx))
		return;
	ctx->asking[index].wanted |= 1u << number % MUSTER_WINDOW;
	list(ctx, index);
}

/*
 * By a CREDIT. Who has closed asks for each number of which it keeps copies, in any order, so all that
 * lie within the window are kept; what lies beyond is asked for by who is so far ahead, one at a time.
 */
static void asked(struct context *ctx, uint32_t index, uint32_t number)
{
	int32_t ahead = (int32_t)(number - ctx->base);
	struct asking *asking;

	if (!muster_asking_take(ctx))
		return;
	asking = &ctx->asking[index];
	if (ahead < 0) {
		asking->due = true;
	} else if (ahead < MUSTER_WINDOW) {
		asking->wanted |= 1u << number % MUSTER_WINDOW;
	} else {
		asking->asks = true;
		asking->asked = number;
	}
	list(ctx, index);
	muster_context_ready(ctx);
}

void muster_credit_receive(struct context *ctx, uint32_t member,
			   const struct muster_packet *packet)
{
	if (packet->flags & MUSTER_PACKET_COLL_END)
		muster_farewell_receive(ctx, member, packet);
	if (packet->flags & MUSTER_PACKET_CREDIT_WANTED)
		asked(ctx, muster_member_peer(ctx, member) - ctx->peers, packet->number);
}

/*
 * Numbers are compared by their difference, which has a sign up to 2^31 only. What a
 * member told long ago is taken for a newer base, as far out of the window as before:
 * one member after every so many numbers, so each in time.
 */
static void keep_comparable(struct context *ctx)
{
	uint32_t oldest = ctx->base - BASE_AGE_MAX;
	struct peer *peer;

	if ((int32_t)(oldest - ctx->base_unheard) > 0)
		ctx->base_unheard = oldest;
	if (!ctx->nr_peers)
		return;
	peer = &ctx->peers[ctx->base / BASE_AGE_EACH % ctx->nr_peers];
	if (!peer->left && (int32_t)(oldest - peer->base) > 0)
		peer->base = oldest;
}

/* Base has just moved past number: for who asks, and now and then in any case. */
void muster_credit_ended(struct context *ctx, uint32_t number)
{
	uint8_t bit = 1u << number % MUSTER_WINDOW;
	struct asking *asking;
	uint32_t index;

	if (ctx->base % BASE_AGE_EACH == 0)
		keep_comparable(ctx);
	for (index = ctx->asking_first; index; index = asking->next) {
		asking = &ctx->asking[index - 1];
		if (asking->wanted & bit) {
			asking->wanted &= ~bit;
			asking->due = true;
		}
		if (asking->asks && (int32_t)(asking->asked - ctx->base) < 0) {
			asking->asks = false;
			asking->due = true;
		}
	}
}

bool muster_engine_owes(const struct muster_engine *engine, uint16_t vp, uint8_t job,
			uint32_t context)
{
	const struct context *ctx = muster_context_find(engine, vp, job, context);
	uint32_t index = ctx ? ctx->asking_first : 0;

	while (index && !ctx->asking[index - 1].due)
		index = ctx->asking[index - 1].next;
	return index;
}

/* False: the wire is full. */
static bool answer(struct context *ctx, uint32_t member)
{
	struct muster_packet packet;
	int ret;

	muster_packet_prepare(ctx, MUSTER_PACKET_CREDIT, member, &packet);
	ret = muster_packet_try(ctx, member, &packet, NULL);
	ctx->engine->counters->credits += !ret;
	return ret != -EAGAIN;
}

/*
 * Answer whom an answer is due; who still waits stays on the list. A member that
 * cannot be reached may have ended what we have ended, and left: it is not lost.
 */
void muster_credit_run(struct context *ctx)
{
	uint16_t *link = &ctx->asking_first;

	while (*link) {
		struct asking *asking = &ctx->asking[*link - 1];

		if (asking->due && !answer(ctx, ctx->peers[*link - 1].member))
			return;
		asking->due = false;
		if (asking->asks || asking->wanted) {
			link = &asking->next;
		} else {
			asking->listed = false;
			*link = asking->next;
		}
	}
	if (!ctx->asking_first)
		muster_asking_give(ctx);
}
