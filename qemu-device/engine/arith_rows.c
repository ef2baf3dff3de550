// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Several sources in one pass. Combined one after the other, each is a stream of its own with the
 * result going through the cache in between; read side by side, memory is asked for all of them at
 * once, and the result is in registers until it is done. The bits are those of one after the other.
 *
 * A few at a time: of more, the same place of each page would want more lines than a cache has there.
 */
#include <stdbool.h>
#include <string.h>

#include "arith_vector.h"

enum {
	FEW = 8,
	PAGE = 4096,
};

/* Row by row, for what is no whole turn, and for types without a loop of their own. */
static void row_one_by_one(uint8_t type, uint8_t op, uint8_t *dst, const uint8_t *const *from,
			   uint32_t nr, size_t at, size_t bytes)
{
	if (nr == 1 && dst != from[0] + at)
		memcpy(dst, from[0] + at, bytes);
	for (uint32_t i = 1; i < nr; i++)
		muster_arith_checked(type, op, dst, i == 1 ? from[0] + at : dst, from[i] + at, bytes);
}

static void one_by_one(uint8_t type, uint8_t op, uint8_t *dst, const struct rows *rows, size_t at,
		       size_t bytes)
{
	uint8_t right[PAGE];

	for (size_t some; at < bytes; at += some) {
		some = bytes - at < PAGE ? bytes - at : PAGE;
		row_one_by_one(type, op, dst + at, rows->from, rows->left, at, some);
		if (rows->left == rows->nr)
			continue;
		row_one_by_one(type, op, right, rows->from + rows->left, rows->nr - rows->left, at,
			       some);
		muster_arith_checked(type, op, dst + at, dst + at, right, some);
	}
}

static void combine_few(uint8_t type, uint8_t op, uint8_t *dst, const struct rows *rows, size_t bytes)
{
	size_t done = rows->nr > 1 ? muster_arith_turns(type, op, rows, dst, bytes) : 0;

	if (done < bytes)
		one_by_one(type, op, dst, rows, done, bytes);
}

/* What is left of a row, and what it has come to. */
struct row {
	const uint8_t *const *from;
	uint32_t nr;
	uint8_t *sum;
	bool begun;
};

/* The next few, behind what they are added to. */
static uint32_t row_take(struct row *row, size_t at, const uint8_t **list)
{
	uint32_t nr = 0, few = row->nr < FEW ? row->nr : FEW;

	if (row->begun)
		list[nr++] = row->sum;
	for (uint32_t i = 0; i < few; i++)
		list[nr++] = row->from[i] + at;
	row->from += few;
	row->nr -= few;
	row->begun = true;
	return nr;
}

/* Up to a page: from the longer row, until one pass takes what is left of both. */
static void combine_many(uint8_t type, uint8_t op, uint8_t *dst, const struct rows *rows, size_t at,
			 size_t bytes)
{
	uint8_t other[PAGE];
	struct row left = { rows->from, rows->left, dst, false };
	struct row right = { rows->from + rows->left, rows->nr - rows->left, other, false };
	const uint8_t *list[2 * (FEW + 1)];
	struct rows part = { .from = list };

	while (left.nr + right.nr > FEW) {
		struct row *row = left.nr >= right.nr ? &left : &right;

		part.left = part.nr = row_take(row, at, list);
		combine_few(type, op, row->sum, &part, bytes);
	}
	part.left = row_take(&left, at, list);
	part.nr = part.left + row_take(&right, at, list + part.left);
	combine_few(type, op, dst, &part, bytes);
}

/* What was summed before is in a cache, of both rows if there are two. */
static uint32_t sums(const void *dst, const uint8_t *const *from, uint32_t left, uint32_t nr)
{
	if (dst != from[0])
		return 0;
	return left < nr ? 2 : 1;
}

void muster_arith_rows(uint8_t type, uint8_t op, void *dst, const uint8_t *const *from,
		       uint32_t left, uint32_t nr, size_t bytes)
{
	const struct rows rows = { from, left, nr };

	if (op == MUSTER_REDOP_REPLACE) {
		muster_arith_move(dst, from[nr - 1], bytes);
		return;
	}
	if (nr <= FEW + sums(dst, from, left, nr)) {
		combine_few(type, op, dst, &rows, bytes);
		return;
	}
	for (size_t at = 0, some; at < bytes; at += some) {
		some = bytes - at < PAGE ? bytes - at : PAGE;
		combine_many(type, op, (uint8_t *)dst + at, &rows, at, some);
	}
}
