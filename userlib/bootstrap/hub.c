// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The hub (hub.h). It is always in one of three phases: meeting, until every rank
 * has said hello; collecting one piece from each; replying to all. Nobody's next
 * piece is read before all have their reply, so one buffer serves everybody.
 */
#include "hub.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum phase {
	MEETING,
	COLLECTING,
	REPLYING,
};

struct conn {
	int fd;			/* -1: the owner itself, or gone */
	int pidfd;
	pid_t pid;
	bool local;
	bool shares;		/* can be given memory */
	bool known;		/* has said hello */
	bool gone;
	bool ready;		/* its piece is complete */
	uint32_t rank;
	struct muster_frame head;
	size_t got;		/* bytes of head and piece that have come */
	size_t sent;		/* bytes of the reply that have left */
};

struct muster_hub {
	uint32_t size;
	uint32_t nr_conns;
	uint32_t nr_known;
	uint32_t nr_ready;
	enum phase phase;
	int listen_fd;
	int error;
	size_t piece_len;
	uint8_t *pieces;	/* size * piece_len */
	void *local_out;	/* where the owner's own reply goes */
	struct muster_frame reply;
	int shared_fd;		/* the pieces once more, for those that can be given them; -1 */
	struct conn *conns;	/* size + MUSTER_HUB_STRANGERS_MAX */
	struct pollfd *fds;	/* two a connection, and one */
	char why[MUSTER_HUB_WHY_MAX];
};

static struct muster_frame frame_make(const struct muster_hub *hub, int kind, size_t bytes)
{
	return (struct muster_frame){
		.magic = htole32(MUSTER_FRAME_MAGIC),
		.version = htole16(MUSTER_FRAME_VERSION),
		.kind = htole16(kind),
		.size = htole32(hub->size),
		.bytes = htole32(bytes),
	};
}

static bool is_shared(const struct muster_hub *hub, const struct conn *conn)
{
	return hub->shared_fd >= 0 && conn->shares;
}

static size_t reply_len(const struct muster_hub *hub, const struct conn *conn)
{
	return sizeof(hub->reply) + (is_shared(hub, conn) ? 0 : le32toh(hub->reply.bytes));
}

int muster_hub_create(uint32_t size, struct muster_hub **result)
{
	size_t nr = (size_t)size + MUSTER_HUB_STRANGERS_MAX;
	struct muster_hub *hub = calloc(1, sizeof(*hub));

	if (!hub)
		return -ENOMEM;
	hub->conns = calloc(nr, sizeof(*hub->conns));
	if (!hub->conns)
		goto err_free_hub;
	hub->fds = calloc(2 * nr + 1, sizeof(*hub->fds));
	if (!hub->fds)
		goto err_free_conns;
	hub->size = size;
	hub->listen_fd = -1;
	hub->shared_fd = -1;
	*result = hub;
	return 0;

err_free_conns:
	free(hub->conns);
err_free_hub:
	free(hub);
	return -ENOMEM;
}

static void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void conn_close(struct conn *conn)
{
	fd_close(&conn->fd);
	fd_close(&conn->pidfd);
}

void muster_hub_destroy(struct muster_hub *hub)
{
	if (!hub)
		return;
	for (uint32_t i = 0; i < hub->nr_conns; i++)
		conn_close(&hub->conns[i]);
	fd_close(&hub->listen_fd);
	fd_close(&hub->shared_fd);
	free(hub->pieces);
	free(hub->fds);
	free(hub->conns);
	free(hub);
}

void muster_hub_listen(struct muster_hub *hub, int fd)
{
	hub->listen_fd = fd;
}

bool muster_hub_met(const struct muster_hub *hub)
{
	return hub->phase != MEETING;
}

const char *muster_hub_error(const struct muster_hub *hub)
{
	return hub->why;
}

