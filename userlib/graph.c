// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Neighbours of a rank, as lists. The k-th block for a rank is the k-th that this receives, if
 * neighbours are named several times. At a receiver, slots go by the senders' ranks, so that
 * two numbers for each pair tell all: how many there are, and which is the first.
 */
#include "graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"

/* Blocks for the rank itself come first; the others are numbered by their place in the list. */
static uint32_t chunks_number(const uint32_t *ranks, uint32_t nr, uint32_t rank, uint32_t *chunks)
{
	uint32_t selves = 0, next;

	for (uint32_t i = 0; i < nr; i++)
		selves += ranks[i] == rank;
	next = selves;
	selves = 0;
	for (uint32_t i = 0; i < nr; i++)
		chunks[i] = ranks[i] == rank ? selves++ : next++;
	return selves;
}

static uint32_t *list_copy(const uint32_t *list, uint32_t nr)
{
	uint32_t *copy = malloc((nr + 1) * sizeof(*copy));

	if (copy && nr)
		memcpy(copy, list, nr * sizeof(*copy));
	return copy;
}

static bool graph_allocate(struct muster_graph *graph, const uint32_t *sources,
			   const uint32_t *destinations)
{
	graph->sources = list_copy(sources, graph->nr_sources);
	graph->destinations = list_copy(destinations, graph->nr_destinations);
	graph->source_chunks = calloc(graph->nr_sources + 1, sizeof(uint32_t));
	graph->destination_chunks = calloc(graph->nr_destinations + 1, sizeof(uint32_t));
	graph->slots = calloc(graph->nr_destinations + 1, sizeof(uint32_t));
	graph->order = calloc(graph->nr_sources + 1, sizeof(uint32_t));
	graph->given = calloc(graph->chunks, sizeof(*graph->given));
	graph->blocks = calloc(2 * (size_t)graph->chunks, sizeof(*graph->blocks));
	return graph->sources && graph->destinations && graph->source_chunks && graph->slots &&
	       graph->destination_chunks && graph->order && graph->given && graph->blocks;
}

struct muster_graph *muster_graph_new(uint32_t rank, uint32_t nr_sources, const uint32_t *sources,
				      uint32_t nr_destinations, const uint32_t *destinations)
{
	uint32_t most = nr_sources > nr_destinations ? nr_sources : nr_destinations;
	struct muster_graph *graph = calloc(1, sizeof(*graph));
	uint32_t selves;

	if (!graph)
		return NULL;
	graph->nr_sources = nr_sources;
	graph->nr_destinations = nr_destinations;
	graph->chunks = most ? most : 1;
	if (!graph_allocate(graph, sources, destinations)) {
		muster_graph_free(graph);
		return NULL;
	}
	selves = chunks_number(sources, nr_sources, rank, graph->source_chunks);
	graph->nr_selves = chunks_number(destinations, nr_destinations, rank,
					 graph->destination_chunks);
	graph->nr_receives = nr_sources - selves;
	graph->nr_sends = nr_destinations - graph->nr_selves;
	return graph;
}

void muster_graph_free(struct muster_graph *graph)
{
	if (!graph)
		return;
	free(graph->sources);
	free(graph->source_chunks);
	free(graph->destinations);
	free(graph->destination_chunks);
	free(graph->slots);
	free(graph->order);
	free(graph->given);
	free(graph->blocks);
	free(graph);
}

/* ---- slots -------------------------------------------------------------------------- */

void muster_graph_tell(struct muster_graph *graph, uint32_t rank, uint32_t size, uint32_t *words)
{
	uint32_t slot = 0;

	memset(words, 0, 2 * (size_t)size * sizeof(*words));
	for (uint32_t i = 0; i < graph->nr_sources; i++)
		words[2 * graph->sources[i]]++;
	for (uint32_t r = 0; r < size; r++) {
		words[2 * r + 1] = slot;
		slot += r == rank ? 0 : words[2 * r];
	}
	for (uint32_t i = 0; i < graph->nr_sources; i++) {
		uint32_t source = graph->sources[i];

		if (source != rank)
			graph->order[words[2 * source + 1]++] = i;
	}
	for (uint32_t r = 0; r < size; r++)
		words[2 * r + 1] -= r == rank ? 0 : words[2 * r];
}

uint32_t muster_graph_hear(struct muster_graph *graph, uint32_t size, uint32_t *words)
{
	for (uint32_t i = 0; i < graph->nr_destinations; i++) {
		uint32_t *of = &words[2 * graph->destinations[i]];

		of[0]--;	/* below zero it does not come back to it */
		graph->slots[i] = of[1]++;
	}
	for (uint32_t r = 0; r < size; r++)
		if (words[2 * r])
			return r;
	return size;
}

/* ---- schedule ------------------------------------------------------------------------ */

static int own_make(const struct muster_graph *graph, uint32_t rank,
		    struct muster_schedule *schedule)
{
	struct muster_own *own = calloc(1, sizeof(*own) + schedule->nr_transfers *
							  sizeof(own->slots[0]));
	uint32_t nr = 0;

	if (!own)
		return -ENOMEM;
	own->needed = graph->nr_sources;
	own->most_receives = graph->most_receives;
	own->most_messages = graph->most_messages;
	for (uint32_t i = 0; i < graph->nr_destinations; i++)
		if (graph->destinations[i] != rank)
			own->slots[nr++] = graph->slots[i];
	for (uint32_t i = 0; i < graph->nr_receives; i++)
		own->slots[nr++] = i;
	schedule->own = own;
	return 0;
}

int muster_graph_schedule(const struct muster_graph *graph, uint32_t rank, uint32_t size,
			  struct muster_schedule **schedule)
{
	struct muster_builder builder;
	int err;

	muster_builder_init(&builder, "neighbours", MUSTER_COLL_NEIGHBOURS, size, graph->chunks, 0);
	for (uint32_t i = 0; i < graph->nr_destinations; i++)
		if (graph->destinations[i] != rank)
			muster_builder_add(&builder, graph->destination_chunks[i], rank,
					   graph->destinations[i], false);
	for (uint32_t i = 0; i < graph->nr_receives; i++)
		muster_builder_add(&builder, graph->source_chunks[graph->order[i]],
				   graph->sources[graph->order[i]], rank, false);
	err = muster_builder_end(&builder, schedule);
	if (err)
		return err;
	err = own_make(graph, rank, *schedule);
	if (err)
		muster_schedule_free(*schedule);
	return err;
}
