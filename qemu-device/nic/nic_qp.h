/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of queue pairs share: nic_qp.c (doorbells, packets, the turns they have),
 * nic_qp_admin.c (life and states), nic_qp_queue.c (work requests and completions in guest
 * memory), nic_srq.c (receives that several share), nic_qp_ud.c (datagrams), nic_qp_rc.c (connections: who asks), nic_qp_serve.c
 * (who is asked). All of it belongs to the stepping caller.
 */
#ifndef MUSTER_NIC_QP_H
#define MUSTER_NIC_QP_H

#include "nic_internal.h"

enum nic_qp_limit {
	NIC_QP_PACKETS_AT_ONCE = 16,	/* of one queue pair, before the others have their turn */
	NIC_QP_FLUSHED_AT_ONCE = 64,
	NIC_QP_UNACKED_MAX = 64,	/* PSNs: a link has no more packets under way either */
	NIC_QP_ACK_EVERY = 16,
};

/* A work request of RC that has begun, as it was read: the guest may write over it. */
struct nic_request {
	struct muster_work work;
	uint32_t psn;			/* the first of its packets */
	uint32_t nr_packets;		/* 0: it was wrong */
	uint32_t length;
	uint32_t came;			/* bytes of an answer */
	bool answered;
	uint8_t status;			/* enum muster_wc_status: it ends with that */
};

/* What was asked for and is not sent yet. */
struct nic_reply {
	uint64_t addr;			/* READ_DATA */
	uint64_t value;			/* ATOMIC_DATA */
	uint32_t key;
	uint32_t psn;
	uint32_t total;
	uint32_t sent;
	uint8_t opcode;			/* enum muster_qp_opcode */
};

struct nic_early {
	struct nic_early *next;
	struct muster_qp_packet packet;
	uint8_t payload[];
};

/* A receive, between the first and the last packet of a SEND. */
struct nic_receive {
	struct muster_work work;
	uint32_t length;		/* bytes so far */
	bool begun;
};

/* Receives that queue pairs share. */
struct nic_srq {
	uint32_t id;
	uint32_t pd;
	uint64_t record, base;
	uint32_t entries;
	uint32_t head;			/* receives taken */
	uint32_t tail;			/* written, as the guest says */
	uint32_t limit;			/* told when fewer are left; 0: not */
	uint32_t users;			/* queue pairs */
	bool broken;			/* it makes no sense: nothing of it is read any more */
	bool limit_owed, error_owed;	/* events, when there is room for them */
};

struct nic_qp {
	uint32_t number;
	uint32_t pd;
	uint32_t send_cq, recv_cq;
	uint64_t record, sq_base, rq_base;
	uint32_t sq_entries, rq_entries;
	uint8_t type;			/* enum muster_qp_type */
	uint8_t state;			/* enum muster_qp_state */
	uint16_t counted;		/* set */
	bool signals_all;
	bool waiting;			/* has something to do in the next step */
	bool broken;			/* a queue makes no sense: nothing of it is read any more */
	bool drained;			/* and that was told */
	bool error_owed, access_owed, drained_owed;	/* events, when there is room for them */
	struct muster_admin_qp_modify attr;

	uint32_t sq_head;		/* requests completed */
	uint32_t sq_tail;		/* written, as the guest says */
	uint32_t rq_head;
	uint32_t rq_tail;
	struct nic_srq *srq;		/* receives are of this; NULL: its own */
	uint64_t blocked_us;		/* since then the wire takes nothing; 0: it does */

	/* RC: who asks */
	struct nic_request *requests;	/* those from sq_head to sq_next, modulo MUSTER_QP_FLIGHT_MAX */
	uint32_t sq_next;		/* begins next */
	uint32_t sq_send;		/* has send_psn */
	uint32_t incarnation;		/* of the other's NIC; 0: not heard yet */
	bool gone;			/* that life is over */
	bool halted;			/* one of the requests has a status: nothing is sent */
	uint32_t next_psn;		/* of the next request that begins */
	uint32_t send_psn;		/* goes next */
	uint32_t acked_psn;		/* all before were taken */
	uint32_t reads;			/* and atomics, under way */
	uint8_t retries, rnr_retries;	/* left */
	uint64_t progress_us;		/* last sign of the other side */
	uint64_t resume_us;		/* after a NAK; 0: goes on */

	/* RC: who is asked */
	uint32_t expected_psn;
	uint32_t nak_psn;
	uint8_t nak_owed;		/* enum muster_qp_nak */
	bool ack_owed;
	struct nic_early *early;	/* by PSN, those within NIC_QP_UNACKED_MAX */
	struct nic_receive receive;
	struct nic_reply replies[MUSTER_QP_READS_MAX];
	uint32_t reply_head, reply_tail;
};

static inline uint32_t nic_qp_index(uint32_t number)
{
	return number % MUSTER_QPS_MAX;
}

/* PSNs count modulo 2^24: how far a is ahead of b. */
static inline int32_t nic_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static inline uint32_t nic_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & MUSTER_QPN_MASK;
}

