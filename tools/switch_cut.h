/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Taking a link of a running network down, for muster-switchd: as if it were unplugged.
 */
#ifndef MUSTER_SWITCH_CUT_H
#define MUSTER_SWITCH_CUT_H

#include <stddef.h>
#include <stdint.h>

#include "muster_manager.h"
#include "switch_manager.h"

/**
 * switch_cut() - the link between two switches, by number, of the network whose manager is there. It stays
 * so until the network is started anew. Return: 0; -errno, and why.
 */
int switch_cut(const char *manager, uint32_t first, uint32_t second, char *why, size_t why_len);

/**
 * switch_cut_take() - what the manager does when it is asked that.
 * @ends: at least two, whatever head says of them.
 * Return: 0; -errno, and why.
 */
int switch_cut_take(const struct switch_manager_config *config,
		    const struct muster_manager_message *head,
		    const struct muster_manager_member *ends, char why[MUSTER_MANAGER_WHY_MAX]);

#endif /* MUSTER_SWITCH_CUT_H */
