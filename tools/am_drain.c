// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Draining a switch (am.h): ways and groups move away from it while jobs go on, until nothing goes over it
 * any more. Of their two ways all switches lay the other one around it; when all have, all take it, and are asked
 * again and again what is left on the one before. Meanwhile groups that lie on the switch are made anew
 * elsewhere (am_move.c). Taken back, ways are laid as before; groups stay where they are.
 */
#include "am.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

enum { EMPTY_MS = 20 };

struct ways_message {
	struct muster_manager_message head;
	struct muster_manager_child without[MUSTER_SWITCH_RADIX_MAX];
};

int am_drain_open(struct am *am)
{
	am->drain.switches = calloc(MUSTER_FABRIC_NODES_MAX, sizeof(*am->drain.switches));
	return am->drain.switches ? 0 : -ENOMEM;
}

void am_drain_close(struct am *am)
{
	muster_fabric_free(am->drain.around);
	free(am->drain.switches);
}

const struct muster_fabric *am_fabric(const struct am *am)
{
	return am->drain.around ? am->drain.around : am->fabric;
}

/* ---- those who wait ------------------------------------------------------------------------- */

bool am_drain_is_wanted(const struct am *am)
{
	const struct am_peer *peer = am->peers;

	while (peer && (!peer->drains || peer->over))
		peer = peer->next;
	return peer;
}

void am_drain_failed(struct am *am, int err, const char *why)
{
	const struct muster_manager_message head = { .kind = MUSTER_MANAGER_DONE };

	for (struct am_peer *peer = am->peers; peer; peer = peer->next) {
		if (peer->drains)
			am_answer(am, peer, &head, err, why);
		peer->drains = false;
	}
}

/* ---- what switches are asked ------------------------------------------------------------------ */

/* which: NULL for all. Those of them that are there; more than answer is not awaited. */
static void switches_ask(struct am *am, const bool *which, struct muster_manager_message *head, size_t bytes)
{
	const struct am_ask ask = { .drains = true };

	for (uint32_t i = 0; i < muster_fabric_switches(am->fabric); i++)
		if (!which || which[i])
			am->drain.awaited += !am_ask(am, i, &ask, head, bytes);
}

static void lay(struct am *am)
{
	struct ways_message message = { .head = {
		.kind = MUSTER_MANAGER_WAYS, .context = !am->drain.way,
	} };
	uint32_t *nr = &message.head.nr_members;

	for (uint32_t i = 0; i < muster_fabric_switches(am->fabric); i++)
		if (am->drain.switches[i])
			message.without[(*nr)++].node = MUSTER_NODE_AGGREGATION + i;
	am->drain.phase = AM_DRAIN_LAYS;
	switches_ask(am, NULL, &message.head, sizeof(message.head) + *nr * sizeof(message.without[0]));
}

static void take(struct am *am)
{
	struct muster_manager_message head = { .kind = MUSTER_MANAGER_TAKE, .context = !am->drain.way };

	am->drain.way = !am->drain.way;
	am->drain.phase = AM_DRAIN_TAKES;
	switches_ask(am, NULL, &head, sizeof(head));
}

/* By the way that now is nothing goes over a drained switch but what is its own groups'. */
static void ask_what_is_left(struct am *am)
{
	struct muster_manager_message head = { .kind = MUSTER_MANAGER_PASSED, .context = !am->drain.way };

	am->drain.left = am->drain.passed = 0;
	am->drain.again_us = UINT64_MAX;
	switches_ask(am, NULL, &head, sizeof(head));
	head.context = am->drain.way;
	switches_ask(am, am->drain.switches, &head, sizeof(head));
}

/*
 * What is not left anywhere may still be between two switches that were asked one after the other; it
 * would have gone on since. The last of a group's packets come as it is moved.
 */
static void left_review(struct am *am)
{
	struct am_drain *drain = &am->drain;

	if (drain->moved && !drain->left && drain->passed == drain->passed_before)
		drain->phase = AM_DRAIN_RESTS;
	drain->passed_before = drain->passed;
	drain->again_us = muster_clock_us() + EMPTY_MS * 1000;
}

static void go_on(struct am *am)
{
	switch (am->drain.phase) {
	case AM_DRAIN_LAYS:
		take(am);
		break;
	case AM_DRAIN_TAKES:
		am->drain.phase = AM_DRAIN_EMPTIES;
		am->drain.passed_before = UINT64_MAX;
		am->drain.again_us = 0;
		break;
	case AM_DRAIN_EMPTIES:
		left_review(am);
		break;
	case AM_DRAIN_RESTS:
	case AM_DRAIN_BEGINS:
		break;
	}
}

static int network_set(struct am *am, uint32_t number, bool drained, char *why)
{
	struct muster_fabric *around;
	int err;

	am->drain.switches[number] = drained;
	err = muster_fabric_without(am->fabric, am->drain.switches, &around, why, AM_WHY_MAX);
	if (err) {
		am->drain.switches[number] = !drained;
		return err;
	}
	muster_fabric_free(am->drain.around);
	am->drain.around = around;
	return 0;
}

/* Nobody has taken the ways that were being laid. */
static void give_up(struct am *am)
{
	char why[AM_WHY_MAX];

	am->drain.phase = AM_DRAIN_RESTS;
	network_set(am, am->drain.ordered, !am->drain.switches[am->drain.ordered], why);
}

