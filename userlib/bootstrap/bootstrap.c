// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Bootstrap (bootstrap.h): the environment is read strictly and completely before
 * anything is opened. Rank 0 of a "unix:" rendezvous runs the hub inside its own
 * allgather; everybody else is a client of it with one blocking stream.
 */
#include "bootstrap.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "hub.h"
#include "muster_desc.h"
#include "namespace.h"

#define HOW_TO_RUN "run it under muster-run, or set MUSTER_RANK, MUSTER_SIZE and MUSTER_RENDEZVOUS"

enum {
	DEADLINE_S = 10,
	DEADLINE_MAX_S = 7 * 86400,
	GRACE_US = 500000,	/* for the hub's sentence, which is better than ours */
	RETRY_US = 2000,
};

struct bootstrap {
	uint32_t rank;
	uint32_t size;
	uint64_t deadline_us;	/* how long to wait for the others */
	int fd;			/* to the hub, or -1 */
	struct muster_hub *hub;	/* rank 0's own, or NULL */
	const char *rendezvous;	/* valid during muster_bootstrap_env() */
	char why[MUSTER_HUB_WHY_MAX];
};

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000ull + ts.tv_nsec / 1000;
}

static int __attribute__((format(printf, 3, 4)))
fail(struct bootstrap *boot, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(boot->why, sizeof(boot->why), format, args);
	va_end(args);
	return error;
}

/* ---- the environment ---------------------------------------------------------- */

static int env_missing(struct bootstrap *boot, const char *name, const char *expected)
{
	return fail(boot, -EINVAL, "%s is not set: expected %s; " HOW_TO_RUN, name, expected);
}

static int env_number(struct bootstrap *boot, const char *name, uint32_t min, uint32_t max,
		      uint32_t *result)
{
	const char *text = getenv(name);
	char expected[64];
	unsigned long value;
	char *end;

	snprintf(expected, sizeof(expected), "a whole number from %u to %u", min, max);
	if (!text)
		return env_missing(boot, name, expected);
	errno = 0;
	value = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno || value < min || value > max)
		return fail(boot, -EINVAL, "%s=%.64s: expected %s; " HOW_TO_RUN, name, text,
			    expected);
	*result = value;
	return 0;
}

int muster_bootstrap_deadline(uint64_t *deadline_us, char *why, size_t why_len)
{
	const char *text = getenv("MUSTER_DEADLINE");
	double seconds = DEADLINE_S;
	char *end;

	if (text) {
		seconds = strtod(text, &end);
		if (text[strspn(text, "0123456789.")] || end == text || *end ||
		    seconds < 0.001 || seconds > DEADLINE_MAX_S) {
			snprintf(why, why_len, "MUSTER_DEADLINE=%.64s: expected seconds, from 0.001 "
				 "to %d; unset it for %d", text, DEADLINE_MAX_S, DEADLINE_S);
			return -EINVAL;
		}
	}
	*deadline_us = seconds * 1e6;
	return 0;
}

static int env_rendezvous(struct bootstrap *boot)
{
	const char *text = getenv("MUSTER_RENDEZVOUS");
	const char *expected = "unix:NAME, fd:NUMBER or the /PATH of a character device";
	size_t name_max = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;

	if (!text)
		return env_missing(boot, "MUSTER_RENDEZVOUS", expected);
	boot->rendezvous = text;
	if (text[0] == '/')
		return 0;
	if (!strncmp(text, "unix:", 5) && text[5] && strlen(text + 5) <= name_max)
		return 0;
	if (!strncmp(text, "fd:", 3) && text[3] && strlen(text) < 12 &&
	    !text[3 + strspn(text + 3, "0123456789")])
		return 0;
	return fail(boot, -EINVAL, "MUSTER_RENDEZVOUS=%.128s: expected %s, NAME of at most %zu "
		    "bytes; " HOW_TO_RUN, text, expected, name_max);
}

static int env_read(struct bootstrap *boot)
{
	int err;

	err = muster_bootstrap_deadline(&boot->deadline_us, boot->why, sizeof(boot->why));
	if (!err)
		err = env_number(boot, "MUSTER_SIZE", 1, MUSTER_MEMBERS_MAX, &boot->size);
	if (!err)
		err = env_number(boot, "MUSTER_RANK", 0, boot->size - 1, &boot->rank);
	if (!err)
		err = env_rendezvous(boot);
	return err;
}

/* ---- rank 0 of unix:NAME: the hub ---------------------------------------------- */

static socklen_t abstract_name(struct sockaddr_un *addr, const char *name)
{
	size_t len = strlen(name);

	*addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(addr->sun_path + 1, name, len);
	return offsetof(struct sockaddr_un, sun_path) + 1 + len;
}

