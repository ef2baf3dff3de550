/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A world for the engine's tests: some engines, each with one VP, memory, a
 * completion queue and a receive ring; and a wire that holds every packet until
 * it is picked at random. Everything random comes from one seed. Memory is one
 * region, key 1, at address 0; writing to it can be forbidden.
 */
#ifndef MUSTER_ENGINE_TEST_WORLD_H
#define MUSTER_ENGINE_TEST_WORLD_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine.h"
#include "zeroed.h"

#ifndef WORLD_NODES
#define WORLD_NODES 16			/* a test of more says so before */
#endif
#ifndef WORLD_BYTES
#define WORLD_BYTES (1 << 20)		/* likewise of less; */
#endif
#ifndef WORLD_COPIES
#define WORLD_COPIES 8			/* of what a node copies for others, so many at once; */
#endif
#ifndef WORLD_CQES_MAX
#define WORLD_CQES_MAX 1024		/* completions; */
#endif
#ifndef WORLD_FLIGHT_MAX
#define WORLD_FLIGHT_MAX 4096		/* packets under way */
#endif

enum {
	WORLD_NODES_MAX = WORLD_NODES,
	WORLD_MEMORY = WORLD_BYTES,
	WORLD_VP = 3,
	WORLD_JOB = 9,
	WORLD_CONTEXT = 77,
	WORLD_LIFE = 5,
	WORLD_KEY = 1,
	WORLD_COPY_KEY = 2,
	WORLD_COPY_BYTES = 32 << 10,	/* what is longer is not copied */
};

#define WORLD_JOB_KEY 0x1234567890abcdefull

struct world_packet {
	struct muster_packet packet;
	uint8_t payload[MUSTER_MTU];
};

struct world_node {
	struct world *world;
	uint32_t node;
	struct muster_engine *engine;
	bool noted;			/* on the board: */
	uint32_t noted_base;
	uint8_t *memory;
	uint8_t copies[WORLD_COPIES][WORLD_COPY_BYTES];
	uint32_t copied;		/* a bit each: lent, and not given back */
	uint32_t readers[WORLD_COPIES];	/* sends that have it */
	uint32_t copies_made;
	struct muster_cqe cqes[WORLD_CQES_MAX];
	uint32_t nr_cqes;
	struct world_packet delivered;
	uint32_t nr_delivered;
	uint32_t ring_slots;
	uint64_t key_life;		/* of the region; 0: it is gone */
	bool dead;			/* what is sent to it is refused */
	bool full;			/* and this for now */
	bool idle;
};

struct world {
	uint32_t nr;
	uint64_t random;
	uint32_t refuse_percent;	/* how often wire and completion queue say -EAGAIN */
	uint32_t cq_max;
	struct muster_engine_model model;	/* of one unit, if nothing else is said */
	uint64_t hash_key;
	bool map;			/* memory can be worked on in place */
	bool share;			/* and by peers */
	bool copy;			/* not memory itself is shared, but a copy, */
	bool keep;			/* which a context may keep */
	bool peers_hidden;		/* lent, but peers fail to map it */
	bool board;			/* who leaves can say there how far it was */
	bool read_only;
	bool closed;			/* to writes of others */
	bool recorded;			/* what comes in is: nobody reads the records */
	bool prompt;		/* a node is stepped whenever something has come, */
	bool at_once;		/* and by functions that do it themselves, where they can */
	size_t allocated;
	uint32_t allocs_left;		/* then alloc() fails, if `allocs_limited` */
	bool allocs_limited;
	struct world_node nodes[WORLD_NODES_MAX];
	struct world_packet *flight[WORLD_FLIGHT_MAX];
	uint32_t nr_flight;
	struct muster_trace *trace;
	uint64_t nr_sent[MUSTER_PACKET_WRITTEN + 1];
	uint64_t nr_tried;		/* to send, with what was refused */
	void (*on_refusal)(struct world *w);
	/* Takes what is sent to nodes that are no engines; NULL: they are unreachable. */
	int (*elsewhere)(struct world_node *from, uint32_t incarnation,
			 const struct muster_packet *packet, const void *payload);
};

