// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Aggregation groups, made and taken back (switch_manager.h). Each host has a connection:
 * its lease. A group is there until the last of its members has left it or is gone, since
 * who still waits for a result may be the last to get it. All members must be connected,
 * and must belong to the job of who asks.
 *
 * There are two layouts of trees; trees 2l and 2l + 1 are the low-latency and the streaming one of
 * layout l. All groups of a job are on one: that which the fewest jobs have.
 */
#include "switch_manager.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon.h"
#include "muster_manager.h"
#include "switch_cut.h"

enum { EVENTS = 32, LAYOUTS = 2 };

struct lease {
	struct lease *next;
	int fd;
	bool known;			/* it has said who it is */
	uint32_t host;
	uint32_t incarnation;
	uint64_t proof;			/* of its job, */
	uint32_t layout;		/* whose trees have it */
};

struct grant {
	struct grant *next;
	uint16_t tree;
	uint32_t group;
	uint64_t proof;
	const struct lease *asker;	/* NULL: it has gone */
	uint64_t tag;			/* of its request */
	uint32_t nr_members, nr_left;
	struct lease *members[];	/* NULL: it has left */
};

/* One message, with all that may follow it. */
struct received {
	struct muster_manager_message head;
	struct muster_manager_member members[MUSTER_MANAGER_MEMBERS_MAX];
};

struct answer {
	struct muster_manager_message head;
	char why[MUSTER_MANAGER_WHY_MAX];
};

struct switch_manager {
	struct switch_manager_config config;
	int listen_fd, epoll_fd;
	bool is_full;			/* no descriptor was left: until a lease ends nobody is let in */
	bool said_full;
	struct lease *leases;
	struct grant *grants;
	uint32_t last_group;
	struct received in;
};

static int refuse(struct answer *answer, int err, const char *why)
{
	snprintf(answer->why, sizeof(answer->why), "%s", why);
	return err;
}

/* ---- groups ---------------------------------------------------------------------------- */

static void group_remove(const struct switch_manager *manager, uint16_t tree, uint32_t group)
{
	for (uint32_t i = 0; i < muster_fabric_switches(manager->config.fabric); i++)
		muster_switch_group_remove(manager->config.boxes[i].sw, tree, group);
}

static void grant_end(struct switch_manager *manager, struct grant **place)
{
	struct grant *grant = *place;

	group_remove(manager, grant->tree, grant->group);
	*place = grant->next;
	free(grant);
}

static void grant_left(struct switch_manager *manager, struct grant **place,
		       const struct lease *lease)
{
	struct grant *grant = *place;

	if (grant->asker == lease)
		grant->asker = NULL;
	for (uint32_t i = 0; i < grant->nr_members; i++)
		if (grant->members[i] == lease) {
			grant->members[i] = NULL;
			grant->nr_left--;
		}
	if (!grant->nr_left)
		grant_end(manager, place);
}

/* It says so itself, and is through with all that it has done there. */
static void member_left(const struct switch_manager *manager, const struct lease *lease,
			const struct grant *grant)
{
	for (uint32_t i = 0; i < muster_fabric_switches(manager->config.fabric); i++)
		muster_switch_child_left(manager->config.boxes[i].sw, grant->tree, grant->group,
					 lease->host);
}

static bool is_member(const struct grant *grant, const struct lease *lease)
{
	uint32_t i = 0;

	while (i < grant->nr_members && grant->members[i] != lease)
		i++;
	return i < grant->nr_members;
}

/* That group; or, as a lease ends, all. Who is in none leaves none. */
static void leave(struct switch_manager *manager, const struct lease *lease,
		  const struct muster_manager_message *which)
{
	struct grant **place = &manager->grants;

	while (*place) {
		struct grant *grant = *place;
		bool named = which && which->tree == grant->tree && which->group == grant->group;
		bool leaves = (!which || named) && is_member(grant, lease);

		if (leaves && which)
			member_left(manager, lease, grant);
		if (leaves)
			grant_left(manager, place, lease);
		if (*place == grant)
			place = &grant->next;
	}
}

