// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What muster_perf prints: "#" lines that say what was measured where, and one
 * line a size; or the same as one JSON object of schema "muster/1".
 */
#include "perf.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "version.h"

static void cpu_name(char *name, size_t len)
{
	FILE *file = fopen("/proc/cpuinfo", "re");
	char line[256], *colon;

	snprintf(name, len, "unknown CPU");
	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		colon = strchr(line, ':');
		if (!colon || strncmp(line, "model name", 10))
			continue;
		line[strcspn(line, "\n")] = 0;
		snprintf(name, len, "%s", colon + 2);
		break;
	}
	fclose(file);
}

static int nr_cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(1, sizeof(set), &set) ? 0 : CPU_COUNT(&set);
}

static const char *setting(const char *name, const char *unset)
{
	const char *value = getenv(name);

	return value ? value : unset;
}

/* A NIC's wire is not ours to choose, nor to see. */
static const char *wire_name(void)
{
	return strcmp(setting("MUSTER_DEVICE", "local"), "local") ? "of the NIC" :
		setting("MUSTER_WIRE", "ring");
}

json_t *perf_header_json(const struct perf *perf)
{
	char cpu[128], date[32];
	struct utsname system;
	time_t now = time(NULL);
	json_t *json;

	cpu_name(cpu, sizeof(cpu));
	uname(&system);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	json = json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:s, s:s, s:s, s:s}",
			 "schema", "muster/1", "tool", "muster_perf", "version", MUSTER_VERSION,
			 "date", date, "cpu", cpu, "cpus", nr_cpus(), "ranks", (int)perf->size,
			 "device", setting("MUSTER_DEVICE", "local"),
			 "wire", wire_name(), "kernel", system.release,
			 "buffers", perf->options->plain ? "malloc" : "muster_alloc");
	if (json && perf->options->skew_us > 0) {
		json_object_set_new(json, "skew_us", json_real(perf->options->skew_us));
		json_object_set_new(json, "late_rank", json_integer(perf->options->late));
	}
	return json;
}

void perf_header(const struct perf *perf)
{
	json_t *header = perf_header_json(perf);
	const char *version, *date, *cpu, *device, *wire, *kernel, *buffers;
	int cpus, ranks;

	if (!header || json_unpack(header, "{s:s, s:s, s:s, s:i, s:i, s:s, s:s, s:s, s:s}",
				   "version", &version, "date", &date, "cpu", &cpu, "cpus", &cpus,
				   "ranks", &ranks, "device", &device, "wire", &wire,
				   "kernel", &kernel, "buffers", &buffers))
		perf_die("no memory for the header");
	printf("# muster_perf %s, %s\n", version, date);
	printf("# %d ranks, device %s, wire %s, buffers by %s\n", ranks, device, wire, buffers);
	printf("# %d x %s, Linux %s\n", cpus, cpu, kernel);
	if (perf->options->skew_us > 0)
		printf("# rank %" PRIu32 " calls %g us later than the others; times are from then on\n",
		       perf->options->late, perf->options->skew_us);
	json_decref(header);
}

/* As OSU's benchmarks have them, so that what reads theirs reads these. */
static void columns_full(const struct perf *perf, enum perf_collective collective)
{
	const struct perf_options *options = perf->options;

	if (collective == PERF_BARRIER)
		printf("# %16s%18s", "Avg Latency(us)", "Min Latency(us)");
	else
		printf("%-10s%18s%18s", "# Size", "Avg Latency(us)", "Min Latency(us)");
	printf("%18s%12s", "Max Latency(us)", "Iterations");
	if (options->tail)
		printf("%18s%18s%18s%20s", "P50 Tail Lat(us)", "P90 Tail Lat(us)",
		       "P99 Tail Lat(us)", "P99.9 Tail Lat(us)");
	printf("%s\n", options->validate ? "        Validation" : "");
}

static void row_full(const struct perf *perf, const struct perf_result *result)
{
	const struct perf_options *options = perf->options;
	const struct perf_times *times =
		&result->times[options->paths[PERF_NIC] ? PERF_NIC : PERF_HOST];

	if (result->collective != PERF_BARRIER)
		printf("%-10" PRIu64, result->bytes);
	printf("%18.2f%18.2f%18.2f%12" PRIu32, times->rank_avg_us, times->rank_min_us,
	       times->rank_max_us, times->samples * result->batch);
	if (options->tail)
		printf("%18.2f%18.2f%18.2f%20.2f", times->p50_us, times->p90_us, times->p99_us,
		       times->p999_us);
	if (options->validate)
		printf("%18s", result->valid ? "Pass" : "Fail");
	putchar('\n');
	fflush(stdout);
}

