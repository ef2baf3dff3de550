// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How operations end when ranks disagree, die, are late or leave: who is told
 * what, on both paths.
 */
#include "testing.h"

static void finish_all(struct test_world *world, struct muster_request **requests, int expected)
{
	int results[TEST_RANKS_MAX];

	test_finish(world, requests, results);
	for (uint32_t i = 0; i < world->size; i++)
		if (!world->nodes[i].dead && results[i] != expected)
			fail_msg("rank %u: %d: %s", i, results[i], muster_error(world->jobs[i]));
}

static void assert_says(struct muster *job, const char *words)
{
	if (!strstr(muster_error(job), words))
		fail_msg("\"%s\" is not in: %s", words, muster_error(job));
}

/* Every later operation says the same. */
static void assert_ended(struct test_world *world, uint32_t rank, int err, const char *words)
{
	struct muster_request *request;

	assert_int_equal(muster_barrier_start(world->comms[rank], &request), err);
	assert_says(world->jobs[rank], words);
}

static void mismatch(enum muster_offload offload)
{
	struct test_world *world = test_joined(3, TEST_RING_MAX);
	struct muster_request *requests[3];
	double values[3][20] = { { 0 } };
	int results[3];

	offload_all(world, offload);
	for (uint32_t i = 0; i < 3; i++)	/* in which rank 0 hears of rank 2 alone */
		assert_int_equal(muster_comm_schedule(world->comms[i], "allreduce=recursive-doubling"), 0);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(muster_allreduce_start(world->comms[i], values[i], values[i], 20,
							MUSTER_F64, MUSTER_SUM, &requests[i]), 0);
	assert_int_equal(muster_reduce_start(world->comms[2], values[2], NULL, 20, MUSTER_F64,
					     MUSTER_MAX, 0, &requests[2]), 0);
	/* A rank that only sends may be through already, but with this operation only. */
	test_finish(world, requests, results);
	assert_int_equal(results[0], -EPROTO);
	assert_int_equal(results[1], -EPROTO);
	assert_true(results[2] == 0 || results[2] == -EPROTO);
	muster_progress(world->jobs[2]);
	assert_ended(world, 2, -EPROTO, "rank");
	assert_ended(world, 0, -EPROTO, "rank 2 called reduce of f64 max with root 0, this rank called allreduce of f64 sum");
	test_world_free(world);
}

static void test_ranks_that_call_different_operations_are_told_which(void **state)
{
	(void)state;
	mismatch(MUSTER_OFFLOAD_FORCE);
	mismatch(MUSTER_OFFLOAD_OFF);
}

static void length_mismatch(enum muster_offload offload, uint64_t other)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	struct muster_request *requests[2];
	static double values[2][4000];

	offload_all(world, offload);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(muster_allreduce_start(world->comms[i], values[i], values[i],
							i ? other : 3, MUSTER_F64, MUSTER_SUM,
							&requests[i]), 0);
	finish_all(world, requests, -EPROTO);
	assert_true(strstr(muster_error(world->jobs[0]), "another count") ||
		    strstr(muster_error(world->jobs[1]), "another count"));
	test_world_free(world);
}

static void test_ranks_with_different_lengths_are_told(void **state)
{
	(void)state;
	length_mismatch(MUSTER_OFFLOAD_FORCE, 4);
	length_mismatch(MUSTER_OFFLOAD_FORCE, 4000);
	length_mismatch(MUSTER_OFFLOAD_OFF, 4);
	length_mismatch(MUSTER_OFFLOAD_OFF, 4000);
}

static void root_mismatch(enum muster_offload offload)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	struct muster_request *requests[2];
	int results[2];
	int32_t values[2][2] = { { 1 }, { 2 } };
	bool told = false;

	offload_all(world, offload);
	/* Both are roots and could finish; no later operation may succeed. */
	for (int k = 0; k < 2 && !told; k++) {
		for (uint32_t i = 0; i < 2; i++)
			if (muster_broadcast_start(world->comms[i], values[i], 2, MUSTER_I32, i,
						   &requests[i])) {
				requests[i] = NULL;
				told = true;
			}
		test_finish(world, requests, results);
		told |= results[0] == -EPROTO || results[1] == -EPROTO;
	}
	assert_true(told);
	test_world_free(world);
}

