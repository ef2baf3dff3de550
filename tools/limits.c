// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Bare exchanges between two processes, to hold Muster against. There are two
 * slots for each side, used in turn: a side fills its next slot only after it has
 * seen the other's present one, so that the slot before that was read.
 */
#include "limits.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	LINE_BYTES = 128,	/* two cache lines: they are fetched in pairs */
	SPINS = 20000,
};

struct slot {
	_Alignas(LINE_BYTES) _Atomic uint64_t sequence;
	double values[LIMITS_EXCHANGE_MAX / sizeof(double)];
};

struct limits_shared {
	struct slot slots[2][2];	/* by side, by turn */
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

static struct slot *next_slot(struct limits *limits)
{
	return &limits->shared->slots[limits->self][++limits->sequence & 1];
}

static void publish(const struct limits *limits, struct slot *slot)
{
	atomic_store_explicit(&slot->sequence, limits->sequence, memory_order_release);
}

static const struct slot *wait_other(const struct limits *limits)
{
	const struct slot *slot = &limits->shared->slots[!limits->self][limits->sequence & 1];

	for (uint32_t spins = 1; atomic_load_explicit(&slot->sequence, memory_order_acquire) !=
	     limits->sequence; spins++) {
		if (spins % SPINS)
			pause_cpu();
		else
			sched_yield();
	}
	return slot;
}

void limit_barrier(struct limits *limits)
{
	publish(limits, next_slot(limits));
	wait_other(limits);
}

void limit_exchange(struct limits *limits, size_t bytes)
{
	struct slot *slot = next_slot(limits);
	const struct slot *other;

	for (size_t i = 0; i < bytes / sizeof(double); i++)
		slot->values[i] = limits->in[i];
	publish(limits, slot);
	other = wait_other(limits);
	for (size_t i = 0; i < bytes / sizeof(double); i++)
		limits->out[i] = limits->in[i] + other->values[i];
}

/* The widest vectors that this CPU has: a limit must not hang on the compiler's options. */
#if defined(__x86_64__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#if __has_attribute(optimize)
__attribute__((optimize("O3")))
#endif
static void add(double *restrict sum, const double *restrict a, const double *restrict b, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		sum[i] = a[i] + b[i];
}

/* Each adds all: meeting once more, to add halves and copy the other's, is never quicker. */
void limit_allreduce(struct limits *limits, size_t bytes)
{
	struct limits_shared *shared = limits->shared;

	limit_barrier(limits);
	add((void *)shared->out[limits->self], (void *)shared->in[0], (void *)shared->in[1],
	    bytes / sizeof(double));
	limit_barrier(limits);
}

void limit_copy(struct limits *limits, size_t bytes)
{
	memcpy(limits->out, limits->in, bytes);
	__asm__ volatile("" : : "r"(limits->out) : "memory"); /* the copies of a loop are all made */
}
