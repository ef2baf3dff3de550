// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The NIC's life (power-on, quiesce, reset), and the step that turns its
 * wheels: admin queue, wire, rings, engine. Only the step, and a write to
 * CONTROL, act.
 */
#include "nic_internal.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	STEP_PACKETS = 64,	/* taken from the wire in one step */
	REFUSED_WAIT_US = 100,	/* a full ring or wire says nothing when it has room again */
	UNPLUGGED_WAIT_US = 10000,	/* at most so long; who puts the cable back kicks us */
};

/* ---- guest memory ---------------------------------------------------------- */

int nic_dma_read(struct muster_nic *nic, uint64_t addr, void *buf, uint32_t len)
{
	__atomic_fetch_add(&nic->counts.dma_read_bytes, len, __ATOMIC_RELAXED);
	return nic->world->dma_read(nic->opaque, addr, buf, len);
}

int nic_dma_write(struct muster_nic *nic, uint64_t addr, const void *buf, uint32_t len)
{
	__atomic_fetch_add(&nic->counts.dma_write_bytes, len, __ATOMIC_RELAXED);
	return nic->world->dma_write(nic->opaque, addr, buf, len);
}

int nic_entry_write(struct muster_nic *nic, uint64_t addr, const void *entry, uint32_t len)
{
	uint32_t body = len - sizeof(uint32_t);

	if (nic_dma_write(nic, addr, entry, body))
		return -EIO;
	__atomic_thread_fence(__ATOMIC_RELEASE);
	return nic_dma_write(nic, addr + body, (const uint8_t *)entry + body, sizeof(uint32_t));
}

void nic_fatal(struct muster_nic *nic)
{
	__atomic_fetch_or(&nic->state, MUSTER_STATE_FATAL, __ATOMIC_RELEASE);
	nic->vectors |= 1;
}

/*
 * Records have the time when something came in, or a step began. Who records switches that
 * while we run: the engine hears of it here, so that none has the time of an earlier one.
 */
static bool trace_time(struct muster_nic *nic)
{
	struct muster_trace *trace = nic->trace && nic->trace->on ? nic->trace : NULL;

	if (trace) {
		trace->now = nic->world->now_us(nic->opaque) * 1000;
		trace = nic_trace_lasts(trace, trace->now) ? trace : NULL;
	}
	nic_engines_trace(nic, trace);
	return trace;
}

/* ---- packets --------------------------------------------------------------- */

void nic_packet_take(struct muster_nic *nic, const struct muster_packet *packet, const void *payload,
		     uint32_t len)
{
	struct muster_engine *engine;

	if (packet->type == MUSTER_PACKET_QP) {
		nic_qp_receive(nic, packet, payload, len);
		return;
	}
	engine = nic_engine_of(nic, le16toh(packet->dst_vp));
	if (trace_time(nic))
		muster_engine_receive_recorded(engine, packet, payload, len);
	else
		muster_engine_receive(engine, packet, payload, len);
}

static bool loopback_run(struct muster_nic *nic)
{
	bool moved = nic->nr_loopback;

	for (uint32_t left = nic->nr_loopback; left; left--) {
		struct nic_loopback_packet *p = nic_loopback_take(nic);

		nic_packet_take(nic, &p->packet, p->payload, le16toh(p->packet.length));
		free(p);
	}
	return moved;
}

static void wire_receive(void *owner, const struct muster_packet *packet, const void *payload,
			 uint32_t len)
{
	nic_packet_take(owner, packet, payload, len);
}

static void wire_met(void *owner, uint32_t node, uint32_t present)
{
	struct muster_nic *nic = owner;

	nic_engines_present(nic, node, present);
}

static void wire_lost(void *owner, uint32_t node, uint32_t present)
{
	struct muster_nic *nic = owner;

	nic_engines_present(nic, node, present);
	nic_qps_lost(nic, node, present);
	nic_event_lost(nic, node);
	if (nic->config.uplink && node == nic->config.uplink)
		nic_uplink_lost(nic);
}

/* Those for the same engine at once. */
static void wire_expect(void *owner, const struct muster_packet *const *packets, uint32_t nr)
{
	struct muster_nic *nic = owner;
	struct muster_engine *engine;

	for (uint32_t i = 0, next; i < nr; i = next) {
		engine = nic_engine_of(nic, le16toh(packets[i]->dst_vp));
		for (next = i + 1; next < nr && nic_engine_of(nic, le16toh(packets[next]->dst_vp)) == engine;)
			next++;
		muster_engine_expect(engine, packets + i, next - i);
	}
}

static const struct muster_wire_events wire_events = {
	.receive = wire_receive,
	.expect = wire_expect,
	.lost = wire_lost,
	.met = wire_met,
	.needs = nic_needs,
};

