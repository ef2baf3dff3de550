/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * libmuster-mpi: an MPI program's collectives on Muster, by preloading. One source, built once
 * against each MPI's own <mpi.h>. It stands before the MPI library and defines MPI_X and
 * PMPI_X of each collective X (Open MPI's Fortran calls the latter); what it does not offload
 * goes to the MPI library as it came.
 *
 * Whether a call is offloaded follows from what MPI makes the same on all ranks: the
 * communicator and what was called on it before, the operation, and for reductions the type.
 * Never from counts, buffers or types of data that is only moved: these may differ by rank.
 *
 * Who calls whom: calls -> again, quick -> run -> (start -> fold, neighbours -> side -> hold -> types),
 * request, comm -> turn, join. All use of the job is under muster_mpi.lock, and no MPI function is called with that held.
 */
#ifndef MUSTER_MPI_SHIM_H
#define MUSTER_MPI_SHIM_H

#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef OPEN_MPI
#include <mpi-ext.h>	/* persistent collectives */
#endif

#include "muster.h"

/* ---- the MPI library beneath (beneath.c) --------------------------------------------- */

#define MUSTER_MPI_COLLECTIVES(X)					\
	X(Barrier) X(Bcast) X(Reduce) X(Allreduce) X(Gather) X(Gatherv)	\
	X(Scatter) X(Scatterv) X(Allgather) X(Allgatherv) X(Alltoall)	\
	X(Alltoallv) X(Alltoallw) X(Reduce_scatter) X(Reduce_scatter_block) \
	X(Scan) X(Exscan) X(Neighbor_allgather) X(Neighbor_allgatherv)	\
	X(Neighbor_alltoall) X(Neighbor_alltoallv) X(Neighbor_alltoallw)

#define MUSTER_MPI_NONBLOCKING(X)					\
	X(Ibarrier) X(Ibcast) X(Ireduce) X(Iallreduce) X(Igather) X(Igatherv) \
	X(Iscatter) X(Iscatterv) X(Iallgather) X(Iallgatherv) X(Ialltoall) \
	X(Ialltoallv) X(Ialltoallw) X(Ireduce_scatter) X(Ireduce_scatter_block) \
	X(Iscan) X(Iexscan) X(Ineighbor_allgather) X(Ineighbor_allgatherv) \
	X(Ineighbor_alltoall) X(Ineighbor_alltoallv) X(Ineighbor_alltoallw)

#define MUSTER_MPI_REQUESTS(X)						\
	X(Request_free) X(Request_get_status) X(Start) X(Startall) X(Wait) X(Waitall) \
	X(Waitany) X(Waitsome) X(Test) X(Testall) X(Testany) X(Testsome)

#define MUSTER_MPI_WRAPPED(X)						\
	X(Init) X(Init_thread) X(Comm_free) X(Comm_disconnect) X(Type_free) X(Op_free) \
	X(Type_get_envelope) MUSTER_MPI_REQUESTS(X) MUSTER_MPI_COLLECTIVES(X) MUSTER_MPI_NONBLOCKING(X)

/* The MPI library's own functions, which ours stand before, or which a plug-in asks otherwise. */
struct muster_mpi_beneath {
#define POINTER(name) __typeof__(&MPI_##name) name;
	MUSTER_MPI_WRAPPED(POINTER)
#undef POINTER
#ifdef OPEN_MPI
#define POINTER(name) __typeof__(&MPIX_##name##_init) name##_init;
#else
#define POINTER(name) __typeof__(&MPI_##name##_init) name##_init;
#endif
	MUSTER_MPI_COLLECTIVES(POINTER)		/* persistent */
#undef POINTER
	void (*progress)(void);			/* Open MPI's; NULL: there is none */
	int (*progress_register)(int (*)(void));
	int (*progress_unregister)(int (*)(void));
};

extern struct muster_mpi_beneath muster_mpi_beneath;

/** muster_mpi_guard() - ends the process with a sentence if it has another MPI than ours. */
void muster_mpi_guard(void);

/* ---- what was called ------------------------------------------------------------------- */

enum muster_mpi_coll {
#define NUMBER(name) COLL_##name,
	MUSTER_MPI_COLLECTIVES(NUMBER)
#undef NUMBER
	COLLS,
};

/* A collective call: what it does not have is zero. A broadcast's buffer is out. */
struct muster_mpi_call {
	enum muster_mpi_coll coll;
	MPI_Comm comm;
	const void *in;
	void *out;
	int in_count;
	int out_count;
	MPI_Datatype in_type;
	MPI_Datatype out_type;		/* a reduction's */
	const int *in_counts, *in_displs, *out_counts, *out_displs;
	const MPI_Aint *in_ats, *out_ats;	/* displs in bytes, of neighbours */
	const MPI_Datatype *in_types, *out_types;
	MPI_Op op;
	int root;
	bool nonblocking;
};

/** muster_mpi_pass() - have the MPI library do it; request: of the nonblocking form. */
int muster_mpi_pass(const struct muster_mpi_call *call, MPI_Request *request);

/** muster_mpi_run(), muster_mpi_begin() - all that a blocking or nonblocking collective does. */
int muster_mpi_run(const struct muster_mpi_call *call);
int muster_mpi_begin(struct muster_mpi_call *call, MPI_Request *request);
/**
 * muster_mpi_quick_allreduce(), _barrier() - the same with fewer looks (quick.c). Return: false: it has not
 * begun, and muster_mpi_run() is to do it; true: *err is what the call ends with.
 */
bool muster_mpi_quick_allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
				MPI_Comm comm, int *err);
