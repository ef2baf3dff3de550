// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Joining a job and making communicators: what ranks must agree on, and that
 * one rank's trouble becomes an error at every rank at once.
 */
#include "testing.h"

static void join(struct test_world *world)
{
	test_all(world, test_join_run, NULL);
}

/* All have failed with err and a sentence with these words. */
static void assert_all_refused(struct test_world *world, int err, const char *words)
{
	for (uint32_t i = 0; i < world->size; i++) {
		assert_int_equal(world->results[i], err);
		if (!strstr(world->said[i], words))
			fail_msg("rank %u: \"%s\" is not in: %s", i, words, world->said[i]);
	}
	pthread_barrier_destroy(&world->barrier);
	free(world);
}

static void refused_setting(const char *name, const char *value, const char *words)
{
	struct test_world *world = test_world_new(1);

	setenv(name, value, 1);
	join(world);
	unsetenv(name);
	assert_all_refused(world, -EINVAL, words);
}

static void test_a_bad_setting_is_refused_with_name_value_and_what_is_allowed(void **state)
{
	(void)state;
	refused_setting("MUSTER_OFFLOAD", "yes", "MUSTER_OFFLOAD=yes: allowed is off, try or force");
	refused_setting("MUSTER_OFFLOAD", "", "MUSTER_OFFLOAD=: allowed is");
	refused_setting("MUSTER_WIRE", "rope", "MUSTER_WIRE=rope: allowed is ring, unix or udp");
	refused_setting("MUSTER_DEVICE", "abacus", "MUSTER_DEVICE=abacus");
	refused_setting("MUSTER_LATE_TIMEOUT", "0", "MUSTER_LATE_TIMEOUT=0");
	refused_setting("MUSTER_LATE_TIMEOUT", "5s", "MUSTER_LATE_TIMEOUT=5s");
	refused_setting("MUSTER_LATE_TIMEOUT", "nan", "MUSTER_LATE_TIMEOUT=nan");
	refused_setting("MUSTER_DEADLINE", "-1", "MUSTER_DEADLINE");
	refused_setting("MUSTER_SCHEDULE", "", "MUSTER_SCHEDULE=: allowed is");
	refused_setting("MUSTER_SCHEDULE", "magic", "no schedule named \"magic\"");
}

static void test_a_missing_schedule_file_is_refused_with_its_name(void **state)
{
	struct test_world *world = test_world_new(1);

	(void)state;
	setenv("MUSTER_SCHEDULE", "./no-such.sched", 1);
	join(world);
	unsetenv("MUSTER_SCHEDULE");
	assert_all_refused(world, -ENOENT, "./no-such.sched: it cannot be opened");
}

static void test_a_broken_device_is_an_error_everywhere(void **state)
{
	struct test_world *world = test_world_new(3);

	(void)state;
	world->nodes[1].open_fails = true;
	join(world);
	assert_non_null(strstr(world->said[1], "it is broken"));
	assert_non_null(strstr(world->said[0], "rank 1 could not open its device"));
	assert_non_null(strstr(world->said[2], "rank 1 could not open its device"));
	assert_all_refused(world, -ENODEV, "device");
}

/* Each in a thread of its own; nothing is shared but the process. */
static void *join_often(void *opaque)
{
	struct test_world *world;

	for (int turn = 0; turn < 20; turn++) {
		world = test_joined(2, TEST_RING_MAX);
		for (uint32_t i = 0; i < 2; i++)
			if (world->jobs[i]->id != (uint8_t)world->jobs[1 - i]->key)
				*(bool *)opaque = true;
		test_world_free(world);
	}
	return NULL;
}

static void test_jobs_of_one_process_need_not_agree_on_their_ids(void **state)
{
	bool differ[3] = { false };
	pthread_t threads[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, join_often, &differ[i]), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 3; i++)
		assert_false(differ[i]);
}

/* ---- an allgather that lies about rank 1 -------------------------------------------- */

static int call;		/* of the allgather that lies */
static int lie_at;		/* which one */
static size_t lie_offset;
static uint8_t lie;

static int lying_allgather(void *opaque, const void *in, void *out, size_t bytes)
{
	(void)opaque;
	memcpy(out, in, bytes);
	memcpy((uint8_t *)out + bytes, in, bytes);
	if (!call)	/* the first says who is who: rank 1 */
		((uint8_t *)out)[bytes + 8] = 1;
	if (call++ == lie_at)
		((uint8_t *)out)[bytes + lie_offset] ^= lie;
	return 0;
}

