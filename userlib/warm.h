/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a communicator has from its first operation on, and gives back when it has rested while
 * others run (warm.c). Part of internal.h.
 */
#ifndef MUSTER_WARM_H
#define MUSTER_WARM_H

#include "cache.h"
#include "dev.h"

struct muster;

enum muster_warm_limits {
	MUSTER_CACHE_MAX = 64,		/* programs kept per communicator */
	MUSTER_BOUNCE_SLOTS = MUSTER_SEQ_QUEUE_MAX, /* small operations at once, per communicator */
	MUSTER_KEPT_SLOTS = 48,		/* small programs that the device keeps, per communicator, */
	MUSTER_KEPT_LONG = 8,		/* and those with memory of their own */
	MUSTER_KEPT_ALL = MUSTER_KEPT_SLOTS + MUSTER_KEPT_LONG,
	MUSTER_LOCK_SLOT = MUSTER_BOUNCE_SLOTS + MUSTER_KEPT_SLOTS,	/* of a tree's lock, behind these */
	MUSTER_WARM_MAX = 128,		/* communicators with what belongs to running */
	MUSTER_HISTORY = 64,		/* operations whose signature is remembered */
};

/* A program that the device keeps, and the places of its operand and result. */
struct muster_kept {
	struct muster_desc start;	/* runs it; its cookie is the number of the slot */
	uint8_t *operand;
	uint8_t *result;
	uint32_t operand_bytes;
	uint32_t memory_key;
	uint8_t *memory;		/* of one that is not small, once there was one; else NULL */
	struct muster_entry *owner;	/* of the cache, that has it; or NULL */
	bool busy;			/* it runs; others are posted meanwhile */
	uint32_t nr_descs;		/* that the device keeps under its cookie; 0: none yet */
};

struct muster_past {
	struct muster_signature signature;
	bool host;
	bool unknown;			/* it was forgotten (warm.c) */
};

struct muster_warm {
	struct muster_past history[MUSTER_HISTORY];	/* its last operations, by number */
	struct muster_entry *cache[MUSTER_CACHE_MAX];
	struct muster_entry *recent;	/* found last time */
	struct muster_entry *hidden;	/* the last whose lengths not all knew */
	uint64_t clock;			/* of what is used */
	struct muster_entry *last_of;	/* the entry that comm->last is of, if it has been so */
	uint64_t last_era;		/* since this one */
	struct muster_kept *kept[MUSTER_KEPT_ALL];
	uint8_t *bounce;		/* results of small operations, by order; then those of kept ones; or NULL */
	uint32_t bounce_key;
	uint32_t posted;		/* small operations given to the device */
	uint32_t completed;
	uint32_t scratch_key;
	void *scratch;			/* what is no result, or not yet */
	size_t scratch_bytes;
	uint32_t doubted;		/* the first when notes were compared, or it was seen to wait; */
	uint64_t doubt_us;		/* when to do so next; 0: never seen */
	uint64_t tested;		/* the count of ticks when a test looked at the clock last */
	struct muster_comm *comm;
	struct muster_warm *next, *prev;	/* in a ring; job->warm is the one to look at next */
	uint32_t number;			/* of its operations, when it was looked at last */
};

/* warm.c */
/** muster_comm_remember() - of one that is cool: make memory for its operations. 0; -ENOMEM. */
int muster_comm_remember(struct muster_comm *comm);
/** muster_comm_forget() - all of its operations, when its cache is closed. */
void muster_comm_forget(struct muster_comm *comm);
/** muster_comm_past() - an operation that began here already; NULL: it has not, or long ago. */
const struct muster_past *muster_comm_past(const struct muster_comm *comm, uint32_t number);
/** muster_warm_review() - if more are warm, cool some that have rested; not of one that is called. */
void muster_warm_review(struct muster *job, uint32_t most);

/* bounce.c: blocks of MUSTER_BOUNCE_SLOTS small results, MUSTER_KEPT_SLOTS, and a lock */
int muster_bounce_take(struct muster *job, uint8_t **bounce, uint32_t *key);
void muster_bounce_give(struct muster *job, uint8_t *bounce);
void muster_bounces_free(struct muster *job);

#endif /* MUSTER_WARM_H */
