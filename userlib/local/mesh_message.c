// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One message over a connection of the mesh, and the descriptor that it brings. At our
 * own limit of open files the kernel leaves that out: no fault of the sender's.
 */
#include "mesh_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

int muster_mesh_message_send(int fd, const struct muster_mesh_message *message, int passed,
			     int flags)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)message, .iov_len = sizeof(*message) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *head;

	if (passed >= 0) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		head = CMSG_FIRSTHDR(&msg);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(head), &passed, sizeof(int));
	}
	if (sendmsg(fd, &msg, MSG_NOSIGNAL | flags) == (ssize_t)sizeof(*message))
		return 0;
	if (errno == ETOOMANYREFS)
		return -ETOOMANYREFS;
	if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS)
		return -EAGAIN;
	return -EHOSTUNREACH;
}

int muster_mesh_message_receive(int fd, struct muster_mesh_message *message, int *passed)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = message, .iov_len = sizeof(*message) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			      .msg_controllen = CMSG_LEN(sizeof(int)) };	/* one, no second */
	struct cmsghdr *head;
	ssize_t n;

	*passed = -1;
	do {	/* a reset is told once and first; what was sent before it is still there */
		n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0)
		return errno == EAGAIN ? 0 : -ECONNRESET;
	head = CMSG_FIRSTHDR(&msg);
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
	    head->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(passed, CMSG_DATA(head), sizeof(int));
	if (n == sizeof(*message) && !(msg.msg_flags & MSG_TRUNC))
		return 1;
	fd_close(passed);
	return -ECONNRESET;
}
