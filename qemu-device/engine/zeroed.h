/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory as muster_engine_world.alloc must give it. What is large comes from the system: it becomes zero as
 * it is used, and what is never used is never touched.
 */
#ifndef MUSTER_ENGINE_ZEROED_H
#define MUSTER_ENGINE_ZEROED_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MUSTER_ZEROED_MAPPED = 128 << 10 };	/* bytes from which on it is */

/** muster_zeroed() - zeroed, 64-byte aligned; to be given back by muster_zeroed_free(). NULL: there is none. */
static inline void *muster_zeroed(size_t bytes)
{
	void *p;

	if (bytes < MUSTER_ZEROED_MAPPED)
		return posix_memalign(&p, 64, bytes) ? NULL : memset(p, 0, bytes);
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

/** muster_zeroed_free() - with as many bytes as it was asked for; p may be NULL. */
static inline void muster_zeroed_free(void *p, size_t bytes)
{
	if (bytes < MUSTER_ZEROED_MAPPED)
		free(p);
	else if (p)
		munmap(p, bytes);
}

#endif /* MUSTER_ENGINE_ZEROED_H */
