// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections, who asks: requests become packets that count up PSNs, and complete in order as
 * they are acknowledged or answered. The wire loses nothing, so a packet goes again only where
 * the other side says that it could not take it, or says nothing at all for a deadline.
 */
#include "nic_qp.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

static struct nic_request *request_at(struct nic_qp *qp, uint32_t at)
{
	return &qp->requests[at % MUSTER_QP_FLIGHT_MAX];
}

static bool is_atomic(uint8_t opcode)
{
	return opcode == MUSTER_WORK_CMP_SWAP || opcode == MUSTER_WORK_FETCH_ADD;
}

/* What is answered with data; one packet, whatever it asks for. */
static bool is_question(uint8_t opcode)
{
	return opcode == MUSTER_WORK_READ || is_atomic(opcode);
}

/* ---- the requests under way ------------------------------------------------ */

static uint32_t end_of(const struct nic_request *request)
{
	return nic_psn_add(request->psn, request->nr_packets);
}

/* Its place in the queue; sq_next if there is none. */
static uint32_t find(struct nic_qp *qp, uint32_t psn)
{
	uint32_t at = qp->sq_head;

	while (at != qp->sq_next && nic_psn_diff(end_of(request_at(qp, at)), psn) <= 0)
		at++;
	return at;
}

static void rewind_to(struct nic_qp *qp, uint32_t psn)
{
	qp->send_psn = psn;
	qp->sq_send = find(qp, psn);
}

/* It ends with that, after those before it; nothing is sent any more. */
static void halt(struct nic_qp *qp, uint32_t at, uint8_t status)
{
	if (at == qp->sq_next)
		return;
	request_at(qp, at)->status = status;
	qp->halted = true;
	qp->waiting = true;
}

static bool request_done(const struct nic_qp *qp, const struct nic_request *request)
{
	return request->status || (nic_psn_diff(end_of(request), qp->acked_psn) <= 0 &&
				   (!is_question(request->work.opcode) || request->answered));
}

/* For whom the other side is waited; sq_next: for none, what is left waits for room in its CQ. */
static uint32_t oldest_undone(struct nic_qp *qp)
{
	uint32_t at = qp->sq_head;

	while (at != qp->sq_next && request_done(qp, request_at(qp, at))) {
		if (request_at(qp, at)->status)		/* all behind it is only flushed */
			return qp->sq_next;
		at++;
	}
	return at;
}

static uint8_t check(const struct nic_qp *qp, const struct muster_work *work, uint64_t length)
{
	if (work->opcode > MUSTER_WORK_FETCH_ADD || le16toh(work->flags) & ~MUSTER_WORK_FLAGS ||
	    (is_question(work->opcode) && (!qp->attr.reads ||
					   le16toh(work->flags) & MUSTER_WORK_INLINE)))
		return MUSTER_WC_LOC_QP_OP_ERR;
	if (length > MUSTER_QP_MESSAGE_MAX || (is_atomic(work->opcode) && length != 8))
		return MUSTER_WC_LOC_LEN_ERR;
	return MUSTER_WC_SUCCESS;
}

static bool may_begin(const struct nic_qp *qp, const struct muster_work *work)
{
	if (le16toh(work->flags) & MUSTER_WORK_FENCE && qp->reads)
		return false;
	return !is_question(work->opcode) || qp->reads < qp->attr.reads || !qp->attr.reads;
}

/* The next one that was posted; false: there is none, or it has to wait. */
static bool request_begin(struct muster_nic *nic, struct nic_qp *qp)
{
	struct nic_request *request = request_at(qp, qp->sq_next);
	uint32_t mtu = le16toh(qp->attr.mtu);
	struct muster_work work;
	uint64_t length;

	if (qp->sq_next == qp->sq_tail || qp->sq_next - qp->sq_head == MUSTER_QP_FLIGHT_MAX ||
	    nic_qp_sq_read(nic, qp, qp->sq_next, &work) || !may_begin(qp, &work))
		return false;
	*request = (struct nic_request){ .work = work, .psn = qp->next_psn };
	if (oldest_undone(qp) == qp->sq_next)
		qp->progress_us = nic->world->now_us(nic->opaque);
	qp->sq_next++;
	request->status = nic_qp_length(&work, &length) ? check(qp, &work, length) :
							  MUSTER_WC_LOC_QP_OP_ERR;
	if (request->status) {
		qp->halted = true;
		return true;
	}
	request->length = length;
	request->nr_packets = length ? (length + mtu - 1) / mtu : 1;
	qp->next_psn = nic_psn_add(qp->next_psn, request->nr_packets);
	qp->reads += is_question(work.opcode);
	return true;
}

