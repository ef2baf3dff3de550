/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For a program that includes this: malloc() and its kin, counted by what was asked for. The C
 * library's own count has what it rounds, which follows from what was freed before, so two equal
 * states differ there. What was asked for stands before each piece of memory; the sanitizers have a
 * malloc() and a count of their own.
 */
#ifndef COUNTED_H
#define COUNTED_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#ifdef __has_feature
#define COUNTED_BY_SANITIZER __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define COUNTED_BY_SANITIZER 1
#else
#define COUNTED_BY_SANITIZER 0
#endif

#if COUNTED_BY_SANITIZER
size_t __sanitizer_get_current_allocated_bytes(void);
size_t __sanitizer_get_allocated_size(const volatile void *memory);

/* All bytes that the program has now; with what each piece takes besides; those of one. */
static inline size_t counted_all(void)
{
	return __sanitizer_get_current_allocated_bytes();
}

static inline size_t counted_cost(void)
{
	return counted_all();
}

static inline size_t counted_bytes(const void *memory)
{
	return memory ? __sanitizer_get_allocated_size(memory) : 0;
}
#else
void *__libc_memalign(size_t align, size_t bytes);
void *__libc_calloc(size_t nr, size_t bytes);
void __libc_free(void *base);

struct counted {
	size_t bytes;
	size_t offset;		/* of the memory behind the C library's, which begins before it */
};

/* Who inlines these takes what stands before for what is not there. */
#define COUNTED_APART __attribute__((noinline))

static size_t counted_now, counted_pieces;

static inline size_t counted_all(void)
{
	return __atomic_load_n(&counted_now, __ATOMIC_RELAXED);
}

/* A size, and what is left up to the next multiple of 16: 16 bytes on the average. */
static inline size_t counted_cost(void)
{
	return counted_all() + 16 * __atomic_load_n(&counted_pieces, __ATOMIC_RELAXED);
}

static const struct counted *counted_of(const void *memory)
{
	return (const struct counted *)memory - 1;
}

static inline size_t counted_bytes(const void *memory)
{
	return memory ? counted_of(memory)->bytes : 0;
}

static void *counted_put(char *base, size_t offset, size_t bytes)
{
	if (!base)
		return NULL;
	*((struct counted *)(base + offset) - 1) = (struct counted){ .bytes = bytes, .offset = offset };
	__atomic_add_fetch(&counted_now, bytes, __ATOMIC_RELAXED);
	__atomic_add_fetch(&counted_pieces, 1, __ATOMIC_RELAXED);
	return base + offset;
}

static void *counted_none(void)
{
	errno = ENOMEM;
	return NULL;
}

COUNTED_APART void *aligned_alloc(size_t align, size_t bytes)
{
	size_t offset = align < sizeof(struct counted) ? sizeof(struct counted) : align, all;

	if (__builtin_add_overflow(bytes, offset, &all))
		return counted_none();
	return counted_put(__libc_memalign(offset, all), offset, bytes);
}

COUNTED_APART int posix_memalign(void **memory, size_t align, size_t bytes)
{
	*memory = aligned_alloc(align, bytes);
	return *memory ? 0 : ENOMEM;
}

COUNTED_APART void *malloc(size_t bytes)
{
	return aligned_alloc(sizeof(struct counted), bytes);
}

/* Large memory comes zeroed from the system, and is not touched. */
COUNTED_APART void *calloc(size_t nr, size_t bytes)
{
	size_t all;

	if (__builtin_mul_overflow(nr, bytes, &bytes) ||
	    __builtin_add_overflow(bytes, sizeof(struct counted), &all))
		return counted_none();
	return counted_put(__libc_calloc(1, all), sizeof(struct counted), bytes);
}

COUNTED_APART void free(void *memory)
{
	if (!memory)
		return;
	__atomic_sub_fetch(&counted_now, counted_bytes(memory), __ATOMIC_RELAXED);
	__atomic_sub_fetch(&counted_pieces, 1, __ATOMIC_RELAXED);
	__libc_free((char *)memory - counted_of(memory)->offset);
}

COUNTED_APART void *realloc(void *old, size_t bytes)
{
	size_t had = counted_bytes(old);
	void *memory = malloc(bytes);

	if (!memory || !old)
		return memory;
	memcpy(memory, old, had < bytes ? had : bytes);
	free(old);
	return memory;
}
#endif

#endif /* COUNTED_H */
