// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Exact sums against long integers: as many bits as all numbers have, rounded once.
 * The order and the shape of the tree in which limbs are added change nothing.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arith.h"
#include "exact.h"
#include "test_exact.h"

enum { NR_MAX = 300, RANKS_MAX = 17 };

static uint64_t seed = 1;

static uint64_t next_random(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return seed >> 17 ^ seed << 40;
}

/* ---- ranks that sum exactly ---- */

struct sum {
	uint8_t type;
	uint32_t ranks;
	size_t nr;
	double numbers[NR_MAX][RANKS_MAX];	/* an f32 is one of these */
	struct muster_exact exact;
	int64_t *limbs[RANKS_MAX];
	double result[NR_MAX];
};

static void *vector_of(const struct sum *sum, uint32_t rank)
{
	size_t size = muster_dtype_size(sum->type);
	uint8_t *vector = malloc(sum->nr * size + 1);

	for (size_t i = 0; i < sum->nr; i++) {
		float f = (float)sum->numbers[i][rank];

		memcpy(vector + 1 + i * size, size == 4 ? (void *)&f : (void *)&sum->numbers[i][rank],
		       size);
	}
	return vector;
}

static void encode(struct sum *sum, uint32_t planned)
{
	struct muster_exact_span span = MUSTER_EXACT_NOTHING, own;
	uint8_t *vector;

	for (uint32_t r = 0; r < sum->ranks; r++) {
		vector = vector_of(sum, r);
		own = MUSTER_EXACT_NOTHING;
		muster_exact_span_of(sum->type, vector + 1, sum->nr, &own);
		muster_arith(MUSTER_DTYPE_I32, MUSTER_REDOP_MAX, &span, &span, &own, sizeof(span));
		free(vector);
	}
	assert_int_equal(muster_exact_plan(&span, planned, &sum->exact), 0);
	assert_true(muster_exact_planes(&sum->exact) <= MUSTER_EXACT_LIMBS_MAX);
	for (uint32_t r = 0; r < sum->ranks; r++) {
		vector = vector_of(sum, r);
		sum->limbs[r] = malloc(muster_exact_planes(&sum->exact) * sum->nr * 8 + 1);
		muster_exact_encode(&sum->exact, sum->type, vector + 1, sum->nr, sum->limbs[r]);
		free(vector);
	}
}

/* Any two of those that are left, until one is. */
static void merge(struct sum *sum)
{
	size_t bytes = muster_exact_planes(&sum->exact) * sum->nr * 8;

	for (uint32_t left = sum->ranks; left > 1; left--) {
		uint32_t i = next_random() % left, j = next_random() % (left - 1);
		int64_t *a = sum->limbs[i], *b = sum->limbs[j += j >= i];

		muster_arith(MUSTER_DTYPE_I64, MUSTER_REDOP_SUM, a, a, b, bytes);
		free(b);
		sum->limbs[j] = sum->limbs[left - 1];
	}
}

static void add_up(struct sum *sum, uint32_t planned)
{
	float singles[NR_MAX];

	encode(sum, planned);
	merge(sum);
	muster_exact_round(&sum->exact, sum->type, sum->limbs[0], sum->nr,
			   sum->type == MUSTER_DTYPE_F32 ? (void *)singles : sum->result);
	for (size_t i = 0; i < sum->nr && sum->type == MUSTER_DTYPE_F32; i++)
		sum->result[i] = singles[i];
	free(sum->limbs[0]);
}

/* ---- numbers ---- */

enum family { SIMILAR, SPREAD, ALL, SUBNORMAL, LARGE, CANCELLING, FEW, FAMILIES };

static double narrow(uint8_t type, double v)
{
	float f = (float)v;

	return type == MUSTER_DTYPE_F64 ? v : isinf(f) ? copysign(0x1p127, v) : f;
}

static double number(uint8_t type, enum family family, int spread)
{
	double unit = (double)(int64_t)next_random() * 0x1p-63;
	int lowest = type == MUSTER_DTYPE_F64 ? -1074 : -149, most = type == MUSTER_DTYPE_F64 ? 1023 : 127;
	int range = (int)(next_random() % (uint64_t)(most - lowest));

	switch (family) {
	case SIMILAR:
		return unit;
	case SPREAD:
		return ldexp(unit, (int)(next_random() % (uint64_t)spread) - spread / 2);
	case ALL:
		return ldexp(unit, lowest + range);
	case SUBNORMAL:
		return ldexp((double)(next_random() % 4096) - 2048, lowest);
	case LARGE:
		return ldexp(unit, most);
	default:
		return (double)(next_random() % 7) - 3;
	}
}

