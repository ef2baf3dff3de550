/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The manager of aggregation groups (Documentation/switch.md, section 11), for muster-am: who is
 * connected (am_peers.c), what hosts say (am_hosts.c), the groups (am_groups.c), the network that switches
 * say (am_discover.c), what they are asked (am_switches.c), how one is drained (am_drain.c, am_move.c), and what
 * of all this is told (am_report.c).
 */
#ifndef MUSTER_AM_H
#define MUSTER_AM_H

#include <stdio.h>

#include "fabric.h"
#include "muster_manager.h"
#include "outbox.h"

enum {
	AM_GROUPS_MAX = 256,		/* of one job, unless it is set */
	AM_LAYOUTS = 2,
	AM_WHY_MAX = MUSTER_MANAGER_WHY_MAX,
	AM_UNHEARD_MAX = 1 << 20,	/* bytes that may wait for a switch; then it is over, and may come anew */
};

struct am_config {
	const struct muster_fabric *fabric;	/* NULL: as the switches say it */
	const char *address;		/* of its socket: @NAME, abstract, or a path */
	uint32_t groups_max;		/* of one job */
	uint32_t payload_max;		/* bytes of one packet of low-latency trees; 0: as usual */
	bool shared;			/* by jobs, which lock streaming trees */
};

enum am_peer_kind {
	AM_STRANGER,			/* it has not said who it is */
	AM_HOST,			/* its connection is its lease */
	AM_SWITCH,
};

/* Who is connected. */
struct am_peer {
	struct am_peer *next;
	int fd;
	enum am_peer_kind kind;
	bool over;			/* it goes as soon as nobody looks at it */
	bool cleans;			/* it is told when all that it wanted away is */
	bool drains;			/* or when nothing lies on the switches that are drained */
	uint32_t number;		/* of the host, or of the switch */
	uint32_t life;
	uint64_t proof;			/* of a host's job, */
	uint32_t layout;		/* whose trees have it, */
	uint32_t nr_claims;		/* and the groups that it had as it came */
	struct muster_manager_claim *claims;
	struct muster_fabric_said said;	/* of a switch, */
	uint32_t *ports;		/* where that points, */
	uint64_t network;		/* and what follows from the network that its ways are laid by */
	struct outbox outbox;
};

struct am_member {
	uint32_t host;
	uint32_t incarnation;
	uint32_t number;		/* its place among the members; they stand in that order */
	uint16_t vp;
	uint32_t at;			/* the switch that it is a child of */
	const struct am_peer *lease;	/* NULL: nobody has claimed it yet, or it has left */
	bool left;
};

/* A switch that has part of a group. */
struct am_branch {
	uint32_t number;
	bool held;			/* false: its neighbour says that it has; it has not said so yet */
};

/* It is there until the last of its members has left, who may be the last to get a result. */
struct am_group {
	struct am_group *next;
	uint16_t tree;
	uint32_t handle;
	uint64_t key;
	uint64_t proof;
	uint32_t context, life;
	uint8_t job;
	struct am_group *heir;		/* that which is to stand for it (am_move.c), and for which one */
	struct am_group *heir_of;
	uint64_t since_us;		/* when one that another manager made was heard of */
	const struct am_peer *asker;	/* NULL: it has gone, or another manager made it */
	uint64_t tag;			/* of its request */
	bool made;			/* all switches have it, and the asker knows */
	bool ordered;			/* who asked wants to know how it combines: */
	struct muster_manager_give *gives;	/* one less than members, until it is told; or NULL */
	bool unwanted;			/* it has failed, by order */
	int err;			/* what the first of them has said that refused it, */
	char why[AM_WHY_MAX];
	uint32_t nr_switches, nr_members;
	struct am_branch *switches;
	struct am_member *members;
};

/* What a switch has yet to answer. */
struct am_ask {
	struct am_ask *next;
	uint64_t tag;
	uint16_t kind;
	const struct am_peer *to;
	struct am_peer *asker;		/* who is answered then; NULL: nobody */
	struct am_group *group;		/* ADD; NULL: it has gone */
	bool drains;			/* WAYS, TAKE, PASSED: all are to answer before it goes on */
	uint16_t tree;			/* CHILD_LEFT */
	uint32_t handle;
};

