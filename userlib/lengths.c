// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Collectives with blocks of which a rank knows only the lengths of those that it sends or
 * receives: each block goes straight to its rank, from and to where it lies. The longest is
 * agreed upon first (late.c), so that all ranks lower alike.
 */
#include <errno.h>
#include <string.h>

#include "arith.h"
#include "calls.h"
#include "turn.h"

/* What a block's length is a multiple of, in elements of the call; 0: there is no such type. */
static size_t unit_of(const struct muster_lengths *lengths, uint32_t block)
{
	if (!lengths->types)
		return 1;
	return lengths->types[block] <= UINT8_MAX ?
		       muster_dtype_size((uint8_t)lengths->types[block]) : 0;
}

int muster_blocks_lie(struct muster_comm *comm, const struct muster_call *call, const char *name,
		      uint32_t nr, const struct muster_lengths *lengths,
		      struct muster_block *blocks)
{
	uint64_t most = PTRDIFF_MAX / muster_dtype_size((uint8_t)call->type), at = 0;

	if (nr && !lengths->counts)
		return muster_fail(comm->job, -EFAULT, "%s: %s is NULL",
				   muster_coll_name(muster_call_coll(call)), name);
	for (uint32_t i = 0; i < nr; i++) {
		uint64_t first = lengths->displs ? lengths->displs[i] : at, len;
		size_t unit = unit_of(lengths, i);

		if (!unit)
			return muster_fail(comm->job, -EINVAL, "%s: there is no element type %u, of block %u",
					   muster_coll_name(muster_call_coll(call)),
					   lengths->types[i], i);
		if (__builtin_mul_overflow(lengths->counts[i], unit, &len) || len > most ||
		    (len && first > most - len))
			return muster_too_many(comm, call);
		if (len)
			blocks[i] = (struct muster_block){ .first = first, .nr = len };
		at += len;
	}
	return 0;
}

/* Its room, with no elements anywhere, and all that does not concern blocks. */
static int hidden_check(struct muster_comm **on, struct muster_call *call,
			struct muster_request **request)
{
	int err = muster_call_check(on, call, request);
	struct muster_comm *comm = *on;

	if (!err)
		err = muster_type_check(comm, call);
	if (!err && muster_coll_rooted(call->coll))
		err = muster_root_check(comm, call);
	if (!err)
		err = muster_cut_room(comm);
	if (err)
		return err;
	memset(muster_blocks_room(comm), 0, 2 * comm->size * sizeof(struct muster_block));
	comm->cut->in = comm->cut->out = muster_blocks_room(comm);
	call->cut = comm->cut;
	return 0;
}

/* All of the root's, or of another rank its own. */
static int rooted_blocks(struct muster_comm *comm, struct muster_call *call, uint64_t count,
			 const uint64_t *counts, const uint64_t *displs)
{
	struct muster_block *blocks = muster_blocks_room(comm);

	if (comm->rank == call->root)
		return muster_blocks_lie(comm, call, "counts", comm->size,
					 &(struct muster_lengths){ counts, displs, NULL }, blocks);
	if (count > PTRDIFF_MAX / muster_dtype_size((uint8_t)call->type))
		return muster_too_many(comm, call);
	blocks[comm->rank].nr = count;
	return 0;
}

/* What a rank sends itself. */
int muster_own_check(struct muster_comm *comm, const struct muster_call *call, uint64_t a,
		     uint64_t b)
{
	if (a == b)
		return 0;
	return muster_fail(comm->job, -EINVAL, "%s: of rank %u's block for itself there are %llu elements in in and %llu in out",
			   muster_coll_name(muster_call_coll(call)), comm->rank,
			   (unsigned long long)a, (unsigned long long)b);
}

