// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Schedules whose order of combination is given: they are proved, they have the bits that the order
 * has when it is followed one by one, and the NIC can run them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "dev.h"
#include "test_meaning.h"

enum { RANKS_MAX = 70, COUNT = 33 };

static struct muster_give gives[RANKS_MAX];
static float inputs[RANKS_MAX][COUNT], values[RANKS_MAX][COUNT], wanted[RANKS_MAX][COUNT];
static uint8_t *vectors[RANKS_MAX];

static uint32_t below(uint32_t nr)
{
	return (uint32_t)rand() % nr;
}

/* Of all sizes and both signs: another order gives other bits. */
static void fill(uint32_t ranks)
{
	for (uint32_t rank = 0; rank < ranks; rank++) {
		vectors[rank] = (uint8_t *)values[rank];
		for (uint32_t i = 0; i < COUNT; i++)
			inputs[rank][i] = (float)((int)below(2001) - 1000) * (float)(1u << below(30)) / 7;
	}
}

/* Whoever has not given yet gives to whom has not, until one is left. */
static void any_order(uint32_t ranks)
{
	uint32_t left[RANKS_MAX];

	for (uint32_t i = 0; i < ranks; i++)
		left[i] = i;
	for (uint32_t i = 0; i + 1 < ranks; i++) {
		uint32_t nr = ranks - i, from = below(nr), to = below(nr - 1);

		to += to >= from;
		gives[i] = (struct muster_give){ (uint16_t)left[from], (uint16_t)left[to] };
		left[from] = left[nr - 1];
	}
}

/* All to one, and in between. */
static void flat_order(uint32_t ranks)
{
	for (uint32_t i = 0; i + 1 < ranks; i++)
		gives[i] = (struct muster_give){ (uint16_t)(i + 1), 0 };
}

static const float *follow(uint32_t ranks)
{
	memcpy(wanted, inputs, sizeof(wanted));
	for (uint32_t i = 0; i + 1 < ranks; i++) {
		float *to = wanted[gives[i].to];

		muster_arith(MUSTER_DTYPE_F32, MUSTER_REDOP_SUM, to, to, wanted[gives[i].from], sizeof(wanted[0]));
	}
	return wanted[ranks > 1 ? gives[ranks - 2].to : 0];
}

static void expect_lowered(const struct muster_schedule *schedule, uint64_t count)
{
	struct muster_address addresses[RANKS_MAX] = { { .node = 0 } };
	char why[300];

	for (uint32_t rank = 0; rank < schedule->ranks; rank++) {
		struct muster_lower_params params = {
			.rank = rank, .count = count, .type = MUSTER_DTYPE_F32, .op = MUSTER_REDOP_SUM, .addresses = addresses,
			.parts = schedule->coll != MUSTER_COLL_ALLREDUCE,
		};
		struct muster_program *program;

		if (muster_schedule_lower(schedule, &params, &program, why, sizeof(why)))
			fail_msg("%u ranks: %s", schedule->ranks, why);
		muster_program_free(program);
	}
}

static void expect_result(const struct muster_schedule *schedule, uint32_t rank, const float *result)
{
	uint64_t first = 0, bytes = sizeof(values[rank]);

	if (schedule->coll == MUSTER_COLL_REDUCE && rank != schedule->root)
		return;
	if (schedule->coll == MUSTER_COLL_REDUCE_SCATTER)
		muster_range_bytes(schedule, COUNT, MUSTER_DTYPE_F32, NULL, rank, 1, &first, &bytes);
	assert_memory_equal((uint8_t *)values[rank] + first, (const uint8_t *)result + first, bytes);
}

static void expect_order(enum muster_coll coll, uint32_t ranks, uint32_t root, bool lowers)
{
	struct muster_schedule *schedule;
	const float *result = follow(ranks);
	char why[300];

	if (muster_schedule_order("given", coll, ranks, root, gives, &schedule, why, sizeof(why)))
		fail_msg("%s", why);
	if (muster_schedule_check(schedule, why, sizeof(why)))
		fail_msg("%s among %u: %s", muster_coll_name(coll), ranks, why);
	memcpy(values, inputs, sizeof(values));
	assert_int_equal(meaning_execute(schedule, MUSTER_DTYPE_F32, MUSTER_REDOP_SUM, COUNT, vectors), 0);
	for (uint32_t rank = 0; rank < ranks; rank++)
		expect_result(schedule, rank, result);
	if (lowers) {
		expect_lowered(schedule, 1);
		expect_lowered(schedule, 100000);
	}
	muster_schedule_free(schedule);
}

static void expect_all(uint32_t ranks, bool lowers)
{
	fill(ranks);
	expect_order(MUSTER_COLL_ALLREDUCE, ranks, 0, lowers);
	if (lowers)		/* as many transfers as ranks times ranks */
		expect_order(MUSTER_COLL_REDUCE_SCATTER, ranks, 0, true);
	for (uint32_t root = 0; root < ranks; root += 1 + ranks / 5)
		expect_order(MUSTER_COLL_REDUCE, ranks, root, lowers);
}

static void any_order_has_its_own_bits(void **state)
{
	(void)state;
	for (uint32_t ranks = 1; ranks <= RANKS_MAX; ranks++)
		for (int round = 0; round < 4; round++) {
			any_order(ranks);
			expect_all(ranks, !round);
		}
}

/* More at one than a sequence has slots for. */
static void one_takes_from_all(void **state)
{
	(void)state;
	flat_order(RANKS_MAX);
	expect_all(RANKS_MAX, true);
}

/* Those that do not wait for one another go at once. */
static void a_binary_order_takes_few_steps(void **state)
{
	struct muster_schedule *schedule;
	uint32_t nr = 0;
	char why[300];

	(void)state;
	for (uint32_t distance = 1; distance < 64; distance *= 2)
		for (uint32_t to = 0; to < 64; to += 2 * distance)
			gives[nr++] = (struct muster_give){ (uint16_t)(to + distance), (uint16_t)to };
	assert_int_equal(muster_schedule_order("given", MUSTER_COLL_REDUCE, 64, 0, gives, &schedule, why, sizeof(why)), 0);
	assert_int_equal(schedule->steps, 6);
	muster_schedule_free(schedule);
}

static void expect_refused(enum muster_coll coll, uint32_t ranks)
{
	struct muster_schedule *schedule;
	char why[300] = "";

	assert_int_equal(muster_schedule_order("given", coll, ranks, 0, gives, &schedule, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "given is no order of combination"));
}

static void what_is_no_order_is_refused(void **state)
{
	static const struct muster_give wrong[][2] = {
		{ { 1, 0 }, { 1, 0 } }, { { 1, 0 }, { 2, 1 } }, { { 1, 1 }, { 2, 0 } }, { { 1, 3 }, { 2, 0 } },
		{ { 3, 0 }, { 2, 0 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		memcpy(gives, wrong[i], sizeof(wrong[i]));
		expect_refused(MUSTER_COLL_ALLREDUCE, 3);
	}
	flat_order(3);
	expect_refused(MUSTER_COLL_BROADCAST, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_order_has_its_own_bits),
		cmocka_unit_test(one_takes_from_all),
		cmocka_unit_test(a_binary_order_takes_few_steps),
		cmocka_unit_test(what_is_no_order_is_refused),
	};

	srand(1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
