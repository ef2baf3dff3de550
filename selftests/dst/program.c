// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What simulated ranks do with the library: make communicators of communicators, run
 * operations on them, several at once and in an order of their own, and free them. All draw
 * the same numbers, so that all call the same; a result is compared with what it plainly is.
 */
#include "dst.h"

#include <inttypes.h>
#include <stdlib.h>

#include "muster.h"

enum {
	COMMS_MAX = 4,
	STEPS_MAX = 12,
	COUNT_MAX = 6000,		/* some pulses */
	PAUSE_US = 2000,
};

struct member_of {
	struct muster_comm *comm;
	uint32_t ranks;			/* a bit each */
};

struct program {
	struct dst_process *process;
	struct dst_world *world;
	uint32_t rank;
	struct dst_rng rng;		/* the same with all */
	struct muster *job;
	struct member_of comms[COMMS_MAX];
	uint32_t nr;
	uint32_t calls;
};

enum what {
	ALLREDUCE, ALLGATHER, REDUCE_SCATTER, ALLTOALL, GATHER, SCATTER, SCAN, EXSCAN,
	/* With blocks of several lengths. */
	ALLGATHERV, REDUCE_SCATTERV, GATHERV, SCATTERV, ALLTOALLV, WHATS,
};

/* One operation under way. */
struct call {
	struct member_of of;
	struct muster_request *request;
	enum what what;
	uint64_t count, seed;		/* count: of a block, where there are blocks */
	uint32_t me, nr, root;		/* members */
	bool persistent;
	int64_t *in, *out;
	uint64_t counts[DST_RANKS_MAX];	/* of blocks, by member */
};

static void failed(struct program *program, const char *what, int err)
{
	dst_fail(program->world, "rank %u: %s: %d: %s", program->rank, what, err,
		 muster_error(program->job));
}

static int64_t contribution(uint32_t rank, uint64_t seed, uint64_t i)
{
	struct dst_rng rng = { seed ^ (uint64_t)rank << 32 ^ i };

	return (int64_t)(dst_draw(&rng) >> 8);
}

/* The rank in the job of a member. */
static uint32_t rank_of(const struct call *call, uint32_t member)
{
	uint32_t ranks = call->of.ranks;

	while (member--)
		ranks &= ranks - 1;
	return (uint32_t)__builtin_ctz(ranks);
}

static int64_t given(const struct call *call, uint32_t member, uint64_t i)
{
	return contribution(rank_of(call, member), call->seed, i);
}

/* Element i of what the first `nr` members give. */
static int64_t sum(const struct call *call, uint32_t nr, uint64_t i)
{
	int64_t sum = 0;

	while (nr--)
		sum += given(call, nr, i);
	return sum;
}

/* Where a member's block begins. */
static uint64_t first_of(const struct call *call, uint32_t member)
{
	uint64_t first = 0;

	while (member--)
		first += call->counts[member];
	return first;
}

/* Whose block element i is in. */
static uint32_t owner_of(const struct call *call, uint64_t i)
{
	uint32_t member = 0;

	while (i >= first_of(call, member + 1))
		member++;
	return member;
}

static int64_t plain(const struct call *call, uint64_t i)
{
	uint64_t mine = first_of(call, call->me);
	uint32_t owner;

	switch (call->what) {
	case ALLGATHER:
	case ALLGATHERV:
	case GATHER:
	case GATHERV:
		owner = owner_of(call, i);
		return given(call, owner, i - first_of(call, owner));
	case ALLTOALL:
		return given(call, (uint32_t)(i / call->count), mine + i % call->count);
	case ALLTOALLV:		/* who has a block for me has it where mine is, with all */
		owner = (uint32_t)(i / call->counts[call->me]);
		return given(call, owner, mine + i % call->counts[call->me]);
	case SCATTER:
	case SCATTERV:
		return given(call, call->root, mine + i);
	case REDUCE_SCATTER:
	case REDUCE_SCATTERV:
		return sum(call, call->nr, mine + i);
	case SCAN:
		return sum(call, call->me + 1, i);
	case EXSCAN:
		return sum(call, call->me, i);
	default:
		return sum(call, call->nr, i);
	}
}

