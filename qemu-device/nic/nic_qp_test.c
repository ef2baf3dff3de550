// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs as a provider drives them: their life, and datagrams, between two of one NIC
 * and of two.
 */
#include "test_qp.h"

enum { READ_WRITE = MUSTER_MR_READ | MUSTER_MR_WRITE };

/* ---- life ------------------------------------------------------------------ */

static void each_field_of_a_queue_pair_is_checked(void **state)
{
	struct guest *guest = *state;
	struct muster_admin_command cmd;

	assert_int_equal(command(guest, qp_cq_command(0)).status, MUSTER_ADMIN_OK);
	assert_int_equal(command(guest, cq_command(0)).status, MUSTER_ADMIN_OK);
#define REFUSED(field, value, why) do { \
		cmd = qp_command(0, MUSTER_QP_UD); \
		cmd.field = value; \
		assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_##why); \
	} while (0)
	REFUSED(qp.record, 0, BAD_PARAMETER);
	REFUSED(qp.record, htole64(QPS + 8), BAD_PARAMETER);
	REFUSED(qp.sq_base, htole64(QPS + 1), BAD_PARAMETER);
	REFUSED(qp.rq_base, htole64(QPS + 4), BAD_PARAMETER);
	REFUSED(qp.id, htole32(1 << 24), BAD_PARAMETER);
	REFUSED(qp.sq_entries, htole16(3), BAD_PARAMETER);
	REFUSED(qp.rq_entries, htole16(2 * MUSTER_QP_ENTRIES_MAX), BAD_PARAMETER);
	REFUSED(qp.type, 9, BAD_PARAMETER);
	REFUSED(qp.signals_all, 2, BAD_PARAMETER);
	REFUSED(raw[48], 1, BAD_PARAMETER);
	REFUSED(raw[55], 1, BAD_PARAMETER);
	REFUSED(qp.srq, htole16(1), BAD_PARAMETER);	/* beside a queue of its own */
	REFUSED(qp.send_cq, htole32(QP_CQ + 1), NO_OBJECT);
	REFUSED(qp.recv_cq, htole32(MUSTER_CQS_MAX), NO_OBJECT);
	REFUSED(qp.recv_cq, htole32(0), NO_OBJECT);	/* it is for virtual ports */
#undef REFUSED
	cmd = vp_command(0);
	cmd.vp.cq = htole32(QP_CQ);			/* and this one is not */
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_NO_OBJECT);
}

static void an_index_is_one_queue_pairs_and_its_queue_stays(void **state)
{
	struct guest *guest = *state;
	struct muster_admin_command cmd = qp_command(0, MUSTER_QP_UD);

	qp_create(guest, 0, MUSTER_QP_UD);
	cmd.qp.id = htole32(qp_number(0) + MUSTER_QPS_MAX);
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_BUSY);
	assert_int_equal(command(guest, id_command(MUSTER_ADMIN_CQ_DESTROY, QP_CQ)).status,
			 MUSTER_ADMIN_BUSY);
	assert_int_equal(command(guest, id_command(MUSTER_ADMIN_QP_DESTROY, le32toh(cmd.qp.id))).status,
			 MUSTER_ADMIN_NO_OBJECT);
	assert_int_equal(command(guest, id_command(MUSTER_ADMIN_QP_DESTROY, qp_number(0))).status,
			 MUSTER_ADMIN_OK);
	assert_int_equal(command(guest, id_command(MUSTER_ADMIN_QP_QUERY, qp_number(0))).status,
			 MUSTER_ADMIN_NO_OBJECT);
	assert_int_equal(command(guest, id_command(MUSTER_ADMIN_CQ_DESTROY, QP_CQ)).status,
			 MUSTER_ADMIN_OK);
}

