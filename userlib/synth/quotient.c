// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Symmetries of instances from those of the topology. Chunks of one kind (of the
 * same places) go to the kind that the nodes' permutation demands, in their order;
 * where a kind comes back to itself they are turned round among themselves, so
 * that the symmetry moves chunks as freely as it can.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "quotient.h"

enum { SYMMETRIES_MAX = 64, PAIRED = 6 };

#define NONE UINT32_MAX

/* Images under one symmetry. */
struct symmetry {
	uint32_t *node;
	uint32_t *chunk;
	uint32_t *link;
};

struct finder {
	const struct muster_instance *instance;
	uint32_t *kind;			/* by chunk: the first chunk of the same places */
	uint32_t *rank;			/* by chunk: its number among these */
	uint32_t *size;			/* by first chunk: how many there are */
};

static bool same_places(const struct muster_instance *instance, uint32_t a, uint32_t b,
			const uint32_t *image)
{
	uint32_t nodes = instance->topology->nodes;

	for (uint32_t node = 0; node < nodes; node++) {
		uint32_t to = image ? image[node] : node;

		if (muster_has(instance, a, node) != muster_has(instance, b, to) ||
		    muster_needs(instance, a, node) != muster_needs(instance, b, to))
			return false;
	}
	return true;
}

static void sort_kinds(struct finder *finder)
{
	const struct muster_instance *instance = finder->instance;

	for (uint32_t chunk = 0; chunk < instance->chunks; chunk++) {
		uint32_t first = 0;

		while (first < chunk && (finder->kind[first] != first ||
					 !same_places(instance, first, chunk, NULL)))
			first++;
		finder->kind[chunk] = first;
		finder->rank[chunk] = finder->size[first]++;
	}
}

static uint32_t image_of_kind(const struct finder *finder, uint32_t kind, const uint32_t *image)
{
	for (uint32_t other = 0; other < finder->instance->chunks; other++)
		if (finder->kind[other] == other && finder->size[other] == finder->size[kind] &&
		    same_places(finder->instance, kind, other, image))
			return other;
	return NONE;
}

static uint32_t member(const struct finder *finder, uint32_t kind, uint32_t rank)
{
	for (uint32_t chunk = kind; chunk < finder->instance->chunks; chunk++)
		if (finder->kind[chunk] == kind && finder->rank[chunk] == rank)
			return chunk;
	return NONE;
}

/* Kinds go round in a ring of so many; the last hop turns, in blocks of order / ring. */
static bool map_ring(const struct finder *finder, const uint32_t *image, uint32_t order,
		     uint32_t start, uint32_t *chunk_image)
{
	uint32_t size = finder->size[start], ring = 0, kind = start, block;

	do {
		kind = image_of_kind(finder, kind, image);
		ring++;
		if (kind == NONE)
			return false;
	} while (kind != start);
	block = order / ring;
	if (size % block)
		block = 1;
	for (uint32_t hop = 0; hop < ring; hop++) {
		uint32_t to = image_of_kind(finder, kind, image);

		for (uint32_t rank = 0; rank < size; rank++) {
			uint32_t turned = rank;

			if (hop + 1 == ring)
				turned = rank - rank % block + (rank % block + 1) % block;
			chunk_image[member(finder, kind, rank)] = member(finder, to, turned);
		}
		kind = to;
	}
	return true;
}

static uint32_t order_of(const uint32_t *image, uint32_t nodes)
{
	uint32_t order = 1;

	for (uint32_t node = 0; node < nodes; node++) {
		uint32_t len = 1, a, b;

		for (uint32_t at = image[node]; at != node; at = image[at])
			len++;
		for (a = order, b = len; b;) {
			uint32_t rest = a % b;

			a = b;
			b = rest;
		}
		order = order / a * len;
	}
	return order;
}

/* ---- orbits: least elements, joined generator by generator ------------------------ */

static uint32_t least_of(uint32_t *least, uint32_t i)
{
	while (least[i] != i)
		i = least[i] = least[least[i]];
	return i;
}

static void join(uint32_t *least, uint32_t a, uint32_t b)
{
	a = least_of(least, a);
	b = least_of(least, b);
	if (a < b)
		least[b] = a;
	else
		least[a] = b;
}

