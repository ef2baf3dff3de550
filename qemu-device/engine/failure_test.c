// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How a context ends before its time: who is named, who is told, what completes
 * with what, and that nothing moves afterwards.
 */
#include "internal.h"
#include "test_failure.h"

static void another_signature_is_a_mismatch_that_names_its_rank_to_all(void **state)
{
	uint64_t seed;
	uint32_t r;

	(void)state;
	for (seed = 0; seed < 40; seed++) {
		struct world *w = world_create(3, seed);
		struct muster_desc bad = send_to(0, 1, 2), good = send_to(0, 0, 1),
				   sink = receive(2);

		w->refuse_percent = seed % 2 * 40;
		bad.signature.coll = 5;
		world_start(w);
		world_post(w, 0, &sink, 1);
		world_post(w, 1, &good, 1);
		world_post(w, 2, &bad, 1);
		world_run(w);
		for (r = 0; r < 3; r++) {
			expect_failed(w, r, MUSTER_STATUS_MISMATCH, 2);
			assert_int_equal(last_cqe(w, r)->by, 0);
		}
		assert_int_equal(w->nodes[0].nr_cqes, 2);
		assert_int_equal(w->nodes[0].cqes[0].kind, MUSTER_CQE_SEQUENCE);
		assert_int_equal(w->nodes[0].cqes[0].status, MUSTER_STATUS_MISMATCH);
		assert_signature(w->nodes[0].cqes[0].other, bad.signature);
		assert_signature(w->nodes[0].cqes[0].signature, SIGNATURE);
		world_destroy(w);
	}
}

static void who_has_lost_the_network_names_nobody(void **state)
{
	struct world *w = world_create(3, 1);
	struct muster_desc sink = receive(2);

	(void)state;
	world_start(w);
	world_post(w, 0, &sink, 1);
	muster_engine_network_lost(w->nodes[0].engine);
	w->nodes[0].idle = false;
	world_run(w);
	expect_failed(w, 0, MUSTER_STATUS_PEER_LOST, MUSTER_CULPRIT_NONE);
	assert_int_equal(w->nodes[0].nr_cqes, 2);
	world_destroy(w);
}

static void a_mismatch_is_judged_by_its_own_sequence_not_by_the_one_before(void **state)
{
	struct world *w = world_create(2, 1);
	struct muster_desc first = receive(1), second = receive(1), ok = send_to(0, 0, 1),
			   bad = send_to(0, 0, 2);

	(void)state;
	bad.signature.coll = 5;
	world_start(w);
	world_post(w, 0, &first, 1);
	world_post(w, 0, &second, 1);
	world_post(w, 1, &ok, 1);
	world_post(w, 1, &bad, 1);
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, 3);
	assert_int_equal(w->nodes[0].cqes[0].status, MUSTER_STATUS_OK);
	assert_int_equal(w->nodes[0].cqes[1].status, MUSTER_STATUS_MISMATCH);
	assert_int_equal(w->nodes[0].cqes[1].number, 1);
	assert_true(*world_double(w, 0, RESULT) == 1);
	world_destroy(w);
}

/* Each root has ended before it hears of the other: only its history tells. */
static void two_broadcasts_with_different_roots_both_fail(void **state)
{
	uint64_t seed;
	uint32_t r;

	(void)state;
	for (seed = 0; seed < 20; seed++) {
		struct world *w = world_create(2, seed);
		struct muster_desc from[2] = { send_to(1, 0, 1), send_to(0, 0, 2) };

		from[1].signature.root = 1;
		world_start(w);
		world_post(w, 0, &from[0], 1);
		world_post(w, 1, &from[1], 1);
		for (r = 0; r < 2; r++)
			muster_engine_step(w->nodes[r].engine, 10);
		world_deliver_one(w, !(seed % 2));	/* to rank seed % 2 */
		world_run(w);
		for (r = 0; r < 2; r++)
			expect_failed(w, r, MUSTER_STATUS_MISMATCH,
				      w->nodes[r].cqes[w->nodes[r].nr_cqes - 1].culprit);
		assert_int_equal(last_cqe(w, seed % 2)->number, 0);
		assert_signature(last_cqe(w, seed % 2)->signature, from[seed % 2].signature);
		world_destroy(w);
	}
}

