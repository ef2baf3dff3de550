// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One measurement: samples of the NIC path and of the host path in turn, so that
 * whatever else happens on the machine meets both. A sample is the time of a
 * batch of operations, by operation; what counts is the slowest rank's. Ranks
 * agree on how many samples they take from time to time, outside of the samples.
 */
#include "perf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

enum {
	BATCH_US = 20,		/* shorter operations are timed together */
	AGREE_US = 50000,	/* at most, from one agreement on how to go on to the next */
	WARM_UP_US = 200000,	/* at most, by path */
	SAMPLES_MIN = 3,
	ENTER_US = 3,		/* in which all that agreed on a time have learned of it */
	SHIFTED_US = 10000000,	/* between two that read one clock at about the same time: never */
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

/* At something else than progress. */
static void work_until(double when)
{
	while (perf_now_us() < when)
		;
}

/* 32 bits of what differs on another machine, or in a guest; 0: not known. */
static uint32_t boot_id(void)
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	uint32_t id = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%8" SCNx32, &id) != 1)
		id = 0;
	fclose(file);
	return id;
}

/* Of all ranks' values, from the least to the most. */
static double spread(const struct perf *perf, double value)
{
	double most = perf_max(perf, value);

	return most + perf_max(perf, -value);
}

/* Containers of one machine may have shifted it. */
void perf_clocks_compare(struct perf *perf)
{
	uint32_t id = boot_id();
	bool one_machine = !spread(perf, id) && id;

	perf->one_clock = spread(perf, perf_now_us()) <= SHIFTED_US && one_machine;
}

/*
 * Return: the time at which all enter, be it that one left the last operation early. They leave a barrier
 * one after the other, too; so ranks of one clock agree on a time that is still to come.
 */
static double enter_together(const struct perf *perf)
{
	double when;

	if (!perf->one_clock) {
		perf_check(perf, muster_barrier(perf->world), "barrier");
		return perf_now_us();
	}
	when = perf_max(perf, perf_now_us()) + ENTER_US;
	work_until(when);
	return when;
}

/*
 * Microseconds an operation. With a rank that is late, they count from when it comes: those who are
 * done before have less than 0.
 */
static double sample(const struct perf *perf, const struct perf_result *result,
		     enum perf_path path)
{
	double began, took;

	perf_path_choose(perf, path);
	began = enter_together(perf);
	if (perf->options->skew_us && perf->rank == perf->options->late)
		work_until(perf_now_us() + perf->options->skew_us);
	for (uint32_t i = 0; i < result->batch; i++)
		perf_operate(perf, result->collective, result->bytes, path);
	took = perf_now_us() - began - perf->options->skew_us;
	make_sure_of_path(perf, path);
	return took / result->batch;
}

/*
 * One rank may run ahead of a broadcast or such: a batch of these would show only its pace. And
 * only the first of a batch could meet a rank that is late.
 */
static uint32_t choose_batch(const struct perf *perf, enum perf_collective collective, double us)
{
	double batch = BATCH_US / us;

	if (perf_kinds[collective].one_way || perf->options->skew_us > 0 || batch < 1)
		return 1;
	return batch < PERF_BATCH_MAX ? (uint32_t)batch : PERF_BATCH_MAX;
}

/* Microseconds an operation, the mean of a few. The first one sets things up. */
static double warm_up_path(const struct perf *perf, const struct perf_result *result,
			   enum perf_path path)
{
	double first = perf_max(perf, sample(perf, result, path)), sum = 0;
	double each = first + perf->options->skew_us;
	uint32_t nr = perf->options->warmup;

	if (nr > WARM_UP_US / each)
		nr = (uint32_t)(WARM_UP_US / each);
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
		round_us += us + perf->options->skew_us;
		shortest = us < shortest ? us : shortest;
	}
	result->batch = perf->options->batch ? perf->options->batch :
			choose_batch(perf, result->collective, shortest);
	return round_us * result->batch;
}

