// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A context and its reduction tree, with the test as the switch: what a program may do with
 * the tree, which results are let in, and what the loss of the tree ends.
 */
#include "test_tree.h"

/* ---- programs ---- */

static void post_refused(const struct muster_desc *d, uint32_t nr, uint32_t expected)
{
	uint32_t bad = 99;

	assert_int_equal(muster_engine_post(w->nodes[0].engine, WORLD_VP, d, nr, &bad), -EINVAL);
	assert_int_equal(bad, expected);
}

#define REFUSE(i, ...)				\
	do {					\
		struct muster_desc d[2];	\
		program(d, 1);			\
		__VA_ARGS__;			\
		post_refused(d, 2, i);		\
	} while (0)

#define REFUSE_MEMORY(i, ...)				\
	do {						\
		struct muster_desc d[2];		\
		program_on_memory(d, 4 * MOST, MOST);	\
		__VA_ARGS__;				\
		post_refused(d, 2, i);			\
	} while (0)

static void programs_are_checked(void **state)
{
	(void)state;
	REFUSE(0, d[0].dst_vp++);				/* another tree */
	REFUSE(0, desc_to(&d[0], NODE + 1, 0));			/* another aggregation node */
	REFUSE(0, desc_to(&d[0], NODE, 1));			/* a slot that nothing awaits */
	REFUSE(0, d[0].flags |= MUSTER_DESC_SWAP_REMOTE_DATA);
	REFUSE(0, d[0].flags |= MUSTER_DESC_COLL_END);
	REFUSE(0, d[0].signature.op = d[1].signature.op = MUSTER_REDOP_BAND);	/* of doubles */
	REFUSE(1, d[0].signature.op = d[1].signature.op = 0; d[1].length = 16);	/* brings 8 */
	REFUSE_MEMORY(1, program_on_memory(d, 4 * MOST, MOST + 8); d[0].length = 0;
		      d[0].signature.op = d[1].signature.op = 0);
	REFUSE(0, d[0].length = d[0].inline_len = 4; d[1].length = 4);	/* half a double */
	REFUSE(1, d[1].length = 16);
	REFUSE(1, d[0].signature.op = d[1].signature.op = 0; d[1].length = 0);
	REFUSE_MEMORY(0, program_on_memory(d, 4 * MOST, MOST + 8));	/* more than it takes at once */
	REFUSE_MEMORY(0, program_on_memory(d, 4 * MOST, 12));
	REFUSE_MEMORY(1, d[1].length -= 8);
	REFUSE_MEMORY(1, d[1].flags |= MUSTER_DESC_SWAP_LOCAL_VP | MUSTER_DESC_CP);
	REFUSE_MEMORY(0, d[0].range.pulses_live = MUSTER_TREE_PULSES_LIVE + 1);
	REFUSE_MEMORY(0, d[0].range.pulses_live = MUSTER_TREE_PULSES_LIVE; d[1].cp_count = 2);
	REFUSE_MEMORY(0, d[0].range.pulses_live = MUSTER_TREE_PULSES_LIVE; desc_to(&d[1], 1, 0));
	assert_int_equal(nr_up, 0);
}

/* It asks for more than members let each other be ahead; results come in any order. */
static void more_pulses_are_live_where_a_tree_alone_hears_of_them(void **state)
{
	const uint32_t live = MUSTER_TREE_PULSES_LIVE, all = 2 * live + 3;
	struct muster_packet down;
	struct muster_desc d[2];
	double sum[MOST / 8] = { 0 };

	(void)state;
	credit(live);
	program_on_memory(d, all * MOST, MOST);
	d[0].range.pulses_live = live;
	world_post(w, 0, d, 2);
	world_run(w);
	assert_int_equal(nr_up, live);
	down = result_of(MOST);
	down.arg = live;
	for (uint32_t first = 0; first < all; first += live)
		for (uint32_t i = first + live; i-- > first;) {
			down.pulse = i;
			sum[0] = i;
			if (i < all)
				bring(&down, sum);
		}
	assert_int_equal(nr_up, all);
	assert_int_equal(w->nodes[0].nr_cqes, 1);
	assert_int_equal(w->nodes[0].cqes[0].status, MUSTER_STATUS_OK);
	for (uint32_t i = 0; i < all; i++)
		assert_true(world_double(w, 0, 65536 + i * MOST)[0] == i);
}

