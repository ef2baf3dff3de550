// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The mesh (mesh.h). Every rank listens on an abstract socket with a name that
 * the kernel chose, connects to the ranks below it and accepts those above. Names,
 * processors and a secret travel in one allgather; the secret and the peer's user
 * id keep strangers out. Everything that is waited for hangs on one epoll.
 */
#include "mesh.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "limit.h"

enum {
	EVENTS_AT_ONCE = 32,
	FDS_MAX = 2,	/* with one message */
	FILES_PER_PEER = 3,	/* connection, process, wake-up; and memory until it is mapped */
	NAME_LEN = 6,	/* of an autobound socket: NUL and five digits */
};

/* What an epoll event is about: kind in the upper half, rank in the lower. */
enum watch {
	WATCH_SOCKET,
	WATCH_PROCESS,
	WATCH_WAKE,	/* own eventfd */
	WATCH_OTHER,
};

struct peer {
	int fd;		/* -1: no connection, or none any more */
	int pidfd;
	int wake_fd;
	int inbound_fd;
	bool said_bye;
};

/* One rank's part of the allgather. */
struct card {
	int32_t error;
	uint32_t pid;
	uint64_t secret;
	char name[NAME_LEN];
	uint16_t name_len;
	uint8_t note[MUSTER_MESH_NOTE];
	char why[128];
	cpu_set_t cpus;
};

struct muster_mesh {
	const struct muster_mesh_events *events;
	void *owner;
	uint32_t rank;
	uint32_t size;
	int epoll_fd;
	int wake_fd;
	bool crowded;
	struct card *cards;
	struct peer *peers;
};

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000ull + ts.tv_nsec / 1000;
}

static void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* ---- messages ---------------------------------------------------------------- */

static int message_send(int fd, const struct muster_mesh_message *message, const int *fds,
			size_t nr_fds, int flags)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)message, .iov_len = sizeof(*message) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *head;

	if (nr_fds) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(nr_fds * sizeof(int));
		head = CMSG_FIRSTHDR(&msg);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(nr_fds * sizeof(int));
		memcpy(CMSG_DATA(head), fds, nr_fds * sizeof(int));
	}
	if (sendmsg(fd, &msg, MSG_NOSIGNAL | flags) == (ssize_t)sizeof(*message))
		return 0;
	/* Descriptors under way are limited, too: they land when the peers receive. */
	if (errno == EAGAIN || errno == EINTR || errno == ETOOMANYREFS || errno == ENOBUFS)
		return -EAGAIN;
	return -EHOSTUNREACH;
}

/*
 * 1: a message, with fds or -1; 0: none now; -ECONNRESET: end of file, or garbage. At our
 * own limit of open files the kernel leaves descriptors out: no fault of the sender's.
 */
static int message_receive(int fd, struct muster_mesh_message *message, int fds[FDS_MAX])
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = message, .iov_len = sizeof(*message) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *head;
	ssize_t n;

	for (int i = 0; i < FDS_MAX; i++)
		fds[i] = -1;
	do {	/* a reset is told once and first; what was sent before it is still there */
		n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0)
		return errno == EAGAIN ? 0 : -ECONNRESET;
	head = CMSG_FIRSTHDR(&msg);
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(head), head->cmsg_len - CMSG_LEN(0));
	if (n == sizeof(*message) && !(msg.msg_flags & MSG_TRUNC))
		return 1;
	for (int i = 0; i < FDS_MAX; i++)
		fd_close(&fds[i]);
	return -ECONNRESET;
}

/* ---- meeting ------------------------------------------------------------------ */

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

