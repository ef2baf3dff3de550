// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Credits between ranks: no ring overflows, none is lost with a communicator that was
 * closed, no communicator that waits holds up another, and what is lent comes back.
 */
#include "testing.h"

#include "pair.h"
#include "message.h"

enum { FRAGMENT = MUSTER_MTU / sizeof(double), COUNT_MAX = 40 * FRAGMENT };

static double values[TEST_RANKS_MAX][COUNT_MAX];

static void *dup_run(void *opaque)
{
	struct test_thread *thread = opaque;
	struct test_world *world = thread->world;
	struct muster_comm *parent = muster_world(world->jobs[thread->rank]);

	world->results[thread->rank] = muster_comm_dup(parent, &world->comms[thread->rank]);
	return NULL;
}

static void dup_all(struct test_world *world)
{
	test_all(world, dup_run, NULL);
	for (uint32_t i = 0; i < world->size; i++)
		assert_int_equal(world->results[i], 0);
}

static void offload_off(struct test_world *world)
{
	for (uint32_t i = 0; i < world->size; i++)
		muster_comm_offload(muster_world(world->jobs[i]), MUSTER_OFFLOAD_OFF);
}

/* All of the world, on the host path. */
static void broadcast(struct test_world *world, uint32_t root, uint64_t count)
{
	struct muster_request *requests[TEST_RANKS_MAX];
	int results[TEST_RANKS_MAX];

	for (uint32_t i = 0; i < world->size; i++) {
		values[i][count - 1] = i;
		assert_int_equal(muster_broadcast_start(muster_world(world->jobs[i]), values[i], count,
							MUSTER_F64, root, &requests[i]), 0);
	}
	test_finish(world, requests, results);
	for (uint32_t i = 0; i < world->size; i++) {
		assert_int_equal(results[i], 0);
		assert_true(values[i][count - 1] == root);
	}
	assert_int_equal(world->drops, 0);
}

static void test_rings_that_are_too_small_for_the_ranks_are_refused_everywhere(void **state)
{
	struct test_world *world = test_world_new(9);

	(void)state;
	world->ring_slots = 8 * (MUSTER_PAIR_FLOOR_MIN + MUSTER_PAIR_REPORTS) - 1;
	test_all(world, test_join_run, NULL);
	for (uint32_t i = 0; i < 9; i++) {
		assert_int_equal(world->results[i], -ENOSPC);
		assert_non_null(strstr(world->said[i], "too small for 9 ranks (32 are needed)"));
	}
	pthread_barrier_destroy(&world->barrier);
	free(world);
}

/* As in guests: every rank speaks to all in turn, and many at once. */
static void test_eighteen_ranks_share_rings_of_192(void **state)
{
	struct test_world *world = test_joined(18, 192);
	struct muster_request *requests[TEST_RANKS_MAX];
	int results[TEST_RANKS_MAX];

	(void)state;
	offload_off(world);
	for (uint32_t root = 0; root < 18; root += 5)
		broadcast(world, root, COUNT_MAX);
	for (uint32_t i = 0; i < 18; i++)
		assert_int_equal(muster_allreduce_start(world->comms[i], values[i], values[i],
							COUNT_MAX, MUSTER_F64, MUSTER_SUM,
							&requests[i]), 0);
	test_finish(world, requests, results);
	assert_int_equal(world->drops, 0);
	test_world_free(world);
}

enum { UNREAD = 14 };

/* Rank 1 sends on all of them what rank 0 does not ask for, and then both work on the world. */
static void test_what_is_not_read_holds_up_no_other(void **state)
{
	static struct muster_request *requests[UNREAD][TEST_RANKS_MAX];
	struct muster_comm *comms[UNREAD][2];
	struct test_world *world = test_joined(2, MUSTER_PAIR_FLOOR_MIN + MUSTER_PAIR_REPORTS);
	int results[2];

	(void)state;
	offload_off(world);
	for (int k = 0; k < UNREAD; k++) {
		dup_all(world);
		memcpy(comms[k], world->comms, sizeof(comms[k]));
		assert_int_equal(muster_broadcast_start(comms[k][1], values[1], COUNT_MAX, MUSTER_F64,
							1, &requests[k][1]), 0);
	}
	for (int turn = 0; turn < 3; turn++)
		broadcast(world, 1, COUNT_MAX);
	for (int k = UNREAD - 1; k >= 0; k--) {
		assert_int_equal(muster_broadcast_start(comms[k][0], values[0], COUNT_MAX, MUSTER_F64,
							1, &requests[k][0]), 0);
		test_finish(world, requests[k], results);
		assert_int_equal(results[0] | results[1], 0);
	}
	assert_int_equal(world->drops, 0);
	test_world_free(world);
}

