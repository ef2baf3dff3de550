// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reductions that only MPI can combine: of the user's operations, and of types that Muster does
 * not have. The library moves contributions as bytes to who needs the result, and this CPU
 * combines them by MPI_Reduce_local in the order of ranks, ((0 op 1) op 2) and so on: the
 * operation need not commute, and all ranks have the same bits. It is done in a call of the
 * program's, where MPI may be called and the user's function runs on the user's thread.
 */
#include "shim.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* What of a result is whose. */
struct shares {
	uint64_t all;			/* elements that each rank contributes */
	uint64_t mine;			/* elements of the result that this rank gets */
	uint64_t *counts;		/* of each, and */
	uint64_t *displs;		/* where they begin: where that differs */
};

/* In elements; false: arguments that the MPI library is to refuse. */
static bool share(const struct muster_mpi_call *call, const struct muster_mpi_comm *comm,
		  struct shares *shares)
{
	shares->all = shares->mine = (uint64_t)call->out_count;
	if (call->coll == COLL_Reduce_scatter_block)
		shares->all *= (uint64_t)comm->size;
	if (call->coll != COLL_Reduce_scatter)
		return true;
	shares->all = 0;
	for (int r = 0; r < comm->size; r++) {
		if (!call->out_counts || call->out_counts[r] < 0)
			return false;
		shares->counts[r] = (uint64_t)call->out_counts[r];
		shares->displs[r] = shares->all;
		shares->all += shares->counts[r];
	}
	shares->mine = shares->counts[comm->rank];
	return true;
}

/* How many contributions this rank combines. */
static uint32_t contributions(const struct muster_mpi_call *call, const struct muster_mpi_comm *comm)
{
	switch (call->coll) {
	case COLL_Reduce:
		return call->root == comm->rank ? (uint32_t)comm->size : 0;
	case COLL_Scan:
		return (uint32_t)comm->rank + 1;
	case COLL_Exscan:
		return (uint32_t)comm->rank;
	default:
		return (uint32_t)comm->size;
	}
}

static int move(struct muster_mpi_op *op, const struct muster_mpi_call *call, struct shares *shares,
		uint64_t bytes)
{
	struct muster_comm *comm = op->comm->muster;
	uint32_t size = (uint32_t)op->comm->size;
	const void *in = op->in.at;
	void *to = op->fold.memory;

	if (call->coll == COLL_Reduce)
		return MUSTER_MPI_LOCKED(muster_gather_start(comm, in, to, op->in.bytes, MUSTER_U8,
							     (uint32_t)call->root, &op->request));
	if (call->coll == COLL_Reduce_scatter_block)
		return MUSTER_MPI_LOCKED(muster_alltoall_start(comm, in, to, op->fold.bytes, MUSTER_U8,
							       &op->request));
	if (call->coll == COLL_Reduce_scatter) {
		uint64_t theirs[size];

		for (uint32_t r = 0; r < size; r++) {
			shares->counts[r] *= bytes;
			shares->displs[r] *= bytes;
			theirs[r] = op->fold.bytes;
		}
		return MUSTER_MPI_LOCKED(muster_alltoallv_start(comm, in, shares->counts, shares->displs,
								to, theirs, NULL, MUSTER_U8,
								&op->request));
	}
	return MUSTER_MPI_LOCKED(muster_allgather_start(comm, in, to, op->in.bytes, MUSTER_U8,
							&op->request));
}

/* Room for what comes, whether all of it is combined here or not. */
static int room(struct muster_mpi_fold *fold, uint64_t bytes)
{
	fold->memory = malloc(bytes ? bytes : 1);
	if (fold->memory)
		return 0;
	return muster_mpi_fail(-ENOMEM, "no memory for the contributions of all ranks (%llu bytes), as MPI combines them: free some, or reduce less at once",
			       (unsigned long long)bytes);
}

