/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of the arithmetic share: vectors, loops over them, and the table of
 * kinds. Each operation is one expression on GCC vectors, used twice: on 32 bytes at a
 * time, and on a vector of one element for what is left. Both therefore have the same
 * bits, whatever instructions they become. An element is read before its result is
 * written, so dst may be a or b.
 */
#ifndef MUSTER_ARITH_VECTOR_H
#define MUSTER_ARITH_VECTOR_H

#include "arith.h"

/* One build for every machine; the wide one is chosen when the program is loaded. */
#if !defined(CLONES) && defined(__x86_64__)
#define CLONES __attribute__((target_clones("avx2", "default")))
#elif !defined(CLONES)
#define CLONES
#endif

#define WIDE 32		/* bytes of a vector */
#define AHEAD 2048	/* bytes, of what is asked for early */

/* A vector of so many bytes; it needs no alignment. */
#define VECTOR(name, element, bytes)                                                             \
	typedef element name __attribute__((vector_size(bytes), aligned(1), may_alias))
/* v: a wide vector, e: a vector of one element. */
#define VECTORS(name, element)                                                                   \
	VECTOR(v##name, element, WIDE);                                                          \
	VECTOR(e##name, element, sizeof(element))

VECTORS(I8, int8_t);
VECTORS(U8, uint8_t);
VECTORS(I16, int16_t);
VECTORS(U16, uint16_t);
VECTORS(I32, int32_t);
VECTORS(U32, uint32_t);
VECTORS(F32, float);
VECTORS(I64, int64_t);
VECTORS(U64, uint64_t);
VECTORS(F64, double);

/* As many f32 as a wide vector has of f64. */
VECTOR(halfF32, float, WIDE / 2);

/* An element of two parts; many are a wide vector of these. */
VECTOR(twoI32, int32_t, 8);
VECTOR(twoU32, uint32_t, 8);
VECTOR(twoF32, float, 8);
VECTOR(twoI64, int64_t, 16);
VECTOR(twoU64, uint64_t, 16);
VECTOR(twoF64, double, 16);

/* A comparison of vectors is all ones where it holds. */
#define SELECT(mask, x, y) (((mask) & (x)) | (~(mask) & (y)))

/*
 * What is added comes from another's memory, once, and in pieces too short for the machine to see
 * them coming. Nothing is asked for behind its end.
 */
#define EXPECT(T)                                                                                \
	if (sizeof(T) == WIDE && bytes - at > AHEAD)                                             \
		__builtin_prefetch(b + at + AHEAD)

/* dst[i] = EXPR(x, y) for vectors of type T, as long as a whole one is left. */
#define SWEEP(T, EXPR, ...)                                                                      \
	for (; bytes - at >= sizeof(T); at += sizeof(T)) {                                       \
		T x = *(const T *)(a + at), y = *(const T *)(b + at);                            \
		EXPECT(T);                                                                       \
		*(T *)(dst + at) = (T)EXPR(x, y, ##__VA_ARGS__);                                 \
	}

/* One for each kind of element: of this type or size, op(a, b), into dst. */
void muster_arith_integers(uint8_t type, uint8_t op, uint8_t *dst, const uint8_t *a,
			   const uint8_t *b, size_t bytes);
void muster_arith_floats(uint8_t type, uint8_t op, uint8_t *dst, const uint8_t *a,
			 const uint8_t *b, size_t bytes);
void muster_arith_halves(uint8_t type, uint8_t op, uint8_t *dst, const uint8_t *a,
			 const uint8_t *b, size_t bytes);
void muster_arith_pairs(uint8_t type, uint8_t op, uint8_t *dst, const uint8_t *a,
			const uint8_t *b, size_t bytes);

/* A function for a single element, by the same expression. */
#define ONE(name, T, EXPR, ...)									 \
	static void one_##name(void *dst, const void *a, const void *b)				 \
	{											 \
		T x = *(const T *)a, y = *(const T *)b;						 \
												 \
		*(T *)dst = (T)EXPR(x, y, ##__VA_ARGS__);					 \
	}

/* Which; NULL: there is none. */
muster_arith_element *muster_arith_integers_one(uint8_t type, uint8_t op);
muster_arith_element *muster_arith_floats_one(uint8_t type, uint8_t op);

#define KEY(type, op) ((unsigned int)(type) * 256 + (op))

#endif /* MUSTER_ARITH_VECTOR_H */
