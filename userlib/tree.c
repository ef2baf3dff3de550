// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The path by the network's reduction switches (Documentation/switch.md): a communicator has
 * a group on a tree, made when the communicator is, and an operation is a program of two
 * descriptors, one that sends to the tree and one that awaits the result. Of blocks that belong to
 * a member each there is one such sequence for each block. What a tree cannot, and why, follows from
 * what all ranks share.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"
#include "tree.h"

/* ---- a communicator's group ----------------------------------------------------------------- */

/* Its own affair, beside the job's. */
static void comm_without(struct muster_comm *comm, const char *what)
{
	free(comm->no_tree);
	if (asprintf(&comm->no_tree, "no group was made: %.120s", what) < 0)
		comm->no_tree = NULL;
}

static void job_without(struct muster *job, const char *what)
{
	snprintf(job->no_tree, sizeof(job->no_tree), "%s", what);
}

int muster_trees_open(struct muster *job)
{
	char why[MUSTER_WHY_MAX] = "";
	int err;

	if (job->settings.tree == MUSTER_OFFLOAD_OFF || job->oob.size == 1)
		return 0;
	if (!*job->settings.manager) {
		if (job->settings.tree == MUSTER_OFFLOAD_FORCE)
			job_without(job, "no network of switches is there (muster-run --topology)");
		return job->settings.tree == MUSTER_OFFLOAD_FORCE ? -EOPNOTSUPP : 0;
	}
	if (!job->dev->ops->tree_join || !job->settings.uplink) {
		job_without(job, "this device's packets do not go by switches");
		return -EOPNOTSUPP;
	}
	err = muster_manager_open(job, why, sizeof(why));
	if (err)
		snprintf(job->no_tree, sizeof(job->no_tree), "the manager at %.40s: %.100s",
			 job->settings.manager, why);
	return err;
}

void muster_trees_close(struct muster *job, const char *why)
{
	muster_manager_close(job);
	if (why)
		job_without(job, why);
}

/* The first member has it made; what the others hear of it is told as the greatest of all words. */
static int group_agree(struct muster_comm *comm, enum muster_tree_type type,
		       const struct muster_tree *pair, struct muster_tree *tree)
{
	struct muster_group group = muster_group_of_all(comm);
	struct muster_agreement words = { .status = 0 };
	char why[MUSTER_WHY_MAX] = "";
	int err = comm->rank ? 0 : muster_manager_create(comm, type, pair, tree, why, sizeof(why));

	if (!comm->rank) {
		words.most[0] = err ? 0 : tree->key;
		words.most[1] = err ? (uint64_t)-err : (uint64_t)tree->locks << 63 |
						       (uint64_t)tree->payload_max << 48 |
						       (uint64_t)tree->tree << 32 | tree->group;
	}
	err = muster_agree(&group, &words);
	if (err)
		return err;
	*tree = (struct muster_tree){
		.key = words.most[0],
		.payload_max = (uint32_t)(words.most[1] >> 48 & 0x7fff),
		.locks = words.most[0] && words.most[1] >> 63,
		.tree = (uint16_t)(words.most[1] >> 32),
		.group = (uint32_t)words.most[1],
		.order = tree->order,
	};
	if (tree->key && comm->rank && muster_manager_hold(comm->job, tree))
		return muster_comm_give_up(comm, muster_fail(comm->job, -ENOMEM,
							     "no memory for a communicator's trees"));
	if (tree->key)
		return muster_order_share(comm, tree);
	comm_without(comm, *why ? why : muster_manager_words(muster_rank_errno(-(int32_t)tree->group)));
	return 0;
}

struct muster_dev_tree muster_tree_config(const struct muster *job, const struct muster_tree *tree)
{
	return (struct muster_dev_tree){
		.node = job->settings.uplink, .incarnation = job->settings.uplink_life,
		.tree = tree->tree, .group = tree->group, .key = tree->key,
		.payload_max = tree->payload_max,
	};
}

static int device_join(struct muster_comm *comm, const struct muster_tree *tree)
{
	struct muster *job = comm->job;
	const struct muster_dev_tree config = muster_tree_config(job, tree);
	int err = job->dev->ops->tree_join(job->dev, job->id, comm->context, &config);

	if (err)
		muster_fail(job, err, "the device does not join the reduction tree: %s", strerror(-err));
	return err;
}

