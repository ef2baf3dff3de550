// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Programs that lie in memory: many more sequences than the queue holds run by one descriptor, in
 * the order of posting; what is refused of them, and what becomes of the rest.
 */
#include "test_world.h"

enum {
	SEEDS = 20, STAGES = 200, PROGRAM = 65536, RESULT = 4096, COOKIE = 1000, KEPT = 7,
	KEPT_OPERAND = 512, KEPT_RESULT = 1024,
	LAST = COOKIE + STAGES - 1, DESCS = 2 * STAGES, DESC = sizeof(struct muster_desc),
};

/* Rank's part of the sum of two, number `stage`; every tenth and the last one complete. */
static void stage_of(uint32_t rank, uint32_t stage, struct muster_desc descs[2])
{
	double own = stage * 2.0 + rank;
	bool ends = stage % 10 == 0 || stage == STAGES - 1;

	descs[0] = desc_mp(MUSTER_DESC_CH, 0, &own);
	desc_to(&descs[0], !rank, 0);
	descs[1] = desc_mp(MUSTER_DESC_SWAP_LOCAL_DATA | MUSTER_DESC_REDUCE | MUSTER_DESC_CT |
			   (ends ? MUSTER_DESC_COLL_END : 0), 1, NULL);
	desc_store(&descs[1], RESULT + stage * sizeof(double));
	descs[1].cookie = COOKIE + stage;
	for (int i = 0; i < 2; i++)
		descs[i].stage = stage;
}

static struct muster_desc *in_memory(struct world *w, uint32_t rank)
{
	return (struct muster_desc *)(w->nodes[rank].memory + PROGRAM);
}

static void lay_down(struct world *w, uint32_t rank)
{
	for (uint32_t i = 0; i < STAGES; i++)
		stage_of(rank, i, in_memory(w, rank) + 2 * i);
}

static struct muster_desc desc_program(uint32_t nr)
{
	return (struct muster_desc){
		.kind = MUSTER_DESC_PROGRAM, .src_vp = WORLD_VP, .job = WORLD_JOB,
		.flags = MUSTER_DESC_C | MUSTER_DESC_CH | MUSTER_DESC_CT,
		.context = WORLD_CONTEXT, .length = (uint64_t)nr * DESC, .cookie = LAST,
		.range = { .load_addr = PROGRAM, .load_key = WORLD_KEY },
	};
}

static int try(struct world *w, uint32_t rank, const struct muster_desc *descs, uint32_t nr)
{
	w->nodes[rank].idle = false;
	return muster_engine_post(w->nodes[rank].engine, WORLD_VP, descs, nr, NULL);
}

static void start(struct world *w, uint32_t rank, uint32_t nr)
{
	struct muster_desc desc = desc_program(nr);

	world_post(w, rank, &desc, 1);
}

/* As soon as there is room. */
static void put(struct world *w, uint32_t rank, uint32_t stage)
{
	struct muster_desc descs[2];
	int err;

	stage_of(rank, stage, descs);
	while ((err = try(w, rank, descs, 2)) == -EAGAIN)
		world_run(w);
	assert_int_equal(err, 0);
}

static struct world *two(uint64_t seed)
{
	struct world *w = world_create(2, seed);

	w->map = seed % 2;
	w->refuse_percent = 10 * (seed % 3);
	world_start(w);
	for (uint32_t rank = 0; rank < 2; rank++)
		lay_down(w, rank);
	return w;
}

static void assert_sums(struct world *w, uint32_t rank)
{
	for (uint32_t i = 0; i < STAGES; i++)
		assert_true(*world_double(w, rank, RESULT + i * sizeof(double)) == i * 4.0 + 1.0);
}

static void more_stages_than_the_queue_holds_run_by_one_descriptor(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct world *w = two(seed);

		for (uint32_t rank = 0; rank < 2; rank++)
			start(w, rank, DESCS);
		world_run(w);
		for (uint32_t rank = 0; rank < 2; rank++) {
			const struct world_node *node = &w->nodes[rank];

			assert_int_equal(node->nr_cqes, STAGES / 10 + 1);
			for (uint32_t i = 0; i < node->nr_cqes; i++) {
				assert_int_equal(node->cqes[i].status, MUSTER_STATUS_OK);
				assert_int_equal(node->cqes[i].cookie,
						 COOKIE + node->cqes[i].number);
			}
			assert_sums(w, rank);
		}
		world_destroy(w);
	}
}