static uint64_t result_count(const struct call *call)
{
	if (((call->what == GATHER || call->what == GATHERV) && call->me != call->root) || (call->what == EXSCAN && !call->me))
		return 0;
	if (call->what == ALLGATHER || call->what == GATHER || call->what == ALLTOALL ||
	    call->what == ALLGATHERV || call->what == GATHERV)
		return call->what == ALLTOALL ? call->nr * call->count : first_of(call, call->nr);
	if (call->what == ALLTOALLV)
		return call->nr * call->counts[call->me];
	return call->what == REDUCE_SCATTERV || call->what == SCATTERV ? call->counts[call->me] : call->count;
}

static void call_check(struct program *program, const struct call *call)
{
	for (uint64_t i = 0; i < result_count(call); i++) {
		if (plain(call, i) != call->out[i]) {
			dst_fail(program->world, "rank %u: element %" PRIu64 " of operation %d is wrong",
				 program->rank, i, call->what);
			return;
		}
	}
}

/* Started, or made to be started again and again. */
#define FORM(name)	(c->persistent ? muster_##name##_init : muster_##name##_start)

static int make(struct call *c)
{
	struct muster_comm *comm = c->of.comm;
	uint64_t mine[DST_RANKS_MAX];

	switch (c->what) {
	case ALLGATHER:
		return FORM(allgather)(comm, c->in, c->out, c->count, MUSTER_I64, &c->request);
	case REDUCE_SCATTER:
		return FORM(reduce_scatter_block)(comm, c->in, c->out, c->count, MUSTER_I64,
						  MUSTER_SUM, &c->request);
	case ALLTOALL:
		return FORM(alltoall)(comm, c->in, c->out, c->count, MUSTER_I64, &c->request);
	case GATHER:
		return FORM(gather)(comm, c->in, c->out, c->count, MUSTER_I64, c->root,
				    &c->request);
	case SCATTER:
		return FORM(scatter)(comm, c->in, c->out, c->count, MUSTER_I64, c->root,
				     &c->request);
	case SCAN:
		return FORM(scan)(comm, c->in, c->out, c->count, MUSTER_I64, MUSTER_SUM,
				  &c->request);
	case EXSCAN:
		return FORM(exscan)(comm, c->in, c->out, c->count, MUSTER_I64, MUSTER_SUM,
				    &c->request);
	case ALLGATHERV:
		return FORM(allgatherv)(comm, c->in, c->out, c->counts, NULL, MUSTER_I64,
					&c->request);
	case REDUCE_SCATTERV:
		return FORM(reduce_scatter)(comm, c->in, c->out, c->counts, MUSTER_I64, MUSTER_SUM,
					    &c->request);
	case GATHERV:
		return FORM(gatherv)(comm, c->in, c->counts[c->me], c->out, c->counts, NULL,
				     MUSTER_I64, c->root, &c->request);
	case SCATTERV:
		return FORM(scatterv)(comm, c->in, c->counts, NULL, c->out, c->counts[c->me],
				      MUSTER_I64, c->root, &c->request);
	case ALLTOALLV:
		for (uint32_t i = 0; i < c->nr; i++)
			mine[i] = c->counts[c->me];
		return FORM(alltoallv)(comm, c->in, c->counts, NULL, c->out, mine, NULL,
				       MUSTER_I64, &c->request);
	default:
		return FORM(allreduce)(comm, c->in, c->out, c->count, MUSTER_I64, MUSTER_SUM,
				       &c->request);
	}
}

#undef FORM

static int start(struct call *c)
{
	int err = make(c);

	return !err && c->persistent ? muster_start(c->request) : err;
}

/* Equal blocks, or of up to one and a half of that length, or of none. */
static void counts_set(struct call *call)
{
	uint64_t halves = call->seed >> 32;

	for (uint32_t i = 0; i < call->nr; i++, halves /= 4)
		call->counts[i] = call->what < ALLGATHERV ? call->count :
							    call->count * (halves % 4) / 2;
}

/* What is called follows from the seed, which all ranks share. */
static void call_start(struct program *program, struct call *call)
{
	uint64_t room;
	int err;

	call->nr = (uint32_t)__builtin_popcount(call->of.ranks);
	call->me = (uint32_t)__builtin_popcount(call->of.ranks & ((1u << program->rank) - 1));
	call->what = call->seed >> 8 & 1 ? ALLREDUCE : (call->seed >> 16 & 0xff) % WHATS;
	call->root = (call->seed >> 24 & 0xff) % call->nr;
	if (call->what != ALLREDUCE)
		call->count = 1 + call->count / call->nr;
	call->persistent = call->seed >> 40 & 1;
	counts_set(call);
	room = 1 + call->nr * call->count * 3 / 2;
	call->in = malloc(room * sizeof(*call->in));
	call->out = malloc(room * sizeof(*call->out));
	for (uint64_t i = 0; i < room; i++)
		call->in[i] = contribution(program->rank, call->seed, i);
	err = start(call);
	if (err)
		failed(program, "a start", err);
}

