// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues of queue pairs: room in them, when they interrupt, and how one goes on in
 * another ring.
 */
#include "test_qp.h"

/* ---- room ------------------------------------------------------------------ */

static void a_full_completion_queue_holds_up_its_queue_pairs(void **state)
{
	struct guest *guest = *state;
	uint32_t nr = QP_CQ_ENTRIES + 3;

	for (uint32_t i = 0; i < nr; i++)
		qp_send(guest, 0, datagram_to(0, 1, i, 1));
	assert_int_equal(event(guest, 0)->kind, MUSTER_EVENT_CQ_OVERRUN);
	assert_int_equal(le32toh(event(guest, 0)->id), QP_CQ);
	for (uint32_t i = 0; i < QP_CQ_ENTRIES; i++)
		assert_completes(guest, 0, 0x5e4d0000 + i, MUSTER_WC_SUCCESS);
	settle(guest);		/* nobody rings for room */
	for (uint32_t i = QP_CQ_ENTRIES; i < nr; i++)
		assert_completes(guest, 0, 0x5e4d0000 + i, MUSTER_WC_SUCCESS);
	assert_null(qp_poll(guest, 0));
}

/* ---- interrupts ------------------------------------------------------------ */

static void arm(struct guest *guest, uint32_t i, uint32_t count, uint32_t at)
{
	struct muster_cq_record *record = qp_part(guest, i, QP_CQ_RECORD);

	record->arm = htole32(count);
	record->armed_at = htole32(at);
	reg_write(guest, MUSTER_REG_BELLS + MUSTER_BELL_CQ, QP_CQ + i);
	settle(guest);
}

static void an_armed_queue_interrupts_for_the_next_completion(void **state)
{
	struct guest *guest = *state;
	const uint32_t *interrupts = &guest->interrupts[1];
	struct muster_work solicited = datagram_to(0, 0, 0, 1);

	qp_send(guest, 0, datagram_to(0, 1, 0, 1));
	assert_int_equal(*interrupts, 0);
	arm(guest, 0, 2, 1);			/* that one was seen */
	assert_int_equal(*interrupts, 0);
	qp_send(guest, 0, datagram_to(0, 1, 0, 1));
	assert_int_equal(*interrupts, 1);
	qp_send(guest, 0, datagram_to(0, 1, 0, 1));
	assert_int_equal(*interrupts, 1);
	arm(guest, 0, 2, 1);			/* rung again, not armed again */
	assert_int_equal(*interrupts, 1);
	arm(guest, 0, 4, 2);			/* the third was not seen */
	assert_int_equal(*interrupts, 2);
	arm(guest, 0, 7, 3);			/* only for what is solicited */
	qp_send(guest, 0, datagram_to(0, 1, 0, 1));
	assert_int_equal(*interrupts, 2);
	solicited.flags = htole16(MUSTER_WORK_SOLICITED);
	qp_receive(guest, 0, receive_of(0, 100));
	qp_send(guest, 1, solicited);
	assert_int_equal(*interrupts, 3);
}

static uint8_t moderate(struct guest *guest, uint32_t cq, uint16_t count, uint16_t period_us)
{
	struct muster_admin_command cmd = {
		.opcode = MUSTER_ADMIN_CQ_MODERATE,
		.cq_moderate = { .id = htole32(cq), .count = htole16(count),
				 .period_us = htole16(period_us) },
	};

	return command(guest, cmd).status;
}

/* No time passes here by accident. */
static void a_moderated_queue_interrupts_for_several_or_after_a_while(void **state)
{
	struct guest *guest = *state;
	const uint32_t *interrupts = &guest->interrupts[1];
	struct muster_work wrong = datagram_to(0, 1, 0, 1);

	assert_int_equal(moderate(guest, QP_CQ + 7, 3, 100), MUSTER_ADMIN_NO_OBJECT);
	assert_int_equal(moderate(guest, MUSTER_CQS_MAX, 3, 100), MUSTER_ADMIN_NO_OBJECT);
	assert_int_equal(moderate(guest, QP_CQ, 3, 100), MUSTER_ADMIN_OK);
	guest->stands_us = muster_clock_us();
	arm(guest, 0, 2, 0);
	for (uint32_t i = 0; i < 3; i++) {
		qp_send(guest, 0, datagram_to(0, 1, 0, 1));
		assert_int_equal(*interrupts, i == 2);
	}
	arm(guest, 0, 4, 3);
	qp_send(guest, 0, datagram_to(0, 1, 0, 1));
	guest->later_us += 99;
	settle(guest);
	assert_int_equal(*interrupts, 1);
	guest->later_us += 1;
	settle(guest);
	assert_int_equal(*interrupts, 2);
	arm(guest, 0, 6, 4);
	wrong.opcode = 99;			/* an error is told at once */
	qp_send(guest, 0, wrong);
	assert_int_equal(*interrupts, 3);
}

