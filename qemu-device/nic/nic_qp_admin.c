// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The life of queue pairs: the driver's commands that make, change and end them, each checked
 * as a whole before it changes anything.
 */
#include "nic_qp.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BAD(field)	(*detail = offsetof(struct muster_admin_command, field), -EINVAL)

static bool entries_valid(uint32_t entries)
{
	return entries <= MUSTER_QP_ENTRIES_MAX && !(entries & (entries - 1));
}

static bool all_zero(const void *data, size_t len)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < len; i++)
		if (bytes[i])
			return false;
	return true;
}

static struct nic_qp *qp_find(const struct muster_nic *nic, uint32_t number)
{
	struct nic_qp *qp = nic->qps[nic_qp_index(number)];

	return qp && qp->number == number ? qp : NULL;
}

/* The one that it is to receive from; NULL: there is no such one. */
static struct nic_srq *srq_of(const struct muster_nic *nic, const struct muster_admin_qp *c)
{
	uint16_t srq = le16toh(c->srq);

	return srq && srq <= MUSTER_SRQS_MAX ? nic->srqs[srq - 1] : NULL;
}

static bool cq_valid(const struct muster_nic *nic, uint32_t cq)
{
	return cq < MUSTER_CQS_MAX && nic->cqs[cq] && nic->cqs[cq]->record;
}

/* ---- states ---------------------------------------------------------------- */

static bool step_valid(uint8_t from, uint8_t to)
{
	switch (to) {
	case MUSTER_QP_RESET:
	case MUSTER_QP_ERR:
		return true;
	case MUSTER_QP_INIT:
		return from == MUSTER_QP_RESET || from == MUSTER_QP_INIT;
	case MUSTER_QP_RTR:
		return from == MUSTER_QP_INIT;
	case MUSTER_QP_RTS:
		return from == MUSTER_QP_RTR || from == MUSTER_QP_RTS;
	default:
		return false;
	}
}

/* As it was created. The queues are empty, and the process's record says so too. */
static void qp_reset(struct nic_qp *qp)
{
	qp->sq_head = qp->sq_next = qp->sq_send = qp->sq_tail = qp->rq_head = qp->rq_tail = 0;
	qp->blocked_us = qp->resume_us = 0;
	qp->waiting = qp->broken = qp->gone = qp->halted = qp->drained = false;
	qp->incarnation = qp->reads = 0;
	nic_serve_forget(qp);
}

static bool datagram_valid(const struct muster_admin_qp_modify *c)
{
	return !(c->dest_node || c->dest_qp || c->rq_psn || c->sq_psn || c->mtu || c->access ||
		 c->timeout || c->retry_count || c->rnr_retry || c->min_rnr_timer || c->reads ||
		 c->reads_served);
}

/* What is not known yet is 0; to be connected it must be known where to. */
static bool connection_valid(const struct muster_admin_qp_modify *c)
{
	uint32_t mtu = le16toh(c->mtu);

	if (c->qkey || c->access & ~MUSTER_QP_REMOTE || c->timeout > 31 || c->retry_count > 7 ||
	    c->rnr_retry > 7 || c->min_rnr_timer > 31 || c->reads > MUSTER_QP_READS_MAX ||
	    c->reads_served > MUSTER_QP_READS_MAX || le32toh(c->dest_node) >= MUSTER_NODES_MAX ||
	    (le32toh(c->dest_qp) | le32toh(c->rq_psn) | le32toh(c->sq_psn)) & ~MUSTER_QPN_MASK)
		return false;
	if (c->state != MUSTER_QP_RTR && c->state != MUSTER_QP_RTS)
		return true;
	return mtu >= 256 && mtu <= MUSTER_MTU && !(mtu & (mtu - 1));
}

static int modify(struct muster_nic *nic, const struct muster_admin_command *cmd, uint32_t *detail)
{
	const struct muster_admin_qp_modify *c = &cmd->qp_modify;
	struct nic_qp *qp;
	uint8_t from;

	if (!all_zero(c->reserved, sizeof(cmd->raw) - offsetof(struct muster_admin_qp_modify, reserved)))
		return BAD(qp_modify.reserved);
	qp = qp_find(nic, le32toh(c->id));
	if (!qp)
		return -ENOENT;
	if (!step_valid(qp->state, c->state))
		return BAD(qp_modify.state);
	if (qp->type == MUSTER_QP_UD ? !datagram_valid(c) : !connection_valid(c))
		return BAD(qp_modify.dest_node);
	if (c->state == MUSTER_QP_RESET)
		qp_reset(qp);
	from = qp->state;
	qp->attr = *c;
	qp->state = c->state;
	if (qp->state == MUSTER_QP_RTR)
		qp->expected_psn = le32toh(c->rq_psn);
	if (qp->type == MUSTER_QP_RC && qp->state == MUSTER_QP_RTS && from == MUSTER_QP_RTR)
		nic_rc_start(nic, qp);
	qp->waiting = !qp->broken;
	if (qp->state == MUSTER_QP_ERR && !qp->broken)
		nic_qp_fail(nic, qp);
	return 0;
}

/* ---- what is counted ------------------------------------------------------- */

static void count_in(struct muster_nic *nic, struct nic_qp *qp, uint16_t set)
{
	if (set && !nic->qp_count_users[set])
		memset(&nic->qp_counts[set], 0, sizeof(nic->qp_counts[set]));
	nic->qp_count_users[set]++;
	nic->qp_count_users[qp->counted]--;
	qp->counted = set;
}

