// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Integers. All but minimum and maximum depend on an element's size alone: sums and
 * products wrap, and what is computed is unsigned.
 */
#include "arith_vector.h"

#define INT_SUM(x, y)	((x) + (y))
#define INT_PROD(x, y)	((x) * (y))
#define INT_BAND(x, y)	((x) & (y))
#define INT_BOR(x, y)	((x) | (y))
#define INT_BXOR(x, y)	((x) ^ (y))
#define INT_LAND(x, y)	((((x) != 0) & ((y) != 0)) & 1)
#define INT_LOR(x, y)	((((x) != 0) | ((y) != 0)) & 1)
#define INT_LXOR(x, y)	((((x) != 0) ^ ((y) != 0)) & 1)
#define INT_MIN(x, y)	SELECT((x) < (y), x, y)
#define INT_MAX(x, y)	SELECT((x) > (y), x, y)

#define INT_CASE(key, name, OP)                                                                  \
	case KEY(key, MUSTER_REDOP_##OP):                                                        \
		SWEEP(v##name, INT_##OP)                                                         \
		SWEEP(e##name, INT_##OP)                                                         \
		break;

#define INT_CASES_OF_SIZE(name)                                                                  \
	INT_CASE(sizeof(e##name), name, SUM)                                                     \
	INT_CASE(sizeof(e##name), name, PROD)                                                    \
	INT_CASE(sizeof(e##name), name, BAND)                                                    \
	INT_CASE(sizeof(e##name), name, BOR)                                                     \
	INT_CASE(sizeof(e##name), name, BXOR)                                                    \
	INT_CASE(sizeof(e##name), name, LAND)                                                    \
	INT_CASE(sizeof(e##name), name, LOR)                                                     \
	INT_CASE(sizeof(e##name), name, LXOR)

CLONES
static void apply_by_size(unsigned int pair, uint8_t *dst, const uint8_t *a, const uint8_t *b,
			  size_t bytes)
{
	size_t at = 0;

	switch (pair) {
	INT_CASES_OF_SIZE(U8)
	INT_CASES_OF_SIZE(U16)
	INT_CASES_OF_SIZE(U32)
	INT_CASES_OF_SIZE(U64)
	}
}

#define INT_CASES_OF_TYPE(name)                                                                  \
	INT_CASE(MUSTER_DTYPE_##name, name, MIN)                                                 \
	INT_CASE(MUSTER_DTYPE_##name, name, MAX)
#define INT_CASES_OF_INT(name)	INT_CASES_OF_TYPE(name)
#define INT_CASES_OF_UINT(name)	INT_CASES_OF_TYPE(name)
#define INT_CASES_OF_FLOAT(name)
#define INT_CASES_OF_HALF(name)
#define INT_CASES_OF_COMPLEX(name)
#define INT_CASES_OF_PAIR(name)
#define INT_CASES(name, number, word, bytes, kind) INT_CASES_OF_##kind(name)

CLONES
static void apply_by_order(unsigned int pair, uint8_t *dst, const uint8_t *a, const uint8_t *b,
			   size_t bytes)
{
	size_t at = 0;

	switch (pair) {
	MUSTER_DTYPES(INT_CASES)
	}
}

void muster_arith_integers(uint8_t type, uint8_t op, uint8_t *dst, const uint8_t *a,
			   const uint8_t *b, size_t bytes)
{
	if (op == MUSTER_REDOP_MIN || op == MUSTER_REDOP_MAX)
		apply_by_order(KEY(type, op), dst, a, b, bytes);
	else
		apply_by_size(KEY(muster_dtype_size(type), op), dst, a, b, bytes);
}

#define INT_ROWS(key, vector, OP, LOOP)                                                          \
	case KEY(key, MUSTER_REDOP_##OP):                                                        \
		LOOP(vector, INT_##OP, ALL_DONE)                                                 \
		break;

#define INT_ROWS_OF_SIZE(vectors, name)                                                          \
	INT_ROWS(sizeof(e##name), vectors##name, SUM, ROWS_QUICK)                                \
	INT_ROWS(sizeof(e##name), vectors##name, PROD, ROWS)                                     \
	INT_ROWS(sizeof(e##name), vectors##name, BAND, ROWS)                                     \
	INT_ROWS(sizeof(e##name), vectors##name, BOR, ROWS)                                      \
	INT_ROWS(sizeof(e##name), vectors##name, BXOR, ROWS)
#define INT_ROWS_BY_SIZE(vectors)                                                                \
	INT_ROWS_OF_SIZE(vectors, U8)                                                            \
	INT_ROWS_OF_SIZE(vectors, U16)                                                           \
	INT_ROWS_OF_SIZE(vectors, U32)                                                           \
	INT_ROWS_OF_SIZE(vectors, U64)

ROWS_FUNCTION(rows_by_size, INT_ROWS_BY_SIZE)

#define INT_ROWS_OF_TYPE(vectors, name)                                                          \
	INT_ROWS(MUSTER_DTYPE_##name, vectors##name, MIN, ROWS)                                  \
	INT_ROWS(MUSTER_DTYPE_##name, vectors##name, MAX, ROWS)
#define INT_ROWS_BY_ORDER(vectors)                                                               \
	INT_ROWS_OF_TYPE(vectors, I32)                                                           \
	INT_ROWS_OF_TYPE(vectors, U32)                                                           \
	INT_ROWS_OF_TYPE(vectors, I64)                                                           \
	INT_ROWS_OF_TYPE(vectors, U64)

ROWS_FUNCTION(rows_by_order, INT_ROWS_BY_ORDER)

size_t muster_arith_integers_rows(uint8_t type, uint8_t op, const struct rows *rows, uint8_t *dst,
				  size_t bytes)
{
	if (op == MUSTER_REDOP_MIN || op == MUSTER_REDOP_MAX)
		return rows_by_order(KEY(type, op), rows, dst, bytes);
	return rows_by_size(KEY(muster_dtype_size(type), op), rows, dst, bytes);
}

#define INT_ONE(name, OP)	ONE(name##_##OP, e##name, INT_##OP)
#define INT_ONES_OF_SIZE(name)									 \
	INT_ONE(name, SUM)									 \
	INT_ONE(name, PROD)									 \
	INT_ONE(name, BAND)									 \
	INT_ONE(name, BOR)									 \
	INT_ONE(name, BXOR)
#define INT_ONES_OF_TYPE(name)									 \
	INT_ONE(name, MIN)									 \
	INT_ONE(name, MAX)
INT_ONES_OF_SIZE(U32)
INT_ONES_OF_SIZE(U64)
INT_ONES_OF_TYPE(I32)
INT_ONES_OF_TYPE(U32)
INT_ONES_OF_TYPE(I64)
INT_ONES_OF_TYPE(U64)

#define INT_ONE_CASE(type, name, OP)								 \
	case KEY(MUSTER_DTYPE_##type, MUSTER_REDOP_##OP):					 \
		return one_##name##_##OP;
#define INT_ONE_CASES(type, name)								 \
	INT_ONE_CASE(type, name, SUM)								 \
	INT_ONE_CASE(type, name, PROD)								 \
	INT_ONE_CASE(type, name, BAND)								 \
	INT_ONE_CASE(type, name, BOR)								 \
	INT_ONE_CASE(type, name, BXOR)								 \
	INT_ONE_CASE(type, type, MIN)								 \
	INT_ONE_CASE(type, type, MAX)

muster_arith_element *muster_arith_integers_one(uint8_t type, uint8_t op)
{
	switch (KEY(type, op)) {
	INT_ONE_CASES(I32, U32)
	INT_ONE_CASES(U32, U32)
	INT_ONE_CASES(I64, U64)
	INT_ONE_CASES(U64, U64)
	}
	return NULL;
}
