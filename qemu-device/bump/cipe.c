// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The CIPE. Its adders are the engine's arithmetic: the same bits for the same tree. */
#include "cipe.h"

#include <errno.h>
#include <string.h>

#include "arith.h"

/* The result of one adder is the next one's operand; nothing waits for a whole packet. */
static int combine(uint64_t instruction, const uint8_t *const *operands, uint8_t *result,
		   uint32_t bytes)
{
	uint8_t type = (uint8_t)CIPE_GET(CIPE_TYPE, instruction);
	uint8_t redop = (uint8_t)CIPE_GET(CIPE_REDOP, instruction);
	uint32_t nr = (uint32_t)CIPE_GET(CIPE_OPERANDS, instruction);
	int ret = muster_arith(type, redop, result, operands[0], operands[1], bytes);

	for (uint32_t i = 2; i < nr && !ret; i++)
		ret = muster_arith(type, redop, result, result, operands[i], bytes);
	return ret;
}

int cipe_execute(uint64_t instruction, const uint8_t *const *operands, uint8_t *result,
		 uint32_t bytes)
{
	uint64_t nr = CIPE_GET(CIPE_OPERANDS, instruction);

	if (CIPE_GET(CIPE_WORDS, instruction) != (bytes + 7) / 8 || !nr || nr > CIPE_OPERANDS_MAX)
		return -EINVAL;
	switch (CIPE_GET(CIPE_OPCODE, instruction)) {
	case CIPE_PASS:
		if (nr != 1)
			return -EINVAL;
		memcpy(result, operands[0], bytes);
		return 0;
	case CIPE_COMBINE:
		return nr < 2 ? -EINVAL : combine(instruction, operands, result, bytes);
	default:
		return -EINVAL;
	}
}
