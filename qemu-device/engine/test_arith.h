/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the arithmetic must give, and operands for it: a plain reference, one element
 * at a time, from the page and C's own operators; 16 bits by way of doubles.
 */
#ifndef MUSTER_TEST_ARITH_H
#define MUSTER_TEST_ARITH_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "muster_desc.h"

static const uint64_t f64_values[] = {
	0, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000, 0x7ff0000000000000,
	0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000000001, 0x7ff0000000000001, 1,
	0x8000000000000001, 0x7fefffffffffffff, 0xffefffffffffffff, 0x3fb999999999999a,
};

static const uint32_t f32_values[] = {
	0, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001,
	0x7f800001, 1, 0x80000001, 0x7f7fffff, 0xff7fffff, 0x3dcccccd,
};

/* Zeros, ones, where subnormals end, where numbers end, ties, infinities and NaN, of both. */
static const uint16_t half_values[] = {
	0x0000, 0x8000, 0x0001, 0x8001, 0x0002, 0x007f, 0x0080, 0x8080, 0x0081, 0x03ff, 0x83ff,
	0x0400, 0x8400, 0x0401, 0x1000, 0x13ff, 0x1400, 0x2000, 0x2e66, 0x3400, 0x3555, 0x3800,
	0x3bff, 0x3c00, 0xbc00, 0x3c01, 0x3dcd, 0x3f7f, 0x3f80, 0xbf80, 0x3f81, 0x4000, 0x4248,
	0x4900, 0x5000, 0x6400, 0x6bff, 0x7000, 0x7800, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7c01,
	0x7e00, 0xfe01, 0x7f00, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7f81, 0x7fc0, 0xffc1, 0x0100,
	0x2001, 0x7001, 0x57ff, 0x67ff, 0x1c00, 0x9c01, 0x4bc0, 0x4b7f, 0x8fff,
};

enum { HALF_VALUES = sizeof(half_values) / sizeof(half_values[0]) };

static uint64_t seed = 1;

static uint64_t next_random(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return seed >> 17 ^ seed << 40;
}

/* ---- the reference, one element at a time ---- */

static const struct {
	uint8_t size;
	uint8_t kind;
} rows[] = {
#define ROW(name, number, word, bytes, kind) [number] = { bytes, MUSTER_KIND_##kind },
	MUSTER_DTYPES(ROW)
};

static uint64_t reference_f64(uint8_t op, uint64_t x, uint64_t y)
{
	double a, b, r;
	uint64_t bits;

	memcpy(&a, &x, 8);
	memcpy(&b, &y, 8);
	r = op == MUSTER_REDOP_PROD ? a * b : a + b;
	memcpy(&bits, &r, 8);
	if (isnan(a) || isnan(b))
		return 0x7ff8000000000000;
	if (op == MUSTER_REDOP_SUM || op == MUSTER_REDOP_PROD)
		return isnan(r) ? 0x7ff8000000000000 : bits;
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
	r = op == MUSTER_REDOP_PROD ? a * b : a + b;
	memcpy(&bits, &r, 4);
	if (isnan(a) || isnan(b))
		return 0x7fc00000;
	if (op == MUSTER_REDOP_SUM || op == MUSTER_REDOP_PROD)
		return isnan(r) ? 0x7fc00000 : bits;
	if (a == b)
		return op == MUSTER_REDOP_MIN ? x | y : x & y;
	return (op == MUSTER_REDOP_MIN) == (a < b) ? x : y;
}

/* A format of 16 bits: its fraction's bits, and the exponent of its last subnormal bit. */
struct half {
	int fraction;
	int last;
};

static const struct half f16 = { 10, -24 }, bf16 = { 7, -133 };

static double half_value(const struct half *half, uint16_t bits)
{
	int top = 0x7fff >> half->fraction, exponent = (bits & 0x7fff) >> half->fraction;
	int fraction = bits & ((1 << half->fraction) - 1);
	double v;

	if (exponent == top)
		v = fraction ? NAN : INFINITY;
	else if (exponent)
		v = ldexp((1 << half->fraction) + fraction, half->last + exponent - 1);
	else
		v = ldexp(fraction, half->last);
	return bits & 0x8000 ? -v : v;
}