bool muster_hub_gone(const struct muster_hub *hub)
{
	for (uint32_t i = 0; i < hub->nr_conns; i++)
		if (!hub->conns[i].gone)
			return false;
	return hub->nr_known == hub->size;
}

static bool rank_known(const struct muster_hub *hub, uint32_t rank)
{
	for (uint32_t i = 0; i < hub->nr_conns; i++)
		if (hub->conns[i].known && hub->conns[i].rank == rank)
			return true;
	return false;
}

void muster_hub_missing(const struct muster_hub *hub, char *text, size_t text_len)
{
	size_t len = 0;

	text[0] = 0;
	for (uint32_t rank = 0; rank < hub->size; rank++) {
		if (rank_known(hub, rank))
			continue;
		if (len + 24 > text_len) {
			snprintf(text + len, text_len - len, ", ...");
			return;
		}
		len += snprintf(text + len, text_len - len, "%s%u", len ? ", " : "", rank);
	}
}

int muster_hub_fail(struct muster_hub *hub, int error, const char *format, ...)
{
	struct {
		struct muster_frame head;
		char why[MUSTER_HUB_WHY_MAX];
	} say;
	size_t len;
	va_list args;

	if (hub->error)
		return hub->error;
	va_start(args, format);
	vsnprintf(hub->why, sizeof(hub->why), format, args);
	va_end(args);
	hub->error = error;
	len = strlen(hub->why);
	say.head = frame_make(hub, MUSTER_FRAME_FAIL, len);
	say.head.error = htole32(-error);
	memcpy(say.why, hub->why, len);
	for (uint32_t i = 0; i < hub->nr_conns; i++) {
		struct conn *conn = &hub->conns[i];
		bool inside = hub->phase == REPLYING && conn->sent &&
			      conn->sent < reply_len(hub, conn);

		/* Inside a reply there is no room for a sentence; the end of file must do. */
		if (conn->fd >= 0 && !inside)
			send(conn->fd, &say, sizeof(say.head) + len, MSG_DONTWAIT | MSG_NOSIGNAL);
		conn_close(conn);
	}
	fd_close(&hub->listen_fd);
	return error;
}

static struct conn *conn_new(struct muster_hub *hub)
{
	struct conn *conn;

	if (hub->nr_conns >= hub->size + MUSTER_HUB_STRANGERS_MAX)
		return NULL;
	conn = &hub->conns[hub->nr_conns++];
	*conn = (struct conn){ .fd = -1, .pidfd = -1 };
	return conn;
}

int muster_hub_add(struct muster_hub *hub, int fd, pid_t pid)
{
	struct conn *conn = conn_new(hub);

	if (!conn) {
		close(fd);
		return -ENOSPC;
	}
	conn->fd = fd;
	conn->pid = pid;
	if (pid)
		conn->pidfd = syscall(SYS_pidfd_open, pid, 0);
	return 0;
}

/* While others are still replied to, a rank's next piece stays in its socket. */
static bool conn_wants_read(const struct muster_hub *hub, const struct conn *conn)
{
	return !conn->known || (hub->phase == COLLECTING && !conn->ready);
}

static bool conn_wants_write(const struct muster_hub *hub, const struct conn *conn)
{
	return hub->phase == REPLYING && conn->known &&
	       conn->sent < reply_len(hub, conn);
}

static void reply_end(struct muster_hub *hub)
{
	for (uint32_t i = 0; i < hub->nr_conns; i++) {
		const struct conn *conn = &hub->conns[i];

		if (!conn->local && !conn->gone && conn_wants_write(hub, conn))
			return;
	}
	hub->phase = COLLECTING;
	fd_close(&hub->shared_fd);
	free(hub->pieces);
	hub->pieces = NULL;
}

