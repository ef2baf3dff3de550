/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For tests only: a device of each rank of a world in one process, which runs a real
 * engine; packets travel through queues in memory, now and then past each other.
 * Whoever polls steps every engine, under one lock.
 */
#ifndef MUSTER_TEST_DEVICE_H
#define MUSTER_TEST_DEVICE_H

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine.h"
#include "internal.h"
#include "zeroed.h"

enum {
	TEST_RANKS_MAX = 40,
	TEST_REGIONS_MAX = 256,
	TEST_CQES_MAX = 64,
	TEST_RING_MAX = 4096,
	TEST_CONTEXTS_MAX = 16,		/* that its device has */
	TEST_GATHER_MAX = 1 << 16,
	TEST_QUEUE_MAX = 1024,
};

struct test_packet {
	struct test_packet *next;
	struct muster_packet packet;
	uint8_t payload[MUSTER_MTU];
};

struct test_region {
	char *addr;
	size_t bytes;
	int access;
	uint64_t life;
};

struct test_world;

struct test_node {
	struct muster_dev dev;
	struct test_world *world;
	uint32_t node;
	struct muster_engine *engine;
	uint32_t nr_contexts;
	struct test_packet *inbox;
	struct test_packet **inbox_end;
	struct test_region regions[TEST_REGIONS_MAX];	/* key - 1 */
	uint64_t lives;			/* regions so far */
	uint32_t starts, keeps;		/* posted */
	struct muster_cqe cqes[TEST_CQES_MAX];
	uint32_t cqes_in, cqes_out;
	struct test_packet *ring[TEST_RING_MAX];
	uint32_t ring_in, ring_out;
	/* Descriptors on their way to the engine, if world->one_queue; whole sequences. */
	struct muster_desc queue[TEST_QUEUE_MAX];
	uint32_t queue_in, queue_out;
	uint32_t registered;		/* registrations not given back */
	struct muster_trace *trace;	/* NULL: nobody looks */
	bool dead;
	bool keeps_back;		/* what it has sent waits for room, while dev.holding */
	bool open_fails;
	int register_err;		/* not 0: what registering memory says, */
	int post_err;			/* and posting */
	uint32_t tree_fails;		/* not 0: so many trees on, joining one fails */
};

struct test_world {
	uint32_t size;
	uint32_t ring_slots;
	uint32_t seed;			/* not 0: packets overtake each other */
	bool tells_deaths;		/* its devices know of each, as the local one */
	bool one_queue;			/* as a NIC has: what the engine refuses holds up the rest */
	uint32_t drops;			/* receive ring was full */
	uint32_t sent_p2p;
	struct test_node nodes[TEST_RANKS_MAX];
	struct muster *jobs[TEST_RANKS_MAX];
	struct muster_comm *comms[TEST_RANKS_MAX];	/* the world's, or the last one made */
	int results[TEST_RANKS_MAX];
	char said[TEST_RANKS_MAX][MUSTER_SENTENCE_MAX];
	pthread_barrier_t barrier;
	pthread_mutex_t lock;		/* engines, inboxes, rings */
	uint8_t gathered[TEST_GATHER_MAX];
};

/* ---- the engine's world ---------------------------------------------------------- */

static inline void *test_map(void *opaque, uint16_t vp, uint32_t key, uint64_t addr, uint64_t len,
			     bool write)
{
	struct test_node *node = opaque;
	struct test_region *region = &node->regions[(key - 1) % TEST_REGIONS_MAX];

	(void)vp;
	if (!key || key > TEST_REGIONS_MAX || !region->addr ||
	    !(region->access & (write ? MUSTER_ACCESS_WRITE : MUSTER_ACCESS_READ)))
		return NULL;
	if (addr < (uintptr_t)region->addr || addr + len > (uintptr_t)region->addr + region->bytes)
		return NULL;
	return (void *)(uintptr_t)addr;
}

