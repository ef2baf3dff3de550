/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of the NIC share: nic.c (life, step), nic_engines.c, nic_regs.c (registers, doorbells), nic_admin.c
 * (commands), nic_counters.c, nic_ring.c (a VP's rings, events), nic_cq.c (completion queues), nic_mr.c (memory
 * regions), nic_qp*.c and nic_srq.c (queue pairs), nic_uplink.c (at a network of switches), nic_loopback.c, nic_look.c
 * (what the host sees of processes in the guest), nic_dump.c (packets in a file). Fields marked "any thread" are atomic;
 * all else belongs to the stepping caller.
 */
#ifndef MUSTER_NIC_INTERNAL_H
#define MUSTER_NIC_INTERNAL_H

#include <endian.h>
#include <stdbool.h>

#include "engine.h"
#include "nic.h"
#include "wire.h"

/* A VP's doorbells as last rung: any thread. */
struct nic_doorbell {
	uint32_t dq_tail;
	uint32_t rq_head;
	uint32_t cq_head;
	uint32_t look;		/* key */
	uint32_t lag_us;	/* of the guest's clock behind ours, modulo 2^32: the least of late */
	uint32_t lag_next;	/* the least since */
	uint32_t lag_since;	/* this time of ours, modulo 2^32 */
	uint32_t clocked;	/* not 0: it is known */
	uint32_t rung;		/* NIC_RUNG_* */
};

#define NIC_RUNG_DQ	0x1
#define NIC_RUNG_RQ	0x2
#define NIC_RUNG_CQ	0x4
#define NIC_RUNG_ARM	0x8
#define NIC_RUNG_LOOK	0x10

struct nic_cq {
	uint64_t base;
	uint64_t record;	/* of queue pairs; 0: it is for VPs */
	uint64_t notice;	/* a byte that says whom an interrupt is for; 0: none does */
	uint32_t entries;
	uint32_t vector;
	uint32_t head;		/* consumed, as the guest says */
	uint32_t tail;		/* written */
	uint32_t origin;	/* count of the entry that was the first in this ring */
	uint32_t users;		/* VPs; or queues of queue pairs */
	uint32_t arms;		/* as the record last said */
	uint32_t count, period_us;	/* of completions that one interrupt is for */
	uint32_t held;		/* of these so far, while it is armed, */
	uint64_t due_us;	/* to be told then at the latest */
	bool armed;
	bool solicited_only;	/* armed for these */
	bool overrun_told;	/* since the head last moved */
	bool event_owed;	/* CQ_OVERRUN, when there is room for it */
};

struct nic_vp {
	uint16_t id;
	uint32_t pd;
	uint32_t cq;
	uint64_t dq_base;
	uint64_t rq_base;	/* of the ring, or of the list of its parts in guest memory */
	uint64_t *rq_parts;	/* copied from there */
	uint64_t status_base;
	uint32_t dq_entries;
	uint32_t rq_entries;
	uint8_t rq_part_shift;
	uint32_t dq_head;	/* consumed */
	uint32_t dq_tail;	/* as the guest says */
	uint32_t rq_head;	/* given back, as the guest says */
	uint32_t rq_tail;	/* written */
	uint32_t error;		/* enum muster_status; not 0: stopped */
	bool dq_waiting;	/* has descriptors that the engine has not taken yet */
	bool event_owed;	/* VP_ERROR, when there is room for it */
	struct nic_look *look;	/* NULL: its owner shows nothing */
};

/* A context whose members are read, watched and added, some in each step. */
struct nic_opening {
	struct muster_context_config config;
	uint64_t addr;			/* of the members in guest memory */
	uint32_t read;			/* members copied and watched */
	uint32_t added;			/* to the engine's context */
	uint32_t lost;			/* the first that could not be watched; MUSTER_CULPRIT_NONE */
	bool begun;			/* the engine's context is there */
	struct muster_member members[];
};

