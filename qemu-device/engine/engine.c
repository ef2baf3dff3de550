// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The engine as a whole: made of units, opened for VPs, given sequences, stepped.
 * A step runs each context of the ready list in turn. Who is refused by wire or
 * completion queue, or finds the budget spent, goes back to the end of the list for
 * the next step; where thousands are, a step tries some of them.
 */
#include "credit.h"

#include <errno.h>

/* ---- create and destroy ---- */

static int units_create(struct muster_engine *engine, uint32_t nr, uint32_t bytes)
{
	int ret;

	for (; engine->nr_units < nr; engine->nr_units++) {
		ret = muster_buffer_create(engine, bytes, &engine->units[engine->nr_units]);
		if (ret)
			return ret;
	}
	return 0;
}

static bool world_complete(const struct muster_engine_world *world)
{
	return world->dma_read && world->dma_write && world->key_life &&
	       world->send && world->complete && world->deliver && world->alloc && world->free;
}

static uint32_t buffer_bytes(const struct muster_engine_model *model)
{
	if (model->buffer == MUSTER_ENGINE_NO_BUFFER)
		return 0;
	return model->buffer ? model->buffer : MUSTER_BUFFER_BYTES;
}

static bool model_is_possible(const struct muster_engine_model *model)
{
	uint32_t bytes = buffer_bytes(model);

	return !model->threads && model->units <= MUSTER_UNITS_MAX && model->window <= MUSTER_WINDOW &&
	       model->pulses <= MUSTER_PULSES_LIVE && bytes % MUSTER_MTU == 0 &&
	       bytes <= MUSTER_ENGINE_BUFFER_MAX;
}

int muster_engine_create(const struct muster_engine_config *config,
			 const struct muster_engine_world *world, void *opaque,
			 struct muster_engine **result)
{
	const struct muster_engine_model *model = &config->model;
	struct muster_engine *engine;
	int ret;

	if (!world_complete(world) || config->node >= MUSTER_NODE_AGGREGATION ||
	    !model_is_possible(model))
		return -EINVAL;
	engine = world->alloc(opaque, sizeof(*engine));
	if (!engine)
		return -ENOMEM;
	engine->world = *world;
	engine->opaque = opaque;
	engine->counters = &engine->own_counters;
	engine->node = config->node;
	engine->hash_key[0] = config->hash_key[0];
	engine->hash_key[1] = config->hash_key[1];
	engine->hash_factor[0] = (config->hash_key[0] ^ 0x9e3779b97f4a7c15ull) | 1;
	engine->hash_factor[1] = (config->hash_key[1] ^ 0xd6e8feb86659fd92ull) | 1;
	engine->window = model->window ? model->window : MUSTER_WINDOW;
	engine->asks_from = engine->window / 2;
	engine->pulses = model->pulses ? model->pulses : MUSTER_TREE_PULSES_LIVE;
	ret = units_create(engine, model->units ? model->units : MUSTER_UNITS, buffer_bytes(model));
	if (ret) {
		muster_engine_destroy(engine);
		return ret;
	}
	*result = engine;
	return 0;
}

void muster_engine_destroy(struct muster_engine *engine)
{
	uint32_t i;

	for (i = 0; i < MUSTER_VPS_MAX; i++) {
		while (engine->vps[i] && engine->vps[i]->contexts)
			muster_context_free(engine->vps[i]->contexts);
		muster_engine_vp_close(engine, i);
	}
	for (i = 0; i < CONTEXT_BUCKETS; i++)		/* those that are closed, too */
		while (engine->contexts[i])
			muster_context_free(engine->contexts[i]);
	muster_pool_destroy(engine);
	muster_known_destroy(engine);
	while (engine->nr_units)
		muster_buffer_destroy(engine, engine->units[--engine->nr_units]);
	engine->world.free(engine->opaque, engine, sizeof(*engine));
}

/* ---- VPs ---- */

int muster_engine_vp_open(struct muster_engine *engine, uint16_t vp)
{
	if (vp >= MUSTER_VPS_MAX)
		return -EINVAL;
	if (engine->vps[vp])
		return -EBUSY;
	engine->vps[vp] = engine->world.alloc(engine->opaque, sizeof(*engine->vps[vp]));
	return engine->vps[vp] ? 0 : -ENOMEM;
}

