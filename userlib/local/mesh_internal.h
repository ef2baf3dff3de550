/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of the mesh share: mesh.c is the mesh as it runs, mesh_meet.c is how
 * its ranks find each other, mesh_connect.c makes one connection, mesh_hear.c hears what
 * comes, mesh_lives.c knows who is still there, and mesh_message.c is how one message goes
 * over a connection.
 */
#ifndef MUSTER_MESH_INTERNAL_H
#define MUSTER_MESH_INTERNAL_H

#include <sched.h>
#include <unistd.h>

#include "mesh.h"

enum {
	NAME_LEN = 6,		/* of an autobound socket: NUL and five digits */
	STRANGERS_MAX = 16,	/* connections that have not said who they are */
	CONNECTIONS_MAX = 256,	/* that a rank makes; others are not woken, and get copies */
};

struct peer {
	int fd;		/* -1: no connection, or none any more */
	int second;	/* -1; or one that it made while we made ours: it sends there */
	int pidfd;	/* -1: others tell of its end, or fd does */
	int wake_fd;	/* -1: wake it by a message */
	bool offered;	/* it has ours */
	bool ended;
};

/* One rank's part of the allgather. */
struct card {
	int32_t error;
	uint32_t pid;
	uint64_t secret;	/* who knows it has it from the allgather */
	uint64_t number;
	char name[NAME_LEN];
	uint16_t processors;	/* of this host */
};

_Static_assert(sizeof(struct card) == 32, "some bytes a rank");

struct muster_mesh {
	const struct muster_mesh_events *events;
	void *owner;
	uint32_t rank;
	uint32_t size;
	int epoll_fd;
	int listen_fd;
	int memory_fd;
	int wake_fd;
	uint32_t asleep;		/* threads, in muster_mesh_wait() */
	uint32_t nr_wakers;
	uint32_t nr_made;	/* connections by us */
	uint32_t nr_ended;
	bool crowded;
	struct card *cards;
	struct peer *peers;
	int strangers[STRANGERS_MAX];	/* -1: free */
	/* mesh_lives.c */
	int lives_fd;
	struct muster_mesh_board *board;	/* of each rank; NULL: it is alone */
	struct epoll_event *ends;	/* room for all that lives_fd says */
	uint64_t look_us;		/* not before: at lives_fd again */
	uint32_t next_watched;		/* rank 0 has ended: whom to watch next by ourselves */
	uint32_t nr_watched;		/* one after the other; size: all */
};

static inline void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* What an epoll event is about: kind in the upper half, a rank or another number in the lower. */
enum muster_mesh_watch {
	MUSTER_WATCH_SOCKET,
	MUSTER_WATCH_PROCESS,
	MUSTER_WATCH_LISTEN,
	MUSTER_WATCH_STRANGER,
	MUSTER_WATCH_WAKE,	/* own eventfd */
	MUSTER_WATCH_OTHER,
};

/* ---- mesh_hear.c ---- */

/** muster_mesh_watch_for() - put a descriptor into the epoll. 0 or -errno. */
int muster_mesh_watch_for(struct muster_mesh *mesh, int fd, enum muster_mesh_watch kind,
			  uint32_t which);
/** muster_mesh_dead() - a rank has ended: hear what it had said before, and tell the owner. */
void muster_mesh_dead(struct muster_mesh *mesh, uint32_t rank);
/** muster_mesh_hear_all() - take what there is, after waiting. Return: how many events. */
int muster_mesh_hear_all(struct muster_mesh *mesh, int timeout_ms);

/* ---- mesh_message.c ---- */

/**
 * muster_mesh_message_send() - passed: a descriptor that goes with it, or -1.
 * Return: 0; -EAGAIN: no room; -ETOOMANYREFS: descriptors under way are limited, all of a
 * user's together, and land when the peers receive; -EHOSTUNREACH.
 */
int muster_mesh_message_send(int fd, const struct muster_mesh_message *message, int passed,
			     int flags);

/**
 * muster_mesh_message_receive() - without blocking.
 * Return: 1: a message, with a descriptor or -1; 0: none now; -ECONNRESET: end of file,
 * or garbage.
 */
int muster_mesh_message_receive(int fd, struct muster_mesh_message *message, int *passed);

/* ---- mesh_connect.c ---- */

/** muster_mesh_listen() - open listen_fd; name gets where. 0 or -errno. */
int muster_mesh_listen(struct muster_mesh *mesh, char name[NAME_LEN]);

/**
 * muster_mesh_connect() - to a rank that has no connection yet; says hello.
 * Return: 0; -EAGAIN: no room there now; -ECONNREFUSED: it has ended; -errno.
 */
int muster_mesh_connect(struct muster_mesh *mesh, uint32_t rank);

/** muster_mesh_accept() - a new connection, of our user. Return: it; -EAGAIN; -errno. */
int muster_mesh_accept(struct muster_mesh *mesh);

/** muster_mesh_hear() - the hello that must come first. 1: *rank says so; 0: not yet; -errno. */
int muster_mesh_hear(struct muster_mesh *mesh, int fd, uint32_t *rank);

/** muster_mesh_pidfd() - what tells of the end of the process at the other end, or -1. */
int muster_mesh_pidfd(int fd);

/* ---- mesh_meet.c ---- */

/** muster_mesh_meet() - errors and words of muster_mesh_open(). */
int muster_mesh_meet(struct muster_mesh *mesh, const struct muster_oob *oob,
		     const struct muster_mesh_config *config, char *why, size_t why_len);

/* ---- mesh_lives.c: who is still there ---- */

/** muster_mesh_lives_open() - rank 0 makes what all others get. board_fd: for them. 0, -errno. */
int muster_mesh_lives_open(struct muster_mesh *mesh, int *board_fd);
/** muster_mesh_lives_add() - rank 0: a rank has come. */
int muster_mesh_lives_add(struct muster_mesh *mesh, uint32_t rank);
/** muster_mesh_board_map() - of all ranks; fd stays the caller's. 0 or -errno. */
int muster_mesh_board_map(struct muster_mesh *mesh, int fd);
void muster_mesh_lives_close(struct muster_mesh *mesh);
/** muster_mesh_lives_take() - see who is not there any more. */
void muster_mesh_lives_take(struct muster_mesh *mesh);
/** muster_mesh_sign_off() - this rank leaves in good order. */
void muster_mesh_sign_off(struct muster_mesh *mesh);
/** muster_mesh_signed_off() - whether a rank that has ended did. */
bool muster_mesh_signed_off(const struct muster_mesh *mesh, uint32_t rank);

#endif /* MUSTER_MESH_INTERNAL_H */
