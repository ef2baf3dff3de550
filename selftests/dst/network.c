// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A network of switches between the hosts: who is joined to whom, and what one of these nodes
 * is: a switch as muster-switchd runs it (switch_box.c), whose wire is the simulated one. Also what
 * of it can break, and who is then gone for whom.
 */
#include "dst.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric.h"
#include "test_saved.h"
#include "../../tools/switch_box.h"

enum { LINKS_MAX = 64, LOST_US = 5000, UNLINK_US = 2000, LENT_MAX = 16, NOT_ANY_MORE = 0xa5 };

struct dst_switch {
	struct muster_wire wire;	/* what its box holds for a socket */
	struct switch_box boxes[2];	/* one of them is the switch, */
	struct switch_box *box;		/* this; the other's program would go on with what it has */
	struct dst_node *node;
	uint32_t nr_lent;		/* payloads that have come, as they would lie together at a socket */
	uint8_t lent[LENT_MAX][MUSTER_MTU];
	bool met[DST_NODES_MAX];	/* hosts */
	bool unlinked[DST_NODES_MAX];	/* it hears nothing from there any more, and counts nothing */
};

struct dst_network {
	struct muster_fabric *fabric;
	uint32_t nr_links;
	struct muster_fabric_link links[LINKS_MAX];
	struct dst_switch switches[DST_NODES_MAX];
	bool cut;			/* for good: */
	uint32_t cut_a, cut_b;
	bool gone[DST_NODES_MAX];
};

/* ---- who is joined to whom ------------------------------------------------------------- */

static void join(struct dst_network *net, uint32_t a, uint32_t b)
{
	net->links[net->nr_links++] = (struct muster_fabric_link){ a, b };
}

/* Each host to any of the lowest, each switch to all of the next level. */
static void draw_links(struct dst_world *w, struct dst_network *net)
{
	const struct dst_plan *plan = &w->plan;
	uint32_t below = plan->ranks;

	for (uint32_t host = 0; host < plan->ranks; host++)
		join(net, host, plan->ranks + dst_below(&w->data, plan->levels[0]));
	for (uint32_t level = 1; level < 3; level++) {
		uint32_t above = below + plan->levels[level - 1];

		for (uint32_t i = 0; i < plan->levels[level - 1]; i++)
			for (uint32_t j = 0; j < plan->levels[level]; j++)
				join(net, below + i, above + j);
		below = above;
	}
	/* Their order is that of ports. */
	for (uint32_t i = net->nr_links; i > 1; i--) {
		uint32_t other = dst_below(&w->data, i);
		struct muster_fabric_link link = net->links[other];

		net->links[other] = net->links[i - 1];
		net->links[i - 1] = link;
	}
}

static uint32_t most_ports(const struct dst_network *net)
{
	uint32_t ports[DST_NODES_MAX] = { 0 }, most = MUSTER_SWITCH_RADIX_MIN;

	for (uint32_t i = 0; i < net->nr_links; i++) {
		uint32_t a = ++ports[net->links[i].a], b = ++ports[net->links[i].b];

		most = a > most ? a : most;
		most = b > most ? b : most;
	}
	return most;
}

bool dst_network_make(struct dst_world *w)
{
	bool is_switch[DST_NODES_MAX] = { false }, is_plain[DST_NODES_MAX] = { false };
	struct muster_fabric_config config = {
		.nodes = w->plan.nodes, .is_switch = is_switch, .is_plain = is_plain,
	};
	struct dst_network *net = calloc(1, sizeof(*net));
	char why[DST_WHY_MAX] = "";
	uint32_t bad;
	int err = -ENOMEM;

	w->network = net;
	if (net) {
		draw_links(w, net);
		for (uint32_t i = w->plan.ranks; i < w->plan.nodes; i++) {
			is_switch[i] = true;
			is_plain[i] = w->plan.plain && dst_below(&w->data, 3) == 0;
		}
		config.radix = dst_below(&w->data, 2) ? most_ports(net) : MUSTER_SWITCH_RADIX;
		config.nr_links = net->nr_links;
		config.links = net->links;
		err = muster_fabric_create(&config, &net->fabric, &bad, why, sizeof(why));
	}
	if (err)
		dst_fail(w, "the network cannot be made: %d %s", err, why);
	return !err;
}

