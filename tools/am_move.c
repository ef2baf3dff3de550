// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Groups that lie on a switch which is drained (am.h): for each another one of the same members is made
 * elsewhere, its heir, on the same tree by number; for the low-latency and the streaming one of a
 * communicator at once. Its first member hears of them when all switches have them, and tells the others; they agree
 * from which operation on they are in these, and leave the old ones (userlib/move.c).
 */
#include "am.h"

#include <errno.h>
#include <string.h>

/* Of the same communicator. */
static bool are_paired(const struct am_group *a, const struct am_group *b)
{
	return a->tree == (b->tree ^ 1) && a->proof == b->proof && a->job == b->job && a->context == b->context &&
	       a->life == b->life && a->nr_members == b->nr_members && a->nr_members &&
	       a->members[0].host == b->members[0].host && a->members[0].vp == b->members[0].vp;
}

/* Not one that is about to stand for another. */
static struct am_group *pair_of(const struct am *am, const struct am_group *group)
{
	struct am_group *other = am->groups;

	while (other && (other->heir_of || !are_paired(other, group)))
		other = other->next;
	return other;
}

static bool is_drained(const struct am *am, const struct am_group *group)
{
	for (uint32_t i = 0; i < group->nr_switches; i++)
		if (am->drain.switches[group->switches[i].number])
			return true;
	return false;
}

/* ---- making ------------------------------------------------------------------------------------ */

static int heir_make(struct am *am, struct am_group *group, uint32_t handle, char *why)
{
	struct am_group *heir = am_group_new(group->tree, group->nr_members);
	int err;

	if (!heir)
		return am_refuse(why, -ENOMEM, "the manager has no memory");
	heir->handle = handle;
	heir->proof = group->proof;
	heir->context = group->context;
	heir->life = group->life;
	heir->job = group->job;
	memcpy(heir->members, group->members, group->nr_members * sizeof(*heir->members));
	heir->heir_of = group;
	group->heir = heir;
	err = am_group_make(am, heir, why);
	if (err) {
		group->heir = NULL;
		am_group_free(heir);
	}
	return err;
}

static void heir_drop(struct am *am, struct am_group *group)
{
	if (group && group->heir)
		am_group_end(am, group->heir);
}

/* Where streaming trees are locked both have one handle; so they have it elsewhere, too. */
static int begin(struct am *am, struct am_group *group, struct am_group *pair, char *why)
{
	uint32_t handle = am_handle_new(am, group->tree);
	int err = heir_make(am, group, handle, why);

	if (!err && !group->heir)
		err = am_refuse(why, -EHOSTUNREACH, "the switches have gone as they were asked");
	if (!err && pair)
		err = heir_make(am, pair, handle, why);
	if (err)
		heir_drop(am, group);
	return err;
}

/* One that changes what is in the list; else NULL. */
static struct am_group *next_to_move(const struct am *am, bool *left)
{
	for (struct am_group *group = am->groups; group; group = group->next) {
		const struct am_group *pair;

		if (!is_drained(am, group))
			continue;
		*left = true;
		pair = pair_of(am, group);
		if (!group->heir && !group->heir_of && am_group_is_whole(group) &&
		    (!pair || (!pair->heir && am_group_is_whole(pair))))
			return group;
	}
	return NULL;
}

bool am_moves_begin(struct am *am)
{
	char why[AM_WHY_MAX] = "";
	struct am_group *group;
	bool left = false;

	while (am_drain_is_wanted(am) && (group = next_to_move(am, &left))) {
		int err = begin(am, group, pair_of(am, group), why);

		if (err)
			am_drain_failed(am, err, why);
	}
	return !left;
}

/* ---- telling ------------------------------------------------------------------------------------- */

static void claim_fill(const struct am_group *group, struct muster_manager_claim *claim)
{
	*claim = (struct muster_manager_claim){ .key = group->key, .group = group->handle, .tree = group->tree };
}

static void tell(struct am *am, const struct am_group *group, const struct am_group *pair)
{
	struct {
		struct muster_manager_message head;
		struct muster_manager_claim claims[4];
	} message = { .head = {
		.version = MUSTER_MANAGER_VERSION, .kind = MUSTER_MANAGER_MOVE, .nr_members = pair ? 4 : 2,
	} };

	claim_fill(group, &message.claims[0]);
	claim_fill(group->heir, &message.claims[1]);
	if (pair) {
		claim_fill(pair, &message.claims[2]);
		claim_fill(pair->heir, &message.claims[3]);
	}
	if (group->members[0].lease)
		am_say(am, (struct am_peer *)group->members[0].lease, &message,
		       sizeof(message.head) + message.head.nr_members * sizeof(message.claims[0]));
}

/* Both, or none. */
void am_move_made(struct am *am, struct am_group *heir)
{
	struct am_group *group = heir->heir_of, *pair = pair_of(am, group);
	char why[AM_WHY_MAX];
	int err = heir->err;

	if (pair && !pair->heir)
		pair = NULL;
	if (err) {
		strcpy(why, heir->why);
		heir_drop(am, pair);
		heir_drop(am, group);
		am_drain_failed(am, err, why);
	} else if (!pair || pair->heir->made) {
		tell(am, group, pair);
	}
}

void am_move_forget(struct am_group *group)
{
	if (group->heir)
		group->heir->heir_of = NULL;
	if (group->heir_of)
		group->heir_of->heir = NULL;
}
