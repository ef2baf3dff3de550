/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For tests of lowered programs: a machine that executes the programs of all ranks as
 * Documentation/sequence.md says, in an order that a seed picks: several pulses of a
 * rank live at once, an open send reads its source at any later time, a store waits for
 * the open sends of what it overwrites. It may have no room for a message but that
 * which needs none: the slot needed next, when nothing keeps it from being stored at once.
 */
#ifndef MUSTER_SCHEDULE_TEST_MACHINE_H
#define MUSTER_SCHEDULE_TEST_MACHINE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arith.h"
#include "dev.h"
#include "build.h"

enum { RANKS_MAX = 32, JOB = 7, CONTEXT = 300 };

static struct muster_address members[RANKS_MAX];

static inline void members_init(void)
{
	for (uint32_t r = 0; r < RANKS_MAX; r++)
		members[r] = (struct muster_address){ .node = 1000 + r / 3, .vp = 5 + r };
}

/* ---- randomness from one seed ------------------------------------------------ */

static uint64_t seed;

static inline uint32_t random_below(uint32_t bound)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % bound;
}

/* ---- a case -------------------------------------------------------------------- */

struct rank {
	struct muster_program *program;
	uint8_t *in, *out;	/* equal: in place */
	uint8_t *part;		/* or NULL: what is needed of the whole goes to out */
	uint8_t *scratch;
	uint8_t *expected;
};

struct trial {
	const struct muster_schedule *schedule;	/* all transfers */
	const struct muster_schedule *lowered;	/* the same, or not listed */
	uint8_t type, op;
	uint64_t count;
	size_t bytes;
	struct rank ranks[RANKS_MAX];
};

/* ---- the machine ------------------------------------------------------------------ */

enum phase { BEGIN, COMBINE, STORE, SEND };

struct instance {
	bool live;
	uint32_t pulse;
	uint32_t step;			/* descriptor, counted from the stage's first */
	enum phase phase;
	uint32_t cursor;
	uint32_t taken;			/* of the current descriptor */
	bool open[MUSTER_SEQ_DESCS_MAX];
	uint8_t operand[MUSTER_MP_MAX];
};

struct message {
	bool filled;
	bool swap;
	uint32_t length;
	uint8_t *data;
};

struct place {
	uint32_t stage;			/* that runs */
	uint32_t next_pulse;
	uint32_t nr_slots;		/* of the stage */
	struct instance instances[MUSTER_PULSES_LIVE];
};

struct machine {
	struct trial *trial;
	bool tight;			/* no room but for the slot needed next, if it can be stored */
	uint32_t pulses_max;
	uint32_t stages;
	struct place places[RANKS_MAX];
	struct message *messages;	/* by rank, stage, pulse, slot */
};

static inline struct message *message_at(struct machine *m, uint32_t rank, uint32_t stage,
					 uint32_t pulse, uint32_t slot)
{
	assert_true(stage < m->stages && pulse < m->pulses_max && slot < MUSTER_SLOTS_MAX);
	return &m->messages[((rank * m->stages + stage) * m->pulses_max + pulse) *
				    MUSTER_SLOTS_MAX +
			    slot];
}

static inline const struct muster_desc *head_of(const struct machine *m, uint32_t rank)
{
	const struct muster_program *program = m->trial->ranks[rank].program;

	return &program->descs[program->stage_first[m->places[rank].stage]];
}

static inline uint32_t nr_slots(const struct muster_desc *d)
{
	uint32_t nr = d->cp_count;

	while (!(d->flags & MUSTER_DESC_CT))
		nr += (++d)->cp_count;
	return nr;
}

static inline uint32_t nr_pulses(const struct muster_desc *head)
{
	return head->kind == MUSTER_DESC_MP ? 1 : head->range.pulse_count;
}

/* The bytes of a descriptor that a pulse covers. */
static inline uint32_t slice(const struct muster_desc *d, uint32_t pulse, uint64_t *offset)
{
	uint64_t left;

	*offset = d->kind == MUSTER_DESC_MP ? 0 : (uint64_t)pulse * d->range.pulse_len;
	if (*offset >= d->length)
		return 0;
	left = d->length - *offset;
	return d->kind == MUSTER_DESC_RDMA && left > d->range.pulse_len ? d->range.pulse_len : left;
}

