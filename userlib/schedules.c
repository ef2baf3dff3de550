// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Which schedule serves a call on a communicator: the library chooses, by what was measured on this
 * machine where it can, unless its caller or the environment has told the communicator otherwise:
 * by a name, a file with a schedule, or a choice by size. Few are told anything, and only they have
 * memory for that.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "graph.h"
#include "tree.h"
#include "tuning.h"
#include "turn.h"

enum { NAMES_WHY_MAX = 400 };	/* a sentence that has all names in it */

/* The last word alone counts; operations that run may still use older ones, which stay. */
struct muster_told {
	char name[MUSTER_SCHEDULE_NAME_MAX + 1];	/* or empty */
	struct muster_schedule *file;	/* the user's own, for what it fits; or NULL */
	struct muster_tuning *tuning;	/* or the user's choice by size */
	struct muster_tuning **tunings;	/* all that there were */
	uint32_t nr_tunings;
	struct muster_schedule **files;	/* likewise */
	uint32_t nr_files;
};

bool muster_comm_is_told(const struct muster_comm *comm)
{
	const struct muster_told *told = comm->told;

	return told && (told->tuning || told->file || *told->name);
}

bool muster_comm_is_told_file(const struct muster_comm *comm, const struct muster_entry *entry)
{
	const struct muster_told *told = comm->told;

	return told && (told->tuning || (told->file && entry->schedule == told->file));
}

/* ---- choosing ---------------------------------------------------------------- */

/* What algorithms are chosen by. An exact sum's follows from its count alone: it is signed early. */
static uint64_t choice_bytes(const struct muster_call *call)
{
	return call->bytes / MUSTER_CALL_LIMBS(call->exact);
}

/* An alltoall's chunks are those of a pair: the calls' blocks are not cut so. */
static bool cuts_fit(const struct muster_schedule *schedule, const struct muster_call *call)
{
	return !call->parts || schedule->generator || call->coll != MUSTER_COLL_ALLTOALL;
}

static bool file_fits(const struct muster_schedule *schedule, const struct muster_comm *comm,
		      const struct muster_call *call)
{
	return schedule && schedule->coll == call->coll && schedule->ranks == comm->size &&
	       (!muster_coll_rooted(call->coll) || schedule->root == call->root) &&
	       cuts_fit(schedule, call);
}

static int tuned(struct muster_comm *comm, const struct muster_tuning *tuning, struct muster_entry *entry)
{
	const struct muster_call *call = &entry->call;
	int err = muster_tuning_choose(tuning, call->coll, comm->size, call->root,
				       choice_bytes(call), &entry->schedule, &entry->schedule_owned);

	if (err || cuts_fit(entry->schedule, call))
		return err;
	if (entry->schedule_owned)
		muster_schedule_free(entry->schedule);
	entry->schedule_owned = false;
	return -ENOENT;
}

/* Nothing is passed on by who does not know its length; and what is chosen depends on none. */
static int schedule_direct(struct muster_comm *comm, struct muster_entry *entry)
{
	const struct muster_call *call = &entry->call;
	const char *name = call->coll == MUSTER_COLL_ALLTOALL ? "pairwise" : "linear";
	char why[MUSTER_WHY_MAX] = "";
	int err = muster_schedule_by_rank(name, call->coll, comm->size, call->root, 0,
					  &entry->schedule, why, sizeof(why));

	if (err)
		return muster_fail(comm->job, err, "no schedule for %s: %s",
				   muster_coll_name(muster_call_coll(call)), why);
	entry->schedule_owned = true;
	return 0;
}

static int schedule_neighbours(struct muster_comm *comm, struct muster_entry *entry)
{
	int err = muster_graph_schedule(comm->graph, comm->rank, comm->size, &entry->schedule);

	if (err)
		return muster_fail(comm->job, err, "no memory for a schedule");
	entry->schedule_owned = true;
	return 0;
}

/* By what it was told. -EOPNOTSUPP or -EINVAL: that has none for the call. */
static int schedule_told(struct muster_comm *comm, struct muster_entry *entry, char *why,
			 size_t why_len)
{
	const struct muster_call *call = &entry->call;
	const struct muster_told *told = comm->told;
	int err = -EOPNOTSUPP;

	if (told && told->tuning)
		err = tuned(comm, told->tuning, entry);
	if (told && err && file_fits(told->file, comm, call)) {
		entry->schedule = told->file;
		return 0;
	}
	if (told && *told->name) {
		err = muster_schedule_by_rank(told->name, call->coll, comm->size, call->root,
					      choice_bytes(call), &entry->schedule, why, why_len);
		entry->schedule_owned = !err;
	}
	return err == -ENOENT ? -EOPNOTSUPP : err;
}

