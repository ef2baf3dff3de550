// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Groups of communicators on reduction trees, and operations by them. Groups are made and
 * forgotten in the order in which a manager does that; who dies has left them. What comes of
 * an operation is computed here once more, child by child as the contract says, from the whole vectors.
 */
#include "dst.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arith.h"
#include "fabric.h"

enum { LEAVE_US = 5000, REMOVE_US = 3000, LAYOUTS = 2, LOCK_MAX = 3 };

struct dst_groups {
	struct muster_fabric_group shape;	/* the same on both trees */
	uint32_t layout, handle;
	uint64_t keys[DST_TREES];		/* 0: there is none */
	bool left[DST_RANKS_MAX], removed;	/* by member */
};

/* ---- making them ------------------------------------------------------------------------- */

static void branch_fill(const struct dst_world *w, const struct dst_comm *comm,
			struct muster_switch_group *group)
{
	struct muster_switch_child *children = (struct muster_switch_child *)group->children;

	group->group = comm->groups->handle;
	group->job = w->job;
	group->owner = 1 + (uint64_t)(comm - w->comms);	/* as if each were another job's */
	group->parent_incarnation = DST_SWITCH_LIFE;
	for (uint32_t i = 0; i < group->nr_children; i++) {
		children[i].incarnation = DST_SWITCH_LIFE;
		if (children[i].node >= MUSTER_NODE_AGGREGATION)
			continue;
		children[i].incarnation = comm->addresses[children[i].member].incarnation;
		children[i].vp = comm->addresses[children[i].member].vp;
		children[i].context = comm->id;
	}
}

static int type_make(struct dst_world *w, struct dst_comm *comm, uint8_t type)
{
	struct dst_groups *groups = comm->groups;
	int err = 0;

	groups->keys[type] = dst_draw(&w->data) | 1;
	for (uint32_t i = 0; i < groups->shape.nr_branches && !err; i++) {
		struct muster_fabric_branch *branch = &groups->shape.branches[i];

		branch->group.tree = (uint16_t)(2 * groups->layout + type);
		branch->group.type = type;
		branch->group.locks = w->plan.locks && type == MUSTER_SWITCH_SAT;
		branch->group.key = groups->keys[type];
		branch->group.payload_max = w->plan.tree_bytes[type];
		branch->group.segments = type == MUSTER_SWITCH_SAT ? w->plan.segments : 0;
		branch_fill(w, comm, &branch->group);
		err = muster_switch_group_add(dst_switch_of(&w->nodes[w->plan.ranks + branch->number]),
					      &branch->group);
	}
	return err;
}

/* One type is missing now and then. Members behind one port of an aggregation node have no group. */
int dst_trees_make(struct dst_world *w, struct dst_comm *comm)
{
	uint32_t hosts[DST_RANKS_MAX], which = dst_below(&w->data, 6);
	struct dst_groups *groups = calloc(1, sizeof(*groups));
	char why[DST_WHY_MAX] = "";
	int err = -ENOMEM;

	for (uint32_t m = 0; m < comm->nr; m++)
		hosts[m] = comm->addresses[m].node;
	if (groups) {
		groups->layout = dst_below(&w->data, LAYOUTS);
		groups->handle = 1 + 4 * dst_below(&w->data, 1 << 20) + (comm - w->comms);
		err = muster_fabric_group(dst_network_fabric(w), groups->layout, hosts, comm->nr,
					  &groups->shape, why, sizeof(why));
	}
	if (err) {
		free(groups);
		return err == -EOPNOTSUPP ? 0 : err;
	}
	comm->groups = groups;
	for (uint8_t type = 0; type < DST_TREES && !err; type++)
		if (which != type && (!type || !w->plan.locks || groups->keys[MUSTER_SWITCH_LLT]))
			err = type_make(w, comm, type);
	return err;
}

void dst_trees_free(struct dst_world *w)
{
	for (uint32_t c = 0; c < w->plan.comms; c++) {
		struct dst_groups *groups = w->comms[c].groups;

		if (groups)
			muster_fabric_group_free(&groups->shape);
		free(groups);
		w->comms[c].groups = NULL;
	}
}

