// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A guest that changes everything as soon as the NIC has read it: commands, lists of pages and
 * members, descriptors and data. Whoever looked twice would find other bytes than those that it
 * has checked; all works as if nothing were changed.
 */
#include "test_guest.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_GUEST(commands_and_messages_are_read_once),
		WITH_GUEST(a_sequence_of_many_descriptors_is_read_once),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
