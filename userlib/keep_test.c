// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Operations that are called again are kept by the device, if they are small, or allreduces of up to a
 * packet: from the third call on a START is all that is posted. What does not fit, or runs already, is
 * posted as always.
 */
#include "testing.h"

enum { COUNT_MAX = MUSTER_MTU / sizeof(int32_t) + 1, LONG = 300 };

static struct test_world *world;

static int setup(void **state)
{
	(void)state;
	world = test_joined(2, TEST_RING_MAX);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	test_world_free(world);
	return 0;
}

/* A sum of `count` numbers, `depth` of them at once. */
static void sum(uint64_t count, uint32_t depth, int32_t value)
{
	static int32_t in[2][8][COUNT_MAX], out[2][8][COUNT_MAX];
	struct muster_request *requests[8][2];
	int results[2];

	for (uint32_t d = 0; d < depth; d++)
		for (uint32_t r = 0; r < 2; r++) {
			for (uint64_t i = 0; i < count; i++)
				in[r][d][i] = (value + (int32_t)d) * (r ? 100 : 1) + (int32_t)i;
			assert_int_equal(muster_allreduce_start(world->comms[r], in[r][d], out[r][d],
								count, MUSTER_I32, MUSTER_SUM,
								&requests[d][r]), 0);
		}
	for (uint32_t d = 0; d < depth; d++) {
		test_finish(world, requests[d], results);
		for (uint32_t r = 0; r < 2; r++) {
			assert_int_equal(results[r], 0);
			for (uint64_t i = 0; i < count; i++)
				assert_int_equal(out[r][d][i],
						 (value + (int32_t)d) * 101 + 2 * (int32_t)i);
		}
	}
}

static void test_the_third_call_is_a_start(void **state)
{
	(void)state;
	for (int32_t i = 0; i < 20; i++)
		sum(2, 1, i);
	for (uint32_t r = 0; r < 2; r++) {
		assert_int_equal(world->nodes[r].keeps, 1);
		assert_int_equal(world->nodes[r].starts, 18);
	}
}

static void test_so_it_is_of_one_that_fills_a_packet(void **state)
{
	(void)state;
	for (int32_t i = 0; i < 20; i++)
		sum(COUNT_MAX - 1, 1, i);
	for (uint32_t r = 0; r < 2; r++) {
		assert_int_equal(world->nodes[r].keeps, 1);
		assert_int_equal(world->nodes[r].starts, 18);
	}
	for (int32_t i = 0; i < 5; i++)
		sum(COUNT_MAX, 1, i);
	assert_int_equal(world->nodes[0].keeps, 1);
	assert_int_equal(world->nodes[0].starts, 18);
}

static void sum_in_place(int32_t value)
{
	static int32_t data[2][LONG];
	struct muster_request *requests[2];
	int results[2];

	for (uint32_t r = 0; r < 2; r++) {
		for (int32_t i = 0; i < LONG; i++)
			data[r][i] = value * (r ? 100 : 1) + i;
		assert_int_equal(muster_allreduce_start(world->comms[r], data[r], data[r], LONG, MUSTER_I32,
							MUSTER_SUM, &requests[r]), 0);
	}
	test_finish(world, requests, results);
	for (uint32_t r = 0; r < 2; r++)
		for (int32_t i = 0; i < LONG; i++)
			assert_int_equal(data[r][i], value * 101 + 2 * i);
}

static void test_in_place_and_apart_are_kept_apart(void **state)
{
	(void)state;
	for (int32_t i = 0; i < 10; i++) {
		sum_in_place(i);
		sum(LONG, 1, i);
	}
	assert_int_equal(world->nodes[0].keeps, 2);
	assert_int_equal(world->nodes[0].starts, 16);
}

/* More kinds than there are places for; those that find none are posted. */
static void test_few_longer_ones_are_kept(void **state)
{
	(void)state;
	for (int32_t i = 0; i < 6; i++)
		for (uint64_t kind = 0; kind < MUSTER_KEPT_LONG + 3; kind++)
			sum(LONG + kind, 1 + i % 2 * 3, i);
	assert_int_equal(world->nodes[0].keeps, MUSTER_KEPT_LONG);
}

