/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What is to be synthesized (SCCL, section 3.2): chunks that are at some nodes and
 * shall get to others within so many steps and rounds over a topology; and what
 * solves it: sends. With a shape (shape.h) these combine what meets. Without one nothing
 * is combined: a reduction is the inverse of a distribution over the reversed links
 * (section 3.5), which synth.h takes care of.
 */
#ifndef MUSTER_SYNTH_INSTANCE_H
#define MUSTER_SYNTH_INSTANCE_H

#include "schedule.h"
#include "topology.h"

enum muster_instance_bound {
	MUSTER_INSTANCE_CHUNKS_MAX = 4096,
	MUSTER_INSTANCE_STEPS_MAX = 64,
	MUSTER_INSTANCE_ROUNDS_MAX = 256,
};

struct muster_instance {
	const struct muster_topology *topology;
	uint32_t chunks;		/* of all nodes together: the paper's G */
	uint32_t steps;
	uint32_t rounds;
	bool *pre;			/* by chunk and node: has it at the start */
	bool *post;			/* must have it at the end */
	const struct muster_schedule *shape;	/* what is to be combined; NULL: nothing */
};

struct muster_send {
	uint32_t step;
	uint32_t chunk;
	uint32_t link;
	bool reduce;			/* it combines with what is there */
};

struct muster_solution {
	uint32_t steps;
	uint32_t nr_sends;
	struct muster_send *sends;	/* by step */
};

/** muster_instance_new() - without pre and post. NULL: no memory. */
struct muster_instance *muster_instance_new(const struct muster_topology *topology,
					    uint32_t chunks, uint32_t steps, uint32_t rounds);

/**
 * muster_instance_make() - of a collective that does not combine (Tables 1 and 2).
 * @chunks: per node as the paper counts them (C): the whole has muster_global_chunks().
 * Return: 0; -EINVAL with why; -ENOMEM.
 */
int muster_instance_make(const struct muster_topology *topology, enum muster_coll coll,
			 uint32_t root, uint32_t chunks, uint32_t steps, uint32_t rounds,
			 struct muster_instance **instance, char *why, size_t why_len);

/** muster_instance_of_shape() - what a shape asks for (shape.h); it must live as long. 0; as above. */
int muster_instance_of_shape(const struct muster_topology *topology,
			     const struct muster_schedule *shape, uint32_t steps, uint32_t rounds,
			     struct muster_instance **instance, char *why, size_t why_len);

void muster_instance_free(struct muster_instance *instance);

/** muster_global_chunks() - the chunks of all nodes where each has C: the paper's ToGlobal. */
uint32_t muster_global_chunks(enum muster_coll coll, uint32_t nodes, uint32_t chunks);

/** muster_chunks_step() - C is a multiple of this. */
uint32_t muster_chunks_step(enum muster_coll coll, uint32_t nodes);

static inline bool muster_has(const struct muster_instance *instance, uint32_t chunk, uint32_t node)
{
	return instance->pre[(size_t)chunk * instance->topology->nodes + node];
}

static inline bool muster_needs(const struct muster_instance *instance, uint32_t chunk,
				uint32_t node)
{
	return instance->post[(size_t)chunk * instance->topology->nodes + node];
}

void muster_solution_free(struct muster_solution *solution);

/**
 * muster_solution_verify() - whether it solves the instance, by running it.
 *
 * Knows nothing of how it was found: chunks are where they are sent from, all get
 * where they must, no limit is exceeded in the rounds that each step is given, and
 * these are no more than the instance has.
 * Return: 0; -EINVAL with why; -ENOMEM.
 */
int muster_solution_verify(const struct muster_instance *instance,
			   const struct muster_solution *solution, char *why, size_t why_len);

/** muster_solution_rounds() - the rounds that a step needs, from the loads alone. */
uint32_t muster_solution_rounds(const struct muster_topology *topology,
				const struct muster_solution *solution, uint32_t step);

/** muster_solution_trim() - drop what arrives where it is already, or what nobody needs. */
int muster_solution_trim(const struct muster_instance *instance,
			 struct muster_solution *solution);

/** muster_solution_copy() - NULL: no memory. */
struct muster_solution *muster_solution_copy(const struct muster_solution *solution);

#endif /* MUSTER_SYNTH_INSTANCE_H */
