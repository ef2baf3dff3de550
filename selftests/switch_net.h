/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a network in modelled time consists of: switch_build.c makes it, switch_world.c runs it.
 */
#ifndef MUSTER_SELFTESTS_SWITCH_NET_H
#define MUSTER_SELFTESTS_SWITCH_NET_H

#include "dev.h"
#include "engine.h"
#include "fabric.h"
#include "switch_world.h"
#include "timeline.h"

enum {
	JOB = 1, CONTEXT = 1, VP = 0, LIFE = 1, TREE = 2, GROUP = 1, KEY = 77,
	KEY_IN = MUSTER_SPACE_IN, KEY_OUT = MUSTER_SPACE_OUT, SPACES = MUSTER_SPACE_SCRATCH,
};

struct net;

struct host {
	struct net *net;
	uint32_t number, member;
	struct muster_engine *engine;	/* NULL: it takes no part */
	uint8_t *space[SPACES];		/* of schedules: none is the input's */
	bool brings_out;		/* what it brings is where results are: a broadcast is in place */
	struct muster_program *program;
	uint32_t stage;
	double up_ns, bus_ns, unit_ns;	/* until then link, bus and NIC are busy */
	double now_ns, data_ns;		/* when what it does is done, and its data there */
	uint64_t out, in, stored;
};

struct box {
	struct net *net;
	uint32_t number;
	struct muster_switch *sw;
	double port_ns[MUSTER_SWITCH_RADIX_MAX];
	double llt_ns, now_ns;
	bool looks;			/* it will be woken */
	struct event *kept[MUSTER_SWITCH_RADIX_MAX];	/* by the port's link, as it was refused, */
	struct event *kept_last[MUSTER_SWITCH_RADIX_MAX];	/* and what came behind it */
	size_t held, most;		/* bytes of memory, now and ever */
};

struct event {
	struct timed time;
	struct event *next;		/* of those that are kept */
	bool wakes;			/* no packet: a host begins, a switch looks again at what it owes */
	struct muster_fabric_end to;
	struct muster_packet packet;
	uint8_t payload[];
};

struct net {
	const struct net_case *what;
	struct muster_fabric *fabric;
	struct muster_fabric_group group;
	uint32_t nr_hosts, nr_members, nr_boxes;
	struct host *hosts;
	uint32_t members[NET_HOSTS_MAX];
	struct box *boxes;
	struct timeline line;
	double begun_ns, ended_ns;
	uint32_t done;
	bool warms;		/* an operation of 0 bytes comes first: it brings credits */
	bool failed;
};

/* What engines and switches may do to it. */
extern const struct muster_engine_world net_host_table;
extern const struct muster_switch_world net_box_table;

/* So many numbers of a member's input, from the first one on. */
void net_numbers(void *to, uint32_t member, uint64_t first, uint64_t nr);

/* 0; or -errno and a word on standard error. What is there is freed by net_free() in any case. */
int net_make(struct net *net);
void net_free(struct net *net);

#endif /* MUSTER_SELFTESTS_SWITCH_NET_H */
