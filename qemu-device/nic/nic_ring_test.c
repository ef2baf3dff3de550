// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the NIC's ports do, driven as a driver would drive them: descriptors,
 * completions, messages, events, the memory that they name; up to a collective
 * between two NICs.
 */
#include "test_guest.h"

/* ---- rings ----------------------------------------------------------------- */

static void a_message_lands_in_the_receive_ring_and_completes(void **state)
{
	struct guest *guest = *state;

	pair_open(guest);
	for (uint32_t i = 0; i < 3 * RQ; i++) {
		post(guest, 0, i, message(0, 0, 1, "a grain of salt"));
		doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, i + 1);
		settle(guest);
		assert_int_equal(le32toh(slot(guest, 1, i)->valid), !(i / RQ & 1));
		assert_int_equal(le16toh(slot(guest, 1, i)->packet.length), 15);
		assert_memory_equal(slot(guest, 1, i)->payload, "a grain of salt", 15);
		assert_int_equal(le32toh(cqe(guest, 0, i)->valid), !(i / CQ & 1));
		assert_int_equal(cqe(guest, 0, i)->status, MUSTER_STATUS_OK);
		assert_int_equal(le64toh(cqe(guest, 0, i)->cookie), 0xc00c1e);
		assert_int_equal(le32toh(*(uint32_t *)(guest->memory + port(0, PORT_STATUS))), i + 1);
		doorbell(guest, 1, MUSTER_DOORBELL_RQ_HEAD, i + 1);
		doorbell(guest, 0, MUSTER_DOORBELL_CQ_HEAD, i + 1);
		settle(guest);
	}
}

static void full_rings_wait_for_their_reader(void **state)
{
	struct guest *guest = *state;

	pair_open(guest);
	for (uint32_t i = 0; i < CQ + 2; i++)
		post(guest, 0, i, message(0, 0, 1, "x"));
	doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, CQ + 2);
	settle(guest);
	assert_int_equal(event(guest, 0)->kind, MUSTER_EVENT_CQ_OVERRUN);
	assert_int_equal(le32toh(cqe(guest, 0, 0)->valid), 1);
	doorbell(guest, 0, MUSTER_DOORBELL_CQ_HEAD, CQ);
	settle(guest);
	assert_int_equal(le32toh(cqe(guest, 0, 0)->valid), 0);
	assert_int_equal(le32toh(cqe(guest, 0, 1)->valid), 0);
	assert_int_equal(le32toh(cqe(guest, 0, 2)->valid), 1);
}

static void a_full_completion_queue_is_told_once_until_it_moves(void **state)
{
	struct guest *guest = *state;

	pair_open(guest);
	for (uint32_t i = 0; i < CQ + 3; i++)
		post(guest, 0, i, message(0, 0, 1, "x"));
	doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, CQ + 3);
	for (int i = 0; i < 100; i++) {
		settle(guest);
		doorbell(guest, 0, MUSTER_DOORBELL_CQ_HEAD, i % 2 ? 0 : 1000);
	}
	assert_int_equal(event(guest, 0)->kind, MUSTER_EVENT_CQ_OVERRUN);
	assert_int_equal(le32toh(event(guest, 0)->valid), 1);
	assert_int_equal(le32toh(event(guest, 1)->valid), 0);
	doorbell(guest, 0, MUSTER_DOORBELL_CQ_HEAD, 1);
	settle(guest);
	assert_int_equal(le32toh(event(guest, 1)->valid), 1);
	assert_int_equal(le32toh(event(guest, 2)->valid), 0);
}

static void port_fail(struct guest *guest, uint32_t vp)
{
	doorbell(guest, vp, MUSTER_DOORBELL_DQ_TAIL, DQ + 1);
	settle(guest);
}

static void an_event_waits_for_room_in_its_ring(void **state)
{
	struct guest *guest = *state;

	port_open(guest, 0);
	port_open(guest, 1);
	for (uint32_t i = 0; i < EVENTS; i++) {
		port_fail(guest, 0);
		assert_int_equal(le32toh(event(guest, i)->valid), 1);
		assert_int_equal(command(guest, id_command(MUSTER_ADMIN_VP_DESTROY, 0)).status, 0);
		assert_int_equal(command(guest, vp_command(0)).status, 0);
	}
	port_fail(guest, 1);
	assert_int_equal(le32toh(event(guest, 0)->id), 0);
	guest->kicks = 0;
	reg_write(guest, MUSTER_REG_EVENT_HEAD, 1);
	assert_int_equal(guest->kicks, 1);
	settle(guest);
	assert_int_equal(event(guest, 0)->kind, MUSTER_EVENT_VP_ERROR);
	assert_int_equal(le32toh(event(guest, 0)->id), 1);
	assert_int_equal(le32toh(event(guest, 0)->valid), 0);
}

