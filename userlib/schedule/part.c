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
	return a <= b ? a != 0 : a / b + (a % b != 0);
}

/* ---- tables: few steps, whose ranges may be of many chunks ------------------------ */

/* A range that goes round is cut where it does. */
static uint32_t messages_of(const struct muster_part *part, uint32_t first, uint32_t nr)
{
	uint32_t chunks = part->schedule->chunks;
	uint32_t to_end = nr > chunks - first ? chunks - first : nr;

	if (nr <= 1)
		return nr;
	return divide_up(to_end, part->grain) + divide_up(nr - to_end, part->grain);
}

/*
 * The most messages that a rank sends or receives in a step. Where ranges go round, some of
 * one may be elsewhere than the rest: there is room for what is then copied (lower.c).
 */
static uint32_t messages_max(const struct muster_part *part, uint32_t nr)
{
	return divide_up(nr, part->grain) + (part->generator->goes_round && nr > 1 ? 2 : 0);
}

/* As many steps in a stage as its slots allow; a step that is longer has stages of its own. */
static void fill_tables(struct muster_part *part)
{
	struct muster_part_tables *tables = &part->tables;
	uint32_t steps = part->schedule->steps, used = 0;

	memset(tables, 0, sizeof(*tables));
	part->nr_stages = 1;
	for (uint32_t i = 0; i < steps; i++) {
		uint32_t nr = messages_max(part, part->generator->step(part->schedule, i).nr);

		if (used && used + nr > part->room) {
			part->nr_stages++;
			used = 0;
		}
		tables->stage[i] = part->nr_stages - 1;
		tables->stage_begin[i] = used ? tables->stage_begin[i - 1] : i;
		tables->messages[i + 1] = tables->messages[i] + nr;
		tables->rounds[i + 1] = tables->rounds[i] + divide_up(nr, part->room);
		part->nr_stages += divide_up(nr, part->room) - 1;
		used = nr > part->room ? part->room : used + nr;
	}
}

uint32_t muster_part_messages(const struct muster_part *part, uint32_t step)
{
	return part->tabled ? part->tables.messages[step] : step;
}

static void exchange_of(const struct muster_part *part, uint32_t rank, uint32_t step, uint32_t nr,
			struct muster_exchange *exchange)
{
	*exchange = (struct muster_exchange){
		.to = MUSTER_NOBODY, .from = MUSTER_NOBODY, .nr_sent = nr, .nr_received = nr,
	};
	part->generator->exchange(part->schedule, rank, step, exchange);
}

/* The first step from one on in which a rank may have something to do. */
static uint32_t next_step(const struct muster_part *part, uint32_t rank, uint32_t step)
{
	if (!part->generator->next || step >= part->schedule->steps)
		return step;
	return part->generator->next(part->schedule, rank, step);
}

/* Messages that another rank has received in this stage before this step. */
static uint32_t slots_before(const struct muster_part *part, uint32_t rank)
{
	const struct muster_generator *generator = part->generator;
	uint32_t begin = part->stage_begin, step = part->step, nr = 0;

	if (generator->received)
		return generator->received(part, rank, step) -
		       (begin ? generator->received(part, rank, begin) : 0);
	for (; (begin = next_step(part, rank, begin)) < step; begin++) {
		struct muster_exchange exchange;

		exchange_of(part, rank, begin, generator->step(part->schedule, begin).nr,
			    &exchange);
		if (exchange.from != MUSTER_NOBODY)
			nr += messages_of(part, exchange.received, exchange.nr_received);
	}
	return nr;
}

static void set_step(const struct muster_part *part, struct muster_message *message)
{
	uint32_t round = part->nr_messages > part->room ? part->next / part->room : 0;

	message->step = part->generator->at_once ? 0 : part->step;
	if (part->tabled)
		message->step = part->tables.rounds[part->step] + round;
	message->stage = part->stage + round;
}

