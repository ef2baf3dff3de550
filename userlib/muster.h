/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * libmuster: offloaded collective communication.
 *
 * A job is a set of processes (ranks) that started together; a communicator is
 * an ordered group of them. Every rank of a communicator calls the same
 * operations in the same order. The library turns each into a descriptor
 * sequence that the NIC carries out, or runs the same schedule on the CPU (the
 * host path), and always says which of the two it did and why.
 *
 * Errors are negative errno values; muster_error() has the sentence. A job and
 * all that belongs to it is used by one thread at a time, unless MUSTER_INIT_THREADS is
 * given. Nothing is printed, but for MUSTER_STATS and MUSTER_LOG.
 */
#ifndef MUSTER_H
#define MUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct muster;
struct muster_comm;
struct muster_request;

enum muster_type {
	MUSTER_F32 = 1,
	MUSTER_F64 = 2,
	MUSTER_I32 = 3,
	MUSTER_I64 = 4,
	MUSTER_U64 = 5,
	MUSTER_I8 = 6,
	MUSTER_U32 = 7,
	MUSTER_U8 = 8,
	MUSTER_I16 = 9,
	MUSTER_U16 = 10,
	MUSTER_F16 = 11,	/* IEEE 754 */
	MUSTER_BF16 = 12,	/* the upper half of an f32 */
	MUSTER_C32 = 13,	/* complex: two f32 */
	MUSTER_C64 = 14,	/* complex: two f64 */
	/* A value and an index, struct { VALUE value; int32_t index; } with C's padding. */
	MUSTER_F32_I32 = 15,	/* 8 bytes */
	MUSTER_F64_I32 = 16,	/* 16 bytes */
	MUSTER_I16_I32 = 17,	/* 8 bytes */
	MUSTER_I32_I32 = 18,	/* 8 bytes */
	MUSTER_I64_I32 = 19,	/* 16 bytes */
};

/* Which is defined for what, and to which bits: Documentation/arithmetic.md. */
enum muster_op {
	MUSTER_SUM = 1,		/* of all types but pairs; integers wrap */
	MUSTER_MIN = 2,		/* of integers and real numbers; a NaN is kept */
	MUSTER_MAX = 3,
	MUSTER_BAND = 4,	/* this and the following five: integers only */
	MUSTER_BOR = 5,
	MUSTER_BXOR = 6,
	MUSTER_LAND = 7,	/* logical: not zero is true; the result is 1 or 0 */
	MUSTER_LOR = 8,
	MUSTER_LXOR = 9,
	MUSTER_PROD = 10,	/* as sum */
	MUSTER_MINLOC = 11,	/* of pairs: the least value, and the lowest index that has it */
	MUSTER_MAXLOC = 12,
	MUSTER_REPLACE = 13,	/* what comes last; refused where no order is promised, as in a reduction */
	MUSTER_SUM_EXACT = 63,	/* of f32 and f64: the exact sum, rounded once; not in muster_reduce_scatter() */
	MUSTER_OP_USER = 64, MUSTER_OP_MAX = 0x7fffffff,	/* of muster_op_create() */
};

enum muster_offload {
	MUSTER_OFFLOAD_OFF = 0,		/* host path */
	MUSTER_OFFLOAD_TRY = 1,		/* NIC where it can, else host path */
	MUSTER_OFFLOAD_FORCE = 2,	/* NIC, or the operation fails with -EOPNOTSUPP */
};

/* What becomes of an operation when a member or a part of the network is lost while it runs. */
enum muster_restart {
	MUSTER_RESTART_OFF = 0,		/* it fails with -ECONNRESET */
	MUSTER_RESTART_TRY = 1,		/* it is begun anew among who is left, unless it has ended at some of them */
	MUSTER_RESTART_AGREED = 2,	/* it ends nowhere before all have its result: a barrier after each */
};

enum muster_path {
	MUSTER_PATH_NONE = 0,	/* nothing to do: one rank, or no elements */
	MUSTER_PATH_HOST = 1,
	MUSTER_PATH_NIC = 2,
	MUSTER_PATH_SWITCH = 3,
	MUSTER_PATH_BUMP = 4,	/* the bump in the host's wire (MUSTER_BUMP) */
};

