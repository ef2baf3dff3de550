// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the mesh hears: everything that is waited for hangs on one epoll. Who comes is a
 * stranger until it has said hello. Who is woken answers with its eventfd, which those that
 * wake it often keep, up to a number.
 */
#include "mesh_internal.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum {
	EVENTS_AT_ONCE = 32,
	WAKERS_MAX = 64,	/* eventfds of others */
};

int muster_mesh_watch_for(struct muster_mesh *mesh, int fd, enum muster_mesh_watch kind,
			  uint32_t which)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP,
				     .data.u64 = (uint64_t)kind << 32 | which };

	/* Once for each write, which nobody reads; for each who comes, and may have to wait. */
	if (kind == MUSTER_WATCH_WAKE || kind == MUSTER_WATCH_LISTEN)
		event.events = EPOLLIN | EPOLLET;
	return epoll_ctl(mesh->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* ---- hearing ------------------------------------------------------------------------ */

/* Closing is not enough: a child of ours may have it, too. */
static void unwatch(struct muster_mesh *mesh, int *fd)
{
	if (*fd >= 0)
		epoll_ctl(mesh->epoll_fd, EPOLL_CTL_DEL, *fd, NULL);
	fd_close(fd);
}

/* What rank 0 has of those that came to it, all others hear by: it stays open. */
static void peer_close(struct muster_mesh *mesh, struct peer *peer)
{
	unwatch(mesh, &peer->second);
	if (!mesh->rank && peer->fd >= 0) {
		epoll_ctl(mesh->epoll_fd, EPOLL_CTL_DEL, peer->fd, NULL);
		return;
	}
	unwatch(mesh, &peer->fd);
	unwatch(mesh, &peer->pidfd);
}

static void peer_end(struct muster_mesh *mesh, uint32_t rank)
{
	struct peer *peer = &mesh->peers[rank];

	peer->ended = true;
	mesh->nr_ended++;
	peer_close(mesh, peer);
	mesh->nr_wakers -= peer->wake_fd >= 0;
	fd_close(&peer->wake_fd);
	if (!rank)
		fd_close(&mesh->lives_fd);
	mesh->events->lost(mesh->owner, rank, muster_mesh_signed_off(mesh, rank));
}

/* Somebody wakes us, and will again: our eventfd is the cheaper way. */
static void waker_offer(struct muster_mesh *mesh, struct peer *peer)
{
	const struct muster_mesh_message waker = { .kind = htole32(MUSTER_MESH_WAKER) };

	if (!peer->offered)
		peer->offered = !muster_mesh_message_send(peer->fd, &waker, mesh->wake_fd,
							  MSG_DONTWAIT);
}

static void waker_take(struct muster_mesh *mesh, struct peer *peer, int fd)
{
	if (fd < 0 || peer->wake_fd >= 0 || mesh->nr_wakers == WAKERS_MAX) {
		fd_close(&fd);
		return;
	}
	peer->wake_fd = fd;
	mesh->nr_wakers++;
}

/* Return: whether it was sane. */
static bool peer_take(struct muster_mesh *mesh, uint32_t rank,
		      const struct muster_mesh_message *little, int fd)
{
	struct muster_mesh_message message = {
		.kind = le32toh(little->kind),
		.key = le32toh(little->key),
		.addr = le64toh(little->addr),
		.bytes = le64toh(little->bytes),
	};

	if (message.kind == MUSTER_MESH_REGION || message.kind == MUSTER_MESH_WITHDRAW) {
		mesh->events->message(mesh->owner, rank, &message, fd);
		return true;
	}
	if (message.kind == MUSTER_MESH_WAKER) {
		waker_take(mesh, &mesh->peers[rank], fd);
		return true;
	}
	fd_close(&fd);
	if (message.kind != MUSTER_MESH_WAKE)
		return false;
	waker_offer(mesh, &mesh->peers[rank]);
	return true;
}

/* Take what has come over one connection. Return: whether it is still there. */
static bool socket_take(struct muster_mesh *mesh, uint32_t rank, int socket)
{
	struct muster_mesh_message message;
	int n = 1, fd;

	while (socket >= 0 && n > 0) {
		n = muster_mesh_message_receive(socket, &message, &fd);
		if (n > 0 && !peer_take(mesh, rank, &message, fd))
			n = -EPROTO;
	}
	return n >= 0;
}

static void peer_service(struct muster_mesh *mesh, uint32_t rank, bool dead)
{
	struct peer *peer = &mesh->peers[rank];
	bool there;

	if (peer->ended)
		return;		/* an earlier event of the same batch */
	there = socket_take(mesh, rank, peer->fd);
	there &= socket_take(mesh, rank, peer->second);
	if (!there || dead)
		peer_end(mesh, rank);
}

void muster_mesh_dead(struct muster_mesh *mesh, uint32_t rank)
{
	peer_service(mesh, rank, true);
}

/* ---- who comes ------------------------------------------------------------------------ */

/* Now it is known which rank it is: it has no connection, or has made one as we did. */
static void stranger_known(struct muster_mesh *mesh, uint32_t rank, int fd)
{
	struct peer *peer = &mesh->peers[rank];
	int *place = peer->fd < 0 ? &peer->fd : &peer->second;

	if (peer->ended || *place >= 0 || muster_mesh_watch_for(mesh, fd, MUSTER_WATCH_SOCKET, rank)) {
		close(fd);
		return;
	}
	*place = fd;
	peer_service(mesh, rank, false);
}

static void stranger_hear(struct muster_mesh *mesh, uint32_t which)
{
	uint32_t rank;
	int fd = mesh->strangers[which];
	int n = fd < 0 ? 0 : muster_mesh_hear(mesh, fd, &rank);

	if (!n)
		return;
	epoll_ctl(mesh->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	mesh->strangers[which] = -1;
	if (n > 0)
		stranger_known(mesh, rank, fd);
	else
		close(fd);
}

/* Return: whether there was one. */
static bool stranger_accept(struct muster_mesh *mesh, uint32_t which)
{
	int fd = muster_mesh_accept(mesh);

	if (fd < 0)
		return false;
	if (muster_mesh_watch_for(mesh, fd, MUSTER_WATCH_STRANGER, which)) {
		close(fd);
		return true;
	}
	mesh->strangers[which] = fd;
	stranger_hear(mesh, which);
	return true;
}

/* Who finds no place waits: if it were sent away, it would take us for dead. */
static void accept_all(struct muster_mesh *mesh)
{
	uint32_t which = 0;

	while (which < STRANGERS_MAX)
		if (mesh->strangers[which] >= 0)
			which++;
		else if (!stranger_accept(mesh, which))
			return;
}

/* ---- events ----------------------------------------------------------------------- */

static void event_handle(struct muster_mesh *mesh, const struct epoll_event *event)
{
	uint32_t which = event->data.u64 & UINT32_MAX;

	switch (event->data.u64 >> 32) {
	case MUSTER_WATCH_SOCKET:
		peer_service(mesh, which, false);
		break;
	case MUSTER_WATCH_PROCESS:
		peer_service(mesh, which, true);
		break;
	case MUSTER_WATCH_LISTEN:
		accept_all(mesh);
		break;
	case MUSTER_WATCH_STRANGER:
		stranger_hear(mesh, which);
		accept_all(mesh);
		break;
	}
}

/* What has come is taken when the thread is alone again: another may have been quicker. */
static void sleep_apart(struct muster_mesh *mesh, int timeout_ms)
{
	struct pollfd epoll = { .fd = mesh->epoll_fd, .events = POLLIN };

	mesh->asleep++;
	mesh->events->sleeps(mesh->owner, true);
	poll(&epoll, 1, timeout_ms);
	mesh->events->sleeps(mesh->owner, false);
	mesh->asleep--;
}

int muster_mesh_hear_all(struct muster_mesh *mesh, int timeout_ms)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	int nr, all = 0;

	if (timeout_ms && mesh->events->sleeps) {
		sleep_apart(mesh, timeout_ms);
		timeout_ms = 0;
	}
	do {
		nr = epoll_wait(mesh->epoll_fd, events, EVENTS_AT_ONCE, timeout_ms);
		for (int i = 0; i < nr; i++)
			event_handle(mesh, &events[i]);
		all += nr > 0 ? nr : 0;
		timeout_ms = 0;
	} while (nr == EVENTS_AT_ONCE);
	return all;
}
