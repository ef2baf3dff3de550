/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* For tests: a context of two nodes in a reduction tree, and the test as the switch of node 0. */
#ifndef MUSTER_ENGINE_TEST_TREE_H
#define MUSTER_ENGINE_TEST_TREE_H

#include "test_world.h"

enum { NODE = MUSTER_NODE_AGGREGATION + 7, TREE = 3, GROUP = 0x51, LIFE = 900, MOST = 256 };

#define GROUP_KEY 0xfeedfacecafebeefull

static struct world *w;
static struct muster_packet up;		/* the last contribution of node 0 */
static double up_value;
static uint32_t nr_up;
static int refusal;			/* of what is sent up; 0: none */

static inline int take_up(struct world_node *from, uint32_t incarnation,
		   const struct muster_packet *packet, const void *payload)
{
	assert_int_equal(incarnation, LIFE);
	if (refusal || from->node)
		return refusal;
	up = *packet;
	if (packet->length >= sizeof(up_value))
		memcpy(&up_value, payload, sizeof(up_value));
	nr_up++;
	return 0;
}

static const struct muster_tree_config TREE_CONFIG = {
	.node = NODE, .incarnation = LIFE, .tree = TREE, .group = GROUP, .key = GROUP_KEY,
	.payload_max = MOST,
};

static inline int join(uint32_t i, struct muster_tree_config config)
{
	return muster_engine_tree_join(w->nodes[i].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT,
				       &config);
}

static inline int open_world(void **state)
{
	(void)state;
	w = world_create(2, 1);
	w->elsewhere = take_up;
	world_start(w);
	assert_int_equal(join(0, TREE_CONFIG), 0);
	assert_int_equal(join(1, TREE_CONFIG), 0);
	nr_up = 0;
	refusal = 0;
	return 0;
}

static inline int close_world(void **state)
{
	(void)state;
	world_destroy(w);
	return 0;
}

/* Two descriptors: to the tree; and what stores its result. */
static inline void program(struct muster_desc d[2], double value)
{
	d[0] = desc_mp(MUSTER_DESC_CH, 0, &value);
	d[1] = desc_mp(MUSTER_DESC_CT | MUSTER_DESC_COLL_END, 1, NULL);
	desc_to(&d[0], NODE, 0);
	d[0].dst_vp = TREE;
	desc_store(&d[1], 0);
}

static inline void program_on_memory(struct muster_desc d[2], uint32_t bytes, uint32_t pulse)
{
	d[0] = desc_rdma(MUSTER_DESC_CH, 0, bytes, pulse);
	d[1] = desc_rdma(MUSTER_DESC_CT | MUSTER_DESC_COLL_END, 1, bytes, pulse);
	desc_load(&d[0], 0);
	desc_to(&d[0], NODE, 0);
	d[0].dst_vp = TREE;
	desc_store(&d[1], 65536);
}

static inline struct muster_packet result_of(uint32_t bytes)
{
	struct muster_packet down = up;

	down.type = MUSTER_PACKET_TREE_DOWN;
	down.flags = 0;
	down.src_node = NODE;
	down.dst_node = 0;
	down.src_vp = 0;
	down.dst_vp = WORLD_VP;
	down.incarnation = LIFE;
	down.src_member = 0;
	down.base = 0;
	down.length = bytes;
	down.total = bytes;
	return down;
}

static inline void bring(const struct muster_packet *packet, const void *payload)
{
	muster_engine_receive(w->nodes[0].engine, packet, payload, packet->length);
	w->nodes[0].idle = false;
	world_run(w);
}

/* By an operation before, whose result gives so many. */
static inline void credit(uint32_t credits)
{
	const double sum = 0;
	struct muster_packet down;
	struct muster_desc d[2];

	program(d, 0);
	world_post(w, 0, d, 2);
	world_run(w);
	down = result_of(8);
	down.arg = credits;
	bring(&down, &sum);
	w->nodes[0].nr_cqes = 0;
	nr_up = 0;
}

#define TREE_TEST(f) cmocka_unit_test_setup_teardown(f, open_world, close_world)

#endif /* MUSTER_ENGINE_TEST_TREE_H */
