// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections as a provider drives them, between two queue pairs of one NIC and of two:
 * everything arrives once and in order, and what fails fails at both ends as verbs say.
 */
#include "nic_qp.h"
#include "test_qp.h"

enum { ALL = MUSTER_MR_ACCESS };

static int two_rc(void **state)
{
	struct guest *guest = guest_new(0);

	qp_memory(guest, ALL);
	qp_create(guest, 0, MUSTER_QP_RC);
	qp_create(guest, 1, MUSTER_QP_RC);
	rc_connect(guest, 0, 0, 1);
	rc_connect(guest, 1, 0, 0);
	*state = guest;
	return 0;
}

static void fill(struct guest *guest, uint32_t offset, uint32_t length, uint8_t seed)
{
	for (uint32_t i = 0; i < length; i++)
		*(uint8_t *)qp_bytes(guest, offset + i) = seed + i * 7 + (i >> 8);
}

static void assert_filled(struct guest *guest, uint32_t offset, uint32_t length, uint8_t seed)
{
	for (uint32_t i = 0; i < length; i++)
		assert_int_equal(*(uint8_t *)qp_bytes(guest, offset + i),
				 (uint8_t)(seed + i * 7 + (i >> 8)));
}

/* ---- send and receive ------------------------------------------------------ */

static void messages_of_all_lengths_arrive_in_order(void **state)
{
	static const uint32_t lengths[] = { 0, 1, 1023, 1024, 1025, 4096, 12000 };
	struct guest *guest = *state;

	for (uint32_t n = 0; n < 70; n++) {
		uint32_t length = lengths[n % 7];
		const struct muster_wc *wc;

		fill(guest, 16, length, n);
		qp_receive(guest, 1, receive_of(0x4000, 0x3000));
		qp_send(guest, 0, rc_work(MUSTER_WORK_SEND, 16, length, 0));
		wc = await(guest, 1);
		assert_int_equal(wc->status, MUSTER_WC_SUCCESS);
		assert_int_equal(wc->opcode, MUSTER_WC_RECV);
		assert_int_equal(le32toh(wc->length), length);
		assert_filled(guest, 0x4000, length, n);
		awaits(guest, 0, 0x5e4d0010, MUSTER_WC_SUCCESS);
	}
	assert_null(qp_poll(guest, 0));
	assert_null(qp_poll(guest, 1));
}

static void who_has_posted_nothing_is_waited_for(void **state)
{
	struct guest *guest = *state;

	for (uint32_t n = 0; n < 3; n++)
		qp_send(guest, 0, rc_work(MUSTER_WORK_SEND, n, 3000, 0));
	for (int i = 0; i < 50; i++) {
		usleep(100);
		settle(guest);
	}
	assert_null(qp_poll(guest, 0));
	for (uint32_t n = 0; n < 3; n++)
		qp_receive(guest, 1, receive_of(0x4000 + n, 3000));
	for (uint32_t n = 0; n < 3; n++) {
		awaits(guest, 1, 0x4ecf4000 + n, MUSTER_WC_SUCCESS);
		awaits(guest, 0, 0x5e4d0000 + n, MUSTER_WC_SUCCESS);
	}
}

/* Of the second to the first, that it has taken all before acked. */
static struct muster_packet answer(struct guest *guest, uint32_t psn, uint32_t acked, uint16_t len)
{
	struct muster_qp_packet packet = {
		.version = MUSTER_PACKET_VERSION, .type = MUSTER_PACKET_QP, .opcode = MUSTER_QP_SEND,
		.pkey = htole16(MUSTER_QP_PKEY), .flags = htole16(MUSTER_QP_FIRST | MUSTER_QP_LAST),
		.src_qp = htole32(qp_number(1)), .dst_qp = htole32(qp_number(0)),
		.psn = htole32(psn), .acked = htole32(acked), .length = htole16(len),
		.incarnation = htole32(guest->nic->incarnation),
	};
	struct muster_packet plain;

	memcpy(&plain, &packet, sizeof(plain));
	return plain;
}

