/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How bumps are joined: who is at the other end of which port, the ways between
 * them, and the tree on which other traffic may go. Pure.
 */
#ifndef MUSTER_BUMP_TOPOLOGY_H
#define MUSTER_BUMP_TOPOLOGY_H

#include <stdint.h>
#include <stdio.h>

#include "bump.h"

struct muster_bump_topology {
	uint16_t nr;		/* elements */
	uint8_t nr_ports[MUSTER_BUMP_HOSTS_MAX];	/* with the host's, which is 0 */
	uint16_t neighbours[MUSTER_BUMP_HOSTS_MAX][MUSTER_BUMP_PORTS_MAX];
};

/**
 * muster_bump_topology_make() - by name: "ring", "tree" (binomial), "torus" (as
 * MUSTER_BUMP_TORUS cuts it), "cube" (for recursive doubling).
 * Return: 0; -EINVAL: no such name, or 0 or too many elements.
 */
int muster_bump_topology_make(struct muster_bump_topology *topology, const char *name, uint32_t nr);

/**
 * muster_bump_topology_read() - from lines "A B", one a link; "#" begins a remark.
 * Return: 0; -EINVAL: a line is no link, or some element is not reached; `why` says which.
 */
int muster_bump_topology_read(struct muster_bump_topology *topology, FILE *in, uint32_t nr,
			      char *why, size_t why_len);

/** muster_bump_topology_port() - the port of `element` that leads to a neighbour; 0: none does. */
uint32_t muster_bump_topology_port(const struct muster_bump_topology *topology, uint32_t element,
				   uint32_t neighbour);

/** muster_bump_topology_routes() - the first port of a shortest way to each element. */
void muster_bump_topology_routes(const struct muster_bump_topology *topology, uint32_t element,
				 uint8_t routes[MUSTER_BUMP_HOSTS_MAX]);

/** muster_bump_topology_open() - which ports of an element are open to other traffic, as a mask. */
uint32_t muster_bump_topology_open(const struct muster_bump_topology *topology, uint32_t element);

#endif /* MUSTER_BUMP_TOPOLOGY_H */
