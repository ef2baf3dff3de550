// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections, who is asked: packets are taken in the order of their PSNs, whatever order they
 * come in, each once; what comes early is kept. What was taken is acknowledged, a few packets at
 * a time; what was asked for is sent, and what is not allowed ends the connection.
 */
#include "nic_qp.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What became of a packet, beside enum muster_qp_nak. */
enum { TAKEN = 0 };

void nic_serve_forget(struct nic_qp *qp)
{
	while (qp->early) {
		struct nic_early *first = qp->early;

		qp->early = first->next;
		free(first);
	}
	qp->reply_head = qp->reply_tail = 0;
	qp->receive.begun = false;
	qp->ack_owed = false;
	qp->nak_owed = 0;
}

/* ---- SEND ------------------------------------------------------------------ */

/* A receive that cannot take what came: its process is told, and so is the sender. */
static uint8_t receive_fails(struct muster_nic *nic, struct nic_qp *qp, uint8_t opcode,
			     uint8_t status)
{
	struct muster_wc wc = { .wr_id = qp->receive.work.wr_id, .opcode = opcode,
				.status = status };

	qp->receive.begun = false;
	nic_qp_received(nic, qp, wc, true);
	return status == MUSTER_WC_LOC_LEN_ERR ? MUSTER_NAK_INVALID : MUSTER_NAK_OPERATION;
}

/* The receive for it: TAKEN, and begun; or why not. */
static uint8_t receive_begin(struct muster_nic *nic, struct nic_qp *qp)
{
	int err = nic_qp_rq_read(nic, qp, &qp->receive.work);

	if (err)
		return err == -ENOENT ? MUSTER_NAK_RNR : MUSTER_NAK_OPERATION;
	nic_qp_rq_take(nic, qp);
	qp->receive.begun = true;
	qp->receive.length = 0;
	return TAKEN;
}

static void receive_end(struct muster_nic *nic, struct nic_qp *qp,
			const struct muster_qp_packet *packet, uint8_t opcode, uint32_t length)
{
	uint16_t flags = le16toh(packet->flags);
	struct muster_wc wc = {
		.wr_id = qp->receive.work.wr_id,
		.opcode = opcode,
		.src_qp = packet->src_qp,
		.src_node = packet->src_node,
		.length = htole32(length),
		.imm = packet->imm,
		.flags = flags & MUSTER_QP_IMM ? MUSTER_WC_WITH_IMM : 0,
	};

	qp->receive.begun = false;
	nic_qp_received(nic, qp, wc, flags & MUSTER_QP_SOLICITED);
}

static uint8_t take_send(struct muster_nic *nic, struct nic_qp *qp,
			 const struct muster_qp_packet *packet, const void *payload)
{
	uint32_t len = le16toh(packet->length);
	uint16_t flags = le16toh(packet->flags);
	uint64_t room;
	uint8_t why;

	if (!nic_cq_has_room(nic, qp->recv_cq))
		return MUSTER_NAK_RNR;
	if (!!(flags & MUSTER_QP_FIRST) == qp->receive.begun)
		return MUSTER_NAK_INVALID;
	why = qp->receive.begun ? TAKEN : receive_begin(nic, qp);
	if (why)
		return why;
	if (!nic_qp_length(&qp->receive.work, &room) || len > room - qp->receive.length)
		return receive_fails(nic, qp, MUSTER_WC_RECV, MUSTER_WC_LOC_LEN_ERR);
	if (nic_qp_scatter(nic, qp, &qp->receive.work, qp->receive.length, payload, len))
		return receive_fails(nic, qp, MUSTER_WC_RECV, MUSTER_WC_LOC_PROT_ERR);
	qp->receive.length += len;
	if (flags & MUSTER_QP_LAST)
		receive_end(nic, qp, packet, MUSTER_WC_RECV, qp->receive.length);
	return TAKEN;
}

/* ---- RDMA ------------------------------------------------------------------ */

static uint8_t take_write(struct muster_nic *nic, struct nic_qp *qp,
			  const struct muster_qp_packet *packet, const void *payload)
{
	uint32_t len = le16toh(packet->length);
	bool imm = le16toh(packet->flags) & MUSTER_QP_IMM;
	uint8_t why = TAKEN;

	if (qp->receive.begun)
		return MUSTER_NAK_INVALID;
	if (!(qp->attr.access & MUSTER_QP_REMOTE_WRITE))
		return MUSTER_NAK_ACCESS;
	if (imm)
		why = nic_cq_has_room(nic, qp->recv_cq) ? receive_begin(nic, qp) : MUSTER_NAK_RNR;
	if (why)
		return why;
	if (len && nic_mr_store(nic, qp->pd, le32toh(packet->remote_key), MUSTER_MR_REMOTE_WRITE,
				le64toh(packet->remote_addr) + le32toh(packet->offset), payload, len))
		return MUSTER_NAK_ACCESS;
	if (imm)
		receive_end(nic, qp, packet, MUSTER_WC_RECV_WRITE_IMM, le32toh(packet->total));
	return TAKEN;
}

