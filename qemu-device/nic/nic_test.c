// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The NIC behind its registers, driven as a driver would drive it: the registers
 * themselves, the lives that they begin and end, and the commands of the admin ring.
 */
#include "test_guest.h"

#include "nic_internal.h"

/* ---- registers and life ---------------------------------------------------- */

static void registers_say_what_the_device_is(void **state)
{
	struct guest *guest = *state;

	assert_int_equal(reg_read(guest, MUSTER_REG_MAGIC), MUSTER_REG_MAGIC_VALUE);
	assert_int_equal(reg_read(guest, MUSTER_REG_VERSION), MUSTER_DEVICE_VERSION);
	assert_int_equal(reg_read(guest, MUSTER_REG_NODE), 0);
	assert_int_equal(reg_read(guest, MUSTER_REG_INCARNATION), 100);
	assert_int_equal(reg_read(guest, MUSTER_REG_CAPABILITIES),
			 MUSTER_CAP_WRITE | MUSTER_CAP_PULSES | MUSTER_CAP_NUMBERS |
			 MUSTER_CAP_FORWARD | MUSTER_CAP_KEEP | MUSTER_CAP_PROGRAM | MUSTER_CAP_TREE |
			 MUSTER_CAP_QP | MUSTER_CAP_VECTOR_NAMES);
	assert_int_equal(reg_read(guest, MUSTER_REG_STATUS), MUSTER_STATE_ENABLED);
	assert_int_equal(reg_read(guest, MUSTER_REG_CONTROL), MUSTER_CONTROL_ENABLE);
}

static void odd_accesses_read_zero_and_do_nothing(void **state)
{
	struct guest *guest = *state;

	assert_int_equal(muster_nic_reg_read(guest->nic, MUSTER_REG_MAGIC, 8), 0);
	assert_int_equal(muster_nic_reg_read(guest->nic, MUSTER_REG_MAGIC, 1), 0);
	assert_int_equal(muster_nic_reg_read(guest->nic, MUSTER_REG_MAGIC + 2, 4), 0);
	assert_int_equal(muster_nic_reg_read(guest->nic, MUSTER_REGS_BYTES - 4, 4), 0);
	muster_nic_reg_write(guest->nic, MUSTER_REG_CONTROL, 0, 8);
	muster_nic_reg_write(guest->nic, MUSTER_REG_CONTROL, 0, 1);
	muster_nic_doorbell(guest->nic, 1, 5, 4);
	muster_nic_doorbell(guest->nic, 0, 5, 2);
	muster_nic_doorbell(guest->nic, 1ull << 40, 5, 4);
	assert_int_equal(reg_read(guest, MUSTER_REG_STATUS), MUSTER_STATE_ENABLED);
	assert_int_equal(guest->kicks, 0);
}

static void queue_registers_hold_still_while_enabled(void **state)
{
	struct guest *guest = *state;

	reg_write(guest, MUSTER_REG_ADMIN_BASE_LO, 0x5000);
	assert_int_equal(reg_read(guest, MUSTER_REG_ADMIN_BASE_LO), ADMIN);
}

static void a_reset_brings_a_new_life(void **state)
{
	struct guest *guest = *state;

	port_open(guest, 0);
	reg_write(guest, MUSTER_REG_CONTROL, MUSTER_CONTROL_RESET);
	assert_int_equal(reg_read(guest, MUSTER_REG_CONTROL), 0);
	assert_int_equal(reg_read(guest, MUSTER_REG_STATUS), 0);
	assert_int_equal(reg_read(guest, MUSTER_REG_INCARNATION), 101);
	assert_int_equal(reg_read(guest, MUSTER_REG_ADMIN_ENTRIES), 0);
	memset(guest->memory, 0, MEMORY);
	enable(guest);
	port_open(guest, 0);
}

