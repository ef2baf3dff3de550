/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A network of bumps in one process, for tests: simulated time, links that lose,
 * repeat and delay from one seed, hosts as their tests make them. Everything a
 * host knows of the protocol is here once more, written from Documentation/bump.md.
 */
#ifndef MUSTER_BUMP_TEST_NET_H
#define MUSTER_BUMP_TEST_NET_H

#include <arpa/inet.h>
#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "bump.h"
#include "topology.h"

#define NET_KEY 0x1122334455667788u

enum { NET_FRAME_MAX = 2048, NET_DATA_AT = 14 + 20 + 8 + 64 };

/* What happens: a frame comes to a port, or a bump or a host wakes up. */
struct net_event {
	uint64_t time;
	uint64_t order;
	uint32_t node;
	uint32_t port;		/* NET_WAKE, NET_TIMER, or where the frame comes in */
	uint32_t value;		/* NET_TIMER: the host's own */
	uint32_t len;
	uint8_t *data;
};

enum { NET_WAKE = 100, NET_TIMER = 101, NET_TO_HOST = 102 };

struct net_node {
	struct net *net;
	struct muster_bump *bump;
	uint32_t index;
	struct net_event *inbox[64];	/* what has come and is not yet read */
	uint32_t nr_inbox;
	struct net_event reading;
	uint64_t wake;
};

struct net {
	struct muster_bump_topology topology;
	struct net_node *nodes;
	struct net_event *heap;
	size_t nr_heap, size_heap;
	uint64_t now, order, rng;
	uint32_t loss, repeat;		/* of 1,000 frames, on every link */
	uint32_t delay_us, jitter_us;
	uint32_t (*delay)(struct net *net, uint32_t port, uint32_t len);	/* instead, if set */
	uint64_t frames;
	uint32_t refuse_alloc;		/* of 1,000 */
	void (*to_host)(struct net *net, uint32_t host, const uint8_t *data, uint32_t len);
	void (*timer)(struct net *net, uint32_t host, uint32_t value);
	void *opaque;
};

static inline uint64_t net_random(struct net *net)
{
	net->rng = net->rng * 6364136223846793005u + 1442695040888963407u;
	return (net->rng >> 33) ^ (net->rng >> 50);
}

static inline bool net_chance(struct net *net, uint32_t of_1000)
{
	return of_1000 && net_random(net) % 1000 < of_1000;
}

/* ---- events: a binary heap by time, then by order ---- */

static inline bool net_earlier(const struct net_event *a, const struct net_event *b)
{
	return a->time != b->time ? a->time < b->time : a->order < b->order;
}

static inline void net_push(struct net *net, struct net_event event)
{
	size_t at = net->nr_heap++;

	if (net->nr_heap > net->size_heap) {
		net->size_heap = net->size_heap * 2 + 64;
		net->heap = realloc(net->heap, net->size_heap * sizeof(*net->heap));
		assert(net->heap);
	}
	event.order = net->order++;
	for (; at && net_earlier(&event, &net->heap[(at - 1) / 2]); at = (at - 1) / 2)
		net->heap[at] = net->heap[(at - 1) / 2];
	net->heap[at] = event;
}

static inline struct net_event net_pop(struct net *net)
{
	struct net_event first = net->heap[0], last = net->heap[--net->nr_heap];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < net->nr_heap) {
		if (child + 1 < net->nr_heap &&
		    net_earlier(&net->heap[child + 1], &net->heap[child]))
			child++;
		if (!net_earlier(&net->heap[child], &last))
			break;
		net->heap[at] = net->heap[child];
		at = child;
	}
	net->heap[at] = last;
	return first;
}

static inline void net_deliver(struct net *net, uint64_t time, uint32_t node, uint32_t port,
			       const void *data, uint32_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	assert(copy);
	memcpy(copy, data, len);
	net_push(net, (struct net_event){ .time = time, .node = node, .port = port, .len = len,
					  .data = copy });
}

/* A link, faults and all. */
static inline void net_link(struct net *net, uint32_t node, uint32_t port, const void *data,
			    uint32_t len)
{
	uint32_t copies = net_chance(net, net->loss) ? 0 : 1 + net_chance(net, net->repeat);

	net->frames++;
	while (copies--)
		net_deliver(net, net->now + (net->delay ? net->delay(net, port, len) : net->delay_us) +
			    (net->jitter_us ? net_random(net) % net->jitter_us : 0), node, port,
			    data, len);
}

static inline void net_timer(struct net *net, uint32_t host, uint64_t in_us, uint32_t value)
{
	net_push(net, (struct net_event){ .time = net->now + in_us, .node = host,
					  .port = NET_TIMER, .value = value });
}

/* ---- the bump's world ---- */

static inline uint64_t net_now(void *world)
{
	return ((struct net_node *)world)->net->now;
}

static inline bool net_receive(void *world, uint32_t port, struct muster_bump_frame *frame)
{
	struct net_node *node = world;

	if (!node->reading.len || node->reading.port != port)
		return false;
	*frame = (struct muster_bump_frame){ .data = node->reading.data,
					     .len = node->reading.len };
	node->reading.len = 0;
	return true;
}

static inline bool net_send(void *world, uint32_t port, const struct muster_bump_frame *frame)
{
	struct net_node *node = world;
	struct net *net = node->net;
	uint32_t peer;

	if (port == MUSTER_BUMP_HOST_PORT) {
		net_link(net, node->index, NET_TO_HOST, frame->data, frame->len);
		return true;
	}
	peer = net->topology.neighbours[node->index][port];
	net_link(net, peer, muster_bump_topology_port(&net->topology, peer, node->index),
		 frame->data, frame->len);
	return true;
}

