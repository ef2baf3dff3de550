// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Exact sums, from numbers to limbs: what they span, and their digits.
 *
 * An f32 is looked at as the f64 that it is. For a few limbs a number is cut, from the highest one
 * down, into whole multiples of the limbs' units: adding 1.5 * 2^52 of them rounds to such a multiple
 * and leaves it in the lowest bits, and what is left over is exact. Where there are more, or units are
 * too large for that, a digit is taken from the number's own bits, as many as a limb has, with its sign.
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
	BLOCK = 256,		/* numbers that are f64 at once */
	LANES = WIDE / 8,
	STRIDE = 2 * WIDE,	/* bytes that are looked at in one turn */
	PIECE = 2048,		/* that may say that nothing changes */
	FRACTION = 52,
	EXPONENT_LAST = -1074,	/* of the last bit of a subnormal number */
	TOP_MAX = 1024,
	SUM_BITS = 50,		/* of a limb's sum */
};

#define MAGNITUDE	INT64_MAX
#define INFINITE	0x7ff0000000000000
#define FRACTION_MASK	0x000fffffffffffff
#define FRACTION_MASK_F32 0x007fffff

/* One instruction; GCC makes four of __builtin_convertvector(). */
#define WIDENED(x) ((vF64){ (x)[0], (x)[1], (x)[2], (x)[3] })