/* Ranks 1 and 2 both believe to be the one that fills the slot, before rank 0 says which is right. */
static void slot_of_two(uint32_t right)
{
	struct world *w = world_create(3, 1);
	struct muster_desc from[2] = { send_to(0, 0, 1), send_to(0, 0, 2) }, sink = receive(1);
	uint32_t r;

	from[1].signature.digest++;
	sink.signature = from[right - 1].signature;
	world_start(w);
	for (r = 0; r < 2; r++) {
		world_post(w, r + 1, &from[r], 1);
		world_run(w);
	}
	assert_int_equal(w->nodes[0].nr_cqes, 0);
	world_post(w, 0, &sink, 1);
	world_run(w);
	expect_failed(w, 0, MUSTER_STATUS_MISMATCH, 3 - right);
	world_destroy(w);
}

static void of_two_operations_in_one_slot_the_one_that_does_not_agree_is_named(void **state)
{
	(void)state;
	slot_of_two(1);
	slot_of_two(2);
}

static void other_stages_and_totals_are_mismatches(void **state)
{
	uint32_t way;

	(void)state;
	for (way = 0; way < 2; way++) {
		struct world *w = world_create(2, 1);
		struct muster_desc sink = receive(1), from = send_to(0, 0, 1);

		if (way)
			from.stage = 1;
		else
			from.length = from.inline_len = 16;
		world_start(w);
		world_post(w, 1, &from, 1);
		world_run(w);
		world_post(w, 0, &sink, 1);
		world_run(w);
		expect_failed(w, 0, MUSTER_STATUS_MISMATCH, 1);
		expect_failed(w, 1, MUSTER_STATUS_MISMATCH, 1);
		world_destroy(w);
	}
}

static void a_slot_that_nobody_awaits_contradicts_the_sequence(void **state)
{
	struct world *w = world_create(2, 1);
	struct muster_desc sink = receive(1), from = send_to(0, 5, 1);

	(void)state;
	world_start(w);
	world_post(w, 0, &sink, 1);
	world_post(w, 1, &from, 1);
	world_run(w);
	expect_failed(w, 0, MUSTER_STATUS_PROTOCOL, 1);
	world_destroy(w);
}

static void an_operand_that_no_packet_brings_contradicts_the_sequence(void **state)
{
	struct world *w = world_create(2, 1);
	struct muster_desc sink = receive(1), from = send_to(0, 0, 1);

	(void)state;
	sink.flags |= MUSTER_DESC_REDUCE;
	world_start(w);
	world_post(w, 0, &sink, 1);
	world_post(w, 1, &from, 1);
	world_run(w);
	expect_failed(w, 0, MUSTER_STATUS_PROTOCOL, 1);
	world_destroy(w);
}

static void an_abort_reaches_every_member_and_is_not_repeated(void **state)
{
	uint64_t seed;
	uint32_t r;

	(void)state;
	for (seed = 0; seed < 40; seed++) {
		struct world *w = world_create(8, seed);
		struct muster_desc sink[3] = { receive(1), receive(1), receive(1) };

		w->refuse_percent = seed % 2 * 50;
		world_start(w);
		for (r = 0; r < 3; r++) {
			sink[r].cookie = r;
			world_post(w, 4, &sink[r], 1);
		}
		assert_int_equal(muster_engine_abort(w->nodes[2].engine, WORLD_VP, WORLD_JOB,
						     WORLD_CONTEXT, MUSTER_STATUS_ABORTED, 2), 0);
		world_run(w);
		for (r = 0; r < 8; r++)
			expect_failed(w, r, MUSTER_STATUS_ABORTED, 2);
		assert_int_equal(w->nr_sent[MUSTER_PACKET_ABORT], 7);
		assert_int_equal(w->nodes[4].nr_cqes, 4);
		for (r = 0; r < 3; r++) {
			assert_int_equal(w->nodes[4].cqes[r].cookie, r);
			assert_int_equal(w->nodes[4].cqes[r].culprit, 2);
			assert_int_equal(w->nodes[4].cqes[r].status,
					 r ? MUSTER_STATUS_FLUSHED : MUSTER_STATUS_ABORTED);
		}
		world_destroy(w);
	}
}

