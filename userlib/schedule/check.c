// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The checker: runs a schedule on symbols instead of data and proves that it
 * computes its collective. Chunks never meet, so each is run on its own.
 *
 * The value of a chunk at a rank is the set of ranks that have contributed to it,
 * exactly, and a digest of the expression that combined them, in which op(a, b)
 * equals op(b, a) but nothing else is equal: two values with the same digest have
 * the same bits in every arithmetic. The digest is of two independent 64-bit
 * hashes. A barrier has no data: there only the sets count.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "schedule.h"

enum { WORD_BITS = 64 };

struct value {
	bool there;
	uint64_t digest[2];
	const struct muster_transfer *replaced_by; /* the last copy that lost a contribution */
	uint64_t *set;			/* of ranks */
};

struct checker {
	const struct muster_schedule *schedule;
	const struct muster_coll_row *coll;
	size_t set_words;
	uint32_t *by_chunk;		/* indices of transfers, by chunk, step and listing */
	uint32_t *chunk_first;		/* chunks + 1 indices into by_chunk */
	struct value *before;		/* by rank: at the beginning of the step */
	struct value *after;		/* by rank: at its end, where it has changed */
	uint32_t *changed;		/* ranks that changed in this step */
	uint32_t nr_changed;
	bool *has_changed;		/* by rank */
	struct value contributors;	/* of the chunk: who has it at the start */
	uint64_t *sets;			/* memory of all sets */
	char *why;
	size_t why_len;
};

__attribute__((format(printf, 2, 3)))
static int refuse(struct checker *checker, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(checker->why, checker->why_len, format, args);
	va_end(args);
	return -EINVAL;
}

__attribute__((format(printf, 3, 4)))
static int refuse_transfer(struct checker *checker, const struct muster_transfer *t,
			   const char *format, ...)
{
	char reason[160];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	return refuse(checker,
		      "step %" PRIu32 ", %" PRIu32 " -> %" PRIu32 ", chunk %" PRIu32 ": %s",
		      t->step, t->from, t->to, t->chunk, reason);
}

/* ---- form ---------------------------------------------------------------- */

static int check_head(struct checker *checker)
{
	const struct muster_schedule *s = checker->schedule;

	if (!checker->coll)
		return refuse(checker, "there is no collective %d", (int)s->coll);
	if (!s->ranks || s->ranks > MUSTER_SCHEDULE_RANKS_MAX)
		return refuse(checker, "%" PRIu32 " ranks, but there can be 1 to %d", s->ranks,
			      MUSTER_SCHEDULE_RANKS_MAX);
	if (!s->chunks || s->chunks > MUSTER_SCHEDULE_CHUNKS_MAX)
		return refuse(checker, "%" PRIu32 " chunks, but there can be 1 to %d", s->chunks,
			      MUSTER_SCHEDULE_CHUNKS_MAX);
	if (s->chunks % muster_coll_chunks_unit(s->coll, s->ranks))
		return refuse(checker, "%" PRIu32 " chunks, but in %s of %" PRIu32 " ranks it is a "
			      "multiple of %" PRIu64, s->chunks, checker->coll->name, s->ranks,
			      muster_coll_chunks_unit(s->coll, s->ranks));
	if (s->root >= s->ranks)
		return refuse(checker, "root %" PRIu32 ", but there are %" PRIu32 " ranks", s->root,
			      s->ranks);
	if (s->coll == MUSTER_COLL_CUSTOM && !s->places)
		return refuse(checker, "a custom schedule that does not say where chunks are");
	if (s->nr_transfers > MUSTER_SCHEDULE_TRANSFERS_MAX)
		return refuse(checker, "more than %d transfers", MUSTER_SCHEDULE_TRANSFERS_MAX);
	return 0;
}

