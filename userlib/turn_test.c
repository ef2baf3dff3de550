// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Threads of one rank, on a device whose sleep ends when it is told to and at no other time:
 * who of them sleeps there, who is woken, and when the library's own thread keeps away.
 */
#include <sched.h>

#include "testing.h"
#include "turn.h"

enum { SLEEPERS = 3, SLEEPS = 20 };

static const uint64_t ever_us = (uint64_t)24 * 3600 * 1000000;

/* The device's sleep. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t woken;
	uint32_t asleep, most;		/* threads there: now, and most of all */
	uint32_t wakes;
	int who;			/* of them */
} gate = { .lock = PTHREAD_MUTEX_INITIALIZER, .woken = PTHREAD_COND_INITIALIZER };

static _Thread_local int self = -1;

static void gate_wait(struct muster_dev *dev, uint64_t timeout_us)
{
	uint32_t wakes;

	(void)timeout_us;
	pthread_mutex_lock(&gate.lock);
	wakes = gate.wakes;
	gate.who = self;
	gate.asleep++;
	gate.most = gate.asleep > gate.most ? gate.asleep : gate.most;
	muster_dev_sleep_begin(dev);
	while (gate.wakes == wakes)
		pthread_cond_wait(&gate.woken, &gate.lock);
	gate.asleep--;
	gate.who = -1;
	pthread_mutex_unlock(&gate.lock);
	muster_dev_sleep_end(dev);
}

static void gate_wake(struct muster_dev *dev)
{
	(void)dev;
	pthread_mutex_lock(&gate.lock);
	gate.wakes++;
	pthread_cond_broadcast(&gate.woken);
	pthread_mutex_unlock(&gate.lock);
}

/* Who sleeps there now; -1: nobody. */
static int gate_who(void)
{
	int who;

	pthread_mutex_lock(&gate.lock);
	who = gate.who;
	pthread_mutex_unlock(&gate.lock);
	return who;
}

static struct muster_dev_ops gate_ops;
static struct test_world *world;

static void setup(bool helper)
{
	gate_ops = test_dev_ops;
	gate_ops.wait = gate_wait;
	gate_ops.wake = gate_wake;
	gate.asleep = gate.most = gate.wakes = 0;
	gate.who = -1;
	world = test_joined(2, TEST_RING_MAX);
	world->nodes[0].dev.ops = &gate_ops;
	world->jobs[0]->spin_polls = 0;
	assert_int_equal(muster_turn_open(world->jobs[0], helper), 0);
}

/* ---- those who sleep ------------------------------------------------------------------ */

struct sleeper {
	pthread_t thread;
	int number;
	uint32_t sleeps;	/* that have ended; these belong to who has the turn */
	bool ends;
};

static void *sleeps_on(void *opaque)
{
	struct sleeper *sleeper = opaque;
	struct muster *job = world->jobs[0];
	MUSTER_TURN(job);

	self = sleeper->number;
	while (!sleeper->ends) {
		muster_sleep(job, ever_us);
		sleeper->sleeps++;
	}
	return NULL;
}

static void begin(struct sleeper *sleepers, int nr)
{
	for (int i = 0; i < nr; i++) {
		sleepers[i] = (struct sleeper){ .number = i };
		assert_int_equal(pthread_create(&sleepers[i].thread, NULL, sleeps_on, &sleepers[i]), 0);
	}
}

/* What they wait for has come; the turn ends with this. */
static void tell(struct sleeper *sleepers, int nr, bool ends)
{
	MUSTER_TURN(world->jobs[0]);

	for (int i = 0; i < nr; i++)
		sleepers[i].ends |= ends;
	muster_turn_news(world->jobs[0]);
}

static uint32_t least(const struct sleeper *sleepers, int nr)
{
	uint32_t sleeps = UINT32_MAX;
	MUSTER_TURN(world->jobs[0]);

	for (int i = 0; i < nr; i++)
		sleeps = sleepers[i].sleeps < sleeps ? sleepers[i].sleeps : sleeps;
	return sleeps;
}

static void test_one_thread_sleeps_on_the_device_and_all_hear_what_comes(void **state)
{
	struct sleeper sleepers[SLEEPERS];

	(void)state;
	setup(false);
	begin(sleepers, SLEEPERS);
	while (least(sleepers, SLEEPERS) < SLEEPS) {
		tell(sleepers, SLEEPERS, false);
		sched_yield();
	}
	while (gate_who() < 0)
		sched_yield();
	tell(sleepers, SLEEPERS, true);		/* once is enough */
	for (int i = 0; i < SLEEPERS; i++)
		pthread_join(sleepers[i].thread, NULL);
	assert_int_equal(gate.most, 1);
	test_world_free(world);
}

