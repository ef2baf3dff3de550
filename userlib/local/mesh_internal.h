/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of the mesh share: mesh.c is the mesh as it runs, mesh_meet.c is how
 * its ranks find each other, and mesh_message.c how one message goes over a connection.
 */
#ifndef MUSTER_MESH_INTERNAL_H
#define MUSTER_MESH_INTERNAL_H

#include <sched.h>
#include <unistd.h>

#include "mesh.h"

enum {
	NAME_LEN = 6,	/* of an autobound socket: NUL and five digits */
};

struct peer {
	int fd;		/* -1: no connection, or none any more */
	int pidfd;
	int wake_fd;	/* -1: wake it by a message */
	bool offered;	/* it has ours */
	bool said_bye;
};

/* One rank's part of the allgather. */
struct card {
	int32_t error;
	uint32_t pid;
	uint64_t secret;
	char name[NAME_LEN];
	uint16_t name_len;
	uint8_t note[MUSTER_MESH_NOTE];
	char why[128];
	cpu_set_t cpus;
};

struct muster_mesh {
	const struct muster_mesh_events *events;
	void *owner;
	uint32_t rank;
	uint32_t size;
	int epoll_fd;
	int memory_fd;
	int wake_fd;
	uint32_t nr_wakers;
	bool crowded;
	struct card *cards;
	struct peer *peers;
};
static inline void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

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

/** muster_mesh_meet() - connect with all; errors and words of muster_mesh_open(). */
int muster_mesh_meet(struct muster_mesh *mesh, const struct muster_oob *oob,
		     const struct muster_mesh_config *config, char *why, size_t why_len);

#endif /* MUSTER_MESH_INTERNAL_H */
