// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A NIC at a network of switches, with the test as its switch: commands by which contexts join
 * reduction trees, what goes and comes by the uplink, and who the switch says is gone.
 */
#include "nic_internal.h"
#include "test_guest.h"

enum {
	SWITCH = MUSTER_NODE_AGGREGATION + 3, SWITCH_LIFE = 900, OTHER = 1, OTHER_LIFE = 55,
	TREE = 6, GROUP = 0x51, GROUP_KEY = 0x5ec4e7, MOST = 256, TRIES = 20000, PACKETS = 8,
	RESULT = 0x7000000,
};

static struct {
	struct muster_wire *wire;
	struct muster_packet came[PACKETS];	/* from the NIC */
	double payload[PACKETS];
	uint32_t nr, life;			/* of packets; of the NIC */
} sw;

/* ---- the switch ------------------------------------------------------------ */

static bool sw_take(void *owner, uint32_t neighbour, const struct muster_packet *packet,
		    const void *payload, uint32_t len)
{
	(void)owner;
	assert_int_equal(neighbour, 0);
	assert_true(sw.nr < PACKETS);
	if (len == sizeof(double))
		memcpy(&sw.payload[sw.nr], payload, len);
	sw.came[sw.nr++] = *packet;
	return true;
}

static void sw_met(void *owner, uint32_t node, uint32_t present)
{
	(void)owner;
	assert_int_equal(node, 0);
	sw.life = present;
}

static const struct muster_wire_events sw_events = { .take = sw_take, .lost = sw_met, .met = sw_met };

static const char *spec(void)
{
	static char text[64];

	snprintf(text, sizeof(text), "unix:@muster-nic-tree-%d", getpid());
	return text;
}

static struct muster_wire *port_at(uint32_t node, uint32_t life)
{
	struct muster_wire *wire;
	char why[256] = "";

	if (muster_wire_socket_open(spec(), node, life, 2000000, &sw_events, NULL, &wire, why, sizeof(why)))
		fail_msg("%s", why);
	return wire;
}

static void step_all(struct guest *guest)
{
	settle(guest);
	sw.wire->ops->poll(sw.wire, now_us(guest), 64);
	settle(guest);
}

#define UNTIL(guest, what)					\
	do {							\
		for (int i = 0; i < TRIES && !(what); i++)	\
			step_all(guest);			\
		assert_true(what);				\
	} while (0)

static struct muster_nic_config config_at(uint32_t uplink, uint32_t life)
{
	return (struct muster_nic_config){
		.node = 0, .incarnation = 100, .wire = spec(), .deadline_us = 2000000, .uplink = uplink,
		.uplink_life = life,
	};
}

/* With a context whose other member is behind the switch. */
static void other_context_open(struct guest *guest, uint32_t id)
{
	struct muster_admin_command cmd = context_command(MUSTER_ADMIN_CONTEXT_OPEN, 0);
	struct muster_admin_member members[2] = {
		{ .incarnation = htole32(100) },
		{ .node = htole32(OTHER), .incarnation = htole32(OTHER_LIFE) },
	};

	memcpy(guest->memory + LIST, members, sizeof(members));
	cmd.context.context = htole32(id);
	cmd.context.job_key = htole64(KEY);
	cmd.context.members = htole64(LIST);
	cmd.context.nr_members = htole32(2);
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_OK);
}

static int at_a_switch(void **state)
{
	const struct muster_nic_config config = config_at(SWITCH, SWITCH_LIFE);
	struct guest *guest;

	memset(&sw, 0, sizeof(sw));
	sw.wire = port_at(SWITCH, SWITCH_LIFE);
	*state = guest = guest_make(&config, &world);
	port_open(guest, 0);
	command(guest, mr_command(guest, 1, RESULT, 4096, MUSTER_MR_WRITE));
	other_context_open(guest, CONTEXT);
	return 0;
}

