/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a schedule means: its transfers executed on whole messages, step by step, as the host
 * path would. Everything else must have the same bits.
 */
#ifndef MUSTER_SELFTESTS_MEANING_H
#define MUSTER_SELFTESTS_MEANING_H

#include "schedule.h"

/* A schedule whose transfers are listed; vectors: of each rank, count elements. */
void meaning_execute(const struct muster_schedule *schedule, uint8_t type, uint8_t op,
		     uint64_t count, uint8_t *const *vectors);

#endif /* MUSTER_SELFTESTS_MEANING_H */