static void who_has_armed_a_queue_need_not_ring(void **state)
{
	struct guest *guest = *state;
	struct muster_cq_record *record = qp_part(guest, 0, QP_CQ_RECORD);
	uint8_t *notice = qp_part(guest, 0, QP_CQ_NOTICE), *other = qp_part(guest, 1, QP_CQ_NOTICE);

	for (uint32_t n = 1; n <= 3; n++) {
		record->arm = htole32(2 * n);
		qp_send(guest, 0, datagram_to(0, 1, 0, 1));
		qp_send(guest, 0, datagram_to(0, 1, 0, 1));
		assert_int_equal(guest->interrupts[1], n);
		assert_int_equal(*notice, 1);	/* for this queue and no other */
		assert_int_equal(*other, 0);
		*notice = 0;
	}
}

static void a_queue_that_is_armed_before_its_queue_pair_is_there_interrupts(void **state)
{
	struct guest *guest = *state;

	for (uint32_t i = 0; i < 2; i++)
		command(guest, id_command(MUSTER_ADMIN_QP_DESTROY, qp_number(i)));
	arm(guest, 0, 2, 0);
	assert_int_equal(command(guest, qp_command(0, MUSTER_QP_UD)).status, MUSTER_ADMIN_OK);
	for (uint8_t to = MUSTER_QP_INIT; to <= MUSTER_QP_RTS; to++)
		qp_step(guest, 0, to);
	assert_int_equal(guest->interrupts[1], 0);
	qp_send(guest, 0, datagram_to(0, 1, 0, 1));
	assert_int_equal(guest->interrupts[1], 1);
}

/* ---- another ring ---------------------------------------------------------- */

enum { OTHER_RING = QP_CQ_RING + QP_CQ_ENTRIES * sizeof(struct muster_wc) };

static struct muster_admin_command resize_command(uint32_t part, uint32_t entries)
{
	return (struct muster_admin_command){
		.opcode = MUSTER_ADMIN_CQ_RESIZE,
		.cq_resize = { .base = htole64(QPS + part), .id = htole32(QP_CQ),
			       .entries = htole32(entries) },
	};
}

static void sends(struct guest *guest, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		qp_send(guest, 0, datagram_to(0, 1, i, 1));
}

static void other_has(struct guest *guest, uint32_t place, uint32_t lap, uint32_t i)
{
	const struct muster_wc *wc = (struct muster_wc *)qp_part(guest, 0, OTHER_RING) + place;

	assert_int_equal(wc->kind, MUSTER_CQE_WORK);
	assert_int_equal(le32toh(wc->valid), !(lap & 1));
	assert_int_equal(le64toh(wc->wr_id), 0x5e4d0000 + i);
}

static void a_queue_goes_on_in_another_ring(void **state)
{
	struct guest *guest = *state;
	struct muster_cq_record *record = qp_part(guest, 0, QP_CQ_RECORD);
	struct muster_admin_reply reply;

	sends(guest, 0, 3);
	assert_completes(guest, 0, 0x5e4d0000, MUSTER_WC_SUCCESS);
	reply = command(guest, resize_command(OTHER_RING, 4));
	assert_int_equal(reply.status, MUSTER_ADMIN_OK);
	assert_int_equal(le32toh(reply.detail), 3);
	sends(guest, 3, 6);				/* two that were there, and no room for the third */
	for (uint32_t i = 1; i < 3; i++)
		assert_completes(guest, 0, 0x5e4d0000 + i, MUSTER_WC_SUCCESS);
	assert_null(qp_poll(guest, 0));
	settle(guest);
	for (uint32_t i = 3; i < 6; i++)
		other_has(guest, i - 3, 0, i);
	record->head = htole32(6);
	sends(guest, 6, 10);
	other_has(guest, 3, 0, 6);
	for (uint32_t i = 7; i < 10; i++)
		other_has(guest, i - 7, 1, i);
}

