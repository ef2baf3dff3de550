// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The host path in modelled time, by the Tianhe paper's formulas (1) and (2): a message is built
 * by a CPU, goes across the bus, both links and the bus again, waits until the CPU polls, and is
 * added there; then what depends on it can go. What does not fit into a packet is announced first
 * by a small one. All tasks share a node's links, first come first served; each process has a CPU
 * of its own.
 */
#include "engine_world.h"

#include <stdlib.h>

#include "timeline.h"

/* Consecutive transfers of a step between the same two: one message of several chunks. */
struct message {
	const struct muster_transfer *t;
	uint32_t nr;
	uint64_t bytes;
	uint32_t awaits;		/* messages that its sender needs first */
};

/* One task's message, at one of its stations from this time on. */
struct under_way {
	double at_ns;
	uint32_t message, task;
	enum { BUILT, SENT, COME } station;
};

struct hosts {
	struct message *messages;
	uint32_t nr_messages;
	uint32_t *awaits;		/* by task and message */
	struct under_way *under_way;
	uint32_t nr;
	double out_ns[WORLD_NODES], in_ns[WORLD_NODES];	/* until then a link is busy */
	double cpu_ns[WORLD_TASKS_MAX][WORLD_NODES];
	double last_ns;
};

static void messages_make(struct hosts *h, const struct muster_schedule *s, uint64_t bytes)
{
	const struct muster_transfer *t = s->transfers;

	for (uint32_t i = 0, next; i < s->nr_transfers; i = next) {
		uint64_t first, len;

		for (next = i + 1; next < s->nr_transfers && t[next].step == t[i].step &&
		     t[next].from == t[i].from && t[next].to == t[i].to; next++)
			;
		muster_range_bytes(s, bytes / 8, MUSTER_DTYPE_F64, NULL, t[i].chunk, next - i,
				   &first, &len);
		h->messages[h->nr_messages++] = (struct message){ &t[i], next - i, len, 0 };
	}
}

/* Its sender has got some of the same chunks by the other one, in an earlier step. */
static bool needs(const struct message *m, const struct message *other)
{
	return other->t->to == m->t->from && other->t->step < m->t->step &&
	       other->t->chunk < m->t->chunk + m->nr && m->t->chunk < other->t->chunk + other->nr;
}

static void go(struct hosts *h, uint32_t task, uint32_t message, double at_ns)
{
	double *cpu = &h->cpu_ns[task][h->messages[message].t->from];

	*cpu = later(*cpu, at_ns) + world_costs.cpu_ns;
	at_ns = *cpu + world_costs.bus_ns;
	if (h->messages[message].bytes > MUSTER_MTU)	/* it is announced */
		at_ns += world_costs.cpu_ns + 2 * world_costs.bus_ns + world_costs.link_ns;
	h->under_way[h->nr++] = (struct under_way){ at_ns, message, task, BUILT };
}

/* It is in its receiver's memory. */
static void come(struct hosts *h, const struct under_way *u)
{
	const struct message *m = &h->messages[u->message];
	double *cpu = &h->cpu_ns[u->task][m->t->to];
	double at_ns = u->at_ns + world_costs.bus_ns + world_costs.poll_ns;

	if (m->t->reduce)
		*cpu = at_ns = later(at_ns, *cpu) +
			       (double)m->bytes / world_costs.host_sum_bytes_ns;
	h->last_ns = later(h->last_ns, at_ns);
	for (uint32_t i = 0; i < h->nr_messages; i++)
		if (needs(&h->messages[i], m) && !--h->awaits[u->task * h->nr_messages + i])
			go(h, u->task, i, at_ns);
}

static void station(struct hosts *h, struct under_way u)
{
	const struct message *m = &h->messages[u.message];
	double busy = (double)m->bytes / world_costs.link_bytes_ns;

	switch (u.station++) {
	case BUILT:
		h->out_ns[m->t->from] = later(h->out_ns[m->t->from], u.at_ns) + busy;
		u.at_ns = h->out_ns[m->t->from] + world_costs.link_ns;
		break;
	case SENT:
		h->in_ns[m->t->to] = later(h->in_ns[m->t->to], u.at_ns - busy) + busy;
		u.at_ns = h->in_ns[m->t->to];
		break;
	default:
		come(h, &u);
		return;
	}
	h->under_way[h->nr++] = u;
}

static struct under_way first_of(struct hosts *h)
{
	struct under_way first;
	uint32_t least = 0;

	for (uint32_t i = 1; i < h->nr; i++)
		if (h->under_way[i].at_ns < h->under_way[least].at_ns)
			least = i;
	first = h->under_way[least];
	h->under_way[least] = h->under_way[--h->nr];
	return first;
}

static void run(struct hosts *h, uint32_t tasks)
{
	for (uint32_t task = 0; task < tasks; task++)
		for (uint32_t i = 0; i < h->nr_messages; i++) {
			h->awaits[task * h->nr_messages + i] = h->messages[i].awaits;
			if (!h->messages[i].awaits)
				go(h, task, i, 0);
		}
	while (h->nr)
		station(h, first_of(h));
}

double world_host_us(const struct muster_schedule *schedule, const struct world_case *what)
{
	struct hosts *h = calloc(1, sizeof(*h));
	double last_ns;

	h->messages = calloc(schedule->nr_transfers, sizeof(*h->messages));
	messages_make(h, schedule, what->bytes);
	h->awaits = calloc(what->tasks * h->nr_messages, sizeof(*h->awaits));
	h->under_way = calloc(what->tasks * h->nr_messages, sizeof(*h->under_way));
	for (uint32_t i = 0; i < h->nr_messages; i++)
		for (uint32_t j = 0; j < h->nr_messages; j++)
			h->messages[i].awaits += needs(&h->messages[i], &h->messages[j]);
	run(h, what->tasks);
	last_ns = h->last_ns;
	free(h->messages);
	free(h->awaits);
	free(h->under_way);
	free(h);
	return last_ns / 1000;
}
