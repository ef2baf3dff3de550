// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The switches are those of qemu-device/switch/; only links and hosts are made up here: a
 * link takes a packet at any time and brings it one unit later, and a host sends its
 * contributions and takes what comes.
 */
#include "switch_play.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LIFE = 1, JOB = 1, GROUP = 1, KEY = 7, BYTES = 8 };

struct flying {
	struct muster_fabric_end to;
	struct muster_packet packet;
};

struct theatre;

struct player {
	struct theatre *theatre;
	uint32_t number;
	struct muster_switch *sw;
};

struct theatre {
	const struct muster_fabric *fabric;
	struct player *players;
	struct muster_fabric_group group;
	struct switch_play *play;
	struct flying *flying;		/* by packet of the play */
	uint32_t room;
	uint32_t now;
	bool no_memory;
};

/* ---- links ---- */

static bool grow(struct theatre *theatre)
{
	uint32_t room = theatre->room ? 2 * theatre->room : 256;
	void *packets = realloc(theatre->play->packets, room * sizeof(*theatre->play->packets));
	void *flying;

	if (!packets)
		return false;
	theatre->play->packets = packets;
	flying = realloc(theatre->flying, room * sizeof(*theatre->flying));
	if (!flying)
		return false;
	theatre->flying = flying;
	theatre->room = room;
	return true;
}

static void launch(struct theatre *theatre, uint32_t from, uint32_t at,
		   const struct muster_fabric_end *to, const struct muster_packet *packet)
{
	struct switch_play *play = theatre->play;

	if (play->nr == theatre->room && !grow(theatre)) {
		theatre->no_memory = true;
		return;
	}
	play->packets[play->nr] = (struct switch_play_packet){
		.from = from, .at = at, .type = packet->type,
		.to = to->is_host ? to->number : MUSTER_NODE_AGGREGATION + to->number,
		.once = packet->flags & MUSTER_PACKET_ONCE,
	};
	theatre->flying[play->nr++] = (struct flying){ .to = *to, .packet = *packet };
	if (at > play->end)
		play->end = at;
}

static int player_send(void *opaque, uint32_t port, const struct muster_packet *packet,
		       const void *payload)
{
	struct player *player = opaque;
	struct muster_fabric_end to;

	(void)payload;
	if (!muster_fabric_end(player->theatre->fabric, player->number, port, &to))
		return -EHOSTUNREACH;
	launch(player->theatre, MUSTER_NODE_AGGREGATION + player->number, player->theatre->now + 1,
	       &to, packet);
	return 0;
}

static void player_send_once(void *opaque, uint32_t port, const struct muster_packet *packet,
			     const void *payload)
{
	player_send(opaque, port, packet, payload);
}

static void *player_alloc(void *opaque, size_t bytes)
{
	(void)opaque;
	return calloc(1, bytes);
}

static void player_free(void *opaque, void *p, size_t bytes)
{
	(void)opaque;
	(void)bytes;
	free(p);
}

/* ---- the stage ---- */

static int player_open(struct theatre *theatre, uint32_t number)
{
	static const struct muster_switch_world world = {
		.send = player_send, .send_once = player_send_once, .alloc = player_alloc,
		.free = player_free,
	};
	bool trunks[MUSTER_SWITCH_RADIX_MAX];
	const struct muster_switch_config config = {
		.node = MUSTER_NODE_AGGREGATION + number, .incarnation = LIFE,
		.radix = muster_fabric_radix(theatre->fabric), .trunks = trunks,
	};
	struct player *player = &theatre->players[number];

	muster_fabric_trunks(theatre->fabric, number, trunks);
	*player = (struct player){ .theatre = theatre, .number = number };
	return muster_switch_create(&config, &world, player, &player->sw);
}

static int branch_open(struct theatre *theatre, uint8_t type, struct muster_fabric_branch *branch)
{
	struct muster_switch_group *group = &branch->group;
	struct muster_switch_child *children = (struct muster_switch_child *)group->children;

	group->type = type;
	group->group = GROUP;
	group->job = JOB;
	group->key = KEY;
	group->parent_incarnation = LIFE;
	for (uint32_t i = 0; i < group->nr_children; i++)
		children[i].incarnation = LIFE;
	return muster_switch_group_add(theatre->players[branch->number].sw, group);
}

