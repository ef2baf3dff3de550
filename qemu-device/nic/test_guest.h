/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For tests of the NIC: a machine around it, of which guest memory is an array, and
 * the small driver that opens ports, contexts and regions through its registers. In
 * guest memory everything has its place from the start, so that a test can find it.
 */
#ifndef MUSTER_NIC_TEST_GUEST_H
#define MUSTER_NIC_TEST_GUEST_H

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "nic.h"

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
	PORT_NOTICE = 0x1800,
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
	uint64_t later_us;	/* its clock is ahead by that */
	uint64_t stands_us;	/* not 0: of that, which then does not go on by itself */
	bool once;		/* what it reads is something else afterwards, */
	bool (*keeps)(uint64_t addr);	/* but for this, if not NULL */
};

/* A table of the nodes that the wire knows, at an address of this process alone. */
enum { NODES_KNOWN = 4096 };
static char wire_table[64], wire_spec[96];
static const char *dump_folder;		/* of the guests that are made from now on */

/* ---- a machine around the NIC ---------------------------------------------- */

static inline bool dma_allowed(const struct guest *guest, uint64_t addr, uint32_t len)
{
	return guest->bus_master && addr <= MEMORY && MEMORY - addr >= len;
}

static inline int dma_read(void *world, uint64_t addr, void *buf, uint32_t len)
{
	struct guest *guest = world;

	if (!dma_allowed(guest, addr, len))
		return -EIO;
	memcpy(buf, guest->memory + addr, len);
	if (guest->once && !(guest->keeps && guest->keeps(addr)))
		memset(guest->memory + addr, 0xee, len);
	return 0;
}

static inline int dma_write(void *world, uint64_t addr, const void *buf, uint32_t len)
{
	struct guest *guest = world;

	if (!dma_allowed(guest, addr, len))
		return -EIO;
	memcpy(guest->memory + addr, buf, len);
	__atomic_fetch_add(&guest->writes, 1, __ATOMIC_RELAXED);
	return 0;
}

static inline void interrupt(void *world, uint32_t vector)
{
	assert_true(vector < MUSTER_MSIX_VECTORS);
	((struct guest *)world)->interrupts[vector]++;
}

static inline uint64_t now_us(void *world)
{
	const struct guest *guest = world;

	return (guest->stands_us ? guest->stands_us : muster_clock_us()) + guest->later_us;
}

static inline void kick(void *world)
{
	((struct guest *)world)->kicks++;
}

static const struct muster_nic_world world = {
	.dma_read = dma_read, .dma_write = dma_write, .interrupt = interrupt,
	.now_us = now_us, .kick = kick,
};

static inline uint32_t reg_read(struct guest *guest, uint32_t reg)
{
	return muster_nic_reg_read(guest->nic, reg, 4);
}

static inline void reg_write(struct guest *guest, uint32_t reg, uint32_t value)
{
	muster_nic_reg_write(guest->nic, reg, value, 4);
}

static inline void doorbell(struct guest *guest, uint32_t vp, uint32_t which, uint32_t value)
{
	muster_nic_doorbell(guest->nic, vp * MUSTER_DOORBELL_STRIDE + which, value, 4);
}

/* Until there is nothing left to do at once. */
static inline void settle(struct guest *guest)
{
	for (int i = 0; i < 1000 && muster_nic_step(guest->nic) == 0; i++)
		;
}

static inline void enable(struct guest *guest)
{
	reg_write(guest, MUSTER_REG_ADMIN_BASE_LO, ADMIN);
	reg_write(guest, MUSTER_REG_ADMIN_REPLY_LO, REPLY);
	reg_write(guest, MUSTER_REG_ADMIN_ENTRIES, ENTRIES);
	reg_write(guest, MUSTER_REG_EVENT_BASE_LO, EVENT);
	reg_write(guest, MUSTER_REG_EVENT_ENTRIES, EVENTS);
	reg_write(guest, MUSTER_REG_CONTROL, MUSTER_CONTROL_ENABLE);
	guest->admin_tail = 0;
}

/* Without a driver yet. */
static inline struct guest *guest_off(const struct muster_nic_config *config,
				      const struct muster_nic_world *around)
{
	struct guest *guest = calloc(1, sizeof(*guest));
	char why[256] = "";

	assert_non_null(guest);
	guest->memory = calloc(1, MEMORY);
	guest->bus_master = true;
	if (muster_nic_create(config, around, guest, &guest->nic, why, sizeof(why)))
		fail_msg("%s", why);
	return guest;
}

static inline struct guest *guest_make(const struct muster_nic_config *config,
				       const struct muster_nic_world *around)
{
	struct guest *guest = guest_off(config, around);

	enable(guest);
	return guest;
}

static inline struct guest *guest_new(uint32_t node)
{
	const struct muster_nic_config config = {
		.node = node, .incarnation = 100, .wire = wire_spec, .deadline_us = 2000000,
		.dump = dump_folder,
	};

	return guest_make(&config, &world);
}

static inline void guest_free(struct guest *guest)
{
	muster_nic_destroy(guest->nic);
	free(guest->memory);
	free(guest);
}

static inline int group_setup(void **state)
{
	uint32_t id = (uint32_t)getpid();
	int fd;

	(void)state;
	strcpy(wire_table, "/tmp/muster-nic-XXXXXX");
	fd = mkstemp(wire_table);
	if (fd < 0)
		return -1;
	dprintf(fd, "0-%u 127.%u.%u.%u:7000\n", NODES_KNOWN - 1, 192 + (id >> 16) % 63,
		id >> 8 & 255, id & 255);
	snprintf(wire_spec, sizeof(wire_spec), "udp:@%s", wire_table);
	return close(fd);
}

