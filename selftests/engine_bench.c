// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * engine_bench - the Tianhe paper's figures 5 and 6, in modelled time (engine_world.h).
 *
 * usage: engine_bench [--quick]
 *
 * Broadcast (double tree), reduce (vector halving, distance doubling, binomial) and allreduce
 * (Rabenseifner) of doubles over 32 nodes, 1, 8 and 32 tasks at once, 256 bytes to 1 MiB: the
 * time of engines and of hosts, how many times faster, and how full a unit's buffer gets. Last a
 * broadcast over 5 levels whose ranks wait for the whole, as the paper's do, or forward pulses, or
 * fragments. All results must have the schedule's bits. --quick: one size and number of tasks of each.
 */
#include <stdio.h>
#include <string.h>

#include "engine_world.h"

static const uint64_t sizes[] = {
	256, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 48 << 10, 64 << 10, 128 << 10, 256 << 10,
	384 << 10, 512 << 10, 768 << 10, 1 << 20,
};
static const uint32_t tasks[] = { 1, 8, 32 };
static const struct {
	enum muster_coll coll;
	const char *algorithm, *name, *paper;
} operations[] = {
	{ MUSTER_COLL_BROADCAST, "double-tree", "broadcast",
	  "2.11 at 256 B, 1 task; 1.3 at 1 MiB, 32 tasks" },
	{ MUSTER_COLL_REDUCE, "halving-doubling", "reduce", "1.46 to 2.42" },
	{ MUSTER_COLL_ALLREDUCE, "rabenseifner", "allreduce", "a little more than reduce" },
};

enum {
	SIZES = sizeof(sizes) / sizeof(sizes[0]), TASKS = sizeof(tasks) / sizeof(tasks[0]),
	OPERATIONS = sizeof(operations) / sizeof(operations[0]),
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

int main(int argc, char **argv)
{
	bool quick = argc > 1 && !strcmp(argv[1], "--quick");

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
	return !good;
}
