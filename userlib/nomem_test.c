// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One rank has no memory: every allocation that the library makes for it fails
 * once, one after the other. Whichever it is, all ranks succeed, or the
 * communicator ends at all of them and they say whose fault it is. The linker
 * puts this file between the library and malloc() (see the Makefile).
 */
#include "test_manager.h"

enum { RANKS = 4, VICTIM = 1 };

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t nr, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t nr, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

static _Thread_local bool armed;	/* the library works for the victim */
static int until_failure;		/* allocations; the last of them fails */

static bool fails_now(size_t bytes)
{
	/* The packets of the world in between are not the library's. */
	return armed && bytes != sizeof(struct test_packet) && until_failure &&
	       !--until_failure;
}

void *__wrap_malloc(size_t bytes)
{
	return fails_now(bytes) ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t nr, size_t bytes)
{
	return fails_now(nr * bytes) ? NULL : __real_calloc(nr, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
	return fails_now(bytes) ? NULL : __real_realloc(old, bytes);
}

/* ---- an operation ------------------------------------------------------------------ */

struct scene {
	enum muster_coll coll;
	uint32_t root;
	uint64_t count;
	enum muster_offload offload;
};

static int start(struct muster_comm *comm, const struct scene *scene, double *values,
		 struct muster_request **request)
{
	if (scene->coll == MUSTER_COLL_BROADCAST)
		return muster_broadcast_start(comm, values, scene->count, MUSTER_F64, scene->root,
					      request);
	if (scene->coll == MUSTER_COLL_REDUCE)
		return muster_reduce_start(comm, values, values, scene->count, MUSTER_F64,
					   MUSTER_SUM, scene->root, request);
	return muster_allreduce_start(comm, values, values, scene->count, MUSTER_F64, MUSTER_SUM,
				      request);
}

static void finish(struct test_world *world, struct muster_request **requests, int *results)
{
	uint32_t left = world->size;

	for (uint32_t turn = 0; left; turn++) {
		if (turn == 100000)
			fail_msg("%u ranks wait for ever", left);
		left = 0;
		for (uint32_t i = 0; i < world->size; i++) {
			bool done = false;

			if (!requests[i])
				continue;
			armed = i == VICTIM;
			results[i] = muster_test(requests[i], &done);
			armed = false;
			if (done)
				requests[i] = NULL;
			left += !done;
		}
	}
}

static void assert_ended(struct test_world *world, uint32_t rank, int err, const char *words)
{
	struct muster_request *request;

	for (int turn = 0; turn < 10; turn++)
		muster_progress(world->jobs[rank]);
	assert_int_equal(muster_barrier_start(world->comms[rank], &request), err);
	if (!strstr(muster_error(world->jobs[rank]), words))
		fail_msg("\"%s\" is not in: %s", words, muster_error(world->jobs[rank]));
}

/* Whole vectors are exchanged, so that much comes before its time. */
static void start_all(struct test_world *world, const struct scene *scene,
		      struct muster_request **requests, int *results)
{
	static double values[RANKS][20000];

	world->seed = 5;
	for (uint32_t i = 0; i < RANKS; i++) {
		muster_comm_offload(world->comms[i], scene->offload);
		muster_comm_schedule(world->comms[i], "recursive-doubling");
		armed = i == VICTIM;
		results[i] = start(world->comms[i], scene, values[i], &requests[i]);
		armed = false;
		if (results[i])
			requests[i] = NULL;
	}
}

/* Fail the nth allocation. Return: whether there was one. */
static bool try(const struct scene *scene, int nth)
{
	struct test_world *world = test_joined(RANKS, TEST_RING_MAX);
	struct muster_request *requests[RANKS] = { NULL };
	int results[RANKS] = { 0 };
	bool failed;

	until_failure = nth;
	start_all(world, scene, requests, results);
	finish(world, requests, results);
	failed = !until_failure;
	until_failure = 0;
	assert_true(failed || !results[VICTIM]);
	for (uint32_t i = 0; i < RANKS; i++) {
		if (!results[VICTIM])
			assert_int_equal(results[i], 0);
		else if (i == VICTIM)
			assert_ended(world, i, -ENOMEM, "memory");
		else
			assert_ended(world, i, -ECONNABORTED, "rank 1 gave up");
	}
	test_world_free(world);
	return failed;
}

static int try_all(struct scene scene)
{
	int nth = 1;

	while (try(&scene, nth))
		nth++;
	return nth - 1;
}

static void test_an_operation_without_memory_at_one_rank_ends_everywhere(void **state)
{
	static const uint64_t counts[] = { 1, 1000, 20000 };
	int nic = 0, host = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		for (int coll = MUSTER_COLL_BROADCAST; coll <= MUSTER_COLL_ALLREDUCE; coll++) {
			struct scene scene = { .coll = coll, .count = counts[i] };

			scene.offload = MUSTER_OFFLOAD_FORCE;
			nic += try_all(scene);
			scene.offload = MUSTER_OFFLOAD_OFF;
			host += try_all(scene);
		}
	}
	assert_true(nic > 50 && host > 50);
}

/* ---- a communicator ------------------------------------------------------------------ */

static void *create_run(void *opaque)
{
	static const uint32_t ranks[] = { 2, 1 };
	struct test_thread *thread = opaque;
	struct test_world *world = thread->world;
	struct muster_comm *comm = NULL;

	armed = thread->rank == VICTIM;
	world->results[thread->rank] =
		thread->rank == 0 ? 0 :
		muster_comm_create_group(muster_world(world->jobs[thread->rank]), 2, ranks, 5, &comm);
	armed = false;
	assert_true(!comm == (thread->rank == 0 || world->results[thread->rank]));
	muster_comm_free(comm);
	return NULL;
}

/* Where the trees' order is told there is an operation, too: others hear that rank 1 gave up, or it does without. */
static void assert_created(const struct test_world *world, uint32_t rank, bool failed)
{
	if (failed && getenv("MUSTER_SWITCH_ORDER"))
		assert_int_equal(!world->results[rank], !world->results[VICTIM]);
	else
		assert_int_equal(world->results[rank], failed ? -ENOMEM : 0);
}

static bool try_create(int nth)
{
	struct test_world *world = test_joined(3, TEST_RING_MAX);
	bool failed;

	until_failure = nth;
	test_all(world, create_run, NULL);
	failed = !until_failure;
	until_failure = 0;
	for (uint32_t i = 1; i < 3; i++)
		assert_created(world, i, failed);
	test_all(world, create_run, NULL);
	for (uint32_t i = 1; i < 3; i++)
		assert_int_equal(world->results[i], 0);
	test_world_free(world);
	return failed;
}

static int try_create_all(void)
{
	int nth = 1;

	while (try_create(nth))
		nth++;
	return nth - 1;
}

/* With groups at switches there is one more to fail, and more if their order is told. */
static void test_a_communicator_without_memory_at_one_rank_is_made_nowhere(void **state)
{
	struct test_manager manager = { .silent = false };
	int without = try_create_all(), with, ordered;

	(void)state;
	assert_true(without > 3);
	test_manager_begin(&manager);
	with = try_create_all();
	setenv("MUSTER_SWITCH_ORDER", "try", 1);
	ordered = try_create_all();
	unsetenv("MUSTER_SWITCH_ORDER");
	test_manager_end(&manager);
	assert_true(without < with && with < ordered);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_operation_without_memory_at_one_rank_ends_everywhere),
		cmocka_unit_test(test_a_communicator_without_memory_at_one_rank_is_made_nowhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
