// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * This rank's connection to the manager of aggregation groups (uapi/muster_manager.h). It
 * is a lease: when this process ends, however it does, the manager takes back what it had.
 */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "muster_manager.h"
#include "namespace.h"
#include "tree.h"

struct muster_manager {
	int fd;
	uint64_t tags;		/* of requests so far */
};

struct request {
	struct muster_manager_message head;
	struct muster_manager_member members[];
};

struct answer {
	struct muster_manager_message head;
	char why[MUSTER_MANAGER_WHY_MAX];
};

static int dial(const char *address)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	size_t len = strlen(address);
	int fd = muster_namespace_socket(SOCK_SEQPACKET), err;

	if (fd < 0)
		return fd;
	memcpy(un.sun_path, address, len);	/* its length was checked */
	if (*address == '@')
		un.sun_path[0] = '\0';
	if (!connect(fd, (struct sockaddr *)&un,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static int say(const struct muster_manager *manager, struct muster_manager_message *head,
	       size_t bytes)
{
	head->version = htole16(MUSTER_MANAGER_VERSION);
	return send(manager->fd, head, bytes, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* 1: an answer; 0: none yet; -errno. */
static int hear(const struct muster_manager *manager, int timeout_ms, struct answer *answer)
{
	struct pollfd fd = { .fd = manager->fd, .events = POLLIN };
	ssize_t bytes;

	if (poll(&fd, 1, timeout_ms) <= 0)
		return 0;
	memset(answer, 0, sizeof(*answer));
	bytes = recv(manager->fd, answer, sizeof(*answer), MSG_DONTWAIT);
	if (bytes < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return bytes >= (ssize_t)sizeof(answer->head) ? 1 : -ECONNRESET;
}

/* What it says of an error; the sentence is its own. */
static int result_of(struct answer *answer, char *why, size_t why_len)
{
	int err = muster_rank_errno(-(int32_t)le32toh(answer->head.status));

	if (!answer->head.status)
		return 0;
	answer->why[sizeof(answer->why) - 1] = '\0';
	snprintf(why, why_len, "%s", *answer->why ? answer->why : strerror(-err));
	return err;
}

static int failed(int err, char *why, size_t why_len)
{
	snprintf(why, why_len, "%s", err == -ECONNRESET ? "the manager of groups has gone" :
							  strerror(-err));
	return err;
}

/* ---- opening and closing ------------------------------------------------------------------ */

/* Members of one job have the same, others hardly; the key does not follow from it. */
static uint64_t proof_of(uint64_t key)
{
	uint64_t half = (key ^ key >> 29) * 0xbf58476d1ce4e5b9ull >> 32;

	return half * 0x94d049bb133111ebull;
}

static int greet(struct muster *job, char *why, size_t why_len)
{
	struct muster_manager_message hello = {
		.kind = htole16(MUSTER_MANAGER_HELLO),
		.proof = htole64(proof_of(job->key)),
		.host = htole32(job->dev->address.node),
		.life = htole32(job->dev->address.incarnation),
	};
	int patience_ms = (int)(job->settings.deadline_us / 1000), ret;
	struct answer answer;

	ret = say(job->manager, &hello, sizeof(hello));
	if (ret)
		return failed(ret, why, why_len);
	ret = hear(job->manager, patience_ms, &answer);
	if (ret <= 0)
		return failed(ret ? ret : -ETIMEDOUT, why, why_len);
	return result_of(&answer, why, why_len);
}

int muster_manager_open(struct muster *job, char *why, size_t why_len)
{
	struct muster_manager *manager = calloc(1, sizeof(*manager));
	int err;

	if (!manager)
		return failed(-ENOMEM, why, why_len);
	job->manager = manager;
	manager->fd = dial(job->settings.manager);
	err = manager->fd < 0 ? failed(manager->fd, why, why_len) : greet(job, why, why_len);
	if (err)
		muster_manager_close(job);
	return err;
}

void muster_manager_close(struct muster *job)
{
	if (!job->manager)
		return;
	if (job->manager->fd >= 0)
		close(job->manager->fd);
	free(job->manager);
	job->manager = NULL;
}

/* ---- groups ------------------------------------------------------------------------------- */

static int ask(struct muster_comm *comm, enum muster_tree_type type)
{
	struct muster *job = comm->job;
	size_t bytes = sizeof(struct request) + comm->size * sizeof(struct muster_manager_member);
	struct request *request = calloc(1, bytes);
	int err;

	if (!request)
		return -ENOMEM;
	request->head = (struct muster_manager_message){
		.kind = htole16(MUSTER_MANAGER_CREATE),
		.tag = htole64(++job->manager->tags),
		.context = htole32(comm->context),
		.life = htole32(comm->life),
		.job = job->id,
		.type = (uint8_t)type,
		.nr_members = htole32(comm->size),
	};
	for (uint32_t i = 0; i < comm->size; i++)
		request->members[i] = (struct muster_manager_member){
			.host = htole32(comm->members[i].node),
			.incarnation = htole32(comm->members[i].incarnation),
			.vp = htole16(comm->members[i].vp),
		};
	err = say(job->manager, &request->head, bytes);
	free(request);
	return err;
}

int muster_manager_create(struct muster_comm *comm, enum muster_tree_type type,
			  struct muster_tree *tree, char *why, size_t why_len)
{
	struct muster *job = comm->job;
	uint64_t end_us = muster_now_us(job) + job->settings.deadline_us;
	struct answer answer;
	int ret, err;

	if (comm->size > MUSTER_MANAGER_MEMBERS_MAX)
		return failed(-E2BIG, why, why_len);
	ret = ask(comm, type);
	while (!ret) {
		ret = hear(job->manager, muster_progress(job) ? 0 : 1, &answer);
		if (ret > 0 && le64toh(answer.head.tag) != job->manager->tags)
			ret = 0;	/* to what was given up */
		if (!ret && muster_now_us(job) > end_us)
			ret = -ETIMEDOUT;
	}
	if (ret < 0)
		return failed(ret, why, why_len);
	err = result_of(&answer, why, why_len);
	*tree = (struct muster_tree){
		.tree = le16toh(answer.head.tree),
		.group = le32toh(answer.head.group),
		.key = le64toh(answer.head.key),
		.payload_max = le32toh(answer.head.payload_max),
	};
	return err;
}

void muster_manager_leave(struct muster *job, const struct muster_tree *tree)
{
	struct muster_manager_message head = {
		.kind = htole16(MUSTER_MANAGER_LEAVE),
		.tree = htole16(tree->tree),
		.group = htole32(tree->group),
	};

	if (job->manager)
		say(job->manager, &head, sizeof(head));
}
