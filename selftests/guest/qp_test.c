// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs of ordinary verbs, the driver under them and the device under that, from one
 * process in a guest: what they do, what they refuse, and that each request completes once.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port.h"

enum { ENTRIES = 8, BYTES = 8192, QKEY = 0x22222222 };

struct end {
	enum ibv_qp_type type;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_ah *ah;	/* of this node, */
	uint16_t lid;		/* that has this one */
	struct ibv_qp *qps[2];
	char bytes[BYTES];
};

static int step(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1, .qkey = QKEY };
	int mask = IBV_QP_STATE;

	if (state == IBV_QPS_INIT)
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	if (state == IBV_QPS_RTS)
		mask |= IBV_QP_SQ_PSN;
	return ibv_modify_qp(qp, &attr, mask);
}

static void ready(struct ibv_qp *qp)
{
	assert_int_equal(step(qp, IBV_QPS_INIT), 0);
	assert_int_equal(step(qp, IBV_QPS_RTR), 0);
	assert_int_equal(step(qp, IBV_QPS_RTS), 0);
}

static struct ibv_qp_init_attr attr_of(struct end *end)
{
	return (struct ibv_qp_init_attr){
		.send_cq = end->cq, .recv_cq = end->cq, .qp_type = end->type,
		.cap = { .max_send_wr = ENTRIES, .max_recv_wr = ENTRIES, .max_send_sge = 2,
			 .max_recv_sge = 2, .max_inline_data = 64 },
	};
}

static struct ibv_qp *create(struct end *end)
{
	struct ibv_qp_init_attr attr = attr_of(end);
	struct ibv_qp *qp = ibv_create_qp(end->pd, &attr);

	assert_non_null(qp);
	return qp;
}

static struct end *open_end(enum ibv_qp_type type, int access)
{
	struct ibv_ah_attr ah = { .port_num = 1 };
	struct end *end = calloc(1, sizeof(*end));
	struct ibv_port_attr port;

	end->type = type;
	end->ctx = device_open();
	assert_non_null(end->ctx);
	end->pd = ibv_alloc_pd(end->ctx);
	end->channel = ibv_create_comp_channel(end->ctx);
	end->cq = ibv_create_cq(end->ctx, 4 * ENTRIES, NULL, end->channel, 0);
	end->mr = ibv_reg_mr(end->pd, end->bytes, BYTES, IBV_ACCESS_LOCAL_WRITE | access);
	assert_int_equal(ibv_query_port(end->ctx, 1, &port), 0);
	ah.dlid = end->lid = port.lid;
	end->ah = ibv_create_ah(end->pd, &ah);
	assert_non_null(end->cq);
	assert_non_null(end->mr);
	assert_non_null(end->ah);
	for (int i = 0; i < 2; i++)
		end->qps[i] = create(end);
	return end;
}

static int two_ends(void **state)
{
	struct end *end = open_end(IBV_QPT_UD, 0);

	for (int i = 0; i < 2; i++)
		ready(end->qps[i]);
	*state = end;
	return 0;
}

enum { REMOTE = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };

