// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Where sockets between ranks are made (namespace.h). A socket stays where it was made. */
#include "namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int muster_namespace_enter(int *home)
{
	const char *name = getenv("MUSTER_NAMESPACE");
	int there, err = 0;

	*home = -1;
	if (!name)
		return 0;
	there = open(name, O_RDONLY | O_CLOEXEC);
	if (there < 0)
		return -errno;
	*home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (*home < 0 || setns(there, CLONE_NEWNET))
		err = -errno;
	close(there);
	if (err && *home >= 0)
		close(*home);
	return err;
}

void muster_namespace_leave(int home)
{
	if (home < 0)
		return;
	setns(home, CLONE_NEWNET);	/* it was left by the same right */
	close(home);
}

int muster_namespace_socket(int type)
{
	int home, fd, err = muster_namespace_enter(&home);

	if (err)
		return err;
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	if (fd < 0)
		fd = -errno;
	muster_namespace_leave(home);
	return fd;
}

int muster_namespace_address(const char *text, size_t len, struct sockaddr_un *un)
{
	if (!len)
		return -EDESTADDRREQ;
	if (len >= sizeof(un->sun_path))
		return -ENAMETOOLONG;
	*un = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(un->sun_path, text, len);
	if (*text == '@')
		un->sun_path[0] = '\0';
	return (int)(offsetof(struct sockaddr_un, sun_path) + len);
}
