// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Header prediction changes nothing that can be seen: the same worlds, with the same order of
 * packets, refusals and budgets, whether programs are kept and predicted or posted each time; and
 * the same records. A header that differs in any bit from the one that is predicted is judged
 * as if there were no prediction.
 */
#define WORLD_NODES	4
#define WORLD_BYTES	(1 << 13)
#include "test_world.h"

enum { RANKS = 4, SEEDS = 40, RUNS = 25, OPERAND = 512, RESULT = 4096, COOKIE = 7, PREDICTED = 4, DESCS = 5 };

static uint32_t nr_elements = 1;	/* of an operand */

enum manner { PREDICT, PREDICT_RECORDED, POST, POST_RECORDED, MANNERS };

/* Recursive doubling of two or four ranks. */
static uint32_t double_up(uint32_t rank, uint32_t ranks, struct muster_desc *descs)
{
	uint32_t nr = ranks == 4 ? 3 : 2, i;

	for (i = 0; i < nr; i++) {
		uint32_t flags = (i ? MUSTER_DESC_SWAP_LOCAL_DATA | MUSTER_DESC_REDUCE : MUSTER_DESC_CH) |
				 (i == nr - 1 ? MUSTER_DESC_CT | MUSTER_DESC_COLL_END : 0);

		descs[i] = desc_mp(flags, !!i, NULL);
		if (i < nr - 1)
			desc_to(&descs[i], rank ^ 1u << i, i);
	}
	return nr;
}

/* Everybody tells everybody; the last of three ranks has its own operand behind the others'. */
static uint32_t tell_both(uint32_t rank, struct muster_desc *descs)
{
	const uint32_t reduces = MUSTER_DESC_SWAP_LOCAL_DATA | MUSTER_DESC_REDUCE;
	const uint32_t ends = MUSTER_DESC_CT | MUSTER_DESC_COLL_END;
	uint32_t nr = 0;

	for (uint32_t to = (rank + 1) % 3; to != rank; to = (to + 1) % 3) {
		descs[nr] = desc_mp(nr ? MUSTER_DESC_SWAP_LOCAL_DATA : MUSTER_DESC_CH, 0, NULL);
		desc_to(&descs[nr++], to, rank < to ? rank : rank - 1);
	}
	if (rank < 2) {
		descs[nr++] = desc_mp(reduces | ends, 2, NULL);
		return nr;
	}
	descs[nr++] = desc_mp(0, 1, NULL);
	descs[nr++] = desc_mp(reduces, 1, NULL);
	descs[nr] = desc_mp(reduces | ends, 0, NULL);
	desc_load(&descs[nr++], OPERAND);
	return nr;
}

static uint32_t sum(uint32_t rank, uint32_t ranks, enum manner manner, struct muster_desc *descs)
{
	uint32_t nr = ranks == 3 ? tell_both(rank, descs) : double_up(rank, ranks, descs);

	for (uint32_t i = 0; i < nr; i++)
		descs[i].length = nr_elements * sizeof(double);
	desc_load(&descs[0], OPERAND);
	desc_store(&descs[nr - 1], RESULT);
	descs[nr - 1].cookie = COOKIE;
	if (manner < POST)
		descs[0].flags |= MUSTER_DESC_KEEP;
	return nr;
}

static const struct muster_desc start_desc = {
	.kind = MUSTER_DESC_START, .src_vp = WORLD_VP, .job = WORLD_JOB,
	.flags = MUSTER_DESC_C | MUSTER_DESC_CH | MUSTER_DESC_CT,
	.context = WORLD_CONTEXT, .cookie = COOKIE,
};

/* Return: whether steps have something to do. */
static bool again_at_once(struct world *w, uint32_t rank)
{
	bool left;

	assert_int_equal(muster_engine_start_run(w->nodes[rank].engine, WORLD_VP, &start_desc, &left),
			 0);
	return left;
}

