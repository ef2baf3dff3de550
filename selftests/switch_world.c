// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Engines and switches as they are in modelled time (switch_world.h). An event is a packet that
 * is at the end of a link, or a host that begins. Links take what they are given, in that order,
 * and packets stream through switches. Input is made up where it is read, and what comes of a
 * tree is compared where it is written: sums of whole numbers, which no order changes.
 */
#include "switch_net.h"

#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine_world.h"
#include "zeroed.h"

const struct net_costs net_costs = { .hop_ns = 250, .llt_ns = 5, .sat_ns = 400 };

enum {
	HEADER_BYTES = sizeof(struct muster_packet),
	BUDGET = 1 << 20,
	PERIOD = 1024,		/* of the input's numbers */
};

/* ---- links ------------------------------------------------------------------------------ */

static double busy_ns(const struct muster_packet *packet)
{
	return (HEADER_BYTES + packet->length) / world_costs.link_bytes_ns;
}

static void travel(struct net *net, double *link_ns, double ready_ns, const struct muster_fabric_end *to,
		   const struct muster_packet *packet, const void *payload)
{
	struct event *event = malloc(sizeof(*event) + packet->length);

	if (!event)
		err(1, NULL);
	*link_ns = later(*link_ns, ready_ns) + busy_ns(packet);
	*event = (struct event){
		.time.at_ns = *link_ns + net_costs.hop_ns, .to = *to, .packet = *packet,
	};
	if (packet->length)
		memcpy(event->payload, payload, packet->length);
	timeline_push(&net->line, &event->time);
}

/* ---- what an engine may do to the world -------------------------------------------------- */

static double number(uint32_t member, uint64_t index)
{
	return (double)(member + 1) * (double)(index % PERIOD + 1);
}

void net_numbers(void *to, uint32_t member, uint64_t first, uint64_t nr)
{
	double *numbers = to;

	for (uint64_t i = 0; i < nr; i++)
		numbers[i] = number(member, first + i);
}

static int host_read(void *opaque, uint16_t vp, uint32_t key, uint64_t addr, void *to, uint32_t len)
{
	struct host *host = opaque;

	(void)vp;
	if (host->space[key - 1])
		memcpy(to, host->space[key - 1] + addr, len);
	else
		net_numbers(to, host->member, addr / 8, len / 8);
	if (key != KEY_IN && !(key == KEY_OUT && host->brings_out))
		return 0;
	host->bus_ns = later(host->bus_ns, host->now_ns) + len / world_costs.bus_bytes_ns;
	host->data_ns = later(host->data_ns, host->bus_ns + 2 * world_costs.bus_ns);
	return 0;
}

/* The sum over all members, or of a broadcast what the first one has. */
static bool is_result(const struct net *net, uint64_t at, const double *numbers, uint32_t len)
{
	uint32_t n = net->nr_members;
	double factor = net->what->coll == MUSTER_COLL_BROADCAST ? 1 : n * (n + 1) / 2;

	for (uint32_t i = 0; i < len / 8; i++)
		if (numbers[i] != factor * number(0, at / 8 + i))
			return false;
	return true;
}

static int host_write(void *opaque, uint16_t vp, uint32_t key, uint64_t addr, const void *from,
		      uint32_t len)
{
	struct host *host = opaque;

	(void)vp;
	if (host->space[key - 1])
		memcpy(host->space[key - 1] + addr, from, len);
	else if (host->net->what->how != NET_LOCK && !is_result(host->net, addr, from, len))
		host->net->failed = true;
	host->stored += len;
	return 0;
}

static uint64_t key_life(void *opaque, uint16_t vp, uint32_t key)
{
	(void)opaque;
	(void)vp;
	return key;
}

static int host_send(void *opaque, uint32_t incarnation, const struct muster_packet *packet,
		     const void *payload)
{
	struct host *host = opaque;
	struct muster_fabric_end to;

	(void)incarnation;
	host->now_ns += world_costs.packet_ns;
	host->out += packet->length;
	muster_fabric_uplink(host->net->fabric, host->number, &to);
	travel(host->net, &host->up_ns,
	       packet->length ? later(host->now_ns, host->data_ns) : host->now_ns, &to, packet, payload);
	return 0;
}

