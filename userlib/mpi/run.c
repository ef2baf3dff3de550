// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What every collective does: find the communicator, give the call to the library, wait for it or
 * make a request of it; or pass it to the MPI library as it came, and say why.
 */
#include "shim.h"

#include <errno.h>
#include <stdlib.h>

/*
 * What is passed although offload is forced: there is nothing to offload, or nothing right. In the MPI
 * library one would wait for the dead.
 */
bool muster_mpi_may_pass(enum muster_mpi_reason why)
{
	return why <= REASON_INVALID || (!muster_mpi.force && why != REASON_DIED);
}

int muster_mpi_fail_call(MPI_Comm comm, enum muster_mpi_coll coll, int err)
{
	return muster_mpi_error(comm, muster_mpi_coll_name(coll), err, muster_mpi_said);
}

static int fail(const struct muster_mpi_call *call, int err)
{
	return muster_mpi_fail_call(call->comm, call->coll, err);
}

int muster_mpi_refuse(const struct muster_mpi_call *call, enum muster_mpi_reason why)
{
	if (why == REASON_DIED)
		return fail(call, -ECONNRESET);
	return fail(call, muster_mpi_fail(-EOPNOTSUPP, "MUSTER_OFFLOAD is force, but this call is the MPI library's: %s; unset it to have it so",
					  why == REASON_NO_JOB ? muster_mpi.no_job :
								 muster_mpi_reason(why)));
}

static int pass(const struct muster_mpi_call *call, MPI_Request *request, double began,
		enum muster_mpi_reason why)
{
	int err;

	if (!muster_mpi_may_pass(why))
		return muster_mpi_refuse(call, why);
	err = muster_mpi_pass(call, request);
	muster_mpi_stats_passed(call->coll, why, began);
	return err;
}

/* Until it has ended. */
static int finish(struct muster_mpi_op *op)
{
	int err = muster_mpi_wait(op);

	if (!err)
		muster_mpi_stats_ended(op);
	return err;
}

int muster_mpi_run(const struct muster_mpi_call *call)
{
	struct muster_mpi_op op = { .coll = call->coll, .began = muster_mpi_now() };
	enum muster_mpi_reason why;
	int err;

	op.comm = muster_mpi_comm_find(call->comm, true, &why);
	if (!op.comm)
		return pass(call, NULL, op.began, why);
	err = muster_mpi_start(&op, call, &why);
	if (!err)
		err = finish(&op);
	muster_mpi_op_free(&op);
	if (err > 0)
		return pass(call, NULL, op.began, why);
	return err ? fail(call, err) : MPI_SUCCESS;
}

static int begin(struct muster_mpi_comm *comm, const struct muster_mpi_call *call,
		 MPI_Request *request, double began)
{
	struct muster_mpi_op *op = calloc(1, sizeof(*op));
	enum muster_mpi_reason why;
	int err;

	if (!op)
		abort();	/* the others count on it */
	op->coll = call->coll;
	op->comm = comm;
	op->began = began;
	err = muster_mpi_start(op, call, &why);
	if (!err && !muster_mpi_request(op, request))
		return MPI_SUCCESS;
	if (!err) {	/* the others count on it; without a request it ends in this call */
		*request = MPI_REQUEST_NULL;
		err = finish(op);
	}
	muster_mpi_op_free(op);
	free(op);
	if (err > 0)
		return pass(call, request, began, why);
	return err ? fail(call, err) : MPI_SUCCESS;
}

int muster_mpi_begin(struct muster_mpi_call *call, MPI_Request *request)
{
	double began = muster_mpi_now();
	enum muster_mpi_reason why;
	struct muster_mpi_comm *comm = muster_mpi_comm_find(call->comm, false, &why);

	call->nonblocking = true;
	return comm ? begin(comm, call, request, began) : pass(call, request, began, why);
}

int muster_mpi_begin_on(struct muster_mpi_comm *comm, const struct muster_mpi_call *call,
			MPI_Request *request)
{
	return begin(comm, call, request, muster_mpi_now());
}
