// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs in the NIC's step: who has rung, whose turn it is, and to whom a packet
 * goes that has come. They have their turn after the engine, so that what room there is on
 * a link is collectives' first, and a bounded number of packets each.
 */
#include "nic_qp.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/* ---- packets --------------------------------------------------------------- */

struct muster_qp_packet nic_qp_packet(const struct muster_nic *nic, const struct nic_qp *qp,
				      uint8_t opcode)
{
	return (struct muster_qp_packet){
		.version = MUSTER_PACKET_VERSION,
		.type = MUSTER_PACKET_QP,
		.opcode = opcode,
		.pkey = htole16(MUSTER_QP_PKEY),
		.src_node = htole32(nic->config.node),
		.dst_node = qp->attr.dest_node,
		.src_qp = htole32(qp->number),
		.dst_qp = qp->attr.dest_qp,
		.incarnation = htole32(nic->incarnation),
	};
}

static int packet_send(struct muster_nic *nic, uint32_t incarnation,
		       const struct muster_qp_packet *packet, const void *payload)
{
	struct muster_packet plain;

	memcpy(&plain, packet, sizeof(plain));
	return nic_packet_send(nic, incarnation, &plain, payload);
}

int nic_qp_send(struct muster_nic *nic, const struct nic_qp *qp, uint32_t incarnation,
		const struct muster_qp_packet *packet, const void *payload)
{
	int err = packet_send(nic, incarnation, packet, payload);

	if (!err) {
		nic_qp_counts(nic, qp)->packets_out++;
		nic_qp_counts(nic, qp)->bytes_out += le16toh(packet->length);
	}
	return err;
}

bool nic_qp_blocked(struct muster_nic *nic, struct nic_qp *qp)
{
	uint64_t now_us = nic->world->now_us(nic->opaque);

	if (!qp->blocked_us)
		qp->blocked_us = now_us;
	if (now_us - qp->blocked_us < nic->config.deadline_us)
		return false;
	qp->blocked_us = 0;
	return true;
}

static bool well_formed(const struct muster_qp_packet *packet, uint32_t len)
{
	static const uint8_t zero[sizeof(packet->reserved2)];

	return packet->version == MUSTER_PACKET_VERSION && le16toh(packet->length) == len &&
	       len <= MUSTER_MTU && !(le16toh(packet->flags) & ~MUSTER_QP_PACKET_FLAGS) &&
	       le16toh(packet->pkey) == MUSTER_QP_PKEY &&
	       le32toh(packet->src_node) < MUSTER_NODES_MAX &&
	       !(le32toh(packet->src_qp) & ~MUSTER_QPN_MASK) &&
	       !packet->reserved && !memcmp(packet->reserved2, zero, sizeof(zero));
}

/* Who waits for an acknowledgement learns that there will be none. */
static void say_absent(struct muster_nic *nic, const struct muster_qp_packet *to)
{
	struct muster_qp_packet packet = {
		.version = MUSTER_PACKET_VERSION,
		.type = MUSTER_PACKET_QP,
		.opcode = MUSTER_QP_NAK,
		.nak = MUSTER_NAK_ABSENT,
		.pkey = htole16(MUSTER_QP_PKEY),
		.src_node = htole32(nic->config.node),
		.dst_node = to->src_node,
		.src_qp = to->dst_qp,
		.dst_qp = to->src_qp,
		.psn = to->psn,
		.incarnation = htole32(nic->incarnation),
	};

	/* If it does not go now, the other side asks again after a while. */
	if (to->opcode < MUSTER_QP_DATAGRAM)
		(void)packet_send(nic, le32toh(to->incarnation), &packet, NULL);
}

/* Of the other end of its connection, and of the same life as all before. */
static bool from_other_end(struct nic_qp *qp, const struct muster_qp_packet *packet)
{
	if (packet->src_node != qp->attr.dest_node || packet->src_qp != qp->attr.dest_qp ||
	    !packet->incarnation)
		return false;
	if (!qp->incarnation)
		qp->incarnation = le32toh(packet->incarnation);
	return qp->incarnation == le32toh(packet->incarnation);
}

static bool packet_take(struct muster_nic *nic, struct nic_qp *qp,
			const struct muster_qp_packet *packet, const void *payload)
{
	if (qp->type == MUSTER_QP_UD)
		return packet->opcode == MUSTER_QP_DATAGRAM &&
		       nic_ud_receive(nic, qp, packet, payload);
	if (!from_other_end(qp, packet))
		return false;
	if (packet->opcode >= MUSTER_QP_ACK)
		return nic_rc_reply(nic, qp, packet, payload);
	return packet->opcode != MUSTER_QP_DATAGRAM && nic_serve_receive(nic, qp, packet, payload);
}

static bool takes_packets(const struct nic_qp *qp)
{
	return qp->state == MUSTER_QP_RTR || qp->state == MUSTER_QP_RTS;
}

