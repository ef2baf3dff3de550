// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The sequences of a context: posted, run one at a time in order of number, each
 * as up to MUSTER_PULSES_LIVE instances at once, and ended with a completion.
 * They wait by number; the running sequence is number `base`.
 */
#include "sequence.h"

#include <errno.h>

static struct sequence *sequence_new(struct context *ctx, uint32_t nr_steps, bool keep)
{
	size_t bytes = sizeof(struct sequence) + nr_steps * sizeof(struct step) +
		       (keep ? 2 * nr_steps * sizeof(struct bound_key) : 0);
	struct sequence *seq = muster_pool_take(ctx->engine, bytes);

	if (seq) {
		seq->bytes = bytes;
		seq->refs = 1;
		seq->kept = false;
		seq->instances = NULL;
		seq->predicted = NULL;
	}
	return seq;
}

void muster_sequence_free(struct context *ctx, struct sequence *seq)
{
	muster_predict_drop(ctx, seq);
	muster_pool_give(ctx->engine, seq->instances, seq->instances_bytes);
	muster_pool_give(ctx->engine, seq, seq->bytes);
}

int muster_sequence_add(struct context *ctx, const struct muster_desc *descs, uint32_t nr,
			uint32_t *bad)
{
	struct sequence *seq;
	int ret;

	seq = sequence_new(ctx, nr, descs->flags & MUSTER_DESC_KEEP);
	if (!seq)
		return -ENOMEM;
	ret = muster_decode_sequence(ctx, descs, nr, seq, bad);
	if (!ret && descs->flags & MUSTER_DESC_KEEP)
		ret = muster_kept_add(ctx, seq);
	if (!ret) {
		muster_sequence_enqueue(ctx, seq);
		muster_context_ready(ctx);
	}
	muster_sequence_put(ctx, seq);
	return ret;
}

/* Behind a program in memory there is room when the last of it has been fetched. */
static bool has_room(const struct context *ctx)
{
	return ctx->queued < MUSTER_SEQ_QUEUE_MAX && !ctx->fetching;
}

int muster_sequence_post(struct context *ctx, const struct muster_desc *descs, uint32_t nr,
			 uint32_t *bad)
{
	return has_room(ctx) ? muster_sequence_add(ctx, descs, nr, bad) : -EAGAIN;
}

int muster_sequence_restart(struct context *ctx, const struct muster_desc *desc)
{
	return muster_kept_find(ctx, desc) ? muster_sequence_restart_first(ctx) : -EINVAL;
}

int muster_sequence_restart_first(struct context *ctx)
{
	if (!has_room(ctx))
		return -EAGAIN;
	muster_sequence_enqueue(ctx, ctx->kept);
	muster_context_ready(ctx);
	return 0;
}

void muster_sequences_drop(struct context *ctx)
{
	while (ctx->queued)
		muster_sequence_put(ctx, ctx->queue[(ctx->base + --ctx->queued) %
						    MUSTER_SEQ_QUEUE_MAX]);
}

/* As many as can be live at once. */
static bool instances_new(struct context *ctx, struct sequence *seq)
{
	uint32_t nr = seq->pulse_count < MUSTER_PULSES_LIVE ? seq->pulse_count :
							      MUSTER_PULSES_LIVE;
	size_t bytes = sizeof(struct instance) + seq->nr_steps * sizeof(struct send);

	bytes = (bytes + _Alignof(struct instance) - 1) & ~(_Alignof(struct instance) - 1);
	ctx->instance_bytes = bytes;
	ctx->instances_bytes = nr * bytes;
	ctx->instances = seq->instances;
	if (!ctx->instances)
		ctx->instances = muster_pool_take(ctx->engine, ctx->instances_bytes);
	ctx->stalled |= !ctx->instances;
	ctx->instances_kept = seq->kept && ctx->instances;
	if (ctx->instances_kept) {
		seq->instances = ctx->instances;
		seq->instances_bytes = ctx->instances_bytes;
	}
	return ctx->instances;
}

/* What came before it ran is judged now. */
static bool start(struct context *ctx)
{
	const struct entry *entry = ctx->arrivals[ctx->base % MUSTER_WINDOW];
	struct sequence *seq = muster_sequence_current(ctx);

	if (!ctx->queued || !muster_farewell_check(ctx))
		return false;
	for (; entry; entry = entry->next)
		if (!muster_landing_check(ctx, entry))
			return false;
	if (seq->kept && !muster_kept_holds(ctx, seq)) {
		muster_context_fail(ctx, MUSTER_STATUS_MEMORY, ctx->self, NULL);
		return false;
	}
	if (!instances_new(ctx, seq))
		return false;
	ctx->running = true;
	ctx->coll_end = seq->coll_end;
	ctx->pulse_first = 0;
	ctx->pulse_next = 0;
	return true;
}

static void run_instances(struct context *ctx)
{
	const struct sequence *seq = muster_sequence_current(ctx);
	uint32_t pulse;

	for (; ctx->pulse_next - ctx->pulse_first < MUSTER_PULSES_LIVE &&
	       ctx->pulse_next < seq->pulse_count; ctx->pulse_next++)
		muster_instance_start(muster_instance(ctx, ctx->pulse_next), ctx->pulse_next);
	for (pulse = ctx->pulse_first; pulse != ctx->pulse_next; pulse++) {
		muster_instance_run(ctx, muster_instance(ctx, pulse));
		if (ctx->failure.status)
			return;
	}
	while (ctx->pulse_first != ctx->pulse_next &&
	       muster_instance_ended(seq, muster_instance(ctx, ctx->pulse_first))) {
		ctx->pulse_first++;
		ctx->moved = true;
	}
}

struct muster_cqe muster_sequence_cqe(const struct context *ctx, const struct sequence *seq)
{
	return (struct muster_cqe){
		.kind = MUSTER_CQE_SEQUENCE,
		.cookie = seq->cookie,
		.number = ctx->base,
		.culprit = MUSTER_CULPRIT_NONE,
		.signature = seq->signature,
		.context = ctx->id,
		.vp = ctx->vp,
		.job = ctx->job,
	};
}

static void end(struct context *ctx)
{
	struct muster_cqe cqe = muster_sequence_cqe(ctx, muster_sequence_current(ctx));

	if (!ctx->coll_end || muster_context_complete(ctx, &cqe))
		muster_sequence_end(ctx, muster_sequence_current(ctx));
}

void muster_sequence_run(struct context *ctx)
{
	do {
		ctx->moved = false;
		if (ctx->fetching)
			muster_fetch_run(ctx);
		if (ctx->failure.status)
			return;
		if (!ctx->running && !start(ctx))
			return;
		run_instances(ctx);
		if (ctx->failure.status)
			return;
		if (ctx->pulse_first == muster_sequence_current(ctx)->pulse_count)
			end(ctx);
		else
			muster_grant_run(ctx);
	} while (ctx->moved && !ctx->failure.status);
}