int muster_mpi_fold_start(struct muster_mpi_op *op, const struct muster_mpi_call *call, bool in_place)
{
	struct muster_mpi_fold *fold = &op->fold;
	uint64_t counts[op->comm->size], displs[op->comm->size];
	struct shares shares = { .counts = counts, .displs = displs };
	uint32_t nr = contributions(call, op->comm);
	struct muster_mpi_type info;
	int err;

	if (!muster_mpi_type_get(call->out_type, &info) || !share(call, op->comm, &shares))
		return -EINVAL;
	err = muster_mpi_side_even(&op->in, in_place ? call->out : call->in, (int64_t)shares.all,
				   call->out_type, 1);
	if (!err && nr)
		err = muster_mpi_side_even(&op->out, call->out, (int64_t)shares.mine, call->out_type, 1);
	if (!err && nr && !in_place)
		err = muster_mpi_sides_part(&op->in, op->in.low, &op->out, op->out.low);
	if (!err)
		err = muster_mpi_side_pack(&op->in);
	*fold = (struct muster_mpi_fold){
		.nr = nr, .count = (int)shares.mine, .bytes = shares.mine * info.bytes,
		.type = call->out_type, .op = call->op,
	};
	op->unpack = nr > 0;
	if (!err && (nr || call->coll != COLL_Reduce))
		err = room(fold, fold->bytes * (uint64_t)op->comm->size);
	return err ? err : move(op, call, &shares, info.bytes);
}

/* ---- combining ------------------------------------------------------------------------------ */

/* to = from op to */
static int combine(const struct muster_mpi_fold *fold, const void *from, void *to)
{
	if (!PMPI_Reduce_local(from, to, fold->count, fold->type, fold->op))
		return 0;
	return muster_mpi_fail(-EINVAL, "MPI_Reduce_local refuses %d elements: see that type and operation are right",
			       fold->count);
}

/* The function wants data as the type has it: laid out in one of two copies at a time. */
static int combine_laid_out(const struct muster_mpi_fold *fold, struct muster_mpi_side *copies)
{
	int err = 0;

	for (uint32_t i = 0; i < fold->nr && !err; i++) {
		struct muster_mpi_side *own = &copies[i % 2], *before = &copies[(i + 1) % 2];

		memcpy(own->packed, fold->memory + i * fold->bytes, fold->bytes);
		err = muster_mpi_side_unpack(own);
		if (!err && i)
			err = combine(fold, before->blocks->at, own->blocks->at);
	}
	return err ? err : muster_mpi_side_pack(&copies[(fold->nr - 1) % 2]);
}

static int fold_with_gaps(const struct muster_mpi_fold *fold, char *result)
{
	struct muster_mpi_side copies[2] = { 0 };
	MPI_Aint low, extent, true_low, true_extent;
	char *memory[2] = { NULL };
	size_t bytes;
	int err = 0;

	PMPI_Type_get_extent(fold->type, &low, &extent);
	PMPI_Type_get_true_extent(fold->type, &true_low, &true_extent);
	/* Elements may go downwards in memory. */
	bytes = (size_t)true_extent + (size_t)(fold->count - 1) * (size_t)labs(extent);
	if (extent < 0)
		true_low += (fold->count - 1) * extent;
	for (int i = 0; i < 2 && !err; i++) {
		memory[i] = calloc(1, bytes);
		err = memory[i] ? muster_mpi_side_even(&copies[i], memory[i] - true_low, fold->count,
						       fold->type, 1) :
				  muster_mpi_fail(-ENOMEM, "no memory to combine elements of %zu bytes: free some, or reduce less at once",
						  bytes);
	}
	if (!err)
		err = combine_laid_out(fold, copies);
	if (!err)
		memcpy(result, copies[(fold->nr - 1) % 2].packed, fold->bytes);
	for (int i = 0; i < 2; i++) {
		muster_mpi_side_free(&copies[i]);
		free(memory[i]);
	}
	return err;
}

int muster_mpi_fold(const struct muster_mpi_fold *fold, char *result)
{
	char *at = fold->memory;
	struct muster_mpi_type info;
	int err = 0;

	if (!fold->nr || !fold->bytes)
		return 0;
	if (!muster_mpi_type_get(fold->type, &info) || !info.plain)
		return fold_with_gaps(fold, result);
	for (uint32_t i = 1; i < fold->nr && !err; i++, at += fold->bytes)
		err = combine(fold, at, at + fold->bytes);
	if (!err)
		memcpy(result, at, fold->bytes);
	return err;
}

/* ---- the end ------------------------------------------------------------------------------------ */

int muster_mpi_fold_hold(struct muster_mpi_fold *fold)
{
	if (!fold->nr)
		return 0;
	if (muster_mpi_type_hold(fold->type))
		return -ENOMEM;
	if (muster_mpi_op_hold(fold->op)) {
		muster_mpi_type_let_go(fold->type);
		return -ENOMEM;
	}
	fold->held = true;
	return 0;
}

void muster_mpi_fold_free(struct muster_mpi_fold *fold)
{
	if (fold->held) {
		muster_mpi_type_let_go(fold->type);
		muster_mpi_op_let_go(fold->op);
	}
	free(fold->memory);
}
