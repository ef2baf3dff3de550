/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For tests of links: two ends over a simulated network, virtual time, and faults
 * drawn from a seed. What is checked everywhere: each packet comes exactly once and
 * unchanged, and nobody is lost without a reason.
 */
#ifndef MUSTER_WIRE_TEST_LINK_H
#define MUSTER_WIRE_TEST_LINK_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "reliable.h"

enum { PACKETS = 300, FLYING_MAX = 4096, DEADLINE_US = 2000000, ENDS = 2, POOL = 256 };

struct flying {
	uint64_t at_us;
	uint32_t to;
	size_t len;
	uint64_t bytes[(MUSTER_FRAME_MAX + 7) / 8];
};

struct faults {		/* per thousand */
	uint32_t drop, duplicate, reorder, corrupt, full, refuse;
	bool cut[ENDS];	/* nothing arrives at this end */
};

struct end {
	struct muster_link link;
	struct muster_link_pool pool;
	uint32_t node;
	uint32_t means;			/* the other's life */
	uint32_t came[PACKETS];
	uint32_t lost;
	uint32_t present;		/* what lost() or met() said last */
};

static struct world {
	uint64_t now_us, seed;
	struct faults faults;
	struct end ends[ENDS];
	uint32_t nr_slots;		/* that links have now */
	struct muster_wire_counters counters;
	struct flying *flying[FLYING_MAX];
	uint32_t nr_flying;
} w;

