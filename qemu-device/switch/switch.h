/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The reduction switch: it forwards packets by NodeID, and its aggregation node
 * combines what the children of a tree send into one packet for the parent, and sends
 * the result to each child by the group's handle (Graham et al., "SHARP
 * Streaming-Aggregation"; the contract is Documentation/switch.md).
 *
 * It knows no socket, clock, thread or allocator: it reaches the world through struct
 * muster_switch_world, and the caller steps it. One caller at a time; the world must
 * not call it back. Links deliver exactly once, in any order, but for what is sent once.
 */
#ifndef MUSTER_SWITCH_H
#define MUSTER_SWITCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "muster_desc.h"
#include "muster_wire.h"

enum muster_switch_limit {
	MUSTER_SWITCH_RADIX_MIN = 2,
	MUSTER_SWITCH_RADIX = 40,		/* where nothing is said */
	MUSTER_SWITCH_RADIX_MAX = 128,
	MUSTER_SWITCH_NO_PORT = 0xff,
	MUSTER_SWITCH_GROUPS_MAX = 1024,	/* at one switch */
	MUSTER_SWITCH_LLT_BYTES = 256,		/* of one packet of a low-latency tree, where nothing is said */
	MUSTER_SWITCH_STREAMS_MAX = 2,		/* streaming trees that are active at one switch */
	MUSTER_SWITCH_LOCK_MAX = 1024,		/* operations of one lock */
	MUSTER_SWITCH_SEGMENTS_MIN = 2,		/* of a streaming group: one credit, and the limited packet */
	MUSTER_SWITCH_SEGMENTS = 2 * MUSTER_TREE_PULSES_LIVE,	/* of any, where nothing is said; and at most */
	MUSTER_SWITCH_CREDITS = 16,		/* packets of one job and source at one port */
};

/* Of what muster_switch_save() writes. */
#define MUSTER_SWITCH_STATE_VERSION	5

/* What a tree is for; the same at all its switches. */
enum muster_switch_tree_type {
	MUSTER_SWITCH_LLT = 0,	/* low latency: short packets, the result twice */
	MUSTER_SWITCH_SAT = 1,	/* streaming aggregation: packets of one MTU, the result once */
};

struct muster_switch;

struct muster_switch_world {
	/*
	 * Give a packet to the link of a port, which keeps a copy: 0; -EAGAIN: it has no room
	 * now; -EHOSTUNREACH: nobody is at its other end.
	 */
	int (*send)(void *world, uint32_t port, const struct muster_packet *packet,
		    const void *payload);
	/* The same without a promise: it may be lost, and nobody is told. */
	void (*send_once)(void *world, uint32_t port, const struct muster_packet *packet,
			  const void *payload);
	void *(*alloc)(void *world, size_t bytes);	/* zeroed; or NULL */
	void (*free)(void *world, void *p, size_t bytes);
};

/* By which port a node is reached. */
struct muster_switch_route {
	uint32_t node;
	uint8_t port;
};

struct muster_switch_config {
	uint32_t node;		/* of its aggregation node; 0: it has none and only forwards */
	uint32_t incarnation;	/* differs in every life of it */
	uint32_t radix;		/* ports; 0: MUSTER_SWITCH_RADIX */
	uint32_t nr_routes;
	const struct muster_switch_route *routes;	/* by node, upwards; copied */
	const bool *trunks;	/* by port: a switch is at its other end; NULL: nowhere; copied */
};

/* Who contributes to a group here: a host, or an aggregation node further down. */
struct muster_switch_child {
	uint32_t node;
	uint32_t incarnation;
	uint8_t port;		/* one child a port */
	uint16_t vp;		/* of a host, as are the next three: */
	uint32_t context;
	uint32_t life;
	uint32_t member;	/* its index there */
};

/*
 * A group's part of a tree at one switch. The children are combined in the order in
 * which they stand here, whenever they come; those of a streaming tree stand in the order of
 * their ports, and go through the half ring that each port belongs to.
 */