/* What would be written once for each rank is written once. Else they get it as bytes. */
static void reply_share(struct muster_hub *hub, size_t bytes)
{
	size_t done = 0;
	ssize_t n = 0;

	if (bytes < MUSTER_HUB_SHARED_FROM)
		return;
	hub->shared_fd = memfd_create("muster-pieces", MFD_CLOEXEC);
	while (hub->shared_fd >= 0 && n >= 0 && done < bytes) {
		n = pwrite(hub->shared_fd, hub->pieces + done, bytes - done, done);
		done += n > 0 ? n : 0;
	}
	if (n < 0)
		fd_close(&hub->shared_fd);
}

/* Every reply starts here: nothing is read before all of it has been written. */
static void reply_start(struct muster_hub *hub, int kind, size_t bytes)
{
	hub->reply = frame_make(hub, kind, bytes);
	hub->phase = REPLYING;
	for (uint32_t i = 0; i < hub->nr_conns; i++) {
		struct conn *conn = &hub->conns[i];

		if (!conn->known)
			continue;
		conn->sent = 0;
		conn->got = 0;
		conn->ready = false;
	}
	hub->nr_ready = 0;
	reply_share(hub, bytes);
	if (bytes && hub->local_out)
		memcpy(hub->local_out, hub->pieces, bytes);
	reply_end(hub);	/* there may be nobody but the owner */
}

static void conn_known(struct muster_hub *hub, struct conn *conn, uint32_t rank)
{
	conn->known = true;
	conn->rank = rank;
	if (++hub->nr_known < hub->size)
		return;
	fd_close(&hub->listen_fd);
	reply_start(hub, MUSTER_FRAME_WELCOME, 0);
}

void muster_hub_join(struct muster_hub *hub, uint32_t rank)
{
	struct conn *conn = conn_new(hub);

	conn->local = true;
	conn_known(hub, conn, rank);
}

static int take_hello(struct muster_hub *hub, struct conn *conn)
{
	uint32_t rank = le32toh(conn->head.rank);
	uint32_t size = le32toh(conn->head.size);

	if (size != hub->size)
		return muster_hub_fail(hub, -EINVAL,
				       "rank %u (process %d) was told MUSTER_SIZE=%u, the others %u: "
				       "give all ranks the same", rank, conn->pid, size, hub->size);
	if (rank >= hub->size)
		return muster_hub_fail(hub, -EINVAL, "process %d says that it is rank %u of %u: "
				       "ranks are 0 to %u", conn->pid, rank, size, size - 1);
	if (rank_known(hub, rank))
		return muster_hub_fail(hub, -EINVAL, "two processes say that they are rank %u "
				       "(the second is %d): give each its own MUSTER_RANK",
				       rank, conn->pid);
	conn->got = 0;
	conn_known(hub, conn, rank);
	return 0;
}

/* The first piece says how long all of this round are. */
static int take_length(struct muster_hub *hub, uint32_t rank, size_t bytes)
{
	uint8_t *pieces;

	if (bytes > MUSTER_HUB_PIECE_MAX || bytes * hub->size > MUSTER_HUB_ALL_MAX)
		return muster_hub_fail(hub, -EMSGSIZE, "rank %u gathers %zu bytes: at most %u, and "
				       "%u from all", rank, bytes, MUSTER_HUB_PIECE_MAX,
				       MUSTER_HUB_ALL_MAX);
	if (hub->pieces) {
		if (bytes == hub->piece_len)
			return 0;
		return muster_hub_fail(hub, -EPROTO, "rank %u gathers %zu bytes, others %zu: "
				       "the ranks called different things", rank, bytes,
				       hub->piece_len);
	}
	pieces = calloc(hub->size, bytes ? bytes : 1);
	if (!pieces)
		return muster_hub_fail(hub, -ENOMEM, "no memory to gather %u times %zu bytes",
				       hub->size, bytes);
	hub->pieces = pieces;
	hub->piece_len = bytes;
	return 0;
}

