/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * MUSTER_STATS: what a rank's operations were, and which way they went, told when it leaves.
 */
#ifndef MUSTER_STATS_H
#define MUSTER_STATS_H

#include <stdio.h>

#include "internal.h"

/** muster_stats_open() - if the settings ask for it. Return: 0; -ENOMEM with a sentence. */
int muster_stats_open(struct muster *job);
/** muster_stats_waited() - a caller has waited so long for an operation. */
void muster_stats_waited(struct muster *job, uint64_t us);
/** muster_stats_gather() - from all ranks of the job, if all are there: how long each has waited. */
void muster_stats_gather(struct muster *job);
/** muster_stats_count() - an operation has ended well, or there was nothing to do. */
void muster_stats_count(const struct muster_request *request);
/** muster_stats_write() - the table, as text. */
void muster_stats_write(const struct muster *job, FILE *out);
/** muster_stats_close() - rank 0 says it on stderr. */
void muster_stats_close(struct muster *job);

#endif /* MUSTER_STATS_H */
