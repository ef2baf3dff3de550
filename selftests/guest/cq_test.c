// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues of queue pairs, from one process in a guest: when they wake their sleeper, and
 * what becomes of completions while they change their size.
 */
#include "qp_ends.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

static struct ibv_cq *woken(struct end *end)
{
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(ibv_get_cq_event(end->channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	return cq;
}

/* ---- moderation ------------------------------------------------------------------ */

static void a_moderated_queue_wakes_its_sleeper_once_for_several(void **state)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = 3, .cq_period = 60000 },
	};
	struct ibv_device_attr_ex device;
	struct end *end = *state;

	assert_int_equal(ibv_query_device_ex(end->ctx, NULL, &device), 0);
	assert_int_equal(device.cq_mod_caps.max_cq_count, UINT16_MAX);
	assert_int_equal(ibv_modify_cq(end->cq, &attr), 0);
	assert_int_equal(ibv_req_notify_cq(end->cq, 0), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(send(end, 0, i), 0);
		completes(end, i, IBV_WC_SUCCESS);
	}
	assert_ptr_equal(woken(end), end->cq);
	attr.attr_mask = 2;
	assert_int_not_equal(ibv_modify_cq(end->cq, &attr), 0);
}

static void on_queue(struct end *end, int i, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = attr_of(end);

	assert_int_equal(ibv_destroy_qp(end->qps[i]), 0);
	attr.send_cq = attr.recv_cq = cq;
	end->qps[i] = ibv_create_qp(end->pd, &attr);
	assert_non_null(end->qps[i]);
	ready(end->qps[i]);
}

/*
 * Both have the same vector, and the older is told first if both are due. Where its 65 ms are over
 * before the younger has anything to tell, too; so it is tried until they are not.
 */
static void a_moderated_queue_waits_for_more_and_others_do_not(void **state)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate.cq_period = UINT16_MAX,
	};
	struct end *end = *state;
	struct ibv_cq *plain = ibv_create_cq(end->ctx, ENTRIES, NULL, end->channel, 0), *first = NULL;
	struct ibv_wc wc;

	assert_non_null(plain);
	on_queue(end, 1, plain);
	assert_int_equal(ibv_modify_cq(end->cq, &attr), 0);
	for (int tries = 0; tries < 100 && first != plain; tries++) {
		assert_int_equal(ibv_req_notify_cq(end->cq, 0), 0);
		assert_int_equal(ibv_req_notify_cq(plain, 0), 0);
		assert_int_equal(send(end, 0, 1), 0);
		assert_int_equal(send(end, 1, 2), 0);
		first = woken(end);
		assert_ptr_not_equal(woken(end), first);
		completes(end, 1, IBV_WC_SUCCESS);
		assert_int_equal(ibv_poll_cq(plain, 1, &wc), 1);
	}
	assert_ptr_equal(first, plain);
	on_queue(end, 1, end->cq);
	assert_int_equal(ibv_destroy_cq(plain), 0);
}

/* ---- size ------------------------------------------------------------------------ */

static void a_queue_that_changes_its_size_loses_nothing(void **state)
{
	static const int sizes[] = { 64, 7, 1024, 6, 65536, 16 };
	enum { ROUNDS = 60, EACH = 2, BEHIND = 3 };
	struct end *end = *state;
	uint64_t sent = 0, polled = 0;

	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < EACH; i++)
			assert_int_equal(send(end, 0, sent++), 0);
		assert_int_equal(ibv_resize_cq(end->cq, sizes[round % 6]), 0);
		assert_true(end->cq->cqe >= sizes[round % 6]);
		for (; sent - polled > BEHIND; polled++)
			completes(end, polled, IBV_WC_SUCCESS);
	}
	for (; polled < sent; polled++)
		completes(end, polled, IBV_WC_SUCCESS);
	assert_int_equal(ibv_poll_cq(end->cq, 1, &(struct ibv_wc){ }), 0);
}

static void a_queue_is_never_smaller_than_what_is_in_it(void **state)
{
	struct end *end = *state;
	int err = 0;

	assert_int_equal(ibv_resize_cq(end->cq, 0), EINVAL);
	assert_int_equal(ibv_resize_cq(end->cq, 65537), EINVAL);
	for (int i = 0; i < 6; i++)
		assert_int_equal(send(end, 0, i), 0);
	/* As soon as they are there. */
	while (!(err = ibv_resize_cq(end->cq, 4)))
		assert_int_equal(ibv_resize_cq(end->cq, 16), 0);
	assert_int_equal(err, EINVAL);
	for (int i = 0; i < 6; i++)
		completes(end, i, IBV_WC_SUCCESS);
	assert_int_equal(ibv_resize_cq(end->cq, 4), 0);
}

/* Its process may have no more addresses: nothing has changed then. */
static void a_queue_goes_on_where_its_new_ring_finds_no_place(void **state)
{
	struct end *end = *state;
	struct rlimit before, none;
	int entries = end->cq->cqe, err;

	assert_int_equal(send(end, 0, 0), 0);
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	none = before;
	none.rlim_cur = 1;
	assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
	err = ibv_resize_cq(end->cq, 65536);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_int_equal(err, ENOMEM);
	assert_int_equal(end->cq->cqe, entries);
	assert_int_equal(send(end, 0, 1), 0);
	completes(end, 0, IBV_WC_SUCCESS);
	completes(end, 1, IBV_WC_SUCCESS);
	assert_int_equal(ibv_resize_cq(end->cq, 65536), 0);
	assert_int_equal(send(end, 0, 2), 0);
	completes(end, 2, IBV_WC_SUCCESS);
}

static void a_queue_stays_armed_whatever_its_size(void **state)
{
	struct end *end = *state;

	for (int i = 0; i < 10; i++) {
		assert_int_equal(ibv_req_notify_cq(end->cq, 0), 0);
		assert_int_equal(ibv_resize_cq(end->cq, 8 << i % 3), 0);
		assert_int_equal(send(end, 0, i), 0);
		assert_ptr_equal(woken(end), end->cq);
		completes(end, i, IBV_WC_SUCCESS);
	}
}

static void what_was_not_polled_when_the_device_dies_completes_once(void **state)
{
	struct end *end = *state;

	for (int i = 0; i < 6; i++) {
		assert_int_equal(send(end, 0, i), 0);
		if (i % 2)
			assert_int_equal(ibv_resize_cq(end->cq, 8 << i), 0);
	}
	device_reset(end);
	assert_int_equal(ibv_resize_cq(end->cq, 8), EIO);
	for (uint64_t i = 0; i < 6; i++)
		assert_int_equal(next(end).wr_id, i);
	assert_int_equal(ibv_poll_cq(end->cq, 1, &(struct ibv_wc){ }), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_ENDS(a_moderated_queue_wakes_its_sleeper_once_for_several),
		WITH_ENDS(a_moderated_queue_waits_for_more_and_others_do_not),
		WITH_ENDS(a_queue_that_changes_its_size_loses_nothing),
		WITH_ENDS(a_queue_is_never_smaller_than_what_is_in_it),
		WITH_ENDS(a_queue_goes_on_where_its_new_ring_finds_no_place),
		WITH_ENDS(a_queue_stays_armed_whatever_its_size),
		WITH_ENDS(what_was_not_polled_when_the_device_dies_completes_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
