// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages between the members of a communicator, for the host path: each pair
 * has a stream of numbered fragments in each direction. Packets may overtake each
 * other; the stream puts them in order again. A few fragments may come unasked; they
 * are kept here until their operation begins. More are sent only when the receiver is
 * in the operation that awaits them, and has said so.
 *
 * On the wire: the cookie's low half is the operation's number, its high half the
 * place in the stream; the SeqID is 1 in the last fragment of a message. What members say of it goes through the world (pair.c), so
 * that it is heard even by who has closed the communicator.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "channel.h"
#include "host.h"
#include "message.h"

/* ---- opening --------------------------------------------------------------------- */

/* A communicator whose members say nothing to each other has none. */
static struct muster_channel *channel_get(struct muster_comm *comm)
{
	struct muster_channel *channel = comm->channel;

	if (channel)
		return channel;
	channel = calloc(1, sizeof(*channel) + comm->size * sizeof(struct peer));
	if (!channel) {
		muster_comm_give_up(comm, muster_fail(comm->job, -ENOMEM, "no memory for the messages of %u members",
						      comm->size));
		return NULL;
	}
	channel->context = comm->context;
	channel->life = comm->life;
	channel->size = comm->size;
	channel->sends.comm = comm;
	for (uint32_t i = 0; i < comm->size; i++) {
		channel->peers[i].limit = channel->peers[i].told = MUSTER_STREAM_FLOOR;
		channel->peers[i].says.comm = comm;
	}
	comm->channel = channel;
	return channel;
}

int muster_channel_open(struct muster_comm *comm)
{
	return channel_get(comm) ? 0 : -ENOMEM;
}

bool muster_channel_idle(const struct muster_comm *comm)
{
	return !comm->channel || !comm->channel->open;
}

bool muster_channel_has_left(const struct muster_comm *comm)
{
	return !comm->channel ||
	       (comm->channel->leaving && !comm->channel->farewells_due && !comm->channel->nr_say);
}

/* ---- saying ---------------------------------------------------------------------------- */

static int say(const struct muster_comm *comm, uint32_t member, enum muster_control_kind kind,
	       uint32_t value)
{
	const struct peer *peer = &comm->channel->peers[member];
	struct muster_control control = {
		.kind = (uint8_t)kind,
		.context = comm->context,
		.life = comm->life,
		.about.value = value,
		.about.sent = peer->sent,
	};

	if (kind == MUSTER_CONTROL_PROBE)	/* is this what you called there? */
		control.about.signature = comm->first->entry->signature;
	return muster_control_send(comm->job, comm->ranks[member], &control);
}

/* How far a member may be ahead: what is awaited comes, and a little besides. */
static uint32_t window(const struct peer *peer)
{
	if (peer->awaited <= MUSTER_STREAM_FLOOR)
		return MUSTER_STREAM_FLOOR;
	return peer->awaited < MUSTER_STREAM_MAX ? peer->awaited : MUSTER_STREAM_MAX;
}

static uint32_t own_place(const struct muster_comm *comm)
{
	return comm->first ? comm->first->number : comm->number;
}

/* It is in line for a credit or room, or in none. */
static void wait_to_say(struct muster_comm *comm, uint32_t member, bool waits)
{
	struct muster_channel *channel = comm->channel;
	struct muster_waiter *waiter = &channel->peers[member].says;

	if (waits == (waiter->next != NULL))
		return;
	if (waits) {
		muster_pair_await(comm->job, comm->ranks[member], true, waiter);
		channel->nr_say++;
		return;
	}
	muster_pair_await_no_more(comm->job, waiter);
	if (!--channel->nr_say && comm->freed)
		muster_comm_activate(comm);
}

/*
 * Say what a member waits to hear; what finds no room is said later. A farewell says how many
 * fragments have left, so they have. Return: whether all is said.
 */