/* One that its caller keeps runs by the kept program or, beside another that does, by itself. */
static void test_a_persistent_one_has_its_own_result(void **state)
{
	static int32_t in[2][LONG], out[2][LONG];
	struct muster_request *requests[2];
	int results[2];

	(void)state;
	for (uint32_t r = 0; r < 2; r++)
		assert_int_equal(muster_allreduce_init(world->comms[r], in[r], out[r], LONG, MUSTER_I32,
						       MUSTER_SUM, &requests[r]), 0);
	for (int32_t i = 0; i < 12; i++) {
		static int32_t others[2][LONG], sums[2][LONG];
		struct muster_request *beside[2], *started[2] = { requests[0], requests[1] };
		bool alone = i % 2;

		for (uint32_t r = 0; r < 2; r++) {
			in[r][0] = i + (int32_t)r;
			others[r][0] = 1000 + i;
			if (!alone)
				assert_int_equal(muster_allreduce_start(world->comms[r], others[r], sums[r],
									LONG, MUSTER_I32, MUSTER_SUM,
									&beside[r]), 0);
			assert_int_equal(muster_start(requests[r]), 0);
		}
		if (!alone)
			test_finish(world, beside, results);
		test_finish(world, started, results);
		for (uint32_t r = 0; r < 2; r++)
			assert_int_equal(out[r][0], 2 * i + 1);
		sum(LONG, 1, i);
	}
	for (uint32_t r = 0; r < 2; r++)
		assert_int_equal(muster_request_free(requests[r]), 0);
}

static int refuse(struct muster_dev *dev, const struct muster_desc *descs, uint32_t nr)
{
	(void)dev;
	(void)descs;
	(void)nr;
	return -EAGAIN;
}

/* What would have been a START is posted from its caller's memory, when there is room. */
static void test_a_device_without_room_gets_it_later(void **state)
{
	static int32_t in[2][LONG], out[2][LONG];
	struct muster_dev *dev = world->jobs[0]->dev;
	const struct muster_dev_ops *own = dev->ops;
	struct muster_dev_ops ops = *own;
	struct muster_request *requests[2];
	int results[2];

	(void)state;
	for (int32_t i = 0; i < 5; i++)
		sum(LONG, 1, i);
	ops.start = NULL;
	ops.post = refuse;
	for (uint32_t r = 0; r < 2; r++) {
		in[r][LONG - 1] = 5 + (int32_t)r;
		dev->ops = r ? own : &ops;
		assert_int_equal(muster_allreduce_start(world->comms[r], in[r], out[r], LONG, MUSTER_I32,
							MUSTER_SUM, &requests[r]), 0);
	}
	test_finish(world, requests, results);
	assert_int_equal(results[0] | results[1], 0);
	assert_int_equal(out[0][LONG - 1], 11);
	assert_int_equal(out[1][LONG - 1], 11);
	sum(LONG, 1, 7);
}

static void test_a_barrier_is_kept_too(void **state)
{
	int results[2];

	(void)state;
	for (uint32_t i = 0; i < 5; i++) {
		struct muster_request *requests[2];

		for (uint32_t r = 0; r < 2; r++)
			assert_int_equal(muster_barrier_start(world->comms[r], &requests[r]), 0);
		test_finish(world, requests, results);
		assert_int_equal(results[0] | results[1], 0);
	}
	assert_int_equal(world->nodes[0].starts, 3);
}

static void test_those_that_run_at_once_do_not_share_a_place(void **state)
{
	(void)state;
	for (int32_t i = 0; i < 10; i++)
		sum(3, 8, 1000 * i);
	assert_int_equal(world->nodes[0].keeps, 1);
	assert_true(world->nodes[0].starts >= 9);
}

/* The device replaces what it has kept under a cookie. */
static void test_places_are_used_again_when_entries_go(void **state)
{
	(void)state;
	for (uint32_t turn = 0; turn < 3; turn++)
		for (uint64_t kind = 0; kind < 16; kind++)
			for (int32_t i = 0; i < 4; i++)
				sum(1 + kind, 1, i);
	assert_int_equal(world->nodes[0].keeps, 16);
	for (uint32_t r = 0; r < 2; r++)	/* all entries go, and their places are free */
		assert_int_equal(muster_comm_schedule(world->comms[r], NULL), 0);
	for (uint64_t kind = 0; kind < 16; kind++)
		for (int32_t i = 0; i < 4; i++)
			sum(1 + kind, 1, i);
	assert_int_equal(world->nodes[0].keeps, 32);
	assert_int_equal(world->jobs[0]->kept_descs, 32);
}

