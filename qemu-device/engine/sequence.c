// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The sequences of a context: posted, run one at a time in order of number, each
 * as up to MUSTER_PULSES_LIVE instances at once, and ended with a completion.
 * The running sequence is number `base`. One that only ends numbers stays until the
 * last of them.
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
		seq->tries = 0;
		seq->instances = NULL;
		seq->nr_instances = 0;
		seq->instance_bytes = 0;
		seq->predicted = NULL;
	}
	return seq;
}

static size_t instances_bytes(const struct sequence *seq)
{
	return (size_t)seq->nr_instances * seq->instance_bytes;
}

void muster_instances_give(struct context *ctx, const struct sequence *seq, void *instances)
{
	muster_pool_give(ctx->engine, instances, instances_bytes(seq));
}

void muster_sequence_free(struct context *ctx, struct sequence *seq)
{
	muster_predict_drop(ctx, seq);
	muster_instances_give(ctx, seq, seq->instances);
	muster_pool_give(ctx->engine, seq, seq->bytes);
}

int muster_sequence_add(struct context *ctx, const struct muster_desc *descs, uint32_t nr,
			uint32_t *bad)
{
	struct sequence *seq;
	int ret;

	seq = muster_sequence_has_place(ctx) ?
	      sequence_new(ctx, nr, descs->flags & MUSTER_DESC_KEEP) : NULL;
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

/* ---- those that are posted ---- */

bool muster_sequence_has_place(struct context *ctx)
{
	if (!ctx->queued || ctx->queue)
		return true;
	ctx->queue = muster_pool_take(ctx->engine, MUSTER_SEQ_QUEUE_MAX * sizeof(*ctx->queue));
	return ctx->queue;
}

void muster_queue_give(struct context *ctx)
{
	muster_pool_give(ctx->engine, ctx->queue, MUSTER_SEQ_QUEUE_MAX * sizeof(*ctx->queue));
	ctx->queue = NULL;
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
	if (!muster_sequence_has_place(ctx))
		return -ENOMEM;
	muster_sequence_enqueue(ctx, ctx->kept);
	muster_context_ready(ctx);
	return 0;
}

void muster_sequences_drop(struct context *ctx)
{
	while (ctx->queued > 1)
		muster_sequence_put(ctx, ctx->queue[(ctx->queue_first + --ctx->queued) %
						    MUSTER_SEQ_QUEUE_MAX]);
	if (ctx->queued)
		muster_sequence_put(ctx, ctx->current);
	ctx->queued = 0;
	muster_queue_give(ctx);
}

/* ---- those that have ended ---- */

static void signatures_give(struct context *ctx)
{
	muster_pool_give(ctx->engine, ctx->signatures, MUSTER_WINDOW * sizeof(*ctx->signatures));
	ctx->signatures = NULL;
}

/* So far all were like the last. Without memory nothing is known of them any more. */
static void signatures_take(struct context *ctx)
{
	uint32_t i;

	ctx->signatures = muster_pool_take(ctx->engine, MUSTER_WINDOW * sizeof(*ctx->signatures));
	if (!ctx->signatures)
		ctx->nr_ended = 0;
	for (i = 0; i < MUSTER_WINDOW && ctx->signatures; i++)
		ctx->signatures[i] = ctx->ended.last;
}

void muster_sequence_remember(struct context *ctx, const struct muster_signature *signature)
{
	if (!muster_signatures_equal(&ctx->ended.last, signature)) {
		if (!ctx->signatures && ctx->nr_ended)
			signatures_take(ctx);
		ctx->ended.last = *signature;
		ctx->nr_alike = 0;
	}
	if (ctx->nr_ended < MUSTER_WINDOW)
		ctx->nr_ended++;
	if (ctx->signatures)
		ctx->signatures[ctx->base % MUSTER_WINDOW] = *signature;
	if (++ctx->nr_alike == MUSTER_WINDOW)
		signatures_give(ctx);
}

const struct muster_signature *muster_sequence_ended(const struct context *ctx, uint32_t number)
{
	if (ctx->base - number > ctx->nr_ended)
		return NULL;
	return ctx->signatures ? &ctx->signatures[number % MUSTER_WINDOW] : &ctx->ended.last;
}

void muster_ended_forget(struct context *ctx)
{
	ctx->nr_ended = 0;
	signatures_give(ctx);
}

/* ---- running ---- */

/*
 * The Tianhe paper's pulses without a counter (section 1.3): they are tried again at the next steps,
 * and in the end the process is told.
 */
static void try_again(struct context *ctx, struct sequence *seq)
{
	ctx->engine->counters->retries++;
	if (++seq->tries == TRIES_MAX)
		muster_context_starve(ctx);
	else
		ctx->stalled = true;
}

/* As many as can be live at once. */
static bool instances_new(struct context *ctx, struct sequence *seq)
{
	size_t bytes = sizeof(struct instance) + seq->nr_steps * (sizeof(struct send) + seq->held_bytes);
	uint32_t live = seq->pulse_count < seq->pulses_live ? seq->pulse_count : seq->pulses_live;

	for (seq->nr_instances = 1; seq->nr_instances < live;)
		seq->nr_instances *= 2;
	seq->instance_bytes = (bytes + _Alignof(struct instance) - 1) &
			      ~(_Alignof(struct instance) - 1);
	ctx->instances = seq->instances;
	if (!ctx->instances)
		ctx->instances = muster_pool_take(ctx->engine, instances_bytes(seq));
	if (!ctx->instances)
		try_again(ctx, seq);
	ctx->instances_kept = seq->kept && ctx->instances;
	if (ctx->instances_kept)
		seq->instances = ctx->instances;
	return ctx->instances;
}

/* What came before it ran is judged now. */
static bool start(struct context *ctx)
{
	const struct entry *entry = muster_arrivals_first(ctx, ctx->base);
	struct sequence *seq = muster_sequence_current(ctx);

	if (!ctx->queued || !muster_farewell_check(ctx))
		return false;
	if (entry && entry->next)
		muster_entries_expect(ctx, ctx->base);
	if (!muster_landing_check_all(ctx, entry))
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
	if (seq->tree_step != NO_TREE)
		muster_tree_begin(ctx, seq);
	return true;
}

static void run_instances(struct context *ctx)
{
	const struct sequence *seq = muster_sequence_current(ctx);
	uint32_t pulse;

	for (; ctx->pulse_next - ctx->pulse_first < seq->pulses_live &&
	       ctx->pulse_next < seq->pulse_count; ctx->pulse_next++) {
		muster_instance_start(muster_instance(ctx, ctx->pulse_next), ctx->pulse_next);
		ctx->engine->counters->pulses++;
	}
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

/* It is the next number, too. */
static void stay(struct context *ctx, struct sequence *seq)
{
	muster_sequence_close(ctx, seq);
	seq->numbers--;
	seq->stage++;
	ctx->base++;
	ctx->moved = true;
	muster_sequence_tell(ctx);
}

static void end(struct context *ctx)
{
	struct sequence *seq = muster_sequence_current(ctx);
	struct muster_cqe cqe = muster_sequence_cqe(ctx, seq);

	if (seq->numbers > 1)
		stay(ctx, seq);
	else if (!ctx->coll_end || muster_context_complete(ctx, &cqe))
		muster_sequence_end(ctx, seq);
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