/* The one that this request of a host has made, if it has. */
static void give_back(struct switch_manager *manager, const struct lease *lease, uint64_t tag)
{
	struct grant **place = &manager->grants;

	while (*place && ((*place)->asker != lease || (*place)->tag != tag))
		place = &(*place)->next;
	if (*place)
		grant_end(manager, place);
}

static struct lease *lease_of(const struct switch_manager *manager, uint32_t host)
{
	struct lease *lease = manager->leases;

	while (lease && !(lease->known && lease->host == host))
		lease = lease->next;
	return lease;
}

/* Each job once: by the first of its hosts. */
static uint32_t jobs_at(const struct switch_manager *manager, uint32_t layout)
{
	uint32_t nr = 0;

	for (const struct lease *one = manager->leases; one; one = one->next) {
		const struct lease *before = manager->leases;

		while (before != one && !(before->known && before->proof == one->proof))
			before = before->next;
		nr += one->known && one->layout == layout && before == one;
	}
	return nr;
}

static uint32_t layout_for(const struct switch_manager *manager, uint64_t proof)
{
	uint32_t layout = 0, nr = UINT32_MAX;

	for (const struct lease *lease = manager->leases; lease; lease = lease->next)
		if (lease->known && lease->proof == proof)
			return lease->layout;
	for (uint32_t i = 0; i < LAYOUTS; i++)
		if (jobs_at(manager, i) < nr) {
			layout = i;
			nr = jobs_at(manager, i);
		}
	return layout;
}

static uint32_t groups_of(const struct switch_manager *manager, uint64_t proof)
{
	uint32_t nr = 0;

	for (const struct grant *grant = manager->grants; grant; grant = grant->next)
		nr += grant->proof == proof;
	return nr;
}

/* Who is to be in it, and may be. */
static int members_find(const struct switch_manager *manager, const struct lease *asker,
			struct grant *grant, uint32_t *hosts, struct answer *answer)
{
	bool asks_for_itself = false;

	for (uint32_t i = 0; i < grant->nr_members; i++) {
		const struct muster_manager_member *member = &manager->in.members[i];

		grant->members[i] = lease_of(manager, member->host);
		hosts[i] = member->host;
		asks_for_itself |= grant->members[i] == asker;
		if (!grant->members[i] || grant->members[i]->incarnation != member->incarnation)
			return refuse(answer, -EHOSTUNREACH, "a member is not connected to the manager");
		if (grant->members[i]->proof != asker->proof)
			return refuse(answer, -EPERM, "a member belongs to another job");
	}
	return asks_for_itself ? 0 : refuse(answer, -EPERM, "who asks is no member");
}

/* What the network says of a branch, and what the members do. */
static void branch_fill(const struct switch_manager *manager, const struct grant *grant,
			uint64_t key, struct muster_switch_group *group)
{
	const struct muster_manager_message *wish = &manager->in.head;
	struct muster_switch_child *children = (struct muster_switch_child *)group->children;
	uint32_t life = manager->config.boxes[0].life;

	group->tree = grant->tree;
	group->group = grant->group;
	group->owner = grant->proof;
	group->type = wish->type;
	group->locks = wish->type == MUSTER_SWITCH_SAT && manager->config.shared;
	group->job = wish->job;
	group->key = key;
	group->payload_max = wish->type == MUSTER_SWITCH_LLT ? manager->config.payload_max : 0;
	group->parent_incarnation = life;
	for (uint32_t i = 0; i < group->nr_children; i++) {
		const struct muster_manager_member *member = &manager->in.members[children[i].member];

		children[i].incarnation = life;
		if (children[i].node >= MUSTER_NODE_AGGREGATION)
			continue;
		children[i].incarnation = member->incarnation;
		children[i].vp = member->vp;
		children[i].context = wish->context;
		children[i].life = wish->life;
	}
}