/* No acknowledgement has come; those that come twice, or are impossible, mean nothing. */
static void what_is_answered_completes_before_its_answer(void **state)
{
	static const uint32_t acked[] = { 0xfffffd, 0xffffff, 0xfffffe, 0xfffffe };
	struct guest *guest = *state;
	struct muster_packet packet;

	qp_send(guest, 0, rc_work(MUSTER_WORK_SEND, 0, 10, 0));	/* nothing is posted for it */
	for (uint32_t n = 0; n < 4; n++) {
		qp_receive(guest, 0, receive_of(0x4000 + n, 10));
		packet = answer(guest, (0xfffffe + n) & MUSTER_QPN_MASK, acked[n], 6);
		nic_qp_receive(guest->nic, &packet, "answer", 6);
		if (n == 2)
			assert_completes(guest, 0, 0x5e4d0000, MUSTER_WC_SUCCESS);
		assert_completes(guest, 0, 0x4ecf4000 + n, MUSTER_WC_SUCCESS);
		assert_null(qp_poll(guest, 0));
	}
}

static void it_is_waited_for_as_often_as_was_said(void **state)
{
	struct guest *guest = *state;
	struct muster_admin_command cmd = rc_modify_command(0, MUSTER_QP_RTS, 0, 1);

	cmd.qp_modify.rnr_retry = 2;
	qp_step(guest, 0, MUSTER_QP_RESET);
	memset(qp_part(guest, 0, 0), 0, sizeof(struct muster_qp_record));
	for (cmd.qp_modify.state = 1; cmd.qp_modify.state <= MUSTER_QP_RTS; cmd.qp_modify.state++)
		assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_OK);
	qp_send(guest, 0, rc_work(MUSTER_WORK_SEND, 1, 10, 0));
	qp_send(guest, 0, rc_work(MUSTER_WORK_SEND, 2, 10, 0));
	awaits(guest, 0, 0x5e4d0001, MUSTER_WC_RNR_RETRY_EXC_ERR);
	awaits(guest, 0, 0x5e4d0002, MUSTER_WC_WR_FLUSH_ERR);
	assert_int_equal(qp_state(guest, 0), MUSTER_QP_ERR);
	assert_int_equal(qp_state(guest, 1), MUSTER_QP_RTS);
}

static void a_message_that_is_too_long_fails_at_both_ends(void **state)
{
	struct guest *guest = *state;

	qp_receive(guest, 1, receive_of(0, 1500));
	qp_receive(guest, 1, receive_of(1, 1500));
	qp_send(guest, 0, rc_work(MUSTER_WORK_SEND, 0, 1501, 0));
	awaits(guest, 0, 0x5e4d0000, MUSTER_WC_REM_INV_REQ_ERR);
	awaits(guest, 1, 0x4ecf0000, MUSTER_WC_LOC_LEN_ERR);
	awaits(guest, 1, 0x4ecf0001, MUSTER_WC_WR_FLUSH_ERR);
	assert_int_equal(qp_state(guest, 0), MUSTER_QP_ERR);
	assert_int_equal(qp_state(guest, 1), MUSTER_QP_ERR);
}

static void whom_nobody_answers_fails_after_its_retries(void **state)
{
	struct guest *guest = *state;

	assert_int_equal(command(guest, id_command(MUSTER_ADMIN_QP_DESTROY, qp_number(1))).status, 0);
	qp_send(guest, 0, rc_work(MUSTER_WORK_SEND, 0, 5000, 0));
	awaits(guest, 0, 0x5e4d0000, MUSTER_WC_RETRY_EXC_ERR);
	assert_int_equal(qp_state(guest, 0), MUSTER_QP_ERR);
}

static void connect_patiently(struct guest *guest, uint8_t timeout)
{
	struct muster_admin_command cmd = rc_modify_command(0, MUSTER_QP_INIT, 0, 1);

	for (uint32_t i = 0; i < 2; i++) {
		qp_step(guest, i, MUSTER_QP_RESET);
		memset(qp_part(guest, i, 0), 0, sizeof(struct muster_qp_record));
	}
	cmd.qp_modify.timeout = timeout;
	for (; cmd.qp_modify.state <= MUSTER_QP_RTS; cmd.qp_modify.state++)
		assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_OK);
}