/* The nearest one: as a multiple of its last bit, which rint() makes even where two are as near. */
static uint16_t half_bits(const struct half *half, double v)
{
	uint16_t sign = signbit(v) ? 0x8000 : 0, infinity = 0x7fff & ~((1 << half->fraction) - 1);
	int exponent, unit;
	double steps;

	if (isnan(v))
		return infinity | 1 << (half->fraction - 1);
	if (isinf(v) || v == 0)
		return sign | (v == 0 ? 0 : infinity);
	frexp(v, &exponent);
	unit = exponent - half->fraction - 1 < half->last ? half->last :
							   exponent - half->fraction - 1;
	steps = rint(ldexp(fabs(v), -unit));
	v = steps + ldexp(unit - half->last, half->fraction);
	return sign | (v < infinity ? (uint16_t)v : infinity);
}

/*
 * What a sum of doubles loses is put into its last bit, so that it rounds as the exact one;
 * products of so few bits lose nothing.
 */
static double odd_sum(double a, double b)
{
	double sum = a + b, part = sum - a, lost = (a - (sum - part)) + (b - part);
	uint64_t bits;

	memcpy(&bits, &sum, 8);
	if (!isfinite(sum) || lost == 0 || bits & 1)
		return sum;
	bits += (lost > 0) == (sum > 0) ? 1 : -1;
	memcpy(&sum, &bits, 8);
	return sum;
}

static uint16_t reference_half(const struct half *half, uint8_t op, uint16_t x, uint16_t y)
{
	double a = half_value(half, x), b = half_value(half, y);

	if (isnan(a) || isnan(b))
		return half_bits(half, NAN);
	if (op == MUSTER_REDOP_SUM)
		return half_bits(half, odd_sum(a, b));
	if (op == MUSTER_REDOP_PROD)
		return half_bits(half, a * b);
	if (a == b)
		return op == MUSTER_REDOP_MIN ? x | y : x & y;
	return (op == MUSTER_REDOP_MIN) == (a < b) ? x : y;
}

