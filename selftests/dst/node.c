// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A simulated NIC: an engine and what it may do to the world. Memory is known by
 * key and address: each call of an operation has a region for its input, one for
 * its output and its scratch, which end with the call. An access outside of a region, or to
 * one that has ended, is a fault of the engine and fails the run.
 */
#include "dst.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "zeroed.h"

enum { LEAVE_US = 1000 };

static struct dst_rank *rank_of(struct dst_node *node, uint16_t vp)
{
	for (uint32_t i = 0; i < node->nr_ranks; i++)
		if (node->ranks[i]->vp == vp)
			return node->ranks[i];
	return NULL;
}

/* ---- memory ------------------------------------------------------------------- */

enum region { REGION_IN, REGION_OUT, REGION_SCRATCH, REGION_PROGRAM };

/* The call that a key belongs to: 1 + ((comm * calls + call) * DST_CALL_REGIONS + region). */
static struct dst_call *call_of(struct dst_rank *rank, uint32_t key, enum region *region)
{
	uint32_t index = key - 1, call = index / DST_CALL_REGIONS;

	if (!rank || !key || call >= DST_COMMS_MAX * DST_OPS_MAX)
		return NULL;
	*region = index % DST_CALL_REGIONS;
	return &rank->parts[call / DST_OPS_MAX].calls[call % DST_OPS_MAX];
}

static uint8_t *region_of(const struct dst_call *call, enum region region, uint64_t *bytes)
{
	*bytes = call->program->nr_descs * sizeof(struct muster_desc);
	if (region == REGION_PROGRAM)
		return (uint8_t *)call->in_memory;
	*bytes = region == REGION_SCRATCH ? call->program->scratch_bytes : call->op->bytes;
	if (region == REGION_SCRATCH)
		return call->scratch;
	return region == REGION_OUT ? call->out : call->in;
}

/* Where a range lies; NULL after dst_fail(), or where the plan says that it is refused. */
static uint8_t *range(struct dst_node *node, uint16_t vp, uint32_t key, uint64_t addr,
		      uint64_t len, bool write)
{
	struct dst_world *w = node->world;
	enum region region = REGION_IN;
	struct dst_call *call = call_of(rank_of(node, vp), key, &region);
	uint64_t offset = addr - ((uint64_t)key << 32), bytes = 0;
	uint8_t *p = NULL;

	/* A send that is refused reads its data each time: only a write gets on. */
	node->activity += write;
	if (dst_lent_is(key)) {
		p = write ? NULL : dst_lent_range(node, key, addr, len);
		if (!p)
			dst_fail(w, "node %u: access to a copy that is not lent", node->index);
		return p;
	}
	if (w->library) {
		p = dst_process_range(rank_of(node, vp), key, addr, len, write);
		if (!p)
			dst_fail(w, "node %u: access to %" PRIu64 " bytes of key %u, which are not registered for it",
				 node->index, len, key);
		return p;
	}
	if (call && call->refused)
		return NULL;
	p = write ? NULL : dst_write_range(rank_of(node, vp), key, addr, len, false);
	if (p)
		return p;
	if (call && call->live)
		p = region_of(call, region, &bytes);
	if (!p || offset > bytes || len > bytes - offset) {
		dst_fail(w, "node %u: access to %" PRIu64 " bytes at offset %" PRIu64 " of key %u, which %s",
			 node->index, len, offset, key,
			 call && call->live ? "is shorter" : "has ended");
		return NULL;
	}
	if (write && (region == REGION_IN || region == REGION_PROGRAM)) {
		dst_fail(w, "node %u: write to what a call only reads, key %u", node->index, key);
		return NULL;
	}
	return p + offset;
}

static int world_dma_read(void *opaque, uint16_t vp, uint32_t key, uint64_t addr, void *buf,
			  uint32_t len)
{
	const uint8_t *p = range(opaque, vp, key, addr, len, false);

	if (!p)
		return -EFAULT;
	memcpy(buf, p, len);
	return 0;
}

