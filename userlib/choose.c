// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Which path an operation takes: one table, a row for each, the cheapest first. The first
 * that can do the operation runs it; why those before cannot is what muster_comm_last()
 * says. All follows from the call and from settings that all ranks share: every rank
 * chooses the same. Of these only a communicator's offload changes while entries are kept,
 * so what was chosen for an entry holds until that does.
 */
#include <errno.h>

#include "bump_path.h"
#include "host.h"
#include "tree.h"

struct muster_path_row {
	enum muster_path path;
	/*
	 * Whether it can do the operation, and why or why not (untouched: what was said before
	 * holds); if it can, what run() needs is made. Return: 1; 0; -errno with a sentence.
	 */
	int (*available)(struct muster_comm *comm, struct muster_entry *entry, const char **why);
	/* Return: enum muster_run, or -errno. */
	int (*run)(struct muster_request *request);
};

/* ---- switch ---------------------------------------------------------------------------- */

static int tree_available(struct muster_comm *comm, struct muster_entry *entry, const char **why)
{
	enum muster_offload wanted = comm->tree;
	int err;

	entry->no_tree = NULL;
	if (wanted == MUSTER_OFFLOAD_OFF || comm->offload == MUSTER_OFFLOAD_OFF)
		return 0;
	entry->no_tree = muster_trees_cannot(comm, entry);
	if (entry->no_tree && wanted == MUSTER_OFFLOAD_FORCE && !entry->call.own && muster_trees_serves(&entry->call))
		return muster_fail(comm->job, -EOPNOTSUPP, "the switches are forced, but cannot do this %s: %s",
				   muster_coll_name(entry->call.coll),
				   muster_no_tree_words(entry->no_tree));
	if (entry->no_tree)
		return 0;
	err = muster_trees_lower(comm, entry);
	*why = muster_trees_why(comm, entry);
	return err ? err : 1;
}

/* A lock comes before the first descriptor. */
static int tree_run(struct muster_request *request)
{
	int err = muster_move_holds(request) ? -EAGAIN : muster_lock_have(request);

	if (err == -EBUSY)
		return muster_request_elsewhere(request);
	if (!err)
		err = muster_nic_post(request);
	if (err == -EAGAIN)
		return MUSTER_RUN_AGAIN;
	return err ? err : MUSTER_RUN_POSTED;
}

/* ---- bump ------------------------------------------------------------------------------ */

static int bump_available(struct muster_comm *comm, struct muster_entry *entry, const char **why)
{
	bool off = comm->offload == MUSTER_OFFLOAD_OFF;

	entry->no_bump = off ? NULL : muster_bump_cannot(comm, entry);
	if (off || entry->no_bump)
		return 0;
	*why = muster_bump_why(comm, entry);
	return 1;
}

/* ---- NIC ------------------------------------------------------------------------------- */

static int nic_available(struct muster_comm *comm, struct muster_entry *entry, const char **why)
{
	int err;

	if (comm->offload == MUSTER_OFFLOAD_OFF) {
		*why = "host: offload is off";
		return 0;
	}
	if (comm->offload == MUSTER_OFFLOAD_TRY && entry->schedule->variant.host) {
		*why = "host: so the tuning says";
		return 0;
	}
	err = muster_entry_lower(comm, entry);
	if (err)
		return err;
	*why = entry->program ? "NIC: offloaded" : entry->why;
	return entry->program != NULL;
}

static int nic_run(struct muster_request *request)
{
	int err = muster_nic_post(request);

	if (err == -EAGAIN)
		return MUSTER_RUN_AGAIN;
	return err ? err : MUSTER_RUN_POSTED;
}

/* ---- host ------------------------------------------------------------------------------ */

static int host_available(struct muster_comm *comm, struct muster_entry *entry, const char **why)
{
	int err;

	if (comm->offload == MUSTER_OFFLOAD_FORCE && !entry->call.own)
		return muster_fail(comm->job, -EOPNOTSUPP, "offload is forced, but the NIC cannot do this %s: %s",
				   muster_coll_name(muster_call_coll(&entry->call)), *why);
	err = muster_entry_plan(comm, entry);
	return err ? err : 1;
}

/* One operation at a time, alone. */
static int host_run(struct muster_request *request)
{
	return request == request->comm->first ? muster_host_advance(request) : MUSTER_RUN_AGAIN;
}

/* ---- the table --------------------------------------------------------------------------- */

static const struct muster_path_row paths[] = {
	{ MUSTER_PATH_SWITCH, tree_available, tree_run },
	{ MUSTER_PATH_BUMP, bump_available, muster_bump_advance },
	{ MUSTER_PATH_NIC, nic_available, nic_run },
	{ MUSTER_PATH_HOST, host_available, host_run },
};

static int order_forced(struct muster_comm *comm, const struct muster_entry *entry)
{
	if (comm->job->settings.order != MUSTER_OFFLOAD_FORCE || !entry->no_order)
		return 0;
	return muster_fail(comm->job, -EOPNOTSUPP, "the trees' order is forced, but this %s would not have it: %s",
			   muster_coll_name(entry->call.coll), entry->no_order);
}

/* The last row can do everything, or says why it must not. */
static int choose(struct muster_comm *comm, struct muster_entry *entry)
{
	const struct muster_path_row *path = paths;
	int ret;

	comm->job->era++;
	muster_again_drop(comm);
	entry->path = NULL;
	while (!(ret = path->available(comm, entry, &entry->path_why)))
		path++;
	if (ret > 0 && path->path != MUSTER_PATH_SWITCH)
		ret = order_forced(comm, entry);
	if (ret < 0)
		return ret;
	entry->path = path;
	entry->chosen = path->path;
	entry->offload = comm->offload;
	return 0;
}

int muster_path_choose(struct muster_request *request)
{
	struct muster_entry *entry = request->entry;
	int err = 0;

	if (!entry->path || entry->offload != request->comm->offload)
		err = choose(request->comm, entry);
	if (err)
		return err;
	request->path = entry->path->path;
	request->run = entry->path->run;
	request->why = entry->path_why;
	return 0;
}
