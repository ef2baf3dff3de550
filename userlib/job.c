// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Joining and leaving a job. Every step that all ranks take together ends with
 * an exchange (exchange.c) that carries each rank's own success.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/sysinfo.h>

#include "bootstrap.h"
#include "bump_path.h"
#include "look.h"
#include "pair.h"
#include "rails.h"
#include "stats.h"
#include "ticks.h"
#include "tree.h"
#include "tuning.h"
#include "turn.h"

#define HELLO_MAGIC 0x5453554du	/* "MUST" */

_Static_assert(sizeof(struct muster_settings) <= MUSTER_EXCHANGE_JOIN, "size");

/* What ranks of any version say first; its layout stays. */
struct hello {
	uint32_t magic;
	uint32_t abi;
	uint32_t rank;
	uint32_t size;
	int32_t status;
	uint32_t reserved;
	uint64_t settings;	/* digest of what all must have alike */
};

_Static_assert(sizeof(struct hello) == 32, "some bytes a rank");

/* What each has to offer once its device is open. */
struct offer {
	int32_t status;
	uint32_t ring_slots;
	struct muster_address address;
	uint64_t key;		/* rank 0's counts */
	uint64_t tuned;		/* digest of the tuning that it finds */
};

_Static_assert(sizeof(struct offer) <= MUSTER_EXCHANGE_JOIN, "size");

/* ---- versions and settings -------------------------------------------------- */

static int hello_check(struct muster *job, const struct hello *hello, uint32_t rank)
{
	if (hello->magic != HELLO_MAGIC)
		return muster_fail(job, -EINVAL, "rank %u is not a libmuster process, or its library is too old",
				   rank);
	if (hello->abi != MUSTER_ABI)
		return muster_fail(job, -EINVAL, "rank %u has libmuster ABI %u, this rank %u: install the same library on every rank",
				   rank, hello->abi, MUSTER_ABI);
	if (hello->rank != rank || hello->size != job->oob.size)
		return muster_fail(job, -EINVAL, "in place %u there is rank %u of %u, expected is rank %u of %u: set MUSTER_RANK and MUSTER_SIZE consistently",
				   rank, hello->rank, hello->size, rank, job->oob.size);
	if (hello->status)
		return muster_fail(job, muster_rank_errno(hello->status), "rank %u refused to start: %s; its own message says what is wrong",
				   rank, strerror(-muster_rank_errno(hello->status)));
	return 0;
}

static uint64_t digest_add(uint64_t digest, const void *data, size_t bytes)
{
	const uint8_t *at = data;

	for (size_t i = 0; i < bytes; i++)
		digest = (digest ^ at[i]) * 0x100000001b3ull;	/* FNV-1a */
	return digest;
}

/* Of what all ranks must have alike: set so, or taken from rank 0. */
static uint64_t settings_digest(const struct muster_settings *settings)
{
	uint64_t digest = 0xcbf29ce484222325ull;

	digest = digest_add(digest, settings->device, strnlen(settings->device,
							      sizeof(settings->device)) + 1);
	digest = digest_add(digest, settings->wire, strnlen(settings->wire,
							    sizeof(settings->wire)) + 1);
	digest = digest_add(digest, settings->fabric, strnlen(settings->fabric,
							      sizeof(settings->fabric)) + 1);
	digest = digest_add(digest, settings->manager, strnlen(settings->manager,
							       sizeof(settings->manager)) + 1);
	digest = digest_add(digest, settings->bump, strnlen(settings->bump,
							    sizeof(settings->bump)) + 1);
	digest = digest_add(digest, settings->schedule, strnlen(settings->schedule,
								sizeof(settings->schedule)) + 1);
	digest = digest_add(digest, settings->tuning, strnlen(settings->tuning,
							      sizeof(settings->tuning)) + 1);
	digest = digest_add(digest, &settings->first_host, sizeof(settings->first_host));
	digest = digest_add(digest, &settings->rails, sizeof(settings->rails));
	digest = digest_add(digest, &settings->rail_bytes, sizeof(settings->rail_bytes));
	digest = digest_add(digest, &settings->tree, sizeof(settings->tree));
	digest = digest_add(digest, &settings->tree_bytes, sizeof(settings->tree_bytes));
	digest = digest_add(digest, &settings->order, sizeof(settings->order));
	digest = digest_add(digest, &settings->restart, sizeof(settings->restart));
	digest = digest_add(digest, &settings->stats, sizeof(settings->stats));
	return digest_add(digest, &settings->offload, sizeof(settings->offload));
}

