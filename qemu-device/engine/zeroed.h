/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory for worlds that have no better, as muster_engine_world and its like have .alloc and .free. What is
 * large comes from the system: it becomes zero as it is used, and what is never used is never touched.
 */
#ifndef MUSTER_ENGINE_ZEROED_H
#define MUSTER_ENGINE_ZEROED_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ASan sees what goes past either end, as with malloc(): a fence is on each side. */
#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
enum { MUSTER_ZEROED_FENCE = 4096 };
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
enum { MUSTER_ZEROED_FENCE = 0 };
#endif

enum { MUSTER_ZEROED_MAPPED = 128 << 10 };	/* bytes from which on it comes from the system */

static inline void *muster_zeroed_map(size_t bytes)
{
	uint8_t *p = mmap(NULL, bytes + 2 * MUSTER_ZEROED_FENCE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	ASAN_POISON_MEMORY_REGION(p, MUSTER_ZEROED_FENCE);
	ASAN_POISON_MEMORY_REGION(p + MUSTER_ZEROED_FENCE + bytes, MUSTER_ZEROED_FENCE);
	return p + MUSTER_ZEROED_FENCE;
}

static inline void muster_zeroed_unmap(void *memory, size_t bytes)
{
	uint8_t *p = (uint8_t *)memory - MUSTER_ZEROED_FENCE;

	ASAN_UNPOISON_MEMORY_REGION(p, bytes + 2 * MUSTER_ZEROED_FENCE);
	munmap(p, bytes + 2 * MUSTER_ZEROED_FENCE);
}

/** muster_zeroed() - zeroed, 64-byte aligned; to be given back by muster_zeroed_free(). NULL: there is none. */
static inline void *muster_zeroed(void *world, size_t bytes)
{
	void *p;

	(void)world;
	if (bytes >= MUSTER_ZEROED_MAPPED)
		return muster_zeroed_map(bytes);
	return posix_memalign(&p, 64, bytes) ? NULL : memset(p, 0, bytes);
}

/** muster_zeroed_free() - with as many bytes as it was asked for; p may be NULL. */
static inline void muster_zeroed_free(void *world, void *p, size_t bytes)
{
	(void)world;
	if (bytes < MUSTER_ZEROED_MAPPED)
		free(p);
	else if (p)
		muster_zeroed_unmap(p, bytes);
}

#endif /* MUSTER_ENGINE_ZEROED_H */
