// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Persistent operations: a call that is checked, lowered and pinned once, and started as often
 * as its caller likes. Each is what its started form makes of the arguments, short of starting;
 * small programs are kept by the device from the first start on (keep.c), so that a start is
 * one descriptor.
 */
#include <errno.h>

#include "restart.h"
#include "turn.h"

/* What the call makes is to be persistent. */
#define PERSISTENT(comm, call)								\
	int err;									\
											\
	MUSTER_TURN_OF(comm);								\
	struct muster_comm *on = comm ? muster_restart_now(comm) : NULL;		\
											\
	if (on) {									\
		muster_again_drop(on);							\
		on->persists = true;							\
	}										\
	err = call;									\
	if (on)										\
		on->persists = false;							\
	return err

int muster_barrier_init(struct muster_comm *comm, struct muster_request **request)
{
	PERSISTENT(comm, muster_barrier_start(comm, request));
}

int muster_broadcast_init(struct muster_comm *comm, void *buf, uint64_t count,
			  enum muster_type type, uint32_t root, struct muster_request **request)
{
	PERSISTENT(comm, muster_broadcast_start(comm, buf, count, type, root, request));
}

int muster_reduce_init(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		       enum muster_type type, enum muster_op op, uint32_t root,
		       struct muster_request **request)
{
	PERSISTENT(comm, muster_reduce_start(comm, in, out, count, type, op, root, request));
}

int muster_allreduce_init(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			  enum muster_type type, enum muster_op op,
			  struct muster_request **request)
{
	PERSISTENT(comm, muster_allreduce_start(comm, in, out, count, type, op, request));
}

int muster_allgather_init(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			  enum muster_type type, struct muster_request **request)
{
	PERSISTENT(comm, muster_allgather_start(comm, in, out, count, type, request));
}

int muster_reduce_scatter_block_init(struct muster_comm *comm, const void *in, void *out,
				     uint64_t count, enum muster_type type, enum muster_op op,
				     struct muster_request **request)
{
	PERSISTENT(comm, muster_reduce_scatter_block_start(comm, in, out, count, type, op,
		   request));
}

int muster_alltoall_init(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			 enum muster_type type, struct muster_request **request)
{
	PERSISTENT(comm, muster_alltoall_start(comm, in, out, count, type, request));
}

int muster_gather_init(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		       enum muster_type type, uint32_t root, struct muster_request **request)
{
	PERSISTENT(comm, muster_gather_start(comm, in, out, count, type, root, request));
}

int muster_scatter_init(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			enum muster_type type, uint32_t root, struct muster_request **request)
{
	PERSISTENT(comm, muster_scatter_start(comm, in, out, count, type, root, request));
}

int muster_scan_init(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		     enum muster_type type, enum muster_op op, struct muster_request **request)
{
	PERSISTENT(comm, muster_scan_start(comm, in, out, count, type, op, request));
}

int muster_exscan_init(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		       enum muster_type type, enum muster_op op, struct muster_request **request)
{
	PERSISTENT(comm, muster_exscan_start(comm, in, out, count, type, op, request));
}

int muster_allgatherv_init(struct muster_comm *comm, const void *in, void *out,
			   const uint64_t *counts, const uint64_t *displs, enum muster_type type,
			   struct muster_request **request)
{
	PERSISTENT(comm, muster_allgatherv_start(comm, in, out, counts, displs, type, request));
}

int muster_reduce_scatter_init(struct muster_comm *comm, const void *in, void *out,
			       const uint64_t *counts, enum muster_type type, enum muster_op op,
			       struct muster_request **request)
{
	PERSISTENT(comm, muster_reduce_scatter_start(comm, in, out, counts, type, op, request));
}

int muster_gatherv_init(struct muster_comm *comm, const void *in, uint64_t count, void *out,
			const uint64_t *counts, const uint64_t *displs, enum muster_type type,
			uint32_t root, struct muster_request **request)
{
	PERSISTENT(comm, muster_gatherv_start(comm, in, count, out, counts, displs, type, root,
		   request));
}