struct nic_mr {
	uint64_t iova;
	uint64_t length;
	uint64_t life;			/* differs from region to region; keys come round */
	uint32_t pd;
	uint32_t first_offset;
	uint32_t nr_pages;
	uint8_t page_shift;
	uint8_t access;
	uint32_t nr_read;		/* pages read so far, */
	uint64_t list;			/* from here in guest memory, */
	bool in_parts;			/* or from where the addresses that are here say */
	uint64_t pages[];
};

/* Of struct muster_device_counters those that are counted here. */
struct nic_counts {
	uint64_t interrupts;
	uint64_t admin_commands;
	uint64_t dma_read_bytes;
	uint64_t dma_write_bytes;
	uint64_t dropped;
};

/* As struct muster_qp_counters. */
struct nic_qp_counts {
	uint64_t requests, receives;
	uint64_t packets_out, packets_in;
	uint64_t bytes_out, bytes_in;
	uint64_t retries;
	uint64_t rnr_out, rnr_in;
	uint64_t dropped;
	uint64_t errors;
};

struct nic_loopback_packet {
	struct nic_loopback_packet *next;
	struct muster_packet packet;
	uint8_t payload[];
};

struct muster_nic {
	struct muster_nic_config config;
	const struct muster_nic_world *world;
	void *opaque;
	struct muster_engine *engines[MUSTER_UNITS_MAX];
	bool engine_more[MUSTER_UNITS_MAX];	/* its step left something to do */
	uint32_t nr_engines;			/* 0 as long as it is dead */
	bool side_by_side;			/* several of them step just now */
	bool tracing;				/* they write records, one at a time */
	struct muster_wire *wire;	/* NULL: the node cannot be reached until the next reset */
	uint64_t *gone;			/* by the uplink: nodes that cannot be reached, as bits; */
	bool cut;			/* nobody can */

	uint32_t regs[MUSTER_REG_EVENT_HEAD / 4 + 1];	/* any thread; as the guest wrote them */
	uint32_t state;			/* any thread: MUSTER_STATE_* */
	uint32_t incarnation;		/* any thread */
	struct nic_doorbell doorbells[MUSTER_VPS_MAX];
	uint64_t rung[MUSTER_VPS_MAX / 64];	/* any thread: VPs to look at */
	uint64_t waiting[MUSTER_VPS_MAX / 64];	/* and those with dq_waiting, or that had */
	uint32_t waiting_words;			/* which of these are not 0 */
	_Static_assert(MUSTER_VPS_MAX / 64 <= 32, "a bit each");
	uint64_t rung_qps[MUSTER_QPS_MAX / 64];	/* any thread: whose record to look at */
	uint64_t rung_cqs[MUSTER_CQS_MAX / 64];
	uint64_t doorbells_count;	/* any thread */

	/* taken from the registers when the device was enabled */
	uint64_t admin_base;
	uint64_t admin_reply;
	uint32_t admin_entries;
	uint32_t admin_head;
	struct muster_admin_command command;	/* the one that runs */
	struct nic_opening *opening;		/* a CONTEXT_OPEN that is not finished; or NULL */
	struct nic_mr *registering;		/* an MR_REGISTER that is not finished; or NULL */
	uint64_t event_base;
	uint32_t event_entries;
	uint32_t event_tail;
	bool events_owed;		/* by some VP or CQ, or of the link: */
	bool link_owed;

	struct nic_cq *cqs[MUSTER_CQS_MAX];
	struct nic_vp *vps[MUSTER_VPS_MAX];
	struct nic_srq *srqs[MUSTER_SRQS_MAX];
	uint32_t nr_srqs;
	struct nic_qp *qps[MUSTER_QPS_MAX];	/* by index */
	uint16_t qp_ids[MUSTER_QPS_MAX];	/* indices of those that exist, in no order */
	uint32_t nr_qps;
	uint32_t qp_turn;		/* steps: who of qp_ids is the first */
	uint64_t qps_due_us;		/* when one of them has something to do though nothing comes */
	uint64_t cqs_due_us;		/* the same of what is held back in their queues */
	struct nic_mr *mrs[MUSTER_MRS_MAX + 1];
	uint32_t mr_pages;		/* of all regions */
	uint64_t mr_lives;		/* regions registered so far, */
	uint64_t mrs_gone;		/* and given back */
	uint16_t vp_ids[MUSTER_VPS_MAX];	/* of those that exist, in no order */
	uint32_t nr_vps;
	uint32_t nr_looks;		/* of them that show a looking page */
	uint64_t looks_due_us;		/* when to copy them next */
	struct muster_trace *trace;	/* of the one that shows a page; NULL: none, or several */

