// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The collective operations: everything that can be wrong with their arguments
 * is found here and in parts.c, before anything is sent or queued. What is left after
 * that depends only on arguments that all ranks share, so all take the same path.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arith.h"
#include "again.h"
#include "calls.h"
#include "restart.h"

int muster_type_check(struct muster_comm *comm, struct muster_call *call)
{
	size_t size = call->type <= UINT8_MAX ? muster_dtype_size((uint8_t)call->type) : 0;

	if (!size)
		return muster_fail(comm->job, -EINVAL, "%s: there is no element type %u",
				   muster_coll_name(muster_call_coll(call)), call->type);
	if (call->count > PTRDIFF_MAX / size)
		return muster_fail(comm->job, -EOVERFLOW, "%s: %llu elements of %zu bytes are more than memory can hold",
				   muster_coll_name(muster_call_coll(call)), (unsigned long long)call->count,
				   size);
	call->bytes = call->count * size;
	return 0;
}

/* Names of the operations that a type has, as in a list. */
static const char *ops_of(uint8_t type, char *words, size_t len)
{
	size_t at = 0;

	for (uint8_t op = 1; op <= MUSTER_REDOP_LAST; op++)
		if (muster_arith_supported(type, op) && muster_arith_exchanges(op) && at < len)
			at += (size_t)snprintf(words + at, len - at, "%s%s", at ? ", " : "",
					       muster_op_name(op));
	return words;
}

int muster_op_check(struct muster_comm *comm, const struct muster_call *call)
{
	char words[128];

	if (!call->op || call->op > MUSTER_REDOP_LAST)
		return muster_fail(comm->job, -EINVAL, "%s: there is no operation %u",
				   muster_coll_name(muster_call_coll(call)), call->op);
	if (!muster_arith_exchanges((uint8_t)call->op))
		return muster_fail(comm->job, -EINVAL, "%s: %s depends on the order of the ranks' contributions, and none is promised",
				   muster_coll_name(muster_call_coll(call)), muster_op_name(call->op));
	if (muster_arith_supported((uint8_t)call->type, (uint8_t)call->op))
		return 0;
	return muster_fail(comm->job, -EINVAL, "%s: %s is not defined for %s, which has %s",
			   muster_coll_name(muster_call_coll(call)), muster_op_name(call->op),
			   muster_type_name(call->type),
			   ops_of((uint8_t)call->type, words, sizeof(words)));
}

int muster_root_check(struct muster_comm *comm, const struct muster_call *call)
{
	if (call->root < comm->size)
		return 0;
	return muster_fail(comm->job, -EINVAL, "%s: root %u, but the communicator has %u ranks, counted from 0",
			   muster_coll_name(muster_call_coll(call)), call->root, comm->size);
}

int muster_buffer_fail(struct muster_comm *comm, const struct muster_call *call, const char *name,
		       const void *buffer, uint64_t bytes)
{
	if (!buffer)
		return muster_fail(comm->job, -EFAULT, "%s: %s is NULL", muster_coll_name(muster_call_coll(call)),
				   name);
	return muster_fail(comm->job, -EFAULT, "%s: %llu bytes at %s = %p reach past the end of memory",
			   muster_coll_name(muster_call_coll(call)), (unsigned long long)bytes, name,
			   buffer);
}

int muster_overlap_fail(struct muster_comm *comm, const struct muster_call *call)
{
	return muster_fail(comm->job, -EINVAL, "%s: in and out overlap; they must be the same or apart",
			   muster_coll_name(muster_call_coll(call)));
}

int muster_apart_check(struct muster_comm *comm, const struct muster_call *call, const void *in,
		       uint64_t in_bytes, const void *out, uint64_t out_bytes)
{
	return in == out ? muster_overlap_fail(comm, call) :
			   muster_overlap_check(comm, call, in, in_bytes, out, out_bytes);
}

int muster_comm_check(struct muster_comm *comm, struct muster_request **request)
{
	if (!comm)
		return -EINVAL;
	if (!request)
		return muster_fail(comm->job, -EINVAL, "the place for the request is NULL");
	if (comm->failed)
		return muster_fail(comm->job, comm->failed, "%s", muster_comm_why(comm));
	return 0;
}

int muster_call_check(struct muster_comm **comm, struct muster_call *call, struct muster_request **request)
{
	if (*comm && request && (*comm)->restarts)
		return muster_restart_call(comm, call);
	return muster_comm_check(*comm, request);
}

/* ---- once more ---------------------------------------------------------------- */

/* Memory there for bytes at both, which are the same or apart. */
static inline bool buffers_fit(uintptr_t in, uintptr_t out, uint64_t bytes)
{
	uint64_t distance = in > out ? in - out : out - in;

	return in && out && in <= UINTPTR_MAX - bytes && out <= UINTPTR_MAX - bytes &&
	       (distance >= bytes || !distance);
}