static void a_full_receive_ring_drops_and_counts(void **state)
{
	struct guest *guest = *state;
	struct muster_admin_command counters = {
		.opcode = MUSTER_ADMIN_COUNTERS,
		.counters = { .base = htole64(LIST), .bytes = htole32(1000) },
	};
	struct muster_device_counters *c = (void *)(guest->memory + LIST);

	pair_open(guest);
	for (uint32_t i = 0; i < RQ + 1; i++) {
		post(guest, 0, i, message(0, 0, 1, i < RQ ? "kept" : "lost"));
		doorbell(guest, 0, MUSTER_DOORBELL_CQ_HEAD, i);
		doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, i + 1);
		settle(guest);
	}
	assert_memory_equal(slot(guest, 1, 0)->payload, "kept", 4);
	assert_int_equal(command(guest, counters).status, MUSTER_ADMIN_OK);
	assert_int_equal(le64toh(c->dropped), 1);
}

static void an_armed_queue_interrupts_once_and_by_its_name(void **state)
{
	struct guest *guest = *state;
	const uint8_t *notice = guest->memory + port(0, PORT_NOTICE);
	const uint8_t *other = guest->memory + port(1, PORT_NOTICE);

	pair_open(guest);
	post(guest, 0, 0, message(0, 0, 1, "x"));
	post(guest, 0, 1, message(0, 0, 1, "y"));
	doorbell(guest, 0, MUSTER_DOORBELL_CQ_ARM, 0);
	assert_int_equal(*notice, 0);
	doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, 2);
	settle(guest);
	assert_int_equal(guest->interrupts[1], 1);
	assert_int_equal(*notice, 1);
	doorbell(guest, 0, MUSTER_DOORBELL_CQ_ARM, 1);
	settle(guest);
	assert_int_equal(guest->interrupts[1], 2);
	doorbell(guest, 0, MUSTER_DOORBELL_CQ_ARM, 2);
	settle(guest);
	assert_int_equal(guest->interrupts[1], 2);
	for (uint32_t i = 2; i < CQ; i++) {
		post(guest, 0, i, message(0, 0, 1, "z"));
		doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, i + 1);
		settle(guest);
		assert_int_equal(guest->interrupts[1], 3);
	}
	/* the receiver was not armed */
	assert_int_equal(guest->interrupts[2], 0);
	assert_int_equal(*other, 0);
	doorbell(guest, 1, MUSTER_DOORBELL_CQ_ARM, 0);
	settle(guest);
	assert_int_equal(guest->interrupts[2], 1);
	assert_int_equal(*other, 1);
}

static void arming_with_an_impossible_head_is_no_interrupt(void **state)
{
	struct guest *guest = *state;

	pair_open(guest);
	for (uint32_t i = 1; i < 100; i++) {
		doorbell(guest, 0, MUSTER_DOORBELL_CQ_ARM, i * 1000);
		settle(guest);
	}
	assert_int_equal(guest->interrupts[1], 0);
	post(guest, 0, 0, message(0, 0, 1, "x"));
	doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, 1);
	settle(guest);
	assert_int_equal(guest->interrupts[1], 1);
}

static void a_refused_descriptor_completes_with_its_place(void **state)
{
	struct guest *guest = *state;
	struct muster_desc desc = message(0, 0, 1, "x");

	pair_open(guest);
	desc.signature.reserved = 1;
	post(guest, 0, 0, desc);
	post(guest, 0, 1, message(0, 0, 1, "x"));
	doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, 2);
	settle(guest);
	assert_int_equal(cqe(guest, 0, 0)->status, MUSTER_STATUS_DESCRIPTOR);
	assert_int_equal(cqe(guest, 0, 1)->status, MUSTER_STATUS_OK);
}

static void a_sequence_waits_for_its_end_and_must_have_one(void **state)
{
	struct guest *guest = *state;
	struct muster_desc desc = message(0, 0, 1, "");
	struct muster_vp_status *status = (void *)(guest->memory + port(0, PORT_STATUS));

	pair_open(guest);
	desc.flags = htole16(MUSTER_DESC_C | MUSTER_DESC_CH);
	post(guest, 0, 0, desc);
	doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, 1);
	settle(guest);
	assert_int_equal(le32toh(status->error), 0);
	assert_int_equal(le32toh(status->dq_head), 0);
	post(guest, 0, 1, desc);
	doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, 2);
	settle(guest);
	assert_int_equal(le32toh(status->error), MUSTER_STATUS_DESCRIPTOR);
	assert_int_equal(event(guest, 0)->kind, MUSTER_EVENT_VP_ERROR);
}

