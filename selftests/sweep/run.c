// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One rank's part in the sweep: each case on both paths, whose results must have the same
 * bits; those of the other forms are the blocking one's. Nothing but the result is written,
 * and what was given is not. Who finds something wrong says it and stops.
 */
#include "sweep.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	RUBBISH = 0xa5,
	PLACE_MAX = 16,			/* bytes that a buffer may begin behind a page's beginning */
	SIDE_BYTES_MAX = 32 << 20,	/* of each buffer: 64 MiB a rank */
	SETUP_MAX = 64,
};

struct runner {
	struct muster *job;
	struct muster_comm *world;
	struct muster_comm *comms[SWEEP_NAMES_MAX];	/* by algorithm */
	uint32_t rank, size;
	const struct sweep_options *options;
	struct sweep_figures *figures;
	struct sweep_names names;
	const struct sweep_type *folded;	/* what sweep_combine() is to know */
	enum muster_op user_op;
	uint8_t *plain[2], *shared[2];		/* memory of malloc(), of muster_alloc() */
	uint8_t *given, *expected;		/* what this rank gives; what is right: of these data */
	uint64_t data;
	uint8_t *first;				/* what the NIC path gave; NULL: nothing */
	struct sweep_shape shape;
};

__attribute__((format(printf, 3, 4)))
static bool wrong(struct runner *runner, const struct sweep_case *c, const char *format, ...)
{
	static const char *const forms[] = { "blocking", "started", "persistent" };
	char *why = runner->figures->why;
	const char *op = "";
	va_list args;
	int at;

	if (*why)
		return false;
	for (uint32_t o = 0; o < sweep_nr_ops; o++)
		if (sweep_ops[o].op == c->op)
			op = sweep_ops[o].name;
	at = snprintf(why, SWEEP_WHY_MAX, "rank %u of %u, %s of %" PRIu64 " %s %s by %s, %s%s%s: ",
		      runner->rank, c->ranks, sweep_colls[c->coll].name, c->count, c->type->name, op,
		      runner->names.name[c->name], forms[c->form],
		      runner->shape.in_place ? ", in place" : "", runner->shape.spread ? ", spread" : "");
	va_start(args, format);
	vsnprintf(why + at, SWEEP_WHY_MAX - (size_t)at, format, args);
	va_end(args);
	return false;
}

/* ---- algorithms -------------------------------------------------------------------------- */

/* As the library lists them when there is none of the name: "...: there are A, B, C". */
static void names_list(struct runner *runner)
{
	struct sweep_names *names = &runner->names;
	char words[SWEEP_WHY_MAX], *rest = NULL, *word;
	const char *list;

	strcpy(names->name[0], "the library's choice");
	names->nr = 1;
	muster_comm_schedule(runner->world, "?");
	list = strstr(muster_error(runner->job), "there are ");
	snprintf(words, sizeof(words), "%s", list ? list + strlen("there are ") : "");
	for (word = strtok_r(words, ", ", &rest); word && names->nr < SWEEP_NAMES_MAX;
	     word = strtok_r(NULL, ", ", &rest))
		snprintf(names->name[names->nr++], SWEEP_NAME_MAX, "%s", word);
}

static int names_try(struct runner *runner)
{
	struct sweep_names *names = &runner->names;
	struct muster_comm *comm;
	char item[SETUP_MAX];
	int err = muster_comm_dup(runner->world, &comm);

	for (uint32_t coll = 0; coll < SWEEP_COLLS && !err; coll++)
		for (uint32_t n = 1; n < names->nr && sweep_colls[coll].schedules; n++) {
			snprintf(item, sizeof(item), "%s=%s", sweep_colls[coll].schedules, names->name[n]);
			names->does[coll][n] = !muster_comm_schedule(comm, item);
		}
	if (!err)
		muster_comm_free(comm);
	return err;
}

/* One that is for fewer ranks does nothing here. */
static int schedule(struct runner *runner, uint32_t n)
{
	int err = muster_comm_schedule(runner->comms[n], runner->names.name[n]);

	for (uint32_t coll = 0; coll < SWEEP_COLLS && err == -EOPNOTSUPP; coll++)
		runner->names.does[coll][n] = false;
	return err == -EOPNOTSUPP ? 0 : err;
}