/* NULL: it asks for more at once than was agreed upon. */
static struct nic_reply *reply_new(struct nic_qp *qp, const struct muster_qp_packet *packet)
{
	struct nic_reply *reply = &qp->replies[qp->reply_tail % MUSTER_QP_READS_MAX];

	if (qp->reply_tail - qp->reply_head >= qp->attr.reads_served)
		return NULL;
	*reply = (struct nic_reply){ .psn = le32toh(packet->psn), .key = le32toh(packet->remote_key),
				     .addr = le64toh(packet->remote_addr) };
	return reply;
}

static uint8_t take_read(struct muster_nic *nic, struct nic_qp *qp,
			 const struct muster_qp_packet *packet)
{
	uint32_t total = le32toh(packet->total);
	struct nic_reply *reply = reply_new(qp, packet);

	if (!reply || total > MUSTER_QP_MESSAGE_MAX || qp->receive.begun || !le32toh(packet->offset) ||
	    le32toh(packet->offset) > MUSTER_QP_MESSAGE_MAX / 256)
		return MUSTER_NAK_INVALID;
	if (!(qp->attr.access & MUSTER_QP_REMOTE_READ) ||
	    (total && !nic_mr_allows(nic, qp->pd, reply->key, MUSTER_MR_REMOTE_READ, reply->addr,
				     total)))
		return MUSTER_NAK_ACCESS;
	reply->opcode = MUSTER_QP_READ_DATA;
	reply->total = total;
	qp->reply_tail++;
	return TAKEN;
}

/* Nothing else of the device comes between; of CPUs it is not said. */
static uint8_t take_atomic(struct muster_nic *nic, struct nic_qp *qp,
			   const struct muster_qp_packet *packet)
{
	struct nic_reply *reply = reply_new(qp, packet);
	uint64_t value, next;

	if (!reply || qp->receive.begun || le64toh(packet->remote_addr) % sizeof(value))
		return MUSTER_NAK_INVALID;
	if (!(qp->attr.access & MUSTER_QP_REMOTE_ATOMIC) ||
	    nic_mr_load(nic, qp->pd, reply->key, MUSTER_MR_REMOTE_ATOMIC, reply->addr, &value,
			sizeof(value)))
		return MUSTER_NAK_ACCESS;
	next = htole64(le64toh(value) + le64toh(packet->compare_add));
	if (packet->opcode == MUSTER_QP_CMP_SWAP)
		next = value == packet->compare_add ? packet->swap : value;
	if (nic_mr_store(nic, qp->pd, reply->key, MUSTER_MR_REMOTE_ATOMIC, reply->addr, &next,
			 sizeof(next)))
		return MUSTER_NAK_ACCESS;
	reply->opcode = MUSTER_QP_ATOMIC_DATA;
	reply->value = le64toh(value);
	qp->reply_tail++;
	return TAKEN;
}

/* ---- the order of packets -------------------------------------------------- */

static uint8_t take(struct muster_nic *nic, struct nic_qp *qp,
		    const struct muster_qp_packet *packet, const void *payload)
{
	switch (packet->opcode) {
	case MUSTER_QP_SEND:
		return take_send(nic, qp, packet, payload);
	case MUSTER_QP_WRITE:
		return take_write(nic, qp, packet, payload);
	case MUSTER_QP_READ:
		return take_read(nic, qp, packet);
	case MUSTER_QP_CMP_SWAP:
	case MUSTER_QP_FETCH_ADD:
		return take_atomic(nic, qp, packet);
	default:
		return MUSTER_NAK_INVALID;
	}
}

/* A question says how many it takes, which the size of its sender's packets decides. */
static uint32_t psns_of(const struct muster_qp_packet *packet)
{
	return packet->opcode == MUSTER_QP_READ ? le32toh(packet->offset) : 1;
}

/* The one that is due; false: it was not taken, and its sender will be told. */
static bool take_due(struct muster_nic *nic, struct nic_qp *qp,
		     const struct muster_qp_packet *packet, const void *payload)
{
	uint8_t why = take(nic, qp, packet, payload);

	qp->waiting = true;
	qp->nak_owed = why;
	qp->nak_psn = qp->expected_psn;
	if (why == MUSTER_NAK_RNR) {
		nic_qp_counts(nic, qp)->rnr_out++;
		return false;
	}
	if (why) {
		nic_qp_fail(nic, qp);
		if (why == MUSTER_NAK_ACCESS)
			nic_event_owe(nic, &qp->access_owed);
		return false;
	}
	qp->ack_owed |= !!(le16toh(packet->flags) & MUSTER_QP_ACK_WANTED);
	qp->expected_psn = nic_psn_add(qp->expected_psn, psns_of(packet));
	return true;
}

