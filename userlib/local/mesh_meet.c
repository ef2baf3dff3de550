// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How the ranks of a mesh meet. Every rank listens on an abstract socket with a name that
 * the kernel chose, connects to the ranks below it and accepts those above. Names,
 * processors and a secret travel in one allgather; the secret and the peer's user
 * id keep strangers out.
 *
 * Descriptors are few, open and under way: two for each other rank, and rank 0 alone
 * sends one to each.
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
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>

#include "limit.h"

enum {
	FILES_PER_PEER = 2,	/* its connection and its process */
	RETRY_US = 1000,
};

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000ull + ts.tv_nsec / 1000;
}

/* ---- connections --------------------------------------------------------------- */

static socklen_t card_address(const struct card *card, struct sockaddr_un *addr)
{
	*addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(addr->sun_path, card->name, sizeof(card->name));
	return offsetof(struct sockaddr_un, sun_path) + card->name_len;
}

/* A listening socket with a name of the kernel's choice. */
static int listen_open(struct card *card, uint32_t size, int *listen_fd)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(addr);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	*listen_fd = fd;
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(sa_family_t)) ||
	    listen(fd, size) || getsockname(fd, (struct sockaddr *)&addr, &len))
		return -errno;
	card->name_len = len - offsetof(struct sockaddr_un, sun_path);
	if (card->name_len > NAME_LEN)
		return -ENAMETOOLONG;
	memcpy(card->name, addr.sun_path, card->name_len);
	return 0;
}

/*
 * HELLO: key is the sender's rank, addr the receiver's secret, bytes whether memory comes
 * with it. Descriptors that are under way are limited: they land when others receive.
 */
static int say_hello(struct muster_mesh *mesh, uint32_t rank, int memory_fd, uint64_t end_us)
{
	struct muster_mesh_message hello = {
		.kind = htole32(MUSTER_MESH_HELLO),
		.key = htole32(mesh->rank),
		.addr = htole64(mesh->cards[rank].secret),
		.bytes = htole64(memory_fd >= 0),
	};
	int err;

	for (;;) {
		err = muster_mesh_message_send(mesh->peers[rank].fd, &hello, memory_fd, 0);
		if ((err != -EAGAIN && err != -ETOOMANYREFS) || now_us() >= end_us)
			return err;
		usleep(RETRY_US);
	}
}

/* The process at the other end: ours, and what tells us of its end. */
static int peer_process(int fd, int *pidfd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	if (cred.uid != geteuid())
		return -EPERM;
	*pidfd = cred.pid ? syscall(SYS_pidfd_open, cred.pid, 0) : -1;
	return 0;
}

static int readable(int fd, uint64_t end_us)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	uint64_t now;

	do {
		now = now_us();
		if (now >= end_us)
			return -ETIMEDOUT;
	} while (poll(&pfd, 1, (end_us - now) / 1000 + 1) <= 0);
	return 0;
}

/* The hello that must come first; says who it is. */
static int hear_hello(struct muster_mesh *mesh, int fd, uint64_t end_us, uint32_t *rank)
{
	struct muster_mesh_message hello;
	int n = 0, memory_fd, err;

	while (!n) {
		err = readable(fd, end_us);
		if (err)
			return err;
		n = muster_mesh_message_receive(fd, &hello, &memory_fd);
	}
	if (n < 0)
		return n;
	*rank = le32toh(hello.key);
	if (le32toh(hello.kind) != MUSTER_MESH_HELLO || *rank >= mesh->size ||
	    le64toh(hello.addr) != mesh->cards[mesh->rank].secret)
		n = -EPERM;
	else if (memory_fd < 0 && hello.bytes)
		n = -EMFILE;	/* it was sent, but we have no room */
	else if (memory_fd >= 0 && *rank == 0 && mesh->memory_fd < 0)
		mesh->memory_fd = memory_fd;
	if (mesh->memory_fd != memory_fd)
		fd_close(&memory_fd);
	return n > 0 ? 0 : n;
}

static int connect_below(struct muster_mesh *mesh, uint32_t rank, uint64_t end_us)
{
	struct peer *peer = &mesh->peers[rank];
	struct sockaddr_un addr;
	socklen_t len = card_address(&mesh->cards[rank], &addr);
	int err;

	peer->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (peer->fd < 0 || connect(peer->fd, (struct sockaddr *)&addr, len))
		return -errno;
	err = peer_process(peer->fd, &peer->pidfd);
	return err ? err : say_hello(mesh, rank, -1, end_us);
}

/* Someone from above, or a stranger, who is sent away: 1: a rank; 0: a stranger. */
static int accept_above(struct muster_mesh *mesh, int listen_fd, int memory_fd, uint64_t end_us)
{
	int pidfd = -1, fd, err;
	uint32_t rank = 0;

	err = readable(listen_fd, end_us);
	if (err)
		return err;
	fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		return errno == EMFILE || errno == ENFILE ? -errno : 0;
	err = peer_process(fd, &pidfd);
	if (!err)
		err = hear_hello(mesh, fd, end_us, &rank);
	if (err || rank <= mesh->rank || mesh->peers[rank].fd >= 0) {
		fd_close(&fd);
		fd_close(&pidfd);
		return err == -ETIMEDOUT || err == -EMFILE ? err : 0;
	}
	mesh->peers[rank] = (struct peer){ .fd = fd, .pidfd = pidfd, .wake_fd = -1 };
	err = say_hello(mesh, rank, mesh->rank ? -1 : memory_fd, end_us);
	return err ? err : 1;
}

