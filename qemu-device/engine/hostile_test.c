// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Packets and descriptors that lie. Each single lie is counted under its own
 * name and changes nothing; a flood of random ones, from strangers and from a
 * member that has gone mad, may end the context but nothing else.
 */
#include "test_world.h"

enum { RESULT = 4096 };

/* What member 1 would send to member 0 for number 0, slot 0: 8 bytes inline. */
static struct muster_packet honest(uint8_t type)
{
	return (struct muster_packet){
		.version = MUSTER_PACKET_VERSION, .type = type, .job = WORLD_JOB, .src_node = 1,
		.src_vp = WORLD_VP, .dst_vp = WORLD_VP, .src_member = 1,
		.context = WORLD_CONTEXT, .life = WORLD_LIFE,
		.length = type == MUSTER_PACKET_DATA ? 8 : 0, .total = 8, .signature = SIGNATURE,
		.incarnation = 101, .job_key = WORLD_JOB_KEY,
	};
}

static struct world *waiting_world(uint8_t cp_count)
{
	struct world *w = world_create(2, 1);
	struct muster_desc sink = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END,
					  cp_count, NULL);

	desc_store(&sink, RESULT);
	world_start(w);
	world_post(w, 0, &sink, 1);
	world_run(w);
	return w;
}

static void give(struct world *w, const struct muster_packet *packet, uint32_t len)
{
	static const uint8_t payload[MUSTER_MTU];

	muster_engine_expect(w->nodes[0].engine, &packet, 1);
	muster_engine_receive(w->nodes[0].engine, packet, payload, len);
}

/* The counter at this offset has moved by one, and the context waits as before. */
static void expect_drop(struct world *w, const struct muster_packet *packet, uint32_t len,
			size_t counter)
{
	struct muster_engine_counters before = world_counters(w, 0), after;
	struct muster_context_state state;
	uint64_t was, is;

	give(w, packet, len);
	world_run(w);
	after = world_counters(w, 0);
	memcpy(&was, (uint8_t *)&before + counter, sizeof(was));
	memcpy(&is, (uint8_t *)&after + counter, sizeof(is));
	assert_int_equal(is, was + 1);
	assert_int_equal(after.drop_malformed + after.drop_stranger + after.drop_duplicate +
			 after.drop_window + after.drop_ring_full,
			 before.drop_malformed + before.drop_stranger + before.drop_duplicate +
			 before.drop_window + before.drop_ring_full + 1);
	assert_int_equal(after.packets_out, before.packets_out);
	assert_int_equal(muster_engine_context_query(w->nodes[0].engine, WORLD_VP, WORLD_JOB,
						     WORLD_CONTEXT, &state), 0);
	assert_int_equal(state.failed, 0);
	assert_int_equal(state.number, 0);
}

#define COUNTER(name) offsetof(struct muster_engine_counters, name)
#define EXPECT_DROP(w, type_, counter, ...)                                                      \
	do {                                                                                     \
		struct muster_packet p = honest(type_);                                          \
		__VA_ARGS__;                                                                     \
		expect_drop(w, &p, p.length, COUNTER(counter));                                  \
	} while (0)

