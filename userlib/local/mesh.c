// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The mesh (mesh.h) as its owner uses it: opening and closing, sending, and waiting for
 * what mesh_hear.c takes.
 */
#include "mesh_internal.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "clock.h"
#include "limit.h"

enum {
	LOOK_MS = 10,		/* between looks at who has ended */
	WATCHED_AT_ONCE = 8,
};

/* ---- opening and closing -------------------------------------------------------- */

/* Of what rank 0 waits for, lives_fd has the processes. */
static int watch_all(struct muster_mesh *mesh)
{
	int err = muster_mesh_watch_for(mesh, mesh->wake_fd, MUSTER_WATCH_WAKE, 0);

	if (!err)
		err = muster_mesh_watch_for(mesh, mesh->listen_fd, MUSTER_WATCH_LISTEN, 0);
	for (uint32_t rank = 0; rank < mesh->size && !err; rank++)
		if (mesh->peers[rank].fd >= 0)
			err = muster_mesh_watch_for(mesh, mesh->peers[rank].fd, MUSTER_WATCH_SOCKET, rank);
	if (!err && mesh->rank && mesh->peers[0].pidfd >= 0)
		err = muster_mesh_watch_for(mesh, mesh->peers[0].pidfd, MUSTER_WATCH_PROCESS, 0);
	return err;
}

static void mesh_free(struct muster_mesh *mesh)
{
	for (uint32_t rank = 0; rank < mesh->size && mesh->peers; rank++) {
		struct peer *peer = &mesh->peers[rank];

		fd_close(&peer->fd);
		fd_close(&peer->second);
		fd_close(&peer->pidfd);
		fd_close(&peer->wake_fd);
	}
	for (int i = 0; i < STRANGERS_MAX; i++)
		fd_close(&mesh->strangers[i]);
	muster_mesh_lives_close(mesh);
	fd_close(&mesh->listen_fd);
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
	mesh->listen_fd = -1;
	mesh->memory_fd = -1;
	mesh->wake_fd = -1;
	mesh->lives_fd = -1;
	memset(mesh->strangers, -1, sizeof(mesh->strangers));
	mesh->cards = calloc(oob->size, sizeof(*mesh->cards));
	mesh->ends = calloc(oob->size, 2 * sizeof(*mesh->ends));
	mesh->peers = calloc(oob->size, sizeof(*mesh->peers));
	for (uint32_t rank = 0; rank < oob->size && mesh->peers; rank++)
		mesh->peers[rank] = (struct peer){ .fd = -1, .second = -1, .pidfd = -1,
						   .wake_fd = -1 };
	if (mesh->cards && mesh->ends && mesh->peers)
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
	muster_mesh_sign_off(mesh);
	mesh_free(mesh);
}

/* ---- what peers have told ---------------------------------------------------------- */

int muster_mesh_memory(struct muster_mesh *mesh)
{
	int fd = mesh->memory_fd;

	mesh->memory_fd = -1;
	return fd;
}

uint64_t muster_mesh_number(const struct muster_mesh *mesh)
{
	return mesh->cards[0].number;
}

bool muster_mesh_crowded(const struct muster_mesh *mesh)
{
	return mesh->crowded;
}

/* ---- sending ------------------------------------------------------------------------ */

/* Return: 0: peer->fd is there; -EHOSTUNREACH: it has ended; -EAGAIN or -errno: not now. */
static int peer_reach(struct muster_mesh *mesh, uint32_t rank, uint32_t connections_max)
{
	struct peer *peer = &mesh->peers[rank];
	int err;

	if (peer->ended || rank == mesh->rank)
		return -EHOSTUNREACH;
	if (peer->fd >= 0)
		return 0;
	if (mesh->nr_made >= connections_max)
		return -EAGAIN;
	err = muster_mesh_connect(mesh, rank);
	if (err)
		return err == -ECONNREFUSED ? -EHOSTUNREACH : err;
	err = muster_mesh_watch_for(mesh, peer->fd, MUSTER_WATCH_SOCKET, rank);
	if (err)
		fd_close(&peer->fd);
	else
		mesh->nr_made++;
	return err;
}

