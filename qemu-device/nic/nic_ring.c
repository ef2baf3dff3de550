// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A virtual port's rings in guest memory: descriptors in, completions and
 * point-to-point packets out; and the event ring. Indices count up modulo 2^32;
 * the guest's own are believed only as far as they are possible. A ring that
 * cannot be read or written stops its VP and nothing else.
 */
#include "nic_internal.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	DESCS_AT_ONCE = 8,	/* read together; a sequence is seldom longer */
	SEQUENCES_AT_ONCE = 8,	/* of one VP, before the others have their turn */
	ONE_PIECE_SHIFT = 32,	/* a part that any ring fits into */
	PAGE = 4096,		/* parts begin with one */
};

/* ---- events ---------------------------------------------------------------- */

/* False: there is no room for it. */
static bool event_write(struct muster_nic *nic, uint8_t kind, uint32_t id)
{
	uint32_t head = __atomic_load_n(&nic->regs[MUSTER_REG_EVENT_HEAD / 4], __ATOMIC_ACQUIRE);
	uint32_t at = nic->event_tail & (nic->event_entries - 1);
	struct muster_event event = { .kind = kind, .id = htole32(id) };

	if (!(nic->state & MUSTER_STATE_ENABLED) || nic->event_tail - head >= nic->event_entries)
		return false;
	event.valid = nic_lap_valid(nic->event_tail, nic->event_entries);
	if (nic_entry_write(nic, nic->event_base + at * sizeof(event), &event, sizeof(event))) {
		nic_fatal(nic);
		return true;
	}
	nic->event_tail++;
	nic->vectors |= 1;
	return true;
}

/* Of a node; when there is no room it is dropped: the driver only logs it. */
void nic_event_lost(struct muster_nic *nic, uint32_t node)
{
	if (!event_write(nic, MUSTER_EVENT_PEER_LOST, node))
		nic->counts.dropped++;
}

void nic_event_owe(struct muster_nic *nic, bool *owed)
{
	*owed = true;
	nic->events_owed = true;
}

bool nic_event_pay(struct muster_nic *nic, bool *owed, uint8_t kind, uint32_t id)
{
	if (*owed && !event_write(nic, kind, id))
		return false;
	*owed = false;
	return true;
}

/* True when all are told. */
static bool events_pay(struct muster_nic *nic)
{
	for (uint32_t i = 0; i < nic->nr_vps; i++) {
		struct nic_vp *vp = nic->vps[nic->vp_ids[i]];

		if (!nic_event_pay(nic, &vp->event_owed, MUSTER_EVENT_VP_ERROR, vp->id))
			return false;
	}
	for (uint32_t id = 0; id < MUSTER_CQS_MAX; id++) {
		struct nic_cq *cq = nic->cqs[id];

		if (cq && !nic_event_pay(nic, &cq->event_owed, MUSTER_EVENT_CQ_OVERRUN, id))
			return false;
	}
	return nic_event_pay(nic, &nic->link_owed, MUSTER_EVENT_LINK, 0) && nic_qps_pay(nic) &&
	       nic_srqs_pay(nic);
}

void nic_events_run(struct muster_nic *nic)
{
	if (nic->events_owed)
		nic->events_owed = !events_pay(nic);
}

/* ---- virtual ports --------------------------------------------------------- */

static uint32_t nr_rq_parts(const struct nic_vp *vp)
{
	uint64_t bytes = vp->rq_entries * sizeof(struct muster_recv_slot);

	return (bytes + (1ull << vp->rq_part_shift) - 1) >> vp->rq_part_shift;
}

/* Addresses come from the guest: DMA refuses what is not its memory. */
static int rq_list_read(struct muster_nic *nic, const struct nic_vp *vp)
{
	uint32_t nr = nr_rq_parts(vp);

	if (nic_dma_read(nic, vp->rq_base, vp->rq_parts, nr * sizeof(*vp->rq_parts)))
		return -EIO;
	for (uint32_t i = 0; i < nr; i++) {
		vp->rq_parts[i] = le64toh(vp->rq_parts[i]);
		if (vp->rq_parts[i] % PAGE)
			return -EINVAL;
	}
	return 0;
}

/* A ring in one piece is one of one part. */
static int rq_open(struct muster_nic *nic, struct nic_vp *vp)
{
	bool listed = vp->rq_part_shift;
	int err;

	if (!listed)
		vp->rq_part_shift = ONE_PIECE_SHIFT;
	vp->rq_parts = malloc(nr_rq_parts(vp) * sizeof(*vp->rq_parts));
	if (!vp->rq_parts)
		return -ENOMEM;
	vp->rq_parts[0] = vp->rq_base;
	err = listed ? rq_list_read(nic, vp) : 0;
	if (err)
		free(vp->rq_parts);
	return err;
}

