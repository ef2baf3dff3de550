// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Locks at one aggregation node, the test at its ports: low-latency trees 1, 3, 5 and the streaming
 * ones behind them; groups of several jobs, all with the children of figure 2 and its parent.
 */
#include "test_switch.h"

enum { LLT = TREE, SAT = TREE + 1, NR_HANDLES = 9 };

static uint32_t numbers[NR_HANDLES];	/* of the next request of each handle */

static void add(uint16_t llt, uint32_t handle, uint64_t owner)
{
	struct muster_switch_group group = figure_2();

	group.tree = llt;
	group.group = handle;
	if (llt != LLT || handle != GROUP)	/* that is there */
		assert_int_equal(muster_switch_group_add(sw, &group), 0);
	group.tree = llt + 1;
	group.type = MUSTER_SWITCH_SAT;
	group.locks = true;
	group.owner = owner;
	assert_int_equal(muster_switch_group_add(sw, &group), 0);
}

static int open_locks(void **state)
{
	open_switch(state);
	memset(numbers, 0, sizeof(numbers));
	add(LLT, 1, 101);
	add(LLT, 2, 102);
	add(LLT, 3, 103);
	add(LLT, 4, 102);
	add(LLT + 2, 5, 105);
	add(LLT + 4, 6, 106);
	return 0;
}

static const uint32_t TREES[NR_HANDLES] = { 0, LLT, LLT, LLT, LLT, LLT + 2, LLT + 4, LLT, LLT };

static struct muster_packet request(struct muster_packet from, uint32_t handle)
{
	from.tree = (uint16_t)TREES[handle];
	from.group = handle;
	from.number = numbers[handle];
	from.total = from.length = sizeof(struct muster_lock);
	from.signature = (struct muster_signature){
		.coll = MUSTER_COLL_LOCK, .type = MUSTER_DTYPE_U64, .op = MUSTER_REDOP_MIN,
	};
	return from;
}

static void ask(uint32_t handle, uint64_t operations, uint64_t how)
{
	const struct muster_lock lock = { operations, 1, how, UINT64_MAX, UINT64_MAX, UINT64_MAX };

	for (uint32_t i = 0; i < 3; i++) {
		struct muster_packet packet = request(from_child(i), handle);

		packet.flags = MUSTER_PACKET_LAST;
		muster_switch_receive(sw, CHILDREN[i].port, &packet, &lock, sizeof(lock));
	}
}

static bool went_up(uint32_t handle)
{
	return nr_out && out[nr_out - 1].packet.type == MUSTER_PACKET_TREE_UP &&
	       out[nr_out - 1].packet.group == handle;
}

/* What the root says of it. */
static void answer(uint32_t handle, uint64_t operations, uint64_t free, uint64_t how)
{
	const struct muster_lock lock = {
		operations, free, how, ~(uint64_t)numbers[handle] - 10, UINT64_MAX, UINT64_MAX,
	};
	struct muster_packet packet = request(from_parent(), handle);

	muster_switch_receive(sw, PARENT_PORT, &packet, &lock, sizeof(lock));
	numbers[handle]++;
	muster_switch_step(sw);
}

/* The root has heard of all: nodes are to lock it. */
static void take(uint32_t handle, uint64_t operations, uint64_t how)
{
	const struct muster_lock lock = {
		operations, 1, how | MUSTER_LOCK_TAKE, UINT64_MAX, UINT64_MAX, UINT64_MAX,
	};
	struct muster_packet packet = request(from_parent(), handle);

	muster_switch_receive(sw, PARENT_PORT, &packet, &lock, sizeof(lock));
}

/* Asked for, and locked everywhere, if it is here. Return: whether it is. */
static bool lock(uint32_t handle, uint64_t operations, uint64_t how)
{
	uint64_t locks = counters().locks;

	ask(handle, operations, how);
	assert_true(went_up(handle));
	if (operations)
		take(handle, operations, how);
	answer(handle, operations, out[nr_out - 1].lock.free, how);
	return counters().locks > locks;
}