/*
 * The caller's own bootstrap. allgather() is called by all ranks in the same
 * order: it gathers `bytes` bytes of each into out, by rank, and blocks until
 * all are there; 0 or -errno. Only muster_init_oob() uses it.
 */
struct muster_oob {
	uint32_t rank;
	uint32_t size;
	int (*allgather)(void *opaque, const void *in, void *out, size_t bytes);
	void *opaque;
};

/* ---- job ---------------------------------------------------------------- */

/**
 * muster_init() - join the job that the environment names.
 *
 * MUSTER_RANK and MUSTER_SIZE: this rank and how many there are; else those of Open MPI, MPICH or
 * Slurm. MUSTER_RENDEZVOUS: where they meet; "unix:NAME", an abstract socket's name
 * (muster-run sets all three); "file:/PATH" or "tcp:ADDRESS:PORT" under other launchers. MUSTER_DEVICE, MUSTER_WIRE, MUSTER_OFFLOAD,
 * MUSTER_SCHEDULE, MUSTER_ALLREDUCE and so on, MUSTER_TUNING, MUSTER_BUMP, MUSTER_DUMP, MUSTER_ENGINE, MUSTER_DEADLINE, MUSTER_PROGRESS, MUSTER_RESTART,
 * MUSTER_STATS, MUSTER_LOG: see muster(7). Blocks until all ranks are there, at most the deadline (10 s); a process that is
 * in another job already goes on with that one's operations on another thread, or finishes them.
 *
 * Return: 0; -EINVAL: a variable is missing or wrong; -ETIMEDOUT: ranks are
 * missing; or what the system said. muster_error(NULL) has the sentence.
 */
int muster_init(struct muster **job);

/** muster_init_oob() - join by the caller's own means; the same errors. */
int muster_init_oob(const struct muster_oob *oob, struct muster **job);

enum muster_init_flag {
	/*
	 * Any thread may call, several at once. Calls on one communicator are still to be made
	 * in the order that all ranks share, which is the threads' own affair; one request is
	 * for one thread. muster_error() is then of the calling thread's last failure.
	 * muster_finalize() is for one thread, when no other is in the library.
	 */
	MUSTER_INIT_THREADS = 1,
};

/**
 * muster_init_with() - muster_init(), or, where oob is not NULL, muster_init_oob(), with
 * flags of enum muster_init_flag, each rank's own affair.
 */
int muster_init_with(const struct muster_oob *oob, uint32_t flags, struct muster **job);

/**
 * muster_finalize() - leave the job. Frees its communicators, requests and
 * memory; ranks that still wait for this one get -ECONNRESET. Waits for ranks that
 * are late in taking what was sent to them, as long as MUSTER_DEADLINE.
 */
void muster_finalize(struct muster *job);

/**
 * muster_error() - what the last failed call on this job said, in one sentence:
 * what was wrong, where, and what to do. NULL: of muster_init(). Valid until the
 * next failing call. Never NULL.
 */
const char *muster_error(const struct muster *job);

/** muster_version() - of the library that is running: "0.1". Needs no job. Never NULL. */
const char *muster_version(void);

/* ---- communicators ------------------------------------------------------- */

/** muster_world() - the communicator of all ranks; belongs to the job. */
struct muster_comm *muster_world(struct muster *job);

/*
 * A communicator is made of another one, its parent, by members of that alone. They
 * talk to each other and to nobody else; what was started on the parent goes on
 * meanwhile. When it fails, it fails at every rank that takes part: -ENOSPC: a device
 * has no context left; -ENOMEM; or the error with which the parent has ended. A rank
 * that does not call is waited for. The new one takes its parent's path
 * (muster_comm_offload()), and the schedule that the environment names.
 *
 * One that rests costs this process about 1 KiB and 2 bytes a member, library and local
 * device together, and 20 bytes a member more for all with the same members in the same
 * order; and what was exchanged with members, 32 bytes for each. What belongs to running
 * stays with those that ran last, 128 at least: others have it made again by their next
 * operation, some microseconds.
 */

/** muster_comm_dup() - the same members in the same order. All members call it. */
int muster_comm_dup(struct muster_comm *parent, struct muster_comm **comm);

