// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Collectives with blocks of which each has a length of its own. Where all ranks know all
 * lengths, the message of the schedule has them packed in the order of ranks: what is
 * elsewhere in the caller's buffer comes there at the end, from memory of the library's own.
 * Where they do not, each block goes straight to its rank, from and to where it lies.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arith.h"
#include "calls.h"
#include "turn.h"

/* ---- how the message is cut ------------------------------------------------------ */

/* Room for two times as many blocks as ranks, with the communicator from the first such call on. */
static int cut_room(struct muster_comm *comm)
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

static struct muster_block *blocks_room(struct muster_comm *comm)
{
	return (struct muster_block *)(comm->cut + 1);
}

static int too_many(struct muster_comm *comm, const struct muster_call *call)
{
	return muster_fail(comm->job, -EOVERFLOW, "%s: the counts are more elements than memory can hold",
			   muster_coll_name(muster_call_coll(call)));
}

/* One block behind the other. */
static int blocks_pack(struct muster_comm *comm, struct muster_call *call, const uint64_t *counts)
{
	struct muster_block *blocks = blocks_room(comm);
	struct muster_cut *cut = comm->cut;

	call->count = 0;
	for (uint32_t i = 0; i < comm->size; i++) {
		blocks[i] = (struct muster_block){ .first = call->count, .nr = counts[i] };
		cut->longest = counts[i] > cut->longest ? counts[i] : cut->longest;
		if (__builtin_add_overflow(call->count, counts[i], &call->count))
			return too_many(comm, call);
	}
	cut->in = cut->out = blocks;
	call->cut = cut;
	return 0;
}

