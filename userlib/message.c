// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages between the members of a communicator, for the host path: each pair
 * has a stream of numbered fragments in each direction. Packets may overtake each
 * other; the stream puts them in order again. A sender may be `credits` fragments
 * ahead of what the receiver has taken, so that a receive ring never overflows:
 * a pair holds credits + MUSTER_CREDIT_SLOTS slots of it. What comes too early
 * is kept here, at most `credits` fragments of each member.
 *
 * On the wire: the cookie's low half is the operation's number, its high half
 * the place in the stream; the stage says which kind of message it is. Credits
 * say how many fragments were taken in all, so a late one does no harm.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum message_kind {
	KIND_FRAGMENT = 0,
	KIND_CREDIT = 1,	/* number: fragments taken */
	KIND_PROBE = 2,		/* where are you? */
	KIND_REPLY = 3,		/* number: of the operation that I am in */
	KIND_LEAVE = 4,		/* number: of the first operation that I will not be in */
};

struct kept {
	uint32_t number;
	struct muster_signature signature;
	uint32_t len;
	uint8_t data[];
};

struct peer {
	uint32_t sent;		/* fragments that it was sent */
	uint32_t acked;		/* of them it has taken */
	uint32_t taken;		/* fragments of its own that were taken here */
	uint32_t reported;	/* of them it knows */
	uint32_t place;		/* in the job's operations, by its last reply, or its last of all */
	bool left;		/* for good, at that place */
	bool leave_due;		/* it is to be told that we leave */
	bool probed;		/* a probe is on its way; one at a time */
	bool replied;
	bool reply_due;
	struct kept **kept;	/* by place in the stream modulo credits; NULL: none yet */
};

struct muster_channel {
	uint32_t credits;
	uint32_t open;		/* messages that have not left */
	uint32_t nr_kept;
	uint32_t nr_left;
	bool control_due;	/* a control message found no room */
	muster_channel_take *take;
	struct peer peers[];
};

/* ---- opening --------------------------------------------------------------------- */

int muster_channel_open(struct muster_comm *comm, uint32_t credits, muster_channel_take *take)
{
	struct muster_channel *channel =
		calloc(1, sizeof(*channel) + comm->size * sizeof(struct peer));

	if (!channel)
		return muster_fail(comm->job, -ENOMEM, "no memory for the messages of %u members",
				   comm->size);
	channel->credits = credits;
	channel->take = take;
	comm->channel = channel;
	return 0;
}

static void kept_free(struct muster_channel *channel, struct peer *peer)
{
	if (!peer->kept)
		return;
	for (uint32_t i = 0; i < channel->credits; i++)
		free(peer->kept[i]);
	free(peer->kept);
}

void muster_channel_close(struct muster_comm *comm)
{
	for (uint32_t i = 0; i < comm->size; i++)
		kept_free(comm->channel, &comm->channel->peers[i]);
	free(comm->channel);
}

uint32_t muster_channel_credits(const struct muster_comm *comm)
{
	return comm->channel->credits;
}

uint32_t muster_channel_slots(uint32_t size, uint32_t credits)
{
	return size > 1 ? (size - 1) * (credits + MUSTER_CREDIT_SLOTS) : 0;
}

bool muster_channel_idle(const struct muster_comm *comm)
{
	return !comm->channel->open && !comm->channel->control_due;
}

/* ---- sending --------------------------------------------------------------------------- */

static struct muster_desc desc_make(const struct muster_comm *comm, uint32_t member,
				    enum message_kind kind)
{
	const struct muster_address *to = &comm->members[member];

	return (struct muster_desc){
		.kind = MUSTER_DESC_MP,
		.flags = MUSTER_DESC_COLL_END,
		.dest = to->node & MUSTER_DEST_NODE,
		.src_vp = comm->members[comm->rank].vp,
		.dst_vp = to->vp,
		.job = comm->job->id,
		.context = comm->context,
		.stage = (uint8_t)kind,
	};
}