static int check_form(struct checker *checker)
{
	const struct muster_schedule *s = checker->schedule;
	uint32_t steps = 0;
	int err = check_head(checker);

	for (uint32_t i = 0; i < s->nr_transfers && !err; i++) {
		const struct muster_transfer *t = &s->transfers[i];

		if (t->from >= s->ranks || t->to >= s->ranks)
			err = refuse_transfer(checker, t, "no such pair among %" PRIu32 " ranks",
					      s->ranks);
		else if (t->chunk >= s->chunks)
			err = refuse_transfer(checker, t, "there are %" PRIu32 " chunks",
					      s->chunks);
		else if (t->from == t->to && !(t->reduce && checker->coll->combines))
			err = refuse_transfer(checker, t, "a rank can only combine its own");
		else if (t->step > steps || t->step + 1 < steps)
			err = refuse_transfer(checker, t, "out of order after %" PRIu32 " steps",
					      steps);
		else
			steps = t->step + 1;
	}
	if (!err && steps != s->steps)
		err = refuse(checker, "%" PRIu32 " steps are announced, but %" PRIu32 " are there",
			     s->steps, steps);
	return err;
}

/* ---- values -------------------------------------------------------------- */

/* The first rank that is in a and, as wanted, in b or not in b; or -1. */
static int64_t first_in(const struct checker *checker, const struct value *a, const struct value *b,
			bool wanted)
{
	for (size_t i = 0; i < checker->set_words; i++) {
		uint64_t both = a->set[i] & (wanted ? b->set[i] : ~b->set[i]);

		if (both)
			return i * WORD_BITS + __builtin_ctzll(both);
	}
	return -1;
}

static void join_sets(const struct checker *checker, struct value *into, const struct value *from)
{
	for (size_t i = 0; i < checker->set_words; i++)
		into->set[i] |= from->set[i];
}

static void copy_value(const struct checker *checker, struct value *into, const struct value *from)
{
	uint64_t *set = into->set;

	memcpy(set, from->set, checker->set_words * sizeof(*set));
	*into = *from;
	into->set = set;
}

static void combine_digests(uint64_t into[2], const uint64_t from[2])
{
	for (int i = 0; i < 2; i++) {
		uint64_t pair[2] = { into[i], from[i] };

		if (from[i] < into[i]) {
			pair[0] = from[i];
			pair[1] = into[i];
		}
		into[i] = XXH64(pair, sizeof(pair), i);
	}
}

static void add_to_set(struct value *value, uint32_t rank)
{
	value->set[rank / WORD_BITS] |= 1ull << (rank % WORD_BITS);
}

/* What a rank has before the first step: its own contribution, or nothing. */
static void begin_value(struct checker *checker, uint32_t chunk, uint32_t rank)
{
	struct value *value = &checker->before[rank];
	uint32_t origin;

	memset(value->set, 0, checker->set_words * sizeof(*value->set));
	value->replaced_by = NULL;
	value->there = muster_coll_has(checker->schedule, chunk, rank);
	if (!value->there)
		return;
	origin = muster_coll_origin(checker->schedule, chunk, rank);
	add_to_set(value, origin);
	add_to_set(&checker->contributors, origin);
	for (int i = 0; i < 2; i++)
		value->digest[i] = XXH64(&origin, sizeof(origin), i);
}

/* ---- running ------------------------------------------------------------- */

static struct value *value_to_change(struct checker *checker, uint32_t rank)
{
	if (!checker->has_changed[rank]) {
		checker->has_changed[rank] = true;
		checker->changed[checker->nr_changed++] = rank;
		copy_value(checker, &checker->after[rank], &checker->before[rank]);
	}
	return &checker->after[rank];
}

static void end_step(struct checker *checker)
{
	for (uint32_t i = 0; i < checker->nr_changed; i++) {
		uint32_t rank = checker->changed[i];

		copy_value(checker, &checker->before[rank], &checker->after[rank]);
		checker->has_changed[rank] = false;
	}
	checker->nr_changed = 0;
}

