// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Which cases there are. Short ones are crossed: collective, algorithm, type, operation, form
 * and length. Of the longer ones as many as it takes that each two choices which go together
 * are made together in one of them; these are drawn greedily, the same everywhere.
 */
#include "sweep.h"

#include <stdlib.h>
#include <string.h>

const struct sweep_coll_row sweep_colls[SWEEP_COLLS] = {
	[SWEEP_BARRIER] = { "barrier", "barrier", false, false },
	[SWEEP_BROADCAST] = { "broadcast", "broadcast", false, true },
	[SWEEP_REDUCE] = { "reduce", "reduce", true, true },
	[SWEEP_ALLREDUCE] = { "allreduce", "allreduce", true, false },
	[SWEEP_ALLGATHER] = { "allgather", "allgather", false, false },
	[SWEEP_REDUCE_SCATTER_BLOCK] = { "reduce_scatter_block", "reduce-scatter", true, false },
	[SWEEP_ALLTOALL] = { "alltoall", "alltoall", false, false },
	[SWEEP_GATHER] = { "gather", "gather", false, true },
	[SWEEP_SCATTER] = { "scatter", "scatter", false, true },
	[SWEEP_SCAN] = { "scan", "scan", true, false },
	[SWEEP_EXSCAN] = { "exscan", "exscan", true, false },
	[SWEEP_ALLGATHERV] = { "allgatherv", "allgather", false, false },
	[SWEEP_REDUCE_SCATTER] = { "reduce_scatter", "reduce-scatter", true, false },
	[SWEEP_GATHERV] = { "gatherv", NULL, false, true },
	[SWEEP_SCATTERV] = { "scatterv", NULL, false, true },
	[SWEEP_ALLTOALLV] = { "alltoallv", NULL, false, false },
	[SWEEP_ALLTOALLW] = { "alltoallw", NULL, false, false },
	[SWEEP_NEIGHBOUR_ALLGATHER] = { "neighbour_allgather", NULL, false, false },
	[SWEEP_NEIGHBOUR_ALLTOALL] = { "neighbour_alltoall", NULL, false, false },
	[SWEEP_NEIGHBOUR_ALLGATHERV] = { "neighbour_allgatherv", NULL, false, false },
	[SWEEP_NEIGHBOUR_ALLTOALLV] = { "neighbour_alltoallv", NULL, false, false },
	[SWEEP_NEIGHBOUR_ALLTOALLW] = { "neighbour_alltoallw", NULL, false, false },
};

static const uint64_t short_counts[] = { 0, 1, 2, 7, 64, 1000 };
static const uint64_t long_counts[] = { 65537, (1 << 20) + 1 };

enum {
	NR_SHORT = sizeof(short_counts) / sizeof(short_counts[0]),
	NR_LONG = sizeof(long_counts) / sizeof(long_counts[0]),
};

static uint64_t hash_add(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0xbf58476d1ce4e5b9u;
	return hash ^ hash >> 29;
}

uint64_t sweep_data(const struct sweep_case *c)
{
	uint64_t hash = hash_add(hash_add(0x9e3779b97f4a7c15u, c->ranks), c->coll);

	return hash_add(hash_add(hash_add(hash, c->type->type), c->op), c->count);
}

uint64_t sweep_hash(const struct sweep_case *c)
{
	return hash_add(hash_add(sweep_data(c), c->name), c->form);
}

/* ---- what goes together -------------------------------------------------------------------- */

static bool has_name(const struct sweep_names *names, const struct sweep_case *c)
{
	/* What is combined by the caller is gathered, in one way. */
	return !c->name || (names->does[c->coll][c->name] && c->op != MUSTER_OP_USER);
}

static bool has_op(const struct sweep_case *c)
{
	if (!sweep_colls[c->coll].reduces)
		return !c->op;
	return c->op && sweep_defined(c->type, c->op) &&
	       !(c->op == MUSTER_SUM_EXACT && c->coll == SWEEP_REDUCE_SCATTER);
}

static bool is_case(const struct sweep_names *names, const struct sweep_case *c)
{
	if (c->coll == SWEEP_BARRIER && (c->count || c->type != &sweep_types[0]))
		return false;
	return has_name(names, c) && has_op(c);
}

/* ---- all ------------------------------------------------------------------------------------ */

static void all_forms(struct sweep_case *c, sweep_take *take, void *opaque)
{
	for (c->form = 0; c->form < SWEEP_FORMS; c->form++)
		take(opaque, c);
}

static void all_names(const struct sweep_names *names, struct sweep_case *c, sweep_take *take,
		      void *opaque)
{
	for (c->name = 0; c->name < names->nr; c->name++)
		if (is_case(names, c))
			all_forms(c, take, opaque);
}

