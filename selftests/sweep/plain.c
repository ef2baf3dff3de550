// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Elements, and what they add up to, by Documentation/arithmetic.md and a loop over the ranks.
 * Of sums and products of numbers that round, every other element is such that nothing is
 * rounded in whichever order, so that its bits are known; the others are any numbers, of which
 * the result is known nearly. So are all products of complex numbers, for their zeros' signs.
 */
#include "sweep.h"

#include <math.h>
#include <string.h>

#define TYPE(id, name, bytes, kind, lane) \
	{ MUSTER_##id, name, bytes, SWEEP_##kind, MUSTER_##lane }

const struct sweep_type sweep_types[] = {
	TYPE(F32, "f32", 4, FLOAT, F32), TYPE(F64, "f64", 8, FLOAT, F64),
	TYPE(I32, "i32", 4, INT, I32), TYPE(I64, "i64", 8, INT, I64),
	TYPE(U64, "u64", 8, UINT, U64), TYPE(I8, "i8", 1, INT, I8),
	TYPE(U32, "u32", 4, UINT, U32), TYPE(U8, "u8", 1, UINT, U8),
	TYPE(I16, "i16", 2, INT, I16), TYPE(U16, "u16", 2, UINT, U16),
	TYPE(F16, "f16", 2, FLOAT, F16), TYPE(BF16, "bf16", 2, FLOAT, BF16),
	TYPE(C32, "c32", 8, COMPLEX, F32), TYPE(C64, "c64", 16, COMPLEX, F64),
	TYPE(F32_I32, "f32_i32", 8, PAIR, F32), TYPE(F64_I32, "f64_i32", 16, PAIR, F64),
	TYPE(I16_I32, "i16_i32", 8, PAIR, I16), TYPE(I32_I32, "i32_i32", 8, PAIR, I32),
	TYPE(I64_I32, "i64_i32", 16, PAIR, I64),
};

const struct sweep_op sweep_ops[] = {
	{ MUSTER_SUM, "sum" }, { MUSTER_MIN, "min" }, { MUSTER_MAX, "max" }, { MUSTER_BAND, "band" },
	{ MUSTER_BOR, "bor" }, { MUSTER_BXOR, "bxor" }, { MUSTER_LAND, "land" },
	{ MUSTER_LOR, "lor" }, { MUSTER_LXOR, "lxor" }, { MUSTER_PROD, "prod" },
	{ MUSTER_MINLOC, "minloc" }, { MUSTER_MAXLOC, "maxloc" },
	{ MUSTER_SUM_EXACT, "exact" }, { MUSTER_OP_USER, "user" },
};

const uint32_t sweep_nr_types = sizeof(sweep_types) / sizeof(sweep_types[0]);
const uint32_t sweep_nr_ops = sizeof(sweep_ops) / sizeof(sweep_ops[0]);

/* Fixed point of exact sums: elements are multiples of 2^-FRACTION, */
enum { FRACTION = 40, SPREAD = 40 };	/* and their magnitudes spread over so many powers of two */

bool sweep_defined(const struct sweep_type *type, enum muster_op op)
{
	bool integer = type->kind == SWEEP_INT || type->kind == SWEEP_UINT;

	switch (op) {
	case MUSTER_SUM:
	case MUSTER_PROD:
		return type->kind != SWEEP_PAIR;
	case MUSTER_MIN:
	case MUSTER_MAX:
		return integer || type->kind == SWEEP_FLOAT;
	case MUSTER_MINLOC:
	case MUSTER_MAXLOC:
		return type->kind == SWEEP_PAIR;
	case MUSTER_SUM_EXACT:
		return type->type == MUSTER_F32 || type->type == MUSTER_F64;
	case MUSTER_OP_USER:
		return true;
	default:
		return integer;
	}
}

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* ---- numbers, as bits ------------------------------------------------------------------- */

/* Sixteen bits, of which so many are the exponent's and the fraction's. */
static double half_value(uint16_t bits, int exponent_bits, int fraction_bits)
{
	int bias = (1 << (exponent_bits - 1)) - 1;
	int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
	int fraction = bits & ((1 << fraction_bits) - 1);
	double value;

	if (exponent == (1 << exponent_bits) - 1)
		value = fraction ? NAN : INFINITY;
	else if (!exponent)
		value = ldexp(fraction, 1 - bias - fraction_bits);
	else
		value = ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
	return bits >> 15 ? -value : value;
}

/* Of a number that they can hold. */
static uint16_t half_bits(double value, int exponent_bits, int fraction_bits)
{
	int bias = (1 << (exponent_bits - 1)) - 1, exponent;
	uint16_t sign = signbit(value) ? 0x8000 : 0;
	uint16_t all_ones = (uint16_t)(((1 << exponent_bits) - 1) << fraction_bits);
	double fraction;

	if (isnan(value))	/* the canonical one */
		return (uint16_t)(all_ones | 1 << (fraction_bits - 1));
	if (isinf(value))
		return sign | all_ones;
	fraction = frexp(fabs(value), &exponent);
	if (fraction == 0.0)
		return sign;
	exponent += bias - 1;
	if (exponent < 1)
		return sign | (uint16_t)ldexp(fabs(value), bias - 1 + fraction_bits);
	return (uint16_t)(sign | exponent << fraction_bits |
			  ((int)ldexp(fraction, fraction_bits + 1) & ((1 << fraction_bits) - 1)));
}

static double real_get(enum muster_type lane, const void *from)
{
	uint16_t half;
	double wide;
	float single;

	switch (lane) {
	case MUSTER_F16:
	case MUSTER_BF16:
		memcpy(&half, from, sizeof(half));
		return lane == MUSTER_F16 ? half_value(half, 5, 10) : half_value(half, 8, 7);
	case MUSTER_F32:
		memcpy(&single, from, sizeof(single));
		return single;
	default:
		memcpy(&wide, from, sizeof(wide));
		return wide;
	}
}

static void real_put(enum muster_type lane, double value, void *to)
{
	uint64_t nan64 = 0x7ff8000000000000;
	uint32_t nan32 = 0x7fc00000;
	float single = (float)value;
	uint16_t half;

	switch (lane) {
	case MUSTER_F16:
	case MUSTER_BF16:
		half = lane == MUSTER_F16 ? half_bits(value, 5, 10) : half_bits(value, 8, 7);
		memcpy(to, &half, sizeof(half));
		break;
	case MUSTER_F32:
		memcpy(to, isnan(value) ? (void *)&nan32 : (void *)&single, sizeof(single));
		break;
	default:
		memcpy(to, isnan(value) ? (void *)&nan64 : (void *)&value, sizeof(value));
	}
}

static size_t lane_bytes(enum muster_type lane)
{
	for (uint32_t t = 0; t < sweep_nr_types; t++)
		if (sweep_types[t].type == lane)
			return sweep_types[t].bytes;
	return 0;
}

/* Sign extended, or not. */
static int64_t integer_get(enum muster_type lane, const void *from)
{
	uint64_t value = 0;

	memcpy(&value, from, lane_bytes(lane));
	switch (lane) {
	case MUSTER_I8:
		return (int8_t)value;
	case MUSTER_I16:
		return (int16_t)value;
	case MUSTER_I32:
		return (int32_t)value;
	default:
		return (int64_t)value;
	}
}

static bool is_real(enum muster_type lane)
{
	return lane == MUSTER_F16 || lane == MUSTER_BF16 || lane == MUSTER_F32 || lane == MUSTER_F64;
}

/* ---- elements --------------------------------------------------------------------------- */

/* Whether the result's bits depend on the order of additions. */
static bool is_rough(const struct sweep_type *type, enum muster_op op, uint64_t i)
{
	if (type->kind == SWEEP_COMPLEX && op == MUSTER_PROD)
		return true;
	return (type->kind == SWEEP_FLOAT || type->kind == SWEEP_COMPLEX) &&
	       (op == MUSTER_SUM || op == MUSTER_PROD) && i % SWEEP_PERIOD % 2;
}

/* In [0, 1): a few bits that any type has room for. */
static double fraction(uint64_t draw)
{
	return (double)(draw % 128) / 128;
}

/* Any number of about this magnitude: the type's own last bits are drawn. */
static void rough_put(enum muster_type lane, double about, uint64_t draw, void *to)
{
	uint64_t bits = 0;

	real_put(lane, about, to);
	memcpy(&bits, to, lane_bytes(lane));
	bits ^= draw & (lane == MUSTER_F64 ? 0xffffffff : lane == MUSTER_F32 ? 0xffff : 1);
	memcpy(to, &bits, lane_bytes(lane));
}

/* So many times a factor other than one that no product is beyond an f16. */
static double factor(uint32_t rank, uint64_t i, uint64_t draw)
{
	double value = rank % 16 == i % 16 ? 2 : rank % 16 == (i + 5) % 16 ? 0.5 : 1;

	return draw & 1 ? -value : value;
}

static double summand(uint64_t draw)
{
	double value = (double)(draw % 4);

	return draw & 4 ? -value : value;
}

static double anything(uint64_t draw)
{
	static const double few[] = { 0.0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, 0.5 };

	return draw % 8 ? summand(draw >> 3) * 8 + fraction(draw >> 8) * 8 : few[draw / 8 % 8];
}

static void real_element(const struct sweep_type *type, enum muster_op op, uint32_t rank,
			 uint64_t i, uint64_t draw, uint8_t *to)
{
	enum muster_type lane = type->lane;
	int64_t most = type->type == MUSTER_F32 ? 1 << 24 : 1ll << 53;

	if (op == MUSTER_SUM_EXACT)
		real_put(lane, ldexp((double)((int64_t)(draw % (2 * (uint64_t)most)) - most),
				     (int)(mix(draw) % SPREAD) - FRACTION), to);
	else if (op == MUSTER_MIN || op == MUSTER_MAX)
		real_put(lane, anything(draw), to);
	else if (is_rough(type, op, i) && op == MUSTER_PROD)
		rough_put(lane, (draw & 1 ? -1 : 1) * (0.9375 + fraction(draw >> 1) / 16), draw >> 8, to);
	else if (is_rough(type, op, i))
		rough_put(lane, summand(draw) + fraction(draw >> 8), draw >> 16, to);
	else if (i % 61 == 60)		/* one rank has an infinity, or what is no number */
		real_put(lane, rank == i % 3 ? (i / 122 % 2 ? NAN : INFINITY) : 1, to);
	else
		real_put(lane, op == MUSTER_PROD ? factor(rank, i, draw) : summand(draw), to);
}

static void complex_element(const struct sweep_type *type, enum muster_op op, uint32_t rank,
			    uint64_t i, uint64_t draw, uint8_t *to)
{
	size_t half = type->bytes / 2;

	if (op != MUSTER_PROD) {
		real_element(type, op, rank, i, draw, to);
		real_element(type, op, rank, i, mix(draw), to + half);
		return;
	}
	rough_put(type->lane, (draw & 1 ? -1 : 1) * (0.9375 + fraction(draw >> 1) / 16), draw >> 8, to);
	rough_put(type->lane, fraction(draw >> 3) / 4 - 0.125, draw >> 16, to + half);
}

/* Few values, so that several ranks have the same. */
static void pair_element(const struct sweep_type *type, uint64_t draw, uint8_t *to)
{
	size_t bytes = lane_bytes(type->lane);
	int64_t value = (int64_t)(draw % 5) - 2;
	int32_t index = (int32_t)(draw >> 32);

	memset(to, 0, type->bytes);
	if (is_real(type->lane))
		real_put(type->lane, draw % 16 ? summand(draw >> 4) : anything(draw >> 4), to);
	else
		memcpy(to, &value, bytes);
	memcpy(to + (bytes < 4 ? 4 : bytes), &index, sizeof(index));
}

void sweep_element(const struct sweep_type *type, enum muster_op op, uint32_t rank, uint32_t block,
		   uint64_t i, void *to)
{
	uint64_t at = i % SWEEP_PERIOD;
	uint64_t draw = mix(mix(at + ((uint64_t)block << 20)) + rank + 1);
	uint64_t two[2] = { draw, mix(draw) };
	bool logical = op == MUSTER_LAND || op == MUSTER_LOR || op == MUSTER_LXOR;

	if (!op || op == MUSTER_OP_USER)
		memcpy(to, two, type->bytes);
	else if (type->kind == SWEEP_PAIR)
		pair_element(type, draw, to);
	else if (type->kind == SWEEP_COMPLEX)
		complex_element(type, op, rank, at, draw, to);
	else if (type->kind == SWEEP_FLOAT)
		real_element(type, op, rank, at, draw, to);
	else if (logical && two[1] & 1)
		memset(to, 0, type->bytes);
	else
		memcpy(to, two, type->bytes);
}

/* ---- what they add up to ------------------------------------------------------------------ */

static double real_fold(enum muster_op op, double a, double b)
{
	switch (op) {
	case MUSTER_SUM:
		return a + b;
	case MUSTER_PROD:
		return a * b;
	default:
		break;
	}
	if (isnan(a) || isnan(b))
		return NAN;
	if (a == b)		/* zeros are ordered */
		return (op == MUSTER_MIN) == !!signbit(a) ? a : b;
	return (op == MUSTER_MIN) == (a < b) ? a : b;
}

static uint64_t integer_fold(const struct sweep_type *type, enum muster_op op, int64_t a, int64_t b)
{
	bool less = type->kind == SWEEP_UINT ? (uint64_t)a < (uint64_t)b : a < b;

	switch (op) {
	case MUSTER_SUM:
		return (uint64_t)a + (uint64_t)b;
	case MUSTER_PROD:
		return (uint64_t)a * (uint64_t)b;
	case MUSTER_MIN:
		return (uint64_t)(less ? a : b);
	case MUSTER_MAX:
		return (uint64_t)(less ? b : a);
	case MUSTER_BAND:
		return (uint64_t)(a & b);
	case MUSTER_BOR:
		return (uint64_t)(a | b);
	case MUSTER_BXOR:
		return (uint64_t)(a ^ b);
	case MUSTER_LAND:
		return a && b;
	case MUSTER_LOR:
		return a || b;
	default:
		return !a != !b;
	}
}

static void complex_fold(const struct sweep_type *type, enum muster_op op, uint8_t *a,
			 const uint8_t *b)
{
	size_t half = type->bytes / 2;
	double ar = real_get(type->lane, a), ai = real_get(type->lane, a + half);
	double br = real_get(type->lane, b), bi = real_get(type->lane, b + half);

	real_put(type->lane, op == MUSTER_SUM ? ar + br : ar * br - ai * bi, a);
	real_put(type->lane, op == MUSTER_SUM ? ai + bi : ar * bi + ai * br, a + half);
}

/* -1, 0 or 1: whether a goes before b. */
static int value_order(const struct sweep_type *type, enum muster_op op, const void *a, const void *b)
{
	int sign = op == MUSTER_MINLOC ? 1 : -1;

	if (is_real(type->lane)) {
		double x = real_get(type->lane, a), y = real_get(type->lane, b);

		if (isnan(x) || isnan(y))
			return !isnan(x) - !isnan(y);
		return sign * ((x > y) - (x < y));
	}
	int64_t x = integer_get(type->lane, a), y = integer_get(type->lane, b);

	return sign * ((x > y) - (x < y));
}

static void pair_fold(const struct sweep_type *type, enum muster_op op, uint8_t *a, const uint8_t *b)
{
	size_t bytes = lane_bytes(type->lane), at = bytes < 4 ? 4 : bytes;
	int order = value_order(type, op, a, b);
	int32_t mine, other;

	memcpy(&mine, a + at, sizeof(mine));
	memcpy(&other, b + at, sizeof(other));
	/* Zeros are equal, and yet ordered as by min and max. */
	if (!order && is_real(type->lane))
		real_put(type->lane, real_fold(op == MUSTER_MINLOC ? MUSTER_MIN : MUSTER_MAX,
					       real_get(type->lane, a), real_get(type->lane, b)), a);
	if (order > 0)
		memcpy(a, b, type->bytes);
	else if (!order && other < mine)
		memcpy(a + at, &other, sizeof(other));
}

/* Maps x -> m x + c of the numbers modulo 16, one after the other: m above, c below. */
static uint8_t byte_fold(uint8_t a, uint8_t b)
{
	uint8_t m = (uint8_t)((a >> 4) * (b >> 4) % 16);

	return (uint8_t)(m << 4 | ((a >> 4) * (b & 15) + (a & 15)) % 16);
}

void sweep_combine(const void *in, void *inout, uint64_t count, void *opaque)
{
	const struct sweep_type *type = *(const struct sweep_type *const *)opaque;
	const uint8_t *a = in;
	uint8_t *b = inout;

	for (uint64_t i = 0; i < count * type->bytes; i++)
		b[i] = byte_fold(a[i], b[i]);
}

static void fold(const struct sweep_type *type, enum muster_op op, uint8_t *a, const uint8_t *b)
{
	uint64_t value;

	if (op == MUSTER_OP_USER) {
		for (size_t k = 0; k < type->bytes; k++)
			a[k] = byte_fold(a[k], b[k]);
	} else if (type->kind == SWEEP_PAIR) {
		pair_fold(type, op, a, b);
	} else if (type->kind == SWEEP_COMPLEX) {
		complex_fold(type, op, a, b);
	} else if (type->kind == SWEEP_FLOAT) {
		real_put(type->lane, real_fold(op, real_get(type->lane, a), real_get(type->lane, b)), a);
	} else {
		value = integer_fold(type, op, integer_get(type->lane, a), integer_get(type->lane, b));
		memcpy(a, &value, type->bytes);
	}
}

/* In fixed point nothing is rounded but once, by the conversion. */
static void exact_folded(const struct sweep_type *type, uint32_t first, uint32_t last,
			 uint32_t block, uint64_t i, void *to)
{
	__int128 sum = 0;
	uint8_t element[16];

	for (uint32_t r = first; r <= last; r++) {
		sweep_element(type, MUSTER_SUM_EXACT, r, block, i, element);
		sum += (__int128)ldexp(real_get(type->lane, element), FRACTION);
	}
	if (type->type == MUSTER_F32)
		real_put(type->lane, ldexp((float)sum, -FRACTION), to);
	else
		real_put(type->lane, ldexp((double)sum, -FRACTION), to);
}

/* f16 and bf16 of numbers that round are not folded in them: what is near is looked for. */
static void near_folded(const struct sweep_type *type, enum muster_op op, uint32_t first,
			uint32_t last, uint32_t block, uint64_t i, void *to)
{
	double value = 0;
	uint8_t element[16];

	for (uint32_t r = first; r <= last; r++) {
		sweep_element(type, op, r, block, i, element);
		value = r == first ? real_get(type->lane, element) :
				     real_fold(op, value, real_get(type->lane, element));
	}
	memset(to, 0, type->bytes);
	if (type->bytes == 2) {		/* as many bits as there is room for */
		float single = (float)value;
		uint32_t bits;

		memcpy(&bits, &single, sizeof(bits));
		bits = type->lane == MUSTER_BF16 ? bits & 0xffff0000 : bits & 0xffffe000;
		memcpy(&single, &bits, sizeof(single));
		value = single;
	}
	real_put(type->lane, value, to);
}

void sweep_folded(const struct sweep_type *type, enum muster_op op, uint32_t first, uint32_t last,
		  uint32_t block, uint64_t i, void *to)
{
	uint8_t element[16];

	if (op == MUSTER_SUM_EXACT && first < last) {
		exact_folded(type, first, last, block, i, to);
		return;
	}
	if (is_rough(type, op, i) && type->kind == SWEEP_FLOAT && first < last) {
		near_folded(type, op, first, last, block, i, to);
		return;
	}
	sweep_element(type, op, first, block, i, to);
	for (uint32_t r = first + 1; r <= last; r++) {
		sweep_element(type, op, r, block, i, element);
		fold(type, op, to, element);
	}
}

/* ---- judging ------------------------------------------------------------------------------ */

static bool is_near(enum muster_type lane, enum muster_op op, uint32_t ranks, const void *got,
		    const void *expected)
{
	double ulp = lane == MUSTER_F16 ? 0x1p-10 : lane == MUSTER_BF16 ? 0x1p-7 :
		     lane == MUSTER_F32 ? 0x1p-23 : 0x1p-52;
	/* No partial sum is beyond 5 a rank, no partial product beyond 2. */
	double most = op == MUSTER_SUM ? 5.0 * ranks : 4;

	return fabs(real_get(lane, got) - real_get(lane, expected)) <= 2 * ulp * ranks * most;
}

bool sweep_right(const struct sweep_type *type, enum muster_op op, uint32_t ranks, uint64_t i,
		 const void *got, const void *expected)
{
	size_t half = type->kind == SWEEP_COMPLEX ? type->bytes / 2 : 0;

	if (!is_rough(type, op, i) || ranks == 1)
		return !memcmp(got, expected, type->bytes);
	return is_near(type->lane, op, ranks, got, expected) &&
	       (!half || is_near(type->lane, op, ranks, (const char *)got + half,
				 (const char *)expected + half));
}
