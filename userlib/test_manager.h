/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For tests only: a manager of aggregation groups as a thread. It makes whatever group it is
 * asked for, each of whose members gives to the one before, and can be told to be silent; what it heard meanwhile it
 * answers afterwards.
 */
#ifndef MUSTER_TEST_MANAGER_H
#define MUSTER_TEST_MANAGER_H

#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "muster_manager.h"
#include "testing.h"

struct test_manager_answer {
	struct muster_manager_message head;
	struct muster_manager_give gives[TEST_RANKS_MAX];
};

struct test_manager {
	char address[40];
	pthread_t thread;
	pthread_mutex_t lock;		/* what follows */
	bool silent, ends;
	bool orderless;			/* it does not say how groups combine */
	uint32_t created;		/* groups that it was asked for, */
	uint32_t given_back;		/* and those whose answers nobody awaits */
	struct pollfd fds[1 + TEST_RANKS_MAX];	/* the first listens */
	nfds_t nr;
	struct {
		int fd;
		struct test_manager_answer answer;
	} late[TEST_RANKS_MAX];
	uint32_t nr_late;
	void (*hello)(void *opaque);	/* before it welcomes anybody; NULL: nothing */
	void *opaque;
};

static inline void test_manager_answer(struct test_manager *manager, int fd,
				       const struct test_manager_answer *answer)
{
	if (!manager->silent) {
		send(fd, answer, sizeof(answer->head) + answer->head.nr_members * sizeof(answer->gives[0]),
		     MSG_NOSIGNAL);
		return;
	}
	assert_true(manager->nr_late < TEST_RANKS_MAX);
	manager->late[manager->nr_late].fd = fd;
	manager->late[manager->nr_late++].answer = *answer;
}

static inline void test_manager_take(struct test_manager *manager, int fd,
				     const struct muster_manager_message *said)
{
	struct test_manager_answer answer = { .head = {
		.version = MUSTER_MANAGER_VERSION, .tag = said->tag, .payload_max = 256,
	} };

	if (said->kind == MUSTER_MANAGER_HELLO && manager->hello)
		manager->hello(manager->opaque);
	if (said->kind == MUSTER_MANAGER_LEAVE && said->tag) {
		manager->given_back++;
		return;
	}
	answer.head.kind = (uint16_t)(said->kind + 1);
	if (said->kind == MUSTER_MANAGER_CREATE) {
		answer.head.tree = said->type;
		answer.head.group = ++manager->created;
		answer.head.key = 1000 + answer.head.group;
		if (said->flags & MUSTER_MANAGER_ORDER && !manager->orderless)
			answer.head.nr_members = said->nr_members - 1;
		for (uint32_t i = 0; i < answer.head.nr_members; i++)
			answer.gives[i] = (struct muster_manager_give){
				.from = (uint16_t)(said->nr_members - 1 - i), .to = (uint16_t)(said->nr_members - 2 - i),
			};
	}
	test_manager_answer(manager, fd, &answer);
}

/* In the place of one that has gone, if there is one. */
static inline void test_manager_let_in(struct test_manager *manager)
{
	nfds_t at = 1;

	while (at < manager->nr && manager->fds[at].fd >= 0)
		at++;
	assert_true(at <= TEST_RANKS_MAX);
	manager->fds[at] = (struct pollfd){ .fd = accept(manager->fds[0].fd, NULL, NULL), .events = POLLIN };
	if (at == manager->nr)
		manager->nr++;
}

static inline void test_manager_hear(struct test_manager *manager, nfds_t i)
{
	uint8_t said[sizeof(struct muster_manager_message) +
		     TEST_RANKS_MAX * sizeof(struct muster_manager_member)];
	ssize_t bytes;

	if (!i) {
		test_manager_let_in(manager);
		return;
	}
	bytes = recv(manager->fds[i].fd, said, sizeof(said), MSG_DONTWAIT);
	if (bytes >= (ssize_t)sizeof(struct muster_manager_message)) {
		test_manager_take(manager, manager->fds[i].fd, (const void *)said);
	} else if (!bytes) {
		close(manager->fds[i].fd);
		manager->fds[i].fd = -1;
	}
}