void dst_network_free(struct dst_world *w)
{
	if (!w->network)
		return;
	muster_fabric_free(w->network->fabric);
	free(w->network);
	w->network = NULL;
}

const struct muster_fabric *dst_network_fabric(const struct dst_world *w)
{
	return w->network->fabric;
}

uint32_t dst_network_id(const struct dst_world *w, uint32_t index)
{
	return index < w->plan.ranks ? index : MUSTER_NODE_AGGREGATION + index - w->plan.ranks;
}

static uint32_t index_of(const struct dst_world *w, uint32_t id)
{
	return id < MUSTER_NODE_AGGREGATION ? id : w->plan.ranks + id - MUSTER_NODE_AGGREGATION;
}

static bool is_link(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	return (a == c && b == d) || (a == d && b == c);
}

bool dst_network_joins(const struct dst_world *w, uint32_t a, uint32_t b)
{
	for (uint32_t i = 0; i < w->network->nr_links; i++)
		if (is_link(w->network->links[i].a, w->network->links[i].b, a, b))
			return true;
	return false;
}

uint32_t dst_network_uplink(const struct dst_world *w, uint32_t host)
{
	struct muster_fabric_end end;

	muster_fabric_uplink(w->network->fabric, host, &end);
	return w->plan.ranks + end.number;
}

void dst_network_link(const struct dst_world *w, uint32_t any, uint32_t *a, uint32_t *b)
{
	const struct muster_fabric_link *link = &w->network->links[any % w->network->nr_links];

	*a = any / 64 % 2 ? link->a : link->b;
	*b = link->a == *a ? link->b : link->a;
}

bool dst_network_met(const struct dst_world *w)
{
	for (uint32_t host = 0; host < w->plan.ranks; host++)
		if (!w->nodes[dst_network_uplink(w, host)].sw->met[host])
			return false;
	return true;
}

/* ---- what breaks ------------------------------------------------------------------------- */

/* Who had gone by that way is gone for the switch, and so for all. */
static void lose_way(struct dst_world *w, uint32_t from, uint32_t to)
{
	struct muster_switch_route routes[DST_NODES_MAX];
	uint32_t number = from - w->plan.ranks;
	int64_t nr = muster_fabric_routes(w->network->fabric, number, routes);

	for (int64_t i = 0; i < nr; i++) {
		struct muster_fabric_end end;

		if (muster_fabric_end(w->network->fabric, number, routes[i].port, &end) &&
		    (end.is_host ? end.number : w->plan.ranks + end.number) == to)
			w->network->gone[index_of(w, routes[i].node)] = true;
	}
}

static void break_switch(struct dst_world *w)
{
	uint32_t dead = w->plan.ranks + w->plan.cause_switch % w->plan.switches;

	dst_say(w, "switch %u dies", dead);
	w->nodes[dead].dead = true;
	w->network->gone[dead] = true;
	for (uint32_t i = w->plan.ranks; i < w->plan.nodes; i++)
		if (dst_network_joins(w, i, dead))
			lose_way(w, i, dead);
	for (uint32_t host = 0; host < w->plan.ranks; host++)
		w->network->gone[host] |= dst_network_uplink(w, host) == dead;
}

static void break_link(struct dst_world *w)
{
	struct dst_network *net = w->network;
	uint32_t a, b;

	dst_network_link(w, w->plan.cause_link, &a, &b);
	dst_say(w, "the link between nodes %u and %u is cut", a, b);
	net->cut_a = a;
	net->cut_b = b;
	if (a >= w->plan.ranks)
		lose_way(w, a, b);
	if (b >= w->plan.ranks)
		lose_way(w, b, a);
	net->cut = a < w->plan.ranks || b < w->plan.ranks || !w->plan.said;
	if (net->cut)
		return;
	dst_at(w, w->now_us + dst_below(&w->net, UNLINK_US), DST_EVENT_UNLINK, a, b, NULL);
	dst_at(w, w->now_us + dst_below(&w->net, UNLINK_US), DST_EVENT_UNLINK, b, a, NULL);
}

