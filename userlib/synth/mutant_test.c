// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Schedules with one thing changed are refused, by the checker or by what they
 * cost. Those few that pass are as good: run on numbers, apart from the checker,
 * they end with what the collective demands, and they cost no more.
 */
#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "baseline.h"
#include "synth.h"

enum { MUTANTS = 10000 };

static uint64_t seed = 12;
static char solved[] = "/tmp/muster-mutants.XXXXXX";	/* an allreduce is made of an allgather that is, too */

static uint32_t random_below(uint32_t bound)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % bound;
}

static struct muster_topology *topology_named(const char *spec)
{
	struct muster_topology *topology;
	char why[300];

	if (muster_topology_make(spec, &topology, why, sizeof(why)))
		fail_msg("%s", why);
	return topology;
}

static struct muster_schedule *copy(const struct muster_schedule *schedule)
{
	struct muster_schedule *made = malloc(sizeof(*made));

	*made = *schedule;
	made->transfers = malloc((schedule->nr_transfers + 1) * sizeof(*made->transfers));
	memcpy(made->transfers, schedule->transfers,
	       schedule->nr_transfers * sizeof(*made->transfers));
	return made;
}

static uint32_t other(uint32_t value, uint32_t nr)
{
	return (value + 1 + random_below(nr - 1)) % nr;
}

/* Put transfer i where its step's transfers end. */
static void move_to_step(struct muster_schedule *schedule, uint32_t i, uint32_t step)
{
	struct muster_transfer moved = schedule->transfers[i];
	uint32_t at = 0, left = schedule->nr_transfers - i - 1;

	memmove(&schedule->transfers[i], &schedule->transfers[i + 1], left * sizeof(moved));
	moved.step = step;
	while (at < schedule->nr_transfers - 1 && schedule->transfers[at].step <= step)
		at++;
	memmove(&schedule->transfers[at + 1], &schedule->transfers[at],
		(schedule->nr_transfers - 1 - at) * sizeof(moved));
	schedule->transfers[at] = moved;
}

static void mutate(struct muster_schedule *schedule)
{
	uint32_t i = random_below(schedule->nr_transfers);
	struct muster_transfer *t = &schedule->transfers[i];

	switch (random_below(8)) {
	case 0:
		memmove(t, t + 1, (schedule->nr_transfers - i - 1) * sizeof(*t));
		schedule->nr_transfers--;
		break;
	case 1:
		t->to = other(t->to, schedule->ranks);
		break;
	case 2:
		t->from = other(t->from, schedule->ranks);
		break;
	case 3:
		t->chunk = other(t->chunk, schedule->chunks);
		break;
	case 4:
		t->reduce = !t->reduce;
		break;
	case 5:
		if (schedule->steps > 1)
			move_to_step(schedule, i, other(t->step, schedule->steps));
		else
			t->reduce = !t->reduce;
		break;
	case 6:
		/* Twice the same: a copy would only be dearer, a contribution must not count twice. */
		if (t->reduce) {
			schedule->transfers[schedule->nr_transfers++] = *t;
			move_to_step(schedule, schedule->nr_transfers - 1,
				     random_below(2) ? t->step : random_below(schedule->steps));
		} else {
			t->reduce = true;
		}
		break;
	default:
		if (schedule->chunks > 1 && schedule->nr_transfers > 1) {
			struct muster_transfer *u =
				&schedule->transfers[other(i, schedule->nr_transfers)];
			uint32_t chunk = t->chunk;

			t->chunk = u->chunk != chunk ? u->chunk : other(chunk, schedule->chunks);
			u->chunk = chunk;
		} else {
			t->to = other(t->to, schedule->ranks);
		}
	}
}

/* ---- numbers instead of symbols ---------------------------------------------------- */

/* Each contribution counts as a number of its own; sums are compared, and copies too. */
static uint64_t contribution(const struct muster_schedule *schedule, uint32_t chunk, uint32_t rank)
{
	return muster_coll_has(schedule, chunk, rank) ?
		       0x9e3779b97f4a7c15ull * (chunk * 64 + rank + 1) : 0;
}

static bool ends_right(const struct muster_schedule *schedule)
{
	uint32_t ranks = schedule->ranks, nr = schedule->chunks * ranks;
	uint64_t *before = calloc(nr, sizeof(*before)), *after = calloc(nr, sizeof(*after));
	bool right = true;

	for (uint32_t i = 0; i < nr; i++)
		after[i] = contribution(schedule, i / ranks, i % ranks);
	for (uint32_t i = 0; i < schedule->nr_transfers; i++) {
		const struct muster_transfer *t = &schedule->transfers[i];
		uint64_t *into = &after[t->chunk * ranks + t->to];

		if (!i || t->step != schedule->transfers[i - 1].step)
			memcpy(before, after, nr * sizeof(*before));
		*into = (t->reduce ? *into : 0) + before[t->chunk * ranks + t->from];
	}
	for (uint32_t chunk = 0; chunk < schedule->chunks; chunk++) {
		uint64_t sum = 0;

		for (uint32_t rank = 0; rank < ranks; rank++)
			sum += contribution(schedule, chunk, rank);
		for (uint32_t rank = 0; rank < ranks; rank++)
			if (muster_coll_needs(schedule, chunk, rank) &&
			    after[chunk * ranks + rank] != sum)
				right = false;
	}
	free(after);
	free(before);
	return right;
}

