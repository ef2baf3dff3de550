// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What queue pairs count, and in which set: of a connection within one NIC.
 */
#include "test_qp.h"

enum { SET = 5, OTHER = MUSTER_QPS_MAX };

static int two_connected(void **state)
{
	struct guest *guest = guest_new(0);

	qp_memory(guest, MUSTER_MR_ACCESS);
	for (uint32_t i = 0; i < 2; i++)
		qp_create(guest, i, MUSTER_QP_RC);
	for (uint32_t i = 0; i < 2; i++)
		rc_connect(guest, i, 0, 1 - i);
	*state = guest;
	return 0;
}

static uint8_t count_in(struct guest *guest, uint32_t number, uint32_t set)
{
	return command(guest, (struct muster_admin_command){
		.opcode = MUSTER_ADMIN_QP_COUNT,
		.qp_count = { .id = htole32(number), .set = htole32(set) },
	}).status;
}

static struct muster_qp_counters counted(struct guest *guest, uint32_t set)
{
	struct muster_qp_counters counters;

	assert_int_equal(command(guest, (struct muster_admin_command){
		.opcode = MUSTER_ADMIN_COUNTERS,
		.counters = { .base = htole64(LIST), .bytes = htole32(sizeof(counters)), .set = htole32(set) },
	}).status, MUSTER_ADMIN_OK);
	memcpy(&counters, guest->memory + LIST, sizeof(counters));
	return counters;
}

static bool nothing(const struct muster_qp_counters *counters)
{
	static const struct muster_qp_counters none;

	return !memcmp(counters, &none, sizeof(none));
}

static void message_pass(struct guest *guest, uint32_t length)
{
	qp_receive(guest, 1, receive_of(0x4000, 4096));
	qp_send(guest, 0, rc_work(MUSTER_WORK_SEND, 0, length, 0));
	assert_int_equal(await(guest, 1)->status, MUSTER_WC_SUCCESS);
	assert_int_equal(await(guest, 0)->status, MUSTER_WC_SUCCESS);
}

static void each_counts_in_its_set(void **state)
{
	struct guest *guest = *state;
	struct muster_qp_counters a, b, rest;

	assert_int_equal(count_in(guest, qp_number(0), SET), MUSTER_ADMIN_OK);
	assert_int_equal(count_in(guest, qp_number(1), OTHER), MUSTER_ADMIN_OK);
	message_pass(guest, 3000);
	message_pass(guest, 10);
	a = counted(guest, SET);
	b = counted(guest, OTHER);
	rest = counted(guest, 0);
	assert_int_equal(le64toh(a.requests), 2);
	assert_int_equal(le64toh(a.receives), 0);
	assert_int_equal(le64toh(a.packets_out), 4);
	assert_int_equal(le64toh(a.bytes_out), 3010);
	assert_int_equal(le64toh(a.bytes_in), 0);
	assert_int_equal(le64toh(b.receives), 2);
	assert_int_equal(le64toh(b.packets_in), 4);
	assert_int_equal(le64toh(b.bytes_in), 3010);
	assert_int_equal(a.packets_in, b.packets_out);
	assert_true(le64toh(b.packets_out) >= 1);
	assert_true(nothing(&rest));
}

static void a_missing_receive_is_counted_at_both_ends(void **state)
{
	struct guest *guest = *state;
	struct muster_qp_counters a;

	assert_int_equal(count_in(guest, qp_number(0), SET), MUSTER_ADMIN_OK);
	qp_send(guest, 0, rc_work(MUSTER_WORK_SEND, 0, 100, 0));
	qp_receive(guest, 1, receive_of(0x4000, 4096));
	awaits(guest, 0, 0x5e4d0000, MUSTER_WC_SUCCESS);
	a = counted(guest, SET);
	assert_true(le64toh(a.rnr_in) >= 1);
	assert_int_equal(a.rnr_in, counted(guest, 0).rnr_out);
	assert_int_equal(le64toh(a.packets_out), 1 + le64toh(a.rnr_in));
	assert_int_equal(le64toh(a.retries), 0);
}

