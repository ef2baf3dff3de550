// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Every call of verbs and direct verbs that reaches the driver, and what the kernel does with its
 * mappings when a process maps, forks and ends. Last come the device's own births and deaths, as
 * sysfs asks for them, where a life must follow whatever fails.
 */
#include "fault_steps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fault_netlink.h"
#include "port.h"
#include "rdma/muster-netlink.h"
#include "strike.h"

#define NODE_FOLDER "/dev/infiniband"
#define NODE_NAME "uverbs0"		/* of a guest's only device */

enum {
	BYTES = 64 << 10,
	ENTRIES = 8,
	ENTRIES_IN_PARTS = 512,		/* of a receive ring: 2.1 MiB, in three parts */
	QKEY = 0x22222222,
	PSN = 7,
	BACK_S = 60,			/* in which a device is back that is tried again and again */
	NODE_S = 1,			/* in which the kernel has made its file, if it does */
};

static char memory[BYTES] __attribute__((aligned(4096)));

/* Of libibverbs: a pointer and errno, or a positive number. */
static int made(const void *object)
{
	return object ? 0 : -errno;
}

/* ---- the device ---------------------------------------------------------------------- */

static struct ibv_device *device;

/* The list is read once, in the process that all others come from. */
static int device_find(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list && list[i] && !device; i++)
		if (musterdv_is_supported(list[i]))
			device = list[i];
	return device ? 0 : -ENODEV;
}

static int device_open_step(struct world *world)
{
	if (!device && device_find())
		return -ENODEV;
	world->ctx = ibv_open_device(device);
	return world->ctx ? musterdv_query(world->ctx, &world->info) : -errno;
}

static int device_close(struct world *world)
{
	return -ibv_close_device(world->ctx);
}

static int device_query(struct world *world)
{
	struct ibv_device_attr attr;

	return -ibv_query_device(world->ctx, &attr);
}

static int port_query(struct world *world)
{
	struct ibv_port_attr attr;
	int err = -ibv_query_port(world->ctx, 1, &attr);

	if (!err)
		world->lid = attr.lid;
	return err;
}

/* ---- memory and queues --------------------------------------------------------------- */

static int pd_alloc(struct world *world)
{
	world->pd = ibv_alloc_pd(world->ctx);
	return made(world->pd);
}

static int pd_dealloc(struct world *world)
{
	return -ibv_dealloc_pd(world->pd);
}

static int channel_create(struct world *world)
{
	world->channel = ibv_create_comp_channel(world->ctx);
	return made(world->channel);
}

static int channel_destroy(struct world *world)
{
	return -ibv_destroy_comp_channel(world->channel);
}

static int mr_reg(struct world *world)
{
	world->mr = ibv_reg_mr(world->pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE);
	return made(world->mr);
}

static int mr_dereg(struct world *world)
{
	return -ibv_dereg_mr(world->mr);
}

static int watch(struct world *world, struct ibv_mr **mr)
{
	const uint8_t *changed;

	return musterdv_mr_register(world->pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE, mr, &changed);
}

/* The page where it is told is mapped by the first, and stays until the file is closed. */
static int mr_watch_first(struct world *world)
{
	return watch(world, &world->first_watched);
}

static int mr_unwatch_first(struct world *world)
{
	return -ibv_dereg_mr(world->first_watched);
}

static int mr_watch(struct world *world)
{
	return watch(world, &world->watched);
}

static int mr_unwatch(struct world *world)
{
	return -ibv_dereg_mr(world->watched);
}

static int cq_create(struct world *world)
{
	world->cq = ibv_create_cq(world->ctx, ENTRIES, NULL, world->channel, 0);
	return made(world->cq);
}

static int cq_destroy(struct world *world)
{
	return -ibv_destroy_cq(world->cq);
}

static int cq_modify(struct world *world)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = { .cq_count = 2, .cq_period = 1 },
	};

	return -ibv_modify_cq(world->cq, &attr);
}

static int cq_resize(struct world *world)
{
	return -ibv_resize_cq(world->cq, 2 * ENTRIES);
}

static int srq_create(struct world *world)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = ENTRIES, .max_sge = 1 } };

	world->srq = ibv_create_srq(world->pd, &attr);
	return made(world->srq);
}

static int srq_destroy(struct world *world)
{
	return -ibv_destroy_srq(world->srq);
}

static int srq_modify(struct world *world)
{
	struct ibv_srq_attr attr = { .srq_limit = 1 };

	return -ibv_modify_srq(world->srq, &attr, IBV_SRQ_LIMIT);
}

static int cq_arm(struct world *world)
{
	return -ibv_req_notify_cq(world->cq, 0);
}

