// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What hosts say to the manager (am.h): who they are, which groups they want, have and need no more.
 *
 * There are two layouts of trees; trees 2l and 2l + 1 are the low-latency and the streaming one of
 * layout l. All groups of a job are on one: that which the fewest jobs have.
 */
#include "am.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- jobs --------------------------------------------------------------------------------- */

/* Each job once: by the first of its hosts. */
static uint32_t jobs_at(const struct am *am, uint32_t layout)
{
	uint32_t nr = 0;

	for (const struct am_peer *one = am->peers; one; one = one->next) {
		const struct am_peer *before = am->peers;

		while (before != one && !(before->kind == AM_HOST && before->proof == one->proof))
			before = before->next;
		nr += one->kind == AM_HOST && one->layout == layout && before == one;
	}
	return nr;
}

/* That which it has already, if another manager chose it. */
static uint32_t layout_for(const struct am *am, uint64_t proof)
{
	uint32_t layout = 0, nr = UINT32_MAX;

	for (const struct am_group *group = am->groups; group; group = group->next)
		if (group->proof == proof)
			return group->tree / 2;
	for (const struct am_peer *peer = am->peers; peer; peer = peer->next)
		if (peer->kind == AM_HOST && peer->proof == proof)
			return peer->layout;
	for (uint32_t i = 0; i < AM_LAYOUTS; i++)
		if (jobs_at(am, i) < nr) {
			layout = i;
			nr = jobs_at(am, i);
		}
	return layout;
}

static uint32_t groups_of(const struct am *am, uint64_t proof)
{
	uint32_t nr = 0;

	for (const struct am_group *group = am->groups; group; group = group->next)
		nr += group->proof == proof;
	return nr;
}

/* ---- coming and going ----------------------------------------------------------------------- */

static bool is_claimed(const struct am_peer *host, const struct am_group *group)
{
	uint32_t i = 0;

	while (i < host->nr_claims &&
	       (host->claims[i].tree != group->tree || host->claims[i].group != group->handle ||
		host->claims[i].key != group->key))
		i++;
	return i < host->nr_claims;
}

static void claim_drop(struct am_peer *host, uint32_t tree, uint32_t handle)
{
	for (uint32_t i = 0; i < host->nr_claims; i++)
		if (host->claims[i].tree == tree && host->claims[i].group == handle) {
			host->claims[i] = host->claims[--host->nr_claims];
			return;
		}
}

/* What it does not name it has left meanwhile. */
void am_host_claim(const struct am_peer *host, const struct am_group *group, struct am_member *member)
{
	member->left = group->proof != host->proof || !is_claimed(host, group);
	member->lease = member->left ? NULL : host;
}

/* The switches that have these groups may come before it or after. */
static int claims_take(struct am *am, struct am_peer *host)
{
	size_t bytes = am->in.head.nr_members * sizeof(*host->claims);

	host->claims = bytes ? malloc(bytes) : NULL;
	if (bytes && !host->claims)
		return -ENOMEM;
	host->nr_claims = am->in.head.nr_members;
	if (bytes)
		memcpy(host->claims, am->in.claims, bytes);
	for (struct am_group *group = am->groups; group; group = group->next)
		for (uint32_t i = 0; i < group->nr_members; i++)
			if (group->members[i].host == host->number && !group->members[i].left &&
			    !group->members[i].lease)
				am_host_claim(host, group, &group->members[i]);
	am_groups_sweep(am);
	return 0;
}

static int hello(struct am *am, struct am_peer *peer, char *why)
{
	const struct muster_manager_message *said = &am->in.head;

	if (said->version != MUSTER_MANAGER_VERSION)
		return am_refuse(why, -EPROTO, "the manager is of another version");
	if (said->host >= (am->fabric ? muster_fabric_hosts(am->fabric) : MUSTER_FABRIC_NODES_MAX))
		return am_refuse(why, -EINVAL, "the network has no such host");
	if (peer->kind == AM_HOST || am_find(am, AM_HOST, said->host))
		return am_refuse(why, -EEXIST, "the host is connected already");
	peer->number = said->host;
	peer->proof = said->proof;
	if (claims_take(am, peer))
		return am_refuse(why, -ENOMEM, "the manager has no memory");
	peer->layout = layout_for(am, said->proof);
	peer->kind = AM_HOST;
	peer->life = said->life;
	am->greeted[said->host] = true;
	return 0;
}