static int no_switch(void **state)
{
	guest_free(*state);
	if (sw.wire)
		sw.wire->ops->close(sw.wire);
	return 0;
}

static void say(struct muster_packet packet, const void *payload)
{
	packet.version = MUSTER_PACKET_VERSION;
	assert_int_equal(sw.wire->ops->send_by(sw.wire, 0, 100, &packet, payload), 0);
}

static void say_gone(uint32_t node)
{
	say((struct muster_packet){ .type = MUSTER_PACKET_GONE, .src_node = htole32(SWITCH),
				    .arg = htole32(node) }, NULL);
}

/* ---- commands -------------------------------------------------------------- */

static struct muster_admin_command tree_command(uint8_t opcode)
{
	return (struct muster_admin_command){
		.opcode = opcode,
		.tree = { .key = htole64(GROUP_KEY), .context = htole32(CONTEXT), .node = htole32(SWITCH),
			  .incarnation = htole32(SWITCH_LIFE), .group = htole32(GROUP), .tree = htole16(TREE),
			  .payload_max = htole16(MOST), .job = JOB },
	};
}

static void join(struct guest *guest)
{
	assert_int_equal(command(guest, tree_command(MUSTER_ADMIN_TREE_JOIN)).status, MUSTER_ADMIN_OK);
}

