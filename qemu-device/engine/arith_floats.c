// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Floating point of 32 and 64 bits, real and complex. Every result that is no number is
 * the canonical quiet NaN. Nothing may be fused: the build says -ffp-contract=off.
 */
#include "arith_vector.h"

#define NAN_F32 0x7fc00000
#define NAN_F64 0x7ff8000000000000

#define NUMBER(r, I, NAN_BITS) SELECT((I)((r) == (r)), (I)(r), (I){} + NAN_BITS)

#define FLOAT_SUM(x, y, I, NAN_BITS)	NUMBER((x) + (y), I, NAN_BITS)
#define FLOAT_PROD(x, y, I, NAN_BITS)	NUMBER((x) * (y), I, NAN_BITS)

/*
 * Where neither is less, they are equal and differ at most in the sign of a
 * zero, which `same` decides; or one is a NaN.
 */
#define FLOAT_PICK(x, y, I, NAN_BITS, first, same)                                               \
	SELECT((I)((x) == (x)) & (I)((y) == (y)),                                                \
	       SELECT((I)(first), (I)(x), SELECT((I)((x) == (y)), same, (I)(y))),                \
	       (I){} + NAN_BITS)
#define FLOAT_MIN(x, y, I, NAN_BITS) FLOAT_PICK(x, y, I, NAN_BITS, (x) < (y), (I)(x) | (I)(y))
#define FLOAT_MAX(x, y, I, NAN_BITS) FLOAT_PICK(x, y, I, NAN_BITS, (x) > (y), (I)(x) & (I)(y))

