/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How hosts and switches are joined: ports, routes, and reduction trees laid over them.
 * Host h has NodeID h; the aggregation node of switch s has MUSTER_NODE_AGGREGATION + s.
 * Everything follows from the links and their order, or from what switches say of their ports. It
 * allocates by malloc and knows no running switch.
 */
#ifndef MUSTER_FABRIC_H
#define MUSTER_FABRIC_H

#include "switch.h"

enum muster_fabric_limit {
	MUSTER_FABRIC_NODES_MAX = 1 << 16,
};

#define MUSTER_FABRIC_NO_LINK	0xffffffffu
#define MUSTER_FABRIC_NOTHING	0xffffffffu	/* at a port */

struct muster_fabric_link {
	uint32_t a, b;		/* both ways */
};

struct muster_fabric_config {
	uint32_t nodes;		/* hosts and switches; each kind is counted from 0 in this order */
	const bool *is_switch;	/* by node */
	const bool *is_plain;	/* by node: a switch without an aggregation node; NULL: none is */
	uint32_t radix;		/* of every switch; 0: MUSTER_SWITCH_RADIX */
	uint32_t nr_links;
	const struct muster_fabric_link *links;	/* a switch's take its ports in this order */
};

struct muster_fabric;

/* What is at the other end of a port. */
struct muster_fabric_end {
	bool is_host;
	uint32_t number;	/* of the host, or of the switch */
	uint32_t port;		/* there; 0 at a host */
};

/* What a switch says of itself. */
struct muster_fabric_said {
	uint32_t number;
	bool is_plain;
	uint32_t radix;
	const uint32_t *nodes;	/* by port: who is there, also a switch that is plain; MUSTER_FABRIC_NOTHING */
};

/* A group's part at one switch: all but the keys, lives and contexts of who is concerned. */
struct muster_fabric_branch {
	uint32_t number;	/* of the switch */
	struct muster_switch_group group;
};

/* A group on a tree: who has to do with it, and whom each member sends to. */
struct muster_fabric_group {
	uint32_t nr_branches;
	struct muster_fabric_branch *branches;	/* each behind all those that are its children */
	uint32_t *nodes;	/* by member: its aggregation node */
	struct muster_switch_child *children;	/* of all branches; theirs point here */
};

/**
 * muster_fabric_create() - check a network.
 *
 * A host has one link, to a switch; a switch no more than its radix; nobody two to the same;
 * and every node is reached from every other.
 *
 * @bad: the link that is wrong, or MUSTER_FABRIC_NO_LINK. @why: gets the sentence.
 * Return: 0; -EINVAL; -ENOMEM.
 */
int muster_fabric_create(const struct muster_fabric_config *config, struct muster_fabric **created,
			 uint32_t *bad, char *why, size_t why_len);
void muster_fabric_free(struct muster_fabric *fabric);

/**
 * muster_fabric_discover() - a network from what its switches say, in any order.
 *
 * It is there when all switches that are named have said something, and both ends of each link have said the same.
 * Numbers and ports are those that are said.
 *
 * Return: 0; -EAGAIN: so far all agrees, but a switch has not come; -EINVAL: two of them contradict each other, or
 * it is no network; -ENOMEM. why: the sentence.
 */
int muster_fabric_discover(const struct muster_fabric_said *said, uint32_t nr, struct muster_fabric **created,
			   char *why, size_t why_len);
/** muster_fabric_agrees() - what a switch says is so in this network. Return: 0; -EINVAL, and why. */
int muster_fabric_agrees(const struct muster_fabric *fabric, const struct muster_fabric_said *said, char *why,
			 size_t why_len);
/** muster_fabric_say() - what a switch of this network says. @nodes: room for radix; it points there. */
void muster_fabric_say(const struct muster_fabric *fabric, uint32_t number, uint32_t *nodes,
		       struct muster_fabric_said *said);

/**
 * muster_fabric_without() - the same network, in which no way leads over some switches; numbers and
 * ports stay as they are.
 * @without: by switch.
 * Return: 0; -EINVAL: hosts do not reach one another then; -ENOMEM. why: the sentence.
 */
int muster_fabric_without(const struct muster_fabric *fabric, const bool *without,
			  struct muster_fabric **created, char *why, size_t why_len);

uint32_t muster_fabric_hosts(const struct muster_fabric *fabric);
uint32_t muster_fabric_switches(const struct muster_fabric *fabric);
uint32_t muster_fabric_radix(const struct muster_fabric *fabric);

/** muster_fabric_node() - NodeID of a switch's aggregation node; 0: it has none. */
uint32_t muster_fabric_node(const struct muster_fabric *fabric, uint32_t number);

/** muster_fabric_end() - of a switch's port. False: nothing is there; at a later one there may be. */
bool muster_fabric_end(const struct muster_fabric *fabric, uint32_t number, uint32_t port,
		       struct muster_fabric_end *end);

/** muster_fabric_trunks() - which of a switch's ports lead to switches. @trunks: room for radix. */
void muster_fabric_trunks(const struct muster_fabric *fabric, uint32_t number, bool *trunks);

/** muster_fabric_uplink() - the switch and port that a host is at. */
void muster_fabric_uplink(const struct muster_fabric *fabric, uint32_t host,
			  struct muster_fabric_end *end);

/**
 * muster_fabric_routes() - of a switch to all hosts and aggregation nodes, on shortest ways.
 * @routes: room for hosts + switches. Return: how many; -ENOMEM.
 */
int64_t muster_fabric_routes(const struct muster_fabric *fabric, uint32_t number,
			     struct muster_switch_route *routes);

/**
 * muster_fabric_group() - the members' part of a reduction tree.
 * @tree: the first has its root in the middle of the network, the next ones elsewhere.
 * @members: hosts, each once; member i is members[i].
 *
 * A tree's ways are the shortest to its root. The group's root is the first aggregation node
 * above all members. Children are combined by the number of their port.
 *
 * Return: 0; -EINVAL: no such host, or one twice; -EOPNOTSUPP: two members come to an aggregation
 * node by one port, uncombined; or there is no aggregation node; -ENOMEM. why: the sentence.
 */
int muster_fabric_group(const struct muster_fabric *fabric, uint32_t tree,
			const uint32_t *members, uint32_t nr_members,
			struct muster_fabric_group *group, char *why, size_t why_len);
void muster_fabric_group_free(struct muster_fabric_group *group);

/* What a member has come to is combined into what another one has. */
struct muster_fabric_give {
	uint32_t from, to;
};

/**
 * muster_fabric_order() - how a group's tree combines, as if its members did it among themselves.
 * @type: of the tree (MUSTER_SWITCH_*).
 * @gives: room for one less than members; done one after the other they have the tree's order.
 *
 * Who has what an aggregation node has come to is the first member that it combines. Return: 0; -ENOMEM.
 */
int muster_fabric_order(const struct muster_fabric *fabric, const struct muster_fabric_group *group,
			uint8_t type, struct muster_fabric_give *gives);

#endif /* MUSTER_FABRIC_H */
