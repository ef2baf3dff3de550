// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How packets travel between simulated nodes: over real links (reliable.c) on a
 * network that does what the plan says, over memory rings (rings.c), or from a
 * node to itself. At the engine's door, packets are now and then taken once more
 * or forged, since neither must do harm.
 */
#include "dst.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pcapng.h"
#include "reliable.h"

enum { LATENCY_US = 5, REORDER_US = 20000, REPLAY_US = 2000 };

/* ---- parcels -------------------------------------------------------------------- */

struct dst_parcel *dst_parcel_new(struct dst_world *w)
{
	struct dst_parcel *parcel = w->parcels;

	if (!parcel)
		return malloc(sizeof(*parcel));
	w->parcels = parcel->next;
	return parcel;
}

void dst_parcel_free(struct dst_world *w, struct dst_parcel *parcel)
{
	if (!parcel)
		return;
	parcel->next = w->parcels;
	w->parcels = parcel;
}

static void append(struct dst_parcel *parcel, const void *bytes, size_t len)
{
	if (len)
		memcpy(parcel->bytes + parcel->len, bytes, len);
	parcel->len += len;
}

/* ---- at the engine's door -------------------------------------------------------- */

static void packet_later(struct dst_node *node, uint32_t from, const struct muster_packet *packet,
			 const void *payload, uint64_t delay_us)
{
	struct dst_world *w = node->world;
	struct dst_parcel *parcel = dst_parcel_new(w);

	parcel->len = 0;
	append(parcel, packet, sizeof(*packet));
	append(parcel, payload, packet->length);
	dst_at(w, w->now_us + delay_us, DST_EVENT_PACKET, node->index, from, parcel);
}

void dst_net_replay(struct dst_node *node, uint32_t from, const struct muster_packet *packet,
		    const void *payload)
{
	struct dst_world *w = node->world;

	if (!dst_healed(w) && dst_chance(&w->net, w->plan.replay))
		packet_later(node, from, packet, payload, dst_below(&w->net, REPLAY_US));
}

/* The same from somebody who does not belong to the job: it must be dropped, and counted. */
static void forge(struct dst_node *node, const struct muster_packet *packet, const void *payload)
{
	struct dst_world *w = node->world;
	struct muster_engine_counters before, after;
	struct muster_packet forged = *packet;

	/* Of an aggregation node a member knows no more than two of these. */
	switch (dst_below(&w->net, packet->group ? 2 : 4)) {
	case 0:
		forged.job_key ^= 1ull << dst_below(&w->net, 64);
		break;
	case 1:
		forged.incarnation ^= 1u << dst_below(&w->net, 32);
		break;
	case 2:
		if (packet->number % 2)
			forged.src_node += DST_NODES_MAX;
		else
			forged.life++;
		break;
	default:
		if (packet->number % 2)
			forged.src_vp += 1000;
		else
			forged.src_member += 1000;
		break;
	}
	muster_engine_counters_get(node->engine, &before);
	muster_engine_receive(node->engine, &forged, payload, forged.length);
	muster_engine_counters_get(node->engine, &after);
	if (after.drop_stranger != before.drop_stranger + 1)
		dst_fail(w, "node %u: a forged packet was not dropped", node->index);
}

/* Between any others' packets nothing differs. */
static bool tells_of(const struct dst_rank *rank, const struct dst_node *to, const struct muster_packet *packet)
{
	return (rank->node == to && rank->vp == packet->dst_vp) ||
	       (rank->node->index == packet->src_node && rank->vp == packet->src_vp);
}

/* An engine compares what comes too late with its last MUSTER_WINDOW sequences only. */
static void note_late(struct dst_node *node, const struct muster_packet *packet)
{
	struct dst_world *w = node->world;
	struct muster_context_state state;

	if (w->plan.cause == DST_MISMATCH && packet->type <= MUSTER_PACKET_RTS &&
	    packet->context == w->comms[w->plan.cause_comm].id &&
	    tells_of(&w->ranks[w->plan.cause_rank], node, packet) &&
	    !muster_engine_context_query(node->engine, packet->dst_vp, packet->job, packet->context, &state))
		w->forgotten |= (int32_t)(state.number - packet->number) > MUSTER_WINDOW;
}