void dst_network_break(struct dst_world *w)
{
	if (w->plan.cause == DST_SWITCH)
		break_switch(w);
	else
		break_link(w);
}

bool dst_network_cut(const struct dst_world *w, uint32_t a, uint32_t b)
{
	return w->network && w->network->cut &&
	       is_link(w->network->cut_a, w->network->cut_b, a, b);
}

bool dst_network_gone(const struct dst_world *w, uint32_t index)
{
	return w->network->gone[index];
}

/* As userlib/local has it. Where the switch lives, others hear of the host by its process's end. */
void dst_network_lost(struct dst_node *host)
{
	struct dst_world *w = host->world;
	uint32_t uplink = dst_network_uplink(w, host->index);

	if (host->ports[host->index].gone)
		return;
	dst_say(w, "host %u has lost its switch", host->index);
	host->ports[host->index].gone = true;
	muster_engine_network_lost(host->engine);
	for (uint32_t i = 0; i < w->plan.ranks; i++) {
		if (i == host->index)
			continue;
		muster_engine_peer_lost(host->engine, i);
		if (dst_network_cut(w, host->index, uplink))
			dst_at(w, w->now_us + 1 + dst_below(&w->net, LOST_US), DST_EVENT_LOST, i,
			       host->index, NULL);
	}
	dst_step_at(host, w->now_us + 1);
}

bool dst_network_heard(struct dst_node *host, const struct muster_packet *packet)
{
	uint32_t gone = index_of(host->world, packet->arg);

	if (packet->type != MUSTER_PACKET_GONE)
		return false;
	dst_say(host->world, "host %u: node %u is gone", host->index, gone);
	if (gone == host->index)
		dst_network_lost(host);
	else
		muster_engine_peer_lost(host->engine, packet->arg);
	dst_step_at(host, host->world->now_us + 1);
	return true;
}

/* ---- a switch's wire ------------------------------------------------------------------------ */

static struct dst_switch *switch_of(struct muster_wire *wire)
{
	return (struct dst_switch *)wire;
}

static int wire_send_by(struct muster_wire *wire, uint32_t neighbour, uint32_t incarnation,
			const struct muster_packet *packet, const void *payload)
{
	struct dst_node *node = switch_of(wire)->node;
	struct dst_world *w = node->world;
	int err = -EAGAIN;

	if (dst_healed(w) || !dst_chance(&w->net, w->plan.send_full))
		err = dst_net_send_by(node, index_of(w, neighbour), incarnation, packet, payload);
	dst_say(w, "node %u -> %u: packet %u for %x, tree %u, number %u, pulse %u, flags %x, %u bytes: %d",
		node->index, index_of(w, neighbour), packet->type, packet->dst_node, packet->tree,
		packet->number, packet->pulse, packet->flags, packet->length, err);
	w->nr_packets += !err;
	return err;
}

static void wire_send_once(struct muster_wire *wire, uint32_t neighbour, uint32_t incarnation,
			   const struct muster_packet *packet, const void *payload)
{
	struct dst_node *node = switch_of(wire)->node;
	struct muster_link *link = node->ports[index_of(node->world, neighbour)].link;

	muster_link_send_once(link, incarnation, packet, payload);
}

static int wire_watch(struct muster_wire *wire, uint32_t neighbour, uint32_t incarnation)
{
	struct dst_node *node = switch_of(wire)->node;

	dst_net_watch(node, index_of(node->world, neighbour), incarnation);
	return 0;
}

/* What comes is an event of its own. */
static int wire_poll(struct muster_wire *wire, uint64_t now_us, int budget)
{
	(void)wire;
	(void)now_us;
	(void)budget;
	return 0;
}

