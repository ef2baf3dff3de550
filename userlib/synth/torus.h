/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Allgather on a torus (QCDOC). All nodes do the same at the same time, so a plan
 * is the tree along which the origin's datum travels: node g's datum goes the same
 * way, moved by g. A node is then reached by datum d from the origin's point of
 * view at displacement d, once; what a channel of any node carries in a step is the
 * number of hops that the tree has in that step over that channel.
 */
#ifndef MUSTER_SYNTH_TORUS_H
#define MUSTER_SYNTH_TORUS_H

#include "schedule.h"
#include "topology.h"

enum muster_torus_bound {
	MUSTER_TORUS_RINGS_MAX = 12,
	MUSTER_TORUS_NODES_MAX = 1 << 20,
	MUSTER_TORUS_CHANNELS_MAX = 2 * MUSTER_TORUS_RINGS_MAX,
	MUSTER_TORUS_PARTS_MAX = 5040,
};

/*
 * Rings, the last one counting fastest. Several rings may make a factor, in which
 * data goes through the first ring first (QCDOC's 2 x t).
 */
struct muster_torus {
	uint32_t rings, factors;
	uint32_t size[MUSTER_TORUS_RINGS_MAX];
	uint32_t factor[MUSTER_TORUS_RINGS_MAX];	/* by ring, ascending */
	uint32_t nodes;
};

/* Parts [first, first + nr) of the datum arrive over channel 2 * ring + direction. */
struct muster_torus_hop {
	uint32_t step;
	uint32_t to;
	uint32_t from;
	uint16_t first, nr;
	uint8_t channel;		/* lowest bit: 1: downwards */
};

struct muster_torus_plan {
	struct muster_torus torus;
	uint32_t steps;
	uint32_t parts;			/* of a datum */
	uint32_t nr_hops;
	struct muster_torus_hop *hops;	/* by step */
};

/** muster_torus_read() - "6x6x6", or "2.10x2.10x2.10" with factors of several rings. 0; -EINVAL. */
int muster_torus_read(const char *shape, struct muster_torus *torus, char *why, size_t why_len);

/**
 * muster_torus_plan_blocks() - the paper's: block j brings what has j nonzero factors,
 * each datum over the factor in which it has come least far.
 * @split: what the cyclic order cannot resolve, and what comes half way round a ring,
 *	is split over the channels that could bring it; else the first one brings it.
 * Return: 0; -ENOMEM.
 */
int muster_torus_plan_blocks(const struct muster_torus *torus, bool split,
			     struct muster_torus_plan **plan);

/**
 * muster_torus_plan_balanced() - one that fills all channels alike, whatever the sizes.
 * Return: 0; -ENOMEM.
 */
int muster_torus_plan_balanced(const struct muster_torus *torus, struct muster_torus_plan **plan);

void muster_torus_plan_free(struct muster_torus_plan *plan);

/**
 * muster_torus_plan_check() - every displacement gets every part once, from a neighbour
 * that had it before the step. By translation that proves it for all nodes' data.
 * Return: 0; -EINVAL with why; -ENOMEM.
 */
int muster_torus_plan_check(const struct muster_torus_plan *plan, char *why, size_t why_len);

/* What a plan costs; sizes in parts of a datum of one node. */
struct muster_torus_report {
	uint64_t *received;		/* by step: what a node receives */
	uint64_t *load;			/* by step and channel */
	uint64_t *busiest;		/* by step: the busiest channel */
	uint64_t *held;			/* by step: received, or to be sent on, then or later */
	uint64_t time;			/* the sum of busiest */
	uint64_t buffer;		/* the most held */
	double efficiency;		/* receive bound (N - 1) / channels, divided by time */
};

/** muster_torus_report() - counted hop by hop. 0; -ENOMEM; free with the other one. */
int muster_torus_report(const struct muster_torus_plan *plan, struct muster_torus_report *report);
void muster_torus_report_free(struct muster_torus_report *report);

/** muster_torus_schedule() - all nodes' transfers. 0; -EINVAL: too many; -ENOMEM. */
int muster_torus_schedule(const struct muster_torus_plan *plan, struct muster_schedule **schedule,
			  char *why, size_t why_len);

/** muster_torus_topology() - its rings of two have two links each way. 0; -errno with why. */
int muster_torus_topology(const struct muster_torus *torus, struct muster_topology **topology,
			  char *why, size_t why_len);

/* Below here: what plans are made with. */

/** muster_torus_go() - the displacement one hop further over a channel. */
uint32_t muster_torus_go(const struct muster_torus *torus, uint32_t at, uint32_t channel);

/** muster_torus_plan_new() - without hops. NULL: no memory. */
struct muster_torus_plan *muster_torus_plan_new(const struct muster_torus *torus);

/** muster_torus_plan_add() - 0; -ENOMEM. */
int muster_torus_plan_add(struct muster_torus_plan *plan, const struct muster_torus_hop *hop);

/** muster_torus_plan_end() - put the hops in order and the parts into their least terms. */
void muster_torus_plan_end(struct muster_torus_plan *plan);

#endif /* MUSTER_SYNTH_TORUS_H */
