// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Counting stages. Words are counted as they come in, one a cycle, from 1. */
#include "cycles.h"

enum {
	HEADERS = 14 + 20 + 8,	/* Ethernet, IPv4, UDP */
	DECIDING = HEADERS + 18,	/* bytes up to and with `from`, the last field that decides */
	ELEMENTS_AT = HEADERS + (int)sizeof(struct muster_bump_header),
	LOOK_UP = 2,		/* a block memory: address register, data register */
	ADDER_F64 = 11,		/* a pipelined double adder at 200 MHz in a Virtex-7 */
	COMPARE_F64 = 2,
	ALIGN = 1,		/* elements do not begin with a word */
};

static uint32_t adder(uint8_t type, uint8_t redop)
{
	if (type != MUSTER_DTYPE_F64)
		return 1;
	return redop == MUSTER_REDOP_SUM ? ADDER_F64 : COMPARE_F64;
}

void cycles_count(uint32_t width, uint8_t type, uint8_t redop, uint32_t operands,
		  struct cycles *cycles)
{
	uint32_t word = width / 8, element_word = ELEMENTS_AT / word;
	uint32_t decided, operand, start, result, first;

	cycles->parse = (DECIDING + word - 1) / word;
	cycles->look_up = LOOK_UP;
	cycles->decide = cycles->instruct = cycles->decode = cycles->leave = 1;
	cycles->adders = 0;
	decided = cycles->parse + LOOK_UP + 3;
	/*
	 * Adders begin when both operands are there, the one from the packet and the one that
	 * was read with the state. Whether theirs is the result is decided long before it is there.
	 */
	operand = cycles->parse + LOOK_UP + 1;
	start = element_word + 1 + ALIGN;
	start = start > operand ? start : operand;
	result = start + (operands - 1) * adder(type, redop);
	/* The head leaves so that the first result follows the last word of headers. */
	first = result > element_word ? result - element_word : 0;
	if (operands > 1 && first > decided)
		cycles->adders = first - decided;
	cycles->total = decided + cycles->adders + cycles->leave;
}