/* What does not concern buffers. */
static int counts_check(struct muster_comm *comm, struct muster_call *call, const uint64_t *counts)
{
	int err = 0;

	if (!counts)
		return muster_fail(comm->job, -EFAULT, "%s: counts is NULL",
				   muster_coll_name(muster_call_coll(call)));
	err = cut_room(comm);
	if (!err)
		err = blocks_pack(comm, call, counts);
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
	int err = muster_comm_check(comm, request);

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
	int err = muster_comm_check(comm, request);

	if (!err && op >= MUSTER_OP_USER)
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

/* ---- blocks whose lengths not all know -------------------------------------------------- */

/* Blocks where they lie. */
static int blocks_lie(struct muster_comm *comm, struct muster_call *call, const char *name,
		      const uint64_t *counts, const uint64_t *displs, struct muster_block *blocks)
{
	uint64_t most = PTRDIFF_MAX / muster_dtype_size((uint8_t)call->type), at = 0;

	if (!counts)
		return muster_fail(comm->job, -EFAULT, "%s: %s is NULL",
				   muster_coll_name(muster_call_coll(call)), name);
	for (uint32_t i = 0; i < comm->size; i++, at += counts[i - 1]) {
		uint64_t first = displs ? displs[i] : at;

		if (counts[i] > most || (counts[i] && first > most - counts[i]))
			return too_many(comm, call);
		if (counts[i])
			blocks[i] = (struct muster_block){ .first = first, .nr = counts[i] };
	}
	return 0;
}

/* Its room, with no elements anywhere, and all that does not concern blocks. */
static int hidden_check(struct muster_comm *comm, struct muster_call *call,
			struct muster_request **request)
{
	int err = muster_comm_check(comm, request);

	if (!err)
		err = muster_type_check(comm, call);
	if (!err && muster_coll_rooted(call->coll))
		err = muster_root_check(comm, call);
	if (!err)
		err = cut_room(comm);
	if (err)
		return err;
	memset(blocks_room(comm), 0, 2 * comm->size * sizeof(struct muster_block));
	comm->cut->in = comm->cut->out = blocks_room(comm);
	call->cut = comm->cut;
	return 0;
}

/* All of the root's, or of another rank its own. */
static int rooted_blocks(struct muster_comm *comm, struct muster_call *call, uint64_t count,
			 const uint64_t *counts, const uint64_t *displs)
{
	struct muster_block *blocks = blocks_room(comm);

	if (comm->rank == call->root)
		return blocks_lie(comm, call, "counts", counts, displs, blocks);
	if (count > PTRDIFF_MAX / muster_dtype_size((uint8_t)call->type))
		return too_many(comm, call);
	blocks[comm->rank].nr = count;
	return 0;
}

/* What a rank sends itself. */
static int own_check(struct muster_comm *comm, const struct muster_call *call, uint64_t a,
		     uint64_t b)
{
	if (a == b)
		return 0;
	return muster_fail(comm->job, -EINVAL, "%s: of rank %u's block for itself there are %llu elements in in and %llu in out",
			   muster_coll_name(muster_call_coll(call)), comm->rank,
			   (unsigned long long)a, (unsigned long long)b);
}

/* Elements up to the end of the last block: the message, as far as this rank knows it. */
static void count_set(struct muster_comm *comm, struct muster_call *call)
{
	const struct muster_cut *cut = call->cut;

	call->count = 0;
	for (uint32_t i = 0; i < comm->size; i++) {
		const struct muster_block *in = &cut->in[i], *out = &cut->out[i];

		if (in->first + in->nr > call->count)
			call->count = in->first + in->nr;
		if (out->first + out->nr > call->count)
			call->count = out->first + out->nr;
	}
	call->bytes = call->count * muster_dtype_size((uint8_t)call->type);
}

uint64_t muster_cut_longest(const struct muster_cut *cut)
{
	uint64_t longest = 0;

	for (uint32_t i = 0; i < cut->nr; i++) {
		longest = cut->in[i].nr > longest ? cut->in[i].nr : longest;
		longest = cut->out[i].nr > longest ? cut->out[i].nr : longest;
	}
	return longest;
}

/* One rank: its block goes from one buffer to the other. */
static int hidden_alone(struct muster_comm *comm, struct muster_call *call, const void *in,
			void *out, struct muster_request **request)
{
	call->bytes = call->cut->out[0].nr * muster_dtype_size((uint8_t)call->type);
	return muster_request_start(comm, call, in, out, request);
}

/* in and out are where the first element of what a rank has and needs lies. */
static int hidden_begin(struct muster_comm *comm, struct muster_call *call, const void *in,
			void *out, struct muster_aside *aside, struct muster_request **request)
{
	int err;

	if (comm->size == 1) {
		err = hidden_alone(comm, call, in, out, request);
		if (err || !(*request)->persistent)
			muster_aside_end(aside, err);
		else
			(*request)->aside = aside;
		return err;
	}
	if (!aside)
		aside = muster_aside_new(comm, 0, 0);
	if (!aside)
		return -ENOMEM;
	aside->longest = muster_cut_longest(call->cut);
	err = muster_request_start_lengths(comm, call, in, out, aside, request);
	if (err)
		muster_aside_end(aside, err);
	return err;
}

static int hidden_buffers_check(struct muster_comm *comm, const struct muster_call *call,
				const void *in, const struct muster_span *has, const void *out,
				const struct muster_span *needs)
{
	int err = has->bytes ? muster_buffer_check(comm, call, "in", in, has->first + has->bytes) : 0;

	if (!err && needs->bytes)
		err = muster_buffer_check(comm, call, "out", out, needs->first + needs->bytes);
	return err;
}

/* The small buffer of a root that works in place is part of its large one. */
static bool is_part(const struct muster_comm *comm, const struct muster_call *call,
		    const void *part, const void *whole)
{
	size_t at = call->cut->out[comm->rank].first * muster_dtype_size((uint8_t)call->type);

	return comm->rank == call->root && whole &&
	       (part == whole || (uintptr_t)part == (uintptr_t)whole + at);
}

/* Of gatherv and scatterv. */
static int rooted_begin(struct muster_comm *comm, struct muster_call *call, const void *in,
			void *out, uint64_t count, struct muster_request **request)
{
	bool gathers = call->coll == MUSTER_COLL_GATHER;
	bool is_in_place = gathers ? is_part(comm, call, in, out) : is_part(comm, call, out, in);
	struct muster_span has, needs, none = { 0 };
	int err = is_in_place ? 0 : own_check(comm, call, count, call->cut->out[comm->rank].nr);

	if (err)
		return err;
	count_set(comm, call);
	has = muster_call_has(comm, call);
	needs = muster_call_needs(comm, call);
	/* Blocks are given as such, and have their place in the message only. */
	err = hidden_buffers_check(comm, call, in, gathers ? &none : &has, out,
				   gathers ? &needs : &none);
	if (!err && !is_in_place)
		err = gathers ? muster_buffer_check(comm, call, "in", in, has.bytes) :
				muster_buffer_check(comm, call, "out", out, needs.bytes);
	if (err)
		return err;
	if (gathers)
		out = (uint8_t *)out + needs.first;
	else
		in = (const uint8_t *)in + has.first;
	if (is_in_place && gathers) {
		call->in_place = true;
		in = out;
	} else if (is_in_place) {	/* stays where it is */
		out = (uint8_t *)(uintptr_t)in - has.first + needs.first;
	} else if (has.bytes && needs.bytes) {
		err = muster_apart_check(comm, call, in, has.bytes, out, needs.bytes);
	}
	return err ? err : hidden_begin(comm, call, in, out, NULL, request);
}

int muster_gatherv_start(struct muster_comm *comm, const void *in, uint64_t count, void *out,
			 const uint64_t *counts, const uint64_t *displs, enum muster_type type,
			 uint32_t root, struct muster_request **request)
{
	MUSTER_TURN_OF(comm);
	struct muster_call call = {
		.coll = MUSTER_COLL_GATHER, .as = MUSTER_COLL_GATHERV, .type = type, .root = root,
		.parts = true,
	};
	int err = hidden_check(comm, &call, request);

	if (!err)
		err = rooted_blocks(comm, &call, count, counts, displs);
	return err ? err : rooted_begin(comm, &call, in, out, count, request);
}

int muster_scatterv_start(struct muster_comm *comm, const void *in, const uint64_t *counts,
			  const uint64_t *displs, void *out, uint64_t count,
			  enum muster_type type, uint32_t root, struct muster_request **request)
{
	MUSTER_TURN_OF(comm);
	struct muster_call call = {
		.coll = MUSTER_COLL_SCATTER, .as = MUSTER_COLL_SCATTERV, .type = type,
		.root = root, .parts = true,
	};
	int err = hidden_check(comm, &call, request);

	if (!err)
		err = rooted_blocks(comm, &call, count, counts, displs);
	return err ? err : rooted_begin(comm, &call, in, out, count, request);
}

/* In place it sends from a copy of what out holds, where that is. */
static int alltoallv_begin(struct muster_comm *comm, struct muster_call *call, const void *in,
			   void *out, struct muster_request **request)
{
	struct muster_aside *aside = NULL;
	struct muster_span has, needs;
	int err = own_check(comm, call, call->cut->in[comm->rank].nr,
			    call->cut->out[comm->rank].nr);

	if (err)
		return err;
	count_set(comm, call);
	has = muster_call_has(comm, call);
	needs = muster_call_needs(comm, call);
	err = hidden_buffers_check(comm, call, in, &has, out, &needs);
	if (err)
		return err;
	if (in == out && has.bytes) {
		aside = muster_aside_new(comm, has.bytes, 0);
		if (!aside)
			return -ENOMEM;
		in = muster_aside_copy(aside, aside->memory, (const uint8_t *)in + has.first,
				       has.bytes);
	} else {
		in = (const uint8_t *)in + has.first;
	}
	out = (uint8_t *)out + needs.first;
	if (has.bytes && needs.bytes && !aside)
		err = muster_apart_check(comm, call, in, has.bytes, out, needs.bytes);
	return err ? err : hidden_begin(comm, call, in, out, aside, request);
}

int muster_alltoallv_start(struct muster_comm *comm, const void *in, const uint64_t *in_counts,
			   const uint64_t *in_displs, void *out, const uint64_t *out_counts,
			   const uint64_t *out_displs, enum muster_type type,
			   struct muster_request **request)
{
	MUSTER_TURN_OF(comm);
	struct muster_call call = {
		.coll = MUSTER_COLL_ALLTOALL, .as = MUSTER_COLL_ALLTOALLV, .type = type,
		.parts = true,
	};
	int err = hidden_check(comm, &call, request);

	if (!err)
		err = blocks_lie(comm, &call, "out_counts", out_counts, out_displs,
				 blocks_room(comm));
	if (!err && in != out) {
		comm->cut->in = blocks_room(comm) + comm->size;
		err = blocks_lie(comm, &call, "in_counts", in_counts, in_displs,
				 blocks_room(comm) + comm->size);
	}
	return err ? err : alltoallv_begin(comm, &call, in, out, request);
}

int muster_gatherv(struct muster_comm *comm, const void *in, uint64_t count, void *out,
		   const uint64_t *counts, const uint64_t *displs, enum muster_type type,
		   uint32_t root)
{
	MUSTER_TURN_OF(comm);
	struct muster_request *request;
	int err = muster_gatherv_start(comm, in, count, out, counts, displs, type, root, &request);

	return err ? err : muster_wait(request);
}

int muster_scatterv(struct muster_comm *comm, const void *in, const uint64_t *counts,
		    const uint64_t *displs, void *out, uint64_t count, enum muster_type type,
		    uint32_t root)
{
	MUSTER_TURN_OF(comm);
	struct muster_request *request;
	int err = muster_scatterv_start(comm, in, counts, displs, out, count, type, root, &request);

	return err ? err : muster_wait(request);
}

int muster_alltoallv(struct muster_comm *comm, const void *in, const uint64_t *in_counts,
		     const uint64_t *in_displs, void *out, const uint64_t *out_counts,
		     const uint64_t *out_displs, enum muster_type type)
{
	MUSTER_TURN_OF(comm);
	struct muster_request *request;
	int err = muster_alltoallv_start(comm, in, in_counts, in_displs, out, out_counts,
					 out_displs, type, &request);

	return err ? err : muster_wait(request);
}
