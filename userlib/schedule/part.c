// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Walking one rank's part of a schedule. A generator says in constant time what a
 * rank does in a step and how much another has received before it; here that
 * becomes messages with their stages and slots. Of listed transfers they are counted.
 */
#include "part.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"
#include "stages.h"

static uint32_t divide_up(uint32_t a, uint32_t b)
{
	return a / b + (a % b != 0);
}

/* ---- tables: few steps, whose ranges may be of many chunks ------------------------ */

/* As many steps in a stage as its slots allow; a step that is longer has stages of its own. */
static void fill_tables(struct muster_part *part)
{
	uint32_t steps = part->schedule->steps, used = 0;

	part->nr_stages = 1;
	for (uint32_t i = 0; i < steps; i++) {
		uint32_t nr = divide_up(part->generator->step(part->schedule, i).nr, part->grain);

		if (used && used + nr > MUSTER_SLOTS_MAX) {
			part->nr_stages++;
			used = 0;
		}
		part->stage[i] = part->nr_stages - 1;
		part->stage_begin[i] = used ? part->stage_begin[i - 1] : i;
		part->messages[i + 1] = part->messages[i] + nr;
		part->rounds[i + 1] = part->rounds[i] + divide_up(nr, MUSTER_SLOTS_MAX);
		part->nr_stages += divide_up(nr, MUSTER_SLOTS_MAX) - 1;
		used = nr > MUSTER_SLOTS_MAX ? MUSTER_SLOTS_MAX : used + nr;
	}
}

uint32_t muster_part_messages(const struct muster_part *part, uint32_t step)
{
	return part->ranged ? part->messages[step] : step;
}

static void set_place(const struct muster_part *part, struct muster_message *message,
		      uint32_t receiver)
{
	uint32_t step = part->step, begin;

	if (part->ranged && part->nr_messages > MUSTER_SLOTS_MAX) {
		message->step = part->rounds[step] + part->next / MUSTER_SLOTS_MAX;
		message->stage = part->stage[step] + part->next / MUSTER_SLOTS_MAX;
		message->slot = part->next % MUSTER_SLOTS_MAX;
		return;
	}
	message->step = part->ranged ? part->rounds[step] : step;
	message->stage = part->ranged ? part->stage[step] : step / MUSTER_SLOTS_MAX;
	begin = part->ranged ? part->stage_begin[step] : step - step % MUSTER_SLOTS_MAX;
	message->slot = part->generator->received(part, receiver, step) + part->next;
	if (begin)
		message->slot -= part->generator->received(part, receiver, begin);
}

/* ---- walking ---------------------------------------------------------------------- */

static void set_end(struct muster_part *part)
{
	uint32_t left = part->nr_messages - part->next;

	part->end = part->next + (left < MUSTER_SLOTS_MAX ? left : MUSTER_SLOTS_MAX);
}

static void load_step(struct muster_part *part)
{
	part->exchange = (struct muster_exchange){ .to = MUSTER_NOBODY, .from = MUSTER_NOBODY };
	part->next = part->end = 0;
	part->receiving = false;
	if (part->step == part->schedule->steps)
		return;
	part->kind = part->generator->step(part->schedule, part->step);
	part->nr_messages = divide_up(part->kind.nr, part->grain);
	part->generator->exchange(part->schedule, part->rank, part->step, &part->exchange);
	set_end(part);
}

int muster_part_begin(struct muster_part *part, const struct muster_schedule *schedule,
		      uint32_t rank, uint32_t grain, const struct muster_stages *stages)
{
	*part = (struct muster_part){
		.schedule = schedule, .generator = schedule->generator, .rank = rank,
		.grain = grain, .stages = stages,
		.nr_stages = schedule->steps ? divide_up(schedule->steps, MUSTER_SLOTS_MAX) : 1,
	};
	if (!part->generator) {
		part->end = muster_step_end(schedule, 0);
		if (stages)
			part->nr_slots = calloc(schedule->ranks, sizeof(*part->nr_slots));
		return part->nr_slots || !stages ? 0 : -ENOMEM;
	}
	part->ranged = part->generator->ranged;
	if (part->ranged)
		fill_tables(part);
	load_step(part);
	return 0;
}

void muster_part_end(struct muster_part *part)
{
	free(part->nr_slots);
}

