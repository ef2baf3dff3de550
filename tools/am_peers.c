// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Who is connected to the manager (am.h): one socket that keeps the bounds of messages for each. Only
 * processes of the same user are heard, and only once they have said who they are. Nobody is waited for:
 * what a switch has no room for is kept, up to a limit, and whoever else does not read is over.
 */
#include "am.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon.h"

enum { EVENTS = 32 };

struct answer {
	struct muster_manager_message head;
	char why[AM_WHY_MAX];
};

int am_refuse(char *why, int err, const char *sentence)
{
	snprintf(why, AM_WHY_MAX, "%s", sentence);
	return err;
}

struct am_peer *am_find(const struct am *am, enum am_peer_kind kind, uint32_t number)
{
	struct am_peer *peer = am->peers;

	while (peer && (peer->kind != kind || peer->number != number || peer->over))
		peer = peer->next;
	return peer;
}

/* ---- saying ------------------------------------------------------------------------------- */

static void listen_for(struct am *am, struct am_peer *peer)
{
	struct epoll_event event = {
		.events = EPOLLIN | (peer->outbox.first ? EPOLLOUT : 0), .data.ptr = peer,
	};

	epoll_ctl(am->epoll_fd, EPOLL_CTL_MOD, peer->fd, &event);
}

/* Who is no switch and no host is said nothing that it has not asked for. */
static size_t unheard_max(const struct am_peer *peer)
{
	return peer->kind == AM_STRANGER ? 0 : AM_UNHEARD_MAX;
}

void am_say(struct am *am, struct am_peer *peer, const void *message, size_t bytes)
{
	if (peer->over)
		return;
	peer->over = outbox_say(&peer->outbox, peer->fd, message, bytes) ||
		     peer->outbox.bytes > unheard_max(peer);
	if (peer->outbox.first)
		listen_for(am, peer);
}

static void say_more(struct am *am, struct am_peer *peer)
{
	peer->over |= outbox_flush(&peer->outbox, peer->fd) != 0;
	listen_for(am, peer);
}

void am_answer(struct am *am, struct am_peer *peer, const struct muster_manager_message *head, int err,
	       const char *why)
{
	struct answer answer = { .head = *head };

	answer.head.version = MUSTER_MANAGER_VERSION;
	answer.head.status = (uint32_t)-err;
	if (err)
		snprintf(answer.why, sizeof(answer.why), "%s", why);
	am_say(am, peer, &answer, sizeof(answer.head) + (err ? strlen(answer.why) + 1 : 0));
}

/* ---- hearing ------------------------------------------------------------------------------ */

static size_t bytes_of_each(uint16_t kind)
{
	return kind == MUSTER_MANAGER_HOLD ? sizeof(struct muster_manager_child) :
	       kind == MUSTER_MANAGER_SWITCH ? sizeof(struct muster_manager_port) :
	       kind == MUSTER_MANAGER_HELLO ? sizeof(struct muster_manager_claim) :
					      sizeof(struct muster_manager_member);
}

/* What a switch says that has refused something is longer, by the sentence. */
static bool well_formed(const struct am_received *in, size_t bytes)
{
	if (bytes < sizeof(in->head))
		return false;
	if (in->head.kind == MUSTER_MANAGER_DONE)
		return true;
	return in->head.nr_members <= MUSTER_MANAGER_MEMBERS_MAX &&
	       bytes == sizeof(in->head) + in->head.nr_members * bytes_of_each(in->head.kind);
}

/* Each by who may say it: a stranger would pass for host 0. */
static void take(struct am *am, struct am_peer *peer)
{
	switch (am->in.head.kind | peer->kind << 16) {
	case MUSTER_MANAGER_HELLO | AM_STRANGER << 16:
	case MUSTER_MANAGER_HELLO | AM_HOST << 16:
		am_host_hello(am, peer);
		break;
	case MUSTER_MANAGER_SWITCH | AM_STRANGER << 16:
		am_switch_hello(am, peer);
		break;
	case MUSTER_MANAGER_CUT | AM_STRANGER << 16:
		am_cut(am, peer);
		break;
	case MUSTER_MANAGER_CLEAN | AM_STRANGER << 16:
		am_clean(am, peer);
		break;
	case MUSTER_MANAGER_DRAIN | AM_STRANGER << 16:
		am_drain(am, peer);
		break;
	case MUSTER_MANAGER_UNDRAIN | AM_STRANGER << 16:
		am_undrain(am, peer);
		break;
	case MUSTER_MANAGER_CREATE | AM_HOST << 16:
		am_host_create(am, peer);
		break;
	case MUSTER_MANAGER_LEAVE | AM_HOST << 16:
		am_host_leave(am, peer);
		break;
	case MUSTER_MANAGER_HOLD | AM_SWITCH << 16:
		am_group_hold(am, peer);
		break;
	case MUSTER_MANAGER_GONE | AM_SWITCH << 16:
		am_switch_gone(am, peer);
		break;
	case MUSTER_MANAGER_DONE | AM_SWITCH << 16:
		am_switch_done(am, peer);
		break;
	default:
		peer->over = true;
	}
}

