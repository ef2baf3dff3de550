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
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

#include "door.h"
#include "hub.h"
#include "launcher.h"
#include "muster_desc.h"
#include "namespace.h"
#include "stream.h"

#define HOW_TO_RUN "run it under muster-run, or set MUSTER_RENDEZVOUS, and MUSTER_RANK and MUSTER_SIZE where no launcher says them"

enum {
	DEADLINE_S = 10,
	DEADLINE_MAX_S = 7 * 86400,
	GRACE_US = 500000,	/* for the hub's sentence, which is better than ours */
	RETRY_US = 2000,
	ENTER_MS = 5000,	/* for rank 0 to answer a stranger */
};

struct bootstrap {
	uint32_t rank;
	uint32_t size;
	uint64_t deadline_us;	/* how long to wait for the others */
	int fd;			/* to the hub, or -1 */
	struct muster_hub *hub;	/* rank 0's own, or NULL */
	struct muster_place place; /* of tcp: and file: */
	const char *rendezvous;	/* valid during muster_bootstrap_env() */
	char why[MUSTER_HUB_WHY_MAX];
};

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
	const char *expected = "unix:NAME, file:/PATH, tcp:ADDRESS:PORT, fd:NUMBER or the /PATH of a character device";
	size_t name_max = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;

	if (!text)
		return env_missing(boot, "MUSTER_RENDEZVOUS", expected);
	boot->rendezvous = text;
	if (text[0] == '/' || !strncmp(text, "file:/", 6))
		return 0;
	if (!strncmp(text, "tcp:", 4))
		return muster_place_tcp(&boot->place, text + 4, getenv("MUSTER_KEY"), boot->why,
					sizeof(boot->why));
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
	const struct muster_launcher *launcher = muster_launcher_find();
	int err;

	err = muster_bootstrap_deadline(&boot->deadline_us, boot->why, sizeof(boot->why));
	if (!err)
		err = env_number(boot, launcher->size, 1, MUSTER_MEMBERS_MAX, &boot->size);
	if (!err)
		err = env_number(boot, launcher->rank, 0, boot->size - 1, &boot->rank);
	if (!err)
		err = env_rendezvous(boot);
	return err;
}

/* By TCP, for ranks that share no kernel. */
static bool is_remote(const struct bootstrap *boot)
{
	return !strncmp(boot->rendezvous, "tcp:", 4) || !strncmp(boot->rendezvous, "file:", 5);
}

