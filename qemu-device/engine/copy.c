// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What was sent without waiting for its receiver (Documentation/sequence.md, section 4). The
 * receiver may have no room for it; then it says so by a GRANT as soon as it has, and the message
 * goes once more, from the copy that was made when the send was closed. A copy goes when its
 * receiver has ended the number, as the base in its packets tells. Copies lie in blocks of
 * the packet buffer, and who finds none asks first; or where the receiver reads them, until it
 * says that it has.
 */
#include "internal.h"

#include <errno.h>

struct entry *muster_copy_new_lent(struct context *ctx, const struct send *send)
{
	struct entry *copy = muster_entry_take(ctx);

	if (!copy)
		return NULL;
	copy->state = ENTRY_COPY;
	copy->number = ctx->base;
	copy->pulse = 0;
	copy->slot = send->slot;
	copy->member = send->member;
	copy->total = send->total;
	copy->flags = send->flags;
	copy->stage = muster_sequence_current(ctx)->stage;
	copy->signature = muster_sequence_current(ctx)->signature;
	copy->lent = false;
	return copy;
}

struct entry *muster_copy_new(struct context *ctx, const struct send *send)
{
	struct entry *copy = muster_copy_new_lent(ctx, send);

	if (!copy || muster_room_take_unasked(copy))
		return copy;
	muster_entry_give(copy);
	return NULL;
}

static void give(struct entry *copy)
{
	const struct muster_engine *engine = copy->owner->engine;

	if (copy->lent)
		engine->world.lent_back(engine->opaque, &copy->reference);
	muster_entry_give(copy);
}

static void drop(struct entry **link)
{
	struct entry *copy = *link;

	*link = copy->next;
	give(copy);
}

static bool is_done(const struct entry *copy, const struct peer *peer)
{
	return copy->member == peer->member &&
	       (peer->left || (int32_t)(copy->number - peer->base) < 0);
}

/* With its member nothing may have been exchanged yet. */
static void list(struct context *ctx, struct entry *copy)
{
	const struct peer *peer = muster_member_peer(ctx, copy->member);

	if (peer && is_done(copy, peer)) {
		give(copy);
		return;
	}
	copy->next = ctx->copies;
	ctx->copies = copy;
}

void muster_copy_keep(struct context *ctx, struct entry *copy, const void *data)
{
	memcpy(muster_room_block(copy, 0), data, copy->total);
	list(ctx, copy);
}

void muster_copy_keep_lent(struct context *ctx, struct entry *copy,
			   const struct muster_reference *lent)
{
	copy->lent = true;
	copy->reference = *lent;
	list(ctx, copy);
}

bool muster_copy_is_lent(const struct context *ctx, const struct send *send)
{
	const struct entry *copy = ctx->copies;

	while (copy && (!copy->lent || copy->member != send->member || copy->slot != send->slot ||
			copy->number != ctx->base))
		copy = copy->next;
	return copy;
}

void muster_copies_release(struct context *ctx, const struct peer *peer)
{
	struct entry **link = &ctx->copies, *copy;

	while ((copy = *link))
		if (is_done(copy, peer))
			drop(link);
		else
			link = &copy->next;
}

void muster_copies_forget(struct context *ctx, uint32_t node, uint32_t present)
{
	struct entry **link = &ctx->copies, *copy;

	while ((copy = *link))
		if (muster_member_was_at(ctx, copy->member, node, present))
			drop(link);
		else
			link = &copy->next;
}

void muster_copies_remove(struct context *ctx)
{
	while (ctx->copies)
		drop(&ctx->copies);
}

/* Its owner has not heard of it; until it closes, peers are told that what was lent is not to be counted on. */
void muster_copies_fail(struct context *ctx)
{
	struct entry **link = &ctx->copies, *copy;

	while ((copy = *link))
		if (!copy->lent)
			drop(link);
		else
			link = &copy->next;
}

/* A member may be reading, and will fail, too; when, nobody tells who is closed: what was lent stays so. */
void muster_copies_abandon(struct context *ctx)
{
	for (struct entry *copy = ctx->copies; copy; copy = copy->next)
		copy->lent = false;
	muster_copies_remove(ctx);
}

