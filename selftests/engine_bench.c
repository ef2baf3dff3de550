// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * engine_bench - the Tianhe paper's figures 5 and 6, in modelled time (engine_world.h).
 *
 * usage: engine_bench [--quick | --sweep]
 *
 * Broadcast (double tree), reduce (vector halving, distance doubling, binomial) and allreduce
 * (Rabenseifner) of doubles over 32 nodes, 1, 8 and 32 tasks at once, 256 bytes to 1 MiB: the
 * time of engines and of hosts, how many times faster, and how full a unit's buffer gets. Last a
 * broadcast over 5 levels whose ranks wait for the whole, as the paper's do, or forward pulses, or
 * fragments. All results must have the schedule's bits. --quick: one size and number of tasks of each.
 * --sweep: instead, what an allreduce takes with less of what an engine is made of, and with buffers that tasks share or do not.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "engine_world.h"

static const uint64_t sizes[] = {
	256, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 48 << 10, 64 << 10, 128 << 10, 256 << 10,
	384 << 10, 512 << 10, 768 << 10, 1 << 20,
};
static const uint32_t tasks[] = { 1, 8, 32 };
enum { BROADCAST, REDUCE, ALLREDUCE, OPERATIONS };
static const struct {
	enum muster_coll coll;
	const char *algorithm, *name, *paper;
} operations[] = {
	[BROADCAST] = { MUSTER_COLL_BROADCAST, "double-tree", "broadcast",
	  "2.11 at 256 B, 1 task; 1.3 at 1 MiB, 32 tasks" },
	[REDUCE] = { MUSTER_COLL_REDUCE, "halving-doubling", "reduce", "1.46 to 2.42" },
	[ALLREDUCE] = { MUSTER_COLL_ALLREDUCE, "rabenseifner", "allreduce", "a little more than reduce" },
};

enum {
	SIZES = sizeof(sizes) / sizeof(sizes[0]), TASKS = sizeof(tasks) / sizeof(tasks[0]),
};

static bool good = true;

static bool run(const struct world_case *what, struct world_result *result)
{
	if (world_run(what, result) || !result->exact || result->dropped) {
		printf("%s of %llu bytes, %u tasks: wrong\n", what->algorithm,
		       (unsigned long long)what->bytes, what->tasks);
		good = false;
		return false;
	}
	return true;
}

static void line(uint32_t operation, uint64_t bytes, uint32_t nr)
{
	const struct world_case what = {
		.coll = operations[operation].coll, .algorithm = operations[operation].algorithm,
		.bytes = bytes, .tasks = nr,
	};
	struct world_result result;

	if (!run(&what, &result))
		return;
	printf("%-10s %5u %8llu %11.2f %11.2f %8.2f %8.1f\n", operations[operation].name, nr,
	       (unsigned long long)bytes, result.us, result.host_us, result.host_us / result.us,
	       100 * result.occupancy);
	fflush(stdout);
}

/* A binary tree: five levels below the root. In us; 0: it went wrong. */
static double five_levels(uint64_t bytes, bool whole, bool pulses)
{
	const struct world_case what = {
		.coll = MUSTER_COLL_BROADCAST, .algorithm = "double-tree", .bytes = bytes, .tasks = 1,
		.one_tree = true, .whole = whole, .pulses = pulses,
	};
	struct world_result result;

	return run(&what, &result) ? result.us : 0;
}

static void forwards(uint64_t bytes)
{
	double whole = five_levels(bytes, true, true), pulses = five_levels(bytes, false, true);
	double fragments = five_levels(bytes, false, false);

	if (good)
		printf("# %llu bytes over 5 levels: %.1f us when each rank waits for the whole, %.1f us by pulses: %.2f times, %.1f us by fragments: %.2f times\n",
		       (unsigned long long)bytes, whole, pulses, whole / pulses, fragments,
		       whole / fragments);
}

#define MODEL(word, name) word, offsetof(struct muster_engine_model, name)

/* Pulses matter where a message has many: in an allreduce of 1 MiB it has one. */
static const struct {
	const char *word;
	size_t at;
	uint32_t operation, tasks, values[8];	/* as many as are not 0 */
	uint64_t sizes[3];
} sweeps[] = {
	{ MODEL("units", units), ALLREDUCE, 32, { 1, 2, 3, 4, 6, 8 }, { 256, 8 << 10, 64 << 10 } },
	{ MODEL("buffer", buffer), ALLREDUCE, 8,
	  { MUSTER_ENGINE_NO_BUFFER, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10 },
	  { 8 << 10, 64 << 10, 512 << 10 } },
	{ MODEL("window", window), ALLREDUCE, 1, { 1, 2, 3, 4, 6, 8 }, { 256, 8 << 10, 64 << 10 } },
	{ MODEL("pulses", pulses), BROADCAST, 1, { 1, 2, 3, 4 }, { 256 << 10, 512 << 10, 1 << 20 } },
};

