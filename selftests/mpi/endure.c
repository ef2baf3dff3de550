// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An MPI program: communicators without number, many operations under way, two threads. All of it
 * is right, and nothing grows.
 *
 * usage: endure communicators|requests|threads COUNT LOOKED
 * COUNT: communicators in all, operations at once, milliseconds. Rank 0 says after each tenth what
 * the rank has that has most, and goes on when somebody has looked, which a line in LOOKED tells
 * (a FIFO); at the end it says "right". Else a rank says what was wrong, exit 1.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "must.h"

enum { PARTS = 10 };

#ifdef MPICH_VERSION
/*
 * Debian's MPICH waits by this for other ranks, and never gives way to them. Where they outnumber the
 * processors, each of its own meetings, of which a dup has some, would take all the time that the kernel leaves
 * a rank there: 50 ms for a communicator, with Muster and without. Open MPI has an option.
 */
static unsigned int (*worker_progress)(void *worker);

__attribute__((constructor)) static void find(void)
{
	*(void **)&worker_progress = dlsym(RTLD_NEXT, "ucp_worker_progress");
}

unsigned int ucp_worker_progress(void *worker)
{
	unsigned int events = worker_progress(worker);

	if (!events)
		sched_yield();
	return events;
}
#endif

static int sum_to(int n)
{
	return n * (n - 1) / 2;
}

/* ---- communicators --------------------------------------------------------------------------------- */

/* Freed while something of them is under way. */
static void communicators(int count)
{
	for (int made = 0; made < count / PARTS; made += 2) {
		int one = 1, sum = 0, late = 0;
		MPI_Request request;
		MPI_Comm dup, split;

		MPI_Comm_dup(MPI_COMM_WORLD, &dup);
		MPI_Comm_split(dup, rank % 2, rank, &split);
		MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, split);
		MUST(sum == (size + !(rank % 2)) / 2);
		MPI_Barrier(dup);
		MPI_Iallreduce(&one, &late, 1, MPI_INT, MPI_SUM, dup, &request);
		MPI_Comm_free(&split);
		MPI_Comm_free(&dup);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		MUST(late == size);
	}
}

/* ---- requests ---------------------------------------------------------------------------------------- */

static unsigned int seed;

static int below(int n)
{
	seed = seed * 1103515245 + 12345;
	return (int)((seed >> 8) % (unsigned int)n);
}

static void shuffle(int *order, int nr)
{
	for (int i = 0; i < nr; i++)
		order[i] = i;
	for (int i = nr - 1; i > 0; i--) {
		int other = below(i + 1), swap = order[i];

		order[i] = order[other];
		order[other] = swap;
	}
}

static void add(void *in, void *inout, int *nr, MPI_Datatype *type)
{
	(void)type;
	for (int i = 0; i < *nr; i++)
		((int *)inout)[i] += ((int *)in)[i];
}

/* Half of them with an operation of the user's, that is freed before any is waited for. */
static void start_all(int nr, const int *in, int *out, MPI_Request *requests)
{
	MPI_Op op;

	MPI_Op_create(add, 1, &op);
	for (int i = 0; i < nr; i++)
		if (i % 2)
			MPI_Iscan(&in[i], &out[i], 1, MPI_INT, op, MPI_COMM_WORLD, &requests[i]);
		else
			MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
	MPI_Op_free(&op);
}

/* Waited for in another order on each rank. */
static void requests(int nr)
{
	int *in = malloc((size_t)nr * sizeof(int)), *out = malloc((size_t)nr * sizeof(int));
	MPI_Request *started = malloc((size_t)nr * sizeof(*started));
	int *order = malloc((size_t)nr * sizeof(int));

	MUST(in && out && started && order);
	for (int i = 0; i < nr; i++)
		in[i] = i + rank;
	start_all(nr, in, out, started);
	seed += (unsigned int)rank;
	shuffle(order, nr);
	for (int i = 0; i < nr; i++)
		MPI_Wait(&started[order[i]], MPI_STATUS_IGNORE);
	for (int i = 0; i < nr; i++)
		MUST(out[i] == (i % 2 ? sum_to(rank + 1) + (rank + 1) * i : sum_to(size) + size * i));
	free(in);
	free(out);
	free(started);
	free(order);
}

/* ---- threads ------------------------------------------------------------------------------------------ */

