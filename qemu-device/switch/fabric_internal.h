/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of the fabric share: fabric.c is the network, fabric_discover.c how it is made of what switches
 * say, fabric_tree.c the trees on it.
 */
#ifndef MUSTER_FABRIC_INTERNAL_H
#define MUSTER_FABRIC_INTERNAL_H

#include "fabric.h"

#define UNREACHED	UINT32_MAX
#define NOBODY		UINT32_MAX

struct end {
	uint32_t node;		/* NOBODY: nothing, or a switch that is not to be used (muster_fabric_without()) */
	uint32_t port;		/* there */
};

struct muster_fabric {
	uint32_t nodes;
	uint32_t radix;
	uint32_t nr_hosts, nr_switches;
	bool *is_switch, *is_plain;	/* by node */
	uint32_t *number;		/* by node: which host or switch it is */
	uint32_t *hosts, *switches;	/* by that: the node */
	uint32_t *nr_ports;		/* by node: from 0 to the last that is in use */
	struct end *ends;		/* by node * radix + port */
};

/* One of so many nodes, without links. NULL: no memory. */
struct muster_fabric *fabric_new(uint32_t nodes, uint32_t radix);

/* Shortest ways from all nodes to one; of several the one by the lowest ports from there. */
struct ways {
	uint32_t *distance;	/* by node */
	uint32_t *back;		/* by node: the port by which it gets nearer */
};

/* 0; -ENOMEM. */
int ways_find(const struct muster_fabric *fabric, uint32_t start, struct ways *ways);
void ways_free(struct ways *ways);

/* The port by which a switch forwards what is for a node. 0; -ENOMEM. */
int fabric_way(const struct muster_fabric *fabric, uint32_t start, uint32_t node, uint32_t *port);

/* Writes the sentence; returns err. */
__attribute__((format(printf, 4, 5)))
int fabric_refuse(char *why, size_t why_len, int err, const char *format, ...);

#endif /* MUSTER_FABRIC_INTERNAL_H */