static bool control_say(struct muster_comm *comm, uint32_t member)
{
	struct peer *peer = &comm->channel->peers[member];
	uint32_t limit = peer->taken + window(peer);
	bool leaves = peer->leave_due && !comm->channel->open;

	if (peer->told_due && !say(comm, member, MUSTER_CONTROL_STREAM, limit)) {
		peer->told = limit;
		peer->told_due = false;
	}
	if (peer->reply_due && !say(comm, member, MUSTER_CONTROL_REPLY, own_place(comm)))
		peer->reply_due = false;
	if (leaves && !say(comm, member, comm->failed ? MUSTER_CONTROL_SETTLE : MUSTER_CONTROL_LEAVE,
			   comm->number))
		peer->leave_due = leaves = false;
	wait_to_say(comm, member, peer->told_due || peer->reply_due || leaves);
	return !peer->says.next;
}

bool muster_channel_say(struct muster_comm *comm, uint32_t rank)
{
	return control_say(comm, muster_comm_member(comm, rank));
}

void muster_channel_flush(struct muster_comm *comm)
{
	if (!comm->channel || !comm->channel->farewells_due || comm->channel->open)
		return;
	comm->channel->farewells_due = false;
	for (uint32_t i = 0; i < comm->size; i++) {
		const struct peer *peer = &comm->channel->peers[i];

		if (i != comm->rank && (peer->leave_due || peer->says.next))
			control_say(comm, i);
	}
}

/* ---- sending --------------------------------------------------------------------------- */

static struct muster_desc desc_make(const struct muster_comm *comm, uint32_t member)
{
	const struct muster_address *to = muster_comm_address(comm, member);

	return (struct muster_desc){
		.kind = MUSTER_DESC_MP,
		.flags = MUSTER_DESC_COLL_END,
		.dest = to->node & MUSTER_DEST_NODE,
		.src_vp = comm->job->dev->address.vp,
		.dst_vp = to->vp,
		.job = comm->job->id,
		.context = comm->context,
		.stage = MUSTER_STAGE_FRAGMENT,
	};
}

static int fragment_post(struct muster_comm *comm, const struct muster_fragment *fragment,
			 uint32_t place)
{
	struct muster_dev *dev = comm->job->dev;
	struct muster_desc desc = desc_make(comm, fragment->member);

	desc.signature = fragment->signature;
	desc.cookie = (uint64_t)place << 32 | fragment->number;
	desc.length = fragment->len;
	desc.dest |= MUSTER_FIELD_PREP(MUSTER_DEST_SEQ, fragment->last);
	if (fragment->len <= MUSTER_INLINE_MAX) {
		desc.inline_len = (uint8_t)fragment->len;
		if (fragment->len)
			memcpy(desc.data, fragment->data, fragment->len);
	} else {
		desc.kind = MUSTER_DESC_RDMA;
		desc.range.load_key = fragment->key;
		desc.range.load_addr = (uintptr_t)fragment->data;
	}
	return dev->ops->post(dev, &desc, 1);
}

int muster_channel_send(struct muster_comm *comm, const struct muster_fragment *fragment)
{
	struct muster_channel *channel = channel_get(comm);
	uint32_t rank = comm->ranks[fragment->member];
	struct peer *peer;
	int err;

	if (!channel)
		return -ENOMEM;
	peer = &channel->peers[fragment->member];
	if (peer->sent == peer->limit)
		return -EAGAIN;		/* its word makes us go on */
	if (!muster_pair_has_credit(comm->job, rank)) {
		muster_pair_await(comm->job, rank, false, &channel->sends);
		return -EAGAIN;
	}
	err = fragment_post(comm, fragment, peer->sent);
	comm->again |= err == -EAGAIN;
	if (err)
		return err;
	muster_pair_await_no_more(comm->job, &channel->sends);
	channel->open++;
	peer->sent++;
	muster_pair_sent(comm->job, rank, 1);
	return 0;
}

