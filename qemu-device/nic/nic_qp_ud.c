// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Datagrams: one packet each, to any queue pair of any node that has the Q_Key. What has left is
 * complete; what finds nobody, another Q_Key, no receive, or one that is too short, is dropped.
 */
#include "nic_qp.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/* As InfiniBand has it: version, payload length, next header, hop limit, and two GIDs. */
static void grh_fill(uint8_t *grh, uint32_t src_node, uint32_t dst_node, uint32_t length)
{
	const uint32_t nodes[2] = { src_node, dst_node };

	memset(grh, 0, MUSTER_QP_GRH_BYTES);
	grh[0] = 0x60;
	grh[4] = length >> 8;
	grh[5] = length;
	grh[6] = 0x1b;
	for (int i = 0; i < 2; i++) {
		uint8_t *gid = grh + 8 + 16 * i;

		gid[0] = 0xfe;
		gid[1] = 0x80;
		memcpy(gid + 8, "\x02MST", 4);
		gid[13] = nodes[i] >> 16;
		gid[14] = nodes[i] >> 8;
		gid[15] = nodes[i];
	}
}

/* The packet and its payload; or what is wrong with the request. */
static uint8_t packet_of(struct muster_nic *nic, const struct nic_qp *qp,
			 const struct muster_work *work, struct muster_qp_packet *packet,
			 uint8_t *payload)
{
	uint16_t flags = le16toh(work->flags);
	uint64_t length;

	if (flags & ~MUSTER_WORK_FLAGS || le32toh(work->dest_qp) & ~MUSTER_QPN_MASK ||
	    le32toh(work->dest_node) >= MUSTER_NODES_MAX || !nic_qp_length(work, &length) ||
	    (work->opcode != MUSTER_WORK_SEND && work->opcode != MUSTER_WORK_SEND_IMM))
		return MUSTER_WC_LOC_QP_OP_ERR;
	if (length > MUSTER_MTU)
		return MUSTER_WC_LOC_LEN_ERR;
	if (nic_qp_gather(nic, qp, work, 0, payload, length))
		return MUSTER_WC_LOC_PROT_ERR;
	*packet = nic_qp_packet(nic, qp, MUSTER_QP_DATAGRAM);
	packet->dst_node = work->dest_node;
	packet->dst_qp = work->dest_qp;
	packet->qkey = le32toh(work->qkey) & MUSTER_QKEY_OWN ? qp->attr.qkey : work->qkey;
	packet->length = htole16(length);
	packet->total = htole32(length);
	packet->flags = htole16(MUSTER_QP_FIRST | MUSTER_QP_LAST |
				(flags & MUSTER_WORK_SOLICITED ? MUSTER_QP_SOLICITED : 0) |
				(work->opcode == MUSTER_WORK_SEND_IMM ? MUSTER_QP_IMM : 0));
	packet->imm = work->opcode == MUSTER_WORK_SEND_IMM ? work->imm : 0;
	return MUSTER_WC_SUCCESS;
}

/* The oldest request; false if it cannot go now. */
static bool request_run(struct muster_nic *nic, struct nic_qp *qp)
{
	uint8_t payload[MUSTER_MTU], status;
	struct muster_qp_packet packet;
	struct muster_work work;

	if (!nic_cq_has_room(nic, qp->send_cq) || nic_qp_sq_read(nic, qp, qp->sq_head, &work))
		return false;
	status = packet_of(nic, qp, &work, &packet, payload);
	if (!status && nic_qp_send(nic, qp, 0, &packet, payload) == -EAGAIN &&
	    !nic_qp_blocked(nic, qp))
		return false;
	qp->blocked_us = 0;
	nic_qp_sent(nic, qp, &work, status);
	if (status)
		nic_qp_fail(nic, qp);
	return true;
}

bool nic_ud_run(struct muster_nic *nic, struct nic_qp *qp)
{
	int done = 0;

	while (done < NIC_QP_PACKETS_AT_ONCE && qp->state == MUSTER_QP_RTS &&
	       qp->sq_head != qp->sq_tail && request_run(nic, qp))
		done++;
	if (qp->state == MUSTER_QP_RTS && qp->sq_head == qp->sq_tail)
		qp->waiting = false;
	return done;
}

/* One that it shares may make no sense: then nothing can come here any more. */
static bool receive_find(struct muster_nic *nic, struct nic_qp *qp, struct muster_work *work)
{
	int err = nic_qp_rq_read(nic, qp, work);

	if (err == -EIO && !qp->broken)
		nic_qp_fail(nic, qp);
	return !err;
}

bool nic_ud_receive(struct muster_nic *nic, struct nic_qp *qp,
		    const struct muster_qp_packet *packet, const void *payload)
{
	uint32_t length = le16toh(packet->length), total = length + MUSTER_QP_GRH_BYTES;
	uint8_t bytes[MUSTER_QP_GRH_BYTES + MUSTER_MTU];
	bool imm = le16toh(packet->flags) & MUSTER_QP_IMM;
	struct muster_work work;
	struct muster_wc wc;
	uint64_t room;

	if (packet->qkey != qp->attr.qkey || !nic_cq_has_room(nic, qp->recv_cq) ||
	    !receive_find(nic, qp, &work) || !nic_qp_length(&work, &room) || room < total)
		return false;
	nic_qp_rq_take(nic, qp);
	grh_fill(bytes, le32toh(packet->src_node), nic->config.node, length);
	memcpy(bytes + MUSTER_QP_GRH_BYTES, payload, length);
	wc = (struct muster_wc){
		.wr_id = work.wr_id,
		.opcode = MUSTER_WC_RECV,
		.src_qp = packet->src_qp,
		.src_node = packet->src_node,
		.length = htole32(total),
		.imm = packet->imm,
		.flags = MUSTER_WC_GRH | (imm ? MUSTER_WC_WITH_IMM : 0),
	};
	if (nic_qp_scatter(nic, qp, &work, 0, bytes, total))
		wc.status = MUSTER_WC_LOC_PROT_ERR;
	nic_qp_received(nic, qp, wc, le16toh(packet->flags) & MUSTER_QP_SOLICITED);
	if (wc.status)
		nic_qp_fail(nic, qp);
	return true;
}
