// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * This rank's connection to the manager of aggregation groups (uapi/muster_manager.h). It
 * is a lease: when this process ends, however it does, the manager takes back what it had. The manager
 * may end before us; if there is one again we connect anew before a communicator is made, and say
 * which groups we are in.
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
#include "turn.h"

struct muster_manager {
	int fd;			/* -1: it has gone, and none has come yet */
	uint64_t tags;		/* of requests so far */
	uint32_t leaving;	/* groups of which it has not said yet that they are left */
	bool asked;		/* a thread awaits its answer, and gives its turn away meanwhile */
	bool silent;		/* it let one wait in vain: it is asked again when it has said something */
	uint32_t nr_held, held_room;
	struct muster_manager_claim *held;	/* groups that we are in */
	struct wish *wishes;	/* for communicators that are being made */
};

/* That a communicator goes over to other groups. */
struct wish {
	struct wish *next;
	struct muster_moved moved;
};

struct greeting {
	struct muster_manager_message head;
	struct muster_manager_claim held[];
};

struct request {
	struct muster_manager_message head;
	struct muster_manager_member members[];
};

struct answer {
	struct muster_manager_message head;
	union {
		char why[MUSTER_MANAGER_WHY_MAX];
		struct muster_manager_claim claims[2 * MUSTER_TREE_TYPES];
		struct muster_manager_give gives[MUSTER_MANAGER_MEMBERS_MAX];
	};
};

/* What its socket blocks in has an end. */
static void patience_set(const struct muster *job, int fd)
{
	const struct timeval patience = {
		.tv_sec = (time_t)(job->settings.deadline_us / 1000000),
		.tv_usec = (suseconds_t)(job->settings.deadline_us % 1000000),
	};

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
}

static uint64_t end_us(const struct muster *job)
{
	return muster_now_us(job) + job->settings.deadline_us;
}

/* Of a call that has failed: whether it is to be made again, as only a signal came. */
static bool was_interrupted(const struct muster *job, uint64_t until_us)
{
	return errno == EINTR && muster_now_us(job) < until_us;
}

static int blocked_errno(void)
{
	return errno == EAGAIN || errno == EINTR ? -ETIMEDOUT : -errno;
}

static int dial(const struct muster *job)
{
	const char *address = job->settings.manager;
	struct sockaddr_un un;
	int len = muster_namespace_address(address, strlen(address), &un);	/* which was checked */
	uint64_t until_us = end_us(job);
	int fd = muster_namespace_socket(SOCK_SEQPACKET), err;

	if (fd < 0)
		return fd;
	patience_set(job, fd);
	do {
		if (!connect(fd, (struct sockaddr *)&un, (socklen_t)len))
			return fd;
	} while (was_interrupted(job, until_us));
	err = blocked_errno();
	close(fd);
	return err;
}

static int gone(struct muster_manager *manager)
{
	if (manager->fd >= 0)
		close(manager->fd);
	manager->fd = -1;
	manager->leaving = 0;
	return -ECONNRESET;
}

/* Who is silent is not waited for with this either. */
static int say(const struct muster *job, struct muster_manager_message *head, size_t bytes)
{
	struct muster_manager *manager = job->manager;
	int flags = MSG_NOSIGNAL | (manager->silent ? MSG_DONTWAIT : 0), err;
	uint64_t until_us = end_us(job);

	if (manager->fd < 0)
		return -ECONNRESET;
	head->version = htole16(MUSTER_MANAGER_VERSION);
	do {
		if (send(manager->fd, head, bytes, flags) >= 0)
			return 0;
	} while (was_interrupted(job, until_us));
	err = blocked_errno();
	if (err == -EPIPE || err == -ECONNRESET)
		return gone(manager);
	manager->silent |= err == -ETIMEDOUT;
	return err;
}

/* ---- what it says unasked ---------------------------------------------------------------- */

static void wish_free(struct wish **place)
{
	struct wish *wish = *place;

	*place = wish->next;
	free(wish);
}