int muster_scatterv_init(struct muster_comm *comm, const void *in, const uint64_t *counts,
			 const uint64_t *displs, void *out, uint64_t count, enum muster_type type,
			 uint32_t root, struct muster_request **request)
{
	PERSISTENT(comm, muster_scatterv_start(comm, in, counts, displs, out, count, type, root,
		   request));
}

int muster_alltoallv_init(struct muster_comm *comm, const void *in, const uint64_t *in_counts,
			  const uint64_t *in_displs, void *out, const uint64_t *out_counts,
			  const uint64_t *out_displs, enum muster_type type,
			  struct muster_request **request)
{
	PERSISTENT(comm, muster_alltoallv_start(comm, in, in_counts, in_displs, out, out_counts,
		   out_displs, type, request));
}

int muster_alltoallw_init(struct muster_comm *comm, const void *in, const uint64_t *in_counts,
			  const uint64_t *in_displs, const enum muster_type *in_types, void *out,
			  const uint64_t *out_counts, const uint64_t *out_displs,
			  const enum muster_type *out_types, struct muster_request **request)
{
	PERSISTENT(comm, muster_alltoallw_start(comm, in, in_counts, in_displs, in_types, out,
		   out_counts, out_displs, out_types, request));
}

int muster_neighbour_allgather_init(struct muster_comm *comm, const void *in, void *out,
				    uint64_t count, enum muster_type type,
				    struct muster_request **request)
{
	PERSISTENT(comm, muster_neighbour_allgather_start(comm, in, out, count, type, request));
}

int muster_neighbour_alltoall_init(struct muster_comm *comm, const void *in, void *out,
				   uint64_t count, enum muster_type type,
				   struct muster_request **request)
{
	PERSISTENT(comm, muster_neighbour_alltoall_start(comm, in, out, count, type, request));
}

int muster_neighbour_allgatherv_init(struct muster_comm *comm, const void *in, uint64_t count,
				     void *out, const uint64_t *counts, const uint64_t *displs,
				     enum muster_type type, struct muster_request **request)
{
	PERSISTENT(comm, muster_neighbour_allgatherv_start(comm, in, count, out, counts,
		   displs, type, request));
}

int muster_neighbour_alltoallv_init(struct muster_comm *comm, const void *in,
				    const uint64_t *in_counts, const uint64_t *in_displs,
				    void *out, const uint64_t *out_counts,
				    const uint64_t *out_displs, enum muster_type type,
				    struct muster_request **request)
{
	PERSISTENT(comm, muster_neighbour_alltoallv_start(comm, in, in_counts, in_displs,
		   out, out_counts, out_displs, type, request));
}

int muster_neighbour_alltoallw_init(struct muster_comm *comm, const void *in,
				    const uint64_t *in_counts, const uint64_t *in_displs,
				    const enum muster_type *in_types, void *out,
				    const uint64_t *out_counts, const uint64_t *out_displs,
				    const enum muster_type *out_types,
				    struct muster_request **request)
{
	PERSISTENT(comm, muster_neighbour_alltoallw_start(comm, in, in_counts, in_displs,
		   in_types, out, out_counts, out_displs, out_types, request));
}

int muster_start(struct muster_request *request)
{
	MUSTER_TURN(request ? request->job : NULL);

	if (!request)
		return -EINVAL;
	if (request->state == MUSTER_REQUEST_IDLE)
		return muster_request_restart(request);
	return muster_fail(request->job, -EINVAL, "muster_start: the request %s",
			   request->persistent ? "is under way: wait for it first" :
						 "is not of a persistent operation");
}

int muster_request_free(struct muster_request *request)
{
	MUSTER_TURN(request ? request->job : NULL);

	if (!request)
		return -EINVAL;
	if (!request->persistent || request->state == MUSTER_REQUEST_FREE)
		return muster_fail(request->job, -EINVAL, "muster_request_free: the request is not of a persistent operation");
	if (request->state != MUSTER_REQUEST_IDLE && request->state != MUSTER_REQUEST_DONE)
		return muster_fail(request->job, -EINVAL, "muster_request_free: the request is under way: wait for it first");
	if (request->state == MUSTER_REQUEST_DONE)
		muster_request_end(request);
	muster_request_release(request);
	return 0;
}
