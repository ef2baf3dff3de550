/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A switch on the wire, for muster-switchd: each of its ports is a link of one socket port
 * to the host or switch at the other end.
 */
#ifndef MUSTER_SWITCH_BOX_H
#define MUSTER_SWITCH_BOX_H

#include <stdio.h>

#include "fabric.h"
#include "wire.h"

struct switch_box_port;

struct switch_box {
	uint32_t number;
	uint32_t node;			/* on the wire, and of its aggregation node */
	uint32_t life;
	uint32_t segments;		/* of each streaming group; 0: MUSTER_SWITCH_SEGMENTS */
	struct muster_switch *sw;
	struct muster_wire *wire;
	uint32_t nr_ports;
	struct switch_box_port *ports;
	uint64_t again_us;		/* when to try what waits again, whatever comes */
	uint64_t hurry_us;		/* when to answer those that wait for locks, whatever comes */
	bool lost;			/* some port's life is over, and the switch does not know */
	bool met;			/* somebody is there: */
	bool watching;			/* from then on the switches next to us are to answer */
	bool owes;			/* it has what links had no room for, or that is not due yet */
};

/**
 * switch_box_open() - be a switch of a network.
 * @spec: of the wire, as muster_wire_socket_open() has it; host h is its node h, switch s
 *	MUSTER_NODE_AGGREGATION + s.
 * @life: of all switches that were started together; not 0.
 *
 * Return: 0; -errno, and why.
 */
int switch_box_open(struct switch_box *box, const struct muster_fabric *fabric, uint32_t number,
		    const char *spec, uint32_t life, char *why, size_t why_len);
void switch_box_close(struct switch_box *box);

/** switch_box_make() - all of that but its wire, which is the caller's to give. Return: 0; -errno, and why. */
int switch_box_make(struct switch_box *box, const struct muster_fabric *fabric, uint32_t number, uint32_t life,
		    char *why, size_t why_len);

/* What that wire tells it: its owner is the box. */
extern const struct muster_wire_events switch_box_events;

/** switch_box_save() - write all down for another program that this process becomes (wire.h). 0; -errno. */
int switch_box_save(struct switch_box *box, FILE *to);
/** switch_box_resume() - go on with it: nobody sees a difference. Return: 0; -errno, and why. */
int switch_box_resume(struct switch_box *box, const struct muster_fabric *fabric, uint32_t number,
		      const char *spec, FILE *from, char *why, size_t why_len);

/** switch_box_step() - take what has come, send what can go. Return: whether anything had. */
bool switch_box_step(struct switch_box *box, uint64_t now_us);

/**
 * switch_box_cut() - take the link to that node down, for good: nothing is taken from it any more.
 * Return: 0; -ENOENT: there is none.
 */
int switch_box_cut(struct switch_box *box, uint32_t neighbour);

/**
 * switch_box_ways_lay() - lay that one of its ways again, around some switches, by number.
 * Return: 0; -EINVAL: it is the one that is taken, or does not lead to all hosts; -EAGAIN: who is at a link has
 * not answered yet; -EHOSTUNREACH: a link that is needed was taken down; -ENOMEM.
 */
int switch_box_ways_lay(struct switch_box *box, const struct muster_fabric *fabric, const bool *without,
			uint32_t way);

/**
 * switch_box_meet() - the switch at that node has this life, and not ours: it is spoken to. Until it has
 * answered ways cannot be laid (-EAGAIN). Return: 0; -ENOENT: no link leads there; -EHOSTUNREACH.
 */
int switch_box_meet(struct switch_box *box, uint32_t neighbour, uint32_t life);

/** switch_box_gone() - whether a host was at that port, and is not any more. */
bool switch_box_gone(const struct switch_box *box, uint32_t port, uint32_t *host);

/** switch_box_tell_losses() - of lives that are over, to the switch: groups that need them fail. */
void switch_box_tell_losses(struct switch_box *box);

/** switch_box_due_us() - when step() is next due although nothing comes. */
uint64_t switch_box_due_us(const struct switch_box *box);

#endif /* MUSTER_SWITCH_BOX_H */
