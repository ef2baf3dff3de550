// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Communicators that rest: which of many give back what belongs to running, and that nobody sees
 * it of them.
 */
#include "testing.h"

enum { RANKS = 2, MANY = MUSTER_WARM_MAX + 40 };

static struct muster_comm *comms[RANKS][MANY];

/* With the next ids and lives, as if all had agreed. */
static struct test_world *world_of_many(void)
{
	const uint32_t ranks[RANKS] = { 0, 1 };
	struct test_world *world = test_joined(RANKS, TEST_RING_MAX);

	for (uint32_t r = 0; r < RANKS; r++) {
		world->nodes[r].dev.limits.contexts = MANY + 1;
		for (uint32_t i = 0; i < MANY; i++)
			assert_int_equal(muster_comm_build(world->jobs[r], 1 + i, 2 + i, RANKS, ranks,
							   &comms[r][i]), 0);
	}
	return world;
}

static void free_many(struct test_world *world)
{
	for (uint32_t r = 0; r < RANKS; r++)
		for (uint32_t i = 0; i < MANY; i++)
			muster_comm_free(comms[r][i]);
	test_world_free(world);
}

static void start(uint32_t r, uint32_t i, int64_t *value, struct muster_request **request)
{
	*value = r + 10 * i;
	assert_int_equal(muster_allreduce_start(comms[r][i], value, value, 1, MUSTER_I64, MUSTER_SUM,
						request), 0);
}

static void add_up(struct test_world *world, uint32_t i)
{
	struct muster_request *requests[TEST_RANKS_MAX] = { NULL };
	int results[TEST_RANKS_MAX] = { 0 };
	int64_t values[RANKS];

	for (uint32_t r = 0; r < RANKS; r++)
		start(r, i, &values[r], &requests[r]);
	test_finish(world, requests, results);
	for (uint32_t r = 0; r < RANKS; r++) {
		assert_int_equal(results[r], 0);
		assert_int_equal(values[r], 1 + 20 * i);
	}
}

static bool is_warm(uint32_t r, uint32_t i)
{
	const struct muster_comm *comm = comms[r][i];

	return comm->warm;
}

static uint32_t count_warm(uint32_t r)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < MANY; i++)
		nr += is_warm(r, i);
	return nr;
}

static void test_of_many_the_first_cool_and_run_again(void **state)
{
	struct test_world *world = world_of_many();

	(void)state;
	assert_int_equal(count_warm(0), 0);
	for (uint32_t turn = 0; turn < 2; turn++) {
		for (uint32_t i = 0; i < MANY; i++)
			add_up(world, i);
		for (uint32_t r = 0; r < RANKS; r++) {
			assert_in_range(count_warm(r), 1, MUSTER_WARM_MAX);
			assert_true(is_warm(r, MANY - 1));
			assert_false(is_warm(r, 0));
		}
	}
	free_many(world);
}

static void test_who_runs_now_and_then_stays_warm(void **state)
{
	struct test_world *world = world_of_many();

	(void)state;
	for (uint32_t i = 1; i < MANY; i++) {
		add_up(world, i);
		add_up(world, 0);
		assert_true(is_warm(0, 0));
	}
	free_many(world);
}

/* All at once: more are warm than should be, until they have ended and others run. */
static void test_what_is_under_way_is_not_cooled(void **state)
{
	static struct muster_request *requests[RANKS][MANY];
	static int64_t values[RANKS][MANY];
	struct test_world *world = world_of_many();
	struct muster_request *both[TEST_RANKS_MAX] = { NULL };
	int results[TEST_RANKS_MAX] = { 0 };

	(void)state;
	for (uint32_t i = 0; i < MANY; i++)
		start(0, i, &values[0][i], &requests[0][i]);
	assert_int_equal(count_warm(0), MANY);
	for (uint32_t i = 0; i < MANY; i++)
		start(1, i, &values[1][i], &requests[1][i]);
	for (uint32_t i = MANY; i--;) {
		both[0] = requests[0][i];
		both[1] = requests[1][i];
		test_finish(world, both, results);
		assert_int_equal(results[0] | results[1], 0);
		assert_int_equal(values[0][i], 1 + 20 * i);
		assert_int_equal(values[1][i], 1 + 20 * i);
	}
	assert_in_range(count_warm(0), 1, MUSTER_WARM_MAX);
	free_many(world);
}

static void test_what_is_persistent_stays(void **state)
{
	struct test_world *world = world_of_many();
	struct muster_request *request;
	int64_t value = 1;

	(void)state;
	assert_int_equal(muster_allreduce_init(comms[0][0], &value, &value, 1, MUSTER_I64, MUSTER_SUM,
					       &request), 0);
	for (uint32_t i = 1; i < MANY; i++)
		add_up(world, i);
	assert_true(is_warm(0, 0));
	assert_false(is_warm(0, 1));
	assert_int_equal(muster_request_free(request), 0);
	free_many(world);
}

