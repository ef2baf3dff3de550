// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How communicators are made of others. Who takes part agrees (agree.c) on a context id
 * that is free with all, and on a life that none of them has had; each opens its
 * part; and they agree that all have. What fails at one fails at all. The
 * parent goes on meanwhile, and who is not asked has nothing to do with it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"
#include "rails.h"
#include "restart.h"
#include "tree.h"
#include "turn.h"

enum { ID_BITS = 64 * MUSTER_AGREE_WORDS };	/* ids that are looked at together */

/* What a new communicator is to be; nr 0: this rank only helps the others to agree. */
struct wish {
	uint32_t nr;
	const uint32_t *ranks;	/* of the job */
};

static uint64_t key_mix(uint64_t key, uint64_t word)
{
	for (int i = 0; i < 8; i++, word >>= 8)
		key = (key ^ (word & 255)) * 0x100000001b3ull;	/* FNV-1a */
	return key;
}

/* Members that call the same thing have the same key, and nobody else has it. */
static uint64_t key_of(const struct muster_comm *parent, bool some, uint64_t tag,
		       uint32_t nr, const uint32_t *ranks)
{
	uint64_t key = key_mix(0xcbf29ce484222325ull, (uint64_t)parent->context << 32 | parent->life);

	key = key_mix(key_mix(key, some), tag);
	for (uint32_t i = 0; i < nr; i++)
		key = key_mix(key, ranks[i]);
	return key;
}

/* ---- agreeing ------------------------------------------------------------------------ */

static int refused(struct muster_group *group, const struct muster_agreement *said, const char *what)
{
	struct muster *job = group->parent->job;
	int err = muster_rank_errno(said->status);

	if (said->culprit == job->oob.rank)
		return err;	/* its own sentence stays */
	return muster_fail(job, err, "rank %u %s: %s; its own message says why", said->culprit,
			   what, strerror(-err));
}

static uint32_t id_free_from(struct muster *job, uint32_t id)
{
	while (muster_comm_find(job, job->id, id))
		id++;
	return id;
}

static void ids_note(struct muster *job, uint32_t base, struct muster_agreement *words)
{
	for (uint32_t i = 0; i < ID_BITS; i++)
		if (!muster_comm_find(job, job->id, base + i))
			words->common[i / 64] |= 1ull << i % 64;
}

static bool id_found(const struct muster_agreement *words, uint32_t base, uint32_t *id)
{
	for (uint32_t i = 0; i < MUSTER_AGREE_WORDS; i++)
		if (words->common[i]) {
			*id = base + 64 * i + (uint32_t)__builtin_ctzll(words->common[i]);
			return true;
		}
	return false;
}

/*
 * On an id that is free with all, and a life that none has had. Where to look first is the
 * same with all: behind what was found for this parent last, or, for some of its members,
 * behind itself. Further on, there is none before the first that is free with who has most.
 * status: of this rank, with its sentence.
 */
static int ids_agree(struct muster_group *group, int status, uint32_t base, uint32_t ahead,
		     uint32_t *id, uint32_t *life)
{
	struct muster_comm *parent = group->parent;
	struct muster *job = parent->job;

	for (;; status = 0) {
		struct muster_agreement words = { .status = status };
		int err;

		job->ids_from = id_free_from(job, job->ids_from);
		words.most[0] = job->lives;
		words.most[1] = job->ids_from;
		ids_note(job, base, &words);
		err = muster_agree(group, &words);
		if (err)
			return err;
		if (words.status)
			return refused(group, &words, "refused to make a communicator");
		*life = (uint32_t)words.most[0] + ahead;
		if (*life > job->lives)
			job->lives = *life;
		if (id_found(&words, base, id))
			break;
		base += ID_BITS;
		if (words.most[1] > base)
			base = (uint32_t)words.most[1];
	}
	if (!group->members)
		parent->ids_from = *id + 1;
	return 0;
}

static int confirm(struct muster_group *group, int status)
{
	struct muster_agreement words = { .status = status };
	int err = muster_agree(group, &words);

	if (!err && words.status == -EEXIST)
		err = -EEXIST;
	else if (!err && words.status)
		err = refused(group, &words, "could not open the communicator");
	return err;
}

/* -EEXIST: another thread has made one with that id, or as young a life, meanwhile. */
static int build(struct muster_comm *parent, uint32_t id, uint32_t life, const struct wish *wish,
		 struct muster_comm **comm)
{
	int err;

	if (!wish->nr)
		return 0;
	if (life <= parent->job->lived || muster_comm_find(parent->job, parent->job->id, id))
		return -EEXIST;
	parent->job->lived = life;
	err = muster_comm_build(parent->job, id, life, wish->nr, wish->ranks, comm);
	if (!err)
		err = muster_comm_inherit(*comm);
	if (!err) {
		(*comm)->offload = parent->offload;
		(*comm)->tree = parent->tree;
	}
	return err;
}

