// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The arithmetic against its page, element by element: a plain reference, every
 * type and operation, odd lengths and alignments, and the values where floating
 * point differs from machine to machine.
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
#include "test_arith.h"

enum { ELEMENTS = 77, BYTES = ELEMENTS * 16 + 64 };

static void for_each_pair(void (*check)(uint8_t type, uint8_t op, size_t nr))
{
	uint8_t type, op;
	size_t nr;

	for (type = MUSTER_DTYPE_F32; type <= MUSTER_DTYPE_LAST; type++)
		for (op = MUSTER_REDOP_SUM; op <= MUSTER_REDOP_LAST; op++)
			for (nr = 0; nr <= ELEMENTS && muster_arith_supported(type, op); nr++)
				check(type, op, nr);
}

static void check_reference(uint8_t type, uint8_t op, size_t nr)
{
	size_t size = muster_dtype_size(type), shift = nr % 9, i;
	uint8_t a[BYTES], b[BYTES], dst[BYTES], expected[BYTES];
	muster_arith_element *one;

	fill(type, a + shift, nr);
	fill(type, b + 1, nr);
	memset(dst, 0xee, sizeof(dst));
	memset(expected, 0xee, sizeof(expected));
	for (i = 0; i < nr; i++)
		reference(type, op, expected + 3 + i * size, a + shift + i * size,
			  b + 1 + i * size);
	assert_int_equal(muster_arith(type, op, dst + 3, a + shift, b + 1, nr * size), 0);
	assert_memory_equal(dst, expected, sizeof(dst));
	one = muster_arith_one(type, op, nr * size);
	assert_true(!one || nr == 1);
	if (!one)
		return;
	memset(dst, 0xee, sizeof(dst));
	one(dst + 3, a + shift, b + 1);
	assert_memory_equal(dst, expected, sizeof(dst));
}

static void every_pair_agrees_with_the_reference_at_any_length_and_alignment(void **state)
{
	(void)state;
	for_each_pair(check_reference);
}

static void check_exchange(uint8_t type, uint8_t op, size_t nr)
{
	size_t bytes = nr * muster_dtype_size(type);
	uint8_t a[BYTES], b[BYTES], x[BYTES], y[BYTES];

	fill(type, a, nr);
	fill(type, b, nr);
	muster_arith(type, op, x, a, b, bytes);
	muster_arith(type, op, y, b, a, bytes);
	if (muster_arith_exchanges(op))
		assert_memory_equal(x, y, bytes);
}

static void operands_may_be_exchanged_bit_for_bit(void **state)
{
	(void)state;
	for_each_pair(check_exchange);
}

static void check_alias(uint8_t type, uint8_t op, size_t nr)
{
	size_t bytes = nr * muster_dtype_size(type);
	uint8_t a[BYTES], b[BYTES], x[BYTES], y[BYTES];

	fill(type, a, nr);
	fill(type, b, nr);
	muster_arith(type, op, x, a, b, bytes);
	memcpy(y, a, bytes);
	muster_arith(type, op, y, y, b, bytes);
	assert_memory_equal(x, y, bytes);
	memcpy(y, b, bytes);
	muster_arith(type, op, y, a, y, bytes);
	assert_memory_equal(x, y, bytes);
}

static void the_result_may_replace_an_operand(void **state)
{
	(void)state;
	for_each_pair(check_alias);
}

static void zeros_keep_their_order(void **state)
{
	double plus = 0, minus = -0.0, r;

	(void)state;
	muster_arith(MUSTER_DTYPE_F64, MUSTER_REDOP_MIN, &r, &plus, &minus, 8);
	assert_memory_equal(&r, &minus, 8);
	muster_arith(MUSTER_DTYPE_F64, MUSTER_REDOP_MAX, &r, &minus, &plus, 8);
	assert_memory_equal(&r, &plus, 8);
}

/* Of a wide element any byte may be the one that is not zero. */
static void a_logical_value_is_that_of_the_whole_element(void **state)
{
	uint32_t a[2] = { 0x100, 0 }, b[2] = { 0x80000000, 0x100 }, r[2];

	(void)state;
	muster_arith(MUSTER_DTYPE_U32, MUSTER_REDOP_LAND, r, a, b, 8);
	assert_true(r[0] == 1 && r[1] == 0);
	muster_arith(MUSTER_DTYPE_I32, MUSTER_REDOP_LXOR, r, a, b, 8);
	assert_true(r[0] == 0 && r[1] == 1);
	muster_arith(MUSTER_DTYPE_I64, MUSTER_REDOP_LOR, r, a, b, 8);
	assert_true(r[0] == 1 && r[1] == 0);
}

