/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The manager of aggregation groups: hosts connect to it, and it makes a group for those
 * that ask, at the switches of its own process (uapi/muster_manager.h).
 */
#ifndef MUSTER_SWITCH_MANAGER_H
#define MUSTER_SWITCH_MANAGER_H

#include "switch_box.h"

enum {
	SWITCH_MANAGER_GROUPS_MAX = 256,	/* of one job, unless it is set */
};

struct switch_manager_config {
	const struct muster_fabric *fabric;
	struct switch_box *boxes;	/* all its switches, by number */
	const char *address;		/* of its socket: @NAME, abstract, or a path */
	uint32_t groups_max;		/* of one job */
	uint32_t payload_max;		/* bytes of one packet of low-latency trees; 0: as usual */
	bool shared;			/* by jobs, which lock streaming trees */
};

struct switch_manager;

/** switch_manager_open() - listen. Return: 0; -errno. */
int switch_manager_open(const struct switch_manager_config *config,
			struct switch_manager **manager);
void switch_manager_close(struct switch_manager *manager);

/** switch_manager_fd() - readable when step() has something to do. */
int switch_manager_fd(const struct switch_manager *manager);
/** switch_manager_step() - hear each once. Return: whether anybody had something to say. */
bool switch_manager_step(struct switch_manager *manager);

#endif /* MUSTER_SWITCH_MANAGER_H */
