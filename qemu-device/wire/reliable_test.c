// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A link between two lives that stay: what the network does to frames nobody sees,
 * and a peer that says nothing any more is lost after the deadline, not before.
 */
#include "test_link.h"

#include "crc32c.h"

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

static void what_is_not_taken_comes_again_until_it_is(void **state)
{
	uint64_t retransmitted = 0;

	(void)state;
	for (uint64_t seed = 500; seed < 540; seed++) {
		begin(seed);
		w.faults.refuse = 100 + draw() % 500;
		w.faults.drop = draw() % 100;
		exchange(PACKETS / 3, PACKETS / 3);
		assert_exactly_once(0, PACKETS / 3);
		assert_exactly_once(1, PACKETS / 3);
		retransmitted += w.counters.retransmitted;
	}
	assert_true(retransmitted > 1000);
}

/* However long: it answers, so it is there. */
static void who_takes_nothing_is_not_lost(void **state)
{
	(void)state;
	for (uint64_t seed = 540; seed < 550; seed++) {
		uint32_t n = 0;

		begin(seed);
		w.faults.drop = seed % 2 * 100;
		exchange(10, 10);
		w.faults.refuse = 1000;
		for (n = 10; !try_send(0, n); n++)
			;
		for (uint32_t i = 0; i < 10; i++) {		/* answers go with data, too */
			if (seed % 3)
				try_send(1, 10 + i);
			advance_until(w.now_us + DEADLINE_US / 2);
		}
		assert_int_equal(w.ends[0].lost, 0);
		w.faults.refuse = 0;
		while (w.ends[0].link.oldest != w.ends[0].link.next)
			advance(UINT64_MAX);
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(w.ends[1].came[i], 1);
	}
}

static void send_once(uint32_t n, uint32_t incarnation)
{
	struct muster_packet packet = { .number = n, .length = length_of(n) };
	uint8_t payload[MUSTER_MTU];

	payload_of(0, n, payload);
	muster_link_send_once(&w.ends[0].link, incarnation, &packet, payload);
}

static void what_is_sent_once_takes_no_number_and_nobody_repeats_it(void **state)
{
	(void)state;
	begin(6);
	send_once(40, 22);			/* nobody is known to be there */
	exchange(10, 10);
	send_once(41, 22);
	send_once(42, 23);			/* another life */
	w.faults.drop = 1000;
	send_once(43, 22);
	w.faults.drop = 0;
	advance_until(w.now_us + DEADLINE_US / 4);
	assert_int_equal(w.ends[1].came[40], 0);
	assert_int_equal(w.ends[1].came[41], 1);
	assert_int_equal(w.ends[1].came[42], 0);
	assert_int_equal(w.ends[1].came[43], 0);
	assert_int_equal(w.ends[0].link.next, MUSTER_LINK_SEQ_FIRST + 10);
	assert_int_equal(w.counters.retransmitted, 0);
	w.faults.refuse = 1000;
	send_once(44, 22);			/* there is no place for it: it is lost */
	advance_until(w.now_us + DEADLINE_US / 4);
	w.faults.refuse = 0;
	advance_until(w.now_us + DEADLINE_US / 4);
	assert_int_equal(w.ends[1].came[44], 0);
	assert_int_equal(w.ends[0].lost + w.ends[1].lost, 0);
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
	advance_until(w.now_us + 50000 + MUSTER_PACE_RTO_MAX_US);
	assert_int_equal(w.ends[0].lost, 1);
	assert_int_equal(try_send(0, 11), -EHOSTUNREACH);
	w.faults.cut[1] = false;
	advance_until(w.now_us + DEADLINE_US * 2);
	assert_int_equal(w.ends[0].lost, 1);
	assert_int_equal(w.ends[1].lost, 1);	/* its probes are not answered any more */
}

/* There was no room for the first of a burst, and others have filled what may fly. */
static void a_peer_is_lost_that_the_oldest_packet_was_never_sent_to(void **state)
{
	(void)state;
	begin(16);
	exchange(1, 1);
	w.faults.cut[1] = true;
	w.faults.full = 1000;
	assert_int_equal(try_send(0, 1), 0);
	w.faults.full = 0;
	for (uint32_t n = 2; n < 2 + w.ends[0].link.pace.flight_max; n++)
		assert_int_equal(try_send(0, n), 0);
	advance_until(w.now_us + 2 * DEADLINE_US);
	assert_int_equal(w.ends[0].lost, 1);
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
	advance_until(w.now_us + DEADLINE_US + MUSTER_PACE_RTO_MAX_US);
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

/* Not who is late once: who acknowledges nothing that was sent again and again. */
static void a_peer_that_acknowledges_nothing_is_silent(void **state)
{
	struct muster_look_silence silence;
	uint64_t since_us;

	(void)state;
	begin(9);
	assert_false(muster_link_silent(&w.ends[0].link, &silence));
	w.faults.cut[0] = true;
	since_us = w.now_us;
	assert_int_equal(try_send(0, 0), 0);
	advance_until(w.now_us + MUSTER_PACE_RTO_FIRST_US * 2);
	assert_false(muster_link_silent(&w.ends[0].link, &silence));
	advance_until(w.now_us + DEADLINE_US / 4);
	assert_true(muster_link_silent(&w.ends[0].link, &silence));
	assert_int_equal(silence.node, w.ends[1].node);
	assert_true(silence.since_us == since_us);
	w.faults.cut[0] = false;
	exchange(0, 0);
	assert_false(muster_link_silent(&w.ends[0].link, &silence));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checksum_is_crc32c),
		cmocka_unit_test(a_clean_link_sends_each_frame_once),
		cmocka_unit_test(numbers_wrap),
		cmocka_unit_test(packets_come_exactly_once_whatever_the_network_does),
		cmocka_unit_test(what_is_not_taken_comes_again_until_it_is),
		cmocka_unit_test(who_takes_nothing_is_not_lost),
		cmocka_unit_test(what_is_sent_once_takes_no_number_and_nobody_repeats_it),
		cmocka_unit_test(every_flipped_bit_is_seen),
		cmocka_unit_test(a_full_window_refuses_and_recovers),
		cmocka_unit_test(a_silent_peer_is_lost_after_the_deadline),
		cmocka_unit_test(a_peer_is_lost_that_the_oldest_packet_was_never_sent_to),
		cmocka_unit_test(who_stood_still_does_not_blame_the_peer),
		cmocka_unit_test(a_peer_that_never_was_there_is_lost),
		cmocka_unit_test(who_only_waits_learns_that_the_peer_is_gone),
		cmocka_unit_test(a_late_peer_gets_everything),
		cmocka_unit_test(a_peer_that_acknowledges_nothing_is_silent),
		cmocka_unit_test(the_first_packet_waits_for_no_answer),
		cmocka_unit_test(frames_for_others_and_acks_of_nothing_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, clear);
}
