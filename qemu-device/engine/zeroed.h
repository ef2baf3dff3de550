/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory as muster_engine_world.alloc must give it, for worlds that have no better: of malloc(). */
#ifndef MUSTER_ENGINE_ZEROED_H
#define MUSTER_ENGINE_ZEROED_H

#include <stdlib.h>
#include <string.h>

/** muster_zeroed() - zeroed, 64-byte aligned; the caller's, to free(). NULL: there is none. */
static inline void *muster_zeroed(size_t bytes)
{
	void *p;

	return posix_memalign(&p, 64, bytes) ? NULL : memset(p, 0, bytes);
}

#endif /* MUSTER_ENGINE_ZEROED_H */
