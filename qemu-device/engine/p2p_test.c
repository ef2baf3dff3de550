// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Point to point: what is posted arrives whole, completes when it has left, and
 * waits for nothing but its own receiver.
 */
#include "test_world.h"

static struct muster_desc message(uint32_t to, uint32_t length)
{
	struct muster_desc desc = {
		.kind = MUSTER_DESC_MP, .flags = MUSTER_DESC_COLL_END, .src_vp = WORLD_VP,
		.dst_vp = WORLD_VP, .job = WORLD_JOB, .context = WORLD_CONTEXT,
		.dest = MUSTER_FIELD_PREP(MUSTER_DEST_NODE, to) |
			MUSTER_FIELD_PREP(MUSTER_DEST_SEQ, 17),
		.stage = 5, .signature.digest = 0xabcd, .cookie = 0x1122334455667788, .length = length,
	};

	if (length <= MUSTER_INLINE_MAX) {
		desc.inline_len = length;
		memset(desc.data, 0x5a, length);
	} else {
		desc.kind = MUSTER_DESC_RDMA;
		desc_load(&desc, 1000);
	}
	return desc;
}

static void inline_and_loaded_messages_arrive_with_all_they_carry(void **state)
{
	static const uint32_t lengths[] = { 0, 1, MUSTER_INLINE_MAX, 65, MUSTER_MTU };
	uint32_t i, b;

	(void)state;
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]) * 2; i++) {
		struct world *w = world_create(2, i);
		struct muster_desc desc = message(1, lengths[i / 2]);
		const struct muster_packet *p = &w->nodes[1].delivered.packet;

		w->map = i & 1;
		w->refuse_percent = 50;
		memset(w->nodes[0].memory, 0x5a, 10000);
		world_start(w);
		world_post(w, 0, &desc, 1);
		world_run(w);
		assert_int_equal(w->nodes[1].nr_delivered, 1);
		assert_int_equal(p->length, lengths[i / 2]);
		assert_int_equal(p->number, 0x55667788);
		assert_int_equal(p->pulse, 0x11223344);
		assert_int_equal(p->seq_id, 17);
		assert_int_equal(p->stage, 5);
		assert_int_equal(p->signature.digest, 0xabcd);
		assert_int_equal(p->src_node, 0);
		for (b = 0; b < p->length; b++)
			assert_int_equal(w->nodes[1].delivered.payload[b], 0x5a);
		assert_int_equal(w->nodes[0].nr_cqes, 1);
		assert_int_equal(w->nodes[0].cqes[0].kind, MUSTER_CQE_SEND);
		assert_int_equal(w->nodes[0].cqes[0].cookie, 0x1122334455667788);
		assert_int_equal(w->nodes[0].cqes[0].number, 1);
		world_destroy(w);
	}
}

static void a_full_ring_drops_and_counts(void **state)
{
	struct world *w = world_create(2, 1);
	struct muster_desc desc = message(1, 8);
	uint32_t i;

	(void)state;
	w->nodes[1].ring_slots = 3;
	world_start(w);
	for (i = 0; i < 5; i++)
		world_post(w, 0, &desc, 1);
	world_run(w);
	assert_int_equal(w->nodes[1].nr_delivered, 3);
	assert_int_equal(world_counters(w, 1).drop_ring_full, 2);
	world_destroy(w);
}

static void a_full_queue_asks_to_come_again(void **state)
{
	struct world *w = world_create(2, 1);
	struct muster_desc desc = message(1, 8);
	uint32_t i;

	(void)state;
	world_start(w);
	for (i = 0; i < MUSTER_SEQ_QUEUE_MAX; i++)
		world_post(w, 0, &desc, 1);
	assert_int_equal(muster_engine_post(w->nodes[0].engine, WORLD_VP, &desc, 1, NULL), -EAGAIN);
	world_run(w);
	world_post(w, 0, &desc, 1);
	world_destroy(w);
}

static void who_takes_nothing_holds_up_no_other(void **state)
{
	struct world *w = world_create(3, 1);
	struct muster_desc desc = message(1, 8);
	uint32_t i;

	(void)state;
	world_start(w);
	w->nodes[1].full = true;
	for (i = 0; i < 4; i++)
		world_post(w, 0, &desc, 1);
	desc = message(2, 8);
	desc.flags = 0;
	world_post(w, 0, &desc, 1);
	for (i = 0; i < 10 && !w->nodes[2].nr_delivered; i++) {
		muster_engine_step(w->nodes[0].engine, 100);
		while (w->nr_flight)
			world_deliver_one(w, 0);
	}
	assert_int_equal(w->nodes[2].nr_delivered, 1);
	assert_int_equal(w->nodes[1].nr_delivered, 0);
	assert_int_equal(w->nodes[0].nr_cqes, 0);
	w->nodes[1].full = false;
	world_run(w);
	assert_int_equal(w->nodes[1].nr_delivered, 4);
	assert_int_equal(w->nodes[0].nr_cqes, 4);
	world_destroy(w);
}