CLONES
static void block_widen(const uint8_t *from, size_t nr, double *block)
{
	float f;
	size_t i = 0;

	for (; nr - i >= LANES; i += LANES) {
		halfF32 x = *(const halfF32 *)(from + i * sizeof(f));

		*(vF64 *)(block + i) = WIDENED(x);
	}
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

/*
 * Of numbers' magnitudes, as the bits of an f64: the largest, and the smallest last bit that is not
 * zero. A number's last bit is what is lost when it is cleared; of a power of two, which has no
 * other, itself.
 */
struct look {
	int64_t largest;
	int64_t last;
};

static void look_add(struct look *look, int64_t largest, int64_t last)
{
	look->largest = largest > look->largest ? largest : look->largest;
	if (last)
		look->last = last < look->last ? last : look->last;
}

/* A number's last bit, less one: of a zero that is more than all others. */
#define LAST_LESS(V, F, x, fraction, most)                                                       \
	(((V)((F)(x) - (F)((x) & ((x) - 1) & (((x) & (fraction)) != 0))) - 1) & (most))

#define LOOK_AT(V, F, fraction, most, at, high, less)                                            \
	do {                                                                                     \
		V x = *(const V *)(bits + (at)) & (most);                                        \
		V last = LAST_LESS(V, F, x, fraction, most);                                     \
		high = LARGER(high, x);                                                          \
		less = SMALLER(less, last);                                                      \
	} while (0)

/*
 * Integers V as wide as the numbers F. Every other vector is compared with each other alone, or
 * all would wait for the one before. Leaves the largest and, less one, the smallest of each lane.
 */
#define LOOK(V, F, fraction, most)                                                               \
	V high = { 0 }, high_odd = high, less = high + (most), less_odd = less;                  \
	for (size_t at = 0; at < bytes; at += STRIDE) {                                          \
		LOOK_AT(V, F, fraction, most, at, high, less);                                   \
		LOOK_AT(V, F, fraction, most, at + WIDE, high_odd, less_odd);                    \
	}                                                                                        \
	high = LARGER(high, high_odd);                                                           \
	less = SMALLER(less, less_odd);

CLONES
static void look_at_doubles(const uint8_t *bits, size_t bytes, struct look *look)
{
	LOOK(vI64, vF64, FRACTION_MASK, MAGNITUDE)
	for (size_t i = 0; i < LANES; i++)
		look_add(look, high[i], (int64_t)((uint64_t)less[i] + 1) & MAGNITUDE);
}

static int64_t widened(uint32_t single)
{
	int64_t bits;
	double wide;
	float f;

	memcpy(&f, &single, sizeof(f));
	wide = f;
	memcpy(&bits, &wide, sizeof(bits));
	return bits & MAGNITUDE;
}

CLONES
static void look_at_singles(const uint8_t *bits, size_t bytes, struct look *look)
{
	LOOK(vI32, vF32, FRACTION_MASK_F32, INT32_MAX)
	for (size_t i = 0; i < 2 * LANES; i++)
		look_add(look, widened((uint32_t)high[i]),
			 widened(((uint32_t)less[i] + 1) & INT32_MAX));
}

/*
 * Most numbers change nothing: they are not above `to` and not below `from`, from where on all are
 * multiples of the last bit. Of a lane the sign says whether one may. Zeros may, too: to tell them
 * apart would cost all others a quarter more.
 */
#define CHANGES(V, most, at)                                                                     \
	({                                                                                       \
		V x_ = *(const V *)(bits + (at)) & (most);                                       \
		(x_ - from) | (to - x_);                                                 \
	})

#define ANY_CHANGES(V, most)                                                                     \
	V any = { 0 }, any_odd = any;                                                            \
	for (size_t at = 0; at < PIECE; at += 2 * STRIDE) {                                      \
		any |= CHANGES(V, most, at) | CHANGES(V, most, at + STRIDE);                     \
		any_odd |= CHANGES(V, most, at + WIDE) | CHANGES(V, most, at + STRIDE + WIDE);   \
	}                                                                                        \
	any |= any_odd;

CLONES
static bool doubles_change(const uint8_t *bits, int64_t from, int64_t to)
{
	ANY_CHANGES(vI64, MAGNITUDE)
	return (any[0] | any[1] | any[2] | any[3]) < 0;
}

CLONES
static bool singles_change(const uint8_t *bits, int32_t from, int32_t to)
{
	ANY_CHANGES(vI32, INT32_MAX)
	return (any[0] | any[1] | any[2] | any[3] | any[4] | any[5] | any[6] | any[7]) < 0;
}

static double number_of(int64_t bits)
{
	double number;

	memcpy(&number, &bits, sizeof(number));
	return number;
}

/*
 * From 2^52 times the last bit on all are multiples of it. One is above the largest if its exponent
 * is larger; of a subnormal one that says nothing, but these are all below the former.
 */
static bool doubles_piece_changes(const uint8_t *bits, const struct look *look)
{
	double from = number_of(look->last) * 0x1p52;

	return doubles_change(bits, bits_at((const uint8_t *)&from, 0), look->largest | FRACTION_MASK);
}

static bool singles_piece_changes(const uint8_t *bits, const struct look *look)
{
	float from = (float)number_of(look->last) * 0x1p23f, largest = (float)number_of(look->largest);
	int32_t first, last;

	memcpy(&first, &from, sizeof(first));
	memcpy(&last, &largest, sizeof(last));
	return singles_change(bits, first, last | FRACTION_MASK_F32);
}

/* Closely only where something may change; and while it does, at more and more at once. */
static void look_at_whole(uint8_t type, const uint8_t *bits, size_t bytes, struct look *look)
{
	bool single = type == MUSTER_DTYPE_F32;
	size_t some, most = PIECE;

	for (size_t at = 0; at < bytes; at += some) {
		some = bytes - at;
		if (some >= PIECE && !(single ? singles_piece_changes(bits + at, look) :
						doubles_piece_changes(bits + at, look))) {
			some = most = PIECE;
			continue;
		}
		some = some < most ? some : most;
		(single ? look_at_singles : look_at_doubles)(bits + at, some, look);
		most *= 2;
	}
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
	for (size_t i = nr; i % (STRIDE / 8); i++)
		block[i] = 0;
}

/* At those that are numbers. */
static void look_at_numbers(uint8_t type, const uint8_t *from, size_t nr, struct look *look)
{
	size_t size = muster_dtype_size(type);
	double block[BLOCK];

	for (size_t at = 0, some; at < nr; at += some) {
		some = nr - at < BLOCK ? nr - at : BLOCK;
		block_clear(block_read(type, from + at * size, some, block), some, block);
		look_at_doubles((const uint8_t *)block, (some * 8 + STRIDE - 1) / STRIDE * STRIDE,
				look);
	}
}

static void look_at_all(uint8_t type, const uint8_t *from, size_t bytes, struct look *look)
{
	uint8_t rest[STRIDE] = { 0 };
	size_t whole = bytes - bytes % STRIDE;

	look_at_whole(type, from, whole, look);
	if (whole == bytes)
		return;
	memcpy(rest, from + whole, bytes - whole);
	look_at_whole(type, rest, STRIDE, look);
}

void muster_exact_span_of(uint8_t type, const void *from, size_t nr,
			  struct muster_exact_span *span)
{
	const struct look nothing = { 0, INFINITE };
	struct look look = nothing;

	look_at_all(type, from, nr * muster_dtype_size(type), &look);
	if (!is_number(look.largest)) {
		span->special = 1;
		look = nothing;
		look_at_numbers(type, from, nr, &look);
	}
	if (!look.largest)
		return;
	span->top = larger(span->top, exponent_of(look.largest) + bits_of(whole_of(look.largest)));
	span->minus_bottom = larger(span->minus_bottom,
				    1 - exponent_of(look.last) - bits_of(whole_of(look.last)));
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

/* Digit j of what is left over: so many of the limb's units. */
#define DIGIT(j)                                                                                 \
	do {                                                                                     \
		vF64 sum = left + round[j];                                                      \
		*(vI64 *)(limbs + (j) * apart + i) = (vI64)sum - (vI64)round[j];                 \
		left -= sum - round[j];                                                          \
	} while (0)

#define DIGITS_1 DIGIT(0)
#define DIGITS_2 DIGIT(1); DIGIT(0)
#define DIGITS_3 DIGIT(2); DIGITS_2

/* A loop for each number of limbs: what a number costs is little more than where it is put. */
#define ENCODE(READ)                                                                             \
	vF64 round[MUSTER_EXACT_FEW];                                                            \
	for (uint32_t j = 0; j < MUSTER_EXACT_FEW; j++)                                          \
		round[j] = (vF64){ 0 } + muster_exact_rounder(exact, j < exact->limbs ? j : 0);  \
	if (exact->limbs == 1)                                                                   \
		ENCODE_EACH(READ, DIGITS_1)                                                      \
	else if (exact->limbs == 2)                                                              \
		ENCODE_EACH(READ, DIGITS_2)                                                      \
	else                                                                                     \
		ENCODE_EACH(READ, DIGITS_3)

#define ENCODE_EACH(READ, DIGITS)                                                                \
	for (size_t i = 0; i < nr; i += LANES) {                                                 \
		vF64 left = READ;                                                                \
		DIGITS;                                                                          \
	}

/* All digits of whole vectors of numbers by rounding, from the highest down. */
CLONES
static void short_encode_doubles(const struct muster_exact *exact, const uint8_t *from, size_t nr,
				 size_t apart, int64_t *limbs)
{
	ENCODE(*(const vF64 *)(from + i * 8))
}

CLONES
static void short_encode_singles(const struct muster_exact *exact, const uint8_t *from, size_t nr,
				 size_t apart, int64_t *limbs)
{
	ENCODE(WIDENED(*(const halfF32 *)(from + i * 4)))
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

/* All limbs of up to a block of f64, whole vectors; those of one plane lie `apart` from the next's. */
static void block_limbs(const struct muster_exact *exact, const uint8_t *numbers, size_t nr,
			size_t apart, int64_t *limbs)
{
	if (muster_exact_is_short(exact))
		short_encode_doubles(exact, numbers, nr, apart, limbs);
	else
		for (uint32_t j = 0; j < exact->limbs; j++)
			block_bits(exact, j, numbers, nr, limbs + j * apart);
}

/* The same of any number; of the last ones some are zeros. */
static void block_encode(const struct muster_exact *exact, const uint8_t *numbers, size_t some,
			 size_t apart, int64_t *limbs)
{
	int64_t last[MUSTER_EXACT_LIMBS_MAX * LANES];
	size_t rest = some % LANES, whole = some - rest;

	block_limbs(exact, numbers, whole, apart, limbs);
	if (!rest)
		return;
	block_limbs(exact, numbers + whole * 8, LANES, LANES, last);
	for (uint32_t j = 0; j < exact->limbs; j++)
		memcpy(limbs + j * apart + whole, last + j * LANES, rest * sizeof(*last));
}

void muster_exact_encode(const struct muster_exact *exact, uint8_t type, const void *from,
			 size_t nr, int64_t *limbs)
{
	size_t size = muster_dtype_size(type), at = 0;
	double block[BLOCK];

	if (muster_exact_is_short(exact) && !exact->special) {
		at = nr - nr % LANES;
		(type == MUSTER_DTYPE_F32 ? short_encode_singles : short_encode_doubles)
			(exact, from, at, nr, limbs);
	}
	for (size_t some; at < nr; at += some) {
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
