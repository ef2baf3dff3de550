// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The NIC behind its registers, driven as a driver would drive it, against
 * guest memory that is an array: everything from the first register to a
 * collective between two NICs, and a guest that writes garbage everywhere.
 * MUSTER_NIC_SEED=n MUSTER_NIC_WRITES=n repeat a garbage run.
 */
#include "nic.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum {
	MEMORY = 4 << 20,
	ENTRIES = 16,		/* of the admin ring */
	EVENTS = 32,
	DQ = 8,			/* of every VP */
	RQ = 4,
	CQ = 4,
	/* where things lie in guest memory */
	ADMIN = 0x1000,
	REPLY = 0x2000,
	EVENT = 0x3000,
	LIST = 0x4000,		/* members, pages, counters: arguments of one command */
	PORTS = 0x10000,	/* per VP */
	PORT_BYTES = 0x10000,
	PORT_DQ = 0x0,
	PORT_STATUS = 0x1000,
	PORT_CQ = 0x2000,
	PORT_RQ = 0x4000,
	DATA = 0x100000,
	CROWD = 0x200000,	/* members of a context with all that there can be */
	PD = 7,
	JOB = 5,
	CONTEXT = 3,
	KEY = 0x1234567,
};

struct guest {
	struct muster_nic *nic;
	uint8_t *memory;
	bool bus_master;
	uint32_t interrupts[MUSTER_MSIX_VECTORS];
	uint32_t kicks;
	uint32_t admin_tail;
	uint64_t writes;	/* by the device */
};

static char wire_dir[64], wire_spec[96];

/* ---- a machine around the NIC ---------------------------------------------- */

static bool dma_allowed(const struct guest *guest, uint64_t addr, uint32_t len)
{
	return guest->bus_master && addr <= MEMORY && MEMORY - addr >= len;
}

static int dma_read(void *world, uint64_t addr, void *buf, uint32_t len)
{
	struct guest *guest = world;

	if (!dma_allowed(guest, addr, len))
		return -EIO;
	memcpy(buf, guest->memory + addr, len);
	return 0;
}

static int dma_write(void *world, uint64_t addr, const void *buf, uint32_t len)
{
	struct guest *guest = world;

	if (!dma_allowed(guest, addr, len))
		return -EIO;
	memcpy(guest->memory + addr, buf, len);
	guest->writes++;
	return 0;
}

static void interrupt(void *world, uint32_t vector)
{
	assert_true(vector < MUSTER_MSIX_VECTORS);
	((struct guest *)world)->interrupts[vector]++;
}

static uint64_t now_us(void *world)
{
	struct timespec ts;

	(void)world;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000ull + ts.tv_nsec / 1000;
}

static void kick(void *world)
{
	((struct guest *)world)->kicks++;
}

static const struct muster_nic_world world = {
	.dma_read = dma_read, .dma_write = dma_write, .interrupt = interrupt,
	.now_us = now_us, .kick = kick,
};

static uint32_t reg_read(struct guest *guest, uint32_t reg)
{
	return muster_nic_reg_read(guest->nic, reg, 4);
}

static void reg_write(struct guest *guest, uint32_t reg, uint32_t value)
{
	muster_nic_reg_write(guest->nic, reg, value, 4);
}

static void doorbell(struct guest *guest, uint32_t vp, uint32_t which, uint32_t value)
{
	muster_nic_doorbell(guest->nic, vp * MUSTER_DOORBELL_STRIDE + which, value, 4);
}

/* Until there is nothing left to do at once. */
static void settle(struct guest *guest)
{
	for (int i = 0; i < 1000 && muster_nic_step(guest->nic) == 0; i++)
		;
}