/* ---- queue pairs --------------------------------------------------------------------- */

static struct ibv_qp *qp_create(struct world *world, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = world->cq, .recv_cq = world->cq, .qp_type = type,
		.cap = { .max_send_wr = ENTRIES, .max_recv_wr = ENTRIES, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	return ibv_create_qp(world->pd, &attr);
}

static int ud_create(struct world *world)
{
	world->ud = qp_create(world, IBV_QPT_UD);
	return made(world->ud);
}

static int ud_destroy(struct world *world)
{
	return -ibv_destroy_qp(world->ud);
}

static int ud_modify(struct world *world)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };

	return -ibv_modify_qp(world->ud, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
}

static int rc_create(struct world *world)
{
	world->rc = qp_create(world, IBV_QPT_RC);
	return made(world->rc);
}

static int rc_destroy(struct world *world)
{
	return -ibv_destroy_qp(world->rc);
}

/* To itself. */
static int rc_modify(struct world *world, enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr attr = {
		.qp_state = state, .port_num = 1, .path_mtu = IBV_MTU_1024, .dest_qp_num = world->rc->qp_num,
		.rq_psn = PSN, .sq_psn = PSN, .max_rd_atomic = 1, .max_dest_rd_atomic = 1, .min_rnr_timer = 1,
		.timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
		.ah_attr = { .port_num = 1, .dlid = world->lid },
	};

	return -ibv_modify_qp(world->rc, &attr, IBV_QP_STATE | mask);
}

