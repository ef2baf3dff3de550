// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages of one packet that lie in memory go without asking: their send is closed at
 * once, and what finds no room at the receiver is sent once more when it has some, even if
 * the sender has ended and closed. What holds room is bounded, and is given back.
 */
#include "test_world.h"

enum { BYTES = MUSTER_MTU, DOUBLES = BYTES / 8, SEEDS = 20, RESULT = 512 << 10 };

static struct muster_desc send_to(uint32_t node, uint32_t slot, uint64_t from)
{
	struct muster_desc desc = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END,
					    0, BYTES, BYTES);

	desc_load(&desc, from);
	desc_to(&desc, node, slot);
	return desc;
}

static struct muster_desc sum_of(uint8_t nr)
{
	struct muster_desc desc = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END |
					    MUSTER_DESC_REDUCE, nr, BYTES, BYTES);

	desc_load(&desc, 0);
	desc_store(&desc, RESULT);
	return desc;
}

static void fill(struct world *w, uint32_t node, uint64_t at, double value)
{
	for (uint32_t i = 0; i < DOUBLES; i++)
		world_double(w, node, at)[i] = value;
}

static void expect_result(struct world *w, uint32_t node, double value)
{
	for (uint32_t i = 0; i < DOUBLES; i++)
		assert_true(world_double(w, node, RESULT)[i] == value);
}

static void expect_nothing_left(struct world *w)
{
	for (uint32_t r = 0; r < w->nr; r++) {
		struct muster_engine_counters counters = world_counters(w, r);

		assert_int_equal(counters.buffer_blocks_used, 0);
		assert_int_equal(counters.buffer_entries_used, 0);
		assert_int_equal(counters.contexts_closing, 0);
	}
}

static struct world *some(uint32_t nr, uint32_t buffer_bytes, uint64_t seed)
{
	struct world *w = world_create(nr, seed);

	w->refuse_percent = seed % 3 * 20;
	w->map = seed & 1;
	w->share = seed & 2;
	w->model.buffer = buffer_bytes;
	world_start(w);
	return w;
}

static void close_at(struct world *w, uint32_t node, uint32_t id)
{
	muster_engine_context_close(w->nodes[node].engine, WORLD_VP, WORLD_JOB, id);
}

static void close_all(struct world *w, uint32_t id)
{
	for (uint32_t r = 0; r < w->nr; r++)
		close_at(w, r, id);
}

/* With room, without, and with some: what was sent is what was there when it was sent. */
static void its_source_is_free_when_the_sender_has_ended(void **state)
{
	static const uint32_t rooms[] = { MUSTER_ENGINE_NO_BUFFER, MUSTER_MTU, 4 * MUSTER_MTU, 0 };

	(void)state;
	for (uint64_t seed = 0; seed < 4 * SEEDS; seed++) {
		struct world *w = some(4, rooms[seed % 4], seed / 4);
		struct muster_desc sum = sum_of(3);

		for (uint32_t r = 1; r < 4; r++) {
			struct muster_desc send = send_to(0, r - 1, 0);

			fill(w, r, 0, r);
			world_post(w, r, &send, 1);
		}
		world_run(w);
		for (uint32_t r = 1; r < 4 && rooms[seed % 4] != MUSTER_ENGINE_NO_BUFFER; r++) {
			assert_int_equal(w->nodes[r].nr_cqes, 1);	/* the receiver has not begun */
			fill(w, r, 0, -1000);
		}
		fill(w, 0, 0, 100);
		world_post(w, 0, &sum, 1);
		world_run(w);
		assert_int_equal(w->nodes[0].nr_cqes, 1);
		assert_int_equal(w->nodes[0].cqes[0].status, MUSTER_STATUS_OK);
		expect_result(w, 0, 106);
		close_all(w, WORLD_CONTEXT);
		world_run(w);
		expect_nothing_left(w);
		world_destroy(w);
	}
}

