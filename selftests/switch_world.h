/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Hosts with a NIC each at a network of switches, in modelled time: engines and switches are as
 * they are, links and what is at their ends cost what the table says. For switch_model.c.
 */
#ifndef MUSTER_SELFTESTS_SWITCH_WORLD_H
#define MUSTER_SELFTESTS_SWITCH_WORLD_H

#include "schedule.h"
#include "switch.h"

enum { NET_HOSTS_MAX = 64 };

/* What a network costs; NICs and hosts as in engine_world.h. Two leaf switches are link_ns apart. */
struct net_costs {
	double hop_ns;		/* a link, and what is behind it until it sends on; packets stream */
	double llt_ns;		/* of an aggregation node, for each packet of a low-latency tree */
	double sat_ns;		/* of a streaming one, until a packet is through its half ring */
};

extern const struct net_costs net_costs;

enum net_how {
	NET_LLT,		/* an allreduce of doubles by that tree; of 0 bytes: a barrier */
	NET_SAT,		/* the same by streaming, on a tree that is the job's own */
	NET_LOCK,		/* a lock of that tree, and nothing else */
	NET_NIC,		/* a collective by a schedule, from NIC to NIC */
};

struct net_case {
	uint32_t leaves, each;	/* switches below one spine, and hosts at each; one: no spine */
	uint32_t radix;		/* 0: MUSTER_SWITCH_RADIX */
	uint32_t segments;	/* of the streaming tree's group; 0: MUSTER_SWITCH_SEGMENTS */
	bool halves;		/* at one switch: half of them at the ports of each half ring */
	enum net_how how;
	enum muster_coll coll;	/* of NET_NIC, by the schedule that suits it */
	bool two_alone;		/* of the first host and the last one only */
	uint64_t bytes;
	double skew_ns;		/* from the first host's start to the last one's, evenly */
};

struct net_result {
	double us;		/* from the last one's start to the last one's finish */
	uint64_t out, in;	/* bytes of data of a host, the most of any */
	uint64_t held;		/* bytes of memory that a switch had at a time, the most of any */
	bool right;		/* all results are, and all came */
};

/* 0; or -errno and a word on standard error. */
int net_run(const struct net_case *what, struct net_result *result);

#endif /* MUSTER_SELFTESTS_SWITCH_WORLD_H */
