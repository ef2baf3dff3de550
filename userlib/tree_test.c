// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Communicators whose groups a manager makes: what fails at one rank fails at all, and a
 * manager that is slow or says nothing is not taken for one that has gone, nor waited for
 * again and again.
 */
#include "test_manager.h"
#include "tree.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_device_that_joins_no_tree_fails_a_communicator_everywhere),
		cmocka_unit_test(test_a_device_that_joins_no_tree_fails_the_job_everywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
