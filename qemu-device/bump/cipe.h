/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The collective instruction processing engine (CIPE): what happens to a packet's
 * elements. The CFE puts an instruction of 64 bits before the packet; its first
 * half rewrites the header, its second says which adders the elements go through.
 */
#ifndef MUSTER_BUMP_CIPE_H
#define MUSTER_BUMP_CIPE_H

#include <stdint.h>

#define CIPE_MESSAGE		0xff00000000000000u	/* enum muster_bump_message to be written */
#define CIPE_WORDS		0x00ff000000000000u	/* of 8 bytes of elements; rounded up */
#define CIPE_UDP_PORT		0x0000ffff00000000u	/* destination to be written */
#define CIPE_OPCODE		0x00000000ff000000u	/* enum cipe_opcode */
#define CIPE_TYPE		0x0000000000ff0000u	/* enum muster_dtype */
#define CIPE_REDOP		0x000000000000ff00u	/* enum muster_redop */
#define CIPE_OPERANDS		0x00000000000000ffu	/* how many: the packet and buffers */

#define CIPE_GET(mask, v)	(((v) & (mask)) >> __builtin_ctzll(mask))
#define CIPE_PREP(mask, v)	(((uint64_t)(v) << __builtin_ctzll(mask)) & (mask))

enum cipe_opcode {
	CIPE_PASS = 1,		/* the first operand, as it is */
	CIPE_COMBINE = 2,	/* the operands in their order; each further one in an adder of its own */
};

enum { CIPE_OPERANDS_MAX = 16 };

/* The instruction of a packet whose elements are there already. */
static inline uint64_t cipe_pass(uint8_t message, uint16_t udp_port, uint32_t bytes)
{
	return CIPE_PREP(CIPE_MESSAGE, message) | CIPE_PREP(CIPE_WORDS, (bytes + 7) / 8) |
	       CIPE_PREP(CIPE_UDP_PORT, udp_port) | CIPE_PREP(CIPE_OPCODE, CIPE_PASS) |
	       CIPE_PREP(CIPE_OPERANDS, 1);
}

/**
 * cipe_execute() - run an instruction on operands of `bytes` bytes each.
 * @result: of as many bytes; no operand.
 * Return: 0; -EINVAL: there is no such instruction; nothing is written.
 */
int cipe_execute(uint64_t instruction, const uint8_t *const *operands, uint8_t *result,
		 uint32_t bytes);

#endif /* MUSTER_BUMP_CIPE_H */
