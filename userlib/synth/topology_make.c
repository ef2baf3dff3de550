// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Topologies by name: those of the paper (SCCL, figures 1 and 3), the regular
 * ones of any size, and what a file says.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "topology.h"

enum { DIMENSIONS_MAX = 12 };

struct shape {
	uint32_t nr;
	uint32_t size[DIMENSIONS_MAX];
	uint32_t nodes;			/* the product, or as counted */
};

static int join_both(struct muster_topology *topology, uint32_t a, uint32_t b, uint32_t bandwidth)
{
	int err = muster_topology_join(topology, a, b, bandwidth);

	return err ? err : muster_topology_join(topology, b, a, bandwidth);
}

/* The nodes in this order, and back to the first. */
static int join_ring(struct muster_topology *topology, const uint32_t *order, uint32_t nr,
		     uint32_t bandwidth)
{
	int err = 0;

	for (uint32_t i = 0; i < nr && !err; i++)
		err = join_both(topology, order[i], order[(i + 1) % nr], bandwidth);
	return err;
}

static int make_dgx1(struct muster_topology *topology, const struct shape *shape)
{
	static const uint32_t twice[] = { 0, 1, 4, 5, 6, 7, 2, 3 };
	static const uint32_t once[] = { 0, 2, 1, 3, 6, 4, 7, 5 };
	int err = join_ring(topology, twice, 8, 2);

	(void)shape;
	return err ? err : join_ring(topology, once, 8, 1);
}

/* One ring: xGMI within the islands {0, 2, 3, 5} and {1, 4, 6, 7}, PCIe between (figure 3). */
static int make_z52(struct muster_topology *topology, const struct shape *shape)
{
	static const uint32_t ring[] = { 0, 3, 5, 4, 7, 6, 1, 2 };

	(void)shape;
	return join_ring(topology, ring, 8, 1);
}

static int make_full(struct muster_topology *topology, const struct shape *shape)
{
	int err = 0;

	for (uint32_t a = 0; a < shape->nodes && !err; a++)
		for (uint32_t b = a + 1; b < shape->nodes && !err; b++)
			err = join_both(topology, a, b, 1);
	return err;
}

static int make_star(struct muster_topology *topology, const struct shape *shape)
{
	int err = 0;

	for (uint32_t node = 1; node < shape->nodes && !err; node++)
		err = join_both(topology, 0, node, 1);
	return err;
}

/* Each node to its upper neighbour in each dimension; the last dimension counts fastest. */
static int make_lattice(struct muster_topology *topology, const struct shape *shape, bool wraps,
			uint32_t both)
{
	uint32_t stride = shape->nodes;
	int err = 0;

	for (uint32_t d = 0; d < shape->nr; d++) {
		uint32_t size = shape->size[d], pair = size == 2 ? both : 1;

		stride /= size;
		for (uint32_t node = 0; node < shape->nodes && !err; node++) {
			uint32_t at = node / stride % size;

			if (at + 1 < size)
				err = join_both(topology, node, node + stride, pair);
			else if (wraps && size > 2)
				err = join_both(topology, node, node - (size - 1) * stride, 1);
		}
	}
	return err;
}

static int make_ring(struct muster_topology *topology, const struct shape *shape)
{
	return make_lattice(topology, shape, true, 1);
}

static int make_mesh(struct muster_topology *topology, const struct shape *shape)
{
	return make_lattice(topology, shape, false, 1);
}

static int make_torus(struct muster_topology *topology, const struct shape *shape)
{
	return make_lattice(topology, shape, true, 2);
}

static int make_switch(struct muster_topology *topology, const struct shape *shape)
{
	uint32_t middle = shape->nodes - 1;
	int err = 0;

	topology->is_switch[middle] = true;
	for (uint32_t node = 0; node < middle && !err; node++)
		err = join_both(topology, node, middle, 1);
	return err;
}

/* ---- hosts and switches: hosts first, then their switches, then those above ---- */

enum { HOSTS, LEAVES, UPPER, PODS, CORES };	/* sizes of a fat tree; of two levels the first three */