static int connect_all(struct muster_mesh *mesh, int listen_fd, int memory_fd, uint64_t end_us,
		       uint32_t *rank)
{
	uint32_t above = mesh->size - 1 - mesh->rank, other;
	int err;

	for (*rank = 0; *rank < mesh->rank; ++*rank) {
		err = connect_below(mesh, *rank, end_us);
		if (err)
			return err;
	}
	while (above) {
		err = accept_above(mesh, listen_fd, memory_fd, end_us);
		for (*rank = mesh->rank + 1; *rank < mesh->size && mesh->peers[*rank].fd >= 0;)
			++*rank;
		if (err < 0)
			return err;
		above -= err;
	}
	for (*rank = 0; *rank < mesh->rank; ++*rank) {
		err = hear_hello(mesh, mesh->peers[*rank].fd, end_us, &other);
		if (err)
			return err;
	}
	return 0;
}

static bool count_crowded(const struct muster_mesh *mesh)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	for (uint32_t rank = 0; rank < mesh->size; rank++)
		CPU_OR(&cpus, &cpus, &mesh->cards[rank].cpus);
	return mesh->size > (uint32_t)CPU_COUNT(&cpus);
}

/* ---- the exchange --------------------------------------------------------------- */

/* Whether a limit of open files leaves room for nr more. */
static bool files_fit(rlim_t limit, uint32_t nr)
{
	DIR *open = opendir("/proc/self/fd");

	for (; open && readdir(open); nr++)
		;	/* . and .. and the folder itself are counted as well */
	if (open)
		closedir(open);
	return nr <= limit;
}

static int files_open(struct muster_mesh *mesh, struct card *card, int *listen_fd)
{
	struct rlimit limit;

	mesh->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (mesh->epoll_fd < 0)
		return -errno;
	mesh->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (mesh->wake_fd < 0)
		return -errno;
	/* Who sees now that it cannot have enough tells all at once. */
	if (getrlimit(RLIMIT_NOFILE, &limit) ||
	    !files_fit(limit.rlim_cur, FILES_PER_PEER * (mesh->size - 1)))
		return -EMFILE;
	return listen_open(card, mesh->size, listen_fd);
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
	snprintf(words, len, "%s: the limit is %llu (ulimit -n), and each rank needs %d of them for every other",
		 strerror(-err), (unsigned long long)limit.rlim_cur, FILES_PER_PEER);
}

/* Own card; what has failed so far goes out with it. */
static void card_fill(struct muster_mesh *mesh, struct card *card,
		      const struct muster_mesh_config *config, int *listen_fd, const char *why)
{
	card->error = config->error;
	card->pid = getpid();
	memcpy(card->note, config->note, sizeof(card->note));
	if (sched_getaffinity(0, sizeof(card->cpus), &card->cpus))
		CPU_SET(0, &card->cpus);
	if (!card->error && getrandom(&card->secret, sizeof(card->secret), 0) < 0)
		card->error = -errno;
	if (!card->error)
		card->error = files_open(mesh, card, listen_fd);
	if (config->error)
		snprintf(card->why, sizeof(card->why), "%s", why);
	else
		error_words(card->error, card->why, sizeof(card->why));
}

static int cards_check(const struct muster_mesh *mesh, char *why, size_t why_len)
{
	for (uint32_t rank = 0; rank < mesh->size; rank++) {
		const struct card *card = &mesh->cards[rank];

		if (!card->error)
			continue;
		if (rank == mesh->rank)
			snprintf(why, why_len, "%.127s", card->why);
		else
			snprintf(why, why_len, "rank %u: %.127s", rank, card->why);
		return card->error;
	}
	return 0;
}

static int meet(struct muster_mesh *mesh, const struct muster_oob *oob,
		const struct muster_mesh_config *config, int *listen_fd, char *why, size_t why_len)
{
	struct card card = { 0 };
	char words[128];
	uint32_t rank;
	int err;

	card_fill(mesh, &card, config, listen_fd, why);
	err = oob->allgather(oob->opaque, &card, mesh->cards, sizeof(card));
	if (err) {
		snprintf(why, why_len, "the ranks' exchange failed: %s", strerror(-err));
		return err;
	}
	err = cards_check(mesh, why, why_len);
	if (err)
		return err;
	err = connect_all(mesh, *listen_fd, config->memory_fd, now_us() + config->deadline_us,
			  &rank);
	error_words(err, words, sizeof(words));
	if (err)
		snprintf(why, why_len, "rank %u (process %u) cannot be reached: %s; the local device "
			 "needs all ranks on one host, in one network namespace, of one user", rank,
			 rank < mesh->size ? mesh->cards[rank].pid : 0, words);
	mesh->crowded = count_crowded(mesh);
	return err;
}

/* Descriptors, open and under way, count against the soft limit; here the hard one counts. */
int muster_mesh_meet(struct muster_mesh *mesh, const struct muster_oob *oob,
		     const struct muster_mesh_config *config, char *why, size_t why_len)
{
	int listen_fd = -1;
	int err;

	muster_limit_raise();	/* fewer ranks fit where it is refused */
	err = meet(mesh, oob, config, &listen_fd, why, why_len);
	fd_close(&listen_fd);
	muster_limit_restore();
	return err;
}
