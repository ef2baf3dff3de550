// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What muster_comm_last() tells of a communicator's last operation: which path it took and
 * why, and what it was made of.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bump_path.h"
#include "rails.h"
#include "restart.h"
#include "tree.h"
#include "turn.h"

enum { WHYS_MAX = 5 * MUSTER_WHY_MAX };	/* bytes of all reasons together */

static bool is_network(enum muster_path path)
{
	return path == MUSTER_PATH_SWITCH || path == MUSTER_PATH_BUMP;
}

/* What was not the switches' or the bump's says so beside its own reason. */
static void why_set(struct muster_comm *comm, const struct muster_request *request)
{
	const struct muster_entry *entry = request->entry;
	bool no_bump = !is_network(request->path) && entry->no_bump && *entry->no_bump;
	bool no_tree = !is_network(request->path) && entry->no_tree && *entry->no_tree;
	char order[MUSTER_WHY_MAX] = "", rails[16], others[64];

	muster_rails_words(request, rails, sizeof(rails), others, sizeof(others));
	if (request->path != MUSTER_PATH_SWITCH)
		muster_order_words(comm, entry, order, sizeof(order));
	comm->last.why = request->why;
	if (!no_bump && !no_tree && !*order && !*rails && request->why != entry->why)
		return;
	if (!comm->last_why)
		comm->last_why = malloc(WHYS_MAX);
	comm->last.why = "no memory for why";
	if (!comm->last_why)
		return;
	snprintf(comm->last_why, WHYS_MAX, "%s%s%s%s%s%s%s%s", rails, request->why, order,
		 no_tree ? "; not the switches: " : "", no_tree ? entry->no_tree : "",
		 no_bump ? "; not the bump: " : "", no_bump ? entry->no_bump : "", others);
	comm->last.why = comm->last_why;	/* the entry may go */
}

static const char *schedule_of(const struct muster_request *request)
{
	switch (request->path) {
	case MUSTER_PATH_BUMP:
		return muster_bump_schedule(request->entry);
	case MUSTER_PATH_SWITCH:
		return muster_trees_schedule(request->comm, request->entry);
	default:
		return request->entry->schedule->name;
	}
}

static uint64_t bytes_of(const struct muster_call *call)
{
	return call->whole ? call->bytes / call->count * call->whole : call->bytes;
}

void muster_last_fill(const struct muster_request *request, struct muster_op_info *info)
{
	const struct muster_entry *entry = request->entry;

	*info = (struct muster_op_info){
		.path = request->path,
		.bytes = bytes_of(&entry->call),
		.why = request->why,
		.steps = request->path == MUSTER_PATH_SWITCH ? 1 : entry->schedule->steps,
	};
	strcpy(info->schedule, schedule_of(request));
	if (muster_path_is_posted(request->path)) {
		info->sequences = entry->program->nr_stages;
		info->descriptors = entry->program->nr_descs;
	}
}

/* The same as the last time, unless it is the first, or another path was chosen since. */
void muster_last_set(struct muster_comm *comm, const struct muster_request *request)
{
	struct muster_op_info *info = &request->entry->info;

	comm->warm->last_of = request->entry;
	comm->warm->last_era = comm->job->era;
	if (!*info->schedule || info->path != request->path)
		muster_last_fill(request, info);
	comm->last = *info;
	why_set(comm, request);
}

void muster_last_set_nothing(const struct muster_request *request)
{
	if (request->comm->warm)
		request->comm->warm->last_of = NULL;
	request->comm->last = (struct muster_op_info){
		.path = MUSTER_PATH_NONE,
		.why = request->comm->size == 1 ? "nothing to do: one rank" :
						  "nothing to do: no elements",
		.bytes = request->nothing_bytes,
	};
}

void muster_comm_last(const struct muster_comm *comm, struct muster_op_info *info)
{
	MUSTER_TURN_OF(comm);
	*info = comm->restarts && comm->restarts->heir ? comm->restarts->heir->last : comm->last;
}
