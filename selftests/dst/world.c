// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Virtual time: a heap of events ordered by time and then by number, so that
 * nothing depends on addresses, on the host or on chance. A run builds a world
 * from its plan, takes events until every living rank has finished, and then
 * looks whether everything has been given back.
 */
#include "dst.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- events ------------------------------------------------------------------- */

static bool is_first(uint64_t a_us, uint64_t a_order, uint64_t b_us, uint64_t b_order)
{
	return a_us != b_us ? a_us < b_us : a_order < b_order;
}

static bool before(const struct dst_event *a, const struct dst_event *b)
{
	return is_first(a->at_us, a->order, b->at_us, b->order);
}

static void push(struct dst_world *w, struct dst_event event)
{
	uint32_t i = w->heap_nr++;

	if (w->heap_nr > w->heap_max) {
		w->heap_max = w->heap_max ? 2 * w->heap_max : 1024;
		w->heap = realloc(w->heap, w->heap_max * sizeof(*w->heap));
	}
	for (; i && before(&event, &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = event;
}

static struct dst_event pop(struct dst_world *w)
{
	struct dst_event first = w->heap[0], last = w->heap[--w->heap_nr];
	uint32_t i = 0, child;

	while ((child = 2 * i + 1) < w->heap_nr) {
		if (child + 1 < w->heap_nr && before(&w->heap[child + 1], &w->heap[child]))
			child++;
		if (!before(&w->heap[child], &last))
			break;
		w->heap[i] = w->heap[child];
		i = child;
	}
	w->heap[i] = last;
	return first;
}

void dst_at(struct dst_world *w, uint64_t at_us, enum dst_event_type type, uint32_t target,
	    uint32_t other, struct dst_parcel *parcel)
{
	push(w, (struct dst_event){
		.at_us = at_us, .order = w->order++, .type = type, .target = target,
		.other = other, .parcel = parcel,
	});
}

/*
 * A node or rank has one planned step or turn, which moves to the front of its heap when it is asked for sooner: who
 * waits for a second, and is woken within microseconds, time and again, leaves nothing behind.
 */
static bool sooner(const struct dst_next *a, const struct dst_next *b)
{
	return is_first(a->at_us, a->order, b->at_us, b->order);
}

static void put(struct dst_world *w, uint32_t i, struct dst_next *next)
{
	w->planned[i] = next;
	next->place = i + 1;
}

static void next_at(struct dst_world *w, struct dst_next *next, uint64_t at_us)
{
	uint32_t i = next->place ? next->place - 1 : w->nr_planned;

	if (at_us >= next->at_us)
		return;
	w->nr_planned += !next->place;
	next->at_us = at_us;
	next->order = w->order++;
	for (; i && sooner(next, w->planned[(i - 1) / 2]); i = (i - 1) / 2)
		put(w, i, w->planned[(i - 1) / 2]);
	put(w, i, next);
}

static struct dst_event next_take(struct dst_world *w)
{
	struct dst_next *next = w->planned[0], *last = w->planned[--w->nr_planned];
	struct dst_event event = { .at_us = next->at_us, .type = next->type, .target = next->target };
	uint32_t i = 0, child;

	while ((child = 2 * i + 1) < w->nr_planned) {
		if (child + 1 < w->nr_planned && sooner(w->planned[child + 1], w->planned[child]))
			child++;
		if (!sooner(w->planned[child], last))
			break;
		put(w, i, w->planned[child]);
		i = child;
	}
	put(w, i, last);
	next->place = 0;
	next->at_us = UINT64_MAX;
	return event;
}

/* Return: whether what is to happen next is a step or turn. */
static bool is_next_planned(const struct dst_world *w)
{
	const struct dst_event *event = w->heap;
	const struct dst_next *next = w->planned[0];

	if (!w->nr_planned || !w->heap_nr)
		return w->nr_planned;
	return is_first(next->at_us, next->order, event->at_us, event->order);
}

/* UINT64_MAX: nothing is to happen any more. */
static uint64_t next_us(const struct dst_world *w)
{
	if (is_next_planned(w))
		return w->planned[0]->at_us;
	return w->heap_nr ? w->heap[0].at_us : UINT64_MAX;
}

void dst_step_at(struct dst_node *node, uint64_t at_us)
{
	next_at(node->world, &node->step, at_us);
}

void dst_turn_at(struct dst_rank *rank, uint64_t at_us)
{
	next_at(rank->world, &rank->turn, at_us < rank->begin_us ? rank->begin_us : at_us);
}

/* ---- small things --------------------------------------------------------------- */

void dst_mix(struct dst_world *w, uint64_t value)
{
	w->hash = (w->hash ^ value) * 0x100000001b3ull;
	w->hash ^= w->hash >> 29;
}

bool dst_healed(const struct dst_world *w)
{
	return w->now_us >= w->plan.heal_us;
}

void dst_fail(struct dst_world *w, const char *format, ...)
{
	va_list args;
	int at;

	if (w->failed)
		return;
	w->failed = true;
	at = snprintf(w->why, sizeof(w->why), "at %" PRIu64 " us: ", w->now_us);
	va_start(args, format);
	vsnprintf(w->why + at, sizeof(w->why) - at, format, args);
	va_end(args);
}

void dst_say(struct dst_world *w, const char *format, ...)
{
	va_list args;

	if (!w->trace)
		return;
	printf("%10" PRIu64 " ", w->now_us);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

uint8_t *dst_memory(struct dst_world *w, size_t bytes)
{
	size_t at = (w->arena_used + 63) / 64 * 64;

	if (bytes > DST_ARENA_BYTES - at) {
		dst_fail(w, "the plan needs more memory than there is");
		return NULL;
	}
	w->arena_used = at + bytes;
	return w->arena + at;
}

/* ---- building a world ----------------------------------------------------------------- */

static void place_ranks(struct dst_world *w)
{
	for (uint32_t n = 0; n < w->plan.nodes; n++) {
		w->nodes[n] = (struct dst_node){
			.world = w, .index = n, .incarnation = 100 + n,
			.step = { .at_us = UINT64_MAX, .type = DST_EVENT_STEP, .target = (uint16_t)n },
		};
	}
	for (uint32_t r = 0; r < w->plan.ranks; r++) {
		struct dst_rank *rank = &w->ranks[r];
		struct dst_node *node = &w->nodes[r / w->plan.vps_per_node];

		memset(rank, 0, sizeof(*rank));
		rank->world = w;
		rank->node = node;
		rank->index = r;
		rank->vp = 5 + 3 * node->nr_ranks;
		rank->turn = (struct dst_next){
			.at_us = UINT64_MAX, .type = DST_EVENT_TURN, .target = (uint16_t)r,
		};
		rank->backoff_us = 1;
		rank->begin_us = dst_below(&w->host, w->plan.late_us + 1);
		node->ranks[node->nr_ranks++] = rank;
	}
}

/* Two members at least, in any order. */
static void draw_members(struct dst_world *w, struct dst_comm *comm)
{
	uint32_t ranks[DST_RANKS_MAX];

	for (uint32_t r = 0; r < w->plan.ranks; r++)
		ranks[r] = r;
	comm->nr = dst_below(&w->data, 3) ? w->plan.ranks :
					    2 + dst_below(&w->data, w->plan.ranks - 1);
	for (uint32_t m = 0; m < comm->nr; m++) {
		uint32_t other = m + dst_below(&w->data, w->plan.ranks - m), rank = ranks[other];
		struct dst_part *part = &w->ranks[rank].parts[comm - w->comms];

		ranks[other] = ranks[m];
		ranks[m] = rank;
		comm->members[m] = rank;
		comm->addresses[m] = (struct muster_address){
			.node = w->ranks[rank].node->index,
			.vp = w->ranks[rank].vp,
			.incarnation = w->ranks[rank].node->incarnation,
		};
		part->member = true;
		part->self = m;
	}
}

static int draw_comm(struct dst_world *w, struct dst_comm *comm)
{
	bool large = dst_below(&w->data, 2);
	int err;

	memset(comm, 0, sizeof(*comm));
	comm->id = 1 + dst_below(&w->data, 20000) * DST_COMMS_MAX + (comm - w->comms);
	draw_members(w, comm);
	err = w->trees ? dst_trees_make(w, comm) : 0;
	if (err) {
		dst_fail(w, "a communicator's groups cannot be made: %d", err);
		return err;
	}
	dst_messages_make(w, comm);
	comm->nr_ops = 1 + dst_below(&w->data, large ? 6 : dst_below(&w->data, 3) ? 12 :
						DST_OPS_MAX);
	if (w->limits.ops && comm->nr_ops > w->limits.ops)
		comm->nr_ops = w->limits.ops;
	for (uint32_t i = 0; i < comm->nr_ops; i++) {
		err = dst_op_make(w, comm, &comm->ops[i], large);
		if (err) {
			dst_fail(w, "an operation cannot be made: %d", err);
			return err;
		}
	}
	return 0;
}

/* The cause that was drawn, for the members and operations that there are. */
static void settle_cause(struct dst_world *w)
{
	struct dst_plan *plan = &w->plan;
	struct dst_comm *comm = &w->comms[plan->cause_comm];
	uint32_t member = plan->cause_rank % comm->nr;
	struct dst_call *call;

	plan->cause_rank = comm->members[member];
	plan->cause_op %= comm->nr_ops;
	call = &w->ranks[plan->cause_rank].parts[plan->cause_comm].calls[plan->cause_op];
	if (plan->cause == DST_MEMORY)
		call->refused = true;
	if (plan->cause == DST_MISMATCH) {
		muster_program_free(call->program);
		dst_op_alter(w, &comm->wrong, &comm->ops[plan->cause_op]);
		dst_call_make(w, comm, member, &comm->wrong, call, NULL);
		dst_at(w, DST_BOUND_US / 2, DST_EVENT_CAUSE, 0, 0, NULL);
	} else if (plan->cause != DST_NONE) {
		dst_at(w, plan->cause_us, DST_EVENT_CAUSE, 0, 0, NULL);
	}
}

/* Its ranks make communicators by themselves, and forged packets may find one that is closed. */
static void plan_for_library(struct dst_plan *plan)
{
	plan->comms = 0;
	plan->cause = DST_NONE;
	plan->forge = 0;
}

/* So many ranks that each node has some; what is left of chance is time and order. */
static void plan_many(struct dst_plan *plan, uint32_t ranks, bool apart)
{
	struct dst_plan drawn = *plan;

	*plan = (struct dst_plan){
		.seed = drawn.seed, .ranks = ranks, .model = drawn.model, .map = drawn.map,
		.vps_per_node = apart ? 1 : (ranks + DST_NODES_SHARED - 1) / DST_NODES_SHARED,
		.budget = 256, .cq_slots = DST_CQ_MAX,
		.rings = drawn.rings, .by_reference = drawn.by_reference,
		.copies = drawn.copies && apart,
		.at_once = drawn.at_once, .forwards = drawn.forwards, .idles = drawn.idles,
		.jitter_us = 20, .engine_us = 5, .host_us = 5,
	};
	plan->nodes = (ranks + plan->vps_per_node - 1) / plan->vps_per_node;
}

static bool switches_begin(struct dst_world *w)
{
	if (!dst_network_make(w))
		return false;
	for (uint32_t n = w->plan.ranks; n < w->plan.nodes; n++)
		if (dst_switch_begin(&w->nodes[n]))
			dst_fail(w, "switch %u cannot begin", n);
	for (uint32_t i = 0; i < w->plan.replaced; i++)
		dst_at(w, dst_below(&w->host, dst_below(&w->host, 2) ? 3000 : 400000), DST_EVENT_REPLACE,
		       w->plan.ranks + dst_below(&w->host, w->plan.switches), 0, NULL);
	return !w->failed;
}

static void begin(struct dst_world *w, uint64_t seed)
{
	w->nr_planned = 0;
	w->now_us = w->order = w->nr_events = w->nr_packets = w->nr_faults = 0;
	w->arena_used = 0;
	w->failed = w->forgotten = false;
	w->why[0] = '\0';
	w->hash = 0xcbf29ce484222325ull;
	w->net.state = seed ^ 0x6e6574;
	w->host.state = seed ^ 0x686f7374;
	w->data.state = seed ^ 0x64617461;
	dst_plan_make(&w->plan, seed);
	if (w->trees)
		dst_plan_trees(&w->plan);
	if (w->library)
		plan_for_library(&w->plan);
	if (w->many)
		plan_many(&w->plan, w->many, w->apart);
	w->bound_us = DST_BOUND_US;
	w->events_end = DST_EVENTS_MAX;
	dst_plan_limit(&w->plan, &w->limits);
	w->job = 1 + dst_below(&w->data, 255);
	w->job_key = dst_draw(&w->data);
	place_ranks(w);
	if (w->trees && !switches_begin(w))
		return;
	for (uint32_t c = 0; c < w->plan.comms; c++)
		if (draw_comm(w, &w->comms[c]))
			return;
	if (!w->library)
		settle_cause(w);
	dst_net_begin(w);
	for (uint32_t n = 0; n < w->plan.nodes; n++) {
		int err = w->nodes[n].sw ? 0 : dst_node_begin(&w->nodes[n]);

		if (err)
			dst_fail(w, "node %u: the engine cannot begin: %d", n, err);
		dst_step_at(&w->nodes[n], 1);
	}
	for (uint32_t r = 0; r < w->plan.ranks; r++) {
		if (w->library &&
		    dst_process_begin(&w->ranks[r], w->program ? w->program : dst_program))
			dst_fail(w, "rank %u: no memory for its process", r);
		dst_turn_at(&w->ranks[r], 1);
	}
}

/* ---- taking events ------------------------------------------------------------------- */

static void die(struct dst_world *w)
{
	struct dst_node *node = w->ranks[w->plan.cause_rank].node;

	dst_say(w, "node %u dies", node->index);
	node->dead = true;
	if (node->left)
		return;
	for (uint32_t c = 0; c < w->plan.comms && w->trees; c++)
		dst_trees_leave(&w->ranks[w->plan.cause_rank], c);
	for (uint32_t i = 0; i < w->plan.nodes && (w->plan.rings || w->trees); i++)
		if (i != node->index && !w->nodes[i].sw)
			dst_at(w, w->now_us + 100 + dst_below(&w->net, 5000), DST_EVENT_LOST, i,
			       node->index, NULL);
	if (!w->plan.rings && w->plan.reborn)
		dst_at(w, w->now_us + 100 + dst_below(&w->net, dst_below(&w->net, 2) ? 20000 :
						      2 * DST_DEADLINE_US),
		       DST_EVENT_REBIRTH, node->index, 0, NULL);
}

static void cause(struct dst_world *w)
{
	struct dst_comm *comm = &w->comms[w->plan.cause_comm];

	if (w->trees && !dst_network_met(w)) {
		dst_at(w, w->now_us + 1000, DST_EVENT_CAUSE, 0, 0, NULL);
		return;
	}
	switch (w->plan.cause) {
	case DST_DEATH:
		die(w);
		break;
	case DST_ABORT:
		dst_host_abort(&w->ranks[w->plan.cause_rank], w->plan.cause_comm);
		break;
	case DST_CLOSE:
		dst_host_close(&w->ranks[w->plan.cause_rank], w->plan.cause_comm);
		break;
	case DST_MISMATCH:
		/* Ranks may all wait for one another without a packet that tells: one gives up. */
		for (uint32_t m = 0; m < comm->nr; m++)
			dst_host_abort(&w->ranks[comm->members[m]], w->plan.cause_comm);
		break;
	case DST_SWITCH:
	case DST_CUT:
		dst_network_break(w);
		break;
	default:
		break;
	}
}

static void take(struct dst_world *w, const struct dst_event *event)
{
	struct dst_rank *rank = &w->ranks[event->target];
	struct dst_node *node = event->type == DST_EVENT_TURN ? rank->node : &w->nodes[event->target];

	switch (event->type) {
	case DST_EVENT_STEP:
		if ((!node->dead || node->reborn) && !node->left)
			dst_node_step(node);
		break;
	case DST_EVENT_TURN:
		if (rank->process)
			dst_process_turn(rank);
		else
			dst_host_turn(rank);
		break;
	case DST_EVENT_FRAME:
		dst_net_arrive(node, event->other, event->parcel);
		break;
	case DST_EVENT_PACKET:
		dst_net_packet(node, event->other, event->parcel);
		break;
	case DST_EVENT_LOST:
	case DST_EVENT_LEFT:
		dst_net_end(node, event->other, event->type == DST_EVENT_LEFT);
		break;
	case DST_EVENT_REBIRTH:
		dst_net_rebirth(node);
		break;
	case DST_EVENT_LEAVE:
		dst_trees_left(rank, event->other);
		break;
	case DST_EVENT_REMOVE:
		dst_trees_remove(node, event->other);
		break;
	case DST_EVENT_REPLACE:
		dst_switch_replace(node);
		break;
	case DST_EVENT_UNLINK:
		dst_switch_unlink(node, event->other);
		break;
	default:
		cause(w);
	}
}

bool dst_rank_finished(const struct dst_rank *rank)
{
	return rank->process ? dst_process_finished(rank) : dst_host_finished(rank);
}

static bool finished(struct dst_world *w)
{
	for (uint32_t r = 0; r < w->plan.ranks; r++)
		if (!w->ranks[r].node->dead && !dst_rank_finished(&w->ranks[r]))
			return false;
	for (uint32_t i = 0; i < w->plan.nodes; i++)
		if (!w->nodes[i].dead && !dst_node_has_told(&w->nodes[i]))
			return false;
	return !w->trees || dst_switches_rest(w, false);
}

/* Says which rank waits, and what for. */
static void fail_late(struct dst_world *w)
{
	for (uint32_t r = 0; r < w->plan.ranks; r++) {
		const struct dst_rank *rank = &w->ranks[r];

		if (rank->process && !dst_process_finished(rank))
			dst_fail(w, "rank %u has not come to its end, %s", r,
				 next_us(w) == UINT64_MAX ? "and nothing is to happen any more" :
				 next_us(w) > w->bound_us ? "and nothing happens in time" : "and very much has happened");
		for (uint32_t c = 0; c < w->plan.comms && !rank->node->dead; c++) {
			const struct dst_part *part = &rank->parts[c];
			struct muster_context_state s = { 0 };

			if (!part->member || part->closed)
				continue;
			muster_engine_context_query(rank->node->engine, rank->vp, w->job,
						    w->comms[c].id, &s);
			dst_say(w, "rank %u, communicator %u: %u of %u calls completed, %u posted; number %u, %u queued, pulse %u, slot %u, waiting %u, failed %u",
				r, c, part->completed, w->comms[c].nr_ops, part->posting, s.number,
				s.queued, s.pulse, s.cursor, s.waiting, s.failed);
			dst_fail(w, "rank %u, communicator %u still waits: %u of %u calls completed, %u posted; number %u, %u queued, pulse %u, slot %u, waiting %u, failed %u",
				 r, c, part->completed, w->comms[c].nr_ops, part->posting, s.number,
				 s.queued, s.pulse, s.cursor, s.waiting, s.failed);
		}
	}
	if (w->trees)
		dst_switches_rest(w, true);
}

static void run(struct dst_world *w)
{
	while (!w->failed && !finished(w)) {
		struct dst_event event;

		if (next_us(w) > w->bound_us || w->nr_events++ > w->events_end) {
			fail_late(w);
			return;
		}
		event = is_next_planned(w) ? next_take(w) : pop(w);
		w->now_us = event.at_us;
		dst_mix(w, event.at_us << 8 ^ (uint64_t)event.target << 4 ^ event.type);
		take(w, &event);
		dst_parcel_free(w, event.parcel);
	}
}

/* Not everybody can have called the same, so somebody must have noticed, unless all came too late for that. */
static void check_mismatch(struct dst_world *w)
{
	const struct dst_comm *comm = &w->comms[w->plan.cause_comm];

	if (w->plan.cause != DST_MISMATCH || w->forgotten)
		return;
	for (uint32_t m = 0; m < comm->nr; m++)
		if (w->ranks[comm->members[m]].parts[w->plan.cause_comm].told)
			return;
	dst_fail(w, "communicator %u: nobody has noticed that member's call %u differs",
		 w->plan.cause_comm, w->plan.cause_op);
}

static void end(struct dst_world *w)
{
	while (w->heap_nr)
		dst_parcel_free(w, pop(w).parcel);
	if (!w->failed) {
		dst_net_check(w);
		check_mismatch(w);
	}
	dst_net_drop(w);
	for (uint32_t n = 0; n < w->plan.nodes; n++)
		dst_node_end(&w->nodes[n]);
	dst_trees_free(w);
	dst_network_free(w);
	for (uint32_t r = 0; r < w->plan.ranks; r++)
		dst_process_end(&w->ranks[r]);
	for (uint32_t c = 0; c < w->plan.comms; c++) {
		struct dst_comm *comm = &w->comms[c];

		if (!w->failed)
			dst_writes_check(w, c);
		for (uint32_t i = 0; i < comm->nr_ops; i++) {
			for (uint32_t m = 0; m < comm->nr; m++) {
				struct dst_part *part = &w->ranks[comm->members[m]].parts[c];
				struct dst_call *call = &part->calls[i];

				if (!w->failed && call->settled && !dst_call_sealed(call))
					dst_fail(w, "member %u of communicator %u: memory of call %u was changed after it had completed",
						 m, c, i);
				if (call->program)
					muster_program_free(call->program);
			}
			if (comm->ops[i].owned)
				muster_schedule_free(comm->ops[i].owned);
		}
	}
}

bool dst_world_run(struct dst_world *w, uint64_t seed)
{
	begin(w, seed);
	run(w);
	end(w);
	return !w->failed;
}

struct dst_world *dst_world_new(void)
{
	struct dst_world *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->arena = aligned_alloc(64, DST_ARENA_BYTES);
	w->dump_fd = -1;
	if (w->arena)
		return w;
	free(w);
	return NULL;
}

void dst_world_free(struct dst_world *w)
{
	dst_net_free(w);
	free(w->heap);
	free(w->arena);
	free(w);
}
