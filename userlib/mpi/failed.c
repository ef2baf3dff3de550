// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Nonblocking operations that failed. To the MPI library their requests are generalized ones, which have
 * no communicator: it would give their errors to MPI_COMM_WORLD's handler. So it sees them succeed, and the
 * wait or test that has completed one calls the handler of the operation's communicator and says so.
 */
#include "shim.h"

enum { FAILED = -0x4d53 };	/* a status's source: its tag is the error */

/* The first of those that MPI has completed in this thread's call; error 0: there is none. */
static _Thread_local struct {
	int error;
	struct muster_mpi_comm *comm;
} first;

void muster_mpi_failed_note(struct muster_mpi_comm *comm, int error, MPI_Status *status)
{
	status->MPI_SOURCE = FAILED;
	status->MPI_TAG = error;
	if (first.error)
		return;
	pthread_mutex_lock(&muster_mpi.lock);
	comm->refs++;
	pthread_mutex_unlock(&muster_mpi.lock);
	first.error = error;
	first.comm = comm;
}

static void set_error(MPI_Status *status)
{
	if (status->MPI_SOURCE != FAILED)
		return;
	status->MPI_ERROR = status->MPI_TAG;
	status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
}

/* What was MPI_SUCCESS is not any more: then each status has an error of its own. */
static void set_errors(MPI_Status *statuses, int nr, bool succeeded)
{
	for (int i = 0; i < nr; i++) {
		if (succeeded)
			statuses[i].MPI_ERROR = MPI_SUCCESS;
		set_error(&statuses[i]);
	}
}

/* There is none then. Its communicator. */
static MPI_Comm forget(void)
{
	MPI_Comm comm;

	first.error = 0;
	pthread_mutex_lock(&muster_mpi.lock);
	comm = muster_mpi_comm_handle(first.comm);
	muster_mpi_comm_put(first.comm);
	pthread_mutex_unlock(&muster_mpi.lock);
	return comm;
}

static int give(void)
{
	int error = first.error;
	MPI_Comm comm = forget();

	PMPI_Comm_call_errhandler(comm == MPI_COMM_NULL ? MPI_COMM_WORLD : comm, error);
	return error;
}

/* Its error is for those of several. */
static void set_one(MPI_Status *status)
{
	int error_before;

	if (status == MPI_STATUS_IGNORE)
		return;
	error_before = status->MPI_ERROR;
	set_error(status);
	status->MPI_ERROR = error_before;
}

int muster_mpi_failed_one(int err, MPI_Status *status)
{
	if (!first.error)
		return err;
	set_one(status);
	return give();
}

int muster_mpi_failed_look(int err, MPI_Status *status)
{
	if (!first.error)
		return err;
	set_one(status);
	forget();
	return err;
}

int muster_mpi_failed_some(int err, int nr, MPI_Status *statuses)
{
	if (!first.error)
		return err;
	if (statuses != MPI_STATUSES_IGNORE)
		set_errors(statuses, nr, !err);
	give();
	return MPI_ERR_IN_STATUS;
}
