/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the examples need of a library of collectives, so that each of them is one source for
 * two: Muster (ranks.c), or an MPI (mpi/ranks.c). A function here is one call there, and the
 * time in it is counted. A call that fails ends the program with a sentence.
 */
#ifndef RANKS_H
#define RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ranks_type {
	RANKS_BYTE,
	RANKS_F32,
	RANKS_F64,
	RANKS_U64,
};

extern const char *const ranks_library;
extern uint32_t ranks_rank, ranks_size;

void ranks_begin(void);
void ranks_end(void);

/** ranks_alloc() - zeroed memory for messages, from the library; it goes with ranks_end(). */
void *ranks_alloc(size_t bytes);

void ranks_broadcast(void *data, uint64_t count, enum ranks_type type, uint32_t root);
/** ranks_sum() - over all ranks, in place. */
void ranks_sum(void *values, uint64_t count, enum ranks_type type);
/** ranks_gather() - rank r's counts[r] elements are in their place in all; then everybody's are. */
void ranks_gather(void *all, const uint64_t *counts, enum ranks_type type);
/** ranks_exchange() - block j of rank i's in to block i of rank j's out; one behind the other. */
void ranks_exchange(const void *in, const uint64_t *in_counts, void *out,
		    const uint64_t *out_counts, enum ranks_type type);

/** ranks_by_host() - sums go by the processors from now on. False: the library has no other way. */
bool ranks_by_host(void);

/* What the library says of how it did the last call. */
struct ranks_told {
	const char *path;
	char why[160], schedule[32];
};

void ranks_last(struct ranks_told *told);

/* A sum that is under way while the program goes on computing. */
struct ranks_request;

/** ranks_prepare() - for a sum, in place, that is started again and again. */
struct ranks_request *ranks_prepare(void *values, uint64_t count, enum ranks_type type);
void ranks_start(struct ranks_request *request);
void ranks_wait(struct ranks_request *request);
void ranks_free(struct ranks_request *request);

/* ---- report.c: what has to do with no library ---------------------------------- */

double ranks_now_us(void);
/** ranks_die() - say what is wrong, with the program's name, and exit with 1. */
void ranks_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/** ranks_zeroed() - memory of the program's own, for free(). */
void *ranks_zeroed(size_t bytes);
/** ranks_share() - where the share of a rank begins, of nr things; of ranks_size: nr. */
uint64_t ranks_share(uint64_t nr, uint32_t rank);
/** ranks_part() - how many there are in it. */
uint64_t ranks_part(uint64_t nr, uint32_t rank);
/** ranks_number() - an argument that is a number from min to max, or else no program. */
uint64_t ranks_number(const char *text, uint64_t min, uint64_t max, const char *what);
/** ranks_random() - the number that stands at a place in a fixed random sequence: anyone's. */
uint64_t ranks_random(uint64_t place);

/** ranks_digest() - one number for all bits: runs elsewhere can be compared with this one. */
uint64_t ranks_digest(const void *result, size_t bytes);

/* Time from ranks_go() to ranks_stop(); that in collectives is a part of it. */
extern double ranks_inside_us;
void ranks_go(void);
void ranks_stop(void);
/**
 * ranks_report() - all ranks; 0 prints its time, the least that any rank was in collectives, and
 * the digest of the result.
 */
void ranks_report(const char *what, const void *result, size_t bytes);

#endif /* RANKS_H */
