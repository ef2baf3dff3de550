/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of the switch share. A packet goes receive.c → forward.c, or, if it is
 * for the aggregation node, aggregation.c, which admits it to a group (group.c) and one of
 * its segments (segment.c, ring.c); what goes out to the ports of a group is made by generator.c.
 * Who may use a streaming tree is lock.c's. All that is sent for others goes through credit.c; reach.c
 * says who cannot be reached any more. handover.c knows all of these structures: whoever changes one raises
 * MUSTER_SWITCH_STATE_VERSION.
 * Nothing outside of this folder includes this header.
 */
#ifndef MUSTER_SWITCH_INTERNAL_H
#define MUSTER_SWITCH_INTERNAL_H

#include "switch.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "little-endian hosts only");

enum {
	PORT_WORDS = MUSTER_SWITCH_RADIX_MAX / 64,
	/* Those that collect, and as many whose results are on their way to slow ports. */
	SEGMENTS = MUSTER_SWITCH_SEGMENTS,
	GROUP_BUCKETS = 256,
	FLOW_BUCKETS = 1024,
	NR_HALVES = 2,		/* of the ring of reduction units; a low-latency tree uses one */
	RING_FEW = 8,		/* of what was lent: combined, though others are missing */
	CACHE_LINE = 64,
};

_Static_assert(SEGMENTS == 32, "bits of progress.seen, group.borrowing, group.used and group.freed");

/* A set of children, by their place. */
struct child_set {
	uint64_t bits[PORT_WORDS];
};

enum segment_phase {
	SEGMENT_FREE,
	SEGMENT_COLLECTING,	/* some child has not contributed */
	SEGMENT_WAITING,	/* all have: a request for a lock that cannot be had here yet */
	SEGMENT_UP,		/* all have; the parent's link has not taken it */
	SEGMENT_AWAITING,	/* the parent has it */
	SEGMENT_TAKING,		/* of a lock: this node has had its turn, and nodes below have theirs */
	SEGMENT_DOWN,		/* the result is here; the links of `owed` have not taken it */
};

/* What fits into one packet: a pulse of a sequence. */
struct segment {
	uint8_t phase;
	uint8_t slot;
	bool last;			/* of its number */
	bool plain;			/* all say the same */
	bool lent;			/* something was, and has not been given back */
	uint16_t stage;
	uint32_t number;
	uint32_t pulse;
	uint32_t index;			/* of all that the group has ever had */
	uint32_t total;			/* bytes; without an operation 0 until one child has brought some */
	uint32_t speaker;		/* member who stands for all of it towards the parent */
	uint32_t missing;		/* children that have not contributed */
	uint32_t wanting;		/* those that have, and want the result's data */
	uint32_t waiting;		/* of the others, those that are not combined */
	uint32_t next[NR_HALVES];	/* child that each combines next, */
	uint32_t ready[NR_HALVES];	/* and how many from there on have come */
	struct muster_signature signature;
	struct muster_packet first;	/* that came for it */
	struct child_set came;
	struct child_set bare;		/* who only hears that the result is there */
	struct child_set owed;
	struct child_set asked;		/* nodes below that have not said whether they have locked */
	uint8_t *sum;			/* of the halves, payload_max bytes each; behind them one for each child */
	const uint8_t **from;		/* where each waits; at the last one that is combined lies its half */
};

/* How far a child has come: what it sends twice is not taken twice. */
struct progress {
	bool begun;
	uint32_t seen;			/* bit i: pulse first + i */
	uint32_t number;
	uint32_t first;			/* oldest pulse of it that has not come */
	struct muster_packet last;	/* that has passed the gates of aggregation.c, once begun */
};

enum lock_state {
	LOCK_NONE,
	LOCK_ASKED,		/* given here; the root has not answered */
	LOCK_HELD,
};

/* A streaming group's, at this node. */
struct lock {
	uint8_t state;
	bool waits;			/* it was refused, and keeps its place: */
	uint64_t asked;			/* the count of locks when it asked first */
	uint64_t heard;			/* the count of hurries when it last asked, or was answered */
	uint64_t left;			/* operations */
	uint32_t distributed;		/* pulses of the one at hand, */
	uint32_t pulses;		/* of so many; 0: not known yet */
};

