/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The local device: engine and wire in the caller's process, for ranks of one
 * host. No VM, no root, nothing left behind. It advances only inside calls.
 */
#ifndef MUSTER_LOCAL_H
#define MUSTER_LOCAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "muster.h"

struct muster_dev;

struct muster_local_config {
	const char *wire;	/* "ring", "unix", "udp" or "switch" */
	const char *fabric;	/* "switch": the wire of the switches, */
	uint32_t uplink;	/* the node of this rank's own, */
	uint32_t uplink_life;	/* and which life of it; */
	uint32_t first_host;	/* the network's host that rank 0 is */
	uint32_t rail;		/* which of the rank's devices it is, */
	bool alone;		/* other ranks have other devices: it meets nobody, and switches say who is lost */
	/* how long the others may take to open theirs; to take what was sent to them last */
	uint64_t deadline_us;
	const char *engine;	/* as muster_model_read() has it; NULL: as it is */
	const char *dump;	/* folder for files of the packets that are sent; NULL: none */
};

/**
 * muster_local_open() - meet the other ranks of the host; collective, unless it is alone.
 *
 * Calls oob->allgather as often as all others, unless no rank does because of the arguments
 * or one lacks memory. @why gets the sentence of a failure. Return: 0; -EINVAL; -ETIMEDOUT;
 * or what the system said.
 */
int muster_local_open(const struct muster_oob *oob, const struct muster_local_config *config,
		      struct muster_dev **dev, char *why, size_t why_len);

#endif /* MUSTER_LOCAL_H */
