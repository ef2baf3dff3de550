// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Collectives with blocks of which each has a length of its own. Where all ranks know all
 * lengths, the message of the schedule has them packed in the order of ranks: what is
 * elsewhere in the caller's buffer comes there at the end, from memory of the library's own.
 * Where they do not: lengths.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arith.h"
#include "calls.h"
#include "turn.h"

/* ---- how the message is cut ------------------------------------------------------ */

/* Room for two times as many blocks as ranks, with the communicator from the first such call on. */
int muster_cut_room(struct muster_comm *comm)
{
	size_t bytes = 2 * comm->size * sizeof(struct muster_block);

	if (!comm->cut)
		comm->cut = malloc(sizeof(*comm->cut) + bytes);
	if (!comm->cut)
		return muster_comm_give_up(comm, muster_fail(comm->job, -ENOMEM, "no memory for %u blocks",
							     comm->size));
	*comm->cut = (struct muster_cut){ .nr = comm->size };
	return 0;
}

struct muster_block *muster_blocks_room(struct muster_comm *comm)
{
	return (struct muster_block *)(comm->cut + 1);
}

int muster_too_many(struct muster_comm *comm, const struct muster_call *call)
{
	return muster_fail(comm->job, -EOVERFLOW, "%s: the counts are more elements than memory can hold",
			   muster_coll_name(muster_call_coll(call)));
}

/* One block behind the other. */
static int blocks_pack(struct muster_comm *comm, struct muster_call *call, const uint64_t *counts)
{
	struct muster_block *blocks = muster_blocks_room(comm);
	struct muster_cut *cut = comm->cut;

	call->count = 0;
	for (uint32_t i = 0; i < comm->size; i++) {
		blocks[i] = (struct muster_block){ .first = call->count, .nr = counts[i] };
		cut->longest = counts[i] > cut->longest ? counts[i] : cut->longest;
		if (__builtin_add_overflow(call->count, counts[i], &call->count))
			return muster_too_many(comm, call);
	}
	cut->in = cut->out = blocks;
	call->cut = cut;
	return 0;
}

int muster_counts_cut(struct muster_comm *comm, struct muster_call *call, const uint64_t *counts)
{
	int err;

	if (!counts)
		return muster_fail(comm->job, -EFAULT, "%s: counts is NULL",
				   muster_coll_name(muster_call_coll(call)));
	err = muster_cut_room(comm);
	return err ? err : blocks_pack(comm, call, counts);
}

/* What does not concern buffers. */
static int counts_check(struct muster_comm *comm, struct muster_call *call, const uint64_t *counts)
{
	int err = muster_counts_cut(comm, call, counts);

	if (!err)
		err = muster_type_check(comm, call);
	if (!err && muster_coll_row(call->coll)->combines)
		err = muster_op_check(comm, call);
	return err;
}

/* ---- where blocks lie in the caller's buffer ---------------------------------------- */

/* The caller's places for blocks, from those with elements; bytes. */
struct places {
	const uint64_t *displs;		/* NULL: packed */
	uint64_t first;
	uint64_t end;
	bool packed;			/* in the order of ranks, from first on */
};

static int places_look(struct muster_comm *comm, const struct muster_call *call,
		       const uint64_t *displs, struct places *places)
{
	size_t size = muster_dtype_size((uint8_t)call->type);
	uint64_t first = UINT64_MAX, end = 0;

	*places = (struct places){ .displs = displs, .end = call->bytes, .packed = true };
	for (uint32_t i = 0; displs && i < comm->size; i++) {
		const struct muster_block *block = &call->cut->out[i];

		if (!block->nr)
			continue;
		if (displs[i] > PTRDIFF_MAX / size - block->nr)
			return muster_fail(comm->job, -EOVERFLOW, "%s: block %u ends further from its buffer than memory can hold",
					   muster_coll_name(muster_call_coll(call)), i);
		first = displs[i] < first ? displs[i] : first;
		end = displs[i] + block->nr > end ? displs[i] + block->nr : end;
		places->packed &= displs[i] - block->first == first;
	}
	if (!displs || !end)
		return 0;
	places->first = first * size;
	places->end = end * size;
	return 0;
}

/* The result comes packed into memory of the library's own, and from there to its places. */
static struct muster_aside *spread(struct muster_comm *comm, const struct muster_call *call,
				   const struct places *places, void *out)
{
	size_t size = muster_dtype_size((uint8_t)call->type);
	struct muster_aside *aside = muster_aside_new(comm, call->bytes, comm->size);

	for (uint32_t i = 0; aside && i < comm->size; i++) {
		const struct muster_block *block = &call->cut->out[i];

		if (block->nr)
			aside->pieces[aside->nr++] = (struct muster_piece){
				.to = (uint8_t *)out + places->displs[i] * size,
				.from = aside->memory + block->first * size,
				.bytes = block->nr * size,
			};
	}
	return aside;
}