static uint64_t wire_deadline_us(struct muster_wire *wire)
{
	(void)wire;
	return UINT64_MAX;
}

static void wire_close(struct muster_wire *wire)
{
	(void)wire;
}

/* ---- a switch --------------------------------------------------------------------------------- */

int dst_switch_begin(struct dst_node *node)
{
	static const struct muster_wire_ops ops = {
		.send_by = wire_send_by, .send_once = wire_send_once, .watch = wire_watch,
		.poll = wire_poll, .deadline_us = wire_deadline_us, .close = wire_close,
	};
	struct dst_world *w = node->world;
	uint32_t number = node->index - w->plan.ranks;
	struct dst_switch *sw = &w->network->switches[number];
	char why[DST_WHY_MAX] = "";
	int err;

	node->sw = sw;
	node->incarnation = DST_SWITCH_LIFE;
	sw->node = node;
	sw->box = &sw->boxes[0];
	sw->wire = (struct muster_wire){ .ops = &ops, .owner = sw->box };
	err = switch_box_make(sw->box, w->network->fabric, number, DST_SWITCH_LIFE, why, sizeof(why));
	sw->box->wire = &sw->wire;
	return err;
}

/* They are something else as soon as they have been given back. */
static void over(struct dst_switch *sw)
{
	switch_box_events.over(sw->box);
	memset(sw->lent, NOT_ANY_MORE, sw->nr_lent * sizeof(sw->lent[0]));
	sw->nr_lent = 0;
}

void dst_switch_end(struct dst_node *node)
{
	node->sw->nr_lent = 0;
	switch_box_close(node->sw->box);
	node->sw = NULL;
}

struct muster_switch *dst_switch_of(const struct dst_node *node)
{
	return node->sw->box->sw;
}

void dst_switch_step(struct dst_node *node)
{
	struct switch_box *box = node->sw->box;
	uint64_t now_us = node->world->now_us, due_us;

	over(node->sw);
	switch_box_step(box, now_us);
	if (box->lost) {
		switch_box_tell_losses(box);
		dst_step_at(node, now_us + 1);
	}
	due_us = switch_box_due_us(box);
	if (due_us != UINT64_MAX)
		dst_step_at(node, due_us > now_us ? due_us : now_us + 1);
}

static void soon(struct dst_node *node)
{
	struct dst_world *w = node->world;

	dst_step_at(node, w->now_us + 1 + dst_below(&w->host, w->plan.engine_us));
}

static bool is_own(const struct dst_node *node, const struct muster_packet *packet)
{
	return packet->group && packet->dst_node == dst_network_id(node->world, node->index);
}

/*
 * Links bring each packet once; what has its place in an operation is known again all the same. That
 * a node has its turn to lock is not.
 */
static bool is_turn(const struct muster_packet *packet)
{
	return packet->type == MUSTER_PACKET_TREE_DOWN && packet->signature.coll == MUSTER_COLL_LOCK;
}

/* The same by somebody who has not the group's key, or in another life. */
static void forge(struct dst_node *node, uint32_t from, const struct muster_packet *packet,
		  const void *payload)
{
	struct dst_world *w = node->world;
	struct muster_switch_counters before, after;
	struct muster_packet forged = *packet;

	if (dst_below(&w->net, 2))
		forged.job_key ^= 1ull << dst_below(&w->net, 64);
	else
		forged.incarnation ^= 1u << dst_below(&w->net, 32);
	muster_switch_counters_get(node->sw->box->sw, &before);
	switch_box_events.take(node->sw->box, dst_network_id(w, from), &forged, payload, forged.length);
	muster_switch_counters_get(node->sw->box->sw, &after);
	if (after.drop_stranger != before.drop_stranger + 1)
		dst_fail(w, "switch %u: a forged packet was not dropped", node->index);
}

