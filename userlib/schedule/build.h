/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Making schedules: what the generators, the reader and the tests share. A
 * builder remembers its first error, so that a generator reads as the algorithm
 * and is checked once, at the end. It guarantees the form of a schedule (ranges,
 * steps from 0 without gaps), not its meaning: that is the checker's.
 */
#ifndef MUSTER_SCHEDULE_BUILD_H
#define MUSTER_SCHEDULE_BUILD_H

#include "schedule.h"

struct muster_builder {
	struct muster_schedule schedule;	/* head is for generators to read */
	uint32_t step;				/* of the next transfer */
	int err;
};

/** muster_builder_init() - begin a schedule without transfers. */
void muster_builder_init(struct muster_builder *builder, const char *name, enum muster_coll coll,
			 uint32_t ranks, uint32_t chunks, uint32_t root);

/** muster_builder_places() - of a custom schedule, which needs them: by chunk and rank. */
void muster_builder_places(struct muster_builder *builder, const uint8_t *places);

/** muster_builder_step() - end the step; one without transfers is not ended. */
void muster_builder_step(struct muster_builder *builder);

/** muster_builder_add() - one transfer of the current step; from a rank to itself: it reduces. */
void muster_builder_add(struct muster_builder *builder, uint32_t chunk, uint32_t from, uint32_t to,
			bool reduce);

/** muster_builder_end() - make it a schedule. Return: 0; -EINVAL (form); -ENOMEM. */
int muster_builder_end(struct muster_builder *builder, struct muster_schedule **schedule);

/** muster_builder_abandon() - free what is there. */
void muster_builder_abandon(struct muster_builder *builder);

#endif /* MUSTER_SCHEDULE_BUILD_H */
