// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Communicators: who is in them, agreed by all ranks of the job, and one device
 * context each. It is open at every member before creation returns at any, since
 * an engine drops packets for contexts that it does not know.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* What each rank brings to the creation of a communicator. */
struct proposal {
	int32_t status;
	uint32_t nr;
	uint64_t digest;	/* of ranks */
	uint64_t taken;		/* bit i: context + i is in use here */
	uint32_t ring_free;
	uint32_t context;
};

_Static_assert(sizeof(struct proposal) <= MUSTER_EXCHANGE_LATER, "size");

static uint64_t ranks_digest(uint32_t nr, const uint32_t *ranks)
{
	uint64_t digest = 0xcbf29ce484222325ull;	/* FNV-1a */

	for (uint32_t i = 0; i < nr; i++)
		digest = (digest ^ ranks[i]) * 0x100000001b3ull;
	return digest;
}

static int ranks_check(struct muster *job, uint32_t nr, const uint32_t *ranks)
{
	bool *seen;
	int err = 0;

	if (!ranks || !nr || nr > job->oob.size)
		return muster_fail(job, -EINVAL, "muster_comm_create: %u ranks at %p; allowed are 1 to %u",
				   nr, (const void *)ranks, job->oob.size);
	seen = calloc(job->oob.size, sizeof(*seen));
	if (!seen)
		return muster_fail(job, -ENOMEM, "no memory for %u ranks", nr);
	for (uint32_t i = 0; i < nr && !err; i++) {
		if (ranks[i] >= job->oob.size)
			err = muster_fail(job, -EINVAL, "muster_comm_create: ranks[%u] is %u, but the job has %u ranks",
					  i, ranks[i], job->oob.size);
		else if (seen[ranks[i]])
			err = muster_fail(job, -EINVAL, "muster_comm_create: rank %u is named twice",
					  ranks[i]);
		else
			seen[ranks[i]] = true;
	}
	free(seen);
	return err;
}

/* Numbers come round again after 2^32 communicators; some may still be open. */
static uint64_t contexts_taken(const struct muster *job)
{
	uint64_t taken = 0;

	for (const struct muster_comm *comm = job->comms; comm; comm = comm->next) {
		uint32_t ahead = comm->context - job->next_context;

		if (ahead < 64)
			taken |= 1ull << ahead;
	}
	return taken;
}

static int proposals_check(struct muster *job, const struct proposal *mine,
			   const struct proposal *all, uint32_t *ring_free, uint32_t *context)
{
	uint64_t taken = 0;

	*ring_free = UINT32_MAX;
	for (uint32_t r = 0; r < job->oob.size; r++) {
		if (all[r].status)
			return muster_fail(job, muster_rank_errno(all[r].status), "muster_comm_create: rank %u refused its arguments: %s; its own message says why",
					   r, strerror(-muster_rank_errno(all[r].status)));
		if (all[r].nr != mine->nr || all[r].digest != mine->digest ||
		    all[r].context != mine->context)
			return muster_fail(job, -EINVAL, "muster_comm_create: rank %u names other ranks than this one; all must name the same, in the same order",
					   r);
		if (all[r].ring_free < *ring_free)
			*ring_free = all[r].ring_free;
		taken |= all[r].taken;
	}
	if (taken == UINT64_MAX)
		return muster_fail(job, -ENOSPC, "the 64 contexts from %u on are in use at some rank; free a communicator first",
				   mine->context);
	*context = mine->context + __builtin_ctzll(~taken);
	return 0;
}

/* Agree on the ranks, on a context, and on how full the fullest receive ring is. */
static int propose(struct muster *job, int status, uint32_t nr, const uint32_t *ranks,
		   uint32_t *ring_free, uint32_t *context)
{
	struct proposal mine = {
		.status = status,
		.nr = nr,
		.digest = status ? 0 : ranks_digest(nr, ranks),
		.taken = contexts_taken(job),
		.ring_free = job->ring_free,
		.context = job->next_context,
	};
	const void *all;
	int err;

	job->next_context++;	/* in any case, as at all other ranks */
	job->lives++;
	err = muster_exchange(job, status, &mine, sizeof(mine), &all);
	if (!err)
		err = proposals_check(job, &mine, all, ring_free, context);
	if (!err)
		job->next_context = *context + 1;
	return err;
}

/* Has it come about everywhere? */
static int confirm(struct muster *job, int status)
{
	int32_t mine = status;
	const void *said;
	const int32_t *all;
	int err = muster_exchange(job, status, &mine, sizeof(mine), &said);

	all = said;
	for (uint32_t r = 0; r < job->oob.size && !err; r++)
		if (all[r])
			err = muster_fail(job, muster_rank_errno(all[r]), "rank %u could not open the communicator: %s; its own message says why",
					  r, strerror(-muster_rank_errno(all[r])));
	return err;
}