/* Some starts more, with the same outcome. */
static void call_again(struct program *program, struct call *call)
{
	int err = 0;

	for (uint64_t times = call->seed >> 41 & 3; times && !err; times--) {
		err = muster_start(call->request);
		if (!err)
			err = muster_wait(call->request);
		if (!err)
			call_check(program, call);
	}
	if (!err)
		err = muster_request_free(call->request);
	if (err)
		failed(program, "a persistent operation", err);
}

static void call_end(struct program *program, struct call *call)
{
	int err = call->request ? muster_wait(call->request) : 0;

	if (err)
		failed(program, "an operation", err);
	else if (call->request)
		call_check(program, call);
	if (!err && call->request && call->persistent)
		call_again(program, call);
	free(call->in);
	free(call->out);
}

/* On one or two communicators at once; half of the ranks begin with the other one. */
static void operations(struct program *program)
{
	struct call calls[2];
	uint32_t nr = 1 + dst_below(&program->rng, program->nr > 1 ? 2 : 1);
	uint32_t first = dst_below(&program->rng, program->nr);
	uint32_t bound = dst_below(&program->rng, 3) ? 8 : COUNT_MAX;

	for (uint32_t i = 0; i < nr; i++)
		calls[i] = (struct call){
			.of = program->comms[(first + i) % program->nr],
			.count = 1 + dst_below(&program->rng, bound),
			.seed = dst_draw(&program->rng),
		};
	for (uint32_t i = 0; i < nr; i++)
		call_start(program, &calls[(i + program->rank) % nr]);
	for (uint32_t i = 0; i < nr; i++)
		call_end(program, &calls[i]);
}

/* Of those that are kept all have all ranks, so that all know what to call. */
static void dup_make(struct program *program)
{
	struct member_of *parent = &program->comms[dst_below(&program->rng, program->nr)];
	enum muster_offload offload = dst_below(&program->rng, 2);
	struct member_of made = { .ranks = parent->ranks };
	int err;

	if (program->nr == COMMS_MAX)
		return;
	err = muster_comm_dup(parent->comm, &made.comm);
	if (err) {
		failed(program, "a duplicate", err);
		return;
	}
	muster_comm_offload(made.comm, offload);
	program->comms[program->nr++] = made;
}

static void newest_free(struct program *program)
{
	if (program->nr > 1)
		muster_comm_free(program->comms[--program->nr].comm);
}

/* ---- neighbours: a graph in which any pair may have an edge, or two ----------------------- */

static uint32_t edges(uint64_t seed, uint32_t from, uint32_t to)
{
	return (uint32_t)(seed >> (from * 5 + to * 3) % 40 & 3) % 3;
}

/* Members from which or to which a member has edges; several together. */
static uint32_t list(const struct call *c, uint32_t me, bool sources, uint32_t *members)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < c->nr; i++)
		for (uint32_t k = sources ? edges(c->seed, i, me) : edges(c->seed, me, i); k; k--)
			members[nr++] = i;
	return nr;
}

/* Element i of the k-th block that comes from a source: the sender counts its blocks on. */
static int64_t along(const struct call *c, uint32_t source, uint32_t k, uint64_t i)
{
	uint64_t block = k;

	for (uint32_t to = 0; to < c->me; to++)
		block += edges(c->seed, source, to);
	return given(c, source, block * c->count + i);
}

static void blocks_check(struct program *program, const struct call *c, const uint32_t *sources,
			 uint32_t nr)
{
	for (uint32_t b = 0; b < nr; b++) {
		uint32_t k = 0;

		while (k < b && sources[b - k - 1] == sources[b])
			k++;
		for (uint64_t i = 0; i < c->count; i++)
			if (c->out[b * c->count + i] != along(c, sources[b], k, i)) {
				dst_fail(program->world, "rank %u: element %" PRIu64 " of neighbour %u is wrong",
					 program->rank, i, sources[b]);
				return;
			}
	}
}