void muster_channel_sent(struct muster_comm *comm, uint32_t member, bool flushed)
{
	struct muster_channel *channel = comm->channel;

	if (!channel || !channel->open || member >= comm->size)
		return;
	channel->open--;
	if (flushed) {
		channel->peers[member].sent--;
		muster_pair_sent(comm->job, comm->ranks[member], -1);
	}
	muster_comm_activate(comm);
}

/* Half of what it may send unasked is used, or of what is awaited. */
static void limit_review(struct muster_comm *comm, uint32_t member)
{
	struct peer *peer = &comm->channel->peers[member];

	if (comm->failed || peer->told - peer->taken > window(peer) / 2)
		return;
	peer->told_due = true;
	control_say(comm, member);
}

void muster_channel_await(struct muster_comm *comm, uint32_t member, uint32_t nr)
{
	comm->channel->peers[member].awaited += nr;
	limit_review(comm, member);
}

/* Those with whom nothing was exchanged learn it when they ask. */
void muster_channel_leave(struct muster_comm *comm)
{
	struct muster_channel *channel = comm->channel;

	if (!channel || channel->leaving)
		return;
	channel->leaving = true;
	for (uint32_t i = 0; i < comm->size; i++) {
		struct peer *peer = &channel->peers[i];

		peer->told_due = false;
		peer->leave_due = peer->sent || peer->came || comm->bump;
	}
	channel->farewells_due = true;
	muster_comm_activate(comm);
}

/* ---- receiving --------------------------------------------------------------------------- */

/* Is it the sender's too, and on the same path? */
static bool call_matches(struct muster_comm *comm, uint32_t member, uint32_t number,
			 const struct muster_signature *signature)
{
	const struct muster_past *past = muster_comm_past(comm, number);

	if (!past || (past->host && muster_signatures_agree(&past->signature, signature)))
		return true;
	muster_comm_abort(comm, MUSTER_STATUS_MISMATCH, member, signature, &past->signature);
	return false;
}

/* Offer a fragment that is next in its stream. Return: whether it was taken. */
static bool fragment_offer(struct muster_comm *comm, uint32_t member, uint32_t number,
			   const void *data, uint32_t len, bool last)
{
	struct peer *peer = &comm->channel->peers[member];
	int taken = muster_host_take(comm, member, number, data, len, last);

	if (taken < 0)
		muster_comm_abort(comm, MUSTER_STATUS_PROTOCOL, member, NULL, NULL);
	if (taken <= 0)
		return false;
	peer->taken++;
	peer->awaited -= peer->awaited > 0;
	limit_review(comm, member);
	return true;
}

static void fragment_keep(struct muster_comm *comm, uint32_t member,
			  const struct muster_packet *packet, const void *payload)
{
	struct muster_channel *channel = comm->channel;
	struct kept **place = &channel->peers[member].kept;
	struct kept *kept = malloc(sizeof(*kept) + packet->length);

	if (!kept) {
		muster_comm_give_up(comm, muster_fail(comm->job, -ENOMEM, "no memory for what came early"));
		return;
	}
	while (*place && (int32_t)((*place)->place - packet->pulse) < 0)
		place = &(*place)->next;
	if (*place && (*place)->place == packet->pulse) {
		free(kept);
		muster_comm_abort(comm, MUSTER_STATUS_PROTOCOL, member, NULL, NULL);
		return;
	}
	kept->next = *place;
	kept->place = packet->pulse;
	kept->number = packet->number;
	kept->signature = packet->signature;
	kept->len = packet->length;
	kept->last = packet->seq_id;
	memcpy(kept->data, payload, packet->length);
	*place = kept;
	channel->nr_kept++;
	muster_again_drop(comm);
}

/* The next of its stream, if it came early. */
static struct kept *kept_next(const struct peer *peer)
{
	return peer->kept && peer->kept->place == peer->taken ? peer->kept : NULL;
}