/* ---- making one ----------------------------------------------------------------- */

/* Half of what the rings have left, shared by the pairs; the same on every rank. */
static int credits_choose(struct muster *job, uint32_t nr, uint32_t ring_free, uint32_t *credits)
{
	uint32_t pair;

	*credits = 0;
	if (nr == 1)
		return 0;
	pair = ring_free / 2 / (nr - 1);
	if (pair <= MUSTER_CREDIT_SLOTS)
		return muster_fail(job, -ENOSPC, "the receive rings have %u slots left, too few for another communicator of %u ranks (%u are needed); free one first",
				   ring_free, nr, 2 * (nr - 1) * (MUSTER_CREDIT_SLOTS + 1));
	*credits = MUSTER_CREDITS_MAX;
	while (*credits > pair - MUSTER_CREDIT_SLOTS)
		*credits /= 2;
	return 0;
}

static int context_open(struct muster_comm *comm)
{
	struct muster *job = comm->job;
	const struct muster_dev_context config = {
		.context = comm->context,
		.life = comm->life,
		.job = job->id,
		.job_key = job->key,
		.self = comm->rank,
		.nr_members = comm->size,
		.members = comm->members,
	};
	int err = job->dev->ops->context_open(job->dev, &config);

	if (err == -ENOSPC)
		return muster_fail(job, err, "the device has no context left (it has %u); free a communicator first",
				   job->dev->limits.contexts);
	if (err)
		return muster_fail(job, err, "the device does not open context %u: %s",
				   comm->context, strerror(-err));
	return 0;
}

enum { BOUNCE_BYTES = (MUSTER_BOUNCE_SLOTS + MUSTER_KEPT_SLOTS) * MUSTER_INLINE_MAX };

static int bounce_open(struct muster_comm *comm)
{
	struct muster *job = comm->job;
	void *bounce;
	int err = job->dev->ops->mem_alloc(job->dev, BOUNCE_BYTES, &bounce, &comm->bounce_key);

	if (err)
		return muster_fail(job, err, "no device memory for small results: %s", strerror(-err));
	comm->bounce = bounce;
	return 0;
}

static void bounce_close(struct muster_comm *comm)
{
	struct muster_dev *dev = comm->job->dev;

	dev->ops->mem_free(dev, comm->bounce, BOUNCE_BYTES, comm->bounce_key);
}

static int members_set(struct muster_comm *comm, uint32_t nr, const uint32_t *ranks)
{
	struct muster *job = comm->job;

	comm->members = calloc(nr, sizeof(*comm->members));
	if (!comm->members)
		return muster_fail(job, -ENOMEM, "no memory for %u members", nr);
	for (uint32_t i = 0; i < nr; i++) {
		comm->members[i] = job->addresses[ranks[i]];
		if (ranks[i] == job->oob.rank)
			comm->rank = i;
	}
	comm->size = nr;
	return 0;
}

static int comm_build(struct muster *job, uint32_t context, uint32_t nr, const uint32_t *ranks,
		      uint32_t credits, struct muster_comm **result)
{
	struct muster_comm *comm = calloc(1, sizeof(*comm));
	int err;

	if (!comm)
		return muster_fail(job, -ENOMEM, "no memory for a communicator");
	comm->job = job;
	comm->context = context;
	comm->life = job->lives;
	comm->offload = job->settings.offload;
	comm->last.why = "no operation has finished yet";
	err = members_set(comm, nr, ranks);
	if (err)
		goto err_free;
	err = bounce_open(comm);
	if (err)
		goto err_free_members;
	err = muster_channel_open(comm, credits, muster_host_take);
	if (err)
		goto err_close_bounce;
	err = context_open(comm);
	if (err)
		goto err_close_channel;
	job->ring_free -= muster_channel_slots(nr, credits);
	comm->next = job->comms;
	job->comms = comm;
	*result = comm;
	return 0;

err_close_channel:
	muster_channel_close(comm);
err_close_bounce:
	bounce_close(comm);
err_free_members:
	free(comm->members);
err_free:
	free(comm);
	return err;
}

static bool is_member(const struct muster *job, uint32_t nr, const uint32_t *ranks)
{
	for (uint32_t i = 0; i < nr; i++)
		if (ranks[i] == job->oob.rank)
			return true;
	return false;
}

int muster_comm_open(struct muster *job, uint32_t nr, const uint32_t *ranks,
		     struct muster_comm **comm)
{
	uint32_t ring_free = 0, credits;
	uint32_t context = 0;
	int err;

