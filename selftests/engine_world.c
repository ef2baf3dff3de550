// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Engines as they are in modelled time (engine_world.h). An event is a packet that reaches a NIC.
 * It waits for its unit, and the engine then does all that it can: so many packets and bytes take
 * the unit so long. What is read of the input goes across the bus twice before it can leave;
 * what the NIC has just combined is still there (the paper's buffer of intermediate results), and
 * goes to memory beside. Bits are real, time alone is modelled.
 */
#include "engine_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arith.h"
#include "dev.h"
#include "engine.h"
#include "test_meaning.h"
#include "timeline.h"
#include "zeroed.h"

const struct world_costs world_costs = {
	.link_bytes_ns = 12.5, .bus_bytes_ns = 12.5,
	.sum_bytes_ns = 12.5, .host_sum_bytes_ns = 6,
	.link_ns = 1000, .bus_ns = 500, .packet_ns = 40, .cpu_ns = 300, .poll_ns = 1000,
};

enum {
	HEADER_BYTES = sizeof(struct muster_packet),
	JOB = 1, SPACES = 3,
	BUDGET = 1 << 20,
	KEY_LIFE = 1,
};

struct event {
	struct timed time;
	enum { READY, ON_ITS_WAY, THERE } where;
	struct muster_packet packet;
	uint8_t payload[];
};

struct node {
	struct world *world;
	uint32_t index;
	struct muster_engine *engine;
	double out_ns, in_ns, bus_ns;		/* until then link and bus are busy */
	double unit_ns[MUSTER_UNITS_MAX];
	double now_ns, data_ns;			/* when what it does is done, and its data there */
};

/* A task on a node: its program, of which so many stages are posted, and the spaces of it. */
struct memory {
	uint8_t *space[SPACES];
	struct muster_program *program;
	uint32_t stage;
};

struct world {
	const struct world_case *what;
	struct node nodes[WORLD_NODES];
	struct memory memory[WORLD_TASKS_MAX][WORLD_NODES];
	uint8_t *in[WORLD_NODES], *expected[WORLD_NODES];
	struct timeline line;
	uint64_t packets;
	double last_ns;
	uint32_t done;
	bool failed;
};

/* ---- what an engine may do to the world -------------------------------------------- */

/* Keys are spaces of tasks: 1 + task * SPACES + space, of which the first is the input. */
static uint8_t *place(const struct node *node, uint32_t key, uint64_t addr)
{
	const struct memory *memory = &node->world->memory[(key - 1) / SPACES][node->index];

	return memory->space[(key - 1) % SPACES] + addr;
}

static bool is_input(uint32_t key)
{
	return (key - 1) % SPACES == MUSTER_SPACE_IN - 1;
}

static int world_read(void *opaque, uint16_t vp, uint32_t key, uint64_t addr, void *to,
		      uint32_t len)
{
	struct node *node = opaque;

	(void)vp;
	memcpy(to, place(node, key, addr), len);
	if (!is_input(key))
		return 0;
	node->bus_ns = later(node->bus_ns, node->now_ns) + len / world_costs.bus_bytes_ns;
	node->data_ns = later(node->data_ns, node->bus_ns + 2 * world_costs.bus_ns);
	return 0;
}

static int world_write(void *opaque, uint16_t vp, uint32_t key, uint64_t addr, const void *from,
		       uint32_t len)
{
	(void)vp;
	memcpy(place(opaque, key, addr), from, len);
	return 0;
}

static uint64_t world_key_life(void *opaque, uint16_t vp, uint32_t key)
{
	(void)opaque;
	(void)vp;
	(void)key;
	return KEY_LIFE;
}

static double busy_ns(const struct muster_packet *packet)
{
	return (HEADER_BYTES + packet->length) / world_costs.link_bytes_ns;
}

static int world_send(void *opaque, uint32_t incarnation, const struct muster_packet *packet,
		      const void *payload)
{
	struct node *node = opaque;
	struct event *event = calloc(1, sizeof(*event) + packet->length);

	(void)incarnation;
	event->packet = *packet;
	if (packet->length)
		memcpy(event->payload, payload, packet->length);
	node->now_ns += world_costs.packet_ns;
	event->time.at_ns = packet->length ? later(node->now_ns, node->data_ns) : node->now_ns;
	node->world->packets++;
	timeline_push(&node->world->line, &event->time);
	return 0;
}

static int world_complete(void *opaque, uint16_t vp, const struct muster_cqe *cqe)
{
	struct node *node = opaque;
	struct world *w = node->world;

	(void)vp;
	if (cqe->status || cqe->kind != MUSTER_CQE_SEQUENCE)
		w->failed = true;
	w->done++;
	w->last_ns = later(w->last_ns, later(node->now_ns, node->data_ns) + world_costs.bus_ns);
	return 0;
}

static int world_deliver(void *opaque, uint16_t vp, const struct muster_packet *packet,
			 const void *payload)
{
	(void)opaque;
	(void)vp;
	(void)packet;
	(void)payload;
	return -ENOSPC;
}

/* ---- building it -------------------------------------------------------------------- */

/* Who has a fixed part of the buffers is an engine's unit of his own; in time he is not. */
static struct muster_engine_model model_of(const struct world_case *what)
{
	struct muster_engine_model model = what->model;

	if (what->partitions) {
		model.units = what->tasks + what->idle;
		model.buffer = MUSTER_UNITS * MUSTER_BUFFER_BYTES / model.units;
	}
	return model;
}

static int node_begin(struct world *w, uint32_t index)
{
	static const struct muster_engine_world table = {
		.dma_read = world_read, .dma_write = world_write,
		.key_life = world_key_life, .send = world_send, .complete = world_complete,
		.deliver = world_deliver, .alloc = muster_zeroed, .free = muster_zeroed_free,
	};
	const struct muster_engine_config config = { .node = index, .model = model_of(w->what) };
	struct muster_member members[WORLD_NODES];
	struct node *node = &w->nodes[index];
	int err;

	node->world = w;
	node->index = index;
	err = muster_engine_create(&config, &table, node, &node->engine);
	for (uint32_t task = 0; task < w->what->tasks + w->what->idle && !err; task++) {
		const struct muster_context_config context = {
			.job = JOB, .context = task, .life = 1, .vp = task, .self = index,
			.nr_members = WORLD_NODES, .members = members,
		};

		for (uint32_t i = 0; i < WORLD_NODES; i++)
			members[i] = (struct muster_member){
				.node = i, .vp = task, .incarnation = 1,
			};
		err = muster_engine_vp_open(node->engine, task);
		if (!err)
			err = muster_engine_context_open(node->engine, &context);
	}
	return err;
}

/* Numbers that no order of adding leaves the same. */
static double number(uint64_t seed)
{
	seed = (seed + 1) * 0x9e3779b97f4a7c15ull;
	seed = (seed ^ seed >> 29) * 0xbf58476d1ce4e5b9ull;
	return (double)(int64_t)(seed ^ seed >> 32) / (double)(1ull << (seed & 63));
}

static void expect(struct world *w, const struct muster_schedule *schedule)
{
	for (uint32_t r = 0; r < WORLD_NODES; r++) {
		w->in[r] = malloc(w->what->bytes);
		w->expected[r] = malloc(w->what->bytes);
		for (uint64_t i = 0; i < w->what->bytes / 8; i++)
			((double *)w->in[r])[i] = number(r * w->what->bytes + i);
		memcpy(w->expected[r], w->in[r], w->what->bytes);
	}
	meaning_execute(schedule, MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, w->what->bytes / 8,
			w->expected);
}

static void bind(struct muster_desc *desc, uint32_t task, const uint8_t *in, uint64_t cookie)
{
	desc->cookie = cookie;
	if (desc->inline_len)
		memcpy(desc->data, in + desc->range.load_addr, desc->inline_len);
	else if (desc->range.load_key)
		desc->range.load_key += task * SPACES;
	if (desc->store_key)
		desc->store_key += task * SPACES;
}

/* As many of its stages as the engine takes: the CPU is ahead of it. */
static int post(struct world *w, uint32_t task, struct node *node)
{
	struct memory *memory = &w->memory[task][node->index];
	const struct muster_program *program = memory->program;
	uint32_t bad;
	int err = 0;

	for (; memory->stage < program->nr_stages && !err; memory->stage += !err) {
		uint32_t first = program->stage_first[memory->stage];

		err = muster_engine_post(node->engine, task, &program->descs[first],
					 program->stage_first[memory->stage + 1] - first, &bad);
	}
	return err == -EAGAIN ? 0 : err;
}

/* One task's program on one node. */
static int make(struct world *w, const struct muster_schedule *schedule, uint32_t task,
		struct node *node)
{
	struct muster_address addresses[WORLD_NODES];
	struct muster_lower_params params = {
		.rank = node->index, .count = w->what->bytes / 8, .type = MUSTER_DTYPE_F64,
		.op = schedule->coll == MUSTER_COLL_BROADCAST ? MUSTER_REDOP_NONE :
								MUSTER_REDOP_SUM,
		.job = JOB, .context = task, .addresses = addresses,
		.forwards = !w->what->pulses,
	};
	struct memory *memory = &w->memory[task][node->index];
	struct muster_program *program;
	char why[256];
	int err;

	for (uint32_t i = 0; i < WORLD_NODES; i++)
		addresses[i] = (struct muster_address){ .node = i, .vp = task, .incarnation = 1 };
	err = muster_schedule_lower(schedule, &params, &program, why, sizeof(why));
	if (err) {
		fprintf(stderr, "%s: %s\n", schedule->name, why);
		return err;
	}
	memory->space[0] = w->in[node->index];
	memory->space[1] = calloc(1, w->what->bytes);
	memory->space[2] = calloc(1, program->scratch_bytes + 1);
	memory->program = program;
	for (uint32_t i = 0; i < program->nr_descs; i++)
		bind(&program->descs[i], task, w->in[node->index], task);
	return post(w, task, node);
}

/* ---- running it --------------------------------------------------------------------- */

/* The engine does what it can, from now on, as its unit is free. */
static void act(struct node *node, double *unit_ns)
{
	while (muster_engine_step(node->engine, BUDGET))
		;
	*unit_ns = node->now_ns;
}

/* Links carry what is ready, in that order. It is there when its last bit is, as they stream. */
static void travel(struct world *w, struct event *event)
{
	struct node *from = &w->nodes[event->packet.src_node];
	struct node *to = &w->nodes[event->packet.dst_node];
	double busy = busy_ns(&event->packet);

	if (event->where++ == READY) {
		from->out_ns = later(event->time.at_ns, from->out_ns) + busy;
		event->time.at_ns = from->out_ns + world_costs.link_ns;
	} else {
		to->in_ns = later(event->time.at_ns - busy, to->in_ns) + busy;
		event->time.at_ns = to->in_ns;
	}
}

static uint32_t nr_units(const struct world_case *what)
{
	return what->model.units ? what->model.units : MUSTER_UNITS;
}

/* False: the link or its unit is busy, and it comes again. */
static bool take(struct world *w, struct event *event)
{
	struct node *node = &w->nodes[event->packet.dst_node];
	double *unit_ns = &node->unit_ns[event->packet.context % nr_units(w->what)];

	if (event->where != THERE) {
		travel(w, event);
		return false;
	}
	if (*unit_ns > event->time.at_ns) {
		event->time.at_ns = *unit_ns;
		return false;
	}
	node->now_ns = event->time.at_ns + world_costs.packet_ns +
		       event->packet.length / world_costs.sum_bytes_ns;
	node->data_ns = 0;
	muster_engine_receive(node->engine, &event->packet, event->payload, event->packet.length);
	act(node, unit_ns);
	if (post(w, event->packet.context, node))
		w->failed = true;
	act(node, unit_ns);
	return true;
}

static void begin(struct world *w)
{
	struct event *event;

	for (uint32_t n = 0; n < WORLD_NODES; n++) {
		w->nodes[n].now_ns = world_costs.cpu_ns + 2 * world_costs.bus_ns;
		act(&w->nodes[n], &w->nodes[n].unit_ns[0]);
	}
	while (!w->failed && (event = (struct event *)timeline_pop(&w->line))) {
		if (take(w, event))
			free(event);
		else
			timeline_push(&w->line, &event->time);
	}
}

/* Of a unit's buffer; where there is none that is nothing of nothing. */
static double occupancy(const struct world_case *what, uint64_t blocks)
{
	const struct muster_engine_model model = model_of(what);
	uint32_t bytes = model.buffer ? model.buffer : MUSTER_BUFFER_BYTES;

	return bytes == MUSTER_ENGINE_NO_BUFFER ? 0 : (double)blocks * MUSTER_MTU / bytes;
}

static bool has_result(const struct world_case *what, uint32_t rank)
{
	return what->coll != MUSTER_COLL_REDUCE || !rank;
}

static void judge(struct world *w, struct world_result *result)
{
	struct muster_engine_counters c;

	result->us = w->last_ns / 1000;
	result->packets = w->packets;
	result->exact = !w->failed && w->done == w->what->tasks * WORLD_NODES;
	for (uint32_t n = 0; n < WORLD_NODES; n++) {
		muster_engine_counters_get(w->nodes[n].engine, &c);
		result->occupancy = later(result->occupancy,
					  occupancy(w->what, c.buffer_blocks_used_max));
		result->dropped += c.drop_malformed + c.drop_stranger + c.drop_duplicate +
				   c.drop_window + c.drop_ring_full;
		for (uint32_t task = 0; task < w->what->tasks && has_result(w->what, n); task++)
			result->exact &= !memcmp(w->memory[task][n].space[1], w->expected[n],
						 w->what->bytes) ||
					 (w->what->coll == MUSTER_COLL_BROADCAST && !n);
	}
}

static void end(struct world *w)
{
	for (uint32_t n = 0; n < WORLD_NODES; n++) {
		if (w->nodes[n].engine)
			muster_engine_destroy(w->nodes[n].engine);
		for (uint32_t task = 0; task < w->what->tasks; task++) {
			free(w->memory[task][n].space[1]);
			free(w->memory[task][n].space[2]);
			if (w->memory[task][n].program)
				muster_program_free(w->memory[task][n].program);
		}
		free(w->in[n]);
		free(w->expected[n]);
	}
	timeline_free(&w->line);
	free(w);
}

/* The first chunk's transfers, which have every second step. */
static void keep_one_tree(struct muster_schedule *schedule)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < schedule->nr_transfers; i++)
		if (!schedule->transfers[i].chunk) {
			schedule->transfers[nr] = schedule->transfers[i];
			schedule->transfers[nr++].step /= 2;
		}
	schedule->nr_transfers = nr;
	schedule->chunks = 1;
	schedule->steps /= 2;
}

int world_run(const struct world_case *what, struct world_result *result)
{
	struct world *w = calloc(1, sizeof(*w));
	struct muster_schedule *schedule;
	char why[256];
	int err = muster_schedule_generate(what->algorithm, what->coll, WORLD_NODES, 0, what->bytes,
					   &schedule, why, sizeof(why));

	if (err) {
		fprintf(stderr, "%s\n", why);
		free(w);
		return err;
	}
	w->what = what;
	if (what->one_tree)
		keep_one_tree(schedule);
	schedule->variant.barrier = what->whole;
	expect(w, schedule);
	*result = (struct world_result){ .host_us = world_host_us(schedule, what) };
	for (uint32_t n = 0; n < WORLD_NODES && !err; n++)
		err = node_begin(w, n);
	for (uint32_t task = 0; task < what->tasks; task++)
		for (uint32_t n = 0; n < WORLD_NODES && !err; n++)
			err = make(w, schedule, task, &w->nodes[n]);
	if (!err)
		begin(w);
	if (!err)
		judge(w, result);
	end(w);
	muster_schedule_free(schedule);
	return err;
}
