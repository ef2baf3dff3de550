// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * muster_perf --tune: each schedule in each lowering, measured size by size on the NIC
 * path, and as it is on the host path; and the tuning file that follows. A candidate is put to the library as a tuning
 * file of one line, as a user would; that it was applied is read from what the library
 * says of the operation. All ranks go through the same candidates, and agree on times.
 */
#include "perf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "muster_desc.h"

enum {
	SIZES_MAX = 41,
	WARM_UP = 3,
	BATCH = 8,		/* of small ones: what is compared is timed alike */
	BATCH_BYTES = 4096,
	GAIN_PERCENT = 5,	/* less than this is no reason to leave the library's choice */
	PATH_BYTES = 4200,
};

static const char *const names[] = {
	"recursive-doubling", "rabenseifner", "ring", "double-ring", "bruck", "binomial", "4-nomial",
	"8-nomial", "linear", "dissemination", "direct", "hillis-steele", "blelloch", "double-tree",
	"halving-doubling", "pairwise",
};

/* Each way to lower alone, the two together that are for long messages, and none at all. */
static const struct lowering {
	const char *words;
	uint64_t from, to;	/* sizes for which it is another than without it */
	enum perf_path path;
} lowerings[] = {
	{ "", 0, UINT64_MAX, PERF_NIC },
	{ "memory", 1, MUSTER_MP_MAX, PERF_NIC },
	{ "barrier", 0, UINT64_MAX, PERF_NIC },
	{ "push", MUSTER_MP_MAX + 1, UINT64_MAX, PERF_NIC },
	{ "pulse=1024", 1025, UINT64_MAX, PERF_NIC },
	{ "pulse=4096", 4097, UINT64_MAX, PERF_NIC },
	{ "pulse=4096 push", 4097, UINT64_MAX, PERF_NIC },
	{ "host", 0, UINT64_MAX, PERF_HOST },
};

enum {
	NAMES = sizeof(names) / sizeof(names[0]),
	LOWERINGS = sizeof(lowerings) / sizeof(lowerings[0]),
	CANDIDATES_MAX = 1 + (NAMES + PERF_SCHEDULES_MAX) * LOWERINGS,
};

struct candidate {
	const char *schedule;		/* NULL: the library's own choice */
	const struct lowering *lowering;
	char name[32];			/* of the schedule, as the library says it */
	double p50_us[SIZES_MAX];	/* by size; 0: not for this one */
	bool chosen[SIZES_MAX];
	struct perf_model model;
};

struct tune {
	struct perf *perf;
	enum perf_collective collective;
	uint64_t bytes[SIZES_MAX];
	uint32_t nr_sizes;
	struct candidate *candidates;	/* the first is the library's choice */
	uint32_t nr;
	struct candidate *best[SIZES_MAX];
	char own[SIZES_MAX][32];	/* the schedule that the library chooses */
	double seconds;			/* by size, of all candidates */
	struct perf_tune_plot *plot;	/* NULL: no picture */
	struct perf_options options;
};

/* ---- candidates --------------------------------------------------------------- */

/* A collective's name in schedules and tuning files. */
static const char *word_of(enum perf_collective collective)
{
	return collective == PERF_REDUCE_SCATTER_BLOCK ? "reduce-scatter" : perf_kinds[collective].name;
}

/* The name that a schedule's file gives it. Return: whether it is of this collective. */
static bool read_head(const char *path, const char *collective, char *name)
{
	char line[256], coll[32] = "";
	FILE *in = fopen(path, "re");

	*name = '\0';
	while (in && !*coll && fgets(line, sizeof(line), in))
		if (sscanf(line, " name %31s", name) != 1)
			sscanf(line, " collective %31s", coll);
	if (in)
		fclose(in);
	if (!*name || !*coll)
		perf_die("%s: it cannot be read as a schedule", path);
	return !strcmp(coll, collective);
}

static void add_schedule(struct tune *tune, const char *schedule)
{
	char name[sizeof(tune->candidates->name)];

	if (!strchr(schedule, '/'))
		snprintf(name, sizeof(name), "%s", schedule);
	else if (!read_head(schedule, word_of(tune->collective), name))
		return;
	for (uint32_t i = 0; i < LOWERINGS; i++) {
		struct candidate *candidate = &tune->candidates[tune->nr++];

		candidate->schedule = schedule;
		candidate->lowering = &lowerings[i];
		strcpy(candidate->name, name);
	}
}

