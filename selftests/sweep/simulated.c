// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The sweep of more ranks than a machine has use for, in the simulated world: coroutines that
 * run the library, engines and wires as they are, in virtual time. The seed draws wires,
 * buffers and what overtakes what.
 *
 * usage: simulated RANKS EVERY [SEED [PART]]
 */
#include "sweep.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../dst/dst.h"

static struct sweep_options options;
static struct sweep_figures rank_0;		/* as far as it is */

static void lives(void *opaque)
{
	dst_process_lives(opaque);
}

static void program(struct dst_process *process)
{
	struct dst_rank *rank = dst_process_rank(process);
	struct sweep_options mine = options;
	struct sweep_figures own, *figures = rank->index ? &own : &rank_0;
	struct muster *job;

	mine.each = lives;
	mine.opaque = process;
	if (dst_process_join(process, &job)) {
		dst_fail(rank->world, "rank %u: %s", rank->index, muster_error(NULL));
		return;
	}
	sweep_run(job, &mine, figures);
	if (*figures->why)
		dst_fail(rank->world, "%s", figures->why);
	else
		muster_finalize(job);
}

int main(int argc, char **argv)
{
	uint32_t ranks = argc > 2 ? (uint32_t)atoi(argv[1]) : 0;
	uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
	struct dst_world *w = dst_world_new();
	bool good;

	options.every = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
	options.part = argc > 4 ? (uint32_t)atoi(argv[4]) : 0;
	if (!w || ranks < 2 || ranks > SWEEP_RANKS_MAX || options.part >= options.every) {
		fprintf(stderr, "usage: simulated RANKS EVERY [SEED [PART]]\n");
		return 2;
	}
	w->library = true;
	w->program = program;
	w->many = ranks;
	good = dst_world_run(w, seed);
	if (good)
		printf("%" PRIu32 " simulated ranks: %" PRIu64 " cases, %" PRIu64 " operations, %" PRIu64 " of them not for the NIC; %" PRIu64 " packets\n",
		       ranks, rank_0.cases, rank_0.calls, rank_0.host_only, w->nr_packets);
	else
		printf("seed %" PRIu64 " failed %s; rank 0 is in its case %" PRIu64 ", operation %" PRIu64 "\n", seed, w->why,
		       rank_0.cases, rank_0.calls);
	dst_world_free(w);
	return good ? 0 : 1;
}