static void all_ops(const struct sweep_names *names, struct sweep_case *c, sweep_take *take,
		    void *opaque)
{
	for (uint32_t o = 0; o <= sweep_nr_ops; o++) {
		c->op = o ? sweep_ops[o - 1].op : 0;
		for (uint32_t k = 0; k < NR_SHORT; k++) {
			c->count = short_counts[k];
			all_names(names, c, take, opaque);
		}
	}
}

void sweep_all(const struct sweep_names *names, uint32_t ranks, sweep_take *take, void *opaque)
{
	struct sweep_case c = { .ranks = ranks };

	for (c.coll = 0; c.coll < SWEEP_COLLS; c.coll++)
		for (uint32_t t = 0; t < sweep_nr_types; t++) {
			c.type = &sweep_types[t];
			all_ops(names, &c, take, opaque);
		}
}

/* ---- pairs ---------------------------------------------------------------------------------- */

/* Choices are numbered; those of one factor are not made together. */
enum { FACTORS = 7, CHOICES_MAX = 256, TRIES = 60 };

struct pairs {
	const struct sweep_names *names;
	uint32_t ranks_max;
	uint32_t first[FACTORS + 1];	/* choice of each factor */
	bool met[CHOICES_MAX][CHOICES_MAX];
	uint64_t state;
};

static uint32_t draw(struct pairs *pairs, uint32_t bound)
{
	pairs->state = pairs->state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(pairs->state >> 33) % bound;
}

static void begin(struct pairs *pairs)
{
	const uint32_t sizes[FACTORS] = {
		SWEEP_COLLS, pairs->names->nr, sweep_nr_types, sweep_nr_ops + 1, SWEEP_FORMS,
		NR_LONG, pairs->ranks_max,
	};

	for (int f = 0; f < FACTORS; f++)
		pairs->first[f + 1] = pairs->first[f] + sizes[f];
}

static uint32_t factor_of(const struct pairs *pairs, uint32_t choice)
{
	uint32_t f = 0;

	while (choice >= pairs->first[f + 1])
		f++;
	return f;
}

static void case_of(const struct pairs *pairs, const uint32_t *choices, struct sweep_case *c)
{
	uint32_t at[FACTORS];

	for (int f = 0; f < FACTORS; f++)
		at[f] = choices[f] - pairs->first[f];
	*c = (struct sweep_case){
		.coll = at[0], .name = at[1], .type = &sweep_types[at[2]],
		.op = at[3] ? sweep_ops[at[3] - 1].op : 0, .form = at[4],
		.count = long_counts[at[5]], .ranks = at[6] + 1,
	};
}

static uint32_t news(const struct pairs *pairs, const uint32_t *choices)
{
	uint32_t nr = 0;

	for (int f = 0; f < FACTORS; f++)
		for (int g = 0; g < f; g++)
			nr += !pairs->met[choices[f]][choices[g]];
	return nr;
}

/* With these two, of some drawn cases the one that has most that is new; 0: there is none. */
static uint32_t best(struct pairs *pairs, uint32_t a, uint32_t b, uint32_t *choices)
{
	uint32_t most = 0, fit = 0;

	for (uint32_t try = 0; try < 200 * TRIES && fit < TRIES; try++) {
		uint32_t drawn[FACTORS], nr;
		struct sweep_case c;

		for (int f = 0; f < FACTORS; f++)
			drawn[f] = pairs->first[f] + draw(pairs, pairs->first[f + 1] - pairs->first[f]);
		drawn[factor_of(pairs, a)] = a;
		drawn[factor_of(pairs, b)] = b;
		case_of(pairs, drawn, &c);
		if (!is_case(pairs->names, &c))
			continue;
		fit++;
		nr = news(pairs, drawn);
		if (nr <= most)
			continue;
		most = nr;
		memcpy(choices, drawn, sizeof(drawn));
	}
	return most;
}

static void meet(struct pairs *pairs, const uint32_t *choices)
{
	for (int f = 0; f < FACTORS; f++)
		for (int g = 0; g < f; g++)
			pairs->met[choices[f]][choices[g]] = true;
}

void sweep_pairs(const struct sweep_names *names, uint32_t ranks_max, sweep_take *take, void *opaque)
{
	struct pairs *pairs = calloc(1, sizeof(*pairs));

	if (!pairs)
		abort();
	pairs->names = names;
	pairs->ranks_max = ranks_max;
	begin(pairs);
	for (uint32_t a = 0; a < pairs->first[FACTORS]; a++)
		for (uint32_t b = 0; b < a; b++) {
			uint32_t choices[FACTORS];
			struct sweep_case c;

			if (factor_of(pairs, a) == factor_of(pairs, b) || pairs->met[a][b] ||
			    !best(pairs, a, b, choices))
				continue;
			meet(pairs, choices);
			case_of(pairs, choices, &c);
			take(opaque, &c);
		}
	free(pairs);
}
