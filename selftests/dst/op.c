// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Operations: which collective, over which schedule, on which data, and what its
 * result must be. The expected result is the schedule's meaning, executed on whole
 * messages step by step, as the host path would; for integers it is also computed
 * from the contributions alone, without any schedule.
 */
#include "dst.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arith.h"
#include "test_meaning.h"

enum { GUARD_BYTES = 64, GUARD = 0xa7, SEAL = 0xdd, KEPT_MAX = 4096 };

static const char *const names[] = { "binomial", "recursive-doubling", "rabenseifner", "ring" };

/* ---- schedules, kept from seed to seed: they depend on nothing else --------------- */

static struct kept {
	uint32_t name, ranks, root;
	enum muster_coll coll;
	struct muster_schedule *schedule;	/* NULL: there is none */
} kept[KEPT_MAX];
static uint32_t nr_kept;

static struct muster_schedule *generate(struct dst_world *w, const char *name,
					enum muster_coll coll, uint32_t ranks, uint32_t root,
					uint64_t bytes)
{
	struct muster_schedule *schedule;
	char why[DST_WHY_MAX] = "";

	if (muster_schedule_generate(name, coll, ranks, root, bytes, &schedule, why, sizeof(why)))
		return NULL;
	if (muster_schedule_check(schedule, why, sizeof(why)))
		dst_fail(w, "schedule %s of %u ranks is wrong: %s", schedule->name, ranks, why);
	return schedule;
}

static const struct muster_schedule *schedule_named(struct dst_world *w, uint32_t name,
						     enum muster_coll coll, uint32_t ranks,
						     uint32_t root)
{
	struct kept *k;

	for (uint32_t i = 0; i < nr_kept; i++) {
		k = &kept[i];
		if (k->name == name && k->coll == coll && k->ranks == ranks && k->root == root)
			return k->schedule;
	}
	if (nr_kept == KEPT_MAX)
		return NULL;
	k = &kept[nr_kept++];
	*k = (struct kept){ name, ranks, root, coll, NULL };
	k->schedule = generate(w, names[name], coll, ranks, root, 0);
	return k->schedule;
}

/* ---- data ---------------------------------------------------------------------------- */

static uint64_t hash_of(const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	uint64_t hash = len * 0x9e3779b97f4a7c15ull, word;

	for (; len; p += word, len -= word) {
		uint64_t value = 0;

		word = len < 8 ? len : 8;
		memcpy(&value, p, word);
		hash = (hash ^ value) * 0x94d049bb133111ebull;
		hash ^= hash >> 29;
	}
	return hash;
}

static double number(struct dst_rng *rng)
{
	static const double special[] = { 0.0, -0.0, 1e308, -1e308, 1e-310, __builtin_inf(),
					  -__builtin_inf(), __builtin_nan("") };
	uint64_t bits = dst_draw(rng);

	if (bits % 64 == 0)
		return special[bits / 64 % 8];
	return (double)(int64_t)bits / (double)(1ull << (bits & 63));
}

static const uint8_t kinds[] = {
#define KIND(name, number, word, bytes, kind) [number] = MUSTER_KIND_##kind,
	MUSTER_DTYPES(KIND)
};

/* A number, or any bits. */
static void fill_lane(struct dst_rng *rng, bool real, size_t size, uint8_t *to)
{
	uint64_t bits = dst_draw(rng);
	double d;
	float f;

	if (!real) {
		memcpy(to, &bits, size);
	} else if (size == 8) {
		d = number(rng);
		memcpy(to, &d, size);
	} else {
		f = number(rng);
		memcpy(to, &f, size);
	}
}

static void fill(struct dst_rng *rng, uint8_t type, uint8_t *to, uint64_t bytes)
{
	bool two = kinds[type] & (MUSTER_KIND_COMPLEX | MUSTER_KIND_PAIR);
	bool real = kinds[type] & (MUSTER_KIND_COMPLEX | MUSTER_KIND_FLOAT);
	size_t size = muster_dtype_size(type), lane = two ? size / 2 : size;

	for (uint64_t i = 0; i < bytes; i += lane) {
		bool value = kinds[type] == MUSTER_KIND_PAIR && i % size == 0;

		fill_lane(rng, real || (value && type <= MUSTER_DTYPE_F64_I32), lane, to + i);
	}
}

