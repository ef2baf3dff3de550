// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The device's counters, as the port's hardware counters: `rdma statistic` and
 * /sys/class/infiniband/musterN/ports/1/hw_counters. In the order of struct
 * muster_device_counters.
 */
#include "muster.h"

#include <linux/dma-mapping.h>

enum {
	COUNTERS = sizeof(struct muster_device_counters) / sizeof(__le64),
	COUNTERS_LIFESPAN_MS = 10,	/* older ones are asked for again */
};

static const struct rdma_stat_desc descs[] = {
	{ .name = "doorbells" },
	{ .name = "interrupts" },
	{ .name = "admin_commands" },
	{ .name = "dma_read_bytes" },
	{ .name = "dma_write_bytes" },
	{ .name = "sequences_posted" },
	{ .name = "sequences_ended" },
	{ .name = "descriptors_executed" },
	{ .name = "packets_in" },
	{ .name = "packets_out" },
	{ .name = "bytes_in" },
	{ .name = "bytes_out" },
	{ .name = "grants" },
	{ .name = "credits" },
	{ .name = "dropped" },
	{ .name = "contexts_failed" },
};

static_assert(ARRAY_SIZE(descs) == COUNTERS);

struct rdma_hw_stats *muster_alloc_hw_port_stats(struct ib_device *ibdev, u32 port)
{
	return rdma_alloc_hw_stats_struct(descs, COUNTERS, COUNTERS_LIFESPAN_MS);
}

/* All at once, whichever is asked for. */
int muster_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port, int index)
{
	struct muster_admin_command cmd = { .opcode = MUSTER_ADMIN_COUNTERS };
	struct muster_dev *dev = to_mdev(ibdev);
	dma_addr_t dma;
	__le64 *values;
	int i, err;

	if (!port)
		return -EINVAL;
	values = dma_alloc_coherent(&dev->fn->pdev->dev, COUNTERS * sizeof(*values), &dma,
				    GFP_KERNEL);
	if (!values)
		return -ENOMEM;
	cmd.counters.base = cpu_to_le64(dma);
	cmd.counters.bytes = cpu_to_le32(COUNTERS * sizeof(*values));
	err = muster_admin_run(dev, &cmd);
	for (i = 0; i < COUNTERS && !err; i++)
		stats->value[i] = le64_to_cpu(values[i]);
	dma_free_coherent(&dev->fn->pdev->dev, COUNTERS * sizeof(*values), values, dma);
	return err ?: COUNTERS;
}
