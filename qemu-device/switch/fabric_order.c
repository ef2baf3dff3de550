// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * In which order a group's tree combines its members' contributions, told without switches and ports:
 * for whoever is to come to the same bits without the tree. The order at a switch is that of ring.c.
 */
#include "fabric_internal.h"
#include "internal.h"

#include <errno.h>
#include <stdlib.h>

struct ordering {
	uint32_t *has;				/* by switch: the member that has what it has come to */
	struct muster_fabric_give *next;	/* place of the next one */
};

static uint32_t has(const struct ordering *ordering, const struct muster_switch_child *child)
{
	return child->node < MUSTER_NODE_AGGREGATION ? child->member :
						       ordering->has[child->node - MUSTER_NODE_AGGREGATION];
}

static void give(struct ordering *ordering, uint32_t from, uint32_t to)
{
	*ordering->next++ = (struct muster_fabric_give){ .from = from, .to = to };
}

/* Return: the member that has what these children have come to. */
static uint32_t combine_row(struct ordering *ordering, const struct muster_switch_child *children, uint32_t nr)
{
	uint32_t first = has(ordering, &children[0]);

	for (uint32_t i = 1; i < nr; i++)
		give(ordering, has(ordering, &children[i]), first);
	return first;
}

static uint32_t combine(struct ordering *ordering, const struct muster_switch_group *group, uint32_t radix)
{
	uint32_t split = ring_split(group, radix), left, right;

	if (!split || split == group->nr_children)
		return combine_row(ordering, group->children, group->nr_children);
	left = combine_row(ordering, group->children, split);
	right = combine_row(ordering, group->children + split, group->nr_children - split);
	give(ordering, right, left);
	return left;
}

int muster_fabric_order(const struct muster_fabric *fabric, const struct muster_fabric_group *group,
			uint8_t type, struct muster_fabric_give *gives)
{
	struct ordering ordering = {
		.has = calloc(fabric->nr_switches, sizeof(*ordering.has)), .next = gives,
	};

	if (!ordering.has)
		return -ENOMEM;
	for (uint32_t i = 0; i < group->nr_branches; i++) {
		struct muster_switch_group at = group->branches[i].group;

		at.type = type;
		ordering.has[group->branches[i].number] = combine(&ordering, &at, fabric->radix);
	}
	free(ordering.has);
	return 0;
}
