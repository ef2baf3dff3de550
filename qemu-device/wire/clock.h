/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* This machine's clock, for who keeps times of the world: it never goes back. */
#ifndef MUSTER_CLOCK_H
#define MUSTER_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t muster_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline uint64_t muster_clock_us(void)
{
	return muster_clock_ns() / 1000;
}

#endif /* MUSTER_CLOCK_H */
