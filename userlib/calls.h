/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Between a call and its request: what coll.c finds wrong with arguments, and memory that
 * parts.c and counts.c put beside the caller's buffers.
 */
#ifndef MUSTER_CALLS_H
#define MUSTER_CALLS_H

#include "exact.h"
#include "internal.h"

/* coll.c: what can be wrong with arguments; 0, or -errno with a sentence */
/** muster_comm_check() - what every start has in common; an ended one's sentence comes again. */
int muster_comm_check(struct muster_comm *comm, struct muster_request **request);
/** muster_call_check() - the same of the caller's: *comm becomes that on which it runs since a loss. */
int muster_call_check(struct muster_comm **comm, struct muster_call *call, struct muster_request **request);
/** muster_type_check() - there is the type, and memory can hold the message; sets call->bytes. */
int muster_type_check(struct muster_comm *comm, struct muster_call *call);
int muster_op_check(struct muster_comm *comm, const struct muster_call *call);
int muster_root_check(struct muster_comm *comm, const struct muster_call *call);
int muster_buffer_fail(struct muster_comm *comm, const struct muster_call *call, const char *name,
		       const void *buffer, uint64_t bytes);
static inline int muster_buffer_check(struct muster_comm *comm, const struct muster_call *call,
				      const char *name, const void *buffer, uint64_t bytes)
{
	if (!bytes || (buffer && (uintptr_t)buffer <= UINTPTR_MAX - bytes))
		return 0;
	return muster_buffer_fail(comm, call, name, buffer, bytes);
}

/** muster_overlap_check() - in and out are the same or apart. */
int muster_overlap_fail(struct muster_comm *comm, const struct muster_call *call);
static inline int muster_overlap_check(struct muster_comm *comm, const struct muster_call *call,
				       const void *in, uint64_t in_bytes, const void *out,
				       uint64_t out_bytes)
{
	uintptr_t a = (uintptr_t)in, b = (uintptr_t)out;

	if (a == b || a + in_bytes <= b || b + out_bytes <= a)
		return 0;
	return muster_overlap_fail(comm, call);
}

/** muster_apart_check() - apart. */
int muster_apart_check(struct muster_comm *comm, const struct muster_call *call, const void *in,
		       uint64_t in_bytes, const void *out, uint64_t out_bytes);

/* ---- parts.c ---------------------------------------------------------------- */

/* Bytes of the result, and where the caller wants them. */
struct muster_piece {
	void *to;
	const void *from;
	uint64_t bytes;
};

/* What becomes of contributions that were gathered (user.c). */
struct muster_fold {
	struct muster_user_op op;
	uint32_t nr;		/* of them are folded; 0: none, and nothing is copied */
	uint64_t bytes;		/* of each, one behind the other, */
	uint64_t count;		/* in elements */
	void *to;
};

/** muster_fold() - fold them there, in order, and copy the result to where it belongs. */
void muster_fold(const struct muster_fold *fold, uint8_t *memory);
/** muster_user_refit() - such a call was made on one communicator, and begins anew on another. */
void muster_user_refit(const struct muster_comm *from, const struct muster_comm *to, struct muster_call *call,
		       struct muster_fold *fold);
/**
 * muster_user_start() - a reduction by an operation of the caller's own. called: as for others,
 * with nothing of it checked. counts: of blocks, where call->as is MUSTER_COLL_REDUCE_SCATTERV.
 */
int muster_user_start(struct muster_comm *comm, const struct muster_call *called, const void *in,
		      void *out, const uint64_t *counts, struct muster_request **request);

/* ---- exact_sum.c ------------------------------------------------------------ */

/* An exact sum under way: its numbers, and the limbs that they become. */
struct muster_exact_sum {
	uint8_t type;		/* of the numbers; 0: there is no sum */
	struct muster *job;
	const uint8_t *in;
	uint64_t each;		/* numbers of a block, */
	uint32_t blocks;	/* of which in has so many */
	void *to;		/* where the result goes; NULL: this rank has none */
	struct muster_exact_span span;	/* of this rank's numbers; then of all */
	struct muster_exact plan;
	int64_t *limbs;		/* block by block; NULL: not yet */
	size_t limbs_bytes;
};

/* struct muster_call.exact: E limbs of a number of type T; that of a call which has its count. */
#define MUSTER_CALL_EXACT(limbs, type)	((limbs) << 8 | (type))
#define MUSTER_CALL_LIMBS(exact)	((exact) ? (exact) >> 8 : 1)

/** muster_exact_begin() - start one whose arguments were checked; fold says what is its result. */
int muster_exact_begin(struct muster_comm *comm, const struct muster_call *call,
		       const struct muster_fold *fold, const void *in, void *out,
		       struct muster_request **request);
