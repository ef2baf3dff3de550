// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Calls as they came, to the MPI library beneath.
 */
#include "shim.h"

static int pass_blocking(const struct muster_mpi_call *c)
{
	switch (c->coll) {
	case COLL_Barrier:
		return muster_mpi_beneath.Barrier(c->comm);
	case COLL_Bcast:
		return muster_mpi_beneath.Bcast(c->out, c->out_count, c->out_type, c->root,
						c->comm);
	case COLL_Reduce:
		return muster_mpi_beneath.Reduce(c->in, c->out, c->out_count, c->out_type, c->op,
						 c->root, c->comm);
	case COLL_Allreduce:
		return muster_mpi_beneath.Allreduce(c->in, c->out, c->out_count, c->out_type, c->op,
						    c->comm);
	case COLL_Gather:
		return muster_mpi_beneath.Gather(c->in, c->in_count, c->in_type, c->out,
						 c->out_count, c->out_type, c->root, c->comm);
	case COLL_Gatherv:
		return muster_mpi_beneath.Gatherv(c->in, c->in_count, c->in_type, c->out,
						  c->out_counts, c->out_displs, c->out_type,
						  c->root, c->comm);
	case COLL_Scatter:
		return muster_mpi_beneath.Scatter(c->in, c->in_count, c->in_type, c->out,
						  c->out_count, c->out_type, c->root, c->comm);
	case COLL_Scatterv:
		return muster_mpi_beneath.Scatterv(c->in, c->in_counts, c->in_displs, c->in_type,
						   c->out, c->out_count, c->out_type, c->root,
						   c->comm);
	case COLL_Allgather:
		return muster_mpi_beneath.Allgather(c->in, c->in_count, c->in_type, c->out,
						    c->out_count, c->out_type, c->comm);
	case COLL_Allgatherv:
		return muster_mpi_beneath.Allgatherv(c->in, c->in_count, c->in_type, c->out,
						     c->out_counts, c->out_displs, c->out_type,
						     c->comm);
	case COLL_Alltoall:
		return muster_mpi_beneath.Alltoall(c->in, c->in_count, c->in_type, c->out,
						   c->out_count, c->out_type, c->comm);
	case COLL_Alltoallv:
		return muster_mpi_beneath.Alltoallv(c->in, c->in_counts, c->in_displs, c->in_type,
						    c->out, c->out_counts, c->out_displs,
						    c->out_type, c->comm);
	case COLL_Alltoallw:
		return muster_mpi_beneath.Alltoallw(c->in, c->in_counts, c->in_displs, c->in_types,
						    c->out, c->out_counts, c->out_displs,
						    c->out_types, c->comm);
	case COLL_Reduce_scatter:
		return muster_mpi_beneath.Reduce_scatter(c->in, c->out, c->out_counts, c->out_type,
							 c->op, c->comm);
	case COLL_Reduce_scatter_block:
		return muster_mpi_beneath.Reduce_scatter_block(c->in, c->out, c->out_count,
							       c->out_type, c->op, c->comm);
	case COLL_Scan:
		return muster_mpi_beneath.Scan(c->in, c->out, c->out_count, c->out_type, c->op,
					       c->comm);
	case COLL_Exscan:
		return muster_mpi_beneath.Exscan(c->in, c->out, c->out_count, c->out_type, c->op,
						 c->comm);
	case COLL_Neighbor_allgather:
		return muster_mpi_beneath.Neighbor_allgather(c->in, c->in_count, c->in_type,
							     c->out, c->out_count, c->out_type,
							     c->comm);
	case COLL_Neighbor_allgatherv:
		return muster_mpi_beneath.Neighbor_allgatherv(c->in, c->in_count, c->in_type,
							      c->out, c->out_counts, c->out_displs,
							      c->out_type, c->comm);
	case COLL_Neighbor_alltoall:
		return muster_mpi_beneath.Neighbor_alltoall(c->in, c->in_count, c->in_type, c->out,
							    c->out_count, c->out_type, c->comm);
	case COLL_Neighbor_alltoallv:
		return muster_mpi_beneath.Neighbor_alltoallv(c->in, c->in_counts, c->in_displs,
							     c->in_type, c->out, c->out_counts,
							     c->out_displs, c->out_type, c->comm);
	case COLL_Neighbor_alltoallw:
		return muster_mpi_beneath.Neighbor_alltoallw(c->in, c->in_counts, c->in_ats,
							     c->in_types, c->out, c->out_counts,
							     c->out_ats, c->out_types, c->comm);
	default:
		return MPI_ERR_INTERN;
	}
}

