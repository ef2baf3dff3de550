// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues: their life, their entries, and when whoever sleeps is told. Those of virtual
 * ports say by doorbells what was consumed and that they are armed; those of queue pairs have a
 * record that says so, and can be moderated.
 */
#include "nic_qp.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BAD(field)	(*detail = offsetof(struct muster_admin_command, field), -EINVAL)

/* ---- interrupts ------------------------------------------------------------ */

void nic_cq_notify(struct muster_nic *nic, struct nic_cq *cq)
{
	static const uint8_t noticed = 1;

	if (!cq->armed)
		return;
	cq->armed = false;
	cq->held = 0;
	/* If it cannot be written nobody is there who reads it. */
	if (cq->notice)
		(void)nic_dma_write(nic, cq->notice, &noticed, sizeof(noticed));
	nic->vectors |= 1u << cq->vector;
}

/* False: it cannot be read. A head that is not possible is not believed. */
static bool look(struct muster_nic *nic, struct nic_cq *cq, struct muster_cq_record *record)
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

/* False: it was not armed since. */
static bool arm(struct nic_cq *cq, const struct muster_cq_record *record)
{
	if (le32toh(record->arm) == cq->arms)
		return false;
	cq->arms = le32toh(record->arm);
	cq->armed = true;
	cq->solicited_only = cq->arms & 1;
	return true;
}

/* Armed for what comes after armed_at: if that is there already, tell at once. */
void nic_cq_rung(struct muster_nic *nic, uint32_t id)
{
	struct nic_cq *cq = nic->cqs[id];
	struct muster_cq_record record;

	if (cq && cq->record && look(nic, cq, &record) && arm(cq, &record) &&
	    le32toh(record.armed_at) != cq->tail)
		nic_cq_notify(nic, cq);
}

/*
 * Nobody need ring who has armed it before the entry was there: it is written, then this looks;
 * a process arms, then looks for entries.
 */
static void armed_look(struct muster_nic *nic, struct nic_cq *cq)
{
	struct muster_cq_record record;

	if (cq->armed && !cq->solicited_only)
		return;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (look(nic, cq, &record))
		arm(cq, &record);
}

/* At once, or with more that comes in time. */
static void tell(struct muster_nic *nic, struct nic_cq *cq)
{
	if (!cq->armed)
		return;
	if (!cq->period_us || ++cq->held == cq->count) {
		nic_cq_notify(nic, cq);
		return;
	}
	if (cq->held == 1)
		cq->due_us = nic->world->now_us(nic->opaque) + cq->period_us;
	if (cq->due_us < nic->cqs_due_us)
		nic->cqs_due_us = cq->due_us;
}

/* What is due of one queue; else the step has to come again for it. */
static void held_look(struct muster_nic *nic, struct nic_cq *cq, uint64_t now_us)
{
	if (!cq || !cq->held)
		return;
	if (now_us >= cq->due_us)
		nic_cq_notify(nic, cq);
	else if (cq->due_us < nic->cqs_due_us)
		nic->cqs_due_us = cq->due_us;
}

void nic_cqs_run(struct muster_nic *nic)
{
	uint64_t now_us;

	if (nic->cqs_due_us == UINT64_MAX)
		return;
	now_us = nic->world->now_us(nic->opaque);
	if (now_us >= nic->cqs_due_us) {
		nic->cqs_due_us = UINT64_MAX;
		for (uint32_t id = 0; id < MUSTER_CQS_MAX; id++)
			held_look(nic, nic->cqs[id], now_us);
	}
	nic_qps_due(nic, nic->cqs_due_us);
}

/* ---- entries --------------------------------------------------------------- */

bool nic_cq_has_room(struct muster_nic *nic, uint32_t id)
{
	struct nic_cq *cq = nic->cqs[id];
	struct muster_cq_record record;

	if (cq->tail - cq->head < cq->entries)
		return true;
	if (look(nic, cq, &record) && cq->tail - cq->head < cq->entries)
		return true;
	nic_cq_full(nic, cq);
	return false;
}

void nic_cq_full(struct muster_nic *nic, struct nic_cq *cq)
{
	if (!cq->overrun_told)
		nic_event_owe(nic, &cq->event_owed);
	cq->overrun_told = true;
	nic->refused = true;
}

int nic_cq_put(struct muster_nic *nic, struct nic_cq *cq, struct muster_cqe *entry)
{
	uint32_t at = cq->tail - cq->origin;
	uint64_t addr = cq->base + (at & (cq->entries - 1)) * sizeof(*entry);

	entry->valid = nic_lap_valid(at, cq->entries);
	if (nic_entry_write(nic, addr, entry, sizeof(*entry)))
		return -EIO;
	cq->tail++;
	return 0;
}

