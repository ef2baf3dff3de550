// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The algorithms of Documentation/bump.md as plain formulas over all hosts: in which
 * order they combine. Nothing of the bump is used here.
 */
#include "bump_reference.h"

#include <string.h>

struct scene {
	uint8_t type, redop;
	uint32_t hosts;
	const uint64_t *own;
	uint64_t *before;
};

static uint64_t combine_f64(uint8_t redop, uint64_t a, uint64_t b)
{
	double x, y;

	memcpy(&x, &a, 8);
	memcpy(&y, &b, 8);
	if (redop == MUSTER_REDOP_SUM) {
		x += y;
		memcpy(&a, &x, 8);
		return a;
	}
	return (redop == MUSTER_REDOP_MIN) == (x < y) ? a : b;	/* no NaN and no zeros in tests */
}

static uint64_t combine_int(uint8_t redop, uint64_t a, uint64_t b, int less)
{
	switch (redop) {
	case MUSTER_REDOP_SUM: return (uint32_t)(a + b);
	case MUSTER_REDOP_MIN: return less ? a : b;
	case MUSTER_REDOP_MAX: return less ? b : a;
	case MUSTER_REDOP_BAND: return a & b;
	case MUSTER_REDOP_BOR: return a | b;
	case MUSTER_REDOP_BXOR: return a ^ b;
	case MUSTER_REDOP_LAND: return a && b;
	case MUSTER_REDOP_LOR: return a || b;
	default: return !a != !b;
	}
}

uint64_t bump_combine(uint8_t type, uint8_t redop, uint64_t a, uint64_t b)
{
	if (type == MUSTER_DTYPE_F64)
		return combine_f64(redop, a, b);
	return combine_int(redop, a, b, type == MUSTER_DTYPE_I32 ? (int32_t)a < (int32_t)b : a < b);
}

static uint64_t op(const struct scene *s, uint64_t a, uint64_t b)
{
	return bump_combine(s->type, s->redop, a, b);
}

static uint64_t ring(const struct scene *s, uint32_t from, uint32_t nr)
{
	uint64_t all = s->own[from];

	for (uint32_t i = 1; i < nr; i++) {
		s->before[from + i] = all;
		all = op(s, all, s->own[from + i]);
	}
	return all;
}

/* Host v and its subtree, which is what lies below v + reach. */
static uint64_t subtree(const struct scene *s, uint32_t v, uint32_t reach)
{
	uint64_t all = s->own[v];

	for (uint32_t bit = 1; bit < reach && v + bit < s->hosts; bit *= 2)
		all = op(s, all, subtree(s, v + bit, bit));
	return all;
}

static void descend(const struct scene *s, uint32_t v, uint32_t reach)
{
	uint64_t running = v ? op(s, s->before[v], s->own[v]) : s->own[v];

	for (uint32_t bit = 1; bit < reach && v + bit < s->hosts; bit *= 2) {
		s->before[v + bit] = running;
		descend(s, v + bit, bit);
		running = op(s, running, subtree(s, v + bit, bit));
	}
}

/* Halves of a block are combined when they are whole. */
static uint64_t block(const struct scene *s, const uint64_t *value, uint32_t nr)
{
	return nr == 1 ? *value :
	       op(s, block(s, value, nr / 2), block(s, value + nr / 2, nr / 2));
}

static uint32_t core_of(uint32_t hosts)
{
	uint32_t core = 1;

	while (2 * core <= hosts)
		core *= 2;
	return core;
}

static uint64_t doubling(const struct scene *s)
{
	uint32_t core = core_of(s->hosts);
	uint64_t value[MUSTER_BUMP_HOSTS_MAX];

	for (uint32_t i = 0; i < core; i++)
		value[i] = i + core < s->hosts ? op(s, s->own[i], s->own[i + core]) : s->own[i];
	return block(s, value, core);
}

/* In a scan pairs of neighbours come first, so that blocks are ranges. */
static void doubling_before(const struct scene *s)
{
	uint32_t core = core_of(s->hosts), extra = s->hosts - core;
	uint64_t value[MUSTER_BUMP_HOSTS_MAX], before = 0;

	for (uint32_t i = 0; i < core; i++)
		value[i] = i < extra ? op(s, s->own[2 * i], s->own[2 * i + 1]) : s->own[i + extra];
	for (uint32_t i = 0; i < core; i++) {
		uint32_t host = i < extra ? 2 * i : i + extra, any = 0;

		for (uint32_t bit = 1; bit < core; bit *= 2) {
			uint32_t low = (i & ~(2 * bit - 1));

			if (!(i & bit))
				continue;
			before = any ? op(s, block(s, value + low, bit), before) :
				       block(s, value + low, bit);
			any = 1;
		}
		s->before[host] = before;
		if (i < extra)
			s->before[host + 1] = any ? op(s, before, s->own[host]) : s->own[host];
	}
}

static uint64_t torus(const struct scene *s)
{
	uint32_t rows = 1, columns;
	uint64_t all = 0, row_all;

	for (uint32_t n = 1; n * n <= s->hosts; n++)
		rows = s->hosts % n ? rows : n;
	columns = s->hosts / rows;
	for (uint32_t row = 0; row < rows; row++) {
		uint32_t first = row * columns;

		row_all = ring(s, first, columns);
		for (uint32_t i = 0; i < columns && row; i++)
			s->before[first + i] = i ? op(s, all, s->before[first + i]) : all;
		all = row ? op(s, all, row_all) : row_all;
	}
	return all;
}

uint64_t bump_reference(uint8_t algorithm, uint8_t type, uint8_t redop, uint32_t hosts,
			const uint64_t *own, uint64_t *before)
{
	struct scene s = { type, redop, hosts, own, before };
	uint32_t reach = 2 * core_of(hosts);

	switch (algorithm) {
	case MUSTER_BUMP_RING:
		return ring(&s, 0, hosts);
	case MUSTER_BUMP_TREE:
		descend(&s, 0, reach);
		return subtree(&s, 0, reach);
	case MUSTER_BUMP_DOUBLING:
		doubling_before(&s);
		return doubling(&s);
	default:
		return torus(&s);
	}
}