/* What is no longer than an MP message has room at its receiver always: nobody keeps a copy. */
static void what_is_short_takes_no_block(void **state)
{
	enum { SHORT = MUSTER_MP_MAX / sizeof(double), RDMA = 1, ONE_MORE };

	(void)state;
	for (uint64_t seed = 0; seed < 3 * SEEDS; seed++) {
		struct world *w = some(4, 0, seed / 3);
		struct muster_desc sum = sum_of(3);

		sum.kind = seed % 3 ? MUSTER_DESC_RDMA : MUSTER_DESC_MP;
		sum.length = (SHORT + (seed % 3 == ONE_MORE)) * sizeof(double);
		if (sum.kind == MUSTER_DESC_MP)
			sum.range.pulse_len = sum.range.pulse_count = 0;
		for (uint32_t r = 1; r < 4; r++) {
			struct muster_desc send = send_to(0, r - 1, 0);

			send.kind = sum.kind;
			send.length = sum.length;
			send.range.pulse_len = sum.range.pulse_len;
			send.range.pulse_count = sum.range.pulse_count;
			fill(w, r, 0, r);
			world_post(w, r, &send, 1);
		}
		world_run(w);
		for (uint32_t r = 0; r < 4; r++)
			assert_int_equal(world_counters(w, r).buffer_blocks_used,
					 seed % 3 != ONE_MORE ? 0 : r ? 1 : 3);
		for (uint32_t r = 1; r < 4; r++)
			fill(w, r, 0, -1000);
		fill(w, 0, 0, 100);
		world_post(w, 0, &sum, 1);
		world_run(w);
		assert_int_equal(w->nr_sent[MUSTER_PACKET_RTS], 0);
		for (uint32_t i = 0; i < SHORT; i++)
			assert_true(world_double(w, 0, RESULT)[i] == 106);
		close_all(w, WORLD_CONTEXT);
		world_run(w);
		expect_nothing_left(w);
		world_destroy(w);
	}
}

/* Who waits for it may stay open for long, and even wait for its farewell. */
static void who_has_closed_hears_of_all_numbers_that_it_asks_for(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct world *w = some(2, 0, seed);
		struct muster_desc send = send_to(0, 0, 0), sum = sum_of(1);

		for (int i = 0; i < 3; i++)
			world_post(w, 1, &send, 1);
		world_run(w);
		muster_engine_context_close(w->nodes[1].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT);
		world_run(w);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(world_counters(w, 1).contexts_closing, 1);
			world_post(w, 0, &sum, 1);
			world_run(w);
		}
		assert_int_equal(world_counters(w, 1).contexts_closing, 0);
		world_destroy(w);
	}
}

static void what_is_sent_again_outlives_its_context(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct world *w = some(4, MUSTER_MTU, seed);
		struct muster_desc sum = sum_of(3);

		for (uint32_t r = 1; r < 4; r++) {
			struct muster_desc send = send_to(0, r - 1, 0);

			fill(w, r, 0, r);
			world_post(w, r, &send, 1);
		}
		world_run(w);
		assert_int_equal(world_counters(w, 0).unasked_refused, 2);
		for (uint32_t r = 1; r < 4; r++) {
			muster_engine_context_close(w->nodes[r].engine, WORLD_VP, WORLD_JOB,
						    WORLD_CONTEXT);
			assert_int_equal(world_context_open_life(w, r, WORLD_CONTEXT, 99), 0);
			if (r == 1)
				muster_engine_vp_close(w->nodes[r].engine, WORLD_VP);
		}
		world_run(w);
		assert_int_equal(world_counters(w, 1).contexts_closing, 1);
		world_post(w, 0, &sum, 1);
		world_run(w);
		assert_int_equal(w->nodes[0].cqes[0].status, MUSTER_STATUS_OK);
		expect_result(w, 0, 6);
		muster_engine_context_close(w->nodes[0].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT);
		world_run(w);
		expect_nothing_left(w);
		world_destroy(w);
	}
}

/* All have sent what the others have not begun to receive, and all close. */
static void those_who_close_do_not_wait_for_each_other(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct world *w = some(4, 8 * MUSTER_MTU, seed);

		for (uint32_t r = 0; r < 4; r++) {
			struct muster_desc descs[2] = { send_to((r + 1) % 4, 0, 0), sum_of(1) };

			descs[0].flags &= ~(MUSTER_DESC_CT | MUSTER_DESC_COLL_END);
			descs[1].flags &= ~MUSTER_DESC_CH;
			if (r != seed % 5)
				world_post(w, r, descs, 2);
			muster_engine_step(w->nodes[r].engine, 1 + world_random(w, 10));
		}
		if (seed % 2)
			world_run(w);
		close_all(w, WORLD_CONTEXT);
		world_run(w);
		expect_nothing_left(w);
		world_destroy(w);
	}
}

