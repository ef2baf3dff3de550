// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * MUSTER_MPI_STATS: how many calls of each collective went which way, and how long they took.
 * Rank 0 alone counts and prints, at MPI_Finalize.
 */
#include "shim.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum way { WAY_NIC, WAY_HOST, WAY_MPI, WAYS };

enum { WHYS = 8, WHY_BYTES = 128 };

static struct {
	uint64_t calls[WAYS];
	double seconds[WAYS];
} figures[COLLS];

static uint64_t passed[REASONS];

static struct {
	char words[WHY_BYTES];
	uint64_t calls;
} host_whys[WHYS];

double muster_mpi_now(void)
{
	struct timespec now;

	if (!muster_mpi.stats)
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void count(enum muster_mpi_coll coll, enum way way, double began)
{
	figures[coll].calls[way]++;
	figures[coll].seconds[way] += muster_mpi_now() - began;
}

void muster_mpi_stats_passed(enum muster_mpi_coll coll, enum muster_mpi_reason why, double began)
{
	if (!muster_mpi.stats)
		return;
	pthread_mutex_lock(&muster_mpi.lock);
	passed[why]++;
	count(coll, WAY_MPI, began);
	pthread_mutex_unlock(&muster_mpi.lock);
}

static void host_why(const char *why)
{
	size_t i = 0;

	while (i < WHYS - 1 && host_whys[i].calls && strncmp(host_whys[i].words, why, WHY_BYTES - 1))
		i++;
	if (!host_whys[i].calls++)
		snprintf(host_whys[i].words, WHY_BYTES, "%s", why);
}

void muster_mpi_stats_ended(const struct muster_mpi_op *op)
{
	struct muster_op_info info = { .path = MUSTER_PATH_NIC };

	if (!muster_mpi.stats)
		return;
	pthread_mutex_lock(&muster_mpi.lock);
	muster_comm_last(op->comm->muster, &info);
	if (info.path == MUSTER_PATH_HOST)
		host_why(info.why);
	if (info.path == MUSTER_PATH_NONE)
		passed[REASON_NOTHING]++;
	else
		count(op->coll, info.path == MUSTER_PATH_HOST ? WAY_HOST : WAY_NIC, op->began);
	pthread_mutex_unlock(&muster_mpi.lock);
}

const char *muster_mpi_reason(enum muster_mpi_reason reason)
{
	static const char *const words[REASONS] = {
		[REASON_NONE] = "offloaded",
		[REASON_NOTHING] = "no elements: nothing to do",
		[REASON_ONE_RANK] = "one rank: nothing to do",
		[REASON_ENDING] = "its communicator is being freed",
		[REASON_INVALID] = "arguments that MPI is to refuse",
		[REASON_NO_JOB] = "no Muster job",
		[REASON_INTER] = "an inter-communicator",
		[REASON_OTHER_JOB] = "ranks of another MPI_COMM_WORLD",
		[REASON_NOT_JOINED] = "nonblocking, before the first blocking collective of its communicator",
		[REASON_NO_ROOM] = "no room for another communicator",
		[REASON_DIED] = "a rank has died",
		[REASON_WORLD_ENDED] = "a rank of MPI_COMM_WORLD has died before",
		[REASON_TYPE] = "a type that Muster does not combine so",
		[REASON_GRAPH] = "neighbours that do not name each other",
	};

	return words[reason];
}

const char *muster_mpi_coll_name(enum muster_mpi_coll coll)
{
	static const char *const names[] = {
#define NAME(name) "MPI_" #name,
		MUSTER_MPI_COLLECTIVES(NAME)
#undef NAME
	};

	return names[coll];
}

/* ---- printing ------------------------------------------------------------------------------- */

static void print_row(enum muster_mpi_coll coll)
{
	const uint64_t *calls = figures[coll].calls;
	const double *seconds = figures[coll].seconds;

	if (!calls[WAY_NIC] && !calls[WAY_HOST] && !calls[WAY_MPI])
		return;
	fprintf(stderr, "muster-mpi: %-24s %10llu %10.6f %10llu %10.6f %10llu %10.6f\n",
		muster_mpi_coll_name(coll),
		(unsigned long long)calls[WAY_NIC], seconds[WAY_NIC],
		(unsigned long long)calls[WAY_HOST], seconds[WAY_HOST],
		(unsigned long long)calls[WAY_MPI], seconds[WAY_MPI]);
}

static void print_total(void)
{
	uint64_t calls[WAYS] = { 0 }, all, idle = passed[REASON_ONE_RANK];

	for (size_t coll = 0; coll < COLLS; coll++)
		for (int way = 0; way < WAYS; way++)
			calls[way] += figures[coll].calls[way];
	all = calls[WAY_NIC] + calls[WAY_HOST] + calls[WAY_MPI] - idle;
	fprintf(stderr, "muster-mpi: offloaded %llu of %llu calls with several ranks (%.1f %%)\n",
		(unsigned long long)calls[WAY_NIC], (unsigned long long)all,
		all ? 100.0 * (double)calls[WAY_NIC] / (double)all : 100.0);
}

void muster_mpi_stats_print(void)
{
	fprintf(stderr, "muster-mpi: %-24s %10s %10s %10s %10s %10s %10s\n", "rank 0: calls, seconds",
		"offloaded", "", "host path", "", "MPI", "");
	for (size_t coll = 0; coll < COLLS; coll++)
		print_row(coll);
	print_total();
	for (size_t i = 0; i < WHYS && host_whys[i].calls; i++)
		fprintf(stderr, "muster-mpi: host path: %llu: %s\n",
			(unsigned long long)host_whys[i].calls, host_whys[i].words);
	for (int i = 0; i < REASONS; i++)
		if (passed[i])
			fprintf(stderr, "muster-mpi: %s: %llu: %s\n", i == REASON_NOTHING ? "neither" : "MPI", (unsigned long long)passed[i],
				muster_mpi_reason(i));
	if (*muster_mpi.no_job)
		fprintf(stderr, "muster-mpi: no Muster job: %s\n", muster_mpi.no_job);
}
