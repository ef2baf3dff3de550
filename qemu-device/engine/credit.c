// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The window between members, both ends of it (Documentation/sequence.md,
 * section 3): how far a send may run ahead, asking for news of a member's base,
 * and answering those who asked ours. Who is owed an answer is on a list through
 * the member table, so nothing here grows.
 */
#include "internal.h"

#include <errno.h>

bool muster_credit_allows(const struct context *ctx, uint32_t member)
{
	return (int32_t)(ctx->base - ctx->members[member].base) < MUSTER_WINDOW;
}

bool muster_credit_wanted(const struct context *ctx, uint32_t member)
{
	return (int32_t)(ctx->base - ctx->members[member].base) >= MUSTER_WINDOW / 2;
}

/* A send is held back: have the member say when it has ended the number in the way. */
bool muster_credit_ask(struct context *ctx, uint32_t member)
{
	struct muster_packet packet;

	muster_packet_prepare(ctx, MUSTER_PACKET_CREDIT, member, &packet);
	packet.flags = MUSTER_PACKET_CREDIT_WANTED;
	packet.number = ctx->base - MUSTER_WINDOW;
	return muster_packet_send(ctx, member, &packet, NULL);
}

static void list(struct context *ctx, uint32_t index)
{
	struct member *member = &ctx->members[index];

	if (member->listed)
		return;
	member->listed = true;
	member->next_asking = ctx->asking_first;
	ctx->asking_first = index + 1;
}

void muster_credit_receive(struct context *ctx, uint32_t index,
			   const struct muster_packet *packet)
{
	struct member *member = &ctx->members[index];

	if (packet->flags & MUSTER_PACKET_COLL_END)
		muster_farewell_receive(ctx, index, packet);
	if (!(packet->flags & MUSTER_PACKET_CREDIT_WANTED))
		return;
	if ((int32_t)(packet->number - ctx->base) < 0) {
		member->due = true;
	} else {
		member->asks = true;
		member->asked = packet->number;
	}
	list(ctx, index);
	muster_context_ready(ctx);
}

/*
 * Numbers are compared by their difference, which has a sign up to 2^31 only. What a
 * member told long ago is taken for a newer base, as far out of the window as before:
 * one member for each number that ends, so every one in time.
 */
static void keep_comparable(struct context *ctx)
{
	struct member *member = &ctx->members[ctx->base % ctx->nr_members];
	uint32_t oldest = ctx->base - BASE_AGE_MAX;

	if (!member->left && (int32_t)(oldest - member->base) > 0)
		member->base = oldest;
}

/* Called when base has just moved past number. */
void muster_credit_ended(struct context *ctx, uint32_t number)
{
	struct arrivals *arrivals = &ctx->arrivals[number % MUSTER_WINDOW];
	uint32_t slot, index;

	keep_comparable(ctx);
	while (arrivals->credit_wanted) {
		slot = __builtin_ctz(arrivals->credit_wanted);
		arrivals->credit_wanted &= arrivals->credit_wanted - 1;
		ctx->members[arrivals->writer[slot]].due = true;
		list(ctx, arrivals->writer[slot]);
	}
	for (index = ctx->asking_first; index; index = ctx->members[index - 1].next_asking) {
		struct member *member = &ctx->members[index - 1];

		if (member->asks && (int32_t)(member->asked - ctx->base) < 0) {
			member->asks = false;
			member->due = true;
		}
	}
}

/*
 * Answer whom an answer is due; who still waits stays on the list. A member that
 * cannot be reached may have ended what we have ended, and left: it is not lost.
 */
void muster_credit_run(struct context *ctx)
{
	struct muster_packet packet;
	uint32_t *link = &ctx->asking_first;
	int ret;

	while (*link) {
		uint32_t index = *link - 1;
		struct member *member = &ctx->members[index];

		if (member->due) {
			muster_packet_prepare(ctx, MUSTER_PACKET_CREDIT, index, &packet);
			ret = muster_packet_try(ctx, index, &packet, NULL);
			if (ret == -EAGAIN)
				return;
			ctx->engine->counters.credits += !ret;
			member->due = false;
		}
		if (member->asks) {
			link = &member->next_asking;
		} else {
			member->listed = false;
			*link = member->next_asking;
		}
	}
}
