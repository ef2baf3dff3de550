// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Communicators: who is in them, and one device context each. It is open at every
 * member before creation returns at any (group.c), since an engine drops packets for
 * contexts that it does not know. Nobody looks at one that is idle: only those that
 * are listed as active are visited.
 *
 * A communicator that was freed goes on until its operations have ended and its
 * members are told; then it is closed, in some later call.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "graph.h"
#include "host.h"
#include "look.h"
#include "message.h"
#include "rails.h"
#include "restart.h"
#include "tree.h"
#include "turn.h"

/* ---- making one ----------------------------------------------------------------- */

static int context_open(struct muster_comm *comm)
{
	struct muster *job = comm->job;
	struct muster_address *members = calloc(comm->size, sizeof(*members));
	const struct muster_dev_context config = {
		.context = comm->context,
		.life = comm->life,
		.job = job->id,
		.job_key = job->key,
		.self = comm->rank,
		.nr_members = comm->size,
		.members = members,
	};
	int err = members ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < comm->size && !err; i++)
		members[i] = *muster_comm_address(comm, i);
	if (!err)
		err = job->dev->ops->context_open(job->dev, &config);
	free(members);
	if (err == -ENOSPC)
		return muster_fail(job, err, "the device has no context left (it has %u); free a communicator first",
				   job->dev->limits.contexts);
	if (err)
		return muster_fail(job, err, "the device does not open context %u: %s",
				   comm->context, strerror(-err));
	return 0;
}

/* The memory of small results, once there is one. */
int muster_comm_bounce(struct muster_comm *comm)
{
	struct muster_warm *warm = comm->warm;

	return warm->bounce ? 0 : muster_bounce_take(comm->job, &warm->bounce, &warm->bounce_key);
}

static int members_set(struct muster_comm *comm, uint32_t nr, const uint32_t *ranks)
{
	struct muster *job = comm->job;

	comm->ranks = muster_members_get(job, nr, ranks);
	if (!comm->ranks)
		return muster_fail(job, -ENOMEM, "no memory for %u members", nr);
	while (ranks[comm->rank] != job->oob.rank)
		comm->rank++;
	comm->size = nr;
	return 0;
}

static struct muster_comm **place_of(struct muster *job, uint32_t context)
{
	struct muster_comm **place = &job->comms[context % MUSTER_COMM_BUCKETS];

	while (*place && (*place)->context != context)
		place = &(*place)->next;
	return place;
}

int muster_comm_build(struct muster *job, uint32_t context, uint32_t life, uint32_t nr,
		      const uint32_t *ranks, struct muster_comm **result)
{
	struct muster_comm *comm = calloc(1, sizeof(*comm));
	int err;

	if (!comm)
		return muster_fail(job, -ENOMEM, "no memory for a communicator");
	comm->refs = 1;
	comm->job = job;
	comm->context = context;
	comm->life = life;
	comm->offload = job->settings.offload;
	comm->tree = job->settings.tree;
	comm->last.why = "no operation has finished yet";
	err = members_set(comm, nr, ranks);
	if (!err)
		err = muster_restart_set(comm, job->settings.restart);
	if (!err && nr > 1)	/* alone it has nothing to say */
		err = context_open(comm);
	if (err)
		goto err_free;
	muster_look_comm_open(comm);
	*place_of(job, context) = comm;
	job->nr_comms++;
	*result = comm;
	return 0;

err_free:
	muster_restart_forget(comm);
	muster_members_put(job, comm->ranks);
	free(comm);
	return err;
}

int muster_comm_open_world(struct muster *job)
{
	uint32_t *ranks = calloc(job->oob.size, sizeof(*ranks));
	struct muster_comm *world = NULL;
	int err;

	if (!ranks)
		return muster_fail(job, -ENOMEM, "no memory for %u ranks", job->oob.size);
	for (uint32_t r = 0; r < job->oob.size; r++)
		ranks[r] = r;
	job->lives = 1;
	err = muster_comm_build(job, 0, job->lives, job->oob.size, ranks, &world);
	free(ranks);
	if (err)
		return err;
	job->world = world;
	return muster_comm_inherit(world);
}

/* ---- visits ------------------------------------------------------------------------ */

void muster_comm_activate(struct muster_comm *comm)
{
	struct muster *job = comm->job;

	if (comm->active)
		return;
	comm->active = true;
	comm->next_active = job->active;
	job->active = comm;
}

/* Freed, and nothing of it is under way any more. */
static bool is_over(struct muster_comm *comm)
{
	if (!comm->freed || comm->first || comm->persistent || !muster_channel_idle(comm))
		return false;
	muster_channel_leave(comm);
	return muster_channel_has_left(comm);
}

static void visit(struct muster_comm *comm)
{
	comm->again = false;
	muster_channel_flush(comm);
	if (comm->first && comm->first->ended)
		muster_ended_finish(comm);
	if (comm->trees)
		muster_move_visit(comm);
	if (comm->unposted)
		muster_advance(comm);
	if (is_over(comm))
		muster_comm_close(comm);
	else if (comm->again)
		muster_comm_activate(comm);
}

void muster_comms_visit(struct muster *job)
{
	struct muster_comm *comm = job->active, *next;

	job->active = NULL;
	for (; comm; comm = next) {
		next = comm->next_active;
		comm->active = false;
		visit(comm);
	}
}

/* ---- ending one -------------------------------------------------------------------- */