static inline uint32_t world_random(struct world *w, uint32_t below)
{
	w->random = w->random * 6364136223846793005ull + 1442695040888963407ull;
	return (w->random >> 33) % below;
}

/* ---- the table of functions ---- */

static inline bool world_in_region(uint16_t vp, uint32_t key, uint64_t addr, uint64_t len)
{
	uint64_t first = key == WORLD_COPY_KEY ? WORLD_MEMORY : 0;
	uint64_t bytes = key == WORLD_COPY_KEY ? WORLD_COPIES * WORLD_COPY_BYTES : WORLD_MEMORY;

	return vp == WORLD_VP && (key == WORLD_KEY || key == WORLD_COPY_KEY) && addr >= first &&
	       addr - first <= bytes && len <= bytes - (addr - first);
}

static inline uint8_t *world_place(struct world_node *node, uint32_t key, uint64_t addr)
{
	return key == WORLD_COPY_KEY ? node->copies[0] + (addr - WORLD_MEMORY) : node->memory + addr;
}

static inline uint64_t world_key_life(void *opaque, uint16_t vp, uint32_t key)
{
	struct world_node *node = opaque;

	return vp == WORLD_VP && key == WORLD_KEY ? node->key_life : 0;
}

static inline int world_dma_read(void *opaque, uint16_t vp, uint32_t key, uint64_t addr, void *buf,
				 uint32_t len)
{
	struct world_node *node = opaque;

	if (!world_in_region(vp, key, addr, len))
		return -EFAULT;
	memcpy(buf, world_place(node, key, addr), len);
	return 0;
}

static inline int world_dma_write(void *opaque, uint16_t vp, uint32_t key, uint64_t addr,
				  const void *buf, uint32_t len)
{
	struct world_node *node = opaque;

	if (!world_in_region(vp, key, addr, len) || node->world->read_only)
		return -EFAULT;
	memcpy(node->memory + addr, buf, len);
	return 0;
}

static inline int world_remote_write(void *opaque, uint16_t vp, uint32_t key, uint64_t addr,
				     uint32_t total, uint32_t at, const void *buf, uint32_t len)
{
	struct world_node *node = opaque;

	if (key != WORLD_KEY || !node->key_life || node->world->closed ||
	    !world_in_region(vp, key, addr, total) || at > total || len > total - at)
		return -EFAULT;
	memcpy(node->memory + addr + at, buf, len);
	return 0;
}

static inline void *world_dma_map(void *opaque, uint16_t vp, uint32_t key, uint64_t addr,
				  uint64_t len, bool write)
{
	struct world_node *node = opaque;

	if (!node->world->map || !world_in_region(vp, key, addr, len) ||
	    (write && node->world->read_only))
		return NULL;
	return world_place(node, key, addr);
}

static inline bool world_base_leave(void *opaque, uint32_t context, uint32_t life, uint32_t base)
{
	struct world_node *node = opaque;

	(void)context;
	(void)life;
	node->noted = node->world->board;
	node->noted_base = base;
	return node->noted;
}

static inline bool world_base_left(void *opaque, uint32_t peer, uint32_t context, uint32_t life,
				   uint32_t *base)
{
	const struct world_node *left = &((struct world_node *)opaque)->world->nodes[peer];

	(void)context;
	(void)life;
	*base = left->noted_base;
	return left->noted;
}

static inline bool world_lend(void *opaque, uint16_t vp, uint32_t context, uint32_t peer,
			      struct muster_reference *lent)
{
	struct world_node *node = opaque;
	uint32_t free = ~node->copied & ((1u << WORLD_COPIES) - 1), place;

	(void)peer;
	if (context == MUSTER_LEND_KEPT && !node->world->keep)
		return false;
	if (node->world->copy && lent->key == WORLD_COPY_KEY) {
		node->readers[(lent->addr - WORLD_MEMORY) / WORLD_COPY_BYTES]++;
		return true;
	}
	if (!node->world->share || vp != WORLD_VP || lent->key != WORLD_KEY)
		return false;
	if (!node->world->copy)
		return true;
	if (!free || lent->length > WORLD_COPY_BYTES)
		return false;
	place = (uint32_t)__builtin_ctz(free);
	node->copied |= 1u << place;
	node->readers[place] = 1;
	node->copies_made++;
	memcpy(node->copies[place], node->memory + lent->addr, lent->length);
	lent->key = WORLD_COPY_KEY;
	lent->addr = WORLD_MEMORY + place * WORLD_COPY_BYTES;	/* where no memory is */
	return true;
}

