// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Contexts: begun in the least loaded unit, open when all members have been added,
 * found by (VP, job, id) in one hash table, and closed: its owner and its unit
 * forget it at once, and it goes when the members have been told (farewell.c).
 */
#include "sequence.h"

#include <errno.h>
#include <string.h>

/*
 * Tenants choose the ids, but do not know the key. The product's upper bits depend on all of them;
 * what is the same at every VP, an id that all jobs begin with, must not meet in one bucket.
 */
static uint32_t hash_of(const struct muster_engine *engine, uint16_t vp, uint8_t job, uint32_t id)
{
	return ((uint64_t)vp << 48 ^ (uint64_t)job << 32 ^ id) * engine->hash_factor[0] >> 32;
}

static struct context **bucket(const struct muster_engine *engine, uint32_t hash)
{
	return (struct context **)&engine->contexts[(uint64_t)hash * CONTEXT_BUCKETS >> 32];
}

/* Open, or begun. */
static struct context *find(const struct muster_engine *engine, uint16_t vp, uint8_t job,
			    uint32_t id)
{
	struct context *ctx = *bucket(engine, hash_of(engine, vp, job, id));

	while (ctx && (ctx->id != id || ctx->vp != vp || ctx->job != job || ctx->closed))
		ctx = ctx->next_hashed;
	return ctx;
}

const struct context *muster_context_probable(const struct muster_engine *engine, uint16_t vp,
					      uint8_t job, uint32_t id)
{
	return *bucket(engine, hash_of(engine, vp, job, id));
}

static inline bool is_for(const struct context *ctx, const struct muster_packet *packet)
{
	return ctx->id == packet->context && ctx->vp == packet->dst_vp && ctx->job == packet->job &&
	       ctx->life == packet->life;
}

/* Mostly it is the last that waited. */
struct context *muster_context_of(const struct muster_engine *engine,
				  const struct muster_packet *packet)
{
	struct context *ctx = engine->waited_last;

	if (ctx && is_for(ctx, packet))
		return ctx;
	ctx = *bucket(engine, hash_of(engine, packet->dst_vp, packet->job, packet->context));
	while (ctx && !is_for(ctx, packet))
		ctx = ctx->next_hashed;
	return ctx && !muster_context_is_opening(ctx) ? ctx : NULL;
}

struct context *muster_context_find(const struct muster_engine *engine, uint16_t vp, uint8_t job,
				    uint32_t id)
{
	struct context *ctx = find(engine, vp, job, id);

	if (!ctx || muster_context_is_opening(ctx))
		return NULL;
	ctx->calm = false;
	return ctx;
}

struct context *muster_context_next(const struct muster_engine *engine, uint32_t *next,
				    const struct context *before)
{
	struct context *ctx = before ? before->next_hashed : NULL;

	while (!ctx && *next < CONTEXT_BUCKETS)
		ctx = engine->contexts[(*next)++];
	return ctx;
}

/* ---- open and close ---- */

static uint8_t least_loaded(const struct muster_engine *engine)
{
	uint32_t best = 0, i;

	for (i = 1; i < engine->nr_units; i++)
		if (engine->units[i]->nr_contexts < engine->units[best]->nr_contexts)
			best = i;
	return (uint8_t)best;
}

/* Its unit, its VP and those who look for it know it. */
static void attach(struct context *ctx)
{
	struct muster_engine *engine = ctx->engine;
	struct context **first = bucket(engine, ctx->hash);
	struct vp *vp = engine->vps[ctx->vp];

	ctx->next_hashed = *first;
	*first = ctx;
	ctx->next_of_vp = vp->contexts;
	if (vp->contexts)
		vp->contexts->prev_of_vp = ctx;
	vp->contexts = ctx;
	ctx->unit = least_loaded(engine);
	muster_unit(ctx)->nr_contexts++;
	engine->nr_contexts++;
}

/* Nothing is done for its owner any more. What was sent unasked may be asked for yet. */
static void detach(struct context *ctx)
{
	struct muster_engine *engine = ctx->engine;

	ctx->calm = false;
	muster_sequence_stop(ctx);
	while (ctx->messages)
		muster_message_forget(ctx);
	muster_sequences_drop(ctx);
	muster_fetch_forget(ctx);
	muster_kept_forget_all(ctx);
	muster_entries_remove(ctx);
	muster_copies_disown(ctx);
	muster_room_forgo(ctx);
	if (ctx->prev_of_vp)
		ctx->prev_of_vp->next_of_vp = ctx->next_of_vp;
	else
		engine->vps[ctx->vp]->contexts = ctx->next_of_vp;
	if (ctx->next_of_vp)
		ctx->next_of_vp->prev_of_vp = ctx->prev_of_vp;
	engine->nr_contexts--;
}

/* Nor found by packets. */
static void unlink_context(struct context *ctx)
{
	struct context **link = bucket(ctx->engine, ctx->hash);

	while (*link != ctx)
		link = &(*link)->next_hashed;
	*link = ctx->next_hashed;
	muster_unit(ctx)->nr_contexts--;
}

static size_t context_bytes(uint32_t nr_members)
{
	return sizeof(struct context) + nr_members * sizeof(uint16_t);
}

static struct context *context_alloc(struct muster_engine *engine, uint32_t nr_members)
{
	const size_t bytes = context_bytes(nr_members);
	struct context *ctx = engine->world.alloc(engine->opaque, bytes);

	if (!ctx)
		return NULL;
	ctx->table = muster_member_table_new(engine, nr_members);
	if (!ctx->table) {
		engine->world.free(engine->opaque, ctx, bytes);
		return NULL;
	}
	ctx->engine = engine;
	engine->nr_members += nr_members;
	return ctx;
}

