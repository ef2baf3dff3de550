// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A communicator goes over to other groups of the same trees, between two operations and the same two at
 * all members, as when a switch is drained (Documentation/switch.md, section 11). The manager tells the first
 * member, and by messages among the members it goes down a binomial tree; who hears of it begins no operation on
 * a tree any more. Up again goes the largest number with which none has begun, and down which one it
 * is. Those before it end on the old groups, that and all later ones run on the new ones.
 */
#include <errno.h>
#include <string.h>

#include "tree.h"
#include "turn.h"

/* ---- who tells whom -------------------------------------------------------------------- */

static uint32_t child_of(const struct muster_comm *comm, uint32_t bit)
{
	return comm->rank + (1u << bit);
}

static uint32_t children(const struct muster_comm *comm)
{
	uint32_t mask = 0;

	for (uint32_t bit = 0; 1u << bit < comm->size && !(comm->rank >> bit & 1); bit++)
		if (child_of(comm, bit) < comm->size)
			mask |= 1u << bit;
	return mask;
}

static uint32_t parent_of(const struct muster_comm *comm)
{
	return comm->rank & (comm->rank - 1);
}

static bool say(struct muster_comm *comm, uint32_t member, enum muster_control_kind kind)
{
	const struct muster_moving *move = &comm->trees->move;
	struct muster_control control = {
		.kind = (uint8_t)kind, .context = comm->context, .life = comm->life,
	};

	if (kind != MUSTER_CONTROL_MOVE)
		control.about.value = move->at;
	for (int type = 0; type < MUSTER_TREE_TYPES && kind == MUSTER_CONTROL_MOVE; type++) {
		control.moved.keys[type] = move->next[type].key;
		control.moved.groups[type] = move->next[type].group;
		control.moved.instead_of[type] = comm->trees->by_type[type].group;
	}
	return !muster_control_send(comm->job, comm->ranks[member], &control);
}

/* What finds no room is said with the next visit. */
static void say_all(struct muster_comm *comm)
{
	struct muster_moving *move = &comm->trees->move;

	for (uint32_t bit = 0; move->untold >> bit; bit++)
		if (move->untold >> bit & 1 &&
		    say(comm, child_of(comm, bit), move->known ? MUSTER_CONTROL_MOVE_AT : MUSTER_CONTROL_MOVE))
			move->untold &= ~(1u << bit);
	if (move->parent_untold && say(comm, parent_of(comm), MUSTER_CONTROL_MOVE_FROM))
		move->parent_untold = false;
	if (move->untold || move->parent_untold)
		muster_comm_activate(comm);
}

/* ---- going over -------------------------------------------------------------------------- */

static uint32_t place_of(const struct muster_comm *comm)
{
	return comm->first ? comm->first->number : comm->number;
}

/* A lock that the old group has yet is given back with it. */
static int go_over(struct muster_comm *comm)
{
	struct muster *job = comm->job;
	struct muster_trees *trees = comm->trees;
	int err = 0;

	for (int type = 0; type < MUSTER_TREE_TYPES && !err; type++) {
		struct muster_tree old = trees->by_type[type];
		struct muster_dev_tree config;

		if (!trees->move.next[type].key)
			continue;
		trees->by_type[type] = trees->move.next[type];
		config = muster_tree_config(job, &trees->by_type[type]);
		err = job->dev->ops->tree_move(job->dev, job->id, comm->context, &config);
		muster_manager_leave(job, &old, true);
	}
	if (job->settings.order != MUSTER_OFFLOAD_OFF)
		muster_cache_clear(comm);	/* what it says of the order is so no more */
	trees->lock = (struct muster_tree_lock){ .most = trees->lock.most };
	trees->move = (struct muster_moving){ .begun = false };
	return err;
}

void muster_move_visit(struct muster_comm *comm)
{
	struct muster_moving *move = &comm->trees->move;
	int err;

	if (!move->begun || comm->failed)
		return;
	say_all(comm);
	if (!move->known || move->untold || (int32_t)(place_of(comm) - move->at) < 0 || comm->trees->lock.asked)
		return;
	err = go_over(comm);
	if (err)
		muster_comm_give_up(comm, muster_fail(comm->job, err, "the device does not go over to another group: %s",
						      strerror(-err)));
	else
		muster_comm_activate(comm);
}

