// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the NIC has counted, as the driver reads it: of the device, and of queue pairs. Each of
 * these is counted in one set, which the driver says; in set 0 at first.
 */
#include "nic_internal.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define BAD(field)	(*detail = offsetof(struct muster_admin_command, field), -EINVAL)

enum { QP_COUNTERS = sizeof(struct muster_qp_counters) / sizeof(__le64) };

_Static_assert(sizeof(struct nic_qp_counts) == sizeof(struct muster_qp_counters),
	       "the same, in the same order");

static void set_fill(const struct muster_nic *nic, uint32_t set, struct muster_qp_counters *to)
{
	uint64_t counts[QP_COUNTERS];
	__le64 *words = (__le64 *)to;

	memcpy(counts, &nic->qp_counts[set], sizeof(counts));
	for (int i = 0; i < QP_COUNTERS; i++)
		words[i] = htole64(counts[i]);
}

static void device_fill(struct muster_nic *nic, struct muster_device_counters *to)
{
	const struct nic_counts *own = &nic->counts;
	struct muster_engine_counters e;

	nic_engines_count(nic, &e);
	*to = (struct muster_device_counters){
		.doorbells = htole64(__atomic_load_n(&nic->doorbells_count, __ATOMIC_RELAXED)),
		.interrupts = htole64(own->interrupts),
		.admin_commands = htole64(own->admin_commands),
		.dma_read_bytes = htole64(own->dma_read_bytes),
		.dma_write_bytes = htole64(own->dma_write_bytes),
		.sequences_posted = htole64(e.sequences_posted),
		.sequences_ended = htole64(e.sequences_ended),
		.descriptors_executed = htole64(e.descriptors_executed),
		.packets_in = htole64(e.packets_in),
		.packets_out = htole64(e.packets_out),
		.bytes_in = htole64(e.bytes_in),
		.bytes_out = htole64(e.bytes_out),
		.grants = htole64(e.grants),
		.credits = htole64(e.credits),
		.dropped = htole64(own->dropped + e.drop_malformed + e.drop_stranger +
				   e.drop_duplicate + e.drop_window + e.drop_ring_full),
		.contexts_failed = htole64(e.contexts_failed),
	};
	set_fill(nic, 0, &to->qps);
}

int nic_counters_command(struct muster_nic *nic, const struct muster_admin_command *cmd,
			 uint32_t *detail)
{
	uint32_t bytes = le32toh(cmd->counters.bytes), set = le32toh(cmd->counters.set);
	uint32_t most = set ? sizeof(struct muster_qp_counters) : sizeof(struct muster_device_counters);
	struct muster_device_counters counters;

	if (bytes < 8 || bytes % 8)
		return BAD(counters.bytes);
	if (set > MUSTER_QPS_MAX)
		return BAD(counters.set);
	if (!nic_command_ends(cmd, sizeof(cmd->counters)))
		return BAD(raw[sizeof(cmd->counters)]);
	if (set)
		set_fill(nic, set, &counters.qps);
	else
		device_fill(nic, &counters);
	return nic_dma_write(nic, le64toh(cmd->counters.base), &counters, bytes < most ? bytes : most);
}