/* Rank 2 hears of it from rank 1, which blames rank 0: both are named, as either may be the odd one. */
static void test_who_hears_of_a_mismatch_is_told_of_both_ranks(void **state)
{
	struct test_world *world = test_joined(3, TEST_RING_MAX);
	struct muster_comm *comm = world->comms[1];

	(void)state;
	muster_comm_abort(comm, MUSTER_STATUS_MISMATCH, 0, NULL, NULL);
	for (int turn = 0; turn < 10; turn++) {
		muster_progress(world->jobs[0]);
		muster_progress(world->jobs[2]);
	}
	assert_ended(world, 0, -EPROTO, "rank 0 and rank 1 called different operations");
	assert_ended(world, 2, -EPROTO, "rank 0 and rank 1 called different operations");
	test_world_free(world);
}

/* Rank 2 hears that rank 1 differs, in what has no words. */
static void told_by(uint32_t by, const char *words)
{
	static const struct muster_signature signature = {
		.coll = MUSTER_COLL_ALLREDUCE, .type = MUSTER_F64, .op = MUSTER_SUM,
	};
	struct test_world *world = test_joined(3, TEST_RING_MAX);

	muster_comm_fail_status(world->comms[2], MUSTER_STATUS_MISMATCH, 1, by, &signature, &signature);
	assert_ended(world, 2, -EPROTO, words);
	test_world_free(world);
}

static void test_where_nobody_says_who_noticed_a_mismatch_this_rank_is_not_named(void **state)
{
	(void)state;
	told_by(2, "rank 1 called allreduce of f64 sum with another count, schedule or path than this rank");
	told_by(MUSTER_BY_NONE, "rank 1 called allreduce of f64 sum, another rank something else, or with another count");
}

static void test_two_broadcasts_with_different_roots_are_found_out(void **state)
{
	(void)state;
	root_mismatch(MUSTER_OFFLOAD_FORCE);
	root_mismatch(MUSTER_OFFLOAD_OFF);
}

static void test_ranks_on_different_paths_are_told(void **state)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	struct muster_request *requests[2];
	double values[2] = { 1, 2 };

	(void)state;
	muster_comm_offload(world->comms[1], MUSTER_OFFLOAD_OFF);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(muster_allreduce_start(world->comms[i], &values[i], &values[i], 1,
							MUSTER_F64, MUSTER_SUM, &requests[i]), 0);
	finish_all(world, requests, -EPROTO);
	assert_ended(world, 0, -EPROTO, "path");
	test_world_free(world);
}

static void dead_peer(enum muster_offload offload)
{
	struct test_world *world = test_joined(4, TEST_RING_MAX);
	struct muster_request *requests[4] = { NULL };
	static float values[4][50000];

	offload_all(world, offload);
	for (uint32_t i = 0; i < 4; i++)
		if (i != 2)
			assert_int_equal(muster_allreduce_start(world->comms[i], values[i],
								values[i], 50000, MUSTER_F32,
								MUSTER_SUM, &requests[i]), 0);
	for (int turn = 0; turn < 20; turn++)
		test_step(world);
	test_kill(world, 2);
	finish_all(world, requests, -ECONNRESET);
	for (uint32_t i = 0; i < 4; i++)
		if (i != 2) {
			assert_ended(world, i, -ECONNRESET, "rank 2 has died");
			assert_true(muster_comm_has_lost(world->comms[i], 2));
			assert_false(muster_comm_has_lost(world->comms[i], i));
		}
	test_world_free(world);
}