static void integers_wrap(void **state)
{
	int64_t big = INT64_MAX, one = 1, r;
	int8_t small = -128, r8;
	uint16_t factor = 0xffff, r16;

	(void)state;
	muster_arith(MUSTER_DTYPE_I64, MUSTER_REDOP_SUM, &r, &big, &one, 8);
	assert_true(r == INT64_MIN);
	muster_arith(MUSTER_DTYPE_I8, MUSTER_REDOP_SUM, &r8, &small, &small, 1);
	assert_int_equal(r8, 0);
	muster_arith(MUSTER_DTYPE_U16, MUSTER_REDOP_PROD, &r16, &factor, &factor, 2);
	assert_int_equal(r16, 1);
}

/* A format's one rounding, of what is computed exactly: 1 + 2^-11 is a tie, and goes to even. */
static void a_half_is_rounded_once(void **state)
{
	uint16_t one = 0x3c00, tie = 0x1000, above = 0x1001, odd = 0x3c01, r;

	(void)state;
	muster_arith(MUSTER_DTYPE_F16, MUSTER_REDOP_SUM, &r, &one, &tie, 2);
	assert_int_equal(r, 0x3c00);
	muster_arith(MUSTER_DTYPE_F16, MUSTER_REDOP_SUM, &r, &odd, &tie, 2);
	assert_int_equal(r, 0x3c02);
	muster_arith(MUSTER_DTYPE_F16, MUSTER_REDOP_SUM, &r, &one, &above, 2);
	assert_int_equal(r, 0x3c01);
}

/* 65519 is the last f16 below the tie with 65536, which would be the next number. */
static void a_half_overflows_where_the_nearest_number_would_be_none(void **state)
{
	uint16_t most = 0x7bff, half_unit = 0x4c00, below = 0x4bff, r;

	(void)state;
	muster_arith(MUSTER_DTYPE_F16, MUSTER_REDOP_SUM, &r, &most, &half_unit, 2);
	assert_int_equal(r, 0x7c00);
	muster_arith(MUSTER_DTYPE_F16, MUSTER_REDOP_SUM, &r, &most, &below, 2);
	assert_int_equal(r, 0x7bff);
}

/* Each of 2^16 elements with dense ones, or with all: MUSTER_ARITH_ALL, hours under a sanitizer. */
static void check_half(uint8_t type, uint8_t op, uint16_t with)
{
	static uint16_t a[1 << 16], b[1 << 16], dst[1 << 16];

	for (uint32_t i = 0; i < 1 << 16; i++) {
		a[i] = (uint16_t)i;
		b[i] = with;
	}
	muster_arith(type, op, dst, a, b, sizeof(a));
	for (uint32_t i = 0; i < 1 << 16; i++) {
		uint16_t expected = reference_half(type == MUSTER_DTYPE_F16 ? &f16 : &bf16, op,
						   a[i], with);

		if (dst[i] != expected)
			fail_msg("type %u op %u: %#x with %#x is %#x, not %#x", type, op, a[i],
				 with, dst[i], expected);
	}
}

static void every_half_agrees_with_the_reference(void **state)
{
	static const uint8_t ops[] = { MUSTER_REDOP_SUM, MUSTER_REDOP_PROD, MUSTER_REDOP_MIN,
				       MUSTER_REDOP_MAX };
	uint32_t nr = getenv("MUSTER_ARITH_ALL") ? 1 << 16 : HALF_VALUES;

	(void)state;
	for (uint32_t i = 0; i < nr; i++)
		for (int o = 0; o < 4; o++)
			for (uint8_t type = MUSTER_DTYPE_F16; type <= MUSTER_DTYPE_BF16; type++)
				check_half(type, ops[o], nr == HALF_VALUES ? half_values[i] :
									     (uint16_t)i);
}

