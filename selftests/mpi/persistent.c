// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An MPI program: persistent collectives, started again and again with other data, in each Wait and
 * Test, beside persistent messages, nonblocking collectives and requests that are inactive.
 *
 * usage: persistent    Rank 0 prints "right"; else a rank says what was wrong, exit 1.
 */
#include <string.h>

#include "must.h"

#ifdef OPEN_MPI
#include <mpi-ext.h>
#define INIT(name) MPIX_##name##_init
#else
#define INIT(name) MPI_##name##_init
#endif

enum { ROUNDS = 4, RANKS_MAX = 8, COUNT = 3, ROOM = RANKS_MAX * COUNT };

static int in[ROOM], out[ROOM];

/* ---- each collective ------------------------------------------------------------------------------ */

enum { ALLREDUCE, BCAST, REDUCE, SCAN, EXSCAN, GATHER, SCATTER, ALLGATHER, ALLTOALL, SCATTER_BLOCK,
	GATHERV, SCATTERV, ALLGATHERV, ALLTOALLV, ALLTOALLW, REDUCE_SCATTER, BARRIER, COLLS };

static int counts[RANKS_MAX], displs[RANKS_MAX], bytes[RANKS_MAX];

static void init(int coll, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
	static MPI_Datatype types[RANKS_MAX];
	MPI_Info info = MPI_INFO_NULL;

	for (int r = 0; r < size; r++)
		types[r] = type;
#define IS(which, name, ...)	case which: MUST(!INIT(name)(__VA_ARGS__, comm, info, request)); break;
	switch (coll) {
	IS(ALLREDUCE, Allreduce, in, out, COUNT, type, op)
	IS(BCAST, Bcast, rank == 1 ? in : out, COUNT, type, 1)
	IS(REDUCE, Reduce, in, out, COUNT, type, op, 1)
	IS(SCAN, Scan, in, out, COUNT, type, op)
	IS(EXSCAN, Exscan, in, out, COUNT, type, op)
	IS(GATHER, Gather, in, COUNT, type, out, COUNT, type, 1)
	IS(SCATTER, Scatter, in, COUNT, type, out, COUNT, type, 1)
	IS(ALLGATHER, Allgather, in, COUNT, type, out, COUNT, type)
	IS(ALLTOALL, Alltoall, in, COUNT, type, out, COUNT, type)
	IS(SCATTER_BLOCK, Reduce_scatter_block, in, out, COUNT, type, op)
	IS(GATHERV, Gatherv, in, COUNT, type, out, counts, displs, type, 1)
	IS(SCATTERV, Scatterv, in, counts, displs, type, out, COUNT, type, 1)
	IS(ALLGATHERV, Allgatherv, in, COUNT, type, out, counts, displs, type)
	IS(ALLTOALLV, Alltoallv, in, counts, displs, type, out, counts, displs, type)
	IS(ALLTOALLW, Alltoallw, in, counts, bytes, types, out, counts, bytes, types)
	IS(REDUCE_SCATTER, Reduce_scatter, in, out, counts, type, op)
	default: MUST(!INIT(Barrier)(comm, info, request));
	}
#ifdef OPEN_MPI		/* Fortran's are gone by now; but MPICH looks at them when the request is freed */
	memset(types, 0, sizeof(types));
#endif
}

static int value(int sender, int i, int round)
{
	return 1000 * round + 100 * sender + i;
}

/* The sum of the first ranks' elements. */
static int sum(int ranks, int i, int round)
{
	return ranks * (1000 * round + i) + 100 * ranks * (ranks - 1) / 2;
}

/* What element i of out is to be; -1: as it was. */
static int wanted(int coll, int i, int round)
{
	int block = i / COUNT, has_one = block == 0, has_all = block < size;

	switch (coll) {
	case ALLREDUCE: return has_one ? sum(size, i, round) : -1;
	case BCAST: return has_one && rank != 1 ? value(1, i, round) : -1;
	case REDUCE: return has_one && rank == 1 ? sum(size, i, round) : -1;
	case SCAN: return has_one ? sum(rank + 1, i, round) : -1;
	case EXSCAN: return has_one && rank ? sum(rank, i, round) : -1;
	case GATHER:
	case GATHERV: return has_all && rank == 1 ? value(block, i % COUNT, round) : -1;
	case SCATTER:
	case SCATTERV: return has_one ? value(1, rank * COUNT + i, round) : -1;
	case ALLGATHER:
	case ALLGATHERV: return has_all ? value(block, i % COUNT, round) : -1;
	case ALLTOALL:
	case ALLTOALLV:
	case ALLTOALLW: return has_all ? value(block, rank * COUNT + i % COUNT, round) : -1;
	case SCATTER_BLOCK:
	case REDUCE_SCATTER: return has_one ? sum(size, rank * COUNT + i, round) : -1;
	default: return -1;
	}
}

static void fill(int round)
{
	memset(out, -1, sizeof(out));
	for (int i = 0; i < ROOM; i++)
		in[i] = value(rank, i, round);
}