static void refused_lie(int at, size_t offset, uint8_t bits, const char *words)
{
	const struct muster_oob oob = { .rank = 0, .size = 2, .allgather = lying_allgather };
	struct muster *job;

	call = 0;
	lie_at = at;
	lie_offset = offset;
	lie = bits;
	assert_true(muster_job_join(&oob, false, NULL, &job) < 0);
	if (!strstr(muster_error(NULL), words))
		fail_msg("\"%s\" is not in: %s", words, muster_error(NULL));
}

static void test_ranks_of_another_version_or_size_are_refused(void **state)
{
	(void)state;
	refused_lie(0, 0, 1, "rank 1 is not a libmuster process");
	refused_lie(0, 4, 2, "rank 1 has libmuster ABI 3, this rank 1");
	refused_lie(0, 8, 2, "in place 1 there is rank 3 of 2");
	refused_lie(0, 12, 1, "in place 1 there is rank 1 of 3, expected is rank 1 of 2");
	refused_lie(0, 16, 0xff, "rank 1 refused to start");
}

static void test_ranks_with_other_settings_are_refused_with_who_has_what(void **state)
{
	(void)state;
	refused_lie(1, offsetof(struct muster_settings, offload), 3,
		    "MUSTER_OFFLOAD differs: rank 0 has try, rank 1 has force");
	refused_lie(1, offsetof(struct muster_settings, schedule), 'x',
		    "MUSTER_SCHEDULE differs: rank 0 has none, rank 1 has x");
	refused_lie(1, offsetof(struct muster_settings, wire), 1, "MUSTER_WIRE differs");
	refused_lie(1, offsetof(struct muster_settings, device), 1, "MUSTER_DEVICE differs");
}

static void test_arguments_of_init_are_checked(void **state)
{
	struct muster_oob oob = { .rank = 2, .size = 2, .allgather = lying_allgather };
	struct muster *job;

	(void)state;
	assert_int_equal(muster_init_oob(&oob, &job), -EINVAL);
	assert_non_null(strstr(muster_error(NULL), "rank 2 of 2"));
	oob.size = 0;
	assert_int_equal(muster_init_oob(&oob, &job), -EINVAL);
	oob.size = MUSTER_MEMBERS_MAX + 1;
	assert_int_equal(muster_init_oob(&oob, &job), -EINVAL);
	assert_int_equal(muster_init_oob(NULL, &job), -EINVAL);
	assert_int_equal(muster_init_oob(&oob, NULL), -EINVAL);
	assert_int_equal(muster_init(NULL), -EINVAL);
}

/* ---- communicators --------------------------------------------------------------------- */

struct wish {
	uint32_t nr;
	uint32_t ranks[4];
	uint32_t odd_rank;	/* wishes what comes next instead; TEST_RANKS_MAX: none */
	uint32_t odd_nr;
	uint32_t odd_ranks[4];
};

static void *create_run(void *opaque)
{
	struct test_thread *thread = opaque;
	const struct wish *wish = thread->argument;
	struct test_world *world = thread->world;
	bool odd = thread->rank == wish->odd_rank;
	struct muster *job = world->jobs[thread->rank];

	world->comms[thread->rank] = (void *)-1l;
	world->results[thread->rank] =
		muster_comm_create(job, odd ? wish->odd_nr : wish->nr,
				   odd ? wish->odd_ranks : wish->ranks,
				   &world->comms[thread->rank]);
	strcpy(world->said[thread->rank], muster_error(job));
	return NULL;
}

static void test_members_get_their_new_rank_and_others_nothing(void **state)
{
	const struct wish wish = { 3, { 3, 0, 2 }, TEST_RANKS_MAX, 0, { 0 } };
	struct test_world *world = test_joined(4, TEST_RING_MAX);
	struct muster_request *requests[TEST_RANKS_MAX] = { NULL };
	int64_t values[4] = { 1, 10, 100, 1000 };
	int results[4];

	(void)state;
	test_all(world, create_run, &wish);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(world->results[i], 0);
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
	for (uint32_t i = 0; i < 4; i++)
		muster_comm_free(world->comms[i]);
	test_world_free(world);
}

