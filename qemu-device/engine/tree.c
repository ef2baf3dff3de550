// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A context's reduction trees (Documentation/switch.md): joining them, what programs may do
 * with them, contributions on their way up, and which results are let in. A contribution is
 * one packet, and takes no part in window and grants: results say for how many more the aggregation
 * node has room. A result is for a pulse that has contributed, so it never runs ahead.
 */
#include "internal.h"

#include <errno.h>

#include "arith.h"

enum { TREES_BYTES = MUSTER_ENGINE_TREES_MAX * sizeof(struct joined) };

static bool config_valid(const struct muster_tree_config *config)
{
	return config->node >= MUSTER_NODE_AGGREGATION && config->node < MUSTER_NODES_MAX &&
	       config->group && config->payload_max && config->payload_max <= MUSTER_MTU;
}

int muster_engine_tree_join(struct muster_engine *engine, uint16_t vp, uint8_t job,
			    uint32_t context, const struct muster_tree_config *config)
{
	struct context *ctx = muster_context_find(engine, vp, job, context);
	uint8_t tree;

	if (!ctx)
		return -ENOENT;
	if (!config_valid(config))
		return -EINVAL;
	if (ctx->nr_trees == MUSTER_ENGINE_TREES_MAX ||
	    muster_tree_find(ctx, config->node, config->tree, &tree))
		return -EBUSY;
	if (!ctx->trees)
		ctx->trees = muster_pool_take(engine, TREES_BYTES);
	if (!ctx->trees)
		return -ENOMEM;
	ctx->trees[ctx->nr_trees++] = (struct joined){ .config = *config };
	return 0;
}

int muster_engine_tree_move(struct muster_engine *engine, uint16_t vp, uint8_t job, uint32_t context,
			    const struct muster_tree_config *config)
{
	struct context *ctx = muster_context_find(engine, vp, job, context);
	uint8_t tree;

	if (!ctx || !muster_tree_find(ctx, config->node, config->tree, &tree))
		return -ENOENT;
	if (!config_valid(config) || config->payload_max != ctx->trees[tree].config.payload_max ||
	    config->incarnation != ctx->trees[tree].config.incarnation)
		return -EINVAL;
	ctx->trees[tree] = (struct joined){ .config = *config };
	return 0;
}

void muster_tree_leave(struct context *ctx)
{
	muster_pool_give(ctx->engine, ctx->trees, TREES_BYTES);
	ctx->trees = NULL;
	ctx->nr_trees = 0;
}

bool muster_tree_find(const struct context *ctx, uint32_t node, uint16_t number, uint8_t *tree)
{
	for (*tree = 0; *tree < ctx->nr_trees; ++*tree)
		if (ctx->trees[*tree].config.node == node && ctx->trees[*tree].config.tree == number)
			return true;
	return false;
}

/* The one that a sequence sends to. */
static struct joined *tree_of(const struct context *ctx, const struct sequence *seq)
{
	return &ctx->trees[seq->steps[seq->tree_step].tree];
}

bool muster_tree_says(const struct context *ctx, const struct muster_packet *packet)
{
	const struct muster_tree_config *tree;
	uint8_t which;

	if (!muster_tree_find(ctx, packet->src_node, packet->tree, &which))
		return false;
	tree = &ctx->trees[which].config;
	return packet->group == tree->group && packet->job_key == tree->key &&
	       packet->incarnation == tree->incarnation;
}

bool muster_tree_was_at(const struct context *ctx, uint32_t node, uint32_t present)
{
	for (uint32_t i = 0; i < ctx->nr_trees; i++)
		if (ctx->trees[i].config.node == node &&
		    (!present || ctx->trees[i].config.incarnation != present))
			return true;
	return false;
}

/* ---- programs ---- */

/* One packet of whole elements, or of bytes where there is no operation. */
static bool contribution_valid(const struct context *ctx, const struct sequence *seq,
			       const struct step *step)
{
	uint64_t most = step->kind == MUSTER_DESC_MP ? step->length : seq->pulse_len;
	uint32_t taken = ctx->trees[step->tree].config.payload_max;
	uint32_t size = muster_dtype_size(step->type);

	if (step->flags & (MUSTER_DESC_SWAP_REMOTE_DATA | MUSTER_DESC_COLL_END))
		return false;	/* they would mean something at those who take the result */
	if (!step->length)
		return true;
	if (step->op == MUSTER_REDOP_NONE)
		return most <= taken;
	return most <= taken && muster_arith_supported(step->type, step->op) &&
	       step->length % size == 0 && seq->pulse_len % size == 0;
}

/*
 * As long as the contribution, or of no bytes: whoever only hears that it is there. Of a message that
 * another brings, as long as the tree takes.
 */
static bool result_valid(const struct context *ctx, const struct sequence *seq,
			 const struct step *up, const struct step *down)
{
	uint64_t most = down->kind == MUSTER_DESC_MP ? down->length : seq->pulse_len;

	if (down->kind != up->kind)
		return false;
	if (up->op == MUSTER_REDOP_NONE && !up->length)
		return !down->length || most <= ctx->trees[up->tree].config.payload_max;
	return down->length == up->length || (!down->length && up->op != MUSTER_REDOP_NONE);
}

/* No member can be ahead of it, or is to know how far it may be. */
static bool is_for_tree_alone(const struct sequence *seq)
{
	for (uint32_t i = 0; i < seq->nr_steps; i++)
		if (seq->steps[i].flags & MUSTER_DESC_CP && i != seq->tree_step)
			return false;
	return seq->tree_step != NO_TREE && seq->nr_slots == 1;
}

