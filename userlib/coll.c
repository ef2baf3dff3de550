// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The collective operations: everything that can be wrong with their arguments
 * is found here, before anything is sent or queued. What is left after that
 * depends only on arguments that all ranks share, so all take the same path.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arith.h"
#include "internal.h"

static int type_check(struct muster_comm *comm, struct muster_call *call)
{
	size_t size = call->type <= UINT8_MAX ? muster_dtype_size((uint8_t)call->type) : 0;

	if (!size)
		return muster_fail(comm->job, -EINVAL, "%s: there is no element type %u",
				   muster_coll_name(call->coll), call->type);
	if (call->count > PTRDIFF_MAX / size)
		return muster_fail(comm->job, -EOVERFLOW, "%s: %llu elements of %zu bytes are more than memory can hold",
				   muster_coll_name(call->coll), (unsigned long long)call->count,
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

static int op_check(struct muster_comm *comm, const struct muster_call *call)
{
	char words[128];

	if (!call->op || call->op > MUSTER_REDOP_LAST)
		return muster_fail(comm->job, -EINVAL, "%s: there is no operation %u",
				   muster_coll_name(call->coll), call->op);
	if (!muster_arith_exchanges((uint8_t)call->op))
		return muster_fail(comm->job, -EINVAL, "%s: %s depends on the order of the ranks' contributions, and none is promised",
				   muster_coll_name(call->coll), muster_op_name(call->op));
	if (muster_arith_supported((uint8_t)call->type, (uint8_t)call->op))
		return 0;
	return muster_fail(comm->job, -EINVAL, "%s: %s is not defined for %s, which has %s",
			   muster_coll_name(call->coll), muster_op_name(call->op),
			   muster_type_name(call->type),
			   ops_of((uint8_t)call->type, words, sizeof(words)));
}

static int root_check(struct muster_comm *comm, const struct muster_call *call)
{
	if (call->root < comm->size)
		return 0;
	return muster_fail(comm->job, -EINVAL, "%s: root %u, but the communicator has %u ranks, counted from 0",
			   muster_coll_name(call->coll), call->root, comm->size);
}

/* All that does not concern buffers; what was found right the last time is so now. */
static int call_check(struct muster_comm *comm, struct muster_call *call)
{
	const struct muster_entry *recent = comm->recent;
	int err;

	if (recent && muster_call_same(&recent->call, call)) {
		call->bytes = recent->call.bytes;
		return 0;
	}
	err = type_check(comm, call);
	return err ? err : op_check(comm, call);
}

static int buffer_check(struct muster_comm *comm, const struct muster_call *call, const char *name,
			const void *buffer, uint64_t bytes)
{
	if (!bytes)
		return 0;
	if (!buffer)
		return muster_fail(comm->job, -EFAULT, "%s: %s is NULL", muster_coll_name(call->coll),
				   name);
	if ((uintptr_t)buffer > UINTPTR_MAX - bytes)
		return muster_fail(comm->job, -EFAULT, "%s: %llu bytes at %s = %p reach past the end of memory",
				   muster_coll_name(call->coll), (unsigned long long)bytes, name,
				   buffer);
	return 0;
}

static int overlap_check(struct muster_comm *comm, const struct muster_call *call, const void *in,
			 uint64_t in_bytes, const void *out, uint64_t out_bytes)
{
	uintptr_t a = (uintptr_t)in, b = (uintptr_t)out;

	if (a == b || a + in_bytes <= b || b + out_bytes <= a)
		return 0;
	return muster_fail(comm->job, -EINVAL, "%s: in and out overlap; they must be the same or apart",
			   muster_coll_name(call->coll));
}

/* ---- in parts ---------------------------------------------------------------- */

/* Equal parts: a rank's own block. */
static struct muster_span own_block(const struct muster_comm *comm, const struct muster_call *call)
{
	uint64_t each = call->bytes / comm->size;

	return (struct muster_span){ .first = comm->rank * each, .bytes = each };
}

static struct muster_span span_of(const struct muster_comm *comm, const struct muster_call *call,
				  enum muster_who who)
{
	struct muster_span whole = { .bytes = call->bytes }, none = { 0 };

	if (!call->parts)
		return whole;
	switch (who) {
	case MUSTER_WHO_ROOT:
		return comm->rank == call->root ? whole : none;
	case MUSTER_WHO_LATER:
		return comm->rank ? whole : none;
	case MUSTER_WHO_OWNER:
		return call->coll == MUSTER_COLL_ALLTOALL ? whole : own_block(comm, call);
	default:
		return whole;
	}
}

struct muster_span muster_call_has(const struct muster_comm *comm, const struct muster_call *call)
{
	return span_of(comm, call, muster_coll_row(call->coll)->has);
}

struct muster_span muster_call_needs(const struct muster_comm *comm,
				     const struct muster_call *call)
{
	return span_of(comm, call, muster_coll_row(call->coll)->needs);
}

/* What every start has in common; the sentence of an ended communicator comes again. */
static int comm_check(struct muster_comm *comm, struct muster_request **request)
{
	if (!comm)
		return -EINVAL;
	if (!request)
		return muster_fail(comm->job, -EINVAL, "the place for the request is NULL");
	if (comm->failed)
		return muster_fail(comm->job, comm->failed, "%s", comm->why);
	return 0;
}

/* ---- started ---------------------------------------------------------------- */

int muster_barrier_start(struct muster_comm *comm, struct muster_request **request)
{
	const struct muster_call call = { .coll = MUSTER_COLL_BARRIER, .in_place = true };
	int err = comm_check(comm, request);

	return err ? err : muster_request_start(comm, &call, NULL, NULL, request);
}

int muster_broadcast_start(struct muster_comm *comm, void *buf, uint64_t count,
			   enum muster_type type, uint32_t root, struct muster_request **request)
{
	struct muster_call call = {
		.coll = MUSTER_COLL_BROADCAST,
		.type = type,
		.root = root,
		.count = count,
		.in_place = true,
	};
	int err = comm_check(comm, request);

	if (!err)
		err = type_check(comm, &call);
	if (!err)
		err = root_check(comm, &call);
	if (!err)
		err = buffer_check(comm, &call, "buf", buf, call.bytes);
	return err ? err : muster_request_start(comm, &call, buf, buf, request);
}

/* Away from the root out is not touched: partial results go to the library's own memory. */
int muster_reduce_start(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			enum muster_type type, enum muster_op op, uint32_t root,
			struct muster_request **request)
{
	struct muster_call call = {
		.coll = MUSTER_COLL_REDUCE,
		.type = type,
		.op = op,
		.parts = true,
		.root = root,
		.count = count,
	};
	int err = comm_check(comm, request);
	bool is_root;

	if (!err)
		err = type_check(comm, &call);
	if (!err)
		err = op_check(comm, &call);
	if (!err)
		err = root_check(comm, &call);
	if (!err)
		err = buffer_check(comm, &call, "in", in, call.bytes);
	if (err)
		return err;
	is_root = comm->rank == root;
	if (is_root)
		err = buffer_check(comm, &call, "out", out, call.bytes);
	if (is_root && !err)
		err = overlap_check(comm, &call, in, call.bytes, out, call.bytes);
	call.in_place = is_root && in == out;
	return err ? err : muster_request_start(comm, &call, in, is_root ? out : NULL, request);
}

int muster_allreduce_start(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			   enum muster_type type, enum muster_op op,
			   struct muster_request **request)
{
	struct muster_call call = {
		.coll = MUSTER_COLL_ALLREDUCE,
		.type = type,
		.op = op,
		.count = count,
		.in_place = in == out,
	};
	int err = comm_check(comm, request);

	if (!err)
		err = call_check(comm, &call);
	if (!err)
		err = buffer_check(comm, &call, "in", in, call.bytes);
	if (!err)
		err = buffer_check(comm, &call, "out", out, call.bytes);
	if (!err)
		err = overlap_check(comm, &call, in, call.bytes, out, call.bytes);
	return err ? err : muster_request_start(comm, &call, in, out, request);
}

/* What does not concern buffers. The count of a block becomes that of the message. */
static int parts_check(struct muster_comm *comm, struct muster_call *call)
{
	const struct muster_coll_row *row = muster_coll_row(call->coll);
	uint64_t blocks = muster_coll_chunks_unit(call->coll, comm->size) > 1 ? comm->size : 1;
	int err;

	if (__builtin_mul_overflow(call->count, blocks, &call->count))
		return muster_fail(comm->job, -EOVERFLOW, "%s: %u blocks of that count are more than memory can hold",
				   row->name, comm->size);
	err = type_check(comm, call);
	if (!err && row->combines)
		err = op_check(comm, call);
	if (!err && muster_coll_rooted(call->coll))
		err = root_check(comm, call);
	return err;
}

/*
 * In place: one buffer, or a rank's part of the message where it lies in the other buffer,
 * which then holds all of it.
 */
static int parts_place(struct muster_comm *comm, struct muster_call *call, const void **in,
		       void **out)
{
	struct muster_span has = muster_call_has(comm, call), needs = muster_call_needs(comm, call);
	uintptr_t a = (uintptr_t)*in, b = (uintptr_t)*out;
	int err = buffer_check(comm, call, "in", *in, has.bytes);

	if (!err)
		err = buffer_check(comm, call, "out", *out, needs.bytes);
	if (err || !has.bytes || !needs.bytes)
		return err;
	if (needs.bytes >= has.bytes && (a == b || a == b + has.first)) {
		call->in_place = true;
		*in = *out;
	} else if (a == b && call->coll == MUSTER_COLL_SCATTER) {
		*out = (void *)(b + needs.first);	/* stays where it is */
	} else if (a != b && b != a + needs.first) {
		err = overlap_check(comm, call, *in, has.bytes, *out, needs.bytes);
	}
	return err;
}

/* An alltoall overwrites what it has still to send: it reads a copy instead. */
static int copy_in(struct muster_comm *comm, struct muster_call *call, const void **in,
		   void **copied)
{
	*copied = NULL;
	if (call->coll != MUSTER_COLL_ALLTOALL || !call->in_place || !call->bytes)
		return 0;
	*copied = malloc(call->bytes);
	if (!*copied)
		return muster_comm_give_up(comm, muster_fail(comm->job, -ENOMEM, "no memory for an alltoall in place"));
	memcpy(*copied, *in, call->bytes);
	*in = *copied;
	call->in_place = false;
	return 0;
}

/* Collectives of which ranks have and need different parts. */
static int parts_start(struct muster_comm *comm, struct muster_call call, const void *in, void *out,
		       struct muster_request **request)
{
	void *copied = NULL;
	int err = comm_check(comm, request);

	call.parts = true;
	if (!err)
		err = parts_check(comm, &call);
	if (!err)
		err = parts_place(comm, &call, &in, &out);
	if (!err)
		err = copy_in(comm, &call, &in, &copied);
	if (!err)
		err = muster_request_start(comm, &call, in, out, request);
	if (err || (*request)->state == MUSTER_REQUEST_DONE)
		free(copied);
	else
		(*request)->copied_in = copied;
	return err;
}

int muster_allgather_start(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			   enum muster_type type, struct muster_request **request)
{
	return parts_start(comm, (struct muster_call){ .coll = MUSTER_COLL_ALLGATHER, .type = type,
						       .count = count }, in, out, request);
}

int muster_reduce_scatter_block_start(struct muster_comm *comm, const void *in, void *out,
				      uint64_t count, enum muster_type type, enum muster_op op,
				      struct muster_request **request)
{
	return parts_start(comm, (struct muster_call){ .coll = MUSTER_COLL_REDUCE_SCATTER,
						       .type = type, .op = op, .count = count },
			   in, out, request);
}

int muster_alltoall_start(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			  enum muster_type type, struct muster_request **request)
{
	return parts_start(comm, (struct muster_call){ .coll = MUSTER_COLL_ALLTOALL, .type = type,
						       .count = count }, in, out, request);
}

int muster_gather_start(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			enum muster_type type, uint32_t root, struct muster_request **request)
{
	return parts_start(comm, (struct muster_call){ .coll = MUSTER_COLL_GATHER, .type = type,
						       .root = root, .count = count },
			   in, out, request);
}

int muster_scatter_start(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			 enum muster_type type, uint32_t root, struct muster_request **request)
{
	return parts_start(comm, (struct muster_call){ .coll = MUSTER_COLL_SCATTER, .type = type,
						       .root = root, .count = count },
			   in, out, request);
}

int muster_scan_start(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		      enum muster_type type, enum muster_op op, struct muster_request **request)
{
	return parts_start(comm, (struct muster_call){ .coll = MUSTER_COLL_SCAN, .type = type,
						       .op = op, .count = count },
			   in, out, request);
}

int muster_exscan_start(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			enum muster_type type, enum muster_op op, struct muster_request **request)
{
	return parts_start(comm, (struct muster_call){ .coll = MUSTER_COLL_EXSCAN, .type = type,
						       .op = op, .count = count },
			   in, out, request);
}

/* ---- blocking -------------------------------------------------------------------- */

int muster_barrier(struct muster_comm *comm)
{
	struct muster_request *request;
	int err = muster_barrier_start(comm, &request);

	return err ? err : muster_wait(request);
}

int muster_broadcast(struct muster_comm *comm, void *buf, uint64_t count, enum muster_type type,
		     uint32_t root)
{
	struct muster_request *request;
	int err = muster_broadcast_start(comm, buf, count, type, root, &request);

	return err ? err : muster_wait(request);
}

int muster_reduce(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		  enum muster_type type, enum muster_op op, uint32_t root)
{
	struct muster_request *request;
	int err = muster_reduce_start(comm, in, out, count, type, op, root, &request);

	return err ? err : muster_wait(request);
}

int muster_allreduce(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		     enum muster_type type, enum muster_op op)
{
	struct muster_request *request;
	int err = muster_allreduce_start(comm, in, out, count, type, op, &request);

	return err ? err : muster_wait(request);
}

int muster_allgather(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		     enum muster_type type)
{
	struct muster_request *request;
	int err = muster_allgather_start(comm, in, out, count, type, &request);

	return err ? err : muster_wait(request);
}

int muster_reduce_scatter_block(struct muster_comm *comm, const void *in, void *out,
				uint64_t count, enum muster_type type, enum muster_op op)
{
	struct muster_request *request;
	int err = muster_reduce_scatter_block_start(comm, in, out, count, type, op, &request);

	return err ? err : muster_wait(request);
}

int muster_alltoall(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		    enum muster_type type)
{
	struct muster_request *request;
	int err = muster_alltoall_start(comm, in, out, count, type, &request);

	return err ? err : muster_wait(request);
}

int muster_gather(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		  enum muster_type type, uint32_t root)
{
	struct muster_request *request;
	int err = muster_gather_start(comm, in, out, count, type, root, &request);

	return err ? err : muster_wait(request);
}

int muster_scatter(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		   enum muster_type type, uint32_t root)
{
	struct muster_request *request;
	int err = muster_scatter_start(comm, in, out, count, type, root, &request);

	return err ? err : muster_wait(request);
}

int muster_scan(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		enum muster_type type, enum muster_op op)
{
	struct muster_request *request;
	int err = muster_scan_start(comm, in, out, count, type, op, &request);

	return err ? err : muster_wait(request);
}

int muster_exscan(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		  enum muster_type type, enum muster_op op)
{
	struct muster_request *request;
	int err = muster_exscan_start(comm, in, out, count, type, op, &request);

	return err ? err : muster_wait(request);
}

int muster_comm_offload(struct muster_comm *comm, enum muster_offload offload)
{
	if (offload > MUSTER_OFFLOAD_FORCE)
		return muster_fail(comm->job, -EINVAL, "muster_comm_offload: %d; allowed are off (0), try (1) and force (2)",
				   (int)offload);
	comm->offload = offload;
	return 0;
}