static void nothing_comes_of_what_is_written_to_a_closed_nic(void **state)
{
	struct guest *guest = *state;

	port_open(guest, 0);
	muster_nic_close(guest->nic);
	for (uint32_t addr = 0; addr < MUSTER_REGS_BYTES; addr += 4)
		reg_write(guest, addr, 1);
	reg_write(guest, MUSTER_REG_CONTROL, MUSTER_CONTROL_RESET);
	reg_write(guest, MUSTER_REG_CONTROL, MUSTER_CONTROL_ENABLE);
	muster_nic_doorbell(guest->nic, 0, 5, 4);
	muster_nic_step(guest->nic);
	assert_int_equal(reg_read(guest, MUSTER_REG_STATUS), MUSTER_STATE_FATAL);
	assert_int_equal(muster_nic_fd(guest->nic), -1);
}

static void queues_that_make_no_sense_are_fatal_until_reset(void **state)
{
	struct guest *guest = *state;

	reg_write(guest, MUSTER_REG_CONTROL, 0);
	reg_write(guest, MUSTER_REG_ADMIN_ENTRIES, 24);
	reg_write(guest, MUSTER_REG_CONTROL, MUSTER_CONTROL_ENABLE);
	assert_int_equal(reg_read(guest, MUSTER_REG_STATUS), MUSTER_STATE_FATAL);
	reg_write(guest, MUSTER_REG_ADMIN_ENTRIES, ENTRIES);
	reg_write(guest, MUSTER_REG_CONTROL, MUSTER_CONTROL_ENABLE);
	assert_int_equal(reg_read(guest, MUSTER_REG_STATUS), MUSTER_STATE_FATAL);
	reg_write(guest, MUSTER_REG_CONTROL, MUSTER_CONTROL_RESET);
	enable(guest);
	assert_int_equal(reg_read(guest, MUSTER_REG_STATUS), MUSTER_STATE_ENABLED);
}

static void an_admin_tail_beyond_the_ring_is_fatal(void **state)
{
	struct guest *guest = *state;

	reg_write(guest, MUSTER_REG_ADMIN_TAIL, ENTRIES + 1);
	settle(guest);
	assert_true(reg_read(guest, MUSTER_REG_STATUS) & MUSTER_STATE_FATAL);
	assert_int_equal(guest->interrupts[0], 1);
}

static void without_bus_mastering_there_is_no_dma(void **state)
{
	struct guest *guest = *state;

	guest->bus_master = false;
	reg_write(guest, MUSTER_REG_ADMIN_TAIL, 1);
	settle(guest);
	assert_int_equal(guest->writes, 0);
	assert_true(reg_read(guest, MUSTER_REG_STATUS) & MUSTER_STATE_FATAL);
}

/* ---- commands -------------------------------------------------------------- */

static void commands_are_answered_in_every_lap(void **state)
{
	struct guest *guest = *state;

	for (uint32_t i = 0; i < 3 * ENTRIES; i++)
		assert_int_equal(command(guest, (struct muster_admin_command){ .opcode = 0 }).status,
				 MUSTER_ADMIN_OK);
	assert_int_equal(guest->interrupts[0], 3 * ENTRIES);
}

static void a_wrong_field_is_named_and_changes_nothing(void **state)
{
	struct guest *guest = *state;
	struct muster_admin_command cmd = cq_command(3);
	struct muster_admin_reply reply;

	assert_int_equal(command(guest, id_command(99, 0)).status, MUSTER_ADMIN_BAD_OPCODE);
	cmd.cq.entries = htole32(3);
	reply = command(guest, cmd);
	assert_int_equal(reply.status, MUSTER_ADMIN_BAD_PARAMETER);
	assert_int_equal(le32toh(reply.detail), offsetof(struct muster_admin_command, cq.entries));
	cmd = cq_command(3);
	cmd.raw[55] = 1;
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_BAD_PARAMETER);
	assert_int_equal(command(guest, id_command(MUSTER_ADMIN_CQ_DESTROY, 3)).status,
			 MUSTER_ADMIN_NO_OBJECT);
}