void muster_kept_drop(struct muster_channel *channel, struct peer *peer)
{
	struct kept *kept = peer->kept;

	peer->kept = kept->next;
	channel->nr_kept--;
	free(kept);
}

void muster_channel_deliver(struct muster_comm *comm, uint32_t member)
{
	struct muster_channel *channel = comm->channel;
	struct peer *peer = &channel->peers[member];
	struct kept *kept;

	while ((kept = kept_next(peer))) {
		if (!call_matches(comm, member, kept->number, &kept->signature) ||
		    !fragment_offer(comm, member, kept->number, kept->data, kept->len,
				    kept->last))
			return;
		muster_kept_drop(channel, peer);
	}
}

bool muster_channel_clashes(struct muster_comm *comm, uint32_t number)
{
	struct muster_channel *channel = comm->channel;

	if (!channel || !channel->nr_kept)
		return false;
	for (uint32_t i = 0; i < comm->size; i++) {
		const struct kept *kept = kept_next(&channel->peers[i]);

		if (kept && kept->number == number &&
		    !call_matches(comm, i, number, &kept->signature))
			return true;
	}
	return false;
}

void muster_channel_receive(struct muster_comm *comm, const struct muster_packet *packet,
			    const void *payload)
{
	uint32_t member = packet->src_member;
	struct muster_channel *channel = channel_get(comm);
	struct peer *peer;

	if (!channel)
		return;
	peer = &channel->peers[member];
	peer->came++;
	if (comm->failed)
		return;
	if (packet->pulse - peer->taken >= peer->told - peer->taken) {
		muster_comm_abort(comm, MUSTER_STATUS_PROTOCOL, member, NULL, NULL);
		return;
	}
	if (!call_matches(comm, member, packet->number, &packet->signature))
		return;
	muster_comm_activate(comm);
	if (packet->pulse == peer->taken &&
	    fragment_offer(comm, member, packet->number, payload, packet->length,
			   packet->seq_id))
		muster_channel_deliver(comm, member);
	else if (!comm->failed)
		fragment_keep(comm, member, packet, payload);
}

/* ---- what members say of a communicator ------------------------------------------------------ */

/*
 * A member waits in an operation. If something else was called here in its place,
 * both may wait for ever without ever hearing of each other otherwise.
 */
static void probe_check(struct muster_comm *comm, uint32_t member, uint32_t number,
			const struct muster_signature *signature)
{
	const struct muster_past *past = muster_comm_past(comm, number);

	if (past && !muster_signatures_agree(&past->signature, signature))
		muster_comm_abort(comm, MUSTER_STATUS_MISMATCH, member, signature, &past->signature);
}

bool muster_channel_left(struct muster_comm *comm, uint32_t number)
{
	const struct muster_channel *channel = comm->channel;

	for (uint32_t i = 0; channel && channel->nr_left && i < comm->size; i++) {
		const struct peer *peer = &channel->peers[i];

		if (peer->left && (int32_t)(number - peer->place) >= 0) {
			muster_comm_abort(comm, MUSTER_STATUS_PEER_LOST, i, NULL, NULL);
			return true;
		}
	}
	return false;
}

static void leave_receive(struct muster_comm *comm, uint32_t member,
			  const struct muster_control *control)
{
	struct peer *peer = &comm->channel->peers[member];

	if (peer->settled)
		return;
	peer->settled = true;
	peer->said = control->about.sent;
	if (control->kind == MUSTER_CONTROL_SETTLE)	/* why it failed comes otherwise */
		return;
	peer->left = true;
	peer->place = control->about.value;
	comm->channel->nr_left++;
	if (comm->first && !muster_path_is_posted(comm->first->path))
		muster_channel_left(comm, comm->first->number);
}

/* It has closed the communicator; what it sent before may still be under way, the first time. */
static void gone_receive(struct muster_comm *comm, uint32_t member)
{
	struct peer *peer = &comm->channel->peers[member];

	peer->probes = 0;
	if (peer->left || peer->gone++ < 1 ||
	    (!peer->awaited && !muster_host_sends_to(comm, member)))
		return;
	muster_comm_abort(comm, MUSTER_STATUS_PEER_LOST, member, NULL, NULL);
}