int muster_mesh_send(struct muster_mesh *mesh, uint32_t rank,
		     const struct muster_mesh_message *message, int fd)
{
	struct muster_mesh_message little = {
		.kind = htole32(message->kind),
		.key = htole32(message->key),
		.addr = htole64(message->addr),
		.bytes = htole64(message->bytes),
	};
	int err = peer_reach(mesh, rank, CONNECTIONS_MAX);

	if (err)
		return err;
	return muster_mesh_message_send(mesh->peers[rank].fd, &little, fd, MSG_DONTWAIT);
}

void muster_mesh_wake(struct muster_mesh *mesh, uint32_t rank)
{
	const struct muster_mesh_message wake = { .kind = htole32(MUSTER_MESH_WAKE) };
	int fd = rank == mesh->rank ? mesh->wake_fd : mesh->peers[rank].wake_fd;
	uint64_t one = 1;

	/* It fails when the peer is awake 2^64 times already: the message does no harm. */
	if (fd >= 0 && write(fd, &one, sizeof(one)) == sizeof(one))
		return;
	/* Where there is no room, there is something to wake up for already. */
	if (!peer_reach(mesh, rank, CONNECTIONS_MAX))
		muster_mesh_message_send(mesh->peers[rank].fd, &wake, -1, MSG_DONTWAIT);
}

int muster_mesh_watch(struct muster_mesh *mesh, int fd)
{
	return muster_mesh_watch_for(mesh, fd, MUSTER_WATCH_OTHER, 0);
}

/* ---- running ------------------------------------------------------------------------ */

void muster_mesh_service(struct muster_mesh *mesh)
{
	int came = muster_mesh_hear_all(mesh, 0);

	muster_mesh_lives_take(mesh);
	if (came && mesh->asleep)	/* what was to wake another thread is taken */
		muster_mesh_wake(mesh, mesh->rank);
}

/* Who ends without a connection to us is heard of only if we make one. Return: nothing to do. */
static bool watch_one(struct muster_mesh *mesh, uint32_t rank)
{
	struct peer *peer = &mesh->peers[rank];
	int err;

	if (peer->ended || rank == mesh->rank || peer->pidfd >= 0)
		return true;
	err = peer_reach(mesh, rank, mesh->size);
	if (!err) {
		peer->pidfd = muster_mesh_pidfd(peer->fd);
		if (peer->pidfd >= 0)
			return !muster_mesh_watch_for(mesh, peer->pidfd, MUSTER_WATCH_PROCESS, rank);
		err = errno == ESRCH ? -EHOSTUNREACH : 0;	/* of another pid namespace: fd tells */
	}
	if (err == -EHOSTUNREACH)
		muster_mesh_dead(mesh, rank);
	return !err;
}

/* Rank 0 has ended, and lives_fd with it. As all end some time there is no haste. */
static void watch_others(struct muster_mesh *mesh)
{
	if (!mesh->rank || !mesh->peers[0].ended || mesh->nr_watched >= mesh->size)
		return;
	muster_limit_raise();
	for (int i = 0; i < WATCHED_AT_ONCE && mesh->nr_watched < mesh->size; i++) {
		bool done = watch_one(mesh, mesh->next_watched++ % mesh->size);

		mesh->nr_watched = done ? mesh->nr_watched + 1 : 0;
	}
	muster_limit_restore();
}

/* Nobody can sleep on lives_fd: it goes on to tell of ends that are known. */
void muster_mesh_wait(struct muster_mesh *mesh, uint64_t timeout_us)
{
	uint64_t end_us = muster_clock_us() + timeout_us, now, ms;
	uint32_t ended = mesh->nr_ended;
	int came;

	do {
		watch_others(mesh);
		now = muster_clock_us();
		ms = now < end_us ? (end_us - now + 999) / 1000 : 0;
		came = muster_mesh_hear_all(mesh, ms < LOOK_MS ? ms : LOOK_MS);
		muster_mesh_lives_take(mesh);
	} while (!came && mesh->nr_ended == ended && ms > LOOK_MS);
}
