// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One rank of four, of which one does something else than the others in the middle of a
 * collective: it calls another one, or with another type, length, count vector or root; it
 * dies, leaves the job, or stops. All others get an error that names it, and nothing else hangs:
 * communicators beside it go on.
 *
 * usage: faults operation|type|length|counts|root host|nic	each collective, each rank
 *        faults dies|leaves|stops host|nic COLLECTIVE RANK	one, as the job does not outlive it
 * Exit status 75, and "too early": MUSTER_LATE_TIMEOUT has ended a wait before any rank stopped.
 */
#include "sweep.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../expect.h"

enum { COUNT_SHORT = 6, COUNT_LONG = 20000, ROOM = 4 * 4 * COUNT_LONG * 8, LONGER = 2 };

static struct muster *job;
static struct muster_comm *world;
static uint32_t rank, size, failures;
static uint8_t *in, *out;

static const struct sweep_type *type_named(const char *name)
{
	for (uint32_t t = 0; t < sweep_nr_types; t++)
		if (!strcmp(sweep_types[t].name, name))
			return &sweep_types[t];
	abort();
}

/* ---- what is called -------------------------------------------------------------------- */

static void call_set(enum sweep_coll coll, uint64_t count, struct sweep_case *c,
		     struct sweep_shape *shape)
{
	*c = (struct sweep_case){
		.ranks = size, .coll = coll, .type = type_named("i64"), .count = count,
		.op = sweep_colls[coll].reduces ? MUSTER_SUM : 0,
	};
	memset(shape, 0, sizeof(*shape));
	shape->root = sweep_colls[coll].rooted ? 1 : 0;
	sweep_shape_blocks(c, rank, shape);
}

static bool hides_lengths(enum sweep_coll coll)
{
	return coll >= SWEEP_GATHERV && coll != SWEEP_NEIGHBOUR_ALLGATHER &&
	       coll != SWEEP_NEIGHBOUR_ALLTOALL;
}

/* Of a block that goes to another rank the sender alone says another length. */
static bool lengthen_one(enum sweep_coll coll, struct sweep_shape *shape)
{
	for (uint32_t k = 0; k < shape->out.nr && coll == SWEEP_NEIGHBOUR_ALLGATHERV; k++)
		if (shape->sources[k] == rank)		/* its own is the same one */
			shape->out.blocks[k].count += LONGER;
	for (uint32_t k = 0; k < shape->in.nr; k++) {
		bool own = coll < SWEEP_NEIGHBOUR_ALLGATHER ? k == rank : shape->destinations[k] == rank;

		if (coll == SWEEP_GATHERV)
			own = shape->root == rank;
		if (own && coll != SWEEP_NEIGHBOUR_ALLGATHERV)
			continue;
		shape->in.blocks[k].count += LONGER;
		return true;
	}
	return false;
}

static bool length_alter(struct sweep_case *c, struct sweep_shape *shape)
{
	if (c->coll == SWEEP_BARRIER || c->coll == SWEEP_ALLGATHERV || c->coll == SWEEP_REDUCE_SCATTER)
		return false;	/* it has none, or a vector */
	if (hides_lengths(c->coll))
		return lengthen_one(c->coll, shape);
	c->count += LONGER;
	return true;
}

static bool counts_alter(struct sweep_case *c, struct sweep_shape *shape)
{
	struct sweep_side *side = c->coll == SWEEP_ALLGATHERV ? &shape->out : &shape->in;
	uint32_t other = (rank + 1) % size;

	if (c->coll != SWEEP_ALLGATHERV && c->coll != SWEEP_REDUCE_SCATTER)
		return false;
	side->blocks[other].count += 1;
	return true;
}

static bool root_alter(struct sweep_case *c, struct sweep_shape *shape)
{
	if (!sweep_colls[c->coll].rooted)
		return false;
	shape->root = (shape->root + 1) % size;
	sweep_shape_blocks(c, rank, shape);
	return true;
}