/** muster_exact_look() - tell all ranks what this one's numbers span, and hear what all do. */
int muster_exact_look(struct muster_comm *comm, struct muster_exact_sum *sum,
		      struct muster_request **request);
/** muster_exact_prepare() - now that is known: make the limbs and the request's entry of it. */
int muster_exact_prepare(struct muster_request *request);
/** muster_exact_forget() - its limbs, as it will be prepared again. */
void muster_exact_forget(struct muster_exact_sum *sum);
/** muster_exact_end() - round the result, if there is one, and give the limbs back. */
void muster_exact_end(struct muster_exact_sum *sum, int result);

/* Memory of the library's own that an operation reads, or in which its result comes. */
struct muster_aside {
	uint8_t *memory;	/* or NULL */
	struct muster_piece first;	/* to be copied there at the beginning; of 0 bytes: nothing is */
	struct muster_request *lengths;	/* tells all the longest block first, or NULL; */
	uint64_t longest;		/* then here */
	struct muster_fold fold;	/* at the end */
	struct muster_exact_sum exact;
	uint32_t nr;		/* pieces to be copied from there at the end */
	struct muster_piece pieces[];
};

/** muster_aside_new() - NULL: no memory, and the communicator has ended. */
struct muster_aside *muster_aside_new(struct muster_comm *comm, uint64_t bytes, uint32_t pieces);
/** muster_aside_copy() - these bytes there now, and again whenever the operation is started. */
void *muster_aside_copy(struct muster_aside *aside, void *to, const void *from, uint64_t bytes);
void muster_aside_fill(struct muster_aside *aside);
/** muster_aside_take() - copy the result from there, if the operation succeeded. */
void muster_aside_take(struct muster_aside *aside, int result);
/** muster_aside_end() - the same, and free it. NULL: nothing. */
void muster_aside_end(struct muster_aside *aside, int result);
/** muster_aside_give() - to the request whose start has returned err, and which ends it. */
int muster_aside_give(struct muster_aside *aside, int err, struct muster_request *request);

/* ---- counts.c, lengths.c ------------------------------------------------------ */

/** muster_cut_room() - room for a call's blocks in comm->cut: at muster_blocks_room(), 2 * size. */
int muster_cut_room(struct muster_comm *comm);
struct muster_block *muster_blocks_room(struct muster_comm *comm);
int muster_too_many(struct muster_comm *comm, const struct muster_call *call);
/** muster_counts_cut() - a call's message is blocks of these lengths, one behind the other, as all ranks know. */
int muster_counts_cut(struct muster_comm *comm, struct muster_call *call, const uint64_t *counts);

/* Lengths and places of blocks, as a caller gives them. */
struct muster_lengths {
	const uint64_t *counts;
	const uint64_t *displs;		/* NULL: one behind the other */
	const enum muster_type *types;	/* of each block; displs are in bytes then. NULL: the call's */
};

/** muster_blocks_lie() - where nr blocks lie; those with elements are set, if all is right. */
int muster_blocks_lie(struct muster_comm *comm, const struct muster_call *call, const char *name,
		      uint32_t nr, const struct muster_lengths *lengths,
		      struct muster_block *blocks);

/** muster_own_check() - a and b: elements that a rank sends itself, and takes of itself. */
int muster_own_check(struct muster_comm *comm, const struct muster_call *call, uint64_t a,
		     uint64_t b);
/** muster_cut_count() - set count and bytes of a message of which a rank knows some blocks. */
void muster_cut_count(struct muster_call *call);
/** muster_cut_buffers_check() - of the caller's buffers, where blocks lie in them. */
int muster_cut_buffers_check(struct muster_comm *comm, const struct muster_call *call,
			     const void *in, const struct muster_span *has, const void *out,
			     const struct muster_span *needs);
/** muster_types_check() - there is an array of types. */
int muster_types_check(struct muster_comm *comm, enum muster_coll coll, uint32_t nr,
		       const enum muster_type *types, const char *name);

/** muster_cut_longest() - elements of the longest block that this rank knows. */
uint64_t muster_cut_longest(const struct muster_cut *cut);
/**
 * muster_lengths_begin() - start a call of which no rank knows all lengths.
 * @longest: of the elements of the blocks that this rank knows.
 * @aside: the call's to use and to free, also when it fails; NULL: none.
 */
int muster_lengths_begin(struct muster_comm *comm, struct muster_call *call, const void *in,
			 void *out, uint64_t longest, struct muster_aside *aside,
			 struct muster_request **request);

/**
 * muster_parts_begin() - start a call of which all is checked but where buffers lie.
 * @aside: the call's to use and to free, also when it fails; NULL: none.
 */
int muster_parts_begin(struct muster_comm *comm, struct muster_call *call, const void *in,
		       void *out, struct muster_aside *aside, struct muster_request **request);

#endif /* MUSTER_CALLS_H */
