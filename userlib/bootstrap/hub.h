/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The hub: where the ranks of a job meet before they can reach each other. It
 * serves one byte stream a rank, takes one piece of data from each and gives all
 * of them the pieces in order of rank: over the stream, or if they are many, and the
 * rank came to its own UNIX socket, as memory that it writes once. Rank 0 runs it inside
 * its own calls (bootstrap.c); a launcher runs it for ranks that share no kernel with it.
 *
 * Whatever goes wrong ends the hub and is told to everybody in the same sentence.
 * One thread at a time; only muster_hub_step() and muster_hub_gather() block.
 */
#ifndef MUSTER_HUB_H
#define MUSTER_HUB_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <linux/types.h>

enum muster_hub_limit {
	MUSTER_HUB_PIECE_MAX = 1 << 20,	/* bytes that one rank contributes to one gather */
	MUSTER_HUB_ALL_MAX = 64 << 20,	/* and all of them together */
	MUSTER_HUB_STRANGERS_MAX = 16,	/* connections that have not said who they are */
	MUSTER_HUB_SHARED_FROM = 16 << 10, /* bytes of all pieces that are passed as memory */
	MUSTER_HUB_WHY_MAX = 512,	/* bytes of a sentence, with its NUL */
};

#define MUSTER_FRAME_MAGIC	0x7473756du	/* "must" */
#define MUSTER_FRAME_VERSION	2

enum muster_frame_kind {
	MUSTER_FRAME_HELLO = 1,		/* rank to hub: rank and size */
	MUSTER_FRAME_WELCOME = 2,	/* hub to rank: all are there */
	MUSTER_FRAME_PIECE = 3,		/* rank to hub, with data */
	MUSTER_FRAME_GATHERED = 4,	/* hub to rank, with all data by rank */
	MUSTER_FRAME_FAIL = 5,		/* hub to rank, with a sentence; the stream ends */
	MUSTER_FRAME_SHARED = 6,	/* as GATHERED; the data lies in memory that comes with it */
};

/* Head of everything that is said; little endian; `bytes` bytes follow. */
struct muster_frame {
	__le32 magic;
	__le16 version;
	__le16 kind;	/* enum muster_frame_kind */
	__le32 rank;
	__le32 size;
	__le32 error;	/* FAIL: errno, positive */
	__le32 bytes;	/* SHARED: in that memory; nothing follows */
};

_Static_assert(sizeof(struct muster_frame) == 24, "size");

struct muster_hub;

/** muster_hub_create() - a hub for `size` ranks. Return: 0; -ENOMEM. */
int muster_hub_create(uint32_t size, struct muster_hub **hub);

/** muster_hub_destroy() - end it and close its connections. NULL: nothing. */
void muster_hub_destroy(struct muster_hub *hub);

/** muster_hub_listen() - accept ranks of the same user on fd too, until all are there. Owns fd. */
void muster_hub_listen(struct muster_hub *hub, int fd);

/**
 * muster_hub_add() - serve one more connection, which is yet to say its rank.
 * @fd: a byte stream; the hub's from now on.
 * @pid: the process at its other end, whose death counts as end of file; 0: unknown.
 *
 * Return: 0; -ENOSPC when MUSTER_HUB_STRANGERS_MAX already wait (fd is closed).
 */
int muster_hub_add(struct muster_hub *hub, int fd, pid_t pid);

/** muster_hub_join() - the caller itself is this rank and will use muster_hub_gather(). */
void muster_hub_join(struct muster_hub *hub, uint32_t rank);

/**
 * muster_hub_step() - wait for something to do, at most timeout_ms (-1: for ever), and do it.
 *
 * Return: 0; once the hub has failed: -EINVAL, -EPROTO, -ECONNRESET, -ETIMEDOUT,
 * -EMFILE or -ENOMEM, and muster_hub_error() says why.
 */
int muster_hub_step(struct muster_hub *hub, int timeout_ms);

/**
 * muster_hub_fds() - what to poll before the next muster_hub_step(), for a caller that
 * waits for other things too.
 * @fds: room for 2 * (size + MUSTER_HUB_STRANGERS_MAX) + 1 entries
 *
 * Return: how many entries were filled in.
 */
uint32_t muster_hub_fds(const struct muster_hub *hub, struct pollfd *fds);

/** muster_hub_fail() - end it and tell everybody why. Return: error (negative). */
int muster_hub_fail(struct muster_hub *hub, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** muster_hub_met() - whether all ranks are there. */
bool muster_hub_met(const struct muster_hub *hub);

/** muster_hub_missing() - the ranks that are not, in words ("2, 3, 7"). */
void muster_hub_missing(const struct muster_hub *hub, char *text, size_t text_len);

/** muster_hub_gone() - whether all ranks have left again. */
bool muster_hub_gone(const struct muster_hub *hub);

/** muster_hub_gather() - the joined rank's own part; serves all. Errors as muster_hub_step(). */
int muster_hub_gather(struct muster_hub *hub, const void *in, void *out, size_t bytes);

const char *muster_hub_error(const struct muster_hub *hub);

#endif /* MUSTER_HUB_H */
