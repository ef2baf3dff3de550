// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Communicators: the library's beside each MPI one, as an attribute of it. It is made at the
 * first blocking collective, which may wait for all members; a nonblocking one before that is
 * the MPI library's, at all members alike, as all call the same in the same order. A topology's
 * neighbours are made known to it then, too.
 */
#include "shim.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int keyval = MPI_KEYVAL_INVALID;

_Thread_local struct muster_mpi_recent muster_mpi_recent;
atomic_uint muster_mpi_comms_freed;

void muster_mpi_comm_put(struct muster_mpi_comm *comm)
{
	if (--comm->refs)
		return;
	if (muster_mpi.job && comm->muster && comm->muster != muster_world(muster_mpi.job))
		muster_comm_free(comm->muster);
	if (comm->twin_of)
		muster_mpi_comm_put(comm->twin_of);
	muster_mpi_graph_free(comm->graph);
	free(comm->sentence);
	free(comm);
}

MPI_Comm muster_mpi_comm_handle(const struct muster_mpi_comm *comm)
{
	return comm->twin_of ? comm->twin_of->handle : comm->handle;
}

static void let_go(struct muster_mpi_comm *comm)
{
	pthread_mutex_lock(&muster_mpi.lock);
	comm->handle = MPI_COMM_NULL;
	muster_mpi_comm_put(comm);
	pthread_mutex_unlock(&muster_mpi.lock);
}

/* The communicator's end: what is under way, or persistent, keeps what it needs. */
static int forget(MPI_Comm handle, int key, void *state, void *extra)
{
	(void)handle;
	(void)key;
	(void)extra;
	atomic_fetch_add(&muster_mpi_comms_freed, 1);
	let_go(state);
	return MPI_SUCCESS;
}

/* ---- joining ------------------------------------------------------------------------------ */

/* The members as ranks of the world; false: some are of another. */
static bool translate(MPI_Comm handle, int size, uint32_t *ranks)
{
	int own[size], theirs[size];
	MPI_Group group, world;
	bool all = true;

	PMPI_Comm_group(handle, &group);
	PMPI_Comm_group(MPI_COMM_WORLD, &world);
	for (int i = 0; i < size; i++)
		own[i] = i;
	PMPI_Group_translate_ranks(group, size, own, world, theirs);
	for (int i = 0; i < size; i++) {
		all &= theirs[i] != MPI_UNDEFINED;
		ranks[i] = (uint32_t)theirs[i];
	}
	PMPI_Group_free(&group);
	PMPI_Group_free(&world);
	return all;
}

/* Where that fails for another reason so does the communicator, and says so. */
static void tell_neighbours(struct muster_mpi_comm *comm)
{
	const struct muster_mpi_edges *from = &comm->graph->from, *to = &comm->graph->to;

	if (muster_comm_neighbours(comm->muster, from->nr, from->ranks, to->nr, to->ranks) != -EINVAL)
		return;
	muster_mpi_graph_free(comm->graph);
	comm->graph = NULL;
}

/* Of so many ranks of the job, from 0 or as they are named: the first that it has lost; nr: none. */
static uint32_t lost_among(uint32_t nr, const uint32_t *ranks)
{
	struct muster_comm *world = muster_world(muster_mpi.job);
	uint32_t i = 0;

	while (i < nr && !muster_comm_has_lost(world, ranks ? ranks[i] : i))
		i++;
	return i;
}

bool muster_mpi_has_died(const struct muster_mpi_members *members)
{
	struct muster_comm *world = muster_world(muster_mpi.job);
	uint32_t all = muster_comm_size(world), who;

	if (muster_comm_error(world) != -ECONNRESET)
		return false;
	muster_mpi_note();
	who = lost_among(members->nr, members->ranks);
	if (who == members->nr)
		return lost_among(all, NULL) == all;
	if (members->ranks)
		snprintf(muster_mpi_said, sizeof(muster_mpi_said), "MPI_COMM_WORLD's rank %u has died or left the job; free the communicator and go on without it",
			 members->ranks[who]);
	return true;
}

