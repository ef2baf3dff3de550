// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Exactly-once delivery on a link (reliable.h).
 *
 * Each packet is a DATA frame with a number, kept in a slot and sent again until the peer
 * has acknowledged it: by `ack`, which covers all before, or by a bit for one
 * that came early. The receiver delivers at once and only remembers numbers; what is not
 * taken it has not seen.
 *
 * Lives: every frame names the life (incarnation) of both ends. Who sends names the
 * life that is meant, so nothing waits for an introduction. Another life than the one
 * that a link knows or awaits is believed only when it answers a question, a HELLO
 * with a number of its own: no straggler of a former life, and nobody's mere word,
 * can end a life. When it has answered, the old one is reported lost and the link
 * begins anew. A frame for another life is refused and answered with a HELLO.
 */
#include "reliable.h"

#include <errno.h>
#include <string.h>

#define NEVER UINT64_MAX

/* a is before b, in numbers that wrap */
static bool before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static struct muster_link_slot *slot_of(struct muster_link *link, uint32_t seq)
{
	return link->slots[seq % MUSTER_LINK_WINDOW];
}

static void due(struct muster_link *link, uint64_t when_us)
{
	if (when_us < link->next_us)
		link->next_us = when_us;
}

void muster_link_init(struct muster_link *link, const struct muster_link_config *config)
{
	memset(link, 0, sizeof(*link));
	link->config = *config;
	if (!link->config.probe_us)
		link->config.probe_us = config->deadline_us / 2;
	link->oldest = link->next = link->expected = MUSTER_LINK_SEQ_FIRST;
	muster_pace_init(&link->pace);
	link->next_us = link->ack_us = NEVER;
}

/* ---- slots --------------------------------------------------------------- */

/*
 * A link with less than its floor asks nobody, so none starves whatever others keep. And
 * what is kept comes back: it is acknowledged, or after the deadline its peer is lost.
 */
static struct muster_link_slot *take_slot(struct muster_link *link)
{
	struct muster_link_pool *pool = link->config.pool;
	bool beyond = link->kept >= MUSTER_LINK_FLOOR;
	struct muster_link_slot *slot;

	if (link->next - link->oldest >= MUSTER_LINK_WINDOW ||
	    (beyond && link->kept - MUSTER_LINK_FLOOR >= pool->size - pool->used))
		return NULL;
	slot = link->config.ops->take(link->config.owner);
	if (!slot)
		return NULL;
	pool->used += beyond;
	link->kept++;
	return slot;
}

static void give_slot(struct muster_link *link, uint32_t seq)
{
	struct muster_link_slot *slot = slot_of(link, seq);

	link->slots[seq % MUSTER_LINK_WINDOW] = NULL;
	link->kept--;
	link->config.pool->waiting -= !slot->tries;
	link->config.pool->used -= link->kept >= MUSTER_LINK_FLOOR;
	link->config.ops->give(link->config.owner, slot);
}

void muster_link_drop(struct muster_link *link)
{
	for (; link->oldest != link->next; link->oldest++)
		if (slot_of(link, link->oldest))
			give_slot(link, link->oldest);
	link->in_flight = 0;
}

/* ---- frames -------------------------------------------------------------- */

/* Acknowledgements are for the life that sent the frames: others are told nothing. */
static int emit(struct muster_link *link, uint8_t type, uint32_t incarnation, uint32_t seq,
		const struct muster_packet *packet, const void *payload)
{
	size_t payload_len = packet ? packet->length : 0;
	struct muster_frame frame = {
		.version = MUSTER_FRAME_VERSION,
		.type = type,
		.length = packet ? sizeof(*packet) + payload_len : 0,
		.src_node = link->config.node,
		.dst_node = link->config.peer,
		.src_incarnation = link->config.incarnation,
		.dst_incarnation = incarnation,
		.seq = seq,
	};
	int err;

	if (type != MUSTER_FRAME_HELLO) {
		frame.ack = link->expected;
		frame.ack_bits = link->early;
	}
	frame.crc = muster_frame_checksum(&frame, packet, payload, payload_len);
	err = link->config.ops->emit(link->config.owner, &frame, packet, payload);
	if (err)
		return err;
	link->config.counters->frames_out++;
	if (type != MUSTER_FRAME_HELLO) {
		link->unacked = 0;
		link->ack_us = NEVER;
	}
	return 0;
}

