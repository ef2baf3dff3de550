// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The walk over who waits for whom (explain.h). A node is a rank in an operation, or in the
 * making of a communicator; an edge leads to a rank that it waits for. What that rank does
 * says where to go on: to the operation that it is in, or to the end, the culprit. The
 * sentence is made of the steps that led there.
 */
#include "explain.h"
#include "explain_words.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "muster.h"

enum {
	NOTHING = -1,		/* no finding: it goes on, or nothing is known */
	UNSEEN = 0,		/* of a node */
	OPEN = 1,		/* being walked */
	DONE = 2,		/* and the finding, from NOTHING on, plus this plus 1 */
	STILL_US = 200000,	/* some 20 times as long as a wait sleeps */
};

struct walk {
	const struct look_job *job;
	const struct look_job *before;
	struct findings *findings;
	int **seen;		/* by rank, and place of the communicator; the last: makes one */
	struct hop *hops;
	uint32_t nr_hops, max_hops;
	bool no_memory;
};

const char *explain_cause_name(enum explain_cause cause)
{
	static const char *const names[EXPLAIN_CAUSES] = {
		"stopped", "gone", "not-called", "calls-others", "unattended", "leaving",
		"queue-full", "link", "circle", "bump",
	};

	return names[cause];
}

/* ---- findings ---------------------------------------------------------------------------- */

static bool is_same(const struct finding *finding, enum explain_cause cause,
		    const uint32_t *culprits, uint32_t nr)
{
	return finding->cause == cause && finding->nr_culprits == nr &&
	       (!nr || !memcmp(finding->culprits, culprits, nr * sizeof(*culprits)));
}

/* The steps led here; the format is the end of the sentence. Return: its index. */
static int found(struct walk *walk, enum explain_cause cause, const uint32_t *culprits, uint32_t nr,
		 const char *format, ...) __attribute__((format(printf, 5, 6)));
static int found(struct walk *walk, enum explain_cause cause, const uint32_t *culprits, uint32_t nr,
		 const char *format, ...)
{
	struct findings *findings = walk->findings;
	struct finding *more;
	va_list args;
	size_t len;

	for (uint32_t i = 0; i < findings->nr; i++)
		if (is_same(&findings->all[i], cause, culprits, nr))
			return (int)i;
	more = realloc(findings->all, (findings->nr + 1) * sizeof(*more));
	if (!more) {
		walk->no_memory = true;
		return NOTHING;
	}
	findings->all = more;
	more += findings->nr;
	*more = (struct finding){ .cause = cause, .nr_culprits = nr };
	if (nr)
		memcpy(more->culprits, culprits, nr * sizeof(*culprits));
	len = explain_say_hops(more->words, walk->hops, walk->nr_hops);
	va_start(args, format);
	vsnprintf(more->words + len, EXPLAIN_WORDS_MAX - len, format, args);
	va_end(args);
	return (int)findings->nr++;
}

#define found_one(walk, cause, culprit, ...) \
	found(walk, cause, &(uint32_t){ culprit }, 1, __VA_ARGS__)

/* ---- what a rank does ---------------------------------------------------------------------- */

static const struct look *look_of(const struct look_job *job, uint32_t rank)
{
	return job && rank < job->size ? job->ranks[rank] : NULL;
}

static bool is_unfinished(const struct muster_look_comm *comm)
{
	return comm->used && comm->started != comm->ended && !comm->failed;
}

/* What it waits for is known, and is of the operation that it is in. */
static bool is_told(const struct muster_look_comm *comm)
{
	return is_unfinished(comm) && comm->since_us && comm->told == comm->ended;
}

/* Nothing has moved between the two readings. */
static bool stands(const struct walk *walk, uint32_t rank, const struct muster_look_comm *comm)
{
	const struct look *before = look_of(walk->before, rank);
	const struct muster_look_comm *then = before ? look_comm(before, comm) : NULL;

	return then && then->started == comm->started && then->ended == comm->ended &&
	       then->told == comm->told && then->since_us == comm->since_us &&
	       !memcmp(&then->waits, &comm->waits, sizeof(then->waits));
}

/* The same of the making of a communicator. */
static bool stands_making(const struct walk *walk, uint32_t rank)
{
	const struct look *now = look_of(walk->job, rank), *before = look_of(walk->before, rank);

	return before && before->page->place == MUSTER_LOOK_MAKES &&
	       before->page->place_us == now->page->place_us;
}