static int take_head(struct muster_hub *hub, struct conn *conn)
{
	const struct muster_frame *head = &conn->head;
	int kind = conn->known ? MUSTER_FRAME_PIECE : MUSTER_FRAME_HELLO;

	if (le32toh(head->magic) != MUSTER_FRAME_MAGIC ||
	    le16toh(head->version) != MUSTER_FRAME_VERSION || le16toh(head->kind) != kind ||
	    (!conn->known && head->bytes))
		return muster_hub_fail(hub, -EPROTO, "process %d does not speak version %d of the "
				       "rendezvous: all ranks need the same libmuster",
				       conn->pid, MUSTER_FRAME_VERSION);
	if (!conn->known)
		return take_hello(hub, conn);
	return take_length(hub, conn->rank, le32toh(head->bytes));
}

static void take_piece(struct muster_hub *hub, struct conn *conn)
{
	conn->ready = true;
	if (++hub->nr_ready == hub->size)
		reply_start(hub, MUSTER_FRAME_GATHERED, hub->piece_len * hub->size);
}

static void conn_gone(struct muster_hub *hub, struct conn *conn)
{
	conn_close(conn);
	if (conn->known) {
		conn->gone = true;
		return;
	}
	*conn = hub->conns[--hub->nr_conns];	/* a stranger: as if it had never come */
}

/* Read what there is of one head and one piece, no further. */
static void conn_read(struct muster_hub *hub, struct conn *conn)
{
	const size_t head_len = sizeof(conn->head);
	uint8_t *to = (uint8_t *)&conn->head + conn->got;
	size_t want = head_len - conn->got;
	ssize_t n;

	if (conn->got >= head_len) {
		to = hub->pieces + conn->rank * hub->piece_len + (conn->got - head_len);
		want = hub->piece_len - (conn->got - head_len);
	}
	n = recv(conn->fd, to, want, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		conn_gone(hub, conn);
		return;
	}
	conn->got += n;
	if (conn->got == head_len && take_head(hub, conn))
		return;
	if (conn->got >= head_len && conn->got == head_len + hub->piece_len)
		take_piece(hub, conn);
}

/* Where descriptors under way are limited, this one gets the bytes. */
static ssize_t share(struct muster_hub *hub, struct conn *conn)
{
	struct muster_frame head = hub->reply;
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
				.cmsg_len = CMSG_LEN(sizeof(int)) } };
	struct iovec part = { &head, sizeof(head) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	ssize_t n;

	head.kind = htole16(MUSTER_FRAME_SHARED);
	memcpy(CMSG_DATA(&control.head), &hub->shared_fd, sizeof(int));
	n = sendmsg(conn->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && errno == ETOOMANYREFS) {
		conn->shares = false;
		errno = EAGAIN;
	}
	return n;
}

static void conn_write(struct muster_hub *hub, struct conn *conn)
{
	const size_t head_len = sizeof(hub->reply);
	const uint8_t *from = (const uint8_t *)&hub->reply + conn->sent;
	size_t want = head_len - conn->sent;
	ssize_t n;

	if (conn->sent >= head_len) {
		from = hub->pieces + (conn->sent - head_len);
		want = reply_len(hub, conn) - conn->sent;
	}
	if (is_shared(hub, conn) && !conn->sent)
		n = share(hub, conn);
	else
		n = send(conn->fd, from, want, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n > 0)
		conn->sent += n;
	else if (errno != EAGAIN && errno != EINTR)
		conn_gone(hub, conn);
}

/* Somebody waits and somebody else is not there any more. */
static int check_gone(struct muster_hub *hub)
{
	bool waited = hub->phase == MEETING || (hub->phase == COLLECTING && hub->pieces);

	for (uint32_t i = 0; i < hub->nr_conns && waited; i++) {
		const struct conn *conn = &hub->conns[i];
		char process[32] = "";

		if (!conn->gone || conn->ready)
			continue;
		if (conn->pid)
			snprintf(process, sizeof(process), " (process %d)", conn->pid);
		return muster_hub_fail(hub, -ECONNRESET, "rank %u%s has died or left the job while "
				       "others wait for it", conn->rank, process);
	}
	return 0;
}