static inline void *net_alloc(void *world, size_t bytes)
{
	struct net_node *node = world;

	return net_chance(node->net, node->net->refuse_alloc) ? NULL : calloc(1, bytes);
}

static inline void net_release(void *world, void *p)
{
	(void)world;
	free(p);
}

static inline void net_bump_start(struct net *net, uint32_t i)
{
	static const struct muster_bump_world world = {
		.now_us = net_now, .receive = net_receive, .send = net_send, .alloc = net_alloc,
		.free = net_release,
	};
	static const uint64_t key = NET_KEY;
	uint8_t routes[MUSTER_BUMP_HOSTS_MAX];
	struct muster_bump_config config = {
		.element = (uint16_t)i, .nr_elements = net->topology.nr,
		.nr_ports = net->topology.nr_ports[i],
		.open_ports = muster_bump_topology_open(&net->topology, i),
		.routes = routes, .neighbours = net->topology.neighbours[i],
		.address = 0x0a4dfffe, .nr_keys = 1, .keys = &key,
	};
	uint32_t refuse = net->refuse_alloc;

	net->refuse_alloc = 0;
	muster_bump_topology_routes(&net->topology, i, routes);
	if (muster_bump_create(&config, &world, &net->nodes[i], &net->nodes[i].bump))
		abort();
	net->refuse_alloc = refuse;
}

/* ---- the network ---- */

static inline struct net *net_new(const char *topology, uint32_t nr, uint64_t seed)
{
	struct net *net = calloc(1, sizeof(*net));

	assert(net);
	if (muster_bump_topology_make(&net->topology, topology, nr))
		abort();
	net->rng = seed;
	net->delay_us = 5;
	net->nodes = calloc(nr, sizeof(*net->nodes));
	for (uint32_t i = 0; i < nr; i++) {
		net->nodes[i] = (struct net_node){ .net = net, .index = i, .wake = UINT64_MAX };
		net_bump_start(net, i);
	}
	return net;
}

static inline void net_free(struct net *net)
{
	for (uint32_t i = 0; i < net->topology.nr; i++)
		muster_bump_free(net->nodes[i].bump);
	for (size_t i = 0; i < net->nr_heap; i++)
		free(net->heap[i].data);
	free(net->heap);
	free(net->nodes);
	free(net);
}

static inline void net_wake(struct net *net, struct net_node *node)
{
	uint64_t deadline = muster_bump_deadline_us(node->bump);

	if (deadline >= node->wake)
		return;
	node->wake = deadline;
	net_push(net, (struct net_event){ .time = deadline, .node = node->index,
					  .port = NET_WAKE });
}

/* Return: false when nothing is left to happen. */
static inline bool net_step(struct net *net)
{
	struct net_event event;
	struct net_node *node;

	if (!net->nr_heap)
		return false;
	event = net_pop(net);
	node = &net->nodes[event.node];
	net->now = event.time;
	if (event.port == NET_TIMER) {
		net->timer(net, event.node, event.value);
	} else if (event.port == NET_TO_HOST) {
		net->to_host(net, event.node, event.data, event.len);
	} else {
		if (event.port == NET_WAKE)
			node->wake = UINT64_MAX;
		else
			node->reading = event;
		while (muster_bump_step(node->bump))
			;
		net_wake(net, node);
	}
	free(event.data);
	return true;
}

/* ---- what hosts say ---- */

static inline struct muster_bump_header net_header(void)
{
	return (struct muster_bump_header){
		.magic = htole32(MUSTER_BUMP_MAGIC), .version = MUSTER_BUMP_VERSION,
		.message = MUSTER_BUMP_REQUEST, .stride = htole16(1), .local_ranks = 1,
		.key = htole64(NET_KEY),
	};
}

static inline uint16_t net_sum(const uint8_t *p, uint32_t len)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* A datagram from a host's rank, without UDP checksum. Return: its length. */
static inline uint32_t net_frame(uint8_t *frame, uint32_t host,
				 const struct muster_bump_header *header, const void *data,
				 uint32_t bytes)
{
	uint32_t ip_len = 20 + 8 + sizeof(*header) + bytes;
	uint16_t words[10] = { htons(0x4500), htons((uint16_t)ip_len), 0, 0, htons(0x4011), 0,
			       htons(0x0a4d), htons((uint16_t)host), htons(0x0a4d), htons(0xfffe) };
	uint16_t udp[4] = { htons((uint16_t)(20000 + header->local_rank)), htons(MUSTER_BUMP_PORT),
			    htons((uint16_t)(ip_len - 20)), 0 };

	memset(frame, 0, 14);
	frame[0] = 2;
	frame[6] = 2;
	frame[11] = (uint8_t)host;
	frame[12] = 8;
	words[5] = htons(net_sum((uint8_t *)words, 20));
	memcpy(frame + 14, words, 20);
	memcpy(frame + 34, udp, 8);
	memcpy(frame + 42, header, sizeof(*header));
	memcpy(frame + NET_DATA_AT, data, bytes);
	return 14 + ip_len;
}

static inline void net_ask(struct net *net, uint32_t host, const struct muster_bump_header *header,
			   const void *data, uint32_t bytes)
{
	uint8_t frame[NET_FRAME_MAX];
	uint32_t len = net_frame(frame, host, header, data, bytes);

	net_link(net, host, MUSTER_BUMP_HOST_PORT, frame, len);
}

#endif /* MUSTER_BUMP_TEST_NET_H */