static double end;	/* rank 0's word */

static void *thread_run(void *arg)
{
	MPI_Comm own = *(MPI_Comm *)arg, made;
	int one = 1, sum, goes_on = 1;

	while (goes_on) {
		MPI_Request request;

		MPI_Comm_dup(own, &made);
		MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, made);
		MUST(sum == size);
		goes_on = MPI_Wtime() < end;
		MPI_Ibcast(&goes_on, 1, MPI_INT, 0, made, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		MPI_Comm_free(&made);
	}
	return NULL;
}

/* Each has its communicators, and makes some at the same time. */
static void threads(int milliseconds)
{
	MPI_Comm comms[2];
	pthread_t thread;

	end = MPI_Wtime() + milliseconds / 1e3 / PARTS;
	for (int i = 0; i < 2; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
	MUST(!pthread_create(&thread, NULL, thread_run, &comms[0]));
	thread_run(&comms[1]);
	pthread_join(thread, NULL);
	for (int i = 0; i < 2; i++)
		MPI_Comm_free(&comms[i]);
}

/* ---- what must not grow --------------------------------------------------------------------------------- */

/* What may come later than in the first half: an arena, a peer that is met for the first time. */
enum { MORE_KIB = 4096, MORE_DESCRIPTORS = 4, MORE_MAPPINGS = 16 };

enum { KIB, DESCRIPTORS, MAPPINGS, FIGURES };

static int resident_kib(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	int pages = 0;

	MUST(file && fscanf(file, "%*d %d", &pages) == 1);
	fclose(file);
	return pages * (int)(sysconf(_SC_PAGESIZE) / 1024);
}

static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int nr = 0;

	MUST(dir);
	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

static int mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "r");
	int nr = 0, c;

	MUST(file);
	while ((c = getc(file)) != EOF)
		nr += c == '\n';
	fclose(file);
	return nr;
}

/* Of the rank that has most. */
static void look(int *figures)
{
	const int own[FIGURES] = { resident_kib(), descriptors(), mappings() };

	MPI_Allreduce(own, figures, FIGURES, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
}

static void say(FILE *looked, const char *name, int part, double seconds, const int *figures)
{
	char line[8];

	printf("%s, part %d of %d in %.1f s: %d KiB, %d descriptors, %d mappings\n", name, part, PARTS, seconds,
	       figures[KIB], figures[DESCRIPTORS], figures[MAPPINGS]);
	fflush(stdout);
	MUST(fgets(line, sizeof(line), looked));
}

static void endure(const char *name, void (*run)(int), int count, const char *looked_path)
{
	/* To be written, too: then nobody waits for the other to open it. */
	FILE *looked = rank ? NULL : fopen(looked_path, "r+");
	int half[FIGURES] = { 0 }, now[FIGURES];

	MUST(rank || looked);
	for (int part = 1; part <= PARTS; part++) {
		double began = MPI_Wtime();

		run(count);
		look(now);
		if (!rank)
			say(looked, name, part, MPI_Wtime() - began, now);
		if (part == PARTS / 2)
			memcpy(half, now, sizeof(half));
	}
	MUST(now[KIB] - half[KIB] <= MORE_KIB);
	MUST(now[DESCRIPTORS] - half[DESCRIPTORS] <= MORE_DESCRIPTORS);
	MUST(now[MAPPINGS] - half[MAPPINGS] <= MORE_MAPPINGS);
	if (looked)
		fclose(looked);
}

static const struct {
	const char *name;
	void (*run)(int count);
	int level;
} cases[] = {
	{ "communicators", communicators, MPI_THREAD_SINGLE },
	{ "requests", requests, MPI_THREAD_SINGLE },
	{ "threads", threads, MPI_THREAD_MULTIPLE },
};

int main(int argc, char **argv)
{
	size_t i = 0, nr = sizeof(cases) / sizeof(*cases);
	int level;

	while (i < nr && (argc != 4 || strcmp(cases[i].name, argv[1])))
		i++;
	if (i == nr)
		return 2;
	MPI_Init_thread(&argc, &argv, cases[i].level, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MUST(level >= cases[i].level);
	endure(cases[i].name, cases[i].run, atoi(argv[2]), argv[3]);
	if (!rank)
		puts("right");
	MPI_Finalize();
	return 0;
}
