// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * muster-limits: the bare limits of the machine (limits.h) by themselves, between
 * two processes on two CPUs, without the library. muster_perf --against-limits
 * measures the same beside Muster.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "limits.h"

enum { ROUNDS = 201 };

static double now_us(void)
{
	return (double)muster_clock_ns() / 1e3;
}

/* Each side on a CPU of its own. Return: whether there are two. */
static int bind_side(uint32_t self)
{
	cpu_set_t all, one;
	int cpu = -1;

	if (sched_getaffinity(0, sizeof(all), &all) || CPU_COUNT(&all) < 2)
		return 0;
	do
		cpu++;
	while (!CPU_ISSET(cpu, &all) || self--);
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return !sched_setaffinity(0, sizeof(one), &one);
}

struct limit {
	const char *name;
	size_t bytes;
	uint32_t operations;		/* by round */
	void (*run)(struct limits *limits, size_t bytes);
};

static void run_barrier(struct limits *limits, size_t bytes)
{
	(void)bytes;
	limit_barrier(limits);
}

static const struct limit table[] = {
	{ "barrier", 0, 2000, run_barrier },
	{ "allreduce, 8 B", 8, 2000, limit_exchange },
	{ "allreduce, 8 KiB", 8 << 10, 500, limit_allreduce },
	{ "allreduce, 64 KiB", 64 << 10, 100, limit_allreduce },
	{ "allreduce, 1 MiB", 1 << 20, 10, limit_allreduce },
	{ "memcpy, 64 KiB", 64 << 10, 100, limit_copy },
	{ "memcpy, 1 MiB", 1 << 20, 10, limit_copy },
	{ "memcpy, 4 MiB", 4 << 20, 3, limit_copy },
};

static int by_value(const void *a_in, const void *b_in)
{
	const double *a = a_in, *b = b_in;

	return (*a > *b) - (*a < *b);
}

static void measure(struct limits *limits, const struct limit *limit)
{
	double us[ROUNDS];

	for (int round = 0; round < ROUNDS; round++) {
		double began;

		limit_barrier(limits);
		began = now_us();
		for (uint32_t i = 0; i < limit->operations; i++)
			limit->run(limits, limit->bytes);
		us[round] = (now_us() - began) / limit->operations;
	}
	if (limits->self)
		return;
	qsort(us, ROUNDS, sizeof(us[0]), by_value);
	printf("%-20s %10.3f %10.3f", limit->name, us[ROUNDS / 2], us[ROUNDS / 20]);
	if (limit->bytes)
		printf(" %10.2f", (double)limit->bytes / us[ROUNDS / 2] / 1e3);
	putchar('\n');
	fflush(stdout);
}

static int run_side(int fd, uint32_t self)
{
	struct limits limits;
	int ret = limits_open(&limits, fd, self);

	if (ret) {
		fprintf(stderr, "muster-limits: no shared memory: %s\n", strerror(-ret));
		return 1;
	}
	if (!bind_side(self) && !self)
		printf("# fewer than 2 CPUs: these are not the limits of the machine\n");
	if (!self)
		printf("# %-18s %10s %10s %10s\n", "2 processes", "median us", "p05 us", "GB/s");
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		measure(&limits, &table[i]);
	limits_close(&limits);
	return 0;
}

int main(void)
{
	int fd = limits_create(), status = 0;
	pid_t other;

	if (fd < 0) {
		fprintf(stderr, "muster-limits: no shared memory: %s\n", strerror(-fd));
		return 1;
	}
	other = fork();
	if (other < 0) {
		perror("muster-limits: cannot fork");
		return 1;
	}
	if (other == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		return run_side(fd, 1);
	}
	if (run_side(fd, 0)) {
		kill(other, SIGKILL);
		return 1;
	}
	waitpid(other, &status, 0);
	return status ? 1 : 0;
}
