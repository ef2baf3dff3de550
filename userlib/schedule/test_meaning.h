/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a schedule means: its transfers executed on whole messages, step by step, as the host path
 * would. No stages, slots, pulses or packets: transfers alone. Everything else must have the same bits.
 */
#ifndef MUSTER_SCHEDULE_TEST_MEANING_H
#define MUSTER_SCHEDULE_TEST_MEANING_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arith.h"
#include "schedule.h"

struct meaning_of {
	const struct muster_schedule *schedule;
	uint8_t type, op;
	uint64_t count;
	uint8_t *const *vectors;
};

static inline void meaning_chunk(const struct meaning_of *what, uint32_t chunk, uint64_t *first, uint64_t *nr)
{
	muster_range_bytes(what->schedule, what->count, what->type, NULL, chunk, 1, first, nr);
}

static inline uint64_t meaning_step_bytes(const struct meaning_of *what, const struct muster_transfer *t, uint32_t nr)
{
	uint64_t first, len, bytes = 0;

	for (uint32_t i = 0; i < nr; i++) {
		meaning_chunk(what, t[i].chunk, &first, &len);
		bytes += len;
	}
	return bytes;
}

static inline uint32_t meaning_step_end(const struct muster_schedule *s, uint32_t begin)
{
	uint32_t end = begin;

	while (end < s->nr_transfers && s->transfers[end].step == s->transfers[begin].step)
		end++;
	return end;
}

/* What is sent in any one step. */
static inline uint64_t meaning_messages_bytes(const struct meaning_of *what)
{
	const struct muster_schedule *s = what->schedule;
	uint64_t most = 0;

	for (uint32_t begin = 0, end; begin < s->nr_transfers; begin = end) {
		uint64_t bytes;

		end = meaning_step_end(s, begin);
		bytes = meaning_step_bytes(what, &s->transfers[begin], end - begin);
		most = bytes > most ? bytes : most;
	}
	return most;
}

/* One step: everything that is sent is what was there before it. 0; the first error of what is combined. */
static inline int meaning_step(const struct meaning_of *what, const struct muster_transfer *t, uint32_t nr,
			       uint8_t *messages)
{
	uint64_t first, len, at = 0;
	int err = 0;

	for (uint32_t i = 0; i < nr; i++, at += len) {
		meaning_chunk(what, t[i].chunk, &first, &len);
		memcpy(messages + at, what->vectors[t[i].from] + first, len);
	}
	at = 0;
	for (uint32_t i = 0; !err && i < nr; i++, at += len) {
		uint8_t *into;

		meaning_chunk(what, t[i].chunk, &first, &len);
		into = what->vectors[t[i].to] + first;
		if (t[i].reduce)
			err = muster_arith(what->type, what->op, into, into, messages + at, len);
		else
			memcpy(into, messages + at, len);
	}
	return err;
}

/* Its transfers are listed; vectors: of each rank, count elements. 0; -ENOMEM; an error of muster_arith(). */
static inline int meaning_execute(const struct muster_schedule *s, uint8_t type, uint8_t op, uint64_t count,
				  uint8_t *const *vectors)
{
	const struct meaning_of what = { s, type, op, count, vectors };
	uint8_t *messages = malloc(meaning_messages_bytes(&what) + 1);
	int err = messages ? 0 : -ENOMEM;

	for (uint32_t begin = 0, end; begin < s->nr_transfers && !err; begin = end) {
		end = meaning_step_end(s, begin);
		err = meaning_step(&what, &s->transfers[begin], end - begin, messages);
	}
	free(messages);
	return err;
}

#endif /* MUSTER_SCHEDULE_TEST_MEANING_H */