int nic_vp_create(struct muster_nic *nic, const struct nic_vp *config)
{
	struct nic_doorbell *doorbell = &nic->doorbells[config->id];
	struct nic_vp *vp;
	int err;

	vp = malloc(sizeof(*vp));
	if (!vp)
		return -ENOMEM;
	*vp = *config;
	err = rq_open(nic, vp);
	if (err)
		goto err_vp;
	err = muster_engine_vp_open(nic_engine_of(nic, config->id), config->id);
	if (err)
		goto err_rq;
	/* What was rung before there was a VP means nothing. */
	__atomic_store_n(&doorbell->rung, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&doorbell->clocked, 0, __ATOMIC_RELAXED);
	nic->cqs[vp->cq]->users++;
	nic->vps[vp->id] = vp;
	nic->vp_ids[nic->nr_vps++] = vp->id;
	return 0;

err_rq:
	free(vp->rq_parts);
err_vp:
	free(vp);
	return err;
}

void nic_vp_destroy(struct muster_nic *nic, struct nic_vp *vp)
{
	nic_look_close(nic, vp);
	muster_engine_vp_close(nic_engine_of(nic, vp->id), vp->id);
	nic->vps[vp->id] = NULL;
	nic->cqs[vp->cq]->users--;
	for (uint32_t i = 0; i < nic->nr_vps; i++)
		if (nic->vp_ids[i] == vp->id)
			nic->vp_ids[i] = nic->vp_ids[nic->nr_vps - 1];
	nic->nr_vps--;
	free(vp->rq_parts);
	free(vp);
}

static void vp_stop(struct muster_nic *nic, struct nic_vp *vp, uint32_t why)
{
	struct muster_vp_status status = { .dq_head = htole32(vp->dq_head),
					   .error = htole32(why) };

	if (vp->error)
		return;
	vp->error = why;
	vp->dq_waiting = false;
	/* If this cannot be written either, the event tells it. */
	(void)nic_dma_write(nic, vp->status_base, &status, sizeof(status));
	nic_event_owe(nic, &vp->event_owed);
}

/* ---- completions ----------------------------------------------------------- */

int nic_complete(struct muster_nic *nic, uint16_t id, const struct muster_cqe *cqe)
{
	struct nic_vp *vp = nic->vps[id];
	struct muster_cqe entry = *cqe;
	struct nic_cq *cq;

	if (!vp || vp->error)
		return 0;	/* nobody is there to read it */
	cq = nic->cqs[vp->cq];
	if (cq->tail - cq->head >= cq->entries) {
		nic_cq_full(nic, cq);
		return -EAGAIN;
	}
	if (nic_cq_put(nic, cq, &entry)) {
		vp_stop(nic, vp, MUSTER_STATUS_MEMORY);
		return 0;
	}
	nic_cq_notify(nic, cq);
	return 0;
}

/* ---- point to point -------------------------------------------------------- */

/* Where a byte of the receive ring lies, and how many more lie behind it. */
static uint64_t rq_find(const struct nic_vp *vp, uint64_t offset, uint64_t *run)
{
	uint64_t size = 1ull << vp->rq_part_shift, at = offset & (size - 1);

	*run = size - at;
	return vp->rq_parts[offset >> vp->rq_part_shift] + at;
}

static int rq_write(struct muster_nic *nic, const struct nic_vp *vp, uint64_t offset,
		    const uint8_t *data, uint32_t len)
{
	while (len) {
		uint64_t run, addr = rq_find(vp, offset, &run);
		uint32_t piece = run < len ? run : len;

		if (nic_dma_write(nic, addr, data, piece))
			return -EIO;
		offset += piece;
		data += piece;
		len -= piece;
	}
	return 0;
}

/* A slot's packet, with the word that says that it is there, is never in two parts. */
_Static_assert(sizeof(struct muster_recv_slot) % offsetof(struct muster_recv_slot, payload) == 0 &&
		       PAGE % offsetof(struct muster_recv_slot, payload) == 0,
	       "aligned");

