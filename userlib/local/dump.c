// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Looking at packets (MUSTER_DUMP): what this rank's engine sends, into a file of its own. The
 * engine's table of the world is another one then, so that who does not look pays nothing.
 */
#include "internal.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pcapng.h"

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* A disk that is full ends the dump, not the job. */
static int send_dumped(void *world, uint32_t incarnation, const struct muster_packet *packet,
		       const void *payload)
{
	struct local *local = world;
	struct muster_packet head = *packet;
	uint64_t at_ns = now_ns();
	int err = local->dumped.world->send(world, incarnation, packet, payload);

	if (err || local->dumped.fd < 0)
		return err;
	head.job_key = 0;	/* a secret, and of no use to who looks */
	if (muster_pcapng_packet(local->dumped.fd, 0, at_ns, &head, sizeof(head), payload,
				 le16toh(packet->length)))
		muster_local_dump_close(local);
	return 0;
}

int muster_local_dump_open(struct local *local, const char *folder,
			   const struct muster_engine_world *world)
{
	char path[4096], name[32];
	int err;

	snprintf(path, sizeof(path), "%s/rank-%u.pcapng", folder, local->rank);
	snprintf(name, sizeof(name), "rank %u", local->rank);
	local->dumped.fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (local->dumped.fd < 0)
		return -errno;
	err = muster_pcapng_section(local->dumped.fd);
	if (!err)
		err = muster_pcapng_interface(local->dumped.fd, name);
	local->dumped.world = world;
	local->dumped.own = *world;
	local->dumped.own.send = send_dumped;
	return err;
}

void muster_local_dump_close(struct local *local)
{
	if (local->dumped.fd >= 0)
		close(local->dumped.fd);
	local->dumped.fd = -1;
}