/* Also if `timeout` is longer than the deadline, or none. */
static void each_retry_asks_again(void **state)
{
	static const uint8_t timeouts[] = { 19, 0 };
	struct guest *guest = *state;

	for (uint32_t i = 0; i < 2; i++) {
		connect_patiently(guest, timeouts[i]);
		qp_send(guest, 0, rc_work(MUSTER_WORK_WRITE, i, 100, 0x4000));
		for (int n = 0; n < 3; n++) {
			assert_null(qp_poll(guest, 0));
			usleep(100);
			settle(guest);
		}
		rc_connect(guest, 1, 0, 0);
		guest->later_us += 2200000;
		settle(guest);
		awaits(guest, 0, 0x5e4d0000 + i, MUSTER_WC_SUCCESS);
	}
}

/* What is acknowledged has succeeded, however long its process does not look. */
static void a_full_completion_queue_makes_nothing_fail(void **state)
{
	struct guest *guest = *state;
	uint32_t nr = QP_CQ_ENTRIES + 4;

	for (uint32_t n = 0; n < nr; n++)
		qp_send(guest, 0, rc_work(MUSTER_WORK_WRITE, n, 100, 0x4000));
	for (int n = 0; n < 10; n++) {
		guest->later_us += 2200000;
		settle(guest);
	}
	qp_send(guest, 0, rc_work(MUSTER_WORK_WRITE, nr, 100, 0x4000));
	for (uint32_t n = 0; n <= nr; n++)
		awaits(guest, 0, 0x5e4d0000 + n, MUSTER_WC_SUCCESS);
	assert_int_equal(qp_state(guest, 0), MUSTER_QP_RTS);
}

/* ---- RDMA ------------------------------------------------------------------ */

static void writes_and_reads_land_where_they_should(void **state)
{
	struct guest *guest = *state;

	for (uint32_t n = 0; n < 40; n++) {
		uint32_t length = n * 211 % 9000;

		fill(guest, 100, length, n);
		qp_send(guest, 0, rc_work(MUSTER_WORK_WRITE, 100, length, 0x4000 + n));
		awaits(guest, 0, 0x5e4d0064, MUSTER_WC_SUCCESS);
		assert_filled(guest, 0x4000 + n, length, n);
		memset(qp_bytes(guest, 100), 0, 100);
		qp_send(guest, 0, rc_work(MUSTER_WORK_READ, 100, length, 0x4000 + n));
		awaits(guest, 0, 0x5e4d0064, MUSTER_WC_SUCCESS);
		assert_filled(guest, 100, length, n);
	}
	assert_null(qp_poll(guest, 1));		/* who is asked hears nothing of it */
}

static void a_write_with_immediate_data_takes_a_receive(void **state)
{
	struct guest *guest = *state;
	struct muster_work work = rc_work(MUSTER_WORK_WRITE_IMM, 0, 3000, 0x4000);
	const struct muster_wc *wc;

	work.imm = 0xabcd;
	qp_send(guest, 0, work);
	assert_null(qp_poll(guest, 0));
	qp_receive(guest, 1, receive_of(0, 0));
	wc = await(guest, 1);
	assert_int_equal(wc->opcode, MUSTER_WC_RECV_WRITE_IMM);
	assert_int_equal(wc->imm, 0xabcd);
	assert_int_equal(wc->flags, MUSTER_WC_WITH_IMM);
	assert_int_equal(le32toh(wc->length), 3000);
	awaits(guest, 0, 0x5e4d0000, MUSTER_WC_SUCCESS);
}

static void atomics_count_and_swap(void **state)
{
	struct guest *guest = *state;
	uint64_t *there = qp_bytes(guest, 0x4000), *old = qp_bytes(guest, 0);
	struct muster_work work = rc_work(MUSTER_WORK_FETCH_ADD, 0, 8, 0x4000);

	work.compare_add = htole64(3);
	for (uint64_t n = 0; n < 20; n++) {
		qp_send(guest, 0, work);
		awaits(guest, 0, 0x5e4d0000, MUSTER_WC_SUCCESS);
		assert_int_equal(le64toh(*old), 3 * n);
	}
	work.opcode = MUSTER_WORK_CMP_SWAP;
	work.compare_add = htole64(60);
	work.swap = htole64(7);
	for (int n = 0; n < 2; n++) {
		qp_send(guest, 0, work);
		awaits(guest, 0, 0x5e4d0000, MUSTER_WC_SUCCESS);
		assert_int_equal(le64toh(*old), n ? 7 : 60);
		assert_int_equal(le64toh(*there), 7);
	}
}

