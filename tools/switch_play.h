/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* One operation on a reduction tree, played by real switches on links that take one unit of time each. */
#ifndef MUSTER_SWITCH_PLAY_H
#define MUSTER_SWITCH_PLAY_H

#include "fabric.h"

/* A packet on a link. */
struct switch_play_packet {
	uint32_t from, to;	/* NodeIDs of its ends */
	uint32_t at;		/* it arrives then; it was sent one unit before */
	uint8_t type;		/* enum muster_packet_type */
	bool once;
};

struct switch_play {
	uint32_t nr;
	struct switch_play_packet *packets;	/* from malloc */
	uint32_t end;				/* when the last one arrives */
};

/**
 * switch_play() - an allreduce of all hosts on the network's first tree.
 * @type: enum muster_switch_tree_type. @pulses: of each host, one a unit of time from 0, at
 * most MUSTER_PULSES_LIVE.
 * Return: 0; -errno, and why.
 */
int switch_play(const struct muster_fabric *fabric, uint8_t type, uint32_t pulses,
		struct switch_play *play, char *why, size_t why_len);

#endif /* MUSTER_SWITCH_PLAY_H */
