/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the parts of the bump share. A frame goes bump.c → cfe.c (→ operation.c,
 * which runs the algorithm that program.c has laid out, with cipe.c as its
 * arithmetic) → queues.c; frame.c knows headers of layers 2 to 4, group.c keeps
 * groups and operations, repair.c asks for what was lost.
 */
#ifndef MUSTER_BUMP_INTERNAL_H
#define MUSTER_BUMP_INTERNAL_H

#include <endian.h>
#include <string.h>

#include "bump.h"
#include "arith.h"
#include "cipe.h"
#include "program.h"

/* Elements of an operation on their way: counted references, never changed once shared. */
struct buffer {
	uint32_t refs;
	uint32_t bytes;
	uint8_t data[];
};

/* Where a rank's answer goes: its request's layers 2, 3 and 4. */
struct origin {
	uint8_t host_mac[6];
	uint8_t bump_mac[6];
	uint32_t host_ip;	/* as in the packet */
	uint32_t bump_ip;
	uint16_t host_port;
	uint16_t bump_port;
};

struct local_rank {
	bool asked;
	uint16_t rank;
	struct origin origin;
	struct buffer *own;	/* its elements; freed with completion */
	struct buffer *result;
};

enum operation_phase {
	OPERATION_FREE,
	OPERATION_GATHERING,	/* not all local ranks have asked */
	OPERATION_RUNNING,
	OPERATION_COMPLETE,
	OPERATION_FAILED,
};

struct operation {
	enum operation_phase phase;
	uint8_t status;		/* FAILED: enum muster_bump_status */
	uint16_t culprit;	/* member that said so first */
	uint32_t id;
	struct group *group;
	struct muster_bump_header common;	/* what all ranks share, from the first packet */
	uint32_t bytes;
	uint32_t nr_local;	/* 0 until a local rank has asked */
	uint32_t nr_asked;
	struct local_rank local[MUSTER_BUMP_LOCAL_MAX];
	struct program program;
	uint32_t next;		/* state to be executed */
	struct buffer *heard[PROGRAM_STATES_MAX];	/* by state: what it awaits, if it has come */
	struct buffer *said[PROGRAM_STATES_MAX];	/* by state: what it has sent */
	uint64_t wanted;	/* mask of states that were asked for before they were there */
	struct buffer *registers[NR_REGISTERS];
	struct operation *live_next;	/* RUNNING: the list of those that may have to ask */
	struct operation **live_link;
	uint64_t want_us;	/* when to ask for what `next` awaits */
	uint64_t patience_us;	/* doubled each time */
};

struct group {
	uint32_t number;
	uint32_t key;		/* index */
	uint16_t hosts, first, stride, ranks;
	uint16_t self;		/* this element's index among the members */
	uint64_t used;		/* by this the least recently used is found */
	uint64_t asked_us;	/* when a rank of this host spoke last, or it was made */
	struct operation kept[MUSTER_BUMP_KEPT];	/* by id modulo their number */
};

enum { LEARNED_MAX = 1024 };

struct learned {
	uint8_t mac[6];
	uint8_t port;
	bool known;
};

struct muster_bump {
	struct muster_bump_config config;
	struct muster_bump_world world;
	void *opaque;
	struct muster_bump_counters counters;
	uint8_t routes[MUSTER_BUMP_HOSTS_MAX];
	uint16_t neighbours[MUSTER_BUMP_PORTS_MAX];
	uint64_t keys[MUSTER_BUMP_KEYS_MAX];
	struct group *groups[MUSTER_BUMP_KEYS_MAX][MUSTER_BUMP_GROUPS_MAX];
	uint64_t clock;		/* of group.used: counts packets */
	struct operation *live;
	uint64_t want_us;	/* the earliest of the live ones, or earlier */
	uint32_t turn;		/* arbiter: the port that was served last */
	struct learned learned[LEARNED_MAX];
	uint8_t frame[MUSTER_BUMP_DATA_MAX + 128];	/* being built */
};

