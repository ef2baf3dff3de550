/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The mesh: connections between the ranks of a host, each made when it is first needed,
 * but for those to rank 0. It passes memory, wakes sleepers, and notices deaths, with a
 * connection and without, also where a child of the dead still holds its sockets. Nothing
 * of it has a name in a file system, so nothing is left when a rank is killed.
 *
 * One thread at a time. Only muster_mesh_open() and muster_mesh_wait() block.
 */
#ifndef MUSTER_MESH_H
#define MUSTER_MESH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/types.h>

#include "muster.h"

struct muster_mesh;

enum muster_mesh_kind {
	MUSTER_MESH_HELLO = 1,		/* first of all from who connects */
	MUSTER_MESH_REGION = 2,		/* memory that the receiver may read; brings it */
	MUSTER_MESH_WITHDRAW = 3,	/* and may not any more */
	MUSTER_MESH_WAKE = 4,		/* nothing but that it comes */
	MUSTER_MESH_WAKER = 5,		/* brings what wakes the sender faster from now on */
	MUSTER_MESH_MEMORY = 6,		/* rank 0's answer to a hello: the memory that all share */
	MUSTER_MESH_BOARD = 7,		/* then who has left */
	MUSTER_MESH_LIVES = 8,		/* and what tells of ends (mesh_lives.c) */
};

enum muster_mesh_limit {
	MUSTER_MESH_RANKS_MAX = 1024,	/* of one host */
};

struct muster_mesh_message {
	__le32 kind;	/* enum muster_mesh_kind */
	__le32 key;
	__le64 addr;
	__le64 bytes;
};

_Static_assert(sizeof(struct muster_mesh_message) == 24, "size");

struct muster_mesh_events {
	/* REGION or WITHDRAW; fd is the receiver's to close, or -1: none, or no descriptor free. */
	void (*message)(void *owner, uint32_t rank, const struct muster_mesh_message *message,
			int fd);
	/* A rank has ended, by its death or because it left. Once a rank. */
	void (*lost)(void *owner, uint32_t rank, bool left);
	/*
	 * The caller's thread begins to sleep here, or ends: others may call meanwhile. NULL: it
	 * is the only one.
	 */
	void (*sleeps)(void *owner, bool begins);
};

struct muster_mesh_config {
	const struct muster_mesh_events *events;
	void *owner;
	uint64_t deadline_us;
	int memory_fd;		/* rank 0: memory for all; stays the caller's; -1: none */
	int error;		/* the caller cannot go on: tell the others, with why */
};

/**
 * muster_mesh_open() - meet all other ranks; collective.
 *
 * Calls oob->allgather as often as all others, whatever fails; except that a rank which has
 * no memory for the answer returns -ENOMEM without. Return: 0; the error of the first rank
 * that had one; -ETIMEDOUT; -ECONNRESET.
 */
int muster_mesh_open(const struct muster_oob *oob, const struct muster_mesh_config *config,
		     struct muster_mesh **mesh, char *why, size_t why_len);

/** muster_mesh_close() - leave in good order. */
void muster_mesh_close(struct muster_mesh *mesh);

/** muster_mesh_memory() - what rank 0 gave to us others, or -1; the caller's, once. */
int muster_mesh_memory(struct muster_mesh *mesh);

/** muster_mesh_number() - a random number, the same at all ranks: for names of their own. */
uint64_t muster_mesh_number(const struct muster_mesh *mesh);

/**
 * muster_mesh_base_leave() - when this rank has left in good order, it is to be known how many
 * sequences of a context it had ended. Return: false: there is no room to say so.
 */
bool muster_mesh_base_leave(struct muster_mesh *mesh, uint32_t context, uint32_t life,
			    uint32_t base);
/** muster_mesh_base_left() - what a rank said of a context that has left in good order, or is about to. */
bool muster_mesh_base_left(const struct muster_mesh *mesh, uint32_t rank, uint32_t context,
			   uint32_t life, uint32_t *base);

/** muster_mesh_crowded() - whether the ranks outnumber the processors that they may use. */
bool muster_mesh_crowded(const struct muster_mesh *mesh);

/**
 * muster_mesh_send() - REGION or WITHDRAW to a rank. @fd: to pass on, or -1.
 * Return: 0; -EAGAIN: no room, try again later; -ETOOMANYREFS: later, and to others neither;
 * -EHOSTUNREACH; what the system said of a connection to it.
 */
int muster_mesh_send(struct muster_mesh *mesh, uint32_t rank,
		     const struct muster_mesh_message *message, int fd);

/** muster_mesh_wake() - end the muster_mesh_wait() of a rank; of the own one: of another thread. */
void muster_mesh_wake(struct muster_mesh *mesh, uint32_t rank);

/** muster_mesh_watch() - let muster_mesh_wait() end when fd is readable, too. Return: 0 or -errno. */
int muster_mesh_watch(struct muster_mesh *mesh, int fd);

/** muster_mesh_service() - take messages and notice deaths, without blocking. */
void muster_mesh_service(struct muster_mesh *mesh);

/** muster_mesh_wait() - the same, after sleeping until there is something, at most timeout_us. */
void muster_mesh_wait(struct muster_mesh *mesh, uint64_t timeout_us);

#endif /* MUSTER_MESH_H */
