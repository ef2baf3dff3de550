// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What was made of a schedule, kept by call, so that an operation that was
 * called before costs a look-up. Programs for MUSTER_CACHE_MAX different calls
 * are kept per communicator; the one that was not used for longest goes first. Of
 * calls that hide lengths from some ranks, whose lengths may be others each time,
 * only the last one is, and one request at a time uses it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"

static bool are_blocks_same(const struct muster_cut *a, const struct muster_cut *b)
{
	return a->nr == b->nr && !memcmp(a->out, b->out, a->nr * sizeof(*a->out)) &&
	       !memcmp(a->in, b->in, a->nr * sizeof(*a->in));
}

bool muster_cuts_same(const struct muster_cut *a, const struct muster_cut *b)
{
	return a && b && a->longest == b->longest && are_blocks_same(a, b);
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

static void made_free(struct muster_entry *entry)
{
	muster_plan_free(entry->plan);
	if (entry->program)
		muster_program_free(entry->program);
	free(entry->bound);
}

void muster_entry_longest(struct muster_entry *entry, uint64_t longest)
{
	struct muster_cut *cut = (struct muster_cut *)(uintptr_t)entry->call.cut;

	if (cut->longest == longest)
		return;
	cut->longest = longest;
	made_free(entry);
	entry->plan = NULL;
	entry->program = NULL;
	entry->bound = NULL;
	entry->no_program = 0;
	entry->path = NULL;
}

static void entry_free(struct muster_entry *entry)
{
	muster_kept_release(entry);
	made_free(entry);
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
	uint64_t count = call->whole ? call->whole : call->count / MUSTER_CALL_LIMBS(call->exact);

	if (muster_call_hides(call))
		count = 0;
	else if (call->coll == MUSTER_COLL_NEIGHBOURS)
		count = call->cut->longest;
	else if (call->cut)
		hash = muster_blocks_hash(call->cut->in, call->cut->nr, hash);
	if (call->exact)	/* its own coll and type are others */
		hash += call->coll << 8 | (call->exact & UINT8_MAX);
	if (call->whole)	/* who has it in one part has called the same, and takes another path */
		hash++;
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
		       !call->cut && !call->whole;
	entry->call.cut = call->cut ? cut_copy(call->cut) : NULL;
	if (call->cut && !entry->call.cut) {
		entry_free(entry);
		return muster_fail(comm->job, -ENOMEM, "no memory for a schedule");
	}
	buffers_know(comm, entry);
	err = muster_entry_schedule(comm, entry);
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
	struct muster_entry **oldest = &comm->warm->cache[0];

	for (int i = 0; i < MUSTER_CACHE_MAX; i++) {
		if (!comm->warm->cache[i])
			return &comm->warm->cache[i];
		if (comm->warm->cache[i]->used < (*oldest)->used)
			oldest = &comm->warm->cache[i];
	}
	return oldest;
}

static struct muster_entry *entry_find(struct muster_comm *comm, const struct muster_call *call)
{
	if (comm->warm->recent && muster_call_same(&comm->warm->recent->call, call))
		return comm->warm->recent;
	for (int i = 0; i < MUSTER_CACHE_MAX && comm->warm->cache[i]; i++)
		if (muster_call_same(&comm->warm->cache[i]->call, call))
			return comm->warm->cache[i];
	return NULL;
}

/* The longest block becomes known later. */
static bool is_same_hidden(const struct muster_call *a, const struct muster_call *b)
{
	return muster_call_alike(a, b) && are_blocks_same(a->cut, b->cut);
}

static int hidden_get(struct muster_comm *comm, const struct muster_call *call,
		      struct muster_entry **result)
{
	struct muster_entry **hidden = &comm->warm->hidden;

	if (!*hidden || (*hidden)->refs || !is_same_hidden(&(*hidden)->call, call)) {
		struct muster_entry *entry;
		int err = entry_make(comm, call, &entry);

		if (err)
			return err;
		entry->keep_tried = true;	/* what it is for may change */
		if (*hidden)
			entry_drop(*hidden);
		*hidden = entry;
		entry->cached = true;
	}
	(*hidden)->refs++;
	*result = *hidden;
	return 0;
}

int muster_entry_get(struct muster_comm *comm, const struct muster_call *call,
		     struct muster_entry **result)
{
	struct muster_entry *entry;
	struct muster_entry **place;
	int err = comm->warm ? 0 : muster_comm_remember(comm);

	if (err)
		return err;
	if (muster_call_hides(call))
		return hidden_get(comm, call, result);
	entry = entry_find(comm, call);
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
	entry->used = ++comm->warm->clock;
	entry->refs++;
	comm->warm->recent = entry;
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

	for (uint32_t stage = MUSTER_STAGES_TELL; stage < program->nr_stages;
	     stage += MUSTER_STAGES_TELL)
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
		.pulse_bytes = comm->job->dev->limits.pulse_bytes,
		.forwards = comm->job->dev->limits.forwards,
		.idles = comm->job->dev->limits.idles,
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
	struct muster_warm *warm = comm->warm;

	muster_again_drop(comm);
	comm->job->era++;
	if (!warm)
		return;
	for (int i = 0; i < MUSTER_CACHE_MAX; i++) {
		if (warm->cache[i])
			entry_drop(warm->cache[i]);
		warm->cache[i] = NULL;
	}
	if (warm->hidden)
		entry_drop(warm->hidden);
	warm->hidden = NULL;
	warm->recent = NULL;
}
