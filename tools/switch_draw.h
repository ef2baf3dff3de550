/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A picture of a network, for muster-switchd --draw. */
#ifndef MUSTER_SWITCH_DRAW_H
#define MUSTER_SWITCH_DRAW_H

#include "fabric.h"

/**
 * switch_draw() - write an SVG file: hosts, switches and links with the first two trees, and
 * the packets of one operation over time on a low-latency and on a streaming tree.
 * Return: 0; -errno, and why.
 */
int switch_draw(const struct muster_fabric *fabric, const char *name, const char *file, char *why,
		size_t why_len);

#endif /* MUSTER_SWITCH_DRAW_H */
