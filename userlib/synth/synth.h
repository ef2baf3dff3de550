/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Schedules for collectives on topologies. What combines is made from what does
 * not (SCCL, section 3.5): Reduce is Broadcast backwards over the reversed links,
 * Reduce-scatter is Allgather backwards, Allreduce is that and then Allgather. All
 * that comes out has passed the checker of schedules, and its cost is counted anew
 * from its transfers.
 */
#ifndef MUSTER_SYNTH_SYNTH_H
#define MUSTER_SYNTH_SYNTH_H

#include "bounds.h"
#include "solve.h"

struct muster_synth_request {
	const struct muster_topology *topology;
	enum muster_coll coll;
	uint32_t root;
	uint32_t chunks, steps, rounds;		/* C, S, R as the paper counts them */
	bool direct;				/* what combines as it is, not by inversion */
	const struct muster_schedule *shape;	/* a file's conditions (shape.h); NULL: coll's */
	const char *folder;			/* of solved instances; NULL: none */
	struct muster_solve_options solve;
};

struct muster_synth_result {
	enum muster_proof proof;
	struct muster_schedule *schedule;	/* if found */
	double cpu_seconds;
	bool kept;				/* an answer of the folder is in it */
	char why[256];
};

/**
 * muster_synthesize() - one (C, S, R).
 *
 * Directly where that is asked for, in a scan, among switches and by a shape.
 * Return: 0, whatever the proof; -EINVAL with result->why: there is no such request;
 * -EPROTO: what was found does not pass the checker, which is our fault; -ENOMEM.
 */
int muster_synthesize(const struct muster_synth_request *request,
		      struct muster_synth_result *result);

/** muster_synth_bounds() - steps and rounds / chunks that no schedule is below. 0; -errno. */
int muster_synth_bounds(const struct muster_synth_request *request, uint32_t *steps,
			uint64_t *rounds, uint64_t *chunks, char *why, size_t why_len);

/** muster_synth_unit() - C is a multiple of this, S and R of *even. */
uint32_t muster_synth_unit(enum muster_coll coll, uint32_t nodes, uint32_t *even);

/**
 * muster_synth_cost() - what a schedule costs on a topology, from its transfers alone.
 * Return: 0; -EINVAL with why: it sends where there is no link; -ENOMEM.
 */
int muster_synth_cost(const struct muster_schedule *schedule,
		      const struct muster_topology *topology, uint32_t *rounds, char *why,
		      size_t why_len);

/** muster_synth_rounds() - that a step of these loads by link takes, one at least. */
uint32_t muster_synth_rounds(const struct muster_topology *topology, const uint32_t *loads);

/** muster_synth_loads() - chunks by step and link, to be freed. Return: as above. */
int muster_synth_loads(const struct muster_schedule *schedule,
		       const struct muster_topology *topology, uint32_t **loads, char *why,
		       size_t why_len);

/**
 * muster_synth_fit() - the same with steps split where a rank would have more messages in
 * one than the NIC takes (MUSTER_SLOTS_MAX, MUSTER_SEQ_DESCS_MAX). What comes out has
 * passed the checker.
 * Return: 0; -EINVAL with why: the steps cannot be split; -ENOMEM.
 */
int muster_synth_fit(const struct muster_schedule *schedule, struct muster_schedule **fitted,
		     char *why, size_t why_len);

/* One point of the frontier. */
struct muster_pareto_point {
	uint32_t chunks, steps, rounds;
	bool least_steps;		/* latency-optimal: no schedule has fewer */
	bool least_rounds;		/* bandwidth-optimal: R / C meets the bound over all cuts */
	bool proved;			/* all that would be better in the class was refuted */
};

struct muster_pareto_options {
	uint32_t extra_rounds;		/* the paper's k */
	uint32_t steps_max;		/* 0: 2 more than the least steps and k */
	uint32_t chunks_max;		/* of one node; 0: what the bound allows */
	void (*found)(const struct muster_pareto_point *point,
		      const struct muster_synth_result *result, void *arg);
	void (*tried)(uint32_t chunks, uint32_t steps, uint32_t rounds,
		      const struct muster_synth_result *result, void *arg);	/* or NULL */
	void *arg;
};

/** muster_pareto() - Algorithm 1; request->chunks, steps and rounds do not count. 0; -errno. */
int muster_pareto(const struct muster_synth_request *request,
		  const struct muster_pareto_options *options, char *why, size_t why_len);

#endif /* MUSTER_SYNTH_SYNTH_H */
