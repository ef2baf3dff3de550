// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Maximum flow, augmented path by path, in the graph whose vertices are the nodes
 * before each step. A vertex leads to the same node a step later, without limit,
 * and over each link to its end, as far as bandwidth and rounds go. A scatter is
 * a gather backwards: links turned round, the last step first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flow.h"

enum { DISTRIBUTIONS_MAX = 100000, NONE = UINT32_MAX };

struct flow {
	const struct muster_instance *instance;
	bool backwards;
	uint32_t nodes, links, steps;
	uint32_t hub;			/* where all goes to, or comes from */
	uint32_t *bandwidth;		/* by link */
	uint32_t *rounds;		/* by step, of the graph */
	uint32_t *supply;		/* by node: chunks that must move */
	uint32_t *load;			/* by step and link */
	uint32_t *waits;		/* by step and node: to the same node, a step later */
	uint32_t *parent;		/* of the search: by vertex, how it was reached */
	uint32_t *queue;
};

static uint32_t only_node(const struct muster_instance *instance, const bool *set, uint32_t chunk)
{
	const bool *nodes = set + (size_t)chunk * instance->topology->nodes;
	uint32_t found = NONE;

	for (uint32_t node = 0; node < instance->topology->nodes; node++) {
		if (!nodes[node])
			continue;
		if (found != NONE)
			return NONE;
		found = node;
	}
	return found;
}

/* The one node that all chunks have in this set; NONE: it is not one. */
static uint32_t hub_of(const struct muster_instance *instance, const bool *set)
{
	uint32_t hub = only_node(instance, set, 0);

	for (uint32_t chunk = 1; chunk < instance->chunks; chunk++)
		if (only_node(instance, set, chunk) != hub)
			return NONE;
	return hub;
}

bool muster_flow_suits(const struct muster_instance *instance)
{
	bool to_one = hub_of(instance, instance->post) != NONE;

	for (uint32_t i = 0; i < instance->topology->nr_limits; i++)
		if (instance->topology->limits[i].nr_links > 1)
			return false;
	if (!to_one && hub_of(instance, instance->pre) == NONE)
		return false;
	for (uint32_t chunk = 0; chunk < instance->chunks; chunk++)
		if (only_node(instance, to_one ? instance->pre : instance->post, chunk) == NONE)
			return false;
	return true;
}

static uint32_t link_from(const struct flow *f, uint32_t link)
{
	const struct muster_link *l = &f->instance->topology->links[link];

	return f->backwards ? l->to : l->from;
}

static uint32_t link_to(const struct flow *f, uint32_t link)
{
	const struct muster_link *l = &f->instance->topology->links[link];

	return f->backwards ? l->from : l->to;
}

/* How: over a link or, as number links, by waiting; the lowest bit: something is undone. */
static bool reach(struct flow *f, uint32_t vertex, uint32_t how, uint32_t *end)
{
	if (f->parent[vertex] != NONE)
		return false;
	f->parent[vertex] = how;
	f->queue[(*end)++] = vertex;
	return vertex == f->steps * f->nodes + f->hub;
}

static bool search_from(struct flow *f, uint32_t vertex, uint32_t *end)
{
	uint32_t step = vertex / f->nodes, node = vertex % f->nodes;

	if (step < f->steps) {
		if (reach(f, vertex + f->nodes, f->links << 1, end))
			return true;
		for (uint32_t i = 0; i < f->links; i++)
			if (link_from(f, i) == node &&
			    f->load[step * f->links + i] < f->bandwidth[i] * f->rounds[step] &&
			    reach(f, (step + 1) * f->nodes + link_to(f, i), i << 1, end))
				return true;
	}
	if (step) {
		if (f->waits[(step - 1) * f->nodes + node] &&
		    reach(f, vertex - f->nodes, f->links << 1 | 1, end))
			return true;
		for (uint32_t i = 0; i < f->links; i++)
			if (link_to(f, i) == node && f->load[(step - 1) * f->links + i] &&
			    reach(f, (step - 1) * f->nodes + link_from(f, i), i << 1 | 1, end))
				return true;
	}
	return false;
}

/* Undo or use each hop of the way that was found. */
static void augment(struct flow *f, uint32_t start)
{
	uint32_t vertex = f->steps * f->nodes + f->hub;

	while (vertex != start) {
		uint32_t how = f->parent[vertex], link = how >> 1, step = vertex / f->nodes;
		uint32_t node = vertex % f->nodes;
		bool undo = how & 1;

		step -= !undo;
		if (link == f->links)
			f->waits[step * f->nodes + node] += undo ? -1 : 1;
		else
			f->load[step * f->links + link] += undo ? -1 : 1;
		if (link != f->links)
			node = undo ? link_to(f, link) : link_from(f, link);
		vertex = (undo ? step + 1 : step) * f->nodes + node;
	}
}

static bool push_one(struct flow *f, uint32_t node)
{
	uint32_t begin = 0, end = 0;

	for (uint32_t i = 0; i < (f->steps + 1) * f->nodes; i++)
		f->parent[i] = NONE;
	f->parent[node] = NONE - 1;
	f->queue[end++] = node;
	while (begin < end) {
		if (!search_from(f, f->queue[begin++], &end))
			continue;
		augment(f, node);
		return true;
	}
	return false;
}