static void draw(struct sum *sum, enum family family)
{
	int spread = 1 + (int)(next_random() % 200);

	for (size_t i = 0; i < sum->nr; i++) {
		for (uint32_t r = 0; r < sum->ranks; r++) {
			double v = narrow(sum->type, number(sum->type, family == CANCELLING ? ALL : family,
							    spread));

			/* What came before is taken away again, in half of the cases. */
			if (family == CANCELLING && r && next_random() % 2)
				v = -sum->numbers[i][next_random() % r];
			sum->numbers[i][r] = v;
		}
	}
}

static void assert_sum(const struct sum *sum, size_t i, double expected)
{
	if (memcmp(&sum->result[i], &expected, sizeof(expected)))
		fail_msg("type %u, %u ranks, %u limbs of %u bits from %d: %a, not %a", sum->type,
			 sum->ranks, sum->exact.limbs, sum->exact.bits, sum->exact.bottom,
			 sum->result[i], expected);
}

static void try_family(struct sum *sum, enum family family)
{
	static double before[NR_MAX];

	sum->ranks = 1 + next_random() % RANKS_MAX;
	sum->nr = 1 + next_random() % NR_MAX;
	draw(sum, family);
	add_up(sum, sum->ranks);
	for (size_t i = 0; i < sum->nr; i++)
		assert_sum(sum, i, test_exact_sum(sum->type, sum->numbers[i], sum->ranks) + 0.0);
	memcpy(before, sum->result, sizeof(before));
	add_up(sum, 65536);
	assert_memory_equal(before, sum->result, sum->nr * sizeof(*before));
}

static void sums_are_the_exact_ones_rounded_once_in_any_order(void **state)
{
	static struct sum sum;

	(void)state;
	for (int i = 0; i < 40; i++)
		for (enum family family = SIMILAR; family < FAMILIES; family++)
			for (sum.type = MUSTER_DTYPE_F32; sum.type <= MUSTER_DTYPE_F64; sum.type++)
				try_family(&sum, family);
}

/* Up to four numbers. */
static double sum_of(uint8_t type, uint32_t ranks, double a, double b, double c, double d)
{
	static struct sum sum;

	sum.type = type;
	sum.ranks = ranks;
	sum.nr = 1;
	memcpy(sum.numbers[0], (double[]){ a, b, c, d }, 4 * sizeof(a));
	add_up(&sum, ranks);
	return sum.result[0];
}

#define assert_bits(call, expected)                                                              \
	do {                                                                                     \
		double got_ = (call), wanted_ = (expected);                                      \
		assert_memory_equal(&got_, &wanted_, 8);                                         \
	} while (0)

static void nothing_is_lost_to_cancellation(void **state)
{
	(void)state;
	assert_bits(sum_of(MUSTER_DTYPE_F64, 3, 1e300, 1, -1e300, 0), 1);
	assert_bits(sum_of(MUSTER_DTYPE_F64, 4, 1e300, 0x1p-1074, -1e300, 0), 0x1p-1074);
	assert_bits(sum_of(MUSTER_DTYPE_F32, 3, 0x1p127, 0x1p-149, -0x1p127, 0), 0x1p-149);
}

static void sums_overflow_only_if_they_do_at_the_end(void **state)
{
	double most = 0x1.fffffffffffffp1023;

	(void)state;
	assert_bits(sum_of(MUSTER_DTYPE_F64, 3, most, most, -most, 0), most);
	assert_bits(sum_of(MUSTER_DTYPE_F64, 2, most, 0x1p969, 0, 0), most);
	assert_bits(sum_of(MUSTER_DTYPE_F64, 2, most, 0x1p970, 0, 0), INFINITY);
	assert_bits(sum_of(MUSTER_DTYPE_F64, 2, -most, -most, 0, 0), -INFINITY);
	assert_bits(sum_of(MUSTER_DTYPE_F32, 2, 0x1.fffffep127, 0x1p103, 0, 0), INFINITY);
}

