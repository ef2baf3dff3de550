// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the arithmetic costs, all by itself: every type and operation, a reduction of
 * eight sources beside the memory traffic of memcpy, and exact sums beside plain ones.
 * Times are the processor's, the least of many rounds.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arith.h"
#include "exact.h"

enum {
	BYTES = 1 << 20,
	ROUNDS = 100,
	SOURCES = 8,
	SOURCE_BYTES = 16 << 20,
	PULSE = MUSTER_PULSE_MAX,
	NUMBERS = BYTES / 8,
	LIMBS = 8,		/* that there is memory for */
};

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

#define LEAST(least, ...)                                                                        \
	do {                                                                                     \
		double began_ = now_us(), us_;                                                   \
		__VA_ARGS__;                                                                     \
		us_ = now_us() - began_;                                                         \
		if (!(least) || us_ < (least))                                                   \
			(least) = us_;                                                           \
	} while (0)

static void *memory(size_t bytes)
{
	void *p = aligned_alloc(4096, bytes);

	if (!p)
		exit(1);
	memset(p, 0, bytes);
	return p;
}

static uint64_t seed = 1;

static uint64_t next_random(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return seed >> 17 ^ seed << 40;
}

/* Reals of 16, 32 and 64 bits in it are normal, or nearly all. */
static void fill(void *at)
{
	uint64_t *words = at;

	for (size_t i = 0; i < BYTES / 8; i++)
		words[i] = (next_random() & 0x8fff8fff8fff8fff) | 0x3000300030003000;
}

static void every_pair(void)
{
	static const char *const types[] = {
#define NAME(name, number, word, ...) [number] = word,
		"", MUSTER_DTYPES(NAME)
	}, *const ops[] = { "", MUSTER_REDOPS(NAME) };
	void *a = memory(BYTES), *b = memory(BYTES), *to = memory(BYTES);

	fill(a);
	fill(b);
	printf("# GB/s of results, 1 MiB\n#         ");
	for (uint8_t op = 1; op <= MUSTER_REDOP_LAST; op++)
		printf("%8s", ops[op]);
	for (uint8_t type = 1; type <= MUSTER_DTYPE_LAST; type++) {
		printf("\n  %-8s", types[type]);
		for (uint8_t op = 1; op <= MUSTER_REDOP_LAST; op++) {
			double us = 0;

			for (int i = 0; i < ROUNDS && muster_arith_supported(type, op); i++)
				LEAST(us, muster_arith(type, op, to, a, b, BYTES));
			if (us)
				printf("%8.1f", BYTES / us / 1e3);
			else
				printf("%8s", "");
		}
	}
	free(a);
	free(b);
	free(to);
}

/* A pulse at a time, as they come: the result stays in the cache, sources come from memory. */
static void reduce(char *to, char *const *sources)
{
	for (size_t at = 0; at < SOURCE_BYTES; at += PULSE)
		for (int s = 1; s < SOURCES; s++)
			muster_arith(MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, to + at,
				     s == 1 ? sources[0] + at : to + at, sources[s] + at, PULSE);
}

/* All at once, as the engine and the switch do when they are there. */
static void reduce_rows(char *to, char *const *sources)
{
	const uint8_t *from[SOURCES];

	for (size_t at = 0; at < SOURCE_BYTES; at += PULSE) {
		for (int s = 0; s < SOURCES; s++)
			from[s] = (const uint8_t *)sources[s] + at;
		muster_arith_rows(MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, to + at, from, SOURCES,
				  SOURCES, PULSE);
	}
}

static void print_sum(const char *how, double us, double copied)
{
	double rate = (SOURCES + 1.0) * SOURCE_BYTES / us / 1e3;

	printf("#   sum of %d sources of f64, %-24s %.1f GB/s: %.0f %%\n", SOURCES, how, rate,
	       100 * rate / copied);
}

/*
 * What memcpy moves is read and written; a sum reads each source and writes its result. Each time
 * to another place, as what is always written to the same one stays in a large cache.
 */
