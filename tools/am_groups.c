// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The groups that the manager makes and takes back (am.h). A group is laid over the network, and each of
 * its switches is asked to be in it; when all have answered, who asked for it is. If one refuses, all
 * give it back. What another manager made is known from the switches that have it: it goes as its
 * members leave, claim it no more, or are not there.
 */
#include "am.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "clock.h"

/* How long a switch may take to come to us with a group that another has told us of. */
#define SETTLE_US	60000000ull

struct branch_message {
	struct muster_manager_message head;
	struct muster_manager_child children[MUSTER_SWITCH_RADIX_MAX];
};

struct created_message {
	struct muster_manager_message head;
	struct muster_manager_give gives[MUSTER_MANAGER_MEMBERS_MAX];
};

struct am_group *am_group_of(const struct am *am, uint32_t tree, uint32_t handle)
{
	struct am_group *group = am->groups;

	while (group && (group->tree != tree || group->handle != handle))
		group = group->next;
	return group;
}

struct am_group *am_group_new(uint16_t tree, uint32_t nr_members)
{
	struct am_group *group = calloc(1, sizeof(*group));

	if (!group)
		return NULL;
	group->tree = tree;
	group->nr_members = nr_members;
	group->members = calloc(nr_members, sizeof(*group->members));
	if (group->members)
		return group;
	free(group);
	return NULL;
}

uint32_t am_handle_new(struct am *am, uint16_t tree)
{
	do
		am->last_handle++;
	while (!am->last_handle || am_group_of(am, tree, am->last_handle) ||
	       am_group_of(am, tree ^ 1, am->last_handle));
	return am->last_handle;
}

void am_group_free(struct am_group *group)
{
	free(group->gives);
	free(group->switches);
	free(group->members);
	free(group);
}

/* ---- taking back ---------------------------------------------------------------------------- */

static void tell(struct am *am, uint32_t number, uint16_t kind, uint16_t tree, uint32_t handle)
{
	struct am_peer *to = am_find(am, AM_SWITCH, number);
	const struct muster_manager_message head = {
		.version = MUSTER_MANAGER_VERSION, .kind = kind, .tree = tree, .group = handle,
	};

	if (to)
		am_say(am, to, &head, sizeof(head));
}

/* Whoever has yet to answer is to remove it behind that. */
void am_group_end(struct am *am, struct am_group *group)
{
	struct am_group **place = &am->groups;

	while (*place != group)
		place = &(*place)->next;
	*place = group->next;
	am_asks_forget(am, NULL, group);
	am_move_forget(group);
	for (uint32_t i = 0; i < group->nr_switches; i++)
		tell(am, group->switches[i].number, MUSTER_MANAGER_REMOVE, group->tree, group->handle);
	am_group_free(group);
}

static bool all_left(const struct am_group *group)
{
	uint32_t i = 0;

	while (i < group->nr_members && group->members[i].left)
		i++;
	return i == group->nr_members;
}

/* Of one that another manager made: all its switches have said who its members are. */
static bool is_known(const struct am_group *group)
{
	uint32_t i = 0;

	while (i < group->nr_switches && group->switches[i].held)
		i++;
	return i == group->nr_switches;
}

bool am_group_is_whole(const struct am_group *group)
{
	uint32_t i = 0;

	while (i < group->nr_members && group->members[i].lease && group->members[i].number == i)
		i++;
	return i == group->nr_members && group->made && !group->err && !group->unwanted && is_known(group);
}

static void cleaners_answer(struct am *am)
{
	const struct muster_manager_message head = { .kind = MUSTER_MANAGER_DONE };

	for (const struct am_group *group = am->groups; group; group = group->next)
		if (group->unwanted)
			return;
	for (struct am_peer *peer = am->peers; peer; peer = peer->next) {
		if (peer->cleans)
			am_answer(am, peer, &head, 0, NULL);
		peer->cleans = false;
	}
}

bool am_groups_sweep(struct am *am)
{
	uint64_t now_us = muster_clock_us();
	struct am_group *group, *next;
	bool again = false;

	for (group = am->groups; group; group = next) {
		bool known = is_known(group) || now_us - group->since_us > SETTLE_US;

		next = group->next;
		again |= !known;
		if (known && all_left(group))
			am_group_end(am, group);
	}
	cleaners_answer(am);
	return again;
}

/* ---- by order ------------------------------------------------------------------------------------ */

