/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What ranks at switches give, any bytes, and how a tree's order combines it. */
#ifndef MUSTER_SELFTESTS_FILLED_H
#define MUSTER_SELFTESTS_FILLED_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "arith.h"

static inline uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* Any bytes: numbers of all sizes, infinities, and what is no number. */
static inline void fill(uint8_t *at, uint32_t of_rank, uint64_t bytes, uint64_t salt)
{
	for (uint64_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)mix(salt + mix(i / 8 + mix(of_rank + 1)) + i);
}

/* The first one is copied. Return: 0, or -errno: there is no such operation. */
static inline int fold(uint8_t *sum, const uint8_t *value, bool *first, uint8_t type, uint8_t op, uint64_t bytes)
{
	if (!*first)
		return muster_arith(type, op, sum, sum, value, bytes);
	*first = false;
	memcpy(sum, value, bytes);
	return 0;
}

#endif
