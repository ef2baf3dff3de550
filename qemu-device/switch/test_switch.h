/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One switch with the test at its ports, for tests: figure 2's group at an aggregation node that
 * has a parent and three children. Ports say -EAGAIN, or that their link is gone, as
 * the test likes; what a port has sent is in out[].
 */
#ifndef MUSTER_SWITCH_TEST_SWITCH_H
#define MUSTER_SWITCH_TEST_SWITCH_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "switch.h"

enum {
	RADIX = 6, RADIX_MOST = 16, OUT_MAX = 4096, SELF = MUSTER_NODE_AGGREGATION + 4, SELF_LIFE = 11,
	PARENT = MUSTER_NODE_AGGREGATION + 9, PARENT_LIFE = 12, PARENT_PORT = 5,
	JOB = 2, TREE = 1, GROUP = 0x1,
};

#define KEY 0x1122334455667788ull

struct out {
	uint32_t port;
	bool once;
	struct muster_packet packet;
	double value;
	struct muster_lock lock;
};

static struct muster_switch *sw;
static struct out out[OUT_MAX];
static uint32_t nr_out;
static uint32_t full;		/* mask of ports */
static uint32_t gone;

static inline void note(uint32_t port, bool once, const struct muster_packet *packet, const void *payload)
{
	assert_in_range(port, 0, RADIX_MOST - 1);
	assert_in_range(nr_out, 0, OUT_MAX - 1);
	out[nr_out] = (struct out){ .port = port, .once = once, .packet = *packet };
	if (packet->length >= 8)
		memcpy(&out[nr_out].value, payload, 8);
	if (packet->length == sizeof(struct muster_lock))
		memcpy(&out[nr_out].lock, payload, sizeof(struct muster_lock));
	nr_out++;
}

static inline int port_send(void *world, uint32_t port, const struct muster_packet *packet,
		     const void *payload)
{
	(void)world;
	if (gone >> port & 1)
		return -EHOSTUNREACH;
	if (full >> port & 1)
		return -EAGAIN;
	note(port, false, packet, payload);
	return 0;
}

static inline void port_send_once(void *world, uint32_t port, const struct muster_packet *packet,
			   const void *payload)
{
	(void)world;
	if (!(full >> port & 1))
		note(port, true, packet, payload);
}

static inline void *world_alloc(void *world, size_t bytes)
{
	(void)world;
	return calloc(1, bytes);
}

static inline void world_free(void *world, void *p, size_t bytes)
{
	(void)world;
	(void)bytes;
	free(p);
}

static const struct muster_switch_world world = {
	.send = port_send, .send_once = port_send_once, .alloc = world_alloc, .free = world_free,
};

/* Hosts 1, 2 and 4 are at ports 1, 2 and 4; the parent is behind port 5. */
static const struct muster_switch_child CHILDREN[] = {
	{ .node = 1, .incarnation = 101, .port = 1, .vp = 31, .context = 41, .life = 51, .member = 0 },
	{ .node = 2, .incarnation = 102, .port = 2, .vp = 32, .context = 42, .life = 52, .member = 1 },
	{ .node = 4, .incarnation = 104, .port = 4, .vp = 34, .context = 44, .life = 54, .member = 2 },
};

static inline struct muster_switch_group figure_2(void)
{
	return (struct muster_switch_group){
		.tree = TREE, .group = GROUP, .job = JOB, .key = KEY, .payload_max = 64,
		.parent_port = PARENT_PORT, .parent_node = PARENT, .parent_incarnation = PARENT_LIFE,
		.nr_children = 3, .children = CHILDREN,
	};
}

static const struct muster_switch_route ROUTES[] = {
	{ 1, 1 }, { 2, 2 }, { 3, 3 }, { 4, 4 }, { 70, 5 }, { PARENT, 5 },
};

static inline int open_switch(void **state)
{
	struct muster_switch_config config = {
		.node = SELF, .incarnation = SELF_LIFE, .radix = RADIX,
		.nr_routes = sizeof(ROUTES) / sizeof(*ROUTES), .routes = ROUTES,
	};
	struct muster_switch_group group = figure_2();

	(void)state;
	nr_out = full = gone = 0;
	assert_int_equal(muster_switch_create(&config, &world, NULL, &sw), 0);
	assert_int_equal(muster_switch_group_add(sw, &group), 0);
	return 0;
}

static inline int close_switch(void **state)
{
	(void)state;
	muster_switch_destroy(sw);
	return 0;
}

static inline struct muster_packet from_child(uint32_t i)
{
	return (struct muster_packet){
		.version = MUSTER_PACKET_VERSION, .type = MUSTER_PACKET_TREE_UP, .job = JOB,
		.seq_id = 6, .stage = 3, .src_node = CHILDREN[i].node, .dst_node = SELF,
		.src_vp = CHILDREN[i].vp, .context = CHILDREN[i].context, .life = CHILDREN[i].life,
		.src_member = CHILDREN[i].member, .number = 17, .total = 8, .length = 8,
		.signature = { .type = MUSTER_DTYPE_F64, .op = MUSTER_REDOP_SUM, .digest = 5 },
		.incarnation = CHILDREN[i].incarnation, .tree = TREE, .group = GROUP,
		.job_key = KEY,
	};
}

static inline struct muster_packet from_parent(void)
{
	struct muster_packet packet = from_child(0);

	packet.type = MUSTER_PACKET_TREE_DOWN;
	packet.src_node = PARENT;
	packet.incarnation = PARENT_LIFE;
	packet.src_vp = packet.src_member = packet.context = packet.life = 0;
	return packet;
}

static inline void hand(uint32_t port, const struct muster_packet *packet, double value)
{
	double payload[8] = { value };

	assert_int_equal(muster_switch_receive(sw, port, packet, payload, packet->length), 0);
}

static inline void contribute(uint32_t i, uint32_t pulse, double value)
{
	struct muster_packet packet = from_child(i);

	packet.pulse = pulse;
	hand(CHILDREN[i].port, &packet, value);
}

static inline struct muster_switch_counters counters(void)
{
	struct muster_switch_counters now;

	muster_switch_counters_get(sw, &now);
	return now;
}

#define SWITCH_TEST(f) cmocka_unit_test_setup_teardown(f, open_switch, close_switch)

#endif /* MUSTER_SWITCH_TEST_SWITCH_H */
