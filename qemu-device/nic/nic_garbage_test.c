// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A guest that writes garbage everywhere, into registers, doorbells, rings and
 * memory: nothing breaks, and after a reset the NIC is as good as new.
 * MUSTER_NIC_SEED=n MUSTER_NIC_WRITES=n repeat a run.
 */
#include "test_qp.h"
#include "test_random.h"

/* Numbers that mean something more often than chance would have it. */
static uint64_t random_value(void)
{
	switch (random32() % 4) {
	case 0:
		return random32() % 20;
	case 1:
		return (uint64_t)(random32() % (MEMORY / 64)) * 64;
	case 2:
		return 1u << random32() % 32;
	default:
		return (uint64_t)random32() << 32 | random32();
	}
}

static void garbage_in_memory(struct guest *guest)
{
	uint32_t at = random32() % 2 ? random32() % (MEMORY - 64) : ADMIN + random32() % 0x3000;
	uint64_t value = random_value();

	if (random32() % 4 == 0)
		at &= ~63u;
	memcpy(guest->memory + at, &value, random32() % 2 ? 1 : 8);
}

/* A context of all four ports, as it should be. */
static struct muster_admin_command garbage_context(struct guest *guest, uint32_t vp)
{
	struct muster_admin_command cmd = context_command(MUSTER_ADMIN_CONTEXT_OPEN, vp);

	cmd.context.job_key = htole64(KEY);
	cmd.context.members = htole64(LIST);
	cmd.context.nr_members = htole32(4);
	cmd.context.self = htole32(vp);
	for (uint32_t i = 0; i < 4; i++) {
		struct muster_admin_member member = {
			.vp = htole16(i),
			.incarnation = htole32(reg_read(guest, MUSTER_REG_INCARNATION)),
		};

		memcpy(guest->memory + LIST + i * sizeof(member), &member, sizeof(member));
	}
	return cmd;
}

static void flip(void *data, size_t len)
{
	if (random32() % 8 == 0)
		((uint8_t *)data)[random32() % len] ^= 1 << random32() % 8;
}

/* Two descriptors: to the next port, and from the one before; small or in pulses. */
static void garbage_sequence(struct guest *guest, uint32_t vp)
{
	struct muster_desc first = message(0, vp, (vp + 1) % 4, ""), last;
	uint32_t at = le32toh(*(uint32_t *)(guest->memory + port(vp, PORT_STATUS)));
	bool large = random32() % 2;

	first.flags = htole16(MUSTER_DESC_C | MUSTER_DESC_CH | MUSTER_DESC_CP);
	first.signature.type = MUSTER_DTYPE_I32;
	first.signature.op = MUSTER_REDOP_SUM;
	first.kind = large ? MUSTER_DESC_RDMA : MUSTER_DESC_MP;
	first.inline_len = large ? 0 : 8;
	first.length = htole64(large ? 8192 : 8);
	if (large) {
		first.range.load_key = htole32(1);
		first.range.load_addr = htole64(0x7000000);
		first.range.pulse_len = htole32(1024 << random32() % 4);
		first.range.pulse_count = htole32(8192 / le32toh(first.range.pulse_len));
	}
	last = first;
	last.flags = htole16(MUSTER_DESC_C | MUSTER_DESC_CT | MUSTER_DESC_REDUCE |
			     MUSTER_DESC_COLL_END | (large ? 0 : MUSTER_DESC_SWAP_LOCAL_DATA));
	last.cp_count = 1;
	last.inline_len = 0;
	if (!large)
		memset(last.data, 0, sizeof(last.data));
	last.store_key = htole32(2);
	last.store_addr = htole64(0x7000000);
	flip(&first, sizeof(first));
	flip(&last, sizeof(last));
	post(guest, vp, at, first);
	post(guest, vp, at + 1, last);
	doorbell(guest, vp, MUSTER_DOORBELL_DQ_TAIL, at + 2);
	doorbell(guest, vp, MUSTER_DOORBELL_CQ_ARM, at);
}

/* Queue pairs 0 and 3 are for datagrams, 1 and 2 are connected. */
static uint8_t garbage_type(uint32_t i)
{
	return i == 1 || i == 2 ? MUSTER_QP_RC : MUSTER_QP_UD;
}

static struct muster_admin_command garbage_modify(uint32_t i, uint8_t state)
{
	return garbage_type(i) == MUSTER_QP_UD || state == MUSTER_QP_RESET ?
		       qp_modify_command(i, state) : rc_modify_command(i, state, 0, 3 - i);
}

static void garbage_states(struct guest *guest, uint32_t i)
{
	uint32_t state = random32() % 64 ? MUSTER_QP_RTS : MUSTER_QP_ERR;

	memset(qp_part(guest, i, 0), 0, sizeof(struct muster_qp_record));
	for (uint32_t s = MUSTER_QP_RESET; s <= state; s++)
		if (s <= MUSTER_QP_RTS || s == MUSTER_QP_ERR)
			command_give(guest, garbage_modify(i, s));
	muster_nic_step(guest->nic);
}

static struct muster_work garbage_request(uint32_t i)
{
	uint8_t opcode = random32() % (MUSTER_WORK_FETCH_ADD + 1);

	if (garbage_type(i) == MUSTER_QP_UD)
		return datagram_to(0, random32() % 4, 0, 64);
	return rc_work(opcode, 0, opcode < MUSTER_WORK_CMP_SWAP ? random32() % 4096 : 8, 4096);
}

