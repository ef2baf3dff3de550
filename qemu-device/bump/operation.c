// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The CFE's state machine: an operation goes through the states of its program as
 * far as it has heard what they await. Each step of it is an instruction for the
 * CIPE; what is sent is kept, because it may be lost.
 */
#include "internal.h"

enum { STEP_FAILED = 0xff };	/* in place of a step: the whole operation */

/* ---- instructions ---- */

static uint64_t instruction(const struct muster_bump *bump, const struct operation *op,
			    uint32_t operands)
{
	return CIPE_PREP(CIPE_MESSAGE, MUSTER_BUMP_DATA) |
	       CIPE_PREP(CIPE_WORDS, (op->bytes + 7) / 8) |
	       CIPE_PREP(CIPE_UDP_PORT, bump->config.udp_port) |
	       CIPE_PREP(CIPE_OPCODE, operands > 1 && op->bytes ? CIPE_COMBINE : CIPE_PASS) |
	       CIPE_PREP(CIPE_TYPE, op->common.type) | CIPE_PREP(CIPE_REDOP, op->common.redop) |
	       CIPE_PREP(CIPE_OPERANDS, op->bytes ? operands : 1);
}

/* The operands combined, in their order; those that are not there left out. NULL: no memory. */
static struct buffer *combine(struct muster_bump *bump, const struct operation *op,
			      struct buffer *const *buffers, uint32_t nr)
{
	const uint8_t *operands[CIPE_OPERANDS_MAX];
	struct buffer *only = NULL, *result;
	uint32_t there = 0;

	for (uint32_t i = 0; i < nr; i++) {
		if (!buffers[i])
			continue;
		only = buffers[i];
		operands[there++] = buffers[i]->data;
	}
	if (there == 1)
		return buffer_get(only);
	result = buffer_new(bump, NULL, op->bytes);
	if (!result)
		return NULL;
	if (cipe_execute(instruction(bump, op, there), operands, result->data, op->bytes)) {
		buffer_put(bump, result);	/* not reached: requests are checked */
		return NULL;
	}
	return result;
}

static bool set_register(struct muster_bump *bump, struct operation *op, enum register_name name,
			 struct buffer *value)
{
	if (!value)
		return false;
	buffer_put(bump, op->registers[name]);
	op->registers[name] = value;
	return true;
}

/* to = first op second */
static bool fold(struct muster_bump *bump, struct operation *op, enum register_name to,
		 struct buffer *first, struct buffer *second)
{
	struct buffer *const both[] = { first, second };

	return !first && !second ? true : set_register(bump, op, to, combine(bump, op, both, 2));
}

/* Both or neither, as it may have to be done again. */
static bool fold_before(struct muster_bump *bump, struct operation *op, struct buffer *heard)
{
	struct buffer **reg = op->registers;
	struct buffer *const total[] = { reg[REGISTER_TOTAL], heard };
	struct buffer *const before[] = { heard, reg[REGISTER_BEFORE] };
	struct buffer *new_total = combine(bump, op, total, 2);
	struct buffer *new_before = combine(bump, op, before, 2);

	if (!new_total || !new_before) {
		buffer_put(bump, new_total);
		buffer_put(bump, new_before);
		return false;
	}
	set_register(bump, op, REGISTER_TOTAL, new_total);
	return set_register(bump, op, REGISTER_BEFORE, new_before);
}

/* ---- what states do ---- */

/* False: there is no memory; it is tried again. */
static bool act(struct muster_bump *bump, struct operation *op, const struct state *state,
		struct buffer *heard)
{
	struct buffer **reg = op->registers;

	switch ((enum state_action)state->does) {
	case DO_NOTHING:
		return true;
	case DO_FOLD_BEFORE:
		return fold_before(bump, op, heard);
	case DO_FOLD:
		return fold(bump, op, REGISTER_TOTAL, reg[REGISTER_TOTAL], heard);
	case DO_REPLACE:
		return set_register(bump, op, REGISTER_TOTAL, buffer_get(heard));
	case DO_BEFORE:
		return set_register(bump, op, REGISTER_BEFORE, buffer_get(heard));
	case DO_RUNNING:
		return set_register(bump, op, REGISTER_RUNNING, buffer_get(heard));
	case DO_CLOSE:
		return fold(bump, op, REGISTER_TOTAL, reg[REGISTER_BEFORE], reg[REGISTER_TOTAL]);
	case DO_DESCEND:
		return fold(bump, op, REGISTER_RUNNING, reg[REGISTER_BEFORE], reg[REGISTER_OWN]);
	case DO_CHILD:
		return fold(bump, op, REGISTER_RUNNING, reg[REGISTER_RUNNING],
			    op->heard[state->arg]);
	case DO_MERGE:
		return fold(bump, op, REGISTER_BEFORE, reg[REGISTER_RUNNING],
			    reg[REGISTER_BEFORE]);
	}
	return true;
}

