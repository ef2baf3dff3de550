// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The examples' collectives on Muster. */
#include "ranks.h"

#include <stdio.h>

#include <muster.h>

const char *const ranks_library = "Muster";
uint32_t ranks_rank, ranks_size;

static struct muster *job;
static struct muster_comm *world;

static const enum muster_type types[] = {
	[RANKS_BYTE] = MUSTER_U8, [RANKS_F32] = MUSTER_F32, [RANKS_F64] = MUSTER_F64,
	[RANKS_U64] = MUSTER_U64,
};

static void check(int ret)
{
	if (ret)
		ranks_die("%s", muster_error(job));
}

void ranks_begin(void)
{
	check(muster_init(&job));
	world = muster_world(job);
	ranks_rank = muster_comm_rank(world);
	ranks_size = muster_comm_size(world);
}

void ranks_end(void)
{
	muster_finalize(job);
}

void *ranks_alloc(size_t bytes)
{
	void *memory;

	check(muster_alloc(job, bytes, &memory));
	return memory;
}

/* usage: TIMED(call): its time is of those inside. */
#define TIMED(call) do {						\
	double began_us = ranks_now_us();				\
	check(call);							\
	ranks_inside_us += ranks_now_us() - began_us;			\
} while (0)

void ranks_broadcast(void *data, uint64_t count, enum ranks_type type, uint32_t root)
{
	TIMED(muster_broadcast(world, data, count, types[type], root));
}

void ranks_sum(void *values, uint64_t count, enum ranks_type type)
{
	TIMED(muster_allreduce(world, values, values, count, types[type], MUSTER_SUM));
}

void ranks_gather(void *all, const uint64_t *counts, enum ranks_type type)
{
	TIMED(muster_allgatherv(world, all, all, counts, NULL, types[type]));
}

void ranks_exchange(const void *in, const uint64_t *in_counts, void *out,
		    const uint64_t *out_counts, enum ranks_type type)
{
	TIMED(muster_alltoallv(world, in, in_counts, NULL, out, out_counts, NULL, types[type]));
}

bool ranks_by_host(void)
{
	check(muster_comm_offload(world, MUSTER_OFFLOAD_OFF));
	return true;
}

void ranks_last(struct ranks_told *told)
{
	static const char *const paths[] = { "none", "host", "NIC", "switch", "bump" };
	struct muster_op_info info;

	muster_comm_last(world, &info);
	told->path = paths[info.path];
	snprintf(told->why, sizeof(told->why), "%s", info.why);
	snprintf(told->schedule, sizeof(told->schedule), "%s", info.schedule);
}

/* ---- under way ------------------------------------------------------------------- */

struct ranks_request *ranks_prepare(void *values, uint64_t count, enum ranks_type type)
{
	struct muster_request *request;

	check(muster_allreduce_init(world, values, values, count, types[type], MUSTER_SUM, &request));
	return (struct ranks_request *)request;
}

void ranks_start(struct ranks_request *request)
{
	TIMED(muster_start((struct muster_request *)request));
}

void ranks_wait(struct ranks_request *request)
{
	TIMED(muster_wait((struct muster_request *)request));
}

void ranks_free(struct ranks_request *request)
{
	check(muster_request_free((struct muster_request *)request));
}