bool muster_mpi_quick_barrier(MPI_Comm comm, int *err);
/** muster_mpi_fail_call() - its error, with muster_mpi_said, as the communicator's handler leaves it. */
int muster_mpi_fail_call(MPI_Comm comm, enum muster_mpi_coll coll, int err);
/** muster_mpi_persist() - the same, persistent: err and request are what the MPI library has said. */
int muster_mpi_persist(int err, const struct muster_mpi_call *call, MPI_Request *request);

/* Why the MPI library does a call. */
enum muster_mpi_reason {
	REASON_NONE,		/* it is offloaded */
	REASON_NOTHING,		/* no elements */
	REASON_ONE_RANK,
	REASON_ENDING,		/* its MPI_Comm_free calls it */
	REASON_INVALID,		/* arguments that the MPI library is to refuse */
	REASON_NO_JOB,
	REASON_INTER,
	REASON_OTHER_JOB,
	REASON_NOT_JOINED,
	REASON_NO_ROOM,
	REASON_WORLD_ENDED,	/* a rank that it has not has died, and since then no communicator is made */
	REASON_DIED,		/* one of its ranks has; muster_mpi_said */
	REASON_TYPE,
	REASON_GRAPH,
	REASONS,
};

/** muster_mpi_may_pass() - else muster_mpi_refuse(), an MPI error: offload is forced, or a rank has died. */
bool muster_mpi_may_pass(enum muster_mpi_reason why);
int muster_mpi_refuse(const struct muster_mpi_call *call, enum muster_mpi_reason why);

const char *muster_mpi_reason(enum muster_mpi_reason reason);
const char *muster_mpi_coll_name(enum muster_mpi_coll coll);

/* ---- joining (join.c) --------------------------------------------------------------------- */

struct muster_mpi {
	struct muster *job;		/* NULL: not joined, or not any more */
	pthread_mutex_t lock;
	MPI_Comm own;			/* this rank's alone, which returns errors */
	int rank;
	bool stats;
	bool force;			/* rank 0's MUSTER_OFFLOAD is force */
	bool threads;			/* some rank has MPI_THREAD_MULTIPLE */
	bool within;			/* the MPI library calls us, and its error handlers itself */
	bool left;			/* MPI_Finalize has begun */
	char no_job[512];		/* why there is none, if so */
};

extern struct muster_mpi muster_mpi;

/**
 * muster_mpi_join() - when MPI has begun; comm: MPI_COMM_WORLD, or another of its ranks in its order, over
 * which they meet. An MPI error, if offload is forced. MPI_Finalize leaves it again, behind the callbacks of younger
 * attributes of MPI_COMM_SELF.
 */
int muster_mpi_join(MPI_Comm comm);

/* ---- communicators (comm.c) ----------------------------------------------------------------- */

struct muster_mpi_op;
struct muster_mpi_graph;

struct muster_mpi_reduction {
	enum muster_type type;	/* 0: MPI has to combine it (fold.c) */
	enum muster_op op;
	uint64_t bytes;		/* of an element in memory */
};