static void states_follow_each_other_as_verbs_say(void **state)
{
	static const uint8_t all[] = { MUSTER_QP_RESET, MUSTER_QP_INIT, MUSTER_QP_RTR,
				       MUSTER_QP_RTS, MUSTER_QP_ERR };
	static const bool allowed[5][5] = {	/* from, to */
		{ 1, 1, 0, 0, 1 }, { 1, 1, 1, 0, 1 }, { 1, 0, 0, 1, 1 }, { 1, 0, 0, 1, 1 },
		{ 1, 0, 0, 0, 1 },
	};
	struct guest *guest = *state;

	qp_create(guest, 0, MUSTER_QP_UD);
	for (uint32_t from = 0; from < 5; from++) {
		for (uint32_t to = 0; to < 5; to++) {
			qp_step(guest, 0, MUSTER_QP_RESET);
			for (uint32_t i = 1; i <= from && from < 4; i++)
				qp_step(guest, 0, all[i]);
			qp_step(guest, 0, from < 4 ? all[from] == MUSTER_QP_RTR ? MUSTER_QP_ERR :
					  all[from] : MUSTER_QP_ERR);
			if (all[from] == MUSTER_QP_RTR) {	/* the one that does not follow itself */
				qp_step(guest, 0, MUSTER_QP_RESET);
				qp_step(guest, 0, MUSTER_QP_INIT);
				qp_step(guest, 0, MUSTER_QP_RTR);
			}
			assert_int_equal(qp_state(guest, 0), all[from]);
			assert_int_equal(command(guest, qp_modify_command(0, all[to])).status,
					 allowed[from][to] ? MUSTER_ADMIN_OK :
							     MUSTER_ADMIN_BAD_PARAMETER);
			assert_int_equal(qp_state(guest, 0), allowed[from][to] ? all[to] : all[from]);
		}
	}
	assert_int_equal(command(guest, qp_modify_command(0, 4)).status, MUSTER_ADMIN_BAD_PARAMETER);
}

/* ---- datagrams ------------------------------------------------------------- */

static void a_datagram_lands_behind_its_header(void **state)
{
	struct guest *guest = *state;
	const struct muster_wc *wc;
	uint8_t *grh;

	for (uint32_t i = 0; i < 3 * QP_CQ_ENTRIES; i++) {
		qp_receive(guest, 1, receive_of(4096 - 45, 1000));	/* over the end of a page */
		memcpy(qp_bytes(guest, 0), "a grain of salt", 15);
		qp_send(guest, 0, datagram_to(0, 1, 0, 15));
		assert_completes(guest, 0, 0x5e4d0000, MUSTER_WC_SUCCESS);
		wc = qp_poll(guest, 1);
		assert_non_null(wc);
		assert_int_equal(wc->status, MUSTER_WC_SUCCESS);
		assert_int_equal(wc->opcode, MUSTER_WC_RECV);
		assert_int_equal(wc->flags, MUSTER_WC_GRH);
		assert_int_equal(le32toh(wc->length), 55);
		assert_int_equal(le32toh(wc->src_qp), qp_number(0));
		assert_int_equal(le32toh(wc->src_node), 0);
		grh = qp_bytes(guest, 4096 - 45);
		assert_int_equal(grh[0], 0x60);
		assert_memory_equal(grh + 8, "\xfe\x80\0\0\0\0\0\0\x02MST\0\0\0\0", 16);
		assert_memory_equal(qp_bytes(guest, 4096 - 5), "a gra", 5);
		assert_memory_equal(qp_bytes(guest, 4096), "in of salt", 10);
		assert_null(qp_poll(guest, 0));
	}
}

static void data_may_be_in_the_request_or_in_many_places(void **state)
{
	struct guest *guest = *state;
	struct muster_work work = datagram_to(0, 1, 0, 0);
	const struct muster_wc *wc;

	work.opcode = MUSTER_WORK_SEND_IMM;
	work.imm = 0x12345678;
	work.nr_sges = 0;
	work.flags = htole16(MUSTER_WORK_INLINE);		/* and no completion */
	work.inline_len = htole32(MUSTER_QP_INLINE_MAX);
	memset(work.data, 'x', MUSTER_QP_INLINE_MAX);
	qp_receive(guest, 1, receive_of(0, 40 + MUSTER_QP_INLINE_MAX));
	qp_send(guest, 0, work);
	assert_null(qp_poll(guest, 0));
	wc = qp_poll(guest, 1);
	assert_int_equal(wc->imm, 0x12345678);
	assert_int_equal(wc->flags, MUSTER_WC_GRH | MUSTER_WC_WITH_IMM);
	assert_memory_equal(qp_bytes(guest, 40), work.data, MUSTER_QP_INLINE_MAX);

	work = datagram_to(0, 1, 4000, 2);
	work.nr_sges = MUSTER_QP_SGES_MAX;
	for (uint32_t i = 1; i < MUSTER_QP_SGES_MAX; i++)
		work.sges[i] = (struct muster_sge){ htole64(QP_IOVA), 0, htole32(1) };
	for (uint32_t i = 1; i < 4; i++)
		work.sges[5 * i] = (struct muster_sge){ htole64(QP_IOVA + 4000 - 2 * i), htole32(i - 1),
						    htole32(1) };
	memcpy(qp_bytes(guest, 3994), "ef_cd_ab", 8);
	qp_receive(guest, 1, receive_of(0, 4096));
	qp_send(guest, 0, work);
	assert_int_equal(le32toh(qp_poll(guest, 1)->length), 45);
	assert_memory_equal(qp_bytes(guest, 40), "ab_ef", 5);
}

