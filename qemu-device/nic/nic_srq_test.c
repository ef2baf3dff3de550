// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receives that queue pairs share, as a provider drives them: who needs one first has the
 * oldest, each completes once, and what is wrong with the queue stops those that need it.
 */
#include "nic_qp.h"
#include "test_qp.h"

enum {
	SRQ = 3,			/* its id */
	SRQ_AT = QPS + 16 * QP_BYTES,	/* its record in guest memory */
	SRQ_RING = SRQ_AT + 0x400,
	SRQ_ENTRIES = 8,
};

static struct muster_srq_record *srq_record(struct guest *guest)
{
	return (void *)(guest->memory + SRQ_AT);
}

static struct muster_admin_command srq_command(void)
{
	return (struct muster_admin_command){
		.opcode = MUSTER_ADMIN_SRQ_CREATE,
		.srq = { .record = htole64(SRQ_AT), .base = htole64(SRQ_RING), .id = htole32(SRQ),
			 .pd = htole32(PD), .entries = htole16(SRQ_ENTRIES) },
	};
}

static uint8_t limit(struct guest *guest, uint32_t left)
{
	struct muster_admin_command cmd = {
		.opcode = MUSTER_ADMIN_SRQ_LIMIT,
		.srq_limit = { .id = htole32(SRQ), .limit = htole32(left) },
	};

	return command(guest, cmd).status;
}

static void srq_post(struct guest *guest, uint64_t wr_id, uint32_t offset, uint32_t length)
{
	uint32_t at = le32toh(srq_record(guest)->tail);
	struct muster_receive receive = receive_of(offset, length);

	receive.wr_id = htole64(wr_id);
	((struct muster_receive *)(guest->memory + SRQ_RING))[at % SRQ_ENTRIES] = receive;
	srq_record(guest)->tail = htole32(at + 1);
}

/* As qp_create(), but that it receives from the one that is shared. */
static void sharing_create(struct guest *guest, uint32_t i, uint8_t type)
{
	struct muster_admin_command cmd = qp_command(i, type);

	cmd.qp.rq_entries = 0;
	cmd.qp.srq = htole16(SRQ + 1);
	assert_int_equal(command(guest, qp_cq_command(i)).status, MUSTER_ADMIN_OK);
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_OK);
}

/* Queue pairs 0 and 1 send to 2 and 3, which share their receives. */
static int two_pairs(void **state)
{
	struct guest *guest = guest_new(0);

	qp_memory(guest, MUSTER_MR_ACCESS);
	assert_int_equal(command(guest, srq_command()).status, MUSTER_ADMIN_OK);
	for (uint32_t i = 0; i < 2; i++) {
		qp_create(guest, i, MUSTER_QP_RC);
		sharing_create(guest, 2 + i, MUSTER_QP_RC);
		rc_connect(guest, 2 + i, 0, i);
		rc_connect(guest, i, 0, 2 + i);
	}
	*state = guest;
	return 0;
}

/* ---- life ------------------------------------------------------------------ */

static void each_field_of_a_shared_queue_is_checked(void **state)
{
	struct guest *guest = *state;
	struct muster_admin_command cmd;

#define REFUSED(field, value) do { \
		cmd = srq_command(); \
		cmd.field = value; \
		assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_BAD_PARAMETER); \
	} while (0)
	REFUSED(srq.record, 0);
	REFUSED(srq.record, htole64(SRQ_AT + 8));
	REFUSED(srq.base, htole64(SRQ_RING + 4));
	REFUSED(srq.id, htole32(MUSTER_SRQS_MAX));
	REFUSED(srq.entries, 0);
	REFUSED(srq.entries, htole16(3));
	REFUSED(srq.entries, htole16(2 * MUSTER_QP_ENTRIES_MAX));
	REFUSED(srq.reserved[5], 1);
	REFUSED(raw[55], 1);
