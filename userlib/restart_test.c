// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Operations that are begun anew: what becomes of inputs and roots, of those that some have ended, and where
 * too few are left. That ranks which are killed at any time leave all others with the same results is
 * selftests/restart_test.sh.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <pthread.h>

#include "internal.h"
#include "restart.h"
#include "testing.h"

enum { DEAD = 1, COUNT = 3000 };

static struct test_world *world_of(uint32_t size, enum muster_restart how)
{
	struct test_world *world = test_world_new(size);

	world->tells_deaths = true;
	test_all(world, test_join_run, NULL);
	for (uint32_t i = 0; i < size; i++)
		assert_int_equal(muster_comm_restart(world->comms[i], how), 0);
	return world;
}

/* Rank 1 has died; of the living each does the same. */
static void all_but_one(uint32_t size, enum muster_restart how, void *(*run)(void *thread))
{
	struct test_world *world = world_of(size, how);

	test_kill(world, DEAD);
	test_all(world, run, &how);
	test_world_free(world);
}

static void sum_of_living(struct muster_comm *comm, uint64_t own, uint64_t wanted)
{
	uint64_t values[COUNT];

	for (int i = 0; i < COUNT; i++)
		values[i] = own + (uint64_t)i;
	assert_int_equal(muster_allreduce(comm, values, values, COUNT, MUSTER_U64, MUSTER_SUM), 0);
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(values[i], wanted + 3 * (uint64_t)i);
}

/* ---- what is begun anew ------------------------------------------------------------------- */

static void *in_place_run(void *opaque)
{
	struct test_thread *thread = opaque;
	struct muster_comm *comm = thread->world->comms[thread->rank];

	if (thread->rank == DEAD)
		return NULL;
	sum_of_living(comm, 100u << thread->rank, 1300);
	sum_of_living(comm, 1, 3);
	assert_int_equal(muster_comm_error(comm), 0);
	assert_int_equal(muster_comm_size(comm), 4);
	assert_int_equal(muster_comm_size(muster_comm_heir(comm)), 3);
	assert_int_equal(muster_comm_rank(muster_comm_heir(comm)), thread->rank - (thread->rank > DEAD));
	return NULL;
}

static void test_what_is_in_place_is_of_the_living(void **state)
{
	(void)state;
	all_but_one(4, MUSTER_RESTART_TRY, in_place_run);
	all_but_one(4, MUSTER_RESTART_AGREED, in_place_run);
}

static void *roots_run(void *opaque)
{
	struct test_thread *thread = opaque;
	struct muster_comm *comm = thread->world->comms[thread->rank];
	uint64_t value = 10 + thread->rank, sum = 0;

	if (thread->rank == DEAD)
		return NULL;
	assert_int_equal(muster_broadcast(comm, &value, 1, MUSTER_U64, 2), 0);
	assert_int_equal(value, 12);
	assert_int_equal(muster_broadcast(comm, &value, 1, MUSTER_U64, DEAD), -ECONNRESET);
	assert_non_null(strstr(muster_error(comm->job), "rank 1, the root,"));
	assert_int_equal(muster_reduce(comm, &value, &sum, 1, MUSTER_U64, MUSTER_SUM, 3), 0);
	assert_int_equal(sum, thread->rank == 3 ? 36 : 0);
	assert_int_equal(muster_broadcast(comm, &value, 1, MUSTER_U64, 4), -EINVAL);
	assert_int_equal(muster_barrier(comm), 0);
	return NULL;
}

static void test_roots_keep_their_numbers(void **state)
{
	(void)state;
	all_but_one(4, MUSTER_RESTART_TRY, roots_run);
}

/* ---- what is not ----------------------------------------------------------------------------- */

/* Rank 0 is with the third operation, when all others are with the first. */
static void *behind_run(void *opaque)
{
	struct test_thread *thread = opaque;
	struct muster_comm *comm = thread->world->comms[thread->rank];
	uint64_t value = 1;

	if (thread->rank == DEAD)
		return NULL;
	if (!thread->rank)
		comm->restarts->place = 2;
	for (uint64_t place = comm->restarts->place; place < 2; place++) {
		assert_int_equal(muster_allreduce(comm, &value, &value, 1, MUSTER_U64, MUSTER_SUM), -ECONNRESET);
		assert_non_null(strstr(muster_error(comm->job), "others had ended this operation already"));
	}
	sum_of_living(comm, 5, 15);
	return NULL;
}

static void test_what_some_have_ended_is_an_error_at_the_others(void **state)
{
	(void)state;
	all_but_one(4, MUSTER_RESTART_TRY, behind_run);
}

static void *too_few_run(void *opaque)
{
	struct test_thread *thread = opaque;
	struct muster_comm *comm = thread->world->comms[thread->rank];

	if (thread->rank == DEAD)
		return NULL;
	assert_int_equal(muster_barrier(comm), -ENOTCONN);
	assert_non_null(strstr(muster_error(comm->job), "of 2 ranks 1 can be reached"));
	return NULL;
}

static void test_half_of_them_are_too_few(void **state)
{
	(void)state;
	all_but_one(2, MUSTER_RESTART_AGREED, too_few_run);
}

/* By others' starts all fail as they did, and so does what nobody wants to be begun anew. */
static void *others_run(void *opaque)
{
	struct test_thread *thread = opaque;
	struct muster_comm *comm = thread->world->comms[thread->rank];
	const enum muster_restart how = *(const enum muster_restart *)thread->argument;
	struct muster_request *request;
	int err;

	if (thread->rank == DEAD)
		return NULL;
	err = muster_barrier_start(comm, &request);
	assert_int_equal(err ? err : muster_wait(request), -ECONNRESET);
	assert_int_equal(muster_barrier(comm), how ? 0 : -ECONNRESET);
	assert_int_equal(muster_comm_restart(comm, how), how ? -EINVAL : 0);
	return NULL;
}

static void test_what_is_not_asked_for_is_not_begun_anew(void **state)
{
	(void)state;
	all_but_one(3, MUSTER_RESTART_OFF, others_run);
	all_but_one(3, MUSTER_RESTART_TRY, others_run);
}

static void test_what_there_is_not_is_refused(void **state)
{
	struct test_world *world = world_of(2, MUSTER_RESTART_OFF);

	(void)state;
	assert_int_equal(muster_comm_restart(world->comms[0], 3), -EINVAL);
	assert_int_equal(muster_comm_restart(NULL, MUSTER_RESTART_TRY), -EINVAL);
	assert_null(muster_comm_heir(NULL));
	assert_ptr_equal(muster_comm_heir(world->comms[0]), world->comms[0]);
	test_world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_in_place_is_of_the_living),
		cmocka_unit_test(test_roots_keep_their_numbers),
		cmocka_unit_test(test_what_some_have_ended_is_an_error_at_the_others),
		cmocka_unit_test(test_half_of_them_are_too_few),
		cmocka_unit_test(test_what_is_not_asked_for_is_not_begun_anew),
		cmocka_unit_test(test_what_there_is_not_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