/* One operation of two pulses. */
static void operate(uint32_t handle, uint32_t number)
{
	for (uint32_t pulse = 0; pulse < 2; pulse++) {
		struct muster_packet packet;

		for (uint32_t i = 0; i < 3; i++) {
			packet = from_child(i);
			packet.tree = (uint16_t)(TREES[handle] + 1);
			packet.group = handle;
			packet.number = number;
			packet.pulse = pulse;
			packet.flags = pulse ? MUSTER_PACKET_LAST : 0;
			hand(CHILDREN[i].port, &packet, 1);
		}
		packet = from_parent();
		packet.tree = (uint16_t)(TREES[handle] + 1);
		packet.group = handle;
		packet.number = number;
		packet.pulse = pulse;
		hand(PARENT_PORT, &packet, 3);
	}
	muster_switch_step(sw);
}

static void a_lock_is_for_so_many_operations(void **state)
{
	(void)state;
	operate(1, 30);
	assert_int_equal(counters().drop_unlocked, 6);
	assert_int_equal(counters().contributions, 0);
	assert_true(lock(1, 2, MUSTER_LOCK_TRY));
	assert_int_equal(counters().locked, 1);
	operate(1, 31);
	assert_int_equal(counters().locked, 1);
	operate(1, 32);
	assert_int_equal(counters().locked, 0);
	assert_int_equal(counters().drop_unlocked, 6);
	operate(1, 33);
	assert_int_equal(counters().drop_unlocked, 12);
}

/* Somewhere else a member may not have asked. */
static void a_lock_that_was_only_asked_for_is_in_nobodys_way(void **state)
{
	(void)state;
	ask(1, 1, MUSTER_LOCK_KEEP);
	assert_true(went_up(1) && out[nr_out - 1].lock.free == 1);
	assert_int_equal(counters().locked, 0);
	assert_true(lock(2, 1, MUSTER_LOCK_KEEP));
	take(1, 1, MUSTER_LOCK_KEEP);
	assert_true(went_up(1) && out[nr_out - 1].lock.free == 0);
	operate(2, 30);
	answer(1, 1, 0, MUSTER_LOCK_KEEP);
	assert_true(lock(1, 1, MUSTER_LOCK_KEEP));
}

/* It is up to the root: before it has said so nothing is taken. */
static void a_lock_that_was_only_taken_admits_nobody(void **state)
{
	(void)state;
	ask(1, 1, MUSTER_LOCK_TRY);
	take(1, 1, MUSTER_LOCK_TRY);
	assert_true(went_up(1) && out[nr_out - 1].lock.free == 1);
	assert_true(out[nr_out - 1].lock.how & MUSTER_LOCK_TAKE);
	assert_int_equal(counters().locked, 1);
	operate(1, 30);
	assert_int_equal(counters().drop_unlocked, 6);
	answer(1, 1, 0, MUSTER_LOCK_TRY);	/* another node has refused it */
	assert_int_equal(counters().locked, 0);
	assert_true(lock(2, 1, MUSTER_LOCK_TRY));
}

static void what_another_has_is_refused_upwards(void **state)
{
	(void)state;
	assert_true(lock(1, 1, MUSTER_LOCK_TRY));
	assert_false(lock(2, 1, MUSTER_LOCK_TRY));
	assert_int_equal(counters().locks_refused, 1);
	assert_int_equal(counters().locked, 1);
	operate(1, 30);
	assert_true(lock(2, 1, MUSTER_LOCK_TRY));
}

static void say(uint32_t handle, uint32_t child, const struct muster_lock *lock)
{
	struct muster_packet packet = request(from_child(child), handle);

	packet.flags = MUSTER_PACKET_LAST;
	muster_switch_receive(sw, CHILDREN[child].port, &packet, lock, sizeof(*lock));
}