struct muster_switch_group {
	uint16_t tree;
	uint8_t type;		/* enum muster_switch_tree_type */
	/*
	 * Of a streaming tree: nothing is taken but under a lock, which the members ask for by their
	 * group of the same handle on tree - 1, a low-latency one. Else the tree is one job's own.
	 */
	bool locks;
	uint32_t group;		/* the handle; not 0 */
	uint8_t job;
	uint64_t owner;		/* whose turn it is when it has the lock: the same for all groups of a job */
	uint64_t key;		/* the group's */
	uint32_t payload_max;	/* bytes of one packet, at most MUSTER_MTU; 0: as its type says */
	uint32_t segments;	/* of a streaming tree: that it has room for at once; 0: MUSTER_SWITCH_SEGMENTS */
	uint8_t parent_port;	/* MUSTER_SWITCH_NO_PORT: this is the root */
	uint32_t parent_node;
	uint32_t parent_incarnation;
	uint32_t nr_children;	/* 1 to radix */
	const struct muster_switch_child *children;	/* copied */
};

/* Counts since creation, but for what is held now. */
struct muster_switch_counters {
	uint64_t packets_in;
	uint64_t forwarded;
	uint64_t held_back;	/* not taken, as their flow had all its credits here */
	uint64_t contributions;
	uint64_t combined;	/* segments whose contributions are all in */
	uint64_t results;	/* that came from a parent, or were made at the root */
	uint64_t limited;	/* sent to a parent without a credit */
	uint64_t copies_once;	/* sent without a promise */
	uint64_t copies;	/* made for the ports of a group, by its handle */
	uint64_t copies_spared;	/* as the child had gone on with the other one */
	uint64_t failed;	/* groups */
	uint64_t drop_malformed;	/* version, type, flags, lengths, operation */
	uint64_t drop_route;	/* to nobody that is known here, or back to where it came from */
	uint64_t drop_stranger;	/* no such group or child, wrong key, port or incarnation; or for another host */
	uint64_t drop_duplicate;
	uint64_t drop_window;	/* too far ahead, or too late */
	uint64_t drop_failed;	/* of a group that has failed */
	uint64_t drop_unlocked;	/* for a streaming tree, and its group has no lock */
	uint64_t locks;		/* given */
	uint64_t locks_refused;	/* as another has it, or stands before */
	uint64_t locked;	/* now: groups that have one, or that may be about to; */
	uint64_t lock_waits;	/* and requests that wait until they could be locked */
	uint64_t groups;	/* now */
	uint64_t bytes;		/* now, of memory for groups */
	uint64_t held;		/* now, packets that wait for links */
	uint64_t flows;		/* now: of which packets wait, or are on the way to the next switch */
	uint64_t gone;		/* nodes that somebody cannot reach any more */
};

/** muster_switch_create() - Return: 0; -EINVAL: the configuration is wrong; -ENOMEM. */
int muster_switch_create(const struct muster_switch_config *config,
			 const struct muster_switch_world *world, void *opaque,
			 struct muster_switch **created);
void muster_switch_destroy(struct muster_switch *sw);

/**
 * muster_switch_group_add() - take part in a group.
 * Return: 0; -EINVAL, also where the tree has groups of another type; -EEXIST: it has one of
 * that handle; -ENOSPC: there are MUSTER_SWITCH_GROUPS_MAX; -EBUSY: it needs no lock, and
 * MUSTER_SWITCH_STREAMS_MAX other streaming trees are active here; -EOPNOTSUPP: two children at
 * one port; -ENOMEM.
 */
int muster_switch_group_add(struct muster_switch *sw, const struct muster_switch_group *group);

/** muster_switch_group_remove() - nobody is told. -ENOENT. */
int muster_switch_group_remove(struct muster_switch *sw, uint16_t tree, uint32_t group);

/**
 * muster_switch_ways_lay() - lay the ways again of which there are two, 0 (at first) and 1: by the one
 * that hosts' packets do not take now, and that nothing is on.
 * @routes: of nodes that the switch has been told of at first; to those that are not named nothing goes.
 * Return: 0; -EINVAL, and nothing has changed.
 */
