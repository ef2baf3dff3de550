// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Plans as objects: shapes, hops, the proof that each datum arrives once, what it
 * costs, and the schedule of all nodes.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"
#include "torus.h"

int muster_torus_read(const char *shape, struct muster_torus *torus, char *why, size_t why_len)
{
	uint64_t nodes = 1;
	bool more = true;

	*torus = (struct muster_torus){ .factors = 1 };
	for (const char *at = shape; more; at++) {
		char *end = NULL;
		unsigned long size = *at >= '0' && *at <= '9' ? strtoul(at, &end, 10) : 0;

		if (size < 2 || size > MUSTER_TORUS_NODES_MAX ||
		    torus->rings == MUSTER_TORUS_RINGS_MAX || !strchr("x.", *end) ||
		    (nodes *= size) > MUSTER_TORUS_NODES_MAX) {
			snprintf(why, why_len, "\"%.60s\": a torus is rings of 2 and more like "
				 "4x4 or 2.6x2.6, at most %d of them and %d nodes", shape,
				 MUSTER_TORUS_RINGS_MAX, MUSTER_TORUS_NODES_MAX);
			return -EINVAL;
		}
		torus->factor[torus->rings] = torus->factors - 1;
		torus->size[torus->rings++] = size;
		torus->factors += *end == 'x';
		more = *end;
		at = end;
	}
	torus->nodes = nodes;
	return 0;
}

uint32_t muster_torus_go(const struct muster_torus *torus, uint32_t at, uint32_t channel)
{
	uint32_t ring = channel / 2, size = torus->size[ring], stride = 1, x;

	for (uint32_t i = torus->rings; i-- > ring + 1;)
		stride *= torus->size[i];
	x = at / stride % size;
	return at - x * stride + (x + (channel & 1 ? size - 1 : 1)) % size * stride;
}

/* ---- plans --------------------------------------------------------------------- */

struct muster_torus_plan *muster_torus_plan_new(const struct muster_torus *torus)
{
	struct muster_torus_plan *plan = calloc(1, sizeof(*plan));

	if (plan)
		plan->torus = *torus;
	return plan;
}

void muster_torus_plan_free(struct muster_torus_plan *plan)
{
	if (!plan)
		return;
	free(plan->hops);
	free(plan);
}