/* All wait for one pair's credits: nobody visits them until there are some, and then all have their turn. */
static void test_who_waits_for_credits_stands_in_line(void **state)
{
	static struct muster_request *requests[UNREAD][TEST_RANKS_MAX];
	struct test_world *world = test_joined(2, MUSTER_PAIR_FLOOR_MIN + MUSTER_PAIR_REPORTS);
	int results[2];

	(void)state;
	offload_off(world);
	for (int k = 0; k < UNREAD; k++) {
		dup_all(world);
		for (uint32_t i = 0; i < 2; i++)
			assert_int_equal(muster_broadcast_start(world->comms[i], values[i], COUNT_MAX,
								MUSTER_F64, 1, &requests[k][i]), 0);
	}
	for (int poll = 0; poll < 20; poll++)
		muster_progress(world->jobs[1]);
	assert_null(world->jobs[1]->active);
	assert_int_equal(world->jobs[1]->nr_waiting, UNREAD);
	for (int k = 0; k < UNREAD; k++)
		test_finish(world, requests[k], results);
	assert_int_equal(world->jobs[0]->nr_waiting + world->jobs[1]->nr_waiting, 0);
	test_world_free(world);
}

/* What is sent to who has closed the communicator is dropped; its credits come back. */
static void test_credits_outlive_communicators(void **state)
{
	struct test_world *world = test_joined(2, 16);

	(void)state;
	offload_off(world);
	for (int turn = 0; turn < 40; turn++) {
		struct muster_request *requests[TEST_RANKS_MAX] = { NULL };
		bool early = turn % 2;	/* or it comes, and is never asked for */
		int results[2];

		dup_all(world);
		assert_int_equal(muster_broadcast_start(world->comms[1], values[1], 3 * FRAGMENT,
							MUSTER_F64, 1, &requests[1]), 0);
		for (int poll = 0; poll < 10 && !early; poll++)
			muster_progress(world->jobs[0]);
		muster_comm_free(world->comms[0]);
		test_finish(world, requests, results);
		assert_int_equal(results[1], 0);
		muster_comm_free(world->comms[1]);
	}
	broadcast(world, 1, COUNT_MAX);
	for (uint32_t i = 0; i < 2; i++) {
		const struct muster_pair *pair = &world->jobs[i]->pairs[!i];

		assert_int_equal(world->jobs[!i]->pairs[i].sent, pair->read);
		for (int k = 0; k < MUSTER_COMM_BUCKETS; k++)
			assert_null(world->jobs[i]->closed[k]);
	}
	test_world_free(world);
}

/* It is in an operation with who has left: nobody tells it, so it asks. */
static void test_who_waits_for_one_that_has_closed_is_told(void **state)
{
	struct test_world *world = test_joined(2, MUSTER_PAIR_FLOOR_MIN + MUSTER_PAIR_REPORTS);
	struct muster_request *request;

	(void)state;
	offload_off(world);
	dup_all(world);
	muster_comm_free(world->comms[0]);
	assert_int_equal(muster_broadcast_start(world->comms[1], values[1], COUNT_MAX, MUSTER_F64, 1,
						&request), 0);
	for (int ask = 0; ask < 100 && !world->comms[1]->failed; ask++) {
		muster_channel_probe(world->comms[1]);
		for (int turn = 0; turn < 10; turn++)
			for (uint32_t i = 0; i < 2; i++)
				muster_progress(world->jobs[i]);
	}
	assert_int_equal(world->comms[1]->failed, -ECONNRESET);
	assert_int_equal(muster_wait(request), -ECONNRESET);
	muster_comm_free(world->comms[1]);
	broadcast(world, 1, COUNT_MAX);
	test_world_free(world);
}

/* One speaks and borrows all there is; then another does, and the first gives back. */
static void test_what_is_lent_moves_to_who_speaks(void **state)
{
	struct test_world *world = test_joined(3, 2 * (MUSTER_PAIR_FLOOR_MAX + MUSTER_PAIR_REPORTS) + 20);
	const struct muster *job = world->jobs[0];
	uint32_t floor = MUSTER_PAIR_FLOOR_MAX;

	(void)state;
	offload_off(world);
	assert_int_equal(job->pair_floor, floor);
	for (uint32_t seed = 0; seed < 6; seed++) {
		uint32_t speaks = 1 + seed % 2, silent = 3 - speaks;

		world->seed = seed;
		for (int turn = 0; turn < 4; turn++)
			broadcast(world, speaks, COUNT_MAX);
		assert_true(job->pairs[speaks].window > floor + 8);
		assert_true(job->pairs[silent].window <= floor + 8);
		assert_true(job->pairs[silent].window >= floor);
		assert_true(job->pairs[1].window + job->pairs[2].window + job->ring_free ==
			    2 * floor + 20);
	}
	test_world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rings_that_are_too_small_for_the_ranks_are_refused_everywhere),
		cmocka_unit_test(test_eighteen_ranks_share_rings_of_192),
		cmocka_unit_test(test_what_is_not_read_holds_up_no_other),
		cmocka_unit_test(test_who_waits_for_credits_stands_in_line),
		cmocka_unit_test(test_credits_outlive_communicators),
		cmocka_unit_test(test_who_waits_for_one_that_has_closed_is_told),
		cmocka_unit_test(test_what_is_lent_moves_to_who_speaks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
