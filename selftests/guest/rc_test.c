// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections, the driver under them and the device under that, from one process in a guest:
 * RDMA, atomics, messages, and what is not allowed.
 */
#include "qp_ends.h"

#include <string.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_CONNECTION(writes_reads_and_atomics_reach_the_other_side),
		WITH_CONNECTION(a_message_waits_for_its_receive),
		WITH_CONNECTION(what_is_not_allowed_fails_at_both_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
