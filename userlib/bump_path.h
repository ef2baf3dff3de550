/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The path by the bump in the wire (bump.c).
 */
#ifndef MUSTER_BUMP_PATH_H
#define MUSTER_BUMP_PATH_H

#include "internal.h"

/**
 * muster_bump_open() - of a job whose world is open: see, with the others, whether it works.
 * Return: 0: it does, or none is named; -errno, and job->no_bump says why.
 */
int muster_bump_open(struct muster *job);
void muster_bump_close(struct muster *job);
/** muster_bump_cannot() - why an operation is not for it, the same on every rank; NULL: it is. */
const char *muster_bump_cannot(const struct muster_comm *comm, const struct muster_entry *entry);
/** muster_bump_why() - what is to be said of an operation that took it. */
const char *muster_bump_why(const struct muster_comm *comm, const struct muster_entry *entry);
/** muster_bump_schedule() - and in which order it has combined. */
const char *muster_bump_schedule(const struct muster_entry *entry);
/** muster_bump_advance() - begin or go on with the oldest operation. Return: as run(). */
int muster_bump_advance(struct muster_request *request);
/** muster_bump_cancel() - forget the running operation, and tell the others. */
void muster_bump_cancel(struct muster_comm *comm);
/** muster_bump_progress() - take what it has said, ask again. Return: whether it had something. */
bool muster_bump_progress(struct muster *job);
/** muster_bump_wait() - if something runs there, sleep until it speaks, or a little. */
bool muster_bump_wait(struct muster *job, uint64_t timeout_us);

#endif /* MUSTER_BUMP_PATH_H */
