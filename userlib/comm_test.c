// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Communicators: made by their members alone, whatever else goes on, of the ids that
 * are free with all; and freed while operations are under way.
 */
#include "testing.h"

struct wish {
	uint32_t nr;
	uint32_t ranks[4];
	uint32_t odd_rank;	/* does something else, as the test says; TEST_RANKS_MAX: none */
};

static bool is_in(const struct wish *wish, uint32_t rank)
{
	for (uint32_t i = 0; i < wish->nr; i++)
		if (wish->ranks[i] == rank)
			return true;
	return false;
}

static struct muster_comm *world_of(const struct test_thread *thread)
{
	return muster_world(thread->world->jobs[thread->rank]);
}

static void note(const struct test_thread *thread, int result)
{
	struct test_world *world = thread->world;

	world->results[thread->rank] = result;
	strcpy(world->said[thread->rank], muster_error(world->jobs[thread->rank]));
}

/* Only members call. */
static void *group_run(void *opaque)
{
	struct test_thread *thread = opaque;
	const struct wish *wish = thread->argument;
	struct test_world *world = thread->world;

	world->comms[thread->rank] = NULL;
	world->results[thread->rank] = 0;
	if (is_in(wish, thread->rank))
		note(thread, muster_comm_create_group(world_of(thread), wish->nr, wish->ranks, 1,
						      &world->comms[thread->rank]));
	return NULL;
}

static void assert_all_made(const struct test_world *world)
{
	for (uint32_t i = 0; i < world->size; i++)
		if (world->results[i])
			fail_msg("rank %u: %s", i, world->said[i]);
}

static void free_all(struct test_world *world)
{
	for (uint32_t i = 0; i < world->size; i++)
		muster_comm_free(world->comms[i]);
}

/* ---- members and order ------------------------------------------------------------------- */

static void test_members_get_their_new_rank_and_others_are_not_asked(void **state)
{
	const struct wish wish = { 3, { 3, 0, 2 }, 0 };
	struct test_world *world = test_joined(4, TEST_RING_MAX);
	struct muster_request *requests[TEST_RANKS_MAX] = { NULL };
	int64_t values[4] = { 1, 10, 100, 1000 };
	int results[4];

	(void)state;
	test_all(world, group_run, &wish);
	assert_all_made(world);
	assert_null(world->comms[1]);
	assert_int_equal(muster_comm_size(world->comms[0]), 3);
	assert_int_equal(muster_comm_rank(world->comms[3]), 0);
	assert_int_equal(muster_comm_rank(world->comms[0]), 1);
	assert_int_equal(muster_comm_rank(world->comms[2]), 2);
	for (uint32_t i = 0; i < 4; i++)
		if (world->comms[i])
			assert_int_equal(muster_reduce_start(world->comms[i], &values[i],
							     &values[i], 1, MUSTER_I64,
							     MUSTER_SUM, 2, &requests[i]), 0);
	test_finish(world, requests, results);
	assert_int_equal(values[2], 1101);
	free_all(world);
	test_world_free(world);
}

static void *dup_run(void *opaque)
{
	struct test_thread *thread = opaque;

	note(thread, muster_comm_dup(world_of(thread), &thread->world->comms[thread->rank]));
	return NULL;
}

/* Thirds by rank, the key turns their order round; the last rank wants none. */
static void *split_run(void *opaque)
{
	struct test_thread *thread = opaque;
	struct test_world *world = thread->world;
	int32_t rank = (int32_t)thread->rank;
	bool none = thread->rank == world->size - 1;

	note(thread, muster_comm_split(world_of(thread), none ? MUSTER_COLOUR_NONE : rank % 3,
				       -(rank / 6), &world->comms[thread->rank]));
	return NULL;
}

static void test_a_split_orders_by_key_and_then_by_rank(void **state)
{
	static const uint32_t third[] = { 6, 9, 0, 3 };	/* keys -1, -1, 0, 0 */
	struct test_world *world = test_joined(13, TEST_RING_MAX);
	struct muster_request *requests[TEST_RANKS_MAX] = { NULL };
	int32_t values[13];
	int results[13];

	(void)state;
	test_all(world, split_run, NULL);
	assert_all_made(world);
	assert_null(world->comms[12]);
	for (uint32_t i = 0; i < 12; i++) {
		assert_int_equal(muster_comm_size(world->comms[i]), 4);
		assert_int_equal(third[muster_comm_rank(world->comms[i])] + i % 3, i);
		values[i] = (int32_t)i;
		assert_int_equal(muster_allreduce_start(world->comms[i], &values[i], &values[i], 1,
							MUSTER_I32, MUSTER_SUM, &requests[i]), 0);
	}
	test_finish(world, requests, results);
	for (int32_t i = 0; i < 12; i++)
		assert_int_equal(values[i], 18 + 4 * (i % 3));
	free_all(world);
	test_world_free(world);
}