/*
 * All members are refused alike. One that has died will not be in the MPI library; where it is none of them,
 * they go on there. Under the lock.
 */
static enum muster_mpi_reason not_made(int err, const struct muster_mpi_members *members)
{
	if (err != -ECONNRESET)
		return REASON_NO_ROOM;
	return muster_mpi_has_died(members) ? REASON_DIED : REASON_WORLD_ENDED;
}

/* In turn with all members. */
static enum muster_mpi_reason make(struct muster_mpi_comm *comm, const struct muster_mpi_members *members)
{
	enum muster_mpi_reason why = REASON_NONE;
	int err;

	pthread_mutex_lock(&muster_mpi.lock);
	err = muster_comm_create_group(muster_world(muster_mpi.job), members->nr, members->ranks, 0,
				       &comm->muster);
	if (err) {
		muster_mpi_note();
		why = not_made(err, members);
	} else if (comm->graph) {
		tell_neighbours(comm);
	}
	pthread_mutex_unlock(&muster_mpi.lock);
	return why;
}

/*
 * While a rank that is no member dies, some members may make it and others be refused: then it is made at none.
 * In the order of reasons, whoever knows of a dead member outweighs the others.
 */
static enum muster_mpi_reason agree(MPI_Comm handle, struct muster_mpi_comm *comm,
				    const struct muster_mpi_members *members, enum muster_mpi_reason mine)
{
	const uint64_t words[MUSTER_MPI_WORDS] = { mine };
	uint64_t all[MUSTER_MPI_WORDS];
	int err = muster_mpi_greatest(handle, members, words, all);
	enum muster_mpi_reason why = err == -ECONNRESET ? REASON_DIED : err ? REASON_NO_ROOM :
									     (enum muster_mpi_reason)all[0];

	pthread_mutex_lock(&muster_mpi.lock);
	if (why == REASON_DIED && !err && mine != REASON_DIED && !muster_mpi_has_died(members))
		snprintf(muster_mpi_said, sizeof(muster_mpi_said), "a rank has died or left the job; free the communicator and go on without it");
	if (why && comm->muster) {
		muster_comm_free(comm->muster);
		comm->muster = NULL;
	}
	pthread_mutex_unlock(&muster_mpi.lock);
	return why;
}

static enum muster_mpi_reason create(MPI_Comm handle, struct muster_mpi_comm *comm)
{
	uint32_t ranks[comm->size];
	const struct muster_mpi_members members = { (uint32_t)comm->size, ranks };
	enum muster_mpi_reason why = REASON_NO_ROOM;
	int err;

	if (!translate(handle, comm->size, ranks))
		return REASON_OTHER_JOB;
	err = muster_mpi_take_turn(handle, comm->rank, &members);
	if (err)
		return err == -ECONNRESET ? REASON_DIED : REASON_NO_ROOM;
	if (!muster_mpi_graph_get(handle, comm->rank, &comm->graph))
		why = agree(handle, comm, &members, make(comm, &members));
	muster_mpi_end_turn();
	return why;
}

static enum muster_mpi_reason join(MPI_Comm handle, struct muster_mpi_comm *comm)
{
	int same, inter;

	PMPI_Comm_rank(handle, &comm->rank);
	PMPI_Comm_size(handle, &comm->size);
	if (PMPI_Comm_test_inter(handle, &inter) || inter)
		return REASON_INTER;
	if (comm->size == 1)
		return REASON_ONE_RANK;
	if (PMPI_Comm_compare(handle, MPI_COMM_WORLD, &same) || same != MPI_IDENT)
		return create(handle, comm);
	comm->muster = muster_world(muster_mpi.job);
	return REASON_NONE;
}

static struct muster_mpi_comm *comm_alloc(MPI_Comm handle)
{
	struct muster_mpi_comm *comm = calloc(1, sizeof(*comm));

	if (!comm)
		abort();	/* the others count on it */
	comm->handle = handle;
	comm->refs = 1;
	return comm;
}

