// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The nodes that a socket port knows (nodes.h): a table of leaves, as long as the highest
 * number asks for.
 */
#include "nodes.h"

#include <stdlib.h>
#include <string.h>

static int grow(struct muster_nodes *nodes, uint32_t leaf)
{
	uint32_t nr = nodes->nr_leaves ? nodes->nr_leaves : 1;
	struct muster_node **leaves;

	while (nr <= leaf)
		nr *= 2;
	leaves = realloc(nodes->leaves, nr * sizeof(*leaves));
	if (!leaves)
		return -1;
	memset(leaves + nodes->nr_leaves, 0, (nr - nodes->nr_leaves) * sizeof(*leaves));
	nodes->leaves = leaves;
	nodes->nr_leaves = nr;
	return 0;
}

struct muster_node *muster_nodes_make(struct muster_nodes *nodes, uint32_t node)
{
	uint32_t leaf = node / MUSTER_NODES_LEAF;

	if (leaf >= nodes->nr_leaves && grow(nodes, leaf))
		return NULL;
	if (!nodes->leaves[leaf])
		nodes->leaves[leaf] = calloc(MUSTER_NODES_LEAF, sizeof(**nodes->leaves));
	return nodes->leaves[leaf] ? &nodes->leaves[leaf][node % MUSTER_NODES_LEAF] : NULL;
}

void muster_nodes_free(struct muster_nodes *nodes)
{
	for (uint32_t i = 0; i < nodes->nr_leaves; i++)
		free(nodes->leaves[i]);
	free(nodes->leaves);
}