static bool has_called_something(const struct walk *walk, uint32_t rank)
{
	const struct look *now = look_of(walk->job, rank), *before = look_of(walk->before, rank);

	if (!before)
		return false;
	for (uint32_t i = 0; i < now->page->nr_comms; i++) {
		const struct muster_look_comm *comm = &now->page->comms[i];
		const struct muster_look_comm *then = look_comm(before, comm);

		if (comm->used && (!then || then->started != comm->started))
			return true;
	}
	return false;
}

/* Is it in the library, or comes there now and then to see whether something has ended? */
static bool attends(const struct walk *walk, uint32_t rank)
{
	const struct look *now = look_of(walk->job, rank), *before = look_of(walk->before, rank);

	return now->page->place != MUSTER_LOOK_OUTSIDE ||
	       (before && now->page->seen_us != before->page->seen_us);
}

/* A thread of the library's own goes on with it, wherever its owner is. */
static bool is_carried(const struct walk *walk, uint32_t rank, const struct muster_look_comm *comm)
{
	const struct look *before = look_of(walk->before, rank);
	const struct muster_look_comm *then = before ? look_comm(before, comm) : NULL;

	return then && then->told_us != comm->told_us;
}

/*
 * A process of a guest that says that it is in the library, where it would be seen to look
 * around, while its guest goes on: what it said of its waits is old.
 */
static bool is_still(const struct walk *walk, uint32_t rank)
{
	const struct look *now = look_of(walk->job, rank), *before = look_of(walk->before, rank);

	return now->page->copied_us && before && now->page->place == MUSTER_LOOK_WAITS &&
	       before->page->place == MUSTER_LOOK_WAITS &&
	       now->page->seen_us == before->page->seen_us &&
	       now->page->copied_us - before->page->copied_us >= STILL_US;
}

/* The copy of a guest's page is as old as before: its QEMU got no processor meanwhile. */
static bool is_old(const struct walk *walk, uint32_t rank)
{
	const struct look *now = look_of(walk->job, rank), *before = look_of(walk->before, rank);

	return now->page->copied_us &&
	       (!before || before->page->copied_us == now->page->copied_us);
}

/* The NIC goes on with it while its owner is elsewhere, whose word is old then. */
static bool is_with_nic(const struct muster_look_comm *comm)
{
	return comm->path == MUSTER_PATH_NIC && comm->device.nr;
}

static int *seen_of(const struct walk *walk, uint32_t rank, const struct muster_look_comm *comm)
{
	const struct muster_look *page = walk->job->ranks[rank]->page;

	return &walk->seen[rank][comm ? (uint32_t)(comm - page->comms) : page->nr_comms];
}

/* ---- circles ---------------------------------------------------------------------------------- */

static uint32_t nr_in(const struct walk *walk, const struct muster_look_comm *comm)
{
	uint32_t nr = 0;

	for (uint32_t rank = 0; rank < walk->job->size; rank++) {
		const struct look *look = look_of(walk->job, rank);
		const struct muster_look_comm *own = look && comm ? look_comm(look, comm) : NULL;

		nr += own && is_unfinished(own) && look->page->place == MUSTER_LOOK_WAITS &&
		      look->page->context == own->context;
	}
	return nr;
}

static bool is_one_operation(const struct walk *walk, uint32_t first)
{
	for (uint32_t i = first; i < walk->nr_hops; i++)
		if (!explain_is_same_operation(&walk->hops[first], &walk->hops[i]))
			return false;
	return true;
}

/* Ranks have called operations in different orders: those with whom the fewest are. */
static int disorder(struct walk *walk, uint32_t first)
{
	uint32_t culprits[EXPLAIN_CULPRITS_MAX], nr = 0, fewest = UINT32_MAX, most = 0;

	for (uint32_t i = first; i < walk->nr_hops; i++) {
		uint32_t in = nr_in(walk, walk->hops[i].comm);

		fewest = in < fewest ? in : fewest;
		most = in > most ? in : most;
	}
	for (uint32_t i = first; i < walk->nr_hops && nr < EXPLAIN_CULPRITS_MAX; i++)
		if (nr_in(walk, walk->hops[i].comm) == fewest)
			culprits[nr++] = walk->hops[i].rank;
	if (fewest < most)
		return found(walk, EXPLAIN_CIRCLE, culprits, nr,
			     ": they wait for each other, as rank %u has called operations in another order than most",
			     culprits[0]);
	return found(walk, EXPLAIN_CIRCLE, culprits, nr,
		     ": they wait for each other, as they have called operations in different orders");
}

