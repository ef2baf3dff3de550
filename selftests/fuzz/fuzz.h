/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What fuzzers share: the input as a stream of small numbers, of which a harness makes
 * things that are almost right. Behind its end there are zeros. One input is one run from the
 * beginning, in buffers that are small, so that many runs fit into a second.
 */
#ifndef MUSTER_FUZZ_H
#define MUSTER_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct fuzz {
	const uint8_t *data;
	size_t left;
};

static inline uint8_t fuzz_byte(struct fuzz *fuzz)
{
	if (!fuzz->left)
		return 0;
	fuzz->left--;
	return *fuzz->data++;
}

static inline uint32_t fuzz_word(struct fuzz *fuzz)
{
	uint32_t word = 0;

	for (int i = 0; i < 4; i++)
		word = word << 8 | fuzz_byte(fuzz);
	return word;
}

/* Up to three bytes of it become others. */
static inline void fuzz_change(struct fuzz *fuzz, void *data, size_t len)
{
	uint8_t *bytes = data;

	for (uint8_t nr = fuzz_byte(fuzz) % 4; nr; nr--) {
		size_t at = fuzz_byte(fuzz) % len;

		bytes[at] = fuzz_byte(fuzz);
	}
}

#endif /* MUSTER_FUZZ_H */