static void who_is_lost_is_not_waited_for(void **state)
{
	struct world *w = some(3, MUSTER_MTU, 0);
	struct muster_desc send = send_to(0, 0, 0);

	(void)state;
	world_post(w, 1, &send, 1);
	world_run(w);
	muster_engine_context_close(w->nodes[1].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT);
	world_run(w);
	assert_int_equal(world_counters(w, 1).contexts_closing, 1);
	w->nodes[0].dead = true;
	muster_engine_peer_lost(w->nodes[1].engine, 0);
	world_run(w);
	assert_int_equal(world_counters(w, 1).contexts_closing, 0);
	world_destroy(w);
}

/* However much it sends and is sent, a VP leaves as many blocks as it has. */
static void a_vp_takes_no_more_than_it_leaves(void **state)
{
	enum { BLOCKS = 16 };
	struct world *w = some(8, BLOCKS * MUSTER_MTU, 0);
	struct muster_desc again = send_to(0, 0, 0);

	(void)state;
	for (uint32_t i = 0; i < 20; i++) {
		assert_int_equal(world_context_open(w, 0, 1000 + i), 0);
		for (uint32_t r = 1; r < 8; r++) {
			struct muster_desc send = send_to(0, r - 1, 0);

			assert_int_equal(world_context_open(w, r, 1000 + i), 0);
			send.context = 1000 + i;
			world_post(w, r, &send, 1);
		}
		world_run(w);
	}
	assert_int_equal(world_counters(w, 0).buffer_blocks_used, BLOCKS / 2);
	assert_int_equal(world_counters(w, 1).buffer_blocks_used, BLOCKS / 2);
	/* Who found no room for a copy has asked, and waits. */
	assert_int_equal(w->nodes[1].nr_cqes, BLOCKS / 2);
	world_post(w, 1, &again, 1);
	world_run(w);
	assert_int_equal(world_counters(w, 1).buffer_blocks_used, BLOCKS / 2);
	world_destroy(w);
}

/* Copies are held until their receivers tell; where blocks are few they are asked to. */
static void idle_contexts_do_not_hold_all_blocks(void **state)
{
	enum { BLOCKS = 16, CONTEXTS = 40 };
	struct world *w = some(2, BLOCKS * MUSTER_MTU, 0);

	(void)state;
	for (uint32_t i = 0; i < CONTEXTS; i++) {
		struct muster_desc send = send_to(1, 0, 0), sum = sum_of(1);

		send.context = sum.context = 1000 + i;
		for (uint32_t r = 0; r < 2; r++)
			assert_int_equal(world_context_open(w, r, 1000 + i), 0);
		world_post(w, 1, &sum, 1);
		world_run(w);
		world_post(w, 0, &send, 1);
		world_run(w);
		assert_int_equal(w->nodes[1].nr_cqes, i + 1);
	}
	assert_true(world_counters(w, 0).buffer_blocks_used <= BLOCKS / 4);
	assert_int_equal(w->nr_sent[MUSTER_PACKET_RTS], 0);
	world_destroy(w);
}

