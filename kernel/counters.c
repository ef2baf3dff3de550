// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the device counts, as the port's hardware counters: `rdma statistic` and
 * /sys/class/infiniband/musterN/ports/1/hw_counters, in the order of struct
 * muster_device_counters. That begins with what queue pairs count, since the core counts so: a
 * counter that queue pairs are bound to (`rdma statistic qp`) has the port's first ones, those
 * of a set of the device, and the core adds them to the port's, by their place.
 */
#include "muster.h"

#include <linux/dma-mapping.h>
#include <rdma/rdma_counter.h>

enum {
	COUNTERS = sizeof(struct muster_device_counters) / sizeof(__le64),
	QP_COUNTERS = sizeof(struct muster_qp_counters) / sizeof(__le64),
	COUNTERS_LIFESPAN_MS = 10,	/* older ones are asked for again */
};

static const struct rdma_stat_desc descs[] = {
	{ .name = "qp_requests" },
	{ .name = "qp_receives" },
	{ .name = "qp_packets_out" },
	{ .name = "qp_packets_in" },
	{ .name = "qp_bytes_out" },
	{ .name = "qp_bytes_in" },
	{ .name = "qp_retries" },
	{ .name = "qp_rnr_out" },
	{ .name = "qp_rnr_in" },
	{ .name = "qp_dropped" },
	{ .name = "qp_errors" },
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
static_assert(offsetof(struct muster_device_counters, qps) == 0);

/* Set 0: the device's, all of them. */
static int counters_read(struct muster_dev *dev, u32 set, struct rdma_hw_stats *stats)
{
	struct muster_admin_command cmd = { .opcode = MUSTER_ADMIN_COUNTERS };
	size_t bytes = stats->num_counters * sizeof(__le64);
	dma_addr_t dma;
	__le64 *values;
	int i, err;

	values = dma_alloc_coherent(&dev->fn->pdev->dev, bytes, &dma, GFP_KERNEL);
	if (!values)
		return -ENOMEM;
	cmd.counters.base = cpu_to_le64(dma);
	cmd.counters.bytes = cpu_to_le32(bytes);
	cmd.counters.set = cpu_to_le32(set);
	err = muster_admin_run(dev, &cmd);
	for (i = 0; i < stats->num_counters && !err; i++)
		stats->value[i] = le64_to_cpu(values[i]);
	dma_free_coherent(&dev->fn->pdev->dev, bytes, values, dma);
	return err;
}

/* ---- of the port ------------------------------------------------------------------- */

struct rdma_hw_stats *muster_alloc_hw_port_stats(struct ib_device *ibdev, u32 port)
{
	return rdma_alloc_hw_stats_struct(descs, COUNTERS, COUNTERS_LIFESPAN_MS);
}

/* All at once, whichever is asked for. */
int muster_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port, int index)
{
	int err = port ? counters_read(to_mdev(ibdev), 0, stats) : -EINVAL;

	return err ?: COUNTERS;
}

/* ---- of queue pairs ---------------------------------------------------------------- */

static int count(struct ib_qp *ibqp, u32 set)
{
	struct muster_admin_command cmd = {
		.opcode = MUSTER_ADMIN_QP_COUNT,
		.qp_count.id = cpu_to_le32(ibqp->qp_num),
		.qp_count.set = cpu_to_le32(set),
	};

	return muster_admin_run(to_mdev(ibqp->device), &cmd);
}

/*
 * The first of a counter's queue pairs makes its set, which begins with zeros. Whose counter that
 * is, the driver has to say.
 */
int muster_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ibqp)
{
	struct muster_dev *dev = to_mdev(ibqp->device);
	int set = counter->id, err;

	if (ibqp->qp_type == IB_QPT_DRIVER)
		return -EOPNOTSUPP;
	if (!set)
		set = ida_alloc_range(&dev->counters, 1, MUSTER_QPS_MAX, GFP_KERNEL);
	if (set < 0)
		return set;
	err = count(ibqp, set);
	if (err)
		goto err_set;
	counter->id = set;
	ibqp->counter = counter;
	return 0;

err_set:
	if (!counter->id)
		ida_free(&dev->counters, set);
	return err;
}

/* A device that is fenced counts nothing any more. */
int muster_counter_unbind_qp(struct ib_qp *ibqp)
{
	int err = count(ibqp, 0);

	if (err && err != -EIO)
		return err;
	ibqp->counter = NULL;
	return 0;
}

int muster_counter_dealloc(struct rdma_counter *counter)
{
	ida_free(&to_mdev(counter->device)->counters, counter->id);
	return 0;
}

/* Room for as many as the port has: the core looks for each of these here, and finds zero. */
struct rdma_hw_stats *muster_counter_alloc_stats(struct rdma_counter *counter)
{
	struct rdma_hw_stats *stats = rdma_alloc_hw_stats_struct(descs, COUNTERS,
								 COUNTERS_LIFESPAN_MS);

	if (stats)
		stats->num_counters = QP_COUNTERS;
	return stats;
}

int muster_counter_update_stats(struct rdma_counter *counter)
{
	return counters_read(to_mdev(counter->device), counter->id, counter->stats);
}