/**
 * muster_comm_split() - one communicator for each colour.
 * @colour: 0 or above; MUSTER_COLOUR_NONE: *comm = NULL.
 * @key: orders the ranks of a colour; where it is equal, the parent's order does.
 *
 * All members call it, in turn with the parent's operations: one of them gathers what
 * all have chosen.
 */
int muster_comm_split(struct muster_comm *parent, int32_t colour, int32_t key,
		      struct muster_comm **comm);

enum { MUSTER_COLOUR_NONE = -1 };

/**
 * muster_comm_create_group() - some members, in a new order.
 * @ranks: nr ranks of the parent, all different, this one among them; the same on
 *	every caller.
 * @tag: tells groups apart that are made at the same time.
 *
 * Only the members of the group call it, and it takes no turn in the parent's order:
 * overlapping groups can be made at once. When a rank has died, and the parent has ended
 * with it, those that live can make one still, but on a NIC. Return: also -EINVAL, found before
 * anything is sent.
 */
int muster_comm_create_group(struct muster_comm *parent, uint32_t nr, const uint32_t *ranks,
			     uint32_t tag, struct muster_comm **comm);

/**
 * muster_comm_free() - not for muster_world(). Returns at once: operations under way
 * come to their end, in later calls of any kind; their requests stay valid.
 */
void muster_comm_free(struct muster_comm *comm);

uint32_t muster_comm_rank(const struct muster_comm *comm);
uint32_t muster_comm_size(const struct muster_comm *comm);

/** muster_comm_offload() - choose the path of later operations; the same on every rank. */
int muster_comm_offload(struct muster_comm *comm, enum muster_offload offload);

/**
 * muster_comm_switch() - whether later operations that a reduction tree can do run on it: off, try, or force; as
 * MUSTER_SWITCH for all communicators. The same on every rank.
 */
int muster_comm_switch(struct muster_comm *comm, enum muster_offload tree);

/**
 * muster_comm_restart() - have operations outlive a loss, called, started and persistent; the same on every rank, and
 * before the first of them. MUSTER_RESTART does so for all communicators.
 *
 * All that are left meet, each in its next wait, blocking operation or test, of whatever communicator, which takes as long as
 * that: who does not come is waited for until it leaves the job. What had not ended is begun anew once, in the order in
 * which it was started, with the input that it was called with, also in place; its result is of who is left. Where all
 * are left, as when a tree or a link was lost, that is every operation; else barriers, broadcasts, reductions and scans: of
 * others, with a block for each rank, the shape would be another, and they end with -ECONNRESET and name a rank that is
 * lost. -ECONNRESET, after which the next operation goes on, also for: a second loss meanwhile, a root that is lost, and
 * with MUSTER_RESTART_TRY what some have ended, at those that have not. What is in place has its input again then.
 * -ENOTCONN: no more than half of the ranks can be reached. Later operations go on as well, on muster_comm_heir(), with
 * roots numbered as before; what makes communicators or names neighbours fails as without. MUSTER_RESTART_AGREED costs a
 * barrier after each operation, before which the next does not begin; both cost a copy of what is combined in place. Do not
 * free the communicator while others may have something to begin anew. On the local device: a NIC does not know whom it has lost. Return: 0;
 * -EINVAL; -ENOMEM.
 */
int muster_comm_restart(struct muster_comm *comm, enum muster_restart how);

/**
 * muster_comm_heir() - on which they run: the communicator itself, or that of who is left since the
 * last loss, where everything else can be called. It belongs to it, and lasts until the next loss.
 */
struct muster_comm *muster_comm_heir(struct muster_comm *comm);

/**
 * muster_comm_schedule() - choose the algorithm of later operations by name, by collective and
 * size ("allreduce:4K=ring,broadcast=binomial"), or from a file ("./ring.sched": anything with
 * a slash), which may be a tuning file (muster(7)); NULL: the library chooses.
 * It serves the operations that it can do (a file: its collective and root); for
 * others the library chooses, and muster_comm_last() says what ran. The same on
 * every rank. Return: 0; -EINVAL with line and reason; -ENOENT.
 */
int muster_comm_schedule(struct muster_comm *comm, const char *name);

