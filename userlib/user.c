// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Operations of the caller's own. No device can run them, so that a reduction is a gathering
 * of all contributions, on whichever path, and a fold on the CPU in the order of ranks at
 * its end: the operation need not commute, and all ranks have the same bits. What all ranks
 * know is gathered to who needs the result; of a reduce-scatter each block goes to its rank.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arith.h"
#include "calls.h"
#include "turn.h"

int muster_op_create(struct muster *job, muster_combine combine, void *opaque, enum muster_op *op)
{
	struct muster_user_op *ops = NULL;
	uint32_t i = 0;

	MUSTER_TURN(job);
	if (!combine || !op)
		return muster_fail(job, -EINVAL, "muster_op_create: combine or op is NULL");
	while (i < job->nr_user_ops && job->user_ops[i].combine)
		i++;
	if (i == job->nr_user_ops) {
		ops = realloc(job->user_ops, (i + 1) * sizeof(*ops));
		if (!ops)
			return muster_fail(job, -ENOMEM, "no memory for an operation");
		job->user_ops = ops;
		job->nr_user_ops++;
	}
	job->user_ops[i] = (struct muster_user_op){ combine, opaque };
	*op = (enum muster_op)(MUSTER_OP_USER + i);
	return 0;
}

static struct muster_user_op *op_find(const struct muster *job, uint32_t op)
{
	uint32_t index = op - MUSTER_OP_USER;

	if (op < MUSTER_OP_USER || index >= job->nr_user_ops || !job->user_ops[index].combine)
		return NULL;
	return &job->user_ops[index];
}

int muster_op_free(struct muster *job, enum muster_op op)
{
	struct muster_user_op *own;

	MUSTER_TURN(job);
	own = op_find(job, op);
	if (!own)
		return muster_fail(job, -EINVAL, "muster_op_free: %u is not of muster_op_create()", op);
	own->combine = NULL;
	return 0;
}

/* Each contribution takes in all before it. */
void muster_fold(const struct muster_fold *fold, uint8_t *memory)
{
	if (!fold->nr || !fold->bytes)
		return;
	for (uint32_t i = 1; i < fold->nr; i++, memory += fold->bytes)
		fold->op.combine(memory, memory + fold->bytes, fold->count, fold->op.opaque);
	memcpy(fold->to, memory, fold->bytes);
}

/* ---- starting ------------------------------------------------------------------ */

static int op_check(struct muster_comm *comm, const struct muster_call *call,
		    struct muster_user_op *op)
{
	const struct muster_user_op *own = op_find(comm->job, call->op);
	const char *name = muster_coll_name(muster_call_coll(call));
	bool is_exact = call->op == MUSTER_SUM_EXACT;

	if (is_exact && call->as)
		return muster_fail(comm->job, -EINVAL, "%s: exact sums are of equal blocks, as in muster_reduce_scatter_block(), or of whole messages",
				   name);
	if (is_exact && call->type != MUSTER_F32 && call->type != MUSTER_F64)
		return muster_fail(comm->job, -EINVAL, "%s: exact sums are of f32 and f64, not of %s", name,
				   muster_type_name(call->type));
	if (!is_exact && !own)
		return muster_fail(comm->job, -EINVAL, "%s: there is no operation %u", name, call->op);
	*op = own ? *own : (struct muster_user_op){ 0 };
	return 0;
}

/* The call as it was made: what is wrong with it, and the bytes of a contribution. */
static int check(struct muster_comm *comm, struct muster_call *call, struct muster_user_op *op)
{
	int err = muster_type_check(comm, call);

	if (!err)
		err = op_check(comm, call, op);
	if (!err && muster_coll_rooted(call->coll))
		err = muster_root_check(comm, call);
	return err;
}

/* How many contributions this rank folds. */
static uint32_t folded(const struct muster_comm *comm, const struct muster_call *call)
{
	switch (call->coll) {
	case MUSTER_COLL_REDUCE:
		return comm->rank == call->root ? comm->size : 0;
	case MUSTER_COLL_SCAN:
		return comm->rank + 1;
	case MUSTER_COLL_EXSCAN:
		return comm->rank;
	default:
		return comm->size;
	}
}