/* ---- sending ------------------------------------------------------------- */

uint32_t muster_link_meant(const struct muster_link *link)
{
	return link->peer_incarnation ? link->peer_incarnation : link->awaited_incarnation;
}

/* Return: whether the transport had room. */
static bool transmit(struct muster_link *link, uint64_t now_us, uint32_t seq)
{
	struct muster_link_slot *slot = slot_of(link, seq);
	const struct muster_packet *packet = slot->type == MUSTER_FRAME_DATA ? &slot->packet : NULL;

	link->tries += seq == link->oldest;
	if (emit(link, slot->type, muster_link_meant(link), seq, packet, slot->payload)) {
		slot->due_us = now_us + MUSTER_LINK_RETRY_US;
		due(link, slot->due_us);
		return false;
	}
	if (slot->tries) {
		link->config.counters->retransmitted++;
	} else {
		link->in_flight++;
		link->config.pool->waiting--;
	}
	slot->due_us = now_us + muster_pace_wait_us(&link->pace, slot->tries);
	slot->tries++;
	slot->sent_us = now_us;
	slot->order = ++link->order;
	due(link, slot->due_us);
	return true;
}

/* Who is there now? Repeated until it is answered, at most for a deadline. */
static void ask(struct muster_link *link, uint64_t now_us)
{
	if (!link->asking) {
		link->asking = true;
		link->asked_us = now_us;
		link->asked_times = 0;
		link->question += link->question == UINT32_MAX ? 2 : 1;
	} else if (now_us < link->ask_us) {
		return;
	}
	emit(link, MUSTER_FRAME_HELLO, 0, link->question, NULL, NULL);
	link->ask_us = now_us + muster_pace_wait_us(&link->pace, link->asked_times++);
	due(link, link->ask_us);
}

/* As the next of the stream. */
static void begin(struct muster_link *link, uint64_t now_us, uint8_t type,
		  struct muster_link_slot *slot)
{
	link->slots[link->next % MUSTER_LINK_WINDOW] = slot;
	slot->type = type;
	slot->tries = 0;
	link->config.pool->waiting++;
	slot->due_us = now_us;
	if (link->oldest == link->next++) {
		link->progress_us = now_us;
		link->tries = 0;
	}
	if (link->in_flight < link->pace.flight_max)
		transmit(link, now_us, link->next - 1);
}

/* Are you there? Nothing else is open, so only memory can be missing. */
static bool probe(struct muster_link *link, uint64_t now_us)
{
	struct muster_link_slot *slot = take_slot(link);

	if (slot)
		begin(link, now_us, MUSTER_FRAME_PROBE, slot);
	else
		due(link, now_us + MUSTER_LINK_RETRY_US);
	return slot;
}

/* Whether what is meant for this life goes into the link's slots: 0, or as _send(). */
static int address(struct muster_link *link, uint64_t now_us, uint32_t incarnation)
{
	if (link->lost || !incarnation || incarnation == link->former_incarnation)
		return -EHOSTUNREACH;
	if (!muster_link_meant(link))
		link->awaited_incarnation = incarnation;
	if (incarnation == muster_link_meant(link))
		return 0;
	if (incarnation == link->absent_incarnation)
		return -EHOSTUNREACH;
	if (!link->asking)
		link->sought_incarnation = incarnation;
	ask(link, now_us);
	return -EAGAIN;
}

int muster_link_send(struct muster_link *link, uint64_t now_us, uint32_t incarnation,
		     const struct muster_packet *packet, const void *payload)
{
	struct muster_link_slot *slot;
	int err;

	if (packet->length > MUSTER_MTU)
		return -EMSGSIZE;
	if (!incarnation && !link->lost) {
		incarnation = muster_link_meant(link);
		if (!incarnation || link->unsure) {
			ask(link, now_us);
			return -EAGAIN;
		}
	}
	err = address(link, now_us, incarnation);
	if (err)
		return err;
	slot = take_slot(link);
	if (!slot)
		return -EAGAIN;
	slot->packet = *packet;
	if (packet->length)
		memcpy(slot->payload, payload, packet->length);
	begin(link, now_us, MUSTER_FRAME_DATA, slot);
	return 0;
}

