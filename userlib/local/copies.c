// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Copies for peers (copies.h). Places are taken in turn: what a peer has just read is still
 * in its cache, and to write there at once would cost more than it saves (64 KiB to 512 KiB,
 * 2 ranks: a quarter of the time of all).
 */
#include "copies.h"

#include "muster_desc.h"

static void fill(struct muster_copies *copies)
{
	for (uint32_t i = 0; i < MUSTER_COPIES_MAX; i++)
		copies->free[i] = (uint8_t)i;
	copies->nr_free = MUSTER_COPIES_MAX;
}

void *muster_copy_take(struct muster_copies *copies, struct muster_regions_own *regions,
		       uint32_t context)
{
	uint8_t place;
	void *memory;

	if (!copies->key) {
		if (muster_region_alloc(regions, (size_t)MUSTER_COPIES_MAX * MUSTER_PULSE_MAX,
					&memory, &copies->key))
			return NULL;
		copies->memory = memory;
		fill(copies);
	}
	if (!copies->nr_free)
		return NULL;
	place = copies->free[copies->first];
	copies->first = (copies->first + 1) % MUSTER_COPIES_MAX;
	copies->nr_free--;
	copies->contexts[place] = context + 1;
	return copies->memory + (size_t)place * MUSTER_PULSE_MAX;
}

static void give(struct muster_copies *copies, uint32_t place)
{
	copies->contexts[place] = 0;
	copies->free[(copies->first + copies->nr_free++) % MUSTER_COPIES_MAX] = (uint8_t)place;
}

void muster_copy_give(struct muster_copies *copies, const void *addr)
{
	give(copies, (uint32_t)(((const uint8_t *)addr - copies->memory) / MUSTER_PULSE_MAX));
}

void muster_copies_drop(struct muster_copies *copies, uint32_t context)
{
	for (uint32_t i = 0; i < MUSTER_COPIES_MAX; i++)
		if (copies->contexts[i] == context + 1)
			give(copies, i);
}
