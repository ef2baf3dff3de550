// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One measurement: samples of the NIC path and of the host path in turn, so that
 * whatever else happens on the machine meets both. A sample is the time of a
 * batch of operations, by operation; what counts is the slowest rank's. Ranks
 * agree on how many samples they take from time to time, outside of the samples.
 */
#include "perf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

enum {
	BATCH_US = 20,		/* shorter operations are timed together */
	AGREE_US = 50000,	/* from one agreement on how to go on to the next */
	WARM_UP_US = 200000,	/* at most, by path */
	SAMPLES_MIN = 3,
};

double perf_now_us(void)
{
	return (double)muster_clock_ns() / 1e3;
}

void perf_path_choose(const struct perf *perf, enum perf_path path)
{
	perf_check(perf, muster_comm_offload(perf->world, path == PERF_NIC ?
					     MUSTER_OFFLOAD_FORCE : MUSTER_OFFLOAD_OFF),
		   "choosing the path");
}

static void make_sure_of_path(const struct perf *perf, enum perf_path path)
{
	static const char *const names[] = { "none", "host", "NIC", "switch", "bump" };
	bool offloaded = path == PERF_NIC;
	struct muster_op_info info;

	muster_comm_last(perf->world, &info);
	if (offloaded == (info.path == MUSTER_PATH_HOST) && info.path != MUSTER_PATH_NONE)
		perf_die("asked for the %s path, but the operation took %s: %s",
			 perf_path_names[path], names[info.path], info.why);
}

/* ---- the collectives ------------------------------------------------------------ */

static int allreduce(const struct perf *perf, uint64_t count, void *out)
{
	const struct perf_options *o = perf->options;

	return muster_allreduce(perf->world, perf->in, out, count, o->type, o->op);
}

static int reduce(const struct perf *perf, uint64_t count, void *out)
{
	const struct perf_options *o = perf->options;

	return muster_reduce(perf->world, perf->in, out, count, o->type, o->op, o->root);
}

static int broadcast(const struct perf *perf, uint64_t count, void *out)
{
	const struct perf_options *o = perf->options;

	return muster_broadcast(perf->world, perf->rank == o->root ? perf->in : out, count,
				o->type, o->root);
}

static int barrier(const struct perf *perf, uint64_t count, void *out)
{
	(void)count;
	(void)out;
	return muster_barrier(perf->world);
}

static int allgather(const struct perf *perf, uint64_t count, void *out)
{
	const struct perf_options *o = perf->options;

	return muster_allgather(perf->world, perf->in, out, count, o->type);
}

static int reduce_scatter(const struct perf *perf, uint64_t count, void *out)
{
	const struct perf_options *o = perf->options;

	return muster_reduce_scatter_block(perf->world, perf->in, out, count, o->type, o->op);
}

static int alltoall(const struct perf *perf, uint64_t count, void *out)
{
	const struct perf_options *o = perf->options;

	return muster_alltoall(perf->world, perf->in, out, count, o->type);
}

static int gather(const struct perf *perf, uint64_t count, void *out)
{
	const struct perf_options *o = perf->options;

	return muster_gather(perf->world, perf->in, out, count, o->type, o->root);
}

static int scatter(const struct perf *perf, uint64_t count, void *out)
{
	const struct perf_options *o = perf->options;

	return muster_scatter(perf->world, perf->in, out, count, o->type, o->root);
}

static int scan(const struct perf *perf, uint64_t count, void *out)
{
	const struct perf_options *o = perf->options;

	return muster_scan(perf->world, perf->in, out, count, o->type, o->op);
}

static int exscan(const struct perf *perf, uint64_t count, void *out)
{
	const struct perf_options *o = perf->options;

	return muster_exscan(perf->world, perf->in, out, count, o->type, o->op);
}

static const uint64_t *equal_counts(const struct perf *perf, uint64_t count)
{
	for (uint32_t i = 0; i < perf->size; i++)
		perf->counts[i] = count;
	return perf->counts;
}

static int allgatherv(const struct perf *perf, uint64_t count, void *out)
{
	return muster_allgatherv(perf->world, perf->in, out, equal_counts(perf, count), NULL,
				 perf->options->type);
}

static int reduce_scatterv(const struct perf *perf, uint64_t count, void *out)
{
	const struct perf_options *o = perf->options;

	return muster_reduce_scatter(perf->world, perf->in, out, equal_counts(perf, count),
				     o->type, o->op);
}

