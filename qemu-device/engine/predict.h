/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What is predicted of a program (predict.c): the packets that it sends, and those that its slots
 * have had. Of others look.c alone reads it: it tells from where something is still to come.
 */
#ifndef MUSTER_PREDICT_H
#define MUSTER_PREDICT_H

#include "internal.h"
#include "trace.h"

#include "arith.h"

/* A descriptor of such a program. */
struct action {
	struct muster_packet packet;	/* that it sends, but for number, base and CREDIT_WANTED */
	const void *load;		/* its ranges, where they are mapped; NULL: it has none */
	void *store;
	struct muster_trace_record sent; /* that records it, but for time and number */
	muster_arith_element *one;	/* combines what it awaits; or NULL: not a single element */
	uint32_t member;		/* that it sends to, */
	uint32_t incarnation;		/* and which life of its node */
	uint32_t length;
	uint16_t flags;			/* of the packet */
	uint8_t index;
	uint8_t slots_end;		/* behind the last slot that it awaits */
	bool sends;
	bool reduces;
	bool has_operand;		/* loaded, left by the one before it, or nothing, of no bytes */
	bool is_last;
	bool is_own;			/* what it loads is combined into what is there */
};

/* What a slot has had the last time. */
struct expected {
	struct muster_packet packet;
	struct muster_trace_record taken; /* that records it, but for time and number */
};

struct predicted {
	size_t bytes;
	bool is_mapped;			/* all of its ranges: it can run here */
	struct muster_cqe end;		/* but for the number */
	struct action *at;		/* of a context that is calm, and awaits a packet */
	uint64_t known;			/* bit per slot: last[slot] has come */
	struct expected *last;		/* by slot */
	struct action actions[];
};

#endif /* MUSTER_PREDICT_H */