	*comm = NULL;
	err = propose(job, ranks_check(job, nr, ranks), nr, ranks, &ring_free, &context);
	if (err)
		return err;
	err = credits_choose(job, nr, ring_free, &credits);
	if (err)
		return err;
	if (is_member(job, nr, ranks)) {
		err = comm_build(job, context, nr, ranks, credits, comm);
		if (!err)
			err = muster_comm_inherit(*comm);
	}
	err = confirm(job, err);
	if (err && *comm) {
		muster_comm_close(*comm);
		*comm = NULL;
	}
	return err;
}

int muster_comm_create(struct muster *job, uint32_t nr, const uint32_t *ranks,
		       struct muster_comm **comm)
{
	struct muster_comm *unused;

	/* A missing result pointer is refused at all ranks, as any other argument. */
	if (!comm) {
		muster_comm_open(job, 0, NULL, &unused);
		return muster_fail(job, -EINVAL, "muster_comm_create: comm is NULL");
	}
	return muster_comm_open(job, nr, ranks, comm);
}

/* ---- ending one -------------------------------------------------------------------- */

/*
 * What was sent last must leave before the context goes, or others wait for ever.
 * sleeps: for how long to try; UINT32_MAX: until it has.
 */
static void drain(struct muster_comm *comm, uint32_t sleeps)
{
	for (uint32_t turn = 0; sleeps && !comm->failed && !muster_channel_idle(comm); turn++) {
		muster_channel_flush(comm);
		if (muster_progress(comm->job) || turn <= comm->job->spin_polls)
			continue;
		comm->job->dev->ops->wait(comm->job->dev, MUSTER_SLEEP_US);
		sleeps -= sleeps != UINT32_MAX;
	}
}

static void unlink_comm(struct muster_comm *comm)
{
	struct muster_comm **place = &comm->job->comms;

	while (*place != comm)
		place = &(*place)->next;
	*place = comm->next;
}

void muster_comm_close(struct muster_comm *comm)
{
	struct muster *job = comm->job;

	if (comm->first)
		muster_comm_abort(comm, MUSTER_STATUS_ABORTED, comm->rank, NULL, NULL);
	drain(comm, UINT32_MAX);
	muster_channel_leave(comm);
	drain(comm, MUSTER_LEAVE_SLEEPS);
	unlink_comm(comm);
	job->ring_free += muster_channel_slots(comm->size, muster_channel_credits(comm));
	job->dev->ops->context_close(job->dev, job->id, comm->context);
	muster_channel_close(comm);
	muster_host_close(comm);
	muster_cache_close(comm);
	muster_kept_close(comm);
	if (comm->scratch)
		job->dev->ops->mem_free(job->dev, comm->scratch, comm->scratch_bytes,
					comm->scratch_key);
	bounce_close(comm);
	free(comm->members);
	free(comm);
}

void muster_comm_free(struct muster_comm *comm)
{
	if (!comm)
		return;
	if (comm == comm->job->world) {
		muster_fail(comm->job, -EINVAL, "muster_comm_free: the world goes with muster_finalize()");
		return;
	}
	muster_comm_close(comm);
}

/* ---- questions ------------------------------------------------------------------------ */

struct muster_comm *muster_comm_find(struct muster *job, uint8_t id, uint32_t context)
{
	struct muster_comm *comm = job->comms;

	if (id != job->id)
		return NULL;
	while (comm && comm->context != context)
		comm = comm->next;
	return comm;
}

uint32_t muster_comm_rank(const struct muster_comm *comm)
{
	return comm->rank;
}

uint32_t muster_comm_size(const struct muster_comm *comm)
{
	return comm->size;
}

void muster_comm_last(const struct muster_comm *comm, struct muster_op_info *info)
{
	*info = comm->last;
}

int muster_comm_scratch(struct muster_comm *comm, uint64_t bytes)
{
	struct muster_dev *dev = comm->job->dev;
	int err;

	if (bytes <= comm->scratch_bytes)
		return 0;
	if (comm->scratch)
		dev->ops->mem_free(dev, comm->scratch, comm->scratch_bytes, comm->scratch_key);
	comm->scratch = NULL;
	comm->scratch_bytes = 0;
	err = dev->ops->mem_alloc(dev, bytes, &comm->scratch, &comm->scratch_key);
	if (err)
		return muster_fail(comm->job, err, "no %llu bytes of device memory for what is not yet a result: %s",
				   (unsigned long long)bytes, strerror(-err));
	comm->scratch_bytes = bytes;
	return 0;
}
