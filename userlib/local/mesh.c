// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The mesh (mesh.h) as it runs: everything that is waited for hangs on one epoll. Who is
 * woken answers with its eventfd, which those that wake it often keep, up to a number.
 */
#include "mesh_internal.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum {
	EVENTS_AT_ONCE = 32,
	WAKERS_MAX = 64,	/* eventfds of others */
};

/* What an epoll event is about: kind in the upper half, rank in the lower. */
enum watch {
	WATCH_SOCKET,
	WATCH_PROCESS,
	WATCH_WAKE,	/* own eventfd */
	WATCH_OTHER,
};

/* ---- opening and closing -------------------------------------------------------- */

static int watch(struct muster_mesh *mesh, int fd, enum watch kind, uint32_t rank)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP,
				     .data.u64 = (uint64_t)kind << 32 | rank };

	if (kind == WATCH_WAKE)
		event.events = EPOLLIN | EPOLLET;	/* once for each write: nobody reads it */
	return epoll_ctl(mesh->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
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

static void mesh_free(struct muster_mesh *mesh)
{
	for (uint32_t rank = 0; rank < mesh->size && mesh->peers; rank++) {
		struct peer *peer = &mesh->peers[rank];

		fd_close(&peer->fd);
		fd_close(&peer->pidfd);
		fd_close(&peer->wake_fd);
	}
	fd_close(&mesh->wake_fd);
	fd_close(&mesh->memory_fd);
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
	mesh->memory_fd = -1;
	mesh->wake_fd = -1;
	mesh->cards = calloc(oob->size, sizeof(*mesh->cards));
	mesh->peers = calloc(oob->size, sizeof(*mesh->peers));
	for (uint32_t rank = 0; rank < oob->size && mesh->peers; rank++)
		mesh->peers[rank] = (struct peer){ .fd = -1, .pidfd = -1, .wake_fd = -1 };
	if (mesh->cards && mesh->peers)
		return mesh;
	mesh_free(mesh);
	return NULL;
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
	err = muster_mesh_meet(mesh, oob, config, why, why_len);
	if (!err) {
		err = watch_all(mesh);
		if (err)
			snprintf(why, why_len, "the other ranks cannot be watched: %s",
				 strerror(-err));
	}
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
			muster_mesh_message_send(mesh->peers[rank].fd, &bye, -1, MSG_DONTWAIT);
	mesh_free(mesh);
}

/* ---- what peers have told ---------------------------------------------------------- */

int muster_mesh_memory(struct muster_mesh *mesh)
{
	int fd = mesh->memory_fd;

	mesh->memory_fd = -1;
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
	return muster_mesh_message_send(mesh->peers[rank].fd, &little, fd, MSG_DONTWAIT);
}

void muster_mesh_wake(struct muster_mesh *mesh, uint32_t rank)
{
	const struct muster_mesh_message wake = { .kind = htole32(MUSTER_MESH_WAKE) };
	uint64_t one = 1;

	/* It fails when the peer is awake 2^64 times already: the message does no harm. */
	if (mesh->peers[rank].wake_fd >= 0 &&
	    write(mesh->peers[rank].wake_fd, &one, sizeof(one)) == sizeof(one))
		return;
	/* Where there is no room, there is something to wake up for already. */
	if (mesh->peers[rank].fd >= 0)
		muster_mesh_message_send(mesh->peers[rank].fd, &wake, -1, MSG_DONTWAIT);
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
	mesh->nr_wakers -= peer->wake_fd >= 0;
	fd_close(&peer->wake_fd);
	mesh->events->lost(mesh->owner, rank, peer->said_bye);
}

/* Somebody wakes us, and will again: our eventfd is the cheaper way. */
static void waker_offer(struct muster_mesh *mesh, struct peer *peer)
{
	const struct muster_mesh_message waker = { .kind = htole32(MUSTER_MESH_WAKER) };

	if (!peer->offered)
		peer->offered = !muster_mesh_message_send(peer->fd, &waker, mesh->wake_fd, MSG_DONTWAIT);
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

static int peer_take(struct muster_mesh *mesh, uint32_t rank,
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
		return 0;
	}
	if (message.kind == MUSTER_MESH_WAKER) {
		waker_take(mesh, &mesh->peers[rank], fd);
		return 0;
	}
	fd_close(&fd);
	if (message.kind == MUSTER_MESH_WAKE) {
		waker_offer(mesh, &mesh->peers[rank]);
		return 0;
	}
	mesh->peers[rank].said_bye = message.kind == MUSTER_MESH_BYE;
	return -ECONNRESET;	/* BYE, or nothing that we know: the end in any case */
}

static void peer_service(struct muster_mesh *mesh, uint32_t rank, bool dead)
{
	struct peer *peer = &mesh->peers[rank];
	struct muster_mesh_message message;
	int n = 1, fd;

	if (peer->fd < 0)
		return;		/* an earlier event of the same batch */
	while (n > 0) {
		n = muster_mesh_message_receive(peer->fd, &message, &fd);
		if (n > 0 && peer_take(mesh, rank, &message, fd))
			n = -ECONNRESET;
	}
	if (n < 0 || dead)
		peer_end(mesh, rank);
}

static void event_handle(struct muster_mesh *mesh, const struct epoll_event *event)
{
	uint32_t rank = event->data.u64 & UINT32_MAX;

	switch (event->data.u64 >> 32) {
	case WATCH_SOCKET:
		peer_service(mesh, rank, false);
		break;
	case WATCH_PROCESS:
		peer_service(mesh, rank, true);
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