/* What the last finished operation of a communicator did. */
struct muster_op_info {
	enum muster_path path;
	const char *why;	/* the path's reason; valid until the next operation */
	char schedule[32];
	uint64_t bytes;		/* of the whole message: all blocks, where ranks have blocks */
	uint32_t sequences;	/* descriptor sequences of this rank, 0 on the host path */
	uint32_t descriptors;
	uint32_t steps;
};

void muster_comm_last(const struct muster_comm *comm, struct muster_op_info *info);

/**
 * muster_comm_error() - the error with which it has ended, as every later operation on it returns it, with
 * its sentence; 0: it goes on. It advances nothing, so look after muster_progress(). -EINVAL: comm is NULL.
 */
int muster_comm_error(struct muster_comm *comm);

/**
 * muster_comm_has_lost() - whether that rank of it is known to have died or left. The one that its error
 * names is; of others the local device knows, a NIC does not.
 */
bool muster_comm_has_lost(struct muster_comm *comm, uint32_t rank);

/* ---- memory ---------------------------------------------------------------- */

/**
 * muster_alloc() - memory on which the NIC works in place; the fastest for large
 * messages. Zeroed, page aligned, all of it there at once; freed by muster_free() or muster_finalize().
 */
int muster_alloc(struct muster *job, size_t bytes, void **addr);
void muster_free(struct muster *job, void *addr);

/* ---- operations of the caller's own ---------------------------------------- */

/**
 * muster_combine - inout[i] = in[i] op inout[i] for count elements; in is of lower ranks. It
 * must be associative and need not commute. It runs in the wait or test that ends its operation,
 * and nowhere else; it must call nothing of the library.
 */
typedef void (*muster_combine)(const void *in, void *inout, uint64_t count, void *opaque);

/**
 * muster_op_create() - an operation for reductions and scans of any type; each rank's own
 * affair, as all of them are alike to the others. No device can run it: contributions are
 * gathered, on whichever path, and folded on the CPU in the order of ranks, ((0 op 1) op 2)
 * and so on, the same bits everywhere. That takes memory for a contribution of each rank.
 */
int muster_op_create(struct muster *job, muster_combine combine, void *opaque,
		     enum muster_op *op);
/** muster_op_free() - what was started with it goes on. -EINVAL: it is none. */
int muster_op_free(struct muster *job, enum muster_op op);

/* ---- operations ---------------------------------------------------------- */
/*
 * count is in elements, 64 bits. Buffers hold count elements and belong to the
 * operation until it is finished. in may equal out; otherwise they must not
 * overlap. Argument errors (-EINVAL, -EOVERFLOW; -EFAULT: memory that is not there, nor was in an
 * earlier call; -EOPNOTSUPP: MUSTER_OFFLOAD_FORCE and no NIC path) are found before anything is
 * sent and change nothing. Later errors end the communicator, and every later operation
 * on it returns the same: -EPROTO: ranks called different operations, types,
 * lengths, count vectors or roots; -ECONNRESET: a rank died; -ECONNABORTED: a rank gave up, its
 * own error being -ETIMEDOUT (MUSTER_LATE_TIMEOUT), or -ENOMEM or another of the
 * system's that it met alone, in a start too.
 */

/** muster_barrier() - returns when every rank has called it. */
int muster_barrier(struct muster_comm *comm);
/** muster_broadcast() - root's buf to everyone's buf. */
int muster_broadcast(struct muster_comm *comm, void *buf, uint64_t count, enum muster_type type,
		     uint32_t root);
/** muster_reduce() - op over all ranks' in, at root's out; out is not used elsewhere. */
int muster_reduce(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		  enum muster_type type, enum muster_op op, uint32_t root);
/** muster_allreduce() - op over all ranks' in, at everyone's out: the same bits everywhere. */
int muster_allreduce(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		     enum muster_type type, enum muster_op op);

/*
 * In the following each rank has a block of count elements for each rank, or of each, in the
 * order of ranks: where one of the two buffers holds a block of each, it has count times the
 * ranks of elements. In place, as MPI has it: in == out, and what of the larger buffer is the
 * smaller one lies at its place there, block r of rank r (muster_reduce_scatter_block(): the
 * result comes to the beginning). That place itself may be given instead. Other overlaps
 * are refused. A buffer that a rank does not need may be NULL.
 */

