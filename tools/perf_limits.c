// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Muster beside the bare machine (limits.h), both measured by the same two
 * processes in turn, many short rounds of each, so that the ratio holds on a
 * machine that does other things too, and changes its pace. All figures are
 * medians over the rounds, the ratios too: of the ratios within each round.
 */
#include "perf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "limits.h"

enum {
	ROUNDS = 101,
	ROUND_US = 2000,	/* of each contender in each round, about */
	OPERATIONS_MAX = 2048,	/* and at most so many */
};

/* The bare machine, then the paths of Muster as in enum perf_path. */
enum contender { BARE, NIC, HOST, CONTENDERS };

static const char *const contender_names[CONTENDERS] = { "limit", "nic", "host" };

struct comparison {
	const char *name;		/* NULL: one size of the sweep */
	enum perf_collective collective;
	uint64_t bytes;
	double us[CONTENDERS];
	double nic_over_limit;
	double host_over_nic;
};

struct race {
	struct perf *perf;
	struct limits limits;
};

/* The ranks are on one machine: rank 1 opens what rank 0 has open. */
static void share_limits(struct race *race)
{
	struct perf *perf = race->perf;
	int64_t where[2] = { 0, 0 };
	char path[64];
	int fd = -1, ret;

	if (perf->rank == 0) {
		fd = limits_create();
		if (fd < 0)
			perf_die("memory for the limits: %s", strerror(-fd));
		where[0] = getpid();
		where[1] = fd;
	}
	perf_check(perf, muster_broadcast(perf->world, where, 2, MUSTER_I64, 0), "sharing memory");
	if (perf->rank == 1) {
		snprintf(path, sizeof(path), "/proc/%" PRId64 "/fd/%" PRId64, where[0], where[1]);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			perf_die("cannot share memory with rank 0 by %s: %s", path,
				 strerror(errno));
	}
	ret = limits_open(&race->limits, fd, perf->rank);
	if (ret)
		perf_die("memory for the limits: %s", strerror(-ret));
	perf_check(perf, muster_barrier(perf->world), "sharing memory");
	close(fd);
}

static void operate_bare(struct race *race, const struct comparison *comparison)
{
	if (comparison->collective == PERF_BARRIER)
		limit_barrier(&race->limits);
	else if (comparison->bytes <= LIMITS_EXCHANGE_MAX)
		limit_exchange(&race->limits, comparison->bytes);
	else
		limit_allreduce(&race->limits, comparison->bytes);
}

/* Microseconds an operation. */
static double time_one(struct race *race, const struct comparison *comparison,
		       enum contender contender, uint32_t operations)
{
	struct perf *perf = race->perf;
	enum perf_path path = contender == HOST ? PERF_HOST : PERF_NIC;
	double began;

	perf_path_choose(perf, path);
	limit_barrier(&race->limits);
	began = perf_now_us();
	for (uint32_t i = 0; i < operations; i++) {
		if (contender == BARE)
			operate_bare(race, comparison);
		else
			perf_operate(perf, comparison->collective, comparison->bytes, path);
	}
	return (perf_now_us() - began) / operations;
}

/* As many as fill a round; the first ones set things up. */
static uint32_t choose_operations(struct race *race, const struct comparison *comparison,
				  enum contender contender)
{
	uint32_t operations = 1;

	while (operations < OPERATIONS_MAX) {
		double us = time_one(race, comparison, contender, operations) * operations;

		if (perf_max(race->perf, us) >= ROUND_US / 2)
			break;
		operations *= 2;
	}
	return operations;
}

static int by_value(const void *a_in, const void *b_in)
{
	const double *a = a_in, *b = b_in;

	return (*a > *b) - (*a < *b);
}

static double median(double *values, uint32_t nr)
{
	qsort(values, nr, sizeof(*values), by_value);
	return values[nr / 2];
}

static double median_ratio(const double *above, const double *below, uint32_t nr)
{
	double ratios[ROUNDS];

	for (uint32_t i = 0; i < nr; i++)
		ratios[i] = above[i] / below[i];
	return median(ratios, nr);
}

static void compare(struct race *race, struct comparison *comparison, uint32_t rounds)
{
	struct perf *perf = race->perf;
	double us[CONTENDERS][ROUNDS];
	uint32_t operations[CONTENDERS];

	for (enum contender c = 0; c < CONTENDERS; c++)
		operations[c] = choose_operations(race, comparison, c);
	for (uint32_t round = 0; round < rounds; round++)
		for (enum contender c = 0; c < CONTENDERS; c++)
			us[c][round] = time_one(race, comparison, c, operations[c]);
	for (enum contender c = 0; c < CONTENDERS; c++)
		perf_check(perf, muster_allreduce(perf->world, us[c], us[c], rounds, MUSTER_F64,
						  MUSTER_MAX), "collecting times");
	comparison->nic_over_limit = median_ratio(us[NIC], us[BARE], rounds);
	comparison->host_over_nic = median_ratio(us[HOST], us[NIC], rounds);
	for (enum contender c = 0; c < CONTENDERS; c++)
		comparison->us[c] = median(us[c], rounds);
}