void am_host_hello(struct am *am, struct am_peer *peer)
{
	const struct muster_manager_message head = {
		.kind = MUSTER_MANAGER_WELCOME, .tag = am->in.head.tag,
	};
	char why[AM_WHY_MAX];
	int err = hello(am, peer, why);

	am_answer(am, peer, &head, err, why);
}

void am_host_end(struct am *am, const struct am_peer *host)
{
	for (struct am_group *group = am->groups; group; group = group->next) {
		if (group->asker == host)
			group->asker = NULL;
		for (uint32_t i = 0; i < group->nr_members; i++)
			if (group->members[i].lease == host) {
				group->members[i].lease = NULL;
				group->members[i].left = true;
			}
	}
	am_groups_sweep(am);
}

/* ---- leaving -------------------------------------------------------------------------------- */

/* The one that this request of a host has made, or is about to: who asked is told then, too. */
static void give_back(struct am *am, struct am_peer *host)
{
	const struct muster_manager_message head = {
		.kind = MUSTER_MANAGER_CREATED, .tag = am->in.head.tag,
	};
	struct am_group *group = am->groups;

	while (group && (group->asker != host || group->tag != am->in.head.tag))
		group = group->next;
	if (!group)
		return;
	if (!group->made)
		am_answer(am, host, &head, -ECANCELED, "the group was given back as it was made");
	am_group_end(am, group);
}

static struct am_member *member_of(const struct am_group *group, const struct am_peer *host)
{
	uint32_t i = 0;

	while (i < group->nr_members && group->members[i].lease != host)
		i++;
	return i < group->nr_members ? &group->members[i] : NULL;
}

/* The switch is to know before it may go; -EHOSTUNREACH: it has gone, and nobody is to know. */
static int leave(struct am *am, const struct am_group *group, struct am_member *member, struct am_peer *asker)
{
	const struct am_ask ask = { .asker = asker, .tree = group->tree, .handle = group->handle };
	struct muster_manager_message head = {
		.kind = MUSTER_MANAGER_CHILD_LEFT, .tree = group->tree, .group = group->handle,
		.host = member->host,
	};

	member->lease = NULL;
	member->left = true;
	return am_ask(am, member->at, &ask, &head, sizeof(head));
}

/* Who has not gone over to what stands for it never will. */
static void heir_leave(struct am *am, struct am_group *group, const struct am_peer *host)
{
	struct am_group *heir = group->heir;
	struct am_member *member = heir ? member_of(heir, host) : NULL;

	if (member && heir->made)
		leave(am, heir, member, NULL);
	else if (member)
		*member = (struct am_member){ .host = member->host, .at = member->at, .left = true };
}

/* It is through with all that it has done there. */
void am_host_leave(struct am *am, struct am_peer *host)
{
	struct am_group *group = am_group_of(am, am->in.head.tree, am->in.head.group);
	struct muster_manager_message head = {
		.kind = MUSTER_MANAGER_LEFT, .tree = am->in.head.tree, .group = am->in.head.group,
	};
	bool moved = am->in.head.flags & MUSTER_MANAGER_MOVED;
	struct am_member *member;

	if (am->in.head.tag) {
		give_back(am, host);
		return;
	}
	claim_drop(host, head.tree, head.group);
	member = group ? member_of(group, host) : NULL;
	if (!member) {
		am_answer(am, host, &head, -ENOENT, "the host is not in that group");
		return;
	}
	if (leave(am, group, member, host))
		am_answer(am, host, &head, 0, NULL);
	if (!moved)
		heir_leave(am, group, host);
	am_groups_sweep(am);
}

/* ---- creating ------------------------------------------------------------------------------- */