/** muster_allgather() - every rank's block in to everyone's out, which has room for all. */
int muster_allgather(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		     enum muster_type type);
/** muster_reduce_scatter_block() - op over all ranks' in; block r comes to rank r's out. */
int muster_reduce_scatter_block(struct muster_comm *comm, const void *in, void *out,
				uint64_t count, enum muster_type type, enum muster_op op);
/**
 * muster_alltoall() - block j of rank i's in comes to block i of rank j's out. In place it
 * works on a copy.
 */
int muster_alltoall(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		    enum muster_type type);
/** muster_gather() - every rank's block in to root's out. */
int muster_gather(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		  enum muster_type type, uint32_t root);
/** muster_scatter() - block r of root's in to rank r's out. */
int muster_scatter(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		   enum muster_type type, uint32_t root);

/*
 * In the following blocks have lengths of their own: counts[r] elements for rank r, or of it;
 * displs[r] says at which element of its buffer block r begins (NULL: one behind the other in
 * the order of ranks). Both have an entry for each rank, are copied, and belong to the
 * caller again when the call returns. Blocks of a result must not overlap. In place as above.
 */

/**
 * muster_allgatherv() - rank r's counts[r] elements at in to everyone's out.
 * @counts: the same on every rank; displs is each rank's own affair. Where blocks are not
 *	one behind the other in the order of ranks, they are copied once more.
 */
int muster_allgatherv(struct muster_comm *comm, const void *in, void *out, const uint64_t *counts,
		      const uint64_t *displs, enum muster_type type);
/**
 * muster_reduce_scatter() - op over all ranks' in; the counts[r] elements of block r come to
 * rank r's out.
 * @counts: the same on every rank.
 */
int muster_reduce_scatter(struct muster_comm *comm, const void *in, void *out,
			  const uint64_t *counts, enum muster_type type, enum muster_op op);

/*
 * In these a rank knows only the lengths of blocks that it sends or receives. The longest is
 * told to all first, in a small operation of its own, so that they take two turns in the
 * communicator's order. Then each block goes straight to its rank, from and to where it lies.
 * A length on which sender and receiver do not agree ends the communicator with -EPROTO and a
 * sentence that names the rank. With MUSTER_OFFLOAD_FORCE -EOPNOTSUPP may be the request's
 * result, on every rank, if blocks are too long for the NIC.
 */

/**
 * muster_gatherv() - rank r's count elements at in to block r of root's out.
 * @counts, @displs: of the root alone; other ranks may give NULL. In place as in
 *	muster_gather(); count is then of no matter.
 */
int muster_gatherv(struct muster_comm *comm, const void *in, uint64_t count, void *out,
		   const uint64_t *counts, const uint64_t *displs, enum muster_type type,
		   uint32_t root);
/** muster_scatterv() - block r of root's in to rank r's out, which takes count elements. */
int muster_scatterv(struct muster_comm *comm, const void *in, const uint64_t *counts,
		    const uint64_t *displs, void *out, uint64_t count, enum muster_type type,
		    uint32_t root);
/**
 * muster_alltoallv() - block j of rank i's in comes to block i of rank j's out. If in == out
 * it works on a copy, and in_counts and in_displs are those of out, whatever is given.
 */
int muster_alltoallv(struct muster_comm *comm, const void *in, const uint64_t *in_counts,
		     const uint64_t *in_displs, void *out, const uint64_t *out_counts,
		     const uint64_t *out_displs, enum muster_type type);

/**
 * muster_alltoallw() - the same with a type for each block, of enum muster_type; displacements
 * are in bytes. Sender and receiver agree on a block's bytes; its types may differ.
 */
int muster_alltoallw(struct muster_comm *comm, const void *in, const uint64_t *in_counts,
		     const uint64_t *in_displs, const enum muster_type *in_types, void *out,
		     const uint64_t *out_counts, const uint64_t *out_displs,
		     const enum muster_type *out_types);

/** muster_scan() - op over in of rank 0 up to this one, at out; in may equal out. */
int muster_scan(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		enum muster_type type, enum muster_op op);
/** muster_exscan() - the same without this rank's own; out of rank 0 is not touched. */
int muster_exscan(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		  enum muster_type type, enum muster_op op);

