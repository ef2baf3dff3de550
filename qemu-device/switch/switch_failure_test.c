// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One switch: what it drops and counts, and whom it tells of a failure.
 */
#include "test_switch.h"

/* ---- what is dropped ---- */

static void nothing_else_changed(void)
{
	assert_int_equal(counters().contributions, 0);
	assert_int_equal(counters().results, 0);
	assert_int_equal(counters().failed, 0);
	assert_int_equal(nr_out, 0);
}

static void malformed_ones_are_dropped(void **state)
{
	struct muster_packet packet;
	uint64_t dropped = 0;

	(void)state;
#define MALFORMED(what)                                                \
	do {                                                           \
		packet = from_child(0);                                \
		what;                                                  \
		hand(1, &packet, 1);                                   \
		assert_int_equal(counters().drop_malformed, ++dropped); \
		nothing_else_changed();                                \
	} while (0)
	MALFORMED(packet.version++);
	MALFORMED(packet.type = MUSTER_PACKET_DATA);
	MALFORMED(packet.type = 200);
	MALFORMED(packet.flags = MUSTER_PACKET_ONCE);
	MALFORMED(packet.flags = MUSTER_PACKET_SWAP_DATA);
	MALFORMED(packet.flags = MUSTER_PACKET_BARE; packet.signature.op = MUSTER_REDOP_NONE);
	MALFORMED(packet.reserved = 1);
	MALFORMED(packet.signature.reserved = 1);
	MALFORMED(packet.signature.type = MUSTER_DTYPE_END);
	MALFORMED(packet.signature.op = MUSTER_REDOP_END);
	MALFORMED(packet.signature.op = MUSTER_REDOP_BAND);
	MALFORMED(packet.seq_id = MUSTER_SLOTS_MAX);
	MALFORMED(packet.offset = 8);
	MALFORMED(packet.total = 16);
	MALFORMED(packet.total = packet.length = 7);
	MALFORMED(packet.arg = 1);
	MALFORMED(packet.type = MUSTER_PACKET_TREE_DOWN; packet.arg = MUSTER_TREE_PULSES_LIVE + 1);
	MALFORMED(packet.type = MUSTER_PACKET_ABORT);		/* with data */
	MALFORMED(packet.type = MUSTER_PACKET_ABORT; packet.length = 0; packet.number = 0);
	MALFORMED(packet.type = MUSTER_PACKET_ABORT; packet.length = 0;
		  packet.number = MUSTER_STATUS_STARVED + 1);
}

static void what_is_longer_than_the_tree_takes_is_dropped(void **state)
{
	struct muster_packet packet = from_child(0);
	double payload[9] = { 0 };

	(void)state;
	packet.length = packet.total = 72;
	assert_int_equal(muster_switch_receive(sw, 1, &packet, payload, 72), 0);
	assert_int_equal(muster_switch_receive(sw, 1, &packet, payload, 64), 0);	/* lies */
	assert_int_equal(counters().drop_malformed, 2);
	nothing_else_changed();
}

static void strangers_are_dropped(void **state)
{
	struct muster_packet packet;
	uint64_t dropped = 0;

	(void)state;
#define STRANGER(port, from, what)                                     \
	do {                                                           \
		packet = from;                                         \
		what;                                                  \
		hand(port, &packet, 1);                                \
		assert_int_equal(counters().drop_stranger, ++dropped);  \
		nothing_else_changed();                                \
	} while (0)
	STRANGER(1, from_child(0), packet.job_key++);
	STRANGER(1, from_child(0), packet.job++);
	STRANGER(1, from_child(0), packet.tree++);
	STRANGER(1, from_child(0), packet.group++);
	STRANGER(1, from_child(0), packet.src_node = 2);
	STRANGER(1, from_child(0), packet.src_vp++);
	STRANGER(1, from_child(0), packet.context++);
	STRANGER(1, from_child(0), packet.life++);
	STRANGER(1, from_child(0), packet.src_member = 1);
	STRANGER(1, from_child(0), packet.incarnation++);
	STRANGER(2, from_child(0), (void)0);		/* by another's port */
	STRANGER(3, from_child(0), (void)0);
	STRANGER(PARENT_PORT, from_child(0), (void)0);
	STRANGER(1, from_child(0), packet.type = MUSTER_PACKET_TREE_DOWN);
	STRANGER(PARENT_PORT, from_parent(), packet.type = MUSTER_PACKET_TREE_UP);
	STRANGER(PARENT_PORT, from_parent(), packet.incarnation++);
	STRANGER(PARENT_PORT, from_parent(), packet.job_key--);
	STRANGER(1, from_parent(), (void)0);
	STRANGER(3, from_child(0), packet.type = MUSTER_PACKET_ABORT; packet.number = 2;
		 packet.length = packet.total = 0);
}