/* A tie that only the very last bit of another number decides. */
static void ties_are_decided_by_all_bits(void **state)
{
	(void)state;
	assert_bits(sum_of(MUSTER_DTYPE_F64, 2, 1, 0x1p-53, 0, 0), 1);
	assert_bits(sum_of(MUSTER_DTYPE_F64, 3, 1, 0x1p-53, 0x1p-1074, 0), 1 + 0x1p-52);
	assert_bits(sum_of(MUSTER_DTYPE_F64, 3, -1, -0x1p-53, 0x1p-1074, 0), -1);
	/* In three limbs, of which no two are one f64. */
	assert_bits(sum_of(MUSTER_DTYPE_F64, 3, 1, 0x1p-53, 0x1p-120, 0), 1 + 0x1p-52);
	assert_bits(sum_of(MUSTER_DTYPE_F64, 3, 1, 0x1p-53, -0x1p-120, 0), 1);
	assert_bits(sum_of(MUSTER_DTYPE_F32, 3, 1, 0x1p-24, 0x1p-120, 0), 1 + 0x1p-23);
	assert_bits(sum_of(MUSTER_DTYPE_F32, 3, 1, 0x1p-24, -0x1p-120, 0), 1);
	assert_bits(sum_of(MUSTER_DTYPE_F32, 3, 1, 0x1p-24, 0x1p-149, 0), 1 + 0x1p-23);
	assert_bits(sum_of(MUSTER_DTYPE_F32, 3, 1, 0x1p-24, -0x1p-149, 0), 1);
	assert_bits(sum_of(MUSTER_DTYPE_F32, 3, 1, 0x1p-24, 0x1p-70, 0), 1 + 0x1p-23);
}

static void what_is_no_number_is_said(void **state)
{
	uint64_t canonical = 0x7ff8000000000000;
	double nan;

	(void)state;
	memcpy(&nan, &canonical, 8);
	assert_bits(sum_of(MUSTER_DTYPE_F64, 3, INFINITY, 1, INFINITY, 0), INFINITY);
	assert_bits(sum_of(MUSTER_DTYPE_F64, 3, 1e308, -INFINITY, 1e308, 0), -INFINITY);
	assert_bits(sum_of(MUSTER_DTYPE_F64, 3, INFINITY, -INFINITY, 1, 0), nan);
	assert_bits(sum_of(MUSTER_DTYPE_F64, 3, 5, -NAN, 1, 0), nan);
	assert_bits(sum_of(MUSTER_DTYPE_F32, 2, NAN, INFINITY, 1, 0), nan);
}

static void zero_is_positive(void **state)
{
	(void)state;
	assert_bits(sum_of(MUSTER_DTYPE_F64, 2, -0.0, -0.0, 0, 0), 0.0);
	assert_bits(sum_of(MUSTER_DTYPE_F64, 2, 5, -5, 0, 0), 0.0);
	assert_bits(sum_of(MUSTER_DTYPE_F32, 1, -0.0, 0, 0, 0), 0.0);
}

/* What is wanted of limbs: few for numbers that are alike. */
static void numbers_alike_take_one_limb_or_two(void **state)
{
	struct muster_exact_span span = MUSTER_EXACT_NOTHING;
	const double numbers[] = { 1, -0.5, 0, 0x1.fffffffffp3 };
	struct muster_exact exact;

	(void)state;
	muster_exact_span_of(MUSTER_DTYPE_F64, numbers, 4, &span);
	assert_true(span.top == 4 && span.minus_bottom == 33 && !span.special);
	muster_exact_plan(&span, 2, &exact);
	assert_int_equal(muster_exact_planes(&exact), 1);
	muster_exact_plan(&span, 65536, &exact);
	assert_int_equal(muster_exact_planes(&exact), 2);
	span = MUSTER_EXACT_NOTHING;
	muster_exact_span_of(MUSTER_DTYPE_F64, (const double[]){ 4 }, 1, &span);
	assert_true(span.top == 3 && span.minus_bottom == -2);
}

/* Number by number: one past the highest bit's exponent, and the lowest bit's. */
static void span_by_bits(const double *numbers, size_t nr, struct muster_exact_span *span)
{
	for (size_t i = 0; i < nr; i++) {
		int exponent, bottom;
		int64_t m;

		if (!isfinite(numbers[i]))
			span->special = 1;
		if (!isfinite(numbers[i]) || numbers[i] == 0)
			continue;
		m = (int64_t)ldexp(frexp(numbers[i], &exponent), 53);
		bottom = exponent - 53 + __builtin_ctzll((uint64_t)m);
		span->top = exponent > span->top ? exponent : span->top;
		span->minus_bottom = -bottom > span->minus_bottom ? -bottom : span->minus_bottom;
	}
}

static void assert_span(struct sum *sum)
{
	struct muster_exact_span span = MUSTER_EXACT_NOTHING, expected = MUSTER_EXACT_NOTHING;
	static double numbers[NR_MAX];
	uint8_t *vector;

	for (size_t i = 0; i < sum->nr; i++) {
		if (next_random() % 8 == 0)
			sum->numbers[i][0] = ldexp(sum->numbers[i][0] < 0 ? -1 : 1, -(int)(i % 120));
		if (next_random() % 4096 == 0)
			sum->numbers[i][0] = i % 2 ? NAN : -INFINITY;
		numbers[i] = sum->numbers[i][0];
	}
	vector = vector_of(sum, 0);
	muster_exact_span_of(sum->type, vector + 1, sum->nr, &span);
	free(vector);
	span_by_bits(numbers, sum->nr, &expected);
	assert_memory_equal(&span, &expected, sizeof(span));
}

