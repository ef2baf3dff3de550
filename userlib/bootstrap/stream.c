// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A rank's stream to the hub: whole pieces, a descriptor that may come along, and deadlines.
 */
#include "stream.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

uint64_t muster_stream_now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000ull + ts.tv_nsec / 1000;
}

int muster_stream_read(int fd, void *to, size_t len, uint64_t end_us)
{
	while (len) {
		struct pollfd pfd = { .fd = fd, .events = POLLIN };
		uint64_t now = end_us == UINT64_MAX ? 0 : muster_stream_now_us();
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

int muster_head_read(int fd, struct muster_frame *head, int *passed, uint64_t end_us)
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
		now = end_us == UINT64_MAX ? 0 : muster_stream_now_us();
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
	return muster_stream_read(fd, (char *)head + n, sizeof(*head) - n, end_us);
}

int muster_stream_write(int fd, const void *from, size_t len)
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