/* What was called last, if that is it, and nothing is wrong; or NULL. */
static inline struct muster_request *again(const struct muster_comm *comm, enum muster_coll coll,
					   uint32_t type, uint32_t op, uint64_t count,
					   const void *in, const void *out)
{
	struct muster_request *ready = muster_again_ready(comm);
	const struct muster_call *call;

	if (!ready)
		return NULL;
	call = &ready->entry->call;
	if (call->coll != coll || call->count != count || call->type != type || call->op != op ||
	    call->in_place != (in == out))
		return NULL;
	return !count || buffers_fit((uintptr_t)in, (uintptr_t)out, call->bytes) ? ready : NULL;
}

/* Not in its caller, whose shorter way would need as many registers. */
#define SLOW	static __attribute__((noinline))

/* Who is the only thread needs no turn for it. */
static inline bool is_alone(const struct muster_comm *comm, struct muster_request **request)
{
	return __builtin_expect(comm && request && !comm->job->turn, 1);
}

/* ---- started ---------------------------------------------------------------- */

SLOW int barrier_start(struct muster_comm *comm, struct muster_request **request)
{
	MUSTER_TURN_OF(comm);
	struct muster_call call = { .coll = MUSTER_COLL_BARRIER, .in_place = true };
	int err = muster_call_check(&comm, &call, request);
	struct muster_request *ready;

	if (err)
		return err;
	ready = again(comm, MUSTER_COLL_BARRIER, 0, 0, 0, NULL, NULL);
	return ready ? muster_again_start(ready, NULL, NULL, request) :
		       muster_request_start(comm, &call, NULL, NULL, request);
}

int muster_barrier_start(struct muster_comm *comm, struct muster_request **request)
{
	struct muster_request *ready;

	if (is_alone(comm, request)) {
		ready = again(comm, MUSTER_COLL_BARRIER, 0, 0, 0, NULL, NULL);
		if (ready)
			return muster_again_start(ready, NULL, NULL, request);
	}
	return barrier_start(comm, request);
}

int muster_broadcast_start(struct muster_comm *comm, void *buf, uint64_t count,
			   enum muster_type type, uint32_t root, struct muster_request **request)
{
	MUSTER_TURN_OF(comm);
	struct muster_call call = {
		.coll = MUSTER_COLL_BROADCAST,
		.type = type,
		.root = root,
		.count = count,
		.in_place = true,
	};
	int err = muster_call_check(&comm, &call, request);

	if (!err)
		err = muster_type_check(comm, &call);
	if (!err)
		err = muster_root_check(comm, &call);
	if (!err)
		err = muster_buffer_check(comm, &call, "buf", buf, call.bytes);
	return err ? err : muster_request_start(comm, &call, buf, buf, request);
}

/* Away from the root out is not touched: partial results go to the library's own memory. */
int muster_reduce_start(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			enum muster_type type, enum muster_op op, uint32_t root,
			struct muster_request **request)
{
	MUSTER_TURN_OF(comm);
	struct muster_call call = {
		.coll = MUSTER_COLL_REDUCE,
		.type = type,
		.op = op,
		.parts = true,
		.root = root,
		.count = count,
	};
	int err = muster_call_check(&comm, &call, request);
	bool is_root;

	if (!err && op >= MUSTER_SUM_EXACT)
		return muster_user_start(comm, &call, in, out, NULL, request);
	if (!err)
		err = muster_type_check(comm, &call);
	if (!err)
		err = muster_op_check(comm, &call);
	if (!err)
		err = muster_root_check(comm, &call);
	if (!err)
		err = muster_buffer_check(comm, &call, "in", in, call.bytes);
	if (err)
		return err;
	is_root = comm->rank == call.root;
	if (is_root)
		err = muster_buffer_check(comm, &call, "out", out, call.bytes);
	if (is_root && !err)
		err = muster_overlap_check(comm, &call, in, call.bytes, out, call.bytes);
	call.in_place = is_root && in == out;
	return err ? err : muster_request_start(comm, &call, in, is_root ? out : NULL, request);
}

static int allreduce_check(struct muster_comm *comm, struct muster_call *call, const void *in,
			   const void *out)
{
	int err = muster_type_check(comm, call);

	if (!err)
		err = muster_op_check(comm, call);
	if (!err)
		err = muster_buffer_check(comm, call, "in", in, call->bytes);
	if (!err)
		err = muster_buffer_check(comm, call, "out", out, call->bytes);
	if (!err)
		err = muster_overlap_check(comm, call, in, call->bytes, out, call->bytes);
	return err;
}

SLOW int allreduce_start(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			 uint32_t type, uint32_t op, struct muster_request **request)
{
	MUSTER_TURN_OF(comm);
	struct muster_call call = {
		.coll = MUSTER_COLL_ALLREDUCE,
		.type = type,
		.op = op,
		.count = count,
		.in_place = in == out,
	};
	int err = muster_call_check(&comm, &call, request);
	struct muster_request *ready;

	if (err)
		return err;
	ready = again(comm, MUSTER_COLL_ALLREDUCE, type, op, count, in, out);
	if (ready)
		return muster_again_start(ready, in, out, request);
	if (op >= MUSTER_SUM_EXACT)
		return muster_user_start(comm, &call, in, out, NULL, request);
	err = allreduce_check(comm, &call, in, out);
	return err ? err : muster_request_start(comm, &call, in, out, request);
}

