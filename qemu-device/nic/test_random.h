/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Random numbers of the tests that write garbage: the same of the same seed. */
#ifndef MUSTER_TEST_RANDOM_H
#define MUSTER_TEST_RANDOM_H

#include <stdint.h>

static uint64_t random_state;

/* xorshift64: any seed but 0. */
static inline uint32_t random32(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state >> 32;
}

#endif /* MUSTER_TEST_RANDOM_H */
