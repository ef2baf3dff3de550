/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Many seeds, on as many CPUs as are wanted: what comes out does not depend on how many.
 */
#ifndef MUSTER_DST_CREW_H
#define MUSTER_DST_CREW_H

#include <stdbool.h>
#include <stdint.h>

struct dst_world;

struct dst_crew {
	uint64_t first, count;
	uint64_t jobs;			/* 1: this process alone */
	bool until_failure;		/* no seed behind the first that fails */
};

/* How many have failed. All is said on standard output, progress on the other one. */
uint64_t dst_crew_run(const struct dst_crew *crew, struct dst_world *w);

#endif /* MUSTER_DST_CREW_H */
