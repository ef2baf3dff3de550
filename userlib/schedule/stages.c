// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Stages and the order of slots: decided from all transfers of all ranks, so that
 * every rank comes to the same result, and in time linear in the transfers (but
 * for sorting those of a step whose order matters).
 */
#include "stages.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

/* Counts of a rank in the stage that is being filled, or in one step. */
struct usage {
	uint32_t stage;		/* that the counts are of, plus 1: they need no clearing */
	uint32_t slots;
	uint32_t descs;		/* at most: each transfer takes one, some share */
	uint32_t waits;		/* slots that are stored over what the rank sends in the step */
};

struct planner {
	const struct muster_schedule *schedule;
	struct muster_stages *stages;
	struct usage *usage;		/* by rank */
	uint64_t *sent;			/* room for keys of a step */
	char *why;
	size_t why_len;
};

__attribute__((format(printf, 2, 3)))
static int refuse(struct planner *planner, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(planner->why, planner->why_len, format, args);
	va_end(args);
	return -E2BIG;
}

uint32_t muster_step_end(const struct muster_schedule *schedule, uint32_t begin)
{
	uint32_t end = begin;

	while (end < schedule->nr_transfers &&
	       schedule->transfers[end].step == schedule->transfers[begin].step)
		end++;
	return end;
}

/* ---- cutting ------------------------------------------------------------------- */

static struct usage *usage_of(struct planner *planner, uint32_t rank)
{
	struct usage *usage = &planner->usage[rank];

	if (usage->stage != planner->stages->nr)
		*usage = (struct usage){ .stage = planner->stages->nr };
	return usage;
}

static bool is_exceeded(const struct usage *usage)
{
	return usage->slots > MUSTER_SLOTS_MAX || usage->descs > MUSTER_SEQ_DESCS_MAX;
}

/* Put a step into the current stage: NULL, or the transfer for which there is no room. */
static const struct muster_transfer *charge_step(struct planner *planner, uint32_t begin,
						 uint32_t end)
{
	for (uint32_t i = begin; i < end; i++) {
		const struct muster_transfer *t = &planner->schedule->transfers[i];
		struct usage *from = usage_of(planner, t->from), *to = usage_of(planner, t->to);

		from->descs++;
		to->descs++;
		to->slots++;
		if (is_exceeded(from) || is_exceeded(to))
			return t;
	}
	return NULL;
}

static int refuse_step(struct planner *planner, const struct muster_transfer *t)
{
	if (usage_of(planner, t->to)->slots > MUSTER_SLOTS_MAX)
		return refuse(planner, "step %" PRIu32 ": rank %" PRIu32 " receives more than %d "
			      "messages (MUSTER_SLOTS_MAX); split the step", t->step, t->to,
			      MUSTER_SLOTS_MAX);
	return refuse(planner, "step %" PRIu32 ": rank %" PRIu32 " sends and receives more than %d "
		      "messages (MUSTER_SEQ_DESCS_MAX); split the step", t->step,
		      is_exceeded(usage_of(planner, t->from)) ? t->from : t->to,
		      MUSTER_SEQ_DESCS_MAX);
}

static int begin_stage(struct planner *planner, uint32_t transfer)
{
	struct muster_stages *stages = planner->stages;

	if (stages->nr == MUSTER_STAGES_MAX)
		return refuse(planner, "step %" PRIu32 ": the schedule needs more than %d stages",
			      planner->schedule->transfers[transfer].step, MUSTER_STAGES_MAX);
	stages->begin[stages->nr++] = transfer;
	return 0;
}

static int cut(struct planner *planner)
{
	uint32_t begin, end;
	int err = begin_stage(planner, 0);

	for (begin = 0; begin < planner->schedule->nr_transfers && !err; begin = end) {
		const struct muster_transfer *t;

		end = muster_step_end(planner->schedule, begin);
		if (!charge_step(planner, begin, end))
			continue;
		err = begin_stage(planner, begin);
		t = err ? NULL : charge_step(planner, begin, end);
		if (t)
			err = refuse_step(planner, t);
	}
	planner->stages->begin[planner->stages->nr] = planner->schedule->nr_transfers;
	return err;
}

