/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The sweep: every collective, element type, operation, form and algorithm, at many lengths,
 * on both paths, against a plain reference. The reference is a loop over the ranks; of the
 * library it knows what muster.h says and nothing else.
 *
 *   plain.c      elements that every rank can compute for every other, and what they add up to
 *   shape.c      which blocks each collective takes from where, and where they lie
 *   call.c       the calls, in all three forms
 *   cases.c      which cases there are: all of them, or so that each pair of choices occurs
 *   run.c        one rank's part: plays the cases and judges them
 *   sweep.c      the same as a program, for ranks that are processes
 *   simulated.c  and for many ranks in the simulated world
 *   faults.c     the same calls, of which one rank's is another, or never comes
 */
#ifndef SWEEP_H
#define SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "muster.h"

enum sweep_limit {
	SWEEP_RANKS_MAX = 64,
	SWEEP_EDGES = 4,		/* of each rank to neighbours */
	SWEEP_NAMES_MAX = 24,		/* algorithms, and the library's choice as number 0 */
	SWEEP_NAME_MAX = 32,
	SWEEP_PERIOD = 509,		/* elements of a block, before they come again */
	SWEEP_GUARD = 64,		/* bytes around buffers */
	SWEEP_WHY_MAX = 400,
};

/* ---- plain.c ---------------------------------------------------------------------------- */

enum sweep_kind { SWEEP_INT, SWEEP_UINT, SWEEP_FLOAT, SWEEP_COMPLEX, SWEEP_PAIR };

struct sweep_type {
	enum muster_type type;
	const char *name;
	size_t bytes;
	enum sweep_kind kind;
	enum muster_type lane;		/* of complex numbers a part, of pairs the value */
};

struct sweep_op {
	enum muster_op op;		/* MUSTER_OP_USER: one of our own */
	const char *name;
};

extern const struct sweep_type sweep_types[];
extern const uint32_t sweep_nr_types;
extern const struct sweep_op sweep_ops[];
extern const uint32_t sweep_nr_ops;

/** sweep_defined() - whether the operation is, for that type. */
bool sweep_defined(const struct sweep_type *type, enum muster_op op);
/** sweep_element() - element i of a rank's block; op 0: any bits. */
void sweep_element(const struct sweep_type *type, enum muster_op op, uint32_t rank, uint32_t block,
		   uint64_t i, void *to);
/** sweep_folded() - op over that element of ranks first to last, in their order. */
void sweep_folded(const struct sweep_type *type, enum muster_op op, uint32_t first, uint32_t last,
		  uint32_t block, uint64_t i, void *to);
/** sweep_right() - got is expected, or, where rounding depends on the order, near enough. */
bool sweep_right(const struct sweep_type *type, enum muster_op op, uint32_t ranks, uint64_t i,
		 const void *got, const void *expected);
/** sweep_combine() - MUSTER_OP_USER: associative, and does not commute; of bytes. */
void sweep_combine(const void *in, void *inout, uint64_t count, void *opaque);

/* ---- cases.c ---------------------------------------------------------------------------- */

enum sweep_coll {
	SWEEP_BARRIER, SWEEP_BROADCAST, SWEEP_REDUCE, SWEEP_ALLREDUCE, SWEEP_ALLGATHER,
	SWEEP_REDUCE_SCATTER_BLOCK, SWEEP_ALLTOALL, SWEEP_GATHER, SWEEP_SCATTER, SWEEP_SCAN,
	SWEEP_EXSCAN, SWEEP_ALLGATHERV, SWEEP_REDUCE_SCATTER, SWEEP_GATHERV, SWEEP_SCATTERV,
	SWEEP_ALLTOALLV, SWEEP_ALLTOALLW, SWEEP_NEIGHBOUR_ALLGATHER, SWEEP_NEIGHBOUR_ALLTOALL,
	SWEEP_NEIGHBOUR_ALLGATHERV, SWEEP_NEIGHBOUR_ALLTOALLV, SWEEP_NEIGHBOUR_ALLTOALLW,
	SWEEP_COLLS,
};

