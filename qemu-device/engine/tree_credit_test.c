// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Credits of an aggregation node: how many contributions go up, and the limited packet of who has none. */
#include "test_tree.h"

enum { ALL = 6 };

/* An operation of so many pulses, as many as possible at once. */
static void post(uint32_t pulses)
{
	struct muster_desc d[2];

	program_on_memory(d, pulses * MOST, MOST);
	d[0].range.pulses_live = MUSTER_TREE_PULSES_LIVE;
	world_post(w, 0, d, 2);
	world_run(w);
}

static void answer(uint32_t pulse, uint32_t credits)
{
	const double sums[MOST / 8] = { 0 };
	struct muster_packet down = result_of(MOST);

	down.pulse = pulse;
	down.arg = credits;
	bring(&down, sums);
}

static uint64_t limited(void)
{
	return world_counters(w, 0).tree_limited;
}

/* ---- tests ---- */

static void who_has_no_credit_sends_one_packet_at_a_time(void **state)
{
	(void)state;
	post(ALL);
	for (uint32_t i = 0; i < ALL; i++) {
		assert_int_equal(nr_up, i + 1);
		assert_int_equal(up.pulse, i);
		assert_int_equal(limited(), i + 1);
		answer(i, 0);
	}
	assert_int_equal(nr_up, ALL);
	assert_int_equal(w->nodes[0].nr_cqes, 1);
}

static void credits_are_for_what_comes_behind_their_result(void **state)
{
	(void)state;
	post(ALL);
	answer(0, 2);
	assert_int_equal(nr_up, 3);
	answer(2, 1);		/* the last of what has gone: for pulse 3, before pulse 1 is answered */
	assert_int_equal(nr_up, 4);
	answer(1, 1);		/* for pulse 2: it is told late */
	assert_int_equal(nr_up, 4);
	assert_int_equal(limited(), 1);
	answer(3, 0);
	assert_int_equal(nr_up, 5);
	assert_int_equal(limited(), 2);
}

/* A limited packet goes when all before it have been answered, in whatever order. */
static void a_limited_packet_waits_for_all_before_it(void **state)
{
	(void)state;
	credit(3);
	post(ALL);
	assert_int_equal(nr_up, 3);
	answer(2, 0);
	answer(1, 0);
	assert_int_equal(nr_up, 3);
	answer(0, 0);
	assert_int_equal(nr_up, 4);
}

static void what_is_left_is_for_the_next_operation(void **state)
{
	(void)state;
	credit(5);
	post(2);
	answer(0, 0);
	answer(1, 0);
	assert_int_equal(nr_up, 2);
	post(ALL);
	assert_int_equal(nr_up, 2 + 3);
	assert_int_equal(limited(), 1);		/* that of credit(), which is the first of all */
}

static void another_group_gives_credits_of_its_own(void **state)
{
	struct muster_tree_config heir = TREE_CONFIG;

	(void)state;
	credit(5);
	heir.group++;
	assert_int_equal(muster_engine_tree_move(w->nodes[0].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT, &heir), 0);
	post(ALL);
	assert_int_equal(nr_up, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_TEST(who_has_no_credit_sends_one_packet_at_a_time),
		TREE_TEST(credits_are_for_what_comes_behind_their_result),
		TREE_TEST(a_limited_packet_waits_for_all_before_it),
		TREE_TEST(what_is_left_is_for_the_next_operation),
		TREE_TEST(another_group_gives_credits_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