static void a_receive_that_says_it_has_more_ranges_than_fit_takes_nothing(void **state)
{
	struct guest *guest = *state;
	struct muster_receive receive = receive_of(0, 100);
	uint64_t before = dropped(guest);

	receive.nr_sges = MUSTER_QP_RECEIVE_SGES_MAX + 1;
	qp_receive(guest, 1, receive);
	qp_receive(guest, 1, receive_of(0, 100));
	qp_send(guest, 0, datagram_to(0, 1, 0, 8));
	assert_int_equal(dropped(guest), before + 1);
	assert_null(qp_poll(guest, 1));
}

static void what_nobody_is_there_for_is_dropped(void **state)
{
	struct guest *guest = *state;
	struct muster_work work = datagram_to(0, 1, 0, 100);
	uint64_t before = dropped(guest);

	qp_send(guest, 0, work);			/* no receive */
	assert_int_equal(dropped(guest), before + 1);
	qp_receive(guest, 1, receive_of(0, 139));
	qp_send(guest, 0, work);			/* a byte too short */
	assert_int_equal(dropped(guest), before + 2);
	work.qkey = htole32(QKEY + 1);
	work.sges[0].length = htole32(1);
	qp_send(guest, 0, work);
	assert_int_equal(dropped(guest), before + 3);
	work.qkey = htole32(QKEY);
	work.dest_qp = htole32(qp_number(1) + MUSTER_QPS_MAX);
	qp_send(guest, 0, work);
	assert_int_equal(dropped(guest), before + 4);
	work.dest_qp = htole32(qp_number(1));
	work.qkey = htole32(MUSTER_QKEY_OWN);
	qp_send(guest, 0, work);			/* the receive is still there */
	assert_int_equal(dropped(guest), before + 4);
	assert_completes(guest, 1, 0x4ecf0000, MUSTER_WC_SUCCESS);
	for (int i = 0; i < 5; i++)
		assert_completes(guest, 0, 0x5e4d0000, MUSTER_WC_SUCCESS);
	work.dest_node = htole32(4000);			/* nobody answers there: it is given up */
	qp_send(guest, 0, work);
	for (int i = 0; i < 1000 && !qp_poll(guest, 0); i++) {
		settle(guest);
		usleep(10000);
		assert_true(i < 999);
	}
}

static void fails_with(struct guest *guest, struct muster_work work, uint8_t status)
{
	qp_step(guest, 0, MUSTER_QP_RESET);
	memset(qp_part(guest, 0, 0), 0, sizeof(struct muster_qp_record));
	ud_begin(guest, 0);
	qp_receive(guest, 0, receive_of(16, 16));
	qp_send(guest, 0, work);
	assert_completes(guest, 0, 0x5e4d0000, status);
	assert_int_equal(qp_state(guest, 0), MUSTER_QP_ERR);
	assert_completes(guest, 0, 0x4ecf0010, MUSTER_WC_WR_FLUSH_ERR);
	assert_null(qp_poll(guest, 0));
}