/* usage: REFUSED(opcode, status, what is wrong): cmd is one that is right. */
#define REFUSED(opcode, why, ...)						\
	do {									\
		struct muster_admin_command cmd = tree_command(opcode);		\
		__VA_ARGS__;							\
		reply = command(guest, cmd);					\
		assert_int_equal(reply.status, MUSTER_ADMIN_##why);		\
	} while (0)

#define NAMED(field) \
	assert_int_equal(le32toh(reply.detail), offsetof(struct muster_admin_command, tree.field))

static void a_command_that_makes_no_sense_is_refused(void **state)
{
	struct guest *guest = *state;
	struct muster_admin_reply reply;

	REFUSED(MUSTER_ADMIN_TREE_JOIN, BAD_PARAMETER, cmd.tree.node = htole32(OTHER));
	NAMED(node);
	REFUSED(MUSTER_ADMIN_TREE_JOIN, BAD_PARAMETER, cmd.tree.node = htole32(MUSTER_NODES_MAX));
	NAMED(node);
	REFUSED(MUSTER_ADMIN_TREE_JOIN, BAD_PARAMETER, cmd.tree.incarnation = 0);
	NAMED(incarnation);
	REFUSED(MUSTER_ADMIN_TREE_JOIN, BAD_PARAMETER, cmd.tree.group = 0);
	NAMED(group);
	REFUSED(MUSTER_ADMIN_TREE_JOIN, BAD_PARAMETER, cmd.tree.payload_max = 0);
	NAMED(payload_max);
	REFUSED(MUSTER_ADMIN_TREE_JOIN, BAD_PARAMETER, cmd.tree.payload_max = htole16(MUSTER_MTU + 1));
	NAMED(payload_max);
	REFUSED(MUSTER_ADMIN_TREE_JOIN, BAD_PARAMETER, cmd.tree.reserved = 1);
	NAMED(reserved);
	REFUSED(MUSTER_ADMIN_TREE_JOIN, BAD_PARAMETER, cmd.raw[sizeof(cmd.tree)] = 1);
	join(guest);		/* nothing of it was done */
}

static void only_a_context_that_is_open_joins(void **state)
{
	struct guest *guest = *state;
	struct muster_admin_reply reply;

	port_open(guest, 1);
	for (uint8_t opcode = MUSTER_ADMIN_TREE_JOIN; opcode <= MUSTER_ADMIN_TREE_MOVE; opcode++) {
		REFUSED(opcode, NO_OBJECT, cmd.tree.context = htole32(CONTEXT + 1));
		REFUSED(opcode, NO_OBJECT, cmd.tree.job = JOB + 1);
		REFUSED(opcode, NO_OBJECT, cmd.tree.vp = htole16(1));	/* another's port */
		REFUSED(opcode, NO_OBJECT, cmd.tree.vp = htole16(2));
		REFUSED(opcode, NO_OBJECT, cmd.tree.vp = htole16(MUSTER_VPS_MAX));
	}
	command(guest, context_command(MUSTER_ADMIN_CONTEXT_CLOSE, 0));
	REFUSED(MUSTER_ADMIN_TREE_JOIN, NO_OBJECT, (void)cmd);
}

static void two_trees_are_joined_each_once_and_moved_as_often_as_wanted(void **state)
{
	struct guest *guest = *state;
	struct muster_admin_reply reply;

	REFUSED(MUSTER_ADMIN_TREE_MOVE, NO_OBJECT, (void)cmd);
	join(guest);
	REFUSED(MUSTER_ADMIN_TREE_JOIN, BUSY, (void)cmd);
	REFUSED(MUSTER_ADMIN_TREE_JOIN, OK, cmd.tree.tree = htole16(TREE + 1));
	REFUSED(MUSTER_ADMIN_TREE_JOIN, BUSY, cmd.tree.tree = htole16(TREE + 2));
	REFUSED(MUSTER_ADMIN_TREE_MOVE, NO_OBJECT, cmd.tree.tree = htole16(TREE + 2));
	REFUSED(MUSTER_ADMIN_TREE_MOVE, BAD_PARAMETER, cmd.tree.payload_max = htole16(MOST / 2));
	for (uint32_t i = 1; i < 4; i++)
		REFUSED(MUSTER_ADMIN_TREE_MOVE, OK, cmd.tree.group = htole32(GROUP + i));
}

/* ---- packets --------------------------------------------------------------- */

/* The at-th sequence: to the tree, then what stores its result. */
static void post_sum(struct guest *guest, uint32_t at, double value)
{
	allreduce_of(guest, 0, 2 * at, SWITCH, TREE, value);
	for (uint32_t i = 0; i < 2; i++) {
		struct muster_desc *desc = (void *)(guest->memory + port(0, PORT_DQ) +
						    (2 * at + i) % DQ * sizeof(*desc));

		if (i)		/* what comes is the result */
			desc->flags = htole16(MUSTER_DESC_C | MUSTER_DESC_CT | MUSTER_DESC_COLL_END);
	}
}

static struct muster_packet result_of(struct muster_packet up)
{
	up.type = MUSTER_PACKET_TREE_DOWN;
	up.flags = 0;
	up.src_node = htole32(SWITCH);
	up.dst_node = 0;
	up.src_vp = up.dst_vp = 0;
	up.incarnation = htole32(SWITCH_LIFE);
	up.base = up.src_member = 0;
	return up;
}

static void a_sum_goes_up_the_tree_and_its_result_comes_down(void **state)
{
	struct guest *guest = *state;
	const double result = 7.5;
	double sum;

	join(guest);
	post_sum(guest, 0, 2.5);
	doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, 2);
	UNTIL(guest, sw.nr == 1);
	assert_int_equal(sw.came[0].type, MUSTER_PACKET_TREE_UP);
	assert_int_equal(le32toh(sw.came[0].dst_node), SWITCH);
	assert_int_equal(le16toh(sw.came[0].tree), TREE);
	assert_int_equal(le32toh(sw.came[0].group), GROUP);
	assert_true(le64toh(sw.came[0].job_key) == GROUP_KEY);
	assert_true(sw.payload[0] == 2.5);
	say(result_of(sw.came[0]), &result);
	UNTIL(guest, cqe(guest, 0, 0)->valid);
	assert_int_equal(cqe(guest, 0, 0)->status, MUSTER_STATUS_OK);
	memcpy(&sum, guest->memory + DATA + 0x10000, sizeof(sum));
	assert_true(sum == 7.5);
}

