// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The plain encoding: constraints C1 to C6 of SCCL, section 3.4, as they are meant.
 * Misprints there: V_S must contain post, not lie in it (section 3.3); [S] would
 * have S + 1 steps where there are S; C4 ranges over chunks and links, not over
 * pairs (c, n) in E; and a send's step follows from when its receiver has the
 * chunk, time of n', not of n. It is what the quick encoding is measured against.
 */
#include <errno.h>
#include <stdlib.h>

#include "encode.h"

struct plain {
	struct muster_encoding *encoding;
	const struct muster_instance *instance;
	const struct muster_topology *topology;
	Z3_context z3;
	Z3_sort boolean, integer;
	Z3_ast *rounds;			/* by step, from 1 as in the paper */
	Z3_ast *args;
	bool *usable;			/* by link */
};

static Z3_ast number(const struct plain *p, int value)
{
	return Z3_mk_int(p->z3, value, p->integer);
}

static void assert_it(struct plain *p, Z3_ast formula)
{
	Z3_solver_assert(p->z3, p->encoding->solver, formula);
}

static Z3_ast time_of(const struct plain *p, uint32_t chunk, uint32_t node)
{
	return p->encoding->times[(size_t)chunk * p->topology->nodes + node];
}

static Z3_ast sent_over(const struct plain *p, uint32_t chunk, uint32_t link)
{
	return p->encoding->sent[(size_t)chunk * p->topology->nr_links + link];
}

static Z3_ast add(const struct plain *p, Z3_ast *args, unsigned int nr)
{
	return nr ? Z3_mk_add(p->z3, nr, args) : number(p, 0);
}

static void make_unknowns(struct plain *p)
{
	size_t times = (size_t)p->instance->chunks * p->topology->nodes;
	size_t sends = (size_t)p->instance->chunks * p->topology->nr_links;

	for (size_t i = 0; i < times; i++) {
		p->encoding->times[i] = Z3_mk_fresh_const(p->z3, "time", p->integer);
		assert_it(p, Z3_mk_ge(p->z3, p->encoding->times[i], number(p, 0)));
	}
	for (size_t i = 0; i < sends; i++)
		p->encoding->sent[i] = Z3_mk_fresh_const(p->z3, "snd", p->boolean);
	for (uint32_t step = 1; step <= p->instance->steps; step++) {
		p->rounds[step] = Z3_mk_fresh_const(p->z3, "r", p->integer);
		assert_it(p, Z3_mk_ge(p->z3, p->rounds[step], number(p, 1)));
	}
}

/* C1 and C2 */
static void constrain_ends(struct plain *p, uint32_t chunk, uint32_t node)
{
	Z3_ast time = time_of(p, chunk, node);

	if (muster_has(p->instance, chunk, node))
		assert_it(p, Z3_mk_eq(p->z3, time, number(p, 0)));
	if (muster_needs(p->instance, chunk, node))
		assert_it(p, Z3_mk_le(p->z3, time, number(p, p->instance->steps)));
}

/* C3: what becomes available is received, once. */
static void constrain_arrival(struct plain *p, uint32_t chunk, uint32_t node)
{
	Z3_ast in_time = Z3_mk_le(p->z3, time_of(p, chunk, node), number(p, p->instance->steps));
	unsigned int nr = 0;

	if (muster_has(p->instance, chunk, node))
		return;
	for (uint32_t link = 0; link < p->topology->nr_links; link++)
		if (p->topology->links[link].to == node && p->usable[link])
			p->args[nr++] = Z3_mk_ite(p->z3, sent_over(p, chunk, link), number(p, 1),
						  number(p, 0));
	assert_it(p, Z3_mk_implies(p->z3, in_time,
				   Z3_mk_eq(p->z3, add(p, p->args, nr), number(p, 1))));
}

/* C4: there before it is sent on. */
static void constrain_send(struct plain *p, uint32_t chunk, uint32_t link)
{
	const struct muster_link *l = &p->topology->links[link];

	assert_it(p, Z3_mk_implies(p->z3, sent_over(p, chunk, link),
				   Z3_mk_lt(p->z3, time_of(p, chunk, l->from),
					    time_of(p, chunk, l->to))));
}