static bool has_place(const struct muster_engine *engine, uint32_t nr_members)
{
	return engine->nr_contexts < MUSTER_CONTEXTS_MAX && engine->nr_closed < CLOSED_MAX &&
	       nr_members <= MEMBERS_ALL_MAX - engine->nr_members;
}

static bool config_valid(const struct muster_engine *engine,
			 const struct muster_context_config *config)
{
	return config->vp < MUSTER_VPS_MAX && engine->vps[config->vp] && config->nr_members &&
	       config->nr_members <= MUSTER_MEMBERS_MAX && config->self < config->nr_members;
}

/* The last member has come. */
static void opened(struct context *ctx)
{
	ctx->table = muster_member_table_share(ctx->engine, ctx->table);
	if (ctx->failure.status)
		muster_context_ready(ctx);	/* all can be told now */
}

int muster_engine_context_begin(struct muster_engine *engine,
				const struct muster_context_config *config)
{
	struct context *ctx;

	if (!config_valid(engine, config))
		return -EINVAL;
	if (find(engine, config->vp, config->job, config->context))
		return -EEXIST;
	if (!has_place(engine, config->nr_members))
		return -ENOSPC;
	ctx = context_alloc(engine, config->nr_members);
	if (!ctx)
		return -ENOMEM;
	ctx->self = config->self;
	ctx->vp = config->vp;
	ctx->id = config->context;
	ctx->life = config->life;
	ctx->job = config->job;
	ctx->job_key = config->job_key;
	ctx->hash = hash_of(engine, ctx->vp, ctx->job, ctx->id);
	attach(ctx);
	return 0;
}

int muster_engine_context_add(struct muster_engine *engine, uint16_t vp, uint8_t job,
			      uint32_t context, const struct muster_member *members, uint32_t nr)
{
	struct context *ctx = find(engine, vp, job, context);
	uint32_t i;
	int ret = 0;

	if (!ctx)
		return -ENOENT;
	if (nr > ctx->table->wanted - ctx->nr_members)
		return -EINVAL;
	for (i = 0; i < nr && !ret; i++)
		ret = muster_member_add(ctx, &members[i]);
	if (ret) {
		muster_context_free(ctx);
		return ret;
	}
	if (!muster_context_is_opening(ctx))
		opened(ctx);
	return 0;
}

int muster_engine_context_open(struct muster_engine *engine,
			       const struct muster_context_config *config)
{
	int ret = muster_engine_context_begin(engine, config);

	if (ret)
		return ret;
	return muster_engine_context_add(engine, config->vp, config->job, config->context,
					 config->members, config->nr_members);
}

void muster_context_free(struct context *ctx)
{
	struct muster_engine *engine = ctx->engine;
	const uint32_t nr_members = ctx->table->wanted;

	if (ctx->closed)
		engine->nr_closed--;
	else
		detach(ctx);
	muster_copies_remove(ctx);
	muster_ended_forget(ctx);
	muster_tree_leave(ctx);
	unlink_context(ctx);
	muster_context_unready(ctx);
	if (engine->waited_last == ctx)
		engine->waited_last = NULL;
	muster_peers_give(ctx);
	engine->nr_members -= nr_members;
	muster_member_table_put(engine, ctx->table);
	engine->world.free(engine->opaque, ctx, context_bytes(nr_members));
}

void muster_context_close(struct context *ctx)
{
	struct muster_engine *engine = ctx->engine;

	if (muster_context_is_opening(ctx)) {
		muster_context_free(ctx);	/* nobody knows of it */
		return;
	}
	detach(ctx);
	ctx->closed = true;
	engine->nr_closed++;
	engine->budget = CLOSE_BUDGET;
	muster_copies_run(ctx);
	if (muster_writes_answer(ctx) && !ctx->copies && muster_farewell_say(ctx))
		muster_context_free(ctx);
	else
		muster_context_ready(ctx);
}

void muster_engine_context_close(struct muster_engine *engine, uint16_t vp, uint8_t job,
				 uint32_t context)
{
	struct context *ctx = find(engine, vp, job, context);

	if (ctx)
		muster_context_close(ctx);
}

/* ---- diagnosis ---- */

/* Its store waits for a send of its own. */
static bool inst_waits(const struct context *ctx, const struct instance *inst)
{
	const struct sequence *seq = muster_sequence_current(ctx);

	return inst->next < seq->nr_steps &&
	       muster_combine_waits(seq, inst, &seq->steps[inst->next]);
}

int muster_engine_context_query(const struct muster_engine *engine, uint16_t vp, uint8_t job,
				uint32_t context, struct muster_context_state *state)
{
	const struct context *ctx = muster_context_find(engine, vp, job, context);
	const struct instance *inst;

	if (!ctx)
		return -ENOENT;
	*state = (struct muster_context_state){
		.number = ctx->base,
		.queued = ctx->queued,
		.running = ctx->running,
		.failed = ctx->failure.status,
		.culprit = ctx->failure.status ? ctx->failure.culprit : MUSTER_CULPRIT_NONE,
	};
	if (!ctx->running)
		return 0;
	state->pulse = ctx->pulse_first;
	if (ctx->pulse_first == ctx->pulse_next)
		return 0;
	inst = muster_instance(ctx, ctx->pulse_first);
	state->cursor = inst->slot;
	if (inst->slot < muster_sequence_current(ctx)->nr_slots) {
		const struct entry *entry = muster_entry_find(ctx, ctx->base, inst->pulse,
							      inst->slot);

		state->waiting = !entry || entry->state == ENTRY_GRANTED ||
				 entry->state == ENTRY_STREAMED ||
				 (entry->state == ENTRY_ASKED && !inst_waits(ctx, inst));
	}
	return 0;
}