/* Rank 1 posts the same sequences one by one: nobody sees how a number was posted. */
static void what_is_posted_behind_comes_behind(void **state)
{
	uint32_t behind = STAGES - 2;
	struct world *w = two(3);

	(void)state;
	start(w, 0, 2 * behind);
	for (uint32_t i = 0; i < STAGES; i++)
		put(w, 1, i);
	for (uint32_t i = behind; i < STAGES; i++)
		put(w, 0, i);
	world_run(w);
	assert_sums(w, 0);
	assert_sums(w, 1);
	world_destroy(w);
}

static struct muster_desc desc_start(void)
{
	return (struct muster_desc){
		.kind = MUSTER_DESC_START, .src_vp = WORLD_VP, .job = WORLD_JOB,
		.flags = MUSTER_DESC_C | MUSTER_DESC_CH | MUSTER_DESC_CT,
		.context = WORLD_CONTEXT, .cookie = KEPT,
	};
}

/* A sum that is kept. */
static void keep(struct world *w, uint32_t rank)
{
	struct muster_desc descs[2];

	stage_of(rank, 0, descs);
	descs[0].flags |= MUSTER_DESC_KEEP;
	descs[0].inline_len = 0;
	memset(descs[0].data, 0, sizeof(descs[0].data));
	desc_load(&descs[0], KEPT_OPERAND);
	desc_store(&descs[1], KEPT_RESULT);
	descs[1].cookie = KEPT;
	world_post(w, rank, descs, 2);
}

/* Kept programs run by ways of their own where nothing else is to be done. */
static void kept_programs_stay_before_and_behind_it(void **state)
{
	const struct muster_desc again = desc_start(), program = desc_program(DESCS);

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct world *w = two(seed);
		bool left;

		w->at_once = seed % 2;
		for (uint32_t rank = 0; rank < 2; rank++)
			keep(w, rank);
		for (uint32_t i = 0; i < 4; i++) {	/* known, and predicted */
			world_run(w);
			for (uint32_t rank = 0; rank < 2; rank++)
				assert_int_equal(try(w, rank, &again, 1), 0);
		}
		if (seed % 4 < 2)
			world_run(w);
		for (uint32_t rank = 0; rank < 2; rank++)
			assert_int_equal(try(w, rank, &program, 1), 0);
		for (uint32_t rank = 0; rank < 2; rank++)
			while (muster_engine_start_run(w->nodes[rank].engine, WORLD_VP, &again,
						       &left) == -EAGAIN)
				world_run(w);
		world_run(w);
		for (uint32_t rank = 0; rank < 2; rank++) {
			const struct world_node *node = &w->nodes[rank];

			assert_int_equal(node->nr_cqes, 1 + 4 + STAGES / 10 + 1 + 1);
			assert_int_equal(node->cqes[node->nr_cqes - 1].cookie, KEPT);
			assert_int_equal(node->cqes[node->nr_cqes - 1].number, 5 + STAGES);
			assert_sums(w, rank);
		}
		world_destroy(w);
	}
}

static void a_context_has_one_program_at_a_time(void **state)
{
	struct muster_desc program = desc_program(DESCS), descs[2];
	struct world *w = two(3);

	(void)state;
	stage_of(0, 0, descs);
	assert_int_equal(try(w, 0, &program, 1), 0);
	assert_int_equal(try(w, 0, &program, 1), -EAGAIN);
	assert_int_equal(try(w, 0, descs, 2), -EAGAIN);
	start(w, 1, DESCS);
	world_run(w);
	assert_int_equal(try(w, 0, &program, 1), 0);
	start(w, 1, DESCS);
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, 2 * (STAGES / 10 + 1));
	world_destroy(w);
}

/* Both fail: the one by itself, the other as it is told. What is behind completes once, as the last. */
static void assert_fails_at(struct world *w, uint32_t stage, uint8_t status)
{
	const struct world_node *node = &w->nodes[0];
	const struct muster_cqe *last;
	uint32_t nr_last = 0;

	for (uint32_t rank = 0; rank < 2; rank++)
		start(w, rank, DESCS);
	world_run(w);
	assert_true(node->nr_cqes > 0);
	last = &node->cqes[node->nr_cqes - 1];
	assert_int_equal(last->kind, MUSTER_CQE_CONTEXT);
	assert_int_equal(last->status, status);
	assert_int_equal(last->culprit, 0);
	for (uint32_t i = 0; i + 1 < node->nr_cqes; i++) {
		nr_last += node->cqes[i].cookie == LAST;
		assert_true(node->cqes[i].cookie < COOKIE + stage || node->cqes[i].cookie == LAST);
	}
	assert_int_equal(nr_last, 1);
	assert_int_equal(w->nodes[1].cqes[w->nodes[1].nr_cqes - 1].kind, MUSTER_CQE_CONTEXT);
	world_destroy(w);
}