static int count(struct muster_nic *nic, const struct muster_admin_command *cmd, uint32_t *detail)
{
	struct nic_qp *qp = qp_find(nic, le32toh(cmd->qp_count.id));
	uint32_t set = le32toh(cmd->qp_count.set);

	if (set > MUSTER_QPS_MAX)
		return BAD(qp_count.set);
	if (!nic_command_ends(cmd, sizeof(cmd->qp_count)))
		return BAD(raw[sizeof(cmd->qp_count)]);
	if (!qp)
		return -ENOENT;
	count_in(nic, qp, set);
	return 0;
}

/* ---- life ------------------------------------------------------------------ */

static int create_check(const struct muster_nic *nic, const struct muster_admin_command *cmd,
			uint32_t *detail)
{
	const struct muster_admin_qp *c = &cmd->qp;

	if (!c->record || le64toh(c->record) % sizeof(struct muster_qp_record))
		return BAD(qp.record);
	if (le64toh(c->sq_base) % sizeof(uint64_t))
		return BAD(qp.sq_base);
	if (le64toh(c->rq_base) % sizeof(uint64_t))
		return BAD(qp.rq_base);
	if (le32toh(c->id) & ~MUSTER_QPN_MASK)
		return BAD(qp.id);
	if (!entries_valid(le16toh(c->sq_entries)))
		return BAD(qp.sq_entries);
	if (!entries_valid(le16toh(c->rq_entries)))
		return BAD(qp.rq_entries);
	if (c->type != MUSTER_QP_UD && c->type != MUSTER_QP_RC)
		return BAD(qp.type);
	if (c->signals_all > 1)
		return BAD(qp.signals_all);
	if (c->srq && c->rq_entries)
		return BAD(qp.srq);
	if (!all_zero(c + 1, sizeof(cmd->raw) - sizeof(*c)))
		return BAD(raw[sizeof(*c)]);
	if (!cq_valid(nic, le32toh(c->send_cq)) || !cq_valid(nic, le32toh(c->recv_cq)))
		return -ENOENT;
	if (c->srq && (!srq_of(nic, c) || srq_of(nic, c)->pd != le32toh(c->pd)))
		return -ENOENT;
	return nic->qps[nic_qp_index(le32toh(c->id))] ? -EBUSY : 0;
}

static int create(struct muster_nic *nic, const struct muster_admin_command *cmd, uint32_t *detail)
{
	const struct muster_admin_qp *c = &cmd->qp;
	int err = create_check(nic, cmd, detail);
	struct nic_qp *qp;

	if (err)
		return err;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	if (c->type == MUSTER_QP_RC) {
		qp->requests = calloc(MUSTER_QP_FLIGHT_MAX, sizeof(*qp->requests));
		if (!qp->requests) {
			free(qp);
			return -ENOMEM;
		}
	}
	qp->number = le32toh(c->id);
	qp->pd = le32toh(c->pd);
	qp->send_cq = le32toh(c->send_cq);
	qp->recv_cq = le32toh(c->recv_cq);
	qp->record = le64toh(c->record);
	qp->sq_base = le64toh(c->sq_base);
	qp->rq_base = le64toh(c->rq_base);
	qp->sq_entries = le16toh(c->sq_entries);
	qp->rq_entries = le16toh(c->rq_entries);
	qp->type = c->type;
	qp->signals_all = c->signals_all;
	nic->cqs[qp->send_cq]->users++;
	nic->cqs[qp->recv_cq]->users++;
	qp->srq = srq_of(nic, c);
	if (qp->srq)
		qp->srq->users++;
	nic->qp_count_users[0]++;
	nic->qps[nic_qp_index(qp->number)] = qp;
	nic->qp_ids[nic->nr_qps++] = nic_qp_index(qp->number);
	return 0;
}

static void qp_destroy(struct muster_nic *nic, struct nic_qp *qp)
{
	uint32_t index = nic_qp_index(qp->number);

	nic->cqs[qp->send_cq]->users--;
	nic->cqs[qp->recv_cq]->users--;
	if (qp->srq)
		qp->srq->users--;
	nic->qp_count_users[qp->counted]--;
	nic->qps[index] = NULL;
	for (uint32_t i = 0; i < nic->nr_qps; i++)
		if (nic->qp_ids[i] == index)
			nic->qp_ids[i] = nic->qp_ids[nic->nr_qps - 1];
	nic->nr_qps--;
	nic_serve_forget(qp);
	free(qp->requests);
	free(qp);
}

void nic_qps_destroy(struct muster_nic *nic)
{
	while (nic->nr_qps)
		qp_destroy(nic, nic->qps[nic->qp_ids[0]]);
}

/* QUERY and DESTROY name a queue pair and nothing else. */
static int name(struct muster_nic *nic, const struct muster_admin_command *cmd, uint32_t *detail,
		struct nic_qp **qp)
{
	if (!all_zero(cmd->raw + sizeof(uint32_t), sizeof(cmd->raw) - sizeof(uint32_t)))
		return BAD(id.reserved);
	*qp = qp_find(nic, le32toh(cmd->id.id));
	return *qp ? 0 : -ENOENT;
}

int nic_qp_command(struct muster_nic *nic, const struct muster_admin_command *cmd,
		   uint32_t *detail)
{
	struct nic_qp *qp;
	int err;

	if (cmd->opcode == MUSTER_ADMIN_QP_CREATE)
		return create(nic, cmd, detail);
	if (cmd->opcode == MUSTER_ADMIN_QP_MODIFY)
		return modify(nic, cmd, detail);
	if (cmd->opcode == MUSTER_ADMIN_QP_COUNT)
		return count(nic, cmd, detail);
	err = name(nic, cmd, detail, &qp);
	if (err)
		return err;
	if (cmd->opcode == MUSTER_ADMIN_QP_QUERY)
		*detail = qp->state;
	else
		qp_destroy(nic, qp);
	return 0;
}