static struct buffer *what_to_say(struct muster_bump *bump, struct operation *op,
				  enum state_what what)
{
	struct buffer **reg = op->registers;
	struct buffer *const before_total[] = { reg[REGISTER_BEFORE], reg[REGISTER_TOTAL] };
	struct buffer *const before_own[] = { reg[REGISTER_BEFORE], reg[REGISTER_OWN] };
	struct buffer *const running_total[] = { reg[REGISTER_RUNNING], reg[REGISTER_TOTAL] };

	switch (what) {
	case SAY_NOTHING:
		return buffer_new(bump, NULL, 0);
	case SAY_TOTAL:
		return buffer_get(reg[REGISTER_TOTAL]);
	case SAY_BEFORE_TOTAL:
		return combine(bump, op, before_total, 2);
	case SAY_BEFORE_OWN:
		return combine(bump, op, before_own, 2);
	case SAY_RUNNING:
		return buffer_get(reg[REGISTER_RUNNING]);
	case SAY_RUNNING_TOTAL:
		return combine(bump, op, running_total, 2);
	}
	return NULL;
}

/* ---- packets to other bumps ---- */

static struct muster_bump_header data_header(const struct operation *op, uint32_t step)
{
	struct muster_bump_header header = op->common;

	header.status = op->status;
	header.step = (uint8_t)step;
	header.from = htole16(op->group->self);
	header.rank = htole16(op->culprit);
	header.local_rank = header.local_ranks = 0;
	return header;
}

static void send_to(struct muster_bump *bump, struct muster_bump_header *header, uint16_t element,
		    const struct buffer *data)
{
	uint8_t port = bump->routes[element];

	header->to = htole16(element);
	if (port != MUSTER_BUMP_NO_PORT)
		cfe_send(bump, MUSTER_BUMP_DATA, 1u << port, header, data);
}

void operation_say(struct muster_bump *bump, const struct operation *op, uint32_t at)
{
	const struct state *state = &op->program.states[at];
	struct muster_bump_header header = data_header(op, state->step);

	send_to(bump, &header, member_element(op->group, state->peer), op->said[at]);
}

/* The same packet to all that are next door at once, to each of the others its own. */
static void multicast(struct muster_bump *bump, const struct operation *op, uint32_t first,
		      uint32_t nr)
{
	struct muster_bump_header header = data_header(op, op->program.states[first].step);
	uint32_t ports = 0;

	for (uint32_t i = first; i < first + nr; i++) {
		uint16_t element = member_element(op->group, op->program.states[i].peer);
		uint8_t port = bump->routes[element];

		if (nr > 1 && port != MUSTER_BUMP_NO_PORT && bump->neighbours[port] == element)
			ports |= 1u << port;
		else
			operation_say(bump, op, i);
	}
	header.to = htole16(MUSTER_BUMP_TO_NEIGHBOUR);
	if (ports)
		cfe_send(bump, MUSTER_BUMP_DATA, ports, &header, op->said[first]);
}

/* Who has asked in vain asks less and less often: a loss would keep it waiting for long. */
static void say_again(struct muster_bump *bump, const struct operation *op, uint32_t first,
		      uint32_t nr)
{
	for (uint32_t i = first; i < first + nr; i++)
		if (op->wanted & 1ull << i) {
			bump->counters.repaired++;
			operation_say(bump, op, i);
		}
}

/* Return: how many states it was; 0: no memory. */
static uint32_t say(struct muster_bump *bump, struct operation *op)
{
	const struct state *first = &op->program.states[op->next];
	struct buffer *data = what_to_say(bump, op, first->does);
	uint32_t nr = 0;

	if (!data)
		return 0;
	for (const struct state *state = first; op->next + nr < op->program.nr &&
	     state->kind == STATE_SAY && state->does == first->does && state->step == first->step;
	     state++, nr++)
		op->said[op->next + nr] = buffer_get(data);
	buffer_put(bump, data);
	multicast(bump, op, op->next, nr);
	say_again(bump, op, op->next, nr);
	return nr;
}

/* ---- answers ---- */

void operation_answer(struct muster_bump *bump, const struct operation *op, uint32_t index)
{
	const struct local_rank *local = &op->local[index];
	struct muster_bump_header header = op->common;

	header.status = op->status;
	header.step = 0;
	header.to = 0;
	header.from = htole16(op->status ? op->culprit : 0);
	header.rank = htole16(local->rank);
	header.local_rank = (uint8_t)index;
	header.local_ranks = (uint8_t)op->nr_local;
	if (op->status)
		bump->counters.errors++;
	else
		bump->counters.responses++;
	cfe_answer(bump, op->status ? MUSTER_BUMP_ERROR : MUSTER_BUMP_RESPONSE, &local->origin,
		   &header, op->status ? NULL : local->result);
}

void operation_refuse(struct muster_bump *bump, const struct packet *packet, uint8_t status)
{
	struct muster_bump_header header = packet->header;

	header.version = MUSTER_BUMP_VERSION;
	header.status = status;
	header.from = 0;
	bump->counters.errors++;
	cfe_answer(bump, MUSTER_BUMP_ERROR, &packet->origin, &header, NULL);
}