static int fail_socket(struct bootstrap *boot, int err)
{
	const char *name = getenv("MUSTER_NAMESPACE");

	return fail(boot, err, "no socket%s%s: %s", name ? " in MUSTER_NAMESPACE=" : "",
		    name ? name : "", strerror(-err));
}

static int hub_open(struct bootstrap *boot)
{
	struct sockaddr_un addr;
	socklen_t len = abstract_name(&addr, boot->rendezvous + 5);
	int fd = muster_namespace_socket(SOCK_STREAM | SOCK_NONBLOCK);
	int err;

	if (fd < 0)
		return fail_socket(boot, fd);
	if (bind(fd, (struct sockaddr *)&addr, len) || listen(fd, boot->size)) {
		err = -errno;
		close(fd);
		if (err == -EADDRINUSE)
			return fail(boot, -EINVAL, "MUSTER_RENDEZVOUS=%.128s is taken: another "
				    "process is rank 0 of it; give every rank its own MUSTER_RANK "
				    "and every job its own name", boot->rendezvous);
		return fail(boot, err, "MUSTER_RENDEZVOUS=%.128s: bind: %s", boot->rendezvous,
			    strerror(-err));
	}
	if (muster_hub_create(boot->size, &boot->hub)) {
		close(fd);
		return fail(boot, -ENOMEM, "no memory for %u ranks", boot->size);
	}
	muster_hub_listen(boot->hub, fd);
	muster_hub_join(boot->hub, boot->rank);
	return 0;
}

static int hub_meet(struct bootstrap *boot)
{
	uint64_t end_us = now_us() + boot->deadline_us;
	uint64_t now;
	char missing[128];
	int err = 0;

	while (!err && !muster_hub_met(boot->hub)) {
		now = now_us();
		if (now < end_us) {
			err = muster_hub_step(boot->hub, (end_us - now) / 1000 + 1);
			continue;
		}
		muster_hub_missing(boot->hub, missing, sizeof(missing));
		err = muster_hub_fail(boot->hub, -ETIMEDOUT, "rank(s) %s of %u did not come within "
				      "%.3g s: were they started, with MUSTER_RENDEZVOUS=%.128s?",
				      missing, boot->size, boot->deadline_us / 1e6,
				      boot->rendezvous);
	}
	return err ? fail(boot, err, "%s", muster_hub_error(boot->hub)) : 0;
}

/* ---- everybody else: a client of it --------------------------------------------- */

/* end_us: when to give up; UINT64_MAX: only when the stream ends. */
static int stream_read(int fd, void *to, size_t len, uint64_t end_us)
{
	while (len) {
		struct pollfd pfd = { .fd = fd, .events = POLLIN };
		uint64_t now = end_us == UINT64_MAX ? 0 : now_us();
		ssize_t n;

		if (now >= end_us)
			return -ETIMEDOUT;
		if (poll(&pfd, 1, now ? (int)((end_us - now) / 1000 + 1) : -1) <= 0)
			continue;
		n = read(fd, to, len);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return -ECONNRESET;
		to = (char *)to + n;
		len -= n;
	}
	return 0;
}

/* The same of a head, and the descriptor that may come with it. */
static int head_read(int fd, struct muster_frame *head, int *passed, uint64_t end_us)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = { head, sizeof(*head) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = CMSG_LEN(sizeof(int)) };
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	const struct cmsghdr *came;
	uint64_t now;
	ssize_t n;

	do {
		now = end_us == UINT64_MAX ? 0 : now_us();
		if (now >= end_us)
			return -ETIMEDOUT;
	} while (poll(&pfd, 1, now ? (int)((end_us - now) / 1000 + 1) : -1) <= 0);
	n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOTSOCK))
		n = 0;		/* not a socket, or nothing after all */
	else if (n <= 0)
		return -ECONNRESET;
	came = n ? CMSG_FIRSTHDR(&message) : NULL;
	if (came && came->cmsg_level == SOL_SOCKET && came->cmsg_type == SCM_RIGHTS &&
	    came->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(passed, CMSG_DATA(came), sizeof(int));
	return stream_read(fd, (char *)head + n, sizeof(*head) - n, end_us);
}

static int stream_write(int fd, const void *from, size_t len)
{
	while (len) {
		struct pollfd pfd = { .fd = fd, .events = POLLOUT };
		ssize_t n;

		if (poll(&pfd, 1, -1) < 0)
			continue;
		n = send(fd, from, len, MSG_NOSIGNAL);
		if (n < 0 && errno == ENOTSOCK)
			n = write(fd, from, len);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return -ECONNRESET;
		from = (const char *)from + n;
		len -= n;
	}
	return 0;
}

