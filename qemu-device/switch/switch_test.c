// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One switch with the test at its ports: the paper's figure 2, what it drops and counts,
 * whom it tells of a failure, and forwarding. Ports say -EAGAIN as the test likes.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "switch.h"

enum {
	RADIX = 6, RADIX_MOST = 16, OUT_MAX = 4096, SELF = MUSTER_NODE_AGGREGATION + 4, SELF_LIFE = 11,
	PARENT = MUSTER_NODE_AGGREGATION + 9, PARENT_LIFE = 12, PARENT_PORT = 5,
	JOB = 2, TREE = 1, GROUP = 0x1,
};

#define KEY 0x1122334455667788ull

struct out {
	uint32_t port;
	bool once;
	struct muster_packet packet;
	double value;
};

static struct muster_switch *sw;
static struct out out[OUT_MAX];
static uint32_t nr_out;
static uint32_t full;		/* mask of ports */
static uint32_t gone;

static void note(uint32_t port, bool once, const struct muster_packet *packet, const void *payload)
{
	assert_in_range(port, 0, RADIX_MOST - 1);
	assert_in_range(nr_out, 0, OUT_MAX - 1);
	out[nr_out] = (struct out){ .port = port, .once = once, .packet = *packet };
	if (packet->length >= 8)
		memcpy(&out[nr_out].value, payload, 8);
	nr_out++;
}

static int port_send(void *world, uint32_t port, const struct muster_packet *packet,
		     const void *payload)
{
	(void)world;
	if (gone >> port & 1)
		return -EHOSTUNREACH;
	if (full >> port & 1)
		return -EAGAIN;
	note(port, false, packet, payload);
	return 0;
}

static void port_send_once(void *world, uint32_t port, const struct muster_packet *packet,
			   const void *payload)
{
	(void)world;
	if (!(full >> port & 1))
		note(port, true, packet, payload);
}

static void *world_alloc(void *world, size_t bytes)
{
	(void)world;
	return calloc(1, bytes);
}

static void world_free(void *world, void *p, size_t bytes)
{
	(void)world;
	(void)bytes;
	free(p);
}

static const struct muster_switch_world world = {
	.send = port_send, .send_once = port_send_once, .alloc = world_alloc, .free = world_free,
};

/* Hosts 1, 2 and 4 are at ports 1, 2 and 4; the parent is behind port 5. */
static const struct muster_switch_child CHILDREN[] = {
	{ .node = 1, .incarnation = 101, .port = 1, .vp = 31, .context = 41, .life = 51, .member = 0 },
	{ .node = 2, .incarnation = 102, .port = 2, .vp = 32, .context = 42, .life = 52, .member = 1 },
	{ .node = 4, .incarnation = 104, .port = 4, .vp = 34, .context = 44, .life = 54, .member = 2 },
};

static struct muster_switch_group figure_2(void)
{
	return (struct muster_switch_group){
		.tree = TREE, .group = GROUP, .job = JOB, .key = KEY, .payload_max = 64,
		.parent_port = PARENT_PORT, .parent_node = PARENT, .parent_incarnation = PARENT_LIFE,
		.nr_children = 3, .children = CHILDREN,
	};
}

static const struct muster_switch_route ROUTES[] = {
	{ 1, 1 }, { 2, 2 }, { 3, 3 }, { 4, 4 }, { 70, 5 }, { PARENT, 5 },
};

static int open_switch(void **state)
{
	struct muster_switch_config config = {
		.node = SELF, .incarnation = SELF_LIFE, .radix = RADIX,
		.nr_routes = sizeof(ROUTES) / sizeof(*ROUTES), .routes = ROUTES,
	};
	struct muster_switch_group group = figure_2();

	(void)state;
	nr_out = full = gone = 0;
	assert_int_equal(muster_switch_create(&config, &world, NULL, &sw), 0);
	assert_int_equal(muster_switch_group_add(sw, &group), 0);
	return 0;
}

static int close_switch(void **state)
{
	(void)state;
	muster_switch_destroy(sw);
	return 0;
}

static struct muster_packet from_child(uint32_t i)
{
	return (struct muster_packet){
		.version = MUSTER_PACKET_VERSION, .type = MUSTER_PACKET_TREE_UP, .job = JOB,
		.seq_id = 6, .stage = 3, .src_node = CHILDREN[i].node, .dst_node = SELF,
		.src_vp = CHILDREN[i].vp, .context = CHILDREN[i].context, .life = CHILDREN[i].life,
		.src_member = CHILDREN[i].member, .number = 17, .total = 8, .length = 8,
		.signature = { .type = MUSTER_DTYPE_F64, .op = MUSTER_REDOP_SUM, .digest = 5 },
		.incarnation = CHILDREN[i].incarnation, .tree = TREE, .group = GROUP,
		.job_key = KEY,
	};
}

static struct muster_packet from_parent(void)
{
	struct muster_packet packet = from_child(0);

	packet.type = MUSTER_PACKET_TREE_DOWN;
	packet.src_node = PARENT;
	packet.incarnation = PARENT_LIFE;
	packet.src_vp = packet.src_member = packet.context = packet.life = 0;
	return packet;
}