int nic_deliver(struct muster_nic *nic, uint16_t id, const struct muster_packet *packet,
		const void *payload)
{
	struct nic_vp *vp = nic->vps[id];
	uint32_t length = le16toh(packet->length);
	struct muster_recv_slot head;
	uint64_t offset, run;

	if (!vp || vp->error || length > MUSTER_MTU || vp->rq_tail - vp->rq_head >= vp->rq_entries)
		return -ENOSPC;
	offset = (vp->rq_tail & (vp->rq_entries - 1)) * sizeof(head);
	memset(&head, 0, offsetof(struct muster_recv_slot, payload));
	head.packet = *packet;
	head.valid = nic_lap_valid(vp->rq_tail, vp->rq_entries);
	if (rq_write(nic, vp, offset + offsetof(struct muster_recv_slot, payload), payload, length) ||
	    nic_entry_write(nic, rq_find(vp, offset, &run), &head,
			    offsetof(struct muster_recv_slot, payload))) {
		vp_stop(nic, vp, MUSTER_STATUS_MEMORY);
		return -ENOSPC;
	}
	vp->rq_tail++;
	nic_cq_notify(nic, nic->cqs[vp->cq]);
	return 0;
}

/* ---- descriptors ----------------------------------------------------------- */

/* Descriptors [from, from + nr) of the ring, which may wrap. */
static int descs_read(struct muster_nic *nic, const struct nic_vp *vp, uint32_t from,
		      struct muster_desc *descs, uint32_t nr)
{
	while (nr) {
		uint32_t at = from & (vp->dq_entries - 1);
		uint32_t run = vp->dq_entries - at < nr ? vp->dq_entries - at : nr;

		if (nic_dma_read(nic, vp->dq_base + at * sizeof(*descs), descs,
				 run * sizeof(*descs)))
			return -EIO;
		from += run;
		descs += run;
		nr -= run;
	}
	return 0;
}

/*
 * The next whole sequence, or single point-to-point descriptor, copied: how
 * many descriptors; 0 if its end is not there yet; -EIO; -EINVAL for one that
 * does not begin with CH or does not end.
 */
static int sequence_fetch(struct muster_nic *nic, const struct nic_vp *vp,
			  struct muster_desc *descs)
{
	uint32_t there = vp->dq_tail - vp->dq_head, have = 0;

	while (have < there && have < MUSTER_SEQ_DESCS_MAX) {
		uint32_t nr = there - have;

		if (nr > DESCS_AT_ONCE)
			nr = DESCS_AT_ONCE;
		if (descs_read(nic, vp, vp->dq_head + have, descs + have, nr))
			return -EIO;
		for (uint32_t end = have + nr; have < end; have++) {
			uint16_t flags = le16toh(descs[have].flags);

			if (have == 0 && !(flags & MUSTER_DESC_C))
				return 1;
			if (!(flags & MUSTER_DESC_C) || (have == 0) != !!(flags & MUSTER_DESC_CH))
				return -EINVAL;
			if (flags & MUSTER_DESC_CT)
				return have + 1;
		}
	}
	return have == MUSTER_SEQ_DESCS_MAX ? -EINVAL : 0;
}

/* The engine took nothing of it: the poster learns which descriptor was wrong. */
static int sequence_refuse(struct muster_nic *nic, const struct nic_vp *vp,
			   const struct muster_desc *descs, uint32_t nr, uint32_t bad)
{
	const struct muster_desc *last = &descs[nr - 1];
	bool collective = le16toh(last->flags) & MUSTER_DESC_C;
	struct muster_cqe cqe = {
		.cookie = last->cookie,
		.context = last->context,
		.kind = collective ? MUSTER_CQE_SEQUENCE : MUSTER_CQE_SEND,
		.status = MUSTER_STATUS_DESCRIPTOR,
		.culprit = htole32(MUSTER_CULPRIT_NONE),
		.bad = bad,
		.signature = last->signature,
		.vp = htole16(vp->id),
		.job = last->job,
	};

	return nic_complete(nic, vp->id, &cqe);
}

/* One sequence from the ring to the engine; false when there is none to take now. */
static bool sequence_post(struct muster_nic *nic, struct nic_vp *vp)
{
	struct muster_desc descs[MUSTER_SEQ_DESCS_MAX + DESCS_AT_ONCE];
	uint32_t bad = 0;
	int nr, err;

	nr = sequence_fetch(nic, vp, descs);
	if (nr < 0)
		vp_stop(nic, vp, nr == -EIO ? MUSTER_STATUS_MEMORY : MUSTER_STATUS_DESCRIPTOR);
	if (nr <= 0) {
		vp->dq_waiting = false;
		return false;
	}
	err = muster_engine_post(nic_engine_of(nic, vp->id), vp->id, descs, nr, &bad);
	if (err && err != -EAGAIN)
		err = sequence_refuse(nic, vp, descs, nr, bad);
	if (err == -EAGAIN)
		return false;
	vp->dq_head += nr;
	return true;
}

