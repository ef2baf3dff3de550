// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What it costs to be looked at, and to have idle communicators open, for callgrind (make
 * bench-look, bench-idle): 8-byte allreduces of two local ranks. Both are in this process,
 * and one thread carries out their operations in turn, so that nobody waits and each operation
 * takes the same instructions.
 *
 * usage: look_bench OPERATIONS [IDLE COMMUNICATORS]
 */
#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <muster.h>

enum { RANKS = 2, BYTES_MAX = 4096, WARMUP = 100 };

static pthread_barrier_t all_there;
static char gathered[RANKS * BYTES_MAX];
static struct muster *jobs[RANKS];
static double in[RANKS], out[RANKS];
static long nr_idle;

static int gather(void *rank, const void *from, void *to, size_t bytes)
{
	if (bytes > BYTES_MAX)
		return -EMSGSIZE;
	memcpy(gathered + *(uint32_t *)rank * bytes, from, bytes);
	pthread_barrier_wait(&all_there);
	memcpy(to, gathered, RANKS * bytes);
	pthread_barrier_wait(&all_there);
	return 0;
}

static void *join(void *rank)
{
	const struct muster_oob oob = {
		.rank = *(uint32_t *)rank, .size = RANKS, .allgather = gather, .opaque = rank,
	};

	if (muster_init_oob(&oob, &jobs[oob.rank]))
		errx(1, "%s", muster_error(NULL));
	return NULL;
}

/* They stay as they are until all leave. */
static void *open_idle(void *rank)
{
	struct muster *job = jobs[*(uint32_t *)rank];
	struct muster_comm *comm;

	for (long i = 0; i < nr_idle; i++)
		if (muster_comm_dup(muster_world(job), &comm))
			errx(1, "%s", muster_error(job));
	return NULL;
}

static void *leave(void *rank)
{
	muster_finalize(jobs[*(uint32_t *)rank]);
	return NULL;
}

static void on_each(void *(*run)(void *rank))
{
	uint32_t ranks[RANKS];
	pthread_t threads[RANKS];

	for (uint32_t i = 0; i < RANKS; i++) {
		ranks[i] = i;
		if (pthread_create(&threads[i], NULL, run, &ranks[i]))
			errx(1, "no thread");
	}
	for (uint32_t i = 0; i < RANKS; i++)
		pthread_join(threads[i], NULL);
}

static void operations(long nr)
{
	struct muster_request *requests[RANKS];

	while (nr--) {
		for (uint32_t i = 0; i < RANKS; i++)
			if (muster_allreduce_start(muster_world(jobs[i]), &in[i], &out[i], 1,
						   MUSTER_F64, MUSTER_SUM, &requests[i]))
				errx(1, "%s", muster_error(jobs[i]));
		for (uint32_t i = 0; i < RANKS; i++)
			if (muster_wait(requests[i]))
				errx(1, "%s", muster_error(jobs[i]));
	}
}

/* callgrind counts in here, by this name. */
void look_bench_counted(long nr);
__attribute__((noinline)) void look_bench_counted(long nr)
{
	operations(nr);
}

int main(int argc, char **argv)
{
	if (argc != 2 && argc != 3)
		errx(2, "usage: look_bench OPERATIONS [IDLE COMMUNICATORS]");
	nr_idle = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
	pthread_barrier_init(&all_there, NULL, RANKS);
	on_each(join);
	on_each(open_idle);
	operations(WARMUP);
	look_bench_counted(strtol(argv[1], NULL, 10));
	on_each(leave);
	return 0;
}
