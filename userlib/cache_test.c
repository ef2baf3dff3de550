// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What the cache keeps, forgets, and must not forget while it is in use. */
#include "testing.h"

static struct test_world *world;
static struct muster_comm *comm;

static int setup(void **state)
{
	(void)state;
	world = test_joined(2, TEST_RING_MAX);
	comm = world->comms[0];
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	test_world_free(world);
	return 0;
}

static struct muster_entry *get(uint64_t count)
{
	const struct muster_call call = { .coll = MUSTER_COLL_ALLREDUCE, .type = MUSTER_I32,
					  .op = MUSTER_SUM, .count = count, .bytes = 4 * count };
	struct muster_entry *entry;

	assert_int_equal(muster_entry_get(comm, &call, &entry), 0);
	return entry;
}

static void touch(uint64_t count)
{
	muster_entry_put(get(count));
}

static void test_the_same_call_finds_the_same_entry(void **state)
{
	struct muster_entry *first = get(1), *other = get(2), *again = get(1);

	(void)state;
	assert_ptr_equal(first, again);
	assert_ptr_not_equal(first, other);
	assert_int_equal(first->refs, 2);
	muster_entry_put(first);
	muster_entry_put(other);
	muster_entry_put(again);
}

static bool is_cached(uint64_t count)
{
	for (int i = 0; i < MUSTER_CACHE_MAX; i++)
		if (comm->warm->cache[i] && comm->warm->cache[i]->call.count == count)
			return true;
	return false;
}

static void test_the_entry_that_was_not_used_for_longest_goes(void **state)
{
	(void)state;
	for (uint64_t count = 1; count <= MUSTER_CACHE_MAX; count++)
		touch(count);
	touch(1);
	touch(1000);
	assert_true(is_cached(1));
	assert_false(is_cached(2));
	assert_true(is_cached(3));
	assert_true(is_cached(1000));
}

static void test_an_entry_in_use_outlives_the_cache(void **state)
{
	struct muster_entry *entry = get(1);

	(void)state;
	muster_cache_clear(comm);
	assert_false(is_cached(1));
	assert_int_equal(muster_entry_lower(comm, entry), 0);
	assert_int_equal(entry->call.count, 1);
	muster_entry_put(entry);
}

static void test_another_schedule_makes_another_signature(void **state)
{
	struct muster_signature signature = get(1)->signature;

	(void)state;
	muster_entry_put(comm->warm->recent);
	assert_int_equal(muster_comm_schedule(comm, "binomial"), 0);
	assert_false(muster_signatures_agree(&get(1)->signature, &signature));
	muster_entry_put(comm->warm->recent);
	assert_int_equal(muster_comm_schedule(comm, NULL), 0);
	assert_true(muster_signatures_agree(&get(1)->signature, &signature));
	muster_entry_put(comm->warm->recent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_same_call_finds_the_same_entry),
		cmocka_unit_test(test_the_entry_that_was_not_used_for_longest_goes),
		cmocka_unit_test(test_an_entry_in_use_outlives_the_cache),
		cmocka_unit_test(test_another_schedule_makes_another_signature),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