	struct nic_loopback_packet *loopback;
	struct nic_loopback_packet **loopback_last;
	uint32_t nr_loopback;

	int dump_fd;			/* of config.dump; -1: none, or its disk is full */
	bool closed;			/* for good */
	bool refused;			/* in this step: a ring or the wire had no room; */
	bool unplugged;			/* something waited for the cable */
	uint64_t rest_us;		/* how long it waited the last time */
	uint32_t vectors;		/* to interrupt at the end of this step, as bits */
	struct nic_counts counts;
	struct nic_qp_counts qp_counts[MUSTER_QPS_MAX + 1];	/* by set */
	uint16_t qp_count_users[MUSTER_QPS_MAX + 1];		/* queue pairs that are counted there */
};

/* Lap 0 writes 1, lap 1 writes 0, ... into the word that says "there". */
static inline __le32 nic_lap_valid(uint32_t index, uint32_t entries)
{
	return htole32(!(index & entries));
}

/* Of a ring. */
static inline bool nic_entries_valid(uint32_t entries, uint32_t max)
{
	return entries && entries <= max && !(entries & (entries - 1));
}

/* Whether a command says nothing behind what it has to say. */
static inline bool nic_command_ends(const struct muster_admin_command *cmd, size_t used)
{
	for (size_t i = used; i < sizeof(cmd->raw); i++)
		if (cmd->raw[i])
			return false;
	return true;
}

/*
 * nic_engines.c: where a virtual port lives, whether there is such a one or not; and all
 * of them: 0 or -errno and why; a step, true if it left something to do; as engine.h has it for one.
 */
static inline struct muster_engine *nic_engine_of(const struct muster_nic *nic, uint32_t vp)
{
	return nic->engines[vp % nic->nr_engines];
}

int nic_engines_open(struct muster_nic *nic, char *why, size_t why_len);
void nic_engines_close(struct muster_nic *nic);
bool nic_engines_step(struct muster_nic *nic);
void nic_engines_trace(struct muster_nic *nic, struct muster_trace *trace);
void nic_engines_present(struct muster_nic *nic, uint32_t node, uint32_t present);
void nic_engines_network_lost(struct muster_nic *nic);
bool nic_engines_need(const struct muster_nic *nic, uint32_t node);
void nic_engines_count(const struct muster_nic *nic, struct muster_engine_counters *all);

/* nic.c: one that has come, to whom it is for. */
void nic_packet_take(struct muster_nic *nic, const struct muster_packet *packet, const void *payload,
		     uint32_t len);

/* nic.c: guest memory, counted, by any thread that steps an engine. 0 or -EIO. */
int nic_dma_read(struct muster_nic *nic, uint64_t addr, void *buf, uint32_t len);
int nic_dma_write(struct muster_nic *nic, uint64_t addr, const void *buf, uint32_t len);
/* An entry whose last word says that it is there: that word is written after the rest. */
int nic_entry_write(struct muster_nic *nic, uint64_t addr, const void *entry, uint32_t len);
void nic_fatal(struct muster_nic *nic);
/* Forget all that the guest has made; no DMA for it afterwards. */
void nic_quiesce(struct muster_nic *nic);

/*
 * nic_admin.c: run what the guest has queued, for a bounded while; true if there was
 * something. A long command goes on in the next steps. drop() forgets it.
 */