/* A group has one operation outstanding, and a number is one operation. */
static void a_sequence_uses_the_tree_once(void **state)
{
	double value = 1;
	struct muster_desc d[3] = {
		desc_mp(MUSTER_DESC_CH, 0, &value), desc_mp(0, 0, &value),
		desc_mp(MUSTER_DESC_CT | MUSTER_DESC_REDUCE, 2, &value),
	};

	(void)state;
	desc_to(&d[0], NODE, 0);
	desc_to(&d[1], NODE, 1);
	d[0].dst_vp = d[1].dst_vp = TREE;
	post_refused(d, 3, 1);
}

/* Contribution and result in one descriptor would wait for each other. */
static void a_result_is_awaited_after_its_contribution(void **state)
{
	double value = 1;
	struct muster_desc d = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_CT, 1, &value);

	(void)state;
	d.flags |= MUSTER_DESC_REDUCE;
	desc_to(&d, NODE, 0);
	d.dst_vp = TREE;
	post_refused(&d, 1, 0);
}

/* One for each type: a sequence names its own, and only that one's result fills its slot. */
static void a_context_may_be_in_two_trees(void **state)
{
	struct muster_tree_config other = TREE_CONFIG;
	struct muster_packet down;
	struct muster_desc d[2];
	double right = 40, wrong = 50;

	(void)state;
	other.tree = TREE + 1;
	other.group = GROUP + 1;
	other.key = GROUP_KEY + 1;
	assert_int_equal(join(0, other), 0);
	assert_int_equal(join(0, other), -EBUSY);
	other.tree = TREE + 2;
	assert_int_equal(join(0, other), -EBUSY);

	program(d, 3);
	d[0].dst_vp = TREE + 1;
	world_post(w, 0, d, 2);
	world_run(w);
	assert_int_equal(nr_up, 1);
	assert_int_equal(up.tree, TREE + 1);
	assert_int_equal(up.group, GROUP + 1);
	assert_true(up.job_key == GROUP_KEY + 1);
	down = result_of(8);
	down.tree = TREE;
	down.group = GROUP;
	bring(&down, &wrong);			/* of no group with that key */
	down.job_key = GROUP_KEY;
	bring(&down, &wrong);			/* of the other tree */
	assert_int_equal(w->nodes[0].nr_cqes, 0);
	assert_int_equal(world_counters(w, 0).drop_window, 1);
	down = result_of(8);
	bring(&down, &right);
	assert_int_equal(w->nodes[0].nr_cqes, 1);
	assert_true(*world_double(w, 0, 0) == right);
}

static void a_tree_is_joined_once_and_within_limits(void **state)
{
	struct muster_tree_config config = TREE_CONFIG;

	(void)state;
	assert_int_equal(join(0, config), -EBUSY);
	assert_int_equal(muster_engine_tree_join(w->nodes[0].engine, WORLD_VP, WORLD_JOB,
						 WORLD_CONTEXT + 1, &config), -ENOENT);
	assert_int_equal(world_context_open(w, 0, WORLD_CONTEXT + 1), 0);
#define BAD(what)                                                                                  \
	do {                                                                                     \
		config = TREE_CONFIG;                                                            \
		what;                                                                            \
		assert_int_equal(muster_engine_tree_join(w->nodes[0].engine, WORLD_VP, WORLD_JOB, \
							 WORLD_CONTEXT + 1, &config), -EINVAL);  \
	} while (0)
	BAD(config.node = MUSTER_NODE_AGGREGATION - 1);
	BAD(config.node = MUSTER_NODES_MAX);
	BAD(config.group = 0);
	BAD(config.payload_max = 0);
	BAD(config.payload_max = MUSTER_MTU + 1);
}

/* What comes for the group that was left is a stranger's. */
static void a_context_goes_over_to_another_group_of_its_tree(void **state)
{
	struct muster_tree_config config = TREE_CONFIG;
	struct muster_packet down;
	struct muster_desc d[2];
	const double old = 7, new = 9;

	(void)state;
#define MOVE() muster_engine_tree_move(w->nodes[0].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT, &config)
	config.tree++;
	assert_int_equal(MOVE(), -ENOENT);
	config = TREE_CONFIG;
	config.payload_max /= 2;
	assert_int_equal(MOVE(), -EINVAL);
	config = TREE_CONFIG;
	config.group = GROUP + 1;
	config.key = GROUP_KEY + 1;
	assert_int_equal(MOVE(), 0);
	program(d, 2.5);
	world_post(w, 0, d, 2);
	world_run(w);
	assert_int_equal(up.group, GROUP + 1);
	assert_true(up.job_key == GROUP_KEY + 1);
	down = result_of(8);
	down.group = GROUP;
	down.job_key = GROUP_KEY;
	bring(&down, &old);
	assert_int_equal(w->nodes[0].nr_cqes, 0);
	down = result_of(8);
	bring(&down, &new);
	assert_int_equal(w->nodes[0].nr_cqes, 1);
	assert_true(*world_double(w, 0, 0) == new);
}