static int group_open(struct theatre *theatre, uint8_t type, char *why, size_t why_len)
{
	uint32_t hosts = muster_fabric_hosts(theatre->fabric), *members;
	int err;

	members = calloc(hosts, sizeof(*members));
	if (!members)
		return -ENOMEM;
	for (uint32_t i = 0; i < hosts; i++)
		members[i] = i;
	err = muster_fabric_group(theatre->fabric, 0, members, hosts, &theatre->group, why, why_len);
	free(members);
	for (uint32_t i = 0; i < theatre->group.nr_branches && !err; i++)
		err = branch_open(theatre, type, &theatre->group.branches[i]);
	return err;
}

/* ---- the play ---- */

static void contribute(struct theatre *theatre, uint32_t host, uint32_t number, uint32_t pulse)
{
	const struct muster_packet packet = {
		.version = MUSTER_PACKET_VERSION, .type = MUSTER_PACKET_TREE_UP, .job = JOB,
		.src_node = host, .dst_node = theatre->group.nodes[host], .src_member = host,
		.number = number, .pulse = pulse, .total = BYTES, .length = BYTES, .incarnation = LIFE,
		.signature = { .type = MUSTER_DTYPE_F64, .op = MUSTER_REDOP_SUM },
		.group = GROUP, .job_key = KEY,
	};
	struct muster_fabric_end to;

	muster_fabric_uplink(theatre->fabric, host, &to);
	launch(theatre, host, pulse + 1, &to, &packet);
}

static void arrive(struct theatre *theatre, uint32_t which)
{
	const struct flying flying = theatre->flying[which];
	const uint8_t payload[BYTES] = { 0 };

	if (!flying.to.is_host)
		muster_switch_receive(theatre->players[flying.to.number].sw, flying.to.port,
				      &flying.packet, payload, flying.packet.length);
}

/* What a switch sends comes later than all that it was sent for. */
static void perform(struct theatre *theatre, uint32_t number, uint32_t pulses)
{
	theatre->play->nr = theatre->play->end = 0;
	for (uint32_t pulse = 0; pulse < pulses; pulse++)
		for (uint32_t host = 0; host < muster_fabric_hosts(theatre->fabric); host++)
			contribute(theatre, host, number, pulse);
	for (theatre->now = 1; theatre->now <= theatre->play->end; theatre->now++)
		for (uint32_t i = 0; i < theatre->play->nr; i++)
			if (theatre->play->packets[i].at == theatre->now)
				arrive(theatre, i);
}

static void theatre_close(struct theatre *theatre)
{
	for (uint32_t i = 0; i < muster_fabric_switches(theatre->fabric) && theatre->players; i++)
		if (theatre->players[i].sw)
			muster_switch_destroy(theatre->players[i].sw);
	muster_fabric_group_free(&theatre->group);
	free(theatre->players);
	free(theatre->flying);
}

int switch_play(const struct muster_fabric *fabric, uint8_t type, uint32_t pulses,
		struct switch_play *play, char *why, size_t why_len)
{
	struct theatre theatre = { .fabric = fabric, .play = play };
	uint32_t switches = muster_fabric_switches(fabric);
	int err = 0;

	*play = (struct switch_play){ 0 };
	*why = '\0';
	theatre.players = calloc(switches, sizeof(*theatre.players));
	if (!theatre.players)
		err = -ENOMEM;
	for (uint32_t i = 0; i < switches && !err; i++)
		err = player_open(&theatre, i);
	if (!err)
		err = group_open(&theatre, type, why, why_len);
	if (!err) {
		perform(&theatre, 0, 1);	/* it brings credits */
		perform(&theatre, 1, pulses);
	}
	if (theatre.no_memory)
		err = -ENOMEM;
	if (err && !*why)
		strncpy(why, strerror(-err), why_len - 1);
	theatre_close(&theatre);
	if (err)
		free(play->packets);
	return err;
}