static void eight_sources(void)
{
	double copied = 0, reduced = 0, together = 0, traffic = 2.0 * SOURCE_BYTES;
	char *sources[SOURCES], *results[SOURCES];

	for (int s = 0; s < SOURCES; s++) {
		sources[s] = memory(SOURCE_BYTES);
		results[s] = memory(SOURCE_BYTES);
	}
	for (int i = 0; i < ROUNDS / 5; i++) {
		char *to = results[i % SOURCES];

		LEAST(copied, memcpy(to, sources[i % SOURCES], SOURCE_BYTES));
		LEAST(reduced, reduce(to, sources));
		LEAST(together, reduce_rows(to, sources));
	}
	copied = traffic / copied / 1e3;
	printf("\n\n# traffic with memory, %d MiB: memcpy %.1f GB/s, as bytes read and written\n",
	       SOURCE_BYTES >> 20, copied);
	print_sum("one after the other", reduced, copied);
	print_sum("side by side", together, copied);
	for (int s = 0; s < SOURCES; s++) {
		free(sources[s]);
		free(results[s]);
	}
}

static void exact_row(const char *name, uint8_t type, const void *numbers, void *result,
		      int64_t *limbs, int64_t *others)
{
	size_t nr = BYTES / muster_dtype_size(type), bytes;
	double plain = 0, look = 0, encode = 0, sum = 0, round = 0;
	struct muster_exact exact;

	for (int i = 0; i < ROUNDS; i++) {
		struct muster_exact_span span = MUSTER_EXACT_NOTHING;

		LEAST(plain, muster_arith(type, MUSTER_REDOP_SUM, result, numbers, others, BYTES));
		LEAST(look, muster_exact_span_of(type, numbers, nr, &span));
		muster_exact_plan(&span, 8, &exact);
		bytes = muster_exact_planes(&exact) * nr * sizeof(*limbs);
		if (bytes > LIMBS * BYTES)
			return;
		LEAST(encode, muster_exact_encode(&exact, type, numbers, nr, limbs));
		LEAST(sum, muster_arith(MUSTER_DTYPE_I64, MUSTER_REDOP_SUM, limbs, limbs, others,
					bytes));
		LEAST(round, muster_exact_round(&exact, type, limbs, nr, result));
	}
	printf("  %-28s %5u %8.0f %8.0f %8.0f %8.0f %8.0f %8.1f\n", name,
	       muster_exact_planes(&exact), plain, look, encode, sum, round,
	       (look + encode + sum + round) / plain);
}

static void exact_sums(void)
{
	double *numbers = memory(BYTES), *result = memory(BYTES);
	int64_t *limbs = memory(LIMBS * BYTES), *others = memory(LIMBS * BYTES);
	float *singles = (float *)numbers;

	printf("\n# exact sums of 1 MiB, 8 ranks: microseconds of each part, and all over a plain sum\n");
	printf("# %-28s %5s %8s %8s %8s %8s %8s %8s\n", "numbers", "limbs", "plain", "look",
	       "encode", "sum", "round", "ratio");
	for (size_t i = 0; i < NUMBERS; i++)
		numbers[i] = (double)(int64_t)(next_random() << 11 >> 11) * 0x1p-52;
	exact_row("f64, fractions of 2^-52", MUSTER_DTYPE_F64, numbers, result, limbs, others);
	for (size_t i = 0; i < NUMBERS; i++)
		numbers[i] = (double)(int64_t)next_random() * 0x1p-63;
	exact_row("f64, evenly in (-1, 1)", MUSTER_DTYPE_F64, numbers, result, limbs, others);
	for (size_t i = 0; i < NUMBERS; i++)
		numbers[i] = (double)(int64_t)next_random() * (i % 2 ? 0x1p-63 : 0x1p-123);
	exact_row("f64, down to 2^-60 of that", MUSTER_DTYPE_F64, numbers, result, limbs, others);
	for (size_t i = 0; i < BYTES / sizeof(*singles); i++)
		singles[i] = (float)(int64_t)next_random() * 0x1p-63f;
	exact_row("f32, evenly in (-1, 1)", MUSTER_DTYPE_F32, singles, result, limbs, others);
	free(numbers);
	free(result);
	free(limbs);
	free(others);
}

int main(void)
{
	every_pair();
	eight_sources();
	exact_sums();
	return 0;
}
