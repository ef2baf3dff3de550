// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Exact sums, from limbs to numbers. Up to three limbs go by vectors: each is exact as an f64, and
 * two are rounded by adding them. Of three, carries leave digits of at most half a unit of the next
 * limb; what the first addition lost and the lowest one are added first, and if that is not exact
 * either, the last bit says so: it is far enough below.
 *
 * Of more limbs, or very large ones, the whole integer's 60 to 62 highest bits are taken, one
 * number at a time; if any bit below is set, so is the last of these. Such a number rounds as the
 * whole does, and scaling it by a power of two changes nothing: every sum is a multiple of 2^-1074.
 */
#include "exact.h"

#include <stdbool.h>
#include <string.h>

#include "arith_vector.h"

enum {
	LANES = WIDE / 8,
	BLOCK = 256,
	UNIT_MAX = 900,		/* exponent of the highest limb's, if it is to be rounded to */
};

#define NAN_BITS	0x7ff8000000000000
#define TWO_52		0x4330000000000000	/* an integer below 2^52 in its fraction is itself */
#define TWO_84		0x4530000000000000	/* and here, so many 2^32 */

double muster_exact_power(int32_t exponent)
{
	uint64_t bits = exponent < -1022 ? 1ULL << (exponent + 1074) :
					   (uint64_t)(exponent + 1023) << 52;
	double power;

	memcpy(&power, &bits, sizeof(power));
	return power;
}

/* A lane's upper and lower half as f64, exactly: 2^32 times a signed one, an unsigned one. */
#define UPPER(x) ((vF64)(((vU64)(x) >> 32 ^ 0x80000000) | TWO_84) - (0x1p84 + 0x1p63))
#define LOWER(x) ((vF64)(((vU64)(x) & 0xffffffff) | TWO_52) - 0x1p52)

/* a + b is sum and this. */
#define LOST(sum, a, b)	(((a) - ((sum) - ((sum) - (a)))) + ((b) - ((sum) - (a))))
/* What rounding lost goes into the last bit, for who will round again: as if the others were cut off. */
#define ODD(sum, lost)                                                                           \
	((vF64)(((vI64)(sum) + (((lost) != 0) & (((vI64)(sum) ^ (vI64)(lost)) < 0))) |           \
		(((lost) != 0) & 1)))

/* As f64, or rounded to f32: then `sum` is to be ODD. */
#define PUT(sum)                                                                                 \
	do {                                                                                     \
		if (single)                                                                      \
			*(halfF32 *)(to + i * 4) = __builtin_convertvector(sum, halfF32);        \
		else                                                                             \
			*(vF64 *)(to + i * 8) = (sum);                                           \
	} while (0)

/* to[i] = whole[i] * scale[i], rounded once; or once to odd, and then to f32. */
CLONES
static void block_convert(const int64_t *whole, const double *scale, bool single, size_t nr,
			  uint8_t *to)
{
	for (size_t i = 0; i < nr; i += LANES) {
		vI64 x = *(const vI64 *)(whole + i);
		vF64 upper = UPPER(x), lower = LOWER(x), sum = upper + lower;
		vF64 lost = lower - (sum - upper);

		if (single)
			sum = ODD(sum, lost);
		sum *= *(const vF64 *)(scale + i);
		PUT(sum);
	}
}

static int32_t unit_of(const struct muster_exact *exact, uint32_t limb)
{
	return exact->bottom + (int32_t)(limb * exact->bits);
}

bool muster_exact_is_short(const struct muster_exact *exact)
{
	return exact->limbs <= MUSTER_EXACT_FEW && unit_of(exact, exact->limbs - 1) <= UNIT_MAX;
}

double muster_exact_rounder(const struct muster_exact *exact, uint32_t limb)
{
	return 1.5 * 0x1p52 * muster_exact_power(unit_of(exact, limb));
}

/* What so many units are: in the lowest bits of a limb's rounder. */
#define NUMBER_OF(x, rounder)	((vF64)((x) + (vI64)(rounder)) - (rounder))
#define EACH(x)			((vF64){ x, x, x, x })

/* What is carried from a limb: to the nearest, so that at most half a unit of the next is left. */
#define CARRY(x, bits)                                                                           \
	((vI64)((vU64)((x) + (((int64_t)1 << ((bits) - 1)) + ((int64_t)1 << 62))) >> (bits)) -   \
	 ((int64_t)1 << (62 - (bits))))
#define LEFT(x, carry, bits) ((x) - (vI64)((vU64)(carry) << (bits)))

/* One limb is an f64 already. */
CLONES
static void take_one(const struct muster_exact *exact, const int64_t *limbs, bool single, size_t nr,
		     uint8_t *to)
{
	vF64 unit = EACH(muster_exact_rounder(exact, 0));

	for (size_t i = 0; i < nr; i += LANES)
		PUT(NUMBER_OF(*(const vI64 *)(limbs + i), unit));
}

CLONES
static void add_two(const struct muster_exact *exact, const int64_t *limbs, size_t apart,
		    bool single, size_t nr, uint8_t *to)
{
	vF64 low = EACH(muster_exact_rounder(exact, 0)), high = EACH(muster_exact_rounder(exact, 1));

	for (size_t i = 0; i < nr; i += LANES) {
		vF64 a = NUMBER_OF(*(const vI64 *)(limbs + apart + i), high);
		vF64 b = NUMBER_OF(*(const vI64 *)(limbs + i), low), sum = a + b;

		if (single)
			sum = ODD(sum, LOST(sum, a, b));
		PUT(sum);
	}
}

