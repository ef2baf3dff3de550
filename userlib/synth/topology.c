// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The topology as an object: built link by link, turned round, measured in hops,
 * and told apart from others.
 */
#include <errno.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "topology.h"

struct muster_topology *muster_topology_new(const char *name, uint32_t nodes)
{
	struct muster_topology *topology = calloc(1, sizeof(*topology));

	if (!topology)
		return NULL;
	snprintf(topology->name, sizeof(topology->name), "%s", name);
	topology->nodes = nodes;
	return topology;
}

void muster_topology_free(struct muster_topology *topology)
{
	if (!topology)
		return;
	for (uint32_t i = 0; i < topology->nr_limits; i++)
		free(topology->limits[i].links);
	free(topology->limits);
	free(topology->links);
	free(topology);
}

int64_t muster_topology_find_link(const struct muster_topology *topology, uint32_t from,
				  uint32_t to)
{
	for (uint32_t i = 0; i < topology->nr_links; i++)
		if (topology->links[i].from == from && topology->links[i].to == to)
			return i;
	return -ENOENT;
}

/* One more element; the room doubles whenever the count is a power of two. */
static int grow(void **array, uint32_t nr, size_t size)
{
	void *grown;

	if (nr & (nr - 1))
		return 0;
	grown = realloc(*array, (nr ? 2 * nr : 1) * size);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	return 0;
}

int64_t muster_topology_add_link(struct muster_topology *topology, uint32_t from, uint32_t to)
{
	int64_t found = muster_topology_find_link(topology, from, to);

	if (found >= 0)
		return found;
	if (grow((void **)&topology->links, topology->nr_links, sizeof(*topology->links)))
		return -ENOMEM;
	topology->links[topology->nr_links] = (struct muster_link){ from, to };
	return topology->nr_links++;
}

int muster_topology_add_limit(struct muster_topology *topology, uint32_t bandwidth,
			      const uint32_t *links, uint32_t nr_links)
{
	uint32_t *copy = malloc((nr_links + 1) * sizeof(*copy));

	if (!copy || grow((void **)&topology->limits, topology->nr_limits,
			  sizeof(*topology->limits))) {
		free(copy);
		return -ENOMEM;
	}
	if (nr_links)
		memcpy(copy, links, nr_links * sizeof(*copy));
	topology->limits[topology->nr_limits++] = (struct muster_link_limit){
		.bandwidth = bandwidth, .nr_links = nr_links, .links = copy,
	};
	return 0;
}

int muster_topology_join(struct muster_topology *topology, uint32_t from, uint32_t to,
			 uint32_t bandwidth)
{
	int64_t link = muster_topology_add_link(topology, from, to);
	uint32_t index = link;

	return link < 0 ? (int)link : muster_topology_add_limit(topology, bandwidth, &index, 1);
}

int muster_topology_reverse(const struct muster_topology *topology,
			    struct muster_topology **reversed)
{
	struct muster_topology *made = muster_topology_new(topology->name, topology->nodes);
	int err = made ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < topology->nr_links && !err; i++)
		if (muster_topology_add_link(made, topology->links[i].to,
					     topology->links[i].from) < 0)
			err = -ENOMEM;
	for (uint32_t i = 0; i < topology->nr_limits && !err; i++)
		err = muster_topology_add_limit(made, topology->limits[i].bandwidth,
						topology->limits[i].links,
						topology->limits[i].nr_links);
	if (err)
		muster_topology_free(made);
	else
		*reversed = made;
	return err;
}

bool muster_topology_usable(const struct muster_topology *topology, uint32_t link)
{
	for (uint32_t i = 0; i < topology->nr_limits; i++) {
		const struct muster_link_limit *limit = &topology->limits[i];

		for (uint32_t j = 0; j < limit->nr_links && !limit->bandwidth; j++)
			if (limit->links[j] == link)
				return false;
	}
	return true;
}

/* Hops from one node; rounds of relaxation, as many as the farthest node needs. */
static void measure_from(const struct muster_topology *topology, const bool *usable, uint32_t from,
			 uint32_t *hops)
{
	bool changed = true;

	for (uint32_t node = 0; node < topology->nodes; node++)
		hops[node] = node == from ? 0 : MUSTER_FAR;
	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < topology->nr_links; i++) {
			const struct muster_link *link = &topology->links[i];

			if (!usable[i] || hops[link->from] == MUSTER_FAR ||
			    hops[link->to] <= hops[link->from] + 1)
				continue;
			hops[link->to] = hops[link->from] + 1;
			changed = true;
		}
	}
}

uint32_t *muster_topology_distances(const struct muster_topology *topology)
{
	uint32_t *hops = malloc((size_t)topology->nodes * topology->nodes * sizeof(*hops));
	bool *usable = malloc(topology->nr_links + 1);

	if (!hops || !usable) {
		free(usable);
		free(hops);
		return NULL;
	}
	for (uint32_t i = 0; i < topology->nr_links; i++)
		usable[i] = muster_topology_usable(topology, i);
	for (uint32_t node = 0; node < topology->nodes; node++)
		measure_from(topology, usable, node, hops + (size_t)node * topology->nodes);
	free(usable);
	return hops;
}

uint64_t muster_topology_hash(const struct muster_topology *topology)
{
	uint64_t hash = XXH64(&(uint32_t){ htole32(topology->nodes) }, 4, 1);

	for (uint32_t i = 0; i < topology->nr_links; i++) {
		uint32_t pair[2] = {
			htole32(topology->links[i].from), htole32(topology->links[i].to)
		};

		hash = XXH64(pair, sizeof(pair), hash);
	}
	for (uint32_t i = 0; i < topology->nr_limits; i++) {
		const struct muster_link_limit *limit = &topology->limits[i];

		hash = XXH64(&(uint32_t){ htole32(limit->bandwidth) }, 4, hash);
		for (uint32_t j = 0; j < limit->nr_links; j++)
			hash = XXH64(&(uint32_t){ htole32(limit->links[j]) }, 4, hash);
	}
	return hash;
}