/* C5 */
static void constrain_load(struct plain *p, const struct muster_link_limit *limit, uint32_t step)
{
	unsigned int nr = 0;

	for (uint32_t i = 0; i < limit->nr_links; i++) {
		uint32_t link = limit->links[i];

		for (uint32_t chunk = 0; chunk < p->instance->chunks; chunk++) {
			Z3_ast both[2] = {
				sent_over(p, chunk, link),
				Z3_mk_eq(p->z3, time_of(p, chunk, p->topology->links[link].to),
					 number(p, step)),
			};

			p->args[nr++] = Z3_mk_ite(p->z3, Z3_mk_and(p->z3, 2, both), number(p, 1),
						  number(p, 0));
		}
	}
	assert_it(p, Z3_mk_le(p->z3, add(p, p->args, nr),
			      Z3_mk_mul(p->z3, 2, (Z3_ast[]){ number(p, limit->bandwidth),
							     p->rounds[step] })));
}

static void constrain(struct plain *p)
{
	for (uint32_t chunk = 0; chunk < p->instance->chunks; chunk++) {
		for (uint32_t node = 0; node < p->topology->nodes; node++) {
			constrain_ends(p, chunk, node);
			constrain_arrival(p, chunk, node);
		}
		for (uint32_t link = 0; link < p->topology->nr_links; link++)
			constrain_send(p, chunk, link);
	}
	for (uint32_t i = 0; i < p->topology->nr_limits; i++)
		for (uint32_t step = 1; step <= p->instance->steps; step++)
			constrain_load(p, &p->topology->limits[i], step);
	assert_it(p, Z3_mk_eq(p->z3, add(p, p->rounds + 1, p->instance->steps),	/* C6 */
			      number(p, p->instance->rounds)));
}

int muster_encode_plain(struct muster_encoding *encoding)
{
	const struct muster_instance *instance = encoding->instance;
	const struct muster_topology *topology = instance->topology;
	size_t sends = (size_t)instance->chunks * topology->nr_links;
	struct plain p = {
		.encoding = encoding, .instance = instance, .topology = topology,
		.z3 = encoding->z3,
		.boolean = Z3_mk_bool_sort(encoding->z3),
		.integer = Z3_mk_int_sort(encoding->z3),
	};

	encoding->sent = calloc(sends + 1, sizeof(Z3_ast));
	encoding->times = calloc((size_t)instance->chunks * topology->nodes, sizeof(Z3_ast));
	p.rounds = calloc(instance->steps + 1, sizeof(Z3_ast));
	p.args = calloc(sends + 1, sizeof(Z3_ast));
	p.usable = muster_topology_usable(topology);
	if (!encoding->sent || !encoding->times || !p.rounds || !p.args || !p.usable) {
		free(p.usable);
		free(p.args);
		free(p.rounds);
		return -ENOMEM;
	}
	make_unknowns(&p);
	constrain(&p);
	free(p.usable);
	free(p.args);
	free(p.rounds);
	return 0;
}

static int int_of(const struct muster_encoding *encoding, Z3_model model, Z3_ast ast)
{
	Z3_ast value;
	int n = -1;

	if (Z3_model_eval(encoding->z3, model, ast, true, &value))
		Z3_get_numeral_int(encoding->z3, value, &n);
	return n;
}

static bool is_true(const struct muster_encoding *encoding, Z3_model model, Z3_ast ast)
{
	Z3_ast value;

	return Z3_model_eval(encoding->z3, model, ast, true, &value) &&
	       Z3_get_bool_value(encoding->z3, value) == Z3_L_TRUE;
}

/* T = {(c, n, n', time(c, n') - 1)}, step by step. */
struct muster_solution *muster_decode_plain(const struct muster_encoding *encoding, Z3_model model)
{
	const struct muster_instance *instance = encoding->instance;
	const struct muster_topology *topology = instance->topology;
	size_t sends = (size_t)instance->chunks * topology->nr_links;
	struct muster_solution *solution = calloc(1, sizeof(*solution));

	if (solution)
		solution->sends = calloc(sends + 1, sizeof(*solution->sends));
	if (!solution || !solution->sends) {
		free(solution);
		return NULL;
	}
	solution->steps = instance->steps;
	for (uint32_t step = 0; step < instance->steps; step++)
		for (uint32_t i = 0; i < sends; i++) {
			uint32_t link = i % topology->nr_links, chunk = i / topology->nr_links;
			uint32_t at = chunk * topology->nodes + topology->links[link].to;

			if (is_true(encoding, model, encoding->sent[i]) &&
			    int_of(encoding, model, encoding->times[at]) == (int)step + 1)
				solution->sends[solution->nr_sends++] = (struct muster_send){
					step, chunk, link, false
				};
		}
	return solution;
}
