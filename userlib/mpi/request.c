// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Operations under way. Nonblocking ones are generalized requests, so MPI's own Wait and Test
 * take them beside others. Who makes progress: Open MPI calls us from its own progress; MPICH
 * polls its requests, and while there are any a thread looks for what others need of us, should
 * the program wait in MPI for something else. And a blocking operation lets MPI's own traffic
 * go on, as a peer may wait for that before it comes.
 */
#include "shim.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <time.h>

enum {
	TESTS_AT_ONCE = 16,		/* while a blocking operation waits */
	TURNS_ALONE = 4,		/* so often, before it gives way to MPI and to others; */
	TURNS_CROWDED = 1,		/* where ranks outnumber processors at once */
	TURNS_TO_MPI = 8,		/* one of so many is MPI's: Open MPI's progress yields, too */
	TURNS_AWAKE = 512,		/* then it sleeps between two */
	POLLS_ALONE = 16,		/* of MPICH's, before we let its messages and others go on */
	SLEEP_NS = 50000,
	YIELD_LATE_US = 500,		/* so late come back: somebody else is at work there */
	NAPS = 64,			/* then it sleeps so often instead */
	IDLE_CALLS = 32,		/* of our progress, for one look without operations */
	TICK_NS = 1000000,
	TICK_IDLE_NS = 100000000,	/* what was lost of a finished one is sent again (udp) */
};

#define NO_PROGRESS	"no room to be called while MPI waits; free memory or threads, or start the program without muster-mpi"

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

static void let_go(struct muster_mpi_comm *comm)
{
	pthread_mutex_lock(&muster_mpi.lock);
	muster_mpi_comm_put(comm);
	pthread_mutex_unlock(&muster_mpi.lock);
}

static void op_free(struct muster_mpi_op *op)
{
	if (op->error)
		let_go(op->comm);
	muster_mpi_op_free(op);
	free(op->sentence);
	free(op);
}

/* Where the caller wants it; its own function and its types are asked for that. */
static int take(struct muster_mpi_op *op)
{
	int err = op->fold.nr ? muster_mpi_fold(&op->fold, op->out.at) : 0;

	return !err && op->unpack ? muster_mpi_side_unpack(&op->out) : err;
}

static void tell(struct muster_mpi_op *op)
{
	MPI_Request request;

	if (!op->err) {
		op->err = take(op);
		if (op->err)
			op->sentence = strdup(muster_mpi_said);
	}
	if (op->err)
		op->error = muster_mpi_error_code(muster_mpi_coll_name(op->coll), op->err,
						  op->sentence ? op->sentence : "no memory to say more");
	muster_mpi_stats_ended(op);
	if (!op->error)	/* its handler is asked for when MPI has completed the request */
		let_go(op->comm);
	request = op->grequest;
	/* MPICH asks again until the request is complete; from then on another thread may free op. */
	if (atomic_exchange(&op->stage, STAGE_TOLD) == STAGE_FREED)
		op_free(op);
	else
		PMPI_Grequest_complete(request);
}

int muster_mpi_advance(void)
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

#ifdef MPICH_VERSION
static MPI_Request idle = MPI_REQUEST_NULL;	/* it never ends: to ask for it makes progress */
static MPI_Comm idle_comm = MPI_COMM_NULL;

static int idle_open(void)
{
	if (PMPI_Comm_dup(MPI_COMM_SELF, &idle_comm))
		return -ENOMEM;
	return PMPI_Irecv(NULL, 0, MPI_BYTE, 0, 0, idle_comm, &idle) ? -ENOMEM : 0;
}

static void idle_close(void)
{
	if (idle != MPI_REQUEST_NULL) {
		PMPI_Cancel(&idle);
		PMPI_Wait(&idle, MPI_STATUS_IGNORE);
	}
	if (idle_comm != MPI_COMM_NULL)
		PMPI_Comm_free(&idle_comm);
}

static void mpi_progress(void)
{
	int flag;

	muster_mpi_beneath.Request_get_status(idle, &flag, MPI_STATUS_IGNORE);
}
#else
static void mpi_progress(void)
{
	muster_mpi_beneath.progress();
}
#endif

/*
 * Who yields is put behind all that compute there, who has slept before them: on a busy machine
 * that is much quicker.
 */
static void give_way(uint32_t turn)
{
	const struct timespec pause = { .tv_nsec = SLEEP_NS };
	static _Thread_local uint32_t naps;
	double before;

	if (naps || turn >= TURNS_AWAKE) {
		naps -= naps > 0;
		nanosleep(&pause, NULL);
		return;
	}
	before = PMPI_Wtime();
	sched_yield();
	if (PMPI_Wtime() - before > YIELD_LATE_US / 1e6)
		naps = NAPS;
}

/* ---- who makes progress --------------------------------------------------------------------- */

#ifdef OPEN_MPI
static bool progresses;

/* Called whenever Open MPI makes its own. */
static int on_progress(void)
{
	static unsigned int calls;

	if (!busy && !ended && ++calls % IDLE_CALLS)
		return 0;
	return muster_mpi_advance();
}
#endif

#ifdef MPICH_VERSION
/*
 * MPI_Wait asks until it has ended and does nothing else: neither its own messages go on, for which
 * a peer may wait before it comes, nor who shares the processor.
 */
static int on_poll(void *op, MPI_Status *status)
{
	static _Thread_local unsigned int polls;

	(void)op;
	(void)status;
	if (muster_mpi_advance() || ++polls % POLLS_ALONE)
		return MPI_SUCCESS;
	mpi_progress();
	give_way(0);
	return MPI_SUCCESS;
}

