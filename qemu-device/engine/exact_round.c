// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Exact sums, from limbs to numbers. Up to three limbs go by vectors: carries leave digits of at
 * most half a unit of the next limb, each of which is exact as an f64, as is the highest limb.
 * Two are rounded by adding them. Of three, what the first addition lost and the lowest one are
 * added first, and if that is not exact either, the last bit says so: it is far enough below.
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
	VECTOR_LIMBS = 3,
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

/* What rounding lost goes into the last bit, for who will round again. */
#define ODD(sum, lost)                                                                           \
	((vF64)((vI64)(sum) + (((lost) != 0) & (((vI64)(sum) & 1) == 0) &                        \
			       SELECT(((lost) > 0) == ((sum) > 0), (vI64){ 0 } + 1, -1))))

/* to[i] = whole[i] * scale[i], rounded once; with `odd` so that it can be once more. */
CLONES
static void block_convert(const int64_t *whole, const double *scale, bool odd, size_t nr,
			  double *to)
{
	for (size_t i = 0; i < nr; i += LANES) {
		vI64 x = *(const vI64 *)(whole + i);
		vF64 upper = UPPER(x), lower = LOWER(x), sum = upper + lower;
		vF64 lost = lower - (sum - upper);

		if (odd)
			sum = ODD(sum, lost);
		*(vF64 *)(to + i) = sum * *(const vF64 *)(scale + i);
	}
}

bool muster_exact_rounds(const struct muster_exact *exact)
{
	return exact->bottom + (int32_t)((exact->limbs - 1) * exact->bits) <= UNIT_MAX;
}

#define THREE_HALVES_52	0x4338000000000000	/* of 1.5 * 2^52: a sum below 2^51 is in its fraction */
#define NUMBER_OF(x)	((vF64)((x) + THREE_HALVES_52) - 0x1.8p52)

/* What is carried from a limb: to the nearest, so that at most half a unit of the next is left. */
#define CARRY(x, bits)                                                                           \
	((vI64)((vU64)((x) + (((int64_t)1 << ((bits) - 1)) + ((int64_t)1 << 62))) >> (bits)) -   \
	 ((int64_t)1 << (62 - (bits))))
#define LEFT(x, carry, bits) ((x) - (vI64)((vU64)(carry) << (bits)))

/* One or two limbs of each. */
CLONES
static void block_add_two(const struct muster_exact *exact, const int64_t *limbs, size_t apart,
			  bool odd, size_t nr, double *to)
{
	double unit = muster_exact_power(exact->bottom);
	double upper = unit * muster_exact_power((int32_t)exact->bits);
	const int64_t *high = exact->limbs == 2 ? limbs + apart : NULL;
	uint64_t bits = exact->bits;

	for (size_t i = 0; i < nr; i += LANES) {
		vI64 low = *(const vI64 *)(limbs + i), carry = CARRY(low, bits);
		vF64 a, b = NUMBER_OF(LEFT(low, carry, bits)) * unit, sum;

		if (high)
			carry += *(const vI64 *)(high + i);
		a = NUMBER_OF(carry) * upper;
		sum = a + b;
		*(vF64 *)(to + i) = odd ? ODD(sum, b - (sum - a)) : sum;
	}
}

CLONES
static void block_add_three(const struct muster_exact *exact, const int64_t *limbs, size_t apart,
			    bool odd, size_t nr, double *to)
{
	double unit = muster_exact_power(exact->bottom);
	double width = muster_exact_power((int32_t)exact->bits);
	uint64_t bits = exact->bits;

	for (size_t i = 0; i < nr; i += LANES) {
		vI64 low = *(const vI64 *)(limbs + i), carry = CARRY(low, bits);
		vI64 middle = *(const vI64 *)(limbs + apart + i) + carry;
		vF64 c = NUMBER_OF(LEFT(low, carry, bits)) * unit, a, b, sum, lost, rest;

		carry = CARRY(middle, bits);
		b = NUMBER_OF(LEFT(middle, carry, bits)) * (unit * width);
		a = NUMBER_OF(*(const vI64 *)(limbs + 2 * apart + i) + carry) *
		    (unit * width * width);
		sum = a + b;
		lost = b - (sum - a);
		rest = lost + c;
		rest = ODD(rest, c - (rest - lost));
		a = sum + rest;
		*(vF64 *)(to + i) = odd ? ODD(a, rest - (a - sum)) : a;
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

/* One, two or three limbs; what is no whole vector is copied. */
static void few_round(const struct muster_exact *exact, const int64_t *limbs, size_t apart,
		      size_t nr, bool odd, double *to)
{
	int64_t copies[VECTOR_LIMBS][BLOCK];

	if (nr % LANES) {
		memset(copies, 0, sizeof(copies));
		for (uint32_t j = 0; j < exact->limbs; j++)
			memcpy(copies[j], limbs + j * apart, nr * sizeof(*limbs));
		limbs = copies[0];
		apart = BLOCK;
	}
	if (exact->limbs == VECTOR_LIMBS)
		block_add_three(exact, limbs, apart, odd, nr, to);
	else
		block_add_two(exact, limbs, apart, odd, nr, to);
}

static void many_round(const struct muster_exact *exact, int64_t *limbs, size_t apart, size_t nr,
		       bool odd, double *to)
{
	int64_t whole[BLOCK] = { 0 };
	double scale[BLOCK] = { 0 };
	int32_t exponent;

	for (size_t i = 0; i < nr; i++) {
		whole[i] = whole_of(exact, limbs + i, apart, &exponent);
		scale[i] = muster_exact_power(exponent);
	}
	block_convert(whole, scale, odd, nr, to);
}

static double special_of(int64_t counts, double finite)
{
	const uint64_t bits = NAN_BITS;
	double nan;

	memcpy(&nan, &bits, sizeof(nan));
	if (!counts)
		return finite;
	if (counts >> 40 || (counts >> 20 && counts & 0xfffff))
		return nan;
	return counts >> 20 ? -__builtin_inf() : __builtin_inf();
}

CLONES
static void block_narrow(const double *block, size_t nr, uint8_t *to)
{
	float f;
	size_t i = 0;

	for (; nr - i >= LANES; i += LANES)
		*(halfF32 *)(to + i * sizeof(f)) =
			__builtin_convertvector(*(const vF64 *)(block + i), halfF32);
	for (; i < nr; i++) {
		f = (float)block[i];
		memcpy(to + i * sizeof(f), &f, sizeof(f));
	}
}

static void block_write(uint8_t type, const double *block, size_t nr, uint8_t *to)
{
	if (type == MUSTER_DTYPE_F32)
		block_narrow(block, nr, to);
	else
		memcpy(to, block, nr * sizeof(*block));
}

void muster_exact_round(const struct muster_exact *exact, uint8_t type, int64_t *limbs, size_t nr,
			void *to)
{
	bool few = exact->limbs <= VECTOR_LIMBS && muster_exact_rounds(exact);
	bool odd = type == MUSTER_DTYPE_F32;
	size_t size = muster_dtype_size(type);
	double block[BLOCK];

	for (size_t at = 0, some; at < nr; at += some) {
		some = nr - at < BLOCK ? nr - at : BLOCK;
		if (few)
			few_round(exact, limbs + at, nr, some, odd, block);
		else
			many_round(exact, limbs + at, nr, some, odd, block);
		for (size_t i = 0; i < some && exact->special; i++)
			block[i] = special_of(limbs[exact->limbs * nr + at + i], block[i]);
		block_write(type, block, some, (uint8_t *)to + at * size);
	}
}