/* Take samples for about a slice of time, as many as all ranks agreed on. */
static uint32_t take_samples(struct perf *perf, const struct perf_result *result, uint32_t done,
			     double round_us)
{
	double most_us = perf->options->seconds * 1e6;
	double nr = (most_us < AGREE_US ? most_us : AGREE_US) / round_us;
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

static double mean(const double *samples, uint32_t nr)
{
	double sum = 0;

	for (uint32_t i = 0; i < nr; i++)
		sum += samples[i];
	return sum / nr;
}

/* How long each rank is in the operation, by its own clock, from its own call. */
static void sum_up_ranks(const struct perf *perf, const double *samples, uint32_t nr,
			 struct perf_times *times)
{
	const struct perf_options *options = perf->options;
	double own = mean(samples, nr) + (perf->rank == options->late ? 0 : options->skew_us);
	double negative = -own, sum = own;

	times->rank_max_us = perf_max(perf, own);
	times->rank_min_us = -perf_max(perf, negative);
	perf_check(perf, muster_allreduce(perf->world, &sum, &sum, 1, MUSTER_F64, MUSTER_SUM),
		   "collecting times");
	times->rank_avg_us = sum / perf->size;
}

static double percentile(const double *sorted, uint32_t nr, double percent)
{
	return sorted[(uint32_t)((nr - 1) * percent / 100)];
}

static void sum_up(const struct perf *perf, double *samples, uint32_t nr, struct perf_times *times)
{
	sum_up_ranks(perf, samples, nr, times);
	perf_check(perf, muster_allreduce(perf->world, samples, samples, nr, MUSTER_F64,
					  MUSTER_MAX), "collecting times");
	qsort(samples, nr, sizeof(*samples), by_value);
	times->samples = nr;
	times->avg_us = mean(samples, nr);
	times->min_us = samples[0];
	times->p50_us = samples[nr / 2];
	times->p90_us = percentile(samples, nr, 90);
	times->p99_us = percentile(samples, nr, 99);
	times->p999_us = percentile(samples, nr, 99.9);
	times->max_us = samples[nr - 1];
}

static bool has_own_order(const struct perf *perf)
{
	struct muster_op_info info;

	muster_comm_last(perf->world, &info);
	return strstr(info.why, "in its own order");
}

/* Both paths once on data of its own; true when it holds on every rank. */
static bool holds(struct perf *perf, struct perf_result *result, bool simple)
{
	const struct perf_options *options = perf->options;
	bool both = options->paths[PERF_NIC] && options->paths[PERF_HOST], ok = true;
	const struct perf_kind *kind = &perf_kinds[result->collective];
	bool has_result = !kind->at_root || perf->rank == options->root;
	uint64_t in_bytes = result->bytes * perf_blocks(perf, kind->in_blocks);
	uint64_t out_bytes = result->bytes * perf_blocks(perf, kind->out_blocks);

	(simple ? perf_fill_simple : perf_fill)(perf, perf->in, in_bytes);
	for (enum perf_path path = 0; path < PERF_PATHS; path++) {
		const void *out = perf->out[path];

		if (!options->paths[path])
			continue;
		perf_path_choose(perf, path);
		memset(perf->out[path], 0xa5, out_bytes);
		perf_operate(perf, result->collective, result->bytes, path);
		result->own_order |= has_own_order(perf);
		if (result->collective == PERF_BROADCAST && perf->rank == options->root)
			out = perf->in;
		if (simple && !perf_is_right(perf, result->collective, out, result->bytes))
			ok = false;
	}
	if (!simple && both && has_result)
		ok = !memcmp(perf->out[PERF_NIC], perf->out[PERF_HOST], out_bytes);
	return perf_max(perf, !ok) == 0;
}

static void last_take(const struct perf *perf, struct perf_times *times)
{
	muster_comm_last(perf->world, &times->info);
	snprintf(times->why, sizeof(times->why), "%s", times->info.why);
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
		last_take(perf, &result->times[path]);
		sum_up(perf, perf->samples[path], done, &result->times[path]);
	}
}
