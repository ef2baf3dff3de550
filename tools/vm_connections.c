// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections of a guest's programs to the host, as either side has them (vm_connections.h). Whoever does not
 * take a message loses its connection: nobody else waits for it.
 */
#include "vm_connections.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static struct vm_connection *find(const struct vm_connections *all, uint16_t id)
{
	for (unsigned int i = 0; i < all->nr; i++)
		if (all->list[i].id == id)
			return (struct vm_connection *)&all->list[i];
	return NULL;
}

int vm_connections_add(struct vm_connections *all, uint16_t id, int fd)
{
	int err = find(all, id) ? -EEXIST : all->nr == VM_CONNECTIONS_MAX ? -ENOSPC : 0;

	if (err)
		close(fd);
	else
		all->list[all->nr++] = (struct vm_connection){ .fd = fd, .id = id };
	return err;
}

int vm_connections_fd(const struct vm_connections *all, uint16_t id)
{
	const struct vm_connection *connection = find(all, id);

	return connection ? connection->fd : -1;
}

void vm_connections_close(struct vm_connections *all, uint16_t id)
{
	struct vm_connection *connection = find(all, id);

	if (!connection)
		return;
	close(connection->fd);
	*connection = all->list[--all->nr];
}

void vm_connections_close_all(struct vm_connections *all)
{
	while (all->nr)
		close(all->list[--all->nr].fd);
}

int vm_connection_read(int fd, void *message)
{
	ssize_t n = recv(fd, message, VM_FRAME_MAX, MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return n > 0 && n <= VM_FRAME_MAX ? (int)n : -1;
}

int vm_connection_write(int fd, const void *message, size_t bytes)
{
	return send(fd, message, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -1 : 0;
}
