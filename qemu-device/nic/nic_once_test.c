// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A guest that changes everything as soon as the NIC has read it: commands, lists of pages and
 * members, descriptors, programs, work requests, receives and data. Whoever looked twice would find
 * other bytes than those that it has checked; all works as if nothing were changed.
 */
#include "test_qp.h"

enum { DESCS = 12, LONG_DQ = 16, IOVA = 0x7000000 };

static void port_open_long(struct guest *guest, uint32_t vp)
{
	struct muster_admin_command cmd = vp_command(vp);

	cmd.vp.dq_entries = htole32(LONG_DQ);
	assert_int_equal(command(guest, cq_command(vp)).status, MUSTER_ADMIN_OK);
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_OK);
}

static void begin(struct guest *guest)
{
	const struct place places[] = { { guest, 0, 0 }, { guest, 0, 1 } };

	guest->once = true;
	port_open_long(guest, 0);
	port_open_long(guest, 1);
	context_open(places, 2);
	assert_int_equal(command(guest, mr_command(guest, 1, IOVA, 0x8000, MUSTER_MR_ACCESS)).status,
			 MUSTER_ADMIN_OK);
}

static void commands_and_messages_are_read_once(void **state)
{
	struct guest *guest = *state;

	begin(guest);
	post(guest, 0, 0, message(0, 0, 1, "as it was"));
	doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, 1);
	settle(guest);
	assert_memory_equal(slot(guest, 1, 0)->payload, "as it was", 9);
}

static struct muster_desc number(uint32_t vp, uint32_t flags, double value)
{
	struct muster_desc desc = message(0, vp, 1 - vp, "");

	desc.flags = htole16(MUSTER_DESC_C | flags);
	desc.signature.type = MUSTER_DTYPE_F64;
	desc.signature.op = MUSTER_REDOP_SUM;
	desc.signature.digest = htole64(0x77);
	desc.inline_len = 8;
	desc.length = htole64(8);
	memcpy(desc.data, &value, sizeof(value));
	return desc;
}

static void put(struct guest *guest, uint32_t vp, uint32_t at, struct muster_desc desc)
{
	memcpy(guest->memory + port(vp, PORT_DQ) + at * sizeof(desc), &desc, sizeof(desc));
}

/* More descriptors than are read together: 12 numbers, from 1 to 12, which the other port adds. */
static void a_sequence_of_many_descriptors_is_read_once(void **state)
{
	struct guest *guest = *state;
	struct muster_desc sum = number(1, MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_REDUCE |
					MUSTER_DESC_COLL_END, 0);
	double result;

	begin(guest);
	for (uint32_t i = 0; i < DESCS; i++) {
		struct muster_desc desc = number(0, MUSTER_DESC_CP | (i ? 0 : MUSTER_DESC_CH) |
						 (i < DESCS - 1 ? 0 : MUSTER_DESC_CT), i + 1);

		desc.dest = htole32(MUSTER_FIELD_PREP(MUSTER_DEST_SEQ, i));
		put(guest, 0, i, desc);
	}
	sum.cp_count = DESCS;
	sum.store_key = htole32(1);
	sum.store_addr = htole64(IOVA);
	put(guest, 1, 0, sum);
	doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, DESCS);
	doorbell(guest, 1, MUSTER_DOORBELL_DQ_TAIL, 1);
	settle(guest);
	assert_int_equal(cqe(guest, 1, 0)->status, MUSTER_STATUS_OK);
	memcpy(&result, guest->memory + DATA + 0x10000 + 7 * 4096, sizeof(result));
	assert_true(result == DESCS * (DESCS + 1) / 2);
}

/* The same from the memory that a descriptor names. */
static void a_program_is_read_once(void **state)
{
	struct guest *guest = *state;
	struct muster_desc *program = (void *)(guest->memory + DATA + 0x10000 + 3 * 4096);
	struct muster_desc start = number(0, MUSTER_DESC_CH | MUSTER_DESC_CT, 0);
	struct muster_desc sum = number(1, MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_REDUCE |
					MUSTER_DESC_COLL_END, 0);
	double result;

	begin(guest);
	for (uint32_t i = 0; i < DESCS; i++) {
		program[i] = number(0, MUSTER_DESC_CP | (i ? 0 : MUSTER_DESC_CH) |
				    (i < DESCS - 1 ? 0 : MUSTER_DESC_CT), i + 1);
		program[i].dest = htole32(MUSTER_FIELD_PREP(MUSTER_DEST_SEQ, i));
	}
	start = (struct muster_desc){
		.kind = MUSTER_DESC_PROGRAM, .flags = start.flags, .src_vp = start.src_vp,
		.job = start.job, .context = start.context, .length = htole64(DESCS * sizeof(start)),
		.range = { .load_key = htole32(1), .load_addr = htole64(IOVA + 4 * 4096) },
	};
	put(guest, 0, 0, start);
	sum.cp_count = DESCS;
	sum.store_key = htole32(1);
	sum.store_addr = htole64(IOVA);
	put(guest, 1, 0, sum);
	doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, 1);
	doorbell(guest, 1, MUSTER_DOORBELL_DQ_TAIL, 1);
	settle(guest);
	assert_int_equal(cqe(guest, 1, 0)->status, MUSTER_STATUS_OK);
	memcpy(&result, guest->memory + DATA + 0x10000 + 7 * 4096, sizeof(result));
	assert_true(result == DESCS * (DESCS + 1) / 2);
}

