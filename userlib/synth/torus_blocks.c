// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The paper's algorithm (QCDOC, section 3), for a displacement at a time. Within a
 * factor a displacement has a stage: the number of hops of the last ring that it
 * uses, behind those that the rings before take. Block j brings what is nonzero in
 * j factors, at the step that is the least of their stages, over a factor of that
 * stage. If several have it, the cyclic order of the factors decides: they are read
 * round from each of them, and the greatest reading wins; equal readings share.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "torus.h"

struct blocks {
	const struct muster_torus *torus;
	struct muster_torus_plan *plan;
	bool split;
	uint32_t stages_max;		/* steps of a block */
	uint32_t stage[MUSTER_TORUS_RINGS_MAX];		/* by factor, of this displacement */
	uint32_t ring[MUSTER_TORUS_RINGS_MAX];		/* the last one used in it */
	uint32_t at[MUSTER_TORUS_RINGS_MAX];		/* by ring */
};

static uint32_t hops_of(uint32_t size, uint32_t at)
{
	return at < size - at ? at : size - at;
}

static void find_stages(struct blocks *b, uint32_t displacement)
{
	uint32_t before = 0;

	for (uint32_t ring = b->torus->rings; ring-- > 0;) {
		b->at[ring] = displacement % b->torus->size[ring];
		displacement /= b->torus->size[ring];
	}
	memset(b->stage, 0, sizeof(b->stage));
	for (uint32_t ring = 0; ring < b->torus->rings; ring++) {
		uint32_t factor = b->torus->factor[ring], size = b->torus->size[ring];

		if (!ring || b->torus->factor[ring - 1] != factor)
			before = 0;
		if (b->at[ring]) {
			b->stage[factor] = before + hops_of(size, b->at[ring]);
			b->ring[factor] = ring;
		}
		before += size / 2;
		if (before > b->stages_max)
			b->stages_max = before;
	}
}

/* The stages read round from factor a, beside those from factor c: <, =, > 0. */
static int compare_readings(const struct blocks *b, uint32_t a, uint32_t c)
{
	uint32_t nr = b->torus->factors;

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t x = b->stage[(a + i) % nr], y = b->stage[(c + i) % nr];

		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}

/* The factors of the least stage whose reading is the greatest. */
static uint32_t find_senders(const struct blocks *b, uint32_t least, uint32_t *senders)
{
	uint32_t nr = 0;

	for (uint32_t factor = 0; factor < b->torus->factors; factor++) {
		int order = nr ? 0 : 1;

		if (b->stage[factor] != least)
			continue;
		if (nr)
			order = compare_readings(b, factor, senders[0]);
		if (order > 0)
			nr = 0;
		if (order >= 0)
			senders[nr++] = factor;
	}
	return nr;
}

/* Over a ring, towards where it came from: both ways if it is half way round. */
static int add_hops(struct blocks *b, uint32_t to, uint32_t ring, uint32_t step, uint32_t first,
		    uint32_t nr)
{
	uint32_t size = b->torus->size[ring], at = b->at[ring];
	bool both = 2 * at == size;
	struct muster_torus_hop hop = { .step = step, .to = to, .first = first, .nr = nr };
	int err;

	hop.channel = 2 * ring + (!both && 2 * at > size);
	if (both && b->split)
		hop.nr = nr / 2;
	hop.from = muster_torus_go(b->torus, to, hop.channel ^ 1);
	err = muster_torus_plan_add(b->plan, &hop);
	if (err || !both || !b->split)
		return err;
	hop.first += hop.nr;
	hop.channel ^= 1;
	hop.from = muster_torus_go(b->torus, to, hop.channel ^ 1);
	return muster_torus_plan_add(b->plan, &hop);
}

static int add_displacement(struct blocks *b, uint32_t to)
{
	uint32_t senders[MUSTER_TORUS_RINGS_MAX], least = UINT32_MAX, nonzero = 0, nr, step;
	int err = 0;

	find_stages(b, to);
	for (uint32_t factor = 0; factor < b->torus->factors; factor++) {
		nonzero += b->stage[factor] != 0;
		if (b->stage[factor] && b->stage[factor] < least)
			least = b->stage[factor];
	}
	step = (nonzero - 1) * b->stages_max + least - 1;
	nr = find_senders(b, least, senders);
	if (!b->split)
		nr = 1;
	for (uint32_t i = 0; i < nr && !err; i++)
		err = add_hops(b, to, b->ring[senders[i]], step, b->plan->parts / nr * i,
			       b->plan->parts / nr);
	return err;
}

/* Shares of every number of factors, halved. */
static uint32_t parts_for(uint32_t factors)
{
	uint32_t parts = 1;

	for (uint32_t i = 2; i <= factors; i++) {
		uint32_t a = parts, c = i;

		if (factors % i)
			continue;	/* equal readings are as many as divide the factors */
		while (c) {
			uint32_t rest = a % c;

			a = c;
			c = rest;
		}
		parts = parts / a * i;
	}
	return 2 * parts;
}

int muster_torus_plan_blocks(const struct muster_torus *torus, bool split,
			     struct muster_torus_plan **plan)
{
	struct blocks b = { .torus = torus, .split = split, .plan = muster_torus_plan_new(torus) };
	int err = b.plan ? 0 : -ENOMEM;

	if (err)
		return err;
	b.plan->parts = split ? parts_for(torus->factors) : 1;
	find_stages(&b, 0);
	for (uint32_t to = 1; to < torus->nodes && !err; to++)
		err = add_displacement(&b, to);
	if (err) {
		muster_torus_plan_free(b.plan);
		return err;
	}
	muster_torus_plan_end(b.plan);
	*plan = b.plan;
	return 0;
}
