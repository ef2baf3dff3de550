// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The arithmetic against its page, element by element: a plain reference, every
 * type and operation, odd lengths and alignments, and the values where floating
 * point differs from machine to machine.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arith.h"

enum { ELEMENTS = 77, BYTES = ELEMENTS * 8 + 64 };

static const uint64_t f64_values[] = {
	0, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000, 0x7ff0000000000000,
	0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000000001, 0x7ff0000000000001, 1,
	0x8000000000000001, 0x7fefffffffffffff, 0xffefffffffffffff, 0x3fb999999999999a,
};

static const uint32_t f32_values[] = {
	0, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001,
	0x7f800001, 1, 0x80000001, 0x7f7fffff, 0xff7fffff, 0x3dcccccd,
};

static uint64_t seed = 1;

static uint64_t next_random(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return seed >> 17 ^ seed << 40;
}

/* ---- the reference, one element at a time ---- */

static uint64_t reference_f64(uint8_t op, uint64_t x, uint64_t y)
{
	double a, b, r;
	uint64_t bits;

	memcpy(&a, &x, 8);
	memcpy(&b, &y, 8);
	r = a + b;
	if (a != a || b != b || (op == MUSTER_REDOP_SUM && r != r))
		return 0x7ff8000000000000;
	if (op == MUSTER_REDOP_SUM) {
		memcpy(&bits, &r, 8);
		return bits;
	}
	if (a == b)
		return op == MUSTER_REDOP_MIN ? x | y : x & y;
	return (op == MUSTER_REDOP_MIN) == (a < b) ? x : y;
}

static uint32_t reference_f32(uint8_t op, uint32_t x, uint32_t y)
{
	float a, b, r;
	uint32_t bits;

	memcpy(&a, &x, 4);
	memcpy(&b, &y, 4);
	r = a + b;
	if (a != a || b != b || (op == MUSTER_REDOP_SUM && r != r))
		return 0x7fc00000;
	if (op == MUSTER_REDOP_SUM) {
		memcpy(&bits, &r, 4);
		return bits;
	}
	if (a == b)
		return op == MUSTER_REDOP_MIN ? x | y : x & y;
	return (op == MUSTER_REDOP_MIN) == (a < b) ? x : y;
}

static uint64_t reference_int(uint8_t op, uint64_t x, uint64_t y, int less)
{
	switch (op) {
	case MUSTER_REDOP_SUM:
		return x + y;
	case MUSTER_REDOP_MIN:
		return less ? x : y;
	case MUSTER_REDOP_MAX:
		return less ? y : x;
	case MUSTER_REDOP_BAND:
		return x & y;
	case MUSTER_REDOP_BOR:
		return x | y;
	case MUSTER_REDOP_BXOR:
		return x ^ y;
	case MUSTER_REDOP_LAND:
		return x && y;
	case MUSTER_REDOP_LOR:
		return x || y;
	default:
		return !x != !y;
	}
}

static void reference(uint8_t type, uint8_t op, uint8_t *dst, const uint8_t *a, const uint8_t *b)
{
	uint64_t x = 0, y = 0, r = 0;
	size_t size = muster_dtype_size(type);

	memcpy(&x, a, size);
	memcpy(&y, b, size);
	switch (type) {
	case MUSTER_DTYPE_F64:
		r = reference_f64(op, x, y);
		break;
	case MUSTER_DTYPE_F32:
		r = reference_f32(op, x, y);
		break;
	case MUSTER_DTYPE_I32:
		r = reference_int(op, x, y, (int32_t)x < (int32_t)y);
		break;
	case MUSTER_DTYPE_U32:
		r = reference_int(op, x, y, (uint32_t)x < (uint32_t)y);
		break;
	case MUSTER_DTYPE_I64:
		r = reference_int(op, x, y, (int64_t)x < (int64_t)y);
		break;
	case MUSTER_DTYPE_U64:
		r = reference_int(op, x, y, x < y);
		break;
	case MUSTER_DTYPE_I8:
		r = reference_int(op, x, y, (int8_t)x < (int8_t)y);
		break;
	}
	memcpy(dst, &r, size);
}

/* ---- operands: random bits, often a special float, or one bit of an integer, or none ---- */

static void fill(uint8_t type, uint8_t *p, size_t nr)
{
	size_t i, size = muster_dtype_size(type);

	for (i = 0; i < nr; i++) {
		uint64_t v = next_random();

		if (type == MUSTER_DTYPE_F64 && v % 4)
			v = f64_values[v / 4 % (sizeof(f64_values) / 8)];
		if (type == MUSTER_DTYPE_F32 && v % 4)
			v = f32_values[v / 4 % (sizeof(f32_values) / 4)];
		if (type != MUSTER_DTYPE_F64 && type != MUSTER_DTYPE_F32 && v % 4 == 0)
			v = v % 8 ? 1ULL << (v >> 8) % (8 * size) : 0;
		memcpy(p + i * size, &v, size);
	}
}

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

	fill(type, a + shift, nr);
	fill(type, b + 1, nr);
	memset(dst, 0xee, sizeof(dst));
	memset(expected, 0xee, sizeof(expected));
	for (i = 0; i < nr; i++)
		reference(type, op, expected + 3 + i * size, a + shift + i * size,
			  b + 1 + i * size);
	assert_int_equal(muster_arith(type, op, dst + 3, a + shift, b + 1, nr * size), 0);
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

static void integer_sums_wrap(void **state)
{
	int64_t big = INT64_MAX, one = 1, r;
	int8_t small = -128, r8;

	(void)state;
	muster_arith(MUSTER_DTYPE_I64, MUSTER_REDOP_SUM, &r, &big, &one, 8);
	assert_true(r == INT64_MIN);
	muster_arith(MUSTER_DTYPE_I8, MUSTER_REDOP_SUM, &r8, &small, &small, 1);
	assert_int_equal(r8, 0);
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
	assert_int_equal(muster_arith(MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, d, d, d, 12), -EINVAL);
	assert_true(d[0] == 1 && d[1] == 2);
	assert_int_equal(muster_dtype_size(MUSTER_DTYPE_NONE), 0);
	assert_int_equal(muster_dtype_size(MUSTER_DTYPE_LAST + 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pair_agrees_with_the_reference_at_any_length_and_alignment),
		cmocka_unit_test(operands_may_be_exchanged_bit_for_bit),
		cmocka_unit_test(the_result_may_replace_an_operand),
		cmocka_unit_test(zeros_keep_their_order),
		cmocka_unit_test(a_logical_value_is_that_of_the_whole_element),
		cmocka_unit_test(integer_sums_wrap),
		cmocka_unit_test(what_is_not_defined_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
