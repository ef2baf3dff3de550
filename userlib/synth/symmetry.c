// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The symmetries of a topology: permutations of its nodes under which links and
 * limits stay the same, found by placing one node after the other and going back
 * where a link to an earlier one does not fit.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "topology.h"

enum { TRIES_MAX = 1 << 20, SEARCH_NODES_MAX = 64 };

struct search {
	const struct muster_topology *topology;
	uint64_t *color;		/* by from and to: of the link's limits; 0: no link */
	uint32_t *image;		/* by node */
	bool *taken;
	uint32_t *found;
	uint32_t nr_found;
	uint32_t max;
	uint32_t tries;
	int err;
};

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t pair[2] = { a, b };

	return XXH64(pair, sizeof(pair), 7);
}

/* A link's color is the sum over its limits: the order of limits does not count. */
static void color_links(struct search *search)
{
	const struct muster_topology *topology = search->topology;

	for (uint32_t i = 0; i < topology->nr_limits; i++) {
		const struct muster_link_limit *limit = &topology->limits[i];

		for (uint32_t j = 0; j < limit->nr_links; j++) {
			const struct muster_link *link = &topology->links[limit->links[j]];

			search->color[link->from * topology->nodes + link->to] +=
				mix(limit->bandwidth, limit->nr_links);
		}
	}
}

static int compare_links(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* A limit as a number that depends on bandwidth and the set of links (after image). */
static uint64_t limit_digest(const struct muster_topology *topology,
			     const struct muster_link_limit *limit, const uint32_t *image)
{
	uint64_t sum = 0;

	for (uint32_t j = 0; j < limit->nr_links; j++) {
		const struct muster_link *link = &topology->links[limit->links[j]];

		sum += mix(image ? image[link->from] : link->from,
			   image ? image[link->to] : link->to);
	}
	return mix(sum, limit->bandwidth);
}

/* Limits of one link are in the colors; whether those of many go to such of many. */
static bool keeps_limits(const struct search *search)
{
	const struct muster_topology *topology = search->topology;
	uint64_t *before = malloc((topology->nr_limits + 1) * sizeof(*before));
	uint64_t *after = malloc((topology->nr_limits + 1) * sizeof(*after));
	uint32_t nr = 0;
	bool same;

	for (uint32_t i = 0; i < topology->nr_limits && before && after; i++) {
		if (topology->limits[i].nr_links == 1)
			continue;
		before[nr] = limit_digest(topology, &topology->limits[i], NULL);
		after[nr++] = limit_digest(topology, &topology->limits[i], search->image);
	}
	same = before && after;
	if (same && nr) {
		qsort(before, nr, sizeof(*before), compare_links);
		qsort(after, nr, sizeof(*after), compare_links);
		same = !memcmp(before, after, nr * sizeof(*before));
	}
	free(after);
	free(before);
	return same;
}

static void keep_found(struct search *search)
{
	uint32_t nodes = search->topology->nodes;
	uint32_t *grown;

	if (!keeps_limits(search))
		return;
	grown = realloc(search->found, (search->nr_found + 1) * nodes * sizeof(*grown));
	if (!grown) {
		search->err = -ENOMEM;
		return;
	}
	search->found = grown;
	memcpy(grown + (size_t)search->nr_found++ * nodes, search->image, nodes * sizeof(*grown));
}

static bool fits(const struct search *search, uint32_t node, uint32_t image)
{
	uint32_t nodes = search->topology->nodes;

	for (uint32_t i = 0; i < node; i++) {
		uint32_t other = search->image[i];

		if (search->color[node * nodes + i] != search->color[image * nodes + other] ||
		    search->color[i * nodes + node] != search->color[other * nodes + image])
			return false;
	}
	return true;
}

static void place(struct search *search, uint32_t node)
{
	uint32_t nodes = search->topology->nodes;

	if (node == nodes) {
		keep_found(search);
		return;
	}
	for (uint32_t image = 0; image < nodes && !search->err; image++) {
		if (search->nr_found == search->max || search->tries++ > TRIES_MAX)
			return;
		if (search->taken[image] || !fits(search, node, image))
			continue;
		search->image[node] = image;
		search->taken[image] = true;
		place(search, node + 1);
		search->taken[image] = false;
	}
}

int muster_topology_symmetries(const struct muster_topology *topology, uint32_t max,
			       uint32_t **permutations)
{
	struct search search = {
		.topology = topology, .max = max,
		.color = calloc((size_t)topology->nodes * topology->nodes, sizeof(uint64_t)),
		.image = calloc(topology->nodes, sizeof(uint32_t)),
		.taken = calloc(topology->nodes, sizeof(bool)),
	};

	if (!search.color || !search.image || !search.taken)
		search.err = -ENOMEM;
	if (!search.err && topology->nodes <= SEARCH_NODES_MAX) {
		color_links(&search);
		place(&search, 0);
	}
	free(search.taken);
	free(search.image);
	free(search.color);
	if (search.err) {
		free(search.found);
		return search.err;
	}
	*permutations = search.found;
	return search.nr_found;
}