static int schedule_best(struct muster_comm *comm, struct muster_entry *entry, char *why,
			 size_t why_len)
{
	const struct muster_call *call = &entry->call;
	int err = muster_schedule_by_rank(NULL, call->coll, comm->size, call->root,
					  choice_bytes(call), &entry->schedule, why, why_len);

	entry->schedule_owned = !err;
	return err;
}

static bool has_none(int err)
{
	return err == -EOPNOTSUPP || err == -EINVAL;
}

/* Who passes a block on knows how long it is: not of one that others hide, nor of one between two others. */
static bool goes_straight(const struct muster_call *call)
{
	return muster_call_hides(call) || (call->cut && call->coll == MUSTER_COLL_ALLTOALL);
}

/* What it was told, where that exists; what was measured on this machine; else the best. */
int muster_entry_schedule(struct muster_comm *comm, struct muster_entry *entry)
{
	char why[MUSTER_WHY_MAX] = "";
	int err;

	if (entry->call.coll == MUSTER_COLL_NEIGHBOURS)
		return schedule_neighbours(comm, entry);
	if (goes_straight(&entry->call))
		return schedule_direct(comm, entry);
	err = muster_order_schedule(comm, entry);
	if (err)
		return err < 0 ? err : 0;
	err = schedule_told(comm, entry, why, sizeof(why));
	if (has_none(err) && comm->job->tuning) {
		err = tuned(comm, comm->job->tuning, entry);
		err = err == -ENOENT ? -EOPNOTSUPP : err;
	}
	if (has_none(err))
		err = schedule_best(comm, entry, why, sizeof(why));
	if (err)
		return muster_fail(comm->job, err, "no schedule for %s: %s",
				   muster_coll_name(muster_call_coll(&entry->call)), why);
	return 0;
}

/* ---- being told ---------------------------------------------------------------- */

static bool does_at_all(const char *name, enum muster_coll coll)
{
	struct muster_schedule *schedule;
	char reason[NAMES_WHY_MAX];
	bool does = !muster_schedule_by_rank(name, coll, 1, 0, 0, &schedule, reason, sizeof(reason));

	if (does)
		muster_schedule_free(schedule);
	return does;
}

/*
 * Is there a collective that the algorithm does for this many ranks? The reason why
 * there is none is that of one which it does at all.
 */
static int name_check(struct muster_comm *comm, const char *name, char *why, size_t why_len)
{
	int err = -EOPNOTSUPP;

	for (enum muster_coll coll = MUSTER_COLL_BARRIER; coll < MUSTER_COLL_END; coll++) {
		struct muster_schedule *schedule;
		char reason[NAMES_WHY_MAX] = "";
		int other = muster_schedule_by_rank(name, coll, comm->size, 0, 0, &schedule,
						    reason, sizeof(reason));

		if (!other) {
			muster_schedule_free(schedule);
			return 0;
		}
		if (other != -EOPNOTSUPP || does_at_all(name, coll)) {
			err = other;
			snprintf(why, why_len, "%s", reason);
		}
	}
	return err;
}

/* The form alone: what is not for this communicator is not worth its proof. */
static int file_read(const char *path, struct muster_schedule **schedule, char *why,
		     size_t why_len)
{
	FILE *in = fopen(path, "re");
	int err;

	if (!in) {
		err = -errno;
		snprintf(why, why_len, "it cannot be opened: %s", strerror(-err));
		return err;
	}
	err = muster_schedule_read(in, schedule, why, why_len);
	fclose(in);
	return err;
}

static struct muster_told *told_of(struct muster_comm *comm)
{
	if (!comm->told)
		comm->told = calloc(1, sizeof(*comm->told));
	return comm->told;
}

static void told_nothing(struct muster_comm *comm)
{
	if (!comm->told)
		return;
	comm->told->tuning = NULL;
	comm->told->file = NULL;
	*comm->told->name = '\0';
}

/* It stays until the communicator goes. */
static int file_keep(struct muster_comm *comm, struct muster_schedule *schedule)
{
	struct muster_told *told = told_of(comm);
	struct muster_schedule **files =
		told ? realloc(told->files, (told->nr_files + 1) * sizeof(*files)) : NULL;

	if (!files)
		return -ENOMEM;
	told->files = files;
	told->files[told->nr_files++] = schedule;
	return 0;
}

static int tuning_keep(struct muster_comm *comm, struct muster_tuning *tuning)
{
	struct muster_told *told = told_of(comm);
	struct muster_tuning **tunings =
		told ? realloc(told->tunings, (told->nr_tunings + 1) * sizeof(*tunings)) : NULL;

	if (!tunings)
		return -ENOMEM;
	told->tunings = tunings;
	told->tunings[told->nr_tunings++] = tuning;
	return 0;
}