static bool lend(struct dst_node *node, uint32_t from, const struct muster_packet *packet, const void *payload)
{
	struct dst_switch *sw = node->sw;
	uint8_t *lent;

	if (sw->nr_lent == LENT_MAX)
		over(sw);
	lent = sw->lent[sw->nr_lent++];
	if (packet->length)
		memcpy(lent, payload, packet->length);
	return switch_box_events.take(sw->box, dst_network_id(node->world, from), packet, lent, packet->length);
}

bool dst_switch_take(struct dst_node *node, uint32_t from, const struct muster_packet *packet,
		     const void *payload)
{
	struct dst_world *w = node->world;
	bool taken, own = is_own(node, packet) && !node->sw->unlinked[from];

	if (own && !dst_healed(w) && dst_chance(&w->net, w->plan.forge))
		forge(node, from, packet, payload);
	taken = lend(node, from, packet, payload);
	if (own && taken && !is_turn(packet))
		dst_net_replay(node, from, packet, payload);
	soon(node);
	return taken;
}

void dst_switch_met(struct dst_node *node, uint32_t peer, uint32_t present)
{
	node->sw->met[peer] = true;
	switch_box_events.met(node->sw->box, dst_network_id(node->world, peer), present);
	soon(node);
}

void dst_switch_lost(struct dst_node *node, uint32_t peer, uint32_t present)
{
	switch_box_events.lost(node->sw->box, dst_network_id(node->world, peer), present);
	soon(node);
}

/* ---- another program in its place ------------------------------------------------------------------- */

/* The wire stays: what is on its links is handed over by tests of its own. */
void dst_switch_replace(struct dst_node *node)
{
	struct dst_world *w = node->world;
	struct switch_box *old = node->sw->box, *fresh = &node->sw->boxes[old == node->sw->boxes];
	struct saved saved = { .bytes = NULL };
	char why[DST_WHY_MAX] = "";
	int err;

	if (node->dead)
		return;
	dst_say(w, "switch %u is replaced", node->index);
	err = muster_switch_save(old->sw, &(struct muster_switch_store){ &saved, saved_write });
	if (!err)
		err = switch_box_make(fresh, w->network->fabric, old->number, old->life, why, sizeof(why));
	if (!err)
		err = muster_switch_restore(fresh->sw, &(struct muster_switch_store){ &saved, saved_read });
	if (err || saved.at != saved.len)
		dst_fail(w, "switch %u cannot be replaced: %d", node->index, err);
	free(saved.bytes);
	muster_switch_destroy(old->sw);
	old->sw = fresh->sw;
	free(fresh->ports);
	*fresh = *old;
	*old = (struct switch_box){ .ports = NULL };
	node->sw->wire.owner = node->sw->box = fresh;
	soon(node);
}

void dst_switch_unlink(struct dst_node *node, uint32_t peer)
{
	node->sw->unlinked[peer] = true;
	switch_box_cut(node->sw->box, dst_network_id(node->world, peer));
	soon(node);
}

/* ---- what is left ---------------------------------------------------------------------------------- */

static bool rests(struct dst_node *node, bool late)
{
	struct muster_switch_counters c;
	bool owes = node->sw->box->owes || node->sw->box->lost;

	muster_switch_counters_get(node->sw->box->sw, &c);
	if (!c.groups && !c.bytes && !c.held && !c.flows && !c.locked && !c.lock_waits && !owes)
		return true;
	if (late)
		dst_fail(node->world, "switch %u still has %llu groups of %llu bytes, %llu packets, %llu flows, %llu locks, %llu that wait for locks%s",
			 node->index, (unsigned long long)c.groups, (unsigned long long)c.bytes,
			 (unsigned long long)c.held, (unsigned long long)c.flows,
			 (unsigned long long)c.locked, (unsigned long long)c.lock_waits,
			 owes ? ", and something to say" : "");
	return false;
}

bool dst_switches_rest(struct dst_world *w, bool late)
{
	for (uint32_t i = w->plan.ranks; i < w->plan.nodes; i++)
		if (w->nodes[i].sw && !w->nodes[i].dead && !rests(&w->nodes[i], late))
			return false;
	return true;
}
