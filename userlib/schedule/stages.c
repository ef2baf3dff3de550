// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Stages of listed schedules: decided from all transfers of all ranks, so that every
 * rank comes to the same result, and in time linear in them. Of generated ones they
 * are closed forms (part.c).
 */
#include "stages.h"

#include "part.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Counts of a rank in the stage that is being filled, or in one step. */
struct usage {
	uint32_t stage;		/* that the counts are of, plus 1: they need no clearing */
	uint32_t slots;
	uint32_t descs;		/* at most: each transfer takes one, some share */
};

struct planner {
	const struct muster_schedule *schedule;
	struct muster_stages *stages;
	struct usage *usage;		/* by rank */
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
		to->slots += t->from != t->to;
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
			      transfer < planner->schedule->nr_transfers ?
			      planner->schedule->transfers[transfer].step :
			      planner->schedule->steps, MUSTER_STAGES_MAX);
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
		if ((!begin || !planner->schedule->variant.barrier) &&
		    !charge_step(planner, begin, end))
			continue;
		err = begin_stage(planner, begin);
		t = err ? NULL : charge_step(planner, begin, end);
		if (t)
			err = refuse_step(planner, t);
	}
	planner->stages->begin[planner->stages->nr] = planner->schedule->nr_transfers;
	return err;
}

static int cut_generated(struct planner *planner, uint32_t grain)
{
	struct muster_stages *stages = planner->stages;
	struct muster_part part;

	muster_part_begin(&part, planner->schedule, 0, grain, NULL);
	if (part.nr_stages > MUSTER_STAGES_MAX)
		return refuse(planner, "the schedule needs %" PRIu32 " stages, more than %d",
			      part.nr_stages, MUSTER_STAGES_MAX);
	stages->nr = part.nr_stages;
	stages->first_copy = part.nr_stages - 1;	/* at most one chunk, of few messages */
	return 0;
}

/* The only step is one stage, or none. */
static int cut_own(struct planner *planner)
{
	const struct muster_own *own = planner->schedule->own;
	struct muster_stages *stages = planner->stages;

	if (own->most_receives > MUSTER_SLOTS_MAX)
		return refuse(planner, "a rank has %" PRIu64 " neighbours to receive from, more than %d (MUSTER_SLOTS_MAX)",
			      own->most_receives, MUSTER_SLOTS_MAX);
	if (own->most_messages > MUSTER_SEQ_DESCS_MAX)
		return refuse(planner, "a rank has %" PRIu64 " messages with neighbours, more than %d (MUSTER_SEQ_DESCS_MAX)",
			      own->most_messages, MUSTER_SEQ_DESCS_MAX);
	*stages = (struct muster_stages){ .nr = 1 };
	stages->begin[1] = planner->schedule->nr_transfers;
	return 0;
}

int muster_stages_cut(const struct muster_schedule *schedule, uint32_t grain,
		      struct muster_stages *stages, char *why, size_t why_len)
{
	struct planner planner = {
		.schedule = schedule, .stages = stages, .why = why, .why_len = why_len,
	};
	int err = -ENOMEM;

	if (schedule->generator)
		return cut_generated(&planner, grain);
	if (schedule->own)
		return cut_own(&planner);
	planner.usage = calloc(schedule->ranks, sizeof(*planner.usage));
	stages->nr = 0;
	if (planner.usage)
		err = cut(&planner);
	free(planner.usage);
	return err;
}

/* ---- copies behind the last step ------------------------------------------------- */

/* A chunk at the rank that is looked at, as if it were in place. */
struct home {
	uint32_t rank;		/* that the rest is of, plus 1: it needs no clearing */
	uint32_t sent;		/* step in which it was sent last, plus 1 */
	uint32_t came;		/* step in which it came while it was being sent, plus 1 */
	bool away;		/* an odd number of these: its value is not where it began */
};

struct parts {
	const struct muster_schedule *schedule;
	uint32_t *first;	/* ranks + 1 indices into of */
	uint32_t *of;		/* by rank: what it sends or receives, in order */
	struct home *homes;	/* by chunk */
};

static void sort_parts(struct parts *parts)
{
	const struct muster_schedule *schedule = parts->schedule;
	uint32_t *first = parts->first;

	for (uint32_t i = 0; i < schedule->nr_transfers; i++) {
		first[schedule->transfers[i].from + 1]++;
		first[schedule->transfers[i].to + 1]++;
	}
	for (uint32_t r = 0; r < schedule->ranks; r++)
		first[r + 1] += first[r];
	for (uint32_t i = 0; i < schedule->nr_transfers; i++) {
		parts->of[first[schedule->transfers[i].from]++] = i;
		parts->of[first[schedule->transfers[i].to]++] = i;
	}
	memmove(first + 1, first, schedule->ranks * sizeof(*first));
	first[0] = 0;
}