static void again(struct guest *guest)
{
	for (uint32_t i = 0; i < 2; i++) {
		qp_step(guest, i, MUSTER_QP_RESET);
		memset(qp_part(guest, i, 0), 0, sizeof(struct muster_qp_record));
		while (qp_poll(guest, i))
			;
		rc_connect(guest, i, 0, !i);
	}
}

static void what_is_not_allowed_fails_at_both_ends(void **state)
{
	struct guest *guest = *state;
	const uint8_t opcodes[] = { MUSTER_WORK_WRITE, MUSTER_WORK_READ, MUSTER_WORK_FETCH_ADD };
	struct muster_admin_command cmd = mr_command(guest, 2, QP_IOVA, 4096,
						     MUSTER_MR_READ | MUSTER_MR_WRITE);
	uint32_t events = 0;

	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_OK);
	for (int i = 0; i < 3; i++) {
		for (int how = 0; how < 3; how++) {
			struct muster_work work = rc_work(opcodes[i], 0, 8, 0x4000);

			if (how == 0)
				work.remote_key = htole32(2);	/* for nobody but its own process */
			if (how == 1)
				work.remote_key = htole32(77);
			if (how == 2)
				work.remote_addr = htole64(QP_IOVA + QP_MEMORY);
			qp_send(guest, 0, work);
			awaits(guest, 0, 0x5e4d0000, MUSTER_WC_REM_ACCESS_ERR);
			assert_int_equal(qp_state(guest, 1), MUSTER_QP_ERR);
			assert_int_equal(event(guest, events)->kind, MUSTER_EVENT_QP_ACCESS);
			assert_int_equal(le32toh(event(guest, events)->id), qp_number(1));
			reg_write(guest, MUSTER_REG_EVENT_HEAD, ++events);
			again(guest);
		}
	}
}

/* Its question was taken and acknowledged; then, between two packets of the answer, it goes. */
static void a_region_that_goes_while_it_is_read_fails_at_both_ends(void **state)
{
	struct guest *guest = *state;
	struct muster_admin_command cmd;
	struct muster_work work = rc_work(MUSTER_WORK_READ, 0, 20480, 0);
	uint32_t failed = 0;

	work.remote_key = htole32(2);
	for (int steps = 1; steps < 8; steps++) {
		uint8_t status;

		cmd = mr_command(guest, 2, QP_IOVA, 20480, ALL);
		assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_OK);
		qp_put(guest, 0, work);
		reg_write(guest, MUSTER_REG_BELLS + MUSTER_BELL_QP, qp_number(0));
		for (int n = 0; n < steps; n++)
			muster_nic_step(guest->nic);
		cmd = id_command(MUSTER_ADMIN_MR_DEREGISTER, 2);
		assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_OK);
		status = await(guest, 0)->status;
		if (status) {
			assert_int_equal(status, MUSTER_WC_REM_ACCESS_ERR);
			assert_int_equal(qp_state(guest, 1), MUSTER_QP_ERR);
			failed++;
		}
		again(guest);
	}
	assert_true(failed > 0);
}

/* Who is asked has no request that could tell its process: its record does. */
static void who_fails_says_so_and_flushes_what_was_posted(void **state)
{
	struct guest *guest = *state;
	struct muster_qp_record *record = qp_part(guest, 1, 0);
	struct muster_work work = rc_work(MUSTER_WORK_WRITE, 0, 8, 0x4000);

	work.remote_key = htole32(77);
	qp_receive(guest, 1, receive_of(0, 10));	/* nobody rings for it */
	assert_int_equal(record->failed, 0);
	qp_send(guest, 0, work);
	awaits(guest, 0, 0x5e4d0000, MUSTER_WC_REM_ACCESS_ERR);
	assert_int_equal(le32toh(record->failed), 1);
	awaits(guest, 1, 0x4ecf0000, MUSTER_WC_WR_FLUSH_ERR);
	qp_receive(guest, 1, receive_of(1, 10));
	qp_ring(guest, 1);
	awaits(guest, 1, 0x4ecf0001, MUSTER_WC_WR_FLUSH_ERR);
}

