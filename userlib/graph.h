/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Whom a rank of a communicator hears and tells in neighbour collectives, and the schedule of
 * that: its own transfers alone, all in one step, with the slots that receivers have given.
 * Chunks are this rank's affair: a block for itself has the same number in both buffers.
 */
#ifndef MUSTER_GRAPH_H
#define MUSTER_GRAPH_H

#include "internal.h"

struct muster_graph {
	uint32_t nr_sources;
	uint32_t nr_destinations;
	uint32_t nr_selves;		/* blocks from this rank to itself: chunks below this */
	uint32_t nr_receives;		/* sources that are others */
	uint32_t nr_sends;
	uint32_t chunks;		/* one at least */
	uint64_t most_receives;		/* of any rank, */
	uint64_t most_messages;		/* with what it sends and copies */
	uint32_t *sources;		/* as given; then by index the chunk of each: */
	uint32_t *source_chunks;
	uint32_t *destinations;
	uint32_t *destination_chunks;
	uint32_t *slots;		/* by destination: the receiver's */
	uint32_t *order;		/* sources that are others, by rank: their slots' order */
	struct muster_block *given;	/* room for lengths as a caller gives them, */
	struct muster_cut cut;		/* and by chunk */
	struct muster_block *blocks;	/* of cut: in, then out */
};

/** muster_graph_new() - with the lists copied, and the chunks numbered; NULL: no memory. */
struct muster_graph *muster_graph_new(uint32_t rank, uint32_t nr_sources, const uint32_t *sources,
				      uint32_t nr_destinations, const uint32_t *destinations);
void muster_graph_free(struct muster_graph *graph);

/** muster_graph_tell() - words for each rank: how often it is a source, and its first slot. */
void muster_graph_tell(struct muster_graph *graph, uint32_t rank, uint32_t size, uint32_t *words);
/**
 * muster_graph_hear() - what each rank has told this one, which is overwritten.
 * Return: a rank that does not name this one as source as often as it is named as destination;
 * size: there is none.
 */
uint32_t muster_graph_hear(struct muster_graph *graph, uint32_t size, uint32_t *words);

/** muster_graph_schedule() - 0; -ENOMEM. */
int muster_graph_schedule(const struct muster_graph *graph, uint32_t rank, uint32_t size,
			  struct muster_schedule **schedule);

#endif /* MUSTER_GRAPH_H */
