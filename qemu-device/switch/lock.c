// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Locks of streaming trees. A request goes up the low-latency tree of the same layout as a
 * barrier does, and locks nothing: a member that asks late holds up nobody but its own group. When
 * the root has heard of all it locks its own part and has the nodes below lock theirs; one that cannot
 * says so to those above. What then comes down from the root is the same for all: locked for so many
 * operations, or not, and then each gives back what it had locked (paper, "To avoid occupying").
 *
 * Who is refused may keep its place, which is the count of locks when it asked first. At each node
 * whoever has asked before stands before, so the oldest of all is let in wherever it comes next, if
 * it goes on asking. It waits with a request that locks nothing, and that each node keeps until it could be locked there:
 * so nobody who waits has anything that another waits for. Groups of one job share its place until
 * its turn begins, and those that waited then the turn; those that ask later share the next place.
 *
 * A tree that is one job's own needs no locks; its groups have it as long as they are there.
 */
#include "internal.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

enum { HURRIES_MAX = 4 };	/* who still waits is answered at each, and asks again */

/* ---- which trees are active ---- */

static struct stream *stream_of(struct muster_switch *sw, uint16_t tree)
{
	for (uint32_t i = 0; i < MUSTER_SWITCH_STREAMS_MAX; i++)
		if (sw->streams[i].nr && sw->streams[i].tree == tree)
			return &sw->streams[i];
	return NULL;
}

static uint32_t nr_free(const struct muster_switch *sw)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < MUSTER_SWITCH_STREAMS_MAX; i++)
		nr += !sw->streams[i].nr;
	return nr;
}

static void enter(struct muster_switch *sw, const struct group *group)
{
	struct stream *stream = stream_of(sw, group->config.tree);

	if (!stream) {
		for (stream = sw->streams; stream->nr; stream++)
			;
		stream->tree = group->config.tree;
		stream->owner = group->config.owner;
		stream->since = sw->lock_count;
	}
	stream->nr++;
	sw->counters.locked += group->config.locks;
}

static void leave(struct muster_switch *sw, const struct group *group)
{
	stream_of(sw, group->config.tree)->nr--;
	sw->counters.locked -= group->config.locks;
	sw->lock_news = true;
}

/* ---- whose turn it is ---- */

/* Before all that ask for the first time. */
static bool asked_before(const struct group *one, const struct group *other)
{
	if (!other->lock.waits || one->lock.asked != other->lock.asked)
		return !other->lock.waits || one->lock.asked < other->lock.asked;
	return one->config.group < other->config.group;
}

/* Who was refused and then went about something else is in nobody's way, but stays as old as it is. */
static bool insists(const struct muster_switch *sw, const struct group *group)
{
	return group->lock.waits && sw->hurries - group->lock.heard < HURRIES_MAX;
}

/* For its tree, or, where that is not active, for the last place that is free. */
static bool stands_before(struct muster_switch *sw, const struct group *one,
			  const struct group *other)
{
	if (!insists(sw, one) || one->config.owner == other->config.owner ||
	    !asked_before(one, other))
		return false;
	return one->config.tree == other->config.tree ||
	       (!stream_of(sw, one->config.tree) && !stream_of(sw, other->config.tree) &&
		nr_free(sw) == 1);
}

static bool somebody_before(struct muster_switch *sw, const struct group *group)
{
	for (uint32_t i = 0; i < GROUP_BUCKETS; i++)
		for (const struct group *one = sw->groups[i]; one; one = one->next_hashed)
			if (stands_before(sw, one, group))
				return true;
	return false;
}

/* It is its job's turn, and it waited when that began, or nobody else waits. */
static bool may_join(struct muster_switch *sw, const struct stream *stream,
		     const struct group *group)
{
	return stream->owner == group->config.owner &&
	       ((group->lock.waits && group->lock.asked <= stream->since) ||
		!somebody_before(sw, group));
}

static bool may_enter(struct muster_switch *sw, const struct group *group)
{
	const struct stream *stream = stream_of(sw, group->config.tree);

	if (stream)
		return may_join(sw, stream, group);
	return nr_free(sw) && !somebody_before(sw, group);
}

