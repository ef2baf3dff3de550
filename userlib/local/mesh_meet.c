// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How the ranks of a mesh meet: names and secrets travel in one allgather, and words in
 * a second one, if some rank is in trouble. All connect to rank 0, from which each gets
 * what all share (memory, board, lives); others connect when they first need to.
 *
 * So rank 0 needs two descriptors for each other rank, and the others some few.
 */
#include "mesh_internal.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>

#include "clock.h"
#include "limit.h"

enum {
	FILES_PER_PEER = 2,	/* its connection and its process; for rank 0 alone */
	FILES_OTHERS = 3,	/* of the others; and three that all need */
	RETRY_US = 1000,
	WORDS_MAX = 128,
};

static int readable(int fd, uint64_t end_us)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	uint64_t now;

	do {
		now = muster_clock_us();
		if (now >= end_us)
			return -ETIMEDOUT;
	} while (poll(&pfd, 1, (end_us - now) / 1000 + 1) <= 0);
	return 0;
}

/* ---- rank 0 ------------------------------------------------------------------------ */

/*
 * Descriptors that are under way are limited, all of a user's together: they land when
 * others receive. bytes: whether one comes with it.
 */
static int give(struct muster_mesh *mesh, uint32_t rank, uint32_t kind, int fd, uint64_t end_us)
{
	const struct muster_mesh_message message = {
		.kind = htole32(kind),
		.bytes = htole64(fd >= 0),
	};
	int err;

	for (;;) {
		err = muster_mesh_message_send(mesh->peers[rank].fd, &message, fd, MSG_DONTWAIT);
		if ((err != -EAGAIN && err != -ETOOMANYREFS) || muster_clock_us() >= end_us)
			return err;
		usleep(RETRY_US);
	}
}

static int give_all(struct muster_mesh *mesh, uint32_t rank, int memory_fd, int board_fd,
		    uint64_t end_us)
{
	int err = give(mesh, rank, MUSTER_MESH_MEMORY, memory_fd, end_us);

	if (!err)
		err = give(mesh, rank, MUSTER_MESH_BOARD, board_fd, end_us);
	return err ? err : give(mesh, rank, MUSTER_MESH_LIVES, mesh->lives_fd, end_us);
}

/* Who says hello: 1: a rank, at fd; 0: a stranger. */
static int hear_hello(struct muster_mesh *mesh, int fd, uint64_t end_us, uint32_t *rank)
{
	int n = 0, err;

	while (!n) {
		err = readable(fd, end_us);
		if (err)
			return err;
		n = muster_mesh_hear(mesh, fd, rank);
	}
	return n > 0 && mesh->peers[*rank].fd < 0;
}

/* Some other rank, or a stranger, who is sent away: 1: a rank; 0: a stranger. */
static int accept_one(struct muster_mesh *mesh, uint64_t end_us, uint32_t *rank)
{
	int n = readable(mesh->listen_fd, end_us), fd;

	if (n)
		return n;
	fd = muster_mesh_accept(mesh);
	if (fd < 0)
		return fd == -EMFILE || fd == -ENFILE ? fd : 0;
	n = hear_hello(mesh, fd, end_us, rank);
	if (n <= 0) {
		close(fd);
		return n;
	}
	mesh->peers[*rank].fd = fd;
	mesh->peers[*rank].pidfd = muster_mesh_pidfd(fd);
	n = muster_mesh_lives_add(mesh, *rank);
	return n ? n : 1;
}

static int receive_others(struct muster_mesh *mesh, int memory_fd, int board_fd, uint64_t end_us,
			  uint32_t *missing)
{
	uint32_t left = mesh->size - 1, rank;
	int n, err;

	while (left) {
		n = accept_one(mesh, end_us, &rank);
		err = n > 0 ? give_all(mesh, rank, memory_fd, board_fd, end_us) : n;
		for (*missing = 1; *missing < mesh->size && mesh->peers[*missing].fd >= 0;)
			++*missing;
		if (err)
			return err;
		left -= n;
	}
	return 0;
}

/* ---- the others -------------------------------------------------------------------- */

