// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One rank of the sweep, under muster-run; rank 0 prints what was done.
 *
 * usage: sweep EVERY		one of so many cases at lengths up to 1,000; 1: all
 *        sweep EVERY RANKS	the longer ones, drawn for 1 to RANKS ranks
 */
#include "sweep.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	struct sweep_options options = { .every = argc > 1 ? (uint32_t)atoi(argv[1]) : 0 };
	struct sweep_figures figures;
	struct muster *job;
	uint32_t rank, size;
	double began;

	options.large = argc == 3;
	options.ranks_max = options.large ? (uint32_t)atoi(argv[2]) : 0;
	if (argc > 3 || !options.every || options.ranks_max > SWEEP_RANKS_MAX ||
	    (options.large && !options.ranks_max)) {
		fprintf(stderr, "usage: sweep EVERY [RANKS]\n");
		return 2;
	}
	if (muster_init(&job)) {
		fprintf(stderr, "%s\n", muster_error(NULL));
		return 3;
	}
	rank = muster_comm_rank(muster_world(job));
	size = muster_comm_size(muster_world(job));
	began = now();
	sweep_run(job, &options, &figures);
	if (*figures.why)
		fprintf(stderr, "%s\n", figures.why);
	else if (!rank)
		printf("%" PRIu32 " ranks: %" PRIu64 " cases, %" PRIu64 " operations, %" PRIu64 " of them not for the NIC; %.1f s\n",
		       size, figures.cases, figures.calls, figures.host_only, now() - began);
	muster_finalize(job);
	return *figures.why ? 1 : 0;
}
