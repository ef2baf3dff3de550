// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Operations under way. Nonblocking ones are generalized requests, so MPI's own Wait and Test
 * take them beside others. Who makes progress: Open MPI calls us from its own progress; MPICH
 * polls its requests, and a thread looks now and then for what others need of us while the
 * program waits in MPI for something else. And a blocking operation lets MPI's own traffic go
 * on, as a peer may wait for that before it comes.
 */
#include "shim.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	TESTS_PER_PROGRESS = 16,	/* of MPI, while a blocking operation waits */
	TESTS_AWAKE = 4096,		/* then it sleeps between two */
	SLEEP_NS = 50000,
	IDLE_CALLS = 32,		/* of our progress, for one look without operations */
	TICK_NS = 1000000,
};

static struct muster_mpi_comm *busy;	/* communicators with nonblocking operations; the lock's */
static struct muster_mpi_op *ended, **ended_end = &ended;	/* not told to MPI; the lock's */

/* ---- the end of nonblocking operations ------------------------------------------------------ */

static void op_end(struct muster_mpi_op *op, int err)
{
	op->err = err;
	if (err)
		op->sentence = strdup(muster_error(muster_mpi.job));
	op->next = NULL;
	*ended_end = op;
	ended_end = &op->next;
}

/* Those of a communicator end in order. */
static void test_in_order(struct muster_mpi_comm *comm)
{
	bool done = true;
	int err;

	while (comm->first && done) {
		struct muster_mpi_op *op = comm->first;

		err = muster_test(op->request, &done);
		if (!done)
			break;
		comm->first = op->next;
		op_end(op, err);
	}
}

/* Under the lock. */
static void test_all(void)
{
	struct muster_mpi_comm **place = &busy;

	while (*place) {
		struct muster_mpi_comm *comm = *place;

		test_in_order(comm);
		if (comm->first) {
			place = &comm->next;
			continue;
		}
		*place = comm->next;
	}
}

static void tell(struct muster_mpi_op *op)
{
	if (op->err)
		op->error = muster_mpi_error_code(muster_mpi_coll_name(op->coll), op->err,
						  op->sentence ? op->sentence : "no memory");
	else if (op->unpack)
		muster_mpi_side_unpack(&op->out);
	muster_mpi_stats_ended(op);
	pthread_mutex_lock(&muster_mpi.lock);
	muster_mpi_comm_put(op->comm);
	pthread_mutex_unlock(&muster_mpi.lock);
	op->told = true;
	PMPI_Grequest_complete(op->grequest);
}

/* Where MPI may be called. Return: how many have ended. */
static int advance(void)
{
	struct muster_mpi_op *op, *next;
	int nr = 0;

	if (pthread_mutex_trylock(&muster_mpi.lock))
		return 0;
	if (busy)
		test_all();
	else if (muster_mpi.job)
		muster_progress(muster_mpi.job);
	op = ended;
	ended = NULL;
	ended_end = &ended;
	pthread_mutex_unlock(&muster_mpi.lock);
	for (; op; op = next, nr++) {
		next = op->next;	/* it may be freed in this call */
		tell(op);
	}
	return nr;
}

static void mpi_progress(void)
{
	int flag;

	if (muster_mpi_beneath.progress)
		muster_mpi_beneath.progress();
	else
		PMPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}

/* ---- who makes progress --------------------------------------------------------------------- */

/* Called by Open MPI whenever it makes its own. */
static int on_progress(void)
{
	static unsigned int calls;

	if (!busy && !ended && ++calls % IDLE_CALLS)
		return 0;
	return advance();
}

#ifdef MPICH_VERSION
static int on_poll(void *op, MPI_Status *status)
{
	(void)op;
	(void)status;
	advance();
	return MPI_SUCCESS;
}