static const struct muster_wire_events uplink_events = {
	.take = nic_uplink_take,
	.expect = wire_expect,
	.lost = wire_lost,
	.met = wire_met,
	.needs = nic_needs,
};

/* ---- sending --------------------------------------------------------------- */

static int to_others(struct muster_nic *nic, uint32_t incarnation,
		     const struct muster_packet *packet, const void *payload)
{
	int err;

	if (!nic->wire)
		return -EHOSTUNREACH;
	if (!nic_link_up(nic)) {
		nic->unplugged = true;
		return -EAGAIN;
	}
	if (nic->config.uplink)		/* which life is meant the packet's receiver sees */
		err = nic->wire->ops->send_by(nic->wire, nic->config.uplink, nic->config.uplink_life, packet,
					      payload);
	else
		err = nic->wire->ops->send(nic->wire, incarnation, packet, payload);
	nic->refused |= err == -EAGAIN;
	return err;
}

static int to_itself(struct muster_nic *nic, const struct muster_packet *packet,
		     const void *payload)
{
	int err = nic_loopback_send(nic, packet, payload);

	nic->refused |= err == -EAGAIN;
	return err;
}

int nic_packet_send(struct muster_nic *nic, uint32_t incarnation,
		    const struct muster_packet *packet, const void *payload)
{
	uint64_t at_ns = nic_dump_now_ns(nic);
	int err;

	if (le32toh(packet->dst_node) == nic->config.node)
		err = to_itself(nic, packet, payload);
	else
		err = to_others(nic, incarnation, packet, payload);
	if (!err)
		nic_dump_sent(nic, at_ns, packet, payload);
	return err;
}

/* ---- life ------------------------------------------------------------------ */

static int inside_open(struct muster_nic *nic, char *why, size_t why_len)
{
	int err = nic_engines_open(nic, why, why_len);

	if (!err)
		err = nic_uplink_open(nic, why, why_len);
	if (err)
		return err;
	err = muster_wire_socket_open(nic->config.wire, nic->config.node, nic->incarnation,
				      nic->config.deadline_us,
				      nic->config.uplink ? &uplink_events : &wire_events, nic, &nic->wire,
				      why, why_len);
	if (err)
		nic->wire = NULL;
	else
		muster_wire_socket_cable(nic->wire, nic_link_up(nic));
	return err;
}

static void inside_close(struct muster_nic *nic)
{
	if (nic->wire)
		nic->wire->ops->close(nic->wire);
	nic_uplink_close(nic);
	nic_engines_close(nic);
	nic->wire = NULL;
}

void nic_quiesce(struct muster_nic *nic)
{
	while (nic->nr_vps)
		nic_vp_destroy(nic, nic->vps[nic->vp_ids[0]]);
	nic_qps_destroy(nic);
	nic_srqs_destroy(nic);
	nic_admin_drop(nic);
	for (uint32_t i = 0; i < MUSTER_CQS_MAX; i++) {
		free(nic->cqs[i]);
		nic->cqs[i] = NULL;
	}
	for (uint32_t i = 1; i <= MUSTER_MRS_MAX && nic->mr_pages; i++)
		if (nic->mrs[i])
			nic_mr_destroy(nic, i);
	nic_loopback_drop(nic);
	nic->vectors = 0;
	__atomic_fetch_and(&nic->state, ~MUSTER_STATE_ENABLED, __ATOMIC_RELEASE);
}

int muster_nic_create(const struct muster_nic_config *config,
		      const struct muster_nic_world *world, void *opaque,
		      struct muster_nic **result, char *why, size_t why_len)
{
	struct muster_nic *nic;
	int err;

	if (config->node >= MUSTER_NODE_AGGREGATION) {
		snprintf(why, why_len, "from %u on nodes are aggregation nodes, and no NICs",
			 MUSTER_NODE_AGGREGATION);
		return -EINVAL;
	}
	nic = calloc(1, sizeof(*nic));
	if (!nic)
		return -ENOMEM;
	nic->config = *config;
	nic->world = world;
	nic->opaque = opaque;
	nic->incarnation = config->incarnation ? config->incarnation : 1;
	nic->loopback_last = &nic->loopback;
	err = nic_dump_open(nic, why, why_len);
	if (!err)
		err = inside_open(nic, why, why_len);
	if (err) {
		inside_close(nic);
		nic_dump_close(nic);
		free(nic);
		return err;
	}
	*result = nic;
	return 0;
}

void muster_nic_close(struct muster_nic *nic)
{
	nic->closed = true;
	nic_quiesce(nic);
	inside_close(nic);
	nic_fatal(nic);
}

void muster_nic_destroy(struct muster_nic *nic)
{
	muster_nic_close(nic);
	nic_dump_close(nic);
	free(nic);
}

