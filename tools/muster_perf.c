// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * muster_perf: latency and bandwidth of the collectives by size, the NIC path
 * beside the host path in the same run. To be started by muster-run. This file
 * reads the options and goes through collectives and sizes.
 */
#include "perf.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "limits.h"
#include "version.h"

enum { EXIT_USAGE = 2 };

const char *const perf_path_names[PERF_PATHS] = { "nic", "host" };

static const char help[] =
	"Usage: muster-run -n RANKS muster_perf [OPTION]... [COLLECTIVE]...\n"
	"Measure collectives by size: NIC path and host path in turn, in one run.\n"
	"COLLECTIVE is allreduce (default), reduce, broadcast, barrier, allgather,\n"
	"reduce_scatter_block, alltoall, gather, scatter, scan, exscan; with equal counts\n"
	"allgatherv, reduce_scatter, gatherv, scatterv, alltoallv, alltoallw; on a ring\n"
	"neighbour_allgather(v), neighbour_alltoall(v, w); or all.\n"
	"\n"
	"  -m, --sizes=[MIN:]MAX   bytes, with K, M or G (8:1M); each twice the last;\n"
	"                          of a rank's block, where ranks have blocks\n"
	"  -i, --iterations=N      at most so many samples by size and path (10000)\n"
	"  -x, --warmup=N          at most so many operations before them (20)\n"
	"  -D, --seconds=S         at most so long by size (1)\n"
	"  -t, --type=TYPE         f64 (default), f32, f16, bf16, i8 to i64, u8 to u64, c32, c64,\n"
	"                          f32_i32, f64_i32, i16_i32, i32_i32, i64_i32\n"
	"  -o, --op=OP             sum (default), prod, min, max; for integers also band,\n"
	"                          bor, bxor, land, lor, lxor; for pairs minloc, maxloc;\n"
	"                          exact: the exact sum, for f32 and f64\n"
	"  -r, --root=RANK         of reduce, broadcast, gather(v) and scatter(v) (0)\n"
	"  -p, --path=PATH         nic, host or both (default)\n"
	"  -a, --algorithm=NAME    or a file, or a list by collective and size\n"
	"                          (allreduce:4K=ring,broadcast=4-nomial), as MUSTER_SCHEDULE\n"
	"  -b, --buffers=WHOSE     muster: by muster_alloc() (default); malloc\n"
	"  -c, --validate          also check the results of both paths\n"
	"      --skew=US[:RANK]    a rank (0) calls so much later than the others; times are\n"
	"                          from then on\n"
	"  -f, --full              the columns of OSU's benchmarks, of one path (nic)\n"
	"  -z, --tail              these, and percentiles\n"
	"  -j, --json              print one JSON object instead of the table\n"
	"      --plot=FILE         draw the times, too: FILE.png or FILE.svg\n"
	"      --against-limits[=FOLDER]\n"
	"                          2 ranks: 8-byte allreduce, barrier and 1 MiB allreduce\n"
	"                          beside what the bare machine can do; with FOLDER also\n"
	"                          bench.json and bench.dat there\n"
	"      --tune=FILE         measure schedules and lowerings by size, and write what is\n"
	"                          best as a tuning file, for MUSTER_SCHEDULE\n"
	"      --schedule=FILE     --tune: a schedule beside those by name; can be repeated\n"
	"  -h, --help              show this\n"
	"  -V, --version           show the version\n"
	"\n"
	"Exit status: 0; 1 when an operation failed, took another path than asked for,\n"
	"or gave wrong or different results; 2 wrong usage.\n";

void perf_die(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fputs("muster_perf: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

void perf_check(const struct perf *perf, int ret, const char *what)
{
	if (ret)
		perf_die("%s: %s", what, muster_error(perf->job));
}

/* ---- options ---------------------------------------------------------------- */

static void __attribute__((noreturn)) usage_error(const char *what, const char *value)
{
	fprintf(stderr, "muster_perf: %s '%s'\nTry 'muster_perf --help'.\n", what, value);
	exit(EXIT_USAGE);
}

static uint64_t parse_number(const char *text, uint64_t min, uint64_t max, const char *what)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || value < min || value > max)
		usage_error(what, text);
	return value;
}

static double parse_seconds(const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value > 0 && value <= 86400))
		usage_error("-D wants seconds from 0 to 86400, not", text);
	return value;
}