/* The next message of rank 0, and its descriptor, which must come if it was sent. */
static int get(struct muster_mesh *mesh, uint32_t kind, int *passed, uint64_t end_us)
{
	struct muster_mesh_message message;
	int n = 0, err;

	while (!n) {
		err = readable(mesh->peers[0].fd, end_us);
		if (err)
			return err;
		n = muster_mesh_message_receive(mesh->peers[0].fd, &message, passed);
	}
	if (n < 0)
		return n;
	if (le32toh(message.kind) != kind)
		return -EPROTO;
	return *passed < 0 && message.bytes ? -EMFILE : 0;
}

static int get_board(struct muster_mesh *mesh, uint64_t end_us)
{
	int fd = -1;
	int err = get(mesh, MUSTER_MESH_BOARD, &fd, end_us);

	if (!err)
		err = muster_mesh_board_map(mesh, fd);
	fd_close(&fd);
	return err;
}

static int connect_first(struct muster_mesh *mesh, uint64_t end_us)
{
	int err;

	for (;;) {
		err = muster_mesh_connect(mesh, 0);
		if (err != -EAGAIN || muster_clock_us() >= end_us)
			break;
		usleep(RETRY_US);
	}
	if (err)
		return err;
	mesh->peers[0].pidfd = muster_mesh_pidfd(mesh->peers[0].fd);
	err = get(mesh, MUSTER_MESH_MEMORY, &mesh->memory_fd, end_us);
	if (!err)
		err = get_board(mesh, end_us);
	return err ? err : get(mesh, MUSTER_MESH_LIVES, &mesh->lives_fd, end_us);
}

static int connect_all(struct muster_mesh *mesh, int memory_fd, uint64_t end_us, uint32_t *rank)
{
	int board_fd = -1, err;

	*rank = 0;
	if (mesh->size == 1)
		return 0;
	if (mesh->rank)
		return connect_first(mesh, end_us);
	err = muster_mesh_lives_open(mesh, &board_fd);
	if (!err)
		err = receive_others(mesh, memory_fd, board_fd, end_us, rank);
	fd_close(&board_fd);
	return err;
}

/* ---- the exchange ------------------------------------------------------------------- */

/*
 * Whether the ranks outnumber the processors that they may use. Only where these could be
 * enough for all does each say which they are.
 */
static int count_crowded(struct muster_mesh *mesh, const struct muster_oob *oob)
{
	cpu_set_t own, all[mesh->size <= CPU_SETSIZE ? mesh->size : 1];
	int err;

	mesh->crowded = mesh->size > mesh->cards[0].processors || mesh->size > CPU_SETSIZE;
	if (mesh->crowded)
		return 0;
	CPU_ZERO(&own);
	if (sched_getaffinity(0, sizeof(own), &own))
		CPU_SET(0, &own);
	err = oob->allgather(oob->opaque, &own, all, sizeof(own));
	for (uint32_t rank = 0; rank < mesh->size && !err; rank++)
		CPU_OR(&own, &own, &all[rank]);
	mesh->crowded = mesh->size > (uint32_t)CPU_COUNT(&own);
	return err;
}

/* Whether a limit of open files leaves room for nr more. */
static bool files_fit(rlim_t limit, uint32_t nr)
{
	DIR *open = opendir("/proc/self/fd");

	for (; open && readdir(open); nr++)
		;	/* . and .. and the folder itself stand for the three that all need */
	if (open)
		closedir(open);
	return nr <= limit;
}

static int files_open(struct muster_mesh *mesh, struct card *card)
{
	uint32_t nr = mesh->rank ? FILES_OTHERS : FILES_PER_PEER * (mesh->size - 1);
	struct rlimit limit;

	mesh->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (mesh->epoll_fd < 0)
		return -errno;
	mesh->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (mesh->wake_fd < 0)
		return -errno;
	/* Who sees now that it cannot have enough tells all at once. */
	if (getrlimit(RLIMIT_NOFILE, &limit) || !files_fit(limit.rlim_cur, nr))
		return -EMFILE;
	return muster_mesh_listen(mesh, card->name);
}

