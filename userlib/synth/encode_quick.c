// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The quick encoding. sent(c, l, s) is there only if chunk c can have reached the
 * link's beginning before step s, and from its end can still get where it is
 * needed. there(c, n, s): the chunk is at the node before step s; it follows from
 * what was sent, in one direction only: that is all a solution needs. The rounds
 * of a step are one more than the Booleans extra(s, 1..) that are true, so that
 * each limit is one pseudo-Boolean constraint and everything is finite.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "encode.h"

struct quick {
	struct muster_encoding *encoding;
	const struct muster_instance *instance;
	const struct muster_topology *topology;
	Z3_context z3;
	uint32_t nodes, links, steps, extras, window;
	uint32_t *hops;
	uint32_t *earliest;		/* by chunk and node: after so many steps it can be there */
	uint32_t *latest;		/* after so many it must be, to be of use */
	bool *usable;			/* by link */
	Z3_ast *there;			/* by chunk, node and step; NULL: it cannot be */
	Z3_ast *extra;			/* by step and number */
	Z3_ast *args;			/* of the constraint that is being made */
	int *weights;
	unsigned int nr_args;
};

static Z3_ast *sent_at(const struct quick *q, uint32_t chunk, uint32_t link, uint32_t step)
{
	return &q->encoding->sent[((size_t)chunk * q->links + link) * q->steps + step];
}

static Z3_ast *there_at(const struct quick *q, uint32_t chunk, uint32_t node, uint32_t step)
{
	return &q->there[((size_t)chunk * q->nodes + node) * (q->steps + 1) + step];
}

static uint32_t least_of(const struct quick *q, uint32_t chunk, uint32_t link)
{
	const struct muster_quotient *quotient = q->encoding->quotient;
	uint32_t index = chunk * q->links + link;

	return quotient ? quotient->send[index] : index;
}

/* Of the orbit of a chunk at a node, only one has constraints: the others follow. */
static bool is_least_place(const struct quick *q, uint32_t chunk, uint32_t node)
{
	const struct muster_quotient *quotient = q->encoding->quotient;
	uint32_t index = chunk * q->nodes + node;

	return !quotient || quotient->place[index] == index;
}

static void assert_it(struct quick *q, Z3_ast formula)
{
	Z3_solver_assert(q->z3, q->encoding->solver, formula);
}

static Z3_ast new_bool(struct quick *q)
{
	return Z3_mk_fresh_const(q->z3, "x", Z3_mk_bool_sort(q->z3));
}

/* ---- what can be of use ----------------------------------------------------------- */

static void bound_chunk(struct quick *q, uint32_t chunk)
{
	uint32_t *earliest = q->earliest + (size_t)chunk * q->nodes;
	uint32_t *latest = q->latest + (size_t)chunk * q->nodes;

	for (uint32_t node = 0; node < q->nodes; node++) {
		uint32_t onward = muster_needs(q->instance, chunk, node) ? 0 : MUSTER_FAR;

		earliest[node] = MUSTER_FAR;
		for (uint32_t other = 0; other < q->nodes; other++) {
			if (muster_has(q->instance, chunk, other) &&
			    q->hops[other * q->nodes + node] < earliest[node])
				earliest[node] = q->hops[other * q->nodes + node];
			if (muster_needs(q->instance, chunk, other) &&
			    !muster_has(q->instance, chunk, other) &&
			    q->hops[node * q->nodes + other] < onward)
				onward = q->hops[node * q->nodes + other];
		}
		latest[node] = onward > q->steps ? 0 : q->steps - onward;
	}
}

static bool is_useful(const struct quick *q, uint32_t chunk, uint32_t link, uint32_t step)
{
	size_t from = (size_t)chunk * q->nodes + q->topology->links[link].from;
	size_t to = (size_t)chunk * q->nodes + q->topology->links[link].to;

	return q->usable[link] && !q->instance->pre[to] && q->earliest[from] <= step &&
	       step + 1 <= q->latest[to];
}