/* With a receive for one, in one of the states that it may have. */
static void garbage_work(struct guest *guest, uint32_t i)
{
	struct muster_receive receive = receive_of(0, 4096);
	struct muster_work work = garbage_request(i);

	if (random32() % 16 == 0) {
		garbage_states(guest, i);
		garbage_states(guest, 3 - i);
	}
	flip(&work, sizeof(work));
	flip(&receive, sizeof(receive));
	qp_receive(guest, i, receive);
	qp_put(guest, i, work);
	((struct muster_cq_record *)qp_part(guest, i, QP_CQ_RECORD))->head = htole32(random32() % 64);
	reg_write(guest, MUSTER_REG_BELLS + MUSTER_BELL_QP, qp_number(i));
	reg_write(guest, MUSTER_REG_BELLS + MUSTER_BELL_CQ, QP_CQ + i);
}

/* A command or a descriptor that is right, or right but for a bit. */
static void garbage_almost_right(struct guest *guest)
{
	struct muster_admin_command cmd = { .opcode = 0 };
	uint32_t id = random32() % 4;

	switch (random32() % 20) {
	case 0:
		cmd = cq_command(id);
		break;
	case 16:
		cmd = random32() % 2 ? qp_cq_command(id) : qp_command(id, garbage_type(id));
		break;
	case 17:
		cmd = garbage_modify(id, random32() % 7);
		break;
	case 18 ... 19:
		garbage_work(guest, id);
		return;
	case 1:
		cmd = vp_command(id);
		break;
	case 2:
		cmd = mr_command(guest, 1 + id, 0x7000000, 8192, 1 + random32() % 3);
		break;
	case 3:
		cmd = garbage_context(guest, id);
		break;
	case 4:
		cmd = id_command(random32() % 16, random32() % 2 ? id : qp_number(id));
		break;
	case 5 ... 8:
		post(guest, id, random32(), message(0, id, random32() % 4, "garbage"));
		doorbell(guest, id, MUSTER_DOORBELL_DQ_TAIL, random32() % DQ);
		return;
	default:
		garbage_sequence(guest, id);
		return;
	}
	flip(&cmd, sizeof(cmd));
	memcpy(guest->memory + ADMIN + guest->admin_tail % ENTRIES * sizeof(cmd), &cmd, sizeof(cmd));
	reg_write(guest, MUSTER_REG_ADMIN_TAIL, ++guest->admin_tail);
}

/* All four ports open and talking, from which garbage then starts. */
static void garbage_begin(struct guest *guest)
{
	reg_write(guest, MUSTER_REG_CONTROL, MUSTER_CONTROL_RESET);
	memset(guest->memory, 0, PORTS + 4 * PORT_BYTES);
	memset(guest->memory + QPS, 0, 4 * QP_BYTES);
	enable(guest);
	for (uint32_t vp = 0; vp < 4; vp++) {
		port_open(guest, vp);
		if (garbage_type(vp) == MUSTER_QP_UD) {
			ud_open(guest, vp);
			continue;
		}
		qp_create(guest, vp, MUSTER_QP_RC);
		rc_connect(guest, vp, 0, 3 - vp);
	}
	command(guest, mr_command(guest, 1, 0x7000000, 8192, MUSTER_MR_ACCESS));
	command(guest, mr_command(guest, 2, 0x7000000, 8192, MUSTER_MR_READ | MUSTER_MR_WRITE));
	for (uint32_t vp = 0; vp < 4; vp++)
		command(guest, garbage_context(guest, vp));
}

static void garbage(struct guest *guest)
{
	switch (random32() % 64) {
	case 0:
		muster_nic_reg_write(guest->nic, random32() % 16 ? random32() % 0x48 : random_value(),
				     random_value(), 1u << random32() % 4);
		break;
	case 1 ... 3:
		muster_nic_doorbell(guest->nic,
				    (random32() % 8 ? random32() % 4 : random32() % 4096) *
				    MUSTER_DOORBELL_STRIDE + random32() % 5 * 4,
				    random_value(), 4);
		break;
	case 4 ... 9:
		garbage_in_memory(guest);
		break;
	case 10:
		muster_nic_reg_read(guest->nic, random32() % 0x50, 4);
		break;
	default:
		garbage_almost_right(guest);
	}
	/* Mostly alive, or most of it would be ignored. */
	if (random32() % 256 == 0 || reg_read(guest, MUSTER_REG_STATUS) != MUSTER_STATE_ENABLED)
		garbage_begin(guest);
}

static void no_garbage_breaks_it_and_a_reset_brings_it_back(void **state)
{
	const char *seed = getenv("MUSTER_NIC_SEED"), *writes = getenv("MUSTER_NIC_WRITES");
	uint64_t nr = writes ? strtoull(writes, NULL, 0) : 200000;
	struct guest *guest = *state;

	random_state = seed ? strtoull(seed, NULL, 0) : muster_clock_us() | 1;
	print_message("garbage: MUSTER_NIC_SEED=%" PRIu64 " MUSTER_NIC_WRITES=%" PRIu64 "\n",
		      random_state, nr);
	for (uint64_t i = 0; i < nr; i++) {
		garbage(guest);
		if (random32() % 4 == 0)
			muster_nic_step(guest->nic);
	}
	reg_write(guest, MUSTER_REG_CONTROL, MUSTER_CONTROL_RESET);
	memset(guest->memory, 0, MEMORY);
	enable(guest);
	pair_open(guest);
	post(guest, 0, 0, message(0, 0, 1, "well again"));
	doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, 1);
	settle(guest);
	assert_memory_equal(slot(guest, 1, 0)->payload, "well again", 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_GUEST(no_garbage_breaks_it_and_a_reset_brings_it_back),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