/* Of group 8, all of whose members are below another node. */
static const struct muster_switch_child BELOW = {
	.node = MUSTER_NODE_AGGREGATION + 1, .incarnation = 7, .port = 1,
};

static void add_below(void)
{
	struct muster_switch_group group = figure_2();

	group.group = 8;
	group.nr_children = 1;
	group.children = &BELOW;
	assert_int_equal(muster_switch_group_add(sw, &group), 0);
	group.tree = SAT;
	group.type = MUSTER_SWITCH_SAT;
	group.locks = true;
	group.owner = 108;
	assert_int_equal(muster_switch_group_add(sw, &group), 0);
}

static void say_below(uint64_t free, uint64_t how)
{
	const struct muster_lock lock = { 1, free, how, UINT64_MAX, UINT64_MAX, UINT64_MAX };
	struct muster_packet packet = request(from_child(0), 8);

	packet.src_node = BELOW.node;
	packet.incarnation = BELOW.incarnation;
	packet.flags = MUSTER_PACKET_LAST;
	muster_switch_receive(sw, BELOW.port, &packet, &lock, sizeof(lock));
}

static bool went_down(void)
{
	return nr_out && out[nr_out - 1].packet.dst_node == BELOW.node &&
	       out[nr_out - 1].lock.how & MUSTER_LOCK_TAKE;
}

static void nodes_lock_downwards_and_answer_upwards(void **state)
{
	(void)state;
	add_below();
	say_below(1, MUSTER_LOCK_KEEP);
	assert_true(went_up(8));
	take(8, 1, MUSTER_LOCK_KEEP);
	assert_true(went_down());
	assert_int_equal(counters().locked, 1);
	say_below(1, MUSTER_LOCK_KEEP | MUSTER_LOCK_TAKE);
	assert_true(went_up(8) && out[nr_out - 1].lock.free == 1);
	say_below(1, MUSTER_LOCK_KEEP | MUSTER_LOCK_TAKE);
	assert_int_equal(counters().drop_duplicate, 1);
	answer(8, 1, 1, MUSTER_LOCK_KEEP);
	assert_int_equal(counters().locks, 1);
}

static void what_is_refused_below_is_given_back(void **state)
{
	(void)state;
	add_below();
	say_below(1, MUSTER_LOCK_TRY);
	say_below(1, MUSTER_LOCK_TRY | MUSTER_LOCK_TAKE);	/* nobody has asked */
	assert_int_equal(counters().drop_duplicate, 1);
	take(8, 1, MUSTER_LOCK_TRY);
	full = 1u << PARENT_PORT;
	say_below(0, MUSTER_LOCK_TRY | MUSTER_LOCK_TAKE);
	full = 0;
	muster_switch_step(sw);
	assert_true(went_up(8) && out[nr_out - 1].lock.free == 0);
	answer(8, 1, 0, MUSTER_LOCK_TRY);
	assert_int_equal(counters().locked, 0);
	assert_true(lock(1, 1, MUSTER_LOCK_TRY));
}

/* It would only be in the way of others. */
static void what_is_refused_here_is_not_locked_below(void **state)
{
	(void)state;
	add_below();
	assert_true(lock(1, 1, MUSTER_LOCK_TRY));
	say_below(1, MUSTER_LOCK_KEEP);
	take(8, 1, MUSTER_LOCK_KEEP);
	assert_true(went_up(8) && out[nr_out - 1].lock.free == 0);
	answer(8, 1, 0, MUSTER_LOCK_KEEP);
	assert_int_equal(counters().locked, 1);
}

