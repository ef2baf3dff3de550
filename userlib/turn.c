// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Turns (turn.h): a lock that is fair, that its owner may take again, and that is given away
 * while a device sleeps, and by who sleeps because another thread does so. And the thread that makes progress while no caller is in the library
 * and something is under way; while one is, that one does, and the thread costs nothing.
 */
#include "turn.h"
#include "look.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	SHARED_SLEEP_US = 1000,	/* where what another thread has done for us wakes nobody */
};

struct muster_turn {
	pthread_mutex_t mutex;	/* protects what follows; nothing is done while it is held */
	pthread_cond_t next_turn;
	pthread_cond_t all_outside;
	pthread_cond_t news;	/* for those who follow */
	uint64_t told;		/* how often they were told */
	uint64_t asked;		/* turns that were asked for, */
	uint64_t given;		/* and of them those that are over */
	uint32_t callers;	/* threads in the library, asleep or not, but for the helper */
	bool work;		/* something was under way when the last turn ended */
	bool closing;

	const void *owner;	/* a mark of the thread that has the turn; read by all */
	uint32_t depth;		/* how often it has taken it; its own */
	const void *leader;	/* a mark, too: of who sleeps on the device, or is about to; its owner's, */
	uint32_t followers;	/* and so is this: threads that sleep otherwise */
	bool has_helper;
	pthread_t helper;
};

static _Thread_local char mark;			/* its address is the thread's */
static _Thread_local uint32_t slept_from;	/* the depth of a turn that was given away */

static bool is_mine(const struct muster_turn *turn)
{
	return __atomic_load_n(&turn->owner, __ATOMIC_RELAXED) == &mark;
}

/* With the mutex. */
static void ask_for(struct muster_turn *turn)
{
	uint64_t ticket = turn->asked++;

	while (turn->given != ticket)
		pthread_cond_wait(&turn->next_turn, &turn->mutex);
	__atomic_store_n(&turn->owner, &mark, __ATOMIC_RELAXED);
}

/* With the mutex. */
static void followers_wake(struct muster_turn *turn)
{
	turn->told++;
	pthread_cond_broadcast(&turn->news);
}

/* With the mutex. */
static void end_turn(struct muster_turn *turn)
{
	if (turn->followers && !turn->leader)	/* it has left: another must lead */
		followers_wake(turn);
	__atomic_store_n(&turn->owner, NULL, __ATOMIC_RELAXED);
	if (++turn->given != turn->asked)
		pthread_cond_broadcast(&turn->next_turn);
}

void muster_turn_take(struct muster_turn *turn)
{
	if (is_mine(turn)) {
		turn->depth++;
		return;
	}
	pthread_mutex_lock(&turn->mutex);
	turn->callers++;
	ask_for(turn);
	turn->depth = 1;
	pthread_mutex_unlock(&turn->mutex);
}

/* Something is under way that calls would carry on. */
static bool has_work(const struct muster *job)
{
	return job->under_way || job->active || job->nr_waiting || job->dev->holding ||
	       (job->next_rail && has_work(job->next_rail));
}

void muster_turn_give(struct muster *job)
{
	struct muster_turn *turn = job->turn;
	bool work = has_work(job);

	if (--turn->depth)
		return;
	pthread_mutex_lock(&turn->mutex);
	turn->work = work;
	end_turn(turn);
	if (!--turn->callers && work && turn->has_helper)
		pthread_cond_signal(&turn->all_outside);
	pthread_mutex_unlock(&turn->mutex);
}

/* ---- while somebody sleeps or polls ---------------------------------------------------- */

static void sleep_begin(void *opaque)
{
	struct muster_turn *turn = ((struct muster *)opaque)->turn;

	slept_from = turn->depth;
	pthread_mutex_lock(&turn->mutex);
	end_turn(turn);
	pthread_mutex_unlock(&turn->mutex);
}

static void sleep_end(void *opaque)
{
	struct muster_turn *turn = ((struct muster *)opaque)->turn;

	pthread_mutex_lock(&turn->mutex);
	ask_for(turn);
	pthread_mutex_unlock(&turn->mutex);
	turn->depth = slept_from;
}

void muster_turn_let_others(struct muster *job)
{
	struct muster_turn *turn = job->turn;
	bool others;

	pthread_mutex_lock(&turn->mutex);
	others = turn->asked - turn->given > 1;
	pthread_mutex_unlock(&turn->mutex);
	if (!others)
		return;
	sleep_begin(job);
	sleep_end(job);
}

void muster_turn_tell(struct muster *job)
{
	struct muster_turn *turn = job->turn;

	job = muster_job_whole(job);
	if (turn->followers) {
		pthread_mutex_lock(&turn->mutex);
		followers_wake(turn);
		pthread_mutex_unlock(&turn->mutex);
	}
	if (turn->leader && turn->leader != &mark && job->dev->ops->wake)
		job->dev->ops->wake(job->dev);
}

