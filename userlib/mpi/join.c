// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * MPI_Init joins a Muster job of the ranks of MPI_COMM_WORLD, which meet through MPI itself, and
 * MPI_Finalize leaves it. If one cannot join none does, and MPI is as it was without us.
 */
#include "shim.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct muster_mpi muster_mpi = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int gather(void *unused, const void *in, void *out, size_t bytes)
{
	(void)unused;
	if (bytes > INT_MAX)
		return -EOVERFLOW;
	return muster_mpi_beneath.Allgather(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE,
					    MPI_COMM_WORLD) ? -EIO : 0;
}

static int join_job(int rank, int size, struct muster **job)
{
	struct muster_oob oob = {
		.rank = (uint32_t)rank, .size = (uint32_t)size, .allgather = gather,
	};
	int err = muster_init_oob(&oob, job);
	int mine = !err, all = 0;

	if (err)
		snprintf(muster_mpi.no_job, sizeof(muster_mpi.no_job), "%s", muster_error(NULL));
	muster_mpi_beneath.Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	if (all)
		return 0;
	if (err)
		return err;
	muster_finalize(*job);
	snprintf(muster_mpi.no_job, sizeof(muster_mpi.no_job), "another rank cannot join");
	return -ECONNABORTED;
}

static int open_all(void)
{
	if (muster_mpi_types_open() || muster_mpi_comms_open())
		return -ENOMEM;
	return muster_mpi_requests_open();
}

static void settings_read(int rank)
{
	const char *stats = getenv("MUSTER_MPI_STATS"), *offload = getenv("MUSTER_OFFLOAD");

	muster_mpi.stats = stats && *stats && strcmp(stats, "0") && !rank;
	muster_mpi.force = offload && !strcmp(offload, "force");
}

static int join(void)
{
	enum muster_mpi_reason why;
	struct muster *job = NULL;
	int rank, size, err;

	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	PMPI_Comm_size(MPI_COMM_WORLD, &size);
	settings_read(rank);
	muster_mpi_errors_open();
	if (size == 1) {
		snprintf(muster_mpi.no_job, sizeof(muster_mpi.no_job), "there is one rank");
		return MPI_SUCCESS;
	}
	err = join_job(rank, size, &job);
	if (!err) {
		muster_mpi.job = job;
		err = open_all();
	}
	if (!err) {
		muster_mpi_comm_find(MPI_COMM_WORLD, true, &why);
		return MPI_SUCCESS;
	}
	return muster_mpi.force ? muster_mpi_error(MPI_COMM_WORLD, "MPI_Init", -EOPNOTSUPP,
						   muster_mpi.no_job) : MPI_SUCCESS;
}

/* All are here before any leaves: what others need of one while they wait is done. */
static void leave(void)
{
	struct muster *job = muster_mpi.job;

	if (job)
		muster_mpi_beneath.Barrier(MPI_COMM_WORLD);
	if (muster_mpi.stats)
		muster_mpi_stats_print();
	if (!job)
		return;
	muster_mpi_requests_close();
	pthread_mutex_lock(&muster_mpi.lock);
	muster_mpi.job = NULL;
	muster_finalize(job);
	pthread_mutex_unlock(&muster_mpi.lock);
}

/* ---- what programs call ---------------------------------------------------------------------- */

int PMPI_Init(int *argc, char ***argv)
{
	int err;

	muster_mpi_guard();
	err = muster_mpi_beneath.Init(argc, argv);
	return err ? err : join();
}

int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int err;

	muster_mpi_guard();
	err = muster_mpi_beneath.Init_thread(argc, argv, required, provided);
	return err ? err : join();
}

int PMPI_Finalize(void)
{
	leave();
	return muster_mpi_beneath.Finalize();
}

int MPI_Init(int *argc, char ***argv) __attribute__((alias("PMPI_Init")));
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
	__attribute__((alias("PMPI_Init_thread")));
int MPI_Finalize(void) __attribute__((alias("PMPI_Finalize")));