static int comms_make(struct runner *runner)
{
	uint32_t from[SWEEP_EDGES], to[SWEEP_EDGES];
	int err = 0;

	for (uint32_t k = 0; k < SWEEP_EDGES; k++) {
		from[k] = sweep_edge(runner->rank, runner->size, k, true);
		to[k] = sweep_edge(runner->rank, runner->size, k, false);
	}
	for (uint32_t n = 0; n < runner->names.nr && !err; n++) {
		err = muster_comm_dup(runner->world, &runner->comms[n]);
		if (!err && n)
			err = schedule(runner, n);
	}
	return err ? err : muster_comm_neighbours(runner->comms[0], SWEEP_EDGES, from, SWEEP_EDGES, to);
}

/* ---- data -------------------------------------------------------------------------------- */

static void block_fill(const struct sweep_case *c, uint8_t *side, const struct sweep_block *block)
{
	size_t size = c->type->bytes, period = SWEEP_PERIOD * size;
	uint8_t *at = side + block->displ * size;

	for (uint64_t i = 0; i < block->count && i < SWEEP_PERIOD; i++)
		sweep_element(c->type, c->op, block->first, block->id, i, at + i * size);
	for (uint64_t i = SWEEP_PERIOD; i < block->count; i += SWEEP_PERIOD)
		memcpy(at + i * size, at, (block->count - i) * size < period ?
						  (block->count - i) * size : period);
}

static void block_expect(const struct sweep_case *c, uint8_t *side, const struct sweep_block *block)
{
	size_t size = c->type->bytes;
	uint8_t *at = side + block->displ * size;

	if (block->first > block->last)
		return;
	for (uint64_t i = 0; i < block->count; i++) {
		if (i >= SWEEP_PERIOD)
			memcpy(at + i * size, at + (i - SWEEP_PERIOD) * size, size);
		else
			sweep_folded(c->type, c->op, block->first, block->last, block->id, i,
				     at + i * size);
	}
}

static uint64_t bytes_of(const struct sweep_case *c, const struct sweep_side *side)
{
	return side->span * c->type->bytes;
}

/* Algorithms and forms have the same. */
static void data_make(struct runner *runner, const struct sweep_case *c)
{
	const struct sweep_side *in = &runner->shape.in, *out = &runner->shape.out;

	if (runner->data == sweep_data(c))
		return;
	runner->data = sweep_data(c);
	memset(runner->given, RUBBISH, bytes_of(c, in));
	memset(runner->expected, RUBBISH, bytes_of(c, out));
	for (uint32_t k = 0; k < in->nr; k++)
		if (c->coll != SWEEP_BROADCAST || runner->rank == runner->shape.root)
			block_fill(c, runner->given, &in->blocks[k]);
	for (uint32_t k = 0; k < out->nr; k++)
		block_expect(c, runner->expected, &out->blocks[k]);
}

/* ---- judging ------------------------------------------------------------------------------- */

static bool all_rubbish(const uint8_t *p, size_t bytes)
{
	return !bytes || (*p == RUBBISH && !memcmp(p, p + 1, bytes - 1));
}

static bool block_right(struct runner *runner, const struct sweep_case *c, const uint8_t *got,
			const struct sweep_block *block)
{
	uint32_t ranks = block->first > block->last ? 1 : block->last - block->first + 1;
	size_t size = c->type->bytes;

	if (!memcmp(got + block->displ * size, runner->expected + block->displ * size,
		    block->count * size))
		return true;
	for (uint64_t i = 0; i < block->count; i++) {
		uint64_t at = (block->displ + i) * size;

		if (!sweep_right(c->type, c->op, ranks, i, got + at, runner->expected + at))
			return wrong(runner, c, "element %" PRIu64 " of block %u of rank %u is wrong",
				     i, block->id, block->first);
	}
	return true;
}

/* Between the blocks and around them nothing has changed, and nothing that was given. */
static bool rest_untouched(struct runner *runner, const struct sweep_case *c, const uint8_t *in,
			   const uint8_t *out)
{
	const struct sweep_side *side = &runner->shape.out;
	size_t size = c->type->bytes, end = side->span * size, in_end = bytes_of(c, &runner->shape.in);
	uint64_t at = end;

	/* Backwards, as they lie when there are gaps. */
	for (uint32_t k = 0; k < side->nr && runner->shape.spread; k++) {
		const struct sweep_block *block = &side->blocks[k];
		uint64_t behind = (block->displ + block->count) * size;

		if (side->blocks[0].displ && !all_rubbish(out + behind, at - behind))
			return wrong(runner, c, "memory between the blocks was written");
		at = block->displ * size;
	}
	if (!all_rubbish(out - SWEEP_GUARD, SWEEP_GUARD) || !all_rubbish(out + end, SWEEP_GUARD) ||
	    !all_rubbish(in - SWEEP_GUARD, SWEEP_GUARD) || !all_rubbish(in + in_end, SWEEP_GUARD))
		return wrong(runner, c, "memory beside the buffers was written");
	if (!runner->shape.in_place && memcmp(in, runner->given, in_end))
		return wrong(runner, c, "what was given was changed");
	return true;
}

