// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Slots of a port's links (slots.h). A few stay for the next packets, so that traffic
 * does not go to the allocator each time; the others go back to it.
 */
#include "slots.h"

#include <stdlib.h>

struct muster_link_slot *muster_slots_take(struct muster_slots *slots)
{
	struct muster_link_slot *slot = slots->nr_spare ? slots->spare[--slots->nr_spare] :
							  malloc(sizeof(*slot));

	slots->nr_used += slot != NULL;
	return slot;
}

void muster_slots_give(struct muster_slots *slots, struct muster_link_slot *slot)
{
	slots->nr_used--;
	if (slots->nr_spare < MUSTER_SLOTS_SPARE)
		slots->spare[slots->nr_spare++] = slot;
	else
		free(slot);
}

void muster_slots_free(struct muster_slots *slots)
{
	while (slots->nr_spare)
		free(slots->spare[--slots->nr_spare]);
}