static void what_has_no_place_is_dropped(void **state)
{
	struct muster_packet packet = from_child(0);
	struct muster_packet down = from_parent();

	(void)state;
	contribute(0, 0, 1);
	contribute(0, 0, 1);			/* once more */
	assert_int_equal(counters().drop_duplicate, 1);
	contribute(0, 1 + MUSTER_TREE_PULSES_LIVE, 1);
	packet.number--;
	hand(1, &packet, 1);
	assert_int_equal(counters().drop_window, 2);
	hand(PARENT_PORT, &down, 1);		/* before all have contributed */
	assert_int_equal(counters().drop_duplicate, 2);
	assert_int_equal(counters().contributions, 1);
	assert_int_equal(nr_out, 0);
	contribute(1, 0, 1);
	contribute(2, 0, 1);
	assert_true(out[0].value == 3);
}

/* Against the rules: nobody has the older one's result yet. */
static void who_is_ahead_keeps_others_from_nothing(void **state)
{
	struct muster_packet packet = from_child(0);

	(void)state;
	contribute(0, 0, 1);
	packet.number++;
	hand(1, &packet, 5);
	contribute(1, 0, 1);
	contribute(2, 0, 1);
	assert_int_equal(nr_out, 1);
	assert_int_equal(out[0].packet.number, packet.number - 1);
	assert_true(out[0].value == 3);
}

/* 10^5 packets of which any field may be anything: the group goes on as if there were none. */
static void garbage_changes_nothing(void **state)
{
	uint64_t random = 1;
	uint8_t payload[MUSTER_MTU] = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 100000; i++) {
		struct muster_packet packet = i % 2 ? from_child(i % 3) : from_parent();
		uint32_t nr = 1 + i % 4;

		for (uint32_t j = 0; j < nr; j++) {
			random = random * 6364136223846793005ull + 1442695040888963407ull;
			((uint8_t *)&packet)[random >> 40 & 63] ^= random >> 33;
		}
		((uint8_t *)&packet.job_key)[random >> 60 & 7] ^= 1 + (random >> 52 & 127);
		packet.dst_node = SELF;
		muster_switch_receive(sw, random >> 20 & 7, &packet, payload,
				      i % 5 ? packet.length % (MUSTER_MTU + 1) : random % MUSTER_MTU);
	}
	nothing_else_changed();
	for (uint32_t i = 0; i < 3; i++)
		contribute(i, 0, i);
	assert_true(out[0].value == 3);
}

/* ---- failure ---- */

static void expect_aborts(uint32_t ports, uint8_t status, uint32_t culprit)
{
	uint32_t told = 0;

	for (uint32_t i = 0; i < nr_out; i++) {
		if (out[i].packet.type != MUSTER_PACKET_ABORT)
			continue;
		assert_int_equal(out[i].packet.number, status);
		assert_int_equal(out[i].packet.arg, culprit);
		assert_int_equal(out[i].packet.group, GROUP);
		assert_true(out[i].packet.job_key == KEY);
		assert_false(told >> out[i].port & 1);
		told |= 1u << out[i].port;
	}
	assert_int_equal(told, ports);
}

static void ranks_that_disagree_end_the_group(void **state)
{
	struct muster_packet packet = from_child(1);

	(void)state;
	contribute(0, 0, 1);
	packet.signature.op = MUSTER_REDOP_MAX;
	full = 1u << 1;
	hand(2, &packet, 1);
	assert_true(muster_switch_step(sw));
	full = 0;
	assert_false(muster_switch_step(sw));
	expect_aborts(1u << 1 | 1u << 2 | 1u << 4 | 1u << PARENT_PORT, MUSTER_STATUS_MISMATCH, 1);
	assert_int_equal(out[0].packet.signature.op, MUSTER_REDOP_MAX);
	contribute(2, 0, 1);
	assert_int_equal(counters().drop_failed, 1);
	assert_int_equal(counters().failed, 1);
}

