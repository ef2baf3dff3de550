/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The simulated world: engines, links and rings as they are, between simulated
 * hosts on a simulated network, in virtual time. One 64-bit seed decides the
 * workload and every fault, so a run can be repeated exactly.
 *
 *   dst.c        arguments
 *   crew.c       many seeds on several CPUs, and what is printed
 *   shrink.c     from a seed that fails to the least of it that does
 *   plan.c       from a seed to what shall happen
 *   world.c      virtual time: events, the life of a run, what must hold at its end
 *   net.c        links over a faulty network, or the node itself; rings.c: memory rings
 *   node.c       a NIC: what an engine may do to the world
 *   host.c       a rank's program: posts, takes completions, judges them, closes
 *   message.c    its point-to-point messages
 *   write.c      and those of them that are written to their receiver's memory
 *   op.c         operations: schedules, data, and the result that is expected
 *   network.c    between the nodes a network of switches; each of those a node, too
 *   tree.c       groups on its reduction trees, and operations by them
 *   process.c    instead of host.c: ranks that run the library, as coroutines; its device
 *   program.c    what they call
 *   many.c       a program of its own: thousands of communicators of ranks that run the library
 */
#ifndef MUSTER_DST_H
#define MUSTER_DST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dev.h"
#include "engine.h"
#include "frame.h"
#include "reliable.h"
#include "ring_packet.h"
#include "schedule.h"
#include "wire.h"

struct muster;
struct muster_fabric;
struct dst_network;
struct dst_process;
struct dst_switch;

enum dst_limit {
	DST_NODES_MAX = 64,
	DST_NODES_SHARED = 8,		/* of many ranks, unless each has one of its own */
	DST_RANKS_MAX = 64,
	DST_RANKS_DRAWN = 8,		/* at most, by a seed; */
	DST_HOSTS_DRAWN = 16,		/* of one with switches */
	DST_SWITCH_LIFE = 900,		/* of all switches */
	DST_TREES = 2,			/* that a communicator has a group on: one of each type */
	DST_TREE_PACKETS = 64,		/* that a rank sends up one in an operation */
	DST_COMMS_MAX = 3,
	DST_OPS_MAX = 40,		/* of one communicator */
	DST_MESSAGES_MAX = 20,		/* of one member in a communicator */
	DST_CQ_MAX = 64,
	DST_WINDOWS_MAX = 4,
	DST_CALL_REGIONS = 4,		/* keys of a call: in, out, scratch, descriptors */
	DST_REGIONS_MAX = 256,		/* of a process */
	DST_LENT_MAX = 4,		/* copies that a node lends at once */
	DST_CONTEXTS_MAX = 1 << 16,
	DST_RING_BYTES = MUSTER_RING_BYTES_MIN,
	DST_ARENA_BYTES = 64 << 20,	/* buffers of all ranks */
	DST_EVENTS_MAX = 4000000,	/* of one run; of more ranks than a seed draws, in proportion */
	DST_DEADLINE_US = 2000000,	/* of links */
	DST_BOUND_US = 30000000,	/* everything must have ended; likewise */
	DST_WHY_MAX = 400,
};

/* ---- randomness ------------------------------------------------------------- */

struct dst_rng {
	uint64_t state;
};