static inline uint64_t test_key_life(void *opaque, uint16_t vp, uint32_t key)
{
	const struct test_node *node = opaque;

	(void)vp;
	return key && key <= TEST_REGIONS_MAX && node->regions[key - 1].addr ?
		       node->regions[key - 1].life : 0;
}

static inline int test_dma_read(void *opaque, uint16_t vp, uint32_t key, uint64_t addr, void *buf,
				uint32_t len)
{
	void *from = test_map(opaque, vp, key, addr, len, false);

	if (!from)
		return -EFAULT;
	memcpy(buf, from, len);
	return 0;
}

static inline int test_dma_write(void *opaque, uint16_t vp, uint32_t key, uint64_t addr,
				 const void *buf, uint32_t len)
{
	void *to = test_map(opaque, vp, key, addr, len, true);

	if (!to)
		return -EFAULT;
	memcpy(to, buf, len);
	return 0;
}

static inline uint32_t test_random(struct test_world *world)
{
	world->seed = world->seed * 1664525 + 1013904223;
	return world->seed >> 8;
}

static inline struct test_packet *test_packet_new(const struct muster_packet *packet,
						  const void *payload)
{
	struct test_packet *copy = malloc(sizeof(*copy));

	copy->next = NULL;
	copy->packet = *packet;
	memset(copy->payload, 0, sizeof(copy->payload));
	if (payload)
		memcpy(copy->payload, payload, packet->length);
	return copy;
}

static inline int test_send(void *opaque, uint32_t incarnation, const struct muster_packet *packet,
			    const void *payload)
{
	struct test_node *node = opaque;
	struct test_node *to = &node->world->nodes[packet->dst_node];
	struct test_packet *copy, **place = to->inbox_end;

	(void)incarnation;
	if (to->dead || !to->engine)
		return -EHOSTUNREACH;
	copy = test_packet_new(packet, payload);
	node->world->sent_p2p += packet->type == MUSTER_PACKET_P2P;
	if (node->world->seed && test_random(node->world) % 2) {	/* overtakes all */
		copy->next = to->inbox;
		place = &to->inbox;
	}
	*place = copy;
	if (!copy->next)
		to->inbox_end = &copy->next;
	return 0;
}

static inline int test_complete(void *opaque, uint16_t vp, const struct muster_cqe *cqe)
{
	struct test_node *node = opaque;

	(void)vp;
	if (node->cqes_in - node->cqes_out == TEST_CQES_MAX)
		return -EAGAIN;
	node->cqes[node->cqes_in++ % TEST_CQES_MAX] = *cqe;
	return 0;
}

static inline int test_deliver(void *opaque, uint16_t vp, const struct muster_packet *packet,
			       const void *payload)
{
	struct test_node *node = opaque;

	(void)vp;
	if (node->ring_in - node->ring_out == node->world->ring_slots) {
		node->world->drops++;
		return -ENOSPC;
	}
	node->ring[node->ring_in++ % TEST_RING_MAX] = test_packet_new(packet, payload);
	return 0;
}

static const struct muster_engine_world test_engine_world = {
	.dma_read = test_dma_read,
	.dma_write = test_dma_write,
	.key_life = test_key_life,
	.dma_map = test_map,
	.send = test_send,
	.complete = test_complete,
	.deliver = test_deliver,
	.alloc = muster_zeroed,
	.free = muster_zeroed_free,
};

/* The first sequence of the queue, or message, to the engine; false: none, or it waits. */
static inline bool test_queue_take(struct test_node *node)
{
	struct muster_desc descs[MUSTER_SEQ_DESCS_MAX];
	uint32_t nr = 0;

	if (node->queue_out == node->queue_in)
		return false;
	do {
		descs[nr] = node->queue[(node->queue_out + nr) % TEST_QUEUE_MAX];
	} while (descs[nr].flags & MUSTER_DESC_C && !(descs[nr++].flags & MUSTER_DESC_CT));
	nr += !nr;
	if (muster_engine_post(node->engine, 0, descs, nr, NULL))
		return false;
	node->queue_out += nr;
	return true;
}

