// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The same loops over Muster and, built with -DBENCH_MPI, over an MPI: barriers and collectives, from
 * the library's own memory and, those with -malloc, from the program's. With -DBENCH_BARE, of two processes
 * with nothing between them (bench_bare.h). The bytes are those that a rank
 * gives, to each of the others for alltoall. One line each: name, then microseconds an operation, of
 * the slowest rank: the best tenth, median and mean of many batches. tools/bench_mpi.sh runs them in
 * turn. usage: bench_mpi SECONDS NAME...
 */
#include <err.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	BATCHES_MAX = 20000,
	MANY = 50,		/* from one look at the time to the next, */
	WARMUP = 10,		/* and before the first; where one takes long, 1 and none */
	BYTES_MAX = 8 << 20,	/* of a rank's buffers, what it gives and what it gets */
};

/* ---- what differs ------------------------------------------------------------ */

#ifdef BENCH_MPI
#include <mpi.h>

static int rank;

static void begin(double **in, double **out)
{
	MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (MPI_Alloc_mem(BYTES_MAX, MPI_INFO_NULL, in) || MPI_Alloc_mem(BYTES_MAX, MPI_INFO_NULL, out))
		errx(1, "no memory");
}

static void end(void)
{
	MPI_Finalize();
}

static void barrier(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
}

static void sum(const double *in, double *out, size_t count)
{
	MPI_Allreduce(in, out, (int)count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void broadcast(const double *in, double *out, size_t count)
{
	(void)in;
	MPI_Bcast(out, (int)count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

static void gather(const double *in, double *out, size_t count)
{
	MPI_Allgather(in, (int)count, MPI_DOUBLE, out, (int)count, MPI_DOUBLE, MPI_COMM_WORLD);
}

static void exchange(const double *in, double *out, size_t count)
{
	MPI_Alltoall(in, (int)count, MPI_DOUBLE, out, (int)count, MPI_DOUBLE, MPI_COMM_WORLD);
}

static void most(double *values, size_t count)
{
	MPI_Allreduce(MPI_IN_PLACE, values, (int)count, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}
#elif defined(BENCH_BARE)
#include "bench_bare.h"
#else
#include <muster.h>

static int rank;
static struct muster *job;

static void check(int ret)
{
	if (ret)
		errx(1, "%s", muster_error(job));
}

static void begin(double **in, double **out)
{
	check(muster_init(&job));
	rank = (int)muster_comm_rank(muster_world(job));
	check(muster_alloc(job, BYTES_MAX, (void **)in));
	check(muster_alloc(job, BYTES_MAX, (void **)out));
}

static void end(void)
{
	muster_finalize(job);
}

static void barrier(void)
{
	check(muster_barrier(muster_world(job)));
}

static void sum(const double *in, double *out, size_t count)
{
	check(muster_allreduce(muster_world(job), in, out, count, MUSTER_F64, MUSTER_SUM));
}

static void broadcast(const double *in, double *out, size_t count)
{
	(void)in;
	check(muster_broadcast(muster_world(job), out, count, MUSTER_F64, 0));
}

static void gather(const double *in, double *out, size_t count)
{
	check(muster_allgather(muster_world(job), in, out, count, MUSTER_F64));
}

static void exchange(const double *in, double *out, size_t count)
{
	check(muster_alltoall(muster_world(job), in, out, count, MUSTER_F64));
}

static void most(double *values, size_t count)
{
	check(muster_allreduce(muster_world(job), values, values, count, MUSTER_F64, MUSTER_MAX));
}
#endif

/* ---- what is the same ----------------------------------------------------------- */

struct measure {
	const char *name;
	void (*collective)(const double *in, double *out, size_t count);	/* NULL: a barrier */
	size_t bytes;
	int batch;		/* operations timed together */
	bool plain;		/* memory by malloc() */
};

static const struct measure measures[] = {
	{ "barrier", NULL, 0, 20, false },
	{ "allreduce-8", sum, 8, 20, false },
	{ "allreduce-1M", sum, 1 << 20, 1, false },
	{ "allreduce-8M", sum, 8 << 20, 1, false },
	{ "allreduce-128-malloc", sum, 128, 20, true },
	{ "allreduce-1K-malloc", sum, 1 << 10, 20, true },
	{ "allreduce-4K-malloc", sum, 4 << 10, 10, true },
	{ "allreduce-64K-malloc", sum, 64 << 10, 2, true },
	{ "allreduce-1M-malloc", sum, 1 << 20, 1, true },
	{ "allreduce-8M-malloc", sum, 8 << 20, 1, true },
	{ "broadcast-1M-malloc", broadcast, 1 << 20, 1, true },
	{ "allgather-1M-malloc", gather, 1 << 20, 1, true },
	{ "alltoall-1M-malloc", exchange, 1 << 20, 1, true },
};

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static double batch(const struct measure *measure, const double *in, double *out)
{
	double began;

	barrier();
	began = now_us();
	for (int i = 0; i < measure->batch; i++) {
		if (measure->collective)
			measure->collective(in, out, measure->bytes / sizeof(*in));
		else
			barrier();
	}
	return (now_us() - began) / measure->batch;
}

static int by_value(const void *a_in, const void *b_in)
{
	const double *a = a_in, *b = b_in;

	return (*a > *b) - (*a < *b);
}

/* So many batches from one look at the time to the next: where ranks spin that have no processor, they take too long. */
static int batches_of(const struct measure *measure, double seconds, const double *in, double *out)
{
	double took = batch(measure, in, out) * measure->batch;

	most(&took, 1);
	return took * MANY > seconds * 1e6 ? 1 : MANY;
}

/* Every rank goes on as long as any one has time left, asked once every few batches. */
static void run(const struct measure *measure, double seconds, const double *in, double *out)
{
	static double times[BATCHES_MAX];
	int many = batches_of(measure, seconds, in, out), nr = 0;
	double began = now_us(), left, mean = 0;

	for (int i = 0; i < many * WARMUP / MANY; i++)
		batch(measure, in, out);
	do {
		for (int i = 0; i < many; i++)
			times[nr++] = batch(measure, in, out);
		left = began + seconds * 1e6 - now_us();
		most(&left, 1);
	} while (left > 0 && nr + many <= BATCHES_MAX);
	most(times, (size_t)nr);
	qsort(times, (size_t)nr, sizeof(*times), by_value);
	for (int i = 0; i < nr; i++)
		mean += times[i] / nr;
	if (!rank)
		printf("%s %.2f %.2f %.2f\n", measure->name, times[nr / 10], times[nr / 2], mean);
}

static void fill(double *in, double *out)
{
	for (size_t i = 0; i < BYTES_MAX / sizeof(*in); i++)
		in[i] = rank + 1;
	memset(out, 0, BYTES_MAX);
}

int main(int argc, char **argv)
{
	double *in, *out, *plain_in = malloc(BYTES_MAX), *plain_out = malloc(BYTES_MAX);

	if (argc < 3)
		errx(2, "usage: bench_mpi SECONDS NAME...");
	if (!plain_in || !plain_out)
		err(1, "memory");
	begin(&in, &out);
	fill(in, out);
	fill(plain_in, plain_out);
	for (int arg = 2; arg < argc; arg++)
		for (size_t i = 0; i < sizeof(measures) / sizeof(*measures); i++)
			if (!strcmp(argv[arg], measures[i].name))
				run(&measures[i], atof(argv[1]), measures[i].plain ? plain_in : in,
				    measures[i].plain ? plain_out : out);
	end();
	free(plain_in);
	free(plain_out);
	return 0;
}
