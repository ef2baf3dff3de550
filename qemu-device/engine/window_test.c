// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The window between members, and the queues that are full: nobody gets further
 * ahead than it may, and nobody waits forever.
 */
#include "test_world.h"

#include "internal.h"

enum { RESULT = 4096 };

static void post_send(struct world *w, uint32_t from, uint32_t to, double value)
{
	struct muster_desc desc = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END,
					  0, &value);

	desc_to(&desc, to, 0);
	world_post(w, from, &desc, 1);
}

static void post_receive(struct world *w, uint32_t at)
{
	struct muster_desc desc = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END,
					  1, NULL);

	desc_store(&desc, RESULT);
	world_post(w, at, &desc, 1);
}

static void post_nothing(struct world *w, uint32_t at)
{
	struct muster_desc desc = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_CT, 0, NULL);

	desc.length = 0;
	world_post(w, at, &desc, 1);
}

/* window: of the engines; 0: as far as there is. */
static void run_ahead(uint32_t window)
{
	uint32_t i, most = window ? window : MUSTER_WINDOW;
	struct world *w = world_create(2, 1);

	w->model.window = window;
	world_start(w);
	for (i = 0; i < MUSTER_SEQ_QUEUE_MAX; i++)
		post_send(w, 0, 1, i);
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, most);
	assert_int_equal(world_counters(w, 1).drop_window, 0);
	/* Each number ended there lets one more go. */
	for (i = 0; i < MUSTER_SEQ_QUEUE_MAX; i++) {
		assert_int_equal(w->nodes[0].nr_cqes,
				 i + most < MUSTER_SEQ_QUEUE_MAX ? i + most : MUSTER_SEQ_QUEUE_MAX);
		post_receive(w, 1);
		world_run(w);
		assert_true(*world_double(w, 1, RESULT) == i);
	}
	world_destroy(w);
}

static void a_root_runs_ahead_by_the_window_and_no_further(void **state)
{
	(void)state;
	for (uint32_t window = 0; window <= MUSTER_WINDOW; window++)
		run_ahead(window);
}

static void a_broadcast_root_goes_on_by_credit_alone(void **state)
{
	uint64_t seed;
	uint32_t i, r;

	(void)state;
	for (seed = 0; seed < 40; seed++) {
		struct world *w = world_create(2, seed);

		w->refuse_percent = seed % 3 * 25;
		world_start(w);
		for (i = 0; i < 200; i++) {
			while (w->nodes[0].nr_cqes + MUSTER_SEQ_QUEUE_MAX <= i) {
				post_receive(w, 1);
				world_run(w);
			}
			post_send(w, 0, 1, i);
			if (seed & 1)
				muster_engine_step(w->nodes[0].engine, 10);
		}
		for (r = w->nodes[1].nr_cqes; r < 200; r++) {
			post_receive(w, 1);
			world_run(w);
			assert_true(*world_double(w, 1, RESULT) == r);
		}
		assert_int_equal(w->nodes[0].nr_cqes, 200);
		assert_true(world_counters(w, 1).credits > 200 / MUSTER_WINDOW);
		assert_int_equal(world_counters(w, 1).drop_window, 0);
		world_destroy(w);
	}
}

/* Number 20 is the first that these two share: the sender knows nothing of the other's base. */
static void a_held_send_asks_a_member_that_it_has_not_heard_from(void **state)
{
	struct world *w = world_create(2, 7);
	uint32_t i;

	(void)state;
	world_start(w);
	for (i = 0; i < 20; i++) {
		post_nothing(w, 0);
		world_run(w);
	}
	post_send(w, 0, 1, 42);
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, 0);
	for (i = 0; i < 20; i++) {
		post_nothing(w, 1);
		world_run(w);
	}
	assert_int_equal(w->nodes[0].nr_cqes, 1);
	post_receive(w, 1);
	world_run(w);
	assert_true(*world_double(w, 1, RESULT) == 42);
	/* The question, its answer, and the one that number 20 asked for. */
	assert_int_equal(w->nr_sent[MUSTER_PACKET_CREDIT], 3);
	world_destroy(w);
}

/*
 * As if both had ended so many numbers, or some more, in which neither spoke to the other: the
 * next one that ends is one at which ages are looked at.
 */
static void leap(struct world *w, uint32_t numbers)
{
	struct context *ctx;
	uint32_t node;

	for (node = 0; node < 2; node++) {
		ctx = muster_context_find(w->nodes[node].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT);
		ctx->base = (ctx->base + numbers) / BASE_AGE_EACH * BASE_AGE_EACH + BASE_AGE_EACH - 1;
		post_nothing(w, node);
		post_nothing(w, node);
	}
	world_run(w);
}

