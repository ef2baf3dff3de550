// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One rank of a job in which ranks share processors (crowd_test.sh).
 *
 * usage: crowd sleeps: prints how often it slept in 100 barriers, and its share of a processor, in %
 *        crowd way: rank 0 prints how often it waited for rank 1, which is late, and was in its way
 */
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <muster.h>

#include "expect.h"

static struct muster *job;
static struct muster_comm *world;
static uint32_t rank;

static double processor_s(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void sleeps(void)
{
	enum { BARRIERS = 2000 };
	struct rusage before, after;
	double had, began;

	EXPECT_OK(muster_barrier(world));
	getrusage(RUSAGE_SELF, &before);
	had = processor_s();
	began = now_s();
	for (int i = 0; i < BARRIERS; i++)
		EXPECT_OK(muster_barrier(world));
	getrusage(RUSAGE_SELF, &after);
	printf("%ld %.1f\n", (after.ru_nvcsw - before.ru_nvcsw) * 100 / BARRIERS,
	       100 * (processor_s() - had) / (now_s() - began));
}

/* Rank 1 is late, and all that was usual before: who waits says where it runs, and what comes is known. */
static void late(uint32_t *waits, uint32_t *way)
{
	enum { USUAL = 100, LATE_US = 20000 };
	struct muster_request *request;
	bool done, in_the_way;

	for (int i = 0; i < USUAL; i++)
		EXPECT_OK(muster_barrier(world));
	if (rank == 1)
		usleep(LATE_US);
	EXPECT_OK(muster_barrier_start(world, &request));
	in_the_way = muster_in_the_way(job);
	EXPECT_OK(muster_test(request, &done));
	if (done)
		return;		/* it was not late */
	*waits += 1;
	*way += in_the_way;
	EXPECT_OK(muster_wait(request));
}

static void way(void)
{
	enum { TIMES = 10 };
	uint32_t waits = 0, way = 0;

	for (int i = 0; i < TIMES; i++)
		late(&waits, &way);
	if (!rank)
		printf("%u %u\n", waits, way);
}

int main(int argc, char **argv)
{
	if (argc != 2 || (strcmp(argv[1], "sleeps") && strcmp(argv[1], "way"))) {
		fprintf(stderr, "usage: crowd sleeps|way\n");
		return 2;
	}
	if (muster_init(&job)) {
		fprintf(stderr, "%s\n", muster_error(NULL));
		return 3;
	}
	world = muster_world(job);
	rank = muster_comm_rank(world);
	if (!strcmp(argv[1], "way"))
		way();
	else
		sleeps();
	muster_finalize(job);
	return 0;
}