/* What may fail at one rank alone; until all have agreed upon the groups, nothing does. */
static int trees_take(struct muster_comm *comm, const struct muster_trees *trees)
{
	int err = 0;

	comm->trees = calloc(1, sizeof(*comm->trees));
	if (!comm->trees)
		return muster_fail(comm->job, -ENOMEM, "no memory for a communicator's trees");
	*comm->trees = *trees;
	for (int type = 0; type < MUSTER_TREE_TYPES && !err; type++)
		if (trees->by_type[type].key)
			err = device_join(comm, &trees->by_type[type]);
	return err;
}

static void trees_leave(struct muster *job, const struct muster_trees *trees)
{
	for (int type = 0; type < MUSTER_TREE_TYPES; type++) {
		if (trees->by_type[type].key)
			muster_manager_leave(job, &trees->by_type[type], false);
		free(trees->by_type[type].order);
	}
	for (int type = 0; type < MUSTER_TREE_TYPES; type++)
		if (trees->move.begun && trees->move.next[type].key)
			muster_manager_leave(job, &trees->move.next[type], false);
}

int muster_comm_tree_join(struct muster_comm *comm)
{
	struct muster_trees trees = { 0 };
	struct muster_tree *llt = &trees.by_type[MUSTER_TREE_LLT];
	int err;

	if (!comm->job->manager || comm->size == 1)
		return 0;
	err = group_agree(comm, MUSTER_TREE_LLT, &(struct muster_tree){ .key = 0 }, llt);
	if (!err)
		err = group_agree(comm, MUSTER_TREE_SAT, llt, &trees.by_type[MUSTER_TREE_SAT]);
	if (!err)
		err = trees_take(comm, &trees);
	if (!err)
		return 0;
	trees_leave(comm->job, &trees);
	free(comm->trees);
	comm->trees = NULL;
	return err;
}

void muster_comm_tree_joined(struct muster_comm *comm)
{
	if (comm->trees)
		comm->trees->everywhere = true;
}

void muster_comm_tree_leave(struct muster_comm *comm)
{
	if (!comm->trees)
		return;
	trees_leave(comm->job, comm->trees);
	free(comm->trees);
	comm->trees = NULL;
}

/* ---- what it can do: from what all ranks share -------------------------------------------------- */

/* Each member brings one to all, or has one of the result. */
static bool is_of_blocks(const struct muster_call *call)
{
	return call->coll == MUSTER_COLL_REDUCE_SCATTER || call->coll == MUSTER_COLL_ALLGATHER;
}

/* One after the other. */
static uint32_t rounds_of(const struct muster_comm *comm, const struct muster_call *call)
{
	return is_of_blocks(call) ? comm->size : 1;
}

static uint64_t round_bytes(const struct muster_comm *comm, const struct muster_call *call)
{
	return call->bytes / rounds_of(comm, call);
}

bool muster_trees_serves(const struct muster_call *call)
{
	return is_of_blocks(call) ? !call->as && !call->cut :
	       (!call->as || call->exact) &&
	       (call->coll == MUSTER_COLL_BARRIER || call->coll == MUSTER_COLL_ALLREDUCE ||
		call->coll == MUSTER_COLL_REDUCE || call->coll == MUSTER_COLL_BROADCAST);
}

/* What is short goes by the low-latency tree, all else by the streaming one, if they are there. */
const struct muster_tree *muster_trees_of(const struct muster_comm *comm, const struct muster_call *call)
{
	bool is_long = call->bytes > comm->job->settings.tree_bytes;
	const struct muster_tree *llt, *sat;

	if (!comm->trees)
		return NULL;
	llt = &comm->trees->by_type[MUSTER_TREE_LLT];
	sat = &comm->trees->by_type[MUSTER_TREE_SAT];
	if (sat->key && (is_long || !llt->key))
		return sat;
	return llt->key ? llt : NULL;
}

static bool is_streaming(const struct muster_comm *comm, const struct muster_tree *tree)
{
	return tree == &comm->trees->by_type[MUSTER_TREE_SAT];
}