static void a_request_that_is_wrong_fails_its_queue_pair(void **state)
{
	struct guest *guest = *state;
	const struct muster_work good = datagram_to(0, 1, 0, 8);
	struct muster_work work;

#define FAILS(field, value, status) do { \
		work = good; \
		work.field = value; \
		fails_with(guest, work, MUSTER_WC_##status); \
	} while (0)
	FAILS(opcode, 77, LOC_QP_OP_ERR);
	FAILS(opcode, MUSTER_WORK_WRITE, LOC_QP_OP_ERR);
	FAILS(nr_sges, MUSTER_QP_SGES_MAX + 1, LOC_QP_OP_ERR);
	FAILS(nr_sges, 255, LOC_QP_OP_ERR);
	FAILS(flags, htole16(0x8000 | MUSTER_WORK_SIGNALED), LOC_QP_OP_ERR);
	FAILS(flags, htole16(MUSTER_WORK_INLINE), LOC_QP_OP_ERR);
	FAILS(inline_len, htole32(1), LOC_QP_OP_ERR);
	FAILS(dest_node, htole32(MUSTER_NODES_MAX), LOC_QP_OP_ERR);
	FAILS(dest_qp, htole32(1 << 24), LOC_QP_OP_ERR);
	FAILS(sges[0].length, htole32(MUSTER_MTU + 1), LOC_LEN_ERR);
	FAILS(sges[0].length, htole32(UINT32_MAX), LOC_LEN_ERR);
	FAILS(sges[0].key, htole32(2), LOC_PROT_ERR);
	FAILS(sges[0].key, 0, LOC_PROT_ERR);
	FAILS(sges[0].addr, htole64(QP_IOVA + QP_MEMORY - 7), LOC_PROT_ERR);
	FAILS(sges[0].addr, htole64(UINT64_MAX), LOC_PROT_ERR);
#undef FAILS
}

static void what_was_posted_is_flushed_once_and_in_order(void **state)
{
	struct guest *guest = *state;

	for (uint32_t i = 0; i < 3; i++)
		qp_receive(guest, 1, receive_of(i, 100));
	qp_step(guest, 1, MUSTER_QP_ERR);
	for (uint32_t i = 0; i < 3; i++)
		assert_completes(guest, 1, 0x4ecf0000 + i, MUSTER_WC_WR_FLUSH_ERR);
	qp_receive(guest, 1, receive_of(3, 100));
	qp_send(guest, 1, datagram_to(0, 0, 4, 1));
	assert_completes(guest, 1, 0x5e4d0004, MUSTER_WC_WR_FLUSH_ERR);
	assert_completes(guest, 1, 0x4ecf0003, MUSTER_WC_WR_FLUSH_ERR);
	qp_ring(guest, 1);
	assert_null(qp_poll(guest, 1));
}

/* Between that and the process's own clearing of its record, anyone may ring. */
static void a_ring_during_a_reset_brings_nothing_back(void **state)
{
	struct guest *guest = *state;

	for (uint32_t n = 0; n < 3; n++) {
		qp_send(guest, 0, datagram_to(0, 1, n, 1));
		assert_completes(guest, 0, 0x5e4d0000 + n, MUSTER_WC_SUCCESS);
	}
	qp_step(guest, 0, MUSTER_QP_RESET);
	qp_ring(guest, 0);
	memset(qp_part(guest, 0, 0), 0, sizeof(struct muster_qp_record));
	for (uint8_t to = MUSTER_QP_INIT; to <= MUSTER_QP_RTS; to++)
		qp_step(guest, 0, to);
	assert_null(qp_poll(guest, 0));
	qp_send(guest, 0, datagram_to(0, 1, 7, 1));
	assert_completes(guest, 0, 0x5e4d0007, MUSTER_WC_SUCCESS);
	assert_null(qp_poll(guest, 0));
}