static inline uint64_t dst_draw(struct dst_rng *rng)
{
	uint64_t z = (rng->state += 0x9e3779b97f4a7c15ull);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* 0 to bound - 1; 0 for bound 0 */
static inline uint64_t dst_below(struct dst_rng *rng, uint64_t bound)
{
	return bound ? dst_draw(rng) % bound : 0;
}

static inline bool dst_chance(struct dst_rng *rng, uint32_t permille)
{
	return permille && dst_below(rng, 1000) < permille;
}

/* ---- the plan ------------------------------------------------------------------ */

/* What ends a communicator before its time; everything else heals. */
enum dst_cause {
	DST_NONE,
	DST_DEATH,	/* a node is silent from a moment on */
	DST_MISMATCH,	/* a rank calls another operation */
	DST_ABORT,	/* a rank gives up */
	DST_MEMORY,	/* a rank's memory is refused */
	DST_CLOSE,	/* a rank closes its context too early */
	DST_SWITCH,	/* a switch is silent from a moment on */
	DST_CUT,	/* nothing comes through a link any more */
	DST_CAUSES,
	DST_CAUSES_PLAIN = DST_SWITCH,	/* without switches */
};

struct dst_plan {
	uint64_t seed;
	uint32_t nodes, vps_per_node, ranks, comms;
	struct muster_engine_model model;
	uint32_t budget, cq_slots;
	bool rings;			/* else links over a faulty network */
	bool by_reference;		/* rings: peers' memory is read in place, */
	bool copies;			/* or a copy of it, if each node has one rank */
	bool at_once;			/* rings: what can be, is done where it comes, not at the next step */
	bool map;			/* the engine may work on memory in place */
	bool forwards;			/* programs send messages on as they come, */
	bool idles;			/* and end several idle stages at once */
	uint32_t pulses_live;		/* 0: as many as there may be */
	/* Per thousand, until all is healed. */
	uint32_t drop, duplicate, reorder, corrupt, truncate, link_full, send_full;
	uint32_t replay, forge;		/* of packets, at the engine */
	uint32_t cuts, clogs;		/* how many, of one direction each */
	uint64_t heal_us;
	uint32_t jitter_us, engine_us, host_us;
	uint64_t late_us;		/* at most, of ranks */
	bool messages;			/* point to point */
	enum dst_cause cause;
	uint32_t cause_rank, cause_comm, cause_op;
	uint64_t cause_us;
	bool reborn;			/* DEATH: the node comes back as another */
	/* With switches: nodes behind those of the ranks, in levels of so many from the hosts on. */
	uint32_t switches, levels[3];
	uint32_t tree_bytes[DST_TREES], tree_pulses;	/* of a packet of each type; that live at once */
	uint32_t segments;		/* of a streaming group at each switch; 0: as usual */
	bool plain;			/* some switches only forward */
	bool locks;			/* streaming trees are locked */
	uint32_t replaced;		/* how often another program goes on with what a switch has */
	uint32_t cause_switch, cause_link;	/* any number */
	bool said;			/* CUT: to both ends, between switches */
};

/* Of what a seed draws, at most so much. */
struct dst_limits {
	uint32_t ranks, comms, ops;	/* 0: as many as are drawn; ops: of each communicator */
	uint32_t without;		/* bit i: nothing of fault i (plan.c) */
};

void dst_plan_make(struct dst_plan *plan, uint64_t seed);
/* The same with switches. */
void dst_plan_trees(struct dst_plan *plan);
void dst_plan_limit(struct dst_plan *plan, const struct dst_limits *limits);
/* NULL: there is none. */
const char *dst_fault_name(uint32_t fault);
/* Whether the cause may show in a communicator. */
bool dst_plan_touches(const struct dst_plan *plan, uint32_t comm);
void dst_plan_print(const struct dst_plan *plan);

/* ---- operations ------------------------------------------------------------------ */

/* What all members call. */
struct dst_op {
	const struct muster_schedule *schedule;
	struct muster_schedule *owned;	/* the same, if it is not kept */
	uint8_t type, op;
	uint64_t count, bytes;
	uint8_t tree;			/* 1 + enum muster_switch_tree_type: by that, and not by the schedule */
	uint32_t lock;			/* 1 + operations: it asks for a lock for so many; 1: gives it back */
	uint32_t asked;			/* of these, the time to which `expected` belongs */
	uint8_t *expected;		/* where there is a result */
};

/* One member's part in it. */
struct dst_call {
	const struct dst_op *op;
	struct muster_program *program;
	uint8_t *in, *out;		/* equal: in place */
	uint8_t *scratch;
	uint32_t asked, how;		/* for a lock: how often, and as what next */
	struct muster_desc *in_memory;	/* its descriptors, if one names them all */
	uint64_t in_hash;
	uint32_t idled;			/* numbers before it in which nobody does anything, posted */
	uint32_t stage;			/* next to be posted */
	uint32_t number;		/* of its last stage */
	bool live;			/* the NIC may use its memory */
	bool settled;			/* has completed, or never will: memory is sealed */
	bool refused;			/* MEMORY: accesses fail */
};

/* A message that is written. */
struct dst_write {
	uint32_t length;		/* 0: it is none */
	uint32_t beyond;		/* bytes by which it is too long for its place */
	bool done;			/* it was there; the place is sealed */
	uint8_t *source, *place;
};

struct dst_comm {
	uint16_t id;
	struct dst_groups *groups;		/* on trees; NULL: none */
	uint32_t locked;			/* operations that the lock that was drawn last is for yet */
	uint32_t nr;
	uint32_t members[DST_RANKS_MAX];	/* ranks, in any order */
	struct muster_address addresses[DST_RANKS_MAX];
	uint32_t nr_ops;
	struct dst_op ops[DST_OPS_MAX];
	struct dst_op wrong;			/* what the cause's rank calls instead */
	uint32_t nr_messages;			/* that each member sends */
	uint8_t message_to[DST_RANKS_MAX][DST_MESSAGES_MAX];
	uint32_t messages_for[DST_RANKS_MAX];
	struct dst_write writes[DST_RANKS_MAX][DST_MESSAGES_MAX];
};

/* ---- ranks and nodes ------------------------------------------------------------- */

/* A node's step or a rank's turn: the soonest that was asked for, which is done again and again. */
struct dst_next {
	uint64_t at_us;			/* UINT64_MAX: never */
	uint64_t order;
	uint32_t place;			/* in dst_world.planned, + 1; 0: not there */
	uint16_t type, target;		/* as the event's */
};

/* A rank in a communicator. */
struct dst_part {
	bool member, closed, told;	/* told: MUSTER_CQE_CONTEXT came */
	bool unfetched;			/* stages in memory that have no number, maybe: it failed before */
	uint32_t self;
	uint32_t posting;		/* call that is being posted */
	uint32_t completed;		/* calls that have completed */
	uint32_t good;			/* of them with success */
	uint32_t number;		/* next of its sequences */
	uint8_t status;			/* first failure */
	uint64_t close_us;
	uint32_t messages_posted, messages_completed, messages_came;
	uint32_t messages_left;			/* bit per message; as the next */
	uint32_t messages_from[DST_RANKS_MAX];	/* bit per message */
	struct dst_call calls[DST_OPS_MAX];
};

struct dst_rank {
	struct dst_world *world;
	struct dst_node *node;
	uint32_t index;
	uint16_t vp;
	struct dst_next turn;
	uint64_t begin_us;
	uint32_t backoff_us;
	struct muster_cqe cq[DST_CQ_MAX];
	uint32_t cq_head, cq_tail;
	struct dst_part parts[DST_COMMS_MAX];
	struct dst_process *process;	/* runs the library; NULL: host.c is its program */
};

/* One end of a link. */
struct dst_port {
	struct dst_node *node;
	uint32_t peer;
	struct muster_link *link;
	struct muster_ring_producer out;
	struct muster_ring_consumer in;
	bool gone;			/* rings, switches: its end was reported */
	bool away;			/* switches: there is no link */
	uint64_t sent;			/* packets that the peer was sent */
	uint64_t delivered;		/* packets that came from it */
};

/* A copy that peers read. */
struct dst_lent {
	uint8_t *memory;		/* NULL: the place is free */
	uint64_t bytes;
	uint32_t context;		/* with which it goes; or MUSTER_LEND_KEPT */
	uint32_t readers;		/* times that it was lent, and not given back */
};

struct dst_node {
	struct dst_world *world;
	uint32_t index;
	uint32_t incarnation;
	bool dead, reborn, left;
	struct dst_switch *sw;		/* it is one; NULL: a host */
	struct muster_engine *engine;
	size_t allocated;	/* by its engine; of that came from the system, not from malloc() */
	size_t mapped;
	struct dst_next step;
	uint64_t activity;		/* packets, completions, writes */
	uint32_t idle;			/* steps without any */
	uint32_t nr_ranks;
	struct dst_rank *ranks[DST_RANKS_MAX];
	struct dst_lent lent[DST_LENT_MAX];
	uint64_t signs[DST_CONTEXTS_MAX / 64];	/* bit per context that has ended: what it lent may have been given back */
	struct muster_ring_region region;
	struct dst_port ports[DST_NODES_MAX];
	uint64_t rings_due;		/* bit per node: its ring may have something */
	struct muster_link_pool pool;	/* of its links, */
	uint32_t slots;			/* and what they all have now */
};

/* ---- the world -------------------------------------------------------------------- */

enum dst_event_type {
	DST_EVENT_STEP = 1,	/* a node runs its wire and its engine */
	DST_EVENT_TURN,		/* a rank's program runs */
	DST_EVENT_FRAME,	/* a datagram arrives at a node */
	DST_EVENT_PACKET,	/* a packet arrives at a node's engine: from itself, or again */
	DST_EVENT_LOST,		/* rings: node learns that the other one is dead */
	DST_EVENT_LEFT,		/* rings: node learns that the other one has left */
	DST_EVENT_CAUSE,	/* what the plan has in mind */
	DST_EVENT_REBIRTH,
	DST_EVENT_LEAVE,	/* a rank has closed a communicator: its switch hears that it has left the groups */
	DST_EVENT_REMOVE,	/* all have: a switch forgets them */
	DST_EVENT_REPLACE,	/* a switch becomes another program */
	DST_EVENT_UNLINK,	/* a switch is told that the link to that node is down */
};

/* A datagram or packet under way. */
struct dst_parcel {
	struct dst_parcel *next;	/* free ones */
	uint32_t len;
	uint8_t bytes[MUSTER_FRAME_MAX + 8] __attribute__((aligned(8)));
};

struct dst_event {
	uint64_t at_us;
	uint64_t order;
	uint32_t type;
	uint16_t target, other;
	struct dst_parcel *parcel;
};

/* From one node to another, for a while. */
struct dst_window {
	uint32_t from, to;
	uint64_t begin_us, end_us;
};

struct dst_world {
	struct dst_plan plan;
	struct dst_limits limits;
	struct dst_rng net, host, data;
	uint64_t now_us;
	uint64_t hash;			/* of all that happened */
	bool trace;
	int dump_fd;			/* of packets that are sent; -1: none */
	bool trees;			/* a network of switches, and reduction trees on it */
	struct dst_network *network;	/* of this run */
	bool library;			/* ranks run it: */
	void (*program)(struct dst_process *process);	/* this; NULL: dst_program() */
	uint32_t many;			/* so many of them, without faults; 0: as the seed says */
	bool apart;			/* those: each on a node of its own */
	uint64_t bound_us, events_end;	/* when everything must have ended; a program may move them */
	bool failed;
	bool forgotten;			/* MISMATCH: what a packet is to be compared with is so long ago */
	char why[DST_WHY_MAX];
	uint64_t nr_events, nr_packets, nr_faults;
	uint8_t job;
	uint64_t job_key;
	struct dst_window cuts[DST_WINDOWS_MAX];	/* what is sent meanwhile is lost */
	struct dst_window clogs[DST_WINDOWS_MAX];	/* or arrives at the end */
	struct muster_wire_counters counters;
	struct dst_node nodes[DST_NODES_MAX];
	struct dst_rank ranks[DST_RANKS_MAX];
	struct dst_comm comms[DST_COMMS_MAX];
	uint8_t *arena;
	size_t arena_used;

	struct dst_event *heap;
	uint32_t heap_nr, heap_max;
	struct dst_next *planned[DST_NODES_MAX + DST_RANKS_MAX];	/* another heap */
	uint32_t nr_planned;
	uint64_t order;
	struct dst_parcel *parcels;	/* free ones */
	struct muster_link *links;	/* storage for all pairs */
	uint8_t *regions;		/* and for the nodes' inbound regions */
};

/* world.c */
struct dst_world *dst_world_new(void);
void dst_world_free(struct dst_world *w);
/* Run one seed: true if everything held, else w->why says what did not. */
bool dst_world_run(struct dst_world *w, uint64_t seed);
void dst_at(struct dst_world *w, uint64_t at_us, enum dst_event_type type, uint32_t target,
	    uint32_t other, struct dst_parcel *parcel);
void dst_mix(struct dst_world *w, uint64_t value);
bool dst_healed(const struct dst_world *w);
__attribute__((format(printf, 2, 3))) void dst_fail(struct dst_world *w, const char *format, ...);
__attribute__((format(printf, 2, 3))) void dst_say(struct dst_world *w, const char *format, ...);
uint8_t *dst_memory(struct dst_world *w, size_t bytes);
void dst_step_at(struct dst_node *node, uint64_t at_us);
void dst_turn_at(struct dst_rank *rank, uint64_t at_us);
bool dst_rank_finished(const struct dst_rank *rank);

/* shrink.c */
/* A text as --limits has it; false: it is none. */
bool dst_limits_read(struct dst_limits *limits, const char *text);
void dst_limits_write(const struct dst_limits *limits, char *text, size_t size);
/* A seed that fails: w->limits become the least with which it does. False: nothing can go. */
bool dst_shrink(struct dst_world *w, uint64_t seed);

/* net.c */
void dst_net_begin(struct dst_world *w);
void dst_net_rebirth(struct dst_node *node);
struct dst_parcel *dst_parcel_new(struct dst_world *w);
void dst_parcel_free(struct dst_world *w, struct dst_parcel *parcel);
int dst_net_send(struct dst_node *node, uint32_t incarnation, const struct muster_packet *packet,
		 const void *payload);
void dst_net_arrive(struct dst_node *node, uint32_t from, struct dst_parcel *parcel);
/* An event's packet reaches the engine. */
void dst_net_packet(struct dst_node *node, uint32_t from, struct dst_parcel *parcel);
void dst_net_run(struct dst_node *node);
void dst_net_watch(struct dst_node *node, uint32_t peer, uint32_t incarnation);
/* Rings: node learns that a peer has died, or has left in good order. */
void dst_net_end(struct dst_node *node, uint32_t peer, bool in_order);
/* At the end: what was sent has come. */
void dst_net_check(struct dst_world *w);
/* All links give back what they keep. */
void dst_net_drop(struct dst_world *w);
void dst_net_free(struct dst_world *w);

/* To a neighbour, whomever the packet is for. */
int dst_net_send_by(struct dst_node *node, uint32_t to, uint32_t incarnation,
		    const struct muster_packet *packet, const void *payload);
/* A packet is to be taken once more, as the plan says. */
void dst_net_replay(struct dst_node *node, uint32_t from, const struct muster_packet *packet,
		    const void *payload);

/* A packet reaches a host's engine. */
void dst_net_receive(struct dst_node *node, const struct muster_packet *packet, const void *payload,
		     uint32_t len);

/* rings.c */
void dst_rings_begin(struct dst_world *w);
int dst_ring_send(struct dst_node *node, const struct muster_packet *packet, const void *payload);
/* Take what a node has been sent: some of it, or all that another one has sent. */
void dst_rings_run(struct dst_node *node);
void dst_ring_drain(struct dst_node *node, uint32_t from);

/* lent.c */
/* Whether a key is of a copy; where one lies, NULL: nowhere (any more). */
bool dst_lent_is(uint32_t key);
uint8_t *dst_lent_range(struct dst_node *node, uint32_t key, uint64_t addr, uint64_t len);
/* Whether a copy is to be lent for that memory; made of `from`; the same once more. False: there is none. */
bool dst_lend_wants_copy(const struct dst_node *node, uint32_t context, const struct muster_reference *lent);
bool dst_lend_copy(struct dst_node *node, uint32_t context, const uint8_t *from, struct muster_reference *lent);
bool dst_lend_again(struct dst_node *node, uint32_t context, const struct muster_reference *lent);
void dst_lent_back(struct dst_node *node, const struct muster_reference *lent);
/* What a context has lent is not to be counted on, or is again, as it is opened. */
void dst_lent_sign(struct dst_node *node, uint16_t context, bool on);
bool dst_lent_is_signed(const struct dst_node *node, uint16_t context);
/* It is closed. */
void dst_lent_drop(struct dst_node *node, uint16_t context);
/* At the end: nothing is lent. */
void dst_lent_end(struct dst_node *node);

/* network.c */
/* Before the nodes are: who is joined to whom. False: dst_fail(). */
bool dst_network_make(struct dst_world *w);
void dst_network_free(struct dst_world *w);
const struct muster_fabric *dst_network_fabric(const struct dst_world *w);
/* The name that packets have for a node of the world. */
uint32_t dst_network_id(const struct dst_world *w, uint32_t index);
/* Whether two nodes are joined. */
bool dst_network_joins(const struct dst_world *w, uint32_t a, uint32_t b);
/* The switch that a host is at. */
uint32_t dst_network_uplink(const struct dst_world *w, uint32_t host);
/* Two nodes that are joined, by any number. */
void dst_network_link(const struct dst_world *w, uint32_t any, uint32_t *a, uint32_t *b);
/* Whether all switches know their hosts: what is for one that is yet to come, they keep. */
bool dst_network_met(const struct dst_world *w);
/* CUT or SWITCH happens. */
void dst_network_break(struct dst_world *w);
/* Whether nothing comes through there any more. */
bool dst_network_cut(const struct dst_world *w, uint32_t a, uint32_t b);
/* Whether, of what has happened, a node's neighbours say that it is gone. */
bool dst_network_gone(const struct dst_world *w, uint32_t index);
/* A host has lost its switch. */
void dst_network_lost(struct dst_node *host);
/* What a host's switch says to the host itself. False: it is for the engine. */
bool dst_network_heard(struct dst_node *host, const struct muster_packet *packet);
int dst_switch_begin(struct dst_node *node);
void dst_switch_end(struct dst_node *node);
void dst_switch_step(struct dst_node *node);
/* False: it is not taken now. */
bool dst_switch_take(struct dst_node *node, uint32_t from, const struct muster_packet *packet,
		     const void *payload);
void dst_switch_met(struct dst_node *node, uint32_t peer, uint32_t present);
void dst_switch_lost(struct dst_node *node, uint32_t peer, uint32_t present);
void dst_switch_unlink(struct dst_node *node, uint32_t peer);
/* Another one goes on with what it has. */
void dst_switch_replace(struct dst_node *node);
struct muster_switch *dst_switch_of(const struct dst_node *node);
/* Whether all groups are gone and nothing is under way: else dst_fail(), if it is late. */
bool dst_switches_rest(struct dst_world *w, bool late);

/* tree.c */
/* A communicator has groups, where that can be. 0; -errno. */
int dst_trees_make(struct dst_world *w, struct dst_comm *comm);
void dst_trees_free(struct dst_world *w);
/* A rank's context is open. */
int dst_trees_join(struct dst_rank *rank, uint32_t comm);
/* It is closed. */
void dst_trees_leave(struct dst_rank *rank, uint32_t comm);
void dst_trees_left(struct dst_rank *rank, uint32_t comm);
void dst_trees_remove(struct dst_node *node, uint32_t comm);
/* Whether what was broken is between members, or their groups'. */
bool dst_trees_broken(const struct dst_world *w, uint32_t comm);
/* By which tree an operation goes, if by any; so long at most. */
uint8_t dst_tree_draw(struct dst_world *w, const struct dst_comm *comm, uint64_t *bytes);
/* What comes of members' vectors. */
void dst_tree_expect(const struct dst_world *w, const struct dst_comm *comm, const struct dst_op *op,
		     uint8_t *const *vectors, uint8_t *expected);
/* An operation that would go by a streaming tree asks for its lock instead, or gives it back. */
bool dst_lock_wanted(struct dst_world *w, struct dst_comm *comm, struct dst_op *op);
/* It is posted: once more, perhaps. */
void dst_lock_ask(struct dst_call *call);
/* It has been answered: whether it is to be asked for again. */
bool dst_lock_again(struct dst_rank *rank, uint32_t comm, struct dst_call *call);
struct muster_program *dst_tree_lower(const struct dst_world *w, const struct dst_comm *comm,
				      uint32_t member, const struct dst_op *op);

/* node.c */
int dst_node_begin(struct dst_node *node);
void dst_node_end(struct dst_node *node);
/* Whether all members have been told of the contexts that are closed. */
bool dst_node_has_told(const struct dst_node *node);
void dst_node_step(struct dst_node *node);

/* host.c */
bool dst_host_finished(const struct dst_rank *rank);
void dst_host_turn(struct dst_rank *rank);
void dst_host_close(struct dst_rank *rank, uint32_t comm);
void dst_host_abort(struct dst_rank *rank, uint32_t comm);

/* process.c: a rank that runs the library. It sleeps where its device waits. */
int dst_process_begin(struct dst_rank *rank, void (*main)(struct dst_process *process));
void dst_process_end(struct dst_rank *rank);
void dst_process_turn(struct dst_rank *rank);
bool dst_process_finished(const struct dst_rank *rank);
void dst_process_deliver(struct dst_rank *rank, const struct muster_packet *packet,
			 const void *payload);
/* Of the region that the key names now; 0: none. */
uint64_t dst_process_key_life(const struct dst_rank *rank, uint32_t key);
/* Where a range of its memory lies; NULL: it is not, or not wholly, registered for that. */
uint8_t *dst_process_range(struct dst_rank *rank, uint32_t key, uint64_t addr, uint64_t len,
			   bool write);
/* For what runs in it. */
struct dst_rank *dst_process_rank(struct dst_process *process);
/* Its memory that is registered now. */
uint32_t dst_process_regions(const struct dst_rank *rank);
void dst_process_sleep(struct dst_process *process, uint64_t us);
int dst_process_join(struct dst_process *process, struct muster **job);

/* It goes on: only from now on it may be too late. */
void dst_process_lives(struct dst_process *process);

/* program.c */
void dst_program(struct dst_process *process);

/* message.c */
void dst_messages_make(struct dst_world *w, struct dst_comm *comm);
/* The next one. 0; -EAGAIN; -ENOENT: there is none. */
int dst_message_post(struct dst_rank *rank, uint32_t comm);
void dst_message_complete(struct dst_rank *rank, uint32_t comm, const struct muster_cqe *cqe);
void dst_message_deliver(struct dst_rank *rank, const struct muster_packet *packet,
			 const void *payload);
bool dst_messages_done(const struct dst_rank *rank, uint32_t comm);

/* write.c */
/* Whether a message is one, and what it is then. */
bool dst_write_make(struct dst_world *w, struct dst_comm *comm, uint32_t from, uint32_t index);
void dst_write_describe(const struct dst_rank *rank, uint32_t comm, uint32_t index, struct muster_desc *desc);
/* Memory of a rank's that it writes from, or that others may write to; NULL: it is not. */
uint8_t *dst_write_range(const struct dst_rank *rank, uint32_t key, uint64_t addr, uint64_t len,
			 bool remote);
void dst_write_complete(struct dst_rank *rank, uint32_t comm, uint32_t index, uint8_t status);
/* At the end. */
void dst_writes_check(struct dst_world *w, uint32_t comm);

/* op.c */
int dst_op_make(struct dst_world *w, struct dst_comm *comm, struct dst_op *op, bool large);
/* The same but for its type, count or root. */
void dst_op_alter(struct dst_world *w, struct dst_op *wrong, const struct dst_op *op);
int dst_call_make(struct dst_world *w, struct dst_comm *comm, uint32_t member,
		  const struct dst_op *op, struct dst_call *call, uint8_t *in);
/* Result and contribution are what they must be; w->why says if not. */
bool dst_call_right(struct dst_world *w, const struct dst_comm *comm, uint32_t member,
		    const struct dst_call *call);
/* From now on the memory must not be touched. */
void dst_call_seal(struct dst_call *call);
bool dst_call_sealed(const struct dst_call *call);

#endif /* MUSTER_DST_H */