static void a_doorbell_beyond_the_ring_stops_its_port_only(void **state)
{
	struct guest *guest = *state;

	pair_open(guest);
	doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, DQ + 1);
	settle(guest);
	assert_int_equal(event(guest, 0)->kind, MUSTER_EVENT_VP_ERROR);
	assert_int_equal(le32toh(event(guest, 0)->id), 0);
	post(guest, 1, 0, message(0, 1, 0, "x"));
	doorbell(guest, 1, MUSTER_DOORBELL_DQ_TAIL, 1);
	settle(guest);
	assert_int_equal(le32toh(cqe(guest, 1, 0)->valid), 1);
}

/* ---- memory ---------------------------------------------------------------- */

static struct muster_desc message_from(uint64_t addr, uint32_t key, uint32_t length)
{
	struct muster_desc desc = message(0, 0, 1, "");

	desc.kind = MUSTER_DESC_RDMA;
	desc.range.load_addr = htole64(addr);
	desc.range.load_key = htole32(key);
	desc.length = htole64(length);
	return desc;
}

static void a_region_is_read_page_by_page(void **state)
{
	struct guest *guest = *state;
	uint8_t *first = guest->memory + DATA + 0x10000 + 2 * 4096, *second = first - 4096;

	pair_open(guest);
	assert_int_equal(command(guest, mr_command(guest, 1, 0x7000f00, 8192, MUSTER_MR_READ)).status,
			 MUSTER_ADMIN_OK);
	memset(first + 0xf00, 1, 0x100);
	memset(second, 2, 4096);
	post(guest, 0, 0, message_from(0x7000f00, 1, 4096));
	doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, 1);
	settle(guest);
	assert_int_equal(cqe(guest, 0, 0)->status, MUSTER_STATUS_OK);
	assert_int_equal(slot(guest, 1, 0)->payload[0xff], 1);
	assert_int_equal(slot(guest, 1, 0)->payload[0x100], 2);
	assert_int_equal(slot(guest, 1, 0)->payload[4095], 2);
}

/* Its parts, a page each, lie in guest memory the last first, each with one between it and the next. */
enum { RING_PARTS = (RQ * sizeof(struct muster_recv_slot) + 4095) / 4096 };

static uint64_t ring_part(uint32_t i)
{
	return DATA + (RING_PARTS - 1 - i) * 2 * 4096;
}

static struct muster_admin_command ring_in_parts(struct guest *guest, uint32_t vp)
{
	struct muster_admin_command cmd = vp_command(vp);

	for (uint32_t i = 0; i < RING_PARTS; i++) {
		uint64_t part = htole64(ring_part(i));

		memcpy(guest->memory + LIST + 8 * i, &part, 8);
	}
	cmd.vp.rq_base = htole64(LIST);
	cmd.vp.rq_part_shift = 12;
	return cmd;
}

static struct muster_recv_slot slot_in_parts(struct guest *guest, uint32_t at)
{
	struct muster_recv_slot slot;
	uint8_t ring[RING_PARTS * 4096];

	for (uint32_t i = 0; i < RING_PARTS; i++)
		memcpy(ring + i * 4096, guest->memory + ring_part(i), 4096);
	memcpy(&slot, ring + at % RQ * sizeof(slot), sizeof(slot));
	return slot;
}

static void a_receive_ring_may_be_in_parts(void **state)
{
	struct guest *guest = *state;
	const struct place places[] = { { guest, 0, 0 }, { guest, 0, 1 } };
	uint8_t *from = guest->memory + DATA + 0x10000;

	port_open(guest, 0);
	command(guest, cq_command(1));
	assert_int_equal(command(guest, ring_in_parts(guest, 1)).status, MUSTER_ADMIN_OK);
	memset(guest->memory + LIST, 0xff, RING_PARTS * 8);	/* it was copied */
	context_open(places, 2);
	command(guest, mr_command(guest, 1, 0x7000000, 4096, MUSTER_MR_READ));
	for (uint32_t i = 0; i < 2 * RQ; i++) {
		struct muster_recv_slot slot;

		for (uint32_t k = 0; k < 4096; k++)
			from[k] = k * 7 + i;
		post(guest, 0, i, message_from(0x7000000, 1, 4096));
		doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, i + 1);
		settle(guest);
		slot = slot_in_parts(guest, i);
		assert_int_equal(le32toh(slot.valid), !(i / RQ & 1));
		assert_int_equal(le16toh(slot.packet.length), 4096);
		assert_memory_equal(slot.payload, from, 4096);
		doorbell(guest, 1, MUSTER_DOORBELL_RQ_HEAD, i + 1);
		doorbell(guest, 0, MUSTER_DOORBELL_CQ_HEAD, i + 1);
		settle(guest);
	}
	for (uint32_t i = 1; i < RING_PARTS; i++)
		assert_int_equal(guest->memory[ring_part(i) + 4096], 0);
}