static void again(struct world *w, uint32_t rank)
{
	if (w->at_once)
		again_at_once(w, rank);
	else
		world_post(w, rank, &start_desc, 1);
	w->nodes[rank].idle = false;
	if (w->prompt)
		muster_engine_step(w->nodes[rank].engine, 1000);
}

static void start(struct world *w, uint32_t rank, enum manner manner, bool first)
{
	struct muster_desc descs[DESCS];

	if (first || manner >= POST)
		world_post(w, rank, descs, sum(rank, w->nr, manner, descs));
	else
		again(w, rank);
}

/* The same for all manners. */
static struct world *world_of(uint32_t ranks, uint64_t seed, enum manner manner)
{
	struct world *w = world_create(ranks, seed);

	w->refuse_percent = seed % 3 * 15;
	w->map = seed & 1;
	w->recorded = manner == PREDICT_RECORDED || manner == POST_RECORDED;
	world_start(w);
	return w;
}

/* Some ranks are up to the window ahead of others. */
static void run(struct world *w, enum manner manner)
{
	uint32_t at[RANKS] = { 0 }, i, left = w->nr * RUNS;

	while (left) {
		uint32_t rank = world_random(w, w->nr), steps = world_random(w, 12);
		struct world_node *node = &w->nodes[rank];

		if (at[rank] < RUNS && at[rank] == node->nr_cqes) {
			for (i = 0; i < nr_elements; i++)
				world_double(w, rank, OPERAND)[i] = at[rank] + 1000 * rank + i;
			start(w, rank, manner, !at[rank]++);
			left--;
		}
		for (i = 0; i < steps; i++) {
			if (w->nr_flight && world_random(w, 2))
				world_deliver_one(w, world_random(w, w->nr_flight));
			rank = world_random(w, w->nr);
			muster_engine_step(w->nodes[rank].engine, 1 + world_random(w, 16));
		}
		if (!steps)
			world_run(w);
	}
	world_run(w);
}

static void assert_same(const struct world *a, const struct world *b)
{
	struct muster_engine_counters of_a, of_b;
	uint32_t i;

	for (i = 0; i < a->nr; i++) {
		muster_engine_counters_get(a->nodes[i].engine, &of_a);
		muster_engine_counters_get(b->nodes[i].engine, &of_b);
		assert_memory_equal(&of_a, &of_b, sizeof(of_a));
		assert_int_equal(a->nodes[i].nr_cqes, b->nodes[i].nr_cqes);
		assert_memory_equal(a->nodes[i].cqes, b->nodes[i].cqes, sizeof(a->nodes[i].cqes));
		assert_memory_equal(a->nodes[i].memory, b->nodes[i].memory, WORLD_MEMORY);
	}
	assert_memory_equal(a->nr_sent, b->nr_sent, sizeof(a->nr_sent));
	assert_true(a->random == b->random && a->nr_tried == b->nr_tried);
	assert_int_equal(a->nr_flight, b->nr_flight);
	for (i = 0; i < a->nr_flight; i++)
		assert_memory_equal(&a->flight[i]->packet, &b->flight[i]->packet,
				    sizeof(a->flight[i]->packet));
}

static void assert_sums(const struct world *w)
{
	for (uint32_t r = 0; r < w->nr; r++) {
		assert_int_equal(w->nodes[r].nr_cqes, RUNS);
		for (uint32_t i = 0; i < nr_elements; i++)
			assert_true(world_double((struct world *)w, r, RESULT)[i] ==
				    w->nr * (RUNS - 1 + i) + 500 * w->nr * (w->nr - 1));
	}
}

