/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The limits of the machine: what two processes can do at best through shared
 * memory, with nothing of Muster between them. Each of the two, on a CPU of its
 * own, calls the same functions in the same order.
 */
#ifndef MUSTER_LIMITS_H
#define MUSTER_LIMITS_H

#include <stddef.h>
#include <stdint.h>

enum { LIMITS_BYTES_MAX = 8 << 20, LIMITS_EXCHANGE_MAX = 512 };

/* One side of the two, local to its process. */
struct limits {
	struct limits_shared *shared;
	uint32_t self;			/* 0 or 1 */
	uint64_t sequence;
	double *in;			/* own vectors in shared memory, LIMITS_BYTES_MAX each */
	double *out;
};

/** limits_create() - make the shared memory. Return: its file descriptor, or -errno. */
int limits_create(void);
/** limits_open() - map it as one of the two sides. fd may be closed then. Return: 0 or -errno. */
int limits_open(struct limits *limits, int fd, uint32_t self);
void limits_close(struct limits *limits);

/** limit_barrier() - tell the other by one line of memory, wait for its line. */
void limit_barrier(struct limits *limits);
/** limit_exchange() - the same with bytes, up to LIMITS_EXCHANGE_MAX, of in; out: the sums. */
void limit_exchange(struct limits *limits, size_t bytes);
/** limit_allreduce() - each adds both vectors. */
void limit_allreduce(struct limits *limits, size_t bytes);
/** limit_copy() - memcpy() from in to out. */
void limit_copy(struct limits *limits, size_t bytes);

#endif /* MUSTER_LIMITS_H */