/* It may have joined only when the word had come and found nobody. */
static void who_contributes_to_a_group_that_has_failed_is_told_again(void **state)
{
	struct muster_packet packet = from_child(1);

	(void)state;
	contribute(0, 0, 1);
	packet.signature.op = MUSTER_REDOP_MAX;
	hand(2, &packet, 1);
	assert_false(muster_switch_step(sw));
	nr_out = 0;
	contribute(2, 0, 1);
	assert_false(muster_switch_step(sw));
	expect_aborts(1u << 4, MUSTER_STATUS_MISMATCH, 1);
	assert_int_equal(counters().drop_failed, 1);
	assert_int_equal(counters().failed, 1);
}

static void all_that_must_agree_is_compared(void **state)
{
	(void)state;
#define DISAGREE(what)                                                        \
	do {                                                                  \
		struct muster_switch_group group = figure_2();                \
		struct muster_packet packet = from_child(1);                  \
		assert_int_equal(muster_switch_group_remove(sw, TREE, GROUP), 0); \
		assert_int_equal(muster_switch_group_add(sw, &group), 0);     \
		nr_out = 0;                                                   \
		contribute(0, 0, 1);                                          \
		what;                                                         \
		hand(2, &packet, 1);                                          \
		muster_switch_step(sw);                                       \
		expect_aborts(1u << 1 | 1u << 2 | 1u << 4 | 1u << PARENT_PORT, \
			      MUSTER_STATUS_MISMATCH, 1);                     \
	} while (0)
	DISAGREE(packet.seq_id++);
	DISAGREE(packet.stage++);
	DISAGREE(packet.total = packet.length = 16);
	DISAGREE(packet.total = packet.length = 0);
	DISAGREE(packet.signature.root++);
	DISAGREE(packet.signature.digest++);
	DISAGREE(packet.signature.coll++);
	DISAGREE(packet.signature.type = MUSTER_DTYPE_I64);
}

static void two_that_bring_a_message_disagree(void **state)
{
	struct muster_packet packet;

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		packet = from_child(i);
		packet.signature.op = 0;
		hand(CHILDREN[i].port, &packet, 1);
	}
	muster_switch_step(sw);
	expect_aborts(1u << 1 | 1u << 2 | 1u << 4 | 1u << PARENT_PORT, MUSTER_STATUS_MISMATCH, 1);
}

static void the_loss_of_a_port_ends_the_groups_that_need_it(void **state)
{
	(void)state;
	muster_switch_port_lost(sw, 3);
	assert_false(muster_switch_step(sw));
	assert_int_equal(nr_out, 0);
	muster_switch_port_lost(sw, 4);
	assert_false(muster_switch_step(sw));
	expect_aborts(1u << 1 | 1u << 2 | 1u << PARENT_PORT, MUSTER_STATUS_PEER_LOST, 2);
}

static void who_runs_the_network_may_end_a_group(void **state)
{
	(void)state;
	assert_int_equal(muster_switch_group_fail(sw, TREE, GROUP + 1), -ENOENT);
	assert_int_equal(muster_switch_group_fail(sw, TREE, GROUP), 0);
	assert_false(muster_switch_step(sw));
	expect_aborts(1u << 1 | 1u << 2 | 1u << 4 | 1u << PARENT_PORT, MUSTER_STATUS_PEER_LOST,
		      MUSTER_CULPRIT_NONE);
}

/* Its copy of the last result may still be owed to it: it has had the other one. */
static void who_has_left_may_go(void **state)
{
	struct muster_packet packet = from_parent();

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		contribute(i, 0, 1);
	full = 1u << 4;
	hand(PARENT_PORT, &packet, 3);
	assert_true(muster_switch_step(sw));
	assert_int_equal(muster_switch_child_left(sw, TREE, GROUP, 9999), -ENOENT);
	assert_int_equal(muster_switch_child_left(sw, TREE, GROUP, CHILDREN[2].node), 0);
	gone = 1u << 4;
	muster_switch_port_lost(sw, 4);
	assert_false(muster_switch_step(sw));
	expect_aborts(0, 0, 0);
	muster_switch_port_lost(sw, 2);
	assert_false(muster_switch_step(sw));
	expect_aborts(1u << 1 | 1u << PARENT_PORT, MUSTER_STATUS_PEER_LOST, 1);
}