void dst_net_receive(struct dst_node *node, const struct muster_packet *packet,
		     const void *payload, uint32_t len)
{
	struct dst_world *w = node->world;

	if (node->dead || node->left)
		return;
	node->activity++;
	note_late(node, packet);
	if (!dst_healed(w) && dst_chance(&w->net, w->plan.forge))
		forge(node, packet, payload);
	if (w->plan.at_once)
		muster_engine_receive_run(node->engine, packet, payload, len);
	else
		muster_engine_receive(node->engine, packet, payload, len);
	/* What has no slot cannot be known again: there the wire must do it. */
	if (packet->type != MUSTER_PACKET_P2P)
		dst_net_replay(node, 0, packet, payload);
	dst_step_at(node, w->now_us + dst_below(&w->host, w->plan.engine_us));
}

void dst_net_packet(struct dst_node *node, uint32_t from, struct dst_parcel *parcel)
{
	const struct muster_packet *packet = (const void *)parcel->bytes;

	if (node->dead || node->left)
		return;
	if (node->sw) {
		dst_switch_take(node, from, packet, packet + 1);
		return;
	}
	node->activity++;
	note_late(node, packet);
	muster_engine_receive(node->engine, packet, packet + 1, packet->length);
	dst_step_at(node, node->world->now_us + dst_below(&node->world->host,
							   node->world->plan.engine_us));
}

/* ---- links over the network -------------------------------------------------------- */

static bool inside(const struct dst_world *w, const struct dst_window *windows, uint32_t from,
		   uint32_t to, uint64_t *end_us)
{
	for (uint32_t i = 0; i < DST_WINDOWS_MAX; i++) {
		const struct dst_window *v = &windows[i];

		if (v->from == from && v->to == to && w->now_us >= v->begin_us &&
		    w->now_us < v->end_us) {
			*end_us = v->end_us;
			return true;
		}
	}
	return false;
}

static void damage(struct dst_world *w, struct dst_parcel *parcel)
{
	if (dst_chance(&w->net, w->plan.corrupt)) {
		parcel->bytes[dst_below(&w->net, parcel->len)] ^= 1 << dst_below(&w->net, 8);
		w->nr_faults++;
	}
	if (dst_chance(&w->net, w->plan.truncate)) {
		parcel->len = dst_below(&w->net, parcel->len);
		w->nr_faults++;
	}
}

static void launch(struct dst_world *w, uint32_t from, uint32_t to, struct dst_parcel *parcel)
{
	uint64_t at_us = w->now_us + LATENCY_US + dst_below(&w->net, w->plan.jitter_us);
	uint64_t end_us;

	if (inside(w, w->clogs, from, to, &end_us))
		at_us = end_us + dst_below(&w->net, w->plan.jitter_us);
	if (!dst_healed(w)) {
		if (dst_chance(&w->net, w->plan.reorder)) {
			at_us += dst_below(&w->net, REORDER_US);
			w->nr_faults++;
		}
		damage(w, parcel);
	}
	dst_at(w, at_us, DST_EVENT_FRAME, to, from, parcel);
}

static int port_emit(void *owner, const struct muster_frame *frame,
		     const struct muster_packet *packet, const void *payload)
{
	struct dst_port *port = owner;
	struct dst_world *w = port->node->world;
	uint32_t copies = 1;
	uint64_t end_us;

	if (!dst_healed(w)) {
		if (dst_chance(&w->net, w->plan.link_full))
			return -EAGAIN;
		copies += dst_chance(&w->net, w->plan.duplicate);
		if (inside(w, w->cuts, port->node->index, port->peer, &end_us))
			copies = 0;
		w->nr_faults += copies != 1;
	}
	if (dst_network_cut(w, port->node->index, port->peer))
		copies = 0;
	for (; copies; copies--) {
		struct dst_parcel *parcel;

		if (!dst_healed(w) && dst_chance(&w->net, w->plan.drop)) {
			w->nr_faults++;
			continue;
		}
		parcel = dst_parcel_new(w);
		parcel->len = 0;
		append(parcel, frame, sizeof(*frame));
		if (packet) {
			append(parcel, packet, sizeof(*packet));
			append(parcel, payload, packet->length);
		}
		launch(w, port->node->index, port->peer, parcel);
	}
	return 0;
}

