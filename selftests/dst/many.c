// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * As many communicators as a NIC has contexts, in the simulated world: each of all ranks, which run
 * the library and have a NIC each. They are made and used one by one, and what each costs that
 * rests is counted; then they have an allreduce each, all of them outstanding, started in another
 * order on each rank, and are freed in that order; three times. What engines, library and regions
 * hold afterwards is the same each time, to the byte. The seed draws wires and buffers.
 *
 * usage: many COMMUNICATORS RANKS [SEED]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../qemu-device/engine/internal.h"
#include "../counted.h"
#include "dst.h"
#include "muster.h"

enum {
	ROUNDS = 3,
	QUIET_US = 500000,	/* until what was freed is closed with all */
	/* At most, by an engine, of what was given back: a pool, and a burst's entries with their chains. */
	KEPT_BYTES = POOL_KEEP_BYTES +
		     (SPARE_MAX + 1) * (sizeof(struct entry_chunk) + 4 * ENTRIES_CHUNK * sizeof(struct entry *)),
	WARM = 128,		/* communicators of a rank that are ready to run again (MUSTER_WARM_MAX) */
	OWN_BYTES = 1024,	/* of one that rests, in engine and library, */
	MEMBER_BYTES = 16,	/* and of each member */
};

struct holds {
	size_t engines;		/* bytes of all that is in use */
	size_t kept;		/* what was given back, for the next: as much as somebody was late, up to a limit */
	size_t library;		/* whatever else comes from malloc(), but for the world's own */
	uint32_t regions;
};

static uint32_t nr_comms, nr_ranks;
static struct holds half, at_rest, after[ROUNDS];	/* half, and all, are open and rest */

/* The world keeps room for the most packets and events that there ever were. */
static size_t world_bytes(const struct dst_world *w)
{
	size_t bytes = counted_bytes(w->heap);

	for (struct dst_parcel *parcel = w->parcels; parcel; parcel = parcel->next)
		bytes += counted_bytes(parcel);
	return bytes;
}

static struct holds holds_now(const struct dst_world *w)
{
	struct holds holds = { 0 };
	size_t mapped = 0;

	for (uint32_t n = 0; n < w->plan.nodes; n++) {
		holds.kept += muster_engine_kept(w->nodes[n].engine);
		holds.engines += w->nodes[n].allocated;
		mapped += w->nodes[n].mapped;
	}
	holds.engines -= holds.kept;
	for (uint32_t r = 0; r < w->plan.ranks; r++)
		holds.regions += dst_process_regions(&w->ranks[r]);
	holds.library = counted_all() + mapped - holds.engines - holds.kept - world_bytes(w);
	return holds;
}

struct program {
	struct dst_process *process;
	struct dst_rank *rank;
	struct muster *job;
	struct muster_comm **comms;
	struct muster_request **requests;
	int64_t *values;
};

static bool good(const struct program *program, const char *what, int err)
{
	dst_process_lives(program->process);
	if (err)
		dst_fail(program->rank->world, "rank %u: %s: %d: %s", program->rank->index, what, err,
			 muster_error(program->job));
	return !program->rank->world->failed;
}

/* The i-th in an order of this rank's own. */
static uint32_t in_order(const struct program *program, uint32_t i)
{
	uint32_t rank = program->rank->index;
	uint32_t at = (uint32_t)((i + (uint64_t)rank * nr_comms / nr_ranks) % nr_comms);

	return rank % 2 ? nr_comms - 1 - at : at;
}

static void add_up(struct program *program, uint32_t at)
{
	int64_t value = 1;

	if (good(program, "an allreduce", muster_allreduce(program->comms[at], &value, &value, 1,
							   MUSTER_I64, MUSTER_SUM)) &&
	    value != nr_ranks)
		dst_fail(program->rank->world, "rank %u, communicator %" PRIu32 ": sum %" PRId64,
			 program->rank->index, at, value);
}

static void start_all(struct program *program)
{
	bool goes_on = true;

	for (uint32_t i = 0; i < nr_comms && goes_on; i++) {
		uint32_t at = in_order(program, i);

		program->values[at] = (int64_t)at * (program->rank->index + 1);
		goes_on = good(program, "a start",
			       muster_allreduce_start(program->comms[at], &program->values[at],
						      &program->values[at], 1, MUSTER_I64, MUSTER_SUM,
						      &program->requests[at]));
	}
}

static void await_all(struct program *program)
{
	bool goes_on = true;

	for (uint32_t i = 0; i < nr_comms && goes_on; i++) {
		int64_t sum = (int64_t)i * nr_ranks * (nr_ranks + 1) / 2;

		goes_on = good(program, "an allreduce", muster_wait(program->requests[i]));
		if (goes_on && program->values[i] != sum)
			dst_fail(program->rank->world, "rank %u, communicator %" PRIu32 ": sum %" PRId64,
				 program->rank->index, i, program->values[i]);
	}
}

