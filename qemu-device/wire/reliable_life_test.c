// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Lives that begin and end: a new one is reported and can be talked to, the former
 * one is lost, and nothing that is meant for one reaches or ends another.
 */
#include "test_link.h"

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

/* Of a node that nothing is known of: it is asked, and answers. */
static void who_means_nobody_in_particular_reaches_who_is_there(void **state)
{
	(void)state;
	begin(18);
	w.ends[0].means = 0;
	assert_int_equal(try_send(0, 0), -EAGAIN);
	exchange(10, 10);
	assert_exactly_once(1, 10);
	assert_exactly_once(0, 10);
	begin_life(1, 33);
	assert_int_equal(try_send(0, 20), 0);	/* to the life that was known */
	advance_until(w.now_us + 100000);
	assert_int_equal(w.ends[1].came[20], 0);
	assert_int_equal(try_send(0, 21), 0);
	advance_until(w.now_us + 100000);
	assert_int_equal(w.ends[1].came[21], 1);
	assert_int_equal(w.ends[0].present, 33);
}

static void who_means_nobody_in_particular_waits_in_vain_if_nobody_is_there(void **state)
{
	(void)state;
	begin(19);
	w.ends[0].means = 0;
	w.faults.cut[1] = true;
	assert_int_equal(try_send(0, 0), -EAGAIN);
	advance_until(w.now_us + 3 * DEADLINE_US);
	assert_true(muster_link_unused(&w.ends[0].link));
	assert_int_equal(w.ends[0].lost, 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_life_is_reported_and_can_be_talked_to),
		cmocka_unit_test(a_new_life_that_speaks_first_is_reported),
		cmocka_unit_test(a_life_that_ended_before_it_was_met_is_lost),
		cmocka_unit_test(a_new_life_that_is_watched_ends_the_former),
		cmocka_unit_test(only_its_own_frames_end_a_life),
		cmocka_unit_test(what_is_meant_for_a_life_that_is_not_there_is_refused_in_the_end),
		cmocka_unit_test(who_means_the_right_life_is_served_after_who_means_a_wrong_one),
		cmocka_unit_test(who_means_nobody_in_particular_reaches_who_is_there),
		cmocka_unit_test(who_means_nobody_in_particular_waits_in_vain_if_nobody_is_there),
		cmocka_unit_test(stragglers_of_a_former_life_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, clear);
}