/* An offload packet, decoded: what it says, and where that came from. */
struct packet {
	uint32_t port;
	uint32_t key;		/* index */
	struct origin origin;
	struct muster_bump_header header;
	const uint8_t *data;
	uint32_t bytes;
};

/* ---- frame.c: layers 2, 3 and 4 ---- */

enum frame_kind {
	FRAME_OTHER,		/* passes */
	FRAME_OFFLOAD,
	FRAME_BAD,		/* an offload packet, but damaged */
};

enum frame_kind frame_read(const struct muster_bump *bump, const struct muster_bump_frame *frame,
			   struct packet *packet);
/* The packets that leave, by the CFE's instruction: it says which message, and to which UDP port. */
void frame_to_host(struct muster_bump *bump, uint64_t instruction, const struct origin *origin,
		   const struct muster_bump_header *header, const struct buffer *data);
/* ports: a mask; header->to: which element, or MUSTER_BUMP_TO_NEIGHBOUR. */
void frame_to_bumps(struct muster_bump *bump, uint64_t instruction, uint32_t ports,
		    const struct muster_bump_header *header, const struct buffer *data);
/* One hop less to live. False: none is left. */
bool frame_age(struct muster_bump_frame *frame);
/* An answer to the host's question for the MAC address of ours; false: it asks for another. */
bool frame_answer_arp(struct muster_bump *bump, const struct muster_bump_frame *frame);

/* ---- queues.c: output queues, and the way of other traffic ---- */

void queues_send(struct muster_bump *bump, uint32_t ports, const struct muster_bump_frame *frame);
void queues_pass(struct muster_bump *bump, uint32_t port, const struct muster_bump_frame *frame);

/* ---- cfe.c: the collective forwarding engine ---- */

void cfe_take(struct muster_bump *bump, uint32_t port, struct muster_bump_frame *frame);
/* A packet leaves as this message; data may be NULL. */
void cfe_answer(struct muster_bump *bump, uint8_t message, const struct origin *origin,
		const struct muster_bump_header *header, const struct buffer *data);
void cfe_send(struct muster_bump *bump, uint8_t message, uint32_t ports,
	      const struct muster_bump_header *header, const struct buffer *data);

/* ---- group.c ---- */

struct buffer *buffer_new(struct muster_bump *bump, const void *data, uint32_t bytes);
struct buffer *buffer_get(struct buffer *buffer);
void buffer_put(struct muster_bump *bump, struct buffer *buffer);

/* In place of a status: the packet is dropped, and will be repeated. */
enum { STATUS_NO_MEMORY = 0xff };

/* The group if it is known; else NULL. */
struct group *group_known(struct muster_bump *bump, const struct packet *packet);
void group_destroy(struct muster_bump *bump, struct group *group);
/*
 * The packet's operation, there or made, with its group; a new one takes what all ranks
 * share from the packet. Return: 0, or enum muster_bump_status; op with EMISMATCH, too.
 */
uint8_t operation_find(struct muster_bump *bump, const struct packet *packet,
		       struct operation **op);

/* ---- operation.c: the state machine ---- */

void operation_run(struct muster_bump *bump, struct operation *op);
void operation_fail(struct muster_bump *bump, struct operation *op, uint8_t status,
		    uint16_t culprit);
void operation_answer(struct muster_bump *bump, const struct operation *op, uint32_t local);
/* Send what a state has sent once more. */
void operation_say(struct muster_bump *bump, const struct operation *op, uint32_t state);
/* Tell a member that an operation, which may be another one than op, has failed. */
void operation_deny(struct muster_bump *bump, const struct packet *packet, uint8_t status);

/* An error for the sender of a request alone; nothing changes. */
void operation_refuse(struct muster_bump *bump, const struct packet *packet, uint8_t status);

/* ---- repair.c ---- */

void repair_await(struct muster_bump *bump, struct operation *op);
void repair_forget(struct operation *op);
void repair_overdue(struct muster_bump *bump);

static inline uint16_t member_element(const struct group *group, uint32_t index)
{
	return (uint16_t)(group->first + index * group->stride);
}

#endif /* MUSTER_BUMP_INTERNAL_H */