static inline uint64_t draw(void)
{
	uint64_t z = (w.seed += 0x9e3779b97f4a7c15ull);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static inline bool chance(uint32_t permille)
{
	return draw() % 1000 < permille;
}

static inline uint32_t length_of(uint32_t n)
{
	return n % 7 == 0 ? MUSTER_MTU - n % 9 : n % 70;
}

static inline void payload_of(uint32_t from, uint32_t n, uint8_t *payload)
{
	for (uint32_t i = 0; i < length_of(n); i++)
		payload[i] = from * 101 + n + i * 7;
}

/* ---- the network --------------------------------------------------------- */

static inline void launch(uint32_t to, const void *bytes, size_t len)
{
	struct flying *f = malloc(sizeof(*f));

	assert_true(w.nr_flying < FLYING_MAX);
	memcpy(f->bytes, bytes, len);
	f->len = len;
	f->to = to;
	f->at_us = w.now_us + 30;
	if (chance(w.faults.reorder))
		f->at_us += draw() % 20000;
	if (chance(w.faults.corrupt))
		((uint8_t *)f->bytes)[draw() % len] ^= 1 << draw() % 8;
	w.flying[w.nr_flying++] = f;
}

static inline struct muster_link_slot *take(void *owner)
{
	(void)owner;
	w.nr_slots++;
	return malloc(sizeof(struct muster_link_slot));
}

static inline void give(void *owner, struct muster_link_slot *slot)
{
	(void)owner;
	w.nr_slots--;
	free(slot);
}

static inline int emit(void *owner, const struct muster_frame *frame,
		       const struct muster_packet *packet, const void *payload)
{
	struct end *end = owner;
	uint8_t bytes[MUSTER_FRAME_MAX];
	size_t len = sizeof(*frame);

	if (chance(w.faults.full))
		return -EAGAIN;
	memcpy(bytes, frame, len);
	if (packet) {
		memcpy(bytes + len, packet, sizeof(*packet));
		len += sizeof(*packet);
		memcpy(bytes + len, payload, packet->length);
		len += packet->length;
	}
	for (int copies = 1 + chance(w.faults.duplicate); copies; copies--)
		if (!chance(w.faults.drop))
			launch(!(end - w.ends), bytes, len);
	return 0;
}

static inline bool deliver(void *owner, const struct muster_packet *packet, const void *payload,
			   uint32_t len)
{
	struct end *end = owner;
	uint8_t want[MUSTER_MTU];

	if (chance(w.faults.refuse))
		return false;

	assert_true(packet->number < PACKETS);
	assert_int_equal(len, length_of(packet->number));
	payload_of(packet->src_node, packet->number, want);
	assert_memory_equal(payload, want, len);
	end->came[packet->number]++;
	return true;
}

static inline void met(void *owner, uint32_t peer, uint32_t present)
{
	struct end *end = owner;

	assert_int_equal(peer, 1 - end->node);
	end->present = present;
}

static inline void lost(void *owner, uint32_t peer, uint32_t present)
{
	struct end *end = owner;

	met(owner, peer, present);
	end->lost++;
}

static inline void begin_life(uint32_t node, uint32_t incarnation)
{
	static const struct muster_link_ops ops = { take, give, emit, deliver, lost, met };
	struct end *end = &w.ends[node];
	struct muster_link_config config = {
		.node = node,
		.peer = 1 - node,
		.incarnation = incarnation,
		.deadline_us = DEADLINE_US,
		.ops = &ops,
		.owner = end,
		.pool = &end->pool,
		.counters = &w.counters,
	};

	memset(end->came, 0, sizeof(end->came));
	end->lost = end->present = 0;
	end->node = node;
	muster_link_drop(&end->link);
	end->pool.size = POOL;
	assert_int_equal(end->pool.used, 0);
	muster_link_init(&end->link, &config);
}

static inline void land(struct flying *f)
{
	struct muster_frame frame;

	if (!w.faults.cut[f->to]) {
		if (muster_frame_check(f->bytes, f->len, &frame))
			w.counters.corrupt++;
		else
			muster_link_receive(&w.ends[f->to].link, w.now_us, &frame,
					    (uint8_t *)f->bytes + sizeof(frame));
	}
	free(f);
}

/* One event: the next datagram or timer, unless `limit_us` is sooner. */
static inline void advance(uint64_t limit_us)
{
	uint64_t next = limit_us;
	uint32_t first = UINT32_MAX;

	for (uint32_t i = 0; i < w.nr_flying; i++) {
		if (w.flying[i]->at_us < next) {
			next = w.flying[i]->at_us;
			first = i;
		}
	}
	for (int e = 0; e < ENDS; e++) {
		if (w.ends[e].link.next_us < next) {
			next = w.ends[e].link.next_us;
			first = UINT32_MAX;
		}
	}
	assert_true(next != UINT64_MAX);
	if (next > w.now_us)
		w.now_us = next;
	if (first != UINT32_MAX) {
		struct flying *f = w.flying[first];

		w.nr_flying--;
		memmove(&w.flying[first], &w.flying[first + 1],
			(w.nr_flying - first) * sizeof(w.flying[0]));
		land(f);
	}
	for (int e = 0; e < ENDS; e++)
		muster_link_run(&w.ends[e].link, w.now_us);
}

static inline void advance_until(uint64_t when_us)
{
	while (w.now_us < when_us)
		advance(when_us);
}

static inline void begin(uint64_t seed)
{
	while (w.nr_flying)
		free(w.flying[--w.nr_flying]);
	memset(&w.counters, 0, sizeof(w.counters));
	memset(&w.faults, 0, sizeof(w.faults));
	w.seed = seed;
	w.now_us = 1000;
	begin_life(0, 11);
	begin_life(1, 22);
	w.ends[0].means = 22;
	w.ends[1].means = 11;
}

static inline int try_send(uint32_t from, uint32_t n)
{
	struct muster_packet packet = {
		.number = n, .src_node = from, .dst_node = 1 - from, .length = length_of(n),
	};
	uint8_t payload[MUSTER_MTU];

	payload_of(from, n, payload);
	return muster_link_send(&w.ends[from].link, w.now_us, w.ends[from].means, &packet,
				payload);
}

static inline void exchange(uint32_t count0, uint32_t count1)
{
	uint32_t sent[ENDS] = { 0 }, count[ENDS] = { count0, count1 };
	uint32_t events = 0;

	while (sent[0] < count0 || sent[1] < count1 ||
	       w.ends[0].link.oldest != w.ends[0].link.next ||
	       w.ends[1].link.oldest != w.ends[1].link.next) {
		for (uint32_t e = 0; e < ENDS; e++)
			while (sent[e] < count[e] && !try_send(e, sent[e]))
				sent[e]++;
		advance(UINT64_MAX);
		assert_true(++events < 200000);
	}
}

static inline void assert_exactly_once(uint32_t at, uint32_t count)
{
	for (uint32_t n = 0; n < PACKETS; n++)
		assert_int_equal(w.ends[at].came[n], n < count);
	assert_int_equal(w.ends[at].lost, 0);
}

static inline int clear(void **state)
{
	(void)state;
	begin(0);
	return w.nr_slots ? -1 : 0;
}

#endif /* MUSTER_WIRE_TEST_LINK_H */
