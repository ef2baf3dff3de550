// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A plan: one rank's part of a schedule, made once and then run many times by
 * the host path. Steps in which the rank has nothing to do are left out; those
 * of others are met through the messages alone.
 */
#include <errno.h>
#include <stdlib.h>

#include "host_plan.h"

static bool is_mine(const struct muster_transfer *transfer, uint32_t rank)
{
	return transfer->from == rank || transfer->to == rank;
}

/* Where the step ends to which transfer t belongs. */
static uint32_t step_end(const struct muster_schedule *schedule, uint32_t t)
{
	uint32_t end = t;

	while (end < schedule->nr_transfers &&
	       schedule->transfers[end].step == schedule->transfers[t].step)
		end++;
	return end;
}

static void count(const struct muster_schedule *schedule, uint32_t rank, uint32_t *nr_steps,
		  uint32_t *nr_moves)
{
	uint32_t last_step = UINT32_MAX;

	for (uint32_t t = 0; t < schedule->nr_transfers; t++) {
		const struct muster_transfer *transfer = &schedule->transfers[t];

		if (!is_mine(transfer, rank))
			continue;
		*nr_moves += 1;
		*nr_steps += transfer->step != last_step;
		last_step = transfer->step;
	}
}

static void sends_add(struct muster_plan *plan, struct muster_plan_step *step,
		      const struct muster_transfer *from, const struct muster_transfer *end,
		      uint32_t rank)
{
	for (; from < end; from++)
		if (from->from == rank)
			step->sends[step->nr_sends++] = (struct muster_move){
				.peer = from->to,
				.chunk = from->chunk,
				.fresh = !plan->touched[from->chunk],
			};
}

/* Is the chunk being sent while something comes into it? */
static void clashes_find(const struct muster_plan_step *step, struct muster_move *receive)
{
	for (uint32_t i = 0; i < step->nr_sends; i++) {
		if (step->sends[i].chunk != receive->chunk)
			continue;
		if (step->sends[i].fresh)
			receive->clashes_in = true;
		else
			receive->clashes_out = true;
	}
}

static void receives_add(struct muster_plan *plan, struct muster_plan_step *step,
			 const struct muster_transfer *from, const struct muster_transfer *end,
			 uint32_t rank)
{
	step->receives = step->sends + step->nr_sends;
	for (; from < end; from++) {
		struct muster_move *move = &step->receives[step->nr_receives];

		if (from->to != rank)
			continue;
		*move = (struct muster_move){
			.peer = from->from,
			.chunk = from->chunk,
			.reduce = from->reduce,
			.fresh = !plan->touched[from->chunk],
		};
		clashes_find(step, move);
		plan->touched[from->chunk] = true;
		step->nr_receives++;
	}
	if (step->nr_receives > plan->receives_max)
		plan->receives_max = step->nr_receives;
}

static void fill(struct muster_plan *plan, const struct muster_schedule *schedule, uint32_t rank)
{
	struct muster_move *moves = plan->moves;
	uint32_t end;

	for (uint32_t t = 0; t < schedule->nr_transfers; t = end) {
		struct muster_plan_step *step = &plan->steps[plan->nr_steps];

		end = step_end(schedule, t);
		step->sends = moves;
		sends_add(plan, step, &schedule->transfers[t], &schedule->transfers[end], rank);
		receives_add(plan, step, &schedule->transfers[t], &schedule->transfers[end], rank);
		moves += step->nr_sends + step->nr_receives;
		plan->nr_steps += moves != step->sends;
	}
}

int muster_plan_create(const struct muster_schedule *schedule, uint32_t rank,
		       struct muster_plan **result)
{
	struct muster_plan *plan = calloc(1, sizeof(*plan));
	uint32_t nr_steps = 1, nr_moves = 0;	/* one spare: filled, then found empty */

	if (!plan)
		return -ENOMEM;
	count(schedule, rank, &nr_steps, &nr_moves);
	plan->steps = calloc(nr_steps, sizeof(*plan->steps));
	plan->moves = calloc(nr_moves + 1, sizeof(*plan->moves));
	plan->touched = calloc(schedule->chunks, sizeof(*plan->touched));
	if (!plan->steps || !plan->moves || !plan->touched) {
		muster_plan_free(plan);
		return -ENOMEM;
	}
	fill(plan, schedule, rank);
	*result = plan;
	return 0;
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