static inline void test_step(struct test_world *world)
{
	for (uint32_t i = 0; i < world->size; i++) {
		struct test_node *node = &world->nodes[i];
		struct test_packet *packet;
		bool recorded;

		if (node->dead || !node->engine)
			continue;
		recorded = node->trace && node->trace->on;
		muster_engine_trace_put(node->engine, recorded ? node->trace : NULL);
		while ((packet = node->inbox)) {
			node->inbox = packet->next;
			if (!node->inbox)
				node->inbox_end = &node->inbox;
			(recorded ? muster_engine_receive_recorded : muster_engine_receive)(
				node->engine, &packet->packet, packet->payload, packet->packet.length);
			free(packet);
		}
		while (test_queue_take(node))
			;
		muster_engine_step(node->engine, 64);
	}
}

/* ---- the device -------------------------------------------------------------------- */

static inline struct test_node *test_node_of(struct muster_dev *dev)
{
	return (struct test_node *)dev;
}

static inline struct test_node *test_lock(struct muster_dev *dev)
{
	struct test_node *node = test_node_of(dev);

	pthread_mutex_lock(&node->world->lock);
	return node;
}

static inline void test_unlock(struct test_node *node)
{
	pthread_mutex_unlock(&node->world->lock);
}

static inline void test_dev_close(struct muster_dev *dev)
{
	struct test_node *node = test_lock(dev);
	struct test_packet *packet;

	muster_engine_destroy(node->engine);
	node->engine = NULL;
	while ((packet = node->inbox)) {
		node->inbox = packet->next;
		free(packet);
	}
	node->inbox_end = &node->inbox;
	while (node->ring_out != node->ring_in)
		free(node->ring[node->ring_out++ % TEST_RING_MAX]);
	test_unlock(node);
}

static inline int test_register(struct test_node *node, void *addr, size_t bytes, int access,
				uint32_t *key)
{
	for (uint32_t i = 0; i < TEST_REGIONS_MAX; i++) {
		if (node->regions[i].addr)
			continue;
		node->regions[i] = (struct test_region){ addr, bytes, access, ++node->lives };
		node->registered++;
		*key = i + 1;
		return 0;
	}
	return -ENOSPC;
}

/* The first page is nobody's. */
static inline int test_mem_register(struct muster_dev *dev, void *addr, size_t bytes, int access,
				    uint32_t *key)
{
	struct test_node *node = test_lock(dev);
	int err = node->register_err;

	if (!err)
		err = (uintptr_t)addr < 4096 ? -EFAULT :
					       test_register(node, addr, bytes, access, key);
	test_unlock(node);
	return err;
}

static inline void test_mem_deregister(struct muster_dev *dev, uint32_t key)
{
	struct test_node *node = test_lock(dev);

	assert_non_null(node->regions[key - 1].addr);
	node->regions[key - 1].addr = NULL;
	node->registered--;
	test_unlock(node);
}

static inline int test_mem_alloc(struct muster_dev *dev, size_t bytes, void **addr, uint32_t *key)
{
	struct test_node *node = test_lock(dev);
	int err;

	/* Of malloc(), so that what is written past its end is seen. */
	assert_int_equal(posix_memalign(addr, 64, bytes), 0);
	memset(*addr, 0, bytes);
	err = test_register(node, *addr, bytes, MUSTER_ACCESS_READ | MUSTER_ACCESS_WRITE, key);
	test_unlock(node);
	return err;
}

static inline void test_mem_free(struct muster_dev *dev, void *addr, size_t bytes, uint32_t key)
{
	(void)bytes;
	test_mem_deregister(dev, key);
	free(addr);
}