static void a_ring_in_odd_parts_is_refused(void **state)
{
	struct guest *guest = *state;
	struct muster_admin_command cmd;
	struct muster_admin_reply reply;

	command(guest, cq_command(1));
	cmd = ring_in_parts(guest, 1);
	cmd.vp.rq_part_shift = 11;
	reply = command(guest, cmd);
	assert_int_equal(reply.status, MUSTER_ADMIN_BAD_PARAMETER);
	assert_int_equal(le32toh(reply.detail), offsetof(struct muster_admin_command, vp.rq_part_shift));
	cmd = ring_in_parts(guest, 1);
	guest->memory[LIST + 8 * (RING_PARTS - 1)] = 8;
	reply = command(guest, cmd);
	assert_int_equal(reply.status, MUSTER_ADMIN_BAD_PARAMETER);
	assert_int_equal(le32toh(reply.detail), offsetof(struct muster_admin_command, vp.rq_base));
	cmd = ring_in_parts(guest, 1);
	cmd.vp.rq_base = htole64(MEMORY - 8);
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_DMA);
	cmd = ring_in_parts(guest, 1);
	cmd.vp.reserved[2] = 1;
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_BAD_PARAMETER);
	assert_int_equal(command(guest, ring_in_parts(guest, 1)).status, MUSTER_ADMIN_OK);
}

/* Each in a life of its own, since a refused range ends the context. */
static void refused_range(struct guest *guest, uint64_t addr, uint32_t key, uint32_t length)
{
	uint32_t before = *(uint32_t *)(guest->memory + port(1, PORT_RQ) + 124);

	post(guest, 0, 0, message_from(addr, key, length));
	doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, 1);
	settle(guest);
	assert_true(cqe(guest, 0, 0)->status == MUSTER_STATUS_MEMORY ||
		    cqe(guest, 0, 1)->status == MUSTER_STATUS_MEMORY);
	assert_int_equal(*(uint32_t *)(guest->memory + port(1, PORT_RQ) + 124), before);
	reg_write(guest, MUSTER_REG_CONTROL, MUSTER_CONTROL_RESET);
	memset(guest->memory, 0, MEMORY);
	enable(guest);
	pair_open(guest);
}

static void memory_that_was_not_given_is_refused(void **state)
{
	struct guest *guest = *state;
	struct muster_admin_command cmd;

	pair_open(guest);
	refused_range(guest, 0x7000000, 9, 64);
	refused_range(guest, 0x7000000, MUSTER_MRS_MAX + 5, 64);
	command(guest, mr_command(guest, 1, 0x7000000, 4096, MUSTER_MR_READ));
	refused_range(guest, 0x7000001, 1, 4096);
	command(guest, mr_command(guest, 1, 0x7000000, 4096, MUSTER_MR_READ));
	refused_range(guest, 0x6ffffff, 1, 16);
	command(guest, mr_command(guest, 1, 0x7000000, 4096, MUSTER_MR_WRITE));
	refused_range(guest, 0x7000000, 1, 16);
	cmd = mr_command(guest, 1, 0x7000000, 4096, MUSTER_MR_READ);
	cmd.mr.pd = htole32(PD + 1);
	command(guest, cmd);
	refused_range(guest, 0x7000000, 1, 16);
	command(guest, mr_command(guest, 1, 0x7000000, 4096, MUSTER_MR_READ));
	command(guest, id_command(MUSTER_ADMIN_MR_DEREGISTER, 1));
	refused_range(guest, 0x7000000, 1, 16);
}

/* ---- two NICs -------------------------------------------------------------- */

