/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For tests only: every collective by three ranks, started or persistent, with blocks in any order and
 * in place, so that what becomes of one can be compared with what becomes of another.
 */
#ifndef MUSTER_TEST_CALLS_H
#define MUSTER_TEST_CALLS_H

#include "testing.h"

enum { TEST_CALL_RANKS = 3, TEST_CALL_LONG = 3000, TEST_CALL_ROOM = 4 * TEST_CALL_RANKS * TEST_CALL_LONG };

enum test_call {
	BARRIER, BROADCAST, REDUCE, ALLREDUCE, ALLGATHER, REDUCE_SCATTER_BLOCK, ALLTOALL, GATHER, SCATTER,
	SCAN, EXSCAN, ALLGATHERV, REDUCE_SCATTER, GATHERV, SCATTERV, ALLTOALLV, ALLTOALLW,
	REDUCE_IN_PLACE, ALLREDUCE_IN_PLACE, REDUCE_SCATTER_BLOCK_IN_PLACE, REDUCE_SCATTER_IN_PLACE, SCAN_IN_PLACE,
	EXSCAN_IN_PLACE, ALLTOALL_IN_PLACE, ALLGATHERV_IN_PLACE, ALLTOALLV_IN_PLACE, ALLREDUCE_EXACT,
	REDUCE_SCATTER_EXACT, ALLREDUCE_USER, SCAN_USER,
	TEST_CALLS,	/* and these, where there are neighbours: */
	NEIGHBOUR_ALLGATHER = TEST_CALLS, NEIGHBOUR_ALLTOALLV, TEST_CALLS_ALL,
};

/* Blocks not in the order of ranks, with room between them, so that results are copied. */
static inline void test_call_blocks(uint64_t count, uint64_t *counts, uint64_t *displs)
{
	for (uint32_t i = 0; i < TEST_CALL_RANKS; i++) {
		counts[i] = count + i;
		displs[i] = (TEST_CALL_RANKS - 1 - i) * (count + TEST_CALL_RANKS + 1);
	}
}

static inline void test_call_add(const void *in, void *inout, uint64_t count, void *opaque)
{
	const int64_t *from = in;
	int64_t *to = inout;

	(void)opaque;
	for (uint64_t i = 0; i < count; i++)
		to[i] = (int64_t)((uint64_t)to[i] + (uint64_t)from[i]);
}

/* persistent: made, not started. Operations of the caller's own are MUSTER_OP_USER. */
static inline int test_call(struct muster_comm *comm, enum test_call what, uint64_t n, int64_t *in, int64_t *out,
			    bool persistent, struct muster_request **request)
{
	uint64_t counts[TEST_CALL_RANKS], displs[TEST_CALL_RANKS], same[TEST_CALL_RANKS], bytes[TEST_CALL_RANKS];
	static const enum muster_type types[TEST_CALL_RANKS] = { MUSTER_I64, MUSTER_C32, MUSTER_U64 };
	uint64_t mine = n + muster_comm_rank(comm);
	uint32_t root = 1;

	test_call_blocks(n, counts, displs);
	for (uint32_t i = 0; i < TEST_CALL_RANKS; i++) {
		same[i] = n;
		bytes[i] = displs[i] * sizeof(*in);
	}
#define CALL(name, ...)	(persistent ? muster_##name##_init : muster_##name##_start)(comm, __VA_ARGS__, request)
	switch (what) {
	case BARRIER:
		return (persistent ? muster_barrier_init : muster_barrier_start)(comm, request);
	case BROADCAST:
		return CALL(broadcast, muster_comm_rank(comm) == root ? in : out, n, MUSTER_I64, root);
	case REDUCE:
		return CALL(reduce, in, out, n, MUSTER_I64, MUSTER_SUM, root);
	case ALLREDUCE:
		return CALL(allreduce, in, out, n, MUSTER_I64, MUSTER_SUM);
	case ALLGATHER:
		return CALL(allgather, in, out, n, MUSTER_I64);
	case REDUCE_SCATTER_BLOCK:
		return CALL(reduce_scatter_block, in, out, n, MUSTER_I64, MUSTER_SUM);
	case ALLTOALL:
		return CALL(alltoall, in, out, n, MUSTER_I64);
	case GATHER:
		return CALL(gather, in, out, n, MUSTER_I64, root);
	case SCATTER:
		return CALL(scatter, in, out, n, MUSTER_I64, root);
	case SCAN:
		return CALL(scan, in, out, n, MUSTER_I64, MUSTER_SUM);
	case EXSCAN:
		return CALL(exscan, in, out, n, MUSTER_I64, MUSTER_SUM);
	case ALLGATHERV:
		return CALL(allgatherv, in, out, counts, displs, MUSTER_I64);
	case REDUCE_SCATTER:
		return CALL(reduce_scatter, in, out, counts, MUSTER_I64, MUSTER_SUM);
	case GATHERV:
		return CALL(gatherv, in, mine, out, counts, displs, MUSTER_I64, root);
	case SCATTERV:
		return CALL(scatterv, in, counts, displs, out, mine, MUSTER_I64, root);
	case ALLTOALLV:
		return CALL(alltoallv, in, same, displs, out, same, displs, MUSTER_I64);
	case ALLTOALLW:
		return CALL(alltoallw, in, same, bytes, types, out, same, bytes, types);
	case REDUCE_IN_PLACE:
		return CALL(reduce, out, out, n, MUSTER_I64, MUSTER_SUM, root);
	case ALLREDUCE_IN_PLACE:
		return CALL(allreduce, out, out, n, MUSTER_I64, MUSTER_SUM);
	case REDUCE_SCATTER_BLOCK_IN_PLACE:
		return CALL(reduce_scatter_block, out, out, n, MUSTER_I64, MUSTER_SUM);
	case REDUCE_SCATTER_IN_PLACE:
		return CALL(reduce_scatter, out, out, counts, MUSTER_I64, MUSTER_SUM);
	case SCAN_IN_PLACE:
		return CALL(scan, out, out, n, MUSTER_I64, MUSTER_SUM);
	case EXSCAN_IN_PLACE:
		return CALL(exscan, out, out, n, MUSTER_I64, MUSTER_SUM);
	case ALLTOALL_IN_PLACE:
		return CALL(alltoall, out, out, n, MUSTER_I64);
	case ALLGATHERV_IN_PLACE:
		return CALL(allgatherv, out, out, counts, displs, MUSTER_I64);
	case ALLTOALLV_IN_PLACE:
		return CALL(alltoallv, out, NULL, NULL, out, same, displs, MUSTER_I64);
	case ALLREDUCE_EXACT:
		return CALL(allreduce, out, out, n, MUSTER_F64, MUSTER_SUM_EXACT);
	case REDUCE_SCATTER_EXACT:
		return CALL(reduce_scatter_block, in, out, n, MUSTER_F64, MUSTER_SUM_EXACT);
	case ALLREDUCE_USER:
		return CALL(allreduce, out, out, n, MUSTER_I64, MUSTER_OP_USER);
	case SCAN_USER:
		return CALL(scan, in, out, n, MUSTER_I64, MUSTER_OP_USER);
	case NEIGHBOUR_ALLGATHER:
		return CALL(neighbour_allgather, in, out, n, MUSTER_I64);
	default:
		return CALL(neighbour_alltoallv, in, same, displs, out, same, displs, MUSTER_I64);
	}
#undef CALL
}

#endif /* MUSTER_TEST_CALLS_H */
