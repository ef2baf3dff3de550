// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a communicator has from its first operation on: programs and plans that were made, memory
 * for small results, which operations there were, and in the device programs that are kept. One that
 * has run nothing for a while gives that back for others, and has it made again when it is called. Of
 * its operations it remembers the last few even then, so that a member who called something else
 * is told so.
 *
 * So only some communicators are warm, the rest costs what comm.c makes. One hand goes around
 * those that are: who has run nothing since it came by last is cooled.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

enum {
	LOOKS = 8,		/* of the hand at once, */
	RUNS_MAX = 8,		/* and what is remembered of one that is cool: so many different calls */
};

/* The last operations, newest first: the same so many times. */
struct muster_runs {
	uint32_t nr;
	struct run {
		struct muster_past past;
		uint32_t times;
	} runs[];
};

/* ---- the ring ------------------------------------------------------------------------ */

/* Before the hand: the last to be looked at. */
static void link_in(struct muster *job, struct muster_warm *warm)
{
	struct muster_warm *next = job->warm ? job->warm : warm;

	if (!job->warm)
		next->prev = job->warm = warm;
	warm->next = next;
	warm->prev = next->prev;
	warm->prev->next = warm;
	next->prev = warm;
	job->nr_warm++;
}

static void take_out(struct muster *job, struct muster_warm *warm)
{
	if (job->warm == warm)
		job->warm = warm->next == warm ? NULL : warm->next;
	warm->next->prev = warm->prev;
	warm->prev->next = warm->next;
	job->nr_warm--;
}

/* ---- what is remembered --------------------------------------------------------------- */

static bool same(const struct muster_past *a, const struct muster_past *b)
{
	return a->host == b->host && a->unknown == b->unknown &&
	       !memcmp(&a->signature, &b->signature, sizeof(a->signature));
}

/* Return: how many, as far as there is room; what is older is forgotten. */
static uint32_t runs_find(const struct muster_comm *comm, struct run runs[RUNS_MAX])
{
	uint32_t known = comm->number < MUSTER_HISTORY ? comm->number : MUSTER_HISTORY, nr = 0;

	for (uint32_t back = 1; back <= known; back++) {
		const struct muster_past *past =
			&comm->warm->history[(comm->number - back) % MUSTER_HISTORY];

		if (nr && same(past, &runs[nr - 1].past)) {
			runs[nr - 1].times++;
			continue;
		}
		if (nr == RUNS_MAX)
			break;
		runs[nr++] = (struct run){ *past, 1 };
	}
	return nr;
}

static struct muster_runs *runs_of(const struct muster_comm *comm)
{
	struct run found[RUNS_MAX];
	uint32_t nr = runs_find(comm, found);
	struct muster_runs *runs = malloc(sizeof(*runs) + nr * sizeof(*found));

	if (!runs)
		return NULL;
	runs->nr = nr;
	memcpy(runs->runs, found, nr * sizeof(*found));
	return runs;
}

static const struct muster_past *runs_at(const struct muster_runs *runs, uint32_t behind)
{
	uint32_t i = 0;

	while (i < runs->nr && behind > runs->runs[i].times)
		behind -= runs->runs[i++].times;
	return i < runs->nr ? &runs->runs[i].past : NULL;
}

const struct muster_past *muster_comm_past(const struct muster_comm *comm, uint32_t number)
{
	uint32_t behind = comm->number - number;
	const struct muster_past *past;

	if (!behind || behind > MUSTER_HISTORY)
		return NULL;
	past = comm->warm ? &comm->warm->history[number % MUSTER_HISTORY] :
	       comm->runs ? runs_at(comm->runs, behind) : NULL;
	return past && !past->unknown ? past : NULL;
}

static void history_fill(const struct muster_comm *comm, struct muster_past *history)
{
	static const struct muster_past unknown = { .unknown = true };
	const struct muster_past *past;

	for (uint32_t behind = 1; behind <= MUSTER_HISTORY && comm->runs; behind++) {
		past = runs_at(comm->runs, behind);
		history[(comm->number - behind) % MUSTER_HISTORY] = past ? *past : unknown;
	}
}

/* ---- warm and cool ---------------------------------------------------------------------- */

static bool may_cool(const struct muster_comm *comm)
{
	return !comm->first && !comm->persistent && !comm->trees;
}

static void cool(struct muster_comm *comm)
{
	struct muster_runs *runs = runs_of(comm);

	if (!runs)
		return;
	muster_cache_clear(comm);
	if (muster_kept_give_back(comm)) {
		free(runs);
		return;
	}
	muster_host_close(comm);
	muster_comm_forget(comm);
	comm->runs = runs;
}

void muster_warm_review(struct muster *job, uint32_t most)
{
	for (int i = 0; i < LOOKS && job->nr_warm > most; i++) {
		struct muster_warm *warm = job->warm;
		bool rested = warm->number == warm->comm->number;

		job->warm = warm->next;
		warm->number = warm->comm->number;
		if (rested && may_cool(warm->comm))
			cool(warm->comm);
	}
}

int muster_comm_remember(struct muster_comm *comm)
{
	struct muster_warm *warm;

	muster_warm_review(comm->job, comm->job->warm_max - 1);
	warm = calloc(1, sizeof(*warm));
	if (!warm)
		return muster_fail(comm->job, -ENOMEM, "no memory for the communicator's operations");
	history_fill(comm, warm->history);
	free(comm->runs);
	comm->runs = NULL;
	warm->comm = comm;
	warm->number = comm->number;
	link_in(comm->job, warm);
	comm->warm = warm;
	return 0;
}

void muster_comm_forget(struct muster_comm *comm)
{
	free(comm->runs);
	comm->runs = NULL;
	if (!comm->warm)
		return;
	muster_kept_close(comm);
	muster_comm_scratch_free(comm);
	muster_bounce_give(comm->job, comm->warm->bounce);
	take_out(comm->job, comm->warm);
	free(comm->warm);
	comm->warm = NULL;
}