static void who_has_never_spoken_can_do_so_after_any_number(void **state)
{
	uint32_t leaps, i;

	(void)state;
	for (leaps = 0; leaps < 40; leaps++) {
		struct world *w = world_create(2, leaps);

		world_start(w);
		for (i = 0; i < leaps; i++)
			leap(w, 1u << 28);
		/* The one is ahead when it is asked. */
		for (i = 0; i < 4; i++)
			post_nothing(w, 1);
		world_run(w);
		for (i = 0; i < 4; i++)
			post_nothing(w, 0);
		for (i = 0; i < 12; i++) {
			post_send(w, 0, 1, i);
			post_receive(w, 1);
		}
		world_run(w);
		assert_int_equal(w->nodes[0].nr_cqes, 12);
		assert_int_equal(w->nodes[1].nr_cqes, 12);
		assert_true(*world_double(w, 1, RESULT) == 11);
		assert_int_equal(world_counters(w, 1).drop_window, 0);
		world_destroy(w);
	}
}

static void a_full_completion_queue_holds_the_sequence_back(void **state)
{
	struct world *w = world_create(2, 3);
	uint32_t i;

	(void)state;
	w->cq_max = 1;
	world_start(w);
	for (i = 0; i < 3; i++) {
		post_send(w, 0, 1, i);
		post_receive(w, 1);
	}
	world_run(w);
	assert_int_equal(w->nodes[1].nr_cqes, 1);
	assert_true(*world_double(w, 1, RESULT) == 1);	/* stored, not completed */
	for (i = 1; i < 3; i++) {
		w->nodes[0].nr_cqes = 0;
		w->nodes[1].nr_cqes = 0;
		world_run(w);
		assert_int_equal(w->nodes[1].cqes[0].number, i);
	}
	world_destroy(w);
}

static void a_full_queue_takes_no_more_sequences(void **state)
{
	struct world *w = world_create(2, 3);
	struct muster_desc desc = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_CT, 1, NULL);
	uint32_t i;

	(void)state;
	world_start(w);
	for (i = 0; i < MUSTER_SEQ_QUEUE_MAX; i++)
		post_receive(w, 1);
	assert_int_equal(muster_engine_post(w->nodes[1].engine, WORLD_VP, &desc, 1, NULL), -EAGAIN);
	post_send(w, 0, 1, 0);
	world_run(w);
	post_receive(w, 1);
	world_destroy(w);
}

static void a_query_tells_what_a_context_waits_for(void **state)
{
	struct world *w = world_create(2, 3);
	struct muster_context_state query;

	(void)state;
	world_start(w);
	post_receive(w, 1);
	world_run(w);
	assert_int_equal(muster_engine_context_query(w->nodes[1].engine, WORLD_VP, WORLD_JOB,
						     WORLD_CONTEXT, &query), 0);
	assert_int_equal(query.number, 0);
	assert_int_equal(query.queued, 1);
	assert_int_equal(query.running, 1);
	assert_int_equal(query.waiting, 1);
	assert_int_equal(query.cursor, 0);
	assert_int_equal(query.failed, 0);
	world_destroy(w);
}

/* Steps of `budget` until nothing is left; none may do more than it was allowed. */
static void step_within(struct world *w, uint32_t node, uint32_t budget)
{
	struct muster_engine_counters before = world_counters(w, node), after;
	bool more;

	do {
		more = muster_engine_step(w->nodes[node].engine, budget);
		after = world_counters(w, node);
		assert_in_range(after.descriptors_executed - before.descriptors_executed +
				after.packets_out - before.packets_out, 0, budget);
		before = after;
	} while (more);
}

/* The answer to a packet may take the last of a step: the descriptor then waits for the next. */
static void a_step_does_no_more_than_its_budget(void **state)
{
	struct muster_desc idle[MUSTER_SEQ_DESCS_MAX], send, sink;
	uint32_t budget, i;

	(void)state;
	for (i = 0; i < MUSTER_SEQ_DESCS_MAX; i++) {
		idle[i] = desc_mp(i == 0 ? MUSTER_DESC_CH : 0, 0, NULL);
		idle[i].length = 0;
	}
	idle[i - 1].flags |= MUSTER_DESC_CT;
	send = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT, 0, 4096, 4096);
	desc_load(&send, 0);
	desc_to(&send, 1, 0);
	sink = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT, 1, 4096, 4096);
	desc_store(&sink, RESULT);
	for (budget = 1; budget < 6; budget++) {
		struct world *w = world_create(2, budget);

		w->map = w->share = true;
		world_start(w);
		world_post(w, 0, &send, 1);
		world_run(w);
		world_post(w, 1, &sink, 1);
		for (i = 0; i < MUSTER_SEQ_QUEUE_MAX - 1; i++)
			world_post(w, 1, idle, MUSTER_SEQ_DESCS_MAX);
		step_within(w, 1, budget);
		assert_int_equal(world_counters(w, 1).sequences_ended, MUSTER_SEQ_QUEUE_MAX);
		world_destroy(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_root_runs_ahead_by_the_window_and_no_further),
		cmocka_unit_test(a_broadcast_root_goes_on_by_credit_alone),
		cmocka_unit_test(a_held_send_asks_a_member_that_it_has_not_heard_from),
		cmocka_unit_test(who_has_never_spoken_can_do_so_after_any_number),
		cmocka_unit_test(a_full_completion_queue_holds_the_sequence_back),
		cmocka_unit_test(a_full_queue_takes_no_more_sequences),
		cmocka_unit_test(a_query_tells_what_a_context_waits_for),
		cmocka_unit_test(a_step_does_no_more_than_its_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