/* Without an operation somebody else brings the message: nothing goes up, and it comes down. */
static void what_another_brings_comes_for_nothing(void **state)
{
	struct muster_packet down;
	struct muster_desc d[2];
	uint8_t data[MOST];

	(void)state;
	memset(data, 0x5a, sizeof(data));
	credit(2);
	program_on_memory(d, MOST + 3, MOST);
	d[0].length = 0;
	d[0].signature.op = d[1].signature.op = 0;
	world_post(w, 0, d, 2);
	world_run(w);
	assert_int_equal(nr_up, 2);
	assert_int_equal(up.length, 0);
	down = result_of(MOST);
	down.pulse = 0;
	bring(&down, data);
	down = result_of(3);
	down.pulse = 1;
	bring(&down, data);
	assert_int_equal(w->nodes[0].nr_cqes, 1);
	assert_int_equal(w->nodes[0].cqes[0].status, MUSTER_STATUS_OK);
	assert_int_equal(w->nodes[0].memory[65536 + MOST + 2], 0x5a);
	assert_int_equal(w->nodes[0].memory[65536 + MOST + 3], 0);
}

/* ---- packets ---- */

static void a_contribution_says_whose_it_is(void **state)
{
	struct muster_desc d[2];

	(void)state;
	program(d, 2.5);
	world_post(w, 0, d, 2);
	world_run(w);
	assert_int_equal(nr_up, 1);
	assert_int_equal(up.type, MUSTER_PACKET_TREE_UP);
	assert_int_equal(up.flags, MUSTER_PACKET_LAST);
	assert_int_equal(up.dst_node, NODE);
	assert_int_equal(up.src_node, 0);
	assert_int_equal(up.src_vp, WORLD_VP);
	assert_int_equal(up.incarnation, 100);
	assert_int_equal(up.tree, TREE);
	assert_int_equal(up.group, GROUP);
	assert_true(up.job_key == GROUP_KEY);	/* a switch never sees the job's */
	assert_int_equal(up.seq_id, 0);
	assert_int_equal(up.total, 8);
	assert_true(up_value == 2.5);
	assert_int_equal(world_counters(w, 0).tree_up, 1);
}

static void a_result_ends_the_sequence_and_its_second_copy_does_nothing(void **state)
{
	struct muster_packet down;
	struct muster_desc d[2];
	double sum = 7, other = 8;

	(void)state;
	program(d, 2.5);
	world_post(w, 0, d, 2);
	world_run(w);
	down = result_of(8);
	down.flags = MUSTER_PACKET_ONCE;
	bring(&down, &sum);
	assert_int_equal(w->nodes[0].nr_cqes, 1);
	assert_true(*world_double(w, 0, 0) == 7);
	down.flags = 0;
	bring(&down, &other);
	assert_true(*world_double(w, 0, 0) == 7);
	assert_int_equal(world_counters(w, 0).drop_duplicate, 1);
	assert_int_equal(world_counters(w, 0).tree_down, 1);
	assert_int_equal(w->nodes[0].nr_cqes, 1);
}

static void who_stores_nothing_asks_for_no_data(void **state)
{
	struct muster_packet down;
	struct muster_desc d[2];
	const double nothing = 0;

	(void)state;
	program(d, 2.5);
	d[1].length = 0;
	d[1].store_key = 0;
	world_post(w, 0, d, 2);
	world_run(w);
	assert_int_equal(up.flags, MUSTER_PACKET_LAST | MUSTER_PACKET_BARE);
	assert_int_equal(up.total, 8);
	assert_true(up_value == 2.5);
	down = result_of(0);
	bring(&down, &nothing);
	assert_int_equal(w->nodes[0].nr_cqes, 1);
	assert_int_equal(w->nodes[0].cqes[0].status, MUSTER_STATUS_OK);
}

static void a_refused_contribution_goes_later(void **state)
{
	struct muster_desc d[2];

	(void)state;
	refusal = -EAGAIN;
	program(d, 2.5);
	world_post(w, 0, d, 2);
	for (uint32_t i = 0; i < 5; i++)
		assert_true(muster_engine_step(w->nodes[0].engine, 10));
	assert_int_equal(nr_up, 0);
	refusal = 0;
	world_run(w);
	assert_int_equal(nr_up, 1);
	assert_true(up_value == 2.5);
}

