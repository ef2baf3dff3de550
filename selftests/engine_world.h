/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The Tianhe paper's machine in modelled time: 32 nodes with an engine each, as it is, links and
 * a host bus between them that cost what the table says; and the same schedule run by their hosts,
 * by the paper's formulas (section 2.2). For engine_bench.c.
 */
#ifndef MUSTER_SELFTESTS_ENGINE_WORLD_H
#define MUSTER_SELFTESTS_ENGINE_WORLD_H

#include "engine.h"
#include "schedule.h"

enum {
	WORLD_NODES = 32,
	WORLD_TASKS_MAX = 32,
};

/* What things cost. The paper gives no figures of its machine; these are its order. */
struct world_costs {
	double link_bytes_ns, bus_bytes_ns;	/* of a node, each way */
	double sum_bytes_ns, host_sum_bytes_ns;	/* of a unit; of a host's process */
	double link_ns;				/* L_network: from NIC to NIC */
	double bus_ns;				/* L_I/O: across the host bus, once */
	double packet_ns;			/* of a unit, for a packet or descriptor */
	double cpu_ns;				/* L_CPU: to build a descriptor */
	double poll_ns;				/* L_Poll: until a process sees what has come */
};

extern const struct world_costs world_costs;

struct world_case {
	enum muster_coll coll;
	const char *algorithm;
	uint64_t bytes;
	uint32_t tasks;				/* at once, a process on each node */
	uint32_t idle;				/* tasks that are there besides, and do nothing */
	bool partitions;			/* each task, idle or not, has its fixed part of the buffers */
	struct muster_engine_model model;	/* 0: as the paper's, 8 units with 512 KiB each */
	bool one_tree;				/* of a double tree: the first, for the whole message */
	bool whole;				/* a rank sends on what it has wholly received; */
	bool pulses;				/* or a pulse that it has; else each fragment */
};

struct world_result {
	double us, host_us;			/* from the common start to the last finish */
	uint64_t packets, dropped;
	double occupancy;			/* of a unit's buffer, the most of any */
	bool exact;				/* all results have the schedule's bits */
};

/* 0; or -errno and a word on standard error. */
int world_run(const struct world_case *what, struct world_result *result);
/* Of the hosts alone: when the last has finished, in us. */
double world_host_us(const struct muster_schedule *schedule, const struct world_case *what);

#endif /* MUSTER_SELFTESTS_ENGINE_WORLD_H */