/* alike: whether all have the same settings. */
static int hello_exchange(struct muster *job, int status, bool *alike)
{
	struct hello mine = {
		.magic = HELLO_MAGIC,
		.abi = MUSTER_ABI,
		.rank = job->oob.rank,
		.size = job->oob.size,
		.status = status,
		.settings = status ? 0 : settings_digest(&job->settings),
	};
	const void *said;
	const struct hello *all;
	int err = muster_exchange(job, status, &mine, sizeof(mine), &said);

	all = said;
	*alike = true;
	for (uint32_t r = 0; r < job->oob.size && !err; r++) {
		err = hello_check(job, &all[r], r);
		*alike &= all[r].settings == all[0].settings;
	}
	return err;
}

static int differ(struct muster *job, const char *name, const char *first, uint32_t rank,
		  const char *other)
{
	return muster_fail(job, -EINVAL, "%s differs: rank 0 has %s, rank %u has %s; set it to the same on every rank",
			   name, *first ? first : "none", rank, *other ? other : "none");
}

/* Local ranks say how they are reached; of a NIC its machine knows that. */
static int wire_compare(struct muster *job, const struct muster_settings *first, uint32_t r,
			const struct muster_settings *other)
{
	if (strncmp(other->device, first->device, sizeof(first->device))) {
		job->settings.mixed = true;
		return first->uplink && other->uplink ? 0 :
			differ(job, "MUSTER_DEVICE", first->device, r, other->device);
	}
	if (strncmp(other->wire, first->wire, sizeof(first->wire)))
		return differ(job, "MUSTER_WIRE", first->wire, r, other->wire);
	return strncmp(other->fabric, first->fabric, sizeof(first->fabric)) ?
		differ(job, "MUSTER_FABRIC", first->fabric, r, other->fabric) : 0;
}

/* Where a rank is, and by what it is reached: these nobody can know for another one. */
static int settings_compare(struct muster *job, const struct muster_settings *all)
{
	for (uint32_t r = 1; r < job->oob.size; r++) {
		int err = wire_compare(job, &all[0], r, &all[r]);

		if (err)
			return err;
		if (strncmp(all[r].manager, all[0].manager, sizeof(all[0].manager)))
			return differ(job, "MUSTER_MANAGER", all[0].manager, r, all[r].manager);
		if (strncmp(all[r].bump, all[0].bump, sizeof(all[0].bump)))
			return differ(job, "MUSTER_BUMP", all[0].bump, r, all[r].bump);
		if (all[r].first_host != all[0].first_host)
			return muster_fail(job, -EINVAL, "MUSTER_FIRST_HOST differs at rank %u; set it to the same on every rank",
					   r);
		if (all[r].rails != all[0].rails)
			return muster_fail(job, -EINVAL, "MUSTER_RAILS differs at rank %u; set it to the same on every rank",
					   r);
	}
	return 0;
}

/* What runs, and how, is rank 0's choice: a launcher need not hand its environment on. */
static void settings_take(struct muster_settings *settings, const struct muster_settings *first)
{
	memcpy(settings->schedule, first->schedule, sizeof(settings->schedule));
	settings->schedule[sizeof(settings->schedule) - 1] = '\0';
	memcpy(settings->tuning, first->tuning, sizeof(settings->tuning));
	settings->tuning[sizeof(settings->tuning) - 1] = '\0';
	settings->offload = first->offload <= MUSTER_OFFLOAD_FORCE ? first->offload : MUSTER_OFFLOAD_TRY;
	settings->tree = first->tree <= MUSTER_OFFLOAD_FORCE ? first->tree : MUSTER_OFFLOAD_TRY;
	settings->tree_bytes = first->tree_bytes;
	settings->rail_bytes = first->rail_bytes;
	settings->order = first->order <= MUSTER_OFFLOAD_FORCE ? first->order : MUSTER_OFFLOAD_OFF;
	settings->restart = first->restart <= MUSTER_RESTART_AGREED ? first->restart : MUSTER_RESTART_OFF;
	settings->stats = first->stats;
}

