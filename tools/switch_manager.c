// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a switch does for its manager (switch_manager.h). One that comes anew is told which groups there
 * are, in the words in which they came, but for who has left, and which hosts have gone. While there is
 * none the groups stay as they are, and it is looked for now and then. The switch never waits for it.
 */
#include "switch_manager.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "daemon.h"
#include "fabric_file.h"
#include "muster_manager.h"
#include "outbox.h"

enum { EVENTS = 32, AGAIN_US = 100000 };

struct branch_message {
	struct muster_manager_message head;
	struct muster_manager_child children[MUSTER_SWITCH_RADIX_MAX];
};

struct switch_message {
	struct muster_manager_message head;
	struct muster_manager_port ports[MUSTER_SWITCH_RADIX_MAX];
};

/* A group that the switch has. */
struct held {
	struct held *next;
	size_t bytes;
	struct branch_message message;	/* so many bytes of it */
};

struct managed {
	struct switch_box *box;
	int fd;				/* -1: there is no manager */
	bool welcome;
	struct outbox outbox;		/* while something waits here nothing is heard */
	struct held *held;
};

struct switch_manager {
	const char *address;
	const struct muster_fabric *fabric;
	uint64_t digest;		/* of the network */
	int epoll_fd;
	int refused;			/* -errno */
	uint64_t again_us;		/* when to look for it; UINT64_MAX: all have it */
	uint32_t nr;
	struct managed *all;
};

struct answer {
	struct muster_manager_message head;
	char why[MUSTER_MANAGER_WHY_MAX];
};

/* ---- the connection ---------------------------------------------------------------------------- */

static void hang_up(struct switch_manager *manager, struct managed *one)
{
	close(one->fd);
	one->fd = -1;
	one->welcome = false;
	outbox_drop(&one->outbox);
	manager->again_us = muster_clock_us() + AGAIN_US;
}

/* op: EPOLL_CTL_ADD or EPOLL_CTL_MOD. */
static int listen_for(const struct switch_manager *manager, struct managed *one, int op)
{
	struct epoll_event event = { .events = one->outbox.first ? EPOLLOUT : EPOLLIN, .data.ptr = one };

	return epoll_ctl(manager->epoll_fd, op, one->fd, &event) ? -errno : 0;
}

/* It hears us no more. What it said before that is heard to its end, as it may have taken groups back. */
static void unheard(const struct switch_manager *manager, struct managed *one)
{
	outbox_drop(&one->outbox);
	shutdown(one->fd, SHUT_WR);
	listen_for(manager, one, EPOLL_CTL_MOD);
}

static void say(const struct switch_manager *manager, struct managed *one, void *message, size_t bytes)
{
	((struct muster_manager_message *)message)->version = MUSTER_MANAGER_VERSION;
	if (one->fd < 0)
		return;
	if (outbox_say(&one->outbox, one->fd, message, bytes))
		unheard(manager, one);
	else if (one->outbox.first)
		listen_for(manager, one, EPOLL_CTL_MOD);
}

static void answer(const struct switch_manager *manager, struct managed *one, uint64_t tag, int err,
		   const char *why)
{
	struct answer said = {
		.head = { .kind = MUSTER_MANAGER_DONE, .tag = tag, .status = (uint32_t)-err },
	};

	if (err)
		snprintf(said.why, sizeof(said.why), "%s", why);
	say(manager, one, &said, sizeof(said.head) + (err ? strlen(said.why) + 1 : 0));
}

static void gone_say(const struct switch_manager *manager, struct managed *one)
{
	struct muster_manager_message message = { .kind = MUSTER_MANAGER_GONE };

	for (uint32_t port = 0; port < one->box->nr_ports; port++)
		if (switch_box_gone(one->box, port, &message.host))
			say(manager, one, &message, sizeof(message));
}

static void introduce(const struct switch_manager *manager, struct managed *one)
{
	uint32_t nodes[MUSTER_SWITCH_RADIX_MAX];
	struct muster_fabric_said itself;
	struct switch_message hello = { .head = {
		.kind = MUSTER_MANAGER_SWITCH, .host = one->box->node, .life = one->box->life,
		.key = manager->digest, .context = muster_switch_ways(one->box->sw),
	} };

	muster_fabric_say(manager->fabric, one->box->number, nodes, &itself);
	hello.head.flags = itself.is_plain ? MUSTER_MANAGER_PLAIN : 0;
	hello.head.nr_members = itself.radix;
	for (uint32_t port = 0; port < itself.radix; port++)
		hello.ports[port].node = nodes[port];
	say(manager, one, &hello, sizeof(hello.head) + itself.radix * sizeof(hello.ports[0]));
	for (struct held *held = one->held; held; held = held->next)
		say(manager, one, &held->message, held->bytes);
	gone_say(manager, one);
}

