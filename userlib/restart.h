/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Operations that are begun anew when a member or a part of the network is lost while they run (restart.c).
 */
#ifndef MUSTER_RESTART_H
#define MUSTER_RESTART_H

#include "internal.h"

enum { MUSTER_RESTART_TAG = 0x68656972 };	/* of the groups that make heirs */

/* What a blocking call was called with. */
struct muster_attempt {
	enum muster_coll coll;
	const void *in;
	void *out;
	uint64_t count;
	uint32_t type;
	uint32_t op;
	uint32_t root;		/* of the communicator that was called */
};

/* Of a communicator whose operations are. */
struct muster_restarts {
	enum muster_restart how;
	uint64_t place;		/* of the operation that is called next, or runs; the same count at all members */
	uint64_t from;		/* those before had their end elsewhere, and cannot be run here any more */
	struct muster_comm *heir;	/* on which they run since the last loss; NULL: there was none */
	uint8_t *kept;		/* of an operation in place: what it began with */
	size_t kept_bytes;
};

/** muster_attempt_run() - start it once, and wait (coll.c). */
int muster_attempt_run(struct muster_comm *comm, const struct muster_attempt *attempt);
/** muster_restart_run() - the same, and once more if the first time ends by a loss. */
int muster_restart_run(struct muster_comm *comm, const struct muster_attempt *attempt);
/** muster_restart_set() - 0; -ENOMEM. */
int muster_restart_set(struct muster_comm *comm, enum muster_restart how);
/** muster_restart_forget() - the communicator is closed. */
void muster_restart_forget(struct muster_comm *comm);

/** muster_restart_now() - on which it runs. */
static inline struct muster_comm *muster_restart_now(struct muster_comm *comm)
{
	return comm->restarts && comm->restarts->heir ? comm->restarts->heir : comm;
}

#endif /* MUSTER_RESTART_H */
