/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Engines joined by switches, for tests: a network as fabric.c lays it, one context of all
 * hosts, one group. Packets on links are delivered in any order; links refuse, and what is
 * sent without a promise is lost, as often as a test says. Everything follows from a seed.
 */
#ifndef MUSTER_SWITCH_TEST_NET_H
#define MUSTER_SWITCH_TEST_NET_H

#define WORLD_NODES 64
#include "test_world.h"

#include "arith.h"
#include "fabric.h"
#include "switch.h"

enum {
	NET_SWITCHES_MAX = 16,
	NET_LENT_MAX = 64,
	NET_FLIGHT_MAX = 8192,
	NET_LINKS_MAX = 512,
	NET_TREE = 3,
	NET_GROUP = 0x51,
	NET_LIFE = 900,		/* incarnation of switch s: this and s more */
};

#define NET_KEY 0xfeedfacecafebeefull

struct net;

struct net_packet {
	struct muster_fabric_end to;
	struct muster_packet packet;
	uint8_t payload[MUSTER_MTU];
	bool lent;			/* to a switch: it is on no way any more */
};

struct net_switch {
	struct net *net;
	uint32_t number;
	struct muster_switch *sw;
};

struct net {
	struct world *w;
	struct muster_fabric *fabric;
	struct muster_fabric_group group;
	struct net_switch switches[NET_SWITCHES_MAX];
	struct net_packet *flight[NET_FLIGHT_MAX];
	uint32_t nr_flight;
	struct net_packet *lent[NET_LENT_MAX];
	uint32_t nr_lent;
	uint32_t lose_percent;		/* of what is sent once */
	uint32_t refuse_percent;	/* by links */
	uint32_t payload_max;
	uint32_t segments;		/* of a streaming group; 0: as usual */
	uint8_t pulses;			/* that live at once; 0: as usual */
	uint8_t type;			/* enum muster_switch_tree_type */
	uint64_t nr_up, nr_down, nr_once;	/* given to hosts' links; brought to hosts */
	size_t allocated;
};

/* One for the world's hook, which has no place for more. */
static struct net *the_net;

/* ---- links ---- */

static inline int net_push(struct net *net, const struct muster_fabric_end *to,
			   const struct muster_packet *packet, const void *payload)
{
	struct net_packet *copy;

	if (net->nr_flight == NET_FLIGHT_MAX)
		return -EAGAIN;
	copy = calloc(1, sizeof(*copy));
	copy->to = *to;
	copy->packet = *packet;
	if (packet->length)
		memcpy(copy->payload, payload, packet->length);
	net->flight[net->nr_flight++] = copy;
	return 0;
}

static inline int net_from_host(struct world_node *from, uint32_t incarnation,
				const struct muster_packet *packet, const void *payload)
{
	struct muster_fabric_end to;

	assert_int_equal(incarnation, NET_LIFE + packet->dst_node - MUSTER_NODE_AGGREGATION);
	if (world_random(from->world, 100) < the_net->refuse_percent)
		return -EAGAIN;
	the_net->nr_up++;
	muster_fabric_uplink(the_net->fabric, from->node, &to);
	return net_push(the_net, &to, packet, payload);
}

static inline int net_send(void *opaque, uint32_t port, const struct muster_packet *packet,
			   const void *payload)
{
	struct net_switch *from = opaque;
	struct muster_fabric_end to;

	if (!muster_fabric_end(from->net->fabric, from->number, port, &to))
		return -EHOSTUNREACH;
	if (world_random(from->net->w, 100) < from->net->refuse_percent)
		return -EAGAIN;
	return net_push(from->net, &to, packet, payload);
}

static inline void net_send_once(void *opaque, uint32_t port, const struct muster_packet *packet,
				 const void *payload)
{
	struct net_switch *from = opaque;

	assert_true(packet->flags & MUSTER_PACKET_ONCE);
	if (world_random(from->net->w, 100) >= from->net->lose_percent)
		net_send(opaque, port, packet, payload);
}

static inline void *net_alloc(void *opaque, size_t bytes)
{
	((struct net_switch *)opaque)->net->allocated += bytes;
	return calloc(1, bytes);
}

static inline void net_free(void *opaque, void *p, size_t bytes)
{
	((struct net_switch *)opaque)->net->allocated -= bytes;
	free(p);
}

