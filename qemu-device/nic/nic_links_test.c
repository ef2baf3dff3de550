// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The links of a NIC to other nodes: there as long as a context or a connection could want
 * to hear that the node is gone, given back when nothing was said for a while after the last
 * one has closed, and made again without a break.
 */
#include "nic_internal.h"
#include "test_qp.h"

enum { TURNS = 3, LONG_US = 100000000, TRIES = 20000 };

static uint32_t nr_links(const struct guest *guest)
{
	struct muster_wire_counters counters;

	muster_wire_socket_counters(guest->nic->wire, &counters);
	return counters.links;
}

static void settle_both(struct guest **guests)
{
	settle(guests[0]);
	settle(guests[1]);
}

/* As often as it takes to hear from each other again, had they asked. */
static void fall_silent(struct guest **guests)
{
	for (int i = 0; i < 20; i++) {
		settle_both(guests);
		usleep(100);
	}
	guests[0]->later_us += LONG_US;
	guests[1]->later_us += LONG_US;
	for (int i = 0; i < 20; i++) {
		settle_both(guests);
		usleep(100);
	}
}

/* The turn-th sum that both give, since they have opened their ports. */
static void sum_a_number(struct guest **guests, uint32_t turn)
{
	uint32_t round = !(turn / CQ & 1);

	for (uint32_t i = 0; i < 2; i++)
		allreduce_at(guests[i], 2 * turn, !i, 1.25 + i + turn);
	for (int i = 0; i < TRIES && (cqe(guests[0], 0, turn)->valid != htole32(round) ||
				      cqe(guests[1], 0, turn)->valid != htole32(round)); i++)
		settle_both(guests);
	for (uint32_t i = 0; i < 2; i++) {
		double sum;

		assert_int_equal(cqe(guests[i], 0, turn)->valid, htole32(round));
		assert_int_equal(cqe(guests[i], 0, turn)->status, MUSTER_STATUS_OK);
		memcpy(&sum, guests[i]->memory + DATA + 0x10000, sizeof(sum));
		assert_true(sum == 3.5 + 2 * turn);
		doorbell(guests[i], 0, MUSTER_DOORBELL_CQ_HEAD, turn + 1);
	}
}

static void a_link_goes_after_the_last_context_with_its_node(void **state)
{
	struct guest *guests[2] = { guest_new(0), guest_new(1) };
	const struct place places[] = { { guests[0], 0, 0 }, { guests[1], 1, 0 } };

	(void)state;
	for (int i = 0; i < 2; i++) {
		port_open(guests[i], 0);
		command(guests[i], mr_command(guests[i], 1, 0x7000000, 4096, MUSTER_MR_WRITE));
	}
	for (uint32_t turn = 0; turn < TURNS; turn++) {
		context_open(places, 2);
		sum_a_number(guests, turn);
		fall_silent(guests);
		assert_true(nr_links(guests[0]) == 1 && nr_links(guests[1]) == 1);
		for (int i = 0; i < 2; i++)
			command(guests[i], context_command(MUSTER_ADMIN_CONTEXT_CLOSE, 0));
		fall_silent(guests);
		fall_silent(guests);
		assert_true(nr_links(guests[0]) == 0 && nr_links(guests[1]) == 0);
	}
	guest_free(guests[0]);
	guest_free(guests[1]);
}

static void a_connection_keeps_its_link(void **state)
{
	struct guest *guests[2] = { guest_new(0), guest_new(1) };
	int tries = 0;

	(void)state;
	for (uint32_t n = 0; n < 2; n++) {
		qp_memory(guests[n], MUSTER_MR_ACCESS);
		qp_create(guests[n], 0, MUSTER_QP_RC);
		rc_connect(guests[n], 0, !n, 0);
	}
	qp_send(guests[0], 0, rc_work(MUSTER_WORK_WRITE, 0, 100, 0x3000));
	while (!qp_poll(guests[0], 0) && tries++ < TRIES)
		settle_both(guests);
	assert_true(tries < TRIES);
	fall_silent(guests);
	assert_true(nr_links(guests[0]) == 1 && nr_links(guests[1]) == 1);
	for (int n = 0; n < 2; n++)
		command(guests[n], id_command(MUSTER_ADMIN_QP_DESTROY, qp_number(0)));
	fall_silent(guests);
	fall_silent(guests);
	assert_true(nr_links(guests[0]) == 0 && nr_links(guests[1]) == 0);
	guest_free(guests[0]);
	guest_free(guests[1]);
}