/* What the odd one calls instead; false: there is nothing such. */
static bool alter(const char *what, struct sweep_case *c, struct sweep_shape *shape)
{
	if (!strcmp(what, "operation")) {
		call_set(c->coll == SWEEP_BARRIER ? SWEEP_ALLREDUCE : SWEEP_BARRIER, c->count, c, shape);
		return true;
	}
	if (!strcmp(what, "type")) {
		c->type = type_named("f64");
		/* Sender and receiver may say a block's bytes as they like, */
		return c->coll != SWEEP_BARRIER && c->coll != SWEEP_ALLTOALLW &&
		       c->coll != SWEEP_NEIGHBOUR_ALLTOALLW;
	}
	if (!strcmp(what, "length"))
		return length_alter(c, shape);
	return !strcmp(what, "counts") ? counts_alter(c, shape) : root_alter(c, shape);
}

static int call(struct muster_comm *comm, const struct sweep_case *c, const struct sweep_shape *shape)
{
	bool same = c->coll == SWEEP_BROADCAST;

	return sweep_call(comm, c, c->op, shape, same ? out : in, out, NULL);
}

enum { EXIT_EARLY = 75 };

/* Before anybody has stopped only a busy machine keeps others waiting: more patience helps. */
static void must_not_be_late(int err)
{
	if (err == -ETIMEDOUT || err == -ECONNABORTED) {
		printf("too early\n");
		exit(EXIT_EARLY);
	}
	EXPECT_OK(err);
}

static struct muster_comm *comm_new(bool host)
{
	uint32_t from[SWEEP_EDGES], to[SWEEP_EDGES];
	struct muster_comm *comm;

	for (uint32_t k = 0; k < SWEEP_EDGES; k++) {
		from[k] = sweep_edge(rank, size, k, true);
		to[k] = sweep_edge(rank, size, k, false);
	}
	must_not_be_late(muster_comm_dup(world, &comm));
	must_not_be_late(muster_comm_neighbours(comm, SWEEP_EDGES, from, SWEEP_EDGES, to));
	EXPECT_OK(muster_comm_offload(comm, host ? MUSTER_OFFLOAD_OFF : MUSTER_OFFLOAD_FORCE));
	must_not_be_late(muster_barrier(world));	/* all have it before one ends it */
	return comm;
}

/* ---- calls that differ ---------------------------------------------------------------------- */

static void judge(const char *what, const struct sweep_case *c, uint32_t odd, bool host, int err)
{
	char name[32];
	bool named;

	snprintf(name, sizeof(name), "rank %" PRIu32 " ", odd);
	named = rank == odd || strstr(muster_error(job), name);
	if (err == -EPROTO && named)
		return;
	failures++;
	fprintf(stderr, "rank %" PRIu32 ", %s of rank %" PRIu32 " in %s of %" PRIu64 ", %s path: %s (%d)\n",
		rank, what, odd, sweep_colls[c->coll].name, c->count, host ? "host" : "NIC",
		err ? muster_error(job) : "no error", err);
}

/* Some ranks may have ended the operation before they can know: at the latest the next ones tell. */
static void differ(const char *what, enum sweep_coll coll, uint64_t count, uint32_t odd, bool host)
{
	struct muster_comm *comm;
	struct sweep_shape shape;
	struct sweep_case c;
	int64_t can, all;
	int err = 0;

	call_set(coll, count, &c, &shape);
	can = rank != odd || alter(what, &c, &shape);
	EXPECT_OK(muster_allreduce(world, &can, &all, 1, MUSTER_I64, MUSTER_MIN));
	if (!all)
		return;
	comm = comm_new(host);
	for (int i = 0; i < 2 && !err; i++)
		err = call(comm, &c, &shape);
	if (!err)
		err = muster_barrier(comm);
	if (!err)
		err = muster_barrier(comm);
	c.coll = coll;
	judge(what, &c, odd, host, err);
	muster_comm_free(comm);
}

