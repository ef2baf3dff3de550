// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The lowering: from a schedule to one rank's descriptor sequences, as
 * Documentation/sequence.md reads them and Documentation/schedule.md explains.
 * It takes a schedule that the checker has passed; of others it makes some
 * program, never a fault.
 *
 * What all ranks decide alike is in part.c, and in stages.c where transfers are
 * listed. Then, stage by stage, this rank's messages become operations in the order
 * in which the engine shall execute them (lower_stage), and these are written as
 * descriptors (emit_stage). Where values are meanwhile is in lower_spaces.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "arith.h"
#include "dev.h"
#include "lower.h"

enum {
	PULSE_ALIGN = 64,		/* bytes; a multiple of every element's size */
	PULSE_PASSED = 32 << 10,	/* what is passed on goes in short pulses, so that links overlap */
};

/* ---- operations -------------------------------------------------------------- */

static bool is_last_stage(const struct lowering *l)
{
	return l->stage + 1 == l->program->nr_stages;
}

/* A new one after another, which stays where it is. */
static struct op *insert_op(struct lowering *l, uint32_t after, uint32_t chunk, uint32_t nr_chunks)
{
	const struct muster_cut *cut = l->params->cut;
	uint32_t index = ++l->nr_ops;
	struct op *op = &l->ops[index];
	uint64_t first, len;

	muster_range_bytes(l->schedule, l->params->count, l->params->type, cut ? cut->out : NULL,
			   chunk, nr_chunks, &first, &len);
	*op = (struct op){
		.desc = l->head, .first = chunk, .nr = nr_chunks, .next = l->ops[after].next,
	};
	op->desc.length = len;
	op->desc.range.load_addr = first;
	op->desc.store_addr = first;
	l->ops[after].next = index;
	if (l->last == after)
		l->last = index;
	return op;
}

/* What is still in the caller's in has its place and, where it is sent, its length there. */
static void load_from(struct lowering *l, struct op *op, uint8_t space, bool sends)
{
	const struct muster_cut *cut = l->params->cut;
	uint64_t first, len;

	op->desc.range.load_key = space;
	if (!cut || space != MUSTER_SPACE_IN)
		return;
	muster_range_bytes(l->schedule, l->params->count, l->params->type, cut->in, op->first,
			   op->nr, &first, &len);
	op->desc.range.load_addr = first;
	if (sends)
		op->desc.length = len;
}

static uint32_t index_of(const struct lowering *l, const struct op *op)
{
	return op - l->ops;
}

static bool is_new(const struct lowering *l, uint32_t chunk)
{
	return l->chunks[chunk].stage == l->stage + 1;
}

/* This rank has now the chunks' values in a space, by op. */
static void set_written(struct lowering *l, struct op *op, uint8_t space)
{
	op->desc.store_key = space;
	for (struct chunk *chunk = &l->chunks[op->first]; chunk < &l->chunks[op->first + op->nr];
	     chunk++) {
		chunk->space = space;
		chunk->stage = l->stage + 1;
		chunk->writer = chunk->last_op = index_of(l, op);
	}
}

static struct op *copy(struct lowering *l, uint32_t after, uint32_t chunk, uint32_t nr,
		       uint8_t space)
{
	struct op *op = insert_op(l, after, chunk, nr);

	load_from(l, op, l->chunks[chunk].space, false);
	set_written(l, op, space);
	return op;
}

/* ---- messages -------------------------------------------------------------------- */

/* The chunk of a message that this rank wrote last, in this stage; NULL: it wrote none. */
static struct chunk *newest(struct lowering *l, const struct muster_message *m)
{
	struct chunk *found = NULL;

	for (uint32_t i = m->first; i < m->first + m->nr; i++)
		if (is_new(l, i) && (!found || l->chunks[i].writer > found->writer))
			found = &l->chunks[i];
	return found;
}

static bool is_of(const struct op *op, const struct muster_message *m)
{
	return op->first == m->first && op->nr == m->nr;
}

