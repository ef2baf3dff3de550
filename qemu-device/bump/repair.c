// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Losses between bumps are repaired by those who miss something: an operation
 * whose next state has not heard its packet for a while asks the sender for it,
 * and again after twice as long. A sender that has not come so far notes it.
 */
#include "internal.h"

enum { PATIENCE_MAX_US = 256000 };

void repair_await(struct muster_bump *bump, struct operation *op)
{
	op->patience_us = bump->config.repair_us;
	op->want_us = bump->world.now_us(bump->opaque) + op->patience_us;
	if (op->want_us < bump->want_us)
		bump->want_us = op->want_us;
	if (op->live_link)
		return;
	op->live_next = bump->live;
	op->live_link = &bump->live;
	if (bump->live)
		bump->live->live_link = &op->live_next;
	bump->live = op;
}

void repair_forget(struct operation *op)
{
	if (!op->live_link)
		return;
	*op->live_link = op->live_next;
	if (op->live_next)
		op->live_next->live_link = op->live_link;
	op->live_link = NULL;
}

static void ask(struct muster_bump *bump, struct operation *op)
{
	const struct state *state = &op->program.states[op->next];
	struct muster_bump_header header = op->common;
	uint16_t element = member_element(op->group, state->peer);

	header.step = state->step;
	header.from = htole16(op->group->self);
	header.to = htole16(element);
	header.rank = 0;
	header.local_rank = header.local_ranks = 0;
	bump->counters.wants_out++;
	if (bump->routes[element] != MUSTER_BUMP_NO_PORT)
		cfe_send(bump, MUSTER_BUMP_WANT, 1u << bump->routes[element], &header, NULL);
}

/* What waits for memory tries again; what waits for a packet asks for it. */
static void overdue(struct muster_bump *bump, struct operation *op, uint64_t now)
{
	uint64_t patience = op->patience_us * 2;

	if (op->next == op->program.nr || op->program.states[op->next].kind != STATE_HEAR ||
	    op->heard[op->next] || !op->registers[REGISTER_OWN]) {
		operation_run(bump, op);
		return;
	}
	ask(bump, op);
	op->patience_us = patience < PATIENCE_MAX_US ? patience : PATIENCE_MAX_US;
	op->want_us = now + op->patience_us;
}

void repair_overdue(struct muster_bump *bump)
{
	uint64_t now = bump->world.now_us(bump->opaque);
	struct operation *op, *next;

	if (now < bump->want_us)
		return;
	for (op = bump->live; op; op = next) {
		next = op->live_next;
		if (op->want_us <= now)
			overdue(bump, op, now);
	}
	bump->want_us = UINT64_MAX;
	for (op = bump->live; op; op = op->live_next)
		if (op->want_us < bump->want_us)
			bump->want_us = op->want_us;
}
