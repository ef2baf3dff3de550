// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One connection of the mesh: every rank listens on an abstract socket with a name that
 * the kernel chose, and who has something to say connects. A secret, which went through
 * the allgather, and the peer's user id keep strangers out.
 */
#include "mesh_internal.h"

#include <endian.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "namespace.h"

int muster_mesh_listen(struct muster_mesh *mesh, char name[NAME_LEN])
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(addr);
	int fd = muster_namespace_socket(SOCK_SEQPACKET | SOCK_NONBLOCK);

	if (fd < 0)
		return fd;
	mesh->listen_fd = fd;
	if (bind(fd, (struct sockaddr *)&addr, sizeof(sa_family_t)) ||
	    listen(fd, mesh->size) || getsockname(fd, (struct sockaddr *)&addr, &len))
		return -errno;
	if (len != offsetof(struct sockaddr_un, sun_path) + NAME_LEN)
		return -ENAMETOOLONG;
	memcpy(name, addr.sun_path, NAME_LEN);
	return 0;
}

/* HELLO: key is the sender's rank, addr the receiver's secret. */
static int say_hello(const struct muster_mesh *mesh, uint32_t rank, int fd)
{
	const struct muster_mesh_message hello = {
		.kind = htole32(MUSTER_MESH_HELLO),
		.key = htole32(mesh->rank),
		.addr = htole64(mesh->cards[rank].secret),
	};

	return muster_mesh_message_send(fd, &hello, -1, MSG_DONTWAIT);
}

/* The process at the other end is of our user. */
static bool same_user(int fd, struct ucred *cred)
{
	socklen_t len = sizeof(*cred);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, cred, &len) && cred->uid == geteuid();
}

int muster_mesh_pidfd(int fd)
{
	struct ucred cred;

	return same_user(fd, &cred) && cred.pid ? (int)syscall(SYS_pidfd_open, cred.pid, 0) : -1;
}

int muster_mesh_connect(struct muster_mesh *mesh, uint32_t rank)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = muster_namespace_socket(SOCK_SEQPACKET | SOCK_NONBLOCK);
	struct ucred cred;
	int err = 0;

	if (fd < 0)
		return fd;
	memcpy(addr.sun_path, mesh->cards[rank].name, NAME_LEN);
	if (connect(fd, (struct sockaddr *)&addr,
		    offsetof(struct sockaddr_un, sun_path) + NAME_LEN))
		err = -errno;
	else if (!same_user(fd, &cred))
		err = -ECONNREFUSED;	/* its name is somebody else's by now */
	else
		err = say_hello(mesh, rank, fd);
	if (err)
		close(fd);
	else
		mesh->peers[rank].fd = fd;
	return err;
}

int muster_mesh_accept(struct muster_mesh *mesh)
{
	struct ucred cred;
	int fd;

	for (;;) {
		fd = accept4(mesh->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			return -errno;
		if (same_user(fd, &cred))
			return fd;
		close(fd);
	}
}

int muster_mesh_hear(struct muster_mesh *mesh, int fd, uint32_t *rank)
{
	struct muster_mesh_message hello;
	int passed, n = muster_mesh_message_receive(fd, &hello, &passed);

	if (n <= 0)
		return n;
	fd_close(&passed);
	*rank = le32toh(hello.key);
	if (le32toh(hello.kind) != MUSTER_MESH_HELLO || *rank >= mesh->size ||
	    *rank == mesh->rank || le64toh(hello.addr) != mesh->cards[mesh->rank].secret)
		return -EPERM;
	return 1;
}