static void make_sent(struct quick *q)
{
	for (uint32_t chunk = 0; chunk < q->instance->chunks; chunk++)
		for (uint32_t link = 0; link < q->links; link++) {
			uint32_t least = least_of(q, chunk, link);

			for (uint32_t step = 0; step < q->steps; step++) {
				Z3_ast *sent = sent_at(q, chunk, link, step);

				if (!is_useful(q, chunk, link, step))
					continue;
				*sent = least == chunk * q->links + link ? new_bool(q) :
					*sent_at(q, least / q->links, least % q->links, step);
			}
		}
}

/* ---- constraints ------------------------------------------------------------------- */

static void add_arg(struct quick *q, Z3_ast arg, int weight)
{
	q->args[q->nr_args] = arg;
	q->weights[q->nr_args++] = weight;
}

/* What arrives of a chunk at a node in a step. */
static void add_arrivals(struct quick *q, uint32_t chunk, uint32_t node, uint32_t step)
{
	for (uint32_t link = 0; link < q->links; link++) {
		Z3_ast sent = *sent_at(q, chunk, link, step);

		if (q->topology->links[link].to == node && sent)
			add_arg(q, sent, 1);
	}
}

/* there(c, n, s + 1) implies there(c, n, s) or an arrival in step s. */
static void make_there(struct quick *q, uint32_t chunk, uint32_t node)
{
	for (uint32_t step = 0; step < q->steps; step++) {
		Z3_ast before = *there_at(q, chunk, node, step), after;

		q->nr_args = 0;
		add_arrivals(q, chunk, node, step);
		if (!q->nr_args) {
			*there_at(q, chunk, node, step + 1) = before;
			continue;
		}
		after = new_bool(q);
		*there_at(q, chunk, node, step + 1) = after;
		if (before)
			add_arg(q, before, 1);
		add_arg(q, Z3_mk_not(q->z3, after), 1);
		assert_it(q, Z3_mk_or(q->z3, q->nr_args, q->args));
	}
}

/* C3: whatever arrives arrives once. */
static void arrive_once(struct quick *q, uint32_t chunk, uint32_t node)
{
	q->nr_args = 0;
	for (uint32_t step = 0; step < q->steps; step++)
		add_arrivals(q, chunk, node, step);
	if (q->nr_args > 1)
		assert_it(q, Z3_mk_atmost(q->z3, q->nr_args, q->args, 1));
}

/* C4: sent only from where it is. */
static void send_what_is_there(struct quick *q, uint32_t chunk, uint32_t node)
{
	if (muster_has(q->instance, chunk, node))
		return;
	for (uint32_t link = 0; link < q->links; link++) {
		if (q->topology->links[link].from != node)
			continue;
		for (uint32_t step = 0; step < q->steps; step++) {
			Z3_ast sent = *sent_at(q, chunk, link, step);
			Z3_ast there = *there_at(q, chunk, node, step);

			if (!sent)
				continue;
			assert_it(q, there ? Z3_mk_implies(q->z3, sent, there) :
				  Z3_mk_not(q->z3, sent));
		}
	}
}

static void constrain_place(struct quick *q, uint32_t chunk, uint32_t node)
{
	Z3_ast there;

	if (!muster_has(q->instance, chunk, node)) {
		make_there(q, chunk, node);
		arrive_once(q, chunk, node);
		there = *there_at(q, chunk, node, q->steps);
		if (muster_needs(q->instance, chunk, node))
			assert_it(q, there ? there : Z3_mk_false(q->z3));
	}
	send_what_is_there(q, chunk, node);
}

static void constrain_places(struct quick *q)
{
	for (uint32_t chunk = 0; chunk < q->instance->chunks; chunk++)
		for (uint32_t node = 0; node < q->nodes; node++)
			if (is_least_place(q, chunk, node))
				constrain_place(q, chunk, node);
}

/* C6: the rounds of all steps; each has one, and these more. */
static void make_extras(struct quick *q)
{
	q->nr_args = 0;
	for (uint32_t step = 0; step < q->steps; step++)
		for (uint32_t i = 0; i < q->extras; i++) {
			Z3_ast extra = new_bool(q);

			if (i)
				assert_it(q, Z3_mk_implies(q->z3, extra, q->args[q->nr_args - 1]));
			q->extra[step * q->extras + i] = extra;
			add_arg(q, extra, 1);
		}
	if (q->nr_args)
		assert_it(q, Z3_mk_atmost(q->z3, q->nr_args, q->args, q->extras));
}