/* A streaming tree that is active: at most so many are. */
struct stream {
	uint16_t tree;
	uint32_t nr;			/* groups that have it; 0: nobody */
	uint64_t owner;			/* theirs, */
	uint64_t since;			/* and the count of locks when its turn began */
};

struct group {
	struct group *next_hashed;
	struct group *next_owing, *prev_owing;
	bool owing;			/* on the switch's list of those that owe something */
	struct group *next_borrowing;
	uint32_t borrowing;		/* segments that something was lent to; 0: it is not on that list */
	bool failed;
	size_t bytes;
	struct muster_switch_group config;
	struct muster_packet own;	/* what all that it sends say */
	struct muster_packet why;	/* what its ABORTs say, once it has failed */
	struct child_set left;		/* who needs it no more */
	struct child_set untold;
	bool parent_untold;
	uint32_t split;			/* the first child of the right half ring */
	uint8_t child_at[MUSTER_SWITCH_RADIX_MAX];	/* by port; nr_children: nobody */
	struct lock lock;
	struct progress *progress;	/* by child */
	struct muster_switch_child *children;
	struct segment *places[SEGMENTS];	/* by pulse: which was begun for it last */
	uint32_t used;			/* segments that are not free */
	uint32_t number;		/* of the operation begun last, */
	uint32_t number_first;		/* and the index of its pulse 0 */
	uint32_t end;			/* above all indices so far */
	uint32_t oldest;		/* index that is not free again, */
	uint32_t freed;			/* bit i: oldest + i is */
	uint32_t answered;		/* so many, by the parent, */
	uint32_t credits;		/* which has given them for all indices below */
	bool waits_for_credit;
	struct segment segments[SEGMENTS];
};

/* A packet that waits for the next link. */
struct held {
	struct held *next;
	struct muster_packet packet;
	uint8_t payload[];
};

/* Of one job and source, what comes by one port and what goes by it. */
struct flow {
	struct flow *next_hashed;
	struct flow *next, *prev;	/* the switch's ring of all */
	uint32_t source;
	uint8_t job;
	uint8_t port;
	uint8_t way;
	bool moved;			/* since the last step */
	uint32_t nr_held;
	struct held *held;		/* of what came, in order */
	uint32_t owed;			/* came by a trunk and went on, and the neighbour is to be told */
	uint32_t out;			/* went by a trunk, and the neighbour has not told that it went on */
};

enum { NR_WAYS = 2 };

/* By which port a node is reached, and whether that is still so everywhere. */
struct route {
	uint32_t node;
	uint8_t ports[NR_WAYS];
	bool gone;			/* somebody cannot reach it any more */
	struct child_set untold;	/* ports whose neighbours do not know */
};

struct muster_switch {
	struct muster_switch_world world;
	void *opaque;
	uint32_t node;
	uint32_t incarnation;
	uint32_t radix;
	uint32_t nr_routes;
	uint32_t nr_gone;			/* of them */
	struct route *routes;			/* sorted by node */
	uint32_t way;				/* which of them hosts' packets take */
	uint64_t passed[NR_WAYS];			/* packets that went on, by way */
	struct child_set ports;			/* where anybody is */
	uint32_t nr_groups;
	struct group *groups[GROUP_BUCKETS];
	struct group *owing;
	struct group *borrowing;
	struct stream streams[MUSTER_SWITCH_STREAMS_MAX];
	uint64_t lock_count;			/* above all that have been told here */
	uint64_t hurries;			/* so far */
	bool lock_news;				/* whoever waits for a lock is to be looked at */
	uint32_t nr_waiting;			/* segments that do */
	struct child_set trunks;		/* ports */
	uint32_t nr_flows;
	struct flow *flows[FLOW_BUCKETS];
	struct flow *ring;			/* who has the next turn */
	struct muster_switch_counters counters;
};

static inline void child_set_add(struct child_set *set, uint32_t child)
{
	set->bits[child / 64] |= 1ull << child % 64;
}

static inline void child_set_remove(struct child_set *set, uint32_t child)
{
	set->bits[child / 64] &= ~(1ull << child % 64);
}

static inline bool child_set_has(const struct child_set *set, uint32_t child)
{
	return set->bits[child / 64] >> child % 64 & 1;
}

