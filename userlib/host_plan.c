// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A plan: one rank's part of a schedule, walked by the host path in each operation.
 * Steps in which the rank has nothing to do are left out; those of others are met
 * through the messages alone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host_plan.h"

bool muster_moves_meet(const struct muster_move *a, const struct muster_move *b)
{
	return a->first < b->first + b->nr && b->first < a->first + a->nr;
}

/* Is any of it being sent while something comes into it? */
static void clashes_find(const struct muster_plan_step *step, struct muster_move *receive)
{
	for (uint32_t i = 0; i < step->nr_sends; i++) {
		if (!muster_moves_meet(&step->sends[i], receive))
			continue;
		if (step->sends[i].fresh)
			receive->clashes_in = true;
		else
			receive->clashes_out = true;
	}
}

/* All messages of a step: sends come first. */
static void moves_take(struct muster_plan *plan)
{
	struct muster_message *message = &plan->message;
	uint32_t step = message->step, nr = 0;

	for (; plan->has_message && message->step == step; nr++) {
		plan->moves[nr] = (struct muster_move){
			.peer = message->peer, .first = message->first, .nr = message->nr,
			.reduce = !message->is_send && message->reduce,
		};
		plan->step.nr_sends += message->is_send;
		plan->step.nr_receives += !message->is_send;
		plan->has_message = muster_part_next(&plan->part, message);
	}
	plan->step.sends = plan->moves;
	plan->step.receives = plan->moves + plan->step.nr_sends;
}

static bool is_fresh(struct muster_plan *plan, const struct muster_move *move)
{
	bool fresh = !plan->touched[move->first];

	for (uint32_t i = move->first; i < move->first + move->nr; i++)
		plan->mixes |= plan->touched[i] == fresh;
	return fresh;
}

bool muster_plan_next(struct muster_plan *plan)
{
	struct muster_plan_step *step = &plan->step;

	*step = (struct muster_plan_step){ 0 };
	if (!plan->has_message)
		return false;
	moves_take(plan);
	for (uint32_t i = 0; i < step->nr_sends; i++)
		step->sends[i].fresh = is_fresh(plan, &step->sends[i]);
	for (uint32_t i = 0; i < step->nr_receives; i++) {
		struct muster_move *move = &step->receives[i];

		move->fresh = is_fresh(plan, move);
		clashes_find(step, move);
		memset(&plan->touched[move->first], true, move->nr);
	}
	return true;
}

static void walk_begin(struct muster_plan *plan)
{
	/* Without stages, so it cannot fail. */
	muster_part_begin(&plan->part, plan->schedule, plan->rank, UINT32_MAX, NULL);
	plan->has_message = muster_part_next(&plan->part, &plan->message);
}

void muster_plan_rewind(struct muster_plan *plan)
{
	memset(plan->touched, 0, plan->schedule->chunks * sizeof(*plan->touched));
	walk_begin(plan);
}

/* The most messages of one step. */
static uint32_t moves_count(struct muster_plan *plan)
{
	uint32_t step = UINT32_MAX, nr = 0, max = 0;

	walk_begin(plan);
	while (plan->has_message) {
		nr = plan->message.step == step ? nr + 1 : 1;
		max = nr > max ? nr : max;
		step = plan->message.step;
		plan->has_message = muster_part_next(&plan->part, &plan->message);
	}
	return max;
}

int muster_plan_create(const struct muster_schedule *schedule, uint32_t rank,
		       struct muster_plan **result)
{
	struct muster_plan *plan = calloc(1, sizeof(*plan));

	if (!plan)
		return -ENOMEM;
	plan->schedule = schedule;
	plan->rank = rank;
	plan->moves_max = moves_count(plan);
	plan->moves = calloc(plan->moves_max + 1, sizeof(*plan->moves));
	plan->touched = calloc(schedule->chunks, sizeof(*plan->touched));
	if (!plan->moves || !plan->touched) {
		muster_plan_free(plan);
		return -ENOMEM;
	}
	muster_plan_rewind(plan);
	while (muster_plan_next(plan))	/* for mixes */
		;
	*result = plan;
	return 0;
}

void muster_plan_free(struct muster_plan *plan)
{
	if (!plan)
		return;
	free(plan->touched);
	free(plan->moves);
	free(plan);
}
