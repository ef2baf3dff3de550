// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An MPI program that a seed draws: collectives of every kind on communicators that come and go,
 * blocking and nonblocking, some of them with a wrong argument. Rank 0 prints a line a step: what
 * was called, and a digest of all that any rank can see of it, buffers and error class. Run once
 * with Muster and once without, the lines are the same. Values are such that every order of
 * combining is right.
 *
 * usage: differ SEED STEPS
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"

enum {
	COMMS = 5, RANKS_MAX = 8, COUNT_MAX = 1000, ELEMENT_MAX = 16,
	BYTES = RANKS_MAX * (COUNT_MAX + 1) * ELEMENT_MAX, PENDING_MAX = 3,
};

#define COLLECTIVES(X)							\
	X(Barrier) X(Bcast) X(Reduce) X(Allreduce) X(Gather) X(Gatherv)	\
	X(Scatter) X(Scatterv) X(Allgather) X(Allgatherv) X(Alltoall)	\
	X(Alltoallv) X(Reduce_scatter) X(Reduce_scatter_block) X(Scan) X(Exscan)

enum coll {
#define NUMBER(name) name,
	COLLECTIVES(NUMBER)
	COLLS
};

static const char *const names[] = {
#define NAME(name) #name,
	COLLECTIVES(NAME)
};

enum wrong { RIGHT, BAD_COUNT, BAD_TYPE, BAD_ROOT, BAD_OP, NO_COMM, WRONGS };

static const char *const wrongs[WRONGS] = {
	"", ", wrong count", ", wrong type", ", wrong root", ", wrong operation", ", no communicator",
};

/* Drawn alike by all ranks. */
struct step {
	enum coll coll;
	enum wrong wrong;
	int comm, count, type, op, root, in_place, nonblocking, number;
	int size, rank;			/* of the communicator, here */
	int counts[RANKS_MAX], displs[RANKS_MAX];
	int from_counts[RANKS_MAX], from_displs[RANKS_MAX];	/* of an alltoallv: what comes */
};

/* An operation under way. */
struct pending {
	struct step step;
	MPI_Request request;
	int class;
	char *in, *out;
};

static MPI_Comm comms[COMMS];
static MPI_Datatype spaced, affine;
static MPI_Op compose;
static struct pending pending[PENDING_MAX];
static int nr_pending;
static uint64_t seed, state;
static uint64_t *digests;		/* by step */
static int *classes;
static char (*said)[120];

/* ---- drawing --------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t a, uint64_t b)
{
	a = (a ^ b) * 0x9e3779b97f4a7c15ull;
	a = (a ^ a >> 31) * 0x94d049bb133111ebull;
	return a ^ a >> 29;
}

static int draw(int below)
{
	return mix(seed, ++state) % below;
}

/* What all ranks know of each other without a message. */
static int drawn_of(const struct step *step, int a, int b, int below)
{
	return mix(mix(seed, step->number), a * 1000 + b) % below;
}

/* ---- types and operations ---------------------------------------------------------------------- */

struct affine {
	uint32_t factor, term;
};

/* One after the other: (f . g)(x); in this order and no other, and associative. */
static void compose_both(void *in, void *inout, int *len, MPI_Datatype *type)
{
	const struct affine *f = in;
	struct affine *g = inout;

	(void)type;
	for (int i = 0; i < *len; i++) {
		g[i].term = g[i].factor * f[i].term + g[i].term;
		g[i].factor *= f[i].factor;
	}
}

enum { PAIRS = 6, SPACED_TYPE, AFFINE, TYPES };

static MPI_Datatype type_of(int type)
{
	const MPI_Datatype types[TYPES] = {
		MPI_INT, MPI_DOUBLE, MPI_LONG, MPI_FLOAT, MPI_UNSIGNED_CHAR, MPI_SHORT,
		MPI_2INT, spaced, affine,
	};

	return types[type];
}

static MPI_Op op_of(const struct step *step)
{
	const MPI_Op numbers[] = { MPI_SUM, MPI_MAX, MPI_MIN, MPI_PROD, MPI_LAND, MPI_BXOR, MPI_BAND };

	if (step->type == AFFINE)
		return compose;
	if (step->type == PAIRS)
		return step->op & 1 ? MPI_MAXLOC : MPI_MINLOC;
	return numbers[step->op];
}