/* Those of communicators that have been made since. */
static void wishes_review(struct muster *job)
{
	struct wish **place = &job->manager->wishes;

	while (*place)
		if (muster_move_wish(job, &(*place)->moved))
			wish_free(place);
		else
			place = &(*place)->next;
}

/* Claims by twos: of a group that is to be left, and of the one instead. */
static void wish_take(struct muster *job, const struct answer *said)
{
	struct wish *wish = calloc(1, sizeof(*wish));
	uint32_t nr = le32toh(said->head.nr_members);

	if (!wish || nr > 2 * MUSTER_TREE_TYPES) {
		free(wish);		/* it stays where it is */
		return;
	}
	for (uint32_t i = 0; i + 1 < nr; i += 2) {
		uint32_t type = le16toh(said->claims[i].tree) % MUSTER_TREE_TYPES;

		wish->moved.instead_of[type] = le32toh(said->claims[i].group);
		wish->moved.groups[type] = le32toh(said->claims[i + 1].group);
		wish->moved.keys[type] = le64toh(said->claims[i + 1].key);
	}
	wish->next = job->manager->wishes;
	job->manager->wishes = wish;
}

/* ---- hearing ------------------------------------------------------------------------------ */

/* 1: an answer; 0: none yet; -errno. That a group is left is only counted. */
static int hear(struct muster *job, int timeout_ms, struct answer *answer)
{
	struct muster_manager *manager = job->manager;
	struct pollfd fd = { .fd = manager->fd, .events = POLLIN };
	ssize_t bytes;

	if (manager->fd < 0)
		return -ECONNRESET;
	if (poll(&fd, 1, timeout_ms) <= 0)
		return 0;
	memset(answer, 0, sizeof(*answer));
	bytes = recv(manager->fd, answer, sizeof(*answer), MSG_DONTWAIT);
	if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (bytes < (ssize_t)sizeof(answer->head))
		return gone(manager);
	if (le16toh(answer->head.kind) == MUSTER_MANAGER_MOVE) {
		wish_take(job, answer);
		return 0;
	}
	if (le16toh(answer->head.kind) != MUSTER_MANAGER_LEFT)
		return 1;
	manager->silent = false;
	manager->leaving -= manager->leaving > 0;
	return 0;
}

