// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What is in the buffers. Two kinds of input: one whose floating-point sums
 * depend on the order of the additions, so that equal bits mean something, and
 * one of small whole numbers, whose results are known without any order.
 */
#include "perf.h"

#include <math.h>
#include <string.h>

#include "muster_desc.h"

struct word {
	const char *name;
	int value;
	size_t bytes;
	enum muster_kind kind;
};

#define TYPE(name, number, word, bytes, kind) { word, MUSTER_##name, bytes, MUSTER_KIND_##kind },
#define OP(name, number, word, ...) { word, MUSTER_##name, 0, 0 },

static const struct word types[] = { MUSTER_DTYPES(TYPE) { NULL, 0, 0, 0 } };
static const struct word ops[] = {
	MUSTER_REDOPS(OP)
	{ "exact", MUSTER_SUM_EXACT, 0, 0 },
	{ NULL, 0, 0, 0 },
};

static int word_read(const struct word *word, const char *name)
{
	while (word->name && strcmp(word->name, name))
		word++;
	return word->value;
}

static const char *word_name(const struct word *word, int value)
{
	while (word->name && word->value != value)
		word++;
	return word->name;
}

enum muster_type perf_type_read(const char *name)
{
	return (enum muster_type)word_read(types, name);
}

enum muster_op perf_op_read(const char *name)
{
	return (enum muster_op)word_read(ops, name);
}

const char *perf_type_name(enum muster_type type)
{
	return word_name(types, type);
}

const char *perf_op_name(enum muster_op op)
{
	return word_name(ops, op);
}

size_t perf_type_bytes(enum muster_type type)
{
	const struct word *word = types;

	while (word->name && word->value != (int)type)
		word++;
	return word->bytes;
}

static enum muster_kind kind_of(enum muster_type type)
{
	return types[type - 1].kind;
}

/* The 16 bits of a whole number that has few enough to be exact in them. */
static uint16_t half_of(enum muster_type type, uint32_t value)
{
	int fraction = type == MUSTER_F16 ? 10 : 7, bias = type == MUSTER_F16 ? 15 : 127;
	int exponent = value ? 31 - __builtin_clz(value) : -bias;

	if (!value)
		return 0;
	return (uint16_t)(((uint64_t)value << fraction >> exponent) +
			  ((uint64_t)(exponent + bias - 1) << fraction));
}

/* A real number, of a complex one the real part. */
static void put_real(size_t bytes, char *at, double value)
{
	float single = (float)value;

	memcpy(at, bytes == 4 ? (void *)&single : (void *)&value, bytes);
}

/* Of a pair, the index says which rank. */
static void put_pair(enum muster_type type, char *at, int64_t value, uint32_t rank)
{
	size_t lane = perf_type_bytes(type) / 2;

	if (type == MUSTER_F32_I32 || type == MUSTER_F64_I32)
		put_real(lane, at, (double)value);
	else
		memcpy(at, &value, type == MUSTER_I16_I32 ? 2 : lane);
	memcpy(at + lane, &rank, sizeof(rank));
}

static void put_whole(enum muster_type type, void *data, uint64_t i, int64_t value, uint32_t rank)
{
	size_t bytes = perf_type_bytes(type);
	char *at = (char *)data + i * bytes;
	uint16_t half = half_of(type, (uint32_t)value);

	memset(at, 0, bytes);
	switch (kind_of(type)) {
	case MUSTER_KIND_FLOAT:
		put_real(bytes, at, (double)value);
		break;
	case MUSTER_KIND_COMPLEX:
		put_real(bytes / 2, at, (double)value);
		break;
	case MUSTER_KIND_HALF:
		memcpy(at, &half, bytes);
		break;
	case MUSTER_KIND_PAIR:
		put_pair(type, at, value, rank);
		break;
	default:
		memcpy(at, &value, bytes);
	}
}

/* The splitmix64 step: 64 bits that look random, the same everywhere. */
static uint64_t mix(uint64_t value)
{
	value += 0x9e3779b97f4a7c15;
	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
	value = (value ^ value >> 27) * 0x94d049bb133111eb;
	return value ^ value >> 31;
}

/* Which bits of a random word there are if real numbers of 16, 32 or 64 bits in it are below 2. */
#define BELOW_2 0xbfffbfffbfffbfff

void perf_fill(const struct perf *perf, void *data, uint64_t bytes)
{
	enum muster_type type = perf->options->type;

	for (uint64_t i = 0; i < bytes / perf_type_bytes(type); i++) {
		uint64_t bits = mix((uint64_t)perf->rank << 40 ^ i);
		uint64_t small[2] = { bits & BELOW_2, mix(bits) & BELOW_2 };
		char *at = (char *)data + i * perf_type_bytes(type);

		if (kind_of(type) == MUSTER_KIND_FLOAT)
			put_real(perf_type_bytes(type), at,
				 ldexp((double)(int64_t)bits, (int)(bits & 31) - 80));
		else if (kind_of(type) & MUSTER_KINDS_INTEGER)
			memcpy(at, &bits, perf_type_bytes(type));
		else
			memcpy(at, small, perf_type_bytes(type));
	}
}