static bool path_right(struct runner *runner, const struct sweep_case *c, enum muster_path wanted)
{
	const char *name = runner->names.name[c->name];
	struct muster_op_info info;

	muster_comm_last(runner->comms[c->name], &info);
	if (info.path == MUSTER_PATH_NONE)
		return c->ranks == 1 || !info.bytes || wrong(runner, c, "nothing ran: %s", info.why);
	if (info.path != wanted)
		return wrong(runner, c, "path %d, not %d: %s", info.path, wanted, info.why);
	if (c->name && strcmp(info.schedule, name))
		return wrong(runner, c, "%s ran", info.schedule);
	return true;
}

static bool result_right(struct runner *runner, const struct sweep_case *c, const uint8_t *in,
			 const uint8_t *out, bool host)
{
	const struct sweep_side *side = &runner->shape.out;

	if (!path_right(runner, c, host ? MUSTER_PATH_HOST : MUSTER_PATH_NIC) ||
	    !rest_untouched(runner, c, in, out))
		return false;
	for (uint32_t k = 0; k < side->nr; k++) {
		const struct sweep_block *block = &side->blocks[k];
		bool none = block->first > block->last && runner->shape.in_place;

		if (!none && !block_right(runner, c, out, block))
			return false;
	}
	if (host && runner->first && memcmp(runner->first, out, bytes_of(c, side)))
		return wrong(runner, c, "NIC path and host path have other bits");
	return true;
}

/* ---- playing ---------------------------------------------------------------------------------- */

/* Both sides anew: what is given, and rubbish wherever a result may come. */
static void sides_set(struct runner *runner, const struct sweep_case *c, uint8_t *in, uint8_t *out)
{
	uint64_t in_bytes = bytes_of(c, &runner->shape.in), out_bytes = bytes_of(c, &runner->shape.out);

	memset(in - SWEEP_GUARD, RUBBISH, in_bytes + 2 * SWEEP_GUARD);
	memset(out - SWEEP_GUARD, RUBBISH, out_bytes + 2 * SWEEP_GUARD);
	memcpy(runner->shape.in_place ? out : in, runner->given, in_bytes);
}

static bool finished(struct runner *runner, const struct sweep_case *c, int err, bool host)
{
	if (!err)
		return true;
	if (err == -EOPNOTSUPP && !host) {
		runner->figures->host_only++;
		return false;
	}
	return wrong(runner, c, "%s path: %s (%s)", host ? "host" : "NIC", muster_error(runner->job),
		     strerror(-err));
}

/* Twice, so that what the device keeps runs, too. */
static int persistent(struct runner *runner, const struct sweep_case *c,
		      struct muster_request *request, uint8_t *in, uint8_t *out)
{
	int err = 0;

	for (int turn = 0; turn < 2 && !err; turn++) {
		sides_set(runner, c, in, out);
		err = muster_start(request);
		if (!err)
			err = muster_wait(request);
		runner->figures->calls++;
	}
	return err ? err : muster_request_free(request);
}

static int call(struct runner *runner, const struct sweep_case *c, uint8_t *in, uint8_t *out)
{
	enum muster_op op = c->op == MUSTER_OP_USER ? runner->user_op : c->op;
	void *given = runner->shape.in_place ? out : in;
	struct muster_request *request = NULL;
	int err;

	runner->folded = c->type;
	err = sweep_call(runner->comms[c->name], c, op, &runner->shape, given, out, &request);
	if (err || c->form == SWEEP_BLOCKING) {
		runner->figures->calls++;
		return err;
	}
	if (c->form == SWEEP_PERSISTENT)
		return persistent(runner, c, request, in, out);
	runner->figures->calls++;
	return muster_wait(request);
}

static bool on_path(struct runner *runner, const struct sweep_case *c, bool host)
{
	uint64_t hash = sweep_hash(c);
	uint8_t **memory = hash >> 50 & 1 ? runner->shared : runner->plain;
	size_t place = (hash >> 52) % PLACE_MAX;
	uint8_t *in = memory[0] + SWEEP_GUARD + place, *out = memory[1] + SWEEP_GUARD + place;
	int err = muster_comm_offload(runner->comms[c->name],
				      host ? MUSTER_OFFLOAD_OFF : MUSTER_OFFLOAD_FORCE);

	sides_set(runner, c, in, out);
	if (!err)
		err = call(runner, c, in, out);
	if (!finished(runner, c, err, host))
		return false;
	if (!result_right(runner, c, in, out, host))
		return false;
	if (!host)
		memcpy(runner->first, out, bytes_of(c, &runner->shape.out));
	return true;
}

