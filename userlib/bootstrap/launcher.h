/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Who started this process, and says which rank it is and how many there are.
 */
#ifndef MUSTER_LAUNCHER_H
#define MUSTER_LAUNCHER_H

struct muster_launcher {
	const char *rank, *size;	/* names of variables */
};

/** muster_launcher_find() - the first that says anything; if none does, our own. Never NULL. */
const struct muster_launcher *muster_launcher_find(void);

#endif /* MUSTER_LAUNCHER_H */