/* What the rank receives itself it counts; of another one it has to be known. */
static void set_slot(struct muster_part *part, struct muster_message *message)
{
	if (!message->is_send && message->stage != part->now)
		part->nr_received = 0;
	if (!message->is_send)
		part->now = message->stage;
	if (message->peer == part->rank)
		return;
	if (!message->is_send) {
		message->slot = part->nr_received++;
		return;
	}
	if (part->nr_messages > part->room) {
		message->slot = part->next % part->room;
		return;
	}
	if (!part->next)
		part->slots = slots_before(part, message->peer);
	message->slot = part->slots + part->next;
}

/* ---- walking ---------------------------------------------------------------------- */

/* The messages of one direction that have room in this round of the step. */
static void set_end(struct muster_part *part)
{
	const struct muster_exchange *exchange = &part->exchange;
	uint32_t peer = part->receiving ? exchange->from : exchange->to, nr = 0;

	if (peer != MUSTER_NOBODY)
		nr = part->receiving ?
			     messages_of(part, exchange->received, exchange->nr_received) :
			     messages_of(part, exchange->sent, exchange->nr_sent);
	part->next = part->round;
	part->end = nr < part->round + part->room ? nr : part->round + part->room;
}

/* Of both directions, which sends before it receives. */
static void begin_round(struct muster_part *part)
{
	part->receiving = part->exchange.to == MUSTER_NOBODY;
	set_end(part);
}

static void set_stage(struct muster_part *part)
{
	if (part->tabled) {
		part->stage = part->tables.stage[part->step];
		part->stage_begin = part->tables.stage_begin[part->step];
	} else if (part->step - part->stage_begin >= part->stage_steps) {
		part->stage = part->step / part->stage_steps;
		part->stage_begin = part->stage * part->stage_steps;
	}
}

static void load_step(struct muster_part *part, uint32_t step)
{
	part->next = part->end = part->round = 0;
	part->step = step;
	if (part->step == part->schedule->steps)
		return;
	set_stage(part);
	part->kind = part->generator->step(part->schedule, part->step);
	part->nr_messages = messages_max(part, part->kind.nr);
	exchange_of(part, part->rank, part->step, part->kind.nr, &part->exchange);
	if (part->generator->at_once)
		set_end(part);
	else
		begin_round(part);
}

/* Without tables each step has one message in each direction, or the pieces of one that goes round. */
static void set_stages(struct muster_part *part)
{
	bool goes_round = part->generator->goes_round;

	part->room = MUSTER_SLOTS_MAX - (goes_round ? 2 : 0);
	part->tabled = part->generator->ranged && part->schedule->chunks > part->grain;
	part->stage_steps = goes_round ? part->room / 3 : part->room;
	part->nr_stages = 1;
	if (part->tabled)
		fill_tables(part);
	else if (part->schedule->steps)
		part->nr_stages = divide_up(part->schedule->steps, part->stage_steps);
}

/* Field by field, and only what is looked at before it is set: to clear all costs as much as a message. */
int muster_part_begin(struct muster_part *part, const struct muster_schedule *schedule,
		      uint32_t rank, uint32_t grain, const struct muster_stages *stages)
{
	part->schedule = schedule;
	part->generator = schedule->generator;
	part->rank = rank;
	part->grain = grain;
	part->stages = stages;
	part->nr_slots = NULL;
	part->stage = part->stage_begin = 0;
	part->begin = part->now = part->nr_received = 0;
	part->next = 0;
	part->receiving = part->tabled = false;
	if (!part->generator) {
		part->end = muster_step_end(schedule, 0);
		if (stages)
			part->nr_slots = calloc(schedule->ranks, sizeof(*part->nr_slots));
		return part->nr_slots || !stages ? 0 : -ENOMEM;
	}
	set_stages(part);
	load_step(part, next_step(part, rank, 0));
	return 0;
}

void muster_part_end(struct muster_part *part)
{
	free(part->nr_slots);
}

/* All steps in one direction, then all in the other. */
static void turn_at_once(struct muster_part *part)
{
	uint32_t step = part->step + 1;

	if (step == part->schedule->steps && !part->receiving) {
		step = 0;
		part->receiving = true;
	}
	load_step(part, next_step(part, part->rank, step));
}

