// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Exact sums, from numbers to limbs: what they span, and their digits.
 *
 * An f32 is looked at as the f64 that it is. A number is cut, from the highest limb down, into
 * whole multiples of the limbs' units: adding 1.5 * 2^52 of them rounds to such a multiple and
 * leaves it in the lowest bits, and what is left over is exact. Where units are too large for
 * that, a digit is taken from the number's own bits, as many as a limb has, with its sign.
 *
 * A digit is at most 2^bits, and bits are so few that the sum of all ranks' digits, with what is
 * carried into it, stays below 2^51: as an f64 it is exact, too.
 */
#include "exact.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "arith_vector.h"

enum {
	BLOCK = 256,		/* numbers looked at as f64 at once */
	LANES = WIDE / 8,
	FRACTION = 52,
	EXPONENT_LAST = -1074,	/* of the last bit of a subnormal number */
	TOP_MAX = 1024,
	SUM_BITS = 50,		/* of a limb's sum */
};

#define MAGNITUDE	INT64_MAX
#define INFINITE	0x7ff0000000000000
#define FRACTION_MASK	0x000fffffffffffff

CLONES
static void block_widen(const uint8_t *from, size_t nr, double *block)
{
	float f;
	size_t i = 0;

	for (; nr - i >= LANES; i += LANES)
		*(vF64 *)(block + i) =
			__builtin_convertvector(*(const halfF32 *)(from + i * sizeof(f)), vF64);
	for (; i < nr; i++) {
		memcpy(&f, from + i * sizeof(f), sizeof(f));
		block[i] = f;
	}
}

/* Up to a block of numbers as f64, whole vectors: where they are, or copied and filled up with zeros. */
static const uint8_t *block_read(uint8_t type, const uint8_t *from, size_t nr, double *block)
{
	size_t i;

	if (type == MUSTER_DTYPE_F64 && nr % LANES == 0)
		return from;
	if (type == MUSTER_DTYPE_F64)
		memcpy(block, from, nr * sizeof(double));
	else
		block_widen(from, nr, block);
	for (i = nr; i % LANES; i++)
		block[i] = 0;
	return (const uint8_t *)block;
}

static int64_t bits_at(const uint8_t *numbers, size_t i)
{
	int64_t bits;

	memcpy(&bits, numbers + i * sizeof(bits), sizeof(bits));
	return bits;
}

#define LARGER(x, y)	SELECT((x) > (y), x, y)
#define SMALLER(x, y)	SELECT((x) < (y), x, y)

/* Of numbers' bits: largest and smallest magnitude but zero, and all bits of fractions. */
struct look {
	int64_t largest;
	int64_t smallest;
	int64_t fractions;
};

CLONES
static void block_look(const uint8_t *bits, size_t nr, struct look *look)
{
	vI64 high = { 0 }, low = (vI64){ 0 } + INT64_MAX, fractions = { 0 };

	for (size_t i = 0; i < nr; i += LANES) {
		vI64 x = *(const vI64 *)(bits + i * 8) & MAGNITUDE;
		vI64 some = x | (vI64)((vU64)(x == 0) >> 1);

		high = LARGER(high, x);
		low = SMALLER(low, some);
		fractions |= x;
	}
	*look = (struct look){ 0, INT64_MAX, 0 };
	for (size_t i = 0; i < LANES; i++) {
		look->largest = high[i] > look->largest ? high[i] : look->largest;
		look->smallest = low[i] < look->smallest ? low[i] : look->smallest;
		look->fractions |= fractions[i] & FRACTION_MASK;
	}
}

/*
 * The smallest last bit of numbers that are not zero: what is lost when it is cleared; of a
 * power of two, which has no other, itself.
 */
CLONES
static int64_t block_last(const uint8_t *bits, size_t nr)
{
	vI64 low = (vI64){ 0 } + INFINITE;
	int64_t last = INFINITE;

	for (size_t i = 0; i < nr; i += LANES) {
		vI64 x = *(const vI64 *)(bits + i * 8) & MAGNITUDE;
		vI64 rest = SELECT((x & FRACTION_MASK) != 0, x & (x - 1), 0);
		vI64 bit = (vI64)((vF64)x - (vF64)rest);

		low = SELECT((bit < low) & (x != 0), bit, low);
	}
	for (size_t i = 0; i < LANES; i++)
		last = low[i] < last ? low[i] : last;
	return last;
}

