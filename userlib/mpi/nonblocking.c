// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The collectives that programs call, nonblocking: a request comes back. Each is MPI_X and PMPI_X
 * at once: C calls the first, Open MPI's Fortran the second, and a profiling library that stands
 * before us, too.
 */
#include "shim.h"

#define SAME(name) \
	extern __typeof__(MPI_##name) MPI_##name __attribute__((alias("PMPI_" #name)));

int PMPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
	return muster_mpi_begin(&(struct muster_mpi_call){
		.coll = COLL_Barrier, .comm = comm,
	}, request);
}
SAME(Ibarrier)

int PMPI_Ibcast(void *out, int out_count, MPI_Datatype out_type, int root, MPI_Comm comm,
		MPI_Request *request)
{
	return muster_mpi_begin(&(struct muster_mpi_call){
		.coll = COLL_Bcast, .comm = comm, .out = out, .out_count = out_count,
		.out_type = out_type, .root = root,
	}, request);
}
SAME(Ibcast)

int PMPI_Ireduce(const void *in, void *out, int out_count, MPI_Datatype out_type, MPI_Op op,
		 int root, MPI_Comm comm, MPI_Request *request)
{
	return muster_mpi_begin(&(struct muster_mpi_call){
		.coll = COLL_Reduce, .comm = comm, .in = in, .out = out, .out_count = out_count,
		.out_type = out_type, .op = op, .root = root,
	}, request);
}
SAME(Ireduce)

int PMPI_Iallreduce(const void *in, void *out, int out_count, MPI_Datatype out_type, MPI_Op op,
		    MPI_Comm comm, MPI_Request *request)
{
	return muster_mpi_begin(&(struct muster_mpi_call){
		.coll = COLL_Allreduce, .comm = comm, .in = in, .out = out,
		.out_count = out_count, .out_type = out_type, .op = op,
	}, request);
}
SAME(Iallreduce)

int PMPI_Igather(const void *in, int in_count, MPI_Datatype in_type, void *out, int out_count,
		 MPI_Datatype out_type, int root, MPI_Comm comm, MPI_Request *request)
{
	return muster_mpi_begin(&(struct muster_mpi_call){
		.coll = COLL_Gather, .comm = comm, .in = in, .in_count = in_count,
		.in_type = in_type, .out = out, .out_count = out_count, .out_type = out_type,
		.root = root,
	}, request);
}
SAME(Igather)

int PMPI_Igatherv(const void *in, int in_count, MPI_Datatype in_type, void *out,
		  const int out_counts[], const int out_displs[], MPI_Datatype out_type, int root,
		  MPI_Comm comm, MPI_Request *request)
{
	return muster_mpi_begin(&(struct muster_mpi_call){
		.coll = COLL_Gatherv, .comm = comm, .in = in, .in_count = in_count,
		.in_type = in_type, .out = out, .out_counts = out_counts,
		.out_displs = out_displs, .out_type = out_type, .root = root,
	}, request);
}
SAME(Igatherv)

int PMPI_Iscatter(const void *in, int in_count, MPI_Datatype in_type, void *out, int out_count,
		  MPI_Datatype out_type, int root, MPI_Comm comm, MPI_Request *request)
{
	return muster_mpi_begin(&(struct muster_mpi_call){
		.coll = COLL_Scatter, .comm = comm, .in = in, .in_count = in_count,
		.in_type = in_type, .out = out, .out_count = out_count, .out_type = out_type,
		.root = root,
	}, request);
}
SAME(Iscatter)

int PMPI_Iscatterv(const void *in, const int in_counts[], const int in_displs[],
		   MPI_Datatype in_type, void *out, int out_count, MPI_Datatype out_type, int root,
		   MPI_Comm comm, MPI_Request *request)
{
	return muster_mpi_begin(&(struct muster_mpi_call){
		.coll = COLL_Scatterv, .comm = comm, .in = in, .in_counts = in_counts,
		.in_displs = in_displs, .in_type = in_type, .out = out, .out_count = out_count,
		.out_type = out_type, .root = root,
	}, request);
}
SAME(Iscatterv)