static int64_t simple_value(uint32_t rank, uint64_t i)
{
	return (int64_t)((rank * 7 + i) % 5);
}

void perf_fill_simple(const struct perf *perf, void *data, uint64_t bytes)
{
	enum muster_type type = perf->options->type;

	for (uint64_t i = 0; i < bytes / perf_type_bytes(type); i++)
		put_whole(type, data, i, simple_value(perf->rank, i), perf->rank);
}

static int64_t combine(enum muster_op op, int64_t a, int64_t b)
{
	switch (op) {
	case MUSTER_PROD:
		return (int64_t)((uint64_t)a * (uint64_t)b);
	case MUSTER_MIN:
	case MUSTER_MINLOC:
		return a < b ? a : b;
	case MUSTER_MAX:
	case MUSTER_MAXLOC:
		return a > b ? a : b;
	case MUSTER_BAND:
		return a & b;
	case MUSTER_BOR:
		return a | b;
	case MUSTER_BXOR:
		return a ^ b;
	case MUSTER_LAND:
		return a && b;
	case MUSTER_LOR:
		return a || b;
	case MUSTER_LXOR:
		return !a != !b;
	default:
		return a + b;
	}
}

/* Element i of what ranks [0, nr) give, combined, and the first of them that has it. */
static int64_t combined(const struct perf *perf, uint32_t nr, uint64_t i, uint32_t *first)
{
	int64_t value = simple_value(0, i);

	for (uint32_t rank = 1; rank < nr; rank++)
		value = combine(perf->options->op, value, simple_value(rank, i));
	for (*first = 0; *first + 1 < nr && simple_value(*first, i) != value;)
		++*first;
	return value;
}

/* Element i of this rank's result, and whose it is; count: of a block. */
static int64_t right_value(const struct perf *perf, enum perf_collective collective,
			   uint64_t count, uint64_t i, uint32_t *from)
{
	uint64_t mine = perf->rank * count, block = i / count;

	switch (collective) {
	case PERF_BROADCAST:
		*from = perf->options->root;
		return simple_value(*from, i);
	case PERF_SCATTER:
	case PERF_SCATTERV:
		*from = perf->options->root;
		return simple_value(*from, mine + i);
	case PERF_ALLGATHER:
	case PERF_ALLGATHERV:
	case PERF_GATHER:
	case PERF_GATHERV:
		*from = (uint32_t)block;
		return simple_value(*from, i % count);
	case PERF_ALLTOALL:
	case PERF_ALLTOALLV:
	case PERF_ALLTOALLW:
		*from = (uint32_t)block;
		return simple_value(*from, mine + i % count);
	case PERF_NEIGHBOUR_ALLGATHER:
	case PERF_NEIGHBOUR_ALLGATHERV:
		*from = perf_neighbour(perf, (uint32_t)block);
		return simple_value(*from, i % count);
	case PERF_NEIGHBOUR_ALLTOALL:
	case PERF_NEIGHBOUR_ALLTOALLV:
	case PERF_NEIGHBOUR_ALLTOALLW:
		*from = perf_neighbour(perf, (uint32_t)block);
		/* I am behind the one before me, unless both are the same. */
		block = perf->size > 2 ? !block : block;
		return simple_value(*from, block * count + i % count);
	case PERF_REDUCE_SCATTER_BLOCK:
	case PERF_REDUCE_SCATTER:
		return combined(perf, perf->size, mine + i, from);
	case PERF_SCAN:
		return combined(perf, perf->rank + 1, i, from);
	case PERF_EXSCAN:
		return combined(perf, perf->rank, i, from);
	default:
		return combined(perf, perf->size, i, from);
	}
}

bool perf_is_right(const struct perf *perf, enum perf_collective collective, const void *data,
		   uint64_t bytes)
{
	enum muster_type type = perf->options->type;
	size_t each = perf_type_bytes(type);
	uint64_t right[2], count = bytes / each;
	uint64_t blocks = perf_blocks(perf, perf_kinds[collective].out_blocks);
	uint32_t from;

	if (perf_kinds[collective].at_root && perf->rank != perf->options->root)
		return true;
	if (collective == PERF_EXSCAN && !perf->rank)
		return true;
	for (uint64_t i = 0; i < blocks * count; i++) {
		int64_t value = right_value(perf, collective, count, i, &from);

		put_whole(type, right, 0, value, from);
		if (memcmp((const char *)data + i * each, right, each))
			return false;
	}
	return true;
}