static void test_a_device_that_keeps_nothing_is_not_asked_to(void **state)
{
	(void)state;
	world->nodes[0].dev.limits.kept_descs = 1;	/* the other rank's keeps them */
	for (int32_t i = 0; i < 6; i++)
		sum(2, 1, i);
	assert_int_equal(world->nodes[0].keeps, 0);
	assert_int_equal(world->nodes[1].keeps, 1);
}

static void last(const char *schedule, enum muster_path path)
{
	struct muster_op_info info;

	for (uint32_t r = 0; r < 2; r++) {
		muster_comm_last(world->comms[r], &info);
		assert_int_equal(info.path, path);
		assert_string_equal(info.schedule, schedule);
	}
}

static void offload_and_sum(enum muster_offload offload)
{
	for (uint32_t r = 0; r < 2; r++)
		assert_int_equal(muster_comm_offload(world->comms[r], offload), 0);
	for (int32_t i = 0; i < 5; i++)
		sum(2, 1, i);
}

/* A call that is like the last one is started in a shorter way, which must not hide what has changed. */
static void test_what_changes_between_two_calls_is_heeded(void **state)
{
	(void)state;
	for (uint32_t turn = 0; turn < 3; turn++) {
		offload_and_sum(MUSTER_OFFLOAD_TRY);
		last("recursive-doubling", MUSTER_PATH_NIC);
		offload_and_sum(MUSTER_OFFLOAD_OFF);
		last("recursive-doubling", MUSTER_PATH_HOST);
		offload_and_sum(MUSTER_OFFLOAD_TRY);
		for (uint32_t r = 0; r < 2; r++)
			assert_int_equal(muster_comm_schedule(world->comms[r], "binomial"), 0);
		offload_and_sum(MUSTER_OFFLOAD_TRY);
		last("binomial", MUSTER_PATH_NIC);
		for (uint32_t r = 0; r < 2; r++)
			assert_int_equal(muster_comm_schedule(world->comms[r], NULL), 0);
	}
}

/* The rank that waits for the older one last must not run as that one did. */
static void test_a_choice_holds_though_ranks_wait_in_another_order(void **state)
{
	static int32_t in[2][2], out[2][2][2];
	struct muster_request *older[2], *newer[2];
	int results[2];

	(void)state;
	offload_and_sum(MUSTER_OFFLOAD_TRY);
	for (uint32_t r = 0; r < 2; r++)
		assert_int_equal(muster_allreduce_start(world->comms[r], in[r], out[0][r], 2,
							MUSTER_I32, MUSTER_SUM, &older[r]), 0);
	for (uint32_t r = 0; r < 2; r++) {
		assert_int_equal(muster_comm_offload(world->comms[r], MUSTER_OFFLOAD_OFF), 0);
		assert_int_equal(muster_allreduce_start(world->comms[r], in[r], out[1][r], 2,
							MUSTER_I32, MUSTER_SUM, &newer[r]), 0);
	}
	test_finish(world, (struct muster_request *[]){ newer[0], older[1] }, results);
	assert_int_equal(results[0] | results[1], 0);
	test_finish(world, (struct muster_request *[]){ older[0], newer[1] }, results);
	assert_int_equal(results[0] | results[1], 0);
	sum(2, 1, 1);
	last("recursive-doubling", MUSTER_PATH_HOST);
}

/* One runs by a START, others that run beside it are posted, and again. */
static void test_one_at_once_and_several_take_turns(void **state)
{
	(void)state;
	for (int32_t i = 0; i < 12; i++)
		sum(2, i % 4 ? 1 : 5, i);
	assert_int_equal(world->nodes[0].keeps, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_third_call_is_a_start),
		TEST(so_it_is_of_one_that_fills_a_packet),
		TEST(in_place_and_apart_are_kept_apart),
		TEST(few_longer_ones_are_kept),
		TEST(a_persistent_one_has_its_own_result),
		TEST(a_device_without_room_gets_it_later),
		TEST(a_barrier_is_kept_too),
		TEST(those_that_run_at_once_do_not_share_a_place),
		TEST(places_are_used_again_when_entries_go),
		TEST(a_device_that_keeps_nothing_is_not_asked_to),
		TEST(what_changes_between_two_calls_is_heeded),
		TEST(a_choice_holds_though_ranks_wait_in_another_order),
		TEST(one_at_once_and_several_take_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