int PMPI_Iallgather(const void *in, int in_count, MPI_Datatype in_type, void *out, int out_count,
		    MPI_Datatype out_type, MPI_Comm comm, MPI_Request *request)
{
	return muster_mpi_begin(&(struct muster_mpi_call){
		.coll = COLL_Allgather, .comm = comm, .in = in, .in_count = in_count,
		.in_type = in_type, .out = out, .out_count = out_count, .out_type = out_type,
	}, request);
}
SAME(Iallgather)

int PMPI_Iallgatherv(const void *in, int in_count, MPI_Datatype in_type, void *out,
		     const int out_counts[], const int out_displs[], MPI_Datatype out_type,
		     MPI_Comm comm, MPI_Request *request)
{
	return muster_mpi_begin(&(struct muster_mpi_call){
		.coll = COLL_Allgatherv, .comm = comm, .in = in, .in_count = in_count,
		.in_type = in_type, .out = out, .out_counts = out_counts,
		.out_displs = out_displs, .out_type = out_type,
	}, request);
}
SAME(Iallgatherv)

int PMPI_Ialltoall(const void *in, int in_count, MPI_Datatype in_type, void *out, int out_count,
		   MPI_Datatype out_type, MPI_Comm comm, MPI_Request *request)
{
	return muster_mpi_begin(&(struct muster_mpi_call){
		.coll = COLL_Alltoall, .comm = comm, .in = in, .in_count = in_count,
		.in_type = in_type, .out = out, .out_count = out_count, .out_type = out_type,
	}, request);
}
SAME(Ialltoall)

int PMPI_Ialltoallv(const void *in, const int in_counts[], const int in_displs[],
		    MPI_Datatype in_type, void *out, const int out_counts[], const int out_displs[],
		    MPI_Datatype out_type, MPI_Comm comm, MPI_Request *request)
{
	return muster_mpi_begin(&(struct muster_mpi_call){
		.coll = COLL_Alltoallv, .comm = comm, .in = in, .in_counts = in_counts,
		.in_displs = in_displs, .in_type = in_type, .out = out, .out_counts = out_counts,
		.out_displs = out_displs, .out_type = out_type,
	}, request);
}
SAME(Ialltoallv)

int PMPI_Ialltoallw(const void *in, const int in_counts[], const int in_displs[],
		    const MPI_Datatype in_types[], void *out, const int out_counts[],
		    const int out_displs[], const MPI_Datatype out_types[], MPI_Comm comm,
		    MPI_Request *request)
{
	return muster_mpi_begin(&(struct muster_mpi_call){
		.coll = COLL_Alltoallw, .comm = comm, .in = in, .in_counts = in_counts,
		.in_displs = in_displs, .in_types = in_types, .out = out,
		.out_counts = out_counts, .out_displs = out_displs, .out_types = out_types,
	}, request);
}
SAME(Ialltoallw)

int PMPI_Ireduce_scatter(const void *in, void *out, const int out_counts[], MPI_Datatype out_type,
			 MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
	return muster_mpi_begin(&(struct muster_mpi_call){
		.coll = COLL_Reduce_scatter, .comm = comm, .in = in, .out = out,
		.out_counts = out_counts, .out_type = out_type, .op = op,
	}, request);
}
SAME(Ireduce_scatter)

int PMPI_Ireduce_scatter_block(const void *in, void *out, int out_count, MPI_Datatype out_type,
			       MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
	return muster_mpi_begin(&(struct muster_mpi_call){
		.coll = COLL_Reduce_scatter_block, .comm = comm, .in = in, .out = out,
		.out_count = out_count, .out_type = out_type, .op = op,
	}, request);
}
SAME(Ireduce_scatter_block)

