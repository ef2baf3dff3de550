// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Algorithm 1 of SCCL: for each number of steps, from the least on, candidates
 * (R, C) with S <= R <= S + k in ascending order of R / C, until one is found.
 * Three things differ: the bandwidth bound is over all cuts, or the loop would
 * not end where the paper's bound cannot be met; S has an end; and a candidate
 * that is no better than what fewer steps gave is left out.
 */
#include <errno.h>
#include <stdlib.h>

#include "synth.h"

struct candidate {
	uint32_t rounds, chunks;
};

struct search {
	const struct muster_synth_request *request;
	const struct muster_pareto_options *options;
	uint32_t unit, even;
	uint32_t steps_min;
	uint64_t bound_rounds, bound_chunks;	/* R / C is at least their ratio */
	struct candidate best;			/* so far; 0 rounds: none */
	struct candidate *candidates;
	uint32_t nr;
	bool proved;				/* nothing was left open so far */
};

static bool costs_less(struct candidate a, struct candidate b)
{
	return (uint64_t)a.rounds * b.chunks < (uint64_t)b.rounds * a.chunks;
}

static int cheapest_first(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;

	if (costs_less(*a, *b))
		return -1;
	if (costs_less(*b, *a))
		return 1;
	return a->chunks < b->chunks ? -1 : a->chunks > b->chunks;
}

static int add_candidate(struct search *s, struct candidate candidate)
{
	struct candidate *grown;

	if (s->best.rounds && !costs_less(candidate, s->best))
		return 0;
	grown = realloc(s->candidates, (s->nr + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	s->candidates = grown;
	grown[s->nr++] = candidate;
	return 0;
}

static int make_candidates(struct search *s, uint32_t steps)
{
	uint32_t chunks_max = s->options->chunks_max;
	int err = 0;

	s->nr = 0;
	for (uint32_t rounds = steps; rounds <= steps + s->options->extra_rounds && !err;
	     rounds += s->even)
		for (uint32_t chunks = s->unit; !err && chunks <= MUSTER_INSTANCE_CHUNKS_MAX &&
		     (!chunks_max || chunks <= chunks_max) &&
		     chunks * s->bound_rounds <= rounds * s->bound_chunks; chunks += s->unit)
			err = add_candidate(s, (struct candidate){ rounds, chunks });
	if (s->nr)
		qsort(s->candidates, s->nr, sizeof(*s->candidates), cheapest_first);
	return err;
}

static bool meets_bound(const struct search *s, struct candidate c)
{
	return c.chunks * s->bound_rounds == c.rounds * s->bound_chunks;
}

static void report(struct search *s, struct candidate c, uint32_t steps,
		   const struct muster_synth_result *result)
{
	const struct muster_pareto_point point = {
		.chunks = c.chunks, .steps = steps, .rounds = c.rounds,
		.least_steps = steps == s->steps_min,
		.least_rounds = meets_bound(s, c),
		.proved = s->proved || meets_bound(s, c),
	};

	s->best = c;
	s->options->found(&point, result, s->options->arg);
}

/* One number of steps: 1 when the bound is met, 0 to go on; -errno. */
static int search_steps(struct search *s, uint32_t steps)
{
	struct muster_synth_request request = *s->request;
	int err = make_candidates(s, steps);

	for (uint32_t i = 0; i < s->nr && !err; i++) {
		struct muster_synth_result result;
		struct candidate c = s->candidates[i];

		request.chunks = c.chunks;
		request.steps = steps;
		request.rounds = c.rounds;
		err = muster_synthesize(&request, &result);
		if (err)
			break;
		if (s->options->tried)
			s->options->tried(c.chunks, steps, c.rounds, &result, s->options->arg);
		if (result.proof == MUSTER_PROOF_UNKNOWN)
			s->proved = false;
		if (result.proof != MUSTER_PROOF_FOUND)
			continue;
		report(s, c, steps, &result);
		muster_schedule_free(result.schedule);
		return meets_bound(s, c);
	}
	return err;
}

int muster_pareto(const struct muster_synth_request *request,
		  const struct muster_pareto_options *options, char *why, size_t why_len)
{
	struct search s = { .request = request, .options = options, .proved = true };
	uint32_t steps_max;
	int err = muster_synth_bounds(request, &s.steps_min, &s.bound_rounds, &s.bound_chunks, why,
				      why_len);

	if (err)
		return err;
	s.unit = muster_synth_unit(request->coll, request->topology->nodes, &s.even);
	steps_max = options->steps_max ? options->steps_max :
		    s.steps_min + options->extra_rounds + 2 * s.even;
	for (uint32_t steps = s.steps_min; !err && steps <= steps_max &&
	     steps <= MUSTER_INSTANCE_STEPS_MAX; steps += s.even)
		err = search_steps(&s, steps);
	free(s.candidates);
	return err < 0 ? err : 0;
}
