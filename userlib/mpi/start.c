// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * MPI's calls as the library's: a row for each collective. Reductions go as what they are. All
 * else moves bytes: what MPI promises to be equal on two ranks is how many, never count or type.
 * Buffers that a rank does not need are not looked at.
 */
#include "shim.h"

#include <errno.h>
#include <stdlib.h>

/* What a row gets: the call, the operation that it makes of it, and what was found of both. */
struct start {
	struct muster_mpi_op *op;
	const struct muster_mpi_call *call;
	struct muster_comm *comm;
	struct muster_mpi_reduction reduction;
	uint32_t rank;
	uint32_t size;
	bool is_root;
	bool in_place;
};

/* Arguments that the MPI library is to refuse. */
enum { INVALID = 1 };

static int found(int err)
{
	return err == -EINVAL ? INVALID : err;
}

/* Its block of this rank's, where one side has a block of each rank and the other one's own. */
static const char *own_block(const struct start *start, const struct muster_mpi_side *side, bool has_all)
{
	return !has_all ? side->low : side->displs ? side->at + side->displs[start->rank] :
						     side->low + side->bytes * start->rank;
}

static int separate(struct start *start, bool in_has_all, bool out_has_all)
{
	struct muster_mpi_side *in = &start->op->in, *out = &start->op->out;

	return found(muster_mpi_sides_part(in, own_block(start, in, in_has_all), out,
					   own_block(start, out, out_has_all)));
}

static int in_even(struct start *start, uint32_t blocks)
{
	const struct muster_mpi_call *call = start->call;

	return found(muster_mpi_side_even(&start->op->in, call->in, call->in_count, call->in_type,
					  blocks));
}

static int out_even(struct start *start, uint32_t blocks)
{
	const struct muster_mpi_call *call = start->call;

	start->op->unpack = true;
	return found(muster_mpi_side_even(&start->op->out, call->out, call->out_count,
					  call->out_type, blocks));
}

static int in_uneven(struct start *start)
{
	const struct muster_mpi_blocks blocks = muster_mpi_blocks_in(start->call, NULL);

	return found(muster_mpi_side_uneven(&start->op->in, start->call->in, &blocks, start->size));
}

static int out_uneven(struct start *start)
{
	const struct muster_mpi_blocks blocks = muster_mpi_blocks_out(start->call, NULL);

	start->op->unpack = true;
	return found(muster_mpi_side_uneven(&start->op->out, start->call->out, &blocks,
					    start->size));
}

/* In place the input is in out: this rank's own block of it, or all. */
enum own { OWN_BLOCK, OWN_ALL };

static int pack(struct start *start, enum own own, const void **in)
{
	struct muster_mpi_op *op = start->op;
	int err;

	if (start->in_place) {
		*in = op->out.at;
		return own == OWN_ALL ? muster_mpi_side_pack(&op->out) :
					muster_mpi_side_pack_block(&op->out, start->rank);
	}
	err = separate(start, false, own == OWN_BLOCK);
	*in = op->in.at;
	return err ? err : muster_mpi_side_pack(&op->in);
}

/* Who has it gets a block of each rank; the input is one's own. */
static int gathered(struct start *start, bool has_out, bool uneven, const void **in)
{
	int err = !has_out ? 0 : uneven ? out_uneven(start) : out_even(start, start->size);

	if (!err && !start->in_place)
		err = in_even(start, 1);
	return err ? err : pack(start, OWN_BLOCK, in);
}

/* The root has a block for each rank. */
static int scattered(struct start *start, bool uneven)
{
	int err = !start->is_root ? 0 : uneven ? in_uneven(start) : in_even(start, start->size);

	if (!err && !start->in_place)
		err = out_even(start, 1);
	if (!err)
		err = separate(start, true, false);
	return err ? err : muster_mpi_side_pack(&start->op->in);
}

/* A block of each rank for each. */
static int transposed(struct start *start, bool uneven, const void **in)
{
	int err = uneven ? out_uneven(start) : out_even(start, start->size);

	if (!err && !start->in_place)
		err = uneven ? in_uneven(start) : in_even(start, start->size);
	return err ? err : pack(start, OWN_ALL, in);
}

/* ---- barrier and broadcast ------------------------------------------------------------------- */

static int barrier(struct start *start)
{
	return MUSTER_MPI_LOCKED(muster_barrier_start(start->comm, &start->op->request));
}