static void member_receive(struct muster_comm *comm, uint32_t member,
			   const struct muster_control *control)
{
	struct peer *peer = &comm->channel->peers[member];
	uint32_t value = control->about.value;

	switch (control->kind) {
	case MUSTER_CONTROL_STREAM:	/* nobody grants more than this */
		if (value - peer->sent <= MUSTER_STREAM_MAX && (int32_t)(value - peer->limit) > 0)
			peer->limit = value;
		muster_comm_activate(comm);
		break;
	case MUSTER_CONTROL_PROBE:
		peer->reply_due = true;
		control_say(comm, member);
		probe_check(comm, member, value, &control->about.signature);
		break;
	case MUSTER_CONTROL_REPLY:
		if (!peer->left)
			peer->place = value;
		peer->replied = true;
		peer->probes = 0;
		break;
	case MUSTER_CONTROL_GONE:
		gone_receive(comm, member);
		break;
	case MUSTER_CONTROL_LEAVE:
	case MUSTER_CONTROL_SETTLE:
		leave_receive(comm, member, control);
		break;
	}
}

static bool is_farewell(const struct muster_control *control)
{
	return control->kind == MUSTER_CONTROL_LEAVE || control->kind == MUSTER_CONTROL_SETTLE;
}

/* Who asks about what is closed here is told so, if there is room: it asks again. */
void muster_channel_control(struct muster *job, uint32_t rank, const struct muster_control *control)
{
	struct muster_comm *comm = muster_comm_find(job, job->id, control->context);
	struct muster_control gone = {
		.kind = MUSTER_CONTROL_GONE,
		.context = control->context,
		.life = control->life,
	};
	uint32_t member;

	if (comm && comm->life == control->life) {
		member = muster_comm_member(comm, rank);
		if (member != comm->size && member != comm->rank && channel_get(comm) &&
		    (!comm->failed || is_farewell(control)))
			member_receive(comm, member, control);
	} else if (is_farewell(control)) {
		muster_channel_closed(job, rank, control);
	} else if (control->kind == MUSTER_CONTROL_PROBE) {
		muster_control_send(job, rank, &gone);
	}
}

/* ---- who is late --------------------------------------------------------------------------- */

void muster_channel_probe(struct muster_comm *comm)
{
	struct muster_channel *channel = channel_get(comm);

	for (uint32_t i = 0; channel && i < comm->size; i++) {
		struct peer *peer = &channel->peers[i];

		peer->replied = false;
		if (i != comm->rank && peer->probes++ % MUSTER_PROBES_REPEAT == 0 &&
		    say(comm, i, MUSTER_CONTROL_PROBE, comm->first->number))
			peer->probes = 0;
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

	for (uint32_t i = 0; comm->channel && i < comm->size; i++)
		silent += i != comm->rank && !comm->channel->peers[i].replied;
	return silent;
}

uint32_t muster_channel_who_is_late(const struct muster_comm *comm, uint32_t number, char *names,
				    size_t len)
{
	uint32_t who = comm->rank, silent = 0;
	size_t at = 0;

	for (uint32_t i = 0; comm->channel && i < comm->size && at + 32 < len; i++) {
		if (!is_late(comm, i, number))
			continue;
		silent += !comm->channel->peers[i].replied;
		if (!comm->channel->peers[i].replied || !silent)
			who = at && silent != 1 ? comm->rank : i;
		at += (size_t)snprintf(names + at, len - at, "%s%u", at ? ", " : "rank ", i);
	}
	if (at)
		snprintf(names + at, len - at, "%s late", strchr(names, ',') ? " are" : " is");
	else
		snprintf(names, len, "all ranks are in the operation");
	return who;
}