CLONES
static void add_three(const struct muster_exact *exact, const int64_t *limbs, size_t apart,
		      bool single, size_t nr, uint8_t *to)
{
	vF64 low = EACH(muster_exact_rounder(exact, 0)), high = EACH(muster_exact_rounder(exact, 2));
	vF64 between = EACH(muster_exact_rounder(exact, 1));
	uint64_t bits = exact->bits;

	for (size_t i = 0; i < nr; i += LANES) {
		vI64 lowest = *(const vI64 *)(limbs + i), carry = CARRY(lowest, bits);
		vI64 middle = *(const vI64 *)(limbs + apart + i) + carry;
		vF64 c = NUMBER_OF(LEFT(lowest, carry, bits), low), a, b, sum, lost, rest;

		carry = CARRY(middle, bits);
		b = NUMBER_OF(LEFT(middle, carry, bits), between);
		a = NUMBER_OF(*(const vI64 *)(limbs + 2 * apart + i) + carry, high);
		sum = a + b;
		lost = b - (sum - a);
		rest = lost + c;
		rest = ODD(rest, c - (rest - lost));
		a = sum + rest;
		if (single)
			a = ODD(a, rest - (a - sum));
		PUT(a);
	}
}

/* The highest bits of any number of limbs, which are `apart` from each other. */
static int64_t whole_of(const struct muster_exact *exact, int64_t *limbs, size_t apart,
			int32_t *exponent)
{
	int32_t bits = (int32_t)exact->bits, rest = 0;
	int64_t mask = (1LL << bits) - 1, whole;
	uint32_t j;

	for (j = 0; j + 1 < exact->limbs; j++) {
		limbs[(j + 1) * apart] += limbs[j * apart] >> bits;
		limbs[j * apart] &= mask;
	}
	for (whole = limbs[j * apart]; j && !rest; j--) {
		uint64_t magnitude = (uint64_t)(whole < 0 ? -whole : whole);
		int32_t place = magnitude ? __builtin_clzll(magnitude) - 2 : bits;
		int64_t next = limbs[(j - 1) * apart];

		place = place < 0 ? 0 : place > bits ? bits : place;
		rest = bits - place;
		whole = (int64_t)((uint64_t)whole << place) | next >> rest;
		whole |= (next & ((1LL << rest) - 1)) != 0;
	}
	*exponent = exact->bottom + (int32_t)j * bits + rest;
	while (j--)
		whole |= limbs[j * apart] != 0;
	return whole;
}

/* One, two or three limbs of whole vectors. */
static void short_round(const struct muster_exact *exact, const int64_t *limbs, size_t apart,
			bool single, size_t nr, uint8_t *to)
{
	if (exact->limbs == 1)
		take_one(exact, limbs, single, nr, to);
	else if (exact->limbs == 2)
		add_two(exact, limbs, apart, single, nr, to);
	else
		add_three(exact, limbs, apart, single, nr, to);
}

/* What is no whole vector. */
static void short_round_rest(const struct muster_exact *exact, const int64_t *limbs, size_t apart,
			     bool single, size_t nr, uint8_t *to)
{
	int64_t copies[MUSTER_EXACT_FEW * LANES] = { 0 };
	uint8_t rounded[WIDE];

	for (uint32_t j = 0; j < exact->limbs; j++)
		memcpy(copies + j * LANES, limbs + j * apart, nr * sizeof(*limbs));
	short_round(exact, copies, LANES, single, LANES, rounded);
	memcpy(to, rounded, nr * (single ? 4 : 8));
}

/* Up to a block. */
static void long_round(const struct muster_exact *exact, int64_t *limbs, size_t apart, bool single,
		       size_t nr, uint8_t *to)
{
	int64_t whole[BLOCK] = { 0 };
	double scale[BLOCK] = { 0 };
	uint8_t rounded[sizeof(whole)];
	int32_t exponent;

	for (size_t i = 0; i < nr; i++) {
		whole[i] = whole_of(exact, limbs + i, apart, &exponent);
		scale[i] = muster_exact_power(exponent);
	}
	block_convert(whole, scale, single, nr, rounded);
	memcpy(to, rounded, nr * (single ? 4 : 8));
}

static double special_of(int64_t counts)
{
	const uint64_t bits = NAN_BITS;
	double nan;

	memcpy(&nan, &bits, sizeof(nan));
	if (counts >> 40 || (counts >> 20 && counts & 0xfffff))
		return nan;
	return counts >> 20 ? -__builtin_inf() : __builtin_inf();
}

/* Sums of what is no number. */
static void put_special(const int64_t *counts, bool single, size_t nr, uint8_t *to)
{
	for (size_t i = 0; i < nr; i++) {
		double sum = counts[i] ? special_of(counts[i]) : 0;
		float narrow = (float)sum;

		if (counts[i] && single)
			memcpy(to + i * 4, &narrow, sizeof(narrow));
		else if (counts[i])
			memcpy(to + i * 8, &sum, sizeof(sum));
	}
}

void muster_exact_round(const struct muster_exact *exact, uint8_t type, int64_t *limbs, size_t nr,
			void *result)
{
	bool single = type == MUSTER_DTYPE_F32;
	size_t size = muster_dtype_size(type), rest = nr % LANES, whole = nr - rest;
	uint8_t *to = result;

	if (muster_exact_is_short(exact)) {
		short_round(exact, limbs, nr, single, whole, to);
		short_round_rest(exact, limbs + whole, nr, single, rest, to + whole * size);
	} else {
		for (size_t at = 0; at < nr; at += BLOCK)
			long_round(exact, limbs + at, nr, single, nr - at < BLOCK ? nr - at : BLOCK,
				   to + at * size);
	}
	if (exact->special)
		put_special(limbs + exact->limbs * nr, single, nr, to);
}
