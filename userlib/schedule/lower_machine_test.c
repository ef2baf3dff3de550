// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Lowered programs mean what the schedule means.
 *
 * The schedule is interpreted step by step on whole messages. Beside it a machine
 * executes the programs of all ranks as Documentation/sequence.md says, in an
 * order that a seed picks: several pulses of a rank live at once, an open send
 * reads its source at any later time, a store waits for the open sends of what it
 * overwrites. Both must end with the same bits, and the machine must end, even
 * where there is no room for a message but that which needs none: the slot needed
 * next, when nothing keeps it from being stored at once.
 */
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

static const char *const names[] = { "binomial", "recursive-doubling", "rabenseifner", "ring" };

static struct muster_address members[RANKS_MAX];

static void members_init(void)
{
	for (uint32_t r = 0; r < RANKS_MAX; r++)
		members[r] = (struct muster_address){ .node = 1000 + r / 3, .vp = 5 + r };
}

/* ---- randomness from one seed ------------------------------------------------ */

static uint64_t seed;

static uint32_t random_below(uint32_t bound)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % bound;
}

/* Floats whose sum depends on the order; other types: any bits. */
static void fill(uint8_t type, uint8_t *to, size_t bytes)
{
	size_t size = muster_dtype_size(type);

	for (size_t i = 0; i < bytes; i++)
		to[i] = random_below(256);
	for (size_t i = 0;
	     i + size <= bytes && (type == MUSTER_DTYPE_F32 || type == MUSTER_DTYPE_F64);
	     i += size) {
		double d = (double)random_below(1u << 30) / (1 + random_below(1u << 20));
		float f = d;

		memcpy(to + i, size == 8 ? (void *)&d : (void *)&f, size);
	}
}

/* ---- a case -------------------------------------------------------------------- */

