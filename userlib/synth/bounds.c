// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Bounds by distance and by cut. Up to MUSTER_CUT_NODES_MAX nodes all cuts are
 * looked at; above, each node alone, and all but each node.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bounds.h"

/* Chunks of the same places, counted once: cuts are many. */
struct kind {
	uint64_t pre, post;
	uint64_t nr;
	bool sum, prefix;		/* of what pre has; or of what those up to it have */
};

static int by_places(const void *left, const void *right)
{
	const struct kind *a = left, *b = right;

	if (a->sum != b->sum)
		return a->sum < b->sum ? -1 : 1;
	if (a->pre != b->pre)
		return a->pre < b->pre ? -1 : 1;
	return a->post < b->post ? -1 : a->post > b->post;
}

static uint64_t places(const struct muster_instance *instance, const bool *set, uint32_t chunk)
{
	uint64_t bits = 0;

	for (uint32_t node = 0; node < instance->topology->nodes; node++)
		bits |= (uint64_t)set[(size_t)chunk * instance->topology->nodes + node] << node;
	return bits;
}

/* Whether what a node has at the start is a contribution to a result of a chunk. */
static bool contributes(const struct muster_instance *instance, uint32_t chunk, uint32_t node)
{
	return muster_has(instance, chunk, node) &&
	       muster_coll_origin(instance->shape, chunk, node) == node;
}

static bool is_sum(const struct muster_instance *instance, uint32_t chunk)
{
	uint32_t contributors = 0;

	for (uint32_t node = 0; instance->shape && node < instance->topology->nodes; node++)
		contributors += contributes(instance, chunk, node);
	return contributors > 1;
}

static bool is_prefix(const struct muster_instance *instance)
{
	return instance->shape && muster_coll_row(instance->shape->coll)->prefix;
}

static struct kind *find_kinds(const struct muster_instance *instance, uint32_t *nr)
{
	struct kind *kinds = calloc(instance->chunks, sizeof(*kinds));
	uint32_t kept = 0;

	for (uint32_t chunk = 0; chunk < instance->chunks && kinds; chunk++)
		kinds[chunk] = (struct kind){
			.pre = places(instance, instance->pre, chunk),
			.post = places(instance, instance->post, chunk), .nr = 1,
			.sum = is_sum(instance, chunk), .prefix = is_prefix(instance),
		};
	if (!kinds)
		return NULL;
	qsort(kinds, instance->chunks, sizeof(*kinds), by_places);
	for (uint32_t i = 1; i < instance->chunks; i++) {
		if (by_places(&kinds[kept], &kinds[i]))
			kinds[++kept] = kinds[i];
		else
			kinds[kept].nr++;
	}
	*nr = kept + 1;
	return kinds;
}

static bool enters(const struct muster_link *link, uint64_t cut)
{
	return (cut >> link->to & 1) && !(cut >> link->from & 1);
}

/*
 * At most so many chunks enter in a round: each link counts with one limit that it
 * is in. Shared limits take their links together where that is less.
 */
static uint64_t capacity_of(const struct muster_topology *topology, uint64_t cut, uint32_t *own,
			    const uint32_t *own_of_link)
{
	uint64_t capacity = 0;

	memcpy(own, own_of_link, topology->nr_links * sizeof(*own));
	for (uint32_t i = 0; i < topology->nr_limits; i++) {
		const struct muster_link_limit *limit = &topology->limits[i];
		uint64_t single = 0;
		uint32_t entering = 0;

		if (limit->nr_links == 1)
			continue;
		for (uint32_t j = 0; j < limit->nr_links; j++) {
			if (!enters(&topology->links[limit->links[j]], cut))
				continue;
			single += own[limit->links[j]];
			entering++;
		}
		if (!entering || single <= limit->bandwidth)
			continue;
		for (uint32_t j = 0; j < limit->nr_links; j++)
			own[limit->links[j]] = 0;
		capacity += limit->bandwidth;
	}
	for (uint32_t i = 0; i < topology->nr_links; i++)
		if (enters(&topology->links[i], cut))
			capacity += own[i];
	return capacity;
}

/* What a link alone can carry: the least of its limits, shared ones included. */
static uint32_t *own_limits(const struct muster_topology *topology)
{
	uint32_t *own = malloc((topology->nr_links + 1) * sizeof(*own));

	for (uint32_t i = 0; i < topology->nr_links && own; i++)
		own[i] = UINT32_MAX;
	for (uint32_t i = 0; i < topology->nr_limits && own; i++) {
		const struct muster_link_limit *limit = &topology->limits[i];

		for (uint32_t j = 0; j < limit->nr_links; j++)
			if (limit->bandwidth < own[limit->links[j]])
				own[limit->links[j]] = limit->bandwidth;
	}
	return own;
}

struct cutter {
	const struct muster_instance *instance;
	struct muster_bounds *bounds;
	struct kind *kinds;
	uint32_t nr_kinds;
	uint32_t *own_of_link, *own;
};

/* A copy of what is there need not enter; of a sum, what comes from outside, in one at least. */
static bool must_enter(const struct kind *kind, uint64_t cut)
{
	uint64_t inside = kind->post & cut, outside = kind->pre & ~cut;

	if (!kind->sum)
		return !(kind->pre & cut) && inside;
	if (kind->prefix && inside && outside)
		return __builtin_ctzll(outside) < 63 - __builtin_clzll(inside);
	return inside && outside;
}

