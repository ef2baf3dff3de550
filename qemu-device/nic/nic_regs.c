// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Registers and doorbells: stored atomically by whoever writes them, for the step to
 * find. Only a write to CONTROL acts.
 */
#include "nic_internal.h"

enum { CLOCK_WINDOW_US = 250000 };

#define REG(nic, reg)	((nic)->regs[(reg) / 4])

/* ---- registers ------------------------------------------------------------- */

static uint64_t reg64(struct muster_nic *nic, uint32_t lo)
{
	return (uint64_t)REG(nic, lo + 4) << 32 | REG(nic, lo);
}

/* Take the queues as the registers give them; what is wrong with them is fatal. */
static void enable(struct muster_nic *nic)
{
	uint64_t admin = reg64(nic, MUSTER_REG_ADMIN_BASE_LO);
	uint64_t reply = reg64(nic, MUSTER_REG_ADMIN_REPLY_LO);
	uint64_t event = reg64(nic, MUSTER_REG_EVENT_BASE_LO);
	uint32_t admins = REG(nic, MUSTER_REG_ADMIN_ENTRIES);
	uint32_t events = REG(nic, MUSTER_REG_EVENT_ENTRIES);

	if (!nic->nr_engines || !nic_entries_valid(admins, MUSTER_ADMIN_ENTRIES_MAX) ||
	    !nic_entries_valid(events, MUSTER_EVENT_ENTRIES_MAX) ||
	    admin % sizeof(struct muster_admin_command) ||
	    reply % sizeof(struct muster_admin_reply) || event % sizeof(struct muster_event)) {
		nic_fatal(nic);
		return;
	}
	nic->admin_base = admin;
	nic->admin_reply = reply;
	nic->admin_entries = admins;
	nic->admin_head = 0;
	nic->event_base = event;
	nic->event_entries = events;
	nic->event_tail = 0;
	__atomic_store_n(&REG(nic, MUSTER_REG_ADMIN_TAIL), 0, __ATOMIC_RELAXED);
	__atomic_store_n(&REG(nic, MUSTER_REG_EVENT_HEAD), 0, __ATOMIC_RELAXED);
	__atomic_fetch_or(&nic->state, MUSTER_STATE_ENABLED, __ATOMIC_RELEASE);
	nic_uplink_greet(nic);
}

static void control_write(struct muster_nic *nic, uint32_t value)
{
	if (value & MUSTER_CONTROL_RESET) {
		muster_nic_reset(nic);
		return;
	}
	if (nic->state & MUSTER_STATE_FATAL)
		return;
	if ((value & MUSTER_CONTROL_ENABLE) && !(nic->state & MUSTER_STATE_ENABLED))
		enable(nic);
	else if (!(value & MUSTER_CONTROL_ENABLE) && (nic->state & MUSTER_STATE_ENABLED))
		nic_quiesce(nic);
}

uint64_t muster_nic_reg_read(struct muster_nic *nic, uint64_t addr, unsigned int size)
{
	uint32_t state = __atomic_load_n(&nic->state, __ATOMIC_ACQUIRE);

	if (size != 4 || addr % 4)
		return 0;
	switch (addr) {
	case MUSTER_REG_MAGIC:
		return MUSTER_REG_MAGIC_VALUE;
	case MUSTER_REG_VERSION:
		return MUSTER_DEVICE_VERSION;
	case MUSTER_REG_NODE:
		return nic->config.node;
	case MUSTER_REG_INCARNATION:
		return __atomic_load_n(&nic->incarnation, __ATOMIC_RELAXED);
	case MUSTER_REG_CONTROL:
		return state & MUSTER_STATE_ENABLED ? MUSTER_CONTROL_ENABLE : 0;
	case MUSTER_REG_STATUS:
		return state;
	case MUSTER_REG_CAPABILITIES:
		return MUSTER_ENGINE_CAPABILITIES | MUSTER_CAP_QP | MUSTER_CAP_VECTOR_NAMES;
	case MUSTER_REG_ADMIN_BASE_LO ... MUSTER_REG_EVENT_ENTRIES:
		return __atomic_load_n(&REG(nic, addr), __ATOMIC_RELAXED);
	default:
		return 0;
	}
}

static void bell(struct muster_nic *nic, uint64_t *rung, uint32_t id)
{
	__atomic_fetch_or(&rung[id / 64], 1ull << id % 64, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&nic->doorbells_count, 1, __ATOMIC_RELAXED);
	nic->world->kick(nic->opaque);
}