static int broadcast(struct start *start)
{
	struct muster_mpi_side *out = &start->op->out;
	int err = out_even(start, 1);

	if (!err && start->is_root)
		err = muster_mpi_side_pack(out);
	start->op->unpack = !start->is_root;
	return err ? err : MUSTER_MPI_LOCKED(muster_broadcast_start(start->comm, out->at, out->bytes, MUSTER_U8,
						  (uint32_t)start->call->root, &start->op->request));
}

/* ---- reductions --------------------------------------------------------------------------------- */

/* How many elements the buffers have; out: whether it is needed here. */
static int reduction(struct start *start, int64_t in_count, int64_t out_count, bool out,
		     const void **in)
{
	const struct muster_mpi_call *call = start->call;
	struct muster_mpi_op *op = start->op;
	uint64_t bytes = start->reduction.bytes;
	int err = 0;

	if (out)
		err = muster_mpi_side_plain(&op->out, call->out, bytes * (uint64_t)out_count);
	if (!err && !start->in_place)
		err = muster_mpi_side_plain(&op->in, call->in, bytes * (uint64_t)in_count);
	return err ? found(err) : pack(start, OWN_ALL, in);
}

static int reduce(struct start *start)
{
	const struct muster_mpi_call *call = start->call;
	const void *in;
	int err = reduction(start, call->out_count, call->out_count, start->is_root, &in);

	return err ? err : MUSTER_MPI_LOCKED(muster_reduce_start(start->comm, in, call->out, (uint64_t)call->out_count,
					       start->reduction.type, start->reduction.op,
					       (uint32_t)call->root, &start->op->request));
}

static int allreduce(struct start *start)
{
	const struct muster_mpi_call *call = start->call;
	const void *in;
	int err = reduction(start, call->out_count, call->out_count, true, &in);

	return err ? err : MUSTER_MPI_LOCKED(muster_allreduce_start(start->comm, in, call->out,
						  (uint64_t)call->out_count, start->reduction.type,
						  start->reduction.op, &start->op->request));
}

/* Nobody is before rank 0. */
static int scan(struct start *start)
{
	const struct muster_mpi_call *call = start->call;
	bool gets = call->coll == COLL_Scan || start->rank || start->in_place;
	const void *in;
	int err = reduction(start, call->out_count, call->out_count, gets, &in);

	if (err)
		return err;
	return MUSTER_MPI_LOCKED((call->coll == COLL_Scan ? muster_scan_start : muster_exscan_start)(
		start->comm, in, call->out, (uint64_t)call->out_count, start->reduction.type,
		start->reduction.op, &start->op->request));
}

static int reduce_scatter_block(struct start *start)
{
	const struct muster_mpi_call *call = start->call;
	const void *in;
	int err = reduction(start, (int64_t)start->size * call->out_count, call->out_count, true,
			    &in);

	return err ? err : MUSTER_MPI_LOCKED(muster_reduce_scatter_block_start(start->comm, in, call->out,
							     (uint64_t)call->out_count,
							     start->reduction.type,
							     start->reduction.op,
							     &start->op->request));
}

static int reduce_scatter(struct start *start)
{
	const struct muster_mpi_call *call = start->call;
	uint64_t counts[start->size];
	const void *in;
	int64_t sum = 0;
	int err;

	if (!call->out_counts)
		return INVALID;
	for (uint32_t r = 0; r < start->size; r++) {
		if (call->out_counts[r] < 0)
			return INVALID;
		counts[r] = (uint64_t)call->out_counts[r];
		sum += call->out_counts[r];
	}
	err = reduction(start, sum, call->out_counts[start->rank], true, &in);
	return err ? err : MUSTER_MPI_LOCKED(muster_reduce_scatter_start(start->comm, in, call->out, counts,
						       start->reduction.type, start->reduction.op,
						       &start->op->request));
}

/* ---- blocks of one length ------------------------------------------------------------------------ */

static int gather(struct start *start)
{
	struct muster_mpi_op *op = start->op;
	const void *in;
	int err = gathered(start, start->is_root, false, &in);

	return err ? err : MUSTER_MPI_LOCKED(muster_gather_start(start->comm, in, op->out.at,
					       start->is_root ? op->out.bytes : op->in.bytes,
					       MUSTER_U8, (uint32_t)start->call->root, &op->request));
}

/* In place the root's own block stays where it is, which may be memory that cannot be written. */
static int scatter(struct start *start)
{
	struct muster_mpi_op *op = start->op;
	int err = scattered(start, false);

	if (!err && start->in_place)
		err = muster_mpi_side_unread(&op->out, op->in.bytes);
	return err ? err : MUSTER_MPI_LOCKED(muster_scatter_start(start->comm, op->in.at, op->out.at,
						start->is_root ? op->in.bytes : op->out.bytes,
						MUSTER_U8, (uint32_t)start->call->root, &op->request));
}

