// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sorts keys that are spread over all ranks, by samples: each rank sorts its own, all gather
 * some of everyone's and take from these where the ranges of ranks begin, everyone is
 * told how much comes from whom, keys go where they belong in one exchange, and are merged.
 *
 * usage: keysort [KEYS [TIMES]] [check]     KEYS: of all ranks; check: rank 0 sorts them alone, too
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

enum { SAMPLES = 64, DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS };

/* Of all ranks; each rank's own: keys as they are, sorted, and of its range. */
struct sorter {
	uint64_t nr;
	uint64_t *own, *spare;		/* from ranks_alloc(), with room for all that may come */
	uint64_t *samples;		/* of all ranks; then the ranges' first keys */
	uint64_t *each;			/* by rank: how many samples; later: where blocks end */
	uint64_t *out_counts, *in_counts, *ones;
};

/* ---- one rank ---------------------------------------------------------------------- */

/* By the last digit, by the one before, and so on: the result is in keys again. */
static void radix_sort(uint64_t *keys, uint64_t *spare, uint64_t nr)
{
	for (unsigned int shift = 0; shift < 64; shift += DIGIT_BITS) {
		uint64_t places[DIGITS] = { 0 }, at = 0, *swapped = keys;

		for (uint64_t i = 0; i < nr; i++)
			places[keys[i] >> shift & (DIGITS - 1)]++;
		for (int digit = 0; digit < DIGITS; digit++) {
			uint64_t length = places[digit];

			places[digit] = at;
			at += length;
		}
		for (uint64_t i = 0; i < nr; i++)
			spare[places[keys[i] >> shift & (DIGITS - 1)]++] = keys[i];
		keys = spare;
		spare = swapped;
	}
}

/* Return: the first of them that is not below key. */
static uint64_t first_not_below(const uint64_t *keys, uint64_t nr, uint64_t key)
{
	uint64_t low = 0;

	while (low < nr) {
		uint64_t middle = low + (nr - low) / 2;

		if (keys[middle] < key)
			low = middle + 1;
		else
			nr = middle;
	}
	return low;
}

/* Sorted blocks, one behind the other, two by two, into sorted ones; ends: of blocks. */
static uint64_t *merge(uint64_t *from, uint64_t *to, uint64_t *ends, uint32_t blocks)
{
	while (blocks > 1) {
		uint64_t at = 0, *swapped = from;

		for (uint32_t block = 0; block < blocks; block += 2) {
			uint64_t middle = ends[block], a = at, b = middle;
			uint64_t end = block + 1 < blocks ? ends[block + 1] : middle;

			for (; at < end; at++)
				to[at] = b == end || (a < middle && from[a] <= from[b]) ?
					 from[a++] : from[b++];
			ends[block / 2] = end;
		}
		blocks = (blocks + 1) / 2;
		from = to;
		to = swapped;
	}
	return from;
}

/* ---- all ranks ---------------------------------------------------------------------- */

/* Samples at equal distances; of these of all ranks, again at equal distances, the ranges. */
static void choose_ranges(struct sorter *sorter, uint64_t own)
{
	uint64_t *mine = sorter->samples + (uint64_t)SAMPLES * ranks_rank;

	for (uint32_t i = 0; i < SAMPLES; i++)
		mine[i] = own ? sorter->own[own * i / SAMPLES] : UINT64_MAX;
	for (uint32_t rank = 0; rank < ranks_size; rank++)
		sorter->each[rank] = SAMPLES;
	ranks_gather(sorter->samples, sorter->each, RANKS_U64);
	radix_sort(sorter->samples, sorter->samples + (uint64_t)SAMPLES * ranks_size,
		   (uint64_t)SAMPLES * ranks_size);
	for (uint32_t rank = 0; rank < ranks_size; rank++)
		sorter->samples[rank] = rank ? sorter->samples[(uint64_t)SAMPLES * rank] : 0;
}

