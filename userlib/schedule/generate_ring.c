// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Rings: every rank sends to the next one only, a chunk for each rank, so that
 * all links are busy at once. The allreduce is a reduce-scatter followed by an
 * allgather; the broadcast is a chain down which the chunks follow each other.
 */
#include "build.h"

/* In step s rank r passes on the chunk that it got in step s - 1. */
static void allreduce(struct muster_builder *builder)
{
	uint32_t ranks = builder->schedule.ranks;

	for (uint32_t step = 0; step < 2 * (ranks - 1); step++, muster_builder_step(builder))
		for (uint32_t r = 0; r < ranks; r++)
			muster_builder_add(builder, (r + 2 * ranks - step) % ranks, r,
					   (r + 1) % ranks, step < ranks - 1);
}

static void broadcast(struct muster_builder *builder)
{
	uint32_t ranks = builder->schedule.ranks, chunks = builder->schedule.chunks;
	uint32_t root = builder->schedule.root;

	for (uint32_t step = 0; step < chunks + ranks - 2; step++, muster_builder_step(builder))
		for (uint32_t place = 0; place < ranks - 1; place++)
			if (step >= place && step - place < chunks)
				muster_builder_add(builder, step - place, (root + place) % ranks,
						   (root + place + 1) % ranks, false);
}

void muster_generate_ring(struct muster_builder *builder, enum muster_coll coll, uint32_t ranks,
			  uint32_t root)
{
	muster_builder_init(builder, "ring", coll, ranks, ranks, root);
	if (ranks == 1)
		return;
	if (coll == MUSTER_COLL_ALLREDUCE)
		allreduce(builder);
	else
		broadcast(builder);
}
