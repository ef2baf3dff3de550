// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The collectives that programs call, blocking. Each is MPI_X and PMPI_X
 * at once: C calls the first, Open MPI's Fortran the second, and a profiling library that stands
 * before us, too.
 */
#include "shim.h"

#define SAME(name) \
	extern __typeof__(MPI_##name) MPI_##name __attribute__((alias("PMPI_" #name)));

int PMPI_Barrier(MPI_Comm comm)
{
	int err;

	if (muster_mpi_quick_barrier(comm, &err))
		return err;
	return muster_mpi_run(&(struct muster_mpi_call){
		.coll = COLL_Barrier, .comm = comm,
	});
}
SAME(Barrier)

int PMPI_Bcast(void *out, int out_count, MPI_Datatype out_type, int root, MPI_Comm comm)
{
	return muster_mpi_run(&(struct muster_mpi_call){
		.coll = COLL_Bcast, .comm = comm, .out = out, .out_count = out_count,
		.out_type = out_type, .root = root,
	});
}
SAME(Bcast)

int PMPI_Reduce(const void *in, void *out, int out_count, MPI_Datatype out_type, MPI_Op op,
		int root, MPI_Comm comm)
{
	return muster_mpi_run(&(struct muster_mpi_call){
		.coll = COLL_Reduce, .comm = comm, .in = in, .out = out, .out_count = out_count,
		.out_type = out_type, .op = op, .root = root,
	});
}
SAME(Reduce)

int PMPI_Allreduce(const void *in, void *out, int out_count, MPI_Datatype out_type, MPI_Op op,
		   MPI_Comm comm)
{
	int err;

	if (muster_mpi_quick_allreduce(in, out, out_count, out_type, op, comm, &err))
		return err;
	return muster_mpi_run(&(struct muster_mpi_call){
		.coll = COLL_Allreduce, .comm = comm, .in = in, .out = out,
		.out_count = out_count, .out_type = out_type, .op = op,
	});
}
SAME(Allreduce)

int PMPI_Gather(const void *in, int in_count, MPI_Datatype in_type, void *out, int out_count,
		MPI_Datatype out_type, int root, MPI_Comm comm)
{
	return muster_mpi_run(&(struct muster_mpi_call){
		.coll = COLL_Gather, .comm = comm, .in = in, .in_count = in_count,
		.in_type = in_type, .out = out, .out_count = out_count, .out_type = out_type,
		.root = root,
	});
}
SAME(Gather)

int PMPI_Gatherv(const void *in, int in_count, MPI_Datatype in_type, void *out,
		 const int out_counts[], const int out_displs[], MPI_Datatype out_type, int root,
		 MPI_Comm comm)
{
	return muster_mpi_run(&(struct muster_mpi_call){
		.coll = COLL_Gatherv, .comm = comm, .in = in, .in_count = in_count,
		.in_type = in_type, .out = out, .out_counts = out_counts,
		.out_displs = out_displs, .out_type = out_type, .root = root,
	});
}
SAME(Gatherv)

int PMPI_Scatter(const void *in, int in_count, MPI_Datatype in_type, void *out, int out_count,
		 MPI_Datatype out_type, int root, MPI_Comm comm)
{
	return muster_mpi_run(&(struct muster_mpi_call){
		.coll = COLL_Scatter, .comm = comm, .in = in, .in_count = in_count,
		.in_type = in_type, .out = out, .out_count = out_count, .out_type = out_type,
		.root = root,
	});
}
SAME(Scatter)

int PMPI_Scatterv(const void *in, const int in_counts[], const int in_displs[],
		  MPI_Datatype in_type, void *out, int out_count, MPI_Datatype out_type, int root,
		  MPI_Comm comm)
{
	return muster_mpi_run(&(struct muster_mpi_call){
		.coll = COLL_Scatterv, .comm = comm, .in = in, .in_counts = in_counts,
		.in_displs = in_displs, .in_type = in_type, .out = out, .out_count = out_count,
		.out_type = out_type, .root = root,
	});
}
SAME(Scatterv)

int PMPI_Allgather(const void *in, int in_count, MPI_Datatype in_type, void *out, int out_count,
		   MPI_Datatype out_type, MPI_Comm comm)
{
	return muster_mpi_run(&(struct muster_mpi_call){
		.coll = COLL_Allgather, .comm = comm, .in = in, .in_count = in_count,
		.in_type = in_type, .out = out, .out_count = out_count, .out_type = out_type,
	});
}
SAME(Allgather)

int PMPI_Allgatherv(const void *in, int in_count, MPI_Datatype in_type, void *out,
		    const int out_counts[], const int out_displs[], MPI_Datatype out_type,
		    MPI_Comm comm)
{
	return muster_mpi_run(&(struct muster_mpi_call){
		.coll = COLL_Allgatherv, .comm = comm, .in = in, .in_count = in_count,
		.in_type = in_type, .out = out, .out_counts = out_counts,
		.out_displs = out_displs, .out_type = out_type,
	});
}
SAME(Allgatherv)

int PMPI_Alltoall(const void *in, int in_count, MPI_Datatype in_type, void *out, int out_count,
		  MPI_Datatype out_type, MPI_Comm comm)
{
	return muster_mpi_run(&(struct muster_mpi_call){
		.coll = COLL_Alltoall, .comm = comm, .in = in, .in_count = in_count,
		.in_type = in_type, .out = out, .out_count = out_count, .out_type = out_type,
	});
}
SAME(Alltoall)

int PMPI_Alltoallv(const void *in, const int in_counts[], const int in_displs[],
		   MPI_Datatype in_type, void *out, const int out_counts[], const int out_displs[],
		   MPI_Datatype out_type, MPI_Comm comm)
{
	return muster_mpi_run(&(struct muster_mpi_call){
		.coll = COLL_Alltoallv, .comm = comm, .in = in, .in_counts = in_counts,
		.in_displs = in_displs, .in_type = in_type, .out = out, .out_counts = out_counts,
		.out_displs = out_displs, .out_type = out_type,
	});
}
SAME(Alltoallv)

int PMPI_Alltoallw(const void *in, const int in_counts[], const int in_displs[],
		   const MPI_Datatype in_types[], void *out, const int out_counts[],
		   const int out_displs[], const MPI_Datatype out_types[], MPI_Comm comm)
{
	return muster_mpi_run(&(struct muster_mpi_call){
		.coll = COLL_Alltoallw, .comm = comm, .in = in, .in_counts = in_counts,
		.in_displs = in_displs, .in_types = in_types, .out = out,
		.out_counts = out_counts, .out_displs = out_displs, .out_types = out_types,
	});
}
SAME(Alltoallw)

int PMPI_Reduce_scatter(const void *in, void *out, const int out_counts[], MPI_Datatype out_type,
			MPI_Op op, MPI_Comm comm)
{
	return muster_mpi_run(&(struct muster_mpi_call){
		.coll = COLL_Reduce_scatter, .comm = comm, .in = in, .out = out,
		.out_counts = out_counts, .out_type = out_type, .op = op,
	});
}
SAME(Reduce_scatter)

int PMPI_Reduce_scatter_block(const void *in, void *out, int out_count, MPI_Datatype out_type,
			      MPI_Op op, MPI_Comm comm)
{
	return muster_mpi_run(&(struct muster_mpi_call){
		.coll = COLL_Reduce_scatter_block, .comm = comm, .in = in, .out = out,
		.out_count = out_count, .out_type = out_type, .op = op,
	});
}
SAME(Reduce_scatter_block)

int PMPI_Scan(const void *in, void *out, int out_count, MPI_Datatype out_type, MPI_Op op,
	      MPI_Comm comm)
{
	return muster_mpi_run(&(struct muster_mpi_call){
		.coll = COLL_Scan, .comm = comm, .in = in, .out = out, .out_count = out_count,
		.out_type = out_type, .op = op,
	});
}
SAME(Scan)

int PMPI_Exscan(const void *in, void *out, int out_count, MPI_Datatype out_type, MPI_Op op,
		MPI_Comm comm)
{
	return muster_mpi_run(&(struct muster_mpi_call){
		.coll = COLL_Exscan, .comm = comm, .in = in, .out = out, .out_count = out_count,
		.out_type = out_type, .op = op,
	});
}
SAME(Exscan)

int PMPI_Neighbor_allgather(const void *in, int in_count, MPI_Datatype in_type, void *out,
			    int out_count, MPI_Datatype out_type, MPI_Comm comm)
{
	return muster_mpi_run(&(struct muster_mpi_call){
		.coll = COLL_Neighbor_allgather, .comm = comm, .in = in,
		.in_count = in_count, .in_type = in_type, .out = out,
		.out_count = out_count, .out_type = out_type,
	});
}
SAME(Neighbor_allgather)

int PMPI_Neighbor_allgatherv(const void *in, int in_count, MPI_Datatype in_type, void *out,
			     const int out_counts[], const int out_displs[],
			     MPI_Datatype out_type, MPI_Comm comm)
{
	return muster_mpi_run(&(struct muster_mpi_call){
		.coll = COLL_Neighbor_allgatherv, .comm = comm, .in = in,
		.in_count = in_count, .in_type = in_type, .out = out,
		.out_counts = out_counts, .out_displs = out_displs, .out_type = out_type,
	});
}
SAME(Neighbor_allgatherv)

int PMPI_Neighbor_alltoall(const void *in, int in_count, MPI_Datatype in_type, void *out,
			   int out_count, MPI_Datatype out_type, MPI_Comm comm)
{
	return muster_mpi_run(&(struct muster_mpi_call){
		.coll = COLL_Neighbor_alltoall, .comm = comm, .in = in,
		.in_count = in_count, .in_type = in_type, .out = out,
		.out_count = out_count, .out_type = out_type,
	});
}
SAME(Neighbor_alltoall)

int PMPI_Neighbor_alltoallv(const void *in, const int in_counts[], const int in_displs[],
			    MPI_Datatype in_type, void *out, const int out_counts[],
			    const int out_displs[], MPI_Datatype out_type, MPI_Comm comm)
{
	return muster_mpi_run(&(struct muster_mpi_call){
		.coll = COLL_Neighbor_alltoallv, .comm = comm, .in = in,
		.in_counts = in_counts, .in_displs = in_displs, .in_type = in_type,
		.out = out, .out_counts = out_counts, .out_displs = out_displs,
		.out_type = out_type,
	});
}
SAME(Neighbor_alltoallv)

int PMPI_Neighbor_alltoallw(const void *in, const int in_counts[], const MPI_Aint in_ats[],
			    const MPI_Datatype in_types[], void *out,
			    const int out_counts[], const MPI_Aint out_ats[],
			    const MPI_Datatype out_types[], MPI_Comm comm)
{
	return muster_mpi_run(&(struct muster_mpi_call){
		.coll = COLL_Neighbor_alltoallw, .comm = comm, .in = in,
		.in_counts = in_counts, .in_ats = in_ats, .in_types = in_types, .out = out,
		.out_counts = out_counts, .out_ats = out_ats, .out_types = out_types,
	});
}
SAME(Neighbor_alltoallw)
