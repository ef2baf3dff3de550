// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Pairs: what two processes of a job may send each other point to point, whatever the
 * communicator, so that no receive ring overflows. A message takes a credit, and
 * the credit comes back when the receiver's library has read it from its ring, which
 * it does in every call: no communicator that waits can keep it.
 *
 * Every pair has a floor of credits that nobody borrows. The rest of the ring is lent:
 * a pair that speaks has its credits doubled with each report as long as there are
 * some, and when there are none, one that is silent is asked to give back. So no rank
 * starves: with its floor alone a pair goes on, by turns.
 *
 * Communicators that find no credit stand in line for it, so that each grant is looked at by
 * as many as it lets go on, however many wait.
 *
 * What libraries tell each other (struct muster_control) goes through the world's
 * context, which is open until the end and carries inline messages even when it has
 * failed. So only fragments can be lost, in a context that their receiver has closed;
 * the farewell of a communicator says how many there were (message.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "pair.h"
#include "tree.h"

_Static_assert(sizeof(struct muster_control) == MUSTER_INLINE_MAX, "it travels inline");

/* ---- opening ------------------------------------------------------------------------- */

int muster_pairs_open(struct muster *job)
{
	uint32_t others = job->oob.size - 1;
	uint32_t share = others ? job->ring_free / others : UINT32_MAX;

	if (share < MUSTER_PAIR_FLOOR_MIN + MUSTER_PAIR_REPORTS)
		return muster_fail(job, -ENOSPC, "the receive rings of %u slots are too small for %u ranks (%u are needed): start fewer",
				   job->ring_free, job->oob.size,
				   others * (MUSTER_PAIR_FLOOR_MIN + MUSTER_PAIR_REPORTS));
	job->pairs = calloc(job->oob.size, sizeof(*job->pairs));
	if (!job->pairs)
		return muster_fail(job, -ENOMEM, "no memory for pairs to %u ranks", job->oob.size);
	job->pair_floor = (share - MUSTER_PAIR_REPORTS) / 2;
	if (job->pair_floor < MUSTER_PAIR_FLOOR_MIN)
		job->pair_floor = MUSTER_PAIR_FLOOR_MIN;
	if (job->pair_floor > MUSTER_PAIR_FLOOR_MAX)
		job->pair_floor = MUSTER_PAIR_FLOOR_MAX;
	job->ring_free -= others * (job->pair_floor + MUSTER_PAIR_REPORTS);
	for (uint32_t rank = 0; rank < job->oob.size; rank++) {
		struct muster_pair *pair = &job->pairs[rank];

		pair->limit = pair->told = pair->window = job->pair_floor;
		pair->words.next = pair->words.prev = &pair->words;
		pair->fragments.next = pair->fragments.prev = &pair->fragments;
	}
	return 0;
}

static void early_free(struct muster *job, struct muster_early **place)
{
	struct muster_early *early = *place;

	*place = early->next;
	job->nr_early--;
	free(early);
}

void muster_pairs_close(struct muster *job)
{
	while (job->early)
		early_free(job, &job->early);
	free(job->pairs);
}

/* ---- standing in line ------------------------------------------------------------------ */

void muster_pair_await_no_more(struct muster *job, struct muster_waiter *waiter)
{
	if (!waiter->next)
		return;
	waiter->next->prev = waiter->prev;
	waiter->prev->next = waiter->next;
	waiter->next = waiter->prev = NULL;
	job->nr_waiting--;
}

static bool is_awaited(const struct muster_waiter *line)
{
	return line->next != line;
}

/* Is there a credit for who waits for one? */
static bool can_serve(const struct muster_pair *pair)
{
	uint32_t credits = pair->limit - pair->sent;

	return (credits && is_awaited(&pair->words)) ||
	       (credits > 1 && is_awaited(&pair->fragments));
}

void muster_pair_await(struct muster *job, uint32_t rank, bool words, struct muster_waiter *waiter)
{
	struct muster_pair *pair = &job->pairs[rank];
	struct muster_waiter *line = words ? &pair->words : &pair->fragments;

	if (waiter->next)
		return;
	waiter->next = line;
	waiter->prev = line->prev;
	line->prev->next = waiter;
	line->prev = waiter;
	job->nr_waiting++;
	job->pairs_due |= can_serve(pair);
}

/* Until credits, room or those who wait are used up. */
static void serve(struct muster *job, uint32_t rank)
{
	struct muster_pair *pair = &job->pairs[rank];
	struct muster_comm *comm;

	while (pair->limit != pair->sent && is_awaited(&pair->words))
		if (!muster_channel_say(pair->words.next->comm, rank))
			return;
	while (muster_pair_has_credit(job, rank) && is_awaited(&pair->fragments)) {
		comm = pair->fragments.next->comm;
		muster_pair_await_no_more(job, pair->fragments.next);
		muster_advance(comm);
		if (comm->again)
			return;
	}
}

/* ---- sending --------------------------------------------------------------------------- */

/* One credit is for what is said of others: a pair that waits for a farewell can still be told. */
bool muster_pair_has_credit(const struct muster *job, uint32_t rank)
{
	return job->pairs[rank].limit - job->pairs[rank].sent > 1;
}

void muster_pair_sent(struct muster *job, uint32_t rank, int32_t nr)
{
	job->pairs[rank].sent += (uint32_t)nr;
	job->pairs_due |= nr < 0;
}

/* A credit report takes no credit: there are slots for as many as can be under way. */
int muster_control_send(struct muster *job, uint32_t rank, struct muster_control *control)
{
	struct muster_pair *pair = &job->pairs[rank];
	const struct muster_address *to = &job->addresses[rank];
	struct muster_desc desc = {
		.kind = MUSTER_DESC_MP,
		.flags = MUSTER_DESC_COLL_END,
		.dest = to->node & MUSTER_DEST_NODE,
		.src_vp = job->addresses[job->oob.rank].vp,
		.dst_vp = to->vp,
		.job = job->id,
		.context = job->world->context,
		.stage = MUSTER_STAGE_CONTROL,
		.inline_len = sizeof(*control),
		.length = sizeof(*control),
	};
	uint32_t credits = control->kind != MUSTER_CONTROL_CREDIT;
	int err;

	if (job->controls_open == MUSTER_CONTROLS_OPEN || pair->limit - pair->sent < credits)
		return -EAGAIN;
	/* While it is asked to give back, a limit that grants nothing. */
	control->limit = pair->recalling ? pair->read : pair->read + pair->window;
	control->epoch = pair->epoch;
	memcpy(desc.data, control, sizeof(*control));
	err = job->dev->ops->post(job->dev, &desc, 1);
	if (err)
		return err;
	if (!pair->recalling)
		pair->told = control->limit;
	pair->sent += credits;
	job->controls_open++;
	return 0;
}

void muster_control_left(struct muster *job)
{
	if (job->controls_open)
		job->controls_open--;
}

/* ---- lending and recalling ----------------------------------------------------------------- */

static void due(struct muster *job, struct muster_pair *pair)
{
	pair->due = true;
	job->pairs_due = true;
}

/* One of the next few pairs that has borrowed and was silent for longer than this one. */
static struct muster_pair *lender_find(struct muster *job, const struct muster_pair *wants)
{
	for (int i = 0; i < MUSTER_LENDERS_TRIED; i++) {
		struct muster_pair *pair = &job->pairs[job->pair_hand++ % job->oob.size];

		if (pair != wants && !pair->recalling && pair->window > job->pair_floor &&
		    (int32_t)(wants->heard - pair->heard) > (int32_t)wants->window)
			return pair;
	}
	return NULL;
}

static void recall(struct muster *job, const struct muster_pair *wants)
{
	struct muster_control control = { .kind = MUSTER_CONTROL_RECALL };
	struct muster_pair *pair = lender_find(job, wants);

	if (!pair || muster_control_send(job, (uint32_t)(pair - job->pairs), &control))
		return;
	pair->epoch++;
	pair->recalling = true;
}

/* Its half is used up: it gets more, and more than before, if there is some. */
static void grow(struct muster *job, struct muster_pair *pair)
{
	uint32_t more = pair->window;

	if (more > MUSTER_PAIR_MAX - pair->window)
		more = MUSTER_PAIR_MAX > pair->window ? MUSTER_PAIR_MAX - pair->window : 0;
	if (more > job->ring_free)
		recall(job, pair);
	if (more > job->ring_free)
		more = job->ring_free;
	pair->window += more;
	job->ring_free -= more;
}

/* So many it may still send. Unasked when its answer crosses with what we made of its silence. */
static void returned(struct muster *job, struct muster_pair *pair, uint32_t limit, uint32_t epoch)
{
	uint32_t window = limit - pair->read;

	if ((uint8_t)epoch != pair->epoch || window > pair->told - pair->read)
		return;
	pair->told = limit;
	if (pair->recalling) {
		if (window < job->pair_floor)
			window = job->pair_floor;
		job->ring_free += pair->window - window;
		pair->window = window;
	}
	pair->recalling = false;
	due(job, pair);
}

void muster_pair_read(struct muster *job, uint32_t rank, uint32_t nr)
{
	struct muster_pair *pair = &job->pairs[rank];

	if (nr > pair->told - pair->read)	/* it cannot have sent more */
		nr = pair->told - pair->read;
	pair->read += nr;
	pair->heard = job->pair_clock += nr;
	/* Who has used all that it had has nothing to give back, nor to say so with. */
	if (pair->recalling && pair->read == pair->told)
		returned(job, pair, pair->told, pair->epoch);
	if (pair->recalling || pair->told - pair->read > pair->window / 2)
		return;
	if (!pair->due)
		grow(job, pair);
	due(job, pair);
}

/* We were asked to give back all but the floor, besides the answer's own. */
static void give_back(struct muster *job, struct muster_pair *pair)
{
	struct muster_control control = { .kind = MUSTER_CONTROL_RETURN };
	uint32_t limit = pair->sent + 1 + job->pair_floor;

	if ((int32_t)(pair->limit - limit) < 0)
		limit = pair->limit;
	control.about.value = limit;
	control.about.sent = pair->epoch_there;
	if (muster_control_send(job, (uint32_t)(pair - job->pairs), &control))
		return;
	pair->limit = limit;
	pair->return_due = false;
}

static void report(struct muster *job, struct muster_pair *pair)
{
	struct muster_control control = { .kind = MUSTER_CONTROL_CREDIT };

	if (pair->recalling || pair->told == pair->read + pair->window ||
	    !muster_control_send(job, (uint32_t)(pair - job->pairs), &control))
		pair->due = false;
}

void muster_pairs_flush(struct muster *job)
{
	if (!job->pairs_due)
		return;
	job->pairs_due = false;
	for (uint32_t rank = 0; rank < job->oob.size; rank++) {
		struct muster_pair *pair = &job->pairs[rank];

		if (pair->return_due)
			give_back(job, pair);
		if (pair->due)
			report(job, pair);
		serve(job, rank);
		job->pairs_due |= pair->due || pair->return_due || can_serve(pair);
	}
}

/* ---- receiving ----------------------------------------------------------------------------- */

/*
 * Nobody grants more than a ring could take; and what came late says less than is known. Who
 * still asks for credits grants none: a recall that a grant has overtaken is over.
 */
static void limit_note(struct muster_pair *pair, const struct muster_control *control)
{
	if ((uint8_t)(control->epoch - pair->epoch_there) > 1 ||
	    control->limit - pair->sent > MUSTER_PAIR_MAX ||
	    (int32_t)(control->limit - pair->limit) <= 0)
		return;
	pair->epoch_there = control->epoch;
	pair->limit = control->limit;
	pair->return_due = false;
}

static void recalled(struct muster *job, struct muster_pair *pair, uint8_t epoch)
{
	if (pair->epoch_there == (uint8_t)(epoch + 1))	/* overtaken by what ended it */
		return;
	pair->epoch_there = epoch + 1;
	pair->return_due = true;
	job->pairs_due = true;
}

/*
 * Two places are enough for a rank that makes one communicator at a time: it that has said
 * something up waits for what comes down before it says more, and one that has said something
 * down does not go on to another agreement with us that could end before we have taken it.
 * What several threads of a rank say at once is kept beside them.
 */
static void agreement_keep(struct muster *job, uint32_t rank, bool down,
			   const struct muster_agreement *agreement)
{
	struct muster_pair *pair = &job->pairs[rank];
	struct muster_early *early;

	if (!pair->has[down]) {
		pair->early[down] = *agreement;
		pair->has[down] = true;
		return;
	}
	early = job->nr_early < MUSTER_EARLY_MAX ? malloc(sizeof(*early)) : NULL;
	if (!early) {
		muster_comm_give_up(job->world, muster_fail(job, -ENOMEM, "no memory for what rank %u says of a communicator",
							    rank));
		return;
	}
	*early = (struct muster_early){ job->early, rank, down, *agreement };
	job->early = early;
	job->nr_early++;
}

void muster_control_receive(struct muster *job, uint32_t rank, const void *payload)
{
	struct muster_pair *pair = &job->pairs[rank];
	struct muster_control control;

	memcpy(&control, payload, sizeof(control));
	limit_note(pair, &control);
	job->pairs_due |= can_serve(pair);
	if (control.kind != MUSTER_CONTROL_CREDIT)
		muster_pair_read(job, rank, 1);
	switch (control.kind) {
	case MUSTER_CONTROL_CREDIT:
		break;
	case MUSTER_CONTROL_RECALL:
		recalled(job, pair, control.epoch);
		break;
	case MUSTER_CONTROL_RETURN:
		returned(job, pair, control.about.value, control.about.sent);
		break;
	case MUSTER_CONTROL_AGREE_UP:
	case MUSTER_CONTROL_AGREE_DOWN:
		agreement_keep(job, rank, control.kind == MUSTER_CONTROL_AGREE_DOWN,
			       &control.agreement);
		break;
	case MUSTER_CONTROL_MOVE:
	case MUSTER_CONTROL_MOVE_FROM:
	case MUSTER_CONTROL_MOVE_AT:
		muster_move_hear(job, rank, &control);
		break;
	default:
		muster_channel_control(job, rank, &control);
	}
}

bool muster_pair_agreement(struct muster *job, uint32_t rank, bool down, uint64_t key,
			   struct muster_agreement *said)
{
	struct muster_pair *pair = &job->pairs[rank];
	struct muster_early **place = &job->early, *early;

	if (pair->has[down] && pair->early[down].key == key) {
		*said = pair->early[down];
		pair->has[down] = false;
		return true;
	}
	while ((early = *place) && (early->rank != rank || early->down != down ||
				    early->agreement.key != key))
		place = &early->next;
	if (!early)
		return false;
	*said = early->agreement;
	early_free(job, place);
	return true;
}
