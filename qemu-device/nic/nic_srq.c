// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receives that queue pairs share. A receive is its taker's at once, and its place in the ring
 * free again, which the record says: those of one queue complete in any order. Nobody rings;
 * the ring is looked at when a receive is needed.
 */
#include "nic_qp.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#define BAD(field)	(*detail = offsetof(struct muster_admin_command, field), -EINVAL)

/* ---- receives -------------------------------------------------------------- */

/* Its queue pairs find out when they need a receive. */
static void srq_break(struct muster_nic *nic, struct nic_srq *srq)
{
	if (!srq->broken)
		nic_event_owe(nic, &srq->error_owed);
	srq->broken = true;
}

/* What the process says of it now. */
static void look(struct muster_nic *nic, struct nic_srq *srq)
{
	struct muster_srq_record record;

	if (srq->broken)
		return;
	if (nic_dma_read(nic, srq->record, &record, offsetof(struct muster_srq_record, reserved)) ||
	    le32toh(record.tail) - srq->head > srq->entries) {
		srq_break(nic, srq);
		return;
	}
	srq->tail = le32toh(record.tail);
}

int nic_srq_read(struct muster_nic *nic, struct nic_srq *srq, struct muster_work *work)
{
	uint64_t place = srq->head & (srq->entries - 1);

	if (srq->head == srq->tail)
		look(nic, srq);
	if (srq->broken)
		return -EIO;
	if (srq->head == srq->tail)
		return -ENOENT;
	if (!nic_receive_read(nic, srq->base + place * sizeof(struct muster_receive), work))
		return 0;
	srq_break(nic, srq);
	return -EIO;
}

/* Once: who wants to hear it again says so again. */
static void limit_look(struct muster_nic *nic, struct nic_srq *srq)
{
	if (srq->tail - srq->head < srq->limit)
		look(nic, srq);
	if (srq->broken || srq->tail - srq->head >= srq->limit)
		return;
	srq->limit = 0;
	nic_event_owe(nic, &srq->limit_owed);
}

void nic_srq_take(struct muster_nic *nic, struct nic_srq *srq)
{
	const __le32 head = htole32(++srq->head);

	if (nic_dma_write(nic, srq->record + offsetof(struct muster_srq_record, head), &head,
			  sizeof(head)))
		srq_break(nic, srq);
	limit_look(nic, srq);
}

bool nic_srqs_pay(struct muster_nic *nic)
{
	for (uint32_t id = 0; id < MUSTER_SRQS_MAX && nic->nr_srqs; id++) {
		struct nic_srq *srq = nic->srqs[id];

		if (srq && (!nic_event_pay(nic, &srq->error_owed, MUSTER_EVENT_SRQ_ERROR, id) ||
			    !nic_event_pay(nic, &srq->limit_owed, MUSTER_EVENT_SRQ_LIMIT, id)))
			return false;
	}
	return true;
}

/* ---- life ------------------------------------------------------------------ */

static int create_check(const struct muster_nic *nic, const struct muster_admin_command *cmd,
			uint32_t *detail)
{
	const struct muster_admin_srq *c = &cmd->srq;
	uint32_t entries = le16toh(c->entries);

	if (!c->record || le64toh(c->record) % sizeof(struct muster_srq_record))
		return BAD(srq.record);
	if (le64toh(c->base) % sizeof(uint64_t))
		return BAD(srq.base);
	if (le32toh(c->id) >= MUSTER_SRQS_MAX)
		return BAD(srq.id);
	if (!entries || entries > MUSTER_QP_ENTRIES_MAX || entries & (entries - 1))
		return BAD(srq.entries);
	if (!nic_command_ends(cmd, offsetof(struct muster_admin_srq, reserved)))
		return BAD(srq.reserved);
	return nic->srqs[le32toh(c->id)] ? -EBUSY : 0;
}

static int create(struct muster_nic *nic, const struct muster_admin_command *cmd, uint32_t *detail)
{
	const struct muster_admin_srq *c = &cmd->srq;
	int err = create_check(nic, cmd, detail);
	struct nic_srq *srq;

	if (err)
		return err;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	srq->id = le32toh(c->id);
	srq->pd = le32toh(c->pd);
	srq->record = le64toh(c->record);
	srq->base = le64toh(c->base);
	srq->entries = le16toh(c->entries);
	nic->srqs[srq->id] = srq;
	nic->nr_srqs++;
	return 0;
}

static int limit_set(struct muster_nic *nic, const struct muster_admin_command *cmd,
		     struct nic_srq *srq, uint32_t *detail)
{
	if (!nic_command_ends(cmd, sizeof(cmd->srq_limit)))
		return BAD(raw[sizeof(cmd->srq_limit)]);
	if (le32toh(cmd->srq_limit.limit) > srq->entries)
		return BAD(srq_limit.limit);
	srq->limit = le32toh(cmd->srq_limit.limit);
	limit_look(nic, srq);
	return 0;
}

static void srq_free(struct muster_nic *nic, uint32_t id)
{
	nic->nr_srqs -= !!nic->srqs[id];
	free(nic->srqs[id]);
	nic->srqs[id] = NULL;
}

void nic_srqs_destroy(struct muster_nic *nic)
{
	for (uint32_t id = 0; id < MUSTER_SRQS_MAX && nic->nr_srqs; id++)
		srq_free(nic, id);
}

int nic_srq_command(struct muster_nic *nic, const struct muster_admin_command *cmd,
		    uint32_t *detail)
{
	uint32_t id = le32toh(cmd->id.id);
	struct nic_srq *srq;

	if (cmd->opcode == MUSTER_ADMIN_SRQ_CREATE)
		return create(nic, cmd, detail);
	srq = id < MUSTER_SRQS_MAX ? nic->srqs[id] : NULL;
	if (!srq)
		return -ENOENT;
	if (cmd->opcode == MUSTER_ADMIN_SRQ_LIMIT)
		return limit_set(nic, cmd, srq, detail);
	if (!nic_command_ends(cmd, sizeof(cmd->id.id)))
		return BAD(id.reserved);
	if (cmd->opcode == MUSTER_ADMIN_SRQ_QUERY)
		*detail = srq->limit;
	else if (srq->users)
		return -EBUSY;
	else
		srq_free(nic, id);
	return 0;
}