static void malformed_packets_are_dropped(void **state)
{
	struct world *w = waiting_world(1);
	struct muster_packet lying = honest(MUSTER_PACKET_DATA);
	uint32_t type;

	(void)state;
	expect_drop(w, &lying, 7, COUNTER(drop_malformed));
	expect_drop(w, &lying, 9, COUNTER(drop_malformed));
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_malformed, p.version = 1);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_malformed, p.reserved = 1);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_malformed, p.signature.reserved = 1);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_malformed, p.tree = 1);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_malformed, p.group = 1);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_malformed, p.flags = 0x40);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_malformed, p.flags = MUSTER_PACKET_TAKEN);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_malformed, p.flags = MUSTER_PACKET_SWAP_ADDR);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_malformed, p.seq_id = MUSTER_SLOTS_MAX);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_malformed, p.offset = 1);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_malformed, p.offset = MUSTER_MTU);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_malformed, p.offset = 0xfffff000);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_malformed, p.total = 16);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_malformed, p.total = 0xffffffff);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_malformed, p.arg = 1);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_malformed, p.dst_vp = 0xffff);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_malformed, p.length = MUSTER_MTU; p.total = 5000);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_malformed, p.pulse = 1);
	EXPECT_DROP(w, MUSTER_PACKET_RTS, drop_malformed, p.total = MUSTER_PULSE_MAX + 1);
	EXPECT_DROP(w, MUSTER_PACKET_RTS, drop_malformed, p.length = 24);
	EXPECT_DROP(w, MUSTER_PACKET_RTS, drop_malformed, p.flags = MUSTER_PACKET_REFERENCE);
	/* A reference whose length is not the message's. */
	EXPECT_DROP(w, MUSTER_PACKET_RTS, drop_malformed,
		    p.flags = MUSTER_PACKET_REFERENCE; p.length = 24);
	EXPECT_DROP(w, MUSTER_PACKET_GRANT, drop_malformed, p.length = 8);
	EXPECT_DROP(w, MUSTER_PACKET_ABORT, drop_malformed, p.number = MUSTER_STATUS_OK);
	EXPECT_DROP(w, MUSTER_PACKET_ABORT, drop_malformed, p.number = 99);
	EXPECT_DROP(w, MUSTER_PACKET_ABORT, drop_malformed,
		    p.number = MUSTER_STATUS_ABORTED; p.arg = 2);
	for (type = MUSTER_PACKET_WHY; type < 256; type++)
		EXPECT_DROP(w, type, drop_malformed, );
	EXPECT_DROP(w, 0, drop_malformed, );
	world_destroy(w);
}

static void strangers_are_dropped(void **state)
{
	struct world *w = waiting_world(1);

	(void)state;
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_stranger, p.job_key++);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_stranger, p.job++);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_stranger, p.context++);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_stranger, p.src_node = 2);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_stranger, p.src_vp++);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_stranger, p.dst_node++);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_stranger, p.dst_vp++);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_stranger, p.incarnation++);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_stranger, p.life++);	/* an id that came round */
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_stranger, p.src_member = 2);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_stranger, p.src_member = 0xffffffff);
	/* Not even from ourselves. */
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_stranger,
		    p.src_node = p.src_member = 0; p.incarnation = 100);
	EXPECT_DROP(w, MUSTER_PACKET_ABORT, drop_stranger,
		    p.number = MUSTER_STATUS_ABORTED; p.job_key = 0);
	world_destroy(w);
}

/* Keys that are guessed or a bit off, former lives of node and context, what was taken already. */
static void of_a_million_tries_none_is_accepted(void **state)
{
	enum { TRIES = 1000000, WAYS = 5 };
	struct world *w = waiting_world(2);
	struct muster_packet taken = honest(MUSTER_PACKET_DATA);
	struct muster_engine_counters before, after;
	struct muster_context_state context;

	(void)state;
	give(w, &taken, taken.length);
	before = world_counters(w, 0);
	for (uint32_t i = 0; i < TRIES; i++) {
		struct muster_packet try = taken;

		switch (i % WAYS) {
		case 0:
			try.job_key = (uint64_t)world_random(w, UINT32_MAX) << 32 |
				      world_random(w, UINT32_MAX);
			break;
		case 1:
			try.job_key ^= 1ull << i / WAYS % 64;
			break;
		case 2:
			try.incarnation -= 1 + world_random(w, 100);
			break;
		case 3:
			try.life -= 1 + world_random(w, 100);
			break;
		}
		give(w, &try, try.length);
	}
	after = world_counters(w, 0);
	assert_int_equal(after.drop_stranger - before.drop_stranger, TRIES / WAYS * (WAYS - 1));
	assert_int_equal(after.drop_duplicate - before.drop_duplicate, TRIES / WAYS);
	assert_int_equal(after.packets_out, before.packets_out);
	assert_int_equal(muster_engine_context_query(w->nodes[0].engine, WORLD_VP, WORLD_JOB,
						     WORLD_CONTEXT, &context), 0);
	assert_int_equal(context.failed, 0);
	assert_int_equal(context.number, 0);
	world_destroy(w);
}

/* The id of a context comes round; what was sent in its former life may still be on its way. */
static void packets_of_a_former_life_change_nothing(void **state)
{
	struct world *w = waiting_world(1);
	struct muster_engine *engine = w->nodes[0].engine;
	uint8_t type;

	(void)state;
	muster_engine_context_close(engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT);
	world_run(w);
	assert_int_equal(world_context_open_life(w, 0, WORLD_CONTEXT, WORLD_LIFE + 1), 0);
	for (type = MUSTER_PACKET_DATA; type <= MUSTER_PACKET_ABORT; type++)
		EXPECT_DROP(w, type, drop_stranger, p.base = 7; p.length = p.total = 0);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_window, p.life++; p.number = MUSTER_WINDOW);
	world_destroy(w);
}