/* To a new life of a node, others have only goodbyes to say. */
static bool suits_reborn(const struct muster_packet *packet)
{
	return packet->type == MUSTER_PACKET_ABORT ||
	       (packet->type == MUSTER_PACKET_CREDIT && packet->flags & MUSTER_PACKET_COLL_END);
}

static bool port_deliver(void *owner, const struct muster_packet *packet, const void *payload,
			 uint32_t len)
{
	struct dst_port *port = owner;
	struct dst_node *node = port->node;
	struct dst_world *w = node->world;

	if (node->sw && !dst_switch_take(node, port->peer, packet, payload))
		return false;
	if (packet->flags & MUSTER_PACKET_ONCE && packet->type == MUSTER_PACKET_TREE_DOWN)
		port->delivered--;	/* it was promised to nobody */
	if (!node->reborn && ++port->delivered > w->nodes[port->peer].ports[node->index].sent)
		dst_fail(w, "node %u: node %u has sent less than has come", node->index,
			 port->peer);
	if (node->sw || (w->trees && dst_network_heard(node, packet)))
		return true;
	if (node->reborn && !suits_reborn(packet))
		dst_fail(w, "node %u: a packet of type %u for its former life", node->index,
			 packet->type);
	dst_net_receive(node, packet, payload, len);
	return true;
}

void dst_net_check(struct dst_world *w)
{
	for (uint32_t i = 0; i < w->plan.nodes && !w->plan.rings; i++) {
		for (uint32_t j = 0; j < w->plan.nodes; j++) {
			struct dst_port *from = &w->nodes[i].ports[j], *to = &w->nodes[j].ports[i];

			if (i != j && !from->node->dead && !to->node->dead &&
			    from->link->oldest == from->link->next && from->sent != to->delivered &&
			    !dst_network_cut(w, i, j))
				dst_fail(w, "node %u: of %llu packets from node %u, %llu have come", j,
					 (unsigned long long)from->sent, i,
					 (unsigned long long)to->delivered);
		}
	}
}

static void port_met(void *owner, uint32_t peer, uint32_t present)
{
	struct dst_port *port = owner;
	struct dst_node *node = port->node;
	struct dst_world *w = node->world;

	if (node->dead)
		return;
	if (node->sw)
		dst_switch_met(node, peer, present);
	else
		muster_engine_peer_present(node->engine, dst_network_id(w, peer), present);
	dst_step_at(node, node->world->now_us + 1);
}

static void port_lost(void *owner, uint32_t peer, uint32_t present)
{
	struct dst_port *port = owner;
	struct dst_node *node = port->node;
	struct dst_world *w = node->world;

	if (node->dead)
		return;
	dst_say(w, "node %u: node %u is lost", node->index, peer);
	if (!w->nodes[peer].dead && !dst_network_cut(w, node->index, peer))
		dst_fail(w, "node %u has given up node %u, which lives", node->index, peer);
	if (node->sw)
		dst_switch_lost(node, peer, present);
	else if (w->trees)
		dst_network_lost(node);
	else
		port_met(owner, peer, present);
}

static struct muster_link_slot *port_take(void *owner)
{
	struct dst_port *port = owner;

	port->node->slots++;
	return malloc(sizeof(struct muster_link_slot));
}

static void port_give(void *owner, struct muster_link_slot *slot)
{
	struct dst_port *port = owner;

	port->node->slots--;
	free(slot);
}

static void link_begin(struct dst_port *port)
{
	static const struct muster_link_ops ops = { port_take, port_give, port_emit, port_deliver,
						    port_lost, port_met };
	struct dst_world *w = port->node->world;
	struct muster_link_config config = {
		.node = port->node->index,
		.peer = port->peer,
		.incarnation = port->node->incarnation,
		.deadline_us = DST_DEADLINE_US,
		.ops = &ops,
		.owner = port,
		.pool = &port->node->pool,
		.counters = &w->counters,
	};

	muster_link_drop(port->link);
	muster_link_init(port->link, &config);
}

