/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * CRC32C (Castagnoli): the checksum of frames. Pure; uses the processor's own
 * instruction where it has one.
 */
#ifndef MUSTER_CRC32C_H
#define MUSTER_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/**
 * muster_crc32c() - continue a checksum over more bytes.
 * @crc: what the call for the bytes before returned; 0 at the beginning.
 */
uint32_t muster_crc32c(uint32_t crc, const void *data, size_t len);

#endif /* MUSTER_CRC32C_H */