static void enable(struct guest *guest)
{
	reg_write(guest, MUSTER_REG_ADMIN_BASE_LO, ADMIN);
	reg_write(guest, MUSTER_REG_ADMIN_REPLY_LO, REPLY);
	reg_write(guest, MUSTER_REG_ADMIN_ENTRIES, ENTRIES);
	reg_write(guest, MUSTER_REG_EVENT_BASE_LO, EVENT);
	reg_write(guest, MUSTER_REG_EVENT_ENTRIES, EVENTS);
	reg_write(guest, MUSTER_REG_CONTROL, MUSTER_CONTROL_ENABLE);
	guest->admin_tail = 0;
}

static struct guest *guest_new(uint32_t node)
{
	struct muster_nic_config config = { .node = node, .incarnation = 100, .wire = wire_spec,
					    .deadline_us = 2000000 };
	struct guest *guest = calloc(1, sizeof(*guest));
	char why[256] = "";

	assert_non_null(guest);
	guest->memory = calloc(1, MEMORY);
	guest->bus_master = true;
	if (muster_nic_create(&config, &world, guest, &guest->nic, why, sizeof(why)))
		fail_msg("%s", why);
	enable(guest);
	return guest;
}

static void guest_free(struct guest *guest)
{
	muster_nic_destroy(guest->nic);
	free(guest->memory);
	free(guest);
}

static int group_setup(void **state)
{
	(void)state;
	strcpy(wire_dir, "/tmp/muster-nic-XXXXXX");
	if (!mkdtemp(wire_dir))
		return -1;
	snprintf(wire_spec, sizeof(wire_spec), "unix:%s", wire_dir);
	return 0;
}

static int group_teardown(void **state)
{
	(void)state;
	return rmdir(wire_dir);
}

static int one_guest(void **state)
{
	*state = guest_new(0);
	return 0;
}

static int no_guest(void **state)
{
	guest_free(*state);
	return 0;
}

/* ---- a driver -------------------------------------------------------------- */

static void command_give(struct guest *guest, struct muster_admin_command cmd)
{
	cmd.tag = htole16(guest->admin_tail + 40);
	memcpy(guest->memory + ADMIN + guest->admin_tail % ENTRIES * sizeof(cmd), &cmd,
	       sizeof(cmd));
	reg_write(guest, MUSTER_REG_ADMIN_TAIL, ++guest->admin_tail);
}

/* The answer to the last command, once it is there. */
static bool command_answered(struct guest *guest, struct muster_admin_reply *reply)
{
	uint32_t last = guest->admin_tail - 1;

	memcpy(reply, guest->memory + REPLY + last % ENTRIES * sizeof(*reply), sizeof(*reply));
	return le32toh(reply->valid) == !(last / ENTRIES & 1);
}

static struct muster_admin_reply command(struct guest *guest, struct muster_admin_command cmd)
{
	struct muster_admin_reply reply;

	command_give(guest, cmd);
	settle(guest);
	assert_true(command_answered(guest, &reply));
	assert_int_equal(le16toh(reply.tag), guest->admin_tail - 1 + 40);
	assert_int_equal(reply.opcode, cmd.opcode);
	return reply;
}

static uint32_t port(uint32_t vp, uint32_t part)
{
	return PORTS + vp * PORT_BYTES + part;
}

static struct muster_admin_command cq_command(uint32_t id)
{
	return (struct muster_admin_command){
		.opcode = MUSTER_ADMIN_CQ_CREATE,
		.cq = { .base = htole64(port(id, PORT_CQ)), .id = htole32(id),
			.entries = htole32(CQ), .vector = htole32(1 + id % 3) },
	};
}

static struct muster_admin_command vp_command(uint32_t id)
{
	return (struct muster_admin_command){
		.opcode = MUSTER_ADMIN_VP_CREATE,
		.vp = { .dq_base = htole64(port(id, PORT_DQ)), .rq_base = htole64(port(id, PORT_RQ)),
			.status_base = htole64(port(id, PORT_STATUS)), .dq_entries = htole32(DQ),
			.rq_entries = htole32(RQ), .id = htole32(id), .cq = htole32(id),
			.pd = htole32(PD) },
	};
}

