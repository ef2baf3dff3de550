// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What contexts need while they run and give back when they rest: sequences,
 * instances, messages, what peers have yet to answer. Sizes are rounded up to powers of two; what is given
 * back is kept for the next that needs one of that size, up to a limit, so that a
 * busy context does not allocate for each operation and idle ones keep nothing.
 */
#include "internal.h"

enum { SMALLEST_BITS = 6 };

struct pool_item {
	struct pool_item *next;
};

static uint32_t class_of(size_t bytes)
{
	return bytes <= 1u << SMALLEST_BITS ? 0 : 64 - SMALLEST_BITS - __builtin_clzll(bytes - 1);
}

static size_t class_bytes(uint32_t class)
{
	return (size_t)1 << (SMALLEST_BITS + class);
}

void *muster_pool_take(struct muster_engine *engine, size_t bytes)
{
	uint32_t class = class_of(bytes);
	struct pool_item *item = class < POOL_CLASSES ? engine->pool.free[class] : NULL;

	if (!item)
		return engine->world.alloc(engine->opaque, class_bytes(class));
	engine->pool.free[class] = item->next;
	engine->pool.kept -= class_bytes(class);
	return item;
}

void muster_pool_give(struct muster_engine *engine, void *p, size_t bytes)
{
	uint32_t class = class_of(bytes);
	struct pool_item *item = p;

	if (!p)
		return;
	if (class >= POOL_CLASSES || engine->pool.kept + class_bytes(class) > POOL_KEEP_BYTES) {
		engine->world.free(engine->opaque, p, class_bytes(class));
		return;
	}
	item->next = engine->pool.free[class];
	engine->pool.free[class] = item;
	engine->pool.kept += class_bytes(class);
}

size_t muster_engine_kept(const struct muster_engine *engine)
{
	size_t bytes = engine->pool.kept;
	uint32_t i;

	for (i = 0; i < engine->nr_units; i++)
		bytes += muster_buffer_kept(engine->units[i]);
	return bytes;
}

void muster_pool_destroy(struct muster_engine *engine)
{
	uint32_t class;

	for (class = 0; class < POOL_CLASSES; class++)
		while (engine->pool.free[class])
			engine->world.free(engine->opaque, muster_pool_take(engine, class_bytes(class)),
					   class_bytes(class));
}