static void the_loss_of_the_parent_is_told_to_all_children(void **state)
{
	(void)state;
	gone = 1u << PARENT_PORT;
	for (uint32_t i = 0; i < 3; i++)
		contribute(i, 0, 1);
	muster_switch_step(sw);
	expect_aborts(1u << 1 | 1u << 2 | 1u << 4, MUSTER_STATUS_PEER_LOST, MUSTER_CULPRIT_NONE);
}

static void an_abort_is_passed_on_to_all_others(void **state)
{
	struct muster_packet packet = from_parent();

	(void)state;
	packet.type = MUSTER_PACKET_ABORT;
	packet.number = MUSTER_STATUS_MISMATCH;
	packet.arg = 77;
	packet.length = packet.total = 0;
	hand(PARENT_PORT, &packet, 0);
	muster_switch_step(sw);
	expect_aborts(1u << 1 | 1u << 2 | 1u << 4, MUSTER_STATUS_MISMATCH, 77);
}

/* ---- who cannot be reached ---- */

enum { TRUNK = 3, OTHER_TRUNK = 5, SPARE_TRUNK = 0 };

/* With switches at these ports. */
static void open_with(const bool *trunks)
{
	struct muster_switch_config config = {
		.node = SELF, .incarnation = SELF_LIFE, .radix = RADIX, .trunks = trunks,
		.nr_routes = sizeof(ROUTES) / sizeof(*ROUTES), .routes = ROUTES,
	};

	muster_switch_destroy(sw);
	assert_int_equal(muster_switch_create(&config, &world, NULL, &sw), 0);
}

static void open_between_switches(void)
{
	open_with((const bool[RADIX]){ [TRUNK] = true, [OTHER_TRUNK] = true });
}

/* ports: those that have been told of the node, each once, since the last time. */
static void expect_gone(uint32_t node, uint32_t ports)
{
	uint32_t told = 0;

	for (uint32_t i = 0; i < nr_out; i++) {
		assert_int_equal(out[i].packet.type, MUSTER_PACKET_GONE);
		assert_int_equal(out[i].packet.length, 0);
		if (out[i].packet.arg != node)
			continue;
		assert_false(told >> out[i].port & 1);
		told |= 1u << out[i].port;
	}
	assert_int_equal(told, ports);
}

static void gone_from(uint32_t port, uint32_t node)
{
	const struct muster_packet packet = {
		.version = MUSTER_PACKET_VERSION, .type = MUSTER_PACKET_GONE, .arg = node,
	};

	assert_int_equal(muster_switch_receive(sw, port, &packet, NULL, 0), 0);
}

static void whom_a_lost_switch_led_to_is_told_to_all_others(void **state)
{
	(void)state;
	open_between_switches();
	full = 1u << 2 | 1u << TRUNK;
	gone = 1u << OTHER_TRUNK;
	muster_switch_port_lost(sw, OTHER_TRUNK);
	assert_true(muster_switch_step(sw));
	expect_gone(70, 1u << 1 | 1u << 4);
	full = 0;
	assert_false(muster_switch_step(sw));
	expect_gone(70, 1u << 1 | 1u << 2 | 1u << TRUNK | 1u << 4);
	expect_gone(PARENT, 1u << 1 | 1u << 2 | 1u << TRUNK | 1u << 4);
	assert_int_equal(nr_out, 8);
	assert_int_equal(counters().gone, 2);
}

/* Its switch may have another way to it. */
static void nobody_is_named_for_a_host_behind_a_lost_switch(void **state)
{
	const struct muster_switch_group group = figure_2();

	(void)state;
	open_with((const bool[RADIX]){ [4] = true });
	assert_int_equal(muster_switch_group_add(sw, &group), 0);
	muster_switch_port_lost(sw, 4);
	assert_false(muster_switch_step(sw));
	expect_aborts(1u << 1 | 1u << 2 | 1u << PARENT_PORT, MUSTER_STATUS_PEER_LOST, MUSTER_CULPRIT_NONE);
}

/* A switch to which no shortest way leads, as it only forwards: others hear it by that one alone. */
static void who_is_gone_is_told_where_no_way_leads(void **state)
{
	(void)state;
	open_with((const bool[RADIX]){ [TRUNK] = true, [OTHER_TRUNK] = true, [SPARE_TRUNK] = true });
	gone_from(TRUNK, 4);
	assert_false(muster_switch_step(sw));
	expect_gone(4, 1u << 1 | 1u << 2 | 1u << 4 | 1u << OTHER_TRUNK | 1u << SPARE_TRUNK);
}