static void test_a_dead_rank_is_named_by_all_others(void **state)
{
	(void)state;
	dead_peer(MUSTER_OFFLOAD_FORCE);
	dead_peer(MUSTER_OFFLOAD_OFF);
}

static void *survivors_run(void *opaque)
{
	static const uint32_t ranks[] = { 0, 1, 3 }, two[] = { 2, 0 };
	struct test_thread *thread = opaque;
	struct test_world *world = thread->world;
	struct muster_comm *parent = muster_world(world->jobs[thread->rank]), *comm;

	if (thread->rank == 2)
		return NULL;
	if (!thread->argument) {
		assert_int_equal(muster_comm_create_group(parent, 3, ranks, 0,
							  &world->comms[thread->rank]), 0);
		return NULL;
	}
	assert_int_equal(muster_comm_create_group(parent, 3, ranks, 0, &comm), -ECONNRESET);
	assert_int_equal(muster_comm_error(parent), -ECONNRESET);
	if (thread->rank == 1)
		return NULL;
	assert_int_equal(muster_comm_create_group(world->comms[thread->rank], 2, two, 0, &comm), 0);
	assert_int_equal(muster_barrier(comm), 0);
	assert_int_equal(muster_comm_error(comm), 0);
	assert_false(muster_comm_has_lost(comm, 1));
	assert_false(muster_comm_has_lost(comm, 2));
	muster_comm_free(comm);
	return NULL;
}

/* More than their credits, which go through the world, where somebody is missing now. */
static void test_communicators_without_the_dead_go_on(void **state)
{
	struct test_world *world = test_joined(4, 3 * (MUSTER_PAIR_FLOOR_MIN + MUSTER_PAIR_REPORTS));
	static float values[4][50000];

	(void)state;
	test_all(world, survivors_run, NULL);
	test_kill(world, 2);
	for (uint32_t i = 0; i < 4; i++)
		if (i != 2)
			muster_comm_offload(world->comms[i], MUSTER_OFFLOAD_OFF);
	for (int turn = 0; turn < 5; turn++) {
		struct muster_request *requests[4] = { NULL };

		for (uint32_t i = 0; i < 4; i++)
			if (i != 2)
				assert_int_equal(muster_allreduce_start(world->comms[i], values[i],
									values[i], 50000, MUSTER_F32,
									MUSTER_SUM, &requests[i]), 0);
		finish_all(world, requests, 0);
	}
	test_all(world, survivors_run, world);
	test_world_free(world);
}

/* Rank 2 is dead; the third time rank 1 dies instead of coming. */
static void *living_run(void *opaque)
{
	static const uint32_t living[] = { 3, 0, 1 };
	struct test_thread *thread = opaque;
	struct test_world *world = thread->world;
	struct muster *job = world->jobs[thread->rank];
	struct muster_comm *comm;

	for (int i = 0; i < 2 && thread->rank != 2; i++) {
		int32_t value = 1;

		assert_int_equal(muster_comm_create_group(muster_world(job), 3, living, 0, &comm), 0);
		muster_comm_offload(comm, i ? MUSTER_OFFLOAD_OFF : MUSTER_OFFLOAD_FORCE);
		assert_int_equal(muster_allreduce(comm, &value, &value, 1, MUSTER_I32, MUSTER_SUM), 0);
		assert_int_equal(value, 3);
		muster_comm_free(comm);
	}
	pthread_barrier_wait(&world->barrier);
	if (thread->rank == 2)
		return NULL;
	if (thread->rank == 1) {
		test_lock(job->dev);
		test_kill(world, 1);
		test_unlock(&world->nodes[1]);
		return NULL;
	}
	assert_int_equal(muster_comm_create_group(muster_world(job), 3, living, 0, &comm), -ECONNRESET);
	assert_non_null(strstr(muster_error(job), "rank 1 has died"));
	return NULL;
}