static uint32_t run_end(const struct lowering *l, uint32_t first, uint32_t end, bool in)
{
	while (first < end && (l->chunks[first].space == MUSTER_SPACE_IN) == in)
		first++;
	return first;
}

/*
 * A range is in one place: where some of it has come to this rank, and some is still its own
 * contribution, that is copied first. A generator has room for it (part.c).
 */
static void bring_together(struct lowering *l, const struct muster_message *m)
{
	uint32_t end = m->first + m->nr, from = run_end(l, m->first, end, false);
	uint32_t to = run_end(l, from, end, true);

	if (to - from < m->nr && to > from)
		copy(l, l->last, from, to - from, l->chunks[from].first);
}

/*
 * The operation that shall send a range: the one that wrote it in this stage, if
 * it sends nothing yet, else a new one directly after those that did. What was
 * there before the stage is sent before anything is awaited.
 */
static struct op *sending_op(struct lowering *l, const struct muster_message *m)
{
	struct chunk *state = &l->chunks[m->first], *written;
	struct op *op;
	uint32_t after;

	bring_together(l, m);
	written = newest(l, m);
	after = written ? written->last_op : l->last_send_of_old;
	op = &l->ops[after];
	if (written && !(op->desc.flags & MUSTER_DESC_CP) && is_of(op, m))
		return op;
	if (muster_lower_is_copied_in(state) && l->home == MUSTER_SPACE_OUT && m->first != l->own) {
		op = copy(l, after, m->first, m->nr, state->first);
	} else {
		op = insert_op(l, after, m->first, m->nr);
		load_from(l, op, state->space, true);
	}
	for (uint32_t i = m->first; i < m->first + m->nr; i++)
		if (is_new(l, i))
			l->chunks[i].last_op = index_of(l, op);
	if (l->last_send_of_old == after)
		l->last_send_of_old = index_of(l, op);
	return op;
}

/* Whether these are the last messages with their chunks. */
static bool is_last(struct lowering *l, const struct muster_message *m)
{
	bool last = true;

	for (uint32_t i = m->first; i < m->first + m->nr; i++)
		last &= !--l->chunks[i].left;
	return last;
}

static const struct muster_address *address_of(const struct muster_lower_params *params,
						uint32_t rank)
{
	return &params->addresses[params->ranks ? params->ranks[rank] : rank];
}

static bool is_own(const struct lowering *l, const struct muster_message *m)
{
	return m->peer == l->params->rank;
}

static void add_send(struct lowering *l, const struct muster_message *m)
{
	const struct muster_address *to = address_of(l->params, m->peer);
	struct muster_desc *desc = &sending_op(l, m)->desc;

	desc->flags |= MUSTER_DESC_CP;
	if (!m->reduce)
		desc->flags |= MUSTER_DESC_SWAP_REMOTE_DATA;
	desc->dest = MUSTER_FIELD_PREP(MUSTER_DEST_NODE, to->node) |
		     MUSTER_FIELD_PREP(MUSTER_DEST_SEQ, m->slot);
	desc->dst_vp = to->vp;
	muster_lower_set_sent(l, m);
	is_last(l, m);
}

/* Whether one more packet can be combined where the last one was: nothing was sent since. */
static bool can_join(const struct lowering *l, const struct op *op, const struct muster_message *m,
		     uint16_t reduce)
{
	if (!l->last_receive || !is_of(op, m) || op->desc.cp_count == MUSTER_SOURCES_MAX ||
	    op->desc.flags & MUSTER_DESC_CP || (op->desc.flags & MUSTER_DESC_REDUCE) != reduce)
		return false;
	for (uint32_t i = m->first; i < m->first + m->nr; i++)
		if (l->chunks[i].last_op != l->last_receive)
			return false;
	return true;
}

