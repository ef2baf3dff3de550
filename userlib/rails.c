// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An operation over several rails (rails.h) is cut between elements into a part for each, which is an
 * operation of its own there, on its own tree and in that tree's order. The first part is the caller's request; it
 * is done when all are. A communicator has one of the same members on each rail, and they fail together.
 * What is cut follows from the call, from settings that all ranks share, and from trees that all have; never from
 * the path: so all paths cut alike.
 */
#include "rails.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "arith.h"
#include "pair.h"
#include "tree.h"

/* ---- opening and closing ------------------------------------------------------------------ */

static bool streams(const struct muster_comm *comm)
{
	return comm->trees && comm->trees->by_type[MUSTER_TREE_SAT].key;
}

static bool all_stream(const struct muster_comm *comm)
{
	while (comm && streams(comm))
		comm = comm->next_rail;
	return !comm;
}

/* It may have failed before. */
static void tie(struct muster_comm *comm, struct muster_comm *rail)
{
	rail->whole = comm;
	if (rail->failed)
		muster_rail_failed(rail, MUSTER_STATUS_PEER_LOST, MUSTER_CULPRIT_NONE);
}

/* Progress of the whole is its own as soon as it has a device. */
static int join(struct muster *job, uint32_t number, muster_dev_open *open, struct muster **place)
{
	struct muster *rail = muster_job_new(&job->oob);
	int err;

	if (!rail)
		return muster_fail(job, -ENOMEM, "no memory for rail %u", number);
	rail->whole = job;
	rail->settings.rail = number;
	*place = rail;
	err = muster_job_enter(rail, open);
	if (err) {
		muster_fail(job, err, "rail %u: %s", number, rail->sentence);
		*place = NULL;
		muster_job_free(rail);
	}
	return err;
}

/* Their worlds were made as they were joined. */
static void begin(struct muster *job)
{
	struct muster_comm *world = job->world;

	for (struct muster *rail = job->next_rail; rail; rail = rail->next_rail) {
		if (job->dev->ops->beside)
			job->dev->ops->beside(job->dev, rail->dev);
		world->next_rail = rail->world;
		world = rail->world;
		tie(job->world, world);
	}
	if (!all_stream(job->world))
		muster_comm_rails_leave(job->world);
}

int muster_rails_join(struct muster *job, muster_dev_open *open)
{
	struct muster **place = &job->next_rail;
	int err = 0;

	for (uint32_t i = 1; i < job->settings.rails && job->oob.size > 1 && !err; i++) {
		err = join(job, i, open, place);
		place = err ? NULL : &(*place)->next_rail;
	}
	if (!err)
		begin(job);
	return err;
}

void muster_rails_close(struct muster *job)
{
	struct muster *rail, *next;

	if (job->whole)
		return;
	if (job->next_rail && job->dev->ops->beside)
		job->dev->ops->beside(job->dev, NULL);
	while ((rail = job->next_rail)) {
		next = rail->next_rail;
		muster_finalize(rail);
		job->next_rail = next;
	}
}

/* ---- communicators -------------------------------------------------------------------------- */

static bool one_is_lost(const struct muster *job)
{
	for (const struct muster *rail = job->next_rail; rail; rail = rail->next_rail)
		if (rail->world->failed)
			return true;
	return false;
}

static int rail_join(struct muster_comm *comm, struct muster *rail, struct muster_comm **made)
{
	int err = muster_comm_make_on(rail, comm, made);

	if (err)
		return muster_fail(comm->job, err, "rail %u: %s", rail->settings.rail, rail->sentence);
	(*made)->offload = comm->offload;
	(*made)->tree = comm->tree;
	tie(comm, *made);
	return 0;
}

int muster_comm_rails_join(struct muster_comm *comm)
{
	struct muster *job = comm->job;
	struct muster_agreement words = { .most = { job->next_rail && one_is_lost(job) } };
	struct muster_comm *last = comm;
	struct muster_group group;
	int err;

	if (!job->next_rail || comm->size == 1)
		return 0;
	group = muster_group_of_all(comm);
	err = muster_agree(&group, &words);
	if (err || words.most[0])
		return err;
	for (struct muster *rail = job->next_rail; rail && !err; rail = rail->next_rail) {
		err = rail_join(comm, rail, &last->next_rail);
		last = last->next_rail;
	}
	if (!err && !all_stream(comm))
		muster_comm_rails_leave(comm);
	return err;
}

void muster_comm_rails_leave(struct muster_comm *comm)
{
	struct muster_comm *rail = comm->whole ? NULL : comm->next_rail, *next;

	for (comm->next_rail = NULL; rail; rail = next) {
		next = rail->next_rail;
		rail->next_rail = rail->whole = NULL;
		if (rail != rail->job->world)
			muster_comm_free(rail);
	}
}