static void test_the_living_make_communicators_of_one_that_a_death_has_ended(void **state)
{
	struct test_world *world = test_world_new(4);
	struct muster_request *requests[4] = { NULL };

	(void)state;
	world->tells_deaths = true;
	test_all(world, test_join_run, NULL);
	for (uint32_t i = 0; i < 4; i++)
		if (i != 2)
			assert_int_equal(muster_barrier_start(world->comms[i], &requests[i]), 0);
	test_kill(world, 2);
	finish_all(world, requests, -ECONNRESET);
	test_all(world, living_run, NULL);
	test_world_free(world);
}

static void late_rank(enum muster_offload offload)
{
	struct muster_request *requests[3] = { NULL };
	int32_t values[3] = { 1, 2, 3 };
	struct test_world *world;

	setenv("MUSTER_LATE_TIMEOUT", "0.05", 1);
	world = test_joined(3, TEST_RING_MAX);
	unsetenv("MUSTER_LATE_TIMEOUT");
	offload_all(world, offload);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(muster_allreduce_start(world->comms[i], &values[i], &values[i], 1,
							MUSTER_I32, MUSTER_SUM, &requests[i]), 0);
	assert_int_equal(muster_wait(requests[0]), -ETIMEDOUT);
	assert_says(world->jobs[0], "MUSTER_LATE_TIMEOUT (0.05 s): rank");
	assert_says(world->jobs[0], "2");
	requests[0] = NULL;
	assert_int_equal(muster_wait(requests[1]), -ECONNABORTED);
	assert_says(world->jobs[1], "rank 0 gave up");
	test_world_free(world);
}

static void test_a_wait_with_a_timeout_names_who_is_late(void **state)
{
	(void)state;
	late_rank(MUSTER_OFFLOAD_FORCE);
	late_rank(MUSTER_OFFLOAD_OFF);
}

static void test_a_late_rank_is_waited_for(void **state)
{
	struct test_world *world = test_joined(3, TEST_RING_MAX);
	struct muster_request *requests[3] = { NULL };
	int32_t values[3] = { 1, 2, 3 };
	bool done;

	(void)state;
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(muster_allreduce_start(world->comms[i], &values[i], &values[i], 1,
							MUSTER_I32, MUSTER_SUM, &requests[i]), 0);
	for (int turn = 0; turn < 1000; turn++) {
		assert_int_equal(muster_test(requests[0], &done), 0);
		assert_false(done);
	}
	assert_int_equal(muster_allreduce_start(world->comms[2], &values[2], &values[2], 1,
						MUSTER_I32, MUSTER_SUM, &requests[2]), 0);
	finish_all(world, requests, 0);
	assert_int_equal(values[0], 6);
	test_world_free(world);
}

/* The others are in the operation already, and start another one after it. */
static void refused_registration(enum muster_offload offload)
{
	struct test_world *world = test_joined(3, TEST_RING_MAX);
	struct muster_request *requests[3] = { NULL };
	static float values[3][5000];
	int results[3];

	offload_all(world, offload);
	world->nodes[1].register_err = -ENOMEM;
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(muster_allreduce_start(world->comms[i], values[i], values[i], 5000,
							MUSTER_F32, MUSTER_SUM, &requests[i]),
				 i == 1 ? -ENOMEM : 0);
	assert_says(world->jobs[1], "cannot be written by the device");
	requests[1] = NULL;
	test_finish(world, requests, results);
	assert_int_equal(results[0], -ECONNABORTED);
	assert_int_equal(results[2], -ECONNABORTED);
	world->nodes[1].register_err = 0;
	assert_ended(world, 0, -ECONNABORTED, "rank 1 gave up");
	assert_ended(world, 1, -ENOMEM, "cannot be written by the device");
	assert_ended(world, 2, -ECONNABORTED, "rank 1 gave up");
	test_world_free(world);
}

static void test_a_registration_refused_to_one_rank_ends_the_communicator_everywhere(void **state)
{
	(void)state;
	refused_registration(MUSTER_OFFLOAD_FORCE);
	refused_registration(MUSTER_OFFLOAD_OFF);
}