static int branches_add(struct switch_manager *manager, const struct grant *grant, uint64_t key,
			const struct muster_fabric_group *laid, struct answer *answer)
{
	int err = 0;

	for (uint32_t i = 0; i < laid->nr_branches && !err; i++) {
		branch_fill(manager, grant, key, &laid->branches[i].group);
		err = muster_switch_group_add(manager->config.boxes[laid->branches[i].number].sw,
					      &laid->branches[i].group);
	}
	if (!err)
		return 0;
	group_remove(manager, grant->tree, grant->group);
	return refuse(answer, err, err == -EBUSY ? "two streaming trees are at a switch already" :
				   err == -ENOSPC ? "a switch has no room for another group" :
				   strerror(-err));
}

static int tree_lay(struct switch_manager *manager, const struct grant *grant,
		    const uint32_t *hosts, uint64_t key, struct answer *answer)
{
	const struct muster_fabric *fabric = manager->config.fabric;
	struct muster_fabric_group laid;
	struct muster_fabric_end end;
	int err = muster_fabric_group(fabric, grant->tree / 2, hosts, grant->nr_members, &laid, answer->why,
				      sizeof(answer->why));

	if (err)
		return err;
	for (uint32_t i = 0; i < grant->nr_members && !err; i++) {
		muster_fabric_uplink(fabric, hosts[i], &end);
		if (laid.nodes[i] != muster_fabric_node(fabric, end.number))
			err = refuse(answer, -EOPNOTSUPP, "a member's switch has no aggregation node");
	}
	if (!err)
		err = branches_add(manager, grant, key, &laid, answer);
	muster_fabric_group_free(&laid);
	return err;
}

static uint64_t key_new(void)
{
	uint64_t key;

	while (getrandom(&key, sizeof(key), 0) != sizeof(key) || !key)
		;
	return key;
}

static const struct grant *grant_of(const struct switch_manager *manager, uint32_t tree, uint32_t group)
{
	const struct grant *grant = manager->grants;

	while (grant && (grant->tree != tree || grant->group != group))
		grant = grant->next;
	return grant;
}

static bool same_members(const struct grant *a, const struct grant *b)
{
	return a->nr_members == b->nr_members &&
	       !memcmp(a->members, b->members, a->nr_members * sizeof(a->members[0]));
}

/* It is locked by a group of the same members, or it is this job's alone. */
static int stream_check(const struct switch_manager *manager, const struct grant *grant,
			struct answer *answer)
{
	const struct muster_manager_message *wish = &manager->in.head;
	const struct grant *pair = grant_of(manager, grant->tree - 1u, wish->group);

	if (manager->config.shared)
		return pair && pair->group == grant->group && same_members(pair, grant) ? 0 :
		       refuse(answer, -EINVAL, "the streaming group has no low-latency one that locks it");
	for (pair = manager->grants; pair; pair = pair->next)
		if (pair->tree == grant->tree && pair->proof != grant->proof)
			return refuse(answer, -EBUSY, "the streaming tree is another job's own (muster-switchd --shared)");
	return 0;
}

static int grant_make(struct switch_manager *manager, const struct lease *asker,
		      struct grant *grant, struct answer *answer)
{
	const struct muster_manager_message *wish = &manager->in.head;
	uint32_t *hosts = calloc(grant->nr_members, sizeof(*hosts));
	uint64_t key = key_new();
	int err = hosts ? 0 : -ENOMEM;

	if (!err && groups_of(manager, asker->proof) >= manager->config.groups_max)
		err = refuse(answer, -EDQUOT, "the job has as many groups as it may");
	if (!err)
		err = members_find(manager, asker, grant, hosts, answer);
	if (!err && grant->tree % 2)
		err = stream_check(manager, grant, answer);
	if (!err)
		err = tree_lay(manager, grant, hosts, key, answer);
	free(hosts);
	if (err)
		return err;
	answer->head.tree = grant->tree;
	answer->head.group = grant->group;
	answer->head.key = key;
	if (wish->type == MUSTER_SWITCH_SAT && manager->config.shared)
		answer->head.flags = MUSTER_MANAGER_LOCKS;
	answer->head.payload_max = wish->type == MUSTER_SWITCH_SAT ? MUSTER_MTU :
				   manager->config.payload_max ? manager->config.payload_max :
				   MUSTER_SWITCH_LLT_BYTES;
	return 0;
}

