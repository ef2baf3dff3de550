// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One switch: the paper's figures 1b and 2, the order of combination, slow ports, groups and
 * forwarding.
 */
#include "test_switch.h"

/* ---- figure 2 ---- */

/*
 * Group 0x1 on radix 6; the ports are ours: the text gives none. One packet with the handle
 * comes in; one goes out to each member's port, made for who is there, and to no other.
 */
static void figure_2_one_in_one_out_for_each_port_of_the_group(void **state)
{
	struct muster_packet down = from_parent();
	uint32_t i;

	(void)state;
	for (i = 0; i < 3; i++)
		contribute(i, 0, i + 1);
	assert_int_equal(nr_out, 1);
	assert_int_equal(out[0].port, PARENT_PORT);
	assert_int_equal(out[0].packet.type, MUSTER_PACKET_TREE_UP);
	assert_int_equal(out[0].packet.dst_node, PARENT);
	assert_int_equal(out[0].packet.src_node, SELF);
	assert_int_equal(out[0].packet.incarnation, SELF_LIFE);
	assert_int_equal(out[0].packet.group, GROUP);
	assert_true(out[0].value == 6);
	hand(PARENT_PORT, &down, 100);
	assert_int_equal(nr_out, 1 + 3);
	for (i = 0; i < 3; i++) {
		const struct out *copy = &out[1 + i];

		assert_int_equal(copy->port, CHILDREN[i].port);
		assert_false(copy->once);
		assert_int_equal(copy->packet.type, MUSTER_PACKET_TREE_DOWN);
		assert_int_equal(copy->packet.dst_node, CHILDREN[i].node);
		assert_int_equal(copy->packet.dst_vp, CHILDREN[i].vp);
		assert_int_equal(copy->packet.context, CHILDREN[i].context);
		assert_int_equal(copy->packet.life, CHILDREN[i].life);
		assert_int_equal(copy->packet.src_node, SELF);
		assert_int_equal(copy->packet.incarnation, SELF_LIFE);
		assert_int_equal(copy->packet.number, 17);
		assert_int_equal(copy->packet.seq_id, 6);
		assert_int_equal(copy->packet.stage, 3);
		assert_true(copy->packet.job_key == KEY);
		assert_true(copy->value == 100);
	}
	assert_int_equal(counters().copies, 3);
	assert_false(muster_switch_step(sw));
}

/* The multicast that may be lost goes first, to all; then the reliable ones. */
static void the_result_goes_down_twice(void **state)
{
	struct muster_packet down = from_parent();
	uint32_t i;

	(void)state;
	for (i = 0; i < 3; i++)
		contribute(i, 0, 1);
	down.flags = MUSTER_PACKET_ONCE;
	hand(PARENT_PORT, &down, 100);
	assert_int_equal(nr_out, 1 + 6);
	for (i = 0; i < 6; i++) {
		assert_int_equal(out[1 + i].once, i < 3);
		assert_int_equal(out[1 + i].packet.flags, i < 3 ? MUSTER_PACKET_ONCE : 0);
		assert_int_equal(out[1 + i].port, CHILDREN[i % 3].port);
	}
	down.flags = 0;
	hand(PARENT_PORT, &down, 100);
	assert_int_equal(nr_out, 1 + 6);
	assert_int_equal(counters().drop_duplicate, 1);
}

/* Also while the first one waits for a port. */
static void a_second_result_changes_nothing(void **state)
{
	struct muster_packet down = from_parent();
	uint32_t i;

	(void)state;
	for (i = 0; i < 3; i++)
		contribute(i, 0, 1);
	full = 1u << 2;
	hand(PARENT_PORT, &down, 100);
	hand(PARENT_PORT, &down, 200);
	full = 0;
	assert_false(muster_switch_step(sw));
	assert_int_equal(nr_out, 1 + 3);
	assert_true(out[3].value == 100);
	assert_int_equal(counters().drop_duplicate, 1);
}

static void contribute_bare(uint32_t i, uint32_t pulse)
{
	struct muster_packet packet = from_child(i);

	packet.pulse = pulse;
	packet.flags = MUSTER_PACKET_BARE;
	hand(CHILDREN[i].port, &packet, 1);
}