/* One message; what ends a connection or makes no sense does so for us, too. */
static void hear(struct am *am, struct am_peer *peer)
{
	ssize_t bytes = recv(peer->fd, &am->in, sizeof(am->in) - 1, MSG_DONTWAIT);

	if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (bytes <= 0 || !well_formed(&am->in, (size_t)bytes)) {
		peer->over = true;
		return;
	}
	((char *)&am->in)[bytes] = '\0';	/* a sentence ends there */
	take(am, peer);
}

/* ---- coming and going ---------------------------------------------------------------------- */

/* Those who are not let in wait: they are connected, and hear nothing yet. */
static void listen_on(struct am *am, bool on)
{
	struct epoll_event event = { .events = on ? EPOLLIN : 0 };

	epoll_ctl(am->epoll_fd, EPOLL_CTL_MOD, am->listen_fd, &event);
	am->is_full = !on;
}

/* Who cannot be let in is still there to be seen at once; so nobody looks until that can change. */
static void nobody_let_in(struct am *am)
{
	if (errno != EMFILE && errno != ENFILE)
		return;
	if (!am->said_full)
		fprintf(stderr, "muster-am: no file descriptor is left for more hosts, which wait until one has gone: %s\n",
			strerror(errno));
	am->said_full = true;
	if (am->peers)
		listen_on(am, false);
}

static void peer_begin(struct am *am)
{
	int fd = accept4(am->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct am_peer *peer = fd >= 0 && daemon_same_user(fd) ? calloc(1, sizeof(*peer)) : NULL;
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = peer };

	if (fd < 0) {
		nobody_let_in(am);
		return;
	}
	if (!peer || epoll_ctl(am->epoll_fd, EPOLL_CTL_ADD, fd, &event)) {
		free(peer);
		close(fd);
		return;
	}
	peer->fd = fd;
	peer->next = am->peers;
	am->peers = peer;
}

static void peer_end(struct am *am, struct am_peer *peer)
{
	struct am_peer **place = &am->peers;

	while (*place != peer)
		place = &(*place)->next;
	*place = peer->next;
	am_asks_forget(am, peer, NULL);
	if (peer->kind == AM_HOST)
		am_host_end(am, peer);
	if (peer->kind == AM_SWITCH)
		am_switch_end(am, peer);
	outbox_drop(&peer->outbox);
	close(peer->fd);
	free(peer->claims);
	free(peer->ports);
	free(peer);
	if (am->is_full)
		listen_on(am, true);
}

/* What one's end makes others say may end these. */
static void peers_sweep(struct am *am)
{
	struct am_peer *peer = am->peers;

	while (peer) {
		bool over = peer->over;

		if (over)
			peer_end(am, peer);
		peer = over ? am->peers : peer->next;
	}
}

bool am_step(struct am *am)
{
	struct epoll_event events[EVENTS];
	int nr = epoll_wait(am->epoll_fd, events, EVENTS, 0);

	for (int i = 0; i < nr; i++) {
		struct am_peer *peer = events[i].data.ptr;

		if (!peer) {
			peer_begin(am);
			continue;
		}
		if (events[i].events & EPOLLOUT)
			say_more(am, peer);
		if (events[i].events & ~(uint32_t)EPOLLOUT && !peer->over)
			hear(am, peer);
	}
	peers_sweep(am);
	return nr > 0;
}

bool am_settled(const struct am *am)
{
	const struct am_peer *peer = am->peers;

	while (peer && !peer->outbox.first)
		peer = peer->next;
	return !peer && !am->asks;
}

/* ---- opening and closing -------------------------------------------------------------------- */

int am_open(const struct am_config *config, struct am **result)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct am *am = calloc(1, sizeof(*am));
	int err = 0;

	if (!am)
		return -ENOMEM;
	am->config = *config;
	am->fabric = config->fabric;
	err = am_drain_open(am);
	am->greeted = calloc(MUSTER_FABRIC_NODES_MAX, sizeof(*am->greeted));
	am->listen_fd = daemon_listen(config->address);
	am->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	/* Handles that a manager before us gave are at the switches yet. */
	if (err)
		;
	else if (am->listen_fd < 0)
		err = am->listen_fd;
	else if (!am->greeted)
		err = -ENOMEM;
	else if (am->epoll_fd < 0 ||
		 epoll_ctl(am->epoll_fd, EPOLL_CTL_ADD, am->listen_fd, &event) ||
		 getrandom(&am->last_handle, sizeof(am->last_handle), 0) != sizeof(am->last_handle))
		err = -errno;
	if (err)
		am_close(am);
	else
		*result = am;
	return err;
}

/* The groups stay at the switches: another manager may come. */
void am_close(struct am *am)
{
	if (!am)
		return;
	while (am->groups) {
		struct am_group *group = am->groups;

		am->groups = group->next;
		am_asks_forget(am, NULL, group);
		am_group_free(group);
	}
	while (am->peers)
		peer_end(am, am->peers);
	if (am->listen_fd >= 0)
		close(am->listen_fd);
	if (*am->config.address != '@' && am->listen_fd >= 0)
		unlink(am->config.address);
	if (am->epoll_fd >= 0)
		close(am->epoll_fd);
	am_drain_close(am);
	muster_fabric_free(am->found);
	free(am->greeted);
	free(am);
}
