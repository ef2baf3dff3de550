// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Persistent operations: the results of every start are those of a call, on both paths, and
 * nothing is made, registered or agreed upon after the first.
 */
#include "test_calls.h"

enum { RANKS = TEST_CALL_RANKS, STARTS = 5, COUNT = 40, LONG = TEST_CALL_LONG, ROOM = TEST_CALL_ROOM };

static void fill(int64_t *data, uint32_t rank, uint32_t seed)
{
	for (uint64_t i = 0; i < ROOM; i++)
		data[i] = (int64_t)(i * 7 + rank * 1000003 + seed * 10007);
}

/* The same data to a call and to a start: in both buffers, as some are in place. */
static void fill_all(int64_t *in[RANKS], int64_t *out[RANKS], uint32_t seed)
{
	for (uint32_t i = 0; i < RANKS; i++) {
		fill(in[i], i, seed);
		fill(out[i], i, seed + 500);
	}
}

static void finish(struct test_world *world, struct muster_request *const *all)
{
	struct muster_request *requests[TEST_RANKS_MAX] = { 0 };
	int results[TEST_RANKS_MAX];

	memcpy(requests, all, RANKS * sizeof(*all));
	test_finish(world, requests, results);
	for (uint32_t i = 0; i < RANKS; i++)
		assert_int_equal(results[i], 0);
}

static uint64_t registrations(const struct test_world *world)
{
	uint64_t lives = 0;

	for (uint32_t i = 0; i < RANKS; i++)
		lives += world->nodes[i].lives;
	return lives;
}

static void try(struct test_world *world, enum test_call what, uint64_t count)
{
	static int64_t buffers[3][RANKS][ROOM];
	int64_t *in[RANKS], *out[RANKS], *expected[RANKS];
	struct muster_request *all[RANKS], *once[RANKS];
	uint64_t registered[STARTS];

	for (uint32_t i = 0; i < RANKS; i++) {
		in[i] = buffers[0][i];
		out[i] = buffers[1][i];
		expected[i] = buffers[2][i];
		assert_int_equal(test_call(world->comms[i], what, count, in[i], out[i], true, &all[i]), 0);
	}
	for (uint32_t k = 0; k < STARTS; k++) {
		fill_all(in, expected, k);
		for (uint32_t i = 0; i < RANKS; i++)
			assert_int_equal(test_call(world->comms[i], what, count, in[i], expected[i], false,
					      &once[i]), 0);
		finish(world, once);
		registered[k] = registrations(world);
		fill_all(in, out, k);
		for (uint32_t i = 0; i < RANKS; i++) {
			assert_int_equal(muster_start(all[i]), 0);
			assert_int_equal(muster_start(all[i]), -EINVAL);
			if (all[i]->state != MUSTER_REQUEST_DONE)
				assert_int_equal(muster_request_free(all[i]), -EINVAL);
		}
		finish(world, all);
		if (k)
			assert_int_equal(registrations(world), registered[k]);
		for (uint32_t i = 0; i < RANKS; i++)
			assert_memory_equal(out[i], expected[i], sizeof(buffers[0][0]));
	}
	for (uint32_t i = 0; i < RANKS; i++)
		assert_int_equal(muster_request_free(all[i]), 0);
}

static void every_start_is_a_call(enum muster_offload offload)
{
	struct test_world *world = test_joined(RANKS, TEST_RING_MAX);
	enum muster_op op;

	offload_all(world, offload);
	for (uint32_t i = 0; i < RANKS; i++)
		assert_int_equal(muster_op_create(world->jobs[i], test_call_add, NULL, &op), 0);
	for (enum test_call what = 0; what < TEST_CALLS; what++) {
		try(world, what, 0);
		try(world, what, 1);
		try(world, what, COUNT);
		try(world, what, LONG);
	}
	test_world_free(world);
}

static void test_every_start_is_as_a_call_of_its_own(void **state)
{
	(void)state;
	every_start_is_a_call(MUSTER_OFFLOAD_FORCE);
	every_start_is_a_call(MUSTER_OFFLOAD_OFF);
}

/* From the second start on it is one descriptor, however seldom it is called otherwise. */
static void test_a_small_one_is_kept_by_the_device_from_its_first_start_on(void **state)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	struct muster_request *all[2], *requests[TEST_RANKS_MAX];
	int64_t values[2], sums[2];
	int results[TEST_RANKS_MAX];

	(void)state;
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(muster_allreduce_init(world->comms[i], &values[i], &sums[i], 1, MUSTER_I64,
						       MUSTER_SUM, &all[i]), 0);
	for (uint32_t k = 0; k < STARTS; k++) {
		for (uint32_t i = 0; i < 2; i++) {
			values[i] = 10 * k + i;
			assert_int_equal(muster_start(all[i]), 0);
			requests[i] = all[i];
		}
		test_finish(world, requests, results);
		assert_int_equal(sums[0], 20 * k + 1);
		assert_int_equal(sums[1], 20 * k + 1);
	}
	assert_int_equal(world->nodes[0].keeps, 1);
	assert_int_equal(world->nodes[0].starts, STARTS - 1);
	test_world_free(world);		/* frees them, too */
}

static void test_it_keeps_a_communicator_that_was_freed(void **state)
{
	struct test_world *world = test_joined(1, TEST_RING_MAX);
	int64_t value = 5, sum = 0;
	struct muster_request *request;
	struct muster_comm *comm;
	bool done;

	(void)state;
	assert_int_equal(muster_comm_dup(world->comms[0], &comm), 0);
	assert_int_equal(muster_allreduce_init(comm, &value, &sum, 1, MUSTER_I64, MUSTER_SUM, &request), 0);
	muster_comm_free(comm);
	assert_int_equal(muster_test(request, &done), 0);
	assert_true(done);
	for (value = 6; value < 9; value++) {
		assert_int_equal(muster_start(request), 0);
		assert_int_equal(muster_wait(request), 0);
		assert_int_equal(muster_wait(request), 0);
		assert_int_equal(sum, value);
	}
	assert_int_equal(world->jobs[0]->nr_comms, 2);
	assert_int_equal(muster_request_free(request), 0);
	muster_progress(world->jobs[0]);
	assert_int_equal(world->jobs[0]->nr_comms, 1);
	assert_int_equal(muster_barrier_start(world->comms[0], &request), 0);
	assert_int_equal(muster_request_free(request), -EINVAL);
	assert_int_equal(muster_wait(request), 0);
	test_world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_start_is_as_a_call_of_its_own),
		cmocka_unit_test(test_a_small_one_is_kept_by_the_device_from_its_first_start_on),
		cmocka_unit_test(test_it_keeps_a_communicator_that_was_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