static uint32_t silence_s(const struct bootstrap *boot)
{
	return (uint32_t)(boot->deadline_us / 1000000);
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

/* The door closes when all are there: nobody else is let in. */
static int door_open(struct bootstrap *boot, struct muster_door **door)
{
	bool in_file = boot->rendezvous[0] == 'f';
	int err = in_file ? muster_place_any(&boot->place) : 0;

	if (!err)
		err = muster_door_open(&boot->place, boot->size, silence_s(boot), door);
	if (err)
		return fail(boot, err, "MUSTER_RENDEZVOUS=%.128s: nobody can listen at %s: %s",
			    boot->rendezvous, boot->place.address, strerror(-err));
	err = muster_hub_create(boot->size, &boot->hub);
	if (!err && in_file)
		err = muster_place_write(&boot->place, boot->rendezvous + 5);
	if (!err) {
		muster_hub_join(boot->hub, boot->rank);
		return 0;
	}
	muster_door_close(*door);
	return fail(boot, err, "MUSTER_RENDEZVOUS=%.128s: %s", boot->rendezvous, strerror(-err));
}

static int hub_meet(struct bootstrap *boot, struct muster_door *door)
{
	uint64_t end_us = muster_stream_now_us() + boot->deadline_us;
	uint64_t now;
	char missing[128];
	int err = 0;

	while (!err && !muster_hub_met(boot->hub)) {
		now = muster_stream_now_us();
		if (now < end_us) {
			int left_ms = (int)((end_us - now) / 1000 + 1);

			err = door ? muster_door_step(door, boot->hub, left_ms) :
				     muster_hub_step(boot->hub, left_ms);
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
	int err = muster_stream_write(boot->fd, &head, sizeof(head));

	return err ? err : muster_stream_write(boot->fd, data, bytes);
}

/* The hub's sentence, after the head of its FAIL. */
static int frame_fail(struct bootstrap *boot, const struct muster_frame *head)
{
	uint32_t error = le32toh(head->error);
	uint32_t len = le32toh(head->bytes);

	if (!error || error > 4095 || len >= sizeof(boot->why) ||
	    muster_stream_read(boot->fd, boot->why, len, muster_stream_now_us() + GRACE_US))
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
		return muster_stream_read(boot->fd, data, bytes, UINT64_MAX);
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
	int err = muster_head_read(boot->fd, &head, shared_fd, end_us);

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
	uint64_t end_us = muster_stream_now_us() + boot->deadline_us;
	struct sockaddr_un addr;
	socklen_t len = abstract_name(&addr, boot->rendezvous + 5);

	boot->fd = muster_namespace_socket(SOCK_STREAM);
	if (boot->fd < 0)
		return fail_socket(boot, boot->fd);
	while (connect(boot->fd, (struct sockaddr *)&addr, len)) {
		if (errno != ECONNREFUSED && errno != EAGAIN && errno != EINTR)
			return fail(boot, -errno, "MUSTER_RENDEZVOUS=%.128s: connect: %s",
				    boot->rendezvous, strerror(errno));
		if (muster_stream_now_us() >= end_us)
			return fail(boot, -ETIMEDOUT, "rank 0 of %u did not come within %.3g s: "
				    "nobody listens at MUSTER_RENDEZVOUS=%.128s; was it started, or "
				    "has that job begun without this rank?", boot->size,
				    boot->deadline_us / 1e6, boot->rendezvous);
		usleep(RETRY_US);
	}
	return same_user(boot);
}

/* Nobody there yet, or what is there is of a job that was: rank 0 may come later. */
static int client_enter(struct bootstrap *boot)
{
	uint64_t end_us = muster_stream_now_us() + boot->deadline_us;
	bool in_file = boot->rendezvous[0] == 'f';
	int err = 0;

	for (;;) {
		uint64_t now = muster_stream_now_us();
		uint64_t left_ms = now < end_us ? (end_us - now) / 1000 + 1 : 1;

		err = in_file ? muster_place_read(&boot->place, boot->rendezvous + 5) : 0;
		if (!err)
			boot->fd = muster_door_enter(&boot->place, silence_s(boot),
						     left_ms < ENTER_MS ? (int)left_ms : ENTER_MS);
		if (!err && boot->fd >= 0)
			return 0;
		err = err ? err : boot->fd;
		if (muster_stream_now_us() >= end_us)
			break;
		usleep(RETRY_US);
	}
	if (err == -EACCES)
		return fail(boot, err, "who listens at MUSTER_RENDEZVOUS=%.128s (%s) does not have this rank's %s",
			    boot->rendezvous, boot->place.address, in_file ? "key" : "MUSTER_KEY");
	if (err == -EPERM)
		return fail(boot, err, "MUSTER_RENDEZVOUS=%.128s: others than its user could have written it: remove it",
			    boot->rendezvous);
	return fail(boot, -ETIMEDOUT, "rank 0 of %u did not come within %.3g s: nobody listens at MUSTER_RENDEZVOUS=%.128s (%s); was it started, or has that job begun without this rank?",
		    boot->size, boot->deadline_us / 1e6, boot->rendezvous, strerror(-err));
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
	else if (is_remote(boot))
		err = client_enter(boot);
	else if (boot->rendezvous[0] == 'f')
		err = client_adopt(boot);
	else
		err = client_connect(boot);
	if (err)
		return err;
	frame_send(boot, MUSTER_FRAME_HELLO, NULL, 0);	/* if it fails, so does this: */
	return frame_receive(boot, MUSTER_FRAME_WELCOME, NULL, 0,
			     muster_stream_now_us() + boot->deadline_us + GRACE_US);
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

static int hub_serve(struct bootstrap *boot)
{
	struct muster_door *door = NULL;
	int err = is_remote(boot) ? door_open(boot, &door) : hub_open(boot);

	if (err)
		return err;
	err = hub_meet(boot, door);
	if (boot->rendezvous[0] == 'f')		/* it has served */
		muster_place_remove(&boot->place, boot->rendezvous + 5);
	muster_door_close(door);
	return err;
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
	if (!err)
		err = boot->rank == 0 && (boot->rendezvous[0] == 'u' || is_remote(boot)) ?
		      hub_serve(boot) : client_open(boot);
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