/* What we know of an MPI communicator: an attribute of it. */
struct muster_mpi_comm {
	MPI_Comm handle;		/* MPI_COMM_NULL: it is freed; a twin has none */
	struct muster_mpi_comm *twin_of;	/* NULL: it is none */
	struct muster_comm *muster;	/* as long as it has refs; NULL: it is not offloaded; and */
	enum muster_mpi_reason why;	/* why not; and */
	char *sentence;			/* of the error, if a rank had died */
	struct muster_mpi_graph *graph;	/* of a topology; NULL: it has none, or one that is left */
	struct {			/* the reduction that the library did last: */
		MPI_Datatype type;
		MPI_Op op;
		struct muster_mpi_reduction is;	/* its type is 0: there was none */
	} last;
	int rank;
	int size;
	int refs;			/* the attribute's, and one of each operation that is not over */
	struct muster_mpi_op *first;	/* nonblocking ones that have not ended, in order */
	struct muster_mpi_op *end;
	struct muster_mpi_comm *next;	/* of those that have any */
};

/* Which this thread found last; true as long as none has been freed since. Looked at in each call. */
struct muster_mpi_recent {
	MPI_Comm handle;
	struct muster_mpi_comm *comm;
	unsigned int freed;
};

extern _Thread_local struct muster_mpi_recent muster_mpi_recent __attribute__((tls_model("initial-exec")));
extern atomic_uint muster_mpi_comms_freed;

/** muster_mpi_comm_recent() - NULL: it has to be found. */
static inline struct muster_mpi_comm *muster_mpi_comm_recent(MPI_Comm handle)
{
	const struct muster_mpi_recent *recent = &muster_mpi_recent;

	return recent->handle == handle && recent->freed == atomic_load(&muster_mpi_comms_freed) &&
	       muster_mpi.job ? recent->comm : NULL;
}

int muster_mpi_comms_open(void);

/* Of a communicator. */
struct muster_mpi_members {
	uint32_t nr;
	const uint32_t *ranks;	/* of the job; NULL: from 0 on, all */
};

/**
 * muster_mpi_has_died() - has one of them? Then muster_mpi_said names it. Where it is not known who has, it
 * may be one. Under the lock.
 */
bool muster_mpi_has_died(const struct muster_mpi_members *members);

enum { MUSTER_MPI_WORDS = 3 };

/** muster_mpi_greatest() - of all members' words. Return: as muster_mpi_take_turn(). */
int muster_mpi_greatest(MPI_Comm handle, const struct muster_mpi_members *members, const uint64_t *mine,
			uint64_t *all);
/**
 * muster_mpi_take_turn() - until all members' processes do this, and nothing else that has turns (turn.c):
 * what follows may block in the library until all do it. Return: 0; -ECONNRESET, with muster_mpi_said: a member
 * has died; an MPI error.
 */
int muster_mpi_take_turn(MPI_Comm handle, int rank, const struct muster_mpi_members *members);
void muster_mpi_end_turn(void);

/**
 * muster_mpi_comm_end() - by MPI_Comm_free or MPI_Comm_disconnect beneath.
 *
 * Our attribute goes before the program's, and comes back if the callback of one of those fails. A collective that
 * they call is the MPI library's, whichever it is: at all members alike.
 */
int muster_mpi_comm_end(MPI_Comm *handle, int (*end)(MPI_Comm *handle));

/** muster_mpi_comm_find() - NULL: not joined, and it may not be now, or could not: *why. */
struct muster_mpi_comm *muster_mpi_comm_find(MPI_Comm comm, bool may_join,
					     enum muster_mpi_reason *why);
/**
 * muster_mpi_comm_twin() - the library's once more, for operations that take no turn in the others' order.
 * All ranks call it; comm: found. NULL: it could not be made, at any of them: *why.
 */
struct muster_mpi_comm *muster_mpi_comm_twin(struct muster_mpi_comm *comm, enum muster_mpi_reason *why);
/** muster_mpi_comm_handle() - MPI_COMM_NULL: it is freed. Under the lock. */
MPI_Comm muster_mpi_comm_handle(const struct muster_mpi_comm *comm);
/** muster_mpi_comm_put() - an operation has ended; under the lock. */
void muster_mpi_comm_put(struct muster_mpi_comm *comm);

/* ---- types and operations (types.c) ------------------------------------------------------------ */

struct muster_mpi_type {
	uint64_t bytes;		/* of data */
	int64_t extent;
	bool plain;		/* data without gaps, in order: any count of it may be moved as bytes */
};