static int allgather(struct start *start)
{
	struct muster_mpi_op *op = start->op;
	const void *in;
	int err = gathered(start, true, false, &in);

	return err ? err : MUSTER_MPI_LOCKED(muster_allgather_start(start->comm, in, op->out.at, op->out.bytes,
						  MUSTER_U8, &op->request));
}

static int alltoall(struct start *start)
{
	struct muster_mpi_op *op = start->op;
	const void *in;
	int err = transposed(start, false, &in);

	return err ? err : MUSTER_MPI_LOCKED(muster_alltoall_start(start->comm, in, op->out.at, op->out.bytes,
						 MUSTER_U8, &op->request));
}

/* ---- blocks of many lengths ------------------------------------------------------------------------ */

static int allgatherv(struct start *start)
{
	struct muster_mpi_op *op = start->op;
	const void *in;
	int err = gathered(start, true, true, &in);

	return err ? err : MUSTER_MPI_LOCKED(muster_allgatherv_start(start->comm, in, op->out.at, op->out.counts,
						   op->out.displs, MUSTER_U8, &op->request));
}

static int gatherv(struct start *start)
{
	struct muster_mpi_op *op = start->op;
	const void *in;
	int err = gathered(start, start->is_root, true, &in);

	return err ? err : MUSTER_MPI_LOCKED(muster_gatherv_start(start->comm, in,
						start->in_place ? op->out.counts[start->rank] :
								  op->in.bytes,
						op->out.at, op->out.counts, op->out.displs,
						MUSTER_U8, (uint32_t)start->call->root, &op->request));
}

/* In place the root has nothing for itself. */
static int scatterv(struct start *start)
{
	struct muster_mpi_op *op = start->op;
	int err = scattered(start, true);

	if (!err && start->in_place)
		op->in.counts[start->rank] = 0;
	return err ? err : MUSTER_MPI_LOCKED(muster_scatterv_start(start->comm, op->in.at, op->in.counts,
						 op->in.displs, op->out.at, op->out.bytes,
						 MUSTER_U8, (uint32_t)start->call->root, &op->request));
}

static int alltoallv(struct start *start)
{
	struct muster_mpi_op *op = start->op;
	const void *in;
	int err = transposed(start, true, &in);
	void *out = op->out.at;

	/* One of them is empty, then; the same address twice says to the library: in place. */
	if (!err && !start->in_place && in == out && op->in.bytes)
		out = op->out.counts;
	else if (!err && !start->in_place && in == out)
		in = op->in.counts;
	return err ? err : MUSTER_MPI_LOCKED(muster_alltoallv_start(start->comm, in, op->in.counts, op->in.displs,
						  out, op->out.counts, op->out.displs,
						  MUSTER_U8, &op->request));
}

static int neighbours(struct start *start)
{
	return found(muster_mpi_neighbours_start(start->op, start->call));
}

/* ---- the table ------------------------------------------------------------------------------------- */

enum kind { REDUCES = 1, HAS_ROOT = 2, OUT_IN_PLACE = 4, OF_GRAPH = 8 };

static const struct row {
	int (*start)(struct start *start);
	int kind;
} rows[COLLS] = {
	[COLL_Barrier] = { barrier, 0 },
	[COLL_Bcast] = { broadcast, HAS_ROOT },
	[COLL_Reduce] = { reduce, REDUCES | HAS_ROOT },
	[COLL_Allreduce] = { allreduce, REDUCES },
	[COLL_Gather] = { gather, HAS_ROOT },
	[COLL_Gatherv] = { gatherv, HAS_ROOT },
	[COLL_Scatter] = { scatter, HAS_ROOT | OUT_IN_PLACE },
	[COLL_Scatterv] = { scatterv, HAS_ROOT | OUT_IN_PLACE },
	[COLL_Allgather] = { allgather, 0 },
	[COLL_Allgatherv] = { allgatherv, 0 },
	[COLL_Alltoall] = { alltoall, 0 },
	[COLL_Alltoallv] = { alltoallv, 0 },
	[COLL_Alltoallw] = { alltoallv, 0 },
	[COLL_Reduce_scatter] = { reduce_scatter, REDUCES },
	[COLL_Reduce_scatter_block] = { reduce_scatter_block, REDUCES },
	[COLL_Scan] = { scan, REDUCES },
	[COLL_Exscan] = { scan, REDUCES },
	[COLL_Neighbor_allgather] = { neighbours, OF_GRAPH },
	[COLL_Neighbor_allgatherv] = { neighbours, OF_GRAPH },
	[COLL_Neighbor_alltoall] = { neighbours, OF_GRAPH },
	[COLL_Neighbor_alltoallv] = { neighbours, OF_GRAPH },
	[COLL_Neighbor_alltoallw] = { neighbours, OF_GRAPH },
};