void muster_engine_vp_close(struct muster_engine *engine, uint16_t vp)
{
	if (vp >= MUSTER_VPS_MAX || !engine->vps[vp])
		return;
	while (engine->vps[vp]->contexts)
		muster_context_close(engine->vps[vp]->contexts);
	engine->world.free(engine->opaque, engine->vps[vp], sizeof(*engine->vps[vp]));
	engine->vps[vp] = NULL;
}

/* ---- steps ---- */

/* Return: whether it must be tried again at the next step. */
static bool run_all(struct context *ctx)
{
	if (muster_context_is_opening(ctx))
		return false;
	if (ctx->closed) {
		muster_credit_run(ctx);
		muster_copies_run(ctx);
		if (ctx->engine->leaving)
			muster_copies_look(ctx);
		if (muster_writes_answer(ctx) && !ctx->copies && muster_farewell_say(ctx)) {
			muster_context_free(ctx);
			return false;
		}
		return ctx->stalled && !ctx->listed;
	}
	if (ctx->wants_room)
		muster_room_forgo(ctx);
	if (ctx->copies)
		muster_copies_run(ctx);
	if (!ctx->failure.status && ctx->asking_first)
		muster_credit_run(ctx);
	if (!ctx->failure.status && ctx->writes)
		muster_writes_answer(ctx);
	if (!ctx->failure.status && ctx->messages)	/* else drain does */
		muster_messages_run(ctx);
	if (!ctx->failure.status)
		muster_sequence_run(ctx);
	if (!ctx->failure.status && ctx->asking_first)
		muster_credit_run(ctx);
	if (ctx->failure.status)
		muster_context_drain(ctx);
	return ctx->stalled && !ctx->listed;
}

/* Likewise, off the list. */
static inline bool run(struct context *ctx)
{
	muster_context_unready(ctx);
	ctx->stalled = false;
	ctx->calm = false;
	return !ctx->fetching && muster_predict_run(ctx) ? ctx->stalled && !ctx->listed :
								run_all(ctx);
}

/* Who is refused is listed at once, as others may wake it: up to the first such one, once each. */
static bool step_all(struct muster_engine *engine, struct context *refused_first)
{
	uint32_t refused = !!refused_first;
	struct context *ctx;

	while (engine->budget && refused < REFUSED_MAX && engine->ready_first != refused_first) {
		ctx = engine->ready_first;
		if (!run(ctx))
			continue;
		muster_context_ready(ctx);
		if (!refused++)
			refused_first = ctx;
	}
	return engine->ready_first;
}

/* Mostly one can run, and nothing else could then. */
bool muster_engine_step(struct muster_engine *engine, uint32_t budget)
{
	struct context *ctx = engine->ready_first, *refused = NULL;

	engine->budget = budget;
	if (!ctx)
		return false;
	if (ctx->next_ready || !budget)
		return step_all(engine, NULL);
	if (run(ctx)) {
		muster_context_ready(ctx);
		refused = ctx;
	}
	return engine->ready_first == refused ? refused != NULL : step_all(engine, refused);
}

bool muster_engine_is_ready(const struct muster_engine *engine)
{
	return engine->ready_first;
}

/* ---- what comes from outside ---- */

static int post(struct muster_engine *engine, uint16_t vp, const struct muster_desc *descs,
		uint32_t nr, uint32_t *bad)
{
	struct context *ctx;

	if (!nr || nr > MUSTER_SEQ_DESCS_MAX)
		return -EINVAL;
	ctx = muster_context_find(engine, vp, descs->job, descs->context);
	if (!ctx)
		return -ENOENT;
	if (nr == 1 && !(descs->flags & MUSTER_DESC_C))
		return muster_message_post(ctx, descs);
	if (descs->kind == MUSTER_DESC_START)
		return nr == 1 ? muster_sequence_restart(ctx, descs) : -EINVAL;
	if (descs->kind == MUSTER_DESC_PROGRAM)
		return nr == 1 ? muster_fetch_begin(ctx, descs) : -EINVAL;
	if (descs->kind == MUSTER_DESC_FORGET)
		return nr == 1 ? muster_kept_forget(ctx, descs) : -EINVAL;
	return muster_sequence_post(ctx, descs, nr, bad);
}

