// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Pairs of a value and an index, as structures of C: the value, what it is padded with,
 * and an index of 32 bits, in two lanes of the same size. Everything is computed in all
 * lanes; what was found for a value is then copied to its index's lane. Padding is
 * ignored, and zero in the result.
 */
#include "arith_vector.h"

/* By the number of lanes: the value's in both of a pair's; the value's alone. */
#define VALUE_2(x) __builtin_shufflevector(x, x, 0, 0)
#define VALUE_4(x) __builtin_shufflevector(x, x, 0, 0, 2, 2)
#define VALUE_8(x) __builtin_shufflevector(x, x, 0, 0, 2, 2, 4, 4, 6, 6)
#define VALUES_2 { -1, 0 }
#define VALUES_4 { -1, 0, -1, 0 }
#define VALUES_8 { -1, 0, -1, 0, -1, 0, -1, 0 }

/* The lower bits of a lane as a signed number: at its upper end, which keeps the order. */
#define REST(x, bits)		(8 * sizeof((x)[0]) - (bits))
#define UPPER(x, I, U, bits)	((I)((U)(x) << REST(x, bits)))
#define LOWER(x, I, U, bits)	((I)((U)(x) << REST(x, bits) >> REST(x, bits)))

/* Whose value it is: x's where `first`, y's where `last`; else the lower index, and `same`. */
#define PAIR_RESULT(x, y, I, U, nr, bits, first, last, same)                                     \
	do {                                                                                     \
		I wins = (I)(first), loses = (I)(last);                                          \
		I value = SELECT(wins, x, SELECT(loses, y, same));                               \
		I lower = UPPER(x, I, U, 32) < UPPER(y, I, U, 32);                               \
		I which = VALUE_##nr(wins) | (~VALUE_##nr(loses) & lower);                       \
		I index = SELECT(which, x, y);                                                   \
		r = SELECT((I)VALUES_##nr, LOWER(value, I, U, bits), LOWER(index, I, U, 32));    \
	} while (0)

/* For integers nothing is left to say of equal ones. */
#define PAIR_INTEGER(x, y, I, U, F, nr, bits, NAN_BITS, BEFORE, BOTH)                            \
	PAIR_RESULT(x, y, I, U, nr, bits, UPPER(x, I, U, bits) BEFORE UPPER(y, I, U, bits),      \
	       UPPER(y, I, U, bits) BEFORE UPPER(x, I, U, bits), x)

/* A NaN is before all numbers; what is neither before nor behind is equal, or both are NaN. */
#define PAIR_IS_NAN(x, F, I)	((I)((F)(x) != (F)(x)))
#define PAIR_GOES_FIRST(x, y, F, I, BEFORE)                                                      \
	((I)((F)(x) BEFORE (F)(y)) | (PAIR_IS_NAN(x, F, I) & ~PAIR_IS_NAN(y, F, I)))
#define PAIR_CANONICAL(x, F, I, NAN_BITS) SELECT(PAIR_IS_NAN(x, F, I), (I){} + NAN_BITS, x)
#define PAIR_FLOAT(x, y, I, U, F, nr, bits, NAN_BITS, BEFORE, BOTH)                              \
	do {                                                                                     \
		I cx = PAIR_CANONICAL(x, F, I, NAN_BITS), cy = PAIR_CANONICAL(y, F, I, NAN_BITS); \
		I vx = SELECT((I)VALUES_##nr, cx, x), vy = SELECT((I)VALUES_##nr, cy, y);        \
		PAIR_RESULT(vx, vy, I, U, nr, bits, PAIR_GOES_FIRST(x, y, F, I, BEFORE),         \
		       PAIR_GOES_FIRST(y, x, F, I, BEFORE), vx BOTH vy);                         \
	} while (0)

#define PAIR_LOOP(KIND, I, U, F, ...)                                                            \
	for (; bytes - at >= sizeof(I); at += sizeof(I)) {                                       \
		I x = *(const I *)(a + at), y = *(const I *)(b + at), r;                         \
		KIND(x, y, I, U, F, __VA_ARGS__);                                                \
		*(I *)(dst + at) = r;                                                            \
	}

/* Lanes of 4 or 8 bytes; the value's bits. */
#define PAIR_CASE(type, op, KIND, lane, nr, bits, NAN_BITS, BEFORE, BOTH)                        \
	case KEY(MUSTER_DTYPE_##type, MUSTER_REDOP_##op):                                        \
		PAIR_LOOP(KIND, vI##lane, vU##lane, vF##lane, nr, bits, NAN_BITS, BEFORE, BOTH)  \
		PAIR_LOOP(KIND, twoI##lane, twoU##lane, twoF##lane, 2, bits, NAN_BITS, BEFORE,   \
			  BOTH)                                                                  \
		break;
#define PAIR_CASES(type, KIND, lane, nr, bits, NAN_BITS)                                         \
	PAIR_CASE(type, MINLOC, KIND, lane, nr, bits, NAN_BITS, <, |)                            \
	PAIR_CASE(type, MAXLOC, KIND, lane, nr, bits, NAN_BITS, >, &)

CLONES
static void apply_pairs(unsigned int pair, uint8_t *dst, const uint8_t *a, const uint8_t *b,
			size_t bytes)
{
	size_t at = 0;

	switch (pair) {
	PAIR_CASES(F32_I32, PAIR_FLOAT, 32, 8, 32, 0x7fc00000)
	PAIR_CASES(F64_I32, PAIR_FLOAT, 64, 4, 64, 0x7ff8000000000000)
	PAIR_CASES(I16_I32, PAIR_INTEGER, 32, 8, 16, 0)
	PAIR_CASES(I32_I32, PAIR_INTEGER, 32, 8, 32, 0)
	PAIR_CASES(I64_I32, PAIR_INTEGER, 64, 4, 64, 0)
	}
}

void muster_arith_pairs(uint8_t type, uint8_t op, uint8_t *dst, const uint8_t *a,
			const uint8_t *b, size_t bytes)
{
	apply_pairs(KEY(type, op), dst, a, b, bytes);
}