/* MPICH looks even of an exclusive scan's rank 0, which gets nothing, and so has not two buffers here. */
static bool is_same_for_nothing(const struct muster_mpi_call *call)
{
	return MUSTER_MPI_LOOKS && call->coll == COLL_Exscan && call->in && call->in == call->out && call->out_count;
}

/* Where MPI_IN_PLACE stands for a buffer that this rank needs, and where it must not stand. */
static int place(struct start *start, const struct row *row)
{
	const struct muster_mpi_call *call = start->call;
	bool rooted = row->kind & HAS_ROOT && call->coll != COLL_Bcast;
	bool allowed = !rooted || start->is_root;
	bool in = call->in == MPI_IN_PLACE, out = call->out == MPI_IN_PLACE;

	if (row->kind & OF_GRAPH)
		return in || out ? INVALID : 0;
	start->in_place = row->kind & OUT_IN_PLACE ? allowed && out : allowed && in;
	if (start->in_place)
		return (row->kind & OUT_IN_PLACE ? in : out) ? INVALID : 0;
	if (is_same_for_nothing(call))
		return INVALID;
	if (row->kind & OUT_IN_PLACE)
		return out || (start->is_root && in) ? INVALID : 0;
	return (call->coll != COLL_Bcast && in) || ((!rooted || start->is_root) && out) ? INVALID : 0;
}

/* Mostly it is the same again. */
static enum muster_mpi_reason find_reduction(struct start *start)
{
	const struct muster_mpi_call *call = start->call;
	struct muster_mpi_comm *comm = start->op->comm;
	enum muster_mpi_reason why;

	if (comm->last.is.type && comm->last.type == call->out_type && comm->last.op == call->op) {
		start->reduction = comm->last.is;
		return REASON_NONE;
	}
	why = muster_mpi_reduction_get(call->out_type, call->op, &start->reduction);
	if (!why && start->reduction.type) {
		comm->last.type = call->out_type;
		comm->last.op = call->op;
		comm->last.is = start->reduction;
	}
	return why;
}

enum muster_mpi_reason muster_mpi_cannot(const struct muster_mpi_call *call, const struct muster_mpi_comm *comm)
{
	int kind = rows[call->coll].kind;
	struct muster_mpi_reduction reduction;

	if (kind & REDUCES)
		return call->op == MPI_OP_NULL ? REASON_INVALID :
						 muster_mpi_reduction_get(call->out_type, call->op, &reduction);
	if (kind & OF_GRAPH && !comm->graph)
		return muster_mpi_has_topology(call->comm) ? REASON_GRAPH : REASON_INVALID;
	return REASON_NONE;
}

static int check(struct start *start, const struct row *row, enum muster_mpi_reason *why)
{
	const struct muster_mpi_call *call = start->call;

	if (row->kind & REDUCES)
		*why = call->out_count < 0 || call->op == MPI_OP_NULL ? REASON_INVALID : find_reduction(start);
	else
		*why = muster_mpi_cannot(call, start->op->comm);
	if (*why)
		return INVALID;
	*why = REASON_INVALID;
	if (row->kind & HAS_ROOT && (call->root < 0 || (uint32_t)call->root >= start->size))
		return INVALID;
	return place(start, row);
}

int muster_mpi_start(struct muster_mpi_op *op, const struct muster_mpi_call *call,
		     enum muster_mpi_reason *why)
{
	const struct row *row = &rows[call->coll];
	struct start start = {
		.op = op,
		.call = call,
		.comm = op->comm->muster,
		.rank = (uint32_t)op->comm->rank,
		.size = (uint32_t)op->comm->size,
		.is_root = row->kind & HAS_ROOT && call->root == op->comm->rank,
	};
	int err = check(&start, row, why);

	if (err)
		return err;
	if (row->kind & REDUCES && !start.reduction.type)
		return found(muster_mpi_fold_start(op, call, start.in_place));
	return row->start(&start);
}

/* Mostly it has nothing. */
static void side_end(struct muster_mpi_side *side)
{
	if (side->blocks || side->counts || side->packed)
		muster_mpi_side_free(side);
}

void muster_mpi_op_free(struct muster_mpi_op *op)
{
	side_end(&op->in);
	side_end(&op->out);
	muster_mpi_fold_free(&op->fold);
}