static uint8_t *skewed(struct dst_world *w, uint64_t bytes, size_t skew)
{
	uint8_t *p = dst_memory(w, skew + bytes + GUARD_BYTES);

	if (!p)
		return NULL;
	memset(p + skew + bytes, GUARD, GUARD_BYTES);
	return p + skew;
}

static uint8_t *buffer(struct dst_world *w, uint64_t bytes)
{
	return skewed(w, bytes, dst_below(&w->data, 2) ? dst_below(&w->data, 64) : 0);
}

static bool guarded(const uint8_t *p, uint64_t bytes)
{
	for (int i = 0; i < GUARD_BYTES; i++)
		if (p[bytes + i] != GUARD)
			return false;
	return true;
}

/* ---- what the schedule means ------------------------------------------------------------ */

struct vectors {
	uint8_t *of[DST_RANKS_MAX];	/* by member */
};

static int64_t integer(uint8_t type, const uint8_t *p)
{
	size_t size = muster_dtype_size(type);
	uint64_t value = 0;

	memcpy(&value, p, size);
	if (kinds[type] == MUSTER_KIND_UINT)
		return (int64_t)value;
	return (int64_t)(value << (64 - 8 * size)) >> (64 - 8 * size);
}

static int64_t fold(uint8_t type, uint8_t op, int64_t a, int64_t b)
{
	bool less = type == MUSTER_DTYPE_U64 ? (uint64_t)a < (uint64_t)b : a < b;

	switch (op) {
	case MUSTER_REDOP_SUM:
		return (int64_t)((uint64_t)a + (uint64_t)b);
	case MUSTER_REDOP_PROD:
		return (int64_t)((uint64_t)a * (uint64_t)b);
	case MUSTER_REDOP_MIN:
		return less ? a : b;
	case MUSTER_REDOP_MAX:
		return less ? b : a;
	case MUSTER_REDOP_BAND:
		return a & b;
	case MUSTER_REDOP_BOR:
		return a | b;
	case MUSTER_REDOP_BXOR:
		return a ^ b;
	case MUSTER_REDOP_LAND:
		return a && b;
	case MUSTER_REDOP_LOR:
		return a || b;
	default:
		return !a != !b;
	}
}

/* The plain meaning of a reduction of integers: no schedule, no shared arithmetic. */
static bool plainly_right(const struct dst_op *op, const struct vectors *in, uint32_t nr)
{
	size_t size = muster_dtype_size(op->type);

	for (uint64_t i = 0; i < op->bytes; i += size) {
		int64_t value = integer(op->type, in->of[0] + i);

		for (uint32_t m = 1; m < nr; m++)
			value = fold(op->type, op->op, value, integer(op->type, in->of[m] + i));
		if (memcmp(&value, op->expected + i, size))
			return false;
	}
	return true;
}

static bool reduces(const struct dst_op *op)
{
	return op->schedule->coll == MUSTER_COLL_REDUCE || op->schedule->coll == MUSTER_COLL_ALLREDUCE;
}

static bool has_result(const struct dst_op *op, uint32_t member)
{
	return op->schedule->coll != MUSTER_COLL_REDUCE || member == op->schedule->root;
}

static void expect(struct dst_world *w, const struct dst_comm *comm, struct dst_op *op,
		   const struct vectors *in)
{
	struct vectors v = { { NULL } };
	uint32_t root = op->schedule->root, nr = comm->nr;

	for (uint32_t m = 0; m < nr; m++) {
		v.of[m] = malloc(op->bytes + 1);
		memcpy(v.of[m], in->of[m], op->bytes);
	}
	if (op->tree) {
		dst_tree_expect(w, comm, op, in->of, op->expected);
	} else {
		meaning_execute(op->schedule, op->type, op->op, op->count, v.of);
		memcpy(op->expected, v.of[root], op->bytes);
	}
	for (uint32_t m = 0; m < nr && !op->tree; m++)
		if (has_result(op, m) && memcmp(v.of[m], op->expected, op->bytes))
			dst_fail(w, "schedule %s gives members %u and %u other bits",
				 op->schedule->name, root, m);
	if (op->schedule->coll == MUSTER_COLL_BROADCAST &&
	    memcmp(op->expected, in->of[root], op->bytes))
		dst_fail(w, "schedule %s does not broadcast", op->schedule->name);
	if (reduces(op) && kinds[op->type] & MUSTER_KINDS_INTEGER && op->op != MUSTER_REDOP_REPLACE &&
	    !plainly_right(op, in, nr))
		dst_fail(w, "schedule %s does not reduce", op->schedule->name);
	for (uint32_t m = 0; m < nr; m++)
		free(v.of[m]);
}