static int host_complete(void *opaque, uint16_t vp, const struct muster_cqe *cqe)
{
	struct host *host = opaque;
	struct net *net = host->net;

	(void)vp;
	if (cqe->status || cqe->kind != MUSTER_CQE_SEQUENCE)
		net->failed = true;
	net->done++;
	net->ended_ns = later(net->ended_ns, later(host->now_ns, host->data_ns) + world_costs.bus_ns);
	return 0;
}

static int host_deliver(void *opaque, uint16_t vp, const struct muster_packet *packet,
			const void *payload)
{
	(void)opaque;
	(void)vp;
	(void)packet;
	(void)payload;
	return -ENOSPC;
}

const struct muster_engine_world net_host_table = {
	.dma_read = host_read, .dma_write = host_write, .key_life = key_life,
	.send = host_send, .complete = host_complete, .deliver = host_deliver,
	.alloc = muster_zeroed, .free = muster_zeroed_free,
};

/* ---- and a switch ------------------------------------------------------------------------- */

static int box_send(void *opaque, uint32_t port, const struct muster_packet *packet, const void *payload)
{
	struct box *box = opaque;
	struct muster_fabric_end to;

	if (!muster_fabric_end(box->net->fabric, box->number, port, &to))
		return -EHOSTUNREACH;
	travel(box->net, &box->port_ns[port], box->now_ns, &to, packet, payload);
	return 0;
}

static void box_send_once(void *opaque, uint32_t port, const struct muster_packet *packet,
			  const void *payload)
{
	box_send(opaque, port, packet, payload);
}

static void *box_alloc(void *opaque, size_t bytes)
{
	struct box *box = opaque;

	box->held += bytes;
	box->most = box->held > box->most ? box->held : box->most;
	return muster_zeroed(opaque, bytes);
}

static void box_free(void *opaque, void *p, size_t bytes)
{
	struct box *box = opaque;

	box->held -= p ? bytes : 0;
	muster_zeroed_free(opaque, p, bytes);
}

const struct muster_switch_world net_box_table = {
	.send = box_send, .send_once = box_send_once, .alloc = box_alloc, .free = box_free,
};

/*
 * When what comes of a packet can leave: at an aggregation node when it has been combined, by the
 * one unit of low-latency trees, or by its port's of a streaming one; else its head has been here
 * since its tail left.
 */
static double ready_ns(struct box *box, const struct event *event)
{
	const struct muster_packet *packet = &event->packet;

	if (packet->dst_node != muster_fabric_node(box->net->fabric, box->number))
		return event->time.at_ns - busy_ns(packet);
	if (packet->tree % 2)
		return event->time.at_ns + (packet->type == MUSTER_PACKET_TREE_UP ? net_costs.sat_ns : 0);
	box->llt_ns = later(box->llt_ns, event->time.at_ns) + net_costs.llt_ns;
	return box->llt_ns;
}

static void look_again(struct box *box)
{
	struct event *event;

	if (box->looks)
		return;
	event = calloc(1, sizeof(*event));
	if (!event)
		err(1, NULL);
	event->wakes = box->looks = true;
	event->to.number = box->number;
	event->time.at_ns = box->now_ns + net_costs.hop_ns;
	timeline_push(&box->net->line, &event->time);
}

static bool hand(struct box *box, const struct event *event)
{
	return !muster_switch_receive(box->sw, event->to.port, &event->packet, event->payload,
				      event->packet.length);
}

static void keep(struct box *box, struct event *event)
{
	uint32_t port = event->to.port;

	event->next = NULL;
	if (box->kept[port])
		box->kept_last[port]->next = event;
	else
		box->kept[port] = event;
	box->kept_last[port] = event;
}