static inline bool child_set_empty(const struct child_set *set)
{
	uint64_t any = 0;

	for (uint32_t i = 0; i < PORT_WORDS; i++)
		any |= set->bits[i];
	return !any;
}

static inline void child_set_fill(struct child_set *set, uint32_t nr)
{
	for (uint32_t i = 0; i < nr / 64; i++)
		set->bits[i] = UINT64_MAX;
	if (nr % 64)
		set->bits[nr / 64] |= (1ull << nr % 64) - 1;
}

/* A packet's data, and whether it stays there until muster_switch_give_back(). */
struct payload {
	const void *at;
	bool lent;
};

static inline uint32_t segment_bit(const struct group *group, const struct segment *segment)
{
	return 1u << (segment - group->segments);
}

static inline void segment_free(struct group *group, struct segment *segment)
{
	segment->phase = SEGMENT_FREE;
	group->used &= ~segment_bit(group, segment);
	group->freed |= 1u << (segment->index - group->oldest);
	for (; group->freed & 1; group->freed >>= 1)
		group->oldest++;
}

static inline bool group_is_root(const struct group *group)
{
	return group->config.parent_port == MUSTER_SWITCH_NO_PORT;
}

/* One without a promise: it takes no credit. */
static inline bool packet_is_once(const struct muster_packet *packet)
{
	return packet->type == MUSTER_PACKET_TREE_DOWN && packet->flags & MUSTER_PACKET_ONCE;
}

/* Whether the others say the same as it: no message that one alone brings, and no request for a lock. */
static inline bool packet_is_plain(const struct muster_packet *packet)
{
	return packet->signature.op != MUSTER_REDOP_NONE && packet->signature.coll != MUSTER_COLL_LOCK;
}

/* Which child a packet is from; nr_children: none. */
static inline uint32_t group_child(const struct group *group, uint32_t port,
				   const struct muster_packet *packet)
{
	uint32_t nobody = group->config.nr_children, i = group->child_at[port];
	const struct muster_switch_child *child = &group->children[i];

	if (i == nobody || packet->src_node != child->node ||
	    packet->incarnation != child->incarnation)
		return nobody;
	if (child->node >= MUSTER_NODE_AGGREGATION)
		return i;
	return packet->src_vp == child->vp && packet->context == child->context &&
	       packet->life == child->life && packet->src_member == child->member ? i : nobody;
}

/* ---- forward.c ---- */

int forward_create(struct muster_switch *sw, const struct muster_switch_config *config);
void forward_destroy(struct muster_switch *sw);
/* The way to a node; NULL: it is not known. */
struct route *forward_route(const struct muster_switch *sw, uint32_t node);
/* 0: gone, dropped, or kept with its flow; -EAGAIN: that has as many as it may. */
int forward(struct muster_switch *sw, uint32_t port, const struct muster_packet *from, const void *payload);
/* Which of the two ways a packet goes by, between switches. */
uint32_t way_of(const struct muster_packet *packet);
/* What waits goes on as far as links take it. */
void forward_held(struct muster_switch *sw, struct flow *flow);

/* ---- credit.c ---- */

static inline bool credit_is_trunk(const struct muster_switch *sw, uint32_t port)
{
	return child_set_has(&sw->trunks, port);
}

/*
 * Which member a child's loss is laid upon; nr_children: the parent. Of a host behind other switches nobody knows here
 * whether it is lost: they may have another way to it, and if not they say that it is gone.
 */
static inline uint32_t group_culprit(const struct muster_switch *sw, const struct group *group, uint32_t by)
{
	return by < group->config.nr_children && group->children[by].node < MUSTER_NODE_AGGREGATION &&
	       !credit_is_trunk(sw, group->children[by].port) ? group->children[by].member : MUSTER_CULPRIT_NONE;
}

/* That of a packet at a port, made if need be; NULL: no memory. Until credit_rest() it stays. */
struct flow *credit_flow(struct muster_switch *sw, uint32_t port,
			 const struct muster_packet *packet);
void credit_rest(struct muster_switch *sw, struct flow *flow);
/* To a switch. */
int credit_send_on(struct muster_switch *sw, uint32_t port, const struct muster_packet *packet,
		   const void *payload);