static void look_at_cut(struct cutter *cutter, uint64_t cut)
{
	struct muster_bounds *bounds = cutter->bounds;
	uint64_t enter = 0, capacity;

	for (uint32_t i = 0; i < cutter->nr_kinds; i++)
		if (must_enter(&cutter->kinds[i], cut))
			enter += cutter->kinds[i].nr;
	if (!enter)
		return;
	capacity = capacity_of(cutter->instance->topology, cut, cutter->own, cutter->own_of_link);
	if (bounds->cut && enter * bounds->capacity <= bounds->enter * capacity)
		return;
	bounds->enter = enter;
	bounds->capacity = capacity;
	bounds->cut = cut;
}

static void look_at_cuts(struct cutter *cutter)
{
	uint32_t nodes = cutter->instance->topology->nodes;
	uint64_t all = nodes == 64 ? UINT64_MAX : (1ull << nodes) - 1;

	for (uint32_t node = 0; node < nodes; node++) {
		look_at_cut(cutter, 1ull << node);
		look_at_cut(cutter, all & ~(1ull << node));
	}
	for (uint64_t cut = 1; cut < all && nodes <= MUSTER_CUT_NODES_MAX; cut++)
		look_at_cut(cutter, cut);
}

static int bound_rounds(const struct muster_instance *instance, struct muster_bounds *bounds)
{
	const struct muster_topology *topology = instance->topology;
	struct cutter cutter = { .instance = instance, .bounds = bounds };
	int err = 0;

	if (topology->nodes > 64)
		return 0;
	cutter.kinds = find_kinds(instance, &cutter.nr_kinds);
	cutter.own_of_link = own_limits(topology);
	cutter.own = malloc((topology->nr_links + 1) * sizeof(*cutter.own));
	if (cutter.kinds && cutter.own_of_link && cutter.own)
		look_at_cuts(&cutter);
	else
		err = -ENOMEM;
	free(cutter.own);
	free(cutter.own_of_link);
	free(cutter.kinds);
	return err;
}

/* The nearest node that has the chunk, or has that contribution to it. */
static uint32_t nearest(const struct muster_instance *instance, const uint32_t *hops,
			uint32_t chunk, uint32_t contributor, uint32_t to, uint32_t *from)
{
	uint32_t nodes = instance->topology->nodes, least = MUSTER_FAR;

	*from = to;
	for (uint32_t node = 0; node < nodes; node++) {
		if (!muster_has(instance, chunk, node) || hops[node * nodes + to] > least ||
		    (instance->shape &&
		     muster_coll_origin(instance->shape, chunk, node) != contributor))
			continue;
		least = hops[node * nodes + to];
		*from = node;
	}
	return least;
}

/* Whether a result at a node has a contribution; without a shape there is one, which 0 is for. */
static bool counts(const struct muster_instance *instance, uint32_t chunk, uint32_t contributor,
		   uint32_t to)
{
	if (!instance->shape)
		return !contributor;
	return contributes(instance, chunk, contributor) &&
	       (!is_prefix(instance) || contributor <= to);
}

static void bound_steps(const struct muster_instance *instance, const uint32_t *hops,
			struct muster_bounds *bounds)
{
	uint32_t nodes = instance->topology->nodes;

	for (uint32_t chunk = 0; chunk < instance->chunks; chunk++)
		for (uint32_t i = 0; i < nodes * nodes; i++) {
			uint32_t to = i / nodes, contributor = i % nodes, from, least;

			if (!muster_needs(instance, chunk, to) ||
			    !counts(instance, chunk, contributor, to))
				continue;
			least = nearest(instance, hops, chunk, contributor, to, &from);
			if (least <= bounds->steps && bounds->far_to != MUSTER_FAR)
				continue;
			bounds->steps = least;
			bounds->far_from = from;
			bounds->far_to = to;
		}
}

int muster_bounds(const struct muster_instance *instance, struct muster_bounds *bounds)
{
	uint32_t *hops = muster_topology_distances(instance->topology);

	if (!hops)
		return -ENOMEM;
	*bounds = (struct muster_bounds){ .far_to = MUSTER_FAR };
	bound_steps(instance, hops, bounds);
	free(hops);
	return bound_rounds(instance, bounds);
}

static void print_cut(uint64_t cut, char *text, size_t len)
{
	size_t at = 0;

	for (uint32_t node = 0; node < 64; node++)
		if ((cut >> node & 1) && at + 8 < len)
			at += snprintf(text + at, len - at, "%s%" PRIu32, at ? " " : "", node);
}

bool muster_bounds_refute(const struct muster_instance *instance,
			  const struct muster_bounds *bounds, char *why, size_t why_len)
{
	char nodes[200] = "";

	if (bounds->steps == MUSTER_FAR) {
		snprintf(why, why_len, "node %" PRIu32 " cannot be reached", bounds->far_to);
		return true;
	}
	if (instance->steps < bounds->steps) {
		snprintf(why, why_len, "%" PRIu32 " steps, but node %" PRIu32 " is %" PRIu32
			 " hops from node %" PRIu32, instance->steps, bounds->far_to, bounds->steps,
			 bounds->far_from);
		return true;
	}
	print_cut(bounds->cut, nodes, sizeof(nodes));
	if (bounds->cut && bounds->capacity * instance->rounds < bounds->enter) {
		snprintf(why, why_len, "%" PRIu32 " rounds, but %" PRIu64 " chunks must enter the "
			 "nodes {%s}, where %" PRIu64 " a round can", instance->rounds,
			 bounds->enter, nodes, bounds->capacity);
		return true;
	}
	return false;
}