static int frame_send(struct bootstrap *boot, int kind, const void *data, size_t bytes)
{
	struct muster_frame head = {
		.magic = htole32(MUSTER_FRAME_MAGIC),
		.version = htole16(MUSTER_FRAME_VERSION),
		.kind = htole16(kind),
		.rank = htole32(boot->rank),
		.size = htole32(boot->size),
		.bytes = htole32(bytes),
	};
	int err = stream_write(boot->fd, &head, sizeof(head));

	return err ? err : stream_write(boot->fd, data, bytes);
}

/* The hub's sentence, after the head of its FAIL. */
static int frame_fail(struct bootstrap *boot, const struct muster_frame *head)
{
	uint32_t error = le32toh(head->error);
	uint32_t len = le32toh(head->bytes);

	if (!error || error > 4095 || len >= sizeof(boot->why) ||
	    stream_read(boot->fd, boot->why, len, now_us() + GRACE_US))
		return fail(boot, -EPROTO, "what came over MUSTER_RENDEZVOUS is garbage");
	boot->why[len] = 0;
	return -(int)error;
}

/* The data of a frame, after its head, or in the memory that came with that. */
static int data_read(struct bootstrap *boot, const struct muster_frame *head, int shared_fd,
		     void *data, size_t bytes)
{
	size_t done = 0;
	ssize_t n = 1;

	if (le16toh(head->kind) != MUSTER_FRAME_SHARED)
		return stream_read(boot->fd, data, bytes, UINT64_MAX);
	if (shared_fd < 0)
		return -EMFILE;
	while (done < bytes && n > 0) {
		n = pread(shared_fd, (char *)data + done, bytes - done, done);
		done += n > 0 ? n : 0;
	}
	return done < bytes ? -EIO : 0;
}

static bool expected(const struct muster_frame *head, int kind, size_t bytes)
{
	int is = le16toh(head->kind);

	return le32toh(head->magic) == MUSTER_FRAME_MAGIC &&
	       le16toh(head->version) == MUSTER_FRAME_VERSION && le32toh(head->bytes) == bytes &&
	       (is == kind || (is == MUSTER_FRAME_SHARED && kind == MUSTER_FRAME_GATHERED));
}

static int frame_take(struct bootstrap *boot, int kind, void *data, size_t bytes, int *shared_fd,
		      uint64_t end_us)
{
	struct muster_frame head;
	int err = head_read(boot->fd, &head, shared_fd, end_us);

	if (!err && le32toh(head.magic) == MUSTER_FRAME_MAGIC &&
	    le16toh(head.kind) == MUSTER_FRAME_FAIL)
		return frame_fail(boot, &head);
	if (!err && !expected(&head, kind, bytes))
		return fail(boot, -EPROTO, "what came over MUSTER_RENDEZVOUS is not version %d of "
			    "the rendezvous: all ranks need the same libmuster",
			    MUSTER_FRAME_VERSION);
	if (!err)
		err = data_read(boot, &head, *shared_fd, data, bytes);
	if (err == -EMFILE)
		return fail(boot, err, "no descriptor is free for what the ranks say: raise the limit "
			    "of open files (ulimit -n)");
	if (err == -ETIMEDOUT)
		return fail(boot, err, "rank 0 answered, but the job did not gather within %.3g s",
			    boot->deadline_us / 1e6);
	return err ? fail(boot, err, "rank 0 has died or left the job") : 0;
}

/* One frame of the expected kind and length, or the reason why not. */
static int frame_receive(struct bootstrap *boot, int kind, void *data, size_t bytes,
			 uint64_t end_us)
{
	int shared_fd = -1;
	int err = frame_take(boot, kind, data, bytes, &shared_fd, end_us);

	if (shared_fd >= 0)
		close(shared_fd);
	return err;
}

static int same_user(struct bootstrap *boot)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(boot->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return fail(boot, -errno, "SO_PEERCRED: %s", strerror(errno));
	if (cred.uid != geteuid())
		return fail(boot, -EPERM, "MUSTER_RENDEZVOUS=%.128s belongs to user %u, process %d: "
			    "choose another name", boot->rendezvous, cred.uid, cred.pid);
	return 0;
}