static int message_post(struct muster_comm *comm, const struct muster_desc *desc)
{
	struct muster_dev *dev = comm->job->dev;
	int err = dev->ops->post(dev, desc, 1);

	if (!err)
		comm->channel->open++;
	return err;
}

int muster_channel_send(struct muster_comm *comm, const struct muster_fragment *fragment)
{
	struct peer *peer = &comm->channel->peers[fragment->member];
	struct muster_desc desc;
	int err;

	if (peer->sent - peer->acked >= comm->channel->credits)
		return -EAGAIN;
	desc = desc_make(comm, fragment->member, KIND_FRAGMENT);
	desc.signature = fragment->signature;
	desc.cookie = (uint64_t)peer->sent << 32 | fragment->number;
	desc.length = fragment->len;
	if (fragment->len <= MUSTER_INLINE_MAX) {
		desc.inline_len = (uint8_t)fragment->len;
		if (fragment->len)
			memcpy(desc.data, fragment->data, fragment->len);
	} else {
		desc.kind = MUSTER_DESC_RDMA;
		desc.range.load_key = fragment->key;
		desc.range.load_addr = (uintptr_t)fragment->data;
	}
	err = message_post(comm, &desc);
	if (!err)
		peer->sent++;
	return err;
}

void muster_channel_sent(struct muster_comm *comm)
{
	if (comm->channel->open)
		comm->channel->open--;
}

static int control_post(struct muster_comm *comm, uint32_t member, enum message_kind kind,
			uint32_t number)
{
	struct muster_desc desc = desc_make(comm, member, kind);

	desc.cookie = number;
	return message_post(comm, &desc);
}

/* Where are you, and is this what you called there? */
static int probe_post(struct muster_comm *comm, uint32_t member)
{
	struct muster_desc desc = desc_make(comm, member, KIND_PROBE);

	desc.cookie = comm->first->number;
	desc.signature = comm->first->entry->signature;
	return message_post(comm, &desc);
}

/* Half of the credits at once: so at most two such messages are on their way. */
static bool credit_due(const struct muster_channel *channel, const struct peer *peer)
{
	return peer->taken - peer->reported >= (channel->credits + 1) / 2;
}

static uint32_t own_place(const struct muster_comm *comm)
{
	return comm->first ? comm->first->number : comm->number;
}

/* Say what a member waits to hear; what finds no room is said later. */
static void control_send(struct muster_comm *comm, uint32_t member)
{
	struct muster_channel *channel = comm->channel;
	struct peer *peer = &channel->peers[member];

	if (credit_due(channel, peer)) {
		if (control_post(comm, member, KIND_CREDIT, peer->taken))
			channel->control_due = true;
		else
			peer->reported = peer->taken;
	}
	if (peer->reply_due) {
		if (control_post(comm, member, KIND_REPLY, own_place(comm)))
			channel->control_due = true;
		else
			peer->reply_due = false;
	}
	if (peer->leave_due) {
		if (control_post(comm, member, KIND_LEAVE, comm->number))
			channel->control_due = true;
		else
			peer->leave_due = false;
	}
}

void muster_channel_flush(struct muster_comm *comm)
{
	if (!comm->channel->control_due || comm->failed)
		return;
	comm->channel->control_due = false;
	for (uint32_t i = 0; i < comm->size; i++)
		if (i != comm->rank)
			control_send(comm, i);
}

void muster_channel_leave(struct muster_comm *comm)
{
	for (uint32_t i = 0; i < comm->size; i++)
		comm->channel->peers[i].leave_due = i != comm->rank;
	comm->channel->control_due = true;
}

/* ---- receiving --------------------------------------------------------------------------- */

