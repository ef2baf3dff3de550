// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Locks of a communicator's streaming tree (Documentation/switch.md, section 10), where other jobs
 * use it as well. A request is a small operation of its own on the low-latency tree, which the
 * device runs in its turn; what comes of it is the same at all members. It is for as many operations as
 * all of them have started: so whoever has a lock uses it up without its caller. What is refused is asked
 * for again, or another path is taken; that is agreed upon by the request itself.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "muster_wire.h"
#include "tree.h"

static uint8_t *place_of(const struct muster_comm *comm)
{
	return comm->warm->bounce + (size_t)MUSTER_LOCK_SLOT * MUSTER_INLINE_MAX;
}

/* ---- asking --------------------------------------------------------------------------------- */

/* From this one on, as many as there are, and as fit into a slice. */
static uint64_t operations_wanted(const struct muster_request *request)
{
	const struct muster_comm *comm = request->comm;
	uint64_t nr = 0, most = comm->trees->lock.most;

	for (; request; request = request->next)
		nr += request->path == MUSTER_PATH_SWITCH &&
		      muster_trees_locks(comm, request->entry);
	return most && nr > most ? most : nr;
}

static bool patience_ended(const struct muster_comm *comm)
{
	const struct muster_tree_lock *lock = &comm->trees->lock;

	return muster_now_us(comm->job) - lock->since_us > comm->job->settings.lock_us;
}

static void lock_fill(const struct muster_request *request, struct muster_lock *lock)
{
	const struct muster_comm *comm = request->comm;
	uint64_t how = comm->job->settings.lock_fails ? MUSTER_LOCK_TRY :
		       comm->trees->lock.waits ? MUSTER_LOCK_WAIT : MUSTER_LOCK_KEEP;

	*lock = (struct muster_lock){
		.operations = htole64(patience_ended(comm) ? 0 : operations_wanted(request)),
		.free = htole64(1),
		.how = htole64(how),
		.asked = UINT64_MAX, .place = UINT64_MAX, .again = UINT64_MAX,
	};
}

static void descs_fill(const struct muster_request *request, struct muster_desc descs[2])
{
	const struct muster_comm *comm = request->comm;
	struct muster_lock lock;

	for (int i = 0; i < 2; i++)
		descs[i] = (struct muster_desc){
			.kind = MUSTER_DESC_MP,
			.flags = MUSTER_DESC_C,
			.src_vp = comm->job->dev->address.vp,
			.job = comm->job->id,
			.context = comm->context,
			.signature = {
				.coll = MUSTER_COLL_LOCK, .type = MUSTER_DTYPE_U64,
				.op = MUSTER_REDOP_MIN,
			},
			.length = sizeof(lock),
		};
	descs[0].flags |= MUSTER_DESC_CH | MUSTER_DESC_CP;
	descs[0].dest = MUSTER_FIELD_PREP(MUSTER_DEST_NODE, comm->job->settings.uplink);
	descs[0].dst_vp = comm->trees->by_type[MUSTER_TREE_LLT].tree;
	descs[0].inline_len = sizeof(lock);
	lock_fill(request, &lock);
	memcpy(descs[0].data, &lock, sizeof(lock));
	descs[1].flags |= MUSTER_DESC_CT | MUSTER_DESC_COLL_END;
	descs[1].cp_count = 1;
	descs[1].store_key = comm->warm->bounce_key;
	descs[1].store_addr = (uintptr_t)place_of(comm);
}

/* Behind all that was posted before: when it runs, those have ended. */
static int ask(struct muster_request *request)
{
	struct muster_comm *comm = request->comm;
	struct muster_tree_lock *lock = &comm->trees->lock;
	struct muster_dev *dev = comm->job->dev;
	struct muster_desc descs[2];
	int err;

	if (!muster_comm_has_room(comm))
		return -EAGAIN;
	if (muster_comm_bounce(comm))
		return muster_comm_give_up(comm, -ENOMEM);
	if (!lock->since_us)
		lock->since_us = muster_now_us(comm->job);
	descs_fill(request, descs);
	err = dev->ops->post(dev, descs, 2);
	if (err)
		return err;
	lock->sequence = comm->sequences++;
	lock->asked = true;
	return -EAGAIN;
}

int muster_lock_have(struct muster_request *request)
{
	struct muster_tree_lock *lock = &request->comm->trees->lock;

	if (request->locked || !muster_trees_locks(request->comm, request->entry))
		return 0;
	if (lock->asked)
		return -EAGAIN;
	if (lock->refused) {
		lock->refused = false;
		return -EBUSY;
	}
	if (!lock->left)
		return ask(request);
	lock->left--;
	lock->going++;
	request->locked = true;
	return 0;
}

/* ---- what comes of it ------------------------------------------------------------------------- */

static void waited(struct muster_comm *comm)
{
	struct muster_tree_lock *lock = &comm->trees->lock;
	struct muster_locks *locks = &comm->job->locks;
	uint64_t us = muster_now_us(comm->job) - lock->since_us;

	locks->wait_us += us;
	locks->wait_us_max = us > locks->wait_us_max ? us : locks->wait_us_max;
	lock->since_us = 0;
}

static void got(struct muster_comm *comm, uint64_t operations)
{
	struct muster_tree_lock *lock = &comm->trees->lock;

	waited(comm);
	comm->job->locks.nr++;
	lock->left = lock->given = operations;
	lock->going = 0;
	lock->given_us = muster_now_us(comm->job);
	lock->waits = false;
}

static void give_up(struct muster_comm *comm)
{
	waited(comm);
	comm->job->locks.given_up++;
	comm->trees->lock.refused = true;
	comm->trees->lock.waits = false;
}

bool muster_lock_hear(struct muster_comm *comm, const struct muster_cqe *cqe)
{
	struct muster_tree_lock *lock = &comm->trees->lock;
	struct muster_lock said;

	if (!lock->asked || cqe->number != lock->sequence)
		return false;
	lock->asked = false;
	memcpy(&said, place_of(comm), sizeof(said));
	if (!said.operations || (!said.free && said.how == MUSTER_LOCK_TRY))
		give_up(comm);
	else if (said.how == htole64(MUSTER_LOCK_WAIT))
		lock->waits = !said.free;
	else if (said.free)
		got(comm, le64toh(said.operations));
	else
		lock->waits = true;
	muster_comm_activate(comm);
	return true;
}

void muster_lock_used(struct muster_request *request)
{
	struct muster *job = request->job;
	struct muster_tree_lock *lock = &request->comm->trees->lock;
	uint64_t us = muster_now_us(job) - lock->given_us;

	if (--lock->going || lock->left)
		return;
	if (us > job->locks.lease_us_max)
		job->locks.lease_us_max = us;
	lock->most = 1 + lock->given * job->settings.slice_us / (us ? us : 1);
}
