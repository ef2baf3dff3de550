// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Looking at packets (MUSTER_DUMP): what this rank's engine sends, into a file of its own. The
 * engine's table of the world is another one then, so that who does not look pays nothing.
 */
#include "internal.h"

#include <stdio.h>
#include <unistd.h>

#include "pcapng.h"

/* A disk that is full ends the dump, not the job. */
static int send_dumped(void *world, uint32_t incarnation, const struct muster_packet *packet,
		       const void *payload)
{
	struct local *local = world;
	uint64_t at_ns = muster_pcapng_now_ns();
	int err = local->dumped.world->send(world, incarnation, packet, payload);

	if (err || local->dumped.fd < 0)
		return err;
	if (muster_pcapng_sent(local->dumped.fd, at_ns, packet, payload))
		muster_local_dump_close(local);
	return 0;
}

int muster_local_dump_open(struct local *local, const char *folder,
			   const struct muster_engine_world *world)
{
	char path[4096], name[32], rail[16] = "";

	if (local->rail)
		snprintf(rail, sizeof(rail), ".%u", local->rail);
	snprintf(path, sizeof(path), "%s/rank-%u%s.pcapng", folder, local->rank, rail);
	snprintf(name, sizeof(name), "rank %u%s", local->rank, rail);
	local->dumped.fd = muster_pcapng_create(path, name);
	local->dumped.world = world;
	local->dumped.own = *world;
	local->dumped.own.send = send_dumped;
	return local->dumped.fd < 0 ? local->dumped.fd : 0;
}

void muster_local_dump_close(struct local *local)
{
	if (local->dumped.fd >= 0)
		close(local->dumped.fd);
	local->dumped.fd = -1;
}