static inline uint8_t *range_at(struct machine *m, uint32_t rank, uint32_t space, uint64_t addr,
				uint64_t offset)
{
	struct rank *r = &m->trial->ranks[rank];

	assert_in_range(space, MUSTER_SPACE_IN, MUSTER_SPACE_PART);
	if (space == MUSTER_SPACE_OUT && !r->program->is_inline)
		assert_true(addr + offset <= r->program->out_bytes || r->in == r->out);
	if (space == MUSTER_SPACE_PART)
		return r->part + addr + offset;
	if (space == MUSTER_SPACE_SCRATCH)
		assert_true(addr + offset <= r->program->scratch_bytes);
	if (space == MUSTER_SPACE_SCRATCH)
		return r->scratch + addr + offset;
	return (space == MUSTER_SPACE_IN ? r->in : r->out) + addr + offset;
}

static inline uint8_t *source_of_send(struct machine *m, uint32_t rank, struct instance *inst,
				      const struct muster_desc *d, uint64_t offset)
{
	if (d->kind == MUSTER_DESC_MP)
		return inst->operand;
	if (d->store_key)
		return range_at(m, rank, d->store_key, d->store_addr, offset);
	return range_at(m, rank, d->range.load_key, d->range.load_addr, offset);
}

static inline bool overlaps(const uint8_t *a, uint32_t a_len, const uint8_t *b, uint32_t b_len)
{
	return a < b + b_len && b < a + a_len;
}

/* Whether [at, at + len) is the source of an open send of an instance. */
static inline bool is_being_sent(struct machine *m, uint32_t rank, struct instance *inst,
				 const uint8_t *at, uint32_t len)
{
	const struct muster_desc *head = head_of(m, rank);

	for (uint32_t i = 0; i <= inst->step && i < MUSTER_SEQ_DESCS_MAX; i++) {
		uint64_t offset;
		uint32_t sent;

		if (!inst->open[i])
			continue;
		sent = slice(&head[i], inst->pulse, &offset);
		if (overlaps(at, len, source_of_send(m, rank, inst, &head[i], offset), sent))
			return true;
	}
	return false;
}

/* A store waits for its own instance's sends; with others it must never meet. */
static inline bool may_store(struct machine *m, uint32_t rank, struct instance *inst,
			     const uint8_t *at, uint32_t len)
{
	for (int i = 0; i < MUSTER_PULSES_LIVE; i++) {
		struct instance *other = &m->places[rank].instances[i];

		if (other->live && other != inst)
			assert_false(is_being_sent(m, rank, other, at, len));
	}
	return !is_being_sent(m, rank, inst, at, len);
}

static inline void put(struct machine *m, uint32_t rank, struct instance *inst,
		       const struct muster_desc *d)
{
	uint32_t to = d->dst_vp - members[0].vp, slot = MUSTER_FIELD_GET(MUSTER_DEST_SEQ, d->dest);
	struct message *message;
	uint64_t offset;

	assert_true(to < m->trial->schedule->ranks);
	assert_int_equal(MUSTER_FIELD_GET(MUSTER_DEST_NODE, d->dest), members[to].node);
	message = message_at(m, to, d->stage, inst->pulse, slot);
	assert_false(message->filled || message->data);
	message->filled = true;
	message->swap = d->flags & MUSTER_DESC_SWAP_REMOTE_DATA;
	message->length = slice(d, inst->pulse, &offset);
	message->data = malloc(message->length + 1);
	memcpy(message->data, source_of_send(m, rank, inst, d, offset), message->length);
}

/* An operand in its own place is combined into what is there. */
static inline void load(const struct muster_desc *d, uint8_t *to, const uint8_t *from, uint32_t len)
{
	bool is_there = d->kind == MUSTER_DESC_RDMA || d->flags & MUSTER_DESC_SWAP_LOCAL_DATA;

	if (d->flags & MUSTER_DESC_REDUCE && !d->cp_count && is_there)
		assert_int_equal(muster_arith(d->signature.type, d->signature.op, to, to, from, len), 0);
	else
		memmove(to, from, len);
}