/* ---- making them ----------------------------------------------------------------------------- */

static uint64_t draw_bytes(struct dst_world *w, bool large)
{
	static const uint32_t bounds[] = { 9, 65, 130, 5000, 40000, 140000, 300000 };
	uint64_t bound = bounds[dst_below(&w->data, large ? 7 : 3)];

	return w->arena_used > DST_ARENA_BYTES / 4 ? dst_below(&w->data, 65)
						    : dst_below(&w->data, bound);
}

static void draw_schedule(struct dst_world *w, struct dst_op *op, enum muster_coll coll,
			  uint32_t ranks)
{
	bool rooted = muster_coll_rooted(coll);
	uint32_t root = rooted ? dst_below(&w->data, ranks) : 0;
	uint32_t name = dst_below(&w->data, 5);

	op->schedule = name < 4 ? schedule_named(w, name, coll, ranks, root) : NULL;
	if (!op->schedule)
		op->schedule = op->owned = generate(w, NULL, coll, ranks, root, op->bytes);
}

int dst_op_make(struct dst_world *w, struct dst_comm *comm, struct dst_op *op, bool large)
{
	static const enum muster_coll colls[] = {
		MUSTER_COLL_BARRIER, MUSTER_COLL_BROADCAST, MUSTER_COLL_BROADCAST,
		MUSTER_COLL_REDUCE, MUSTER_COLL_ALLREDUCE, MUSTER_COLL_ALLREDUCE,
	};
	enum muster_coll coll = colls[dst_below(&w->data, 6)];
	struct vectors in;
	uint64_t bytes = 0;

	if (coll != MUSTER_COLL_BARRIER) {
		op->type = 1 + dst_below(&w->data, MUSTER_DTYPE_LAST);
		bytes = draw_bytes(w, large);
	}
	if (w->trees)
		op->tree = dst_tree_draw(w, comm, &bytes);
	if (op->tree && dst_lock_wanted(w, comm, op)) {
		coll = MUSTER_COLL_BARRIER;
		bytes = 0;
	}
	if (coll != MUSTER_COLL_BARRIER) {
		op->count = bytes / muster_dtype_size(op->type);
		op->bytes = op->count * muster_dtype_size(op->type);
	}
	if (coll == MUSTER_COLL_REDUCE || coll == MUSTER_COLL_ALLREDUCE) {
		do {
			op->op = 1 + dst_below(&w->data, MUSTER_REDOP_LAST);
		} while (!muster_arith_supported(op->type, op->op) ||
			 (coll == MUSTER_COLL_ALLREDUCE && !muster_arith_exchanges(op->op)));
	}
	draw_schedule(w, op, coll, comm->nr);
	op->expected = dst_memory(w, op->bytes);
	if (!op->schedule || !op->expected)
		return -ENOMEM;
	for (uint32_t m = 0; m < comm->nr; m++) {
		in.of[m] = buffer(w, op->bytes);
		if (!in.of[m])
			return -ENOMEM;
		fill(&w->data, op->type, in.of[m], op->bytes);
	}
	if (!op->lock)
		expect(w, comm, op, &in);
	for (uint32_t m = 0; m < comm->nr; m++) {
		struct dst_rank *rank = &w->ranks[comm->members[m]];
		struct dst_part *part = &rank->parts[comm - w->comms];
		int err = dst_call_make(w, comm, m, op, &part->calls[op - comm->ops], in.of[m]);

		if (err)
			return err;
	}
	return 0;
}

void dst_op_alter(struct dst_world *w, struct dst_op *wrong, const struct dst_op *op)
{
	*wrong = *op;
	wrong->owned = NULL;
	wrong->lock = 0;
	if (op->schedule->coll == MUSTER_COLL_BARRIER) {
		wrong->bytes = wrong->count = 0;
		wrong->type = MUSTER_DTYPE_I64;	/* some other operation without data */
		return;
	}
	/* Two roots of two members would both be content, were it not for the signature. */
	if (op->schedule->coll == MUSTER_COLL_BROADCAST &&
	    (op->schedule->ranks == 2 || dst_below(&w->data, 2))) {
		wrong->schedule = schedule_named(w, 0, MUSTER_COLL_BROADCAST, op->schedule->ranks,
						 (op->schedule->root + 1) % op->schedule->ranks);
		return;
	}
	wrong->count = op->count ? op->count - 1 - dst_below(&w->data, op->count) : 7;
	wrong->bytes = wrong->count * muster_dtype_size(op->type);
}