static void unmake(struct muster_comm **comm)
{
	if (*comm)
		muster_comm_close(*comm);
	*comm = NULL;
}

/*
 * The group agrees; those that have a wish get a communicator. Groups of several threads that
 * got in each other's way try again from places that differ.
 */
static int make(struct muster_group *group, int status, const struct wish *wish,
		struct muster_comm **comm)
{
	struct muster_comm *parent = group->parent;
	uint32_t base = group->members ? parent->context + 1 : parent->ids_from;
	uint32_t id = 0, life = 0, ahead = 1;
	int err;

	if (parent->job->manager)
		muster_manager_renew(parent->job);
	do {
		err = ids_agree(group, status, base, ahead, &id, &life);
		if (err)
			return err;
		err = confirm(group, build(parent, id, life, wish, comm));
		if (err)
			unmake(comm);
		base = id + 1 + (uint32_t)(group->key % ID_BITS);
		ahead = 1 + (uint32_t)(group->key % ID_BITS);
	} while (err == -EEXIST);
	if (!err && parent->job->manager)	/* at all, or at none */
		err = confirm(group, *comm ? muster_comm_tree_join(*comm) : 0);
	if (!err && parent->job->next_rail)
		err = confirm(group, *comm ? muster_comm_rails_join(*comm) : 0);
	if (err)
		unmake(comm);
	else if (*comm)
		muster_comm_tree_joined(*comm);
	return err;
}

/* No other communicator has its context and life. */
int muster_comm_make_on(struct muster *rail, const struct muster_comm *comm, struct muster_comm **made)
{
	const struct wish wish = { comm->size, comm->ranks };
	struct muster_group group = {
		.parent = rail->world,
		.nr = comm->size,
		.self = comm->rank,
		.members = comm->ranks,
		.key = key_of(rail->world, true, (uint64_t)comm->context << 32 | comm->life, comm->size,
			      comm->ranks),
	};
	int err = muster_group_error(&group);

	return err ? err : make(&group, 0, &wish, made);
}

/* ---- of all members -------------------------------------------------------------------- */

/* All members of the parent, in its order; calls are told apart by their order. */
struct muster_group muster_group_of_all(struct muster_comm *parent)
{
	return (struct muster_group){
		.parent = parent,
		.nr = parent->size,
		.self = parent->rank,
		.key = key_of(parent, false, (uint64_t)parent->created++ << 32, 0, NULL),
	};
}

static int parent_check(struct muster_comm *parent)
{
	if (!parent)
		return -EINVAL;
	if (parent->failed)
		return muster_fail(parent->job, parent->failed, "%s", muster_comm_why(parent));
	return 0;
}

int muster_comm_error(struct muster_comm *comm)
{
	MUSTER_TURN_OF(comm);
	return parent_check(comm ? muster_restart_now(comm) : NULL);
}

bool muster_comm_has_lost(struct muster_comm *comm, uint32_t rank)
{
	MUSTER_TURN_OF(comm);
	struct muster_dev *dev;

	if (!comm || rank >= comm->size)
		return false;
	dev = comm->job->dev;
	return (comm->failed == -ECONNRESET && comm->culprit == rank) ||
	       (dev->ops->lost && dev->ops->lost(dev, muster_comm_address(comm, rank)));
}

static int no_place(struct muster_comm *parent, const char *name)
{
	return muster_fail(parent->job, -EINVAL, "%s: comm is NULL", name);
}

int muster_comm_dup(struct muster_comm *parent, struct muster_comm **comm)
{
	MUSTER_TURN_OF(parent);
	struct muster_comm *made = NULL;
	struct muster_group group;
	struct wish wish;
	int err = parent_check(parent);

	if (err)
		return err;
	group = muster_group_of_all(parent);
	wish = (struct wish){ .nr = parent->size, .ranks = parent->ranks };
	err = make(&group, comm ? 0 : no_place(parent, "muster_comm_dup"), &wish, &made);
	if (comm)
		*comm = made;
	return err;
}

struct chosen {
	int32_t colour;
	int32_t key;
};

_Static_assert(sizeof(struct chosen) == sizeof(uint64_t), "an element of what is gathered");

/* Of those with the same colour: who, in place of the colour. */
static int chosen_compare(const void *a, const void *b)
{
	const struct chosen *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->colour < y->colour ? -1 : x->colour > y->colour;
}

/* Those of the same colour by key, then by rank in the parent; as ranks of the job. */
static void wish_make(const struct muster_comm *parent, struct chosen *chosen, uint32_t *ranks,
		      struct wish *wish)
{
	int32_t colour = chosen[parent->rank].colour;

	*wish = (struct wish){ .ranks = ranks };
	for (uint32_t i = 0; i < parent->size && colour >= 0; i++)
		if (chosen[i].colour == colour)
			chosen[wish->nr++] = (struct chosen){ (int32_t)i, chosen[i].key };
	qsort(chosen, wish->nr, sizeof(*chosen), chosen_compare);
	for (uint32_t i = 0; i < wish->nr; i++)
		ranks[i] = parent->ranks[chosen[i].colour];
}