void muster_link_send_once(struct muster_link *link, uint32_t incarnation,
			   const struct muster_packet *packet, const void *payload)
{
	if (!link->lost && incarnation && incarnation == link->peer_incarnation &&
	    packet->length <= MUSTER_MTU)
		emit(link, MUSTER_FRAME_ONCE, incarnation, 0, packet, payload);
}

/* The oldest goes however many fly: by it alone it is found out whether the peer is there. */
static bool may_fly(const struct muster_link *link, uint32_t seq)
{
	return seq == link->oldest || link->in_flight < link->pace.flight_max;
}

static void send_due(struct muster_link *link, uint64_t now_us)
{
	for (uint32_t seq = link->oldest; seq != link->next; seq++) {
		struct muster_link_slot *slot = slot_of(link, seq);

		if (!slot || (!slot->tries && !may_fly(link, seq)))
			continue;
		if (slot->due_us > now_us) {
			due(link, slot->due_us);
			continue;
		}
		if (slot->tries)
			muster_pace_shrink(&link->pace, now_us);
		if (!transmit(link, now_us, seq))
			break;
	}
}

static void lose(struct muster_link *link)
{
	link->lost = true;
	link->next_us = NEVER;
	muster_link_drop(link);
	link->config.ops->lost(link->config.owner, link->config.peer, 0);
}

/* Nothing is known of the peer but that its former life is over. */
static void begin_anew(struct muster_link *link)
{
	struct muster_link_config config = link->config;
	uint32_t former = link->peer_incarnation ? link->peer_incarnation :
						   link->former_incarnation;
	uint32_t question = link->question;

	muster_link_drop(link);
	muster_link_init(link, &config);
	link->former_incarnation = former;
	link->question = question;
}

int muster_link_watch(struct muster_link *link, uint64_t now_us, uint32_t incarnation)
{
	int err;

	if (link->lost && incarnation != muster_link_meant(link))
		begin_anew(link);
	link->again |= link->asking && incarnation != muster_link_meant(link);
	err = address(link, now_us, incarnation);
	if (err)
		return err == -EAGAIN ? 0 : err;
	if (!link->peer_incarnation && link->oldest == link->next && !probe(link, now_us))
		return -EHOSTUNREACH;
	return 0;
}

uint32_t muster_link_waiting(const struct muster_link *link)
{
	return link->kept - link->in_flight;
}

bool muster_link_unused(const struct muster_link *link)
{
	return !link->peer_incarnation && link->oldest == link->next && !link->asking;
}

void muster_link_gone(struct muster_link *link)
{
	if (!link->lost)
		lose(link);
}

/* Time alone proves nothing, as we may have stood still: the last of some tries has had its time, too. */
static bool in_vain(struct muster_link *link, uint64_t now_us)
{
	return now_us >= link->progress_us + link->config.deadline_us &&
	       now_us >= slot_of(link, link->oldest)->due_us &&
	       link->tries >= MUSTER_LINK_TRIES_MIN;
}

bool muster_link_silent(const struct muster_link *link, struct muster_look_silence *silence)
{
	if (link->oldest == link->next || link->tries < MUSTER_LINK_TRIES_SILENT)
		return false;
	*silence = (struct muster_look_silence){
		.node = link->config.peer, .since_us = link->progress_us,
	};
	return true;
}

/* No other life has said that it is there: who means one does so in vain. */
static void resolve(struct muster_link *link)
{
	link->asking = link->again = false;
	if (link->peer_incarnation)
		link->config.ops->met(link->config.owner, link->config.peer,
				      link->peer_incarnation);
}