static bool dial(const struct switch_manager *manager, struct managed *one)
{
	one->fd = daemon_connect(manager->address, SOCK_NONBLOCK);
	if (one->fd < 0)
		return false;
	if (listen_for(manager, one, EPOLL_CTL_ADD)) {
		close(one->fd);
		one->fd = -1;
		return false;
	}
	introduce(manager, one);
	return true;
}

/* ---- groups --------------------------------------------------------------------------------------- */

static struct held **held_of(struct managed *one, uint16_t tree, uint32_t group)
{
	struct held **place = &one->held;

	while (*place && ((*place)->message.head.tree != tree || (*place)->message.head.group != group))
		place = &(*place)->next;
	return place;
}

static int group_add(const struct managed *one, const struct branch_message *said)
{
	const struct muster_manager_message *head = &said->head;
	struct muster_switch_child children[MUSTER_SWITCH_RADIX_MAX];
	const struct muster_switch_group group = {
		.tree = head->tree, .type = head->type, .locks = head->flags & MUSTER_MANAGER_LOCKS,
		.group = head->group, .job = head->job, .owner = head->proof, .key = head->key,
		.payload_max = head->payload_max,
		.segments = head->type == MUSTER_SWITCH_SAT ? one->box->segments : 0,
		.parent_port = (uint8_t)head->context, .parent_node = head->host,
		.parent_incarnation = head->life,
		.nr_children = head->nr_members, .children = children,
	};

	for (uint32_t i = 0; i < head->nr_members; i++) {
		const struct muster_manager_child *child = &said->children[i];

		children[i] = (struct muster_switch_child){
			.node = child->node, .incarnation = child->incarnation, .port = child->port,
			.vp = child->vp, .context = child->context, .life = child->life,
			.member = child->member,
		};
	}
	return muster_switch_group_add(one->box->sw, &group);
}

static int add(struct managed *one, const struct branch_message *said, size_t bytes)
{
	struct held *held = calloc(1, sizeof(*held));
	int err = held ? group_add(one, said) : -ENOMEM;

	if (err) {
		free(held);
		return err;
	}
	held->bytes = bytes;
	memcpy(&held->message, said, bytes);
	held->message.head.kind = MUSTER_MANAGER_HOLD;
	held->next = one->held;
	one->held = held;
	return 0;
}

static void held_remove(struct held **place)
{
	struct held *held = *place;

	*place = held->next;
	free(held);
}

static void take_out(struct managed *one, const struct muster_manager_message *head)
{
	struct held **place = held_of(one, head->tree, head->group);

	muster_switch_group_remove(one->box->sw, head->tree, head->group);
	if (*place)
		held_remove(place);
}

/* Another manager is not to wait for it: it may not come any more. */
static int child_left(struct managed *one, const struct muster_manager_message *head)
{
	struct held *held = *held_of(one, head->tree, head->group);
	uint32_t i = 0, *nr = held ? &held->message.head.nr_members : NULL;

	while (held && i < *nr && held->message.children[i].node != head->host)
		i++;
	if (held && i < *nr) {
		held->message.children[i] = held->message.children[--*nr];
		held->bytes -= sizeof(held->message.children[0]);
	}
	return muster_switch_child_left(one->box->sw, head->tree, head->group, head->host);
}

static const char *reason(int err)
{
	return err == -EBUSY ? "two streaming trees are at a switch already" :
	       err == -EHOSTUNREACH ? "a link between two switches is down" :
	       err == -ENOSPC ? "a switch has no room for another group" : strerror(-err);
}

/* ---- ways ------------------------------------------------------------------------------------------- */

static int ways_lay(const struct switch_manager *manager, struct managed *one, const struct branch_message *said)
{
	bool *without = calloc(muster_fabric_switches(manager->fabric), sizeof(*without));
	int err = without ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < said->head.nr_members && !err; i++) {
		uint32_t number = said->children[i].node - MUSTER_NODE_AGGREGATION;

		if (number < muster_fabric_switches(manager->fabric))
			without[number] = true;
		else
			err = -EINVAL;
	}
	if (!err)
		err = switch_box_ways_lay(one->box, manager->fabric, without, said->head.context);
	free(without);
	return err;
}

