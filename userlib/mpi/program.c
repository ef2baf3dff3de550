// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What else programs call than collectives and waits: the job is joined behind MPI_Init, and what something
 * under way still needs is freed later (hold.c).
 */
#include "shim.h"

#define SAME(name) \
	extern __typeof__(MPI_##name) MPI_##name __attribute__((alias("PMPI_" #name)));

int PMPI_Init(int *argc, char ***argv)
{
	int err;

	muster_mpi_guard();
	err = muster_mpi_beneath.Init(argc, argv);
	return err ? err : muster_mpi_join(MPI_COMM_WORLD);
}
SAME(Init)

int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int err;

	muster_mpi_guard();
	err = muster_mpi_beneath.Init_thread(argc, argv, required, provided);
	return err ? err : muster_mpi_join(MPI_COMM_WORLD);
}
SAME(Init_thread)

int PMPI_Comm_free(MPI_Comm *comm)
{
	return muster_mpi_comm_end(comm, muster_mpi_beneath.Comm_free);
}
SAME(Comm_free)

int PMPI_Comm_disconnect(MPI_Comm *comm)
{
	return muster_mpi_comm_end(comm, muster_mpi_beneath.Comm_disconnect);
}
SAME(Comm_disconnect)

int PMPI_Type_free(MPI_Datatype *type)
{
	if (!type || !muster_mpi_defer((uintptr_t)*type))
		return muster_mpi_beneath.Type_free(type);
	*type = MPI_DATATYPE_NULL;
	return MPI_SUCCESS;
}
SAME(Type_free)

int PMPI_Op_free(MPI_Op *op)
{
	if (!op || !muster_mpi_defer((uintptr_t)*op))
		return muster_mpi_beneath.Op_free(op);
	*op = MPI_OP_NULL;
	return MPI_SUCCESS;
}
SAME(Op_free)