int muster_mpi_types_open(void);
/** muster_mpi_type_get() - of any type; false: there is no such type. */
bool muster_mpi_type_get(MPI_Datatype type, struct muster_mpi_type *info);

/** muster_mpi_reduction_get() - REASON_NONE, or why it is left to the MPI library. */
enum muster_mpi_reason muster_mpi_reduction_get(MPI_Datatype type, MPI_Op op,
						struct muster_mpi_reduction *reduction);

/** muster_mpi_op_is_named() - is it one of MPI's own? */
bool muster_mpi_op_is_named(MPI_Op op);

/* ---- what may be freed too early (hold.c) ------------------------------------------------------- */

/** muster_mpi_type_hold() - the program's frees are done after muster_mpi_type_let_go(). -ENOMEM. */
int muster_mpi_type_hold(MPI_Datatype type);
void muster_mpi_type_let_go(MPI_Datatype type);
int muster_mpi_op_hold(MPI_Op op);
void muster_mpi_op_let_go(MPI_Op op);
/** muster_mpi_defer() - the program frees a type or an operation. Is it held? Then it is freed later. */
bool muster_mpi_defer(uintptr_t handle);

/* All that a call needs, as long as it may be started. */
struct muster_mpi_types {
	MPI_Datatype *types;
	uint32_t nr;
	MPI_Op op;
	bool has_op;
};

/** muster_mpi_types_hold() - -ENOMEM; what is held by then is to be let go all the same. */
int muster_mpi_types_hold(struct muster_mpi_types *held, const struct muster_mpi_call *call,
			  const struct muster_mpi_comm *comm);
void muster_mpi_types_let_go(struct muster_mpi_types *held);
/** muster_mpi_blocks_nr() - of a side, as the call gives them. */
uint32_t muster_mpi_blocks_nr(const struct muster_mpi_call *call, const struct muster_mpi_comm *comm,
			      bool of_in);

/* ---- buffers (side.c) ---------------------------------------------------------------------------- */

/* What lies together in the caller's memory. */
struct muster_mpi_block {
	char *at;
	int64_t count;
	MPI_Datatype type;
	uint64_t bytes;
};

/*
 * One side of a call, as the library takes it: the caller's own memory where data is plain, else
 * a packed copy.
 */
struct muster_mpi_side {
	char *at;
	uint64_t bytes;		/* of one block; where blocks have lengths of their own, of all */
	uint64_t *counts;	/* bytes of each, or NULL; and */
	uint64_t *displs;	/* where they begin */
	struct muster_mpi_block *blocks;	/* of what is packed */
	uint32_t nr;
	char *low, *high;	/* what the caller's memory spans */
	char *packed;		/* NULL: at is the caller's */
	uint32_t held;		/* types of so many blocks */
};

/** muster_mpi_side_plain() - bytes as they are, a reduction's. Return: 0; -EINVAL. */
static inline int muster_mpi_side_plain(struct muster_mpi_side *side, const void *buffer,
					uint64_t bytes)
{
	char *at = (char *)buffer;

	side->at = at;
	side->bytes = bytes;
	side->nr = 1;
	side->low = at;
	side->high = at + bytes;
	return at || !bytes ? 0 : -EINVAL;
}

/* Blocks with lengths of their own, as a call gives them. */
struct muster_mpi_blocks {
	const int *counts;
	const int *displs;		/* elements; with types bytes */
	const MPI_Aint *ats;		/* instead, bytes */
	const MPI_Datatype *types;	/* of each; NULL: all are of */
	MPI_Datatype type;
	const uint32_t *order;		/* which of the call's each is; NULL: the same */
};

static inline struct muster_mpi_blocks muster_mpi_blocks_in(const struct muster_mpi_call *call,
							    const uint32_t *order)
{
	return (struct muster_mpi_blocks){ call->in_counts, call->in_displs, call->in_ats,
					   call->in_types, call->in_type, order };
}

static inline struct muster_mpi_blocks muster_mpi_blocks_out(const struct muster_mpi_call *call,
							     const uint32_t *order)
{
	return (struct muster_mpi_blocks){ call->out_counts, call->out_displs, call->out_ats,
					   call->out_types, call->out_type, order };
}

/** muster_mpi_side_even() - nr blocks of count elements. Return: 0; -EINVAL; -ENOMEM. */
int muster_mpi_side_even(struct muster_mpi_side *side, const void *buffer, int64_t count,
			 MPI_Datatype type, uint32_t nr);