int dst_call_make(struct dst_world *w, struct dst_comm *comm, uint32_t member,
		  const struct dst_op *op, struct dst_call *call, uint8_t *in)
{
	struct muster_lower_params params = {
		.rank = member,
		.count = op->count,
		.type = op->type,
		.op = op->op,
		.job = w->job,
		.context = comm->id,
		.addresses = comm->addresses,
		.in_place = !dst_below(&w->data, 3),
		.forwards = w->plan.forwards, .idles = w->plan.idles,
	};
	struct muster_schedule *by_rank;
	char why[DST_WHY_MAX] = "";
	int err;

	*call = (struct dst_call){ .op = op, .in = in ? in : buffer(w, op->bytes) };
	if (!call->in)
		return -ENOMEM;
	call->out = params.in_place ? call->in : buffer(w, op->bytes);
	if (!call->out)
		return -ENOMEM;
	call->in_hash = hash_of(call->in, op->bytes);
	if (op->tree) {
		call->program = dst_tree_lower(w, comm, member, op);
		err = call->program ? 0 : -ENOMEM;
	} else {
		err = muster_schedule_by_rank(op->schedule->name, op->schedule->coll, comm->nr,
					      op->schedule->root, 0, &by_rank, why, sizeof(why));
	}
	if (!err && !op->tree) {
		err = muster_schedule_lower(by_rank, &params, &call->program, why, sizeof(why));
		muster_schedule_free(by_rank);
	}
	if (err)
		dst_fail(w, "schedule %s of %u ranks cannot be lowered: %s", op->schedule->name,
			 comm->nr, why);
	if (err)
		return err;
	call->scratch = skewed(w, call->program->scratch_bytes, 0);
	return call->scratch ? 0 : -ENOMEM;
}

/* ---- judging ------------------------------------------------------------------------------------ */

bool dst_call_right(struct dst_world *w, const struct dst_comm *comm, uint32_t member,
		    const struct dst_call *call)
{
	const struct dst_op *op = call->op;
	const char *what = NULL;

	if (has_result(op, member) && memcmp(call->out, op->expected, op->bytes))
		what = "its result has wrong bits";
	else if (call->in != call->out && hash_of(call->in, op->bytes) != call->in_hash)
		what = "its contribution was changed";
	else if (!guarded(call->in, op->bytes) || !guarded(call->out, op->bytes) ||
		 !guarded(call->scratch, call->program->scratch_bytes))
		what = "memory behind its buffers was changed";
	if (what)
		dst_fail(w, "member %u of communicator %u: %s%s %s (%s, %llu bytes of type %u, op %u) succeeded, but %s",
			 member, (unsigned)(comm - w->comms),
			 op->tree ? op->tree == 1 ? "low-latency tree, " : "streaming tree, " : "", op->schedule->name,
			 muster_coll_name(op->schedule->coll),
			 call->program->is_inline ? "inline" : "memory",
			 (unsigned long long)op->bytes, op->type, op->op, what);
	return !what;
}

void dst_call_seal(struct dst_call *call)
{
	call->live = false;
	call->settled = true;
	memset(call->in, SEAL, call->op->bytes);
	memset(call->out, SEAL, call->op->bytes);
	memset(call->scratch, SEAL, call->program->scratch_bytes);
}

static bool all_seal(const uint8_t *p, uint64_t bytes)
{
	return !bytes || (*p == SEAL && !memcmp(p, p + 1, bytes - 1));
}

bool dst_call_sealed(const struct dst_call *call)
{
	return all_seal(call->in, call->op->bytes) && all_seal(call->out, call->op->bytes) &&
	       all_seal(call->scratch, call->program->scratch_bytes) &&
	       guarded(call->in, call->op->bytes) && guarded(call->out, call->op->bytes) &&
	       guarded(call->scratch, call->program->scratch_bytes);
}
