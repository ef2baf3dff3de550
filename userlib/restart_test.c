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

#include "pair.h"
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

/* ---- whoever dies, and whenever ------------------------------------------------------------ */

enum { RANKS = 5, ROUNDS = 10, SEEDS = 40, LONG = 700, STAYING = 0x15 };

struct death {
	uint32_t round, polls;	/* so many, in that round, */
	bool in_barrier;	/* of the operation, or of the agreement behind it */
};

/* Ranks 1 and 3, the latter in half of all seeds. */
static struct death deaths[2];
static uint64_t heard[RANKS];
static uint32_t errors[RANKS];

static uint64_t drawn(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

static void deaths_draw(uint64_t seed)
{
	for (int i = 0; i < 2; i++)
		deaths[i] = (struct death){
			.round = (uint32_t)(i && seed % 2 ? ROUNDS : drawn(&seed) % (ROUNDS - 1)),
			.polls = (uint32_t)(drawn(&seed) % (drawn(&seed) % 2 ? 10 : 300)),
			.in_barrier = drawn(&seed) % 2,
		};
}

static uint64_t count_of(uint32_t round)
{
	return round % 2 ? LONG : 1;
}

static void fill(uint64_t *values, uint32_t rank, uint32_t round)
{
	for (uint64_t i = 0; i < count_of(round); i++)
		values[i] = (uint64_t)round << 32 | 1u << rank;
}

static void expect_sum(const uint64_t *values, uint32_t round)
{
	uint32_t who = (uint32_t)values[0];

	assert_int_equal(who & STAYING, STAYING);
	for (uint64_t i = 0; i < count_of(round); i++)
		assert_int_equal(values[i], ((uint64_t)__builtin_popcount(who) * round << 32) + who);
}

/* As the others call it, but not to its end. */
static void die(struct test_thread *thread, const struct death *death, uint64_t *values)
{
	struct muster_comm *comm = muster_comm_heir(thread->world->comms[thread->rank]);
	struct muster_request *request;

	assert_int_equal(muster_allreduce_start(comm, values, values, count_of(death->round), MUSTER_U64, MUSTER_SUM, &request), 0);
	while (death->in_barrier && request->agreement && request->agreement != comm->first)
		muster_progress(comm->job);
	for (uint32_t i = 0; i < death->polls; i++)
		muster_progress(comm->job);
	test_lock(comm->job->dev);
	test_kill(thread->world, thread->rank);
	test_unlock(&thread->world->nodes[thread->rank]);
}

static void *any_run(void *opaque)
{
	struct test_thread *thread = opaque;
	struct muster_comm *comm = thread->world->comms[thread->rank];
	uint64_t values[LONG];

	heard[thread->rank] = errors[thread->rank] = 0;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		int err;

		fill(values, thread->rank, round);
		if (thread->rank % 2 && deaths[thread->rank / 2].round == round) {
			die(thread, &deaths[thread->rank / 2], values);
			return NULL;
		}
		err = muster_allreduce(comm, values, values, count_of(round), MUSTER_U64, MUSTER_SUM);
		assert_true(!err || err == -ECONNRESET);
		if (!err)
			expect_sum(values, round);
		errors[thread->rank] += err != 0;
		heard[thread->rank] = heard[thread->rank] * 31 + (err ? 99 : (uint32_t)values[0]);
	}
	return NULL;
}

static void test_all_that_are_left_have_the_same_whenever_one_dies(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct test_world *world = world_of(RANKS, MUSTER_RESTART_AGREED);

		deaths_draw(seed);
		test_all(world, any_run, NULL);
		for (uint32_t i = 2; i < RANKS; i += 2)
			if (heard[i] != heard[0])
				fail_msg("seed %d: ranks 0 and %u have other results", (int)seed, i);
		assert_true(errors[0] <= (seed % 2 ? 0u : 1u));
		test_world_free(world);
	}
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
		comm->restarts->places = 2;
	for (uint64_t place = comm->restarts->places; place < 2; place++) {
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

/* Rank 3 is there when all agree, and dies before it brings what it has. */
static void die_anew(struct test_thread *thread)
{
	static const uint32_t living[] = { 0, 2, 3, 4 };
	struct muster_agreement words = { .most = { 0, 0 } };
	struct muster_comm *comm = thread->world->comms[thread->rank], *heir;
	struct muster_group group;

	assert_int_equal(muster_comm_restart(comm, MUSTER_RESTART_OFF), 0);	/* it does so by itself */
	while (!comm->failed)
		muster_progress(comm->job);
	assert_int_equal(muster_comm_create_group(comm, 4, living, MUSTER_RESTART_TAG, &heir), 0);
	group = muster_group_of_all(heir);
	assert_int_equal(muster_agree(&group, &words), 0);
	test_lock(comm->job->dev);
	test_kill(thread->world, thread->rank);
	test_unlock(&thread->world->nodes[thread->rank]);
}

static void *twice_run(void *opaque)
{
	struct test_thread *thread = opaque;
	struct muster_comm *comm = thread->world->comms[thread->rank];

	if (thread->rank == 3)
		die_anew(thread);
	if (thread->rank == 3 || thread->rank == DEAD)
		return NULL;
	assert_int_equal(muster_barrier(comm), -ECONNRESET);
	assert_non_null(strstr(muster_error(comm->job), "and another while the operation was begun anew"));
	sum_of_living(comm, 1, 3);
	return NULL;
}

static void test_it_is_begun_anew_once(void **state)
{
	(void)state;
	all_but_one(5, MUSTER_RESTART_TRY, twice_run);
	all_but_one(5, MUSTER_RESTART_AGREED, twice_run);
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

/* What nobody wants to be begun anew fails, however it is started. */
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
	assert_int_equal(err ? err : muster_wait(request), how ? 0 : -ECONNRESET);
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
		cmocka_unit_test(test_all_that_are_left_have_the_same_whenever_one_dies),
		cmocka_unit_test(test_what_some_have_ended_is_an_error_at_the_others),
		cmocka_unit_test(test_it_is_begun_anew_once),
		cmocka_unit_test(test_half_of_them_are_too_few),
		cmocka_unit_test(test_what_is_not_asked_for_is_not_begun_anew),
		cmocka_unit_test(test_what_there_is_not_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