/* Several at once; MPICH wants one. */
static int on_wait(int nr, void **ops, double timeout, MPI_Status *status)
{
	(void)timeout;
	(void)status;
	for (int i = 0; i < nr; i++) {
		struct muster_mpi_op *op = ops[i];

		while (!op->told) {
			if (advance())
				continue;
			mpi_progress();
			sched_yield();
		}
	}
	return MPI_SUCCESS;
}

static pthread_t ticker;
static bool ticks;

/* It calls nothing of MPI, whatever level of threads that has. */
static void *tick(void *unused)
{
	const struct timespec pause = { .tv_nsec = TICK_NS };

	(void)unused;
	while (ticks) {
		nanosleep(&pause, NULL);
		if (pthread_mutex_trylock(&muster_mpi.lock))
			continue;
		if (busy)
			test_all();
		else if (muster_mpi.job)
			muster_progress(muster_mpi.job);
		pthread_mutex_unlock(&muster_mpi.lock);
	}
	return NULL;
}

static int ticker_start(void)
{
	sigset_t all, before;
	int err;

	ticks = true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&ticker, NULL, tick, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	ticks = !err;
	return err;
}
#endif

int muster_mpi_requests_open(void)
{
	if (muster_mpi_beneath.progress_register)
		return muster_mpi_beneath.progress_register(on_progress);
#ifdef MPICH_VERSION
	return ticker_start();
#else
	return -ENOSYS;
#endif
}

void muster_mpi_requests_close(void)
{
	if (muster_mpi_beneath.progress_unregister)
		muster_mpi_beneath.progress_unregister(on_progress);
#ifdef MPICH_VERSION
	if (ticks) {
		ticks = false;
		pthread_join(ticker, NULL);
	}
#endif
}

/* ---- waiting ---------------------------------------------------------------------------------- */

int muster_mpi_wait(struct muster_mpi_op *op)
{
	const struct timespec pause = { .tv_nsec = SLEEP_NS };
	bool done = false;
	int err;

	for (uint32_t tests = 1;; tests++) {
		err = MUSTER_MPI_LOCKED(muster_test(op->request, &done));
		if (done)
			return err;
		if (tests % TESTS_PER_PROGRESS)
			continue;
		mpi_progress();
		if (tests < TESTS_AWAKE)
			sched_yield();
		else
			nanosleep(&pause, NULL);
	}
}

/* ---- generalized requests ----------------------------------------------------------------------- */

static int query(void *state, MPI_Status *status)
{
	struct muster_mpi_op *op = state;

	PMPI_Status_set_elements(status, MPI_BYTE, 0);
	PMPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = MPI_UNDEFINED;
	status->MPI_TAG = MPI_UNDEFINED;
	return op->error;
}

static int release(void *state)
{
	struct muster_mpi_op *op = state;

	muster_mpi_op_free(op);
	free(op->sentence);
	free(op);
	return MPI_SUCCESS;
}

/* MPI has no collectives that can be cancelled. */
static int cancel(void *state, int complete)
{
	(void)state;
	(void)complete;
	return MPI_SUCCESS;
}

static void enqueue(struct muster_mpi_op *op)
{
	struct muster_mpi_comm *comm = op->comm;

	comm->refs++;
	if (comm->first) {
		comm->end->next = op;
	} else {
		comm->first = op;
		comm->next = busy;
		busy = comm;
	}
	comm->end = op;
}

int muster_mpi_request(struct muster_mpi_op *op, MPI_Request *request)
{
	int err = muster_mpi_side_hold(&op->out);

	if (!err)
#ifdef MPICH_VERSION
		err = PMPIX_Grequest_start(query, release, cancel, on_poll, on_wait, op, request);
#else
		err = PMPI_Grequest_start(query, release, cancel, op, request);
#endif
	if (err)
		return err;
	op->grequest = *request;
	pthread_mutex_lock(&muster_mpi.lock);
	enqueue(op);
	pthread_mutex_unlock(&muster_mpi.lock);
	return MPI_SUCCESS;
}