void perf_columns(const struct perf *perf, enum perf_collective collective)
{
	const struct perf_options *options = perf->options;

	printf("#\n# %s", perf_kinds[collective].name);
	if (collective != PERF_BARRIER)
		printf(" of %s", perf_type_name(options->type));
	if (perf_kinds[collective].combines)
		printf(", %s", perf_op_name(options->op));
	if (perf_kinds[collective].rooted)
		printf(", root %" PRIu32, options->root);
	if (options->full) {
		printf("; means of each rank's own time; percentiles of the slowest rank's\n");
		columns_full(perf, collective);
		return;
	}
	printf("; times in us, of the slowest rank\n");
	printf("# %8s", "Size");
	for (enum perf_path path = 0; path < PERF_PATHS; path++)
		printf(" | %4s %4s %8s %8s %8s %8s", perf_path_names[path], "avg", "min", "p50",
		       "p99", "MB/s");
	printf(" | %8s %-6s%s %8s  %s\n", "host/nic", "bits", options->validate ? " valid" : "",
	       "samples", "schedule");
}

static double megabytes_a_second(const struct perf_result *result, enum perf_path path)
{
	return (double)result->bytes / result->times[path].avg_us;
}

static double ratio(const struct perf_result *result)
{
	return result->times[PERF_HOST].p50_us / result->times[PERF_NIC].p50_us;
}

/* Which path it was and why, whenever that changes. */
static void print_reasons(const struct perf *perf, const struct perf_result *result)
{
	static const char *const names[] = { "none", "host", "nic", "switch", "bump" };
	static char last[PERF_PATHS][256];

	for (enum perf_path path = 0; path < PERF_PATHS; path++) {
		const struct perf_times *times = &result->times[path];
		char now[256];

		if (!perf->options->paths[path])
			continue;
		snprintf(now, sizeof(now), "%s path taken: %s", names[times->info.path], times->why);
		if (strcmp(now, last[path]))
			printf("# %s\n", now);
		strcpy(last[path], now);
	}
}

static const char *equality(const struct perf_result *result)
{
	if (result->equal)
		return "equal";
	return result->own_order ? "order" : "DIFFER";
}

void perf_row(const struct perf *perf, const struct perf_result *result)
{
	const struct perf_options *options = perf->options;
	bool both = options->paths[PERF_NIC] && options->paths[PERF_HOST];
	const struct perf_times *first = &result->times[options->paths[PERF_NIC] ? PERF_NIC : PERF_HOST];

	print_reasons(perf, result);
	if (options->full) {
		row_full(perf, result);
		return;
	}
	printf("%10" PRIu64, result->bytes);
	for (enum perf_path path = 0; path < PERF_PATHS; path++) {
		const struct perf_times *times = &result->times[path];

		if (options->paths[path])
			printf(" | %9.2f %8.2f %8.2f %8.2f %8.1f", times->avg_us, times->min_us,
			       times->p50_us, times->p99_us, megabytes_a_second(result, path));
		else
			printf(" | %9s %8s %8s %8s %8s", "-", "-", "-", "-", "-");
	}
	if (both)
		printf(" | %8.2f %-6s", ratio(result), equality(result));
	else
		printf(" | %8s %-6s", "-", "-");
	if (options->validate)
		printf(" %-5s", result->valid ? "pass" : "FAIL");
	printf(" %5" PRIu32 "x%-2" PRIu32 "  %s\n", first->samples, result->batch,
	       first->info.schedule);
	fflush(stdout);
}

static json_t *times_json(const struct perf_result *result, enum perf_path path)
{
	const struct perf_times *times = &result->times[path];

	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:i, s:s, s:s, "
			 "s:i, s:i, s:i}",
			 "avg_us", times->avg_us, "min_us", times->min_us,
			 "p50_us", times->p50_us, "p90_us", times->p90_us,
			 "p99_us", times->p99_us, "p999_us", times->p999_us,
			 "max_us", times->max_us, "rank_avg_us", times->rank_avg_us,
			 "rank_min_us", times->rank_min_us, "rank_max_us", times->rank_max_us,
			 "mb_per_s", megabytes_a_second(result, path),
			 "samples", (int)times->samples, "schedule", times->info.schedule,
			 "why", times->why, "sequences", (int)times->info.sequences,
			 "descriptors", (int)times->info.descriptors,
			 "steps", (int)times->info.steps);
}

json_t *perf_result_json(const struct perf *perf, const struct perf_result *result)
{
	const struct perf_options *options = perf->options;
	json_t *json = json_pack("{s:s, s:I, s:i}", "collective",
				 perf_kinds[result->collective].name,
				 "bytes", (json_int_t)result->bytes, "batch", (int)result->batch);

	if (result->collective != PERF_BARRIER)
		json_object_set_new(json, "type", json_string(perf_type_name(options->type)));
	if (perf_kinds[result->collective].combines)
		json_object_set_new(json, "op", json_string(perf_op_name(options->op)));
	if (perf_kinds[result->collective].rooted)
		json_object_set_new(json, "root", json_integer(options->root));
	for (enum perf_path path = 0; path < PERF_PATHS; path++)
		if (options->paths[path])
			json_object_set_new(json, perf_path_names[path], times_json(result, path));
	if (options->paths[PERF_NIC] && options->paths[PERF_HOST]) {
		json_object_set_new(json, "host_over_nic", json_real(ratio(result)));
		json_object_set_new(json, "bits_equal", json_boolean(result->equal));
		json_object_set_new(json, "own_order", json_boolean(result->own_order));
	}
	if (options->validate)
		json_object_set_new(json, "valid", json_boolean(result->valid));
	return json;
}
