// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One rank of a job that hangs on purpose: after some operations the rank VICTIM does what
 * is named, and the others go on. Each rank says its process id when it has come there. It
 * ends well when the victim gets SIGUSR1 (or SIGCONT, if it was stopped), or when asked to.
 * Who cannot give the one a signal gives it to all: SIGUSR1 to its process group continues it, too.
 * Of several kinds the next begins when the one before is over, with the next rank as victim.
 *
 * usage: hangs KIND[,KIND]... VICTIM [BYTES]
 */
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <muster.h>

static struct muster *job;
static struct muster_comm *world, *other;
static uint32_t rank, size, victim;
static uint64_t count = 1;
static double *in, *out;
static uint32_t step;
static bool several;			/* steps: then all get each signal */
static volatile sig_atomic_t signals;

static void wake(int number)
{
	(void)number;
	signals++;
}

static void parent_continue(int number)
{
	(void)number;
	kill(getppid(), SIGCONT);
}

/* Who is stopped cannot do it itself. */
static void waker_start(void)
{
	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGUSR1, parent_continue);
	for (;;)
		pause();
}

static void need(int error)
{
	if (error)
		errx(1, "rank %u: %s", rank, muster_error(job));
}

static void allreduce(struct muster_comm *comm)
{
	need(muster_allreduce(comm, in, out, count, MUSTER_F64, MUSTER_SUM));
}

static bool is_over(void)
{
	return (uint32_t)signals > step;
}

static void compute(void)
{
	while (!is_over())
		;
}

/* Of several steps the signal that ended the last one may come late. */
static void stop(void)
{
	do
		raise(SIGSTOP);
	while (several && !is_over());
}

static void sleep_elsewhere(void)
{
	while (!is_over())
		usleep(10000);
}

/* The victim computes; or sleeps; then calls what all others have called. */
static void computes(void)
{
	if (rank == victim)
		compute();
	allreduce(world);
}

static void sleeps(void)
{
	if (rank == victim)
		sleep_elsewhere();
	allreduce(world);
}

static void stops(void)
{
	if (rank == victim)
		stop();
	allreduce(world);
}

/* All others call it on the world; the victim on another communicator. */
static void calls_another(void)
{
	allreduce(rank == victim ? other : world);
}

/* One rank waits for the victim on a communicator of the two, the others for that rank. */
static void waits_elsewhere(void)
{
	uint32_t both[2] = { victim, (victim + 1) % size };
	struct muster_comm *pair;

	if (rank == both[0] || rank == both[1]) {
		need(muster_comm_create_group(world, 2, both, 0, &pair));
		if (rank == victim)
			stop();
		need(muster_barrier(pair));
		muster_comm_free(pair);
	}
	allreduce(world);
}

/* A root that others do not follow runs out of the window. */
static void does_not_follow(void)
{
	if (rank == victim)
		sleep_elsewhere();
	for (int i = 0; i < 100; i++)
		need(muster_broadcast(world, out, count, MUSTER_F64, (victim + 1) % size));
}

static void makes(void)
{
	struct muster_comm *comm;

	if (rank == victim)
		sleep_elsewhere();
	need(muster_comm_dup(world, &comm));
	muster_comm_free(comm);
}

static void tests(void)
{
	struct muster_request *request;
	bool done = false;

	if (rank == victim)
		sleep_elsewhere();
	need(muster_allreduce_start(world, in, out, count, MUSTER_F64, MUSTER_SUM, &request));
	while (!done) {
		usleep(5000);
		need(muster_test(request, &done));
	}
}

/*
 * 100 operations; before each the next rank in turn sleeps 20 ms: nothing hangs. At the end
 * each says when it has called them, as a busy machine makes of 20 ms what it will.
 */
static void straggles(void)
{
	struct timespec called[100];

	for (uint32_t i = 0; i < 100; i++) {
		if (i % size == rank)
			usleep(20000);
		clock_gettime(CLOCK_MONOTONIC, &called[i]);
		allreduce(world);
	}
	for (uint32_t i = 0; i < 100; i++)
		printf("call %u %u %.1f\n", i + 17, rank,
		       (double)called[i].tv_sec * 1e6 + (double)called[i].tv_nsec / 1e3);
}

static const struct {
	const char *name;
	void (*run)(void);
} kinds[] = {
	{ "computes", computes }, { "sleeps", sleeps }, { "stops", stops },
	{ "another", calls_another }, { "elsewhere", waits_elsewhere },
	{ "window", does_not_follow }, { "makes", makes }, { "tests", tests },
	{ "straggles", straggles },
};

static void run_one(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name)) {
			kinds[i].run();
			return;
		}
	errx(2, "%s: there is no such kind of hang", name);
}

/* A step begins when all are through the one before. */
static void run(char *names)
{
	char *rest, *name = strtok_r(names, ",", &rest);

	while (name) {
		run_one(name);
		name = strtok_r(NULL, ",", &rest);
		if (!several)
			continue;
		victim = (victim + 1) % size;
		step++;
		need(muster_barrier(other));
		printf("%u step %u\n", rank, step);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	if (argc < 3)
		errx(2, "usage: hangs KIND[,KIND]... VICTIM [BYTES]");
	victim = (uint32_t)strtoul(argv[2], NULL, 10);
	if (argc > 3)
		count = strtoul(argv[3], NULL, 10) / sizeof(*in);
	several = strchr(argv[1], ',');
	signal(SIGUSR1, wake);
	waker_start();
	if (muster_init(&job))
		errx(1, "%s", muster_error(NULL));
	world = muster_world(job);
	rank = muster_comm_rank(world);
	size = muster_comm_size(world);
	in = calloc(count, sizeof(*in));
	out = calloc(count, sizeof(*out));
	if (!in || !out)
		errx(1, "no memory");
	need(muster_comm_dup(world, &other));
	for (int i = 0; i < 17; i++)
		allreduce(world);
	/* Over UDP what is lost is sent again by calls alone: nobody leaves now who may owe it. */
	need(muster_barrier(other));
	printf("%u pid %d\n", rank, (int)getpid());
	fflush(stdout);
	run(argv[1]);
	free(in);
	free(out);
	muster_finalize(job);
	return 0;
}
