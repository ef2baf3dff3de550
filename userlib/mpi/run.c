// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What every collective does: find the communicator, give the call to the library, wait for it or
 * make a request of it; or pass it to the MPI library as it came, and say why.
 */
#include "shim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* What is passed although offload is forced: there is nothing to offload, or nothing right. */
static bool may_pass(enum muster_mpi_reason why)
{
	return !muster_mpi.force || why <= REASON_INVALID;
}

static int pass(const struct muster_mpi_call *call, MPI_Request *request, double began,
		enum muster_mpi_reason why)
{
	char sentence[MUSTER_MPI_SENTENCE + 96];
	int err;

	if (may_pass(why)) {
		err = muster_mpi_pass(call, request);
		muster_mpi_stats_passed(call->coll, why, began);
		return err;
	}
	snprintf(sentence, sizeof(sentence), "offload is forced (MUSTER_OFFLOAD), but this call is the MPI library's: %s",
		 why == REASON_NO_JOB ? muster_mpi.no_job : muster_mpi_reason(why));
	return muster_mpi_error(call->comm, muster_mpi_coll_name(call->coll), -EOPNOTSUPP, sentence);
}

static int fail(const struct muster_mpi_call *call, int err)
{
	return muster_mpi_error(call->comm, muster_mpi_coll_name(call->coll), err, muster_mpi_said);
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
		err = muster_mpi_wait(&op);
	if (!err && op.unpack)
		err = muster_mpi_side_unpack(&op.out);
	if (!err)
		muster_mpi_stats_ended(&op);
	muster_mpi_op_free(&op);
	if (err > 0)
		return pass(call, NULL, op.began, why);
	return err ? fail(call, err) : MPI_SUCCESS;
}

int muster_mpi_begin(struct muster_mpi_call *call, MPI_Request *request)
{
	double began = muster_mpi_now();
	enum muster_mpi_reason why;
	struct muster_mpi_comm *comm = muster_mpi_comm_find(call->comm, false, &why);
	struct muster_mpi_op *op;
	int err;

	call->nonblocking = true;
	if (!comm)
		return pass(call, request, began, why);
	op = calloc(1, sizeof(*op));
	if (!op)
		abort();	/* the others count on it */
	op->coll = call->coll;
	op->comm = comm;
	op->began = began;
	err = muster_mpi_start(op, call, &why);
	if (!err)
		return muster_mpi_request(op, request);
	muster_mpi_op_free(op);
	free(op);
	return err > 0 ? pass(call, request, began, why) : fail(call, err);
}