static inline int test_context_open(struct muster_dev *dev, const struct muster_dev_context *config)
{
	struct test_node *node = test_lock(dev);
	struct muster_member members[TEST_RANKS_MAX];
	const struct muster_context_config engine_config = {
		.job = config->job,
		.context = config->context,
		.life = config->life,
		.vp = dev->address.vp,
		.job_key = config->job_key,
		.self = config->self,
		.nr_members = config->nr_members,
		.members = members,
	};
	int err;

	for (uint32_t i = 0; i < config->nr_members; i++)
		members[i] = (struct muster_member){
			.node = config->members[i].node,
			.vp = config->members[i].vp,
			.incarnation = config->members[i].incarnation,
		};
	err = node->nr_contexts == node->dev.limits.contexts ? -ENOSPC :
	      muster_engine_context_open(node->engine, &engine_config);
	node->nr_contexts += !err;
	test_unlock(node);
	return err;
}

static inline void test_context_close(struct muster_dev *dev, uint8_t job, uint32_t context)
{
	struct test_node *node = test_lock(dev);

	muster_engine_context_close(node->engine, dev->address.vp, job, context);
	node->nr_contexts--;
	test_unlock(node);
}

static inline struct muster_tree_config test_tree_config(const struct muster_dev_tree *tree)
{
	return (struct muster_tree_config){
		.node = tree->node, .incarnation = tree->incarnation, .tree = tree->tree,
		.group = tree->group, .key = tree->key, .payload_max = tree->payload_max,
	};
}

static inline int test_tree_move(struct muster_dev *dev, uint8_t job, uint32_t context,
				 const struct muster_dev_tree *tree)
{
	struct test_node *node = test_lock(dev);
	const struct muster_tree_config config = test_tree_config(tree);
	int err = muster_engine_tree_move(node->engine, dev->address.vp, job, context, &config);

	test_unlock(node);
	return err;
}

static inline int test_tree_join(struct muster_dev *dev, uint8_t job, uint32_t context,
				 const struct muster_dev_tree *tree)
{
	struct test_node *node = test_lock(dev);
	const struct muster_tree_config config = test_tree_config(tree);
	bool fails = node->tree_fails && !--node->tree_fails;
	int err = fails ? -EBUSY : muster_engine_tree_join(node->engine, dev->address.vp, job,
							   context, &config);

	test_unlock(node);
	return err;
}

static inline int test_post(struct muster_dev *dev, const struct muster_desc *descs, uint32_t nr)
{
	struct test_node *node = test_lock(dev);
	int err = node->post_err;

	if (err) {
		test_unlock(node);
		return err;
	}
	node->starts += descs->kind == MUSTER_DESC_START;
	node->keeps += !!(descs->flags & MUSTER_DESC_KEEP);
	if (!node->world->one_queue)
		err = muster_engine_post(node->engine, dev->address.vp, descs, nr, NULL);
	else if (nr > TEST_QUEUE_MAX - (node->queue_in - node->queue_out))
		err = -EAGAIN;
	else
		while (nr--)
			node->queue[node->queue_in++ % TEST_QUEUE_MAX] = *descs++;
	test_unlock(node);
	return err;
}

static inline int test_poll(struct muster_dev *dev, struct muster_cqe *cqe)
{
	struct test_node *node = test_lock(dev);
	int some;

	test_step(node->world);
	some = node->cqes_out != node->cqes_in;
	if (some)
		*cqe = node->cqes[node->cqes_out++ % TEST_CQES_MAX];
	test_unlock(node);
	return some;
}

static inline int test_recv(struct muster_dev *dev, struct muster_packet *packet, void *payload)
{
	struct test_node *node = test_lock(dev);
	struct test_packet *from = NULL;

	if (node->ring_out != node->ring_in)
		from = node->ring[node->ring_out++ % TEST_RING_MAX];
	test_unlock(node);
	if (!from)
		return 0;
	*packet = from->packet;
	memcpy(payload, from->payload, from->packet.length);
	free(from);
	return 1;
}

