// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * muster_topology: the links of a running job, measured one after the other while all
 * else is quiet, as a topology file for muster-synth. A link's bandwidth counts in
 * units of the slowest; what links share is not measured.
 *
 * usage: muster-run -n RANKS muster_topology [OPTION]...
 */
#include <err.h>
#include <getopt.h>
#include <math.h>
#include <muster.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "version.h"

enum { RANKS_MAX = 64, BANDWIDTH_MAX = 64, TIMES = 16 };

static const char help[] =
	"Usage: muster-run -n RANKS muster_topology [OPTION]...\n"
	"Rank 0 writes the job's links, as measured, as a topology file for muster-synth.\n"
	"  -o, --output=FILE  instead of standard output\n"
	"  -n, --name=NAME    of the topology (measured)\n"
	"  -s, --bytes=BYTES  of a message (1048576)\n"
	"  -h, --help  -V, --version\n";

static const struct option options[] = {
	{ "output", required_argument, NULL, 'o' }, { "name", required_argument, NULL, 'n' },
	{ "bytes", required_argument, NULL, 's' }, { "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' }, { 0 },
};

static const char *output, *name = "measured";
static size_t bytes = 1 << 20;
static struct muster *job;
static void *buffer;

static void need(int error)
{
	if (error)
		errx(1, "%s", muster_error(job));
}

static double now(void)
{
	return (double)muster_clock_ns() / 1e9;
}

/*
 * Bytes a second from one rank of a pair to the other: the best of some messages, each
 * with an empty one back, so that the sender sees when it has arrived.
 */
static double measure(struct muster_comm *pair, uint32_t from)
{
	double best = INFINITY;

	for (int i = 0; i < TIMES; i++) {
		double began;

		need(muster_barrier(pair));
		began = now();
		need(muster_broadcast(pair, buffer, bytes, MUSTER_I8, from));
		need(muster_barrier(pair));
		best = fmin(best, now() - began);
	}
	return bytes / best;
}

static void measure_pair(const uint32_t both[2], uint32_t ranks, double *speeds)
{
	struct muster_comm *pair;

	need(muster_comm_create_group(muster_world(job), 2, both, 0, &pair));
	for (uint32_t from = 0; from < 2; from++)
		speeds[both[from] * ranks + both[!from]] = measure(pair, from);
	muster_comm_free(pair);
}

/* All ranks come along; a rank has the speeds of its own links. */
static void measure_all(uint32_t ranks, uint32_t rank, double *speeds)
{
	for (uint32_t a = 0; a < ranks; a++)
		for (uint32_t b = a + 1; b < ranks; b++) {
			const uint32_t both[2] = { a, b };

			if (rank == a || rank == b)
				measure_pair(both, ranks, speeds);
			need(muster_barrier(muster_world(job)));
		}
}

static void write_topology(uint32_t ranks, const double *speeds)
{
	FILE *out = output ? fopen(output, "we") : stdout;
	double least = INFINITY;

	if (!out)
		err(1, "%s", output);
	for (uint32_t i = 0; i < ranks * ranks; i++)
		if (speeds[i] > 0)
			least = fmin(least, speeds[i]);
	fprintf(out, "muster-topology 1\nname %s\nnodes %u\n", name, ranks);
	for (uint32_t from = 0; from < ranks; from++)
		for (uint32_t to = 0; to < ranks; to++) {
			double speed = speeds[from * ranks + to];

			if (from != to)
				fprintf(out, "link %u -> %u %.0f  # %.1f MB/s\n", from, to,
					fmin(round(speed / least), BANDWIDTH_MAX), speed / 1e6);
		}
	fprintf(out, "end\n");
	if (fflush(out) || ferror(out))
		errx(1, "%s: it could not be written", output ? output : "standard output");
}

static void read_options(int argc, char **argv)
{
	int option;

	while ((option = getopt_long(argc, argv, "o:n:s:hV", options, NULL)) != -1)
		switch (option) {
		case 'o': output = optarg; break;
		case 'n': name = optarg; break;
		case 's': bytes = strtoul(optarg, NULL, 10); break;
		case 'h': fputs(help, stdout); exit(0);
		case 'V': puts("muster_topology " MUSTER_VERSION); exit(0);
		default: exit(2);
		}
	if (optind < argc || !bytes || bytes > 1ul << 30 || !*name || strlen(name) > 31 ||
	    strpbrk(name, " \t\n#"))
		errx(2, "bytes are 1 to 2^30, a name has no blanks and at most 31 letters");
}

int main(int argc, char **argv)
{
	uint32_t ranks, rank;
	double *speeds, *all;

	read_options(argc, argv);
	if (muster_init(&job))
		errx(1, "%s", muster_error(NULL));
	ranks = muster_comm_size(muster_world(job));
	rank = muster_comm_rank(muster_world(job));
	if (ranks < 2 || ranks > RANKS_MAX)
		errx(2, "2 to %d ranks have links to be measured, not %u", RANKS_MAX, ranks);
	speeds = calloc((size_t)ranks * ranks, sizeof(*speeds));
	all = calloc((size_t)ranks * ranks, sizeof(*all));
	if (!speeds || !all)
		errx(1, "no memory");
	need(muster_alloc(job, bytes, &buffer));
	measure_all(ranks, rank, speeds);
	need(muster_allreduce(muster_world(job), speeds, all, (uint64_t)ranks * ranks, MUSTER_F64,
			      MUSTER_MAX));
	if (!rank)
		write_topology(ranks, all);
	muster_free(job, buffer);
	free(all);
	free(speeds);
	muster_finalize(job);
	return 0;
}
