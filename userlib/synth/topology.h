/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A topology: nodes, one-way links, and limits, each of which bounds the chunks
 * that a set of links carries in one round (SCCL, section 3.2.1: the relation B).
 * A link of its own has a limit of one link; what leaves a node, or a shared bus,
 * is a limit of many. Every link is in a limit.
 */
#ifndef MUSTER_SYNTH_TOPOLOGY_H
#define MUSTER_SYNTH_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum muster_topology_bound {
	MUSTER_TOPOLOGY_NODES_MAX = 4096,
	MUSTER_TOPOLOGY_LINKS_MAX = 1 << 20,
	MUSTER_TOPOLOGY_BANDWIDTH_MAX = 1 << 16,
	MUSTER_TOPOLOGY_NAME_MAX = 31,
};

#define MUSTER_FAR	UINT32_MAX	/* the distance of what cannot be reached */

struct muster_link {
	uint32_t from, to;
};

struct muster_link_limit {
	uint32_t bandwidth;		/* chunks a round, of all links together */
	uint32_t nr_links;
	uint32_t *links;
};

struct muster_topology {
	char name[MUSTER_TOPOLOGY_NAME_MAX + 1];
	uint32_t nodes;
	uint32_t nr_links;
	uint32_t nr_limits;
	struct muster_link *links;
	struct muster_link_limit *limits;
	bool *is_switch;		/* by node: it carries and combines, and is no rank's */
	uint32_t line;			/* of the file that is being read; else 0 */
	uint32_t *lines;		/* by link: where it was first named; 0: in no file */
	uint32_t *index;		/* of links + 1, by a digest of their ends */
	uint32_t index_room;
};

/** muster_topology_new() - nodes without links. NULL: no memory. */
struct muster_topology *muster_topology_new(const char *name, uint32_t nodes);

void muster_topology_free(struct muster_topology *topology);

/** muster_topology_add_link() - its index, new or not; -ENOMEM; -E2BIG. */
int64_t muster_topology_add_link(struct muster_topology *topology, uint32_t from, uint32_t to);

/** muster_topology_find_link() - its index; -ENOENT. */
int64_t muster_topology_find_link(const struct muster_topology *topology, uint32_t from,
				  uint32_t to);

/** muster_topology_add_limit() - bound the links together. 0; -ENOMEM. */
int muster_topology_add_limit(struct muster_topology *topology, uint32_t bandwidth,
			      const uint32_t *links, uint32_t nr_links);

/** muster_topology_join() - a link with a limit of its own. 0; -ENOMEM; -E2BIG. */
int muster_topology_join(struct muster_topology *topology, uint32_t from, uint32_t to,
			 uint32_t bandwidth);

/**
 * muster_topology_make() - "dgx1", "z52", "ring:N", "line:N", "star:N", "full:N",
 * "switch:N", "hypercube:D", "mesh:AxBx...", "torus:AxBx..." or the path of a file.
 * Of switch:N the last node is a switch, linked to all others. "fat-tree:HxLxS": L leaf switches
 * with H hosts each, S spines above; "fat-tree:HxLxAxPxC": P pods of L leaves with A switches
 * above, C cores. "switch-torus:HxAxB...": H hosts at each switch of a torus.
 * A ring of two nodes in a torus has both its directions: two links each way.
 * Return: 0; -EINVAL, -errno of the file; -ENOMEM; why says more.
 */
int muster_topology_make(const char *spec, struct muster_topology **topology, char *why,
			 size_t why_len);

/** muster_topology_read() - the text form (Documentation/synthesis.md); why: "line N: ...". */
int muster_topology_read(FILE *in, struct muster_topology **topology, char *why, size_t why_len);

/** muster_topology_write() - text that reads back equal. 0; -EIO. */
int muster_topology_write(const struct muster_topology *topology, FILE *out);

/** muster_topology_reverse() - the same with all links turned round. 0; -ENOMEM. */
int muster_topology_reverse(const struct muster_topology *topology,
			    struct muster_topology **reversed);

/**
 * muster_topology_usable() - by link, whether it can carry anything: no limit of it is 0.
 * Return: to be freed; NULL: no memory.
 */
bool *muster_topology_usable(const struct muster_topology *topology);

/**
 * muster_topology_distances() - hops from each node to each over usable links.
 * Return: nodes * nodes numbers by from and to, to be freed; NULL: no memory.
 */
uint32_t *muster_topology_distances(const struct muster_topology *topology);

/** muster_topology_hash() - of all but the name. */
uint64_t muster_topology_hash(const struct muster_topology *topology);

/**
 * muster_topology_symmetries() - permutations of the nodes that keep links and limits.
 * @max: no more than these; the search also ends after a bounded number of tries.
 * Return: how many; *permutations has nodes numbers for each, to be freed; -ENOMEM.
 */
int muster_topology_symmetries(const struct muster_topology *topology, uint32_t max,
			       uint32_t **permutations);

#endif /* MUSTER_SYNTH_TOPOLOGY_H */
