/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Calls to the driver as a hostile process makes them: commands of verbs, ioctls, maps, rings and
 * doorbells, each told by a kind and four numbers, so that a program of them is a list that
 * can be written down and made again. None goes through the provider, which is too polite.
 */
#ifndef GUEST_FUZZ_CALLS_H
#define GUEST_FUZZ_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { FUZZ_CALLS_MAX = 32, FUZZ_ARGS = 4 };

struct fuzz_call {
	uint8_t kind;
	uint32_t args[FUZZ_ARGS];	/* the last: 0, or what is bent about it */
};

struct fuzz_program {
	uint32_t nr;
	struct fuzz_call calls[FUZZ_CALLS_MAX];
};

/* Numbers that a seed gives; never 0 itself. */
uint64_t fuzz_random(uint64_t *state);

struct fuzz_call fuzz_call_new(uint64_t *state);
void fuzz_program_run(const struct fuzz_program *program);
void fuzz_program_print(const struct fuzz_program *program, FILE *to);
/* False: the file has no more. */
bool fuzz_program_read(struct fuzz_program *program, FILE *from);

#endif /* GUEST_FUZZ_CALLS_H */