static const struct muster_switch_world net_table = {
	.send = net_send,
	.send_once = net_send_once,
	.alloc = net_alloc,
	.free = net_free,
};

/* ---- life ---- */

static inline void net_open_switch(struct net *net, uint32_t number)
{
	struct muster_switch_route routes[WORLD_NODES + NET_SWITCHES_MAX];
	bool trunks[MUSTER_SWITCH_RADIX_MAX];
	struct muster_switch_config config = {
		.node = muster_fabric_node(net->fabric, number),
		.incarnation = NET_LIFE + number,
		.radix = muster_fabric_radix(net->fabric),
		.routes = routes,
		.trunks = trunks,
	};
	int64_t nr = muster_fabric_routes(net->fabric, number, routes);

	assert_true(nr > 0);
	config.nr_routes = nr;
	muster_fabric_trunks(net->fabric, number, trunks);
	net->switches[number] = (struct net_switch){ .net = net, .number = number };
	assert_int_equal(muster_switch_create(&config, &net_table, &net->switches[number],
					      &net->switches[number].sw), 0);
}

static inline uint32_t net_life_of(uint32_t node)
{
	return node < MUSTER_NODE_AGGREGATION ? 100 + node :
						NET_LIFE + node - MUSTER_NODE_AGGREGATION;
}

static inline void net_open_branch(struct net *net, struct muster_fabric_branch *branch)
{
	struct muster_switch_group *group = &branch->group;
	struct muster_switch_child *children = (struct muster_switch_child *)group->children;

	group->tree = NET_TREE;
	group->type = net->type;
	group->group = NET_GROUP;
	group->job = WORLD_JOB;
	group->key = NET_KEY;
	group->payload_max = net->payload_max;
	group->segments = net->segments;
	group->parent_incarnation = net_life_of(group->parent_node);
	for (uint32_t i = 0; i < group->nr_children; i++) {
		children[i].incarnation = net_life_of(children[i].node);
		if (children[i].node >= MUSTER_NODE_AGGREGATION)
			continue;
		children[i].vp = WORLD_VP;
		children[i].context = WORLD_CONTEXT;
		children[i].life = WORLD_LIFE;
	}
	assert_int_equal(muster_switch_group_add(net->switches[branch->number].sw, group), 0);
}

static inline struct muster_tree_config net_tree_of(const struct net *net, uint32_t host)
{
	return (struct muster_tree_config){
		.node = net->group.nodes[host],
		.incarnation = net_life_of(net->group.nodes[host]),
		.tree = NET_TREE, .group = NET_GROUP, .key = NET_KEY,
		.payload_max = net->payload_max,
	};
}

/* links: of nodes 0 to hosts - 1, which are hosts, and of switches behind them. */
static inline struct net *net_create(uint32_t hosts, uint32_t switches,
				     const struct muster_fabric_link *links, uint32_t nr_links,
				     const bool *is_plain, uint64_t seed)
{
	bool is_switch[WORLD_NODES + NET_SWITCHES_MAX] = { 0 };
	struct muster_fabric_config config = {
		.nodes = hosts + switches, .is_switch = is_switch, .is_plain = is_plain,
		.nr_links = nr_links, .links = links,
	};
	struct net *net = calloc(1, sizeof(*net));
	char why[256] = "";
	uint32_t bad, i;

	for (i = hosts; i < hosts + switches; i++)
		is_switch[i] = true;
	if (muster_fabric_create(&config, &net->fabric, &bad, why, sizeof(why)))
		fail_msg("link %u: %s", bad, why);
	net->w = world_create(hosts, seed);
	net->w->elsewhere = net_from_host;
	net->payload_max = MUSTER_SWITCH_LLT_BYTES;
	the_net = net;
	return net;
}

/* After the options have been set. */
static inline void net_start(struct net *net)
{
	uint32_t members[WORLD_NODES], i;
	char why[256] = "";

	world_start(net->w);
	for (i = 0; i < net->w->nr; i++)
		members[i] = i;
	for (i = 0; i < muster_fabric_switches(net->fabric); i++)
		net_open_switch(net, i);
	if (muster_fabric_group(net->fabric, 0, members, net->w->nr, &net->group, why,
				sizeof(why)))
		fail_msg("%s", why);
	for (i = 0; i < net->group.nr_branches; i++)
		net_open_branch(net, &net->group.branches[i]);
	for (i = 0; i < net->w->nr; i++) {
		struct muster_tree_config tree = net_tree_of(net, i);

		assert_int_equal(muster_engine_tree_join(net->w->nodes[i].engine, WORLD_VP, WORLD_JOB,
							 WORLD_CONTEXT, &tree), 0);
	}
}