/* By PSN, each once. */
static void keep(struct nic_qp *qp, const struct muster_qp_packet *packet, const void *payload)
{
	uint32_t len = le16toh(packet->length), psn = le32toh(packet->psn);
	struct nic_early **at = &qp->early, *early;

	while (*at && nic_psn_diff(le32toh((*at)->packet.psn), psn) < 0)
		at = &(*at)->next;
	if (*at && le32toh((*at)->packet.psn) == psn)
		return;
	early = malloc(sizeof(*early) + len);
	if (!early)
		return;
	early->next = *at;
	early->packet = *packet;
	if (len)
		memcpy(early->payload, payload, len);
	*at = early;
}

static void take_early(struct muster_nic *nic, struct nic_qp *qp)
{
	while (qp->early && qp->state != MUSTER_QP_ERR) {
		struct nic_early *first = qp->early;
		int32_t ahead = nic_psn_diff(le32toh(first->packet.psn), qp->expected_psn);

		if (ahead > 0 || (ahead == 0 && !take_due(nic, qp, &first->packet, first->payload)))
			return;
		qp->early = first->next;
		free(first);
	}
}

bool nic_serve_receive(struct muster_nic *nic, struct nic_qp *qp,
		       const struct muster_qp_packet *packet, const void *payload)
{
	uint32_t psn = le32toh(packet->psn);
	int32_t ahead = nic_psn_diff(psn, qp->expected_psn);

	/* The other side sends nothing so far ahead: it is of a connection that was before. */
	if (psn & ~MUSTER_QPN_MASK || ahead >= NIC_QP_UNACKED_MAX)
		return false;
	/* Who answers has taken what it answers: that completes first, and may fail here. */
	if (ahead >= 0)
		nic_rc_acknowledged(nic, qp, le32toh(packet->acked));
	if (qp->state == MUSTER_QP_ERR)
		return false;
	if (ahead > 0) {
		keep(qp, packet, payload);
	} else if (ahead < 0) {		/* it comes again: say so again */
		qp->ack_owed = qp->waiting = true;
	} else if (take_due(nic, qp, packet, payload)) {
		take_early(nic, qp);
	}
	return true;
}

/* ---- what is said ---------------------------------------------------------- */

/* Whether it went, or nobody is there to hear it. */
static bool say(struct muster_nic *nic, struct nic_qp *qp, const struct muster_qp_packet *packet,
		const void *payload)
{
	return nic_qp_send(nic, qp, qp->incarnation, packet, payload) != -EAGAIN;
}

static bool say_nak(struct muster_nic *nic, struct nic_qp *qp)
{
	struct muster_qp_packet packet = nic_qp_packet(nic, qp, MUSTER_QP_NAK);

	packet.psn = htole32(qp->nak_psn);
	packet.nak = qp->nak_owed;
	packet.timer = qp->attr.min_rnr_timer;
	if (!say(nic, qp, &packet, NULL))
		return false;
	qp->nak_owed = 0;
	return true;
}

static bool say_ack(struct muster_nic *nic, struct nic_qp *qp)
{
	struct muster_qp_packet packet = nic_qp_packet(nic, qp, MUSTER_QP_ACK);

	packet.psn = htole32(qp->expected_psn);
	if (!say(nic, qp, &packet, NULL))
		return false;
	qp->ack_owed = false;
	return true;
}

/* Some of the oldest answer; false: not now. */
static bool say_reply(struct muster_nic *nic, struct nic_qp *qp)
{
	struct nic_reply *reply = &qp->replies[qp->reply_head % MUSTER_QP_READS_MAX];
	struct muster_qp_packet packet = nic_qp_packet(nic, qp, reply->opcode);
	uint32_t mtu = le16toh(qp->attr.mtu), left = reply->total - reply->sent;
	uint32_t len = left < mtu ? left : mtu;
	uint8_t payload[MUSTER_MTU];

	packet.psn = htole32(reply->psn);
	packet.offset = htole32(reply->sent);
	packet.total = htole32(reply->total);
	packet.length = htole16(len);
	packet.compare_add = htole64(reply->value);
	if (len && nic_mr_load(nic, qp->pd, reply->key, MUSTER_MR_REMOTE_READ,
			       reply->addr + reply->sent, payload, len)) {
		qp->nak_owed = MUSTER_NAK_ACCESS;	/* its region has gone meanwhile */
		qp->nak_psn = reply->psn;
		nic_qp_fail(nic, qp);
		return true;
	}
	if (!say(nic, qp, &packet, payload))
		return false;
	reply->sent += len;
	qp->reply_head += reply->sent == reply->total;
	return true;
}

bool nic_serve_run(struct muster_nic *nic, struct nic_qp *qp)
{
	int said = 0;

	while (said < NIC_QP_PACKETS_AT_ONCE && qp->reply_head != qp->reply_tail &&
	       qp->state != MUSTER_QP_ERR && say_reply(nic, qp))
		said++;
	if (qp->ack_owed)
		said += say_ack(nic, qp);
	if (qp->nak_owed)
		said += say_nak(nic, qp);
	return said;
}

bool nic_serve_owes(const struct nic_qp *qp)
{
	return qp->ack_owed || qp->nak_owed ||
	       (qp->state != MUSTER_QP_ERR && qp->reply_head != qp->reply_tail);
}
