/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How far a member's running number is known to be, and so how far ahead of it one may send:
 * what credit.c keeps, and what those who send or hear of a newer base ask of it.
 */
#ifndef MUSTER_ENGINE_CREDIT_H
#define MUSTER_ENGINE_CREDIT_H

#include "internal.h"

void muster_credit_receive(struct context *ctx, uint32_t member,
			   const struct muster_packet *packet);
void muster_credit_note(struct context *ctx, uint32_t member, uint32_t number);
void muster_credit_ended(struct context *ctx, uint32_t number);
void muster_credit_run(struct context *ctx);
/* How far the running number is beyond what a member has ended. */
static inline int32_t muster_credit_ahead(const struct context *ctx, uint32_t member)
{
	const struct peer *peer = muster_member_peer(ctx, member);

	return ctx->base - (peer ? peer->base : ctx->base_unheard);
}
static inline bool muster_credit_allows(const struct context *ctx, uint32_t member)
{
	return muster_credit_ahead(ctx, member) < ctx->engine->window;
}
static inline bool muster_credit_wanted(const struct context *ctx, uint32_t member)
{
	return muster_credit_ahead(ctx, member) >= ctx->engine->asks_from;
}
bool muster_credit_ask(struct context *ctx, uint32_t member);
/* Whether it is newer than what we know: it may let a held send go. */
static inline bool muster_credit_heard(struct context *ctx, struct peer *peer, uint32_t base)
{
	if ((int32_t)(base - peer->base) <= 0)
		return false;
	peer->base = base;
	if (ctx->copies)
		muster_copies_release(ctx, peer);
	return true;
}
static inline void muster_credit_hear(struct context *ctx, struct peer *peer, uint32_t base)
{
	if (muster_credit_heard(ctx, peer, base))
		muster_context_ready(ctx);
}

_Static_assert((uint64_t)MUSTER_MEMBERS_MAX * BASE_AGE_EACH < BASE_AGE_MAX, "each member in time");

#endif /* MUSTER_ENGINE_CREDIT_H */