static int world_dma_write(void *opaque, uint16_t vp, uint32_t key, uint64_t addr,
			   const void *buf, uint32_t len)
{
	uint8_t *p = range(opaque, vp, key, addr, len, true);

	if (!p)
		return -EFAULT;
	memcpy(p, buf, len);
	return 0;
}

static int world_remote_write(void *opaque, uint16_t vp, uint32_t key, uint64_t addr, uint32_t total,
			      uint32_t at, const void *buf, uint32_t len)
{
	struct dst_node *node = opaque;
	uint8_t *place = node->world->library ? NULL :
			 dst_write_range(rank_of(node, vp), key, addr, total, true);

	node->activity++;
	if (!place || at > total || len > total - at)
		return -EFAULT;
	memcpy(place + at, buf, len);
	return 0;
}

/* Of a call the key is one region's and never comes round. */
static uint64_t world_key_life(void *opaque, uint16_t vp, uint32_t key)
{
	const struct dst_rank *rank = rank_of(opaque, vp);

	return rank && rank->process ? dst_process_key_life(rank, key) : key;
}

static void *world_dma_map(void *opaque, uint16_t vp, uint32_t key, uint64_t addr, uint64_t len,
			   bool write)
{
	if (!key && !len)
		return NULL;	/* a tree is sent nothing by who does not broadcast */
	return range(opaque, vp, key, addr, len, write);
}

static bool world_lend(void *opaque, uint16_t vp, uint32_t context, uint32_t peer,
		       struct muster_reference *lent)
{
	struct dst_node *node = opaque;

	(void)peer;
	if (dst_lent_is(lent->key))
		return dst_lend_again(node, context, lent);
	if (dst_lend_wants_copy(node, context, lent))
		return dst_lend_copy(node, context, range(node, vp, lent->key, lent->addr, lent->length, false), lent);
	/* Some memory is the caller's own, which peers do not see. */
	return context != MUSTER_LEND_KEPT && lent->key % 4 != 0;
}

static void world_lent_back(void *opaque, const struct muster_reference *lent)
{
	dst_lent_back(opaque, lent);
}

static bool world_peer_ended(void *opaque, uint32_t peer, uint8_t job, uint32_t context)
{
	const struct dst_node *node = opaque;

	(void)job;
	return peer < node->world->plan.nodes && dst_lent_is_signed(&node->world->nodes[peer], (uint16_t)context);
}

/* A peer's region may have ended meanwhile, if its communicator has failed: no fault of ours. */
static const void *world_peer_map(void *opaque, uint32_t peer, uint16_t vp, uint32_t key,
				  uint64_t addr, uint64_t len)
{
	struct dst_node *node = opaque;
	enum region region = REGION_IN;
	struct dst_call *call;
	uint64_t offset = addr - ((uint64_t)key << 32), bytes;
	uint8_t *p;

	node->activity++;
	if (peer >= node->world->plan.nodes)
		return NULL;
	if (dst_lent_is(key))
		return dst_lent_range(&node->world->nodes[peer], key, addr, len);
	if (node->world->library)
		return dst_process_range(rank_of(&node->world->nodes[peer], vp), key, addr, len,
					 false);
	call = call_of(rank_of(&node->world->nodes[peer], vp), key, &region);
	if (!call || !call->live)
		return NULL;
	p = region_of(call, region, &bytes);
	return offset > bytes || len > bytes - offset ? NULL : p + offset;
}

/* ---- the rest of the world ---------------------------------------------------------- */

