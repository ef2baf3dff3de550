// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A queue pair's queues in guest memory: work requests in, completions out, and the bytes
 * that requests name. Each request is copied before it is looked at.
 */
#include "nic_qp.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/* ---- queues ---------------------------------------------------------------- */

void nic_qp_look(struct muster_nic *nic, struct nic_qp *qp)
{
	struct muster_qp_record record;

	if (nic_dma_read(nic, qp->record, &record, offsetof(struct muster_qp_record, reserved)) ||
	    le32toh(record.sq_tail) - qp->sq_head > qp->sq_entries ||
	    (qp->requests && qp->state == MUSTER_QP_RTS &&
	     le32toh(record.sq_tail) - qp->sq_head < qp->sq_next - qp->sq_head) ||
	    le32toh(record.rq_tail) - qp->rq_head > qp->rq_entries) {
		nic_qp_break(nic, qp);
		return;
	}
	qp->sq_tail = le32toh(record.sq_tail);
	qp->rq_tail = le32toh(record.rq_tail);
}

static int work_read(struct muster_nic *nic, struct nic_qp *qp, uint64_t base, uint32_t at,
		     struct muster_work *work)
{
	if (!nic_dma_read(nic, base + at * sizeof(*work), work, sizeof(*work)))
		return 0;
	nic_qp_break(nic, qp);
	return -EIO;
}

int nic_qp_sq_read(struct muster_nic *nic, struct nic_qp *qp, uint32_t at, struct muster_work *work)
{
	return work_read(nic, qp, qp->sq_base, at & (qp->sq_entries - 1), work);
}

/* Nobody rings for a receive: it is looked for when it is needed. */
int nic_qp_rq_read(struct muster_nic *nic, struct nic_qp *qp, struct muster_work *work)
{
	if (qp->rq_head == qp->rq_tail)
		nic_qp_look(nic, qp);
	if (qp->broken)
		return -EIO;
	if (qp->rq_head == qp->rq_tail)
		return -ENOENT;
	return work_read(nic, qp, qp->rq_base, qp->rq_head & (qp->rq_entries - 1), work);
}

/* ---- memory ---------------------------------------------------------------- */

bool nic_qp_length(const struct muster_work *work, uint64_t *length)
{
	*length = le32toh(work->inline_len);
	if (le16toh(work->flags) & MUSTER_WORK_INLINE)
		return !work->nr_sges && *length <= MUSTER_QP_INLINE_MAX;
	if (*length || work->nr_sges > MUSTER_QP_SGES_MAX)
		return false;
	for (int i = 0; i < work->nr_sges; i++)
		*length += le32toh(work->sges[i].length);
	return true;
}

