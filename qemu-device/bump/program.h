/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One member's part of an algorithm, as the states that the CFE goes through in
 * order: what it awaits, from whom, what the CIPE then does, what it sends, to
 * whom. The order in which elements are combined is fixed here, never by arrival.
 */
#ifndef MUSTER_BUMP_PROGRAM_H
#define MUSTER_BUMP_PROGRAM_H

#include <stdint.h>

#include "muster_bump.h"

enum { PROGRAM_STATES_MAX = 64 };

/* What the member has: buffers of the CIPE. */
enum register_name {
	REGISTER_OWN,		/* of its local ranks */
	REGISTER_TOTAL,		/* of those that it has heard of so far */
	REGISTER_BEFORE,	/* scan: of the members before it; none: there are none */
	REGISTER_RUNNING,	/* scan: on its way down a tree, or down the rows of a torus */
	NR_REGISTERS,
};

enum state_kind {
	STATE_HEAR,		/* await a packet, then do */
	STATE_SAY,		/* send what `what` says */
	STATE_DO,		/* neither */
};

/* STATE_HEAR and STATE_DO: op is the operation's; a register that is empty is not combined. */
enum state_action {
	DO_NOTHING,		/* the packet is empty: it says that all have been heard */
	DO_FOLD,		/* total = total op packet; the packet is kept */
	DO_FOLD_BEFORE,		/* the same, and before = packet op before */
	DO_REPLACE,		/* total = packet */
	DO_BEFORE,		/* before = packet */
	DO_RUNNING,		/* running = packet */
	DO_CLOSE,		/* total = before op total */
	DO_DESCEND,		/* running = before op own */
	DO_CHILD,		/* running = running op what state `arg` has heard */
	DO_MERGE,		/* before = running op before */
};

/* STATE_SAY */
enum state_what {
	SAY_NOTHING,		/* an empty packet */
	SAY_TOTAL,
	SAY_BEFORE_TOTAL,	/* before op total */
	SAY_BEFORE_OWN,
	SAY_RUNNING,
	SAY_RUNNING_TOTAL,
};

struct state {
	uint8_t kind;
	uint8_t does;		/* enum state_action or state_what */
	uint8_t step;		/* with sender and receiver it names the packet */
	uint8_t arg;
	uint16_t peer;		/* member index */
};

struct program {
	uint32_t nr;
	struct state states[PROGRAM_STATES_MAX];
};

/** program_make() - the part of member `self` of `hosts`. */
void program_make(struct program *program, enum muster_bump_operation operation,
		  enum muster_bump_algorithm algorithm, uint32_t hosts, uint32_t self);

/** program_rows() - of a torus: the largest divisor that is no more than hosts / divisor. */
uint32_t program_rows(uint32_t hosts);

#endif /* MUSTER_BUMP_PROGRAM_H */