#undef REFUSED
	assert_int_equal(limit(guest, 1), MUSTER_ADMIN_NO_OBJECT);
	assert_int_equal(command(guest, srq_command()).status, MUSTER_ADMIN_OK);
	assert_int_equal(command(guest, srq_command()).status, MUSTER_ADMIN_BUSY);
	assert_int_equal(limit(guest, SRQ_ENTRIES + 1), MUSTER_ADMIN_BAD_PARAMETER);
}

static void a_shared_queue_stays_while_it_is_used(void **state)
{
	struct guest *guest = *state;
	struct muster_admin_command cmd = qp_command(0, MUSTER_QP_UD);
	const struct muster_admin_command destroy = id_command(MUSTER_ADMIN_SRQ_DESTROY, SRQ);

	assert_int_equal(command(guest, qp_cq_command(0)).status, MUSTER_ADMIN_OK);
	cmd.qp.rq_entries = 0;
	cmd.qp.srq = htole16(SRQ + 1);
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_NO_OBJECT);
	assert_int_equal(command(guest, srq_command()).status, MUSTER_ADMIN_OK);
	cmd.qp.pd = htole32(PD + 1);		/* another's */
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_NO_OBJECT);
	cmd.qp.pd = htole32(PD);
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_OK);
	assert_int_equal(command(guest, destroy).status, MUSTER_ADMIN_BUSY);
	assert_int_equal(command(guest, id_command(MUSTER_ADMIN_QP_DESTROY, qp_number(0))).status,
			 MUSTER_ADMIN_OK);
	assert_int_equal(command(guest, destroy).status, MUSTER_ADMIN_OK);
	assert_int_equal(command(guest, destroy).status, MUSTER_ADMIN_NO_OBJECT);
}

/* ---- receives -------------------------------------------------------------- */

static void whoever_needs_a_receive_has_the_oldest(void **state)
{
	struct guest *guest = *state;

	for (uint32_t i = 0; i < 3 * SRQ_ENTRIES; i++) {
		uint32_t from = (i / 2 + i) % 2;

		srq_post(guest, 100 + i, 4096, 16);
		memcpy(qp_bytes(guest, 0), &i, sizeof(i));
		qp_send(guest, from, rc_work(MUSTER_WORK_SEND, 0, 16, 0));
		awaits(guest, from, 0x5e4d0000, MUSTER_WC_SUCCESS);
		awaits(guest, 2 + from, 100 + i, MUSTER_WC_SUCCESS);
		assert_memory_equal(qp_bytes(guest, 4096), &i, sizeof(i));
		assert_int_equal(le32toh(srq_record(guest)->head), i + 1);
	}
}

/* A long message takes its receive with its first packet and ends after a short one. */
static void receives_complete_in_the_order_in_which_messages_end(void **state)
{
	struct guest *guest = *state;
	int overtaken = 0;

	for (uint32_t i = 0; i < 8; i++) {
		const struct muster_wc *first;

		srq_post(guest, 2 * i, 0, 0x5000);
		srq_post(guest, 2 * i + 1, 0, 0x5000);
		qp_put(guest, 0, rc_work(MUSTER_WORK_SEND, 0, 0x5000, 0));
		qp_put(guest, 1, rc_work(MUSTER_WORK_SEND, 0, 16, 0));
		reg_write(guest, MUSTER_REG_BELLS + MUSTER_BELL_QP, qp_number(1));
		qp_ring(guest, 0);
		first = await(guest, 3);
		overtaken += le64toh(first->wr_id) == 2 * i + 1;
		awaits(guest, 2, 4 * i + 1 - le64toh(first->wr_id), MUSTER_WC_SUCCESS);
		awaits(guest, 0, 0x5e4d0000, MUSTER_WC_SUCCESS);
		awaits(guest, 1, 0x5e4d0000, MUSTER_WC_SUCCESS);
		assert_int_equal(le32toh(srq_record(guest)->head), 2 * i + 2);
	}
	assert_true(overtaken);
}

static void who_finds_none_asks_again(void **state)
{
	struct guest *guest = *state;

	qp_send(guest, 0, rc_work(MUSTER_WORK_SEND, 0, 16, 0));
	assert_null(qp_poll(guest, 0));
	srq_post(guest, 9, 4096, 16);
	awaits(guest, 0, 0x5e4d0000, MUSTER_WC_SUCCESS);
	awaits(guest, 2, 9, MUSTER_WC_SUCCESS);
}