static uint64_t parse_bytes(const char *text, char **end)
{
	static const char units[] = "KMG";
	uint64_t value;
	const char *unit;

	errno = 0;
	value = strtoull(text, end, 10);
	if (errno || *end == text || *text == '-' || value > UINT64_MAX >> 30)
		usage_error("-m wants [MIN:]MAX in bytes, not", text);
	unit = **end ? strchr(units, **end) : NULL;
	if (unit) {
		value <<= 10 * (unit - units + 1);
		(*end)++;
	}
	return value;
}

static void parse_sizes(const char *text, struct perf_options *options)
{
	char *end;

	options->bytes_max = parse_bytes(text, &end);
	if (*end == ':') {
		options->bytes_min = options->bytes_max;
		options->bytes_max = parse_bytes(end + 1, &end);
	} else if (options->bytes_min > options->bytes_max) {
		options->bytes_min = options->bytes_max;
	}
	if (*end || !options->bytes_min || options->bytes_min > options->bytes_max ||
	    options->bytes_max > (uint64_t)1 << 40)
		usage_error("-m wants [MIN:]MAX, MIN at least 1 and at most MAX, not", text);
}

static void parse_skew(const char *text, struct perf_options *options)
{
	char *end, *rank;

	options->skew_us = strtod(text, &end);
	if (end == text || !(options->skew_us > 0 && options->skew_us <= 1e7) ||
	    (*end && *end != ':'))
		usage_error("--skew wants microseconds up to 10000000, and a rank, not", text);
	if (!*end)
		return;
	rank = end + 1;
	options->late = (uint32_t)parse_number(rank, 0, UINT32_MAX, "--skew wants a rank, not");
}

static void parse_paths(const char *text, struct perf_options *options)
{
	options->paths[PERF_NIC] = !strcmp(text, "nic") || !strcmp(text, "both");
	options->paths[PERF_HOST] = !strcmp(text, "host") || !strcmp(text, "both");
	if (!options->paths[PERF_NIC] && !options->paths[PERF_HOST])
		usage_error("-p is nic, host or both, not", text);
}

static void parse_buffers(const char *text, struct perf_options *options)
{
	options->plain = !strcmp(text, "malloc");
	if (!options->plain && strcmp(text, "muster"))
		usage_error("-b is muster or malloc, not", text);
}

static void parse_collective(const char *text, struct perf_options *options)
{
	bool all = !strcmp(text, "all"), known = all;

	for (enum perf_collective c = 0; c < PERF_COLLECTIVES; c++)
		if (all || !strcmp(text, perf_kinds[c].name))
			known = options->collectives[c] = true;
	if (!known)
		usage_error("there is no collective", text);
}

enum { KEY_AGAINST_LIMITS = 256, KEY_TUNE, KEY_SCHEDULE, KEY_SKEW, KEY_PLOT };

