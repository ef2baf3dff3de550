// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A schedule that combines in a given order, as that of a reduction tree in a network's switches. What
 * a rank takes it takes in that order, as much of it in one step as there are slots; else a step begins
 * as soon as what is given in it is there. In a reduce-scatter each block goes that way, one after the other.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"

/* By rank: what it has done so far. */
struct giver {
	bool has_given;
	uint32_t ready;		/* the step behind all in which it takes */
	uint32_t taken;		/* in the last of these */
};

struct ordering {
	uint32_t ranks;
	const struct muster_give *gives;
	struct giver *givers;
	uint32_t *steps;	/* by give */
	uint32_t nr_steps;
};

static bool may_give(const struct ordering *ordering, const struct muster_give *give)
{
	return give->from < ordering->ranks && give->to < ordering->ranks && give->from != give->to &&
	       !ordering->givers[give->from].has_given && !ordering->givers[give->to].has_given;
}

/* Not before what is given is there, nor before what is taken before it. */
static uint32_t step_of(const struct giver *from, const struct giver *to)
{
	uint32_t step = from->ready, last = to->ready - 1;

	if (!to->ready || step > last)
		return step;
	return last + (to->taken == MUSTER_SLOTS_MAX);
}

static bool steps_find(struct ordering *ordering)
{
	for (uint32_t i = 0; i + 1 < ordering->ranks; i++) {
		const struct muster_give *give = &ordering->gives[i];
		struct giver *to;
		uint32_t step;

		if (!may_give(ordering, give))
			return false;
		to = &ordering->givers[give->to];
		step = step_of(&ordering->givers[give->from], to);
		to->taken = step + 1 == to->ready ? to->taken + 1 : 1;
		to->ready = step + 1;
		ordering->givers[give->from].has_given = true;
		ordering->steps[i] = step;
		if (to->ready > ordering->nr_steps)
			ordering->nr_steps = to->ready;
	}
	return true;
}

static void add_step(struct muster_builder *builder, const struct ordering *ordering, uint32_t chunk,
		     uint32_t step, bool up)
{
	for (uint32_t i = 0; i + 1 < ordering->ranks; i++) {
		const struct muster_give *give = &ordering->gives[i];

		if (ordering->steps[i] == step)
			muster_builder_add(builder, chunk, up ? give->from : give->to,
					   up ? give->to : give->from, up);
	}
	muster_builder_step(builder);
}

/* Who is to have what the last one has come to. */
static uint32_t owner_of(enum muster_coll coll, uint32_t chunk, uint32_t root, uint32_t last)
{
	switch (coll) {
	case MUSTER_COLL_REDUCE:
		return root;
	case MUSTER_COLL_REDUCE_SCATTER:
		return chunk;
	default:
		return last;
	}
}

static int build(const struct ordering *ordering, const char *name, enum muster_coll coll, uint32_t root,
		 struct muster_schedule **schedule)
{
	uint32_t last = ordering->ranks > 1 ? ordering->gives[ordering->ranks - 2].to : 0;
	uint32_t chunks = coll == MUSTER_COLL_REDUCE_SCATTER ? ordering->ranks : 1;
	struct muster_builder builder;

	muster_builder_init(&builder, name, coll, ordering->ranks, chunks, root);
	for (uint32_t chunk = 0; chunk < chunks; chunk++) {
		uint32_t owner = owner_of(coll, chunk, root, last);

		for (uint32_t step = 0; step < ordering->nr_steps; step++)
			add_step(&builder, ordering, chunk, step, true);
		if (owner != last)	/* in the next block's first step */
			muster_builder_add(&builder, chunk, last, owner, false);
	}
	for (uint32_t step = ordering->nr_steps; coll == MUSTER_COLL_ALLREDUCE && step--;)
		add_step(&builder, ordering, 0, step, false);
	return muster_builder_end(&builder, schedule);
}

static bool combines(enum muster_coll coll)
{
	return coll == MUSTER_COLL_REDUCE || coll == MUSTER_COLL_ALLREDUCE || coll == MUSTER_COLL_REDUCE_SCATTER;
}

int muster_schedule_order(const char *name, enum muster_coll coll, uint32_t ranks, uint32_t root,
			  const struct muster_give *gives, struct muster_schedule **schedule, char *why,
			  size_t why_len)
{
	struct ordering ordering = {
		.ranks = ranks, .gives = gives,
		.givers = calloc(ranks, sizeof(*ordering.givers)),
		.steps = calloc(ranks, sizeof(*ordering.steps)),
	};
	int err = ordering.givers && ordering.steps ? 0 : -ENOMEM;

	if (!err && (!combines(coll) || !steps_find(&ordering)))
		err = -EINVAL;
	if (!err)
		err = build(&ordering, name, coll, root, schedule);
	if (err == -EINVAL)
		snprintf(why, why_len, "%s is no order of combination of %s among %u ranks", name,
			 muster_coll_name(coll), ranks);
	else if (err)
		snprintf(why, why_len, "%s", strerror(-err));
	free(ordering.steps);
	free(ordering.givers);
	return err;
}
