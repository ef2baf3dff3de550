// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The encoding of what combines, as it is, not by inversion. in(c, n, r, s): the
 * value of chunk c at node n after s steps has the contribution of r in it. A send
 * combines with what is there, or replaces it; nothing may count twice.
 *
 * Where several nodes need one sum its bits must be the same at all of them. The
 * sets of the values of a chunk are then laminar (any two lie apart or in each other:
 * they are the parts of one expression), which pairs of contributors say: same(k, r,
 * q), there is a value with both after k steps, and a value that has r and q but not
 * x stands below one that has x. If also no node combines two messages of a chunk in
 * one step (a switch may), equal sets are equal expressions.
 */
#include <errno.h>
#include <stdlib.h>

#include "encode.h"

struct direct {
	struct muster_encoding *encoding;
	const struct muster_instance *instance;
	const struct muster_schedule *shape;
	const struct muster_topology *topology;
	Z3_context z3;
	uint32_t nodes, links, steps, extras;
	uint32_t *hops;
	bool *usable;			/* by link */
	Z3_ast *in;			/* by chunk, node, contributor and step; NULL: it cannot be */
	Z3_ast *same;			/* of one chunk: by step and pair */
	Z3_ast *extra;			/* by step and number */
	Z3_ast *args;			/* of the constraint that is being made */
	unsigned int nr_args;
};

static Z3_ast *in_at(const struct direct *d, uint32_t chunk, uint32_t node, uint32_t contributor,
		     uint32_t step)
{
	return &d->in[(((size_t)chunk * d->nodes + node) * d->nodes + contributor) *
		      (d->steps + 1) + step];
}

/* Two a link: it combines, or it replaces. */
static Z3_ast *sent_at(const struct muster_encoding *encoding, uint32_t chunk, uint32_t link,
		       uint32_t step, bool replaces)
{
	const struct muster_instance *instance = encoding->instance;

	return &encoding->sent[(((size_t)chunk * instance->topology->nr_links + link) *
				instance->steps + step) * 2 + replaces];
}

static Z3_ast *same_at(const struct direct *d, uint32_t step, uint32_t a, uint32_t b)
{
	return &d->same[((size_t)step * d->nodes + (a < b ? a : b)) * d->nodes + (a < b ? b : a)];
}

static void assert_it(struct direct *d, Z3_ast formula)
{
	Z3_solver_assert(d->z3, d->encoding->solver, formula);
}

static Z3_ast new_bool(struct direct *d)
{
	return Z3_mk_fresh_const(d->z3, "x", Z3_mk_bool_sort(d->z3));
}

static void add_arg(struct direct *d, Z3_ast arg)
{
	if (arg)
		d->args[d->nr_args++] = arg;
}

static Z3_ast either(struct direct *d, Z3_ast a, Z3_ast b)
{
	Z3_ast both[2] = { a, b };

	return a && b ? Z3_mk_or(d->z3, 2, both) : a ? a : b;
}

static Z3_ast both_of(struct direct *d, Z3_ast a, Z3_ast b)
{
	Z3_ast both[2] = { a, b };

	return Z3_mk_and(d->z3, 2, both);
}

static void at_most_one(struct direct *d)
{
	if (d->nr_args > 1)
		assert_it(d, Z3_mk_atmost(d->z3, d->nr_args, d->args, 1));
}

static bool contributes(const struct direct *d, uint32_t chunk, uint32_t node)
{
	return muster_coll_has(d->shape, chunk, node) &&
	       muster_coll_origin(d->shape, chunk, node) == node;
}

/* Whether the result of a node has a contribution in it. */
static bool counts(const struct direct *d, uint32_t node, uint32_t contributor)
{
	return !muster_coll_row(d->shape->coll)->prefix || contributor <= node;
}

/* ---- unknowns ----------------------------------------------------------------------- */