/* The other direction, the rest of a long step, or the next step. */
static void turn(struct muster_part *part)
{
	if (part->generator->at_once) {
		turn_at_once(part);
		return;
	}
	if (!part->receiving && part->exchange.from != MUSTER_NOBODY) {
		part->receiving = true;
		set_end(part);
		return;
	}
	part->round += part->room;
	if (part->round < part->nr_messages) {
		begin_round(part);
	} else if (part->exchange.next) {
		load_step(part, part->exchange.next);
	} else {
		load_step(part, next_step(part, part->rank, part->step + 1));
	}
}

/* The index-th message of a range. */
static void set_range(const struct muster_part *part, struct muster_message *message,
		      uint32_t first, uint32_t nr)
{
	uint32_t chunks = part->schedule->chunks, to_end = chunks - first;
	uint32_t before = part->next * part->grain;

	message->first = first;
	message->nr = nr;
	if (nr == 1)
		return;
	if (nr > to_end && before >= to_end) {	/* behind where it goes round */
		before = (part->next - divide_up(to_end, part->grain)) * part->grain;
		nr -= to_end;
		first = 0;
	} else if (nr > to_end) {
		nr = to_end;
	}
	message->first = first + before;
	message->nr = nr - before < part->grain ? nr - before : part->grain;
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
		uint32_t slot = 0;

		if (part->next == part->end) {
			turn_listed(part);
			continue;
		}
		part->next++;
		if (!part->receiving && part->stages && t->from != t->to)
			slot = part->nr_slots[t->to]++;
		if (part->schedule->own)
			slot = part->schedule->own->slots[t - part->schedule->transfers];
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
	const struct muster_exchange *exchange = &part->exchange;

	if (!part->generator)
		return next_listed(part, message);
	while (part->step < part->schedule->steps && part->next >= part->end)
		turn(part);
	if (part->step == part->schedule->steps)
		return false;
	*message = (struct muster_message){
		.peer = part->receiving ? exchange->from : exchange->to,
		.is_send = !part->receiving,
		.reduce = part->kind.reduce &&
			  !(part->receiving ? exchange->copies_from : exchange->copies_to),
	};
	if (part->receiving)
		set_range(part, message, exchange->received, exchange->nr_received);
	else
		set_range(part, message, exchange->sent, exchange->nr_sent);
	set_step(part, message);
	set_slot(part, message);
	part->next++;
	return true;
}

/* ---- all parts ---------------------------------------------------------------------- */

struct walk {
	struct muster_part part;
	struct muster_message message;
	bool ended;
};

/* By rank the chunks of an alltoall are named by the other rank, alone by both. */
static uint32_t chunk_of(const struct muster_schedule *generated, uint32_t rank,
			 const struct muster_message *m)
{
	bool by_peer = muster_coll_row(generated->coll)->needs == MUSTER_WHO_PARTNER;

	return by_peer ? rank * generated->ranks + m->peer : m->first;
}

static void collect_step(struct muster_builder *builder, struct walk *walk, uint32_t step)
{
	while (!walk->ended && walk->message.step == step) {
		const struct muster_message *m = &walk->message;

		for (uint32_t i = 0; m->is_send && i < m->nr; i++)
			muster_builder_add(builder,
					   chunk_of(walk->part.schedule, walk->part.rank, m) + i,
					   walk->part.rank, m->peer, m->reduce);
		walk->ended = !muster_part_next(&walk->part, &walk->message);
	}
}

int muster_parts_collect(const struct muster_schedule *generated, uint32_t grain,
			 struct muster_schedule **schedule)
{
	struct walk *walks = calloc(generated->ranks, sizeof(*walks));
	uint32_t unit = muster_coll_chunks_unit(generated->coll, generated->ranks);
	uint32_t ended = 0, chunks = generated->chunks;
	struct muster_builder builder;

	if (!walks)
		return -ENOMEM;
	if (generated->chunks < unit)
		chunks = unit;
	muster_builder_init(&builder, generated->name, generated->coll, generated->ranks, chunks,
			    generated->root);
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