bool muster_trees_locks(const struct muster_comm *comm, const struct muster_entry *entry)
{
	return muster_trees_of(comm, &entry->call)->locks;
}

const char *muster_trees_missing(const struct muster_comm *comm)
{
	return comm->no_tree ? comm->no_tree : comm->job->no_tree;
}

const char *muster_trees_cannot(const struct muster_comm *comm, const struct muster_entry *entry)
{
	const struct muster_call *call = &entry->call;
	bool forced = comm->tree == MUSTER_OFFLOAD_FORCE;
	const struct muster_tree *tree = muster_trees_of(comm, call);

	if (!tree)
		return muster_trees_missing(comm);
	if (!muster_trees_serves(call))
		return "a tree has no such collective";
	if (is_of_blocks(call) && tree->locks)
		return "a lock is for whole operations, and here is one for each block";
	if (is_of_blocks(call) && !forced && round_bytes(comm, call) <= comm->job->settings.tree_bytes)
		return "its blocks are no longer than MUSTER_SWITCH_BYTES, and each takes its turn";
	if (call->off_tree)
		return "another job had the streaming tree locked";
	if (tree->payload_max < MUSTER_INLINE_MAX)
		return "its packets are too short";
	if (!forced && call->bytes > comm->job->settings.tree_bytes && !is_streaming(comm, tree))
		return "it is longer than MUSTER_SWITCH_BYTES, and there is no streaming tree";
	return !forced && muster_comm_is_told(comm) ? "a schedule was chosen" : NULL;
}

const char *muster_trees_why(const struct muster_comm *comm, const struct muster_entry *entry)
{
	static const char *const words[2][3] = {
		{ "switch: low-latency tree",
		  "switch: low-latency tree; rounded in its own order, not that of the other paths",
		  "switch: low-latency tree; rounded in its own order, as on the other paths" },
		{ "switch: streaming tree",
		  "switch: streaming tree; rounded in its own order, not that of the other paths",
		  "switch: streaming tree; rounded in its own order, as on the other paths" },
	};
	const struct muster_tree *tree = muster_trees_of(comm, &entry->call);
	int order = !muster_order_counts(&entry->call) ? 0 : entry->in_order && !tree->moved ? 2 : 1;

	return words[is_streaming(comm, tree)][order];
}

const char *muster_trees_schedule(const struct muster_comm *comm, const struct muster_entry *entry)
{
	const struct muster_tree *tree = muster_trees_of(comm, &entry->call);

	return tree && is_streaming(comm, tree) ? "streaming-tree" : "low-latency-tree";
}

/* ---- the program ---------------------------------------------------------------------------------- */

static struct muster_program *program_new(uint32_t rounds)
{
	struct muster_program *program = calloc(1, sizeof(*program));

	if (!program)
		return NULL;
	program->nr_stages = rounds;
	program->nr_descs = 2 * rounds;
	program->stage_first = calloc(rounds + 1, sizeof(*program->stage_first));
	program->descs = calloc(program->nr_descs, sizeof(*program->descs));
	program->sources = calloc(rounds, sizeof(*program->sources));
	if (!program->stage_first || !program->descs || !program->sources) {
		muster_program_free(program);
		return NULL;
	}
	for (uint32_t round = 0; round < rounds; round++) {
		program->stage_first[round + 1] = 2 * (round + 1);
		program->sources[round][0] = MUSTER_LOOK_NOBODY;	/* all others */
	}
	return program;
}

/* Whether this member contributes, or only takes what another brings. */
static bool brings(const struct muster_comm *comm, const struct muster_call *call, uint32_t round)
{
	switch (call->coll) {
	case MUSTER_COLL_BROADCAST:
		return comm->rank == call->root;
	case MUSTER_COLL_ALLGATHER:
		return comm->rank == round;
	default:
		return true;
	}
}

