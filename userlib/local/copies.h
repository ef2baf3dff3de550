/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Copies that peers read in place of memory that they cannot: a few places in a region
 * that they map, each for what one send of one pulse has. Copies are made as long as there
 * are places; who finds none sends by packets.
 */
#ifndef MUSTER_COPIES_H
#define MUSTER_COPIES_H

#include "regions.h"

enum {
	MUSTER_COPIES_MAX = 32,		/* at once */
	MUSTER_COPIES_WARM = 6,		/* of these, which are used as long as they will do */
	MUSTER_COPIES_KEPT = 16,	/* of them, at most: who may wait for its receiver finds a place, too */
};

struct muster_copies {
	uint32_t key;			/* 0: the region is not made yet */
	uint8_t *memory;
	uint32_t nr_free;
	uint32_t nr_warm;		/* of these; the others are spare */
	uint32_t first;			/* of a ring of warm places: the longest unused comes first */
	uint8_t warm[MUSTER_COPIES_WARM];
	uint8_t spare[MUSTER_COPIES_MAX - MUSTER_COPIES_WARM];
	uint32_t nr_kept;
	uint32_t contexts[MUSTER_COPIES_MAX];	/* plus one; 0: free */
	uint8_t readers[MUSTER_COPIES_MAX];	/* sends of that context that have it still */
};

/**
 * muster_copy_take() - a place for one pulse.
 * @context: which holds it; MUSTER_LEND_KEPT: none.
 * Return: it; NULL: there is none now, or no memory.
 */
void *muster_copy_take(struct muster_copies *copies, struct muster_regions_own *regions,
		       uint32_t context);
/** muster_copy_again() - another send has the copy at addr, too. */
void muster_copy_again(struct muster_copies *copies, const void *addr);
/** muster_copy_give() - a send has done with the copy at addr. */
void muster_copy_give(struct muster_copies *copies, const void *addr);
/** muster_copies_drop() - all that a context holds still: it has failed. */
void muster_copies_drop(struct muster_copies *copies, uint32_t context);

#endif /* MUSTER_COPIES_H */
