// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * muster_count: what an allreduce costs a rank on the NIC path, called, or started
 * again and asked for (persistent), and on the host path, counted: doorbells, interrupts and DMA
 * by the device, instructions by the emulated CPU. For ranks in guests, whose times say little, as
 * their CPU is emulated and the device is not. Started by muster-run --vm --count.
 */
#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <muster.h>

#include "clock.h"

#define SYSFS "/sys/class/infiniband"

enum {
	WARMUP = 10,
	OPERATIONS_MIN = 20,
	OPERATIONS_MAX = 1000,
	SECONDS = 2,			/* about so long by size and path */
	ASKS_US = 200,
	COUNTERS_SETTLE_US = 20000,	/* the kernel asks the device again after 12 ms */
};

enum count {
	DOORBELLS,
	INTERRUPTS,
	DMA_READ,
	DMA_WRITE,
	DEVICE_COUNTS,
	INSTRUCTIONS = DEVICE_COUNTS,
	COUNTS,
};

static const char *const count_files[DEVICE_COUNTS] = {
	"doorbells", "interrupts", "dma_read_bytes", "dma_write_bytes",
};

static const char help[] =
	"Usage: muster-run -n RANKS --vm --count muster_count [BYTES]...\n"
	"Count what an allreduce (f64, sum) of each size costs a rank: called, on the NIC path and on\n"
	"the host path; and persistent on the NIC path (again), of one that has no interrupt wake it, but\n"
	"asks now and then whether it has ended. Doorbells, interrupts, DMA bytes, instructions (8 1048576).\n";

static struct muster *job;
static struct muster_comm *world;
static uint32_t rank, size;
static int instructions = -1;		/* the launcher's port that tells them */
static char nic[256];			/* its name under SYSFS */

static void __attribute__((noreturn)) die(const char *what, const char *why)
{
	fprintf(stderr, "muster_count: %s: %s\n", what, why);
	exit(1);
}

static void check(int ret, const char *what)
{
	if (ret)
		die(what, muster_error(job));
}

/* ---- counters ------------------------------------------------------------------ */

static uint64_t read_device(const char *name)
{
	char path[512];
	uint64_t value;
	FILE *file;

	snprintf(path, sizeof(path), SYSFS "/%s/ports/1/hw_counters/%s", nic, name);
	file = fopen(path, "re");
	if (!file || fscanf(file, "%" SCNu64, &value) != 1)
		die(path, "this counter cannot be read");
	fclose(file);
	return value;
}

static uint64_t read_instructions(void)
{
	uint64_t value;
	size_t got = 0;

	if (write(instructions, "?", 1) != 1)
		die("MUSTER_INSTRUCTIONS", strerror(errno));
	while (got < sizeof(value)) {
		ssize_t n = read(instructions, (char *)&value + got, sizeof(value) - got);

		if (n <= 0)
			die("MUSTER_INSTRUCTIONS", n ? strerror(errno) : "the launcher is gone");
		got += (size_t)n;
	}
	return value;
}

/* Instructions are read next to what is counted: last before it, first after it. */
static void read_before(uint64_t counts[COUNTS])
{
	usleep(COUNTERS_SETTLE_US);
	for (int i = 0; i < DEVICE_COUNTS; i++)
		counts[i] = read_device(count_files[i]);
	counts[INSTRUCTIONS] = read_instructions();
}

static void read_after(uint64_t counts[COUNTS])
{
	counts[INSTRUCTIONS] = read_instructions();
	usleep(COUNTERS_SETTLE_US);
	for (int i = 0; i < DEVICE_COUNTS; i++)
		counts[i] = read_device(count_files[i]);
}