static bool push_all(struct flow *f)
{
	memset(f->load, 0, (size_t)f->steps * f->links * sizeof(*f->load));
	memset(f->waits, 0, (size_t)f->steps * f->nodes * sizeof(*f->waits));
	for (uint32_t node = 0; node < f->nodes; node++)
		for (uint32_t i = 0; i < f->supply[node]; i++)
			if (!push_one(f, node))
				return false;
	return true;
}

/* The next way to give the rounds to the steps, each at least one. */
static bool next_distribution(struct flow *f)
{
	uint32_t step = 0, rest;

	while (step + 1 < f->steps && f->rounds[step] == 1)
		step++;
	if (step + 1 >= f->steps)
		return false;
	rest = f->rounds[step] - 1;
	f->rounds[step] = 1;
	f->rounds[0] = rest;
	f->rounds[step + 1]++;
	return true;
}

/* ---- ways -------------------------------------------------------------------------- */

static void add_send(struct flow *f, struct muster_solution *solution, uint32_t chunk,
		     uint32_t link, uint32_t step)
{
	solution->sends[solution->nr_sends++] = (struct muster_send){
		f->backwards ? f->steps - 1 - step : step, chunk, link,
		false
	};
}

static void take_way(struct flow *f, struct muster_solution *solution, uint32_t chunk,
		     uint32_t node)
{
	for (uint32_t step = 0; step < f->steps; step++) {
		uint32_t link = 0;

		while (link < f->links && (link_from(f, link) != node ||
					   !f->load[step * f->links + link]))
			link++;
		if (link == f->links) {
			f->waits[step * f->nodes + node]--;
			continue;
		}
		f->load[step * f->links + link]--;
		add_send(f, solution, chunk, link, step);
		node = link_to(f, link);
	}
}

static int by_step(const void *left, const void *right)
{
	const struct muster_send *a = left, *b = right;

	if (a->step != b->step)
		return a->step < b->step ? -1 : 1;
	return a->chunk < b->chunk ? -1 : a->chunk > b->chunk;
}

static int take_ways(struct flow *f, struct muster_solution **result)
{
	const struct muster_instance *instance = f->instance;
	struct muster_solution *solution = calloc(1, sizeof(*solution));

	if (solution)
		solution->sends = calloc((size_t)instance->chunks * f->steps + 1,
					 sizeof(*solution->sends));
	if (!solution || !solution->sends) {
		free(solution);
		return -ENOMEM;
	}
	solution->steps = f->steps;
	for (uint32_t chunk = 0; chunk < instance->chunks; chunk++)
		take_way(f, solution, chunk, only_node(instance, f->backwards ? instance->post :
						       instance->pre, chunk));
	qsort(solution->sends, solution->nr_sends, sizeof(*solution->sends), by_step);
	*result = solution;
	return 0;
}

/* ---- the whole ------------------------------------------------------------------------ */

static void flow_end(struct flow *f)
{
	free(f->bandwidth);
	free(f->rounds);
	free(f->supply);
	free(f->load);
	free(f->waits);
	free(f->parent);
	free(f->queue);
}

static int flow_begin(struct flow *f)
{
	const struct muster_topology *topology = f->instance->topology;
	size_t vertices = (size_t)(f->steps + 1) * f->nodes;

	f->bandwidth = calloc(f->links + 1, sizeof(uint32_t));
	f->rounds = calloc(f->steps + 1, sizeof(uint32_t));
	f->supply = calloc(f->nodes, sizeof(uint32_t));
	f->load = calloc((size_t)f->steps * f->links + 1, sizeof(uint32_t));
	f->waits = calloc(vertices, sizeof(uint32_t));
	f->parent = calloc(vertices, sizeof(uint32_t));
	f->queue = calloc(vertices, sizeof(uint32_t));
	if (!f->bandwidth || !f->rounds || !f->supply || !f->load || !f->waits || !f->parent ||
	    !f->queue)
		return -ENOMEM;
	memset(f->bandwidth, 0xff, f->links * sizeof(uint32_t));
	for (uint32_t i = 0; i < topology->nr_limits; i++) {
		const struct muster_link_limit *limit = &topology->limits[i];

		if (limit->bandwidth < f->bandwidth[limit->links[0]])
			f->bandwidth[limit->links[0]] = limit->bandwidth;
	}
	for (uint32_t chunk = 0; chunk < f->instance->chunks; chunk++)
		f->supply[only_node(f->instance, f->backwards ? f->instance->post :
				    f->instance->pre, chunk)]++;
	for (uint32_t step = 0; step < f->steps; step++)
		f->rounds[step] = 1;
	f->rounds[0] += f->instance->rounds - f->steps;
	return 0;
}

int muster_flow_solve(const struct muster_instance *instance, enum muster_proof *proof,
		      struct muster_solution **solution)
{
	struct flow f = {
		.instance = instance, .nodes = instance->topology->nodes,
		.links = instance->topology->nr_links, .steps = instance->steps,
		.hub = hub_of(instance, instance->post),
	};
	uint32_t tried = 0;
	int err;

	f.backwards = f.hub == NONE;
	if (f.backwards)
		f.hub = hub_of(instance, instance->pre);
	err = flow_begin(&f);
	*proof = MUSTER_PROOF_REFUTED;
	while (!err) {
		if (push_all(&f)) {
			*proof = MUSTER_PROOF_FOUND;
			err = take_ways(&f, solution);
			break;
		}
		if (tried++ == DISTRIBUTIONS_MAX)
			*proof = MUSTER_PROOF_UNKNOWN;
		if (tried > DISTRIBUTIONS_MAX || !next_distribution(&f))
			break;
	}
	flow_end(&f);
	return err;
}