/* What would put its job before all others, or its count beyond all. */
static void a_host_has_no_say_in_the_order(void **state)
{
	static const struct muster_lock lies[] = {
		{ 1, 0, MUSTER_LOCK_KEEP, UINT64_MAX, UINT64_MAX, UINT64_MAX },
		{ 1, 1, MUSTER_LOCK_KEEP, 0, UINT64_MAX, UINT64_MAX },
		{ 1, 1, MUSTER_LOCK_KEEP, UINT64_MAX, 0, UINT64_MAX },
		{ 1, 1, MUSTER_LOCK_KEEP, UINT64_MAX, UINT64_MAX, 0 },
		{ 1, 1, MUSTER_LOCK_KEEP | MUSTER_LOCK_TAKE, UINT64_MAX, UINT64_MAX, UINT64_MAX },
	};

	(void)state;
	for (uint32_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		say(1, 0, &lies[i]);
		assert_int_equal(counters().drop_malformed, i + 1);
	}
	assert_int_equal(counters().contributions, 0);
	assert_true(lock(1, 1, MUSTER_LOCK_KEEP));
}

static void the_count_of_locks_ends_at_its_largest(void **state)
{
	const struct muster_lock largest = { 1, 0, MUSTER_LOCK_TRY, 0, UINT64_MAX, UINT64_MAX };
	struct muster_packet packet = request(from_parent(), 1);

	(void)state;
	ask(1, 1, MUSTER_LOCK_TRY);
	muster_switch_receive(sw, PARENT_PORT, &packet, &largest, sizeof(largest));
	ask(2, 1, MUSTER_LOCK_TRY);
	assert_true(went_up(2));
	assert_int_equal(out[nr_out - 1].lock.asked, 0);
}

static void a_lock_can_be_given_back(void **state)
{
	(void)state;
	assert_true(lock(1, 1000, MUSTER_LOCK_TRY));
	assert_false(lock(1, 0, MUSTER_LOCK_TRY));
	assert_int_equal(counters().locked, 0);
	operate(1, 30);
	assert_int_equal(counters().drop_unlocked, 6);
	assert_true(lock(2, 1, MUSTER_LOCK_TRY));
}

static void no_lock_is_without_end(void **state)
{
	(void)state;
	ask(1, UINT64_MAX, MUSTER_LOCK_TRY);
	assert_int_equal(out[nr_out - 1].lock.operations, MUSTER_SWITCH_LOCK_MAX);
}

static void who_keeps_a_place_comes_before_others(void **state)
{
	(void)state;
	assert_true(lock(1, 1, MUSTER_LOCK_TRY));
	assert_false(lock(2, 1, MUSTER_LOCK_KEEP));
	assert_false(lock(3, 1, MUSTER_LOCK_KEEP));
	operate(1, 30);
	assert_false(lock(1, 1, MUSTER_LOCK_KEEP));	/* at once again */
	assert_false(lock(3, 1, MUSTER_LOCK_KEEP));
	assert_true(lock(2, 1, MUSTER_LOCK_KEEP));
	operate(2, 30);
	assert_false(lock(1, 1, MUSTER_LOCK_KEEP));
	assert_true(lock(3, 1, MUSTER_LOCK_KEEP));
	operate(3, 30);
	assert_true(lock(1, 1, MUSTER_LOCK_KEEP));
}

static void who_gives_up_stands_before_nobody(void **state)
{
	(void)state;
	assert_true(lock(1, 1, MUSTER_LOCK_TRY));
	assert_false(lock(2, 1, MUSTER_LOCK_KEEP));
	assert_false(lock(2, 0, MUSTER_LOCK_KEEP));
	operate(1, 30);
	assert_true(lock(3, 1, MUSTER_LOCK_TRY));
}

/* It is in nobody's way, but when it asks again it is as old as it was. */
static void who_asks_no_more_keeps_its_place_and_blocks_nobody(void **state)
{
	(void)state;
	assert_true(lock(1, 1, MUSTER_LOCK_TRY));
	assert_false(lock(2, 1, MUSTER_LOCK_KEEP));
	operate(1, 30);
	muster_switch_hurry(sw);
	assert_false(lock(3, 1, MUSTER_LOCK_KEEP));
	ask(3, 1, MUSTER_LOCK_WAIT);
	assert_false(went_up(3));
	for (int i = 0; i < 4; i++)
		muster_switch_hurry(sw);
	assert_true(went_up(3));
	answer(3, 1, out[nr_out - 1].lock.free, MUSTER_LOCK_WAIT);
	assert_true(lock(3, 1, MUSTER_LOCK_KEEP));
	assert_false(lock(1, 1, MUSTER_LOCK_KEEP));
	assert_false(lock(2, 1, MUSTER_LOCK_KEEP));
	operate(3, 30);
	assert_false(lock(1, 1, MUSTER_LOCK_KEEP));
	assert_true(lock(2, 1, MUSTER_LOCK_KEEP));
}

