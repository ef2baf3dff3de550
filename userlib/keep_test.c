// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Small operations that are called again are kept by the device: from the third call on a
 * START is all that is posted. What does not fit, or runs already, is posted as always.
 */
#include "testing.h"

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
	static int32_t in[2][8][16], out[2][8][16];
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

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_third_call_is_a_start),
		TEST(a_barrier_is_kept_too),
		TEST(those_that_run_at_once_do_not_share_a_place),
		TEST(places_are_used_again_when_entries_go),
		TEST(a_device_that_keeps_nothing_is_not_asked_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