static uint64_t count_fat_tree(const struct shape *shape)
{
	const uint32_t *size = shape->size;
	uint64_t pods = shape->nr == 3 ? 1 : size[PODS];

	if (shape->nr != 3 && shape->nr != 5)
		return 0;
	return (uint64_t)size[LEAVES] * pods * (size[HOSTS] + 1) + size[UPPER] * pods +
	       (shape->nr == 3 ? 0 : size[CORES]);
}

/* In a pod every leaf with every upper switch; core c with upper switch c of each pod, and so on round. */
static int make_fat_tree(struct muster_topology *topology, const struct shape *shape)
{
	const uint32_t *size = shape->size;
	uint32_t pods = shape->nr == 3 ? 1 : size[PODS], cores = shape->nr == 3 ? 0 : size[CORES];
	uint32_t leaf = size[HOSTS] * size[LEAVES] * pods, upper = leaf + size[LEAVES] * pods;
	uint32_t core = upper + size[UPPER] * pods, host, i, j;
	int err = 0;

	for (host = 0; host < leaf && !err; host++)
		err = join_both(topology, host, leaf + host / size[HOSTS], 1);
	for (i = 0; i < size[LEAVES] * pods; i++)
		for (j = 0; j < size[UPPER] && !err; j++)
			err = join_both(topology, leaf + i,
					upper + i / size[LEAVES] * size[UPPER] + j, 1);
	for (i = 0; i < cores; i++)
		for (j = 0; j < pods && !err; j++)
			err = join_both(topology, upper + j * size[UPPER] + i % size[UPPER],
					core + i, 1);
	for (i = leaf; i < topology->nodes; i++)
		topology->is_switch[i] = true;
	return err;
}

static uint64_t count_switch_torus(const struct shape *shape)
{
	uint64_t switches = 1;

	for (uint32_t d = 1; d < shape->nr; d++)
		if ((switches *= shape->size[d]) > MUSTER_TOPOLOGY_NODES_MAX)
			return 0;
	return shape->nr < 2 ? 0 : switches * (shape->size[0] + 1);
}

/* The first size is of hosts at each switch; a ring of two is one link. */
static int make_switch_torus(struct muster_topology *topology, const struct shape *shape)
{
	uint32_t switches = topology->nodes / (shape->size[0] + 1), stride = switches, i;
	uint32_t hosts = topology->nodes - switches;
	int err = 0;

	for (i = 0; i < hosts && !err; i++)
		err = join_both(topology, i, hosts + i / shape->size[0], 1);
	for (uint32_t d = 1; d < shape->nr; d++) {
		uint32_t size = shape->size[d];

		stride /= size;
		for (i = 0; i < switches && !err; i++) {
			uint32_t at = i / stride % size;
			uint32_t next = at + 1 < size ? i + stride : i - (size - 1) * stride;

			if (size > 2 || next > i)
				err = join_both(topology, hosts + i, hosts + next, 1);
		}
	}
	for (i = hosts; i < topology->nodes; i++)
		topology->is_switch[i] = true;
	return err;
}

static const struct maker {
	const char *name;
	uint32_t dimensions;		/* 0: none to be said; else at most so many, */
	const char *sizes;		/* which are written so */
	bool powers;			/* the number is of dimensions of size 2 */
	int (*run)(struct muster_topology *topology, const struct shape *shape);
	uint64_t (*count)(const struct shape *shape);	/* nodes; 0: no such shape. NULL: the product */
} makers[] = {
	{ "dgx1", 0, NULL, false, make_dgx1, NULL },
	{ "z52", 0, NULL, false, make_z52, NULL },
	{ "ring", 1, "N", false, make_ring, NULL },
	{ "line", 1, "N", false, make_mesh, NULL },
	{ "star", 1, "N", false, make_star, NULL },
	{ "switch", 1, "N", false, make_switch, NULL },
	{ "full", 1, "N", false, make_full, NULL },
	{ "hypercube", 1, "D", true, make_mesh, NULL },
	{ "mesh", DIMENSIONS_MAX, "AxB...", false, make_mesh, NULL },
	{ "torus", DIMENSIONS_MAX, "AxB...", false, make_torus, NULL },
	{ "fat-tree", 5, "HxLxS or HxLxAxPxC", false, make_fat_tree, count_fat_tree },
	{ "switch-torus", DIMENSIONS_MAX, "HxAxB...", false, make_switch_torus, count_switch_torus },
};