void nic_qp_receive(struct muster_nic *nic, const struct muster_packet *plain,
		    const void *payload, uint32_t len)
{
	struct muster_qp_packet packet;
	struct nic_qp *qp;
	bool there;

	memcpy(&packet, plain, sizeof(packet));
	qp = nic->qps[nic_qp_index(le32toh(packet.dst_qp))];
	there = qp && qp->number == le32toh(packet.dst_qp) && takes_packets(qp);
	if (well_formed(&packet, len) && there && packet_take(nic, qp, &packet, payload)) {
		nic_qp_counts(nic, qp)->packets_in++;
		nic_qp_counts(nic, qp)->bytes_in += len;
		return;
	}
	nic->counts.dropped++;
	if (there)
		nic_qp_counts(nic, qp)->dropped++;
	if (well_formed(&packet, len) && !there)
		say_absent(nic, &packet);
}

/* Of a connection that exchanges packets with a node. */
static bool is_to(const struct nic_qp *qp, uint32_t node)
{
	return qp->type == MUSTER_QP_RC && takes_packets(qp) && le32toh(qp->attr.dest_node) == node;
}

bool nic_qps_need(const struct muster_nic *nic, uint32_t node)
{
	for (uint32_t i = 0; i < nic->nr_qps; i++)
		if (is_to(nic->qps[nic->qp_ids[i]], node))
			return true;
	return false;
}

void nic_qps_lost(struct muster_nic *nic, uint32_t node, uint32_t present)
{
	for (uint32_t i = 0; i < nic->nr_qps; i++) {
		struct nic_qp *qp = nic->qps[nic->qp_ids[i]];

		if (!is_to(qp, node))
			continue;
		qp->gone |= qp->incarnation ? qp->incarnation != present : !present;
		qp->waiting = true;
	}
}

/* ---- the step -------------------------------------------------------------- */

static void qp_rung(struct muster_nic *nic, uint32_t index)
{
	struct nic_qp *qp = nic->qps[index];

	/* After a reset its record is as of before, until its process has cleared it. */
	if (!qp || qp->broken || qp->state == MUSTER_QP_RESET)
		return;
	nic_qp_look(nic, qp);
	qp->waiting = !qp->broken;
}

/* What was rung, of up to `words` times 64 objects; true if there was any. */
static bool bells_take(struct muster_nic *nic, uint64_t *rung, uint32_t words,
		       void (*take)(struct muster_nic *nic, uint32_t id))
{
	bool moved = false;

	for (uint32_t word = 0; word < words; word++) {
		uint64_t bits;

		if (!__atomic_load_n(&rung[word], __ATOMIC_RELAXED))
			continue;
		bits = __atomic_exchange_n(&rung[word], 0, __ATOMIC_ACQUIRE);
		moved = true;
		for (; bits; bits &= bits - 1)
			take(nic, word * 64 + __builtin_ctzll(bits));
	}
	return moved;
}

static bool qp_run(struct muster_nic *nic, struct nic_qp *qp)
{
	bool moved = qp->type == MUSTER_QP_RC && nic_serve_run(nic, qp);

	if (qp->state == MUSTER_QP_ERR)
		moved |= nic_qp_flush(nic, qp);
	else if (qp->state == MUSTER_QP_RTS && qp->type == MUSTER_QP_UD)
		moved |= nic_ud_run(nic, qp);
	else if (qp->state == MUSTER_QP_RTS)
		moved |= nic_rc_run(nic, qp);
	else
		qp->waiting = false;
	qp->waiting |= nic_serve_owes(qp);
	return moved;
}

bool nic_qps_run(struct muster_nic *nic)
{
	bool moved;

	/* Collectives alone do not pay for this; what is rung meanwhile is looked at later. */
	if (!nic->nr_qps)
		return false;
	nic->qps_due_us = UINT64_MAX;
	moved = bells_take(nic, nic->rung_cqs, MUSTER_CQS_MAX / 64, nic_cq_rung);
	moved |= bells_take(nic, nic->rung_qps, MUSTER_QPS_MAX / 64, qp_rung);
	/* Each is the first at some time: room on a link is not always the same ones'. */
	nic->qp_turn++;
	for (uint32_t i = 0; i < nic->nr_qps; i++) {
		struct nic_qp *qp = nic->qps[nic->qp_ids[(nic->qp_turn + i) % nic->nr_qps]];

		if (qp->waiting)
			moved |= qp_run(nic, qp);
	}
	nic_cqs_run(nic);
	return moved;
}

bool nic_qps_pay(struct muster_nic *nic)
{
	for (uint32_t i = 0; i < nic->nr_qps; i++) {
		struct nic_qp *qp = nic->qps[nic->qp_ids[i]];

		if (!nic_event_pay(nic, &qp->error_owed, MUSTER_EVENT_QP_ERROR, qp->number) ||
		    !nic_event_pay(nic, &qp->access_owed, MUSTER_EVENT_QP_ACCESS, qp->number) ||
		    !nic_event_pay(nic, &qp->drained_owed, MUSTER_EVENT_QP_DRAINED, qp->number))
			return false;
	}
	return true;
}
