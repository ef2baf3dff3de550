// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Looking at packets: what the NIC's engine sends, into a file that muster_dump and Wireshark
 * read. It goes on over resets. A disk that is full ends the file and nothing else.
 */
#include "nic_internal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pcapng.h"

int nic_dump_open(struct muster_nic *nic, char *why, size_t why_len)
{
	char path[4096], name[32];

	nic->dump_fd = -1;
	if (!nic->config.dump)
		return 0;
	snprintf(path, sizeof(path), "%s/node-%u.pcapng", nic->config.dump, nic->config.node);
	snprintf(name, sizeof(name), "node %u", nic->config.node);
	nic->dump_fd = muster_pcapng_create(path, name);
	if (nic->dump_fd >= 0)
		return 0;
	snprintf(why, why_len, "dump=%.128s: no file could be written there: %s", nic->config.dump,
		 strerror(-nic->dump_fd));
	return nic->dump_fd;
}

void nic_dump_close(struct muster_nic *nic)
{
	if (nic->dump_fd >= 0)
		close(nic->dump_fd);
	nic->dump_fd = -1;
}

uint64_t nic_dump_now_ns(const struct muster_nic *nic)
{
	return nic->dump_fd < 0 ? 0 : muster_pcapng_now_ns();
}

void nic_dump_sent(struct muster_nic *nic, uint64_t at_ns, const struct muster_packet *packet,
		   const void *payload)
{
	if (nic->dump_fd >= 0 && muster_pcapng_sent(nic->dump_fd, at_ns, packet, payload))
		nic_dump_close(nic);
}