/* They are not alike: take rank 0's, or say what is in the way. */
static int settings_exchange(struct muster *job)
{
	const void *all;
	int err = muster_exchange(job, 0, &job->settings, sizeof(job->settings), &all);

	if (!err)
		err = settings_compare(job, all);
	if (!err)
		settings_take(&job->settings, all);
	return err;
}

/* ---- device and key ------------------------------------------------------ */

/* JobIDs of two jobs may be equal: VPs and keys tell their packets apart. */
static int offers_take(struct muster *job, const struct offer *all, bool *tuned_alike)
{
	*tuned_alike = true;
	job->ring_free = UINT32_MAX;
	for (uint32_t r = 0; r < job->oob.size; r++) {
		if (all[r].status)
			return muster_fail(job, muster_rank_errno(all[r].status), "rank %u could not open its device, or its tuning file: %s; its own message says why",
					   r, strerror(-muster_rank_errno(all[r].status)));
		job->addresses[r] = all[r].address;
		*tuned_alike &= all[r].tuned == all[0].tuned;
		if (all[r].ring_slots < job->ring_free)
			job->ring_free = all[r].ring_slots;
	}
	job->key = all[0].key;
	job->id = (uint8_t)job->key;
	return 0;
}

static int offers_exchange(struct muster *job, int status, uint64_t tuned)
{
	struct offer mine;
	const void *all;
	bool tuned_alike;
	int err;

	memset(&mine, 0, sizeof(mine));
	mine.status = status;
	mine.tuned = tuned;
	if (!status) {
		mine.address = job->dev->address;
		mine.ring_slots = job->dev->limits.ring_slots;
	}
	if (!status && job->dev->ops->random)
		mine.key = job->dev->ops->random(job->dev);
	else if (getrandom(&mine.key, sizeof(mine.key), 0) != sizeof(mine.key))
		mine.status = -EIO;
	err = muster_exchange(job, status, &mine, sizeof(mine), &all);
	if (!err)
		err = offers_take(job, all, &tuned_alike);
	return err || tuned_alike ? err : muster_tuned_take(job);
}

/* ---- init and finalize -------------------------------------------------------------- */

/*
 * Ranks that outnumber the processors must not spin: each takes another's time. The
 * device's wait() gives it away.
 * A rank that is bound to one processor says nothing about how many there are.
 */
static uint32_t spin_polls(uint32_t size)
{
	cpu_set_t set;
	int cpus;

	cpus = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
	if (cpus == 1)
		cpus = get_nprocs();
	return size > (uint32_t)cpus ? 0 : MUSTER_SPIN_POLLS;
}

/* What each says when its world is open. */
struct opened {
	int32_t status;
	int32_t bump;		/* 0: its bump answers, or none is named */
	int32_t tree;		/* 0: its manager of groups does, or none is named */
};

/* One rank without its bump, and nobody uses it. */
static void bump_agree(struct muster *job, const struct opened *all)
{
	uint32_t r = 0;

	while (r < job->oob.size && !all[r].bump)
		r++;
	if (r == job->oob.size)
		return;
	muster_bump_close(job);
	if (r != job->oob.rank)
		snprintf(job->no_bump, sizeof(job->no_bump), "that of rank %u, at %s: %s", r,
			 job->settings.bump, strerror(-muster_rank_errno(all[r].bump)));
}

/* The same of the manager of groups: who has no connection could be in none. */
static void tree_agree(struct muster *job, const struct opened *all)
{
	char why[MUSTER_WHY_MAX];
	uint32_t r = 0;

	while (r < job->oob.size && !all[r].tree)
		r++;
	if (r == job->oob.size)
		return;
	snprintf(why, sizeof(why), "rank %u has no manager of groups: %s", r,
		 strerror(-muster_rank_errno(all[r].tree)));
	muster_trees_close(job, r == job->oob.rank ? NULL : why);
}

static struct opened open_own(struct muster *job)
{
	struct opened mine = { .status = muster_tuned_parse(job) };

	if (!mine.status)
		mine.status = muster_pairs_open(job);
	if (!mine.status)
		mine.status = muster_comm_open_world(job);
	if (!mine.status)
		mine.bump = muster_bump_open(job);
	if (mine.bump && job->settings.offload == MUSTER_OFFLOAD_FORCE)
		mine.status = muster_fail(job, mine.bump, "offload is forced, but %s", job->no_bump);
	if (!mine.status)
		mine.tree = muster_trees_open(job);
	if (mine.tree && job->settings.tree == MUSTER_OFFLOAD_FORCE)
		mine.status = muster_fail(job, mine.tree, "the switches are forced, but %s", job->no_tree);
	return mine;
}