static void what_is_refused_ends_the_context(void **state)
{
	struct world *w;

	(void)state;
	w = two(1);
	in_memory(w, 0)[2 * 150].kind = 9;
	assert_fails_at(w, 150, MUSTER_STATUS_DESCRIPTOR);
	w = two(1);
	in_memory(w, 0)[2 * 150].flags |= MUSTER_DESC_KEEP;
	assert_fails_at(w, 150, MUSTER_STATUS_DESCRIPTOR);
	w = two(1);
	in_memory(w, 0)[2 * 150] = desc_program(DESCS);
	assert_fails_at(w, 150, MUSTER_STATUS_DESCRIPTOR);
	w = two(1);
	in_memory(w, 0)[DESCS - 1].flags &= ~MUSTER_DESC_CT;	/* the last one has no end */
	assert_fails_at(w, STAGES - 1, MUSTER_STATUS_DESCRIPTOR);
	w = two(1);
	w->nodes[0].key_life = 0;
	assert_fails_at(w, 0, MUSTER_STATUS_MEMORY);
}

/* The number has come round: it names something else. */
static void a_key_that_was_given_back_ends_it(void **state)
{
	struct muster_desc program = desc_program(DESCS);
	struct world *w = two(3);

	(void)state;
	assert_int_equal(try(w, 0, &program, 1), 0);
	for (uint32_t i = 0; i < STAGES; i++) {
		w->nodes[0].key_life += i == 100;
		put(w, 1, i);
	}
	world_run(w);
	assert_int_equal(w->nodes[0].cqes[w->nodes[0].nr_cqes - 1].status, MUSTER_STATUS_MEMORY);
	world_destroy(w);
}

static void assert_refused(struct world *w, struct muster_desc desc)
{
	assert_int_equal(try(w, 0, &desc, 1), -EINVAL);
}

static void more_than_where_it_lies_is_refused(void **state)
{
	const struct muster_desc good = desc_program(DESCS);
	struct world *w = two(3);
	struct muster_desc desc;

	(void)state;
	for (size_t i = 0; i < sizeof(desc); i++) {
		desc = good;
		((uint8_t *)&desc)[i] ^= 0x80;
		/* where it lies, how long it is, and what completes may be another one */
		if (i / 8 != offsetof(struct muster_desc, cookie) / 8 &&
		    i / 8 != offsetof(struct muster_desc, length) / 8 &&
		    i / 8 != offsetof(struct muster_desc, range.load_addr) / 8 &&
		    i / 4 != offsetof(struct muster_desc, range.load_key) / 4)
			assert_true(try(w, 0, &desc, 1) < 0);
	}
	desc = good;
	desc.length = 0;
	assert_refused(w, desc);
	desc.length = DESC + 1;
	assert_refused(w, desc);
	desc.length = (uint64_t)DESC * (MUSTER_PROGRAM_DESCS_MAX + 1);
	assert_refused(w, desc);
	desc = good;
	desc.range.load_key = 0;
	assert_refused(w, desc);
	desc = good;
	desc.range.load_addr = -(uint64_t)DESC;
	assert_refused(w, desc);
	assert_int_equal(w->nodes[0].nr_cqes, 0);
	world_destroy(w);
}

static void one_that_is_closed_meanwhile_leaves_nothing(void **state)
{
	struct world *w = two(3);

	(void)state;
	start(w, 0, DESCS);
	world_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_stages_than_the_queue_holds_run_by_one_descriptor),
		cmocka_unit_test(what_is_posted_behind_comes_behind),
		cmocka_unit_test(kept_programs_stay_before_and_behind_it),
		cmocka_unit_test(a_context_has_one_program_at_a_time),
		cmocka_unit_test(what_is_refused_ends_the_context),
		cmocka_unit_test(a_key_that_was_given_back_ends_it),
		cmocka_unit_test(more_than_where_it_lies_is_refused),
		cmocka_unit_test(one_that_is_closed_meanwhile_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
