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

#include <stdbool.h>
#include <string.h>

#include "arith.h"

/*
 * One build for every machine; the wide one is chosen when the program is loaded. Where packets are read side by side,
 * memory is so quick that each instruction counts: for that alone there is one with vectors as long as a line
 * of a cache, too.
 */
#if !defined(CLONES) && defined(__x86_64__)
#define CLONES __attribute__((target_clones("avx2", "default")))
#define LINE_BUILD __attribute__((target("avx512bw")))
#define HAS_LINE_BUILD __builtin_cpu_supports("avx512bw")
#else
#define LINE_BUILD
#define HAS_LINE_BUILD false
#endif
#ifndef CLONES
#define CLONES
#endif

#define WIDE 32		/* bytes of a vector */
#define LINE (2 * WIDE)	/* of a line of a cache */

/* A vector of so many bytes; it needs no alignment. */
#define VECTOR(name, element, bytes)                                                             \
	typedef element name __attribute__((vector_size(bytes), aligned(1), may_alias))
/* l: a vector as long as a line, v: a wide one, e: of one element. */
#define VECTORS(name, element)                                                                   \
	VECTOR(l##name, element, LINE);                                                          \
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

/* dst[i] = EXPR(x, y) for vectors of type T, as long as a whole one is left. */
#define SWEEP_ONE(T, i, EXPR, ...)                                                               \
	do {                                                                                     \
		T x = ((const T *)(a + at))[i], y = ((const T *)(b + at))[i];                    \
		((T *)(dst + at))[i] = (T)EXPR(x, y, ##__VA_ARGS__);                             \
	} while (0)

/* Whole lines first: two vectors a turn are quicker than one where they come from memory. */
#define SWEEP(T, EXPR, ...)                                                                      \
	for (; sizeof(T) == WIDE && bytes - at >= LINE; at += LINE) {                            \
		SWEEP_ONE(T, 0, EXPR, ##__VA_ARGS__);                                            \
		SWEEP_ONE(T, 1, EXPR, ##__VA_ARGS__);                                            \
	}                                                                                        \
	for (; bytes - at >= sizeof(T); at += sizeof(T))                                         \
		SWEEP_ONE(T, 0, EXPR, ##__VA_ARGS__);

/*
 * Sources that are read side by side: all up to `left` combined from the first on, then those from
 * there on, then one with the other (arith_rows.c).
 */
struct rows {
	const uint8_t *const *from;
	uint32_t left, nr;
};

/*
 * A line of a source, in one vector or two, read once. It is asked for before: who waits for what it reads holds up
 * all that is behind it, who asks does not. To ask for what is further ahead is worse where sources are many.
 */
#define ROWS_READ(T, x, k)                                                                       \
	const uint8_t *x##_at = from[k];                                                         \
	__builtin_prefetch(x##_at + at);                                                         \
	T x##0 = ((const T *)(x##_at + at))[0];                                                  \
	T x##1 = sizeof(T) < LINE ? ((const T *)(x##_at + at))[1] : x##0;

#define ROWS_STEP(T, x, y, STEP, ...)                                                            \
	do {                                                                                     \
		x##0 = (T)STEP(x##0, y##0, ##__VA_ARGS__);                                       \
		x##1 = (T)STEP(x##1, y##1, ##__VA_ARGS__);                                       \
	} while (0)

/* Three at a time behind the first one: where halves of four are added, there is no loop at all. */
#define ROWS_ROW(T, x, first, end, STEP, ...)                                                    \
	size_t x##_k = (first) + 1;                                                              \
	ROWS_READ(T, x, first)                                                                   \
	for (; (end) - x##_k >= 3; x##_k += 3) {                                                 \
		ROWS_READ(T, a, x##_k)                                                           \
		ROWS_READ(T, b, x##_k + 1)                                                       \
		ROWS_READ(T, c, x##_k + 2)                                                       \
		ROWS_STEP(T, x, a, STEP, ##__VA_ARGS__);                                         \
		ROWS_STEP(T, x, b, STEP, ##__VA_ARGS__);                                         \
		ROWS_STEP(T, x, c, STEP, ##__VA_ARGS__);                                         \
	}                                                                                        \
	for (; x##_k < (end); x##_k++) {                                                         \
		ROWS_READ(T, a, x##_k)                                                           \
		ROWS_STEP(T, x, a, STEP, ##__VA_ARGS__);                                         \
	}

#define ROWS_END(T, END, ...)                                                                    \
	((T *)(dst + at))[0] = (T)END(x0, ##__VA_ARGS__);                                        \
	if (sizeof(T) < LINE)                                                                    \
		((T *)(dst + at))[1] = (T)END(x1, ##__VA_ARGS__);

/*
 * In whole turns; `at` stands behind the last one then. STEP(x, y) may leave for END(x) what the next
 * step does not care about, such as which NaN it is.
 */
#define ROWS(T, STEP, END, ...)                                                                  \
	do {                                                                                     \
		const uint8_t *const *const from = rows->from;                                   \
		const size_t left = rows->left, nr = rows->nr;                                   \
                                                                                                 \
		for (; bytes - at >= LINE; at += LINE) {                                         \
			ROWS_ROW(T, x, 0, left, STEP, ##__VA_ARGS__)                             \
			if (left < nr) {                                                         \
				ROWS_ROW(T, z, left, nr, STEP, ##__VA_ARGS__)                    \
				ROWS_STEP(T, x, z, STEP, ##__VA_ARGS__);                         \
			}                                                                        \
			ROWS_END(T, END, ##__VA_ARGS__)                                          \
		}                                                                                \
	} while (0);

#define ROWS_ADD(T, x, k, STEP, ...)                                                             \
	do {                                                                                     \
		ROWS_READ(T, a, k)                                                               \
		ROWS_STEP(T, x, a, STEP, ##__VA_ARGS__);                                         \
	} while (0);
#define ROWS_FOUR(T, x, k, STEP, ...)                                                            \
	ROWS_READ(T, x, k)                                                                       \
	ROWS_ADD(T, x, (k) + 1, STEP, ##__VA_ARGS__)                                             \
	ROWS_ADD(T, x, (k) + 2, STEP, ##__VA_ARGS__)                                             \
	ROWS_ADD(T, x, (k) + 3, STEP, ##__VA_ARGS__)
#define ROWS_FIVE(T, x, k, STEP, ...)                                                            \
	ROWS_FOUR(T, x, k, STEP, ##__VA_ARGS__)                                                  \
	ROWS_ADD(T, x, (k) + 4, STEP, ##__VA_ARGS__)
#define ROWS_EIGHT(T, x, k, STEP, ...)                                                           \
	ROWS_FIVE(T, x, k, STEP, ##__VA_ARGS__)                                                  \
	ROWS_ADD(T, x, (k) + 5, STEP, ##__VA_ARGS__)                                             \
	ROWS_ADD(T, x, (k) + 6, STEP, ##__VA_ARGS__)                                             \
	ROWS_ADD(T, x, (k) + 7, STEP, ##__VA_ARGS__)

/* So many sources: where each of them lies is in registers, and no turn counts them. */
#define ROWS_OF(T, count, READ, END, ...)                                                        \
	do {                                                                                     \
		const uint8_t *from[count];                                                      \
                                                                                                 \
		memcpy(from, rows->from, sizeof(from));                                          \
		for (; bytes - at >= LINE; at += LINE) {                                         \
			READ                                                                     \
			ROWS_END(T, END, ##__VA_ARGS__)                                          \
		}                                                                                \
	} while (0);

/*
 * Of what is as quick as memory: those that are read most often, two rows of four, the same behind sums, which
 * a switch ends with whose 40 ports are all in use, and eight behind a sum.
 */
#define ROWS_QUICK(T, STEP, END, ...)                                                            \
	if (rows->left == 4 && rows->nr == 8)                                                    \
		ROWS_OF(T, 8,                                                                    \
			ROWS_FOUR(T, x, 0, STEP, ##__VA_ARGS__)                                  \
			ROWS_FOUR(T, z, 4, STEP, ##__VA_ARGS__)                                  \
			ROWS_STEP(T, x, z, STEP, ##__VA_ARGS__);, END, ##__VA_ARGS__)            \
	else if (rows->left == 5 && rows->nr == 10)                                              \
		ROWS_OF(T, 10,                                                                   \
			ROWS_FIVE(T, x, 0, STEP, ##__VA_ARGS__)                                  \
			ROWS_FIVE(T, z, 5, STEP, ##__VA_ARGS__)                                  \
			ROWS_STEP(T, x, z, STEP, ##__VA_ARGS__);, END, ##__VA_ARGS__)            \
	else if (rows->left == 8 && rows->nr == 8)                                               \
		ROWS_OF(T, 8, ROWS_EIGHT(T, x, 0, STEP, ##__VA_ARGS__), END, ##__VA_ARGS__)      \
	else if (rows->left == 9 && rows->nr == 9)                                               \
		ROWS_OF(T, 9,                                                                    \
			ROWS_EIGHT(T, x, 0, STEP, ##__VA_ARGS__)                                 \
			ROWS_ADD(T, x, 8, STEP, ##__VA_ARGS__), END, ##__VA_ARGS__)              \
	else                                                                                     \
		ROWS(T, STEP, END, ##__VA_ARGS__)

#define ROWS_BUILD(BUILD, name, CASES, vectors)                                                  \
	BUILD static size_t name(unsigned int pair, const struct rows *rows, uint8_t *dst,       \
				 size_t bytes)                                                   \
	{                                                                                        \
		size_t at = 0;                                                                   \
                                                                                                 \
		switch (pair) {                                                                  \
		CASES(vectors)                                                                   \
		}                                                                                \
		return at;                                                                       \
	}

/* A function that does CASES(l) where there are such vectors, else CASES(v). Return: how many bytes are done. */
#define ROWS_FUNCTION(name, CASES)                                                               \
	ROWS_BUILD(CLONES, name##_wide, CASES, v)                                                \
	ROWS_BUILD(LINE_BUILD, name##_lines, CASES, l)                                           \
	static size_t name(unsigned int pair, const struct rows *rows, uint8_t *dst, size_t bytes) \
	{                                                                                        \
		return HAS_LINE_BUILD ? name##_lines(pair, rows, dst, bytes) :                   \
				   name##_wide(pair, rows, dst, bytes);                          \
	}

/* Nothing is left for the end. */
#define ALL_DONE(x, ...) (x)

/* Of all types, how many bytes of the rows are done: whole turns, or none. */
size_t muster_arith_turns(uint8_t type, uint8_t op, const struct rows *rows, uint8_t *dst,
			  size_t bytes);
/* Of a kind that has it, how many bytes of the rows are done; the rest is combined two by two. */
size_t muster_arith_integers_rows(uint8_t type, uint8_t op, const struct rows *rows, uint8_t *dst,
				  size_t bytes);
size_t muster_arith_floats_rows(uint8_t type, uint8_t op, const struct rows *rows, uint8_t *dst,
				size_t bytes);

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
