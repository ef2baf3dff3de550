// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What was sent without asking (Documentation/sequence.md, section 4). The receiver may
 * have no room for it; then it says so by a GRANT as soon as it has, and the message goes
 * once more, from the copy that was made when the send was closed. A copy goes when its
 * receiver has ended the number, as the base in its packets tells. Copies lie in blocks of
 * the packet buffer; who finds none asks first.
 */
#include "internal.h"

#include <errno.h>

struct entry *muster_copy_new(struct context *ctx, const struct send *send)
{
	struct entry *copy = muster_entry_take(ctx);

	if (!copy)
		return NULL;
	if (!muster_room_take_unasked(copy)) {
		muster_entry_give(copy);
		return NULL;
	}
	copy->state = ENTRY_COPY;
	copy->number = ctx->base;
	copy->pulse = 0;
	copy->slot = send->slot;
	copy->member = send->member;
	copy->total = send->total;
	copy->flags = send->flags;
	copy->stage = muster_sequence_current(ctx)->stage;
	copy->signature = muster_sequence_current(ctx)->signature;
	return copy;
}

static bool is_done(const struct entry *copy, const struct peer *peer)
{
	return copy->member == peer->member &&
	       (peer->left || (int32_t)(copy->number - peer->base) < 0);
}

void muster_copy_keep(struct context *ctx, struct entry *copy, const void *data)
{
	if (is_done(copy, muster_member_peer(ctx, copy->member))) {
		muster_entry_give(copy);
		return;
	}
	memcpy(muster_room_block(copy, 0), data, copy->total);
	copy->next = ctx->copies;
	ctx->copies = copy;
}

void muster_copies_release(struct context *ctx, const struct peer *peer)
{
	struct entry **link = &ctx->copies, *copy;

	while ((copy = *link))
		if (is_done(copy, peer)) {
			*link = copy->next;
			muster_entry_give(copy);
		} else {
			link = &copy->next;
		}
}

void muster_copies_forget(struct context *ctx, uint32_t node, uint32_t present)
{
	struct entry **link = &ctx->copies, *copy;

	while ((copy = *link))
		if (muster_member_was_at(ctx, copy->member, node, present)) {
			*link = copy->next;
			muster_entry_give(copy);
		} else {
			link = &copy->next;
		}
}

void muster_copies_remove(struct context *ctx)
{
	struct entry *copy;

	while ((copy = ctx->copies)) {
		ctx->copies = copy->next;
		muster_entry_give(copy);
	}
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
		if ((int32_t)(copy->number - ctx->base) >= 0) {
			*link = copy->next;
			muster_entry_give(copy);
			continue;
		}
		ctx->engine->vps[ctx->vp]->nr_unasked--;
		copy->unasked = false;
		link = &copy->next;
	}
}

bool muster_copy_granted(struct context *ctx, uint32_t member, const struct muster_packet *packet)
{
	struct entry *copy = ctx->copies;

	while (copy && (copy->member != member || copy->number != packet->number ||
			copy->slot != packet->seq_id || copy->total != packet->total))
		copy = copy->next;
	if (!copy || packet->pulse || packet->flags & MUSTER_PACKET_TAKEN)
		return false;
	copy->state = ENTRY_GRANTED;
	muster_context_ready(ctx);
	return true;
}

static bool send_copy(struct context *ctx, const struct entry *copy)
{
	struct muster_packet packet;

	muster_packet_prepare(ctx, MUSTER_PACKET_DATA, copy->member, &packet);
	packet.flags = copy->flags;
	packet.seq_id = copy->slot;
	packet.stage = copy->stage;
	packet.signature = copy->signature;
	packet.number = copy->number;
	packet.total = copy->total;
	packet.length = copy->total;
	return muster_packet_try(ctx, copy->member, &packet, muster_room_block(copy, 0)) != -EAGAIN;
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

	while ((copy = *link)) {
		if (copy->state == ENTRY_GRANTED && send_copy(ctx, copy)) {
			*link = copy->next;
			muster_entry_give(copy);
			continue;
		}
		if (ctx->closed && !copy->asked)
			ask(ctx, copy);
		link = &copy->next;
	}
}