static const uint64_t shared_sizes[] = { 64 << 10, 512 << 10 };

enum { SWEEPS = sizeof(sweeps) / sizeof(sweeps[0]) };

/* One of a sweep, under the word and value that it is of. */
static void row(const char *word, uint32_t value, uint32_t operation, struct world_case *what)
{
	struct world_result result;

	what->coll = operations[operation].coll;
	what->algorithm = operations[operation].algorithm;
	if (!run(what, &result))
		return;
	printf("%-8s %9u %10s %8llu %5u %11.2f %11.1f %8.1f\n", word, value, operations[operation].name,
	       (unsigned long long)what->bytes, what->tasks, result.us, what->tasks * 1e3 / result.us,
	       100 * result.occupancy);
	fflush(stdout);
}

static void sweep_line(uint32_t sweep, uint32_t value, uint64_t bytes)
{
	struct world_case what = { .bytes = bytes, .tasks = sweeps[sweep].tasks };

	memcpy((char *)&what.model + sweeps[sweep].at, &value, sizeof(value));
	row(sweeps[sweep].word, value == MUSTER_ENGINE_NO_BUFFER ? 0 : value, sweeps[sweep].operation, &what);
}

/* So many of 32 tasks run an allreduce, and the others rest: what is a buffer that all share worth? */
static void shared_line(bool partitions, uint32_t nr, uint64_t bytes)
{
	struct world_case what = {
		.bytes = bytes, .tasks = nr, .idle = WORLD_TASKS_MAX - nr, .partitions = partitions,
	};

	row(partitions ? "fixed" : "shared", nr, ALLREDUCE, &what);
}

/* An engine's parts, one at a time: what an architect would ask first. */
static void sweep(void)
{
	printf("%-8s %9s %10s %8s %5s %11s %11s %8s\n", "part", "value", "operation", "bytes",
	       "tasks", "engine us", "per ms", "buffer %");
	for (uint32_t s = 0; s < SWEEPS; s++)
		for (uint32_t b = 0; b < 3; b++)
			for (uint32_t v = 0; v < 8 && sweeps[s].values[v]; v++)
				sweep_line(s, sweeps[s].values[v], sweeps[s].sizes[b]);
	for (uint32_t b = 0; b < 2; b++)
		for (uint32_t nr = 1; nr <= WORLD_TASKS_MAX; nr *= 2) {
			shared_line(false, nr, shared_sizes[b]);
			shared_line(true, nr, shared_sizes[b]);
		}
}

static void figures(bool quick)
{
	printf("# link %.1f bytes/ns and %.0f ns; bus %.1f bytes/ns and %.0f ns; unit %.0f ns a packet and %.1f bytes/ns\n",
	       world_costs.link_bytes_ns, world_costs.link_ns, world_costs.bus_bytes_ns,
	       world_costs.bus_ns, world_costs.packet_ns, world_costs.sum_bytes_ns);
	printf("# host: %.0f ns a descriptor, %.0f ns until it polls, %.1f bytes/ns summed\n",
	       world_costs.cpu_ns, world_costs.poll_ns, world_costs.host_sum_bytes_ns);
	for (uint32_t o = 0; o < OPERATIONS; o++)
		printf("# the paper's %s: %s\n", operations[o].name, operations[o].paper);
	printf("%-10s %5s %8s %11s %11s %8s %8s\n", "operation", "tasks", "bytes", "engine us", "host us",
	       "times", "buffer %");
	for (uint32_t o = 0; o < OPERATIONS; o++)
		for (uint32_t t = 0; t < (quick ? 1 : TASKS); t++)
			for (uint32_t s = quick ? 4 : 0; s < (quick ? 5 : SIZES); s++)
				line(o, sizes[s], tasks[t]);
	for (uint32_t s = quick ? SIZES - 1 : 4; s < SIZES; s++)
		forwards(sizes[s]);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "--sweep"))
		sweep();
	else
		figures(argc > 1 && !strcmp(argv[1], "--quick"));
	return !good;
}
