// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Schedules of ranks that sit in nodes, composed of schedules of fewer ranks: inside of each node, then
 * across the nodes, among their leaders, then inside again. Neighbours sit together, and a node's
 * leader has the place in it that the root has in its own. What goes from node to node is what the
 * schedule across sends. A part's step is a step of the whole, at all nodes alike; nothing of a part is
 * changed but who its ranks are, so that the checker proves the whole as it proves any other.
 */
#include <errno.h>
#include <stdio.h>

#include "build.h"
#include "stages.h"

/* Copies of a part: rank r of the k-th is rank k * apart + first + r * stride. */
struct copies {
	uint32_t nr;
	uint32_t apart;
	uint32_t first;
	uint32_t stride;
};

static uint32_t divisor(uint32_t a, uint32_t b)
{
	return b ? divisor(b, a % b) : a;
}

/* Into how many chunks the message is cut so that each chunk of both is a number of them. */
static uint32_t chunks_of_both(uint32_t chunks, const struct muster_schedule *part)
{
	return part ? chunks / divisor(chunks, part->chunks) * part->chunks : chunks;
}

static void add_transfer(struct muster_builder *builder, const struct muster_transfer *t, uint32_t each,
			 uint32_t base, uint32_t stride)
{
	for (uint32_t i = 0; i < each; i++)
		muster_builder_add(builder, t->chunk * each + i, base + t->from * stride, base + t->to * stride,
				   t->reduce);
}

static void add_part(struct muster_builder *builder, const struct muster_schedule *part, struct copies copies)
{
	uint32_t end;

	for (uint32_t begin = 0; part && begin < part->nr_transfers; begin = end) {
		end = muster_step_end(part, begin);
		for (uint32_t k = 0; k < copies.nr; k++)
			for (uint32_t i = begin; i < end; i++)
				add_transfer(builder, &part->transfers[i], builder->schedule.chunks / part->chunks,
					     k * copies.apart + copies.first, copies.stride);
		muster_builder_step(builder);
	}
}

/* Whether a part is there if it is needed, does that, and is listed. */
static bool part_fits(const struct muster_schedule *part, bool is_needed, enum muster_coll coll)
{
	if (!part || !is_needed)
		return !part && !is_needed;
	return part->coll == coll && !part->generator;
}

static bool parts_fit(const struct muster_nest *nest)
{
	enum muster_coll coll = nest->across->coll;
	bool sums = coll == MUSTER_COLL_ALLREDUCE || coll == MUSTER_COLL_BARRIER;

	return part_fits(nest->across, sums || coll == MUSTER_COLL_REDUCE || coll == MUSTER_COLL_BROADCAST, coll) &&
	       part_fits(nest->up, sums || coll == MUSTER_COLL_REDUCE, MUSTER_COLL_REDUCE) &&
	       part_fits(nest->down, sums || coll == MUSTER_COLL_BROADCAST, MUSTER_COLL_BROADCAST) &&
	       (!sums || (nest->up->ranks == nest->down->ranks && nest->up->root == nest->down->root));
}

int muster_schedule_nest(const struct muster_nest *nest, struct muster_schedule **schedule, char *why,
			 size_t why_len)
{
	const struct muster_schedule *across = nest->across, *inside = nest->up ? nest->up : nest->down;
	struct muster_builder builder;
	struct copies nodes, leaders;
	int err;

	if (!parts_fit(nest)) {
		snprintf(why, why_len, "a nest is a broadcast, reduce, allreduce or barrier across nodes, with a listed reduce before it and a listed broadcast behind it in each, as it needs them, which have the same ranks and root");
		return -EINVAL;
	}
	nodes = (struct copies){ across->ranks, inside->ranks, 0, 1 };
	leaders = (struct copies){ 1, 0, inside->root, inside->ranks };
	muster_builder_init(&builder, "nested", across->coll, across->ranks * inside->ranks,
			    chunks_of_both(chunks_of_both(across->chunks, nest->up), nest->down),
			    muster_coll_rooted(across->coll) ? across->root * inside->ranks + inside->root : 0);
	add_part(&builder, nest->up, nodes);
	add_part(&builder, across, leaders);
	add_part(&builder, nest->down, nodes);
	err = muster_builder_end(&builder, schedule);
	if (err)
		snprintf(why, why_len, "%u nodes of %u ranks and %u chunks are more than a schedule has", across->ranks,
			 inside->ranks, across->chunks);
	return err;
}