/* Of a number's bits, which is not zero: of the last bit of a whole m; 0 < m < 2^53. */
static int32_t exponent_of(int64_t magnitude)
{
	int32_t exponent = (int32_t)(magnitude >> FRACTION);

	return (exponent ? exponent - 1 : 0) + EXPONENT_LAST;
}

static int32_t bits_of(uint64_t m)
{
	return m ? 64 - __builtin_clzll(m) : 0;
}

static uint64_t whole_of(int64_t magnitude)
{
	uint64_t fraction = (uint64_t)magnitude & FRACTION_MASK;

	return magnitude >> FRACTION ? fraction | (1ULL << FRACTION) : fraction;
}

static int32_t larger(int32_t a, int32_t b)
{
	return a > b ? a : b;
}

/* Numbers of few digits are worth a second look; others have some last bit of the smallest one. */
static void span_widen(struct muster_exact_span *span, const struct look *look,
		       const uint8_t *bits, size_t nr)
{
	int32_t top = exponent_of(look->largest) + bits_of(whole_of(look->largest));
	int32_t bottom = exponent_of(look->smallest);
	int64_t last;

	span->top = larger(span->top, top);
	if (-bottom <= span->minus_bottom)
		return;
	if (!(look->fractions & 1)) {
		last = block_last(bits, nr);
		bottom = exponent_of(last) + bits_of(whole_of(last)) - 1;
	}
	span->minus_bottom = larger(span->minus_bottom, -bottom);
}

static bool is_number(int64_t magnitude)
{
	return magnitude < INFINITE;
}

/* What is no number becomes a zero: it is counted apart. */
static void block_clear(const uint8_t *bits, size_t nr, double *block)
{
	for (size_t i = 0; i < nr; i++) {
		int64_t x = bits_at(bits, i);

		x = is_number(x & MAGNITUDE) ? x : 0;
		memcpy(&block[i], &x, sizeof(x));
	}
	for (size_t i = nr; i % LANES; i++)
		block[i] = 0;
}

void muster_exact_span_of(uint8_t type, const void *from, size_t nr,
			  struct muster_exact_span *span)
{
	size_t size = muster_dtype_size(type);
	double block[BLOCK];
	struct look look;

	for (size_t at = 0, some; at < nr; at += some) {
		const uint8_t *bits;

		some = nr - at < BLOCK ? nr - at : BLOCK;
		bits = block_read(type, (const uint8_t *)from + at * size, some, block);
		block_look(bits, some, &look);
		if (!is_number(look.largest)) {
			span->special = 1;
			block_clear(bits, some, block);
			bits = (const uint8_t *)block;
			block_look(bits, some, &look);
		}
		if (look.largest)
			span_widen(span, &look, bits, some);
	}
}

/* What a look can say: other ranks may say anything. */
static bool span_is_possible(const struct muster_exact_span *span)
{
	const struct muster_exact_span nothing = MUSTER_EXACT_NOTHING;

	return span->top >= nothing.top && span->top <= TOP_MAX &&
	       span->minus_bottom >= nothing.minus_bottom &&
	       span->minus_bottom <= -EXPONENT_LAST && (span->special == 0 || span->special == 1);
}

int muster_exact_plan(const struct muster_exact_span *span, uint32_t ranks,
		      struct muster_exact *exact)
{
	uint32_t bits = SUM_BITS - (uint32_t)(ranks > 1 ? bits_of(ranks - 1) : 1);
	int32_t spanned;

	if (!span_is_possible(span))
		return -ERANGE;
	spanned = span->top + span->minus_bottom;
	exact->special = (uint32_t)span->special;
	exact->bits = bits;
	exact->bottom = spanned > 0 ? -span->minus_bottom : 0;
	exact->limbs = spanned > 0 ? ((uint32_t)spanned + bits - 1) / bits : 1;
	return 0;
}