bool nic_admin_run(struct muster_nic *nic);
void nic_admin_drop(struct muster_nic *nic);

/* nic_uplink.c: at a network of switches, if the configuration says so. 0, or -errno and why. */
int nic_uplink_open(struct muster_nic *nic, char *why, size_t why_len);
void nic_uplink_close(struct muster_nic *nic);
/* The driver is there: from now on the switch may know of this life. */
void nic_uplink_greet(struct muster_nic *nic);
void nic_uplink_lost(struct muster_nic *nic);
/* As struct muster_wire_events has it. */
bool nic_uplink_take(void *nic, uint32_t neighbour, const struct muster_packet *packet,
		     const void *payload, uint32_t len);
/* Who waits for a node is to learn that it is gone. False: it is already. */
bool nic_watch(struct muster_nic *nic, uint32_t node, uint32_t incarnation);
/* Whether anything here would want to hear that. */
bool nic_needs(void *nic, uint32_t node);

/* nic_ring.c */
/* 0; -EINVAL: a part of the receive ring begins in no page; -EIO: their list cannot be read; ... */
int nic_vp_create(struct muster_nic *nic, const struct nic_vp *config);
void nic_vp_destroy(struct muster_nic *nic, struct nic_vp *vp);
bool nic_rings_run(struct muster_nic *nic);
int nic_complete(struct muster_nic *nic, uint16_t vp, const struct muster_cqe *cqe);
int nic_deliver(struct muster_nic *nic, uint16_t vp, const struct muster_packet *packet,
		const void *payload);
void nic_event_lost(struct muster_nic *nic, uint32_t node);
void nic_events_run(struct muster_nic *nic);

/* The event of an object: once, as soon as there is room, so that nobody's is crowded out. */
void nic_event_owe(struct muster_nic *nic, bool *owed);
bool nic_event_pay(struct muster_nic *nic, bool *owed, uint8_t kind, uint32_t id);

/* nic_qp_admin.c: a command of queue pairs: 0, or -errno; and the reply's detail. */
int nic_qp_command(struct muster_nic *nic, const struct muster_admin_command *cmd,
		   uint32_t *detail);
void nic_qps_destroy(struct muster_nic *nic);

/* nic_counters.c: the same of COUNTERS. */
int nic_counters_command(struct muster_nic *nic, const struct muster_admin_command *cmd,
			 uint32_t *detail);

/* nic_srq.c: the same of queues that they share. */
int nic_srq_command(struct muster_nic *nic, const struct muster_admin_command *cmd,
		    uint32_t *detail);
void nic_srqs_destroy(struct muster_nic *nic);
/* True if all events that are owed are paid. */
bool nic_srqs_pay(struct muster_nic *nic);

/* nic_cq.c: the same of completion queues. */
int nic_cq_command(struct muster_nic *nic, const struct muster_admin_command *cmd,
		   uint32_t *detail);
/* An entry into a queue that has room for it: 0; -EIO. */
int nic_cq_put(struct muster_nic *nic, struct nic_cq *cq, struct muster_cqe *entry);
void nic_cq_notify(struct muster_nic *nic, struct nic_cq *cq);
/* There is no room: the event is owed, and the step comes again. */
void nic_cq_full(struct muster_nic *nic, struct nic_cq *cq);
/* The interrupts that are due. */
void nic_cqs_run(struct muster_nic *nic);

/* nic_qp.c: true if anything moved, or all events that are owed are paid. */
bool nic_qps_run(struct muster_nic *nic);
bool nic_qps_pay(struct muster_nic *nic);
/* A life of that node is over, and that one is there now; 0: none. */
void nic_qps_lost(struct muster_nic *nic, uint32_t node, uint32_t present);
/* Whether one of them would want to hear that. */
bool nic_qps_need(const struct muster_nic *nic, uint32_t node);
void nic_qp_receive(struct muster_nic *nic, const struct muster_packet *packet,
		    const void *payload, uint32_t len);

