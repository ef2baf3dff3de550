/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What is called, and what was made of it: schedules, and programs and plans of them, which a
 * communicator keeps (cache.c). Part of internal.h.
 */
#ifndef MUSTER_CACHE_H
#define MUSTER_CACHE_H

#include "muster.h"
#include "schedule.h"

enum { MUSTER_WHY_MAX = 192 };	/* bytes of why something does not go */

struct muster_comm;
struct muster_kept;
struct muster_path_row;

struct muster_call {
	enum muster_coll coll;	/* whose schedules serve it */
	uint32_t type;
	uint32_t op;
	uint32_t root;
	uint64_t count;		/* of the whole message */
	uint64_t whole;		/* elements of that of which it is a rail's part; 0: of none */
	enum muster_coll as;	/* what was called; 0: coll */
	bool in_place;
	bool parts;		/* buffers hold no more of the message than the rank has and needs */
	bool off_tree;		/* another job has it locked */
	bool own;		/* the library's: the NIC need not be able to, and nobody asks for it last */
	bool anew;		/* the caller's, and begun anew after a loss (restart.c) */
	uint64_t bytes;
	const struct muster_cut *cut;	/* NULL: evenly */
	uint32_t exact;		/* limbs of a number and its type (calls.h); 0: no exact sum */
};

/** muster_call_coll() - what was called, to name it; and so it is in the signature. */
static inline enum muster_coll muster_call_coll(const struct muster_call *call)
{
	return call->as ? call->as : call->coll;
}

/* Bytes [first, first + bytes) of the message. */
struct muster_span {
	uint64_t first;
	uint64_t bytes;
};

/* parts.c */
/** muster_call_hides() - whether not all ranks know the lengths of all blocks. */
static inline bool muster_call_hides(const struct muster_call *call)
{
	return call->cut && call->as >= MUSTER_COLL_GATHERV;
}

/** muster_call_has() - what in holds of the message. */
struct muster_span muster_call_has(const struct muster_comm *comm, const struct muster_call *call);
/** muster_call_needs() - what out is to hold of it. */
struct muster_span muster_call_needs(const struct muster_comm *comm,
				     const struct muster_call *call);

/** muster_cuts_same() - of calls that are kept: in and out are cut the same way. */
bool muster_cuts_same(const struct muster_cut *a, const struct muster_cut *b);

/** muster_call_alike() - same, but for how the message is cut. */
static inline bool muster_call_alike(const struct muster_call *a, const struct muster_call *b)
{
	return a->count == b->count && a->coll == b->coll && a->type == b->type &&
	       a->op == b->op && a->root == b->root && a->as == b->as &&
	       a->in_place == b->in_place && a->own == b->own && a->exact == b->exact &&
	       a->off_tree == b->off_tree && a->whole == b->whole;
}

static inline bool muster_call_same(const struct muster_call *a, const struct muster_call *b)
{
	return muster_call_alike(a, b) && (a->cut == b->cut || muster_cuts_same(a->cut, b->cut));
}

struct muster_entry {
	struct muster_call call;
	bool plain;			/* collective, type, operation and count say all of it */
	struct muster_signature signature;
	struct muster_span has;		/* of the message, in the caller's buffers */
	struct muster_span needs;
	bool passes;			/* what is in memory goes through the communicator's scratch */
	bool gets_result;		/* the caller's out is written */
	uint32_t refs;			/* requests that use it */
	bool cached;			/* else freed with the last of them */
	uint64_t used;			/* the communicator's clock at the last use */
	struct muster_schedule *schedule;
	bool schedule_owned;		/* else the user's file */
	bool in_order;			/* it combines as the tree would that the call is for (order.c); or, */
	const char *no_order;		/* if that was asked for, why not; else NULL */
	struct muster_program *program;	/* NULL: not lowered, or not possible */
	struct muster_desc *bound;	/* the program with keys and addresses filled in */
	struct muster_kept *kept;	/* the program as the device keeps it; NULL: it does not */
	bool posted;			/* the program was, */
	bool keep_tried;		/* and may not be kept */
	struct muster_plan *plan;	/* host path; NULL until it is first used */
	int no_program;			/* why there is none: -errno, 0: not tried yet */
	char why[MUSTER_WHY_MAX];	/* and in words */
	const char *no_bump;		/* why it is not the bump's; NULL or empty: nobody asks */
	const char *no_tree;		/* nor a tree's; likewise */
	const struct muster_path_row *path;	/* that was chosen (choose.c), or NULL; */
	enum muster_path chosen;	/* which that is, why, */
	const char *path_why;
	enum muster_offload offload;	/* and with the communicator's as it was then */
	struct muster_op_info info;	/* what is said of it when it is done, but for why */
};

/** muster_entry_stand_in() - bytes of scratch that stand for OUT, before the program's own. */
static inline uint64_t muster_entry_stand_in(const struct muster_entry *entry)
{
	const struct muster_program *program = entry->program;

	return entry->passes && !program->is_inline ? (program->out_bytes + 63) / 64 * 64 : 0;
}

/** muster_entry_get() - find or make; holds a reference. */
int muster_entry_get(struct muster_comm *comm, const struct muster_call *call,
		     struct muster_entry **entry);
void muster_entry_put(struct muster_entry *entry);
/** muster_entry_longest() - of a call that hides: the longest block, as agreed; nobody else uses it. */
void muster_entry_longest(struct muster_entry *entry, uint64_t longest);
/** muster_entry_lower() - see that entry->program or entry->no_program is set; else an error. */
int muster_entry_lower(struct muster_comm *comm, struct muster_entry *entry);
/** muster_entry_bind() - a program was made: sign it, and make room to bind it. 0; -ENOMEM. */
int muster_entry_bind(struct muster_comm *comm, struct muster_entry *entry);
/** muster_entry_plan() - see that entry->plan is set. */
int muster_entry_plan(struct muster_comm *comm, struct muster_entry *entry);
/** muster_cache_clear() - forget all; entries in use live on until they are put. */
void muster_cache_clear(struct muster_comm *comm);

/* schedules.c */
/** muster_entry_schedule() - set entry->schedule, and whether it is the entry's own. 0 or -errno. */
int muster_entry_schedule(struct muster_comm *comm, struct muster_entry *entry);
/** muster_comm_is_told() - whether the library does not choose schedules by itself. */
bool muster_comm_is_told(const struct muster_comm *comm);
/** muster_comm_is_told_file() - whether a file has chosen that of an entry, or is it. */
bool muster_comm_is_told_file(const struct muster_comm *comm, const struct muster_entry *entry);
/** muster_comm_inherit() - the schedule that the environment chose, where it fits. */
int muster_comm_inherit(struct muster_comm *comm);
void muster_comm_told_free(struct muster_comm *comm);

#endif /* MUSTER_CACHE_H */