static int run_reduce(struct checker *checker, const struct muster_transfer *t, struct value *into,
		      const struct value *from)
{
	int64_t twice = first_in(checker, into, from, true);

	if (!checker->coll->combines)
		return refuse_transfer(checker, t, "there is nothing to reduce in %s",
				       checker->coll->name);
	if (!into->there)
		return refuse_transfer(checker, t, "rank %" PRIu32 " has nothing yet to combine "
				       "it with", t->to);
	if (twice >= 0)
		return refuse_transfer(checker, t,
				       "counts the contribution of rank %" PRId64 " twice", twice);
	join_sets(checker, into, from);
	combine_digests(into->digest, from->digest);
	return 0;
}

static void run_copy(struct checker *checker, const struct muster_transfer *t, struct value *into,
		     const struct value *from)
{
	bool loses = first_in(checker, into, from, false) >= 0;
	const struct muster_transfer *replaced_by = into->replaced_by;

	copy_value(checker, into, from);
	into->replaced_by = loses ? t : replaced_by;
}

static int run_transfer(struct checker *checker, const struct muster_transfer *t)
{
	const struct value *from = &checker->before[t->from];
	struct value *into = value_to_change(checker, t->to);

	if (!from->there)
		return refuse_transfer(checker, t, "rank %" PRIu32 " has nothing to send yet",
				       t->from);
	if (!checker->coll->has_data)
		join_sets(checker, into, from);
	else if (t->reduce)
		return run_reduce(checker, t, into, from);
	else
		run_copy(checker, t, into, from);
	return 0;
}

static int refuse_missing(struct checker *checker, uint32_t chunk, uint32_t rank, uint32_t missing)
{
	const struct muster_transfer *t = checker->before[rank].replaced_by;
	int err = refuse(checker,
			 "chunk %" PRIu32 ": rank %" PRIu32 " ends without the contribution of "
			 "rank %" PRIu32,
			 chunk, rank, missing);
	size_t len = strlen(checker->why);

	if (t)
		snprintf(checker->why + len, checker->why_len - len,
			 "; in step %" PRIu32 " rank %" PRIu32 " replaced what it had", t->step,
			 t->from);
	return err;
}

/* The first rank that has no part in the result of another one. */
static uint32_t prefix_end(const struct checker *checker, uint32_t rank)
{
	return checker->coll->needs == MUSTER_WHO_LATER ? rank : rank + 1;
}

/* Nothing of a rank behind it has come into a rank's result. */
static int check_prefix(struct checker *checker, uint32_t chunk, uint32_t rank)
{
	const uint64_t *set = checker->before[rank].set;

	for (uint32_t other = prefix_end(checker, rank); other < checker->schedule->ranks; other++)
		if (set[other / WORD_BITS] >> other % WORD_BITS & 1)
			return refuse(checker, "chunk %" PRIu32 ": rank %" PRIu32 " ends with the "
				      "contribution of rank %" PRIu32 ", which is %s", chunk, rank,
				      other, other == rank ? "its own" : "behind it");
	return 0;
}

/* Whether a rank that needs the result has it; the same as rank `first` has. */
static int check_result(struct checker *checker, uint32_t chunk, uint32_t rank, uint32_t first)
{
	const struct value *value = &checker->before[rank], *other = &checker->before[first];
	int64_t missing;

	if (!value->there)
		return refuse(checker, "chunk %" PRIu32 ": rank %" PRIu32 " ends without it", chunk,
			      rank);
	missing = first_in(checker, &checker->contributors, value, false);
	if (missing >= 0 && !(checker->coll->prefix && missing >= prefix_end(checker, rank)))
		return refuse_missing(checker, chunk, rank, missing);
	if (checker->coll->prefix)
		return check_prefix(checker, chunk, rank);
	if (checker->coll->has_data &&
	    memcmp(value->digest, other->digest, sizeof(value->digest)))
		return refuse(checker,
			      "chunk %" PRIu32 ": ranks %" PRIu32 " and %" PRIu32 " combine in "
			      "different orders: their bits could differ",
			      chunk, first, rank);
	return 0;
}

static int check_results(struct checker *checker, uint32_t chunk)
{
	uint32_t ranks = checker->schedule->ranks, first = ranks;
	int err = 0;

	for (uint32_t rank = 0; rank < ranks && !err; rank++) {
		if (!muster_coll_needs(checker->schedule, chunk, rank))
			continue;
		if (first == ranks)
			first = rank;
		err = check_result(checker, chunk, rank, first);
	}
	return err;
}

