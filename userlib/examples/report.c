// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What all examples say and ask in the same way: errors, times, shares of the work, and one
 * number for all bits of a result, so that runs can be compared.
 */
#include "ranks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

double ranks_inside_us;
static double began_us, took_us, took_inside_us;

double ranks_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

void ranks_die(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

void *ranks_zeroed(size_t bytes)
{
	void *memory = calloc(1, bytes ? bytes : 1);

	if (!memory)
		ranks_die("no memory for %zu bytes", bytes);
	return memory;
}

uint64_t ranks_share(uint64_t nr, uint32_t rank)
{
	return nr / ranks_size * rank + nr % ranks_size * rank / ranks_size;
}

uint64_t ranks_part(uint64_t nr, uint32_t rank)
{
	return ranks_share(nr, rank + 1) - ranks_share(nr, rank);
}

uint64_t ranks_number(const char *text, uint64_t min, uint64_t max, const char *what)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || *text < '0' || *text > '9' || *end || value < min || value > max)
		ranks_die("%s is from %" PRIu64 " to %" PRIu64 ", not %s", what, min, max, text);
	return value;
}

/* splitmix64 */
uint64_t ranks_random(uint64_t place)
{
	uint64_t z = (place + 1) * 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

void ranks_go(void)
{
	ranks_inside_us = 0;
	began_us = ranks_now_us();
}

void ranks_stop(void)
{
	took_us = ranks_now_us() - began_us;
	took_inside_us = ranks_inside_us;
}

uint64_t ranks_digest(const void *result, size_t bytes)
{
	uint64_t hash = 0xcbf29ce484222325;	/* FNV-1a */

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ ((const uint8_t *)result)[i]) * 0x100000001b3;
	return hash;
}

/* What is more than this is waiting for others that are still computing. */
static double least_inside_us(void)
{
	double *all = ranks_zeroed(ranks_size * sizeof(*all)), least = took_inside_us;
	uint64_t *ones = ranks_zeroed(ranks_size * sizeof(*ones));

	all[ranks_rank] = took_inside_us;
	for (uint32_t rank = 0; rank < ranks_size; rank++)
		ones[rank] = 1;
	ranks_gather(all, ones, RANKS_F64);
	for (uint32_t rank = 0; rank < ranks_size; rank++)
		least = all[rank] < least ? all[rank] : least;
	free(all);
	free(ones);
	return least;
}

void ranks_report(const char *what, const void *result, size_t bytes)
{
	double least_us = least_inside_us();

	if (ranks_rank)
		return;
	printf("%s, %" PRIu32 " ranks, %s\n", what, ranks_size, ranks_library);
	printf("took %.4f s, %.4f s of it in collectives\n", took_us / 1e6, least_us / 1e6);
	printf("digest %016" PRIx64 "\n", ranks_digest(result, bytes));
}