int muster_stages_cut(const struct muster_schedule *schedule, struct muster_stages *stages,
		      char *why, size_t why_len)
{
	struct planner planner = {
		.schedule = schedule, .stages = stages, .why = why, .why_len = why_len,
		.usage = calloc(schedule->ranks, sizeof(*planner.usage)),
	};
	int err = -ENOMEM;

	stages->nr = 0;
	stages->comes_last = calloc(schedule->nr_transfers + 1, sizeof(*stages->comes_last));
	if (planner.usage && stages->comes_last)
		err = cut(&planner);
	free(planner.usage);
	if (err)
		muster_stages_free(stages);
	return err;
}

void muster_stages_free(struct muster_stages *stages)
{
	free(stages->comes_last);
	stages->comes_last = NULL;
}

/* ---- the step rule ------------------------------------------------------------- */

static uint64_t key_of(uint32_t rank, uint32_t chunk)
{
	return (uint64_t)rank << 32 | chunk;
}

static int compare_keys(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* What those ranks send that receive several messages in this step: sorted keys. */
static uint32_t list_sent(struct planner *planner, uint32_t begin, uint32_t end)
{
	const struct muster_transfer *transfers = planner->schedule->transfers;
	uint32_t nr = 0;

	for (uint32_t i = begin; i < end; i++)
		planner->usage[transfers[i].to].slots++;
	for (uint32_t i = begin; i < end; i++)
		if (planner->usage[transfers[i].from].slots > 1)
			planner->sent[nr++] = key_of(transfers[i].from, transfers[i].chunk);
	qsort(planner->sent, nr, sizeof(*planner->sent), compare_keys);
	return nr;
}

static int refuse_waits(struct planner *planner, const struct muster_transfer *t)
{
	return refuse(planner, "step %" PRIu32 ": rank %" PRIu32 " receives more than one message "
		      "into what it sends in the same step: ranks that do so can wait for each "
		      "other; split the step", t->step, t->to);
}

/*
 * A store over a chunk that its rank sends in the same step waits until that send
 * is taken. A rank may have one such slot in a step, and it must come last, or two
 * ranks could wait for each other. All ranks are judged as if they were in place.
 */
static int order_step(struct planner *planner, uint32_t begin, uint32_t end)
{
	const struct muster_transfer *transfers = planner->schedule->transfers;
	uint32_t nr_sent = list_sent(planner, begin, end);

	for (uint32_t i = begin; i < end && nr_sent; i++) {
		const struct muster_transfer *t = &transfers[i];
		uint64_t key = key_of(t->to, t->chunk);

		if (!bsearch(&key, planner->sent, nr_sent, sizeof(key), compare_keys))
			continue;
		if (planner->usage[t->to].waits++)
			return refuse_waits(planner, t);
		planner->stages->comes_last[i] = true;
	}
	for (uint32_t i = begin; i < end; i++)
		planner->usage[transfers[i].to] = (struct usage){ 0 };
	return 0;
}

int muster_stages_order(const struct muster_schedule *schedule, struct muster_stages *stages,
			char *why, size_t why_len)
{
	struct planner planner = {
		.schedule = schedule, .stages = stages, .why = why, .why_len = why_len,
		.usage = calloc(schedule->ranks, sizeof(*planner.usage)),
		.sent = calloc(schedule->nr_transfers + 1, sizeof(*planner.sent)),
	};
	uint32_t begin, end;
	int err = planner.usage && planner.sent ? 0 : -ENOMEM;

	for (begin = 0; begin < schedule->nr_transfers && !err; begin = end) {
		end = muster_step_end(schedule, begin);
		err = order_step(&planner, begin, end);
	}
	free(planner.sent);
	free(planner.usage);
	return err;
}
