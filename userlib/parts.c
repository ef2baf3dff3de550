// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Collectives of which ranks have and need different parts of the message: which, where these
 * may lie in the caller's buffers, and the starts of those with equal parts.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arith.h"
#include "calls.h"
#include "turn.h"

/* ---- what a rank has and needs ------------------------------------------------- */

/* A rank's own block; blocks: where they lie, if they are not equal. */
static struct muster_span own_block(const struct muster_comm *comm, const struct muster_call *call,
				    const struct muster_block *blocks)
{
	uint64_t each = call->bytes / comm->size;
	size_t size = muster_dtype_size((uint8_t)call->type);

	if (blocks)
		return (struct muster_span){ .first = blocks[comm->rank].first * size,
					     .bytes = blocks[comm->rank].nr * size };
	return (struct muster_span){ .first = comm->rank * each, .bytes = each };
}

/* From the first element of all blocks to the last. */
static struct muster_span extent(const struct muster_call *call, const struct muster_block *blocks)
{
	size_t size = muster_dtype_size((uint8_t)call->type);
	uint64_t first = UINT64_MAX, end = 0;

	for (uint32_t i = 0; i < call->cut->nr; i++) {
		if (!blocks[i].nr)
			continue;
		first = blocks[i].first < first ? blocks[i].first : first;
		end = blocks[i].first + blocks[i].nr > end ? blocks[i].first + blocks[i].nr : end;
	}
	if (!end)
		return (struct muster_span){ 0 };
	return (struct muster_span){ .first = first * size, .bytes = (end - first) * size };
}

static struct muster_span span_of(const struct muster_comm *comm, const struct muster_call *call,
				  enum muster_who who, const struct muster_block *blocks)
{
	struct muster_span whole = { .bytes = call->bytes }, none = { 0 };

	if (!call->parts)
		return whole;
	if (blocks)
		whole = extent(call, blocks);
	switch (who) {
	case MUSTER_WHO_ROOT:
		return comm->rank == call->root ? whole : none;
	case MUSTER_WHO_LATER:
		return comm->rank ? whole : none;
	case MUSTER_WHO_OWNER:
		return call->coll == MUSTER_COLL_ALLTOALL ? whole : own_block(comm, call, blocks);
	default:
		return whole;
	}
}

struct muster_span muster_call_has(const struct muster_comm *comm, const struct muster_call *call)
{
	return span_of(comm, call, muster_coll_row(call->coll)->has,
		       call->cut ? call->cut->in : NULL);
}

struct muster_span muster_call_needs(const struct muster_comm *comm,
				     const struct muster_call *call)
{
	return span_of(comm, call, muster_coll_row(call->coll)->needs,
		       call->cut ? call->cut->out : NULL);
}

/* ---- memory of the library's own ----------------------------------------------- */

struct muster_aside *muster_aside_new(struct muster_comm *comm, uint64_t bytes, uint32_t pieces)
{
	struct muster_aside *aside = calloc(1, sizeof(*aside) + pieces * sizeof(aside->pieces[0]));

	if (aside && bytes)
		aside->memory = malloc(bytes);
	if (aside && (aside->memory || !bytes))
		return aside;
	free(aside);
	muster_comm_give_up(comm, muster_fail(comm->job, -ENOMEM, "no memory for %llu bytes beside the buffers",
					      (unsigned long long)bytes));
	return NULL;
}

void muster_aside_fill(struct muster_aside *aside)
{
	if (aside->first.bytes)
		memcpy(aside->first.to, aside->first.from, aside->first.bytes);
}

void *muster_aside_copy(struct muster_aside *aside, void *to, const void *from, uint64_t bytes)
{
	aside->first = (struct muster_piece){ .to = to, .from = from, .bytes = bytes };
	muster_aside_fill(aside);
	return to;
}

void muster_aside_take(struct muster_aside *aside, int result)
{
	if (aside->lengths)
		muster_request_end(aside->lengths);
	aside->lengths = NULL;
	if (aside->exact.type)
		muster_exact_end(&aside->exact, result);
	if (!result)
		muster_fold(&aside->fold, aside->memory);
	for (uint32_t i = 0; i < aside->nr && !result; i++)
		memcpy(aside->pieces[i].to, aside->pieces[i].from, aside->pieces[i].bytes);
}

void muster_aside_end(struct muster_aside *aside, int result)
{
	if (!aside)
		return;
	muster_aside_take(aside, result);
	free(aside->memory);
	free(aside);
}

int muster_aside_give(struct muster_aside *aside, int err, struct muster_request *request)
{
	if (err)
		muster_aside_end(aside, err);
	else
		request->aside = aside;
	return err;
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
	bool in_larger = muster_coll_row(call->coll)->needs == MUSTER_WHO_OWNER;
	uintptr_t a = (uintptr_t)*in, b = (uintptr_t)*out;
	int err = muster_buffer_check(comm, call, "in", *in, has.bytes);

	if (!err)
		err = muster_buffer_check(comm, call, "out", *out, needs.bytes);
	if (err || !has.bytes || !needs.bytes)
		return err;
	if (!in_larger && (a == b || a == b + has.first)) {
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
		   struct muster_aside **aside)
{
	if (call->coll != MUSTER_COLL_ALLTOALL || !call->in_place || !call->bytes)
		return 0;
	*aside = muster_aside_new(comm, call->bytes, 0);
	if (!*aside)
		return -ENOMEM;
	*in = muster_aside_copy(*aside, (*aside)->memory, *in, call->bytes);
	call->in_place = false;
	return 0;
}

int muster_parts_begin(struct muster_comm *comm, struct muster_call *call, const void *in,
		       void *out, struct muster_aside *aside, struct muster_request **request)
{
	int err;

	call->parts = true;
	err = parts_place(comm, call, &in, &out);
	if (!err)
		err = copy_in(comm, call, &in, &aside);
	if (!err)
		err = muster_request_start(comm, call, in, out, request);
	return muster_aside_give(aside, err, err ? NULL : *request);
}

/* Collectives of which ranks have and need different parts. */
static int parts_start(struct muster_comm *comm, struct muster_call call, const void *in, void *out,
		       struct muster_request **request)
{
	MUSTER_TURN_OF(comm);
	int err = muster_call_check(&comm, &call, request);

	if (!err && call.op >= MUSTER_SUM_EXACT)
		return muster_user_start(comm, &call, in, out, NULL, request);
	if (!err)
		err = parts_check(comm, &call);
	return err ? err : muster_parts_begin(comm, &call, in, out, NULL, request);
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