/* An argument error, as muster.h says: the rank may call again. */
static void test_a_buffer_that_is_not_there_changes_nothing(void **state)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	struct muster_request *requests[2];
	static float values[2][5000];

	(void)state;
	assert_int_equal(muster_allreduce_start(world->comms[0], (void *)64, values[0], 5000,
						MUSTER_F32, MUSTER_SUM, &requests[0]), -EFAULT);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(muster_allreduce_start(world->comms[i], values[i], values[i], 5000,
							MUSTER_F32, MUSTER_SUM, &requests[i]), 0);
	finish_all(world, requests, 0);
	test_world_free(world);
}

static void test_finalize_ends_what_others_wait_for(void **state)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	struct muster_request *requests[2];
	static float values[2][30000];

	(void)state;
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(muster_barrier_start(world->comms[i], &requests[i]), 0);
	finish_all(world, requests, 0);
	assert_int_equal(muster_allreduce_start(world->comms[0], values[0], values[0], 30000,
						MUSTER_F32, MUSTER_SUM, &requests[0]), 0);
	test_kill(world, 1);
	assert_int_equal(muster_wait(requests[0]), -ECONNRESET);
	test_world_free(world);
}

static void *dup_run(void *opaque)
{
	struct test_thread *thread = opaque;
	struct test_world *world = thread->world;

	assert_int_equal(muster_comm_dup(muster_world(world->jobs[thread->rank]),
					 &world->comms[thread->rank]), 0);
	return NULL;
}

/* Whoever made progress meanwhile, and whatever was said since. */
static void test_why_it_failed_is_told_of_a_communicator_that_is_closed(void **state)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	struct muster_request *requests[3];
	int64_t values[3] = { 0 };

	(void)state;
	test_all(world, dup_run, NULL);
	for (int k = 0; k < 3; k++)
		assert_int_equal(muster_allreduce_start(world->comms[0], &values[k], &values[k], 1,
							MUSTER_I64, MUSTER_SUM, &requests[k]), 0);
	muster_comm_free(world->comms[0]);
	test_kill(world, 1);
	while (world->jobs[0]->nr_comms > 1)
		muster_progress(world->jobs[0]);
	for (int k = 0; k < 2; k++) {		/* the third is never asked for */
		assert_int_equal(muster_barrier_start(muster_world(world->jobs[0]), NULL), -EINVAL);
		assert_int_equal(muster_wait(requests[k]), -ECONNRESET);
		assert_says(world->jobs[0], "rank 1 has died");
	}
	test_world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranks_that_call_different_operations_are_told_which),
		cmocka_unit_test(test_ranks_with_different_lengths_are_told),
		cmocka_unit_test(test_who_hears_of_a_mismatch_is_told_of_both_ranks),
		cmocka_unit_test(test_where_nobody_says_who_noticed_a_mismatch_this_rank_is_not_named),
		cmocka_unit_test(test_two_broadcasts_with_different_roots_are_found_out),
		cmocka_unit_test(test_ranks_on_different_paths_are_told),
		cmocka_unit_test(test_a_dead_rank_is_named_by_all_others),
		cmocka_unit_test(test_communicators_without_the_dead_go_on),
		cmocka_unit_test(test_the_living_make_communicators_of_one_that_a_death_has_ended),
		cmocka_unit_test(test_a_wait_with_a_timeout_names_who_is_late),
		cmocka_unit_test(test_a_late_rank_is_waited_for),
		cmocka_unit_test(test_a_registration_refused_to_one_rank_ends_the_communicator_everywhere),
		cmocka_unit_test(test_a_buffer_that_is_not_there_changes_nothing),
		cmocka_unit_test(test_why_it_failed_is_told_of_a_communicator_that_is_closed),
		cmocka_unit_test(test_finalize_ends_what_others_wait_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