/* A streaming group that is locked has that of the low-latency one. */
static uint32_t handle_for(struct switch_manager *manager, const struct muster_manager_message *wish)
{
	if (wish->type == MUSTER_SWITCH_SAT && manager->config.shared)
		return wish->group;
	if (!++manager->last_group)
		++manager->last_group;
	return manager->last_group;
}

static int create(struct switch_manager *manager, const struct lease *asker, struct answer *answer)
{
	const struct muster_manager_message *wish = &manager->in.head;
	struct grant *grant;
	int err;

	if (!wish->nr_members || wish->type > MUSTER_SWITCH_SAT)
		return refuse(answer, -EINVAL, "the request makes no sense");
	grant = calloc(1, sizeof(*grant) + wish->nr_members * sizeof(grant->members[0]));
	if (!grant)
		return refuse(answer, -ENOMEM, "the manager has no memory");
	grant->nr_members = grant->nr_left = wish->nr_members;
	grant->tree = (uint16_t)(2 * asker->layout + wish->type);
	grant->group = handle_for(manager, wish);
	grant->proof = asker->proof;
	grant->asker = asker;
	grant->tag = wish->tag;
	err = grant_make(manager, asker, grant, answer);
	if (err) {
		free(grant);
		return err;
	}
	grant->next = manager->grants;
	manager->grants = grant;
	return 0;
}

/* ---- what hosts say --------------------------------------------------------------------- */

static int hello(struct switch_manager *manager, struct lease *lease, struct answer *answer)
{
	const struct muster_manager_message *said = &manager->in.head;

	if (said->version != MUSTER_MANAGER_VERSION)
		return refuse(answer, -EPROTO, "the manager is of another version");
	if (said->host >= muster_fabric_hosts(manager->config.fabric))
		return refuse(answer, -EINVAL, "the network has no such host");
	if (lease->known || lease_of(manager, said->host))
		return refuse(answer, -EEXIST, "the host is connected already");
	lease->layout = layout_for(manager, said->proof);
	lease->known = true;
	lease->host = said->host;
	lease->incarnation = said->life;
	lease->proof = said->proof;
	return 0;
}

