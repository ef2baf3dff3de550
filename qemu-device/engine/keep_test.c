// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Programs that are kept: started again by their cookie alone, with operands from
 * memory; counted, replaced, and stopped when a key names something else.
 */
#include "test_world.h"

enum { SEEDS = 40, OPERAND = 512, RESULT = 4096, COOKIE = 7 };

/* Rank's part of the sum of two, operand and result in memory. */
static void sum_of_two(uint32_t rank, uint64_t cookie, struct muster_desc descs[2])
{
	descs[0] = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_KEEP, 0, NULL);
	desc_load(&descs[0], OPERAND);
	desc_to(&descs[0], !rank, 0);
	descs[1] = desc_mp(MUSTER_DESC_SWAP_LOCAL_DATA | MUSTER_DESC_REDUCE | MUSTER_DESC_CT |
			   MUSTER_DESC_COLL_END, 1, NULL);
	desc_store(&descs[1], RESULT);
	descs[1].cookie = cookie;
}

static struct muster_desc desc_start(uint64_t cookie)
{
	return (struct muster_desc){
		.kind = MUSTER_DESC_START, .src_vp = WORLD_VP, .job = WORLD_JOB,
		.flags = MUSTER_DESC_C | MUSTER_DESC_CH | MUSTER_DESC_CT,
		.context = WORLD_CONTEXT, .cookie = cookie,
	};
}

static struct muster_desc desc_forget(uint64_t cookie)
{
	struct muster_desc desc = desc_start(cookie);

	desc.kind = MUSTER_DESC_FORGET;
	return desc;
}

static int try(struct world *w, uint32_t rank, const struct muster_desc *descs, uint32_t nr)
{
	w->nodes[rank].idle = false;
	return muster_engine_post(w->nodes[rank].engine, WORLD_VP, descs, nr, NULL);
}

static void keep(struct world *w, uint32_t rank, uint64_t cookie)
{
	struct muster_desc descs[2];

	sum_of_two(rank, cookie, descs);
	world_post(w, rank, descs, 2);
}

static void start(struct world *w, uint32_t rank, uint64_t cookie)
{
	struct muster_desc desc = desc_start(cookie);

	world_post(w, rank, &desc, 1);
}

static void operands(struct world *w, double a, double b)
{
	*world_double(w, 0, OPERAND) = a;
	*world_double(w, 1, OPERAND) = b;
}

static struct world *two(uint64_t seed)
{
	struct world *w = world_create(2, seed);

	w->refuse_percent = seed % 3 * 20;
	w->map = seed & 1;
	world_start(w);
	return w;
}

static void it_runs_again_with_what_its_operand_is_then(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct world *w = two(seed);

		for (uint32_t i = 0; i < 30; i++) {
			operands(w, i, 100 * i);
			for (uint32_t r = 0; r < 2; r++)
				(i ? start : keep)(w, r, COOKIE);
			world_run(w);
			for (uint32_t r = 0; r < 2; r++) {
				assert_true(*world_double(w, r, RESULT) == 101 * i);
				assert_int_equal(w->nodes[r].nr_cqes, i + 1);
				assert_int_equal(w->nodes[r].cqes[i].status, MUSTER_STATUS_OK);
				assert_int_equal(w->nodes[r].cqes[i].cookie, COOKIE);
				assert_int_equal(w->nodes[r].cqes[i].number, i);
				assert_signature(w->nodes[r].cqes[i].signature, SIGNATURE);
			}
		}
		world_destroy(w);
	}
}

static void many_starts_wait_in_the_queue(void **state)
{
	struct muster_desc once_more = desc_start(COOKIE);
	struct world *w = two(0);

	(void)state;
	operands(w, 1, 2);
	for (uint32_t r = 0; r < 2; r++) {
		keep(w, r, COOKIE);
		for (uint32_t i = 1; i < MUSTER_SEQ_QUEUE_MAX; i++)
			start(w, r, COOKIE);
		assert_int_equal(try(w, r, &once_more, 1), -EAGAIN);
	}
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, MUSTER_SEQ_QUEUE_MAX);
	world_destroy(w);
}

/* The wire does not show how a rank has posted. */
static void who_keeps_and_who_posts_agree(void **state)
{
	struct world *w = two(3);

	(void)state;
	for (uint32_t i = 0; i < 20; i++) {
		operands(w, i, 5);
		keep(w, 0, COOKIE);
		(i ? start : keep)(w, 1, COOKIE);
		world_run(w);
		assert_true(*world_double(w, 0, RESULT) == i + 5);
	}
	world_destroy(w);
}

