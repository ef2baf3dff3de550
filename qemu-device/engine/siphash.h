/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * SipHash-1-3 of words, with the engine's key. Whoever opens a context chooses its addresses: with
 * this nobody can choose ones that collide.
 */
#ifndef MUSTER_ENGINE_SIPHASH_H
#define MUSTER_ENGINE_SIPHASH_H

#include <stdint.h>

static inline uint64_t rotate(uint64_t v, uint32_t bits)
{
	return v << bits | v >> (64 - bits);
}

static inline void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[0] = rotate(v[0], 32);
	v[2] += v[3];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[2] = rotate(v[2], 32);
}

static inline void sip_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	sip_round(v);
	v[0] ^= word;
}

static inline uint64_t sip_hash(const uint64_t key[2], uint64_t word)
{
	uint64_t v[4] = {
		key[0] ^ 0x736f6d6570736575ull, key[1] ^ 0x646f72616e646f6dull,
		key[0] ^ 0x6c7967656e657261ull, key[1] ^ 0x7465646279746573ull,
	};
	uint32_t i;

	sip_word(v, word);
	sip_word(v, (uint64_t)sizeof(word) << 56);
	v[2] ^= 0xff;
	for (i = 0; i < 3; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif /* MUSTER_ENGINE_SIPHASH_H */