/* Its members hear of it from their switches, and leave; who has not claimed it never will. */
static void unwant(struct am *am, struct am_group *group)
{
	group->unwanted = true;
	if (!group->made && !group->err)
		group->err = am_refuse(group->why, -ECANCELED, "whoever runs the network wants no groups now");
	for (uint32_t i = 0; i < group->nr_switches; i++)
		tell(am, group->switches[i].number, MUSTER_MANAGER_FAIL, group->tree, group->handle);
	for (uint32_t i = 0; i < group->nr_members; i++)
		group->members[i].left |= !group->members[i].lease;
}

void am_clean(struct am *am, struct am_peer *asker)
{
	const struct muster_manager_message head = { .kind = MUSTER_MANAGER_DONE };

	if (am->in.head.version != MUSTER_MANAGER_VERSION) {
		am_answer(am, asker, &head, -EPROTO, "the manager is of another version");
		return;
	}
	asker->cleans = true;
	for (struct am_group *group = am->groups; group; group = group->next)
		unwant(am, group);
	am_groups_sweep(am);
}

/* ---- making ------------------------------------------------------------------------------------ */

static uint64_t key_new(void)
{
	uint64_t key;

	while (getrandom(&key, sizeof(key), 0) != sizeof(key) || !key)
		;
	return key;
}

static uint32_t life_of(const struct am *am, uint32_t node)
{
	const struct am_peer *peer = am_find(am, AM_SWITCH, node - MUSTER_NODE_AGGREGATION);

	return peer ? peer->life : 0;	/* it has gone as it was asked */
}

static void children_fill(const struct am *am, const struct am_group *group,
			  const struct muster_switch_group *branch, struct muster_manager_child *children)
{
	for (uint32_t i = 0; i < branch->nr_children; i++) {
		const struct muster_switch_child *child = &branch->children[i];
		const struct am_member *member = &group->members[child->member];

		children[i] = (struct muster_manager_child){
			.node = child->node, .port = child->port, .member = child->member,
		};
		if (child->node >= MUSTER_NODE_AGGREGATION) {
			children[i].incarnation = life_of(am, child->node);
			continue;
		}
		children[i].incarnation = member->incarnation;
		children[i].vp = member->vp;
		children[i].context = group->context;
		children[i].life = group->life;
	}
}

/* What the network says of a branch, and what the members do. */
static int branch_ask(struct am *am, struct am_group *group, const struct muster_fabric_branch *laid)
{
	const struct muster_switch_group *branch = &laid->group;
	bool is_root = branch->parent_port == MUSTER_SWITCH_NO_PORT, streams = group->tree % 2;
	struct branch_message message = { .head = {
		.kind = MUSTER_MANAGER_ADD, .tree = group->tree, .group = group->handle,
		.key = group->key, .proof = group->proof, .job = group->job, .type = group->tree % 2,
		.payload_max = streams ? 0 : am->config.payload_max,
		.flags = streams && am->config.shared ? MUSTER_MANAGER_LOCKS : 0,
		.host = is_root ? 0 : branch->parent_node,
		.life = is_root ? 0 : life_of(am, branch->parent_node),
		.context = branch->parent_port, .nr_members = branch->nr_children,
	} };
	const struct am_ask ask = { .group = group };

	children_fill(am, group, branch, message.children);
	return am_ask(am, laid->number, &ask, &message.head,
		      sizeof(message.head) + branch->nr_children * sizeof(message.children[0]));
}

static int switches_note(const struct am *am, struct am_group *group, const struct muster_fabric_group *laid,
			 char *why)
{
	group->switches = calloc(laid->nr_branches, sizeof(*group->switches));
	if (!group->switches)
		return am_refuse(why, -ENOMEM, "the manager has no memory");
	for (uint32_t i = 0; i < laid->nr_branches; i++) {
		group->switches[i] = (struct am_branch){ .number = laid->branches[i].number, .held = true };
		if (am_find(am, AM_SWITCH, laid->branches[i].number))
			continue;
		snprintf(why, AM_WHY_MAX, "switch %u is not connected to the manager", laid->branches[i].number);
		return -EHOSTUNREACH;
	}
	group->nr_switches = laid->nr_branches;
	return 0;
}