/* What each has chosen: an operation of the parent, in its turn, but none of its caller's. */
static int chosen_gather(struct muster_comm *parent, struct chosen *chosen)
{
	const struct muster_call call = {
		.coll = MUSTER_COLL_ALLREDUCE, .type = MUSTER_U64, .op = MUSTER_BOR,
		.count = parent->size, .bytes = parent->size * sizeof(*chosen),
		.in_place = true, .own = true,
	};
	struct muster_request *request;
	int err = muster_request_start(parent, &call, chosen, chosen, &request);

	return err ? err : muster_wait(request);
}

int muster_comm_split(struct muster_comm *parent, int32_t colour, int32_t key,
		      struct muster_comm **comm)
{
	MUSTER_TURN_OF(parent);
	struct muster_comm *made = NULL;
	struct muster_group group;
	struct chosen *chosen;
	struct wish wish;
	uint32_t *ranks;
	int err = parent_check(parent), status = 0;

	if (err)
		return err;
	chosen = calloc(parent->size, sizeof(*chosen));
	ranks = calloc(parent->size, sizeof(*ranks));
	if (!chosen || !ranks) {
		err = muster_comm_give_up(parent, muster_fail(parent->job, -ENOMEM, "no memory to split %u ranks",
							      parent->size));
		goto out;
	}
	if (!comm)
		status = no_place(parent, "muster_comm_split");
	chosen[parent->rank] = (struct chosen){ colour, key };
	err = chosen_gather(parent, chosen);
	if (err)
		goto out;
	wish_make(parent, chosen, ranks, &wish);
	group = muster_group_of_all(parent);
	err = make(&group, status, &wish, &made);
	if (comm)
		*comm = made;
out:
	free(chosen);
	free(ranks);
	return err;
}

/* ---- of some ----------------------------------------------------------------------------- */

/* Where this rank is among them; nr: nowhere. */
static uint32_t self_among(const struct muster_comm *parent, uint32_t nr, const uint32_t *ranks)
{
	uint32_t self = 0;

	while (self < nr && ranks[self] != parent->rank)
		self++;
	return self;
}

static int ranks_check(struct muster_comm *parent, uint32_t nr, const uint32_t *ranks)
{
	struct muster *job = parent->job;

	if (!ranks || !nr || nr > parent->size)
		return muster_fail(job, -EINVAL, "muster_comm_create_group: %u ranks at %p; allowed are 1 to %u",
				   nr, (const void *)ranks, parent->size);
	for (uint32_t i = 0; i < nr; i++)
		if (ranks[i] >= parent->size)
			return muster_fail(job, -EINVAL, "muster_comm_create_group: ranks[%u] is %u, but the communicator has %u ranks",
					   i, ranks[i], parent->size);
	if (self_among(parent, nr, ranks) == nr)
		return muster_fail(job, -EINVAL, "muster_comm_create_group: this rank, %u, is not among the ranks; only those call it",
				   parent->rank);
	return 0;
}

/* Ranks of the job, each once. all: room for every rank of the parent. */
static int ranks_translate(struct muster_comm *parent, uint32_t nr, const uint32_t *ranks,
			   uint32_t *all)
{
	memset(all, 0, parent->size * sizeof(*all));
	for (uint32_t i = 0; i < nr; i++)
		if (all[ranks[i]]++)
			return muster_fail(parent->job, -EINVAL, "muster_comm_create_group: rank %u is named twice",
					   ranks[i]);
	for (uint32_t i = 0; i < nr; i++)
		all[i] = parent->ranks[ranks[i]];
	return 0;
}

int muster_comm_create_group(struct muster_comm *parent, uint32_t nr, const uint32_t *ranks,
			     uint32_t tag, struct muster_comm **comm)
{
	MUSTER_TURN_OF(parent);
	struct muster_comm *made = NULL;
	struct muster_group group;
	uint32_t *translated;
	struct wish wish;
	int err, status;

	if (!parent)
		return -EINVAL;
	err = comm ? ranks_check(parent, nr, ranks) : no_place(parent, "muster_comm_create_group");
	if (err)
		return err;
	group = (struct muster_group){
		.parent = parent,
		.nr = nr,
		.self = self_among(parent, nr, ranks),
		.members = ranks,
		.key = key_of(parent, true, tag, nr, ranks),
	};
	err = muster_group_error(&group);
	if (err)
		return err;
	translated = calloc(parent->size, sizeof(*translated));
	status = translated ? ranks_translate(parent, nr, ranks, translated) :
			      muster_fail(parent->job, -ENOMEM, "no memory for %u ranks", nr);
	wish = (struct wish){ nr, translated };
	err = make(&group, status, &wish, &made);
	free(translated);
	*comm = made;
	return err;
}