static void nothing_goes_over_a_link_that_is_down(void **state)
{
	struct guest *guests[2] = { guest_new(0), guest_new(1) };
	const struct muster_wc *wc;
	int tries = 0;

	(void)state;
	for (uint32_t n = 0; n < 2; n++) {
		qp_memory(guests[n], MUSTER_MR_READ | MUSTER_MR_WRITE);
		ud_open(guests[n], n);
		qp_receive(guests[n], n, receive_of(0, 4096));
	}
	muster_nic_link_set(guests[0]->nic, false);
	settle(guests[0]);
	assert_int_equal(event(guests[0], 0)->kind, MUSTER_EVENT_LINK);
	assert_int_equal(reg_read(guests[0], MUSTER_REG_STATUS), MUSTER_STATE_ENABLED | MUSTER_STATE_LINK_DOWN);
	qp_send(guests[0], 0, datagram_to(1, 1, 0, 8));
	qp_send(guests[1], 1, datagram_to(0, 0, 0, 8));
	for (int i = 0; i < 100; i++)
		settle_both(guests);
	assert_null(qp_poll(guests[0], 0));
	muster_nic_link_set(guests[0]->nic, true);
	do {
		settle_both(guests);
		guests[0]->later_us += 100;	/* what was lost is sent again after a while */
		guests[1]->later_us += 100;
		wc = qp_poll(guests[0], 0);
	} while (tries++ < TRIES && !(wc && wc->opcode & MUSTER_WC_RECV));
	assert_non_null(wc);
	assert_int_equal(le32toh(wc->src_node), 1);
	assert_int_equal(event(guests[0], 1)->kind, MUSTER_EVENT_LINK);
	assert_int_equal(reg_read(guests[0], MUSTER_REG_STATUS), MUSTER_STATE_ENABLED);
	guest_free(guests[0]);
	guest_free(guests[1]);
}

/* Both sides: who is cut off is told no later than those who do not hear of it. */
static void who_waits_over_a_link_that_is_down_is_told_after_the_deadline(void **state)
{
	struct guest *guests[2] = { guest_new(0), guest_new(1) };
	const struct place places[] = { { guests[0], 0, 0 }, { guests[1], 1, 0 } };

	(void)state;
	for (int i = 0; i < 2; i++) {
		port_open(guests[i], 0);
		command(guests[i], mr_command(guests[i], 1, 0x7000000, 4096, MUSTER_MR_WRITE));
	}
	context_open(places, 2);
	sum_a_number(guests, 0);
	muster_nic_link_set(guests[0]->nic, false);
	for (uint32_t i = 0; i < 2; i++)
		allreduce_at(guests[i], 2, !i, 1.25);
	for (int i = 0; i < TRIES && !(cqe(guests[0], 0, 1)->valid && cqe(guests[1], 0, 1)->valid); i++) {
		settle_both(guests);
		guests[0]->later_us += 10000;
		guests[1]->later_us += 10000;
	}
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(cqe(guests[i], 0, 1)->valid, htole32(1));
		assert_int_equal(cqe(guests[i], 0, 1)->status, MUSTER_STATUS_PEER_LOST);
	}
	guest_free(guests[0]);
	guest_free(guests[1]);
}

/* Of the second before others are lost: who waits for the cable does not look for it all the time. */
static void who_waits_for_the_cable_rests(void **state)
{
	struct guest *guests[2] = { guest_new(0), guest_new(1) };
	const struct place places[] = { { guests[0], 0, 0 }, { guests[1], 1, 0 } };
	uint64_t wait_us, passed_us = 0;
	uint32_t steps = 0;

	(void)state;
	for (int i = 0; i < 2; i++) {
		port_open(guests[i], 0);
		command(guests[i], mr_command(guests[i], 1, 0x7000000, 4096, MUSTER_MR_WRITE));
	}
	context_open(places, 2);
	sum_a_number(guests, 0);
	muster_nic_link_set(guests[0]->nic, false);
	allreduce_at(guests[0], 2, 1, 1.25);
	for (; passed_us < 1000000; passed_us += wait_us, steps++) {
		wait_us = muster_nic_step(guests[0]->nic);
		assert_true(wait_us <= 1000000);
		guests[0]->later_us += wait_us;
	}
	assert_in_range(steps, 10, 1000);
	muster_nic_link_set(guests[0]->nic, true);
	allreduce_at(guests[1], 2, 0, 1.25);
	for (int i = 0; i < TRIES && !cqe(guests[0], 0, 1)->valid; i++) {
		settle_both(guests);
		guests[0]->later_us += 100;
		guests[1]->later_us += 100;
	}
	assert_int_equal(cqe(guests[0], 0, 1)->status, MUSTER_STATUS_OK);
	guest_free(guests[0]);
	guest_free(guests[1]);
}

static void a_link_that_is_down_stays_down_in_the_next_life(void **state)
{
	struct guest *guest = guest_new(0);

	(void)state;
	muster_nic_link_set(guest->nic, false);
	reg_write(guest, MUSTER_REG_CONTROL, MUSTER_CONTROL_RESET);
	assert_int_equal(reg_read(guest, MUSTER_REG_STATUS), MUSTER_STATE_LINK_DOWN);
	enable(guest);
	assert_int_equal(reg_read(guest, MUSTER_REG_STATUS), MUSTER_STATE_ENABLED | MUSTER_STATE_LINK_DOWN);
	port_open(guest, 0);
	guest_free(guest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_link_goes_after_the_last_context_with_its_node),
		cmocka_unit_test(a_connection_keeps_its_link),
		cmocka_unit_test(nothing_goes_over_a_link_that_is_down),
		cmocka_unit_test(who_waits_over_a_link_that_is_down_is_told_after_the_deadline),
		cmocka_unit_test(who_waits_for_the_cable_rests),
		cmocka_unit_test(a_link_that_is_down_stays_down_in_the_next_life),
	};

	return cmocka_run_group_tests_name("links", tests, group_setup, group_teardown);
}