static inline bool begin(struct machine *m, uint32_t rank, struct instance *inst,
			 const struct muster_desc *d)
{
	uint64_t offset;
	uint32_t len = slice(d, inst->pulse, &offset);
	uint8_t *store;

	if (d->kind == MUSTER_DESC_MP) {
		if (d->range.load_key)
			load(d, inst->operand, range_at(m, rank, d->range.load_key, 0, 0), len);
	} else if (d->store_key) {
		store = range_at(m, rank, d->store_key, d->store_addr, offset);
		if (!may_store(m, rank, inst, store, len))
			return false;
		if (d->range.load_key && len)
			load(d, store, range_at(m, rank, d->range.load_key, d->range.load_addr, offset), len);
	}
	inst->taken = 0;
	inst->phase = COMBINE;
	return true;
}

static inline bool combine(struct machine *m, uint32_t rank, struct instance *inst,
			   const struct muster_desc *d)
{
	struct message *message;
	uint8_t *operand = inst->operand;
	uint64_t offset;
	uint32_t len = slice(d, inst->pulse, &offset);

	if (inst->taken == d->cp_count) {
		inst->phase = STORE;
		return true;
	}
	message = message_at(m, rank, d->stage, inst->pulse, inst->cursor);
	if (!message->filled)
		return false;
	assert_int_equal(message->length, len);
	if (d->kind == MUSTER_DESC_RDMA)
		operand = range_at(m, rank, d->store_key, d->store_addr, offset);
	if (message->swap || !(d->flags & MUSTER_DESC_REDUCE))
		memcpy(operand, message->data, len);
	else
		assert_int_equal(muster_arith(d->signature.type, d->signature.op, operand, operand, message->data, len),
				 0);
	message->filled = false;
	inst->cursor++;
	inst->taken++;
	return true;
}

static inline bool store(struct machine *m, uint32_t rank, struct instance *inst,
			 const struct muster_desc *d)
{
	if (d->kind == MUSTER_DESC_MP && d->store_key)
		memcpy(range_at(m, rank, d->store_key, d->store_addr, 0), inst->operand, d->length);
	inst->phase = SEND;
	return true;
}

static inline bool send_and_go_on(struct machine *m, uint32_t rank, struct instance *inst,
				  const struct muster_desc *d)
{
	if (d->flags & MUSTER_DESC_CP && d->kind == MUSTER_DESC_MP)
		put(m, rank, inst, d);
	else if (d->flags & MUSTER_DESC_CP)
		inst->open[inst->step] = true;
	inst->step++;
	inst->phase = BEGIN;
	return true;
}

static inline bool all_closed(const struct instance *inst)
{
	for (uint32_t i = 0; i < inst->step; i++)
		if (inst->open[i])
			return false;
	return true;
}

/* One thing that an instance can do: false if there is none. */
static inline bool advance(struct machine *m, uint32_t rank, struct instance *inst)
{
	const struct muster_desc *head = head_of(m, rank), *d = &head[inst->step];

	if (inst->step && head[inst->step - 1].flags & MUSTER_DESC_CT) {
		if (all_closed(inst))
			inst->live = false;
		return !inst->live;
	}
	switch (inst->phase) {
	case BEGIN:
		return begin(m, rank, inst, d);
	case COMBINE:
		return combine(m, rank, inst, d);
	case STORE:
		return store(m, rank, inst, d);
	default:
		return send_and_go_on(m, rank, inst, d);
	}
}

/* The oldest instance of a rank that awaits any slot. */
static inline struct instance *oldest_awaiting(struct place *place)
{
	struct instance *oldest = NULL;

	for (int i = 0; i < MUSTER_PULSES_LIVE; i++) {
		struct instance *inst = &place->instances[i];

		if (inst->live && inst->cursor < place->nr_slots &&
		    (!oldest || inst->pulse < oldest->pulse))
			oldest = inst;
	}
	return oldest;
}