static void open_counters(void)
{
	const char *port = getenv("MUSTER_INSTRUCTIONS"), *name = getenv("MUSTER_NIC");
	DIR *dir = opendir(SYSFS);
	struct dirent *entry;

	while (!name && dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			name = entry->d_name;
	if (!name || !port || !*port)
		die("there is nothing to count with", "run it under muster-run --vm --count");
	snprintf(nic, sizeof(nic), "%s", name);
	if (dir)
		closedir(dir);
	instructions = open(port, O_RDWR | O_CLOEXEC);
	if (instructions < 0)
		die(port, strerror(errno));
}

/* ---- one measurement ------------------------------------------------------------- */

struct cost {
	uint32_t operations;
	double us;			/* an operation */
	double counts[COUNTS];		/* of an operation and rank */
};

/* NULL: it is called. */
static struct muster_request *persistent;

static double now_us(void)
{
	return (double)muster_clock_ns() / 1e3;
}

static void run_again(void)
{
	bool done = false;

	check(muster_start(persistent), "starting an allreduce");
	for (;;) {
		check(muster_test(persistent, &done), "allreduce");
		if (done)
			return;
		usleep(ASKS_US);	/* guests that only ask take the processors from those that are to answer */
	}
}

/* Microseconds an operation, of the slowest rank. */
static double operate(const void *in, void *out, uint64_t bytes, uint32_t times)
{
	double start = now_us(), us;

	for (uint32_t i = 0; i < times; i++)
		if (persistent)
			run_again();
		else
			check(muster_allreduce(world, in, out, bytes / sizeof(double), MUSTER_F64,
					       MUSTER_SUM), "allreduce");
	us = (now_us() - start) / (times ? times : 1);
	return us;
}

/* Sum over the ranks of what times operations add to the counters. */
static void count(const void *in, void *out, uint64_t bytes, uint32_t times,
		  uint64_t sums[COUNTS], double *us)
{
	uint64_t before[COUNTS], after[COUNTS];

	check(muster_barrier(world), "barrier");
	read_before(before);
	*us = operate(in, out, bytes, times);
	read_after(after);
	for (int i = 0; i < COUNTS; i++)
		after[i] -= before[i];
	check(muster_allreduce(world, after, sums, COUNTS, MUSTER_U64, MUSTER_SUM), "allreduce");
	check(muster_allreduce(world, us, us, 1, MUSTER_F64, MUSTER_MAX), "allreduce");
}

static uint32_t choose_times(double us)
{
	double times = SECONDS * 1e6 / us;

	check(muster_allreduce(world, &times, &times, 1, MUSTER_F64, MUSTER_MIN), "allreduce");
	if (times < OPERATIONS_MIN)
		return OPERATIONS_MIN;
	return times > OPERATIONS_MAX ? OPERATIONS_MAX : (uint32_t)times;
}

/* Reading the counters counts too; it is measured and taken off. */
static void measure(enum muster_offload path, bool again, uint64_t bytes, struct cost *cost)
{
	uint64_t sums[COUNTS], reading[COUNTS];
	void *in, *out;
	double us;

	check(muster_alloc(job, bytes, &in), "allocating memory");
	check(muster_alloc(job, bytes, &out), "allocating memory");
	check(muster_comm_offload(world, path), "choosing the path");
	if (again)
		check(muster_allreduce_init(world, in, out, bytes / sizeof(double), MUSTER_F64,
					    MUSTER_SUM, &persistent), "preparing an allreduce");
	cost->operations = choose_times(operate(in, out, bytes, WARMUP));
	count(in, out, bytes, 0, reading, &us);
	count(in, out, bytes, cost->operations, sums, &cost->us);
	for (int i = 0; i < COUNTS; i++)
		cost->counts[i] = ((double)sums[i] - (double)reading[i]) / cost->operations / size;
	if (again)
		check(muster_request_free(persistent), "giving it back");
	persistent = NULL;
	muster_free(job, in);
	muster_free(job, out);
}

static void print(const char *path, uint64_t bytes, const struct cost *cost)
{
	printf("%9" PRIu64 "  %-5s %10.2f %10.2f %12.0f %12.0f %13.0f %11.0f %11u\n", bytes, path,
	       cost->counts[DOORBELLS], cost->counts[INTERRUPTS], cost->counts[DMA_READ],
	       cost->counts[DMA_WRITE], cost->counts[INSTRUCTIONS], cost->us, cost->operations);
	fflush(stdout);
}

static void run(uint64_t bytes)
{
	struct cost cost;

	measure(MUSTER_OFFLOAD_FORCE, false, bytes, &cost);
	if (!rank)
		print("nic", bytes, &cost);
	measure(MUSTER_OFFLOAD_FORCE, true, bytes, &cost);
	if (!rank)
		print("again", bytes, &cost);
	measure(MUSTER_OFFLOAD_OFF, false, bytes, &cost);
	if (!rank)
		print("host", bytes, &cost);
}

static uint64_t parse_bytes(const char *text)
{
	char *end;
	uint64_t bytes = strtoull(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end || bytes < 8 || bytes % 8 || bytes > 1 << 30)
		die(text, "sizes are whole multiples of 8, at most 1073741824");
	return bytes;
}

int main(int argc, char **argv)
{
	if (argc > 1 && argv[1][0] == '-') {
		fputs(help, strcmp(argv[1], "--help") ? stderr : stdout);
		return strcmp(argv[1], "--help") ? 2 : 0;
	}
	for (int i = 1; i < argc; i++)
		parse_bytes(argv[i]);
	open_counters();
	if (muster_init(&job))
		die("joining the job", muster_error(NULL));
	world = muster_world(job);
	rank = muster_comm_rank(world);
	size = muster_comm_size(world);
	if (!rank)
		printf("Allreduce of f64, sum, %" PRIu32 " ranks; all but the times of one "
		       "operation and rank\n\n%9s  %-5s %10s %10s %12s %12s %13s %11s %11s\n", size, "bytes",
		       "path", "doorbells", "interrupts", "DMA read B", "DMA write B",
		       "instructions", "us", "operations");
	if (argc == 1) {
		run(8);
		run(1 << 20);
	}
	for (int i = 1; i < argc; i++)
		run(parse_bytes(argv[i]));
	muster_finalize(job);
	return 0;
}
