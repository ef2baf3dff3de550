// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the manager has (am.h), as text: the network, switches, the hosts' leases, and groups on trees. A job is
 * named by a number that follows from what its hosts have in common, without telling that.
 */
#include "am.h"

#include <inttypes.h>

static uint32_t job_of(uint64_t proof)
{
	return (uint32_t)((proof ^ proof >> 31) * 0x9e3779b97f4a7c15ull >> 32);
}

static void report_network(struct am *am, FILE *to)
{
	char why[AM_WHY_MAX];

	if (am_discovered(am, why))
		fprintf(to, "network unknown: %s\n", why);
	else
		fprintf(to, "network %" PRIu32 " hosts %" PRIu32 " switches radix %" PRIu32 "\n",
			muster_fabric_hosts(am->fabric), muster_fabric_switches(am->fabric),
			muster_fabric_radix(am->fabric));
}

/* As muster_fabric shows them. */
static void report_switch(const struct am *am, const struct am_peer *peer, FILE *to)
{
	fprintf(to, "switch %" PRIu32 " life %" PRIu32 "%s ports", peer->number, peer->life,
		am->drain.switches[peer->number] ? " drained" : "");
	for (uint32_t port = 0; port < peer->said.radix; port++) {
		uint32_t node = peer->said.nodes[port];

		if (node < MUSTER_NODE_AGGREGATION)
			fprintf(to, " %" PRIu32 "=h%" PRIu32, port, node);
		else if (node != MUSTER_FABRIC_NOTHING)
			fprintf(to, " %" PRIu32 "=s%" PRIu32, port, node - MUSTER_NODE_AGGREGATION);
	}
	fprintf(to, "\n");
}

static void report_peers(const struct am *am, FILE *to)
{
	for (const struct am_peer *peer = am->peers; peer; peer = peer->next)
		if (peer->kind == AM_SWITCH)
			report_switch(am, peer, to);
	for (const struct am_peer *peer = am->peers; peer; peer = peer->next)
		if (peer->kind == AM_HOST)
			fprintf(to, "host %" PRIu32 " life %" PRIu32 " job %08" PRIx32 " layout %" PRIu32 "\n",
				peer->number, peer->life, job_of(peer->proof), peer->layout);
}

static void report_group(const struct am_group *group, FILE *to)
{
	fprintf(to, "group %" PRIu32 " tree %u %s job %08" PRIx32 "%s switches", group->handle, group->tree,
		group->tree % 2 ? "streaming" : "low-latency", job_of(group->proof),
		!group->made ? " in the making" : group->heir ? " moves away" : "");
	for (uint32_t i = 0; i < group->nr_switches; i++)
		fprintf(to, " %" PRIu32 "%s", group->switches[i].number, group->switches[i].held ? "" : "?");
	fprintf(to, " hosts");
	for (uint32_t i = 0; i < group->nr_members; i++)
		fprintf(to, " %" PRIu32 "%s", group->members[i].host,
			group->members[i].left ? " (left)" : group->members[i].lease ? "" : " (unclaimed)");
	fprintf(to, "\n");
}

void am_report(struct am *am, FILE *to)
{
	uint32_t nr = 0;

	report_network(am, to);
	report_peers(am, to);
	for (const struct am_group *group = am->groups; group; group = group->next, nr++)
		report_group(group, to);
	fprintf(to, "%" PRIu32 " groups\n", nr);
	fflush(to);
}
