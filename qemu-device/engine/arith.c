// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The canonical arithmetic (Documentation/arithmetic.md).
 *
 * Each operation is one expression on GCC vectors, used twice: on 32 bytes at a
 * time, and on a vector of one element for what is left. Both therefore have
 * the same bits, whatever instructions they become. An element is read before
 * its result is written, so dst may be a or b.
 */
#include "arith.h"

#include <errno.h>
#include <stdbool.h>

/* One build for every machine; the wide one is chosen when the program is loaded. */
#if !defined(CLONES) && defined(__x86_64__)
#define CLONES __attribute__((target_clones("avx2", "default")))
#elif !defined(CLONES)
#define CLONES
#endif

#define WIDE 32		/* bytes of a vector */

/* v: a wide vector, e: a vector of one element; neither needs alignment. */
#define VECTOR(name, element)                                                                    \
	typedef element v##name __attribute__((vector_size(WIDE), aligned(1), may_alias));       \
	typedef element e##name                                                                  \
		__attribute__((vector_size(sizeof(element)), aligned(1), may_alias))

VECTOR(f32, float);
VECTOR(f64, double);
VECTOR(i8, int8_t);
VECTOR(u8, uint8_t);
VECTOR(i32, int32_t);
VECTOR(u32, uint32_t);
VECTOR(i64, int64_t);
VECTOR(u64, uint64_t);

#define NAN_f32 0x7fc00000
#define NAN_f64 0x7ff8000000000000

/* A comparison of vectors is all ones where it holds. */
#define SELECT(mask, x, y) (((mask) & (x)) | (~(mask) & (y)))