int dst_trees_join(struct dst_rank *rank, uint32_t c)
{
	const struct dst_world *w = rank->world;
	const struct dst_groups *groups = w->comms[c].groups;
	int err = 0;

	for (uint32_t type = 0; groups && type < DST_TREES && !err; type++) {
		const struct muster_tree_config config = {
			.node = groups->shape.nodes[rank->parts[c].self], .incarnation = DST_SWITCH_LIFE,
			.tree = (uint16_t)(2 * groups->layout + type), .group = groups->handle,
			.key = groups->keys[type], .payload_max = w->plan.tree_bytes[type],
		};

		if (config.key)
			err = muster_engine_tree_join(rank->node->engine, rank->vp, w->job,
						      w->comms[c].id, &config);
	}
	return err;
}

/* ---- leaving them ---------------------------------------------------------------------------- */

void dst_trees_leave(struct dst_rank *rank, uint32_t c)
{
	struct dst_world *w = rank->world;

	if (w->comms[c].groups)
		dst_at(w, w->now_us + 1 + dst_below(&w->host, LEAVE_US), DST_EVENT_LEAVE, rank->index,
		       c, NULL);
}

static void leave_switch(struct dst_world *w, const struct dst_groups *groups, uint32_t host)
{
	for (uint32_t i = 0; i < groups->shape.nr_branches; i++) {
		const struct muster_fabric_branch *branch = &groups->shape.branches[i];
		const struct dst_node *node = &w->nodes[w->plan.ranks + branch->number];

		for (uint32_t type = 0; type < DST_TREES && !node->dead; type++)
			if (groups->keys[type])
				muster_switch_child_left(dst_switch_of(node), 2 * groups->layout + type,
							 groups->handle, host);
	}
}

/* When all have left, each switch forgets it, in its own time. */
void dst_trees_left(struct dst_rank *rank, uint32_t c)
{
	struct dst_world *w = rank->world;
	struct dst_groups *groups = w->comms[c].groups;

	if (!groups || groups->removed || !rank->parts[c].member)
		return;
	groups->left[rank->parts[c].self] = true;
	if (!rank->node->dead)
		leave_switch(w, groups, rank->node->index);
	for (uint32_t m = 0; m < w->comms[c].nr; m++)
		if (!groups->left[m])
			return;
	groups->removed = true;
	for (uint32_t i = 0; i < groups->shape.nr_branches; i++)
		dst_at(w, w->now_us + 1 + dst_below(&w->host, REMOVE_US), DST_EVENT_REMOVE,
		       w->plan.ranks + groups->shape.branches[i].number, c, NULL);
}

void dst_trees_remove(struct dst_node *node, uint32_t c)
{
	const struct dst_groups *groups = node->world->comms[c].groups;

	for (uint32_t type = 0; type < DST_TREES && !node->dead; type++)
		if (groups->keys[type] &&
		    muster_switch_group_remove(dst_switch_of(node), 2 * groups->layout + type, groups->handle))
			dst_fail(node->world, "switch %u has lost a group of communicator %u",
				 node->index, c);
	dst_step_at(node, node->world->now_us + 1);
}

/* ---- what is broken ------------------------------------------------------------------------------ */

static bool branch_is(const struct dst_world *w, const struct dst_groups *groups, uint32_t node)
{
	for (uint32_t i = 0; i < groups->shape.nr_branches; i++)
		if (w->plan.ranks + groups->shape.branches[i].number == node)
			return true;
	return false;
}

bool dst_trees_broken(const struct dst_world *w, uint32_t c)
{
	const struct dst_comm *comm = &w->comms[c];

	for (uint32_t m = 0; m < comm->nr; m++)
		if (dst_network_gone(w, comm->addresses[m].node))
			return true;
	for (uint32_t i = w->plan.ranks; i < w->plan.nodes && comm->groups; i++)
		if (dst_network_gone(w, i) && branch_is(w, comm->groups, i))
			return true;
	return false;
}

/* ---- operations ------------------------------------------------------------------------------------- */