/* 0 is nobody's. */
static uint32_t incarnation_after(uint32_t incarnation)
{
	return incarnation + 1 ? incarnation + 1 : 1;
}

void muster_nic_reset(struct muster_nic *nic)
{
	char why[256];

	if (nic->closed)
		return;
	nic_quiesce(nic);
	inside_close(nic);
	for (size_t i = 0; i < sizeof(nic->regs) / sizeof(nic->regs[0]); i++)
		__atomic_store_n(&nic->regs[i], 0, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < MUSTER_VPS_MAX / 64; i++)
		__atomic_store_n(&nic->rung[i], 0, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < MUSTER_QPS_MAX / 64; i++)
		__atomic_store_n(&nic->rung_qps[i], 0, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < MUSTER_CQS_MAX / 64; i++)
		__atomic_store_n(&nic->rung_cqs[i], 0, __ATOMIC_RELAXED);
	memset(&nic->counts, 0, sizeof(nic->counts));
	memset(nic->qp_counts, 0, sizeof(nic->qp_counts));
	__atomic_store_n(&nic->doorbells_count, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&nic->incarnation, incarnation_after(nic->incarnation), __ATOMIC_RELAXED);
	__atomic_fetch_and(&nic->state, MUSTER_STATE_LINK_DOWN, __ATOMIC_RELEASE);
	if (inside_open(nic, why, sizeof(why))) {
		inside_close(nic);
		nic_fatal(nic);
	}
}

void muster_nic_link_set(struct muster_nic *nic, bool up)
{
	if (up == nic_link_up(nic))
		return;
	__atomic_fetch_xor(&nic->state, MUSTER_STATE_LINK_DOWN, __ATOMIC_RELEASE);
	if (nic->wire)
		muster_wire_socket_cable(nic->wire, up);
	nic_event_owe(nic, &nic->link_owed);
	nic->world->kick(nic->opaque);
}

/* ---- step ------------------------------------------------------------------ */

static void interrupts_raise(struct muster_nic *nic)
{
	for (; nic->vectors; nic->vectors &= nic->vectors - 1) {
		nic->counts.interrupts++;
		nic->world->interrupt(nic->opaque, __builtin_ctz(nic->vectors));
	}
}

static bool wire_run(struct muster_nic *nic)
{
	return nic->wire &&
	       nic->wire->ops->poll(nic->wire, nic->world->now_us(nic->opaque), STEP_PACKETS) > 0;
}

/*
 * Rings before the engine, so that it has all there is; and after it, because it
 * may have made room for descriptors that it did not take before.
 */
static bool wheels_turn(struct muster_nic *nic, bool *more)
{
	bool moved = nic_admin_run(nic);

	moved |= wire_run(nic);
	moved |= loopback_run(nic);
	moved |= nic_rings_run(nic);
	trace_time(nic);
	*more = nic_engines_step(nic);
	moved |= nic_rings_run(nic);
	moved |= nic_qps_run(nic);
	nic_events_run(nic);
	return moved || nic->nr_loopback;
}

/* Who waits for the cable alone looks less and less often. */
static uint64_t rest_us(struct muster_nic *nic)
{
	uint64_t us = 2 * nic->rest_us;

	if (nic->refused || us < REFUSED_WAIT_US)
		us = REFUSED_WAIT_US;
	nic->rest_us = us < UNPLUGGED_WAIT_US ? us : UNPLUGGED_WAIT_US;
	return nic->rest_us;
}

uint64_t muster_nic_step(struct muster_nic *nic)
{
	uint64_t wait_us, looks_us, due, now;
	bool moved = false, more = false;

	nic->refused = nic->unplugged = false;
	if ((nic->state & ~MUSTER_STATE_LINK_DOWN) == MUSTER_STATE_ENABLED)
		moved = wheels_turn(nic, &more);
	else
		moved = wire_run(nic);
	looks_us = nic_looks_run(nic);
	interrupts_raise(nic);
	if (moved || (more && !nic->refused && !nic->unplugged)) {
		nic->rest_us = 0;
		return 0;
	}
	wait_us = nic->refused || nic->unplugged ? rest_us(nic) : looks_us;
	due = nic->wire ? nic->wire->ops->deadline_us(nic->wire) : UINT64_MAX;
	if (nic->nr_qps && nic->qps_due_us < due)
		due = nic->qps_due_us;
	now = nic->world->now_us(nic->opaque);
	if (due <= now)
		return 0;
	return due != UINT64_MAX && due - now < wait_us ? due - now : wait_us;
}

int muster_nic_fd(const struct muster_nic *nic)
{
	return nic->wire ? nic->wire->ops->fd(nic->wire) : -1;
}
