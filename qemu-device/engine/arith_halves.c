// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Floating point of 16 bits: f16 is IEEE 754's, bf16 the upper half of an f32. Sums and
 * products are computed in f32 and rounded: f32 has more than twice the bits and two,
 * so the second rounding changes nothing, and the result is the exact one rounded once.
 *
 * A wide vector is 32-bit lanes of two elements each; all lower ones are computed, then
 * all upper ones. One element alone is the lower half of a lane.
 */
#include "arith_vector.h"

#include <string.h>

#define NAN_F16 0x7e00
#define NAN_BF16 0x7fc0
#define INFINITY_F16 0x7c00
#define INFINITY_BF16 0x7f80

/* ---- f16: the exponent of 1 is 15 there, 127 in f32 ---- */

#define BIAS		(112 << 23)
#define F16_MAGNITUDE(h) (((h) & 0x7fff) << 13)
#define F16_NORMAL(h, U)                                                                         \
	(F16_MAGNITUDE(h) + BIAS + ((U)(((h) & INFINITY_F16) == INFINITY_F16) & BIAS))
/* Multiples of 2^-24: as the fraction of 2^-14, less that. */
#define F16_SUBNORMAL(h, F, U)                                                                   \
	((U)((F)(F16_MAGNITUDE(h) + (113 << 23)) - (F)((U){} + (113 << 23))))
#define WIDEN_F16(h, F, I, U)                                                                    \
	((F)(SELECT((U)(((h) & INFINITY_F16) == 0), F16_SUBNORMAL(h, F, U), F16_NORMAL(h, U)) |  \
	     ((h) & 0x8000) << 16))

/* To nearest, ties to even: half a unit less one, and one more if the result is odd. */
#define ROUND(m, bits)	(((m) + ((1 << ((bits) - 1)) - 1) + ((m) >> (bits) & 1)) >> (bits))
/* Below 2^-14 an addition rounds to multiples of 2^-24, the last bit of 0.5. */
#define ROUND_SUBNORMAL(m, F, U) ((U)((F)(m) + 0.5f) - (126 << 23))
#define ROUND_F16(m, F, I, U)                                                                    \
	SELECT((U)((I)(m) < 113 << 23), ROUND_SUBNORMAL(m, F, U),                                \
	       SELECT((U)((I)(m) >= 0x477ff000), (U){} + INFINITY_F16, ROUND((m) - BIAS, 13)))

/* ---- bf16 ---- */

#define WIDEN_BF16(h, F, I, U)	((F)((h) << 16))
#define ROUND_BF16(m, F, I, U)	ROUND(m, 16)

/* ---- both ---- */

#define NARROW(name, r, F, I, U)                                                                 \
	SELECT((U)((r) == (r)),                                                                  \
	       ROUND_##name((U)(r) & INT32_MAX, F, I, U) | ((U)(r) >> 16 & 0x8000),              \
	       (U){} + NAN_##name)

#define HALF_SUM(x, y)	((x) + (y))
#define HALF_PROD(x, y)	((x) * (y))

/* Of elements in the lower halves of lanes x and y, in f32; without it gcc computes often again. */
#define COMPUTE(x, y, name, OP, F, I, U, result)                                                 \
	do {                                                                                     \
		F wide = OP(WIDEN_##name(x, F, I, U), WIDEN_##name(y, F, I, U));                 \
		result = NARROW(name, wide, F, I, U);                                            \
	} while (0)

#define COMPUTE_WIDE(name, OP)                                                                   \
	for (; bytes - at >= WIDE; at += WIDE) {                                                 \
		vU32 x = *(const vU32 *)(a + at), y = *(const vU32 *)(b + at), low, high;        \
		COMPUTE(x & 0xffff, y & 0xffff, name, HALF_##OP, vF32, vI32, vU32, low);         \
		COMPUTE(x >> 16, y >> 16, name, HALF_##OP, vF32, vI32, vU32, high);              \
		*(vU32 *)(dst + at) = low | high << 16;                                          \
	}

#define COMPUTE_ONE(name, OP)                                                                    \
	for (; at < bytes; at += 2) {                                                            \
		eU32 x = { 0 }, y = { 0 }, r;                                                    \
		memcpy(&x, a + at, 2);                                                           \
		memcpy(&y, b + at, 2);                                                           \
		COMPUTE(x, y, name, HALF_##OP, eF32, eI32, eU32, r);                             \
		memcpy(dst + at, &r, 2);                                                         \
	}

#define HALF_CASE(name, OP)                                                                      \
	case KEY(MUSTER_DTYPE_##name, MUSTER_REDOP_##OP):                                        \
		COMPUTE_WIDE(name, OP)                                                           \
		COMPUTE_ONE(name, OP)                                                            \
		break;

CLONES
static void compute_halves(unsigned int pair, uint8_t *dst, const uint8_t *a, const uint8_t *b,
			   size_t bytes)
{
	size_t at = 0;

	switch (pair) {
	HALF_CASE(F16, SUM)
	HALF_CASE(F16, PROD)
	HALF_CASE(BF16, SUM)
	HALF_CASE(BF16, PROD)
	}
}

/* As integers in two's complement they are in order, -0 below +0. */
#define HALF_ORDER(x)		((x) ^ ((x) >> 15 & INT16_MAX))
#define HALF_IS_NAN(x, name)	(((x) & INT16_MAX) > INFINITY_##name)
#define HALF_PICK(x, y, I, name, first)                                                          \
	SELECT(HALF_IS_NAN(x, name) | HALF_IS_NAN(y, name), (I){} + NAN_##name, SELECT(first, x, y))
#define HALF_MIN(x, y, I, name)	HALF_PICK(x, y, I, name, HALF_ORDER(x) < HALF_ORDER(y))
#define HALF_MAX(x, y, I, name)	HALF_PICK(x, y, I, name, HALF_ORDER(x) > HALF_ORDER(y))

#define HALF_CASE_ORDER(name, OP)                                                                \
	case KEY(MUSTER_DTYPE_##name, MUSTER_REDOP_##OP):                                        \
		SWEEP(vI16, HALF_##OP, vI16, name)                                               \
		SWEEP(eI16, HALF_##OP, eI16, name)                                               \
		break;

CLONES
static void pick_halves(unsigned int pair, uint8_t *dst, const uint8_t *a, const uint8_t *b,
			size_t bytes)
{
	size_t at = 0;

	switch (pair) {
	HALF_CASE_ORDER(F16, MIN)
	HALF_CASE_ORDER(F16, MAX)
	HALF_CASE_ORDER(BF16, MIN)
	HALF_CASE_ORDER(BF16, MAX)
	}
}

void muster_arith_halves(uint8_t type, uint8_t op, uint8_t *dst, const uint8_t *a,
			 const uint8_t *b, size_t bytes)
{
	if (op == MUSTER_REDOP_MIN || op == MUSTER_REDOP_MAX)
		pick_halves(KEY(type, op), dst, a, b, bytes);
	else
		compute_halves(KEY(type, op), dst, a, b, bytes);
}