/* 15 send to one in 64 contexts before it receives; two others talk meanwhile. */
static void an_incast_loses_nothing_and_stops_nobody(void **state)
{
	enum { RANKS = 16, CONTEXTS = 64, OTHER = 5000 };
	struct world *w = some(RANKS, 32 * MUSTER_MTU, 1);
	struct muster_desc sum = sum_of(RANKS - 1);

	(void)state;
	for (uint32_t i = 0; i < CONTEXTS; i++)
		for (uint32_t r = 0; r < RANKS; r++) {
			struct muster_desc send = send_to(0, r - 1, 0);

			assert_int_equal(world_context_open(w, r, 1000 + i), 0);
			fill(w, r, 0, r);
			send.context = 1000 + i;
			if (r)
				world_post(w, r, &send, 1);
		}
	world_run(w);
	assert_true(world_counters(w, 0).unasked_refused > 0);
	for (uint32_t r = 0; r < RANKS; r++) {
		struct muster_desc descs[2] = { send_to(r ^ 1, 0, 0), sum_of(1) };
		uint32_t before = w->nodes[r].nr_cqes;

		if (r % 2)
			continue;
		assert_int_equal(world_context_open(w, r, OTHER), 0);
		assert_int_equal(world_context_open(w, r + 1, OTHER), 0);
		for (uint32_t side = 0; side < 2; side++) {
			descs[0] = send_to((r + side) ^ 1, 0, 0);
			descs[0].flags &= ~(MUSTER_DESC_CT | MUSTER_DESC_COLL_END);
			descs[1].flags &= ~MUSTER_DESC_CH;
			descs[0].context = descs[1].context = OTHER;
			world_post(w, r + side, descs, 2);
		}
		world_run(w);
		assert_int_equal(w->nodes[r].nr_cqes, before + 1);
	}
	for (uint32_t i = CONTEXTS; i--;) {
		uint32_t before = w->nodes[0].nr_cqes;

		sum.context = 1000 + i;
		memset(world_double(w, 0, RESULT), 0, BYTES);
		world_post(w, 0, &sum, 1);
		world_run(w);
		assert_int_equal(w->nodes[0].nr_cqes, before + 1);
		expect_result(w, 0, RANKS * (RANKS - 1) / 2);
	}
	for (uint32_t r = 1; r < RANKS; r++)
		assert_int_equal(w->nodes[r].nr_cqes, CONTEXTS + 1);
	assert_int_equal(world_counters(w, 0).drop_window, 0);
	for (uint32_t i = 0; i < CONTEXTS; i++)
		close_all(w, 1000 + i);
	close_all(w, OTHER);
	world_run(w);
	expect_nothing_left(w);
	world_destroy(w);
}

/* Its context has failed while it landed: it is in no entry, and takes no room. */
static void what_there_is_no_memory_to_answer_takes_no_room(void **state)
{
	struct muster_desc send = send_to(0, 0, 0);
	uint32_t allowed, failed = 0;

	(void)state;
	for (allowed = 0; allowed < 8; allowed++) {
		struct world *w = some(2, 0, 0);
		uint32_t i;

		for (i = 0; i <= MUSTER_WINDOW / 2; i++)	/* the last of them asks */
			world_post(w, 1, &send, 1);
		while (muster_engine_step(w->nodes[1].engine, 100))
			;
		w->allocs_left = allowed;
		w->allocs_limited = true;
		while (w->nr_flight)
			world_deliver_one(w, 0);
		w->allocs_limited = false;
		if (world_counters(w, 0).contexts_failed) {
			failed++;
			assert_int_equal(world_counters(w, 0).buffer_entries_used, 0);
			assert_int_equal(world_counters(w, 0).buffer_blocks_used, 0);
		}
		world_destroy(w);
	}
	assert_in_range(failed, 1, 7);
}

/* It would be told who has ended what, by an answer; but who leaves with its node has none. */
static void who_leaves_waits_for_nobody_who_has_left(void **state)
{
	(void)state;
	for (int asked = 0; asked < 2; asked++) {
		struct world *w = some(2, 0, 0);
		struct muster_desc from = send_to(1, 0, 0), sum = sum_of(1);

		w->board = true;
		world_post(w, 0, &from, 1);
		world_post(w, 1, &sum, 1);
		world_run(w);
		assert_int_equal(world_counters(w, 0).buffer_blocks_used, 1);
		if (asked)
			close_at(w, 0, WORLD_CONTEXT);
		muster_engine_leave(w->nodes[1].engine);
		close_at(w, 1, WORLD_CONTEXT);
		world_run(w);
		assert_int_equal(world_counters(w, 0).buffer_blocks_used, 1);
		muster_engine_leave(w->nodes[0].engine);
		if (!asked)
			close_at(w, 0, WORLD_CONTEXT);
		world_run(w);
		expect_nothing_left(w);
		world_destroy(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_source_is_free_when_the_sender_has_ended),
		cmocka_unit_test(what_is_short_takes_no_block),
		cmocka_unit_test(who_has_closed_hears_of_all_numbers_that_it_asks_for),
		cmocka_unit_test(what_is_sent_again_outlives_its_context),
		cmocka_unit_test(those_who_close_do_not_wait_for_each_other),
		cmocka_unit_test(who_is_lost_is_not_waited_for),
		cmocka_unit_test(a_vp_takes_no_more_than_it_leaves),
		cmocka_unit_test(idle_contexts_do_not_hold_all_blocks),
		cmocka_unit_test(an_incast_loses_nothing_and_stops_nobody),
		cmocka_unit_test(what_there_is_no_memory_to_answer_takes_no_room),
		cmocka_unit_test(who_leaves_waits_for_nobody_who_has_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