static void ask_again(struct muster_link *link, uint64_t now_us)
{
	if (now_us >= link->asked_us + link->config.deadline_us && now_us >= link->ask_us &&
	    link->asked_times >= MUSTER_LINK_TRIES_MIN) {
		resolve(link);
		return;
	}
	ask(link, now_us);
	due(link, link->ask_us);
}

void muster_link_run(struct muster_link *link, uint64_t now_us)
{
	if (link->lost || now_us < link->next_us)
		return;
	link->next_us = NEVER;
	if (link->oldest == link->next && link->peer_incarnation) {
		if (now_us >= link->heard_us + link->config.probe_us)
			probe(link, now_us);
		else
			due(link, link->heard_us + link->config.probe_us);
	}
	if (link->oldest != link->next) {
		if (in_vain(link, now_us)) {
			lose(link);
			return;
		}
		send_due(link, now_us);
	}
	if (link->asking)
		ask_again(link, now_us);
	if (now_us >= link->ack_us &&
	    emit(link, MUSTER_FRAME_ACK, link->peer_incarnation, 0, NULL, NULL))
		link->ack_us = now_us + MUSTER_LINK_RETRY_US;
	due(link, link->ack_us);
}

/* ---- receiving ----------------------------------------------------------- */

static bool acknowledges(const struct muster_frame *frame, uint32_t seq)
{
	uint32_t ahead = seq - frame->ack - 1;

	return before(seq, frame->ack) || (ahead < 64 && frame->ack_bits >> ahead & 1);
}

/* Close what has come; what many later frames have overtaken goes again at once. */
static void take_ack(struct muster_link *link, uint64_t now_us, const struct muster_frame *frame)
{
	uint32_t newest = 0;
	bool any = false;

	for (uint32_t seq = link->oldest; seq != link->next; seq++) {
		struct muster_link_slot *slot = slot_of(link, seq);

		if (!slot || !slot->tries || !acknowledges(frame, seq))
			continue;
		if (!any || before(newest, slot->order))
			newest = slot->order;
		any = true;
		if (slot->tries == 1)
			muster_pace_measure(&link->pace, now_us - slot->sent_us);
		give_slot(link, seq);
		link->in_flight--;
		if (link->pace.flight_max < MUSTER_LINK_WINDOW)
			link->pace.flight_max++;
	}
	if (!any)
		return;
	link->progress_us = now_us;
	link->tries = 0;
	while (link->oldest != link->next && !slot_of(link, link->oldest))
		link->oldest++;
	for (uint32_t seq = link->oldest; seq != link->next; seq++) {
		struct muster_link_slot *slot = slot_of(link, seq);

		if (slot && slot->tries && now_us - slot->sent_us > link->pace.srtt_us &&
		    before(slot->order + MUSTER_LINK_REORDER - 1, newest))
			transmit(link, now_us, seq);
	}
	send_due(link, now_us);
}

/* Whether it is new; remembers it, and when to acknowledge it. */
static bool take_number(struct muster_link *link, uint64_t now_us, uint32_t seq)
{
	uint32_t ahead = seq - link->expected;
	bool came = true, gap;

	if (!before(seq, link->expected)) {
		if (ahead >= MUSTER_LINK_WINDOW) {
			link->config.counters->refused++;
			return false;
		}
		came = ahead && link->early >> (ahead - 1) & 1;
	}
	if (came) {
		link->config.counters->duplicates++;
	} else if (ahead) {
		link->early |= 1ull << (ahead - 1);
	} else {
		do {
			link->expected++;
			gap = !(link->early & 1);
			link->early >>= 1;
		} while (!gap);
	}
	link->unacked++;
	if (came || link->early || link->unacked >= MUSTER_LINK_ACK_EVERY)
		link->ack_us = now_us;
	else if (link->ack_us == NEVER)
		link->ack_us = now_us + MUSTER_PACE_ACK_DELAY_US;
	due(link, link->ack_us);
	return !came;
}

