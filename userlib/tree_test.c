// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Communicators whose groups a manager makes: what fails at one rank fails at all, and a
 * manager that is slow or says nothing is not taken for one that has gone, nor waited for
 * again and again; but who leaves is heard.
 */
#include <signal.h>
#include <stdatomic.h>

#include "test_manager.h"
#include "tree.h"
#include "turn.h"

enum { RANKS = 3, VICTIM = 1 };

static void *dup_run(void *opaque)
{
	struct test_thread *thread = opaque;
	struct test_world *world = thread->world;
	struct muster *job = world->jobs[thread->rank];

	world->comms[thread->rank] = NULL;
	world->results[thread->rank] = muster_comm_dup(muster_world(job), &world->comms[thread->rank]);
	strcpy(world->said[thread->rank], muster_error(job));
	return NULL;
}

static void assert_all(const struct test_world *world, int expected)
{
	for (uint32_t i = 0; i < world->size; i++) {
		if (world->results[i] != expected)
			fail_msg("rank %u: %d: %s", i, world->results[i], world->said[i]);
		if (expected && !strstr(world->said[i], "Device or resource busy"))
			fail_msg("rank %u: %s", i, world->said[i]);
	}
}

static void assert_trees(const struct test_world *world)
{
	for (uint32_t i = 0; i < world->size; i++) {
		assert_non_null(world->comms[i]->trees);
		for (int type = 0; type < MUSTER_TREE_TYPES; type++) {
			assert_true(world->comms[i]->trees->by_type[type].key);
			assert_true(world->comms[i]->trees->by_type[type].key ==
				    world->comms[0]->trees->by_type[type].key);
		}
	}
}

/* ---- what fails at one ---------------------------------------------------------------- */

static void test_a_device_that_joins_no_tree_fails_a_communicator_everywhere(void **state)
{
	struct test_manager manager = { .silent = false };
	struct test_world *world;

	(void)state;
	test_manager_begin(&manager);
	world = test_joined(RANKS, TEST_RING_MAX);
	assert_trees(world);
	for (uint32_t nth = 1; nth <= MUSTER_TREE_TYPES; nth++) {
		world->nodes[VICTIM].tree_fails = nth;
		test_all(world, dup_run, NULL);
		assert_all(world, -EBUSY);
		test_all(world, dup_run, NULL);
		assert_all(world, 0);
		assert_trees(world);
	}
	test_world_free(world);
	test_manager_end(&manager);
}

static void test_a_device_that_joins_no_tree_fails_the_job_everywhere(void **state)
{
	struct test_manager manager = { .silent = false };

	(void)state;
	test_manager_begin(&manager);
	for (uint32_t nth = 1; nth <= MUSTER_TREE_TYPES; nth++) {
		struct test_world *world = test_world_new(RANKS);

		world->nodes[VICTIM].tree_fails = nth;
		test_all(world, test_join_run, NULL);
		assert_all(world, -EBUSY);
		test_world_free(world);
	}
	test_manager_end(&manager);
}

/* ---- a manager that is slow ------------------------------------------------------------- */

static struct {
	pthread_mutex_t lock;
	pthread_t threads[RANKS];
	uint32_t nr;
} joining = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void ignore(int number)
{
	(void)number;
}

/* All who join are hit by signals, of which most find them as they wait for the manager. */
static void signal_all(void *opaque)
{
	const struct timespec nap = { .tv_nsec = 1000000 };

	(void)opaque;
	for (int i = 0; i < 30; i++, nanosleep(&nap, NULL)) {
		pthread_mutex_lock(&joining.lock);
		for (uint32_t k = 0; k < joining.nr; k++)
			pthread_kill(joining.threads[k], SIGUSR1);
		pthread_mutex_unlock(&joining.lock);
	}
}

static void *hit_join_run(void *opaque)
{
	uint32_t me = 0;

	pthread_mutex_lock(&joining.lock);
	joining.threads[joining.nr++] = pthread_self();
	pthread_mutex_unlock(&joining.lock);
	test_join_run(opaque);
	pthread_mutex_lock(&joining.lock);
	while (!pthread_equal(joining.threads[me], pthread_self()))
		me++;
	joining.threads[me] = joining.threads[--joining.nr];
	pthread_mutex_unlock(&joining.lock);
	return NULL;
}