static int check_chunk(struct checker *checker, uint32_t chunk)
{
	const struct muster_transfer *transfers = checker->schedule->transfers;
	uint32_t step = 0;
	int err = 0;

	memset(checker->contributors.set, 0, checker->set_words * sizeof(uint64_t));
	for (uint32_t rank = 0; rank < checker->schedule->ranks; rank++)
		begin_value(checker, chunk, rank);
	for (uint32_t i = checker->chunk_first[chunk]; i < checker->chunk_first[chunk + 1] && !err;
	     i++) {
		const struct muster_transfer *t = &transfers[checker->by_chunk[i]];

		if (t->step != step)
			end_step(checker);
		step = t->step;
		err = run_transfer(checker, t);
	}
	end_step(checker);
	return err ? err : check_results(checker, chunk);
}

/* ---- set-up -------------------------------------------------------------- */

/* by_chunk: a counting sort, which keeps the order within a chunk. */
static void sort_by_chunk(struct checker *checker)
{
	const struct muster_schedule *schedule = checker->schedule;
	uint32_t *first = checker->chunk_first;

	for (uint32_t i = 0; i < schedule->nr_transfers; i++)
		first[schedule->transfers[i].chunk + 1]++;
	for (uint32_t chunk = 0; chunk < schedule->chunks; chunk++)
		first[chunk + 1] += first[chunk];
	for (uint32_t i = 0; i < schedule->nr_transfers; i++)
		checker->by_chunk[first[schedule->transfers[i].chunk]++] = i;
	memmove(first + 1, first, schedule->chunks * sizeof(*first));
	first[0] = 0;
}

static void checker_end(struct checker *checker)
{
	free(checker->sets);
	free(checker->has_changed);
	free(checker->changed);
	free(checker->after);
	free(checker->before);
	free(checker->chunk_first);
	free(checker->by_chunk);
}

static int checker_begin(struct checker *checker)
{
	const struct muster_schedule *schedule = checker->schedule;
	size_t ranks = schedule->ranks, words = (ranks + WORD_BITS - 1) / WORD_BITS;

	checker->set_words = words;
	checker->by_chunk = calloc(schedule->nr_transfers + 1, sizeof(*checker->by_chunk));
	checker->chunk_first = calloc(schedule->chunks + 1, sizeof(*checker->chunk_first));
	checker->before = calloc(ranks, sizeof(*checker->before));
	checker->after = calloc(ranks, sizeof(*checker->after));
	checker->changed = calloc(ranks, sizeof(*checker->changed));
	checker->has_changed = calloc(ranks, sizeof(*checker->has_changed));
	checker->sets = calloc((2 * ranks + 1) * words, sizeof(*checker->sets));
	if (!checker->by_chunk || !checker->chunk_first || !checker->before || !checker->after ||
	    !checker->changed || !checker->has_changed || !checker->sets) {
		checker_end(checker);
		refuse(checker, "no memory to check %zu ranks", ranks);
		return -ENOMEM;
	}
	for (size_t rank = 0; rank < ranks; rank++) {
		checker->before[rank].set = checker->sets + rank * words;
		checker->after[rank].set = checker->sets + (ranks + rank) * words;
	}
	checker->contributors.set = checker->sets + 2 * ranks * words;
	sort_by_chunk(checker);
	return 0;
}

int muster_schedule_check(const struct muster_schedule *schedule, char *why, size_t why_len)
{
	struct checker checker = {
		.schedule = schedule, .coll = muster_coll_row(schedule->coll), .why = why,
		.why_len = why_len,
	};
	int err = check_form(&checker);

	if (!err)
		err = checker_begin(&checker);
	if (err)
		return err;
	for (uint32_t chunk = 0; chunk < schedule->chunks && !err; chunk++)
		err = check_chunk(&checker, chunk);
	checker_end(&checker);
	return err;
}
