// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Exact sums (Documentation/arithmetic.md) as two operations that any path runs: first a
 * maximum of three i32, what all numbers span. It says how many limbs a number has; then the
 * sum of all limbs as i64, by the schedule, tree or path that such a sum takes. Looking,
 * encoding and rounding are done once by each rank.
 *
 * Both are signed as exact sums, the second one by what was called and not by its limbs: a rank
 * that does not know these yet can tell whether another's packets are of the same call.
 */
#include <errno.h>

#include "arith.h"
#include "calls.h"

/* ---- memory for limbs, kept by the job from one sum to the next ------------ */

static int limbs_take(struct muster_exact_sum *sum)
{
	struct muster *job = sum->job;
	uint64_t numbers = sum->each * sum->blocks, bytes;
	void *limbs = job->limbs;
	int err = 0;

	if (__builtin_mul_overflow(numbers, muster_exact_planes(&sum->plan) * sizeof(*sum->limbs),
				   &bytes))
		return muster_fail(job, -ENOMEM, "the limbs of an exact sum are more than memory can hold");
	sum->limbs_bytes = job->limbs_bytes;
	job->limbs = NULL;
	job->limbs_bytes = 0;
	if (sum->limbs_bytes < bytes) {
		if (limbs)
			muster_free(job, limbs);
		sum->limbs_bytes = bytes;
		err = muster_alloc(job, bytes, &limbs);
	}
	if (!err)
		sum->limbs = limbs;
	return err;
}

static void limbs_put(struct muster_exact_sum *sum)
{
	struct muster *job = sum->job;

	if (job->limbs) {	/* another one was faster */
		muster_free(job, sum->limbs);
	} else {
		job->limbs = sum->limbs;
		job->limbs_bytes = sum->limbs_bytes;
	}
}

/* Where a block's limbs are. */
static int64_t *limbs_of(const struct muster_exact_sum *sum, uint32_t block)
{
	return sum->limbs + block * sum->each * muster_exact_planes(&sum->plan);
}

/* ---- the call -------------------------------------------------------------------------- */

/*
 * The sum of limbs, for each number so many: what called is, but for what follows from that. A
 * reduce-scatter's result comes over block 0, as a caller's may: who stores lets go first what is sent from there.
 */
static struct muster_call limbs_call(const struct muster_exact_sum *sum,
				     const struct muster_call *called, uint32_t limbs)
{
	struct muster_call call = *called;

	call.as = MUSTER_COLL_EXACT_SUM;
	call.type = MUSTER_I64;
	call.op = MUSTER_SUM;
	call.count = sum->each * sum->blocks * limbs;
	call.bytes = call.count * sizeof(*sum->limbs);
	call.in_place = sum->to && call.coll != MUSTER_COLL_REDUCE_SCATTER;
	call.parts = call.coll != MUSTER_COLL_ALLREDUCE;
	call.exact = MUSTER_CALL_EXACT(limbs, sum->type);
	return call;
}

int muster_exact_begin(struct muster_comm *comm, const struct muster_call *called,
		       const struct muster_fold *fold, const void *in, void *out,
		       struct muster_request **request)
{
	struct muster_call call = *called;
	struct muster_aside *aside;
	int err;

	if (comm->size == 1 || !call.count) {
		call.op = MUSTER_SUM;
		return muster_parts_begin(comm, &call, in, out, NULL, request);
	}
	aside = muster_aside_new(comm, 0, 0);
	if (!aside)
		return -ENOMEM;
	aside->exact = (struct muster_exact_sum){
		.type = (uint8_t)call.type, .job = comm->job, .in = in, .to = fold->nr ? out : NULL,
		.each = fold->count, .blocks = (uint32_t)(call.count / fold->count),
	};
	call = limbs_call(&aside->exact, called, 1);
	err = muster_request_start_lengths(comm, &call, NULL, NULL, aside, request);
	if (err)
		muster_aside_end(aside, err);
	return err;
}

/* ---- before and after ---------------------------------------------------------------------- */

int muster_exact_look(struct muster_comm *comm, struct muster_exact_sum *sum,
		      struct muster_request **request)
{
	const struct muster_call call = {
		.coll = MUSTER_COLL_ALLREDUCE, .as = MUSTER_COLL_EXACT_SUM, .type = MUSTER_I32,
		.op = MUSTER_MAX, .count = sizeof(sum->span) / sizeof(int32_t),
		.bytes = sizeof(sum->span), .in_place = true, .own = true,
	};

	sum->span = MUSTER_EXACT_NOTHING;
	muster_exact_span_of(sum->type, sum->in, sum->each * sum->blocks, &sum->span);
	return muster_request_start(comm, &call, &sum->span, &sum->span, request);
}

static void encode(const struct muster_exact_sum *sum)
{
	size_t bytes = sum->each * muster_dtype_size(sum->type);

	for (uint32_t block = 0; block < sum->blocks; block++)
		muster_exact_encode(&sum->plan, sum->type, sum->in + block * bytes, sum->each,
				    limbs_of(sum, block));
}

int muster_exact_prepare(struct muster_request *request)
{
	struct muster_exact_sum *sum = &request->aside->exact;
	struct muster_comm *comm = request->comm;
	struct muster_entry *entry;
	struct muster_call call;
	int err = muster_exact_plan(&sum->span, comm->size, &sum->plan);

	if (err)
		return muster_comm_give_up(comm, muster_fail(comm->job, -EPROTO, "exact sum: the ranks' numbers span what no %s does",
							     muster_type_name(sum->type)));
	call = limbs_call(sum, &request->entry->call, muster_exact_planes(&sum->plan));
	err = limbs_take(sum);
	if (!err)
		err = muster_entry_get(comm, &call, &entry);
	if (err)
		return muster_comm_give_up(comm, err);
	muster_entry_put(request->entry);
	request->entry = entry;
	encode(sum);
	request->in = (void *)sum->limbs;
	request->out = sum->to ? (void *)sum->limbs : NULL;
	return 1;
}

void muster_exact_forget(struct muster_exact_sum *sum)
{
	if (sum->limbs)
		limbs_put(sum);
	sum->limbs = NULL;
}

/* After a failure the job may be about to end: its limbs go with all that muster_alloc() gave. */
void muster_exact_end(struct muster_exact_sum *sum, int result)
{
	if (sum->limbs && !result && sum->to)
		muster_exact_round(&sum->plan, sum->type, sum->limbs, sum->each,
				   sum->to);
	if (sum->limbs && !result)
		limbs_put(sum);
	sum->limbs = NULL;
}
