// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The sequences of a context: posted, run one at a time in order of number, each
 * as up to MUSTER_PULSES_LIVE instances at once, and ended with a completion.
 * The queue is a ring by number; the running sequence is number `base`.
 */
#include "internal.h"

#include <errno.h>

int muster_sequence_post(struct context *ctx, const struct muster_desc *descs, uint32_t nr,
			 uint32_t *bad)
{
	uint32_t number = ctx->base + ctx->queued;
	int ret;

	if (ctx->queued == MUSTER_SEQ_QUEUE_MAX)
		return -EAGAIN;
	ret = muster_decode_sequence(ctx, descs, nr, &ctx->queue[number % MUSTER_SEQ_QUEUE_MAX],
				     bad);
	if (ret)
		return ret;
	ctx->queued++;
	ctx->engine->counters.sequences_posted++;
	muster_context_ready(ctx);
	return 0;
}

/* What came before it ran is judged now. */
static bool start(struct context *ctx)
{
	const struct arrivals *arrivals = &ctx->arrivals[ctx->base % MUSTER_WINDOW];
	const struct entry *entries = ctx->unit->entries;
	uint16_t index;

	if (!ctx->queued || !muster_farewell_check(ctx))
		return false;
	for (index = arrivals->first; index; index = entries[index].next)
		if (!muster_landing_check(ctx, &entries[index]))
			return false;
	ctx->running = true;
	ctx->coll_end = muster_sequence_current(ctx)->coll_end;
	ctx->pulse_first = 0;
	ctx->pulse_next = 0;
	return true;
}

static struct instance *live(struct context *ctx, uint32_t pulse)
{
	return &ctx->instances[pulse % MUSTER_PULSES_LIVE];
}

static void run_instances(struct context *ctx)
{
	const struct sequence *seq = muster_sequence_current(ctx);
	uint32_t pulse;

	for (; ctx->pulse_next - ctx->pulse_first < MUSTER_PULSES_LIVE &&
	       ctx->pulse_next < seq->pulse_count; ctx->pulse_next++)
		muster_instance_start(live(ctx, ctx->pulse_next), ctx->pulse_next);
	for (pulse = ctx->pulse_first; pulse != ctx->pulse_next; pulse++) {
		muster_instance_run(ctx, live(ctx, pulse));
		if (ctx->failure.status)
			return;
	}
	while (ctx->pulse_first != ctx->pulse_next &&
	       muster_instance_ended(ctx, live(ctx, ctx->pulse_first))) {
		ctx->pulse_first++;
		ctx->moved = true;
	}
}

static bool complete(struct context *ctx, const struct sequence *seq)
{
	struct muster_cqe cqe = {
		.kind = MUSTER_CQE_SEQUENCE,
		.cookie = seq->cookie,
		.number = ctx->base,
		.culprit = MUSTER_CULPRIT_NONE,
		.signature = seq->signature,
	};

	return !ctx->coll_end || muster_context_complete(ctx, &cqe);
}

/* Every slot has been combined, and nothing else was let in: no entry is left. */
static void end(struct context *ctx)
{
	const struct sequence *seq = muster_sequence_current(ctx);
	struct ended *ended = &ctx->ended[ctx->base % MUSTER_WINDOW];

	if (!complete(ctx, seq))
		return;
	ended->signature = seq->signature;
	ended->stage = seq->stage;
	if (ctx->nr_ended < MUSTER_WINDOW)
		ctx->nr_ended++;
	ctx->running = false;
	ctx->queued--;
	ctx->base++;
	ctx->moved = true;
	ctx->engine->counters.sequences_ended++;
	muster_credit_ended(ctx, ctx->base - 1);
}

void muster_sequence_run(struct context *ctx)
{
	do {
		ctx->moved = false;
		if (!ctx->running && !start(ctx))
			return;
		run_instances(ctx);
		if (ctx->failure.status)
			return;
		if (ctx->pulse_first == muster_sequence_current(ctx)->pulse_count)
			end(ctx);
		else
			muster_landing_grant_room(ctx);
	} while (ctx->moved && !ctx->failure.status);
}