#define FLOAT_CASE(type, name, bits, OP)                                                         \
	case KEY(MUSTER_DTYPE_##type, MUSTER_REDOP_##OP):                                        \
		SWEEP(v##name, FLOAT_##OP, v##bits, NAN_##name)                                  \
		SWEEP(e##name, FLOAT_##OP, e##bits, NAN_##name)                                  \
		break;

#define FLOAT_CASES(name, bits)                                                                  \
	FLOAT_CASE(name, name, bits, SUM)                                                        \
	FLOAT_CASE(name, name, bits, PROD)                                                       \
	FLOAT_CASE(name, name, bits, MIN)                                                        \
	FLOAT_CASE(name, name, bits, MAX)

/*
 * (a + b i) (c + d i) = a (c, d) + b (-d, c): vectors of nr parts, of which the even ones
 * are real. An exact negation, so this is a c - b d.
 */
#define EVEN_2(x) __builtin_shufflevector(x, x, 0, 0)
#define ODD_2(x) __builtin_shufflevector(x, x, 1, 1)
#define SWAP_2(x) __builtin_shufflevector(x, x, 1, 0)
#define SIGN_2(bit) { bit, 0 }
#define EVEN_4(x) __builtin_shufflevector(x, x, 0, 0, 2, 2)
#define ODD_4(x) __builtin_shufflevector(x, x, 1, 1, 3, 3)
#define SWAP_4(x) __builtin_shufflevector(x, x, 1, 0, 3, 2)
#define SIGN_4(bit) { bit, 0, bit, 0 }
#define EVEN_8(x) __builtin_shufflevector(x, x, 0, 0, 2, 2, 4, 4, 6, 6)
#define ODD_8(x) __builtin_shufflevector(x, x, 1, 1, 3, 3, 5, 5, 7, 7)
#define SWAP_8(x) __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6)
#define SIGN_8(bit) { bit, 0, bit, 0, bit, 0, bit, 0 }

#define REAL_TIMES(x, y, nr)	(EVEN_##nr(x) * (y))
#define IMAG_TIMES(x, y, T, I, nr, bit)                                                          \
	((T)((I)(ODD_##nr(x) * SWAP_##nr(y)) ^ (I)SIGN_##nr(bit)))
#define PRODUCT(x, y, T, I, nr, bit, NAN_BITS)                                                   \
	NUMBER(REAL_TIMES(x, y, nr) + IMAG_TIMES(x, y, T, I, nr, bit), I, NAN_BITS)

CLONES
static void apply_floats(unsigned int pair, uint8_t *dst, const uint8_t *a, const uint8_t *b,
			 size_t bytes)
{
	size_t at = 0;

	switch (pair) {
	FLOAT_CASES(F32, I32)
	FLOAT_CASES(F64, I64)
	FLOAT_CASE(C32, F32, I32, SUM)	/* part by part */
	FLOAT_CASE(C64, F64, I64, SUM)
	case KEY(MUSTER_DTYPE_C32, MUSTER_REDOP_PROD):
		SWEEP(vF32, PRODUCT, vF32, vI32, 8, INT32_MIN, NAN_F32)
		SWEEP(twoF32, PRODUCT, twoF32, twoI32, 2, INT32_MIN, NAN_F32)
		break;
	case KEY(MUSTER_DTYPE_C64, MUSTER_REDOP_PROD):
		SWEEP(vF64, PRODUCT, vF64, vI64, 4, INT64_MIN, NAN_F64)
		SWEEP(twoF64, PRODUCT, twoF64, twoI64, 2, INT64_MIN, NAN_F64)
		break;
	}
}

void muster_arith_floats(uint8_t type, uint8_t op, uint8_t *dst, const uint8_t *a,
			 const uint8_t *b, size_t bytes)
{
	apply_floats(KEY(type, op), dst, a, b, bytes);
}

/* Which NaN it is matters at the end alone: there is no step that makes a number of one. */
#define FLOAT_ADD(x, y, I, NAN_BITS)	((x) + (y))
#define FLOAT_TIMES(x, y, I, NAN_BITS)	((x) * (y))

#define FLOAT_ROWS(vectors, type, name, bits, OP, LOOP, STEP, END)                               \
	case KEY(MUSTER_DTYPE_##type, MUSTER_REDOP_##OP):                                        \
		LOOP(vectors##name, STEP, END, vectors##bits, NAN_##name)                        \
		break;

#define FLOATS_ROWS(vectors, name, bits)                                                         \
	FLOAT_ROWS(vectors, name, name, bits, SUM, ROWS_QUICK, FLOAT_ADD, NUMBER)                \
	FLOAT_ROWS(vectors, name, name, bits, PROD, ROWS, FLOAT_TIMES, NUMBER)                   \
	FLOAT_ROWS(vectors, name, name, bits, MIN, ROWS, FLOAT_MIN, ALL_DONE)                    \
	FLOAT_ROWS(vectors, name, name, bits, MAX, ROWS, FLOAT_MAX, ALL_DONE)

/* Complex sums go part by part. */
#define ALL_ROWS(vectors)                                                                        \
	FLOATS_ROWS(vectors, F32, I32)                                                           \
	FLOATS_ROWS(vectors, F64, I64)                                                           \
	FLOAT_ROWS(vectors, C32, F32, I32, SUM, ROWS_QUICK, FLOAT_ADD, NUMBER)                   \
	FLOAT_ROWS(vectors, C64, F64, I64, SUM, ROWS_QUICK, FLOAT_ADD, NUMBER)

ROWS_FUNCTION(apply_rows, ALL_ROWS)

size_t muster_arith_floats_rows(uint8_t type, uint8_t op, const struct rows *rows, uint8_t *dst,
				size_t bytes)
{
	return apply_rows(KEY(type, op), rows, dst, bytes);
}

#define FLOAT_ONE(name, bits, OP)								 \
	ONE(name##_##OP, e##name, FLOAT_##OP, e##bits, NAN_##name)
#define FLOAT_ONES(name, bits)									 \
	FLOAT_ONE(name, bits, SUM)								 \
	FLOAT_ONE(name, bits, PROD)								 \
	FLOAT_ONE(name, bits, MIN)								 \
	FLOAT_ONE(name, bits, MAX)
FLOAT_ONES(F32, I32)
FLOAT_ONES(F64, I64)

#define FLOAT_ONE_CASE(name, OP)								 \
	case KEY(MUSTER_DTYPE_##name, MUSTER_REDOP_##OP):					 \
		return one_##name##_##OP;
#define FLOAT_ONE_CASES(name)									 \
	FLOAT_ONE_CASE(name, SUM)								 \
	FLOAT_ONE_CASE(name, PROD)								 \
	FLOAT_ONE_CASE(name, MIN)								 \
	FLOAT_ONE_CASE(name, MAX)

muster_arith_element *muster_arith_floats_one(uint8_t type, uint8_t op)
{
	switch (KEY(type, op)) {
	FLOAT_ONE_CASES(F32)
	FLOAT_ONE_CASES(F64)
	}
	return NULL;
}
