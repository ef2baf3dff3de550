/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A network of hosts and switches from a topology's name or file (Documentation/synthesis.md). */
#ifndef MUSTER_FABRIC_FILE_H
#define MUSTER_FABRIC_FILE_H

#include "fabric.h"

/**
 * muster_fabric_read() - nodes that are switches are the network's switches, all others hosts.
 * @radix: of the switches; 0: MUSTER_SWITCH_RADIX.
 * Return: 0; -errno, and why: in a file "line N: ..." wherever one line is wrong.
 */
int muster_fabric_read(const char *spec, uint32_t radix, struct muster_fabric **fabric, char *why,
		       size_t why_len);

/** muster_fabric_digest() - the same for networks with the same links at the same ports. */
uint64_t muster_fabric_digest(const struct muster_fabric *fabric);

#endif /* MUSTER_FABRIC_FILE_H */
