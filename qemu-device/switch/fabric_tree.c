// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reduction trees on a network: the shortest ways to a root, with the aggregation nodes on
 * them; and what a group of hosts needs of one. Each member goes up its way and becomes the
 * child of the first aggregation node, that one the child of the next, and so on.
 */
#include "fabric_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Being laid: by node * radix + port, who comes in there. */
struct laying {
	const struct muster_fabric *fabric;
	struct ways ways;
	uint32_t root;
	uint32_t *comes;		/* the node of a host or switch; NOBODY */
	uint32_t *member;		/* by node: a host's; NOBODY */
	uint32_t *nr_children;		/* by node */
	uint32_t *parent_port;		/* by node: where the way up begins */
	uint32_t *parent;		/* by node: the aggregation node above; NOBODY */
	char *why;
	size_t why_len;
};

static bool aggregates(const struct muster_fabric *fabric, uint32_t node)
{
	return fabric->is_switch[node] && !fabric->is_plain[node];
}

/* ---- the root ---- */

/* How far the farthest host is from a switch. */
static int eccentricity(const struct muster_fabric *fabric, uint32_t node, uint32_t *far)
{
	struct ways ways;

	if (ways_find(fabric, node, &ways))
		return -ENOMEM;
	*far = 0;
	for (uint32_t i = 0; i < fabric->nr_hosts; i++)
		if (ways.distance[fabric->hosts[i]] > *far)
			*far = ways.distance[fabric->hosts[i]];
	ways_free(&ways);
	return 0;
}

struct candidate {
	uint32_t far;
	uint32_t node;
};

static int compare(const void *a, const void *b)
{
	const struct candidate *left = a, *right = b;

	if (left->far != right->far)
		return left->far < right->far ? -1 : 1;
	return (left->node > right->node) - (left->node < right->node);
}

static int choose_root(struct laying *laying, uint32_t tree)
{
	const struct muster_fabric *fabric = laying->fabric;
	struct candidate *candidates = calloc(fabric->nr_switches, sizeof(*candidates));
	uint32_t nr = 0;
	int err = candidates ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < fabric->nr_switches && !err; i++) {
		if (!aggregates(fabric, fabric->switches[i]))
			continue;
		candidates[nr].node = fabric->switches[i];
		err = eccentricity(fabric, fabric->switches[i], &candidates[nr].far);
		nr += candidates[nr].far != UNREACHED;	/* else no host comes there any more */
	}
	if (!err && !nr)
		err = fabric_refuse(laying->why, laying->why_len, -EOPNOTSUPP,
				    "no switch has an aggregation node");
	if (!err) {
		qsort(candidates, nr, sizeof(*candidates), compare);
		laying->root = candidates[tree % nr].node;
	}
	free(candidates);
	return err;
}

/* ---- ways of members ---- */

/* `from` comes to an aggregation node by a port. 1: it was there already; -EOPNOTSUPP. */
static int arrive(struct laying *laying, uint32_t node, uint32_t port, uint32_t from)
{
	uint32_t *place = &laying->comes[node * laying->fabric->radix + port];

	if (*place == from)
		return 1;
	if (*place != NOBODY)
		return fabric_refuse(laying->why, laying->why_len, -EOPNOTSUPP, "nodes %" PRIu32
				     " and %" PRIu32 " come to switch %" PRIu32 " by one port, and a "
				     "tree takes one child a port: they must be combined before",
				     *place, from, node);
	*place = from;
	laying->nr_children[node]++;
	laying->parent[from] = node;
	return 0;
}

/* By which of its ports a node gets what leaves another by that one: whoever is between forwards it. */
static int follow(const struct muster_fabric *fabric, uint32_t from, uint32_t port, uint32_t to,
		  uint32_t *comes)
{
	const struct end *end = &fabric->ends[from * fabric->radix + port];
	int err = 0;

	while (end->node != to && !err) {
		err = fabric_way(fabric, end->node, to, &port);
		if (!err)
			end = &fabric->ends[end->node * fabric->radix + port];
	}
	*comes = end->port;
	return err;
}