/* What it counts, where it is counted. */
static inline struct nic_qp_counts *nic_qp_counts(struct muster_nic *nic, const struct nic_qp *qp)
{
	return &nic->qp_counts[qp->counted];
}

/* nic_qp.c */
/* The step comes again then at the latest. */
static inline void nic_qps_due(struct muster_nic *nic, uint64_t at_us)
{
	if (at_us < nic->qps_due_us)
		nic->qps_due_us = at_us;
}

/* A packet's head, with what is the same in all of this queue pair. */
struct muster_qp_packet nic_qp_packet(const struct muster_nic *nic, const struct nic_qp *qp,
				      uint8_t opcode);
/* To that life of its node (0: whichever is there): 0; -EAGAIN: not now; -EHOSTUNREACH. */
int nic_qp_send(struct muster_nic *nic, const struct nic_qp *qp, uint32_t incarnation,
		const struct muster_qp_packet *packet, const void *payload);
/* The wire did not take it: whether that has lasted so long that nobody can be there. */
bool nic_qp_blocked(struct muster_nic *nic, struct nic_qp *qp);

/* nic_qp_queue.c */
/* From now on it only flushes what was posted, and is; and says so. */
void nic_qp_fail(struct muster_nic *nic, struct nic_qp *qp);
/* What the process says of its queues now; it may break the queue pair, which is read no more. */
void nic_qp_look(struct muster_nic *nic, struct nic_qp *qp);
/* A request of the send queue: 0; or -EIO, and the queue pair is broken. */
int nic_qp_sq_read(struct muster_nic *nic, struct nic_qp *qp, uint32_t at, struct muster_work *work);
/* A receive, wherever it stands: 0; -EIO. */
int nic_receive_read(struct muster_nic *nic, uint64_t addr, struct muster_work *work);
/* The oldest receive: 0; -ENOENT: none is posted; -EIO. */
int nic_qp_rq_read(struct muster_nic *nic, struct nic_qp *qp, struct muster_work *work);
/* It is this queue pair's, and completes. */
void nic_qp_rq_take(struct muster_nic *nic, struct nic_qp *qp);
/* Bytes of a work request's memory; false: there are too many ranges, or bytes. */
bool nic_qp_length(const struct muster_work *work, uint64_t *length);
/* To and from that memory, from offset on: 0; -EFAULT. */
int nic_qp_gather(struct muster_nic *nic, const struct nic_qp *qp, const struct muster_work *work,
		  uint32_t offset, void *buf, uint32_t len);
int nic_qp_scatter(struct muster_nic *nic, const struct nic_qp *qp, const struct muster_work *work,
		   uint32_t offset, const void *buf, uint32_t len);
/* The oldest request, or receive, has ended. There must be room for its completion. */
void nic_qp_sent(struct muster_nic *nic, struct nic_qp *qp, const struct muster_work *work,
		 uint8_t status);
void nic_qp_received(struct muster_nic *nic, struct nic_qp *qp, struct muster_wc wc,
		     bool solicited);
/* True if anything moved. */
bool nic_qp_flush(struct muster_nic *nic, struct nic_qp *qp);

/* nic_cq.c */
/* Whether a completion can be written there now. */
bool nic_cq_has_room(struct muster_nic *nic, uint32_t cq);
/* A completion, for which there is room: 0; -EIO. */
int nic_cq_put_work(struct muster_nic *nic, struct nic_cq *cq, const struct muster_wc *wc,
		    bool solicited);
void nic_cq_rung(struct muster_nic *nic, uint32_t cq);

/* nic_srq.c: as nic_qp_rq_read() and nic_qp_rq_take() */
int nic_srq_read(struct muster_nic *nic, struct nic_srq *srq, struct muster_work *work);
void nic_srq_take(struct muster_nic *nic, struct nic_srq *srq);

/* nic_qp_ud.c */
bool nic_ud_run(struct muster_nic *nic, struct nic_qp *qp);
/* False: it was not taken. */
bool nic_ud_receive(struct muster_nic *nic, struct nic_qp *qp,
		    const struct muster_qp_packet *packet, const void *payload);

/* nic_qp_rc.c; start(): its first PSN is known; acknowledged(): it completes what is, at once */
void nic_rc_start(struct muster_nic *nic, struct nic_qp *qp);
bool nic_rc_run(struct muster_nic *nic, struct nic_qp *qp);
bool nic_rc_reply(struct muster_nic *nic, struct nic_qp *qp,
		  const struct muster_qp_packet *packet, const void *payload);
void nic_rc_acknowledged(struct muster_nic *nic, struct nic_qp *qp, uint32_t psn);

/* nic_qp_serve.c; forget(): what it keeps and owes */
void nic_serve_forget(struct nic_qp *qp);
bool nic_serve_run(struct muster_nic *nic, struct nic_qp *qp);
bool nic_serve_owes(const struct nic_qp *qp);
bool nic_serve_receive(struct muster_nic *nic, struct nic_qp *qp,
		       const struct muster_qp_packet *packet, const void *payload);

#endif /* MUSTER_NIC_QP_H */
