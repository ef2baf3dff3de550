// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Copies for peers (copies.h). Places are taken in turn: what a peer has just read is still
 * in its cache, and to write there at once would cost more than it saves (64 KiB to 512 KiB,
 * 2 ranks: a quarter of the time of all). But few take turns, so that they stay in the cache
 * that is shared (allgather and alltoall of 1 MiB, 2 ranks: with 4 MiB of them a sixth more time than with 1.5).
 */
#include "copies.h"

#include "engine.h"

static bool is_kept(const struct muster_copies *copies, uint32_t place)
{
	return copies->contexts[place] == MUSTER_LEND_KEPT + 1;
}

static void give(struct muster_copies *copies, uint32_t place)
{
	copies->nr_kept -= is_kept(copies, place);
	copies->contexts[place] = 0;
	if (place < MUSTER_COPIES_WARM)
		copies->warm[(copies->first + copies->nr_warm++) % MUSTER_COPIES_WARM] = (uint8_t)place;
	else
		copies->spare[copies->nr_free - copies->nr_warm] = (uint8_t)place;
	copies->nr_free++;
}

static uint32_t take(struct muster_copies *copies)
{
	uint8_t place;

	copies->nr_free--;
	if (!copies->nr_warm)
		return copies->spare[copies->nr_free];
	place = copies->warm[copies->first];
	copies->first = (copies->first + 1) % MUSTER_COPIES_WARM;
	copies->nr_warm--;
	return place;
}

void *muster_copy_take(struct muster_copies *copies, struct muster_regions_own *regions,
		       uint32_t context)
{
	uint32_t place;
	void *memory;

	if (!copies->key) {
		if (muster_region_alloc(regions, (size_t)MUSTER_COPIES_MAX * MUSTER_PULSE_MAX,
					&memory, &copies->key))
			return NULL;
		copies->memory = memory;
		for (place = 0; place < MUSTER_COPIES_MAX; place++)
			give(copies, place);
	}
	if (!copies->nr_free ||
	    (context == MUSTER_LEND_KEPT && copies->nr_kept == MUSTER_COPIES_KEPT))
		return NULL;
	place = take(copies);
	copies->contexts[place] = context + 1;
	copies->nr_kept += is_kept(copies, place);
	copies->readers[place] = 1;
	return copies->memory + (size_t)place * MUSTER_PULSE_MAX;
}

static uint32_t place_of(const struct muster_copies *copies, const void *addr)
{
	return (uint32_t)(((const uint8_t *)addr - copies->memory) / MUSTER_PULSE_MAX);
}

void muster_copy_again(struct muster_copies *copies, const void *addr)
{
	copies->readers[place_of(copies, addr)]++;
}

void muster_copy_give(struct muster_copies *copies, const void *addr)
{
	uint32_t place = place_of(copies, addr);

	if (!--copies->readers[place])
		give(copies, place);
}

void muster_copies_drop(struct muster_copies *copies, uint32_t context)
{
	for (uint32_t i = 0; i < MUSTER_COPIES_MAX; i++)
		if (copies->contexts[i] == context + 1)
			give(copies, i);
}