static void hand(uint32_t port, const struct muster_packet *packet, double value)
{
	double payload[8] = { value };

	assert_int_equal(muster_switch_receive(sw, port, packet, payload, packet->length), 0);
}

static void contribute(uint32_t i, uint32_t pulse, double value)
{
	struct muster_packet packet = from_child(i);

	packet.pulse = pulse;
	hand(CHILDREN[i].port, &packet, value);
}

static struct muster_switch_counters counters(void)
{
	struct muster_switch_counters now;

	muster_switch_counters_get(sw, &now);
	return now;
}

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
	for (pulse = 1; pulse < MUSTER_PULSES_LIVE; pulse++)	/* others go on */
		contribute(0, pulse, 1);
	assert_int_equal(counters().contributions, 3 + 3);
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
	contribute(1, MUSTER_PULSES_LIVE - 1, 1);	/* may be sent before that result */
	assert_true(muster_switch_step(sw));
	assert_int_equal(counters().copies_spared, 0);
	contribute(1, 1, 1);
	contribute(1, 2, 1);
	contribute(1, MUSTER_PULSES_LIVE, 1);		/* not before */
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
	MALFORMED(packet.type = MUSTER_PACKET_ABORT);		/* with data */
	MALFORMED(packet.type = MUSTER_PACKET_ABORT; packet.length = 0; packet.number = 0);
	MALFORMED(packet.type = MUSTER_PACKET_ABORT; packet.length = 0;
		  packet.number = MUSTER_STATUS_FLUSHED + 1);
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
	contribute(0, 1 + MUSTER_PULSES_LIVE, 1);
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
	uint64_t one = counters().bytes;

	(void)state;
	group.payload_max = 1;
	for (group.group = 2; group.group <= MUSTER_SWITCH_GROUPS_MAX; group.group++)
		assert_int_equal(muster_switch_group_add(sw, &group), 0);
	assert_int_equal(muster_switch_group_add(sw, &group), -ENOSPC);
	assert_true(one > 8 * 5 * 64 && one < 8 * 5 * 64 + 2048);
}

/* ---- forwarding ---- */

static void packets_of_others_are_forwarded_by_node(void **state)
{
	struct muster_packet packet = { .version = MUSTER_PACKET_VERSION, .type = MUSTER_PACKET_DATA,
					.dst_node = 3, .length = 8, .job_key = 99 };

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
	packet.dst_node = 3;
	hand(3, &packet, 2.5);			/* back to where it came from */
	assert_int_equal(nr_out, 2);
	assert_int_equal(counters().drop_route, 2);
	assert_int_equal(counters().forwarded, 2);
}

/* It stays with its sender, and what others send passes it. */
static void a_blocked_job_blocks_no_link(void **state)
{
	struct muster_packet blocked = { .version = MUSTER_PACKET_VERSION, .job = 1, .dst_node = 3,
					 .type = MUSTER_PACKET_DATA };
	struct muster_packet other = blocked;

	(void)state;
	other.job = 2;
	other.dst_node = 2;
	full = 1u << 3;
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(muster_switch_receive(sw, 1, &blocked, NULL, 0), -EAGAIN);
	assert_int_equal(muster_switch_receive(sw, 1, &other, NULL, 0), 0);
	assert_int_equal(nr_out, 1);
	assert_int_equal(counters().held_back, 1000);
	full = 0;
	assert_int_equal(muster_switch_receive(sw, 1, &blocked, NULL, 0), 0);
	assert_int_equal(nr_out, 2);
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
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_switch, close_switch)
	const struct CMUnitTest tests[] = {
		TEST(figure_2_one_in_one_out_for_each_port_of_the_group),
		TEST(the_result_goes_down_twice),
		TEST(a_second_result_changes_nothing),
		TEST(arrival_does_not_decide_the_order),
		TEST(one_child_brings_a_message_without_operation),
		TEST(a_message_may_come_from_above),
		TEST(figure_1b_two_half_rings_and_the_top_unit),
		TEST(a_half_ring_may_have_no_sources),
		TEST(a_streaming_tree_takes_a_whole_mtu_and_sends_nothing_twice),
		TEST(two_streaming_trees_at_most_are_at_a_switch),
		TEST(a_slow_port_holds_up_no_other),
		TEST(a_copy_that_nobody_needs_is_spared),
		TEST(a_full_port_up_is_tried_again),
		TEST(malformed_ones_are_dropped),
		TEST(what_is_longer_than_the_tree_takes_is_dropped),
		TEST(strangers_are_dropped),
		TEST(what_has_no_place_is_dropped),
		TEST(garbage_changes_nothing),
		TEST(ranks_that_disagree_end_the_group),
		TEST(all_that_must_agree_is_compared),
		TEST(two_that_bring_a_message_disagree),
		TEST(the_loss_of_a_port_ends_the_groups_that_need_it),
		TEST(the_loss_of_the_parent_is_told_to_all_children),
		TEST(an_abort_is_passed_on_to_all_others),
		TEST(groups_are_checked),
		TEST(groups_are_bounded),
		TEST(packets_of_others_are_forwarded_by_node),
		TEST(a_blocked_job_blocks_no_link),
		TEST(what_may_be_lost_is_forwarded_so),
		TEST(configurations_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