int muster_mpi_side_uneven(struct muster_mpi_side *side, const void *buffer,
			   const struct muster_mpi_blocks *blocks, uint32_t nr);
/** muster_mpi_side_unread() - memory for a result that nobody reads. Return: 0; -ENOMEM. */
int muster_mpi_side_unread(struct muster_mpi_side *side, uint64_t bytes);
/** muster_mpi_side_order() - of even blocks: which of the caller's each is. By a copy. */
int muster_mpi_side_order(struct muster_mpi_side *side, const uint32_t *order);
/* Does MPI look whether buffers are the same? */
#ifdef MPICH_VERSION
#define MUSTER_MPI_LOOKS 1
#else
#define MUSTER_MPI_LOOKS 0
#endif
/**
 * muster_mpi_sides_part() - MPI forbids that they overlap. MPICH looks whether what a rank gives itself is
 * where it goes (-EINVAL); all else that overlaps works by a copy. Return: 0; -ENOMEM.
 */
int muster_mpi_sides_part(struct muster_mpi_side *in, const char *from, const struct muster_mpi_side *out,
			  const char *to);
/** muster_mpi_side_copy() - go by a copy, even where data is plain. */
int muster_mpi_side_copy(struct muster_mpi_side *side);
int muster_mpi_side_pack(struct muster_mpi_side *side);
int muster_mpi_side_pack_block(struct muster_mpi_side *side, uint32_t block);
int muster_mpi_side_unpack(struct muster_mpi_side *side);
/** muster_mpi_side_hold() - types may be freed before it is unpacked. -ENOMEM. */
int muster_mpi_side_hold(struct muster_mpi_side *side);
void muster_mpi_side_free(struct muster_mpi_side *side);

/* ---- combining by MPI (fold.c) -------------------------------------------------------------------- */

struct muster_mpi_fold {
	char *memory;		/* contributions, in the order of ranks */
	uint32_t nr;		/* of them combined here; 0: there is no result here */
	int count;		/* elements of the result, and */
	uint64_t bytes;		/* its data */
	MPI_Datatype type;
	MPI_Op op;
	bool held;		/* the two */
};

/** muster_mpi_fold_start() - as a row of start.c: have contributions moved. -EINVAL; -errno. */
int muster_mpi_fold_start(struct muster_mpi_op *op, const struct muster_mpi_call *call, bool in_place);
/** muster_mpi_fold() - combine what has come; result: packed. */
int muster_mpi_fold(const struct muster_mpi_fold *fold, char *result);
/** muster_mpi_fold_hold() - its type and operation may be freed before. -ENOMEM. */
int muster_mpi_fold_hold(struct muster_mpi_fold *fold);
void muster_mpi_fold_free(struct muster_mpi_fold *fold);

/* ---- neighbours (neighbours.c) -------------------------------------------------------------------- */

struct muster_mpi_edges {
	uint32_t nr;
	uint32_t *ranks;
	uint32_t *order;	/* which block of the caller's is of each; */
	bool straight;		/* all of them, one after the other */
};

struct muster_mpi_graph {
	struct muster_mpi_edges to;
	struct muster_mpi_edges from;
	bool some_alone;	/* a rank has no neighbours */
};

/**
 * muster_mpi_graph_get() - the graph of a communicator's topology; NULL: it has none. All ranks
 * call it; it fails at all of them.
 */
int muster_mpi_graph_get(MPI_Comm handle, int rank, struct muster_mpi_graph **graph);
/** muster_mpi_has_topology() - on all its ranks alike. */
bool muster_mpi_has_topology(MPI_Comm handle);
void muster_mpi_graph_free(struct muster_mpi_graph *graph);
/** muster_mpi_neighbours_start() - as a row of start.c. -EINVAL; -errno. */
int muster_mpi_neighbours_start(struct muster_mpi_op *op, const struct muster_mpi_call *call);

/* ---- operations (start.c, request.c) ----------------------------------------------------------- */

enum muster_mpi_stage {
	STAGE_STARTED,
	STAGE_TOLD,		/* MPI is told that it has ended */
	STAGE_FREED,		/* before that the program has freed its request */
};

struct muster_mpi_op {
	struct muster_mpi_comm *comm;
	struct muster_request *request;
	enum muster_mpi_coll coll;
	struct muster_mpi_side in;
	struct muster_mpi_side out;
	struct muster_mpi_fold fold;
	bool unpack;			/* out has to be unpacked here */
	double began;
	MPI_Request grequest;
	int err;			/* of the library, when it has ended; and */
	char *sentence;			/* its words */
	int error;			/* the same as MPI has it */
	atomic_int stage;		/* of enum muster_mpi_stage */
	struct muster_mpi_op *next;
};