/* Numbers of 0 and 1, now and then 2: sums of all types hold them, products too. */
static void fill(const struct step *step, char *at)
{
	uint64_t random = mix(mix(seed, step->number), 77 + rank);
	MPI_Aint lower, extent;

	MPI_Type_get_extent(type_of(step->type), &lower, &extent);
	for (int i = 0; i < BYTES / ELEMENT_MAX; i++, at += extent) {
		int value = mix(random, i) % 16 ? mix(random, i) & 1 : 2;

		switch (step->type) {
		case 1: *(double *)at = value; break;
		case 2: *(long *)at = value; break;
		case 3: *(float *)at = value; break;
		case 4: *at = value; break;
		case 5: *(short *)at = value; break;
		case PAIRS: ((int *)at)[1] = rank; /* fall through */
		case 0: *(int *)at = value; break;
		default: ((int *)at)[0] = value + rank; ((int *)at)[1] = i; break;
		}
	}
}

/* ---- communicators ------------------------------------------------------------------------------ */

/* The index-th is another one from now on. */
static void comm_renew(int index)
{
	MPI_Comm of = comms[0], made = MPI_COMM_NULL;
	int how = draw(5), turn = draw(size), ring = 1;

	if (comms[index] != MPI_COMM_NULL)
		MPI_Comm_free(&comms[index]);
	if (how == 0)
		MPI_Comm_dup(of, &made);
	else if (how == 1)
		MPI_Comm_split(of, (rank + turn) % 2, -rank, &made);
	else if (how == 2)
		MPI_Comm_split(of, rank == turn ? MPI_UNDEFINED : 0, rank, &made);
	else if (how == 3)
		MPI_Cart_create(of, 1, &size, &ring, 0, &made);
	else
		MPI_Comm_dup(MPI_COMM_SELF, &made);
	comms[index] = made;
	if (made != MPI_COMM_NULL)
		MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
}

/* ---- steps ------------------------------------------------------------------------------------- */

static int reduces(enum coll coll)
{
	return coll == Reduce || coll == Allreduce || coll == Reduce_scatter ||
	       coll == Reduce_scatter_block || coll == Scan || coll == Exscan;
}

static int has_root(enum coll coll)
{
	return coll == Bcast || coll == Reduce || coll == Gather || coll == Gatherv ||
	       coll == Scatter || coll == Scatterv;
}

static int is_by_block(enum coll coll)
{
	return coll == Gatherv || coll == Scatterv || coll == Allgatherv || coll == Alltoallv ||
	       coll == Reduce_scatter;
}

/* Of an alltoallv each pair has a length of its own; else each rank has one. */
static int block_of(const struct step *step, int from, int to)
{
	return drawn_of(step, step->coll == Alltoallv ? from : 0, to, step->count + 1);
}

/* Blocks of drawn lengths, with a gap of one between them. */
static void blocks_draw(struct step *step)
{
	int at = 0, from_at = 0;

	for (int r = 0; r < step->size; r++) {
		step->counts[r] = block_of(step, step->rank, r);
		step->from_counts[r] = block_of(step, r, step->rank);
		step->displs[r] = at;
		step->from_displs[r] = from_at;
		at += step->counts[r] + 1;
		from_at += step->from_counts[r] + 1;
	}
}

static enum wrong wrong_draw(enum coll coll)
{
	enum wrong wrong = draw(12) ? RIGHT : draw(WRONGS);

	if ((wrong == BAD_ROOT && !has_root(coll)) || (wrong == BAD_OP && !reduces(coll)) ||
	    (wrong == BAD_COUNT && is_by_block(coll)) || (coll == Barrier && wrong != NO_COMM))
		return RIGHT;
	if (wrong == NO_COMM && coll == Allgather)
		return RIGHT;	/* Open MPI reads there */
	return wrong;
}

static struct step step_draw(int number)
{
	static const int counts[] = { 0, 1, 2, 3, 7, 8, 9, 64, 65, 500, COUNT_MAX };
	struct step step = { .number = number, .coll = draw(COLLS), .comm = draw(COMMS) };

	step.wrong = wrong_draw(step.coll);
	step.count = counts[draw(sizeof(counts) / sizeof(counts[0]))];
	step.type = draw(TYPES);
	if (reduces(step.coll) && step.type == SPACED_TYPE)
		step.type = AFFINE;
	step.op = draw(step.type == 1 || step.type == 3 ? 4 : 7);
	step.root = draw(RANKS_MAX);
	step.nonblocking = !draw(3);
	/* Where more comes together both MPIs crash now and then; so does MPICH's Reduce. */
	step.in_place = !draw(3) && !step.nonblocking && !step.wrong && step.coll != Alltoallv &&
			step.coll != Reduce;
	return step;
}

