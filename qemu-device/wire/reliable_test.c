// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Links over a simulated network: two ends, virtual time, and faults drawn from a
 * seed. What is checked everywhere: each packet comes exactly once and unchanged,
 * and nobody is lost without a reason.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "crc32c.h"
#include "reliable.h"

enum { PACKETS = 300, FLYING_MAX = 4096, DEADLINE_US = 2000000, ENDS = 2 };

struct flying {
	uint64_t at_us;
	uint32_t to;
	size_t len;
	uint64_t bytes[(MUSTER_FRAME_MAX + 7) / 8];
};

struct faults {		/* per thousand */
	uint32_t drop, duplicate, reorder, corrupt, full;
	bool cut[ENDS];	/* nothing arrives at this end */
};

struct end {
	struct muster_link link;
	uint32_t node;
	uint32_t means;			/* the other's life */
	uint32_t came[PACKETS];
	uint32_t lost;
	uint32_t present;		/* what lost() or met() said last */
};

static struct world {
	uint64_t now_us, seed;
	struct faults faults;
	struct end ends[ENDS];
	struct muster_wire_counters counters;
	struct flying *flying[FLYING_MAX];
	uint32_t nr_flying;
} w;

static uint64_t draw(void)
{
	uint64_t z = (w.seed += 0x9e3779b97f4a7c15ull);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static bool chance(uint32_t permille)
{
	return draw() % 1000 < permille;
}

static uint32_t length_of(uint32_t n)
{
	return n % 7 == 0 ? MUSTER_MTU - n % 9 : n % 70;
}

static void payload_of(uint32_t from, uint32_t n, uint8_t *payload)
{
	for (uint32_t i = 0; i < length_of(n); i++)
		payload[i] = from * 101 + n + i * 7;
}

/* ---- the network --------------------------------------------------------- */

static void launch(uint32_t to, const void *bytes, size_t len)
{
	struct flying *f = malloc(sizeof(*f));

	assert_true(w.nr_flying < FLYING_MAX);
	memcpy(f->bytes, bytes, len);
	f->len = len;
	f->to = to;
	f->at_us = w.now_us + 30;
	if (chance(w.faults.reorder))
		f->at_us += draw() % 20000;
	if (chance(w.faults.corrupt))
		((uint8_t *)f->bytes)[draw() % len] ^= 1 << draw() % 8;
	w.flying[w.nr_flying++] = f;
}

static int emit(void *owner, const struct muster_frame *frame, const struct muster_packet *packet,
		const void *payload)
{
	struct end *end = owner;
	uint8_t bytes[MUSTER_FRAME_MAX];
	size_t len = sizeof(*frame);

	if (chance(w.faults.full))
		return -EAGAIN;
	memcpy(bytes, frame, len);
	if (packet) {
		memcpy(bytes + len, packet, sizeof(*packet));
		len += sizeof(*packet);
		memcpy(bytes + len, payload, packet->length);
		len += packet->length;
	}
	for (int copies = 1 + chance(w.faults.duplicate); copies; copies--)
		if (!chance(w.faults.drop))
			launch(!(end - w.ends), bytes, len);
	return 0;
}

static void deliver(void *owner, const struct muster_packet *packet, const void *payload,
		    uint32_t len)
{
	struct end *end = owner;
	uint8_t want[MUSTER_MTU];

	assert_true(packet->number < PACKETS);
	assert_int_equal(len, length_of(packet->number));
	payload_of(packet->src_node, packet->number, want);
	assert_memory_equal(payload, want, len);
	end->came[packet->number]++;
}

static void met(void *owner, uint32_t peer, uint32_t present)
{
	struct end *end = owner;

	assert_int_equal(peer, 1 - end->node);
	end->present = present;
}

static void lost(void *owner, uint32_t peer, uint32_t present)
{
	struct end *end = owner;

	met(owner, peer, present);
	end->lost++;
}

static void begin_life(uint32_t node, uint32_t incarnation)
{
	static const struct muster_link_ops ops = { emit, deliver, lost, met };
	struct end *end = &w.ends[node];
	struct muster_link_config config = {
		.node = node,
		.peer = 1 - node,
		.incarnation = incarnation,
		.deadline_us = DEADLINE_US,
		.ops = &ops,
		.owner = end,
		.counters = &w.counters,
	};

	memset(end->came, 0, sizeof(end->came));
	end->lost = end->present = 0;
	end->node = node;
	muster_link_init(&end->link, &config);
}

static void land(struct flying *f)
{
	struct muster_frame frame;

	if (!w.faults.cut[f->to]) {
		if (muster_frame_check(f->bytes, f->len, &frame))
			w.counters.corrupt++;
		else
			muster_link_receive(&w.ends[f->to].link, w.now_us, &frame,
					    (uint8_t *)f->bytes + sizeof(frame));
	}
	free(f);
}

/* One event: the next datagram or timer, unless `limit_us` is sooner. */
static void advance(uint64_t limit_us)
{
	uint64_t next = limit_us;
	uint32_t first = UINT32_MAX;

	for (uint32_t i = 0; i < w.nr_flying; i++) {
		if (w.flying[i]->at_us < next) {
			next = w.flying[i]->at_us;
			first = i;
		}
	}
	for (int e = 0; e < ENDS; e++) {
		if (w.ends[e].link.next_us < next) {
			next = w.ends[e].link.next_us;
			first = UINT32_MAX;
		}
	}
	assert_true(next != UINT64_MAX);
	if (next > w.now_us)
		w.now_us = next;
	if (first != UINT32_MAX) {
		struct flying *f = w.flying[first];

		w.nr_flying--;
		memmove(&w.flying[first], &w.flying[first + 1],
			(w.nr_flying - first) * sizeof(w.flying[0]));
		land(f);
	}
	for (int e = 0; e < ENDS; e++)
		muster_link_run(&w.ends[e].link, w.now_us);
}

static void advance_until(uint64_t when_us)
{
	while (w.now_us < when_us)
		advance(when_us);
}

static void begin(uint64_t seed)
{
	while (w.nr_flying)
		free(w.flying[--w.nr_flying]);
	memset(&w.counters, 0, sizeof(w.counters));
	memset(&w.faults, 0, sizeof(w.faults));
	w.seed = seed;
	w.now_us = 1000;
	begin_life(0, 11);
	begin_life(1, 22);
	w.ends[0].means = 22;
	w.ends[1].means = 11;
}

static int try_send(uint32_t from, uint32_t n)
{
	struct muster_packet packet = {
		.number = n, .src_node = from, .dst_node = 1 - from, .length = length_of(n),
	};
	uint8_t payload[MUSTER_MTU];

	payload_of(from, n, payload);
	return muster_link_send(&w.ends[from].link, w.now_us, w.ends[from].means, &packet,
				payload);
}

static void exchange(uint32_t count0, uint32_t count1)
{
	uint32_t sent[ENDS] = { 0 }, count[ENDS] = { count0, count1 };
	uint32_t events = 0;

	while (sent[0] < count0 || sent[1] < count1 ||
	       w.ends[0].link.oldest != w.ends[0].link.next ||
	       w.ends[1].link.oldest != w.ends[1].link.next) {
		for (uint32_t e = 0; e < ENDS; e++)
			while (sent[e] < count[e] && !try_send(e, sent[e]))
				sent[e]++;
		advance(UINT64_MAX);
		assert_true(++events < 200000);
	}
}

static void assert_exactly_once(uint32_t at, uint32_t count)
{
	for (uint32_t n = 0; n < PACKETS; n++)
		assert_int_equal(w.ends[at].came[n], n < count);
	assert_int_equal(w.ends[at].lost, 0);
}

/* ---- tests --------------------------------------------------------------- */

static void checksum_is_crc32c(void **state)
{
	uint8_t bytes[64];

	(void)state;
	assert_int_equal(muster_crc32c(0, "123456789", 9), 0xe3069283u);
	memset(bytes, 0, 32);
	assert_int_equal(muster_crc32c(0, bytes, 32), 0x8a9136aau);
	for (int i = 0; i < 64; i++)
		bytes[i] = i * 37;
	assert_int_equal(muster_crc32c(muster_crc32c(0, bytes, 13), bytes + 13, 51),
			 muster_crc32c(0, bytes, 64));
}

static void a_clean_link_sends_each_frame_once(void **state)
{
	(void)state;
	begin(1);
	exchange(PACKETS, 0);
	assert_exactly_once(1, PACKETS);
	assert_int_equal(w.counters.retransmitted, 0);
	assert_int_equal(w.counters.duplicates, 0);
	/* Two HELLO frames, the packets, and an ACK for every few of them. */
	assert_true(w.counters.frames_out < PACKETS + PACKETS / 4);
}

static void numbers_wrap(void **state)
{
	(void)state;
	begin(2);
	assert_true(MUSTER_LINK_SEQ_FIRST + PACKETS < MUSTER_LINK_SEQ_FIRST);
	exchange(PACKETS, PACKETS);
	assert_exactly_once(0, PACKETS);
	assert_exactly_once(1, PACKETS);
	assert_int_equal(w.ends[0].link.next, MUSTER_LINK_SEQ_FIRST + PACKETS);
	assert_int_equal(w.ends[1].link.expected, MUSTER_LINK_SEQ_FIRST + PACKETS);
}

static void packets_come_exactly_once_whatever_the_network_does(void **state)
{
	struct muster_wire_counters sum = { 0 };

	(void)state;
	for (uint64_t seed = 100; seed < 400; seed++) {
		begin(seed);
		if (seed & 1)
			w.faults.drop = draw() % 300;
		if (seed & 2)
			w.faults.duplicate = draw() % 300;
		if (seed & 4)
			w.faults.reorder = draw() % 500;
		if (seed & 8)
			w.faults.corrupt = draw() % 100;
		if (seed & 16)
			w.faults.full = draw() % 300;
		exchange(PACKETS / 3, seed & 32 ? PACKETS / 3 : 0);
		assert_exactly_once(1, PACKETS / 3);
		assert_exactly_once(0, seed & 32 ? PACKETS / 3 : 0);
		sum.retransmitted += w.counters.retransmitted;
		sum.duplicates += w.counters.duplicates;
		sum.corrupt += w.counters.corrupt;
	}
	assert_true(sum.retransmitted > 1000 && sum.duplicates > 1000 && sum.corrupt > 100);
}

static void every_flipped_bit_is_seen(void **state)
{
	struct muster_frame frame;
	struct flying *f;

	(void)state;
	begin(3);
	w.ends[0].link.peer_incarnation = 22;
	assert_int_equal(try_send(0, 20), 0);
	assert_int_equal(w.nr_flying, 1);
	f = w.flying[0];
	assert_int_equal(muster_frame_check(f->bytes, f->len, &frame), 0);
	for (size_t bit = 0; bit < f->len * 8; bit++) {
		((uint8_t *)f->bytes)[bit / 8] ^= 1 << bit % 8;
		assert_int_equal(muster_frame_check(f->bytes, f->len, &frame), -EBADMSG);
		((uint8_t *)f->bytes)[bit / 8] ^= 1 << bit % 8;
	}
	for (size_t len = 0; len < f->len; len++)
		assert_int_equal(muster_frame_check(f->bytes, len, &frame), -EBADMSG);
}

static void a_full_window_refuses_and_recovers(void **state)
{
	uint32_t sent = 0;

	(void)state;
	begin(4);
	while (!try_send(0, sent))
		sent++;
	assert_int_equal(sent, MUSTER_LINK_WINDOW);
	assert_int_equal(try_send(0, sent), -EAGAIN);
	while (try_send(0, sent))
		advance(UINT64_MAX);
	assert_int_equal(w.ends[0].lost, 0);
}

static void a_silent_peer_is_lost_after_the_deadline(void **state)
{
	(void)state;
	begin(5);
	exchange(10, 10);
	w.faults.cut[1] = true;
	assert_int_equal(try_send(0, 10), 0);
	advance_until(w.now_us + DEADLINE_US - 50000);
	assert_int_equal(w.ends[0].lost, 0);
	advance_until(w.now_us + 50000 + MUSTER_LINK_RTO_MAX_US);
	assert_int_equal(w.ends[0].lost, 1);
	assert_int_equal(try_send(0, 11), -EHOSTUNREACH);
	w.faults.cut[1] = false;
	advance_until(w.now_us + DEADLINE_US * 2);
	assert_int_equal(w.ends[0].lost, 1);
	assert_int_equal(w.ends[1].lost, 1);	/* its probes are not answered any more */
}

/* The frame was lost, and then we did not run for longer than the deadline. */
static void who_stood_still_does_not_blame_the_peer(void **state)
{
	(void)state;
	begin(15);
	exchange(10, 10);
	w.faults.cut[1] = true;
	assert_int_equal(try_send(0, 10), 0);
	while (w.nr_flying)
		advance(UINT64_MAX);
	w.faults.cut[1] = false;
	w.now_us += 2 * DEADLINE_US;
	exchange(0, 0);
	assert_int_equal(w.ends[0].lost, 0);
	assert_int_equal(w.ends[1].came[10], 1);
}

static void a_peer_that_never_was_there_is_lost(void **state)
{
	(void)state;
	begin(6);
	w.faults.cut[1] = true;
	assert_int_equal(muster_link_watch(&w.ends[0].link, w.now_us, 22), 0);
	advance_until(w.now_us + DEADLINE_US + MUSTER_LINK_RTO_MAX_US);
	assert_int_equal(w.ends[0].lost, 1);
}

static void who_only_waits_learns_that_the_peer_is_gone(void **state)
{
	(void)state;
	begin(7);
	assert_int_equal(muster_link_watch(&w.ends[0].link, w.now_us, 22), 0);
	advance_until(w.now_us + DEADLINE_US * 10);
	assert_int_equal(w.ends[0].lost, 0);
	assert_int_equal(w.ends[1].lost, 0);
	w.faults.cut[1] = true;
	advance_until(w.now_us + DEADLINE_US * 2);
	assert_int_equal(w.ends[0].lost, 1);
}

static void a_late_peer_gets_everything(void **state)
{
	(void)state;
	begin(8);
	w.faults.cut[1] = true;
	for (uint32_t n = 0; n < 20; n++)
		assert_int_equal(try_send(0, n), 0);
	advance_until(w.now_us + DEADLINE_US * 9 / 10);
	w.faults.cut[1] = false;
	exchange(0, 0);
	assert_exactly_once(1, 20);
	assert_int_equal(w.ends[0].lost, 0);
}

static void a_new_life_is_reported_and_can_be_talked_to(void **state)
{
	(void)state;
	begin(9);
	exchange(100, 100);
	begin_life(1, 33);
	assert_int_equal(try_send(0, 5), 0);	/* meant for the former life */
	advance_until(w.now_us + 100000);
	assert_int_equal(w.ends[0].lost, 1);
	assert_int_equal(w.ends[1].came[5], 0);
	memset(w.ends[0].came, 0, sizeof(w.ends[0].came));
	w.ends[0].lost = 0;
	assert_int_equal(try_send(0, 5), -EHOSTUNREACH);
	w.ends[0].means = 33;
	exchange(100, 100);
	assert_exactly_once(0, 100);
	assert_exactly_once(1, 100);
}

static void a_new_life_that_speaks_first_is_reported(void **state)
{
	(void)state;
	begin(10);
	exchange(50, 50);
	begin_life(1, 33);
	assert_int_equal(try_send(1, 7), 0);
	memset(w.ends[0].came, 0, sizeof(w.ends[0].came));
	advance_until(w.now_us + 100000);
	assert_int_equal(w.ends[0].lost, 1);
	assert_int_equal(w.ends[0].came[7], 1);
}

static void a_life_that_ended_before_it_was_met_is_lost(void **state)
{
	(void)state;
	begin(13);
	begin_life(1, 33);
	assert_int_equal(muster_link_watch(&w.ends[0].link, w.now_us, 22), 0);
	assert_int_equal(try_send(0, 3), 0);
	advance_until(w.now_us + 100000);
	assert_int_equal(w.ends[0].present, 33);
	assert_int_equal(w.ends[1].came[3], 0);
	assert_int_equal(muster_link_watch(&w.ends[0].link, w.now_us, 33), 0);
	w.ends[0].means = 33;
	exchange(100, 100);
	assert_exactly_once(1, 100);
	assert_int_equal(w.ends[0].lost, 0);
}

static void a_new_life_that_is_watched_ends_the_former(void **state)
{
	(void)state;
	begin(14);
	exchange(10, 10);
	begin_life(1, 33);
	assert_int_equal(muster_link_watch(&w.ends[0].link, w.now_us, 33), 0);
	w.ends[0].means = 33;
	assert_int_equal(try_send(0, 3), -EAGAIN);	/* nothing for it goes to the former */
	assert_int_equal(w.ends[0].lost, 0);
	advance_until(w.now_us + 100000);
	assert_int_equal(w.ends[0].lost, 1);
	assert_int_equal(w.ends[0].present, 33);
	assert_int_equal(muster_link_watch(&w.ends[0].link, w.now_us, 22), -EHOSTUNREACH);
	w.ends[0].lost = 0;
	memset(w.ends[0].came, 0, sizeof(w.ends[0].came));
	exchange(100, 100);
	assert_exactly_once(0, 100);
	assert_exactly_once(1, 100);
	advance_until(w.now_us + DEADLINE_US * 3);
	assert_int_equal(w.ends[0].lost, 0);
}

/* Somebody here means a life that there is not: all others must not notice. */
static void only_its_own_frames_end_a_life(void **state)
{
	(void)state;
	begin(15);
	exchange(10, 10);
	for (uint32_t i = 0; i < 20; i++) {
		w.ends[0].present = 0;
		assert_int_equal(muster_link_watch(&w.ends[0].link, w.now_us, 100 + i), 0);
		w.ends[0].means = 100 + i;
		assert_int_equal(try_send(0, 1), -EAGAIN);
		w.ends[0].means = 22;
		assert_int_equal(try_send(0, 10 + i), 0);
		advance_until(w.now_us + 100000);
		assert_int_equal(w.ends[0].present, 22);
	}
	assert_exactly_once(1, 30);
	assert_int_equal(w.ends[0].lost, 0);
	/* Nor does a question that nobody answers, as long as the peer is heard. */
	w.ends[0].present = 0;
	assert_int_equal(muster_link_watch(&w.ends[0].link, w.now_us, 99), 0);
	assert_int_equal(muster_link_watch(&w.ends[0].link, w.now_us, 98), 0);
	advance_until(w.now_us + 3 * DEADLINE_US);
	assert_int_equal(w.ends[0].present, 22);
	assert_int_equal(w.ends[0].lost, 0);
}

/* Who has nobody left to tell it of the answer is not refused for now for ever. */
static void what_is_meant_for_a_life_that_is_not_there_is_refused_in_the_end(void **state)
{
	(void)state;
	begin(17);
	exchange(1, 1);
	memset(w.ends[0].came, 0, sizeof(w.ends[0].came));
	memset(w.ends[1].came, 0, sizeof(w.ends[1].came));
	for (uint32_t life = 100; life < 104; life++) {
		w.ends[0].means = life;
		assert_int_equal(try_send(0, 1), -EAGAIN);
		advance_until(w.now_us + 100000);
		assert_int_equal(try_send(0, 1), -EHOSTUNREACH);
	}
	w.ends[0].means = 22;
	exchange(10, 10);
	assert_exactly_once(1, 10);
	assert_exactly_once(0, 10);
}

/* Nor do those who mean the wrong one first. */
static void who_means_the_right_life_is_served_after_who_means_a_wrong_one(void **state)
{
	(void)state;
	begin(16);
	assert_int_equal(muster_link_watch(&w.ends[0].link, w.now_us, 99), 0);
	assert_int_equal(muster_link_watch(&w.ends[0].link, w.now_us, 22), 0);
	advance_until(w.now_us + 100000);
	assert_int_equal(w.ends[0].present, 22);
	exchange(10, 10);
	assert_exactly_once(1, 10);
	assert_exactly_once(0, 10);
}

static void the_first_packet_waits_for_no_answer(void **state)
{
	(void)state;
	begin(17);
	w.faults.cut[0] = true;
	assert_int_equal(try_send(0, 1), 0);
	advance_until(w.now_us + 1000);
	assert_int_equal(w.ends[1].came[1], 1);
}

static void stragglers_of_a_former_life_are_refused(void **state)
{
	(void)state;
	begin(11);
	exchange(10, 10);
	w.faults.reorder = 1000;
	w.faults.duplicate = 1000;
	for (uint32_t n = 0; n < 60; n++) {
		assert_int_equal(try_send(0, n), 0);
		assert_int_equal(try_send(1, n), 0);
	}
	begin_life(1, 33);
	w.faults.reorder = w.faults.duplicate = 0;
	assert_int_equal(try_send(1, 299), 0);
	memset(w.ends[0].came, 0, sizeof(w.ends[0].came));
	advance_until(w.now_us + DEADLINE_US * 2);
	assert_int_equal(w.ends[0].lost, 1);
	assert_int_equal(w.ends[1].lost, 0);
	assert_int_equal(w.ends[0].came[299], 1);
	for (uint32_t n = 0; n < PACKETS; n++)
		assert_int_equal(w.ends[1].came[n], 0);
	assert_true(w.counters.refused > 10);
}

static void frames_for_others_and_acks_of_nothing_are_refused(void **state)
{
	struct muster_frame frame = {
		.version = 1, .type = MUSTER_FRAME_ACK, .src_node = 1, .dst_node = 0,
		.src_incarnation = 22, .dst_incarnation = 11, .ack = MUSTER_LINK_SEQ_FIRST,
	};
	struct muster_link *link = &w.ends[0].link;

	(void)state;
	begin(12);
	muster_link_receive(link, w.now_us, &frame, NULL);
	assert_int_equal(w.counters.refused, 0);
	frame.ack++;			/* nothing was sent */
	muster_link_receive(link, w.now_us, &frame, NULL);
	frame.ack--;
	frame.src_node = 2;
	muster_link_receive(link, w.now_us, &frame, NULL);
	frame.src_node = 1;
	frame.dst_node = 3;
	muster_link_receive(link, w.now_us, &frame, NULL);
	frame.dst_node = 0;
	frame.src_incarnation = 0;
	muster_link_receive(link, w.now_us, &frame, NULL);
	frame.src_incarnation = 22;
	frame.type = MUSTER_FRAME_PROBE;
	frame.seq = MUSTER_LINK_SEQ_FIRST + MUSTER_LINK_WINDOW;
	muster_link_receive(link, w.now_us, &frame, NULL);
	assert_int_equal(w.counters.refused, 5);
	assert_int_equal(w.ends[0].lost, 0);
}

static int clear(void **state)
{
	(void)state;
	begin(0);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checksum_is_crc32c),
		cmocka_unit_test(a_clean_link_sends_each_frame_once),
		cmocka_unit_test(numbers_wrap),
		cmocka_unit_test(packets_come_exactly_once_whatever_the_network_does),
		cmocka_unit_test(every_flipped_bit_is_seen),
		cmocka_unit_test(a_full_window_refuses_and_recovers),
		cmocka_unit_test(a_silent_peer_is_lost_after_the_deadline),
		cmocka_unit_test(who_stood_still_does_not_blame_the_peer),
		cmocka_unit_test(a_peer_that_never_was_there_is_lost),
		cmocka_unit_test(who_only_waits_learns_that_the_peer_is_gone),
		cmocka_unit_test(a_late_peer_gets_everything),
		cmocka_unit_test(a_new_life_is_reported_and_can_be_talked_to),
		cmocka_unit_test(a_new_life_that_speaks_first_is_reported),
		cmocka_unit_test(a_life_that_ended_before_it_was_met_is_lost),
		cmocka_unit_test(a_new_life_that_is_watched_ends_the_former),
		cmocka_unit_test(only_its_own_frames_end_a_life),
		cmocka_unit_test(what_is_meant_for_a_life_that_is_not_there_is_refused_in_the_end),
		cmocka_unit_test(who_means_the_right_life_is_served_after_who_means_a_wrong_one),
		cmocka_unit_test(the_first_packet_waits_for_no_answer),
		cmocka_unit_test(stragglers_of_a_former_life_are_refused),
		cmocka_unit_test(frames_for_others_and_acks_of_nothing_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, clear);
}
