// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Bare exchanges between two processes, to hold Muster against. There are two
 * lines for each side, used in turn: a side writes its next line only after it
 * has seen the other's present one, so that the line before that was read.
 */
#include "limits.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LINE_BYTES = 128, SPINS = 20000 };	/* two cache lines: they are fetched in pairs */

struct line {
	_Alignas(LINE_BYTES) _Atomic uint64_t sequence;
	double value;
};

struct limits_shared {
	struct line lines[2][2];	/* by side, by turn */
	_Alignas(4096) unsigned char in[2][LIMITS_BYTES_MAX];
	_Alignas(4096) unsigned char out[2][LIMITS_BYTES_MAX];
};

int limits_create(void)
{
	int fd = memfd_create("muster-limits", MFD_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, sizeof(struct limits_shared))) {
		ret = -errno;
		close(fd);
		return ret;
	}
	return fd;
}

int limits_open(struct limits *limits, int fd, uint32_t self)
{
	void *map = mmap(NULL, sizeof(struct limits_shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_POPULATE, fd, 0);

	if (map == MAP_FAILED)
		return -errno;
	*limits = (struct limits){ .shared = map, .self = self };
	limits->in = (void *)limits->shared->in[self];
	limits->out = (void *)limits->shared->out[self];
	for (size_t i = 0; i < LIMITS_BYTES_MAX / sizeof(double); i++)
		limits->in[i] = self + 1;
	return 0;
}

void limits_close(struct limits *limits)
{
	munmap(limits->shared, sizeof(*limits->shared));
}

static void pause_cpu(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static const struct line *wait_line(const struct limits *limits)
{
	const struct line *line = &limits->shared->lines[!limits->self][limits->sequence & 1];

	for (uint32_t spins = 1; atomic_load_explicit(&line->sequence, memory_order_acquire) !=
	     limits->sequence; spins++) {
		if (spins % SPINS)
			pause_cpu();
		else
			sched_yield();
	}
	return line;
}

double limit_exchange(struct limits *limits, double value)
{
	struct line *line = &limits->shared->lines[limits->self][++limits->sequence & 1];
	double other;

	line->value = value;
	atomic_store_explicit(&line->sequence, limits->sequence, memory_order_release);
	other = wait_line(limits)->value;
	return limits->self ? other + value : value + other;
}

void limit_barrier(struct limits *limits)
{
	struct line *line = &limits->shared->lines[limits->self][++limits->sequence & 1];

	atomic_store_explicit(&line->sequence, limits->sequence, memory_order_release);
	wait_line(limits);
}

/* The widest vectors that this CPU has: a limit must not hang on the compiler's options. */
#if defined(__x86_64__)
__attribute__((optimize("O3"), target_clones("avx512f", "avx2", "default")))
#endif
static void add(double *restrict sum, const double *restrict a, const double *restrict b, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		sum[i] = a[i] + b[i];
}

void limit_allreduce(struct limits *limits, size_t bytes)
{
	struct limits_shared *shared = limits->shared;
	size_t half = bytes / 2 / sizeof(double) * sizeof(double);
	size_t mine = limits->self ? half : 0, other = half - mine;
	size_t mine_bytes = limits->self ? bytes - half : half;

	limit_barrier(limits);
	add((void *)(shared->out[limits->self] + mine), (void *)(shared->in[0] + mine),
	    (void *)(shared->in[1] + mine), mine_bytes / sizeof(double));
	limit_barrier(limits);
	memcpy(shared->out[limits->self] + other, shared->out[!limits->self] + other,
	       bytes - mine_bytes);
	limit_barrier(limits);
}

void limit_copy(struct limits *limits, size_t bytes)
{
	memcpy(limits->out, limits->in, bytes);
	__asm__ volatile("" : : "r"(limits->out) : "memory"); /* the copies of a loop are all made */
}