uint32_t muster_tree_check(const struct context *ctx, const struct sequence *seq)
{
	const struct step *up, *down;
	uint32_t i;

	if (seq->pulses_live > MUSTER_PULSES_LIVE && !is_for_tree_alone(seq))
		return 0;
	if (seq->tree_step == NO_TREE)
		return seq->nr_steps;
	up = &seq->steps[seq->tree_step];
	if (!contribution_valid(ctx, seq, up) || up->slot_dest >= seq->nr_slots ||
	    seq->slot_step[up->slot_dest] <= seq->tree_step)
		return seq->tree_step;
	down = &seq->steps[seq->slot_step[up->slot_dest]];
	if (!result_valid(ctx, seq, up, down))
		return seq->slot_step[up->slot_dest];
	for (i = 0; i < seq->nr_steps; i++)	/* a tree is nowhere that anybody could answer to */
		if (seq->steps[i].flags & MUSTER_DESC_SWAP_LOCAL_VP)
			return i;
	return seq->nr_steps;
}

/* ---- up ---- */

/* Its data is of use to others only. */
static bool is_bare(const struct sequence *seq, const struct send *send)
{
	return send->total && !seq->steps[seq->slot_step[send->slot]].length;
}

static void prepare(const struct context *ctx, const struct instance *inst,
		    const struct send *send, struct muster_packet *packet)
{
	const struct sequence *seq = muster_sequence_current(ctx);
	const struct muster_tree_config *tree = &tree_of(ctx, seq)->config;

	muster_packet_prepare(ctx, MUSTER_PACKET_TREE_UP, ctx->self, packet);
	packet->flags = (inst->pulse + 1 == seq->pulse_count ? MUSTER_PACKET_LAST : 0) |
			(is_bare(seq, send) ? MUSTER_PACKET_BARE : 0);
	packet->dst_node = tree->node;
	packet->dst_vp = 0;
	packet->tree = tree->tree;
	packet->group = tree->group;
	packet->job_key = tree->key;
	packet->seq_id = send->slot;
	packet->stage = seq->stage;
	packet->signature = seq->signature;
	packet->number = ctx->base;
	packet->pulse = inst->pulse;
	packet->total = send->total;
	packet->length = send->total;
}

/* What is left of the credits. */
void muster_tree_begin(const struct context *ctx, const struct sequence *seq)
{
	struct joined *tree = tree_of(ctx, seq);

	tree->credits -= tree->credits < tree->pulses ? tree->credits : tree->pulses;
	tree->pulses = seq->pulse_count;
}

void muster_tree_hear(const struct context *ctx, const struct muster_packet *packet)
{
	struct joined *tree = tree_of(ctx, muster_sequence_current(ctx));
	uint32_t credits = packet->pulse + 1 + packet->arg;

	if (tree->credits < credits)
		tree->credits = credits;
}

/* Without a credit one packet may go: when all before it have been answered. */
bool muster_tree_send(struct context *ctx, const struct instance *inst, const struct send *send,
		      const void *data)
{
	const struct joined *tree = tree_of(ctx, muster_sequence_current(ctx));
	bool limited = inst->pulse >= tree->credits;
	struct muster_packet packet;
	int ret;

	if (limited && inst->pulse != ctx->pulse_first)
		return false;
	prepare(ctx, inst, send, &packet);
	if (!send->is_inline)
		data = muster_memory_source(ctx, send->key, send->addr, send->total);
	if (!data)
		return false;
	ret = muster_packet_emit(ctx, tree->config.incarnation, &packet, data);
	if (ret && ret != -EAGAIN)
		muster_context_fail(ctx, MUSTER_STATUS_PEER_LOST, MUSTER_CULPRIT_NONE, NULL);
	ctx->engine->counters->tree_up += !ret;
	ctx->engine->counters->tree_limited += !ret && limited;
	return !ret;
}

/* ---- down ---- */

static bool has_contributed(const struct instance *inst, uint32_t step)
{
	return inst->next > step && !(inst->open >> step & 1);
}

/* What comes for the second time finds its slot filled, its pulse or its number ended. */
bool muster_tree_awaits(struct context *ctx, const struct muster_packet *packet)
{
	struct muster_engine_counters *counters = ctx->engine->counters;
	uint32_t pulse = packet->pulse - ctx->pulse_first;
	const struct instance *inst;
	const struct sequence *seq;

	if ((int32_t)(packet->number - ctx->base) < 0) {
		counters->drop_duplicate++;
		return false;
	}
	seq = ctx->running && packet->number == ctx->base ? muster_sequence_current(ctx) : NULL;
	if (seq && seq->tree_step != NO_TREE && packet->pulse < ctx->pulse_first) {
		counters->drop_duplicate++;
		return false;
	}
	inst = seq && pulse < ctx->pulse_next - ctx->pulse_first ?
	       muster_instance(ctx, packet->pulse) : NULL;
	if (!inst || seq->tree_step == NO_TREE || !has_contributed(inst, seq->tree_step) ||
	    packet->seq_id != seq->steps[seq->tree_step].slot_dest ||
	    packet->tree != tree_of(ctx, seq)->config.tree) {
		counters->drop_window++;
		return false;
	}
	if (packet->seq_id < inst->slot ||
	    muster_entry_find(ctx, packet->number, packet->pulse, packet->seq_id)) {
		counters->drop_duplicate++;
		return false;
	}
	return true;
}
