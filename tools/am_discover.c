// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The network as its switches say it (am.h): each, as it comes, what is at its ports. What two say of a link must
 * agree: of switches that contradict each other the one that came later is refused. When all that are named have come,
 * the network is known, and does not change any more; who comes anew must say the same again. If it is given
 * beforehand, each switch is checked against that.
 */
#include "am.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric_file.h"

MUSTER_STATIC_ASSERT(MUSTER_MANAGER_NOTHING == MUSTER_FABRIC_NOTHING, "nothing is said by one word");

static int said_note(const struct am *am, struct am_peer *peer, char *why)
{
	const struct muster_manager_message *head = &am->in.head;

	free(peer->ports);	/* of what was refused */
	peer->ports = calloc(head->nr_members + 1, sizeof(*peer->ports));
	if (!peer->ports)
		return am_refuse(why, -ENOMEM, "the manager has no memory");
	for (uint32_t i = 0; i < head->nr_members; i++)
		peer->ports[i] = am->in.ports[i].node;
	peer->network = head->key;
	peer->said = (struct muster_fabric_said){
		.number = head->host - MUSTER_NODE_AGGREGATION, .is_plain = head->flags & MUSTER_MANAGER_PLAIN,
		.radix = head->nr_members, .nodes = peer->ports,
	};
	return 0;
}

/* Ways are laid by what a switch has been told elsewhere: by the same network? */
static int ways_agree(const struct am_peer *peer, uint64_t digest, char *why)
{
	if (peer->network == digest)
		return 0;
	snprintf(why, AM_WHY_MAX, "the ways of switch %u are laid by another network", peer->said.number);
	return -EINVAL;
}

/* ---- as they come ------------------------------------------------------------------------------ */

/* newcomer: who is not taken for a switch yet, or NULL. */
static bool has_said(const struct am_peer *peer, const struct am_peer *newcomer)
{
	return peer == newcomer || (peer->kind == AM_SWITCH && !peer->over);
}

static int found_take(struct am *am, struct muster_fabric *found, const struct am_peer *newcomer, char *why)
{
	uint64_t digest = muster_fabric_digest(found);
	int err = 0;

	for (const struct am_peer *peer = am->peers; peer && !err; peer = peer->next)
		if (has_said(peer, newcomer))
			err = ways_agree(peer, digest, why);
	if (err)
		muster_fabric_free(found);
	else
		am->fabric = am->found = found;
	return err;
}

/* From what all have said. Return: 0: the network is known; -EAGAIN: a switch has not come; -errno; and why. */
static int discover(struct am *am, const struct am_peer *newcomer, char *why)
{
	struct muster_fabric_said *all;
	struct muster_fabric *found;
	uint32_t nr = 0;
	int err;

	for (const struct am_peer *peer = am->peers; peer; peer = peer->next)
		nr += has_said(peer, newcomer);
	all = calloc(nr + 1, sizeof(*all));
	if (!all)
		return am_refuse(why, -ENOMEM, "the manager has no memory");
	nr = 0;
	for (const struct am_peer *peer = am->peers; peer; peer = peer->next)
		if (has_said(peer, newcomer))
			all[nr++] = peer->said;
	err = muster_fabric_discover(all, nr, &found, why, AM_WHY_MAX);
	free(all);
	return err ? err : found_take(am, found, newcomer, why);
}

int am_discover_hear(struct am *am, struct am_peer *peer, char *why)
{
	int err = said_note(am, peer, why);

	if (!err && !am->fabric) {
		err = discover(am, peer, why);
		return err == -EAGAIN ? 0 : err;
	}
	if (!err)
		err = muster_fabric_agrees(am->fabric, &peer->said, why, AM_WHY_MAX);
	return err ? err : ways_agree(peer, muster_fabric_digest(am->fabric), why);
}

/* Who was in the way of a network that is whole may have gone. */
int am_discovered(struct am *am, char *why)
{
	int err = am->fabric ? 0 : discover(am, NULL, why);

	return err == -EAGAIN ? -EHOSTUNREACH : err;
}