static void ids_are_used_once_and_used_objects_stay(void **state)
{
	struct guest *guest = *state;

	port_open(guest, 2);
	assert_int_equal(command(guest, cq_command(2)).status, MUSTER_ADMIN_BUSY);
	assert_int_equal(command(guest, vp_command(2)).status, MUSTER_ADMIN_BUSY);
	assert_int_equal(command(guest, id_command(MUSTER_ADMIN_CQ_DESTROY, 2)).status,
			 MUSTER_ADMIN_BUSY);
	assert_int_equal(command(guest, id_command(MUSTER_ADMIN_VP_DESTROY, 2)).status,
			 MUSTER_ADMIN_OK);
	assert_int_equal(command(guest, id_command(MUSTER_ADMIN_CQ_DESTROY, 2)).status,
			 MUSTER_ADMIN_OK);
	assert_int_equal(command(guest, vp_command(2)).status, MUSTER_ADMIN_NO_OBJECT);
}

static void a_region_must_fit_its_pages(void **state)
{
	struct guest *guest = *state;
	struct muster_admin_command cmd = mr_command(guest, 1, 0x7000100, 8192, MUSTER_MR_READ);

	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_OK);
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_BUSY);
	cmd.mr.id = htole32(2);
	cmd.mr.nr_pages = htole32(2);
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_BAD_PARAMETER);
	cmd.mr.nr_pages = htole32(4);
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_BAD_PARAMETER);
	cmd.mr.nr_pages = htole32(3);
	cmd.mr.length = htole64(UINT64_MAX - 100);
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_BAD_PARAMETER);
	cmd = mr_command(guest, 2, 0x7000000, 4096, MUSTER_MR_READ);
	guest->memory[LIST] = 1;
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_BAD_PARAMETER);
	cmd.mr.pages = htole64(MEMORY);
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_DMA);
	assert_int_equal(command(guest, id_command(MUSTER_ADMIN_MR_DEREGISTER, 1)).status,
			 MUSTER_ADMIN_OK);
	assert_int_equal(command(guest, id_command(MUSTER_ADMIN_MR_DEREGISTER, 1)).status,
			 MUSTER_ADMIN_NO_OBJECT);
}

/* 600 pages: all but the last are the first of the region's; the list is in two parts. */
static void a_list_may_be_in_parts(void **state)
{
	enum { PAGES = MUSTER_MR_PART_PAGES + 88, PART = 4096, LAST = PART + 8 * 87 };
	struct guest *guest = *state;
	struct muster_admin_command cmd = mr_command(guest, 1, 0x7000000, 4096, MUSTER_MR_READ);
	const uint64_t parts[2] = { htole64(CROWD + PART), htole64(CROWD) };
	uint8_t *list = guest->memory + CROWD;

	for (uint32_t i = 0; i < 2 * PART; i += 8)
		memcpy(list + i, guest->memory + LIST, 8);
	memcpy(guest->memory + LIST, parts, sizeof(parts));
	cmd.mr.in_parts = 2;
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_BAD_PARAMETER);
	cmd.mr.in_parts = 1;
	cmd.mr.nr_pages = htole32(PAGES);
	cmd.mr.length = htole64(PAGES * 4096ull);
	list[LAST - PART] = 1;			/* the last that is read, */
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_BAD_PARAMETER);
	list[LAST - PART] = 0;
	list[LAST - PART + 8] = 1;		/* and the first that is not */
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_OK);
	cmd.mr.id = htole32(2);
	memset(guest->memory + LIST + 8, 0xff, 8);
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_DMA);
}