static void a_record_that_makes_no_sense_stops_its_queue_pair_only(void **state)
{
	struct guest *guest = *state;
	struct muster_qp_record *record = qp_part(guest, 0, 0);

	record->sq_tail = htole32(QP_ENTRIES + 1);
	qp_ring(guest, 0);
	assert_int_equal(qp_state(guest, 0), MUSTER_QP_ERR);
	assert_int_equal(event(guest, 0)->kind, MUSTER_EVENT_QP_ERROR);
	assert_int_equal(le32toh(event(guest, 0)->id), qp_number(0));
	assert_null(qp_poll(guest, 0));
	record->sq_tail = 0;
	qp_ring(guest, 0);
	assert_int_equal(qp_state(guest, 0), MUSTER_QP_ERR);
	qp_receive(guest, 1, receive_of(0, 100));
	qp_send(guest, 1, datagram_to(0, 1, 0, 1));
	assert_completes(guest, 1, 0x5e4d0000, MUSTER_WC_SUCCESS);
	assert_completes(guest, 1, 0x4ecf0000, MUSTER_WC_SUCCESS);
	((struct muster_qp_record *)qp_part(guest, 1, 0))->rq_tail = htole32(1000);
	qp_send(guest, 1, datagram_to(0, 1, 0, 1));
	assert_int_equal(qp_state(guest, 1), MUSTER_QP_ERR);
	/* A reset mends it. */
	qp_step(guest, 0, MUSTER_QP_RESET);
	ud_begin(guest, 0);
	qp_send(guest, 0, datagram_to(0, 1, 0, 1));
	assert_completes(guest, 0, 0x5e4d0000, MUSTER_WC_SUCCESS);
}

/* Of datagrams, with one of its queues at that place. */
static void ud_open_at(struct guest *guest, uint32_t i, uint64_t sq_base, uint64_t rq_base)
{
	struct muster_admin_command cmd = qp_command(i, MUSTER_QP_UD);

	assert_int_equal(command(guest, qp_cq_command(i)).status, MUSTER_ADMIN_OK);
	if (sq_base)
		cmd.qp.sq_base = htole64(sq_base);
	if (rq_base)
		cmd.qp.rq_base = htole64(rq_base);
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_OK);
	ud_begin(guest, i);
}

static void a_queue_in_memory_that_the_host_refuses_stops_its_queue_pair_only(void **state)
{
	struct guest *guest = *state;

	ud_open_at(guest, 2, MEMORY, 0);
	ud_open_at(guest, 3, 0, MEMORY);
	qp_send(guest, 2, datagram_to(0, 1, 0, 1));
	assert_int_equal(qp_state(guest, 2), MUSTER_QP_ERR);
	assert_int_equal(event(guest, 0)->kind, MUSTER_EVENT_QP_ERROR);
	assert_int_equal(le32toh(event(guest, 0)->id), qp_number(2));
	assert_null(qp_poll(guest, 2));
	((struct muster_qp_record *)qp_part(guest, 3, 0))->rq_tail = htole32(1);
	qp_send(guest, 0, datagram_to(0, 3, 0, 1));
	assert_completes(guest, 0, 0x5e4d0000, MUSTER_WC_SUCCESS);
	assert_int_equal(qp_state(guest, 3), MUSTER_QP_ERR);
	assert_int_equal(le32toh(event(guest, 1)->id), qp_number(3));
	assert_null(qp_poll(guest, 3));
	qp_receive(guest, 1, receive_of(0, 100));
	qp_send(guest, 0, datagram_to(0, 1, 0, 1));
	assert_completes(guest, 0, 0x5e4d0000, MUSTER_WC_SUCCESS);
	assert_completes(guest, 1, 0x4ecf0000, MUSTER_WC_SUCCESS);
}

static void memory_of_another_domain_or_not_for_writing_is_refused(void **state)
{
	struct guest *guest = *state;
	struct muster_admin_command cmd = mr_command(guest, 2, QP_IOVA, 4096, MUSTER_MR_READ);
	struct muster_receive receive = receive_of(0, 100);
	struct muster_work work;

	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_OK);
	receive.sges[0].key = htole32(2);
	qp_receive(guest, 1, receive);
	qp_send(guest, 0, datagram_to(0, 1, 0, 8));
	assert_completes(guest, 0, 0x5e4d0000, MUSTER_WC_SUCCESS);
	assert_completes(guest, 1, 0x4ecf0000, MUSTER_WC_LOC_PROT_ERR);
	assert_int_equal(qp_state(guest, 1), MUSTER_QP_ERR);
	cmd = mr_command(guest, 3, QP_IOVA, 4096, MUSTER_MR_READ);
	cmd.mr.pd = htole32(PD + 1);
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_OK);
	work = datagram_to(0, 1, 0, 8);
	work.sges[0].key = htole32(3);
	fails_with(guest, work, MUSTER_WC_LOC_PROT_ERR);
}

static struct guest *nic_with_ud(uint32_t node)
{
	struct guest *guest = guest_new(node);

	qp_memory(guest, READ_WRITE);
	ud_open(guest, node);
	return guest;
}

