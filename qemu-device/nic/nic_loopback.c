// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Packets of the NIC to itself, between two of its virtual ports or queue pairs: kept until
 * the step takes them in, in order.
 */
#include "nic_internal.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Taken in by the step, as others are. */
int nic_loopback_send(struct muster_nic *nic, const struct muster_packet *packet,
		      const void *payload)
{
	uint32_t length = le16toh(packet->length);
	struct nic_loopback_packet *copy;

	if (nic->nr_loopback == MUSTER_NIC_LOOPBACK_MAX)
		return -EAGAIN;
	copy = malloc(sizeof(*copy) + length);
	if (!copy)
		return -EAGAIN;
	copy->next = NULL;
	copy->packet = *packet;
	if (length)
		memcpy(copy->payload, payload, length);
	*nic->loopback_last = copy;
	nic->loopback_last = &copy->next;
	nic->nr_loopback++;
	return 0;
}

struct nic_loopback_packet *nic_loopback_take(struct muster_nic *nic)
{
	struct nic_loopback_packet *first = nic->loopback;

	if (!first)
		return NULL;
	nic->loopback = first->next;
	if (!nic->loopback)
		nic->loopback_last = &nic->loopback;
	nic->nr_loopback--;
	return first;
}

void nic_loopback_drop(struct muster_nic *nic)
{
	struct nic_loopback_packet *p;

	while ((p = nic_loopback_take(nic)))
		free(p);
}