/* An operation that began here already: is it the sender's too, and on the same path? */
static bool call_matches(struct muster_comm *comm, uint32_t member, uint32_t number,
			 const struct muster_signature *signature)
{
	const struct muster_past *past = &comm->history[number % MUSTER_HISTORY];
	uint32_t behind = comm->number - number;

	if (!behind || behind > MUSTER_HISTORY)
		return true;
	if (past->host && muster_signatures_agree(&past->signature, signature))
		return true;
	muster_comm_abort(comm, MUSTER_STATUS_MISMATCH, member, signature, &past->signature);
	return false;
}

/* Offer a fragment that is next in its stream. Return: whether it was taken. */
static bool fragment_offer(struct muster_comm *comm, uint32_t member, uint32_t number,
			   const void *data, uint32_t len)
{
	int taken = comm->channel->take(comm, member, number, data, len);

	if (taken < 0)
		muster_comm_abort(comm, MUSTER_STATUS_PROTOCOL, member, NULL, NULL);
	if (taken <= 0)
		return false;
	comm->channel->peers[member].taken++;
	control_send(comm, member);
	return true;
}

static void fragment_keep(struct muster_comm *comm, uint32_t member,
			  const struct muster_packet *packet, const void *payload)
{
	struct muster_channel *channel = comm->channel;
	struct peer *peer = &channel->peers[member];
	struct kept *kept = malloc(sizeof(*kept) + packet->length);

	if (!peer->kept)
		peer->kept = calloc(channel->credits, sizeof(*peer->kept));
	if (!kept || !peer->kept) {
		free(kept);
		muster_comm_give_up(comm, muster_fail(comm->job, -ENOMEM, "no memory for what came early"));
		return;
	}
	if (peer->kept[packet->pulse % channel->credits]) {
		free(kept);
		muster_comm_abort(comm, MUSTER_STATUS_PROTOCOL, member, NULL, NULL);
		return;
	}
	kept->number = packet->number;
	kept->signature = packet->signature;
	kept->len = packet->length;
	memcpy(kept->data, payload, packet->length);
	peer->kept[packet->pulse % channel->credits] = kept;
	channel->nr_kept++;
}

static struct kept **kept_next(const struct muster_channel *channel, const struct peer *peer)
{
	return peer->kept ? &peer->kept[peer->taken % channel->credits] : NULL;
}

void muster_channel_deliver(struct muster_comm *comm, uint32_t member)
{
	struct muster_channel *channel = comm->channel;
	struct kept **place, *kept;

	while ((place = kept_next(channel, &channel->peers[member])) && (kept = *place)) {
		if (!call_matches(comm, member, kept->number, &kept->signature) ||
		    !fragment_offer(comm, member, kept->number, kept->data, kept->len))
			return;
		*place = NULL;
		channel->nr_kept--;
		free(kept);
	}
}

bool muster_channel_clashes(struct muster_comm *comm, uint32_t number)
{
	struct muster_channel *channel = comm->channel;

	for (uint32_t i = 0; channel->nr_kept && i < comm->size; i++) {
		struct kept **place = kept_next(channel, &channel->peers[i]);

		if (place && *place && (*place)->number == number &&
		    !call_matches(comm, i, number, &(*place)->signature))
			return true;
	}
	return false;
}

static void fragment_receive(struct muster_comm *comm, uint32_t member,
			     const struct muster_packet *packet, const void *payload)
{
	struct peer *peer = &comm->channel->peers[member];
	uint32_t ahead = packet->pulse - peer->taken;

	if (ahead >= comm->channel->credits) {
		muster_comm_abort(comm, MUSTER_STATUS_PROTOCOL, member, NULL, NULL);
		return;
	}
	if (!call_matches(comm, member, packet->number, &packet->signature))
		return;
	if (!ahead && fragment_offer(comm, member, packet->number, payload, packet->length))
		muster_channel_deliver(comm, member);
	else if (!comm->failed)
		fragment_keep(comm, member, packet, payload);
}

/*
 * A member waits in an operation. If something else was called here in its place,
 * both may wait for ever without ever hearing of each other otherwise.
 */