static void many_requests_under_way_complete_in_order(void **state)
{
	static const uint8_t kinds[] = { MUSTER_WORK_SEND, MUSTER_WORK_READ, MUSTER_WORK_WRITE,
					 MUSTER_WORK_FETCH_ADD };
	struct guest *guest = *state;
	uint32_t posted = 0, done = 0, received = 0, receives = 0;

	while (done < 400) {
		for (; receives - received < QP_ENTRIES && receives < 100; receives++)
			qp_receive(guest, 1, receive_of(0x4000, 0x1000));
		for (; posted - done < QP_ENTRIES && posted < 400; posted++) {
			struct muster_work work = rc_work(kinds[posted % 4], 8 * (posted % 100),
							  posted % 4 == 3 ? 8 : 2100, 0x6000);

			work.wr_id = htole64(posted);
			if (posted % 7 == 0)
				work.flags |= htole16(MUSTER_WORK_FENCE);
			qp_put(guest, 0, work);
		}
		qp_ring(guest, 0);
		awaits(guest, 0, done++, MUSTER_WC_SUCCESS);
		while (qp_poll(guest, 1))
			received++;
	}
	assert_int_equal(received, 100);
}

static void a_tail_that_goes_back_stops_its_queue_pair(void **state)
{
	struct guest *guest = *state;
	struct muster_qp_record *record = qp_part(guest, 0, 0);

	qp_send(guest, 0, rc_work(MUSTER_WORK_SEND, 0, 10, 0));	/* nothing is posted for it */
	record->sq_tail = 0;
	qp_ring(guest, 0);
	assert_int_equal(qp_state(guest, 0), MUSTER_QP_ERR);
	assert_int_equal(event(guest, 0)->kind, MUSTER_EVENT_QP_ERROR);
}

/* From PSN psn on; it is as new, and its record too. */
static void connect_at(struct guest *guest, uint32_t psn)
{
	struct muster_admin_command cmd = rc_modify_command(0, MUSTER_QP_INIT, 0, 1);

	qp_step(guest, 0, MUSTER_QP_RESET);
	memset(qp_part(guest, 0, 0), 0, sizeof(struct muster_qp_record));
	cmd.qp_modify.sq_psn = htole32(psn & MUSTER_QPN_MASK);
	for (; cmd.qp_modify.state <= MUSTER_QP_RTS; cmd.qp_modify.state++)
		assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_OK);
}

/* Of a connection that was before: the other side waits for PSNs far from these. */
static void what_is_too_far_ahead_is_not_kept(void **state)
{
	struct guest *guest = *state;
	uint8_t *there = qp_bytes(guest, 0x4000);

	*(uint8_t *)qp_bytes(guest, 0) = 1;
	connect_at(guest, 0xfffffd + 64);
	qp_send(guest, 0, rc_work(MUSTER_WORK_WRITE, 0, 1, 0x4000));
	connect_at(guest, 0xfffffd);
	for (uint32_t n = 0; n < 70; n++) {
		qp_send(guest, 0, rc_work(MUSTER_WORK_WRITE, 8, 1, 0x5000));
		awaits(guest, 0, 0x5e4d0008, MUSTER_WC_SUCCESS);
		assert_int_equal(*there, 0);
	}
}

/* ---- two NICs -------------------------------------------------------------- */