/* in: a file; NULL: path is a list. */
static int choose_tuning(struct muster_comm *comm, const char *path, FILE *in)
{
	char why[MUSTER_WHY_MAX] = "no memory";
	struct muster_tuning *tuning;
	int err = in ? muster_tuning_read(path, in, &tuning, why, sizeof(why)) :
		       muster_tuning_list(path, &tuning, why, sizeof(why));

	if (!err) {
		err = tuning_keep(comm, tuning);
		if (err)
			muster_tuning_free(tuning);
	}
	if (err)
		return muster_fail(comm->job, err, "%s %.80s: %s", in ? "tuning" : "schedules", path,
				   why);
	told_nothing(comm);
	comm->told->tuning = tuning;
	return 0;
}

/* 1: it was a tuning file, and has been chosen; 0: it is none; -errno. */
static int try_tuning(struct muster_comm *comm, const char *path)
{
	char word[sizeof("muster-tuning")] = "";
	FILE *in = fopen(path, "re");
	int err = 0;

	if (!in)
		return 0;
	if (fscanf(in, "%13s", word) == 1 && !strcmp(word, "muster-tuning")) {
		rewind(in);
		err = choose_tuning(comm, path, in);
		err = err ? err : 1;
	}
	fclose(in);
	return err;
}

static int choose_file(struct muster_comm *comm, const char *path, bool strict)
{
	struct muster_schedule *schedule;
	char why[MUSTER_WHY_MAX] = "";
	int err = try_tuning(comm, path);

	if (err)
		return err > 0 ? 0 : err;
	err = file_read(path, &schedule, why, sizeof(why));
	if (err)
		return muster_fail(comm->job, err, "schedule %s: %s", path, why);
	if (schedule->ranks != comm->size) {
		if (strict)
			err = muster_fail(comm->job, -EINVAL, "schedule %s: it is for %u ranks, the communicator has %u",
					  path, schedule->ranks, comm->size);
		goto err_free;
	}
	err = muster_schedule_check(schedule, why, sizeof(why));
	if (err) {
		muster_fail(comm->job, err, "schedule %s: %s", path, why);
		goto err_free;
	}
	err = file_keep(comm, schedule);
	if (err) {
		muster_fail(comm->job, err, "no memory for schedule %s", path);
		goto err_free;
	}
	told_nothing(comm);
	comm->told->file = schedule;
	return 0;

err_free:
	muster_schedule_free(schedule);
	return err;
}

static int choose_name(struct muster_comm *comm, const char *name, bool strict)
{
	char why[NAMES_WHY_MAX] = "";
	int err;

	if (strlen(name) > MUSTER_SCHEDULE_NAME_MAX)
		return muster_fail(comm->job, -EINVAL, "schedule %.40s: names have at most %d characters; a file's path needs a slash",
				   name, MUSTER_SCHEDULE_NAME_MAX);
	err = name_check(comm, name, why, sizeof(why));
	if (err && strict)
		return muster_fail(comm->job, err, "schedule %s: %s", name, why);
	if (err)
		return 0;
	if (!told_of(comm))
		return muster_fail(comm->job, -ENOMEM, "no memory for schedule %s", name);
	told_nothing(comm);
	strcpy(comm->told->name, name);
	return 0;
}

static int choose(struct muster_comm *comm, const char *name, bool strict)
{
	int err;

	if (strchr(name, '/'))
		err = choose_file(comm, name, strict);
	else if (strchr(name, '='))
		err = choose_tuning(comm, name, NULL);
	else
		err = choose_name(comm, name, strict);
	if (!err)
		muster_cache_clear(comm);
	return err;
}

int muster_comm_schedule(struct muster_comm *comm, const char *name)
{
	MUSTER_TURN_OF(comm);
	if (name)
		return choose(comm, name, true);
	told_nothing(comm);
	muster_cache_clear(comm);
	return 0;
}

int muster_comm_inherit(struct muster_comm *comm)
{
	const char *name = comm->job->settings.schedule;

	/* What was meant for the world need not fit a smaller communicator. */
	return *name ? choose(comm, name, comm->size == comm->job->oob.size) : 0;
}

void muster_comm_told_free(struct muster_comm *comm)
{
	struct muster_told *told = comm->told;

	for (uint32_t i = 0; told && i < told->nr_files; i++)
		muster_schedule_free(told->files[i]);
	for (uint32_t i = 0; told && i < told->nr_tunings; i++)
		muster_tuning_free(told->tunings[i]);
	if (told) {
		free(told->files);
		free(told->tunings);
	}
	free(told);
	comm->told = NULL;
}
