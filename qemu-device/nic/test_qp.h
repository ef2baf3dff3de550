/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For tests of queue pairs: the small provider that makes them in a guest of test_guest.h,
 * posts requests and looks at completions. Each has a completion queue of its own.
 */
#ifndef MUSTER_NIC_TEST_QP_H
#define MUSTER_NIC_TEST_QP_H

#include "test_guest.h"

enum {
	QP_ENTRIES = 8,		/* of each queue */
	QP_CQ = 32,		/* id of the completion queue of the first */
	QP_CQ_ENTRIES = 16,
	QPS = 0x300000,		/* per queue pair in guest memory */
	QP_BYTES = 0x4000,
	QP_SQ = 0x400,
	QP_RQ = 0x1000,
	QP_CQ_RING = 0x2000,
	QP_CQ_RECORD = 0x3000,
	QP_CQ_NOTICE = 0x3800,
	QKEY = 0x11111111,
	QP_IOVA = 0x7000000,	/* of the region with key 1, of */
	QP_MEMORY = 0x8000,	/* bytes */
};

static inline uint32_t qp_number(uint32_t i)
{
	return MUSTER_QPS_MAX + i;
}

static inline void *qp_part(struct guest *guest, uint32_t i, uint32_t part)
{
	return guest->memory + QPS + i * QP_BYTES + part;
}

static inline struct muster_admin_command qp_cq_command(uint32_t i)
{
	return (struct muster_admin_command){
		.opcode = MUSTER_ADMIN_CQ_CREATE,
		.cq = { .base = htole64(QPS + i * QP_BYTES + QP_CQ_RING),
			.record = htole64(QPS + i * QP_BYTES + QP_CQ_RECORD),
			.notice = htole64(QPS + i * QP_BYTES + QP_CQ_NOTICE),
			.id = htole32(QP_CQ + i), .entries = htole32(QP_CQ_ENTRIES),
			.vector = htole32(1 + i % 3) },
	};
}

static inline struct muster_admin_command qp_command(uint32_t i, uint8_t type)
{
	return (struct muster_admin_command){
		.opcode = MUSTER_ADMIN_QP_CREATE,
		.qp = { .record = htole64(QPS + i * QP_BYTES),
			.sq_base = htole64(QPS + i * QP_BYTES + QP_SQ),
			.rq_base = htole64(QPS + i * QP_BYTES + QP_RQ),
			.id = htole32(qp_number(i)), .pd = htole32(PD), .type = type,
			.send_cq = htole32(QP_CQ + i), .recv_cq = htole32(QP_CQ + i),
			.sq_entries = htole16(QP_ENTRIES), .rq_entries = htole16(QP_ENTRIES) },
	};
}

static inline struct muster_admin_command qp_modify_command(uint32_t i, uint8_t state)
{
	return (struct muster_admin_command){
		.opcode = MUSTER_ADMIN_QP_MODIFY,
		.qp_modify = { .id = htole32(qp_number(i)), .state = state,
			       .qkey = htole32(state == MUSTER_QP_RESET ? 0 : QKEY) },
	};
}

/* What a connection needs beside; each side knows the other. */
static inline struct muster_admin_command rc_modify_command(uint32_t i, uint8_t state,
							    uint32_t node, uint32_t other)
{
	struct muster_admin_command cmd = qp_modify_command(i, state);
	struct muster_admin_qp_modify *c = &cmd.qp_modify;

	c->qkey = 0;
	c->dest_node = htole32(node);
	c->dest_qp = htole32(qp_number(other));
	c->rq_psn = htole32((0xfffffd + other) & MUSTER_QPN_MASK);	/* they wrap soon */
	c->sq_psn = htole32((0xfffffd + i) & MUSTER_QPN_MASK);
	c->mtu = htole16(1024);
	c->access = MUSTER_QP_REMOTE;
	c->timeout = 4;
	c->retry_count = 3;
	c->rnr_retry = 7;
	c->min_rnr_timer = 1;
	c->reads = c->reads_served = 2;
	return cmd;
}

static inline void qp_step(struct guest *guest, uint32_t i, uint8_t state)
{
	assert_int_equal(command(guest, qp_modify_command(i, state)).status, MUSTER_ADMIN_OK);
}

static inline uint32_t qp_state(struct guest *guest, uint32_t i)
{
	struct muster_admin_reply reply =
		command(guest, id_command(MUSTER_ADMIN_QP_QUERY, qp_number(i)));

	assert_int_equal(reply.status, MUSTER_ADMIN_OK);
	return le32toh(reply.detail);
}

static inline void qp_create(struct guest *guest, uint32_t i, uint8_t type)
{
	assert_int_equal(command(guest, qp_cq_command(i)).status, MUSTER_ADMIN_OK);
	assert_int_equal(command(guest, qp_command(i, type)).status, MUSTER_ADMIN_OK);
}

static inline void ud_begin(struct guest *guest, uint32_t i)
{
	qp_step(guest, i, MUSTER_QP_INIT);
	qp_step(guest, i, MUSTER_QP_RTR);
	qp_step(guest, i, MUSTER_QP_RTS);
}

static inline void ud_open(struct guest *guest, uint32_t i)
{
	qp_create(guest, i, MUSTER_QP_UD);
	ud_begin(guest, i);
}

static inline void rc_connect(struct guest *guest, uint32_t i, uint32_t node, uint32_t other)
{
	for (uint8_t state = MUSTER_QP_INIT; state <= MUSTER_QP_RTS; state++)
		assert_int_equal(command(guest, rc_modify_command(i, state, node, other)).status,
				 MUSTER_ADMIN_OK);
}