static void run(int coll, MPI_Request *request)
{
	for (int round = 0; round < ROUNDS; round++) {
		MPI_Request before = *request;

		fill(round);
		MUST(!MPI_Start(request));
		MUST(!MPI_Wait(request, MPI_STATUS_IGNORE));
		MUST(*request == before);
		for (int i = 0; i < ROOM; i++)
			MUST(out[i] == wanted(coll, i, round));
	}
}

static void add(void *from, void *to, int *nr, MPI_Datatype *type)
{
	(void)type;
	for (int i = 0; i < *nr; i++)
		((int *)to)[i] += ((int *)from)[i];
}

/* Of MPI's type and operation, then of the user's, freed before the first start. */
static void each(MPI_Comm comm)
{
	MPI_Request request;
	MPI_Datatype type;
	MPI_Op op;

	for (int coll = 0; coll < COLLS; coll++) {
		init(coll, MPI_INT, MPI_SUM, comm, &request);
		run(coll, &request);
		MUST(!MPI_Request_free(&request) && request == MPI_REQUEST_NULL);
#ifdef MPICH_VERSION	/* 4.0.2 itself loses a derived type of one that is made and freed */
		type = MPI_INT;
#else
		MPI_Type_contiguous(1, MPI_INT, &type);
		MPI_Type_commit(&type);
#endif
		MPI_Op_create(add, 1, &op);
		init(coll, type, op, comm, &request);
		if (type != MPI_INT)
			MPI_Type_free(&type);
		MPI_Op_free(&op);
		run(coll, &request);
		MUST(!MPI_Request_free(&request));
	}
}

/* ---- neighbours ------------------------------------------------------------------------------------ */

static void neighbours(void)
{
	int ring = 1, before = (rank + size - 1) % size, after = (rank + 1) % size;
	int twos[2] = { 1, 1 }, at[2] = { 0, 1 };
	MPI_Aint ats[2] = { 0, sizeof(int) };
	MPI_Datatype types[2] = { MPI_INT, MPI_INT };
	MPI_Info info = MPI_INFO_NULL;
	MPI_Request requests[5];
	MPI_Comm comm;

	MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &ring, 0, &comm);
	INIT(Neighbor_allgather)(in, 1, MPI_INT, out, 1, MPI_INT, comm, info, &requests[0]);
	INIT(Neighbor_allgatherv)(in, 1, MPI_INT, out, twos, at, MPI_INT, comm, info, &requests[1]);
	INIT(Neighbor_alltoall)(in, 1, MPI_INT, out, 1, MPI_INT, comm, info, &requests[2]);
	INIT(Neighbor_alltoallv)(in, twos, at, MPI_INT, out, twos, at, MPI_INT, comm, info, &requests[3]);
	INIT(Neighbor_alltoallw)(in, twos, ats, types, out, twos, ats, types, comm, info, &requests[4]);
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < 5; i++) {
			fill(round);
			MUST(!MPI_Start(&requests[i]) && !MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
			MUST(out[0] == value(before, i < 2 ? 0 : 1, round));
			MUST(out[1] == value(after, 0, round) && out[2] == -1);
		}
	for (int i = 0; i < 5; i++)
		MPI_Request_free(&requests[i]);
	MPI_Comm_free(&comm);
}

/* ---- requests ---------------------------------------------------------------------------------------- */

/* Two persistent collectives, a persistent message each way, a nonblocking one, and two inactive. */
enum { SUMS, TAKES, SENDS, BARRIERS, NOW, NOTHING, IDLE, MIXED };

static int is_active(int i)
{
	return i < NOTHING;
}

static void wait_all(int how, MPI_Request *requests)
{
	MPI_Status statuses[MIXED];
	int done = 0, nr, flag, which[MIXED];

	while (done < NOTHING) {
		nr = 0;
		if (how == 0) {
			MUST(!MPI_Waitall(MIXED, requests, statuses));
			nr = NOTHING;
		} else if (how == 1) {
			MUST(!MPI_Waitany(MIXED, requests, which, MPI_STATUS_IGNORE));
			MUST(which[0] >= 0 && is_active(which[0]));
			nr = 1;
		} else if (how == 2) {
			MUST(!MPI_Waitsome(MIXED, requests, &nr, which, statuses));
		} else if (how == 3) {
			MUST(!MPI_Testany(MIXED, requests, which, &nr, MPI_STATUS_IGNORE));
			MUST(!nr || is_active(which[0]));
		} else if (how == 4) {
			MUST(!MPI_Testsome(MIXED, requests, &nr, which, statuses));
		} else if (how == 5) {
			MUST(!MPI_Testall(MIXED, requests, &flag, statuses));
			nr = flag * NOTHING;
		} else {
			MUST(!MPI_Request_get_status(requests[done], &flag, statuses));
			nr = flag ? MPI_Test(&requests[done], &flag, statuses) || flag : 0;
		}
		MUST(nr >= 0);
		done += nr;
	}
	MUST(done == NOTHING);
}

