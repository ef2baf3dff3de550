// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What was made of a schedule, kept by call, so that an operation that was
 * called before costs a look-up. Programs for MUSTER_CACHE_MAX different calls
 * are kept per communicator; the one that was not used for longest goes first.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "graph.h"
#include "tuning.h"
#include "turn.h"

enum { NAMES_WHY_MAX = 400 };	/* a sentence that has all names in it */

/* ---- schedules -------------------------------------------------------------- */

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

/* What was tuned for the size, the user's file where it fits, the algorithm that was named where it exists, what was measured on this machine, else the best. */
static int schedule_make(struct muster_comm *comm, struct muster_entry *entry)
{
	const struct muster_call *call = &entry->call;
	char why[MUSTER_WHY_MAX] = "";
	int err = -EOPNOTSUPP;

	if (call->coll == MUSTER_COLL_NEIGHBOURS)
		return schedule_neighbours(comm, entry);
	if (muster_call_hides(call))
		return schedule_direct(comm, entry);
	if (comm->tuning)
		err = tuned(comm, comm->tuning, entry);
	if (!err)
		return 0;
	if (err == -ENOENT)
		err = -EOPNOTSUPP;
	if (file_fits(comm->schedule_file, comm, call)) {
		entry->schedule = comm->schedule_file;
		return 0;
	}
	if (*comm->schedule_name)
		err = muster_schedule_by_rank(comm->schedule_name, call->coll, comm->size,
					      call->root, choice_bytes(call), &entry->schedule, why,
					      sizeof(why));
	if ((err == -EOPNOTSUPP || err == -EINVAL) && comm->job->tuning) {
		err = tuned(comm, comm->job->tuning, entry);
		if (!err)
			return 0;
		err = err == -ENOENT ? -EOPNOTSUPP : err;
	}
	if (err == -EOPNOTSUPP || err == -EINVAL)
		err = muster_schedule_by_rank(NULL, call->coll, comm->size, call->root,
					      choice_bytes(call), &entry->schedule, why, sizeof(why));
	if (err)
		return muster_fail(comm->job, err, "no schedule for %s: %s",
				   muster_coll_name(muster_call_coll(call)), why);
	entry->schedule_owned = true;
	return 0;
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
		if (other != -EOPNOTSUPP) {
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

/* Operations that run may still use an older file: it stays until the communicator goes. */
static int file_keep(struct muster_comm *comm, struct muster_schedule *schedule)
{
	struct muster_schedule **files =
		realloc(comm->files, (comm->nr_files + 1) * sizeof(*files));

	if (!files)
		return -ENOMEM;
	comm->files = files;
	comm->files[comm->nr_files++] = schedule;
	return 0;
}

/* As with files, it stays until the communicator goes. */
static int tuning_keep(struct muster_comm *comm, struct muster_tuning *tuning)
{
	struct muster_tuning **tunings =
		realloc(comm->tunings, (comm->nr_tunings + 1) * sizeof(*tunings));

	if (!tunings)
		return -ENOMEM;
	comm->tunings = tunings;
	comm->tunings[comm->nr_tunings++] = tuning;
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
	comm->tuning = tuning;
	comm->schedule_file = NULL;
	*comm->schedule_name = '\0';
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
	comm->tuning = NULL;
	comm->schedule_file = schedule;
	*comm->schedule_name = '\0';
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
	strcpy(comm->schedule_name, name);
	comm->schedule_file = NULL;
	comm->tuning = NULL;
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
	*comm->schedule_name = '\0';
	comm->schedule_file = NULL;
	comm->tuning = NULL;
	muster_cache_clear(comm);
	return 0;
}

int muster_comm_inherit(struct muster_comm *comm)
{
	const char *name = comm->job->settings.schedule;

	/* What was meant for the world need not fit a smaller communicator. */
	return *name ? choose(comm, name, comm->size == comm->job->oob.size) : 0;
}

/* ---- entries -------------------------------------------------------------------- */

bool muster_cuts_same(const struct muster_cut *a, const struct muster_cut *b)
{
	return a && b && a->nr == b->nr && a->longest == b->longest &&
	       !memcmp(a->out, b->out, a->nr * sizeof(*a->out));
}

/* The caller's goes with the call. */
static struct muster_cut *cut_copy(const struct muster_cut *cut)
{
	size_t bytes = cut->nr * sizeof(*cut->out);
	struct muster_cut *copy = malloc(sizeof(*copy) + 2 * bytes);
	struct muster_block *blocks = (struct muster_block *)(copy + 1);

	if (!copy)
		return NULL;
	*copy = *cut;
	copy->out = memcpy(blocks, cut->out, bytes);
	copy->in = memcpy(blocks + cut->nr, cut->in, bytes);
	return copy;
}

static void entry_free(struct muster_entry *entry)
{
	muster_plan_free(entry->plan);
	muster_kept_release(entry);
	if (entry->program)
		muster_program_free(entry->program);
	free(entry->bound);
	free((void *)(uintptr_t)entry->call.cut);
	if (entry->schedule_owned)
		muster_schedule_free(entry->schedule);
	free(entry);
}

void muster_entry_put(struct muster_entry *entry)
{
	if (!--entry->refs && !entry->cached)
		entry_free(entry);
}

/* Out of the cache; it lives on while requests use it. */
static void entry_drop(struct muster_entry *entry)
{
	entry->cached = false;
	entry->refs++;
	muster_entry_put(entry);
}

/* What follows for the caller's buffers. */
static void buffers_know(struct muster_comm *comm, struct muster_entry *entry)
{
	const struct muster_call *call = &entry->call;
	const struct muster_coll_row *row = muster_coll_row(call->coll);
	bool wants = muster_coll_wants(call->coll, comm->rank, call->root);
	bool has_all = row->has == MUSTER_WHO_ROOT && comm->rank == call->root;

	entry->has = muster_call_has(comm, call);
	entry->needs = muster_call_needs(comm, call);
	entry->passes = call->parts && (!wants || row->needs == MUSTER_WHO_OWNER);
	/* Without parts any rank may be on the way, so that it lies in its buffer for a while. */
	entry->gets_result = row->has_data && (call->parts ? wants : !has_all);
}

static void sign(struct muster_entry *entry)
{
	const struct muster_call *call = &entry->call;
	uint64_t hash = muster_schedule_hash(entry->schedule);
	uint64_t count = call->count / MUSTER_CALL_LIMBS(call->exact);

	if (muster_call_hides(call))
		count = 0;
	else if (call->coll == MUSTER_COLL_NEIGHBOURS)
		count = call->cut->longest;
	else if (call->cut)
		hash = muster_blocks_hash(call->cut->out, call->cut->nr, hash);
	if (call->exact)	/* its own coll and type are others */
		hash += call->coll << 8 | (call->exact & UINT8_MAX);
	entry->signature = muster_signature(muster_call_coll(call), (uint8_t)call->type,
					    (uint8_t)call->op, call->root, count, hash);
}

static int entry_make(struct muster_comm *comm, const struct muster_call *call,
		      struct muster_entry **result)
{
	struct muster_entry *entry = calloc(1, sizeof(*entry));
	int err;

	if (!entry)
		return muster_fail(comm->job, -ENOMEM, "no memory for a schedule");
	entry->call = *call;
	entry->plain = !call->root && !call->as && !call->own && !call->exact && !call->off_tree &&
		       !call->cut;
	entry->call.cut = call->cut ? cut_copy(call->cut) : NULL;
	if (call->cut && !entry->call.cut) {
		entry_free(entry);
		return muster_fail(comm->job, -ENOMEM, "no memory for a schedule");
	}
	buffers_know(comm, entry);
	err = schedule_make(comm, entry);
	if (err) {
		entry_free(entry);
		return err;
	}
	sign(entry);
	*result = entry;
	return 0;
}

/* An empty place, or that of the entry which was not used for longest. */
static struct muster_entry **place_find(struct muster_comm *comm)
{
	struct muster_entry **oldest = &comm->cache[0];

	for (int i = 0; i < MUSTER_CACHE_MAX; i++) {
		if (!comm->cache[i])
			return &comm->cache[i];
		if (comm->cache[i]->used < (*oldest)->used)
			oldest = &comm->cache[i];
	}
	return oldest;
}

static struct muster_entry *entry_find(struct muster_comm *comm, const struct muster_call *call)
{
	if (comm->recent && muster_call_same(&comm->recent->call, call))
		return comm->recent;
	for (int i = 0; i < MUSTER_CACHE_MAX && comm->cache[i]; i++)
		if (muster_call_same(&comm->cache[i]->call, call))
			return comm->cache[i];
	return NULL;
}

int muster_entry_get(struct muster_comm *comm, const struct muster_call *call,
		     struct muster_entry **result)
{
	struct muster_entry *entry;
	struct muster_entry **place;
	int err = comm->history ? 0 : muster_comm_remember(comm);

	if (err)
		return err;
	entry = muster_call_hides(call) ? NULL : entry_find(comm, call);
	if (!entry && muster_call_hides(call)) {
		err = entry_make(comm, call, &entry);
		if (err)
			return err;
		entry->refs++;		/* this one's alone */
		*result = entry;
		return 0;
	}
	if (!entry) {
		err = entry_make(comm, call, &entry);
		if (err)
			return err;
		place = place_find(comm);
		comm->job->era++;
		muster_again_drop(comm);
		if (*place)
			entry_drop(*place);
		*place = entry;
		entry->cached = true;
	}
	entry->used = ++comm->clock;
	entry->refs++;
	comm->recent = entry;
	*result = entry;
	return 0;
}

int muster_entry_plan(struct muster_comm *comm, struct muster_entry *entry)
{
	int err;

	if (entry->plan)
		return 0;
	err = muster_plan_create(entry->schedule, comm->rank, &entry->plan);
	if (err)
		return muster_fail(comm->job, err, "no memory for the host path of %s",
				   muster_coll_name(muster_call_coll(&entry->call)));
	return 0;
}

/* Of a long program some stages tell their end, too: one at least of all that can be queued. */
static void tell_stages(struct muster_entry *entry)
{
	const struct muster_program *program = entry->program;
	uint32_t each = MUSTER_SEQ_QUEUE_MAX / 2;

	for (uint32_t stage = each; stage < program->nr_stages; stage += each)
		entry->bound[program->stage_first[stage] - 1].flags |= MUSTER_DESC_COLL_END;
}

int muster_entry_bind(struct muster_comm *comm, struct muster_entry *entry)
{
	struct muster_program *program = entry->program;
	size_t bytes = program->nr_descs * sizeof(*entry->bound);

	for (uint32_t i = 0; i < program->nr_descs; i++)
		program->descs[i].signature = entry->signature;
	entry->bound = malloc(bytes);
	if (!entry->bound) {
		muster_program_free(program);
		entry->program = NULL;
		return muster_fail(comm->job, -ENOMEM, "no memory for descriptors of %s",
				   muster_coll_name(muster_call_coll(&entry->call)));
	}
	memcpy(entry->bound, program->descs, bytes);
	for (uint32_t i = 0; i < program->nr_descs; i++)	/* data[] is the caller's alone */
		if (entry->bound[i].inline_len)
			memset(entry->bound[i].data, 0, sizeof(entry->bound[i].data));
	tell_stages(entry);
	return 0;
}

static int lower(struct muster_comm *comm, struct muster_entry *entry)
{
	const struct muster_lower_params params = {
		.rank = comm->rank,
		.count = entry->call.count,
		.cut = entry->call.cut,
		.type = (uint8_t)entry->call.type,
		.op = (uint8_t)entry->call.op,
		.job = comm->job->id,
		.context = comm->context,
		.addresses = comm->job->addresses,
		.ranks = comm->ranks,
		.in_place = entry->call.in_place,
		.parts = entry->call.parts,
		.forwards = comm->job->dev->limits.forwards,
	};
	int err = muster_schedule_lower(entry->schedule, &params, &entry->program, entry->why,
					sizeof(entry->why));

	if (err) {
		entry->program = NULL;
		return err;
	}
	return muster_entry_bind(comm, entry);
}

int muster_entry_lower(struct muster_comm *comm, struct muster_entry *entry)
{
	char detail[MUSTER_WHY_MAX];
	int err;

	if (entry->program || entry->no_program)
		return 0;
	err = lower(comm, entry);
	if (!err)
		return 0;
	if (err != -E2BIG)
		return muster_fail(comm->job, err, "no descriptors for %s: %s",
				   muster_coll_name(muster_call_coll(&entry->call)), strerror(-err));
	entry->no_program = err;
	memcpy(detail, entry->why, sizeof(detail));
	snprintf(entry->why, sizeof(entry->why), "host: %.*s", (int)sizeof(entry->why) - 7, detail);
	return 0;
}

void muster_cache_clear(struct muster_comm *comm)
{
	muster_again_drop(comm);
	for (int i = 0; comm->cache && i < MUSTER_CACHE_MAX; i++) {
		if (comm->cache[i])
			entry_drop(comm->cache[i]);
		comm->cache[i] = NULL;
	}
	comm->recent = NULL;
	comm->job->era++;
}

void muster_cache_close(struct muster_comm *comm)
{
	muster_cache_clear(comm);
	for (uint32_t i = 0; i < comm->nr_files; i++)
		muster_schedule_free(comm->files[i]);
	free(comm->files);
	for (uint32_t i = 0; i < comm->nr_tunings; i++)
		muster_tuning_free(comm->tunings[i]);
	free(comm->tunings);
}