static int members_place(const struct am *am, struct am_group *group, const struct muster_fabric_group *laid,
			 char *why)
{
	struct muster_fabric_end end;

	for (uint32_t i = 0; i < group->nr_members; i++) {
		muster_fabric_uplink(am_fabric(am), group->members[i].host, &end);
		if (laid->nodes[i] != muster_fabric_node(am_fabric(am), end.number))
			return am_refuse(why, -EOPNOTSUPP, "a member's switch has no aggregation node");
		group->members[i].at = end.number;
	}
	return 0;
}

static int lay(const struct am *am, const struct am_group *group, struct muster_fabric_group *laid, char *why)
{
	uint32_t *hosts = calloc(group->nr_members, sizeof(*hosts));
	int err;

	if (!hosts)
		return am_refuse(why, -ENOMEM, "the manager has no memory");
	for (uint32_t i = 0; i < group->nr_members; i++)
		hosts[i] = group->members[i].host;
	err = muster_fabric_group(am_fabric(am), group->tree / 2, hosts, group->nr_members, laid, why,
				  AM_WHY_MAX);
	free(hosts);
	return err;
}

static int order_note(const struct am *am, struct am_group *group, const struct muster_fabric_group *laid,
		      char *why)
{
	struct muster_fabric_give *gives = calloc(group->nr_members, sizeof(*gives));
	int err;

	group->gives = calloc(group->nr_members, sizeof(*group->gives));
	err = gives && group->gives ? muster_fabric_order(am_fabric(am), laid, group->tree % 2, gives) : -ENOMEM;
	for (uint32_t i = 0; i + 1 < group->nr_members && !err; i++)
		group->gives[i] = (struct muster_manager_give){
			.from = (uint16_t)gives[i].from, .to = (uint16_t)gives[i].to,
		};
	free(gives);
	return err ? am_refuse(why, err, "the manager has no memory") : 0;
}

static uint32_t payload_of(const struct am *am, const struct am_group *group)
{
	return group->tree % 2 ? MUSTER_MTU : am->config.payload_max ? am->config.payload_max :
								       MUSTER_SWITCH_LLT_BYTES;
}

static void asker_tell(struct am *am, const struct am_group *group)
{
	struct created_message message = { .head = {
		.kind = MUSTER_MANAGER_CREATED, .version = MUSTER_MANAGER_VERSION, .tag = group->tag,
		.tree = group->tree, .group = group->handle, .key = group->key,
		.payload_max = payload_of(am, group),
		.flags = group->tree % 2 && am->config.shared ? MUSTER_MANAGER_LOCKS : 0,
		.nr_members = group->gives && !group->err ? group->nr_members - 1 : 0,
	} };
	size_t bytes = message.head.nr_members * sizeof(message.gives[0]);
	struct am_peer *asker = (struct am_peer *)group->asker;

	if (group->err) {
		am_answer(am, asker, &message.head, group->err, group->why);
		return;
	}
	if (bytes)
		memcpy(message.gives, group->gives, bytes);
	am_say(am, asker, &message, sizeof(message.head) + bytes);
}

/* All have answered. If who asked has gone meanwhile, the other members will not hear of it either. */
static void conclude(struct am *am, struct am_group *group)
{
	group->made = true;
	if (group->heir_of) {
		am_move_made(am, group);
		return;
	}
	if (group->asker)
		asker_tell(am, group);
	free(group->gives);
	group->gives = NULL;
	if (group->err || !group->asker)
		am_group_end(am, group);
}

/* One that cannot be asked has refused. */
static void branches_ask(struct am *am, struct am_group *group, const struct muster_fabric_group *laid)
{
	for (uint32_t i = 0; i < laid->nr_branches; i++) {
		int err = branch_ask(am, group, &laid->branches[i]);

		if (!err || group->err)
			continue;
		group->err = err;
		snprintf(group->why, sizeof(group->why), "%s", strerror(-err));
	}
	if (!am_asks_any(am, NULL, group))
		conclude(am, group);
}

int am_group_make(struct am *am, struct am_group *group, char *why)
{
	struct muster_fabric_group laid;
	int err = lay(am, group, &laid, why);

	if (err)
		return err;
	err = members_place(am, group, &laid, why);
	if (!err)
		err = switches_note(am, group, &laid, why);
	if (!err && group->ordered)
		err = order_note(am, group, &laid, why);
	if (!err) {
		group->key = key_new();
		group->next = am->groups;
		am->groups = group;
		branches_ask(am, group, &laid);
	}
	muster_fabric_group_free(&laid);
	return err;
}