/* From the second call on; were it not forgotten the quota would end it. */
static void test_what_the_device_keeps_it_forgets(void **state)
{
	struct test_world *world = world_of_many();

	(void)state;
	for (uint32_t turn = 0; turn < 3; turn++) {
		for (uint32_t i = 0; i < MANY; i++)
			for (uint32_t call = 0; call < 3; call++)
				add_up(world, i);
		assert_in_range(count_warm(0), 1, MUSTER_WARM_MAX);
		assert_false(is_warm(0, 0));
		assert_int_equal(world->nodes[0].keeps, (turn + 1) * MANY);
		assert_in_range(world->jobs[0]->kept_descs, 1, 4 * MUSTER_WARM_MAX);
	}
	free_many(world);
}

/* It is not cooled then, and runs as before. */
static void test_a_device_without_room_forgets_later(void **state)
{
	struct test_world *world = world_of_many();

	(void)state;
	for (uint32_t i = 0; i < MUSTER_WARM_MAX; i++)
		for (uint32_t call = 0; call < 2; call++)
			add_up(world, i);
	world->nodes[0].post_err = -EAGAIN;
	for (uint32_t i = 0; i < 2 * MUSTER_WARM_MAX; i++)
		muster_warm_review(world->jobs[0], 1);
	assert_int_equal(count_warm(0), MUSTER_WARM_MAX);
	world->nodes[0].post_err = 0;
	for (uint32_t i = 0; i < MANY; i++)
		for (uint32_t call = 0; call < 2; call++)
			add_up(world, i);
	assert_in_range(count_warm(0), 1, MUSTER_WARM_MAX);
	free_many(world);
}

/* On the host path, where the root of a broadcast is done with it at once. */
static int broadcast(uint32_t r, uint32_t i, uint32_t root)
{
	struct muster_request *request;
	int32_t value = 1;
	int err = muster_broadcast_start(comms[r][i], &value, 1, MUSTER_I32, root, &request);

	return err ? err : muster_wait(request);
}

/* Rank 1 calls something else for the first number; how late: in the middle of what rank 0 did. */
static void mismatch(uint32_t calls)
{
	struct test_world *world = world_of_many();

	for (uint32_t r = 0; r < RANKS; r++)
		assert_int_equal(muster_comm_offload(comms[r][0], MUSTER_OFFLOAD_OFF), 0);
	for (uint32_t i = 0; i < calls; i++)
		assert_int_equal(broadcast(0, 0, 0), 0);
	for (uint32_t i = 1; i < MANY; i++)
		add_up(world, i);
	assert_false(is_warm(0, 0));
	assert_int_equal(broadcast(1, 0, 1), 0);
	for (int poll = 0; poll < 1000 && !comms[0][0]->failed; poll++)
		for (uint32_t r = 0; r < RANKS; r++)
			muster_progress(world->jobs[r]);
	assert_int_equal(comms[0][0]->failed, -EPROTO);
	free_many(world);
}

static void test_one_that_is_cool_notices_who_called_something_else(void **state)
{
	(void)state;
	mismatch(1);
	mismatch(5);
}

static void allreduce_of(struct test_world *world, uint32_t i, uint64_t count)
{
	struct muster_request *requests[TEST_RANKS_MAX] = { NULL };
	int64_t values[RANKS][32] = { { 0 } };
	int results[TEST_RANKS_MAX] = { 0 };

	for (uint32_t r = 0; r < RANKS; r++)
		assert_int_equal(muster_allreduce_start(comms[r][i], values[r], values[r], count, MUSTER_I64,
							MUSTER_SUM, &requests[r]), 0);
	test_finish(world, requests, results);
	assert_int_equal(results[0] | results[1], 0);
}

/* Of many different calls the last ones. */
static void test_what_was_forgotten_is_nobodys(void **state)
{
	enum { CALLS = 20 };
	struct test_world *world = world_of_many();
	const struct muster_comm *comm = comms[0][0];
	uint32_t known = 0;

	(void)state;
	for (uint64_t count = 1; count <= CALLS; count++)
		allreduce_of(world, 0, count);
	for (uint32_t i = 1; i < MANY; i++)
		add_up(world, i);
	assert_false(is_warm(0, 0));
	for (uint32_t back = 0; back <= CALLS; back++)
		known += muster_comm_past(comm, comm->number - back) != NULL;
	assert_in_range(known, 1, CALLS - 1);
	add_up(world, 0);
	assert_true(is_warm(0, 0));
	assert_non_null(muster_comm_past(comm, comm->number - 1));
	assert_non_null(muster_comm_past(comm, comm->number - 1 - known));
	assert_null(muster_comm_past(comm, comm->number - 2 - known));
	free_many(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_many_the_first_cool_and_run_again),
		cmocka_unit_test(test_who_runs_now_and_then_stays_warm),
		cmocka_unit_test(test_what_is_under_way_is_not_cooled),
		cmocka_unit_test(test_what_is_persistent_stays),
		cmocka_unit_test(test_what_the_device_keeps_it_forgets),
		cmocka_unit_test(test_a_device_without_room_forgets_later),
		cmocka_unit_test(test_one_that_is_cool_notices_who_called_something_else),
		cmocka_unit_test(test_what_was_forgotten_is_nobodys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