void dst_net_arrive(struct dst_node *node, uint32_t from, struct dst_parcel *parcel)
{
	struct dst_world *w = node->world;
	struct muster_link *link = node->ports[from].link;
	struct muster_frame frame;

	if (node->dead && !node->reborn)
		return;
	if (muster_frame_check(parcel->bytes, parcel->len, &frame))
		return;
	muster_link_receive(link, w->now_us, &frame, parcel->bytes + sizeof(frame));
	if (node->sw)			/* what was refused may go now */
		dst_step_at(node, w->now_us + 1 + dst_below(&w->host, w->plan.engine_us));
	dst_step_at(node, link->next_us > w->now_us ? link->next_us : w->now_us + 1);
}

/* ---- both ------------------------------------------------------------------------------ */

void dst_net_end(struct dst_node *node, uint32_t peer, bool in_order)
{
	struct dst_port *port = &node->ports[peer];

	if (node->dead || node->left || port->gone)
		return;
	if (node->world->plan.rings)
		dst_ring_drain(node, peer);
	port->gone = true;
	if (in_order)
		muster_engine_peer_left(node->engine, peer);
	else
		muster_engine_peer_lost(node->engine, peer);
	dst_step_at(node, node->world->now_us + 1);
}

int dst_net_send_by(struct dst_node *node, uint32_t to, uint32_t incarnation,
		    const struct muster_packet *packet, const void *payload)
{
	struct dst_world *w = node->world;
	struct muster_link *link = node->ports[to].link;
	int err;

	node->ports[to].sent++;		/* what is sent may come before the call returns */
	err = muster_link_send(link, w->now_us, incarnation, packet, payload);
	node->ports[to].sent -= err != 0;
	dst_step_at(node, link->next_us > w->now_us ? link->next_us : w->now_us + 1);
	return err;
}

/* A host's packets go by its switch: who is meant their receivers see. */
static int send_uplink(struct dst_node *node, const struct muster_packet *packet, const void *payload)
{
	uint32_t to = packet->dst_node, uplink = dst_network_uplink(node->world, node->index);
	int err;

	if (to < node->world->plan.ranks && node->ports[to].gone)
		return 0;
	err = dst_net_send_by(node, uplink, node->world->nodes[uplink].incarnation, packet, payload);
	return err == -EHOSTUNREACH && to < node->world->plan.ranks ? 0 : err;
}

static int send(struct dst_node *node, uint32_t incarnation, const struct muster_packet *packet,
		const void *payload)
{
	struct dst_world *w = node->world;
	uint32_t to = packet->dst_node;

	if (w->trees && to != node->index)
		return send_uplink(node, packet, payload);
	if (to >= w->plan.nodes) {
		dst_fail(w, "node %u: a packet for node %u, which there is not", node->index, to);
		return -EHOSTUNREACH;
	}
	if (to == node->index) {
		packet_later(node, 0, packet, payload, 1 + dst_below(&w->net, w->plan.jitter_us));
		return 0;
	}
	if (w->plan.rings)
		return dst_ring_send(node, packet, payload);
	return dst_net_send_by(node, to, incarnation, packet, payload);
}

int dst_net_send(struct dst_node *node, uint32_t incarnation, const struct muster_packet *packet,
		 const void *payload)
{
	struct dst_world *w = node->world;
	int err = send(node, incarnation, packet, payload);

	if (!err && w->dump_fd >= 0)
		muster_pcapng_packet(w->dump_fd, 0, w->now_us * 1000, packet, sizeof(*packet), payload,
				     packet->length);
	return err;
}

void dst_net_watch(struct dst_node *node, uint32_t peer, uint32_t incarnation)
{
	if (!node->world->plan.rings && peer != node->index)
		muster_link_watch(node->ports[peer].link, node->world->now_us, incarnation);
}

/* In half of the worlds links are given back whenever that can be, and made again when needed. */
static void link_rest(struct dst_port *port)
{
	struct dst_world *w = port->node->world;
	struct muster_link_rest rest;

	if (w->plan.seed % 2 || !muster_link_quiet(port->link, w->now_us))
		return;
	muster_link_rest(port->link, &rest);
	link_begin(port);
	muster_link_resume(port->link, w->now_us, &rest);
}

