// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Programs that are kept (Documentation/sequence.md, section 3): a sequence, checked
 * and bound, stays under its cookie and is started again by that alone. It lies in the
 * engine's memory, where its owner cannot change it, and counts against the quota of
 * its VP. What its keys named is remembered, so that it does not run over memory which
 * has got the number of a key that was given back.
 */
#include "internal.h"

#include <errno.h>

/* To the front: what is started again and again is found at once. */
static struct sequence *find(struct context *ctx, uint64_t cookie)
{
	struct sequence **link = &ctx->kept, *seq;

	while (*link && (*link)->cookie != cookie)
		link = &(*link)->next_kept;
	seq = *link;
	if (seq && link != &ctx->kept) {
		*link = seq->next_kept;
		seq->next_kept = ctx->kept;
		ctx->kept = seq;
	}
	return seq;
}

/* It is the first one then. */
struct sequence *muster_kept_find(struct context *ctx, const struct muster_desc *start)
{
	struct sequence *seq = find(ctx, start->cookie);

	return seq && !memcmp(start, &seq->start, sizeof(*start)) ? seq : NULL;
}

/* The one in front. */
static void forget_first(struct context *ctx)
{
	struct sequence *seq = ctx->kept;

	ctx->kept = seq->next_kept;
	ctx->nr_kept--;
	ctx->engine->vps[ctx->vp]->nr_kept_descs -= seq->nr_steps;
	muster_sequence_put(ctx, seq);
}

static void bind_key(const struct context *ctx, struct sequence *seq, uint32_t key)
{
	uint32_t i = 0;

	while (i < seq->nr_keys && seq->keys[i].key != key)
		i++;
	if (!key || i < seq->nr_keys)
		return;
	seq->keys[i].key = key;
	seq->keys[i].life = muster_memory_life(ctx, key);
	seq->nr_keys++;
}

static struct muster_desc desc_of(const struct context *ctx, uint8_t kind, uint64_t cookie)
{
	return (struct muster_desc){
		.kind = kind,
		.flags = MUSTER_DESC_C | MUSTER_DESC_CH | MUSTER_DESC_CT,
		.src_vp = ctx->vp,
		.job = ctx->job,
		.context = ctx->id,
		.cookie = cookie,
	};
}

/* What runs it, and what its keys name now. There is room for two a step, behind the steps. */
static void bind(struct context *ctx, struct sequence *seq)
{
	const struct step *step;

	seq->start = desc_of(ctx, MUSTER_DESC_START, seq->cookie);
	seq->keys = (struct bound_key *)&seq->steps[seq->nr_steps];
	seq->nr_keys = 0;
	seq->keys_gone = UINT64_MAX;
	for (step = seq->steps; step < seq->steps + seq->nr_steps; step++) {
		bind_key(ctx, seq, step->load_key);
		bind_key(ctx, seq, step->store_key);
	}
	muster_predict_bind(ctx, seq);
}

int muster_kept_add(struct context *ctx, struct sequence *seq)
{
	struct vp *vp = ctx->engine->vps[ctx->vp];
	const struct sequence *old = find(ctx, seq->cookie);
	uint32_t nr_descs = vp->nr_kept_descs - (old ? old->nr_steps : 0) + seq->nr_steps;

	if ((!old && ctx->nr_kept == MUSTER_KEPT_MAX) || nr_descs > MUSTER_KEPT_DESCS_MAX)
		return -ENOSPC;
	if (old)
		forget_first(ctx);
	bind(ctx, seq);
	seq->next_kept = ctx->kept;
	ctx->kept = seq;
	seq->refs++;
	ctx->nr_kept++;
	vp->nr_kept_descs = nr_descs;
	return 0;
}

bool muster_kept_look_up(const struct context *ctx, struct sequence *seq)
{
	const uint64_t *gone = ctx->engine->keys_gone;
	uint32_t i;

	for (i = 0; i < seq->nr_keys; i++)
		if (muster_memory_life(ctx, seq->keys[i].key) != seq->keys[i].life)
			return false;
	if (gone)
		seq->keys_gone = *gone;
	return true;
}

void muster_engine_keys_put(struct muster_engine *engine, const uint64_t *gone)
{
	engine->keys_gone = gone;
}

int muster_kept_forget(struct context *ctx, const struct muster_desc *desc)
{
	struct muster_desc forget = desc_of(ctx, MUSTER_DESC_FORGET, desc->cookie);

	if (memcmp(desc, &forget, sizeof(forget)) || !find(ctx, desc->cookie))
		return -EINVAL;
	forget_first(ctx);
	return 0;
}

void muster_kept_forget_all(struct context *ctx)
{
	while (ctx->kept)
		forget_first(ctx);
}
