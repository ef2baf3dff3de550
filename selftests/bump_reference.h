/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What bumps must compute, bit for bit: bump_reference.c. */
#ifndef MUSTER_BUMP_REFERENCE_H
#define MUSTER_BUMP_REFERENCE_H

#include <stdint.h>

#include "muster_bump.h"

/* An element as its bits; what two of them make, plainly, without the shared arithmetic. */
uint64_t bump_combine(uint8_t type, uint8_t redop, uint64_t a, uint64_t b);

/**
 * bump_reference() - one element of every host's result.
 * @own: what each host has, of its own ranks.
 * @before: scan: what the hosts before each one have; [0] is not set.
 * Return: what all have.
 */
uint64_t bump_reference(uint8_t algorithm, uint8_t type, uint8_t redop, uint32_t hosts,
			const uint64_t *own, uint64_t *before);

#endif /* MUSTER_BUMP_REFERENCE_H */