static void datagrams_share_too(void **state)
{
	struct guest *guest = *state;

	qp_memory(guest, MUSTER_MR_ACCESS);
	ud_open(guest, 0);
	assert_int_equal(command(guest, srq_command()).status, MUSTER_ADMIN_OK);
	for (uint32_t i = 1; i < 3; i++) {
		sharing_create(guest, i, MUSTER_QP_UD);
		for (uint8_t to = MUSTER_QP_INIT; to <= MUSTER_QP_RTS; to++)
			qp_step(guest, i, to);
		srq_post(guest, i, 4096, 1000);
	}
	qp_send(guest, 0, datagram_to(0, 2, 0, 2000));	/* it is too long, and takes none */
	qp_send(guest, 0, datagram_to(0, 2, 0, 15));
	qp_send(guest, 0, datagram_to(0, 1, 0, 15));
	assert_completes(guest, 2, 1, MUSTER_WC_SUCCESS);
	assert_completes(guest, 1, 2, MUSTER_WC_SUCCESS);
	assert_int_equal(le32toh(srq_record(guest)->head), 2);
}

static void it_is_told_once_that_few_are_left(void **state)
{
	struct guest *guest = *state;
	uint32_t events = 0;

	for (uint32_t i = 0; i < 4; i++)
		srq_post(guest, i, 4096, 16);
	assert_int_equal(limit(guest, 3), MUSTER_ADMIN_OK);
	for (uint32_t i = 0; i < 4; i++) {
		qp_send(guest, 0, rc_work(MUSTER_WORK_SEND, 0, 16, 0));
		awaits(guest, 2, i, MUSTER_WC_SUCCESS);
		awaits(guest, 0, 0x5e4d0000, MUSTER_WC_SUCCESS);
		events += i == 1;	/* two are left: fewer than three */
		assert_int_equal(event(guest, 0)->kind, events ? MUSTER_EVENT_SRQ_LIMIT : 0);
		assert_int_equal(le32toh(command(guest, id_command(MUSTER_ADMIN_SRQ_QUERY, SRQ)).detail),
				 events ? 0 : 3);
	}
	assert_int_equal(le32toh(event(guest, 0)->id), SRQ);
	assert_int_equal(event(guest, 1)->kind, 0);
	assert_int_equal(limit(guest, 1), MUSTER_ADMIN_OK);	/* there is none: at once */
	settle(guest);
	assert_int_equal(event(guest, 1)->kind, MUSTER_EVENT_SRQ_LIMIT);
}

/* ---- what goes wrong ------------------------------------------------------- */

/* A message that stops in the middle: its memory at the sender's is not to be had. */
static void who_fails_completes_what_it_took_and_no_more(void **state)
{
	struct guest *guest = *state;
	struct muster_work work = rc_work(MUSTER_WORK_SEND, 0, 1024, 0);

	srq_post(guest, 1, 0, 0x5000);
	srq_post(guest, 2, 0, 0x5000);
	work.nr_sges = 2;
	work.sges[1] = (struct muster_sge){ htole64(QP_IOVA), htole32(1024), htole32(77) };
	qp_send(guest, 0, work);
	awaits(guest, 0, 0x5e4d0000, MUSTER_WC_LOC_PROT_ERR);
	assert_null(qp_poll(guest, 2));
	assert_int_equal(le32toh(srq_record(guest)->head), 1);
	assert_int_equal(command(guest, rc_modify_command(2, MUSTER_QP_ERR, 0, 0)).status,
			 MUSTER_ADMIN_OK);
	awaits(guest, 2, 1, MUSTER_WC_WR_FLUSH_ERR);
	assert_int_equal(event(guest, 0)->kind, MUSTER_EVENT_QP_DRAINED);
	assert_int_equal(le32toh(event(guest, 0)->id), qp_number(2));
	qp_send(guest, 1, rc_work(MUSTER_WORK_SEND, 0, 16, 0));
	awaits(guest, 3, 2, MUSTER_WC_SUCCESS);
	assert_null(qp_poll(guest, 2));
	assert_int_equal(event(guest, 1)->kind, 0);
}