/* Those that do not do the collective are refused in a list. */
static void add_name(struct tune *tune, const char *name)
{
	char item[64];

	snprintf(item, sizeof(item), "%s=%s", word_of(tune->collective), name);
	if (!muster_comm_schedule(tune->perf->world, item))
		add_schedule(tune, name);
}

static void add_candidates(struct tune *tune)
{
	const struct perf_options *options = tune->perf->options;

	tune->candidates = calloc(CANDIDATES_MAX, sizeof(*tune->candidates));
	if (!tune->candidates)
		perf_die("no memory for the candidates");
	tune->candidates[tune->nr++].lowering = &lowerings[0];
	for (uint32_t i = 0; i < NAMES; i++)
		add_name(tune, names[i]);
	for (uint32_t i = 0; i < options->nr_schedules; i++)
		add_schedule(tune, options->schedules[i]);
	perf_check(tune->perf, muster_comm_schedule(tune->perf->world, NULL), "tuning");
	tune->options.seconds = tune->seconds / tune->nr;
}

/* Make it the library's choice for all sizes. The file is this rank's own, and short-lived. */
static void apply(const struct tune *tune, const struct candidate *candidate)
{
	char path[] = "/tmp/muster-tune-XXXXXX";
	FILE *out;
	int fd;

	if (!candidate->schedule) {
		perf_check(tune->perf, muster_comm_schedule(tune->perf->world, NULL), "tuning");
		return;
	}
	fd = mkstemp(path);
	out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!out)
		perf_die("%s cannot be written", path);
	fprintf(out, "muster-tuning 1\n%s any %s %s\nend\n",
		word_of(tune->collective), candidate->schedule,
		candidate->lowering->words);
	if (fclose(out))
		perf_die("%s cannot be written", path);
	fd = muster_comm_schedule(tune->perf->world, path);
	unlink(path);
	perf_check(tune->perf, fd, "tuning");
}

/* ---- measuring ------------------------------------------------------------------ */

static enum muster_path taken(enum perf_path path)
{
	return path == PERF_NIC ? MUSTER_PATH_NIC : MUSTER_PATH_HOST;
}

/* Whether this one runs, and not what the library takes where it does not serve. */
static bool serves(const struct tune *tune, const struct candidate *candidate, uint64_t bytes)
{
	const struct perf *perf = tune->perf;
	struct muster_op_info info;

	if (bytes < candidate->lowering->from || bytes > candidate->lowering->to)
		return false;
	perf_check(perf, muster_comm_offload(perf->world, MUSTER_OFFLOAD_TRY), "choosing the path");
	perf_operate(perf, tune->collective, bytes, candidate->lowering->path);
	muster_comm_last(perf->world, &info);
	return info.path == taken(candidate->lowering->path) &&
	       (!candidate->schedule || !strcmp(info.schedule, candidate->name));
}

/* Median us of one size. One rank may run ahead of a broadcast or reduce: no batches there. */
static double measure(struct tune *tune, const struct candidate *candidate, uint32_t size,
		      char *schedule)
{
	enum perf_path path = candidate->lowering->path;
	bool ahead = tune->collective == PERF_BROADCAST || tune->collective == PERF_REDUCE;
	struct perf_result result;

	tune->options.batch = ahead || tune->bytes[size] > BATCH_BYTES ? 1 : BATCH;
	tune->options.paths[PERF_NIC] = path == PERF_NIC;
	tune->options.paths[PERF_HOST] = path == PERF_HOST;
	perf_measure(tune->perf, tune->collective, tune->bytes[size], &result);
	if (!result.valid)
		perf_die("%s gives wrong results", result.times[path].info.schedule);
	if (schedule)
		strcpy(schedule, result.times[path].info.schedule);
	return result.times[path].p50_us;
}

static void measure_candidate(struct tune *tune, struct candidate *candidate)
{
	apply(tune, candidate);
	for (uint32_t i = 0; i < tune->nr_sizes; i++)
		if (serves(tune, candidate, tune->bytes[i]))
			candidate->p50_us[i] = measure(tune, candidate, i,
						       candidate->schedule ? NULL : tune->own[i]);
}

static bool is_measured(const struct tune *tune, const struct candidate *candidate)
{
	for (uint32_t i = 0; i < tune->nr_sizes; i++)
		if (candidate->p50_us[i] > 0)
			return true;
	return false;
}