uint8_t dst_tree_draw(struct dst_world *w, const struct dst_comm *comm, uint64_t *bytes)
{
	uint32_t type = dst_below(&w->data, DST_TREES);
	uint64_t most = (uint64_t)DST_TREE_PACKETS * w->plan.tree_bytes[type];

	if (dst_below(&w->data, 4) == 0 || !comm->groups || !comm->groups->keys[type])
		return 0;
	*bytes = *bytes > most ? most : *bytes;
	return (uint8_t)(1 + type);
}

static const struct muster_switch_group *branch_of(const struct dst_comm *comm, uint32_t node)
{
	const struct muster_fabric_group *shape = &comm->groups->shape;

	for (uint32_t i = 0; i < shape->nr_branches; i++)
		if (MUSTER_NODE_AGGREGATION + shape->branches[i].number == node)
			return &shape->branches[i].group;
	return NULL;
}

struct folding {
	const struct dst_comm *comm;
	const struct dst_op *op;
	uint8_t *const *vectors;
	uint32_t middle;		/* of a streaming tree: the first port of the right half ring */
};

static void fold(const struct dst_op *op, uint8_t *sum, const uint8_t *value, bool first)
{
	if (first || !op->bytes)
		memcpy(sum, value, op->bytes);
	else
		muster_arith(op->type, op->op, sum, sum, value, op->bytes);
}

/* What a node sends up: the left half's children, then the right half's, then both. */
static void value_of(const struct folding *f, const struct muster_switch_child *child, uint8_t *value)
{
	const struct muster_switch_group *group = branch_of(f->comm, child->node);
	uint8_t *one = malloc(f->op->bytes + 1), *half = malloc(f->op->bytes + 1);
	uint32_t nr[2] = { 0 };

	if (!group)
		memcpy(value, f->vectors[child->member], f->op->bytes);
	for (uint32_t right = 0; right < 2 && group; right++) {
		for (uint32_t i = 0; i < group->nr_children; i++) {
			if ((group->children[i].port >= f->middle) != right)
				continue;
			value_of(f, &group->children[i], one);
			fold(f->op, half, one, !nr[right]++);
		}
		if (nr[right])
			fold(f->op, value, half, !right || !nr[0]);
	}
	free(one);
	free(half);
}

void dst_tree_expect(const struct dst_world *w, const struct dst_comm *comm, const struct dst_op *op,
		     uint8_t *const *vectors, uint8_t *expected)
{
	const struct muster_fabric_group *shape = &comm->groups->shape;
	uint32_t units = (muster_fabric_radix(dst_network_fabric(w)) + 1) / 2;
	struct folding f = {
		comm, op, vectors, op->tree == 1 + MUSTER_SWITCH_SAT ? (units + 1) / 2 * 2 : UINT32_MAX,
	};
	struct muster_switch_child root = {
		.node = MUSTER_NODE_AGGREGATION + shape->branches[shape->nr_branches - 1].number,
	};

	if (op->schedule->coll == MUSTER_COLL_BROADCAST)
		memcpy(expected, vectors[op->schedule->root], op->bytes);
	else
		value_of(&f, &root, expected);
}

/* ---- locks: as userlib/lock.c asks for them, but without an end to its patience ---------------------- */

bool dst_lock_wanted(struct dst_world *w, struct dst_comm *comm, struct dst_op *op)
{
	uint32_t operations;

	if (op->tree != 1 + MUSTER_SWITCH_SAT || !w->plan.locks)
		return false;
	operations = comm->locked ? 0 : 1 + dst_below(&w->data, LOCK_MAX);
	if (comm->locked && dst_below(&w->data, 8)) {
		comm->locked--;
		return false;
	}
	comm->locked = operations;
	op->tree = 1 + MUSTER_SWITCH_LLT;
	op->lock = 1 + operations;
	op->type = MUSTER_DTYPE_U64;
	op->op = MUSTER_REDOP_MIN;
	op->bytes = sizeof(struct muster_lock);
	op->count = op->bytes / sizeof(uint64_t);
	return true;
}