static bool dq_run(struct muster_nic *nic, struct nic_vp *vp)
{
	uint32_t before = vp->dq_head;
	__le32 head;

	for (int i = 0; i < SEQUENCES_AT_ONCE && vp->dq_waiting; i++)
		if (vp->dq_head == vp->dq_tail || !sequence_post(nic, vp))
			break;
	if (vp->dq_head == vp->dq_tail)
		vp->dq_waiting = false;
	if (vp->dq_head == before || vp->error)
		return false;
	head = htole32(vp->dq_head);
	if (nic_dma_write(nic, vp->status_base, &head, sizeof(head)))
		vp_stop(nic, vp, MUSTER_STATUS_MEMORY);
	return true;
}

/* ---- doorbells ------------------------------------------------------------- */

static void rung_dq(struct muster_nic *nic, struct nic_vp *vp, uint32_t tail)
{
	if (tail - vp->dq_head > vp->dq_entries) {
		vp_stop(nic, vp, MUSTER_STATUS_DESCRIPTOR);
		return;
	}
	vp->dq_tail = tail;
	vp->dq_waiting = true;
	nic->waiting[vp->id / 64] |= 1ull << vp->id % 64;
	nic->waiting_words |= 1u << vp->id / 64;
}

/*
 * A head that is not possible is not believed. Armed with something unseen already:
 * tell at once, or it would be told never.
 */
static void rung_cq(struct muster_nic *nic, struct nic_vp *vp, uint32_t head, bool arm)
{
	struct nic_cq *cq = nic->cqs[vp->cq];

	if (head != cq->head && head - cq->head <= cq->tail - cq->head) {
		cq->head = head;
		cq->overrun_told = false;
	}
	if (!arm)
		return;
	cq->armed = true;
	if (cq->tail != cq->head || vp->rq_tail != vp->rq_head)
		nic_cq_notify(nic, cq);
}

static void rung_take(struct muster_nic *nic, uint32_t id)
{
	struct nic_doorbell *doorbell = &nic->doorbells[id];
	uint32_t rung = __atomic_exchange_n(&doorbell->rung, 0, __ATOMIC_ACQUIRE);
	uint32_t rq_head = __atomic_load_n(&doorbell->rq_head, __ATOMIC_RELAXED);
	struct nic_vp *vp = nic->vps[id];

	if (!vp || vp->error)
		return;
	if ((rung & NIC_RUNG_RQ) && rq_head - vp->rq_head <= vp->rq_tail - vp->rq_head)
		vp->rq_head = rq_head;
	if (rung & (NIC_RUNG_CQ | NIC_RUNG_ARM))
		rung_cq(nic, vp, __atomic_load_n(&doorbell->cq_head, __ATOMIC_RELAXED),
			rung & NIC_RUNG_ARM);
	if (rung & NIC_RUNG_LOOK)
		nic_look_open(nic, vp, __atomic_load_n(&doorbell->look, __ATOMIC_RELAXED));
	if (rung & NIC_RUNG_DQ)
		rung_dq(nic, vp, __atomic_load_n(&doorbell->dq_tail, __ATOMIC_RELAXED));
}

/* Feed the engine from a ring in which there was something, if it is still there. */
static bool waiting_run(struct muster_nic *nic, uint32_t id)
{
	struct nic_vp *vp = nic->vps[id];
	bool moved = vp && vp->dq_waiting && dq_run(nic, vp);

	if (!vp || !vp->dq_waiting)
		nic->waiting[id / 64] &= ~(1ull << id % 64);
	if (!nic->waiting[id / 64])
		nic->waiting_words &= ~(1u << id / 64);
	return moved;
}

/* Take what was rung, then feed the engine; true if anything moved. Idle ports cost nothing. */
bool nic_rings_run(struct muster_nic *nic)
{
	bool moved = false;

	for (uint32_t word = 0; word < MUSTER_VPS_MAX / 64; word++) {
		uint64_t bits;

		if (!__atomic_load_n(&nic->rung[word], __ATOMIC_RELAXED))
			continue;
		bits = __atomic_exchange_n(&nic->rung[word], 0, __ATOMIC_ACQUIRE);
		moved = true;
		for (; bits; bits &= bits - 1)
			rung_take(nic, word * 64 + __builtin_ctzll(bits));
	}
	for (uint32_t words = nic->waiting_words; words; words &= words - 1) {
		uint32_t word = __builtin_ctz(words);

		for (uint64_t bits = nic->waiting[word]; bits; bits &= bits - 1)
			moved |= waiting_run(nic, word * 64 + __builtin_ctzll(bits));
	}
	return moved;
}