/* Also to the node itself, and once: on networks that have circles as well. */
static void who_is_gone_for_others_is_told_on(void **state)
{
	(void)state;
	open_between_switches();
	for (uint32_t i = 0; i < 3; i++) {
		gone_from(TRUNK, 4);
		gone_from(OTHER_TRUNK, 4);
		assert_false(muster_switch_step(sw));
	}
	expect_gone(4, 1u << 1 | 1u << 2 | 1u << 4 | 1u << OTHER_TRUNK);
	assert_int_equal(nr_out, 4);
	assert_int_equal(counters().gone, 1);
}

static void who_comes_to_a_place_later_is_told_too(void **state)
{
	(void)state;
	open_between_switches();
	gone = 1u << 2;
	gone_from(TRUNK, 3);
	assert_false(muster_switch_step(sw));
	expect_gone(3, 1u << 1 | 1u << 4 | 1u << OTHER_TRUNK);
	gone = nr_out = 0;
	assert_false(muster_switch_step(sw));
	expect_gone(3, 1u << 2);
	nr_out = 0;
	muster_switch_port_lost(sw, 1);
	assert_false(muster_switch_step(sw));
	expect_gone(3, 1u << 1);
	assert_int_equal(counters().gone, 1);
}

static void only_switches_say_who_is_gone(void **state)
{
	(void)state;
	open_between_switches();
	gone_from(1, 2);
	assert_int_equal(counters().drop_malformed, 1);
	gone_from(TRUNK, 12345);
	assert_false(muster_switch_step(sw));
	assert_int_equal(nr_out, 0);
	assert_int_equal(counters().gone, 0);
}

/* A host's packets that wait for a switch, and what that switch had taken of them, go at once. */
static void what_waits_for_a_lost_switch_is_dropped(void **state)
{
	const struct muster_packet packet = {
		.version = MUSTER_PACKET_VERSION, .type = MUSTER_PACKET_DATA, .src_node = 1, .dst_node = 70,
	};

	(void)state;
	for (uint32_t turns = 0; turns < 4; turns++) {
		open_between_switches();
		gone = 0;
		for (uint32_t i = 0; i <= MUSTER_SWITCH_CREDITS; i++)
			assert_int_equal(muster_switch_receive(sw, 1, &packet, NULL, 0), 0);
		assert_int_equal(counters().held, 1);
		for (uint32_t i = 0; i < turns; i++)
			assert_true(muster_switch_step(sw));
		gone = 1u << OTHER_TRUNK;
		muster_switch_port_lost(sw, OTHER_TRUNK);
		assert_false(muster_switch_step(sw));
		assert_int_equal(counters().flows, 0);
		assert_int_equal(counters().drop_route, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SWITCH_TEST(malformed_ones_are_dropped),
		SWITCH_TEST(what_is_longer_than_the_tree_takes_is_dropped),
		SWITCH_TEST(strangers_are_dropped),
		SWITCH_TEST(what_has_no_place_is_dropped),
		SWITCH_TEST(who_is_ahead_keeps_others_from_nothing),
		SWITCH_TEST(garbage_changes_nothing),
		SWITCH_TEST(ranks_that_disagree_end_the_group),
		SWITCH_TEST(who_contributes_to_a_group_that_has_failed_is_told_again),
		SWITCH_TEST(all_that_must_agree_is_compared),
		SWITCH_TEST(two_that_bring_a_message_disagree),
		SWITCH_TEST(the_loss_of_a_port_ends_the_groups_that_need_it),
		SWITCH_TEST(who_has_left_may_go),
		SWITCH_TEST(who_runs_the_network_may_end_a_group),
		SWITCH_TEST(the_loss_of_the_parent_is_told_to_all_children),
		SWITCH_TEST(an_abort_is_passed_on_to_all_others),
		SWITCH_TEST(what_waits_for_a_lost_switch_is_dropped),
		SWITCH_TEST(whom_a_lost_switch_led_to_is_told_to_all_others),
		SWITCH_TEST(nobody_is_named_for_a_host_behind_a_lost_switch),
		SWITCH_TEST(who_is_gone_is_told_where_no_way_leads),
		SWITCH_TEST(who_is_gone_for_others_is_told_on),
		SWITCH_TEST(who_comes_to_a_place_later_is_told_too),
		SWITCH_TEST(only_switches_say_who_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