int nic_cq_put_work(struct muster_nic *nic, struct nic_cq *cq, const struct muster_wc *wc,
		    bool solicited)
{
	struct muster_cqe entry;

	memcpy(&entry, wc, sizeof(entry));
	if (nic_cq_put(nic, cq, &entry))
		return -EIO;
	armed_look(nic, cq);
	if (wc->status)
		nic_cq_notify(nic, cq);
	else if (!cq->solicited_only || solicited)
		tell(nic, cq);
	return 0;
}

/* ---- life ------------------------------------------------------------------ */

static int create(struct muster_nic *nic, const struct muster_admin_command *cmd, uint32_t *detail)
{
	struct nic_cq cq = {
		.base = le64toh(cmd->cq.base),
		.record = le64toh(cmd->cq.record),
		.notice = le64toh(cmd->cq.notice),
		.entries = le32toh(cmd->cq.entries),
		.vector = le32toh(cmd->cq.vector),
	};
	uint32_t id = le32toh(cmd->cq.id);
	struct nic_cq *made;

	if (cq.base % sizeof(struct muster_cqe))
		return BAD(cq.base);
	if (cq.record % sizeof(struct muster_cq_record))
		return BAD(cq.record);
	if (id >= MUSTER_CQS_MAX)
		return BAD(cq.id);
	if (!nic_entries_valid(cq.entries, MUSTER_CQ_ENTRIES_MAX))
		return BAD(cq.entries);
	if (cq.vector >= MUSTER_MSIX_VECTORS)
		return BAD(cq.vector);
	if (cmd->cq.reserved || !nic_command_ends(cmd, sizeof(cmd->cq)))
		return BAD(cq.reserved);
	if (nic->cqs[id])
		return -EBUSY;
	made = malloc(sizeof(*made));
	if (!made)
		return -ENOMEM;
	*made = cq;
	nic->cqs[id] = made;
	return 0;
}

static int destroy(struct muster_nic *nic, const struct muster_admin_command *cmd, uint32_t *detail)
{
	uint32_t id = le32toh(cmd->id.id);

	if (!nic_command_ends(cmd, sizeof(cmd->id.id)))
		return BAD(id.reserved);
	if (id >= MUSTER_CQS_MAX || !nic->cqs[id])
		return -ENOENT;
	if (nic->cqs[id]->users)
		return -EBUSY;
	free(nic->cqs[id]);
	nic->cqs[id] = NULL;
	return 0;
}

static struct nic_cq *find(const struct muster_nic *nic, uint32_t id)
{
	struct nic_cq *cq = id < MUSTER_CQS_MAX ? nic->cqs[id] : NULL;

	return cq && cq->record ? cq : NULL;
}

/* What is held by the old rule is told: the next to come may be far. */
static int moderate(struct muster_nic *nic, const struct muster_admin_command *cmd, uint32_t *detail)
{
	const struct muster_admin_cq_moderate *c = &cmd->cq_moderate;
	struct nic_cq *cq = find(nic, le32toh(c->id));

	if (!nic_command_ends(cmd, sizeof(*c)))
		return BAD(raw[sizeof(*c)]);
	if (!cq)
		return -ENOENT;
	if (cq->held)
		nic_cq_notify(nic, cq);
	cq->count = le16toh(c->count);
	cq->period_us = le16toh(c->period_us);
	return 0;
}

/* Who reads has the ring before this one until all is read that is there. */
static int resize(struct muster_nic *nic, const struct muster_admin_command *cmd, uint32_t *detail)
{
	const struct muster_admin_cq_resize *c = &cmd->cq_resize;
	struct nic_cq *cq = find(nic, le32toh(c->id));
	uint32_t entries = le32toh(c->entries);
	struct muster_cq_record record;

	if (le64toh(c->base) % sizeof(struct muster_cqe))
		return BAD(cq_resize.base);
	if (!nic_entries_valid(entries, MUSTER_CQ_ENTRIES_MAX))
		return BAD(cq_resize.entries);
	if (!nic_command_ends(cmd, sizeof(*c)))
		return BAD(raw[sizeof(*c)]);
	if (!cq)
		return -ENOENT;
	/* What was rung for before the command was given may be there by now, and counts. */
	nic_qps_run(nic);
	if (!look(nic, cq, &record))
		return -EIO;
	if (cq->tail - cq->head > entries)
		return BAD(cq_resize.entries);
	cq->base = le64toh(c->base);
	cq->entries = entries;
	cq->origin = cq->tail;
	*detail = cq->origin;
	return 0;
}

int nic_cq_command(struct muster_nic *nic, const struct muster_admin_command *cmd,
		   uint32_t *detail)
{
	switch (cmd->opcode) {
	case MUSTER_ADMIN_CQ_CREATE:
		return create(nic, cmd, detail);
	case MUSTER_ADMIN_CQ_DESTROY:
		return destroy(nic, cmd, detail);
	case MUSTER_ADMIN_CQ_RESIZE:
		return resize(nic, cmd, detail);
	default:
		return moderate(nic, cmd, detail);
	}
}