static void what_is_posted_to_a_failed_context_is_flushed(void **state)
{
	struct world *w = world_create(2, 1);
	struct muster_desc sink = receive(1);
	struct muster_context_state query;

	(void)state;
	world_start(w);
	muster_engine_abort(w->nodes[0].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT,
			    MUSTER_STATUS_ABORTED, 0);
	world_run(w);
	world_post(w, 0, &sink, 1);
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, 2);
	assert_int_equal(w->nodes[0].cqes[0].kind, MUSTER_CQE_CONTEXT);
	assert_int_equal(w->nodes[0].cqes[1].kind, MUSTER_CQE_SEQUENCE);
	assert_int_equal(w->nodes[0].cqes[1].status, MUSTER_STATUS_FLUSHED);
	/* The first cause stays. */
	muster_engine_peer_lost(w->nodes[0].engine, 1);
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, 2);
	muster_engine_context_query(w->nodes[0].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT, &query);
	assert_int_equal(query.failed, MUSTER_STATUS_ABORTED);
	assert_int_equal(query.culprit, 0);
	world_destroy(w);
}

static void a_lost_peer_is_named_by_all(void **state)
{
	struct world *w = world_create(4, 9);
	struct muster_desc sink = receive(1);
	uint32_t r;

	(void)state;
	world_start(w);
	for (r = 0; r < 3; r++)
		world_post(w, r, &sink, 1);
	world_run(w);
	w->nodes[3].dead = true;
	muster_engine_peer_lost(w->nodes[1].engine, 3);
	world_run(w);
	for (r = 0; r < 3; r++)
		expect_failed(w, r, MUSTER_STATUS_PEER_LOST, 3);
	world_destroy(w);
}

static void a_peer_that_the_wire_refuses_is_lost(void **state)
{
	struct world *w = world_create(2, 9);
	struct muster_desc from = send_to(1, 0, 1);

	(void)state;
	world_start(w);
	w->nodes[1].dead = true;
	world_post(w, 0, &from, 1);
	world_run(w);
	expect_failed(w, 0, MUSTER_STATUS_PEER_LOST, 1);
	world_destroy(w);
}

static void memory_that_is_refused_ends_the_context_naming_its_owner(void **state)
{
	uint32_t way;

	(void)state;
	for (way = 0; way < 3; way++) {
		struct world *w = world_create(2, 1);
		struct muster_desc sink = receive(1), from = send_to(0, 0, 1);

		w->map = way == 2;
		w->read_only = way == 1;
		if (way != 1)
			sink.store_addr = WORLD_MEMORY - 4;
		world_start(w);
		world_post(w, 0, &sink, 1);
		world_post(w, 1, &from, 1);
		world_run(w);
		expect_failed(w, 0, MUSTER_STATUS_MEMORY, 0);
		expect_failed(w, 1, MUSTER_STATUS_MEMORY, 0);
		world_destroy(w);
	}
}

/* Each of the ranges in turn, in place and by copies, with packets and by reference. */
static void large_ranges_that_are_refused_end_the_context(void **state)
{
	enum { LENGTH = 30000, RANGES = 5 };
	uint32_t way, modes;

	(void)state;
	for (way = 0; way < RANGES; way++)
		for (modes = 0; modes < 4; modes++) {
			struct world *w = world_create(2, way);
			struct muster_desc from = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT, 0,
							    LENGTH, 8192);
			struct muster_desc sink[2] = {
				desc_rdma(MUSTER_DESC_CH, 0, LENGTH, 8192),
				desc_rdma(MUSTER_DESC_CT | MUSTER_DESC_REDUCE, 1, LENGTH, 8192),
			};
			uint64_t outside = WORLD_MEMORY - 10;

			w->map = modes & 1;
			w->share = modes & 2;
			desc_load(&from, way == 0 ? outside : 0);
			desc_to(&from, 0, 0);
			desc_load(&sink[0], way == 1 ? outside : 0);
			desc_store(&sink[0], way == 2 ? outside : LENGTH);
			desc_load(&sink[1], way == 3 ? outside : 0);
			desc_store(&sink[1], way == 4 ? outside : 2 * LENGTH);
			world_start(w);
			world_post(w, 0, sink, 2);
			world_post(w, 1, &from, 1);
			world_run(w);
			expect_failed(w, 0, MUSTER_STATUS_MEMORY, way == 0);
			expect_failed(w, 1, MUSTER_STATUS_MEMORY, way == 0);
			world_destroy(w);
		}
}