static struct timespec time_after(uint64_t us)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	us += (uint64_t)time.tv_nsec / 1000;
	time.tv_sec += (time_t)(us / 1000000);
	time.tv_nsec = (long)(us % 1000000 * 1000);
	return time;
}

/* Of what comes after this look nothing is missed: who tells has the turn. */
static void sleep_until_told(struct muster_turn *turn, uint64_t us)
{
	const struct timespec end = time_after(us);
	uint32_t depth = turn->depth;
	uint64_t told;

	turn->followers++;
	pthread_mutex_lock(&turn->mutex);
	told = turn->told;
	end_turn(turn);
	while (turn->told == told && !pthread_cond_timedwait(&turn->news, &turn->mutex, &end))
		;
	ask_for(turn);
	pthread_mutex_unlock(&turn->mutex);
	turn->followers--;
	turn->depth = depth;
}

bool muster_turn_follow(struct muster *job, uint64_t us)
{
	struct muster_turn *turn = job->turn;

	if (!turn)
		return false;
	if (turn->leader) {
		sleep_until_told(turn, us);
		return true;
	}
	turn->leader = &mark;
	return false;
}

void muster_turn_lead_end(struct muster *job)
{
	if (job->turn)
		job->turn->leader = NULL;
}

uint64_t muster_turn_sleep_us(const struct muster *job, uint64_t us)
{
	struct muster_turn *turn = job->turn;
	bool shared;

	if (!turn || us <= SHARED_SLEEP_US || job->dev->ops->wake)
		return us;
	pthread_mutex_lock(&turn->mutex);
	shared = turn->callers > 1;
	pthread_mutex_unlock(&turn->mutex);
	return shared ? SHARED_SLEEP_US : us;
}

/* ---- the helper ------------------------------------------------------------------------- */

/* Until it is its turn: callers are elsewhere and left something to do. false: the end. */
static bool helper_wait(struct muster_turn *turn)
{
	bool goes_on;

	pthread_mutex_lock(&turn->mutex);
	while (!turn->closing && (turn->callers || !turn->work))
		pthread_cond_wait(&turn->all_outside, &turn->mutex);
	goes_on = !turn->closing;
	if (goes_on) {
		ask_for(turn);
		turn->depth = 1;
	}
	pthread_mutex_unlock(&turn->mutex);
	return goes_on;
}

static void helper_leave(struct muster *job)
{
	struct muster_turn *turn = job->turn;

	pthread_mutex_lock(&turn->mutex);
	turn->work = has_work(job);
	end_turn(turn);
	pthread_mutex_unlock(&turn->mutex);
}

/* It sleeps rather than spins: the processor is the caller's, who computes. */
static void *helper_run(void *opaque)
{
	struct muster *job = opaque;

	while (helper_wait(job->turn)) {
		muster_look_carried(job, muster_now_us(job));
		if (!muster_progress(job) && has_work(job)) {
			job->dev->hurried = true;
			muster_sleep(job, SHARED_SLEEP_US);
			job->dev->hurried = false;
		}
		helper_leave(job);
	}
	return NULL;
}

/* Signals are for the caller's threads. */
static int helper_begin(struct muster *job)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&job->turn->helper, NULL, helper_run, job);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	job->turn->has_helper = !err;
	return -err;
}

/* ---- opening and closing ------------------------------------------------------------------ */

int muster_turn_open(struct muster *job, bool helper)
{
	struct muster_turn *turn = calloc(1, sizeof(*turn));
	pthread_condattr_t monotonic;
	int err = 0;

	if (!turn)
		return muster_fail(job, -ENOMEM, "no memory for turns of several threads");
	pthread_mutex_init(&turn->mutex, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&turn->news, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_cond_init(&turn->next_turn, NULL);
	pthread_cond_init(&turn->all_outside, NULL);
	job->dev->sleep_begin = sleep_begin;
	job->dev->sleep_end = sleep_end;
	job->dev->sleeper = job;
	for (struct muster *rail = job; rail; rail = rail->next_rail)
		rail->turn = turn;
	if (helper)
		err = helper_begin(job);
	if (!err)
		return 0;
	muster_turn_close(job);
	return muster_fail(job, err, "MUSTER_PROGRESS=thread: no thread can be made: %s", strerror(-err));
}

void muster_turn_close(struct muster *job)
{
	struct muster_turn *turn = job->turn;

	if (!turn)
		return;
	pthread_mutex_lock(&turn->mutex);
	turn->closing = true;
	pthread_cond_signal(&turn->all_outside);
	pthread_mutex_unlock(&turn->mutex);
	if (turn->has_helper)
		pthread_join(turn->helper, NULL);
	for (struct muster *rail = job; rail; rail = rail->next_rail)
		rail->turn = NULL;
	job->dev->sleep_begin = job->dev->sleep_end = NULL;
	pthread_cond_destroy(&turn->news);
	pthread_cond_destroy(&turn->all_outside);
	pthread_cond_destroy(&turn->next_turn);
	pthread_mutex_destroy(&turn->mutex);
	free(turn);
}