/* Who has gone is on no way. One that cannot lay it: nobody takes it; not yet: all are asked again. */
void am_drain_answered(struct am *am, int err, const char *why, const struct muster_manager_message *said)
{
	am->drain.awaited--;
	if (err == -EAGAIN && am->drain.phase == AM_DRAIN_LAYS) {
		am->drain.phase = AM_DRAIN_BEGINS;
		am->drain.again_us = muster_clock_us() + EMPTY_MS * 1000;
	} else if (err && said && am->drain.phase == AM_DRAIN_LAYS) {
		give_up(am);
		am_drain_failed(am, err, why);
	}
	if (said && am->drain.phase == AM_DRAIN_EMPTIES) {
		am->drain.left += said->group;
		am->drain.passed += said->key;
	}
	if (!am->drain.awaited)
		go_on(am);
}

static bool is_neighbour(const struct am_peer *peer, uint32_t number)
{
	for (uint32_t port = 0; port < peer->said.radix; port++)
		if (peer->said.nodes[port] == MUSTER_NODE_AGGREGATION + number)
			return true;
	return false;
}

/* One that was begun behind the others, in the place of one that is no more, speaks to them first. */
static void neighbours_tell(struct am *am, const struct am_peer *peer)
{
	const struct am_ask ask = { .drains = false };

	for (const struct am_peer *other = am->peers; other; other = other->next) {
		struct muster_manager_message head = {
			.kind = MUSTER_MANAGER_MEET, .life = other->life,
			.host = MUSTER_NODE_AGGREGATION + other->number,
		};

		if (other->kind == AM_SWITCH && other->life != peer->life &&
		    is_neighbour(peer, other->number))
			am_ask(am, peer->number, &ask, &head, sizeof(head));
	}
}

/* The first says which way it was; a new one in the place of another begins with the first way. */
void am_drain_met(struct am *am, const struct am_peer *peer, uint32_t way)
{
	struct muster_manager_message head = { .kind = MUSTER_MANAGER_TAKE, .context = am->drain.way };
	const struct am_ask ask = { .drains = false };
	const struct am_peer *other = am->peers;

	while (other && (other == peer || other->kind != AM_SWITCH))
		other = other->next;
	if (!other)
		am->drain.way = way & 1;
	else if (way != am->drain.way)
		am_ask(am, peer->number, &ask, &head, sizeof(head));
	neighbours_tell(am, peer);
}

/* ---- orders ------------------------------------------------------------------------------------- */

static int all_there(const struct am *am, uint32_t but, char *why)
{
	uint32_t nr = muster_fabric_switches(am->fabric), i = 0;

	while (i < nr && (i == but || am_find(am, AM_SWITCH, i)))
		i++;
	if (i == nr)
		return 0;
	snprintf(why, AM_WHY_MAX, "switch %u is not connected to the manager", i);
	return -EHOSTUNREACH;
}

static uint32_t nr_drained(const struct am *am)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < muster_fabric_switches(am->fabric); i++)
		nr += am->drain.switches[i];
	return nr;
}

static int begin(struct am *am, bool drained, char *why)
{
	uint32_t number = am->in.members[0].host - MUSTER_NODE_AGGREGATION;
	int err = am_discovered(am, why);

	if (am->in.head.version != MUSTER_MANAGER_VERSION || am->in.head.nr_members != 1)
		return am_refuse(why, -EPROTO, "the manager is of another version");
	if (err)
		return err;
	if (number >= muster_fabric_switches(am->fabric))
		return am_refuse(why, -EINVAL, "the network has no such switch");
	if (am->drain.phase != AM_DRAIN_RESTS || am->drain.awaited)
		return am_refuse(why, -EBUSY, "ways are changing for another order");
	if (am->drain.switches[number] == drained)
		return drained ? 0 : am_refuse(why, -ENOENT, "that switch is not drained");
	if (drained && nr_drained(am) == MUSTER_SWITCH_RADIX_MAX)
		return am_refuse(why, -E2BIG, "so many switches are drained already");
	err = all_there(am, drained ? number : UINT32_MAX, why);
	if (!err)
		err = network_set(am, number, drained, why);
	am->drain.ordered = number;
	if (!err)
		lay(am);
	return err;
}

static void order(struct am *am, struct am_peer *asker, bool drained)
{
	const struct muster_manager_message head = { .kind = MUSTER_MANAGER_DONE };
	char why[AM_WHY_MAX];
	int err = begin(am, drained, why);

	asker->drains = !err;
	if (err)
		am_answer(am, asker, &head, err, why);
}

void am_drain(struct am *am, struct am_peer *asker)
{
	order(am, asker, true);
}

void am_undrain(struct am *am, struct am_peer *asker)
{
	order(am, asker, false);
}

static bool is_due(const struct am_drain *drain, enum am_drain_phase phase, uint64_t now_us)
{
	return drain->phase == phase && !drain->awaited && now_us >= drain->again_us;
}

int am_drain_step(struct am *am)
{
	struct am_drain *drain = &am->drain;
	uint64_t now_us = muster_clock_us();

	drain->moved = am_moves_begin(am);
	if (is_due(drain, AM_DRAIN_BEGINS, now_us) && am_drain_is_wanted(am))
		lay(am);
	else if (is_due(drain, AM_DRAIN_BEGINS, now_us))
		give_up(am);
	if (is_due(drain, AM_DRAIN_EMPTIES, now_us))
		ask_what_is_left(am);
	if (am_drain_is_wanted(am) && drain->moved && drain->phase == AM_DRAIN_RESTS)
		am_drain_failed(am, 0, NULL);
	return (drain->phase == AM_DRAIN_EMPTIES || drain->phase == AM_DRAIN_BEGINS) && !drain->awaited ?
	       EMPTY_MS : -1;
}