static const struct option long_options[] = {
	{ "sizes", required_argument, NULL, 'm' },
	{ "iterations", required_argument, NULL, 'i' },
	{ "warmup", required_argument, NULL, 'x' },
	{ "seconds", required_argument, NULL, 'D' },
	{ "type", required_argument, NULL, 't' },
	{ "op", required_argument, NULL, 'o' },
	{ "root", required_argument, NULL, 'r' },
	{ "path", required_argument, NULL, 'p' },
	{ "algorithm", required_argument, NULL, 'a' },
	{ "buffers", required_argument, NULL, 'b' },
	{ "validate", no_argument, NULL, 'c' },
	{ "skew", required_argument, NULL, KEY_SKEW },
	{ "full", no_argument, NULL, 'f' },
	{ "tail", no_argument, NULL, 'z' },
	{ "json", no_argument, NULL, 'j' },
	{ "plot", required_argument, NULL, KEY_PLOT },
	{ "against-limits", optional_argument, NULL, KEY_AGAINST_LIMITS },
	{ "tune", required_argument, NULL, KEY_TUNE },
	{ "schedule", required_argument, NULL, KEY_SCHEDULE },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static void parse_option(int key, struct perf_options *options)
{
	switch (key) {
	case 'm':
		parse_sizes(optarg, options);
		break;
	case 'i':
		options->samples_max = (uint32_t)parse_number(optarg, 1, PERF_SAMPLES_MAX,
							      "-i is from 1 to 10000, not");
		break;
	case 'x':
		options->warmup = (uint32_t)parse_number(optarg, 0, UINT32_MAX,
							 "-x wants a number of operations, not");
		break;
	case 'D':
		options->seconds = parse_seconds(optarg);
		break;
	case 't':
		options->type = perf_type_read(optarg);
		if (!options->type)
			usage_error("-t is a type as in --help, not", optarg);
		break;
	case 'o':
		options->op = perf_op_read(optarg);
		if (!options->op)
			usage_error("-o is an operation as in --help, not", optarg);
		break;
	case 'r':
		options->root = (uint32_t)parse_number(optarg, 0, UINT32_MAX,
						       "-r wants a rank, not");
		break;
	case 'p':
		parse_paths(optarg, options);
		break;
	case 'a':
		options->algorithm = optarg;
		break;
	case 'b':
		parse_buffers(optarg, options);
		break;
	case 'c':
		options->validate = true;
		break;
	case 'f':
		options->full = true;
		break;
	case 'z':
		options->full = options->tail = true;
		break;
	case 'j':
		options->json = true;
		break;
	case KEY_SKEW:
		parse_skew(optarg, options);
		break;
	case KEY_PLOT:
		options->plot = optarg;
		break;
	case KEY_AGAINST_LIMITS:
		options->against_limits = true;
		options->output = optarg;
		break;
	case KEY_TUNE:
		options->tune = optarg;
		break;
	case KEY_SCHEDULE:
		if (!strchr(optarg, '/') || options->nr_schedules == PERF_SCHEDULES_MAX)
			usage_error("--schedule is a file, with a slash in its path, at most 16 "
				    "times, not", optarg);
		options->schedules[options->nr_schedules++] = optarg;
		break;
	case 'h':
		fputs(help, stdout);
		exit(0);
	case 'V':
		puts("muster_perf " MUSTER_VERSION);
		exit(0);
	default:
		fputs("Try 'muster_perf --help'.\n", stderr);
		exit(EXIT_USAGE);
	}
}

static void parse_options(int argc, char **argv, struct perf_options *options)
{
	int key;

	while ((key = getopt_long(argc, argv, "m:i:x:D:t:o:r:p:a:b:cfzjhV", long_options, NULL)) != -1)
		parse_option(key, options);
	if (optind == argc)
		options->collectives[PERF_ALLREDUCE] = true;
	for (int i = optind; i < argc; i++)
		parse_collective(argv[i], options);
	if (options->full && options->paths[PERF_NIC])
		options->paths[PERF_HOST] = false;
	if (options->against_limits)
		options->bytes_max = LIMITS_BYTES_MAX;
	if (options->bytes_min < perf_type_bytes(options->type))
		options->bytes_min = perf_type_bytes(options->type);
	if (options->bytes_max < options->bytes_min)
		options->bytes_max = options->bytes_min;
}

/* ---- the run ------------------------------------------------------------------ */

static void *allocate(const struct perf *perf, size_t bytes)
{
	void *memory;

	if (!perf->options->plain)
		perf_check(perf, muster_alloc(perf->job, bytes, &memory), "buffers");
	else if (!(memory = malloc(bytes)))
		perf_die("no memory for buffers of %zu bytes", bytes);
	return memory;
}

/* What the largest buffer of the chosen collectives needs. */
static uint64_t buffer_bytes(const struct perf *perf)
{
	const struct perf_options *options = perf->options;
	uint64_t blocks = 1;

	for (enum perf_collective c = 0; c < PERF_COLLECTIVES; c++)
		if (options->collectives[c] && perf_blocks_max(perf, c) > blocks)
			blocks = perf_blocks_max(perf, c);
	return options->bytes_max * blocks;
}

static void open_job(struct perf *perf, const struct perf_options *options)
{
	*perf = (struct perf){ .options = options };
	if (muster_init(&perf->job))
		perf_die("%s", muster_error(NULL));
	perf->world = muster_world(perf->job);
	perf->rank = muster_comm_rank(perf->world);
	perf->size = muster_comm_size(perf->world);
	if (options->root >= perf->size)
		perf_die("-r %" PRIu32 ": there are only %" PRIu32 " ranks", options->root,
			 perf->size);
	if (options->late >= perf->size)
		perf_die("--skew: there is no rank %" PRIu32 ", only %" PRIu32 " ranks", options->late,
			 perf->size);
	if (options->algorithm)
		perf_check(perf, muster_comm_schedule(perf->world, options->algorithm), "-a");
	perf_clocks_compare(perf);
	perf_collectives_open(perf);
	perf->in = allocate(perf, buffer_bytes(perf));
	for (enum perf_path path = 0; path < PERF_PATHS; path++) {
		perf->out[path] = allocate(perf, buffer_bytes(perf));
		perf->samples[path] = calloc(PERF_SAMPLES_MAX, sizeof(double));
		if (!perf->samples[path])
			perf_die("no memory for the samples");
	}
}

static void close_job(struct perf *perf)
{
	for (enum perf_path path = 0; path < PERF_PATHS; path++) {
		free(perf->samples[path]);
		if (perf->options->plain)
			free(perf->out[path]);
	}
	if (perf->options->plain)
		free(perf->in);
	perf_collectives_close(perf);
	muster_finalize(perf->job);
}

/* Where results go, of rank 0. */
struct report {
	json_t *results;		/* NULL: a table is printed */
	struct perf_plot *plot;		/* NULL: no picture */
};

static void report_collective(const struct perf *perf, enum perf_collective collective,
			      const struct report *report)
{
	if (perf->rank != 0)
		return;
	if (!report->results)
		perf_columns(perf, collective);
	if (report->plot)
		perf_plot_collective(report->plot, collective);
}

static void report_result(const struct perf *perf, const struct perf_result *result,
			  const struct report *report)
{
	if (perf->rank != 0)
		return;
	if (report->results)
		json_array_append_new(report->results, perf_result_json(perf, result));
	else
		perf_row(perf, result);
	if (report->plot)
		perf_plot_add(report->plot, result);
}

/* Return: whether all results were equal and right. */
static bool run_collective(struct perf *perf, enum perf_collective collective,
			   const struct report *report)
{
	const struct perf_options *options = perf->options;
	uint64_t first = collective == PERF_BARRIER ? 0 : options->bytes_min;
	uint64_t last = collective == PERF_BARRIER ? 0 : options->bytes_max;
	bool good = true;

	report_collective(perf, collective, report);
	for (uint64_t bytes = first; bytes <= last; bytes *= 2) {
		struct perf_result result;

		perf_measure(perf, collective, bytes, &result);
		good = good && (result.equal || result.own_order) && result.valid;
		report_result(perf, &result, report);
		if (!bytes)
			break;
	}
	return good;
}

static void print_json(const struct perf *perf, json_t *results)
{
	json_t *document = perf_header_json(perf);

	json_object_set(document, "results", results);
	json_dumpf(document, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
	putchar('\n');
	json_decref(document);
}

static bool run(struct perf *perf)
{
	const struct perf_options *options = perf->options;
	struct report report = { 0 };
	bool good = true;

	if (perf->rank == 0 && options->json)
		report.results = json_array();
	else if (perf->rank == 0)
		perf_header(perf);
	if (perf->rank == 0 && options->plot)
		report.plot = perf_plot_open(perf, options->plot);
	for (enum perf_collective c = 0; c < PERF_COLLECTIVES; c++)
		if (options->collectives[c])
			good = run_collective(perf, c, &report) && good;
	if (report.results)
		print_json(perf, report.results);
	if (report.plot)
		perf_plot_close(report.plot);
	json_decref(report.results);
	return good;
}

int main(int argc, char **argv)
{
	struct perf_options options = {
		.paths = { true, true },
		.bytes_min = 8,
		.bytes_max = 1 << 20,
		.samples_max = PERF_SAMPLES_MAX,
		.warmup = 20,
		.seconds = 1,
		.type = MUSTER_F64,
		.op = MUSTER_SUM,
	};
	struct perf perf;
	bool good = true;

	parse_options(argc, argv, &options);
	open_job(&perf, &options);
	if (options.against_limits)
		perf_against_limits(&perf);
	else if (options.tune)
		perf_tune(&perf);
	else
		good = run(&perf);
	close_job(&perf);
	if (!good && perf.rank == 0)
		fputs("muster_perf: results differ or are wrong, see the table\n", stderr);
	return good ? 0 : 1;
}