/* What is inline speaks of other contexts, too; memory may be its owner's again. */
static void a_failed_context_carries_what_is_inline_and_flushes_the_rest(void **state)
{
	struct world *w = world_create(3, 1);
	struct muster_desc inlined = message(1, 8), loaded = message(1, 100);

	(void)state;
	world_start(w);
	w->nodes[2].dead = true;
	muster_engine_peer_lost(w->nodes[0].engine, 2);
	world_run(w);
	assert_int_equal(world_counters(w, 1).contexts_failed, 1);
	assert_int_equal(w->nodes[0].nr_cqes, 1);
	world_post(w, 0, &loaded, 1);
	world_post(w, 0, &inlined, 1);
	inlined = message(2, 8);
	world_post(w, 0, &inlined, 1);
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, 4);
	assert_int_equal(w->nodes[0].cqes[1].status, MUSTER_STATUS_FLUSHED);
	assert_int_equal(w->nodes[0].cqes[2].status, MUSTER_STATUS_OK);
	assert_int_equal(w->nodes[0].cqes[3].status, MUSTER_STATUS_FLUSHED);
	assert_int_equal(w->nodes[1].nr_delivered, 1);
	assert_int_equal(w->nodes[1].delivered.packet.length, 8);
	world_destroy(w);
}

static void what_is_meant_for_who_has_left_is_flushed_and_ends_nothing(void **state)
{
	struct world *w = world_create(3, 1);
	struct muster_desc desc;

	(void)state;
	world_start(w);
	w->nodes[1].dead = true;
	muster_engine_peer_left(w->nodes[0].engine, 1);
	desc = message(1, 8);
	world_post(w, 0, &desc, 1);
	desc = message(2, 8);
	world_post(w, 0, &desc, 1);
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, 2);
	assert_int_equal(w->nodes[0].cqes[0].kind, MUSTER_CQE_SEND);
	assert_int_equal(w->nodes[0].cqes[0].status, MUSTER_STATUS_FLUSHED);
	assert_int_equal(w->nodes[0].cqes[0].culprit, 1);
	assert_int_equal(w->nodes[0].cqes[1].kind, MUSTER_CQE_SEND);
	assert_int_equal(w->nodes[0].cqes[1].status, MUSTER_STATUS_OK);
	world_destroy(w);
}

static void refused_memory_ends_the_context(void **state)
{
	struct world *w = world_create(2, 1);
	struct muster_desc desc = message(1, 100);

	(void)state;
	desc.range.load_addr = WORLD_MEMORY - 99;
	world_start(w);
	world_post(w, 0, &desc, 1);
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, 2);
	assert_int_equal(w->nodes[0].cqes[1].kind, MUSTER_CQE_CONTEXT);
	assert_int_equal(w->nodes[0].cqes[1].status, MUSTER_STATUS_MEMORY);
	world_destroy(w);
}

static void messages_that_make_no_sense_are_refused(void **state)
{
	struct world *w = world_create(2, 1);
	struct muster_desc desc;
	uint32_t way;

	(void)state;
	world_start(w);
	for (way = 0; way < 9; way++) {
		desc = message(way == 0 ? 0 : way == 1 ? 2 : 1, way < 5 ? 8 : 100);
		desc.flags |= way == 2 ? MUSTER_DESC_CP : 0;
		desc.inline_len -= way == 3;
		desc.cp_count = way == 4;
		desc.length = way == 5 ? MUSTER_MTU + 1 : desc.length;
		desc.range.load_key = way == 6 ? 0 : desc.range.load_key;
		desc.range.remote_key = way == 7;
		desc.range.load_addr = way == 8 ? UINT64_MAX - 10 : desc.range.load_addr;
		assert_int_equal(muster_engine_post(w->nodes[0].engine, WORLD_VP, &desc, 1, NULL),
				 -EINVAL);
	}
	desc = message(1, 8);
	desc.context++;
	assert_int_equal(muster_engine_post(w->nodes[0].engine, WORLD_VP, &desc, 1, NULL), -ENOENT);
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, 0);
	world_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inline_and_loaded_messages_arrive_with_all_they_carry),
		cmocka_unit_test(a_full_ring_drops_and_counts),
		cmocka_unit_test(a_full_queue_asks_to_come_again),
		cmocka_unit_test(who_takes_nothing_holds_up_no_other),
		cmocka_unit_test(a_failed_context_carries_what_is_inline_and_flushes_the_rest),
		cmocka_unit_test(what_is_meant_for_who_has_left_is_flushed_and_ends_nothing),
		cmocka_unit_test(refused_memory_ends_the_context),
		cmocka_unit_test(messages_that_make_no_sense_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