/* Whether what comes into an instance's next slot could be stored at once. */
static inline bool can_be_stored(struct machine *m, uint32_t rank, struct instance *inst)
{
	const struct muster_desc *d = head_of(m, rank);
	uint64_t offset;
	uint32_t len;

	for (uint32_t slot = inst->cursor; slot >= d->cp_count; d++)
		slot -= d->cp_count;
	len = slice(d, inst->pulse, &offset);
	return !is_being_sent(m, rank, inst,
			      range_at(m, rank, d->store_key, d->store_addr, offset), len);
}

/* Whether the receiver needs this very slot next, for the oldest pulse that awaits any. */
static inline bool has_room(struct machine *m, const struct muster_desc *d, uint32_t pulse)
{
	uint32_t to = d->dst_vp - members[0].vp;
	struct place *place = &m->places[to];
	struct instance *oldest = oldest_awaiting(place);

	return oldest && place->stage == d->stage && oldest->pulse == pulse &&
	       oldest->cursor == MUSTER_FIELD_GET(MUSTER_DEST_SEQ, d->dest) &&
	       can_be_stored(m, to, oldest);
}

static inline bool close_send(struct machine *m, uint32_t rank, struct instance *inst, uint32_t i)
{
	const struct muster_desc *d = &head_of(m, rank)[i];

	if (!inst->open[i] || (m->tight && !has_room(m, d, inst->pulse)))
		return false;
	put(m, rank, inst, d);
	inst->open[i] = false;
	return true;
}

/* Start the next pulse, or go on to the next stage when all have ended. */
static inline bool start(struct machine *m, uint32_t rank)
{
	struct place *place = &m->places[rank];
	bool any_live = false;

	if (place->stage == m->stages)
		return false;
	for (int i = 0; i < MUSTER_PULSES_LIVE; i++) {
		any_live |= place->instances[i].live;
		if (place->instances[i].live || place->next_pulse == nr_pulses(head_of(m, rank)))
			continue;
		place->instances[i] =
			(struct instance){ .live = true, .pulse = place->next_pulse++ };
		place->nr_slots = nr_slots(head_of(m, rank));
		return true;
	}
	if (any_live)
		return false;
	place->stage++;
	place->next_pulse = 0;
	return true;
}

static inline bool run_rank(struct machine *m, uint32_t rank, bool everything)
{
	bool done = start(m, rank);

	for (int i = 0; i < MUSTER_PULSES_LIVE && m->places[rank].stage < m->stages; i++) {
		struct instance *inst = &m->places[rank].instances[i];

		for (uint32_t k = 0; inst->live && k < inst->step; k++)
			if (inst->open[k] && (everything || !random_below(3)))
				done |= close_send(m, rank, inst, k);
		for (uint32_t n = everything ? 1 : random_below(8); n && inst->live; n--)
			done |= advance(m, rank, inst);
	}
	return done;
}

static inline bool has_ended(const struct machine *m)
{
	for (uint32_t r = 0; r < m->trial->schedule->ranks; r++)
		if (m->places[r].stage < m->stages)
			return false;
	return true;
}

static inline void run(struct trial *trial, bool tight)
{
	struct machine m = { .trial = trial, .tight = tight, .pulses_max = 1 };
	uint32_t nr = trial->schedule->ranks, nr_messages;

	m.stages = trial->ranks[0].program->nr_stages;
	for (uint32_t r = 0; r < nr; r++)
		if (nr_pulses(head_of(&m, r)) > m.pulses_max)
			m.pulses_max = nr_pulses(head_of(&m, r));
	nr_messages = nr * m.stages * m.pulses_max * MUSTER_SLOTS_MAX;
	m.messages = calloc(nr_messages, sizeof(*m.messages));
	while (!has_ended(&m)) {
		uint32_t offset = random_below(nr);
		bool done = false;

		for (uint32_t i = 0; i < nr; i++)
			if (random_below(2))
				done |= run_rank(&m, (offset + i) % nr, false);
		for (uint32_t i = 0; i < nr && !done; i++)
			done |= run_rank(&m, i, true);
		if (!done)
			fail_msg("%s of %u ranks: every rank waits", trial->schedule->name, nr);
	}
	for (uint32_t i = 0; i < nr_messages; i++) {
		assert_false(m.messages[i].filled);
		free(m.messages[i].data);
	}
	free(m.messages);
}

#endif /* MUSTER_SCHEDULE_TEST_MACHINE_H */