/* The kernel refuses one descriptor more, or to poll so many: it will the next time, too. */
static int too_many_files(struct muster_hub *hub, int error)
{
	struct rlimit limit = { 0 };

	getrlimit(RLIMIT_NOFILE, &limit);
	return muster_hub_fail(hub, error, "%u ranks cannot meet: two open files for each are too "
			       "many where the limit is %llu (%s); raise it with ulimit -n",
			       hub->size, (unsigned long long)limit.rlim_cur, strerror(-error));
}

static void listen_accept(struct muster_hub *hub)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int fd = accept4(hub->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0 && (errno == EMFILE || errno == ENFILE))
		too_many_files(hub, -errno);
	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) || cred.uid != geteuid())
		close(fd);	/* another user's: none of our ranks, so none of our errors */
	else if (!muster_hub_add(hub, fd, cred.pid))
		hub->conns[hub->nr_conns - 1].shares = true;
}

/* Two entries a connection, in order, so that the answers are found again. */
uint32_t muster_hub_fds(const struct muster_hub *hub, struct pollfd *fds)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < hub->nr_conns; i++) {
		const struct conn *conn = &hub->conns[i];

		fds[nr++] = (struct pollfd){ .fd = conn->fd, .events = POLLRDHUP |
					     (conn_wants_read(hub, conn) ? POLLIN : 0) |
					     (conn_wants_write(hub, conn) ? POLLOUT : 0) };
		fds[nr++] = (struct pollfd){ .fd = conn->pidfd, .events = POLLIN };
	}
	fds[nr++] = (struct pollfd){ .fd = hub->listen_fd, .events = POLLIN };
	return nr;
}

int muster_hub_step(struct muster_hub *hub, int timeout_ms)
{
	uint32_t nr_conns = hub->nr_conns, nr;

	if (hub->error)
		return hub->error;
	nr = muster_hub_fds(hub, hub->fds);
	if (poll(hub->fds, nr, timeout_ms) < 0)
		return errno == EINTR ? 0 : too_many_files(hub, -errno);
	/* Backwards: a stranger that goes is replaced by the last connection. */
	for (uint32_t i = nr_conns; i-- > 0 && !hub->error;) {
		struct conn *conn = &hub->conns[i];
		short events = hub->fds[2 * i].revents;

		if ((events & POLLOUT) && conn_wants_write(hub, conn))
			conn_write(hub, conn);
		else if ((events & POLLIN) && conn_wants_read(hub, conn))
			conn_read(hub, conn);
		else if ((events & ~(POLLIN | POLLOUT)) || hub->fds[2 * i + 1].revents)
			conn_gone(hub, conn);
	}
	if (!hub->error && hub->listen_fd >= 0 && hub->fds[nr - 1].revents)
		listen_accept(hub);
	if (hub->phase == REPLYING)
		reply_end(hub);
	return hub->error ? hub->error : check_gone(hub);
}

static struct conn *conn_local(struct muster_hub *hub)
{
	uint32_t i = 0;

	while (!hub->conns[i].local)
		i++;
	return &hub->conns[i];
}

int muster_hub_gather(struct muster_hub *hub, const void *in, void *out, size_t bytes)
{
	struct conn *conn = conn_local(hub);
	int err = hub->error;

	while (!err && hub->phase != COLLECTING)
		err = muster_hub_step(hub, -1);
	if (!err)
		err = take_length(hub, conn->rank, bytes);
	if (err)
		return err;
	hub->local_out = out;
	if (bytes)
		memcpy(hub->pieces + conn->rank * bytes, in, bytes);
	take_piece(hub, conn);
	while (!err && (conn->ready || hub->phase == REPLYING))
		err = muster_hub_step(hub, -1);
	return err;
}