/* ---- what is agreed upon -------------------------------------------------------------------- */

/* The first operation that can still be on the new groups here: of one whose lock was asked for the others know. */
static uint32_t first_free(const struct muster_comm *comm)
{
	const struct muster_request *request = comm->unposted;

	if (!request)
		return comm->number;
	return request->number + (request->state != MUSTER_REQUEST_QUEUED || comm->trees->lock.asked);
}

/* All that came from below is here. */
static void heard_all(struct muster_comm *comm)
{
	struct muster_moving *move = &comm->trees->move;

	if (move->unheard)
		return;
	move->parent_untold = comm->rank != 0;
	move->known = comm->rank == 0;
	move->untold = move->known ? children(comm) : move->untold;
}

static void begin(struct muster_comm *comm, const struct muster_moved *moved)
{
	struct muster_moving *move = &comm->trees->move;
	int err = 0;

	*move = (struct muster_moving){
		.begun = true, .at = first_free(comm), .unheard = children(comm), .untold = children(comm),
	};
	for (int type = 0; type < MUSTER_TREE_TYPES && !err; type++) {
		if (!moved->keys[type])
			continue;
		move->next[type] = comm->trees->by_type[type];
		move->next[type].key = moved->keys[type];
		move->next[type].group = moved->groups[type];
		move->next[type].moved = true;
		err = muster_manager_hold(comm->job, &move->next[type]);
	}
	if (err)
		muster_comm_give_up(comm, muster_fail(comm->job, err, "no memory for a communicator's trees"));
	heard_all(comm);
	muster_move_visit(comm);
}

static bool is_of(const struct muster_comm *comm, const struct muster_moved *moved)
{
	for (int type = 0; type < MUSTER_TREE_TYPES; type++)
		if (moved->keys[type] && (!comm->trees || !comm->trees->by_type[type].key ||
					  comm->trees->by_type[type].group != moved->instead_of[type]))
			return false;
	return true;
}

bool muster_move_wish(struct muster *job, const struct muster_moved *moved)
{
	for (int i = 0; i < MUSTER_COMM_BUCKETS; i++)
		for (struct muster_comm *comm = job->comms[i]; comm; comm = comm->next) {
			if (!is_of(comm, moved))
				continue;
			if (!comm->trees->everywhere)
				return false;	/* who has none yet would not know what it is about */
			if (!comm->rank && !comm->failed && !comm->trees->move.begun)
				begin(comm, moved);
			return true;
		}
	return false;
}

/* ---- what members say ---------------------------------------------------------------------- */

static void from_take(struct muster_comm *comm, uint32_t member, uint32_t value)
{
	struct muster_moving *move = &comm->trees->move;

	for (uint32_t bit = 0; move->unheard >> bit; bit++) {
		if (!(move->unheard >> bit & 1) || child_of(comm, bit) != member)
			continue;
		if ((int32_t)(value - move->at) > 0)
			move->at = value;
		move->unheard &= ~(1u << bit);
		heard_all(comm);
	}
}

/* Nothing of this comes twice, nor but in turn; else it is passed over. */
void muster_move_hear(struct muster *job, uint32_t rank, const struct muster_control *control)
{
	struct muster_comm *comm = muster_comm_find(job, job->id, control->context);
	uint32_t member = comm && comm->life == control->life ? muster_comm_member(comm, rank) : 0;
	bool is_parent = comm && comm->rank && member == parent_of(comm);
	struct muster_moving *move;

	if (!comm || comm->life != control->life || !comm->trees || comm->failed)
		return;
	move = &comm->trees->move;
	if (control->kind == MUSTER_CONTROL_MOVE && is_parent && !move->begun && is_of(comm, &control->moved)) {
		begin(comm, &control->moved);
		return;
	}
	if (!move->begun || move->known)
		return;
	if (control->kind == MUSTER_CONTROL_MOVE_FROM) {
		from_take(comm, member, control->about.value);
	} else if (control->kind == MUSTER_CONTROL_MOVE_AT && is_parent && !move->unheard) {
		move->at = control->about.value;
		move->known = true;
		move->untold = children(comm);
	}
	muster_move_visit(comm);
}