/* ---- neighbours ---------------------------------------------------------- */

/**
 * muster_comm_neighbours() - a graph for neighbour collectives: this rank's edges of it.
 * @sources: whom it hears; @destinations: whom it tells. Ranks of comm, in any order, any of them
 *	several times, this one too; none is right as well.
 *
 * All members call it, in turn with operations. It takes the place of the last graph; a new
 * communicator has none. Return: also -EINVAL on every rank: one names another as a destination,
 * and not as often as that one names it as a source; nothing has changed then.
 */
int muster_comm_neighbours(struct muster_comm *comm, uint32_t nr_sources, const uint32_t *sources,
			   uint32_t nr_destinations, const uint32_t *destinations);

/*
 * All ranks of the communicator call these. Block j of in goes to destinations[j], block i of
 * out comes from sources[i]; where a pair has several, the k-th comes from the k-th. in and out
 * are apart. The NIC does it where no rank has more than 32 sources, nor more than 64 edges. Of the
 * forms with lengths the longest block is told to all first, as for muster_alltoallv().
 */

/** muster_neighbour_allgather() - count elements at in, the same on every rank, to all. */
int muster_neighbour_allgather(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			       enum muster_type type);
/** muster_neighbour_alltoall() - blocks of count elements, the same on every rank. */
int muster_neighbour_alltoall(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			      enum muster_type type);
/** muster_neighbour_allgatherv() - counts[i] elements of sources[i]; displs as above. */
int muster_neighbour_allgatherv(struct muster_comm *comm, const void *in, uint64_t count, void *out,
				const uint64_t *counts, const uint64_t *displs,
				enum muster_type type);
int muster_neighbour_alltoallv(struct muster_comm *comm, const void *in, const uint64_t *in_counts,
			       const uint64_t *in_displs, void *out, const uint64_t *out_counts,
			       const uint64_t *out_displs, enum muster_type type);
/** muster_neighbour_alltoallw() - as muster_alltoallw(). */
int muster_neighbour_alltoallw(struct muster_comm *comm, const void *in, const uint64_t *in_counts,
			       const uint64_t *in_displs, const enum muster_type *in_types,
			       void *out, const uint64_t *out_counts, const uint64_t *out_displs,
			       const enum muster_type *out_types);

/*
 * The same, started: *request is to be given to muster_wait(), or to
 * muster_test() until it says done; each frees it. Operations of a communicator
 * run in the order in which they were started. On the local device they advance
 * inside library calls: inside all that can wait for another rank; with MUSTER_PROGRESS=thread
 * (muster(7)) at any time. One that is finished needs no further call: what this rank has sent
 * for the others has left it.
 */
int muster_barrier_start(struct muster_comm *comm, struct muster_request **request);
int muster_broadcast_start(struct muster_comm *comm, void *buf, uint64_t count,
			   enum muster_type type, uint32_t root, struct muster_request **request);
int muster_reduce_start(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			enum muster_type type, enum muster_op op, uint32_t root,
			struct muster_request **request);
int muster_allreduce_start(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			   enum muster_type type, enum muster_op op,
			   struct muster_request **request);

int muster_allgather_start(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			   enum muster_type type, struct muster_request **request);
int muster_reduce_scatter_block_start(struct muster_comm *comm, const void *in, void *out,
				      uint64_t count, enum muster_type type, enum muster_op op,
				      struct muster_request **request);
int muster_alltoall_start(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			  enum muster_type type, struct muster_request **request);
int muster_gather_start(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			enum muster_type type, uint32_t root, struct muster_request **request);
int muster_scatter_start(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			 enum muster_type type, uint32_t root, struct muster_request **request);
int muster_scan_start(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		      enum muster_type type, enum muster_op op, struct muster_request **request);
int muster_exscan_start(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			enum muster_type type, enum muster_op op,
			struct muster_request **request);

int muster_allgatherv_start(struct muster_comm *comm, const void *in, void *out,
			    const uint64_t *counts, const uint64_t *displs, enum muster_type type,
			    struct muster_request **request);
int muster_reduce_scatter_start(struct muster_comm *comm, const void *in, void *out,
				const uint64_t *counts, enum muster_type type, enum muster_op op,
				struct muster_request **request);