struct rank {
	struct muster_program *program;
	uint8_t *in, *out;	/* equal: in place */
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

static void chunk_bytes(const struct trial *trial, uint32_t chunk, size_t *first, size_t *nr)
{
	uint64_t first_element, elements;

	muster_chunk_range(trial->count, trial->schedule->chunks, chunk, &first_element, &elements);
	*first = first_element * muster_dtype_size(trial->type);
	*nr = elements * muster_dtype_size(trial->type);
}

static void interpret_step(struct trial *trial, const struct muster_transfer *t, uint32_t nr,
			   uint8_t *messages)
{
	size_t first, len;

	for (uint32_t i = 0; i < nr; i++) {
		chunk_bytes(trial, t[i].chunk, &first, &len);
		memcpy(messages + i * trial->bytes, trial->ranks[t[i].from].expected + first, len);
	}
	for (uint32_t i = 0; i < nr; i++) {
		uint8_t *into;

		chunk_bytes(trial, t[i].chunk, &first, &len);
		into = trial->ranks[t[i].to].expected + first;
		if (!t[i].reduce)
			memcpy(into, messages + i * trial->bytes, len);
		else
			assert_int_equal(muster_arith(trial->type, trial->op, into, into,
						      messages + i * trial->bytes, len), 0);
	}
}

static void interpret(struct trial *trial)
{
	const struct muster_schedule *schedule = trial->schedule;
	uint32_t begin = 0, end;

	for (uint32_t r = 0; r < schedule->ranks; r++)
		memcpy(trial->ranks[r].expected, trial->ranks[r].in, trial->bytes);
	for (; begin < schedule->nr_transfers && trial->bytes; begin = end) {
		uint8_t *messages;

		for (end = begin; end < schedule->nr_transfers &&
		     schedule->transfers[end].step == schedule->transfers[begin].step; end++)
			;
		messages = malloc((end - begin) * trial->bytes);
		interpret_step(trial, &schedule->transfers[begin], end - begin, messages);
		free(messages);
	}
}

/* ---- what the engine demands of a program ---------------------------------------- */

static void assert_inline_valid(const struct muster_desc *d, const struct muster_desc *before)
{
	if (d->flags & MUSTER_DESC_SWAP_LOCAL_DATA)
		assert_true(before && before->length == d->length && !d->inline_len &&
			    !d->range.load_key);
	else
		assert_true(d->inline_len == d->length || (!d->inline_len && d->cp_count));
	assert_int_equal(!d->range.load_key, !d->inline_len);
	assert_true(d->length <= MUSTER_INLINE_MAX);
}

static void assert_rdma_valid(const struct muster_desc *d, const struct muster_desc *head)
{
	assert_int_equal(d->range.pulse_len, head->range.pulse_len);
	assert_int_equal(d->range.pulse_len % 64, 0);
	assert_in_range(d->range.pulse_len, 64, MUSTER_PULSE_MAX);
	assert_int_equal(!d->range.pulse_count, d != head);
	assert_true(d->length <= (uint64_t)head->range.pulse_len * head->range.pulse_count);
	assert_false(d->inline_len || d->flags & MUSTER_DESC_SWAP_LOCAL_DATA);
	if (d->cp_count)
		assert_int_not_equal(d->store_key, 0);
	else if (d->flags & MUSTER_DESC_CP || d->store_key)
		assert_int_not_equal(d->range.load_key, 0);
}

static void assert_sequence_valid(const struct trial *trial, uint32_t rank, uint32_t stage)
{
	const struct muster_program *program = trial->ranks[rank].program;
	uint32_t first = program->stage_first[stage], end = program->stage_first[stage + 1];
	const struct muster_desc *head = &program->descs[first];
	uint32_t slots = 0;

	assert_in_range(end - first, 1, MUSTER_SEQ_DESCS_MAX);
	for (uint32_t i = first; i < end; i++) {
		const struct muster_desc *d = &program->descs[i];

		assert_int_equal(d->kind, program->is_inline ? MUSTER_DESC_MP : MUSTER_DESC_RDMA);
		assert_true(d->flags & MUSTER_DESC_C);
		assert_int_equal(!(d->flags & MUSTER_DESC_CH), i != first);
		assert_int_equal(!(d->flags & MUSTER_DESC_CT), i != end - 1);
		assert_int_equal(!(d->flags & MUSTER_DESC_COLL_END),
				 i != end - 1 || stage != program->nr_stages - 1);
		assert_int_equal(d->stage, stage);
		assert_true(muster_signatures_agree(&d->signature,
						    &trial->ranks[0].program->descs[0].signature));
		assert_true(d->job == JOB && d->context == CONTEXT &&
			    d->src_vp == members[rank].vp);
		assert_true(d->cp_count <= MUSTER_SOURCES_MAX);
		assert_int_not_equal(d->store_key, MUSTER_SPACE_IN);
		slots += d->cp_count;
		if (program->is_inline)
			assert_inline_valid(d, i > first ? d - 1 : NULL);
		else
			assert_rdma_valid(d, head);
	}
	assert_true(slots <= MUSTER_SLOTS_MAX);
}

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
	uint8_t operand[MUSTER_INLINE_MAX];
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

static struct message *message_at(struct machine *m, uint32_t rank, uint32_t stage, uint32_t pulse,
				  uint32_t slot)
{
	assert_true(stage < m->stages && pulse < m->pulses_max && slot < MUSTER_SLOTS_MAX);
	return &m->messages[((rank * m->stages + stage) * m->pulses_max + pulse) *
				    MUSTER_SLOTS_MAX +
			    slot];
}

static const struct muster_desc *head_of(const struct machine *m, uint32_t rank)
{
	const struct muster_program *program = m->trial->ranks[rank].program;

	return &program->descs[program->stage_first[m->places[rank].stage]];
}

static uint32_t nr_slots(const struct muster_desc *d)
{
	uint32_t nr = d->cp_count;

	while (!(d->flags & MUSTER_DESC_CT))
		nr += (++d)->cp_count;
	return nr;
}

static uint32_t nr_pulses(const struct muster_desc *head)
{
	return head->kind == MUSTER_DESC_MP ? 1 : head->range.pulse_count;
}

/* The bytes of a descriptor that a pulse covers. */
static uint32_t slice(const struct muster_desc *d, uint32_t pulse, uint64_t *offset)
{
	uint64_t left;

	*offset = d->kind == MUSTER_DESC_MP ? 0 : (uint64_t)pulse * d->range.pulse_len;
	if (*offset >= d->length)
		return 0;
	left = d->length - *offset;
	return d->kind == MUSTER_DESC_RDMA && left > d->range.pulse_len ? d->range.pulse_len : left;
}

static uint8_t *range_at(struct machine *m, uint32_t rank, uint32_t space, uint64_t addr,
			 uint64_t offset)
{
	struct rank *r = &m->trial->ranks[rank];

	assert_in_range(space, MUSTER_SPACE_IN, MUSTER_SPACE_SCRATCH);
	if (space == MUSTER_SPACE_SCRATCH)
		assert_true(addr + offset <= r->program->scratch_bytes);
	if (space == MUSTER_SPACE_SCRATCH)
		return r->scratch + addr + offset;
	return (space == MUSTER_SPACE_IN ? r->in : r->out) + addr + offset;
}

static uint8_t *source_of_send(struct machine *m, uint32_t rank, struct instance *inst,
			       const struct muster_desc *d, uint64_t offset)
{
	if (d->kind == MUSTER_DESC_MP)
		return inst->operand;
	if (d->store_key)
		return range_at(m, rank, d->store_key, d->store_addr, offset);
	return range_at(m, rank, d->range.load_key, d->range.load_addr, offset);
}

static bool overlaps(const uint8_t *a, uint32_t a_len, const uint8_t *b, uint32_t b_len)
{
	return a < b + b_len && b < a + a_len;
}

/* Whether [at, at + len) is the source of an open send of an instance. */
static bool is_being_sent(struct machine *m, uint32_t rank, struct instance *inst,
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
static bool may_store(struct machine *m, uint32_t rank, struct instance *inst, const uint8_t *at,
		      uint32_t len)
{
	for (int i = 0; i < MUSTER_PULSES_LIVE; i++) {
		struct instance *other = &m->places[rank].instances[i];

		if (other->live && other != inst)
			assert_false(is_being_sent(m, rank, other, at, len));
	}
	return !is_being_sent(m, rank, inst, at, len);
}

static void put(struct machine *m, uint32_t rank, struct instance *inst,
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

static bool begin(struct machine *m, uint32_t rank, struct instance *inst,
		  const struct muster_desc *d)
{
	uint64_t offset;
	uint32_t len = slice(d, inst->pulse, &offset);
	uint8_t *store;

	if (d->kind == MUSTER_DESC_MP) {
		if (d->range.load_key)
			memcpy(inst->operand, range_at(m, rank, d->range.load_key, 0, 0), len);
	} else if (d->store_key) {
		store = range_at(m, rank, d->store_key, d->store_addr, offset);
		if (!may_store(m, rank, inst, store, len))
			return false;
		if (d->range.load_key && len)
			memmove(store, range_at(m, rank, d->range.load_key, d->range.load_addr, offset), len);
	}
	inst->taken = 0;
	inst->phase = COMBINE;
	return true;
}

static bool combine(struct machine *m, uint32_t rank, struct instance *inst,
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

static bool store(struct machine *m, uint32_t rank, struct instance *inst,
		  const struct muster_desc *d)
{
	if (d->kind == MUSTER_DESC_MP && d->store_key)
		memcpy(range_at(m, rank, d->store_key, d->store_addr, 0), inst->operand, d->length);
	inst->phase = SEND;
	return true;
}

static bool send_and_go_on(struct machine *m, uint32_t rank, struct instance *inst,
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

static bool all_closed(const struct instance *inst)
{
	for (int i = 0; i < MUSTER_SEQ_DESCS_MAX; i++)
		if (inst->open[i])
			return false;
	return true;
}

/* One thing that an instance can do: false if there is none. */
static bool advance(struct machine *m, uint32_t rank, struct instance *inst)
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
static struct instance *oldest_awaiting(struct place *place)
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
static bool can_be_stored(struct machine *m, uint32_t rank, struct instance *inst)
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
static bool has_room(struct machine *m, const struct muster_desc *d, uint32_t pulse)
{
	uint32_t to = d->dst_vp - members[0].vp;
	struct place *place = &m->places[to];
	struct instance *oldest = oldest_awaiting(place);

	return oldest && place->stage == d->stage && oldest->pulse == pulse &&
	       oldest->cursor == MUSTER_FIELD_GET(MUSTER_DEST_SEQ, d->dest) &&
	       can_be_stored(m, to, oldest);
}

static bool close_send(struct machine *m, uint32_t rank, struct instance *inst, uint32_t i)
{
	const struct muster_desc *d = &head_of(m, rank)[i];

	if (!inst->open[i] || (m->tight && !has_room(m, d, inst->pulse)))
		return false;
	put(m, rank, inst, d);
	inst->open[i] = false;
	return true;
}

/* Start the next pulse, or go on to the next stage when all have ended. */
static bool start(struct machine *m, uint32_t rank)
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

static bool run_rank(struct machine *m, uint32_t rank, bool everything)
{
	bool done = start(m, rank);

	for (int i = 0; i < MUSTER_PULSES_LIVE && m->places[rank].stage < m->stages; i++) {
		struct instance *inst = &m->places[rank].instances[i];

		for (uint32_t k = 0; inst->live && k < MUSTER_SEQ_DESCS_MAX; k++)
			if (inst->open[k] && (everything || !random_below(3)))
				done |= close_send(m, rank, inst, k);
		for (uint32_t n = everything ? 1 : random_below(8); n && inst->live; n--)
			done |= advance(m, rank, inst);
	}
	return done;
}

static bool has_ended(const struct machine *m)
{
	for (uint32_t r = 0; r < m->trial->schedule->ranks; r++)
		if (m->places[r].stage < m->stages)
			return false;
	return true;
}

static void run(struct trial *trial, bool tight)
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

/* ---- trials -------------------------------------------------------------------------- */

static void lower_all(struct trial *trial)
{
	char why[200] = "";

	for (uint32_t r = 0; r < trial->schedule->ranks; r++) {
		struct rank *rank = &trial->ranks[r];
		struct muster_lower_params params = {
			.rank = r, .count = trial->count, .type = trial->type, .op = trial->op,
			.job = JOB, .context = CONTEXT, .members = members,
			.in_place = rank->in == rank->out,
		};

		if (muster_schedule_lower(trial->lowered, &params, &rank->program, why,
					  sizeof(why)))
			fail_msg("%s of %u ranks: %s", trial->schedule->name,
				 trial->schedule->ranks, why);
		assert_true(rank->program->bytes == trial->bytes);
		assert_true(rank->program->scratch_bytes <= trial->bytes);
		rank->scratch = malloc(rank->program->scratch_bytes + 1);
		assert_int_equal(rank->program->nr_stages, trial->ranks[0].program->nr_stages);
		for (uint32_t stage = 0; stage < rank->program->nr_stages; stage++)
			assert_sequence_valid(trial, r, stage);
	}
}

static void trial_begin(struct trial *trial)
{
	trial->bytes = trial->count * muster_dtype_size(trial->type);
	for (uint32_t r = 0; r < trial->schedule->ranks; r++) {
		struct rank *rank = &trial->ranks[r];

		rank->in = malloc(trial->bytes);
		fill(trial->type, rank->in, trial->bytes);
		rank->out = random_below(3) ? malloc(trial->bytes) : rank->in;
		if (rank->out != rank->in)
			memset(rank->out, 0xa5, trial->bytes);
		rank->expected = malloc(trial->bytes);
	}
}

/* Whether the schedule leaves something to be compared in this rank's chunk. */
static bool has_result(const struct muster_schedule *schedule, uint32_t rank, uint32_t chunk)
{
	if (schedule->coll == MUSTER_COLL_REDUCE)
		return rank == schedule->root;
	if (schedule->coll == MUSTER_COLL_BROADCAST || schedule->ranks == 1)
		return true;
	for (uint32_t i = 0; i < schedule->nr_transfers; i++)
		if (schedule->transfers[i].to == rank && schedule->transfers[i].chunk == chunk)
			return true;
	return false;
}

static void assert_results(const struct trial *trial, uint32_t r)
{
	const struct muster_schedule *schedule = trial->schedule;
	const struct rank *rank = &trial->ranks[r];

	for (uint32_t chunk = 0; chunk < schedule->chunks; chunk++) {
		size_t first, len;

		chunk_bytes(trial, chunk, &first, &len);
		if (has_result(schedule, r, chunk) &&
		    memcmp(rank->out + first, rank->expected + first, len))
			fail_msg("%s %s of %u ranks, %lu elements of type %u: rank %u has other "
				 "bits "
				 "in chunk %u",
				 schedule->name, muster_coll_name(schedule->coll), schedule->ranks,
				 (unsigned long)trial->count, trial->type, r, chunk);
	}
}

static void trial_end(struct trial *trial)
{
	for (uint32_t r = 0; r < trial->schedule->ranks; r++) {
		struct rank *rank = &trial->ranks[r];

		assert_results(trial, r);
		if (rank->out != rank->in)
			free(rank->out);
		free(rank->in);
		free(rank->scratch);
		free(rank->expected);
		muster_program_free(rank->program);
	}
}

static void try_schedule(const struct muster_schedule *schedule,
			 const struct muster_schedule *lowered, uint8_t type, uint64_t count)
{
	bool barrier = schedule->coll == MUSTER_COLL_BARRIER;
	struct trial trial = {
		.schedule = schedule, .lowered = lowered, .count = barrier ? 0 : count,
		.type = barrier ? MUSTER_DTYPE_NONE : type,
		.op = barrier || schedule->coll == MUSTER_COLL_BROADCAST ? MUSTER_REDOP_NONE :
									    MUSTER_REDOP_SUM,
	};

	trial_begin(&trial);
	interpret(&trial);
	lower_all(&trial);
	run(&trial, random_below(2));
	trial_end(&trial);
}

/* Half of the time as suits. */
static struct muster_variant random_variant(void)
{
	struct muster_variant variant = { 0 };

	if (random_below(2))
		return variant;
	variant.memory = random_below(2);
	variant.barrier = random_below(2);
	if (random_below(2))
		variant.pulse_bytes = 64 * (1 + random_below(random_below(2) ? 8 : 512));
	return variant;
}

/* By rank, now and then from the list. count: of each chunk, or of the message. */
static void try_generator(const char *name, enum muster_coll coll, uint32_t ranks, uint8_t type,
			  uint64_t count, bool of_each)
{
	uint32_t root = muster_coll_rooted(coll) ? random_below(ranks) : 0;
	struct muster_schedule *listed, *by_rank;
	char why[200];

	if (muster_schedule_generate(name, coll, ranks, root, count, &listed, why, sizeof(why)))
		return;
	assert_int_equal(muster_schedule_by_rank(name, coll, ranks, root, count, &by_rank, why,
						 sizeof(why)), 0);
	listed->variant = by_rank->variant = random_variant();
	if (listed->variant.barrier)
		by_rank->variant.barrier = false;	/* stages are cut where transfers are listed */
	try_schedule(listed, random_below(4) ? by_rank : listed, type,
		     of_each ? count * listed->chunks - 1 : count);
	muster_schedule_free(by_rank);
	muster_schedule_free(listed);
}

static void try_all_generators(uint32_t ranks, uint8_t type, uint64_t count, bool of_each)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (enum muster_coll coll = MUSTER_COLL_BARRIER; coll <= MUSTER_COLL_ALLREDUCE;
		     coll++)
			try_generator(names[i], coll, ranks, type, count, of_each);
}

static const uint8_t types[] = { MUSTER_DTYPE_F64, MUSTER_DTYPE_F32, MUSTER_DTYPE_I64,
				 MUSTER_DTYPE_I8 };

static void generated_schedules_keep_their_bits(void **state)
{
	static const uint64_t counts[] = { 0, 1, 2, 7, 8, 9, 64, 1000, 20000 };

	(void)state;
	for (uint32_t ranks = 1; ranks <= RANKS_MAX; ranks = ranks == 17 ? 32 : ranks + 1) {
		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
			seed = ranks * 1000 + counts[i];
			try_all_generators(ranks, types[(ranks + i) % sizeof(types)], counts[i],
					   false);
		}
	}
}

static void messages_of_several_pulses_keep_their_bits(void **state)
{
	(void)state;
	for (uint32_t ranks = 1; ranks <= 9; ranks++) {
		seed = ranks;
		try_all_generators(ranks, MUSTER_DTYPE_F64, 4097, true);
		if (ranks < 6)
			try_all_generators(ranks, MUSTER_DTYPE_F32, 50000, true);
	}
}

/* Any transfers at all, far from any algorithm: what they mean is still defined. */
static struct muster_schedule *generate_noise(void)
{
	uint32_t ranks = 2 + random_below(7), chunks = 1 + random_below(6), step, n;
	struct muster_schedule *schedule = NULL;
	struct muster_builder builder;

	muster_builder_init(&builder, "noise", MUSTER_COLL_ALLREDUCE, ranks, chunks, 0);
	for (step = 1 + random_below(25); step; step--, muster_builder_step(&builder)) {
		for (n = 1 + random_below(step % 8 ? 2 : 12); n; n--) {
			uint32_t from = random_below(ranks);

			muster_builder_add(&builder, random_below(chunks), from,
					   (from + 1 + random_below(ranks - 1)) % ranks,
					   random_below(4));
		}
	}
	assert_int_equal(muster_builder_end(&builder, &schedule), 0);
	return schedule;
}

static void any_transfers_keep_their_bits(void **state)
{
	(void)state;
	for (uint64_t s = 0; s < 1000; s++) {
		struct muster_schedule *schedule;

		seed = s;
		schedule = generate_noise();
		schedule->variant = random_variant();
		try_schedule(schedule, schedule, MUSTER_DTYPE_F64, s % 16 ? random_below(40) : 9000);
		muster_schedule_free(schedule);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(generated_schedules_keep_their_bits),
		cmocka_unit_test(messages_of_several_pulses_keep_their_bits),
		cmocka_unit_test(any_transfers_keep_their_bits),
	};

	members_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