static inline void net_give_back(struct net *net);

static inline void net_destroy(struct net *net)
{
	net_give_back(net);
	for (uint32_t i = 0; i < NET_SWITCHES_MAX; i++)
		if (net->switches[i].sw)
			muster_switch_destroy(net->switches[i].sw);
	assert_int_equal(net->allocated, 0);
	while (net->nr_flight)
		free(net->flight[--net->nr_flight]);
	muster_fabric_group_free(&net->group);
	muster_fabric_free(net->fabric);
	world_destroy(net->w);
	free(net);
}

/* ---- time ---- */

static inline void net_to_host(struct net *net, const struct net_packet *copy)
{
	struct world_node *node = &net->w->nodes[copy->to.number];
	uint8_t *payload = malloc(copy->packet.length ? copy->packet.length : 1);

	assert_int_equal(copy->packet.dst_node, copy->to.number);
	memcpy(payload, copy->payload, copy->packet.length);
	if (copy->packet.flags & MUSTER_PACKET_ONCE)
		net->nr_once++;
	else
		net->nr_down++;
	if (!node->dead)
		muster_engine_receive(node->engine, &copy->packet, payload, copy->packet.length);
	node->idle = false;
	free(payload);
}

/* Some payloads are lent, and are something else as soon as they have been given back. */
static inline int net_to_switch(struct net *net, struct net_packet *copy)
{
	bool lent = net->nr_lent < NET_LENT_MAX && world_random(net->w, 2);
	int ret = (lent ? muster_switch_lend : muster_switch_receive)(
		net->switches[copy->to.number].sw, copy->to.port, &copy->packet, copy->payload,
		copy->packet.length);

	copy->lent = lent && !ret;
	if (copy->lent)
		net->lent[net->nr_lent++] = copy;
	return ret;
}

static inline void net_give_back(struct net *net)
{
	for (uint32_t i = 0; i < NET_SWITCHES_MAX && net->nr_lent; i++)
		if (net->switches[i].sw)
			muster_switch_give_back(net->switches[i].sw);
	while (net->nr_lent) {
		struct net_packet *copy = net->lent[--net->nr_lent];

		memset(copy->payload, 0xa5, copy->packet.length);
		free(copy);
	}
}

static inline void net_deliver_one(struct net *net, uint32_t which)
{
	struct net_packet *copy = net->flight[which];

	if (copy->to.is_host)
		net_to_host(net, copy);
	else if (net_to_switch(net, copy))
		return;
	/* The last may be one that was sent meanwhile. */
	net->flight[which] = net->flight[--net->nr_flight];
	if (copy->lent)
		return;
	free(copy);
}

static inline bool net_switches_step(struct net *net)
{
	bool left = false;

	for (uint32_t i = 0; i < muster_fabric_switches(net->fabric); i++)
		if (net->switches[i].sw)
			left |= muster_switch_step(net->switches[i].sw);
	return left;
}

/* Until nothing moves any more. */
static inline void net_run(struct net *net)
{
	struct world *w = net->w;
	uint32_t turn, i;

	for (i = 0; i < w->nr; i++)
		w->nodes[i].idle = false;
	for (turn = 0; turn < 4000000; turn++) {
		if (!world_random(w, 4))
			net_switches_step(net);
		if (!world_random(w, 16))
			net_give_back(net);
		if (net->nr_flight && world_random(w, 3))
			net_deliver_one(net, world_random(w, net->nr_flight));
		if (w->nr_flight && world_random(w, 2))
			world_deliver_one(w, world_random(w, w->nr_flight));
		i = world_random(w, w->nr);
		if (!w->nodes[i].dead)
			w->nodes[i].idle = !muster_engine_step(w->nodes[i].engine,
							       1 + world_random(w, 16));
		if (!net->nr_flight && !w->nr_flight && world_all_idle(w) &&
		    !net_switches_step(net) && !net->nr_flight)
			return;
	}
	fail_msg("the network does not come to rest");
}