/* The lowest of those who have it; of a NaN, too. */
static void a_location_is_the_lowest_index_of_the_value(void **state)
{
	struct { float value; int32_t index; } r, a = { -0.0f, 7 }, b = { 0, 3 }, c = { NAN, 9 };

	(void)state;
	muster_arith(MUSTER_DTYPE_F32_I32, MUSTER_REDOP_MINLOC, &r, &a, &b, 8);
	assert_true(r.value == 0 && signbit(r.value) && r.index == 3);
	muster_arith(MUSTER_DTYPE_F32_I32, MUSTER_REDOP_MAXLOC, &r, &a, &b, 8);
	assert_true(r.value == 0 && !signbit(r.value) && r.index == 3);
	muster_arith(MUSTER_DTYPE_F32_I32, MUSTER_REDOP_MAXLOC, &r, &a, &c, 8);
	assert_true(isnan(r.value) && r.index == 9);
}

static void padding_is_ignored_and_comes_out_zero(void **state)
{
	struct { int16_t value; uint16_t pad; int32_t index; } r, a = { 5, 1, -1 }, b = { 5, 0xffff, 2 };

	(void)state;
	muster_arith(MUSTER_DTYPE_I16_I32, MUSTER_REDOP_MINLOC, &r, &a, &b, 8);
	assert_true(r.value == 5 && !r.pad && r.index == -1);
}

static void replace_takes_the_second(void **state)
{
	uint64_t a[2] = { 1, 2 }, b[2] = { 3, 4 };

	(void)state;
	muster_arith(MUSTER_DTYPE_F64_I32, MUSTER_REDOP_REPLACE, a, a, b, 16);
	assert_memory_equal(a, b, 16);
	assert_false(muster_arith_exchanges(MUSTER_REDOP_REPLACE));
}

/* Long enough for vectors and short, apart, side by side and overlapping either way. */
static void data_is_moved_wherever_it_lies(void **state)
{
	enum { LONGEST = 3 * 4096, ALL = 4 * LONGEST };
	static const size_t lengths[] = { 0, 1, 63, 4095, 4096, 4097, 4096 + 127, 8192, LONGEST };
	static uint8_t got[ALL], expected[ALL];

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		size_t bytes = lengths[i], from = LONGEST + i;
		size_t places[] = { 0, from - bytes, from - 1, from, from + 100, from + bytes };

		for (size_t j = 0; j < sizeof(places) / sizeof(places[0]); j++) {
			for (size_t at = 0; at < ALL; at++)
				got[at] = expected[at] = (uint8_t)(at * 31 + at / 256 + j);
			memmove(expected + places[j], expected + from, bytes);
			muster_arith_move(got + places[j], got + from, bytes);
			assert_memory_equal(got, expected, ALL);
		}
	}
}

static void what_is_not_defined_is_refused(void **state)
{
	double d[2] = { 1, 2 };
	int type, op;

	(void)state;
	for (type = 0; type < 256; type++)
		for (op = 0; op < 256; op++)
			if (!muster_arith_supported(type, op))
				assert_int_equal(muster_arith(type, op, d, d, d, 8), -EINVAL);
	assert_int_equal(muster_arith_supported(MUSTER_DTYPE_F32, MUSTER_REDOP_BAND), 0);
	assert_int_equal(muster_arith_supported(MUSTER_DTYPE_F64, MUSTER_REDOP_BOR), 0);
	assert_int_equal(muster_arith_supported(MUSTER_DTYPE_F64, MUSTER_REDOP_LXOR), 0);
	assert_int_equal(muster_arith_supported(MUSTER_DTYPE_BF16, MUSTER_REDOP_BOR), 0);
	assert_int_equal(muster_arith_supported(MUSTER_DTYPE_C64, MUSTER_REDOP_MAX), 0);
	assert_int_equal(muster_arith_supported(MUSTER_DTYPE_F64, MUSTER_REDOP_MINLOC), 0);
	assert_int_equal(muster_arith_supported(MUSTER_DTYPE_F64_I32, MUSTER_REDOP_MIN), 0);
	assert_int_equal(muster_arith(MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, d, d, d, 12), -EINVAL);
	assert_true(d[0] == 1 && d[1] == 2);
	assert_int_equal(muster_dtype_size(MUSTER_DTYPE_NONE), 0);
	assert_int_equal(muster_dtype_size(MUSTER_DTYPE_LAST + 1), 0);
}

/* One after the other, as muster_arith_rows() says. */
static void rows_one_by_one(uint8_t type, uint8_t op, uint8_t *dst, const uint8_t *const *from,
			    uint32_t left, uint32_t nr, size_t bytes)
{
	uint8_t right[BYTES];

	memcpy(dst, from[0], bytes);
	for (uint32_t i = 1; i < left; i++)
		muster_arith(type, op, dst, dst, from[i], bytes);
	if (left == nr)
		return;
	memcpy(right, from[left], bytes);
	for (uint32_t i = left + 1; i < nr; i++)
		muster_arith(type, op, right, right, from[i], bytes);
	muster_arith(type, op, dst, dst, right, bytes);
}