/* Nothing of it is under way. */
static void all_idle(MPI_Request *requests)
{
	int which, flag, nr, places[MIXED];
	MPI_Status statuses[MIXED];

	MUST(!MPI_Waitany(MIXED, requests, &which, MPI_STATUS_IGNORE) && which == MPI_UNDEFINED);
	MUST(!MPI_Testany(MIXED, requests, &which, &flag, MPI_STATUS_IGNORE));
	MUST(flag && which == MPI_UNDEFINED);
	MUST(!MPI_Waitsome(MIXED, requests, &nr, places, statuses) && nr == MPI_UNDEFINED);
	MUST(!MPI_Waitall(MIXED, requests, statuses));
	MUST(!MPI_Test(&requests[SUMS], &flag, MPI_STATUS_IGNORE) && flag);
	MUST(!MPI_Request_get_status(requests[SUMS], &flag, MPI_STATUS_IGNORE) && flag);
}

static void mixed(MPI_Comm comm)
{
	int next = (rank + 1) % size, before = (rank + size - 1) % size, total = 0, got = 0, now = 0;
	MPI_Request requests[MIXED], kept[MIXED];

	INIT(Allreduce)(in, &total, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[SUMS]);
	MPI_Recv_init(&got, 1, MPI_INT, before, 0, comm, &requests[TAKES]);
	MPI_Send_init(in, 1, MPI_INT, next, 0, comm, &requests[SENDS]);
	INIT(Barrier)(comm, MPI_INFO_NULL, &requests[BARRIERS]);
	INIT(Bcast)(in, 1, MPI_INT, 0, comm, MPI_INFO_NULL, &requests[IDLE]);
	requests[NOW] = requests[NOTHING] = MPI_REQUEST_NULL;
	memcpy(kept, requests, sizeof(kept));
	for (int how = 0; how < 7; how++) {
		all_idle(requests);
		fill(how);
		total = got = now = -1;
		MUST(!MPI_Startall(NOW, requests));
		MUST(!MPI_Iallreduce(&rank, &now, 1, MPI_INT, MPI_MAX, comm, &requests[NOW]));
		wait_all(how, requests);
		MUST(total == sum(size, 0, how) && got == value(before, 0, how) && now == size - 1);
		MUST(!memcmp(kept, requests, sizeof(kept)));
	}
	for (int i = 0; i < MIXED; i++)
		if (requests[i] != MPI_REQUEST_NULL)
			MUST(!MPI_Request_free(&requests[i]));
}

/* What all have made in one order, ranks may start in any, and also beside others. */
static void any_order(MPI_Comm comm)
{
	enum { SUM, WORD, ALL, ORDERED };
	int total, word, late = 0;
	MPI_Request requests[ORDERED + 1];
	MPI_Status statuses[ORDERED + 1];

	INIT(Allreduce)(in, &total, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[SUM]);
	INIT(Bcast)(&word, 1, MPI_INT, 0, comm, MPI_INFO_NULL, &requests[WORD]);
	INIT(Barrier)(comm, MPI_INFO_NULL, &requests[ALL]);
	for (int round = 0; round < ROUNDS; round++) {
		fill(round);
		word = rank ? -1 : round;
		total = late = -1;
		if (rank % 2)
			MPI_Iallreduce(&rank, &late, 1, MPI_INT, MPI_MAX, comm, &requests[ORDERED]);
		for (int i = 0; i < ORDERED; i++)
			MUST(!MPI_Start(&requests[(rank * (round + 1) + i) % ORDERED]));
		if (rank % 2 == 0)
			MPI_Iallreduce(&rank, &late, 1, MPI_INT, MPI_MAX, comm, &requests[ORDERED]);
		MUST(!MPI_Waitall(ORDERED + 1, requests, statuses));
		MUST(total == sum(size, 0, round) && word == round && late == size - 1);
	}
	for (int i = 0; i < ORDERED; i++)
		MUST(!MPI_Request_free(&requests[i]));
}

/* Freed while it is under way, it ends all the same; and with its communicator it may be started. */
static void freed(void)
{
	MPI_Request request;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	init(ALLREDUCE, MPI_INT, MPI_SUM, comm, &request);
	fill(1);
	MUST(!MPI_Start(&request) && !MPI_Request_free(&request) && request == MPI_REQUEST_NULL);
	MPI_Barrier(comm);
	MPI_Barrier(comm);
	init(ALLREDUCE, MPI_INT, MPI_SUM, comm, &request);
	MPI_Comm_free(&comm);
	run(ALLREDUCE, &request);
	MUST(!MPI_Request_free(&request));
}

int main(int argc, char **argv)
{
	MPI_Comm dup;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MUST(size > 1 && size <= RANKS_MAX);
	for (int r = 0; r < size; r++) {
		counts[r] = COUNT;
		displs[r] = r * COUNT;
		bytes[r] = r * COUNT * (int)sizeof(int);
	}
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	each(dup);
	MPI_Comm_free(&dup);
	neighbours();
	mixed(MPI_COMM_WORLD);
	any_order(MPI_COMM_WORLD);
	freed();
	if (!rank)
		puts("right");
	MPI_Finalize();
	return 0;
}