int muster_switch_ways_lay(struct muster_switch *sw, uint32_t way, const struct muster_switch_route *routes,
			   uint32_t nr);

/**
 * muster_switch_ways_take() - what comes from hosts goes by this one from now on: it is laid at all switches.
 * What is on its way stays on the other one. Return: 0; -EINVAL.
 */
int muster_switch_ways_take(struct muster_switch *sw, uint32_t way);

/** muster_switch_ways() - which one. */
uint32_t muster_switch_ways(const struct muster_switch *sw);

/**
 * muster_switch_ways_left() - how many flows are on that way here.
 * @passed: packets that have gone on by it, ever. If at all switches nothing is left and nothing has gone on since
 * that was so before, nothing is on it.
 */
uint32_t muster_switch_ways_left(const struct muster_switch *sw, uint32_t way, uint64_t *passed);

/** muster_switch_group_fail() - as if a member had gone: its neighbours are told. -ENOENT. */
int muster_switch_group_fail(struct muster_switch *sw, uint16_t tree, uint32_t group);

/**
 * muster_switch_receive() - a packet has come to a port.
 * @packet: looked at where it lies, so nobody may write there meanwhile.
 * @len: bytes at payload; must equal the packet's length or it is dropped.
 *
 * Return: 0: taken, or dropped and counted; -EAGAIN: MUSTER_SWITCH_CREDITS of its job and source
 * wait at this port. The caller keeps that one and offers it again; others may overtake it, and
 * should. Between switches this is only for want of memory.
 */
int muster_switch_receive(struct muster_switch *sw, uint32_t port,
			  const struct muster_packet *packet, const void *payload, uint32_t len);

/**
 * muster_switch_lend() - muster_switch_receive(), and the payload stays as it is, where it is, until
 * muster_switch_give_back(): what is to be combined waits where it has come, and is read once.
 */
int muster_switch_lend(struct muster_switch *sw, uint32_t port, const struct muster_packet *packet,
		       const void *payload, uint32_t len);

/** muster_switch_give_back() - all that was lent is the caller's again; what still waits there is taken over. */
void muster_switch_give_back(struct muster_switch *sw);

/**
 * muster_switch_hurry() - requests that wait here for a lock are answered, though it cannot be had:
 * who has waited long enough can give up. To be called now and then.
 */
void muster_switch_hurry(struct muster_switch *sw);

/** muster_switch_step() - send what links had no room for. Return: whether some is left. */
bool muster_switch_step(struct muster_switch *sw);

/**
 * muster_switch_child_left() - a group's member at that host has ended all that it does there:
 * the host may go, and the group does not fail of it. Return: 0; -ENOENT: it is no child here.
 */
int muster_switch_child_left(struct muster_switch *sw, uint16_t tree, uint32_t group,
			     uint32_t host);

/**
 * muster_switch_port_lost() - nobody is at its other end: groups that need it fail. Where a switch
 * was there, all neighbours are told by GONE whom it had led to, and tell theirs.
 */
void muster_switch_port_lost(struct muster_switch *sw, uint32_t port);

void muster_switch_counters_get(const struct muster_switch *sw,
				struct muster_switch_counters *counters);

/* Where the state of a switch goes to, or comes from: the same bytes in the same order. */
struct muster_switch_store {
	void *opaque;
	int (*move)(void *opaque, void *bytes, size_t len);	/* 0; -errno */
};

/** muster_switch_save() - all that it has: who goes on with it is the same switch to everybody. 0; -errno. */
int muster_switch_save(struct muster_switch *sw, const struct muster_switch_store *store);
/**
 * muster_switch_restore() - go on with what was saved, in a switch that was just made for the same place.
 * Return: 0; -EINVAL: another program's, or another switch's; -ENOMEM; what the store said. After an error
 * nothing may be done with it but muster_switch_destroy().
 */
int muster_switch_restore(struct muster_switch *sw, const struct muster_switch_store *store);

#endif /* MUSTER_SWITCH_H */