static void make_in(struct direct *d, uint32_t chunk, uint32_t node, uint32_t contributor)
{
	uint32_t hops = MUSTER_FAR;

	for (uint32_t other = 0; other < d->nodes; other++)
		if (muster_coll_has(d->shape, chunk, other) &&
		    muster_coll_origin(d->shape, chunk, other) == contributor &&
		    d->hops[other * d->nodes + node] < hops)
			hops = d->hops[other * d->nodes + node];
	if (!hops)
		*in_at(d, chunk, node, contributor, 0) = Z3_mk_true(d->z3);
	for (uint32_t step = hops ? hops : 1; step <= d->steps; step++)
		*in_at(d, chunk, node, contributor, step) = new_bool(d);
}

/* What comes by a link behind a step can still get to a node that needs it. */
static bool is_useful(const struct direct *d, uint32_t chunk, uint32_t link, uint32_t step)
{
	uint32_t to = d->topology->links[link].to;

	for (uint32_t node = 0; node < d->nodes && d->usable[link]; node++)
		if (muster_coll_needs(d->shape, chunk, node) &&
		    d->hops[to * d->nodes + node] < d->steps - step)
			return true;
	return false;
}

static bool can_be_there(const struct direct *d, uint32_t chunk, uint32_t node, uint32_t step)
{
	for (uint32_t contributor = 0; contributor < d->nodes; contributor++)
		if (*in_at(d, chunk, node, contributor, step))
			return true;
	return false;
}

static void make_sent(struct direct *d, uint32_t chunk, uint32_t link)
{
	const struct muster_link *ends = &d->topology->links[link];

	for (uint32_t step = 0; step < d->steps; step++) {
		if (!is_useful(d, chunk, link, step) || !can_be_there(d, chunk, ends->from, step))
			continue;
		*sent_at(d->encoding, chunk, link, step, false) = new_bool(d);
		if (can_be_there(d, chunk, ends->to, step))
			*sent_at(d->encoding, chunk, link, step, true) = new_bool(d);
	}
}

static void make_unknowns(struct direct *d)
{
	for (uint32_t chunk = 0; chunk < d->shape->chunks; chunk++) {
		for (uint32_t node = 0; node < d->nodes; node++)
			for (uint32_t other = 0; other < d->nodes; other++)
				if (contributes(d, chunk, other))
					make_in(d, chunk, node, other);
		for (uint32_t link = 0; link < d->links; link++)
			make_sent(d, chunk, link);
	}
}

/* ---- values ---------------------------------------------------------------------------- */

static void send_what_is_there(struct direct *d, uint32_t chunk, uint32_t link, uint32_t step)
{
	uint32_t from = d->topology->links[link].from;
	Z3_ast sent = either(d, *sent_at(d->encoding, chunk, link, step, false),
			     *sent_at(d->encoding, chunk, link, step, true));

	if (*sent_at(d->encoding, chunk, link, step, true))
		assert_it(d, Z3_mk_not(d->z3, both_of(d,
				       *sent_at(d->encoding, chunk, link, step, false),
				       *sent_at(d->encoding, chunk, link, step, true))));
	if (!sent || muster_coll_has(d->shape, chunk, from))
		return;
	d->nr_args = 0;
	add_arg(d, Z3_mk_not(d->z3, sent));
	for (uint32_t contributor = 0; contributor < d->nodes; contributor++)
		add_arg(d, *in_at(d, chunk, from, contributor, step));
	assert_it(d, Z3_mk_or(d->z3, d->nr_args, d->args));
}

/* What comes of a chunk to a node in a step: all, or what replaces alone. */
static void add_arrivals(struct direct *d, uint32_t chunk, uint32_t node, uint32_t step, bool all)
{
	d->nr_args = 0;
	for (uint32_t link = 0; link < d->links; link++) {
		if (d->topology->links[link].to != node)
			continue;
		add_arg(d, *sent_at(d->encoding, chunk, link, step, true));
		if (all)
			add_arg(d, *sent_at(d->encoding, chunk, link, step, false));
	}
}