static void page_lists_have_a_limit_in_all(void **state)
{
	struct guest *guest = *state;
	struct muster_admin_command cmd = mr_command(guest, 1, 0, 4096, MUSTER_MR_READ);
	uint32_t pages = MEMORY / 8 - LIST / 8, id;
	uint8_t status = MUSTER_ADMIN_OK;

	memset(guest->memory + LIST, 0, MEMORY - LIST);
	cmd.mr.nr_pages = htole32(pages);
	cmd.mr.length = htole64(pages * 4096ull);
	for (id = 1; status == MUSTER_ADMIN_OK && id < 100; id++) {
		cmd.mr.id = htole32(id);
		status = command(guest, cmd).status;
	}
	assert_int_equal(status, MUSTER_ADMIN_NO_ROOM);
	assert_int_equal(id - 2, MUSTER_NIC_PAGES_MAX / pages);
}

static void contexts_open_close_and_count(void **state)
{
	struct guest *guest = *state;
	struct muster_admin_command cmd = context_command(MUSTER_ADMIN_CONTEXT_CLOSE, 1);
	struct muster_admin_command counters = {
		.opcode = MUSTER_ADMIN_COUNTERS,
		.counters = { .base = htole64(LIST), .bytes = htole32(1000) },
	};
	struct muster_device_counters *c = (void *)(guest->memory + LIST);

	pair_open(guest);
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_OK);
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_NO_OBJECT);
	assert_int_equal(command(guest, counters).status, MUSTER_ADMIN_OK);
	assert_int_equal(le64toh(c->admin_commands), guest->admin_tail - 1);
	assert_int_equal(le64toh(c->interrupts), guest->interrupts[0] - 1);
	assert_true(le64toh(c->dma_read_bytes) >= guest->admin_tail * 64);
}

static struct muster_engine_counters engine_counters(const struct guest *guest)
{
	struct muster_engine_counters counters;

	nic_engines_count(guest->nic, &counters);
	return counters;
}

/* All members that there can be, at so many absent nodes; VP 2 is the last of them. */
static struct muster_admin_command crowd_at(struct guest *guest, uint32_t node, uint32_t nodes)
{
	struct muster_admin_command cmd = context_command(MUSTER_ADMIN_CONTEXT_OPEN, 2);

	for (uint32_t i = 0; i < MUSTER_MEMBERS_MAX; i++) {
		bool self = i == MUSTER_MEMBERS_MAX - 1;
		struct muster_admin_member member = {
			.node = htole32(self ? 0 : node + i % nodes),
			.vp = htole16(self ? 2 : i / nodes),
			.incarnation = htole32(self ? reg_read(guest, MUSTER_REG_INCARNATION) : 1),
		};

		memcpy(guest->memory + CROWD + i * sizeof(member), &member, sizeof(member));
	}
	cmd.context.members = htole64(CROWD);
	cmd.context.nr_members = htole32(MUSTER_MEMBERS_MAX);
	cmd.context.self = htole32(MUSTER_MEMBERS_MAX - 1);
	return cmd;
}

/* At nodes that the wire does not know. */
static struct muster_admin_command crowd_command(struct guest *guest)
{
	return crowd_at(guest, NODES_KNOWN + 1000, 32);
}

