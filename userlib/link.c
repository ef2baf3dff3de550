// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Links: what two processes of a job may send each other point to point, whatever the
 * communicator, so that no receive ring overflows. A message takes a credit, and
 * the credit comes back when the receiver's library has read it from its ring, which
 * it does in every call: no communicator that waits can keep it.
 *
 * Every link has a floor of credits that nobody borrows. The rest of the ring is lent:
 * a link that speaks has its credits doubled with each report as long as there are
 * some, and when there are none, one that is silent is asked to give back. So no rank
 * starves: with its floor alone a link goes on, by turns.
 *
 * What libraries tell each other (struct muster_control) goes through the world's
 * context, which is open until the end and carries inline messages even when it has
 * failed. So only fragments can be lost, in a context that their receiver has closed;
 * the farewell of a communicator says how many there were (message.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

_Static_assert(sizeof(struct muster_control) == MUSTER_INLINE_MAX, "it travels inline");

/* ---- opening ------------------------------------------------------------------------- */

int muster_links_open(struct muster *job)
{
	uint32_t others = job->oob.size - 1;
	uint32_t share = others ? job->ring_free / others : UINT32_MAX;

	if (share < MUSTER_LINK_FLOOR_MIN + MUSTER_LINK_REPORTS)
		return muster_fail(job, -ENOSPC, "the receive rings of %u slots are too small for %u ranks (%u are needed): start fewer",
				   job->ring_free, job->oob.size,
				   others * (MUSTER_LINK_FLOOR_MIN + MUSTER_LINK_REPORTS));
	job->links = calloc(job->oob.size, sizeof(*job->links));
	if (!job->links)
		return muster_fail(job, -ENOMEM, "no memory for links to %u ranks", job->oob.size);
	job->link_floor = (share - MUSTER_LINK_REPORTS) / 2;
	if (job->link_floor < MUSTER_LINK_FLOOR_MIN)
		job->link_floor = MUSTER_LINK_FLOOR_MIN;
	if (job->link_floor > MUSTER_LINK_FLOOR_MAX)
		job->link_floor = MUSTER_LINK_FLOOR_MAX;
	job->ring_free -= others * (job->link_floor + MUSTER_LINK_REPORTS);
	for (uint32_t rank = 0; rank < job->oob.size; rank++) {
		struct muster_credits *link = &job->links[rank];

		link->limit = link->told = link->window = job->link_floor;
	}
	return 0;
}

void muster_links_close(struct muster *job)
{
	free(job->links);
}

/* ---- sending --------------------------------------------------------------------------- */

/* One credit is for what is said of others: a link that waits for a farewell can still be told. */
bool muster_link_has_credit(const struct muster *job, uint32_t rank)
{
	return job->links[rank].limit - job->links[rank].sent > 1;
}

void muster_link_sent(struct muster *job, uint32_t rank, int32_t nr)
{
	job->links[rank].sent += (uint32_t)nr;
}

/* A credit report takes no credit: there are slots for as many as can be under way. */
int muster_control_send(struct muster *job, uint32_t rank, struct muster_control *control)
{
	struct muster_credits *link = &job->links[rank];
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

	if (job->controls_open == MUSTER_CONTROLS_OPEN || link->limit - link->sent < credits)
		return -EAGAIN;
	/* While it is asked to give back, a limit that grants nothing. */
	control->limit = link->recalling ? link->read : link->read + link->window;
	control->epoch = link->epoch;
	memcpy(desc.data, control, sizeof(*control));
	err = job->dev->ops->post(job->dev, &desc, 1);
	if (err)
		return err;
	if (!link->recalling)
		link->told = control->limit;
	link->sent += credits;
	job->controls_open++;
	return 0;
}

void muster_control_left(struct muster *job)
{
	if (job->controls_open)
		job->controls_open--;
}

/* ---- lending and recalling ----------------------------------------------------------------- */

static void due(struct muster *job, struct muster_credits *link)
{
	link->due = true;
	job->links_due = true;
}

/* One of the next few links that has borrowed and was silent for longer than this one. */
static struct muster_credits *lender_find(struct muster *job, const struct muster_credits *wants)
{
	for (int i = 0; i < MUSTER_LENDERS_TRIED; i++) {
		struct muster_credits *link = &job->links[job->link_hand++ % job->oob.size];

		if (link != wants && !link->recalling && link->window > job->link_floor &&
		    (int32_t)(wants->heard - link->heard) > (int32_t)wants->window)
			return link;
	}
	return NULL;
}

static void recall(struct muster *job, const struct muster_credits *wants)
{
	struct muster_control control = { .kind = MUSTER_CONTROL_RECALL };
	struct muster_credits *link = lender_find(job, wants);

	if (!link || muster_control_send(job, (uint32_t)(link - job->links), &control))
		return;
	link->epoch++;
	link->recalling = true;
}

/* Its half is used up: it gets more, and more than before, if there is some. */
static void grow(struct muster *job, struct muster_credits *link)
{
	uint32_t more = link->window;

	if (more > MUSTER_LINK_MAX - link->window)
		more = MUSTER_LINK_MAX > link->window ? MUSTER_LINK_MAX - link->window : 0;
	if (more > job->ring_free)
		recall(job, link);
	if (more > job->ring_free)
		more = job->ring_free;
	link->window += more;
	job->ring_free -= more;
}

/* So many it may still send. Unasked when its answer crosses with what we made of its silence. */
static void returned(struct muster *job, struct muster_credits *link, uint32_t limit, uint32_t epoch)
{
	uint32_t window = limit - link->read;

	if ((uint8_t)epoch != link->epoch || window > link->told - link->read)
		return;
	link->told = limit;
	if (link->recalling) {
		if (window < job->link_floor)
			window = job->link_floor;
		job->ring_free += link->window - window;
		link->window = window;
	}
	link->recalling = false;
	due(job, link);
}

void muster_link_read(struct muster *job, uint32_t rank, uint32_t nr)
{
	struct muster_credits *link = &job->links[rank];

	if (nr > link->told - link->read)	/* it cannot have sent more */
		nr = link->told - link->read;
	link->read += nr;
	link->heard = job->link_clock += nr;
	/* Who has used all that it had has nothing to give back, nor to say so with. */
	if (link->recalling && link->read == link->told)
		returned(job, link, link->told, link->epoch);
	if (link->recalling || link->told - link->read > link->window / 2)
		return;
	if (!link->due)
		grow(job, link);
	due(job, link);
}

/* We were asked to give back all but the floor, besides the answer's own. */
static void give_back(struct muster *job, struct muster_credits *link)
{
	struct muster_control control = { .kind = MUSTER_CONTROL_RETURN };
	uint32_t limit = link->sent + 1 + job->link_floor;

	if ((int32_t)(link->limit - limit) < 0)
		limit = link->limit;
	control.about.value = limit;
	control.about.sent = link->epoch_there;
	if (muster_control_send(job, (uint32_t)(link - job->links), &control))
		return;
	link->limit = limit;
	link->return_due = false;
}

static void report(struct muster *job, struct muster_credits *link)
{
	struct muster_control control = { .kind = MUSTER_CONTROL_CREDIT };

	if (link->recalling || link->told == link->read + link->window ||
	    !muster_control_send(job, (uint32_t)(link - job->links), &control))
		link->due = false;
}

void muster_links_flush(struct muster *job)
{
	if (!job->links_due)
		return;
	job->links_due = false;
	for (uint32_t rank = 0; rank < job->oob.size; rank++) {
		struct muster_credits *link = &job->links[rank];

		if (link->return_due)
			give_back(job, link);
		if (link->due)
			report(job, link);
		job->links_due |= link->due || link->return_due;
	}
}

/* ---- receiving ----------------------------------------------------------------------------- */

/*
 * Nobody grants more than a ring could take; and what came late says less than is known. What
 * came before its recall does not: the recall is over already.
 */
static void limit_note(struct muster_credits *link, const struct muster_control *control)
{
	if ((uint8_t)(control->epoch - link->epoch_there) == 1)
		link->epoch_there = control->epoch;
	if (control->epoch == link->epoch_there &&
	    control->limit - link->sent <= MUSTER_LINK_MAX &&
	    (int32_t)(control->limit - link->limit) > 0)
		link->limit = control->limit;
}

static void recalled(struct muster *job, struct muster_credits *link, uint8_t epoch)
{
	link->epoch_there = epoch + 1;
	link->return_due = true;
	job->links_due = true;
}

void muster_control_receive(struct muster *job, uint32_t rank, const void *payload)
{
	struct muster_credits *link = &job->links[rank];
	struct muster_control control;

	memcpy(&control, payload, sizeof(control));
	limit_note(link, &control);
	if (control.kind != MUSTER_CONTROL_CREDIT)
		muster_link_read(job, rank, 1);
	switch (control.kind) {
	case MUSTER_CONTROL_CREDIT:
		break;
	case MUSTER_CONTROL_RECALL:
		recalled(job, link, control.epoch);
		break;
	case MUSTER_CONTROL_RETURN:
		returned(job, link, control.about.value, control.about.sent);
		break;
	case MUSTER_CONTROL_AGREE_UP:
	case MUSTER_CONTROL_AGREE_DOWN:
		link->early[control.kind - MUSTER_CONTROL_AGREE_UP] = control.agreement;
		link->has[control.kind - MUSTER_CONTROL_AGREE_UP] = true;
		break;
	default:
		muster_channel_control(job, rank, &control);
	}
}

/*
 * Two places are enough: a rank that has said something up waits for what comes down before
 * it says more, and one that has said something down does not go on to another agreement
 * with us that could end before we have taken it.
 */
bool muster_link_agreement(struct muster *job, uint32_t rank, bool down, uint64_t key,
			   struct muster_agreement *said)
{
	struct muster_credits *link = &job->links[rank];

	if (!link->has[down] || link->early[down].key != key)
		return false;
	*said = link->early[down];
	link->has[down] = false;
	return true;
}