static void after_a_move_it_goes_to_the_other_group(void **state)
{
	struct guest *guest = *state;
	struct muster_admin_command cmd = tree_command(MUSTER_ADMIN_TREE_MOVE);

	join(guest);
	cmd.tree.group = htole32(GROUP + 1);
	cmd.tree.key = htole64(GROUP_KEY + 1);
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_OK);
	post_sum(guest, 0, 2.5);
	doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, 2);
	UNTIL(guest, sw.nr == 1);
	assert_int_equal(le32toh(sw.came[0].group), GROUP + 1);
	assert_true(le64toh(sw.came[0].job_key) == GROUP_KEY + 1);
}

static void all_goes_and_comes_by_the_switch(void **state)
{
	struct guest *guest = *state;
	struct muster_wire *host = port_at(OTHER, OTHER_LIFE);
	struct muster_packet back;

	post(guest, 0, 0, message(OTHER, 0, 0, "to another"));
	doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, 1);
	UNTIL(guest, sw.nr == 1);
	assert_int_equal(sw.came[0].type, MUSTER_PACKET_P2P);
	assert_int_equal(le32toh(sw.came[0].dst_node), OTHER);
	back = sw.came[0];
	back.src_node = htole32(OTHER);
	back.dst_node = 0;
	back.src_member = htole32(1);
	back.incarnation = htole32(OTHER_LIFE);
	assert_int_equal(host->ops->send_by(host, 0, 100, &back, "to another"), 0);
	UNTIL(guest, guest->nic->counts.dropped == 1);	/* that came by no switch */
	assert_int_equal(slot(guest, 0, 0)->valid, 0);
	say(back, "to another");
	UNTIL(guest, slot(guest, 0, 0)->valid);
	assert_memory_equal(slot(guest, 0, 0)->payload, "to another", 10);
	host->ops->close(host);
}

/* ---- who is gone ----------------------------------------------------------- */

static void assert_lost(struct guest *guest, uint32_t at, uint32_t context, uint32_t culprit)
{
	UNTIL(guest, cqe(guest, 0, at)->valid == htole32(!(at / CQ & 1)));
	assert_int_equal(cqe(guest, 0, at)->kind, MUSTER_CQE_CONTEXT);
	assert_int_equal(le32toh(cqe(guest, 0, at)->context), context);
	assert_int_equal(cqe(guest, 0, at)->status, MUSTER_STATUS_PEER_LOST);
	assert_int_equal(le32toh(cqe(guest, 0, at)->culprit), culprit);
}

static void who_is_gone_fails_contexts_that_are_open_and_those_to_come(void **state)
{
	struct guest *guest = *state;

	say_gone(OTHER + 1);		/* nobody's */
	say_gone(MUSTER_NODES_MAX);	/* no node */
	say_gone(OTHER);
	assert_lost(guest, 0, CONTEXT, 1);
	other_context_open(guest, CONTEXT + 1);
	assert_lost(guest, 1, CONTEXT + 1, 1);
}

static void an_aggregation_node_that_is_gone_fails_who_joins_it(void **state)
{
	struct guest *guest = *state;

	say_gone(SWITCH + 1);
	UNTIL(guest, event(guest, 0)->valid);
	join(guest);
	assert_int_equal(cqe(guest, 0, 0)->valid, 0);
	other_context_open(guest, CONTEXT + 1);
	{
		struct muster_admin_command cmd = tree_command(MUSTER_ADMIN_TREE_JOIN);

		cmd.tree.context = htole32(CONTEXT + 1);
		cmd.tree.node = htole32(SWITCH + 1);
		assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_OK);
	}
	assert_lost(guest, 0, CONTEXT + 1, MUSTER_CULPRIT_NONE);
}

/* Who cannot be reached will not hear it from us. */
static void who_is_gone_itself_has_lost_everybody(void **state)
{
	struct guest *guest = *state;

	say_gone(0);
	assert_lost(guest, 0, CONTEXT, MUSTER_CULPRIT_NONE);
	other_context_open(guest, CONTEXT + 1);
	assert_lost(guest, 1, CONTEXT + 1, 1);
}