/* One message, with all that may follow it. */
struct am_received {
	struct muster_manager_message head;
	union {
		struct muster_manager_member members[MUSTER_MANAGER_MEMBERS_MAX];
		struct muster_manager_claim claims[MUSTER_MANAGER_MEMBERS_MAX];
		struct muster_manager_child children[MUSTER_MANAGER_MEMBERS_MAX];
		struct muster_manager_port ports[MUSTER_MANAGER_MEMBERS_MAX];
	};
};

/* What is drained, and how far ways are laid around it (am_drain.c). */
struct am_drain {
	bool *switches;			/* those that are */
	struct muster_fabric *around;	/* the network without them; NULL: nothing is drained */
	uint32_t way;			/* which all switches take, or are about to */
	enum am_drain_phase {
		AM_DRAIN_RESTS,
		AM_DRAIN_BEGINS,	/* not all links are there yet */
		AM_DRAIN_LAYS,		/* the switches lay the other way, */
		AM_DRAIN_TAKES,		/* take it, */
		AM_DRAIN_EMPTIES,	/* and are asked what is on the one before */
	} phase;
	uint32_t ordered;		/* the switch of the last order */
	uint32_t awaited;		/* answers */
	bool moved;			/* no group lies on a drained switch any more */
	uint64_t left;			/* on the way before and on drained switches, as the last have said, */
	uint64_t passed, passed_before;	/* and what has gone by there; the time before */
	uint64_t again_us;		/* when to ask again */
};

struct am {
	struct am_config config;
	const struct muster_fabric *fabric;	/* the network, which does not change any more; NULL: not known yet */
	struct muster_fabric *found;		/* it, if the switches have said it */
	struct am_drain drain;
	int listen_fd, epoll_fd;
	bool is_full;			/* no descriptor was left: until one ends nobody is let in */
	bool said_full;
	struct am_peer *peers;
	struct am_group *groups;
	struct am_ask *asks;
	bool *greeted;			/* by host: it is here, or has been */
	uint64_t tags;			/* of asks so far */
	uint32_t last_handle;
	struct am_received in;
};

/* ---- am_peers.c: connections ---- */

/** am_open() - listen. Return: 0; -errno. */
int am_open(const struct am_config *config, struct am **am);
void am_close(struct am *am);
/** am_step() - hear each once. Return: whether anybody had something to say. */
bool am_step(struct am *am);
/** am_settled() - all that was to be told is. */
bool am_settled(const struct am *am);
/** am_say() - a switch whose socket is full gets it later, within limits; whoever else's is, is over. */
void am_say(struct am *am, struct am_peer *peer, const void *message, size_t bytes);
/** am_answer() - why: of an error. */
void am_answer(struct am *am, struct am_peer *peer, const struct muster_manager_message *head, int err,
	       const char *why);
/** am_find() - who of that kind has that number. NULL: it is not connected. */
struct am_peer *am_find(const struct am *am, enum am_peer_kind kind, uint32_t number);
/** am_refuse() - Return: err. */
int am_refuse(char *why, int err, const char *sentence);

/* ---- am_hosts.c ---- */

/** am_host_hello(), am_host_leave(), am_host_create() - it has said so: in. */
void am_host_hello(struct am *am, struct am_peer *peer);
void am_host_leave(struct am *am, struct am_peer *host);
void am_host_create(struct am *am, struct am_peer *host);
/** am_host_claim() - a member of a group that another manager made is there: it has it yet, or has left. */
void am_host_claim(const struct am_peer *host, const struct am_group *group, struct am_member *member);
/** am_host_end() - its lease: it has left all. */
void am_host_end(struct am *am, const struct am_peer *host);

/* ---- am_groups.c ---- */