/* Elements up to the end of the last block: the message, as far as this rank knows it. */
void muster_cut_count(struct muster_call *call)
{
	const struct muster_cut *cut = call->cut;

	call->count = 0;
	for (uint32_t i = 0; i < cut->nr; i++) {
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

int muster_lengths_begin(struct muster_comm *comm, struct muster_call *call, const void *in,
			 void *out, uint64_t longest, struct muster_aside *aside,
			 struct muster_request **request)
{
	int err;

	if (!aside)
		aside = muster_aside_new(comm, 0, 0);
	if (!aside)
		return -ENOMEM;
	aside->longest = longest;
	err = muster_request_start_lengths(comm, call, in, out, aside, request);
	if (err)
		muster_aside_end(aside, err);
	return err;
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

	if (comm->size > 1)
		return muster_lengths_begin(comm, call, in, out, muster_cut_longest(call->cut),
					    aside, request);
	err = hidden_alone(comm, call, in, out, request);
	return muster_aside_give(aside, err, err ? NULL : *request);
}

int muster_cut_buffers_check(struct muster_comm *comm, const struct muster_call *call,
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
	int err = is_in_place ? 0 : muster_own_check(comm, call, count, call->cut->out[comm->rank].nr);

	if (err)
		return err;
	muster_cut_count(call);
	has = muster_call_has(comm, call);
	needs = muster_call_needs(comm, call);
	/* Blocks are given as such, and have their place in the message only. */
	err = muster_cut_buffers_check(comm, call, in, gathers ? &none : &has, out,
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
	int err = hidden_check(&comm, &call, request);

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
	int err = hidden_check(&comm, &call, request);

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
	int err = muster_own_check(comm, call, call->cut->in[comm->rank].nr,
			    call->cut->out[comm->rank].nr);

	if (err)
		return err;
	muster_cut_count(call);
	has = muster_call_has(comm, call);
	needs = muster_call_needs(comm, call);
	err = muster_cut_buffers_check(comm, call, in, &has, out, &needs);
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

static int alltoall_start(struct muster_comm *comm, struct muster_call call, const void *in,
			  const struct muster_lengths *ins, void *out,
			  const struct muster_lengths *outs, struct muster_request **request)
{
	int err = hidden_check(&comm, &call, request);

	if (!err)
		err = muster_blocks_lie(comm, &call, "out_counts", comm->size, outs,
					muster_blocks_room(comm));
	if (!err && in != out) {
		comm->cut->in = muster_blocks_room(comm) + comm->size;
		err = muster_blocks_lie(comm, &call, "in_counts", comm->size, ins,
					muster_blocks_room(comm) + comm->size);
	}
	return err ? err : alltoallv_begin(comm, &call, in, out, request);
}

int muster_alltoallv_start(struct muster_comm *comm, const void *in, const uint64_t *in_counts,
			   const uint64_t *in_displs, void *out, const uint64_t *out_counts,
			   const uint64_t *out_displs, enum muster_type type,
			   struct muster_request **request)
{
	MUSTER_TURN_OF(comm);
	const struct muster_lengths ins = { in_counts, in_displs, NULL };
	const struct muster_lengths outs = { out_counts, out_displs, NULL };

	return alltoall_start(comm, (struct muster_call){ .coll = MUSTER_COLL_ALLTOALL,
							  .as = MUSTER_COLL_ALLTOALLV, .type = type,
							  .parts = true },
			      in, &ins, out, &outs, request);
}

int muster_types_check(struct muster_comm *comm, enum muster_coll coll, uint32_t nr,
		       const enum muster_type *types, const char *name)
{
	if (types || !nr)
		return 0;
	return muster_fail(comm->job, -EFAULT, "%s: %s is NULL", muster_coll_name(coll), name);
}

/* Types say how many bytes blocks have, and it is these that go. */
int muster_alltoallw_start(struct muster_comm *comm, const void *in, const uint64_t *in_counts,
			   const uint64_t *in_displs, const enum muster_type *in_types, void *out,
			   const uint64_t *out_counts, const uint64_t *out_displs,
			   const enum muster_type *out_types, struct muster_request **request)
{
	MUSTER_TURN_OF(comm);
	const struct muster_lengths ins = { in_counts, in_displs, in_types };
	const struct muster_lengths outs = { out_counts, out_displs, out_types };
	struct muster_call call = {
		.coll = MUSTER_COLL_ALLTOALL, .as = MUSTER_COLL_ALLTOALLW, .type = MUSTER_U8, .parts = true,
	};
	int err = muster_call_check(&comm, &call, request);

	if (!err)
		err = muster_types_check(comm, call.as, comm->size, out_types, "out_types");
	if (!err && in != out)
		err = muster_types_check(comm, call.as, comm->size, in_types, "in_types");
	return err ? err : alltoall_start(comm, call, in, &ins, out, &outs, request);
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

int muster_alltoallw(struct muster_comm *comm, const void *in, const uint64_t *in_counts,
		     const uint64_t *in_displs, const enum muster_type *in_types, void *out,
		     const uint64_t *out_counts, const uint64_t *out_displs,
		     const enum muster_type *out_types)
{
	MUSTER_TURN_OF(comm);
	struct muster_request *request;
	int err = muster_alltoallw_start(comm, in, in_counts, in_displs, in_types, out, out_counts,
					 out_displs, out_types, &request);

	return err ? err : muster_wait(request);
}