/* ---- queue pairs ----------------------------------------------------------------------- */

/* How far the queues of two are is said anew whenever it changes, and looked at whenever that matters. */
static bool is_record(uint64_t addr)
{
	uint64_t part = (addr - QPS) % QP_BYTES;

	return addr >= QPS && addr < QPS + 2 * QP_BYTES && (part < QP_SQ || part >= QP_CQ_RECORD);
}

static void fill(struct guest *guest, uint32_t offset, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		*(uint8_t *)qp_bytes(guest, offset + i) = (uint8_t)(i * 7);
}

static void assert_filled(struct guest *guest, uint32_t offset, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		assert_int_equal(*(uint8_t *)qp_bytes(guest, offset + i - from), (uint8_t)(i * 7));
}

/* Of two ranges each, which are read behind the first. */
static struct muster_work in_two(struct muster_work work, uint32_t first)
{
	work.nr_sges = 2;
	work.sges[1] = work.sges[0];
	work.sges[1].addr = htole64(le64toh(work.sges[0].addr) + first);
	work.sges[1].length = htole32(le32toh(work.sges[0].length) - first);
	work.sges[0].length = htole32(first);
	return work;
}

static void datagrams_and_receives_are_read_once(void **state)
{
	struct guest *guest = *state;

	guest->once = true;
	guest->keeps = is_record;
	qp_memory(guest, MUSTER_MR_READ | MUSTER_MR_WRITE);
	ud_open(guest, 0);
	ud_open(guest, 1);
	fill(guest, 0, 1000);
	qp_receive(guest, 1, receive_of(0x4000, 2000));
	qp_send(guest, 0, in_two(datagram_to(0, 1, 0, 1000), 300));
	awaits(guest, 0, 0x5e4d0000, MUSTER_WC_SUCCESS);
	awaits(guest, 1, 0x4ecf4000, MUSTER_WC_SUCCESS);
	assert_filled(guest, 0x4000 + MUSTER_QP_GRH_BYTES, 0, 1000);
}

static void requests_of_a_connection_are_read_once(void **state)
{
	struct guest *guest = *state;

	guest->once = true;
	guest->keeps = is_record;
	qp_memory(guest, MUSTER_MR_ACCESS);
	for (uint32_t i = 0; i < 2; i++)
		qp_create(guest, i, MUSTER_QP_RC);
	rc_connect(guest, 0, 0, 1);
	rc_connect(guest, 1, 0, 0);
	fill(guest, 0, 3000);
	qp_receive(guest, 1, receive_of(0x4000, 3000));
	qp_send(guest, 0, in_two(rc_work(MUSTER_WORK_SEND, 0, 3000, 0), 1100));
	awaits(guest, 1, 0x4ecf4000, MUSTER_WC_SUCCESS);
	assert_filled(guest, 0x4000, 0, 3000);
	awaits(guest, 0, 0x5e4d0000, MUSTER_WC_SUCCESS);
	fill(guest, 0, 3000);
	qp_send(guest, 0, rc_work(MUSTER_WORK_WRITE, 0, 3000, 0x4000));
	awaits(guest, 0, 0x5e4d0000, MUSTER_WC_SUCCESS);
	assert_filled(guest, 0x4000, 0, 3000);
	qp_send(guest, 0, rc_work(MUSTER_WORK_READ, 0x1000, 3000, 0x4000));
	awaits(guest, 0, 0x5e4d1000, MUSTER_WC_SUCCESS);
	assert_filled(guest, 0x1000, 0, 3000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_GUEST(commands_and_messages_are_read_once),
		WITH_GUEST(a_sequence_of_many_descriptors_is_read_once),
		WITH_GUEST(a_program_is_read_once),
		WITH_GUEST(datagrams_and_receives_are_read_once),
		WITH_GUEST(requests_of_a_connection_are_read_once),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
