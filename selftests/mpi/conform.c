// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An MPI program: each collective, of several types, counts, roots and communicators, in place
 * and not, blocking and nonblocking, against the MPI library's own, which is called past whatever
 * stands before it. Values are small whole numbers, so that every order of summing is right.
 *
 * usage: conform [quick | COLLECTIVE]    quick: a sample of all.
 * Rank 0 prints how many cases were right. Exit 1: one was not.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef OPEN_MPI
#define LIBRARY "libmpi.so.40"
#define PAIR MPI_DOUBLE_INT
#else
#define LIBRARY "libmpich.so.12"
#define PAIR MPI_2INT	/* MPICH 4.0.2 crashes on pairs that have gaps */
#endif

enum { COUNT_MAX = 3000, RANKS_MAX = 16, ELEMENT_MAX = 32, GUARD = 64 };

#define COLLECTIVES(X)							\
	X(Barrier) X(Bcast) X(Reduce) X(Allreduce) X(Gather) X(Gatherv)	\
	X(Scatter) X(Scatterv) X(Allgather) X(Allgatherv) X(Alltoall)	\
	X(Alltoallv) X(Alltoallw) X(Reduce_scatter) X(Reduce_scatter_block) \
	X(Scan) X(Exscan)

static struct {
#define POINTER(name) __typeof__(&MPI_##name) name;
	COLLECTIVES(POINTER)
} beneath;

enum coll {
#define NUMBER(name) name,
	COLLECTIVES(NUMBER)
	COLLS
};

static const char *const names[] = {
#define NAME(name) #name,
	COLLECTIVES(NAME)
};

/* One case, on all ranks of a communicator. */
struct test {
	enum coll coll;
	MPI_Comm comm;
	const char *comm_name;
	int rank, size, root;
	MPI_Datatype type;
	const char *type_name;
	int count;
	MPI_Op op;
	int in_place;
	int nonblocking;
	int counts[RANKS_MAX], displs[RANKS_MAX], bytes_displs[RANKS_MAX];
	MPI_Datatype types[RANKS_MAX];
};

static size_t room, room_max;	/* bytes of a buffer that a case uses */
static char *ours[2], *theirs[2];	/* in, out */
static int world_rank, passed, failed, quick;

static void find_beneath(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD);

	if (!library) {
		fprintf(stderr, "conform: no %s: %s\n", LIBRARY, dlerror());
		exit(1);
	}
#define FIND(name) *(void **)&beneath.name = dlsym(library, "PMPI_" #name);
	COLLECTIVES(FIND)
}

/* ---- data ---------------------------------------------------------------------------------- */