/* ---- calling ----------------------------------------------------------------------------------- */

/* What the arguments are, with the one that is wrong. */
struct arguments {
	MPI_Comm comm;
	MPI_Datatype type;
	MPI_Op op;
	int count, root;
	const void *in;
	void *out;
};

static struct arguments arguments_of(const struct step *step, char *in, char *out)
{
	struct arguments a = {
		.comm = step->wrong == NO_COMM ? MPI_COMM_NULL : comms[step->comm],
		.type = step->wrong == BAD_TYPE ? MPI_DATATYPE_NULL : type_of(step->type),
		.op = step->wrong == BAD_OP ? MPI_OP_NULL : op_of(step),
		.count = step->wrong == BAD_COUNT ? -1 : step->count,
		.root = step->wrong == BAD_ROOT ? step->size : step->root % step->size,
		.in = in, .out = out,
	};
	int at_root = step->rank == a.root;

	if (!step->in_place)
		return a;
	if (step->coll == Scatter || step->coll == Scatterv)
		a.out = at_root ? MPI_IN_PLACE : out;
	else if (at_root || !has_root(step->coll))
		a.in = MPI_IN_PLACE;
	return a;
}

#define CALL(name, small, ...) (step->nonblocking ? MPI_I##small(__VA_ARGS__, request) : MPI_##name(__VA_ARGS__))

static int call(const struct step *step, char *in, char *out, MPI_Request *request)
{
	struct arguments a = arguments_of(step, in, out);
	const int *counts = step->counts, *displs = step->displs;
	int own = step->rank < 0 ? 0 : counts[step->rank];

	switch (step->coll) {
	case Barrier:
		return CALL(Barrier, barrier, a.comm);
	case Bcast:
		return CALL(Bcast, bcast, out, a.count, a.type, a.root, a.comm);
	case Reduce:
		return CALL(Reduce, reduce, a.in, out, a.count, a.type, a.op, a.root, a.comm);
	case Allreduce:
		return CALL(Allreduce, allreduce, a.in, out, a.count, a.type, a.op, a.comm);
	case Gather:
		return CALL(Gather, gather, a.in, a.count, a.type, out, a.count, a.type, a.root, a.comm);
	case Gatherv:
		return CALL(Gatherv, gatherv, a.in, own, a.type, out, counts, displs, a.type, a.root, a.comm);
	case Scatter:
		return CALL(Scatter, scatter, in, a.count, a.type, a.out, a.count, a.type, a.root, a.comm);
	case Scatterv:
		return CALL(Scatterv, scatterv, in, counts, displs, a.type, a.out, own, a.type, a.root, a.comm);
	case Allgather:
		return CALL(Allgather, allgather, a.in, a.count, a.type, out, a.count, a.type, a.comm);
	case Allgatherv:
		return CALL(Allgatherv, allgatherv, a.in, own, a.type, out, counts, displs, a.type, a.comm);
	case Alltoall:
		return CALL(Alltoall, alltoall, a.in, a.count, a.type, out, a.count, a.type, a.comm);
	case Alltoallv:
		return CALL(Alltoallv, alltoallv, a.in, counts, displs, a.type, out, step->from_counts,
			    step->from_displs, a.type, a.comm);
	case Reduce_scatter:
		return CALL(Reduce_scatter, reduce_scatter, a.in, out, counts, a.type, a.op, a.comm);
	case Reduce_scatter_block:
		return CALL(Reduce_scatter_block, reduce_scatter_block, a.in, out, a.count, a.type, a.op, a.comm);
	case Scan:
		return CALL(Scan, scan, a.in, out, a.count, a.type, a.op, a.comm);
	default:
		return CALL(Exscan, exscan, a.in, out, a.count, a.type, a.op, a.comm);
	}
}

/* ---- what is seen ------------------------------------------------------------------------------ */

static uint64_t digest_of(uint64_t digest, const char *bytes, int nr)
{
	for (int i = 0; i < nr; i++)
		digest = mix(digest, bytes[i]);
	return digest;
}

static int class_of(int err)
{
	int class;

	MPI_Error_class(err, &class);
	return class;
}

