/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Storage for the slots of a socket port's links: taken when a packet is sent, given back
 * when it is acknowledged. How many a link may have, its pool says (reliable.c). In the
 * wire's own room only.
 */
#ifndef MUSTER_WIRE_SLOTS_H
#define MUSTER_WIRE_SLOTS_H

#include "reliable.h"

enum {
	MUSTER_SLOTS_SHARED = 1024,	/* beyond the floors of links: 4.3 MB */
	MUSTER_SLOTS_SPARE = 64,	/* kept for whoever is next */
};

struct muster_slots {
	uint32_t nr_used, nr_spare;
	struct muster_link_slot *spare[MUSTER_SLOTS_SPARE];
};

/** muster_slots_take() - NULL: no memory. */
struct muster_link_slot *muster_slots_take(struct muster_slots *slots);

void muster_slots_give(struct muster_slots *slots, struct muster_link_slot *slot);

/** muster_slots_free() - all were given back. */
void muster_slots_free(struct muster_slots *slots);

#endif /* MUSTER_WIRE_SLOTS_H */