void am_group_added(struct am *am, struct am_group *group, int err, const char *why)
{
	if (err && !group->err) {
		group->err = err;
		snprintf(group->why, sizeof(group->why), "%s", why);
	}
	if (!am_asks_any(am, NULL, group))
		conclude(am, group);
}

/* ---- what another manager made --------------------------------------------------------------------- */

static void *one_more(void *all, uint32_t nr, size_t each)
{
	return realloc(all, (nr + 1) * each);
}

static struct am_branch *branch_of(const struct am_group *group, uint32_t number)
{
	uint32_t i = 0;

	while (i < group->nr_switches && group->switches[i].number != number)
		i++;
	return i < group->nr_switches ? &group->switches[i] : NULL;
}

static bool branch_add(struct am_group *group, uint32_t number)
{
	struct am_branch *switches;

	if (branch_of(group, number))
		return true;
	switches = one_more(group->switches, group->nr_switches, sizeof(*switches));
	if (!switches)
		return false;
	switches[group->nr_switches++] = (struct am_branch){ .number = number };
	group->switches = switches;
	return true;
}

/* What a switch says of a child; they stand in the communicator's order. */
static bool member_add(struct am *am, struct am_group *group, const struct muster_manager_child *child, uint32_t at)
{
	struct am_member *members = one_more(group->members, group->nr_members, sizeof(*members));
	const struct am_peer *lease = am_find(am, AM_HOST, child->node);
	uint32_t i = group->nr_members;

	if (!members)
		return false;
	group->members = members;
	group->context = child->context;
	group->life = child->life;
	for (; i && members[i - 1].number > child->member; i--)
		members[i] = members[i - 1];
	/* Whoever has gone before his switch came has nothing more to claim. */
	members[i] = (struct am_member){
		.host = child->node, .incarnation = child->incarnation, .number = child->member, .vp = child->vp,
		.at = at, .left = am->greeted[child->node],
	};
	if (lease)
		am_host_claim(lease, group, &members[i]);
	group->nr_members++;
	return true;
}

static struct am_group *found(struct am *am)
{
	const struct muster_manager_message *said = &am->in.head;
	struct am_group *group = am_group_of(am, said->tree, said->group);

	if (group)
		return group->key == said->key ? group : NULL;
	group = calloc(1, sizeof(*group));
	if (!group)
		return NULL;
	*group = (struct am_group){
		.next = am->groups, .tree = said->tree, .handle = said->group, .key = said->key,
		.proof = said->proof, .job = said->job, .since_us = muster_clock_us(), .made = true,
	};
	am->groups = group;
	return group;
}

static bool can_be_switch(uint32_t node)
{
	return node - MUSTER_NODE_AGGREGATION < MUSTER_FABRIC_NODES_MAX;
}

/* Its parent, if it has one, and its children could be in some network. */
static bool can_be_group(const struct am_received *in)
{
	uint32_t i = 0;

	while (i < in->head.nr_members &&
	       (in->children[i].node < MUSTER_FABRIC_NODES_MAX || can_be_switch(in->children[i].node)))
		i++;
	return i == in->head.nr_members && (!in->head.host || can_be_switch(in->head.host));
}

/* Whoever says GONE of its hosts does so behind this: until then they may claim it. */
void am_group_hold(struct am *am, const struct am_peer *from)
{
	const struct muster_manager_message *said = &am->in.head;
	struct am_group *group = can_be_group(&am->in) ? found(am) : NULL;
	bool noted = group && branch_add(group, from->number);

	if (noted && branch_of(group, from->number)->held)
		return;
	if (noted && said->host)
		noted = branch_add(group, said->host - MUSTER_NODE_AGGREGATION);
	for (uint32_t i = 0; i < said->nr_members && noted; i++) {
		const struct muster_manager_child *child = &am->in.children[i];

		noted = child->node >= MUSTER_NODE_AGGREGATION ?
			branch_add(group, child->node - MUSTER_NODE_AGGREGATION) :
			member_add(am, group, child, from->number);
	}
	if (noted)
		branch_of(group, from->number)->held = true;
	else
		tell(am, from->number, MUSTER_MANAGER_REMOVE, said->tree, said->group);
	if (noted && group->unwanted)
		unwant(am, group);	/* its members there have not heard it */
	am_groups_sweep(am);
}