/* In order, as there is room for completions. */
static bool requests_end(struct muster_nic *nic, struct nic_qp *qp)
{
	bool moved = false;

	while (qp->sq_head != qp->sq_next && request_done(qp, request_at(qp, qp->sq_head)) &&
	       nic_cq_has_room(nic, qp->send_cq)) {
		struct nic_request request = *request_at(qp, qp->sq_head);

		qp->reads -= is_question(request.work.opcode) && !!request.nr_packets;
		nic_qp_sent(nic, qp, &request.work, request.status);
		moved = true;
		if (request.status) {
			nic_qp_fail(nic, qp);
			break;
		}
	}
	return moved;
}

/* ---- packets --------------------------------------------------------------- */

static uint8_t packet_opcode(uint8_t opcode)
{
	switch (opcode) {
	case MUSTER_WORK_WRITE:
	case MUSTER_WORK_WRITE_IMM:
		return MUSTER_QP_WRITE;
	case MUSTER_WORK_READ:
		return MUSTER_QP_READ;
	case MUSTER_WORK_CMP_SWAP:
		return MUSTER_QP_CMP_SWAP;
	case MUSTER_WORK_FETCH_ADD:
		return MUSTER_QP_FETCH_ADD;
	default:
		return MUSTER_QP_SEND;
	}
}

static uint16_t packet_flags(const struct muster_work *work, bool first, bool last, bool wanted)
{
	bool imm = work->opcode == MUSTER_WORK_SEND_IMM || work->opcode == MUSTER_WORK_WRITE_IMM;

	return (first ? MUSTER_QP_FIRST : 0) | (last ? MUSTER_QP_LAST : 0) |
	       (last && imm ? MUSTER_QP_IMM : 0) | (last || wanted ? MUSTER_QP_ACK_WANTED : 0) |
	       (last && le16toh(work->flags) & MUSTER_WORK_SOLICITED ? MUSTER_QP_SOLICITED : 0);
}

/* The one that goes next: 0; -EFAULT: its memory is not to be had. */
static int packet_of(struct muster_nic *nic, struct nic_qp *qp, const struct nic_request *request,
		     struct muster_qp_packet *packet, uint8_t *payload)
{
	const struct muster_work *work = &request->work;
	uint32_t mtu = le16toh(qp->attr.mtu), i = nic_psn_diff(qp->send_psn, request->psn);
	uint32_t offset = i * mtu, left = request->length - offset, len = left < mtu ? left : mtu;
	bool question = is_question(work->opcode);

	*packet = nic_qp_packet(nic, qp, packet_opcode(work->opcode));
	packet->psn = htole32(qp->send_psn);
	packet->acked = htole32(qp->expected_psn);
	packet->total = htole32(request->length);
	packet->offset = htole32(work->opcode == MUSTER_WORK_READ ? request->nr_packets : offset);
	packet->flags = htole16(packet_flags(work, i == 0, question || len == left,
					     i % NIC_QP_ACK_EVERY == NIC_QP_ACK_EVERY - 1));
	if (le16toh(packet->flags) & MUSTER_QP_IMM)
		packet->imm = work->imm;
	if (packet->opcode != MUSTER_QP_SEND) {
		packet->remote_addr = work->remote_addr;
		packet->remote_key = work->remote_key;
	}
	if (is_atomic(work->opcode)) {
		packet->compare_add = work->compare_add;
		packet->swap = work->swap;
	}
	if (question)
		return 0;
	packet->length = htole16(len);
	return nic_qp_gather(nic, qp, work, offset, payload, len);
}

/* False: nothing more can go now. */
static bool packet_send(struct muster_nic *nic, struct nic_qp *qp)
{
	struct nic_request *request = request_at(qp, qp->sq_send);
	struct muster_qp_packet packet;
	uint8_t payload[MUSTER_MTU];
	int err;

	if (nic_psn_diff(qp->send_psn, qp->acked_psn) >= NIC_QP_UNACKED_MAX)
		return false;
	if (packet_of(nic, qp, request, &packet, payload)) {
		halt(qp, qp->sq_send, MUSTER_WC_LOC_PROT_ERR);
		return false;
	}
	err = nic_qp_send(nic, qp, qp->incarnation, &packet, payload);
	if (err == -EAGAIN && !nic_qp_blocked(nic, qp))
		return false;
	qp->blocked_us = 0;
	if (err) {
		qp->gone = true;
		return false;
	}
	qp->send_psn = is_question(request->work.opcode) ? end_of(request) :
							   nic_psn_add(qp->send_psn, 1);
	if (qp->send_psn == end_of(request))
		qp->sq_send++;
	return true;
}

