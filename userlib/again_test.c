// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What runs once more as it did (again.c): who must not be forgotten meanwhile, and what may
 * happen to it while it is under way.
 */
#include "testing.h"

enum { WARM = 5, MANY = 2000 };

static struct test_world *world;
static struct muster_comm *worlds[2];
static int64_t in[2], out[2];

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

static void start(struct muster_request *requests[2])
{
	for (uint32_t r = 0; r < 2; r++) {
		in[r]++;
		assert_int_equal(muster_allreduce_start(world->comms[r], &in[r], &out[r], 1, MUSTER_I64,
							MUSTER_SUM, &requests[r]), 0);
	}
}

static void finish(struct muster_request *requests[2], int result)
{
	int results[2];

	test_finish(world, requests, results);
	for (uint32_t r = 0; r < 2; r++) {
		assert_int_equal(results[r], result);
		if (!result)
			assert_int_equal(out[r], in[0] + in[1]);
	}
}

static void warm_up(void)
{
	struct muster_request *requests[2];

	for (int i = 0; i < WARM; i++) {
		start(requests);
		finish(requests, 0);
	}
	for (uint32_t r = 0; r < 2; r++)
		assert_non_null(world->comms[r]->ready);
}

static void *dup_run(void *opaque)
{
	struct test_thread *thread = opaque;
	struct muster_comm **comm = &thread->world->comms[thread->rank];

	worlds[thread->rank] = *comm;
	assert_int_equal(muster_comm_dup(*comm, comm), 0);
	return NULL;
}

/* Nobody tests it: who waits for others all the time carries it on. */
static void test_an_operation_of_the_host_goes_on_meanwhile(void **state)
{
	struct muster_request *aside[2], *requests[2];
	int64_t values[2] = { 1, 2 };

	(void)state;
	test_all(world, dup_run, NULL);
	warm_up();
	for (uint32_t r = 0; r < 2; r++) {
		assert_int_equal(muster_comm_offload(worlds[r], MUSTER_OFFLOAD_OFF), 0);
		assert_int_equal(muster_allreduce_start(worlds[r], &values[r], &values[r], 1, MUSTER_I64,
							MUSTER_SUM, &aside[r]), 0);
	}
	for (int i = 0; i < MANY; i++) {
		start(requests);
		for (uint32_t r = 0; r < 2; r++)
			assert_int_equal(muster_wait(requests[r]), 0);
	}
	for (uint32_t r = 0; r < 2; r++) {
		assert_int_equal(aside[r]->state, MUSTER_REQUEST_DONE);
		assert_int_equal(muster_wait(aside[r]), 0);
		assert_int_equal(values[r], 3);
	}
	for (uint32_t r = 0; r < 2; r++)
		muster_comm_free(world->comms[r]);
}

/* What is dropped at any point goes on, ends, and can be so again. */
static void test_what_is_dropped_while_it_runs_ends(void **state)
{
	struct muster_request *requests[2];

	(void)state;
	for (int turn = 0; turn < 3; turn++) {
		warm_up();
		start(requests);
		for (uint32_t r = 0; r < 2; r++) {
			assert_ptr_equal(world->jobs[r]->again, requests[r]);
			muster_again_drop(world->comms[r]);
			assert_null(world->jobs[r]->again);
		}
		finish(requests, 0);
	}
}

static void test_a_persistent_call_meanwhile_changes_nothing(void **state)
{
	struct muster_request *requests[2], *persistent[2];

	(void)state;
	warm_up();
	start(requests);
	for (uint32_t r = 0; r < 2; r++) {
		assert_int_equal(muster_allreduce_init(world->comms[r], &in[r], &out[r], 1, MUSTER_I64,
						       MUSTER_SUM, &persistent[r]), 0);
		assert_null(world->comms[r]->ready);
	}
	finish(requests, 0);
	for (uint32_t r = 0; r < 2; r++)
		assert_int_equal(muster_start(persistent[r]), 0);
	finish(persistent, 0);
	warm_up();
}

static void test_a_communicator_that_is_freed_in_flight_ends_it_first(void **state)
{
	struct muster_request *requests[2];

	(void)state;
	test_all(world, dup_run, NULL);
	warm_up();
	start(requests);
	for (uint32_t r = 0; r < 2; r++)
		muster_comm_free(world->comms[r]);
	finish(requests, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_operation_of_the_host_goes_on_meanwhile),
		TEST(what_is_dropped_while_it_runs_ends),
		TEST(a_persistent_call_meanwhile_changes_nothing),
		TEST(a_communicator_that_is_freed_in_flight_ends_it_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