/*
 * Switches between that only forward do so by ways of their own, which need not be the tree's: the
 * ports are those by which up and down are the same.
 */
static int meet(struct laying *laying, uint32_t from, uint32_t above, uint32_t *port, uint32_t *comes)
{
	const struct muster_fabric *fabric = laying->fabric;

	for (uint32_t i = 0; i < fabric->radix; i++) {
		uint32_t back;
		int err = follow(fabric, from, *port, above, comes);

		if (!err)
			err = follow(fabric, above, *comes, from, &back);
		if (err || back == *port)
			return err;
		*port = back;
	}
	return fabric_refuse(laying->why, laying->why_len, -EOPNOTSUPP, "from node %" PRIu32 " to switch %"
			     PRIu32 " no way leads that is the same up and down", from, above);
}

static int climb(struct laying *laying, uint32_t host)
{
	const struct muster_fabric *fabric = laying->fabric;
	uint32_t from = host;
	int err = 0;

	while (from != laying->root && err >= 0) {
		uint32_t node = from, port = laying->ways.back[from], comes = 0;

		do
			node = fabric->ends[node * fabric->radix + laying->ways.back[node]].node;
		while (!aggregates(fabric, node));
		err = meet(laying, from, node, &port, &comes);
		if (!err)
			err = arrive(laying, node, comes, from);
		laying->parent_port[from] = port;
		from = node;
	}
	return err < 0 ? err : 0;
}

static int climb_all(struct laying *laying, const uint32_t *members, uint32_t nr)
{
	const struct muster_fabric *fabric = laying->fabric;
	int err = 0;

	for (uint32_t i = 0; i < nr && !err; i++) {
		uint32_t node = members[i] < fabric->nr_hosts ? fabric->hosts[members[i]] : NOBODY;

		if (node == NOBODY || laying->member[node] != NOBODY)
			return fabric_refuse(laying->why, laying->why_len, -EINVAL, "host %" PRIu32
					     " is %s", members[i], node == NOBODY ? "not there" :
					     "a member twice");
		laying->member[node] = i;
		err = climb(laying, node);
	}
	return err;
}

/* The group's root is the first aggregation node above all members. */
static void trim(struct laying *laying)
{
	const struct muster_fabric *fabric = laying->fabric;

	while (laying->nr_children[laying->root] == 1) {
		uint32_t *place = &laying->comes[laying->root * fabric->radix];

		while (*place == NOBODY)
			place++;
		if (!fabric->is_switch[*place])
			return;
		laying->nr_children[laying->root] = 0;
		laying->root = *place;
		laying->parent[laying->root] = NOBODY;
	}
}

/* ---- what comes of it ---- */

static uint32_t address(const struct muster_fabric *fabric, uint32_t node)
{
	return fabric->number[node] + (fabric->is_switch[node] ? MUSTER_NODE_AGGREGATION : 0);
}

static void list_children(const struct laying *laying, uint32_t node,
			  struct muster_switch_child *children)
{
	const struct muster_fabric *fabric = laying->fabric;

	for (uint32_t port = 0; port < fabric->radix; port++) {
		uint32_t from = laying->comes[node * fabric->radix + port];

		if (from == NOBODY)
			continue;
		*children++ = (struct muster_switch_child){
			.node = address(fabric, from),
			.port = port,
			.member = fabric->is_switch[from] ? 0 : laying->member[from],
		};
	}
}

static void list_branch(const struct laying *laying, uint32_t node,
			struct muster_switch_child *children, struct muster_fabric_branch *branch)
{
	const struct muster_fabric *fabric = laying->fabric;
	bool root = node == laying->root;