static void test_another_thread_leads_when_the_leader_goes(void **state)
{
	struct sleeper sleepers[SLEEPERS];
	bool gone[SLEEPERS] = { false };

	(void)state;
	setup(false);
	begin(sleepers, SLEEPERS);
	for (int left = SLEEPERS; left; left--) {
		int who;

		while ((who = gate_who()) < 0 || gone[who])
			sched_yield();
		muster_turn_begin(world->jobs[0]);
		sleepers[who].ends = true;
		muster_turn_end(&world->jobs[0]);
		gate_wake(NULL);		/* its own event; nobody tells the others */
		pthread_join(sleepers[who].thread, NULL);
		gone[who] = true;
	}
	assert_int_equal(gate.most, 1);
	test_world_free(world);
}

static void *waits(void *opaque)
{
	self = 0;
	assert_int_equal(muster_wait(opaque), 0);
	return NULL;
}

/* Nothing else wakes it. */
static void test_who_waits_is_woken_when_another_thread_ends_its_operation(void **state)
{
	struct muster_request *requests[2];
	int64_t values[2] = { 1, 2 };
	bool done = false;
	pthread_t thread;

	(void)state;
	setup(false);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(muster_allreduce_start(world->comms[i], &values[i], &values[i], 1,
							MUSTER_I64, MUSTER_SUM, &requests[i]), 0);
	assert_int_equal(pthread_create(&thread, NULL, waits, requests[0]), 0);
	while (gate_who() < 0)
		sched_yield();
	while (!done)
		assert_int_equal(muster_test(requests[1], &done), 0);
	while (requests[0]->state != MUSTER_REQUEST_DONE && requests[0]->state != MUSTER_REQUEST_FREE)
		muster_progress(world->jobs[0]);
	pthread_join(thread, NULL);
	assert_int_equal(values[0], 3);
	test_world_free(world);
}

/* ---- the library's own thread ------------------------------------------------------------ */

static uint32_t helped;		/* polls by it */
static _Thread_local bool is_caller;

static int counting_poll(struct muster_dev *dev, struct muster_cqe *cqe)
{
	if (!is_caller)
		__atomic_fetch_add(&helped, 1, __ATOMIC_RELAXED);
	return test_poll(dev, cqe);
}

static void short_wait(struct muster_dev *dev, uint64_t timeout_us)
{
	muster_dev_sleep_begin(dev);
	test_wait_dev(dev, timeout_us);
	muster_dev_sleep_end(dev);
}

/* Also while it sleeps: then it has given its turn away, and is in the library all the same. */
static void test_the_librarys_thread_keeps_away_while_a_caller_is_in_the_library(void **state)
{
	struct muster_request *requests[TEST_RANKS_MAX];
	int64_t values[2] = { 1, 2 };
	int results[2];

	(void)state;
	is_caller = true;
	setup(true);
	muster_turn_begin(world->jobs[0]);
	gate_ops.poll = counting_poll;
	gate_ops.wait = short_wait;
	muster_turn_end(&world->jobs[0]);
	assert_int_equal(muster_allreduce_start(world->comms[0], &values[0], &values[0], 1, MUSTER_I64,
						MUSTER_SUM, &requests[0]), 0);
	for (int turn = 0; turn < 3; turn++) {
		uint32_t before = __atomic_load_n(&helped, __ATOMIC_RELAXED);

		while (__atomic_load_n(&helped, __ATOMIC_RELAXED) == before)	/* carries on alone */
			sched_yield();
		muster_turn_begin(world->jobs[0]);
		before = __atomic_load_n(&helped, __ATOMIC_RELAXED);
		for (int i = 0; i < SLEEPS; i++) {
			muster_progress(world->jobs[0]);
			muster_sleep(world->jobs[0], 1000);
		}
		assert_int_equal(__atomic_load_n(&helped, __ATOMIC_RELAXED), before);
		muster_turn_end(&world->jobs[0]);
	}
	assert_int_equal(muster_allreduce_start(world->comms[1], &values[1], &values[1], 1, MUSTER_I64,
						MUSTER_SUM, &requests[1]), 0);
	test_finish(world, requests, results);
	assert_int_equal(values[0], 3);
	test_world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_thread_sleeps_on_the_device_and_all_hear_what_comes),
		cmocka_unit_test(test_another_thread_leads_when_the_leader_goes),
		cmocka_unit_test(test_who_waits_is_woken_when_another_thread_ends_its_operation),
		cmocka_unit_test(test_the_librarys_thread_keeps_away_while_a_caller_is_in_the_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