/* ---- a group's ---- */

int lock_begin(struct muster_switch *sw, struct group *group)
{
	if (group->config.type != MUSTER_SWITCH_SAT || group->config.locks)
		return 0;
	if (!stream_of(sw, group->config.tree) && !nr_free(sw))
		return -EBUSY;
	enter(sw, group);
	group->lock.state = LOCK_HELD;
	return 0;
}

static void release(struct muster_switch *sw, struct group *group)
{
	if (group->lock.state != LOCK_NONE)
		leave(sw, group);
	group->lock.state = LOCK_NONE;
	group->lock.left = 0;
}

static void wait_not(struct muster_switch *sw, struct group *group)
{
	sw->lock_news |= group->lock.waits;
	group->lock.waits = false;
}

static bool is_pair(const struct group *group, const struct group *other)
{
	return other && other->config.locks && group->config.type == MUSTER_SWITCH_LLT;
}

void lock_end(struct muster_switch *sw, struct group *group)
{
	struct group *other = group_find(sw, group->config.tree + 1, group->config.group);

	if (is_pair(group, other))
		group = other;
	release(sw, group);
	wait_not(sw, group);
}

/* ---- requests ---- */

/* The streaming one of the same members. NULL: there is none that can be locked. */
static struct group *paired(const struct muster_switch *sw, const struct group *group)
{
	struct group *other = group_find(sw, group->config.tree + 1, group->config.group);

	return is_pair(group, other) && !other->failed ? other : NULL;
}

static bool give(struct muster_switch *sw, struct group *group)
{
	if (group->lock.state != LOCK_NONE)
		return true;
	if (!may_enter(sw, group)) {
		sw->counters.locks_refused++;
		return false;
	}
	enter(sw, group);
	group->lock.state = LOCK_ASKED;
	return true;
}

static void least(__le64 *word, uint64_t other)
{
	*word = *word < other ? *word : other;
}

/* What its job's other groups have here: in its turn those that have asked since it began. */
static void place_say(struct muster_switch *sw, const struct group *group, struct muster_lock *lock)
{
	const struct stream *stream = stream_of(sw, group->config.tree);
	bool turn = stream && stream->owner == group->config.owner;

	if (turn)
		least(&lock->again, MUSTER_LOCK_NO_PLACE);
	for (uint32_t i = 0; i < GROUP_BUCKETS; i++)
		for (const struct group *one = sw->groups[i]; one; one = one->next_hashed) {
			if (!one->lock.waits || one->config.tree != group->config.tree ||
			    one->config.owner != group->config.owner)
				continue;
			if (!turn)
				least(&lock->place, one->lock.asked);
			else if (one->lock.asked > stream->since)
				least(&lock->again, one->lock.asked);
		}
}

bool lock_ask(struct muster_switch *sw, const struct group *from, struct segment *segment)
{
	struct group *group = paired(sw, from);
	struct muster_lock lock;

	memcpy(&lock, segment->sum, sizeof(lock));
	least(&lock.operations, MUSTER_SWITCH_LOCK_MAX);
	least(&lock.free, !!group);
	least(&lock.asked, ~sw->lock_count);
	if (group)
		group->lock.heard = sw->hurries;
	if (group && lock.how == MUSTER_LOCK_KEEP)
		place_say(sw, group, &lock);
	memcpy(segment->sum, &lock, sizeof(lock));
	return lock.how != MUSTER_LOCK_WAIT || !lock.operations || !lock.free || may_enter(sw, group);
}

bool lock_is_wanted(const struct segment *segment)
{
	struct muster_lock lock;

	memcpy(&lock, segment->sum, sizeof(lock));
	return lock.operations && lock.free && lock.how != MUSTER_LOCK_WAIT;
}

bool lock_take(struct muster_switch *sw, const struct group *from, struct segment *segment)
{
	struct group *group = paired(sw, from);
	struct muster_lock lock;

	memcpy(&lock, segment->sum, sizeof(lock));
	lock.how |= MUSTER_LOCK_TAKE;
	lock.free = group && give(sw, group);
	memcpy(segment->sum, &lock, sizeof(lock));
	return lock.free;
}