/* An error in words; where a limit was met, with that limit. */
static void error_words(int err, char *words, size_t len)
{
	struct rlimit limit = { 0 };

	if (err != -EMFILE && err != -ETOOMANYREFS) {
		snprintf(words, len, "%s", strerror(-err));
		return;
	}
	getrlimit(RLIMIT_NOFILE, &limit);
	snprintf(words, len, "%s: the limit is %llu (ulimit -n), and rank 0 needs %d of them for every other rank",
		 strerror(-err), (unsigned long long)limit.rlim_cur, FILES_PER_PEER);
}

/* Own card; what has failed so far goes out with it. */
static void card_fill(struct muster_mesh *mesh, struct card *card, int error)
{
	int processors = get_nprocs();

	card->error = error;
	card->pid = getpid();
	card->processors = processors < UINT16_MAX ? processors : UINT16_MAX;
	if (!card->error && (getrandom(&card->secret, sizeof(card->secret), 0) < 0 ||
			     getrandom(&card->number, sizeof(card->number), 0) < 0))
		card->error = -errno;
	if (!card->error)
		card->error = files_open(mesh, card);
}

/* The first who is in trouble, in its own words; all see it in the cards, and all ask. */
static int trouble(const struct muster_mesh *mesh, const struct muster_oob *oob,
		   const char *own_words, char *why, size_t why_len)
{
	char words[WORDS_MAX] = "", all[mesh->size][WORDS_MAX];
	uint32_t rank = 0;
	int err;

	while (rank < mesh->size && !mesh->cards[rank].error)
		rank++;
	if (rank == mesh->size)
		return 0;
	snprintf(words, sizeof(words), "%s", own_words);
	err = oob->allgather(oob->opaque, words, all, sizeof(words));
	if (rank == mesh->rank)
		snprintf(why, why_len, "%s", words);
	else
		snprintf(why, why_len, "rank %u: %.127s", rank,
			 err ? strerror(-mesh->cards[rank].error) : all[rank]);
	return mesh->cards[rank].error;
}

static int exchange(struct muster_mesh *mesh, const struct muster_oob *oob, int error,
		    char *why, size_t why_len)
{
	struct card card = { 0 };
	char words[WORDS_MAX];
	int err;

	card_fill(mesh, &card, error);
	if (error)
		snprintf(words, sizeof(words), "%s", why);
	else
		error_words(card.error, words, sizeof(words));
	err = oob->allgather(oob->opaque, &card, mesh->cards, sizeof(card));
	if (!err)
		err = trouble(mesh, oob, words, why, why_len);
	else
		snprintf(why, why_len, "the ranks' exchange failed: %s", strerror(-err));
	return err;
}

static int meet(struct muster_mesh *mesh, const struct muster_oob *oob,
		const struct muster_mesh_config *config, char *why, size_t why_len)
{
	char words[WORDS_MAX];
	uint32_t rank;
	int err;

	err = exchange(mesh, oob, config->error, why, why_len);
	if (err)
		return err;
	err = count_crowded(mesh, oob);
	if (err) {
		snprintf(why, why_len, "the ranks' exchange failed: %s", strerror(-err));
		return err;
	}
	err = connect_all(mesh, config->memory_fd, muster_clock_us() + config->deadline_us,
			  &rank);
	error_words(err, words, sizeof(words));
	if (err)
		snprintf(why, why_len, "rank %u (process %u) cannot be reached: %s; the local device "
			 "needs all ranks on one host, in one network namespace, of one user", rank,
			 rank < mesh->size ? mesh->cards[rank].pid : 0, words);
	return err;
}

/* Descriptors, open and under way, count against the soft limit; here the hard one counts. */
int muster_mesh_meet(struct muster_mesh *mesh, const struct muster_oob *oob,
		     const struct muster_mesh_config *config, char *why, size_t why_len)
{
	int err;

	muster_limit_raise();	/* fewer ranks fit where it is refused */
	err = meet(mesh, oob, config, why, why_len);
	muster_limit_restore();
	return err;
}