/* It is somebody else's from now on. */
static inline void world_lent_back(void *opaque, const struct muster_reference *lent)
{
	struct world_node *node = opaque;
	uint32_t place = (lent->addr - WORLD_MEMORY) / WORLD_COPY_BYTES;

	assert_true(lent->key == WORLD_COPY_KEY && node->copied >> place & 1);
	if (--node->readers[place])
		return;
	node->copied &= ~(1u << place);
	memset(world_place(node, lent->key, lent->addr), 0xdb, WORLD_COPY_BYTES);
}

static inline const void *world_peer_map(void *opaque, uint32_t peer, uint16_t vp, uint32_t key,
					 uint64_t addr, uint64_t len)
{
	struct world_node *node = opaque;

	if (node->world->peers_hidden || peer >= node->world->nr ||
	    !world_in_region(vp, key, addr, len))
		return NULL;
	return world_place(&node->world->nodes[peer], key, addr);
}

static inline int world_send(void *opaque, uint32_t incarnation, const struct muster_packet *packet,
			     const void *payload)
{
	struct world_node *node = opaque;
	struct world *w = node->world;
	struct world_packet *copy;

	if (packet->dst_node >= w->nr && w->elsewhere)
		return w->elsewhere(node, incarnation, packet, payload);
	assert_int_equal(incarnation, 100 + packet->dst_node);
	if (packet->dst_node >= w->nr || w->nodes[packet->dst_node].dead)
		return -EHOSTUNREACH;
	w->nr_tried++;
	if (w->nodes[packet->dst_node].full || w->nr_flight == WORLD_FLIGHT_MAX ||
	    world_random(w, 100) < w->refuse_percent) {
		if (w->on_refusal)
			w->on_refusal(w);
		return -EAGAIN;
	}
	assert_true(packet->length <= MUSTER_MTU);
	copy = malloc(sizeof(*copy));
	copy->packet = *packet;
	if (packet->length)
		memcpy(copy->payload, payload, packet->length);
	w->flight[w->nr_flight++] = copy;
	w->nr_sent[packet->type]++;
	return 0;
}

static inline int world_complete(void *opaque, uint16_t vp, const struct muster_cqe *cqe)
{
	struct world_node *node = opaque;
	struct world *w = node->world;

	assert_int_equal(vp, WORLD_VP);
	if (node->nr_cqes >= w->cq_max || world_random(w, 100) < w->refuse_percent)
		return -EAGAIN;
	node->cqes[node->nr_cqes++] = *cqe;
	return 0;
}

static inline int world_deliver(void *opaque, uint16_t vp, const struct muster_packet *packet,
				const void *payload)
{
	struct world_node *node = opaque;

	assert_int_equal(vp, WORLD_VP);
	if (node->nr_delivered == node->ring_slots)
		return -ENOSPC;
	node->delivered.packet = *packet;
	memcpy(node->delivered.payload, payload, packet->length);
	node->nr_delivered++;
	return 0;
}

static inline void *world_alloc(void *opaque, size_t bytes)
{
	struct world_node *node = opaque;
	void *p;

	if (node->world->allocs_limited && !node->world->allocs_left--)
		return NULL;
	p = muster_zeroed(NULL, bytes);
	node->world->allocated += bytes;
	return p;
}

static inline void world_free(void *opaque, void *p, size_t bytes)
{
	struct world_node *node = opaque;

	node->world->allocated -= bytes;
	muster_zeroed_free(NULL, p, bytes);
}