int muster_allreduce_start(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			   enum muster_type type, enum muster_op op,
			   struct muster_request **request)
{
	struct muster_request *ready;

	if (is_alone(comm, request)) {
		ready = again(comm, MUSTER_COLL_ALLREDUCE, type, op, count, in, out);
		if (ready)
			return muster_again_start(ready, in, out, request);
	}
	return allreduce_start(comm, in, out, count, type, op, request);
}

/* ---- blocking -------------------------------------------------------------------- */

int muster_barrier(struct muster_comm *comm)
{
	MUSTER_TURN_OF(comm);
	struct muster_request *request;
	int err = muster_barrier_start(comm, &request);

	return err ? err : muster_wait(request);
}

int muster_broadcast(struct muster_comm *comm, void *buf, uint64_t count, enum muster_type type,
		     uint32_t root)
{
	MUSTER_TURN_OF(comm);
	struct muster_request *request;
	int err = muster_broadcast_start(comm, buf, count, type, root, &request);

	return err ? err : muster_wait(request);
}

int muster_reduce(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		  enum muster_type type, enum muster_op op, uint32_t root)
{
	MUSTER_TURN_OF(comm);
	struct muster_request *request;
	int err = muster_reduce_start(comm, in, out, count, type, op, root, &request);

	return err ? err : muster_wait(request);
}

int muster_allreduce(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		     enum muster_type type, enum muster_op op)
{
	MUSTER_TURN_OF(comm);
	struct muster_request *request;
	int err = muster_allreduce_start(comm, in, out, count, type, op, &request);

	return err ? err : muster_wait(request);
}

int muster_allgather(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		     enum muster_type type)
{
	MUSTER_TURN_OF(comm);
	struct muster_request *request;
	int err = muster_allgather_start(comm, in, out, count, type, &request);

	return err ? err : muster_wait(request);
}

int muster_reduce_scatter_block(struct muster_comm *comm, const void *in, void *out,
				uint64_t count, enum muster_type type, enum muster_op op)
{
	MUSTER_TURN_OF(comm);
	struct muster_request *request;
	int err = muster_reduce_scatter_block_start(comm, in, out, count, type, op, &request);

	return err ? err : muster_wait(request);
}

int muster_alltoall(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		    enum muster_type type)
{
	MUSTER_TURN_OF(comm);
	struct muster_request *request;
	int err = muster_alltoall_start(comm, in, out, count, type, &request);

	return err ? err : muster_wait(request);
}

int muster_gather(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		  enum muster_type type, uint32_t root)
{
	MUSTER_TURN_OF(comm);
	struct muster_request *request;
	int err = muster_gather_start(comm, in, out, count, type, root, &request);

	return err ? err : muster_wait(request);
}

int muster_scatter(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		   enum muster_type type, uint32_t root)
{
	MUSTER_TURN_OF(comm);
	struct muster_request *request;
	int err = muster_scatter_start(comm, in, out, count, type, root, &request);

	return err ? err : muster_wait(request);
}

int muster_scan(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		enum muster_type type, enum muster_op op)
{
	MUSTER_TURN_OF(comm);
	struct muster_request *request;
	int err = muster_scan_start(comm, in, out, count, type, op, &request);

	return err ? err : muster_wait(request);
}

int muster_exscan(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		  enum muster_type type, enum muster_op op)
{
	MUSTER_TURN_OF(comm);
	struct muster_request *request;
	int err = muster_exscan_start(comm, in, out, count, type, op, &request);

	return err ? err : muster_wait(request);
}

/* A program is a tree's or that of a schedule: those that were made are forgotten. */
static void switch_set(struct muster_comm *comm, enum muster_offload tree)
{
	for (; comm; comm = comm->next_rail) {
		comm->tree = tree;
		muster_cache_clear(comm);
	}
}

static void offload_set(struct muster_comm *comm, enum muster_offload offload)
{
	for (; comm; comm = comm->next_rail) {
		comm->offload = offload;
		muster_again_drop(comm);
	}
}

int muster_comm_switch(struct muster_comm *comm, enum muster_offload tree)
{
	MUSTER_TURN_OF(comm);
	if (tree > MUSTER_OFFLOAD_FORCE)
		return muster_fail(comm->job, -EINVAL, "muster_comm_switch: %d; allowed are off (0), try (1) and force (2)",
				   (int)tree);
	switch_set(comm, tree);
	switch_set(muster_restart_now(comm), tree);
	return 0;
}

int muster_comm_offload(struct muster_comm *comm, enum muster_offload offload)
{
	MUSTER_TURN_OF(comm);
	if (offload > MUSTER_OFFLOAD_FORCE)
		return muster_fail(comm->job, -EINVAL, "muster_comm_offload: %d; allowed are off (0), try (1) and force (2)",
				   (int)offload);
	offload_set(comm, offload);
	offload_set(muster_restart_now(comm), offload);
	return 0;
}