static void neighbours(struct program *program, struct call *c)
{
	uint32_t sources[2 * DST_RANKS_MAX], destinations[2 * DST_RANKS_MAX], nr, nr_to;
	int err;

	c->nr = (uint32_t)__builtin_popcount(c->of.ranks);
	c->me = (uint32_t)__builtin_popcount(c->of.ranks & ((1u << program->rank) - 1));
	nr = list(c, c->me, true, sources);
	nr_to = list(c, c->me, false, destinations);
	c->in = malloc((nr_to * c->count + 1) * sizeof(*c->in));
	c->out = malloc((nr * c->count + 1) * sizeof(*c->out));
	for (uint64_t i = 0; i < nr_to * c->count; i++)
		c->in[i] = contribution(program->rank, c->seed, i);
	err = muster_comm_neighbours(c->of.comm, nr, sources, nr_to, destinations);
	if (!err)
		err = muster_neighbour_alltoall(c->of.comm, c->in, c->out, c->count, MUSTER_I64);
	if (err)
		failed(program, "an exchange with neighbours", err);
	else
		blocks_check(program, c, sources, nr);
	free(c->in);
	free(c->out);
}

/* An operation in one that part of the ranks make, and free again. */
static void part_operation(struct program *program, struct muster_comm *comm, uint32_t ranks,
			   uint64_t seed)
{
	struct call call = { .of = { comm, ranks }, .count = 1 + seed % 50, .seed = seed };
	struct call exchange = { .of = { comm, ranks }, .count = 1 + seed % 1000, .seed = seed };

	if (seed >> 60 & 1)
		neighbours(program, &exchange);
	call_start(program, &call);
	call_end(program, &call);
	muster_comm_free(comm);
}

static void split(struct program *program)
{
	uint32_t colours = 1 + dst_below(&program->rng, 3), ranks = 0;
	uint64_t shift = dst_draw(&program->rng), seed = dst_draw(&program->rng);
	struct muster_comm *comm;
	int err;

#define COLOUR(rank) ((shift >> 4 * (rank)) % colours)
	for (uint32_t r = 0; r < program->world->plan.ranks; r++)
		ranks |= (COLOUR(r) == COLOUR(program->rank)) << r;
	err = muster_comm_split(program->comms[0].comm, (int32_t)COLOUR(program->rank), 0, &comm);
#undef COLOUR
	if (err)
		failed(program, "a split", err);
	else
		part_operation(program, comm, ranks, seed);
}

static void group(struct program *program)
{
	uint32_t ranks = dst_draw(&program->rng) & ((1u << program->world->plan.ranks) - 1);
	uint32_t tag = dst_below(&program->rng, 100), list[DST_RANKS_MAX], nr = 0;
	uint64_t seed = dst_draw(&program->rng);
	struct muster_comm *comm;
	int err;

	if (!(ranks >> program->rank & 1))
		return;
	for (uint32_t r = 0; r < program->world->plan.ranks; r++)
		if (ranks >> r & 1)
			list[nr++] = r;
	err = muster_comm_create_group(program->comms[0].comm, nr, list, tag, &comm);
	if (err)
		failed(program, "a group", err);
	else
		part_operation(program, comm, ranks, seed);
}

static void step(struct program *program)
{
	struct dst_world *w = program->world;

	if (dst_below(&w->host, 2))
		dst_process_sleep(program->process, dst_below(&w->host, PAUSE_US));
	switch (dst_below(&program->rng, 6)) {
	case 0:
		dup_make(program);
		break;
	case 1:
		newest_free(program);
		break;
	case 2:
		split(program);
		break;
	case 3:
		group(program);
		break;
	default:
		operations(program);
	}
}

void dst_program(struct dst_process *process)
{
	struct dst_rank *rank = dst_process_rank(process);
	struct program program = {
		.process = process, .world = rank->world, .rank = rank->index,
		.rng = { rank->world->plan.seed ^ 0x70726f67 },
	};
	uint32_t steps = 1 + dst_below(&program.rng, STEPS_MAX);
	uint32_t most = rank->world->limits.ops;
	int err = dst_process_join(process, &program.job);

	if (most && steps > most)
		steps = most;
	if (err) {
		failed(&program, "joining", err);
		return;
	}
	program.comms[program.nr++] = (struct member_of){
		muster_world(program.job), (1u << rank->world->plan.ranks) - 1,
	};
	while (steps-- && !program.world->failed)
		step(&program);
	muster_finalize(program.job);
	dst_say(program.world, "rank %u has come to its end", program.rank);
}
