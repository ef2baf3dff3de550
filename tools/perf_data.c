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
};

#define TYPE(name, number, word, bytes, ...) { word, MUSTER_##name, bytes },
#define OP(name, number, word) { word, MUSTER_##name, 0 },

static const struct word types[] = { MUSTER_DTYPES(TYPE) { NULL, 0, 0 } };
static const struct word ops[] = { MUSTER_REDOPS(OP) { NULL, 0, 0 } };

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

static void put_float(enum muster_type type, void *data, uint64_t i, double value)
{
	if (type == MUSTER_F32)
		((float *)data)[i] = (float)value;
	else
		((double *)data)[i] = value;
}

static void put_integer(enum muster_type type, void *data, uint64_t i, uint64_t value)
{
	memcpy((char *)data + i * perf_type_bytes(type), &value, perf_type_bytes(type));
}

static bool is_float(enum muster_type type)
{
	return type == MUSTER_F32 || type == MUSTER_F64;
}

/* The splitmix64 step: 64 bits that look random, the same everywhere. */
static uint64_t mix(uint64_t value)
{
	value += 0x9e3779b97f4a7c15;
	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
	value = (value ^ value >> 27) * 0x94d049bb133111eb;
	return value ^ value >> 31;
}

void perf_fill(const struct perf *perf, void *data, uint64_t bytes)
{
	enum muster_type type = perf->options->type;

	for (uint64_t i = 0; i < bytes / perf_type_bytes(type); i++) {
		uint64_t bits = mix((uint64_t)perf->rank << 40 ^ i);

		if (is_float(type))
			put_float(type, data, i, ldexp((double)(int64_t)bits, (int)(bits & 31) - 80));
		else
			put_integer(type, data, i, bits);
	}
}

static int64_t simple_value(uint32_t rank, uint64_t i)
{
	return (int64_t)((rank * 7 + i) % 5);
}

void perf_fill_simple(const struct perf *perf, void *data, uint64_t bytes)
{
	enum muster_type type = perf->options->type;

	for (uint64_t i = 0; i < bytes / perf_type_bytes(type); i++) {
		int64_t value = simple_value(perf->rank, i);

		if (is_float(type))
			put_float(type, data, i, (double)value);
		else
			put_integer(type, data, i, (uint64_t)value);
	}
}

static int64_t combine(enum muster_op op, int64_t a, int64_t b)
{
	switch (op) {
	case MUSTER_MIN:
		return a < b ? a : b;
	case MUSTER_MAX:
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

/* Element i of what ranks [0, nr) give, combined. */
static int64_t combined(const struct perf *perf, uint32_t nr, uint64_t i)
{
	int64_t value = simple_value(0, i);

	for (uint32_t rank = 1; rank < nr; rank++)
		value = combine(perf->options->op, value, simple_value(rank, i));
	return value;
}

/* Element i of this rank's result; count: of a block. */
static int64_t right_value(const struct perf *perf, enum perf_collective collective,
			   uint64_t count, uint64_t i)
{
	uint64_t mine = perf->rank * count;

	switch (collective) {
	case PERF_BROADCAST:
		return simple_value(perf->options->root, i);
	case PERF_SCATTER:
		return simple_value(perf->options->root, mine + i);
	case PERF_ALLGATHER:
	case PERF_GATHER:
		return simple_value((uint32_t)(i / count), i % count);
	case PERF_ALLTOALL:
		return simple_value((uint32_t)(i / count), mine + i % count);
	case PERF_REDUCE_SCATTER:
		return combined(perf, perf->size, mine + i);
	case PERF_SCAN:
		return combined(perf, perf->rank + 1, i);
	case PERF_EXSCAN:
		return combined(perf, perf->rank, i);
	default:
		return combined(perf, perf->size, i);
	}
}

bool perf_is_right(const struct perf *perf, enum perf_collective collective, const void *data,
		   uint64_t bytes)
{
	enum muster_type type = perf->options->type;
	size_t each = perf_type_bytes(type);
	uint64_t right = 0, count = bytes / each;
	uint64_t blocks = perf_kinds[collective].out_blocks ? perf->size : 1;

	if (perf_kinds[collective].at_root && perf->rank != perf->options->root)
		return true;
	if (collective == PERF_EXSCAN && !perf->rank)
		return true;
	for (uint64_t i = 0; i < blocks * count; i++) {
		int64_t value = right_value(perf, collective, count, i);

		if (is_float(type))
			put_float(type, &right, 0, (double)value);
		else
			put_integer(type, &right, 0, (uint64_t)value);
		if (memcmp((const char *)data + i * each, &right, each))
			return false;
	}
	return true;
}
