// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The collectives that programs call, persistent: MPI-4's, which Open MPI 4.1 has by the names of
 * an extension. The MPI library makes its own of each: it knows what is right, and its request is
 * what the program gets.
 */
#include "shim.h"

#ifdef OPEN_MPI
#define INIT(name) PMPIX_##name##_init
#define SAME(name) \
	extern __typeof__(MPIX_##name##_init) MPIX_##name##_init __attribute__((alias("PMPIX_" #name "_init")));
#else
#define INIT(name) PMPI_##name##_init
#define SAME(name) \
	extern __typeof__(MPI_##name##_init) MPI_##name##_init __attribute__((alias("PMPI_" #name "_init")));
#endif

int INIT(Barrier)(MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	int err = muster_mpi_beneath.Barrier_init(comm, info, request);

	return muster_mpi_persist(err, &(struct muster_mpi_call){
		.coll = COLL_Barrier, .comm = comm, .nonblocking = true,
	}, request);
}
SAME(Barrier)

int INIT(Bcast)(void *out, int out_count, MPI_Datatype out_type, int root, MPI_Comm comm,
		MPI_Info info, MPI_Request *request)
{
	int err = muster_mpi_beneath.Bcast_init(out, out_count, out_type, root, comm, info,
						request);

	return muster_mpi_persist(err, &(struct muster_mpi_call){
		.coll = COLL_Bcast, .comm = comm, .nonblocking = true, .out = out, .out_count = out_count,
		.out_type = out_type, .root = root,
	}, request);
}
SAME(Bcast)

int INIT(Reduce)(const void *in, void *out, int out_count, MPI_Datatype out_type, MPI_Op op,
		 int root, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	int err = muster_mpi_beneath.Reduce_init(in, out, out_count, out_type, op, root, comm,
						 info, request);

	return muster_mpi_persist(err, &(struct muster_mpi_call){
		.coll = COLL_Reduce, .comm = comm, .nonblocking = true, .in = in, .out = out, .out_count = out_count,
		.out_type = out_type, .op = op, .root = root,
	}, request);
}
SAME(Reduce)

int INIT(Allreduce)(const void *in, void *out, int out_count, MPI_Datatype out_type, MPI_Op op,
		    MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	int err = muster_mpi_beneath.Allreduce_init(in, out, out_count, out_type, op, comm, info,
						    request);

	return muster_mpi_persist(err, &(struct muster_mpi_call){
		.coll = COLL_Allreduce, .comm = comm, .nonblocking = true, .in = in, .out = out,
		.out_count = out_count, .out_type = out_type, .op = op,
	}, request);
}
SAME(Allreduce)

int INIT(Gather)(const void *in, int in_count, MPI_Datatype in_type, void *out, int out_count,
		 MPI_Datatype out_type, int root, MPI_Comm comm, MPI_Info info,
		 MPI_Request *request)
{
	int err = muster_mpi_beneath.Gather_init(in, in_count, in_type, out, out_count, out_type,
						 root, comm, info, request);

	return muster_mpi_persist(err, &(struct muster_mpi_call){
		.coll = COLL_Gather, .comm = comm, .nonblocking = true, .in = in, .in_count = in_count,
		.in_type = in_type, .out = out, .out_count = out_count, .out_type = out_type,
		.root = root,
	}, request);
}
SAME(Gather)

int INIT(Gatherv)(const void *in, int in_count, MPI_Datatype in_type, void *out,
		  const int out_counts[], const int out_displs[], MPI_Datatype out_type, int root,
		  MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	int err = muster_mpi_beneath.Gatherv_init(in, in_count, in_type, out, out_counts,
						  out_displs, out_type, root, comm, info, request);

	return muster_mpi_persist(err, &(struct muster_mpi_call){
		.coll = COLL_Gatherv, .comm = comm, .nonblocking = true, .in = in, .in_count = in_count,
		.in_type = in_type, .out = out, .out_counts = out_counts,
		.out_displs = out_displs, .out_type = out_type, .root = root,
	}, request);
}
SAME(Gatherv)

int INIT(Scatter)(const void *in, int in_count, MPI_Datatype in_type, void *out, int out_count,
		  MPI_Datatype out_type, int root, MPI_Comm comm, MPI_Info info,
		  MPI_Request *request)
{
	int err = muster_mpi_beneath.Scatter_init(in, in_count, in_type, out, out_count, out_type,
						  root, comm, info, request);

	return muster_mpi_persist(err, &(struct muster_mpi_call){
		.coll = COLL_Scatter, .comm = comm, .nonblocking = true, .in = in, .in_count = in_count,
		.in_type = in_type, .out = out, .out_count = out_count, .out_type = out_type,
		.root = root,
	}, request);
}
SAME(Scatter)

int INIT(Scatterv)(const void *in, const int in_counts[], const int in_displs[],
		   MPI_Datatype in_type, void *out, int out_count, MPI_Datatype out_type,
		   int root, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	int err = muster_mpi_beneath.Scatterv_init(in, in_counts, in_displs, in_type, out,
						   out_count, out_type, root, comm, info, request);

	return muster_mpi_persist(err, &(struct muster_mpi_call){
		.coll = COLL_Scatterv, .comm = comm, .nonblocking = true, .in = in, .in_counts = in_counts,
		.in_displs = in_displs, .in_type = in_type, .out = out, .out_count = out_count,
		.out_type = out_type, .root = root,
	}, request);
}
SAME(Scatterv)

int INIT(Allgather)(const void *in, int in_count, MPI_Datatype in_type, void *out, int out_count,
		    MPI_Datatype out_type, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	int err = muster_mpi_beneath.Allgather_init(in, in_count, in_type, out, out_count,
						    out_type, comm, info, request);

	return muster_mpi_persist(err, &(struct muster_mpi_call){
		.coll = COLL_Allgather, .comm = comm, .nonblocking = true, .in = in, .in_count = in_count,
		.in_type = in_type, .out = out, .out_count = out_count, .out_type = out_type,
	}, request);
}
SAME(Allgather)

int INIT(Allgatherv)(const void *in, int in_count, MPI_Datatype in_type, void *out,
		     const int out_counts[], const int out_displs[], MPI_Datatype out_type,
		     MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	int err = muster_mpi_beneath.Allgatherv_init(in, in_count, in_type, out, out_counts,
						     out_displs, out_type, comm, info, request);

	return muster_mpi_persist(err, &(struct muster_mpi_call){
		.coll = COLL_Allgatherv, .comm = comm, .nonblocking = true, .in = in, .in_count = in_count,
		.in_type = in_type, .out = out, .out_counts = out_counts,
		.out_displs = out_displs, .out_type = out_type,
	}, request);
}
SAME(Allgatherv)

int INIT(Alltoall)(const void *in, int in_count, MPI_Datatype in_type, void *out, int out_count,
		   MPI_Datatype out_type, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	int err = muster_mpi_beneath.Alltoall_init(in, in_count, in_type, out, out_count,
						   out_type, comm, info, request);

	return muster_mpi_persist(err, &(struct muster_mpi_call){
		.coll = COLL_Alltoall, .comm = comm, .nonblocking = true, .in = in, .in_count = in_count,
		.in_type = in_type, .out = out, .out_count = out_count, .out_type = out_type,
	}, request);
}
SAME(Alltoall)

int INIT(Alltoallv)(const void *in, const int in_counts[], const int in_displs[],
		    MPI_Datatype in_type, void *out, const int out_counts[],
		    const int out_displs[], MPI_Datatype out_type, MPI_Comm comm, MPI_Info info,
		    MPI_Request *request)
{
	int err = muster_mpi_beneath.Alltoallv_init(in, in_counts, in_displs, in_type, out,
						    out_counts, out_displs, out_type, comm, info,
						    request);

	return muster_mpi_persist(err, &(struct muster_mpi_call){
		.coll = COLL_Alltoallv, .comm = comm, .nonblocking = true, .in = in, .in_counts = in_counts,
		.in_displs = in_displs, .in_type = in_type, .out = out, .out_counts = out_counts,
		.out_displs = out_displs, .out_type = out_type,
	}, request);
}
SAME(Alltoallv)

int INIT(Alltoallw)(const void *in, const int in_counts[], const int in_displs[],
		    const MPI_Datatype in_types[], void *out, const int out_counts[],
		    const int out_displs[], const MPI_Datatype out_types[], MPI_Comm comm,
		    MPI_Info info, MPI_Request *request)
{
	int err = muster_mpi_beneath.Alltoallw_init(in, in_counts, in_displs, in_types, out,
						    out_counts, out_displs, out_types, comm, info,
						    request);

	return muster_mpi_persist(err, &(struct muster_mpi_call){
		.coll = COLL_Alltoallw, .comm = comm, .nonblocking = true, .in = in, .in_counts = in_counts,
		.in_displs = in_displs, .in_types = in_types, .out = out,
		.out_counts = out_counts, .out_displs = out_displs, .out_types = out_types,
	}, request);
}
SAME(Alltoallw)

int INIT(Reduce_scatter)(const void *in, void *out, const int out_counts[], MPI_Datatype out_type,
			 MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	int err = muster_mpi_beneath.Reduce_scatter_init(in, out, out_counts, out_type, op, comm,
							 info, request);

	return muster_mpi_persist(err, &(struct muster_mpi_call){
		.coll = COLL_Reduce_scatter, .comm = comm, .nonblocking = true, .in = in, .out = out,
		.out_counts = out_counts, .out_type = out_type, .op = op,
	}, request);
}
SAME(Reduce_scatter)

int INIT(Reduce_scatter_block)(const void *in, void *out, int out_count, MPI_Datatype out_type,
			       MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	int err = muster_mpi_beneath.Reduce_scatter_block_init(in, out, out_count, out_type, op,
							       comm, info, request);

	return muster_mpi_persist(err, &(struct muster_mpi_call){
		.coll = COLL_Reduce_scatter_block, .comm = comm, .nonblocking = true, .in = in, .out = out,
		.out_count = out_count, .out_type = out_type, .op = op,
	}, request);
}
SAME(Reduce_scatter_block)

int INIT(Scan)(const void *in, void *out, int out_count, MPI_Datatype out_type, MPI_Op op,
	       MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	int err = muster_mpi_beneath.Scan_init(in, out, out_count, out_type, op, comm, info,
					       request);

	return muster_mpi_persist(err, &(struct muster_mpi_call){
		.coll = COLL_Scan, .comm = comm, .nonblocking = true, .in = in, .out = out, .out_count = out_count,
		.out_type = out_type, .op = op,
	}, request);
}
SAME(Scan)

int INIT(Exscan)(const void *in, void *out, int out_count, MPI_Datatype out_type, MPI_Op op,
		 MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	int err = muster_mpi_beneath.Exscan_init(in, out, out_count, out_type, op, comm, info,
						 request);

	return muster_mpi_persist(err, &(struct muster_mpi_call){
		.coll = COLL_Exscan, .comm = comm, .nonblocking = true, .in = in, .out = out, .out_count = out_count,
		.out_type = out_type, .op = op,
	}, request);
}
SAME(Exscan)

int INIT(Neighbor_allgather)(const void *in, int in_count, MPI_Datatype in_type, void *out,
			     int out_count, MPI_Datatype out_type, MPI_Comm comm, MPI_Info info,
			     MPI_Request *request)
{
	int err = muster_mpi_beneath.Neighbor_allgather_init(in, in_count, in_type, out,
							     out_count, out_type, comm, info,
							     request);

	return muster_mpi_persist(err, &(struct muster_mpi_call){
		.coll = COLL_Neighbor_allgather, .comm = comm, .nonblocking = true, .in = in,
		.in_count = in_count, .in_type = in_type, .out = out,
		.out_count = out_count, .out_type = out_type,
	}, request);
}
SAME(Neighbor_allgather)

int INIT(Neighbor_allgatherv)(const void *in, int in_count, MPI_Datatype in_type, void *out,
			      const int out_counts[], const int out_displs[],
			      MPI_Datatype out_type, MPI_Comm comm, MPI_Info info,
			      MPI_Request *request)
{
	int err = muster_mpi_beneath.Neighbor_allgatherv_init(in, in_count, in_type, out,
							      out_counts, out_displs, out_type,
							      comm, info, request);

	return muster_mpi_persist(err, &(struct muster_mpi_call){
		.coll = COLL_Neighbor_allgatherv, .comm = comm, .nonblocking = true, .in = in,
		.in_count = in_count, .in_type = in_type, .out = out,
		.out_counts = out_counts, .out_displs = out_displs, .out_type = out_type,
	}, request);
}
SAME(Neighbor_allgatherv)

int INIT(Neighbor_alltoall)(const void *in, int in_count, MPI_Datatype in_type, void *out,
			    int out_count, MPI_Datatype out_type, MPI_Comm comm, MPI_Info info,
			    MPI_Request *request)
{
	int err = muster_mpi_beneath.Neighbor_alltoall_init(in, in_count, in_type, out, out_count,
							    out_type, comm, info, request);

	return muster_mpi_persist(err, &(struct muster_mpi_call){
		.coll = COLL_Neighbor_alltoall, .comm = comm, .nonblocking = true, .in = in,
		.in_count = in_count, .in_type = in_type, .out = out,
		.out_count = out_count, .out_type = out_type,
	}, request);
}
SAME(Neighbor_alltoall)

int INIT(Neighbor_alltoallv)(const void *in, const int in_counts[], const int in_displs[],
			     MPI_Datatype in_type, void *out, const int out_counts[],
			     const int out_displs[], MPI_Datatype out_type, MPI_Comm comm,
			     MPI_Info info, MPI_Request *request)
{
	int err = muster_mpi_beneath.Neighbor_alltoallv_init(in, in_counts, in_displs, in_type,
							     out, out_counts, out_displs,
							     out_type, comm, info, request);

	return muster_mpi_persist(err, &(struct muster_mpi_call){
		.coll = COLL_Neighbor_alltoallv, .comm = comm, .nonblocking = true, .in = in,
		.in_counts = in_counts, .in_displs = in_displs, .in_type = in_type,
		.out = out, .out_counts = out_counts, .out_displs = out_displs,
		.out_type = out_type,
	}, request);
}
SAME(Neighbor_alltoallv)

int INIT(Neighbor_alltoallw)(const void *in, const int in_counts[], const MPI_Aint in_ats[],
			     const MPI_Datatype in_types[], void *out, const int out_counts[],
			     const MPI_Aint out_ats[], const MPI_Datatype out_types[],
			     MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	int err = muster_mpi_beneath.Neighbor_alltoallw_init(in, in_counts, in_ats, in_types, out,
							     out_counts, out_ats, out_types, comm,
							     info, request);

	return muster_mpi_persist(err, &(struct muster_mpi_call){
		.coll = COLL_Neighbor_alltoallw, .comm = comm, .nonblocking = true, .in = in,
		.in_counts = in_counts, .in_ats = in_ats, .in_types = in_types, .out = out,
		.out_counts = out_counts, .out_ats = out_ats, .out_types = out_types,
	}, request);
}
SAME(Neighbor_alltoallw)