static void failures_are_counted_and_what_is_flushed_then_is_not(void **state)
{
	struct guest *guest = *state;
	struct muster_work wrong = rc_work(MUSTER_WORK_WRITE, 0, 100, QP_MEMORY);

	qp_put(guest, 0, wrong);
	qp_send(guest, 0, rc_work(MUSTER_WORK_WRITE, 0, 100, 0));
	assert_int_equal(await(guest, 0)->status, MUSTER_WC_REM_ACCESS_ERR);
	assert_int_equal(await(guest, 0)->status, MUSTER_WC_WR_FLUSH_ERR);
	assert_int_equal(le64toh(counted(guest, 0).errors), 1);
	assert_int_equal(le64toh(counted(guest, 0).requests), 0);
}

static void who_is_not_there_is_asked_again(void **state)
{
	struct guest *guest = *state;

	assert_int_equal(command(guest, id_command(MUSTER_ADMIN_QP_DESTROY, qp_number(1))).status,
			 MUSTER_ADMIN_OK);
	qp_send(guest, 0, rc_work(MUSTER_WORK_SEND, 0, 100, 0));
	assert_int_equal(await(guest, 0)->status, MUSTER_WC_RETRY_EXC_ERR);
	assert_int_equal(le64toh(counted(guest, 0).retries), 3);
	assert_int_equal(le64toh(counted(guest, 0).errors), 1);
}

static void a_set_keeps_its_counts_until_somebody_else_begins_it(void **state)
{
	struct guest *guest = *state;
	struct muster_qp_counters a;

	assert_int_equal(count_in(guest, qp_number(0), SET), MUSTER_ADMIN_OK);
	message_pass(guest, 10);
	assert_int_equal(count_in(guest, qp_number(1), SET), MUSTER_ADMIN_OK);
	assert_int_equal(le64toh(counted(guest, SET).requests), 1);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(count_in(guest, qp_number(i), 0), MUSTER_ADMIN_OK);
	message_pass(guest, 10);
	assert_int_equal(le64toh(counted(guest, SET).requests), 1);
	assert_int_equal(le64toh(counted(guest, 0).requests), 1);
	assert_int_equal(count_in(guest, qp_number(1), SET), MUSTER_ADMIN_OK);
	a = counted(guest, SET);
	assert_true(nothing(&a));
	assert_int_equal(le64toh(counted(guest, 0).requests), 1);
	assert_int_equal(command(guest, id_command(MUSTER_ADMIN_QP_DESTROY, qp_number(1))).status,
			 MUSTER_ADMIN_OK);
	assert_int_equal(count_in(guest, qp_number(0), SET), MUSTER_ADMIN_OK);
}

static void odd_sets_are_refused(void **state)
{
	struct guest *guest = *state;
	struct muster_admin_command cmd = {
		.opcode = MUSTER_ADMIN_COUNTERS,
		.counters = { .base = htole64(LIST), .bytes = htole32(8), .set = htole32(MUSTER_QPS_MAX + 1) },
	};

	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_BAD_PARAMETER);
	assert_int_equal(count_in(guest, qp_number(0), MUSTER_QPS_MAX + 1), MUSTER_ADMIN_BAD_PARAMETER);
	assert_int_equal(count_in(guest, qp_number(2), SET), MUSTER_ADMIN_NO_OBJECT);
}

#define WITH_TWO(test) cmocka_unit_test_setup_teardown(test, two_connected, no_guest)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_TWO(each_counts_in_its_set),
		WITH_TWO(a_missing_receive_is_counted_at_both_ends),
		WITH_TWO(failures_are_counted_and_what_is_flushed_then_is_not),
		WITH_TWO(who_is_not_there_is_asked_again),
		WITH_TWO(a_set_keeps_its_counts_until_somebody_else_begins_it),
		WITH_TWO(odd_sets_are_refused),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