/* The other direction, the rest of a long step, or the next step. */
static void turn(struct muster_part *part)
{
	if (!part->receiving) {
		part->receiving = true;
		part->next = (part->end - 1) / MUSTER_SLOTS_MAX * MUSTER_SLOTS_MAX;
	} else if (part->end < part->nr_messages) {
		part->receiving = false;
		part->next = part->end;
		set_end(part);
	} else {
		part->step++;
		load_step(part);
	}
}

static uint32_t peer_of(const struct muster_part *part)
{
	return part->receiving ? part->exchange.from : part->exchange.to;
}

/* ---- listed ------------------------------------------------------------------------- */

/* The same step again, for what is received, or the next one. */
static void turn_listed(struct muster_part *part)
{
	const struct muster_stages *stages = part->stages;

	part->receiving = !part->receiving;
	if (!part->receiving) {
		part->begin = part->end;
		part->end = muster_step_end(part->schedule, part->end);
	}
	part->next = part->begin;
	if (part->receiving || !stages || part->begin != stages->begin[part->now + 1])
		return;
	part->now++;
	memset(part->nr_slots, 0, part->schedule->ranks * sizeof(*part->nr_slots));
}

static bool next_listed(struct muster_part *part, struct muster_message *message)
{
	while (part->begin < part->schedule->nr_transfers) {
		const struct muster_transfer *t = &part->schedule->transfers[part->next];
		uint32_t slot;

		if (part->next == part->end) {
			turn_listed(part);
			continue;
		}
		part->next++;
		slot = part->receiving || !part->stages ? 0 : part->nr_slots[t->to]++;
		if ((part->receiving ? t->to : t->from) != part->rank)
			continue;
		*message = (struct muster_message){
			.step = t->step, .peer = part->receiving ? t->from : t->to,
			.first = t->chunk, .nr = 1, .stage = part->now, .slot = slot,
			.is_send = !part->receiving, .reduce = t->reduce,
		};
		return true;
	}
	return false;
}

bool muster_part_next(struct muster_part *part, struct muster_message *message)
{
	uint32_t peer, begin;

	if (!part->generator)
		return next_listed(part, message);
	while (part->step < part->schedule->steps &&
	       (part->next == part->end || peer_of(part) == MUSTER_NOBODY))
		turn(part);
	if (part->step == part->schedule->steps)
		return false;
	peer = peer_of(part);
	begin = part->next * part->grain;
	*message = (struct muster_message){
		.peer = peer,
		.first = (part->receiving ? part->exchange.received : part->exchange.sent) + begin,
		.nr = part->kind.nr - begin < part->grain ? part->kind.nr - begin : part->grain,
		.is_send = !part->receiving,
		.reduce = part->kind.reduce,
	};
	set_place(part, message, part->receiving ? part->rank : peer);
	part->next++;
	return true;
}

/* ---- all parts ---------------------------------------------------------------------- */

struct walk {
	struct muster_part part;
	struct muster_message message;
	bool ended;
};

static void collect_step(struct muster_builder *builder, struct walk *walk, uint32_t step)
{
	while (!walk->ended && walk->message.step == step) {
		const struct muster_message *m = &walk->message;

		for (uint32_t i = 0; m->is_send && i < m->nr; i++)
			muster_builder_add(builder, m->first + i, walk->part.rank, m->peer,
					   m->reduce);
		walk->ended = !muster_part_next(&walk->part, &walk->message);
	}
}

int muster_parts_collect(const struct muster_schedule *generated, uint32_t grain,
			 struct muster_schedule **schedule)
{
	struct walk *walks = calloc(generated->ranks, sizeof(*walks));
	struct muster_builder builder;
	uint32_t ended = 0;

	if (!walks)
		return -ENOMEM;
	muster_builder_init(&builder, generated->name, generated->coll, generated->ranks,
			    generated->chunks, generated->root);
	for (uint32_t rank = 0; rank < generated->ranks; rank++) {
		muster_part_begin(&walks[rank].part, generated, rank, grain, NULL);
		walks[rank].ended = !muster_part_next(&walks[rank].part, &walks[rank].message);
	}
	for (uint32_t step = 0; ended < generated->ranks; step++, muster_builder_step(&builder)) {
		ended = 0;
		for (uint32_t rank = 0; rank < generated->ranks; rank++) {
			collect_step(&builder, &walks[rank], step);
			ended += walks[rank].ended;
		}
	}
	free(walks);
	return muster_builder_end(&builder, schedule);
}
