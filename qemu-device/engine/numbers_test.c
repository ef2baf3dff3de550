// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Descriptors that end many numbers at once, and sequences with fewer pulses at once than there
 * may be (Documentation/sequence.md, sections 2 and 3).
 */
#include "test_world.h"

enum { MANY = 100, RESULT = 4096, BIG = 20 * MUSTER_MTU };

static struct muster_desc idle(uint32_t numbers)
{
	struct muster_desc desc = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END, 0, 0,
					    MUSTER_MTU);

	desc.range.numbers = numbers;
	desc.cookie = numbers;
	return desc;
}

static struct muster_desc receive(void)
{
	struct muster_desc desc = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END, 1, NULL);

	desc_store(&desc, RESULT);
	return desc;
}

static struct muster_desc send_value(uint32_t to, double value)
{
	struct muster_desc desc = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END, 0, &value);

	desc_to(&desc, to, 0);
	return desc;
}

static void one_descriptor_ends_many_numbers(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct world *w = world_create(3, seed);
		struct muster_desc desc = idle(MANY);

		w->refuse_percent = seed % 3 * 25;
		world_start(w);
		world_post(w, 2, &desc, 1);
		desc = receive();
		world_post(w, 2, &desc, 1);
		for (uint32_t i = 0; i < MANY; i++) {
			desc = send_value(1, i);
			world_post(w, 0, &desc, 1);
			desc = receive();
			world_post(w, 1, &desc, 1);
			world_run(w);
			assert_true(*world_double(w, 1, RESULT) == i);
		}
		assert_int_equal(w->nodes[2].nr_cqes, 1);	/* of the last, and of nothing else */
		assert_int_equal(w->nodes[2].cqes[0].number, MANY - 1);
		assert_int_equal(w->nodes[2].cqes[0].cookie, MANY);
		desc = send_value(2, 7);
		world_post(w, 0, &desc, 1);
		world_run(w);
		assert_int_equal(w->nodes[2].cqes[1].number, MANY);
		assert_true(*world_double(w, 2, RESULT) == 7);
		assert_int_equal(world_counters(w, 2).sequences_ended, 2);
		world_destroy(w);
	}
}

/* A queue that is full of them: in order, each with the numbers behind those before it. */
static void those_that_are_posted_behind_it_follow(void **state)
{
	struct world *w = world_create(2, 1);
	uint32_t number = 0;

	(void)state;
	world_start(w);
	for (uint32_t i = 0; i < MUSTER_SEQ_QUEUE_MAX; i++) {
		struct muster_desc desc = idle(1 + i % 3 * 5);

		world_post(w, 0, &desc, 1);
	}
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, MUSTER_SEQ_QUEUE_MAX);
	for (uint32_t i = 0; i < MUSTER_SEQ_QUEUE_MAX; i++) {
		number += 1 + i % 3 * 5;
		assert_int_equal(w->nodes[0].cqes[i].number, number - 1);
		assert_int_equal(w->nodes[0].cqes[i].cookie, 1 + i % 3 * 5);
	}
	world_destroy(w);
}

/* It has said that it has nothing to do in that number. */
static void what_comes_for_an_idle_number_ends_the_context(void **state)
{
	struct world *w = world_create(2, 3);
	struct muster_desc desc = idle(1);

	(void)state;
	world_start(w);
	world_post(w, 0, &desc, 1);
	desc = send_value(1, 1);
	desc.stage = 1;
	world_post(w, 0, &desc, 1);
	world_run(w);
	desc = idle(MANY);
	world_post(w, 1, &desc, 1);
	world_run(w);
	assert_int_equal(w->nodes[1].nr_cqes, 2);	/* one of the operation, one of the context */
	assert_int_equal(w->nodes[1].cqes[0].kind, MUSTER_CQE_SEQUENCE);
	assert_int_equal(w->nodes[1].cqes[0].status, MUSTER_STATUS_PROTOCOL);
	assert_int_equal(w->nodes[1].cqes[0].number, MANY - 1);
	assert_int_equal(w->nodes[1].cqes[1].kind, MUSTER_CQE_CONTEXT);
	assert_int_equal(w->nodes[1].cqes[1].number, 1);
	world_destroy(w);
}

static void assert_refused(struct world *w, struct muster_desc desc)
{
	uint32_t bad = 99;

	assert_int_equal(muster_engine_post(w->nodes[0].engine, WORLD_VP, &desc, 1, &bad), -EINVAL);
	assert_int_equal(bad, 0);
}

static void numbers_of_what_does_something_are_refused(void **state)
{
	struct world *w = world_create(2, 1);
	struct muster_desc desc;

	(void)state;
	world_start(w);
	assert_refused(w, idle(MUSTER_NUMBERS_MAX + 1));
	desc = idle(2);
	desc.flags |= MUSTER_DESC_KEEP;
	assert_refused(w, desc);
	desc = idle(2);
	desc.cp_count = 1;
	assert_refused(w, desc);
	desc = idle(2);
	desc_to(&desc, 1, 0);
	assert_refused(w, desc);
	desc = idle(2);
	desc.range.pulse_count = 2;
	assert_refused(w, desc);
	desc = idle(2);
	desc.length = 8;
	assert_refused(w, desc);
	desc = idle(2);
	desc_store(&desc, 0);
	assert_refused(w, desc);
	desc = idle(0);
	desc.range.pulses_live = MUSTER_PULSES_LIVE + 1;
	assert_refused(w, desc);
	desc = idle(MUSTER_NUMBERS_MAX);
	world_post(w, 0, &desc, 1);
	world_destroy(w);
}

/* As a sequence says, and engines; 0: they say nothing. */
static void count_live(uint32_t said, uint32_t engines, uint32_t expected)
{
	struct world *w = world_create(2, 5);
	struct muster_desc out = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT, 0, BIG, MUSTER_MTU);
	struct muster_desc in = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END, 1,
					  BIG, MUSTER_MTU);

	w->model.pulses = engines;
	world_start(w);
	memset(w->nodes[0].memory, 9, BIG);
	desc_load(&out, 0);
	desc_to(&out, 1, 0);
	desc_store(&in, BIG);
	out.range.pulses_live = said;
	in.range.pulses_live = MUSTER_PULSES_LIVE - said;	/* the two need not agree */
	world_post(w, 0, &out, 1);
	world_run(w);
	assert_int_equal(w->nr_sent[MUSTER_PACKET_RTS], expected);
	world_post(w, 1, &in, 1);
	world_run(w);
	assert_int_equal(w->nodes[1].nr_cqes, 1);
	assert_memory_equal(w->nodes[1].memory + BIG, w->nodes[0].memory, BIG);
	world_destroy(w);
}

/* Of so many pulses at once each has asked, when nobody answers yet. */
static void only_so_many_pulses_are_live(void **state)
{
	(void)state;
	for (uint32_t live = 0; live <= MUSTER_PULSES_LIVE; live++) {
		uint32_t most = live ? live : MUSTER_PULSES_LIVE;

		count_live(live, 0, most);
		count_live(0, live, most);
		count_live(live, 2, most < 2 ? most : 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_descriptor_ends_many_numbers),
		cmocka_unit_test(those_that_are_posted_behind_it_follow),
		cmocka_unit_test(what_comes_for_an_idle_number_ends_the_context),
		cmocka_unit_test(numbers_of_what_does_something_are_refused),
		cmocka_unit_test(only_so_many_pulses_are_live),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