static void print_comparison(const struct perf *perf, const struct comparison *comparison)
{
	const double *us = comparison->us;

	if (perf->rank != 0)
		return;
	if (comparison->name)
		printf("  %-18s", comparison->name);
	else
		printf("  %18" PRIu64, comparison->bytes);
	printf(" %10.3f %10.3f %10.3f %10.2f %10.2f\n", us[BARE], us[NIC], us[HOST],
	       comparison->nic_over_limit, comparison->host_over_nic);
	fflush(stdout);
}

static json_t *comparison_json(const struct comparison *comparison)
{
	json_t *json = json_pack("{s:s, s:I}", "collective",
				 perf_kinds[comparison->collective].name,
				 "bytes", (json_int_t)comparison->bytes);

	for (enum contender c = 0; c < CONTENDERS; c++) {
		char key[16];

		snprintf(key, sizeof(key), "%s_us", contender_names[c]);
		json_object_set_new(json, key, json_real(comparison->us[c]));
	}
	json_object_set_new(json, "nic_over_limit", json_real(comparison->nic_over_limit));
	json_object_set_new(json, "host_over_nic", json_real(comparison->host_over_nic));
	return json;
}

/* Both ranks copy at once, as in an allreduce. Return: GB/s of one. */
static double copy_speed(struct race *race, size_t bytes)
{
	double gb_s[ROUNDS];

	for (uint32_t round = 0; round < ROUNDS; round++) {
		double began;

		limit_barrier(&race->limits);
		began = perf_now_us();
		for (uint32_t i = 0; i < 10; i++)
			limit_copy(&race->limits, bytes);
		gb_s[round] = (double)bytes * 10 / (perf_now_us() - began) / 1e3;
	}
	return median(gb_s, ROUNDS);
}

static FILE *create_file(const char *folder, const char *name)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "we");
	if (!file)
		perf_die("cannot write %s: %s", path, strerror(errno));
	return file;
}

static void close_file(FILE *file, const char *name)
{
	if (ferror(file) | fclose(file))
		perf_die("cannot write %s: %s", name, strerror(errno));
}

static json_t *compare_main(struct race *race)
{
	struct comparison comparisons[] = {
		{ .name = "barrier", .collective = PERF_BARRIER },
		{ .name = "allreduce, 8 B", .collective = PERF_ALLREDUCE, .bytes = 8 },
		{ .name = "allreduce, 1 MiB", .collective = PERF_ALLREDUCE, .bytes = 1 << 20 },
	};
	json_t *json = json_array();
	double copied;

	for (size_t i = 0; i < sizeof(comparisons) / sizeof(comparisons[0]); i++) {
		compare(race, &comparisons[i], ROUNDS);
		print_comparison(race->perf, &comparisons[i]);
		json_array_append_new(json, comparison_json(&comparisons[i]));
	}
	copied = copy_speed(race, 1 << 20);
	if (race->perf->rank == 0)
		printf("# memcpy of 1 MiB, both ranks at once: %.1f GB/s each\n", copied);
	return json;
}

static json_t *compare_sizes(struct race *race, FILE *data)
{
	json_t *json = json_array();

	for (uint64_t bytes = 8; bytes <= LIMITS_BYTES_MAX; bytes *= 2) {
		struct comparison comparison = { .collective = PERF_ALLREDUCE, .bytes = bytes };

		compare(race, &comparison, ROUNDS / 4);
		print_comparison(race->perf, &comparison);
		json_array_append_new(json, comparison_json(&comparison));
		if (data)
			fprintf(data, "%" PRIu64 " %f %f %f\n", bytes, comparison.us[BARE],
				comparison.us[NIC], comparison.us[HOST]);
	}
	return json;
}

static void print_head(const char *what)
{
	printf("#\n# %-18s %10s %10s %10s %10s %10s\n", what, "limit us", "nic us", "host us",
	       "nic/limit", "host/nic");
}

void perf_against_limits(struct perf *perf)
{
	struct race race = { .perf = perf };
	const char *folder = perf->rank == 0 ? perf->options->output : NULL;
	FILE *data = NULL, *file;
	json_t *document;

	if (perf->size != 2)
		perf_die("--against-limits is for 2 ranks, here are %" PRIu32, perf->size);
	share_limits(&race);
	perf_fill(perf, perf->in, perf->options->bytes_max);
	if (perf->rank == 0) {
		perf_header(perf);
		print_head("");
	}
	document = perf_header_json(perf);
	json_object_set_new(document, "against_limits", compare_main(&race));
	if (folder) {
		data = create_file(folder, "bench.dat");
		fprintf(data, "# allreduce of f64: bytes, limit us, nic us, host us\n");
	}
	if (perf->rank == 0)
		print_head("allreduce of f64");
	json_object_set_new(document, "allreduce_by_size", compare_sizes(&race, data));
	if (folder) {
		close_file(data, "bench.dat");
		file = create_file(folder, "bench.json");
		json_dumpf(document, file, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
		close_file(file, "bench.json");
	}
	json_decref(document);
	limits_close(&race.limits);
}