/* name, in_blocks, out_blocks, one_way, at_root, rooted, combines, by_counts */
const struct perf_kind perf_kinds[PERF_COLLECTIVES] = {
	[PERF_ALLREDUCE] = { "allreduce", 0, 0, 0, 0, 0, 1, 0, allreduce },
	[PERF_REDUCE] = { "reduce", 0, 0, 1, 1, 1, 1, 0, reduce },
	[PERF_BROADCAST] = { "broadcast", 0, 0, 1, 0, 1, 0, 0, broadcast },
	[PERF_BARRIER] = { "barrier", 0, 0, 0, 0, 0, 0, 0, barrier },
	[PERF_ALLGATHER] = { "allgather", 0, 1, 0, 0, 0, 0, 0, allgather },
	[PERF_REDUCE_SCATTER] = { "reduce_scatter_block", 1, 0, 0, 0, 0, 1, 0, reduce_scatter },
	[PERF_ALLTOALL] = { "alltoall", 1, 1, 0, 0, 0, 0, 0, alltoall },
	[PERF_GATHER] = { "gather", 0, 1, 1, 1, 1, 0, 0, gather },
	[PERF_SCATTER] = { "scatter", 1, 0, 1, 0, 1, 0, 0, scatter },
	[PERF_SCAN] = { "scan", 0, 0, 1, 0, 0, 1, 0, scan },
	[PERF_EXSCAN] = { "exscan", 0, 0, 1, 0, 0, 1, 0, exscan },
	[PERF_ALLGATHERV] = { "allgatherv", 0, 1, 0, 0, 0, 0, 1, allgatherv },
	[PERF_REDUCE_SCATTERV] = { "reduce_scatter", 1, 0, 0, 0, 0, 1, 1, reduce_scatterv },
};

static int start(const struct perf *perf, enum perf_collective collective, uint64_t bytes,
		 enum perf_path path)
{
	return perf_kinds[collective].operate(perf, bytes / perf_type_bytes(perf->options->type),
					      perf->out[path]);
}

void perf_operate(const struct perf *perf, enum perf_collective collective, uint64_t bytes,
		  enum perf_path path)
{
	perf_check(perf, start(perf, collective, bytes, path), perf_kinds[collective].name);
}

double perf_max(const struct perf *perf, double value)
{
	perf_check(perf, muster_allreduce(perf->world, &value, &value, 1, MUSTER_F64, MUSTER_MAX),
		   "agreeing on times");
	return value;
}

/* Microseconds an operation. Ranks enter together, as one may have left the last early. */
static double sample(const struct perf *perf, const struct perf_result *result,
		     enum perf_path path)
{
	double began, took;

	perf_path_choose(perf, path);
	perf_check(perf, muster_barrier(perf->world), "barrier");
	began = perf_now_us();
	for (uint32_t i = 0; i < result->batch; i++)
		perf_operate(perf, result->collective, result->bytes, path);
	took = perf_now_us() - began;
	make_sure_of_path(perf, path);
	return took / result->batch;
}

/* One rank may run ahead of a broadcast or such: a batch of these would show only its pace. */
static uint32_t choose_batch(enum perf_collective collective, double us)
{
	double batch = BATCH_US / us;

	if (perf_kinds[collective].one_way || batch < 1)
		return 1;
	return batch < PERF_BATCH_MAX ? (uint32_t)batch : PERF_BATCH_MAX;
}

/* Microseconds an operation, the mean of a few. The first one sets things up. */
static double warm_up_path(const struct perf *perf, const struct perf_result *result,
			   enum perf_path path)
{
	double first = perf_max(perf, sample(perf, result, path)), sum = 0;
	uint32_t nr = perf->options->warmup;

	if (nr > WARM_UP_US / first)
		nr = (uint32_t)(WARM_UP_US / first);
	if (!nr)
		return first;
	for (uint32_t i = 0; i < nr; i++)
		sum += sample(perf, result, path);
	return perf_max(perf, sum / nr);
}