/* Longer blocks than fit are shorter with all ranks: the message has the length then. */
static void fit(struct sweep_case *c)
{
	bool vector = c->coll <= SWEEP_ALLREDUCE || c->coll == SWEEP_SCAN || c->coll == SWEEP_EXSCAN;
	bool to_neighbours = c->coll >= SWEEP_NEIGHBOUR_ALLGATHER;
	uint32_t blocks = to_neighbours && c->ranks < SWEEP_EDGES ? SWEEP_EDGES : c->ranks;

	if (vector && c->op != MUSTER_OP_USER)
		return;
	if (c->count * c->type->bytes * (blocks + 1) * 3 / 2 > SIDE_BYTES_MAX)
		c->count = c->count / blocks | 1;
}

static void take(void *opaque, const struct sweep_case *given)
{
	struct runner *runner = opaque;
	struct sweep_case c = *given;
	uint8_t *kept = runner->first;

	if (*runner->figures->why || c.ranks != runner->size ||
	    sweep_hash(&c) % runner->options->every != runner->options->part)
		return;
	if (runner->options->large)
		fit(&c);
	if (runner->options->each)
		runner->options->each(runner->options->opaque);
	runner->figures->cases++;
	sweep_shape(&c, runner->rank, &runner->shape);
	data_make(runner, &c);
	if (!on_path(runner, &c, false))
		runner->first = NULL;	/* nothing to compare with */
	if (!*runner->figures->why)
		on_path(runner, &c, true);
	runner->first = kept;
}

/* ---- all of it ---------------------------------------------------------------------------------- */

/* The longest that a case has: one block to and from each rank. */
static size_t room(const struct runner *runner)
{
	uint64_t blocks = runner->size + SWEEP_EDGES + 1, elements = (1000 * 3 / 2 + 3) * blocks;

	return runner->options->large ? SIDE_BYTES_MAX + (1 << 16) : elements * 16 + 4096;
}

static int memory_get(struct runner *runner)
{
	size_t bytes = room(runner);
	int err = 0;

	runner->given = malloc(bytes);
	runner->expected = malloc(bytes);
	runner->first = malloc(bytes);
	for (int i = 0; i < 2 && !err; i++) {
		void *shared = NULL;

		runner->plain[i] = malloc(bytes);
		err = runner->plain[i] ? muster_alloc(runner->job, bytes, &shared) : -ENOMEM;
		runner->shared[i] = shared;
	}
	return err || (runner->given && runner->expected && runner->first) ? err : -ENOMEM;
}

static void memory_give(struct runner *runner)
{
	free(runner->given);
	free(runner->expected);
	free(runner->first);
	for (int i = 0; i < 2; i++) {
		free(runner->plain[i]);
		muster_free(runner->job, runner->shared[i]);
	}
}

static int begin(struct runner *runner)
{
	int err = memory_get(runner);

	if (err)
		return err;
	names_list(runner);
	err = names_try(runner);
	if (!err)
		err = comms_make(runner);
	if (!err)
		err = muster_op_create(runner->job, sweep_combine, &runner->folded, &runner->user_op);
	return err;
}

void sweep_run(struct muster *job, const struct sweep_options *options,
	       struct sweep_figures *figures)
{
	struct muster_comm *world = muster_world(job);
	struct runner *runner = calloc(1, sizeof(*runner));
	int err;

	*figures = (struct sweep_figures){ 0 };
	if (!runner)
		return;
	*runner = (struct runner){
		.job = job, .world = world, .options = options, .figures = figures,
		.rank = muster_comm_rank(world), .size = muster_comm_size(world),
	};
	err = begin(runner);
	if (err)
		snprintf(figures->why, SWEEP_WHY_MAX, "rank %u: %s (%s)", runner->rank,
			 muster_error(job), strerror(-err));
	else if (options->large)
		sweep_pairs(&runner->names, options->ranks_max, take, runner);
	else
		sweep_all(&runner->names, runner->size, take, runner);
	for (uint32_t n = 0; n < runner->names.nr; n++)
		if (runner->comms[n])
			muster_comm_free(runner->comms[n]);
	memory_give(runner);
	free(runner);
}