int muster_engine_post(struct muster_engine *engine, uint16_t vp,
		       const struct muster_desc *descs, uint32_t nr, uint32_t *bad)
{
	struct context *ctx = engine->waited_last;
	uint32_t unused;

	if (!bad)
		bad = &unused;
	*bad = 0;
	if (nr == 1 && muster_kept_is_first(ctx, vp, descs))
		return muster_sequence_restart_first(ctx);
	return post(engine, vp, descs, nr, bad);
}

int muster_engine_abort(struct muster_engine *engine, uint16_t vp, uint8_t job, uint32_t context,
			uint8_t status, uint32_t culprit)
{
	struct context *ctx = muster_context_find(engine, vp, job, context);

	if (!ctx)
		return -ENOENT;
	if (!status || status > MUSTER_STATUS_FLUSHED ||
	    (culprit >= ctx->nr_members && culprit != MUSTER_CULPRIT_NONE))
		return -EINVAL;
	muster_context_fail(ctx, status, culprit, NULL);
	return 0;
}

/*
 * Any life of the node but the present one; 0: every one. Who is looked through fails, or has
 * members there that are alive or have left in good order: not so one that is closed.
 */
static void lose(struct context *ctx, uint32_t node, uint32_t present)
{
	uint32_t i;

	if (!ctx->failure.status && !ctx->closed && muster_tree_was_at(ctx, node, present))
		muster_context_fail(ctx, MUSTER_STATUS_PEER_LOST, MUSTER_CULPRIT_NONE, NULL);
	if (ctx->failure.status || !muster_member_may_be_at(ctx, node))
		return;
	ctx->calm = false;
	muster_copies_forget(ctx, node, present);
	if (ctx->closed) {
		muster_context_ready(ctx);
		return;
	}
	for (i = 0; i < ctx->nr_members; i++) {
		ctx->engine->counters->looked_at++;
		if (i == ctx->self || !muster_member_was_at(ctx, i, node, present) ||
		    muster_farewell_complete(muster_member_peer(ctx, i)))
			continue;
		muster_context_fail(ctx, MUSTER_STATUS_PEER_LOST, i, NULL);
		return;
	}
}

void muster_engine_peer_present(struct muster_engine *engine, uint32_t node,
				uint32_t incarnation)
{
	struct context *ctx = NULL;
	uint32_t bucket = 0;

	while ((ctx = muster_context_next(engine, &bucket, ctx))) {
		engine->counters->looked_at++;
		lose(ctx, node, incarnation);
	}
}

bool muster_engine_needs(const struct muster_engine *engine, uint32_t node)
{
	const struct context *ctx = NULL;
	uint32_t bucket = 0;

	while ((ctx = muster_context_next(engine, &bucket, ctx)))
		if (muster_member_may_be_at(ctx, node) || muster_tree_was_at(ctx, node, 0))
			return true;
	return false;
}

void muster_engine_peer_lost(struct muster_engine *engine, uint32_t node)
{
	muster_engine_peer_present(engine, node, 0);
}

void muster_engine_network_lost(struct muster_engine *engine)
{
	struct context *ctx = NULL;
	uint32_t bucket = 0;

	while ((ctx = muster_context_next(engine, &bucket, ctx)))
		if (!ctx->failure.status && !ctx->closed && ctx->nr_members > 1)
			muster_context_fail(ctx, MUSTER_STATUS_PEER_LOST, MUSTER_CULPRIT_NONE, NULL);
}

void muster_engine_counters_get(const struct muster_engine *engine,
				struct muster_engine_counters *counters)
{
	uint32_t i;

	*counters = *engine->counters;
	counters->contexts_closing = engine->nr_closed;
	for (i = 0; i < engine->nr_units; i++) {
		counters->buffer_blocks_used += engine->units[i]->nr_used;
		counters->buffer_entries_used += engine->units[i]->nr_entries_used;
	}
}

void muster_engine_trace_put(struct muster_engine *engine, struct muster_trace *trace)
{
	engine->trace = trace;
}

void muster_engine_counters_put(struct muster_engine *engine,
				struct muster_engine_counters *where)
{
	*where = *engine->counters;
	engine->counters = where;
}