static void what_lies_outside_of_the_window_is_dropped(void **state)
{
	struct world *w = waiting_world(1);

	(void)state;
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_window, p.number = MUSTER_WINDOW);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_window, p.number = 0x80000000);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_window, p.number = 0xffffffff);
	EXPECT_DROP(w, MUSTER_PACKET_RTS, drop_window, p.pulse = 2 * MUSTER_PULSES_LIVE);
	EXPECT_DROP(w, MUSTER_PACKET_RTS, drop_window, p.pulse = 0xffffffff);
	EXPECT_DROP(w, MUSTER_PACKET_RTS, drop_window, p.number = 1; p.pulse = MUSTER_PULSES_LIVE);
	EXPECT_DROP(w, MUSTER_PACKET_GRANT, drop_window, p.number = 1);
	EXPECT_DROP(w, MUSTER_PACKET_GRANT, drop_duplicate, );
	world_destroy(w);
}

static void a_slot_is_filled_once(void **state)
{
	struct world *w = waiting_world(2);
	struct muster_packet first = honest(MUSTER_PACKET_DATA);

	(void)state;
	give(w, &first, 8);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_duplicate, );	/* before it is combined */
	world_run(w);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_duplicate, );	/* and after */
	first.seq_id = 1;
	give(w, &first, 8);
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, 1);
	assert_int_equal(w->nodes[0].cqes[0].status, MUSTER_STATUS_OK);
	world_destroy(w);
}

/* Fragments that overlap, repeat, or come without a grant. */
static void fragments_are_taken_once_and_in_place(void **state)
{
	struct world *w = world_create(2, 1);
	struct muster_desc sink = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT |
					    MUSTER_DESC_COLL_END, 1, 10000, 10000);
	struct muster_packet rts = honest(MUSTER_PACKET_RTS);

	(void)state;
	desc_store(&sink, 0);
	world_start(w);
	world_post(w, 0, &sink, 1);
	world_run(w);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_malformed, p.total = 10000; p.length = MUSTER_MTU);
	rts.total = 10000;
	give(w, &rts, 0);
	world_run(w);
	assert_int_equal(world_counters(w, 0).grants, 1);
	EXPECT_DROP(w, MUSTER_PACKET_RTS, drop_duplicate, p.total = 10000);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_malformed, p.total = 9000; p.length = MUSTER_MTU);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_malformed,
		    p.total = 10000; p.offset = MUSTER_MTU; p.length = 1000);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_malformed, p.total = 8192; p.offset = 8192;
		    p.length = 0);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_malformed,
		    p.total = 10000; p.offset = 100; p.length = MUSTER_MTU);
	rts.type = MUSTER_PACKET_DATA;
	rts.length = MUSTER_MTU;
	give(w, &rts, MUSTER_MTU);
	EXPECT_DROP(w, MUSTER_PACKET_DATA, drop_duplicate, p.total = 10000; p.length = MUSTER_MTU);
	world_destroy(w);
}

static void a_grant_cannot_take_what_was_not_lent(void **state)
{
	struct world *w = world_create(2, 1);
	struct muster_desc from = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT, 0, 10000, 10000);

	(void)state;
	desc_load(&from, 0);
	desc_to(&from, 1, 3);
	world_start(w);
	world_post(w, 0, &from, 1);
	world_run(w);
	EXPECT_DROP(w, MUSTER_PACKET_GRANT, drop_duplicate, p.total = 10000; p.seq_id = 2);
	EXPECT_DROP(w, MUSTER_PACKET_GRANT, drop_duplicate, p.total = 9999; p.seq_id = 3);
	EXPECT_DROP(w, MUSTER_PACKET_GRANT, drop_duplicate, p.total = 10000; p.seq_id = 3;
		    p.pulse = 4);
	EXPECT_DROP(w, MUSTER_PACKET_GRANT, drop_malformed, p.total = 10000; p.seq_id = 3;
		    p.flags = MUSTER_PACKET_TAKEN);
	world_destroy(w);
}

/* ---- floods ---- */