void muster_nic_reg_write(struct muster_nic *nic, uint64_t addr, uint64_t value,
			  unsigned int size)
{
	if (size != 4 || addr % 4)
		return;
	switch (addr) {
	case MUSTER_REG_CONTROL:
		control_write(nic, value);
		break;
	case MUSTER_REG_ADMIN_BASE_LO ... MUSTER_REG_EVENT_ENTRIES:
		if (!(__atomic_load_n(&nic->state, __ATOMIC_ACQUIRE) & MUSTER_STATE_ENABLED))
			__atomic_store_n(&REG(nic, addr), value, __ATOMIC_RELAXED);
		break;
	case MUSTER_REG_ADMIN_TAIL:
		__atomic_store_n(&REG(nic, addr), value, __ATOMIC_RELEASE);
		nic->world->kick(nic->opaque);
		break;
	case MUSTER_REG_EVENT_HEAD:
		__atomic_store_n(&REG(nic, addr), value, __ATOMIC_RELEASE);
		nic->world->kick(nic->opaque);
		break;
	case MUSTER_REG_BELLS + MUSTER_BELL_QP:
		bell(nic, nic->rung_qps, value % MUSTER_QPS_MAX);
		break;
	case MUSTER_REG_BELLS + MUSTER_BELL_CQ:
		bell(nic, nic->rung_cqs, value % MUSTER_CQS_MAX);
		break;
	}
}

/*
 * Whoever rings may be held up on the way, so the least lag counts; but of late, as a guest that
 * got no processor for long loses time. Only the owner of the port rings, one at a time if
 * it wants to be right.
 */
static void clock_rung(struct nic_doorbell *doorbell, uint32_t now_us, uint32_t clock_us)
{
	uint32_t lag = now_us - clock_us, passed = now_us - doorbell->lag_since;
	uint32_t least = __atomic_load_n(&doorbell->lag_us, __ATOMIC_RELAXED);

	if (!doorbell->clocked || passed >= 2 * CLOCK_WINDOW_US) {
		least = doorbell->lag_next = lag;
		doorbell->lag_since = now_us;
	} else if (passed >= CLOCK_WINDOW_US) {
		least = doorbell->lag_next;
		doorbell->lag_next = lag;
		doorbell->lag_since = now_us;
	}
	if ((int32_t)(lag - doorbell->lag_next) < 0)
		doorbell->lag_next = lag;
	__atomic_store_n(&doorbell->lag_us, (int32_t)(lag - least) < 0 ? lag : least, __ATOMIC_RELAXED);
	__atomic_store_n(&doorbell->clocked, 1, __ATOMIC_RELEASE);
}

void muster_nic_doorbell(struct muster_nic *nic, uint64_t addr, uint64_t value,
			 unsigned int size)
{
	uint32_t vp = addr / MUSTER_DOORBELL_STRIDE, rung;
	struct nic_doorbell *doorbell;
	uint32_t *word;

	if (size != 4 || addr % 4 || vp >= MUSTER_VPS_MAX)
		return;
	doorbell = &nic->doorbells[vp];
	switch (addr % MUSTER_DOORBELL_STRIDE) {
	case MUSTER_DOORBELL_DQ_TAIL:
		word = &doorbell->dq_tail;
		rung = NIC_RUNG_DQ;
		break;
	case MUSTER_DOORBELL_RQ_HEAD:
		word = &doorbell->rq_head;
		rung = NIC_RUNG_RQ;
		break;
	case MUSTER_DOORBELL_CQ_HEAD:
		word = &doorbell->cq_head;
		rung = NIC_RUNG_CQ;
		break;
	case MUSTER_DOORBELL_CQ_ARM:
		word = &doorbell->cq_head;
		rung = NIC_RUNG_ARM;
		break;
	case MUSTER_DOORBELL_LOOK:
		word = &doorbell->look;
		rung = NIC_RUNG_LOOK;
		break;
	case MUSTER_DOORBELL_CLOCK:
		clock_rung(doorbell, (uint32_t)nic->world->now_us(nic->opaque), (uint32_t)value);
		return;
	default:
		return;
	}
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
	__atomic_fetch_or(&doorbell->rung, rung, __ATOMIC_RELEASE);
	__atomic_fetch_or(&nic->rung[vp / 64], 1ull << vp % 64, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&nic->doorbells_count, 1, __ATOMIC_RELAXED);
	nic->world->kick(nic->opaque);
}
