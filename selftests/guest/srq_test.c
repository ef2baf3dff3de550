// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receives that queue pairs share, the driver under them and the device under that, from one
 * process in a guest: of the two that are connected the second receives from such a queue.
 */
#include "qp_ends.h"

#include <errno.h>
#include <string.h>

static struct ibv_srq *srq;

static struct ibv_srq_init_attr srq_attr(void)
{
	return (struct ibv_srq_init_attr){ .attr = { .max_wr = ENTRIES - 1, .max_sge = 1 } };
}

static int sharing_ends(void **state)
{
	struct end *end = open_end(IBV_QPT_RC, REMOTE);
	struct ibv_srq_init_attr init = srq_attr();
	struct ibv_qp_init_attr attr = attr_of(end);

	srq = ibv_create_srq(end->pd, &init);
	assert_non_null(srq);
	assert_int_equal(init.attr.max_wr, ENTRIES);
	attr.srq = srq;
	assert_int_equal(ibv_destroy_qp(end->qps[1]), 0);
	end->qps[1] = ibv_create_qp(end->pd, &attr);
	assert_non_null(end->qps[1]);
	assert_int_equal(attr.cap.max_recv_wr, 0);
	for (int i = 0; i < 2; i++)
		connect_to(end, i);
	*state = end;
	return 0;
}

static int no_sharing_ends(void **state)
{
	struct end *end = *state;

	assert_int_equal(ibv_destroy_srq(srq), EBUSY);
	assert_int_equal(ibv_destroy_qp(end->qps[1]), 0);
	end->qps[1] = NULL;
	assert_int_equal(ibv_destroy_srq(srq), 0);
	return no_ends(state);
}

static int share(struct end *end, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)end->bytes, 2048, end->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

/* From the first to the second, which takes that receive; in whichever order the two complete. */
static void passes(struct end *end, uint64_t wr_id)
{
	assert_int_equal(send(end, 0, 1000), 0);
	for (int i = 0; i < 2; i++) {
		struct ibv_wc wc = next(end);

		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, wc.opcode == IBV_WC_RECV ? wr_id : 1000);
	}
}

static struct ibv_async_event event_of(struct end *end)
{
	struct ibv_async_event event;

	assert_int_equal(ibv_get_async_event(end->ctx, &event), 0);
	ibv_ack_async_event(&event);
	return event;
}

static void what_is_beyond_the_limits_is_refused(void **state)
{
	struct end *end = *state;
	struct ibv_srq_attr attr = { .max_wr = 2 * ENTRIES, .srq_limit = ENTRIES + 1 };
	struct ibv_srq_init_attr init;

#define REFUSED(field, value) do { \
		init = srq_attr(); \
		init.attr.field = value; \
		assert_null(ibv_create_srq(end->pd, &init)); \
	} while (0)
	REFUSED(max_wr, 0);
	REFUSED(max_wr, 4097);
	REFUSED(max_sge, 5);
#undef REFUSED
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EOPNOTSUPP);
}

static void a_place_is_free_when_its_receive_is_taken(void **state)
{
	struct end *end = *state;
	uint64_t posted = 0;

	while (posted < ENTRIES)
		assert_int_equal(share(end, posted++), 0);
	assert_int_equal(share(end, posted), ENOMEM);
	for (uint64_t i = 0; i < 3 * ENTRIES; i++) {
		passes(end, i);
		assert_int_equal(share(end, posted++), 0);
	}
	assert_int_equal(share(end, posted), ENOMEM);
}

static void it_is_told_that_few_are_left(void **state)
{
	struct ibv_srq_attr attr = { .srq_limit = 2 };
	struct end *end = *state;
	struct ibv_async_event event;

	for (int i = 0; i < 3; i++)
		assert_int_equal(share(end, i), 0);
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	passes(end, 0);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 2);
	assert_int_equal(attr.max_wr, ENTRIES);
	assert_int_equal(attr.max_sge, 1);
	passes(end, 1);
	event = event_of(end);
	assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, srq);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 0);
}

/* What it has not taken remains for others; it is told that no more of it will complete. */
static void who_fails_leaves_what_is_shared(void **state)
{
	struct end *end = *state;
	struct ibv_async_event event;

	assert_int_equal(share(end, 5), 0);
	for (int times = 0; times < 2; times++) {
		assert_int_equal(step(end->qps[1], IBV_QPS_ERR), 0);
		event = event_of(end);
		assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
		assert_ptr_equal(event.element.qp, end->qps[1]);
		for (int i = 0; i < 2; i++)
			assert_int_equal(step(end->qps[i], IBV_QPS_RESET), 0);
		for (int i = 0; i < 2; i++)
			connect_to(end, i);
	}
	passes(end, 5);
}

#define WITH_SHARING(test) cmocka_unit_test_setup_teardown(test, sharing_ends, no_sharing_ends)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SHARING(what_is_beyond_the_limits_is_refused),
		WITH_SHARING(a_place_is_free_when_its_receive_is_taken),
		WITH_SHARING(it_is_told_that_few_are_left),
		WITH_SHARING(who_fails_leaves_what_is_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