static void what_waits_is_not_changed_by_what_takes_its_place(void **state)
{
	struct muster_desc descs[2];
	struct world *w = two(0);

	(void)state;
	operands(w, 3, 4);
	for (uint32_t r = 0; r < 2; r++) {
		keep(w, r, COOKIE);
		start(w, r, COOKIE);
		sum_of_two(r, COOKIE, descs);
		desc_store(&descs[1], RESULT + 64);
		world_post(w, r, descs, 2);
		start(w, r, COOKIE);
	}
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, 4);
	assert_true(*world_double(w, 0, RESULT) == 7 && *world_double(w, 0, RESULT + 64) == 7);
	world_destroy(w);
}

static void what_says_more_than_which_is_refused(void **state)
{
	struct world *w = two(0);
	struct muster_desc descs[2], desc;
	uint8_t *bytes = (uint8_t *)&desc;
	double one = 1;

	(void)state;
	desc = desc_start(COOKIE);
	assert_int_equal(try(w, 0, &desc, 1), -EINVAL);	/* nothing is kept */
	keep(w, 0, COOKIE);
	desc.cookie++;
	assert_int_equal(try(w, 0, &desc, 1), -EINVAL);
	for (uint32_t i = 0; i < sizeof(desc); i++) {
		bool names_it = i >= offsetof(struct muster_desc, cookie) &&
				i < offsetof(struct muster_desc, store_addr);

		for (int forgets = 0; forgets < 2; forgets++) {
			desc = forgets ? desc_forget(COOKIE) : desc_start(COOKIE);
			bytes[i] ^= 0x20;
			if (!names_it)
				assert_in_set(try(w, 0, &desc, 1), ((LargestIntegralType[]){
					(LargestIntegralType)-EINVAL, (LargestIntegralType)-ENOENT }), 2);
		}
	}
	desc = desc_start(COOKIE);
	sum_of_two(0, COOKIE, descs);
	descs[0] = desc;
	assert_int_equal(try(w, 0, descs, 2), -EINVAL);
	sum_of_two(0, COOKIE, descs);
	descs[1].flags |= MUSTER_DESC_KEEP;
	assert_int_equal(try(w, 0, descs, 2), -EINVAL);
	sum_of_two(0, COOKIE, descs);
	descs[0] = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_KEEP, 0, &one);
	assert_int_equal(try(w, 0, descs, 2), -EINVAL);	/* data[] would stay for ever */
	world_destroy(w);
}

/* A start that was taken before it runs; there is nothing to start or to forget behind it. */
static void what_is_forgotten_is_no_longer(void **state)
{
	struct muster_desc start_it = desc_start(COOKIE), forget = desc_forget(COOKIE);
	struct world *w = two(0);

	(void)state;
	operands(w, 1, 2);
	for (uint32_t r = 0; r < 2; r++) {
		keep(w, r, COOKIE);
		keep(w, r, COOKIE + 1);
		start(w, r, COOKIE);
		assert_int_equal(try(w, r, &forget, 1), 0);
		assert_int_equal(try(w, r, &start_it, 1), -EINVAL);
		assert_int_equal(try(w, r, &forget, 1), -EINVAL);
		start(w, r, COOKIE + 1);
	}
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(w->nodes[0].cqes[i].status, MUSTER_STATUS_OK);
	world_destroy(w);
}

static uint32_t keep_all(struct world *w, uint32_t nr)
{
	uint32_t kept = 0;

	for (uint64_t cookie = 0; cookie < nr; cookie++) {
		struct muster_desc descs[2];
		int ret;

		sum_of_two(0, cookie, descs);
		ret = try(w, 0, descs, 2);
		if (ret == -EAGAIN) {	/* the other follows, and both go on */
			sum_of_two(1, 0, descs);
			for (uint32_t i = 0; i < MUSTER_SEQ_QUEUE_MAX; i++)
				world_post(w, 1, descs, 2);
			world_run(w);
			w->nodes[0].nr_cqes = w->nodes[1].nr_cqes = 0;
			cookie--;
			continue;
		}
		assert_true(!ret || ret == -ENOSPC);
		kept += !ret;
	}
	return kept;
}

