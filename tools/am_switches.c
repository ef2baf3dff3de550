// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The manager's switches (am.h): what each is asked is kept until it has answered, and the others are
 * heard meanwhile. One that goes away answers nothing more.
 */
#include "am.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- asking -------------------------------------------------------------------------------- */

int am_ask(struct am *am, uint32_t number, const struct am_ask *what, struct muster_manager_message *head,
	   size_t bytes)
{
	struct am_peer *to = am_find(am, AM_SWITCH, number);
	struct am_ask *ask = to ? malloc(sizeof(*ask)) : NULL;

	if (!ask)
		return to ? -ENOMEM : -EHOSTUNREACH;
	*ask = *what;
	ask->tag = ++am->tags;
	ask->kind = head->kind;
	ask->to = to;
	ask->next = am->asks;
	am->asks = ask;
	head->version = MUSTER_MANAGER_VERSION;
	head->tag = ask->tag;
	am_say(am, to, head, bytes);
	return 0;
}

/* Its answer is awaited all the same: until then not all is settled. */
void am_asks_forget(struct am *am, const struct am_peer *asker, const struct am_group *group)
{
	for (struct am_ask *ask = am->asks; ask; ask = ask->next) {
		if (asker && ask->asker == asker)
			ask->asker = NULL;
		if (group && ask->group == group)
			ask->group = NULL;
	}
}

bool am_asks_any(const struct am *am, const struct am_peer *asker, const struct am_group *group)
{
	const struct am_ask *ask = am->asks;

	while (ask && !(asker && ask->asker == asker) && !(group && ask->group == group))
		ask = ask->next;
	return ask;
}

/* said: NULL: it has gone, and answers nothing any more. */
static void answered(struct am *am, struct am_ask **place, int err, const char *why,
		     const struct muster_manager_message *said)
{
	struct am_ask *ask = *place;
	struct muster_manager_message head = { .kind = MUSTER_MANAGER_DONE };

	*place = ask->next;
	if (ask->kind == MUSTER_MANAGER_ADD && ask->group)
		am_group_added(am, ask->group, err, why);
	if (ask->kind == MUSTER_MANAGER_CHILD_LEFT && ask->asker) {
		head.kind = MUSTER_MANAGER_LEFT;
		head.tree = ask->tree;
		head.group = ask->handle;
		am_answer(am, ask->asker, &head, 0, NULL);	/* the group may have failed and gone */
	}
	if (ask->drains)
		am_drain_answered(am, err, why, said);
	if (ask->kind == MUSTER_MANAGER_UNLINK && ask->asker && !am_asks_any(am, ask->asker, NULL))
		am_answer(am, ask->asker, &head, 0, NULL);
	free(ask);
}

void am_switch_done(struct am *am, const struct am_peer *from)
{
	const char *why = (const char *)(&am->in.head + 1);
	struct am_ask **place = &am->asks;

	while (*place && ((*place)->tag != am->in.head.tag || (*place)->to != from))
		place = &(*place)->next;
	if (*place)
		answered(am, place, -(int)am->in.head.status, why, &am->in.head);
}

/* ---- coming and going ------------------------------------------------------------------------ */

static int hello(struct am *am, struct am_peer *peer, char *why)
{
	const struct muster_manager_message *said = &am->in.head;
	uint32_t number = said->host - MUSTER_NODE_AGGREGATION;
	int err;

	if (said->version != MUSTER_MANAGER_VERSION)
		return am_refuse(why, -EPROTO, "the manager is of another version");
	if (am_find(am, AM_SWITCH, number))
		return am_refuse(why, -EEXIST, "the switch is connected already");
	err = am_discover_hear(am, peer, why);
	if (err)
		return err;
	peer->kind = AM_SWITCH;
	peer->number = number;
	peer->life = said->life;
	return 0;
}

void am_switch_hello(struct am *am, struct am_peer *peer)
{
	const struct muster_manager_message head = { .kind = MUSTER_MANAGER_WELCOME };
	char why[AM_WHY_MAX];
	int err = hello(am, peer, why);

	am_answer(am, peer, &head, err, why);
	if (!err)
		am_drain_met(am, peer, am->in.head.context);
}

/* Who has a lease has left when that ends; who has claimed nothing will not any more. */
void am_switch_gone(struct am *am, const struct am_peer *from)
{
	for (struct am_group *group = am->groups; group; group = group->next)
		for (uint32_t i = 0; i < group->nr_members; i++) {
			struct am_member *member = &group->members[i];

			if (member->at == from->number && member->host == am->in.head.host && !member->lease)
				member->left = true;
		}
	am_groups_sweep(am);
}

void am_switch_end(struct am *am, const struct am_peer *from)
{
	struct am_ask **place = &am->asks;

	while (*place)
		if ((*place)->to == from)
			answered(am, place, -EHOSTUNREACH, "a switch has gone", NULL);
		else
			place = &(*place)->next;
}

/* ---- cutting a link ---------------------------------------------------------------------------- */

static bool are_linked(const struct muster_fabric *fabric, uint32_t first, uint32_t second)
{
	struct muster_fabric_end end;

	for (uint32_t port = 0; port < muster_fabric_radix(fabric); port++)
		if (muster_fabric_end(fabric, first, port, &end) && !end.is_host && end.number == second)
			return true;
	return false;
}

static int cut(struct am *am, struct am_peer *asker, char *why)
{
	const struct am_ask ask = { .asker = asker };
	uint32_t ends[2], nr;
	struct muster_manager_message head = { .kind = MUSTER_MANAGER_UNLINK };
	int err;

	if (am->in.head.version != MUSTER_MANAGER_VERSION || am->in.head.nr_members != 2)
		return am_refuse(why, -EPROTO, "the manager is of another version");
	err = am_discovered(am, why);
	if (err)
		return err;
	nr = muster_fabric_switches(am->fabric);
	for (int i = 0; i < 2; i++)
		ends[i] = am->in.members[i].host - MUSTER_NODE_AGGREGATION;
	if (ends[0] >= nr || ends[1] >= nr)
		return am_refuse(why, -EINVAL, "the network has no such switch");
	if (!are_linked(am->fabric, ends[0], ends[1]))
		return am_refuse(why, -ENOENT, "these switches have no link");
	for (int i = 0; i < 2; i++) {
		head.host = MUSTER_NODE_AGGREGATION + ends[!i];
		am_ask(am, ends[i], &ask, &head, sizeof(head));
	}
	return am_asks_any(am, asker, NULL) ? 0 :
	       am_refuse(why, -EHOSTUNREACH, "neither switch is connected to the manager");
}

void am_cut(struct am *am, struct am_peer *asker)
{
	const struct muster_manager_message head = { .kind = MUSTER_MANAGER_DONE };
	char why[AM_WHY_MAX];
	int err = cut(am, asker, why);

	if (err)
		am_answer(am, asker, &head, err, why);
}
