/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What is to happen in modelled time, the earliest first; of what happens at once, what was
 * put there first.
 */
#ifndef MUSTER_SELFTESTS_TIMELINE_H
#define MUSTER_SELFTESTS_TIMELINE_H

#include <stdint.h>

/* At the beginning of whatever is to happen. */
struct timed {
	double at_ns;
	uint64_t order;
};

struct timeline {
	struct timed **heap;
	uint32_t nr, max;
	uint64_t order;
};

void timeline_push(struct timeline *line, struct timed *timed);
/* NULL: nothing is left. */
struct timed *timeline_pop(struct timeline *line);
/* What is left is freed with it. */
void timeline_free(struct timeline *line);

static inline double later(double a, double b)
{
	return a > b ? a : b;
}

#endif /* MUSTER_SELFTESTS_TIMELINE_H */