static const struct muster_look_silence *silence_of(const struct look *look, uint32_t node)
{
	const struct muster_look *page = look->page;

	for (uint32_t i = 0; i < page->nr_silent && i < MUSTER_LOOK_SILENT_MAX; i++)
		if (page->silent[i].node == node)
			return &page->silent[i];
	return NULL;
}

/* What `from` sends to `to` is not acknowledged; nothing of it was between the two readings. */
static bool is_silent(const struct walk *walk, uint32_t from, uint32_t to)
{
	const struct look *look = look_of(walk->job, from), *before = look_of(walk->before, from);
	const struct muster_look_silence *now, *then;
	uint32_t node;

	if (!look || !before || !look_of(walk->job, to))
		return false;
	node = look_of(walk->job, to)->page->node;
	now = silence_of(look, node);
	then = silence_of(before, node);
	return now && then && now->since_us == then->since_us;
}

static bool is_cut(const struct walk *walk, const struct hop *hop)
{
	return is_silent(walk, hop->rank, hop->wait.rank) ||
	       is_silent(walk, hop->wait.rank, hop->rank);
}

/*
 * A schedule has no circles: in one operation something was sent and has not come. Between
 * whom, wires say; where they do not, only two that wait for each other are sure to be it.
 */
static int lost(struct walk *walk, uint32_t first)
{
	uint32_t at = first, one, other, pair[2];

	while (at < walk->nr_hops && !is_cut(walk, &walk->hops[at]))
		at++;
	if (at == walk->nr_hops && first + 2 == walk->nr_hops)
		at = first;
	if (at == walk->nr_hops)
		return found(walk, EXPLAIN_LINK, NULL, 0,
			     ": what they have sent each other does not arrive");
	one = walk->hops[at].rank;
	other = walk->hops[at].wait.rank;
	pair[0] = one < other ? one : other;
	pair[1] = one < other ? other : one;
	return found(walk, EXPLAIN_LINK, pair, 2,
		     ": what they have sent each other does not arrive; look at the link between rank %u and rank %u",
		     pair[0], pair[1]);
}

static int circle(struct walk *walk, uint32_t first)
{
	return (is_one_operation(walk, first) ? lost : disorder)(walk, first);
}

static uint32_t hop_find(const struct walk *walk, uint32_t rank,
			 const struct muster_look_comm *comm)
{
	uint32_t i = 0;

	while (i < walk->nr_hops && (walk->hops[i].rank != rank || walk->hops[i].comm != comm))
		i++;
	return i;
}

/* ---- the walk ------------------------------------------------------------------------------------ */

static int visit(struct walk *walk, uint32_t rank, const struct muster_look_comm *comm);

/* Not in that operation: where it is then, or that it is nowhere. */
static int elsewhere(struct walk *walk, uint32_t rank)
{
	const struct look *look = look_of(walk->job, rank);
	const struct muster_look_comm *comm = look_comm_of(look, look->page->context);
	int finding = NOTHING;

	walk->hops[walk->nr_hops - 1].late = true;
	if (look->page->place == MUSTER_LOOK_MAKES)
		return visit(walk, rank, NULL);
	if (look->page->place == MUSTER_LOOK_LEAVES)
		return found_one(walk, EXPLAIN_LEAVING, rank, " and is in muster_finalize() (%s)",
				 look_name(look, false).text);
	if (has_called_something(walk, rank))
		return found_one(walk, EXPLAIN_OTHERS, rank, " and goes on with others (%s)",
				 look_name(look, false).text);
	if (look->page->place == MUSTER_LOOK_WAITS)	/* unless it has only just begun to */
		return comm && is_told(comm) ? visit(walk, rank, comm) : NOTHING;
	for (uint32_t i = 0; attends(walk, rank) && i < look->page->nr_comms; i++)
		if (finding == NOTHING && is_told(&look->page->comms[i]))
			finding = visit(walk, rank, &look->page->comms[i]);
	if (finding != NOTHING)
		return finding;
	return found_one(walk, EXPLAIN_NOT_CALLED, rank, " and is not in the library (%s)",
			 look_name(look, true).text);
}

