// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A schedule's meaning (meaning.h). No stages, slots, pulses or packets: transfers alone.
 */
#include "meaning.h"

#include <stdlib.h>
#include <string.h>

#include "arith.h"

struct what {
	const struct muster_schedule *schedule;
	uint8_t type, op;
	uint64_t count;
	uint8_t *const *vectors;
};

static void chunk_bytes(const struct what *what, uint32_t chunk, uint64_t *first, uint64_t *nr)
{
	muster_range_bytes(what->schedule, what->count, what->type, NULL, chunk, 1, first, nr);
}

static uint64_t step_bytes(const struct what *what, const struct muster_transfer *t, uint32_t nr)
{
	uint64_t first, len, bytes = 0;

	for (uint32_t i = 0; i < nr; i++) {
		chunk_bytes(what, t[i].chunk, &first, &len);
		bytes += len;
	}
	return bytes;
}

/* One step: everything that is sent is what was there before it. */
static void execute_step(const struct what *what, const struct muster_transfer *t, uint32_t nr)
{
	uint8_t *messages = malloc(step_bytes(what, t, nr) + 1);
	uint64_t first, len, at = 0;

	for (uint32_t i = 0; messages && i < nr; i++, at += len) {
		chunk_bytes(what, t[i].chunk, &first, &len);
		memcpy(messages + at, what->vectors[t[i].from] + first, len);
	}
	at = 0;
	for (uint32_t i = 0; messages && i < nr; i++, at += len) {
		uint8_t *into;

		chunk_bytes(what, t[i].chunk, &first, &len);
		into = what->vectors[t[i].to] + first;
		if (t[i].reduce)
			muster_arith(what->type, what->op, into, into, messages + at, len);
		else
			memcpy(into, messages + at, len);
	}
	free(messages);
}

void meaning_execute(const struct muster_schedule *s, uint8_t type, uint8_t op, uint64_t count,
		     uint8_t *const *vectors)
{
	const struct what what = { s, type, op, count, vectors };
	uint32_t begin, end;

	for (begin = 0; begin < s->nr_transfers; begin = end) {
		for (end = begin; end < s->nr_transfers &&
		     s->transfers[end].step == s->transfers[begin].step; end++)
			;
		execute_step(&what, &s->transfers[begin], end - begin);
	}
}