/* nic_loopback.c: 0; -EAGAIN: too many are underway. */
int nic_loopback_send(struct muster_nic *nic, const struct muster_packet *packet,
		      const void *payload);
/* The oldest, the caller's; NULL: none. */
struct nic_loopback_packet *nic_loopback_take(struct muster_nic *nic);
void nic_loopback_drop(struct muster_nic *nic);

/* Whether packets go to other nodes, and come. */
static inline bool nic_link_up(const struct muster_nic *nic)
{
	return !(nic->state & MUSTER_STATE_LINK_DOWN);
}

/* nic.c: a packet to another node, or to this one: 0; -EAGAIN; -EHOSTUNREACH. */
int nic_packet_send(struct muster_nic *nic, uint32_t incarnation,
		    const struct muster_packet *packet, const void *payload);

/* nic_mr.c: 0; or -EFAULT for what the region does not cover or allow. */
int nic_mr_read(struct muster_nic *nic, uint16_t vp, uint32_t key, uint64_t addr, void *buf,
		uint32_t len);
int nic_mr_write(struct muster_nic *nic, uint16_t vp, uint32_t key, uint64_t addr,
		 const void *buf, uint32_t len);
/* Of another member's message that fills [addr, addr + total) the piece at `at`. */
int nic_mr_remote_write(struct muster_nic *nic, uint16_t vp, uint32_t key, uint64_t addr, uint32_t total,
			uint32_t at, const void *buf, uint32_t len);
/* The same for whoever has this protection domain; access: MUSTER_MR_*. */
int nic_mr_load(struct muster_nic *nic, uint32_t pd, uint32_t key, uint8_t access, uint64_t addr,
		void *buf, uint32_t len);
int nic_mr_store(struct muster_nic *nic, uint32_t pd, uint32_t key, uint8_t access, uint64_t addr,
		 const void *buf, uint32_t len);
bool nic_mr_allows(const struct muster_nic *nic, uint32_t pd, uint32_t key, uint8_t access,
		   uint64_t addr, uint32_t len);
/* Where it begins, and how long it is. */
int nic_mr_range(const struct muster_nic *nic, uint16_t vp, uint32_t key, uint64_t *iova,
		 uint64_t *bytes);
/* 0: the VP has no such region. */
uint64_t nic_mr_life(const struct muster_nic *nic, uint16_t vp, uint32_t key);
/* Begun, then read on until nr_read is nr_pages: 0; -ENOSPC; -ENOMEM. */
int nic_mr_begin(struct muster_nic *nic, const struct nic_mr *config, struct nic_mr **mr);
/* As much of its page list as a step may take: 0; -EINVAL; -EIO when it cannot be read. */
int nic_mr_read_on(struct muster_nic *nic, struct nic_mr *mr);
void nic_mr_free(struct muster_nic *nic, struct nic_mr *mr);
void nic_mr_destroy(struct muster_nic *nic, uint32_t key);

/* nic_look.c: show the page that the region begins with, in place of another; no region: none. */
void nic_look_open(struct muster_nic *nic, struct nic_vp *vp, uint32_t key);
void nic_look_close(struct muster_nic *nic, struct nic_vp *vp);
/* Copy what is due. Return: after how many microseconds to come again. */
uint64_t nic_looks_run(struct muster_nic *nic);
/* Whether records are wanted there still. */
bool nic_trace_lasts(struct muster_trace *trace, uint64_t now_ns);

/* nic_dump.c: the file of packets, if one is wanted: 0, or -errno and why. */
int nic_dump_open(struct muster_nic *nic, char *why, size_t why_len);
void nic_dump_close(struct muster_nic *nic);
/* Before a packet goes; and when it has gone. */
uint64_t nic_dump_now_ns(const struct muster_nic *nic);
void nic_dump_sent(struct muster_nic *nic, uint64_t at_ns, const struct muster_packet *packet,
		   const void *payload);

#endif /* MUSTER_NIC_INTERNAL_H */