enum { ROWS_MAX = 41 };

/* Half of the numbers are special ones. */
static void check_rows_of(uint8_t type, uint8_t op, size_t nr, uint32_t left, uint32_t count)
{
	static uint8_t sources[ROWS_MAX][BYTES];
	size_t bytes = nr * muster_dtype_size(type);
	const uint8_t *from[ROWS_MAX];
	uint8_t dst[BYTES], expected[BYTES];

	for (uint32_t i = 0; i < count; i++) {
		from[i] = sources[i] + i % 7;
		fill(type, sources[i] + i % 7, nr);
	}
	memset(dst, 0xee, sizeof(dst));
	memset(expected, 0xee, sizeof(expected));
	rows_one_by_one(type, op, expected + 5, from, left, count, bytes);
	muster_arith_rows(type, op, dst + 5, from, left, count, bytes);
	assert_memory_equal(dst, expected, sizeof(dst));
	muster_arith_rows(type, op, sources[0], from, left, count, bytes);
	assert_memory_equal(sources[0], expected + 5, bytes);
}

/* Of a random pair, as many as there may be; and those that have a loop of their own. */
static void check_rows(uint8_t type, uint8_t op, size_t nr)
{
	uint32_t count = 1 + (uint32_t)(next_random() % ROWS_MAX);

	check_rows_of(type, op, nr, 1 + (uint32_t)(next_random() % count), count);
	check_rows_of(type, op, nr, 4, 8);
	check_rows_of(type, op, nr, 5, 10);
	check_rows_of(type, op, nr, 8, 8);
	check_rows_of(type, op, nr, 9, 9);
}

static void several_at_once_have_the_bits_of_one_after_the_other(void **state)
{
	(void)state;
	for_each_pair(check_rows);
}

/* Longer than a page, the end of a turn included. */
static void long_rows_have_them_too(void **state)
{
	enum { LONGEST = 3 * 4096 + 200, NR = 40 };
	static float sources[NR][LONGEST / 4], dst[LONGEST / 4], sum[2][LONGEST / 4];
	const uint8_t *from[NR];

	(void)state;
	for (int i = 0; i < NR; i++) {
		from[i] = (const uint8_t *)sources[i];
		fill(MUSTER_DTYPE_F32, (uint8_t *)sources[i], LONGEST / 4);
	}
	for (uint32_t nr = 2; nr <= NR; nr++) {
		uint32_t left = nr / 2;

		memcpy(sum[0], sources[0], LONGEST);
		memcpy(sum[1], sources[left], LONGEST);
		for (uint32_t i = 1; i < nr; i++)
			if (i != left)
				muster_arith(MUSTER_DTYPE_F32, MUSTER_REDOP_SUM, sum[i > left],
					     sum[i > left], from[i], LONGEST);
		muster_arith(MUSTER_DTYPE_F32, MUSTER_REDOP_SUM, sum[0], sum[0], sum[1], LONGEST);
		muster_arith_rows(MUSTER_DTYPE_F32, MUSTER_REDOP_SUM, dst, from, left, nr, LONGEST);
		assert_memory_equal(dst, sum[0], LONGEST);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pair_agrees_with_the_reference_at_any_length_and_alignment),
		cmocka_unit_test(operands_may_be_exchanged_bit_for_bit),
		cmocka_unit_test(the_result_may_replace_an_operand),
		cmocka_unit_test(zeros_keep_their_order),
		cmocka_unit_test(a_logical_value_is_that_of_the_whole_element),
		cmocka_unit_test(integers_wrap),
		cmocka_unit_test(a_half_is_rounded_once),
		cmocka_unit_test(a_half_overflows_where_the_nearest_number_would_be_none),
		cmocka_unit_test(every_half_agrees_with_the_reference),
		cmocka_unit_test(a_location_is_the_lowest_index_of_the_value),
		cmocka_unit_test(padding_is_ignored_and_comes_out_zero),
		cmocka_unit_test(replace_takes_the_second),
		cmocka_unit_test(data_is_moved_wherever_it_lies),
		cmocka_unit_test(several_at_once_have_the_bits_of_one_after_the_other),
		cmocka_unit_test(long_rows_have_them_too),
		cmocka_unit_test(what_is_not_defined_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