/* Rank `wish->odd_rank` creates between start and wait, the others after their wait. */
static void *work_and_create_run(void *opaque)
{
	struct test_thread *thread = opaque;
	const struct wish *wish = thread->argument;
	struct test_world *world = thread->world;
	struct muster_comm *all = muster_world(world->jobs[thread->rank]);
	bool creates_first = thread->rank == wish->odd_rank;
	struct muster_request *request;
	double values[1000] = { [999] = thread->rank };

	assert_int_equal(muster_allreduce_start(all, values, values, 1000, MUSTER_F64, MUSTER_SUM,
						&request), 0);
	if (!creates_first)
		assert_int_equal(muster_wait(request), 0);
	world->results[thread->rank] = muster_comm_create(world->jobs[thread->rank], wish->nr,
							  wish->ranks,
							  &world->comms[thread->rank]);
	if (creates_first)
		assert_int_equal(muster_wait(request), 0);
	assert_true(values[999] == world->size * (world->size - 1) / 2);
	return NULL;
}

static void test_creation_lets_what_was_started_before_go_on(void **state)
{
	struct wish wish = { 2, { 3, 1 }, 0, 0, { 0 } };
	struct test_world *world = test_joined(4, TEST_RING_MAX);

	(void)state;
	for (int turn = 0; turn < 8; turn++) {
		wish.odd_rank = turn / 2;
		for (uint32_t i = 0; i < 4; i++)
			muster_comm_offload(muster_world(world->jobs[i]), turn % 2 ?
					    MUSTER_OFFLOAD_OFF : MUSTER_OFFLOAD_FORCE);
		test_all(world, work_and_create_run, &wish);
		for (uint32_t i = 0; i < 4; i++) {
			assert_int_equal(world->results[i], 0);
			muster_comm_free(world->comms[i]);
		}
	}
	test_world_free(world);
}

static void refused_wish(const struct wish *wish, int err, const char *words)
{
	struct test_world *world = test_joined(4, TEST_RING_MAX);
	bool said = false;

	test_all(world, create_run, wish);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(world->results[i], err);
		assert_null(world->comms[i]);
		said |= strstr(world->said[i], words) != NULL;
	}
	if (!said)
		fail_msg("\"%s\" is not in: %s", words, world->said[0]);
	test_world_free(world);
}

static void test_bad_ranks_are_refused_everywhere(void **state)
{
	const uint32_t none = TEST_RANKS_MAX;

	(void)state;
	refused_wish(&(struct wish){ 2, { 1, 4 }, none, 0, { 0 } }, -EINVAL,
		     "ranks[1] is 4, but the job has 4 ranks");
	refused_wish(&(struct wish){ 2, { 1, 1 }, none, 0, { 0 } }, -EINVAL, "rank 1 is named twice");
	refused_wish(&(struct wish){ 0, { 1, 1 }, none, 0, { 0 } }, -EINVAL, "allowed are 1 to 4");
	refused_wish(&(struct wish){ 5, { 1, 1 }, none, 0, { 0 } }, -EINVAL, "allowed are 1 to 4");
	refused_wish(&(struct wish){ 2, { 0, 1 }, 3, 2, { 0, 2 } }, -EINVAL,
		     "rank 3 names other ranks");
	refused_wish(&(struct wish){ 2, { 0, 1 }, 3, 2, { 0, 7 } }, -EINVAL,
		     "rank 3 refused its arguments");
}

/* Create until it fails; all must fail alike, and freeing one makes room again. */
static void exhaust(uint32_t ring_slots, const char *words)
{
	const struct wish wish = { 2, { 0, 1 }, TEST_RANKS_MAX, 0, { 0 } };
	struct test_world *world = test_joined(2, ring_slots);
	struct muster_comm *last[2] = { NULL };
	int made = 0;

	for (;; made++) {
		assert_true(made < 100);
		test_all(world, create_run, &wish);
		if (world->results[0])
			break;
		last[0] = world->comms[0];
		last[1] = world->comms[1];
	}
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(world->results[i], -ENOSPC);
		assert_non_null(strstr(world->said[i], words));
		muster_comm_free(last[i]);
	}
	test_all(world, create_run, &wish);
	assert_int_equal(world->results[0], 0);
	assert_int_equal(world->results[1], 0);
	test_world_free(world);
}

static void test_numbers_of_contexts_come_round_and_pass_over_open_ones(void **state)
{
	const struct wish some = { 1, { 2 }, TEST_RANKS_MAX, 0, { 0 } };
	const struct wish others = { 2, { 0, 1 }, TEST_RANKS_MAX, 0, { 0 } };
	struct test_world *world = test_joined(3, TEST_RING_MAX);

	(void)state;
	test_all(world, create_run, &some);	/* context 1, in use at rank 2 alone */
	for (uint32_t i = 0; i < 3; i++)
		world->jobs[i]->next_context = UINT32_MAX;
	for (int turn = 0; turn < 2; turn++) {
		test_all(world, create_run, &others);
		for (uint32_t i = 0; i < 3; i++)
			assert_int_equal(world->results[i], 0);
		assert_int_equal(world->comms[0]->context, turn ? 2 : UINT32_MAX);
		assert_int_equal(world->comms[1]->context, turn ? 2 : UINT32_MAX);
	}
	test_world_free(world);
}

