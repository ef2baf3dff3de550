/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The clock of trace records: the same for all processes of a machine, and cheap. Who
 * writes and who reads compare what it says.
 */
#ifndef MUSTER_TICKS_H
#define MUSTER_TICKS_H

#include <stdint.h>
#include <time.h>

#include "muster_look.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

/* Of the time stamp counter: some tenths of a millisecond, whatever its rate. */
enum { MUSTER_TICKS_FEW = 1 << 20 };

/** muster_ticks_clock() - which clock this machine's ranks use: enum muster_trace_clock. */
static inline uint32_t muster_ticks_clock(void)
{
#ifdef __x86_64__
	unsigned int a, b, c, d;

	if (__get_cpuid(0x80000007, &a, &b, &c, &d) && d & 1 << 8)	/* does not change its rate */
		return MUSTER_TRACE_TSC;
#endif
	return MUSTER_TRACE_NS;
}

/* Apart, so that who has the other needs no frame for this. */
static __attribute__((noinline)) uint64_t muster_ticks_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline uint64_t muster_ticks_tsc(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	return 0;	/* nobody has it */
#endif
}

/** muster_ticks() - what that clock says. */
static inline uint64_t muster_ticks(uint32_t clock)
{
	return clock == MUSTER_TRACE_TSC ? muster_ticks_tsc() : muster_ticks_ns();
}

#endif /* MUSTER_TICKS_H */