static void add_receive(struct lowering *l, const struct muster_message *m)
{
	bool reduces = m->reduce && muster_coll_row(l->schedule->coll)->has_data;
	uint16_t reduce = reduces ? MUSTER_DESC_REDUCE : 0;
	struct chunk *chunk = &l->chunks[m->first];
	struct op *op = &l->ops[l->last_receive];
	bool last = is_last(l, m);

	if (reduces)
		bring_together(l, m);
	if (!can_join(l, op, m, reduce)) {
		op = insert_op(l, l->last, m->first, m->nr);
		op->desc.flags |= reduce;
		op->desc.range.load_key = reduces ? chunk->space : MUSTER_SPACE_NONE;
		l->last_receive = index_of(l, op);
	}
	op->desc.cp_count++;
	if (last && m->nr == 1 && l->home == MUSTER_SPACE_PART && muster_lower_is_needed(l, m->first))
		set_written(l, op, MUSTER_SPACE_PART);
	else
		set_written(l, op, muster_lower_space_for(chunk, m->step));
}

/* What this rank had before the step, which its own message has kept there. */
static void add_own(struct lowering *l, const struct muster_message *m)
{
	struct op *op = insert_op(l, l->last, m->first, m->nr);
	const struct chunk *chunk = &l->chunks[m->first];

	op->desc.flags |= MUSTER_DESC_REDUCE;
	load_from(l, op, chunk->sent_space, false);
	set_written(l, op, muster_lower_space_for(chunk, m->step));
	is_last(l, m);
}

/* There is nothing to send, but what it has is not to be stored over, nor combined further where it is. */
static void keep_own(struct lowering *l, const struct muster_message *m)
{
	muster_lower_set_sent(l, m);
	l->last_receive = 0;
	is_last(l, m);
}

/* As many as there is room for: there are stages enough for all. */
static void copy_rest(struct lowering *l)
{
	for (; l->next_copy < l->schedule->chunks; l->next_copy++) {
		if (!muster_lower_is_elsewhere(l, l->next_copy))
			continue;
		if (l->nr_ops == MUSTER_SEQ_DESCS_MAX)
			return;
		copy(l, l->last, l->next_copy, 1, l->home);
	}
}

/* What is sent from where it is, is copied behind that, while others are waited for. */
static void copy_own(struct lowering *l)
{
	if (l->own == MUSTER_NOBODY || l->nr_ops == MUSTER_SEQ_DESCS_MAX)
		return;
	if (l->chunks[l->own].space == MUSTER_SPACE_IN)
		copy(l, l->last_send_of_old, l->own, 1, l->home);
	l->own = MUSTER_NOBODY;
}

static void lower_stage(struct lowering *l)
{
	uint32_t nr_slots = 0;

	l->nr_ops = l->last = l->last_send_of_old = l->last_receive = 0;
	l->ops[0].next = 0;
	for (; l->has_message && l->message.stage == l->stage; muster_lower_walk_on(l)) {
		if (is_own(l, &l->message)) {
			(l->message.is_send ? keep_own : add_own)(l, &l->message);
			continue;
		}
		if (l->message.is_send) {
			add_send(l, &l->message);
			continue;
		}
		add_receive(l, &l->message);
		l->program->sources[l->stage][nr_slots++ % MUSTER_SLOTS_MAX] = l->message.peer;
	}
	copy_own(l);
	if (!l->program->is_inline && l->stage >= l->stages.first_copy)
		copy_rest(l);
}

/* ---- descriptors --------------------------------------------------------------- */

/*
 * Inline, the operand stays in the instance from one descriptor to the next: the
 * first takes it from the caller, the last stores it. A copy needs no operand; one in its
 * own place is taken from the caller once more. What is small comes with the descriptor.
 */