static void who_waits_is_answered_when_it_can_be_had(void **state)
{
	(void)state;
	assert_true(lock(1, 1, MUSTER_LOCK_TRY));
	assert_false(lock(2, 1, MUSTER_LOCK_KEEP));
	ask(2, 1, MUSTER_LOCK_WAIT);
	muster_switch_step(sw);
	assert_false(went_up(2));
	operate(1, 30);
	assert_true(went_up(2));
	assert_int_equal(out[nr_out - 1].lock.free, 1);
	answer(2, 1, 1, MUSTER_LOCK_WAIT);
	assert_int_equal(counters().locked, 0);		/* it has only waited, and still stands before: */
	assert_false(lock(3, 1, MUSTER_LOCK_TRY));
	assert_true(lock(2, 1, MUSTER_LOCK_KEEP));
}

static void who_waits_is_answered_in_time(void **state)
{
	(void)state;
	assert_true(lock(1, 1, MUSTER_LOCK_TRY));
	assert_false(lock(2, 1, MUSTER_LOCK_KEEP));
	ask(2, 1, MUSTER_LOCK_WAIT);
	muster_switch_hurry(sw);
	assert_true(went_up(2));
	assert_int_equal(out[nr_out - 1].lock.free, 0);
}

/* 4 is of the job of 2. */
static void groups_of_a_job_that_wait_share_its_turn(void **state)
{
	(void)state;
	assert_true(lock(1, 1, MUSTER_LOCK_TRY));
	assert_false(lock(2, 1, MUSTER_LOCK_KEEP));
	assert_false(lock(3, 1, MUSTER_LOCK_KEEP));
	assert_false(lock(4, 1, MUSTER_LOCK_KEEP));
	operate(1, 30);
	assert_true(lock(2, 1, MUSTER_LOCK_KEEP));
	assert_true(lock(4, 1, MUSTER_LOCK_KEEP));
	operate(2, 30);
	assert_false(lock(2, 1, MUSTER_LOCK_KEEP));	/* that is another turn */
	assert_false(lock(3, 1, MUSTER_LOCK_KEEP));
	operate(4, 30);
	assert_true(lock(3, 1, MUSTER_LOCK_KEEP));
}

static void two_streaming_trees_are_active_at_once(void **state)
{
	(void)state;
	assert_true(lock(1, 1, MUSTER_LOCK_TRY));
	assert_true(lock(5, 1, MUSTER_LOCK_TRY));
	assert_false(lock(6, 1, MUSTER_LOCK_KEEP));
	operate(1, 30);
	assert_false(lock(2, 1, MUSTER_LOCK_TRY));	/* 6 stands before */
	assert_true(lock(6, 1, MUSTER_LOCK_KEEP));
	operate(5, 30);
	assert_true(lock(2, 1, MUSTER_LOCK_TRY));
}

static void a_group_that_fails_or_goes_gives_back_what_it_has(void **state)
{
	struct muster_packet packet = from_child(0);

	(void)state;
	assert_true(lock(1, 1, MUSTER_LOCK_TRY));
	assert_false(lock(2, 1, MUSTER_LOCK_KEEP));
	packet.type = MUSTER_PACKET_ABORT;
	packet.number = MUSTER_STATUS_ABORTED;
	packet.length = packet.total = 0;
	hand(1, &packet, 0);			/* of the low-latency one */
	assert_int_equal(counters().locked, 0);
	assert_true(lock(2, 1, MUSTER_LOCK_KEEP));
	assert_false(lock(3, 1, MUSTER_LOCK_KEEP));
	ask(3, 1, MUSTER_LOCK_WAIT);
	assert_int_equal(muster_switch_group_remove(sw, SAT, 2), 0);
	assert_int_equal(counters().locked, 0);
	muster_switch_step(sw);
	assert_true(went_up(3) && out[nr_out - 1].lock.free == 1);
}

