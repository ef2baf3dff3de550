// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The direct verbs, the driver under them and the device under that, from one
 * process in a guest: what they do, and what they refuse.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <endian.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "port.h"

static int one_pair(void **state)
{
	struct pair *pair = malloc(sizeof(*pair));
	int err = pair_open(pair);

	if (err) {
		free(pair);
		return err;
	}
	*state = pair;
	return 0;
}

static int no_pair(void **state)
{
	int err = pair_close(*state);

	free(*state);
	return err;
}

/* ---- the device ---------------------------------------------------------------- */

static void the_device_says_who_it_is(void **state)
{
	struct pair *pair = *state;
	struct ibv_device_attr attr;
	struct musterdv_info info;

	assert_int_equal(musterdv_query(pair->ctx, &info), 0);
	assert_int_equal(info.device_version, MUSTER_DEVICE_VERSION);
	assert_int_not_equal(info.incarnation, 0);
	assert_int_equal(info.contexts_max, MUSTER_CONTEXTS_MAX);
	assert_int_equal(ibv_query_device(pair->ctx, &attr), 0);
	assert_int_equal(attr.vendor_id, MUSTER_PCI_VENDOR);
	assert_int_equal(attr.max_qp, MUSTER_VPS_MAX);
}

/* ---- virtual ports --------------------------------------------------------------- */

static void odd_sizes_of_rings_are_refused(void **state)
{
	static const uint32_t odd[] = { 0, 3, 1u << 31, UINT32_MAX, 65536 * 2 };
	struct pair *pair = *state;
	struct musterdv_vp *vp;

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		for (int which = 0; which < 3; which++) {
			struct musterdv_vp_attr attr = {
				.dq_entries = which == 0 ? odd[i] : 8,
				.rq_entries = which == 1 ? odd[i] : 8,
				.cq_entries = which == 2 ? odd[i] : 8,
			};

			assert_int_equal(musterdv_vp_create(pair->pd, &attr, &vp), -EINVAL);
		}
	}
}

static void the_largest_rings_can_be_had(void **state)
{
	struct pair *pair = *state;
	struct musterdv_info info;
	struct musterdv_vp_attr attr = { };
	struct musterdv_vp *vp;

	musterdv_query(pair->ctx, &info);
	attr.dq_entries = info.dq_entries_max;
	attr.rq_entries = info.rq_entries_max;
	attr.cq_entries = info.cq_entries_max;
	assert_int_equal(musterdv_vp_create(pair->pd, &attr, &vp), 0);
	assert_int_equal(vp->cq[attr.cq_entries - 1].valid, 0);
	assert_int_equal(vp->rq[attr.rq_entries - 1].valid, 0);
	assert_int_equal(vp->dq[attr.dq_entries - 1].kind, 0);
	assert_int_equal(vp->status->dq_head, 0);
	assert_int_equal(musterdv_vp_destroy(vp), 0);
}

static void messages_arrive_in_every_lap(void **state)
{
	for (int i = 0; i < 3 * PORT_ENTRIES + 1; i++)
		assert_int_equal(pair_exchange(*state), 0);
}

static void a_number_is_not_used_again_soon(void **state)
{
	struct musterdv_vp_attr attr = { .dq_entries = 8, .rq_entries = 8, .cq_entries = 8 };
	struct pair *pair = *state;
	struct musterdv_vp *vp;
	uint16_t first;

	assert_int_equal(musterdv_vp_create(pair->pd, &attr, &vp), 0);
	first = vp->vp;
	assert_int_equal(musterdv_vp_destroy(vp), 0);
	assert_int_equal(musterdv_vp_create(pair->pd, &attr, &vp), 0);
	assert_int_not_equal(vp->vp, first);
	assert_int_equal(musterdv_vp_destroy(vp), 0);
}

