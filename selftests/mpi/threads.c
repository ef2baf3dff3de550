// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An MPI program whose threads make communicators at the same time, each with its own: in orders that
 * differ between ranks, and many of them.
 *
 * usage: threads order | many THREADS COUNT    Rank 0 prints "right"; of many, before that, how long all took.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "must.h"

enum { THREADS_MAX = 16, ROUNDS = 5 };

static int nr_threads, count;

static void use(MPI_Comm comm)
{
	int one = 1, sum;

	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
	MUST(sum == size);
}

static void *use_in_thread(void *comm)
{
	use(*(MPI_Comm *)comm);
	return NULL;
}

/*
 * Rank 0 is at both, by two threads, and the others come to the second one first. What it waits is to
 * have it at the first one before; however long that takes, all come to an end.
 */
static void round_of_two(void)
{
	const struct timespec while_waiting = { .tv_nsec = 20000000 };
	MPI_Comm comms[2];
	pthread_t thread;

	for (int i = 0; i < 2; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
	if (rank == 0) {
		MUST(!pthread_create(&thread, NULL, use_in_thread, &comms[0]));
		nanosleep(&while_waiting, NULL);
	}
	use(comms[1]);
	if (rank == 0)
		pthread_join(thread, NULL);
	else
		use(comms[0]);
	for (int i = 0; i < 2; i++)
		MPI_Comm_free(&comms[i]);
}

static void order(void)
{
	for (int i = 0; i < ROUNDS; i++)
		round_of_two();
}

static void *make_many(void *own)
{
	MPI_Comm made;

	for (int i = 0; i < count; i++) {
		MPI_Comm_dup(*(MPI_Comm *)own, &made);
		use(made);
		MPI_Comm_free(&made);
	}
	return NULL;
}

static void many(void)
{
	MPI_Comm comms[THREADS_MAX];
	pthread_t threads[THREADS_MAX];
	double began;

	MUST(nr_threads > 0 && nr_threads <= THREADS_MAX && count > 0);
	for (int i = 0; i < nr_threads; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
	MPI_Barrier(MPI_COMM_WORLD);
	began = MPI_Wtime();
	for (int i = 0; i < nr_threads; i++)
		MUST(!pthread_create(&threads[i], NULL, make_many, &comms[i]));
	for (int i = 0; i < nr_threads; i++)
		pthread_join(threads[i], NULL);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank)
		printf("%d threads, %d communicators each: %.3f s\n", nr_threads, count, MPI_Wtime() - began);
	for (int i = 0; i < nr_threads; i++)
		MPI_Comm_free(&comms[i]);
}

int main(int argc, char **argv)
{
	int level;

	if ((argc != 2 || strcmp(argv[1], "order")) && (argc != 4 || strcmp(argv[1], "many")))
		return 2;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MUST(level >= MPI_THREAD_MULTIPLE);
	if (argc == 2) {
		order();
	} else {
		nr_threads = atoi(argv[2]);
		count = atoi(argv[3]);
		many();
	}
	if (!rank)
		puts("right");
	MPI_Finalize();
	return 0;
}