/* dst[i] = EXPR(x, y) for vectors of type T, as long as a whole one is left. */
#define SWEEP(T, EXPR, ...)                                                                      \
	for (; bytes - at >= sizeof(T); at += sizeof(T)) {                                       \
		T x = *(const T *)(a + at), y = *(const T *)(b + at);                            \
		*(T *)(dst + at) = (T)EXPR(x, y, ##__VA_ARGS__);                                 \
	}

#define APPLY(name, EXPR)                                                                        \
	do {                                                                                     \
		SWEEP(v##name, EXPR)                                                             \
		SWEEP(e##name, EXPR)                                                             \
	} while (0)

/* The same for floating point: the expression also needs the integers of that size. */
#define APPLY_FLOAT(name, bits, EXPR)                                                            \
	do {                                                                                     \
		SWEEP(v##name, EXPR, v##bits, NAN_##name)                                        \
		SWEEP(e##name, EXPR, e##bits, NAN_##name)                                        \
	} while (0)

#define SUM(x, y)	((x) + (y))
#define BAND(x, y)	((x) & (y))
#define BOR(x, y)	((x) | (y))
#define BXOR(x, y)	((x) ^ (y))
#define LAND(x, y)	((((x) != 0) & ((y) != 0)) & 1)
#define LOR(x, y)	((((x) != 0) | ((y) != 0)) & 1)
#define LXOR(x, y)	((((x) != 0) ^ ((y) != 0)) & 1)
#define MIN(x, y)	(((x) & ((x) < (y))) | ((y) & ~((x) < (y))))
#define MAX(x, y)	(((x) & ((x) > (y))) | ((y) & ~((x) > (y))))

#define FSUM(x, y, I, NAN_BITS)                                                                  \
	SELECT((I)((x) + (y) == (x) + (y)), (I)((x) + (y)), (I){} + NAN_BITS)

/*
 * Where neither is less, they are equal and differ at most in the sign of a
 * zero, which `same` decides; or one is a NaN.
 */
#define FPICK(x, y, I, NAN_BITS, first, same)                                                    \
	SELECT((I)((x) == (x)) & (I)((y) == (y)),                                                \
	       SELECT((I)(first), (I)(x), SELECT((I)((x) == (y)), same, (I)(y))),                \
	       (I){} + NAN_BITS)
#define FMIN(x, y, I, NAN_BITS) FPICK(x, y, I, NAN_BITS, (x) < (y), (I)(x) | (I)(y))
#define FMAX(x, y, I, NAN_BITS) FPICK(x, y, I, NAN_BITS, (x) > (y), (I)(x) & (I)(y))

#define PAIR(type, op) ((type) * 16 + (op))

CLONES
static int apply(unsigned int pair, uint8_t *dst, const uint8_t *a, const uint8_t *b, size_t bytes)
{
	size_t at = 0;

	switch (pair) {
	case PAIR(MUSTER_DTYPE_F32, MUSTER_REDOP_SUM):
		APPLY_FLOAT(f32, i32, FSUM);
		return 0;
	case PAIR(MUSTER_DTYPE_F32, MUSTER_REDOP_MIN):
		APPLY_FLOAT(f32, i32, FMIN);
		return 0;
	case PAIR(MUSTER_DTYPE_F32, MUSTER_REDOP_MAX):
		APPLY_FLOAT(f32, i32, FMAX);
		return 0;
	case PAIR(MUSTER_DTYPE_F64, MUSTER_REDOP_SUM):
		APPLY_FLOAT(f64, i64, FSUM);
		return 0;
	case PAIR(MUSTER_DTYPE_F64, MUSTER_REDOP_MIN):
		APPLY_FLOAT(f64, i64, FMIN);
		return 0;
	case PAIR(MUSTER_DTYPE_F64, MUSTER_REDOP_MAX):
		APPLY_FLOAT(f64, i64, FMAX);
		return 0;
	case PAIR(MUSTER_DTYPE_I32, MUSTER_REDOP_SUM):
	case PAIR(MUSTER_DTYPE_U32, MUSTER_REDOP_SUM):
		APPLY(u32, SUM);
		return 0;
	case PAIR(MUSTER_DTYPE_I32, MUSTER_REDOP_MIN):
		APPLY(i32, MIN);
		return 0;
	case PAIR(MUSTER_DTYPE_I32, MUSTER_REDOP_MAX):
		APPLY(i32, MAX);
		return 0;
	case PAIR(MUSTER_DTYPE_U32, MUSTER_REDOP_MIN):
		APPLY(u32, MIN);
		return 0;
	case PAIR(MUSTER_DTYPE_U32, MUSTER_REDOP_MAX):
		APPLY(u32, MAX);
		return 0;
	case PAIR(MUSTER_DTYPE_I64, MUSTER_REDOP_SUM):
	case PAIR(MUSTER_DTYPE_U64, MUSTER_REDOP_SUM):
		APPLY(u64, SUM);
		return 0;
	case PAIR(MUSTER_DTYPE_I64, MUSTER_REDOP_MIN):
		APPLY(i64, MIN);
		return 0;
	case PAIR(MUSTER_DTYPE_I64, MUSTER_REDOP_MAX):
		APPLY(i64, MAX);
		return 0;
	case PAIR(MUSTER_DTYPE_U64, MUSTER_REDOP_MIN):
		APPLY(u64, MIN);
		return 0;
	case PAIR(MUSTER_DTYPE_U64, MUSTER_REDOP_MAX):
		APPLY(u64, MAX);
		return 0;
	case PAIR(MUSTER_DTYPE_I8, MUSTER_REDOP_SUM):
		APPLY(u8, SUM);
		return 0;
	case PAIR(MUSTER_DTYPE_I8, MUSTER_REDOP_MIN):
		APPLY(i8, MIN);
		return 0;
	case PAIR(MUSTER_DTYPE_I8, MUSTER_REDOP_MAX):
		APPLY(i8, MAX);
		return 0;
	case PAIR(MUSTER_DTYPE_I32, MUSTER_REDOP_BAND):
	case PAIR(MUSTER_DTYPE_I64, MUSTER_REDOP_BAND):
	case PAIR(MUSTER_DTYPE_U64, MUSTER_REDOP_BAND):
	case PAIR(MUSTER_DTYPE_I8, MUSTER_REDOP_BAND):
	case PAIR(MUSTER_DTYPE_U32, MUSTER_REDOP_BAND):
		APPLY(u8, BAND);
		return 0;
	case PAIR(MUSTER_DTYPE_I32, MUSTER_REDOP_BOR):
	case PAIR(MUSTER_DTYPE_I64, MUSTER_REDOP_BOR):
	case PAIR(MUSTER_DTYPE_U64, MUSTER_REDOP_BOR):
	case PAIR(MUSTER_DTYPE_I8, MUSTER_REDOP_BOR):
	case PAIR(MUSTER_DTYPE_U32, MUSTER_REDOP_BOR):
		APPLY(u8, BOR);
		return 0;
	case PAIR(MUSTER_DTYPE_I32, MUSTER_REDOP_BXOR):
	case PAIR(MUSTER_DTYPE_I64, MUSTER_REDOP_BXOR):
	case PAIR(MUSTER_DTYPE_U64, MUSTER_REDOP_BXOR):
	case PAIR(MUSTER_DTYPE_I8, MUSTER_REDOP_BXOR):
	case PAIR(MUSTER_DTYPE_U32, MUSTER_REDOP_BXOR):
		APPLY(u8, BXOR);
		return 0;
	default:
		return -EINVAL;
	}
}

/* Whether an element is zero depends on its size alone. */
CLONES
static int apply_logical(unsigned int pair, uint8_t *dst, const uint8_t *a, const uint8_t *b,
			 size_t bytes)
{
	size_t at = 0;

	switch (pair) {
	case PAIR(1, MUSTER_REDOP_LAND):
		APPLY(u8, LAND);
		return 0;
	case PAIR(4, MUSTER_REDOP_LAND):
		APPLY(u32, LAND);
		return 0;
	case PAIR(8, MUSTER_REDOP_LAND):
		APPLY(u64, LAND);
		return 0;
	case PAIR(1, MUSTER_REDOP_LOR):
		APPLY(u8, LOR);
		return 0;
	case PAIR(4, MUSTER_REDOP_LOR):
		APPLY(u32, LOR);
		return 0;
	case PAIR(8, MUSTER_REDOP_LOR):
		APPLY(u64, LOR);
		return 0;
	case PAIR(1, MUSTER_REDOP_LXOR):
		APPLY(u8, LXOR);
		return 0;
	case PAIR(4, MUSTER_REDOP_LXOR):
		APPLY(u32, LXOR);
		return 0;
	case PAIR(8, MUSTER_REDOP_LXOR):
		APPLY(u64, LXOR);
		return 0;
	default:
		return -EINVAL;
	}
}

static const struct {
	uint8_t size;
	bool is_float;
} types[] = {
#define TYPE(name, number, word, bytes, is_float) [number] = { bytes, is_float },
	MUSTER_DTYPES(TYPE)
};

size_t muster_dtype_size(uint8_t type)
{
	return type <= MUSTER_DTYPE_LAST ? types[type].size : 0;
}

int muster_arith_supported(uint8_t type, uint8_t op)
{
	if (!muster_dtype_size(type) || !op || op > MUSTER_REDOP_LAST)
		return 0;
	return op <= MUSTER_REDOP_MAX || !types[type].is_float;
}

int muster_arith(uint8_t type, uint8_t op, void *dst, const void *a, const void *b, size_t bytes)
{
	if (!muster_arith_supported(type, op) || bytes % muster_dtype_size(type))
		return -EINVAL;
	muster_arith_checked(type, op, dst, a, b, bytes);
	return 0;
}

void muster_arith_checked(uint8_t type, uint8_t op, void *dst, const void *a, const void *b,
			  size_t bytes)
{
	if (op >= MUSTER_REDOP_LAND)
		apply_logical(PAIR(types[type].size, op), dst, a, b, bytes);
	else
		apply(PAIR(type, op), dst, a, b, bytes);
}