int muster_torus_plan_add(struct muster_torus_plan *plan, const struct muster_torus_hop *hop)
{
	uint32_t nr = plan->nr_hops;

	if (!(nr & (nr - 1))) {
		struct muster_torus_hop *grown =
			realloc(plan->hops, (nr ? 2 * nr : 1) * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		plan->hops = grown;
	}
	plan->hops[plan->nr_hops++] = *hop;
	if (hop->step >= plan->steps)
		plan->steps = hop->step + 1;
	return 0;
}

static int by_step(const void *left, const void *right)
{
	const struct muster_torus_hop *a = left, *b = right;

	if (a->step != b->step)
		return a->step < b->step ? -1 : 1;
	if (a->to != b->to)
		return a->to < b->to ? -1 : 1;
	return a->first < b->first ? -1 : a->first > b->first;
}

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
	while (b) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* A block may have less steps than its largest ring would take: nothing is sent in the rest. */
static void close_gaps(struct muster_torus_plan *plan)
{
	uint32_t before = UINT32_MAX;

	plan->steps = 0;
	for (uint32_t i = 0; i < plan->nr_hops; i++) {
		plan->steps += plan->hops[i].step != before;
		before = plan->hops[i].step;
		plan->hops[i].step = plan->steps - 1;
	}
}

void muster_torus_plan_end(struct muster_torus_plan *plan)
{
	uint32_t unit = plan->parts;

	for (uint32_t i = 0; i < plan->nr_hops; i++)
		unit = common_divisor(common_divisor(unit, plan->hops[i].first),
				      plan->hops[i].nr);
	for (uint32_t i = 0; i < plan->nr_hops; i++) {
		plan->hops[i].first /= unit;
		plan->hops[i].nr /= unit;
	}
	plan->parts /= unit;
	qsort(plan->hops, plan->nr_hops, sizeof(*plan->hops), by_step);
	close_gaps(plan);
}

/* ---- the proof ------------------------------------------------------------------- */

enum { NEVER = UINT32_MAX };

static int check_hop(const struct muster_torus_plan *plan, const struct muster_torus_hop *hop,
		     uint32_t *since, char *why, size_t why_len)
{
	if (hop->from >= plan->torus.nodes || hop->to >= plan->torus.nodes ||
	    hop->channel >= 2 * plan->torus.rings || !hop->nr ||
	    hop->first + hop->nr > plan->parts ||
	    muster_torus_go(&plan->torus, hop->from, hop->channel) != hop->to) {
		snprintf(why, why_len, "step %" PRIu32 ": %" PRIu32 " is not beside %" PRIu32,
			 hop->step, hop->from, hop->to);
		return -EINVAL;
	}
	for (uint32_t part = hop->first; part < hop->first + (uint32_t)hop->nr; part++) {
		uint32_t *at = &since[(size_t)hop->to * plan->parts + part];

		if (since[(size_t)hop->from * plan->parts + part] > hop->step) {
			snprintf(why, why_len, "step %" PRIu32 ": %" PRIu32 " does not have it yet",
				 hop->step, hop->from);
			return -EINVAL;
		}
		if (*at != NEVER) {
			snprintf(why, why_len, "step %" PRIu32 ": %" PRIu32 " receives it again",
				 hop->step, hop->to);
			return -EINVAL;
		}
		*at = hop->step + 1;
	}
	return 0;
}

int muster_torus_plan_check(const struct muster_torus_plan *plan, char *why, size_t why_len)
{
	size_t nr = (size_t)plan->torus.nodes * plan->parts;
	uint32_t *since = malloc(nr * sizeof(*since));
	int err = since ? 0 : -ENOMEM;

	for (size_t i = 0; i < nr && !err; i++)
		since[i] = i < plan->parts ? 0 : NEVER;
	for (uint32_t i = 0; i < plan->nr_hops && !err; i++)
		err = check_hop(plan, &plan->hops[i], since, why, why_len);
	for (size_t i = 0; i < nr && !err; i++)
		if (since[i] == NEVER) {
			snprintf(why, why_len, "%zu never receives it", i / plan->parts);
			err = -EINVAL;
		}
	free(since);
	return err;
}

/* ---- the report -------------------------------------------------------------------- */

/* held: a datum counts from the step in which it arrives to the last in which it is sent on. */
static int count_held(const struct muster_torus_plan *plan, struct muster_torus_report *report)
{
	uint32_t *last = calloc(plan->torus.nodes, sizeof(*last));

	if (!last)
		return -ENOMEM;
	for (uint32_t i = 0; i < plan->nr_hops; i++)
		last[plan->hops[i].from] = plan->hops[i].step;
	for (uint32_t i = 0; i < plan->nr_hops; i++) {
		const struct muster_torus_hop *hop = &plan->hops[i];

		report->held[hop->step] += hop->nr;
		for (uint32_t step = hop->step + 1; step <= last[hop->to]; step++)
			report->held[step] += hop->nr;
	}
	for (uint32_t step = 0; step < plan->steps; step++)
		if (report->held[step] > report->buffer)
			report->buffer = report->held[step];
	free(last);
	return 0;
}

int muster_torus_report(const struct muster_torus_plan *plan, struct muster_torus_report *report)
{
	uint32_t channels = 2 * plan->torus.rings;
	int err = -ENOMEM;

	*report = (struct muster_torus_report){
		.received = calloc(plan->steps + 1, sizeof(uint64_t)),
		.load = calloc((size_t)plan->steps * channels + 1, sizeof(uint64_t)),
		.busiest = calloc(plan->steps + 1, sizeof(uint64_t)),
		.held = calloc(plan->steps + 1, sizeof(uint64_t)),
	};
	if (report->received && report->load && report->busiest && report->held)
		err = count_held(plan, report);
	if (err) {
		muster_torus_report_free(report);
		return err;
	}
	for (uint32_t i = 0; i < plan->nr_hops; i++) {
		const struct muster_torus_hop *hop = &plan->hops[i];
		uint64_t *load = &report->load[hop->step * channels + hop->channel];

		report->received[hop->step] += hop->nr;
		*load += hop->nr;
		if (*load > report->busiest[hop->step])
			report->busiest[hop->step] = *load;
	}
	for (uint32_t step = 0; step < plan->steps; step++)
		report->time += report->busiest[step];
	report->efficiency = (double)(plan->torus.nodes - 1) * plan->parts / channels /
			     report->time;
	return 0;
}

void muster_torus_report_free(struct muster_torus_report *report)
{
	free(report->received);
	free(report->load);
	free(report->busiest);
	free(report->held);
}

/* ---- schedules ----------------------------------------------------------------------- */

/* Node a moved by displacement b. */
static uint32_t moved(const struct muster_torus *torus, uint32_t a, uint32_t b)
{
	uint32_t stride = 1, sum = 0;

	for (uint32_t ring = torus->rings; ring-- > 0;) {
		uint32_t size = torus->size[ring];

		sum += (a / stride + b / stride) % size * stride;
		stride *= size;
	}
	return sum;
}

static void add_step(struct muster_builder *builder, const struct muster_torus_plan *plan,
		     const struct muster_torus_hop *hops, uint32_t nr)
{
	const struct muster_torus *torus = &plan->torus;

	for (uint32_t node = 0; node < torus->nodes; node++)
		for (uint32_t i = 0; i < nr; i++)
			for (uint32_t part = 0; part < hops[i].nr; part++)
				muster_builder_add(builder, node * plan->parts + hops[i].first +
						   part, moved(torus, node, hops[i].from),
						   moved(torus, node, hops[i].to), false);
}

int muster_torus_schedule(const struct muster_torus_plan *plan, struct muster_schedule **schedule,
			  char *why, size_t why_len)
{
	uint64_t transfers = (uint64_t)plan->torus.nodes * plan->torus.nodes * plan->parts;
	struct muster_builder builder;
	char name[MUSTER_SCHEDULE_NAME_MAX + 1];
	uint32_t begin, end;
	int err;

	snprintf(name, sizeof(name), "torus-%" PRIu32 "-rings-%" PRIu32, plan->torus.nodes,
		 plan->torus.rings);
	if (transfers > MUSTER_SCHEDULE_TRANSFERS_MAX ||
	    (uint64_t)plan->torus.nodes * plan->parts > MUSTER_SCHEDULE_CHUNKS_MAX) {
		snprintf(why, why_len, "%" PRIu32 " nodes and %" PRIu32 " parts are more than a "
			 "schedule holds", plan->torus.nodes, plan->parts);
		return -EINVAL;
	}
	muster_builder_init(&builder, name, MUSTER_COLL_ALLGATHER, plan->torus.nodes,
			    plan->torus.nodes * plan->parts, 0);
	for (begin = 0; begin < plan->nr_hops; begin = end) {
		for (end = begin; end < plan->nr_hops &&
		     plan->hops[end].step == plan->hops[begin].step; end++)
			;
		muster_builder_step(&builder);
		add_step(&builder, plan, plan->hops + begin, end - begin);
	}
	err = muster_builder_end(&builder, schedule);
	if (err)
		snprintf(why, why_len, "%s", strerror(-err));
	return err;
}

int muster_torus_topology(const struct muster_torus *torus, struct muster_topology **topology,
			  char *why, size_t why_len)
{
	char spec[128];
	size_t len = snprintf(spec, sizeof(spec), "torus:");

	for (uint32_t ring = 0; ring < torus->rings; ring++)
		len += snprintf(spec + len, sizeof(spec) - len, "%s%" PRIu32, ring ? "x" : "",
				torus->size[ring]);
	return muster_topology_make(spec, topology, why, why_len);
}