static void unlink_comm(struct muster_comm *comm)
{
	struct muster *job = comm->job;
	struct muster_comm **place = place_of(job, comm->context);

	*place = comm->next;
	for (place = &job->active; *place && *place != comm; place = &(*place)->next_active)
		;
	if (*place)
		*place = comm->next_active;
	if (comm->context < job->ids_from)
		job->ids_from = comm->context;
	job->nr_comms--;
}

void muster_comm_put(struct muster_comm *comm)
{
	if (--comm->refs)
		return;
	free(comm->why);
	free(comm->last_why);
	free(comm);
}

void muster_comm_close(struct muster_comm *comm)
{
	struct muster *job = comm->job;

	muster_restart_forget(comm);
	if (comm->first)
		muster_comm_abort(comm, MUSTER_STATUS_ABORTED, comm->rank, NULL, NULL);
	while (comm->persistent)
		muster_request_release(comm->persistent);
	muster_comm_rails_leave(comm);
	muster_comm_tree_leave(comm);
	if (comm->size > 1)
		job->dev->ops->context_close(job->dev, job->id, comm->context);
	muster_device_empty(job);	/* the id may be used again from now on */
	muster_channel_close(comm);
	unlink_comm(comm);
	muster_look_comm_close(comm);
	muster_host_close(comm);
	free(comm->cut);
	muster_graph_free(comm->graph);
	free(comm->bump);
	muster_cache_clear(comm);
	muster_comm_told_free(comm);
	muster_comm_forget(comm);
	muster_members_put(job, comm->ranks);
	free(comm->no_tree);
	muster_comm_put(comm);
}

void muster_comm_free(struct muster_comm *comm)
{
	MUSTER_TURN_OF(comm);
	if (!comm)
		return;
	if (comm == comm->job->world) {
		muster_fail(comm->job, -EINVAL, "muster_comm_free: the world goes with muster_finalize()");
		return;
	}
	if (comm->restarts && comm->restarts->comm == comm)
		muster_comm_free(muster_restart_forget(comm));
	comm->freed = true;
	muster_again_drop(comm);
	if (is_over(comm))
		muster_comm_close(comm);
	else
		muster_comm_activate(comm);
}

/* ---- leaving ------------------------------------------------------------------------ */

static struct muster_comm *any_but_world(const struct muster *job)
{
	for (int i = 0; i < MUSTER_COMM_BUCKETS; i++)
		for (struct muster_comm *comm = job->comms[i]; comm; comm = comm->next)
			if (comm != job->world)
				return comm;
	return NULL;
}

/* Is there something that others should hear before this rank goes? */
static bool is_owing(const struct muster *job)
{
	return job->nr_comms > 1 || job->controls_open || !muster_channel_has_left(job->world) ||
	       !muster_channel_idle(job->world);
}

static void leave_all(struct muster *job)
{
	for (int i = 0; i < MUSTER_COMM_BUCKETS; i++)
		for (struct muster_comm *comm = job->comms[i]; comm; comm = comm->next) {
			comm->freed = comm != job->world;
			muster_restart_forget(comm);
			muster_again_drop(comm);
			if (comm->first)
				muster_comm_abort(comm, MUSTER_STATUS_ABORTED, comm->rank, NULL, NULL);
			while (comm->persistent)
				muster_request_release(comm->persistent);
			muster_channel_leave(comm);
			muster_comm_activate(comm);
		}
}

/* What was sent last must leave before the contexts go, or others wait for ever. */
void muster_comms_close(struct muster *job)
{
	uint32_t sleeps = 0;

	leave_all(job);
	for (uint32_t turn = 0; is_owing(job) && sleeps < MUSTER_LEAVE_SLEEPS; turn++) {
		if (muster_progress(job) || turn <= job->spin_polls)
			continue;
		job->dev->ops->wait(job->dev, MUSTER_SLEEP_US);
		sleeps++;
	}
	while (job->nr_comms > 1)
		muster_comm_close(any_but_world(job));
	muster_comm_close(job->world);
	muster_channels_forget(job);
}

/* ---- questions ------------------------------------------------------------------------ */

struct muster_comm *muster_comm_find(struct muster *job, uint8_t id, uint32_t context)
{
	return id == job->id ? *place_of(job, context) : NULL;
}

uint32_t muster_comm_member(const struct muster_comm *comm, uint32_t rank)
{
	uint32_t member = 0;

	if (rank < comm->size && comm->ranks[rank] == rank)
		return rank;
	while (member < comm->size && comm->ranks[member] != rank)
		member++;
	return member;
}

uint32_t muster_comm_rank(const struct muster_comm *comm)
{
	return comm->rank;
}

uint32_t muster_comm_size(const struct muster_comm *comm)
{
	return comm->size;
}

void muster_comm_scratch_free(struct muster_comm *comm)
{
	struct muster_dev *dev = comm->job->dev;
	struct muster_warm *warm = comm->warm;

	if (warm->scratch)
		dev->ops->mem_free(dev, warm->scratch, warm->scratch_bytes, warm->scratch_key);
	warm->scratch = NULL;
	warm->scratch_bytes = 0;
}

int muster_comm_scratch(struct muster_comm *comm, uint64_t bytes)
{
	struct muster_dev *dev = comm->job->dev;
	struct muster_warm *warm = comm->warm;
	int err;

	if (bytes <= warm->scratch_bytes)
		return 0;
	muster_comm_scratch_free(comm);
	err = dev->ops->mem_alloc(dev, bytes, &warm->scratch, &warm->scratch_key);
	if (err)
		return muster_fail(comm->job, err, "no %llu bytes of device memory for what is not yet a result: %s",
				   (unsigned long long)bytes, strerror(-err));
	warm->scratch_bytes = bytes;
	return 0;
}