/* It has ended what another waits for. */
static int ended(struct walk *walk, uint32_t rank, uint32_t asker,
		 const struct muster_look_wait *wait)
{
	bool awaits_data = wait->cause == MUSTER_LOOK_SLOT || wait->cause == MUSTER_LOOK_DATA ||
			   wait->cause == MUSTER_LOOK_STREAM;

	if (!awaits_data && !attends(walk, rank))
		return found_one(walk, EXPLAIN_UNATTENDED, rank,
				 ", which is not in the library to take it (%s)",
				 look_name(look_of(walk->job, rank), false).text);
	return found(walk, EXPLAIN_LINK, (uint32_t[]){ rank, asker }, 2,
		     ", which has done its part: nothing comes over the link from rank %u to rank %u",
		     rank, asker);
}

/* Is there, and not stopped? Else that is the end. */
static bool is_alive(struct walk *walk, uint32_t rank, int *finding)
{
	const struct look *look = look_of(walk->job, rank);

	if (!look || !look->state)
		*finding = found_one(walk, EXPLAIN_GONE, rank,
				     ", which is not there: no process of this machine shows that it is this rank");
	else if (look->state == 'T' || look->state == 't')
		*finding = found_one(walk, EXPLAIN_STOPPED, rank, ", %s is stopped (pid %d)",
				     look->page->copied_us ? "whose guest" : "which",
				     (int)look->pid);
	else if (is_still(walk, rank))
		*finding = found_one(walk, EXPLAIN_STOPPED, rank,
				     ", which is stopped, or gets no processor (%s)",
				     look_name(look, false).text);
	else
		return !is_old(walk, rank);
	return false;
}

/* Why has that rank not done what `asker` waits for in comm? */
static int reach(struct walk *walk, uint32_t rank, uint32_t asker,
		 const struct muster_look_comm *comm, const struct muster_look_wait *wait)
{
	const struct muster_look_comm *own;
	const struct look *look;
	int finding = NOTHING;

	if (!is_alive(walk, rank, &finding))
		return finding;
	look = look_of(walk->job, rank);
	own = look_comm(look, comm);
	if (!own && look->page->nr_hidden)
		return NOTHING;
	if (!own) {
		own = look_comm_closed(look, comm);
		if (own && (int32_t)(own->ended - comm->ended) > 0)
			return ended(walk, rank, asker, wait);
		return found_one(walk, EXPLAIN_LEAVING, rank,
				 ", which has closed the communicator (%s)",
				 look_name(look, false).text);
	}
	if (own->failed)
		return NOTHING;		/* all will hear of it */
	if ((int32_t)(own->started - comm->ended) <= 0)
		return elsewhere(walk, rank);
	if ((int32_t)(own->ended - comm->ended) > 0)
		return ended(walk, rank, asker, wait);
	if (attends(walk, rank) || is_carried(walk, rank, own))
		return is_told(own) ? visit(walk, rank, own) : NOTHING;
	if (is_with_nic(own))
		return NOTHING;
	return found_one(walk, EXPLAIN_UNATTENDED, rank,
			 ", which has called it, but is not in the library to go on with it (%s)",
			 look_name(look, true).text);
}

/* The same of one that is to say something of a communicator that is being made. */
static int reach_maker(struct walk *walk, uint32_t rank)
{
	int finding = NOTHING;

	if (!is_alive(walk, rank, &finding))
		return finding;
	if (look_of(walk->job, rank)->page->place == MUSTER_LOOK_MAKES)
		return visit(walk, rank, NULL);
	return elsewhere(walk, rank);
}

/* What comes of the switches is made of what all bring: who has not called it keeps it back. */
static uint32_t late_in(const struct walk *walk, const struct muster_look_comm *comm)
{
	for (uint32_t rank = 0; rank < walk->job->size; rank++) {
		const struct look *look = look_of(walk->job, rank);
		const struct muster_look_comm *own = look ? look_comm(look, comm) : NULL;

		if (own && (int32_t)(own->started - comm->ended) <= 0)
			return rank;
	}
	return MUSTER_LOOK_NOBODY;
}

static int visit_wait(struct walk *walk, uint32_t rank, const struct muster_look_comm *comm,
		      const struct muster_look_wait *wait)
{
	struct hop *hop = &walk->hops[walk->nr_hops - 1];

	hop->wait = *wait;
	hop->late = false;
	if (wait->cause == MUSTER_LOOK_QUEUE)
		return found_one(walk, EXPLAIN_QUEUE, rank,
				 ": the completion queue of rank %u is full, and it does not read it",
				 rank);
	if (wait->cause == MUSTER_LOOK_BUMP)
		return found_one(walk, EXPLAIN_BUMP, rank, " of rank %u, which does not answer",
				 rank);
	if (comm && comm->path == MUSTER_PATH_SWITCH && wait->rank == MUSTER_LOOK_NOBODY)
		hop->wait.rank = late_in(walk, comm);
	if (hop->wait.rank >= walk->job->size)
		return NOTHING;
	return comm ? reach(walk, hop->wait.rank, rank, comm, wait) :
		      reach_maker(walk, wait->rank);
}

