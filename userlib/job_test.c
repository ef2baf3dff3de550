// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Joining a job and its memory: what ranks must agree on, and that
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
	refused_setting("MUSTER_WIRE", "rope", "MUSTER_WIRE=rope: allowed is ring, unix, udp or switch");
	refused_setting("MUSTER_WIRE", "switch", "MUSTER_WIRE=switch needs MUSTER_FABRIC");
	refused_setting("MUSTER_DEVICE", "abacus", "MUSTER_DEVICE=abacus");
	refused_setting("MUSTER_LATE_TIMEOUT", "0", "MUSTER_LATE_TIMEOUT=0");
	refused_setting("MUSTER_LATE_TIMEOUT", "5s", "MUSTER_LATE_TIMEOUT=5s");
	refused_setting("MUSTER_LATE_TIMEOUT", "nan", "MUSTER_LATE_TIMEOUT=nan");
	refused_setting("MUSTER_DEADLINE", "-1", "MUSTER_DEADLINE");
	refused_setting("MUSTER_SCHEDULE", "", "MUSTER_SCHEDULE=: allowed is");
	refused_setting("MUSTER_SCHEDULE", "magic", "no schedule named \"magic\"");
	refused_setting("MUSTER_ALLREDUCE", "", "MUSTER_ALLREDUCE=: allowed are");
	refused_setting("MUSTER_ALLREDUCE", "ring,", "MUSTER_ALLREDUCE=ring,: allowed are");
	refused_setting("MUSTER_ALLREDUCE", "./file", "a file goes to MUSTER_SCHEDULE");
	refused_setting("MUSTER_REDUCE_SCATTER", "magic", "no schedule named \"magic\"");
	setenv("MUSTER_SCHEDULE", "ring", 1);
	refused_setting("MUSTER_BARRIER", "direct", "MUSTER_SCHEDULE=ring beside barrier=direct");
	unsetenv("MUSTER_SCHEDULE");
	setenv("MUSTER_DEVICE", "verbs", 1);
	refused_setting("MUSTER_UPLINK", "16711680", "MUSTER_UPLINK=16711680: expected are node and life");
	refused_setting("MUSTER_UPLINK", "7,1", "MUSTER_UPLINK=7,1: expected are node and life");
	unsetenv("MUSTER_DEVICE");
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
	if (!call)	/* the first says who is who: rank 1; and whether settings are alike */
		((uint8_t *)out)[bytes + 8] = 1;
	if (!call && lie_at == 1)
		((uint8_t *)out)[bytes + 24] ^= 1;
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
	char words[64];

	(void)state;
	refused_lie(0, 0, 1, "rank 1 is not a libmuster process");
	snprintf(words, sizeof(words), "rank 1 has libmuster ABI %d, this rank %d", MUSTER_ABI ^ 2,
		 MUSTER_ABI);
	refused_lie(0, 4, 2, words);
	refused_lie(0, 8, 2, "in place 1 there is rank 3 of 2");
	refused_lie(0, 12, 1, "in place 1 there is rank 1 of 3, expected is rank 1 of 2");
	refused_lie(0, 16, 0xff, "rank 1 refused to start");
}

static void test_ranks_with_other_settings_are_refused_with_who_has_what(void **state)
{
	(void)state;
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

/* Opening leaves what a device says of itself as it is. */
static void test_ranks_that_share_processors_leave_waiting_to_the_device(void **state)
{
	struct test_world *world = test_world_new(2);

	(void)state;
	world->ring_slots = TEST_RING_MAX;
	world->nodes[0].dev.crowded = world->nodes[1].dev.crowded = true;
	join(world);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(world->results[i], 0);
		assert_int_equal(world->jobs[i]->spin_polls, 0);
	}
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
		cmocka_unit_test(test_ranks_that_share_processors_leave_waiting_to_the_device),
		cmocka_unit_test(test_memory_is_found_by_any_address_inside_and_freed_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
