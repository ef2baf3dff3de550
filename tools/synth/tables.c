// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * muster-synth tables: the rows of tables 4 and 5 of SCCL, found and checked, with
 * the labels that bounds prove; and instances that have no solution, refuted.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

struct row {
	const char *topology;
	enum muster_coll coll;
	uint32_t chunks, steps, rounds;
};

#define AG MUSTER_COLL_ALLGATHER
#define RS MUSTER_COLL_REDUCE_SCATTER
#define AR MUSTER_COLL_ALLREDUCE
#define BC MUSTER_COLL_BROADCAST
#define RD MUSTER_COLL_REDUCE
#define GA MUSTER_COLL_GATHER
#define SC MUSTER_COLL_SCATTER
#define AA MUSTER_COLL_ALLTOALL

static const struct row rows[] = {
	{ "dgx1", AG, 1, 2, 2 }, { "dgx1", AG, 2, 3, 3 }, { "dgx1", AG, 3, 4, 4 },
	{ "dgx1", AG, 4, 5, 5 }, { "dgx1", AG, 5, 6, 6 }, { "dgx1", AG, 6, 7, 7 },
	{ "dgx1", AG, 6, 3, 7 }, { "dgx1", AG, 2, 2, 3 },
	{ "dgx1", RS, 8, 2, 2 }, { "dgx1", RS, 48, 3, 7 }, { "dgx1", RS, 16, 2, 3 },
	{ "dgx1", AR, 8, 4, 4 }, { "dgx1", AR, 16, 6, 6 }, { "dgx1", AR, 24, 8, 8 },
	{ "dgx1", AR, 32, 10, 10 }, { "dgx1", AR, 40, 12, 12 }, { "dgx1", AR, 48, 14, 14 },
	{ "dgx1", AR, 48, 6, 14 }, { "dgx1", AR, 16, 4, 6 },
	{ "dgx1", BC, 2, 2, 2 }, { "dgx1", BC, 6, 3, 3 }, { "dgx1", BC, 12, 4, 4 },
	{ "dgx1", BC, 18, 5, 5 }, { "dgx1", BC, 6, 3, 5 }, { "dgx1", RD, 12, 4, 4 },
	{ "dgx1", GA, 1, 2, 2 }, { "dgx1", GA, 2, 3, 3 }, { "dgx1", GA, 3, 4, 4 },
	{ "dgx1", GA, 4, 5, 5 }, { "dgx1", GA, 5, 6, 6 }, { "dgx1", GA, 6, 7, 7 },
	{ "dgx1", GA, 6, 3, 7 }, { "dgx1", GA, 2, 2, 3 }, { "dgx1", SC, 48, 3, 7 },
	{ "dgx1", AA, 8, 3, 3 }, { "dgx1", AA, 8, 2, 3 }, { "dgx1", AA, 24, 8, 8 },
	{ "dgx1", AA, 24, 2, 8 },
	{ "z52", AG, 1, 4, 4 }, { "z52", AG, 2, 7, 7 }, { "z52", AG, 2, 4, 7 },
	{ "z52", RS, 16, 4, 7 },
	{ "z52", AR, 8, 8, 8 }, { "z52", AR, 16, 14, 14 }, { "z52", AR, 16, 8, 14 },
	{ "z52", BC, 2, 4, 4 }, { "z52", BC, 4, 5, 5 }, { "z52", BC, 6, 6, 6 },
	{ "z52", BC, 8, 7, 7 }, { "z52", BC, 10, 8, 8 }, { "z52", RD, 10, 8, 8 },
	{ "z52", GA, 1, 4, 4 }, { "z52", GA, 2, 4, 7 }, { "z52", SC, 16, 4, 7 },
	{ "z52", AA, 8, 4, 8 },
};

static const struct row refuted[] = {
	{ "dgx1", AG, 3, 2, 4 }, { "dgx1", AG, 4, 2, 5 }, { "dgx1", AG, 5, 2, 6 },
	{ "dgx1", AG, 6, 2, 7 }, { "dgx1", AA, 16, 2, 5 }, { "dgx1", BC, 3, 2, 2 },
	{ "z52", AA, 16, 4, 15 },
};

struct tally {
	unsigned int good, wrong, slower, timed_out, compared;
	double log_ratio;
};

/* One row in one encoding, over all seeds. */
struct measured {
	double seconds;			/* the median */
	bool ended;			/* its solve did; else the seconds are its limit */
	bool shared;			/* some were measured before */
	bool expected;			/* each proof is the one that was expected */
	char why[256];
};

