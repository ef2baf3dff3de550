// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ranks that are away: outside of the library while others need what they owe them. Who
 * has come to its end says so by a file, NAME.ended.RANK, which others can see without the library.
 *
 * usage: away BEHAVIOUR NAME
 */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <muster.h>

#include "expect.h"

static struct muster *job;
static struct muster_comm *world;
static uint32_t rank, size;
static const char *name;

static void file_of(const char *word, uint32_t who, char *path, size_t len)
{
	snprintf(path, len, "%s.%s.%" PRIu32, name, word, who);
}

static void say(const char *word)
{
	char path[256];
	FILE *file;

	file_of(word, rank, path, sizeof(path));
	file = fopen(path, "we");
	EXPECT(file, "%s cannot be written", path);
	fclose(file);
}

/* Until all have said it but this rank and `but`. */
static void hear(const char *word, uint32_t but)
{
	char path[256];

	for (uint32_t who = 0; who < size; who++) {
		file_of(word, who, path, sizeof(path));
		while (who != rank && who != but && access(path, F_OK))
			usleep(1000);
	}
}

static void say_ended(void)
{
	say("ended");
}

/* Compute, until all others have come to their end. */
static void stay_away(void)
{
	hear("ended", rank);
}

/* The wire's sockets then hold one datagram that has not been read, or two. */
static void sockets_shrink(void)
{
	for (int fd = 3; fd < 1024; fd++) {
		int type = 0, bytes = 1;
		socklen_t len = sizeof(type);

		if (!getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) && type == SOCK_DGRAM)
			setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	}
}

/* Its part is done, and the socket was full: what it sent last leaves all the same. */
static void ends(void)
{
	enum { COUNT = 1 << 17 };
	double *data = calloc(COUNT, sizeof(*data));

	EXPECT(data, "no memory");
	EXPECT_OK(muster_barrier(world));
	sockets_shrink();
	for (uint64_t i = 0; i < COUNT && !rank; i++)
		data[i] = (double)i;
	EXPECT_OK(muster_broadcast(world, data, COUNT, MUSTER_F64, 0));
	for (uint64_t i = 0; i < COUNT; i++)
		EXPECT(data[i] == (double)i, "element %" PRIu64 " is %g", i, data[i]);
	say_ended();
	if (!rank)
		stay_away();
	free(data);
}

/* The same of what it said last in the making of a communicator. */
static void makes(void)
{
	struct muster_comm *comm;

	EXPECT_OK(muster_barrier(world));
	sockets_shrink();
	for (int i = 0; i < 8; i++) {
		EXPECT_OK(muster_comm_dup(world, &comm));
		muster_comm_free(comm);
	}
	say_ended();
	if (!rank)
		stay_away();
}

/* All but rank 0 wait for what it has started; it is done when they are. */
static void overlaps(void)
{
	static const uint64_t counts[] = { 1, 1000, 1 << 17 };
	struct muster_request *request[3];
	double *data[3];
	bool done;

	for (int i = 0; i < 3; i++) {
		data[i] = calloc(counts[i], sizeof(double));
		EXPECT(data[i], "no memory");
		data[i][counts[i] - 1] = rank;
		EXPECT_OK(muster_allreduce_start(world, data[i], data[i], counts[i], MUSTER_F64,
						 MUSTER_SUM, &request[i]));
	}
	if (!rank)
		stay_away();
	for (int i = 0; i < 3; i++) {
		if (rank) {
			EXPECT_OK(muster_wait(request[i]));
		} else {
			do
				EXPECT_OK(muster_test(request[i], &done));
			while (!done);
		}
		EXPECT(data[i][counts[i] - 1] == size * (size - 1) / 2, "sum %g",
		       data[i][counts[i] - 1]);
		free(data[i]);
	}
	say_ended();
}

/* With MUSTER_LATE_TIMEOUT the others' wait ends, and names rank 1, which is late until then. */
static void toolate(void)
{
	int ret;

	if (rank == 1) {
		stay_away();
		return;
	}
	say("here");
	hear("here", 1);
	ret = muster_barrier(world);
	if (ret != -ECONNABORTED) {	/* another rank lost its patience first, and said so */
		EXPECT(ret == -ETIMEDOUT, "barrier gave %d: %s", ret, muster_error(job));
		/* On a busy machine others may be late as well: "rank 0, 1 are late". */
		EXPECT(strstr(muster_error(job), "rank 1") || strstr(muster_error(job), ", 1"),
		       "'%s' does not name rank 1", muster_error(job));
		printf("%s\n", muster_error(job));
	}
	say_ended();
}

static const struct {
	const char *name;
	void (*run)(void);
} behaviours[] = {
	{ "ends", ends }, { "makes", makes }, { "overlaps", overlaps },
	{ "toolate", toolate },
};

int main(int argc, char **argv)
{
	if (argc < 3)
		errx(2, "usage: away BEHAVIOUR NAME");
	name = argv[2];
	if (muster_init(&job))
		errx(1, "%s", muster_error(NULL));
	world = muster_world(job);
	rank = muster_comm_rank(world);
	size = muster_comm_size(world);
	for (size_t i = 0; i < sizeof(behaviours) / sizeof(behaviours[0]); i++) {
		if (strcmp(argv[1], behaviours[i].name))
			continue;
		behaviours[i].run();
		muster_finalize(job);
		return 0;
	}
	errx(2, "%s: there is no such behaviour", argv[1]);
}
