/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory as muster_engine_world.alloc must give it, for worlds that have no better: of malloc(). */
#ifndef MUSTER_ENGINE_ZEROED_H
#define MUSTER_ENGINE_ZEROED_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What ASan maps begins at a line and is zero; to touch pages that nobody uses takes half of some tests' time. */
static inline void *muster_zeroed_mapped(size_t bytes)
{
#ifdef __SANITIZE_ADDRESS__
	void *p = bytes >= 128 << 10 ? calloc(1, bytes) : NULL;

	if (!((uintptr_t)p % 64))
		return p;
	free(p);
#endif
	(void)bytes;
	return NULL;
}

/** muster_zeroed() - zeroed, 64-byte aligned; the caller's, to free(). NULL: there is none. */
static inline void *muster_zeroed(size_t bytes)
{
	void *p = muster_zeroed_mapped(bytes);

	if (p)
		return p;
	return posix_memalign(&p, 64, bytes) ? NULL : memset(p, 0, bytes);
}

#endif /* MUSTER_ENGINE_ZEROED_H */
