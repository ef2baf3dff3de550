/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Ranks for tests: real processes that meet over the bootstrap. A rank reports by
 * its exit status; expectations that fail in it say where. Ranks that a test
 * kills count as well ended.
 */
#ifndef MUSTER_TEST_RANKS_H
#define MUSTER_TEST_RANKS_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bootstrap.h"

enum { TEST_RANKS_MAX = 16 };

#define EXPECT(condition)							\
	do {									\
		if (!(condition)) {						\
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			exit(1);						\
		}								\
	} while (0)

typedef void test_rank_fn(struct muster_oob *oob, const void *argument);

static inline double test_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static inline void test_barrier(struct muster_oob *oob)
{
	char all[TEST_RANKS_MAX];

	EXPECT(!oob->allgather(oob->opaque, "", all, 1));
}

static inline void test_rank_main(int rank, int size, const char *name, test_rank_fn *fn,
				  const void *argument)
{
	char text[16], why[512];
	struct muster_oob oob;

	alarm(20);	/* a hang is a failure */
	setenv("MUSTER_RENDEZVOUS", name, 1);
	snprintf(text, sizeof(text), "%d", size);
	setenv("MUSTER_SIZE", text, 1);
	snprintf(text, sizeof(text), "%d", rank);
	setenv("MUSTER_RANK", text, 1);
	EXPECT(!muster_bootstrap_env(&oob, why, sizeof(why)));
	fn(&oob, argument);
	muster_bootstrap_close(&oob);
	exit(0);
}

/* Run fn on that many ranks. Return: how many failed. */
static inline int test_ranks(int size, test_rank_fn *fn, const void *argument)
{
	static int nr;
	int status, failed = 0;
	char name[64];

	snprintf(name, sizeof(name), "unix:muster-test-ranks-%d-%d", getpid(), nr++);
	for (int rank = 0; rank < size; rank++)
		if (fork() == 0)
			test_rank_main(rank, size, name, fn, argument);
	for (int rank = 0; rank < size; rank++)
		failed += wait(&status) < 0 ||
			  !((WIFEXITED(status) && !WEXITSTATUS(status)) ||
			    (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
	return failed;
}

#endif /* MUSTER_TEST_RANKS_H */