struct sweep_coll_row {
	const char *name;
	const char *schedules;		/* whose algorithms it can be run by; NULL: it has one alone */
	bool reduces;
	bool rooted;
};

extern const struct sweep_coll_row sweep_colls[SWEEP_COLLS];

enum sweep_form { SWEEP_BLOCKING, SWEEP_STARTED, SWEEP_PERSISTENT, SWEEP_FORMS };

struct sweep_case {
	uint32_t ranks;
	enum sweep_coll coll;
	uint32_t name;			/* of an algorithm */
	const struct sweep_type *type;
	enum muster_op op;		/* 0: none */
	enum sweep_form form;
	uint64_t count;
};

/* What algorithms there are, as the library says. */
struct sweep_names {
	uint32_t nr;
	char name[SWEEP_NAMES_MAX][SWEEP_NAME_MAX];
	bool does[SWEEP_COLLS][SWEEP_NAMES_MAX];
};

typedef void sweep_take(void *opaque, const struct sweep_case *c);

/** sweep_all() - all cases of so many ranks at lengths up to 1,000. */
void sweep_all(const struct sweep_names *names, uint32_t ranks, sweep_take *take, void *opaque);
/**
 * sweep_pairs() - of the larger lengths and 1 to ranks_max ranks: cases, in which each two
 * choices that can be made together are. The same for everybody.
 */
void sweep_pairs(const struct sweep_names *names, uint32_t ranks_max, sweep_take *take,
		 void *opaque);
/** sweep_hash() - of a case: what else is drawn follows from it. */
uint64_t sweep_hash(const struct sweep_case *c);
/** sweep_data() - the same without algorithm and form: who begins with which data. */
uint64_t sweep_data(const struct sweep_case *c);

/* ---- shape.c ---------------------------------------------------------------------------- */

struct sweep_block {
	uint64_t count;			/* elements */
	uint64_t displ;			/* where it begins, in elements */
	uint32_t id;			/* which of its ranks' blocks it is */
	uint32_t first, last;		/* ranks that contribute; first > last: it is not touched */
};

/* One buffer of a rank. */
struct sweep_side {
	uint32_t nr;
	uint64_t span;			/* elements */
	struct sweep_block blocks[SWEEP_RANKS_MAX];
};

struct sweep_shape {
	uint32_t root;
	bool spread;			/* blocks backwards and with gaps, where that can be said */
	bool in_place;
	struct sweep_side in, out;
	uint32_t sources[SWEEP_EDGES], destinations[SWEEP_EDGES];
};

void sweep_shape(const struct sweep_case *c, uint32_t rank, struct sweep_shape *shape);
/** sweep_shape_blocks() - the blocks alone, of a shape whose root is given. */
void sweep_shape_blocks(const struct sweep_case *c, uint32_t rank, struct sweep_shape *shape);
/** sweep_edge() - the k-th neighbour of a rank. */
uint32_t sweep_edge(uint32_t rank, uint32_t ranks, uint32_t k, bool source);

/* ---- call.c ----------------------------------------------------------------------------- */

/** sweep_call() - call it, or start it, or make it to be started. */
int sweep_call(struct muster_comm *comm, const struct sweep_case *c, enum muster_op op,
	       const struct sweep_shape *shape, void *in, void *out,
	       struct muster_request **request);

/* ---- run.c ------------------------------------------------------------------------------ */

struct sweep_options {
	uint32_t every;			/* one case of so many, */
	uint32_t part;			/* of these that one */
	bool large;			/* lengths beyond 1,000, in pairs, for up to */
	uint32_t ranks_max;		/* so many ranks */
	void (*each)(void *opaque);	/* called with each case; or NULL */
	void *opaque;
};

struct sweep_figures {
	uint64_t cases, calls;
	uint64_t host_only;		/* that the NIC says it cannot do */
	char why[SWEEP_WHY_MAX];	/* what was wrong; empty: nothing */
};

/** sweep_run() - one rank's part; all ranks of the job have the same options. */
void sweep_run(struct muster *job, const struct sweep_options *options,
	       struct sweep_figures *figures);

#endif /* SWEEP_H */
