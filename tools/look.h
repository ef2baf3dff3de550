/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The looking pages of all processes that this user may look into (muster_look.h), read
 * for tools: copies, so that what their owners do meanwhile changes nothing. Nothing in
 * them is trusted but to be there.
 */
#ifndef MUSTER_TOOLS_LOOK_H
#define MUSTER_TOOLS_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "muster_look.h"

/* The page of one rank. Of a guest's (copied_us), the process is its QEMU. */
struct look {
	pid_t pid;		/* here; the page has the owner's own view of it */
	char state;		/* of /proc/PID/stat: R, S, D, T, t; 0: it has gone meanwhile */
	char command[32];
	char path[64];		/* of the page, for who wants to open it again */
	struct muster_look *page;	/* with its first nr_comms communicators, and no more */
};

/* Those of one job that are here, by rank. */
struct look_job {
	uint64_t name;
	uint32_t size;
	uint32_t nr;		/* of looks */
	struct look **ranks;	/* size of them; NULL: there is no page of it here */
};

struct looks {
	struct look *looks;	/* by job and rank */
	uint32_t nr;
	struct look_job *jobs;
	uint32_t nr_jobs;
	uint32_t nr_other_version;	/* pages of another library, which are left out */
};

/** looks_read() - all there are now; none is no error. 0; -ENOMEM; -errno: there is no /proc. */
int looks_read(struct looks *looks);
void looks_free(struct looks *looks);

/** look_name() - the process, so that it is found, and what it does if that is asked and seen. */
struct look_name {
	char text[96];
};

struct look_name look_name(const struct look *look, bool with_state);

/** look_comm() - the record of the communicator that another record is of; NULL: there is none. */
const struct muster_look_comm *look_comm(const struct look *look,
					 const struct muster_look_comm *same);
/** look_comm_closed() - what is left of its record after that rank has closed it; NULL: nothing. */
const struct muster_look_comm *look_comm_closed(const struct look *look,
						const struct muster_look_comm *same);
/** look_comm_of() - by its context; NULL. */
const struct muster_look_comm *look_comm_of(const struct look *look, uint32_t context);

#endif /* MUSTER_TOOLS_LOOK_H */