static void two_nics_are_connected(void **state)
{
	struct guest *guests[2] = { guest_new(0), guest_new(1) };
	uint32_t done[2] = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		qp_memory(guests[i], ALL);
		qp_create(guests[i], i, MUSTER_QP_RC);
	}
	rc_connect(guests[0], 0, 1, 1);
	for (uint32_t n = 0; n < QP_ENTRIES; n++)	/* before the other is ready */
		qp_send(guests[0], 0, rc_work(MUSTER_WORK_WRITE, 0, 12000, 0x3000));
	rc_connect(guests[1], 1, 0, 0);
	for (int n = 0; n < 1000000 && done[0] < 200; n++) {
		const struct muster_wc *wc = qp_poll(guests[0], 0);

		if (wc) {
			assert_int_equal(wc->status, MUSTER_WC_SUCCESS);
			done[0]++;
			qp_send(guests[0], 0, rc_work(n % 2 ? MUSTER_WORK_READ : MUSTER_WORK_WRITE, 0,
						      12000, 0x3000));
		}
		settle(guests[0]);
		settle(guests[1]);
	}
	assert_int_equal(done[0], 200);
	reg_write(guests[1], MUSTER_REG_CONTROL, MUSTER_CONTROL_RESET);
	while (qp_poll(guests[0], 0))
		;
	qp_send(guests[0], 0, rc_work(MUSTER_WORK_WRITE, 0, 1, 0));
	for (int n = 0; n < 30000 && qp_state(guests[0], 0) != MUSTER_QP_ERR; n++) {
		settle(guests[1]);
		usleep(100);
	}
	assert_int_equal(qp_state(guests[0], 0), MUSTER_QP_ERR);
	guest_free(guests[0]);
	guest_free(guests[1]);
}

/* All of them want more than a link has room for, all the time. */
static void each_has_its_share_of_a_link(void **state)
{
	enum { EACH = 12 };
	struct guest *guests[2] = { guest_new(0), guest_new(1) };
	uint32_t done[EACH] = { 0 }, least = 0, most = 0;

	(void)state;
	for (uint32_t n = 0; n < 2; n++) {
		qp_memory(guests[n], ALL);
		for (uint32_t i = 0; i < EACH; i++) {
			qp_create(guests[n], i, MUSTER_QP_RC);
			rc_connect(guests[n], i, !n, i);
		}
	}
	for (uint32_t i = 0; i < EACH; i++)
		for (uint32_t n = 0; n < QP_ENTRIES; n++)
			qp_put(guests[0], i, rc_work(MUSTER_WORK_WRITE, 0, 12000, 0x3000));
	for (uint32_t i = 0; i < EACH; i++)
		qp_ring(guests[0], i);
	while (most < 100) {
		least = UINT32_MAX;
		for (uint32_t i = 0; i < EACH; i++) {
			while (qp_poll(guests[0], i)) {
				done[i]++;
				qp_send(guests[0], i, rc_work(MUSTER_WORK_WRITE, 0, 12000, 0x3000));
			}
			least = done[i] < least ? done[i] : least;
			most = done[i] > most ? done[i] : most;
		}
		settle(guests[0]);
		settle(guests[1]);
	}
	assert_true(least > 100 / 10);
	guest_free(guests[0]);
	guest_free(guests[1]);
}

#define WITH_TWO_RC(test) cmocka_unit_test_setup_teardown(test, two_rc, no_guest)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_TWO_RC(messages_of_all_lengths_arrive_in_order),
		WITH_TWO_RC(who_has_posted_nothing_is_waited_for),
		WITH_TWO_RC(what_is_answered_completes_before_its_answer),
		WITH_TWO_RC(it_is_waited_for_as_often_as_was_said),
		WITH_TWO_RC(a_message_that_is_too_long_fails_at_both_ends),
		WITH_TWO_RC(whom_nobody_answers_fails_after_its_retries),
		WITH_TWO_RC(each_retry_asks_again),
		WITH_TWO_RC(a_full_completion_queue_makes_nothing_fail),
		WITH_TWO_RC(writes_and_reads_land_where_they_should),
		WITH_TWO_RC(a_write_with_immediate_data_takes_a_receive),
		WITH_TWO_RC(atomics_count_and_swap),
		WITH_TWO_RC(what_is_not_allowed_fails_at_both_ends),
		WITH_TWO_RC(a_region_that_goes_while_it_is_read_fails_at_both_ends),
		WITH_TWO_RC(who_fails_says_so_and_flushes_what_was_posted),
		WITH_TWO_RC(many_requests_under_way_complete_in_order),
		WITH_TWO_RC(a_tail_that_goes_back_stops_its_queue_pair),
		WITH_TWO_RC(what_is_too_far_ahead_is_not_kept),
		cmocka_unit_test(two_nics_are_connected),
		cmocka_unit_test(each_has_its_share_of_a_link),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