/* ---- allgatherv --------------------------------------------------------------------- */

/* Whether in is its block's place in out, or out itself. */
static bool is_in_place(const struct muster_comm *comm, const struct muster_call *call,
			const struct places *places, const void *in, const void *out)
{
	size_t size = muster_dtype_size((uint8_t)call->type);
	uint64_t at = places->displs ? places->displs[comm->rank] : call->cut->out[comm->rank].first;

	return call->cut->out[comm->rank].nr && out &&
	       (in == out || in == (const uint8_t *)out + at * size);
}

static int allgatherv(struct muster_comm *comm, struct muster_call *call,
		      const struct places *places, const void *in, void *out,
		      struct muster_request **request)
{
	struct muster_span own = muster_call_has(comm, call);
	bool in_place = is_in_place(comm, call, places, in, out);
	uint8_t *first = (uint8_t *)out + places->first;
	struct muster_aside *aside;
	int err = muster_buffer_check(comm, call, "out", out, places->end);

	if (!err)
		err = muster_buffer_check(comm, call, "in", in, own.bytes);
	if (!err && !in_place && own.bytes)
		err = muster_apart_check(comm, call, in, own.bytes, first,
					 places->end - places->first);
	if (err)
		return err;
	if (places->packed)
		return muster_parts_begin(comm, call, in_place ? first : in, first, NULL, request);
	aside = spread(comm, call, places, out);
	if (!aside)
		return -ENOMEM;
	if (in_place) {
		in = (uint8_t *)out + places->displs[comm->rank] * muster_dtype_size((uint8_t)call->type);
		in = muster_aside_copy(aside, aside->memory + own.first, in, own.bytes);
	}
	return muster_parts_begin(comm, call, in, aside->memory, aside, request);
}

int muster_allgatherv_start(struct muster_comm *comm, const void *in, void *out,
			    const uint64_t *counts, const uint64_t *displs, enum muster_type type,
			    struct muster_request **request)
{
	MUSTER_TURN_OF(comm);
	struct muster_call call = {
		.coll = MUSTER_COLL_ALLGATHER, .as = MUSTER_COLL_ALLGATHERV, .type = type,
		.parts = true,
	};
	struct places places;
	int err = muster_call_check(&comm, &call, request);

	if (!err)
		err = counts_check(comm, &call, counts);
	if (!err)
		err = places_look(comm, &call, displs, &places);
	return err ? err : allgatherv(comm, &call, &places, in, out, request);
}

int muster_allgatherv(struct muster_comm *comm, const void *in, void *out, const uint64_t *counts,
		      const uint64_t *displs, enum muster_type type)
{
	MUSTER_TURN_OF(comm);
	struct muster_request *request;
	int err = muster_allgatherv_start(comm, in, out, counts, displs, type, &request);

	return err ? err : muster_wait(request);
}

/* ---- reduce_scatter ----------------------------------------------------------------- */

/* The beginning of in is other ranks' blocks, which are read while the result comes. */
static int reduce_scatter(struct muster_comm *comm, struct muster_call *call, const void *in,
			  void *out, struct muster_request **request)
{
	struct muster_span own = muster_call_needs(comm, call);
	struct muster_aside *aside;

	if (in != out || !own.first || !own.bytes)
		return muster_parts_begin(comm, call, in, out, NULL, request);
	aside = muster_aside_new(comm, own.bytes, 1);
	if (!aside)
		return -ENOMEM;
	aside->pieces[aside->nr++] = (struct muster_piece){
		.to = out, .from = aside->memory, .bytes = own.bytes,
	};
	return muster_parts_begin(comm, call, in, aside->memory, aside, request);
}

int muster_reduce_scatter_start(struct muster_comm *comm, const void *in, void *out,
				const uint64_t *counts, enum muster_type type, enum muster_op op,
				struct muster_request **request)
{
	MUSTER_TURN_OF(comm);
	struct muster_call call = {
		.coll = MUSTER_COLL_REDUCE_SCATTER, .as = MUSTER_COLL_REDUCE_SCATTERV,
		.type = type, .op = op, .parts = true,
	};
	int err = muster_call_check(&comm, &call, request);

	if (!err && op >= MUSTER_SUM_EXACT)
		return muster_user_start(comm, &call, in, out, counts, request);
	if (!err)
		err = counts_check(comm, &call, counts);
	return err ? err : reduce_scatter(comm, &call, in, out, request);
}

int muster_reduce_scatter(struct muster_comm *comm, const void *in, void *out,
			  const uint64_t *counts, enum muster_type type, enum muster_op op)
{
	MUSTER_TURN_OF(comm);
	struct muster_request *request;
	int err = muster_reduce_scatter_start(comm, in, out, counts, type, op, &request);

	return err ? err : muster_wait(request);
}
