// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * muster_trace report: where the time of recorded operations went. Of each rank's time in
 * an operation the part until the last rank has called it is lost to that rank, which is
 * the operation's straggler; the rest is the operation's own. Of the latter it says for
 * whose messages the rank has waited.
 */
#include <err.h>
#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace.h"
#include "version.h"

enum { WORST = 10, RANKS_MAX = 65536 };

static const char help[] =
	"Usage: muster_trace report [OPTION]... [FILE]\n"
	"Says where the time of a recorded job (trace.json) went, by rank, and who was late.\n"
	"  -s, --svg=FILE  draw it, too (gnuplot)\n"
	"  -j, --json      for programs, with all operations\n"
	"  -h, --help\n";

static const struct option long_options[] = {
	{ "svg", required_argument, NULL, 's' }, { "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' }, { 0 },
};

/* One rank's part of an operation; times in nanoseconds. */
struct piece {
	uint32_t context, life, lead, number;
	uint32_t rank;
	int64_t called, began, ended;
	const char *collective;
	const json_t *parts;
};

struct operation {
	const struct piece *pieces;	/* of its ranks */
	size_t nr;
	uint32_t straggler;
	int64_t last_ns;		/* when it called */
	int64_t delay_ns;		/* after the middle one of the others */
};

struct rank {
	bool seen;
	uint32_t nr;
	double total_ns;	/* in operations, from the call, or the end of the one before */
	double late_ns;		/* of it, until all had called */
	uint32_t times_last;
	double delay_ns;	/* in all of these */
	double *from_ns;	/* by rank: the time until its messages were there */
};

struct report {
	json_t *document;
	const char *command;
	uint32_t size;
	uint64_t lost;
	struct piece *pieces;
	size_t nr_pieces;
	struct operation *operations;
	size_t nr_operations;
	struct rank *ranks;
};

/* ---- reading -------------------------------------------------------------------------- */

static void broken(const char *path)
{
	errx(2, "%s: this was not written by muster_trace record", path);
}

static void *get(size_t nr, size_t bytes)
{
	void *memory = calloc(nr ? nr : 1, bytes);

	if (!memory)
		errx(2, "no memory");
	return memory;
}

static void piece_read(struct report *report, uint32_t rank, json_t *from, const char *path)
{
	struct piece *piece = &report->pieces[report->nr_pieces++];
	json_int_t life, called, began, ended;
	int context, lead, number;
	json_t *parts;

	if (json_unpack(from, "{s:i, s:I, s:i, s:i, s:s, s:I, s:I, s:I, s:o}", "communicator",
			&context, "life", &life, "lead", &lead, "number", &number, "collective", &piece->collective,
			"called", &called, "began", &began, "ended", &ended, "parts", &parts))
		broken(path);
	piece->context = (uint32_t)context;
	piece->life = (uint32_t)life;
	piece->lead = (uint32_t)lead;
	piece->number = (uint32_t)number;
	piece->rank = rank;
	piece->called = called;
	piece->began = began;
	piece->ended = ended;
	piece->parts = parts;
}

static void rank_read(struct report *report, json_t *from, const char *path)
{
	json_t *operations, *operation;
	json_int_t lost;
	size_t i;
	int rank;

	if (json_unpack(from, "{s:i, s:I, s:o}", "rank", &rank, "lost", &lost, "operations",
			&operations) || rank < 0 || (uint32_t)rank >= report->size)
		broken(path);
	report->lost += (uint64_t)lost;
	report->ranks[rank].seen = true;
	report->ranks[rank].from_ns = get(report->size, sizeof(double));
	report->pieces = realloc(report->pieces, (report->nr_pieces + json_array_size(operations) + 1) *
				 sizeof(*report->pieces));
	if (!report->pieces)
		errx(2, "no memory");
	json_array_foreach(operations, i, operation)
		piece_read(report, (uint32_t)rank, operation, path);
}

static void file_read(struct report *report, const char *path)
{
	json_t *ranks, *rank;
	json_error_t error;
	size_t i;
	int size;

	if (access(path, R_OK))
		err(2, "%s", path);
	report->document = json_load_file(path, 0, &error);
	if (!report->document)
		errx(2, "%s: line %d: %s", path, error.line, error.text);
	if (json_unpack(report->document, "{s:{s:i, s:s, s:o}}", "muster", "size", &size, "command",
			&report->command, "ranks", &ranks) || size < 1 || size > RANKS_MAX)
		broken(path);
	report->size = (uint32_t)size;
	report->ranks = get(report->size, sizeof(*report->ranks));
	json_array_foreach(ranks, i, rank)
		rank_read(report, rank, path);
}

/* ---- working it out ----------------------------------------------------------------------- */

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_operation(const void *one, const void *other)
{
	const struct piece *a = one, *b = other;
	int order = compare(a->context, b->context);

	order = order ? order : compare(a->life, b->life);
	order = order ? order : compare(a->lead, b->lead);
	order = order ? order : compare(a->number, b->number);
	return order ? order : compare((uint64_t)a->called, (uint64_t)b->called);
}

static bool is_same(const struct piece *a, const struct piece *b)
{
	return a->context == b->context && a->life == b->life && a->lead == b->lead &&
	       a->number == b->number;
}

static void operation_work_out(struct report *report, struct operation *operation)
{
	const struct piece *last = &operation->pieces[operation->nr - 1];

	operation->straggler = last->rank;
	operation->last_ns = last->called;
	if (operation->nr > 1)
		operation->delay_ns = last->called - operation->pieces[(operation->nr - 2) / 2].called;
	report->ranks[last->rank].times_last++;
	report->ranks[last->rank].delay_ns += (double)operation->delay_ns;
}

static void piece_work_out(struct report *report, const struct piece *piece, int64_t last_ns)
{
	struct rank *rank = &report->ranks[piece->rank];
	int64_t late = (last_ns < piece->ended ? last_ns : piece->ended) - piece->began;
	const json_t *part;
	size_t i;

	rank->nr++;
	rank->total_ns += (double)(piece->ended - piece->began);
	rank->late_ns += late > 0 ? (double)late : 0;
	json_array_foreach(piece->parts, i, part) {
		json_int_t peer = json_integer_value(json_array_get(part, 1));

		if (peer >= 0 && peer < report->size)
			rank->from_ns[peer] +=
				(double)json_integer_value(json_array_get(part, 2));
	}
}

static void work_out(struct report *report)
{
	struct operation *operation = NULL;

	qsort(report->pieces, report->nr_pieces, sizeof(*report->pieces), by_operation);
	report->operations = get(report->nr_pieces, sizeof(*report->operations));
	for (size_t i = 0; i < report->nr_pieces; i++) {
		if (!operation || !is_same(operation->pieces, &report->pieces[i])) {
			operation = &report->operations[report->nr_operations++];
			operation->pieces = &report->pieces[i];
		}
		operation->nr++;
	}
	for (size_t i = 0; i < report->nr_operations; i++) {
		operation = &report->operations[i];
		operation_work_out(report, operation);
		for (size_t p = 0; p < operation->nr; p++)
			piece_work_out(report, &operation->pieces[p], operation->last_ns);
	}
}

/* ---- saying it ------------------------------------------------------------------------------ */

/* What it did itself is its own; of a job of one rank there is nobody else. */
static uint32_t most_awaited(const struct report *report, uint32_t rank)
{
	const double *from = report->ranks[rank].from_ns;
	uint32_t most = rank ? 0 : report->size - 1;

	for (uint32_t peer = 0; peer < report->size; peer++)
		if (peer != rank && from[peer] > from[most])
			most = peer;
	return most;
}

static int by_delay(const void *one, const void *other)
{
	const struct operation *a = *(const struct operation *const *)one;
	const struct operation *b = *(const struct operation *const *)other;

	return compare((uint64_t)b->delay_ns, (uint64_t)a->delay_ns);
}

static void print_worst(const struct report *report)
{
	const struct operation **order = get(report->nr_operations, sizeof(*order));

	for (size_t i = 0; i < report->nr_operations; i++)
		order[i] = &report->operations[i];
	qsort(order, report->nr_operations, sizeof(*order), by_delay);
	printf("\nlatest calls:\n");
	for (size_t i = 0; i < report->nr_operations && i < WORST; i++)
		printf("  %s %u of communicator %u: rank %u called it %.3f ms after the others\n",
		       order[i]->pieces->collective, order[i]->pieces->number,
		       order[i]->pieces->context, order[i]->straggler,
		       (double)order[i]->delay_ns / 1e6);
	free(order);
}

static void print(const struct report *report)
{
	printf("%s, %u ranks, %zu operations", report->command, report->size,
	       report->nr_operations);
	if (report->lost)
		printf(" (%llu records were lost: some are missing)",
		       (unsigned long long)report->lost);
	if (!report->nr_operations) {
		printf(": none was recorded from its call to its end\n");
		return;
	}
	printf("\n\n%6s %8s %12s %12s %12s %8s %12s  %s\n", "rank", "ops", "in ops ms",
	       "for late ms", "own ms", "last", "late by ms", "waited most for");
	for (uint32_t i = 0; i < report->size; i++) {
		const struct rank *rank = &report->ranks[i];
		uint32_t most = rank->seen ? most_awaited(report, i) : 0;

		if (!rank->seen)
			continue;
		printf("%6u %8u %12.3f %12.3f %12.3f %8u %12.3f  rank %u (%.3f ms)\n", i, rank->nr,
		       rank->total_ns / 1e6, rank->late_ns / 1e6,
		       (rank->total_ns - rank->late_ns) / 1e6, rank->times_last,
		       rank->delay_ns / 1e6, most, rank->from_ns[most] / 1e6);
	}
	print_worst(report);
}

static void print_json(const struct report *report)
{
	json_t *ranks = json_array(), *operations = json_array(), *document;

	for (uint32_t i = 0; i < report->size; i++) {
		const struct rank *rank = &report->ranks[i];

		if (rank->seen)
			json_array_append_new(ranks, json_pack(
				"{s:i, s:i, s:f, s:f, s:f, s:i, s:f}", "rank", (int)i, "operations",
				(int)rank->nr, "total_us", rank->total_ns / 1e3, "late_us",
				rank->late_ns / 1e3, "own_us",
				(rank->total_ns - rank->late_ns) / 1e3, "last",
				(int)rank->times_last, "delay_us", rank->delay_ns / 1e3));
	}
	for (size_t i = 0; i < report->nr_operations; i++) {
		const struct operation *operation = &report->operations[i];

		json_array_append_new(operations, json_pack(
			"{s:s, s:i, s:i, s:i, s:i, s:f}", "collective", operation->pieces->collective,
			"communicator", (int)operation->pieces->context, "number",
			(int)operation->pieces->number, "ranks", (int)operation->nr, "straggler",
			(int)operation->straggler, "delay_us", (double)operation->delay_ns / 1e3));
	}
	document = json_pack("{s:s, s:s, s:s, s:i, s:I, s:o, s:o}", "schema", "muster/1", "tool",
			     "muster_trace report", "version", MUSTER_VERSION, "size",
			     (int)report->size, "lost", (json_int_t)report->lost, "ranks", ranks,
			     "operations", operations);
	json_dumpf(document, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
	putchar('\n');
	json_decref(document);
}

static void draw_ranks(FILE *plot, const struct report *report)
{
	for (uint32_t i = 0; i < report->size; i++) {
		const struct rank *rank = &report->ranks[i];

		fprintf(plot, "%u %f %f %f\n", i, rank->late_ns / 1e6,
			(rank->total_ns - rank->late_ns) / 1e6, rank->delay_ns / 1e6);
	}
	fprintf(plot, "e\n");
}

/* Where time went, and who was to blame. */
static void draw(const struct report *report, const char *path)
{
	FILE *there = fopen(path, "we"), *plot;

	if (!there)
		err(2, "%s", path);	/* gnuplot would draw on the terminal */
	fclose(there);
	plot = popen("gnuplot", "w");
	if (!plot)
		err(2, "gnuplot");
	fprintf(plot, "set terminal svg size 900,420 background rgb 'white'\nset output '%s'\n"
		"set multiplot layout 1,2 title '%u ranks, %zu operations'\n"
		"set style data histograms\nset style histogram rowstacked\nset style fill solid\n"
		"set boxwidth 0.8\nset grid y\nset yrange [0:*]\nset xlabel 'rank'\n"
		"set key outside below\nset ylabel 'ms in operations'\n"
		"plot '-' using 2:xtic(1) title 'until the last had called', '' using 3 title 'the operation'\n",
		path, report->size, report->nr_operations);
	for (int column = 0; column < 2; column++)
		draw_ranks(plot, report);
	fprintf(plot, "set ylabel 'ms later than the others'\n"
		"plot '-' using 4:xtic(1) title 'calls of the rank that came last'\n");
	draw_ranks(plot, report);
	if (pclose(plot))
		errx(2, "%s: gnuplot could not draw it", path);
}

int trace_report(int argc, char **argv)
{
	struct report report = { 0 };
	const char *svg = NULL;
	bool json = false;
	int option;

	optind = 1;
	while ((option = getopt_long(argc, argv, "s:jh", long_options, NULL)) != -1)
		switch (option) {
		case 's': svg = optarg; break;
		case 'j': json = true; break;
		case 'h': fputs(help, stdout); return 0;
		default: return 2;
		}
	if (argc - optind > 1)
		errx(2, "%s: report takes one file", argv[optind + 1]);
	if (svg && strpbrk(svg, "'\n"))
		errx(2, "%s: gnuplot takes no quotes in a name", svg);
	file_read(&report, optind < argc ? argv[optind] : "trace.json");
	work_out(&report);
	if (json)
		print_json(&report);
	else
		print(&report);
	if (svg && report.nr_operations)
		draw(&report, svg);
	for (uint32_t i = 0; i < report.size; i++)
		free(report.ranks[i].from_ns);
	free(report.ranks);
	free(report.operations);
	free(report.pieces);
	json_decref(report.document);
	return 0;
}