static void fill(char *buffer, const struct test *t, int seed)
{
	size_t nr = room;

	if (t->type == MPI_DOUBLE)
		for (size_t i = 0; i < nr / sizeof(double); i++)
			((double *)buffer)[i] = (double)((i + (size_t)seed) % 3 + 1);
	else if (t->type == MPI_FLOAT)
		for (size_t i = 0; i < nr / sizeof(float); i++)
			((float *)buffer)[i] = (float)((i + (size_t)seed) % 3 + 1);
	else if (t->type == MPI_LONG_DOUBLE)
		for (size_t i = 0; i < nr / sizeof(long double); i++)
			((long double *)buffer)[i] = (long double)((i + (size_t)seed) % 3 + 1);
	else if (t->type == MPI_INT)
		for (size_t i = 0; i < nr / sizeof(int); i++)
			((int *)buffer)[i] = (int)((i * 7 + (size_t)seed) % 5);
	else if (t->type == MPI_UNSIGNED_SHORT)	/* Open MPI's saturate where they should wrap */
		for (size_t i = 0; i < nr / sizeof(short); i++)
			((unsigned short *)buffer)[i] = (unsigned short)((i * 7 + (size_t)seed) % 900);
	else if (t->type == MPI_2INT)
		for (size_t i = 0; i < nr / sizeof(int); i++)
			((int *)buffer)[i] = i % 2 ? seed : (int)((i + (size_t)seed) % 3);
	else if (t->type == MPI_DOUBLE_INT)
		for (size_t i = 0; i < nr / sizeof(struct { double v; int i; }); i++) {
			struct { double v; int i; } *pair = (void *)buffer;

			memset(&pair[i], 0, sizeof(*pair));
			pair[i].v = (double)((i + (size_t)seed) % 3);
			pair[i].i = seed;
		}
	else
		for (size_t i = 0; i < nr; i++)
			buffer[i] = (char)(i * 31 + (size_t)seed * 17);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static const void *input(const struct test *t, char *in, int at_root_only)
{
	return t->in_place && (!at_root_only || t->rank == t->root) ? MPI_IN_PLACE : in;
}

/* by_us: through whatever stands before the MPI library. */
static int call(const struct test *t, char *in, char *out, int by_us)
{
	const void *from = input(t, in, 0), *rooted = input(t, in, 1);
	void *to = t->in_place && t->rank == t->root ? MPI_IN_PLACE : out;
	int n = t->count;
	MPI_Datatype d = t->type;
	MPI_Request r;
	int err;

#define DO(name, iname, ...)						\
	if (!by_us)							\
		return beneath.name(__VA_ARGS__, t->comm);		\
	if (!t->nonblocking)						\
		return MPI_##name(__VA_ARGS__, t->comm);		\
	err = MPI_##iname(__VA_ARGS__, t->comm, &r);			\
	return err ? err : MPI_Wait(&r, MPI_STATUS_IGNORE);

	switch (t->coll) {
	case Barrier:
		if (!by_us)
			return beneath.Barrier(t->comm);
		if (!t->nonblocking)
			return MPI_Barrier(t->comm);
		err = MPI_Ibarrier(t->comm, &r);
		return err ? err : MPI_Wait(&r, MPI_STATUS_IGNORE);
	case Bcast: DO(Bcast, Ibcast, t->rank == t->root ? in : out, n, d, t->root)
	case Reduce: DO(Reduce, Ireduce, rooted, out, n, d, t->op, t->root)
	case Allreduce: DO(Allreduce, Iallreduce, from, out, n, d, t->op)
	case Scan: DO(Scan, Iscan, from, out, n, d, t->op)
	case Exscan: DO(Exscan, Iexscan, from, out, n, d, t->op)
	case Reduce_scatter_block: DO(Reduce_scatter_block, Ireduce_scatter_block, from, out, n, d, t->op)
	case Reduce_scatter: DO(Reduce_scatter, Ireduce_scatter, from, out, t->counts, d, t->op)
	case Gather: DO(Gather, Igather, rooted, n, d, out, n, d, t->root)
	case Scatter: DO(Scatter, Iscatter, in, n, d, to, n, d, t->root)
	case Allgather: DO(Allgather, Iallgather, from, n, d, out, n, d)
	case Alltoall: DO(Alltoall, Ialltoall, from, n, d, out, n, d)
	case Gatherv: DO(Gatherv, Igatherv, rooted, t->counts[t->rank], d, out, t->counts, t->displs, d, t->root)
	case Scatterv: DO(Scatterv, Iscatterv, in, t->counts, t->displs, d, to, t->counts[t->rank], d, t->root)
	case Allgatherv: DO(Allgatherv, Iallgatherv, from, t->counts[t->rank], d, out, t->counts, t->displs, d)
	case Alltoallv: DO(Alltoallv, Ialltoallv, from, t->counts, t->displs, d, out, t->counts, t->displs, d)
	case Alltoallw: DO(Alltoallw, Ialltoallw, from, t->counts, t->bytes_displs, t->types, out, t->counts, t->bytes_displs, t->types)
	default: return MPI_ERR_INTERN;
	}
}

/* Lengths of blocks: of rank r to all, and, for alltoall, the same between two ranks both ways. */
static void lay_out(struct test *t)
{
	MPI_Aint low, extent;
	int at = 0;

	MPI_Type_get_extent(t->type, &low, &extent);
	for (int r = 0; r < t->size; r++) {
		int other = t->coll == Alltoallv || t->coll == Alltoallw ? (r + t->rank) % 3 : r % 3;

		t->counts[r] = t->count ? t->count / (1 + other) : 0;
		t->displs[r] = at;
		t->bytes_displs[r] = (int)(at * extent);
		t->types[r] = t->type;
		at += t->coll == Reduce_scatter ? t->counts[r] : t->count + 1;
	}
}

/* In place, what lies behind the result is the MPI library's to use. */
static size_t significant(const struct test *t)
{
	MPI_Aint low, extent;

	MPI_Type_get_extent(t->type, &low, &extent);
	return t->coll == Reduce_scatter && t->in_place ? (size_t)(t->counts[t->rank] * extent) : room;
}

/* Bytes that a value does not use may be anything. */
static int differ(const struct test *t, const char *a, const char *b, size_t bytes)
{
	if (t->type != MPI_LONG_DOUBLE)
		return memcmp(a, b, bytes);
	for (size_t i = 0; i < bytes / sizeof(long double); i++)
		if (((const long double *)a)[i] != ((const long double *)b)[i])
			return 1;
	return 0;
}

static void run(struct test *t)
{
	int wrong, errs[2];

	room = (size_t)t->size * (size_t)(t->count + 1) * ELEMENT_MAX + GUARD;
	lay_out(t);
	for (int by_us = 0; by_us < 2; by_us++) {
		char **buffers = by_us ? ours : theirs;

		fill(buffers[0], t, t->rank);
		fill(buffers[1], t, t->rank + 3);
		errs[by_us] = call(t, buffers[0], buffers[1], by_us);
	}
	wrong = errs[0] != errs[1] || differ(t, ours[0], theirs[0], room) ||
		differ(t, ours[1], theirs[1], significant(t));
	passed += !wrong;
	failed += wrong;
	if (wrong)
		printf("not ok: rank %d of %s: %s%s of %d %s, root %d, in place %d: %d, %d\n", t->rank,
		       t->comm_name, t->nonblocking ? "I" : "", names[t->coll], t->count, t->type_name,
		       t->root, t->in_place, errs[0], errs[1]);
}

/* ---- the cases ---------------------------------------------------------------------------------- */

static int is_reduction(enum coll coll)
{
	return coll == Reduce || coll == Allreduce || coll == Scan || coll == Exscan ||
	       coll == Reduce_scatter || coll == Reduce_scatter_block;
}

static int has_root(enum coll coll)
{
	return coll == Bcast || coll == Reduce || coll == Gather || coll == Gatherv || coll == Scatter ||
	       coll == Scatterv;
}

static int has_in_place(enum coll coll)
{
	return coll != Barrier && coll != Bcast;
}

static void run_ways(struct test t)
{
	int roots = has_root(t.coll) ? t.size : 1, ways = has_in_place(t.coll) ? 2 : 1;

	for (t.root = 0; t.root < roots; t.root += roots > 2 ? roots - 1 : 1)
		for (t.in_place = 0; t.in_place < ways; t.in_place++)
			for (t.nonblocking = 0; t.nonblocking < 2; t.nonblocking++) {
#ifdef MPICH_VERSION
				/* MPICH 4.0.2 crashes on long ones. */
				if (t.in_place && t.coll == Reduce && t.root)
					continue;
#endif
				run(&t);
			}
}

/* x -> a * x + b, one after the other: the order matters. b lies at the end of the element. */
static void compose(void *in, void *inout, int *nr, MPI_Datatype *type)
{
	MPI_Aint low, extent;

	MPI_Type_get_extent(*type, &low, &extent);
	for (int i = 0; i < *nr; i++) {
		const char *f = (char *)in + i * extent;
		char *g = (char *)inout + i * extent;
		unsigned int a, b, c, d;

		memcpy(&a, f, sizeof(a));
		memcpy(&b, f + extent - sizeof(b), sizeof(b));
		memcpy(&c, g, sizeof(c));
		memcpy(&d, g + extent - sizeof(d), sizeof(d));
		d = a * d + b;
		c = a * c;
		memcpy(g, &c, sizeof(c));
		memcpy(g + extent - sizeof(d), &d, sizeof(d));
	}
}

/* Operations of the user's and what Muster has no type for; of types without and with gaps. */
static void run_users(struct test t)
{
	MPI_Datatype twice, gaps;

	MPI_Op_create(compose, 0, &t.op);
	MPI_Type_contiguous(2, MPI_UNSIGNED, &twice);
	MPI_Type_vector(2, 1, 2, MPI_UNSIGNED, &gaps);
	MPI_Type_commit(&twice);
	MPI_Type_commit(&gaps);
	t.type_name = "composed", t.type = twice, run_ways(t);
	if (!quick || t.coll == Allreduce || t.coll == Scan)
		t.type_name = "composed with gaps", t.type = gaps, run_ways(t);
	MPI_Type_free(&twice);
	MPI_Type_free(&gaps);
	MPI_Op_free(&t.op);
	t.op = MPI_SUM;
	if (!quick)
		t.type_name = "MPI_LONG_DOUBLE", t.type = MPI_LONG_DOUBLE, run_ways(t);
}

static void run_reductions(struct test t)
{
	static const struct {
		const char *name;
		MPI_Datatype type;
		MPI_Op op;
	} kinds[] = {
		{ "MPI_INT sum", MPI_INT, MPI_SUM }, { "MPI_DOUBLE sum", MPI_DOUBLE, MPI_SUM },
		{ "MPI_FLOAT prod", MPI_FLOAT, MPI_PROD }, { "MPI_INT bxor", MPI_INT, MPI_BXOR },
		{ "MPI_INT land", MPI_INT, MPI_LAND }, { "MPI_DOUBLE max", MPI_DOUBLE, MPI_MAX },
		{ "MPI_SIGNED_CHAR min", MPI_SIGNED_CHAR, MPI_MIN },
		{ "MPI_UNSIGNED_SHORT sum", MPI_UNSIGNED_SHORT, MPI_SUM },
		{ "pairs minloc", PAIR, MPI_MINLOC },
		{ "MPI_BYTE bor", MPI_BYTE, MPI_BOR },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (quick && i % 4 != 1 && i != 8)
			continue;
		t.type_name = kinds[i].name;
		t.type = kinds[i].type;
		t.op = kinds[i].op;
		run_ways(t);
	}
	run_users(t);
}

/* In the last data lies in another order than it is sent in. */
static void run_moves(struct test t)
{
	static const int backwards[] = { 2, 0, 1 };
	MPI_Datatype gaps, order, twice;

	MPI_Type_vector(3, 1, 2, MPI_INT, &gaps);
	MPI_Type_create_indexed_block(3, 1, backwards, MPI_INT, &order);
	MPI_Type_contiguous(2, MPI_INT, &twice);
	MPI_Type_commit(&gaps);
	MPI_Type_commit(&order);
	MPI_Type_commit(&twice);
	if (!quick) {
		t.type_name = "MPI_CHAR", t.type = MPI_CHAR, run_ways(t);
		t.type_name = "pairs", t.type = PAIR, run_ways(t);
		t.type_name = "pairs of MPI_INT", t.type = twice, run_ways(t);
		t.type_name = "every other MPI_INT", t.type = gaps, run_ways(t);
	}
	t.type_name = "MPI_INT", t.type = MPI_INT, run_ways(t);
	t.type_name = "MPI_INT in another order", t.type = order, run_ways(t);
	MPI_Type_free(&gaps);
	MPI_Type_free(&order);
	MPI_Type_free(&twice);
}

static void run_comm(MPI_Comm comm, const char *name, const int *counts, int nr_counts, int coll)
{
	struct test t = { .comm = comm, .comm_name = name, .op = MPI_SUM };

	MPI_Comm_rank(comm, &t.rank);
	MPI_Comm_size(comm, &t.size);
	for (int c = 0; c < COLLS; c++)
		for (int i = 0; i < nr_counts; i++) {
			t.coll = (enum coll)c;
			t.count = counts[i];
			if (coll >= 0 && coll != c)
				continue;
			if (c == Barrier)
				t.type = MPI_BYTE, t.type_name = "nothing", run_ways(t);
			else
				(is_reduction(t.coll) ? run_reductions : run_moves)(t);
		}
}

static void run_all(int coll)
{
	static const int many[] = { 0, 600, 1, 7, COUNT_MAX }, few[] = { 9 };
	int rank, size, others[RANKS_MAX], nr = quick ? 2 : sizeof(many) / sizeof(*many);
	MPI_Comm dup, split, group_comm;
	MPI_Group all, group;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	run_comm(MPI_COMM_WORLD, "the world", many, nr, coll);
	run_comm(MPI_COMM_SELF, "self", few, 1, coll);
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	run_comm(dup, "a dup", few, 1, coll);
	MPI_Comm_free(&dup);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &split);
	run_comm(split, "a split", few, 1, coll);
	MPI_Comm_free(&split);
	for (int r = 1; r < size; r++)
		others[r - 1] = size - r;
	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_incl(all, size - 1, others, &group);
	if (rank) {
		MPI_Comm_create_group(MPI_COMM_WORLD, group, 5, &group_comm);
		run_comm(group_comm, "a group", few, 1, coll);
		MPI_Comm_free(&group_comm);
	}
	MPI_Group_free(&group);
	MPI_Group_free(&all);
}

int main(int argc, char **argv)
{
	int coll = -1, size, all[2], mine[2];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size > RANKS_MAX)
		MPI_Abort(MPI_COMM_WORLD, 2);
	find_beneath();
	quick = argc > 1 && !strcmp(argv[1], "quick");
	for (int c = 0; c < COLLS && argc > 1; c++)
		if (!strcmp(names[c], argv[1]))
			coll = c;
	room_max = (size_t)size * (COUNT_MAX + 1) * ELEMENT_MAX + GUARD;
	for (int i = 0; i < 2; i++) {
		ours[i] = malloc(room_max);
		theirs[i] = malloc(room_max);
		if (!ours[i] || !theirs[i])
			MPI_Abort(MPI_COMM_WORLD, 2);
	}
	run_all(coll);
	mine[0] = passed;
	mine[1] = failed;
	beneath.Allreduce(mine, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (!world_rank)
		printf("%d right, %d wrong\n", all[0], all[1]);
	for (int i = 0; i < 2; i++) {
		free(ours[i]);
		free(theirs[i]);
	}
	MPI_Finalize();
	return all[1] > 0;
}
