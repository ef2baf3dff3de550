// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a context says that it waits for, by cause; and counters that are kept elsewhere.
 */
#include "test_world.h"

enum { RESULT = 4096, LARGE = 3 * MUSTER_MTU };

#define WHOLE (MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END)

static void post_inline(struct world *w, uint32_t from, uint32_t to)
{
	double value = 1;
	struct muster_desc desc = desc_mp(WHOLE, 0, &value);

	desc_to(&desc, to, 0);
	world_post(w, from, &desc, 1);
}

static void post_receive(struct world *w, uint32_t at, uint8_t nr)
{
	struct muster_desc desc = desc_mp(WHOLE | MUSTER_DESC_REDUCE, nr, NULL);
	double value = 0;

	desc.inline_len = sizeof(value);
	memcpy(desc.data, &value, sizeof(value));
	desc_store(&desc, RESULT);
	world_post(w, at, &desc, 1);
}

static struct muster_look_waits waits_of(const struct world *w, uint32_t node)
{
	struct muster_look_waits waits;

	assert_int_equal(muster_engine_waits(w->nodes[node].engine, WORLD_VP, WORLD_JOB,
					     WORLD_CONTEXT, &waits), 0);
	return waits;
}

static void assert_wait(const struct muster_look_waits *waits, uint32_t i, uint8_t cause,
			uint32_t member)
{
	assert_true(i < waits->nr);
	assert_int_equal(waits->waits[i].cause, cause);
	assert_int_equal(waits->waits[i].rank, member);
}

static void who_runs_nothing_waits_for_nothing(void **state)
{
	struct world *w = world_create(2, 1);
	struct muster_look_waits waits;

	(void)state;
	world_start(w);
	assert_int_equal(muster_engine_waits(w->nodes[0].engine, WORLD_VP, WORLD_JOB,
					     WORLD_CONTEXT, &waits), -ENOENT);
	assert_int_equal(muster_engine_waits(w->nodes[0].engine, WORLD_VP, WORLD_JOB,
					     WORLD_CONTEXT + 1, &waits), -ENOENT);
	world_destroy(w);
}

static void a_slot_that_nothing_came_for_is_named(void **state)
{
	struct world *w = world_create(3, 1);
	struct muster_look_waits waits;

	(void)state;
	world_start(w);
	post_receive(w, 2, 2);
	post_inline(w, 0, 2);
	world_run(w);
	waits = waits_of(w, 2);
	assert_int_equal(waits.nr, 1);
	assert_wait(&waits, 0, MUSTER_LOOK_SLOT, MUSTER_LOOK_NOBODY);
	assert_int_equal(waits.waits[0].slot, 1);
	assert_int_equal(waits.number, 0);
	world_destroy(w);
}

static void a_window_that_does_not_move_is_named(void **state)
{
	struct world *w = world_create(2, 1);
	struct muster_look_waits waits;
	uint32_t i;

	(void)state;
	world_start(w);
	for (i = 0; i <= MUSTER_WINDOW; i++)
		post_inline(w, 0, 1);
	world_run(w);
	waits = waits_of(w, 0);
	assert_int_equal(waits.nr, 1);
	assert_wait(&waits, 0, MUSTER_LOOK_WINDOW, 1);
	assert_int_equal(waits.number, MUSTER_WINDOW);
	world_destroy(w);
}

static void a_send_that_asked_waits_for_its_answer(void **state)
{
	struct world *w = world_create(2, 1);
	struct muster_desc desc = desc_rdma(WHOLE, 0, LARGE, LARGE);
	struct muster_look_waits waits;

	(void)state;
	world_start(w);
	desc_load(&desc, RESULT);
	desc_to(&desc, 1, 0);
	world_post(w, 0, &desc, 1);
	world_run(w);
	waits = waits_of(w, 0);
	assert_int_equal(waits.nr, 1);
	assert_wait(&waits, 0, MUSTER_LOOK_GRANT, 1);
	world_destroy(w);
}

static void a_full_completion_queue_is_named(void **state)
{
	struct world *w = world_create(2, 3);
	struct muster_look_waits waits;

	(void)state;
	w->cq_max = 1;
	world_start(w);
	post_inline(w, 0, 1);
	post_inline(w, 0, 1);
	world_run(w);
	waits = waits_of(w, 0);
	assert_int_equal(waits.nr, 1);
	assert_wait(&waits, 0, MUSTER_LOOK_QUEUE, 0);
	w->nodes[0].nr_cqes = 0;
	world_destroy(w);
}

static void what_the_wire_refuses_is_named(void **state)
{
	struct world *w = world_create(2, 1);
	struct muster_look_waits waits;

	(void)state;
	world_start(w);
	w->refuse_percent = 100;
	post_inline(w, 0, 1);
	muster_engine_step(w->nodes[0].engine, 100);
	waits = waits_of(w, 0);
	assert_int_equal(waits.nr, 1);
	assert_wait(&waits, 0, MUSTER_LOOK_WIRE, 1);
	w->refuse_percent = 0;
	world_destroy(w);
}

static void counters_go_on_where_they_are_put(void **state)
{
	struct world *w = world_create(2, 1);
	struct muster_engine_counters shown;

	(void)state;
	world_start(w);
	post_inline(w, 0, 1);
	world_run(w);
	muster_engine_counters_put(w->nodes[0].engine, &shown);
	assert_int_equal(shown.packets_out, 1);
	post_inline(w, 0, 1);
	world_run(w);
	assert_int_equal(shown.packets_out, 2);
	assert_int_equal(shown.sequences_ended, 2);
	assert_int_equal(world_counters(w, 0).packets_out, 2);
	world_destroy(w);
}

/* However far ahead of its member's numbers it is. */
static void a_write_waits_for_the_wire_and_an_answer_and_for_no_window(void **state)
{
	struct world *w = world_create(2, 1);
	struct muster_desc idle = desc_rdma(WHOLE, 0, 0, 64), put = desc_rdma(WHOLE, 0, 64, 64);
	struct muster_look_waits waits;

	(void)state;
	desc_load(&put, 0);
	desc_to(&put, 1, 0);
	put.range.remote_key = WORLD_KEY;
	world_start(w);
	for (uint32_t i = 0; i < MUSTER_WINDOW; i++)
		world_post(w, 0, &idle, 1);
	w->nodes[1].full = true;
	world_post(w, 0, &put, 1);
	muster_engine_step(w->nodes[0].engine, 100);
	waits = waits_of(w, 0);
	assert_int_equal(waits.nr, 1);
	assert_wait(&waits, 0, MUSTER_LOOK_WIRE, 1);
	w->nodes[1].full = false;
	muster_engine_step(w->nodes[0].engine, 100);
	waits = waits_of(w, 0);
	assert_wait(&waits, 0, MUSTER_LOOK_GRANT, 1);
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, MUSTER_WINDOW + 1);
	world_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_runs_nothing_waits_for_nothing),
		cmocka_unit_test(a_slot_that_nothing_came_for_is_named),
		cmocka_unit_test(a_window_that_does_not_move_is_named),
		cmocka_unit_test(a_send_that_asked_waits_for_its_answer),
		cmocka_unit_test(a_full_completion_queue_is_named),
		cmocka_unit_test(what_the_wire_refuses_is_named),
		cmocka_unit_test(a_write_waits_for_the_wire_and_an_answer_and_for_no_window),
		cmocka_unit_test(counters_go_on_where_they_are_put),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