/* A ring of pairs: each rank is in two groups, of the same tag, and makes the one on its left first. */
static void *ring_run(void *opaque)
{
	struct test_thread *thread = opaque;
	struct test_world *world = thread->world;
	uint32_t n = world->size, self = thread->rank;

	for (int turn = 0; turn < 20; turn++) {
		struct muster_comm *comms[2];

		for (uint32_t side = 0; side < 2; side++) {
			uint32_t left = (self + n - 1 + (self ? side : !side)) % n;
			uint32_t ranks[2] = { left, (left + 1) % n };

			note(thread, muster_comm_create_group(world_of(thread), 2, ranks, 9,
							      &comms[side]));
			if (world->results[self])
				return NULL;
		}
		muster_comm_free(comms[turn % 2]);
		muster_comm_free(comms[!(turn % 2)]);
	}
	return NULL;
}

static void test_overlapping_groups_are_made_at_once(void **state)
{
	struct test_world *world = test_joined(7, TEST_RING_MAX);

	(void)state;
	for (world->seed = 1; world->seed < 4; world->seed++) {
		uint32_t seed = world->seed;

		test_all(world, ring_run, NULL);
		assert_all_made(world);
		world->seed = seed;
	}
	test_world_free(world);
}

/* Rank `odd` makes it between start and wait, the others after their wait. */
static void *work_and_create_run(void *opaque)
{
	struct test_thread *thread = opaque;
	const struct wish *wish = thread->argument;
	struct test_world *world = thread->world;
	struct muster_comm *all = world_of(thread);
	bool creates_first = thread->rank == wish->odd_rank;
	struct muster_request *request;
	double values[1000] = { [999] = thread->rank };

	assert_int_equal(muster_allreduce_start(all, values, values, 1000, MUSTER_F64, MUSTER_SUM,
						&request), 0);
	if (!creates_first)
		assert_int_equal(muster_wait(request), 0);
	if (wish->nr)
		group_run(opaque);
	else
		split_run(opaque);
	if (creates_first)
		assert_int_equal(muster_wait(request), 0);
	assert_true(values[999] == world->size * (world->size - 1) / 2);
	return NULL;
}

static void test_creation_lets_what_was_started_before_go_on(void **state)
{
	struct wish wish = { .ranks = { 3, 1 } };
	struct test_world *world = test_joined(4, TEST_RING_MAX);

	(void)state;
	for (int turn = 0; turn < 16; turn++) {
		wish.nr = turn & 8 ? 2 : 0;
		wish.odd_rank = turn / 2 % 4;
		for (uint32_t i = 0; i < 4; i++)
			muster_comm_offload(muster_world(world->jobs[i]), turn % 2 ?
					    MUSTER_OFFLOAD_OFF : MUSTER_OFFLOAD_FORCE);
		test_all(world, work_and_create_run, &wish);
		assert_all_made(world);
		free_all(world);
	}
	test_world_free(world);
}

/* ---- what is refused ------------------------------------------------------------------- */

static void refused_group(uint32_t nr, uint32_t a, uint32_t b, const char *words)
{
	const uint32_t ranks[] = { a, b, 0, 1, 2 };
	struct test_world *world = test_joined(4, TEST_RING_MAX);
	struct muster_comm *comm = NULL;

	assert_int_equal(muster_comm_create_group(muster_world(world->jobs[1]), nr, ranks, 0, &comm),
			 -EINVAL);
	assert_null(comm);
	if (!strstr(muster_error(world->jobs[1]), words))
		fail_msg("\"%s\" is not in: %s", words, muster_error(world->jobs[1]));
	test_world_free(world);
}

