// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What it costs a rank to make its own part of a schedule: the walk alone, the plan
 * of the host path, and the descriptors, where the stages suffice. All by itself:
 * there are no other ranks, and no limit is judged here. Times are the processor's; those of
 * the walk are the rank's whose messages cost most.
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "dev.h"
#include "host_plan.h"
#include "part.h"

enum { RANKS = 65536, TURNS = 5, TURN_NS = 3000000 };

static const uint32_t some_ranks[] = {
	0, 1, 2, 1023, 1024, RANKS / 2 - 1, RANKS / 2, RANKS / 2 + 1, RANKS - 2, RANKS - 1,
};

static struct muster_address *members;

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1e9 + now.tv_nsec;
}

static uint64_t walk(const struct muster_schedule *schedule, uint32_t rank, uint32_t *slots)
{
	struct muster_message message;
	struct muster_part part;
	uint64_t nr = 0;

	muster_part_begin(&part, schedule, rank, UINT32_MAX, NULL);
	for (; muster_part_next(&part, &message); nr++)
		*slots += message.slot;
	muster_part_end(&part);
	return nr;
}

/* Nanoseconds for each message of a rank's part, set-up and all, walked again and again. */
static double time_turn(const struct muster_schedule *schedule, uint32_t rank)
{
	static volatile uint32_t sink;
	double begin = now_ns(), end;
	uint32_t slots = 0;
	uint64_t nr = 0;

	do {
		uint64_t enough = nr + 10000;	/* the clock costs more than a small part */

		while (nr < enough)
			nr += walk(schedule, rank, &slots);
		end = now_ns();
	} while (end - begin < TURN_NS);
	sink = slots;
	(void)sink;
	return (end - begin) / nr;
}

/* The least of some turns: the rest is others' use of the processor. */
static double time_rank(const struct muster_schedule *schedule, uint32_t rank)
{
	double least = time_turn(schedule, rank);

	for (int i = 1; i < TURNS; i++) {
		double ns = time_turn(schedule, rank);

		least = ns < least ? ns : least;
	}
	return least;
}

/* Of some ranks the one whose messages cost most, and how many it has. */
static double time_walks(const struct muster_schedule *schedule, uint32_t *worst, uint64_t *nr)
{
	uint32_t slots = 0;
	double most = 0;

	for (size_t i = 0; i < sizeof(some_ranks) / sizeof(some_ranks[0]); i++) {
		double ns = time_rank(schedule, some_ranks[i]);

		if (ns > most)
			*worst = some_ranks[i];
		most = ns > most ? ns : most;
	}
	*nr = walk(schedule, *worst, &slots);
	return most;
}

static void print_plan(const struct muster_schedule *schedule)
{
	struct muster_plan *plan;
	size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
	double begin = now_ns();

	if (muster_plan_create(schedule, 1, &plan))
		return;
	begin = now_ns() - begin;
	printf("  plan %8.0f us %8.1f KiB", begin / 1e3,
	       (mallinfo2().uordblks + mallinfo2().hblkhd - before) / 1024.0);
	muster_plan_free(plan);
}

static void print_program(const struct muster_schedule *schedule, uint64_t bytes)
{
	struct muster_lower_params params = {
		.rank = 1, .count = bytes / 8, .type = MUSTER_DTYPE_F64, .op = MUSTER_REDOP_SUM,
		.addresses = members,
	};
	struct muster_program *program;
	char why[200];
	double begin = now_ns();

	if (muster_schedule_lower(schedule, &params, &program, why, sizeof(why))) {
		printf("  (%s)\n", why);
		return;
	}
	printf("  program %8.0f us %5" PRIu32 " descriptors\n", (now_ns() - begin) / 1e3,
	       program->nr_descs);
	muster_program_free(program);
}

static void print_one(const char *name, enum muster_coll coll)
{
	struct muster_schedule *schedule;
	uint32_t rank = 0;
	char why[200];
	uint64_t nr;
	double ns;

	if (muster_schedule_by_rank(name, coll, RANKS, 0, 0, &schedule, why, sizeof(why)))
		return;
	ns = time_walks(schedule, &rank, &nr);
	printf("%-18s %-14s rank %5" PRIu32 " %8" PRIu64 " messages  walk %5.1f ns each, %zu bytes",
	       name, muster_coll_name(coll), rank, nr, ns, sizeof(struct muster_part));
	print_plan(schedule);
	print_program(schedule, 1 << 20);
	muster_schedule_free(schedule);
}

int main(void)
{
	const char *name;

	members = calloc(RANKS, sizeof(*members));
	if (!members)
		return 1;
	printf("The own part of a rank among %d; program: 1 MiB\n", RANKS);
	for (uint32_t i = 0; (name = muster_schedule_name(i)); i++)
		for (enum muster_coll coll = MUSTER_COLL_BARRIER; coll < MUSTER_COLL_END; coll++)
			print_one(name, coll);
	free(members);
	return 0;
}