bool lock_is_taking(const struct group *group, const struct muster_packet *packet,
		    const void *payload)
{
	struct muster_lock lock;

	if (group->config.type != MUSTER_SWITCH_LLT || packet->signature.coll != MUSTER_COLL_LOCK)
		return false;
	memcpy(&lock, payload, sizeof(lock));
	return lock.how & MUSTER_LOCK_TAKE;
}

void lock_taken(struct segment *segment, const void *payload)
{
	struct muster_lock lock, below;

	memcpy(&lock, segment->sum, sizeof(lock));
	memcpy(&below, payload, sizeof(below));
	least(&lock.free, below.free);
	memcpy(segment->sum, &lock, sizeof(lock));
}

void lock_took(struct segment *segment)
{
	struct muster_lock lock;

	memcpy(&lock, segment->sum, sizeof(lock));
	lock.how &= ~(uint64_t)MUSTER_LOCK_TAKE;
	memcpy(segment->sum, &lock, sizeof(lock));
}

bool lock_is_over(struct muster_switch *sw, const struct group *from, struct segment *segment,
		  bool hurry)
{
	struct group *group = paired(sw, from);

	if (group && may_enter(sw, group))
		return true;
	if (!group || hurry)
		memset(segment->sum + offsetof(struct muster_lock, free), 0, sizeof(__le64));
	return !group || hurry;
}

static void hold(struct muster_switch *sw, struct group *group, uint64_t operations)
{
	wait_not(sw, group);
	if (group->lock.state == LOCK_NONE)
		return;
	group->lock = (struct lock){ .state = LOCK_HELD, .left = operations };
	sw->counters.locks++;
}

/* That of its job, or a new one. */
static uint64_t place_of(const struct muster_lock *lock)
{
	uint64_t place = lock->again == UINT64_MAX ? lock->place : lock->again;

	return place < MUSTER_LOCK_NO_PLACE ? place : ~lock->asked;
}

static void refuse(struct muster_switch *sw, struct group *group, const struct muster_lock *lock)
{
	release(sw, group);
	if (lock->how != MUSTER_LOCK_KEEP) {
		wait_not(sw, group);
		return;
	}
	if (!group->lock.waits)
		group->lock.asked = place_of(lock);
	group->lock.waits = true;
}

void lock_answer(struct muster_switch *sw, const struct group *from, const struct segment *segment)
{
	struct group *group = paired(sw, from);
	struct muster_lock lock;

	memcpy(&lock, segment->sum, sizeof(lock));
	if (sw->lock_count < ~lock.asked)
		sw->lock_count = ~lock.asked;
	sw->lock_count += sw->lock_count != UINT64_MAX;
	if (!group)
		return;
	group->lock.heard = sw->hurries;
	if (!lock.operations)
		lock_end(sw, group);
	else if (lock.how == MUSTER_LOCK_WAIT)
		return;
	else if (lock.free)
		hold(sw, group, lock.operations);
	else
		refuse(sw, group, &lock);
}

void lock_count(struct muster_switch *sw, struct group *group, const struct segment *segment)
{
	struct lock *lock = &group->lock;

	if (!group->config.locks || lock->state != LOCK_HELD)
		return;
	lock->distributed++;
	if (segment->last)
		lock->pulses = segment->pulse + 1;
	if (lock->distributed != lock->pulses)
		return;
	lock->distributed = lock->pulses = 0;
	if (!--lock->left)
		release(sw, group);
}

static void look_again(struct muster_switch *sw, bool hurry)
{
	for (uint32_t i = 0; i < GROUP_BUCKETS && sw->nr_waiting; i++)
		for (struct group *group = sw->groups[i]; group; group = group->next_hashed)
			segment_waiting(sw, group, hurry);
}

void lock_step(struct muster_switch *sw)
{
	while (sw->lock_news) {
		sw->lock_news = false;
		look_again(sw, false);
	}
}

void muster_switch_hurry(struct muster_switch *sw)
{
	sw->hurries++;
	look_again(sw, true);
}
