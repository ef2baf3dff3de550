/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Exact sums of f32 and f64 (Documentation/arithmetic.md): numbers become integers of
 * fixed point, cut into limbs of 64 bits; integers are added by whoever adds them, in
 * any order, with MUSTER_DTYPE_I64 and MUSTER_REDOP_SUM; the sum is rounded once.
 *
 * In two rounds. First the ranks agree, by the maximum, on what their numbers span.
 * That decides about the limbs: where they begin, and how many there are.
 */
#ifndef MUSTER_EXACT_H
#define MUSTER_EXACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What numbers span. Of several ranks: the maximum of each, MUSTER_DTYPE_I32 and
 * MUSTER_REDOP_MAX. Start with MUSTER_EXACT_NOTHING.
 */
struct muster_exact_span {
	int32_t top;		/* all are below 2^top */
	int32_t minus_bottom;	/* all are multiples of 2^-minus_bottom */
	int32_t special;	/* 1: an infinity or a NaN is among them */
};

#define MUSTER_EXACT_NOTHING ((struct muster_exact_span){ -4096, -4096, 0 })

enum {
	MUSTER_EXACT_LIMBS_MAX = 63,	/* 2,098 bits in limbs of 34, one for what is no number */
	MUSTER_EXACT_FEW = 3,		/* that go by vectors, all the way */
};

struct muster_exact {
	int32_t bottom;		/* of the first limb's last bit */
	uint32_t bits;		/* of a number in one limb; the others are for carries */
	uint32_t limbs;
	uint32_t special;	/* 1: one more limb counts infinities and NaN */
};

/** muster_exact_span_of() - widen the span by nr more numbers of a type, f32 or f64. */
void muster_exact_span_of(uint8_t type, const void *from, size_t nr, struct muster_exact_span *span);

/** muster_exact_plan() - the limbs for what all of up to 65,536 ranks span. -ERANGE: no numbers do. */
int muster_exact_plan(const struct muster_exact_span *span, uint32_t ranks,
		       struct muster_exact *exact);

/** muster_exact_planes() - limbs of a number, 8 bytes each. */
uint32_t muster_exact_planes(const struct muster_exact *exact);

/**
 * muster_exact_encode() - nr numbers as limbs: first limbs of all, then second ones.
 * Every number must have been in the span.
 */
void muster_exact_encode(const struct muster_exact *exact, uint8_t type, const void *from,
			 size_t nr, int64_t *limbs);

/** muster_exact_round() - the numbers nearest to nr sums, ties to even; limbs are used up. */
void muster_exact_round(const struct muster_exact *exact, uint8_t type, int64_t *limbs, size_t nr,
			void *to);

/* ---- what exact.c and exact_round.c share ---- */

/** muster_exact_power() - 2^exponent, from -1074 on. */
double muster_exact_power(int32_t exponent);
/** muster_exact_is_short() - up to MUSTER_EXACT_FEW limbs, of units that are small enough to round to. */
bool muster_exact_is_short(const struct muster_exact *exact);
/** muster_exact_rounder() - 1.5 * 2^52 units of a limb: with less than 2^51 of them it rounds to these. */
double muster_exact_rounder(const struct muster_exact *exact, uint32_t limb);

#endif /* MUSTER_EXACT_H */