static void test_groups_that_cannot_be_are_refused_at_once(void **state)
{
	(void)state;
	refused_group(2, 1, 4, "ranks[1] is 4, but the communicator has 4 ranks");
	refused_group(2, 0, 2, "this rank, 1, is not among the ranks");
	refused_group(0, 1, 1, "allowed are 1 to 4");
	refused_group(5, 1, 3, "allowed are 1 to 4");
}

static void test_a_rank_named_twice_is_refused_everywhere(void **state)
{
	const struct wish wish = { 3, { 0, 1, 1 }, 0 };
	struct test_world *world = test_joined(2, TEST_RING_MAX);

	(void)state;
	test_all(world, group_run, &wish);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(world->results[i], -EINVAL);
		assert_null(world->comms[i]);
	}
	assert_true(strstr(world->said[0], "allowed are 1 to 2") != NULL);
	test_world_free(world);
}

static void *missing_run(void *opaque)
{
	struct test_thread *thread = opaque;

	if (thread->rank != 2)
		return dup_run(opaque);
	note(thread, muster_comm_dup(world_of(thread), NULL));
	return NULL;
}

static void test_a_refusal_at_one_rank_is_told_to_all(void **state)
{
	struct test_world *world = test_joined(5, TEST_RING_MAX);

	(void)state;
	test_all(world, missing_run, NULL);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(world->results[i], -EINVAL);
		assert_non_null(strstr(world->said[i], i == 2 ? "comm is NULL" :
				       "rank 2 refused to make a communicator"));
	}
	test_world_free(world);
}

/* Make them until it fails; all must fail alike, and freeing one makes room again. */
static void test_creation_beyond_the_contexts_is_refused_everywhere(void **state)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	struct muster_comm *last[2] = { NULL };

	(void)state;
	for (int made = 1;; made++) {
		assert_true(made <= TEST_CONTEXTS_MAX);
		test_all(world, dup_run, NULL);
		if (world->results[0])
			break;
		last[0] = world->comms[0];
		last[1] = world->comms[1];
	}
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(world->results[i], -ENOSPC);
		assert_null(world->comms[i]);
		muster_comm_free(last[i]);
	}
	assert_true(strstr(world->said[0], "no context left (it has 16)") ||
		    strstr(world->said[1], "no context left (it has 16)"));
	test_all(world, dup_run, NULL);
	assert_all_made(world);
	test_world_free(world);
}

/* ---- ids -------------------------------------------------------------------------------- */

static void ids_from(struct test_world *world, uint32_t id)
{
	for (uint32_t i = 0; i < world->size; i++)
		muster_world(world->jobs[i])->ids_from = id;
}

/* More than are looked at together, each at one rank alone. */
static void test_an_id_is_found_behind_all_that_are_in_use(void **state)
{
	struct test_world *world = test_joined(3, TEST_RING_MAX);
	struct muster_comm *alone[3][200];

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		for (uint32_t k = 0; k < 200; k++)	/* one member: it asks nobody */
			assert_int_equal(muster_comm_build(world->jobs[i], 1 + 3 * k + i, 1, 1, &i,
							   &alone[i][k]), 0);
	test_all(world, dup_run, NULL);
	assert_all_made(world);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(world->comms[i]->context, 601);
	free_all(world);
	test_world_free(world);
}

static void test_ids_that_are_in_use_anywhere_are_passed_over(void **state)
{
	const struct wish some = { 2, { 2, 3 }, 0 }, others = { 2, { 0, 1 }, 0 };
	struct test_world *world = test_joined(4, TEST_RING_MAX);
	uint32_t life;

	(void)state;
	test_all(world, group_run, &some);	/* 1, at two ranks alone */
	assert_int_equal(world->comms[2]->context, 1);
	test_all(world, group_run, &others);	/* who has nothing to do with them may have it, too */
	assert_int_equal(world->comms[0]->context, 1);
	free_all(world);
	test_all(world, dup_run, NULL);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(world->comms[i]->context, 2);
	life = world->comms[0]->life;
	free_all(world);
	ids_from(world, UINT32_MAX);
	test_all(world, dup_run, NULL);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(world->comms[i]->context, UINT32_MAX);
	free_all(world);
	test_all(world, dup_run, NULL);		/* ids come round, lives do not */
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(world->comms[i]->context, 2);
		assert_true(world->comms[i]->life > life);
	}
	test_world_free(world);
}

/* ---- freeing ------------------------------------------------------------------------------ */

