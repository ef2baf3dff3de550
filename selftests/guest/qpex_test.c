// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests that are put together call by call (ibv_wr_start() and on), in a guest: they do what
 * posted ones do, and one that is wrong takes back all since the start.
 */
#include "qp_ends.h"

#include <errno.h>
#include <string.h>

enum {
	SENDS = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
	ALL = SENDS | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
	      IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
	      IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
};

static struct ibv_qp *create_ex(struct end *end, uint64_t ops)
{
	struct ibv_qp_init_attr plain = attr_of(end);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = plain.send_cq, .recv_cq = plain.recv_cq, .cap = plain.cap,
		.qp_type = plain.qp_type, .pd = end->pd, .send_ops_flags = ops,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
	};

	return ibv_create_qp_ex(end->ctx, &attr);
}

static void replace(struct end *end, uint64_t ops)
{
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ibv_destroy_qp(end->qps[i]), 0);
		end->qps[i] = create_ex(end, ops);
		assert_non_null(end->qps[i]);
	}
}

static int connected(void **state)
{
	struct end *end = open_end(IBV_QPT_RC, REMOTE);

	replace(end, ALL);
	for (int i = 0; i < 2; i++)
		connect_to(end, i);
	*state = end;
	return 0;
}

static int datagrams(void **state)
{
	struct end *end = open_end(IBV_QPT_UD, 0);

	replace(end, SENDS);
	for (int i = 0; i < 2; i++)
		ready(end->qps[i]);
	*state = end;
	return 0;
}

static struct ibv_qp_ex *start(struct end *end)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(end->qps[0]);

	ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	return ex;
}

static void done(struct end *end, struct ibv_qp_ex *ex)
{
	ibv_wr_set_sge(ex, end->mr->lkey, (uintptr_t)end->bytes, 8);
	assert_int_equal(ibv_wr_complete(ex), 0);
	completes(end, 1, IBV_WC_SUCCESS);
}

static void each_operation_does_what_a_posted_one_does(void **state)
{
	struct end *end = *state;
	uint64_t *here = (uint64_t *)end->bytes, *there = (uint64_t *)(end->bytes + 4096);
	const uint64_t at = (uintptr_t)there;
	const uint32_t key = end->mr->rkey;
	struct ibv_qp_ex *ex = start(end);

	*here = 5;
	ibv_wr_rdma_write(ex, key, at);
	done(end, ex);
	assert_int_equal(*there, 5);
	*there = 6;
	ex = start(end);
	ibv_wr_rdma_read(ex, key, at);
	done(end, ex);
	assert_int_equal(*here, 6);
	ex = start(end);
	ibv_wr_atomic_fetch_add(ex, key, at, 4);
	done(end, ex);
	assert_int_equal(*there, 10);
	ex = start(end);
	ibv_wr_atomic_cmp_swp(ex, key, at, 10, 11);
	done(end, ex);
	assert_int_equal(*there, 11);
}

/* Both are there, and the receive has them. */
static void arrives(struct end *end, uint32_t length, uint32_t imm)
{
	for (int i = 0; i < 2; i++) {
		struct ibv_wc wc = next(end);

		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (wc.wr_id == 1)
			continue;
		assert_int_equal(wc.byte_len, length);
		assert_int_equal(be32toh(wc.imm_data), imm);
	}
}

static void immediate_data_and_inline_data_arrive(void **state)
{
	struct end *end = *state;
	const struct ibv_data_buf bufs[2] = { { "a grain", 7 }, { " of salt", 9 } };
	struct ibv_qp_ex *ex;

	assert_int_equal(receive(end, 1, 2), 0);
	ex = start(end);
	ibv_wr_send_imm(ex, htobe32(77));
	ibv_wr_set_inline_data_list(ex, 2, bufs);
	assert_int_equal(ibv_wr_complete(ex), 0);
	arrives(end, 16, 77);
	assert_string_equal(end->bytes, "a grain of salt");
	assert_int_equal(receive(end, 1, 2), 0);
	ex = start(end);
	ibv_wr_rdma_write_imm(ex, end->mr->rkey, (uintptr_t)end->bytes + 4096, htobe32(78));
	ibv_wr_set_inline_data(ex, "sugar", 6);
	assert_int_equal(ibv_wr_complete(ex), 0);
	arrives(end, 6, 78);
	assert_string_equal(end->bytes + 4096, "sugar");
}

static void datagrams_go_to_whom_they_are_for(void **state)
{
	struct end *end = *state;
	struct ibv_qp_ex *ex;

	assert_null(create_ex(end, ALL));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(receive(end, 1, 2), 0);
	ex = start(end);
	ibv_wr_send_imm(ex, htobe32(5));
	ibv_wr_set_ud_addr(ex, end->ah, end->qps[1]->qp_num, QKEY);
	ibv_wr_set_sge(ex, end->mr->lkey, (uintptr_t)end->bytes + 4096, 100);
	assert_int_equal(ibv_wr_complete(ex), 0);
	arrives(end, 100 + 40, 5);
}

static void one(struct ibv_qp_ex *ex, struct end *end)
{
	ibv_wr_rdma_write(ex, end->mr->rkey, (uintptr_t)end->bytes + 4096);
	ibv_wr_set_sge(ex, end->mr->lkey, (uintptr_t)end->bytes, 8);
}

static void what_is_wrong_takes_back_all_since_the_start(void **state)
{
	static char much[257];
	struct end *end = *state;
	struct ibv_sge sges[3] = { };
	struct ibv_qp_ex *ex;
	struct ibv_wc wc;

	ex = start(end);
	for (int i = 0; i <= ENTRIES; i++)
		one(ex, end);
	assert_int_equal(ibv_wr_complete(ex), ENOMEM);
	ex = start(end);
	one(ex, end);
	ibv_wr_set_inline_data(ex, much, sizeof(much));
	one(ex, end);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	ex = start(end);
	one(ex, end);
	ibv_wr_set_sge_list(ex, 3, sges);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	ex = start(end);
	one(ex, end);
	ibv_wr_abort(ex);
	assert_int_equal(step(end->qps[0], IBV_QPS_RESET), 0);
	ex = start(end);
	one(ex, end);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	assert_int_equal(send(end, 0, 1), EINVAL);
	assert_int_equal(receive(end, 0, 1), EINVAL);
	assert_int_equal(step(end->qps[1], IBV_QPS_RESET), 0);
	for (int i = 0; i < 2; i++)
		connect_to(end, i);
	for (int times = 0; times < 2; times++) {
		ex = start(end);
		for (int i = 0; i < ENTRIES; i++)
			one(ex, end);
		assert_int_equal(ibv_wr_complete(ex), 0);
		for (int i = 0; i < ENTRIES; i++)
			completes(end, 1, IBV_WC_SUCCESS);
		assert_int_equal(ibv_poll_cq(end->cq, 1, &wc), 0);
	}
}

#define WITH_EX(test) cmocka_unit_test_setup_teardown(test, connected, no_ends)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_EX(each_operation_does_what_a_posted_one_does),
		WITH_EX(immediate_data_and_inline_data_arrive),
		cmocka_unit_test_setup_teardown(datagrams_go_to_whom_they_are_for, datagrams, no_ends),
		WITH_EX(what_is_wrong_takes_back_all_since_the_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