static void who_wants_no_data_only_hears_that_it_is_there(void **state)
{
	struct muster_packet down = from_parent();

	(void)state;
	contribute_bare(0, 0);
	contribute(1, 0, 1);
	contribute_bare(2, 0);
	assert_int_equal(out[0].packet.flags, 0);
	assert_true(out[0].value == 3);
	hand(PARENT_PORT, &down, 100);
	assert_int_equal(nr_out, 1 + 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(out[1 + i].packet.length, i == 1 ? 8 : 0);
	assert_int_equal(out[1].packet.total, 0);
	assert_true(out[2].value == 100);
}

static void where_nobody_wants_data_none_comes_down(void **state)
{
	struct muster_packet down = from_parent();

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		contribute_bare(i, 0);
	assert_int_equal(out[0].packet.flags, MUSTER_PACKET_BARE);
	assert_true(out[0].value == 3);
	hand(PARENT_PORT, &down, 100);
	assert_int_equal(nr_out, 1);
	assert_int_equal(counters().drop_malformed, 1);
	down.total = down.length = 0;
	hand(PARENT_PORT, &down, 0);
	assert_int_equal(nr_out, 1 + 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(out[1 + i].packet.length, 0);
}

/* ---- order ---- */

static void arrival_does_not_decide_the_order(void **state)
{
	static const uint8_t orders[6][3] = {
		{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 },
	};
	static const double values[3] = { 1e16, 1, -1e16 };	/* 0 in order; else 1 or 2 */
	struct muster_packet down = from_parent();
	uint32_t i, j;

	(void)state;
	for (i = 0; i < 6; i++) {
		nr_out = 0;
		for (j = 0; j < 3; j++)
			contribute(orders[i][j], i, values[orders[i][j]]);
		assert_int_equal(nr_out, 1);
		assert_true(out[0].value == (values[0] + values[1]) + values[2]);
		down.pulse = i;
		hand(PARENT_PORT, &down, 0);
	}
}

/* Whoever brings it, and whenever: the result is that, and as long. */
static void one_child_brings_a_message_without_operation(void **state)
{
	struct muster_packet down = from_parent(), packet;

	(void)state;
	down.signature.op = 0;
	for (uint32_t i = 0; i < 9; i++) {
		nr_out = 0;
		for (uint32_t j = 0; j < 3; j++) {
			uint32_t who = (i / 3 + j) % 3;

			packet = from_child(who);
			packet.signature.op = 0;
			packet.pulse = i;
			if (who != i % 3)
				packet.length = packet.total = 0;
			hand(CHILDREN[who].port, &packet, 100 + who);
		}
		assert_int_equal(nr_out, 1);
		assert_int_equal(out[0].packet.length, 8);
		assert_true(out[0].value == 100 + i % 3);
		down.pulse = i;
		hand(PARENT_PORT, &down, out[0].value);
		assert_int_equal(nr_out, 1 + 3);
	}
}

/* Nothing goes up where nobody below has it, and what comes down may be as long as the tree takes. */
static void a_message_may_come_from_above(void **state)
{
	struct muster_packet down = from_parent(), packet;
	double payload[9] = { 7 };

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		packet = from_child(i);
		packet.signature.op = 0;
		packet.length = packet.total = 0;
		hand(CHILDREN[i].port, &packet, 0);
	}
	assert_int_equal(out[0].packet.length, 0);
	down.signature.op = 0;
	down.length = down.total = 72;
	muster_switch_receive(sw, PARENT_PORT, &down, payload, 72);
	assert_int_equal(nr_out, 1);
	assert_int_equal(counters().drop_malformed, 1);
	down.length = down.total = 64;
	muster_switch_receive(sw, PARENT_PORT, &down, payload, 64);
	assert_int_equal(nr_out, 1 + 3);
	assert_int_equal(out[1].packet.length, 64);
	assert_true(out[1].value == 7);
}

/* ---- streaming ---- */

/* Figure 1b counts ports from 1. */
static const uint8_t FIGURE_1B[8] = { 1, 2, 3, 4, 5, 8, 10, 14 };

static struct muster_switch *open_figure_1b(void)
{
	struct muster_switch_config config = { .node = SELF, .incarnation = SELF_LIFE, .radix = RADIX_MOST };
	struct muster_switch_child children[8];
	struct muster_switch_group group = {
		.tree = TREE, .type = MUSTER_SWITCH_SAT, .group = GROUP, .job = JOB, .key = KEY,
		.parent_port = 15, .parent_node = PARENT, .parent_incarnation = PARENT_LIFE,
		.nr_children = 8, .children = children,
	};
	struct muster_switch *figure;

	for (uint32_t i = 0; i < 8; i++)
		children[i] = (struct muster_switch_child){
			.node = FIGURE_1B[i], .incarnation = 100, .port = FIGURE_1B[i] - 1, .member = i,
		};
	assert_int_equal(muster_switch_create(&config, &world, NULL, &figure), 0);
	assert_int_equal(muster_switch_group_add(figure, &group), 0);
	return figure;
}

static struct muster_packet from_source(uint32_t i)
{
	struct muster_packet packet = from_child(0);

	packet.src_node = FIGURE_1B[i];
	packet.incarnation = 100;
	packet.src_vp = packet.context = packet.life = 0;
	packet.src_member = i;
	return packet;
}

/*
 * Eight sources on radix 16. Left: C1 has ports 1 and 2, C2 adds 3, then 4, C3 adds 5, C4
 * adds 8. Right: what comes from 10 goes through C6 to C7, which adds 14. The top adds both.
 */
static void figure_1b_two_half_rings_and_the_top_unit(void **state)
{
	static const double v[8] = { 0.1, 1e8, -1e8, 0.2, 0.3, 1e-3, 1, 1e16 };
	double left = ((((v[0] + v[1]) + v[2]) + v[3]) + v[4]) + v[5], right = v[6] + v[7];
	double in_a_row = (left + v[6]) + v[7];
	struct muster_switch *figure = open_figure_1b();
	uint64_t random = 7;

	(void)state;
	assert_true(left + right != in_a_row);	/* these show the difference */
	for (uint32_t pulse = 0; pulse < 200; pulse++) {
		struct muster_packet down = from_parent();
		uint8_t order[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };

		nr_out = 0;
		for (uint32_t i = 8; i--;) {
			random = random * 6364136223846793005ull + 1442695040888963407ull;
			uint32_t j = (random >> 33) % (i + 1), who = order[j];
			struct muster_packet packet = from_source(who);

			order[j] = order[i];
			packet.pulse = pulse;
			assert_int_equal(muster_switch_receive(figure, FIGURE_1B[who] - 1, &packet,
							       &v[who], 8), 0);
		}
		assert_int_equal(nr_out, 1);
		assert_int_equal(out[0].port, 15);
		assert_true(out[0].value == left + right);
		down.pulse = pulse;
		assert_int_equal(muster_switch_receive(figure, 15, &down, &v[0], 8), 0);
		assert_int_equal(nr_out, 1 + 8);	/* the result once, reliably */
		for (uint32_t i = 1; i < nr_out; i++) {
			assert_false(out[i].once);
			assert_int_equal(out[i].port, FIGURE_1B[i - 1] - 1);
		}
	}
	muster_switch_destroy(figure);
}

/* Radix 6 has two units on the left, ports 0 to 3, and one on the right. */
static void a_half_ring_may_have_no_sources(void **state)
{
	static const uint8_t ports[2][2] = { { 1, 3 }, { 4, 5 } };
	struct muster_switch_child children[2];
	struct muster_switch_group group = {
		.tree = 9, .type = MUSTER_SWITCH_SAT, .job = JOB, .key = KEY,
		.parent_port = MUSTER_SWITCH_NO_PORT, .nr_children = 2, .children = children,
	};

	(void)state;
	for (group.group = 1; group.group <= 2; group.group++) {
		for (uint32_t i = 0; i < 2; i++) {
			children[i] = CHILDREN[i];
			children[i].port = ports[group.group - 1][i];
		}
		assert_int_equal(muster_switch_group_add(sw, &group), 0);
		nr_out = 0;
		for (uint32_t i = 2; i--;) {
			struct muster_packet packet = from_child(i);

			packet.tree = 9;
			packet.group = group.group;
			packet.signature.op = MUSTER_REDOP_PROD;
			hand(children[i].port, &packet, 10 + i);
		}
		assert_int_equal(nr_out, 2);
		assert_true(out[0].value == 110 && out[1].value == 110);
	}
}

static void a_streaming_tree_takes_a_whole_mtu_and_sends_nothing_twice(void **state)
{
	struct muster_switch *figure = open_figure_1b();
	static double payload[MUSTER_MTU / 8];
	struct muster_packet down = from_parent();
	struct muster_switch_counters now;

	(void)state;
	for (uint32_t i = 0; i < 8; i++) {
		struct muster_packet packet = from_source(i);

		packet.length = packet.total = MUSTER_MTU;
		muster_switch_receive(figure, FIGURE_1B[i] - 1, &packet, payload, MUSTER_MTU);
	}
	assert_int_equal(nr_out, 1);
	assert_int_equal(out[0].packet.length, MUSTER_MTU);
	down.length = down.total = MUSTER_MTU;
	down.flags = MUSTER_PACKET_ONCE;
	muster_switch_receive(figure, 15, &down, payload, MUSTER_MTU);
	assert_int_equal(nr_out, 1);
	muster_switch_counters_get(figure, &now);
	assert_int_equal(now.drop_malformed, 1);
	down.flags = 0;
	muster_switch_receive(figure, 15, &down, payload, MUSTER_MTU);
	assert_int_equal(nr_out, 1 + 8);
	muster_switch_destroy(figure);
}

static void two_streaming_trees_at_most_are_at_a_switch(void **state)
{
	struct muster_switch_group group = figure_2();

	(void)state;
	group.type = MUSTER_SWITCH_SAT;
	group.group = 2;
	assert_int_equal(muster_switch_group_add(sw, &group), -EINVAL);	/* that tree is an LLT */
	for (group.tree = 10; group.tree < 12; group.tree++)
		assert_int_equal(muster_switch_group_add(sw, &group), 0);
	assert_int_equal(muster_switch_group_add(sw, &group), -EBUSY);
	group.tree = 11;
	group.group = 3;
	assert_int_equal(muster_switch_group_add(sw, &group), 0);
	group.tree = 12;
	group.type = MUSTER_SWITCH_LLT;
	assert_int_equal(muster_switch_group_add(sw, &group), 0);
	group.tree = 13;
	group.type = MUSTER_SWITCH_SAT;
	assert_int_equal(muster_switch_group_remove(sw, 10, 2), 0);
	assert_int_equal(muster_switch_group_add(sw, &group), 0);
}

/* ---- slow ports ---- */

static void a_slow_port_holds_up_no_other(void **state)
{
	struct muster_packet down = from_parent();
	uint32_t pulse, i;

	(void)state;
	full = 1u << 2;
	for (i = 0; i < 3; i++)
		contribute(i, 0, 1);
	hand(PARENT_PORT, &down, 5);
	assert_int_equal(nr_out, 1 + 2);
	assert_true(muster_switch_step(sw));
	for (pulse = 1; pulse < MUSTER_TREE_PULSES_LIVE; pulse++)	/* others go on */
		contribute(0, pulse, 1);
	assert_int_equal(counters().contributions, 3 + MUSTER_TREE_PULSES_LIVE - 1);
	full = 0;
	assert_false(muster_switch_step(sw));
	assert_int_equal(nr_out, 1 + 3);
	assert_int_equal(out[3].port, 2);
}

/* Its owner has gone on with the other copy: the one that waits is not needed any more. */
static void a_copy_that_nobody_needs_is_spared(void **state)
{
	struct muster_packet down = from_parent();
	uint32_t i;

	(void)state;
	for (i = 0; i < 3; i++)
		contribute(i, 0, 1);
	full = 1u << 2;
	hand(PARENT_PORT, &down, 5);
	contribute(1, MUSTER_TREE_PULSES_LIVE - 1, 1);	/* may be sent before that result */
	assert_true(muster_switch_step(sw));
	assert_int_equal(counters().copies_spared, 0);
	for (i = 1; i < MUSTER_TREE_PULSES_LIVE - 1; i++)
		contribute(1, i, 1);
	contribute(1, MUSTER_TREE_PULSES_LIVE, 1);	/* not before */
	assert_int_equal(counters().copies_spared, 1);
	full = 0;
	assert_false(muster_switch_step(sw));
	assert_int_equal(nr_out, 1 + 2);
}

static void a_full_port_up_is_tried_again(void **state)
{
	uint32_t i;

	(void)state;
	full = 1u << PARENT_PORT;
	for (i = 0; i < 3; i++)
		contribute(i, 0, 1);
	assert_int_equal(nr_out, 0);
	assert_true(muster_switch_step(sw));
	full = 0;
	assert_false(muster_switch_step(sw));
	assert_int_equal(nr_out, 1);
	assert_true(out[0].value == 3);
}

/* ---- groups ---- */

static void groups_are_checked(void **state)
{
	struct muster_switch_group group;
	struct muster_switch_child children[7];

	(void)state;
#define GROUP_IS(ret, what)                                        \
	do {                                                       \
		group = figure_2();                                \
		group.group = 0x2;                                 \
		memcpy(children, CHILDREN, sizeof(CHILDREN));      \
		group.children = children;                         \
		what;                                              \
		assert_int_equal(muster_switch_group_add(sw, &group), ret); \
	} while (0)
	GROUP_IS(-EEXIST, group.group = GROUP);
	GROUP_IS(-EINVAL, group.group = 0);
	GROUP_IS(-EINVAL, group.nr_children = 0);
	GROUP_IS(-EINVAL, group.nr_children = 7);
	GROUP_IS(-EINVAL, group.payload_max = MUSTER_MTU + 1);
	GROUP_IS(-EINVAL, group.parent_port = RADIX);
	GROUP_IS(-EINVAL, group.parent_node = 3);
	GROUP_IS(-EINVAL, group.parent_node = SELF);
	GROUP_IS(-EINVAL, children[1].port = RADIX);
	GROUP_IS(-EINVAL, children[1].port = PARENT_PORT);
	GROUP_IS(-EINVAL, children[1].node = SELF);
	GROUP_IS(-EINVAL, children[1].vp = MUSTER_VPS_MAX);
	GROUP_IS(-EINVAL, group.type = MUSTER_SWITCH_SAT + 1);
	GROUP_IS(-EINVAL, group.segments = 16);			/* of a low-latency tree */
	GROUP_IS(-EINVAL, group.type = MUSTER_SWITCH_SAT; group.tree = 9; group.segments = 1);
	GROUP_IS(-EINVAL, group.type = MUSTER_SWITCH_SAT; group.tree = 9; group.segments = 33);
	GROUP_IS(-EINVAL, group.type = MUSTER_SWITCH_SAT; group.tree = 9; children[0].port = 3);
	GROUP_IS(-EOPNOTSUPP, children[1].port = children[0].port);
	GROUP_IS(0, (void)0);
	assert_int_equal(counters().groups, 2);
	assert_int_equal(muster_switch_group_remove(sw, TREE, 0x2), 0);
	assert_int_equal(muster_switch_group_remove(sw, TREE, 0x2), -ENOENT);
}

static void groups_are_bounded(void **state)
{
	struct muster_switch_group group = figure_2();
	const uint64_t one = counters().bytes, places = 2 * MUSTER_TREE_PULSES_LIVE;

	(void)state;
	group.payload_max = 1;
	for (group.group = 2; group.group <= MUSTER_SWITCH_GROUPS_MAX; group.group++)
		assert_int_equal(muster_switch_group_add(sw, &group), 0);
	assert_int_equal(muster_switch_group_add(sw, &group), -ENOSPC);
	assert_true(one > places * 5 * 64 && one < places * 5 * 64 + 10240);
}

/* ---- forwarding ---- */

static void packets_of_others_are_forwarded_by_node(void **state)
{
	struct muster_packet packet = { .version = MUSTER_PACKET_VERSION, .type = MUSTER_PACKET_DATA,
					.src_node = 1, .dst_node = 3, .length = 8, .job_key = 99 };

	(void)state;
	hand(1, &packet, 2.5);
	assert_int_equal(nr_out, 1);
	assert_int_equal(out[0].port, 3);
	assert_memory_equal(&out[0].packet, &packet, sizeof(packet));
	assert_true(out[0].value == 2.5);
	packet.dst_node = 70;
	hand(1, &packet, 2.5);
	assert_int_equal(out[1].port, 5);
	packet.dst_node = 71;
	hand(1, &packet, 2.5);			/* nobody */
	packet.src_node = packet.dst_node = 3;
	hand(3, &packet, 2.5);			/* back to where it came from */
	assert_int_equal(nr_out, 2);
	assert_int_equal(counters().drop_route, 2);
	assert_int_equal(counters().forwarded, 2);
}

/* It waits, what is too much stays with its sender, and what others send passes it. */
static void a_blocked_job_blocks_no_link(void **state)
{
	struct muster_packet blocked = { .version = MUSTER_PACKET_VERSION, .job = 1, .src_node = 1,
					 .dst_node = 3, .type = MUSTER_PACKET_DATA };
	struct muster_packet other = blocked;

	(void)state;
	other.job = 2;
	other.dst_node = 2;
	full = 1u << 3;
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(muster_switch_receive(sw, 1, &blocked, NULL, 0),
				 i < MUSTER_SWITCH_CREDITS ? 0 : -EAGAIN);
	assert_int_equal(muster_switch_receive(sw, 1, &other, NULL, 0), 0);
	assert_int_equal(nr_out, 1);
	assert_int_equal(counters().held, MUSTER_SWITCH_CREDITS);
	assert_int_equal(counters().held_back, 1000 - MUSTER_SWITCH_CREDITS);
	assert_true(muster_switch_step(sw));
	full = 0;
	assert_false(muster_switch_step(sw));
	assert_int_equal(nr_out, 1 + MUSTER_SWITCH_CREDITS);
	assert_int_equal(counters().held + counters().flows, 0);
	assert_int_equal(muster_switch_receive(sw, 1, &blocked, NULL, 0), 0);
	assert_int_equal(nr_out, 2 + MUSTER_SWITCH_CREDITS);
}

/* A result on its way through a switch that has no part in its tree. */
static void what_may_be_lost_is_forwarded_so(void **state)
{
	struct muster_packet packet = from_parent();

	(void)state;
	packet.dst_node = 3;
	packet.flags = MUSTER_PACKET_ONCE;
	hand(PARENT_PORT, &packet, 1);
	assert_true(out[0].once);
	full = 1u << 3;
	hand(PARENT_PORT, &packet, 1);		/* lost, not held back */
	assert_int_equal(counters().held_back, 0);
	assert_int_equal(nr_out, 1);
}

static void configurations_are_checked(void **state)
{
	struct muster_switch_config config;
	struct muster_switch_route routes[2];
	struct muster_switch *other;

	(void)state;
#define CONFIG_IS(ret, what)                                                  \
	do {                                                                  \
		memcpy(routes, ROUTES, sizeof(routes));                       \
		config = (struct muster_switch_config){ .node = SELF, .radix = RADIX, \
						       .nr_routes = 2, .routes = routes }; \
		what;                                                         \
		assert_int_equal(muster_switch_create(&config, &world, NULL, &other), ret); \
	} while (0)
	CONFIG_IS(-EINVAL, config.radix = 1);
	CONFIG_IS(-EINVAL, config.radix = MUSTER_SWITCH_RADIX_MAX + 1);
	CONFIG_IS(-EINVAL, config.node = MUSTER_NODE_AGGREGATION - 1);
	CONFIG_IS(-EINVAL, config.node = MUSTER_NODES_MAX);
	CONFIG_IS(-EINVAL, routes[1].port = RADIX);
	CONFIG_IS(-EINVAL, routes[1].node = MUSTER_NODES_MAX);
	CONFIG_IS(-EINVAL, routes[1].node = routes[0].node);
	CONFIG_IS(-EINVAL, routes[1].node = SELF);
	CONFIG_IS(0, config.node = 0; config.radix = 0);
	muster_switch_destroy(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SWITCH_TEST(figure_2_one_in_one_out_for_each_port_of_the_group),
		SWITCH_TEST(the_result_goes_down_twice),
		SWITCH_TEST(a_second_result_changes_nothing),
		SWITCH_TEST(who_wants_no_data_only_hears_that_it_is_there),
		SWITCH_TEST(where_nobody_wants_data_none_comes_down),
		SWITCH_TEST(arrival_does_not_decide_the_order),
		SWITCH_TEST(one_child_brings_a_message_without_operation),
		SWITCH_TEST(a_message_may_come_from_above),
		SWITCH_TEST(figure_1b_two_half_rings_and_the_top_unit),
		SWITCH_TEST(a_half_ring_may_have_no_sources),
		SWITCH_TEST(a_streaming_tree_takes_a_whole_mtu_and_sends_nothing_twice),
		SWITCH_TEST(two_streaming_trees_at_most_are_at_a_switch),
		SWITCH_TEST(a_slow_port_holds_up_no_other),
		SWITCH_TEST(a_copy_that_nobody_needs_is_spared),
		SWITCH_TEST(a_full_port_up_is_tried_again),
		SWITCH_TEST(groups_are_checked),
		SWITCH_TEST(groups_are_bounded),
		SWITCH_TEST(packets_of_others_are_forwarded_by_node),
		SWITCH_TEST(a_blocked_job_blocks_no_link),
		SWITCH_TEST(what_may_be_lost_is_forwarded_so),
		SWITCH_TEST(configurations_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
