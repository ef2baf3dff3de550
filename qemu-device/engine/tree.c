// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A context's reduction tree (Documentation/switch.md): joining it, what programs may do
 * with it, contributions on their way up, and which results are let in. A contribution is
 * one packet, which its aggregation node always has room for: it takes no part in window,
 * credit and grants. A result is for a pulse that has contributed, so it never runs ahead.
 */
#include "internal.h"

#include <errno.h>

#include "arith.h"

static bool config_valid(const struct muster_tree_config *config)
{
	return config->node >= MUSTER_NODE_AGGREGATION && config->node < MUSTER_NODES_MAX &&
	       config->group && config->payload_max && config->payload_max <= MUSTER_MTU;
}

int muster_engine_tree_join(struct muster_engine *engine, uint16_t vp, uint8_t job,
			    uint32_t context, const struct muster_tree_config *config)
{
	struct context *ctx = muster_context_find(engine, vp, job, context);

	if (!ctx)
		return -ENOENT;
	if (ctx->tree)
		return -EBUSY;
	if (!config_valid(config))
		return -EINVAL;
	ctx->tree = muster_pool_take(engine, sizeof(*ctx->tree));
	if (!ctx->tree)
		return -ENOMEM;
	*ctx->tree = *config;
	return 0;
}

void muster_tree_leave(struct context *ctx)
{
	muster_pool_give(ctx->engine, ctx->tree, sizeof(*ctx->tree));
	ctx->tree = NULL;
}

bool muster_tree_says(const struct context *ctx, const struct muster_packet *packet)
{
	const struct muster_tree_config *tree = ctx->tree;

	return tree && packet->tree == tree->tree && packet->group == tree->group &&
	       packet->job_key == tree->key && packet->src_node == tree->node &&
	       packet->incarnation == tree->incarnation;
}

bool muster_tree_was_at(const struct context *ctx, uint32_t node, uint32_t present)
{
	return ctx->tree && ctx->tree->node == node &&
	       (!present || ctx->tree->incarnation != present);
}

/* ---- programs ---- */

/* One packet of whole elements, or of bytes where there is no operation. */
static bool contribution_valid(const struct context *ctx, const struct sequence *seq,
			       const struct step *step)
{
	uint64_t most = step->kind == MUSTER_DESC_MP ? step->length : seq->pulse_len;
	uint32_t size = muster_dtype_size(step->type);

	if (step->flags & (MUSTER_DESC_SWAP_REMOTE_DATA | MUSTER_DESC_COLL_END))
		return false;	/* they would mean something at those who take the result */
	if (!step->length)
		return true;
	if (step->op == MUSTER_REDOP_NONE)
		return most <= ctx->tree->payload_max;
	return most <= ctx->tree->payload_max && muster_arith_supported(step->type, step->op) &&
	       step->length % size == 0 && seq->pulse_len % size == 0;
}

/* As long as the contribution; of a message that another brings, as long as the tree takes. */
static bool result_valid(const struct context *ctx, const struct sequence *seq,
			 const struct step *up, const struct step *down)
{
	uint64_t most = down->kind == MUSTER_DESC_MP ? down->length : seq->pulse_len;

	if (down->kind != up->kind)
		return false;
	if (up->op == MUSTER_REDOP_NONE && !up->length)
		return !down->length || most <= ctx->tree->payload_max;
	return down->length == up->length;
}

uint32_t muster_tree_check(const struct context *ctx, const struct sequence *seq)
{
	const struct step *up, *down;
	uint32_t i;

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

static void prepare(const struct context *ctx, const struct instance *inst,
		    const struct send *send, struct muster_packet *packet)
{
	const struct sequence *seq = muster_sequence_current(ctx);
	const struct muster_tree_config *tree = ctx->tree;

	*packet = ctx->header;
	packet->type = MUSTER_PACKET_TREE_UP;
	packet->dst_node = tree->node;
	packet->tree = tree->tree;
	packet->group = tree->group;
	packet->job_key = tree->key;
	packet->base = ctx->base;
	packet->seq_id = send->slot;
	packet->stage = seq->stage;
	packet->signature = seq->signature;
	packet->number = ctx->base;
	packet->pulse = inst->pulse;
	packet->total = send->total;
	packet->length = send->total;
}

bool muster_tree_send(struct context *ctx, const struct instance *inst, const struct send *send,
		      const void *data)
{
	struct muster_packet packet;
	int ret;

	prepare(ctx, inst, send, &packet);
	if (!send->is_inline)
		data = muster_memory_source(ctx, send->key, send->addr, send->total);
	if (!data)
		return false;
	ret = muster_packet_emit(ctx, ctx->tree->incarnation, &packet, data);
	if (ret && ret != -EAGAIN)
		muster_context_fail(ctx, MUSTER_STATUS_PEER_LOST, MUSTER_CULPRIT_NONE, NULL);
	ctx->engine->counters->tree_up += !ret;
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
	    packet->seq_id != seq->steps[seq->tree_step].slot_dest) {
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