int PMPI_Iscan(const void *in, void *out, int out_count, MPI_Datatype out_type, MPI_Op op,
	       MPI_Comm comm, MPI_Request *request)
{
	return muster_mpi_begin(&(struct muster_mpi_call){
		.coll = COLL_Scan, .comm = comm, .in = in, .out = out, .out_count = out_count,
		.out_type = out_type, .op = op,
	}, request);
}
SAME(Iscan)

int PMPI_Iexscan(const void *in, void *out, int out_count, MPI_Datatype out_type, MPI_Op op,
		 MPI_Comm comm, MPI_Request *request)
{
	return muster_mpi_begin(&(struct muster_mpi_call){
		.coll = COLL_Exscan, .comm = comm, .in = in, .out = out, .out_count = out_count,
		.out_type = out_type, .op = op,
	}, request);
}
SAME(Iexscan)

int PMPI_Ineighbor_allgather(const void *in, int in_count, MPI_Datatype in_type, void *out,
			     int out_count, MPI_Datatype out_type, MPI_Comm comm,
			     MPI_Request *request)
{
	return muster_mpi_begin(&(struct muster_mpi_call){
		.coll = COLL_Neighbor_allgather, .comm = comm, .in = in,
		.in_count = in_count, .in_type = in_type, .out = out,
		.out_count = out_count, .out_type = out_type,
	}, request);
}
SAME(Ineighbor_allgather)

int PMPI_Ineighbor_allgatherv(const void *in, int in_count, MPI_Datatype in_type, void *out,
			      const int out_counts[], const int out_displs[],
			      MPI_Datatype out_type, MPI_Comm comm, MPI_Request *request)
{
	return muster_mpi_begin(&(struct muster_mpi_call){
		.coll = COLL_Neighbor_allgatherv, .comm = comm, .in = in,
		.in_count = in_count, .in_type = in_type, .out = out,
		.out_counts = out_counts, .out_displs = out_displs, .out_type = out_type,
	}, request);
}
SAME(Ineighbor_allgatherv)

int PMPI_Ineighbor_alltoall(const void *in, int in_count, MPI_Datatype in_type, void *out,
			    int out_count, MPI_Datatype out_type, MPI_Comm comm,
			    MPI_Request *request)
{
	return muster_mpi_begin(&(struct muster_mpi_call){
		.coll = COLL_Neighbor_alltoall, .comm = comm, .in = in,
		.in_count = in_count, .in_type = in_type, .out = out,
		.out_count = out_count, .out_type = out_type,
	}, request);
}
SAME(Ineighbor_alltoall)

int PMPI_Ineighbor_alltoallv(const void *in, const int in_counts[], const int in_displs[],
			     MPI_Datatype in_type, void *out, const int out_counts[],
			     const int out_displs[], MPI_Datatype out_type, MPI_Comm comm,
			     MPI_Request *request)
{
	return muster_mpi_begin(&(struct muster_mpi_call){
		.coll = COLL_Neighbor_alltoallv, .comm = comm, .in = in,
		.in_counts = in_counts, .in_displs = in_displs, .in_type = in_type,
		.out = out, .out_counts = out_counts, .out_displs = out_displs,
		.out_type = out_type,
	}, request);
}
SAME(Ineighbor_alltoallv)

int PMPI_Ineighbor_alltoallw(const void *in, const int in_counts[], const MPI_Aint in_ats[],
			     const MPI_Datatype in_types[], void *out,
			     const int out_counts[], const MPI_Aint out_ats[],
			     const MPI_Datatype out_types[], MPI_Comm comm,
			     MPI_Request *request)
{
	return muster_mpi_begin(&(struct muster_mpi_call){
		.coll = COLL_Neighbor_alltoallw, .comm = comm, .in = in,
		.in_counts = in_counts, .in_ats = in_ats, .in_types = in_types, .out = out,
		.out_counts = out_counts, .out_ats = out_ats, .out_types = out_types,
	}, request);
}
SAME(Ineighbor_alltoallw)