/* Node 1 sends from its memory, into that of node 0. */
static void start_pair(struct world *w, struct muster_desc *from, struct muster_desc *sink)
{
	desc_load(from, 0);
	desc_to(from, 0, 0);
	desc_store(sink, 0);
	world_start(w);
	world_post(w, 0, sink, 1);
	world_post(w, 1, from, 1);
}

static void a_large_operand_that_no_packet_brings_contradicts_the_sequence(void **state)
{
	struct world *w = world_create(2, 1);
	struct muster_desc from = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT, 0, 9000, 9000);
	struct muster_desc sink = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_REDUCE,
					    1, 9000, 9000);

	(void)state;
	sink.length = from.length = 8000;
	start_pair(w, &from, &sink);
	world_run(w);
	expect_failed(w, 0, MUSTER_STATUS_PROTOCOL, 1);
	world_destroy(w);
}

static void without_memory_nothing_is_created_and_nothing_leaks(void **state)
{
	struct muster_engine_config config = { .node = 0, .model.units = 2 };
	struct world *w = world_create(1, 1);
	uint32_t left;
	int ret = -ENOMEM;

	(void)state;
	w->allocs_limited = true;
	for (left = 0; ret; left++) {
		w->allocs_left = left;
		ret = muster_engine_create(&config, &world_table, &w->nodes[0],
					   &w->nodes[0].engine);
		assert_true(!ret || (ret == -ENOMEM && !w->allocated));
	}
	assert_int_equal(left, 1 + 1 + 2 * 5);
	w->allocs_left = 0;
	assert_int_equal(muster_engine_vp_open(w->nodes[0].engine, WORLD_VP), -ENOMEM);
	w->allocs_left = 1;
	assert_int_equal(muster_engine_vp_open(w->nodes[0].engine, WORLD_VP), 0);
	for (left = 0, ret = -ENOMEM; ret; left++) {
		w->allocs_left = left;
		ret = world_context_open(w, 0, WORLD_CONTEXT);
		assert_true(!ret || ret == -ENOMEM);
	}
	assert_int_equal(left, 1 + 4);	/* the context, the table of its members, and the book of all in two */
	world_destroy(w);
}

/* Steps of an engine without memory, until it has none for its sequence any more or has tried often. */
static uint32_t try_without_memory(struct world *w, uint32_t often)
{
	uint32_t tries;

	w->allocs_limited = true;
	for (tries = 0; tries < often && !world_counters(w, 0).contexts_failed; tries++) {
		w->allocs_left = 0;
		muster_engine_step(w->nodes[0].engine, 100);
	}
	w->allocs_limited = false;
	return tries;
}

/* A broadcast from node 1, for which node 0 finds no memory so often. */
static struct world *broadcast_without_memory(uint32_t often, uint32_t *tries)
{
	struct muster_desc from = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END,
					    0, 9000, 9000);
	struct muster_desc sink = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END,
					    1, 9000, 9000);
	struct world *w = world_create(2, 1);

	start_pair(w, &from, &sink);
	*tries = try_without_memory(w, often);
	world_run(w);
	return w;
}

static void a_sequence_without_memory_is_tried_again_and_in_the_end_fails(void **state)
{
	uint32_t tries;
	struct world *w;

	(void)state;
	w = broadcast_without_memory(1000, &tries);
	assert_int_equal(tries, 1000);
	assert_false(world_counters(w, 0).contexts_failed);
	assert_int_equal(last_cqe(w, 0)->status, MUSTER_STATUS_OK);
	world_destroy(w);

	w = broadcast_without_memory(2 * TRIES_MAX, &tries);
	assert_int_equal(tries, TRIES_MAX);
	assert_int_equal(world_counters(w, 0).retries, TRIES_MAX);
	expect_failed(w, 0, MUSTER_STATUS_STARVED, 0);
	expect_failed(w, 1, MUSTER_STATUS_STARVED, 0);
	world_destroy(w);
}