/* All are through, and only then one looks. */
static void look(struct program *program, struct holds *holds)
{
	if (!good(program, "a barrier", muster_barrier(muster_world(program->job))))
		return;
	dst_process_sleep(program->process, program->rank->index ? 2 * QUIET_US : QUIET_US);
	if (!program->rank->index)
		*holds = holds_now(program->rank->world);
}

/* Who is warm is so when half of them rest. */
static void make_all(struct program *program)
{
	struct muster_comm *world = muster_world(program->job);

	for (uint32_t i = 0; i < nr_comms; i++) {
		if (i == nr_comms / 2)
			look(program, &half);
		if (!good(program, "a communicator", muster_comm_dup(world, &program->comms[i])))
			return;
		add_up(program, i);
	}
	look(program, &at_rest);
}

static void round_of(struct program *program, uint32_t round)
{
	make_all(program);
	if (program->rank->world->failed)
		return;
	start_all(program);
	await_all(program);
	for (uint32_t i = 0; i < nr_comms && !program->rank->world->failed; i++)
		muster_comm_free(program->comms[in_order(program, i)]);
	if (good(program, "a round", 0))
		look(program, &after[round]);
}

static void run(struct dst_process *process)
{
	struct program program = {
		.process = process, .rank = dst_process_rank(process),
		.comms = calloc(nr_comms, sizeof(*program.comms)),
		.requests = calloc(nr_comms, sizeof(*program.requests)),
		.values = calloc(nr_comms, sizeof(*program.values)),
	};

	if (!program.comms || !program.requests || !program.values)
		dst_fail(program.rank->world, "no memory");
	else if (good(&program, "the job", dst_process_join(process, &program.job)))
		for (uint32_t i = 0; i < ROUNDS && !program.rank->world->failed; i++)
			round_of(&program, i);
	if (!program.rank->world->failed)
		muster_finalize(program.job);
	free(program.values);
	free(program.requests);
	free(program.comms);
}

/* Of the last two rounds. */
static bool nothing_is_left(void)
{
	const struct holds *a = &after[ROUNDS - 2], *b = &after[ROUNDS - 1];

	return b->regions == a->regions && b->library == a->library && b->engines == a->engines &&
	       b->kept <= (size_t)KEPT_BYTES * nr_ranks;
}

/* Where more became cool meanwhile than were made, nothing is told. */
static bool is_told(size_t half_bytes, size_t bytes)
{
	return bytes >= half_bytes;
}

static size_t rests(size_t half_bytes, size_t bytes)
{
	return (bytes - half_bytes) / ((size_t)(nr_comms - nr_comms / 2) * nr_ranks);
}

static bool rests_cheaply(void)
{
	size_t half_bytes = half.engines + half.library, bytes = at_rest.engines + at_rest.library;

	return nr_comms / 2 < WARM || !is_told(half_bytes, bytes) ||
	       rests(half_bytes, bytes) <= OWN_BYTES + MEMBER_BYTES * nr_ranks;
}

static void print_rest(size_t half_bytes, size_t bytes, const char *of)
{
	if (is_told(half_bytes, bytes))
		printf("%zu bytes of %s each at rest, ", rests(half_bytes, bytes), of);
	else
		printf("nothing told of %s at rest: all of them hold %zu bytes less than half of them did, ", of,
		       half_bytes - bytes);
}

static void print_figures(const struct dst_world *w)
{
	for (uint32_t i = 0; i < ROUNDS; i++)
		printf("after round %" PRIu32 ": %zu bytes in engines and %zu kept for the next, %zu elsewhere, %" PRIu32
		       " regions\n", i + 1, after[i].engines, after[i].kept, after[i].library, after[i].regions);
	printf("%" PRIu32 " communicators of %" PRIu32 " simulated ranks: ", nr_comms + 1, nr_ranks);
	print_rest(half.engines, at_rest.engines, "the engine");
	print_rest(half.library, at_rest.library, "the library");
	printf("%s%" PRIu64 " packets\n", nr_comms / 2 < WARM ? "with what belongs to running; " : "",
	       w->nr_packets);
}

int main(int argc, char **argv)
{
	uint32_t comms = argc > 2 ? (uint32_t)atoi(argv[1]) : 0;
	uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
	struct dst_world *w = dst_world_new();
	bool ran;

	nr_ranks = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
	if (!w || comms < 2 || comms > MUSTER_CONTEXTS_MAX || nr_ranks < 2 || nr_ranks > DST_RANKS_MAX) {
		fprintf(stderr, "usage: many COMMUNICATORS RANKS [SEED]\n");
		return 2;
	}
	nr_comms = comms - 1;	/* the world is one */
	w->library = true;
	w->program = run;
	w->many = nr_ranks;
	w->apart = true;
	ran = dst_world_run(w, seed);
	if (ran)
		print_figures(w);
	else
		printf("seed %" PRIu64 " failed %s\n", seed, w->why);
	dst_world_free(w);
	return ran && nothing_is_left() && rests_cheaply() ? 0 : 1;
}