static inline void *test_manager_run(void *opaque)
{
	struct test_manager *manager = opaque;
	bool ends = false;

	while (!ends) {
		poll(manager->fds, manager->nr, 1);
		pthread_mutex_lock(&manager->lock);
		for (nfds_t i = manager->nr; i--;)
			if (manager->fds[i].revents)
				test_manager_hear(manager, i);
		while (manager->nr_late && !manager->silent) {
			manager->nr_late--;
			test_manager_answer(manager, manager->late[manager->nr_late].fd,
					    &manager->late[manager->nr_late].answer);
		}
		ends = manager->ends;
		pthread_mutex_unlock(&manager->lock);
	}
	return NULL;
}

/* What jobs that join from now on are told of it, and of the switch that they are at. */
static inline void test_manager_begin(struct test_manager *manager)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	size_t len;

	snprintf(manager->address, sizeof(manager->address), "@muster-test-%d-%p", getpid(),
		 (void *)manager);
	len = strlen(manager->address);
	memcpy(un.sun_path + 1, manager->address + 1, len - 1);
	assert_int_equal(bind(fd, (void *)&un, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)), 0);
	assert_int_equal(listen(fd, TEST_RANKS_MAX), 0);
	manager->fds[0] = (struct pollfd){ .fd = fd, .events = POLLIN };
	manager->nr = 1;
	pthread_mutex_init(&manager->lock, NULL);
	assert_int_equal(pthread_create(&manager->thread, NULL, test_manager_run, manager), 0);
	setenv("MUSTER_WIRE", "switch", 1);
	setenv("MUSTER_FABRIC", "unix:@nowhere", 1);
	setenv("MUSTER_UPLINK", "16711680,1", 1);
	setenv("MUSTER_MANAGER", manager->address, 1);
	setenv("MUSTER_DEADLINE", "3600", 1);
}

static inline void test_manager_silence(struct test_manager *manager, bool silent)
{
	pthread_mutex_lock(&manager->lock);
	manager->silent = silent;
	pthread_mutex_unlock(&manager->lock);
}

/* How much it has heard while it was silent, and has not answered. */
static inline uint32_t test_manager_late(struct test_manager *manager)
{
	uint32_t late;

	pthread_mutex_lock(&manager->lock);
	late = manager->nr_late;
	pthread_mutex_unlock(&manager->lock);
	return late;
}

static inline void test_manager_catch_up(struct test_manager *manager)
{
	do
		sched_yield();
	while (test_manager_late(manager));
}

static inline uint32_t test_manager_created(struct test_manager *manager)
{
	uint32_t created;

	pthread_mutex_lock(&manager->lock);
	created = manager->created;
	pthread_mutex_unlock(&manager->lock);
	return created;
}

static inline uint32_t test_manager_given_back(struct test_manager *manager)
{
	uint32_t given_back;

	pthread_mutex_lock(&manager->lock);
	given_back = manager->given_back;
	pthread_mutex_unlock(&manager->lock);
	return given_back;
}

static inline void test_manager_end(struct test_manager *manager)
{
	static const char *const set[] = { "WIRE", "FABRIC", "UPLINK", "MANAGER", "DEADLINE" };
	char name[32];

	for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++) {
		snprintf(name, sizeof(name), "MUSTER_%s", set[i]);
		unsetenv(name);
	}
	pthread_mutex_lock(&manager->lock);
	manager->ends = true;
	pthread_mutex_unlock(&manager->lock);
	pthread_join(manager->thread, NULL);
	for (nfds_t i = 0; i < manager->nr; i++)
		if (manager->fds[i].fd >= 0)
			close(manager->fds[i].fd);
	pthread_mutex_destroy(&manager->lock);
}

#endif /* MUSTER_TEST_MANAGER_H */
