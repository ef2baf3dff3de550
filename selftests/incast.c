// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One rank of the test of many to one: all others send to rank 0 on so many communicators at
 * once, unasked, while it is outside of the library, and work among themselves meanwhile. Nothing
 * is lost, and nobody is stopped. It exits 0 when that was seen, and says on stderr what was not.
 *
 * usage: incast COMMUNICATORS, in a folder where it may write
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <muster.h>

#include "expect.h"

static struct muster *job;
static struct muster_comm *world;
static uint32_t rank, size;

enum { COUNT = 256, EACH = 4 };	/* elements of a message; messages on a communicator */

/* It is outside of the library until the others have worked among themselves. */
static void elsewhere(struct muster_comm *others)
{
	static const char through[] = "through";
	double one = 1, sum;
	FILE *out;

	while (!rank && access(through, F_OK))
		usleep(1000);
	for (int i = 0; rank && i < 50; i++) {
		EXPECT_OK(muster_allreduce(others, &one, &sum, 1, MUSTER_F64, MUSTER_SUM));
		EXPECT(sum == size - 1, "the others' sum is %g", sum);
	}
	if (rank != 1)
		return;
	out = fopen(through, "w");
	EXPECT(out && !fclose(out), "%s: %m", through);
}

static void incast(uint32_t nr)
{
	const uint32_t messages = nr * EACH;
	struct muster_comm **comms = calloc(nr, sizeof(*comms)), *others;
	struct muster_request **requests = calloc(messages, sizeof(*requests));
	int64_t *in = calloc(messages, COUNT * sizeof(*in));
	int64_t *out = calloc(messages, (size_t)size * COUNT * sizeof(*out));

	EXPECT(comms && requests && in && out, "no memory");
	for (uint32_t i = 0; i < nr; i++)
		EXPECT_OK(muster_comm_dup(world, &comms[i]));
	EXPECT_OK(muster_comm_split(world, rank != 0, 0, &others));
	for (uint32_t i = 0; i < messages * COUNT; i++)
		in[i] = (int64_t)i * size + rank;
	if (!rank)
		elsewhere(others);
	for (uint32_t i = 0; i < messages; i++) {
		const uint32_t at = i / nr * nr + (i + rank * 7) % nr;

		EXPECT_OK(muster_gather_start(comms[at % nr], in + at * COUNT,
					      out + (size_t)at * size * COUNT, COUNT,
					      MUSTER_I64, 0, &requests[at]));
	}
	if (rank)
		elsewhere(others);
	for (uint32_t i = 0; i < messages; i++)
		EXPECT_OK(muster_wait(requests[i]));
	for (uint32_t i = 0; !rank && i < messages * COUNT * size; i++) {
		const uint32_t message = i / (COUNT * size), from = i / COUNT % size;
		const int64_t is = ((int64_t)message * COUNT + i % COUNT) * size + from;

		EXPECT(out[i] == is, "element %" PRIu32 " is %" PRId64 ", not %" PRId64, i, out[i], is);
	}
	for (uint32_t i = 0; i < nr; i++)
		muster_comm_free(comms[i]);
	muster_comm_free(others);
	free(comms);
	free(requests);
	free(in);
	free(out);
}

int main(int argc, char **argv)
{
	if (argc != 2 || muster_init(&job)) {
		fprintf(stderr, "%s\n", argc == 2 ? muster_error(NULL) : "usage: incast COMMUNICATORS");
		return 3;
	}
	world = muster_world(job);
	rank = muster_comm_rank(world);
	size = muster_comm_size(world);
	incast((uint32_t)atoi(argv[1]));
	muster_finalize(job);
	return 0;
}
