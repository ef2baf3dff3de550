// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One rank at a network of switches, of which the first speaks to the manager of groups by
 * itself, as nobody whom the library knows: without saying who it is, as a host that is in no
 * group, and what makes no sense. Nobody's groups suffer: then all reduce on a streaming tree,
 * whose result is sent once to each who has not left. The network has two hosts more than ranks.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <muster.h>

#include "expect.h"
#include "muster_manager.h"
#include "namespace.h"

enum {
	ENDED = -1,
	GROUPS = 16,		/* more than there are */
	OFTEN = 300,		/* more groups than a job may have */
	COUNT = 1000,		/* longer than what goes by the low-latency tree */
};

struct words {
	struct muster_manager_message head;
	struct muster_manager_member members[2];
};

static struct muster *job;
static uint32_t rank, size;
static uint32_t last_group;	/* that was made: handles are given in their order */

static int dial(void)
{
	const char *address = getenv("MUSTER_MANAGER");
	struct sockaddr_un un;
	int len = muster_namespace_address(address, strlen(address), &un);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	EXPECT(fd >= 0 && len > 0, "no socket");
	EXPECT(!connect(fd, (struct sockaddr *)&un, (socklen_t)len), "%s: %s", address, strerror(errno));
	return fd;
}

/* It may have hung up already. */
static void say(int fd, struct words *words, uint32_t nr_members)
{
	words->head.nr_members = nr_members;
	if (!words->head.version)
		words->head.version = MUSTER_MANAGER_VERSION;
	send(fd, words, sizeof(words->head) + nr_members * sizeof(words->members[0]), MSG_NOSIGNAL);
}

static int hear(int fd)
{
	struct {
		struct muster_manager_message head;
		char why[MUSTER_MANAGER_WHY_MAX];
	} answer = { .head.status = 0 };

	if (recv(fd, &answer, sizeof(answer), 0) < (ssize_t)sizeof(answer.head))
		return ENDED;
	if (answer.head.kind == MUSTER_MANAGER_CREATED && !answer.head.status)
		last_group = answer.head.group;
	return (int)answer.head.status;
}

static int ask(int fd, struct words words, uint32_t nr_members)
{
	say(fd, &words, nr_members);
	return hear(fd);
}

static int hello(int fd, uint32_t host, uint16_t version)
{
	return ask(fd, (struct words){ .head = {
		.version = version, .kind = MUSTER_MANAGER_HELLO, .host = host, .life = 1, .proof = 7,
	} }, 0);
}

static void leave_all(int fd, int expected)
{
	for (uint16_t tree = 0; tree < 2; tree++)
		for (uint32_t i = 0; i < GROUPS; i++) {
			struct words words = { .head = {
				.kind = MUSTER_MANAGER_LEAVE, .tree = tree, .group = last_group - i,
			} };

			EXPECT(ask(fd, words, 0) == expected, "a group that it is not in is left");
		}
}

/* Who has not said who it is leaves nothing: its connection ends at once. */
static void speak_as_nobody(void)
{
	const struct words create = { .head = { .kind = MUSTER_MANAGER_CREATE } };
	int fd = dial();

	leave_all(fd, ENDED);
	EXPECT(hello(fd, size, 0) == ENDED, "a stranger was heard");
	close(fd);
	fd = dial();
	EXPECT(ask(fd, create, 1) == ENDED, "a stranger may ask for groups");
	close(fd);
}