/* Who does not hold the group's key, or is not the aggregation node, says nothing here. */
static void strangers_are_dropped(void **state)
{
	struct muster_packet good, down;
	struct muster_desc d[2];
	double sum = 7;
	uint64_t dropped = 0;

	(void)state;
	program(d, 2.5);
	world_post(w, 0, d, 2);
	world_run(w);
	good = result_of(8);
#define STRANGER(what)                                                            \
	do {                                                                      \
		down = good;                                                      \
		what;                                                             \
		bring(&down, &sum);                                               \
		assert_int_equal(world_counters(w, 0).drop_stranger, ++dropped);  \
		assert_int_equal(w->nodes[0].nr_cqes, 0);                         \
	} while (0)
	STRANGER(down.job_key++);
	STRANGER(down.job_key = WORLD_JOB_KEY);
	STRANGER(down.tree++);
	STRANGER(down.group++);
	STRANGER(down.src_node++);
	STRANGER(down.src_node = 1);
	STRANGER(down.incarnation++);
	STRANGER(down.life++);
	STRANGER(down.context++);
	STRANGER(down.job++);
	STRANGER(down.dst_node++);
	STRANGER(down.type = MUSTER_PACKET_ABORT; down.number = MUSTER_STATUS_ABORTED;
		 down.length = down.total = 0; down.flags = 0; down.arg = 1; down.job_key++);
	bring(&good, &sum);
	assert_int_equal(w->nodes[0].nr_cqes, 1);
}

static void malformed_ones_are_dropped(void **state)
{
	struct muster_packet good, down;
	struct muster_desc d[2];
	double sum[2] = { 7 };
	uint64_t dropped = 0;

	(void)state;
	program(d, 2.5);
	world_post(w, 0, d, 2);
	world_run(w);
	good = result_of(8);
#define MALFORMED(what)                                                            \
	do {                                                                       \
		down = good;                                                       \
		what;                                                              \
		bring(&down, sum);                                                 \
		assert_int_equal(world_counters(w, 0).drop_malformed, ++dropped);  \
	} while (0)
	MALFORMED(down.type = MUSTER_PACKET_TREE_UP);
	MALFORMED(down.group = 0);
	MALFORMED(down.type = MUSTER_PACKET_DATA);	/* of a member's kind, with a group */
	MALFORMED(down.flags = MUSTER_PACKET_SWAP_DATA);
	MALFORMED(down.flags = MUSTER_PACKET_COLL_END);
	MALFORMED(down.flags = 0x80);
	MALFORMED(down.offset = 8);
	MALFORMED(down.total = 16);
	MALFORMED(down.arg = MUSTER_TREE_PULSES_LIVE + 1);
	MALFORMED(down.reserved = 1);
	assert_int_equal(w->nodes[0].nr_cqes, 0);
	bring(&good, sum);
	assert_int_equal(w->nodes[0].nr_cqes, 1);
}

/* With the right key, but not for what has contributed. */
static void results_that_nobody_has_contributed_to_are_dropped(void **state)
{
	struct muster_packet good, down;
	struct muster_desc d[2];
	uint8_t data[MOST] = { 0 };
	uint64_t dropped = 0;

	(void)state;
	credit(8);
	program_on_memory(d, 8 * MOST, MOST);
	world_post(w, 0, d, 2);
	world_run(w);
	assert_int_equal(nr_up, MUSTER_PULSES_LIVE);
	assert_int_equal(up.flags, 0);		/* it is not the last */
	good = result_of(MOST);
	good.pulse = 0;
#define OUTSIDE(what)                                                           \
	do {                                                                    \
		down = good;                                                    \
		what;                                                           \
		bring(&down, data);                                             \
		assert_int_equal(world_counters(w, 0).drop_window, ++dropped);  \
	} while (0)
	OUTSIDE(down.number++);
	OUTSIDE(down.pulse = MUSTER_PULSES_LIVE);
	OUTSIDE(down.seq_id++);
	bring(&good, data);
	assert_int_equal(nr_up, MUSTER_PULSES_LIVE + 1);
	refusal = -EAGAIN;
	good.pulse = 1;
	muster_engine_receive(w->nodes[0].engine, &good, data, MOST);
	muster_engine_step(w->nodes[0].engine, 100);	/* pulse 5 lives, but has sent nothing */
	down = good;
	down.pulse = 5;
	muster_engine_receive(w->nodes[0].engine, &down, data, MOST);
	assert_int_equal(world_counters(w, 0).drop_window, ++dropped);
	refusal = 0;
	world_run(w);
	for (uint32_t pulse = 2; pulse < 8; pulse++) {
		good.pulse = pulse;
		bring(&good, data);
	}
	assert_int_equal(w->nodes[0].nr_cqes, 1);
	assert_int_equal(w->nodes[0].cqes[0].status, MUSTER_STATUS_OK);
}