static void emit_inline(const struct lowering *l, struct muster_desc *desc, bool first, bool last)
{
	const struct muster_coll_row *row = muster_coll_row(l->schedule->coll);
	bool has_result = row->has_data && muster_lower_is_needed(l, 0), is_small = l->program->is_small;
	bool copies = desc->cp_count && !(desc->flags & MUSTER_DESC_REDUCE);
	bool is_own = !desc->cp_count && desc->flags & MUSTER_DESC_REDUCE;
	bool lies_in_out = l->params->in_place && !l->chunks[0].stage && !row->prefix;

	desc->range.load_key = desc->store_key = MUSTER_SPACE_NONE;
	if (((first && !copies) || is_own) && desc->length) {
		desc->range.load_key = is_small || !l->params->in_place ? MUSTER_SPACE_IN : MUSTER_SPACE_OUT;
		desc->inline_len = is_small ? desc->length : 0;
	}
	if (!first && !copies)
		desc->flags |= MUSTER_DESC_SWAP_LOCAL_DATA;
	if (last && has_result && !lies_in_out && desc->length)
		desc->store_key = MUSTER_SPACE_OUT;
}

/* Nothing is read that was not stored there before, or is the caller's. */
static void measure_spaces(struct muster_program *program, const struct muster_desc *desc)
{
	uint64_t end = desc->store_addr + desc->length;

	if (desc->store_key == MUSTER_SPACE_SCRATCH && end > program->scratch_bytes)
		program->scratch_bytes = end;
	if (desc->store_key == MUSTER_SPACE_OUT && end > program->out_bytes)
		program->out_bytes = end;
}

/* It sends what it awaits; or, directly behind such a one, the same to another rank. */
static bool sends_on(const struct muster_desc *desc, bool first)
{
	const struct muster_desc *before = desc - 1;

	if (!(desc->flags & MUSTER_DESC_CP))
		return false;
	if (desc->cp_count)
		return desc->store_key != MUSTER_SPACE_NONE;
	return !first && before->flags & MUSTER_DESC_FORWARD && desc->store_key == MUSTER_SPACE_NONE &&
	       desc->length == before->length &&
	       desc->range.load_addr == before->store_addr &&
	       desc->range.load_key == (before->cp_count ? before->store_key : before->range.load_key);
}

static void emit(struct lowering *l, const struct op *op, bool first, bool last)
{
	struct muster_desc *desc = &l->program->descs[l->program->nr_descs++];

	*desc = op->desc;
	desc->stage = l->stage;
	if (!l->program->is_inline)
		measure_spaces(l->program, desc);
	if (l->program->is_inline)
		emit_inline(l, desc, first, last && is_last_stage(l));
	else if (l->params->forwards && sends_on(desc, first))
		desc->flags |= MUSTER_DESC_FORWARD;
	if (first)
		desc->flags |= MUSTER_DESC_CH;
	if (first && !l->program->is_inline)
		desc->range.pulse_count = l->pulse_count;
	if (last)
		desc->flags |= MUSTER_DESC_CT;
	if (last && is_last_stage(l))
		desc->flags |= MUSTER_DESC_COLL_END;
}

/* Nothing to do, but the stage has its number all the same. */
static void emit_idle(struct lowering *l)
{
	struct op *op = insert_op(l, 0, 0, 1);

	if (!l->program->is_inline)
		op->desc.length = 0;
	emit(l, op, true, true);
}

/* Of two idle stages or more the first one's descriptor is for all. */
static bool join_idle(struct lowering *l)
{
	struct muster_desc *desc = &l->program->descs[l->program->nr_descs - 1];

	if (!l->params->idles || l->program->is_inline || !l->was_idle || l->stage % MUSTER_STAGES_TELL == 0)
		return false;
	desc->range.pulse_count = 1;
	desc->range.numbers += desc->range.numbers ? 1 : 2;
	if (is_last_stage(l))
		desc->flags |= MUSTER_DESC_COLL_END;
	return true;
}