static void what_is_predicted_is_what_would_have_been(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct world *w[MANNERS];

		nr_elements = seed % 5 ? 1 : MUSTER_MP_MAX / sizeof(double);
		for (uint32_t manner = 0; manner < MANNERS; manner++) {
			w[manner] = world_of(2 + seed % 3, seed, manner);
			run(w[manner], manner);
			assert_same(w[0], w[manner]);
		}
		assert_memory_equal(w[PREDICT_RECORDED]->trace, w[POST_RECORDED]->trace,
				    sizeof(*w[0]->trace));
		assert_sums(w[0]);
		for (uint32_t manner = 0; manner < MANNERS; manner++)
			world_destroy(w[manner]);
	}
	nr_elements = 1;
}

/* Where nothing is refused; a world that refuses is asked once more. */
static void what_is_done_at_once_is_what_the_next_step_would_have_done(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct world *w[2];

		nr_elements = seed % 5 ? 1 : MUSTER_MP_MAX / sizeof(double);
		for (uint32_t i = 0; i < 2; i++) {
			w[i] = world_of(seed % 4 ? 4 : 2, seed, PREDICT);
			w[i]->prompt = true;
			w[i]->at_once = i;
			run(w[i], PREDICT);
			assert_sums(w[i]);
		}
		if (!w[0]->refuse_percent)
			assert_same(w[0], w[1]);
		world_destroy(w[0]);
		world_destroy(w[1]);
	}
	nr_elements = 1;
}

/* Both wait for the other's packet, which is in flight, and looks as it did several times. */
static void warm_up(struct world *w, enum manner manner)
{
	for (uint32_t i = 0; i <= PREDICTED; i++) {
		for (uint32_t r = 0; r < 2; r++) {
			*world_double(w, r, OPERAND) = 10 * i + r;
			start(w, r, manner, !i);
			muster_engine_step(w->nodes[r].engine, 100);
		}
		if (i < PREDICTED)
			world_run(w);
	}
	assert_int_equal(w->nr_flight, 2);
}

static void bit_flip(struct world *w, uint32_t bit)
{
	struct world_packet changed = *w->flight[w->flight[0]->packet.dst_node ? 1 : 0];
	struct muster_engine *engine = w->nodes[0].engine;

	((uint8_t *)&changed.packet)[bit / 8] ^= 1 << bit % 8;
	if (w->at_once)
		muster_engine_receive_run(engine, &changed.packet, changed.payload, sizeof(double));
	else
		muster_engine_receive(engine, &changed.packet, changed.payload, sizeof(double));
	muster_engine_step(engine, 100);
}

static void a_header_that_differs_in_a_bit_is_judged_as_always(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 2 * 8 * sizeof(struct muster_packet); i++) {
		struct world *kept = world_of(2, 3, PREDICT), *posted = world_of(2, 3, POST);
		uint32_t bit = i / 2;

		warm_up(kept, PREDICT);
		warm_up(posted, POST);
		kept->at_once = i & 1;
		bit_flip(kept, bit);
		kept->at_once = false;
		bit_flip(posted, bit);
		assert_same(kept, posted);
		world_run(kept);
		world_run(posted);
		assert_same(kept, posted);
		world_destroy(kept);
		world_destroy(posted);
	}
}

/* It is there once, whatever comes behind it. */
static void what_comes_twice_counts_once(void **state)
{
	struct muster_engine_counters counters;
	struct world *w = world_of(2, 3, PREDICT);
	struct world_packet twice;

	(void)state;
	warm_up(w, PREDICT);
	twice = *w->flight[w->flight[0]->packet.dst_node ? 1 : 0];
	for (uint32_t i = 0; i < 2; i++)
		muster_engine_receive(w->nodes[0].engine, &twice.packet, twice.payload, sizeof(double));
	muster_engine_step(w->nodes[0].engine, 100);
	muster_engine_counters_get(w->nodes[0].engine, &counters);
	assert_int_equal(counters.drop_duplicate, 1);
	assert_true(*world_double(w, 0, RESULT) == 20 * PREDICTED + 1);
	world_destroy(w);
}

