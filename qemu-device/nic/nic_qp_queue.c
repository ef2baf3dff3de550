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

/* A queue of it cannot be read or written, or makes no sense: nothing of it is read any more. */
static void qp_break(struct muster_nic *nic, struct nic_qp *qp)
{
	qp->broken = true;
	qp->state = MUSTER_QP_ERR;
	qp->waiting = false;
	nic_event_owe(nic, &qp->error_owed);
}

void nic_qp_look(struct muster_nic *nic, struct nic_qp *qp)
{
	struct muster_qp_record record;

	if (nic_dma_read(nic, qp->record, &record, offsetof(struct muster_qp_record, reserved)) ||
	    le32toh(record.sq_tail) - qp->sq_head > qp->sq_entries ||
	    (qp->requests && qp->state == MUSTER_QP_RTS &&
	     le32toh(record.sq_tail) - qp->sq_head < qp->sq_next - qp->sq_head) ||
	    le32toh(record.rq_tail) - qp->rq_head > qp->rq_entries) {
		qp_break(nic, qp);
		return;
	}
	qp->sq_tail = le32toh(record.sq_tail);
	qp->rq_tail = le32toh(record.rq_tail);
}

void nic_qp_fail(struct muster_nic *nic, struct nic_qp *qp)
{
	const __le32 failed = htole32(1);

	qp->state = MUSTER_QP_ERR;
	qp->waiting = true;
	if (nic_dma_write(nic, qp->record + offsetof(struct muster_qp_record, failed), &failed,
			  sizeof(failed))) {
		qp_break(nic, qp);
		return;
	}
	/* In this order: a receive is found here, or whoever has posted it sees that it rings. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	nic_qp_look(nic, qp);
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/*
 * What a request has beside its first range, of sges_max that fit there; one that says more than it
 * can is refused later.
 */
static uint32_t bytes_behind(const struct muster_work *work, uint32_t sges_max)
{
	uint32_t bytes = least(work->nr_sges, sges_max) * sizeof(work->sges[0]);

	if (le16toh(work->flags) & MUSTER_WORK_INLINE)
		bytes = least(le32toh(work->inline_len), MUSTER_QP_INLINE_MAX);
	return bytes > sizeof(work->sges[0]) ? bytes - sizeof(work->sges[0]) : 0;
}

/* Most have one range, or few bytes: so much is read at once, and then what else there is. */
static int work_read(struct muster_nic *nic, uint64_t addr, struct muster_work *work)
{
	const uint32_t first = offsetof(struct muster_work, sges[1]);
	uint32_t behind;

	memset(work, 0, sizeof(*work));
	if (nic_dma_read(nic, addr, work, first))
		return -EIO;
	behind = bytes_behind(work, MUSTER_QP_SGES_MAX);
	return behind ? nic_dma_read(nic, addr + first, (uint8_t *)work + first, behind) : 0;
}

int nic_receive_read(struct muster_nic *nic, uint64_t addr, struct muster_work *work)
{
	const uint32_t first = offsetof(struct muster_receive, sges[1]);
	struct muster_receive receive;
	uint32_t behind;

	if (nic_dma_read(nic, addr, &receive, first))
		return -EIO;
	*work = (struct muster_work){ .wr_id = receive.wr_id, .nr_sges = receive.nr_sges };
	if (work->nr_sges > MUSTER_QP_RECEIVE_SGES_MAX)
		work->nr_sges = UINT8_MAX;	/* too many for a request, too */
	work->sges[0] = receive.sges[0];
	behind = bytes_behind(work, MUSTER_QP_RECEIVE_SGES_MAX);
	return behind ? nic_dma_read(nic, addr + first, &work->sges[1], behind) : 0;
}

int nic_qp_sq_read(struct muster_nic *nic, struct nic_qp *qp, uint32_t at, struct muster_work *work)
{
	uint64_t place = at & (qp->sq_entries - 1);

	if (!work_read(nic, qp->sq_base + place * sizeof(*work), work))
		return 0;
	qp_break(nic, qp);
	return -EIO;
}

/* Nobody rings for a receive: it is looked for when it is needed. */
int nic_qp_rq_read(struct muster_nic *nic, struct nic_qp *qp, struct muster_work *work)
{
	uint64_t place = qp->rq_head & (qp->rq_entries - 1);

	if (qp->srq)
		return nic_srq_read(nic, qp->srq, work);
	if (qp->rq_head == qp->rq_tail)
		nic_qp_look(nic, qp);
	if (qp->broken)
		return -EIO;
	if (qp->rq_head == qp->rq_tail)
		return -ENOENT;
	if (!nic_receive_read(nic, qp->rq_base + place * sizeof(struct muster_receive), work))
		return 0;
	qp_break(nic, qp);
	return -EIO;
}

/* Its own stays in the queue until it completes, so that it can still be flushed there. */
void nic_qp_rq_take(struct muster_nic *nic, struct nic_qp *qp)
{
	if (qp->srq)
		nic_srq_take(nic, qp->srq);
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

static void complete(struct muster_nic *nic, struct nic_qp *qp, uint32_t id, struct muster_wc *wc,
		     bool solicited)
{
	wc->qp = htole32(qp->number);
	wc->kind = MUSTER_CQE_WORK;
	if (nic_cq_put_work(nic, nic->cqs[id], wc, solicited))
		qp_break(nic, qp);
}

/* A request or a receive; well: those that have ended so. */
static void ended(struct muster_nic *nic, const struct nic_qp *qp, uint8_t status, uint64_t *well)
{
	if (!status)
		++*well;
	else if (status != MUSTER_WC_WR_FLUSH_ERR)
		nic_qp_counts(nic, qp)->errors++;
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
	ended(nic, qp, status, &nic_qp_counts(nic, qp)->requests);
	if (status || qp->signals_all || le16toh(work->flags) & MUSTER_WORK_SIGNALED)
		complete(nic, qp, qp->send_cq, &wc, false);
}

void nic_qp_received(struct muster_nic *nic, struct nic_qp *qp, struct muster_wc wc,
		     bool solicited)
{
	if (!qp->srq)
		wc.index = htole32(qp->rq_head++);
	ended(nic, qp, wc.status, &nic_qp_counts(nic, qp)->receives);
	complete(nic, qp, qp->recv_cq, &wc, solicited);
}

/* What it took of a queue that it shares: nothing else there is its own. False: not now. */
static bool taken_flush(struct muster_nic *nic, struct nic_qp *qp)
{
	if (qp->receive.begun) {
		if (!nic_cq_has_room(nic, qp->recv_cq))
			return false;
		qp->receive.begun = false;
		nic_qp_received(nic, qp, (struct muster_wc){ .wr_id = qp->receive.work.wr_id,
				.opcode = MUSTER_WC_RECV, .status = MUSTER_WC_WR_FLUSH_ERR }, false);
	}
	if (!qp->drained)
		nic_event_owe(nic, &qp->drained_owed);
	qp->drained = true;
	return true;
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
	if (left && (!qp->srq || qp->broken || taken_flush(nic, qp)))
		qp->waiting = false;
	return left < NIC_QP_FLUSHED_AT_ONCE;
}