/* As the world's send(); -EAGAIN also where the neighbour has no room for the flow. */
static inline int credit_send(struct muster_switch *sw, uint32_t port, const struct muster_packet *packet,
			      const void *payload)
{
	return credit_is_trunk(sw, port) ? credit_send_on(sw, port, packet, payload) :
					   sw->world.send(sw->opaque, port, packet, payload);
}
/* A packet of the flow has gone on: who sent it is told in time. */
void credit_passed(struct muster_switch *sw, struct flow *flow);
/* ROOM has come. */
void credit_room(struct muster_switch *sw, uint32_t port, const struct muster_packet *packet);
/* Tell who is to be told. Return: whether some is left to do. The flow may be gone then. */
bool credit_settle(struct muster_switch *sw, struct flow *flow);
void credit_port_lost(struct muster_switch *sw, uint32_t port);
void credit_destroy(struct muster_switch *sw);

/* ---- reach.c ---- */

/* GONE has come. */
void reach_receive(struct muster_switch *sw, uint32_t port, const struct muster_packet *packet);
void reach_port_lost(struct muster_switch *sw, uint32_t port);
/* Tell who is to be told. Return: whether some is left to do. */
bool reach_settle(struct muster_switch *sw);

/* ---- aggregation.c ---- */

/* A packet for the aggregation node: admitted, or dropped and counted. */
void aggregation_receive(struct muster_switch *sw, uint32_t port,
			 const struct muster_packet *packet, struct payload payload);

/* ---- group.c ---- */

/* Handles are counted, and one names groups on two trees side by side. */
static inline struct group **group_bucket(const struct muster_switch *sw, uint16_t tree, uint32_t handle)
{
	return (struct group **)&sw->groups[(handle ^ tree) % GROUP_BUCKETS];
}

static inline struct group *group_find(const struct muster_switch *sw, uint16_t tree, uint32_t handle)
{
	struct group *group = *group_bucket(sw, tree, handle);

	while (group && (group->config.tree != tree || group->config.group != handle))
		group = group->next_hashed;
	return group;
}

/* One that is found by nobody yet; NULL: no memory. */
struct group *group_new(struct muster_switch *sw, const struct muster_switch_group *config);
void group_insert(struct muster_switch *sw, struct group *group);
void group_free(struct muster_switch *sw, struct group *group);
/* Something was lent to it: muster_switch_give_back() looks at it. */
void group_borrows(struct muster_switch *sw, struct group *group, struct segment *segment);
/* Something is left to be sent: step() looks at it. */
void group_owes(struct muster_switch *sw, struct group *group);
/* The first cause stays. All but who said it (a child, or nr_children: the parent) are told. */
void group_fail(struct muster_switch *sw, struct group *group, uint8_t status, uint32_t culprit,
		const struct muster_signature *signature, uint32_t by);
/* Of a group that has failed: a child seems not to know. */
void group_tell_again(struct muster_switch *sw, struct group *group, uint32_t child);
/* Send what it owes. Return: whether some is left. */
bool group_settle(struct muster_switch *sw, struct group *group);

/* In place of a child: nobody in the group. */
enum { BY_NOBODY = 0xffff };

/* ---- ring.c: in which order children are combined ---- */

/* Of a group whose children stand in the order of their ports. */
uint32_t ring_split(const struct muster_switch_group *config, uint32_t radix);
void ring_begin(const struct group *group, struct segment *segment);
static inline void ring_arrive(struct segment *segment, uint32_t child)
{
	child_set_add(&segment->came, child);
	segment->missing--;
}

/* A child's contribution, which came before its turn or in it. Return: whether all are in, as below. */
bool ring_take(const struct group *group, struct segment *segment, uint32_t child,
	       const void *payload, uint32_t bytes);
/* The same, of what was lent. Return: whether it is time for ring_combine(). */
static inline bool ring_wait(struct segment *segment, uint32_t child, const void *payload)
{
	segment->from[child] = payload;
	segment->waiting++;
	ring_arrive(segment, child);
	return !segment->missing || segment->waiting >= RING_FEW;
}
/* A child has come: as many as are worth it. Return: whether all are in; then the result is at segment->sum. */
bool ring_combine(const struct group *group, struct segment *segment, uint32_t child);
/* What was lent is given back: what waits there is combined, or goes to a place of its own. */
void ring_give_back(const struct group *group, struct segment *segment);
/* Nothing is lent, and it is not known where things lie. */
void ring_at_home(const struct group *group, struct segment *segment);