static void a_context_keeps_so_many_and_no_more(void **state)
{
	struct world *w = two(0);

	(void)state;
	assert_int_equal(keep_all(w, MUSTER_KEPT_MAX + 20), MUSTER_KEPT_MAX);
	assert_int_equal(keep_all(w, MUSTER_KEPT_MAX + 20), MUSTER_KEPT_MAX);	/* in their place */
	world_destroy(w);
}

/* What it counted may be kept again. */
static void who_forgets_has_room_again(void **state)
{
	struct world *w = two(0);

	(void)state;
	assert_int_equal(keep_all(w, MUSTER_KEPT_MAX), MUSTER_KEPT_MAX);
	for (uint64_t turn = 1; turn < 40; turn++) {
		struct muster_desc forget = desc_forget((turn - 1) % MUSTER_KEPT_MAX);
		struct muster_desc descs[2];

		assert_int_equal(try(w, 0, &forget, 1), 0);
		assert_int_equal(keep_all(w, MUSTER_KEPT_MAX), MUSTER_KEPT_MAX);
		sum_of_two(0, MUSTER_KEPT_MAX, descs);
		assert_in_set(try(w, 0, descs, 2), ((LargestIntegralType[]){
			(LargestIntegralType)-EAGAIN, (LargestIntegralType)-ENOSPC }), 2);
	}
	world_destroy(w);
}

static int keep_long(struct world *w, uint32_t context, uint64_t cookie)
{
	struct muster_desc descs[MUSTER_SEQ_DESCS_MAX];

	for (uint32_t i = 0; i < MUSTER_SEQ_DESCS_MAX; i++) {
		descs[i] = desc_mp(i ? MUSTER_DESC_SWAP_LOCAL_DATA :
				   MUSTER_DESC_CH | MUSTER_DESC_KEEP, 0, NULL);
		descs[i].context = context;
		descs[i].cookie = cookie;
	}
	desc_load(&descs[0], OPERAND);
	descs[MUSTER_SEQ_DESCS_MAX - 1].flags |= MUSTER_DESC_CT;
	return try(w, 0, descs, MUSTER_SEQ_DESCS_MAX);
}

static void a_vp_keeps_so_much_in_all_its_contexts(void **state)
{
	enum { PROGRAMS = MUSTER_KEPT_DESCS_MAX / MUSTER_SEQ_DESCS_MAX };
	struct world *w = two(0);
	uint32_t id = WORLD_CONTEXT;

	(void)state;
	for (uint32_t i = 0; i < PROGRAMS; i++) {
		if (i % 10 == 0)
			assert_int_equal(world_context_open(w, 0, ++id), 0);
		assert_int_equal(keep_long(w, id, i), 0);
		muster_engine_step(w->nodes[0].engine, 1000);
	}
	assert_int_equal(keep_long(w, id, PROGRAMS), -ENOSPC);
	assert_int_equal(keep_long(w, id, PROGRAMS - 1), 0);
	muster_engine_context_close(w->nodes[0].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT + 1);
	assert_int_equal(keep_long(w, id, PROGRAMS), 0);
	world_destroy(w);
}

/* Its number is the same, what it names is not. */
static void a_key_that_names_something_else_ends_the_context(void **state)
{
	(void)state;
	for (uint64_t life = 0; life < 3; life += 2) {
		struct world *w = two(0);

		for (uint32_t r = 0; r < 2; r++)
			keep(w, r, COOKIE);
		world_run(w);
		w->nodes[0].key_life = life;
		start(w, 0, COOKIE);
		world_run(w);
		assert_int_equal(w->nodes[0].cqes[1].status, MUSTER_STATUS_MEMORY);
		assert_int_equal(w->nodes[0].cqes[1].culprit, 0);
		assert_int_equal(w->nodes[1].cqes[1].status, MUSTER_STATUS_MEMORY);
		assert_int_equal(w->nodes[1].cqes[1].culprit, 0);
		world_destroy(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_runs_again_with_what_its_operand_is_then),
		cmocka_unit_test(many_starts_wait_in_the_queue),
		cmocka_unit_test(who_keeps_and_who_posts_agree),
		cmocka_unit_test(what_waits_is_not_changed_by_what_takes_its_place),
		cmocka_unit_test(what_says_more_than_which_is_refused),
		cmocka_unit_test(what_is_forgotten_is_no_longer),
		cmocka_unit_test(a_context_keeps_so_many_and_no_more),
		cmocka_unit_test(who_forgets_has_room_again),
		cmocka_unit_test(a_vp_keeps_so_much_in_all_its_contexts),
		cmocka_unit_test(a_key_that_names_something_else_ends_the_context),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