static void contribution_fill(const struct muster_comm *comm, const struct muster_entry *entry,
			      uint32_t round, struct muster_desc *up)
{
	const struct muster_call *call = &entry->call;
	uint64_t bytes = round_bytes(comm, call);

	up->flags |= MUSTER_DESC_CH | MUSTER_DESC_CP;
	up->dest = MUSTER_FIELD_PREP(MUSTER_DEST_NODE, comm->job->settings.uplink);
	up->dst_vp = muster_trees_of(comm, call)->tree;
	if (!brings(comm, call, round))
		return;
	up->length = bytes;
	if (up->kind == MUSTER_DESC_MP) {
		up->inline_len = (uint8_t)up->length;
	} else {
		up->range.load_key = call->in_place ? MUSTER_SPACE_OUT : MUSTER_SPACE_IN;
		up->range.load_addr = round * bytes;
	}
}

/* A broadcast's root has what comes back; its buffer may be one that nobody may write to. */
static uint32_t space_of_result(const struct muster_comm *comm, const struct muster_entry *entry,
				const struct muster_program *program, uint32_t round)
{
	if (entry->call.coll == MUSTER_COLL_REDUCE_SCATTER)
		return comm->rank == round ? MUSTER_SPACE_PART : MUSTER_SPACE_SCRATCH;
	return program->is_inline || entry->gets_result ? MUSTER_SPACE_OUT : MUSTER_SPACE_SCRATCH;
}

static void result_fill(const struct muster_comm *comm, const struct muster_entry *entry,
			struct muster_program *program, uint32_t round)
{
	struct muster_desc *down = &program->descs[2 * round + 1];

	down->flags |= MUSTER_DESC_CT;
	if (round + 1 == program->nr_stages)
		down->flags |= MUSTER_DESC_COLL_END;
	down->cp_count = 1;
	if (entry->call.coll != MUSTER_COLL_REDUCE || entry->gets_result)	/* else it only hears of it */
		down->length = round_bytes(comm, &entry->call);
	if (!down->length)
		return;
	down->store_key = space_of_result(comm, entry, program, round);
	if (down->store_key == MUSTER_SPACE_SCRATCH)
		program->scratch_bytes = down->length;
	else
		down->store_addr = round * down->length;
}

static void desc_fill(const struct muster_comm *comm, const struct muster_entry *entry,
		      const struct muster_program *program, struct muster_desc *desc)
{
	uint32_t pulse = muster_trees_of(comm, &entry->call)->payload_max;

	*desc = (struct muster_desc){
		.kind = program->is_inline ? MUSTER_DESC_MP : MUSTER_DESC_RDMA,
		.flags = MUSTER_DESC_C,
		.src_vp = comm->job->dev->address.vp,
		.job = comm->job->id,
		.context = comm->context,
	};
	if (desc->kind == MUSTER_DESC_MP)
		return;
	desc->range.pulse_len = pulse;
	desc->range.pulse_count = (uint32_t)((round_bytes(comm, &entry->call) + pulse - 1) / pulse);
}

static void round_fill(const struct muster_comm *comm, const struct muster_entry *entry,
		       struct muster_program *program, uint32_t round)
{
	struct muster_desc *descs = &program->descs[2 * round];

	desc_fill(comm, entry, program, &descs[0]);
	desc_fill(comm, entry, program, &descs[1]);
	if (!program->is_inline)
		descs[0].range.pulses_live = MUSTER_TREE_PULSES_LIVE;
	contribution_fill(comm, entry, round, &descs[0]);
	result_fill(comm, entry, program, round);
}

int muster_trees_lower(struct muster_comm *comm, struct muster_entry *entry)
{
	const struct muster_call *call = &entry->call;
	struct muster_program *program;

	if (entry->program)
		return 0;
	program = program_new(rounds_of(comm, call));
	if (!program)
		return muster_fail(comm->job, -ENOMEM, "no memory for an operation on a tree");
	program->is_inline = program->is_small = call->bytes <= MUSTER_INLINE_MAX && !is_of_blocks(call);
	program->bytes = call->bytes;
	program->out_bytes = entry->gets_result && call->coll != MUSTER_COLL_REDUCE_SCATTER ? call->bytes : 0;
	for (uint32_t round = 0; round < program->nr_stages; round++)
		round_fill(comm, entry, program, round);
	entry->program = program;
	return muster_entry_bind(comm, entry);
}