static const struct muster_engine_world world_table = {
	.dma_read = world_dma_read,
	.dma_write = world_dma_write,
	.key_life = world_key_life,
	.remote_write = world_remote_write,
	.dma_map = world_dma_map,
	.base_leave = world_base_leave,
	.base_left = world_base_left,
	.lend = world_lend,
	.lent_back = world_lent_back,
	.peer_map = world_peer_map,
	.send = world_send,
	.complete = world_complete,
	.deliver = world_deliver,
	.alloc = world_alloc,
	.free = world_free,
};

/* ---- life ---- */

static inline int world_context_open_life(struct world *w, uint32_t i, uint32_t id, uint32_t life)
{
	struct muster_member members[WORLD_NODES_MAX] = { 0 };
	struct muster_context_config config = {
		.job = WORLD_JOB, .context = id, .life = life, .vp = WORLD_VP,
		.job_key = WORLD_JOB_KEY, .self = i, .nr_members = w->nr, .members = members,
	};
	uint32_t m;

	for (m = 0; m < w->nr; m++)
		members[m] = (struct muster_member){
			.node = m, .vp = WORLD_VP, .incarnation = 100 + m,
		};
	return muster_engine_context_open(w->nodes[i].engine, &config);
}

static inline int world_context_open(struct world *w, uint32_t i, uint32_t id)
{
	return world_context_open_life(w, i, id, WORLD_LIFE);
}

static inline struct world *world_create(uint32_t nr, uint64_t seed)
{
	struct world *w = calloc(1, sizeof(*w));
	uint32_t i;

	w->nr = nr;
	w->random = seed * 2654435761u + 1;
	w->cq_max = WORLD_CQES_MAX;
	w->model.units = 1;
	for (i = 0; i < nr; i++) {
		w->nodes[i].world = w;
		w->nodes[i].node = i;
		w->nodes[i].ring_slots = 16;
		w->nodes[i].key_life = 1;
		w->nodes[i].memory = muster_zeroed(NULL, WORLD_MEMORY);
	}
	return w;
}

/* After the options have been set. */
static inline void world_start(struct world *w)
{
	uint32_t i;

	for (i = 0; i < w->nr; i++) {
		struct muster_engine_config config = {
			.node = i, .model = w->model,
			.hash_key = { w->hash_key, 1 },
		};

		assert_int_equal(muster_engine_create(&config, &world_table, &w->nodes[i],
						      &w->nodes[i].engine), 0);
		assert_int_equal(muster_engine_vp_open(w->nodes[i].engine, WORLD_VP), 0);
		assert_int_equal(world_context_open(w, i, WORLD_CONTEXT), 0);
		if (w->recorded && !w->trace)
			w->trace = calloc(1, sizeof(*w->trace));
		muster_engine_trace_put(w->nodes[i].engine, w->trace);
	}
}

static inline void world_destroy(struct world *w)
{
	uint32_t i;

	for (i = 0; i < w->nr; i++) {
		if (w->nodes[i].engine)
			muster_engine_destroy(w->nodes[i].engine);
		muster_zeroed_free(NULL, w->nodes[i].memory, WORLD_MEMORY);
	}
	assert_int_equal(w->allocated, 0);
	while (w->nr_flight)
		free(w->flight[--w->nr_flight]);
	free(w->trace);
	free(w);
}

/* ---- time ---- */

static inline void world_deliver_one(struct world *w, uint32_t which)
{
	struct world_packet *copy = w->flight[which];
	struct world_node *to = &w->nodes[copy->packet.dst_node];
	/* Its own allocation, so that reading past the end is seen. */
	uint8_t *payload = malloc(copy->packet.length ? copy->packet.length : 1);

	memcpy(payload, copy->payload, copy->packet.length);
	w->flight[which] = w->flight[--w->nr_flight];
	if (!to->dead && w->at_once)
		muster_engine_receive_run(to->engine, &copy->packet, payload, copy->packet.length);
	else if (!to->dead)
		(w->recorded ? muster_engine_receive_recorded : muster_engine_receive)
			(to->engine, &copy->packet, payload, copy->packet.length);
	if (!to->dead && w->prompt)
		muster_engine_step(to->engine, 1000);
	to->idle = false;
	free(payload);
	free(copy);
}

