// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ranks that run the schedules of files, whatever its collective, on whole vectors
 * in place: on the host path, then on the NIC path, there again and again. What a rank must have at
 * the end has the bits of the schedule, interpreted step by step apart from both. For
 * collectives that the library has no call for; below its calls, it runs them all. Says
 * whether the device kept programs of it, and whether it fetched some from memory.
 *
 * usage: scheduled FILE...
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../userlib/internal.h"
#include "arith.h"
#include "expect.h"

enum { REFERENCE_BYTES = 32 << 20 };	/* of all ranks' vectors together */

static struct muster *job;
static struct muster_comm *world;
static struct muster_schedule *schedule;
static uint32_t rank;
static bool kept, fetched;

struct vector {
	uint8_t type;
	uint64_t count;
	size_t bytes;
};

static void chunk_at(const struct vector *v, uint32_t chunk, size_t *first, size_t *len)
{
	uint64_t at, bytes;

	muster_range_bytes(schedule, v->count, v->type, NULL, chunk, 1, &at, &bytes);
	*first = at;
	*len = bytes;
}

/* Numbers whose sums depend on the order, for floating point. */
static void put_numbers(uint8_t *at, const struct vector *v, uint32_t of_rank, uint32_t chunk,
			size_t len)
{
	uint64_t state = of_rank * 7919 + chunk * 104729 + 17;
	size_t size = muster_dtype_size(v->type);

	for (size_t i = 0; i + size <= len; i += size) {
		double real;

		state = state * 6364136223846793005u + 1442695040888963407u;
		real = (double)(int64_t)state / 0x1p37;
		if (v->type == MUSTER_F64)
			memcpy(at + i, &real, size);
		else
			memcpy(at + i, (uint8_t *)&state + 3, size);
	}
}

/* What a rank has at the start; the rest is rubbish that must not matter. */
static void begin(uint8_t *vector, const struct vector *v, uint32_t of_rank)
{
	memset(vector, 0xee, v->bytes);
	for (uint32_t chunk = 0; chunk < schedule->chunks; chunk++) {
		size_t first, len;

		chunk_at(v, chunk, &first, &len);
		if (muster_coll_has(schedule, chunk, of_rank))
			put_numbers(vector + first, v,
				    muster_coll_origin(schedule, chunk, of_rank), chunk, len);
	}
}

/* What the transfers of a step take, as it is before any of them. */
static void step_begin(uint8_t *before, const uint8_t *all, const struct vector *v, uint32_t i)
{
	uint32_t step = schedule->transfers[i].step;

	for (; i < schedule->nr_transfers && schedule->transfers[i].step == step; i++) {
		const struct muster_transfer *t = &schedule->transfers[i];
		size_t first, len;

		chunk_at(v, t->chunk, &first, &len);
		first += t->from * v->bytes;
		memcpy(before + first, all + first, len);
	}
}

static void interpret(uint8_t *all, const struct vector *v)
{
	uint8_t *before = malloc(v->bytes * schedule->ranks);

	EXPECT(before, "no memory");
	for (uint32_t i = 0; i < schedule->nr_transfers; i++) {
		const struct muster_transfer *t = &schedule->transfers[i];
		uint8_t *into = all + t->to * v->bytes, *from = before + t->from * v->bytes;
		size_t first, len;

		if (!i || t->step != schedule->transfers[i - 1].step)
			step_begin(before, all, v, i);
		chunk_at(v, t->chunk, &first, &len);
		if (t->reduce)
			muster_arith(v->type, MUSTER_SUM, into + first, into + first, from + first,
				     len);
		else
			memcpy(into + first, from + first, len);
	}
	free(before);
}

static void run(uint8_t *mine, const struct vector *v, enum muster_path path)
{
	/* A reduce leaves what is not the root's alone, and has no place for it. */
	bool reduce = schedule->coll == MUSTER_COLL_REDUCE && rank != schedule->root;
	const struct muster_call call = {
		.coll = schedule->coll, .type = v->type, .op = MUSTER_SUM, .root = schedule->root,
		.count = v->count, .bytes = v->bytes, .in_place = !reduce,
		.parts = reduce,
	};
	struct muster_request *request;
	struct muster_op_info info;
	int err;

	EXPECT(!muster_comm_offload(world, path == MUSTER_PATH_NIC ? MUSTER_OFFLOAD_FORCE :
				    MUSTER_OFFLOAD_OFF), "%s", muster_error(job));
	err = muster_request_start(world, &call, mine, reduce ? NULL : mine, &request);
	kept |= !err && request->kept;
	fetched |= !err && request->fetched;
	if (!err)
		err = muster_wait(request);
	EXPECT(!err, "%s: %s", strerror(-err), muster_error(job));
	muster_comm_last(world, &info);
	EXPECT(info.path == path, "it took path %d", info.path);
	EXPECT(!strcmp(info.schedule, schedule->name), "it ran %s", info.schedule);
}

static void compare(const uint8_t *mine, const uint8_t *expected, const struct vector *v)
{
	for (uint32_t chunk = 0; chunk < schedule->chunks; chunk++) {
		size_t first, len;

		chunk_at(v, chunk, &first, &len);
		EXPECT(!muster_coll_needs(schedule, chunk, rank) ||
		       !memcmp(mine + first, expected + first, len),
		       "chunk %" PRIu32 " of %" PRIu64 " elements of type %d is wrong", chunk,
		       v->count, v->type);
	}
}

static void run_both(uint8_t type, uint64_t count)
{
	static const enum muster_path paths[] = {
		MUSTER_PATH_HOST, MUSTER_PATH_NIC, MUSTER_PATH_NIC, MUSTER_PATH_NIC,
	};
	struct vector v = { type, count, count * muster_dtype_size(type) };
	uint8_t *all = malloc(v.bytes * schedule->ranks), *mine = malloc(v.bytes);

	EXPECT(all && mine, "no memory");
	for (uint32_t r = 0; r < schedule->ranks; r++)
		begin(all + r * v.bytes, &v, r);
	interpret(all, &v);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		begin(mine, &v, rank);
		run(mine, &v, paths[i]);
		compare(mine, all + rank * v.bytes, &v);
	}
	free(mine);
	free(all);
}

static void run_file(const char *path)
{
	FILE *in = fopen(path, "re");
	char why[300] = "it cannot be opened";

	EXPECT(in && !muster_schedule_read(in, &schedule, why, sizeof(why)), "%s: %s", path, why);
	fclose(in);
	kept = fetched = false;
	EXPECT(!muster_comm_schedule(world, path), "%s", muster_error(job));
	run_both(MUSTER_I32, schedule->chunks);
	run_both(MUSTER_F64, 100 * schedule->chunks + 7);
	if (REFERENCE_BYTES / schedule->ranks / 5000 / 8 >= schedule->chunks)
		run_both(MUSTER_F64, 5000 * schedule->chunks);	/* several pulses */
	muster_schedule_free(schedule);
	printf("%s:%s%s\n", path, kept ? " kept" : "", fetched ? " fetched" : "");
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: scheduled FILE...\n");
		return 2;
	}
	if (muster_init(&job)) {
		fprintf(stderr, "%s\n", muster_error(NULL));
		return 3;
	}
	world = muster_world(job);
	rank = muster_comm_rank(world);
	for (int i = 1; i < argc; i++)
		run_file(argv[i]);
	muster_finalize(job);
	return 0;
}