void operation_deny(struct muster_bump *bump, const struct packet *packet, uint8_t status)
{
	const struct muster_bump_header *asked = &packet->header;
	struct muster_bump_header header = *asked;
	uint32_t first = le16toh(asked->first), stride = le16toh(asked->stride);

	header.status = status;
	header.step = STEP_FAILED;
	header.from = htole16((uint16_t)((bump->config.element - first) / stride));
	header.rank = header.from;
	send_to(bump, &header, (uint16_t)(first + le16toh(asked->from) * stride), NULL);
}

/* ---- from beginning to end ---- */

/* In a scan each rank gets its own: what is before its host, and its host's up to itself. */
static bool scan_results(struct muster_bump *bump, struct operation *op)
{
	struct buffer *before = op->registers[REGISTER_BEFORE];

	for (uint32_t i = 0; i < op->nr_local; i++) {
		struct buffer *const both[] = { before, op->local[i].own };

		if (!op->local[i].result)
			op->local[i].result = combine(bump, op, both, 2);
		before = op->local[i].result;
		if (!before)
			return false;
	}
	return true;
}

static void forget_inputs(struct muster_bump *bump, struct operation *op)
{
	for (uint32_t i = 0; i < op->nr_local; i++) {
		buffer_put(bump, op->local[i].own);
		op->local[i].own = NULL;
	}
	for (uint32_t i = 0; i < op->program.nr; i++) {
		buffer_put(bump, op->heard[i]);
		op->heard[i] = NULL;
	}
	for (uint32_t i = 0; i < NR_REGISTERS; i++) {
		buffer_put(bump, op->registers[i]);
		op->registers[i] = NULL;
	}
}

static bool complete(struct muster_bump *bump, struct operation *op)
{
	if (op->common.operation == MUSTER_BUMP_SCAN && !scan_results(bump, op))
		return false;
	for (uint32_t i = 0; i < op->nr_local && op->common.operation != MUSTER_BUMP_SCAN; i++)
		op->local[i].result = buffer_get(op->registers[REGISTER_TOTAL]);
	repair_forget(op);
	op->phase = OPERATION_COMPLETE;
	bump->counters.live--;
	bump->counters.operations++;
	forget_inputs(bump, op);
	for (uint32_t i = 0; i < op->nr_local; i++)
		operation_answer(bump, op, i);
	return true;
}

/* Return: whether it went on. */
static bool advance(struct muster_bump *bump, struct operation *op)
{
	const struct state *state = &op->program.states[op->next];
	uint32_t nr = 1;

	if (state->kind == STATE_HEAR && !op->heard[op->next])
		return false;
	if (state->kind == STATE_SAY)
		nr = say(bump, op);
	else if (!act(bump, op, state, op->heard[op->next]))
		nr = 0;
	op->next += nr;
	return nr != 0;
}

static bool combine_own(struct muster_bump *bump, struct operation *op)
{
	struct buffer *own[MUSTER_BUMP_LOCAL_MAX];

	for (uint32_t i = 0; i < op->nr_local; i++)
		own[i] = op->local[i].own;
	if (!set_register(bump, op, REGISTER_OWN, combine(bump, op, own, op->nr_local)))
		return false;
	op->registers[REGISTER_TOTAL] = buffer_get(op->registers[REGISTER_OWN]);
	return true;
}

/* Where memory is missing it goes on when it is overdue. */
void operation_run(struct muster_bump *bump, struct operation *op)
{
	if (!op->registers[REGISTER_OWN] && !combine_own(bump, op)) {
		repair_await(bump, op);
		return;
	}
	while (op->next < op->program.nr)
		if (!advance(bump, op)) {
			repair_await(bump, op);
			return;
		}
	if (!complete(bump, op))
		repair_await(bump, op);
}

static bool peer_before(const struct program *program, uint32_t at)
{
	for (uint32_t i = 0; i < at; i++)
		if (program->states[i].kind != STATE_DO &&
		    program->states[i].peer == program->states[at].peer)
			return true;
	return false;
}

/* A failure goes the way of the data: to all with whom this member has to do. */
void operation_fail(struct muster_bump *bump, struct operation *op, uint8_t status,
		    uint16_t culprit)
{
	struct muster_bump_header header;

	if (op->phase == OPERATION_COMPLETE || op->phase == OPERATION_FAILED)
		return;
	if (op->phase == OPERATION_RUNNING)
		repair_forget(op);
	op->phase = OPERATION_FAILED;
	op->status = status;
	op->culprit = culprit;
	bump->counters.live--;
	bump->counters.failed++;
	forget_inputs(bump, op);
	for (uint32_t i = 0; i < op->nr_local; i++)
		if (op->local[i].asked)
			operation_answer(bump, op, i);
	header = data_header(op, STEP_FAILED);
	for (uint32_t i = 0; i < op->program.nr; i++)
		if (op->program.states[i].kind != STATE_DO && !peer_before(&op->program, i))
			send_to(bump, &header,
				member_element(op->group, op->program.states[i].peer), NULL);
}