static void connect_to(struct end *end, int i)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = REMOTE,
		.path_mtu = IBV_MTU_1024, .dest_qp_num = end->qps[!i]->qp_num,
		.rq_psn = 0xfffffe, .sq_psn = 0xfffffe, .max_rd_atomic = 4,
		.max_dest_rd_atomic = 4, .min_rnr_timer = 1, .timeout = 14, .retry_cnt = 7,
		.rnr_retry = 7, .ah_attr = { .port_num = 1, .dlid = end->lid },
	};

	assert_int_equal(ibv_modify_qp(end->qps[i], &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
				       IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(end->qps[i], &attr, IBV_QP_STATE | IBV_QP_AV |
				       IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(end->qps[i], &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
				       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				       IBV_QP_MAX_QP_RD_ATOMIC), 0);
}

static int two_connected_ends(void **state)
{
	struct end *end = open_end(IBV_QPT_RC, REMOTE);

	for (int i = 0; i < 2; i++)
		connect_to(end, i);
	*state = end;
	return 0;
}

static int no_ends(void **state)
{
	struct end *end = *state;

	for (int i = 0; i < 2; i++)
		if (end->qps[i])
			assert_int_equal(ibv_destroy_qp(end->qps[i]), 0);
	assert_int_equal(ibv_destroy_ah(end->ah), 0);
	assert_int_equal(ibv_dereg_mr(end->mr), 0);
	assert_int_equal(ibv_destroy_cq(end->cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(end->channel), 0);
	assert_int_equal(ibv_dealloc_pd(end->pd), 0);
	assert_int_equal(ibv_close_device(end->ctx), 0);
	free(end);
	return 0;
}

static int receive(struct end *end, int i, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)end->bytes, 2048, end->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(end->qps[i], &wr, &bad);
}

static int send_with(struct end *end, int i, uint64_t wr_id, uint32_t lkey, int flags)
{
	struct ibv_sge sge = { (uintptr_t)end->bytes + 4096, 100, lkey };
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = flags,
	}, *bad;

	if (end->type == IBV_QPT_UD) {
		wr.wr.ud.ah = end->ah;
		wr.wr.ud.remote_qpn = end->qps[!i]->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
	}

	return ibv_post_send(end->qps[i], &wr, &bad);
}

static int send(struct end *end, int i, uint64_t wr_id)
{
	return send_with(end, i, wr_id, end->mr->lkey, IBV_SEND_SIGNALED);
}

/* The next completion, however long it takes; the runner has an end. */
static struct ibv_wc next(struct end *end)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(end->cq, 1, &wc);
	while (n == 0);
	assert_int_equal(n, 1);
	return wc;
}

static void completes(struct end *end, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = next(end);

	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, status);
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &init), 0);
	assert_int_equal(attr.cap.max_send_wr, ENTRIES);
	assert_int_equal(init.qp_type, qp->qp_type);
	return attr.qp_state;
}

/* ---- life ------------------------------------------------------------------------ */

static void what_is_beyond_the_limits_is_refused(void **state)
{
	struct end *end = *state;
	struct ibv_qp_init_attr attr;

#define REFUSED(field, value) do { \
		attr = attr_of(end); \
		attr.field = value; \
		assert_null(ibv_create_qp(end->pd, &attr)); \
	} while (0)
	REFUSED(cap.max_send_wr, 4097);
	REFUSED(cap.max_recv_wr, UINT32_MAX);
	REFUSED(cap.max_send_sge, 5);
	REFUSED(cap.max_recv_sge, 5);
	REFUSED(cap.max_inline_data, 257);
	REFUSED(qp_type, IBV_QPT_UC);
	REFUSED(qp_type, IBV_QPT_RAW_PACKET);
#undef REFUSED
}