uint32_t muster_exact_planes(const struct muster_exact *exact)
{
	return exact->limbs + exact->special;
}

/* Digit j of each from its bits: m shifted to the left or to the right, as far as a lane is wide. */
CLONES
static void block_bits(const struct muster_exact *exact, uint32_t j, const uint8_t *bits,
			 size_t nr, int64_t *to)
{
	int64_t base = exact->bottom - EXPONENT_LAST + (int64_t)j * exact->bits;
	int64_t width = exact->bits, mask = (1LL << width) - 1;

	for (size_t i = 0; i < nr; i += LANES) {
		vI64 x = *(const vI64 *)(bits + i * 8), magnitude = x & MAGNITUDE;
		vI64 exponent = (vI64)((vU64)magnitude >> FRACTION);
		vI64 normal = exponent != 0, sign = x < 0;
		vI64 m = (magnitude & FRACTION_MASK) | (normal & (1LL << FRACTION));
		vI64 shift = exponent + normal - base;	/* a mask is -1 */
		vI64 left = SELECT((shift >= 0) & (shift < width), shift, 0);
		vI64 right = SMALLER(-SELECT(shift < 0, shift, 0), (vI64){ 0 } + 63);
		vI64 digit = (vI64)((vU64)m << (vU64)left >> (vU64)right) & mask;

		digit = SELECT(shift >= width, 0, digit);
		*(vI64 *)(to + i) = (digit ^ sign) - sign;
	}
}

/* Digit j of each by rounding to its unit; what is left over. */
CLONES
static void block_digits(const struct muster_exact *exact, uint32_t j, const uint8_t *block,
			 size_t nr, double *left, int64_t *to)
{
	double round = 1.5 * 0x1p52 * muster_exact_power(exact->bottom + (int32_t)(j * exact->bits));
	vF64 rounder = (vF64){ 0 } + round;

	for (size_t i = 0; i < nr; i += LANES) {
		vF64 x = *(const vF64 *)(block + i * 8), sum = x + rounder;

		*(vI64 *)(to + i) = (vI64)sum - (vI64)rounder;
		*(vF64 *)(left + i) = x - (sum - rounder);
	}
}

/* How many of what: +infinity, -infinity and NaN in 20 bits each. */
static void block_special(const uint8_t *bits, size_t nr, int64_t *to)
{
	for (size_t i = 0; i < nr; i++) {
		int64_t x = bits_at(bits, i), magnitude = x & MAGNITUDE;

		to[i] = is_number(magnitude) ? 0 : magnitude > INFINITE ? 1LL << 40 :
			x < 0 ? 1LL << 20 : 1;
	}
}

/* All limbs of some numbers, from the highest on; those of one plane lie `apart` from the next's. */
static void block_encode(const struct muster_exact *exact, const uint8_t *numbers, size_t some,
			 size_t apart, int64_t *limbs)
{
	bool rounds = muster_exact_rounds(exact);
	int64_t digits[BLOCK];
	double left[BLOCK];

	for (uint32_t j = exact->limbs; j--;) {
		int64_t *to = some % LANES ? digits : limbs + j * apart;

		if (rounds)
			block_digits(exact, j, numbers, some, left, to);
		else
			block_bits(exact, j, numbers, some, to);
		if (rounds)
			numbers = (const uint8_t *)left;
		if (to == digits)
			memcpy(limbs + j * apart, digits, some * sizeof(*digits));
	}
}

void muster_exact_encode(const struct muster_exact *exact, uint8_t type, const void *from,
			 size_t nr, int64_t *limbs)
{
	size_t size = muster_dtype_size(type);
	double block[BLOCK];

	for (size_t at = 0, some; at < nr; at += some) {
		const uint8_t *bits;

		some = nr - at < BLOCK ? nr - at : BLOCK;
		bits = block_read(type, (const uint8_t *)from + at * size, some, block);
		if (exact->special) {
			block_special(bits, some, limbs + exact->limbs * nr + at);
			block_clear(bits, some, block);
			bits = (const uint8_t *)block;
		}
		block_encode(exact, bits, some, nr, limbs + at);
	}
}