/* A contribution is in a value if it was and stays, or comes; never twice. */
static void follow_contribution(struct direct *d, uint32_t chunk, uint32_t node,
				uint32_t contributor, uint32_t step, Z3_ast replaced)
{
	Z3_ast before = *in_at(d, chunk, node, contributor, step);
	Z3_ast after = *in_at(d, chunk, node, contributor, step + 1);

	if (!after)
		return;
	d->nr_args = 0;
	if (before)
		add_arg(d, replaced ? both_of(d, before, Z3_mk_not(d->z3, replaced)) : before);
	for (uint32_t link = 0; link < d->links; link++) {
		Z3_ast sent = either(d, *sent_at(d->encoding, chunk, link, step, false),
				     *sent_at(d->encoding, chunk, link, step, true));
		Z3_ast there = *in_at(d, chunk, d->topology->links[link].from, contributor, step);
		Z3_ast comes;

		if (d->topology->links[link].to != node || !sent || !there)
			continue;
		comes = new_bool(d);
		assert_it(d, Z3_mk_eq(d->z3, comes, both_of(d, sent, there)));
		add_arg(d, comes);
	}
	assert_it(d, Z3_mk_eq(d->z3, after, d->nr_args ?
			      Z3_mk_or(d->z3, d->nr_args, d->args) : Z3_mk_false(d->z3)));
	at_most_one(d);
}

static void follow_value(struct direct *d, uint32_t chunk, uint32_t node, uint32_t step,
			 bool one_expression)
{
	Z3_ast replaced = NULL;

	add_arrivals(d, chunk, node, step, one_expression && !d->topology->is_switch[node]);
	at_most_one(d);
	add_arrivals(d, chunk, node, step, false);
	if (d->nr_args) {
		replaced = new_bool(d);
		assert_it(d, Z3_mk_eq(d->z3, replaced, Z3_mk_or(d->z3, d->nr_args, d->args)));
	}
	for (uint32_t contributor = 0; contributor < d->nodes; contributor++)
		follow_contribution(d, chunk, node, contributor, step, replaced);
}

static void demand_result(struct direct *d, uint32_t chunk, uint32_t node)
{
	for (uint32_t other = 0; other < d->nodes; other++) {
		Z3_ast in = *in_at(d, chunk, node, other, d->steps);

		if (!contributes(d, chunk, other))
			continue;
		if (counts(d, node, other))
			assert_it(d, in ? in : Z3_mk_false(d->z3));
		else if (in)
			assert_it(d, Z3_mk_not(d->z3, in));
	}
}

/* ---- one expression ---------------------------------------------------------------------- */

static void make_same(struct direct *d, uint32_t chunk)
{
	for (uint32_t step = 1; step <= d->steps; step++)
		for (uint32_t a = 0; a < d->nodes; a++)
			for (uint32_t b = a + 1; b < d->nodes; b++) {
				*same_at(d, step, a, b) = new_bool(d);
				if (step > 1)
					assert_it(d, Z3_mk_implies(d->z3,
								   *same_at(d, step - 1, a, b),
								   *same_at(d, step, a, b)));
				for (uint32_t node = 0; node < d->nodes; node++) {
					Z3_ast in_a = *in_at(d, chunk, node, a, step);
					Z3_ast in_b = *in_at(d, chunk, node, b, step);

					if (in_a && in_b)
						assert_it(d, Z3_mk_implies(d->z3,
							  both_of(d, in_a, in_b),
							  *same_at(d, step, a, b)));
				}
			}
}

static void make_transitive(struct direct *d, uint32_t a, uint32_t b, uint32_t c)
{
	for (uint32_t step = 1; step <= d->steps; step++)
		assert_it(d, Z3_mk_implies(d->z3, both_of(d, *same_at(d, step, a, b),
							  *same_at(d, step, b, c)),
					   *same_at(d, step, a, c)));
}