/* Several at once; MPICH wants one. */
static int on_wait(int nr, void **ops, double timeout, MPI_Status *status)
{
	(void)timeout;
	(void)status;
	for (int i = 0; i < nr; i++) {
		struct muster_mpi_op *op = ops[i];

		while (atomic_load(&op->stage) != STAGE_TOLD) {
			if (muster_mpi_advance())
				continue;
			mpi_progress();
			give_way(0);
		}
	}
	return MPI_SUCCESS;
}

static pthread_t ticker;
static pthread_cond_t tick_now = PTHREAD_COND_INITIALIZER;	/* there is something to do */
static bool ticks;						/* the lock's */

/* Gives up the lock meanwhile. */
static void tick_pause(void)
{
	struct timespec until;
	long pause = busy ? TICK_NS : TICK_IDLE_NS;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += pause;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&tick_now, &muster_mpi.lock, &until);
}

/* It calls nothing of MPI, whatever level of threads that has. */
static void *tick(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&muster_mpi.lock);
	while (ticks) {
		if (busy)
			test_all();
		else
			muster_progress(muster_mpi.job);
		tick_pause();
	}
	pthread_mutex_unlock(&muster_mpi.lock);
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
	return -err;
}

static void ticker_stop(void)
{
	bool runs = ticks;

	pthread_mutex_lock(&muster_mpi.lock);
	ticks = false;
	pthread_cond_signal(&tick_now);
	pthread_mutex_unlock(&muster_mpi.lock);
	if (runs)
		pthread_join(ticker, NULL);
}

int muster_mpi_requests_open(void)
{
	return idle_open() || ticker_start() ? muster_mpi_fail(-ENOMEM, NO_PROGRESS) : 0;
}

void muster_mpi_requests_close(void)
{
	ticker_stop();
	idle_close();
}
#else
int muster_mpi_requests_open(void)
{
	const struct muster_mpi_beneath *mpi = &muster_mpi_beneath;

	if (!mpi->progress || !mpi->progress_register || !mpi->progress_unregister)
		return muster_mpi_fail(-ENOSYS, "this Open MPI has no opal_progress_register(); libmuster-mpi is for Open MPI 4.1");
	progresses = !mpi->progress_register(on_progress);
	return progresses ? 0 : muster_mpi_fail(-ENOMEM, NO_PROGRESS);
}

void muster_mpi_requests_close(void)
{
	if (progresses)
		muster_mpi_beneath.progress_unregister(on_progress);
}
#endif

/* ---- waiting ---------------------------------------------------------------------------------- */

/* Ranks that outnumber the processors must not spin: each takes another's time. */
static uint32_t turns_alone(void)
{
	static uint32_t turns;
	cpu_set_t set;
	int cpus, ranks;

	if (turns)
		return turns;
	cpus = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
	if (cpus == 1)
		cpus = get_nprocs();	/* a rank bound to one says nothing of the others' */
	PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
	turns = ranks > cpus ? TURNS_CROWDED : TURNS_ALONE;
	return turns;
}

int muster_mpi_test_often(struct muster_request *request, bool *done)
{
	int err = muster_test(request, done);

	for (int i = 1; i < TESTS_AT_ONCE && !*done && !muster_in_the_way(muster_mpi.job); i++)
		err = muster_test(request, done);
	return err;
}

static int test_often(struct muster_request *request, bool *done)
{
	int err;

	pthread_mutex_lock(&muster_mpi.lock);
	err = muster_mpi_test_often(request, done);
	if (err)
		muster_mpi_note();
	pthread_mutex_unlock(&muster_mpi.lock);
	return err;
}

int muster_mpi_wait_request(struct muster_request *request)
{
	uint32_t alone = turns_alone();
	bool done = false;
	int err;

	for (uint32_t turn = 1;; turn++) {
		err = test_often(request, &done);
		if (done)
			return err;
		if (turn < alone)
			continue;
		if (turn >= TURNS_AWAKE || turn % TURNS_TO_MPI == 0)
			mpi_progress();
		if (turn % TURNS_TO_MPI)
			give_way(turn);
	}
}

int muster_mpi_wait(struct muster_mpi_op *op)
{
	int err = muster_mpi_wait_request(op->request);

	return err ? err : take(op);
}

/* Who else is in the library will see it, if one has. */
static bool has_died(const struct muster_mpi_members *members)
{
	bool has;

	if (pthread_mutex_trylock(&muster_mpi.lock))
		return false;
	has = muster_mpi.job && muster_mpi_has_died(members);
	pthread_mutex_unlock(&muster_mpi.lock);
	return has;
}

int muster_mpi_wait_beneath(MPI_Request *request, const struct muster_mpi_members *members)
{
	int done = 0, err;

	for (uint32_t turn = 1;; turn++) {
		err = muster_mpi_beneath.Test(request, &done, MPI_STATUS_IGNORE);
		if (err || done)
			return err;
		muster_mpi_advance();
		if (has_died(members))
			return -ECONNRESET;
		give_way(turn);
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
	if (op->error)
		muster_mpi_failed_note(op->comm, op->error, status);
	return MPI_SUCCESS;
}

/* MPICH calls this when the program frees the request, even before it has ended. */
static int release(void *state)
{
	struct muster_mpi_op *op = state;

	if (atomic_exchange(&op->stage, STAGE_FREED) == STAGE_TOLD)
		op_free(op);
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
		err = muster_mpi_fold_hold(&op->fold);
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
#ifdef MPICH_VERSION
	pthread_cond_signal(&tick_now);
#endif
	pthread_mutex_unlock(&muster_mpi.lock);
	return MPI_SUCCESS;
}
