/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For tests only: what an exact sum must be, in another way than exact.c's. Numbers are added as
 * multiples of 2^-1074, in one integer of two's complement, 32 bits a word, that is as long
 * as all f64 together; it is rounded bit by bit.
 */
#ifndef MUSTER_TEST_EXACT_H
#define MUSTER_TEST_EXACT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "muster_desc.h"

enum { TEST_WORDS = 72 };

static inline void test_long_add(uint32_t *words, double v)
{
	int exponent;
	int64_t m = (int64_t)ldexp(frexp(v, &exponent), 53), at;

	for (exponent -= 53; exponent < -1074; exponent++)
		m /= 2;		/* zeros */
	at = exponent + 1074;
	for (int64_t i = at / 32, carry = 0; i < TEST_WORDS; i++) {
		__int128 part = (__int128)m * ((int64_t)1 << at % 32) >> 32 * (i - at / 32 < 4 ?
									  i - at / 32 : 3);
		int64_t sum = (int64_t)words[i] + (uint32_t)part + carry;

		words[i] = (uint32_t)sum;
		carry = sum >> 32;
	}
}

static inline int test_long_bit(const uint32_t *words, int at)
{
	return at >= 0 && (words[at / 32] >> at % 32 & 1);
}

static inline double test_long_round(const uint32_t *from, int precision, int last, double limit)
{
	bool minus = from[TEST_WORDS - 1] >> 31, below = false;
	uint32_t words[TEST_WORDS], carry = minus;
	int top = 32 * TEST_WORDS - 1, end;
	double v = 0;

	for (int i = 0; i < TEST_WORDS; i++) {
		words[i] = (minus ? ~from[i] : from[i]) + carry;
		carry = carry && !words[i];
	}
	while (top >= 0 && !test_long_bit(words, top))
		top--;
	end = top - precision + 1 > last + 1074 ? top - precision + 1 : last + 1074;
	for (int i = top; i >= end; i--)
		v = 2 * v + test_long_bit(words, i);
	for (int i = end - 2; i >= 0; i--)
		below |= test_long_bit(words, i);
	if (test_long_bit(words, end - 1) && (below || fmod(v, 2) == 1))
		v++;
	v = ldexp(v, end - 1074);
	v = v >= limit ? INFINITY : v;
	return minus ? -v : v;
}

/* What nr ranks' numbers at one place sum to. */
static inline double test_exact_sum(uint8_t type, const double *numbers, uint32_t nr)
{
	uint32_t words[TEST_WORDS] = { 0 };

	for (uint32_t i = 0; i < nr; i++)
		test_long_add(words, numbers[i]);
	return type == MUSTER_DTYPE_F64 ? test_long_round(words, 53, -1074, INFINITY) :
					  test_long_round(words, 24, -149, 0x1p128);
}

#endif /* MUSTER_TEST_EXACT_H */