static void port_open(struct guest *guest, uint32_t vp)
{
	assert_int_equal(command(guest, cq_command(vp)).status, MUSTER_ADMIN_OK);
	assert_int_equal(command(guest, vp_command(vp)).status, MUSTER_ADMIN_OK);
}

/* length bytes at iova, in 4 KiB pages of which the order is turned round. */
static struct muster_admin_command mr_command(struct guest *guest, uint32_t id, uint64_t iova,
					      uint32_t length, uint8_t access)
{
	uint32_t nr = (iova % 4096 + length + 4095) / 4096;

	for (uint32_t i = 0; i < nr; i++) {
		uint64_t page = htole64(DATA + id * 0x10000 + (nr - 1 - i) * 4096);

		memcpy(guest->memory + LIST + 8 * i, &page, 8);
	}
	return (struct muster_admin_command){
		.opcode = MUSTER_ADMIN_MR_REGISTER,
		.mr = { .iova = htole64(iova), .length = htole64(length), .pages = htole64(LIST),
			.nr_pages = htole32(nr), .first_offset = htole32(iova % 4096),
			.id = htole32(id), .pd = htole32(PD), .page_shift = 12, .access = access },
	};
}

static struct muster_admin_command id_command(uint8_t opcode, uint32_t id)
{
	return (struct muster_admin_command){ .opcode = opcode, .id = { .id = htole32(id) } };
}

static struct muster_admin_command context_command(uint8_t opcode, uint32_t vp)
{
	return (struct muster_admin_command){
		.opcode = opcode,
		.context = { .vp = htole32(vp), .context = htole16(CONTEXT), .job = JOB },
	};
}

struct place {
	struct guest *guest;
	uint32_t node, vp;
};

static void context_open(const struct place *places, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		struct muster_admin_command cmd =
			context_command(MUSTER_ADMIN_CONTEXT_OPEN, places[i].vp);

		cmd.context.job_key = htole64(KEY);
		cmd.context.members = htole64(LIST);
		cmd.context.nr_members = htole32(nr);
		cmd.context.self = htole32(i);
		for (uint32_t j = 0; j < nr; j++) {
			struct muster_admin_member member = {
				.node = htole32(places[j].node), .vp = htole16(places[j].vp),
				.incarnation = htole32(reg_read(places[j].guest,
								MUSTER_REG_INCARNATION)),
			};

			memcpy(places[i].guest->memory + LIST + j * sizeof(member), &member,
			       sizeof(member));
		}
		assert_int_equal(command(places[i].guest, cmd).status, MUSTER_ADMIN_OK);
	}
}

/* Two ports of one NIC that can talk. */
static void pair_open(struct guest *guest)
{
	const struct place places[] = { { guest, 0, 0 }, { guest, 0, 1 } };

	port_open(guest, 0);
	port_open(guest, 1);
	context_open(places, 2);
}

static struct muster_desc message(uint32_t node, uint16_t from, uint16_t to, const char *text)
{
	struct muster_desc desc = {
		.kind = MUSTER_DESC_MP, .flags = htole16(MUSTER_DESC_COLL_END),
		.dest = htole32(node), .src_vp = htole16(from), .dst_vp = htole16(to), .job = JOB,
		.context = htole16(CONTEXT), .cookie = htole64(0xc00c1e),
		.inline_len = strlen(text), .length = htole64(strlen(text)),
	};

	memcpy(desc.data, text, strlen(text));
	return desc;
}

static void post(struct guest *guest, uint32_t vp, uint32_t at, struct muster_desc desc)
{
	memcpy(guest->memory + port(vp, PORT_DQ) + at % DQ * sizeof(desc), &desc, sizeof(desc));
}

static const struct muster_cqe *cqe(struct guest *guest, uint32_t vp, uint32_t at)
{
	return (void *)(guest->memory + port(vp, PORT_CQ) + at % CQ * sizeof(struct muster_cqe));
}