/* What MPI leaves undefined does not count: nothing, or all behind the own block. */
static int defined_of(const struct step *step)
{
	MPI_Aint lower, extent;

	MPI_Type_get_extent(type_of(step->type), &lower, &extent);
	if (step->coll == Exscan && !step->rank)
		return 0;
	if (step->coll == Reduce_scatter && step->in_place)
		return step->counts[step->rank] * extent;
	if (step->coll == Reduce_scatter_block && step->in_place)
		return step->count * extent;
	return BYTES;
}

static void look(const struct pending *p)
{
	const struct step *step = &p->step;
	uint64_t digest = mix(p->class, 1 + rank);

	if (!p->class && !step->wrong)
		digest = digest_of(digest_of(digest, p->in, BYTES), p->out, defined_of(step));
	digests[step->number] = digest;
	classes[step->number] = p->class;
	free(p->in);
	free(p->out);
}

static void end(int index)
{
	struct pending *p = &pending[index];

	p->class = class_of(MPI_Wait(&p->request, MPI_STATUS_IGNORE));
	MUST(p->request == MPI_REQUEST_NULL);
	look(p);
	*p = pending[--nr_pending];
}

/* All ranks agree on which one is next, though not all may be in it. */
static void end_some(int most)
{
	while (nr_pending > most)
		end(0);
}

static char *buffer(const struct step *step)
{
	char *made = malloc(BYTES);

	MUST(made);
	memset(made, 1 + rank, BYTES);
	fill(step, made);
	return made;
}

static void say(const struct step *step)
{
	snprintf(said[step->number], sizeof(said[step->number]), "%s%s, %d of type %d, op %d, communicator %d%s%s",
		 step->nonblocking ? "I" : "", names[step->coll], step->count, step->type, step->op,
		 step->comm, step->in_place ? ", in place" : "", wrongs[step->wrong]);
}

static void run(int number)
{
	struct pending p = { .step = step_draw(number), .request = MPI_REQUEST_NULL };
	struct step *step = &p.step;

	if (comms[step->comm] == MPI_COMM_NULL)
		return;
	MPI_Comm_rank(comms[step->comm], &step->rank);
	MPI_Comm_size(comms[step->comm], &step->size);
	if (step->size == 1)
		step->wrong = RIGHT;	/* MPICH goes by it there, and writes anywhere */
	say(step);
	blocks_draw(step);
	p.in = buffer(step);
	p.out = buffer(step);
	p.class = class_of(call(step, p.in, p.out, &p.request));
	if (step->nonblocking && !p.class)
		pending[nr_pending++] = p;
	else
		look(&p);
}

/* ---- the whole --------------------------------------------------------------------------------- */

static void begin(int steps)
{
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MUST(size <= RANKS_MAX);
	MPI_Type_contiguous(2, MPI_UNSIGNED, &affine);
	MPI_Type_commit(&affine);
	MPI_Type_vector(2, 1, 2, MPI_INT, &spaced);
	MPI_Type_commit(&spaced);
	MPI_Op_create(compose_both, 0, &compose);
	digests = calloc(steps, sizeof(*digests));
	said = calloc(steps, sizeof(*said));
	classes = calloc(steps, sizeof(*classes));
	MUST(digests && said && classes);
	comms[0] = MPI_COMM_WORLD;
	for (int i = 1; i < COMMS; i++) {
		comms[i] = MPI_COMM_NULL;
		comm_renew(i);
	}
}

/* By messages, which nobody stands before. */
static void print(int steps)
{
	uint64_t *theirs = calloc(steps, sizeof(*theirs));

	MUST(theirs);
	if (rank)
		MPI_Send(digests, steps, MPI_UINT64_T, 0, 0, MPI_COMM_WORLD);
	for (int r = 1; r < size && !rank; r++) {
		MPI_Recv(theirs, steps, MPI_UINT64_T, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int i = 0; i < steps; i++)
			digests[i] = mix(digests[i], theirs[i]);
	}
	for (int i = 0; i < steps && !rank; i++)
		printf("%d: %s: class %d, %016llx\n", i, said[i], classes[i],
		       (unsigned long long)digests[i]);
	free(theirs);
}

int main(int argc, char **argv)
{
	int steps = argc > 2 ? atoi(argv[2]) : 0;

	MPI_Init(&argc, &argv);
	seed = argc > 1 ? atoi(argv[1]) : 0;
	begin(steps);
	for (int i = 0; i < steps; i++) {
		end_some(draw(PENDING_MAX));
		if (!draw(20)) {
			end_some(0);
			comm_renew(1 + draw(COMMS - 1));
		}
		run(i);
	}
	end_some(0);
	print(steps);
	MPI_Finalize();
	return 0;
}