static void speak_as_another(void)
{
	struct words create = { .head.kind = MUSTER_MANAGER_CREATE, .members[0] = { .host = size } };
	int fd = dial();

	EXPECT(hello(fd, size, MUSTER_MANAGER_VERSION + 1) == EPROTO, "any version is welcome");
	EXPECT(hello(fd, size + 2, 0) == EINVAL, "the network has such a host");
	EXPECT(hello(fd, 0, 0) == EEXIST, "a host is connected twice");
	EXPECT(!hello(fd, size, 0), "the last host is not welcome");
	EXPECT(hello(fd, size, 0) == EEXIST, "a host is connected twice");
	leave_all(fd, ENOENT);
	EXPECT(ask(fd, create, 0) == EINVAL, "a group of nobody");
	EXPECT(ask(fd, create, 1) == EHOSTUNREACH, "a group of who has gone");
	create.members[0] = (struct muster_manager_member){ .host = 0 };
	EXPECT(ask(fd, create, 1) == EHOSTUNREACH, "a group of others");
	create.head.type = 2;
	EXPECT(ask(fd, create, 1) == EINVAL, "a tree of no type");
	close(fd);
}

/* Groups of two, of which the other one never hears: only who asked may give them back whole. */
static void give_back(void)
{
	struct words create = { .head.kind = MUSTER_MANAGER_CREATE, .members = {
		{ .host = size, .incarnation = 1 }, { .host = size + 1, .incarnation = 1 },
	} };
	struct words leave = { .head.kind = MUSTER_MANAGER_LEAVE };
	int fds[2] = { dial(), dial() };

	EXPECT(!hello(fds[0], size, 0) && !hello(fds[1], size + 1, 0), "the last hosts are not welcome");
	for (uint64_t tag = 1; tag <= OFTEN; tag++) {
		create.head.tag = leave.head.tag = tag;
		EXPECT(!ask(fds[0], create, 2), "group %d is refused", (int)tag);
		say(fds[1], &leave, 0);
		say(fds[0], &leave, 0);
	}
	for (uint64_t tag = 1; tag < OFTEN; tag++) {	/* and nobody else: then there are too many */
		create.head.tag = leave.head.tag = tag;
		if (ask(fds[0], create, 2))
			break;
		say(fds[1], &leave, 0);
		EXPECT(tag < OFTEN - 1, "another host may give them back");
	}
	close(fds[0]);
	close(fds[1]);
}

static void speak_nonsense(void)
{
	struct words words = { .head = { .kind = 77, .version = MUSTER_MANAGER_VERSION } };
	int fd = dial();

	EXPECT(ask(fd, words, 0) == ENDED, "a message of no kind");
	close(fd);
	words.head.kind = MUSTER_MANAGER_HELLO;
	for (size_t bytes = 1; bytes <= sizeof(words.head); bytes *= 2) {
		words.head.nr_members = 1;	/* and there is none */
		fd = dial();
		send(fd, &words, bytes, MSG_NOSIGNAL);
		EXPECT(hear(fd) == ENDED, "%zu bytes are a message", bytes);
		close(fd);
	}
	words.head.nr_members = UINT32_MAX;
	fd = dial();
	send(fd, &words, sizeof(words), MSG_NOSIGNAL);
	EXPECT(hear(fd) == ENDED, "more members than may be");
	close(fd);
}

static void reduce(void)
{
	double in[COUNT], out[COUNT];
	struct muster_op_info info;

	for (int i = 0; i < COUNT; i++)
		in[i] = i;
	for (int turn = 0; turn < 20; turn++) {
		EXPECT_OK(muster_allreduce(muster_world(job), in, out, COUNT, MUSTER_F64, MUSTER_SUM));
		EXPECT(out[COUNT - 1] == (COUNT - 1) * (double)size, "the sum is %g", out[COUNT - 1]);
		muster_comm_last(muster_world(job), &info);
		EXPECT(info.path == MUSTER_PATH_SWITCH, "path %d: %s", info.path, info.why);
	}
}

int main(void)
{
	if (muster_init(&job)) {
		fprintf(stderr, "%s\n", muster_error(NULL));
		return 1;
	}
	rank = muster_comm_rank(muster_world(job));
	size = muster_comm_size(muster_world(job));
	if (!rank) {
		give_back();
		speak_as_nobody();
		speak_as_another();
		speak_nonsense();
	}
	reduce();
	muster_finalize(job);
	return 0;
}