static void all_differ(const char *what, bool host)
{
	static const uint64_t counts[] = { COUNT_SHORT, COUNT_LONG };

	for (enum sweep_coll coll = 0; coll < SWEEP_COLLS; coll++)
		for (uint32_t odd = 0; odd < size; odd++)
			for (int k = 0; k < 2; k++)
				differ(what, coll, counts[k], odd, host);
	EXPECT_OK(muster_barrier(world));
}

/* "rank 2", or in a list of who is late: those, too, that wait for it in an earlier operation. */
static bool names(uint32_t odd)
{
	char one[32], listed[32];

	snprintf(one, sizeof(one), "rank %" PRIu32, odd);
	snprintf(listed, sizeof(listed), ", %" PRIu32, odd);
	return strstr(muster_error(job), one) || strstr(muster_error(job), listed);
}

/* ---- one that does not come -------------------------------------------------------------------- */

static volatile sig_atomic_t continued;

static void on_continue(int number)
{
	(void)number;
	continued = 1;
}

static void go(const char *what)
{
	if (!strcmp(what, "dies")) {
		raise(SIGKILL);
	} else if (!strcmp(what, "leaves")) {
		muster_finalize(job);
		exit(0);
	}
	if (!continued)
		raise(SIGSTOP);
}

static void goes(const char *what, enum sweep_coll coll, uint32_t odd, bool host)
{
	bool stops = !strcmp(what, "stops");
	struct muster_comm *comm = comm_new(host);
	int64_t pid = getpid(), pids[SWEEP_RANKS_MAX];
	struct sweep_shape shape;
	uint32_t calls = 0;
	struct sweep_case c;
	int err = 0;

	call_set(coll, COUNT_LONG, &c, &shape);
	signal(SIGCONT, on_continue);
	must_not_be_late(muster_allgather(world, &pid, pids, 1, MUSTER_I64));
	while (!err) {
		if (calls++ == 2 && rank == odd)
			go(what);
		err = call(comm, &c, &shape);
	}
	if (stops && rank != odd)
		kill((pid_t)pids[odd], SIGCONT);
	if (stops && calls <= 2 && !names(odd))
		must_not_be_late(err);
	if (rank != odd) {
		EXPECT(stops ? err == -ETIMEDOUT || err == -ECONNABORTED : err == -ECONNRESET, "%s gave %d: %s", sweep_colls[coll].name,
		       err, muster_error(job));
		/* Where several seem to be late, who gives up names them all, and others name that one. */
		EXPECT(names(odd) || err == -ECONNABORTED, "'%s' does not name it", muster_error(job));
	}
	printf("%s\n", rank == odd || names(odd) ? "named" : "told");
}

static enum sweep_coll coll_named(const char *name)
{
	enum sweep_coll coll = 0;

	while (coll < SWEEP_COLLS && strcmp(sweep_colls[coll].name, name))
		coll++;
	return coll;
}

int main(int argc, char **argv)
{
	bool one = argc == 5, host = argc > 2 && !strcmp(argv[2], "host");
	enum sweep_coll coll = one ? coll_named(argv[3]) : 0;

	if ((argc != 3 && !one) || coll == SWEEP_COLLS) {
		fprintf(stderr, "usage: faults WHAT host|nic [COLLECTIVE RANK]\n");
		return 2;
	}
	in = calloc(1, ROOM);
	out = calloc(1, ROOM);
	if (!in || !out || muster_init(&job)) {
		fprintf(stderr, "%s\n", muster_error(NULL));
		return 3;
	}
	world = muster_world(job);
	rank = muster_comm_rank(world);
	size = muster_comm_size(world);
	if (one)
		goes(argv[1], coll, (uint32_t)atoi(argv[4]), host);
	else
		all_differ(argv[1], host);
	muster_finalize(job);
	return failures ? 1 : 0;
}