/* The same unknown more than once, by symmetry, is one with a greater weight. */
static int by_ast(const void *left, const void *right)
{
	Z3_ast a = *(const Z3_ast *)left, b = *(const Z3_ast *)right;

	return (uintptr_t)a < (uintptr_t)b ? -1 : (uintptr_t)a > (uintptr_t)b;
}

static void join_args(struct quick *q)
{
	unsigned int kept = 0;

	qsort(q->args, q->nr_args, sizeof(*q->args), by_ast);
	for (unsigned int i = 0; i < q->nr_args; i++) {
		if (kept && q->args[kept - 1] == q->args[i]) {
			q->weights[kept - 1]++;
			continue;
		}
		q->args[kept] = q->args[i];
		q->weights[kept++] = 1;
	}
	q->nr_args = kept;
}

static void add_load(struct quick *q, const struct muster_link_limit *limit, uint32_t step)
{
	for (uint32_t i = 0; i < limit->nr_links; i++)
		for (uint32_t chunk = 0; chunk < q->instance->chunks; chunk++) {
			Z3_ast sent = *sent_at(q, chunk, limit->links[i], step);

			if (sent)
				add_arg(q, sent, 1);
		}
}

/* C5: the load of a limit in a step is at most its bandwidth times the step's rounds. */
static void limit_step(struct quick *q, const struct muster_link_limit *limit, uint32_t step)
{
	unsigned int load = 0;
	bool weighted = false;

	q->nr_args = 0;
	for (uint32_t i = 0; i < q->window && step + i < q->steps; i++)
		add_load(q, limit, step + i);
	load = q->nr_args;
	if (load <= limit->bandwidth)
		return;
	join_args(q);
	weighted = load != q->nr_args || limit->bandwidth != 1;
	for (uint32_t i = 0; i < q->extras; i++)
		add_arg(q, Z3_mk_not(q->z3, q->extra[step * q->extras + i]), limit->bandwidth);
	load = limit->bandwidth * (1 + q->extras);
	if (weighted)
		assert_it(q, Z3_mk_pble(q->z3, q->nr_args, q->args, q->weights, load));
	else
		assert_it(q, Z3_mk_atmost(q->z3, q->nr_args, q->args, load));
}

static bool is_least_limit(const struct quick *q, const struct muster_link_limit *limit)
{
	const struct muster_quotient *quotient = q->encoding->quotient;
	uint32_t link = limit->links[0];

	return !quotient || limit->nr_links > 1 || quotient->link[link] == link;
}

static void limit_loads(struct quick *q)
{
	for (uint32_t i = 0; i < q->topology->nr_limits; i++) {
		const struct muster_link_limit *limit = &q->topology->limits[i];

		if (!is_least_limit(q, limit))
			continue;
		for (uint32_t step = 0; !step || step + q->window <= q->steps; step++)
			limit_step(q, limit, step);
	}
}

static bool same_places(const struct quick *q, uint32_t a, uint32_t b)
{
	const bool *pre = q->instance->pre, *post = q->instance->post;
	size_t nodes = q->nodes;

	return !memcmp(pre + a * nodes, pre + b * nodes, nodes) &&
	       !memcmp(post + a * nodes, post + b * nodes, nodes);
}

/* The first node that must get the chunk; nodes: none must. */
static uint32_t first_receiver(const struct quick *q, uint32_t chunk)
{
	uint32_t node = 0;

	while (node < q->nodes && (muster_has(q->instance, chunk, node) ||
				   !muster_needs(q->instance, chunk, node)))
		node++;
	return node;
}

/*
 * Chunks of the same places can change roles. So they may as well reach one node
 * in their order: nothing is lost, and many models become one.
 */