static struct home *home_of(struct parts *parts, uint32_t rank, uint32_t chunk)
{
	struct home *home = &parts->homes[chunk];

	if (home->rank != rank + 1)
		*home = (struct home){ .rank = rank + 1 };
	return home;
}

/* A rank's transfers [begin, end) of one step. */
static void follow_step(struct parts *parts, uint32_t rank, uint32_t begin, uint32_t end)
{
	for (uint32_t i = begin; i < end; i++) {
		const struct muster_transfer *t = &parts->schedule->transfers[parts->of[i]];
		struct home *home = home_of(parts, rank, t->chunk);

		if (t->from == rank)
			home->sent = t->step + 1;
	}
	for (uint32_t i = begin; i < end; i++) {
		const struct muster_transfer *t = &parts->schedule->transfers[parts->of[i]];
		struct home *home = home_of(parts, rank, t->chunk);

		if (t->to != rank || home->sent != t->step + 1 || home->came == t->step + 1)
			continue;
		home->came = t->step + 1;
		home->away = !home->away;
	}
}

/* At most so many chunks a rank copies, whether it is in place or not. */
static uint32_t count_copies(struct parts *parts, uint32_t rank)
{
	const struct muster_schedule *schedule = parts->schedule;
	bool owns = muster_coll_row(schedule->coll)->needs == MUSTER_WHO_OWNER;
	uint32_t begin, end, nr = 0;

	for (begin = parts->first[rank]; begin < parts->first[rank + 1]; begin = end) {
		for (end = begin + 1; end < parts->first[rank + 1] &&
		     schedule->transfers[parts->of[end]].step ==
		     schedule->transfers[parts->of[begin]].step; end++)
			;
		follow_step(parts, rank, begin, end);
	}
	for (uint32_t chunk = 0; chunk < schedule->chunks; chunk++) {
		bool touched = parts->homes[chunk].rank == rank + 1;
		bool needs = muster_coll_needs(schedule, chunk, rank);

		if (touched && !(owns && needs))
			nr += parts->homes[chunk].away;
		else
			nr += needs && (owns || muster_coll_has(schedule, chunk, rank));
	}
	return nr;
}

/* The most copies of any rank, and whether all have room for theirs in the last stage. */
static uint32_t most_copies(struct parts *parts, uint32_t last_begin, bool *fit)
{
	uint32_t most = 0;

	*fit = true;
	for (uint32_t rank = 0; rank < parts->schedule->ranks; rank++) {
		uint32_t nr = count_copies(parts, rank), i = parts->first[rank + 1], descs = 0;

		while (i > parts->first[rank] && parts->of[i - 1] >= last_begin) {
			i--;
			descs++;
		}
		*fit &= nr + descs <= MUSTER_SEQ_DESCS_MAX;
		most = nr > most ? nr : most;
	}
	return most;
}

int muster_stages_copy(const struct muster_schedule *schedule, struct muster_stages *stages,
		       char *why, size_t why_len)
{
	struct parts parts = { .schedule = schedule };
	struct planner planner = {
		.schedule = schedule, .stages = stages, .why = why, .why_len = why_len,
	};
	uint32_t most = 0;
	bool fit = true;
	int err = 0;

	if (schedule->generator || schedule->own)
		return 0;
	parts.first = calloc(schedule->ranks + 1, sizeof(*parts.first));
	parts.of = calloc(2 * (size_t)schedule->nr_transfers + 1, sizeof(*parts.of));
	parts.homes = calloc(schedule->chunks, sizeof(*parts.homes));
	if (!parts.first || !parts.of || !parts.homes)
		err = -ENOMEM;
	if (!err) {
		sort_parts(&parts);
		most = most_copies(&parts, stages->begin[stages->nr - 1], &fit);
	}
	stages->first_copy = fit ? stages->nr - 1 : stages->nr;
	for (uint32_t i = 0; i < most && !fit && !err; i += MUSTER_SEQ_DESCS_MAX)
		err = begin_stage(&planner, schedule->nr_transfers);
	stages->begin[stages->nr] = schedule->nr_transfers;
	free(parts.homes);
	free(parts.of);
	free(parts.first);
	return err;
}