static void a_queue_stays_as_long_as_what_is_in_it(void **state)
{
	struct guest *guest = *state;
	struct muster_admin_reply reply;

	sends(guest, 0, 5);
	reply = command(guest, resize_command(OTHER_RING, 4));
	assert_int_equal(reply.status, MUSTER_ADMIN_BAD_PARAMETER);
	assert_int_equal(le32toh(reply.detail), offsetof(struct muster_admin_command, cq_resize.entries));
	assert_completes(guest, 0, 0x5e4d0000, MUSTER_WC_SUCCESS);
	assert_int_equal(command(guest, resize_command(OTHER_RING, 4)).status, MUSTER_ADMIN_OK);
}

static void what_was_rung_for_before_counts(void **state)
{
	struct guest *guest = *state;

	for (uint32_t i = 0; i < 5; i++)
		qp_put(guest, 0, datagram_to(0, 1, i, 1));
	reg_write(guest, MUSTER_REG_BELLS + MUSTER_BELL_QP, qp_number(0));
	assert_int_equal(command(guest, resize_command(OTHER_RING, 4)).status, MUSTER_ADMIN_BAD_PARAMETER);
}

static void a_full_queue_that_becomes_longer_takes_more(void **state)
{
	struct guest *guest = *state;

	sends(guest, 0, QP_CQ_ENTRIES + 1);
	assert_int_equal(event(guest, 0)->kind, MUSTER_EVENT_CQ_OVERRUN);
	assert_int_equal(command(guest, resize_command(OTHER_RING, 2 * QP_CQ_ENTRIES)).status,
			 MUSTER_ADMIN_OK);
	settle(guest);
	other_has(guest, 0, 0, QP_CQ_ENTRIES);
}

static void each_field_of_another_ring_is_checked(void **state)
{
	struct guest *guest = *state;
	struct muster_admin_command cmd;

#define REFUSED(why, field, value) do { \
		cmd = resize_command(OTHER_RING, 4); \
		cmd.field = value; \
		assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_##why); \
	} while (0)
	REFUSED(BAD_PARAMETER, cq_resize.base, htole64(QPS + 8));
	REFUSED(BAD_PARAMETER, cq_resize.entries, 0);
	REFUSED(BAD_PARAMETER, cq_resize.entries, htole32(3));
	REFUSED(BAD_PARAMETER, cq_resize.entries, htole32(2 * MUSTER_CQ_ENTRIES_MAX));
	REFUSED(BAD_PARAMETER, raw[sizeof(cmd.cq_resize)], 1);
	REFUSED(NO_OBJECT, cq_resize.id, htole32(QP_CQ + 7));
	REFUSED(NO_OBJECT, cq_resize.id, htole32(MUSTER_CQS_MAX));
	assert_int_equal(command(guest, cq_command(5)).status, MUSTER_ADMIN_OK);	/* of virtual ports */
	REFUSED(NO_OBJECT, cq_resize.id, htole32(5));
#undef REFUSED
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_TWO_UD(a_full_completion_queue_holds_up_its_queue_pairs),
		WITH_TWO_UD(an_armed_queue_interrupts_for_the_next_completion),
		WITH_TWO_UD(a_moderated_queue_interrupts_for_several_or_after_a_while),
		WITH_TWO_UD(who_has_armed_a_queue_need_not_ring),
		WITH_TWO_UD(a_queue_that_is_armed_before_its_queue_pair_is_there_interrupts),
		WITH_TWO_UD(a_queue_goes_on_in_another_ring),
		WITH_TWO_UD(a_queue_stays_as_long_as_what_is_in_it),
		WITH_TWO_UD(what_was_rung_for_before_counts),
		WITH_TWO_UD(a_full_queue_that_becomes_longer_takes_more),
		WITH_TWO_UD(each_field_of_another_ring_is_checked),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