/* Return: the time of one round of all paths. */
static double warm_up(struct perf *perf, struct perf_result *result)
{
	double round_us = 0, shortest = 1e9;

	result->batch = 1;
	for (enum perf_path path = 0; path < PERF_PATHS; path++) {
		double us;

		if (!perf->options->paths[path])
			continue;
		us = warm_up_path(perf, result, path);
		round_us += us;
		shortest = us < shortest ? us : shortest;
	}
	result->batch = perf->options->batch ? perf->options->batch :
			choose_batch(result->collective, shortest);
	return round_us * result->batch;
}

/* Take samples for about a slice of time, as many as all ranks agreed on. */
static uint32_t take_samples(struct perf *perf, const struct perf_result *result, uint32_t done,
			     double round_us)
{
	double nr = AGREE_US / round_us;
	uint32_t end = perf->options->samples_max;

	if (nr < 1)
		nr = 1;
	if (nr < end - done)
		end = done + (uint32_t)nr;
	for (; done < end; done++)
		for (enum perf_path path = 0; path < PERF_PATHS; path++)
			if (perf->options->paths[path])
				perf->samples[path][done] = sample(perf, result, path);
	return done;
}

static int by_value(const void *a_in, const void *b_in)
{
	const double *a = a_in, *b = b_in;

	return (*a > *b) - (*a < *b);
}

static void sum_up(const struct perf *perf, double *samples, uint32_t nr, struct perf_times *times)
{
	perf_check(perf, muster_allreduce(perf->world, samples, samples, nr, MUSTER_F64,
					  MUSTER_MAX), "collecting times");
	qsort(samples, nr, sizeof(*samples), by_value);
	times->samples = nr;
	times->avg_us = 0;
	for (uint32_t i = 0; i < nr; i++)
		times->avg_us += samples[i] / nr;
	times->min_us = samples[0];
	times->p50_us = samples[nr / 2];
	times->p99_us = samples[(uint32_t)((nr - 1) * 0.99)];
}

/* Both paths once on data of its own; true when it holds on every rank. */
static bool holds(struct perf *perf, const struct perf_result *result, bool simple)
{
	const struct perf_options *options = perf->options;
	bool both = options->paths[PERF_NIC] && options->paths[PERF_HOST], ok = true;
	const struct perf_kind *kind = &perf_kinds[result->collective];
	bool has_result = !kind->at_root || perf->rank == options->root;
	uint64_t in_bytes = result->bytes * (kind->in_blocks ? perf->size : 1);
	uint64_t out_bytes = result->bytes * (kind->out_blocks ? perf->size : 1);

	(simple ? perf_fill_simple : perf_fill)(perf, perf->in, in_bytes);
	for (enum perf_path path = 0; path < PERF_PATHS; path++) {
		const void *out = perf->out[path];

		if (!options->paths[path])
			continue;
		perf_path_choose(perf, path);
		memset(perf->out[path], 0xa5, out_bytes);
		perf_operate(perf, result->collective, result->bytes, path);
		if (result->collective == PERF_BROADCAST && perf->rank == options->root)
			out = perf->in;
		if (simple && !perf_is_right(perf, result->collective, out, result->bytes))
			ok = false;
	}
	if (!simple && both && has_result)
		ok = !memcmp(perf->out[PERF_NIC], perf->out[PERF_HOST], out_bytes);
	return perf_max(perf, !ok) == 0;
}

void perf_measure(struct perf *perf, enum perf_collective collective, uint64_t bytes,
		  struct perf_result *result)
{
	const struct perf_options *options = perf->options;
	double round_us, began, elapsed = 0;
	uint32_t done = 0;

	*result = (struct perf_result){ .collective = collective, .bytes = bytes };
	result->equal = collective == PERF_BARRIER || holds(perf, result, false);
	result->valid = collective == PERF_BARRIER || !options->validate ||
			holds(perf, result, true);
	round_us = warm_up(perf, result);
	began = perf_now_us();
	while (done < options->samples_max &&
	       (done < SAMPLES_MIN || elapsed < options->seconds * 1e6)) {
		done = take_samples(perf, result, done, round_us);
		elapsed = perf_max(perf, perf_now_us() - began);
		round_us = elapsed / done;
	}
	for (enum perf_path path = 0; path < PERF_PATHS; path++) {
		if (!options->paths[path])
			continue;
		perf_path_choose(perf, path);
		perf_operate(perf, collective, bytes, path);
		muster_comm_last(perf->world, &result->times[path].info);
		sum_up(perf, perf->samples[path], done, &result->times[path]);
	}
}