static void join_images(const struct muster_instance *instance, const struct symmetry *s,
			struct muster_quotient *quotient)
{
	uint32_t links = instance->topology->nr_links, nodes = instance->topology->nodes;

	for (uint32_t link = 0; link < links; link++)
		join(quotient->link, link, s->link[link]);
	for (uint32_t chunk = 0; chunk < instance->chunks; chunk++) {
		uint32_t image = s->chunk[chunk];

		for (uint32_t link = 0; link < links; link++)
			join(quotient->send, chunk * links + link, image * links + s->link[link]);
		for (uint32_t node = 0; node < nodes; node++)
			join(quotient->place, chunk * nodes + node, image * nodes + s->node[node]);
	}
}

static uint32_t *new_orbits(uint32_t nr)
{
	uint32_t *least = malloc((nr + 1) * sizeof(*least));

	for (uint32_t i = 0; i < nr && least; i++)
		least[i] = i;
	return least;
}

static uint32_t finish_orbits(uint32_t *least, uint32_t nr)
{
	uint32_t orbits = 0;

	for (uint32_t i = 0; i < nr; i++) {
		least[i] = least_of(least, i);
		orbits += least[i] == i;
	}
	return orbits;
}

static bool all_of_one_size(const uint32_t *least, uint32_t nr, uint32_t orbits)
{
	uint32_t *size = calloc(nr, sizeof(*size));
	bool same = size && nr % orbits == 0;

	for (uint32_t i = 0; i < nr && size; i++)
		size[least[i]]++;
	for (uint32_t i = 0; i < nr && same; i++)
		same = !size[i] || size[i] == nr / orbits;
	free(size);
	return same;
}

static void free_quotient(struct muster_quotient *quotient)
{
	free(quotient->send);
	free(quotient->place);
	free(quotient->link);
}

static int make_quotient(const struct muster_instance *instance, const struct symmetry *symmetries,
			 int nr, struct muster_quotient *quotient)
{
	uint32_t links = instance->topology->nr_links;
	uint32_t places = instance->chunks * instance->topology->nodes, orbits;

	*quotient = (struct muster_quotient){
		.send = new_orbits(instance->chunks * links),
		.place = new_orbits(places),
		.link = new_orbits(links),
	};
	if (!quotient->send || !quotient->place || !quotient->link) {
		free_quotient(quotient);
		return -ENOMEM;
	}
	for (int i = 0; i < nr; i++)
		join_images(instance, &symmetries[i], quotient);
	finish_orbits(quotient->link, links);
	quotient->nr_sends = finish_orbits(quotient->send, instance->chunks * links);
	orbits = finish_orbits(quotient->place, places);
	quotient->free = all_of_one_size(quotient->place, places, orbits);
	return 0;
}

static int best_first(const void *left, const void *right)
{
	const struct muster_quotient *a = left, *b = right;

	if (a->free != b->free)
		return a->free ? -1 : 1;
	return a->nr_sends < b->nr_sends ? -1 : a->nr_sends > b->nr_sends;
}

/* Different symmetries may divide alike. */
static int drop_equal(const struct muster_instance *instance, struct muster_quotient *quotients,
		      int nr)
{
	size_t bytes = (size_t)instance->chunks * instance->topology->nr_links * sizeof(uint32_t);
	int kept = 0;

	for (int i = 0; i < nr; i++) {
		int same = 0;

		while (same < kept && memcmp(quotients[same].send, quotients[i].send, bytes))
			same++;
		if (same < kept)
			free_quotient(&quotients[i]);
		else
			quotients[kept++] = quotients[i];
	}
	return kept;
}

/* Each symmetry alone, pairs of the first ones, and all of them together. */
static int combine(const struct muster_instance *instance, const struct symmetry *symmetries,
		   int nr, struct muster_quotient *quotients)
{
	int made = 0, err = 0;

	for (int i = 0; i < nr && !err; i++) {
		err = make_quotient(instance, &symmetries[i], 1, &quotients[made]);
		made += !err;
		for (int j = i + 1; j < nr && j < PAIRED && !err; j++) {
			struct symmetry pair[2] = { symmetries[i], symmetries[j] };

			err = make_quotient(instance, pair, 2, &quotients[made]);
			made += !err;
		}
	}
	if (!err && nr > 2) {
		err = make_quotient(instance, symmetries, nr, &quotients[made]);
		made += !err;
	}
	if (err) {
		while (made > 0)
			free_quotient(&quotients[--made]);
		return err;
	}
	made = drop_equal(instance, quotients, made);
	qsort(quotients, made, sizeof(*quotients), best_first);
	return made;
}