/* ---- what comes back ------------------------------------------------------- */

static void acknowledged(struct muster_nic *nic, struct nic_qp *qp, uint32_t psn)
{
	if (nic_psn_diff(psn, qp->acked_psn) <= 0 || nic_psn_diff(psn, qp->next_psn) > 0)
		return;
	qp->acked_psn = psn;
	qp->blocked_us = 0;		/* what was may be among these */
	qp->progress_us = nic->world->now_us(nic->opaque);
	qp->retries = qp->attr.retry_count;
	qp->rnr_retries = qp->attr.rnr_retry;
	if (nic_psn_diff(psn, qp->send_psn) > 0)
		rewind_to(qp, psn);
}

void nic_rc_acknowledged(struct muster_nic *nic, struct nic_qp *qp, uint32_t psn)
{
	if (qp->state != MUSTER_QP_RTS || psn & ~MUSTER_QPN_MASK)
		return;
	acknowledged(nic, qp, psn);
	qp->waiting = true;
	requests_end(nic, qp);
}

/* As InfiniBand encodes it: 1 is 10 us, two codes double it, and 0 is the longest. */
static uint64_t rnr_wait_us(uint8_t timer)
{
	uint32_t code = timer & 31 ? timer & 31 : 32;

	return code == 1 ? 10 : (uint64_t)(code % 2 ? 15 : 10) << code / 2;
}

static void try_again(struct muster_nic *nic, struct nic_qp *qp, uint64_t wait_us)
{
	rewind_to(qp, qp->acked_psn);
	qp->blocked_us = 0;
	qp->progress_us = nic->world->now_us(nic->opaque);
	qp->resume_us = qp->progress_us + wait_us;
}

static void absent(struct muster_nic *nic, struct nic_qp *qp)
{
	uint64_t wait_us = (4096ull << (qp->attr.timeout & 31)) / 1000;

	if (!qp->attr.timeout)		/* verbs say none: what there is then is the deadline */
		wait_us = nic->config.deadline_us;
	if (qp->retries == 0) {
		halt(qp, oldest_undone(qp), MUSTER_WC_RETRY_EXC_ERR);
		return;
	}
	qp->retries--;
	nic_qp_counts(nic, qp)->retries++;
	try_again(nic, qp, wait_us);
}

/* That it was asked was acknowledged; its answer is not to be had any more. */
static void question_refused(struct nic_qp *qp, uint32_t psn)
{
	uint32_t at = find(qp, psn);
	const struct nic_request *request = request_at(qp, at);

	if (at != qp->sq_next && request->psn == psn && is_question(request->work.opcode) &&
	    !request->answered && !request->status)
		halt(qp, at, MUSTER_WC_REM_ACCESS_ERR);
}

static void refused(struct muster_nic *nic, struct nic_qp *qp,
		    const struct muster_qp_packet *packet)
{
	uint32_t psn = le32toh(packet->psn);

	if (packet->nak == MUSTER_NAK_ABSENT) {
		if (!qp->resume_us)
			absent(nic, qp);
		return;
	}
	acknowledged(nic, qp, psn);
	if (nic_psn_diff(psn, qp->acked_psn) < 0 && packet->nak == MUSTER_NAK_ACCESS)
		question_refused(qp, psn);
	if (nic_psn_diff(psn, qp->acked_psn) < 0 || nic_psn_diff(psn, qp->next_psn) >= 0)
		return;
	switch (packet->nak) {
	case MUSTER_NAK_RNR:
		nic_qp_counts(nic, qp)->rnr_in++;
		if (qp->rnr_retries == 0)
			halt(qp, find(qp, psn), MUSTER_WC_RNR_RETRY_EXC_ERR);
		else
			try_again(nic, qp, rnr_wait_us(packet->timer));
		qp->rnr_retries -= qp->rnr_retries && qp->rnr_retries != 7;
		break;
	case MUSTER_NAK_ACCESS:
		halt(qp, find(qp, psn), MUSTER_WC_REM_ACCESS_ERR);
		break;
	case MUSTER_NAK_OPERATION:
		halt(qp, find(qp, psn), MUSTER_WC_REM_OP_ERR);
		break;
	default:
		halt(qp, find(qp, psn), MUSTER_WC_REM_INV_REQ_ERR);
	}
}