static void test_a_signal_is_not_taken_for_a_manager_that_says_nothing(void **state)
{
	const struct sigaction action = { .sa_handler = ignore };
	struct test_manager manager = { .hello = signal_all };
	struct test_world *world = test_world_new(RANKS);
	struct sigaction before;

	(void)state;
	sigaction(SIGUSR1, &action, &before);
	test_manager_begin(&manager);
	test_all(world, hit_join_run, NULL);
	assert_all(world, 0);
	for (uint32_t i = 0; i < RANKS; i++)
		if (!world->jobs[i]->manager)
			fail_msg("rank %u: %s", i, world->jobs[i]->no_tree);
	assert_trees(world);
	test_world_free(world);
	test_manager_end(&manager);
	sigaction(SIGUSR1, &before, NULL);
}

static void patience_set(struct test_world *world, uint64_t us)
{
	for (uint32_t i = 0; i < RANKS; i++)
		world->jobs[i]->settings.deadline_us = us;
}

static void test_a_manager_that_says_nothing_is_waited_for_once(void **state)
{
	struct test_manager manager = { .silent = false };
	struct test_world *world;
	uint32_t asked;

	(void)state;
	test_manager_begin(&manager);
	world = test_joined(RANKS, TEST_RING_MAX);
	test_manager_silence(&manager, true);
	asked = test_manager_created(&manager);
	patience_set(world, 1000);
	for (int i = 0; i < 3; i++) {
		test_all(world, dup_run, NULL);
		assert_all(world, 0);
		for (uint32_t k = 0; k < RANKS; k++)
			assert_non_null(strstr(world->comms[k]->no_tree, "Connection timed out"));
	}
	while (!test_manager_given_back(&manager))
		sched_yield();
	/* It answers at last: from then on it is asked again. */
	patience_set(world, (uint64_t)3600 * 1000000);
	test_manager_silence(&manager, false);
	test_manager_catch_up(&manager);
	test_all(world, dup_run, NULL);
	assert_all(world, 0);
	assert_int_equal(test_manager_created(&manager), asked + 1 + MUSTER_TREE_TYPES);
	assert_int_equal(test_manager_given_back(&manager), 1);
	assert_trees(world);
	test_world_free(world);
	test_manager_end(&manager);
}

/* Two threads of each rank make a communicator each, of two parents, and a third has its turns. */
static void *second_dup_run(void *opaque)
{
	struct test_thread *thread = opaque;
	struct muster_comm **comms = (struct muster_comm **)(uintptr_t)thread->argument;

	thread->world->results[thread->rank] =
		muster_comm_dup(comms[thread->rank], &comms[thread->rank]);
	return NULL;
}

struct both {
	struct test_world *world;
	struct muster_comm **comms;
};

static void *second_dup(void *opaque)
{
	struct both *both = opaque;

	test_all(both->world, second_dup_run, both->comms);
	return NULL;
}

static void test_other_threads_go_on_while_the_manager_is_awaited(void **state)
{
	struct test_manager manager = { .silent = false };
	struct muster_comm *firsts[RANKS], *seconds[RANKS];
	struct both all[2] = { { .comms = firsts }, { .comms = seconds } };
	pthread_t threads[2];
	struct muster_op_info info;
	uint32_t asked;

	(void)state;
	test_manager_begin(&manager);
	all[0].world = all[1].world = test_joined(RANKS, TEST_RING_MAX);
	test_all(all[0].world, dup_run, NULL);
	for (uint32_t i = 0; i < RANKS; i++) {
		assert_int_equal(muster_turn_open(all[0].world->jobs[i], false), 0);
		firsts[i] = muster_world(all[0].world->jobs[i]);
		seconds[i] = all[0].world->comms[i];
	}
	asked = test_manager_created(&manager);
	test_manager_silence(&manager, true);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, second_dup, &all[i]), 0);
	while (test_manager_created(&manager) == asked)
		sched_yield();
	muster_comm_last(all[0].world->comms[0], &info);	/* it takes a turn of rank 0 */
	test_manager_silence(&manager, false);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(test_manager_created(&manager), asked + 2 * MUSTER_TREE_TYPES);
	memcpy(all[0].world->comms, firsts, sizeof(firsts));
	assert_trees(all[0].world);
	memcpy(all[0].world->comms, seconds, sizeof(seconds));
	assert_trees(all[0].world);
	test_world_free(all[0].world);
	test_manager_end(&manager);
}

/* ---- leaving ------------------------------------------------------------------------------ */

struct leaver {
	struct test_world *world;
	atomic_bool left;
};