struct am_group *am_group_of(const struct am *am, uint32_t tree, uint32_t handle);
/** am_group_make() - its members are known; who asked is answered later. Return: 0; -errno, and why. */
int am_group_make(struct am *am, struct am_group *group, char *why);
/** am_group_added() - one of its switches has answered. */
void am_group_added(struct am *am, struct am_group *group, int err, const char *why);
/** am_group_new() - one on that tree, with room for members; not in the list yet. NULL: no memory. */
struct am_group *am_group_new(uint16_t tree, uint32_t nr_members);
/** am_handle_new() - none has it on that tree, nor on that which is paired with it. */
uint32_t am_handle_new(struct am *am, uint16_t tree);
/** am_group_is_whole() - it can be used: it is made, and all its members are there. */
bool am_group_is_whole(const struct am_group *group);
/** am_group_end() - it is taken from all switches that have it. */
void am_group_end(struct am *am, struct am_group *group);
/**
 * am_groups_sweep() - end those that all members have left. Return: whether there are some of which not
 * all members are known: it is to be called again.
 */
bool am_groups_sweep(struct am *am);
/** am_group_hold() - a switch has one that another manager made. */
void am_group_hold(struct am *am, const struct am_peer *from);
void am_group_free(struct am_group *group);
/** am_clean() - somebody asks for it: in. */
void am_clean(struct am *am, struct am_peer *asker);

/* ---- am_discover.c ---- */

/**
 * am_discover_hear() - a switch says what is at its ports: in. It is in the network, or is known to be as soon as all
 * have come.
 * Return: 0; -EINVAL: others say otherwise, or the network is another; -ENOMEM. why: the sentence.
 */
int am_discover_hear(struct am *am, struct am_peer *peer, char *why);
/** am_discovered() - is the network known? Return: 0; -errno, and why: what is missing. */
int am_discovered(struct am *am, char *why);

/* ---- am_switches.c ---- */

/** am_switch_hello(), am_switch_gone(), am_switch_done() - it has said so: in. */
void am_switch_hello(struct am *am, struct am_peer *peer);
void am_switch_gone(struct am *am, const struct am_peer *from);
void am_switch_done(struct am *am, const struct am_peer *from);
/** am_switch_end() - what it has not answered it will not. */
void am_switch_end(struct am *am, const struct am_peer *from);
/**
 * am_ask() - have it say something to a switch that answers.
 * @what: asker, group, and what its answer needs; the rest is filled in.
 */
int am_ask(struct am *am, uint32_t number, const struct am_ask *what, struct muster_manager_message *head,
	   size_t bytes);
/** am_asks_forget() - somebody is no more. */
void am_asks_forget(struct am *am, const struct am_peer *asker, const struct am_group *group);
bool am_asks_any(const struct am *am, const struct am_peer *asker, const struct am_group *group);
/** am_cut() - somebody asks for it: in. */
void am_cut(struct am *am, struct am_peer *asker);

/* ---- am_drain.c ---- */

/** am_drain_open(), am_drain_close() - 0; -ENOMEM. */
int am_drain_open(struct am *am);
void am_drain_close(struct am *am);
/** am_drain(), am_undrain() - somebody asks for it: in. */
void am_drain(struct am *am, struct am_peer *asker);
void am_undrain(struct am *am, struct am_peer *asker);
/** am_drain_met() - a switch is there, and takes that way. */
void am_drain_met(struct am *am, const struct am_peer *peer, uint32_t way);
/** am_drain_answered() - a switch has answered what it was asked for; said: NULL: it has gone. */
void am_drain_answered(struct am *am, int err, const char *why, const struct muster_manager_message *said);
/** am_drain_failed() - whoever waits for it hears so. */
void am_drain_failed(struct am *am, int err, const char *why);
/** am_drain_is_wanted() - somebody waits for switches to be empty. */
bool am_drain_is_wanted(const struct am *am);
/** am_drain_step() - what is due; and tell who waits. Return: when to call again, in ms; -1: it says nothing. */
int am_drain_step(struct am *am);
/** am_fabric() - the network, which is known, as far as it is to be used now. */
const struct muster_fabric *am_fabric(const struct am *am);

/* ---- am_move.c ---- */

/** am_moves_begin() - for groups that lie on switches that are drained others are made. Return: nothing lies there. */
bool am_moves_begin(struct am *am);
/** am_move_made() - all switches have one, or it could not be. */
void am_move_made(struct am *am, struct am_group *heir);
/** am_move_forget() - a group is no more. */
void am_move_forget(struct am_group *group);

/* ---- am_report.c ---- */

/** am_report() - the network, jobs, their hosts and groups, and switches. */
void am_report(struct am *am, FILE *to);

#endif /* MUSTER_AM_H */