static int by_number(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

/* With one solve more than half of the seeds out of time the median is known. */
static void measure(const struct settings *s, const struct row *row,
		    struct muster_topology *topology, bool plain, enum muster_proof expected,
		    struct measured *measured)
{
	unsigned int out_of_time = 0, i;
	double seconds[100];

	*measured = (struct measured){ .expected = true };
	for (i = 0; i < s->seeds && out_of_time <= s->seeds / 2; i++) {
		struct muster_synth_result result;
		struct muster_synth_request request = {
			.topology = topology, .coll = row->coll, .chunks = row->chunks,
			.steps = row->steps, .rounds = row->rounds, .solve = s->request.solve,
			.folder = s->compare && !plain ? NULL : s->request.folder,
		};

		request.solve.seed += i;
		request.solve.plain = plain;
		if (s->compare)
			request.solve.jobs = 1;
		if (muster_synthesize(&request, &result))
			die(1, "%s", result.why);
		seconds[i] = result.cpu_seconds;
		out_of_time += result.proof == MUSTER_PROOF_UNKNOWN;
		measured->shared |= result.kept;
		measured->expected &= result.proof == expected;
		memcpy(measured->why, result.why, sizeof(measured->why));
		muster_schedule_free(result.schedule);
	}
	measured->ended = out_of_time <= s->seeds / 2;
	qsort(seconds, i, sizeof(*seconds), by_number);
	measured->seconds = seconds[measured->ended ? s->seeds / 2 : i - out_of_time];
}

static void show_labels(const struct row *row, struct muster_topology *topology)
{
	const struct muster_synth_request request = { .topology = topology, .coll = row->coll };
	uint64_t rounds, chunks;
	uint32_t steps;
	char why[300];

	if (muster_synth_bounds(&request, &steps, &rounds, &chunks, why, sizeof(why)))
		die(1, "%s", why);
	printf("  %-12s %-9s", row->steps == steps ? "fewest steps" : "",
	       row->rounds * chunks == row->chunks * rounds ? "bandwidth" : "");
}

static void compare(const struct settings *s, const struct row *row,
		    struct muster_topology *topology, double quick, struct tally *tally)
{
	double least = quick > 0.001 ? quick : 0.001;
	struct measured plain;

	measure(s, row, topology, true, MUSTER_PROOF_FOUND, &plain);
	printf("  plain %s%8.2f s  %s%8.1f x%s", plain.ended ? " " : ">", plain.seconds,
	       plain.ended ? " " : ">", plain.seconds / least,
	       plain.shared ? " (measured before)" : "");
	tally->log_ratio += log(plain.seconds / least);
	tally->compared++;
	tally->timed_out += !plain.ended;
	tally->slower += quick > plain.seconds + 1;
}

static void run_row(const struct settings *s, const struct row *row, enum muster_proof expected,
		    struct tally *tally)
{
	struct muster_topology *topology;
	struct measured quick;
	char why[300];

	if (muster_topology_make(row->topology, &topology, why, sizeof(why)))
		die(1, "%s", why);
	measure(s, row, topology, false, expected, &quick);
	printf("%-5s %-15s (%2" PRIu32 ",%3" PRIu32 ",%3" PRIu32 ")", row->topology,
	       muster_coll_name(row->coll), row->chunks, row->steps, row->rounds);
	show_labels(row, topology);
	printf("  %-7s %8.3f s", quick.expected ? muster_proof_name(expected) : "WRONG",
	       quick.seconds);
	fflush(stdout);
	if (s->compare)
		compare(s, row, topology, quick.seconds, tally);
	printf("  %s\n", quick.why);
	fflush(stdout);
	tally->good += quick.expected;
	tally->wrong += !quick.expected;
	muster_topology_free(topology);
}

static bool is_wanted(const struct settings *s, const struct row *row)
{
	return !s->topology_name || !strcmp(s->topology_name, row->topology);
}

int run_tables(struct settings *s, int argc, char **argv)
{
	struct tally tally = { 0 };
	struct settings full = *s;

	(void)argv;
	if (argc || !s->seeds)
		die(2, "tables has options alone");
	printf("found and checked; time: CPU seconds of all attempts%s\n",
	       s->seeds > 1 ? ", median of the seeds" : "");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (is_wanted(s, &rows[i]))
			run_row(s, &rows[i], MUSTER_PROOF_FOUND, &tally);
	printf("refuted by the full formula\n");
	full.request.solve.full_only = true;
	full.compare = false;
	if (s->compare)
		full.request.folder = NULL;	/* each seed refutes anew */
	for (size_t i = 0; i < sizeof(refuted) / sizeof(refuted[0]); i++)
		if (is_wanted(s, &refuted[i]))
			run_row(&full, &refuted[i], MUSTER_PROOF_REFUTED, &tally);
	printf("%u as they should be, %u not\n", tally.good, tally.wrong);
	if (tally.compared)
		printf("geometric mean of the ratios: %.1f x over %u rows (%u time-outs of the "
		       "plain encoding count as their limit); %u rows more than 1 s slower\n",
		       exp(tally.log_ratio / tally.compared), tally.compared, tally.timed_out,
		       tally.slower);
	return tally.wrong ? 1 : 0;
}