static bool hop_push(struct walk *walk, uint32_t rank, const struct muster_look_comm *comm)
{
	if (walk->nr_hops == walk->max_hops) {
		uint32_t max = 2 * walk->max_hops + 16;
		struct hop *more = realloc(walk->hops, max * sizeof(*more));

		walk->no_memory |= !more;
		if (!more)
			return false;
		walk->hops = more;
		walk->max_hops = max;
	}
	walk->hops[walk->nr_hops++] = (struct hop){ .rank = rank, .comm = comm };
	return true;
}

/* All that it waits for, until there is a finding. comm NULL: it makes a communicator. */
static int waits_walk(struct walk *walk, uint32_t rank, const struct muster_look_comm *comm)
{
	const struct muster_look_wait *waits = comm ? comm->waits.waits :
					       &look_of(walk->job, rank)->page->wait;
	uint32_t nr = comm ? comm->waits.nr : 1;
	int finding = NOTHING;

	for (uint32_t i = 0; i < nr && i < MUSTER_LOOK_WAITS_MAX && finding == NOTHING; i++)
		finding = visit_wait(walk, rank, comm, &waits[i]);
	return finding;
}

static int visit(struct walk *walk, uint32_t rank, const struct muster_look_comm *comm)
{
	int *seen = seen_of(walk, rank, comm), finding;

	if (*seen >= DONE)
		return *seen - DONE - 1;
	if (*seen == OPEN)
		return circle(walk, hop_find(walk, rank, comm));
	if (!(comm ? stands(walk, rank, comm) : stands_making(walk, rank)))
		return NOTHING;
	if (!hop_push(walk, rank, comm))
		return NOTHING;
	*seen = OPEN;
	finding = waits_walk(walk, rank, comm);
	*seen = DONE + 1 + finding;
	walk->nr_hops--;
	return finding;
}

/* ---- all of a job ----------------------------------------------------------------------------- */

/* Those who wait in the library; and what is left unfinished by those who come and go. */
static void walk_from(struct walk *walk, uint32_t rank)
{
	const struct look *look = look_of(walk->job, rank);
	bool waits = false;
	int finding = NOTHING;

	if (!look || is_still(walk, rank) || is_old(walk, rank))
		return;
	if (look->page->place == MUSTER_LOOK_MAKES && stands_making(walk, rank)) {
		waits = true;
		finding = visit(walk, rank, NULL);
	}
	for (uint32_t i = 0; i < look->page->nr_comms && attends(walk, rank); i++) {
		const struct muster_look_comm *comm = &look->page->comms[i];

		if (!is_told(comm) || !stands(walk, rank, comm))
			continue;
		waits = true;
		if (finding == NOTHING)
			finding = visit(walk, rank, comm);
	}
	walk->findings->nr_waiting += waits;
	if (finding != NOTHING)
		walk->findings->all[finding].nr_waiting++;
}

static bool seen_alloc(struct walk *walk)
{
	walk->seen = calloc(walk->job->size, sizeof(*walk->seen));
	for (uint32_t rank = 0; walk->seen && rank < walk->job->size; rank++) {
		const struct look *look = look_of(walk->job, rank);

		if (!look)
			continue;
		walk->seen[rank] = calloc(look->page->nr_comms + 1, sizeof(**walk->seen));
		if (!walk->seen[rank])
			return false;
	}
	return walk->seen;
}

int explain_job(const struct look_job *now, const struct look_job *before,
		struct findings *findings)
{
	struct walk walk = { .job = now, .before = before, .findings = findings };

	*findings = (struct findings){ 0 };
	walk.no_memory = !seen_alloc(&walk);
	for (uint32_t rank = 0; rank < now->size && !walk.no_memory; rank++)
		walk_from(&walk, rank);
	for (uint32_t rank = 0; walk.seen && rank < now->size; rank++)
		free(walk.seen[rank]);
	free(walk.seen);
	free(walk.hops);
	if (walk.no_memory)
		explain_free(findings);
	return walk.no_memory ? -ENOMEM : 0;
}

void explain_free(struct findings *findings)
{
	free(findings->all);
	*findings = (struct findings){ 0 };
}