static void randomize(struct world *w, void *p, size_t bytes)
{
	uint8_t *byte = p;

	while (bytes--)
		*byte++ = world_random(w, 256);
}

/* Mostly right, so that it comes far. */
static struct muster_packet mad_packet(struct world *w)
{
	static const uint8_t types[] = { MUSTER_PACKET_WRITE, MUSTER_PACKET_WRITTEN };
	uint32_t any = world_random(w, 9);
	struct muster_packet p = honest(any < 7 ? 1 + any : types[any - 7]);
	uint32_t base = world_random(w, 12);

	p.number = base;
	p.pulse = world_random(w, 10);
	p.seq_id = world_random(w, 4);
	p.base = world_random(w, 20);
	p.flags = world_random(w, 4) ? 0 : world_random(w, 64);
	p.total = world_random(w, 3) ? 8 : world_random(w, MUSTER_PULSE_MAX + 2);
	p.offset = world_random(w, 4) ? 0 : world_random(w, 8) * MUSTER_MTU;
	p.length = p.type == MUSTER_PACKET_DATA || p.type == MUSTER_PACKET_P2P ?
		   (p.total - p.offset < MUSTER_MTU ? p.total - p.offset : MUSTER_MTU) : 0;
	if (p.type == MUSTER_PACKET_ABORT && world_random(w, 50))
		p.type = MUSTER_PACKET_RTS;
	if (p.type == MUSTER_PACKET_RTS && p.flags & MUSTER_PACKET_REFERENCE)
		p.length = 24;
	if (any >= 7) {
		p.signature = (struct muster_signature){ .digest = any == 7 ? 300000 : 0 };
		p.flags = 0;
		p.arg = any == 7 ? world_random(w, 3) : UINT32_MAX;
		p.number = any == 7 ? world_random(w, 40) : 0;
		p.seq_id = p.number % MUSTER_WRITES_OPEN;
		p.pulse = any == 7 ? 0 : world_random(w, UINT32_MAX);
		p.total = p.length = any == 7 ? 8 : 0;
		p.offset = 0;
	}
	if (!world_random(w, 30))
		randomize(w, (uint8_t *)&p + world_random(w, 92), 4);
	return p;
}

/* A context that the madness has ended is opened anew. */
static void reopen_failed(struct world *w)
{
	struct muster_context_state state;

	muster_engine_context_query(w->nodes[0].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT, &state);
	if (!state.failed)
		return;
	muster_engine_context_close(w->nodes[0].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT);
	assert_int_equal(world_context_open(w, 0, WORLD_CONTEXT), 0);
}

static void a_member_gone_mad_harms_no_other_context(void **state)
{
	uint64_t seed;
	uint32_t i;

	(void)state;
	for (seed = 0; seed < 150; seed++) {
		struct world *w = world_create(2, seed);
		struct muster_desc other = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT |
						     MUSTER_DESC_COLL_END, 1, 60000, 20000);
		struct muster_desc from = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT, 0, 60000,
						    20000);

		w->model.buffer = 4 * MUSTER_PULSE_MAX;
		w->map = seed & 1;
		w->share = seed & 2;
		world_start(w);
		for (i = 0; i < 2; i++)
			assert_int_equal(world_context_open(w, i, WORLD_CONTEXT + 1), 0);
		other.context = from.context = WORLD_CONTEXT + 1;
		desc_store(&other, 100000);
		desc_load(&from, 0);
		desc_to(&from, 0, 0);
		randomize(w, w->nodes[1].memory, 60000);
		world_post(w, 0, &other, 1);
		world_post(w, 1, &from, 1);
		for (i = 0; i < 400; i++) {
			struct muster_packet p = mad_packet(w);
			/* Its own allocation: what is read past the end is seen. */
			uint8_t *payload = malloc(p.length + 1);
			struct muster_desc sink =
				desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT, world_random(w, 4),
					  world_random(w, 2) ? 8 : 40000, 8000);

			randomize(w, payload, p.length);
			if (p.length == 24)
				memcpy(payload + 8, &(uint64_t){ p.total }, 8);
			desc_store(&sink, 200000);
			muster_engine_post(w->nodes[0].engine, WORLD_VP, &sink, 1, NULL);
			muster_engine_receive(w->nodes[0].engine, &p, payload, p.length);
			muster_engine_step(w->nodes[0].engine, 5);
			free(payload);
			reopen_failed(w);
			w->nodes[0].nr_cqes = 0;
		}
		world_run(w);
		assert_memory_equal(w->nodes[0].memory + 100000, w->nodes[1].memory, 60000);
		world_destroy(w);
	}
}