/* ---- the test --------------------------------------------------------------------------- */

struct original {
	const char *topology;
	enum muster_coll coll;
	uint32_t chunks, steps, rounds;		/* 0 chunks: the schedule by hand */
};

static const struct original originals[] = {
	{ "dgx1", MUSTER_COLL_ALLGATHER, 6, 3, 7 }, { "dgx1", MUSTER_COLL_ALLGATHER, 2, 2, 3 },
	{ "dgx1", MUSTER_COLL_ALLREDUCE, 48, 6, 14 }, { "dgx1", MUSTER_COLL_BROADCAST, 6, 3, 3 },
	{ "dgx1", MUSTER_COLL_REDUCE, 6, 3, 3 }, { "dgx1", MUSTER_COLL_GATHER, 6, 3, 7 },
	{ "dgx1", MUSTER_COLL_ALLTOALL, 24, 2, 8 }, { "dgx1", MUSTER_COLL_ALLREDUCE, 0, 14, 14 },
	{ "z52", MUSTER_COLL_REDUCE_SCATTER, 16, 4, 7 }, { "z52", MUSTER_COLL_SCATTER, 16, 4, 7 },
	{ "z52", MUSTER_COLL_ALLGATHER, 0, 7, 7 },
};

enum { ORIGINALS = sizeof(originals) / sizeof(originals[0]) };

static struct muster_schedule *make_original(const struct original *original,
					     const struct muster_topology *topology)
{
	const struct muster_synth_request request = {
		.topology = topology, .coll = original->coll, .chunks = original->chunks,
		.steps = original->steps, .rounds = original->rounds, .folder = solved, .solve.jobs = 1,
	};
	struct muster_synth_result result;
	char why[300];

	if (original->chunks) {
		assert_int_equal(muster_synthesize(&request, &result), 0);
		assert_non_null(result.schedule);
		return result.schedule;
	}
	assert_int_equal(muster_baseline(original->topology, original->coll, 0, 1, &result.schedule,
					 why, sizeof(why)), 0);
	return result.schedule;
}

static bool is_refused(const struct original *original, const struct muster_schedule *mutant,
		       const struct muster_topology *topology)
{
	uint32_t rounds;
	char why[300];

	return muster_schedule_check(mutant, why, sizeof(why)) ||
	       muster_synth_cost(mutant, topology, &rounds, why, sizeof(why)) ||
	       rounds > original->rounds;
}

static void mutants_are_refused(void **state)
{
	struct muster_topology *topologies[ORIGINALS];
	struct muster_schedule *schedules[ORIGINALS];
	unsigned int refused = 0;

	(void)state;
	for (size_t i = 0; i < ORIGINALS; i++) {
		topologies[i] = topology_named(originals[i].topology);
		schedules[i] = make_original(&originals[i], topologies[i]);
		assert_false(is_refused(&originals[i], schedules[i], topologies[i]));
		assert_true(ends_right(schedules[i]));
	}
	for (unsigned int i = 0; i < MUTANTS; i++) {
		uint32_t which = i % ORIGINALS;
		struct muster_schedule *mutant = copy(schedules[which]);

		mutate(mutant);
		if (is_refused(&originals[which], mutant, topologies[which]))
			refused++;
		else if (!ends_right(mutant))
			fail_msg("a wrong mutant of %s passed", mutant->name);
		muster_schedule_free(mutant);
	}
	print_message("%u of %d mutants refused, %u as good as their originals\n", refused, MUTANTS,
		      MUTANTS - refused);
	assert_true(refused >= MUTANTS / 100 * 99);
	for (size_t i = 0; i < ORIGINALS; i++) {
		muster_schedule_free(schedules[i]);
		muster_topology_free(topologies[i]);
	}
}

static int begin(void **state)
{
	(void)state;
	return mkdtemp(solved) ? 0 : -1;
}

static int forget(const char *path, const struct stat *stat, int kind, struct FTW *at)
{
	(void)stat;
	(void)kind;
	(void)at;
	return remove(path);
}

static int end(void **state)
{
	(void)state;
	return nftw(solved, forget, 4, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mutants_are_refused),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