/* To what was asked last; what answers something that was given up is passed over. */
static int answer_await(struct muster *job, struct answer *answer)
{
	struct muster_manager *manager = job->manager;
	uint64_t until_us = end_us(job);
	int ret = 0;

	while (!ret) {
		muster_turn_pass(job);
		ret = hear(job, muster_progress(job) ? 0 : 1, answer);
		if (ret > 0 && le64toh(answer->head.tag) != manager->tags)
			ret = 0;
		else if (!ret && muster_now_us(job) > until_us)
			ret = -ETIMEDOUT;
	}
	manager->silent = ret == -ETIMEDOUT;
	return ret < 0 ? ret : 0;
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

const char *muster_manager_words(int err)
{
	return err == -ECONNRESET ? "the manager of groups has gone" : strerror(-err);
}

static int failed(int err, char *why, size_t why_len)
{
	snprintf(why, why_len, "%s", muster_manager_words(err));
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
	struct muster_manager *manager = job->manager;
	size_t held = manager->nr_held * sizeof(manager->held[0]);
	struct greeting *hello = calloc(1, sizeof(*hello) + held);
	struct answer answer;
	int err;

	if (!hello)
		return failed(-ENOMEM, why, why_len);
	hello->head = (struct muster_manager_message){
		.kind = htole16(MUSTER_MANAGER_HELLO),
		.tag = htole64(++manager->tags),
		.proof = htole64(proof_of(job->key)),
		.host = htole32(job->dev->address.node),
		.life = htole32(job->dev->address.incarnation),
		.nr_members = htole32(manager->nr_held),
	};
	if (held)
		memcpy(hello->held, manager->held, held);
	err = say(job, &hello->head, sizeof(*hello) + held);
	free(hello);
	if (!err)
		err = answer_await(job, &answer);
	return err ? failed(err, why, why_len) : result_of(&answer, why, why_len);
}

int muster_manager_open(struct muster *job, char *why, size_t why_len)
{
	struct muster_manager *manager = calloc(1, sizeof(*manager));
	int err;

	if (!manager)
		return failed(-ENOMEM, why, why_len);
	job->manager = manager;
	manager->asked = true;
	manager->fd = dial(job);
	err = manager->fd < 0 ? failed(manager->fd, why, why_len) : greet(job, why, why_len);
	manager->asked = false;
	if (err)
		muster_manager_close(job);
	return err;
}

/*
 * The switches are to know of all groups that they are left, before the device goes; then none fails of
 * it. Who is silent is waited for once, and one that has gone not at all.
 */
static void leaves_await(struct muster *job)
{
	struct muster_manager *manager = job->manager;
	uint64_t until_us = manager->leaving ? end_us(job) : 0;
	struct answer answer;

	while (manager->leaving && !manager->silent && hear(job, 1, &answer) >= 0)
		if (muster_now_us(job) > until_us)
			return;
}

void muster_manager_close(struct muster *job)
{
	struct muster_manager *manager = job->manager;

	if (!manager)
		return;
	if (manager->fd >= 0) {
		leaves_await(job);
		gone(manager);
	}
	while (manager->wishes)
		wish_free(&manager->wishes);
	free(manager->held);
	free(manager);
	job->manager = NULL;
}

/* Another thread's answer comes first. */
static void others_await(struct muster *job)
{
	while (job->manager->asked) {
		muster_turn_pass(job);
		if (!muster_progress(job))
			poll(NULL, 0, 1);
	}
}

/* Who awaits an answer hears the rest as well. */
void muster_manager_look(struct muster *job)
{
	struct muster_manager *manager = job->manager;
	struct answer answer;

	if (manager->asked || manager->fd < 0)
		return;
	manager->asked = true;
	while (hear(job, 0, &answer) > 0)
		manager->silent = false;
	manager->asked = false;
	if (__builtin_expect(manager->wishes != NULL, 0))
		wishes_review(job);
}

/* Late answers are passed over here: they show that it is there, too. */
void muster_manager_renew(struct muster *job)
{
	struct muster_manager *manager = job->manager;
	char why[MUSTER_WHY_MAX];
	struct answer answer;
	int ret;

	others_await(job);
	while ((ret = hear(job, 0, &answer)) > 0)
		manager->silent = false;
	if (!ret)
		return;
	manager->asked = true;
	manager->silent = false;
	manager->fd = dial(job);
	if (manager->fd < 0 || greet(job, why, sizeof(why)))
		gone(manager);
	manager->asked = false;
}

/* ---- groups ------------------------------------------------------------------------------- */

static int ask(struct muster_comm *comm, enum muster_tree_type type,
	       const struct muster_tree *pair)
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
		.tree = htole16(pair->tree),
		.group = htole32(pair->group),
		.nr_members = htole32(comm->size),
		.flags = htole32(job->settings.order == MUSTER_OFFLOAD_OFF ? 0 : MUSTER_MANAGER_ORDER),
	};
	for (uint32_t i = 0; i < comm->size; i++) {
		const struct muster_address *member = muster_comm_address(comm, i);

		request->members[i] = (struct muster_manager_member){
			.host = htole32(member->node),
			.incarnation = htole32(member->incarnation),
			.vp = htole16(member->vp),
		};
	}
	err = say(job, &request->head, bytes);
	free(request);
	return err;
}

/* What came late shows that it is there again. */
static int ready_await(struct muster *job)
{
	struct muster_manager *manager = job->manager;
	struct answer answer;
	int ret;

	others_await(job);
	while ((ret = hear(job, 0, &answer)) > 0)
		manager->silent = false;
	return ret ? ret : manager->silent ? -ETIMEDOUT : 0;
}

