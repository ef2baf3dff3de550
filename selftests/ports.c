// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Many ports of the local device in one process, to be looked at: jobs of two ranks, of
 * which rank 0 has called an allreduce, and comes to see whether it has ended, and rank 1
 * has not called it. At SIGUSR1 it does, all end, and so does this.
 *
 * usage: ports JOBS
 */
#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <muster.h>

enum { RANKS = 2, BYTES_MAX = 4096, JOBS_MAX = 4096 };

static pthread_barrier_t both_there;
static char gathered[RANKS * BYTES_MAX];
static struct muster *jobs[JOBS_MAX][RANKS];
static struct muster_request *requests[JOBS_MAX][RANKS];
static double in[RANKS] = { 1, 2 }, out[RANKS];
static long nr;
static volatile sig_atomic_t go_on;

static void wake(int number)
{
	(void)number;
	go_on = 1;
}

static int gather(void *rank, const void *from, void *to, size_t bytes)
{
	if (bytes > BYTES_MAX)
		return -EMSGSIZE;
	memcpy(gathered + *(uint32_t *)rank * bytes, from, bytes);
	pthread_barrier_wait(&both_there);
	memcpy(to, gathered, RANKS * bytes);
	pthread_barrier_wait(&both_there);
	return 0;
}

static void *ranks_join(void *argument)
{
	uint32_t rank = *(uint32_t *)argument;
	const struct muster_oob oob = {
		.rank = rank, .size = RANKS, .allgather = gather, .opaque = &rank,
	};

	for (long i = 0; i < nr; i++)
		if (muster_init_oob(&oob, &jobs[i][rank]))
			errx(1, "job %ld: %s", i, muster_error(NULL));
	return NULL;
}

static void *ranks_leave(void *argument)
{
	for (long i = 0; i < nr; i++)
		muster_finalize(jobs[i][*(uint32_t *)argument]);
	return NULL;
}

static void on_each(void *(*run)(void *rank))
{
	uint32_t ranks[RANKS] = { 0, 1 };
	pthread_t threads[RANKS];

	for (int i = 0; i < RANKS; i++)
		if (pthread_create(&threads[i], NULL, run, &ranks[i]))
			errx(1, "no thread");
	for (int i = 0; i < RANKS; i++)
		pthread_join(threads[i], NULL);
}

static void start(uint32_t rank)
{
	for (long i = 0; i < nr; i++)
		if (muster_allreduce_start(muster_world(jobs[i][rank]), &in[rank], &out[rank], 1,
					   MUSTER_F64, MUSTER_SUM, &requests[i][rank]))
			errx(1, "job %ld: %s", i, muster_error(jobs[i][rank]));
}

/* Return: how many have not ended. */
static long test(uint32_t rank)
{
	long open = 0;
	bool done;

	for (long i = 0; i < nr; i++) {
		if (!requests[i][rank])
			continue;
		if (muster_test(requests[i][rank], &done))
			errx(1, "job %ld: %s", i, muster_error(jobs[i][rank]));
		if (done)
			requests[i][rank] = NULL;
		open += !done;
	}
	return open;
}

int main(int argc, char **argv)
{
	nr = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
	if (nr < 1 || nr > JOBS_MAX)
		errx(2, "usage: ports JOBS, at most %d", JOBS_MAX);
	signal(SIGUSR1, wake);
	pthread_barrier_init(&both_there, NULL, RANKS);
	on_each(ranks_join);
	start(0);
	printf("%d there\n", (int)getpid());
	fflush(stdout);
	while (!go_on) {
		test(0);
		usleep(20000);
	}
	start(1);
	while (test(0) + test(1))
		;
	on_each(ranks_leave);
	return 0;
}
