/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For tests of queue pairs in a guest: two of them in one process, with one completion queue,
 * one piece of memory, and requests between them.
 */
#ifndef GUEST_QP_ENDS_H
#define GUEST_QP_ENDS_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

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

static inline int step(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1, .qkey = QKEY };
	int mask = IBV_QP_STATE;

	if (state == IBV_QPS_INIT)
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	if (state == IBV_QPS_RTS)
		mask |= IBV_QP_SQ_PSN;
	return ibv_modify_qp(qp, &attr, mask);
}

static inline void ready(struct ibv_qp *qp)
{
	assert_int_equal(step(qp, IBV_QPS_INIT), 0);
	assert_int_equal(step(qp, IBV_QPS_RTR), 0);
	assert_int_equal(step(qp, IBV_QPS_RTS), 0);
}

static inline struct ibv_qp_init_attr attr_of(struct end *end)
{
	return (struct ibv_qp_init_attr){
		.send_cq = end->cq, .recv_cq = end->cq, .qp_type = end->type,
		.cap = { .max_send_wr = ENTRIES, .max_recv_wr = ENTRIES, .max_send_sge = 2,
			 .max_recv_sge = 2, .max_inline_data = 64 },
	};
}

static inline struct ibv_qp *create(struct end *end)
{
	struct ibv_qp_init_attr attr = attr_of(end);
	struct ibv_qp *qp = ibv_create_qp(end->pd, &attr);

	assert_non_null(qp);
	return qp;
}

static inline struct end *open_end(enum ibv_qp_type type, int access)
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

static inline int two_ends(void **state)
{
	struct end *end = open_end(IBV_QPT_UD, 0);

	for (int i = 0; i < 2; i++)
		ready(end->qps[i]);
	*state = end;
	return 0;
}

enum { REMOTE = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };

static inline void connect_to(struct end *end, int i)
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

static inline int two_connected_ends(void **state)
{
	struct end *end = open_end(IBV_QPT_RC, REMOTE);

	for (int i = 0; i < 2; i++)
		connect_to(end, i);
	*state = end;
	return 0;
}

static inline int no_ends(void **state)
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

static inline int receive(struct end *end, int i, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)end->bytes, 2048, end->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(end->qps[i], &wr, &bad);
}

static inline int send_what(struct end *end, int i, struct ibv_send_wr wr, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)end->bytes + 4096, 100, lkey };
	struct ibv_send_wr *bad;

	wr.sg_list = &sge;
	wr.num_sge = 1;
	if (end->type == IBV_QPT_UD) {
		wr.wr.ud.ah = end->ah;
		wr.wr.ud.remote_qpn = end->qps[!i]->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
	}
	return ibv_post_send(end->qps[i], &wr, &bad);
}

static inline int send_with(struct end *end, int i, uint64_t wr_id, uint32_t lkey, int flags)
{
	return send_what(end, i, (struct ibv_send_wr){ .wr_id = wr_id, .opcode = IBV_WR_SEND,
						       .send_flags = flags }, lkey);
}

static inline int send_imm(struct end *end, int i, uint64_t wr_id, uint32_t imm)
{
	return send_what(end, i, (struct ibv_send_wr){ .wr_id = wr_id,
			 .opcode = IBV_WR_SEND_WITH_IMM, .imm_data = htobe32(imm),
			 .send_flags = IBV_SEND_SIGNALED }, end->mr->lkey);
}

static inline int send(struct end *end, int i, uint64_t wr_id)
{
	return send_with(end, i, wr_id, end->mr->lkey, IBV_SEND_SIGNALED);
}

static inline void device_reset(const struct end *end)
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

/* The next completion, however long it takes; the runner has an end. */
static inline struct ibv_wc next(struct end *end)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(end->cq, 1, &wc);
	while (n == 0);
	assert_int_equal(n, 1);
	return wc;
}

static inline void completes(struct end *end, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = next(end);

	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, status);
}

static inline enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &init), 0);
	assert_int_equal(attr.cap.max_send_wr, ENTRIES);
	assert_int_equal(init.qp_type, qp->qp_type);
	return attr.qp_state;
}

#define WITH_ENDS(test) cmocka_unit_test_setup_teardown(test, two_ends, no_ends)
#define WITH_CONNECTION(test) cmocka_unit_test_setup_teardown(test, two_connected_ends, no_ends)

#endif /* GUEST_QP_ENDS_H */