static inline void test_wait_dev(struct muster_dev *dev, uint64_t timeout_us)
{
	struct timespec nap = { .tv_nsec = timeout_us < 1000 ? (long)timeout_us * 1000 : 1000000 };

	(void)dev;
	nanosleep(&nap, NULL);
}

static inline void test_abort(struct muster_dev *dev, uint8_t job, uint32_t context,
			      uint8_t status, uint32_t culprit)
{
	struct test_node *node = test_lock(dev);

	muster_engine_abort(node->engine, dev->address.vp, job, context, status, culprit);
	test_unlock(node);
}

static inline void test_look(struct muster_dev *dev, struct muster_look_file *file)
{
	struct test_node *node = test_lock(dev);

	muster_engine_counters_put(node->engine, &file->look.counters);
	node->trace = &file->trace;
	test_unlock(node);
}

static inline int test_waits(struct muster_dev *dev, uint8_t job, uint32_t context,
			     struct muster_look_waits *waits)
{
	struct test_node *node = test_lock(dev);
	int err = muster_engine_waits(node->engine, dev->address.vp, job, context, waits);

	test_unlock(node);
	return err;
}

static inline bool test_holds(struct muster_dev *dev, uint8_t job, uint32_t context,
			      const struct muster_address *addresses, const uint32_t *ranks,
			      uint32_t nr)
{
	(void)job;
	(void)context;
	(void)addresses;
	(void)ranks;
	(void)nr;
	return test_node_of(dev)->keeps_back;
}

static inline bool test_lost(struct muster_dev *dev, const struct muster_address *address)
{
	return test_node_of(dev)->world->nodes[address->node].dead;
}

#define TEST_DEV_OPS				\
	.name = "test",				\
	.close = test_dev_close,		\
	.mem_alloc = test_mem_alloc,		\
	.mem_free = test_mem_free,		\
	.mem_register = test_mem_register,	\
	.mem_deregister = test_mem_deregister,	\
	.context_open = test_context_open,	\
	.context_close = test_context_close,	\
	.tree_join = test_tree_join,		\
	.tree_move = test_tree_move,		\
	.post = test_post,			\
	.poll = test_poll,			\
	.recv = test_recv,			\
	.wait = test_wait_dev,			\
	.holds = test_holds,			\
	.abort = test_abort,			\
	.look = test_look,			\
	.waits = test_waits

static const struct muster_dev_ops test_dev_ops = { TEST_DEV_OPS };
static const struct muster_dev_ops test_dev_ops_with_deaths = { TEST_DEV_OPS, .lost = test_lost };

static inline int test_dev_open(const struct muster_oob *oob,
				const struct muster_settings *settings, struct muster_dev **dev,
				char *why, size_t why_len)
{
	struct test_node *node = oob->opaque;
	const struct muster_engine_config config = { .node = node->node, .model.units = 2 };
	int err;

	(void)settings;
	if (node->open_fails) {
		snprintf(why, why_len, "it is broken");
		return -ENODEV;
	}
	test_lock(&node->dev);
	err = muster_engine_create(&config, &test_engine_world, node, &node->engine);
	if (!err)
		err = muster_engine_vp_open(node->engine, 0);
	node->dev.ops = node->world->tells_deaths ? &test_dev_ops_with_deaths : &test_dev_ops;
	node->dev.address = (struct muster_address){ .node = node->node, .incarnation = 7 };
	node->dev.limits.contexts = TEST_CONTEXTS_MAX;
	node->dev.limits.kept_descs = MUSTER_KEPT_DESCS_MAX;
	node->dev.limits.program_descs = MUSTER_PROGRAM_DESCS_MAX;
	node->dev.limits.ring_slots = node->world->ring_slots;
	*dev = &node->dev;
	test_unlock(node);
	return err;
}

#endif /* MUSTER_TEST_DEVICE_H */
