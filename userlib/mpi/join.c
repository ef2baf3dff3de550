// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A Muster job of the ranks of MPI_COMM_WORLD: they meet through MPI itself, and leave it together.
 * If one cannot join none does, and MPI is as it was without us.
 */
#include "shim.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct muster_mpi muster_mpi = {
	.lock = PTHREAD_MUTEX_INITIALIZER, .own = MPI_COMM_NULL, .threads = true,
};

static MPI_Comm meeting;	/* MPI_COMM_WORLD, or another of the same ranks */

static int gather(void *unused, const void *in, void *out, size_t bytes)
{
	(void)unused;
	if (bytes > INT_MAX)
		return -EOVERFLOW;
	return muster_mpi_beneath.Allgather(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE, meeting) ?
		       -EIO : 0;
}

/* ---- joining --------------------------------------------------------------------------------- */

static int meet(int size)
{
	struct muster_oob oob = {
		.rank = (uint32_t)muster_mpi.rank, .size = (uint32_t)size, .allgather = gather,
	};
	struct muster *job = NULL;
	int err = muster_init_oob(&oob, &job);

	if (!err)
		muster_mpi.job = job;
	else
		muster_mpi_fail(err, "%s", muster_error(NULL));
	return err;
}

/* No copy of MPI_COMM_SELF, which would have the program's attributes. */
static int own_open(void)
{
	return PMPI_Comm_split(MPI_COMM_SELF, 0, 0, &muster_mpi.own) ||
	       PMPI_Comm_set_errhandler(muster_mpi.own, MPI_ERRORS_RETURN);
}

static void own_close(void)
{
	if (muster_mpi.own != MPI_COMM_NULL)
		PMPI_Comm_free(&muster_mpi.own);
}

/* All that can fail at one rank, but for meeting the others. */
static int open_all(void)
{
	enum muster_mpi_reason why;

	if (own_open() || muster_mpi_types_open() || muster_mpi_comms_open() ||
	    !muster_mpi_comm_find(MPI_COMM_WORLD, true, &why))
		return muster_mpi_fail(-ENOMEM, "MPI has no room for what libmuster-mpi keeps in it; free memory, or start the program without muster-mpi");
	return muster_mpi_requests_open();
}

static void close_all(void)
{
	struct muster *job = muster_mpi.job;

	muster_mpi_requests_close();
	pthread_mutex_lock(&muster_mpi.lock);
	muster_mpi.job = NULL;
	muster_finalize(job);
	pthread_mutex_unlock(&muster_mpi.lock);
	own_close();
}

/* Who cannot join, the first of them; size: nobody. It is asked when nothing can fail any more. */
static int who_cannot(int err, int size)
{
	int mine = err ? muster_mpi.rank : size, first = 0;

	muster_mpi_beneath.Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, meeting);
	return first;
}

static int join_job(int size)
{
	int err = meet(size), who;

	if (!err)
		err = open_all();
	who = who_cannot(err, size);
	if (who == size)
		return 0;
	snprintf(muster_mpi.no_job, sizeof(muster_mpi.no_job), "%s", err ? muster_mpi_said : "");
	muster_mpi_beneath.Bcast(muster_mpi.no_job, sizeof(muster_mpi.no_job), MPI_CHAR, who, meeting);
	if (muster_mpi.job)
		close_all();
	return -ECONNABORTED;
}

static void settings_read(void)
{
	const char *stats = getenv("MUSTER_MPI_STATS"), *offload = getenv("MUSTER_OFFLOAD");

	muster_mpi.stats = stats && *stats && strcmp(stats, "0") && !muster_mpi.rank;
	muster_mpi.force = offload && !strcmp(offload, "force");
}

enum { FORCE, THREADS, SETTINGS };

/*
 * What must be the same with all. Whether offload is forced is as the job has it, rank 0's: while one's call
 * is an error none may wait for it in the MPI library.
 */
static void settings_agree(void)
{
	int level = MPI_THREAD_SINGLE, mine[SETTINGS], all[SETTINGS];

	PMPI_Query_thread(&level);
	mine[FORCE] = muster_mpi.force && !muster_mpi.rank;
	mine[THREADS] = level == MPI_THREAD_MULTIPLE;
	if (muster_mpi_beneath.Allreduce(mine, all, SETTINGS, MPI_INT, MPI_MAX, meeting))
		return;
	muster_mpi.force = all[FORCE];
	muster_mpi.threads = all[THREADS];
}

/* ---- leaving --------------------------------------------------------------------------------- */

/* All are here before any leaves: what others need of one while they wait is done. */
static int leave(MPI_Comm comm, int key, void *value, void *extra)
{
	(void)comm;
	(void)key;
	(void)value;
	(void)extra;
	if (muster_mpi.job)
		muster_mpi_beneath.Barrier(MPI_COMM_WORLD);
	if (muster_mpi.stats)
		muster_mpi_stats_print();
	if (muster_mpi.job)
		close_all();
	muster_mpi.left = true;
	return MPI_SUCCESS;
}

/*
 * MPI_Finalize frees MPI_COMM_SELF first, while all else can still be called. Its attributes are deleted from the
 * youngest on: a program may count on others that are not in MPI_Finalize yet, as long as its own are.
 */
static void leave_in_finalize(void)
{
	int keyval;

	if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, leave, &keyval, NULL) ||
	    PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL))
		abort();	/* the others count on it */
}

int muster_mpi_join(MPI_Comm comm)
{
	int size, err;

	meeting = comm;
	leave_in_finalize();
	PMPI_Comm_rank(MPI_COMM_WORLD, &muster_mpi.rank);
	PMPI_Comm_size(MPI_COMM_WORLD, &size);
	settings_read();
	if (size == 1) {
		snprintf(muster_mpi.no_job, sizeof(muster_mpi.no_job), "there is one rank");
		return MPI_SUCCESS;
	}
	settings_agree();
	err = join_job(size);
	return err && muster_mpi.force ? muster_mpi_error(MPI_COMM_WORLD, "MPI_Init", -EOPNOTSUPP,
							  muster_mpi.no_job) : MPI_SUCCESS;
}