static void test_the_world_cannot_be_freed(void **state)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);

	(void)state;
	muster_comm_free(world->comms[0]);
	assert_non_null(strstr(muster_error(world->jobs[0]), "muster_finalize()"));
	assert_int_equal(muster_comm_size(muster_world(world->jobs[0])), 2);
	test_world_free(world);
}

/* Rank 0 starts and frees before rank 1 has come, on both paths. */
static void test_what_is_under_way_when_it_is_freed_comes_to_its_end(void **state)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	static double values[2][3][2000];

	(void)state;
	for (int turn = 0; turn < 6; turn++) {
		struct muster_request *requests[3][TEST_RANKS_MAX];
		int results[2];

		test_all(world, dup_run, NULL);
		for (uint32_t i = 0; i < 2; i++) {
			muster_comm_offload(world->comms[i], turn % 2 ? MUSTER_OFFLOAD_OFF :
								MUSTER_OFFLOAD_FORCE);
			for (int k = 0; k < 3; k++) {
				values[i][k][1999] = i + k;
				assert_int_equal(muster_allreduce_start(world->comms[i], values[i][k],
									values[i][k], 2000, MUSTER_F64,
									MUSTER_SUM, &requests[k][i]), 0);
			}
			muster_comm_free(world->comms[i]);
		}
		for (int k = 0; k < 3; k++) {
			test_finish(world, requests[k], results);
			assert_int_equal(results[0] | results[1], 0);
			assert_true(values[0][k][1999] == 2 * k + 1);
		}
	}
	for (uint32_t i = 0; i < 2; i++) {
		muster_progress(world->jobs[i]);
		assert_int_equal(world->jobs[i]->nr_comms, 1);
		assert_int_equal(world->nodes[i].nr_contexts, 1);
	}
	test_world_free(world);
}

/* What a device says of a context that has failed must not meet the next of that id. */
static void test_an_id_that_comes_round_inherits_nothing(void **state)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	struct muster_request *requests[TEST_RANKS_MAX];
	double values[2] = { 1, 2 };
	int results[2];

	(void)state;
	for (int turn = 0; turn < 4; turn++) {
		ids_from(world, 0);
		test_all(world, dup_run, NULL);
		assert_all_made(world);
		for (uint32_t i = 0; i < 2; i++) {
			assert_int_equal(world->comms[i]->context, 1);
			assert_int_equal(muster_allreduce_start(world->comms[i], &values[i],
								&values[i], 1, MUSTER_F64,
								MUSTER_SUM, &requests[i]), 0);
		}
		test_finish(world, requests, results);
		assert_int_equal(results[0] | results[1], 0);
		assert_int_equal(muster_allreduce_start(world->comms[0], &values[0], &values[0], 1,
							MUSTER_F64, MUSTER_SUM, &requests[0]), 0);
		muster_comm_abort(world->comms[0], MUSTER_STATUS_ABORTED, 0, NULL, NULL);
		assert_int_equal(muster_wait(requests[0]), -ECONNABORTED);
		for (int poll = 0; poll < 100 && !world->comms[1]->failed; poll++)
			muster_progress(world->jobs[1]);
		assert_int_equal(world->comms[1]->failed, -ECONNABORTED);
		free_all(world);
	}
	test_world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_members_get_their_new_rank_and_others_are_not_asked),
		cmocka_unit_test(test_a_split_orders_by_key_and_then_by_rank),
		cmocka_unit_test(test_overlapping_groups_are_made_at_once),
		cmocka_unit_test(test_creation_lets_what_was_started_before_go_on),
		cmocka_unit_test(test_groups_that_cannot_be_are_refused_at_once),
		cmocka_unit_test(test_a_rank_named_twice_is_refused_everywhere),
		cmocka_unit_test(test_a_refusal_at_one_rank_is_told_to_all),
		cmocka_unit_test(test_creation_beyond_the_contexts_is_refused_everywhere),
		cmocka_unit_test(test_an_id_is_found_behind_all_that_are_in_use),
		cmocka_unit_test(test_ids_that_are_in_use_anywhere_are_passed_over),
		cmocka_unit_test(test_an_id_that_comes_round_inherits_nothing),
		cmocka_unit_test(test_the_world_cannot_be_freed),
		cmocka_unit_test(test_what_is_under_way_when_it_is_freed_comes_to_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