/* The number of the key may be another's since the program was started. */
static void memory_that_goes_while_it_waits_is_not_written(void **state)
{
	struct world *w = world_of(2, 3, PREDICT);
	double before;

	(void)state;
	warm_up(w, PREDICT);
	before = *world_double(w, 0, RESULT);
	w->read_only = true;
	w->nodes[0].key_life = 2;
	world_run(w);
	assert_true(*world_double(w, 0, RESULT) == before);
	assert_int_equal(w->nodes[0].cqes[PREDICTED].status, MUSTER_STATUS_MEMORY);
	world_destroy(w);
}

/* A program that reduces no bytes has an operand, of no bytes. */
static void a_reduction_of_nothing_runs_as_it_did(void **state)
{
	struct world *w = world_of(2, 3, PREDICT);
	struct muster_desc descs[2];

	(void)state;
	for (uint32_t i = 0; i <= PREDICTED; i++) {
		for (uint32_t r = 0; r < 2; r++) {
			descs[0] = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_KEEP, 0, NULL);
			descs[1] = desc_mp(MUSTER_DESC_REDUCE | MUSTER_DESC_CT | MUSTER_DESC_COLL_END, 1,
					   NULL);
			descs[0].cookie = descs[1].cookie = COOKIE;
			descs[0].length = descs[1].length = 0;
			desc_to(&descs[0], !r, 0);
			if (i)
				again(w, r);
			else
				world_post(w, r, descs, 2);
			muster_engine_step(w->nodes[r].engine, 100);
		}
		world_run(w);
	}
	for (uint32_t r = 0; r < 2; r++) {
		assert_int_equal(w->nodes[r].nr_cqes, PREDICTED + 1);
		assert_int_equal(w->nodes[r].cqes[PREDICTED].status, MUSTER_STATUS_OK);
	}
	world_destroy(w);
}

/* ---- at once, where it is not simple -------------------------------------------------- */

/* All is at rest, has run several times as it is predicted, and does so at once from now on. */
static struct world *world_at_rest(uint32_t ranks)
{
	struct world *w = world_of(ranks, 3, PREDICT);

	w->prompt = w->at_once = true;
	for (uint32_t i = 0; i < PREDICTED; i++) {
		for (uint32_t r = 0; r < ranks; r++) {
			*world_double(w, r, OPERAND) = 10 * (i + 1) + r;
			start(w, r, PREDICT, !i);
		}
		world_run(w);
	}
	w->prompt = false;
	return w;
}

static void deliver_to(struct world *w, uint32_t rank)
{
	uint32_t i = 0;

	while (i < w->nr_flight && w->flight[i]->packet.dst_node != rank)
		i++;
	assert_true(i < w->nr_flight);
	world_deliver_one(w, i);
}

static void assert_ended(struct world *w, uint32_t times, double sum)
{
	for (uint32_t r = 0; r < w->nr; r++) {
		assert_int_equal(w->nodes[r].nr_cqes, times);
		for (uint32_t i = 0; i < times; i++) {
			assert_int_equal(w->nodes[r].cqes[i].number, i);
			assert_int_equal(w->nodes[r].cqes[i].status, MUSTER_STATUS_OK);
		}
		assert_true(*world_double(w, r, RESULT) == sum);
	}
}

/* The packet waits at the rank that was refused, which hears of the other's meanwhile. */
static void what_is_refused_at_a_start_goes_later(void **state)
{
	struct world *w = world_at_rest(2);

	(void)state;
	w->nodes[1].full = true;
	assert_true(again_at_once(w, 0));
	assert_int_equal(w->nr_flight, 0);
	assert_false(again_at_once(w, 1));
	deliver_to(w, 0);
	assert_int_equal(w->nodes[0].nr_cqes, PREDICTED);
	w->nodes[1].full = false;
	world_run(w);
	assert_ended(w, PREDICTED + 1, 20 * PREDICTED + 1);
	world_destroy(w);
}