/* Memory that all of them may use, as the NIC sees it: pages are not in order. */
static inline void qp_memory(struct guest *guest, uint8_t access)
{
	assert_int_equal(command(guest, mr_command(guest, 1, QP_IOVA, QP_MEMORY, access)).status,
			 MUSTER_ADMIN_OK);
}

static inline void *qp_bytes(struct guest *guest, uint32_t offset)
{
	return guest->memory + DATA + 0x10000 + (QP_MEMORY / 4096 - 1 - offset / 4096) * 4096 +
	       offset % 4096;
}

static inline struct muster_receive receive_of(uint32_t offset, uint32_t length)
{
	return (struct muster_receive){
		.wr_id = htole64(0x4ecf0000 + offset), .nr_sges = 1,
		.sges = { { htole64(QP_IOVA + offset), htole32(length), htole32(1) } },
	};
}

static inline struct muster_work datagram_to(uint32_t node, uint32_t i, uint32_t offset,
					     uint32_t length)
{
	return (struct muster_work){
		.wr_id = htole64(0x5e4d0000 + offset), .nr_sges = 1,
		.opcode = MUSTER_WORK_SEND, .flags = htole16(MUSTER_WORK_SIGNALED),
		.dest_node = htole32(node), .dest_qp = htole32(qp_number(i)),
		.qkey = htole32(QKEY),
		.sges = { { htole64(QP_IOVA + offset), htole32(length), htole32(1) } },
	};
}

static inline void qp_ring(struct guest *guest, uint32_t i)
{
	reg_write(guest, MUSTER_REG_BELLS + MUSTER_BELL_QP, qp_number(i));
	settle(guest);
}

static inline void qp_put(struct guest *guest, uint32_t i, struct muster_work work)
{
	struct muster_qp_record *record = qp_part(guest, i, 0);
	uint32_t at = le32toh(record->sq_tail);

	((struct muster_work *)qp_part(guest, i, QP_SQ))[at % QP_ENTRIES] = work;
	record->sq_tail = htole32(at + 1);
}

static inline void qp_receive(struct guest *guest, uint32_t i, struct muster_receive receive)
{
	struct muster_qp_record *record = qp_part(guest, i, 0);
	uint32_t at = le32toh(record->rq_tail);

	((struct muster_receive *)qp_part(guest, i, QP_RQ))[at % QP_ENTRIES] = receive;
	record->rq_tail = htole32(at + 1);
}

static inline void qp_send(struct guest *guest, uint32_t i, struct muster_work work)
{
	qp_put(guest, i, work);
	qp_ring(guest, i);
}

static inline struct muster_work rc_work(uint8_t opcode, uint32_t offset, uint32_t length,
					 uint32_t remote)
{
	return (struct muster_work){
		.wr_id = htole64(0x5e4d0000 + offset), .nr_sges = 1, .opcode = opcode,
		.flags = htole16(MUSTER_WORK_SIGNALED),
		.remote_addr = htole64(QP_IOVA + remote), .remote_key = htole32(1),
		.sges = { { htole64(QP_IOVA + offset), htole32(length), htole32(1) } },
	};
}

/* Two of datagrams in one guest. */
static inline int two_ud(void **state)
{
	struct guest *guest = guest_new(0);

	qp_memory(guest, MUSTER_MR_READ | MUSTER_MR_WRITE);
	ud_open(guest, 0);
	ud_open(guest, 1);
	*state = guest;
	return 0;
}

#define WITH_TWO_UD(test) cmocka_unit_test_setup_teardown(test, two_ud, no_guest)

/* The next completion of its queue; NULL: there is none. */
static inline const struct muster_wc *qp_poll(struct guest *guest, uint32_t i)
{
	struct muster_cq_record *record = qp_part(guest, i, QP_CQ_RECORD);
	uint32_t at = le32toh(record->head);
	const struct muster_wc *wc =
		(struct muster_wc *)qp_part(guest, i, QP_CQ_RING) + at % QP_CQ_ENTRIES;

	if (le32toh(wc->valid) != !(at / QP_CQ_ENTRIES & 1) || !wc->kind)
		return NULL;
	record->head = htole32(at + 1);
	return wc;
}

static inline void assert_completes(struct guest *guest, uint32_t i, uint64_t wr_id, uint8_t status)
{
	const struct muster_wc *wc = qp_poll(guest, i);

	assert_non_null(wc);
	assert_int_equal(le64toh(wc->wr_id), wr_id);
	assert_int_equal(wc->status, status);
	assert_int_equal(le32toh(wc->qp), qp_number(i));
}

/* Until there is one, or the step says that there is nothing to wait for. */
static inline const struct muster_wc *await(struct guest *guest, uint32_t i)
{
	const struct muster_wc *wc;

	for (int n = 0; !(wc = qp_poll(guest, i)); n++) {
		assert_true(n < 20000);
		usleep(100);
		settle(guest);
	}
	return wc;
}

static inline void awaits(struct guest *guest, uint32_t i, uint64_t wr_id, uint8_t status)
{
	const struct muster_wc *wc = await(guest, i);

	assert_int_equal(le64toh(wc->wr_id), wr_id);
	assert_int_equal(wc->status, status);
}

static inline uint64_t dropped(struct guest *guest)
{
	struct muster_device_counters *c = (void *)(guest->memory + LIST);
	struct muster_admin_command counters = {
		.opcode = MUSTER_ADMIN_COUNTERS,
		.counters = { .base = htole64(LIST), .bytes = htole32(1000) },
	};

	assert_int_equal(command(guest, counters).status, MUSTER_ADMIN_OK);
	return le64toh(c->dropped);
}

#endif /* MUSTER_NIC_TEST_QP_H */