/* Who is to be in it, and may be. */
static int members_find(const struct am *am, const struct am_peer *asker, struct am_group *group,
			char *why)
{
	bool asks_for_itself = false;

	for (uint32_t i = 0; i < group->nr_members; i++) {
		const struct muster_manager_member *member = &am->in.members[i];
		const struct am_peer *lease = am_find(am, AM_HOST, member->host);

		if (!lease || lease->life != member->incarnation)
			return am_refuse(why, -EHOSTUNREACH, "a member is not connected to the manager");
		if (lease->proof != asker->proof)
			return am_refuse(why, -EPERM, "a member belongs to another job");
		group->members[i] = (struct am_member){
			.host = member->host, .incarnation = member->incarnation, .vp = member->vp,
			.number = i, .lease = lease,
		};
		asks_for_itself |= lease == asker;
	}
	return asks_for_itself ? 0 : am_refuse(why, -EPERM, "who asks is no member");
}

static bool same_members(const struct am_group *a, const struct am_group *b)
{
	uint32_t i = 0;

	while (i < a->nr_members && i < b->nr_members && a->members[i].lease &&
	       a->members[i].lease == b->members[i].lease)
		i++;
	return i == a->nr_members && i == b->nr_members;
}

/* It is locked by a group of the same members, or it is this job's alone. */
static int stream_check(const struct am *am, const struct am_group *group, char *why)
{
	const struct am_group *other = am_group_of(am, group->tree - 1u, am->in.head.group);

	if (am->config.shared && am_group_of(am, group->tree, group->handle))
		return am_refuse(why, -EEXIST, "the streaming group is there already");
	if (am->config.shared && other && other->heir)
		return am_refuse(why, -EBUSY, "its low-latency group is about to move away from a switch");
	if (am->config.shared)
		return other && other->handle == group->handle && same_members(other, group) ? 0 :
		       am_refuse(why, -EINVAL, "the streaming group has no low-latency one that locks it");
	for (other = am->groups; other; other = other->next)
		if (other->tree == group->tree && other->proof != group->proof)
			return am_refuse(why, -EBUSY, "the streaming tree is another job's own (muster-am --shared)");
	return 0;
}

/* A streaming group that is locked has that of the low-latency one. */
static uint32_t handle_for(struct am *am, uint16_t tree)
{
	return tree % 2 && am->config.shared ? am->in.head.group : am_handle_new(am, tree);
}

static struct am_group *group_new(struct am *am, const struct am_peer *asker)
{
	struct am_group *group = am_group_new((uint16_t)(2 * asker->layout + am->in.head.type),
					      am->in.head.nr_members);

	if (!group)
		return NULL;
	group->proof = asker->proof;
	group->asker = asker;
	group->tag = am->in.head.tag;
	group->context = am->in.head.context;
	group->life = am->in.head.life;
	group->job = am->in.head.job;
	group->ordered = am->in.head.flags & MUSTER_MANAGER_ORDER;
	group->handle = handle_for(am, group->tree);
	return group;
}

static int create(struct am *am, const struct am_peer *asker, char *why)
{
	struct am_group *group;
	int err = am_discovered(am, why);

	if (err)
		return err;
	if (!am->in.head.nr_members || am->in.head.type > MUSTER_SWITCH_SAT)
		return am_refuse(why, -EINVAL, "the request makes no sense");
	if (groups_of(am, asker->proof) >= am->config.groups_max)
		return am_refuse(why, -EDQUOT, "the job has as many groups as it may");
	group = group_new(am, asker);
	if (!group)
		return am_refuse(why, -ENOMEM, "the manager has no memory");
	err = members_find(am, asker, group, why);
	if (!err && group->tree % 2)
		err = stream_check(am, group, why);
	if (!err)
		err = am_group_make(am, group, why);
	if (err)
		am_group_free(group);
	return err;
}

void am_host_create(struct am *am, struct am_peer *host)
{
	const struct muster_manager_message head = {
		.kind = MUSTER_MANAGER_CREATED, .tag = am->in.head.tag,
	};
	char why[AM_WHY_MAX] = "";
	int err = create(am, host, why);

	if (err)
		am_answer(am, host, &head, err, why);
}