/* Whatever is posted is refused, or runs without doing harm to the machine. */
/* And as many; whether it comes or not. */
static void whatever_is_expected_nothing_changes(void **state)
{
	struct world *w = waiting_world(2);
	struct muster_packet packets[3 * MUSTER_ENGINE_EXPECT_MAX];
	const struct muster_packet *expected[3 * MUSTER_ENGINE_EXPECT_MAX];
	struct muster_engine_counters before, after;
	uint8_t *bytes = (uint8_t *)packets;
	uint32_t i, nr;

	(void)state;
	packets[0] = honest(MUSTER_PACKET_DATA);
	packets[0].seq_id = 1;
	give(w, &packets[0], 8);		/* it lies there before its turn */
	before = world_counters(w, 0);
	for (i = 0; i < 20000; i++) {
		nr = world_random(w, 3 * MUSTER_ENGINE_EXPECT_MAX + 1);
		for (uint32_t j = 0; j < nr; j++) {
			packets[j] = honest(MUSTER_PACKET_DATA);
			expected[j] = &packets[j];
		}
		for (uint32_t j = nr; j; j--)
			bytes[world_random(w, nr * sizeof(packets[0]))] = world_random(w, 256);
		muster_engine_expect(w->nodes[0].engine, expected, nr);
	}
	after = world_counters(w, 0);
	assert_memory_equal(&before, &after, sizeof(before));
	packets[0] = honest(MUSTER_PACKET_DATA);
	give(w, &packets[0], 8);
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, 1);
	world_destroy(w);
}

static void random_descriptors_are_refused_or_run(void **state)
{
	uint64_t seed, accepted = 0;
	uint32_t i, d;

	(void)state;
	for (seed = 0; seed < 60; seed++) {
		struct world *w = world_create(2, seed);

		w->map = seed & 1;
		w->share = seed & 2;
		world_start(w);
		for (i = 0; i < 600; i++) {
			struct muster_desc descs[4];
			uint32_t nr = 1 + world_random(w, 4), node = world_random(w, 2);

			for (d = 0; d < nr; d++) {
				uint32_t flags = (d ? 0 : MUSTER_DESC_CH) |
						 (d < nr - 1 ? 0 : MUSTER_DESC_CT) |
						 (world_random(w, 2) ? MUSTER_DESC_REDUCE : 0);

				descs[d] = seed % 3 ? desc_rdma(flags, world_random(w, 3), 40000,
								12000) :
						      desc_mp(flags, world_random(w, 3),
							      &(double){ i });
				desc_to(&descs[d], !node, world_random(w, 4));
				if (seed % 3 && world_random(w, 8))
					desc_load(&descs[d], world_random(w, 3) * 40000);
				if (world_random(w, 3))
					desc_store(&descs[d], world_random(w, 3) * 40000);
				if (!world_random(w, 20))
					randomize(w, (uint8_t *)&descs[d] + world_random(w, 124),
						  1 + world_random(w, 4));
			}
			accepted += !muster_engine_post(w->nodes[node].engine, WORLD_VP, descs, nr,
							NULL);
			muster_engine_step(w->nodes[node].engine, 20);
			if (w->nr_flight)
				world_deliver_one(w, world_random(w, w->nr_flight));
			w->nodes[node].nr_cqes = 0;
		}
		world_destroy(w);
	}
	assert_true(accepted > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(malformed_packets_are_dropped),
		cmocka_unit_test(strangers_are_dropped),
		cmocka_unit_test(of_a_million_tries_none_is_accepted),
		cmocka_unit_test(packets_of_a_former_life_change_nothing),
		cmocka_unit_test(what_lies_outside_of_the_window_is_dropped),
		cmocka_unit_test(a_slot_is_filled_once),
		cmocka_unit_test(fragments_are_taken_once_and_in_place),
		cmocka_unit_test(a_grant_cannot_take_what_was_not_lent),
		cmocka_unit_test(a_member_gone_mad_harms_no_other_context),
		cmocka_unit_test(whatever_is_expected_nothing_changes),
		cmocka_unit_test(random_descriptors_are_refused_or_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
