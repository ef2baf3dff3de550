/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The one canonical arithmetic: engine, switch and host path all call this, so
 * that a result has the same bits wherever it was computed
 * (Documentation/arithmetic.md).
 */
#ifndef MUSTER_ARITH_H
#define MUSTER_ARITH_H

#include <stddef.h>
#include <stdint.h>

#include "muster_desc.h"

/** muster_dtype_size() - bytes of an element, 0 for an unknown type. */
size_t muster_dtype_size(uint8_t type);

/** muster_arith_supported() - whether the pair is defined. */
int muster_arith_supported(uint8_t type, uint8_t op);

/** muster_arith_exchanges() - whether op(a, b) and op(b, a) have the same bits: all but replace. */
int muster_arith_exchanges(uint8_t op);

/**
 * muster_arith() - dst[i] = op(a[i], b[i]).
 * @bytes: a multiple of the element size.
 *
 * Pointers need no alignment. dst may equal a or b, but not overlap them
 * otherwise. Integers wrap; a NaN in gives the canonical quiet NaN out
 * (also for min and max); min(+0, -0) = -0 and max(+0, -0) = +0. Return: 0, or
 * -EINVAL for a pair or length that is not defined.
 */
int muster_arith(uint8_t type, uint8_t op, void *dst, const void *a, const void *b, size_t bytes);

/** muster_arith_checked() - the same for a pair and a length that are known to be defined. */
void muster_arith_checked(uint8_t type, uint8_t op, void *dst, const void *a, const void *b,
			  size_t bytes);

/**
 * muster_arith_rows() - of several sources at once, with the bits of one after the other: the first
 * `left` of them combined from the first on, then those from there on, then one with the other.
 * @left: 1 to nr; nr: there is one row only.
 *
 * The pair and the length are known to be defined. dst may equal from[0], and overlaps none otherwise.
 */
void muster_arith_rows(uint8_t type, uint8_t op, void *dst, const uint8_t *const *from,
		       uint32_t left, uint32_t nr, size_t bytes);

/** muster_arith_move() - memmove(), quicker where the lines are in another processor's cache. */
void muster_arith_move(void *to, const void *from, size_t bytes);

/* *dst = op(*a, *b), of one element. */
typedef void muster_arith_element(void *dst, const void *a, const void *b);

/**
 * muster_arith_one() - a function with the same bits for messages of so many bytes, where they
 * are a single element of a frequent pair. Else NULL.
 */
muster_arith_element *muster_arith_one(uint8_t type, uint8_t op, size_t bytes);

#endif /* MUSTER_ARITH_H */