/* ---- the whole ------------------------------------------------------------------------- */

static void free_symmetry(struct symmetry *symmetry)
{
	free(symmetry->node);
	free(symmetry->chunk);
	free(symmetry->link);
}

/* 1: made; 0: the nodes' permutation is no symmetry of the instance; or -ENOMEM. */
static int make_symmetry(const struct finder *finder, const uint32_t *image,
			 struct symmetry *symmetry)
{
	const struct muster_instance *instance = finder->instance;
	const struct muster_topology *topology = instance->topology;
	uint32_t order = order_of(image, topology->nodes);
	int made = order > 1;

	*symmetry = (struct symmetry){
		.node = malloc(topology->nodes * sizeof(uint32_t)),
		.chunk = malloc(instance->chunks * sizeof(uint32_t)),
		.link = malloc((topology->nr_links + 1) * sizeof(uint32_t)),
	};
	if (!symmetry->node || !symmetry->chunk || !symmetry->link)
		made = -ENOMEM;
	for (uint32_t i = 0; i < instance->chunks && made > 0; i++)
		symmetry->chunk[i] = NONE;
	for (uint32_t i = 0; i < instance->chunks && made > 0; i++)
		if (finder->kind[i] == i && symmetry->chunk[i] == NONE)
			made = map_ring(finder, image, order, i, symmetry->chunk);
	if (made <= 0) {
		free_symmetry(symmetry);
		return made;
	}
	memcpy(symmetry->node, image, topology->nodes * sizeof(*image));
	for (uint32_t i = 0; i < topology->nr_links; i++)
		symmetry->link[i] = muster_topology_find_link(topology,
							      image[topology->links[i].from],
							      image[topology->links[i].to]);
	return 1;
}

static int find_symmetries(const struct finder *finder, struct symmetry *symmetries)
{
	uint32_t nodes = finder->instance->topology->nodes, *images = NULL;
	int nr_images, nr = 0, made = 0;

	nr_images = muster_topology_symmetries(finder->instance->topology, SYMMETRIES_MAX, &images);
	for (int i = 0; i < nr_images && made >= 0; i++) {
		made = make_symmetry(finder, images + (size_t)i * nodes, &symmetries[nr]);
		nr += made > 0;
	}
	free(images);
	if (nr_images >= 0 && made >= 0)
		return nr;
	while (nr > 0)
		free_symmetry(&symmetries[--nr]);
	return -ENOMEM;
}

int muster_quotients(const struct muster_instance *instance, uint32_t max,
		     struct muster_quotient **quotients)
{
	struct finder finder = {
		.instance = instance,
		.kind = calloc(instance->chunks, sizeof(uint32_t)),
		.rank = calloc(instance->chunks, sizeof(uint32_t)),
		.size = calloc(instance->chunks, sizeof(uint32_t)),
	};
	struct muster_quotient *made = calloc(SYMMETRIES_MAX + PAIRED * PAIRED + 1, sizeof(*made));
	struct symmetry *symmetries = calloc(SYMMETRIES_MAX, sizeof(*symmetries));
	int nr_symmetries = 0, nr = -ENOMEM;

	if (finder.kind && finder.rank && finder.size && made && symmetries) {
		sort_kinds(&finder);
		nr_symmetries = nr = find_symmetries(&finder, symmetries);
	}
	if (nr > 0)
		nr = combine(instance, symmetries, nr_symmetries, made);
	for (int i = 0; i < nr_symmetries; i++)
		free_symmetry(&symmetries[i]);
	for (; nr > (int)max; nr--)
		free_quotient(&made[nr - 1]);
	free(symmetries);
	free(finder.size);
	free(finder.rank);
	free(finder.kind);
	if (nr <= 0) {
		free(made);
		made = NULL;
	}
	*quotients = made;
	return nr;
}

void muster_quotients_free(struct muster_quotient *quotients, int nr)
{
	for (int i = 0; i < nr; i++)
		free_quotient(&quotients[i]);
	free(quotients);
}
