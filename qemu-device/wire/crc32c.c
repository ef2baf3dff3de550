// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * CRC32C, reflected, polynomial 0x1edc6f41. A table for half bytes keeps the
 * portable way small; x86 processors since 2008 take eight bytes at a time.
 */
#include "crc32c.h"

#include <string.h>

static const uint32_t half_byte[16] = {
	0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
	0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
	0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
	0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

static uint32_t portable(uint32_t crc, const uint8_t *p, size_t len)
{
	while (len--) {
		crc ^= *p++;
		crc = crc >> 4 ^ half_byte[crc & 15];
		crc = crc >> 4 ^ half_byte[crc & 15];
	}
	return crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2")))
static uint32_t instruction(uint32_t crc, const uint8_t *p, size_t len)
{
	uint64_t wide = crc, word;

	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&word, p, 8);
		wide = __builtin_ia32_crc32di(wide, word);
	}
	crc = wide;
	while (len--)
		crc = __builtin_ia32_crc32qi(crc, *p++);
	return crc;
}
#endif

uint32_t muster_crc32c(uint32_t crc, const void *data, size_t len)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("sse4.2"))
		return ~instruction(~crc, data, len);
#endif
	return ~portable(~crc, data, len);
}
