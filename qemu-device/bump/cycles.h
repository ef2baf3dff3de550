/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How many cycles a packet's head would spend in CFE and CIPE as logic: a count of
 * stages, not a measurement. The argument is in Documentation/bump.md.
 */
#ifndef MUSTER_BUMP_CYCLES_H
#define MUSTER_BUMP_CYCLES_H

#include <stdint.h>

#include "muster_bump.h"

enum { CYCLES_CLOCK_MHZ = 200 };	/* the paper's */

struct cycles {
	uint32_t parse;		/* until the words that decide are there */
	uint32_t look_up;	/* the operation's state, by group and id */
	uint32_t decide;	/* what is done, and where the packet goes */
	uint32_t instruct;	/* the instruction is put before the packet */
	uint32_t decode;	/* CIPE */
	uint32_t adders;	/* what the head waits for the first element, beyond its own way */
	uint32_t leave;
	uint32_t total;
};

/**
 * cycles_count() - of a packet that is combined with what is there.
 * @width: bits of the datapath: 64 or 256
 * @operands: combined at once: 2; with several local ranks as many as they are;
 *	1: passed on
 */
void cycles_count(uint32_t width, uint8_t type, uint8_t redop, uint32_t operands,
		  struct cycles *cycles);

#endif /* MUSTER_BUMP_CYCLES_H */
