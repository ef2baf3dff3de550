// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The order of a reduction tree without the tree: if it is asked for (MUSTER_SWITCH_ORDER), a communicator's
 * members know how their groups' trees combine, and what goes by another path is combined in the same
 * order, by a schedule, so that it has the same bits (Documentation/switch.md, section 11).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "tree.h"

enum { BLOCKS_MAX = 256 };	/* each rank lists what all do with each */

bool muster_order_counts(const struct muster_call *call)
{
	bool rounds = call->op == MUSTER_SUM || call->op == MUSTER_PROD;

	if (!muster_coll_row(call->coll)->combines)
		return false;
	switch (call->type) {
	case MUSTER_F16:
	case MUSTER_BF16:
	case MUSTER_F32:
	case MUSTER_F64:
	case MUSTER_C32:
	case MUSTER_C64:
		return rounds;
	default:
		return false;
	}
}

/* A broadcast: as many bytes at all. Who cannot take part says so to the others. */
int muster_order_share(struct muster_comm *comm, struct muster_tree *tree)
{
	const struct muster_call call = {
		.coll = MUSTER_COLL_BROADCAST, .type = MUSTER_U16, .count = 2 * (comm->size - 1ull),
		.bytes = (comm->size - 1ull) * sizeof(*tree->order), .in_place = true, .own = true,
	};
	struct muster_request *request;
	int err = 0;

	if (comm->job->settings.order == MUSTER_OFFLOAD_OFF)
		return 0;
	if (comm->rank)
		tree->order = calloc(comm->size - 1, sizeof(*tree->order));
	if (!tree->order)
		err = muster_fail(comm->job, -ENOMEM, "no memory for the order of a communicator's trees");
	if (!err)
		err = muster_request_start(comm, &call, tree->order, tree->order, &request);
	return err ? muster_comm_give_up(comm, err) : muster_wait(request);
}

/* Why not, the same on every rank. */
static const char *cannot(const struct muster_comm *comm, const struct muster_call *call)
{
	if (!muster_trees_of(comm, call))
		return muster_no_tree_words(muster_trees_missing(comm));
	if (call->coll == MUSTER_COLL_REDUCE_SCATTER && comm->size > BLOCKS_MAX)
		return "its blocks are too many";
	return comm->job->settings.order == MUSTER_OFFLOAD_TRY && muster_comm_is_told(comm) ?
	       "a schedule was chosen" : NULL;
}

int muster_order_schedule(struct muster_comm *comm, struct muster_entry *entry)
{
	const struct muster_call *call = &entry->call;
	char why[MUSTER_WHY_MAX] = "";
	int err;

	if (comm->job->settings.order == MUSTER_OFFLOAD_OFF || !muster_order_counts(call) || !muster_trees_serves(call))
		return 0;
	entry->no_order = cannot(comm, call);
	if (entry->no_order)
		return 0;
	err = muster_schedule_order(muster_trees_schedule(comm, entry), call->coll, comm->size, call->root,
				    muster_trees_of(comm, call)->order, &entry->schedule, why, sizeof(why));
	if (err)
		return muster_fail(comm->job, err, "no schedule in a tree's order: %s", why);
	entry->schedule_owned = true;
	entry->in_order = true;
	return 1;
}

void muster_order_words(const struct muster_comm *comm, const struct muster_entry *entry, char *words, size_t len)
{
	const struct muster_tree *tree = entry->in_order ? muster_trees_of(comm, &entry->call) : NULL;

	if (tree)
		snprintf(words, len, "; in the order of the %s tree%s",
			 tree == &comm->trees->by_type[MUSTER_TREE_SAT] ? "streaming" : "low-latency",
			 tree->moved ? " as it was before it moved" : "");
	else if (entry->no_order && entry->no_order == entry->no_tree)
		snprintf(words, len, ", nor in their order");
	else if (entry->no_order)
		snprintf(words, len, "; not in a tree's order: %s", entry->no_order);
	else
		*words = '\0';
}