/* The peer's first life that we hear of, or a new one. */
static void meet(struct muster_link *link, uint64_t now_us, uint32_t incarnation)
{
	bool ended = link->peer_incarnation && !link->lost;

	if (link->lost || (muster_link_meant(link) && muster_link_meant(link) != incarnation))
		begin_anew(link);
	link->peer_incarnation = incarnation;
	link->heard_us = link->progress_us = now_us;
	link->tries = 0;
	due(link, now_us + link->config.probe_us);
	send_due(link, now_us);
	if (ended)
		link->config.ops->lost(link->config.owner, link->config.peer, incarnation);
	else
		link->config.ops->met(link->config.owner, link->config.peer, incarnation);
}

/* A question, or another life of ours is meant: tell the peer who is here. */
static void introduce(struct muster_link *link, const struct muster_frame *frame)
{
	bool hello = frame->type == MUSTER_FRAME_HELLO;

	if (hello && frame->dst_incarnation)
		return;		/* was an answer itself */
	emit(link, MUSTER_FRAME_HELLO, frame->src_incarnation, hello ? frame->seq : 0, NULL, NULL);
}

static bool answers(const struct muster_link *link, const struct muster_frame *frame)
{
	return frame->type == MUSTER_FRAME_HELLO && link->asking && frame->seq == link->question;
}

/* What was asked for after the question went is not answered by it. */
static void take_answer(struct muster_link *link, uint64_t now_us)
{
	bool again = link->again;

	link->absent_incarnation = link->sought_incarnation;
	link->sought_incarnation = 0;
	if (!again) {
		resolve(link);
		return;
	}
	link->asking = link->again = false;
	ask(link, now_us);
}

/* Whether the frame is from the peer's present life, for all that we know. */
static bool accepted(struct muster_link *link, uint64_t now_us, const struct muster_frame *frame)
{
	uint32_t known;

	if (frame->src_incarnation == link->peer_incarnation)
		return !link->lost;
	if (frame->src_incarnation == link->former_incarnation)
		return false;
	known = muster_link_meant(link);
	if ((link->lost || (known && known != frame->src_incarnation)) && !answers(link, frame)) {
		ask(link, now_us);
		return false;
	}
	meet(link, now_us, frame->src_incarnation);
	return true;
}

/* One that is new; it is remembered only if it is taken. Else the peer hears that we are there. */
static void take_packet(struct muster_link *link, uint64_t now_us,
			const struct muster_frame *frame, const struct muster_packet *packet)
{
	uint32_t expected = link->expected;
	uint64_t early = link->early;

	if (frame->type != MUSTER_FRAME_ONCE && !take_number(link, now_us, frame->seq))
		return;
	if (frame->type == MUSTER_FRAME_PROBE ||
	    link->config.ops->deliver(link->config.owner, packet, packet + 1, packet->length) ||
	    frame->type == MUSTER_FRAME_ONCE)
		return;
	link->expected = expected;
	link->early = early;
	emit(link, MUSTER_FRAME_ACK, link->peer_incarnation, 0, NULL, NULL);
}

void muster_link_receive(struct muster_link *link, uint64_t now_us,
			 const struct muster_frame *frame, const void *body)
{
	struct muster_wire_counters *counters = link->config.counters;

	if (frame->src_node != link->config.peer || frame->dst_node != link->config.node ||
	    !frame->src_incarnation) {
		counters->refused++;
		return;
	}
	if (frame->dst_incarnation != link->config.incarnation) {
		if (frame->dst_incarnation || frame->type != MUSTER_FRAME_HELLO)
			counters->refused++;
		introduce(link, frame);
		return;
	}
	if (!accepted(link, now_us, frame) ||
	    (frame->type != MUSTER_FRAME_HELLO && before(link->next, frame->ack))) {
		counters->refused++;
		return;
	}
	counters->frames_in++;
	link->heard_us = now_us;
	link->unsure = false;
	if (frame->type == MUSTER_FRAME_HELLO) {
		if (answers(link, frame))
			take_answer(link, now_us);
		return;
	}
	take_ack(link, now_us, frame);
	if (frame->type != MUSTER_FRAME_ACK) {
		take_packet(link, now_us, frame, body);
		return;
	}
	link->progress_us = now_us;	/* it answers what we send, though it may not take it */
	link->tries = 0;
}