static int world_send(void *opaque, uint32_t incarnation, const struct muster_packet *packet,
		      const void *payload)
{
	struct dst_node *node = opaque;
	struct dst_world *w = node->world;
	int err = -EAGAIN;

	if (dst_healed(w) || !dst_chance(&w->net, w->plan.send_full))
		err = dst_net_send(node, incarnation, packet, payload);
	dst_say(w, "node %u -> %u: packet %u of context %u, number %u, pulse %u, slot %u, flags %x, %u bytes at %u of %u: %d",
		node->index, packet->dst_node, packet->type, packet->context, packet->number,
		packet->pulse, packet->seq_id, packet->flags, packet->length, packet->offset,
		packet->total, err);
	if (err == -EAGAIN)
		return err;
	node->activity++;
	w->nr_packets++;
	dst_mix(w, (uint64_t)packet->number << 32 | packet->pulse << 16 | packet->type << 8 |
		   packet->seq_id);
	return err;
}

static int world_complete(void *opaque, uint16_t vp, const struct muster_cqe *cqe)
{
	struct dst_node *node = opaque;
	struct dst_rank *rank = rank_of(node, vp);

	if (!rank) {
		dst_fail(node->world, "node %u: a completion for VP %u, which there is not",
			 node->index, vp);
		return 0;
	}
	if (rank->cq_head - rank->cq_tail >= node->world->plan.cq_slots)
		return -EAGAIN;
	rank->cq[rank->cq_head++ % DST_CQ_MAX] = *cqe;
	if (cqe->status && cqe->kind != MUSTER_CQE_SEND)	/* nobody has heard of it yet */
		dst_lent_sign(node, cqe->context, true);
	node->activity++;
	dst_turn_at(rank, node->world->now_us + 1 +
			  dst_below(&node->world->host, node->world->plan.host_us));
	return 0;
}

static int world_deliver(void *opaque, uint16_t vp, const struct muster_packet *packet,
			 const void *payload)
{
	struct dst_node *node = opaque;
	struct dst_rank *rank = rank_of(node, vp);

	if (rank && rank->process)
		dst_process_deliver(rank, packet, payload);
	else if (rank)
		dst_message_deliver(rank, packet, payload);
	else
		dst_fail(node->world, "node %u: a message for VP %u, which there is not",
			 node->index, vp);
	return 0;
}

/* What of it comes from the system, not from malloc(). */
static size_t mapped(size_t bytes)
{
	return bytes < MUSTER_ZEROED_MAPPED ? 0 : bytes;
}

static void *world_alloc(void *opaque, size_t bytes)
{
	struct dst_node *node = opaque;
	void *p = muster_zeroed(NULL, bytes);

	if (!p)
		return NULL;
	node->allocated += bytes;
	node->mapped += mapped(bytes);
	return p;
}

static void world_free(void *opaque, void *p, size_t bytes)
{
	struct dst_node *node = opaque;

	node->allocated -= bytes;
	node->mapped -= mapped(bytes);
	muster_zeroed_free(NULL, p, bytes);
}

/* ---- life ------------------------------------------------------------------------------ */

static int open_contexts(struct dst_node *node, struct dst_rank *rank)
{
	struct dst_world *w = node->world;
	struct muster_member members[DST_RANKS_MAX];
	int err = 0;

	for (uint32_t c = 0; c < w->plan.comms && !err; c++) {
		const struct dst_comm *comm = &w->comms[c];
		struct muster_context_config config = {
			.job = w->job,
			.context = comm->id,
			.vp = rank->vp,
			.job_key = w->job_key,
			.self = rank->parts[c].self,
			.nr_members = comm->nr,
			.members = members,
		};

		if (!rank->parts[c].member)
			continue;
		for (uint32_t m = 0; m < comm->nr; m++) {
			members[m] = (struct muster_member){
				.node = comm->addresses[m].node,
				.vp = comm->addresses[m].vp,
				.incarnation = comm->addresses[m].incarnation,
			};
			if (!w->trees)
				dst_net_watch(node, members[m].node, members[m].incarnation);
		}
		err = muster_engine_context_open(node->engine, &config);
		if (!err && w->trees)
			err = dst_trees_join(rank, c);
	}
	return err;
}