static void others_are_served_while_a_crowd_is_let_in(void **state)
{
	struct guest *guest = *state;
	struct muster_admin_reply reply;

	pair_open(guest);
	port_open(guest, 2);
	command_give(guest, crowd_command(guest));
	for (uint32_t i = 0; i < 100; i++) {
		post(guest, 0, i, message(0, 0, 1, "by the way"));
		doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, i + 1);
		doorbell(guest, 0, MUSTER_DOORBELL_CQ_HEAD, i);
		doorbell(guest, 1, MUSTER_DOORBELL_RQ_HEAD, i);
		muster_nic_step(guest->nic);
		muster_nic_step(guest->nic);
		assert_int_equal(le32toh(slot(guest, 1, i)->valid), !(i / RQ & 1));
		assert_int_equal(le32toh(cqe(guest, 0, i)->valid), !(i / CQ & 1));
		assert_false(command_answered(guest, &reply));
	}
	settle(guest);
	assert_true(command_answered(guest, &reply));
	assert_int_equal(reply.status, MUSTER_ADMIN_OK);
	/* It is there, and knows whom it cannot reach; the other context does not care. */
	assert_int_equal(le32toh(cqe(guest, 2, 0)->valid), 1);
	assert_int_equal(cqe(guest, 2, 0)->kind, MUSTER_CQE_CONTEXT);
	assert_int_equal(cqe(guest, 2, 0)->status, MUSTER_STATUS_PEER_LOST);
	assert_int_equal(le32toh(cqe(guest, 2, 0)->culprit), 0);
	assert_int_equal(engine_counters(guest).looked_at, 0);
	assert_int_equal(command(guest, context_command(MUSTER_ADMIN_CONTEXT_CLOSE, 2)).status,
			 MUSTER_ADMIN_OK);
	assert_int_equal(command(guest, context_command(MUSTER_ADMIN_CONTEXT_CLOSE, 0)).status,
			 MUSTER_ADMIN_OK);
}

/* Closed at once, they wait to be told until their nodes are given up, many at a time. */
static void others_are_served_while_the_nodes_of_crowds_are_given_up(void **state)
{
	/* In a step 64 nodes are given up, and as many are heard to be gone: both after a pause. */
	enum { CROWDS = 3, NODES = 300, LOOKS_A_STEP = 2 * 64 * (2 + 2 * CROWDS) };
	struct guest *guest = *state;
	struct muster_admin_command open, close = context_command(MUSTER_ADMIN_CONTEXT_CLOSE, 2);
	struct muster_admin_reply reply;
	uint64_t looked_at = 0, now;

	pair_open(guest);
	port_open(guest, 2);
	open = crowd_at(guest, 1000, NODES);
	for (uint32_t i = 0; i < CROWDS; i++) {
		open.context.context = close.context.context = htole32(i);
		command_give(guest, open);
		command_give(guest, close);
	}
	do {
		muster_nic_step(guest->nic);
		now = engine_counters(guest).looked_at;
		assert_in_range(now - looked_at, 0, LOOKS_A_STEP);
		looked_at = now;
	} while (!command_answered(guest, &reply) || engine_counters(guest).contexts_closing);
	assert_int_equal(reply.status, MUSTER_ADMIN_OK);
	assert_true(looked_at > 0);
}

static void others_are_served_while_a_long_page_list_is_read(void **state)
{
	enum { PAGES = 1 << 17 };
	struct guest *guest = *state;
	struct muster_admin_command cmd = mr_command(guest, 1, 0, 4096, MUSTER_MR_READ);
	struct muster_admin_reply reply;

	pair_open(guest);
	for (uint32_t bad = 0; bad < 2; bad++) {
		cmd.mr.pages = htole64(CROWD);
		cmd.mr.nr_pages = htole32(PAGES);
		cmd.mr.length = htole64((uint64_t)PAGES << 12);
		memset(guest->memory + CROWD, 0, 8 * PAGES);
		guest->memory[CROWD + 8 * PAGES - 8] = bad;
		command_give(guest, cmd);
		for (uint32_t i = 5 * bad; i < 5 * bad + 5; i++) {
			post(guest, 0, i, message(0, 0, 1, "by the way"));
			doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, i + 1);
			doorbell(guest, 0, MUSTER_DOORBELL_CQ_HEAD, i);
			doorbell(guest, 1, MUSTER_DOORBELL_RQ_HEAD, i);
			muster_nic_step(guest->nic);
			muster_nic_step(guest->nic);
			assert_int_equal(le32toh(slot(guest, 1, i)->valid), !(i / RQ & 1));
			assert_false(command_answered(guest, &reply));
		}
		settle(guest);
		assert_true(command_answered(guest, &reply));
		assert_int_equal(reply.status, bad ? MUSTER_ADMIN_BAD_PARAMETER : MUSTER_ADMIN_OK);
		cmd.mr.id = htole32(2);
	}
	assert_int_equal(command(guest, id_command(MUSTER_ADMIN_MR_DEREGISTER, 2)).status,
			 MUSTER_ADMIN_NO_OBJECT);
	/* And forgotten with this life, half read. */
	command_give(guest, cmd);
	muster_nic_step(guest->nic);
	reg_write(guest, MUSTER_REG_CONTROL, MUSTER_CONTROL_RESET);
}