/* Open at every rank before any goes on. */
static int opened_exchange(struct muster *job, const struct opened *mine, const struct opened **all)
{
	const void *said;
	int err = muster_exchange(job, mine->status, mine, sizeof(*mine), &said);

	*all = said;
	for (uint32_t r = 0; r < job->oob.size && !err; r++)
		if ((*all)[r].status)
			err = muster_fail(job, muster_rank_errno((*all)[r].status), "rank %u could not open the world: %s; its own message says why",
					  r, strerror(-muster_rank_errno((*all)[r].status)));
	return err;
}

/*
 * And then in its groups at every rank. What others are told of these may have to be sent again,
 * which nobody does in the exchange: whom it did not reach would never come there.
 */
static int world_tree_join(struct muster *job)
{
	const struct opened mine = { .status = muster_comm_tree_join(job->world) }, *all;
	int err;

	if (!job->manager)
		return 0;
	if (job->dev->ops->settle)
		job->dev->ops->settle(job->dev);
	err = opened_exchange(job, &mine, &all);
	if (!err)
		muster_comm_tree_joined(job->world);
	return err;
}

static int world_open(struct muster *job)
{
	const struct opened mine = open_own(job), *all;
	int err = opened_exchange(job, &mine, &all);

	if (!err) {
		bump_agree(job, all);
		tree_agree(job, all);
		err = world_tree_join(job);
	}
	if (err && job->world)
		muster_comm_close(job->world);
	return err;
}

static int settings_read(struct muster *job, char *why, size_t why_len)
{
	return job->whole ? muster_settings_rail(&job->settings, &job->whole->settings, job->settings.rail, why, why_len) :
			    muster_settings_read(&job->settings, why, why_len);
}

static int agree(struct muster *job)
{
	char why[MUSTER_WHY_MAX];
	bool alike;
	int err;

	err = settings_read(job, why, sizeof(why));
	if (err)
		muster_fail(job, err, "%s", why);
	err = hello_exchange(job, err, &alike);
	return err || alike ? err : settings_exchange(job);
}

static int device_open(struct muster *job, muster_dev_open *open)
{
	char why[MUSTER_SENTENCE_MAX] = "";
	int err = open(&job->oob, &job->settings, &job->dev, why, sizeof(why));

	if (err)
		muster_fail(job, err, "the %s device does not open: %s", job->settings.device,
			    *why ? why : strerror(-err));
	return err;
}

static int join(struct muster *job, muster_dev_open *open)
{
	uint64_t tuned;
	int err;

	err = agree(job);
	if (err)
		return err;
	err = muster_tuned_open(job, &tuned);
	if (!err)
		err = muster_stats_open(job);
	if (!err)
		err = device_open(job, open);
	if (err) {
		job->dev = NULL;
		offers_exchange(job, err, 0);
		return err;
	}
	muster_progress_open(job);
	/* Where time is not the system's none passes by polling. */
	if (job->dev->ops->now_us || job->dev->crowded)
		job->spin_polls = 0;
	err = offers_exchange(job, 0, tuned);
	if (err)
		goto err_close;
	muster_look_open(job);
	err = world_open(job);
	if (err)
		goto err_close;
	return 0;

err_close:
	muster_trees_close(job, NULL);
	job->dev->ops->close(job->dev);
	muster_look_close(job);
	return err;
}

void muster_job_free(struct muster *job)
{
	if (job->oob_owned)
		muster_bootstrap_close(&job->oob);
	muster_bump_close(job);
	muster_trees_close(job, NULL);
	muster_pairs_close(job);
	free(job->tuned);
	muster_tuning_free(job->tuning);
	free(job->user_ops);
	free(job->stats);
	free(job->regions);
	free(job->addresses);
	free(job);
}

/* Room for all that is said until the job is joined; nobody knows of us before there is. */
int muster_job_enter(struct muster *job, muster_dev_open *open)
{
	int err;

	job->addresses = calloc(job->oob.size, sizeof(*job->addresses));
	if (!job->addresses)
		err = muster_fail(job, -ENOMEM, "no memory for %u ranks", job->oob.size);
	else
		err = muster_exchange_open(job, MUSTER_EXCHANGE_JOIN);
	if (!err)
		err = join(job, open);
	muster_exchange_close(job);	/* nothing is said in this way any more */
	return err;
}