static int event_take(struct pair *pair)
{
	struct pollfd fd = { .fd = pair->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *arg;

	if (poll(&fd, 1, PORT_WAIT_MS) != 1)
		return -ETIMEDOUT;
	if (ibv_get_cq_event(pair->channel, &cq, &arg))
		return -errno;
	ibv_ack_cq_events(cq, 1);
	return 0;
}

static void an_armed_port_wakes_its_sleeper_once(void **state)
{
	struct pair *pair = *state;
	struct pollfd fd = { .fd = pair->channel->fd, .events = POLLIN };

	assert_int_equal(musterdv_vp_arm(pair->vps[0], 0), 0);
	assert_int_equal(pair_exchange(pair), 0);
	assert_int_equal(event_take(pair), 0);
	/* An interrupt that was not armed for as the driver sees it, as of a device that goes astray. */
	musterdv_doorbell(pair->vps[0], MUSTER_DOORBELL_CQ_ARM, 1);
	assert_int_equal(pair_exchange(pair), 0);
	assert_int_equal(poll(&fd, 1, 50), 0);
}

static void arming_late_loses_nothing(void **state)
{
	struct pair *pair = *state;

	pair_put(pair, pair_message(pair, "early"));
	pair_ring(pair);
	while (!port_completion(pair->vps[0], 0) || !port_packet(pair->vps[1], 0))
		usleep(1000);
	assert_int_equal(musterdv_vp_arm(pair->vps[0], 0), 0);
	assert_int_equal(event_take(pair), 0);
	assert_int_equal(musterdv_vp_arm(pair->vps[1], 0), 0);
	assert_int_equal(event_take(pair), 0);
}

/* ---- arming without a system call ------------------------------------------------- */

static volatile sig_atomic_t calls;

static void on_call(int signal)
{
	(void)signal;
	calls++;
}

/* From here on what verbs call the kernel by is a signal to this thread instead. */
static int calls_count(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(filter) / sizeof(filter[0]), .filter = filter };

	signal(SIGSYS, on_call);
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

/* A thread of its own, as what it gives up does not come back. NULL: it cannot be counted here. */
static void *arms_counted(void *arg)
{
	static int failed;

	if (calls_count())
		return NULL;
	failed = 0;
	for (int i = 0; i < 100; i++)
		failed |= musterdv_vp_arm(((struct pair *)arg)->vps[0], 0);
	syscall(SYS_write, -1, "", 0);	/* one that is seen */
	return &failed;
}

static void arming_takes_no_system_call(void **state)
{
	struct pair *pair = *state;
	pthread_t thread;
	void *failed;

	calls = 0;
	assert_int_equal(pthread_create(&thread, NULL, arms_counted, pair), 0);
	assert_int_equal(pthread_join(thread, &failed), 0);
	if (!failed)
		skip();
	assert_int_equal(*(int *)failed, 0);
	assert_int_equal(calls, 1);
	assert_int_equal(pair_exchange(pair), 0);
	assert_int_equal(event_take(pair), 0);
}

/* Whenever the message comes, before it is armed for or after, the sleeper hears of it. */
static void no_wake_is_lost_whenever_it_comes(void **state)
{
	struct pair *pair = *state;

	for (uint32_t i = 0; i < 300; i++) {
		pair_put(pair, pair_message(pair, "x"));
		pair_ring(pair);
		for (volatile uint32_t wait = i % 100 * 50; wait; wait--)
			;
		while (!port_completion(pair->vps[0], i)) {
			assert_int_equal(musterdv_vp_arm(pair->vps[0], i), 0);
			assert_int_equal(event_take(pair), 0);
		}
		musterdv_doorbell(pair->vps[1], MUSTER_DOORBELL_RQ_HEAD, i + 1);
	}
}

static void a_doorbell_beyond_the_ring_is_an_event_of_its_port(void **state)
{
	struct pair *pair = *state;
	struct pollfd fd = { .fd = pair->ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	musterdv_doorbell(pair->vps[0], MUSTER_DOORBELL_DQ_TAIL, 1000);
	assert_int_equal(poll(&fd, 1, PORT_WAIT_MS), 1);
	assert_int_equal(ibv_get_async_event(pair->ctx, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_QP_FATAL);
	assert_ptr_equal(event.element.qp, pair->vps[0]->qp);
	ibv_ack_async_event(&event);
	assert_int_equal(le32toh(pair->vps[0]->status->error), MUSTER_STATUS_DESCRIPTOR);
	assert_int_equal(le32toh(pair->vps[1]->status->error), 0);
}

/* Each event costs kernel memory until it is read, so there is one in a queue's life. */
static void a_full_completion_queue_is_one_event(void **state)
{
	struct pair *pair = *state;
	struct pollfd fd = { .fd = pair->ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	for (uint32_t i = 0; i < PORT_ENTRIES + 1; i++) {
		pair_put(pair, pair_message(pair, "x"));
		pair_ring(pair);
		while (i < PORT_ENTRIES && !port_completion(pair->vps[0], i))
			usleep(100);
	}
	assert_int_equal(poll(&fd, 1, PORT_WAIT_MS), 1);
	assert_int_equal(ibv_get_async_event(pair->ctx, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_CQ_ERR);
	assert_ptr_equal(event.element.cq, pair->vps[0]->ibcq);
	ibv_ack_async_event(&event);
	for (uint32_t i = 1; i < 3 * PORT_ENTRIES; i++) {
		musterdv_doorbell(pair->vps[0], MUSTER_DOORBELL_CQ_HEAD, i);
		pair_put(pair, pair_message(pair, "x"));
		pair_ring(pair);
		while (!port_completion(pair->vps[0], PORT_ENTRIES + i - 1))
			usleep(100);
	}
	/* An event of another object, so that those before it have come through. */
	musterdv_doorbell(pair->vps[1], MUSTER_DOORBELL_DQ_TAIL, 1000);
	assert_int_equal(poll(&fd, 1, PORT_WAIT_MS), 1);
	assert_int_equal(ibv_get_async_event(pair->ctx, &event), 0);
	ibv_ack_async_event(&event);
	assert_int_equal(event.event_type, IBV_EVENT_QP_FATAL);
}

static void an_ordinary_queue_pair_is_refused(void **state)
{
	struct pair *pair = *state;
	struct ibv_qp_init_attr attr = {
		.send_cq = pair->vps[0]->ibcq, .recv_cq = pair->vps[0]->ibcq,
		.qp_type = IBV_QPT_RC, .cap = { .max_send_wr = 1, .max_recv_wr = 1 },
	};

	assert_null(ibv_create_qp(pair->pd, &attr));
}

/* ---- memory ---------------------------------------------------------------------- */

static void memory_read_only_is_not_for_writing(void **state)
{
	struct pair *pair = *state;
	void *addr = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	assert_null(ibv_reg_mr(pair->pd, addr, 4096, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EFAULT);
	mr = ibv_reg_mr(pair->pd, addr, 4096, 0);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(addr, 4096);
}

static void odd_memory_is_refused(void **state)
{
	struct pair *pair = *state;
	char byte;

	assert_null(ibv_reg_mr(pair->pd, &byte, 0, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_reg_mr(pair->pd, &byte, 1, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(ibv_reg_mr(pair->pd, (void *)4096, 4096, 0));
	assert_int_equal(errno, EFAULT);
}

/* What the device reads must be where the driver said it lies, page by page. */
static void the_device_reads_registered_memory(void **state)
{
	enum { BYTES = 1 << 20, PIECE = 4096, START = 0x777 };
	struct pair *pair = *state;
	uint8_t *memory = malloc(BYTES);
	struct ibv_mr *mr;

	for (size_t i = 0; i < BYTES; i++)
		memory[i] = i * 2654435761u >> 24;
	mr = ibv_reg_mr(pair->pd, memory + START, BYTES - START, 0);
	assert_non_null(mr);
	for (uint32_t i = 0; i < 40; i++) {
		struct muster_desc desc = pair_message(pair, "");
		uint8_t *from = memory + START + i * 25013;

		desc.kind = MUSTER_DESC_RDMA;
		desc.range.load_addr = htole64((uintptr_t)from);
		desc.range.load_key = htole32(mr->lkey);
		desc.length = htole64(PIECE);
		pair_put(pair, desc);
		pair_ring(pair);
		while (!port_completion(pair->vps[0], i) || !port_packet(pair->vps[1], i))
			usleep(100);
		assert_int_equal(port_completion(pair->vps[0], i)->status, MUSTER_STATUS_OK);
		assert_memory_equal(port_packet(pair->vps[1], i)->payload, from, PIECE);
		musterdv_doorbell(pair->vps[0], MUSTER_DOORBELL_CQ_HEAD, i + 1);
		musterdv_doorbell(pair->vps[1], MUSTER_DOORBELL_RQ_HEAD, i + 1);
	}
	assert_int_equal(ibv_dereg_mr(mr), 0);
	free(memory);
}

/* Through the other port, which is of the same protection domain. */
static void a_port_writes_to_what_is_open_for_it(void **state)
{
	enum { BYTES = 5 * 4096 + 5, OPEN = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };
	struct pair *pair = *state;
	uint8_t *from = malloc(BYTES), *to = calloc(1, BYTES);
	struct ibv_mr *source = ibv_reg_mr(pair->pd, from, BYTES, 0), *place;

	assert_non_null(source);
	memset(from, 0x5a, BYTES);
	for (uint32_t i = 0; i < 2; i++) {
		struct muster_desc desc = pair_message(pair, "");

		place = ibv_reg_mr(pair->pd, to, BYTES, i ? OPEN : IBV_ACCESS_LOCAL_WRITE);
		assert_non_null(place);
		desc.kind = MUSTER_DESC_RDMA;
		desc.length = htole64(BYTES);
		desc.range.load_addr = htole64((uintptr_t)from);
		desc.range.load_key = htole32(source->lkey);
		desc.range.remote_addr = htole64((uintptr_t)to);
		desc.range.remote_key = htole32(place->rkey);
		pair_put(pair, desc);
		pair_ring(pair);
		while (!port_completion(pair->vps[0], i))
			usleep(100);
		assert_int_equal(port_completion(pair->vps[0], i)->status,
				 i ? MUSTER_STATUS_OK : MUSTER_STATUS_MEMORY);
		for (uint32_t b = 0; b < BYTES; b++)
			assert_int_equal(to[b], i ? 0x5a : 0);
		musterdv_doorbell(pair->vps[0], MUSTER_DOORBELL_CQ_HEAD, i + 1);
		assert_int_equal(ibv_dereg_mr(place), 0);
	}
	assert_null(port_packet(pair->vps[1], 0));
	assert_int_equal(ibv_dereg_mr(source), 0);
	free(from);
	free(to);
}

/* ---- jobs and contexts ------------------------------------------------------------ */

static void the_kernel_mints_a_key_for_each_job(void **state)
{
	struct pair *pair = *state;
	struct musterdv_job *jobs[3];
	uint64_t keys[3], zero = 0;

	assert_int_equal(musterdv_job_create(pair->ctx, 1, NULL, &jobs[0], &keys[0]), 0);
	assert_int_equal(musterdv_job_create(pair->ctx, 1, NULL, &jobs[1], &keys[1]), 0);
	assert_int_equal(musterdv_job_create(pair->ctx, 1, &keys[0], &jobs[2], &keys[2]), 0);
	assert_true(keys[0] && keys[1] && keys[0] != keys[1] && keys[2] == keys[0]);
	for (int i = 0; i < 3; i++)
		assert_int_equal(musterdv_job_destroy(jobs[i]), 0);
	assert_int_equal(musterdv_job_create(pair->ctx, 1, &zero, &jobs[0], NULL), -EINVAL);
	assert_int_equal(musterdv_job_create(pair->ctx, MUSTER_JOBS_MAX, NULL, &jobs[0], NULL),
			 -EINVAL);
}

static void what_a_context_uses_stays(void **state)
{
	struct pair *pair = *state;

	assert_int_equal(musterdv_job_destroy(pair->job), -EBUSY);
	assert_int_equal(musterdv_vp_destroy(pair->vps[0]), -EBUSY);
	assert_int_equal(pair_exchange(pair), 0);
}

static void odd_contexts_are_refused(void **state)
{
	struct pair *pair = *state;
	struct musterdv_info info;
	struct musterdv_member member = { .vp = pair->vps[0]->vp };
	struct musterdv_context_attr good = { .id = 9, .nr_members = 1, .members = &member }, attr;
	struct musterdv_context *context;

	musterdv_query(pair->ctx, &info);
	member.node = info.node;
	member.incarnation = info.incarnation;
#define OPEN(attr) musterdv_context_open(pair->job, pair->vps[0], attr, &context)
	attr = good;
	attr.id = PORT_CONTEXT;
	assert_int_equal(OPEN(&attr), -EBUSY);
	attr = good;
	attr.self = 1;
	assert_int_equal(OPEN(&attr), -EINVAL);
	attr = good;
	attr.nr_members = 0;
	assert_int_equal(OPEN(&attr), -EINVAL);
	attr.nr_members = MUSTER_MEMBERS_MAX + 1;
	assert_int_equal(OPEN(&attr), -EINVAL);
	member.node = MUSTER_NODES_MAX;
	assert_int_equal(OPEN(&good), -EINVAL);
	member.node = info.node;
	member.reserved = 1;
	assert_int_equal(OPEN(&good), -EINVAL);
	member.reserved = 0;
	assert_int_equal(OPEN(&good), 0);
	assert_int_equal(musterdv_context_close(context), 0);
#undef OPEN
}

static void an_abort_reaches_all_members(void **state)
{
	struct pair *pair = *state;

	assert_int_equal(musterdv_context_abort(pair->contexts[0], MUSTER_STATUS_OK, 0), -EINVAL);
	assert_int_equal(musterdv_context_abort(pair->contexts[0], 200, 0), -EINVAL);
	assert_int_equal(musterdv_context_abort(pair->contexts[0], MUSTER_STATUS_ABORTED,
						MUSTER_CULPRIT_NONE), 0);
	for (int i = 0; i < 2; i++) {
		while (!port_completion(pair->vps[i], 0))
			usleep(100);
		assert_int_equal(port_completion(pair->vps[i], 0)->kind, MUSTER_CQE_CONTEXT);
		assert_int_equal(port_completion(pair->vps[i], 0)->status, MUSTER_STATUS_ABORTED);
	}
}

/* The device says which; behind this wire there is no such node, and what joins it fails of that. */
static void a_context_joins_trees_of_its_own_and_odd_ones_are_refused(void **state)
{
	const struct musterdv_tree good = {
		.key = 1, .node = MUSTER_NODE_AGGREGATION + 1, .incarnation = 1, .group = 1, .tree = 2,
		.payload_max = 256,
	};
	struct pair *pair = *state;
	struct musterdv_info info;
	struct musterdv_tree tree;

	musterdv_query(pair->ctx, &info);
	assert_true(info.capabilities & MUSTER_CAP_TREE);
#define REFUSED(err, call, ...) \
	do { \
		tree = good; \
		__VA_ARGS__; \
		assert_int_equal(musterdv_context_tree_##call(pair->contexts[0], &tree), err); \
	} while (0)
	REFUSED(-EINVAL, join, tree.node = 1);
	REFUSED(-EINVAL, join, tree.incarnation = 0);
	REFUSED(-EINVAL, join, tree.group = 0);
	REFUSED(-EINVAL, join, tree.payload_max = MUSTER_MTU + 1);
	REFUSED(-ENOENT, move, tree.group = 2);
	REFUSED(0, join, tree.tree = 2);
	REFUSED(-EBUSY, join, tree.group = 2);
	REFUSED(-ENOENT, move, tree.tree = 3);
	REFUSED(0, move, tree.group = 2);
#undef REFUSED
	while (!port_completion(pair->vps[0], 0))
		usleep(100);
	assert_int_equal(port_completion(pair->vps[0], 0)->kind, MUSTER_CQE_CONTEXT);
	assert_int_equal(port_completion(pair->vps[0], 0)->status, MUSTER_STATUS_PEER_LOST);
}

/* ---- programs -------------------------------------------------------------------- */

/* One region for both: operands, results, and a program in memory. */
struct sums {
	double operand[2], result[2];
	struct muster_desc program[2][2 * 3 * MUSTER_SEQ_QUEUE_MAX];
};

enum { SUM_COOKIE = 77 };

/* Each port sends its operand to the other, and adds up. */
static void sum_of(const struct pair *pair, struct sums *sums, uint32_t key, int which,
		   struct muster_desc descs[2])
{
	descs[0] = pair_message(pair, "");
	descs[0].flags = htole16(MUSTER_DESC_C | MUSTER_DESC_CH | MUSTER_DESC_CP);
	descs[0].src_vp = htole16(pair->vps[which]->vp);
	descs[0].dst_vp = htole16(pair->vps[!which]->vp);
	descs[0].signature.type = MUSTER_DTYPE_F64;
	descs[0].signature.op = MUSTER_REDOP_SUM;
	descs[0].length = htole64(sizeof(double));
	descs[0].cookie = htole64(SUM_COOKIE);
	descs[1] = descs[0];
	descs[0].range.load_addr = htole64((uintptr_t)&sums->operand[which]);
	descs[0].range.load_key = htole32(key);
	descs[1].flags = htole16(MUSTER_DESC_C | MUSTER_DESC_CT | MUSTER_DESC_SWAP_LOCAL_DATA |
				 MUSTER_DESC_REDUCE | MUSTER_DESC_COLL_END);
	descs[1].cp_count = 1;
	descs[1].store_addr = htole64((uintptr_t)&sums->result[which]);
	descs[1].store_key = htole32(key);
}

static struct muster_desc program_desc(const struct pair *pair, int which, uint8_t kind)
{
	return (struct muster_desc){
		.kind = kind, .flags = htole16(MUSTER_DESC_C | MUSTER_DESC_CH | MUSTER_DESC_CT),
		.src_vp = htole16(pair->vps[which]->vp), .job = PORT_JOB,
		.context = htole32(PORT_CONTEXT), .cookie = htole64(SUM_COOKIE),
	};
}

static void port_post(struct pair *pair, int which, uint32_t *tail, const struct muster_desc *descs,
		      uint32_t nr)
{
	struct musterdv_vp *vp = pair->vps[which];

	while (nr--)
		vp->dq[(*tail)++ & (vp->dq_entries - 1)] = *descs++;
	musterdv_doorbell(vp, MUSTER_DOORBELL_DQ_TAIL, *tail);
}

static void assert_ended(struct pair *pair, uint32_t at, uint8_t status)
{
	for (int i = 0; i < 2; i++) {
		while (!port_completion(pair->vps[i], at))
			usleep(100);
		assert_int_equal(port_completion(pair->vps[i], at)->status, status);
		musterdv_doorbell(pair->vps[i], MUSTER_DOORBELL_CQ_HEAD, at + 1);
	}
}

static struct ibv_mr *sums_register(const struct pair *pair, struct sums *sums)
{
	struct ibv_mr *mr = ibv_reg_mr(pair->pd, sums, sizeof(*sums), IBV_ACCESS_LOCAL_WRITE);

	assert_non_null(mr);
	return mr;
}

static void a_kept_program_is_started_until_its_memory_goes(void **state)
{
	struct pair *pair = *state;
	struct sums *sums = calloc(1, sizeof(*sums));
	struct ibv_mr *mr = sums_register(pair, sums);
	struct muster_desc descs[2];
	uint32_t tail[2] = { 0 };

	for (uint32_t n = 0; n < 40; n++) {
		sums->operand[0] = n;
		sums->operand[1] = 100;
		for (int i = 0; i < 2; i++) {
			sum_of(pair, sums, mr->lkey, i, descs);
			descs[0].flags |= htole16(MUSTER_DESC_KEEP);
			if (n)
				descs[0] = program_desc(pair, i, MUSTER_DESC_START);
			port_post(pair, i, &tail[i], descs, n ? 1 : 2);
		}
		assert_ended(pair, n, MUSTER_STATUS_OK);
		assert_true(sums->result[0] == n + 100.0 && sums->result[1] == n + 100.0);
	}
	assert_int_equal(ibv_dereg_mr(mr), 0);
	for (int i = 0; i < 2; i++) {
		descs[0] = program_desc(pair, i, MUSTER_DESC_START);
		port_post(pair, i, &tail[i], descs, 1);
	}
	while (!port_completion(pair->vps[0], 40) || !port_completion(pair->vps[0], 41))
		usleep(100);
	assert_int_equal(port_completion(pair->vps[0], 40)->status, MUSTER_STATUS_MEMORY);
	free(sums);
}

static void a_program_in_memory_runs_by_one_descriptor(void **state)
{
	struct pair *pair = *state;
	struct sums *sums = calloc(1, sizeof(*sums));
	struct ibv_mr *mr = sums_register(pair, sums);
	const uint32_t nr = sizeof(sums->program[0]) / sizeof(sums->program[0][0]);
	uint32_t tail[2] = { 0 };

	sums->operand[0] = 1;
	sums->operand[1] = 2;
	for (int i = 0; i < 2; i++) {
		struct muster_desc desc = program_desc(pair, i, MUSTER_DESC_PROGRAM);

		for (uint32_t k = 0; k < nr; k += 2) {
			sum_of(pair, sums, mr->lkey, i, &sums->program[i][k]);
			if (k + 2 < nr)
				sums->program[i][k + 1].flags &= htole16(~MUSTER_DESC_COLL_END);
		}
		desc.length = htole64(sizeof(sums->program[i]));
		desc.range.load_addr = htole64((uintptr_t)sums->program[i]);
		desc.range.load_key = htole32(mr->lkey);
		port_post(pair, i, &tail[i], &desc, 1);
	}
	assert_ended(pair, 0, MUSTER_STATUS_OK);
	assert_int_equal(le32toh(port_completion(pair->vps[0], 0)->number), nr / 2 - 1);
	assert_true(sums->result[0] == 3 && sums->result[1] == 3);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	free(sums);
}

/* ---- mappings --------------------------------------------------------------------- */

static void what_is_not_ours_cannot_be_mapped(void **state)
{
	struct pair *pair = *state;
	int mapped = 0;

	/* A second file of this process has the page that all may ring, and no other. */
	struct ibv_context *other = device_open();

	assert_non_null(other);
	for (off_t page = 0; page < 4096; page++)
		mapped += mmap(NULL, 4096, PROT_READ, MAP_SHARED, other->cmd_fd, page * 4096) !=
			  MAP_FAILED;
	assert_int_equal(mapped, 1);
	ibv_close_device(other);
	assert_int_equal(mprotect((void *)(uintptr_t)pair->vps[0]->status, 4096,
				  PROT_READ | PROT_WRITE), -1);
	assert_int_equal(mprotect((void *)pair->vps[0]->dq, 4096, PROT_READ | PROT_EXEC), -1);
}

static void a_number_stays_taken_while_its_doorbells_are_mapped(void **state)
{
	struct musterdv_vp_attr attr = { .dq_entries = 1, .rq_entries = 1, .cq_entries = 1 };
	struct pair *pair = *state;
	struct musterdv_vp *vp;
	uint32_t kept;
	pid_t child;

	assert_int_equal(musterdv_vp_create(pair->pd, &attr, &vp), 0);
	kept = vp->vp;
	child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	assert_int_equal(musterdv_vp_destroy(vp), 0);
	for (int i = 0; i < MUSTER_VPS_MAX + 8; i++) {
		assert_int_equal(musterdv_vp_create(pair->pd, &attr, &vp), 0);
		assert_int_not_equal(vp->vp, kept);
		assert_int_equal(musterdv_vp_destroy(vp), 0);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

#define WITH_PAIR(test) cmocka_unit_test_setup_teardown(test, one_pair, no_pair)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_PAIR(the_device_says_who_it_is),
		WITH_PAIR(odd_sizes_of_rings_are_refused),
		WITH_PAIR(the_largest_rings_can_be_had),
		WITH_PAIR(messages_arrive_in_every_lap),
		WITH_PAIR(a_number_is_not_used_again_soon),
		WITH_PAIR(an_armed_port_wakes_its_sleeper_once),
		WITH_PAIR(arming_late_loses_nothing),
		WITH_PAIR(arming_takes_no_system_call),
		WITH_PAIR(no_wake_is_lost_whenever_it_comes),
		WITH_PAIR(a_doorbell_beyond_the_ring_is_an_event_of_its_port),
		WITH_PAIR(a_full_completion_queue_is_one_event),
		WITH_PAIR(an_ordinary_queue_pair_is_refused),
		WITH_PAIR(memory_read_only_is_not_for_writing),
		WITH_PAIR(odd_memory_is_refused),
		WITH_PAIR(the_device_reads_registered_memory),
		WITH_PAIR(a_port_writes_to_what_is_open_for_it),
		WITH_PAIR(the_kernel_mints_a_key_for_each_job),
		WITH_PAIR(what_a_context_uses_stays),
		WITH_PAIR(odd_contexts_are_refused),
		WITH_PAIR(an_abort_reaches_all_members),
		WITH_PAIR(a_context_joins_trees_of_its_own_and_odd_ones_are_refused),
		WITH_PAIR(a_kept_program_is_started_until_its_memory_goes),
		WITH_PAIR(a_program_in_memory_runs_by_one_descriptor),
		WITH_PAIR(what_is_not_ours_cannot_be_mapped),
		WITH_PAIR(a_number_stays_taken_while_its_doorbells_are_mapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