static inline bool world_all_idle(const struct world *w)
{
	uint32_t i;

	for (i = 0; i < w->nr; i++)
		if (!w->nodes[i].dead && !w->nodes[i].idle)
			return false;
	return true;
}

/* Until nothing moves any more. A completion queue that stays full is not waited for. */
static inline void world_run(struct world *w)
{
	uint32_t turn, i;

	for (i = 0; i < w->nr; i++)
		w->nodes[i].idle = false;
	for (turn = 0; turn < 2000000; turn++) {
		if (w->nr_flight && world_random(w, 2)) {
			world_deliver_one(w, world_random(w, w->nr_flight));
			continue;
		}
		i = world_random(w, w->nr);
		if (!w->nodes[i].dead)
			w->nodes[i].idle = !muster_engine_step(w->nodes[i].engine,
							       1 + world_random(w, 16)) ||
					   w->nodes[i].nr_cqes == w->cq_max;
		if (!w->nr_flight && world_all_idle(w))
			return;
	}
	fail_msg("the world does not come to rest");
}

/* ---- descriptors ---- */

static const struct muster_signature SIGNATURE = {
	.coll = 4, .type = MUSTER_DTYPE_F64, .op = MUSTER_REDOP_SUM, .digest = 0x123456789abcdef0,
};

#define assert_signature(is, expected)	assert_memory_equal(&(is), &(expected), sizeof(SIGNATURE))

static inline struct muster_desc desc_base(uint32_t flags)
{
	return (struct muster_desc){
		.flags = MUSTER_DESC_C | flags, .src_vp = WORLD_VP, .dst_vp = WORLD_VP,
		.job = WORLD_JOB, .context = WORLD_CONTEXT, .signature = SIGNATURE,
	};
}

static inline void desc_to(struct muster_desc *desc, uint32_t node, uint32_t slot)
{
	desc->flags |= MUSTER_DESC_CP;
	desc->dest = MUSTER_FIELD_PREP(MUSTER_DEST_NODE, node) |
		     MUSTER_FIELD_PREP(MUSTER_DEST_SEQ, slot);
}

/* 8 bytes inline; value NULL: brings none. */
static inline struct muster_desc desc_mp(uint32_t flags, uint8_t cp_count, const double *value)
{
	struct muster_desc desc = desc_base(flags);

	desc.kind = MUSTER_DESC_MP;
	desc.cp_count = cp_count;
	desc.length = sizeof(*value);
	if (value) {
		desc.inline_len = sizeof(*value);
		memcpy(desc.data, value, sizeof(*value));
	}
	return desc;
}

static inline void desc_store(struct muster_desc *desc, uint64_t addr)
{
	desc->store_key = WORLD_KEY;
	desc->store_addr = addr;
}

static inline void desc_load(struct muster_desc *desc, uint64_t addr)
{
	desc->range.load_key = WORLD_KEY;
	desc->range.load_addr = addr;
}

static inline struct muster_desc desc_rdma(uint32_t flags, uint8_t cp_count, uint64_t length,
					   uint32_t pulse_len)
{
	struct muster_desc desc = desc_base(flags);

	desc.kind = MUSTER_DESC_RDMA;
	desc.cp_count = cp_count;
	desc.length = length;
	desc.range.pulse_len = pulse_len;
	desc.range.pulse_count = length ? (length + pulse_len - 1) / pulse_len : 1;
	return desc;
}

static inline void world_post(struct world *w, uint32_t i, const struct muster_desc *descs,
			      uint32_t nr)
{
	uint32_t bad = 99;
	int ret = muster_engine_post(w->nodes[i].engine, WORLD_VP, descs, nr, &bad);

	if (ret)
		fail_msg("node %u: descriptor %u: %d", i, bad, ret);
	w->nodes[i].idle = false;
}

static inline double *world_double(struct world *w, uint32_t i, uint64_t addr)
{
	return (double *)(w->nodes[i].memory + addr);
}

static inline struct muster_engine_counters world_counters(const struct world *w, uint32_t i)
{
	struct muster_engine_counters counters;

	muster_engine_counters_get(w->nodes[i].engine, &counters);
	return counters;
}

#endif /* MUSTER_ENGINE_TEST_WORLD_H */