struct muster *muster_job_new(const struct muster_oob *oob)
{
	struct muster *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->oob = *oob;
	job->era = 1;
	job->spin_polls = spin_polls(oob->size);
	job->warm_max = MUSTER_WARM_MAX;
	job->counts_ticks = muster_ticks_clock() == MUSTER_TRACE_TSC;
	strcpy(job->sentence, "no error");
	return job;
}

int muster_job_join(const struct muster_oob *oob, bool oob_owned, muster_dev_open *open,
		    struct muster **result)
{
	struct muster *job = muster_job_new(oob);
	int err;

	if (!job)
		return muster_fail_init(-ENOMEM, "no memory for a job");
	job->oob_owned = oob_owned;
	err = muster_job_enter(job, open);
	if (err) {
		muster_fail_init(err, "%s", job->sentence);
		muster_job_free(job);
		return err;
	}
	err = muster_rails_join(job, open);
	if (err) {
		muster_fail_init(err, "%s", job->sentence);
		muster_finalize(job);
		return err;
	}
	*result = job;
	return 0;
}

/* Of a job that has been joined: the threads that will use it. */
static int threads_open(struct muster **job, uint32_t flags)
{
	bool helper = (*job)->settings.helper;
	int err;

	if (!(flags & MUSTER_INIT_THREADS) && !helper)
		return 0;
	err = muster_turn_open(*job, helper);
	if (!err)
		return 0;
	muster_fail_init(err, "%s", muster_error(*job));
	muster_finalize(*job);
	*job = NULL;
	return err;
}

static int init_oob(const struct muster_oob *oob, struct muster **job)
{
	if (!oob || !job || !oob->allgather)
		return muster_fail_init(-EINVAL, "muster_init_oob: oob, its allgather() or job is NULL");
	if (!oob->size || oob->size > MUSTER_MEMBERS_MAX)
		return muster_fail_init(-EINVAL, "muster_init_oob: %u ranks; allowed are 1 to %d",
					oob->size, MUSTER_MEMBERS_MAX);
	if (oob->rank >= oob->size)
		return muster_fail_init(-EINVAL, "muster_init_oob: rank %u of %u; ranks count from 0",
					oob->rank, oob->size);
	return muster_job_join(oob, false, muster_device_open, job);
}

static int init_env(struct muster **job)
{
	struct muster_oob oob;
	char why[MUSTER_SENTENCE_MAX] = "";
	int err;

	if (!job)
		return muster_fail_init(-EINVAL, "muster_init: job is NULL");
	err = muster_bootstrap_env(&oob, why, sizeof(why));
	if (err)
		return muster_fail_init(err, "%s", why);
	return muster_job_join(&oob, true, muster_device_open, job);
}

int muster_init_with(const struct muster_oob *oob, uint32_t flags, struct muster **job)
{
	int err;

	if (flags & ~(uint32_t)MUSTER_INIT_THREADS)
		return muster_fail_init(-EINVAL, "muster_init_with: there are no such flags: 0x%x", flags);
	err = oob ? init_oob(oob, job) : init_env(job);
	return err ? err : threads_open(job, flags);
}

int muster_init_oob(const struct muster_oob *oob, struct muster **job)
{
	int err = init_oob(oob, job);

	return err ? err : threads_open(job, 0);
}

int muster_init(struct muster **job)
{
	return muster_init_with(NULL, 0, job);
}

void muster_finalize(struct muster *job)
{
	if (!job)
		return;
	muster_turn_close(job);
	muster_stats_gather(job);
	muster_look_place(job, MUSTER_LOOK_LEAVES);
	if (job->manager)
		muster_manager_renew(job);	/* one that has come meanwhile is to hear what we leave */
	if (job->dev->ops->leave)
		job->dev->ops->leave(job->dev);
	muster_comms_close(job);
	muster_rails_close(job);
	muster_stats_close(job);
	muster_bounces_free(job);
	muster_request_blocks_free(job);
	while (job->nr_regions)
		muster_free(job, job->regions[0].addr);
	muster_trees_close(job, NULL);	/* while we are there yet */
	job->dev->ops->close(job->dev);
	muster_look_close(job);
	muster_job_free(job);
}

struct muster_comm *muster_world(struct muster *job)
{
	return job->world;
}