/* What is made, or has been, is of no use: nobody else hears of it. */
static void give_back(struct muster *job)
{
	struct muster_manager_message head = {
		.kind = htole16(MUSTER_MANAGER_LEAVE),
		.tag = htole64(job->manager->tags),
	};

	say(job, &head, sizeof(head));
}

static int ask_and_await(struct muster_comm *comm, enum muster_tree_type type,
			 const struct muster_tree *pair, struct answer *answer)
{
	struct muster *job = comm->job;
	int err = ready_await(job);

	if (err)
		return err;
	job->manager->asked = true;
	err = ask(comm, type, pair);
	if (!err)
		err = answer_await(job, answer);
	if (err == -ETIMEDOUT)
		give_back(job);
	job->manager->asked = false;
	return err;
}

int muster_manager_hold(struct muster *job, const struct muster_tree *tree)
{
	struct muster_manager *manager = job->manager;
	uint32_t room = manager->held_room ? 2 * manager->held_room : 8;
	struct muster_manager_claim *held = manager->held;

	if (manager->nr_held == manager->held_room) {
		held = realloc(held, room * sizeof(*held));
		if (!held)
			return -ENOMEM;
		manager->held = held;
		manager->held_room = room;
	}
	held[manager->nr_held++] = (struct muster_manager_claim){
		.key = htole64(tree->key), .group = htole32(tree->group), .tree = htole16(tree->tree),
	};
	return 0;
}

static void held_forget(struct muster_manager *manager, const struct muster_tree *tree)
{
	for (uint32_t i = 0; i < manager->nr_held; i++)
		if (manager->held[i].key == htole64(tree->key)) {
			manager->held[i] = manager->held[--manager->nr_held];
			return;
		}
}

/* As it was asked for. */
static int order_take(const struct muster_comm *comm, const struct answer *answer, struct muster_give **order)
{
	if (comm->job->settings.order == MUSTER_OFFLOAD_OFF)
		return 0;
	if (le32toh(answer->head.nr_members) != comm->size - 1)
		return -EPROTO;
	*order = calloc(comm->size, sizeof(**order));
	for (uint32_t i = 0; *order && i + 1 < comm->size; i++)
		(*order)[i] = (struct muster_give){
			.from = le16toh(answer->gives[i].from), .to = le16toh(answer->gives[i].to),
		};
	return *order ? 0 : -ENOMEM;
}

int muster_manager_create(struct muster_comm *comm, enum muster_tree_type type,
			  const struct muster_tree *pair, struct muster_tree *tree, char *why,
			  size_t why_len)
{
	struct answer answer;
	int err;

	if (comm->size > MUSTER_MANAGER_MEMBERS_MAX)
		return failed(-E2BIG, why, why_len);
	err = ask_and_await(comm, type, pair, &answer);
	if (err)
		return failed(err, why, why_len);
	err = result_of(&answer, why, why_len);
	*tree = (struct muster_tree){
		.tree = le16toh(answer.head.tree),
		.group = le32toh(answer.head.group),
		.key = le64toh(answer.head.key),
		.payload_max = le32toh(answer.head.payload_max),
		.locks = le32toh(answer.head.flags) & MUSTER_MANAGER_LOCKS,
	};
	if (err)
		return err;
	err = order_take(comm, &answer, &tree->order);
	if (!err)
		err = muster_manager_hold(comm->job, tree);
	if (!err)
		return 0;
	free(tree->order);
	tree->order = NULL;
	give_back(comm->job);
	return failed(err, why, why_len);
}

void muster_manager_leave(struct muster *job, const struct muster_tree *tree, bool moved)
{
	struct muster_manager_message head = {
		.kind = htole16(MUSTER_MANAGER_LEAVE),
		.tree = htole16(tree->tree),
		.group = htole32(tree->group),
		.flags = htole32(moved ? MUSTER_MANAGER_MOVED : 0),
	};

	if (!job->manager)
		return;
	held_forget(job->manager, tree);
	if (!say(job, &head, sizeof(head)))
		job->manager->leaving++;
}