/* No bit more, whatever the type, the length and the place: each one may be another limb. */
static void a_span_is_that_of_its_numbers_bits(void **state)
{
	static struct sum sum;

	(void)state;
	sum.ranks = 1;
	for (sum.type = MUSTER_DTYPE_F32; sum.type <= MUSTER_DTYPE_F64; sum.type++)
		for (enum family family = SIMILAR; family < FAMILIES; family++)
			for (sum.nr = 1; sum.nr <= NR_MAX; sum.nr++) {
				draw(&sum, family);
				assert_span(&sum);
			}
}

/* Like all others of a long vector, or a little more than they: a last bit lower, a power of two larger. */
static double odd_one(uint8_t type, int family)
{
	const double last = type == MUSTER_DTYPE_F64 ? 0x1p-52 : 0x1p-23;
	const double lowest = type == MUSTER_DTYPE_F64 ? 0x1p-1074 : 0x1p-149;
	const double odd[] = { 0, 1 + last, 1 - last / 2, 2 - last, -2, 0.5, last, -last / 2, lowest, 0x1p127,
			       NAN, INFINITY };

	return family < 2 ? odd[next_random() % (sizeof(odd) / sizeof(*odd))] :
			    lowest * (double)(next_random() % 64);
}

/* Families: all from 1 on and below 2, the same with few zeros, subnormal ones. */
static double usual_one(uint8_t type, int family)
{
	const bool single = type == MUSTER_DTYPE_F32;
	double number = 1 + (double)(next_random() >> (single ? 41 : 12)) * (single ? 0x1p-23 : 0x1p-52);

	if (family == 2)
		return ldexp(number, single ? -136 : -1050);
	return family == 1 && next_random() % 1024 == 0 ? 0 : next_random() % 2 ? number : -number;
}

static void one_among_many_that_are_alike_is_seen(void **state)
{
	enum { MANY = 2000 };
	static double numbers[MANY];
	static float singles[MANY];

	(void)state;
	for (int turn = 0; turn < 3000; turn++) {
		struct muster_exact_span span = MUSTER_EXACT_NOTHING, expected = MUSTER_EXACT_NOTHING;
		uint8_t type = turn % 2 ? MUSTER_DTYPE_F64 : MUSTER_DTYPE_F32;
		size_t nr = MANY - next_random() % 100;

		for (size_t i = 0; i < nr; i++)
			numbers[i] = narrow(type, usual_one(type, turn % 3));
		numbers[next_random() % nr] = narrow(type, odd_one(type, turn % 3));
		for (size_t i = 0; i < nr; i++)
			singles[i] = (float)numbers[i];
		muster_exact_span_of(type, type == MUSTER_DTYPE_F64 ? (void *)numbers : (void *)singles,
				     nr, &span);
		span_by_bits(numbers, nr, &expected);
		assert_memory_equal(&span, &expected, sizeof(span));
	}
}

/* Other ranks' words about it are not trusted. */
static void what_no_numbers_span_is_refused(void **state)
{
	const struct muster_exact_span impossible[] = {
		{ 1025, 0, 0 }, { 0, 1075, 0 }, { 0, 0, 2 }, { 0, 0, -1 }, { INT32_MIN, 0, 0 },
		{ 0, INT32_MIN, 0 }, { INT32_MAX, INT32_MAX, 0 },
	};
	struct muster_exact exact;

	(void)state;
	for (size_t i = 0; i < sizeof(impossible) / sizeof(impossible[0]); i++)
		assert_int_equal(muster_exact_plan(&impossible[i], 2, &exact), -ERANGE);
	assert_int_equal(muster_exact_plan(&(struct muster_exact_span){ 1024, 1074, 1 }, 65536, &exact), 0);
	assert_true(muster_exact_planes(&exact) <= MUSTER_EXACT_LIMBS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_are_the_exact_ones_rounded_once_in_any_order),
		cmocka_unit_test(nothing_is_lost_to_cancellation),
		cmocka_unit_test(sums_overflow_only_if_they_do_at_the_end),
		cmocka_unit_test(ties_are_decided_by_all_bits),
		cmocka_unit_test(what_is_no_number_is_said),
		cmocka_unit_test(zero_is_positive),
		cmocka_unit_test(numbers_alike_take_one_limb_or_two),
		cmocka_unit_test(a_span_is_that_of_its_numbers_bits),
		cmocka_unit_test(one_among_many_that_are_alike_is_seen),
		cmocka_unit_test(what_no_numbers_span_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