static const struct muster_recv_slot *slot(struct guest *guest, uint32_t vp, uint32_t at)
{
	return (void *)(guest->memory + port(vp, PORT_RQ) +
			at % RQ * sizeof(struct muster_recv_slot));
}

static const struct muster_event *event(struct guest *guest, uint32_t at)
{
	return (void *)(guest->memory + EVENT + at % EVENTS * sizeof(struct muster_event));
}

/* ---- registers and life ---------------------------------------------------- */

static void registers_say_what_the_device_is(void **state)
{
	struct guest *guest = *state;

	assert_int_equal(reg_read(guest, MUSTER_REG_MAGIC), MUSTER_REG_MAGIC_VALUE);
	assert_int_equal(reg_read(guest, MUSTER_REG_VERSION), MUSTER_DEVICE_VERSION);
	assert_int_equal(reg_read(guest, MUSTER_REG_NODE), 0);
	assert_int_equal(reg_read(guest, MUSTER_REG_INCARNATION), 100);
	assert_int_equal(reg_read(guest, MUSTER_REG_CAPABILITIES), MUSTER_CAP_KEEP);
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

/* All there can be, at nodes that the wire does not know; VP 2 is the last of them. */
static struct muster_admin_command crowd_command(struct guest *guest)
{
	struct muster_admin_command cmd = context_command(MUSTER_ADMIN_CONTEXT_OPEN, 2);

	for (uint32_t i = 0; i < MUSTER_MEMBERS_MAX; i++) {
		bool self = i == MUSTER_MEMBERS_MAX - 1;
		struct muster_admin_member member = {
			.node = htole32(self ? 0 : 5000 + i / MUSTER_VPS_MAX),
			.vp = htole16(self ? 2 : i % MUSTER_VPS_MAX),
			.incarnation = htole32(self ? reg_read(guest, MUSTER_REG_INCARNATION) : 1),
		};

		memcpy(guest->memory + CROWD + i * sizeof(member), &member, sizeof(member));
	}
	cmd.context.members = htole64(CROWD);
	cmd.context.nr_members = htole32(MUSTER_MEMBERS_MAX);
	cmd.context.self = htole32(MUSTER_MEMBERS_MAX - 1);
	return cmd;
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
	assert_int_equal(command(guest, context_command(MUSTER_ADMIN_CONTEXT_CLOSE, 2)).status,
			 MUSTER_ADMIN_OK);
	assert_int_equal(command(guest, context_command(MUSTER_ADMIN_CONTEXT_CLOSE, 0)).status,
			 MUSTER_ADMIN_OK);
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

static void an_armed_queue_interrupts_once(void **state)
{
	struct guest *guest = *state;

	pair_open(guest);
	post(guest, 0, 0, message(0, 0, 1, "x"));
	post(guest, 0, 1, message(0, 0, 1, "y"));
	doorbell(guest, 0, MUSTER_DOORBELL_CQ_ARM, 0);
	doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, 2);
	settle(guest);
	assert_int_equal(guest->interrupts[1], 1);
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
	doorbell(guest, 1, MUSTER_DOORBELL_CQ_ARM, 0);
	settle(guest);
	assert_int_equal(guest->interrupts[2], 1);
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

/* Recursive doubling on two ranks: send own, wait for the other's, store the sum. */
static void post_allreduce(struct guest *guest, uint32_t other, double value)
{
	struct muster_desc first = message(other, 0, 0, ""), last;

	first.flags = htole16(MUSTER_DESC_C | MUSTER_DESC_CH | MUSTER_DESC_CP);
	first.signature.type = MUSTER_DTYPE_F64;
	first.signature.op = MUSTER_REDOP_SUM;
	first.signature.digest = htole64(0x77);
	first.inline_len = 8;
	first.length = htole64(8);
	memcpy(first.data, &value, 8);
	last = first;
	last.flags = htole16(MUSTER_DESC_C | MUSTER_DESC_CT | MUSTER_DESC_SWAP_LOCAL_DATA |
			     MUSTER_DESC_REDUCE | MUSTER_DESC_COLL_END);
	last.cp_count = 1;
	last.inline_len = 0;
	memset(last.data, 0, sizeof(last.data));
	last.store_addr = htole64(0x7000000);
	last.store_key = htole32(1);
	post(guest, 0, 0, first);
	post(guest, 0, 1, last);
	doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, 2);
}

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

/* ---- garbage --------------------------------------------------------------- */

static uint64_t random_state;

/* xorshift64: any seed but 0. */
static uint32_t random32(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state >> 32;
}

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

/* A command or a descriptor that is right, or right but for a bit. */
static void garbage_almost_right(struct guest *guest)
{
	struct muster_admin_command cmd = { .opcode = 0 };
	uint32_t id = random32() % 4;

	switch (random32() % 16) {
	case 0:
		cmd = cq_command(id);
		break;
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
		cmd = id_command(random32() % 16, id);
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
	enable(guest);
	for (uint32_t vp = 0; vp < 4; vp++)
		port_open(guest, vp);
	command(guest, mr_command(guest, 1, 0x7000000, 8192, MUSTER_MR_READ));
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

	random_state = seed ? strtoull(seed, NULL, 0) : now_us(NULL) | 1;
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

#define WITH_GUEST(test) cmocka_unit_test_setup_teardown(test, one_guest, no_guest)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_GUEST(registers_say_what_the_device_is),
		WITH_GUEST(odd_accesses_read_zero_and_do_nothing),
		WITH_GUEST(queue_registers_hold_still_while_enabled),
		WITH_GUEST(a_reset_brings_a_new_life),
		WITH_GUEST(queues_that_make_no_sense_are_fatal_until_reset),
		WITH_GUEST(an_admin_tail_beyond_the_ring_is_fatal),
		WITH_GUEST(without_bus_mastering_there_is_no_dma),
		WITH_GUEST(commands_are_answered_in_every_lap),
		WITH_GUEST(a_wrong_field_is_named_and_changes_nothing),
		WITH_GUEST(ids_are_used_once_and_used_objects_stay),
		WITH_GUEST(a_region_must_fit_its_pages),
		WITH_GUEST(page_lists_have_a_limit_in_all),
		WITH_GUEST(contexts_open_close_and_count),
		WITH_GUEST(others_are_served_while_a_crowd_is_let_in),
		WITH_GUEST(a_crowd_is_forgotten_with_the_life_that_it_came_to),
		WITH_GUEST(others_are_served_while_a_long_page_list_is_read),
		WITH_GUEST(a_crowd_with_a_wrong_member_is_turned_away),
		WITH_GUEST(a_message_lands_in_the_receive_ring_and_completes),
		WITH_GUEST(full_rings_wait_for_their_reader),
		WITH_GUEST(a_full_completion_queue_is_told_once_until_it_moves),
		WITH_GUEST(an_event_waits_for_room_in_its_ring),
		WITH_GUEST(arming_with_an_impossible_head_is_no_interrupt),
		WITH_GUEST(a_full_receive_ring_drops_and_counts),
		WITH_GUEST(an_armed_queue_interrupts_once),
		WITH_GUEST(a_refused_descriptor_completes_with_its_place),
		WITH_GUEST(a_sequence_waits_for_its_end_and_must_have_one),
		WITH_GUEST(a_doorbell_beyond_the_ring_stops_its_port_only),
		WITH_GUEST(a_region_is_read_page_by_page),
		WITH_GUEST(memory_that_was_not_given_is_refused),
		cmocka_unit_test(two_nics_sum_a_number),
		cmocka_unit_test(who_names_a_wrong_life_of_a_node_fails_alone),
		WITH_GUEST(no_garbage_breaks_it_and_a_reset_brings_it_back),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