static void print_candidate(const struct tune *tune, const struct candidate *candidate)
{
	printf("%-20s %-16s", candidate->schedule ? candidate->name : "library's choice",
	       candidate->lowering->words);
	for (uint32_t i = 0; i < tune->nr_sizes; i++)
		if (candidate->p50_us[i] > 0)
			printf(" %9.2f", candidate->p50_us[i]);
		else
			printf(" %9s", "-");
	printf("\n");
	fflush(stdout);
}

static void print_columns(const struct tune *tune)
{
	printf("#\n# %s: median us of the slowest rank by bytes; -: not for this size\n# %-18s %-16s",
	       perf_kinds[tune->collective].name, "Schedule", "Lowering");
	for (uint32_t i = 0; i < tune->nr_sizes; i++)
		printf(" %9" PRIu64, tune->bytes[i]);
	printf("\n");
}

/* ---- the file ---------------------------------------------------------------------- */

static bool is_gain(double us, double own_us)
{
	return us > 0 && (!(own_us > 0) || us < own_us * (100 - GAIN_PERCENT) / 100);
}

/* Of many, one is the fastest by luck: it must be so again, beside the library's choice. */
static void choose(struct tune *tune, uint32_t size)
{
	struct candidate *own = &tune->candidates[0], *best = own;
	double us, own_us = 0;

	for (uint32_t i = 1; i < tune->nr; i++) {
		us = tune->candidates[i].p50_us[size];
		if (us > 0 && (best == own || us < best->p50_us[size]))
			best = &tune->candidates[i];
	}
	tune->best[size] = own;
	if (best == own || !is_gain(best->p50_us[size], own->p50_us[size]))
		return;
	if (own->p50_us[size] > 0) {
		apply(tune, own);
		own_us = measure(tune, own, size, NULL);
	}
	apply(tune, best);
	us = measure(tune, best, size, NULL);
	if (!is_gain(us, own_us))
		return;
	tune->best[size] = best;
	best->p50_us[size] = us;
	own->p50_us[size] = own_us;
}

/* Of the sizes at which it was measured. */
static void fit(const struct tune *tune, struct candidate *candidate)
{
	uint64_t bytes[SIZES_MAX];
	double us[SIZES_MAX];
	uint32_t nr = 0;

	for (uint32_t i = 0; i < tune->nr_sizes; i++)
		if (candidate->p50_us[i] > 0) {
			bytes[nr] = tune->bytes[i];
			us[nr++] = candidate->p50_us[i];
		}
	if (nr)
		perf_model_fit(&candidate->model, bytes, us, nr);
}

/*
 * Up to which size the choice for one holds, if for the next one another was made: up to where
 * their models cross. Ends of ranges are whole elements of any type.
 */
