// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The short calls of which programs make most: MPI_Barrier, and MPI_Allreduce of a type and an operation
 * that the last reduction of its communicator had. What muster_mpi_run() would find out of them is known
 * then. All else goes there, and what is counted, too (MUSTER_MPI_STATS).
 */
#include "shim.h"

#include <errno.h>

static struct muster_mpi_comm *find(MPI_Comm handle)
{
	return muster_mpi.stats ? NULL : muster_mpi_comm_recent(handle);
}

/* Begun under the lock, which is given up here. */
static int finish(MPI_Comm handle, enum muster_mpi_coll coll, int err, struct muster_request *request)
{
	bool done = err;

	if (!done)
		err = muster_mpi_test_often(request, &done);
	if (err)
		muster_mpi_note();
	pthread_mutex_unlock(&muster_mpi.lock);
	if (!done)
		err = muster_mpi_wait_request(request);
	return err ? muster_mpi_fail_call(handle, coll, err) : MPI_SUCCESS;
}

bool muster_mpi_quick_barrier(MPI_Comm handle, int *err)
{
	const struct muster_mpi_comm *comm = find(handle);
	struct muster_request *request = NULL;

	if (!comm)
		return false;
	pthread_mutex_lock(&muster_mpi.lock);
	*err = muster_barrier_start(comm->muster, &request);
	*err = finish(handle, COLL_Barrier, *err, request);
	return true;
}

/* Is that what it seems? Others are copied, or are MPI's to refuse. */
static bool is_easy(const void *in, const void *out, uint64_t bytes)
{
	uintptr_t from = (uintptr_t)in, to = (uintptr_t)out;

	return bytes && in && out && out != MPI_IN_PLACE && (from + bytes <= to || to + bytes <= from);
}

bool muster_mpi_quick_allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
				MPI_Comm handle, int *err)
{
	const struct muster_mpi_comm *comm = find(handle);
	struct muster_request *request = NULL;

	if (!comm || !comm->last.is.type || comm->last.type != type || comm->last.op != op || count < 0)
		return false;
	if (in == MPI_IN_PLACE || !is_easy(in, out, comm->last.is.bytes * (uint64_t)count))
		return false;
	pthread_mutex_lock(&muster_mpi.lock);
	*err = muster_allreduce_start(comm->muster, in, out, (uint64_t)count, comm->last.is.type,
				      comm->last.is.op, &request);
	*err = finish(handle, COLL_Allreduce, *err, request);
	return true;
}