/* The longest piece from offset on that is in one range. NULL: there is none. */
static const struct muster_sge *sge_at(const struct muster_work *work, uint32_t *offset)
{
	for (int i = 0; i < work->nr_sges; i++) {
		if (*offset < le32toh(work->sges[i].length))
			return &work->sges[i];
		*offset -= le32toh(work->sges[i].length);
	}
	return NULL;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

int nic_qp_gather(struct muster_nic *nic, const struct nic_qp *qp, const struct muster_work *work,
		  uint32_t offset, void *buf, uint32_t len)
{
	if (le16toh(work->flags) & MUSTER_WORK_INLINE) {
		memcpy(buf, work->data + offset, len);
		return 0;
	}
	for (uint32_t piece; len; len -= piece, offset += piece, buf = (uint8_t *)buf + piece) {
		uint32_t in = offset;
		const struct muster_sge *sge = sge_at(work, &in);

		if (!sge)
			return -EFAULT;
		piece = least(len, le32toh(sge->length) - in);
		if (nic_mr_load(nic, qp->pd, le32toh(sge->key), MUSTER_MR_READ,
				le64toh(sge->addr) + in, buf, piece))
			return -EFAULT;
	}
	return 0;
}

int nic_qp_scatter(struct muster_nic *nic, const struct nic_qp *qp, const struct muster_work *work,
		   uint32_t offset, const void *buf, uint32_t len)
{
	for (uint32_t piece; len; len -= piece, offset += piece, buf = (const uint8_t *)buf + piece) {
		uint32_t in = offset;
		const struct muster_sge *sge = sge_at(work, &in);

		if (!sge)
			return -EFAULT;
		piece = least(len, le32toh(sge->length) - in);
		if (nic_mr_store(nic, qp->pd, le32toh(sge->key), MUSTER_MR_WRITE,
				 le64toh(sge->addr) + in, buf, piece))
			return -EFAULT;
	}
	return 0;
}

/* ---- completions ----------------------------------------------------------- */

/* False: it cannot be read. A head that is not possible is not believed. */
static bool cq_look(struct muster_nic *nic, struct nic_cq *cq, struct muster_cq_record *record)
{
	uint32_t head;

	if (nic_dma_read(nic, cq->record, record, offsetof(struct muster_cq_record, reserved)))
		return false;
	head = le32toh(record->head);
	if (head != cq->head && head - cq->head <= cq->tail - cq->head) {
		cq->head = head;
		cq->overrun_told = false;
	}
	return true;
}

bool nic_cq_has_room(struct muster_nic *nic, uint32_t id)
{
	struct nic_cq *cq = nic->cqs[id];
	struct muster_cq_record record;

	if (cq->tail - cq->head < cq->entries)
		return true;
	if (cq_look(nic, cq, &record) && cq->tail - cq->head < cq->entries)
		return true;
	nic_cq_full(nic, cq);
	return false;
}

/* Armed for what comes after armed_at: if that is there already, tell at once. */
void nic_cq_rung(struct muster_nic *nic, uint32_t id)
{
	struct nic_cq *cq = nic->cqs[id];
	struct muster_cq_record record;

	if (!cq || !cq->record || !cq_look(nic, cq, &record) || le32toh(record.arm) == cq->arms)
		return;
	cq->arms = le32toh(record.arm);
	cq->armed = true;
	cq->solicited_only = cq->arms & 1;
	if (le32toh(record.armed_at) != cq->tail)
		nic_cq_notify(nic, cq);
}

static void complete(struct muster_nic *nic, struct nic_qp *qp, uint32_t id, struct muster_wc *wc,
		     bool solicited)
{
	struct nic_cq *cq = nic->cqs[id];
	struct muster_cqe entry;

	wc->qp = htole32(qp->number);
	wc->kind = MUSTER_CQE_WORK;
	memcpy(&entry, wc, sizeof(entry));
	if (nic_cq_put(nic, cq, &entry)) {
		nic_qp_break(nic, qp);
		return;
	}
	if (!cq->solicited_only || solicited || wc->status)
		nic_cq_notify(nic, cq);
}

static uint8_t wc_opcode(uint8_t opcode)
{
	switch (opcode) {
	case MUSTER_WORK_WRITE:
	case MUSTER_WORK_WRITE_IMM:
		return MUSTER_WC_WRITE;
	case MUSTER_WORK_READ:
		return MUSTER_WC_READ;
	case MUSTER_WORK_CMP_SWAP:
		return MUSTER_WC_CMP_SWAP;
	case MUSTER_WORK_FETCH_ADD:
		return MUSTER_WC_FETCH_ADD;
	default:
		return MUSTER_WC_SEND;
	}
}

void nic_qp_sent(struct muster_nic *nic, struct nic_qp *qp, const struct muster_work *work,
		 uint8_t status)
{
	struct muster_wc wc = {
		.wr_id = work->wr_id,
		.opcode = wc_opcode(work->opcode),
		.status = status,
		.index = htole32(qp->sq_head),
	};

	qp->sq_head++;
	if (status || qp->signals_all || le16toh(work->flags) & MUSTER_WORK_SIGNALED)
		complete(nic, qp, qp->send_cq, &wc, false);
}

void nic_qp_received(struct muster_nic *nic, struct nic_qp *qp, struct muster_wc wc,
		     bool solicited)
{
	wc.index = htole32(qp->rq_head++);
	complete(nic, qp, qp->recv_cq, &wc, solicited);
}

/* Requests before receives; what has no room for its completion waits for it. */
bool nic_qp_flush(struct muster_nic *nic, struct nic_qp *qp)
{
	struct muster_work work;
	int left = NIC_QP_FLUSHED_AT_ONCE;

	for (; left && !qp->broken && qp->sq_head != qp->sq_tail; left--) {
		if (!nic_cq_has_room(nic, qp->send_cq) ||
		    nic_qp_sq_read(nic, qp, qp->sq_head, &work))
			return left < NIC_QP_FLUSHED_AT_ONCE;
		nic_qp_sent(nic, qp, &work, MUSTER_WC_WR_FLUSH_ERR);
	}
	for (; left && !qp->broken && qp->rq_head != qp->rq_tail; left--) {
		if (!nic_cq_has_room(nic, qp->recv_cq) || nic_qp_rq_read(nic, qp, &work))
			return left < NIC_QP_FLUSHED_AT_ONCE;
		nic_qp_received(nic, qp, (struct muster_wc){ .wr_id = work.wr_id,
				.opcode = MUSTER_WC_RECV, .status = MUSTER_WC_WR_FLUSH_ERR }, false);
	}
	if (left)
		qp->waiting = false;
	return left < NIC_QP_FLUSHED_AT_ONCE;
}