static void what_is_no_request_is_dropped(void **state)
{
	uint8_t payload[64] = { 0 };
	uint64_t dropped = 0;

	(void)state;
#define DROPPED(what)                                                             \
	do {                                                                      \
		struct muster_packet packet = request(from_child(0), 1);          \
		what;                                                             \
		muster_switch_receive(sw, 1, &packet, payload, packet.length);    \
		assert_int_equal(counters().drop_malformed, ++dropped);           \
	} while (0)
	DROPPED(packet.length = packet.total = 24);
	DROPPED(packet.length = packet.total = 56);
	DROPPED(packet.pulse = 1);
	DROPPED(packet.signature.type = MUSTER_DTYPE_I64);
	DROPPED(packet.signature.op = MUSTER_REDOP_MAX);
	assert_int_equal(counters().contributions, 0);
}

/* Its groups are not locked, and share it: they are of one job. */
static void a_tree_is_locked_or_of_one_job(void **state)
{
	struct muster_switch_group group = figure_2();

	(void)state;
	group.group = 9;
	group.type = MUSTER_SWITCH_SAT;
	group.tree = SAT;
	assert_int_equal(muster_switch_group_add(sw, &group), -EINVAL);
	group.tree = SAT + 6;
	assert_int_equal(muster_switch_group_add(sw, &group), 0);
	assert_true(lock(1, 1, MUSTER_LOCK_TRY));
	assert_false(lock(5, 1, MUSTER_LOCK_TRY));
	assert_int_equal(muster_switch_group_remove(sw, SAT + 6, 9), 0);
	assert_true(lock(5, 1, MUSTER_LOCK_TRY));
	assert_int_equal(muster_switch_group_add(sw, &group), -EBUSY);
	group.type = MUSTER_SWITCH_LLT;
	group.locks = true;
	assert_int_equal(muster_switch_group_add(sw, &group), -EINVAL);
}

#define LOCK_TEST(f) cmocka_unit_test_setup_teardown(f, open_locks, close_switch)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOCK_TEST(a_lock_is_for_so_many_operations),
		LOCK_TEST(a_lock_that_was_only_asked_for_is_in_nobodys_way),
		LOCK_TEST(a_lock_that_was_only_taken_admits_nobody),
		LOCK_TEST(what_another_has_is_refused_upwards),
		LOCK_TEST(nodes_lock_downwards_and_answer_upwards),
		LOCK_TEST(what_is_refused_below_is_given_back),
		LOCK_TEST(what_is_refused_here_is_not_locked_below),
		LOCK_TEST(a_host_has_no_say_in_the_order),
		LOCK_TEST(the_count_of_locks_ends_at_its_largest),
		LOCK_TEST(a_lock_can_be_given_back),
		LOCK_TEST(no_lock_is_without_end),
		LOCK_TEST(who_keeps_a_place_comes_before_others),
		LOCK_TEST(who_gives_up_stands_before_nobody),
		LOCK_TEST(who_asks_no_more_keeps_its_place_and_blocks_nobody),
		LOCK_TEST(who_waits_is_answered_when_it_can_be_had),
		LOCK_TEST(who_waits_is_answered_in_time),
		LOCK_TEST(groups_of_a_job_that_wait_share_its_turn),
		LOCK_TEST(two_streaming_trees_are_active_at_once),
		LOCK_TEST(a_group_that_fails_or_goes_gives_back_what_it_has),
		LOCK_TEST(what_is_no_request_is_dropped),
		LOCK_TEST(a_tree_is_locked_or_of_one_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
