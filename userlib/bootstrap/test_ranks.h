/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Ranks for tests: real processes that meet over the bootstrap. A rank reports by
 * its exit status; expectations that fail in it say where. Ranks that a test
 * kills count as well ended. A machine may be slow: what tells a hang is that no
 * rank of the job meets an expectation or a barrier for long. So no expectation
 * stands in a loop that waits, and waits have no end of their own (TEST_EVER_US).
 */
#ifndef MUSTER_TEST_RANKS_H
#define MUSTER_TEST_RANKS_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bootstrap.h"

enum {
	TEST_RANKS_MAX = 16,
	TEST_SILENCE_S = 60,		/* without progress: a hang */
	TEST_EVER_US = 2000000000,
};

/* Counts the progress of all ranks of a job, in memory that they share. */
static uint32_t *test_moves;

static inline void test_moved(void)
{
	if (test_moves)
		__atomic_add_fetch(test_moves, 1, __ATOMIC_RELAXED);
}

#define EXPECT(condition)							\
	do {									\
		if (!(condition)) {						\
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			exit(1);						\
		}								\
		test_moved();							\
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

/* A hang is a failure: the rank dies of the signal. */
static inline void test_look(int number)
{
	static uint32_t seen;

	if (*test_moves == seen) {
		signal(number, SIG_DFL);
		raise(number);
	}
	seen = *test_moves;
	alarm(TEST_SILENCE_S);
}

static inline void test_rank_main(int rank, int size, const char *name, test_rank_fn *fn,
				  const void *argument)
{
	char text[16], why[512];
	struct muster_oob oob;

	signal(SIGALRM, test_look);
	alarm(TEST_SILENCE_S);
	setenv("MUSTER_DEADLINE", "2000", 1);
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

	test_moves = mmap(NULL, sizeof(*test_moves), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (test_moves == MAP_FAILED)
		return size;
	snprintf(name, sizeof(name), "unix:muster-test-ranks-%d-%d", getpid(), nr++);
	for (int rank = 0; rank < size; rank++)
		if (fork() == 0)
			test_rank_main(rank, size, name, fn, argument);
	for (int rank = 0; rank < size; rank++)
		failed += wait(&status) < 0 ||
			  !((WIFEXITED(status) && !WEXITSTATUS(status)) ||
			    (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
	munmap(test_moves, sizeof(*test_moves));
	test_moves = NULL;
	return failed;
}

#endif /* MUSTER_TEST_RANKS_H */
