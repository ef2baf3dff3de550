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
	topology->is_switch = calloc(nodes, sizeof(*topology->is_switch));
	if (!topology->is_switch) {
		free(topology);
		return NULL;
	}
	return topology;
}

void muster_topology_free(struct muster_topology *topology)
{
	if (!topology)
		return;
	for (uint32_t i = 0; i < topology->nr_limits; i++)
		free(topology->limits[i].links);
	free(topology->limits);
	free(topology->is_switch);
	free(topology->links);
	free(topology->lines);
	free(topology->index);
	free(topology);
}

/* Where a link stands in the index, or would. */
static uint32_t place_of(const struct muster_topology *topology, uint32_t from, uint32_t to)
{
	uint32_t ends[2] = { from, to };
	uint32_t at = XXH32(ends, sizeof(ends), 0) & (topology->index_room - 1);

	while (topology->index[at]) {
		const struct muster_link *link = &topology->links[topology->index[at] - 1];

		if (link->from == from && link->to == to)
			break;
		at = (at + 1) & (topology->index_room - 1);
	}
	return at;
}

int64_t muster_topology_find_link(const struct muster_topology *topology, uint32_t from,
				  uint32_t to)
{
	uint32_t at = topology->index_room ? place_of(topology, from, to) : 0;

	return topology->index_room && topology->index[at] ? (int64_t)topology->index[at] - 1 :
							     -ENOENT;
}

/* Never more than half full. */
static int grow_index(struct muster_topology *topology)
{
	uint32_t room = topology->index_room ? 2 * topology->index_room : 16;
	uint32_t *grown;

	if (2 * topology->nr_links < topology->index_room)
		return 0;
	grown = calloc(room, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	free(topology->index);
	topology->index = grown;
	topology->index_room = room;
	for (uint32_t i = 0; i < topology->nr_links; i++)
		grown[place_of(topology, topology->links[i].from, topology->links[i].to)] = i + 1;
	return 0;
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
	if (topology->nr_links == MUSTER_TOPOLOGY_LINKS_MAX)
		return -E2BIG;
	if (grow((void **)&topology->links, topology->nr_links, sizeof(*topology->links)) ||
	    grow((void **)&topology->lines, topology->nr_links, sizeof(*topology->lines)) ||
	    grow_index(topology))
		return -ENOMEM;
	topology->links[topology->nr_links] = (struct muster_link){ from, to };
	topology->lines[topology->nr_links] = topology->line;
	topology->index[place_of(topology, from, to)] = ++topology->nr_links;
	return topology->nr_links - 1;
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
	if (!err)
		memcpy(made->is_switch, topology->is_switch, topology->nodes);
	if (err)
		muster_topology_free(made);
	else
		*reversed = made;
	return err;
}

bool *muster_topology_usable(const struct muster_topology *topology)
{
	bool *usable = malloc(topology->nr_links + 1);

	if (!usable)
		return NULL;
	memset(usable, true, topology->nr_links + 1);
	for (uint32_t i = 0; i < topology->nr_limits; i++) {
		const struct muster_link_limit *limit = &topology->limits[i];

		for (uint32_t j = 0; j < limit->nr_links && !limit->bandwidth; j++)
			usable[limit->links[j]] = false;
	}
	return usable;
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
	bool *usable = muster_topology_usable(topology);

	if (!hops || !usable) {
		free(usable);
		free(hops);
		return NULL;
	}
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
	for (uint32_t node = 0; node < topology->nodes; node++)
		if (topology->is_switch[node])
			hash = XXH64(&(uint32_t){ htole32(node) }, 4, hash);
	return hash;
}
