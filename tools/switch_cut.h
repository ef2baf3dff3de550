/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Taking a link of a running network down, for muster-am: as if it were unplugged.
 */
#ifndef MUSTER_SWITCH_CUT_H
#define MUSTER_SWITCH_CUT_H

#include <stddef.h>
#include <stdint.h>

/**
 * switch_cut() - the link between two switches, by number, of the network whose manager is there. It stays
 * so until the network is started anew. Return: 0; -errno, and why.
 */
int switch_cut(const char *manager, uint32_t first, uint32_t second, char *why, size_t why_len);

#endif /* MUSTER_SWITCH_CUT_H */