static void *leave_run(void *opaque)
{
	struct leaver *leaver = opaque;

	muster_finalize(leaver->world->jobs[0]);
	leaver->world->jobs[0] = NULL;
	leaver->left = true;
	return NULL;
}

static void test_a_job_is_not_left_before_the_manager_has_said_so_of_its_groups(void **state)
{
	const struct timespec nap = { .tv_nsec = 10000000 };
	struct test_manager manager = { .silent = false };
	struct leaver leaver = { .left = false };
	pthread_t thread;

	(void)state;
	test_manager_begin(&manager);
	leaver.world = test_joined(RANKS, TEST_RING_MAX);
	test_manager_silence(&manager, true);
	assert_int_equal(pthread_create(&thread, NULL, leave_run, &leaver), 0);
	while (test_manager_late(&manager) < MUSTER_TREE_TYPES)
		sched_yield();
	nanosleep(&nap, NULL);
	assert_false(leaver.left);
	test_manager_silence(&manager, false);
	pthread_join(thread, NULL);
	test_world_free(leaver.world);
	test_manager_end(&manager);
}

/* ---- in a tree's order ----------------------------------------------------------------------- */

/* (1 + 2^-24) + 2^-24 is 1; but the small ones come first. */
static void *sum_run(void *opaque)
{
	struct test_thread *thread = opaque;
	struct test_world *world = thread->world;
	struct muster_comm *comm = muster_world(world->jobs[thread->rank]);
	float own = thread->rank ? 0x1p-24f : 1, sum = 0;

	muster_comm_switch(comm, MUSTER_OFFLOAD_OFF);
	world->results[thread->rank] = muster_allreduce(comm, &own, &sum, 1, MUSTER_F32, MUSTER_SUM);
	strcpy(world->said[thread->rank], muster_error(comm->job));
	if (!world->results[thread->rank])
		assert_true(sum == 1 + 0x1p-23f);
	return NULL;
}

static void assert_said(const struct test_world *world, const char *words)
{
	for (uint32_t i = 0; i < world->size; i++) {
		struct muster_op_info info;

		muster_comm_last(muster_world(world->jobs[i]), &info);
		if (!strstr(info.why, words))
			fail_msg("rank %u: %s", i, info.why);
	}
}

/* The order is forced. */
static struct test_world *sums_begin(struct test_manager *manager)
{
	struct test_world *world;

	setenv("MUSTER_SWITCH_ORDER", "force", 1);
	test_manager_begin(manager);
	world = test_joined(RANKS, TEST_RING_MAX);
	test_all(world, sum_run, NULL);
	return world;
}

static void sums_end(struct test_world *world, struct test_manager *manager)
{
	test_world_free(world);
	test_manager_end(manager);
	unsetenv("MUSTER_SWITCH_ORDER");
}

static void test_other_paths_combine_in_the_order_that_the_manager_tells(void **state)
{
	struct test_manager manager = { .silent = false };
	struct test_world *world = sums_begin(&manager);

	(void)state;
	assert_trees(world);
	assert_all(world, 0);
	assert_said(world, "NIC: offloaded; in the order of the low-latency tree");
	sums_end(world, &manager);
}

/* It gets its groups back, and an operation that must have their order fails. */
static void test_a_manager_that_tells_no_order_makes_no_groups(void **state)
{
	struct test_manager manager = { .orderless = true };
	struct test_world *world = sums_begin(&manager);

	(void)state;
	for (uint32_t i = 0; i < RANKS; i++) {
		assert_int_equal(world->results[i], -EOPNOTSUPP);
		assert_non_null(strstr(world->said[i], "the trees' order is forced, but this allreduce would not have it: "
				       "no group was made: Protocol error"));
	}
	while (test_manager_given_back(&manager) < MUSTER_TREE_TYPES)
		sched_yield();
	sums_end(world, &manager);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_device_that_joins_no_tree_fails_a_communicator_everywhere),
		cmocka_unit_test(test_a_device_that_joins_no_tree_fails_the_job_everywhere),
		cmocka_unit_test(test_a_signal_is_not_taken_for_a_manager_that_says_nothing),
		cmocka_unit_test(test_a_manager_that_says_nothing_is_waited_for_once),
		cmocka_unit_test(test_other_threads_go_on_while_the_manager_is_awaited),
		cmocka_unit_test(test_a_job_is_not_left_before_the_manager_has_said_so_of_its_groups),
		cmocka_unit_test(test_other_paths_combine_in_the_order_that_the_manager_tells),
		cmocka_unit_test(test_a_manager_that_tells_no_order_makes_no_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