void dst_net_run(struct dst_node *node)
{
	struct dst_world *w = node->world;

	if (w->plan.rings) {
		dst_rings_run(node);
		return;
	}
	for (uint32_t i = 0; i < w->plan.nodes; i++) {
		struct muster_link *link = node->ports[i].link;

		if (i == node->index || node->ports[i].away)
			continue;
		link_rest(&node->ports[i]);
		muster_link_run(link, w->now_us);
		dst_step_at(node, link->next_us > w->now_us ? link->next_us : w->now_us + 1);
	}
}

/* What links may keep beyond their floors: in some worlds nothing, in some more than they can. */
static uint32_t pool_size(uint64_t seed)
{
	static const uint32_t sizes[] = { 0, 2, 16, 1024 };

	return sizes[seed % 4];
}

static void draw_windows(struct dst_world *w, struct dst_window *windows, uint32_t nr)
{
	for (uint32_t i = 0; i < DST_WINDOWS_MAX; i++) {
		windows[i] = (struct dst_window){ 0 };
		if (i >= nr)
			continue;
		if (w->trees) {
			dst_network_link(w, (uint32_t)dst_draw(&w->net), &windows[i].from, &windows[i].to);
		} else {
			windows[i].from = dst_below(&w->net, w->plan.nodes);
			windows[i].to = dst_below(&w->net, w->plan.nodes);
		}
		windows[i].begin_us = dst_below(&w->net, w->plan.heal_us);
		windows[i].end_us = windows[i].begin_us +
				    dst_below(&w->net, w->plan.heal_us - windows[i].begin_us);
	}
}

void dst_net_begin(struct dst_world *w)
{
	if (!w->links)
		w->links = calloc(DST_NODES_MAX * DST_NODES_MAX, sizeof(*w->links));
	if (!w->regions)
		w->regions = aligned_alloc(4096, DST_NODES_MAX *
					   muster_ring_region_size(DST_NODES_MAX, DST_RING_BYTES));
	draw_windows(w, w->cuts, w->plan.cuts);
	draw_windows(w, w->clogs, w->plan.clogs);
	for (uint32_t i = 0; i < w->plan.nodes; i++) {
		struct dst_node *node = &w->nodes[i];

		node->pool.size = pool_size(w->plan.seed);
		for (uint32_t j = 0; j < w->plan.nodes; j++) {
			node->ports[j] = (struct dst_port){ .node = node, .peer = j };
			node->ports[j].link = &w->links[i * DST_NODES_MAX + j];
			node->ports[j].away = w->trees && !dst_network_joins(w, i, j);
			link_begin(&node->ports[j]);
		}
	}
	if (w->plan.rings)
		dst_rings_begin(w);
}

/* The dead node's address is taken by a new one, which knows nothing and says hello. */
void dst_net_rebirth(struct dst_node *node)
{
	node->reborn = true;
	node->incarnation += 1000;
	for (uint32_t j = 0; j < node->world->plan.nodes; j++) {
		link_begin(&node->ports[j]);
		dst_net_watch(node, j, node->world->nodes[j].incarnation);
	}
	dst_step_at(node, node->world->now_us + 1);
}

void dst_net_drop(struct dst_world *w)
{
	for (uint32_t i = 0; i < w->plan.nodes; i++) {
		struct dst_node *node = &w->nodes[i];

		for (uint32_t j = 0; j < w->plan.nodes; j++) {
			struct muster_link *link = node->ports[j].link;

			if (link->oldest == link->next && link->kept)
				dst_fail(w, "node %u: a link to node %u keeps %u slots for nothing", i,
					 j, link->kept);
			muster_link_drop(link);
		}
		if (node->pool.used || node->slots)
			dst_fail(w, "node %u: links without slots have %u, %u of the pool", i,
				 node->slots, node->pool.used);
	}
}

void dst_net_free(struct dst_world *w)
{
	free(w->links);
	free(w->regions);
	while (w->parcels) {
		struct dst_parcel *parcel = w->parcels;

		w->parcels = parcel->next;
		free(parcel);
	}
}