/* Rank 0 may start later than we do: try until it listens. */
static int client_connect(struct bootstrap *boot)
{
	uint64_t end_us = now_us() + boot->deadline_us;
	struct sockaddr_un addr;
	socklen_t len = abstract_name(&addr, boot->rendezvous + 5);

	boot->fd = muster_namespace_socket(SOCK_STREAM);
	if (boot->fd < 0)
		return fail_socket(boot, boot->fd);
	while (connect(boot->fd, (struct sockaddr *)&addr, len)) {
		if (errno != ECONNREFUSED && errno != EAGAIN && errno != EINTR)
			return fail(boot, -errno, "MUSTER_RENDEZVOUS=%.128s: connect: %s",
				    boot->rendezvous, strerror(errno));
		if (now_us() >= end_us)
			return fail(boot, -ETIMEDOUT, "rank 0 of %u did not come within %.3g s: "
				    "nobody listens at MUSTER_RENDEZVOUS=%.128s; was it started, or "
				    "has that job begun without this rank?", boot->size,
				    boot->deadline_us / 1e6, boot->rendezvous);
		usleep(RETRY_US);
	}
	return same_user(boot);
}

static int client_adopt(struct bootstrap *boot)
{
	int fd = atoi(boot->rendezvous + 3);

	if (fcntl(fd, F_SETFD, FD_CLOEXEC))
		return fail(boot, -EINVAL, "MUSTER_RENDEZVOUS=%s: this process has no such "
			    "descriptor; " HOW_TO_RUN, boot->rendezvous);
	boot->fd = fd;
	return 0;
}

static int client_device(struct bootstrap *boot)
{
	struct termios tio;
	struct stat st;

	boot->fd = open(boot->rendezvous, O_RDWR | O_CLOEXEC | O_NOCTTY);
	if (boot->fd < 0 || fstat(boot->fd, &st))
		return fail(boot, -errno, "MUSTER_RENDEZVOUS=%.128s: %s", boot->rendezvous,
			    strerror(errno));
	if (!S_ISCHR(st.st_mode))
		return fail(boot, -EINVAL, "MUSTER_RENDEZVOUS=%.128s is not a character device",
			    boot->rendezvous);
	if (tcgetattr(boot->fd, &tio) == 0) {
		cfmakeraw(&tio);
		tcsetattr(boot->fd, TCSANOW, &tio);
	}
	return 0;
}

static int client_open(struct bootstrap *boot)
{
	int err;

	if (boot->rendezvous[0] == '/')
		err = client_device(boot);
	else if (boot->rendezvous[0] == 'f')
		err = client_adopt(boot);
	else
		err = client_connect(boot);
	if (err)
		return err;
	frame_send(boot, MUSTER_FRAME_HELLO, NULL, 0);	/* if it fails, so does this: */
	return frame_receive(boot, MUSTER_FRAME_WELCOME, NULL, 0,
			     now_us() + boot->deadline_us + GRACE_US);
}

/* ---- both ------------------------------------------------------------------------ */

static int allgather(void *opaque, const void *in, void *out, size_t bytes)
{
	struct bootstrap *boot = opaque;
	int err;

	if (boot->hub) {
		err = muster_hub_gather(boot->hub, in, out, bytes);
		return err ? fail(boot, err, "%s", muster_hub_error(boot->hub)) : 0;
	}
	if (bytes > MUSTER_HUB_PIECE_MAX || bytes * boot->size > MUSTER_HUB_ALL_MAX)
		return fail(boot, -EMSGSIZE, "a rank gathers at most %d bytes and all together %d, "
			    "not %zu each", MUSTER_HUB_PIECE_MAX, MUSTER_HUB_ALL_MAX, bytes);
	frame_send(boot, MUSTER_FRAME_PIECE, in, bytes);	/* if it fails, so does this: */
	return frame_receive(boot, MUSTER_FRAME_GATHERED, out, bytes * boot->size, UINT64_MAX);
}

static void boot_free(struct bootstrap *boot)
{
	muster_hub_destroy(boot->hub);
	if (boot->fd >= 0)
		close(boot->fd);
	free(boot);
}

int muster_bootstrap_env(struct muster_oob *oob, char *why, size_t why_len)
{
	struct bootstrap *boot = calloc(1, sizeof(*boot));
	int err;

	if (!boot) {
		snprintf(why, why_len, "no memory");
		return -ENOMEM;
	}
	boot->fd = -1;
	err = env_read(boot);
	if (!err && boot->rank == 0 && boot->rendezvous[0] == 'u') {
		err = hub_open(boot);
		if (!err)
			err = hub_meet(boot);
	} else if (!err) {
		err = client_open(boot);
	}
	if (err) {
		snprintf(why, why_len, "%s", boot->why);
		boot_free(boot);
		return err;
	}
	boot->rendezvous = NULL;
	*oob = (struct muster_oob){ .rank = boot->rank, .size = boot->size,
				    .allgather = allgather, .opaque = boot };
	return 0;
}

void muster_bootstrap_close(struct muster_oob *oob)
{
	boot_free(oob->opaque);
	oob->opaque = NULL;
}

const char *muster_bootstrap_error(const struct muster_oob *oob)
{
	const struct bootstrap *boot = oob->opaque;

	return boot->why;
}