static void order_alike(struct quick *q)
{
	for (uint32_t chunk = 0; chunk < q->instance->chunks; chunk++) {
		uint32_t node = first_receiver(q, chunk), next = chunk + 1;

		while (next < q->instance->chunks && !same_places(q, chunk, next))
			next++;
		if (next == q->instance->chunks || node == q->nodes)
			continue;
		for (uint32_t step = 1; step <= q->steps; step++) {
			Z3_ast later = *there_at(q, next, node, step);
			Z3_ast earlier = *there_at(q, chunk, node, step);

			if (later && earlier)
				assert_it(q, Z3_mk_implies(q->z3, later, earlier));
		}
	}
}

/* ---- the whole -------------------------------------------------------------------------- */

static void quick_end(struct quick *q)
{
	free(q->weights);
	free(q->args);
	free(q->extra);
	free(q->there);
	free(q->usable);
	free(q->latest);
	free(q->earliest);
	free(q->hops);
}

static int quick_begin(struct quick *q)
{
	size_t places = (size_t)q->instance->chunks * q->nodes;
	size_t sends = (size_t)q->instance->chunks * q->links * q->steps;

	q->encoding->sent = calloc(sends + 1, sizeof(Z3_ast));
	q->hops = muster_topology_distances(q->topology);
	q->earliest = calloc(places, sizeof(uint32_t));
	q->latest = calloc(places, sizeof(uint32_t));
	q->usable = muster_topology_usable(q->topology);
	q->there = calloc(places * (q->steps + 1), sizeof(Z3_ast));
	q->extra = calloc(q->steps * q->extras + 1, sizeof(Z3_ast));
	q->args = calloc(sends + q->steps * q->extras + 2, sizeof(Z3_ast));
	q->weights = calloc(sends + q->steps * q->extras + 2, sizeof(int));
	if (q->encoding->sent && q->hops && q->earliest && q->latest && q->usable && q->there &&
	    q->extra && q->args && q->weights)
		return 0;
	quick_end(q);
	return -ENOMEM;
}

int muster_encode_quick(struct muster_encoding *encoding)
{
	const struct muster_instance *instance = encoding->instance;
	struct quick q = {
		.encoding = encoding, .instance = instance, .topology = instance->topology,
		.z3 = encoding->z3, .nodes = instance->topology->nodes,
		.links = instance->topology->nr_links, .steps = instance->steps,
		.extras = instance->rounds - instance->steps,
		.window = encoding->window ? encoding->window : 1,
	};
	int err = quick_begin(&q);

	if (err)
		return err;
	for (uint32_t chunk = 0; chunk < instance->chunks; chunk++)
		bound_chunk(&q, chunk);
	make_sent(&q);
	make_extras(&q);
	constrain_places(&q);
	limit_loads(&q);
	if (!encoding->quotient)
		order_alike(&q);
	quick_end(&q);
	return 0;
}

static bool is_true(const struct muster_encoding *encoding, Z3_model model, Z3_ast ast)
{
	Z3_ast value;

	return ast && Z3_model_eval(encoding->z3, model, ast, true, &value) &&
	       Z3_get_bool_value(encoding->z3, value) == Z3_L_TRUE;
}

struct muster_solution *muster_decode_quick(const struct muster_encoding *encoding, Z3_model model)
{
	const struct muster_instance *instance = encoding->instance;
	uint32_t links = instance->topology->nr_links;
	size_t sends = (size_t)instance->chunks * links * instance->steps;
	struct muster_solution *solution = calloc(1, sizeof(*solution));

	if (!solution)
		return NULL;
	solution->steps = instance->steps;
	solution->sends = calloc(sends + 1, sizeof(*solution->sends));
	for (uint32_t step = 0; step < instance->steps && solution->sends; step++)
		for (uint32_t i = 0; i < instance->chunks * links; i++)
			if (is_true(encoding, model, encoding->sent[(size_t)i * instance->steps +
								    step]))
				solution->sends[solution->nr_sends++] = (struct muster_send){
					step, i / links, i % links, false
				};
	if (!solution->sends) {
		free(solution);
		return NULL;
	}
	return solution;
}