/*
 * What was sent for a number that will not end here is not waited for: a member that
 * needs it fails. So whoever is closed waits for members that have ended less than it, or
 * that are asked and answer: those who close do not wait for each other.
 */
void muster_copies_disown(struct context *ctx)
{
	struct entry **link = &ctx->copies, *copy;

	while ((copy = *link)) {
		if (ctx->failure.status || (int32_t)(copy->number - ctx->base) >= 0) {
			drop(link);
			continue;
		}
		ctx->engine->vps[ctx->vp]->nr_unasked -= copy->unasked;
		copy->unasked = false;
		link = &copy->next;
	}
}

/* Who reads it where it lies says so with TAKEN. */
static void taken(struct context *ctx, struct entry **link)
{
	drop(link);
	if (ctx->closed)
		muster_context_ready(ctx);
}

bool muster_copy_granted(struct context *ctx, uint32_t member, const struct muster_packet *packet)
{
	const bool is_taken = packet->flags & MUSTER_PACKET_TAKEN;
	struct entry **link = &ctx->copies, *copy;

	while ((copy = *link) && (copy->member != member || copy->number != packet->number ||
				  copy->slot != packet->seq_id || copy->total != packet->total))
		link = &copy->next;
	if (!copy || packet->pulse || (is_taken && !copy->lent))
		return false;
	if (is_taken) {
		taken(ctx, link);
		return true;
	}
	copy->state = ENTRY_GRANTED;
	muster_context_ready(ctx);
	return true;
}

static const void *piece(struct context *ctx, const struct entry *copy, uint32_t at, uint32_t length)
{
	return copy->lent ? muster_memory_source(ctx, copy->reference.key, copy->reference.addr + at, length) :
			    muster_room_block(copy, at);
}

/* Return: whether all of it has gone. */
static bool send_copy(struct context *ctx, struct entry *copy)
{
	struct muster_packet packet;
	uint32_t at;

	muster_packet_prepare(ctx, MUSTER_PACKET_DATA, copy->member, &packet);
	packet.flags = copy->flags;
	packet.seq_id = copy->slot;
	packet.stage = copy->stage;
	packet.signature = copy->signature;
	packet.number = copy->number;
	packet.total = copy->total;
	for (at = 0; at < copy->total; at += MUSTER_MTU) {
		const uint64_t fragment = 1ull << at / MUSTER_MTU;
		const uint32_t left = copy->total - at;
		const void *data;

		if (copy->fragments & fragment)
			continue;
		packet.offset = at;
		packet.length = left < MUSTER_MTU ? left : MUSTER_MTU;
		data = piece(ctx, copy, at, packet.length);
		if (!data || muster_packet_try(ctx, copy->member, &packet, data) == -EAGAIN)
			return false;
		copy->fragments |= fragment;
	}
	return true;
}

/* Nothing else tells when it may go. */
static void ask(struct context *ctx, struct entry *copy)
{
	struct muster_packet packet;

	muster_packet_prepare(ctx, MUSTER_PACKET_CREDIT, copy->member, &packet);
	packet.flags = MUSTER_PACKET_CREDIT_WANTED;
	packet.number = copy->number;
	copy->asked = muster_packet_try(ctx, copy->member, &packet, NULL) != -EAGAIN;
}

void muster_copies_run(struct context *ctx)
{
	struct entry **link = &ctx->copies, *copy;

	while (!ctx->failure.status && (copy = *link)) {
		if (copy->state == ENTRY_GRANTED && send_copy(ctx, copy)) {
			drop(link);
			continue;
		}
		if (ctx->closed && !copy->asked)
			ask(ctx, copy);
		link = &copy->next;
	}
}

void muster_copies_look(struct context *ctx)
{
	struct entry **link = &ctx->copies, *copy;

	while ((copy = *link))
		if (muster_farewell_is_noted(ctx, copy->member))
			drop(link);
		else
			link = &copy->next;
	ctx->stalled |= !!ctx->copies;
}
