// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One rank of which several threads use the library at once (MUSTER_INIT_THREADS), each on a
 * communicator of its own and on others that it makes of that one.
 *
 * usage: threads THREADS ROUNDS
 */
#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <muster.h>

#include "expect.h"

enum { THREADS_MAX = 16, LONG = 20000 };

static struct muster *job;
static uint32_t rank, size, rounds;

struct thread {
	pthread_t thread;
	uint32_t index;
	struct muster_comm *comm;
};

static void reduce(struct muster_comm *comm, uint32_t seed, uint64_t count, int64_t *in, int64_t *out)
{
	for (uint64_t i = 0; i < count; i++)
		in[i] = (int64_t)(seed * (rank + 1) + i);
	EXPECT_OK(muster_allreduce(comm, in, out, count, MUSTER_I64, MUSTER_SUM));
	for (uint64_t i = 0; i < count; i++) {
		int64_t sum = (int64_t)(seed * size * (size + 1) / 2 + i * size);

		EXPECT(out[i] == sum, "element %" PRIu64 " is %" PRId64 ", not %" PRId64, i, out[i], sum);
	}
}

static void start_and_test(struct muster_comm *comm, int64_t *in, int64_t *out)
{
	struct muster_request *request[2];
	bool done = false;

	EXPECT_OK(muster_allgather_start(comm, in, out, 1, MUSTER_I64, &request[0]));
	EXPECT_OK(muster_barrier_start(comm, &request[1]));
	while (!done)
		EXPECT_OK(muster_test(request[0], &done));
	EXPECT_OK(muster_wait(request[1]));
}

/* What a thread does wrong is said to that thread, whatever others do meanwhile. */
static void err_alone(const struct thread *thread)
{
	char words[32];
	int64_t out;

	snprintf(words, sizeof(words), "root %u,", 1000 + thread->index);
	EXPECT(muster_broadcast(thread->comm, &out, 1, MUSTER_I64, 1000 + thread->index) == -EINVAL,
	       "there is such a root");
	EXPECT(strstr(muster_error(job), words), "'%s' lacks '%s'", muster_error(job), words);
}

/* The caller's own operation runs in its calls, and not meanwhile on a thread of the library's. */
static _Thread_local bool calls;

static void add(const void *in, void *inout, uint64_t count, void *opaque)
{
	const int64_t *from = in;
	int64_t *to = inout;

	(void)opaque;
	EXPECT(calls, "an operation of the caller's runs outside of its calls");
	for (uint64_t i = 0; i < count; i++)
		to[i] += from[i];
}

static void reduce_own(struct muster_comm *comm, enum muster_op own)
{
	struct muster_request *request;
	int64_t one = 1, sum = 0;

	calls = true;
	EXPECT_OK(muster_allreduce_start(comm, &one, &sum, 1, MUSTER_I64, own, &request));
	calls = false;
	usleep(2000);		/* computes */
	calls = true;
	EXPECT_OK(muster_wait(request));
	calls = false;
	EXPECT(sum == size, "the sum of ones is %" PRId64, sum);
}

static void *run(void *argument)
{
	const struct thread *thread = argument;
	int64_t *in = calloc(LONG, sizeof(*in)), *out = calloc(LONG, sizeof(*out));
	struct muster_comm *comm;
	enum muster_op own;
	void *memory;

	EXPECT(in && out, "no memory");
	EXPECT_OK(muster_op_create(job, add, NULL, &own));
	for (uint32_t i = 0; i < rounds; i++) {
		reduce(thread->comm, thread->index + i, 1, in, out);
		reduce(thread->comm, thread->index + i, LONG, in, out);
		start_and_test(thread->comm, in, out);
		reduce_own(thread->comm, own);
		err_alone(thread);
		EXPECT_OK(muster_comm_dup(thread->comm, &comm));
		EXPECT_OK(muster_comm_offload(comm, i % 2 ? MUSTER_OFFLOAD_OFF : MUSTER_OFFLOAD_TRY));
		EXPECT_OK(muster_alloc(job, 4096, &memory));
		reduce(comm, i, 512, memory, out);
		muster_comm_free(comm);
		muster_free(job, memory);
	}
	free(in);
	free(out);
	return NULL;
}

int main(int argc, char **argv)
{
	struct thread threads[THREADS_MAX];
	uint32_t nr = argc == 3 ? (uint32_t)atoi(argv[1]) : 0;

	if (!nr || nr > THREADS_MAX)
		errx(2, "usage: threads THREADS ROUNDS");
	rounds = (uint32_t)atoi(argv[2]);
	if (muster_init_with(NULL, MUSTER_INIT_THREADS, &job))
		errx(1, "%s", muster_error(NULL));
	rank = muster_comm_rank(muster_world(job));
	size = muster_comm_size(muster_world(job));
	for (uint32_t i = 0; i < nr; i++) {
		threads[i].index = i;
		EXPECT_OK(muster_comm_dup(muster_world(job), &threads[i].comm));
	}
	for (uint32_t i = 0; i < nr; i++)
		EXPECT(!pthread_create(&threads[i].thread, NULL, run, &threads[i]), "no thread");
	for (uint32_t i = 0; i < nr; i++)
		pthread_join(threads[i].thread, NULL);
	EXPECT_OK(muster_barrier(muster_world(job)));
	muster_finalize(job);
	return 0;
}
