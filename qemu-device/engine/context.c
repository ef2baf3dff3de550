// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Contexts: begun in the least loaded unit that has a reserve left, open when all
 * members have been added, found by (VP, job, id), and closed: its owner and its unit
 * forget it at once, and it goes when the members have been told (farewell.c). The
 * members and the hash table that finds them lie behind it in one allocation.
 */
#include "internal.h"

#include <errno.h>
#include <string.h>

/* Open, or begun. */
static struct context *find(const struct muster_engine *engine, uint16_t vp, uint8_t job,
			    uint32_t id)
{
	struct context *ctx;

	if (vp >= MUSTER_VPS_MAX || !engine->vps[vp])
		return NULL;
	for (ctx = engine->vps[vp]->contexts; ctx; ctx = ctx->next_of_vp)
		if (ctx->id == id && ctx->job == job)
			return ctx;
	return NULL;
}

struct context *muster_context_find(const struct muster_engine *engine, uint16_t vp, uint8_t job,
				    uint32_t id)
{
	struct context *ctx = find(engine, vp, job, id);

	return ctx && !muster_context_is_opening(ctx) ? ctx : NULL;
}

/* ---- open and close ---- */

static struct unit *least_loaded(struct muster_engine *engine)
{
	struct unit *best = NULL, *unit;

	for (unit = engine->units; unit < engine->units + engine->nr_units; unit++)
		if (unit->nr_contexts < unit->contexts_max &&
		    (!best || unit->nr_contexts < best->nr_contexts))
			best = unit;
	return best;
}

static void join_unit(struct context *ctx, struct unit *unit)
{
	while (unit->contexts[ctx->index])
		ctx->index++;
	unit->contexts[ctx->index] = ctx;
	unit->nr_contexts++;
	ctx->unit = unit;
}

static void header_init(struct context *ctx)
{
	struct muster_packet *header = &ctx->header;

	header->version = MUSTER_PACKET_VERSION;
	header->job = ctx->job;
	header->src_node = ctx->engine->node;
	header->src_vp = ctx->vp;
	header->context = ctx->id;
	header->life = ctx->life;
	header->src_member = ctx->self;
	header->incarnation = ctx->members[ctx->self].incarnation;
	header->job_key = ctx->job_key;
}

static struct context *context_alloc(struct muster_engine *engine, uint32_t nr_members)
{
	struct context *ctx;
	uint32_t bits = 1;
	size_t bytes;

	while (1u << bits < 2 * nr_members)
		bits++;
	bytes = sizeof(*ctx) + nr_members * sizeof(*ctx->members) + (sizeof(uint32_t) << bits);
	ctx = engine->world.alloc(engine->opaque, bytes);
	if (!ctx)
		return NULL;
	ctx->engine = engine;
	ctx->bytes = bytes;
	ctx->members_wanted = nr_members;
	ctx->members = (struct member *)(ctx + 1);
	ctx->member_table = (uint32_t *)(ctx->members + nr_members);
	ctx->member_bits = bits;
	return ctx;
}

static bool config_valid(const struct muster_engine *engine,
			 const struct muster_context_config *config)
{
	return config->vp < MUSTER_VPS_MAX && engine->vps[config->vp] && config->nr_members &&
	       config->nr_members <= MUSTER_MEMBERS_MAX && config->self < config->nr_members;
}

int muster_engine_context_begin(struct muster_engine *engine,
				const struct muster_context_config *config)
{
	struct unit *unit = least_loaded(engine);
	struct context *ctx;

	if (!config_valid(engine, config))
		return -EINVAL;
	if (find(engine, config->vp, config->job, config->context))
		return -EEXIST;
	if (!unit || engine->nr_closed >= CLOSED_MAX)
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
	join_unit(ctx, unit);
	ctx->next_of_vp = engine->vps[ctx->vp]->contexts;
	engine->vps[ctx->vp]->contexts = ctx;
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
	if (nr > ctx->members_wanted - ctx->nr_members)
		return -EINVAL;
	for (i = 0; i < nr && !ret; i++)
		ret = muster_member_add(ctx, &members[i]);
	if (ret) {
		muster_context_free(ctx);
		return ret;
	}
	if (!muster_context_is_opening(ctx)) {
		header_init(ctx);
		if (ctx->failure.status)
			muster_context_ready(ctx);	/* all can be told now */
	}
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

/* Its owner and its unit forget it. */
static void detach(struct context *ctx)
{
	struct context **link = &ctx->engine->vps[ctx->vp]->contexts;
	uint32_t i;

	for (i = 0; i < MUSTER_WINDOW; i++)
		while (ctx->arrivals[i].first)
			muster_entry_remove(ctx, &ctx->unit->entries[ctx->arrivals[i].first]);
	while (*link != ctx)
		link = &(*link)->next_of_vp;
	*link = ctx->next_of_vp;
	ctx->unit->contexts[ctx->index] = NULL;
	ctx->unit->nr_contexts--;
	ctx->unit = NULL;
}

void muster_context_free(struct context *ctx)
{
	struct muster_engine *engine = ctx->engine;

	if (ctx->closed)
		engine->nr_closed--;
	else
		detach(ctx);
	muster_context_unready(ctx);
	engine->world.free(engine->opaque, ctx, ctx->bytes);
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
	if (muster_farewell_say(ctx))
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
	inst = &ctx->instances[ctx->pulse_first % MUSTER_PULSES_LIVE];
	state->pulse = ctx->pulse_first;
	state->cursor = inst->slot;
	if (ctx->pulse_first != ctx->pulse_next && inst->slot < muster_sequence_current(ctx)->nr_slots) {
		const struct entry *entry = muster_entry_find(ctx->unit, ctx->index, ctx->base,
							      inst->pulse, inst->slot);

		state->waiting = !entry || entry->state == ENTRY_ASKED ||
				 entry->state == ENTRY_GRANTED;
	}
	return 0;
}
