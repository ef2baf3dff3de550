// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Members that leave: who closes in good order is not missed for what it had ended,
 * and is for what it had not, whether it said so itself or its node did.
 */
#include "test_failure.h"

/* Rank 1 asked for credit, has ended all that it began, and is gone. */
static void a_member_that_leaves_in_good_order_is_not_missed(void **state)
{
	struct world *w = world_create(3, 1);
	struct muster_desc from = send_to(0, 0, 1), sink = receive(2), late = send_to(0, 1, 2);
	struct muster_desc idle = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_CT, 0, NULL);
	uint32_t i;

	(void)state;
	idle.length = 0;
	world_start(w);
	for (i = 0; i < MUSTER_WINDOW / 2; i++)
		world_post(w, 1, &idle, 1);
	world_post(w, 1, &from, 1);
	world_run(w);
	muster_engine_context_close(w->nodes[1].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT);
	world_run(w);
	w->nodes[1].dead = true;
	muster_engine_peer_lost(w->nodes[0].engine, 1);	/* its machine went down, too */

	for (i = 0; i < MUSTER_WINDOW / 2; i++) {
		world_post(w, 0, &idle, 1);
		world_post(w, 2, &idle, 1);
	}
	world_post(w, 0, &sink, 1);
	world_post(w, 2, &late, 1);
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, 1);
	assert_int_equal(w->nodes[0].cqes[0].status, MUSTER_STATUS_OK);
	assert_int_equal(world_counters(w, 0).credits, 1);	/* to rank 2, who asked as well */
	/* The next one would need it. */
	world_post(w, 0, &sink, 1);
	world_run(w);
	expect_failed(w, 0, MUSTER_STATUS_PEER_LOST, 1);
	world_destroy(w);
}

/* The wire takes nothing while rank 1 closes, whether it has failed or not. */
static void a_member_that_closes_tells_all_even_if_the_wire_was_full(void **state)
{
	struct muster_desc sink = receive(1);
	uint32_t r, fails;

	(void)state;
	for (fails = 0; fails < 2; fails++) {
		struct world *w = world_create(4, 1);
		uint32_t status = fails ? MUSTER_STATUS_ABORTED : MUSTER_STATUS_PEER_LOST;

		world_start(w);
		for (r = 0; r < 4; r++)
			world_post(w, r, &sink, 1);
		world_run(w);
		w->refuse_percent = 100;
		if (fails)
			muster_engine_abort(w->nodes[1].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT,
					    status, 1);
		muster_engine_context_close(w->nodes[1].engine, WORLD_VP, WORLD_JOB,
					    WORLD_CONTEXT);
		assert_true(muster_engine_step(w->nodes[1].engine, 100));
		assert_int_equal(world_context_open(w, 1, WORLD_CONTEXT + 1), 0);
		muster_engine_vp_close(w->nodes[1].engine, WORLD_VP);
		w->refuse_percent = 0;
		world_run(w);
		for (r = 0; r < 4; r++)
			if (r != 1)
				expect_failed(w, r, status, 1);
		world_destroy(w);
	}
}

/* Rank 1 sends, closes and dies; the wire has carried the farewell alone, or both. */
static void a_member_that_left_is_missed_if_what_it_had_sent_is_lost(void **state)
{
	struct muster_desc from = send_to(0, 0, 1), sink = receive(1);
	uint32_t both;

	(void)state;
	for (both = 0; both < 2; both++) {
		struct world *w = world_create(2, 1);

		world_start(w);
		world_post(w, 1, &from, 1);
		muster_engine_step(w->nodes[1].engine, 100);
		muster_engine_context_close(w->nodes[1].engine, WORLD_VP, WORLD_JOB,
					    WORLD_CONTEXT);
		assert_int_equal(w->nr_flight, 2);
		world_deliver_one(w, 1);
		if (both)
			world_deliver_one(w, 0);
		w->nodes[1].dead = true;
		muster_engine_peer_lost(w->nodes[0].engine, 1);
		world_post(w, 0, &sink, 1);
		if (!both)
			free(w->flight[--w->nr_flight]);
		world_run(w);
		if (both)
			assert_int_equal(last_cqe(w, 0)->status, MUSTER_STATUS_OK);
		else
			expect_failed(w, 0, MUSTER_STATUS_PEER_LOST, 1);
		world_destroy(w);
	}
}

/* But one that has failed still tells why, and one that finds no room on the board its base. */
static void who_leaves_with_its_node_says_no_farewell(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct world *w = world_create(3, 1);
		bool fails = i & 1;

		w->board = i & 2;
		world_start(w);
		muster_engine_leave(w->nodes[1].engine);
		if (fails)
			muster_engine_abort(w->nodes[1].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT,
					    MUSTER_STATUS_ABORTED, 1);
		muster_engine_context_close(w->nodes[1].engine, WORLD_VP, WORLD_JOB,
					    WORLD_CONTEXT);
		muster_engine_step(w->nodes[1].engine, 100);
		assert_int_equal(w->nr_flight, fails || !w->board ? 2 : 0);
		world_run(w);
		world_destroy(w);
	}
}

/* Node 2 has never heard of node 1, which had ended what node 2 is at, or had not. */
static void who_left_is_not_missed_below_its_base(void **state)
{
	struct muster_desc idle = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_CT, 0, NULL);
	struct muster_desc from = send_to(2, 0, 1), sink = receive(1);

	(void)state;
	idle.length = 0;
	for (uint32_t ended = 0; ended < 2; ended++) {
		struct world *w = world_create(3, 1);

		w->board = true;
		world_start(w);
		if (ended)
			world_post(w, 1, &idle, 1);
		world_run(w);
		muster_engine_leave(w->nodes[1].engine);
		muster_engine_context_close(w->nodes[1].engine, WORLD_VP, WORLD_JOB,
					    WORLD_CONTEXT);
		w->nodes[1].dead = true;
		world_post(w, 2, &sink, 1);
		muster_engine_peer_left(w->nodes[2].engine, 1);
		world_post(w, 0, &from, 1);
		world_run(w);
		if (ended)
			assert_int_equal(last_cqe(w, 2)->status, MUSTER_STATUS_OK);
		else
			expect_failed(w, 2, MUSTER_STATUS_PEER_LOST, 1);
		world_destroy(w);
	}
}

static void a_node_that_left_ends_what_it_has_not_ended(void **state)
{
	struct world *w = world_create(2, 1);
	struct muster_desc sink = receive(1);

	(void)state;
	world_start(w);
	world_post(w, 0, &sink, 1);
	world_run(w);
	w->nodes[1].dead = true;
	muster_engine_peer_left(w->nodes[0].engine, 1);
	world_run(w);
	expect_failed(w, 0, MUSTER_STATUS_PEER_LOST, 1);
	world_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_member_that_leaves_in_good_order_is_not_missed),
		cmocka_unit_test(a_member_that_closes_tells_all_even_if_the_wire_was_full),
		cmocka_unit_test(a_member_that_left_is_missed_if_what_it_had_sent_is_lost),
		cmocka_unit_test(who_leaves_with_its_node_says_no_farewell),
		cmocka_unit_test(who_left_is_not_missed_below_its_base),
		cmocka_unit_test(a_node_that_left_ends_what_it_has_not_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