/* A value has a and b but not c only if they come together before c joins them. */
static void separate(struct direct *d, uint32_t chunk, uint32_t a, uint32_t b, uint32_t c)
{
	Z3_ast apart;

	d->nr_args = 0;
	for (uint32_t step = 1; step <= d->steps; step++)
		add_arg(d, both_of(d, *same_at(d, step, a, b),
				   Z3_mk_not(d->z3, *same_at(d, step, a, c))));
	apart = new_bool(d);
	assert_it(d, Z3_mk_implies(d->z3, apart, Z3_mk_or(d->z3, d->nr_args, d->args)));
	for (uint32_t node = 0; node < d->nodes; node++)
		for (uint32_t step = 1; step <= d->steps; step++) {
			Z3_ast in_a = *in_at(d, chunk, node, a, step);
			Z3_ast in_b = *in_at(d, chunk, node, b, step);
			Z3_ast in_c = *in_at(d, chunk, node, c, step);

			if (in_a && in_b)
				assert_it(d, Z3_mk_implies(d->z3, both_of(d, in_a, in_b),
							   either(d, apart, in_c)));
		}
}

static void demand_one_expression(struct direct *d, uint32_t chunk)
{
	make_same(d, chunk);
	for (uint32_t a = 0; a < d->nodes; a++)
		for (uint32_t b = 0; b < d->nodes; b++)
			for (uint32_t c = 0; c < d->nodes; c++) {
				if (a == b || b == c || a == c)
					continue;
				if (a < c)
					make_transitive(d, a, b, c);
				if (a < b && contributes(d, chunk, a) &&
				    contributes(d, chunk, b) && contributes(d, chunk, c))
					separate(d, chunk, a, b, c);
			}
}

static bool has_one_expression(const struct direct *d, uint32_t chunk)
{
	uint32_t needed = 0;

	for (uint32_t node = 0; node < d->nodes; node++)
		needed += muster_coll_needs(d->shape, chunk, node);
	return needed > 1 && !muster_coll_row(d->shape->coll)->prefix;
}

static void constrain_chunk(struct direct *d, uint32_t chunk)
{
	bool one_expression = has_one_expression(d, chunk);

	for (uint32_t step = 0; step < d->steps; step++) {
		for (uint32_t link = 0; link < d->links; link++)
			send_what_is_there(d, chunk, link, step);
		for (uint32_t node = 0; node < d->nodes; node++)
			follow_value(d, chunk, node, step, one_expression);
	}
	for (uint32_t node = 0; node < d->nodes; node++)
		if (muster_coll_needs(d->shape, chunk, node))
			demand_result(d, chunk, node);
	if (one_expression)
		demand_one_expression(d, chunk);
}

/* ---- rounds, as in the quick encoding ------------------------------------------------------ */

static void make_extras(struct direct *d)
{
	d->nr_args = 0;
	for (uint32_t step = 0; step < d->steps; step++)
		for (uint32_t i = 0; i < d->extras; i++) {
			Z3_ast extra = new_bool(d);

			if (i)
				assert_it(d, Z3_mk_implies(d->z3, extra, d->args[d->nr_args - 1]));
			d->extra[step * d->extras + i] = extra;
			add_arg(d, extra);
		}
	if (d->nr_args)
		assert_it(d, Z3_mk_atmost(d->z3, d->nr_args, d->args, d->extras));
}

static void limit_step(struct direct *d, const struct muster_link_limit *limit, uint32_t step,
		       int *weights)
{
	unsigned int load;

	d->nr_args = 0;
	for (uint32_t i = 0; i < limit->nr_links; i++)
		for (uint32_t chunk = 0; chunk < d->shape->chunks; chunk++)
			for (int replaces = 0; replaces < 2; replaces++)
				add_arg(d, *sent_at(d->encoding, chunk, limit->links[i], step,
						    replaces));
	load = d->nr_args;
	if (load <= limit->bandwidth)
		return;
	for (uint32_t i = 0; i < d->extras; i++)
		add_arg(d, Z3_mk_not(d->z3, d->extra[step * d->extras + i]));
	for (unsigned int i = 0; i < d->nr_args; i++)
		weights[i] = i < load ? 1 : (int)limit->bandwidth;
	assert_it(d, Z3_mk_pble(d->z3, d->nr_args, d->args, weights,
				limit->bandwidth * (1 + d->extras)));
}

