// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Collectives of which ranks have and need different parts of the message: which, where these
 * may lie in the caller's buffers, and the starts of those with equal parts.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* ---- what a rank has and needs ------------------------------------------------- */

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

/* ---- starting ------------------------------------------------------------------ */

/* What does not concern buffers. The count of a block becomes that of the message. */
static int parts_check(struct muster_comm *comm, struct muster_call *call)
{
	const struct muster_coll_row *row = muster_coll_row(call->coll);
	uint64_t blocks = muster_coll_chunks_unit(call->coll, comm->size) > 1 ? comm->size : 1;
	int err;

	if (__builtin_mul_overflow(call->count, blocks, &call->count))
		return muster_fail(comm->job, -EOVERFLOW, "%s: %u blocks of that count are more than memory can hold",
				   row->name, comm->size);
	err = muster_type_check(comm, call);
	if (!err && row->combines)
		err = muster_op_check(comm, call);
	if (!err && muster_coll_rooted(call->coll))
		err = muster_root_check(comm, call);
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
	int err = muster_buffer_check(comm, call, "in", *in, has.bytes);

	if (!err)
		err = muster_buffer_check(comm, call, "out", *out, needs.bytes);
	if (err || !has.bytes || !needs.bytes)
		return err;
	if (needs.bytes >= has.bytes && (a == b || a == b + has.first)) {
		call->in_place = true;
		*in = *out;
	} else if (a == b && call->coll == MUSTER_COLL_SCATTER) {
		*out = (void *)(b + needs.first);	/* stays where it is */
	} else if (a != b && b != a + needs.first) {
		err = muster_overlap_check(comm, call, *in, has.bytes, *out, needs.bytes);
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
	int err = muster_comm_check(comm, request);

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