static int watch(struct muster_mesh *mesh, int fd, enum watch kind, uint32_t rank)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP,
				     .data.u64 = (uint64_t)kind << 32 | rank };

	return epoll_ctl(mesh->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* HELLO: key is the sender's rank, addr the receiver's secret. */
static int say_hello(struct muster_mesh *mesh, uint32_t rank, int inbound_fd)
{
	struct muster_mesh_message hello = {
		.kind = htole32(MUSTER_MESH_HELLO),
		.key = htole32(mesh->rank),
		.addr = htole64(mesh->cards[rank].secret),
	};
	int fds[FDS_MAX] = { mesh->wake_fd, inbound_fd };

	return message_send(mesh->peers[rank].fd, &hello, fds, inbound_fd < 0 ? 1 : 2, 0);
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
static int hear_hello(struct muster_mesh *mesh, int fd, uint64_t end_us, uint32_t *rank,
		      int fds[FDS_MAX])
{
	struct muster_mesh_message hello;
	int n = 0, err;

	while (!n) {
		err = readable(fd, end_us);
		if (err)
			return err;
		n = message_receive(fd, &hello, fds);
	}
	if (n < 0)
		return n;
	*rank = le32toh(hello.key);
	if (le32toh(hello.kind) != MUSTER_MESH_HELLO || *rank >= mesh->size ||
	    le64toh(hello.addr) != mesh->cards[mesh->rank].secret)
		n = -EPERM;
	else if (fds[0] < 0)
		n = -EMFILE;	/* it was sent, but we have no room */
	if (n > 0)
		return 0;
	fd_close(&fds[0]);
	fd_close(&fds[1]);
	return n;
}

static int connect_below(struct muster_mesh *mesh, uint32_t rank, int inbound_fd)
{
	struct peer *peer = &mesh->peers[rank];
	struct sockaddr_un addr;
	socklen_t len = card_address(&mesh->cards[rank], &addr);
	int err;

	peer->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (peer->fd < 0 || connect(peer->fd, (struct sockaddr *)&addr, len))
		return -errno;
	err = peer_process(peer->fd, &peer->pidfd);
	return err ? err : say_hello(mesh, rank, inbound_fd);
}

/* Someone from above, or a stranger, who is sent away: 1: a rank; 0: a stranger. */
static int accept_above(struct muster_mesh *mesh, int listen_fd, int inbound_fd, uint64_t end_us)
{
	int fds[FDS_MAX], pidfd = -1, fd, err;
	uint32_t rank = 0;

	err = readable(listen_fd, end_us);
	if (err)
		return err;
	fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		return errno == EMFILE || errno == ENFILE ? -errno : 0;
	err = peer_process(fd, &pidfd);
	if (!err)
		err = hear_hello(mesh, fd, end_us, &rank, fds);
	if (err || rank <= mesh->rank || mesh->peers[rank].fd >= 0) {
		fd_close(&fd);
		fd_close(&pidfd);
		return err == -ETIMEDOUT || err == -EMFILE ? err : 0;
	}
	mesh->peers[rank] = (struct peer){ fd, pidfd, fds[0], fds[1], false };
	err = say_hello(mesh, rank, inbound_fd);
	return err ? err : 1;
}

static int connect_all(struct muster_mesh *mesh, int listen_fd, int inbound_fd, uint64_t end_us,
		       uint32_t *rank)
{
	uint32_t above = mesh->size - 1 - mesh->rank, other;
	int fds[FDS_MAX], err;

	for (*rank = 0; *rank < mesh->rank; ++*rank) {
		err = connect_below(mesh, *rank, inbound_fd);
		if (err)
			return err;
	}
	while (above) {
		err = accept_above(mesh, listen_fd, inbound_fd, end_us);
		for (*rank = mesh->rank + 1; *rank < mesh->size && mesh->peers[*rank].fd >= 0;)
			++*rank;
		if (err < 0)
			return err;
		above -= err;
	}
	for (*rank = 0; *rank < mesh->rank; ++*rank) {
		err = hear_hello(mesh, mesh->peers[*rank].fd, end_us, &other, fds);
		if (err)
			return err;
		mesh->peers[*rank].wake_fd = fds[0];
		mesh->peers[*rank].inbound_fd = fds[1];
	}
	return 0;
}

static int watch_all(struct muster_mesh *mesh)
{
	int err = watch(mesh, mesh->wake_fd, WATCH_WAKE, 0);

	for (uint32_t rank = 0; rank < mesh->size && !err; rank++) {
		struct peer *peer = &mesh->peers[rank];

		if (rank == mesh->rank)
			continue;
		err = watch(mesh, peer->fd, WATCH_SOCKET, rank);
		if (!err && peer->pidfd >= 0)
			err = watch(mesh, peer->pidfd, WATCH_PROCESS, rank);
	}
	return err;
}

static bool count_crowded(const struct muster_mesh *mesh)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	for (uint32_t rank = 0; rank < mesh->size; rank++)
		CPU_OR(&cpus, &cpus, &mesh->cards[rank].cpus);
	return mesh->size > (uint32_t)CPU_COUNT(&cpus);
}

/* ---- opening and closing -------------------------------------------------------- */

static void mesh_free(struct muster_mesh *mesh)
{
	for (uint32_t rank = 0; rank < mesh->size && mesh->peers; rank++) {
		struct peer *peer = &mesh->peers[rank];

		fd_close(&peer->fd);
		fd_close(&peer->pidfd);
		fd_close(&peer->wake_fd);
		fd_close(&peer->inbound_fd);
	}
	fd_close(&mesh->wake_fd);
	fd_close(&mesh->epoll_fd);
	free(mesh->peers);
	free(mesh->cards);
	free(mesh);
}

static struct muster_mesh *mesh_new(const struct muster_oob *oob,
				    const struct muster_mesh_config *config)
{
	struct muster_mesh *mesh = calloc(1, sizeof(*mesh));

	if (!mesh)
		return NULL;
	mesh->events = config->events;
	mesh->owner = config->owner;
	mesh->rank = oob->rank;
	mesh->size = oob->size;
	mesh->epoll_fd = -1;
	mesh->wake_fd = -1;
	mesh->cards = calloc(oob->size, sizeof(*mesh->cards));
	mesh->peers = calloc(oob->size, sizeof(*mesh->peers));
	for (uint32_t rank = 0; rank < oob->size && mesh->peers; rank++)
		mesh->peers[rank] = (struct peer){ -1, -1, -1, -1, false };
	if (mesh->cards && mesh->peers)
		return mesh;
	mesh_free(mesh);
	return NULL;
}

/* What every mesh needs, however many ranks it has. */
static int files_open(struct muster_mesh *mesh, struct card *card, int *listen_fd)
{
	mesh->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (mesh->epoll_fd < 0)
		return -errno;
	mesh->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (mesh->wake_fd < 0)
		return -errno;
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
	err = connect_all(mesh, *listen_fd, config->inbound_fd, now_us() + config->deadline_us,
			  &rank);
	if (!err)
		err = watch_all(mesh);
	error_words(err, words, sizeof(words));
	if (err)
		snprintf(why, why_len, "rank %u (process %u) cannot be reached: %s; the local device "
			 "needs all ranks on one host, in one network namespace, of one user", rank,
			 rank < mesh->size ? mesh->cards[rank].pid : 0, words);
	mesh->crowded = count_crowded(mesh);
	return err;
}

/*
 * Descriptors that are under way count against the soft limit of open files, all of a
 * user's together, and every rank sends two to every other. As long as they meet, the
 * hard limit counts.
 */
static int meet_all(struct muster_mesh *mesh, const struct muster_oob *oob,
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

int muster_mesh_open(const struct muster_oob *oob, const struct muster_mesh_config *config,
		     struct muster_mesh **result, char *why, size_t why_len)
{
	struct muster_mesh *mesh = mesh_new(oob, config);
	int err;

	if (!mesh) {
		snprintf(why, why_len, "no memory for what %u ranks say", oob->size);
		return -ENOMEM;
	}
	err = meet_all(mesh, oob, config, why, why_len);
	if (err)
		mesh_free(mesh);
	else
		*result = mesh;
	return err;
}

void muster_mesh_close(struct muster_mesh *mesh)
{
	struct muster_mesh_message bye = { .kind = htole32(MUSTER_MESH_BYE) };

	for (uint32_t rank = 0; rank < mesh->size; rank++)
		if (mesh->peers[rank].fd >= 0)
			message_send(mesh->peers[rank].fd, &bye, NULL, 0, MSG_DONTWAIT);
	mesh_free(mesh);
}

/* ---- what peers have told ---------------------------------------------------------- */

int muster_mesh_inbound(struct muster_mesh *mesh, uint32_t rank)
{
	int fd = mesh->peers[rank].inbound_fd;

	mesh->peers[rank].inbound_fd = -1;
	return fd;
}

const uint8_t *muster_mesh_note(const struct muster_mesh *mesh, uint32_t rank)
{
	return mesh->cards[rank].note;
}

bool muster_mesh_crowded(const struct muster_mesh *mesh)
{
	return mesh->crowded;
}

/* ---- running ------------------------------------------------------------------------ */

int muster_mesh_send(struct muster_mesh *mesh, uint32_t rank,
		     const struct muster_mesh_message *message, int fd)
{
	struct muster_mesh_message little = {
		.kind = htole32(message->kind),
		.key = htole32(message->key),
		.addr = htole64(message->addr),
		.bytes = htole64(message->bytes),
	};

	if (mesh->peers[rank].fd < 0)
		return -EHOSTUNREACH;
	return message_send(mesh->peers[rank].fd, &little, &fd, fd >= 0, MSG_DONTWAIT);
}

void muster_mesh_wake(struct muster_mesh *mesh, uint32_t rank)
{
	uint64_t one = 1;

	/* It fails when the peer is awake 2^64 times already, or gone: both are fine. */
	if (mesh->peers[rank].wake_fd >= 0 &&
	    write(mesh->peers[rank].wake_fd, &one, sizeof(one)) < 0)
		return;
}

int muster_mesh_watch(struct muster_mesh *mesh, int fd)
{
	return watch(mesh, fd, WATCH_OTHER, 0);
}

static void peer_end(struct muster_mesh *mesh, uint32_t rank)
{
	struct peer *peer = &mesh->peers[rank];

	/* Closing is not enough: a child of ours may have them, too. */
	epoll_ctl(mesh->epoll_fd, EPOLL_CTL_DEL, peer->fd, NULL);
	if (peer->pidfd >= 0)
		epoll_ctl(mesh->epoll_fd, EPOLL_CTL_DEL, peer->pidfd, NULL);
	fd_close(&peer->fd);
	fd_close(&peer->pidfd);
	fd_close(&peer->wake_fd);
	mesh->events->lost(mesh->owner, rank, peer->said_bye);
}

static int peer_take(struct muster_mesh *mesh, uint32_t rank,
		     const struct muster_mesh_message *little, int fds[FDS_MAX])
{
	struct muster_mesh_message message = {
		.kind = le32toh(little->kind),
		.key = le32toh(little->key),
		.addr = le64toh(little->addr),
		.bytes = le64toh(little->bytes),
	};

	fd_close(&fds[1]);
	if (message.kind == MUSTER_MESH_REGION || message.kind == MUSTER_MESH_WITHDRAW) {
		mesh->events->message(mesh->owner, rank, &message, fds[0]);
		return 0;
	}
	fd_close(&fds[0]);
	mesh->peers[rank].said_bye = message.kind == MUSTER_MESH_BYE;
	return -ECONNRESET;	/* BYE, or nothing that we know: the end in any case */
}

static void peer_service(struct muster_mesh *mesh, uint32_t rank, bool dead)
{
	struct peer *peer = &mesh->peers[rank];
	struct muster_mesh_message message;
	int fds[FDS_MAX];
	int n = 1;

	if (peer->fd < 0)
		return;		/* an earlier event of the same batch */
	while (n > 0) {
		n = message_receive(peer->fd, &message, fds);
		if (n > 0 && peer_take(mesh, rank, &message, fds))
			n = -ECONNRESET;
	}
	if (n < 0 || dead)
		peer_end(mesh, rank);
}

static void event_handle(struct muster_mesh *mesh, const struct epoll_event *event)
{
	uint32_t rank = event->data.u64 & UINT32_MAX;
	uint64_t count;

	switch (event->data.u64 >> 32) {
	case WATCH_SOCKET:
		peer_service(mesh, rank, false);
		break;
	case WATCH_PROCESS:
		peer_service(mesh, rank, true);
		break;
	case WATCH_WAKE:
		if (read(mesh->wake_fd, &count, sizeof(count)) < 0)
			break;	/* somebody else's event: no harm */
		break;
	}
}

static void events_take(struct muster_mesh *mesh, int timeout_ms)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	int nr;

	do {
		nr = epoll_wait(mesh->epoll_fd, events, EVENTS_AT_ONCE, timeout_ms);
		for (int i = 0; i < nr; i++)
			event_handle(mesh, &events[i]);
		timeout_ms = 0;
	} while (nr == EVENTS_AT_ONCE);
}

void muster_mesh_service(struct muster_mesh *mesh)
{
	events_take(mesh, 0);
}

void muster_mesh_wait(struct muster_mesh *mesh, uint64_t timeout_us)
{
	uint64_t ms = (timeout_us + 999) / 1000;

	events_take(mesh, ms > 3600000 ? 3600000 : ms);
}