void dst_lock_ask(struct dst_call *call)
{
	const struct muster_lock lock = {
		.operations = call->op->lock - 1, .free = 1,
		.how = call->how ? call->how : MUSTER_LOCK_KEEP,
		.asked = UINT64_MAX, .place = UINT64_MAX, .again = UINT64_MAX,
	};

	memcpy(call->in, &lock, sizeof(lock));
}

bool dst_lock_again(struct dst_rank *rank, uint32_t c, struct dst_call *call)
{
	struct dst_op *op = &rank->world->comms[c].ops[rank->parts[c].completed];
	struct muster_lock said;

	memcpy(&said, call->out, sizeof(said));
	if (++call->asked != op->asked)
		memcpy(op->expected, &said, sizeof(said));
	else if (memcmp(op->expected, &said, sizeof(said)))
		dst_fail(rank->world, "rank %u, communicator %u: of a lock another member has heard something else",
			 rank->index, c);
	op->asked = call->asked;
	if (!said.operations || (said.free && said.how == MUSTER_LOCK_KEEP))
		return false;
	call->how = said.free ? MUSTER_LOCK_KEEP : MUSTER_LOCK_WAIT;
	return true;
}

/* ---- programs ---------------------------------------------------------------------------------------- */

static struct muster_program *program_new(void)
{
	struct muster_program *program = calloc(1, sizeof(*program));

	if (!program)
		return NULL;
	program->nr_stages = 1;
	program->nr_descs = 2;
	program->stage_first = calloc(2, sizeof(*program->stage_first));
	program->descs = calloc(2, sizeof(*program->descs));
	program->sources = calloc(1, sizeof(*program->sources));
	if (program->stage_first && program->descs && program->sources) {
		program->stage_first[1] = 2;
		return program;
	}
	muster_program_free(program);
	return NULL;
}

struct muster_program *dst_tree_lower(const struct dst_world *w, const struct dst_comm *comm,
				      uint32_t member, const struct dst_op *op)
{
	enum muster_coll coll = op->schedule->coll;
	bool brings = coll != MUSTER_COLL_BROADCAST || member == op->schedule->root;
	bool keeps = coll != MUSTER_COLL_REDUCE || member == op->schedule->root;
	uint32_t pulse = w->plan.tree_bytes[op->tree - 1];
	struct muster_program *program = program_new();
	struct muster_desc *up, *down;

	if (!program)
		return NULL;
	up = &program->descs[0];
	down = &program->descs[1];
	program->is_inline = op->bytes <= MUSTER_INLINE_MAX;
	program->bytes = program->out_bytes = op->bytes;
	*up = (struct muster_desc){
		.kind = program->is_inline ? MUSTER_DESC_MP : MUSTER_DESC_RDMA,
		.flags = MUSTER_DESC_C, .src_vp = comm->addresses[member].vp, .job = w->job,
		.context = comm->id, .length = op->bytes,
		.signature = { .coll = op->lock ? MUSTER_COLL_LOCK : coll, .type = op->type, .op = op->op, .root = op->schedule->root },
	};
	if (!program->is_inline) {
		up->range.pulse_len = pulse;
		up->range.pulse_count = (uint32_t)((op->bytes + pulse - 1) / pulse);
	}
	*down = *up;
	if (!program->is_inline)
		up->range.pulses_live = w->plan.tree_pulses;
	up->flags |= MUSTER_DESC_CH | MUSTER_DESC_CP;
	up->dest = MUSTER_FIELD_PREP(MUSTER_DEST_NODE, comm->groups->shape.nodes[member]);
	up->dst_vp = (uint16_t)(2 * comm->groups->layout + op->tree - 1);
	up->length = brings ? op->bytes : 0;
	if (program->is_inline)
		up->inline_len = (uint8_t)up->length;
	else if (brings)
		up->range.load_key = MUSTER_SPACE_IN;
	down->flags |= MUSTER_DESC_CT | MUSTER_DESC_COLL_END;
	down->cp_count = 1;
	down->length = keeps ? op->bytes : 0;
	if (down->length)
		down->store_key = MUSTER_SPACE_OUT;
	return program;
}