/* In whatever order it comes, each byte comes once. */
static void answered(struct muster_nic *nic, struct nic_qp *qp,
		     const struct muster_qp_packet *packet, const void *payload, uint32_t len)
{
	uint32_t at = find(qp, le32toh(packet->psn)), offset = le32toh(packet->offset);
	struct nic_request *request = request_at(qp, at);
	bool atomic = packet->opcode == MUSTER_QP_ATOMIC_DATA;

	if (at == qp->sq_next || request->psn != le32toh(packet->psn) || request->status ||
	    request->answered || !is_question(request->work.opcode) ||
	    atomic != is_atomic(request->work.opcode))
		return;
	if (atomic) {
		payload = &packet->compare_add;
		len = sizeof(packet->compare_add);
		offset = 0;
	}
	if (offset > request->length || len > request->length - request->came ||
	    nic_qp_scatter(nic, qp, &request->work, offset, payload, len)) {
		halt(qp, at, MUSTER_WC_LOC_PROT_ERR);
		return;
	}
	request->came += len;
	request->answered = request->came == request->length;
	if (request->answered)
		acknowledged(nic, qp, end_of(request));
	else
		qp->progress_us = nic->world->now_us(nic->opaque);
}

bool nic_rc_reply(struct muster_nic *nic, struct nic_qp *qp,
		  const struct muster_qp_packet *packet, const void *payload)
{
	if (qp->state != MUSTER_QP_RTS || le32toh(packet->psn) & ~MUSTER_QPN_MASK)
		return false;
	switch (packet->opcode) {
	case MUSTER_QP_ACK:
		acknowledged(nic, qp, le32toh(packet->psn));
		break;
	case MUSTER_QP_NAK:
		refused(nic, qp, packet);
		break;
	default:
		answered(nic, qp, packet, payload, le16toh(packet->length));
	}
	qp->waiting = true;
	return true;
}

/* ---- its turn -------------------------------------------------------------- */

void nic_rc_start(struct muster_nic *nic, struct nic_qp *qp)
{
	qp->next_psn = qp->send_psn = qp->acked_psn = le32toh(qp->attr.sq_psn);
	qp->sq_next = qp->sq_send = qp->sq_head;
	qp->retries = qp->attr.retry_count;
	qp->rnr_retries = qp->attr.rnr_retry;
	qp->progress_us = nic->world->now_us(nic->opaque);
}

/* Nobody says anything; or what was said last has to be waited for. */
static void timers(struct muster_nic *nic, struct nic_qp *qp)
{
	uint64_t now_us = nic->world->now_us(nic->opaque);

	/* From here on the other side is asked again, and has as long as ever to answer. */
	if (qp->resume_us && now_us >= qp->resume_us) {
		qp->resume_us = 0;
		qp->progress_us = now_us;
	}
	if (!qp->resume_us) {
		if (oldest_undone(qp) == qp->sq_next)
			return;
		if (now_us >= qp->progress_us + nic->config.deadline_us)
			absent(nic, qp);
	}
	nic_qps_due(nic, qp->resume_us ? qp->resume_us :
					 qp->progress_us + nic->config.deadline_us);
}

/* The oldest request that is not done was in vain, even if it has not begun. */
static void give_up(struct muster_nic *nic, struct nic_qp *qp)
{
	if (!qp->halted && oldest_undone(qp) == qp->sq_next)
		request_begin(nic, qp);
	halt(qp, oldest_undone(qp), MUSTER_WC_RETRY_EXC_ERR);
}

/* One packet of the request whose turn it is; none of one that has failed, or after it. */
static bool packet_next(struct muster_nic *nic, struct nic_qp *qp)
{
	if (qp->sq_send == qp->sq_next && (qp->halted || !request_begin(nic, qp)))
		return false;
	return !request_at(qp, qp->sq_send)->status && packet_send(nic, qp);
}

bool nic_rc_run(struct muster_nic *nic, struct nic_qp *qp)
{
	bool moved = requests_end(nic, qp);
	int sent = 0;

	if (qp->state != MUSTER_QP_RTS)
		return true;
	timers(nic, qp);
	while (sent < NIC_QP_PACKETS_AT_ONCE && !qp->resume_us && !qp->gone && packet_next(nic, qp))
		sent++;
	if (qp->gone)
		give_up(nic, qp);
	moved |= requests_end(nic, qp);
	if (qp->state == MUSTER_QP_RTS)
		qp->waiting = qp->sq_head != qp->sq_tail;
	return moved || sent;
}
