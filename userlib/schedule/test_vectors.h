/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The vectors of a test's case, all given back at once. Their memory is kept for the next case: what is large
 * malloc() would take from the system each time, and the first touch of a page is dear. ASan sees what goes past
 * either end, or comes too late, as with malloc().
 */
#ifndef MUSTER_SCHEDULE_TEST_VECTORS_H
#define MUSTER_SCHEDULE_TEST_VECTORS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "zeroed.h"

#define VECTORS_BYTES ((size_t)1 << 30)		/* of one case; only what is used is memory */

static struct {
	uint8_t *memory;
	size_t used;
} kept;

/** vector_new() - of any content, 64-byte aligned. */
static inline void *vector_new(size_t bytes)
{
	enum { FENCE = 64 };
	size_t room = (bytes + FENCE - 1) / FENCE * FENCE;
	uint8_t *vector;

	if (!kept.memory)
		kept.memory = muster_zeroed_map(VECTORS_BYTES);
	assert_non_null(kept.memory);
	assert_true(room + 2 * FENCE <= VECTORS_BYTES - kept.used);
	vector = kept.memory + kept.used + FENCE;
	ASAN_POISON_MEMORY_REGION(vector - FENCE, room + 2 * FENCE);
	ASAN_UNPOISON_MEMORY_REGION(vector, bytes);
	kept.used += room + FENCE;
	return vector;
}

/** vectors_free() - all of them. */
static inline void vectors_free(void)
{
	ASAN_POISON_MEMORY_REGION(kept.memory, kept.used);
	kept.used = 0;
}

#endif /* MUSTER_SCHEDULE_TEST_VECTORS_H */