/* What it owes waits for a neighbour's word, or for a while in which nothing moves. */
static void box_look(struct box *box, double at_ns)
{
	bool owes;

	box->looks = false;
	box->now_ns = at_ns;
	owes = muster_switch_step(box->sw);
	for (uint32_t port = 0; port < MUSTER_SWITCH_RADIX_MAX; port++) {
		struct event *event;

		while ((event = box->kept[port]) && hand(box, event)) {
			box->kept[port] = event->next;
			free(event);
		}
		owes |= !!event;
	}
	if (owes)
		look_again(box);
}

/* False: its flow has all its credits here, and its link keeps it. */
static bool box_take(struct box *box, struct event *event)
{
	const struct muster_packet *packet = &event->packet;

	if (event->wakes) {
		box_look(box, event->time.at_ns);
		return true;
	}
	box->now_ns = ready_ns(box, event);
	if (box->kept[event->to.port] || !hand(box, event)) {
		keep(box, event);
		look_again(box);
		return false;
	}
	if (packet->type == MUSTER_PACKET_ROOM ||
	    packet->dst_node == muster_fabric_node(box->net->fabric, box->number))
		muster_switch_step(box->sw);	/* what is only forwarded frees nobody */
	look_again(box);
	return true;
}

/* ---- a host's operation --------------------------------------------------------------------- */

static uint64_t bytes_of(const struct net *net)
{
	return net->warms ? 0 : net->what->bytes;
}

static struct muster_desc desc_of(const struct net *net, uint32_t flags)
{
	uint32_t segment = net->what->how == NET_SAT ? MUSTER_MTU : MUSTER_SWITCH_LLT_BYTES;
	uint64_t bytes = bytes_of(net);

	return (struct muster_desc){
		.kind = bytes ? MUSTER_DESC_RDMA : MUSTER_DESC_MP, .flags = MUSTER_DESC_C | flags,
		.src_vp = VP, .job = JOB, .context = CONTEXT, .length = bytes,
		.signature = {
			.coll = MUSTER_COLL_ALLREDUCE, .type = MUSTER_DTYPE_F64, .op = MUSTER_REDOP_SUM,
		},
		.range = {
			.pulse_len = bytes ? segment : 0,
			.pulse_count = bytes ? (uint32_t)((bytes + segment - 1) / segment) : 0,
		},
	};
}

/* Of what the request says only the first member's counts are looked at: all say the same. */
static void lock_put(struct muster_desc descs[2])
{
	const struct muster_lock lock = { 1, 1, MUSTER_LOCK_TRY, UINT64_MAX, UINT64_MAX, UINT64_MAX };

	for (int i = 0; i < 2; i++) {
		descs[i].kind = MUSTER_DESC_MP;
		descs[i].length = sizeof(lock);
		descs[i].signature = (struct muster_signature){
			.coll = MUSTER_COLL_LOCK, .type = MUSTER_DTYPE_U64, .op = MUSTER_REDOP_MIN,
		};
		memset(&descs[i].range, 0, sizeof(descs[i].range));
	}
	descs[0].inline_len = sizeof(lock);
	memcpy(descs[0].data, &lock, sizeof(lock));
}

static void tree_post(struct host *host)
{
	const struct net *net = host->net;
	struct muster_desc descs[2] = {
		desc_of(net, MUSTER_DESC_CH | MUSTER_DESC_CP),
		desc_of(net, MUSTER_DESC_CT | MUSTER_DESC_COLL_END),
	};
	uint32_t bad;

	descs[0].dest = MUSTER_FIELD_PREP(MUSTER_DEST_NODE, net->group.nodes[host->member]);
	descs[0].dst_vp = net->what->how == NET_SAT ? TREE + 1 : TREE;
	descs[1].cp_count = 1;
	if (bytes_of(net)) {
		descs[0].range.load_key = KEY_IN;
		descs[0].range.pulses_live = MUSTER_TREE_PULSES_LIVE;
	}
	if (net->what->how == NET_LOCK)
		lock_put(descs);
	if (descs[1].length)
		descs[1].store_key = KEY_OUT;
	if (muster_engine_post(host->engine, VP, descs, 2, &bad))
		host->net->failed = true;
}

