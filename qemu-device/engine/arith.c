// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The canonical arithmetic (Documentation/arithmetic.md): which operation is defined
 * for which type, and which file has it. All of it follows from the two lists in
 * uapi/muster_desc.h.
 */
#include "arith.h"

#include <errno.h>
#include <string.h>

#include "arith_vector.h"

typedef void apply(uint8_t type, uint8_t op, uint8_t *dst, const uint8_t *a, const uint8_t *b,
		   size_t bytes);
typedef size_t apply_to_rows(uint8_t type, uint8_t op, const struct rows *rows, uint8_t *dst,
			     size_t bytes);

#define APPLY_INT	muster_arith_integers
#define APPLY_UINT	muster_arith_integers
#define APPLY_FLOAT	muster_arith_floats
#define APPLY_HALF	muster_arith_halves
#define APPLY_COMPLEX	muster_arith_floats
#define APPLY_PAIR	muster_arith_pairs

#define ROWS_INT	muster_arith_integers_rows
#define ROWS_UINT	muster_arith_integers_rows
#define ROWS_FLOAT	muster_arith_floats_rows
#define ROWS_HALF	NULL
#define ROWS_COMPLEX	muster_arith_floats_rows
#define ROWS_PAIR	NULL

static const struct {
	uint8_t size;
	uint8_t kind;
	apply *apply;
	apply_to_rows *rows;	/* NULL: two by two */
} types[] = {
#define TYPE(name, number, word, bytes, kind)                                                    \
	[number] = { bytes, MUSTER_KIND_##kind, APPLY_##kind, ROWS_##kind },
	MUSTER_DTYPES(TYPE)
};

static const uint8_t kinds[] = {
#define KINDS(name, number, word, kinds) [number] = kinds,
	MUSTER_REDOPS(KINDS)
};

/* A packet, a pulse and what is inline hold whole elements. */
#define FITS(name, number, word, bytes, kind)                                                    \
	MUSTER_STATIC_ASSERT(MUSTER_INLINE_MAX % (bytes) == 0 && MUSTER_MTU % (bytes) == 0, word);
MUSTER_DTYPES(FITS)

size_t muster_dtype_size(uint8_t type)
{
	return type <= MUSTER_DTYPE_LAST ? types[type].size : 0;
}

int muster_arith_supported(uint8_t type, uint8_t op)
{
	return type <= MUSTER_DTYPE_LAST && op <= MUSTER_REDOP_LAST &&
	       (types[type].kind & kinds[op]);
}

int muster_arith_exchanges(uint8_t op)
{
	return op != MUSTER_REDOP_REPLACE;
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
	if (op == MUSTER_REDOP_REPLACE)
		muster_arith_move(dst, b, bytes);
	else
		types[type].apply(type, op, dst, a, b, bytes);
}

size_t muster_arith_turns(uint8_t type, uint8_t op, const struct rows *rows, uint8_t *dst,
			  size_t bytes)
{
	return types[type].rows ? types[type].rows(type, op, rows, dst, bytes) : 0;
}

muster_arith_element *muster_arith_one(uint8_t type, uint8_t op, size_t bytes)
{
	muster_arith_element *one = NULL;

	if (!muster_arith_supported(type, op) || bytes != types[type].size)
		return NULL;
	if (types[type].apply == muster_arith_floats)
		one = muster_arith_floats_one(type, op);
	else if (types[type].apply == muster_arith_integers)
		one = muster_arith_integers_one(type, op);
	return one;
}