int muster_gatherv_start(struct muster_comm *comm, const void *in, uint64_t count, void *out,
			 const uint64_t *counts, const uint64_t *displs, enum muster_type type,
			 uint32_t root, struct muster_request **request);
int muster_scatterv_start(struct muster_comm *comm, const void *in, const uint64_t *counts,
			  const uint64_t *displs, void *out, uint64_t count,
			  enum muster_type type, uint32_t root, struct muster_request **request);
int muster_alltoallv_start(struct muster_comm *comm, const void *in, const uint64_t *in_counts,
			   const uint64_t *in_displs, void *out, const uint64_t *out_counts,
			   const uint64_t *out_displs, enum muster_type type,
			   struct muster_request **request);
int muster_alltoallw_start(struct muster_comm *comm, const void *in, const uint64_t *in_counts,
			   const uint64_t *in_displs, const enum muster_type *in_types, void *out,
			   const uint64_t *out_counts, const uint64_t *out_displs,
			   const enum muster_type *out_types, struct muster_request **request);
int muster_neighbour_allgather_start(struct muster_comm *comm, const void *in, void *out,
				     uint64_t count, enum muster_type type,
				     struct muster_request **request);
int muster_neighbour_alltoall_start(struct muster_comm *comm, const void *in, void *out,
				    uint64_t count, enum muster_type type,
				    struct muster_request **request);
int muster_neighbour_allgatherv_start(struct muster_comm *comm, const void *in, uint64_t count,
				      void *out, const uint64_t *counts, const uint64_t *displs,
				      enum muster_type type, struct muster_request **request);
int muster_neighbour_alltoallv_start(struct muster_comm *comm, const void *in,
				     const uint64_t *in_counts, const uint64_t *in_displs,
				     void *out, const uint64_t *out_counts,
				     const uint64_t *out_displs, enum muster_type type,
				     struct muster_request **request);
int muster_neighbour_alltoallw_start(struct muster_comm *comm, const void *in,
				     const uint64_t *in_counts, const uint64_t *in_displs,
				     const enum muster_type *in_types, void *out,
				     const uint64_t *out_counts, const uint64_t *out_displs,
				     const enum muster_type *out_types,
				     struct muster_request **request);

/*
 * The same, persistent: nothing is started, but arguments are checked, the operation is
 * lowered and its memory made known to the device once; then muster_start() starts it with
 * what its buffers hold at that time, as often as wanted, each time to be waited for before
 * the next. Path and algorithm stay those that were chosen here. All ranks make and start
 * it as if each start were the call; where ranks know only some lengths (gatherv, scatterv,
 * alltoallv, alltoallw, of neighbours too) all ranks' calls must be persistent, and the longest is agreed upon by the first
 * start. Buffers, and how they are mapped, must stay until muster_request_free().
 */
int muster_barrier_init(struct muster_comm *comm, struct muster_request **request);
int muster_broadcast_init(struct muster_comm *comm, void *buf, uint64_t count,
			  enum muster_type type, uint32_t root, struct muster_request **request);
int muster_reduce_init(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		       enum muster_type type, enum muster_op op, uint32_t root,
		       struct muster_request **request);
int muster_allreduce_init(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			  enum muster_type type, enum muster_op op,
			  struct muster_request **request);
int muster_allgather_init(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			  enum muster_type type, struct muster_request **request);
int muster_reduce_scatter_block_init(struct muster_comm *comm, const void *in, void *out,
				     uint64_t count, enum muster_type type, enum muster_op op,
				     struct muster_request **request);
int muster_alltoall_init(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			 enum muster_type type, struct muster_request **request);
int muster_gather_init(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		       enum muster_type type, uint32_t root, struct muster_request **request);
int muster_scatter_init(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			enum muster_type type, uint32_t root, struct muster_request **request);
int muster_scan_init(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		     enum muster_type type, enum muster_op op, struct muster_request **request);
int muster_exscan_init(struct muster_comm *comm, const void *in, void *out, uint64_t count,
		       enum muster_type type, enum muster_op op, struct muster_request **request);