static int refuse_shape(const struct maker *maker, const char *spec, char *why, size_t why_len)
{
	snprintf(why, why_len, "\"%.60s\": behind \"%s:\" belongs %s, numbers that make 2 to %d nodes in all", spec,
		 maker->name, maker->sizes, MUSTER_TOPOLOGY_NODES_MAX);
	return -EINVAL;
}

/* "4x4x2": each 1 or more, 2 to NODES_MAX in all. */
static int read_shape(const struct maker *maker, const char *spec, const char *sizes,
		      struct shape *shape, char *why, size_t why_len)
{
	*shape = (struct shape){ .nodes = 1 };
	for (bool more = true; more; sizes++) {
		char *end = NULL;
		unsigned long size = *sizes >= '0' && *sizes <= '9' ? strtoul(sizes, &end, 10) : 0;

		if (!size || size > MUSTER_TOPOLOGY_NODES_MAX || shape->nr == maker->dimensions ||
		    (*end && *end != 'x'))
			return refuse_shape(maker, spec, why, why_len);
		shape->size[shape->nr++] = size;
		shape->nodes *= maker->count ? 1 : size;
		if (shape->nodes > MUSTER_TOPOLOGY_NODES_MAX)
			return refuse_shape(maker, spec, why, why_len);
		more = *end;
		sizes = end;
	}
	if (maker->count) {
		uint64_t nodes = maker->count(shape);

		if (!nodes || nodes > MUSTER_TOPOLOGY_NODES_MAX)
			return refuse_shape(maker, spec, why, why_len);
		shape->nodes = nodes;
	}
	if (maker->powers) {
		if (shape->size[0] > DIMENSIONS_MAX)
			return refuse_shape(maker, spec, why, why_len);
		shape->nr = shape->size[0];
		shape->nodes = 1u << shape->nr;
		for (uint32_t d = 0; d < shape->nr; d++)
			shape->size[d] = 2;
	}
	return shape->nodes < 2 ? refuse_shape(maker, spec, why, why_len) : 0;
}

static int run_maker(const struct maker *maker, const char *spec, const char *sizes,
		     struct muster_topology **topology, char *why, size_t why_len)
{
	struct shape shape = { .nodes = 8 };
	struct muster_topology *made;
	char name[MUSTER_TOPOLOGY_NAME_MAX + 1];
	int err = maker->dimensions ? read_shape(maker, spec, sizes, &shape, why, why_len) : 0;

	if (err)
		return err;
	snprintf(name, sizeof(name), "%s", spec);
	for (char *c = name; *c; c++)
		if (*c == ':')
			*c = '-';
	made = muster_topology_new(name, shape.nodes);
	err = made ? maker->run(made, &shape) : -ENOMEM;
	if (err) {
		muster_topology_free(made);
		snprintf(why, why_len, "\"%.60s\": %s", spec, err == -E2BIG ?
			 "that are too many links" : "no memory");
		return err;
	}
	*topology = made;
	return 0;
}

static int read_path(const char *path, struct muster_topology **topology, char *why,
		     size_t why_len)
{
	FILE *in = fopen(path, "re");
	int err;

	if (!in) {
		err = -errno;
		snprintf(why, why_len, "\"%.200s\" is no topology of ours (dgx1, z52, ring, line, "
			 "star, switch, full, hypercube, mesh, torus, fat-tree, switch-torus), and "
			 "as a file it cannot be opened: %s", path, strerror(-err));
		return err;
	}
	err = muster_topology_read(in, topology, why, why_len);
	fclose(in);
	return err;
}

int muster_topology_make(const char *spec, struct muster_topology **topology, char *why,
			 size_t why_len)
{
	size_t len = strcspn(spec, ":");

	for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
		const struct maker *maker = &makers[i];

		if (strlen(maker->name) != len || strncmp(maker->name, spec, len))
			continue;
		if (!maker->dimensions && spec[len])
			continue;
		return run_maker(maker, spec, spec[len] ? spec + len + 1 : "", topology, why,
				 why_len);
	}
	return read_path(spec, topology, why, why_len);
}