struct muster_mpi_comm *muster_mpi_comm_twin(struct muster_mpi_comm *comm, enum muster_mpi_reason *why)
{
	struct muster_mpi_comm *twin = comm_alloc(MPI_COMM_NULL);

	twin->rank = comm->rank;
	twin->size = comm->size;
	*why = create(comm->handle, twin);
	pthread_mutex_lock(&muster_mpi.lock);
	twin->twin_of = comm;
	comm->refs++;
	if (*why)
		muster_mpi_comm_put(twin);
	pthread_mutex_unlock(&muster_mpi.lock);
	return *why ? NULL : twin;
}

/* ---- ending ------------------------------------------------------------------------------- */

/* Whose attributes are deleted in this thread; NULL: nobody's. */
static _Thread_local const MPI_Comm *ending;

/* NULL: it has none. */
static struct muster_mpi_comm *take_off(const MPI_Comm *handle)
{
	struct muster_mpi_comm *comm;
	int found = 0;

	if (!muster_mpi.job || !handle || *handle == MPI_COMM_NULL ||
	    PMPI_Comm_get_attr(*handle, keyval, &comm, &found) || !found)
		return NULL;
	pthread_mutex_lock(&muster_mpi.lock);
	comm->refs++;
	pthread_mutex_unlock(&muster_mpi.lock);
	PMPI_Comm_delete_attr(*handle, keyval);
	return comm;
}

/* The MPI library has not freed it: a callback has failed. */
static void put_back(MPI_Comm handle, struct muster_mpi_comm *comm)
{
	comm->handle = handle;
	PMPI_Comm_set_attr(handle, keyval, comm);
}

int muster_mpi_comm_end(MPI_Comm *handle, int (*end)(MPI_Comm *handle))
{
	const MPI_Comm *outer = ending;
	struct muster_mpi_comm *comm = take_off(handle);
	int err;

	ending = handle;
	err = end(handle);
	ending = outer;
	if (comm && err)
		put_back(*handle, comm);
	else if (comm)
		let_go(comm);
	return err;
}

/* ---- finding ------------------------------------------------------------------------------ */

/* Nobody to wait for. */
static bool is_alone(MPI_Comm handle)
{
	int size;

	return !PMPI_Comm_size(handle, &size) && size == 1;
}

static struct muster_mpi_comm *comm_new(MPI_Comm handle)
{
	struct muster_mpi_comm *comm = comm_alloc(handle);

	comm->why = join(handle, comm);
	if (comm->why == REASON_DIED)
		comm->sentence = strdup(muster_mpi_said);
	PMPI_Comm_set_attr(handle, keyval, comm);
	return comm;
}

struct muster_mpi_comm *muster_mpi_comm_find(MPI_Comm handle, bool may_join,
					     enum muster_mpi_reason *why)
{
	struct muster_mpi_comm *comm;
	int found = 0;

	comm = muster_mpi_comm_recent(handle);
	*why = comm ? REASON_NONE : muster_mpi.job ? REASON_INVALID : REASON_NO_JOB;
	if (comm || !muster_mpi.job)
		return comm;
	if (ending && *ending == handle) {
		*why = REASON_ENDING;
		return NULL;
	}
	if (handle == MPI_COMM_NULL || PMPI_Comm_get_attr(handle, keyval, &comm, &found))
		return NULL;
	*why = REASON_NOT_JOINED;
	if (!found && !may_join && !is_alone(handle))
		return NULL;
	if (!found)
		comm = comm_new(handle);
	*why = comm->why;
	if (comm->sentence)
		snprintf(muster_mpi_said, sizeof(muster_mpi_said), "%s", comm->sentence);
	if (!comm->muster)
		return NULL;
	muster_mpi_recent = (struct muster_mpi_recent){ handle, comm, atomic_load(&muster_mpi_comms_freed) };
	return comm;
}

int muster_mpi_comms_open(void)
{
	return PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, NULL);
}