/* Its immediate data needs a receive, and what it writes is not allowed. */
static void a_receive_of_a_write_that_fails_is_flushed(void **state)
{
	struct guest *guest = *state;
	struct muster_work work = rc_work(MUSTER_WORK_WRITE_IMM, 0, 16, QP_MEMORY);

	srq_post(guest, 1, 0, 16);
	qp_send(guest, 0, work);
	awaits(guest, 0, 0x5e4d0000, MUSTER_WC_REM_ACCESS_ERR);
	awaits(guest, 2, 1, MUSTER_WC_WR_FLUSH_ERR);
}

static void a_shared_queue_that_makes_no_sense_stops_who_needs_it(void **state)
{
	struct guest *guest = *state;

	srq_record(guest)->tail = htole32(SRQ_ENTRIES + 1);
	qp_send(guest, 0, rc_work(MUSTER_WORK_SEND, 0, 16, 0));
	awaits(guest, 0, 0x5e4d0000, MUSTER_WC_REM_OP_ERR);
	assert_int_equal(event(guest, 0)->kind, MUSTER_EVENT_QP_DRAINED);
	assert_int_equal(event(guest, 1)->kind, MUSTER_EVENT_SRQ_ERROR);
	assert_int_equal(le32toh(event(guest, 1)->id), SRQ);
	assert_int_equal(qp_state(guest, 3), MUSTER_QP_RTS);
	srq_record(guest)->tail = 0;
	qp_send(guest, 1, rc_work(MUSTER_WORK_SEND, 0, 16, 0));
	awaits(guest, 1, 0x5e4d0000, MUSTER_WC_REM_OP_ERR);
}

/* As a connection: else it would take nothing, and say that it were well. */
static void so_it_is_with_datagrams(void **state)
{
	struct guest *guest = *state;

	qp_memory(guest, MUSTER_MR_ACCESS);
	ud_open(guest, 0);
	assert_int_equal(command(guest, srq_command()).status, MUSTER_ADMIN_OK);
	sharing_create(guest, 1, MUSTER_QP_UD);
	for (uint8_t to = MUSTER_QP_INIT; to <= MUSTER_QP_RTS; to++)
		qp_step(guest, 1, to);
	qp_send(guest, 0, datagram_to(0, 1, 0, 15));	/* there is no receive: it is well still */
	assert_int_equal(qp_state(guest, 1), MUSTER_QP_RTS);
	srq_record(guest)->tail = htole32(SRQ_ENTRIES + 1);
	qp_send(guest, 0, datagram_to(0, 1, 0, 15));
	assert_int_equal(qp_state(guest, 1), MUSTER_QP_ERR);
	assert_int_equal(event(guest, 0)->kind, MUSTER_EVENT_QP_DRAINED);
	assert_int_equal(event(guest, 1)->kind, MUSTER_EVENT_SRQ_ERROR);
}

#define WITH_PAIRS(test) cmocka_unit_test_setup_teardown(test, two_pairs, no_guest)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_GUEST(each_field_of_a_shared_queue_is_checked),
		WITH_GUEST(a_shared_queue_stays_while_it_is_used),
		WITH_PAIRS(whoever_needs_a_receive_has_the_oldest),
		WITH_PAIRS(receives_complete_in_the_order_in_which_messages_end),
		WITH_PAIRS(who_finds_none_asks_again),
		WITH_GUEST(datagrams_share_too),
		WITH_PAIRS(it_is_told_once_that_few_are_left),
		WITH_PAIRS(who_fails_completes_what_it_took_and_no_more),
		WITH_PAIRS(a_receive_of_a_write_that_fails_is_flushed),
		WITH_PAIRS(a_shared_queue_that_makes_no_sense_stops_who_needs_it),
		WITH_GUEST(so_it_is_with_datagrams),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