/* ---- operations ------------------------------------------------------------------------------- */

uint64_t muster_rails_part(uint64_t count, uint32_t nr, uint32_t rail, uint64_t *first)
{
	uint64_t each = count / nr, more = count % nr;

	*first = rail * each + (rail < more ? rail : more);
	return each + (rail < more);
}

bool muster_rails_take(const struct muster_comm *comm, const struct muster_call *call)
{
	switch (call->coll) {
	case MUSTER_COLL_ALLREDUCE:
	case MUSTER_COLL_REDUCE:
	case MUSTER_COLL_BROADCAST:
		return comm->next_rail && !comm->whole && !comm->restarts &&
		       call->bytes > comm->job->settings.rail_bytes && !call->as && !call->own &&
		       !muster_comm_is_told(comm);
	default:
		return false;
	}
}

static void *at(const void *buffer, uint64_t bytes)
{
	return buffer ? (void *)((uintptr_t)buffer + bytes) : NULL;
}

static int part_make(struct muster_comm *comm, const struct muster_call *whole, uint32_t rail,
		     const void *in, void *out, struct muster_request **request)
{
	size_t size = muster_dtype_size((uint8_t)whole->type);
	struct muster_call call = *whole;
	uint64_t first;

	call.whole = whole->count;
	call.count = muster_rails_part(whole->count, comm->job->settings.rails, rail, &first);
	call.bytes = call.count * size;
	return muster_request_make(comm, &call, at(in, first * size), at(out, first * size), request);
}

/* All or none: whoever cannot pin a part of its buffers has started nothing. */
int muster_rails_make(struct muster_comm *comm, const struct muster_call *call, const void *in,
		      void *out, struct muster_request **request)
{
	struct muster_request **place = request;
	struct muster *job = comm->job;
	int err = 0;

	*request = NULL;
	for (struct muster_comm *rail = comm; rail && !err; rail = rail->next_rail) {
		err = part_make(rail, call, rail->job->settings.rail, in, out, place);
		if (err && rail != comm)
			muster_fail(job, err, "rail %u: %s", rail->job->settings.rail, rail->job->sentence);
		if (!err)
			place = &(*place)->next_rail;
	}
	if (err) {
		*place = NULL;
		muster_request_unmake(*request);
	}
	return err;
}

/* ---- what is said of them ------------------------------------------------------------------------ */

void muster_rails_words(const struct muster_request *request, char *before, size_t before_len,
			char *behind, size_t behind_len)
{
	const struct muster_request *part = request->next_rail;

	*before = *behind = '\0';
	if (!part)
		return;
	snprintf(before, before_len, "rails %u: ", request->job->settings.rails);
	while (part && (!part->why || !strcmp(part->why, request->why)))
		part = part->next_rail;
	if (part)
		snprintf(behind, behind_len, "; rail %u: %s", part->job->settings.rail, part->why);
}

struct muster_comm *muster_rails_awaited(struct muster_comm *comm)
{
	const struct muster_request *part = comm->first;

	if (!part || !part->ended)
		return comm;
	while ((part = part->next_rail))
		if (part->state != MUSTER_REQUEST_DONE)
			return part->comm;
	return comm;
}

/* ---- failing ---------------------------------------------------------------------------------------- */

void muster_rails_abort(struct muster_comm *comm)
{
	uint8_t status = comm->status ? comm->status : MUSTER_STATUS_ABORTED;
	uint32_t culprit = comm->status ? comm->culprit : comm->rank;

	if (comm->whole)
		return;
	if (culprit >= comm->size)
		culprit = MUSTER_CULPRIT_NONE;
	for (struct muster_comm *rail = comm->next_rail; rail; rail = rail->next_rail)
		muster_comm_abort(rail, status, culprit, NULL, NULL);
}

/* Who cannot be reached by that rail lives, unless the first one's device knows better. */
void muster_rail_failed(struct muster_comm *comm, uint8_t status, uint32_t culprit)
{
	struct muster_comm *whole = comm->whole;

	if (!whole)
		return;
	if (status == MUSTER_STATUS_PEER_LOST && !muster_comm_has_lost(whole, culprit))
		culprit = MUSTER_CULPRIT_NONE;
	muster_comm_abort(whole, status, culprit, NULL, NULL);
}

void muster_rail_gave_up(struct muster_comm *comm, int err, uint32_t culprit)
{
	struct muster_comm *whole = comm->whole;

	if (!whole || whole->failed)
		return;
	muster_fail(whole->job, err, "rail %u: %s", comm->job->settings.rail, muster_comm_why(comm));
	muster_comm_give_up_for(whole, err, culprit);
}