/* Return: how many keys this rank has in the end, sorted, at *sorted. */
static uint64_t sort(struct sorter *sorter, uint64_t own, uint64_t **sorted)
{
	uint64_t before = 0, nr = 0;

	radix_sort(sorter->own, sorter->spare, own);
	choose_ranges(sorter, own);
	for (uint32_t rank = 0; rank < ranks_size; rank++) {
		uint64_t end = rank + 1 == ranks_size ? own :
			       first_not_below(sorter->own, own, sorter->samples[rank + 1]);

		sorter->out_counts[rank] = end - before;
		before = end;
		sorter->ones[rank] = 1;
	}
	ranks_exchange(sorter->out_counts, sorter->ones, sorter->in_counts, sorter->ones, RANKS_U64);
	for (uint32_t rank = 0; rank < ranks_size; rank++)
		sorter->each[rank] = nr += sorter->in_counts[rank];
	ranks_exchange(sorter->own, sorter->out_counts, sorter->spare, sorter->in_counts, RANKS_U64);
	*sorted = merge(sorter->spare, sorter->own, sorter->each, ranks_size);
	return nr;
}

static void fill(uint64_t *keys, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++)
		*keys++ = ranks_random(i);
}

static void open_sorter(struct sorter *sorter, uint64_t nr)
{
	*sorter = (struct sorter){
		.nr = nr,
		.own = ranks_alloc((nr + 1) * sizeof(uint64_t)),
		.spare = ranks_alloc((nr + 1) * sizeof(uint64_t)),
		.samples = ranks_alloc(2 * SAMPLES * ranks_size * sizeof(uint64_t)),
		.each = ranks_alloc(ranks_size * sizeof(uint64_t)),
		.out_counts = ranks_alloc(ranks_size * sizeof(uint64_t)),
		.in_counts = ranks_alloc(ranks_size * sizeof(uint64_t)),
		.ones = ranks_alloc(ranks_size * sizeof(uint64_t)),
	};
}

/* All keys on every rank, in the order of ranks. */
static void collect(struct sorter *sorter, const uint64_t *sorted, uint64_t nr, uint64_t *all)
{
	uint64_t at = 0;

	sorter->in_counts[ranks_rank] = nr;
	ranks_gather(sorter->in_counts, sorter->ones, RANKS_U64);
	for (uint32_t rank = 0; rank < ranks_rank; rank++)
		at += sorter->in_counts[rank];
	memcpy(all + at, sorted, nr * sizeof(*all));
	ranks_gather(all, sorter->in_counts, RANKS_U64);
}

static int by_value(const void *a_in, const void *b_in)
{
	const uint64_t *a = a_in, *b = b_in;

	return (*a > *b) - (*a < *b);
}

static void check(const uint64_t *all, uint64_t nr)
{
	uint64_t *alone = ranks_zeroed(nr * sizeof(*alone));

	fill(alone, 0, nr);
	qsort(alone, nr, sizeof(*alone), by_value);
	if (memcmp(alone, all, nr * sizeof(*alone)))
		ranks_die("the keys are not sorted");
	printf("the same as sorted by one rank\n");
	free(alone);
}

int main(int argc, char **argv)
{
	bool checks = argc > 1 && !strcmp(argv[argc - 1], "check");
	uint64_t nr, times, first, done = 0, own, *sorted, *all;
	struct sorter sorter;
	char what[64];

	argc -= checks;
	nr = argc > 1 ? ranks_number(argv[1], 0, UINT64_C(1) << 32, "KEYS") : 4 << 20;
	times = argc > 2 ? ranks_number(argv[2], 1, 1000000, "TIMES") : 1;
	ranks_begin();
	open_sorter(&sorter, nr);
	all = ranks_alloc((nr + 1) * sizeof(*all));
	first = ranks_share(nr, ranks_rank);
	ranks_go();
	do {
		fill(sorter.own, first, ranks_share(nr, ranks_rank + 1));
		own = sort(&sorter, ranks_part(nr, ranks_rank), &sorted);
	} while (++done < times);
	ranks_stop();
	collect(&sorter, sorted, own, all);
	snprintf(what, sizeof(what), "sort: %" PRIu64 " keys, %" PRIu64 " times", nr, times);
	ranks_report(what, all, nr * sizeof(*all));
	if (checks && !ranks_rank)
		check(all, nr);
	ranks_end();
	return 0;
}