static int pass_nonblocking(const struct muster_mpi_call *c, MPI_Request *request)
{
	switch (c->coll) {
	case COLL_Barrier:
		return muster_mpi_beneath.Ibarrier(c->comm, request);
	case COLL_Bcast:
		return muster_mpi_beneath.Ibcast(c->out, c->out_count, c->out_type, c->root,
						 c->comm, request);
	case COLL_Reduce:
		return muster_mpi_beneath.Ireduce(c->in, c->out, c->out_count, c->out_type, c->op,
						  c->root, c->comm, request);
	case COLL_Allreduce:
		return muster_mpi_beneath.Iallreduce(c->in, c->out, c->out_count, c->out_type,
						     c->op, c->comm, request);
	case COLL_Gather:
		return muster_mpi_beneath.Igather(c->in, c->in_count, c->in_type, c->out,
						  c->out_count, c->out_type, c->root, c->comm,
						  request);
	case COLL_Gatherv:
		return muster_mpi_beneath.Igatherv(c->in, c->in_count, c->in_type, c->out,
						   c->out_counts, c->out_displs, c->out_type,
						   c->root, c->comm, request);
	case COLL_Scatter:
		return muster_mpi_beneath.Iscatter(c->in, c->in_count, c->in_type, c->out,
						   c->out_count, c->out_type, c->root, c->comm,
						   request);
	case COLL_Scatterv:
		return muster_mpi_beneath.Iscatterv(c->in, c->in_counts, c->in_displs, c->in_type,
						    c->out, c->out_count, c->out_type, c->root,
						    c->comm, request);
	case COLL_Allgather:
		return muster_mpi_beneath.Iallgather(c->in, c->in_count, c->in_type, c->out,
						     c->out_count, c->out_type, c->comm, request);
	case COLL_Allgatherv:
		return muster_mpi_beneath.Iallgatherv(c->in, c->in_count, c->in_type, c->out,
						      c->out_counts, c->out_displs, c->out_type,
						      c->comm, request);
	case COLL_Alltoall:
		return muster_mpi_beneath.Ialltoall(c->in, c->in_count, c->in_type, c->out,
						    c->out_count, c->out_type, c->comm, request);
	case COLL_Alltoallv:
		return muster_mpi_beneath.Ialltoallv(c->in, c->in_counts, c->in_displs, c->in_type,
						     c->out, c->out_counts, c->out_displs,
						     c->out_type, c->comm, request);
	case COLL_Alltoallw:
		return muster_mpi_beneath.Ialltoallw(c->in, c->in_counts, c->in_displs, c->in_types,
						     c->out, c->out_counts, c->out_displs,
						     c->out_types, c->comm, request);
	case COLL_Reduce_scatter:
		return muster_mpi_beneath.Ireduce_scatter(c->in, c->out, c->out_counts, c->out_type,
							  c->op, c->comm, request);
	case COLL_Reduce_scatter_block:
		return muster_mpi_beneath.Ireduce_scatter_block(c->in, c->out, c->out_count,
								c->out_type, c->op, c->comm,
								request);
	case COLL_Scan:
		return muster_mpi_beneath.Iscan(c->in, c->out, c->out_count, c->out_type, c->op,
						c->comm, request);
	case COLL_Exscan:
		return muster_mpi_beneath.Iexscan(c->in, c->out, c->out_count, c->out_type, c->op,
						  c->comm, request);
	case COLL_Neighbor_allgather:
		return muster_mpi_beneath.Ineighbor_allgather(c->in, c->in_count, c->in_type,
							      c->out, c->out_count, c->out_type,
							      c->comm, request);
	case COLL_Neighbor_allgatherv:
		return muster_mpi_beneath.Ineighbor_allgatherv(c->in, c->in_count, c->in_type,
							       c->out, c->out_counts,
							       c->out_displs, c->out_type, c->comm,
							       request);
	case COLL_Neighbor_alltoall:
		return muster_mpi_beneath.Ineighbor_alltoall(c->in, c->in_count, c->in_type,
							     c->out, c->out_count, c->out_type,
							     c->comm, request);
	case COLL_Neighbor_alltoallv:
		return muster_mpi_beneath.Ineighbor_alltoallv(c->in, c->in_counts, c->in_displs,
							      c->in_type, c->out, c->out_counts,
							      c->out_displs, c->out_type, c->comm,
							      request);
	case COLL_Neighbor_alltoallw:
		return muster_mpi_beneath.Ineighbor_alltoallw(c->in, c->in_counts, c->in_ats,
							      c->in_types, c->out, c->out_counts,
							      c->out_ats, c->out_types, c->comm,
							      request);
	default:
		return MPI_ERR_INTERN;
	}
}

int muster_mpi_pass(const struct muster_mpi_call *call, MPI_Request *request)
{
	return call->nonblocking ? pass_nonblocking(call, request) : pass_blocking(call);
}