static void an_abort_that_makes_no_sense_is_refused(void **state)
{
	struct world *w = world_create(2, 1);
	struct muster_engine *engine;
	struct muster_context_state query;

	(void)state;
	world_start(w);
	engine = w->nodes[0].engine;
	assert_int_equal(muster_engine_abort(engine, WORLD_VP, WORLD_JOB, 1, 3, 0), -ENOENT);
	assert_int_equal(muster_engine_context_query(engine, WORLD_VP, WORLD_JOB, 1, &query),
			 -ENOENT);
	assert_int_equal(muster_engine_abort(engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT, 0, 0),
			 -EINVAL);
	assert_int_equal(muster_engine_abort(engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT, 3, 2),
			 -EINVAL);
	muster_engine_context_close(engine, WORLD_VP, WORLD_JOB, 1);
	assert_int_equal(muster_engine_context_query(engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT,
						     &query), 0);
	assert_int_equal(query.failed, 0);
	world_destroy(w);
}

/* In the middle of large transfers: every block comes back, and another context goes on. */
static void a_failure_frees_what_the_context_held(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 0; seed < 40; seed++) {
		struct world *w = world_create(2, seed);
		struct muster_desc from = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT |
						    MUSTER_DESC_COLL_END, 0, 200000, 20000);
		struct muster_desc sink = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT |
						    MUSTER_DESC_COLL_END, 1, 200000, 20000);
		uint32_t turns = seed * 3, r;

		w->model.buffer = 4 * MUSTER_PULSE_MAX;
		desc_load(&from, 0);
		desc_to(&from, 1, 0);
		desc_store(&sink, 0);
		world_start(w);
		world_post(w, 0, &from, 1);
		world_post(w, 1, &sink, 1);
		while (turns--) {
			if (w->nr_flight)
				world_deliver_one(w, world_random(w, w->nr_flight));
			muster_engine_step(w->nodes[turns % 2].engine, 3);
		}
		muster_engine_abort(w->nodes[0].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT,
				    MUSTER_STATUS_ABORTED, 0);
		world_run(w);
		expect_failed(w, 1, MUSTER_STATUS_ABORTED, 0);
		for (r = 0; r < 2; r++) {
			muster_engine_context_close(w->nodes[r].engine, WORLD_VP, WORLD_JOB,
						    WORLD_CONTEXT);
			assert_int_equal(world_context_open(w, r, WORLD_CONTEXT), 0);
			memset(w->nodes[r].memory, r, 200000);
		}
		world_post(w, 0, &from, 1);
		world_post(w, 1, &sink, 1);
		world_run(w);
		assert_int_equal(last_cqe(w, 1)->status, MUSTER_STATUS_OK);
		assert_memory_equal(w->nodes[0].memory, w->nodes[1].memory, 200000);
		world_destroy(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_signature_is_a_mismatch_that_names_its_rank_to_all),
		cmocka_unit_test(who_has_lost_the_network_names_nobody),
		cmocka_unit_test(a_mismatch_is_judged_by_its_own_sequence_not_by_the_one_before),
		cmocka_unit_test(two_broadcasts_with_different_roots_both_fail),
		cmocka_unit_test(of_two_operations_in_one_slot_the_one_that_does_not_agree_is_named),
		cmocka_unit_test(other_stages_and_totals_are_mismatches),
		cmocka_unit_test(a_slot_that_nobody_awaits_contradicts_the_sequence),
		cmocka_unit_test(an_operand_that_no_packet_brings_contradicts_the_sequence),
		cmocka_unit_test(an_abort_reaches_every_member_and_is_not_repeated),
		cmocka_unit_test(what_is_posted_to_a_failed_context_is_flushed),
		cmocka_unit_test(a_lost_peer_is_named_by_all),
		cmocka_unit_test(a_peer_that_the_wire_refuses_is_lost),
		cmocka_unit_test(memory_that_is_refused_ends_the_context_naming_its_owner),
		cmocka_unit_test(large_ranges_that_are_refused_end_the_context),
		cmocka_unit_test(a_large_operand_that_no_packet_brings_contradicts_the_sequence),
		cmocka_unit_test(without_memory_nothing_is_created_and_nothing_leaks),
		cmocka_unit_test(a_sequence_without_memory_is_tried_again_and_in_the_end_fails),
		cmocka_unit_test(an_abort_that_makes_no_sense_is_refused),
		cmocka_unit_test(a_failure_frees_what_the_context_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