static void test_creation_beyond_the_contexts_is_refused_everywhere(void **state)
{
	(void)state;
	exhaust(TEST_RING_MAX, "the device has no context left (it has 16)");
}

static void test_creation_beyond_the_receive_ring_is_refused_everywhere(void **state)
{
	(void)state;
	exhaust(64, "the receive rings have");
}

static void test_the_world_cannot_be_freed(void **state)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);

	(void)state;
	muster_comm_free(world->comms[0]);
	assert_non_null(strstr(muster_error(world->jobs[0]), "muster_finalize()"));
	assert_int_equal(muster_comm_size(muster_world(world->jobs[0])), 2);
	test_world_free(world);
}

static void test_freeing_with_an_operation_under_way_ends_it_everywhere(void **state)
{
	const struct wish wish = { 2, { 0, 1 }, TEST_RANKS_MAX, 0, { 0 } };
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	struct muster_request *requests[2];
	double values[2] = { 1, 2 };

	(void)state;
	test_all(world, create_run, &wish);
	assert_int_equal(muster_allreduce_start(world->comms[0], &values[0], &values[0], 1,
						MUSTER_F64, MUSTER_SUM, &requests[0]), 0);
	muster_comm_free(world->comms[0]);
	assert_int_equal(muster_wait(requests[0]), -ECONNABORTED);
	test_world_free(world);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void test_memory_is_found_by_any_address_inside_and_freed_once(void **state)
{
	struct test_world *world = test_joined(1, TEST_RING_MAX);
	struct muster *job = world->jobs[0];
	const int access = MUSTER_ACCESS_WRITE;
	char *areas[20];
	struct muster_pin pin;

	(void)state;
	for (int i = 0; i < 20; i++)
		assert_int_equal(muster_alloc(job, 1000 + i, (void **)&areas[i]), 0);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(areas[i][999], 0);
		assert_int_equal(muster_pin(job, areas[i] + 900, 100 + i, access, &pin), 0);
		assert_false(pin.owned);
		assert_int_equal(muster_pin(job, areas[i] + 900, 101 + i, access, &pin), 0);
		assert_true(pin.owned);
		muster_unpin(job, &pin);
	}
	muster_free(job, areas[3] + 1);
	assert_non_null(strstr(muster_error(job), "is not from muster_alloc()"));
	for (int i = 0; i < 20; i += 2)
		muster_free(job, areas[i]);
	muster_free(job, NULL);
	assert_int_equal(muster_alloc(job, 0, (void **)&areas[0]), -EINVAL);
	assert_int_equal(muster_alloc(job, 1, NULL), -EINVAL);
	test_world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_bad_setting_is_refused_with_name_value_and_what_is_allowed),
		cmocka_unit_test(test_a_missing_schedule_file_is_refused_with_its_name),
		cmocka_unit_test(test_a_broken_device_is_an_error_everywhere),
		cmocka_unit_test(test_jobs_of_one_process_need_not_agree_on_their_ids),
		cmocka_unit_test(test_ranks_of_another_version_or_size_are_refused),
		cmocka_unit_test(test_ranks_with_other_settings_are_refused_with_who_has_what),
		cmocka_unit_test(test_arguments_of_init_are_checked),
		cmocka_unit_test(test_members_get_their_new_rank_and_others_nothing),
		cmocka_unit_test(test_creation_lets_what_was_started_before_go_on),
		cmocka_unit_test(test_bad_ranks_are_refused_everywhere),
		cmocka_unit_test(test_numbers_of_contexts_come_round_and_pass_over_open_ones),
		cmocka_unit_test(test_creation_beyond_the_contexts_is_refused_everywhere),
		cmocka_unit_test(test_creation_beyond_the_receive_ring_is_refused_everywhere),
		cmocka_unit_test(test_the_world_cannot_be_freed),
		cmocka_unit_test(test_freeing_with_an_operation_under_way_ends_it_everywhere),
		cmocka_unit_test(test_memory_is_found_by_any_address_inside_and_freed_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