static void the_largest_and_the_smallest_can_be_had(void **state)
{
	struct end *end = *state;
	struct ibv_qp_init_attr attr = attr_of(end);
	struct ibv_qp *qp;

	attr.cap.max_send_wr = attr.cap.max_recv_wr = 4096;
	qp = ibv_create_qp(end->pd, &attr);
	assert_non_null(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	attr = attr_of(end);
	attr.cap = (struct ibv_qp_cap){ };
	qp = ibv_create_qp(end->pd, &attr);
	assert_non_null(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void states_follow_each_other_as_verbs_say(void **state)
{
	struct end *end = *state;
	struct ibv_qp *qp = create(end);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .pkey_index = 1 };
	const int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;

	assert_int_equal(state_of(qp), IBV_QPS_RESET);
	assert_int_equal(step(qp, IBV_QPS_RTR), EINVAL);
	assert_int_equal(ibv_modify_qp(qp, &attr, init), EINVAL);
	attr.pkey_index = 0;
	assert_int_equal(ibv_modify_qp(qp, &attr, init & ~IBV_QP_QKEY), EINVAL);
	attr.cur_qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(qp, &attr, init | IBV_QP_CUR_STATE), EINVAL);
	assert_int_equal(state_of(qp), IBV_QPS_RESET);
	ready(qp);
	assert_int_equal(state_of(qp), IBV_QPS_RTS);
	assert_int_not_equal(step(qp, IBV_QPS_SQD), 0);
	assert_int_equal(step(qp, IBV_QPS_ERR), 0);
	assert_int_equal(step(qp, IBV_QPS_RTS), EINVAL);
	assert_int_equal(step(qp, IBV_QPS_RESET), 0);
	ready(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* Whatever its number is: that may be a virtual port's, and another user's. */
static void a_queue_pair_is_no_virtual_port(void **state)
{
	struct end *end = *state;
	struct musterdv_vp port = { .qp = end->qps[0] };
	struct musterdv_member member = { };
	const struct musterdv_context_attr attr = {
		.id = PORT_CONTEXT, .nr_members = 1, .members = &member,
	};
	struct musterdv_context *context;
	struct musterdv_job *job;

	assert_int_equal(musterdv_job_create(end->ctx, PORT_JOB, NULL, &job, NULL), 0);
	assert_int_equal(musterdv_context_open(job, &port, &attr, &context), -EINVAL);
	assert_int_equal(musterdv_job_destroy(job), 0);
}

/* ---- datagrams ------------------------------------------------------------------- */

static void an_answer_finds_its_way_by_the_header(void **state)
{
	struct end *end = *state;
	struct ibv_ah_attr attr;
	struct ibv_ah *ah;
	struct ibv_wc wc;

	for (int i = 0; i < 100; i++) {
		memset(end->bytes + 4096, i, 100);
		assert_int_equal(receive(end, 1, 7), 0);
		assert_int_equal(send(end, 0, 8), 0);
		completes(end, 8, IBV_WC_SUCCESS);
		wc = next(end);
		assert_int_equal(wc.wr_id, 7);
		assert_int_equal(wc.byte_len, 140);
		assert_int_equal(wc.src_qp, end->qps[0]->qp_num);
		assert_int_equal(wc.qp_num, end->qps[1]->qp_num);
		assert_int_equal(wc.wc_flags, IBV_WC_GRH);
		assert_memory_equal(end->bytes + 40, end->bytes + 4096, 100);
	}
	assert_int_equal(ibv_init_ah_from_wc(end->ctx, 1, &wc, (struct ibv_grh *)end->bytes, &attr), 0);
	ah = ibv_create_ah(end->pd, &attr);
	assert_non_null(ah);
	assert_int_equal(ibv_destroy_ah(end->ah), 0);
	end->ah = ah;
	assert_int_equal(receive(end, 0, 9), 0);
	assert_int_equal(send(end, 1, 10), 0);
	completes(end, 10, IBV_WC_SUCCESS);
	completes(end, 9, IBV_WC_SUCCESS);
}

static void strange_addresses_are_refused(void **state)
{
	struct ibv_ah_attr attr = { .port_num = 1, .dlid = 0 };
	struct end *end = *state;

	assert_null(ibv_create_ah(end->pd, &attr));
	attr.dlid = 1;
	attr.port_num = 2;
	assert_null(ibv_create_ah(end->pd, &attr));
	attr.port_num = 1;
	attr.is_global = 1;
	attr.grh.dgid.raw[0] = 0xff;
	assert_null(ibv_create_ah(end->pd, &attr));
}

static void a_full_queue_takes_no_more_until_something_was_polled(void **state)
{
	struct end *end = *state;
	int n = 0;

	for (int i = 0; i < ENTRIES; i++)
		assert_int_equal(receive(end, 1, i), 0);
	assert_int_equal(receive(end, 1, 99), ENOMEM);
	while (!send_with(end, 0, n, end->mr->lkey, IBV_SEND_SIGNALED))
		n++;
	assert_int_equal(n, ENTRIES);
	for (int i = 0; i < 2 * ENTRIES; i++)
		assert_int_equal(next(end).status, IBV_WC_SUCCESS);
	assert_int_equal(send(end, 0, 1), 0);
	assert_int_equal(receive(end, 1, 99), 0);
	completes(end, 1, IBV_WC_SUCCESS);
}

/* ---- errors ---------------------------------------------------------------------- */

static void each_request_completes_once_whatever_happens(void **state)
{
	struct end *end = *state;
	struct ibv_wc wc;

	for (int i = 0; i < 3; i++)
		assert_int_equal(receive(end, 0, 100 + i), 0);
	assert_int_equal(send_with(end, 0, 1, end->mr->lkey + 1, 0), 0);
	completes(end, 1, IBV_WC_LOC_PROT_ERR);
	for (int i = 0; i < 3; i++)
		completes(end, 100 + i, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(state_of(end->qps[0]), IBV_QPS_ERR);
	assert_int_equal(receive(end, 0, 103), 0);
	completes(end, 103, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(send_with(end, 0, 2, end->mr->lkey, 0), 0);
	completes(end, 2, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(receive(end, 1, 104), 0);
	assert_int_equal(step(end->qps[1], IBV_QPS_ERR), 0);
	completes(end, 104, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_poll_cq(end->cq, 1, &wc), 0);
}

static void what_was_not_polled_goes_with_its_queue_pair(void **state)
{
	struct end *end = *state;
	struct ibv_wc wc;

	assert_int_equal(receive(end, 0, 1), 0);
	assert_int_equal(step(end->qps[0], IBV_QPS_ERR), 0);
	assert_int_equal(receive(end, 1, 2), 0);
	assert_int_equal(step(end->qps[1], IBV_QPS_ERR), 0);
	assert_int_equal(step(end->qps[0], IBV_QPS_RESET), 0);
	assert_int_equal(ibv_destroy_qp(end->qps[1]), 0);
	assert_int_equal(ibv_poll_cq(end->cq, 1, &wc), 0);
	ready(end->qps[0]);
	end->qps[1] = create(end);
	ready(end->qps[1]);
	assert_int_equal(receive(end, 1, 3), 0);
	assert_int_equal(send(end, 0, 4), 0);
	completes(end, 4, IBV_WC_SUCCESS);
	completes(end, 3, IBV_WC_SUCCESS);
}

/* ---- sleeping -------------------------------------------------------------------- */

static bool wakes(struct end *end, int timeout_ms)
{
	struct pollfd fd = { .fd = end->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&fd, 1, timeout_ms) == 0)
		return false;
	assert_int_equal(ibv_get_cq_event(end->channel, &cq, &context), 0);
	assert_ptr_equal(cq, end->cq);
	ibv_ack_cq_events(cq, 1);
	return true;
}

static void an_armed_queue_wakes_its_sleeper(void **state)
{
	struct end *end = *state;

	for (int i = 0; i < 20; i++) {
		assert_int_equal(ibv_req_notify_cq(end->cq, 0), 0);
		assert_int_equal(send(end, 0, i), 0);
		assert_true(wakes(end, -1));
		completes(end, i, IBV_WC_SUCCESS);
	}
	assert_int_equal(ibv_req_notify_cq(end->cq, 1), 0);
	assert_int_equal(send(end, 0, 1), 0);
	completes(end, 1, IBV_WC_SUCCESS);
	assert_int_equal(receive(end, 1, 2), 0);
	assert_int_equal(send_with(end, 0, 3, end->mr->lkey, IBV_SEND_SOLICITED), 0);
	assert_true(wakes(end, -1));
	completes(end, 2, IBV_WC_SUCCESS);
}

/* Both have the same vector. */
static void only_the_queue_that_is_meant_wakes_its_sleeper(void **state)
{
	struct end *end = *state;
	struct ibv_comp_channel *channel = ibv_create_comp_channel(end->ctx);
	struct ibv_cq *other = ibv_create_cq(end->ctx, 1, NULL, channel, 0);
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };

	assert_non_null(other);
	assert_int_equal(ibv_req_notify_cq(other, 0), 0);
	assert_int_equal(ibv_req_notify_cq(end->cq, 0), 0);
	assert_int_equal(send(end, 0, 1), 0);
	assert_true(wakes(end, -1));
	completes(end, 1, IBV_WC_SUCCESS);
	assert_int_equal(poll(&fd, 1, 0), 0);
	assert_int_equal(ibv_destroy_cq(other), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

/* ---- connections ----------------------------------------------------------------- */

/* From the first's start of memory to its middle; it is known by its opcode. */
static int operation(struct end *end, enum ibv_wr_opcode opcode, uint32_t length, uint32_t rkey,
		     uint64_t compare_add)
{
	struct ibv_sge sge = { (uintptr_t)end->bytes, length, end->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = opcode, .sg_list = &sge, .num_sge = 1, .opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)end->bytes + 4096;
		wr.wr.atomic.compare_add = compare_add;
		wr.wr.atomic.swap = 7;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)end->bytes + 4096;
		wr.wr.rdma.rkey = rkey;
	}
	return ibv_post_send(end->qps[0], &wr, &bad);
}

static void succeeds(struct end *end, enum ibv_wr_opcode opcode, uint32_t length,
		     uint64_t compare_add)
{
	assert_int_equal(operation(end, opcode, length, end->mr->rkey, compare_add), 0);
	completes(end, opcode, IBV_WC_SUCCESS);
}

static void writes_reads_and_atomics_reach_the_other_side(void **state)
{
	struct end *end = *state;
	uint64_t *here = (uint64_t *)end->bytes, *there = (uint64_t *)(end->bytes + 4096);

	memset(end->bytes, 3, 3000);
	succeeds(end, IBV_WR_RDMA_WRITE, 3000, 0);
	assert_memory_equal(end->bytes, end->bytes + 4096, 3000);
	memset(end->bytes + 4096, 4, 3000);
	succeeds(end, IBV_WR_RDMA_READ, 3000, 0);
	assert_memory_equal(end->bytes, end->bytes + 4096, 3000);
	*there = 40;
	succeeds(end, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 5);
	assert_int_equal(*here, 40);
	assert_int_equal(*there, 45);
	succeeds(end, IBV_WR_ATOMIC_CMP_AND_SWP, 8, 44);
	assert_int_equal(*here, 45);
	assert_int_equal(*there, 45);
	succeeds(end, IBV_WR_ATOMIC_CMP_AND_SWP, 8, 45);
	assert_int_equal(*there, 7);
}

static void a_message_waits_for_its_receive(void **state)
{
	struct end *end = *state;
	struct ibv_wc wc;

	memset(end->bytes + 4096, 5, 100);
	assert_int_equal(send(end, 0, 1), 0);
	assert_int_equal(receive(end, 1, 2), 0);
	for (int i = 0; i < 2; i++) {
		wc = next(end);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.opcode, wc.wr_id == 1 ? IBV_WC_SEND : IBV_WC_RECV);
		assert_int_equal(wc.wr_id == 2 ? wc.byte_len : 100, 100);
	}
	assert_memory_equal(end->bytes, end->bytes + 4096, 100);
}

/* The second has posted nothing that could tell it; what it posts then ends all the same. */
static void forbidden(struct end *end, uint32_t rkey)
{
	struct ibv_async_event event;

	assert_int_equal(operation(end, IBV_WR_RDMA_WRITE, 100, rkey, 0), 0);
	completes(end, IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(end->bytes[4096], 0);
	assert_int_equal(ibv_get_async_event(end->ctx, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
	assert_ptr_equal(event.element.qp, end->qps[1]);
	ibv_ack_async_event(&event);
	for (int i = 0; i < 2; i++)
		assert_int_equal(state_of(end->qps[i]), IBV_QPS_ERR);
	assert_int_equal(receive(end, 1, 9), 0);
	completes(end, 9, IBV_WC_WR_FLUSH_ERR);
}

static void what_is_not_allowed_fails_at_both_ends(void **state)
{
	struct end *end = *state;
	struct ibv_mr *own = ibv_reg_mr(end->pd, end->bytes, BYTES, IBV_ACCESS_LOCAL_WRITE);

	assert_non_null(own);
	end->bytes[0] = 1;
	for (int times = 0; times < 2; times++) {
		forbidden(end, own->rkey);
		for (int i = 0; i < 2; i++)
			assert_int_equal(step(end->qps[i], IBV_QPS_RESET), 0);
		for (int i = 0; i < 2; i++)
			connect_to(end, i);
	}
	writes_reads_and_atomics_reach_the_other_side(state);
	assert_int_equal(ibv_dereg_mr(own), 0);
}

/* ---- the end of the device -------------------------------------------------------- */

static void device_reset(const struct end *end)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/reset",
		 ibv_get_device_name(end->ctx->device));
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("1", file);
	assert_int_equal(fclose(file), 0);
}

/* The next n completions are flushed, and of these requests, in any order. */
static void are_flushed(struct end *end, uint64_t first, int n)
{
	uint64_t seen = 0;

	for (int i = 0; i < n; i++) {
		struct ibv_wc wc = next(end);

		assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
		assert_in_range(wc.wr_id, first, first + n - 1);
		assert_false(seen & 1ull << wc.wr_id);
		seen |= 1ull << wc.wr_id;
	}
}

static void what_is_outstanding_when_the_device_dies_completes_once(void **state)
{
	struct end *end = *state;
	struct ibv_wc wc;

	assert_int_equal(receive(end, 1, 1), 0);
	assert_int_equal(send(end, 0, 2), 0);
	completes(end, 2, IBV_WC_SUCCESS);
	completes(end, 1, IBV_WC_SUCCESS);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(receive(end, 0, 10 + 2 * i), 0);
		assert_int_equal(receive(end, 1, 11 + 2 * i), 0);
	}
	device_reset(end);
	are_flushed(end, 10, 6);
	assert_int_equal(ibv_poll_cq(end->cq, 1, &wc), 0);
	assert_int_equal(send(end, 1, 20), 0);
	assert_int_equal(receive(end, 1, 21), 0);
	are_flushed(end, 20, 2);
	assert_int_equal(ibv_poll_cq(end->cq, 1, &wc), 0);
}

#define WITH_ENDS(test) cmocka_unit_test_setup_teardown(test, two_ends, no_ends)
#define WITH_CONNECTION(test) cmocka_unit_test_setup_teardown(test, two_connected_ends, no_ends)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_ENDS(what_is_beyond_the_limits_is_refused),
		WITH_ENDS(the_largest_and_the_smallest_can_be_had),
		WITH_ENDS(states_follow_each_other_as_verbs_say),
		WITH_ENDS(a_queue_pair_is_no_virtual_port),
		WITH_ENDS(an_answer_finds_its_way_by_the_header),
		WITH_ENDS(strange_addresses_are_refused),
		WITH_ENDS(a_full_queue_takes_no_more_until_something_was_polled),
		WITH_ENDS(each_request_completes_once_whatever_happens),
		WITH_ENDS(what_was_not_polled_goes_with_its_queue_pair),
		WITH_ENDS(an_armed_queue_wakes_its_sleeper),
		WITH_ENDS(only_the_queue_that_is_meant_wakes_its_sleeper),
		WITH_CONNECTION(writes_reads_and_atomics_reach_the_other_side),
		WITH_CONNECTION(a_message_waits_for_its_receive),
		WITH_CONNECTION(what_is_not_allowed_fails_at_both_ends),
		WITH_ENDS(what_is_outstanding_when_the_device_dies_completes_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