/* ---- the tree's own order ---- */

static inline const struct muster_switch_group *net_branch_of(const struct net *net, uint32_t node)
{
	for (uint32_t i = 0; i < net->group.nr_branches; i++)
		if (net->group.branches[i].number + MUSTER_NODE_AGGREGATION == node)
			return &net->group.branches[i].group;
	fail_msg("no branch at node %x", node);
	return NULL;
}

/* Low-latency trees have one half only; 40 ports are 20 units, 10 in each half ring. */
static inline uint32_t net_half(const struct net *net, const struct muster_switch_group *group,
				uint32_t child)
{
	return net->type == MUSTER_SWITCH_SAT && group->children[child].port >= 20;
}

static inline void net_fold(uint8_t type, uint8_t op, uint8_t *sum, const uint8_t *value,
			    uint32_t bytes, bool first)
{
	if (first)
		memcpy(sum, value, bytes);
	else if (bytes)
		assert_int_equal(muster_arith(type, op, sum, sum, value, bytes), 0);
}

/* What a node sends up: a host its own, `inputs` + node * bytes. */
static inline void net_value(const struct net *net, uint32_t node, uint8_t type, uint8_t op,
			     const uint8_t *inputs, uint32_t bytes, uint8_t *value)
{
	const struct muster_switch_group *group;
	uint8_t *half = malloc(bytes + 1), *child = malloc(bytes + 1);
	uint32_t i = 0, in_half, halves = 0;

	if (node < MUSTER_NODE_AGGREGATION) {
		memcpy(value, inputs + (size_t)node * bytes, bytes);
		free(half);
		free(child);
		return;
	}
	group = net_branch_of(net, node);
	for (uint32_t right = 0; right < 2; right++) {
		for (in_half = 0; i < group->nr_children && net_half(net, group, i) == right; i++) {
			net_value(net, group->children[i].node, type, op, inputs, bytes, child);
			net_fold(type, op, half, child, bytes, !in_half++);
		}
		if (in_half)
			net_fold(type, op, value, half, bytes, !halves++);
	}
	free(half);
	free(child);
}

static inline uint32_t net_root(const struct net *net)
{
	return net->group.branches[net->group.nr_branches - 1].number + MUSTER_NODE_AGGREGATION;
}

static inline struct muster_switch_counters net_counters(const struct net *net, uint32_t number)
{
	struct muster_switch_counters counters;

	muster_switch_counters_get(net->switches[number].sw, &counters);
	return counters;
}

/* ---- networks ---- */

static inline uint32_t net_link(struct muster_fabric_link *links, uint32_t nr, uint32_t a,
				uint32_t b)
{
	links[nr] = (struct muster_fabric_link){ a, b };
	return nr + 1;
}

/* Leaves with so many hosts each, below one spine; one leaf: a single switch. */
static inline struct net *net_two_levels(uint32_t leaves, uint32_t each, uint64_t seed)
{
	struct muster_fabric_link links[NET_LINKS_MAX];
	uint32_t hosts = leaves * each, nr = 0, i;

	for (i = 0; i < hosts; i++)
		nr = net_link(links, nr, i, hosts + i / each);
	for (i = 0; i < leaves && leaves > 1; i++)
		nr = net_link(links, nr, hosts + i, hosts + leaves);
	return net_create(hosts, leaves + (leaves > 1), links, nr, NULL, seed);
}

/* Two pods of two leaves of two hosts; the pods' upper switches only forward if plain. */
static inline struct net *net_three_levels(bool plain, uint64_t seed)
{
	static const struct muster_fabric_link links[] = {
		{ 0, 8 }, { 1, 8 }, { 2, 9 }, { 3, 9 }, { 4, 10 }, { 5, 10 }, { 6, 11 }, { 7, 11 },
		{ 8, 12 }, { 9, 13 }, { 10, 14 }, { 11, 15 },
		{ 12, 16 }, { 13, 16 }, { 14, 16 }, { 15, 16 },
	};
	bool is_plain[17] = { 0 };

	for (uint32_t i = 12; i < 16; i++)
		is_plain[i] = plain;
	return net_create(8, 9, links, sizeof(links) / sizeof(*links), is_plain, seed);
}

#endif /* MUSTER_SWITCH_TEST_NET_H */
