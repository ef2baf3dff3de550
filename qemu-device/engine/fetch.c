// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Programs that lie in memory (Documentation/sequence.md, section 3): one descriptor names
 * sequences, one behind the other, which are fetched as the queue of their context has room. Each is
 * read once, copied, and checked as if it were posted then; so nothing of the program is kept but
 * where the rest of it lies.
 */
#include "internal.h"

#include <errno.h>

enum { FETCH_BELOW = MUSTER_SEQ_QUEUE_MAX / 2 };	/* so many queued, or fewer */

/* Whose it is and where it lies, and nothing else. */
static bool program_valid(const struct context *ctx, const struct muster_desc *desc)
{
	const struct muster_desc only = {
		.kind = MUSTER_DESC_PROGRAM,
		.flags = MUSTER_DESC_C | MUSTER_DESC_CH | MUSTER_DESC_CT,
		.src_vp = ctx->vp,
		.job = ctx->job,
		.context = ctx->id,
		.cookie = desc->cookie,
		.length = desc->length,
		.range = { .load_addr = desc->range.load_addr, .load_key = desc->range.load_key },
	};
	uint64_t nr = desc->length / sizeof(*desc);

	return !memcmp(desc, &only, sizeof(only)) && only.range.load_key && nr &&
	       nr <= MUSTER_PROGRAM_DESCS_MAX && desc->length % sizeof(*desc) == 0 &&
	       only.range.load_addr + desc->length >= desc->length;
}

int muster_fetch_begin(struct context *ctx, const struct muster_desc *from)
{
	struct muster_desc desc = *from;

	if (ctx->queued == MUSTER_SEQ_QUEUE_MAX || ctx->fetching)
		return -EAGAIN;
	if (!program_valid(ctx, &desc))
		return -EINVAL;
	ctx->fetching = muster_pool_take(ctx->engine, sizeof(*ctx->fetching));
	if (!ctx->fetching)
		return -ENOMEM;
	*ctx->fetching = (struct fetching){
		.addr = desc.range.load_addr,
		.life = muster_memory_life(ctx, desc.range.load_key),
		.cookie = desc.cookie,
		.key = desc.range.load_key,
		.left = desc.length / sizeof(desc),
	};
	ctx->calm = false;
	muster_context_ready(ctx);
	return 0;
}

/* As many as the longest sequence may have. */
static bool read_descs(struct context *ctx, struct muster_desc *descs, uint32_t nr)
{
	const uint32_t each = MUSTER_MTU / sizeof(*descs);
	const struct fetching *from = ctx->fetching;

	if (!from->life || muster_memory_life(ctx, from->key) != from->life) {
		muster_context_fail(ctx, MUSTER_STATUS_MEMORY, ctx->self, NULL);
		return false;
	}
	for (uint32_t i = 0; i < nr; i += each) {
		uint32_t bytes = (nr - i < each ? nr - i : each) * sizeof(*descs);
		const void *read = muster_memory_source(ctx, from->key,
							from->addr + i * sizeof(*descs), bytes);

		if (!read)
			return false;
		memcpy(&descs[i], read, bytes);
	}
	return true;
}

/* Up to CT; 0: it is not there. */
static uint32_t sequence_len(const struct muster_desc *descs, uint32_t nr)
{
	uint32_t len = 0;

	while (len < nr && !(descs[len].flags & MUSTER_DESC_CT))
		len++;
	return len < nr ? len + 1 : 0;
}

static int add(struct context *ctx, const struct muster_desc *descs, uint32_t nr)
{
	uint32_t bad;

	if (!nr || descs->flags & MUSTER_DESC_KEEP)
		return -EINVAL;
	return muster_sequence_add(ctx, descs, nr, &bad);
}

/* What is whole of what was read; if nothing is, it never will be. */
static void take(struct context *ctx, const struct muster_desc *descs, uint32_t nr)
{
	uint32_t at = 0, len = sequence_len(descs, nr);
	struct fetching *from = ctx->fetching;
	int err;

	do {
		err = add(ctx, descs + at, len);
		if (err)
			break;
		at += len;
		from->addr += len * sizeof(*descs);
		from->left -= len;
		len = sequence_len(descs + at, nr - at);
	} while (len && ctx->queued < MUSTER_SEQ_QUEUE_MAX);
	if (err == -ENOMEM)
		ctx->stalled = true;
	else if (err)
		muster_context_fail(ctx, MUSTER_STATUS_DESCRIPTOR, ctx->self, NULL);
	else if (!from->left)
		muster_fetch_forget(ctx);
}

void muster_fetch_forget(struct context *ctx)
{
	muster_pool_give(ctx->engine, ctx->fetching, sizeof(*ctx->fetching));
	ctx->fetching = NULL;
}

void muster_fetch_run(struct context *ctx)
{
	struct muster_desc *descs = ctx->engine->fetched;
	uint32_t nr = ctx->fetching->left;

	if (ctx->queued > FETCH_BELOW)
		return;
	if (nr > MUSTER_SEQ_DESCS_MAX)
		nr = MUSTER_SEQ_DESCS_MAX;
	if (read_descs(ctx, descs, nr))
		take(ctx, descs, nr);
}