static inline int group_teardown(void **state)
{
	(void)state;
	return unlink(wire_table);
}

static inline int one_guest(void **state)
{
	*state = guest_new(0);
	return 0;
}

static inline int no_guest(void **state)
{
	guest_free(*state);
	return 0;
}

/* ---- a driver -------------------------------------------------------------- */

static inline void command_give(struct guest *guest, struct muster_admin_command cmd)
{
	cmd.tag = htole16(guest->admin_tail + 40);
	memcpy(guest->memory + ADMIN + guest->admin_tail % ENTRIES * sizeof(cmd), &cmd,
	       sizeof(cmd));
	reg_write(guest, MUSTER_REG_ADMIN_TAIL, ++guest->admin_tail);
}

/* The answer to the last command, once it is there. */
static inline bool command_answered(struct guest *guest, struct muster_admin_reply *reply)
{
	uint32_t last = guest->admin_tail - 1;

	memcpy(reply, guest->memory + REPLY + last % ENTRIES * sizeof(*reply), sizeof(*reply));
	return le32toh(reply->valid) == !(last / ENTRIES & 1);
}

static inline struct muster_admin_reply command(struct guest *guest,
						struct muster_admin_command cmd)
{
	struct muster_admin_reply reply;

	command_give(guest, cmd);
	settle(guest);
	assert_true(command_answered(guest, &reply));
	assert_int_equal(le16toh(reply.tag), guest->admin_tail - 1 + 40);
	assert_int_equal(reply.opcode, cmd.opcode);
	return reply;
}

static inline uint32_t port(uint32_t vp, uint32_t part)
{
	return PORTS + vp * PORT_BYTES + part;
}

static inline struct muster_admin_command cq_command(uint32_t id)
{
	return (struct muster_admin_command){
		.opcode = MUSTER_ADMIN_CQ_CREATE,
		.cq = { .base = htole64(port(id, PORT_CQ)), .id = htole32(id),
			.entries = htole32(CQ), .vector = htole32(1 + id % 3),
			.notice = htole64(port(id, PORT_NOTICE)) },
	};
}

static inline struct muster_admin_command vp_command(uint32_t id)
{
	return (struct muster_admin_command){
		.opcode = MUSTER_ADMIN_VP_CREATE,
		.vp = { .dq_base = htole64(port(id, PORT_DQ)), .rq_base = htole64(port(id, PORT_RQ)),
			.status_base = htole64(port(id, PORT_STATUS)), .dq_entries = htole32(DQ),
			.rq_entries = htole32(RQ), .id = htole32(id), .cq = htole32(id),
			.pd = htole32(PD) },
	};
}

static inline void port_open(struct guest *guest, uint32_t vp)
{
	assert_int_equal(command(guest, cq_command(vp)).status, MUSTER_ADMIN_OK);
	assert_int_equal(command(guest, vp_command(vp)).status, MUSTER_ADMIN_OK);
}

/* length bytes at iova, in 4 KiB pages of which the order is turned round. */
static inline struct muster_admin_command mr_command(struct guest *guest, uint32_t id,
						     uint64_t iova, uint32_t length, uint8_t access)
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

static inline struct muster_admin_command id_command(uint8_t opcode, uint32_t id)
{
	return (struct muster_admin_command){ .opcode = opcode, .id = { .id = htole32(id) } };
}

static inline struct muster_admin_command context_command(uint8_t opcode, uint32_t vp)
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

static inline void context_open(const struct place *places, uint32_t nr)
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
static inline void pair_open(struct guest *guest)
{
	const struct place places[] = { { guest, 0, 0 }, { guest, 0, 1 } };

	port_open(guest, 0);
	port_open(guest, 1);
	context_open(places, 2);
}

static inline struct muster_desc message(uint32_t node, uint16_t from, uint16_t to,
					 const char *text)
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

static inline void post(struct guest *guest, uint32_t vp, uint32_t at, struct muster_desc desc)
{
	memcpy(guest->memory + port(vp, PORT_DQ) + at % DQ * sizeof(desc), &desc, sizeof(desc));
}

static inline const struct muster_cqe *cqe(struct guest *guest, uint32_t vp, uint32_t at)
{
	return (void *)(guest->memory + port(vp, PORT_CQ) + at % CQ * sizeof(struct muster_cqe));
}

static inline const struct muster_recv_slot *slot(struct guest *guest, uint32_t vp, uint32_t at)
{
	return (void *)(guest->memory + port(vp, PORT_RQ) +
			at % RQ * sizeof(struct muster_recv_slot));
}

static inline const struct muster_event *event(struct guest *guest, uint32_t at)
{
	return (void *)(guest->memory + EVENT + at % EVENTS * sizeof(struct muster_event));
}

/* Recursive doubling on two ranks: send own, wait for the other's, store the sum. */
static inline void allreduce_of(struct guest *guest, uint16_t vp, uint32_t at, uint32_t other_node,
				uint16_t other_vp, double value)
{
	struct muster_desc first = message(other_node, vp, other_vp, ""), last;

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
	post(guest, vp, at, first);
	post(guest, vp, at + 1, last);
	doorbell(guest, vp, MUSTER_DOORBELL_DQ_TAIL, at + 2);
}

static inline void allreduce_at(struct guest *guest, uint32_t at, uint32_t other, double value)
{
	allreduce_of(guest, 0, at, other, 0, value);
}

static inline void post_allreduce(struct guest *guest, uint32_t other, double value)
{
	allreduce_at(guest, 0, other, value);
}

#define WITH_GUEST(test) cmocka_unit_test_setup_teardown(test, one_guest, no_guest)

#endif /* MUSTER_NIC_TEST_GUEST_H */