/* What comes to `to` within some steps of both; NULL: nothing. */
static const struct muster_wc *comes(struct guest **guests, uint32_t to, int steps)
{
	const struct muster_wc *wc = NULL;

	for (int i = 0; i < steps && !(wc = qp_poll(guests[to], to)); i++) {
		settle(guests[!to]);
		settle(guests[to]);
	}
	return wc;
}

static void two_nics_exchange_datagrams(void **state)
{
	struct guest *guests[2] = { nic_with_ud(0), nic_with_ud(1) };

	(void)state;
	for (uint32_t n = 0; n < 100; n++) {
		uint32_t from = n % 2, to = !from;
		const struct muster_wc *wc;

		memset(qp_bytes(guests[from], 0), n, MUSTER_MTU);
		qp_receive(guests[to], to, receive_of(0, 40 + MUSTER_MTU));
		qp_send(guests[from], from, datagram_to(to, to, 0, MUSTER_MTU));
		wc = comes(guests, to, 100000);
		assert_non_null(wc);
		assert_int_equal(le32toh(wc->length), 40 + MUSTER_MTU);
		assert_int_equal(le32toh(wc->src_node), from);
		assert_int_equal(*(uint8_t *)qp_bytes(guests[to], 40 + MUSTER_MTU - 1), n);
		assert_completes(guests[from], from, 0x5e4d0000, MUSTER_WC_SUCCESS);
	}
	guest_free(guests[0]);
	guest_free(guests[1]);
}

/* Who waits for nothing but what is sent to it: it says nothing by itself. */
static void a_node_that_was_lost_is_reached_in_its_next_life(void **state)
{
	struct guest *guests[2] = { nic_with_ud(0), nic_with_ud(1) };
	const struct muster_wc *wc = NULL;

	(void)state;
	qp_receive(guests[1], 1, receive_of(0, 4096));
	qp_send(guests[0], 0, datagram_to(1, 1, 0, 8));
	assert_non_null(comes(guests, 1, 100000));
	guest_free(guests[1]);
	qp_send(guests[0], 0, datagram_to(1, 1, 0, 8));
	while (event(guests[0], 0)->kind != MUSTER_EVENT_PEER_LOST)
		settle(guests[0]);
	guests[1] = guest_new(1);
	reg_write(guests[1], MUSTER_REG_CONTROL, MUSTER_CONTROL_RESET);
	enable(guests[1]);
	qp_memory(guests[1], READ_WRITE);
	ud_open(guests[1], 1);
	qp_receive(guests[1], 1, receive_of(0, 4096));
	while (qp_poll(guests[0], 0))
		;
	for (int i = 0; i < 100 && !wc; i++) {
		qp_send(guests[0], 0, datagram_to(1, 1, 0, 8));
		wc = comes(guests, 1, 1000);
		qp_poll(guests[0], 0);
	}
	assert_non_null(wc);
	guest_free(guests[0]);
	guest_free(guests[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_GUEST(each_field_of_a_queue_pair_is_checked),
		WITH_GUEST(an_index_is_one_queue_pairs_and_its_queue_stays),
		WITH_GUEST(states_follow_each_other_as_verbs_say),
		WITH_TWO_UD(a_datagram_lands_behind_its_header),
		WITH_TWO_UD(data_may_be_in_the_request_or_in_many_places),
		WITH_TWO_UD(a_receive_that_says_it_has_more_ranges_than_fit_takes_nothing),
		WITH_TWO_UD(what_nobody_is_there_for_is_dropped),
		WITH_TWO_UD(a_request_that_is_wrong_fails_its_queue_pair),
		WITH_TWO_UD(what_was_posted_is_flushed_once_and_in_order),
		WITH_TWO_UD(a_ring_during_a_reset_brings_nothing_back),
		WITH_TWO_UD(a_record_that_makes_no_sense_stops_its_queue_pair_only),
		WITH_TWO_UD(a_queue_in_memory_that_the_host_refuses_stops_its_queue_pair_only),
		WITH_TWO_UD(memory_of_another_domain_or_not_for_writing_is_refused),
		cmocka_unit_test(two_nics_exchange_datagrams),
		cmocka_unit_test(a_node_that_was_lost_is_reached_in_its_next_life),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