int dst_node_begin(struct dst_node *node)
{
	const struct dst_plan *plan = &node->world->plan;
	struct muster_engine_config config = {
		.node = node->index, .model = plan->model,
	};
	struct muster_engine_world functions = {
		.dma_read = world_dma_read,
		.dma_write = world_dma_write,
		.key_life = world_key_life,
		.remote_write = world_remote_write,
		.dma_map = plan->map ? world_dma_map : NULL,
		.lend = plan->by_reference ? world_lend : NULL,
		.lent_back = world_lent_back,
		.peer_map = plan->by_reference ? world_peer_map : NULL,
		.peer_ended = plan->copies ? world_peer_ended : NULL,
		.send = world_send,
		.complete = world_complete,
		.deliver = world_deliver,
		.alloc = world_alloc,
		.free = world_free,
	};
	uint32_t uplink = node->world->trees ? dst_network_uplink(node->world, node->index) : 0;
	int err = muster_engine_create(&config, &functions, node, &node->engine);

	for (uint32_t i = 0; i < node->nr_ranks && !err; i++) {
		err = muster_engine_vp_open(node->engine, node->ranks[i]->vp);
		if (!err)
			err = open_contexts(node, node->ranks[i]);
	}
	if (node->world->trees)		/* it is to know us before anybody sends to us */
		dst_net_watch(node, uplink, node->world->nodes[uplink].incarnation);
	return err;
}

/* Everything is closed: nothing may be left. */
void dst_node_end(struct dst_node *node)
{
	struct muster_engine_counters counters;
	struct dst_world *w = node->world;

	if (node->sw)
		dst_switch_end(node);
	if (!node->engine)
		return;
	muster_engine_counters_get(node->engine, &counters);
	if (!w->failed && !node->dead && (counters.buffer_blocks_used || counters.buffer_entries_used))
		dst_fail(w, "node %u: %llu blocks and %llu entries are still used after all contexts are closed",
			 node->index, counters.buffer_blocks_used, counters.buffer_entries_used);
	muster_engine_destroy(node->engine);
	node->engine = NULL;
	dst_lent_end(node);
	if (node->allocated)
		dst_fail(w, "node %u: the engine has kept %zu bytes", node->index,
			 node->allocated);
}

bool dst_node_has_told(const struct dst_node *node)
{
	struct muster_engine_counters counters;

	if (!node->engine)
		return true;
	muster_engine_counters_get(node->engine, &counters);
	return !counters.contexts_closing;
}

/* A process ends when its engine has nothing to say any more; its peers see its rings end. */
static void leave(struct dst_node *node)
{
	struct dst_world *w = node->world;

	for (uint32_t i = 0; i < node->nr_ranks; i++)
		if (!dst_rank_finished(node->ranks[i]))
			return;
	node->left = true;
	for (uint32_t i = 0; i < w->plan.nodes; i++)
		if (i != node->index)
			dst_at(w, w->now_us + 1 + dst_below(&w->host, LEAVE_US), DST_EVENT_LEFT, i,
			       node->index, NULL);
}

void dst_node_step(struct dst_node *node)
{
	struct dst_world *w = node->world;
	uint64_t before = node->activity;
	bool busy;

	dst_net_run(node);
	if (node->sw)
		dst_switch_step(node);
	if (node->reborn || node->sw)
		return;
	busy = muster_engine_step(node->engine, w->plan.budget);
	node->idle = node->activity == before ? node->idle + 1 : 0;
	if (!busy && w->plan.rings && dst_node_has_told(node))
		leave(node);
	/* What the wire or a queue refuses now may take long: look less and less often. */
	if (busy)
		dst_step_at(node, w->now_us + 1 + dst_below(&w->host, w->plan.engine_us) +
				  (1ull << (node->idle < 14 ? node->idle : 14)));
}