/* So it is in the middle of a program, where a packet has led to the next send. */
static void what_is_refused_where_a_packet_has_come_goes_later(void **state)
{
	struct world *w = world_at_rest(4);

	(void)state;
	assert_false(again_at_once(w, 0));
	assert_false(again_at_once(w, 1));
	w->nodes[2].full = true;
	deliver_to(w, 0);
	assert_int_equal(w->nr_flight, 1);	/* of rank 0 to rank 1, and nothing to rank 2 */
	w->nodes[2].full = false;
	assert_false(again_at_once(w, 2));
	assert_false(again_at_once(w, 3));
	world_run(w);
	assert_ended(w, PREDICTED + 1, 40 * PREDICTED + 6);
	world_destroy(w);
}

/* The one before it runs, and has not heard of the other rank. */
static void a_start_does_not_overtake_the_one_before_it(void **state)
{
	struct world *w = world_at_rest(2);

	(void)state;
	assert_false(again_at_once(w, 0));
	again_at_once(w, 0);
	muster_engine_step(w->nodes[0].engine, 100);
	assert_int_equal(w->nr_flight, 1);
	again_at_once(w, 1);
	again_at_once(w, 1);
	world_run(w);
	assert_ended(w, PREDICTED + 2, 20 * PREDICTED + 1);
	world_destroy(w);
}

/* Rank 1 is done and goes on: what it sends next overtakes what rank 0 waits for. */
static void what_comes_early_is_not_overtaken(void **state)
{
	struct world *w = world_at_rest(2);
	uint32_t i = 0;

	(void)state;
	assert_false(again_at_once(w, 0));
	assert_false(again_at_once(w, 1));
	deliver_to(w, 1);
	assert_false(again_at_once(w, 1));
	while (i < w->nr_flight && (w->flight[i]->packet.dst_node || w->flight[i]->packet.number == PREDICTED))
		i++;
	assert_true(i < w->nr_flight);
	world_deliver_one(w, i);
	deliver_to(w, 0);
	muster_engine_step(w->nodes[0].engine, 100);
	assert_int_equal(w->nodes[0].nr_cqes, PREDICTED + 1);
	again_at_once(w, 0);
	world_run(w);
	assert_ended(w, PREDICTED + 2, 20 * PREDICTED + 1);
	world_destroy(w);
}

/* What was taken at once counts, too, so that who has left is known to have sent nothing else. */
static void who_leaves_after_it_has_left_nothing_open(void **state)
{
	struct muster_context_state ended;
	struct world *w = world_at_rest(2);
	struct muster_engine *engine = w->nodes[0].engine;

	(void)state;
	muster_engine_context_close(w->nodes[1].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT);
	world_run(w);
	muster_engine_peer_lost(engine, 1);
	assert_int_equal(muster_engine_context_query(engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT,
						     &ended), 0);
	assert_int_equal(ended.failed, 0);
	world_destroy(w);
}

/* A broadcast by rank 1, which gets it from rank 0, and has never sent anything to the others. */
static uint32_t pass_on(uint32_t rank, struct muster_desc descs[3])
{
	uint32_t nr = rank == 0 ? 1 : rank == 1 ? 3 : 1;

	for (uint32_t i = 0; i < nr; i++) {
		descs[i] = desc_mp(i ? MUSTER_DESC_SWAP_LOCAL_DATA : MUSTER_DESC_CH | MUSTER_DESC_KEEP,
				   rank && !i, NULL);
		descs[i].cookie = COOKIE;
		if (rank == 0)
			desc_to(&descs[i], 1, 0);
		else if (i)
			desc_to(&descs[i], 1 + i, 0);
	}
	if (rank == 0)
		desc_load(&descs[0], OPERAND);
	else
		desc_store(&descs[0], RESULT);
	descs[nr - 1].flags |= MUSTER_DESC_CT | MUSTER_DESC_COLL_END;
	return nr;
}