/* After so many steps: while members are read, or while they are added. */
static void a_crowd_is_forgotten_with_the_life_that_it_came_to(void **state)
{
	struct guest *guest = *state;

	for (uint32_t steps = 1; steps < 500; steps += 60) {
		port_open(guest, 2);
		command_give(guest, crowd_command(guest));
		for (uint32_t i = 0; i < steps; i++)
			muster_nic_step(guest->nic);
		reg_write(guest, MUSTER_REG_CONTROL, steps & 4 ? MUSTER_CONTROL_RESET : 0);
		memset(guest->memory + REPLY, 0, ENTRIES * sizeof(struct muster_admin_reply));
		enable(guest);
		settle(guest);
		assert_int_equal(guest->memory[REPLY], 0);
	}
	pair_open(guest);
}

static void a_crowd_with_a_wrong_member_is_turned_away(void **state)
{
	static const uint32_t places[] = { 1, 100, 30000, MUSTER_MEMBERS_MAX - 2 };
	struct guest *guest = *state;
	struct muster_admin_command cmd;

	port_open(guest, 2);
	for (uint32_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct muster_admin_member *members = (void *)(guest->memory + CROWD);

		cmd = crowd_command(guest);
		members[places[i]] = members[0];
		assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_BAD_PARAMETER);
		cmd = crowd_command(guest);
		members[places[i]].reserved = 1;
		assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_BAD_PARAMETER);
	}
	cmd.context.members = htole64(MEMORY - 0x10000);	/* ends in the middle */
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_DMA);
	assert_int_equal(command(guest, context_command(MUSTER_ADMIN_CONTEXT_CLOSE, 2)).status,
			 MUSTER_ADMIN_NO_OBJECT);
	assert_int_equal(command(guest, crowd_command(guest)).status, MUSTER_ADMIN_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_GUEST(registers_say_what_the_device_is),
		WITH_GUEST(odd_accesses_read_zero_and_do_nothing),
		WITH_GUEST(queue_registers_hold_still_while_enabled),
		WITH_GUEST(a_reset_brings_a_new_life),
		WITH_GUEST(nothing_comes_of_what_is_written_to_a_closed_nic),
		WITH_GUEST(queues_that_make_no_sense_are_fatal_until_reset),
		WITH_GUEST(an_admin_tail_beyond_the_ring_is_fatal),
		WITH_GUEST(without_bus_mastering_there_is_no_dma),
		WITH_GUEST(commands_are_answered_in_every_lap),
		WITH_GUEST(a_wrong_field_is_named_and_changes_nothing),
		WITH_GUEST(ids_are_used_once_and_used_objects_stay),
		WITH_GUEST(a_region_must_fit_its_pages),
		WITH_GUEST(a_list_may_be_in_parts),
		WITH_GUEST(page_lists_have_a_limit_in_all),
		WITH_GUEST(contexts_open_close_and_count),
		WITH_GUEST(others_are_served_while_a_crowd_is_let_in),
		WITH_GUEST(others_are_served_while_the_nodes_of_crowds_are_given_up),
		WITH_GUEST(a_crowd_is_forgotten_with_the_life_that_it_came_to),
		WITH_GUEST(others_are_served_while_a_long_page_list_is_read),
		WITH_GUEST(a_crowd_with_a_wrong_member_is_turned_away),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
