// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs of ordinary verbs, the driver under them and the device under that, from one
 * process in a guest: what they do, what they refuse, and that each request completes once.
 * Here their lives, and datagrams; rc_test.c has connections, srq_test.c what they share.
 */
#include "qp_ends.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

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
	REFUSED(cap.max_send_sge, 17);
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

/* ---- completions in place -------------------------------------------------------- */

static struct ibv_cq_ex *cq_ex_create(struct end *end, uint64_t wc_flags)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 4 * ENTRIES, .channel = end->channel, .wc_flags = wc_flags,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
	};

	return ibv_create_cq_ex(end->ctx, &attr);
}

/* Both queue pairs complete there from now on. */
static void ends_move(struct end *end, struct ibv_cq *cq)
{
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_destroy_qp(end->qps[i]), 0);
	assert_int_equal(ibv_destroy_cq(end->cq), 0);
	end->cq = cq;
	for (int i = 0; i < 2; i++) {
		end->qps[i] = create(end);
		ready(end->qps[i]);
	}
}

static void is_that_of_the_send(struct end *end, struct ibv_cq_ex *ex)
{
	assert_int_equal(ex->wr_id, 8);
	assert_int_equal(ex->status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_opcode(ex), IBV_WC_SEND);
	assert_int_equal(ibv_wc_read_qp_num(ex), end->qps[0]->qp_num);
}

static void is_that_of_the_receive(struct end *end, struct ibv_cq_ex *ex)
{
	assert_int_equal(ex->wr_id, 7);
	assert_int_equal(ex->status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_opcode(ex), IBV_WC_RECV);
	assert_int_equal(ibv_wc_read_qp_num(ex), end->qps[1]->qp_num);
	assert_int_equal(ibv_wc_read_src_qp(ex), end->qps[0]->qp_num);
	assert_int_equal(ibv_wc_read_byte_len(ex), 140);
	assert_int_equal(ibv_wc_read_wc_flags(ex), IBV_WC_GRH | IBV_WC_WITH_IMM);
	assert_int_equal(ibv_wc_read_imm_data(ex), htobe32(0x1234));
	assert_int_equal(ibv_wc_read_slid(ex), end->lid);
	assert_int_equal(ibv_wc_read_sl(ex), 0);
	assert_int_equal(ibv_wc_read_dlid_path_bits(ex), 0);
	assert_int_equal(ibv_wc_read_vendor_err(ex), 0);
}

static void completions_are_looked_at_in_place(void **state)
{
	struct end *end = *state;
	struct ibv_cq_ex *ex = cq_ex_create(end, IBV_WC_STANDARD_FLAGS);
	struct ibv_poll_cq_attr attr = { };

	assert_null(cq_ex_create(end, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP));
	assert_non_null(ex);
	ends_move(end, ibv_cq_ex_to_cq(ex));
	assert_int_equal(ibv_start_poll(ex, &attr), ENOENT);
	for (int i = 0; i < 40; i++) {
		assert_int_equal(receive(end, 1, 7), 0);
		assert_int_equal(send_imm(end, 0, 8, 0x1234), 0);
		while (ibv_start_poll(ex, &attr) == ENOENT)
			;
		is_that_of_the_send(end, ex);
		while (ibv_next_poll(ex) == ENOENT)
			;
		is_that_of_the_receive(end, ex);
		assert_int_equal(ibv_next_poll(ex), ENOENT);
		ibv_end_poll(ex);
	}
	attr.comp_mask = 1;
	assert_int_equal(ibv_start_poll(ex, &attr), EINVAL);
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

/* ---- the end of the device -------------------------------------------------------- */

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
		WITH_ENDS(completions_are_looked_at_in_place),
		WITH_ENDS(an_armed_queue_wakes_its_sleeper),
		WITH_ENDS(only_the_queue_that_is_meant_wakes_its_sleeper),
		WITH_ENDS(what_is_outstanding_when_the_device_dies_completes_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