static void probe_check(struct muster_comm *comm, uint32_t member, uint32_t number,
			const struct muster_signature *signature)
{
	const struct muster_past *past = &comm->history[number % MUSTER_HISTORY];
	uint32_t behind = comm->number - number;

	if (behind && behind <= MUSTER_HISTORY && !muster_signatures_agree(&past->signature, signature))
		muster_comm_abort(comm, MUSTER_STATUS_MISMATCH, member, signature, &past->signature);
}

/* A member cannot have taken what it was not sent. */
static void credit_receive(struct muster_comm *comm, uint32_t member, uint32_t taken)
{
	struct peer *peer = &comm->channel->peers[member];

	if (taken - peer->acked <= peer->sent - peer->acked)
		peer->acked = taken;
}

bool muster_channel_left(struct muster_comm *comm, uint32_t number)
{
	const struct muster_channel *channel = comm->channel;

	for (uint32_t i = 0; channel->nr_left && i < comm->size; i++) {
		const struct peer *peer = &channel->peers[i];

		if (peer->left && (int32_t)(number - peer->place) >= 0) {
			muster_comm_abort(comm, MUSTER_STATUS_PEER_LOST, i, NULL, NULL);
			return true;
		}
	}
	return false;
}

static void leave_receive(struct muster_comm *comm, uint32_t member, uint32_t number)
{
	struct peer *peer = &comm->channel->peers[member];

	if (peer->left)
		return;
	peer->left = true;
	peer->place = number;
	comm->channel->nr_left++;
	if (comm->first && comm->first->path == MUSTER_PATH_HOST)
		muster_channel_left(comm, comm->first->number);
}

void muster_channel_receive(struct muster_comm *comm, const struct muster_packet *packet,
			    const void *payload)
{
	uint32_t member = packet->src_member;	/* the device has checked it; we, that it is one */
	struct peer *peer;

	if (comm->failed || member >= comm->size || member == comm->rank)
		return;
	peer = &comm->channel->peers[member];
	switch (packet->stage) {
	case KIND_FRAGMENT:
		fragment_receive(comm, member, packet, payload);
		break;
	case KIND_CREDIT:
		credit_receive(comm, member, packet->number);
		break;
	case KIND_PROBE:
		peer->reply_due = true;
		control_send(comm, member);
		probe_check(comm, member, packet->number, &packet->signature);
		break;
	case KIND_REPLY:
		if (!peer->left)
			peer->place = packet->number;
		peer->replied = true;
		peer->probed = false;
		break;
	case KIND_LEAVE:
		leave_receive(comm, member, packet->number);
		break;
	}
}

/* ---- who is late --------------------------------------------------------------------------- */

void muster_channel_probe(struct muster_comm *comm)
{
	for (uint32_t i = 0; i < comm->size; i++) {
		struct peer *peer = &comm->channel->peers[i];

		peer->replied = false;
		if (i != comm->rank && !peer->probed)
			peer->probed = !probe_post(comm, i);
	}
}

static bool is_late(const struct muster_comm *comm, uint32_t member, uint32_t number)
{
	const struct peer *peer = &comm->channel->peers[member];

	return member != comm->rank &&
	       (!peer->replied || (int32_t)(peer->place - number) < 0);
}

uint32_t muster_channel_silent(const struct muster_comm *comm)
{
	uint32_t silent = 0;

	for (uint32_t i = 0; i < comm->size; i++)
		silent += i != comm->rank && !comm->channel->peers[i].replied;
	return silent;
}

void muster_channel_who_is_late(const struct muster_comm *comm, uint32_t number, char *names,
				size_t len)
{
	size_t at = 0;

	for (uint32_t i = 0; i < comm->size && at + 32 < len; i++)
		if (is_late(comm, i, number))
			at += (size_t)snprintf(names + at, len - at, "%s%u", at ? ", " : "rank ", i);
	if (at)
		snprintf(names + at, len - at, "%s late", strchr(names, ',') ? " are" : " is");
	else
		snprintf(names, len, "all ranks are in the operation");
}
