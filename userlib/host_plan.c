// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A plan: one rank's part of a schedule, made once and then run many times by
 * the host path. Steps in which the rank has nothing to do are left out; those
 * of others are met through the messages alone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host_plan.h"
#include "part.h"

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

/* The next message; those of a step come one after the other, sends first. */
static void move_add(struct muster_plan *plan, const struct muster_message *message,
		     struct muster_move *move)
{
	struct muster_plan_step *step = &plan->steps[plan->nr_steps - 1];

	*move = (struct muster_move){
		.peer = message->peer, .first = message->first, .nr = message->nr,
		.reduce = !message->is_send && message->reduce,
		.fresh = !plan->touched[message->first],
	};
	if (message->is_send) {
		step->nr_sends++;
		return;
	}
	if (!step->nr_receives++)
		step->receives = move;
	clashes_find(step, move);
	memset(&plan->touched[move->first], true, move->nr);
	if (step->nr_receives > plan->receives_max)
		plan->receives_max = step->nr_receives;
}

static void count(struct muster_part *part, uint32_t *nr_steps, uint32_t *nr_moves)
{
	uint32_t last_step = UINT32_MAX;
	struct muster_message message;

	while (muster_part_next(part, &message)) {
		*nr_moves += 1;
		*nr_steps += message.step != last_step;
		last_step = message.step;
	}
	muster_part_end(part);
}

static void fill(struct muster_plan *plan, struct muster_part *part)
{
	struct muster_move *move = plan->moves;
	uint32_t last_step = UINT32_MAX;
	struct muster_message message;

	for (; muster_part_next(part, &message); move++) {
		if (message.step != last_step)
			plan->steps[plan->nr_steps++] =
				(struct muster_plan_step){ .sends = move, .receives = move };
		last_step = message.step;
		move_add(plan, &message, move);
	}
	muster_part_end(part);
}

int muster_plan_create(const struct muster_schedule *schedule, uint32_t rank,
		       struct muster_plan **result)
{
	struct muster_plan *plan = calloc(1, sizeof(*plan));
	uint32_t nr_steps = 0, nr_moves = 0;
	struct muster_part part;

	if (!plan)
		return -ENOMEM;
	if (muster_part_begin(&part, schedule, rank, UINT32_MAX, NULL))
		goto err_free_plan;
	count(&part, &nr_steps, &nr_moves);
	plan->steps = calloc(nr_steps + 1, sizeof(*plan->steps));
	plan->moves = calloc(nr_moves + 1, sizeof(*plan->moves));
	plan->touched = calloc(schedule->chunks, sizeof(*plan->touched));
	if (!plan->steps || !plan->moves || !plan->touched ||
	    muster_part_begin(&part, schedule, rank, UINT32_MAX, NULL))
		goto err_free_plan;
	fill(plan, &part);
	*result = plan;
	return 0;

err_free_plan:
	muster_plan_free(plan);
	return -ENOMEM;
}

void muster_plan_free(struct muster_plan *plan)
{
	if (!plan)
		return;
	free(plan->touched);
	free(plan->moves);
	free(plan->steps);
	free(plan);
}