static uint64_t reference_int(uint8_t op, uint64_t x, uint64_t y, int less)
{
	switch (op) {
	case MUSTER_REDOP_SUM:
		return x + y;
	case MUSTER_REDOP_PROD:
		return x * y;
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

static int64_t signed_value(uint64_t bits, size_t size)
{
	unsigned int rest = 64 - 8 * (unsigned int)size;

	return (int64_t)(bits << rest) >> rest;
}

/* Parts one after another; of a product each rounded, then their sum. */
static void reference_complex(uint8_t part, uint8_t op, uint8_t *dst, const uint8_t *a,
			      const uint8_t *b)
{
	size_t size = rows[part].size;
	uint64_t x[2] = { 0 }, y[2] = { 0 }, r[2] = { 0 }, four[4], minus;

	for (int i = 0; i < 2; i++) {
		memcpy(&x[i], a + i * size, size);
		memcpy(&y[i], b + i * size, size);
	}
#define OF(op, x, y) (part == MUSTER_DTYPE_F32 ? reference_f32(op, x, y) : reference_f64(op, x, y))
	for (int i = 0; i < 4; i++)
		four[i] = OF(MUSTER_REDOP_PROD, x[i / 2], y[i % 2]);
	minus = four[3] ^ 1ULL << (8 * size - 1);
	r[0] = op == MUSTER_REDOP_SUM ? OF(op, x[0], y[0]) : OF(MUSTER_REDOP_SUM, four[0], minus);
	r[1] = op == MUSTER_REDOP_SUM ? OF(op, x[1], y[1]) : OF(MUSTER_REDOP_SUM, four[1], four[2]);
	for (int i = 0; i < 2; i++)
		memcpy(dst + i * size, &r[i], size);
}

/* As C has them. */
struct pair {
	double number;		/* of whole ones of more than 53 bits: whole */
	int64_t whole;
	int32_t index;
};

static struct pair pair_read(uint8_t type, const uint8_t *from)
{
	struct pair pair = { 0 };
	float single;
	uint64_t bits = 0;
	size_t size = type == MUSTER_DTYPE_I16_I32 ? 2 : rows[type].size / 2;

	memcpy(&bits, from, size);
	memcpy(&single, from, 4);
	memcpy(&pair.index, from + rows[type].size / 2, 4);
	pair.whole = signed_value(bits, size);
	if (type == MUSTER_DTYPE_F32_I32)
		pair.number = single;
	if (type == MUSTER_DTYPE_F64_I32)
		memcpy(&pair.number, &bits, 8);
	return pair;
}

/* Which comes first: -1, 1 or 0. NaN before all. */
static int pair_order(uint8_t type, uint8_t op, const struct pair *a, const struct pair *b)
{
	int sign = op == MUSTER_REDOP_MINLOC ? 1 : -1;

	if (type != MUSTER_DTYPE_F32_I32 && type != MUSTER_DTYPE_F64_I32)
		return sign * ((a->whole > b->whole) - (a->whole < b->whole));
	if (isnan(a->number) || isnan(b->number))
		return !isnan(a->number) - !isnan(b->number);
	return sign * ((a->number > b->number) - (a->number < b->number));
}

static void reference_pair(uint8_t type, uint8_t op, uint8_t *dst, const uint8_t *x,
			   const uint8_t *y)
{
	struct pair a = pair_read(type, x), b = pair_read(type, y), r;
	int order = pair_order(type, op, &a, &b);
	size_t lane = rows[type].size / 2;
	float single;

	r = order <= 0 ? a : b;
	if (!order)
		r.index = a.index < b.index ? a.index : b.index;
	if (!order && r.number == 0 && signbit(a.number) != signbit(b.number))
		r.number = op == MUSTER_REDOP_MINLOC ? -0.0 : 0.0;
	if (isnan(r.number))
		r.number = NAN;
	single = (float)r.number;
	memset(dst, 0, 2 * lane);
	memcpy(dst, &r.whole, type == MUSTER_DTYPE_I16_I32 ? 2 : lane);
	if (type == MUSTER_DTYPE_F32_I32)
		memcpy(dst, &single, 4);
	if (type == MUSTER_DTYPE_F64_I32)
		memcpy(dst, &r.number, 8);
	memcpy(dst + lane, &r.index, 4);
}

static void reference(uint8_t type, uint8_t op, uint8_t *dst, const uint8_t *a, const uint8_t *b)
{
	uint64_t x = 0, y = 0, r = 0;
	size_t size = rows[type].size;

	if (op == MUSTER_REDOP_REPLACE) {
		memcpy(dst, b, size);
		return;
	}
	memcpy(&x, a, size < 8 ? size : 8);
	memcpy(&y, b, size < 8 ? size : 8);
	switch (rows[type].kind) {
	case MUSTER_KIND_FLOAT:
		r = size == 8 ? reference_f64(op, x, y) : reference_f32(op, x, y);
		break;
	case MUSTER_KIND_HALF:
		r = reference_half(type == MUSTER_DTYPE_F16 ? &f16 : &bf16, op, x, y);
		break;
	case MUSTER_KIND_COMPLEX:
		reference_complex(size == 8 ? MUSTER_DTYPE_F32 : MUSTER_DTYPE_F64, op, dst, a, b);
		return;
	case MUSTER_KIND_PAIR:
		reference_pair(type, op, dst, a, b);
		return;
	case MUSTER_KIND_INT:
		r = reference_int(op, x, y, signed_value(x, size) < signed_value(y, size));
		break;
	default:
		r = reference_int(op, x, y, x < y);
	}
	memcpy(dst, &r, size);
}

/* ---- operands: random bits, often a special float, or one bit of an integer, or none ---- */

static uint64_t special(size_t size, uint64_t v)
{
	switch (size) {
	case 8:
		return f64_values[v % (sizeof(f64_values) / 8)];
	case 4:
		return f32_values[v % (sizeof(f32_values) / 4)];
	default:
		return half_values[v % HALF_VALUES];
	}
}

static uint64_t operand(uint8_t kind, size_t size, uint64_t v)
{
	if (kind == MUSTER_KIND_INT || kind == MUSTER_KIND_UINT)
		return v % 4 ? v : v % 8 ? 1ULL << (v >> 8) % (8 * size) : 0;
	return v % 4 ? special(size, v / 4) : v;
}

/* Of a pair the index is of few, and so are most whole values, so that some are equal. */
static void fill_two(uint8_t type, uint8_t *p)
{
	size_t lane = rows[type].size / 2;
	bool whole = type >= MUSTER_DTYPE_I16_I32;

	for (int i = 0; i < 2; i++) {
		uint64_t v = next_random();

		if (rows[type].kind == MUSTER_KIND_PAIR && (i || (whole && v % 4)))
			v = v % 8 - (v >> 60 & 4) + (v & 0xffffffff00000000);
		else if (!whole)
			v = operand(MUSTER_KIND_FLOAT, lane, v);
		memcpy(p + i * lane, &v, lane);
	}
}

static void fill(uint8_t type, uint8_t *p, size_t nr)
{
	size_t i, size = rows[type].size;

	for (i = 0; i < nr; i++) {
		uint64_t v = operand(rows[type].kind, size, next_random());

		if (rows[type].kind & (MUSTER_KIND_COMPLEX | MUSTER_KIND_PAIR))
			fill_two(type, p + i * size);
		else
			memcpy(p + i * size, &v, size);
	}
}

#endif /* MUSTER_TEST_ARITH_H */