/* As many stages as the engine takes: the CPU is ahead of it. */
static void schedule_post(struct host *host)
{
	const struct muster_program *program = host->program;
	uint32_t bad;
	int err = 0;

	for (; host->stage < program->nr_stages && !err; host->stage += !err) {
		uint32_t first = program->stage_first[host->stage];

		err = muster_engine_post(host->engine, VP, &program->descs[first],
					 program->stage_first[host->stage + 1] - first, &bad);
	}
	if (err && err != -EAGAIN)
		host->net->failed = true;
}

/* The engine does what it can, from now on. */
static void act(struct host *host)
{
	bool goes;

	do {
		goes = muster_engine_step(host->engine, BUDGET);
		if (!goes && host->program && host->stage < host->program->nr_stages) {
			uint32_t before = host->stage;

			schedule_post(host);
			goes = host->stage > before;
		}
	} while (goes && !host->net->failed);
	host->unit_ns = host->now_ns;
}

static void host_begin(struct host *host, double at_ns)
{
	host->now_ns = at_ns + world_costs.cpu_ns + 2 * world_costs.bus_ns;
	if (!host->program)
		tree_post(host);
	act(host);
}

static void host_take(struct host *host, const struct event *event)
{
	if (event->wakes) {
		host_begin(host, event->time.at_ns);
		return;
	}
	host->now_ns = later(event->time.at_ns, host->unit_ns) + world_costs.packet_ns +
		       event->packet.length / world_costs.sum_bytes_ns;
	host->data_ns = 0;
	host->in += event->packet.length;
	muster_engine_receive(host->engine, &event->packet, event->payload, event->packet.length);
	act(host);
}

/* ---- running it --------------------------------------------------------------------------------- */

static void hosts_begin(struct net *net, double at_ns)
{
	for (uint32_t i = 0; i < net->nr_members; i++) {
		struct event *event = calloc(1, sizeof(*event));

		event->wakes = event->to.is_host = true;
		event->to.number = net->members[i];
		event->time.at_ns = at_ns;
		if (i)
			event->time.at_ns += net->what->skew_ns * i / (net->nr_members - 1);
		net->begun_ns = event->time.at_ns;
		timeline_push(&net->line, &event->time);
	}
}

/* Until nothing is on its way. Return: when that was. */
static double operate(struct net *net, double at_ns)
{
	struct event *event;

	net->done = 0;
	hosts_begin(net, at_ns);
	while (!net->failed && (event = (struct event *)timeline_pop(&net->line))) {
		at_ns = event->time.at_ns;
		if (event->to.is_host)
			host_take(&net->hosts[event->to.number], event);
		else if (!box_take(&net->boxes[event->to.number], event))
			continue;
		free(event);
	}
	return at_ns;
}

static void go(struct net *net)
{
	double at_ns = 0;

	if (net->what->how == NET_LLT || net->what->how == NET_SAT) {
		net->warms = true;
		at_ns = operate(net, 0);
		net->warms = false;
	}
	operate(net, at_ns);
}

static void judge(const struct net *net, struct net_result *result)
{
	*result = (struct net_result){
		.us = (net->ended_ns - net->begun_ns) / 1000,
		.right = !net->failed && net->done == net->nr_members,
	};
	for (uint32_t i = 0; i < net->nr_boxes; i++)
		result->held = net->boxes[i].most > result->held ? net->boxes[i].most : result->held;
	for (uint32_t i = 0; i < net->nr_members; i++) {
		const struct host *host = &net->hosts[net->members[i]];
		const void *out = host->space[KEY_OUT - 1];

		result->out = host->out > result->out ? host->out : result->out;
		result->in = host->in > result->in ? host->in : result->in;
		if (out && (i || net->what->coll != MUSTER_COLL_BROADCAST))
			for (uint64_t at = 0; at < net->what->bytes; at += 8)
				result->right &= is_result(net, at, out + at, 8);
		else if (!out && net->what->how != NET_LOCK)
			result->right &= host->stored == net->what->bytes;
	}
}

int net_run(const struct net_case *what, struct net_result *result)
{
	struct net net = { .what = what };
	int err = net_make(&net);

	if (!err) {
		go(&net);
		judge(&net, result);
	}
	net_free(&net);
	return err;
}