static int rc_init(struct world *world)
{
	return rc_modify(world, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static int rc_rtr(struct world *world)
{
	return rc_modify(world, IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int rc_rts(struct world *world)
{
	return rc_modify(world, IBV_QPS_RTS, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static int rc_query(struct world *world)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return -ibv_query_qp(world->rc, &attr, IBV_QP_STATE, &init);
}

/* ---- virtual ports, jobs, contexts --------------------------------------------------- */

static int vp_create(struct world *world)
{
	struct musterdv_vp_attr attr = {
		.dq_entries = ENTRIES, .rq_entries = ENTRIES, .cq_entries = ENTRIES,
		.channel = world->channel,
	};

	return musterdv_vp_create(world->pd, &attr, &world->vp);
}

static int vp_destroy(struct world *world)
{
	return musterdv_vp_destroy(world->vp);
}

static int vp_arm(struct world *world)
{
	return musterdv_vp_arm(world->vp, 0);
}

static int long_vp_create(struct world *world)
{
	struct musterdv_vp_attr attr = {
		.dq_entries = ENTRIES, .rq_entries = ENTRIES_IN_PARTS, .cq_entries = ENTRIES,
	};

	return musterdv_vp_create(world->pd, &attr, &world->long_vp);
}

static int long_vp_destroy(struct world *world)
{
	return musterdv_vp_destroy(world->long_vp);
}

static int job_create(struct world *world)
{
	return musterdv_job_create(world->ctx, PORT_JOB, NULL, &world->job, &world->key);
}

static int job_destroy(struct world *world)
{
	return musterdv_job_destroy(world->job);
}

static int job_join(struct world *world)
{
	return musterdv_job_create(world->ctx, PORT_JOB, &world->key, &world->joined, NULL);
}

static int job_leave(struct world *world)
{
	return musterdv_job_destroy(world->joined);
}

static int context_open(struct world *world)
{
	struct musterdv_member member = {
		.node = world->info.node, .vp = world->vp->vp, .incarnation = world->info.incarnation,
	};
	struct musterdv_context_attr attr = { .id = PORT_CONTEXT, .nr_members = 1, .members = &member };

	return musterdv_context_open(world->joined, world->vp, &attr, &world->context);
}

static int context_close(struct world *world)
{
	return musterdv_context_close(world->context);
}

/* Of a context that has failed: nobody is at that node. */
static int tree_join(struct world *world)
{
	const struct musterdv_tree tree = {
		.key = 1, .node = MUSTER_NODE_AGGREGATION, .incarnation = 1, .group = 1, .payload_max = 256,
	};

	return musterdv_context_tree_join(world->context, &tree);
}

static int context_abort(struct world *world)
{
	return musterdv_context_abort(world->context, MUSTER_STATUS_ABORTED, 0);
}

/* ---- netlink ------------------------------------------------------------------------- */

static int netlink_prepare(struct world *world)
{
	world->index = ibv_get_device_index(world->ctx->device);
	return fault_netlink_open();
}

static int counter_bind(struct world *world)
{
	return fault_counter_bind(world->index, world->rc->qp_num, &world->counter);
}

static int counter_unbind(struct world *world)
{
	return fault_counter_unbind(world->index, world->rc->qp_num, world->counter);
}

static int counter_read(struct world *world)
{
	return fault_counters_read(world->index, world->counter);
}

static int port_counters_read(struct world *world)
{
	return fault_counters_read(world->index, 0);
}

static int devices_show(struct world *world)
{
	(void)world;
	return fault_family_dump(MUSTER_NL_CMD_DEVICE_GET);
}

static int jobs_show(struct world *world)
{
	(void)world;
	return fault_family_dump(MUSTER_NL_CMD_JOB_GET);
}

static int contexts_show(struct world *world)
{
	(void)world;
	return fault_family_dump(MUSTER_NL_CMD_CONTEXT_GET);
}

/* ---- the file ------------------------------------------------------------------------ */

/* A mapping of the device's file, as this process has them. */
struct mapped {
	uintptr_t from, to;
	uint64_t offset;
};

static bool mapped_find(struct mapped *mapped)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[256];
	bool there = false;

	while (maps && !there && fgets(line, sizeof(line), maps))
		there = strstr(line, "/dev/infiniband/uverbs") &&
			sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %" SCNx64, &mapped->from, &mapped->to,
			       &mapped->offset) == 3;
	if (maps)
		fclose(maps);
	return there;
}

static int map_prepare(struct world *world)
{
	struct mapped mapped;

	if (!mapped_find(&mapped))
		return -ENOENT;
	world->map_bytes = mapped.to - mapped.from;
	world->map_offset = mapped.offset;
	return 0;
}

static int map(struct world *world)
{
	world->map = mmap(NULL, world->map_bytes, PROT_NONE, MAP_SHARED, world->ctx->cmd_fd,
			  world->map_offset);
	return world->map == MAP_FAILED ? -errno : 0;
}

static int unmap(struct world *world)
{
	return munmap(world->map, world->map_bytes) ? -errno : 0;
}

/* The child has all mappings but those that could not be made for it; here they stay. */
static int forked(struct world *world)
{
	pid_t child = fork();

	(void)world;
	if (child == 0)
		_exit(0);
	if (child < 0)
		return -errno;
	return waitpid(child, NULL, 0) == child ? 0 : -errno;
}

/* While a mapping is left, closing the file ends nothing. */
static int file_unmap(struct world *world)
{
	struct mapped mapped;

	(void)world;
	while (mapped_find(&mapped))
		if (munmap((void *)mapped.from, mapped.to - mapped.from))
			return -errno;
	return 0;
}

static int file_close(struct world *world)
{
	return close(world->ctx->cmd_fd) ? -errno : 0;
}

/* ---- lives --------------------------------------------------------------------------- */

static int strike_prepare(struct world *world)
{
	(void)world;
	return strike_open(STRIKE_UNBIND);
}

static int unbind(struct world *world)
{
	(void)world;
	return strike_down(STRIKE_UNBIND);
}

static int bind(struct world *world)
{
	(void)world;
	return strike_up(STRIKE_UNBIND);
}

static int reset(struct world *world)
{
	(void)world;
	return strike_down(STRIKE_RESET);
}

/*
 * Where devtmpfs has no memory for a device's file, the driver core tells nobody. An administrator makes the
 * file then, and it goes with whoever made it.
 * Return: whether it was made here.
 */
static bool node_make(void)
{
	FILE *file = fopen("/sys/class/infiniband_verbs/" NODE_NAME "/dev", "re");
	unsigned int number[2];
	bool known = file && fscanf(file, "%u:%u", &number[0], &number[1]) == 2;

	if (file)
		fclose(file);
	if (!known)
		return false;
	mkdir(NODE_FOLDER, 0755);
	return !mknod(NODE_FOLDER "/" NODE_NAME, S_IFCHR | 0600, makedev(number[0], number[1]));
}

static void node_remove(void)
{
	unlink(NODE_FOLDER "/" NODE_NAME);
	rmdir(NODE_FOLDER);	/* unless it has other files */
}

/* What could not begin is tried again and again. */
static int life_wait(struct world *world)
{
	struct ibv_context *ctx;
	struct timespec now;
	bool made = false;
	time_t begin;

	(void)world;
	clock_gettime(CLOCK_MONOTONIC, &now);
	begin = now.tv_sec;
	while (!(ctx = device_open()) && now.tv_sec < begin + BACK_S) {
		if (now.tv_sec > begin + NODE_S)	/* the kernel makes it a moment after the device's number */
			made = node_make() || made;
		usleep(10000);
		clock_gettime(CLOCK_MONOTONIC, &now);
	}
	if (made)
		node_remove();
	return ctx ? -ibv_close_device(ctx) : -ETIMEDOUT;
}

/* ---- all of them --------------------------------------------------------------------- */

const struct fault_step fault_steps[] = {
	/* libibverbs looks for a file that it cannot open under other names. */
	{ .name = "open", .run = device_open_step, .maps = true, .also_says = { -ENOENT },
	  .undo_name = "close", .undo = device_close },
	{ .name = "query_device", .run = device_query },
	{ .name = "query_port", .run = port_query },
	{ .name = "alloc_pd", .run = pd_alloc, .undo_name = "dealloc_pd", .undo = pd_dealloc },
	{ .name = "create_channel", .run = channel_create,
	  .undo_name = "destroy_channel", .undo = channel_destroy },
	{ .name = "reg_mr", .run = mr_reg, .undo_name = "dereg_mr", .undo = mr_dereg },
	{ .name = "watch_first_mr", .run = mr_watch_first, .maps = true, .once = true, .undo = mr_unwatch_first },
	{ .name = "watch_mr", .run = mr_watch, .maps = true, .undo_name = "unwatch_mr", .undo = mr_unwatch },
	{ .name = "create_cq", .run = cq_create, .maps = true, .undo_name = "destroy_cq", .undo = cq_destroy },
	{ .name = "req_notify_cq", .run = cq_arm },
	{ .name = "modify_cq", .run = cq_modify },
	{ .name = "resize_cq", .run = cq_resize, .maps = true },
	{ .name = "create_srq", .run = srq_create, .maps = true,
	  .undo_name = "destroy_srq", .undo = srq_destroy },
	{ .name = "modify_srq", .run = srq_modify },
	{ .name = "create_ud", .run = ud_create, .maps = true, .undo_name = "destroy_ud", .undo = ud_destroy },
	{ .name = "modify_ud", .run = ud_modify },
	{ .name = "create_rc", .run = rc_create, .maps = true, .undo_name = "destroy_rc", .undo = rc_destroy },
	{ .name = "modify_rc_to_init", .run = rc_init },
	{ .name = "modify_rc_to_rtr", .run = rc_rtr, .once = true },
	{ .name = "modify_rc_to_rts", .run = rc_rts, .once = true },
	{ .name = "query_qp", .run = rc_query },
	{ .name = "create_vp", .run = vp_create, .maps = true, .undo_name = "destroy_vp", .undo = vp_destroy },
	{ .name = "arm_vp", .run = vp_arm },
	{ .name = "create_long_vp", .run = long_vp_create, .maps = true,
	  .undo_name = "destroy_long_vp", .undo = long_vp_destroy },
	{ .name = "create_job", .run = job_create, .undo_name = "destroy_job", .undo = job_destroy },
	{ .name = "join_job", .run = job_join, .undo_name = "leave_job", .undo = job_leave },
	{ .name = "open_context", .run = context_open,
	  .undo_name = "close_context", .undo = context_close },
	{ .name = "abort_context", .run = context_abort, .once = true },
	{ .name = "join_tree", .run = tree_join, .once = true },
	/* Netlink says ENOBUFS of what it has no memory for; what it has no word of may be done. */
	{ .name = "bind_counter", .run = counter_bind, .before = netlink_prepare, .also_says = { -ENOBUFS },
	  .undo_name = "unbind_counter", .undo = counter_unbind, .unheard = true },
	{ .name = "read_counter", .run = counter_read, .before = netlink_prepare, .also_says = { -ENOBUFS } },
	{ .name = "read_port_counters", .run = port_counters_read, .before = netlink_prepare,
	  .also_says = { -ENOBUFS, -EINVAL } },	/* EINVAL: the core, of whatever the driver said */
	{ .name = "show_devices", .run = devices_show, .before = netlink_prepare, .also_says = { -ENOBUFS } },
	{ .name = "show_jobs", .run = jobs_show, .before = netlink_prepare, .also_says = { -ENOBUFS } },
	{ .name = "show_contexts", .run = contexts_show, .before = netlink_prepare, .also_says = { -ENOBUFS } },
	{ .name = "mmap", .run = map, .maps = true, .undo_name = "munmap", .undo = unmap, .before = map_prepare },
	{ .name = "fork", .run = forked },
	{ .name = "close_file", .run = file_close, .before = file_unmap, .ends = true },
	/* A region that cannot be written down is taken; interrupts that cannot be had are too few. */
	{ .name = "unbind", .run = unbind, .also_says = { -EBUSY, -ENOSPC },
	  .undo_name = "bind", .undo = bind, .undone = life_wait, .before = strike_prepare, .alone = true },
	{ .name = "reset", .run = reset, .undo = life_wait, .before = strike_prepare, .alone = true },
	{ .name = NULL },
};
