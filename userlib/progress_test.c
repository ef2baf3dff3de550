// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * When operations end, and what those who wait or only look find out meanwhile.
 */
#include "testing.h"
#include "ticks.h"

enum { OPS = 3, TURNS = 200 };

/* Several operations of all ranks; rank 0's device does not get rid of what it has sent. */
static void held(enum muster_offload offload)
{
	struct test_world *world = test_joined(3, TEST_RING_MAX);
	struct muster_request *requests[OPS][TEST_RANKS_MAX] = { { NULL } }, *first[OPS];
	int64_t values[OPS][3];
	int results[TEST_RANKS_MAX];
	bool done;

	offload_all(world, offload);
	world->nodes[0].dev.holding = world->nodes[0].keeps_back = true;
	for (int k = 0; k < OPS; k++)
		for (uint32_t i = 0; i < 3; i++) {
			values[k][i] = k + i;
			assert_int_equal(muster_allreduce_start(world->comms[i], &values[k][i], &values[k][i],
								1, MUSTER_I64, MUSTER_SUM,
								&requests[k][i]), 0);
		}
	for (int k = 0; k < OPS; k++) {
		first[k] = requests[k][0];
		requests[k][0] = NULL;
	}
	for (int turn = 0; turn < TURNS; turn++) {
		for (uint32_t i = 1; i < 3; i++)
			muster_progress(world->jobs[i]);
		assert_int_equal(muster_test(first[0], &done), 0);
		assert_false(done);
	}
	world->nodes[0].keeps_back = false;
	for (int k = 0; k < OPS; k++) {
		requests[k][0] = first[k];
		test_finish(world, requests[k], results);
		for (uint32_t i = 0; i < 3; i++) {
			assert_int_equal(results[i], 0);
			assert_int_equal(values[k][i], 3 * k + 3);
		}
	}
	test_world_free(world);
}

static void test_an_operation_ends_when_what_it_sent_has_left(void **state)
{
	(void)state;
	held(MUSTER_OFFLOAD_FORCE);
	held(MUSTER_OFFLOAD_OFF);
}

/* The others are done, so is this one: what comes afterwards is no error of it. */
static void test_what_has_ended_and_not_left_is_no_failure(void **state)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	struct muster_request *requests[TEST_RANKS_MAX] = { NULL }, *first;
	int64_t values[2] = { 1, 2 };
	int results[TEST_RANKS_MAX];
	bool done = false;

	(void)state;
	world->nodes[0].dev.holding = world->nodes[0].keeps_back = true;
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(muster_allreduce_start(world->comms[i], &values[i], &values[i], 1,
							MUSTER_I64, MUSTER_SUM, &requests[i]), 0);
	first = requests[0];
	requests[0] = NULL;
	test_finish(world, requests, results);
	for (int turn = 0; turn < TURNS; turn++)
		muster_progress(world->jobs[0]);
	test_kill(world, 1);
	while (!done)
		assert_int_equal(muster_test(first, &done), 0);
	assert_int_equal(values[0], 3);
	world->nodes[1].dead = false;
	test_world_free(world);
}

static uint64_t fake_us;

static uint64_t fake_now(struct muster_dev *dev)
{
	(void)dev;
	return fake_us;
}

/* Each waits for the other's data, and nobody sends anything. They only look, now and then. */
static void test_ranks_that_only_look_find_out_that_they_called_different_things(void **state)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	struct muster_dev_ops ops = *world->nodes[0].dev.ops;
	struct muster_request *requests[2];
	int64_t values[2] = { 0 };
	bool done[2] = { false };

	(void)state;
	ops.now_us = fake_now;
	fake_us = 1000;
	for (uint32_t i = 0; i < 2; i++) {
		world->nodes[i].dev.ops = &ops;
		assert_int_equal(muster_broadcast_start(world->comms[i], &values[i], 1, MUSTER_I64, 1 - i,
							&requests[i]), 0);
	}
	for (int turn = 0; !done[0] || !done[1]; turn++) {
		fake_us += 10000;
		assert_true(turn < 1000);
		for (uint32_t i = 0; i < 2; i++) {
			int ret = done[i] ? -EPROTO : muster_test(requests[i], &done[i]);

			assert_int_equal(ret, done[i] ? -EPROTO : 0);
		}
	}
	assert_non_null(strstr(muster_error(world->jobs[0]), " called "));
	test_world_free(world);
}

static uint32_t looks;		/* at the system's clock */

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	looks++;
	return __real_clock_gettime(clock, now);
}

/* But each test that comes a little later than the last look does: nobody is found out late. */
static void test_who_tests_again_and_again_seldom_looks_at_the_clock(void **state)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	struct muster_request *requests[TEST_RANKS_MAX], *first;
	int64_t values[2] = { 1, 2 };
	uint64_t began, ticks;
	int results[2];
	bool done;

	(void)state;
	if (muster_ticks_clock() != MUSTER_TRACE_TSC)
		skip();
	assert_int_equal(muster_allreduce_start(world->comms[0], &values[0], &values[0], 1, MUSTER_I64,
						MUSTER_SUM, &requests[0]), 0);
	first = requests[0];
	looks = 0;
	began = muster_ticks_tsc();
	for (int i = 0; i < 10000; i++)
		assert_int_equal(muster_test(first, &done), 0);
	ticks = muster_ticks_tsc() - began;
	if (looks > 1 + ticks / MUSTER_TICKS_FEW)
		fail_msg("%u looks in %llu ticks", looks, (unsigned long long)ticks);
	for (int i = 0; i < 3; i++) {
		began = muster_ticks_tsc();
		while (muster_ticks_tsc() - began < MUSTER_TICKS_FEW)
			;
		looks = 0;
		assert_int_equal(muster_test(first, &done), 0);
		assert_int_equal(looks, 1);
	}
	assert_int_equal(muster_allreduce_start(world->comms[1], &values[1], &values[1], 1, MUSTER_I64,
						MUSTER_SUM, &requests[1]), 0);
	test_finish(world, requests, results);
	assert_int_equal(values[0], 3);
	test_world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_operation_ends_when_what_it_sent_has_left),
		cmocka_unit_test(test_what_has_ended_and_not_left_is_no_failure),
		cmocka_unit_test(test_ranks_that_only_look_find_out_that_they_called_different_things),
		cmocka_unit_test(test_who_tests_again_and_again_seldom_looks_at_the_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