static uint64_t holds_to(const struct tune *tune, uint32_t size)
{
	const struct candidate *now = tune->best[size], *next = tune->best[size + 1];
	uint64_t low = tune->bytes[size], high = tune->bytes[size + 1];

	if (high > now->lowering->to || low < next->lowering->from)
		return low;
	while (high - low > 2 * sizeof(double)) {
		uint64_t middle = (low + (high - low) / 2) / sizeof(double) * sizeof(double);

		if (perf_model_us(&now->model, middle) <= perf_model_us(&next->model, middle))
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* What stands in the file for a size. The library's choice is named: it may change. */
static void describe(const struct tune *tune, uint32_t size, char *text, size_t len)
{
	const struct candidate *best = tune->best[size];

	snprintf(text, len, "%s%s%s", best->schedule ? best->schedule : tune->own[size],
		 *best->lowering->words ? " " : "", best->lowering->words);
}

/* Sizes after each other that have the same are one line; the last holds for all above. */
static void write_lines(const struct tune *tune, FILE *out)
{
	/* Tuning files go by the whole message. */
	uint64_t blocks = perf_blocks_max(tune->perf, tune->collective);
	char text[PATH_BYTES], next[PATH_BYTES];

	for (uint32_t i = 0; i < tune->nr_sizes; i++) {
		const struct perf_model *model = &tune->best[i]->model;
		double us = tune->best[i]->p50_us[i], own = tune->candidates[0].p50_us[i];
		uint64_t bytes = tune->bytes[i];

		describe(tune, i, text, sizeof(text));
		if (!(us > 0))
			continue;
		if (i + 1 < tune->nr_sizes)
			describe(tune, i + 1, next, sizeof(next));
		if (i + 1 < tune->nr_sizes && !strcmp(text, next))
			continue;
		fprintf(out, "%s ", word_of(tune->collective));
		if (i + 1 < tune->nr_sizes)
			fprintf(out, "%" PRIu64, holds_to(tune, i) * blocks);
		else
			fprintf(out, "any");
		fprintf(out, " %s   # %.2f us at %" PRIu64 " bytes, library's choice %.2f; model %.2f us + %.4f us/KiB, off by %.0f %%\n",
			text, us, bytes, own,
			bytes <= model->short_max ? model->below.us : model->above.us,
			1024 * (bytes <= model->short_max ? model->below : model->above).us_per_byte,
			100 * model->off);
	}
}

static void draw(struct tune *tune)
{
	perf_tune_plot_collective(tune->plot, tune->collective);
	for (uint32_t i = 0; i < tune->nr; i++) {
		const struct candidate *candidate = &tune->candidates[i];
		char name[64];

		if (!is_measured(tune, candidate))
			continue;
		snprintf(name, sizeof(name), "%s %s", i ? candidate->name : "(as it is)",
			 candidate->lowering->words);
		perf_tune_plot_curve(tune->plot, &(struct perf_tune_curve){
			name, tune->bytes, candidate->p50_us, candidate->chosen, tune->nr_sizes,
			&candidate->model, i == 0 });
	}
}

static void tune_collective(struct tune *tune, FILE *out)
{
	const struct perf_options *options = &tune->options;
	uint64_t bytes = tune->collective == PERF_BARRIER ? 0 : options->bytes_min;
	bool prints = tune->perf->rank == 0;

	tune->nr_sizes = tune->nr = 0;
	do
		tune->bytes[tune->nr_sizes++] = bytes;
	while (bytes && (bytes *= 2) <= options->bytes_max && tune->nr_sizes < SIZES_MAX);
	add_candidates(tune);
	if (prints)
		print_columns(tune);
	for (uint32_t i = 0; i < tune->nr; i++) {
		measure_candidate(tune, &tune->candidates[i]);
		if (prints && is_measured(tune, &tune->candidates[i]))
			print_candidate(tune, &tune->candidates[i]);
	}
	for (uint32_t i = 0; i < tune->nr_sizes; i++) {
		choose(tune, i);
		tune->best[i]->chosen[i] = true;
	}
	for (uint32_t i = 0; i < tune->nr; i++)
		fit(tune, &tune->candidates[i]);
	if (out)
		write_lines(tune, out);
	if (tune->plot)
		draw(tune);
	free(tune->candidates);
}

static FILE *open_file(const struct perf *perf)
{
	FILE *out = fopen(perf->options->tune, "we");

	if (!out)
		perf_die("%s cannot be written", perf->options->tune);
	fprintf(out, "muster-tuning 2\nranks %" PRIu32 "\n", perf->size);
	return out;
}

void perf_tune(struct perf *perf)
{
	const struct perf_options *given = perf->options;
	struct tune *tune = calloc(1, sizeof(*tune));
	FILE *out = perf->rank == 0 ? open_file(perf) : NULL;

	if (!tune)
		perf_die("no memory");
	tune->perf = perf;
	tune->options = *given;
	tune->options.warmup = given->warmup < WARM_UP ? given->warmup : WARM_UP;
	tune->seconds = given->seconds;
	perf->options = &tune->options;
	if (out)
		perf_header(perf);
	if (out && given->plot)
		tune->plot = perf_tune_plot_open(perf, given->plot);
	for (tune->collective = 0; tune->collective < PERF_COLLECTIVES; tune->collective++)
		if (given->collectives[tune->collective] &&	/* by counts as without */
		    !perf_kinds[tune->collective].by_counts &&
		    perf_kinds[tune->collective].out_blocks != PERF_BLOCKS_NEIGHBOURS)
			tune_collective(tune, out);
	if (out && (fprintf(out, "end\n") < 0 || fclose(out)))
		perf_die("%s cannot be written", given->tune);
	if (perf->rank == 0)
		printf("# %s is written: MUSTER_SCHEDULE takes it, with a slash in its path\n",
		       given->tune);
	if (tune->plot)
		perf_tune_plot_close(tune->plot);
	perf->options = given;
	free(tune);
}