static void emit_stage(struct lowering *l)
{
	bool idle = !l->nr_ops;

	l->program->stage_first[l->stage] = l->program->nr_descs;
	if (idle && !join_idle(l))
		emit_idle(l);
	else if (!idle)
		for (uint32_t i = l->ops[0].next; i; i = l->ops[i].next)
			emit(l, &l->ops[i], i == l->ops[0].next, !l->ops[i].next);
	l->program->stage_first[l->stage + 1] = l->program->nr_descs;
	l->was_idle = idle;
}

/* ---- the whole ------------------------------------------------------------------- */

static uint64_t divide_up(uint64_t a, uint64_t b)
{
	return a / b + (a % b != 0);
}

/* Bytes of the longest chunk. */
static uint64_t longest_chunk(const struct lowering *l)
{
	const struct muster_schedule *schedule = l->schedule;
	const struct muster_cut *cut = l->params->cut;
	uint64_t nr;

	if (cut)
		nr = divide_up(cut->longest, muster_schedule_each(schedule));
	else
		nr = divide_up(l->params->count, schedule->chunks);
	return nr * muster_dtype_size(l->params->type);
}

static uint32_t pulse_max(const struct lowering *l)
{
	uint32_t bytes = l->schedule->variant.pulse_bytes;

	if (!bytes && l->schedule->ranks > 2)
		bytes = l->params->pulse_bytes ? l->params->pulse_bytes : PULSE_PASSED;
	if (!bytes)
		bytes = MUSTER_PULSE_MAX;
	return bytes < MUSTER_PULSE_MAX ? bytes : MUSTER_PULSE_MAX;
}

/*
 * A message of several chunks is one pulse: a part of it may be sent on by itself, and
 * what a pulse sends must not depend on others.
 */
static uint32_t grain_of(const struct lowering *l)
{
	uint64_t longest = longest_chunk(l), grain = l->schedule->chunks;

	if (!l->schedule->generator)
		return 1;
	if (longest && pulse_max(l) / longest < grain)
		grain = pulse_max(l) / longest;
	return grain ? grain : 1;
}

/* As few pulses as can be, of about the same length, of whole packets. */
static int cut_pulses(struct lowering *l)
{
	uint64_t longest = longest_chunk(l) * l->grain, count, align;

	count = longest ? divide_up(longest, pulse_max(l)) : 1;
	if (count > MUSTER_PULSE_COUNT_MAX) {
		snprintf(l->why, l->why_len,
			 "step 0: a chunk of %" PRIu64 " bytes has more than %d pulses "
			 "(MUSTER_PULSE_COUNT_MAX)",
			 longest, MUSTER_PULSE_COUNT_MAX);
		return -E2BIG;
	}
	align = longest > MUSTER_MTU && pulse_max(l) % MUSTER_MTU == 0 ? MUSTER_MTU : PULSE_ALIGN;
	l->head.range.pulse_len =
		longest ? divide_up(divide_up(longest, count), align) * align : align;
	/* Longer by the alignment, so that there may be fewer. */
	l->pulse_count = longest ? divide_up(longest, l->head.range.pulse_len) : 1;
	return 0;
}

static int set_head(struct lowering *l)
{
	const struct muster_lower_params *params = l->params;

	l->head = (struct muster_desc){
		.kind = l->program->is_inline ? MUSTER_DESC_MP : MUSTER_DESC_RDMA,
		.flags = MUSTER_DESC_C,
		.src_vp = address_of(params, params->rank)->vp,
		.job = params->job,
		.context = params->context,
		.signature = muster_signature(l->schedule->coll, params->type, params->op,
					      l->schedule->root, params->count,
					      muster_schedule_hash(l->schedule)),
	};
	return l->program->is_inline ? 0 : cut_pulses(l);
}

/* Inline, the caller's contribution is all that a rank can come back to. */
static bool comes_back_later(const struct muster_schedule *schedule)
{
	const struct muster_transfer *t = schedule->transfers;
	uint64_t i = 0;

	while (i < schedule->nr_transfers && !(t[i].from == t[i].to && t[i].step))
		i++;
	return i < schedule->nr_transfers;
}

