// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the manager has (am.h), as text: switches, the hosts' leases, and groups on trees. A job is
 * named by a number that follows from what its hosts have in common, without telling that.
 */
#include "am.h"

#include <inttypes.h>

static uint32_t job_of(uint64_t proof)
{
	return (uint32_t)((proof ^ proof >> 31) * 0x9e3779b97f4a7c15ull >> 32);
}

static void report_peers(const struct am *am, FILE *to)
{
	for (const struct am_peer *peer = am->peers; peer; peer = peer->next)
		if (peer->kind == AM_SWITCH)
			fprintf(to, "switch %" PRIu32 " life %" PRIu32 "%s\n", peer->number, peer->life,
				am->drain.switches[peer->number] ? " drained" : "");
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

void am_report(const struct am *am, FILE *to)
{
	uint32_t nr = 0;

	report_peers(am, to);
	for (const struct am_group *group = am->groups; group; group = group->next, nr++)
		report_group(group, to);
	fprintf(to, "%" PRIu32 " groups\n", nr);
	fflush(to);
}