static void passed_say(const struct switch_manager *manager, struct managed *one,
		       const struct muster_manager_message *head)
{
	struct muster_manager_message said = { .kind = MUSTER_MANAGER_DONE, .tag = head->tag };
	uint64_t passed;

	said.group = muster_switch_ways_left(one->box->sw, head->context, &passed);
	said.key = passed;
	say(manager, one, &said, sizeof(said));
}

/* ---- hearing --------------------------------------------------------------------------------------- */

static void welcomed(struct switch_manager *manager, struct managed *one, const struct answer *said)
{
	int err = -(int)said->head.status;

	one->welcome = !err;
	if (!err)
		return;
	if (!manager->refused)
		fprintf(stderr, "muster-switchd: the manager at %s refuses switch %u: %s\n", manager->address,
			one->box->number, said->why);
	manager->refused = err;
}

/* False: it makes no sense. */
static bool take(struct switch_manager *manager, struct managed *one, const struct branch_message *said,
		 size_t bytes)
{
	const struct muster_manager_message *head = &said->head;
	int err = 0;

	switch (head->kind) {
	case MUSTER_MANAGER_WELCOME:
		welcomed(manager, one, (const struct answer *)said);
		return true;
	case MUSTER_MANAGER_ADD:
		err = add(one, said, bytes);
		break;
	case MUSTER_MANAGER_REMOVE:
		take_out(one, head);
		return true;
	case MUSTER_MANAGER_FAIL:
		muster_switch_group_fail(one->box->sw, head->tree, head->group);
		return true;
	case MUSTER_MANAGER_CHILD_LEFT:
		err = child_left(one, head);
		break;
	case MUSTER_MANAGER_WAYS:
		err = ways_lay(manager, one, said);
		break;
	case MUSTER_MANAGER_TAKE:
		err = muster_switch_ways_take(one->box->sw, head->context);
		break;
	case MUSTER_MANAGER_MEET:
		err = switch_box_meet(one->box, head->host, head->life);
		break;
	case MUSTER_MANAGER_PASSED:
		passed_say(manager, one, head);
		return true;
	case MUSTER_MANAGER_UNLINK:
		err = switch_box_cut(one->box, head->host);
		break;
	default:
		return false;
	}
	answer(manager, one, head->tag, err, err ? reason(err) : NULL);
	return true;
}

static bool well_formed(const struct branch_message *said, size_t bytes)
{
	return bytes >= sizeof(said->head) && said->head.nr_members <= MUSTER_SWITCH_RADIX_MAX &&
	       (said->head.kind == MUSTER_MANAGER_WELCOME ||
		bytes == sizeof(said->head) + said->head.nr_members * sizeof(said->children[0]));
}

static void hear(struct switch_manager *manager, struct managed *one)
{
	struct branch_message said = { .head.kind = 0 };
	ssize_t bytes = recv(one->fd, &said, sizeof(said) - 1, MSG_DONTWAIT);

	if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (bytes <= 0 || !well_formed(&said, (size_t)bytes) || !take(manager, one, &said, (size_t)bytes))
		hang_up(manager, one);
}

/* ---- steps ------------------------------------------------------------------------------------------ */

static void dial_all(struct switch_manager *manager, uint64_t now_us)
{
	manager->again_us = UINT64_MAX;
	for (uint32_t i = 0; i < manager->nr; i++)
		if (manager->all[i].fd < 0 && !dial(manager, &manager->all[i]))
			manager->again_us = now_us + AGAIN_US;
}

bool switch_manager_step(struct switch_manager *manager, uint64_t now_us)
{
	struct epoll_event events[EVENTS];
	int nr = epoll_wait(manager->epoll_fd, events, EVENTS, 0);

	for (int i = 0; i < nr; i++) {
		struct managed *one = events[i].data.ptr;

		if (!one->outbox.first) {
			hear(manager, one);
			continue;
		}
		if (outbox_flush(&one->outbox, one->fd))
			unheard(manager, one);
		else
			listen_for(manager, one, EPOLL_CTL_MOD);
	}
	if (now_us >= manager->again_us)
		dial_all(manager, now_us);
	return nr > 0;
}

int switch_manager_fd(const struct switch_manager *manager)
{
	return manager->epoll_fd;
}

uint64_t switch_manager_due_us(const struct switch_manager *manager)
{
	return manager->again_us;
}

int switch_manager_welcome(const struct switch_manager *manager)
{
	uint32_t i = 0;

	while (i < manager->nr && manager->all[i].welcome)
		i++;
	return manager->refused ? manager->refused : i == manager->nr;
}

