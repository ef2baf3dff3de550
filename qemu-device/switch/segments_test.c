// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Streaming groups with few segments: which credits go down with results, and that the limited packet has
 * its place while a slow port holds up all others. Networks of them are in allreduce_test.c.
 */
#include "test_switch.h"

/* Figure 2's group, as the root or not, on a streaming tree. */
static void stream(uint32_t segments, bool root)
{
	struct muster_switch_group group = figure_2();

	assert_int_equal(muster_switch_group_remove(sw, TREE, GROUP), 0);
	group.type = MUSTER_SWITCH_SAT;
	group.segments = segments;
	if (root)
		group.parent_port = MUSTER_SWITCH_NO_PORT;
	assert_int_equal(muster_switch_group_add(sw, &group), 0);
}

static void all_contribute(uint32_t pulse)
{
	for (uint32_t i = 0; i < 3; i++)
		contribute(i, pulse, 1);
}

/* The last that has come out of a port. */
static const struct muster_packet *last_of(uint32_t port)
{
	for (uint32_t i = nr_out; i--;)
		if (out[i].port == port)
			return &out[i].packet;
	fail_msg("nothing has come out of port %u", port);
	return NULL;
}

static void results_give_the_segments_that_are_free(void **state)
{
	(void)state;
	stream(4, true);
	for (uint32_t pulse = 0; pulse < 10; pulse++) {
		all_contribute(pulse);
		assert_int_equal(nr_out, 3 * (pulse + 1));
		assert_int_equal(last_of(1)->arg, 3);
		assert_int_equal(last_of(4)->arg, 3);
	}
	nr_out = 0;
	muster_switch_group_remove(sw, TREE, GROUP);
	assert_int_equal(counters().bytes, 0);
}

static void no_more_credits_than_may_live_at_once(void **state)
{
	(void)state;
	stream(0, true);
	all_contribute(0);
	assert_int_equal(last_of(2)->arg, MUSTER_TREE_PULSES_LIVE);
	full = 1 << 4;
	for (uint32_t pulse = 1; pulse <= MUSTER_TREE_PULSES_LIVE; pulse++)
		all_contribute(pulse);
	assert_int_equal(last_of(2)->arg, MUSTER_TREE_PULSES_LIVE - 1);
}

/* Results that a port does not take leave one segment to others: each has its limited packet there. */
static void the_limited_packet_has_its_place_behind_a_slow_port(void **state)
{
	(void)state;
	stream(4, true);
	all_contribute(0);
	full = 1 << 4;
	all_contribute(1);
	assert_int_equal(last_of(1)->arg, 3);		/* for pulses 2, 3 and 4 */
	all_contribute(2);
	assert_int_equal(last_of(1)->arg, 1);		/* for pulse 3: 4 has no place any more but as a limited one */
	all_contribute(3);
	assert_int_equal(last_of(1)->arg, 0);
	contribute(0, 4, 1);
	contribute(1, 4, 1);
	assert_int_equal(counters().drop_window, 0);
	assert_int_equal(counters().contributions, 3 * 4 + 2);
	full = 0;
	muster_switch_step(sw);
	assert_int_equal(last_of(4)->pulse, 3);
	contribute(2, 4, 1);
	assert_int_equal(last_of(4)->pulse, 4);
	assert_int_equal(last_of(4)->arg, 3);
}

/* Who sends more than it was given is not taken, and others have their places. */
static void what_has_no_credit_is_dropped(void **state)
{
	(void)state;
	stream(2, true);
	contribute(0, 0, 1);
	contribute(0, 1, 1);
	contribute(0, 2, 1);
	assert_int_equal(counters().drop_window, 1);
	contribute(1, 0, 1);
	contribute(2, 0, 1);
	assert_int_equal(nr_out, 3);
}

static void an_operation_goes_on_where_the_last_one_has_ended(void **state)
{
	struct muster_packet packet;

	(void)state;
	stream(2, true);
	for (uint32_t number = 0; number < 5; number++)
		for (uint32_t i = 0; i < 3; i++) {
			packet = from_child(i);
			packet.number = 17 + 3 * number;
			packet.flags = MUSTER_PACKET_LAST;
			hand(CHILDREN[i].port, &packet, 1);
		}
	assert_int_equal(counters().results, 5);
	assert_int_equal(last_of(1)->arg, 1);
}

/* ---- as a child ---- */

static void hear(uint32_t pulse, uint32_t credits)
{
	struct muster_packet packet = from_parent();

	packet.pulse = pulse;
	packet.arg = credits;
	hand(PARENT_PORT, &packet, 3);
}

static uint32_t gone_up(void)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < nr_out; i++)
		nr += out[i].port == PARENT_PORT;
	return nr;
}

static void a_parent_is_sent_what_it_has_given_credits_for(void **state)
{
	(void)state;
	stream(0, false);
	for (uint32_t pulse = 0; pulse < 6; pulse++)
		all_contribute(pulse);
	assert_int_equal(gone_up(), 1);
	assert_int_equal(counters().limited, 1);
	hear(0, 2);
	assert_int_equal(gone_up(), 3);
	assert_int_equal(counters().limited, 1);
	hear(2, 0);
	assert_int_equal(gone_up(), 3);
	hear(1, 0);
	assert_int_equal(gone_up(), 4);
	assert_int_equal(counters().limited, 2);
	assert_int_equal(last_of(PARENT_PORT)->pulse, 3);
	assert_false(muster_switch_step(sw));		/* it waits for no link */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SWITCH_TEST(results_give_the_segments_that_are_free),
		SWITCH_TEST(no_more_credits_than_may_live_at_once),
		SWITCH_TEST(the_limited_packet_has_its_place_behind_a_slow_port),
		SWITCH_TEST(what_has_no_credit_is_dropped),
		SWITCH_TEST(an_operation_goes_on_where_the_last_one_has_ended),
		SWITCH_TEST(a_parent_is_sent_what_it_has_given_credits_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