/**
 * muster_mpi_start() - give a call to the library.
 * Return: 0; 1: it is the MPI library's, *why; -errno, with muster_mpi_said.
 */
int muster_mpi_start(struct muster_mpi_op *op, const struct muster_mpi_call *call,
		     enum muster_mpi_reason *why);
void muster_mpi_op_free(struct muster_mpi_op *op);
/** muster_mpi_cannot() - why calls like this one are the MPI library's, whatever counts and buffers are. */
enum muster_mpi_reason muster_mpi_cannot(const struct muster_mpi_call *call, const struct muster_mpi_comm *comm);

/** muster_mpi_begin_on() - a nonblocking call on a communicator that is known. */
int muster_mpi_begin_on(struct muster_mpi_comm *comm, const struct muster_mpi_call *call,
			MPI_Request *request);
/** muster_mpi_advance() - where MPI may be called. Return: how many have ended. */
int muster_mpi_advance(void);
/**
 * muster_mpi_wait() - until it has ended, and its result is where the caller wants it; MPI's own
 * traffic goes on. 0; -errno, as above.
 */
int muster_mpi_wait(struct muster_mpi_op *op);
/** muster_mpi_wait_beneath() - of the MPI library's own. 0; an MPI error; -ECONNRESET, with muster_mpi_said. */
int muster_mpi_wait_beneath(MPI_Request *request, const struct muster_mpi_members *members);
/** muster_mpi_test_often() - a few times, under the lock, but not where somebody else had better run. */
int muster_mpi_test_often(struct muster_request *request, bool *done);
/** muster_mpi_wait_request() - the same without a result that has to be brought anywhere. */
int muster_mpi_wait_request(struct muster_request *request);
/**
 * muster_mpi_request() - the MPI request of a started operation, which belongs to it then. Else an
 * MPI error, and nothing has changed.
 */
int muster_mpi_request(struct muster_mpi_op *op, MPI_Request *request);
int muster_mpi_requests_open(void);
void muster_mpi_requests_close(void);

/* ---- nonblocking ones that failed (failed.c) ------------------------------------------------------ */

/** muster_mpi_failed_note() - MPI completes such a request, in this thread's call. */
void muster_mpi_failed_note(struct muster_mpi_comm *comm, int error, MPI_Status *status);
/** muster_mpi_failed_one(), _some() - what a call that completes requests ends with; nr: of statuses. */
int muster_mpi_failed_one(int err, MPI_Status *status);
int muster_mpi_failed_some(int err, int nr, MPI_Status *statuses);
/** muster_mpi_failed_look() - what one that leaves its request ends with: whose wait or test will tell. */
int muster_mpi_failed_look(int err, MPI_Status *status);

/* ---- errors and figures (error.c, stats.c) -------------------------------------------------------- */

/** muster_mpi_error_code() - MPI's number for -errno and what it was about. */
int muster_mpi_error_code(const char *function, int err, const char *sentence);
/** muster_mpi_error() - the same, given to the communicator's error handler first. */
int muster_mpi_error(MPI_Comm comm, const char *function, int err, const char *sentence);

enum { MUSTER_MPI_SENTENCE = 512 };

/* What was said to this thread last; the library's words are noted under the lock. */
extern _Thread_local char muster_mpi_said[MUSTER_MPI_SENTENCE];
/** muster_mpi_note() - an error's sentence. */
void muster_mpi_note(void);
/** muster_mpi_fail() - the sentence of an error that was found here, of this rank; returns it. */
int muster_mpi_fail(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A call of the library. */
#define MUSTER_MPI_LOCKED(call)	({					\
	int result_;							\
	pthread_mutex_lock(&muster_mpi.lock);				\
	result_ = (call);						\
	if (result_)							\
		muster_mpi_note();					\
	pthread_mutex_unlock(&muster_mpi.lock);				\
	result_; })

double muster_mpi_now(void);
void muster_mpi_stats_passed(enum muster_mpi_coll coll, enum muster_mpi_reason why, double began);
void muster_mpi_stats_ended(const struct muster_mpi_op *op);
void muster_mpi_stats_print(void);

#endif /* MUSTER_MPI_SHIM_H */