void switch_manager_tell_losses(const struct switch_manager *manager, const struct switch_box *box)
{
	for (uint32_t i = 0; i < manager->nr; i++)
		if (manager->all[i].box == box && manager->all[i].fd >= 0)
			gone_say(manager, &manager->all[i]);
}

/* ---- opening and closing ------------------------------------------------------------------------------ */

int switch_manager_open(const char *address, const struct muster_fabric *fabric, struct switch_box *boxes,
			uint32_t nr, struct switch_manager **result)
{
	struct switch_manager *manager = calloc(1, sizeof(*manager));

	if (!manager)
		return -ENOMEM;
	manager->address = address;
	manager->fabric = fabric;
	manager->digest = muster_fabric_digest(fabric);
	manager->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	manager->all = calloc(nr, sizeof(*manager->all));
	if (manager->epoll_fd < 0 || !manager->all) {
		switch_manager_close(manager);
		return -ENOMEM;
	}
	for (; manager->nr < nr; manager->nr++)
		manager->all[manager->nr] = (struct managed){ .fd = -1, .box = &boxes[manager->nr] };
	*result = manager;
	return 0;
}

void switch_manager_close(struct switch_manager *manager)
{
	if (!manager)
		return;
	for (uint32_t i = 0; i < manager->nr; i++) {
		if (manager->all[i].fd >= 0)
			hang_up(manager, &manager->all[i]);
		while (manager->all[i].held)
			held_remove(&manager->all[i].held);
	}
	free(manager->all);
	if (manager->epoll_fd >= 0)
		close(manager->epoll_fd);
	free(manager);
}

/* ---- handing over --------------------------------------------------------------------------------------- */

/* What is written before the groups of each. */
struct heading {
	uint32_t version;		/* MUSTER_MANAGER_VERSION */
	int32_t fd;
	bool welcome;
	uint32_t nr_held;
};

static bool says_yet(const struct switch_manager *manager)
{
	uint32_t i = 0;

	while (i < manager->nr && !manager->all[i].outbox.first)
		i++;
	return i < manager->nr;
}

static int one_save(const struct managed *one, FILE *to)
{
	struct heading heading = {
		.version = MUSTER_MANAGER_VERSION, .fd = one->fd, .welcome = one->welcome,
	};

	for (const struct held *held = one->held; held; held = held->next)
		heading.nr_held++;
	fwrite(&heading, sizeof(heading), 1, to);
	for (const struct held *held = one->held; held; held = held->next) {
		fwrite(&held->bytes, sizeof(held->bytes), 1, to);
		fwrite(&held->message, held->bytes, 1, to);
	}
	return ferror(to) || (one->fd >= 0 && fcntl(one->fd, F_SETFD, 0)) ? -EIO : 0;
}

int switch_manager_save(const struct switch_manager *manager, FILE *to)
{
	int err = says_yet(manager) ? -EAGAIN : 0;

	for (uint32_t i = 0; i < manager->nr && !err; i++)
		err = one_save(&manager->all[i], to);
	return err;
}

static int held_resume(struct managed *one, FILE *from)
{
	struct held *held = calloc(1, sizeof(*held));

	if (!held)
		return -ENOMEM;
	held->next = one->held;
	one->held = held;
	return fread(&held->bytes, sizeof(held->bytes), 1, from) == 1 &&
	       held->bytes >= sizeof(held->message.head) && held->bytes <= sizeof(held->message) &&
	       fread(&held->message, held->bytes, 1, from) == 1 ? 0 : -EIO;
}

static int connection_resume(const struct switch_manager *manager, struct managed *one, int fd)
{
	if (fd < 0)
		return 0;
	if (fcntl(fd, F_SETFD, FD_CLOEXEC))
		return -errno;
	one->fd = fd;
	return listen_for(manager, one, EPOLL_CTL_ADD);
}

static int one_resume(const struct switch_manager *manager, struct managed *one, FILE *from)
{
	struct heading heading;
	int err = 0;

	if (fread(&heading, sizeof(heading), 1, from) != 1)
		return -EIO;
	if (heading.version != MUSTER_MANAGER_VERSION)
		return -EPROTO;
	one->welcome = heading.welcome;
	for (uint32_t i = 0; i < heading.nr_held && !err; i++)
		err = held_resume(one, from);
	return err ? err : connection_resume(manager, one, heading.fd);
}

/* Those who have no connection look for the manager at once, as again_us is 0. */
int switch_manager_resume(struct switch_manager *manager, FILE *from)
{
	int err = 0;

	for (uint32_t i = 0; i < manager->nr && !err; i++)
		err = one_resume(manager, &manager->all[i], from);
	return err;
}
