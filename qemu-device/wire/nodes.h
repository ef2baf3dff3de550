/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a socket port keeps of a node: its link while there is one, else how it goes on,
 * and which of its lives was lost last. Memory for those that were spoken to, in leaves of neighbours;
 * found in two steps, whatever numbers somebody chooses. In the wire's own room only.
 */
#ifndef MUSTER_WIRE_NODES_H
#define MUSTER_WIRE_NODES_H

#include <stddef.h>
#include <stdint.h>

#include "reliable.h"

struct muster_node {
	void *peer;		/* NULL: no link */
	struct muster_link_rest rest;	/* with which the next one begins */
};

enum { MUSTER_NODES_LEAF = 64 };

struct muster_nodes {
	struct muster_node **leaves;
	uint32_t nr_leaves;
};

/** muster_nodes_find() - NULL: nothing is known of it. */
static inline struct muster_node *muster_nodes_find(const struct muster_nodes *nodes,
						    uint32_t node)
{
	uint32_t leaf = node / MUSTER_NODES_LEAF;

	return leaf < nodes->nr_leaves && nodes->leaves[leaf] ?
	       &nodes->leaves[leaf][node % MUSTER_NODES_LEAF] : NULL;
}

/** muster_nodes_make() - NULL: no memory. It stays where it is. */
struct muster_node *muster_nodes_make(struct muster_nodes *nodes, uint32_t node);

void muster_nodes_free(struct muster_nodes *nodes);

#endif /* MUSTER_WIRE_NODES_H */