static void two_nics_sum_a_number(void **state)
{
	struct guest *guests[2] = { guest_new(0), guest_new(1) };
	const struct place places[] = { { guests[0], 0, 0 }, { guests[1], 1, 0 } };
	double sum;

	(void)state;
	for (int i = 0; i < 2; i++) {
		port_open(guests[i], 0);
		command(guests[i], mr_command(guests[i], 1, 0x7000000, 4096, MUSTER_MR_WRITE));
	}
	context_open(places, 2);
	post_allreduce(guests[0], 1, 1.25);
	post_allreduce(guests[1], 0, 2.5);
	for (int i = 0; i < 1000 && (!cqe(guests[0], 0, 0)->valid || !cqe(guests[1], 0, 0)->valid);
	     i++) {
		settle(guests[0]);
		settle(guests[1]);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(le32toh(cqe(guests[i], 0, 0)->valid), 1);
		assert_int_equal(cqe(guests[i], 0, 0)->status, MUSTER_STATUS_OK);
		memcpy(&sum, guests[i]->memory + DATA + 0x10000, sizeof(sum));
		assert_true(sum == 3.75);
		guest_free(guests[i]);
	}
}

/* A context of VP 1 that names a life of node 1 that there is not. */
static void wrong_life_open(struct guest *guest)
{
	struct muster_admin_member members[] = {
		{ .node = htole32(0), .vp = htole16(1), .incarnation = htole32(100) },
		{ .node = htole32(1), .vp = htole16(0), .incarnation = htole32(4711) },
	};
	struct muster_admin_command cmd = context_command(MUSTER_ADMIN_CONTEXT_OPEN, 1);

	cmd.context.job_key = htole64(KEY + 1);
	cmd.context.members = htole64(LIST);
	cmd.context.nr_members = htole32(2);
	memcpy(guest->memory + LIST, members, sizeof(members));
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_OK);
}

static void who_names_a_wrong_life_of_a_node_fails_alone(void **state)
{
	struct guest *guests[2] = { guest_new(0), guest_new(1) };
	const struct place places[] = { { guests[0], 0, 0 }, { guests[1], 1, 0 } };

	(void)state;
	for (int i = 0; i < 2; i++) {
		port_open(guests[i], 0);
		command(guests[i], mr_command(guests[i], 1, 0x7000000, 4096, MUSTER_MR_WRITE));
	}
	port_open(guests[0], 1);
	context_open(places, 2);
	post_allreduce(guests[0], 1, 1.25);
	for (int i = 0; i < 100; i++) {
		settle(guests[0]);
		settle(guests[1]);
	}
	wrong_life_open(guests[0]);
	for (int i = 0; i < 100000 && !cqe(guests[0], 1, 0)->valid; i++) {
		settle(guests[0]);
		settle(guests[1]);
	}
	assert_int_equal(cqe(guests[0], 1, 0)->kind, MUSTER_CQE_CONTEXT);
	assert_int_equal(cqe(guests[0], 1, 0)->status, MUSTER_STATUS_PEER_LOST);
	assert_int_equal(event(guests[0], 0)->valid, 0);
	post_allreduce(guests[1], 0, 2.5);
	for (int i = 0; i < 100000 && (!cqe(guests[0], 0, 0)->valid || !cqe(guests[1], 0, 0)->valid);
	     i++) {
		settle(guests[0]);
		settle(guests[1]);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(cqe(guests[i], 0, 0)->kind, MUSTER_CQE_SEQUENCE);
		assert_int_equal(cqe(guests[i], 0, 0)->status, MUSTER_STATUS_OK);
		guest_free(guests[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_GUEST(a_message_lands_in_the_receive_ring_and_completes),
		WITH_GUEST(full_rings_wait_for_their_reader),
		WITH_GUEST(a_full_completion_queue_is_told_once_until_it_moves),
		WITH_GUEST(an_event_waits_for_room_in_its_ring),
		WITH_GUEST(arming_with_an_impossible_head_is_no_interrupt),
		WITH_GUEST(a_full_receive_ring_drops_and_counts),
		WITH_GUEST(an_armed_queue_interrupts_once_and_by_its_name),
		WITH_GUEST(a_refused_descriptor_completes_with_its_place),
		WITH_GUEST(a_sequence_waits_for_its_end_and_must_have_one),
		WITH_GUEST(a_doorbell_beyond_the_ring_stops_its_port_only),
		WITH_GUEST(a_region_is_read_page_by_page),
		WITH_GUEST(a_receive_ring_may_be_in_parts),
		WITH_GUEST(a_ring_in_odd_parts_is_refused),
		WITH_GUEST(memory_that_was_not_given_is_refused),
		cmocka_unit_test(two_nics_sum_a_number),
		cmocka_unit_test(who_names_a_wrong_life_of_a_node_fails_alone),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