	list_children(laying, node, children);
	branch->number = fabric->number[node];
	branch->group = (struct muster_switch_group){
		.parent_port = root ? MUSTER_SWITCH_NO_PORT : laying->parent_port[node],
		.parent_node = root ? 0 : address(fabric, laying->parent[node]),
		.nr_children = laying->nr_children[node],
		.children = children,
	};
}

/* From the farthest of the root to the root itself. */
static int list(const struct laying *laying, const uint32_t *members, uint32_t nr_members,
		struct muster_fabric_group *group)
{
	const struct muster_fabric *fabric = laying->fabric;
	uint32_t nr_children = 0, farthest = 0, i;

	group->branches = calloc(fabric->nr_switches, sizeof(*group->branches));
	group->nodes = calloc(nr_members, sizeof(*group->nodes));
	group->children = calloc(nr_members + fabric->nr_switches, sizeof(*group->children));
	if (!group->branches || !group->nodes || !group->children)
		return -ENOMEM;
	for (i = 0; i < nr_members; i++)
		group->nodes[i] = address(fabric, laying->parent[fabric->hosts[members[i]]]);
	for (i = 0; i < fabric->nr_switches; i++)
		if (laying->ways.distance[fabric->switches[i]] != UNREACHED &&
		    laying->ways.distance[fabric->switches[i]] > farthest)
			farthest = laying->ways.distance[fabric->switches[i]];
	for (uint32_t distance = farthest; distance != UNREACHED; distance--)
		for (i = 0; i < fabric->nr_switches; i++) {
			uint32_t node = fabric->switches[i];

			if (!laying->nr_children[node] || laying->ways.distance[node] != distance)
				continue;
			list_branch(laying, node, group->children + nr_children,
				    &group->branches[group->nr_branches++]);
			nr_children += laying->nr_children[node];
		}
	return 0;
}

static uint32_t *nobodies(size_t nr)
{
	uint32_t *list = malloc(nr * sizeof(*list));

	return list ? memset(list, 0xff, nr * sizeof(*list)) : NULL;
}

static bool laying_begin(struct laying *laying)
{
	const struct muster_fabric *fabric = laying->fabric;

	laying->comes = nobodies((size_t)fabric->nodes * fabric->radix);
	laying->member = nobodies(fabric->nodes);
	laying->parent = nobodies(fabric->nodes);
	laying->nr_children = calloc(fabric->nodes, sizeof(*laying->nr_children));
	laying->parent_port = calloc(fabric->nodes, sizeof(*laying->parent_port));
	return laying->comes && laying->member && laying->parent && laying->nr_children &&
	       laying->parent_port;
}

static void laying_end(struct laying *laying)
{
	free(laying->comes);
	free(laying->member);
	free(laying->parent);
	free(laying->nr_children);
	free(laying->parent_port);
	ways_free(&laying->ways);
}

int muster_fabric_group(const struct muster_fabric *fabric, uint32_t tree,
			const uint32_t *members, uint32_t nr_members,
			struct muster_fabric_group *group, char *why, size_t why_len)
{
	struct laying laying = { .fabric = fabric, .why = why, .why_len = why_len };
	int err;

	memset(group, 0, sizeof(*group));
	if (!nr_members)
		return fabric_refuse(why, why_len, -EINVAL, "a group without members");
	err = laying_begin(&laying) ? choose_root(&laying, tree) : -ENOMEM;
	if (!err)
		err = ways_find(fabric, laying.root, &laying.ways);
	if (!err)
		err = climb_all(&laying, members, nr_members);
	if (!err) {
		trim(&laying);
		err = list(&laying, members, nr_members, group);
	}
	if (err == -ENOMEM)
		fabric_refuse(why, why_len, err, "out of memory");
	if (err)
		muster_fabric_group_free(group);
	laying_end(&laying);
	return err;
}

void muster_fabric_group_free(struct muster_fabric_group *group)
{
	free(group->branches);
	free(group->nodes);
	free(group->children);
	memset(group, 0, sizeof(*group));
}