static void first_sends_to_several_go_one_after_the_other(void **state)
{
	struct world *w = world_of(4, 3, PREDICT);
	struct muster_desc descs[3];

	(void)state;
	*world_double(w, 0, OPERAND) = 5;
	for (uint32_t r = 1; r < 5; r++) {	/* rank 0 comes last */
		world_post(w, r % 4, descs, pass_on(r % 4, descs));
		world_run(w);
	}
	for (uint32_t r = 0; r < 4; r++)
		assert_int_equal(w->nodes[r].nr_cqes, 1);
	for (uint32_t r = 1; r < 4; r++)
		assert_true(*world_double(w, r, RESULT) == 5);
	world_destroy(w);
}

/* Of three ranks each tells the others; the next one comes first. */
static void tell_all(struct world *w, uint32_t rank)
{
	struct muster_desc descs[3];

	for (uint32_t i = 0; i < 3; i++) {
		descs[i] = desc_mp(i ? MUSTER_DESC_SWAP_LOCAL_DATA : MUSTER_DESC_CH | MUSTER_DESC_KEEP, 0, NULL);
		descs[i].cookie = COOKIE;
		if (i < 2)
			desc_to(&descs[i], (rank + 1 + i) % 3, i);
	}
	descs[2].cp_count = 2;
	descs[2].flags |= MUSTER_DESC_REDUCE | MUSTER_DESC_CT | MUSTER_DESC_COLL_END;
	desc_load(&descs[0], OPERAND);
	desc_store(&descs[2], RESULT);
	world_post(w, rank, descs, 3);
}

static void assert_awaits(struct world *w, uint32_t nr, uint32_t first, uint32_t second)
{
	uint32_t nodes[MUSTER_SLOTS_MAX];

	muster_engine_step(w->nodes[0].engine, 100);
	assert_int_equal(muster_engine_awaits(w->nodes[0].engine, nodes), nr);
	assert_true(nr < 1 || nodes[0] == first);
	assert_true(nr < 2 || nodes[1] == second);
}

static void who_is_awaited_is_told_until_it_has_come(void **state)
{
	struct world *w = world_of(3, 3, PREDICT);

	(void)state;
	assert_awaits(w, 0, 0, 0);
	for (uint32_t i = 0; i < PREDICTED; i++) {
		for (uint32_t r = 0; r < 3; r++)
			i ? again(w, r) : tell_all(w, r);
		world_run(w);
	}
	again(w, 0);
	assert_awaits(w, 2, 2, 1);
	assert_int_equal(muster_engine_awaits_next(w->nodes[0].engine), 2);
	again(w, 1);
	muster_engine_step(w->nodes[1].engine, 100);
	deliver_to(w, 0);	/* its turn comes later */
	assert_awaits(w, 1, 2, 0);
	again(w, 2);
	world_run(w);
	assert_awaits(w, 0, 0, 0);
	assert_int_equal(muster_engine_awaits_next(w->nodes[0].engine), MUSTER_NODES_MAX);
	world_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_predicted_is_what_would_have_been),
		cmocka_unit_test(what_is_done_at_once_is_what_the_next_step_would_have_done),
		cmocka_unit_test(a_header_that_differs_in_a_bit_is_judged_as_always),
		cmocka_unit_test(what_comes_twice_counts_once),
		cmocka_unit_test(memory_that_goes_while_it_waits_is_not_written),
		cmocka_unit_test(a_reduction_of_nothing_runs_as_it_did),
		cmocka_unit_test(what_is_refused_at_a_start_goes_later),
		cmocka_unit_test(what_is_refused_where_a_packet_has_come_goes_later),
		cmocka_unit_test(a_start_does_not_overtake_the_one_before_it),
		cmocka_unit_test(what_comes_early_is_not_overtaken),
		cmocka_unit_test(first_sends_to_several_go_one_after_the_other),
		cmocka_unit_test(who_leaves_after_it_has_left_nothing_open),
		cmocka_unit_test(who_is_awaited_is_told_until_it_has_come),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