/* -EPIPE: it is over. */
static int answer_send(const struct lease *lease, struct answer *answer, uint16_t kind, int err)
{
	size_t bytes = sizeof(answer->head) + (err ? strlen(answer->why) + 1 : 0);

	answer->head.version = MUSTER_MANAGER_VERSION;
	answer->head.kind = kind;
	answer->head.status = (uint32_t)-err;
	return send(lease->fd, answer, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -EPIPE : 0;
}

static bool well_formed(const struct received *in, size_t bytes)
{
	return bytes >= sizeof(in->head) &&
	       in->head.nr_members <= MUSTER_MANAGER_MEMBERS_MAX &&
	       bytes == sizeof(in->head) + in->head.nr_members * sizeof(in->members[0]);
}

/* 1: something came; 0: nothing more; -EPIPE: the connection is over, or makes no sense. */
static int hear(struct switch_manager *manager, struct lease *lease)
{
	struct answer answer = { .head.tag = 0 };
	ssize_t bytes = recv(lease->fd, &manager->in, sizeof(manager->in), MSG_DONTWAIT);
	int err;

	if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (bytes <= 0 || !well_formed(&manager->in, (size_t)bytes))
		return -EPIPE;
	if (!lease->known && manager->in.head.kind != MUSTER_MANAGER_HELLO &&
	    manager->in.head.kind != MUSTER_MANAGER_CUT)
		return -EPIPE;	/* it would pass for host 0 */
	answer.head.tag = manager->in.head.tag;
	switch (manager->in.head.kind) {
	case MUSTER_MANAGER_HELLO:
		err = answer_send(lease, &answer, MUSTER_MANAGER_WELCOME,
				  hello(manager, lease, &answer));
		break;
	case MUSTER_MANAGER_CREATE:
		err = answer_send(lease, &answer, MUSTER_MANAGER_CREATED,
				  create(manager, lease, &answer));
		break;
	case MUSTER_MANAGER_LEAVE:
		if (manager->in.head.tag)
			give_back(manager, lease, manager->in.head.tag);
		else
			leave(manager, lease, &manager->in.head);
		err = 0;
		break;
	case MUSTER_MANAGER_CUT:
		err = answer_send(lease, &answer, MUSTER_MANAGER_DONE,
				  switch_cut_take(&manager->config, &manager->in.head,
						  manager->in.members, answer.why));
		break;
	default:
		err = -EPIPE;
	}
	return err ? err : 1;
}

/* ---- connections ---------------------------------------------------------------------------- */

/* Those who are not let in wait: they are connected, and hear nothing yet. */
static void listen_on(struct switch_manager *manager, bool on)
{
	struct epoll_event event = { .events = on ? EPOLLIN : 0 };

	epoll_ctl(manager->epoll_fd, EPOLL_CTL_MOD, manager->listen_fd, &event);
	manager->is_full = !on;
}

static void lease_end(struct switch_manager *manager, struct lease *lease)
{
	struct lease **place = &manager->leases;

	leave(manager, lease, NULL);
	while (*place != lease)
		place = &(*place)->next;
	*place = lease->next;
	close(lease->fd);
	free(lease);
	if (manager->is_full)
		listen_on(manager, true);
}

/* Who cannot be let in is still there to be seen at once; so nobody looks until that can change. */
static void nobody_let_in(struct switch_manager *manager)
{
	if (errno != EMFILE && errno != ENFILE)
		return;
	if (!manager->said_full)
		fprintf(stderr, "muster-switchd: manager: no file descriptor is left for more hosts, which wait until one has gone: %s\n",
			strerror(errno));
	manager->said_full = true;
	if (manager->leases)
		listen_on(manager, false);
}

static void lease_begin(struct switch_manager *manager)
{
	int fd = accept4(manager->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct lease *lease = fd >= 0 && daemon_same_user(fd) ? calloc(1, sizeof(*lease)) : NULL;
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = lease };

	if (fd < 0) {
		nobody_let_in(manager);
		return;
	}
	if (!lease || epoll_ctl(manager->epoll_fd, EPOLL_CTL_ADD, fd, &event)) {
		free(lease);
		close(fd);
		return;
	}
	lease->fd = fd;
	lease->next = manager->leases;
	manager->leases = lease;
}

bool switch_manager_step(struct switch_manager *manager)
{
	struct epoll_event events[EVENTS];
	int nr = epoll_wait(manager->epoll_fd, events, EVENTS, 0), ret;

	for (int i = 0; i < nr; i++) {
		struct lease *lease = events[i].data.ptr;

		if (!lease) {
			lease_begin(manager);
			continue;
		}
		ret = hear(manager, lease);
		if (ret < 0)
			lease_end(manager, lease);
	}
	return nr > 0;
}

int switch_manager_fd(const struct switch_manager *manager)
{
	return manager->epoll_fd;
}

/* ---- opening and closing -------------------------------------------------------------------- */

int switch_manager_open(const struct switch_manager_config *config,
			struct switch_manager **result)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct switch_manager *manager = calloc(1, sizeof(*manager));
	int err = 0;

	if (!manager)
		return -ENOMEM;
	manager->config = *config;
	manager->listen_fd = daemon_listen(config->address);
	manager->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (manager->listen_fd < 0)
		err = manager->listen_fd;
	else if (manager->epoll_fd < 0 ||
		 epoll_ctl(manager->epoll_fd, EPOLL_CTL_ADD, manager->listen_fd, &event))
		err = -errno;
	if (err)
		switch_manager_close(manager);
	else
		*result = manager;
	return err;
}

void switch_manager_close(struct switch_manager *manager)
{
	if (!manager)
		return;
	while (manager->leases)
		lease_end(manager, manager->leases);
	if (manager->listen_fd >= 0)
		close(manager->listen_fd);
	if (*manager->config.address != '@' && manager->listen_fd >= 0)
		unlink(manager->config.address);
	if (manager->epoll_fd >= 0)
		close(manager->epoll_fd);
	free(manager);
}