int muster_allgatherv_init(struct muster_comm *comm, const void *in, void *out,
			   const uint64_t *counts, const uint64_t *displs, enum muster_type type,
			   struct muster_request **request);
int muster_reduce_scatter_init(struct muster_comm *comm, const void *in, void *out,
			       const uint64_t *counts, enum muster_type type, enum muster_op op,
			       struct muster_request **request);
int muster_gatherv_init(struct muster_comm *comm, const void *in, uint64_t count, void *out,
			const uint64_t *counts, const uint64_t *displs, enum muster_type type,
			uint32_t root, struct muster_request **request);
int muster_scatterv_init(struct muster_comm *comm, const void *in, const uint64_t *counts,
			 const uint64_t *displs, void *out, uint64_t count, enum muster_type type,
			 uint32_t root, struct muster_request **request);
int muster_alltoallv_init(struct muster_comm *comm, const void *in, const uint64_t *in_counts,
			  const uint64_t *in_displs, void *out, const uint64_t *out_counts,
			  const uint64_t *out_displs, enum muster_type type,
			  struct muster_request **request);
int muster_alltoallw_init(struct muster_comm *comm, const void *in, const uint64_t *in_counts,
			  const uint64_t *in_displs, const enum muster_type *in_types, void *out,
			  const uint64_t *out_counts, const uint64_t *out_displs,
			  const enum muster_type *out_types, struct muster_request **request);
int muster_neighbour_allgather_init(struct muster_comm *comm, const void *in, void *out,
				    uint64_t count, enum muster_type type,
				    struct muster_request **request);
int muster_neighbour_alltoall_init(struct muster_comm *comm, const void *in, void *out,
				   uint64_t count, enum muster_type type,
				   struct muster_request **request);
int muster_neighbour_allgatherv_init(struct muster_comm *comm, const void *in, uint64_t count,
				     void *out, const uint64_t *counts, const uint64_t *displs,
				     enum muster_type type, struct muster_request **request);
int muster_neighbour_alltoallv_init(struct muster_comm *comm, const void *in,
				    const uint64_t *in_counts, const uint64_t *in_displs,
				    void *out, const uint64_t *out_counts,
				    const uint64_t *out_displs, enum muster_type type,
				    struct muster_request **request);
int muster_neighbour_alltoallw_init(struct muster_comm *comm, const void *in,
				    const uint64_t *in_counts, const uint64_t *in_displs,
				    const enum muster_type *in_types, void *out,
				    const uint64_t *out_counts, const uint64_t *out_displs,
				    const enum muster_type *out_types,
				    struct muster_request **request);

/** muster_start() - start one that is idle. -EINVAL: it is under way, or not persistent. */
int muster_start(struct muster_request *request);
/**
 * muster_request_free() - free one that is persistent. -EINVAL: it is under way. Those of a
 * communicator that was freed keep it; muster_finalize() frees all.
 */
int muster_request_free(struct muster_request *request);

/**
 * muster_test() - advance; *done: the request is finished and freed, or, if it is persistent,
 * idle. Return: its result.
 */
int muster_test(struct muster_request *request, bool *done);

/**
 * muster_wait() - advance until it is finished, and free it, unless it is persistent. Return: its result;
 * -ETIMEDOUT only where MUSTER_LATE_TIMEOUT is set (seconds; default: wait for
 * ever, as a late rank is not a dead one); the sentence then names who is late.
 */
int muster_wait(struct muster_request *request);

/**
 * muster_request_progress() - how far an operation is: so many of its stages have ended, of all.
 * It advances nothing, so look after muster_progress(). On the NIC path every eighth stage and the last
 * are told; an operation of another path, and one that is finished, counts as one stage.
 * Return: 0; -EINVAL: an argument is NULL, or the request was finished and freed.
 */
int muster_request_progress(struct muster_request *request, uint32_t *done, uint32_t *all);

/**
 * muster_progress() - advance what is under way, of all communicators, without waiting; for
 * programs that wait for something else than an operation. true: something had come.
 */
bool muster_progress(struct muster *job);

/** muster_in_the_way() - whether who is awaited cannot run before the caller gives its processor away. */
bool muster_in_the_way(struct muster *job);

#ifdef __cplusplus
}
#endif

#endif /* MUSTER_H */