/* ---- segment.c ---- */

void segment_contribute(struct muster_switch *sw, struct group *group, uint32_t child,
			const struct muster_packet *packet, struct payload payload);
/* All are in. */
void segment_complete(struct muster_switch *sw, struct group *group, struct segment *segment);
/* It has its place. */
static inline void segment_add(struct muster_switch *sw, struct group *group, struct segment *segment, uint32_t child,
			       const struct muster_packet *packet, struct payload payload)
{
	sw->counters.contributions++;
	if (!child)
		segment->speaker = packet->src_member;
	if (packet->flags & MUSTER_PACKET_BARE)
		child_set_add(&segment->bare, child);
	else
		segment->wanting++;
	if (payload.lent && !segment->lent)
		group_borrows(sw, group, segment);
	if (payload.lent ? ring_wait(segment, child, payload.at) && ring_combine(group, segment, child) :
			   ring_take(group, segment, child, payload.at, packet->total))
		segment_complete(sw, group, segment);
}

void segment_result(struct muster_switch *sw, struct group *group,
		    const struct muster_packet *packet, const void *payload);
/* Those of the group that something was lent to give it back. */
void segment_give_back(struct group *group);
/* What waits for a lock goes on if it may. */
void segment_waiting(struct muster_switch *sw, struct group *group, bool hurry);
/* Send what it owes. Return: whether some is left. */
bool segment_settle(struct muster_switch *sw, struct group *group, struct segment *segment);

/* ---- lock.c: who may use a streaming tree ---- */

/* A streaming group is here: one that needs no lock has its tree. -EBUSY: no more can be active. */
int lock_begin(struct muster_switch *sw, struct group *group);
/* What it has, or its streaming fellow, is given back. */
void lock_end(struct muster_switch *sw, struct group *group);
/* Whether a segment is a request for a lock. */
static inline bool lock_is_asked(const struct group *group, const struct segment *segment)
{
	return group->config.type == MUSTER_SWITCH_LLT && segment->signature.coll == MUSTER_COLL_LOCK;
}
/* All below have asked: this node has its say. False: not yet. */
bool lock_ask(struct muster_switch *sw, const struct group *group, struct segment *segment);
/* At the root: whether nodes are to lock it now. */
bool lock_is_wanted(const struct segment *segment);
/* This node locks its part, or says that it cannot. Return: whether it has. */
bool lock_take(struct muster_switch *sw, const struct group *group, struct segment *segment);
/* Whether a payload is about that, and not a request or its result. */
bool lock_is_taking(const struct group *group, const struct muster_packet *packet,
		    const void *payload);
/* What a node below has said of its part and of those below it. */
void lock_taken(struct segment *segment, const void *payload);
/* At the root: all have. */
void lock_took(struct segment *segment);
/* Whether a request that waits here is to go on; hurry: in any case. */
bool lock_is_over(struct muster_switch *sw, const struct group *group, struct segment *segment,
		  bool hurry);
/* What has come of it. */
void lock_answer(struct muster_switch *sw, const struct group *group,
		 const struct segment *segment);
/* Whether its members may contribute. */
static inline bool lock_admits(const struct group *group)
{
	return !group->config.locks || group->lock.state == LOCK_HELD;
}
/* A result goes down: the operation may have been the last. */
void lock_count(struct muster_switch *sw, struct group *group, const struct segment *segment);
/* Something was given back: others may go on. */
void lock_step(struct muster_switch *sw);

/* ---- generator.c: packets to the neighbours in a group ---- */

/* 0, -EAGAIN; else the group has failed. */
int generator_up(struct muster_switch *sw, struct group *group, const struct segment *segment);
/* One without a promise to each child. */
void generator_once(struct muster_switch *sw, struct group *group, const struct segment *segment);
/* The reliable ones, to those that it is owed to. Return: whether some are left. */
bool generator_down(struct muster_switch *sw, struct group *group, struct segment *segment);
/* ABORT, to those who have not been told. Return: whether some are left. */
bool generator_abort(struct muster_switch *sw, struct group *group);

#endif /* MUSTER_SWITCH_INTERNAL_H */