static int limit_loads(struct direct *d, size_t room)
{
	int *weights = calloc(room, sizeof(*weights));

	if (!weights)
		return -ENOMEM;
	make_extras(d);
	for (uint32_t i = 0; i < d->topology->nr_limits; i++)
		for (uint32_t step = 0; step < d->steps; step++)
			limit_step(d, &d->topology->limits[i], step, weights);
	free(weights);
	return 0;
}

/* ---- the whole ----------------------------------------------------------------------------- */

int muster_encode_direct(struct muster_encoding *encoding)
{
	const struct muster_instance *instance = encoding->instance;
	const struct muster_topology *topology = instance->topology;
	size_t sends = 2 * (size_t)instance->chunks * topology->nr_links * instance->steps;
	size_t values = (size_t)instance->chunks * topology->nodes * topology->nodes *
			(instance->steps + 1);
	struct direct d = {
		.encoding = encoding, .instance = instance, .shape = instance->shape,
		.topology = topology, .z3 = encoding->z3, .nodes = topology->nodes,
		.links = topology->nr_links, .steps = instance->steps,
		.extras = instance->rounds - instance->steps,
		.hops = muster_topology_distances(topology),
		.usable = muster_topology_usable(topology),
	};
	size_t room = sends + d.steps * d.extras + 2 * d.nodes + 2;
	int err = -ENOMEM;

	encoding->sent = calloc(sends + 1, sizeof(Z3_ast));
	d.in = calloc(values, sizeof(Z3_ast));
	d.same = calloc((size_t)(d.steps + 1) * d.nodes * d.nodes, sizeof(Z3_ast));
	d.extra = calloc(d.steps * d.extras + 1, sizeof(Z3_ast));
	d.args = calloc(room, sizeof(Z3_ast));
	if (encoding->sent && d.hops && d.usable && d.in && d.same && d.extra && d.args) {
		make_unknowns(&d);
		for (uint32_t chunk = 0; chunk < instance->chunks; chunk++)
			constrain_chunk(&d, chunk);
		err = limit_loads(&d, room);
	}
	free(d.args);
	free(d.extra);
	free(d.same);
	free(d.in);
	free(d.usable);
	free(d.hops);
	return err;
}

static bool is_true(const struct muster_encoding *encoding, Z3_model model, Z3_ast ast)
{
	Z3_ast value;

	return ast && Z3_model_eval(encoding->z3, model, ast, true, &value) &&
	       Z3_get_bool_value(encoding->z3, value) == Z3_L_TRUE;
}

struct muster_solution *muster_decode_direct(const struct muster_encoding *encoding,
					     Z3_model model)
{
	const struct muster_instance *instance = encoding->instance;
	uint32_t links = instance->topology->nr_links;
	size_t sends = 2 * (size_t)instance->chunks * links * instance->steps;
	struct muster_solution *solution = calloc(1, sizeof(*solution));

	if (!solution)
		return NULL;
	solution->steps = instance->steps;
	solution->sends = calloc(sends + 1, sizeof(*solution->sends));
	if (!solution->sends) {
		free(solution);
		return NULL;
	}
	/* In a step what replaces comes first. */
	for (uint32_t step = 0; step < instance->steps; step++)
		for (int replaces = 1; replaces >= 0; replaces--)
			for (uint32_t i = 0; i < instance->chunks * links; i++)
				if (is_true(encoding, model, *sent_at(encoding, i / links,
								      i % links, step, replaces)))
					solution->sends[solution->nr_sends++] =
						(struct muster_send){
							step, i / links, i % links, !replaces
						};
	return solution;
}