static void whose_switch_is_gone_has_lost_everybody(void **state)
{
	struct guest *guest = *state;

	UNTIL(guest, sw.life == 100);
	sw.wire->ops->close(sw.wire);
	sw.wire = NULL;
	for (int i = 0; i < TRIES && !cqe(guest, 0, 0)->valid; i++) {
		settle(guest);
		guest->later_us += 10000;
	}
	assert_int_equal(cqe(guest, 0, 0)->status, MUSTER_STATUS_PEER_LOST);
	assert_int_equal(le32toh(cqe(guest, 0, 0)->culprit), MUSTER_CULPRIT_NONE);
}

/* Of a wire whose table knows hosts alone. */
static void whose_switch_is_nowhere_has_lost_everybody(void **state)
{
	struct muster_nic_config config = config_at(SWITCH, SWITCH_LIFE);
	struct guest *guest;

	(void)state;
	config.wire = wire_spec;
	guest = guest_make(&config, &world);
	port_open(guest, 0);
	other_context_open(guest, CONTEXT);
	settle(guest);
	assert_int_equal(cqe(guest, 0, 0)->status, MUSTER_STATUS_PEER_LOST);
	guest_free(guest);
}

/* A machine resets it before there is a driver: to the network these lives were none. */
static void a_switch_hears_of_a_life_when_it_is_enabled(void **state)
{
	const struct muster_nic_config config = config_at(SWITCH, SWITCH_LIFE);
	struct guest *guest = guest_off(&config, &world);

	(void)state;
	memset(&sw, 0, sizeof(sw));
	sw.wire = port_at(SWITCH, SWITCH_LIFE);
	for (int resets = 0; resets < 2; resets++) {
		for (int i = 0; i < 20; i++)
			step_all(guest);
		reg_write(guest, MUSTER_REG_CONTROL, MUSTER_CONTROL_RESET);
	}
	assert_int_equal(sw.life, 0);
	enable(guest);
	UNTIL(guest, sw.life);
	assert_int_equal(sw.life, 102);
	guest_free(guest);
	sw.wire->ops->close(sw.wire);
}

static void an_uplink_is_a_switch_and_has_a_life(void **state)
{
	static const uint32_t wrong[][2] = {
		{ OTHER, SWITCH_LIFE }, { MUSTER_NODES_MAX, SWITCH_LIFE }, { SWITCH, 0 },
	};
	struct muster_nic *nic;
	char why[256];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const struct muster_nic_config config = config_at(wrong[i][0], wrong[i][1]);

		assert_int_equal(muster_nic_create(&config, &world, NULL, &nic, why, sizeof(why)), -EINVAL);
		assert_non_null(strstr(why, "uplink-life="));
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, at_a_switch, no_switch)
	const struct CMUnitTest tests[] = {
		TEST(a_command_that_makes_no_sense_is_refused),
		TEST(only_a_context_that_is_open_joins),
		TEST(two_trees_are_joined_each_once_and_moved_as_often_as_wanted),
		TEST(a_sum_goes_up_the_tree_and_its_result_comes_down),
		TEST(after_a_move_it_goes_to_the_other_group),
		TEST(all_goes_and_comes_by_the_switch),
		TEST(who_is_gone_fails_contexts_that_are_open_and_those_to_come),
		TEST(an_aggregation_node_that_is_gone_fails_who_joins_it),
		TEST(who_is_gone_itself_has_lost_everybody),
		TEST(whose_switch_is_gone_has_lost_everybody),
		cmocka_unit_test(whose_switch_is_nowhere_has_lost_everybody),
		cmocka_unit_test(a_switch_hears_of_a_life_when_it_is_enabled),
		cmocka_unit_test(an_uplink_is_a_switch_and_has_a_life),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