/* ---- failure ---- */

static void expect_end(uint8_t status, uint32_t culprit)
{
	assert_int_equal(w->nodes[0].nr_cqes, 2);
	assert_int_equal(w->nodes[0].cqes[0].status, status);
	assert_int_equal(w->nodes[0].cqes[0].culprit, culprit);
}

static void an_abort_of_the_tree_names_the_culprit_and_is_not_repeated(void **state)
{
	struct muster_packet abort;
	struct muster_desc d[2];

	(void)state;
	program(d, 2.5);
	world_post(w, 0, d, 2);
	world_run(w);
	abort = result_of(0);
	abort.type = MUSTER_PACKET_ABORT;
	abort.number = MUSTER_STATUS_MISMATCH;
	abort.arg = 1;
	abort.seq_id = 0;
	abort.pulse = 0;
	abort.signature.op = MUSTER_REDOP_MAX;
	bring(&abort, NULL);
	expect_end(MUSTER_STATUS_MISMATCH, 1);
	assert_int_equal(w->nodes[0].cqes[0].by, MUSTER_BY_NONE);
	assert_int_equal(w->nodes[0].cqes[0].other.op, MUSTER_REDOP_MAX);
	assert_int_equal(w->nr_sent[MUSTER_PACKET_ABORT], 0);
}

static void the_loss_of_the_tree_ends_the_context(void **state)
{
	struct muster_desc d[2];

	(void)state;
	program(d, 2.5);
	world_post(w, 0, d, 2);
	world_run(w);
	muster_engine_peer_present(w->nodes[0].engine, NODE, LIFE);
	muster_engine_peer_lost(w->nodes[0].engine, NODE - 1);
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, 0);
	muster_engine_peer_present(w->nodes[0].engine, NODE, LIFE + 1);
	world_run(w);
	expect_end(MUSTER_STATUS_PEER_LOST, MUSTER_CULPRIT_NONE);
	assert_int_equal(w->nr_sent[MUSTER_PACKET_ABORT], 1);
}

static void a_switch_that_leaves_ends_the_context(void **state)
{
	struct muster_desc d[2];

	(void)state;
	program(d, 2.5);
	world_post(w, 0, d, 2);
	world_run(w);
	muster_engine_peer_left(w->nodes[0].engine, NODE);
	world_run(w);
	expect_end(MUSTER_STATUS_PEER_LOST, MUSTER_CULPRIT_NONE);
}

static void an_unreachable_tree_ends_the_context(void **state)
{
	struct muster_desc d[2];

	(void)state;
	refusal = -EHOSTUNREACH;
	program(d, 2.5);
	world_post(w, 0, d, 2);
	world_run(w);
	expect_end(MUSTER_STATUS_PEER_LOST, MUSTER_CULPRIT_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_TEST(programs_are_checked),
		TREE_TEST(a_sequence_uses_the_tree_once),
		TREE_TEST(a_result_is_awaited_after_its_contribution),
		TREE_TEST(a_context_may_be_in_two_trees),
		TREE_TEST(a_tree_is_joined_once_and_within_limits),
		TREE_TEST(a_context_goes_over_to_another_group_of_its_tree),
		TREE_TEST(what_another_brings_comes_for_nothing),
		TREE_TEST(a_contribution_says_whose_it_is),
		TREE_TEST(a_result_ends_the_sequence_and_its_second_copy_does_nothing),
		TREE_TEST(who_stores_nothing_asks_for_no_data),
		TREE_TEST(more_pulses_are_live_where_a_tree_alone_hears_of_them),
		TREE_TEST(a_refused_contribution_goes_later),
		TREE_TEST(strangers_are_dropped),
		TREE_TEST(malformed_ones_are_dropped),
		TREE_TEST(results_that_nobody_has_contributed_to_are_dropped),
		TREE_TEST(an_abort_of_the_tree_names_the_culprit_and_is_not_repeated),
		TREE_TEST(the_loss_of_the_tree_ends_the_context),
		TREE_TEST(a_switch_that_leaves_ends_the_context),
		TREE_TEST(an_unreachable_tree_ends_the_context),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