static int measure(struct lowering *l)
{
	const struct muster_schedule *schedule = l->schedule;
	struct muster_program *program = l->program;
	int err;

	if (muster_coll_in_place(schedule->coll) && !l->params->in_place) {
		snprintf(l->why, l->why_len, "step 0: %s is lowered in place only",
			 muster_coll_name(schedule->coll));
		return -E2BIG;
	}
	if (__builtin_mul_overflow(l->params->count, muster_dtype_size(l->params->type),
				   &program->bytes)) {
		snprintf(l->why, l->why_len,
			 "step 0: %" PRIu64 " elements are more than 2^64 bytes", l->params->count);
		return -E2BIG;
	}
	l->grain = grain_of(l);
	err = muster_stages_cut(schedule, l->grain, &l->stages, l->why, l->why_len);
	if (err)
		return err;
	program->nr_stages = l->stages.nr;
	/*
	 * From one stage to the next data goes through memory, where there is any. Of one chunk
	 * alone: no rank begins or ends with a part of it.
	 */
	program->is_inline = schedule->chunks == 1 && !schedule->own && program->bytes <= MUSTER_MP_MAX &&
			     muster_coll_chunks_unit(schedule->coll, 2) == 1 &&
			     !muster_coll_in_place(schedule->coll) &&
			     (!schedule->variant.memory || !program->bytes) &&
			     (program->nr_stages == 1 || !program->bytes) && !comes_back_later(schedule);
	program->is_small = program->is_inline && program->bytes <= MUSTER_INLINE_MAX;
	if (!program->is_inline)
		err = muster_stages_copy(schedule, &l->stages, l->why, l->why_len);
	program->nr_stages = l->stages.nr;
	if (l->params->parts && muster_coll_row(schedule->coll)->needs == MUSTER_WHO_OWNER)
		l->home = MUSTER_SPACE_PART;
	return err ? err : set_head(l);
}

static int allocate(struct lowering *l, size_t room)
{
	struct muster_program *program = l->program;

	room += program->nr_stages;	/* a stage may have nothing to do */
	program->stage_first = calloc(program->nr_stages + 1, sizeof(*program->stage_first));
	program->descs = calloc(room, sizeof(*program->descs));
	program->sources = calloc(program->nr_stages, sizeof(*program->sources));
	return program->stage_first && program->descs && program->sources ? 0 : -ENOMEM;
}

static int lower(struct lowering *l)
{
	size_t room;
	int err = measure(l);

	if (!err)
		err = muster_lower_set_spaces(l, &room);
	if (!err)
		err = allocate(l, room);
	if (!err)
		err = muster_lower_walk_begin(l);
	if (err)
		return err;
	for (l->stage = 0; l->stage < l->program->nr_stages; l->stage++) {
		lower_stage(l);
		emit_stage(l);
	}
	muster_part_end(&l->part);
	return 0;
}

int muster_schedule_lower(const struct muster_schedule *schedule,
			  const struct muster_lower_params *params,
			  struct muster_program **program, char *why, size_t why_len)
{
	struct lowering l = {
		.schedule = schedule, .params = params, .home = MUSTER_SPACE_OUT,
		.own = MUSTER_NOBODY, .why = why, .why_len = why_len,
	};
	int err = -ENOMEM;

	l.program = calloc(1, sizeof(*l.program));
	l.chunks = calloc(schedule->chunks, sizeof(*l.chunks));
	if (l.program && l.chunks)
		err = lower(&l);
	free(l.chunks);
	if (err) {
		if (err == -ENOMEM)
			snprintf(why, why_len, "no memory to lower a schedule of %" PRIu32 " ranks",
				 schedule->ranks);
		muster_program_free(l.program);
		return err;
	}
	*program = l.program;
	return 0;
}

void muster_program_free(struct muster_program *program)
{
	if (!program)
		return;
	free(program->stage_first);
	free(program->descs);
	free(program->sources);
	free(program);
}