/* What is carried is a contribution of each rank. */
void muster_user_refit(const struct muster_comm *from, const struct muster_comm *to, struct muster_call *call,
		       struct muster_fold *fold)
{
	const struct muster_call called = { .coll = call->as, .root = call->root };

	call->count = call->count / from->size * to->size;
	call->bytes = call->bytes / from->size * to->size;
	fold->nr = folded(to, &called);
}

static enum muster_coll carrier(const struct muster_call *call)
{
	if (call->coll == MUSTER_COLL_REDUCE)
		return MUSTER_COLL_GATHER;
	if (call->coll == MUSTER_COLL_REDUCE_SCATTER)
		return MUSTER_COLL_ALLTOALL;
	return MUSTER_COLL_ALLGATHER;
}

static int buffers_check(struct muster_comm *comm, const struct muster_call *call,
			 const struct muster_fold *fold, const void *in, const void *out)
{
	int err = muster_buffer_check(comm, call, "in", in, call->bytes);

	if (!err && fold->nr)
		err = muster_buffer_check(comm, call, "out", out, fold->bytes);
	if (!err && fold->nr)
		err = muster_overlap_check(comm, call, in, call->bytes, out, fold->bytes);
	return err;
}

/* What comes is this rank's block of everybody. */
static void blocks_come(struct muster_comm *comm, uint64_t count)
{
	struct muster_block *blocks = muster_blocks_room(comm) + comm->size;

	for (uint32_t i = 0; i < comm->size; i++)
		blocks[i] = (struct muster_block){ .first = i * count, .nr = count };
	comm->cut->out = blocks;
}

/* fold: of its result, and how many elements that has. */
static int begin(struct muster_comm *comm, struct muster_call *call, const struct muster_fold *fold,
		 const void *in, void *out, struct muster_request **request)
{
	struct muster_call carried = {
		.coll = carrier(call), .as = muster_call_coll(call), .type = call->type,
		.root = call->root, .anew = call->anew, .cut = call->cut,
	};
	bool by_block = carried.coll == MUSTER_COLL_ALLTOALL;
	struct muster_aside *aside;
	uint64_t room;

	if (__builtin_mul_overflow(fold->bytes, comm->size, &room) || room > PTRDIFF_MAX)
		return muster_fail(comm->job, -EOVERFLOW, "%s: contributions of %u ranks are more than memory can hold",
				   muster_coll_name(muster_call_coll(call)), comm->size);
	carried.count = by_block ? call->count : call->count * comm->size;
	carried.bytes = by_block ? call->bytes : room;
	if (carried.cut)
		blocks_come(comm, fold->count);
	aside = muster_aside_new(comm, carried.coll == MUSTER_COLL_GATHER && !fold->nr ? 0 : room, 0);
	if (!aside)
		return -ENOMEM;
	aside->fold = *fold;
	aside->fold.to = out;
	return muster_parts_begin(comm, &carried, in, aside->memory, aside, request);
}

int muster_user_start(struct muster_comm *comm, const struct muster_call *called, const void *in, void *out,
		      const uint64_t *counts, struct muster_request **request)
{
	struct muster_call call = *called;
	struct muster_fold fold = { 0 };
	uint64_t mine = call.count;
	int err = call.as ? muster_counts_cut(comm, &call, counts) : 0;

	if (err)
		return err;
	if (call.as) {
		mine = counts[comm->rank];
	} else if (call.coll == MUSTER_COLL_REDUCE_SCATTER &&
		   __builtin_mul_overflow(call.count, comm->size, &call.count)) {
		call.count = UINT64_MAX;
	}
	err = check(comm, &call, &fold.op);
	if (err)
		return err;
	fold.nr = folded(comm, &call);
	fold.count = mine;
	fold.bytes = mine * muster_dtype_size((uint8_t)call.type);
	err = buffers_check(comm, &call, &fold, in, out);
	if (err)
		return err;
	return call.op == MUSTER_SUM_EXACT ? muster_exact_begin(comm, &call, &fold, in, out, request) :
					     begin(comm, &call, &fold, in, out, request);
}
